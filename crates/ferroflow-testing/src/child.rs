//! Tests that need a second process run their own program again.
//!
//! The child runs the same test. A test that has children begins with a look at [`role`], and calls
//! the body of the child, an ordinary function:
//!
//! ```no_run
//! use ferroflow_testing::{child, this_test};
//!
//! // #[test]
//! fn two_ranks_agree() {
//!     if child::role().as_deref() == Some("rank") {
//!         return rank();
//!     }
//!     let rank = child::command(this_test!(), "rank").output();
//!     assert!(rank.is_ok_and(|done| done.status.success()));
//! }
//!
//! fn rank() {}
//! ```
//!
//! No child is counted as a test of its own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The variable that says to a process that it is the child of a test.
pub const ROLE: &str = "TEST_CHILD_ROLE";

/// The role that the parent gave this process; `None` in the parent.
pub fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// The command that runs the test `name` of this program as a child with `role`.
pub fn command(name: &str, role: &str) -> Command {
    let [program, words @ ..] = words(name);
    let mut command = Command::new(program);
    command.args(words).env(ROLE, role);
    command
}

/// The words of the command that runs the test `name` of this program, for a launcher that starts
/// it. The launcher's environment must have [`ROLE`].
pub fn words(name: &str) -> [String; 4] {
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
    [program.display().to_string(), "--exact".into(), name.into(), "--nocapture".into()]
}

/// The name of the test function that contains this call, as the test program lists it.
#[macro_export]
macro_rules! this_test {
    () => {{
        fn here() {}
        $crate::child::test_of(std::any::type_name_of_val(&here))
    }};
}

/// `module::test` of `program::module::test::here`, also where the call is inside closures.
pub fn test_of(path: &'static str) -> &'static str {
    let path = path.strip_suffix("::here").unwrap_or(path).trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, test)| test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_itself_again_as_a_child() {
        if role().as_deref() == Some("speaker") {
            return println!("the child speaks");
        }
        let name = this_test!();
        assert_eq!(name, "child::tests::a_test_runs_itself_again_as_a_child");
        let inside_closure = || this_test!();
        assert_eq!(inside_closure(), name);
        let done = command(name, "speaker").output().unwrap();
        assert!(done.status.success());
        assert!(String::from_utf8_lossy(&done.stdout).contains("the child speaks"));
    }
}
