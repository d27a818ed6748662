//! Running steps. A step begins with the master's RunGraph, or earlier, with a RecvTensor or value
//! of a task that runs ahead. It ends with the master's CleanupGraph.

use super::owners::Owners;
use super::partial::PartialExecution;
use super::rendezvous::StepRendezvous;
use super::session::WorkerSession;
use crate::dedup::RecentIds;
use crate::rpc::BoxFuture;
use ferroflow_core::{
    CancelToken, Error, HashMap, InlineScope, QuotaShare, Received, Resources, Result, ensure, err,
    memory_limit,
};
use ferroflow_metrics::{PeerCounters, TaskMetrics};
use parking_lot::Mutex;
use slab::Slab;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many RecvTensors may wait for steps that have not started here.
const MAX_PARKED: usize = 1 << 16;

/// How many cleaned-up steps are remembered, so that a late RecvTensor does not wait for them.
const REMEMBERED: usize = 10_000;

/// How long an abandoned step is kept for a master that does not clean up.
const ABANDONED: Duration = Duration::from_secs(60);

/// How long a receiver waits for a push before it sends a RecvTensor.
const OVERDUE: Duration = Duration::from_millis(25);

/// Checking stops after this many checks without overdue or early values.
const IDLE_ROUNDS: u32 = 40;

/// Backpressure: with more bytes than this in values for steps that have not started, large values
/// are not read. A process with little memory keeps less; see `early_bytes`.
const EARLY_BYTES: usize = 256 << 20;

/// Bytes that a value takes in the table besides its name and its elements.
const OVERHEAD: usize = 256;

/// The most steps that have values and have not started. Values of more steps are dropped, and so
/// are those beyond twice `early_bytes`. Their steps fail.
const MOST_EARLY_STEPS: usize = 1 << 15;

/// How long values wait for their step to start.
const EARLY_LIFE: Duration = Duration::from_secs(60);

/// State that the parts of one step on this task share. A step may have several RunGraphs.
pub(super) struct WorkerStep {
    pub id: i64,
    pub rendezvous: Arc<StepRendezvous>,
    /// Tensor arrays, stacks, temporary variables.
    pub resources: Arc<Resources>,
    session: OnceLock<BoundSession>,
    state: Mutex<State>,
}

/// The session of a step, which counts it until it is cleaned up.
struct BoundSession {
    session: Weak<WorkerSession>,
    _counted: QuotaShare,
}

#[derive(Default)]
struct State {
    runs: Slab<CancelToken>,
    partial: Option<Arc<PartialExecution>>,
    /// Why the step is over, once it is.
    ended: Option<Error>,
}

