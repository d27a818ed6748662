//! LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients.

use super::lstm::{FIRST, Order, SECOND, Seen, Sizes, Weights, back, back_through_weights, step};
use crate::prelude::*;

/// A tensor in single precision: the input itself, or a copy of one of a narrower type.
struct Floats(Tensor);

impl std::ops::Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0.as_slice().expect("made of a tensor of floats")
    }
}

fn wide<T: Float>(t: &Tensor) -> Result<Floats> {
    if T::DTYPE == DType::Float {
        t.as_slice::<f32>()?;
        return Ok(Floats(t.clone()));
    }
    let values: Vec<f32> = t.as_slice::<T>()?.iter().map(|x| x.to_f64() as f32).collect();
    Ok(Floats(Tensor::from_slice(t.shape().clone(), &values)?))
}

fn narrow<T: Float>(shape: impl Into<Shape>, values: &[f32]) -> Result<Tensor> {
    if T::DTYPE == DType::Float {
        return Tensor::from_slice(shape, values);
    }
    let mut t = Tensor::alloc(T::DTYPE, shape)?;
    ensure!(t.elements() == values.len(), Internal, "{} values for {}", values.len(), t.shape());
    let to = t.as_mut_slice::<T>()?.iter_mut();
    to.zip(values).for_each(|(to, x)| *to = T::from_f64(f64::from(*x)));
    Ok(t)
}

struct Lstm<T> {
    order: Order,
    peepholes: bool,
    forget_bias: f32,
    clip: f32,
    marker: std::marker::PhantomData<T>,
}

/// The inputs that all of these ops share, from the state before on.
struct Inputs {
    sizes: Sizes,
    times: usize,
    x: Floats,
    cs_prev: Floats,
    h_prev: Floats,
    w: Floats,
    peepholes: Option<[Floats; 3]>,
    bias: Floats,
}

impl Inputs {
    fn weights(&self) -> Weights<'_> {
        Weights { w: &self.w, bias: &self.bias, peepholes: self.peeks() }
    }

    fn peeks(&self) -> Option<[&[f32]; 3]> {
        self.peepholes.as_ref().map(|p| [&*p[0], &*p[1], &*p[2]])
    }
}

impl<T: Float> Lstm<T> {
    fn new(init: &KernelInit<'_>, order: Order) -> Result<Lstm<T>> {
        let float = |name: &str| if init.contains(name) { init.float(name) } else { Ok(0.0) };
        Ok(Lstm {
            order,
            peepholes: init.bool("use_peephole")?,
            forget_bias: float("forget_bias")?,
            clip: float("cell_clip")?,
            marker: std::marker::PhantomData,
        })
    }

    /// Inputs from `at` on; `rank` is that of `x`: 2 for a step, 3 for a sequence.
    fn inputs(&self, ctx: &Ctx<'_>, at: usize, rank: usize) -> Result<Inputs> {
        let x = ctx.input(at)?;
        ensure!(x.rank() == rank, InvalidArgument, "x must be {rank}D, got shape {}", x.shape());
        let times = if rank == 3 { x.shape()[0] } else { 1 };
        let (batch, input) = (x.shape()[rank - 2], x.shape()[rank - 1]);
        let state = ctx.input(at + 1)?;
        ensure!(
            state.rank() == 2,
            InvalidArgument,
            "cs_prev must be 2D, got shape {}",
            state.shape()
        );
        let cell = state.shape()[1];
        let check = |i: usize, name: &str, want: &[usize]| -> Result<Floats> {
            let t = ctx.input(at + i)?;
            ensure!(
                t.shape().dims() == want,
                InvalidArgument,
                "{name} must have shape {}, got {}",
                Shape::from(want),
                t.shape()
            );
            wide::<T>(t)
        };
        let peepholes = match self.peepholes {
            true => Some([
                check(4, "wci", &[cell])?,
                check(5, "wcf", &[cell])?,
                check(6, "wco", &[cell])?,
            ]),
            false => None,
        };
        Ok(Inputs {
            sizes: Sizes { batch, input, cell },
            times,
            x: wide::<T>(x)?,
            cs_prev: check(1, "cs_prev", &[batch, cell])?,
            h_prev: check(2, "h_prev", &[batch, cell])?,
            w: check(3, "w", &[input + cell, 4 * cell])?,
            peepholes,
            bias: check(7, "b", &[4 * cell])?,
        })
    }
}

