//! `cargo xtask soak`: synchronous training while tasks are killed and restarted.

mod course;
mod task;

use crate::binary::{self, Profile};
use crate::paths;
use crate::steps::{self, Failure, Result, time_text};
use course::Course;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use task::{Cluster, Task};

/// Train a cluster synchronously while random tasks are killed and restarted.
///
/// Parameter servers are `ferroflow server`s, workers are `ferroflow train` with checkpoints. Fails
/// when training hangs, when a task ends by itself, when the loss does not fall, or when a task
/// that ran for five minutes (see --spare) leaks memory, file descriptors or threads. Reports the
/// resources of all tasks.
#[derive(clap::Args)]
pub struct Args {
    /// How long to train
    #[arg(long, value_name = "M", default_value_t = 30.0)]
    minutes: f64,

    /// Seconds between two kills; 0 kills no task
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    kill_every: f64,

    /// Seconds until a killed task is restarted
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    away: f64,

    /// Seconds without a step after which a running worker counts as hung
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    hang_after: f64,

    /// Parameter servers
    #[arg(long, value_name = "P", default_value_t = 2)]
    ps: usize,

    /// Workers
    #[arg(long, value_name = "W", default_value_t = 2)]
    workers: usize,

    /// The job of `ferroflow train`
    #[arg(long, default_value = "mlp")]
    model: String,

    /// Learning rate; small, so that the loss still falls at the end
    #[arg(long, value_name = "RATE", default_value_t = 1e-6)]
    learning_rate: f64,

    /// Seed of the order of kills
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// A task that is never killed, such as ps:0, to find leaks; may be repeated
    #[arg(long, value_name = "JOB:N")]
    spare: Vec<String>,

    /// With TLS: every task has a certificate of the job
    #[arg(long)]
    tls: bool,