impl WorkerStep {
    fn new(id: i64, steps: &WorkerSteps) -> Arc<WorkerStep> {
        Arc::new(WorkerStep {
            id,
            rendezvous: StepRendezvous::new(
                id,
                steps.io.clone(),
                steps.me.clone(),
                steps.metrics.clone(),
            ),
            resources: Arc::default(),
            session: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// The session that runs it, once it has started.
    pub fn session(&self) -> Option<Arc<WorkerSession>> {
        self.session.get().and_then(|bound| bound.session.upgrade())
    }

    /// Whether a RunGraph of it was seen.
    pub fn has_started(&self) -> bool {
        self.rendezvous.view().is_some()
    }

    /// Adds a run that `cancel` ends. Dropping the guard removes it.
    pub fn begin_run(self: &Arc<Self>, cancel: &CancelToken) -> Result<RunGuard> {
        let mut state = self.state.lock();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        let id = state.runs.insert(cancel.clone());
        Ok(RunGuard { step: self.clone(), id })
    }

    /// The partial run of this step, and whether it is new.
    pub fn partial(&self) -> (Arc<PartialExecution>, bool) {
        let mut state = self.state.lock();
        let is_new = state.partial.is_none();
        (state.partial.get_or_insert_default().clone(), is_new)
    }

    /// Ends the runs and receivers of the step.
    fn end(&self, why: Error) {
        let runs = {
            let mut state = self.state.lock();
            state.ended.get_or_insert(why.clone());
            state.partial = None;
            std::mem::take(&mut state.runs)
        };
        for (_, cancel) in runs {
            cancel.cancel(why.clone());
        }
        self.rendezvous.abort_now(why);
        self.resources.clear();
    }
}

/// A run that has not ended.
pub(super) struct RunGuard {
    step: Arc<WorkerStep>,
    id: usize,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.step.state.lock().runs.try_remove(self.id);
    }
}

/// The steps of a worker, by id.
pub(super) struct WorkerSteps {
    table: Mutex<Table>,
    /// The last steps that were cleaned up and not started again.
    cleaned: Arc<RecentIds>,
    /// Steps whose early values were dropped: they cannot run.
    overrun: RecentIds,
    /// Wakes readers that wait for room.
    changed: Notify,
    is_watched: AtomicBool,
    /// The number of values that arrived for steps that are over or never started.
    dropped: AtomicU64,
    /// The error of receivers that still wait when their step is cleaned up.
    over: Error,
    io: Handle,
    me: Weak<WorkerSteps>,
    metrics: Arc<TaskMetrics>,
}

#[derive(Default)]
struct Table {
    steps: HashMap<i64, Entry>,
    /// Totals of all entries.
    parked: usize,
    early_bytes: usize,
    early_steps: usize,
}

struct Entry {
    step: Arc<WorkerStep>,
    /// RecvTensors that arrived before the step had started.
    parked: usize,
    /// Bytes of values that arrived before the step had started, and when the first one arrived.
    early_bytes: usize,
    early_since: Option<Instant>,
}

impl WorkerSteps {
    pub fn new(io: Handle, metrics: Arc<TaskMetrics>) -> Arc<WorkerSteps> {
        Arc::new_cyclic(|me| WorkerSteps {
            table: Mutex::default(),
            cleaned: Arc::new(RecentIds::new(REMEMBERED)),
            overrun: RecentIds::new(REMEMBERED),
            changed: Notify::new(),
            is_watched: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            over: err!(Cancelled, "The step was cleaned up").derived(),
            io,
            me: me.clone(),
            metrics,
        })
    }

    /// The last steps that were cleaned up and not started again.
    pub fn cleaned(&self) -> Arc<RecentIds> {
        self.cleaned.clone()
    }

    /// The metrics of the task.
    pub fn metrics(&self) -> &TaskMetrics {
        &self.metrics
    }

    fn entry<'t>(&self, table: &'t mut Table, id: i64) -> &'t mut Entry {
        table.steps.entry(id).or_insert_with(|| Entry {
            step: WorkerStep::new(id, self),
            parked: 0,
            early_bytes: 0,
            early_since: None,
        })
    }

    /// The step that a master starts in `session`.
    pub fn start(
        &self,
        id: i64,
        session: &Arc<WorkerSession>,
        owners: &Owners,
    ) -> Result<Arc<WorkerStep>> {
        let mut table = self.table.lock();
        // The values of a step are for the parts of its own session alone.
        if let Some(other) = table.steps.get(&id).and_then(|entry| entry.step.session()) {
            owners.ensure(&other.owner, &session.owner, || format!("step {id}"))?;
        }
        let counted = session.uncleaned.take(1, "a master that does not clean up its steps")?;
        let entry = self.entry(&mut table, id);
        let was_early = entry.early_since.take().is_some();
        let early_bytes = std::mem::take(&mut entry.early_bytes);
        let step = entry.step.clone();
        // Under the lock: a step that has not started is removed with its last parked request.
        table.early_bytes -= early_bytes;
        table.early_steps -= usize::from(was_early);
        step.rendezvous.bind(&session.view)?;
        let session = Arc::downgrade(session);
        step.session.get_or_init(|| BoundSession { session, _counted: counted });
        drop(table);
        // The step now has room for its own values, even if many wait for other steps.
        self.changed.notify_waiters();
        ensure!(
            !self.overrun.contains(id),
            Aborted,
            "Step {id} has started too late: values for it had to be dropped"
        );
        Ok(step)
    }