/// The number of times of a sequence that are used.
fn length(ctx: &Ctx<'_>, times: usize) -> Result<usize> {
    let t = ctx.input(0)?;
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "`seq_len_max` must be rank 0 but is rank {}",
        t.rank()
    );
    let n = t.scalar_index()?;
    ensure!(
        (0..=times as i64).contains(&n),
        InvalidArgument,
        "seq_len_max must be between 0 and {times}, got {n}"
    );
    Ok(n as usize)
}

struct Cell<T>(Lstm<T>);

impl<T: Float> Kernel for Cell<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let lstm = &self.0;
        let v = lstm.inputs(ctx, 0, 2)?;
        let from = (&*v.x, &*v.cs_prev, &*v.h_prev);
        let a = step(v.sizes, lstm.order, &v.weights(), from, (lstm.forget_bias, lstm.clip));
        let shape = Shape::from([v.sizes.batch, v.sizes.cell]);
        for (i, values) in [&a.i, &a.cs, &a.f, &a.o, &a.ci, &a.co, &a.h].into_iter().enumerate() {
            ctx.set(i, narrow::<T>(shape.clone(), values)?)?;
        }
        Ok(())
    }
}

/// Activations and gradients that a gradient op is given, from input `at` on.
fn given<T: Float>(ctx: &Ctx<'_>, at: usize, names: &[&str], shape: &Shape) -> Result<Vec<Floats>> {
    let read = |(i, name): (usize, &&str)| {
        let t = ctx.input(at + i)?;
        ensure!(
            t.shape() == shape,
            InvalidArgument,
            "{name} must have shape {shape}, got {}",
            t.shape()
        );
        wide::<T>(t)
    };
    names.iter().enumerate().map(read).collect()
}

struct CellGrad<T>(Lstm<T>);

impl<T: Float> Kernel for CellGrad<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let v = self.0.inputs(ctx, 0, 2)?;
        let s = v.sizes;
        let shape = Shape::from([s.batch, s.cell]);
        let names = ["i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"];
        let Ok([i, cs, f, o, ci, co, cs_grad, h_grad]) =
            <[Floats; 8]>::try_from(given::<T>(ctx, 8, &names, &shape)?)
        else {
            bail!(Internal, "eight inputs were read");
        };
        let a = Seen { i: &i, cs: &cs, f: &f, o: &o, ci: &ci, co: &co };
        let b = back(s, self.0.order, v.peeks(), a, &v.cs_prev, (&cs_grad, &h_grad));
        ctx.set(0, narrow::<T>(shape, &b.cs_prev)?)?;
        ctx.set(1, narrow::<T>([s.batch, 4 * s.cell], &b.gates)?)?;
        for (k, sums) in b.peepholes.iter().enumerate() {
            ctx.set(2 + k, narrow::<T>([s.cell], sums)?)?;
        }
        Ok(())
    }
}

struct Sequence<T>(Lstm<T>);

