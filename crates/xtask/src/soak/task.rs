//! A task of the cluster: its processes, one after another, and the resources they use.

use super::Heard;
use crate::steps::{Failure, Result, time_text};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The settings of all tasks.
pub struct Cluster {
    pub program: PathBuf,
    pub dir: PathBuf,
    pub spec: String,
    /// The folder with the credentials of all tasks, if they use TLS.
    pub credentials: Option<PathBuf>,
    pub args_of_train: Vec<String>,
}

/// The time that a task may take to end after SIGTERM. A worker may wait for another that has
/// ended, until its step times out.
const FAREWELL: Duration = Duration::from_secs(45);

/// Age of a process at its first measurement: it has allocated its working memory by then.
const SETTLED: Duration = Duration::from_secs(5);

/// A process of this age shows whether it leaks.
const LONG: Duration = Duration::from_secs(300);

pub struct Task {
    job: &'static str,
    index: usize,
    child: Option<Child>,
    life: u32,
    started: Instant,
    last_step: Option<Instant>,
    /// When to restart it.
    due: Option<Instant>,
    /// The resources of the running process, and of the oldest one.
    now: Span,
    longest: Span,
}

/// The resources of a process, at each measurement since the first.
#[derive(Clone, Default)]
struct Span {
    length: Duration,
    used: Vec<Usage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Usage {
    rss_kb: u64,
    fds: u64,
    threads: u64,
}

impl Task {
    pub fn new(job: &'static str, index: usize) -> Task {
        Task {
            job,
            index,
            child: None,
            life: 0,
            started: Instant::now(),
            last_step: None,
            due: None,
            now: Span::default(),
            longest: Span::default(),
        }
    }

    pub fn name(&self) -> String {
        format!("{} {}", self.job, self.index)
    }

    /// Its name on the command line.
    pub fn id(&self) -> String {
        format!("{}:{}", self.job, self.index)
    }

