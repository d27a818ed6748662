//! A task's part of a step, as masters ask for it and workers answer, by gRPC, over a link or in
//! one process.

use crate::link::LinkPart;
use ferroflow_core::{InlineScope, RendezvousKey, Result, Tensor};
use ferroflow_graph::wire::metadata::TaskRecord;
use ferroflow_graph::wire::step::ExecOptions;
use std::sync::Arc;

/// A part to run, and the results that its master requests.
pub(crate) struct PartRequest<'h> {
    pub part: LinkPart<'h>,
    /// Keys of the values that the part sends to its master.
    pub fetches: Arc<[RendezvousKey]>,
    /// The times and graphs to record.
    pub exec: ExecOptions,
    /// Present when several calls feed and fetch one run.
    pub partial: Option<PartialCall>,
}

/// One call of a partial run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartialCall {
    /// The last call also waits for the end of the graph.
    pub is_last: bool,
}

impl<'h> PartRequest<'h> {
    /// A part without fetches, of which nothing is recorded.
    pub fn plain(part: LinkPart<'h>) -> PartRequest<'h> {
        let (fetches, exec) = (Arc::default(), ExecOptions::default());
        PartRequest { part, fetches, exec, partial: None }
    }

    /// Whether a link can carry the request, which must not ask for fetches or records.
    pub fn is_plain(&self) -> bool {
        self.fetches.is_empty() && self.exec == ExecOptions::default() && self.partial.is_none()
    }
}

/// The results of a part.
#[derive(Default)]
pub(crate) struct PartOutput {
    /// The fetched values, in the order of their keys.
    pub tensors: Vec<Tensor>,
    /// The recorded times and graphs.
    pub record: Option<Box<TaskRecord>>,
}

/// Called once, with the outcome of a part.
pub(crate) type PartDone = Box<dyn FnOnce(Result<PartOutput>, &InlineScope) + Send>;
