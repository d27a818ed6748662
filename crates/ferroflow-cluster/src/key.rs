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

/// The sending device of a key, as text.
pub(crate) fn source_of(key: &str) -> &str {
    parts(key).next().unwrap_or_default()
}

/// The receiving device of a key, as text.
pub(crate) fn destination_of(key: &str) -> &str {
    parts(key).nth(2).unwrap_or_default()
}

/// The incarnation of the sending device of a key.
pub(crate) fn incarnation_of(key: &str) -> Option<u64> {
    hex(parts(key).nth(1)?)
}

/// Hexadecimal digits as a number. The same as `u64::from_str_radix` without signs, but faster.
fn hex(digits: &str) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.bytes().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

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
        assert_eq!(key.source_name.kind.as_deref(), Some("CPU"));
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
