//! Starts the processes of a job, forwards their output, and ends them together.

mod descriptors;
pub mod guard;
mod output;
mod remote;
mod stop;

pub use guard::Guard;
pub use output::{OutputLog, tell};
pub use remote::RemoteShell;
pub use stop::{SAME_SIGNAL, StopReason, watch_signals};

use ferroflow::{Code, Error, Result};
use output::{Echo, Printed, Stream, forward};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// One process of a job.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Prefix of each output line; no prefix if empty.
    pub label: String,
    /// Its name in reports.
    pub name: String,
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The host it runs on, through a [`RemoteShell`]; this host if `None`.
    pub host: Option<String>,
    /// A server: the launcher stops it when the other processes are done, without counting a
    /// failure.
    pub serves: bool,
    /// Keeps its last lines for the dashboard.
    pub log: OutputLog,
}

/// Time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);
/// Time to wait for the output of a process after its exit. A child that outlives the process may
/// keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The largest pipe of an unprivileged process on Linux.
const LARGEST_PIPE: usize = 1 << 20;

pub enum JobEvent {
    /// The output of a process has ended.
    Closed,
    /// The job must end.
    Stop(StopReason),
    /// New host list of an elastic job, or why it could not be read.
    Hosts(Result<Vec<crate::run::Host>>),
    /// New number of parameter servers of an elastic job.
    Ps(usize),
}

/// A started process.
pub struct Running {
    process: Process,
    child: Child,
    /// Its exit status, once it has exited.
    pub status: Option<ExitStatus>,
    printed: Arc<Printed>,
    guard: Arc<Guard>,
}

/// Runs all processes until those that are not servers have exited. Returns the exit code of the
/// job: 0, or that of the first process that failed, which is also reported on standard error.
pub fn launch(processes: Vec<Process>, shell: &RemoteShell, guard: Guard) -> Result<u8> {
    let guard = Arc::new(guard);
    let (events, inbox) = channel();
    watch_signals(events.clone())?;
    descriptors::raise(processes.len());
    let mut running = Vec::new();
    for (index, process) in processes.into_iter().enumerate() {
        match start(process, index, shell, &events, &guard) {
            Ok(started) => running.push(started),
            Err(e) => {
                end(&mut running, &inbox);
                return Err(e);
            }
        }
    }
    let mut stopped = None;
    let failed = loop {
        if let Ok(JobEvent::Stop(stop)) = inbox.recv_timeout(Duration::from_millis(50)) {
            stopped = Some(stop);
        }
        let failed = reap(&mut running);
        let working = running.iter().any(|r| r.status.is_none() && !r.process.serves);
        if stopped.is_some() || failed.is_some() || !working {
            break failed;
        }
    };
    // Report the first failure before other processes fail because of it.
    if let Some(first) = failed {
        hear_out(&running[first..=first]);
        report(&running[first]);
    } else if let Some(stop) = &stopped {
        tell(stop);
    }
    let code = match failed.and_then(|i| running[i].status) {
        Some(status) => code_of(status),
        None => stopped.map_or(0, |stop| stop.code()),
    };
    Ok(finish(&mut running, &inbox, code))
}

impl Running {
    /// Whether more of its output may arrive.
    pub fn is_open(&self) -> bool {
        self.printed.is_open()
    }
}

/// Why a program does not start.
pub fn cannot_start(program: &OsStr, error: &std::io::Error) -> String {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        ErrorKind::NotFound if is_path => format!(
            "there is no program {program:?}, or the interpreter in its first line is missing"
        ),
        ErrorKind::NotFound => format!(
            "there is no program {program:?} in PATH; write ./NAME for one in the current folder"
        ),
        ErrorKind::PermissionDenied => format!(
            "{program:?} is not a program that may run: is it executable, or should an \
             interpreter such as python run it?"
        ),
        _ => format!("cannot start {program:?}: {error}"),
    }
}

