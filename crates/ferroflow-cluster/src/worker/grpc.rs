//! RunGraph: a master starts this task's part of a step by gRPC.

use super::step::WorkerSteps;
use super::{Worker, ensure_new, named};
use crate::link::LinkPart;
use crate::part::{PartOutput, PartRequest, PartialCall};
use ferroflow_core::{CancelToken, InlineScope, RendezvousKey, Result, err};
use ferroflow_graph::wire::step::{RunGraphRequest, RunGraphResponse};
use ferroflow_identity::PeerIdentity;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Worker {
    /// Runs a registered graph. A failure goes into the response when the master asked for that.
    /// Dropping the future cancels the part.
    pub async fn run_graph(
        &self,
        request: RunGraphRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunGraphResponse> {
        let in_body = request.store_errors_in_response_body;
        match self.run(request, caller).await {
            Err(e) if in_body => Ok(RunGraphResponse { status: Some(e), ..Default::default() }),
            other => other,
        }
    }

    async fn run(
        &self,
        request: RunGraphRequest,
        master: &Arc<PeerIdentity>,
    ) -> Result<RunGraphResponse> {
        let (id, handle, step_id) = (request.request_id, &request.graph_handle, request.step_id);
        ensure_new(&self.recent_runs, id, || {
            format!(
                "RunGraph request was received twice. graph_handle: \"{handle}\" step_id: {step_id} \
                 request_id: {id}"
            )
        })?;
        let session = named(&request.session_handle, request.create_worker_session_called);
        let is_last = request.is_last_partial_run;
        let part = PartRequest {
            part: LinkPart { step_id, session, graph: handle },
            fetches: request
                .recv_keys
                .iter()
                .map(|key| RendezvousKey(key.as_str().into()))
                .collect(),
            exec: request.exec,
            partial: request.is_partial.then_some(PartialCall { is_last }),
        };
        let feeds = request.sends.into_iter().map(|(key, t)| (RendezvousKey(key.into()), t));
        let mut caller = RunGraphCaller {
            steps: self.steps.clone(),
            step_id,
            cancel: CancelToken::new(),
            is_answered: false,
        };
        let (tell, told) = oneshot::channel();
        let done = Box::new(move |output, _: &InlineScope| drop(tell.send(output)));
        InlineScope::network(|scope| {
            self.start(part, feeds, master, &caller.cancel, scope, done);
        });
        let output: Result<PartOutput> =
            told.await.unwrap_or_else(|_| Err(err!(Internal, "a step ended without a result")));
        caller.is_answered = true;
        let PartOutput { tensors, record } = output?;
        Ok(RunGraphResponse {
            recvs: request.recv_keys.into_iter().zip(tensors).collect(),
            record: record.map(|record| *record).unwrap_or_default(),
            status: None,
        })
    }
}

/// A master that waits for the answer. When its call goes away (the master gave up on the step, or
/// died), so does the step.
struct RunGraphCaller {
    steps: Arc<WorkerSteps>,
    step_id: i64,
    cancel: CancelToken,
    is_answered: bool,
}

impl Drop for RunGraphCaller {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.cancel.cancel(err!(Cancelled, "Step {} was cancelled", self.step_id).derived());
        self.steps.abandon_by_id(self.step_id, |_| true);
    }
}
