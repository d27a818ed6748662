//! The differences that are meant to be: `oracle/explained.tsv`, which docs/ops.md shows.

use crate::compare::Kind;
use ferroflow_core::{Result, bail};

const TABLE: &str = include_str!("../../../oracle/explained.tsv");

/// One line of the table.
pub struct Explanation {
    ops: Vec<String>,
    dtypes: Vec<String>,
    kinds: Vec<String>,
    pub reason: String,
}

impl Explanation {
    fn covers(&self, op: &str, dtype: &str, kind: Kind, spoiled: bool) -> bool {
        let kind = kind.to_string();
        let has_kind = |list: &[String]| {
            list.iter().any(|p| match p.strip_prefix("spoiled:") {
                Some(p) => spoiled && p == kind,
                None => matches(p, &kind),
            })
        };
        let has = |list: &[String], name: &str| list.iter().any(|pattern| matches(pattern, name));
        has(&self.ops, op) && has(&self.dtypes, dtype) && has_kind(&self.kinds)
    }
}

/// All of the table.
pub struct Explained(pub Vec<Explanation>);

impl Explained {
    pub fn load() -> Result<Explained> {
        parse(TABLE)
    }

    /// The line that explains a difference of this kind; some hold for spoiled calls only.
    pub fn find(&self, op: &str, dtype: &str, kind: Kind, spoiled: bool) -> Option<usize> {
        self.0.iter().position(|e| e.covers(op, dtype, kind, spoiled))
    }
}

fn parse(table: &str) -> Result<Explained> {
    let mut lines = Vec::new();
    for line in table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [ops, dtypes, kinds, reason] = columns[..] else {
            bail!(DataLoss, "a line of explained.tsv has not four columns: {line}");
        };
        let words =
            |s: &str| s.split([' ', ',']).filter(|w| !w.is_empty()).map(str::to_string).collect();
        let (ops, dtypes, kinds) = (words(ops), words(dtypes), words(kinds));
        lines.push(Explanation { ops, dtypes, kinds, reason: reason.to_string() });
    }
    Ok(Explained(lines))
}

/// A name, or a beginning or an end with `*` for the rest.
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
    fn the_table_is_well_formed_and_every_line_has_a_reason() {
        for line in Explained::load().unwrap().0 {
            assert!(line.reason.len() > 20, "{:?}: {}", line.ops, line.reason);
            let kinds = ["*", "value", "shape", "dtype", "code", "refused", "accepted"];
            let kind = |k: &String| k.strip_prefix("spoiled:").unwrap_or(k).to_string();
            assert!(
                line.kinds.iter().all(|k| kinds.contains(&kind(k).as_str())),
                "{:?}",
                line.kinds
            );
        }
    }

    #[test]
    fn a_line_covers_the_names_its_patterns_match() {
        let text = "Fast* Slow\tfloat32 half\tvalue\tbecause of this and that\n\
                    Odd\t*\tspoiled:refused\tthey do not look";
        let table = parse(text).unwrap();
        assert_eq!(table.find("Odd", "half", Kind::Refused, true), Some(1));
        assert_eq!(table.find("Odd", "half", Kind::Refused, false), None);
        assert_eq!(table.find("FastSum", "half", Kind::Value, false), Some(0));
        assert_eq!(table.find("Slow", "float32", Kind::Value, false), Some(0));
        assert_eq!(table.find("Slower", "float32", Kind::Value, false), None);
        assert_eq!(table.find("Slow", "float64", Kind::Value, false), None);
        assert_eq!(table.find("Slow", "half", Kind::Code, false), None);
        assert!(parse("Op\tfloat32\tvalue").is_err());
    }
}
