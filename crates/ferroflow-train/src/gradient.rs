//! Gradients of tensors of a graph under construction.

use crate::context::ROOT;
use crate::graph::Graph;
use crate::names::join;
use crate::output::Output;
use crate::variable::Variable;
use ferroflow_core::{DType, Result, ensure};
use ferroflow_graph::{Endpoint, GradientOptions, NodeId};
use std::panic::Location;

/// The gradient of a tensor or variable.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Gradient, init};
/// let table = g.variable("table", init::ones([10, 2]));
/// let loss = table.gather(&g.constant([3, 3])).sum_all();
/// let gradients = g.gradients(&[loss], &[table]);
/// assert!(matches!(gradients[0], Some(Gradient::Sparse(_))));
/// ```
#[derive(Clone, Debug)]
pub enum Gradient {
    /// A tensor of the shape of the variable.
    Dense(Output),
    /// Rows of a gradient that is zero elsewhere, such as the gradient of a table lookup.
    Sparse(IndexedSlices),
}

/// A tensor by rows: row `r` is the sum of all `values[i]` with `indices[i] == r`, and zero without
/// one.
#[derive(Clone, Debug)]
pub struct IndexedSlices {
    /// The values of the rows.
    pub values: Output,
    /// The numbers of the rows.
    pub indices: Output,
    /// The shape of the whole tensor.
    pub shape: Output,
}

impl Gradient {
    /// The whole gradient as one tensor.
    #[track_caller]
    pub fn dense(&self) -> Output {
        match self {
            Gradient::Dense(output) => output.clone(),
            Gradient::Sparse(s) => {
                let rows = s.shape.at(0);
                let g = s.values.graph();
                g.op("UnsortedSegmentSum").input(&s.values).input(&s.indices).input(&rows).output()
            }
        }
    }

    /// The values: the whole tensor, or its rows.
    pub fn values(&self) -> &Output {
        match self {
            Gradient::Dense(output) => output,
            Gradient::Sparse(s) => &s.values,
        }
    }

    /// The same gradient with other values, of the same shape.
    #[must_use]
    pub fn with_values(&self, values: Output) -> Gradient {
        match self {
            Gradient::Dense(_) => Gradient::Dense(values),
            Gradient::Sparse(s) => Gradient::Sparse(IndexedSlices { values, ..s.clone() }),
        }
    }
}

impl IndexedSlices {
    /// The same gradient with unique indices.
    #[track_caller]
    pub fn deduplicated(&self) -> IndexedSlices {
        let g = self.values.graph();
        let [indices, positions] = g.op("Unique").input(&self.indices).split();
        let count = indices.dim(0);
        let op = g.op("UnsortedSegmentSum").input(&self.values).input(&positions).input(&count);
        IndexedSlices { values: op.output(), indices, shape: self.shape.clone() }
    }
}

/// A tensor or a variable, to differentiate by.
pub trait Differentiate {
    /// The tensor to differentiate by.
    fn point(&self) -> Output;
}

impl Differentiate for Output {
    fn point(&self) -> Output {
        self.clone()
    }
}

impl Differentiate for Variable {
    fn point(&self) -> Output {
        self.handle()
    }
}

impl<D: Differentiate> Differentiate for &D {
    fn point(&self) -> Output {
        (**self).point()
    }
}

impl Graph {
    /// The derivatives of the sum of `ys` by each of `xs`; `None` where no y depends on the x.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// let x = g.placeholder::<f32>("x", [None]);
    /// let y = x.square().sum_all();
    /// let dx = g.gradients(&[y], &[&x]);
    /// assert!(dx[0].is_some());
    /// ```
    #[track_caller]
    pub fn gradients<D: Differentiate>(&self, ys: &[Output], xs: &[D]) -> Vec<Option<Gradient>> {
        let at = Location::caller();
        let points: Vec<Output> = xs.iter().map(|x| x.point()).collect();
        match self.differentiate(ys, &points, at) {
            Ok(found) => found,
            Err(e) => {
                self.state().fail(e, at);
                vec![None; xs.len()]
            }
        }
    }

