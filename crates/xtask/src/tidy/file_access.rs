//! Ops use files only through `ferroflow_core::files`, which confines them to the file roots and
//! checks that the thread may block.

use super::Finding;
use super::tree::Tree;

/// Crates whose code runs for clients.
const CRATES: [&str; 6] = ["op-kit", "ops-array", "ops-data", "ops-math", "ops-nn", "ops-state"];
/// Functions that bypass the module.
const AROUND: [&str; 6] = [
    "std::fs::read",
    "std::fs::write",
    "std::fs::create",
    "std::fs::remove",
    "std::fs::rename",
    "fs::File::open",
];
/// The path from which ops read the host's name. It is not a file of a client.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let is_op =
        |path: &str| CRATES.iter().any(|c| path.starts_with(&format!("crates/ferroflow-{c}/src/")));
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| is_op(&file.path)) {
        // Tests are at the end of a file.
        let lines = file.lines().take_while(|(_, text)| !text.starts_with("#[cfg(test)]"));
        for (line, text) in lines {
            let code = text.split("//").next().unwrap_or_default();
            if AROUND.iter().any(|way| code.contains(way)) && !code.contains(HOST_NAME) {
                found.push(Finding::new(&file.path, line, "use ferroflow_core::files"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(code: &str) -> usize {
        check(&Tree::of(&[("crates/ferroflow-ops-data/src/x.rs", code)])).len()
    }

    #[test]
    fn direct_access_is_found() {
        assert_eq!(findings("fn f() { std::fs::read(\"x\"); }"), 1);
        assert_eq!(findings("fn f() { std::fs::File::open(name); }"), 1);
    }

    #[test]
    fn the_module_and_tests_pass() {
        assert_eq!(findings("fn f() { files::open(name); }"), 0);
        assert_eq!(findings("#[cfg(test)]\nmod tests { fn f() { std::fs::read(\"x\"); } }"), 0);
        assert_eq!(check(&Tree::of(&[("crates/a/src/x.rs", "std::fs::read(x)")])).len(), 0);
    }
}
