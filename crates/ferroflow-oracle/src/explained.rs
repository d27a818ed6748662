//! The intended differences: `oracle/explained.tsv`, which docs/src/reference/ops.md shows.

use crate::compare::DifferenceKind;
use ferroflow_core::{Result, bail, err};
use regex::Regex;
use std::fmt;

const TABLE: &str = include_str!("../../../oracle/explained.tsv");

/// One line of the table.
pub struct Explanation {
    ops: Vec<String>,
    dtypes: Vec<String>,
    kinds: Vec<String>,
    /// A pattern for the difference or the call.
    pattern: Regex,
    pub reason: String,
}

/// The properties of a difference that explanations match.
pub struct SeenDifference<'a> {
    pub op: &'a str,
    pub dtype: &'a str,
    pub kind: DifferenceKind,
    /// Whether the call is invalid on purpose.
    pub spoiled: bool,
    /// The difference and the call as text.
    pub text: &'a str,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.ops.join(" "), self.reason)
    }
}

impl Explanation {
    fn covers(&self, seen: &SeenDifference<'_>) -> bool {
        let kind = seen.kind.to_string();
        let has_kind = self.kinds.iter().any(|k| match k.strip_prefix("spoiled:") {
            Some(k) => seen.spoiled && k == kind,
            None => *k == kind,
        });
        let has = |list: &[String], name: &str| list.iter().any(|pattern| matches(pattern, name));
        has_kind
            && has(&self.ops, seen.op)
            && has(&self.dtypes, seen.dtype)
            && self.pattern.is_match(seen.text)
    }
}

/// The whole table.
pub struct Explained(pub Vec<Explanation>);

impl Explained {
    /// Reads the table.
    pub fn load() -> Result<Explained> {
        parse(TABLE)
    }

    /// The line that explains a difference.
    pub fn find(&self, seen: &SeenDifference<'_>) -> Option<usize> {
        self.0.iter().position(|e| e.covers(seen))
    }
}

fn parse(table: &str) -> Result<Explained> {
    let mut lines = Vec::new();
    for line in table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [ops, dtypes, kinds, pattern, reason] = columns[..] else {
            bail!(DataLoss, "a line of explained.tsv does not have five columns: {line}");
        };
        let words =
            |s: &str| s.split([' ', ',']).filter(|w| !w.is_empty()).map(str::to_string).collect();
        let pattern = Regex::new(&format!("(?s){pattern}"))
            .map_err(|e| err!(DataLoss, "invalid pattern in {line}: {e}"))?;
        let (ops, dtypes, kinds) = (words(ops), words(dtypes), words(kinds));
        lines.push(Explanation { ops, dtypes, kinds, pattern, reason: reason.to_string() });
    }
    Ok(Explained(lines))
}

/// Matches a name, or a prefix or suffix with `*` for the rest.
fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), None) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start.trim_start_matches('*')),
        (None, None) => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_has_an_op_a_kind_and_a_reason() {
        for line in Explained::load().unwrap().0 {
            assert!(line.reason.len() > 20, "{:?}: {}", line.ops, line.reason);
            let kinds = ["value", "shape", "dtype", "code", "refused", "accepted"];
            let known = |k: &String| kinds.contains(&k.strip_prefix("spoiled:").unwrap_or(k));
            assert!(line.kinds.iter().all(known), "{:?}", line.kinds);
            // A line that matches every difference of an op would hide bugs.
            assert!(!line.pattern.is_match(""), "{:?} has no pattern", line.ops);
            assert!(!line.ops.iter().any(|op| op == "*"), "{}", line.reason);
        }
    }

    #[test]
    fn a_line_explains_the_differences_that_its_patterns_match() {
        let text = "Fast* Slow\tfloat32 half\tvalue\texpected NaN\tbecause of this and that\n\
                    Odd\t*\tspoiled:refused\trank [0-9]\tthey do not look";
        let table = parse(text).unwrap();
        let find = |op: &str, dtype: &str, kind: DifferenceKind, spoiled: bool| {
            let text = "1 of 2 numbers differ: 0, expected NaN\nrank 2";
            table.find(&SeenDifference { op, dtype, kind, spoiled, text })
        };
        assert_eq!(find("Odd", "half", DifferenceKind::Refused, true), Some(1));
        assert_eq!(find("Odd", "half", DifferenceKind::Refused, false), None);
        assert_eq!(find("FastSum", "half", DifferenceKind::Value, false), Some(0));
        assert_eq!(find("Slow", "float32", DifferenceKind::Value, false), Some(0));
        assert_eq!(find("Slower", "float32", DifferenceKind::Value, false), None);
        assert_eq!(find("Slow", "float64", DifferenceKind::Value, false), None);
        assert_eq!(find("Slow", "half", DifferenceKind::Code, false), None);
        let other = SeenDifference {
            op: "Slow",
            dtype: "half",
            kind: DifferenceKind::Value,
            spoiled: false,
            text: "1 of 2 numbers differ: 0, expected 1",
        };
        assert_eq!(table.find(&other), None);
        assert!(parse("Op\tfloat32\tvalue\twithout a pattern").is_err());
    }
}
