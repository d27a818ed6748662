//! The rendezvous of a step that spans tasks. Values of this task are pushed to the tasks that need
//! them, or wait here for local receivers and for RecvTensor. Other tasks push their values, too. A
//! RecvTensor asks for the values of tasks that do not push, and for values that are overdue.

use super::arrivals::Arrivals;
use super::step::WorkerSteps;
use super::transport::Remote;
use super::view::View;
use crate::key::{incarnation_of, source_of};
use ferroflow_core::{
    CancelToken, Error, InlineScope, Received, RecvDone, Rendezvous, RendezvousKey, Result, Tensor,
    bail, ensure, err,
};
use ferroflow_metrics::{PeerCounters, TaskMetrics};
use ferroflow_runtime::LocalRendezvous;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long a cancelled step still answers, so that all tasks get the cause of the failure before
/// this consequence of it.
const ABORT_DELAY: Duration = Duration::from_secs(1);

/// Pushing fewer bytes takes hardly longer than reading the clock, and is not timed.
const TIMED_FROM: usize = 4 << 10;

pub(super) struct StepRendezvous {
    step_id: i64,
    /// Values of this task.
    local: LocalRendezvous,
    /// Values of others.
    arrivals: Arrivals,
    /// The links over which values were sent. Losing one of them fails the step.
    links: Mutex<SmallVec<[u64; 4]>>,
    /// Known once the step has started on this task.
    view: OnceLock<Arc<View>>,
    /// Ends the calls to other tasks.
    aborted: CancelToken,
    aborts_later: AtomicBool,
    io: Handle,
    me: Weak<StepRendezvous>,
    steps: Weak<WorkerSteps>,
    metrics: Arc<TaskMetrics>,
    /// Nanoseconds that this step has spent on pushing values.
    pushing: AtomicU64,
}

impl StepRendezvous {
    pub fn new(
        step_id: i64,
        io: Handle,
        steps: Weak<WorkerSteps>,
        metrics: Arc<TaskMetrics>,
    ) -> Arc<StepRendezvous> {
        Arc::new_cyclic(|me| StepRendezvous {
            step_id,
            local: LocalRendezvous::new(),
            arrivals: Arrivals::new(metrics.clone()),
            links: Mutex::default(),
            view: OnceLock::new(),
            aborted: CancelToken::new(),
            aborts_later: AtomicBool::new(false),
            io,
            me: me.clone(),
            steps,
            metrics,
            pushing: AtomicU64::new(0),
        })
    }

    /// Binds the step to a session with this view. May be called again.
    pub fn bind(&self, view: &Arc<View>) -> Result<()> {
        let bound = self.view.get_or_init(|| view.clone());
        ensure!(
            bound.name == view.name,
            Internal,
            "Double init! Worker names would have changed from: {} -> {}",
            bound.name,
            view.name
        );
        Ok(())
    }

    /// How long this task has waited for values of others so far, and pushed its own.
    pub fn times(&self) -> (Duration, Duration) {
        let pushing = Duration::from_nanos(self.pushing.load(Ordering::Relaxed));
        (self.arrivals.waited(), pushing)
    }

