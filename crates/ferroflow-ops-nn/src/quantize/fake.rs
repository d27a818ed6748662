//! The FakeQuantWithMinMax ops and their gradients: floats rounded to the values of a number of
//! bits.

use crate::prelude::*;
use ferroflow_op_kit::gpu::elementwise::Elementwise;

/// The integers that values are rounded to.
#[derive(Clone, Copy, Debug)]
struct Levels {
    low: f32,
    high: f32,
}

impl Levels {
    fn new(init: &KernelInit<'_>) -> Result<Levels> {
        let bits = init.int("num_bits")?;
        ensure!(
            (2..=16).contains(&bits),
            InvalidArgument,
            "num_bits must be between 2 and 16, inclusive, got {bits}"
        );
        let low = if init.bool("narrow_range")? { 1.0 } else { 0.0 };
        Ok(Levels { low, high: ((1u32 << bits) - 1) as f32 })
    }

    /// The grid over `[min, max]`, shifted slightly so that it contains zero.
    fn grid(self, min: f32, max: f32) -> Grid {
        let steps = self.high - self.low;
        let (step, inverse) = ((max - min) / steps, steps / (max - min));
        let zero = self.low - min / step;
        let zero = if zero < self.low {
            self.low
        } else if zero > self.high {
            self.high
        } else {
            // NaN becomes zero, as in a cast to an integer.
            f32::from(zero.round() as u16)
        };
        Grid { min: (self.low - zero) * step, max: (self.high - zero) * step, step, inverse }
    }
}

/// The representable values.
#[derive(Clone, Copy, Debug)]
struct Grid {
    min: f32,
    max: f32,
    step: f32,
    inverse: f32,
}

impl Grid {
    fn round(&self, x: f32) -> f32 {
        let zero = (-self.min * self.inverse + 0.5).floor();
        let inside = if x > self.max { self.max } else { x };
        let inside = if inside < self.min { self.min } else { inside };
        ((inside - self.min) * self.inverse - zero + 0.5).floor() * self.step
    }

    fn contains(&self, x: f32) -> bool {
        x >= self.min && x <= self.max
    }
}

/// The source of the range.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    Attrs(f32, f32),
    Scalars,
    PerChannel,
}

struct Fake {
    levels: Levels,
    range: Range,
}

impl Fake {
    fn new(init: &KernelInit<'_>, range: Range) -> Result<Fake> {
        let range = match range {
            Range::Attrs(..) => {
                let (min, max) = (init.float("min")?, init.float("max")?);
                ensure!(
                    min < max,
                    InvalidArgument,
                    "min has to be smaller than max, was: {min} >= {max}"
                );
                Range::Attrs(min, max)
            }
            other => other,
        };
        Ok(Fake { levels: Levels::new(init)?, range })
    }

    /// Smallest and largest value of each channel; there may be only one. `at` is the input that
    /// holds the smallest.
    fn ranges(&self, ctx: &Ctx<'_>, depth: Option<usize>, at: usize) -> Result<Vec<(f32, f32)>> {
        if let Range::Attrs(min, max) = self.range {
            return Ok(vec![(min, max)]);
        }
        let (min, max) = (ctx.input(at)?, ctx.input(at + 1)?);
        for (name, t) in [("min", min), ("max", max)] {
            if self.range == Range::Scalars {
                ensure!(
                    t.rank() == 0,
                    InvalidArgument,
                    "`{name}` must be rank 0 but is rank {}",
                    t.rank()
                );
                continue;
            }
            ensure!(
                t.rank() == 1,
                InvalidArgument,
                "`{name}` must be rank 1 but is rank {}",
                t.rank()
            );
            ensure!(
                Some(t.elements()) == depth,
                InvalidArgument,
                "{name} has incorrect size, expected {} was {}",
                depth.unwrap_or(0),
                t.elements()
            );
        }
        let pairs = min.as_slice::<f32>()?.iter().zip(max.as_slice::<f32>()?);
        Ok(pairs.map(|(&a, &b)| (a, b)).collect())
    }
}

/// The formulas of a range that attributes give, as [`Grid`] computes them. Names in capitals are
/// replaced by numbers.
const ROUND: &str = "[](f32 v) { f32 t = v > MAX ? MAX : v; t = t < MIN ? MIN : t; return \
     floor((t - MIN) * INVERSE - ZERO + 0.5f) * STEP; }(x)";
const INSIDE: &str = "x * (y >= MIN && y <= MAX ? 1.0f : 0.0f)";

fn on_gpu(init: &KernelInit<'_>, formula: &str) -> Result<KernelBox> {
    let fake = Fake::new(init, Range::Attrs(0.0, 0.0))?;
    let Range::Attrs(min, max) = fake.range else { bail!(Internal, "a range of attributes") };
    let grid = fake.levels.grid(min, max);
    let zero = (-grid.min * grid.inverse + 0.5).floor();
    let number = |x: f32| format!("from_bits({:#x}u)", x.to_bits());
    let mut text = formula.to_string();
    for (name, value) in [
        ("MIN", grid.min),
        ("MAX", grid.max),
        ("INVERSE", grid.inverse),
        ("ZERO", zero),
        ("STEP", grid.step),
    ] {
        text = text.replace(name, &number(value));
    }
    Ok(KernelBox::new(Elementwise::new(init, text)?))
}

