//! The supervisor: a background thread that saves checkpoints and writes summaries while the
//! program runs its own steps.

use crate::graph::Graph;
use crate::monitored::{MonitoredSession, MonitoredTraining, after, is_lost};
use crate::output::Output;
use crate::session::Session;
use ferroflow_core::{Result, err};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Supervises a session, as TensorFlow's `Supervisor`. The chief initializes or restores the
/// variables; other processes wait for it. A background thread saves checkpoints by time.
/// [`MonitoredTraining`] also repeats steps after failures.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Session, Supervisor};
/// use std::time::Duration;
/// let w = g.variable("w", 0.0);
/// let add = w.assign_add(1.0);
/// let supervisor = Supervisor::new(&g).save_every(Duration::from_secs(60)); // .dir("out")
/// let supervised = supervisor.open(Session::local)?;
/// for _ in 0..10 {
///     supervised.session().run(&add)?;
/// }
/// supervised.stop()?;
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct Supervisor {
    training: MonitoredTraining,
    save_every: Duration,
    summaries: Option<(Output, Duration)>,
}

impl Supervisor {
    /// A supervisor of sessions of `graph`.
    pub fn new(graph: &Graph) -> Supervisor {
        let nothing = graph.group("supervised", &[]);
        Supervisor {
            training: MonitoredTraining::new(graph, &nothing),
            save_every: Duration::from_secs(600),
            summaries: None,
        }
    }

    /// Whether this is the chief, which initializes, restores and saves. The others wait for it.
    #[must_use]
    pub fn chief(mut self, is_chief: bool) -> Self {
        self.training = self.training.chief(is_chief);
        self
    }

    /// The directory of checkpoints and events. The chief restores its latest checkpoint.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.training = self.training.dir(dir);
        self
    }

    /// The time between checkpoints; ten minutes by default.
    #[must_use]
    pub fn save_every(mut self, interval: Duration) -> Self {
        self.save_every = interval;
        self
    }

    /// Writes a summary, such as that of [`crate::summary::merge_all`], at this interval. A
    /// separate step computes it, so it must not depend on placeholders.
    #[must_use]
    pub fn summary_every(mut self, summary: &Output, interval: Duration) -> Self {
        self.summaries = Some((summary.clone(), interval));
        self
    }

    /// How long to wait for the chief; see [`MonitoredTraining::wait`].
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.training = self.training.wait(wait);
        self
    }

    /// Opens the session, waits until all variables are initialized, and starts the background
    /// thread.
    #[track_caller]
    pub fn open(
        self,
        open: impl Fn(&Graph) -> Result<Session> + Send + 'static,
    ) -> Result<Supervised> {
        let monitored = self.training.open(open)?;
        let session = monitored.session()?.clone();
        let stopper = monitored.stopper();
        let over = Arc::new(Over::default());
        let (known, save_every, summaries) = (over.clone(), self.save_every, self.summaries);
        let thread = std::thread::Builder::new()
            .name("ff-supervisor".into())
            .spawn(move || supervise(monitored, &known, save_every, summaries.as_ref()))
            .map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?;
        Ok(Supervised { session, stopper, over, thread: Some(thread) })
    }
}

/// A supervised session; see [`Supervisor`].
pub struct Supervised {
    session: Session,
    stopper: Arc<AtomicBool>,
    over: Arc<Over>,
    /// Returns the monitored session, and the result of the background work.
    thread: Option<JoinHandle<(MonitoredSession, Result<()>)>>,
}

/// How long a summary or checkpoint in progress may take after a stop, as in TensorFlow.
const GRACE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    /// Waits for the end, at most until `time`. Returns whether it has ended.
    fn is_over_by(&self, time: Instant) -> bool {
        let mut is_over = self.is_over.lock();
        self.changed.wait_while_until(&mut is_over, |is_over| !*is_over, time);
        *is_over
    }
}

fn supervise(
    mut monitored: MonitoredSession,
    over: &Over,
    save_every: Duration,
    summaries: Option<&(Output, Duration)>,
) -> (MonitoredSession, Result<()>) {
    let mut save_at = after(save_every);
    let mut summary_at = summaries.map(|(_, interval)| after(*interval));
    while !over.is_over_by(summary_at.map_or(save_at, |at| at.min(save_at))) {
        let mut done = Ok(());
        if let (Some((summary, interval)), Some(at)) = (summaries, summary_at)
            && Instant::now() >= at
        {
            summary_at = Some(after(*interval));
            done = monitored.write_summary(summary);
        }
        if Instant::now() >= save_at {
            save_at = after(save_every);
            done = done.and_then(|()| monitored.save().map(|_| ()));
        }
        match done {
            Err(e) if !is_lost(&e) => {
                tracing::warn!("cannot save a checkpoint or a summary: {}", e.message());
            }
            Err(e) => return (monitored, Err(e)),
            Ok(()) => {}
        }
    }
    (monitored, Ok(()))
}

