//! No package that links a program has an optimization level of its own in the release profile.
//!
//! Optimization over crates applies the level of the linked package to the code of all crates: at
//! level `s` no loop of any kernel is vectorized. Cargo also forgets to strip such a program.

use super::Finding;
use super::tree::Tree;

const MANIFEST: &str = "Cargo.toml";
const SECTION: &str = "[profile.release.package]";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(manifest) = tree.file(MANIFEST) else { return Vec::new() };
    let lines = manifest.text.lines().enumerate().skip_while(|(_, line)| line.trim() != SECTION);
    let own = lines.skip(1).take_while(|(_, line)| !line.starts_with('['));
    own.filter_map(|(i, line)| {
        let package = line.split_once('=')?.0.trim().trim_matches('"');
        let what = linked(tree, package)?;
        let text = format!("{package} links {what}: leave its optimization level to the profile");
        Some(Finding::new(MANIFEST, i + 1, text))
    })
    .collect()
}

/// What a package of the workspace links, if anything.
fn linked(tree: &Tree, package: &str) -> Option<&'static str> {
    let has = |part: &str| {
        let start = format!("crates/{package}/{part}");
        tree.files.iter().any(|file| file.path.starts_with(&start))
    };
    let manifest = tree.file(&format!("crates/{package}/{MANIFEST}"));
    if has("src/main.rs") || has("src/bin/") {
        Some("a program")
    } else if has("examples/") {
        Some("examples")
    } else if manifest.is_some_and(|manifest| manifest.text.contains("cdylib")) {
        Some("a library for other languages")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(package: &str) -> usize {
        let profile = format!("{SECTION}\n{package} = {{ opt-level = \"s\" }}\n[other]\nx = 1\n");
        check(&Tree::of(&[
            (MANIFEST, &profile),
            ("crates/a/src/main.rs", ""),
            ("crates/b/src/lib.rs", ""),
            ("crates/b/examples/e.rs", ""),
            ("crates/c/src/lib.rs", ""),
            ("crates/c/Cargo.toml", "[lib]\ncrate-type = [\"cdylib\"]"),
            ("crates/d/src/lib.rs", ""),
        ]))
        .len()
    }

    #[test]
    fn packages_that_link_programs_examples_or_extensions_are_found() {
        assert_eq!([findings("a"), findings("b"), findings("c")], [1, 1, 1]);
    }

    #[test]
    fn libraries_and_packages_of_others_pass() {
        assert_eq!([findings("d"), findings("regex-syntax")], [0, 0]);
    }
}
