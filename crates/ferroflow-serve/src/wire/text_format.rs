//! Reads messages in protobuf's text format.

use ferroflow_core::{Error, Result, bail, ensure, err};
use std::str::FromStr;

/// The deepest nesting of messages.
const MOST_DEPTH: usize = 32;

/// A message that can be read from text.
pub(super) trait FromText: Default {
    /// Takes the value of the field `name`. Called once for each element of a list.
    fn take(&mut self, name: &str, value: &mut TextReader<'_>) -> Result<Field>;
}

/// The kind of a field that a message was offered.
pub(super) enum Field {
    /// The message has no such field; the value was not read.
    Unknown,
    /// The field may appear once.
    Once,
    /// The field may appear once, and only one field of this group may appear.
    OneOf(&'static str),
    /// The field may appear any number of times.
    Repeated,
}

/// Reads a whole text.
pub(super) fn parse<M: FromText>(text: &str) -> Result<M> {
    let mut reader = TextReader { text, at: 0, depth: 0 };
    let read = reader.fields(None);
    read.map_err(|e| {
        let before = &text[..reader.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        err!(InvalidArgument, "line {line}, column {column}: {}", e.message())
    })
}

/// A place in the text.
pub(super) struct TextReader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl TextReader<'_> {
    /// A message in braces.
    pub fn message<M: FromText>(&mut self) -> Result<M> {
        let end = if self.found('{') {
            '}'
        } else if self.found('<') {
            '>'
        } else {
            bail!(InvalidArgument, "expected a message in braces")
        };
        ensure!(self.depth < MOST_DEPTH, InvalidArgument, "messages are nested too deeply");
        self.depth += 1;
        let message = self.fields(Some(end))?;
        self.depth -= 1;
        Ok(message)
    }

    /// A string. Adjacent strings are joined.
    pub fn string(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?)
            .map_err(|_| err!(InvalidArgument, "the string is not valid UTF-8"))
    }

    /// A string of any bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut is_first = true;
        loop {
            self.skip_space();
            let Some(quote @ ('"' | '\'')) = self.peek() else {
                ensure!(!is_first, InvalidArgument, "expected a string in quotes");
                return Ok(bytes);
            };
            self.at += 1;
            self.quoted(quote, &mut bytes)?;
            is_first = false;
        }
    }

    /// An integer: decimal, octal or hexadecimal.
    pub fn integer<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let word = self.word()?;
        let (is_negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word.as_str()),
        };
        let number = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16).ok()
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(digits, 8).ok()
        } else {
            // `parse` would accept a sign, too.
            digits.starts_with(|c: char| c.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        let number = number.map(|n| if is_negative { -i128::from(n) } else { i128::from(n) });
        number
            .and_then(|n| T::try_from(n).ok())
            .ok_or_else(|| err!(InvalidArgument, "expected an integer in range, found {word:?}"))
    }

    /// A floating-point number.
    pub fn real(&mut self) -> Result<f64> {
        let word = self.word()?;
        let number = f64::from_str(&word).ok();
        let number = number.or_else(|| word.strip_suffix(['f', 'F'])?.parse().ok());
        number.ok_or_else(|| err!(InvalidArgument, "expected a number, found {word:?}"))
    }

    /// A truth value.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.word()?.as_str() {
            "true" | "True" | "t" | "1" => Ok(true),
            "false" | "False" | "f" | "0" => Ok(false),
            other => bail!(InvalidArgument, "expected true or false, found {other:?}"),
        }
    }

    /// A value without quotes: a number or a name.
    pub fn word(&mut self) -> Result<String> {
        self.skip_space();
        let is_negative = self.found('-');
        self.skip_space();
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        // A sign inside a number belongs to its exponent.
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        ensure!(length > 0, InvalidArgument, "expected a value{}", self.found_here());
        self.at += length;
        Ok(format!("{}{}", if is_negative { "-" } else { "" }, &rest[..length]))
    }

    /// The fields up to `end`, or up to the end of the text.
    fn fields<M: FromText>(&mut self, end: Option<char>) -> Result<M> {
        let mut message = M::default();
        let mut seen: Vec<String> = Vec::new();
        loop {
            self.skip_space();
            match (self.peek(), end) {
                (None, None) => return Ok(message),
                (None, Some(end)) => bail!(InvalidArgument, "expected {end:?}, found the end"),
                (Some(c), Some(end)) if c == end => {
                    self.at += 1;
                    return Ok(message);
                }
                _ => {}
            }
            let name = self.name()?;
            let has_colon = self.found(':');
            self.skip_space();
            let is_message = matches!(self.peek(), Some('{' | '<' | '['));
            ensure!(has_colon || is_message, InvalidArgument, "expected ':' after {name:?}");
            if self.found('[') {
                self.list(&mut message, &name)?;
            } else {
                let key = match message.take(&name, self)? {
                    Field::Unknown => return Err(unknown(&name)),
                    Field::Repeated => None,
                    Field::Once => Some(name.as_str()),
                    Field::OneOf(group) => Some(group),
                };
                if let Some(key) = key {
                    let is_new = !seen.iter().any(|seen| seen == key);
                    ensure!(is_new, InvalidArgument, "{name:?} is one value too many");
                    seen.push(key.to_owned());
                }
            }
            let _ = self.found(',') || self.found(';');
        }
    }

    /// The elements of a list, after its bracket.
    fn list<M: FromText>(&mut self, message: &mut M, name: &str) -> Result<()> {
        if self.found(']') {
            return Ok(());
        }
        loop {
            match message.take(name, self)? {
                Field::Repeated => {}
                Field::Unknown => return Err(unknown(name)),
                _ => bail!(InvalidArgument, "{name:?} is no list"),
            }
            if self.found(']') {
                return Ok(());
            }
            ensure!(self.found(','), InvalidArgument, "expected ',' or ']'{}", self.found_here());
        }
    }

    fn name(&mut self) -> Result<String> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        ensure!(length > 0, InvalidArgument, "expected the name of a field{}", self.found_here());
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    /// The rest of a string, after its first quote.
    fn quoted(&mut self, quote: char, bytes: &mut Vec<u8>) -> Result<()> {
        loop {
            let c = self.next().filter(|c| *c != '\n');
            let c = c.ok_or_else(|| err!(InvalidArgument, "the string has no end"))?;
            if c == quote {
                return Ok(());
            }
            if c == '\\' {
                self.escape(bytes)?;
            } else {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// One escape, after its backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let c = self.next().unwrap_or('\0');
        let byte = match c {
            'a' => 7,
            'b' => 8,
            't' => b'\t',
            'n' => b'\n',
            'v' => 11,
            'f' => 12,
            'r' => b'\r',
            '\\' | '\'' | '"' | '?' => c as u8,
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3)? as u8
            }
            'x' | 'X' => self.digits(16, 2)? as u8,
            'u' | 'U' => {
                let number = self.digits(16, if c == 'u' { 4 } else { 8 })?;
                let c = char::from_u32(number);
                let c = c.ok_or_else(|| err!(InvalidArgument, "{number:#x} is no character"))?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => bail!(InvalidArgument, "unknown escape \\{c}"),
        };
        bytes.push(byte);
        Ok(())
    }

    /// A number of one to `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> Result<u32> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_digit = |b: &&u8| (**b as char).is_digit(radix);
        let length = rest.iter().take(most).take_while(is_digit).count();
        let digits = &self.text[self.at..self.at + length];
        self.at += length;
        u32::from_str_radix(digits, radix)
            .map_err(|_| err!(InvalidArgument, "expected a digit in an escape"))
    }

    fn skip_space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Skips `wanted` if it is next.
    fn found(&mut self, wanted: char) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn found_here(&self) -> String {
        self.peek().map_or(", found the end".into(), |c| format!(", found {c:?}"))
    }
}

