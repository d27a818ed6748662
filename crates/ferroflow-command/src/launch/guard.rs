//! Ends the processes of a job when its launcher is killed and cannot do so itself.

use super::GRACE;
use ferroflow::Result;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A watchdog process that knows all processes of the job and ends them when the launcher dies.
#[derive(Default)]
pub struct Guard(Option<Child>);

impl Guard {
    /// Starts the watchdog. If that fails, the job runs without it.
    pub fn start() -> Guard {
        let started = crate::own_program().and_then(|program| {
            let mut command = Command::new(program);
            command.arg("guard").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            // Its own group, so that Ctrl-C does not reach it.
            command.process_group(0).spawn()
        });
        Guard(started.ok())
    }

    /// Registers a process group leader.
    pub fn watch(&self, leader: u32) {
        self.tell(format_args!("+{leader}\n"));
    }

    /// Unregisters a process that has exited, before its id is reused.
    pub fn forget(&self, leader: u32) {
        self.tell(format_args!("-{leader}\n"));
    }

    fn tell(&self, line: std::fmt::Arguments<'_>) {
        if let Some(mut input) = self.0.as_ref().and_then(|child| child.stdin.as_ref()) {
            // Ignore the error: the watchdog may have been killed.
            let _ = input.write_all(line.to_string().as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// `ferroflow guard`: waits until its parent is gone, then ends the registered process groups.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> Result<()> {
    let mut groups = HashSet::new();
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        let Some((sign, number)) = line.split_at_checked(1) else { continue };
        let Some(group) = number.parse().ok().and_then(Pid::from_raw) else { continue };
        match sign {
            "+" => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    let signal = |signal| {
        groups.iter().for_each(|group| {
            let _ = kill_process_group(*group, signal);
        });
    };
    signal(Signal::TERM);
    let until = Instant::now() + GRACE;
    let is_there = || groups.iter().any(|group| test_kill_process_group(*group).is_ok());
    while is_there() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(Signal::KILL);
    Ok(())
}
