//! The public crates have the `missing_docs` lint.

use super::Finding;
use super::tree::Tree;

/// Crates that users depend on.
const PUBLIC: [&str; 6] = [
    "ferroflow",
    "ferroflow-train",
    "ferroflow-core",
    "ferroflow-collective",
    "ferroflow-cluster",
    "ferroflow-graph",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in PUBLIC {
        let path = format!("crates/{name}/src/lib.rs");
        let has_lint = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("#!["));
            lines.into_iter().any(|line| {
                let level = line.strip_prefix("#![warn(").or(line.strip_prefix("#![deny("));
                level.is_some_and(|rest| rest.contains("missing_docs"))
            })
        };
        if !tree.file(&path).is_some_and(|file| has_lint(&file.text)) {
            found.push(Finding::new(&path, 0, "add #![warn(missing_docs)]"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        let paths = PUBLIC.map(|name| format!("crates/{name}/src/lib.rs"));
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), text)).collect();
        check(&Tree::of(&files)).len()
    }

    #[test]
    fn a_public_crate_without_the_lint_is_found() {
        assert_eq!(findings("//! A crate.\n"), PUBLIC.len());
        assert_eq!(findings("#![allow(missing_docs)]\n"), PUBLIC.len());
    }

    #[test]
    fn crates_with_the_lint_pass() {
        assert_eq!(findings("#![warn(missing_docs)]\n"), 0);
        assert_eq!(findings("#![deny(unused, missing_docs)]\n"), 0);
    }
}
