//! EncodeBase64 and DecodeBase64, in the web-safe alphabet.

use super::map;
use crate::prelude::*;
use bytes::Bytes;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// In the usual alphabet and padded, for messages.
pub(crate) fn standard_base64(s: &[u8]) -> String {
    let web = encode(s, true);
    String::from_utf8_lossy(&web).replace('-', "+").replace('_', "/")
}

fn encode(s: &[u8], pad: bool) -> Bytes {
    let mut out = Vec::with_capacity(s.len().div_ceil(3) * 4);
    for chunk in s.chunks(3) {
        let mut bytes = [0; 3];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        let digit = |i: usize| ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
        out.extend((0..=chunk.len()).map(digit));
        if pad {
            out.extend((chunk.len()..3).map(|_| b'='));
        }
    }
    Bytes::from(out)
}

/// What web-safe base64 stands for, padded or not.
pub(crate) fn decode(s: &[u8]) -> Result<Bytes> {
    // Up to two signs fill the last group of four.
    let mut s = s;
    if s.len().is_multiple_of(4) {
        s = s.strip_suffix(b"=").unwrap_or(s);
        s = s.strip_suffix(b"=").unwrap_or(s);
    }
    ensure!(s.len() % 4 != 1, InvalidArgument, "Base64 string length cannot be 1 modulo 4.");
    let mut out = Vec::with_capacity(s.len() / 4 * 3 + 2);
    for chunk in s.chunks(4) {
        let mut bits = 0u32;
        for i in 0..4 {
            let digit = match chunk.get(i) {
                None => 0,
                Some(b) => match ALPHABET.iter().position(|a| a == b) {
                    Some(digit) => digit as u32,
                    None => bail!(InvalidArgument, "Invalid character found in base64."),
                },
            };
            bits = bits << 6 | digit;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Ok(Bytes::from(out))
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
        .cpu_fn(|ctx| map(ctx, decode));
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
