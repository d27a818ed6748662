//! GRUBlockCell and its gradient: one step of a gated recurrent unit.

use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::{Mat, Product, ProductThreads, product};

/// Sizes of a cell.
struct Sizes {
    batch: usize,
    input: usize,
    cell: usize,
}

impl Sizes {
    fn new(ctx: &Ctx<'_>) -> Result<Sizes> {
        let matrix = |i: usize, name: &str| -> Result<(usize, usize)> {
            match *ctx.input(i)?.shape().dims() {
                [rows, cols] => Ok((rows, cols)),
                _ => {
                    bail!(InvalidArgument, "Rank of {name} must be 2, got {}", ctx.input(i)?.rank())
                }
            }
        };
        let ((batch, input), (rows, cell)) = (matrix(0, "x")?, matrix(1, "h_prev")?);
        let expect = |what: &str, is: usize, want: usize, name: &str| -> Result<()> {
            ensure!(is == want, InvalidArgument, "{what} != {name}: {is} vs. {want}");
            Ok(())
        };
        expect("h_prev.dims(0)", rows, batch, "batch_size")?;
        let (both, gates) = matrix(2, "w_ru")?;
        expect("w_ru.dim_size(0)", both, input + cell, "input_size + cell_size")?;
        expect("w_ru.dim_size(1)", gates, cell * 2, "cell_size * 2")?;
        let (both, cols) = matrix(3, "w_c")?;
        expect("w_c.dim_size(0)", both, input + cell, "input_size + cell_size")?;
        expect("w_c.dim_size(1)", cols, cell, "cell_size")?;
        for (i, name, want) in [(4, "b_ru", cell * 2), (5, "b_c", cell)] {
            let t = ctx.input(i)?;
            ensure!(t.rank() == 1, InvalidArgument, "Rank of {name} must be 1, got {}", t.rank());
            expect(&format!("{name}.dim_size(0)"), t.elements(), want, "cell_size")?;
        }
        Ok(Sizes { batch, input, cell })
    }

    /// Concatenates the rows of `x` and `h`.
    fn joined(&self, x: &[f32], h: &[f32]) -> Vec<f32> {
        let mut out = Vec::with_capacity(self.batch * (self.input + self.cell));
        for b in 0..self.batch {
            out.extend(&x[b * self.input..][..self.input]);
            out.extend(&h[b * self.cell..][..self.cell]);
        }
        out
    }

