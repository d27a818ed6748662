//! Starts the processes of a job, forwards their output, and ends them together.

use ferroflow::{Code, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One process of a job.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// What precedes each line it prints; nothing does if it is empty.
    pub label: String,
    /// What reports call it.
    pub name: String,
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where it runs, through ssh; here if there is none.
    pub host: Option<String>,
    /// It serves the others: when they are done, it is ended, and that is no failure.
    pub serves: bool,
}

/// How long processes have to end when they are asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Lines of a process's errors that a report shows.
const LAST_LINES: usize = 5;

pub enum Event {
    /// A process closed its output.
    Closed,
    /// Someone asked the launcher to stop.
    Stop,
    /// These hosts have changed, of a job that follows them.
    Hosts(Vec<crate::run::Host>),
}

/// A process that was started.
pub struct Running {
    process: Process,
    child: Child,
    /// How it ended, once it has.
    pub status: Option<ExitStatus>,
    last: Arc<Mutex<VecDeque<String>>>,
}

/// Runs all processes until those that do not serve are done. The exit code of the job: 0, or that
/// of the process that failed first, which has been reported on standard error.
pub fn launch(processes: Vec<Process>) -> Result<u8> {
    let (events, inbox) = channel();
    watch_signals(events.clone())?;
    let mut running = Vec::new();
    for process in processes {
        match start(&process, &events) {
            Ok(started) => running.push(started),
            Err(e) => {
                end(&mut running, &inbox);
                return Err(e);
            }
        }
    }
    let mut stopped = false;
    let failed = loop {
        let event = inbox.recv_timeout(Duration::from_millis(50));
        stopped |= matches!(event, Ok(Event::Stop));
        let failed = reap(&mut running);
        let working = running.iter().any(|r| r.status.is_none() && !r.process.serves);
        if stopped || failed.is_some() || !working {
            break failed;
        }
    };
    // The report comes before others fail because of it, and before they are ended.
    if let Some(first) = failed {
        report(&running[first]);
    }
    end(&mut running, &inbox);
    Ok(match failed.and_then(|i| running[i].status) {
        Some(status) => code_of(status),
        None if stopped => 130,
        None => 0,
    })
}

/// Starts a process and passes on what it prints.
pub fn start(process: &Process, events: &Sender<Event>) -> Result<Running> {
    let mut command = match &process.host {
        None => {
            let mut command = Command::new(&process.program);
            command.args(&process.args).envs(process.env.iter().cloned());
            command
        }
        Some(host) => {
            let mut command = Command::new("ssh");
            // A terminal makes the far process end with the connection.
            command.args(["-tt", "-o", "BatchMode=yes", host, &remote_line(process)]);
            command
        }
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| {
        let text = format!("{}: cannot start {:?}: {e}", process.name, process.program);
        Error::new(
            if e.kind() == std::io::ErrorKind::NotFound {
                Code::NotFound
            } else {
                Code::Unavailable
            },
            text,
        )
    })?;
    let last = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(out) = child.stdout.take() {
        forward(out, process.label.clone(), false, last.clone(), events.clone())?;
    }
    if let Some(err) = child.stderr.take() {
        forward(err, process.label.clone(), true, last.clone(), events.clone())?;
    }
    Ok(Running { process: process.clone(), child, status: None, last })
}

/// What a shell on another host runs: the same directory, environment and program.
fn remote_line(process: &Process) -> String {
    let here = std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default();
    let mut line = format!("cd {} && exec env", quoted(&here));
    for (name, value) in &process.env {
        line += &format!(" {name}={}", quoted(value));
    }
    line += &format!(" {}", quoted(&process.program));
    process.args.iter().for_each(|a| line += &format!(" {}", quoted(a)));
    line
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Passes lines on, each with its label in front, from a thread of its own.
fn forward(
    from: impl Read + Send + 'static,
    label: String,
    errors: bool,
    last: Arc<Mutex<VecDeque<String>>>,
    events: Sender<Event>,
) -> Result<()> {
    let work = move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            let prefixed = match label.is_empty() {
                true => format!("{text}\n"),
                false => format!("[{label}] {text}\n"),
            };
            // A reader that is gone does not stop the job.
            let _ = match errors {
                true => std::io::stderr().write_all(prefixed.as_bytes()),
                false => std::io::stdout().write_all(prefixed.as_bytes()),
            };
            if errors {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                last.push_back(text.to_string());
                if last.len() > LAST_LINES {
                    last.pop_front();
                }
            }
            line.clear();
        }
        let _ = std::io::stdout().flush();
        let _ = events.send(Event::Closed);
    };
    let thread = std::thread::Builder::new().name("ff-output".into()).spawn(work);
    thread
        .map(|_| ())
        .map_err(|e| Error::new(Code::Internal, format!("cannot start a thread: {e}")))
}

