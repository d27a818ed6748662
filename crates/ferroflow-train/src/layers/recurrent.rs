//! Recurrent layers: a cell, repeated over time by a loop.

use crate::graph::Graph;
use crate::init;
use crate::output::Output;
use crate::variable::Variable;
use crate::variable_scope::Reuse;
use ferroflow_core::{DType, PartialShape, err};

/// One step of a recurrent layer.
pub trait RnnCell {
    /// The widths of its state's parts.
    fn state_widths(&self) -> Vec<usize>;

    /// Makes the variables, before the loop.
    fn variables(&self, graph: &Graph, input: usize) -> Vec<Variable>;

    /// Output and next state, from an input and a state.
    fn step(
        &self,
        variables: &[Variable],
        input: &Output,
        state: &[Output],
    ) -> (Output, Vec<Output>);
}

/// Long short-term memory (Hochreiter, Schmidhuber 1997); variables as in TensorFlow's
/// `BasicLSTMCell`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::{Lstm, rnn};
/// let x = g.placeholder::<f32>("x", [2, 5, 3]);
/// let (outputs, state) = rnn("lstm", &Lstm::new(8).forget_bias(1.0), &x);
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    units: usize,
    forget_bias: f32,
}

impl Lstm {
    /// A cell with `units` outputs.
    pub fn new(units: usize) -> Lstm {
        Lstm { units, forget_bias: 1.0 }
    }

    /// Bias of the forget gate; the default is 1.
    pub fn forget_bias(mut self, bias: f32) -> Lstm {
        self.forget_bias = bias;
        self
    }
}

impl RnnCell for Lstm {
    fn state_widths(&self) -> Vec<usize> {
        vec![self.units, self.units]
    }

    #[track_caller]
    fn variables(&self, graph: &Graph, input: usize) -> Vec<Variable> {
        let shape = [input.saturating_add(self.units), self.units.saturating_mul(4)];
        graph.variable_scope("basic_lstm_cell", Reuse::No, || {
            vec![
                graph.get_variable("kernel", init::glorot_uniform(shape)),
                graph.get_variable("bias", init::zeros([shape[1]])),
            ]
        })
    }

    #[track_caller]
    fn step(&self, v: &[Variable], input: &Output, state: &[Output]) -> (Output, Vec<Output>) {
        let g = input.graph();
        let (c, h) = (&state[0], &state[1]);
        let gates = g.concat(&[input.clone(), h.clone()], 1).matmul(&v[0]).bias_add(&v[1]);
        let gates = gates.split(4, 1);
        let [i, j, f, o] = gates.as_slice() else { return (input.clone(), state.to_vec()) };
        let c = c * (f + self.forget_bias).sigmoid() + i.sigmoid() * j.tanh();
        let h = c.tanh() * o.sigmoid();
        (h.clone(), vec![c, h])
    }
}

/// Gated recurrent unit (Cho et al. 2014); variables as in TensorFlow's `GRUCell`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::{Gru, rnn};
/// let x = g.placeholder::<f32>("x", [2, 5, 3]);
/// let (outputs, state) = rnn("gru", &Gru::new(8), &x);
/// assert_eq!(state.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    units: usize,
}

impl Gru {
    /// A cell with `units` outputs.
    pub fn new(units: usize) -> Gru {
        Gru { units }
    }
}

impl RnnCell for Gru {
    fn state_widths(&self) -> Vec<usize> {
        vec![self.units]
    }

    #[track_caller]
    fn variables(&self, graph: &Graph, input: usize) -> Vec<Variable> {
        let (rows, units) = (input.saturating_add(self.units), self.units);
        graph.variable_scope("gru_cell", Reuse::No, || {
            let kernel = |name: &str, columns| {
                graph.get_variable(name, init::glorot_uniform([rows, columns]))
            };
            vec![
                kernel("gates/kernel", units.saturating_mul(2)),
                graph.get_variable("gates/bias", init::ones([units.saturating_mul(2)])),
                kernel("candidate/kernel", units),
                graph.get_variable("candidate/bias", init::zeros([units])),
            ]
        })
    }

