//! Parses the rendezvous keys of peers.

use ferroflow_core::{DeviceName, Result, bail};

/// A parsed key. Only the sender's half is used.
pub(crate) struct ParsedKey<'a> {
    /// The sending device, as text.
    pub source: &'a str,
    pub source_name: DeviceName,
    pub source_incarnation: u64,
}

impl ParsedKey<'_> {
    pub fn parse(key: &str) -> Result<ParsedKey<'_>> {
        match try_parse(key) {
            Some(parsed) => Ok(parsed),
            None => bail!(InvalidArgument, "Invalid  rendezvous key: {key}"),
        }
    }
}

/// The sending device of a key, as text: what comes before the first `;`.
pub(crate) fn source_of(key: &str) -> &str {
    parts(key).next().unwrap_or_default()
}

/// The receiving device of a key, as text.
pub(crate) fn destination_of(key: &str) -> &str {
    parts(key).nth(2).unwrap_or_default()
}

/// The part of a key that names the sending device and its incarnation.
pub(crate) fn origin_of(key: &str) -> Option<&str> {
    let device = source_of(key).len() + 1;
    let end = memchr::memchr(b';', key.as_bytes().get(device..)?)?;
    Some(&key[..device + end + 1])
}

/// The incarnation of the sending device of a key.
pub(crate) fn incarnation_of(key: &str) -> Option<u64> {
    let rest = key.get(source_of(key).len() + 1..)?;
    // This program writes 16 digits. With more or fewer, a `;` is among them or none follows.
    let usual = rest.get(..16).filter(|_| rest.as_bytes().get(16) == Some(&b';')).and_then(hex);
    usual.or_else(|| hex(source_of(rest)))
}

/// Hexadecimal digits as a number. The same as `u64::from_str_radix` without signs, but faster.
fn hex(digits: &str) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut number, mut is_bad) = (0, false);
    for digit in digits.bytes() {
        let value = HEX[usize::from(digit)];
        is_bad |= value == NO_DIGIT;
        number = number << 4 | u64::from(value & 15);
    }
    (!is_bad).then_some(number)
}

const NO_DIGIT: u8 = u8::MAX;

/// The value of each hexadecimal digit.
static HEX: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The same as `str::split`, but faster: each step parses several keys.
fn parts(key: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(key);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let Some(end) = memchr::memchr(b';', all.as_bytes()) else { return Some(all) };
        rest = Some(&all[end + 1..]);
        Some(&all[..end])
    })
}

fn try_parse(key: &str) -> Option<ParsedKey<'_>> {
    let mut parts = parts(key);
    let (source, incarnation, destination) = (parts.next()?, parts.next()?, parts.next()?);
    let (_tensor, frame_iter) = (parts.next()?, parts.next()?);
    if parts.next().is_some() || frame_iter.is_empty() {
        return None;
    }
    let source_name = DeviceName::parse(source).ok().filter(DeviceName::is_full)?;
    DeviceName::parse(destination).ok().filter(DeviceName::is_full)?;
    let source_incarnation = hex(incarnation)?;
    Some(ParsedKey { source, source_name, source_incarnation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_five_parts() {
        let (ps, worker) =
            ("/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0");
        let text = format!("{ps};0000000000003039;{worker};edge_4_w/read;0:0");
        let key = ParsedKey::parse(&text).unwrap();
        assert_eq!((key.source, key.source_incarnation), (ps, 12345));
        assert_eq!(incarnation_of(&text), Some(12345));
        assert_eq!(incarnation_of(&format!("{ps};3039;{worker};x;0:0")), Some(12345));
        for bad in ["", ps, "a;", "a;;b", "a;0000000000003039", "a;11112222333344445;b"] {
            assert_eq!(incarnation_of(bad), hex(bad.split(';').nth(1).unwrap_or("")), "{bad}");
        }
        assert_eq!(key.source_name.kind.as_deref(), Some("CPU"));
        assert_eq!(origin_of(&text).unwrap(), format!("{ps};0000000000003039;"));
        assert_eq!((origin_of(ps), origin_of("a;b")), (None, None));
        assert_eq!(hex("00fFAb09"), Some(0x00ff_ab09));
        for bad in [
            "".to_string(),
            "a;b;c".to_string(),
            format!("{ps};12;{worker};edge;"),
            format!("{ps};12;{worker};edge;0:0;"),
            format!("{ps};+12;{worker};edge;0:0"),
            format!("{ps};xyz;{worker};edge;0:0"),
            format!("{ps};11112222333344445;{worker};edge;0:0"),
            format!("/job:ps;12;{worker};edge;0:0"),
            format!("{ps};12;nowhere;edge;0:0"),
        ] {
            let e = ParsedKey::parse(&bad).err().unwrap();
            assert_eq!(e.message(), format!("Invalid  rendezvous key: {bad}"));
        }
    }
}
