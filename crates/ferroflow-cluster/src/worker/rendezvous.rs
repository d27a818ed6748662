//! The rendezvous of a step that spans tasks. Values of this task wait here, for its own receivers
//! and for those that other tasks ask on behalf of; values of other tasks are asked for there.

use super::key::source_of;
use super::view::View;
use ferroflow_core::{
    CancelToken, Error, Received, RecvDone, Rendezvous, RendezvousKey, Result, bail, ensure, err,
};
use ferroflow_runtime::LocalRendezvous;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long a step that was cancelled still answers, so that the cause gets to everybody before
/// this consequence of it.
const ABORT_DELAY: Duration = Duration::from_secs(1);

pub(super) struct StepRendezvous {
    step_id: i64,
    local: LocalRendezvous,
    /// Known once the step has started on this task.
    view: OnceLock<Arc<View>>,
    /// Ends the calls to other tasks.
    aborted: CancelToken,
    aborts_later: AtomicBool,
    io: Handle,
    me: Weak<StepRendezvous>,
}

impl StepRendezvous {
    pub fn new(step_id: i64, io: Handle) -> Arc<StepRendezvous> {
        Arc::new_cyclic(|me| StepRendezvous {
            step_id,
            local: LocalRendezvous::new(),
            view: OnceLock::new(),
            aborted: CancelToken::new(),
            aborts_later: AtomicBool::new(false),
            io,
            me: me.clone(),
        })
    }

    /// The step starts, in a session with this view. Starting it again is fine.
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

    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.get()
    }

    /// Waits for a value of this task.
    pub fn recv_local(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        self.local.recv(key, cancel, done);
    }

    /// Returns a value that was received and could not be delivered.
    pub fn put_back(&self, key: &RendezvousKey, value: Received) {
        // Fails only after an abort, when nobody can receive it any more.
        let _ = self.local.send(key, value);
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
        self.aborted.cancel(error);
    }

    fn recv_remote(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        let Some(view) = self.view.get().cloned() else {
            return done(Err(err!(Internal, "step {} has not started", self.step_id)));
        };
        let (stop, stopped) = oneshot::channel();
        let stop = Arc::new(Mutex::new(Some(stop)));
        let on_cancel = cancel.on_cancel({
            let stop = stop.clone();
            move |_| send_once(&stop, err!(Cancelled, "RecvAsync is cancelled.").derived())
        });
        let on_abort = self.aborted.on_cancel(move |e| send_once(&stop, e.clone()));
        let asked = match view.remote(source_of(&key.0)) {
            Ok(from) => view.transport.recv(from, self.step_id, &key.0),
            Err(e) => return done(Err(e)),
        };
        self.io.spawn(async move {
            let received = tokio::select! {
                biased;
                Ok(error) = stopped => Err(error),
                received = asked => received,
            };
            drop((on_cancel, on_abort));
            done(received);
        });
    }
}

fn send_once(to: &Mutex<Option<oneshot::Sender<Error>>>, error: Error) {
    if let Some(to) = to.lock().take() {
        // Nobody listens any more when the call has ended.
        let _ = to.send(error);
    }
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &RendezvousKey, value: Received) -> Result<()> {
        let Some(view) = self.view.get() else { return self.local.send(key, value) };
        if !view.is_local(source_of(&key.0)) {
            bail!(InvalidArgument, "Invalid rendezvous key (src): {} @ {}", key.0, view.name);
        }
        match view.transport.send(self.step_id, key, value) {
            Some(value) => self.local.send(key, value),
            None => Ok(()),
        }
    }

    fn recv(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        match self.view.get() {
            Some(view) if !view.is_local(source_of(&key.0)) => {
                self.recv_remote(key, cancel, done);
            }
            _ => self.local.recv(key, cancel, done),
        }
    }

    /// A cause fails the receivers at once, a mere consequence leaves it some time to arrive.
    fn abort(&self, error: Error) {
        if error.is_derived() { self.abort_later() } else { self.abort_now(error) }
    }
}
