//! The arithmetic of a long short-term memory cell: one step forward and one step back.

use ferroflow_op_kit::multiversion;
use ferroflow_ops_math::linalg::gemm::{Mat, Product, ProductThreads};
use ferroflow_ops_math::math::fast::Fast;

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
    let zeros = || vec![0f32; s.state()];
    let mut out = Activations {
        i: zeros(),
        cs: zeros(),
        f: zeros(),
        o: zeros(),
        ci: zeros(),
        co: zeros(),
        h: zeros(),
    };
    for (b, row) in gates.chunks_exact(n).enumerate() {
        let at = b * c..(b + 1) * c;
        let gate = |k: usize| &row[k * c..][..c];
        let gates = [order.input, order.forget, order.candidate, order.output].map(gate);
        let before = &cs_prev[at.clone()];
        let [i, cs, f, ci] = [&mut out.i, &mut out.cs, &mut out.f, &mut out.ci];
        let state =
            [&mut i[at.clone()], &mut f[at.clone()], &mut ci[at.clone()], &mut cs[at.clone()]];
        let peepholes = weights.peepholes;
        states(gates, before, peepholes, (forget_bias, clip), state);
        let output = [&mut out.o[at.clone()], &mut out.co[at.clone()], &mut out.h[at.clone()]];
        outputs(gates[3], &out.cs[at], peepholes.map(|p| p[2]), output);
    }
    out
}

multiversion! {
    /// Input and forget gates, candidates and states of one row: `[i, f, ci, cs]`.
    wide(true)
    fn states[]<>(
        gates: [&[f32]; 4],
        before: &[f32],
        peepholes: Option<[&[f32]; 3]>,
        rules: (f32, f32),
        to: [&mut [f32]; 4]
    ) {
        let c = before.len();
        let [input, forget, candidate, _] = gates.map(|gate| &gate[..c]);
        let (forget_bias, clip) = rules;
        let [i, f, ci, cs] = to.map(|to| &mut to[..c]);
        for j in 0..c {
            i[j] = input[j];
            f[j] = forget[j] + forget_bias;
        }
        if let Some([to_input, to_forget, _]) = peepholes {
            for j in 0..c {
                i[j] += before[j] * to_input[j];
                f[j] += before[j] * to_forget[j];
            }
        }
        for j in 0..c {
            i[j] = i[j].fast_sigmoid();
            f[j] = f[j].fast_sigmoid();
            ci[j] = candidate[j].fast_tanh();
            cs[j] = ci[j] * i[j] + before[j] * f[j];
        }
        if clip > 0.0 {
            cs.iter_mut().for_each(|cs| *cs = cs.min(clip).max(-clip));
        }
    }
}

multiversion! {
    /// Output gates and outputs of one row: `[o, co, h]`.
    wide(true)
    fn outputs[]<>(gate: &[f32], cs: &[f32], peephole: Option<&[f32]>, to: [&mut [f32]; 3]) {
        let c = cs.len();
        let [o, co, h] = to.map(|to| &mut to[..c]);
        o.copy_from_slice(&gate[..c]);
        if let Some(peephole) = peephole {
            for j in 0..c {
                o[j] += cs[j] * peephole[j];
            }
        }
        for j in 0..c {
            o[j] = o[j].fast_sigmoid();
            co[j] = cs[j].fast_tanh();
            h[j] = o[j] * co[j];
        }
    }
}

/// Gradients of one step: of the pre-activations, of the state before, and of the peepholes.
pub(super) struct Back {
    pub gates: Vec<f32>,
    pub cs_prev: Vec<f32>,
    pub peepholes: [Vec<f32>; 3],
}

/// The activations of a step that its gradient needs.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub i: &'a [f32],
    pub cs: &'a [f32],
    pub f: &'a [f32],
    pub o: &'a [f32],
    pub ci: &'a [f32],
    pub co: &'a [f32],
}

/// One step back, from the gradients of the state and the output after it.
pub(super) fn back(
    s: Sizes,
    order: Order,
    peepholes: Option<[&[f32]; 3]>,
    a: Seen<'_>,
    cs_prev: &[f32],
    (cs_grad, h_grad): (&[f32], &[f32]),
) -> Back {
    let c = s.cell;
    let mut gates = vec![0f32; 4 * s.state()];
    let mut before = vec![0f32; s.state()];
    let mut sums = [vec![0f32; c], vec![0f32; c], vec![0f32; c]];
    for (b, row) in gates.chunks_exact_mut((4 * c).max(1)).enumerate() {
        let at = b * c..(b + 1) * c;
        let a = Seen {
            i: &a.i[at.clone()],
            cs: &a.cs[at.clone()],
            f: &a.f[at.clone()],
            o: &a.o[at.clone()],
            ci: &a.ci[at.clone()],
            co: &a.co[at.clone()],
        };
        let after = (&cs_grad[at.clone()], &h_grad[at.clone()]);
        let (prev, before) = (&cs_prev[at.clone()], &mut before[at.clone()]);
        back_row(order, peepholes, a, prev, after, row, before);
        if peepholes.is_some() {
            for j in 0..c {
                sums[0][j] += row[order.input * c + j] * prev[j];
                sums[1][j] += row[order.forget * c + j] * prev[j];
                sums[2][j] += row[order.output * c + j] * a.cs[j];
            }
        }
    }
    Back { gates, cs_prev: before, peepholes: sums }
}

multiversion! {
    /// One row of a step back: the gradients of its gates, and of the state before.
    fn back_row[]<>(
        order: Order,
        peepholes: Option<[&[f32]; 3]>,
        a: Seen<'_>,
        cs_prev: &[f32],
        after: (&[f32], &[f32]),
        gates: &mut [f32],
        before: &mut [f32]
    ) {
        let c = before.len();
        let (cs_grad, h_grad) = (&after.0[..c], &after.1[..c]);
        let [i, f, o, ci, co] = [a.i, a.f, a.o, a.ci, a.co].map(|all| &all[..c]);
        // All orders begin with the input gate and end with the output gate.
        let (d_i, rest) = gates.split_at_mut(c);
        let (second, rest) = rest.split_at_mut(c);
        let (third, d_o) = rest.split_at_mut(c);
        let (d_f, d_ci) =
            if order.forget < order.candidate { (second, third) } else { (third, second) };
        let (d_o, cs_prev) = (&mut d_o[..c], &cs_prev[..c]);
        for j in 0..c {
            d_o[j] = o[j] * (1.0 - o[j]) * h_grad[j] * co[j];
            before[j] = (1.0 - co[j] * co[j]) * h_grad[j] * o[j] + cs_grad[j];
        }
        if let Some([_, _, to_output]) = peepholes {
            for j in 0..c {
                before[j] += d_o[j] * to_output[j];
            }
        }
        for j in 0..c {
            let d_cs = before[j];
            d_ci[j] = (1.0 - ci[j] * ci[j]) * d_cs * i[j];
            d_f[j] = f[j] * (1.0 - f[j]) * d_cs * cs_prev[j];
            d_i[j] = i[j] * (1.0 - i[j]) * d_cs * ci[j];
            before[j] = d_cs * f[j];
        }
        if let Some([to_input, to_forget, _]) = peepholes {
            for j in 0..c {
                before[j] += d_i[j] * to_input[j] + d_f[j] * to_forget[j];
            }
        }
    }
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
