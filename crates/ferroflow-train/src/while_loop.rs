//! Loops of v1 control flow.

use crate::context::{ContextId, ContextKind};
use crate::graph::{Graph, Restore};
use crate::output::Output;
use ferroflow_core::{DType, PartialShape, Result, bail, ensure};
use ferroflow_graph::{Attrs, Endpoint, NodeId};
use std::panic::Location;

/// The options of a loop.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_core::PartialShape;
/// use ferroflow_train::WhileOptions;
/// // The tensor grows in the loop, so its length is unknown.
/// let shape_invariants = vec![PartialShape::of_rank(1)];
/// let options = WhileOptions { shape_invariants, ..WhileOptions::default() };
/// let start = [g.constant([1.0])];
/// let end = g.while_loop_with(options, &start, |v| v[0].size().less(8), |v| {
///     vec![g.concat(&[v[0].clone(), v[0].clone()], 0)]
/// });
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct WhileOptions {
    /// How many iterations may run at a time.
    pub parallel_iterations: i64,
    /// Shape invariants of the loop variables; their initial shapes if empty.
    pub shape_invariants: Vec<PartialShape>,
}

impl Default for WhileOptions {
    fn default() -> WhileOptions {
        WhileOptions { parallel_iterations: 10, shape_invariants: Vec::new() }
    }
}

/// The nodes of one loop variable.
struct LoopVariable {
    merge: NodeId,
    invariant: PartialShape,
}

impl Graph {
    /// Repeats `body` while `condition` is true, and returns the final loop variables. This call
    /// runs both closures once, to build the loop.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// let start = [g.constant(0), g.constant(1.0)];
    /// let end = g.while_loop(&start, |v| v[0].less(10), |v| vec![&v[0] + 1.0, &v[1] * 2.0]);
    /// assert_eq!(end.len(), 2);
    /// ```
    #[track_caller]
    pub fn while_loop(
        &self,
        start: &[Output],
        condition: impl FnOnce(&[Output]) -> Output,
        body: impl FnOnce(&[Output]) -> Vec<Output>,
    ) -> Vec<Output> {
        self.while_loop_with(WhileOptions::default(), start, condition, body)
    }

    /// [`Graph::while_loop`] with options.
    #[track_caller]
    pub fn while_loop_with(
        &self,
        options: WhileOptions,
        start: &[Output],
        condition: impl FnOnce(&[Output]) -> Output,
        body: impl FnOnce(&[Output]) -> Vec<Output>,
    ) -> Vec<Output> {
        let at = Location::caller();
        let count = start.len();
        // With an invalid variable the closures would get fewer variables than they index.
        let start: Option<Vec<Endpoint>> = start.iter().map(|o| o.endpoint).collect();
        let Some(start) = start else { return self.broken(count) };
        let result = self.name_scope("while", |scope| {
            self.build_loop(options, &start, scope, at, condition, body)
        });
        match result {
            Ok(outputs) => outputs,
            Err(e) => {
                self.state().fail(e, at);
                self.broken(count)
            }
        }
    }

    fn build_loop(
        &self,
        options: WhileOptions,
        start: &[Endpoint],
        scope: &str,
        at: &'static Location<'static>,
        condition: impl FnOnce(&[Output]) -> Output,
        body: impl FnOnce(&[Output]) -> Vec<Output>,
    ) -> Result<Vec<Output>> {
        ensure!(!start.is_empty(), InvalidArgument, "a loop needs a variable");
        let (outer, inner) = {
            let mut state = self.state();
            let kind = ContextKind::Loop {
                frame: format!("{scope}/while_context"),
                parallel_iterations: options.parallel_iterations,
                pivot: None,
            };
            let outer = state.context;
            (outer, state.open(outer, kind, scope))
        };
        let variables = self.enter(&options, start, outer, inner, at)?;
        let graph = self.clone();
        let _restore = Restore(move || graph.state().context = outer);

        self.set_pivot(inner, variables[0].merge);
        self.state().context = inner;
        let merged = variables.iter().map(|v| Output::new(self, Some(Endpoint::new(v.merge, 0))));
        let merged: Vec<Output> = merged.collect();
        let holds = condition(&merged);
        let Some(holds) = holds.endpoint else {
            self.check()?;
            bail!(InvalidArgument, "the condition of the loop is an output of a failed node");
        };
        let mut switches = Vec::with_capacity(variables.len());
        {
            let mut state = self.state();
            ensure!(
                state.ir.type_of(holds).dtype == DType::Bool,
                InvalidArgument,
                "the condition of the loop is {}, not bool",
                state.ir.type_of(holds).dtype
            );
            let holds = state.bring(holds, inner, at)?;
            let go_on = loop_condition(&mut state, inner, holds, at)?;
            for v in &variables {
                let inputs = vec![Endpoint::new(v.merge, 0), go_on];
                switches.push(state.primitive("Switch", inner, inputs, Attrs::new(), at)?);
            }
        }
        let mut within = Vec::with_capacity(variables.len());
        for (switch, v) in switches.iter().zip(&variables) {
            let mut state = self.state();
            let alive = Endpoint::new(*switch, 1);
            let id = state.primitive("Identity", inner, vec![alive], Attrs::new(), at)?;
            state.shapes[id.index()][0] = v.invariant.clone();
            within.push(Output::new(self, Some(Endpoint::new(id, 0))));
        }
        if let Some(first) = within[0].endpoint {
            self.set_pivot(inner, first.node);
        }
        let next = body(&within);
        ensure!(
            next.len() == variables.len(),
            InvalidArgument,
            "the body of the loop returns {} tensors for {} variables",
            next.len(),
            variables.len()
        );
        let mut state = self.state();
        for ((next, v), i) in next.iter().zip(&variables).zip(0..) {
            let Some(e) = next.endpoint else {
                if let Some(e) = &state.error {
                    return Err(e.clone());
                }
                bail!(InvalidArgument, "variable {i} of the loop is an output of a failed node");
            };
            let e = state.bring(e, inner, at)?;
            let (have, want) =
                (state.ir.type_of(e).dtype, state.ir.node(v.merge).output_types[0].dtype);
            ensure!(
                have == want,
                InvalidArgument,
                "variable {i} of the loop is {want}, but the body makes it {have}"
            );
            let shape = state.shape(e);
            ensure!(
                crate::cond::in_common(&v.invariant, &shape) == v.invariant,
                InvalidArgument,
                "variable {i} of the loop enters with shape {}, but has shape {shape} after one \
                 iteration; give its shape invariant",
                v.invariant
            );
            let node = state.primitive("NextIteration", inner, vec![e], Attrs::new(), at)?;
            state.ir.node_mut(v.merge).inputs[1] = Endpoint::new(node, 0);
        }
        let mut outputs = Vec::with_capacity(variables.len());
        for (switch, v) in switches.iter().zip(&variables) {
            let out = vec![Endpoint::new(*switch, 0)];
            let before = std::mem::replace(&mut state.contexts[outer].scope, scope.to_string());
            let exit = state.primitive("Exit", outer, out, Attrs::new(), at);
            state.contexts[outer].scope = before;
            let e = Endpoint::new(exit?, 0);
            state.shapes[e.node.index()][0] = v.invariant.clone();
            outputs.push(Output::new(self, Some(e)));
        }
        Ok(outputs)
    }

