//! AudioSummary and AudioSummaryV2.

use super::{numbered, scalar_tag, summary, tagged};
use crate::prelude::*;
use ferroflow_op_kit::protobuf::Message;

/// A WAV file of 16-bit samples.
fn wav(samples: &[f32], channels: u16, rate: u32) -> Vec<u8> {
    let bytes = samples.len() as u32 * 2;
    let mut out = b"RIFF".to_vec();
    out.extend((36 + bytes).to_le_bytes());
    out.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    out.extend(channels.to_le_bytes());
    out.extend(rate.to_le_bytes());
    out.extend(rate.wrapping_mul(u32::from(channels) * 2).to_le_bytes());
    out.extend((channels * 2).to_le_bytes());
    out.extend(b"\x10\0data");
    out.extend(bytes.to_le_bytes());
    for x in samples {
        out.extend(((x * 32768.0).round() as i16).to_le_bytes());
    }
    out
}

/// The values of a summary of sound.
pub(super) fn audio_values(
    tag: &str,
    tensor: &Tensor,
    rate: f32,
    most: usize,
) -> Result<Vec<Message>> {
    let (batch, frames, channels) = match *tensor.shape().dims() {
        [batch, frames] => (batch, frames, 1),
        [batch, frames, channels] => (batch, frames, channels),
        _ => bail!(InvalidArgument, "Tensor must be 3-D or 2-D, got: {}", tensor.shape()),
    };
    ensure!(
        rate > 0.0 && rate < 2f32.powi(31),
        InvalidArgument,
        "sample_rate must be > 0, got {rate}"
    );
    ensure!(
        frames > 0 && (1..1 << 15).contains(&channels) && frames < (1 << 30) / channels,
        InvalidArgument,
        "num_channels and num_frames must be positive and the audio below 2 GB, got: {}",
        tensor.shape()
    );
    let samples = tensor.as_slice::<f32>()?;
    let mut values = Vec::new();
    for (i, part) in samples.chunks(frames * channels).enumerate().take(std::cmp::min(batch, most))
    {
        let mut m = Message::new();
        m.float(1, rate)
            .varint(2, channels as u64)
            .varint(3, frames as u64)
            .bytes(4, &wav(part, channels as u16, rate as u32))
            .bytes(5, b"audio/wav");
        let mut value = tagged(&numbered(tag, "audio", i, most));
        value.message(6, &m);
        values.push(value);
    }
    Ok(values)
}

fn compute(ctx: &mut Ctx<'_>, rate: f32, most: usize) -> Result<()> {
    let tag = scalar_tag(ctx, "Tag")?;
    let values = audio_values(&tag, ctx.input(1)?, rate, most)?;
    ctx.set(0, summary(&values))
}

fn most(init: &KernelInit<'_>) -> Result<usize> {
    Ok(usize::try_from(init.int("max_outputs")?).unwrap_or(0))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("AudioSummary")
        .doc("A summary of sound, at a fixed sample rate.")
        .input("tag: string")
        .input("tensor: float")
        .output("summary: string")
        .attr("sample_rate: float")
        .attr("max_outputs: int >= 1 = 3")
        .shape(shape::scalar)
        .expensive()
        .cpu(|init| {
            let (rate, most) = (init.float("sample_rate")?, most(init)?);
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| compute(ctx, rate, most)))
        });
    c.op("AudioSummaryV2")
        .doc("A summary of sound.")
        .input("tag: string")
        .input("tensor: float")
        .input("sample_rate: float")
        .output("summary: string")
        .attr("max_outputs: int >= 1 = 3")
        .shape(shape::scalar)
        .expensive()
        .cpu(|init| {
            let most = most(init)?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let rate = ctx.input(2)?;
                ensure!(rate.rank() == 0, InvalidArgument, "sample_rate must be scalar");
                let rate = rate.scalar_value::<f32>()?;
                compute(ctx, rate, most)
            }))
        });
    c.no_gradient(&["AudioSummary", "AudioSummaryV2"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn sound_is_written_as_wav() {
        let sound = |t: Tensor| {
            check("AudioSummaryV2")
                .attr("max_outputs", 1i64)
                .input(Tensor::string("a"))
                .input(t)
                .input(Tensor::scalar(44100f32))
        };
        sound(Tensor::from_slice([1, 4], &[0f32, 0.5, -1., 2.]).unwrap()).gives(Tensor::string(
            &b"\nU\n\x07a/audio2J\r\x00D,G\x10\x01\x18\x04\"4RIFF,\x00\x00\x00WAVEfmt \x10\x00\x00\
               \x00\x01\x00\x01\x00D\xac\x00\x00\x88X\x01\x00\x02\x00\x10\x00data\x08\x00\x00\x00\
               \x00\x00\x00@\x00\x80\xff\x7f*\taudio/wav"[..],
        ));
        sound(Tensor::vector(&[1f32]))
            .fails(Code::InvalidArgument, "Tensor must be 3-D or 2-D, got: [1]");
    }
}
