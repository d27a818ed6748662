//! EncodeBase64 and DecodeBase64, in the web-safe alphabet.

use super::map;
use crate::prelude::*;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use base64::{Engine, alphabet};
use bytes::Bytes;

/// For decoding. Surplus bits of the last digit are ignored, as in TensorFlow.
const DECODER: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

fn encode(s: &[u8], pad: bool) -> Bytes {
    let engine = if pad { URL_SAFE } else { URL_SAFE_NO_PAD };
    engine.encode(s).into()
}

/// Decodes web-safe base64, padded or not.
pub(crate) fn decode(s: &[u8]) -> Result<Bytes> {
    // Up to two signs fill the last group of four.
    let mut s = s;
    if s.len().is_multiple_of(4) {
        s = s.strip_suffix(b"=").unwrap_or(s);
        s = s.strip_suffix(b"=").unwrap_or(s);
    }
    ensure!(s.len() % 4 != 1, InvalidArgument, "Base64 string length cannot be 1 modulo 4.");
    match DECODER.decode(s) {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => bail!(InvalidArgument, "Invalid character found in base64."),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("EncodeBase64")
        .doc("Strings in web-safe base64.")
        .input("input: string")
        .output("output: string")
        .attr("pad: bool = false")
        .shape(shape::same_as_input)
        .cpu(|init| {
            let pad = init.bool("pad")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| map(ctx, |s| Ok(encode(s, pad)))))
        });
    c.op("DecodeBase64")
        .doc("What web-safe base64 strings stand for.")
        .input("input: string")
        .output("output: string")
        .shape(shape::same_as_input)
        .cpu_fn(|ctx| map(ctx, |s| decode(s)));
    c.no_gradient(&["DecodeBase64", "EncodeBase64"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn encoding_and_back() {
        for (raw, padded) in
            [(&b"hello"[..], "aGVsbG8="), (b"\xff\xfe\xfd", "__79"), (b"", ""), (b"a", "YQ==")]
        {
            assert_eq!(encode(raw, true), padded);
            assert_eq!(encode(raw, false), padded.trim_end_matches('='));
            assert_eq!(decode(padded.as_bytes()).unwrap(), raw);
            assert_eq!(decode(padded.trim_end_matches('=').as_bytes()).unwrap(), raw);
        }
        let bad = |s: &'static str, why: &str| {
            check("DecodeBase64").input(Tensor::string(s)).fails(Code::InvalidArgument, why)
        };
        bad("!!!", "Invalid character found in base64.");
        bad("a", "Base64 string length cannot be 1 modulo 4.");
        bad("+/79", "Invalid character found in base64.");
    }
}
