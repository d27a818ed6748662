//! The `grpc-timeout` header: up to eight digits and a unit.

use std::time::Duration;

const MOST_DIGITS: u128 = 99_999_999;

/// `None` when the text is not a timeout.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Uses the finest unit that fits and rounds up, so that the peer does not time out before us.
pub(super) fn format(timeout: Duration) -> String {
    let nanos = timeout.as_nanos();
    for (unit, size) in
        [("n", 1), ("u", 1_000), ("m", 1_000_000), ("S", 1_000_000_000), ("M", 60_000_000_000)]
    {
        let count = nanos.div_ceil(size);
        if count <= MOST_DIGITS {
            return format!("{count}{unit}");
        }
    }
    format!("{}H", nanos.div_ceil(3_600_000_000_000).min(MOST_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, expected) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_timeouts() {
        for text in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1é", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_formatted_timeout_is_never_shorter() {
        for timeout in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_millis(1500),
            Duration::from_secs(86_400 * 365),
            Duration::from_nanos(123_456_789_123),
        ] {
            let read = parse(&format(timeout)).expect("own format");
            assert!(
                read >= timeout && read <= timeout + timeout / 1000,
                "{timeout:?} became {read:?}"
            );
        }
        assert_eq!(format(Duration::MAX), "99999999H");
    }
}
