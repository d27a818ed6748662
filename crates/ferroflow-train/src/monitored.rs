//! Monitored training: initializes or restores variables, saves checkpoints, writes summaries, and
//! reopens the session after a server fails.

use crate::background::BackgroundSaver;
use crate::events::EventWriter;
use crate::fetch::{Feeds, Fetch, Scalar};
use crate::graph::Graph;
use crate::hooks::{Hook, Ran};
use crate::output::{Operation, Output};
use crate::saver::{Saver, latest_checkpoint, restore_latest};
use crate::session::Session;
use crate::step::StepOptions;
use crate::sync_replicas::{Chief, SyncTraining};
use crate::variable::Variable;
use ferroflow_core::{Code, Error, Result, Tensor, err};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Opens a session of a graph: in this process, or on a server.
pub type OpenSession = Box<dyn Fn(&Graph) -> Result<Session> + Send>;

/// The settings of a monitored session; [`MonitoredTraining::open`] opens it.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::StopAtStep};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).dir("out").hook(StopAtStep(100));
/// // let mut session = training.open(Session::local)?;
/// // while !session.should_stop() {
/// //     session.train(())?;
/// // }
/// // session.close()?;
/// ```
pub struct MonitoredTraining {
    graph: Graph,
    train: Operation,
    is_chief: bool,
    dir: Option<PathBuf>,
    leaves_files: bool,
    save_steps: i64,
    save_every: Option<Duration>,
    max_to_keep: usize,
    wait: Duration,
    hooks: Vec<Box<dyn Hook>>,
    sync: Option<SyncTraining>,
    in_background: bool,
    is_sharded: bool,
    /// Variables to restore from a checkpoint of another model, when training starts from scratch.
    warm_start: Option<(Saver, String)>,
}

impl MonitoredTraining {
    /// Trains by running `train`, which must increment the global step.
    pub fn new(graph: &Graph, train: &Operation) -> MonitoredTraining {
        MonitoredTraining {
            graph: graph.clone(),
            train: train.clone(),
            is_chief: true,
            dir: None,
            leaves_files: true,
            save_steps: 1000,
            save_every: None,
            max_to_keep: 5,
            wait: Duration::from_secs(60),
            hooks: Vec::new(),
            sync: None,
            in_background: false,
            is_sharded: false,
            warm_start: None,
        }
    }

    /// Restores the variables of `saver` from a checkpoint of another model, when training starts
    /// from scratch and after all variables were initialized.
    #[must_use]
    pub fn warm_start(mut self, saver: Saver, checkpoint: impl Into<String>) -> Self {
        self.warm_start = Some((saver, checkpoint.into()));
        self
    }

    /// Synchronous training of several replicas.
    pub fn synchronous(graph: &Graph, sync: &SyncTraining) -> MonitoredTraining {
        let mut training = MonitoredTraining::new(graph, &sync.train);
        training.sync = Some(sync.clone());
        training
    }

    /// Whether this is the chief, which initializes, restores and saves. The others wait until the
    /// variables are initialized.
    pub fn chief(mut self, is_chief: bool) -> Self {
        self.is_chief = is_chief;
        self
    }

