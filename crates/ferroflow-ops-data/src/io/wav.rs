//! DecodeWav and EncodeWav: sound in files of 16-bit samples.

use crate::prelude::*;

/// The contents of a file.
struct Sound<'a> {
    channels: usize,
    rate: u32,
    /// 16-bit samples, channel by channel at each time.
    data: &'a [u8],
}

fn text<'a>(data: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let Some((head, rest)) = data.split_at_checked(n) else {
        bail!(InvalidArgument, "Data too short when trying to read string");
    };
    *data = rest;
    Ok(head)
}

fn number(data: &mut &[u8], bytes: usize) -> Result<u32> {
    let Some((head, rest)) = data.split_at_checked(bytes) else {
        bail!(InvalidArgument, "Data too short when trying to read value");
    };
    *data = rest;
    Ok(head.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b)))
}

fn expect(data: &mut &[u8], want: &[u8]) -> Result<()> {
    let is = text(data, want.len())?;
    ensure!(
        is == want,
        InvalidArgument,
        "Header mismatch: Expected {} but found {}",
        String::from_utf8_lossy(want),
        String::from_utf8_lossy(is)
    );
    Ok(())
}

fn read(mut data: &[u8]) -> Result<Sound<'_>> {
    let data = &mut data;
    expect(data, b"RIFF")?;
    number(data, 4)?;
    expect(data, b"WAVE")?;
    expect(data, b"fmt ")?;
    let size = number(data, 4)?;
    ensure!(
        size == 16 || size == 18,
        InvalidArgument,
        "Bad format chunk size for WAV: Expected 16 or 18, but got{size}"
    );
    let format = number(data, 2)?;
    ensure!(
        format == 1,
        InvalidArgument,
        "Bad audio format for WAV: Expected 1 (PCM), but got{format}"
    );
    let channels = number(data, 2)?;
    ensure!(
        channels > 0,
        InvalidArgument,
        "Bad number of channels for WAV: Expected at least 1, but got {channels}"
    );
    let (rate, per_second) = (number(data, 4)?, number(data, 4)?);
    let (per_time, bits) = (number(data, 2)?, number(data, 2)?);
    ensure!(bits == 16, InvalidArgument, "Can only read 16-bit WAV files, but received {bits}");
    ensure!(
        per_time == channels * 2,
        InvalidArgument,
        "Bad bytes per sample in WAV header: Expected {} but got {per_time}",
        channels * 2
    );
    ensure!(
        Some(per_second) == per_time.checked_mul(rate),
        InvalidArgument,
        "Bad bytes per second in WAV header: Expected {} but got {per_second} (sample_rate={rate}, \
         bytes_per_sample={per_time})",
        u64::from(per_time) * u64::from(rate)
    );
    if size == 18 {
        number(data, 2)?;
    }
    let mut found = None;
    while !data.is_empty() {
        let kind = text(data, 4)?;
        let size = number(data, 4)?;
        ensure!(size <= i32::MAX as u32, InvalidArgument, "Chunk size too large: {size}");
        if kind == b"data" {
            ensure!(found.is_none(), InvalidArgument, "More than one data chunk found in WAV");
            let Some(body) = data.get(..size as usize) else {
                bail!(InvalidArgument, "Data too short when trying to read values");
            };
            found = Some(body);
        }
        let Some(rest) = data.get(size as usize..) else {
            bail!(InvalidArgument, "Data too short when trying to read string");
        };
        *data = rest;
    }
    let Some(body) = found else { bail!(InvalidArgument, "No data chunk found in WAV") };
    Ok(Sound { channels: channels as usize, rate, data: body })
}