    fn differentiate(
        &self,
        ys: &[Output],
        xs: &[Output],
        at: &'static Location<'static>,
    ) -> Result<Vec<Option<Gradient>>> {
        self.check()?;
        ensure!(
            ys.iter().chain(xs).all(|o| o.graph.is(self)),
            InvalidArgument,
            "an output or a variable of gradients belongs to another graph"
        );
        let endpoints =
            |list: &[Output]| -> Vec<Endpoint> { list.iter().filter_map(|o| o.endpoint).collect() };
        let (added, found) = {
            let mut guard = self.state();
            let state = &mut *guard;
            ensure!(
                state.context == ROOT,
                InvalidArgument,
                "gradients cannot be made inside a branch or a loop"
            );
            let scope = join(&state.name_scope, "gradients");
            let name = state.names.unique(&scope);
            let before: Vec<_> = state
                .ir
                .iter()
                .map(|(_, n)| (n.op.clone(), n.inputs.clone(), n.controls.clone()))
                .collect();
            let options = GradientOptions { name, ..GradientOptions::default() };
            let catalog = state.catalog.clone();
            let found = ferroflow_graph::gradients(
                &mut state.ir,
                &catalog,
                &endpoints(ys),
                &endpoints(xs),
                &options,
            )?;
            let changed = before.iter().enumerate().any(|(i, (op, inputs, controls))| {
                let now = state.ir.node(NodeId(i as u32));
                !std::sync::Arc::ptr_eq(op, &now.op)
                    || *inputs != now.inputs
                    || *controls != now.controls
            });
            state.rewrites += u64::from(changed);
            let added: Vec<NodeId> = state.ir.ids().skip(before.len()).collect();
            for &id in &added {
                let name = state.ir.node(id).name.clone();
                state.names.take(&name);
                state.made_at.push(at);
                state.places.push(ROOT);
                // An unknown shape is no error here.
                let unknown = vec![Default::default(); state.ir.node(id).output_types.len()];
                let shapes = state.infer(id).unwrap_or(unknown);
                state.shapes.push(shapes);
            }
            (added, found)
        };
        for id in added {
            if self.state().ir.node(id).device.is_empty() {
                self.place(id, None)?;
            }
        }
        let output = |e: Endpoint| Output::new(self, Some(e));
        let mut gradients = Vec::with_capacity(found.len());
        for (x, gradient) in xs.iter().zip(found) {
            gradients.push(gradient.map(|gradient| match gradient {
                ferroflow_graph::EndpointGradient::Tensor(e) => {
                    let gradient = output(e);
                    if x.dtype() != DType::Resource
                        && let Ok(shape) = gradient.shape().merge(&x.shape())
                    {
                        gradient.set_shape(shape);
                    }
                    Gradient::Dense(gradient)
                }
                ferroflow_graph::EndpointGradient::Slices(s) => Gradient::Sparse(IndexedSlices {
                    values: output(s.values),
                    indices: output(s.indices),
                    shape: output(s.shape),
                }),
            }));
        }
        Ok(gradients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::testing::{floats, graph, initialized, session};

    #[test]
    fn derivatives_are_right() {
        let g = graph();
        let x = g.constant([1.0, 2.0, 3.0]);
        let y = (x.square() * &x).sum_all();
        let dx = g.gradients(&[y], &[&x]);
        let s = session(&g).unwrap();
        let value = s.run(dx[0].as_ref().unwrap().values()).unwrap();
        assert_eq!(floats(&value), [3.0, 12.0, 27.0]);
    }

    #[test]
    fn looked_up_rows_have_sparse_gradients() {
        let g = graph();
        let table = g.variable("table", init::ones([5, 2]));
        let rows = table.gather(&g.constant([3, 1, 3]));
        let d = g.gradients(&[rows.sum_all()], &[&table]);
        let Some(Gradient::Sparse(slices)) = &d[0] else { panic!("{d:?}") };
        let once = slices.deduplicated();
        let whole = d[0].as_ref().unwrap().dense();
        let s = initialized(&g).unwrap();
        let (values, whole) = s.run((&once.values, &whole)).unwrap();
        assert_eq!(floats(&values), [2.0, 2.0, 1.0, 1.0]);
        assert_eq!(floats(&whole), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn gradients_go_through_loops_and_branches() {
        let g = graph();
        let x = g.variable("x", 2.0);
        let end = g.while_loop(
            &[g.constant(0), g.constant(1.0)],
            |v| v[0].less(3),
            |v| vec![&v[0] + 1.0, &v[1] * &*x],
        );
        let y = g.cond(&end[1].greater(5.0), || vec![&end[1] * 10.0], || vec![end[1].clone()]);
        let d = g.gradients(&[y[0].clone()], &[&x]);
        let s = initialized(&g).unwrap();
        let dx = s.run(d[0].as_ref().unwrap().dense().scalar::<f32>()).unwrap();
        assert_eq!(dx, 10.0 * 3.0 * 4.0);
    }
}
