//! The training loop, the same in this process and in a worker of a cluster.

use super::Args;
use super::curve;
use super::data::Draw;
use super::model::{Built, Source, Trainer, build, trainer};
use super::progress::{Point, Progress};
use ferroflow::prelude::*;
use ferroflow::train::hooks::{NanGuard, StepCounter, StopAtStep, SummarySaver};
use ferroflow::train::{MonitoredTraining, Scalar};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// No step of these models takes as long; one that waits for others may.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Where and as what a process trains.
pub struct Place {
    /// The server to open a session on; none: this process.
    pub target: Option<String>,
    pub worker: usize,
    pub workers: usize,
    pub ps: usize,
    pub in_step: bool,
}

/// What training came to.
pub struct Outcome {
    pub step: i64,
    pub first_step: i64,
    pub seconds: f64,
    pub shown: Vec<(&'static str, f32)>,
    pub score: Option<(&'static str, f32)>,
    pub checkpoint: Option<String>,
}

/// Trains in this process alone.
pub fn local(args: &Args) -> Result<()> {
    let place = Place { target: None, worker: 0, workers: 1, ps: 0, in_step: false };
    let mut progress = Progress::new(args.json, args.steps(), 1);
    progress.title(&format!("training {} in this process", args.model.name()));
    let stop = stop_on_signal()?;
    let outcome = train(args, &place, args.steps(), Some(&args.out()), &stop, |point| {
        progress.show(0, point);
    })?;
    progress.finish();
    finish(args, &outcome, &progress, stop.load(Ordering::Acquire))
}

/// The last lines of a job: what came out and where it is.
pub fn finish(args: &Args, o: &Outcome, progress: &Progress, interrupted: bool) -> Result<()> {
    let out = args.out();
    let picture = out.join("loss.svg");
    if !progress.curve().is_empty() {
        std::fs::create_dir_all(&out)
            .and_then(|()| {
                std::fs::write(&picture, curve::svg(args.model.name(), progress.curve()))
            })
            .map_err(|e| Error::new(Code::Internal, format!("{}: {e}", picture.display())))?;
    }
    progress.summary(args.model.name(), o, &out, interrupted);
    Ok(())
}

/// Trains until the global step reaches `last`, or `stop` is set.
pub fn train(
    args: &Args,
    place: &Place,
    last: i64,
    out: Option<&Path>,
    stop: &Arc<AtomicBool>,
    mut tell: impl FnMut(&Point),
) -> Result<Outcome> {
    let g = graph();
    g.set_seed(args.seed);
    let source = Source::of(args.model)?;
    let replicas = place.in_step.then_some(place.workers);
    let make = || {
        let built = build(args.model, &g);
        let trainer = trainer(args.model, &built.loss, replicas);
        summary::scalar("loss", &built.loss);
        (built, trainer, summary::merge_all(&g))
    };
    let (built, trainer, summaries) = match &place.target {
        None => make(),
        Some(_) => {
            let worker = format!("/job:worker/task:{}", place.worker);
            let ps = u32::try_from(place.ps).unwrap_or(u32::MAX);
            g.device(ReplicaDeviceSetter::new(ps).worker(&worker), make)
        }
    };
    g.check()?;
    let mut training = match &trainer {
        Trainer::Alone(train) => MonitoredTraining::new(&g, train),
        Trainer::InStep(sync) => MonitoredTraining::synchronous(&g, sync),
    };
    training = training.chief(place.worker == 0).save_steps(args.save_steps).hook(StopAtStep(last));
    training = training.hook(NanGuard::new(&built.loss)).hook(StepCounter::new(100));
    if let (Some(out), 0) = (out, place.worker) {
        training = training.dir(out);
    }
    if let Some(summaries) = &summaries {
        training = training.hook(SummarySaver::new(summaries, 10));
    }
    let target = place.target.clone();
    let open = move |g: &Graph| match &target {
        None => local_session(g),
        Some(target) => Ok(remote_session(target, g)?.with_timeout(STEP_TIMEOUT)),
    };
    let mut session = match &place.target {
        None => training.open(open)?,
        Some(_) => {
            let worker = format!("/job:worker/task:{}", place.worker);
            let ps = u32::try_from(place.ps).unwrap_or(u32::MAX);
            let setter = ReplicaDeviceSetter::new(ps).worker(&worker);
            g.device(setter, || training.open(open))?
        }
    };
    let mut draw = Draw::new(args.seed as u64 * 1000 + place.worker as u64);
    let first_step = session.global_step();
    let started = Instant::now();
    let shown: Vec<Scalar<f32>> = built.shown.iter().map(|(_, o)| o.scalar()).collect();
    let mut told = Instant::now() - Duration::from_secs(1);
    let mut local_step = 0;
    while session.global_step() < last && !session.should_stop() && !stop.load(Ordering::Acquire) {
        let (x, y) = source.batch(&mut draw, args.batch())?;
        let feeds = [(&built.input, x), (&built.target, y)];
        let wanted = (built.loss.scalar::<f32>(), &shown);
        let (loss, values) = match session.train_fed(feeds, wanted) {
            // In step with others one may wait for one that has stopped: look whether to stop, too.
            Err(e) if e.code() == Code::DeadlineExceeded && place.in_step => continue,
            result => result?,
        };
        local_step += 1;
        let is_last = session.global_step() >= last;
        if told.elapsed() > Duration::from_millis(50) || is_last {
            told = Instant::now();
            let shown = built.shown.iter().map(|(name, _)| *name).zip(values);
            tell(&Point {
                local: local_step,
                global: session.global_step(),
                loss,
                seconds: started.elapsed().as_secs_f64(),
                shown: shown.map(|(name, v)| (name.to_string(), v)).collect(),
            });
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let (values, score) = evaluate(&session, &built, &source, &shown)?;
    let step = session.global_step();
    let checkpoint = session.close()?;
    let shown = built.shown.iter().map(|(name, _)| *name).zip(values).collect();
    Ok(Outcome { step, first_step, seconds, shown, score, checkpoint })
}

/// The model's numbers, and how it does on data it was not trained on.
fn evaluate(
    session: &MonitoredSession,
    built: &Built,
    source: &Source,
    shown: &Vec<Scalar<f32>>,
) -> Result<(Vec<f32>, Option<(&'static str, f32)>)> {
    let (x, y) = source.test()?;
    let feeds = [(&built.input, x), (&built.target, y)];
    let score = built.score.as_ref().map(|(_, score)| score.scalar::<f32>());
    let (values, score) = session.session()?.run_fed(feeds, (shown, &score))?;
    Ok((values, built.score.as_ref().map(|(name, _)| *name).zip(score)))
}

/// Set by Ctrl-C and SIGTERM: training leaves a checkpoint and ends.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop: Arc<AtomicBool> = Arc::default();
    let set = stop.clone();
    let failed =
        |e: std::io::Error| Error::new(Code::Internal, format!("cannot listen for signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let listen = move || {
        runtime.block_on(async {
            crate::server::stop_signal().await;
            set.store(true, Ordering::Release);
        });
    };
    std::thread::Builder::new().name("ff-signal".into()).spawn(listen).map_err(failed)?;
    Ok(stop)
}
