//! Paths: the repository, the target folder, the build products.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("xtask is two folders below the root").to_path_buf()
}

/// The folder that Cargo builds into: `CARGO_TARGET_DIR`, or `target`.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root().join(dir),
        _ => root().join("target"),
    }
}

/// `path` relative to the root, if it is below it.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The command with which `binary` serves one task of a cluster. It is for the `--server-cmd` of
/// `conformance/run.py` and `bench/compare.py`, which split it into words as a shell would, then
/// fill in the fields.
pub fn server_command(binary: &Path) -> String {
    let binary = quoted(&binary.display().to_string());
    format!("{binary} server --cluster {{cluster_json}} --job {{job}} --task {{task}}")
}

/// `word` quoted for a shell.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("crates/xtask").is_dir());
    }

    #[test]
    fn a_quoted_word_survives_spaces_and_quotes() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r#"'it'"'"'s'"#);
    }
}
