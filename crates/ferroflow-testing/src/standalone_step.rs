//! A step for a single kernel, without an executor and other nodes.

use ferroflow_core::{
    CancelToken, Error, InlineScope, MemoryOwner, Received, RecvDone, Rendezvous, RendezvousKey,
    Resources, Result, Spawn, StepCtx, err,
};
use std::sync::Arc;

/// A step with `resources`, for kernels that are tested one at a time. Its rendezvous refuses all
/// calls.
pub fn standalone_step(resources: Arc<Resources>) -> Arc<StepCtx> {
    Arc::new(StepCtx {
        step_id: 1,
        rendezvous: Arc::new(NoRendezvous),
        resources,
        step_resources: Arc::new(Resources::new()),
        cancel: CancelToken::new(),
        memory: MemoryOwner::unlimited(),
        threads: Arc::new(PlainThreads),
        collectives: Arc::new(ferroflow_core::SingleDeviceCollectives),
        stats: None,
        depth: 0,
    })
}

struct NoRendezvous;

impl Rendezvous for NoRendezvous {
    fn send(&self, key: &RendezvousKey, _: Received, _: &InlineScope) -> Result<()> {
        Err(err!(Internal, "this test has no rendezvous for {key:?}"))
    }
    fn recv(&self, key: &RendezvousKey, _: &CancelToken, done: RecvDone) {
        let error = err!(Internal, "this test has no rendezvous for {key:?}");
        done(Err(error), &InlineScope::unknown());
    }
    fn abort(&self, _: Error) {}
}

struct PlainThreads;

impl Spawn for PlainThreads {
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(work);
    }
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(work);
    }
}
