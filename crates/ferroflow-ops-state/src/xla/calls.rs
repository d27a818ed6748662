//! Runs programs that call functions of scalars for many elements at once.
//!
//! A function that is element-wise is called once with vectors. Any other is called for each
//! element.

use super::elements::{joined, repeated};
use crate::prelude::*;
use ferroflow_core::{CallDone, InstantiatedFunction, StepCtx};
use parking_lot::Mutex;
use std::sync::OnceLock;

/// The next action of a program.
pub(super) enum Next {
    /// Calls function number `function`. All arguments are vectors of one length.
    Call { function: usize, args: Vec<Tensor> },
    /// Ends with these outputs.
    Done(Vec<Tensor>),
}

/// A computation between calls of functions.
pub(super) trait Program: Send + 'static {
    /// Continues with the results of the last call, which are vectors. At first there are none.
    fn next(&mut self, results: Vec<Tensor>) -> Result<Next>;
}

/// A function, and whether it takes vectors; found out when it is first called.
struct Callee {
    handle: FunctionHandle,
    is_elementwise: OnceLock<bool>,
}

/// A kernel that runs a program.
pub(super) struct Calling {
    functions: Vec<Callee>,
    make: Box<dyn Fn(&mut AsyncCtx) -> Result<Box<dyn Program>> + Send + Sync>,
}

impl Calling {
    /// A kernel that calls the functions which these attributes name.
    pub fn kernel(
        init: &KernelInit<'_>,
        functions: &[&str],
        make: impl Fn(&mut AsyncCtx) -> Result<Box<dyn Program>> + Send + Sync + 'static,
    ) -> Result<KernelBox> {
        let callee = |attr: &&str| {
            Ok(Callee { handle: init.function(attr)?, is_elementwise: OnceLock::new() })
        };
        let functions = functions.iter().map(callee).collect::<Result<Vec<_>>>()?;
        Ok(KernelBox::new_async(Calling { functions, make: Box::new(make) }))
    }
}

impl AsyncKernel for Calling {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let functions = self.functions.iter().map(|callee| {
            let takes_vectors =
                *callee.is_elementwise.get_or_init(|| callee.handle.is_elementwise());
            Ok((callee.handle.get()?, takes_vectors))
        });
        let parts =
            functions.collect::<Result<Vec<_>>>().and_then(|f| Ok((f, (self.make)(&mut ctx)?)));
        match parts {
            Ok((functions, program)) => {
                let state = Mutex::new(State { program, elements: None, called_with: 0 });
                let done = Mutex::new(Some(done));
                let running = Arc::new(Running { functions, step: ctx.step, state, done });
                running.go(Ok(Vec::new()), scope);
            }
            Err(e) => done.fail(e),
        }
    }
}

struct Running {
    functions: Vec<(Arc<dyn InstantiatedFunction>, bool)>,
    step: Arc<StepCtx>,
    state: Mutex<State>,
    done: Mutex<Option<Done>>,
}

struct State {
    program: Box<dyn Program>,
    /// A call with vectors that is being made element by element.
    elements: Option<Elements>,
    /// The length of the vectors of the last call.
    called_with: usize,
}

struct Elements {
    function: usize,
    args: Vec<Tensor>,
    results: Vec<Vec<Tensor>>,
}

impl Elements {
    fn next_args(&self) -> Result<Vec<Tensor>> {
        self.args.iter().map(|t| t.row(self.results.len())).collect()
    }

    /// The results of all calls, as vectors.
    fn vectors(&self) -> Result<Vec<Tensor>> {
        let outputs = self.results.first().map_or(0, Vec::len);
        let output = |o: usize| {
            let parts: Option<Vec<&Tensor>> = self.results.iter().map(|r| r.get(o)).collect();
            let parts = parts.ok_or_else(|| err!(Internal, "a function lost a result"))?;
            ensure!(
                parts.iter().all(|t| t.rank() == 0),
                InvalidArgument,
                "a function of scalars gave a result of shape {}",
                parts[0].shape()
            );
            joined(&parts)
        };
        (0..outputs).map(output).collect()
    }
}

impl Running {
    /// Continues with the results of a call. A call that finishes before it returns is continued
    /// here, in a loop: a continuation in its callback would nest calls without limit.
    fn go(self: Arc<Self>, mut results: Result<Vec<Tensor>>, scope: &InlineScope) {
        loop {
            if let Some(e) = self.step.cancel.error() {
                results = Err(e);
            }
            let (function, args) = match results.and_then(|r| self.advance(r)) {
                Ok(Next::Call { function, args }) => (function, args),
                Ok(Next::Done(outputs)) => return self.finish(Ok(outputs), scope),
                Err(e) => return self.finish(Err(e), scope),
            };
            let handoff = Arc::new(Mutex::new(Handoff::Starting));
            let next = self.clone().follow(&handoff);
            self.functions[function].0.call(args, &self.step, scope, next);
            let state = std::mem::replace(&mut *handoff.lock(), Handoff::Left);
            match state {
                Handoff::Finished(next) => results = next,
                _ => return, // the callback will go on
            }
        }
    }

    fn finish(&self, outputs: Result<Vec<Tensor>>, scope: &InlineScope) {
        let done = self.done.lock().take();
        if let Some(done) = done {
            done.finish_tensors_in(scope, outputs);
        }
    }

    fn follow(self: Arc<Self>, handoff: &Arc<Mutex<Handoff>>) -> CallDone {
        let handoff = handoff.clone();
        Box::new(move |results, scope: &InlineScope| {
            let mut state = handoff.lock();
            if matches!(*state, Handoff::Left) {
                drop(state);
                self.go(results, scope);
            } else {
                *state = Handoff::Finished(results);
            }
        })
    }

    /// The next call, given the results of the last.
    fn advance(&self, mut results: Vec<Tensor>) -> Result<Next> {
        let state = &mut *self.state.lock();
        if let Some(elements) = &mut state.elements {
            elements.results.push(results);
            if elements.results.len() < state.called_with {
                let args = elements.next_args()?;
                return Ok(Next::Call { function: elements.function, args });
            }
            results = elements.vectors()?;
            state.elements = None;
        } else {
            for result in &mut results {
                // A result that depends on no argument is one scalar.
                if result.rank() == 0 {
                    *result = repeated(result, state.called_with)?;
                }
                ensure!(
                    result.shape()[..] == [state.called_with],
                    InvalidArgument,
                    "a function of scalars gave a result of shape {}",
                    result.shape()
                );
            }
        }
        // A call for no elements is never made.
        let next = state.program.next(results)?;
        let Next::Call { function, args } = next else {
            return Ok(next);
        };
        state.called_with = args.first().map_or(0, Tensor::elements);
        ensure!(state.called_with > 0, Internal, "a call for no elements");
        if self.functions[function].1 {
            return Ok(Next::Call { function, args });
        }
        let results = Vec::with_capacity(state.called_with);
        let elements = state.elements.insert(Elements { function, args, results });
        Ok(Next::Call { function, args: elements.next_args()? })
    }
}

/// Whether a call finished before it returned.
enum Handoff {
    Starting,
    Finished(Result<Vec<Tensor>>),
    Left,
}