    #[track_caller]
    fn step(&self, v: &[Variable], input: &Output, state: &[Output]) -> (Output, Vec<Output>) {
        let (g, h) = (input.graph(), &state[0]);
        let gates = g.concat(&[input.clone(), h.clone()], 1).matmul(&v[0]).bias_add(&v[1]);
        let gates = gates.sigmoid().split(2, 1);
        let [reset, update] = gates.as_slice() else { return (input.clone(), state.to_vec()) };
        let joined = g.concat(&[input.clone(), reset * h], 1);
        let candidate = joined.matmul(&v[2]).bias_add(&v[3]).tanh();
        let next = update * h + (1.0 - update) * candidate;
        (next.clone(), vec![next])
    }
}

/// Runs a cell over `x`, [batch, time, width], from a state of zeros: its outputs [batch, time,
/// units] and its last state.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::{Gru, rnn};
/// let x = g.placeholder::<f32>("x", [2, 5, 3]);
/// let (outputs, state) = rnn("gru", &Gru::new(8), &x);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn rnn(name: &str, cell: &dyn RnnCell, x: &Output) -> (Output, Vec<Output>) {
    let g = x.graph();
    let width = match x.shape().dims() {
        Some([_, _, Some(width)]) => Ok(*width),
        _ => Err(err!(
            InvalidArgument,
            "rnn '{name}' takes [batch, time, width] with a known width, got {}",
            x.shape()
        )),
    };
    let Some(width) = g.or_fail(width) else {
        return (Output::new(g, None), g.broken(cell.state_widths().len()));
    };
    g.variable_scope(name, Reuse::No, || {
        let variables = cell.variables(g, width);
        let by_time = x.transpose(&[1, 0, 2]);
        let (steps, batch) = (by_time.dim(0), by_time.dim(1));
        let rows = x.shape().dim(0);
        let inputs = g
            .tensor_array(x.dtype(), &steps, PartialShape::new([rows, Some(width)]))
            .unstack(&by_time);
        let widths = cell.state_widths();
        let units = widths.last().copied().unwrap_or(0);
        let outputs = g.tensor_array(x.dtype(), &steps, PartialShape::new([rows, Some(units)]));
        let mut start = vec![g.constant(0), outputs.flow.clone()];
        let mut shapes = vec![PartialShape::scalar(), PartialShape::unknown()];
        for &w in &widths {
            let dims = g.pack(&[batch.clone(), g.constant(i32::try_from(w).unwrap_or(0))], 0);
            let zeros = g.fill(dims, 0.0).cast(x.dtype());
            let shape = PartialShape::new([rows, Some(w)]);
            zeros.set_shape(&shape);
            start.push(zeros);
            shapes.push(shape);
        }
        let options = crate::WhileOptions { shape_invariants: shapes, ..Default::default() };
        let end = g.while_loop_with(
            options,
            &start,
            |v| v[0].less(&steps),
            |v| {
                let input = inputs.read(&v[0]);
                let (output, state) = cell.step(&variables, &input, &v[2..]);
                let written = outputs.with_flow(&v[1]).write(&v[0], &output);
                let mut next = vec![&v[0] + 1.0, written.flow];
                next.extend(state);
                next
            },
        );
        let Some((flow, state)) = end.get(1).zip(end.get(2..)) else {
            return (Output::new(g, None), Vec::new());
        };
        let all = outputs.with_flow(flow).stack().transpose(&[1, 0, 2]);
        let time = x.shape().dim(1);
        all.set_shape(PartialShape::new([rows, time, Some(units)]));
        debug_assert!(all.dtype() == x.dtype() || all.dtype() == DType::Float);
        (all, state.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, initialized};

    #[test]
    fn cells_run_over_time() {
        for cell in [&Lstm::new(3) as &dyn RnnCell, &Gru::new(3)] {
            let g = graph();
            g.set_seed(1);
            let x = g.placeholder::<f32>("x", [None, None, Some(2)]);
            let (y, state) = rnn("rnn", cell, &x);
            assert_eq!(y.shape().to_string(), "[?,?,3]");
            let last = state.last().unwrap().clone();
            let s = initialized(&g).unwrap();
            let value = ferroflow_core::Tensor::from_slice([2, 4, 2], &[0.5f32; 16]).unwrap();
            let (y, last) = s.run_fed((&x, value), (&y, &last)).unwrap();
            let (y, last) = (y.as_slice::<f32>().unwrap(), last.as_slice::<f32>().unwrap());
            assert_eq!(&y[9..12], &last[..3]);
            assert!(last.iter().all(|v| *v != 0.0));
        }
    }
}
