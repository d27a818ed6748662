//! `cargo xtask digits`: runs `ferroflow train cnn` in every mode and through a failure of each
//! kind of task, and checks that it reaches the documented accuracy.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{self, Profile};
use crate::steps::{Failure, Result};

/// Train the digits CNN in every mode and through kills, and check its accuracy.
///
/// It runs with 1 and 2 workers, synchronously and asynchronously, and through SIGKILL of a worker
/// and of the parameter server.
#[derive(clap::Args)]
pub struct Args {
    /// The ferroflow command to run; without it, the release build is made and run
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Seed of data and initial values
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

/// The accuracy that the documentation of `ferroflow train cnn` states.
const STATED: f64 = 0.9;
/// The step at which a task is killed.
const MID_WAY: i64 = 200;
/// A time limit far above the time of any job, with kills.
const DEADLINE: Duration = Duration::from_secs(300);

/// The task to kill, by words of its command line.
type Victim = Option<(&'static str, &'static [&'static str])>;

pub fn run(args: &Args) -> Result {
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => binary::build(Profile::Release)?,
    };
    let worker: Victim = Some(("worker 1", &["--task", "1", "--ps"]));
    let ps: Victim = Some(("the ps", &["--job", "ps", "--task", "0"]));
    println!(
        "{:<8} {:<8} {:<10} {:>6} {:>9} {:>8}",
        "", "workers", "killed", "steps", "accuracy", "s"
    );
    let mut short = Vec::new();
    for how in ["sync", "async"] {
        for (workers, victim) in [(1, None), (2, None), (2, worker), (2, ps)] {
            let began = Instant::now();
            let (steps, accuracy) = train(&binary, args.seed, how, workers, victim)?;
            let killed = victim.map_or("", |(name, _)| name);
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "{how:<8} {workers:<8} {killed:<10} {steps:>6} {accuracy:>9.4} {seconds:>8.1}"
            );
            if accuracy < STATED {
                short.push(format!("{how} {workers} {killed}: {accuracy}"));
            }
        }
    }
    match short.is_empty() {
        true => Ok(()),
        false => Err(Failure(format!("below {STATED}: {}", short.join(", ")))),
    }
}

/// A job and its output, line by line. Dropping it kills the job.
struct Job {
    child: Child,
    lines: Receiver<String>,
    out: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.out);
    }
}

impl Job {
    fn start(binary: &Path, seed: u64, how: &str, workers: usize) -> Result<Job> {
        let out = std::env::temp_dir().join(format!("ferroflow-digits-{}", fastrand::u64(..)));
        let child = Command::new(binary)
            .args(["train", "cnn", &format!("--{how}"), "--json"])
            .args(["--workers", &workers.to_string(), "--seed", &seed.to_string()])
            .arg("--out")
            .arg(&out)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|e| Failure(format!("{}: {e}", binary.display())))?;
        let (tell, lines) = channel();
        let output = child.stdout.take().ok_or_else(|| Failure("no output".into()))?;
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
            lines.take_while(|line| tell.send(line.clone()).is_ok()).for_each(drop);
        });
        Ok(Job { child, lines, out })
    }

    fn failed(&mut self, what: &str) -> Failure {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_string(&mut said);
        }
        Failure(format!("{what}: {}", said.trim()))
    }

    /// Kills the process of the job whose command line has these words in sequence.
    fn kill(&mut self, words: &[&str]) -> Result {
        let leader = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").map_err(|e| Failure(format!("/proc: {e}")))?;
        for entry in processes.flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name));
            let (Ok(stat), Ok(line)) = (read("stat"), read("cmdline")) else { continue };
            let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
            let parent = after_name.split(' ').nth(1).unwrap_or_default();
            let arguments: Vec<&str> = line.split('\0').collect();
            if parent == leader && arguments.windows(words.len()).any(|w| w == words) {
                let process = entry.file_name().to_string_lossy().into_owned();
                let killed = Command::new("kill").args(["-KILL", &process]).status();
                return match killed {
                    Ok(status) if status.success() => Ok(()),
                    _ => Err(Failure(format!("kill -KILL {process} failed"))),
                };
            }
        }
        Err(self.failed(&format!("no process {words:?}")))
    }
}

/// The last global step of a job, and its accuracy on test data.
fn train(
    binary: &Path,
    seed: u64,
    how: &str,
    workers: usize,
    victim: Victim,
) -> Result<(i64, f64)> {
    let mut job = Job::start(binary, seed, how, workers)?;
    let deadline = Instant::now() + DEADLINE;
    let mut to_kill = victim;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = job.lines.recv_timeout(left) else {
            return Err(job.failed("the job ended without a result, or hangs"));
        };
        let json: Value =
            serde_json::from_str(&line).map_err(|e| Failure(format!("{line}: {e}")))?;
        if json["done"] == true {
            return match (json["global_step"].as_i64(), json["test_accuracy"].as_f64(), to_kill) {
                (_, _, Some((name, _))) => {
                    Err(Failure(format!("the job ended before {name} was killed")))
                }
                (Some(steps), Some(accuracy), None) => Ok((steps, accuracy)),
                _ => Err(Failure(format!("no result in {line}"))),
            };
        }
        if json["global_step"].as_i64().is_some_and(|step| step >= MID_WAY)
            && let Some((_, words)) = to_kill.take()
        {
            job.kill(words)?;
        }
    }
}