    /// The metrics of the task.
    pub fn metrics(&self) -> &Arc<TaskMetrics> {
        &self.metrics
    }

    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.get()
    }

    /// Waits for a value of this task.
    pub fn recv_local(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        self.local.recv(key, cancel, done);
    }

    /// Takes a value of this task, if it was sent and not received.
    pub fn take_local(&self, key: &RendezvousKey) -> Result<Option<Received>> {
        self.local.take(key)
    }

    /// Puts back a value that could not be delivered.
    pub fn put_back(&self, key: &RendezvousKey, value: Received) {
        // Fails only after an abort, when there are no receivers any more.
        let _ = self.local.send(key, value, &InlineScope::unknown());
    }

    /// Fails every present and future receiver, after a delay.
    pub fn abort_later(&self) {
        if self.aborts_later.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = self.me.clone();
        self.io.spawn(async move {
            tokio::time::sleep(ABORT_DELAY).await;
            if let Some(me) = me.upgrade() {
                let id = me.step_id;
                let why = err!(Aborted, "Step {id} cancelled.  Cancelling rendezvous.");
                me.abort_now(why.derived());
            }
        });
    }

    pub fn abort_now(&self, error: Error) {
        self.local.abort(error.clone());
        self.arrivals.abort(error.clone());
        self.aborted.cancel(error);
    }

    /// Takes a value that another task has pushed.
    pub fn arrived(
        &self,
        from: &PeerCounters,
        key: &str,
        value: Result<Received>,
        scope: &InlineScope,
    ) {
        self.arrivals.arrived(from, key, value, scope);
    }

    /// Sends a RecvTensor for the values that were not pushed within `age`. Returns whether
    /// receivers wait for younger ones.
    pub fn ask_for_overdue(&self, age: Duration) -> bool {
        let (overdue, any) = self.arrivals.overdue(age);
        overdue.into_iter().for_each(|(key, cancel)| self.ask(&key, &cancel));
        any
    }

    /// Fails the receivers of values with these keys, whose link was lost.
    pub fn lost(&self, is_its: &dyn Fn(&str) -> bool, error: &Error) {
        self.arrivals.fail_if(is_its, error);
    }

    /// Whether values went over this link.
    pub fn has_used(&self, link: u64) -> bool {
        self.links.lock().contains(&link)
    }

    /// Sends a tensor in the memory of a GPU to another task: within that memory if the other task
    /// uses the same GPU, else through host memory.
    fn send_from_gpu(&self, to: Result<Remote<'_>>, key: &RendezvousKey, tensor: Tensor) {
        if let (Some(view), Ok(to)) = (self.view.get(), to) {
            let (me, again, kept) = (self.me.clone(), key.clone(), tensor.clone());
            let refused = Box::new(move |ended: Result<()>| {
                let Some(me) = me.upgrade() else { return };
                match ended {
                    Ok(()) => me.send_through_host(again, &kept),
                    Err(e) => me.abort(e),
                }
            });
            let over = |link| self.note_link(link);
            if view.transport.lend(to, self.step_id, &key.0, &tensor, &over, refused) {
                self.metrics.sent_value(to.task, tensor.byte_len());
                return;
            }
        }
        self.send_through_host(key.clone(), &tensor);
    }

    fn send_through_host(&self, key: RendezvousKey, tensor: &Tensor) {
        let me = self.me.clone();
        tensor.to_host(Box::new(move |copied| {
            let Some(me) = me.upgrade() else { return };
            let scope = InlineScope::unknown();
            let sent = copied.and_then(|copy| me.send(&key, Received::Live(copy), &scope));
            if let Err(e) = sent {
                me.abort(e);
            }
        }));
    }

    /// Notes that values go over a link. Noted before the push: a link that is lost right after it
    /// must find the step among its users.
    fn note_link(&self, link: u64) {
        let mut links = self.links.lock();
        if !links.contains(&link) {
            links.push(link);
        }
    }

    fn recv_remote(&self, view: &View, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        let is_pushed = incarnation_of(&key.0).is_some_and(|i| view.transport.pushes(i));
        if !is_pushed && let Err(e) = view.remote(source_of(&key.0)) {
            return done(Err(e), &InlineScope::unknown());
        }
        self.arrivals.expect(key, cancel, !is_pushed, done);
        if !is_pushed {
            self.ask(key, cancel);
        } else if let Some(steps) = self.steps.upgrade() {
            steps.watch();
        }
    }

    /// Sends a RecvTensor for a value. Its answer counts only if the value was not pushed
    /// meanwhile. If it was, the request ends with the step.
    fn ask(&self, key: &RendezvousKey, cancel: &CancelToken) {
        let Some(view) = self.view.get() else { return };
        let (stop, stopped) = oneshot::channel();
        let stop = Arc::new(Mutex::new(Some(stop)));
        let on_cancel = cancel.on_cancel({
            let stop = stop.clone();
            move |_| send_once(&stop)
        });
        let on_abort = self.aborted.on_cancel(move |_| send_once(&stop));
        let asked = match view.remote(source_of(&key.0)) {
            Ok(from) => view.transport.recv(from, self.step_id, &key.0),
            Err(e) => {
                return self.arrivals.answered(&key.0, Err(e), &InlineScope::unknown());
            }
        };
        let (me, key) = (self.me.clone(), key.clone());
        self.io.spawn(async move {
            let received = tokio::select! {
                biased;
                Ok(()) = stopped => return,
                received = asked => received,
            };
            drop((on_cancel, on_abort));
            if let Some(me) = me.upgrade() {
                InlineScope::network(|scope| me.arrivals.answered(&key.0, received, scope));
            }
        });
    }
}

