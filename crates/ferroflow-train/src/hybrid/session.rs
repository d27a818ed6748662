//! The training loop of a hybrid job, and its recovery.
//!
//! The dense variables of all ranks are equal after each step. A rank keeps their values as of its
//! last commit. When a rank or a parameter server is lost, the step fails on all ranks. They
//! reconnect, take over the committed values of rank 0, and repeat the step. The tables keep what
//! the ranks have added to them, so rows of the failed step may be updated twice. If the tables are
//! lost with their server, rank 0 restores everything from the last checkpoint.

use super::{Hybrid, HybridUpdate};
use crate::fetch::{Feeds, Fetch};
use crate::graph::Graph;
use crate::hvd::elastic::{Elastic, State, is_lost};
use crate::output::{Operation, Output};
use crate::saver::{Saver, latest_checkpoint, restore_latest};
use crate::session::Session;
use crate::variable::Variable;
use ferroflow_core::{Code, Error, Result, Tensor, err};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the session may fail before a step succeeds.
const LOSSES: usize = 20;
/// The interval of attempts to open a session while a parameter server restarts.
const POLL: Duration = Duration::from_millis(100);
/// The prefix of checkpoints.
const PREFIX: &str = "model.ckpt";

/// The settings of a hybrid training; [`HybridTraining::open`] opens its session.
pub struct HybridTraining {
    job: Hybrid,
    graph: Graph,
    update: HybridUpdate,
    dir: Option<PathBuf>,
    save_steps: i64,
    commit_steps: i64,
    max_to_keep: usize,
    is_sharded: bool,
    wait: Duration,
}

impl HybridTraining {
    pub(super) fn new(job: Hybrid, graph: &Graph, update: &HybridUpdate) -> HybridTraining {
        HybridTraining {
            job,
            graph: graph.clone(),
            update: update.clone(),
            dir: None,
            save_steps: 1000,
            commit_steps: 1,
            max_to_keep: 5,
            is_sharded: false,
            wait: Duration::from_secs(60),
        }
    }

    /// The directory of checkpoints, which rank 0 writes. Every process that may become rank 0 must
    /// reach it.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_path_buf());
        self
    }

    /// Saves a checkpoint every `steps` steps, and one at the end.
    #[must_use]
    pub fn save_steps(mut self, steps: i64) -> Self {
        self.save_steps = steps.max(1);
        self
    }

    /// Steps between two commits of the dense variables of an elastic job, 1 by default. After a
    /// loss, the ranks repeat the steps since the last commit.
    #[must_use]
    pub fn commit_steps(mut self, steps: i64) -> Self {
        self.commit_steps = steps.max(1);
        self
    }

    /// How many checkpoints are kept.
    #[must_use]
    pub fn max_to_keep(mut self, count: usize) -> Self {
        self.max_to_keep = count;
        self
    }

    /// Each parameter server writes its own shards; see [`Saver::sharded`].
    #[must_use]
    pub fn sharded(mut self) -> Self {
        self.is_sharded = true;
        self
    }

    /// How long to wait for parameter servers, at the start and when one is lost.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Opens the session. Rank 0 restores the latest checkpoint or initializes all variables. The
    /// dense variables of the other ranks become equal to those of rank 0.
    #[track_caller]
    pub fn open(self) -> Result<HybridSession> {
        let g = &self.graph;
        let (tables, dense) = self.job.split(g.global_variables());
        let after = g.control_dependencies(std::slice::from_ref(&self.update.train), || {
            self.update.global_step.read()
        });
        let saver = self.dir.as_ref().map(|_| match self.is_sharded {
            true => Saver::sharded(g),
            false => Saver::new(g),
        });
        let ready = tables.iter().map(Variable::is_initialized).collect();
        let (init, init_dense) = (g.global_initializer(), g.initializer_of("init_dense", &dense));
        g.check()?;
        let mut session = HybridSession {
            saver: saver.map(|saver| saver.max_to_keep(self.max_to_keep)),
            after,
            init,
            init_dense,
            ready,
            tables,
            dense,
            session: None,
            state: None,
            step: 0,
            last_saved: 0,
            last_commit: 0,
            lost_in_a_row: 0,
            training: self,
        };
        session.retry(None)?;
        Ok(session)
    }
}

