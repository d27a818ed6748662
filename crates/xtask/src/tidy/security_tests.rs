//! The tests that SECURITY.md names for each finding exist.

use std::collections::HashSet;

use super::Finding;
use super::markdown::code;
use super::tree::Tree;

const PAGE: &str = "SECURITY.md";
const SECTION: &str = "## Findings and their tests";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Finding::new(PAGE, 0, "the page is missing")];
    };
    let functions: HashSet<&str> = tree
        .rust()
        .flat_map(|file| file.text.lines())
        .filter_map(|line| Some(line.split_once("fn ")?.1.split_once('(')?.0))
        .collect();
    let mut rows = page.lines().skip_while(|(_, line)| *line != SECTION).skip(1).peekable();
    if rows.peek().is_none() {
        return vec![Finding::new(PAGE, 0, format!("the section '{SECTION}' is missing"))];
    }
    let rows = rows.take_while(|(_, line)| !line.starts_with("## "));
    let mut found = Vec::new();
    // The first lines of a table are its heads.
    for (line, row) in rows.filter(|(_, row)| row.starts_with('|')).skip(2) {
        let tests = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let tests = code(tests);
        if tests.is_empty() {
            found.push(Finding::new(PAGE, line, "the row names no test"));
        }
        let missing = tests.iter().filter(|test| !functions.contains(test.text));
        found.extend(
            missing.map(|test| Finding::new(PAGE, line, format!("there is no test {}", test.text))),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(row: &str) -> Vec<String> {
        let page = format!("{SECTION}\n\n| Attack | Test |\n| --- | --- |\n{row}\n\n## Limits\n");
        let code = "#[test]\nfn a_token_is_kept() {\n}";
        let tree = Tree::of(&[(PAGE, &page), ("crates/a/src/x.rs", code)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn tests_that_do_not_exist_are_found() {
        let found = findings("| `Reset` | `a_token_is_kept`, `a_token_is_lost` |");
        assert_eq!(found, ["SECURITY.md:5: there is no test a_token_is_lost"]);
        assert_eq!(findings("| `Reset` | none |"), ["SECURITY.md:5: the row names no test"]);
        let tree = Tree::of(&[(PAGE, "# Security\n")]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn tests_that_exist_pass() {
        assert!(findings("| `Reset` | `a_token_is_kept` |").is_empty());
    }
}
