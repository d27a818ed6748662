//! Parses and formats quantities with units: `553.36MB`, `10Gb/s`, `0.55s`.

use ferroflow::{Code, Error, Result};

/// A number, such as `553.36` or `5.5e8`, and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let longest = text.find(|c| !is_number(c)).unwrap_or(text.len());
    // The `E` of `5EB` belongs to the unit, not to the number.
    let ends = (1..=longest).rev();
    let (end, number) = ends.into_iter().find_map(|end| Some((end, text[..end].parse().ok()?)))?;
    Some((number, text[end..].trim())).filter(|(n, _): &(f64, _)| *n >= 0.0)
}

/// `K`, `M`, `G`, `T` are powers of ten; `Ki` and so on are powers of two.
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

/// Positive and finite.
fn is_amount(x: &f64) -> bool {
    *x > 0.0 && x.is_finite()
}

fn wrong(what: &str, text: &str, example: &str) -> Error {
    Error::new(Code::InvalidArgument, format!("{text:?} is no {what}; write it as {example}"))
}

/// Bytes: `553.36MB`, `16MiB`, `4`.
pub fn bytes(text: &str) -> Result<f64> {
    let parsed =
        split(text).and_then(|(n, unit)| Some(n * scale(unit.strip_suffix('B').unwrap_or(unit))?));
    parsed.filter(|x| x.is_finite()).ok_or_else(|| wrong("number of bytes", text, "553.36MB"))
}

/// A whole number of bytes, for a flag.
pub fn parse_bytes(text: &str) -> Result<usize> {
    bytes(text).map(|n| n as usize)
}

/// A count: `138.34M`, `138340000`, `7B` (billions).
pub fn count(text: &str) -> Result<f64> {
    let parsed = split(text).and_then(|(n, unit)| {
        Some(n * if unit == "B" { 1e9 } else { scale(unit).filter(|_| !unit.ends_with('i'))? })
    });
    parsed.filter(is_amount).ok_or_else(|| wrong("number of parameters", text, "138.34M"))
}

/// Bytes a second: `125MB/s`, `125000000`, or bits: `1Gb/s`, `10Gbps`.
pub fn bytes_per_second(text: &str) -> Result<f64> {
    let parsed = split(text).and_then(|(n, unit)| {
        let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(unit);
        let unit = unit.strip_suffix("it").unwrap_or(unit);
        // Bits or bytes: `100G` alone could mean either.
        match (unit.strip_suffix('b'), unit.strip_suffix('B')) {
            (Some(bits), _) => Some(n * scale(bits)? / 8.0),
            (_, Some(bytes)) => Some(n * scale(bytes)?),
            _ => Some(n).filter(|_| unit.is_empty()),
        }
    });
    parsed.filter(is_amount).ok_or_else(|| wrong("speed of a link", text, "125MB/s or 1Gb/s"))
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
    parsed.filter(is_amount).ok_or_else(|| wrong("duration", text, "0.55s or 550ms"))
}

/// Seconds for people: `7.190 s`, `45.1 us`.
pub fn show_seconds(s: f64) -> String {
    match s {
        s if s >= 0.1 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
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
        assert_eq!(bytes_per_second("1.25e8").unwrap(), 125e6);
        assert_eq!(seconds("550ms").unwrap(), 0.55);
        let counts = ["138.34M", "7B", "1e3"].map(|text| count(text).unwrap());
        assert_eq!(counts, [138.34e6, 7e9, 1e3]);
        assert!(count("16Mi").is_err() && count("3MB").is_err() && count("0").is_err());
        assert_eq!(bytes("5.5e+8").unwrap(), 550e6);
        for wrong in ["", "x", "1QB", "-1MB", "5EB", "e5", "inf", "nan", "1e999999B"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(bytes_per_second("100G").is_err(), "bits or bytes?");
        assert_eq!(show_seconds(7.19), "7.190 s");
        assert_eq!(
            (show_seconds(0.00535), show_seconds(45.1e-6)),
            ("5.350 ms".into(), "45.1 us".into())
        );
        assert!(bytes_per_second("0MB/s").is_err() && seconds("0s").is_err());
    }
}
