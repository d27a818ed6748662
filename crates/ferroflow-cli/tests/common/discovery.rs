//! A host discovery script whose answer a test changes.

use super::{Lines, Running, ferroflow, folder};
use std::process::Stdio;

/// A script that prints the slots of this host, from a file that the test edits.
pub struct Discovery(std::path::PathBuf);

impl Discovery {
    pub fn new() -> Discovery {
        let found = Discovery(folder("discovery"));
        // Written by another process: a child of another test may inherit a file that this process
        // has open, and a file that is open for writing cannot be executed.
        let write = r#"printf '#!/bin/sh\ncat "%s"\n' "$1" > "$2" && chmod +x "$2""#;
        let written = ["-c", write, "sh", &found.path("hosts"), &found.path("discover.sh")];
        assert!(std::process::Command::new("sh").args(written).status().unwrap().success());
        found
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn find(&self, slots: usize) {
        self.find_with(slots, "");
    }

    /// Prints another line, too.
    pub fn find_with(&self, slots: usize, line: &str) {
        // Written to another file and renamed, so that no reader sees half of it.
        std::fs::write(self.path("new"), format!("localhost:{slots}\n{line}\n")).unwrap();
        std::fs::rename(self.path("new"), self.path("hosts")).unwrap();
    }

    /// The script.
    pub fn script(&self) -> String {
        self.path("discover.sh")
    }

    /// An elastic job of 1 to 3 processes that uses the script, and the lines of its output and
    /// errors.
    pub fn job(&self, program: &[&str], variables: &[(&str, &str)]) -> (Running, Lines, Lines) {
        let job = ["run", "-np", "2", "--min-np", "1", "--max-np", "3", "--host-discovery-script"];
        let script = self.script();
        let job = [&job[..], &[&script, "--"], program].concat();
        let mut command = ferroflow(&job);
        command.env("STOP_FILE", self.path("stop")).envs(variables.iter().copied());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut job = Running(child);
        let lines = Lines::of(job.0.stdout.take().unwrap());
        let errors = Lines::of(job.0.stderr.take().unwrap());
        (job, lines, errors)
    }

    /// Ends the job.
    pub fn stop(&self) {
        std::fs::write(self.path("stop"), "").unwrap();
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
