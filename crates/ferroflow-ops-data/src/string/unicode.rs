//! UnicodeTranscode, UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode.

use super::encoding::Encoding;
use super::map;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;

/// How malformed text is handled.
#[derive(Clone, Copy)]
enum OnError {
    Fail,
    Ignore,
    Replace(u32),
}

impl OnError {
    fn from_attrs(init: &KernelInit<'_>) -> Result<OnError> {
        let replacement = init.int("replacement_char")?;
        ensure!(
            (0..=0x10_ffff).contains(&replacement),
            InvalidArgument,
            "replacement_char out of unicode codepoint range"
        );
        Ok(match init.string("errors")?.as_str() {
            "strict" => OnError::Fail,
            "ignore" => OnError::Ignore,
            _ => OnError::Replace(replacement as u32),
        })
    }
}

/// How text is read.
#[derive(Clone, Copy)]
struct Reader {
    from: Encoding,
    on_error: OnError,
    /// Whether control characters are replaced or left out too.
    no_controls: bool,
    /// The replacement of a control character where malformed text is an error: transcoding then
    /// fails at it as well, decoding does not.
    control: Option<u32>,
}

impl Reader {
    fn for_transcoding(init: &KernelInit<'_>) -> Result<Reader> {
        let name = init.string("input_encoding")?;
        let Some(from) = Encoding::from_name(&name) else {
            bail!(InvalidArgument, "Could not create converter for input encoding: {name}");
        };
        let no_controls = init.bool("replace_control_characters")?;
        Ok(Reader { from, on_error: OnError::from_attrs(init)?, no_controls, control: None })
    }

    fn for_decoding(init: &KernelInit<'_>) -> Result<Reader> {
        let control = u32::try_from(init.int("replacement_char")?).ok();
        Ok(Reader { control, ..Reader::for_transcoding(init)? })
    }

    /// Code points and where each begins.
    fn read(&self, s: &[u8]) -> Result<Vec<(u32, usize)>> {
        let mut out = Vec::new();
        for d in self.from.decode(s) {
            let code = d.code.filter(|&c| !self.no_controls || c > 0x1f);
            let is_control = code.is_none() && d.code.is_some();
            match (code, self.on_error) {
                (Some(code), _) => out.push((code, d.start)),
                (None, OnError::Replace(code)) => out.push((code, d.start)),
                (None, OnError::Ignore) => {}
                (None, OnError::Fail) => match self.control {
                    Some(code) if is_control => out.push((code, d.start)),
                    _ => bail!(InvalidArgument, "Invalid formatting on input string"),
                },
            }
        }
        Ok(out)
    }
}

fn output_encoding(init: &KernelInit<'_>) -> Result<Encoding> {
    let name = init.string("output_encoding")?;
    Encoding::from_name(&name)
        .ok_or_else(|| err!(InvalidArgument, "Unsupported output encoding: {name}"))
}

fn transcode(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (reader, to) = (Reader::for_transcoding(init)?, output_encoding(init)?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        map(ctx, |s| {
            let mut out = Vec::with_capacity(s.len());
            for (code, _) in reader.read(s)? {
                to.encode(code, &mut out);
            }
            Ok(Bytes::from(out))
        })
    }))
}

fn index_vector(dtype: DType, values: &[i64]) -> Tensor {
    match dtype {
        DType::Int32 => Tensor::vector(&values.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        _ => Tensor::vector(values),
    }
}

fn decode(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (reader, dtype) = (Reader::for_decoding(init)?, init.dtype("Tsplits")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (mut splits, mut codes, mut starts) = (vec![0], Vec::new(), Vec::new());
        let mut counted = Reservation::default();
        for s in ctx.input(0)?.strings()? {
            // Decoded characters take many times the memory of the text.
            let (kept, read) = (size_of::<(i32, i64)>(), size_of::<(u32, usize)>());
            counted.grow(s.len().saturating_mul(kept))?;
            let _while_reading = Reservation::new(s.len().saturating_mul(read))?;
            for (code, start) in reader.read(s)? {
                codes.push(code as i32);
                starts.push(start as i64);
            }
            splits.push(codes.len() as i64);
        }
        drop(counted);
        ctx.set(0, index_vector(dtype, &splits))?;
        ctx.set(1, Tensor::vector(&codes))?;
        if ctx.num_outputs() > 2 {
            ctx.set(2, Tensor::vector(&starts))?;
        }
        Ok(())
    }))
}

/// Whether this is a code point of a character: no surrogate, no noncharacter.
fn is_character(code: i32) -> bool {
    let Ok(code) = u32::try_from(code) else { return false };
    char::from_u32(code).is_some()
        && !(0xfdd0..=0xfdef).contains(&code)
        && (code & 0xfffe) != 0xfffe
}

