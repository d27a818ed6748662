//! In-graph replication: one client with one graph, which has a copy of the model on each worker.
//! The workers are servers without a program of their own.

use super::Args;
use super::cluster::{failed, free_cluster};
use super::data::Draw;
use super::model::{Built, Source, build, optimizer};
use super::progress::{Point, TrainProgress};
use super::run::{StopRequest, TrainOutcome, evaluate, finish};
use crate::launch::Guard;
use ferroflow::cluster::ClusterSpec;
use ferroflow::prelude::*;
use ferroflow::train::GradAndVar;
use ferroflow::train::hooks::{NanGuard, StopAtStep};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The servers of the cluster. Dropping it ends them.
struct Servers {
    children: Vec<Child>,
    guard: Guard,
}

impl Servers {
    fn start(args: &Args, spec: &str) -> Result<Servers> {
        let program = crate::own_program().map_err(|e| failed("cannot find this program", e))?;
        let mut servers = Servers { children: Vec::new(), guard: Guard::start() };
        let tasks = (0..args.ps).map(|task| ("ps", task));
        for (job, task) in tasks.chain((0..args.workers).map(|task| ("worker", task))) {
            let mut command = Command::new(&program);
            command.args(["server", "--cluster", spec, "--job", job, "--task", &task.to_string()]);
            if args.pin && job == "worker" {
                command.args(["--core", &task.to_string()]);
            }
            command.env("FERROFLOW_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null());
            // Ctrl-C must reach this process alone, which then ends the others.
            command.process_group(0);
            let child = command.spawn().map_err(|e| failed("cannot start a server", e))?;
            servers.guard.watch(child.id());
            servers.children.push(child);
        }
        Ok(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
            self.guard.forget(child.id());
        }
    }
}

/// The copies of the model, and the ops that train them.
struct Towers {
    graph: Graph,
    source: Source,
    built: Vec<Built>,
    /// One op for all copies, or one for each.
    train: Vec<Operation>,
}

impl Towers {
    fn new(args: &Args) -> Result<Towers> {
        let graph = Graph::new();
        graph.set_seed(args.seed);
        let g = &graph;
        let source = Source::of(args.model, args.data.as_deref(), args.synthetic)?;
        let ps = u32::try_from(args.ps).unwrap_or(u32::MAX);
        let on_worker =
            |task: usize| ReplicaDeviceSetter::new(ps).worker(&format!("/job:worker/task:{task}"));
        let optimizer = optimizer(args.model, args.learning_rate());
        let (mut built, mut gradients) = (Vec::new(), Vec::<Vec<GradAndVar>>::new());
        let step = g.device(on_worker(0), || g.global_step());
        for task in 0..args.workers {
            // All copies share the variables of the first one.
            g.device(on_worker(task), || {
                g.variable_scope("model", Reuse::Auto, || {
                    let tower = build(args.model, &source, g);
                    let variables = g.trainable_variables();
                    gradients.push(optimizer.compute_gradients(&tower.loss, &variables));
                    built.push(tower);
                });
            });
        }
        let train = g.device(on_worker(0), || match args.asynchronous {
            false => {
                let mean = average_gradients(&gradients);
                vec![optimizer.apply_gradients(g, &mean, Some(&step))]
            }
            // Each copy has its own optimizer state.
            true => {
                let apply = |own: &Vec<GradAndVar>| optimizer.apply_gradients(g, own, Some(&step));
                gradients.iter().map(apply).collect()
            }
        });
        g.check()?;
        Ok(Towers { graph, source, built, train })
    }
}

/// Starts the servers, trains as their one client, and prints the summary.
pub fn lead(args: &Args) -> Result<()> {
    let stop = StopRequest::on_signal()?;
    let spec = free_cluster(args.ps, args.workers)?;
    let _servers = Servers::start(args, &spec)?;
    let mut progress = TrainProgress::new(args.json, args.steps(), 1);
    progress.title(&format!(
        "training {} with {} ps and {} workers in one graph, {}",
        args.what(),
        args.ps,
        args.workers,
        if args.asynchronous { "asynchronously" } else { "synchronously" }
    ));
    let towers = Towers::new(args)?;
    let cluster = ClusterSpec::parse(&spec)?;
    let target = format!("grpc://{}", cluster.address("worker", 0)?);
    let training = MonitoredTraining::new(&towers.graph, &towers.train[0]);
    let training = training.dir(args.out()).save_steps(args.save_steps());
    let training = training.hook(StopAtStep(args.steps()));
    let training = training.hook(NanGuard::new(&towers.built[0].loss));
    let mut session = training.open(move |g| Session::connect(&target, g))?;
    let first_step = session.global_step();
    let started = Instant::now();
    match args.asynchronous {
        false => in_step(args, &towers, &mut session, &stop, &mut progress)?,
        true => each_alone(args, &towers, &session, &stop, &mut progress)?,
    }
    let seconds = started.elapsed().as_secs_f64();
    progress.finish();
    let (shown, score) = evaluate(&session, &towers.built[0], &towers.source)?;
    let step = session.session()?.run(towers.graph.global_step().scalar::<i64>())?;
    let checkpoint = session.close()?;
    let outcome = TrainOutcome { step, first_step, seconds, shown, score, checkpoint, stale: None };
    finish(args, &outcome, &progress, stop.is_set())
}

fn draw_of(args: &Args, worker: usize) -> Draw {
    Draw::new(args.seed as u64 * 1000 + worker as u64)
}

/// One step trains all copies with the mean of their gradients.
fn in_step(
    args: &Args,
    towers: &Towers,
    session: &mut MonitoredSession,
    stop: &StopRequest,
    progress: &mut TrainProgress,
) -> Result<()> {
    let started = Instant::now();
    let mut draws: Vec<Draw> = (0..args.workers).map(|worker| draw_of(args, worker)).collect();
    let losses: Vec<Scalar<f32>> = towers.built.iter().map(|tower| tower.loss.scalar()).collect();
    let mut local = 0;
    while session.global_step() < args.steps() && !session.should_stop() && !stop.is_set() {
        let mut feeds = Vec::new();
        for (tower, draw) in towers.built.iter().zip(&mut draws) {
            let (x, y) = towers.source.batch(draw, args.batch())?;
            feeds.extend([(tower.input.name(), x), (tower.target.name(), y)]);
        }
        let losses = session.train_fed(feeds.as_slice(), &losses)?;
        local += 1;
        let loss = losses.iter().sum::<f32>() / losses.len() as f32;
        let (global, seconds) = (session.global_step(), started.elapsed().as_secs_f64());
        progress.show(0, &Point { local, global, loss, seconds, shown: Vec::new() });
    }
    Ok(())
}

/// Starts a thread for each copy, which runs its own steps in the same session.
fn each_alone(
    args: &Args,
    towers: &Towers,
    session: &MonitoredSession,
    stop: &StopRequest,
    progress: &mut TrainProgress,
) -> Result<()> {
    let (started, last) = (Instant::now(), args.steps());
    let done = AtomicI64::new(session.global_step());
    let session = session.session()?;
    let step = towers.graph.global_step();
    let (tell, told) = mpsc::channel::<Point>();
    std::thread::scope(|scope| {
        let work = |worker: usize| {
            let (tell, done) = (tell.clone(), &done);
            let (tower, train) = (&towers.built[worker], &towers.train[worker]);
            let step = step.scalar::<i64>();
            scope.spawn(move || -> Result<()> {
                let mut draw = draw_of(args, worker);
                let mut local = 0;
                while done.load(Ordering::Relaxed) < last && !stop.is_set() {
                    let (x, y) = towers.source.batch(&mut draw, args.batch())?;
                    let feeds = [(&tower.input, x), (&tower.target, y)];
                    let wanted = (tower.loss.scalar::<f32>(), train);
                    let (loss, ()) = session.run_fed(feeds, wanted)?;
                    let global = session.run(&step)?;
                    done.fetch_max(global, Ordering::Relaxed);
                    local += 1;
                    let seconds = started.elapsed().as_secs_f64();
                    let point = Point { local, global, loss, seconds, shown: Vec::new() };
                    if tell.send(point).is_err() {
                        return Ok(());
                    }
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..args.workers).map(work).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if let Ok(point) = told.recv_timeout(Duration::from_millis(50)) {
                progress.show(0, &point);
            }
        }
        told.try_iter().for_each(|point| progress.show(0, &point));
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(failed("a worker", "its thread panicked")))
        })
    })
}