    /// The directory of checkpoints and events. The chief restores its latest checkpoint.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_path_buf());
        self
    }

    /// Whether this process reads and writes the directory. If each process has all variables, one
    /// is enough.
    pub fn leaves_files(mut self, leaves: bool) -> Self {
        self.leaves_files = leaves;
        self
    }

    /// Saves a checkpoint every `steps` steps, and one after the last step.
    pub fn save_steps(mut self, steps: i64) -> Self {
        self.save_steps = steps.max(1);
        self
    }

    /// Also saves a checkpoint after this much time since the last one.
    pub fn save_every(mut self, interval: Duration) -> Self {
        self.save_every = Some(interval);
        self
    }

    /// How many checkpoints are kept.
    pub fn max_to_keep(mut self, count: usize) -> Self {
        self.max_to_keep = count;
        self
    }

    /// Saves checkpoints in a background thread. Training waits only for the last one.
    pub fn save_in_background(mut self) -> Self {
        self.in_background = true;
        self
    }

    /// Each parameter server writes its own variables; see [`Saver::sharded`].
    pub fn sharded(mut self) -> Self {
        self.is_sharded = true;
        self
    }

    /// How long to wait for the chief, or for a failed server to come back.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Adds a hook.
    pub fn hook(self, hook: impl Hook + 'static) -> Self {
        self.boxed_hook(Box::new(hook))
    }

    pub(crate) fn boxed_hook(mut self, hook: Box<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Opens the session, and waits until all variables are initialized.
    #[track_caller]
    pub fn open(
        mut self,
        open: impl Fn(&Graph) -> Result<Session> + Send + 'static,
    ) -> Result<MonitoredSession> {
        self.dir = self.dir.filter(|_| self.leaves_files);
        let g = &self.graph;
        let global_step = g.global_step();
        let init = g.global_initializer();
        let mut local_init = vec![g.local_initializer(), g.tables_initializer()];
        let chief_init: Vec<Operation> = self.sync.iter().map(|s| s.chief_init.clone()).collect();
        local_init.extend(self.sync.iter().map(|s| s.local_init.clone()));
        let saver = self
            .dir
            .as_ref()
            .filter(|_| self.is_chief)
            .map(|_| if self.is_sharded { Saver::sharded(g) } else { Saver::new(g) })
            .map(|saver| BackgroundSaver::new(saver.max_to_keep(self.max_to_keep)));
        let ready: Vec<Output> =
            g.global_variables().iter().map(Variable::is_initialized).collect();
        let after = match &self.sync {
            // The token holds the global step, so no other fetch is needed.
            Some(sync) => sync.token.clone(),
            None => {
                g.control_dependencies(std::slice::from_ref(&self.train), || global_step.read())
            }
        };
        g.check()?;
        let mut session = MonitoredSession {
            open: Box::new(open),
            session: None,
            saver,
            events: None,
            init,
            local_init,
            chief_init,
            ready,
            after: after.scalar::<i64>(),
            global_step,
            saved: None,
            last_saved: -1,
            saved_at: Instant::now(),
            lost_in_a_row: 0,
            step: 0,
            is_stopped: Arc::default(),
            syncing: None,
            training: self,
        };
        session.recover()?;
        Ok(session)
    }
}

/// A session that trains; see [`MonitoredTraining`].
///
/// ```
/// # fn run(training: ferroflow_train::MonitoredTraining, loss: ferroflow_train::Output,
/// #     open: fn(&ferroflow_train::Graph) -> ferroflow_core::Result<ferroflow_train::Session>,
/// # ) -> ferroflow_core::Result<()> {
/// let mut session = training.open(open)?;
/// while !session.should_stop() {
///     let loss = session.train(loss.scalar::<f32>())?;
///     println!("step {}: {loss}", session.global_step());
/// }
/// session.close()?;
/// # Ok(())
/// # }
/// ```
pub struct MonitoredSession {
    training: MonitoredTraining,
    open: OpenSession,
    session: Option<Session>,
    saver: Option<BackgroundSaver>,
    events: Option<EventWriter>,
    init: Operation,
    local_init: Vec<Operation>,
    chief_init: Vec<Operation>,
    ready: Vec<Output>,
    /// Fetches the global step after the training operation.
    after: Scalar<i64>,
    global_step: Variable,
    /// The step of the latest complete checkpoint.
    saved: Option<i64>,
    /// The step from which the interval to the next checkpoint counts.
    last_saved: i64,
    saved_at: Instant,
    /// How often the session failed since the last successful step.
    lost_in_a_row: usize,
    step: i64,
    is_stopped: Arc<AtomicBool>,
    /// Aggregates gradients if this is the chief of synchronous training.
    syncing: Option<Chief>,
}

/// The interval of polls for the chief's initialization.
const POLL: Duration = Duration::from_millis(100);
/// How often the session may fail before a step succeeds. The step itself may be the cause.
const LOSSES: usize = 20;
/// The prefix of checkpoints, as in TensorFlow's supervisor.
const PREFIX: &str = "model.ckpt";

