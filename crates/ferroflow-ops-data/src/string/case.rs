//! StringLower, StringUpper, StringStrip, StringLength.

use super::{map, text};
use crate::prelude::*;
use bytes::Bytes;

/// A change of case: of ASCII letters, or of all letters where the encoding is UTF-8.
fn change_case(
    ascii: fn(&[u8]) -> Vec<u8>,
    unicode: fn(&str) -> String,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let encoding = init.string("encoding")?;
        ensure!(
            matches!(encoding.as_str(), "" | "utf-8"),
            InvalidArgument,
            "only utf-8 or '' (no encoding) is supported, received {encoding}"
        );
        let is_utf8 = encoding == "utf-8";
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            map(ctx, |s| {
                Ok(Bytes::from(if is_utf8 { unicode(&text(s)).into_bytes() } else { ascii(s) }))
            })
        }))
    }
}

/// What C calls white space.
pub(super) fn is_space(b: &u8) -> bool {
    b.is_ascii_whitespace() || *b == 0x0b
}

/// Without the white space around it.
pub(super) fn strip(s: &[u8]) -> &[u8] {
    let start = s.iter().position(|b| !is_space(b)).unwrap_or(s.len());
    let end = s.iter().rposition(|b| !is_space(b)).map_or(start, |i| i + 1);
    &s[start..end]
}

/// The starts of UTF-8 characters, also in malformed text.
pub(super) fn char_starts(s: &[u8]) -> impl Iterator<Item = usize> {
    s.iter().enumerate().filter(|(_, b)| (**b & 0xc0) != 0x80).map(|(i, _)| i)
}

fn length(init: &KernelInit<'_>) -> Result<KernelBox> {
    let in_chars = init.string("unit")? == "UTF8_CHAR";
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let strings = ctx.input(0)?;
        let mut out = ctx.alloc(DType::Int32, strings.shape().clone())?;
        for (to, s) in out.as_mut_slice::<i32>()?.iter_mut().zip(strings.strings()?) {
            *to = if in_chars { char_starts(s).count() } else { s.len() } as i32;
        }
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringLower")
        .doc("Upper-case letters made lower-case.")
        .input("input: string")
        .output("output: string")
        .attr("encoding: string = ''")
        .shape(shape::same_as_input)
        .cpu(change_case(|s| s.to_ascii_lowercase(), |s| s.to_lowercase()));
    c.op("StringUpper")
        .doc("Lower-case letters made upper-case.")
        .input("input: string")
        .output("output: string")
        .attr("encoding: string = ''")
        .shape(shape::same_as_input)
        .cpu(change_case(|s| s.to_ascii_uppercase(), |s| s.to_uppercase()));
    c.op("StringStrip")
        .doc("Strings without the white space around them.")
        .input("input: string")
        .output("output: string")
        .shape(shape::same_as_input)
        .cpu_fn(|ctx| map(ctx, |s| Ok(Bytes::copy_from_slice(strip(s)))));
    c.op("StringLength")
        .doc("How long each string is, in bytes or characters.")
        .input("input: string")
        .output("output: int32")
        .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
        .shape(shape::same_as_input)
        .cpu(length);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    fn one(op: &str, s: &'static [u8]) -> crate::testing::Check<'static> {
        check(op).input(Tensor::string(Bytes::from_static(s)))
    }

    #[test]
    fn case_changes_by_encoding() {
        one("StringLower", "AbÄ".as_bytes()).gives(Tensor::string("abÄ"));
        one("StringLower", b"A\xff").attr("encoding", "utf-8").gives(Tensor::string("a\u{fffd}"));
        one("StringUpper", "abäß".as_bytes())
            .attr("encoding", "utf-8")
            .gives(Tensor::string("ABÄSS"));
        one("StringUpper", b"").attr("encoding", "latin").fails(
            Code::InvalidArgument,
            "only utf-8 or '' (no encoding) is supported, received latin",
        );
    }

    #[test]
    fn space_is_stripped() {
        one("StringStrip", b" a b \n\t").gives(Tensor::string("a b"));
        one("StringStrip", b"\x0b\x0c x\r").gives(Tensor::string("x"));
        one("StringStrip", b" \t").gives(Tensor::string(""));
    }

    #[test]
    fn lengths_count_bytes_or_characters() {
        one("StringLength", "aä".as_bytes()).gives(Tensor::scalar(3i32));
        one("StringLength", "aä".as_bytes()).attr("unit", "UTF8_CHAR").gives(Tensor::scalar(2i32));
        one("StringLength", b"\xff\x80").attr("unit", "UTF8_CHAR").gives(Tensor::scalar(1i32));
    }
}
