//! Tests that a machine could not run, and why.
//!
//! A test program that skips tests (`ferroflow_testing::trials`) appends a line for each to the
//! file that the variable `SKIPPED_TESTS` names.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::paths;

/// The variable that names the file; `ferroflow_testing::trials` reads it.
const VARIABLE: &str = "SKIPPED_TESTS";

fn file() -> PathBuf {
    paths::target().join("check").join("skipped.txt")
}

/// Has the tests of `command` record what they skip, after what earlier runs recorded is removed.
pub fn record(command: &mut Command) {
    let file = file();
    let _ = fs::create_dir_all(file.parent().unwrap_or(&file));
    let _ = fs::remove_file(&file);
    command.env(VARIABLE, file);
}

/// What the last run recorded, as the end of the check shows it.
pub fn report() -> String {
    text(&fs::read_to_string(file()).unwrap_or_default())
}

fn text(recorded: &str) -> String {
    // A test program is asked several times.
    let skipped: BTreeSet<&str> = recorded.lines().collect();
    let lines: String = skipped.iter().map(|line| format!("skipped: {line}\n")).collect();
    format!("{lines}{} tests skipped", skipped.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skipped_test_is_shown_once() {
        assert_eq!(text(""), "0 tests skipped");
        assert_eq!(
            text("b: no mpirun\na: no ip\nb: no mpirun\n"),
            "skipped: a: no ip\nskipped: b: no mpirun\n2 tests skipped"
        );
    }
}
