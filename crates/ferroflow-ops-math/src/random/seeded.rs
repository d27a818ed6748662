//! RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt: streams from the `seed`
//! attributes that continue from step to step.

use super::distribution::{FLOATS_ON_GPU, Shaped, alloc, can_fill, fill, fill_range, prepare};
use super::{bounds, wanted_shape};
use crate::prelude::*;
use ferroflow_op_kit::philox::SharedPhilox;

struct Seeded {
    which: Shaped,
    dtype: DType,
    stream: SharedPhilox,
}

impl Kernel for Seeded {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut out = alloc(ctx, self.dtype, wanted_shape(ctx.input(0)?)?)?;
        fill(self.which, self.stream.reserve_outputs(out.elements()), &mut out)?;
        ctx.set(0, out)
    }
}

fn make(which: Shaped) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let dtype = init.dtype("dtype")?;
        if !can_fill(which, dtype) {
            return Err(unsupported(init, "dtype", dtype));
        }
        prepare(init, which, dtype)?;
        Ok(KernelBox::new(Seeded { which, dtype, stream: SharedPhilox::from_attrs(init)? }))
    }
}

struct RandomUniformInt {
    dtype: DType,
    stream: SharedPhilox,
}

impl Kernel for RandomUniformInt {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let shape = wanted_shape(ctx.input(0)?)?;
        let mut out = alloc(ctx, self.dtype, shape)?;
        if out.elements() > 0 {
            let (low, high) = bounds(ctx, 1, 2)?;
            fill_range(self.stream.reserve_outputs(out.elements()), low, high, &mut out)?;
        }
        ctx.set(0, out)
    }
}

fn uniform_int(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, stream) = (init.dtype("Tout")?, SharedPhilox::from_attrs(init)?);
    Ok(KernelBox::new(RandomUniformInt { dtype, stream }))
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, which, doc) in [
        ("RandomUniform", Shaped::Uniform, "Values uniform in [0, 1)."),
        ("RandomStandardNormal", Shaped::Normal, "Values of the standard normal distribution."),
        (
            "TruncatedNormal",
            Shaped::Truncated,
            "Standard normal values, redrawn where they lie beyond two deviations.",
        ),
    ] {
        c.op(op)
            .work(work::of_shape::<0>)
            .doc(doc)
            .input("shape: T")
            .output("output: dtype")
            .attr("seed: int = 0")
            .attr("seed2: int = 0")
            .attr("dtype: {half, bfloat16, float, double}")
            .attr("T: {int32, int64}")
            .stateful()
            .shape(shape::from_input_0)
            .gpu(FLOATS_ON_GPU, make(which))
            .host_inputs(&["shape"])
            .cpu(make(which));
    }
    c.op("RandomUniformInt")
        .work(work::of_shape::<0>)
        .doc("Integers uniform in [minval, maxval).")
        .input("shape: T")
        .input("minval: Tout")
        .input("maxval: Tout")
        .output("output: Tout")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("Tout: {int32, int64}")
        .attr("T: {int32, int64}")
        .stateful()
        .shape(shape::from_input_0)
        .gpu(&[("Tout", &[DType::Int64])], uniform_int)
        .host_inputs(&["shape", "minval", "maxval"])
        .cpu(uniform_int);
    c.no_gradient(&["RandomStandardNormal", "RandomUniform", "TruncatedNormal"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn seeded(op: &str) -> Check<'static> {
        check(op).attr("seed", 87654321i64).attr("seed2", 1i64)
    }

    fn exactly<T: Element>(check: Check<'_>, want: &[T]) {
        assert_eq!(check.run().unwrap()[0], Tensor::vector(want));
    }

    fn of(op: &str, n: i32, dtype: DType) -> Check<'static> {
        seeded(op).input(Tensor::vector(&[n])).attr("dtype", dtype)
    }

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        exactly(
            of("RandomUniform", 6, DType::Float),
            &[0.2390374f32, 0.92039955, 0.050512433, 0.49574447, 0.8355223, 0.026470423],
        );
        exactly(
            of("RandomUniform", 3, DType::Double),
            &[0.9122999234504989, 0.4040997484619626, 0.6841790844248057],
        );
        exactly(
            of("RandomUniform", 3, DType::Half),
            &[0.19433594f32, 0.91308594, 0.79785156].map(f16::from_f32),
        );
        exactly(
            of("RandomStandardNormal", 6, DType::Float),
            &[-0.8113182f32, 1.4845988, 0.06532937, -2.4427042, 0.0992484, 0.5912243],
        );
        exactly(
            of("RandomStandardNormal", 3, DType::Double),
            &[0.24282754598505307, -0.35299821810996557, -0.8365077914900015],
        );
        exactly(
            of("TruncatedNormal", 6, DType::Float),
            &[-0.8113182f32, 1.4845988, 0.06532937, 0.0992484, 0.6396971, 1.6108712],
        );
    }

    #[test]
    fn integers_lie_between_their_bounds() {
        let draw = |n: i32, low: Tensor, high: Tensor| {
            seeded("RandomUniformInt").input(Tensor::vector(&[n])).input(low).input(high)
        };
        let (low, high) = (Tensor::scalar(-5i32), Tensor::scalar(100i32));
        exactly(draw(6, low, high), &[67i32, 54, 28, 47, 62, 9]);
        let (low, high) = (Tensor::scalar(-5i64), Tensor::scalar(1_000_000_000_000i64));
        exactly(draw(3, low, high), &[466032529806i64, 227674122710, 925885512346]);
        draw(1, Tensor::scalar(5i32), Tensor::scalar(1i32))
            .fails(Code::InvalidArgument, "Need minval < maxval, got 5 >= 1");
        exactly::<i32>(draw(0, Tensor::scalar(5i32), Tensor::scalar(1i32)), &[]);
    }

    #[test]
    fn without_a_seed_values_differ() {
        let draw = || {
            let c = check("RandomUniform").attr("dtype", DType::Double);
            c.input(Tensor::vector(&[8i32])).run().unwrap().remove(0)
        };
        assert_ne!(draw(), draw());
    }

    #[test]
    fn a_shape_is_a_vector() {
        let c = || check("RandomUniform").attr("dtype", DType::Float);
        c().input(Tensor::scalar(3i32))
            .fails(Code::InvalidArgument, "shape must be a vector of {int32,int64}, got shape []");
        c().input(Tensor::vector(&[-1i32])).fails(Code::InvalidArgument, "must be >= 0");
        c().input(Tensor::vector(&[i64::MAX, 4])).fails(Code::InvalidArgument, "");
    }
}
