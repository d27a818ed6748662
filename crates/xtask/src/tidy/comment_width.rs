//! Comments have at most 100 columns.

use super::Finding;
use super::tree::{Source, Tree};

const WIDTH: usize = 100;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        let Some(marker) = marker(file) else { continue };
        for (line, text) in file.lines() {
            let columns = text.chars().count();
            // A link cannot be broken.
            let is_comment = text.trim_start().starts_with(marker);
            if columns > WIDTH && is_comment && !text.contains("://") {
                let text = format!("comment of {columns} columns");
                found.push(Finding::new(&file.path, line, text));
            }
        }
    }
    found
}

/// The marker of comments in this file.
fn marker(file: &Source) -> Option<&'static str> {
    match file.path.rsplit_once('.')?.1 {
        "rs" | "proto" => Some("//"),
        "py" | "toml" | "sh" => Some("#"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_beyond_column_100_is_found() {
        let text = format!("fn f() {{}}\n    // {}\n", "x".repeat(94));
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", &text)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn comments_of_100_columns_code_and_links_pass() {
        let text = format!(
            "/// {}\nlet x = \"{}\";\n// https://example.org/{}\n",
            "ä".repeat(96),
            "x".repeat(100),
            "y".repeat(100)
        );
        assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &text)])), []);
    }
}
