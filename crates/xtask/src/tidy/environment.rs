//! Every `FERROFLOW_*` variable that code uses is on the reference page, and the reverse.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::{Source, Tree};

const PAGE: &str = "docs/src/reference/environment.md";
const PREFIX: &str = "FERROFLOW_";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Finding::new(PAGE, 0, "the page of environment variables is missing")];
    };
    let documented = variables(page).collect::<BTreeMap<_, _>>();
    let mut used = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_code(&file.path)) {
        for (name, line) in variables(file) {
            used.entry(name).or_insert((file, line));
        }
    }
    let mut found = Vec::new();
    for (name, (file, line)) in &used {
        if !documented.contains_key(name) {
            let text = format!("{name} is not on {PAGE}");
            found.push(Finding::new(&file.path, *line, text));
        }
    }
    for (name, line) in documented {
        if !used.contains_key(name) {
            found.push(Finding::new(PAGE, line, format!("no code uses {name}")));
        }
    }
    found
}

fn is_code(path: &str) -> bool {
    let is_code = path.ends_with(".rs") || path.ends_with(".py") || path.ends_with(".sh");
    (is_code || path == ".ci/run") && !path.starts_with("crates/xtask/src/tidy/")
}

/// The variables that a file names, with their lines.
fn variables(file: &Source) -> impl Iterator<Item = (&str, usize)> {
    file.lines().flat_map(|(line, text)| {
        text.match_indices(PREFIX).filter_map(move |(at, _)| {
            let name = &text[at..];
            let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
            let is_whole = !text[..at].ends_with(is_part) && name.len() > PREFIX.len();
            is_whole.then_some((name, line))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(page: &str, code: &str) -> Vec<String> {
        let tree = Tree::of(&[(PAGE, page), ("crates/a/src/x.rs", code)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn variables_that_only_code_or_only_the_page_names_are_found() {
        let found = findings("| `FERROFLOW_OLD` | x |\n", "var(\"FERROFLOW_NEW\")");
        assert_eq!(
            found,
            [
                "crates/a/src/x.rs:1: FERROFLOW_NEW is not on docs/src/reference/environment.md",
                "docs/src/reference/environment.md:1: no code uses FERROFLOW_OLD"
            ]
        );
    }

    #[test]
    fn a_missing_page_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn variables_on_the_page_pass() {
        let code = "var(\"FERROFLOW_RANK\"); // FERROFLOW_* and NOT_FERROFLOW_X";
        assert_eq!(findings("| `FERROFLOW_RANK` | x |\n", code), [] as [String; 0]);
    }
}