/// A session that trains a hybrid job; see [`HybridTraining`].
pub struct HybridSession {
    training: HybridTraining,
    saver: Option<Saver>,
    /// The global step after the training op.
    after: Output,
    init: Operation,
    init_dense: Operation,
    /// Whether each table is initialized.
    ready: Vec<Output>,
    tables: Vec<Variable>,
    dense: Vec<Variable>,
    session: Option<Session>,
    /// The committed dense variables.
    state: Option<State>,
    step: i64,
    last_saved: i64,
    last_commit: i64,
    lost_in_a_row: usize,
}

impl HybridSession {
    /// The global step after the last step.
    pub fn global_step(&self) -> i64 {
        self.step
    }

    /// The underlying session.
    pub fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| err!(FailedPrecondition, "the session is closed"))
    }

    /// Number of gradients of shards that came too late; see [`super::PsMode::Backup`].
    pub fn stale_gradients(&self) -> Result<i64> {
        match &self.training.update.sync {
            Some(sync) => sync.stale(self.session()?),
            None => Ok(0),
        }
    }

    /// How long each recovery from a lost rank or parameter server took.
    pub fn recoveries(&self) -> Vec<Duration> {
        let elastic = self.training.job.0.elastic.lock();
        elastic.as_ref().map(|job| job.recoveries().to_vec()).unwrap_or_default()
    }

    /// Trains one step, and returns the fetches.
    pub fn train<F: Fetch>(&mut self, fetches: F) -> Result<F::Value> {
        self.train_fed((), fetches)
    }

    /// [`HybridSession::train`] with feeds. When the ranks or the parameter servers of an elastic
    /// job change, all ranks train the step again, so that all of them return from the same step.
    /// The global step may then advance by more than one.
    pub fn train_fed<F: Fetch>(&mut self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let mut fed = Vec::new();
        feeds.collect_into(&mut fed)?;
        loop {
            let trained = self.attempt(&fed, &fetches).and_then(|value| {
                self.after_step()?;
                Ok(value)
            });
            match trained {
                Ok(value) => {
                    self.lost_in_a_row = 0;
                    return Ok(value);
                }
                // Other ranks may be behind this one, and new ones begin with a step: so all ranks
                // repeat it, whatever has failed here.
                Err(e) => self.retry(Some(e))?,
            }
        }
    }

    fn attempt<F: Fetch>(&mut self, feeds: &[(String, Tensor)], fetches: &F) -> Result<F::Value> {
        let update = &self.training.update;
        let together = update.sync.as_ref().map(|sync| {
            let is_first = self.training.job.world().is_first();
            if is_first { &sync.first } else { &sync.others }
        });
        let all = (fetches, &update.train, self.after.scalar::<i64>(), together);
        let (value, (), step, _) = self.session()?.run_fed(feeds, all)?;
        self.step = step;
        Ok(value)
    }

    /// Saves and commits if it is time to.
    fn after_step(&mut self) -> Result<()> {
        let is_first = self.training.job.world().is_first();
        if is_first && self.step - self.last_saved >= self.training.save_steps {
            match self.save() {
                Err(e) if is_lost(&e) => return Err(e),
                Err(e) => {
                    tracing::warn!(
                        "cannot save a checkpoint at step {}: {}",
                        self.step,
                        e.message()
                    );
                    self.last_saved = self.step;
                }
                Ok(_) => {}
            }
        }
        if self.is_elastic() && self.step - self.last_commit >= self.training.commit_steps {
            self.last_commit = self.step;
            if let Some(state) = &mut self.state {
                state.step = self.step;
                state.commit(self.training.job.world())?;
            }
        }
        Ok(())
    }

    fn is_elastic(&self) -> bool {
        self.training.job.0.elastic.lock().is_some()
    }

    /// Saves a checkpoint now, if this is rank 0 and there is a directory. Returns its path.
    pub fn save(&mut self) -> Result<Option<String>> {
        let (Some(saver), Some(dir)) = (&self.saver, &self.training.dir) else { return Ok(None) };
        if !self.training.job.world().is_first() {
            return Ok(None);
        }
        let path = saver.save(self.session()?, dir.join(PREFIX), Some(self.step))?;
        self.last_saved = self.step;
        Ok(Some(path))
    }

    /// Prepares the next step, at the start or after `error`. Tries again if another rank or server
    /// is lost during that.
    fn retry(&mut self, error: Option<Error>) -> Result<()> {
        let since = Instant::now();
        let mut error = error;
        let mut is_loss = false;
        loop {
            if let Some(e) = error.take() {
                is_loss |= self.leave(e)?;
                // Not under the lock: this waits for the other ranks.
                let elastic = self.training.job.0.elastic.lock().take();
                if let Some(mut job) = elastic {
                    job.reconnect()?;
                    *self.training.job.0.elastic.lock() = Some(job);
                }
            }
            match self.start() {
                Ok(()) => break,
                Err(e) => error = Some(e),
            }
        }
        if is_loss && let Some(job) = &mut *self.training.job.0.elastic.lock() {
            job.recovered(since);
        }
        Ok(())
    }

    /// Leaves the present ranks because of an error, which is returned if this job cannot go on.
    /// Returns whether something was lost.
    fn leave(&mut self, error: Error) -> Result<bool> {
        let world = self.training.job.world();
        let is_planned = self.state.as_mut().is_some_and(State::take_changing);
        if !self.is_elastic() || !(is_planned || is_lost(&error) || world.failure().is_some()) {
            return Err(error);
        }
        if !is_planned {
            self.lost_in_a_row += 1;
            if self.lost_in_a_row > LOSSES {
                let text = format!("the session failed {LOSSES} times without a step");
                return Err(error.context(text));
            }
            if world.failure().is_none() {
                // The others wait for this rank, which cannot go on.
                let text = format!("rank {}: {}", world.rank(), error.message());
                world.abort(Error::new(Code::Aborted, text));
            }
        }
        tracing::info!("the job changes: {error}");
        if let Some(session) = self.session.take() {
            let _ = session.close();
        }
        Ok(!is_planned)
    }

    /// Opens the session, and makes the variables of this rank equal to those of rank 0.
    fn start(&mut self) -> Result<()> {
        let job = self.training.job.clone();
        let deadline = Instant::now() + self.training.wait;
        if job.world().is_first() {
            self.follow_ps(&job);
        }
        let announced = job.0.elastic.lock().as_ref().map(Elastic::ps).unwrap_or_default();
        let ps = if announced.is_empty() { job.ps() } else { announced };
        let session = loop {
            match job.session_of(&self.training.graph, &ps) {
                Ok(session) => break session,
                Err(e) if !may_come_back(&e) => return Err(e),
                Err(e) if Instant::now() + POLL >= deadline => {
                    let (wait, text) = (self.training.wait, e.message());
                    return Err(err!(
                        DeadlineExceeded,
                        "the parameter servers {} did not answer within {wait:?}: {text}",
                        ps.join(", ")
                    ));
                }
                Err(_) => std::thread::sleep(POLL),
            }
        };
        *job.0.ps.lock() = ps;
        self.session = Some(session.clone());
        let is_new = self.state.is_none();
        if let Some(state) = &mut self.state {
            state.use_session(&session);
            state.restore()?;
        }
        if job.world().is_first() {
            let has_tables = self.is_ready(&session)?;
            if is_new || !has_tables {
                self.restore(&session, is_new, has_tables)?;
            }
            if let Some(sync) = &self.training.update.sync {
                sync.reset(&session)?;
            }
        } else if is_new {
            session.run(&self.init_dense)?;
        }
        self.equalize(&session)?;
        if job.world().is_first()
            && let Some(elastic) = &*job.0.elastic.lock()
        {
            elastic.settled();
        }
        Ok(())
    }

    /// Takes over rank 0's dense variables, and commits them.
    fn equalize(&mut self, session: &Session) -> Result<()> {
        let job = &self.training.job;
        if self.state.is_none() {
            let mut state = State::of(&self.training.graph, session, self.dense.clone())?;
            if let Some(elastic) = &*job.0.elastic.lock() {
                state.attach(elastic);
            }
            self.state = Some(state);
        }
        if let Some(state) = &mut self.state {
            state.sync(job.world())?;
        }
        let step = &self.training.update.global_step;
        self.step = session.run(step.scalar::<i64>())?;
        (self.last_commit, self.last_saved) = (self.step, self.step);
        Ok(())
    }

    /// Rank 0 restores all variables from the latest checkpoint. Without one, a new job initializes
    /// them, and a job that has lost its tables begins again.
    fn restore(&mut self, session: &Session, is_new: bool, has_tables: bool) -> Result<()> {
        let restored = match (&self.saver, &self.training.dir) {
            (Some(saver), Some(dir)) => {
                saver.recover(dir);
                restore_latest(saver, session, dir)?
            }
            _ => false,
        };
        match (restored, has_tables) {
            (true, _) => {}
            // Another rank 0 has trained these tables already.
            (false, true) => session.run(&self.init_dense)?,
            (false, false) => {
                if !is_new {
                    tracing::warn!("the tables are lost and there is no checkpoint: starting anew");
                }
                session.run(&self.init)?;
            }
        }
        match &mut self.state {
            Some(state) => state.keep(),
            None => Ok(()),
        }
    }

    fn is_ready(&self, session: &Session) -> Result<bool> {
        let values = session.run(&self.ready)?;
        Ok(values.iter().all(|v| v.scalar_value::<bool>().unwrap_or(false)))
    }

    /// Moves the tables if the parameter servers have changed. If that fails, they are restored
    /// from the last checkpoint.
    fn follow_ps(&self, job: &Hybrid) {
        let new = job.0.elastic.lock().as_ref().map(Elastic::ps).unwrap_or_default();
        let old = job.ps();
        let Some(member) = job.0.cluster.as_ref().filter(|_| !new.is_empty() && new != old) else {
            return;
        };
        match job.move_shards(member, &self.tables, &old, &new) {
            Ok(moved) => tracing::info!(
                "{} parameter servers, {} before: moved {moved} variables",
                new.len(),
                old.len()
            ),
            Err(e) => tracing::warn!(
                "cannot move the tables to {} parameter servers, restoring the last checkpoint: {}",
                new.len(),
                e.message()
            ),
        }
    }

    /// Ends training: rank 0 saves a last checkpoint. Returns the path of the latest.
    pub fn close(mut self) -> Result<Option<String>> {
        let is_saved = self.last_saved == self.step
            && self.training.dir.as_ref().is_some_and(|dir| latest_checkpoint(dir).is_some());
        let saved = match is_saved {
            true => Ok(self.training.dir.as_ref().and_then(latest_checkpoint)),
            false => self.save(),
        };
        // The tables must not lose a rank while rank 0 saves them.
        let together = self.training.job.world().barrier("hybrid/end");
        if let Some(state) = &mut self.state {
            state.detach();
        }
        if let Some(session) = self.session.take() {
            let _ = session.close();
        }
        let elastic = self.training.job.0.elastic.lock().take();
        match elastic {
            Some(job) => job.finish(),
            None => self.training.job.world().shutdown(),
        }
        let path = saved?;
        match together {
            // A rank that is lost after the last step changes nothing.
            Err(e) if !is_lost(&e) => Err(e),
            _ => Ok(path),
        }
    }
}

/// Whether a parameter server may answer later.
fn may_come_back(e: &Error) -> bool {
    is_lost(e) || e.code() == Code::DeadlineExceeded
}
