//! Cancellation: one token per step, with callbacks that end blocked operations.

use crate::{Error, Result};
use parking_lot::Mutex;
use slab::Slab;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Callback = Box<dyn FnOnce(&Error) + Send>;

/// Cancels a step and the operations that wait for it. Clones share one state.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Shared>);

#[derive(Default)]
struct Shared {
    fired: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    error: Option<Error>,
    /// Empty once it is cancelled.
    callbacks: Slab<Callback>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels with `error`, which callbacks and [`CancelToken::check`] receive. Later calls do
    /// nothing.
    pub fn cancel(&self, error: Error) {
        let callbacks = {
            let mut state = self.0.state.lock();
            if state.error.is_some() {
                return;
            }
            state.error = Some(error.clone());
            self.0.fired.store(true, Ordering::Release);
            std::mem::take(&mut state.callbacks)
        };
        for (_, callback) in callbacks {
            callback(&error);
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.fired.load(Ordering::Acquire)
    }

    /// The error of the cancellation, if there was one.
    pub fn error(&self) -> Option<Error> {
        if self.is_cancelled() { self.0.state.lock().error.clone() } else { None }
    }

    /// An error if cancelled. Long loops call this now and then.
    pub fn check(&self) -> Result<()> {
        self.error().map_or(Ok(()), Err)
    }

    /// Runs `callback` on cancellation, or immediately if that already happened. Dropping the
    /// returned value removes the callback, which may still be running at that time.
    pub fn on_cancel(&self, callback: impl FnOnce(&Error) + Send + 'static) -> OnCancel {
        let mut state = self.0.state.lock();
        if let Some(error) = state.error.clone() {
            drop(state);
            callback(&error);
            return OnCancel { token: CancelToken::default(), id: 0 };
        }
        let id = state.callbacks.insert(Box::new(callback));
        OnCancel { token: self.clone(), id }
    }

    /// A token that is cancelled together with this one, or on its own.
    pub fn child(&self) -> (CancelToken, OnCancel) {
        let child = CancelToken::new();
        let to = child.clone();
        let link = self.on_cancel(move |e| to.cancel(e.clone()));
        (child, link)
    }
}

/// A registered callback. Dropping it removes the registration.
#[must_use = "dropping this takes the callback back"]
pub struct OnCancel {
    token: CancelToken,
    id: usize,
}

impl Drop for OnCancel {
    fn drop(&mut self) {
        // Drop the callback after the lock is released: its captured values may own a token.
        let callback = self.token.0.state.lock().callbacks.try_remove(self.id);
        drop(callback);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::err;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn callbacks_run_once_and_only_while_registered() {
        let (token, count) = (CancelToken::new(), Arc::new(AtomicU32::new(0)));
        let add = |n: u32| {
            let count = count.clone();
            move |_: &Error| {
                count.fetch_add(n, Ordering::SeqCst);
            }
        };
        let _kept = token.on_cancel(add(1));
        drop(token.on_cancel(add(10)));
        let (child, _link) = token.child();
        token.cancel(err!(Cancelled, "stop"));
        token.cancel(err!(Aborted, "again"));
        let _late = token.on_cancel(add(100));
        assert_eq!(count.load(Ordering::SeqCst), 101);
        assert_eq!(child.error().unwrap().message(), "stop");
    }
}
