//! Polls the script that prints the current hosts of an elastic job.

use super::hosts::{Host, invalid, parse};
use crate::launch::JobEvent;
use ferroflow::{Code, Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::convert::Infallible;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two runs of the script.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of one run.
const LIMIT: Duration = Duration::from_secs(10);
/// Limit on its output in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Runs the script periodically until dropped.
pub struct Discovery {
    over: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Discovery {
    /// Sends an event for the first answer, and for each that differs from the one before: the
    /// hosts, or the error. Hosts that the script does not name any more have no slots.
    pub fn start(script: String, events: Sender<JobEvent>, every: Duration) -> Result<Discovery> {
        let (over, is_over) = channel();
        let work = move || follow(&script, &events, every, &is_over);
        let thread = std::thread::Builder::new().name("ff-discovery".into()).spawn(work);
        let problem = |e| Error::new(Code::Internal, format!("cannot start a thread: {e}"));
        Ok(Discovery { over: Some(over), thread: Some(thread.map_err(problem)?) })
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(script: &str, events: &Sender<JobEvent>, every: Duration, over: &Receiver<Infallible>) {
    let mut known: Option<Vec<Host>> = None;
    let (mut trouble, mut known_ps) = (None, None);
    loop {
        let answer = ask(script, over);
        let news = match answer {
            Ok(Found { hosts: mut found, ps }) => {
                trouble = None;
                if let Some(count) = ps.filter(|_| ps != known_ps) {
                    known_ps = ps;
                    if events.send(JobEvent::Ps(count)).is_err() {
                        return;
                    }
                }
                let is_gone = |k: &&Host| found.iter().all(|f| f.login() != k.login());
                let gone: Vec<Host> = known.iter().flatten().filter(is_gone).cloned().collect();
                found.extend(gone.into_iter().map(|host| Host { slots: 0, ..host }));
                let is_new = known.as_ref() != Some(&found);
                known = Some(found.clone());
                is_new.then_some(Ok(found))
            }
            Err(e) => {
                let is_new = trouble.as_deref() != Some(e.message());
                trouble = Some(e.message().to_string());
                is_new.then_some(Err(e))
            }
        };
        if news.is_some_and(|news| events.send(JobEvent::Hosts(news)).is_err()) {
            return;
        }
        if over.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// An answer of the script.
struct Found {
    hosts: Vec<Host>,
    /// The number of parameter servers, if the answer has one.
    ps: Option<usize>,
}

impl Found {
    /// One `HOST` or `HOST:SLOTS` per line, and `ps COUNT` for the parameter servers.
    fn parse(text: &str) -> Result<Found> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let (mut hosts, mut ps) = (Vec::new(), None);
        for line in lines {
            let Some(count) = line.strip_prefix("ps ") else {
                hosts.push(line);
                continue;
            };
            let count = count.trim().parse().ok().filter(|&count| count > 0);
            let wrong = || invalid(format!("{line:?}: expected `ps COUNT`, at least 1"));
            ps = Some(count.ok_or_else(wrong)?);
        }
        let hosts = if hosts.is_empty() { Vec::new() } else { parse(&hosts.join(","))? };
        Ok(Found { hosts, ps })
    }
}

/// Runs the script and parses its answer. Kills the script's process group at the time limit, and
/// at the end.
fn ask(script: &str, over: &Receiver<Infallible>) -> Result<Found> {
    let problem = |text: String| Error::new(Code::Unavailable, format!("{script}: {text}"));
    let mut command = Command::new(script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|e| problem(e.to_string()))?;
    let said = answer_of(&mut child);
    let until = Instant::now() + LIMIT;
    let mut status = None;
    let text = loop {
        if status.is_none() {
            status = child.try_wait().map_err(|e| problem(e.to_string()))?;
        }
        // A child that outlives the script may keep its output open.
        let text = status.and_then(|_| said.try_recv().ok());
        if let Some(text) = text {
            break text;
        }
        let is_over = over.recv_timeout(Duration::from_millis(5)) != Err(RecvTimeoutError::Timeout);
        if is_over || Instant::now() >= until {
            kill(&mut child, status.is_some());
            let what = if status.is_some() { "close its output" } else { "end" };
            return Err(problem(format!("did not {what} within {LIMIT:?}")));
        }
    };
    if let Some(status) = status.filter(|s| !s.success()) {
        return Err(problem(format!("failed ({status})")));
    }
    let text = text.map_err(|e| problem(e.to_string()))?;
    Found::parse(&text)
}

/// Reads the output while the script runs, so that it never blocks on a full pipe.
fn answer_of(child: &mut Child) -> Receiver<std::io::Result<String>> {
    let (tell, said) = channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = out.take(LONGEST_ANSWER).read_to_string(&mut text);
            let _ = tell.send(read.map(|_| text));
        });
    }
    said
}

fn kill(child: &mut Child, is_reaped: bool) {
    // After it is reaped, its process id may be reused.
    if let Some(group) = Pid::from_raw(child.id() as i32).filter(|_| !is_reaped) {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A script in a folder of its own, which it runs in.
    struct Script(PathBuf);

    impl Script {
        fn new(name: &str, text: &str) -> Script {
            let dir = format!("ferroflow-discovery-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(dir);
            std::fs::create_dir_all(&dir).unwrap();
            // Written by another process: a descriptor open here may leak into a child of another
            // test, and a file open for writing cannot be executed.
            let write =
                r#"printf '#!/bin/sh\ncd "%s"\n%s\n' "$1" "$2" > "$1/s" && chmod +x "$1/s""#;
            let written = Command::new("sh").args(["-c", write, "sh"]).arg(&dir).arg(text).status();
            assert!(written.unwrap().success());
            Script(dir)
        }

        fn path(&self) -> String {
            self.0.join("s").display().to_string()
        }
    }

    impl Drop for Script {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_script_names_the_hosts() {
        let (_over, over) = channel();
        let script = Script::new("names", "echo hosta:2; echo; echo hostb");
        let found = ask(&script.path(), &over).unwrap();
        assert_eq!(found.hosts, [Host::new("hosta", 2), Host::new("hostb", 1)]);
        assert!(ask("/no/such/script", &over).is_err());
    }

    #[test]
    fn a_script_says_how_many_parameter_servers_there_are() {
        let found = Found::parse("hosta:2\n ps 3\n").unwrap();
        assert_eq!((found.hosts, found.ps), (vec![Host::new("hosta", 2)], Some(3)));
        assert_eq!(Found::parse("psych:2").unwrap().ps, None);
        for wrong in ["ps 0", "ps x", "ps -1"] {
            assert!(Found::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_repeated_failure_is_reported_once_and_missing_hosts_have_no_slots() {
        let text = "echo >> asked; case $(wc -l < asked) in
            1) echo a:1; echo b:1;; 2|3|4) exit 3;; *) echo b:1;; esac";
        let script = Script::new("trouble", text);
        let (events, inbox) = channel();
        let _asking = Discovery::start(script.path(), events, Duration::ZERO).unwrap();
        let next = || match inbox.recv_timeout(Duration::from_secs(60)) {
            Ok(JobEvent::Hosts(news)) => news,
            _ => panic!("no news"),
        };
        assert_eq!(next().unwrap().len(), 2);
        assert!(next().unwrap_err().message().ends_with("failed (exit status: 3)"));
        assert_eq!(next().unwrap(), [Host::new("b", 1), Host::new("a", 0)]);
    }

    #[test]
    fn a_script_that_hangs_ends_with_what_asks_it() {
        let script = Script::new("hangs", "sleep 1000 & echo $! > new; mv new pid; wait");
        let (events, _inbox) = channel();
        let asking = Discovery::start(script.path(), events, Duration::ZERO).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let pid = loop {
            match std::fs::read_to_string(script.0.join("pid")) {
                Ok(pid) => break pid,
                Err(_) => assert!(Instant::now() < until, "the script was not asked"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(asking);
        // It got SIGKILL and may need a moment to exit.
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        while stat().is_ok_and(|s| !s.contains(") Z ")) {
            assert!(Instant::now() < until, "process {pid} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