impl Supervised {
    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a stop was requested, or the background thread has failed. [`Supervised::stop`]
    /// returns its error.
    pub fn should_stop(&self) -> bool {
        self.stopper.load(Ordering::Acquire)
            || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Requests a stop, from any thread.
    pub fn request_stop(&self) {
        self.stopper.store(true, Ordering::Release);
    }

    /// Stops, and saves a last checkpoint. Returns its path.
    pub fn stop(mut self) -> Result<Option<String>> {
        let Some((mut monitored, supervised)) = self.end() else {
            return Err(err!(Internal, "the supervisor's thread panicked"));
        };
        // Always save: not every program counts steps, so new values may have the same step.
        let saved = monitored.save();
        let closed = monitored.close();
        supervised?;
        closed.and(saved)
    }

    fn end(&mut self) -> Option<(MonitoredSession, Result<()>)> {
        *self.over.is_over.lock() = true;
        self.over.changed.notify_all();
        let thread = self.thread.take()?;
        // A summary step could block forever if its input has ended.
        let until = after(GRACE);
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        if !thread.is_finished() {
            let _ = self.session.close();
        }
        thread.join().ok()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saver::latest_checkpoint;
    use crate::testing::{graph, session, temporary};

    fn count(dir: &Path, times: i64) -> (f32, Option<String>) {
        let g = graph();
        let w = g.variable("w", 0.0);
        let step = g.global_step();
        let add = [w.assign_add(1.0), step.assign_add(g.constant(1i64))];
        let supervised = Supervisor::new(&g).dir(dir).open(session).unwrap();
        for _ in 0..times {
            supervised.session().run(&add).unwrap();
        }
        let value = supervised.session().run(w.scalar::<f32>()).unwrap();
        assert!(!supervised.should_stop());
        supervised.request_stop();
        assert!(supervised.should_stop());
        (value, supervised.stop().unwrap())
    }

    #[test]
    fn a_supervised_program_continues_from_its_checkpoint() {
        let dir = temporary("supervised");
        let (value, saved) = count(&dir, 3);
        assert_eq!((value, saved), (3.0, latest_checkpoint(&dir)));
        let (value, saved) = count(&dir, 2);
        assert!(value == 5.0 && saved.is_some_and(|path| path.ends_with("model.ckpt-5")));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn checkpoints_and_summaries_are_written_by_time() {
        let dir = temporary("supervised-often");
        let g = graph();
        let w = g.variable("w", 0.0);
        crate::summary::scalar("w", &w);
        let summary = crate::summary::merge_all(&g).unwrap();
        let step = g.global_step();
        let next = step.assign_add(g.constant(1i64));
        let often = Duration::from_millis(1);
        let supervised = Supervisor::new(&g)
            .dir(&dir)
            .save_every(often)
            .summary_every(&summary, often)
            .open(session)
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while latest_checkpoint(&dir).is_none() {
            supervised.session().run(&next).unwrap();
            assert!(Instant::now() < deadline, "no checkpoint was saved");
        }
        supervised.stop().unwrap();
        let is_events = |p: &std::path::PathBuf| p.display().to_string().contains("tfevents");
        let mut files = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
        let events = crate::read_events(files.find(is_events).unwrap()).unwrap();
        let is_summary = |e: &crate::Event| matches!(e.what, crate::EventKind::Summary(_));
        assert!(events.iter().any(is_summary));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn programs_without_a_step_count_are_saved() {
        let dir = temporary("uncounted");
        let g = graph();
        let w = g.variable("w", 0.0);
        let add = w.assign_add(1.0);
        for expected in [1.0, 2.0] {
            let supervised =
                Supervisor::new(&g).dir(&dir).save_every(Duration::MAX).open(session).unwrap();
            supervised.session().run(&add).unwrap();
            assert_eq!(supervised.session().run(w.scalar::<f32>()).unwrap(), expected);
            assert!(!supervised.should_stop());
            assert_eq!(supervised.stop().unwrap(), latest_checkpoint(&dir));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