    /// Takes a value that another task pushed. Keeps it for a while if its step has not started.
    /// Drops it if its step is over.
    pub fn arrived(
        &self,
        from: &PeerCounters,
        id: i64,
        key: &str,
        value: Result<Received>,
        scope: &InlineScope,
    ) {
        if let Ok(Received::Live(tensor)) = &value {
            self.metrics.received_value(from, tensor.byte_len());
        }
        let mut table = self.table.lock();
        let started = table.steps.get(&id).filter(|entry| entry.step.has_started());
        if let Some(entry) = started {
            let step = entry.step.clone();
            drop(table);
            return step.rendezvous.arrived(from, key, value, scope);
        }
        // A dead value needs memory too.
        let bytes = key.len()
            + OVERHEAD
            + match &value {
                Ok(Received::Live(tensor)) => tensor.byte_len(),
                _ => 0,
            };
        let is_early = table.steps.get(&id).is_some_and(|entry| entry.early_since.is_some());
        let is_too_much = table.early_bytes.saturating_add(bytes) > 2 * early_bytes()
            || (!is_early && table.early_steps >= MOST_EARLY_STEPS);
        if is_too_much && !self.cleaned.contains(id) {
            self.overrun.insert(id);
        }
        if is_too_much || self.cleaned.contains(id) || self.overrun.contains(id) {
            drop(table);
            return self.count_dropped(id);
        }
        table.early_bytes += bytes;
        table.early_steps += usize::from(!is_early);
        let entry = self.entry(&mut table, id);
        entry.early_bytes += bytes;
        entry.early_since.get_or_insert_with(Instant::now);
        let step = entry.step.clone();
        // Under the lock, so that the step does not start in between.
        step.rendezvous.arrived(from, key, value, scope);
        drop(table);
        self.watch();
    }

    /// Completes when a large value of a step may be read; none if it may be read now.
    pub fn room(&self, id: i64) -> Option<BoxFuture<()>> {
        if self.has_room(id) {
            return None;
        }
        let steps = self.me.upgrade()?;
        Some(Box::pin(async move {
            loop {
                let changed = steps.changed.notified();
                if steps.has_room(id) {
                    return;
                }
                changed.await;
            }
        }))
    }

    fn has_room(&self, id: i64) -> bool {
        let table = self.table.lock();
        table.early_bytes <= early_bytes()
            || table.steps.get(&id).is_some_and(|entry| entry.step.has_started())
            // A value for a step that is over is read and dropped.
            || self.cleaned.contains(id)
    }

    /// Fails the receivers of values with these keys, whose link was lost.
    pub fn lost_source(&self, is_its: &dyn Fn(&str) -> bool, error: &Error) {
        self.all().iter().for_each(|step| step.rendezvous.lost(is_its, error));
    }

    /// Fails the steps whose values went over a lost link: they may not have arrived.
    pub fn lost_link(&self, link: u64, error: &Error) {
        for step in self.all() {
            if step.rendezvous.has_used(link) {
                step.rendezvous.abort_now(error.clone());
            }
        }
    }

    /// Counts a value that was dropped because its step is over or does not start.
    fn count_dropped(&self, id: i64) {
        let total = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::debug!(
            step = id,
            total,
            "dropped a value of a step that is over or has not begun"
        );
    }

    fn all(&self) -> Vec<Arc<WorkerStep>> {
        self.table.lock().steps.values().map(|entry| entry.step.clone()).collect()
    }