/// Notes which processes have ended; the first that failed, if one has.
pub fn reap(running: &mut [Running]) -> Option<usize> {
    let mut failed: Option<usize> = None;
    for (i, r) in running.iter_mut().enumerate().filter(|(_, r)| r.status.is_none()) {
        let Ok(Some(status)) = r.child.try_wait() else { continue };
        r.status = Some(status);
        let bad = !status.success();
        // Of several at once, one that was killed is the likelier cause: the others complained.
        if bad && (failed.is_none() || status.signal().is_some()) {
            failed = Some(i);
        }
    }
    failed
}

/// Says on standard error how a process failed.
pub fn report(first: &Running) {
    let Running { process, child, status, last } = first;
    let how = match status.map(|s| (s.code(), s.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((_, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    };
    let host = process.host.as_deref().map(|h| format!(" on {h}")).unwrap_or_default();
    eprintln!(
        "ferroflow run: {} (process {}{host}) was the first to fail: it {how}",
        process.name,
        child.id()
    );
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    for line in last.iter() {
        eprintln!("    {line}");
    }
}

/// Asks a process to end.
pub fn ask_to_end(running: &Running) {
    signal(running, Signal::TERM);
}

fn signal(running: &Running, signal: Signal) {
    // Not reaped yet, so the number is still this process's.
    let pid = Pid::from_raw(running.child.id() as i32).filter(|_| running.status.is_none());
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// Asks what still runs to end, and after a while makes it.
pub fn end(running: &mut [Running], inbox: &Receiver<Event>) {
    let until = Instant::now() + GRACE;
    reap(running);
    running.iter().for_each(ask_to_end);
    while running.iter().any(|r| r.status.is_none()) && Instant::now() < until {
        let _ = inbox.recv_timeout(Duration::from_millis(20));
        reap(running);
    }
    running.iter().for_each(|r| signal(r, Signal::KILL));
    for r in running.iter_mut().filter(|r| r.status.is_none()) {
        r.status = r.child.wait().ok();
    }
}

/// The exit code a shell would give.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}

/// Turns SIGTERM and Ctrl-C into a stop of the job.
pub fn watch_signals(events: Sender<Event>) -> Result<()> {
    let problem =
        |e: std::io::Error| Error::new(Code::Internal, format!("cannot watch signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(problem)?;
    let work = move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut term) = signal(SignalKind::terminate()) else { return };
            let Ok(mut int) = signal(SignalKind::interrupt()) else { return };
            loop {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
                if events.send(Event::Stop).is_err() {
                    return;
                }
            }
        });
    };
    std::thread::Builder::new().name("ff-signals".into()).spawn(work).map(|_| ()).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(label: &str, script: &str, serves: bool) -> Process {
        Process {
            label: label.into(),
            name: format!("rank {label}"),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            serves,
            ..Process::default()
        }
    }

    #[test]
    fn a_job_ends_with_its_workers_and_takes_its_servers_along() {
        let job = vec![shell("ps", "sleep 1000", true), shell("worker", "exit 0", false)];
        assert_eq!(launch(job).unwrap(), 0);
    }

    #[test]
    fn the_first_failure_ends_the_others_and_gives_the_exit_code() {
        let job = vec![shell("0", "sleep 1000", false), shell("1", "exit 7", false)];
        assert_eq!(launch(job).unwrap(), 7);
        let killed = vec![shell("0", "kill -9 $$", false), shell("1", "sleep 1000", false)];
        assert_eq!(launch(killed).unwrap(), 137);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut process = shell("0", "", false);
        process.program = "no-such-program-anywhere".into();
        let e = launch(vec![process]).unwrap_err();
        assert_eq!(e.code(), Code::NotFound);
        assert!(e.message().contains("no-such-program-anywhere"));
    }

    #[test]
    fn words_reach_another_hosts_shell_as_they_are() {
        let mut process = shell("0", "echo 'a b'", false);
        process.env = vec![("X".into(), "it's".into())];
        let line = remote_line(&process);
        assert!(line.ends_with(r#" X='it'\''s' 'sh' '-c' 'echo '\''a b'\'''"#), "{line}");
    }
}
