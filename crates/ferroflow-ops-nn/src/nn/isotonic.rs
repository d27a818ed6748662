//! IsotonicRegression: the nearest non-increasing sequences.

use crate::prelude::*;

/// A run of equal values.
struct Run {
    start: usize,
    sum: f64,
    len: usize,
}

impl Run {
    fn mean(&self) -> f64 {
        self.sum / self.len as f64
    }
}

/// The runs of the nearest non-increasing sequence, by pooling neighbours that increase.
fn runs(row: impl Iterator<Item = f64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (start, x) in row.enumerate() {
        let mut run = Run { start, sum: x, len: 1 };
        while let Some(last) = runs.pop_if(|last| last.mean() < run.mean()) {
            run = Run { start: last.start, sum: last.sum + run.sum, len: last.len + run.len };
        }
        runs.push(run);
    }
    runs
}

fn regression<T: Real>(dtype: DType) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let Some(&width) = x.shape().last() else {
            bail!(InvalidArgument, "Input must be at least 1-dimensional, got shape []");
        };
        let mut values = vec![0f64; x.elements()];
        let mut segments = Tensor::zeros(DType::Int32, x.shape().clone())?;
        let ids = segments.as_mut_slice::<i32>()?;
        if width > 0 {
            let rows = x.as_slice::<T>()?.chunks_exact(width);
            let outs = values.chunks_exact_mut(width).zip(ids.chunks_exact_mut(width));
            for (row, (values, ids)) in rows.zip(outs) {
                for (id, run) in runs(row.iter().map(|x| x.to_f64())).iter().enumerate() {
                    values[run.start..][..run.len].fill(run.mean());
                    ids[run.start..][..run.len].fill(id as i32);
                }
            }
        }
        let mut out = ctx.alloc(dtype, x.shape().clone())?;
        match dtype {
            DType::Double => out.as_mut_slice::<f64>()?.copy_from_slice(&values),
            DType::Float => {
                let to = out.as_mut_slice::<f32>()?.iter_mut();
                to.zip(&values).for_each(|(to, x)| *to = *x as f32);
            }
            DType::Half => {
                let to = out.as_mut_slice::<f16>()?.iter_mut();
                to.zip(&values).for_each(|(to, x)| *to = f16::from_f64(*x));
            }
            _ => {
                let to = out.as_mut_slice::<bf16>()?.iter_mut();
                to.zip(&values).for_each(|(to, x)| *to = bf16::from_f64(*x));
            }
        }
        ctx.set(0, out)?;
        ctx.set(1, segments)
    }
}

/// Each run has the mean of its inputs, so its gradient is the mean too. Runs of all rows are
/// numbered by their earliest start.
fn regression_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>) -> Term<'g> {
    let (runs, flat) = (g.output(1), g.ints(&[-1]));
    let last = runs.shape().size() - 1.0;
    let width = g.call("GatherV2", &[runs.shape(), last, g.int(0)]);
    let places = g.range(runs.size());
    let row = places - g.call("FloorMod", &[places, width]);
    let runs = runs.reshape(flat) + row;
    let dy = dy.reshape(flat);
    let total = |x: Term<'g>| g.call("UnsortedSegmentSum", &[x, runs, runs.size()]);
    let of_each = |x: Term<'g>| g.call("GatherV2", &[x, runs, g.int(0)]);
    let mean = of_each(total(dy)) / of_each(total(dy.ones_like()));
    mean.reshape_like(g.input(0)).cast(g.input(0).dtype())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("IsotonicRegression")
        .work(work::any)
        .doc("The sequences nearest to those given that never rise, and their runs.")
        .input("input: T")
        .output("output: output_dtype")
        .output("segments: int32")
        .attr("T: realnumbertype")
        .attr("output_dtype: {half, bfloat16, float, double} = DT_FLOAT")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8, Int16 i16, Int32 i32,
             Int64 i64],
            init,
            T => regression::<T>(init.dtype("output_dtype")?)
        ));
    c.gradient("IsotonicRegression", |g, dy| Ok(vec![regression_gradient(g, dy[0])]));
}
