//! What an iterator and all it is made of share: where its functions run, and until when.

use super::function::Nowhere;
use crate::prelude::*;
use ferroflow_core::{CancelToken, OnCancel, Spawn, StepCtx};
use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};

/// Datasets nested deeper than this, statically or by functions that return datasets, are refused:
/// an element comes up through all of them on one stack.
pub(super) const MAX_LEVEL: u32 = 500;

/// The surroundings of one iterator.
#[derive(Clone)]
pub(super) struct Scope {
    shared: Arc<Shared>,
    /// How many datasets this is nested in.
    level: u32,
}

struct Shared {
    /// Not held for good: they hold the iterator.
    resources: Weak<Resources>,
    threads: Arc<dyn Spawn>,
    cancel: CancelToken,
    depth: u32,
    _until: Option<OnCancel>,
}

impl Scope {
    /// For an iterator that outlives `step`, until it is dropped or `cancel` fires.
    pub fn beyond(step: &StepCtx, cancel: CancelToken) -> Scope {
        Scope::new(step, cancel, None)
    }

    /// For an iterator that ends with `step`.
    pub fn within(step: &StepCtx) -> Scope {
        let (cancel, until) = step.cancel.child();
        Scope::new(step, cancel, Some(until))
    }

    fn new(step: &StepCtx, cancel: CancelToken, until: Option<OnCancel>) -> Scope {
        Scope {
            shared: Arc::new(Shared {
                resources: Arc::downgrade(&step.resources),
                threads: step.threads.clone(),
                cancel,
                depth: step.depth,
                _until: until,
            }),
            level: 0,
        }
    }

    /// One dataset further in.
    pub fn deeper(&self) -> Result<Scope> {
        ensure!(
            self.level < MAX_LEVEL,
            InvalidArgument,
            "datasets are nested deeper than {MAX_LEVEL}"
        );
        Ok(Scope { shared: self.shared.clone(), level: self.level + 1 })
    }

    pub fn threads(&self) -> &Arc<dyn Spawn> {
        &self.shared.threads
    }

    pub fn cancel(&self) -> &CancelToken {
        &self.shared.cancel
    }

    pub fn resources(&self) -> Result<Arc<Resources>> {
        let resources = self.shared.resources.upgrade();
        resources.ok_or_else(|| err!(Cancelled, "the session of the iterator has ended"))
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
            threads: self.shared.threads.clone(),
            stats: None,
            depth: self.shared.depth,
        }))
    }
}
