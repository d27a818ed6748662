//! Multinomial and StatelessMultinomial: classes drawn by their unnormalised log probabilities.

use super::per_parameter::parameters;
use super::stateless::stream_of_seed;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox, Singles};

/// Validates the inputs and draws. `stream` is called with the number of outputs that TensorFlow
/// reserves.
fn compute(
    ctx: &mut Ctx<'_>,
    dtype: DType,
    stream: impl FnOnce(&Ctx<'_>, usize) -> Result<Philox>,
) -> Result<()> {
    let (logits, samples) = (ctx.input(0)?, ctx.input(1)?);
    let &[batch, classes] = logits.shape().dims() else {
        bail!(InvalidArgument, "logits should be a matrix, got shape {}", logits.shape());
    };
    ensure!(
        samples.rank() == 0,
        InvalidArgument,
        "num_samples should be a scalar, got shape {}",
        samples.shape()
    );
    let samples = samples.scalar_value::<i32>()?;
    let Ok(samples) = usize::try_from(samples) else {
        bail!(InvalidArgument, "num_samples should be nonnegative, got {samples}");
    };
    ensure!(classes > 0, InvalidArgument, "num_classes should be positive, got {classes}");
    let mut out = ctx.alloc(dtype, [batch, samples])?;
    if out.elements() > 0 {
        let reserved = batch.wrapping_mul(samples.div_ceil(4) * 4 * 2);
        let mut words = Singles::new(stream(ctx, reserved)?);
        let logits = parameters(logits)?;
        let drawn = logits.chunks(classes).flat_map(|row| draw(row, samples, &mut words));
        match dtype {
            DType::Int32 => {
                out.as_mut_slice::<i32>()?.iter_mut().zip(drawn).for_each(|(o, x)| *o = x as i32)
            }
            _ => out.as_mut_slice::<i64>()?.iter_mut().zip(drawn).for_each(|(o, x)| *o = x as i64),
        }
    }
    ctx.set(0, out)
}

/// Draws `samples` classes of one distribution. A class whose logit is infinite or NaN is never
/// drawn.
fn draw(logits: &[f64], samples: usize, words: &mut Singles) -> Vec<usize> {
    let largest = logits.iter().copied().filter(|x| x.is_finite()).fold(f64::MIN, f64::max);
    let mut total = 0.0;
    let sums: Vec<f64> = logits
        .iter()
        .map(|x| {
            if x.is_finite() {
                total += (x - largest).exp();
            }
            total
        })
        .collect();
    (0..samples)
        .map(|_| {
            let at = words.next_f64() * total;
            sums.partition_point(|&sum| sum <= at)
        })
        .collect()
}

struct Multinomial {
    dtype: DType,
    stream: SharedPhilox,
}

impl Kernel for Multinomial {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        compute(ctx, self.dtype, |_, outputs| Ok(self.stream.reserve_outputs(outputs)))
    }
}

/// One row of samples per row of logits.
fn shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let samples = c.constant_ints(1).and_then(|s| usize::try_from(*s.first()?).ok());
    Ok(vec![PartialShape::new([c.input(0).dim(0), samples])])
}

fn check_dtype(init: &KernelInit<'_>) -> Result<DType> {
    let dtype = init.dtype("T")?;
    match dtype {
        DType::Half | DType::BFloat16 | DType::Float | DType::Double => init.dtype("output_dtype"),
        _ => Err(unsupported(init, "T", dtype)),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Multinomial")
        .work(work::any)
        .doc("Classes drawn by unnormalised log probabilities, `num_samples` for each row.")
        .input("logits: T")
        .input("num_samples: int32")
        .output("output: output_dtype")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("T: realnumbertype")
        .attr("output_dtype: {int32, int64} = DT_INT64")
        .stateful()
        .shape(shapes)
        .cpu(|init| {
            let (dtype, stream) = (check_dtype(init)?, SharedPhilox::from_attrs(init)?);
            Ok(KernelBox::new(Multinomial { dtype, stream }))
        });
    c.op("StatelessMultinomial")
        .work(work::any)
        .doc("Classes drawn by unnormalised log probabilities, from a seed.")
        .input("logits: T")
        .input("num_samples: int32")
        .input("seed: Tseed")
        .output("output: output_dtype")
        .attr("T: realnumbertype")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .attr("output_dtype: {int32, int64} = DT_INT64")
        .shape(shapes)
        .cpu(|init| {
            let dtype = check_dtype(init)?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                compute(ctx, dtype, |ctx, _| stream_of_seed(ctx.input(2)?))
            }))
        });
    c.no_gradient(&["Multinomial", "StatelessMultinomial"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn draw(logits: Tensor, samples: i32) -> crate::testing::Check<'static> {
        check("Multinomial")
            .attr("seed", 5i64)
            .attr("seed2", 6i64)
            .input(logits)
            .input(Tensor::scalar(samples))
    }

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        let logits = Tensor::from_slice([2, 3], &[0f32, 1., 2., 3., 0., 0.]).unwrap();
        let want = [2i64, 2, 2, 2, 2, 1, 2, 2, 0, 0, 0, 0, 0, 0, 2, 0];
        draw(logits, 8).gives(Tensor::from_slice([2, 8], &want).unwrap());
    }

    #[test]
    fn malformed_inputs_are_refused() {
        let bad = Code::InvalidArgument;
        draw(Tensor::vector(&[1f32]), 1).fails(bad, "logits should be a matrix, got shape [1]");
        let one = Tensor::from_slice([1, 1], &[1f32]).unwrap();
        draw(one, -1).fails(bad, "num_samples should be nonnegative, got -1");
        let none = Tensor::zeros(DType::Float, [2, 0]).unwrap();
        draw(none, 1).fails(bad, "num_classes should be positive, got 0");
    }
}
