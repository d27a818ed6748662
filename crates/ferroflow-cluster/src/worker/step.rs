//! Steps under way. A step begins with whichever comes first: the master's RunGraph, or the
//! RecvTensor of a task that runs ahead. It ends with the master's CleanupGraph.

use super::rendezvous::StepRendezvous;
use super::run::Execution;
use super::session::WorkerSession;
use crate::recent::RecentIds;
use ferroflow_core::{CancelToken, Error, Resources, Result, ensure, err};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// How many RecvTensors may wait for steps that have not started here.
const MAX_PARKED: usize = 1 << 16;

/// Cleaned-up steps that are remembered, so that a late RecvTensor does not wait for them.
const REMEMBERED: usize = 10_000;

/// How long after its RunGraph was abandoned a step is kept for a master that does not clean up.
const ABANDONED: Duration = Duration::from_secs(60);

/// What the parts of one step on this task share. There may be several RunGraphs in one step.
pub(super) struct Step {
    pub id: i64,
    pub rendezvous: Arc<StepRendezvous>,
    /// Tensor arrays, stacks, temporary variables.
    pub resources: Arc<Resources>,
    session: OnceLock<Weak<WorkerSession>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: HashMap<u64, CancelToken>,
    next_run: u64,
    partial: Option<Arc<Execution>>,
    /// Why the step is over, once it is.
    ended: Option<Error>,
}

