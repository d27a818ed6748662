//! The last output lines of the processes that a launcher has started.

use std::collections::{BTreeMap, VecDeque};

/// The most lines of a process, characters of a line, and processes.
const MOST_LINES: usize = 200;
const LONGEST: usize = 1000;
const MOST_PROCESSES: usize = 256;

#[derive(Debug, Default)]
pub struct OutputLines(BTreeMap<String, VecDeque<String>>);

impl OutputLines {
    /// Adds a line of the process `name`.
    pub fn push(&mut self, name: &str, line: &str) {
        if self.0.len() >= MOST_PROCESSES && !self.0.contains_key(name) {
            return;
        }
        let lines = self.0.entry(name.to_string()).or_default();
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(LONGEST).collect());
    }

    pub fn of(&self, name: &str) -> Option<Vec<&str>> {
        self.0.get(name).map(|lines| lines.iter().map(String::as_str).collect())
    }

    /// The processes that have printed something.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_each_process_are_kept() {
        let mut lines = OutputLines::default();
        (0..300).for_each(|i| lines.push("rank 0", &format!("{i}{}", "x".repeat(2000))));
        lines.push("rank 1", "hello");
        let kept = lines.of("rank 0").unwrap();
        assert_eq!((kept.len(), kept[0].len()), (MOST_LINES, LONGEST));
        assert!(kept[0].starts_with("100x"));
        assert_eq!(lines.of("rank 1"), Some(vec!["hello"]));
        assert_eq!(lines.of("rank 2"), None);
        (0..2 * MOST_PROCESSES).for_each(|i| lines.push(&format!("process {i}"), ""));
        assert_eq!(lines.names().len(), MOST_PROCESSES);
    }
}