impl<T: Float> Kernel for Sequence<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let lstm = &self.0;
        let v = lstm.inputs(ctx, 1, 3)?;
        let (s, n) = (v.sizes, length(ctx, v.times)?);
        let state = s.state();
        let shape = Shape::from([v.times, s.batch, s.cell]);
        // Values beyond the length are zero.
        let mut all = vec![vec![0f32; v.times * state]; 7];
        let (mut cs, mut h) = (v.cs_prev.to_vec(), v.h_prev.to_vec());
        for t in 0..n {
            let x = &v.x[t * s.batch * s.input..][..s.batch * s.input];
            let rules = (lstm.forget_bias, lstm.clip);
            let a = step(s, lstm.order, &v.weights(), (x, &cs, &h), rules);
            let parts = [&a.i, &a.cs, &a.f, &a.o, &a.ci, &a.co, &a.h];
            for (all, part) in all.iter_mut().zip(parts) {
                all[t * state..][..part.len()].copy_from_slice(part);
            }
            (cs, h) = (a.cs, a.h);
        }
        for (i, values) in all.iter().enumerate() {
            ctx.set(i, narrow::<T>(shape.clone(), values)?)?;
        }
        Ok(())
    }
}

struct SequenceGrad<T>(Lstm<T>);

impl<T: Float> Kernel for SequenceGrad<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let v = self.0.inputs(ctx, 1, 3)?;
        let (s, n) = (v.sizes, length(ctx, v.times)?);
        let state = s.state();
        let shape = Shape::from([v.times, s.batch, s.cell]);
        let names = ["i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"];
        let g = given::<T>(ctx, 9, &names, &shape)?;
        let part = |k: usize, t: usize| &g[k][t * state..][..state];
        let mut dx = vec![0f32; v.x.len()];
        let (mut dw, mut db) = (vec![0f32; v.w.len()], vec![0f32; v.bias.len()]);
        let mut peeks = [vec![0f32; s.cell], vec![0f32; s.cell], vec![0f32; s.cell]];
        let (mut dcs, mut dh) = (vec![0f32; state], vec![0f32; state]);
        for t in (0..n).rev() {
            let a = Seen {
                i: part(0, t),
                cs: part(1, t),
                f: part(2, t),
                o: part(3, t),
                ci: part(4, t),
                co: part(5, t),
            };
            let (cs_prev, h_prev) = match t {
                0 => (&*v.cs_prev, &*v.h_prev),
                _ => (part(1, t - 1), part(6, t - 1)),
            };
            dcs.iter_mut().zip(part(7, t)).for_each(|(to, x)| *to += x);
            dh.iter_mut().zip(part(8, t)).for_each(|(to, x)| *to += x);
            let b = back(s, self.0.order, v.peeks(), a, cs_prev, (&dcs, &dh));
            let width = s.batch * s.input;
            let x = &v.x[t * width..][..width];
            let (dx_t, dh_t) = back_through_weights(s, &v.w, &b.gates, (x, h_prev), &mut dw);
            dx[t * width..][..width].copy_from_slice(&dx_t);
            for row in b.gates.chunks_exact(db.len().max(1)) {
                db.iter_mut().zip(row).for_each(|(to, x)| *to += x);
            }
            for (to, from) in peeks.iter_mut().zip(&b.peepholes) {
                to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
            }
            (dcs, dh) = (b.cs_prev, dh_t);
        }
        ctx.set(0, narrow::<T>([v.times, s.batch, s.input], &dx)?)?;
        ctx.set(1, narrow::<T>([s.batch, s.cell], &dcs)?)?;
        ctx.set(2, narrow::<T>([s.batch, s.cell], &dh)?)?;
        ctx.set(3, narrow::<T>([s.input + s.cell, 4 * s.cell], &dw)?)?;
        for (k, sums) in peeks.iter().enumerate() {
            ctx.set(4 + k, narrow::<T>([s.cell], sums)?)?;
        }
        ctx.set(7, narrow::<T>([4 * s.cell], &db)?)
    }
}

const STATE: [&str; 8] =
    ["x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"];
const ACTIVATIONS: [&str; 7] = ["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"];

