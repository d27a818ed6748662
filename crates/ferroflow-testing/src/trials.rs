//! Tests that need something a machine may lack. Without it they are skipped, with the reason.
//!
//! A `#[test]` function cannot skip itself: it passes or fails. A test target with `harness =
//! false` lists its tests instead, each with its needs:
//!
//! ```no_run
//! use ferroflow_testing::needs::MPIRUN;
//! use ferroflow_testing::{trial, trials};
//!
//! fn ranks_of_mpirun_agree() {}
//!
//! fn main() {
//!     trials::run(&[trial!(ranks_of_mpirun_agree, MPIRUN)]);
//! }
//! ```
//!
//! A function that is not listed is dead code, which clippy rejects. `cargo test` and nextest see a
//! test whose needs are missing as ignored. `cargo xtask check` prints the reasons: they are
//! appended to the file that the variable `SKIPPED_TESTS` names.

use crate::child;
use crate::needs::Need;
use libtest_mimic::{Arguments, Trial as Mimic};
use std::fs::File;
use std::io::Write;

/// The variable that names the file for the reasons.
pub const SKIPPED_TESTS: &str = "SKIPPED_TESTS";

/// A test and its needs; see [`trial!`](crate::trial).
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The path of the function within the test program.
    pub name: &'static str,
    /// Fails by a panic.
    pub run: fn(),
    /// Its needs.
    pub needs: &'static [Need],
}

/// A [`Trial`](crate::trials::Trial) of a function, followed by its needs.
#[macro_export]
macro_rules! trial {
    ($run:path $(, $need:expr)*) => {
        $crate::trials::Trial {
            name: $crate::child::test_of(std::any::type_name_of_val(&$run)),
            run: $run,
            needs: &[$($need),*],
        }
    };
}

/// Runs the tests that the command line selects, and exits.
pub fn run(trials: &[Trial]) -> ! {
    let arguments = Arguments::from_args();
    // A child of a test runs what its parent has begun.
    let is_child = child::role().is_some();
    let mut skipped = Vec::new();
    let mut all = Vec::new();
    for &Trial { name, run, needs } in trials {
        let why = match !is_child && is_wanted(&arguments, name) {
            true => needs.iter().find_map(|need| (need.missing)()),
            false => None,
        };
        let test = Mimic::test(name, move || {
            run();
            Ok(())
        });
        all.push(test.with_ignored_flag(why.is_some()));
        skipped.extend(why.map(|why| format!("{name}: {why}")));
    }
    if let Some(path) = std::env::var_os(SKIPPED_TESTS) {
        let file = File::options().append(true).create(true).open(path);
        let lines: String = skipped.iter().map(|line| format!("{line}\n")).collect();
        if let Err(e) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
            eprintln!("cannot write to {SKIPPED_TESTS}: {e}");
        }
    } else if !arguments.list {
        skipped.iter().for_each(|line| eprintln!("skipped: {line}"));
    }
    libtest_mimic::run(&arguments, all).exit()
}

/// Whether a run with these arguments can list or run the test. Only then are its needs checked.
fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    arguments.list || !arguments.exact || arguments.filter.as_deref() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_trial_is_the_path_of_its_function() {
        let trial = crate::trial!(needs_are_only_looked_for_if_the_test_may_run);
        assert_eq!(trial.name, "trials::tests::needs_are_only_looked_for_if_the_test_may_run");
    }

    #[test]
    fn needs_are_only_looked_for_if_the_test_may_run() {
        let parsed = |words: &[&str]| Arguments::from_iter(words);
        assert!(is_wanted(&parsed(&["x", "--list"]), "a"));
        assert!(is_wanted(&parsed(&["x"]), "a"));
        assert!(is_wanted(&parsed(&["x", "--exact", "a"]), "a"));
        assert!(!is_wanted(&parsed(&["x", "--exact", "b"]), "a"));
    }
}
