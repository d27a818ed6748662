//! Tests that this machine could not run, and the reasons.
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

/// Makes the tests of `command` record skipped ones, and removes the records of earlier runs.
pub fn record(command: &mut Command) {
    let file = file();
    let _ = fs::create_dir_all(file.parent().unwrap_or(&file));
    let _ = fs::remove_file(&file);
    command.env(VARIABLE, file);
}

/// The records of the last run, in the form for the end of the check.
pub fn report() -> String {
    text(&fs::read_to_string(file()).unwrap_or_default())
}

fn text(recorded: &str) -> String {
    // The runner starts a test program several times.
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
