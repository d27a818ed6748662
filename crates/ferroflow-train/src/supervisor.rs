//! Looking after a session from beside it: the program runs what steps it likes, a thread saves and
//! writes summaries now and then.

use crate::graph::Graph;
use crate::monitored::{MonitoredSession, MonitoredTraining, after};
use crate::output::Output;
use crate::session::Session;
use ferroflow_core::{Result, err};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a session is looked after; [`Supervisor::open`] starts that. As TensorFlow's supervisor
/// does, it initializes or restores variables if it is the chief's, waits for the chief if not, and
/// saves by time rather than by steps. [`MonitoredTraining`] does more, for loops that leave the
/// steps to it.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// # let open = |_: &ferroflow_train::Graph| Err(ferroflow_core::Error::new(ferroflow_core::Code::Unimplemented, ""));
/// use ferroflow_train::Supervisor;
/// use std::time::Duration;
/// let w = g.variable("w", 0.0);
/// let add = w.assign_add(1.0);
/// let supervisor = Supervisor::new(&g).save_every(Duration::from_secs(60)); // .dir("out")
/// if let Ok(supervised) = supervisor.open(open) { // or a server's
///     while !supervised.should_stop() {
///         supervised.session().run(&add)?;
///     }
///     supervised.stop()?;
/// }
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct Supervisor {
    training: MonitoredTraining,
    save_every: Duration,
    summaries: Option<(Output, Duration)>,
}

impl Supervisor {
    pub fn new(graph: &Graph) -> Supervisor {
        let nothing = graph.group("supervised", &[]);
        Supervisor {
            training: MonitoredTraining::new(graph, &nothing),
            save_every: Duration::from_secs(600),
            summaries: None,
        }
    }

    /// Whether this one initializes, restores and saves; the others wait until that is done.
    #[must_use]
    pub fn chief(mut self, is_chief: bool) -> Self {
        self.training = self.training.chief(is_chief);
        self
    }

    /// Where the chief leaves checkpoints and events, and goes on from.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.training = self.training.dir(dir);
        self
    }

    /// The time between checkpoints; ten minutes, if not given.
    #[must_use]
    pub fn save_every(mut self, interval: Duration) -> Self {
        self.save_every = interval;
        self
    }

    /// Writes a summary, such as that of [`crate::summary::merge_all`], every so often. It is
    /// computed by a step of its own, so what it needs must not have to be fed.
    #[must_use]
    pub fn summary_every(mut self, summary: &Output, interval: Duration) -> Self {
        self.summaries = Some((summary.clone(), interval));
        self
    }

    /// How long one waits for the chief; see [`MonitoredTraining::wait`].
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.training = self.training.wait(wait);
        self
    }

    /// Opens the session, makes sure that all variables have values, and starts to look after it.
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
            .spawn(move || look_after(monitored, &known, save_every, summaries.as_ref()))
            .map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?;
        Ok(Supervised { session, stopper, over, thread: Some(thread) })
    }
}

/// A session that is looked after; see [`Supervisor`].
pub struct Supervised {
    session: Session,
    stopper: Arc<AtomicBool>,
    over: Arc<Over>,
    /// Gives back what it looked after, and whether that went well.
    thread: Option<JoinHandle<(MonitoredSession, Result<()>)>>,
}

/// How long a summary or checkpoint that is under way may take when it is to end, as in TensorFlow.
const GRACE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    /// Waits until it is over, or `time` has come.
    fn is_over_by(&self, time: Instant) -> bool {
        let mut is_over = self.is_over.lock();
        self.changed.wait_while_until(&mut is_over, |is_over| !*is_over, time);
        *is_over
    }
}

fn look_after(
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
        if done.is_err() {
            return (monitored, done);
        }
    }
    (monitored, Ok(()))
}

impl Supervised {
    /// The session, for whatever steps.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether somebody asked to stop, or looking after the session has failed:
    /// [`Supervised::stop`] says how.
    pub fn should_stop(&self) -> bool {
        self.stopper.load(Ordering::Acquire)
            || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks to stop, from whichever thread.
    pub fn request_stop(&self) {
        self.stopper.store(true, Ordering::Release);
    }

    /// Ends it with a last checkpoint; returns where that is.
    pub fn stop(mut self) -> Result<Option<String>> {
        let Some((mut monitored, looked_after)) = self.end() else {
            return Err(err!(Internal, "the supervisor's thread panicked"));
        };
        // Not every program counts the steps by which one would know that there is something new.
        let saved = monitored.save();
        let closed = monitored.close();
        looked_after?;
        closed.and(saved)
    }

    fn end(&mut self) -> Option<(MonitoredSession, Result<()>)> {
        *self.over.is_over.lock() = true;
        self.over.changed.notify_all();
        let thread = self.thread.take()?;
        // A step of its own may wait for what nobody brings any more.
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
    fn a_supervised_program_goes_on_where_it_was() {
        let dir = temporary("supervised");
        let (value, saved) = count(&dir, 3);
        assert_eq!((value, saved), (3.0, latest_checkpoint(&dir)));
        let (value, saved) = count(&dir, 2);
        assert!(value == 5.0 && saved.is_some_and(|path| path.ends_with("model.ckpt-5")));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn checkpoints_and_summaries_come_by_themselves() {
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
            assert!(Instant::now() < deadline, "nobody saved");
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
    fn programs_that_count_no_steps_are_saved_too() {
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