fn send_once(to: &Mutex<Option<oneshot::Sender<()>>>) {
    if let Some(to) = to.lock().take() {
        // Ignore the error: the call has ended.
        let _ = to.send(());
    }
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &RendezvousKey, value: Received, scope: &InlineScope) -> Result<()> {
        let Some(view) = self.view.get() else { return self.local.send(key, value, scope) };
        let Some(destination) = view.destination_of(&key.0) else {
            bail!(InvalidArgument, "Invalid rendezvous key (src): {} @ {}", key.0, view.name);
        };
        if view.is_local(destination) {
            return self.local.send(key, value, scope);
        }
        self.aborted.check()?;
        let to = view.remote(destination);
        let value = match value {
            Received::Live(tensor) if tensor.gpu().is_some() => {
                self.send_from_gpu(to, key, tensor);
                return Ok(());
            }
            value => value,
        };
        let over = |link| self.note_link(link);
        let bytes = match &value {
            Received::Live(tensor) => tensor.byte_len(),
            Received::Dead => 0,
        };
        let push = |to: Remote<'_>| {
            let started = (bytes >= TIMED_FROM).then(Instant::now);
            let is_sent = view.transport.send(to, self.step_id, &key.0, &value, scope, &over);
            if is_sent {
                self.metrics.sent_value(to.task, bytes);
            }
            if let Some(started) = started.filter(|_| is_sent) {
                let time = started.elapsed().as_nanos() as u64;
                self.pushing.fetch_add(time, Ordering::Relaxed);
            }
            is_sent
        };
        if to.is_ok_and(push) { Ok(()) } else { self.local.send(key, value, scope) }
    }

    fn recv(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        match self.view.get() {
            // A key begins with the name of the source.
            Some(view) if !view.is_local(&key.0) => {
                self.recv_remote(view, key, cancel, done);
            }
            _ => self.local.recv(key, cancel, done),
        }
    }

    /// A cause fails the receivers at once. A consequence leaves the cause some time to arrive.
    fn abort(&self, error: Error) {
        if error.is_derived() { self.abort_later() } else { self.abort_now(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{owners, session_with};
    use super::super::transport::Transport;
    use super::*;
    use crate::rpc::BoxFuture;
    use ferroflow_core::Code;

    /// Takes every value over a link that is lost right after.
    struct Breaks(Arc<WorkerSteps>);

    impl Transport for Breaks {
        fn prepare(&self, _: Vec<String>) -> BoxFuture<()> {
            Box::pin(async {})
        }
        fn send(
            &self,
            _: Remote<'_>,
            _: i64,
            _: &str,
            _: &Received,
            _: &InlineScope,
            over: &dyn Fn(u64),
        ) -> bool {
            over(7);
            self.0.lost_link(7, &err!(Unavailable, "Socket closed"));
            true
        }
        fn pushes(&self, _: u64) -> bool {
            false
        }
        fn recv(&self, _: Remote<'_>, _: i64, _: &str) -> BoxFuture<Result<Received>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_link_that_breaks_during_a_push_ends_the_step() {
        let steps = WorkerSteps::new(Handle::current(), TaskMetrics::new("worker", 0));
        let session = session_with(Arc::new(Breaks(steps.clone())));
        let step = steps.start(1, &session, &owners()).unwrap();
        let device = |task| format!("/job:worker/replica:0/task:{task}/device:CPU:0");
        let key = RendezvousKey::new(&device(0), 1, &device(1), "x", (0, 0));
        let (value, scope) = (Received::Live(Tensor::scalar(1f32)), InlineScope::unknown());
        step.rendezvous.send(&key, value, &scope).unwrap();
        assert_eq!(step.rendezvous.aborted.check().unwrap_err().code(), Code::Unavailable);
    }
}
