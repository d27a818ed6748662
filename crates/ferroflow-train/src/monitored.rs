//! Training that looks after itself: variables initialized or restored, checkpoints and summaries
//! left behind, sessions opened again after a server was lost.

use crate::events::EventWriter;
use crate::graph::Graph;
use crate::hooks::{Hook, Ran};
use crate::output::{Operation, Output};
use crate::saver::{Saver, latest_checkpoint};
use crate::session::{Feeds, Fetch, GraphSession, Scalar};
use crate::sync_replicas::SyncTraining;
use crate::variable::Variable;
use ferroflow_core::{Code, Error, Result, Tensor, err};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Opens a session of a graph: in this process, or on a server.
pub type OpenSession = Box<dyn Fn(&Graph) -> Result<GraphSession> + Send>;

/// How a monitored session behaves; [`MonitoredTraining::open`] starts it.
pub struct MonitoredTraining {
    graph: Graph,
    train: Operation,
    is_chief: bool,
    dir: Option<PathBuf>,
    leaves_files: bool,
    save_steps: i64,
    max_to_keep: usize,
    wait: Duration,
    hooks: Vec<Box<dyn Hook>>,
    sync: Option<SyncTraining>,
}

impl MonitoredTraining {
    /// Training by `train`, which counts the graph's global step.
    pub fn new(graph: &Graph, train: &Operation) -> MonitoredTraining {
        MonitoredTraining {
            graph: graph.clone(),
            train: train.clone(),
            is_chief: true,
            dir: None,
            leaves_files: true,
            save_steps: 1000,
            max_to_keep: 5,
            wait: Duration::from_secs(60),
            hooks: Vec::new(),
            sync: None,
        }
    }

    /// Synchronous training of several replicas.
    pub fn synchronous(graph: &Graph, sync: &SyncTraining) -> MonitoredTraining {
        let mut training = MonitoredTraining::new(graph, &sync.train);
        training.sync = Some(sync.clone());
        training
    }

    /// Whether this one initializes, restores and saves; the others wait until that is done.
    pub fn chief(mut self, is_chief: bool) -> Self {
        self.is_chief = is_chief;
        self
    }

