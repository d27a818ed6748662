//! Training by a cluster on this machine: parameter servers and workers, real processes.

use super::Args;
use super::progress::{Point, Progress};
use super::run::{Outcome, Place, Stop, finish, train};
use crate::launch::Guard;
use ferroflow::{BackgroundServer, ClusterSpec, Code, Error, Result, ServerOptions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("{what}: {e}"))
}

/// Processes with their names, by task.
type Children = Vec<(String, Child)>;

/// How often a task that was killed is started again.
const RESTARTS: usize = 5;

/// How often one looks whether all parameter servers are there.
const LOOK: Duration = Duration::from_millis(200);

/// How long workers have to end when they are asked to. The first leaves a checkpoint.
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
    /// Lines of the workers, by number; none when one has closed its output.
    tell: mpsc::Sender<(usize, Option<String>)>,
}

impl Cluster<'_> {
    fn start_server(&self, task: usize) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["server", "--cluster", &self.spec, "--job", "ps"]);
        command.args(["--task", &task.to_string()]);
        command.env("FERROFLOW_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null());
        // Ctrl-C is for this process, which asks the others to end in their turn.
        command.process_group(0);
        let child = command.spawn().map_err(|e| failed("cannot start a parameter server", e))?;
        self.guard.watch(child.id());
        Ok(child)
    }

    fn start_worker(&self, task: usize) -> Result<Child> {
        let mut command = worker(&self.program, self.args, &self.spec, task);
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| failed("cannot start a worker", e))?;
        self.guard.watch(child.id());
        let lines = child.stdout.take().ok_or_else(|| failed("a worker", "has no output"))?;
        let tell = self.tell.clone();
        let read = move || {
            for line in BufReader::new(lines).lines().map_while(std::result::Result::ok) {
                if tell.send((task, Some(line))).is_err() {
                    return;
                }
            }
            let _ = tell.send((task, None));
        };
        let thread = std::thread::Builder::new().name(format!("worker-{task}"));
        thread.spawn(read).map_err(|e| failed("cannot start a thread", e))?;
        Ok(child)
    }

    /// Notes that a task was killed, and whether it may be started again.
    fn may_restart(&mut self, name: &str, status: ExitStatus, progress: &Progress) -> Result<()> {
        use std::os::unix::process::ExitStatusExt;
        let Some(signal) = status.signal() else {
            return Err(failed(name, format!("failed ({status}); its message is above")));
        };
        self.restarts += 1;
        if self.restarts > RESTARTS {
            return Err(failed(name, format!("was killed by signal {signal}, once too often")));
        }
        progress.note(&format!("{name} was killed by signal {signal}; it is started again"));
        Ok(())
    }

    /// Starts parameter servers again that were killed.
    fn look_after_servers(&mut self, progress: &Progress) -> Result<()> {
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

    /// Starts a worker again that was killed.
    fn look_after_worker(&mut self, task: usize, progress: &Progress) -> Result<()> {
        let (name, child) = &mut self.workers[task];
        let status = child.wait().map_err(|e| failed(name, e))?;
        let (name, old) = (name.clone(), child.id());
        self.guard.forget(old);
        self.may_restart(&name, status, progress)?;
        self.workers[task].1 = self.start_worker(task)?;
        Ok(())
    }

    /// Waits for the workers, but not long: each has said that it is done, so how it ends is no matter.
    fn hear_out(&mut self) {
        let until = Instant::now() + GRACE;
        let is_there = |(_, child): &mut (String, Child)| matches!(child.try_wait(), Ok(None));
        while self.workers.iter_mut().any(is_there) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks a worker to end: the first leaves a checkpoint.
    fn stop_worker(&self, task: usize) {
        ask_to_end(self.workers[task].1.id());
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

fn ask_to_end(process: u32) {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Starts the cluster, shows how it gets on, and sums up.
pub fn lead(args: &Args) -> Result<()> {
    let in_step = !args.asynchronous;
    let stop = Stop::on_signal()?;
    let (tell, told) = mpsc::channel::<(usize, Option<String>)>();
    let mut cluster = Cluster {
        program: std::env::current_exe().map_err(|e| failed("cannot find this program", e))?,
        args,
        spec: free_cluster(args.ps, args.workers)?,
        servers: Children::new(),
        workers: Children::new(),
        guard: Guard::start(),
        restarts: 0,
        tell,
    };
    let mut progress = Progress::new(args.json, args.steps(), args.workers);
    progress.title(&format!(
        "training {} with {} ps and {} workers, {}",
        args.what(),
        args.ps,
        args.workers,
        if in_step { "in step" } else { "asynchronously" }
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
    // Once workers are asked to end: by when they must have.
    let mut until: Option<Instant> = None;
    while !done.iter().all(|d| *d) {
        if stop.is_set() && until.is_none() {
            until = Some(Instant::now() + LAST_CHECKPOINT);
            cluster.stop_worker(0);
        }
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
        let (task, line) = match told.recv_timeout(LOOK) {
            Ok(told) => told,
            Err(_) => {
                cluster.look_after_servers(&progress)?;
                continue;
            }
        };
        let Some(line) = line else {
            // One that is asked to end before it listens for that is ended by it.
            if until.is_none() && !done[task] {
                cluster.look_after_worker(task, &progress)?;
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
                // Nobody goes on without the chief.
                until = Some(Instant::now() + GRACE);
                (1..args.workers).filter(|&w| !done[w]).for_each(|w| cluster.stop_worker(w));
            }
        } else if let Some((worker, point)) = Point::from_json(&json) {
            progress.show(worker, &point);
        }
    }
    progress.finish();
    // Workers serve until their input ends: one that was slow still needed the others.
    cluster.workers.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
    cluster.hear_out();
    drop(cluster);
    let chief = chief.ok_or_else(|| match stop.is_set() {
        true => failed("interrupted", "worker 0 had no time to leave a checkpoint"),
        false => failed("worker 0", "ended without a result"),
    })?;
    finish(args, &chief, &progress, stop.is_set())?;
    if args.model == super::Model::Linear && !stop.is_set() && chief.step > chief.first_step {
        compare(args, &chief, &stop)?;
    }
    Ok(())
}

/// The same number of examples, in this process alone.
fn compare(args: &Args, cluster: &Outcome, stop: &Stop) -> Result<()> {
    let replicas = if args.asynchronous { 1 } else { args.workers as i64 };
    let steps = (cluster.step - cluster.first_step) * replicas;
    let alone = train(args, &Place::alone(), steps, None, stop, |_| {})?;
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
        println!("{json}");
    } else {
        println!(
            "compare: {:.2} s by the cluster, {:.2} s by one process alone, over {examples} examples",
            cluster.seconds, alone.seconds,
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
    if args.asynchronous {
        command.arg("--async");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A cluster on ports of this machine that nobody uses.
fn free_cluster(ps: usize, workers: usize) -> Result<String> {
    // All are held until all are found, so that none comes twice.
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

/// One worker: a server of its own, and training on it.
pub fn work(args: &Args) -> Result<()> {
    let (Some(spec), Some(task)) = (&args.cluster, args.task) else {
        return Err(failed("worker", "which one?"));
    };
    let options = ServerOptions::new(ClusterSpec::parse(spec)?, "worker", task);
    let server = BackgroundServer::start(options)?;
    let place = Place {
        server: Some(server),
        worker: task as usize,
        workers: args.workers,
        ps: args.ps,
        in_step: !args.asynchronous,
    };
    let stop = Stop::on_signal()?;
    let tell = |point: &Point| println!("{}", point.to_json(task as usize));
    let o = train(args, &place, args.steps(), Some(&args.out()), &stop, tell)?;
    let pairs = |list: &[(&'static str, f32)]| -> Vec<serde_json::Value> {
        list.iter().map(|(name, v)| serde_json::json!([name, v])).collect()
    };
    let score: Vec<(&'static str, f32)> = o.score.into_iter().collect();
    println!(
        "{}",
        serde_json::json!({
            "done": true,
            "step": o.step,
            "first_step": o.first_step,
            "seconds": o.seconds,
            "checkpoint": o.checkpoint,
            "shown": pairs(&o.shown),
            "score": pairs(&score),
        })
    );
    // Others may still need this server; the leader closes our input when all are done.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    Ok(())
}

/// The names a worker's numbers may have.
const NAMES: [&str; 6] = ["W", "b", "accuracy", "mean", "test loss", "test accuracy"];

/// What a worker's last line says.
fn outcome(json: &serde_json::Value) -> Outcome {
    let pairs = |key: &str| -> Vec<(&'static str, f32)> {
        let list = json[key].as_array().cloned().unwrap_or_default();
        let pair = |v: &serde_json::Value| {
            let name = NAMES.iter().find(|n| Some(**n) == v[0].as_str())?;
            Some((*name, v[1].as_f64().unwrap_or(f64::NAN) as f32))
        };
        list.iter().filter_map(pair).collect()
    };
    Outcome {
        step: json["step"].as_i64().unwrap_or(0),
        first_step: json["first_step"].as_i64().unwrap_or(0),
        seconds: json["seconds"].as_f64().unwrap_or(0.0),
        shown: pairs("shown"),
        score: pairs("score").into_iter().next(),
        checkpoint: json["checkpoint"].as_str().map(str::to_string),
    }
}
