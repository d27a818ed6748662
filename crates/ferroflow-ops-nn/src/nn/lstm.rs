//! The arithmetic of a long short-term memory cell: one step forward and one step back.

use ferroflow_ops_math::linalg::gemm::{Mat, Product, ProductThreads};

/// The order of the gates in a row of pre-activations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub input: usize,
    pub candidate: usize,
    pub forget: usize,
    pub output: usize,
}

/// Input, candidate, forget, output.
pub(super) const FIRST: Order = Order { input: 0, candidate: 1, forget: 2, output: 3 };
/// Input, forget, candidate, output.
pub(super) const SECOND: Order = Order { input: 0, forget: 1, candidate: 2, output: 3 };

/// Sizes of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub batch: usize,
    pub input: usize,
    pub cell: usize,
}

impl Sizes {
    pub fn state(&self) -> usize {
        self.batch * self.cell
    }
}

/// The weights, and the peepholes to the cell's own state.
pub(super) struct Weights<'a> {
    pub w: &'a [f32],
    pub bias: &'a [f32],
    /// Peepholes of the input, forget and output gates, if any.
    pub peepholes: Option<[&'a [f32]; 3]>,
}

/// The activations of a step: each batch by cell.
#[derive(Clone, Default)]
pub(super) struct Activations {
    pub i: Vec<f32>,
    pub cs: Vec<f32>,
    pub f: Vec<f32>,
    pub o: Vec<f32>,
    pub ci: Vec<f32>,
    pub co: Vec<f32>,
    pub h: Vec<f32>,
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Concatenates the rows of `x` and `h`.
fn joined(s: Sizes, x: &[f32], h: &[f32]) -> Vec<f32> {
    let mut out = Vec::with_capacity(s.batch * (s.input + s.cell));
    for b in 0..s.batch {
        out.extend(&x[b * s.input..][..s.input]);
        out.extend(&h[b * s.cell..][..s.cell]);
    }
    out
}

/// One step, from the state and the output before it.
pub(super) fn step(
    s: Sizes,
    order: Order,
    weights: &Weights<'_>,
    (x, cs_prev, h_prev): (&[f32], &[f32], &[f32]),
    (forget_bias, clip): (f32, f32),
) -> Activations {
    let (n, k, c) = (4 * s.cell, s.input + s.cell, s.cell);
    let mut gates = vec![0f32; s.batch * n];
    if gates.is_empty() {
        return Activations::default();
    }
    gates.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(weights.bias));
    let rows = joined(s, x, h_prev);
    let (a, w) = (Mat::new(&rows, s.batch, k), Mat::new(weights.w, k, n));
    f32::product(a, w, &mut gates, n, true, ProductThreads::All);
    let mut out = Activations::default();
    for (at, &before) in cs_prev.iter().enumerate() {
        let (row, j) = (&gates[at / c * n..][..n], at % c);
        let peek = |k: usize, state: f32| weights.peepholes.map_or(0.0, |p| state * p[k][j]);
        let i = sigmoid(row[order.input * c + j] + peek(0, before));
        let f = sigmoid(row[order.forget * c + j] + forget_bias + peek(1, before));
        let ci = row[order.candidate * c + j].tanh();
        let mut cs = ci * i + before * f;
        if clip > 0.0 {
            cs = cs.min(clip).max(-clip);
        }
        let o = sigmoid(row[order.output * c + j] + peek(2, cs));
        let co = cs.tanh();
        out.i.push(i);
        out.cs.push(cs);
        out.f.push(f);
        out.o.push(o);
        out.ci.push(ci);
        out.co.push(co);
        out.h.push(o * co);
    }
    out
}

/// Gradients of one step: of the pre-activations, of the state before, and of the peepholes.
pub(super) struct Back {
    pub gates: Vec<f32>,
    pub cs_prev: Vec<f32>,
    pub peepholes: [Vec<f32>; 3],
}

/// One step back, from the gradients of the state and the output after it.
pub(super) fn back(
    s: Sizes,
    order: Order,
    peepholes: Option<[&[f32]; 3]>,
    a: &Activations,
    cs_prev: &[f32],
    (cs_grad, h_grad): (&[f32], &[f32]),
) -> Back {
    let c = s.cell;
    let mut gates = vec![0f32; 4 * s.state()];
    let mut before = Vec::with_capacity(s.state());
    let mut sums = [vec![0f32; c], vec![0f32; c], vec![0f32; c]];
    for at in 0..s.state() {
        let j = at % c;
        let (i, f, o, ci, co) = (a.i[at], a.f[at], a.o[at], a.ci[at], a.co[at]);
        let d_o = o * (1.0 - o) * h_grad[at] * co;
        let mut d_cs = (1.0 - co * co) * h_grad[at] * o + cs_grad[at];
        if let Some(p) = peepholes {
            d_cs += d_o * p[2][j];
        }
        let d_ci = (1.0 - ci * ci) * d_cs * i;
        let d_f = f * (1.0 - f) * d_cs * cs_prev[at];
        let d_i = i * (1.0 - i) * d_cs * ci;
        let mut d_before = d_cs * f;
        if let Some(p) = peepholes {
            d_before += d_i * p[0][j] + d_f * p[1][j];
            sums[0][j] += d_i * cs_prev[at];
            sums[1][j] += d_f * cs_prev[at];
            sums[2][j] += d_o * a.cs[at];
        }
        before.push(d_before);
        let row = &mut gates[at / c * 4 * c..][..4 * c];
        row[order.input * c + j] = d_i;
        row[order.candidate * c + j] = d_ci;
        row[order.forget * c + j] = d_f;
        row[order.output * c + j] = d_o;
    }
    Back { gates, cs_prev: before, peepholes: sums }
}

/// Gradients of the input and of the output before, from those of the pre-activations; adds those
/// of the weights to `dw`.
pub(super) fn back_through_weights(
    s: Sizes,
    w: &[f32],
    gates: &[f32],
    (x, h_prev): (&[f32], &[f32]),
    dw: &mut [f32],
) -> (Vec<f32>, Vec<f32>) {
    let (n, k) = (4 * s.cell, s.input + s.cell);
    let mut both = vec![0f32; s.batch * k];
    if s.batch > 0 && n > 0 {
        let d = Mat::new(gates, s.batch, n);
        f32::product(d, Mat::new(w, k, n).transposed(), &mut both, k, false, ProductThreads::All);
        let rows = joined(s, x, h_prev);
        f32::product(Mat::new(&rows, s.batch, k).transposed(), d, dw, n, true, ProductThreads::All);
    }
    let (mut dx, mut dh) = (Vec::new(), Vec::new());
    for row in both.chunks_exact(k.max(1)) {
        dx.extend(&row[..s.input]);
        dh.extend(&row[s.input..]);
    }
    (dx, dh)
}
