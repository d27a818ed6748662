//! RecvTensor: another task asks for a value of this one.

use super::step::WorkerStep;
use super::view::View;
use super::{Worker, ensure_new};
use crate::key::ParsedKey;
use crate::messages::RecvTensorRequest;
use ferroflow_core::{
    CancelToken, DType, InlineScope, Received, RendezvousKey, Result, Tensor, bail, ensure, err,
};
use ferroflow_graph::wire::step::RecvTensorResponse;
use ferroflow_identity::PeerIdentity;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// How long a request waits for a step that does not start.
const START_LIMIT: Duration = Duration::from_secs(600);

impl Worker {
    /// Waits for a value and returns it.
    pub async fn recv_tensor(
        &self,
        request: RecvTensorRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RecvTensorResponse> {
        let (step_id, key) = (request.step_id, request.rendezvous_key);
        ensure_new(&self.recent_recvs, request.request_id, || {
            let id = request.request_id;
            format!(
                "RecvTensor (GrpcWorker) request was received twice. step_id: {step_id} \
                 rendezvous_key: \"{key}\" request_id: {id}"
            )
        })?;
        let parsed = ParsedKey::parse(&key)?;
        check_incarnation(&parsed, self.sessions.own_view())?;
        let (step, parked) = self.steps.find_or_park(step_id)?;
        self.ensure_may_take(&step, caller)?;
        if let Some(view) = step.rendezvous.view() {
            ensure!(
                view.is_local(parsed.source),
                InvalidArgument,
                "Invalid rendezvous key (src): {key} @ {}",
                view.name
            );
        }
        let mut request = Waiting::new(&step, &key);
        let in_time = match &parked {
            None => None,
            Some(_) => tokio::time::timeout(START_LIMIT, &mut request.told).await.ok(),
        };
        let received = match in_time {
            Some(received) => received,
            None if parked.is_some() && !step.has_started() => {
                request.is_over = true;
                bail!(
                    Aborted,
                    "Step {step_id} has not started on {} within {START_LIMIT:?}",
                    self.sessions.own_view().name
                );
            }
            None => (&mut request.told).await,
        };
        request.is_over = true;
        let received = received.unwrap_or_else(|_| Err(err!(Internal, "a value got lost")))?;
        if parked.is_some()
            && let Err(e) = self.ensure_may_take(&step, caller)
        {
            step.rendezvous.put_back(&request.key, received);
            return Err(e);
        }
        let (tensor, is_dead) = match received {
            Received::Live(tensor) => (tensor, false),
            // Ignored, but TensorFlow sends it too.
            Received::Dead => (Tensor::zeros(DType::Float, [0])?, true),
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(RecvTensorResponse {
            tensor: Some(tensor),
            is_dead,
            send_start_micros: since_epoch.map_or(0, |d| d.as_micros() as i64),
            ..RecvTensorResponse::default()
        })
    }
}

impl Worker {
    /// Fails unless `caller` may have values of a step. Before the step has started, its session is
    /// not known: then a task of any session may wait for it.
    fn ensure_may_take(&self, step: &WorkerStep, caller: &Arc<PeerIdentity>) -> Result<()> {
        let may = match step.session() {
            Some(session) => self.sessions.may_take_values(&session, caller),
            None => !step.has_started() && self.sessions.is_described(caller),
        };
        if may {
            return Ok(());
        }
        self.ensure_task(caller, "ask for values of steps that are not their own")
    }
}

/// Refuses a key with another incarnation of this process. The job and task in the key are not
/// compared: a session may have another name for this task.
fn check_incarnation(key: &ParsedKey<'_>, own: &View) -> Result<()> {
    let (kind, id) = (&key.source_name.kind, key.source_name.id);
    let device = own.devices.iter().find(|d| d.name.kind == *kind && d.name.id == id);
    let Some(device) = device else {
        bail!(InvalidArgument, "{} unknown device.", key.source);
    };
    let (asked, is) = (key.source_incarnation, device.incarnation);
    ensure!(
        asked == is,
        Aborted,
        "RecvTensor expects a different device incarnation: {asked} vs. {is}. Your worker job \
         (\"{}\") was probably restarted. Check your worker job for the reason why it was \
         restarted.",
        own.name
    );
    Ok(())
}

/// A running request. When the caller drops it, its value is put back, and the step is aborted a
/// little later: a caller only leaves a step that has failed.
struct Waiting {
    step: Arc<WorkerStep>,
    key: RendezvousKey,
    cancel: CancelToken,
    told: oneshot::Receiver<Result<Received>>,
    is_over: bool,
}

impl Waiting {
    fn new(step: &Arc<WorkerStep>, key: &str) -> Waiting {
        let (tell, told) = oneshot::channel();
        let (key, cancel) = (RendezvousKey(key.into()), CancelToken::new());
        let (to, back) = (step.rendezvous.clone(), key.clone());
        let done = Box::new(move |received, _: &InlineScope| {
            if let Err(Ok(value)) = tell.send(received) {
                to.put_back(&back, value);
            }
        });
        step.rendezvous.recv_local(&key, &cancel, done);
        Waiting { step: step.clone(), key, cancel, told, is_over: false }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.told.close();
        self.cancel.cancel(err!(Cancelled, "the caller went away").derived());
        if let Ok(Ok(value)) = self.told.try_recv() {
            self.step.rendezvous.put_back(&self.key, value);
        }
        if !self.is_over && self.step.has_started() {
            self.step.rendezvous.abort_later();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::WorkerSteps;
    use super::*;
    use ferroflow_core::Rendezvous;
    use ferroflow_metrics::TaskMetrics;
    use tokio::runtime::Handle;

    #[tokio::test]
    async fn a_value_for_a_caller_that_left_is_kept() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        let (step, _parked) = steps.find_or_park(1).unwrap();
        let send = || {
            let key = RendezvousKey("k".into());
            let (value, scope) = (Received::Live(Tensor::scalar(1f32)), InlineScope::unknown());
            step.rendezvous.send(&key, value, &scope).unwrap();
        };
        // The value is there when the caller asks, or arrives while it waits. Then the caller
        // leaves.
        send();
        drop(Waiting::new(&step, "k"));
        let mut waiting = Waiting::new(&step, "k");
        assert!((&mut waiting.told).await.unwrap().is_ok());
        let waiting = Waiting::new(&step, "k");
        send();
        drop(waiting);
        // The caller leaves before the value arrives.
        let mut waiting = Waiting::new(&step, "k");
        assert!((&mut waiting.told).await.unwrap().is_ok());
        drop(Waiting::new(&step, "k"));
        send();
        let mut waiting = Waiting::new(&step, "k");
        assert!((&mut waiting.told).await.unwrap().is_ok());
    }
}
