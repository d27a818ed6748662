//! DebugNumericSummary, DebugNumericSummaryV2: counts and statistics of a tensor, for debuggers.

use crate::prelude::*;

/// How many elements there are of each kind.
#[derive(Default)]
struct Counts {
    minus_infinite: f64,
    negative: f64,
    zero: f64,
    positive: f64,
    plus_infinite: f64,
    nan: f64,
}

impl Counts {
    /// Elements up to `lower` and from `upper` on count as infinite.
    fn of(values: impl Iterator<Item = f64>, (lower, upper): (f64, f64)) -> Counts {
        let mut counts = Counts::default();
        for x in values {
            let count = match x {
                x if x.is_nan() => &mut counts.nan,
                x if x <= lower => &mut counts.minus_infinite,
                x if x >= upper => &mut counts.plus_infinite,
                x if x < 0.0 => &mut counts.negative,
                x if x > 0.0 => &mut counts.positive,
                _ => &mut counts.zero,
            };
            *count += 1.0;
        }
        counts
    }
}

/// The elements of a tensor as doubles.
fn doubles(t: &Tensor) -> Result<Vec<f64>> {
    macro_rules! of {
        ($($dtype:ident $t:ty),*) => {
            match t.dtype() {
                $(DType::$dtype => t.as_slice::<$t>()?.iter().map(|x| x.to_f64()).collect(),)*
                DType::Bool => t.as_slice::<bool>()?.iter().map(|&x| f64::from(u8::from(x))).collect(),
                other => bail!(Unimplemented, "a {other} has no numbers to summarize"),
            }
        };
    }
    use ferroflow_core::RealElement;
    Ok(
        of!(Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8, Int16 i16, Int32 i32, Int64 i64,
        UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64),
    )
}

const INFINITE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Twelve numbers about the elements, then dtype, rank and dimensions.
fn summary(t: &Tensor, bounds: (f64, f64)) -> Result<Tensor> {
    let values = doubles(t)?;
    let counts = Counts::of(values.iter().copied(), bounds);
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let n = finite.len() as f64;
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = finite.iter().sum::<f64>() / n;
    let variance = finite.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let mut all = vec![
        1.0, // the tensor is initialized
        values.len() as f64,
        counts.nan,
        counts.minus_infinite,
        counts.negative,
        counts.zero,
        counts.positive,
        counts.plus_infinite,
        least,
        most,
        mean,
        variance,
        f64::from(t.dtype().number()),
        t.rank() as f64,
    ];
    all.extend(t.shape().iter().map(|&d| d as f64));
    Ok(Tensor::vector(&all))
}

/// What version 2 reports.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    CurtHealth,
    ConciseHealth,
    FullHealth,
    Shape,
    ReduceInfNan,
}

impl Mode {
    fn new(number: i64) -> Result<Mode> {
        Ok(match number {
            2 => Mode::CurtHealth,
            3 => Mode::ConciseHealth,
            4 => Mode::FullHealth,
            5 => Mode::Shape,
            8 => Mode::ReduceInfNan,
            other => bail!(Unimplemented, "tensor_debug_mode {other} is not supported"),
        })
    }

    fn length(self) -> usize {
        match self {
            Mode::CurtHealth => 2,
            Mode::ConciseHealth => 5,
            Mode::FullHealth => 11,
            Mode::Shape => 10,
            Mode::ReduceInfNan => 3,
        }
    }

    fn report(self, t: &Tensor, id: f64) -> Result<Vec<f64>> {
        let (dtype, rank) = (f64::from(t.dtype().number()), t.rank() as f64);
        let len = t.elements() as f64;
        if self == Mode::Shape {
            let mut all = vec![id, dtype, rank, len];
            // The last six dimensions, with zeros behind them if there are fewer.
            let dims = &t.shape()[t.rank().saturating_sub(6)..];
            all.extend(dims.iter().map(|&d| d as f64));
            all.resize(self.length(), 0.0);
            return Ok(all);
        }
        let c = Counts::of(doubles(t)?.into_iter(), INFINITE);
        let infinities = c.minus_infinite + c.plus_infinite;
        let if_any = |count: f64, value: f64| if count > 0.0 { value } else { 0.0 };
        Ok(match self {
            Mode::CurtHealth => vec![id, if_any(infinities + c.nan, 1.0)],
            Mode::ConciseHealth => vec![id, len, c.minus_infinite, c.plus_infinite, c.nan],
            Mode::FullHealth => vec![
                id,
                -1.0, // no device
                dtype,
                rank,
                len,
                c.minus_infinite,
                c.plus_infinite,
                c.nan,
                c.negative,
                c.zero,
                c.positive,
            ],
            _ => vec![
                if_any(c.minus_infinite, f64::NEG_INFINITY),
                if_any(c.plus_infinite, f64::INFINITY),
                if_any(c.nan, f64::NAN),
            ],
        })
    }
}

/// Refuses dtypes without numbers.
fn numeric(init: &KernelInit<'_>) -> Result<()> {
    match init.dtype("T")? {
        DType::Bool => Ok(()),
        dtype if dtype.is_integer() || dtype.is_floating() => Ok(()),
        other => Err(unsupported(init, "T", other)),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DebugNumericSummary")
        .doc("Counts and statistics of a tensor; the debug URLs are not served.")
        .input("input: T")
        .output("output: double")
        .attr("T: type")
        .attr("device_name: string = ''")
        .attr("tensor_name: string = ''")
        .attr("debug_urls: list(string) = []")
        .attr("lower_bound: float")
        .default(f32::NEG_INFINITY)
        .attr("upper_bound: float")
        .default(f32::INFINITY)
        .attr("mute_if_healthy: bool = false")
        .attr("gated_grpc: bool = false")
        .allows_uninitialized_input()
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).rank().map(|rank| 14 + rank)])]))
        .cpu(|init| {
            numeric(init)?;
            let bounds = (init.float("lower_bound")?, init.float("upper_bound")?);
            let bounds = (f64::from(bounds.0), f64::from(bounds.1));
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let all = summary(ctx.input(0)?, bounds)?;
                ctx.set(0, all)
            }))
        });
    c.op("DebugNumericSummaryV2")
        .doc("Counts of a tensor's elements, in the form that a mode selects.")
        .input("input: T")
        .output("output: output_dtype")
        .attr("output_dtype: {float, double} = DT_FLOAT")
        .attr("T: type")
        .attr("tensor_debug_mode: int = -1")
        .attr("tensor_id: int = -1")
        .shape(|c| {
            let mode = Mode::new(c.attrs.int("tensor_debug_mode")?);
            Ok(vec![PartialShape::new([mode.ok().map(Mode::length)])])
        })
        .cpu(|init| {
            numeric(init)?;
            let mode = init.int("tensor_debug_mode")?;
            let (id, dtype) = (init.int("tensor_id")? as f64, init.dtype("output_dtype")?);
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let all = Mode::new(mode)?.report(ctx.input(0)?, id)?;
                let narrow = |all: &[f64]| all.iter().map(|&x| x as f32).collect::<Vec<f32>>();
                let out = match dtype {
                    DType::Double => Tensor::vector(&all),
                    _ => Tensor::vector(&narrow(&all)),
                };
                ctx.set(0, out)
            }))
        });
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_summaries_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../../tests/data/recorded/debug_summary.txt"));
    }
}
