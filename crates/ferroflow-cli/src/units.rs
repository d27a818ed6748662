//! Quantities as people write them: `553.36MB`, `10Gb/s`, `0.55s`.

use ferroflow::{Code, Error, Result};

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// `K`, `M`, `G`, `T` are powers of ten, `Ki` and so on of two.
fn scale(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1048576.0,
        "Gi" => 1073741824.0,
        _ => return None,
    })
}

fn wrong(what: &str, text: &str, example: &str) -> Error {
    Error::new(Code::InvalidArgument, format!("{text:?} is no {what}; write it as {example}"))
}

/// Bytes: `553.36MB`, `16MiB`, `4`.
pub fn bytes(text: &str) -> Result<f64> {
    let parsed =
        split(text).and_then(|(n, unit)| Some(n * scale(unit.strip_suffix('B').unwrap_or(unit))?));
    parsed.ok_or_else(|| wrong("number of bytes", text, "553.36MB"))
}

/// Bytes a second: `125MB/s`, or bits: `1Gb/s`, `10Gbps`.
pub fn bytes_per_second(text: &str) -> Result<f64> {
    let parsed = split(text).and_then(|(n, unit)| {
        let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(unit);
        let unit = unit.strip_suffix("it").unwrap_or(unit);
        match unit.strip_suffix('b') {
            Some(bits) => Some(n * scale(bits)? / 8.0),
            None => Some(n * scale(unit.strip_suffix('B').unwrap_or(unit))?),
        }
    });
    parsed.filter(|x| *x > 0.0).ok_or_else(|| wrong("speed of a link", text, "125MB/s or 1Gb/s"))
}

/// Seconds: `0.55s`, `550ms`, `80us`, `0.55`.
pub fn seconds(text: &str) -> Result<f64> {
    let parsed = split(text).and_then(|(n, unit)| match unit {
        "" | "s" => Some(n),
        "ms" => Some(n / 1e3),
        "us" | "µs" => Some(n / 1e6),
        "min" => Some(n * 60.0),
        _ => None,
    });
    parsed.filter(|x| *x > 0.0).ok_or_else(|| wrong("duration", text, "0.55s or 550ms"))
}

/// Bytes for people: `553.4 MB`.
pub fn show_bytes(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} KB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_written() {
        assert_eq!(bytes("553.36MB").unwrap(), 553.36e6);
        assert_eq!(bytes("16MiB").unwrap(), 16777216.0);
        assert_eq!(bytes(" 4 ").unwrap(), 4.0);
        assert_eq!(bytes_per_second("125MB/s").unwrap(), 125e6);
        assert_eq!(bytes_per_second("1Gb/s").unwrap(), 125e6);
        assert_eq!(bytes_per_second("10Gbps").unwrap(), 1.25e9);
        assert_eq!(bytes_per_second("10Gbit/s").unwrap(), 1.25e9);
        assert_eq!(seconds("550ms").unwrap(), 0.55);
        for wrong in ["", "x", "1QB", "-1MB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(bytes_per_second("0MB/s").is_err() && seconds("0s").is_err());
    }
}
