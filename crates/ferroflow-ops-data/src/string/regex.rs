//! RegexReplace, RegexFullMatch and their Static kin, in RE2's dialect.
//!
//! Syntax that RE2 and the `regex` crate read differently is translated: `\d`, `\w`, `\s`, `\b`
//! mean ASCII, `[` within a class and a lone `{` are themselves, `\Q…\E` quotes, `\C` is a byte, a
//! repetition of a repetition or of more than 1000 is refused. Texts of errors within a pattern
//! differ in places.

use super::{GrowingText, map, text};
use crate::prelude::*;
use bytes::Bytes;
use parking_lot::Mutex;
use regex::bytes::Regex;

/// The most characters between braces, in `{n,m}` and `\p{Name}`.
const LONGEST_NAME: usize = 64;
/// The most characters of `:name:]`.
const LONGEST_CLASS: usize = 16;

/// A pattern in the `regex` crate's dialect.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let chars: Vec<char> = pattern.chars().collect();
    let (mut i, mut in_class) = (0, false);
    while i < chars.len() {
        let (c, next) = (chars[i], chars.get(i + 1).copied());
        i += 1;
        match (c, in_class) {
            ('\\', _) => {
                let Some(next) = next else {
                    out.push('\\');
                    continue;
                };
                i += 1;
                match (next, in_class) {
                    ('Q', _) => {
                        let rest = &chars[i..];
                        let end = rest.windows(2).position(|pair| pair == ['\\', 'E']);
                        let quoted: String = rest[..end.unwrap_or(rest.len())].iter().collect();
                        out.push_str(&regex::escape(&quoted));
                        i += end.unwrap_or(rest.len()) + 2;
                    }
                    ('d', true) => out.push_str("0-9"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('s', true) => out.push_str("\\t\\n\\f\\r "),
                    ('d', false) => out.push_str("[0-9]"),
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('s', false) => out.push_str("[\\t\\n\\f\\r ]"),
                    ('D', _) => out.push_str("[^0-9]"),
                    ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                    ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
                    ('b', false) => out.push_str("(?-u:\\b)"),
                    ('B', false) => out.push_str("(?-u:\\B)"),
                    ('C', false) => out.push_str("(?s-u:.)"),
                    ('p' | 'P' | 'x', _) if chars.get(i) == Some(&'{') => {
                        out.extend(['\\', next]);
                        let name = chars[i..].iter().take(LONGEST_NAME);
                        let len = name.clone().position(|&c| c == '}').map_or(0, |n| n + 1);
                        out.extend(&chars[i..i + len]);
                        i += len;
                    }
                    (other, _) => out.extend(['\\', other]),
                }
            }
            ('[', false) => {
                in_class = true;
                out.push('[');
                if chars.get(i) == Some(&'^') {
                    out.push('^');
                    i += 1;
                }
                // A bracket that comes first is one of the class.
                if chars.get(i) == Some(&']') {
                    out.push_str("\\]");
                    i += 1;
                }
            }
            ('[', true) => {
                // A class by name, such as `[:alpha:]`.
                let rest = &chars[i..chars.len().min(i + LONGEST_CLASS)];
                match rest.windows(2).position(|pair| pair == [':', ']']) {
                    Some(end) if rest.starts_with(&[':']) => {
                        out.push('[');
                        out.extend(&rest[..end + 2]);
                        i += end + 2;
                    }
                    _ => out.push_str("\\["),
                }
            }
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            ('&' | '~', true) => out.extend(['\\', c]),
            ('-', true) if next == Some('-') => out.push_str("\\-"),
            ('{', false) if !begins_repetition(&chars[i..]) => out.push_str("\\{"),
            ('{', false) => {
                let len = chars[i..].iter().position(|&c| c == '}').map_or(0, |n| n + 1);
                out.push('{');
                out.extend(&chars[i..i + len]);
                i += len;
            }
            ('}', false) => out.push_str("\\}"),
            _ => out.push(c),
        }
    }
    out
}