    /// The command to test, instead of the release build
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A message of a task.
enum Heard {
    Line(String),
    /// Its output has ended; most likely the task has, too.
    Closed,
}

/// Time between two progress lines.
const REPORT: Duration = Duration::from_secs(10);

pub fn run(args: &Args) -> Result {
    if args.ps == 0 || args.workers == 0 {
        return Err(Failure("--ps and --workers must be at least 1".into()));
    }
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    let (length, hang) = (seconds(args.minutes * 60.0), seconds(args.hang_after));
    let program = match &args.program {
        Some(program) => paths::root().join(program),
        None => binary::build(Profile::Release)?,
    };
    let dir = paths::target().join("soak").join(std::process::id().to_string());
    let failed = |what: &str, e: std::io::Error| Failure(format!("{what}: {e}"));
    std::fs::create_dir_all(&dir).map_err(|e| failed("cannot make a folder", e))?;
    let spec = spec(args)?;
    let credentials = match args.tls {
        false => None,
        true => {
            let folder = dir.join("certs");
            let mut certs = Command::new(&program);
            certs.args(["certs", "--cluster", &spec, "--out"]).arg(&folder);
            steps::run(&mut certs)?;
            Some(folder)
        }
    };
    let cluster = Cluster { program, dir, spec, credentials, args_of_train: train(args) };
    println!(
        "training {} in step with {} ps and {} workers for {}, a kill every {} s; logs in {}",
        args.model,
        args.ps,
        args.workers,
        time_text(length),
        args.kill_every,
        paths::shown(&cluster.dir)
    );

    let (tell, told) = channel();
    let ps = (0..args.ps).map(|i| Task::new("ps", i));
    let mut tasks: Vec<Task> =
        ps.chain((0..args.workers).map(|i| Task::new("worker", i))).collect();
    for (i, task) in tasks.iter_mut().enumerate() {
        task.start(&cluster, i, &tell)?;
    }
    if let Some(unknown) = args.spare.iter().find(|id| !tasks.iter().any(|t| t.id() == **id)) {
        return Err(Failure(format!("--spare {unknown}: there is no such task")));
    }
    let mut random = fastrand::Rng::with_seed(args.seed);
    let mut course = Course::default();
    let mut problems: Vec<String> = Vec::new();
    let began = Instant::now();
    let mut next_kill = (args.kill_every > 0.0).then(|| began + seconds(args.kill_every));
    let mut next_report = began + REPORT;
    let mut next_sample = began;
    let mut kills = 0;
    while began.elapsed() < length && problems.is_empty() {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok((i, life, Heard::Line(line))) => {
                let task: &mut Task = &mut tasks[i];
                if task.is_life(life) && course.take(&line, began.elapsed()) {
                    task.stepped();
                }
            }
            Ok((_, _, Heard::Closed)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = Instant::now();
        for (i, task) in tasks.iter_mut().enumerate() {
            if let Some(how) = task.ended_by_itself() {
                problems.push(format!("{} ended by itself: {how}", task.name()));
            }
            if task.is_due(now) {
                task.start(&cluster, i, &tell)?;
            }
            if let Some(silent) = task.silence().filter(|s| *s > hang) {
                problems.push(format!("{} hangs: no step for {}", task.name(), time_text(silent)));
            }
        }
        if now >= next_sample {
            tasks.iter_mut().for_each(Task::sample);
            next_sample = now + Duration::from_secs(1);
        }
        if next_kill.is_some_and(|at| now >= at) {
            let may_die = |task: &Task| task.is_alive() && !args.spare.contains(&task.id());
            let living: Vec<usize> = (0..tasks.len()).filter(|i| may_die(&tasks[*i])).collect();
            if let Some(i) = random.choice(living) {
                tasks[i].kill(now + seconds(args.away));
                kills += 1;
            }
            next_kill = Some(now + seconds(args.kill_every));
        }
        if now >= next_report {
            println!("{:>11}  {kills} kills  {}", time_text(began.elapsed()), course.now());
            next_report = now + REPORT;
        }
    }
    println!("\n{kills} kills in {}; {}", time_text(began.elapsed()), course.summary());
    tasks.iter_mut().for_each(Task::sample);
    Task::print_table(&tasks);
    // Workers first: the chief writes a last checkpoint of the parameter servers' variables.
    let (ps, workers) = tasks.split_at_mut(args.ps);
    for tasks in [workers, ps] {
        tasks.iter_mut().for_each(Task::ask_to_end);
        problems.extend(tasks.iter_mut().filter_map(|task| task.end().err()));
    }
    problems.extend(course.problem());
    problems.extend(tasks.iter().filter_map(Task::growth));
    if problems.is_empty() {
        let _ = std::fs::remove_dir_all(&cluster.dir);
        println!("no hang; the loss falls; no leaks");
        return Ok(());
    }
    Err(Failure(format!("{}\nLogs: {}", problems.join("\n"), paths::shown(&cluster.dir))))
}

/// Free addresses of this machine.
fn spec(args: &Args) -> Result<String> {
    let count = args.ps + args.workers;
    let bound: std::io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let addresses = bound.and_then(|all| {
        all.iter().map(|l| Ok(l.local_addr()?.to_string())).collect::<std::io::Result<Vec<_>>>()
    });
    let addresses = addresses.map_err(|e| Failure(format!("no free port: {e}")))?;
    let (ps, workers) = addresses.split_at(args.ps);
    Ok(format!("ps={};worker={}", ps.join(","), workers.join(",")))
}

fn train(args: &Args) -> Vec<String> {
    let words =
        ["train", &args.model, "--steps", "1000000000", "--save-steps", "20", "--batch", "32"];
    let numbers = [
        ("--ps", args.ps.to_string()),
        ("--workers", args.workers.to_string()),
        ("--learning-rate", args.learning_rate.to_string()),
    ];
    let numbers = numbers.into_iter().flat_map(|(flag, number)| [flag.to_owned(), number]);
    words.iter().map(|w| w.to_string()).chain(numbers).collect()
}
