//! Functions of a pipeline, with the values they captured.

use super::scope::Scope;
use super::task::polling_scope;
use super::wait::later;
use crate::prelude::*;
use ferroflow_core::{CancelToken, Received, RecvDone, Rendezvous, RendezvousKey};
use std::ops::Range;

/// A function and its captured values, which are its last arguments.
#[derive(Clone)]
pub(super) struct Captured {
    function: Arc<FunctionHandle>,
    args: Arc<[Tensor]>,
}

impl Captured {
    pub fn new(function: &Arc<FunctionHandle>, args: Vec<Tensor>) -> Captured {
        Captured { function: function.clone(), args: args.into() }
    }

    /// With the inputs of a node in `range`.
    pub fn from_inputs(
        function: &Arc<FunctionHandle>,
        ctx: &mut Ctx<'_>,
        range: Range<usize>,
    ) -> Result<Captured> {
        let args: Result<Vec<Tensor>> = range.map(|i| ctx.take(i)).collect();
        Ok(Captured::new(function, args?))
    }

    /// Calls it with `inputs` and its captured values. Dropping the future cancels the call.
    pub async fn call(&self, scope: &Scope, mut inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let callable = scope.callable(&self.function)?;
        inputs.extend(self.args.iter().cloned());
        let (cancel, _until) = scope.cancel().child();
        let step = scope.step(cancel.clone())?;
        let mut guard = CancelUnfinished(Some(cancel));
        let (promise, result) = later();
        let on = polling_scope();
        let keep = move |result, _: &InlineScope| promise.keep(result);
        callable.call(inputs, &step, &on, Box::new(keep));
        drop(on);
        drop(step);
        let result = result.await;
        guard.0 = None;
        result.unwrap_or_else(|| Err(err!(Internal, "a function ended without a result")))
    }

    /// Calls a predicate.
    pub async fn test(&self, scope: &Scope, inputs: Vec<Tensor>, kind: &str) -> Result<bool> {
        let result = self.call(scope, inputs).await?;
        match &result[..] {
            [t] if t.dtype() == DType::Bool && t.elements() == 1 => t.scalar_value::<bool>(),
            _ => bail!(InvalidArgument, "{kind} `predicate` must return a scalar bool tensor."),
        }
    }
}

/// Ignore the error: the caller has gone away.
struct CancelUnfinished(Option<CancelToken>);

impl Drop for CancelUnfinished {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel(err!(Cancelled, "the iterator no longer wants the result"));
        }
    }
}

/// The rendezvous of pipeline functions, which run on one device and exchange nothing.
pub(super) struct Nowhere;

impl Rendezvous for Nowhere {
    fn send(&self, key: &RendezvousKey, _: Received, _: &InlineScope) -> Result<()> {
        Err(err!(Unimplemented, "a function of a dataset cannot send {key:?} to another device"))
    }

    fn recv(&self, key: &RendezvousKey, _: &CancelToken, done: RecvDone) {
        let error = err!(
            Unimplemented,
            "a function of a dataset cannot receive {key:?} from another device"
        );
        done(Err(error), &InlineScope::unknown());
    }

    fn abort(&self, _: Error) {}
}