/// Whether the text after `{` is `n}`, `n,}` or `n,m}`.
fn begins_repetition(rest: &[char]) -> bool {
    let Some(len) = rest.iter().take(LONGEST_NAME).position(|&c| c == '}') else { return false };
    let body: String = rest[..len].iter().collect();
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (len > 0)
        && match body.split_once(',') {
            None => is_number(&body),
            Some((n, m)) => is_number(n) && (m.is_empty() || is_number(m)),
        }
}

/// RE2 refuses a repetition of a repetition, and one of more than 1000.
fn check_repetitions(pattern: &str) -> std::result::Result<(), String> {
    let chars: Vec<char> = pattern.chars().collect();
    // The repetition that ends here, with a `?` behind it perhaps.
    let repetition = |i: usize| -> Option<usize> {
        let len = match chars.get(i)? {
            '*' | '+' | '?' => 1,
            '{' if begins_repetition(&chars[i + 1..]) => {
                chars[i..].iter().position(|&c| c == '}')? + 1
            }
            _ => return None,
        };
        Some(len + usize::from(chars.get(i + len) == Some(&'?')))
    };
    let (mut i, mut in_class) = (0, false);
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '[' if !in_class => {
                in_class = true;
                i += 1;
                i += usize::from(chars.get(i) == Some(&'^'));
                i += usize::from(chars.get(i) == Some(&']'));
            }
            ']' if in_class => {
                in_class = false;
                i += 1;
            }
            _ if in_class => i += 1,
            '(' if chars.get(i + 1) == Some(&'?') => i += 2,
            _ => match repetition(i) {
                None => i += 1,
                Some(len) => {
                    let text: String = chars[i..i + len].iter().collect();
                    let numbers = text.split(|c: char| !c.is_ascii_digit());
                    let mut numbers = numbers.filter_map(|n| n.parse::<u64>().ok());
                    if text.starts_with('{') && numbers.any(|n| n > 1000) {
                        return Err(format!("invalid repetition size: {text}"));
                    }
                    if let Some(more) = repetition(i + len) {
                        let both: String = chars[i..i + len + more].iter().collect();
                        return Err(format!("bad repetition operator: {both}"));
                    }
                    i += len;
                }
            },
        }
    }
    Ok(())
}

fn compile(pattern: &[u8], is_full: bool) -> Result<Regex> {
    let refused = |why: &str| {
        let pattern = text(pattern);
        err!(InvalidArgument, "Invalid pattern: {pattern}, error: {why}")
    };
    let Ok(utf8) = std::str::from_utf8(pattern) else {
        return Err(refused("invalid UTF-8"));
    };
    check_repetitions(utf8).map_err(|why| refused(&why))?;
    let translated = translate(utf8);
    let whole = if is_full { format!("\\A(?:{translated})\\z") } else { translated.clone() };
    // The pattern must stand by itself, not only within the group around it.
    let made = Regex::new(&translated).and_then(|_| Regex::new(&whole));
    made.map_err(|e| {
        let message = e.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        refused(&match last {
            "unclosed group" => format!("missing ): {utf8}"),
            "unclosed character class" => format!("missing ]: {utf8}"),
            "unopened group" => format!("unexpected ): {utf8}"),
            "repetition operator missing expression" => {
                format!("no argument for repetition operator: {utf8}")
            }
            other => other.to_string(),
        })
    })
}

/// A piece of a replacement.
enum Piece<'a> {
    Text(&'a [u8]),
    Group(usize),
}

/// The pieces of a replacement, in which `\1` stands for group 1 and `\\` for a
/// backslash. An odd backslash is dropped.
fn pieces(mut rewrite: &[u8]) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    while let Some(at) = rewrite.iter().position(|&b| b == b'\\') {
        found.push(Piece::Text(&rewrite[..at]));
        match rewrite.get(at + 1) {
            Some(d) if d.is_ascii_digit() => found.push(Piece::Group(usize::from(d - b'0'))),
            Some(b'\\') => found.push(Piece::Text(b"\\")),
            _ => {}
        }
        rewrite = rewrite.get(at + 2..).unwrap_or_default();
    }
    found.push(Piece::Text(rewrite));
    found
}