impl MonitoredSession {
    /// The global step after the last step.
    pub fn global_step(&self) -> i64 {
        self.step
    }

    /// Whether a hook or [`MonitoredSession::stopper`] requested a stop.
    pub fn should_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// A flag that requests a stop, for example from a signal handler.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        self.is_stopped.clone()
    }

    /// The underlying session.
    pub fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| err!(FailedPrecondition, "the session is closed"))
    }

    /// Trains one step, and returns the fetches.
    pub fn train<F: Fetch>(&mut self, fetches: F) -> Result<F::Value> {
        self.train_fed((), fetches)
    }

    /// [`MonitoredSession::train`] with feeds. When a server fails, this reopens the session and
    /// repeats the step.
    pub fn train_fed<F: Fetch>(&mut self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let mut fed = Vec::new();
        feeds.collect_into(&mut fed)?;
        loop {
            let result = self.attempt(&fed, &fetches);
            // No step ends without aggregation: report the failure of the aggregation, which is the
            // cause.
            let cause = || self.syncing.as_ref().and_then(Chief::failure);
            match result.map_err(|e| cause().unwrap_or(e)) {
                Err(e) if is_lost(&e) && !self.should_stop() => {
                    self.leave();
                    self.lost_in_a_row += 1;
                    if self.lost_in_a_row > LOSSES {
                        let text = format!("the session failed {LOSSES} times without a step");
                        return Err(e.context(text));
                    }
                    self.recover().map_err(|again| {
                        let text = format!("after the session failed ({})", e.message());
                        match again.code() {
                            // The session is closed. A caller must not take this for a slow step.
                            Code::DeadlineExceeded => {
                                Error::new(Code::Unavailable, again.message()).context(text)
                            }
                            _ => again.context(text),
                        }
                    })?;
                }
                result => return result,
            }
        }
    }

    fn attempt<F: Fetch>(&mut self, feeds: &[(String, Tensor)], fetches: &F) -> Result<F::Value> {
        let mut extra = Vec::new();
        let mut counts = Vec::new();
        for hook in &self.training.hooks {
            let wanted = hook.fetches(self.step);
            counts.push(wanted.len());
            extra.extend(wanted);
        }
        let all = (fetches, &self.training.train, &self.after, &extra);
        let trace = self.training.hooks.iter().any(|hook| hook.traces(self.step));
        let session = self.session()?;
        let options = StepOptions { trace, ..session.options() };
        let ((value, (), step, extra), metadata) = session.run_with(feeds, all, options)?;
        let step = match &self.training.sync {
            Some(sync) => {
                sync.caught_up(session, self.step, step)?;
                sync.current_token(session, self.step, step)?
            }
            None => step,
        };
        self.step = step;
        self.lost_in_a_row = 0;
        let mut values = extra.as_slice();
        for (hook, count) in self.training.hooks.iter_mut().zip(counts) {
            let (own, rest) = values.split_at(count);
            values = rest;
            let events = self.events.as_mut();
            let mut ran = Ran { step, values: own, events, metadata: &metadata, stop: false };
            hook.after(&mut ran)?;
            if ran.stop {
                self.is_stopped.store(true, Ordering::Release);
            }
        }
        if self.saver.is_some() && self.is_time_to_save(step) {
            self.saved_at = Instant::now();
            let saved = match self.training.in_background {
                true => self.start_saving(step),
                false => self.save().map(|_| ()),
            };
            self.go_on_without(saved, step)?;
        }
        Ok(value)
    }

    /// Lets training go on if a checkpoint could not be written, for example because the disk is
    /// full. The next one is tried at its time. A lost session is an error.
    fn go_on_without(&mut self, saved: Result<()>, step: i64) -> Result<()> {
        match saved {
            Err(e) if is_lost(&e) => Err(e),
            Err(e) => {
                tracing::warn!("cannot save a checkpoint at step {step}: {}", e.message());
                self.last_saved = step;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn is_time_to_save(&self, step: i64) -> bool {
        let is_overdue = |interval: Duration| self.saved_at.elapsed() >= interval;
        step - self.last_saved >= self.training.save_steps
            || (step > self.last_saved && self.training.save_every.is_some_and(is_overdue))
    }

    /// Starts to save a checkpoint in the background.
    fn start_saving(&mut self, step: i64) -> Result<()> {
        let (Some(session), Some(saver), Some(dir)) =
            (&self.session, &mut self.saver, &self.training.dir)
        else {
            return Ok(());
        };
        let before = saver.start(session, dir.join(PREFIX), step)?;
        let saved = std::mem::replace(&mut self.last_saved, step);
        self.tell_saved(before, saved)
    }

    /// Notifies the hooks of a checkpoint, and writes it to the events.
    fn tell_saved(&mut self, path: Option<String>, step: i64) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        self.saved = Some(step);
        if let Some(events) = &mut self.events {
            events.checkpoint(&path, step)?;
            if let Err(e) = events.flush() {
                tracing::warn!("cannot write events: {}", e.message());
            }
        }
        for hook in &mut self.training.hooks {
            hook.saved(&path, step)?;
        }
        Ok(())
    }

    /// Computes a summary, and writes it to the events if there is an event file.
    pub(crate) fn write_summary(&mut self, summary: &Output) -> Result<()> {
        let session = self.session()?;
        let (summary, step) = session.run((summary, self.global_step.scalar::<i64>()))?;
        match &mut self.events {
            Some(events) => events.summary(&summary, step),
            None => Ok(()),
        }
    }

    /// Saves a checkpoint now, if this is the chief and has a directory.
    pub fn save(&mut self) -> Result<Option<String>> {
        self.finish_saving()?;
        self.save_at(None)
    }

    /// [`MonitoredSession::save`], unless this step has a checkpoint.
    fn save_the_last(&mut self) -> Result<Option<String>> {
        if let Err(e) = self.finish_saving() {
            tracing::warn!("cannot write a checkpoint, trying another: {e}");
        }
        self.save_at(self.saved)
    }

    /// Waits for the checkpoint in progress.
    fn finish_saving(&mut self) -> Result<()> {
        let running = self.saver.as_mut().map_or(Ok(None), BackgroundSaver::finish)?;
        self.tell_saved(running, self.last_saved)
    }

    fn save_at(&mut self, known: Option<i64>) -> Result<Option<String>> {
        let (Some(saver), Some(dir)) = (&self.saver, &self.training.dir) else { return Ok(None) };
        let session = self.session()?;
        let step = session.run(self.global_step.scalar::<i64>())?;
        if Some(step) == known {
            return Ok(latest_checkpoint(dir));
        }
        let path = saver.saver().save(session, dir.join(PREFIX), Some(step))?;
        self.last_saved = step;
        self.tell_saved(Some(path.clone()), step)?;
        Ok(Some(path))
    }

    /// Opens the session, and retries until it works or the time limit passes.
    fn recover(&mut self) -> Result<()> {
        let deadline = after(self.training.wait);
        loop {
            let Err(e) = self.start(deadline) else { return Ok(()) };
            self.leave();
            if !is_lost(&e) || Instant::now() + POLL >= deadline {
                return Err(e);
            }
            std::thread::sleep(POLL);
        }
    }

    fn start(&mut self, deadline: Instant) -> Result<()> {
        let session = (self.open)(&self.training.graph).map_err(|e| match e.code() {
            // A server that does not answer may be restarting.
            Code::DeadlineExceeded => Error::new(Code::Unavailable, e.message()),
            _ => e,
        })?;
        // From here on, a failure must close the session.
        self.session = Some(session.clone());
        self.saved = None;
        let mut restored = false;
        if self.training.is_chief {
            restored = match (&self.saver, &self.training.dir) {
                (Some(saver), Some(dir)) => {
                    saver.saver().recover(dir);
                    restore_latest(saver.saver(), &session, dir)?
                }
                _ => false,
            };
            // Without a checkpoint, initialize only uninitialized variables: another session of the
            // same servers may have trained already.
            if !restored && !self.is_ready(&session)? {
                session.run(&self.init)?;
                if let Some((saver, checkpoint)) = &self.training.warm_start {
                    saver.restore(&session, checkpoint).map_err(|e| e.context("warm start"))?;
                }
            }
            session.run(&self.local_init)?;
            session.run(&self.chief_init)?;
        } else {
            while !self.is_ready(&session)? {
                if Instant::now() + POLL > deadline {
                    return Err(err!(
                        DeadlineExceeded,
                        "the chief did not initialize the variables within {:?}",
                        self.training.wait
                    ));
                }
                std::thread::sleep(POLL);
            }
            session.run(&self.local_init)?;
            if let Some(sync) = &self.training.sync {
                sync.join(&session)?;
            }
        }
        self.step = session.run(self.global_step.scalar::<i64>())?;
        self.last_saved = self.step;
        self.saved = restored.then_some(self.step);
        if self.training.is_chief
            && let Some(dir) = &self.training.dir
            && self.events.is_none()
        {
            let mut events = EventWriter::create(dir)?;
            events.graph(&self.training.graph)?;
            events.started(self.step)?;
            self.events = Some(events);
        }
        if self.training.is_chief
            && let Some(sync) = &self.training.sync
        {
            self.syncing = Some(Chief::start(&session, sync)?);
        }
        for hook in &mut self.training.hooks {
            hook.created(&session, self.step)?;
        }
        // Hooks may have changed the variables.
        self.step = session.run(self.global_step.scalar::<i64>())?;
        Ok(())
    }

    fn is_ready(&self, session: &Session) -> Result<bool> {
        let values = session.run(&self.ready)?;
        Ok(values.iter().all(|v| v.scalar_value::<bool>().unwrap_or(false)))
    }

    /// Closes the session, and waits for its background work.
    fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.close();
        }
        if let Some(chief) = self.syncing.take() {
            chief.join();
        }
        // A checkpoint in progress fails with its session, and the next one replaces it. A complete
        // one counts.
        if let Some(Ok(saved)) = self.saver.as_mut().map(BackgroundSaver::finish) {
            let _ = self.tell_saved(saved, self.last_saved);
        }
    }

    /// Ends training: calls the hooks and saves a last checkpoint. Returns its path.
    pub fn close(mut self) -> Result<Option<String>> {
        let saved = self.save_the_last().and_then(|saved| {
            self.training.hooks.iter_mut().try_for_each(|hook| hook.end(self.step))?;
            self.events.as_mut().map_or(Ok(()), EventWriter::flush)?;
            Ok(saved)
        });
        if let (Some(sync), Some(session), false) =
            (&self.training.sync, &self.session, self.training.is_chief)
        {
            // Lets the other replicas continue. Ignore the error: the servers may have gone away.
            let _ = sync.leave(session);
        }
        self.is_stopped.store(true, Ordering::Release);
        self.leave();
        saved
    }
}

