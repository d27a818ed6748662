//! Training by a cluster on this machine: parameter servers and workers, real processes.

use super::Args;
use super::progress::{Point, Progress};
use super::run::{Outcome, Place, finish, stop_on_signal, train};
use ferroflow::{ClusterSpec, Code, Error, Result, Server, ServerOptions, default_catalog};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// How long servers get to end when they are asked to.
const GRACE: Duration = Duration::from_secs(5);

fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("{what}: {e}"))
}

/// Processes that end with this one.
#[derive(Default)]
struct Children(Vec<(String, Child)>);

impl Drop for Children {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the cluster, shows how it gets on, and sums up.
pub fn lead(args: &Args) -> Result<()> {
    let in_step = !args.asynchronous;
    let spec = free_cluster(args.ps, args.workers)?;
    let program = std::env::current_exe().map_err(|e| failed("cannot find this program", e))?;
    let stop = stop_on_signal()?;
    let mut progress = Progress::new(args.json, args.steps(), args.workers);
    progress.title(&format!(
        "training {} with {} ps and {} workers, {}",
        args.model.name(),
        args.ps,
        args.workers,
        if in_step { "in step" } else { "asynchronously" }
    ));
    let mut servers = Children::default();
    for task in 0..args.ps {
        let mut command = Command::new(&program);
        command.args(["server", "--cluster", &spec, "--job", "ps", "--task", &task.to_string()]);
        command.env("FERROFLOW_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null());
        // Ctrl-C is for the workers: they leave a checkpoint of what the servers hold.
        command.process_group(0);
        let child = command.spawn().map_err(|e| failed("cannot start a parameter server", e))?;
        servers.0.push((format!("ps {task}"), child));
    }
    // Lines of the workers; none when one has closed its output.
    let (tell, told) = mpsc::channel::<(usize, Option<String>)>();
    let mut workers = Children::default();
    for task in 0..args.workers {
        let mut child = worker(&program, args, &spec, task)
            .spawn()
            .map_err(|e| failed("cannot start a worker", e))?;
        let lines = child.stdout.take().ok_or_else(|| failed("a worker", "has no output"))?;
        let tell = tell.clone();
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
        workers.0.push((format!("worker {task}"), child));
    }
    drop(tell);
    let mut chief = None;
    let mut done = vec![false; args.workers];
    for (task, line) in told {
        let Some(line) = line else {
            if !done[task] {
                // The others would wait for it; they end with this process.
                progress.finish();
                return Err(failed(&format!("worker {task}"), "failed; its message is above"));
            }
            continue;
        };
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        if json["done"].as_bool() == Some(true) {
            done[task] = true;
            if task == 0 {
                chief = Some(outcome(&json));
            }
            if done.iter().all(|d| *d) {
                // Workers serve until their input ends: one that is slow still needs the others.
                workers.0.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
            }
        } else if let Some((worker, point)) = Point::from_json(&json) {
            progress.show(worker, &point);
        }
    }
    progress.finish();
    for (name, child) in &mut workers.0 {
        let status = child.wait().map_err(|e| failed(name, e))?;
        if !status.success() {
            return Err(failed(name, format!("failed ({status}); its message is above")));
        }
    }
    workers.0.clear();
    drop(servers);
    let chief = chief.ok_or_else(|| failed("worker 0", "ended without a result"))?;
    let interrupted = stop.load(Ordering::Acquire);
    finish(args, &chief, &progress, interrupted)?;
    if args.model == super::Model::Linear
        && !interrupted
        && !args.json
        && chief.step > chief.first_step
    {
        compare(args, &chief)?;
    }
    Ok(())
}

/// The same number of examples, in this process alone.
fn compare(args: &Args, cluster: &Outcome) -> Result<()> {
    let replicas = if args.asynchronous { 1 } else { args.workers as i64 };
    let steps = (cluster.step - cluster.first_step) * replicas;
    let place = Place { target: None, worker: 0, workers: 1, ps: 0, in_step: false };
    let alone = train(args, &place, steps, None, &stop_on_signal()?, |_| {})?;
    println!(
        "compare: {:.2} s by the cluster, {:.2} s by one process alone, over {} examples",
        cluster.seconds,
        alone.seconds,
        steps as usize * args.batch()
    );
    Ok(())
}

fn worker(program: &std::path::Path, args: &Args, spec: &str, task: usize) -> Command {
    let mut command = Command::new(program);
    command.args(["train", args.model.name(), "--cluster", spec, "--task", &task.to_string()]);
    command.args(["--ps", &args.ps.to_string(), "--workers", &args.workers.to_string()]);
    command.args(["--steps", &args.steps().to_string(), "--batch", &args.batch().to_string()]);
    command.args(["--seed", &args.seed.to_string()]);
    command.args(["--save-steps", &args.save_steps.to_string()]);
    command.arg("--out").arg(args.out());
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
    let target = serve(spec, task)?;
    let place = Place {
        target: Some(target),
        worker: task as usize,
        workers: args.workers,
        ps: args.ps,
        in_step: !args.asynchronous,
    };
    let stop = stop_on_signal()?;
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

/// Serves one worker task until this process ends; returns where.
fn serve(spec: &str, task: u32) -> Result<String> {
    let options = ServerOptions::new(ClusterSpec::parse(spec)?, "worker", task);
    let (tell, told) = mpsc::channel();
    let body = move || {
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(e) => {
                let _ = tell.send(Err(failed("cannot start network threads", e)));
                return;
            }
        };
        runtime.block_on(async {
            match Server::bind(options, default_catalog()).await {
                Ok(server) => {
                    let _ = tell.send(Ok(server.target().to_string()));
                    server.serve(std::future::pending()).await;
                }
                Err(e) => {
                    let _ = tell.send(Err(e));
                }
            }
        });
    };
    let thread = std::thread::Builder::new().name("ff-server".into());
    thread.spawn(body).map_err(|e| failed("cannot start a thread", e))?;
    told.recv_timeout(GRACE).map_err(|e| failed("the server did not start", e))?
}
