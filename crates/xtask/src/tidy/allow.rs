//! Lists of exceptions: a line is a key, spaces, and the reason. `#` starts a comment.

use super::Finding;
use super::tree::Tree;

/// The exceptions of one rule.
pub struct Allow<'a> {
    path: String,
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    key: &'a str,
    reason: &'a str,
    line: usize,
    is_used: bool,
}

impl<'a> Allow<'a> {
    /// Reads `crates/xtask/tidy/NAME.allow`; a missing file is an empty list.
    pub fn read(tree: &'a Tree, name: &str) -> Allow<'a> {
        let path = format!("crates/xtask/tidy/{name}.allow");
        let lines = tree.file(&path).into_iter().flat_map(|file| file.lines());
        let entries = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
        let entries = entries.map(|(line, text)| {
            let (key, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            Entry { key, reason: reason.trim(), line, is_used: false }
        });
        Allow { entries: entries.collect(), path }
    }

    /// Whether the key is listed; marks the entry as needed.
    pub fn permits(&mut self, key: &str) -> bool {
        let entry = self.entries.iter_mut().find(|entry| entry.key == key);
        entry.map(|entry| entry.is_used = true).is_some()
    }

    /// Unneeded entries, and entries without a reason.
    pub fn problems(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for entry in &self.entries {
            let mut add = |text: String| found.push(Finding::new(&self.path, entry.line, text));
            if !entry.is_used {
                add(format!("'{}' is listed and not needed; remove the line", entry.key));
            }
            if entry.reason.is_empty() {
                add(format!("'{}' has no reason", entry.key));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unneeded_entries_and_missing_reasons_are_found() {
        let text = "# comment\n\na.rs  is fast\nb.rs  was fast\nc.rs\n";
        let tree = Tree::of(&[("crates/xtask/tidy/some.allow", text)]);
        let mut allow = Allow::read(&tree, "some");
        assert!(allow.permits("a.rs") && allow.permits("c.rs") && !allow.permits("d.rs"));
        let found: Vec<String> = allow.problems().iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/xtask/tidy/some.allow:4: 'b.rs' is listed and not needed; remove the line",
                "crates/xtask/tidy/some.allow:5: 'c.rs' has no reason"
            ]
        );
    }

    #[test]
    fn a_list_that_is_not_there_is_empty() {
        let tree = Tree::of(&[]);
        let mut allow = Allow::read(&tree, "none");
        assert!(!allow.permits("a.rs"));
        assert_eq!(allow.problems(), []);
    }
}