pub(crate) fn register(c: &mut Catalog) {
    let mut op = c.op("LSTMBlockCell").doc("One step of a long short-term memory.");
    for input in STATE {
        op = op.input(input);
    }
    for output in ACTIVATIONS {
        op = op.output(output);
    }
    op.attr("forget_bias: float = 1.0")
        .attr("cell_clip: float = 3.0")
        .attr("use_peephole: bool = false")
        .attr("T: {half, float}")
        .expensive()
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0), c.input(1).dim(1)]); c.outputs]))
        .cpu(per_dtype!([Half f16, Float f32], init, T => Cell(Lstm::<T>::new(init, FIRST)?)));
    let mut op = c.op("LSTMBlockCellGrad").doc("Gradient of LSTMBlockCell.");
    for input in STATE.iter().chain(&ACTIVATIONS[..6]).chain(&["cs_grad: T", "h_grad: T"]) {
        op = op.input(input);
    }
    op.output("cs_prev_grad: T")
        .output("dicfo: T")
        .output("wci_grad: T")
        .output("wcf_grad: T")
        .output("wco_grad: T")
        .attr("use_peephole: bool")
        .attr("T: {half, float}")
        .expensive()
        .shape(|c| {
            let (batch, cell) = (c.input(0).dim(0), c.input(1).dim(1));
            let gates = PartialShape::new([batch, cell.and_then(|n| n.checked_mul(4))]);
            let peephole = PartialShape::new([cell]);
            let mut shapes = vec![PartialShape::new([batch, cell]), gates];
            shapes.extend([peephole.clone(), peephole.clone(), peephole]);
            Ok(shapes)
        })
        .cpu(per_dtype!([Half f16, Float f32], init, T => CellGrad(Lstm::<T>::new(init, FIRST)?)));
    for (name, order) in [("BlockLSTM", FIRST), ("BlockLSTMV2", SECOND)] {
        let first = name == "BlockLSTM";
        let mut op = c.op(name).doc("A long short-term memory over a sequence.");
        op = op.input("seq_len_max: int64");
        for input in STATE {
            op = op.input(input);
        }
        for output in ACTIVATIONS {
            op = op.output(output);
        }
        op = match first {
            true => op.attr("forget_bias: float = 1.0").attr("cell_clip: float = 3.0"),
            false => op.attr("cell_clip: float = 0.0"),
        };
        op.attr("use_peephole: bool = false")
            .attr("T: {half, float}")
            .expensive()
            .shape(|c| {
                let x = c.input(1).merge(&PartialShape::of_rank(3))?;
                let shape = PartialShape::new([x.dim(0), x.dim(1), c.input(2).dim(1)]);
                Ok(vec![shape; c.outputs])
            })
            .cpu(move |init| {
                per_dtype!([Half f16, Float f32], init, T => {
                    Sequence(Lstm::<T>::new(init, order)?)
                })(init)
            });
        let grad = if first { "BlockLSTMGrad" } else { "BlockLSTMGradV2" };
        let mut op = c.op(grad).doc("Gradient of a long short-term memory over a sequence.");
        op = op.input("seq_len_max: int64");
        for input in STATE.iter().chain(&ACTIVATIONS).chain(&["cs_grad: T", "h_grad: T"]) {
            op = op.input(input);
        }
        for output in ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"] {
            op = op.output(&format!("{output}_grad: T"));
        }
        op.attr("use_peephole: bool")
            .attr("T: {half, float}")
            .expensive()
            .shape(|c| Ok((1..9).map(|i| c.input(i)).collect()))
            .cpu(move |init| {
                per_dtype!([Half f16, Float f32], init, T => {
                    SequenceGrad(Lstm::<T>::new(init, order)?)
                })(init)
            });
    }
    for (op, backward) in [("BlockLSTM", "BlockLSTMGrad"), ("BlockLSTMV2", "BlockLSTMGradV2")] {
        c.gradient(op, move |g, dy| {
            let mut inputs = g.inputs();
            inputs.extend((0..g.num_outputs()).map(|i| g.output(i)));
            // Only the cell states and `h`, the last output, are used by other ops.
            inputs.extend([dy[1], dy[6]]);
            let mut gradients = vec![g.none()];
            gradients.extend(g.calls_like(backward, &inputs));
            Ok(gradients)
        });
    }
}
