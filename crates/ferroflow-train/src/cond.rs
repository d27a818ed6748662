//! Conditionals of v1 control flow.

use crate::context::{Context, ContextId, ContextKind};
use crate::graph::{Graph, GraphState, Restore};
use crate::output::Output;
use ferroflow_core::{DType, Result, bail, ensure, err};
use ferroflow_graph::{Attrs, Endpoint};
use std::collections::HashMap;
use std::panic::Location;

impl Graph {
    /// The outputs of `then` if `predicate` is true, else those of `otherwise`. This call runs both
    /// closures to build both branches; a step runs only one branch. Both must return the same
    /// number of tensors, of the same types.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// let x = g.constant(3.0);
    /// let y = g.cond(&x.greater(0.0), || vec![&x * 2.0], || vec![-&x]);
    /// assert_eq!(y[0].shape().to_string(), "[]");
    /// ```
    #[track_caller]
    pub fn cond(
        &self,
        predicate: &Output,
        then: impl FnOnce() -> Vec<Output>,
        otherwise: impl FnOnce() -> Vec<Output>,
    ) -> Vec<Output> {
        let at = Location::caller();
        // The number of outputs is known after a branch is built.
        let mut count = 0;
        let Some(p) = predicate.endpoint else { return self.broken(then().len()) };
        if predicate.dtype() != DType::Bool {
            let dtype = predicate.dtype();
            self.fail(err!(InvalidArgument, "the predicate of cond is {dtype}, not bool"));
            return self.broken(then().len());
        }
        let result = self.name_scope("cond", |scope| -> Result<Vec<Output>> {
            let outer = self.state().context;
            let yes = self.branch(p, true, scope, at, || counted(&mut count, then()))?;
            let no = self.branch(p, false, scope, at, || counted(&mut count, otherwise()))?;
            ensure!(
                yes.len() == no.len(),
                InvalidArgument,
                "the branches of cond return {} and {} tensors",
                yes.len(),
                no.len()
            );
            let mut state = self.state();
            let mut merged = Vec::with_capacity(yes.len());
            for (yes, no) in yes.into_iter().zip(no) {
                let (a, b) = (state.ir.type_of(yes).dtype, state.ir.type_of(no).dtype);
                ensure!(a == b, InvalidArgument, "the branches of cond return {a} and {b}");
                let shape = in_common(&state.shape(yes), &state.shape(no));
                let before = std::mem::replace(&mut state.contexts[outer].scope, scope.to_string());
                let merge = state.primitive("Merge", outer, vec![no, yes], Attrs::new(), at);
                state.contexts[outer].scope = before;
                let e = Endpoint::new(merge?, 0);
                state.shapes[e.node.index()][0] = shape;
                merged.push(Output::new(self, Some(e)));
            }
            Ok(merged)
        });
        match result {
            Ok(merged) => merged,
            Err(e) => {
                self.state().fail(e, at);
                self.broken(count)
            }
        }
    }

    fn branch(
        &self,
        predicate: Endpoint,
        side: bool,
        scope: &str,
        at: &'static Location<'static>,
        build: impl FnOnce() -> Vec<Output>,
    ) -> Result<Vec<Endpoint>> {
        let (outer, context) = {
            let mut state = self.state();
            let outer = state.context;
            let predicate = state.bring(predicate, outer, at)?;
            let kind = ContextKind::Branch { predicate, side, pivot: None };
            let context = state.open(outer, kind, scope);
            // The pivot: nodes without inputs depend on it, so they run only if their branch does.
            let switch =
                state.primitive("Switch", context, vec![predicate, predicate], Attrs::new(), at)?;
            let out = Endpoint::new(switch, usize::from(side));
            let identity = state.primitive("Identity", context, vec![out], Attrs::new(), at)?;
            if let ContextKind::Branch { pivot, .. } = &mut state.contexts[context].kind {
                *pivot = Some(identity);
            }
            state.context = context;
            (outer, context)
        };
        let graph = self.clone();
        let restore = Restore(move || graph.state().context = outer);
        let outputs = build();
        // Inside the branch, so that an outside tensor that the branch returns unchanged passes
        // through a Switch.
        let mut found = Vec::with_capacity(outputs.len());
        for output in &outputs {
            let through = self.op("Identity").input(output).made_at(at).output();
            match through.endpoint {
                Some(e) => found.push(e),
                None => {
                    self.check()?;
                    bail!(InvalidArgument, "a branch of cond returns an output of a failed node");
                }
            }
        }
        drop(restore);
        debug_assert!(found.iter().all(|e| self.state().places[e.node.index()] == context));
        Ok(found)
    }
}

/// The outputs of a branch. Raises `count` to their number.
fn counted(count: &mut usize, outputs: Vec<Output>) -> Vec<Output> {
    *count = outputs.len().max(*count);
    outputs
}

impl GraphState {
    /// A new context within `parent`.
    pub fn open(&mut self, parent: ContextId, kind: ContextKind, scope: &str) -> ContextId {
        let scope = scope.to_string();
        self.contexts.push(Context { parent, kind, scope, brought: HashMap::new() });
        self.contexts.len() - 1
    }
}

/// The dimensions that two shapes have in common.
pub(crate) fn in_common(
    a: &ferroflow_core::PartialShape,
    b: &ferroflow_core::PartialShape,
) -> ferroflow_core::PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            ferroflow_core::PartialShape::new(a.iter().zip(b).map(|(x, y)| x.filter(|_| x == y)))
        }
        _ => ferroflow_core::PartialShape::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{floats, graph, initialized, session};

    #[test]
    fn only_the_taken_branch_runs() {
        let g = graph();
        let x = g.placeholder::<f32>("x", ());
        let count = g.variable("count", [0.0, 0.0]);
        let y = g.cond(
            &x.greater(0.0),
            || {
                let done = count.assign_add([1.0, 0.0]);
                g.control_dependencies(&[done], || vec![&x * 2.0, g.constant(1)])
            },
            || {
                let done = count.assign_add([0.0, 1.0]);
                g.control_dependencies(&[done], || vec![x.identity(), g.constant(2)])
            },
        );
        let s = initialized(&g).unwrap();
        let (a, b) = s.run_fed((&x, 3.0), (y[0].scalar::<f32>(), y[1].scalar::<i32>())).unwrap();
        assert_eq!((a, b), (6.0, 1));
        let (a, b) = s.run_fed((&x, -3.0), (y[0].scalar::<f32>(), y[1].scalar::<i32>())).unwrap();
        assert_eq!((a, b), (-3.0, 2));
        assert_eq!(floats(&s.run(&count).unwrap()), [1.0, 1.0]);
    }

    #[test]
    fn a_tensor_of_a_branch_cannot_leave_it() {
        let g = graph();
        let x = g.constant(1.0);
        let mut stolen = None;
        g.cond(
            &x.greater(0.0),
            || {
                stolen = Some(&x * 2.0);
                vec![x.clone()]
            },
            || vec![x.clone()],
        );
        let _ = stolen.unwrap() + 1.0;
        assert!(g.check().unwrap_err().message().contains("inside a branch or a loop"));
    }

    #[test]
    fn branches_must_return_the_same_types() {
        let g = graph();
        let x = g.constant(1.0);
        g.cond(&x.greater(0.0), || vec![x.clone()], || vec![g.constant(1)]);
        assert!(g.check().unwrap_err().message().contains("float and int32"));
        assert!(session(&g).is_err());
    }
}
