//! Handles values and calls that a worker receives over links, and the loss of a link.

use super::Worker;
use super::view::task_of;
use crate::error::said_by;
use crate::key::{incarnation_of, source_of};
use crate::link::{Link, LinkPart, LinkSource, Receiver};
use crate::part::{PartDone, PartRequest};
use crate::rpc::{BoxFuture, RpcStatus, code};
use ferroflow_core::{CancelToken, Error, InlineScope, Received, RendezvousKey, Result, Tensor};
use ferroflow_metrics::PeerCounters;
use std::sync::Arc;

impl Receiver for Worker {
    fn admit(&self, from: &LinkSource) -> Result<()> {
        self.ensure_task(&from.identity, "open links")?;
        self.sessions.ensure_role(&from.identity, &from.task)?;
        self.transport.admit(from, self.owners().is_open)
    }

    fn connected(&self, from: &Arc<LinkSource>) -> Result<()> {
        self.transport.connected(from, self.owners().is_open)
    }

    fn lost(&self, from: &Arc<LinkSource>, why: &Error) {
        self.transport.lost(from);
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        let error = said_by(&from.task, "", "push", &status);
        // The peer may claim devices of other tasks.
        let is_its = |key: &str| {
            incarnation_of(key).is_some_and(|i| from.incarnations.contains(&i))
                && self.may_send_as(from, task_of(source_of(key)))
        };
        self.steps.lost_source(&is_its, &error);
        if let Some(link) = self.way_back(from) {
            link.lost_answers(why);
        }
    }

    fn way_back(&self, from: &LinkSource) -> Option<Arc<Link>> {
        self.transport.links().to(&from.incarnations)
    }

    fn may_send_as(&self, from: &LinkSource, task: &str) -> bool {
        task == from.task || self.sessions.may_send_as(&from.identity, task)
    }

    fn peer(&self, task: &str) -> Arc<PeerCounters> {
        self.steps.metrics().peer(task)
    }

    fn arrived(
        &self,
        from: &PeerCounters,
        step_id: i64,
        key: &str,
        value: Result<Received>,
        scope: &InlineScope,
    ) {
        self.steps.arrived(from, step_id, key, value, scope);
    }

    fn room(&self, step_id: i64) -> Option<BoxFuture<()>> {
        self.steps.room(step_id)
    }

    fn run(
        &self,
        from: &LinkSource,
        part: LinkPart<'_>,
        cancel: CancelToken,
        scope: &InlineScope,
        done: PartDone,
    ) {
        let no_feeds = std::iter::empty::<(RendezvousKey, Tensor)>();
        self.start(PartRequest::plain(part), no_feeds, &from.identity, &cancel, scope, done);
    }

    fn abandon(&self, from: &LinkSource, step_id: i64) {
        Worker::abandon(self, step_id, &from.identity);
    }

    fn clean_up(&self, from: &LinkSource, step_id: i64) {
        self.cleanup_graph(step_id, &from.identity);
    }

    fn link_lost(&self, link: u64, to: &str, why: &Error) {
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        self.steps.lost_link(link, &said_by(to, "", "push", &status));
    }
}