fn replace(pattern: &Regex, s: &Bytes, rewrite: &[u8], is_global: bool) -> Result<Bytes> {
    // Empty matches between the bytes of one character do not count.
    let is_boundary = |at: usize| at == s.len() || (s[at] & 0xc0) != 0x80;
    let (mut out, mut at) = (GrowingText::default(), 0);
    let pieces = pieces(rewrite);
    for groups in pattern.captures_iter(s) {
        let whole = groups.get(0).expect("group 0 is the match");
        if whole.is_empty() && !is_boundary(whole.start()) {
            continue;
        }
        out.extend(&s[at..whole.start()])?;
        for piece in &pieces {
            match *piece {
                Piece::Text(text) => out.extend(text)?,
                // There is no such group: nothing is replaced.
                Piece::Group(group) if group >= groups.len() => return Ok(s.clone()),
                Piece::Group(group) => {
                    out.extend(groups.get(group).map_or(&[][..], |m| m.as_bytes()))?;
                }
            }
        }
        at = whole.end();
        if !is_global {
            break;
        }
    }
    if at == 0 && out.is_empty() && !pattern.is_match(s) {
        return Ok(s.clone());
    }
    out.extend(&s[at..])?;
    Ok(out.finish())
}

/// The last pattern compiled: most steps use the same one.
#[derive(Default)]
struct Last(Mutex<Option<(Bytes, Regex)>>);

impl Last {
    fn get(&self, pattern: &Bytes, is_full: bool) -> Result<Regex> {
        if let Some((known, regex)) = &*self.0.lock()
            && known == pattern
        {
            return Ok(regex.clone());
        }
        let regex = compile(pattern, is_full)?;
        *self.0.lock() = Some((pattern.clone(), regex.clone()));
        Ok(regex)
    }
}

fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<Bytes> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be scalar, but received {}", t.shape());
    Ok(t.scalar_string()?.clone())
}

fn replace_all(ctx: &mut Ctx<'_>, pattern: &Regex, rewrite: &[u8], is_global: bool) -> Result<()> {
    map(ctx, |s| replace(pattern, s, rewrite, is_global))
}

fn match_all(ctx: &mut Ctx<'_>, pattern: &Regex) -> Result<()> {
    let strings = ctx.input(0)?;
    let mut out = ctx.alloc(DType::Bool, strings.shape().clone())?;
    for (to, s) in out.as_mut_slice::<bool>()?.iter_mut().zip(strings.strings()?) {
        *to = pattern.is_match(s);
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RegexReplace")
        .work(work::any)
        .doc("Matches of a pattern replaced.")
        .input("input: string")
        .input("pattern: string")
        .input("rewrite: string")
        .output("output: string")
        .attr("replace_global: bool = true")
        .shape(shape::same_as_input)
        .cpu(|init| {
            let (is_global, last) = (init.bool("replace_global")?, Last::default());
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let pattern = last.get(&scalar(ctx, 1, "Pattern")?, false)?;
                let rewrite = scalar(ctx, 2, "Rewrite")?;
                replace_all(ctx, &pattern, &rewrite, is_global)
            }))
        });
    c.op("StaticRegexReplace")
        .work(work::any)
        .doc("Matches of a pattern replaced.")
        .input("input: string")
        .output("output: string")
        .attr("pattern: string")
        .attr("rewrite: string")
        .attr("replace_global: bool = true")
        .shape(shape::same_as_input)
        .cpu(|init| {
            let pattern = compile(&init.bytes("pattern")?, false)?;
            let (rewrite, is_global) = (init.bytes("rewrite")?, init.bool("replace_global")?);
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                replace_all(ctx, &pattern, &rewrite, is_global)
            }))
        });
    c.op("RegexFullMatch")
        .doc("Whether a pattern matches the whole of each string.")
        .input("input: string")
        .input("pattern: string")
        .output("output: bool")
        .shape(shape::same_as_input)
        .cpu(|_| {
            let last = Last::default();
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let pattern = last.get(&scalar(ctx, 1, "Pattern")?, true)?;
                match_all(ctx, &pattern)
            }))
        });
    c.op("StaticRegexFullMatch")
        .doc("Whether a pattern matches the whole of each string.")
        .input("input: string")
        .output("output: bool")
        .attr("pattern: string")
        .shape(shape::same_as_input)
        .cpu(|init| {
            let pattern = compile(&init.bytes("pattern")?, true)?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| match_all(ctx, &pattern)))
        });
    c.no_gradient(&["RegexReplace"]);
}

