//! Random values whose distribution has its own parameters for each element: the layout and the
//! streams that the gamma, Poisson and binomial ops share.

use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::philox::Philox;
use parking_lot::Mutex;

/// Uniform doubles from a stream, two to a call and the later one first.
pub(super) struct Doubles {
    pub stream: Philox,
    held: Option<f64>,
}

impl Doubles {
    pub fn new(stream: Philox) -> Doubles {
        Doubles { stream, held: None }
    }

    pub fn next(&mut self) -> f64 {
        self.next_from(|w| {
            [
                ferroflow_op_kit::philox::unit_f64(w[0], w[1]),
                ferroflow_op_kit::philox::unit_f64(w[2], w[3]),
            ]
        })
    }

    fn next_from(&mut self, make: impl Fn([u32; 4]) -> [f64; 2]) -> f64 {
        self.held.take().unwrap_or_else(|| {
            let [first, second] = make(self.stream.draw());
            self.held = Some(first);
            second
        })
    }
}

/// Fills `out` with `draw(parameter, output)`; its last dimensions are those of the parameters. All
/// samples of the first parameter are numbered before those of the second.
pub(super) fn fill_per_parameter(
    out: &mut Tensor,
    parameters: usize,
    cost: usize,
    draw: impl Fn(usize, u64) -> f64 + Sync,
) -> Result<()> {
    let n = out.elements();
    if n == 0 || parameters == 0 {
        return Ok(());
    }
    let samples = n / parameters;
    let mut values = vec![0.0f64; n];
    const BLOCK: usize = 512;
    let blocks: Vec<Mutex<&mut [f64]>> = values.chunks_mut(BLOCK).map(Mutex::new).collect();
    ComputePool::parallel_for(blocks.len(), BLOCK.min(n) * cost, |range| {
        for b in range {
            for (i, to) in blocks[b].lock().iter_mut().enumerate() {
                let at = b * BLOCK + i;
                let (sample, parameter) = (at / parameters, at % parameters);
                *to = draw(parameter, (parameter * samples + sample) as u64);
            }
        }
    });
    drop(blocks);
    store(out, &values)
}

/// Writes doubles in the dtype of `out`.
fn store(out: &mut Tensor, values: &[f64]) -> Result<()> {
    fn each<T: Element>(out: &mut Tensor, values: &[f64], f: impl Fn(f64) -> T) -> Result<()> {
        for (to, &x) in out.as_mut_slice::<T>()?.iter_mut().zip(values) {
            *to = f(x);
        }
        Ok(())
    }
    match out.dtype() {
        DType::Half => each(out, values, |x| f16::from_f32(x as f32)),
        DType::BFloat16 => each(out, values, |x| bf16::from_f32(x as f32)),
        DType::Float => each(out, values, |x| x as f32),
        DType::Double => each(out, values, |x| x),
        DType::Int32 => each(out, values, |x| x as i32),
        DType::Int64 => each(out, values, |x| x as i64),
        other => bail!(Unimplemented, "no CPU kernel draws values of {other}"),
    }
}

/// A parameter tensor as doubles.
pub(super) fn parameters(t: &Tensor) -> Result<Vec<f64>> {
    fn each<T: ferroflow_core::RealElement>(t: &Tensor) -> Result<Vec<f64>> {
        Ok(t.as_slice::<T>()?.iter().map(|x| x.to_f64()).collect())
    }
    match t.dtype() {
        DType::Half => each::<f16>(t),
        DType::BFloat16 => each::<bf16>(t),
        DType::Float => each::<f32>(t),
        DType::Double => each::<f64>(t),
        DType::Int32 => each::<i32>(t),
        DType::Int64 => each::<i64>(t),
        other => bail!(Unimplemented, "no CPU kernel takes parameters of {other}"),
    }
}

/// The shape in `shape` with the dimensions of `parameters` appended.
pub(super) fn appended(shape: Shape, parameters: &Shape) -> Result<Shape> {
    let dims: Vec<i64> = shape.to_i64s().into_iter().chain(parameters.to_i64s()).collect();
    Shape::from_dims(&dims)
}

/// For shape functions: what input 0 holds, followed by the shape of input 1.
pub(super) fn appended_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (samples, parameters) = (c.shape_from(0), c.input(1));
    Ok(vec![match (samples.dims(), parameters.dims()) {
        (Some(a), Some(b)) => PartialShape::new(a.iter().chain(b).copied()),
        _ => PartialShape::unknown(),
    }])
}

/// Whether `shape` ends with the dimensions of the parameters.
pub(super) fn ensure_ends_with(shape: &Shape, parameters: &Shape) -> Result<()> {
    ensure!(
        shape.ends_with(parameters),
        InvalidArgument,
        "Shape passed in must end with broadcasted shape."
    );
    Ok(())
}
