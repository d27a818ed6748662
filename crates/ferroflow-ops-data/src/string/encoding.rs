//! Character encodings: bytes to code points and back.

/// An encoding that text comes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Encoding {
    Utf8,
    Utf16 { is_big: bool },
    Utf32 { is_big: bool },
    Ascii,
    Latin1,
}

/// A code point of decoded text.
pub(super) struct Decoded {
    /// The code point; `None` where the bytes are malformed.
    pub code: Option<u32>,
    /// Where its bytes begin.
    pub start: usize,
}

impl Encoding {
    /// The encoding with this name, spelled in any of the usual ways.
    pub fn from_name(name: &str) -> Option<Encoding> {
        let plain: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_lowercase();
        Some(match plain.as_str() {
            "utf8" => Encoding::Utf8,
            "utf16" | "utf16be" => Encoding::Utf16 { is_big: true },
            "utf16le" => Encoding::Utf16 { is_big: false },
            "utf32" | "utf32be" => Encoding::Utf32 { is_big: true },
            "utf32le" => Encoding::Utf32 { is_big: false },
            "usascii" | "ascii" => Encoding::Ascii,
            "iso88591" | "latin1" | "l1" => Encoding::Latin1,
            _ => return None,
        })
    }

    pub fn decode(self, bytes: &[u8]) -> Vec<Decoded> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut push = |code, start| out.push(Decoded { code, start });
        match self {
            Encoding::Utf8 => {
                let mut at = 0;
                for chunk in bytes.utf8_chunks() {
                    for (i, c) in chunk.valid().char_indices() {
                        push(Some(c as u32), at + i);
                    }
                    at += chunk.valid().len();
                    if !chunk.invalid().is_empty() {
                        push(None, at);
                        at += chunk.invalid().len();
                    }
                }
            }
            Encoding::Utf16 { is_big } => {
                let read = if is_big { u16::from_be_bytes } else { u16::from_le_bytes };
                let units = bytes.chunks_exact(2).map(|u| read([u[0], u[1]]));
                let mut at = 0;
                for unit in char::decode_utf16(units) {
                    push(unit.as_ref().ok().map(|&c| c as u32), at);
                    at += unit.map_or(2, |c| c.len_utf16() * 2);
                }
                if bytes.len() % 2 == 1 {
                    push(None, at);
                }
            }
            Encoding::Utf32 { is_big } => {
                let read = if is_big { u32::from_be_bytes } else { u32::from_le_bytes };
                for (i, u) in bytes.chunks(4).enumerate() {
                    let code = <[u8; 4]>::try_from(u).ok().map(read);
                    push(code.filter(|&c| char::from_u32(c).is_some()), i * 4);
                }
            }
            Encoding::Ascii => {
                for (i, &b) in bytes.iter().enumerate() {
                    push(b.is_ascii().then_some(u32::from(b)), i);
                }
            }
            Encoding::Latin1 => {
                for (i, &b) in bytes.iter().enumerate() {
                    push(Some(u32::from(b)), i);
                }
            }
        }
        out
    }

    /// Appends a code point, which must be a scalar value.
    pub fn encode(self, code: u32, to: &mut Vec<u8>) {
        let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        match self {
            Encoding::Utf16 { is_big } => {
                for &mut unit in c.encode_utf16(&mut [0; 2]) {
                    to.extend(if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() });
                }
            }
            Encoding::Utf32 { is_big } => {
                let code = c as u32;
                to.extend(if is_big { code.to_be_bytes() } else { code.to_le_bytes() });
            }
            _ => to.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