struct Forward(Fake);

impl Kernel for Forward {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let depth = ctx.input(0)?.shape().last().copied();
        let ranges = self.0.ranges(ctx, depth, 1)?;
        let mut out = ctx.take_or_copy(0)?;
        let channels = ranges.len();
        let grids: Vec<Option<Grid>> = ranges
            .iter()
            .map(|&(min, max)| (min != 0.0 || max != 0.0).then(|| self.0.levels.grid(min, max)))
            .collect();
        for (i, x) in out.as_mut_slice::<f32>()?.iter_mut().enumerate() {
            // An empty range leaves only zero.
            *x = grids[i % channels].map_or(0.0, |grid| grid.round(*x));
        }
        ctx.set(0, out)
    }
}

struct Backward(Fake);

impl Kernel for Backward {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (dy, x) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            dy.shape() == x.shape(),
            InvalidArgument,
            "gradient and input must be the same size"
        );
        let depth = x.shape().last().copied();
        let ranges = self.0.ranges(ctx, depth, 2)?;
        let channels = ranges.len();
        let (mut below, mut above) = (vec![0f32; channels], vec![0f32; channels]);
        let mut dx = ctx.alloc(DType::Float, x.shape().clone())?;
        let grids: Vec<Option<Grid>> = ranges
            .iter()
            .map(|&(min, max)| (min != 0.0 || max != 0.0).then(|| self.0.levels.grid(min, max)))
            .collect();
        let pairs = dy.as_slice::<f32>()?.iter().zip(x.as_slice::<f32>()?);
        for ((i, dx), (&dy, &x)) in dx.as_mut_slice::<f32>()?.iter_mut().enumerate().zip(pairs) {
            let Some(grid) = grids[i % channels] else {
                *dx = dy;
                continue;
            };
            *dx = dy * if grid.contains(x) { 1.0 } else { 0.0 };
            if x < grid.min {
                below[i % channels] += dy;
            } else if x > grid.max {
                above[i % channels] += dy;
            }
        }
        ctx.set(0, dx)?;
        match self.0.range {
            Range::Attrs(..) => Ok(()),
            Range::Scalars => {
                ctx.set(1, Tensor::scalar(below[0]))?;
                ctx.set(2, Tensor::scalar(above[0]))
            }
            Range::PerChannel => {
                ctx.set(1, Tensor::vector(&below))?;
                ctx.set(2, Tensor::vector(&above))
            }
        }
    }
}

pub(crate) fn register(c: &mut Catalog) {
    const ATTRS: [&str; 2] = ["num_bits: int = 8", "narrow_range: bool = false"];
    for (suffix, range) in [
        ("Args", Range::Attrs(0.0, 0.0)),
        ("Vars", Range::Scalars),
        ("VarsPerChannel", Range::PerChannel),
    ] {
        let of_attrs = suffix == "Args";
        let op = c
            .op(&format!("FakeQuantWithMinMax{suffix}"))
            .doc("Floats rounded to what so many bits can hold of a range.")
            .input("inputs: float");
        let op = match of_attrs {
            true => op.attr("min: float = -6.0").attr("max: float = 6.0"),
            false => op.input("min: float").input("max: float"),
        };
        let op = op.output("outputs: float").attr(ATTRS[0]).attr(ATTRS[1]);
        let op = op.shape(shape::same_as_input);
        let op = if of_attrs { op.gpu(&[], |init| on_gpu(init, ROUND)) } else { op };
        op.cpu(move |init| Ok(KernelBox::new(Forward(Fake::new(init, range)?))));
        let op = c
            .op(&format!("FakeQuantWithMinMax{suffix}Gradient"))
            .doc("Gradient of rounding to what so many bits can hold: none outside the range.")
            .input("gradients: float")
            .input("inputs: float");
        let op = match of_attrs {
            true => op
                .output("backprops: float")
                .attr("min: float = -6.0")
                .attr("max: float = 6.0")
                .shape(shape::same_as_input),
            false => op
                .input("min: float")
                .input("max: float")
                .output("backprops_wrt_input: float")
                .output("backprop_wrt_min: float")
                .output("backprop_wrt_max: float")
                .shape(|c| Ok(vec![c.input(0), c.input(2), c.input(3)])),
        };
        let op = op.attr(ATTRS[0]).attr(ATTRS[1]);
        let op = if of_attrs { op.gpu(&[], |init| on_gpu(init, INSIDE)) } else { op };
        op.cpu(move |init| Ok(KernelBox::new(Backward(Fake::new(init, range)?))));
    }
    c.gradient("FakeQuantWithMinMaxArgs", |g, dy| {
        Ok(vec![g.call_like("FakeQuantWithMinMaxArgsGradient", &[dy[0], g.input(0)])])
    });
    for op in ["FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"] {
        c.gradient(op, move |g, dy| {
            let inputs = [dy[0], g.input(0), g.input(1), g.input(2)];
            Ok(g.calls_like(&format!("{op}Gradient"), &inputs))
        });
    }
}
