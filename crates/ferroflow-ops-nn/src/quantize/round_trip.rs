//! QuantizeAndDequantize in its four versions and the gradient of the last: floats rounded to the
//! values of a number of bits, with zero kept.

use crate::prelude::*;

struct RoundTrip<T> {
    signed: bool,
    bits: Option<i64>,
    range_given: bool,
    /// The range, when attributes give it.
    range: Option<(f32, f32)>,
    half_to_even: bool,
    narrow_range: bool,
    axis: i64,
    marker: std::marker::PhantomData<T>,
}

/// The grid that values are rounded to.
#[derive(Clone, Copy)]
struct Grid<T> {
    min: T,
    max: T,
    scale: T,
    inverse: T,
}

fn check_bits(bits: i64, signed: bool) -> Result<()> {
    ensure!(
        bits > 0 && bits < if signed { 62 } else { 63 },
        InvalidArgument,
        "num_bits is out of range: {bits} with signed_input_ {}",
        u8::from(signed)
    );
    Ok(())
}

impl<T: Float<Wide = T>> RoundTrip<T> {
    fn new(init: &KernelInit<'_>, version: u8) -> Result<RoundTrip<T>> {
        let signed = init.bool("signed_input")?;
        let bits = if version == 3 { None } else { Some(init.int("num_bits")?) };
        if let Some(bits) = bits {
            check_bits(bits, signed)?;
        }
        let range_given = init.bool("range_given")?;
        let range = match version {
            1 => Some((init.float("input_min")?, init.float("input_max")?)),
            _ => None,
        };
        if let (Some((min, max)), true) = (range, range_given) {
            check_range(f64::from(min), f64::from(max))?;
        }
        let half_to_even = match version {
            2 | 4 => init.string("round_mode")? == "HALF_TO_EVEN",
            _ => true,
        };
        let narrow_range = version > 1 && init.bool("narrow_range")?;
        let axis = if version > 1 { init.int("axis")? } else { -1 };
        let marker = std::marker::PhantomData;
        Ok(RoundTrip { signed, bits, range_given, range, half_to_even, narrow_range, axis, marker })
    }

    fn grid(&self, min: T, max: T, bits: i64) -> Grid<T> {
        let (low, high) = match self.signed {
            true => {
                let half = 1i64 << (bits - 1);
                (-half + i64::from(self.narrow_range), half - 1)
            }
            false => (0, ((1u64 << bits) - 1) as i64),
        };
        let (low, high) = (T::from_f64(low as f64), T::from_f64(high as f64));
        let largest = if T::DTYPE == DType::Float { f64::from(f32::MAX) } else { f64::MAX };
        let side = |level: T, x: T| match level.mul(x) > T::ZERO {
            true => level.div(x),
            false => T::from_f64(largest),
        };
        let (below, above) = (side(low, min), side(high, max));
        // The side that needs the coarser grid determines it; the other end is moved.
        if below < above {
            let inverse = min.div(low);
            Grid { min, max: high.mul(inverse), scale: below, inverse }
        } else {
            let inverse = max.div(high);
            Grid { min: low.mul(inverse), max, scale: above, inverse }
        }
    }

    fn round(&self, grid: &Grid<T>, x: T) -> T {
        let mut x = x;
        if self.range_given {
            x = if x > grid.max { grid.max } else { x };
            x = if x < grid.min { grid.min } else { x };
        }
        let scaled = x.mul(grid.scale).to_f64();
        let level = if self.half_to_even {
            scaled.round_ties_even()
        } else {
            T::from_f64(scaled).add(T::from_f64(0.5)).to_f64().floor()
        };
        T::from_f64(level).mul(grid.inverse)
    }
}

fn check_range(min: f64, max: f64) -> Result<()> {
    ensure!(min <= max, InvalidArgument, "Invalid range: input_min {min} > input_max {max}");
    Ok(())
}

/// A tensor as outer, channels and inner elements; one channel without an axis.
fn sliced(shape: &Shape, axis: i64) -> Result<(usize, usize)> {
    ensure!(axis >= -1, InvalidArgument, "Axis must be at least -1. Found {axis}");
    ensure!(
        axis == -1 || axis < shape.rank() as i64,
        InvalidArgument,
        "Axis should be -1 or 0 or a positive value less than {} but given axis value was {axis}",
        shape.rank()
    );
    match usize::try_from(axis) {
        Ok(axis) => Ok((shape[axis], shape[axis + 1..].iter().product())),
        Err(_) => Ok((1, shape.elements().max(1))),
    }
}

/// The ends of the ranges in inputs `at` and `at + 1`, one for each channel.
fn ranges<T: Float>(ctx: &Ctx<'_>, at: usize, axis: i64, channels: usize) -> Result<Vec<(T, T)>> {
    let (min, max) = (ctx.input(at)?, ctx.input(at + 1)?);
    for (name, t) in [("input_min", min), ("input_max", max)] {
        if axis == -1 {
            ensure!(
                t.rank() == 0,
                InvalidArgument,
                "Shape must be rank 0 for {name} when the axis is not specified, got shape: {}",
                t.shape()
            );
        } else {
            ensure!(
                t.rank() == 1,
                InvalidArgument,
                "Shape must be rank 1 for {name} when the axis is specified, got shape: {}",
                t.shape()
            );
        }
        ensure!(
            t.elements() == channels,
            InvalidArgument,
            "{name} has incorrect size, expected {channels} was {}",
            t.elements()
        );
    }
    let pairs = min.as_slice::<T>()?.iter().zip(max.as_slice::<T>()?);
    Ok(pairs.map(|(&a, &b)| (a, b)).collect())
}

