//! Reasons to end a job early: a signal, or output that cannot be written.

use super::JobEvent;
use ferroflow::{Code, Error, Result};
use rustix::process::Signal;
use std::fmt;
use std::io::ErrorKind;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Signals within this time are one: `timeout` and others send one to the process and one to its
/// process group.
pub const SAME_SIGNAL: Duration = Duration::from_millis(300);

/// An external reason to end a job.
#[derive(Debug)]
pub enum StopReason {
    Signal(Signal),
    /// The output of the processes cannot be written.
    Output(std::io::Error),
}

impl StopReason {
    /// The launcher's exit code, as a shell would report it.
    pub fn code(&self) -> u8 {
        match self {
            StopReason::Signal(signal) => 128 + signal.as_raw() as u8,
            // The code of a program that SIGPIPE kills.
            StopReason::Output(e) if e.kind() == ErrorKind::BrokenPipe => {
                128 + Signal::PIPE.as_raw() as u8
            }
            StopReason::Output(_) => 1,
        }
    }

    /// Whether this counts as a second request to stop at once. A closing terminal sends several
    /// signals and breaks the output, so those do not count.
    pub fn is_urgent(&self) -> bool {
        matches!(self, StopReason::Signal(Signal::INT | Signal::TERM))
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Signal(Signal::INT) => write!(f, "the job was ended by Ctrl-C (SIGINT)"),
            StopReason::Signal(Signal::HUP) => {
                write!(f, "the job was ended by SIGHUP: its terminal is gone (nohup goes on then)")
            }
            StopReason::Signal(_) => write!(f, "the job was ended by SIGTERM"),
            StopReason::Output(e) if e.kind() == ErrorKind::BrokenPipe => {
                write!(f, "the job was ended, since the reader of its output has gone away")
            }
            StopReason::Output(e) => {
                write!(f, "the job was ended, its output cannot be written: {e}")
            }
        }
    }
}

/// Turns SIGTERM, Ctrl-C and the loss of the terminal into a stop of the job.
pub fn watch_signals(events: Sender<JobEvent>) -> Result<()> {
    let problem =
        |e: std::io::Error| Error::new(Code::Internal, format!("cannot watch signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(problem)?;
    // Registered before any process starts: a signal at this moment must not kill the launcher
    // alone.
    let entered = runtime.enter();
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate()).map_err(problem)?;
    let mut int = signal(SignalKind::interrupt()).map_err(problem)?;
    let watches_terminal = !ignores(Signal::HUP);
    let hangup = watches_terminal.then(|| signal(SignalKind::hangup()));
    let mut hangup = hangup.transpose().map_err(problem)?;
    drop(entered);
    let work = move || {
        runtime.block_on(async {
            let mut hung_up = async || match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            };
            loop {
                let signal = tokio::select! {
                    _ = term.recv() => Signal::TERM,
                    _ = int.recv() => Signal::INT,
                    _ = hung_up() => Signal::HUP,
                };
                if events.send(JobEvent::Stop(StopReason::Signal(signal))).is_err() {
                    return;
                }
            }
        });
    };
    std::thread::Builder::new().name("ff-signals".into()).spawn(work).map(|_| ()).map_err(problem)
}

/// Whether the parent process, such as nohup, set the signal to be ignored.
fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal.as_raw() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_is_known() {
        // Rust's runtime ignores SIGPIPE; SIGKILL cannot be ignored.
        assert!(ignores(Signal::PIPE));
        assert!(!ignores(Signal::KILL));
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let output = |kind: ErrorKind| StopReason::Output(kind.into()).code();
        assert_eq!(StopReason::Signal(Signal::TERM).code(), 143);
        assert_eq!((output(ErrorKind::BrokenPipe), output(ErrorKind::StorageFull)), (141, 1));
    }
}