impl Drop for MonitoredSession {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        self.leave();
    }
}

/// The time after `wait`; in a hundred years if the clock cannot represent it.
pub(crate) fn after(wait: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(100 * 365 * 86_400);
    Instant::now() + wait.min(LONG)
}

/// Whether an error means that a server failed and may come back.
pub(crate) fn is_lost(error: &Error) -> bool {
    matches!(error.code(), Code::Unavailable | Code::Aborted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{NanGuard, StopAtStep};
    use crate::optimizer::{Optimizer, Sgd};
    use crate::session::StepRunner;
    use crate::step::{StepOutput, StepRequest};
    use crate::testing::{graph, session, temporary};

    #[test]
    fn training_continues_from_the_latest_checkpoint() {
        let dir = temporary("monitored");
        let run = |last: i64| {
            let g = graph();
            let w = g.variable("w", 0.0);
            let loss = (&*w - 3.0).square();
            let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
            let training = MonitoredTraining::new(&g, &train).dir(&dir).save_steps(5);
            let training = training.hook(StopAtStep(last)).hook(NanGuard::new(&loss));
            let mut s = training.open(session).unwrap();
            let first = s.global_step();
            while !s.should_stop() {
                s.train(()).unwrap();
            }
            let value = s.session().unwrap().run(w.scalar::<f32>()).unwrap();
            s.close().unwrap();
            (first, value)
        };
        let (first, half) = run(8);
        assert_eq!(first, 0);
        let (first, whole) = run(30);
        assert_eq!(first, 8);
        assert!((half - 3.0).abs() > (whole - 3.0).abs());
        assert!((whole - 3.0 * (1.0 - 0.8f32.powi(30))).abs() < 1e-5, "{whole}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn close_saves_unsaved_steps() {
        let dir = temporary("never-saved");
        let g = graph();
        let w = g.variable("w", 0.0);
        let train = Sgd::new(0.1).minimize_counted(&w.square(), &g.global_step());
        let open = || MonitoredTraining::new(&g, &train).dir(&dir).open(session).unwrap();
        let first = open().close().unwrap().unwrap();
        assert!(first.ends_with("model.ckpt-0"), "{first}");
        let written = || std::fs::metadata(format!("{first}.index")).unwrap().modified().unwrap();
        let before = written();
        assert_eq!(open().close().unwrap(), Some(first.clone()));
        assert_eq!(written(), before, "an unchanged step was saved again");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn training_gives_up_when_every_step_fails() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let train = Sgd::new(0.1).minimize_counted(&w.square(), &g.global_step());
        let lost = |g: &Graph| {
            let steps = Lost {
                inner: crate::testing::runner(g)?,
                trained: std::sync::atomic::AtomicU32::new(1),
                is_closed: Default::default(),
                closed: Default::default(),
            };
            Session::with_runner(g, Arc::new(steps))
        };
        let mut s = MonitoredTraining::new(&g, &train).open(lost).unwrap();
        let e = s.train(()).unwrap_err();
        assert!(e.message().contains("times without a step"), "{e}");
    }

    #[test]
    fn a_chief_that_does_not_come_back_is_no_slow_step() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let train = Sgd::new(0.1).minimize_counted(&w.square(), &g.global_step());
        let is_first = AtomicBool::new(true);
        let open = move |g: &Graph| {
            if !is_first.swap(false, Ordering::AcqRel) {
                // A server without values: the chief is gone too.
                return session(g);
            }
            let lost = Lost {
                inner: crate::testing::runner(g)?,
                trained: std::sync::atomic::AtomicU32::new(1),
                is_closed: Default::default(),
                closed: Default::default(),
            };
            let first = Session::with_runner(g, Arc::new(lost))?;
            first.run(&g.global_initializer())?;
            Ok(first)
        };
        let training = MonitoredTraining::new(&g, &train).chief(false).wait(Duration::ZERO);
        let mut s = training.open(open).unwrap();
        let e = s.train(()).unwrap_err();
        assert_eq!(e.code(), Code::Unavailable, "{e}");
        assert!(e.message().contains("the chief did not initialize the variables"), "{e}");
        assert!(e.message().contains("the server is gone"), "{e}");
    }

    #[test]
    fn checkpoints_are_saved_by_time() {
        let dir = temporary("timed");
        let g = graph();
        let w = g.variable("w", 0.0);
        let train = Sgd::new(0.1).minimize_counted(&w.square(), &g.global_step());
        let training = MonitoredTraining::new(&g, &train).dir(&dir).save_every(Duration::ZERO);
        let mut s = training.open(session).unwrap();
        for step in 1..=2 {
            s.train(()).unwrap();
            assert!(dir.join(format!("model.ckpt-{step}.index")).exists());
        }
        s.close().unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// A server that fails in its second training step while a checkpoint is in progress.
    struct Lost {
        inner: Arc<dyn StepRunner>,
        trained: std::sync::atomic::AtomicU32,
        is_closed: parking_lot::Mutex<bool>,
        closed: parking_lot::Condvar,
    }

    impl StepRunner for Lost {
        fn extend(&self, graph: &ferroflow_graph::GraphDef) -> Result<()> {
            self.inner.extend(graph)
        }
        fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
            if request.targets.iter().chain(&request.fetches).any(|name| name.contains("save")) {
                let mut is_closed = self.is_closed.lock();
                let long = Duration::from_secs(30);
                self.closed.wait_while_for(&mut is_closed, |closed| !*closed, long);
                return Err(err!(Cancelled, "Step was cancelled by a call to `Session::Close()`."));
            }
            let trains = request.targets.iter().any(|name| name.contains("GradientDescent"));
            if trains && self.trained.fetch_add(1, Ordering::AcqRel) == 1 {
                return Err(err!(Unavailable, "the server is gone"));
            }
            self.inner.run_step(request)
        }
        fn partial_run_setup(
            &self,
            feeds: Vec<String>,
            fetches: Vec<String>,
            targets: Vec<String>,
        ) -> Result<String> {
            self.inner.partial_run_setup(feeds, fetches, targets)
        }
        fn partial_run(
            &self,
            handle: &str,
            feeds: Vec<(String, Tensor)>,
            fetches: Vec<String>,
            timeout: Option<Duration>,
        ) -> Result<Vec<Tensor>> {
            self.inner.partial_run(handle, feeds, fetches, timeout)
        }
        fn close(&self) -> Result<()> {
            *self.is_closed.lock() = true;
            self.closed.notify_all();
            self.inner.close()
        }
    }

    #[test]
    fn a_failed_background_checkpoint_does_not_end_training() {
        let dir = temporary("lost-while-saving");
        let g = graph();
        let w = g.variable("w", 0.0);
        let train = Sgd::new(0.1).minimize_counted(&w.square(), &g.global_step());
        let training =
            MonitoredTraining::new(&g, &train).dir(&dir).save_steps(1).save_in_background();
        let is_first = AtomicBool::new(true);
        let open = move |g: &Graph| {
            if !is_first.swap(false, Ordering::AcqRel) {
                return session(g);
            }
            let lost = Lost {
                inner: crate::testing::runner(g)?,
                trained: Default::default(),
                is_closed: Default::default(),
                closed: Default::default(),
            };
            Session::with_runner(g, Arc::new(lost))
        };
        let mut s = training.open(open).unwrap();
        for _ in 0..4 {
            s.train(()).unwrap();
        }
        // The first step failed with its session.
        assert_eq!(s.global_step(), 3);
        assert!(s.close().unwrap().unwrap().ends_with("model.ckpt-3"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn hooks_see_steps_traces_and_checkpoints() {
        use crate::hooks::{Logging, Profiler, SummarySaver};
        let dir = temporary("profiled");
        let g = graph();
        let w = g.variable("w", 0.0);
        let loss = (&*w - 3.0).square();
        crate::summary::scalar("loss", &loss);
        let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
        let summaries = crate::summary::merge_all(&g).unwrap();
        let mut s = MonitoredTraining::new(&g, &train)
            .dir(&dir)
            .save_steps(4)
            .save_in_background()
            .hook(SummarySaver::new(&summaries, 5))
            .hook(Profiler::new(dir.join("profile"), 5))
            .hook(Logging::new(&[("loss", &loss)], 100))
            .hook(StopAtStep(12))
            .open(session)
            .unwrap();
        while !s.should_stop() {
            s.train(()).unwrap();
        }
        let last = s.close().unwrap().unwrap();
        assert!(last.ends_with("model.ckpt-12"), "{last}");
        assert!(dir.join("profile/timeline-6.json").exists());
        assert!(dir.join("model.ckpt-8.index").exists());
        let file = std::fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| p.display().to_string().contains("tfevents"))
            .unwrap();
        let events = crate::read_events(file).unwrap();
        let count =
            |is: fn(&crate::EventKind) -> bool| events.iter().filter(|e| is(&e.what)).count();
        assert_eq!(count(|k| matches!(k, crate::EventKind::Summary(_))), 2);
        assert_eq!(
            count(|k| matches!(k, crate::EventKind::Session(t) if t.starts_with("check"))),
            3
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