    /// Where the chief leaves checkpoints and events, and goes on from.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_path_buf());
        self
    }

    /// Whether this process uses the directory at all: of processes that each have all variables, one is
    /// enough.
    pub fn leaves_files(mut self, leaves: bool) -> Self {
        self.leaves_files = leaves;
        self
    }

    /// How many steps lie between checkpoints; the last step always leaves one.
    pub fn save_steps(mut self, steps: i64) -> Self {
        self.save_steps = steps.max(1);
        self
    }

    /// How many checkpoints are kept.
    pub fn max_to_keep(mut self, count: usize) -> Self {
        self.max_to_keep = count;
        self
    }

    /// How long one waits for the chief, or for a lost server to come back.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Something to do with each step.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Opens the session and makes sure that all variables have values.
    #[track_caller]
    pub fn open(
        mut self,
        open: impl Fn(&Graph) -> Result<GraphSession> + Send + 'static,
    ) -> Result<MonitoredSession> {
        self.dir = self.dir.filter(|_| self.leaves_files);
        let g = &self.graph;
        let global_step = g.global_step();
        let init = g.global_initializer();
        let mut local_init = vec![g.local_initializer()];
        let chief_init: Vec<Operation> = self.sync.iter().map(|s| s.chief_init.clone()).collect();
        local_init.extend(self.sync.iter().map(|s| s.local_init.clone()));
        let saver = self
            .dir
            .as_ref()
            .filter(|_| self.is_chief)
            .map(|_| Saver::new(g).max_to_keep(self.max_to_keep));
        let ready: Vec<Output> =
            g.global_variables().iter().map(Variable::is_initialized).collect();
        let after =
            g.control_dependencies(std::slice::from_ref(&self.train), || global_step.read());
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
            last_saved: -1,
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
pub struct MonitoredSession {
    training: MonitoredTraining,
    open: OpenSession,
    session: Option<GraphSession>,
    saver: Option<Saver>,
    events: Option<EventWriter>,
    init: Operation,
    local_init: Vec<Operation>,
    chief_init: Vec<Operation>,
    ready: Vec<Output>,
    /// The global step once the training operation has run.
    after: Scalar<i64>,
    global_step: Variable,
    last_saved: i64,
    step: i64,
    is_stopped: Arc<AtomicBool>,
    /// Aggregates gradients, if this is the chief of synchronous training.
    syncing: Option<JoinHandle<()>>,
}

/// How long one waits before looking again whether the chief is done.
const POLL: Duration = Duration::from_millis(100);

impl MonitoredSession {
    /// The global step, as of the last step run.
    pub fn global_step(&self) -> i64 {
        self.step
    }

    /// Whether a hook, or somebody else, asked to stop.
    pub fn should_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Asks to stop: what a signal handler is given.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        self.is_stopped.clone()
    }

    /// The session behind it.
    pub fn session(&self) -> Result<&GraphSession> {
        self.session.as_ref().ok_or_else(|| err!(FailedPrecondition, "the session is closed"))
    }

    /// Trains one step, and fetches something of it.
    pub fn train<F: Fetch>(&mut self, fetches: F) -> Result<F::Value> {
        self.train_fed((), fetches)
    }

    /// [`MonitoredSession::train`] with feeds. When a server is lost, the session is opened again and
    /// the step repeated.
    pub fn train_fed<F: Fetch>(&mut self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let mut fed = Vec::new();
        feeds.collect_into(&mut fed)?;
        loop {
            match self.attempt(&fed, &fetches) {
                Err(e) if is_lost(&e) && !self.should_stop() => {
                    self.leave();
                    self.recover().map_err(|again| {
                        again.context(format!("after the session was lost ({})", e.message()))
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
            let wanted = hook.fetches();
            counts.push(wanted.len());
            extra.extend(wanted);
        }
        let all = (fetches, &self.training.train, &self.after, &extra);
        let (value, (), step, extra) = self.session()?.run_fed(feeds, all)?;
        self.step = step;
        let mut values = extra.as_slice();
        for (hook, count) in self.training.hooks.iter_mut().zip(counts) {
            let (own, rest) = values.split_at(count);
            values = rest;
            let mut ran = Ran { step, values: own, events: self.events.as_mut(), stop: false };
            hook.after(&mut ran)?;
            if ran.stop {
                self.is_stopped.store(true, Ordering::Release);
            }
        }
        if self.saver.is_some() && step - self.last_saved >= self.training.save_steps {
            self.save()?;
        }
        Ok(value)
    }

    /// Leaves a checkpoint now, if this is the chief and there is a directory for it.
    pub fn save(&mut self) -> Result<Option<String>> {
        let (Some(saver), Some(dir)) = (&self.saver, &self.training.dir) else { return Ok(None) };
        let session = self.session()?;
        let step = session.run(self.global_step.scalar::<i64>())?;
        if step == self.last_saved {
            return Ok(latest_checkpoint(dir));
        }
        let path = saver.save(session, dir.join("model.ckpt"), Some(step))?;
        self.last_saved = step;
        if let Some(events) = &mut self.events {
            events.checkpoint(&path, step)?;
            events.flush()?;
        }
        Ok(Some(path))
    }

    /// Opens the session, anew if need be, until it works or time is up.
    fn recover(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.training.wait;
        loop {
            match self.start(deadline) {
                Err(e) if is_lost(&e) && Instant::now() + POLL < deadline => {
                    self.leave();
                    std::thread::sleep(POLL);
                }
                result => return result,
            }
        }
    }

    fn start(&mut self, deadline: Instant) -> Result<()> {
        let session = (self.open)(&self.training.graph)?;
        if self.training.is_chief {
            let restored = match (&self.saver, &self.training.dir) {
                (Some(saver), Some(dir)) => {
                    saver.recover(dir);
                    match latest_checkpoint(dir) {
                        Some(path) => saver.restore(&session, &path).map(|()| true)?,
                        None => false,
                    }
                }
                _ => false,
            };
            // Without a checkpoint, only what nobody has initialized yet: another session of the same
            // servers may have trained already.
            if !restored && !self.is_ready(&session)? {
                session.run(&self.init)?;
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
        }
        self.step = session.run(self.global_step.scalar::<i64>())?;
        self.last_saved = self.step;
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
            self.syncing = Some(aggregate(&session, sync, self.is_stopped.clone())?);
        }
        for hook in &mut self.training.hooks {
            hook.created(&session, self.step)?;
        }
        // Hooks may have given the variables other values.
        self.step = session.run(self.global_step.scalar::<i64>())?;
        self.session = Some(session);
        Ok(())
    }

    fn is_ready(&self, session: &GraphSession) -> Result<bool> {
        let values = session.run(&self.ready)?;
        Ok(values.iter().all(|v| v.scalar_value::<bool>().unwrap_or(false)))
    }

    /// Drops the session, and waits for what ran beside it.
    fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.close();
        }
        if let Some(thread) = self.syncing.take() {
            let _ = thread.join();
        }
    }

    /// Ends training: hooks are told, a last checkpoint is left. Returns where it is.
    pub fn close(mut self) -> Result<Option<String>> {
        let mut hooks = std::mem::take(&mut self.training.hooks);
        for hook in &mut hooks {
            hook.end(self.step)?;
        }
        let saved = self.save()?;
        if let Some(events) = &mut self.events {
            events.flush()?;
        }
        self.is_stopped.store(true, Ordering::Release);
        self.leave();
        Ok(saved)
    }
}

impl Drop for MonitoredSession {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        self.leave();
    }
}

/// Whether an error means that a server went away, and that it may come back.
fn is_lost(error: &Error) -> bool {
    matches!(error.code(), Code::Unavailable | Code::Aborted)
}

/// Applies the gradients of all replicas, step by step, until the session ends.
fn aggregate(
    session: &GraphSession,
    sync: &SyncTraining,
    stop: Arc<AtomicBool>,
) -> Result<JoinHandle<()>> {
    let (session, operation) = (session.clone(), sync.aggregate.clone());
    let thread = std::thread::Builder::new().name("ff-sync".into());
    let body = move || {
        while !stop.load(Ordering::Acquire) {
            match session.run(&operation) {
                // The replicas are slow, or have stopped.
                Err(e) if e.code() == Code::DeadlineExceeded => {}
                // The training step that waits for a token reports what went wrong.
                Err(_) => break,
                Ok(()) => {}
            }
        }
    };
    thread.spawn(body).map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{NanGuard, StopAtStep};
    use crate::optimizer::{Optimizer, Sgd};
    use crate::testing::{graph, session, temporary};

    #[test]
    fn training_goes_on_where_it_stopped() {
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
}
