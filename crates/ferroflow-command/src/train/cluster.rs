//! Trains with a cluster of processes on this machine: parameter servers and workers.

use super::Args;
use super::progress::{Point, TrainProgress};
use super::run::{Place, StopRequest, TrainOutcome, finish, train};
use crate::dashboard::JobBoard;
use crate::launch::Guard;
use crate::logging::log_is_of;
use crate::say::show;
use ferroflow::cluster::{BackgroundServer, ClusterSpec, ServerOptions, TfConfig, Trust};
use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("{what}: {e}"))
}

/// Processes with their names, by task.
type Children = Vec<(String, Child)>;

/// Restarts of killed tasks before the job fails.
const RESTARTS: usize = 5;

/// Interval at which the leader checks that all parameter servers are alive.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(200);

/// Time for worker 0 to write its last checkpoint, and for the other workers to exit.
const LAST_CHECKPOINT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(10);

/// The processes of a job on this machine.
struct Cluster<'a> {
    program: PathBuf,
    args: &'a Args,
    spec: String,
    servers: Children,
    workers: Children,
    guard: Guard,
    restarts: usize,
    /// Output lines with the number of their worker; `None` when a worker has closed its output.
    lines: mpsc::Sender<(usize, Option<String>)>,
    /// The board of the tasks; it outlives them.
    watched: &'a JobBoard,
}

impl Cluster<'_> {
    fn start_server(&self, task: usize) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["server", "--cluster", &self.spec, "--job", "ps"]);
        command.args(["--task", &task.to_string()]);
        command.envs(self.watched.env());
        command.env("FERROFLOW_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null());
        // Ctrl-C must reach this process alone, which then stops the others.
        command.process_group(0);
        let child = command.spawn().map_err(|e| failed("cannot start a parameter server", e))?;
        self.guard.watch(child.id());
        Ok(child)
    }

    fn start_worker(&self, task: usize) -> Result<Child> {
        let mut command = worker(&self.program, self.args, &self.spec, task);
        command.envs(self.watched.env());
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| failed("cannot start a worker", e))?;
        self.guard.watch(child.id());
        let lines = child.stdout.take().ok_or_else(|| failed("a worker", "has no output"))?;
        let sender = self.lines.clone();
        let read = move || {
            for line in BufReader::new(lines).lines().map_while(std::result::Result::ok) {
                if sender.send((task, Some(line))).is_err() {
                    return;
                }
            }
            let _ = sender.send((task, None));
        };
        let thread = std::thread::Builder::new().name(format!("worker-{task}"));
        thread.spawn(read).map_err(|e| failed("cannot start a thread", e))?;
        Ok(child)
    }

    /// Reports a killed task; fails if it must not be restarted.
    fn may_restart(
        &mut self,
        name: &str,
        status: ExitStatus,
        progress: &TrainProgress,
    ) -> Result<()> {
        use std::os::unix::process::ExitStatusExt;
        let Some(signal) = status.signal() else {
            return Err(failed(name, format!("failed ({status}); its message is above")));
        };
        self.restarts += 1;
        if self.restarts > RESTARTS {
            return Err(failed(
                name,
                format!("was killed by signal {signal}; giving up after {RESTARTS} restarts"),
            ));
        }
        let text = format!("{name} was killed by signal {signal}; restarting it");
        self.watched.board.note(text.as_str());
        progress.note(&text);
        Ok(())
    }

    /// Restarts parameter servers that were killed.
    fn restart_killed_servers(&mut self, progress: &TrainProgress) -> Result<()> {
        for task in 0..self.servers.len() {
            let (name, child) = &mut self.servers[task];
            if let Some(status) = child.try_wait().map_err(|e| failed(name, e))? {
                let (name, old) = (name.clone(), child.id());
                self.guard.forget(old);
                self.may_restart(&name, status, progress)?;
                self.servers[task].1 = self.start_server(task)?;
            }
        }
        Ok(())
    }

    /// Restarts a worker that was killed.
    fn restart_killed_worker(&mut self, task: usize, progress: &TrainProgress) -> Result<()> {
        let (name, child) = &mut self.workers[task];
        let status = child.wait().map_err(|e| failed(name, e))?;
        let (name, old) = (name.clone(), child.id());
        self.guard.forget(old);
        self.may_restart(&name, status, progress)?;
        self.workers[task].1 = self.start_worker(task)?;
        Ok(())
    }

    /// Waits a short time for the workers to exit. All have reported success, so exit codes are
    /// ignored.
    fn wait_for_exit(&mut self) {
        let until = Instant::now() + GRACE;
        let is_there = |(_, child): &mut (String, Child)| matches!(child.try_wait(), Ok(None));
        while self.workers.iter_mut().any(is_there) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGTERM to a worker. Worker 0 then writes a checkpoint.
    fn stop_worker(&self, task: usize) {
        send_sigterm(self.workers[task].1.id());
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        for (_, child) in self.workers.iter_mut().chain(&mut self.servers) {
            let _ = child.kill();
            let _ = child.wait();
            self.guard.forget(child.id());
        }
    }
}

