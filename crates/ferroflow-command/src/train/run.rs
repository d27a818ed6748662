//! The training loop, the same in this process and in a worker of a cluster.

use super::data::Draw;
use super::loss_chart;
use super::model::{Built, Replicas, Source, Trainer, build, trainer};
use super::progress::{Point, TrainProgress};
use super::{Args, NarrowFloat};
use crate::dashboard::LocalPage;
use ferroflow::cluster::BackgroundServer;
use ferroflow::gpu::Gpu;
use ferroflow::prelude::*;
use ferroflow::train::hooks::{NanGuard, StepCounter, StopAtStep, SummarySaver};
use ferroflow_metrics::TaskMetrics;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than any step of these models takes. A step that waits for another worker can exceed it.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// The role of this process in the job.
#[derive(Clone)]
pub struct Place {
    /// The server of this process to open a session on; `None` trains without a server.
    pub server: Option<BackgroundServer>,
    /// The job of this worker: `worker` or `chief`.
    pub job: String,
    /// The number among all workers, the chief first.
    pub worker: usize,
    /// The index in its job.
    pub task: usize,
    pub workers: usize,
    pub ps: usize,
    pub in_step: bool,
    /// GPUs of a process without a server.
    pub gpus: Vec<Arc<dyn Gpu>>,
    /// The type that the GPUs compute with where that is safe.
    pub mixed_precision: Option<DType>,
}

impl Place {
    /// One process without a cluster.
    pub fn alone(gpus: Vec<Arc<dyn Gpu>>, mixed_precision: Option<DType>) -> Place {
        Place {
            server: None,
            job: "worker".into(),
            worker: 0,
            task: 0,
            workers: 1,
            ps: 0,
            in_step: false,
            gpus,
            mixed_precision,
        }
    }

    /// Runs `build` with variables on the parameter servers and the rest on this worker.
    fn scope<R>(&self, g: &Graph, build: impl FnOnce() -> R) -> R {
        if self.server.is_none() {
            return build();
        }
        let ps = u32::try_from(self.ps).unwrap_or(u32::MAX);
        g.device(ReplicaDeviceSetter::new(ps).worker(&self.device()), build)
    }

    fn device(&self) -> String {
        format!("/job:{}/task:{}", self.job, self.task)
    }

    fn open(&self, g: &Graph) -> Result<Session> {
        match &self.server {
            None => {
                let (gpus, mixed_precision) = (self.gpus.clone(), self.mixed_precision);
                let options = LocalOptions { gpus, mixed_precision, ..LocalOptions::default() };
                Session::local_with(g, &options)
            }
            Some(server) => {
                // This session must not wait for the other workers.
                let session = server.session(g, &["/job:ps", &self.device()])?;
                Ok(session.with_timeout(STEP_TIMEOUT))
            }
        }
    }
}