impl<T: Float<Wide = T>> Kernel for RoundTrip<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let bits = match self.bits {
            Some(bits) => bits,
            None => {
                let t = ctx.input(3)?;
                ensure!(
                    t.elements() == 1,
                    InvalidArgument,
                    "Invalid shape: The `num_bits` tensor should be a scalar. Got dimensions: {}",
                    t.rank()
                );
                let bits = t.scalar_index()?;
                check_bits(bits, self.signed)?;
                bits
            }
        };
        let (channels, inner) = sliced(ctx.input(0)?.shape(), self.axis)?;
        let mut ends = match (self.range, self.range_given) {
            (Some((min, max)), true) => {
                vec![(T::from_f64(f64::from(min)), T::from_f64(f64::from(max)))]
            }
            (None, true) => ranges::<T>(ctx, 1, self.axis, channels)?,
            _ => vec![(T::ZERO, T::ZERO); channels],
        };
        let mut out = ctx.take_or_copy(0)?;
        let values = out.as_mut_slice::<T>()?;
        if self.range_given {
            for (min, max) in &ends {
                check_range(min.to_f64(), max.to_f64())?;
            }
        } else {
            ends.fill((T::from_f64(f64::INFINITY), T::from_f64(f64::NEG_INFINITY)));
            for (i, run) in values.chunks(inner.max(1)).enumerate() {
                let (min, max) = &mut ends[i % channels];
                for &x in run {
                    *min = if x < *min { x } else { *min };
                    *max = if x > *max { x } else { *max };
                }
            }
        }
        let grids: Vec<Grid<T>> =
            ends.iter().map(|&(min, max)| self.grid(min, max, bits)).collect();
        for (i, run) in values.chunks_mut(inner.max(1)).enumerate() {
            let grid = &grids[i % channels];
            run.iter_mut().for_each(|x| *x = self.round(grid, *x));
        }
        ctx.set(0, out)
    }
}

struct Gradient<T>(i64, std::marker::PhantomData<T>);

impl<T: Float> Kernel for Gradient<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (dy, x) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            dy.shape() == x.shape(),
            InvalidArgument,
            "gradient and input must be the same size"
        );
        let (channels, inner) = sliced(x.shape(), self.0)?;
        let ends = ranges::<T>(ctx, 2, self.0, channels)?;
        let mut dx = dy.deep_copy()?;
        let pairs = dx.as_mut_slice::<T>()?.chunks_mut(inner.max(1));
        for (i, (dx, x)) in pairs.zip(x.as_slice::<T>()?.chunks(inner.max(1))).enumerate() {
            let (min, max) = ends[i % channels];
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = dx.mul(if x >= min && x <= max { T::ONE } else { T::ZERO });
            }
        }
        let shape = ctx.input(2)?.shape().clone();
        ctx.set(0, dx)?;
        ctx.set(1, Tensor::zeros(T::DTYPE, shape.clone())?)?;
        ctx.set(2, Tensor::zeros(T::DTYPE, shape)?)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    const DOC: &str = "Floats rounded to what so many bits can hold, with zero kept.";
    const T: &str = "T: {bfloat16, half, float, double}";
    c.op("QuantizeAndDequantize")
        .doc(DOC)
        .input("input: T")
        .output("output: T")
        .attr("signed_input: bool = true")
        .attr("num_bits: int = 8")
        .attr("range_given: bool = false")
        .attr("input_min: float = 0.0")
        .attr("input_max: float = 0.0")
        .attr(T)
        .shape(shape::same_as_input)
        .cpu(per_dtype!([Float f32, Double f64], init, T => RoundTrip::<T>::new(init, 1)?));
    for version in [2, 3, 4] {
        let op = c.op(&format!("QuantizeAndDequantizeV{version}")).doc(DOC);
        let op = op.input("input: T").input("input_min: T").input("input_max: T");
        let op = match version {
            3 => op.input("num_bits: int32"),
            _ => op.attr("num_bits: int = 8"),
        };
        let op = op.output("output: T").attr("signed_input: bool = true");
        let op = match version {
            3 => op.attr("range_given: bool = true"),
            _ => op.attr("range_given: bool = false"),
        };
        let op = op.attr(T);
        let op = match version {
            3 => op,
            _ => op.attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'"),
        };
        op.attr("narrow_range: bool = false")
            .attr("axis: int = -1")
            .shape(shape::same_as_input)
            .cpu(move |init| {
                per_dtype!([Float f32, Double f64], init, T => RoundTrip::<T>::new(init, version)?)(
                    init,
                )
            });
    }
    c.op("QuantizeAndDequantizeV4Grad")
        .doc("Gradient of QuantizeAndDequantizeV4: none outside the range.")
        .input("gradients: T")
        .input("input: T")
        .input("input_min: T")
        .input("input_max: T")
        .output("input_backprop: T")
        .output("input_min_backprop: T")
        .output("input_max_backprop: T")
        .attr(T)
        .attr("axis: int = -1")
        .shape(|c| Ok(vec![c.input(0), c.input(2), c.input(3)]))
        .cpu(per_dtype!([Float f32, Double f64], init, T => {
            Gradient::<T>(init.int("axis")?, std::marker::PhantomData)
        }));
    // The gradient ignores the rounding, as in TensorFlow.
    for op in ["QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"] {
        c.gradient(op, |g, dy| Ok(g.only(dy[0])));
    }
    for op in ["QuantizeAndDequantizeV4", "QuantizeAndDequantizeV4Grad"] {
        c.gradient(op, |g, dy| {
            let inputs = [dy[0], g.input(0), g.input(1), g.input(2)];
            let mut gradients = g.calls_like("QuantizeAndDequantizeV4Grad", &inputs);
            gradients.resize(g.num_inputs(), g.none());
            Ok(gradients)
        });
    }
}