fn send_sigterm(process: u32) {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Starts the cluster, shows its progress and prints the summary.
pub fn lead(args: &Args) -> Result<()> {
    args.check_backup(args.workers)?;
    let in_step = !args.asynchronous;
    let stop = StopRequest::on_signal()?;
    let (lines, received) = mpsc::channel::<(usize, Option<String>)>();
    let watched = JobBoard::start(args.dashboard.as_deref(), Some(args.out()))?;
    let mut cluster = Cluster {
        program: crate::own_program().map_err(|e| failed("cannot find this program", e))?,
        args,
        spec: free_cluster(args.ps, args.workers)?,
        servers: Children::new(),
        workers: Children::new(),
        guard: Guard::start(),
        restarts: 0,
        lines,
        watched: &watched,
    };
    let mut progress = TrainProgress::new(args.json, args.steps(), args.workers);
    progress.title(&format!(
        "training {} with {} ps and {} workers, {}",
        args.what(),
        args.ps,
        args.workers,
        match args.backup {
            _ if !in_step => "asynchronously".into(),
            0 => "synchronously".to_string(),
            n => format!("synchronously, {n} of them as backup"),
        }
    ));
    for task in 0..args.ps {
        let child = cluster.start_server(task)?;
        cluster.servers.push((format!("ps {task}"), child));
    }
    for task in 0..args.workers {
        let child = cluster.start_worker(task)?;
        cluster.workers.push((format!("worker {task}"), child));
    }
    let mut chief = None;
    let mut done = vec![false; args.workers];
    // Deadline for the workers to exit, once they were asked to.
    let mut until: Option<Instant> = None;
    while !done.iter().all(|d| *d) {
        if stop.is_set() && until.is_none() {
            until = Some(Instant::now() + LAST_CHECKPOINT);
            cluster.stop_worker(0);
        }
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
        let (task, line) = match received.recv_timeout(LIVENESS_INTERVAL) {
            Ok(line) => line,
            Err(_) => {
                cluster.restart_killed_servers(&progress)?;
                continue;
            }
        };
        let Some(line) = line else {
            // SIGTERM kills a worker that has not yet installed its signal handler.
            if until.is_none() && !done[task] {
                cluster.restart_killed_worker(task, &progress)?;
            } else if !done[task] {
                done[task] = true;
                let is_chief = task == 0;
                (1..args.workers).filter(|_| is_chief).for_each(|w| cluster.stop_worker(w));
            }
            continue;
        };
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        if json["done"].as_bool() == Some(true) {
            done[task] = true;
            if task == 0 {
                chief = Some(outcome(&json));
                // The job ends with its chief.
                until = Some(Instant::now() + GRACE);
                (1..args.workers).filter(|&w| !done[w]).for_each(|w| cluster.stop_worker(w));
            }
        } else if let Some((worker, point)) = Point::from_json(&json) {
            progress.show(worker, &point);
        }
    }
    progress.finish();
    let stragglers = watched.board.report();
    // Workers serve until their input closes, because a slow worker still needs the others.
    cluster.workers.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
    cluster.wait_for_exit();
    drop(cluster);
    let chief = chief.ok_or_else(|| match stop.is_set() {
        true => failed("interrupted", "worker 0 had no time to leave a checkpoint"),
        false => failed("worker 0", "ended without a result"),
    })?;
    finish(args, &chief, &progress, stop.is_set())?;
    stragglers.iter().for_each(|text| progress.note(text));
    if args.model == super::Model::Linear
        && !args.pin
        && !stop.is_set()
        && chief.step > chief.first_step
    {
        compare(args, &chief, &stop)?;
    }
    Ok(())
}

/// Trains on the same number of examples in this process alone, for comparison.
fn compare(args: &Args, cluster: &TrainOutcome, stop: &StopRequest) -> Result<()> {
    let replicas = if args.asynchronous { 1 } else { args.workers as i64 };
    let steps = (cluster.step - cluster.first_step) * replicas;
    let alone = train(args, &Place::alone(Vec::new(), None), steps, None, stop, |_| {})?;
    if stop.is_set() {
        return Ok(());
    }
    let examples = steps as usize * args.batch();
    if args.json {
        let json = serde_json::json!({"compare": {
            "cluster_seconds": cluster.seconds,
            "alone_seconds": alone.seconds,
            "examples": examples,
        }});
        show!("{json}");
    } else {
        show!(
            "compare: {:.2} s by the cluster, {:.2} s by one process alone, over {examples} examples",
            cluster.seconds,
            alone.seconds,
        );
    }
    Ok(())
}

fn worker(program: &Path, args: &Args, spec: &str, task: usize) -> Command {
    let mut command = Command::new(program);
    command.args(["train", args.model.name(), "--cluster", spec, "--task", &task.to_string()]);
    command.args(["--ps", &args.ps.to_string(), "--workers", &args.workers.to_string()]);
    command.args(["--steps", &args.steps().to_string(), "--batch", &args.batch().to_string()]);
    command.args(["--learning-rate", &args.learning_rate().to_string()]);
    command.args(["--seed", &args.seed.to_string()]);
    command.args(["--save-steps", &args.save_steps().to_string()]);
    command.arg("--out").arg(args.out());
    if let Some(data) = &args.data {
        command.arg("--data").arg(data);
    }
    if args.synthetic {
        command.arg("--synthetic");
    }
    if args.pin {
        command.args(["--core", &task.to_string()]);
    }
    if args.asynchronous {
        command.arg("--async");
    } else if args.backup > 0 {
        command.args(["--backup", &args.backup.to_string()]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A cluster specification with free ports of this machine.
pub fn free_cluster(ps: usize, workers: usize) -> Result<String> {
    // Hold each port until all are found, so that none is returned twice.
    let mut held = Vec::with_capacity(ps + workers);
    let mut addresses = Vec::with_capacity(ps + workers);
    for _ in 0..ps + workers {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| failed("no free port", e))?;
        let address = listener.local_addr().map_err(|e| failed("no free port", e))?;
        addresses.push(address.to_string());
        held.push(listener);
    }
    let (ps, workers) = addresses.split_at(ps);
    Ok(format!("ps={};worker={}", ps.join(","), workers.join(",")))
}

/// Runs one worker: starts its server and trains on it.
pub fn work(args: &Args) -> Result<()> {
    let (Some(spec), Some(task)) = (&args.cluster, args.task) else {
        return Err(failed("worker", "missing --cluster or --task"));
    };
    // The servers of the cluster have these credentials, too.
    let (cluster, trust) = (ClusterSpec::parse(spec)?, Trust::from_env()?);
    let options = ServerOptions { trust, ..ServerOptions::new(cluster, "worker", task) };
    let metrics = options.metrics.clone();
    log_is_of(&metrics);
    let server = BackgroundServer::start(options)?;
    let place = Place {
        server: Some(server),
        job: "worker".into(),
        worker: task as usize,
        task: task as usize,
        workers: args.workers,
        ps: args.ps,
        in_step: !args.asynchronous,
        gpus: Vec::new(),
        mixed_precision: None,
    };
    train_and_report(args, &place, &metrics, &StopRequest::on_signal()?)?;
    // Other workers may still need this server. The leader closes this input when all are done.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    Ok(())
}

/// Runs one task of a cluster that another launcher has started.
pub fn take_part(args: &Args, config: &TfConfig) -> Result<()> {
    config.ensure_serves()?;
    let count = |job: &str| config.cluster.tasks().filter(|(name, _, _)| *name == job).count();
    let (ps, chiefs) = (count("ps"), count("chief"));
    let options = ServerOptions::of(config);
    let metrics = options.metrics.clone();
    log_is_of(&metrics);
    let server = BackgroundServer::start(options)?;
    let worker = match config.job.as_str() {
        "ps" => {
            eprintln!("ready {}", server.target());
            return server.join();
        }
        "chief" => 0,
        "worker" => chiefs + config.task as usize,
        other => {
            let text = format!("TF_CONFIG: train has no job {other:?}: use ps, worker and chief");
            return Err(Error::new(Code::InvalidArgument, text));
        }
    };
    if ps == 0 {
        let text = "TF_CONFIG: the cluster has no parameter server (job ps) for the variables";
        return Err(Error::new(Code::InvalidArgument, text));
    }
    let place = Place {
        server: Some(server),
        job: config.job.clone(),
        worker,
        task: config.task as usize,
        workers: chiefs + count("worker"),
        ps,
        in_step: !args.asynchronous,
        gpus: Vec::new(),
        mixed_precision: None,
    };
    train_and_report(args, &place, &metrics, &StopRequest::on_signal()?)
}

/// Trains and prints progress and result, one JSON object per line.
fn train_and_report(
    args: &Args,
    place: &Place,
    metrics: &TaskMetrics,
    stop: &StopRequest,
) -> Result<()> {
    let report = |point: &Point| {
        metrics.report_scalar("loss", point.global, f64::from(point.loss));
        show!("{}", point.to_json(place.worker));
    };
    let o = train(args, place, args.steps(), Some(&args.out()), stop, report)?;
    let pairs = |list: &[(&'static str, f32)]| -> Vec<serde_json::Value> {
        list.iter().map(|(name, v)| serde_json::json!([name, v])).collect()
    };
    let score: Vec<(&'static str, f32)> = o.score.into_iter().collect();
    show!(
        "{}",
        serde_json::json!({
            "done": true,
            "step": o.step,
            "first_step": o.first_step,
            "seconds": o.seconds,
            "checkpoint": o.checkpoint,
            "stale": o.stale,
            "shown": pairs(&o.shown),
            "score": pairs(&score),
        })
    );
    Ok(())
}

/// Names of the values that workers report.
const NAMES: [&str; 6] = ["W", "b", "accuracy", "mean", "test loss", "test accuracy"];

/// Parses the last line of a worker.
fn outcome(json: &serde_json::Value) -> TrainOutcome {
    let pairs = |key: &str| -> Vec<(&'static str, f32)> {
        let list = json[key].as_array().cloned().unwrap_or_default();
        let pair = |v: &serde_json::Value| {
            let name = NAMES.iter().find(|n| Some(**n) == v[0].as_str())?;
            Some((*name, v[1].as_f64().unwrap_or(f64::NAN) as f32))
        };
        list.iter().filter_map(pair).collect()
    };
    TrainOutcome {
        step: json["step"].as_i64().unwrap_or(0),
        first_step: json["first_step"].as_i64().unwrap_or(0),
        seconds: json["seconds"].as_f64().unwrap_or(0.0),
        shown: pairs("shown"),
        score: pairs("score").into_iter().next(),
        checkpoint: json["checkpoint"].as_str().map(str::to_string),
        stale: json["stale"].as_i64(),
    }
}