fn decode_wav(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (channels, samples) = (init.int("desired_channels")?, init.int("desired_samples")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let contents = ctx.input(0)?;
        ensure!(
            contents.rank() == 0,
            InvalidArgument,
            "contents must be scalar, got shape {}",
            contents.shape()
        );
        let data = contents.scalar_string()?;
        let sound = read(data)?;
        let have = sound.data.len() / (2 * sound.channels);
        let channels = usize::try_from(channels).unwrap_or(sound.channels);
        let samples = usize::try_from(samples).unwrap_or(have);
        let shape = Shape::from_dims(&[samples as i64, channels as i64])?;
        let mut out = Tensor::zeros(DType::Float, shape)?;
        let rows = out.as_mut_slice::<f32>()?.chunks_exact_mut(channels.max(1));
        for (row, from) in rows.zip(sound.data.chunks_exact(2 * sound.channels)) {
            for (c, to) in row.iter_mut().enumerate() {
                // Channels that the file does not have are like its last.
                let at = 2 * c.min(sound.channels - 1);
                *to = f32::from(i16::from_le_bytes([from[at], from[at + 1]])) / 32768.0;
            }
        }
        let rate = sound.rate as i32;
        ctx.set(0, out)?;
        ctx.set(1, Tensor::scalar(rate))
    }))
}

fn encode_wav(ctx: &mut Ctx<'_>) -> Result<()> {
    let (audio, rate) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        audio.rank() == 2,
        InvalidArgument,
        "audio must be 2-dimensional but got shape {}",
        audio.shape()
    );
    ensure!(
        rate.rank() == 0,
        InvalidArgument,
        "Input sample_rate should be a scalar tensor, got {} instead.",
        rate.shape()
    );
    let (samples, channels) = (audio.shape()[0], audio.shape()[1]);
    let rate = rate.scalar_value::<i32>()?;
    ensure!(rate > 0, InvalidArgument, "sample_rate must be positive, got: {rate}");
    ensure!(
        (1..=65535).contains(&channels),
        InvalidArgument,
        "num_channels must be positive and below 65536, got: {channels}"
    );
    let per_time = channels as u32 * 2;
    let bytes = u32::try_from(samples).ok().and_then(|n| n.checked_mul(per_time));
    let sizes =
        bytes.and_then(|n| Some((n, n.checked_add(36)?, per_time.checked_mul(rate as u32)?)));
    let Some((bytes, file, per_second)) = sizes else {
        bail!(InvalidArgument, "audio of shape {} is too long for a WAV file", audio.shape());
    };
    let mut out = Vec::with_capacity(44 + bytes as usize);
    out.extend(b"RIFF");
    out.extend(file.to_le_bytes());
    out.extend(b"WAVEfmt ");
    out.extend(16u32.to_le_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend((channels as u16).to_le_bytes());
    out.extend((rate as u32).to_le_bytes());
    out.extend(per_second.to_le_bytes());
    out.extend((per_time as u16).to_le_bytes());
    out.extend(16u16.to_le_bytes());
    out.extend(b"data");
    out.extend(bytes.to_le_bytes());
    for &x in audio.as_slice::<f32>()? {
        let level = (x * 32768.0).round().clamp(-32768.0, 32767.0) as i16;
        out.extend(level.to_le_bytes());
    }
    ctx.set(0, Tensor::string(out))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeWav")
        .doc("The sound in a WAV file of 16-bit samples.")
        .input("contents: string")
        .output("audio: float")
        .output("sample_rate: int32")
        .attr("desired_channels: int = -1")
        .attr("desired_samples: int = -1")
        .shape(|c| {
            let size = |attr: &str| -> Result<Option<usize>> {
                let n = c.attrs.int(attr)?;
                ensure!(n >= -1, InvalidArgument, "{attr} must be non-negative, got {n}");
                Ok(usize::try_from(n).ok())
            };
            let shape = [size("desired_samples")?, size("desired_channels")?];
            Ok(vec![PartialShape::new(shape), PartialShape::scalar()])
        })
        .cpu(decode_wav);
    c.op("EncodeWav")
        .doc("Sound as a WAV file of 16-bit samples.")
        .input("audio: float")
        .input("sample_rate: int32")
        .output("contents: string")
        .shape(shape::scalar)
        .cpu_fn(encode_wav);
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_sounds_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../../tests/data/recorded/wav.txt"));
    }
}