fn encode(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (on_error, to) = (OnError::from_attrs(init)?, output_encoding(init)?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (values, splits) = (ctx.input(0)?.as_slice::<i32>()?, ctx.input(1)?.to_indices()?);
        ensure!(
            !splits.is_empty(),
            InvalidArgument,
            "Input_splits should contain elements, but given input_values has 0 elements"
        );
        ensure!(splits[0] == 0, InvalidArgument, "First value in input_splits must be zero.");
        ensure!(
            splits.last() == Some(&(values.len() as i64)),
            InvalidArgument,
            "Last value in input_splits must be equal to length of input_values."
        );
        ensure!(
            splits.windows(2).all(|w| w[0] <= w[1]),
            InvalidArgument,
            "Values in input_splits must be equal or in ascending order."
        );
        let mut out = Vec::with_capacity(splits.len() - 1);
        for pair in splits.windows(2) {
            let mut bytes = Vec::new();
            for &code in &values[pair[0] as usize..pair[1] as usize] {
                match (is_character(code), on_error) {
                    (true, _) => to.encode(code as u32, &mut bytes),
                    (false, OnError::Replace(code)) => to.encode(code, &mut bytes),
                    (false, OnError::Ignore) => {}
                    (false, OnError::Fail) => bail!(
                        InvalidArgument,
                        "Code point is out of range for Unicode, or a noncharacter."
                    ),
                }
            }
            out.push(Bytes::from(bytes));
        }
        ctx.set(0, Tensor::from_strings([out.len()], out)?)
    }))
}

/// One split more than there are strings, and vectors of unknown length.
fn decode_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let splits = c.input(0).elements().map(|n| n + 1);
    let mut shapes = vec![PartialShape::new([splits])];
    shapes.resize(c.outputs, PartialShape::of_rank(1));
    Ok(shapes)
}

/// What to do with text that is not valid.
const ERROR_ATTRS: [&str; 3] = [
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
];

pub(crate) fn register(c: &mut Catalog) {
    c.op("UnicodeTranscode")
        .doc("Text in another encoding.")
        .input("input: string")
        .output("output: string")
        .attr("input_encoding: string")
        .attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
        .attrs(&ERROR_ATTRS)
        .shape(shape::same_as_input)
        .cpu(transcode);
    c.op("UnicodeDecode")
        .doc("The code points of text.")
        .input("input: string")
        .output("row_splits: Tsplits")
        .output("char_values: int32")
        .attr("input_encoding: string")
        .attrs(&ERROR_ATTRS)
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(decode_shapes)
        .cpu(decode);
    c.op("UnicodeDecodeWithOffsets")
        .doc("The code points of text, and where each begins.")
        .input("input: string")
        .output("row_splits: Tsplits")
        .output("char_values: int32")
        .output("char_to_byte_starts: int64")
        .attr("input_encoding: string")
        .attrs(&ERROR_ATTRS)
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(decode_shapes)
        .cpu(decode);
    c.op("UnicodeEncode")
        .doc("Text of these code points.")
        .input("input_values: int32")
        .input("input_splits: Tsplits")
        .output("output: string")
        .attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
        .attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
        .attr("replacement_char: int = 65533")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| Ok(vec![PartialShape::new([c.input(1).dim(0).and_then(|n| n.checked_sub(1))])]))
        .cpu(encode);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    #[test]
    fn text_changes_its_encoding() {
        let transcode = |s: &'static [u8], from: &str, to: &str| {
            check("UnicodeTranscode")
                .attr("input_encoding", from)
                .attr("output_encoding", to)
                .input(Tensor::string(Bytes::from_static(s)))
        };
        let bytes = |s: &'static [u8]| Tensor::string(Bytes::from_static(s));
        transcode(b"a\xc3\xa4", "UTF-8", "UTF-16-BE").gives(bytes(b"\0a\0\xe4"));
        transcode(b"\0a\0\xe4", "UTF-16-BE", "UTF-8").gives(bytes(b"a\xc3\xa4"));
        transcode(b"a\xe4", "latin1", "UTF-8").gives(bytes(b"a\xc3\xa4"));
        transcode(b"a\xff", "UTF-8", "UTF-8").gives(bytes(b"a\xef\xbf\xbd"));
        transcode(b"a\xff", "UTF-8", "UTF-8").attr("errors", "ignore").gives(bytes(b"a"));
        transcode(b"a\xff", "UTF-8", "UTF-8")
            .attr("errors", "strict")
            .fails(Code::InvalidArgument, "Invalid formatting on input string");
        transcode(b"", "klingon", "UTF-8").fails(Code::InvalidArgument, "input encoding: klingon");
    }

    #[test]
    fn code_points_and_back() {
        let text = ["aä", "€"].map(Bytes::from).to_vec();
        let out = check("UnicodeDecodeWithOffsets")
            .attr("input_encoding", "UTF-8")
            .input(Tensor::from_strings([2], text.clone()).unwrap())
            .run()
            .unwrap();
        assert_eq!(out[0], Tensor::vector(&[0i64, 2, 3]));
        assert_eq!(out[1], Tensor::vector(&[97i32, 0xe4, 0x20ac]));
        assert_eq!(out[2], Tensor::vector(&[0i64, 1, 0]));
        check("UnicodeEncode")
            .attr("output_encoding", "UTF-8")
            .input(out[1].clone())
            .input(out[0].clone())
            .gives(Tensor::from_strings([2], text).unwrap());
        check("UnicodeEncode")
            .attr("output_encoding", "UTF-8")
            .attr("errors", "strict")
            .input(Tensor::vector(&[0xd800i32]))
            .input(Tensor::vector(&[0i64, 1]))
            .fails(Code::InvalidArgument, "Code point is out of range");
    }
}
