//! ClipByValue.

use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::parallel::split_mut;

/// `max(min(t, high), low)`: if the bounds are reversed, the lower one wins. NaN is kept.
fn bound<T: PartialOrd>(x: T, low: T, high: T) -> T {
    let below = if x > high { high } else { x };
    if below < low { low } else { below }
}

/// The parts of complex numbers are kept between those of the bounds.
macro_rules! bound_parts {
    ($z:ty) => {
        |x: $z, low: $z, high: $z| {
            <$z>::new(bound(x.re, low.re, high.re), bound(x.im, low.im, high.im))
        }
    };
}

fn clip<T: Element>(ctx: &mut Ctx<'_>, bound: impl Fn(T, T, T) -> T + Sync) -> Result<()> {
    let shape = ctx.input(0)?.shape().clone();
    let (low, high) = (ctx.input(1)?, ctx.input(2)?);
    let fits = |t: &Tensor| t.rank() == 0 || *t.shape() == shape;
    ensure!(
        fits(low) && fits(high),
        InvalidArgument,
        "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. \
         input shape: {shape}clip_value_min shape: {}clip_value_max shape: {}",
        low.shape(),
        high.shape()
    );
    let mut y = ctx.take_or_copy(0)?;
    let (low, high) = (ctx.input(1)?.as_slice::<T>()?, ctx.input(2)?.as_slice::<T>()?);
    split_mut(y.as_mut_slice::<T>()?, 1, 1, |first, part| match (low, high) {
        ([low], [high]) => part.iter_mut().for_each(|x| *x = bound(*x, *low, *high)),
        _ => {
            let at = |bounds: &[T], i: usize| if bounds.len() == 1 { bounds[0] } else { bounds[i] };
            for (i, x) in part.iter_mut().enumerate() {
                *x = bound(*x, at(low, first + i), at(high, first + i));
            }
        }
    });
    ctx.set(0, y)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    match init.dtype("T")? {
        DType::Complex64 => {
            Ok(KernelBox::new(|ctx: &mut Ctx<'_>| clip(ctx, bound_parts!(Complex32))))
        }
        DType::Complex128 => {
            Ok(KernelBox::new(|ctx: &mut Ctx<'_>| clip(ctx, bound_parts!(Complex64))))
        }
        _ => per_dtype!(REAL, T => |ctx: &mut Ctx<'_>| clip::<T>(ctx, bound))(init),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ClipByValue")
        .doc("Its input, kept between two bounds.")
        .input("t: T")
        .input("clip_value_min: T")
        .input("clip_value_max: T")
        .output("output: T")
        .attr("T: numbertype")
        .shape(shape::same_as_input)
        .gpu_elementwise(gpu::REAL, "smaller(x, z) < y ? y : smaller(x, z)")
        .cpu(make);
    c.gradient("ClipByValue", |g, dy| {
        let (x, low, high) = (g.input(0), g.input(1), g.input(2));
        let (below, above) = (x.with("Less", low), x.with("Greater", high));
        let zero = dy[0].number(0.0);
        let dx = g.select(below.with("LogicalOr", above), zero, dy[0]);
        let d_low = g.select(below, dy[0], zero);
        let d_high = g.select(above, dy[0], zero);
        Ok(vec![
            g.unbroadcast_one(dx, x, g.output(0)),
            g.unbroadcast_one(d_low, low, g.output(0)),
            g.unbroadcast_one(d_high, high, g.output(0)),
        ])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn on(low: Tensor, high: Tensor) -> Check<'static> {
        let x = Tensor::vector(&[1.0f32, 5.0, f32::NAN, -3.0]);
        check("ClipByValue").input(x).input(low).input(high)
    }

    #[test]
    fn values_are_kept_within_bounds() {
        let want = Tensor::vector(&[1.0f32, 2.0, f32::NAN, 0.0]);
        on(Tensor::scalar(0.0f32), Tensor::scalar(2.0f32)).gives(want.clone());
        on(Tensor::vector(&[0.0f32; 4]), Tensor::scalar(2.0f32)).gives(want);
        on(Tensor::scalar(3.0f32), Tensor::scalar(2.0f32)).gives(Tensor::vector(&[
            3.0f32,
            3.0,
            f32::NAN,
            3.0,
        ]));
    }

    #[test]
    fn both_parts_of_complex_numbers_are_kept_within_those_of_the_bounds() {
        let z = |re: f32, im: f32| Complex32::new(re, im);
        let x = Tensor::vector(&[z(1.0, 5.0), z(-3.0, 2.0), z(9.0, -1.0)]);
        check("ClipByValue")
            .input(x)
            .input(Tensor::scalar(z(0.0, 1.0)))
            .input(Tensor::scalar(z(4.0, 7.0)))
            .gives(Tensor::vector(&[z(1.0, 5.0), z(0.0, 2.0), z(4.0, 1.0)]));
    }

    #[test]
    fn bounds_are_scalars_or_of_the_input_s_shape() {
        on(Tensor::vector(&[0.0f32]), Tensor::scalar(2.0f32)).fails(
            Code::InvalidArgument,
            "must be either of the same shape as input, or a scalar. input shape: [4]clip_value_min shape: [1]",
        );
    }
}