    /// Starts checking for overdue and early values, unless that is under way. Stops when there
    /// have been none for a while.
    pub fn watch(&self) {
        if self.is_watched.load(Ordering::Relaxed) || self.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = self.me.clone();
        self.io.spawn(async move {
            let mut idle = 0;
            loop {
                tokio::time::sleep(OVERDUE).await;
                let Some(me) = me.upgrade() else { return };
                idle = if me.look() { 0 } else { idle + 1 };
                if idle >= IDLE_ROUNDS {
                    me.is_watched.store(false, Ordering::Release);
                    // A value that arrived after the last check has not started another checker.
                    if !me.look() || me.is_watched.swap(true, Ordering::AcqRel) {
                        return;
                    }
                    idle = 0;
                }
            }
        });
    }

    /// Sends RecvTensor for overdue values and drops early ones that are too old. Returns whether
    /// there is more to check later.
    fn look(&self) -> bool {
        let mut any = false;
        for step in self.all() {
            any |= step.rendezvous.ask_for_overdue(OVERDUE);
        }
        let expired: Vec<i64> = {
            let table = self.table.lock();
            let waiting = table.steps.iter().filter_map(|(id, e)| Some((*id, e.early_since?)));
            let waiting: Vec<(i64, Instant)> = waiting.collect();
            any |= !waiting.is_empty();
            waiting.into_iter().filter(|(_, at)| at.elapsed() >= EARLY_LIFE).map(|w| w.0).collect()
        };
        for id in expired {
            self.overrun.insert(id);
            self.count_dropped(id);
            self.remove(id, |step| !step.has_started(), cleaned_up(id));
        }
        any
    }

    /// The step that another task asks for a value of. Until it has started, the request counts as
    /// parked.
    pub fn find_or_park(self: &Arc<Self>, id: i64) -> Result<(Arc<WorkerStep>, Option<Parked>)> {
        let mut table = self.table.lock();
        if let Some(entry) = table.steps.get(&id)
            && entry.step.has_started()
        {
            return Ok((entry.step.clone(), None));
        }
        if self.cleaned.contains(id) {
            return Err(cleaned_up(id));
        }
        ensure!(
            table.parked < MAX_PARKED,
            ResourceExhausted,
            "{MAX_PARKED} RecvTensor requests wait for steps that have not started here"
        );
        table.parked += 1;
        let entry = self.entry(&mut table, id);
        entry.parked += 1;
        let step = entry.step.clone();
        Ok((step.clone(), Some(Parked { steps: self.clone(), step })))
    }

    /// Removes a step that its master has finished. Returns false if `may` refuses the caller the
    /// steps of this session.
    pub fn clean_up(&self, id: i64, may: impl FnOnce(&WorkerSession) -> bool) -> bool {
        let mut is_allowed = true;
        let is_its = |step: &WorkerStep| {
            is_allowed = step.session().is_none_or(|session| may(&session));
            is_allowed
        };
        self.remove(id, is_its, self.over.clone());
        if is_allowed {
            self.cleaned.insert(id);
            self.changed.notify_waiters();
        }
        is_allowed
    }

    /// Ends the steps of a session that is closed: its master will not clean them up.
    pub fn end_those_of(&self, session: &Arc<WorkerSession>) {
        let is_its = |step: &WorkerStep| {
            let bound = step.session.get();
            bound.is_some_and(|b| std::ptr::eq(b.session.as_ptr(), Arc::as_ptr(session)))
        };
        let ids: Vec<i64> = {
            let table = self.table.lock();
            let its = table.steps.values().filter(|entry| is_its(&entry.step));
            its.map(|entry| entry.step.id).collect()
        };
        for id in ids {
            let why = err!(Aborted, "Step {id} ended with its session").derived();
            self.remove(id, is_its, why);
        }
    }