    /// Rows times a matrix, plus a bias.
    fn layer(&self, rows: &[f32], w: &[f32], bias: &[f32]) -> Vec<f32> {
        let n = bias.len();
        let mut out = vec![0f32; self.batch * n];
        if self.batch > 0 && n > 0 {
            out.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(bias));
            let k = self.input + self.cell;
            let (a, b) = (Mat::new(rows, self.batch, k), Mat::new(w, k, n));
            f32::product(a, b, &mut out, n, true, ProductThreads::All);
        }
        out
    }

    /// Rows times the transpose of a matrix of `n` columns.
    fn back(&self, rows: &[f32], w: &[f32], n: usize) -> Vec<f32> {
        let k = self.input + self.cell;
        let mut out = vec![0f32; self.batch * k];
        if !out.is_empty() && n > 0 {
            let (a, b) = (Mat::new(rows, self.batch, n), Mat::new(w, k, n).transposed());
            product(a, b, &mut out, ProductThreads::All);
        }
        out
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn cell(ctx: &mut Ctx<'_>) -> Result<()> {
    let s = Sizes::new(ctx)?;
    let (x, h) = (ctx.input(0)?.as_slice::<f32>()?, ctx.input(1)?.as_slice::<f32>()?);
    let at = |i: usize| ctx.input(i)?.as_slice::<f32>();
    let gates = s.layer(&s.joined(x, h), at(2)?, at(4)?);
    let (mut r, mut u) = (Vec::with_capacity(h.len()), Vec::with_capacity(h.len()));
    for row in gates.chunks_exact((2 * s.cell).max(1)) {
        r.extend(row[..s.cell].iter().map(|&x| sigmoid(x)));
        u.extend(row[s.cell..].iter().map(|&x| sigmoid(x)));
    }
    let reset: Vec<f32> = h.iter().zip(&r).map(|(h, r)| h * r).collect();
    let mut c = s.layer(&s.joined(x, &reset), at(3)?, at(5)?);
    c.iter_mut().for_each(|x| *x = x.tanh());
    let out: Vec<f32> = (0..h.len()).map(|i| u[i] * h[i] + (1.0 - u[i]) * c[i]).collect();
    for (i, values) in [r, u, c, out].iter().enumerate() {
        ctx.set(i, Tensor::from_slice([s.batch, s.cell], values)?)?;
    }
    Ok(())
}

fn gradient(ctx: &mut Ctx<'_>) -> Result<()> {
    let s = Sizes::new(ctx)?;
    for (i, name) in [(6, "r"), (7, "u"), (8, "c"), (9, "d_h")] {
        let t = ctx.input(i)?;
        ensure!(
            t.shape().dims() == [s.batch, s.cell],
            InvalidArgument,
            "{name} must have shape [{},{}], got {}",
            s.batch,
            s.cell,
            t.shape()
        );
    }
    let at = |i: usize| ctx.input(i)?.as_slice::<f32>();
    let (h, r, u, c, dh) = (at(1)?, at(6)?, at(7)?, at(8)?, at(9)?);
    let n = h.len();
    let d_c: Vec<f32> = (0..n).map(|i| dh[i] * (1.0 - u[i]) * (1.0 - c[i] * c[i])).collect();
    let d_u: Vec<f32> = (0..n).map(|i| dh[i] * (h[i] - c[i]) * u[i] * (1.0 - u[i])).collect();
    // The gradient through the candidate: to the input, and to the part of the state that was let
    // through.
    let through = s.back(&d_c, at(3)?, s.cell);
    let width = s.input + s.cell;
    let kept = |i: usize| through[i / s.cell * width + s.input + i % s.cell];
    let d_r: Vec<f32> = (0..n).map(|i| kept(i) * h[i] * r[i] * (1.0 - r[i])).collect();
    let mut gates = Vec::with_capacity(2 * n);
    for b in 0..s.batch {
        gates.extend(&d_r[b * s.cell..][..s.cell]);
        gates.extend(&d_u[b * s.cell..][..s.cell]);
    }
    let back = s.back(&gates, at(2)?, 2 * s.cell);
    let mut d_x = Vec::with_capacity(s.batch * s.input);
    for b in 0..s.batch {
        d_x.extend((0..s.input).map(|i| back[b * width + i] + through[b * width + i]));
    }
    let d_h: Vec<f32> = (0..n)
        .map(|i| {
            let before = back[i / s.cell * width + s.input + i % s.cell];
            before + kept(i) * r[i] + dh[i] * u[i]
        })
        .collect();
    ctx.set(0, Tensor::from_slice([s.batch, s.input], &d_x)?)?;
    ctx.set(1, Tensor::from_slice([s.batch, s.cell], &d_h)?)?;
    ctx.set(2, Tensor::from_slice([s.batch, s.cell], &d_c)?)?;
    ctx.set(3, Tensor::from_slice([s.batch, 2 * s.cell], &gates)?)
}

/// The inputs of a cell: values, state, weights and biases.
const CELL: [&str; 6] = ["x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("GRUBlockCell")
        .doc("One step of a gated recurrent unit.")
        .inputs(&CELL)
        .output("r: T")
        .output("u: T")
        .output("c: T")
        .output("h: T")
        .attr("T: {float}")
        .expensive()
        .shape(|c| {
            let state = PartialShape::new([c.input(0).dim(0), c.input(1).dim(1)]);
            Ok(vec![state; 4])
        })
        .cpu_fn(cell);
    c.op("GRUBlockCellGrad")
        .doc("Gradient of GRUBlockCell.")
        .inputs(&CELL)
        .input("r: T")
        .input("u: T")
        .input("c: T")
        .input("d_h: T")
        .output("d_x: T")
        .output("d_h_prev: T")
        .output("d_c_bar: T")
        .output("d_r_bar_u_bar: T")
        .attr("T: {float}")
        .expensive()
        .shape(|c| {
            let (batch, cell) = (c.input(0).dim(0), c.input(1).dim(1));
            let state = PartialShape::new([batch, cell]);
            let gates = PartialShape::new([batch, cell.and_then(|n| n.checked_mul(2))]);
            Ok(vec![c.input(0), state.clone(), state, gates])
        })
        .cpu_fn(gradient);
}
