//! The message of a panic that was caught.

use std::any::Any;

/// The text that a panic was raised with.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, panic_any};

    #[test]
    fn literals_and_formatted_texts_are_read() {
        let text = |f: fn()| {
            let payload = catch_unwind(f).expect_err("it panics");
            panic_text(&*payload).to_string()
        };
        assert_eq!(text(|| panic!("plain")), "plain");
        assert_eq!(text(|| panic!("number {}", std::hint::black_box(7))), "number 7");
        assert_eq!(text(|| panic_any(7)), "no message");
    }
}
