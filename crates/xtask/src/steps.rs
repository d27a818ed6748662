//! Running commands, with a heading and a time for each, and a hint for the first failure.

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::paths;

/// The error of a command, as the user reads it.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Runs `command` from the root of the repository; fails unless it exits with 0.
pub fn run(command: &mut Command) -> Result {
    println!("$ {}", text_of(command));
    if command.get_current_dir().is_none() {
        command.current_dir(paths::root());
    }
    let status =
        command.status().map_err(|e| Failure(format!("cannot start {}: {e}", text_of(command))))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure(format!("{status}: {}", text_of(command))))
}

/// The `cargo` that runs this program.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

/// Steps that run one after the other, until one fails.
#[derive(Default)]
pub struct Steps {
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Runs one step. The error after a failure ends with `again`, the command for this step alone.
    pub fn step(
        &mut self,
        name: &'static str,
        again: &str,
        work: impl FnOnce() -> Result,
    ) -> Result {
        println!("\n=== {name}");
        let began = Instant::now();
        let outcome = work();
        let took = began.elapsed();
        match outcome {
            Ok(()) => {
                println!("=== {name}: ok, {}", time_text(took));
                self.done.push((name, took));
                Ok(())
            }
            Err(Failure(why)) => Err(Failure(format!(
                "=== {name}: FAILED after {}\n{why}\nTo run just this step again: {again}",
                time_text(took)
            ))),
        }
    }

    /// The last line: the steps and their times.
    pub fn summary(&self) -> String {
        let total = self.done.iter().map(|(_, took)| *took).sum();
        let parts: Vec<_> =
            self.done.iter().map(|(name, took)| format!("{name} {}", time_text(*took))).collect();
        format!("all passed in {} ({})", time_text(total), parts.join(", "))
    }
}

/// A duration for people: `0.4 s`, `12 s`, `3 min 5 s`.
pub fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.round() as u64;
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {} s", seconds % 60),
    }
}

/// The command as a user types it, without the folder of the program.
pub fn text_of(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let mut words = vec![program.rsplit('/').next().unwrap_or_default().to_owned()];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:+".contains(c);
        if !arg.is_empty() && arg.chars().all(plain) {
            arg.into_owned()
        } else {
            format!("{arg:?}")
        }
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let text = |seconds| time_text(Duration::from_secs_f64(seconds));
        assert_eq!(text(0.44), "0.4 s");
        assert_eq!(text(9.96), "10 s");
        assert_eq!(text(59.7), "1 min 0 s");
        assert_eq!(text(185.0), "3 min 5 s");
    }

    #[test]
    fn a_failed_step_says_how_to_run_it_again() {
        let mut steps = Steps::default();
        steps.step("fine", "do fine", || Ok(())).unwrap();
        let failure = steps
            .step("broken", "do broken", || Err(Failure("exit status: 1".into())))
            .unwrap_err();
        assert!(
            failure.0.starts_with("=== broken: FAILED after 0.0 s\nexit status: 1\n"),
            "{failure}"
        );
        assert!(failure.0.ends_with("again: do broken"), "{failure}");
        assert_eq!(steps.summary(), "all passed in 0.0 s (fine 0.0 s)");
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "a b"]);
        assert_eq!(text_of(&command), "cargo test \"a b\"");
    }
}