#[cfg(test)]
mod tests {
    use super::translate;
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    fn replaced(s: &'static [u8], pattern: &'static str, rewrite: &'static str) -> Check<'static> {
        check("RegexReplace")
            .input(Tensor::string(Bytes::from_static(s)))
            .input(Tensor::string(pattern))
            .input(Tensor::string(rewrite))
    }

    #[test]
    fn groups_are_rewritten() {
        replaced(b"abcabc", "(a)(b)", r"\2\1\0").gives(Tensor::string("baabcbaabc"));
        replaced(b"abcabc", "(a)(b)", r"\2\1\0")
            .attr("replace_global", false)
            .gives(Tensor::string("baabcabc"));
        replaced(b"abcabc", "(a)(b)", r"\3").gives(Tensor::string("abcabc"));
        replaced(b"abcabc", "(a)(b)", r"\\x").gives(Tensor::string(r"\xc\xc"));
    }

    #[test]
    fn empty_matches_stand_between_characters() {
        replaced(b"abc", "x*", "-").gives(Tensor::string("-a-b-c-"));
        replaced("aäc".as_bytes(), "x*", "-").gives(Tensor::string("-a-ä-c-"));
        replaced(b"", "x*", "-").gives(Tensor::string("-"));
        replaced(b"a\xffc", ".", "-").gives(Tensor::string(Bytes::from_static(b"-\xff-")));
    }

    #[test]
    fn a_replacement_that_grows_without_end_is_refused() {
        let input = Tensor::from_strings([1], vec![vec![b'a'; 1 << 20].into()]).unwrap();
        check("RegexReplace")
            .input(input)
            .input(Tensor::string("a"))
            .input(Tensor::string("x".repeat(1 << 20)))
            .fails(Code::ResourceExhausted, "--max-string");
    }

    #[test]
    fn whole_strings_match() {
        let full = |s: &'static str, p: &str| {
            check("StaticRegexFullMatch").attr("pattern", p).input(Tensor::string(s))
        };
        full("s3://x", "^s3://.*").gives(Tensor::scalar(true));
        full("/tmp/x", "^s3://.*").gives(Tensor::scalar(false));
        full("ab", "a|ab").gives(Tensor::scalar(true));
        full("a", "(").fails(Code::InvalidArgument, "Invalid pattern: (, error: missing ): (");
        full("a", "a)|(b").fails(Code::InvalidArgument, "Invalid pattern: a)|(b");
        full("a", "[").fails(Code::InvalidArgument, "missing ]: [");
    }

    #[test]
    fn the_dialect_is_translated() {
        assert_eq!(translate(r"[[a]\d{2}x{y"), r"[\[a][0-9]{2}x\{y");
        assert_eq!(translate(r"[[:alpha:]&&]"), r"[[:alpha:]\&\&]");
        assert_eq!(translate(r"\Qa.b\Ec"), r"a\.bc");
        assert_eq!(translate(r"[]a]"), r"[\]a]");
        assert_eq!(translate(r"\p{Greek}{1,}"), r"\p{Greek}{1,}");
    }
}
