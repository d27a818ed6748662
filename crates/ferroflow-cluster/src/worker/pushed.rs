//! What comes to a worker over links, and what it does when one is lost.

use super::Worker;
use super::run::Run;
use crate::error::said_by;
use crate::link::{Link, LinkPart, LinkSource, PartDone, Receiver};
use crate::rpc::{BoxFuture, RpcStatus, code};
use ferroflow_core::{CancelToken, Error, Received, RendezvousKey, Result, Tensor};
use std::sync::Arc;

impl Receiver for Worker {
    fn connected(&self, from: &Arc<LinkSource>) {
        self.transport.connected(from);
    }

    fn lost(&self, from: &Arc<LinkSource>, why: &Error) {
        self.transport.lost(from);
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        let error = said_by(&from.task, "", "push", &status);
        self.steps.lost_source(&from.incarnations, &error);
        if let Some(link) = self.way_back(from) {
            link.lost_answers(why);
        }
    }

    fn way_back(&self, from: &LinkSource) -> Option<Arc<Link>> {
        self.transport.links().to(&from.incarnations)
    }

    fn arrived(&self, step_id: i64, key: &str, value: Result<Received>) {
        self.steps.arrived(step_id, key, value);
    }

    fn room(&self, step_id: i64) -> Option<BoxFuture<()>> {
        self.steps.room(step_id)
    }

    fn run(&self, part: LinkPart<'_>, cancel: CancelToken, done: PartDone) {
        match self.plain_run(part) {
            Ok(run) => run.run_plain(&cancel, done),
            Err(e) => done(Err(e)),
        }
    }

    fn abandon(&self, step_id: i64) {
        self.steps.abandon_by_id(step_id);
    }

    fn clean_up(&self, step_id: i64) {
        self.cleanup_graph(step_id);
    }

    fn link_lost(&self, link: u64, to: &str, why: &Error) {
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        self.steps.lost_link(link, &said_by(to, "", "push", &status));
    }
}

impl Worker {
    /// Runs a part of a step of this task's own master: `done` gets the values of `fetches`, on whichever
    /// thread they come about.
    pub fn run_own<'f>(
        &self,
        part: LinkPart<'_>,
        feeds: impl Iterator<Item = (&'f RendezvousKey, Tensor)>,
        fetches: Arc<[RendezvousKey]>,
        cancel: &CancelToken,
        done: Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>,
    ) {
        match self.plain_run(part) {
            Ok(run) => run.run_own(feeds, fetches, cancel, done),
            Err(e) => done(Err(e)),
        }
    }

    fn plain_run(&self, part: LinkPart<'_>) -> Result<Run> {
        let session = self.sessions.get(part.session, true)?;
        let graph = session.graph(part.graph)?;
        let step = self.start(part.step_id, &session)?;
        Ok(Run { task: self.task.clone(), steps: self.steps.clone(), session, graph, step })
    }
}
