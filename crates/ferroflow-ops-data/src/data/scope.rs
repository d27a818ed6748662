//! State that the parts of an iterator share: the step or session in which its functions run, and
//! their cancellation.

use super::function::Nowhere;
use super::seeds::{SeedGenerator, SeedState};
use super::stats::Recorder;
use crate::prelude::*;
use ferroflow_core::{CancelToken, InstantiatedFunction, MemoryOwner, OnCancel, Spawn, StepCtx};
use ferroflow_op_kit::philox::Singles;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};

/// Datasets that are nested deeper than this are refused, also those that functions return: one
/// stack pulls an element through all of them.
pub(super) const MAX_LEVEL: u32 = 500;

/// The surroundings of one iterator.
#[derive(Clone)]
pub(super) struct Scope {
    shared: Arc<Shared>,
    /// How many datasets this is nested in.
    level: u32,
    /// Where datasets record what they measure.
    recorder: Option<Arc<Recorder>>,
}

struct Shared {
    /// Weak references: these own the iterator.
    resources: Weak<Resources>,
    threads: Arc<dyn Spawn>,
    memory: Arc<MemoryOwner>,
    cancel: CancelToken,
    depth: u32,
    _until: Option<OnCancel>,
    /// Its own instances of functions, by the address of the function. An iterator that ends with
    /// its step has none, and uses those of the graph.
    instances: Option<Mutex<HashMap<usize, Instance>>>,
    /// The seeds of its shuffles; an iterator that ends with its step keeps none.
    seeds: Option<Mutex<SeedLog>>,
}

/// Which seeds an iterator has used, in order, so that a saved one can use them again.
#[derive(Default)]
struct SeedLog {
    used: Vec<SeedState>,
    /// Seeds of a saved iterator that shuffles have not used again yet.
    saved: VecDeque<SeedState>,
}

/// An iterator that used more seeds than this is saved without them.
const MAX_SEEDS: usize = 1 << 16;

struct Instance {
    callable: Arc<dyn InstantiatedFunction>,
    /// Keeps the allocation alive, so that no other function gets the same address.
    _of: Arc<FunctionHandle>,
}

impl Scope {
    /// For an iterator that outlives `step`, until it is dropped or `cancel` fires.
    pub fn beyond(step: &StepCtx, cancel: CancelToken) -> Scope {
        Scope::new(step, cancel, None, true)
    }

    /// For an iterator that ends with `step`.
    pub fn within(step: &StepCtx) -> Scope {
        let (cancel, until) = step.cancel.child();
        Scope::new(step, cancel, Some(until), false)
    }

    fn new(
        step: &StepCtx,
        cancel: CancelToken,
        until: Option<OnCancel>,
        has_instances: bool,
    ) -> Scope {
        Scope {
            shared: Arc::new(Shared {
                resources: Arc::downgrade(&step.resources),
                threads: step.threads.clone(),
                memory: step.memory.clone(),
                cancel,
                depth: step.depth,
                _until: until,
                instances: has_instances.then(Mutex::default),
                seeds: has_instances.then(Mutex::default),
            }),
            level: 0,
            recorder: None,
        }
    }

    /// The scope of a dataset nested in this one.
    pub fn deeper(&self) -> Result<Scope> {
        ensure!(
            self.level < MAX_LEVEL,
            InvalidArgument,
            "datasets are nested deeper than {MAX_LEVEL}"
        );
        Ok(Scope { level: self.level + 1, ..self.clone() })
    }

    /// This scope, with another place to record what datasets measure.
    pub fn recording(&self, recorder: Arc<Recorder>) -> Scope {
        Scope { recorder: Some(recorder), ..self.clone() }
    }

    /// An error once the iterator was cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        self.shared.cancel.check()
    }

    pub fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }

    pub fn threads(&self) -> &Arc<dyn Spawn> {
        &self.shared.threads
    }

    /// The session that owns the memory of the elements.
    pub fn memory(&self) -> &Arc<MemoryOwner> {
        &self.shared.memory
    }

    pub fn cancel(&self) -> &CancelToken {
        &self.shared.cancel
    }

    pub fn resources(&self) -> Result<Arc<Resources>> {
        let resources = self.shared.resources.upgrade();
        resources.ok_or_else(|| err!(Cancelled, "the session of the iterator has ended"))
    }

    /// This iterator's own instance of a function, whose state starts with the iterator.
    pub fn callable(
        &self,
        function: &Arc<FunctionHandle>,
    ) -> Result<Arc<dyn InstantiatedFunction>> {
        let Some(instances) = &self.shared.instances else { return function.get() };
        let place = Arc::as_ptr(function) as usize;
        if let Some(found) = instances.lock().get(&place) {
            return Ok(found.callable.clone());
        }
        let made = function.apart()?;
        let mut instances = instances.lock();
        let instance = instances
            .entry(place)
            .or_insert_with(|| Instance { callable: made, _of: function.clone() });
        Ok(instance.callable.clone())
    }

    /// The random words of the next iteration of a shuffle.
    pub fn seeds(&self, generator: &SeedGenerator) -> Singles {
        let Some(log) = &self.shared.seeds else { return generator.next() };
        let saved = log.lock().saved.pop_front();
        let (words, state) = generator.next_from(saved);
        let mut log = log.lock();
        if log.used.len() <= MAX_SEEDS {
            log.used.push(state);
        }
        words
    }

    /// The seeds that were used so far; none if they are too many to be saved.
    pub fn used_seeds(&self) -> Vec<SeedState> {
        let log = self.shared.seeds.as_ref().map(|log| log.lock());
        log.filter(|log| log.used.len() <= MAX_SEEDS).map_or_else(Vec::new, |log| log.used.clone())
    }

    /// Has the iterator use the seeds of a saved one first.
    pub fn use_seeds_again(&self, saved: Vec<SeedState>) {
        if let Some(log) = &self.shared.seeds {
            log.lock().saved = saved.into();
        }
    }

    /// A step of its own for one call of a function.
    pub fn step(&self, cancel: CancelToken) -> Result<Arc<StepCtx>> {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        Ok(Arc::new(StepCtx {
            step_id: NEXT.fetch_add(1, Ordering::Relaxed),
            rendezvous: Arc::new(Nowhere),
            resources: self.resources()?,
            step_resources: Arc::new(Resources::new()),
            cancel,
            memory: self.shared.memory.clone(),
            threads: self.shared.threads.clone(),
            collectives: Arc::new(ferroflow_core::SingleDeviceCollectives),
            stats: None,
            depth: self.shared.depth,
        }))
    }
}