    /// Abandons a step that its master has left. The master cleans up soon, or it is gone.
    pub fn abandon(self: &Arc<Self>, step: &Arc<WorkerStep>) {
        step.rendezvous.abort_later();
        let (steps, step) = (Arc::downgrade(self), Arc::downgrade(step));
        self.io.spawn(async move {
            tokio::time::sleep(ABANDONED).await;
            if let (Some(steps), Some(step)) = (steps.upgrade(), step.upgrade()) {
                let is_same = |s: &WorkerStep| std::ptr::eq(s, &*step);
                steps.remove(step.id, is_same, cleaned_up(step.id));
            }
        });
    }

    /// The same by step id. The step need not exist.
    pub fn abandon_by_id(&self, id: i64, may: impl FnOnce(&WorkerSession) -> bool) {
        let step = self.table.lock().steps.get(&id).map(|entry| entry.step.clone());
        let step = step.filter(|step| step.session().is_none_or(|session| may(&session)));
        if let (Some(me), Some(step)) = (self.me.upgrade(), step) {
            me.abandon(&step);
        }
    }

    /// Ends all steps.
    pub fn clear(&self, why: &Error) {
        let steps = std::mem::take(&mut *self.table.lock()).steps;
        steps.into_values().for_each(|entry| entry.step.end(why.clone()));
    }

    fn remove(&self, id: i64, if_it: impl FnOnce(&WorkerStep) -> bool, why: Error) {
        let removed = {
            let mut table = self.table.lock();
            match table.steps.get(&id) {
                Some(entry) if if_it(&entry.step) => {}
                _ => return,
            }
            let removed = table.steps.remove(&id);
            table.parked -= removed.as_ref().map_or(0, |entry| entry.parked);
            table.early_bytes -= removed.as_ref().map_or(0, |entry| entry.early_bytes);
            let was_early = removed.as_ref().is_some_and(|entry| entry.early_since.is_some());
            table.early_steps -= usize::from(was_early);
            removed
        };
        if let Some(entry) = removed {
            let had_early = entry.early_since.is_some();
            entry.step.end(why);
            if had_early {
                self.changed.notify_waiters();
            }
        }
    }
}

/// The limit for this process: an eighth of its memory, but at most [`EARLY_BYTES`].
fn early_bytes() -> usize {
    EARLY_BYTES.min(memory_limit() / 8)
}

/// A RecvTensor that arrived before its step had started.
pub(super) struct Parked {
    steps: Arc<WorkerSteps>,
    step: Arc<WorkerStep>,
}

impl Drop for Parked {
    fn drop(&mut self) {
        let mut table = self.steps.table.lock();
        let id = self.step.id;
        // The entry is gone when the step was cleaned up, and its count with it.
        let Some(entry) = table.steps.get_mut(&id) else { return };
        if !Arc::ptr_eq(&entry.step, &self.step) {
            return;
        }
        entry.parked -= 1;
        let is_unused =
            entry.parked == 0 && entry.early_since.is_none() && !entry.step.has_started();
        table.parked -= 1;
        if is_unused {
            table.steps.remove(&id);
        }
    }
}