impl Step {
    fn new(id: i64, io: &Handle) -> Arc<Step> {
        Arc::new(Step {
            id,
            rendezvous: StepRendezvous::new(id, io.clone()),
            resources: Arc::default(),
            session: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// Whether a RunGraph of it was seen.
    pub fn has_started(&self) -> bool {
        self.rendezvous.view().is_some()
    }

    /// Notes a run that `cancel` ends, until the guard is dropped.
    pub fn begin_run(self: &Arc<Self>, cancel: &CancelToken) -> Result<RunGuard> {
        let mut state = self.state.lock();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        let id = state.next_run;
        state.next_run += 1;
        state.runs.insert(id, cancel.clone());
        Ok(RunGuard { step: self.clone(), id })
    }

    /// The partial run of this step, and whether it is new.
    pub fn partial(&self) -> (Arc<Execution>, bool) {
        let mut state = self.state.lock();
        let is_new = state.partial.is_none();
        (state.partial.get_or_insert_default().clone(), is_new)
    }

    /// Ends whatever still runs or waits.
    fn end(&self, why: Error) {
        let runs = {
            let mut state = self.state.lock();
            state.ended.get_or_insert(why.clone());
            state.partial = None;
            std::mem::take(&mut state.runs)
        };
        for cancel in runs.into_values() {
            cancel.cancel(why.clone());
        }
        self.rendezvous.abort_now(why);
        self.resources.clear();
    }
}

/// A run under way.
pub(super) struct RunGuard {
    step: Arc<Step>,
    id: u64,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.step.state.lock().runs.remove(&self.id);
    }
}

/// The steps of a worker, by id.
pub(super) struct Steps {
    table: Mutex<Table>,
    cleaned: RecentIds,
    io: Handle,
}

#[derive(Default)]
struct Table {
    steps: HashMap<i64, Entry>,
    /// Of all entries.
    parked: usize,
}

struct Entry {
    step: Arc<Step>,
    /// RecvTensors that came before the step had started.
    parked: usize,
}

impl Steps {
    pub fn new(io: Handle) -> Steps {
        Steps { table: Mutex::default(), cleaned: RecentIds::new(REMEMBERED), io }
    }

    /// The step that a master starts in `session`.
    pub fn start(&self, id: i64, session: &Arc<WorkerSession>) -> Result<Arc<Step>> {
        let mut table = self.table.lock();
        let entry = || Entry { step: Step::new(id, &self.io), parked: 0 };
        let step = &table.steps.entry(id).or_insert_with(entry).step;
        // Under the lock: a step that has not started goes when nobody is parked in it.
        step.session.get_or_init(|| Arc::downgrade(session));
        step.rendezvous.bind(&session.view)?;
        Ok(step.clone())
    }

    /// The step that another task asks a value of. While it has not started, the second half counts
    /// the request.
    pub fn find_or_park(self: &Arc<Self>, id: i64) -> Result<(Arc<Step>, Option<Parked>)> {
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
        let entry = || Entry { step: Step::new(id, &self.io), parked: 0 };
        let entry = table.steps.entry(id).or_insert_with(entry);
        entry.parked += 1;
        let step = entry.step.clone();
        Ok((step.clone(), Some(Parked { steps: self.clone(), step })))
    }

    /// The master is done with a step.
    pub fn clean_up(&self, id: i64) {
        self.cleaned.is_new(id);
        self.remove(id, |_| true, cleaned_up(id));
    }

    /// The session of some steps has gone, and with it whoever would clean them up.
    pub fn end_those_of(&self, session: &Arc<WorkerSession>) {
        let is_its = |step: &Step| {
            step.session.get().is_some_and(|s| std::ptr::eq(s.as_ptr(), Arc::as_ptr(session)))
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

    /// The master gave up on a step; it cleans up soon, or it is dead.
    pub fn abandon(self: &Arc<Self>, step: &Arc<Step>) {
        step.rendezvous.abort_later();
        let (steps, step) = (Arc::downgrade(self), Arc::downgrade(step));
        self.io.spawn(async move {
            tokio::time::sleep(ABANDONED).await;
            if let (Some(steps), Some(step)) = (steps.upgrade(), step.upgrade()) {
                let is_same = |s: &Step| std::ptr::eq(s, &*step);
                steps.remove(step.id, is_same, cleaned_up(step.id));
            }
        });
    }

    /// Ends all steps.
    pub fn clear(&self, why: &Error) {
        let steps = std::mem::take(&mut *self.table.lock()).steps;
        steps.into_values().for_each(|entry| entry.step.end(why.clone()));
    }

    fn remove(&self, id: i64, if_it: impl FnOnce(&Step) -> bool, why: Error) {
        let removed = {
            let mut table = self.table.lock();
            match table.steps.get(&id) {
                Some(entry) if if_it(&entry.step) => {}
                _ => return,
            }
            let removed = table.steps.remove(&id);
            table.parked -= removed.as_ref().map_or(0, |entry| entry.parked);
            removed
        };
        if let Some(entry) = removed {
            entry.step.end(why);
        }
    }
}

/// A RecvTensor for a step that had not started when it came.
pub(super) struct Parked {
    steps: Arc<Steps>,
    step: Arc<Step>,
}

impl Drop for Parked {
    fn drop(&mut self) {
        let mut table = self.steps.table.lock();
        let id = self.step.id;
        // Gone already when the step was cleaned up, and its count with it.
        let Some(entry) = table.steps.get_mut(&id) else { return };
        if !Arc::ptr_eq(&entry.step, &self.step) {
            return;
        }
        entry.parked -= 1;
        let is_unused = entry.parked == 0 && !entry.step.has_started();
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
    use super::*;
    use ferroflow_core::Code;

    fn counts(steps: &Steps) -> (usize, usize) {
        let table = steps.table.lock();
        (table.steps.len(), table.parked)
    }

    #[tokio::test]
    async fn a_step_that_nobody_starts_goes_with_the_last_who_waits() {
        let steps = Arc::new(Steps::new(Handle::current()));
        let (first, one) = steps.find_or_park(1).unwrap();
        let (second, two) = steps.find_or_park(1).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(counts(&steps), (1, 2));
        drop(one);
        assert_eq!(counts(&steps), (1, 1));
        drop(two);
        assert_eq!(counts(&steps), (0, 0));

        let (_step, late) = steps.find_or_park(2).unwrap();
        steps.clean_up(2);
        assert_eq!(counts(&steps), (0, 0));
        drop(late);
        assert_eq!(counts(&steps), (0, 0));
        assert!(steps.find_or_park(2).is_err(), "the step is over");
    }

    #[tokio::test]
    async fn only_so_many_may_wait() {
        let steps = Arc::new(Steps::new(Handle::current()));
        let parked: Vec<_> = (0..MAX_PARKED).map(|_| steps.find_or_park(1).unwrap()).collect();
        assert_eq!(steps.find_or_park(2).err().unwrap().code(), Code::ResourceExhausted);
        drop(parked);
        assert!(steps.find_or_park(2).is_ok());
    }
}