    /// Starts its next process. `number` identifies its messages.
    pub fn start(
        &mut self,
        cluster: &Cluster,
        number: usize,
        tell: &Sender<(usize, u32, Heard)>,
    ) -> Result {
        let failed =
            |e: std::io::Error| Failure(format!("cannot start {} {}: {e}", self.job, self.index));
        let index = self.index.to_string();
        let mut command = Command::new(&cluster.program);
        match self.job {
            "ps" => command.args([
                "server",
                "--cluster",
                &cluster.spec,
                "--job",
                "ps",
                "--task",
                &index,
            ]),
            _ => command
                .args(&cluster.args_of_train)
                .args(["--cluster", &cluster.spec, "--task", &index, "--out"])
                .arg(cluster.dir.join("model")),
        };
        if let Some(folder) = &cluster.credentials {
            let own = folder.join(format!("{}-{}", self.job, self.index));
            command.env("FERROFLOW_CREDENTIALS", own);
        }
        let log = cluster.dir.join(format!("{}-{}.log", self.job, self.index));
        let log = File::options().create(true).append(true).open(log).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().map_err(failed)?;
        self.life += 1;
        if let Some(out) = child.stdout.take() {
            let (tell, life) = (tell.clone(), self.life);
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(std::result::Result::ok) {
                    if tell.send((number, life, Heard::Line(line))).is_err() {
                        return;
                    }
                }
                let _ = tell.send((number, life, Heard::Closed));
            });
        }
        self.child = Some(child);
        self.started = Instant::now();
        self.last_step = None;
        self.due = None;
        self.longest = self.longest().clone();
        self.now = Span::default();
        Ok(())
    }

    pub fn is_alive(&self) -> bool {
        self.child.is_some()
    }

    pub fn is_life(&self, life: u32) -> bool {
        self.life == life && self.is_alive()
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| now >= at)
    }

    /// Notes that it has made a step.
    pub fn stepped(&mut self) {
        self.last_step = Some(Instant::now());
    }

    /// Time since the last step of a running worker.
    pub fn silence(&self) -> Option<Duration> {
        let is_worker = self.job == "worker" && self.is_alive();
        is_worker.then(|| self.last_step.unwrap_or(self.started).elapsed())
    }

    /// Kills it; it is restarted at `due`.
    pub fn kill(&mut self, due: Instant) {
        self.sample();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.due = Some(due);
    }

    /// Its exit status, if it ended by itself.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status.to_string())
    }

    /// Sends SIGTERM.
    pub fn ask_to_end(&mut self) {
        let Some(child) = &mut self.child else { return };
        // A worker writes a checkpoint, then waits until its input is closed.
        drop(child.stdin.take());
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    }

    /// Waits for its end.
    pub fn end(&mut self) -> std::result::Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            if let Ok(Some(_)) = child.try_wait() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(format!("{} did not end within {FAREWELL:?} of SIGTERM", self.name()))
    }

    /// Measures its resources.
    pub fn sample(&mut self) {
        let Some(usage) = self.child.as_ref().and_then(|child| Usage::of(child.id())) else {
            return;
        };
        self.now.length = self.started.elapsed();
        if self.now.length >= SETTLED {
            self.now.used.push(usage);
        }
    }

    /// Its oldest process so far.
    fn longest(&self) -> &Span {
        if self.now.length > self.longest.length { &self.now } else { &self.longest }
    }

    /// Describes a leak, if there is one.
    pub fn growth(&self) -> Option<String> {
        let span = self.longest();
        let growing = (span.length >= LONG).then(|| span.growth())??;
        Some(format!("{}: {growing} in {}", self.name(), time_text(span.length)))
    }

    /// Prints the resources of each task's oldest process.
    pub fn print_table(tasks: &[Task]) {
        println!("oldest process of each task, at its first and last measurement:");
        println!("  task       starts  age          RSS (MB)        fds      threads");
        for task in tasks {
            let Span { length, used } = task.longest();
            let [first, .., last] = &used[..] else {
                println!("  {:<10} {:>5}   never ran for {SETTLED:?}", task.name(), task.life);
                continue;
            };
            let mb = |kb: u64| kb as f64 / 1024.0;
            println!(
                "  {:<10} {:>5}   {:<12} {:>5.1} -> {:<6.1} {:>3} -> {:<4} {:>3} -> {}",
                task.name(),
                task.life,
                time_text(*length),
                mb(first.rss_kb),
                mb(last.rss_kb),
                first.fds,
                last.fds,
                first.threads,
                last.threads
            );
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Span {
    /// The resources that have grown from the second quarter to the last. Compares medians, because
    /// a restarted task briefly has connections of both processes.
    fn growth(&self) -> Option<String> {
        let quarter = self.used.len() / 4;
        let (second, last) =
            (&self.used[quarter..2 * quarter], &self.used[self.used.len() - quarter..]);
        let middle = |of: fn(&Usage) -> u64, part: &[Usage]| {
            let mut all: Vec<u64> = part.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        };
        let of: [(&str, fn(&Usage) -> u64, u64); 3] = [
            ("KB of memory", |u| u.rss_kb, 10 << 10),
            ("file descriptors", |u| u.fds, 5),
            ("threads", |u| u.threads, 5),
        ];
        of.iter().find_map(|(what, of, slack)| {
            let (before, after) = (middle(*of, second), middle(*of, last));
            let most = before + before / 10 + slack;
            (after > most).then(|| format!("{before} -> {after} {what}"))
        })
    }
}

impl Usage {
    fn of(pid: u32) -> Option<Usage> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|l| l.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
        Some(Usage { rss_kb: number("VmRSS:")?, fds, threads: number("Threads:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_distinguished_from_short_peaks() {
        let span = |threads: fn(u64) -> u64| {
            let usage = |i| Usage { rss_kb: 50 << 10, fds: 20, threads: threads(i) };
            Span { length: LONG, used: (0..400).map(usage).collect() }
        };
        assert_eq!(span(|i| 4 + 30 * u64::from(i % 10 == 0)).growth(), None);
        let grows = span(|i| 4 + i / 10).growth().unwrap();
        assert!(grows.ends_with("threads"), "{grows}");
        assert_eq!(Span::default().growth(), None);
    }

    #[test]
    fn a_process_is_measured() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_kb > 100 && usage.fds > 0 && usage.threads > 0);
        assert!(Usage::of(u32::MAX).is_none());
    }
}