fn cleaned_up(id: i64) -> Error {
    err!(Cancelled, "Step {id} was cleaned up").derived()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{owners, session};
    use super::*;
    use ferroflow_core::{Code, DType, Tensor};

    fn counts(steps: &WorkerSteps) -> (usize, usize) {
        let table = steps.table.lock();
        (table.steps.len(), table.parked)
    }

    #[tokio::test]
    async fn a_step_that_never_starts_is_removed_with_its_last_request() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        let (first, one) = steps.find_or_park(1).unwrap();
        let (second, two) = steps.find_or_park(1).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(counts(&steps), (1, 2));
        drop(one);
        assert_eq!(counts(&steps), (1, 1));
        drop(two);
        assert_eq!(counts(&steps), (0, 0));

        let (_step, late) = steps.find_or_park(2).unwrap();
        steps.clean_up(2, |_| true);
        assert_eq!(counts(&steps), (0, 0));
        drop(late);
        assert_eq!(counts(&steps), (0, 0));
        assert!(steps.find_or_park(2).is_err(), "the step is over");
    }

    fn arrive(steps: &WorkerSteps, id: i64, value: Result<Received>) {
        steps.arrived(&PeerCounters::default(), id, "k", value, &InlineScope::unknown());
    }

    fn dropped(steps: &WorkerSteps) -> u64 {
        steps.dropped.load(Ordering::Relaxed)
    }

    fn value(bytes: usize) -> Result<Received> {
        Ok(Received::Live(Tensor::zeros(DType::UInt8, [bytes]).unwrap()))
    }

    #[tokio::test]
    async fn values_wait_for_their_step_only_so_long() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        arrive(&steps, 1, value(10));
        assert_eq!(counts(&steps), (1, 0));
        let (_step, parked) = steps.find_or_park(1).unwrap();
        drop(parked);
        assert_eq!(counts(&steps), (1, 0), "the value keeps the step");
        assert!(steps.look(), "it is checked later");
        let long_ago = Instant::now().checked_sub(EARLY_LIFE).unwrap();
        steps.table.lock().steps.get_mut(&1).unwrap().early_since = Some(long_ago);
        steps.look();
        assert_eq!((counts(&steps), dropped(&steps)), ((0, 0), 1));
        arrive(&steps, 1, value(10));
        assert_eq!((counts(&steps), dropped(&steps)), ((0, 0), 2));
    }

    #[tokio::test]
    async fn values_for_a_step_that_is_over_are_dropped() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        steps.clean_up(1, |_| true);
        arrive(&steps, 1, value(10));
        assert_eq!((counts(&steps), dropped(&steps)), ((0, 0), 1));
    }

    #[tokio::test]
    async fn early_values_are_bounded() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        assert!(steps.room(1).is_none());
        arrive(&steps, 1, value(early_bytes() + 1));
        let room = steps.room(2).expect("there is enough already");
        let waiting = tokio::spawn(room);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        arrive(&steps, 2, value(early_bytes()));
        assert_eq!(dropped(&steps), 1, "that is too much");
        steps.clean_up(1, |_| true);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn steps_with_early_values_are_bounded() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        let dead = |id| arrive(&steps, id, Ok(Received::Dead));
        let most = MOST_EARLY_STEPS as i64;
        (0..most + 100).for_each(dead);
        assert_eq!((counts(&steps).0, dropped(&steps)), (MOST_EARLY_STEPS, 100));
        steps.start(0, &session(), &owners()).unwrap();
        steps.clean_up(1, |_| true);
        (most + 200..most + 203).for_each(dead);
        assert_eq!(dropped(&steps), 101, "there is room for two more");
        let late = steps.start(most, &session(), &owners()).err().unwrap();
        assert_eq!(late.code(), Code::Aborted, "its value was dropped");
    }

    #[tokio::test]
    async fn a_step_that_starts_or_is_over_has_room() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        arrive(&steps, 1, value(early_bytes() + 1));
        let [starts, ends] = [2, 3].map(|id| tokio::spawn(steps.room(id).unwrap()));
        tokio::task::yield_now().await;
        assert!(!starts.is_finished() && !ends.is_finished());
        steps.start(2, &session(), &owners()).unwrap();
        starts.await.unwrap();
        steps.clean_up(3, |_| true);
        ends.await.unwrap();
        assert!(steps.room(4).is_some(), "the others wait");
    }

    #[tokio::test]
    async fn only_so_many_may_wait() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        let parked: Vec<_> = (0..MAX_PARKED).map(|_| steps.find_or_park(1).unwrap()).collect();
        assert_eq!(steps.find_or_park(2).err().unwrap().code(), Code::ResourceExhausted);
        drop(parked);
        assert!(steps.find_or_park(2).is_ok());
    }
}