/// Starts a process and forwards its output.
pub fn start(
    process: Process,
    index: usize,
    shell: &RemoteShell,
    events: &Sender<JobEvent>,
    guard: &Arc<Guard>,
) -> Result<Running> {
    let mut command = match &process.host {
        None => {
            let mut command = Command::new(&process.program);
            command.args(&process.args).envs(process.env.iter().cloned());
            command
        }
        Some(host) => shell.command(host, &remote::line_of(&process)),
    };
    let secrets: Vec<String> = match &process.host {
        Some(_) => {
            remote::secrets_of(&process).iter().map(|(_, value)| value.to_string()).collect()
        }
        None => Vec::new(),
    };
    command.stdin(if secrets.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Its own process group: Ctrl-C reaches the launcher alone, which then ends whole groups.
    command.process_group(0);
    let mut child = command.spawn().map_err(|e| {
        let program = command.get_program();
        let text = match &process.host {
            None => format!("{}: {}", process.name, cannot_start(program, &e)),
            Some(host) => {
                let name = &process.name;
                format!("{name} on {host}: cannot start {program:?}, the remote shell (--rsh): {e}")
            }
        };
        let is_absent = e.kind() == ErrorKind::NotFound;
        Error::new(if is_absent { Code::NotFound } else { Code::Unavailable }, text)
    })?;
    guard.watch(child.id());
    if let Some(mut input) = child.stdin.take() {
        let lines: String = secrets.iter().map(|secret| format!("{secret}\n")).collect();
        // Ignore the error: a remote shell that takes no input fails soon and says why.
        let _ = input.write_all(lines.as_bytes());
    }
    let printed = Arc::new(Printed::new(2, process.log.clone()));
    // Ignore the error: the launcher has stopped listening.
    let passed_on = || {
        let events = events.clone();
        move |result: std::io::Result<()>| {
            let event = result
                .map_or_else(|e| JobEvent::Stop(StopReason::Output(e)), |()| JobEvent::Closed);
            let _ = events.send(event);
        }
    };
    if let Some(out) = child.stdout.take() {
        let echo = Echo(secrets.clone());
        forward(out, Stream::Output, &process.label, index, printed.clone(), echo, passed_on())?;
    }
    if let Some(errors) = child.stderr.take() {
        let echo = Echo(secrets);
        forward(errors, Stream::Errors, &process.label, index, printed.clone(), echo, passed_on())?;
    }
    Ok(Running { process, child, status: None, printed, guard: guard.clone() })
}

/// Collects processes that have exited and returns the first failed one. Kills its process group.
pub fn reap(running: &mut [Running]) -> Option<usize> {
    running.iter().filter(|r| has_failed(r)).for_each(make_end);
    note_ended(running)
}

/// Whether a process has failed and is not reaped yet, so that its process id is still valid.
fn has_failed(running: &Running) -> bool {
    let pid = Pid::from_raw(running.child.id() as i32).filter(|_| running.status.is_none());
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let ended = pid.and_then(|pid| waitid(WaitId::Pid(pid), how).ok().flatten());
    ended.is_some_and(|ended| ended.exit_status() != Some(0))
}

/// Like [`reap`], for processes that got SIGTERM: their children got it too and may still be
/// exiting.
pub fn note_ended(running: &mut [Running]) -> Option<usize> {
    let mut failed: Option<usize> = None;
    for (i, r) in running.iter_mut().enumerate().filter(|(_, r)| r.status.is_none()) {
        let Ok(Some(status)) = r.child.try_wait() else { continue };
        r.status = Some(status);
        r.guard.forget(r.child.id());
        let bad = !status.success();
        // Among several failures, a killed process is the likelier cause of the others.
        if bad && (failed.is_none() || status.signal().is_some()) {
            failed = Some(i);
        }
    }
    failed
}

/// Waits a short time until all output has been forwarded.
pub fn hear_out(ended: &[Running]) {
    let until = Instant::now() + LAST_WORDS;
    while ended.iter().any(Running::is_open) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reports on standard error how a process failed.
pub fn report(first: &Running) {
    let Running { process, child, status, printed, .. } = first;
    let how = match status.map(|s| (s.code(), s.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((_, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    };
    let host = process.host.as_deref().map(|h| format!(" on {h}")).unwrap_or_default();
    let mut text =
        format!("{} (process {}{host}) was the first to fail: it {how}", process.name, child.id());
    printed.last_lines().iter().for_each(|line| text += &format!("\n    {line}"));
    tell(text);
}

/// Sends SIGTERM to the group of a process.
pub fn ask_to_end(running: &Running) {
    signal(running, Signal::TERM);
}

/// Sends SIGKILL to the group of a process that ignored SIGTERM.
pub fn make_end(running: &Running) {
    signal(running, Signal::KILL);
}

fn signal(running: &Running, signal: Signal) {
    // Not reaped yet, so the process id is still valid.
    let pid = Pid::from_raw(running.child.id() as i32).filter(|_| running.status.is_none());
    if let Some(pid) = pid {
        let _ = kill_process_group(pid, signal);
    }
}

/// Ends the running processes and waits until all output is forwarded. Returns `code`, or a failure
/// if output was lost.
pub fn finish(running: &mut [Running], inbox: &Receiver<JobEvent>, code: u8) -> u8 {
    let lost = end(running, inbox);
    if code != 0 {
        hear_out(running);
        return code;
    }
    match lost.or_else(|| hear_all(running, inbox)) {
        Some(stop) => {
            tell(&stop);
            stop.code()
        }
        None => code,
    }
}

/// Waits until all output has been forwarded, even to a slow reader, unless the job is stopped.
/// Children that outlive a process may print forever, so it reads at most one pipe's capacity.
fn hear_all(ended: &[Running], inbox: &Receiver<JobEvent>) -> Option<StopReason> {
    let bytes = || ended.iter().map(|r| r.printed.bytes()).sum::<usize>();
    let first = bytes();
    let mut last = first;
    loop {
        hear_out(ended);
        let stop = inbox.try_iter().find_map(|event| match event {
            JobEvent::Stop(stop) => Some(stop),
            _ => None,
        });
        let now = bytes();
        let moves = now != last || ended.iter().any(|r| r.printed.is_busy());
        if stop.is_some() || !moves || now - first > LARGEST_PIPE * ended.len() {
            return stop;
        }
        last = now;
    }
}

fn lost_output(event: JobEvent) -> Option<StopReason> {
    match event {
        JobEvent::Stop(stop @ StopReason::Output(_)) => Some(stop),
        _ => None,
    }
}

/// Sends SIGTERM to the running processes, and SIGKILL after a while or at a second stop request.
/// Returns the reason if output was lost.
fn end(running: &mut [Running], inbox: &Receiver<JobEvent>) -> Option<StopReason> {
    let mut lost = None;
    let begun = Instant::now();
    let mut until = begun + GRACE;
    reap(running);
    running.iter().for_each(ask_to_end);
    while running.iter().any(|r| r.status.is_none()) && Instant::now() < until {
        match inbox.recv_timeout(Duration::from_millis(20)) {
            Ok(JobEvent::Stop(stop)) if stop.is_urgent() && begun.elapsed() >= SAME_SIGNAL => {
                until = Instant::now();
            }
            Ok(event) => lost = lost.or_else(|| lost_output(event)),
            Err(_) => {}
        }
        note_ended(running);
    }
    running.iter().for_each(make_end);
    for r in running.iter_mut().filter(|r| r.status.is_none()) {
        r.status = r.child.wait().ok();
        r.guard.forget(r.child.id());
    }
    lost
}

/// The exit code that a shell would report.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
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

    fn run(job: Vec<Process>) -> Result<u8> {
        launch(job, &RemoteShell::default(), Guard::default())
    }

    #[test]
    fn a_job_ends_with_its_workers_and_takes_its_servers_along() {
        let job = vec![shell("ps", "sleep 1000", true), shell("worker", "exit 0", false)];
        assert_eq!(run(job).unwrap(), 0);
    }

    #[test]
    fn the_first_failure_ends_the_others_and_gives_the_exit_code() {
        let job = vec![shell("0", "sleep 1000", false), shell("1", "exit 7", false)];
        assert_eq!(run(job).unwrap(), 7);
        let killed = vec![shell("0", "kill -9 $$", false), shell("1", "sleep 1000", false)];
        assert_eq!(run(killed).unwrap(), 137);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut process = shell("0", "", false);
        process.program = "no-such-program-anywhere".into();
        let e = run(vec![process]).unwrap_err();
        assert_eq!(e.code(), Code::NotFound);
        assert!(e.message().contains("no-such-program-anywhere"));
    }

    #[test]
    fn what_a_process_started_ends_with_it() {
        let script = "sleep 1000 & echo $! > \"$1\"; wait";
        let file = std::env::temp_dir().join(format!("ferroflow-launch-{}", std::process::id()));
        let mut ps = shell("ps", script, true);
        ps.args.extend(["sh".into(), file.display().to_string()]);
        let wait = format!("until [ -s '{}' ]; do :; done", file.display());
        assert_eq!(run(vec![ps, shell("worker", &wait, false)]).unwrap(), 0);
        let pid = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_gone(&pid);
    }

    #[test]
    fn what_a_process_that_fails_had_started_ends_with_it() {
        let file = std::env::temp_dir().join(format!("ferroflow-orphan-{}", std::process::id()));
        let mut rank = shell("0", "sleep 1000 & echo $! > \"$1\"; kill -9 $$", false);
        rank.args.extend(["sh".into(), file.display().to_string()]);
        assert_eq!(run(vec![rank]).unwrap(), 137);
        let pid = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_gone(&pid);
    }

    /// Waits until a process is gone, or is a zombie that its new parent has not reaped yet.
    fn assert_gone(pid: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            stat.is_ok_and(|s| !s.contains(") Z "))
        };
        while is_there() {
            assert!(Instant::now() < until, "process {pid} is still there");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
