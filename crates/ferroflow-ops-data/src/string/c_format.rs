//! Numbers written as C's `printf` writes them.

use bytes::Bytes;

/// How the digits of a float are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    /// `%f`
    Fixed,
    /// `%e`
    Scientific,
    /// `%g`
    Shortest,
}

/// A conversion: the text between `%` and the letter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CFormat {
    pub style: Style,
    /// Digits; 6 when absent.
    pub precision: Option<usize>,
    /// At least so many characters.
    pub width: usize,
    /// One of C's flags: `0`, `-`, `+`, `#` or a space.
    pub flag: Option<u8>,
}

impl CFormat {
    /// `%g` with so many digits.
    pub fn general(precision: usize) -> CFormat {
        CFormat { style: Style::Shortest, precision: Some(precision), width: 0, flag: None }
    }

    pub fn float(&self, x: f64) -> String {
        let digits = match x.is_finite() {
            true => self.digits(x.abs()),
            false if x.is_nan() => "nan".into(),
            false => "inf".into(),
        };
        self.padded(x.is_sign_negative(), digits, x.is_finite())
    }

    pub fn signed(&self, x: i64) -> String {
        self.padded(x < 0, x.unsigned_abs().to_string(), true)
    }

    pub fn unsigned(&self, x: u64) -> String {
        // Only signed numbers may have a sign.
        let flag = self.flag.filter(|f| !matches!(f, b'+' | b' '));
        CFormat { flag, ..*self }.padded(false, x.to_string(), true)
    }

    pub fn text(&self, s: &[u8]) -> Bytes {
        let fill = vec![b' '; self.width.saturating_sub(s.len())];
        let parts = if self.flag == Some(b'-') { [s, &fill[..]] } else { [&fill[..], s] };
        Bytes::from(parts.concat())
    }

    fn padded(&self, is_negative: bool, digits: String, may_fill_with_zeros: bool) -> String {
        let sign = match (is_negative, self.flag) {
            (true, _) => "-",
            (false, Some(b'+')) => "+",
            (false, Some(b' ')) => " ",
            _ => "",
        };
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        match self.flag {
            Some(b'-') => format!("{sign}{digits}{}", " ".repeat(missing)),
            Some(b'0') if may_fill_with_zeros => format!("{sign}{}{digits}", "0".repeat(missing)),
            _ => format!("{}{sign}{digits}", " ".repeat(missing)),
        }
    }

    fn digits(&self, x: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let keeps_point = self.flag == Some(b'#');
        match self.style {
            Style::Fixed => with_point(format!("{x:.precision$}"), keeps_point),
            Style::Scientific => scientific(x, precision, keeps_point),
            Style::Shortest => {
                // The requested number of significant digits, in either notation. The exponent
                // after rounding decides which.
                let precision = std::cmp::max(precision, 1);
                let rounded = format!("{x:.*e}", precision - 1);
                let exponent: i32 =
                    rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
                if exponent < -4 || exponent >= precision as i32 {
                    let s = scientific(x, precision - 1, keeps_point);
                    let (mantissa, exponent) = s.split_once('e').unwrap_or((&s, "+00"));
                    return format!("{}e{exponent}", trimmed(mantissa, keeps_point));
                }
                let after = (precision as i32 - 1 - exponent) as usize;
                trimmed(&with_point(format!("{x:.after$}"), keeps_point), keeps_point).to_string()
            }
        }
    }
}

fn with_point(s: String, keeps_point: bool) -> String {
    if keeps_point && !s.contains('.') { s + "." } else { s }
}

fn scientific(x: f64, precision: usize, keeps_point: bool) -> String {
    let s = format!("{x:.precision$e}");
    let (mantissa, exponent) = s.split_once('e').unwrap_or((&s, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let mantissa = with_point(mantissa.to_string(), keeps_point);
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Removes zeros after the point, and the point if nothing follows it.
fn trimmed(s: &str, keeps_zeros: bool) -> &str {
    if keeps_zeros || !s.contains('.') {
        return s;
    }
    s.trim_end_matches('0').trim_end_matches('.')
}

/// A float in as few digits as TensorFlow prints: 6, or 9 where 6 would not read back the same.
pub(crate) fn short_f32(x: f32) -> String {
    let short = CFormat::general(6).float(f64::from(x));
    match short.parse::<f32>() {
        Ok(back) if back == x || x.is_nan() => short,
        _ => CFormat::general(9).float(f64::from(x)),
    }
}

/// A double in as few digits as TensorFlow prints: 15, or 17 where 15 would not read back the same.
pub(crate) fn short_f64(x: f64) -> String {
    let short = CFormat::general(15).float(x);
    match short.parse::<f64>() {
        Ok(back) if back == x || x.is_nan() => short,
        _ => CFormat::general(17).float(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_format() {
        for (x, want) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (100000.0, "100000"),
            (1000000.0, "1e+06"),
            (999999.5, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-10, "-2.5e-10"),
            (f64::INFINITY, "inf"),
            (-f64::INFINITY, "-inf"),
        ] {
            assert_eq!(CFormat::general(6).float(x), want);
        }
        assert_eq!(short_f32(1.0 / 3.0), "0.333333343");
        assert_eq!(short_f64(0.1), "0.1");
        assert_eq!(short_f64(1.0 / 3.0), "0.33333333333333331");
    }

    #[test]
    fn widths_and_flags() {
        let f = |flag, width| CFormat { style: Style::Fixed, precision: Some(2), width, flag };
        assert_eq!(f(None, 8).float(-1.005), "   -1.00");
        assert_eq!(f(Some(b'0'), 8).float(-1.25), "-0001.25");
        assert_eq!(f(Some(b'-'), 6).signed(42), "42    ");
        assert_eq!(f(Some(b'+'), 0).signed(42), "+42");
        let e = CFormat { style: Style::Scientific, precision: Some(3), width: 0, flag: None };
        assert_eq!(e.float(12345.0), "1.234e+04");
    }
}