    /// The entry of each variable: `Enter`, then `Merge` with the value of the previous iteration.
    fn enter(
        &self,
        options: &WhileOptions,
        start: &[Endpoint],
        outer: ContextId,
        inner: ContextId,
        at: &'static Location<'static>,
    ) -> Result<Vec<LoopVariable>> {
        let mut state = self.state();
        let frame = match &state.contexts[inner].kind {
            ContextKind::Loop { frame, .. } => frame.clone(),
            _ => bail!(Internal, "not a loop"),
        };
        let mut variables = Vec::with_capacity(start.len());
        for (i, &e) in start.iter().enumerate() {
            let e = state.bring(e, outer, at)?;
            let invariant = options.shape_invariants.get(i).cloned();
            let invariant = invariant.unwrap_or_else(|| state.shape(e));
            let attrs = Attrs::new()
                .with("frame_name", frame.as_str())
                .with("parallel_iterations", options.parallel_iterations);
            let enter = state.primitive("Enter", inner, vec![e], attrs, at)?;
            state.shapes[enter.index()][0] = invariant.clone();
            let e = Endpoint::new(enter, 0);
            let merge = state.primitive("Merge", inner, vec![e, e], Attrs::new(), at)?;
            state.shapes[merge.index()][0] = invariant.clone();
            variables.push(LoopVariable { merge, invariant });
        }
        Ok(variables)
    }

    fn set_pivot(&self, context: ContextId, node: NodeId) {
        if let ContextKind::Loop { pivot, .. } = &mut self.state().contexts[context].kind {
            *pivot = Some(node);
        }
    }
}

fn loop_condition(
    state: &mut crate::graph::GraphState,
    inner: ContextId,
    holds: Endpoint,
    at: &'static Location<'static>,
) -> Result<Endpoint> {
    let found = state.catalog.get("LoopCond").cloned();
    let Some(op) = found else { bail!(Unimplemented, "the catalog lacks LoopCond") };
    let name = state.names.unique(&crate::names::join(&state.contexts[inner].scope, "LoopCond"));
    let (attrs, inputs, controls) = (Attrs::new(), vec![holds], Vec::new());
    let id =
        state.add_plain(crate::node::NewNode { name, op, attrs, inputs, controls, at }, inner)?;
    Ok(Endpoint::new(id, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session};

    #[test]
    fn loops_nest_and_use_outer_tensors() {
        let g = graph();
        let step = g.constant(2.0);
        let end = g.while_loop(
            &[g.constant(0), g.constant(0.0)],
            |v| v[0].less(3),
            |v| {
                let inner = g.while_loop(
                    &[g.constant(0), v[1].clone()],
                    |w| w[0].less(4),
                    |w| vec![&w[0] + 1.0, &w[1] + &step],
                );
                let bonus =
                    g.cond(&v[0].equal(1), || vec![&inner[1] + 100.0], || vec![inner[1].clone()]);
                vec![&v[0] + 1.0, bonus[0].clone()]
            },
        );
        let s = session(&g).unwrap();
        assert_eq!(s.run(end[1].scalar::<f32>()).unwrap(), 3.0 * 4.0 * 2.0 + 100.0);
    }

    #[test]
    fn a_growing_shape_needs_an_invariant() {
        let g = graph();
        let start = [g.constant([1.0])];
        let grow = |v: &[Output]| vec![v[0].graph().concat(&[v[0].clone(), v[0].clone()], 0)];
        let shape_invariants = vec![PartialShape::of_rank(1)];
        let options = WhileOptions { shape_invariants, ..WhileOptions::default() };
        let end = g.while_loop_with(options, &start, |v| v[0].size().less(8), grow);
        let s = session(&g).unwrap();
        assert_eq!(s.run(&end[0]).unwrap().elements(), 8);
        g.while_loop(&start, |v| v[0].size().less(8), grow);
        assert!(g.check().unwrap_err().message().contains("shape invariant"));
    }
}