/// The result of training.
pub struct TrainOutcome {
    pub step: i64,
    pub first_step: i64,
    pub seconds: f64,
    pub shown: Vec<(&'static str, f32)>,
    pub score: Option<(&'static str, f32)>,
    pub checkpoint: Option<String>,
    /// Steps of workers whose gradients came too late, with backup workers.
    pub stale: Option<i64>,
}

/// Trains in this process alone.
pub fn local(args: &Args) -> Result<()> {
    let mut progress = TrainProgress::new(args.json, args.steps(), 1);
    let gpus = args.gpus()?;
    let on = gpus.first().map_or(String::new(), |gpu| format!(" on {}", gpu.name()));
    progress.title(&format!("training {} in this process{on}", args.what()));
    let stop = StopRequest::on_signal()?;
    let mixed_precision = args.mixed_precision.map(|narrow| match narrow {
        NarrowFloat::F16 => DType::Half,
        NarrowFloat::Bf16 => DType::BFloat16,
    });
    let (place, out) = (Place::alone(gpus, mixed_precision), args.out());
    let metrics = TaskMetrics::new("local", 0);
    let _page = match &args.dashboard {
        Some(address) => Some(LocalPage::start(address, &metrics, &out)?),
        None => None,
    };
    let (mut last, mut at) = (0, Instant::now());
    let outcome = train(args, &place, args.steps(), Some(&out), &stop, |point| {
        metrics.report_scalar("loss", point.global, f64::from(point.loss));
        // Steps are not timed one by one here: they share the time since the last report.
        let each = at.elapsed() / u32::try_from(point.local - last).unwrap_or(1).max(1);
        for step in last..point.local {
            metrics.rank_step(step, each, Duration::ZERO, Duration::ZERO);
        }
        (last, at) = (point.local, Instant::now());
        progress.show(0, point);
    })?;
    progress.finish();
    finish(args, &outcome, &progress, stop.is_set())
}

/// Writes the loss chart and prints the summary of a job.
pub fn finish(
    args: &Args,
    o: &TrainOutcome,
    progress: &TrainProgress,
    interrupted: bool,
) -> Result<()> {
    let out = args.out();
    let picture = out.join("loss.svg");
    let curves = progress.curves();
    if !curves.is_empty() {
        let chart = loss_chart::svg(args.model.name(), &curves)?;
        std::fs::create_dir_all(&out)
            .and_then(|()| std::fs::write(&picture, chart))
            .map_err(|e| Error::new(Code::Internal, format!("{}: {e}", picture.display())))?;
    }
    progress.summary(args, o, &out, interrupted);
    Ok(())
}

/// The graph of a job and the nodes that the training loop uses.
struct TrainJob {
    graph: Graph,
    source: Source,
    built: Built,
    trainer: Trainer,
    summaries: Option<Output>,
}

impl TrainJob {
    fn new(args: &Args, place: &Place) -> Result<TrainJob> {
        if place.in_step {
            args.check_backup(place.workers)?;
        }
        let graph = Graph::new();
        graph.set_seed(args.seed);
        let source = Source::of(args.model, args.data.as_deref(), args.synthetic)?;
        let replicas = Replicas { workers: place.workers, backup: args.backup };
        let replicas = place.in_step.then_some(replicas);
        let (built, trainer, summaries) = place.scope(&graph, || {
            let built = build(args.model, &source, &graph);
            // The exponent of bfloat16 is as wide as that of float.
            let scales = place.mixed_precision == Some(DType::Half);
            let trainer = trainer(args.model, args.learning_rate(), &built.loss, replicas, scales);
            summary::scalar("loss", &built.loss);
            (built, trainer, summary::merge_all(&graph))
        });
        graph.check()?;
        Ok(TrainJob { graph, source, built, trainer, summaries })
    }

    fn open(
        &self,
        args: &Args,
        place: &Place,
        last: i64,
        out: Option<&Path>,
    ) -> Result<MonitoredSession> {
        let g = &self.graph;
        let mut training = match &self.trainer {
            Trainer::Alone(train) => MonitoredTraining::new(g, train),
            Trainer::InStep(sync) => MonitoredTraining::synchronous(g, sync),
        };
        let is_chief = place.worker == 0;
        training =
            training.chief(is_chief).hook(StopAtStep(last)).hook(NanGuard::new(&self.built.loss));
        if let (Some(out), true) = (out, is_chief) {
            training = training.dir(out).save_steps(args.save_steps()).save_in_background();
            training = training.hook(StepCounter::new(100));
            if let Some(summaries) = &self.summaries {
                training = training.hook(SummarySaver::new(summaries, 10));
            }
        }
        let place_of = place.clone();
        place.scope(g, || training.open(move |g| place_of.open(g)))
    }
}

/// Trains until the global step reaches `last` or `stop` is set.
pub fn train(
    args: &Args,
    place: &Place,
    last: i64,
    out: Option<&Path>,
    stop: &StopRequest,
    mut report: impl FnMut(&Point),
) -> Result<TrainOutcome> {
    let job = TrainJob::new(args, place)?;
    let built = &job.built;
    let mut session = job.open(args, place, last, out).map_err(|e| explain(e, out))?;
    if place.worker != 0 {
        // This worker saves nothing, and its step may block on workers that have stopped: cancels
        // it.
        let session = session.session()?.clone();
        stop.then(move || drop(session.close()));
    }
    let mut draw = Draw::new(args.seed as u64 * 1000 + place.worker as u64);
    let first_step = session.global_step();
    let started = Instant::now();
    let shown: Vec<Scalar<f32>> = built.shown.iter().map(|(_, o)| o.scalar()).collect();
    let mut reported = Instant::now() - Duration::from_secs(1);
    let mut local_step = 0;
    while session.global_step() < last && !session.should_stop() && !stop.is_set() {
        let (x, y) = job.source.batch(&mut draw, args.batch())?;
        let feeds = [(&built.input, x), (&built.target, y)];
        let wanted = (built.loss.scalar::<f32>(), &shown);
        let (loss, values) = match session.train_fed(feeds, wanted) {
            // A synchronous step may block on a worker that has stopped: checks `stop` again.
            Err(e) if e.code() == Code::DeadlineExceeded && place.in_step => continue,
            Err(_) if stop.is_set() && place.worker != 0 => break,
            result => result?,
        };
        local_step += 1;
        let is_last = session.global_step() >= last;
        if reported.elapsed() > Duration::from_millis(50) || is_last {
            reported = Instant::now();
            let shown = built.shown.iter().map(|(name, _)| *name).zip(values);
            report(&Point {
                local: local_step,
                global: session.global_step(),
                loss,
                seconds: started.elapsed().as_secs_f64(),
                shown: shown.map(|(name, v)| (name.to_string(), v)).collect(),
            });
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let step = session.global_step();
    let mut outcome = TrainOutcome {
        step,
        first_step,
        seconds,
        shown: Vec::new(),
        score: None,
        checkpoint: None,
        stale: None,
    };
    if place.worker != 0 {
        // Ignore the error: the signal may already have closed the session.
        let _ = session.close();
        return Ok(outcome);
    }
    (outcome.shown, outcome.score) = evaluate(&session, built, &job.source)?;
    if let (Trainer::InStep(sync), true) = (&job.trainer, args.backup > 0) {
        outcome.stale = Some(sync.stale_steps(session.session()?)?);
    }
    outcome.checkpoint = session.close()?;
    // Other workers may have advanced the global step since then.
    let saved = outcome.checkpoint.as_ref().and_then(|path| path.rsplit('-').next()?.parse().ok());
    outcome.step = saved.unwrap_or(step);
    Ok(outcome)
}

/// Adds a hint to an error of opening the session.
fn explain(error: Error, out: Option<&Path>) -> Error {
    let is_checkpoint = matches!(error.code(), Code::InvalidArgument | Code::NotFound)
        && out.is_some_and(|out| ferroflow::checkpoint::latest_checkpoint(out).is_some());
    match (is_checkpoint, out) {
        (true, Some(out)) => error.context(format!(
            "resuming from the checkpoint in {} (is it of another model? choose another --out or remove it)",
            out.display()
        )),
        _ => error,
    }
}

/// Evaluates the model on test data.
pub fn evaluate(
    session: &MonitoredSession,
    built: &Built,
    source: &Source,
) -> Result<(Vec<(&'static str, f32)>, Option<(&'static str, f32)>)> {
    let session = session.session()?;
    let names = built.shown.iter().map(|(name, _)| *name);
    let shown: Vec<Scalar<f32>> = built.shown.iter().map(|(_, o)| o.scalar()).collect();
    let score = built.score.as_ref().map(|(_, score)| score.scalar::<f32>());
    let (mut sums, mut total, mut examples) = (vec![0.0; shown.len()], 0.0, 0.0);
    for batch in source.test() {
        let (x, y) = batch?;
        let n = y.elements() as f64;
        let feeds = [(&built.input, x), (&built.target, y)];
        let (values, score) = session.run_fed(feeds, (&shown, &score))?;
        sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += f64::from(v) * n);
        total += f64::from(score.unwrap_or(0.0)) * n;
        examples += n;
    }
    let mean = |sum: f64| (sum / f64::max(examples, 1.0)) as f32;
    let score = built.score.as_ref().map(|(name, _)| (*name, mean(total)));
    Ok((names.zip(sums.into_iter().map(mean)).collect(), score))
}

/// Set by Ctrl-C and SIGTERM: training writes a checkpoint and ends. A second signal exits at once.
#[derive(Clone, Default)]
pub struct StopRequest(Arc<StopState>);

#[derive(Default)]
struct StopState {
    is_set: AtomicBool,
    then: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl StopRequest {
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Runs `action` when the stop is requested.
    pub fn then(&self, action: impl FnOnce() + Send + 'static) {
        self.0.then.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(action));
    }

    /// Listens for the signals.
    pub fn on_signal() -> Result<StopRequest> {
        let stop = StopRequest::default();
        let set = stop.0.clone();
        let failed = |e: std::io::Error| {
            Error::new(Code::Internal, format!("cannot listen for signals: {e}"))
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listen = move || {
            runtime.block_on(ferroflow::cluster::stop_signal());
            let first = Instant::now();
            set.is_set.store(true, Ordering::Release);
            let actions =
                std::mem::take(&mut *set.then.lock().unwrap_or_else(PoisonError::into_inner));
            actions.into_iter().for_each(|action| action());
            loop {
                runtime.block_on(ferroflow::cluster::stop_signal());
                if first.elapsed() >= crate::launch::SAME_SIGNAL {
                    std::process::exit(130);
                }
            }
        };
        std::thread::Builder::new().name("ff-signal".into()).spawn(listen).map_err(failed)?;
        Ok(stop)
    }
}