fn unknown(name: &str) -> Error {
    err!(InvalidArgument, "there is no field {name:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sample {
        text: Vec<u8>,
        numbers: Vec<i64>,
        real: f64,
        flag: bool,
        children: Vec<Sample>,
    }

    impl FromText for Sample {
        fn take(&mut self, name: &str, value: &mut TextReader<'_>) -> Result<Field> {
            match name {
                "text" => self.text = value.bytes()?,
                "number" => {
                    self.numbers.push(value.integer()?);
                    return Ok(Field::Repeated);
                }
                "real" => self.real = value.real()?,
                "flag" => {
                    self.flag = value.boolean()?;
                    return Ok(Field::OneOf("choice"));
                }
                "other_flag" => {
                    value.boolean()?;
                    return Ok(Field::OneOf("choice"));
                }
                "child" => {
                    self.children.push(value.message()?);
                    return Ok(Field::Repeated);
                }
                _ => return Ok(Field::Unknown),
            }
            Ok(Field::Once)
        }
    }

    fn read(text: &str) -> Sample {
        parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn refused(text: &str) -> String {
        parse::<Sample>(text).expect_err(text).message().to_owned()
    }

    #[test]
    fn fields_are_read_in_each_spelling() {
        let sample = read(
            "# a comment\ntext: \"a\\n\\x41\\101\\u00e9\" 'b\"' ; number: -0x10, number: [ 7, 010 ]\n\
             real: -1.5e+3 flag: t child { flag: false } child: < number: [] > child [{}, {}]",
        );
        assert_eq!(sample.text, "a\nAA\u{e9}b\"".as_bytes());
        assert_eq!(sample.numbers, [-16, 7, 8]);
        assert_eq!((sample.real, sample.flag), (-1500.0, true));
        assert_eq!(sample.children.len(), 4);
        assert!(sample.children.iter().all(|child| *child == Sample::default()));
        assert_eq!((read("real: inf").real, read("real: 2.5f").real), (f64::INFINITY, 2.5));
        assert_eq!(read(" # nothing"), Sample::default());
    }

    #[test]
    fn an_error_says_where_it_is() {
        let cases = [
            ("text: \"a\"\n  txet: 1", "line 2, column 9: there is no field \"txet\""),
            ("number: 9223372036854775808", "expected an integer in range"),
            ("number: +1", "expected an integer in range"),
            ("number: [1 2]", "expected ',' or ']', found '2'"),
            ("real: 1 real: 2", "\"real\" is one value too many"),
            ("flag: true other_flag: true", "\"other_flag\" is one value too many"),
            ("text: \"a", "the string has no end"),
            ("text: \"\\q\"", "unknown escape \\q"),
            ("text: \"\\ud800\"", "0xd800 is no character"),
            ("child { ", "expected '}', found the end"),
            ("child: 3", "expected a message in braces"),
            ("real [1]", "\"real\" is no list"),
            ("flag true", "expected ':' after \"flag\""),
            ("flag: maybe", "expected true or false, found \"maybe\""),
            ("}", "expected the name of a field, found '}'"),
        ];
        for (text, why) in cases {
            assert!(refused(text).contains(why), "{text:?}: {}", refused(text));
        }
        assert!(refused(&"child {".repeat(40)).contains("nested too deeply"));
    }
}
