//! Commands that run beside the steps of the check, such as downloads during compilation.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::paths;
use crate::steps::{self, Failure, Result};

/// A command under way. Its output goes to a file.
pub struct Background {
    name: &'static str,
    child: Option<Child>,
    log: PathBuf,
}

impl Background {
    /// Starts `command` and prints that.
    pub fn start(name: &'static str, mut command: Command) -> Result<Background> {
        let log = paths::target().join("check").join(format!("{name}.log"));
        let cannot = |e: std::io::Error| Failure(format!("cannot start {name}: {e}"));
        fs::create_dir_all(log.parent().unwrap_or(&log)).map_err(cannot)?;
        let out = File::create(&log).map_err(cannot)?;
        let errors = out.try_clone().map_err(cannot)?;
        println!("in the background: {}", steps::text_of(&command));
        command.stdin(Stdio::null()).stdout(out).stderr(errors).current_dir(paths::root());
        let child = Some(command.spawn().map_err(cannot)?);
        Ok(Background { name, child, log })
    }

    /// Waits for its end. The error of a failure contains the end of its output.
    pub fn wait(&mut self) -> Result {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let status = child.wait().map_err(|e| Failure(format!("{}: {e}", self.name)))?;
        if status.success() {
            return Ok(());
        }
        let output = fs::read(&self.log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = output.lines().collect();
        let last = lines[lines.len().saturating_sub(20)..].join("\n");
        Err(Failure(format!("{last}\n{}: {status}, see {}", self.name, paths::shown(&self.log))))
    }
}

/// A check that has failed does not wait for it.
impl Drop for Background {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &'static str, script: &str) -> Result {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Background::start(name, command)?.wait()
    }

    #[test]
    fn a_failure_has_the_end_of_the_output() {
        assert!(shell("works", "echo fine").is_ok());
        let why = shell("fails", "echo no network >&2; exit 4").unwrap_err().0;
        assert!(why.starts_with("no network\nfails: exit status: 4, see "), "{why}");
    }
}
