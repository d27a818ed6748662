//! A crate without unsafe code has `#![forbid(unsafe_code)]`.

use super::Finding;
use super::tree::Tree;
use super::unsafe_files::unsafe_line;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in tree.crates() {
        let in_source = format!("crates/{name}/src/");
        let mut own = tree.rust().filter(|file| file.path.starts_with(&in_source));
        if own.any(|file| unsafe_line(file).is_some()) {
            continue;
        }
        for root in ["lib.rs", "main.rs"] {
            let Some(file) = tree.file(&format!("{in_source}{root}")) else { continue };
            if !file.text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
                found.push(Finding::new(&file.path, 0, "add #![forbid(unsafe_code)]"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_code_is_found() {
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", "fn f() {}")]));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_crate_that_forbids_or_has_unsafe_code_passes() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\nfn f() {}"),
            ("crates/b/src/lib.rs", "mod x;"),
            ("crates/b/src/x.rs", "fn f() { unsafe { g() } }"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
