//! Special functions. They are computed in double precision for every dtype: they are rare and
//! expensive, so one version is enough.

use super::blocks;
use super::elementwise::{binary, binary_in, unary, unary_in};
use super::fast::Fast;
use super::lanes::Lanes;
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, elementwise::elementwise};
use ferroflow_op_kit::parallel::split_mut;
use ferroflow_op_kit::vector::{Binary, Unary};

mod bessel;
mod error;
mod gamma;
mod integrals;
#[cfg(test)]
mod tests;

const FLOAT: &str = "T: {bfloat16, half, float, double}";

/// Declares ops `y = f(x)`.
macro_rules! unary_ops {
    ($c:ident; $($op:literal, $doc:literal, $cost:literal, $f:path;)*) => {$({
        struct Op;
        impl Unary<f64> for Op {
            const COST: usize = $cost;
            #[inline(always)]
            fn eval(x: f64) -> f64 { $f(x) }
        }
        $c.op($op).work(work::any)
            .doc($doc)
            .input("x: T")
            .output("y: T")
            .attr(FLOAT)
            .shape(shape::same_as_input)
            .cpu(per_dtype!([Half f16, Float f32, Double f64], T => unary_in::<Op, f64, T>()));
    })*};
}

/// Floats that special functions are for.
const COMPUTED: gpu::GpuTypes = &[("T", &[DType::Half, DType::Float, DType::Double])];

/// Ops of [`unary_ops`] with their formulas on GPUs, in double precision. `x - x` is NaN where `x`
/// is infinite: TensorFlow's Bessel functions have no limits there.
const ON_GPU: &[(&str, &str)] = &[
    ("Lgamma", "lgamma((f64)x)"),
    ("Digamma", include_str!("special/digamma.cu")),
    ("Erfinv", "erfinv((f64)x)"),
    ("Ndtri", "x < 0 || x > 1 ? (f64)x * 0.0 / 0.0 : normcdfinv((f64)x)"),
    ("BesselI0", "cyl_bessel_i0((f64)x) + ((f64)x - (f64)x)"),
    ("BesselI1", "cyl_bessel_i1((f64)x) + ((f64)x - (f64)x)"),
    ("BesselJ0", "j0((f64)x) + ((f64)x - (f64)x)"),
    ("BesselJ1", "j1((f64)x) + ((f64)x - (f64)x)"),
    ("BesselY0", "x <= 0 ? (f64)from_bits(0xff800000u) : y0((f64)x) + ((f64)x - (f64)x)"),
    ("BesselY1", "x <= 0 ? (f64)from_bits(0xff800000u) : y1((f64)x) + ((f64)x - (f64)x)"),
];

/// Declares ops `z = f(x, y)` over float and double, with the names of their inputs.
macro_rules! binary_ops {
    ($c:ident; $($op:literal ($a:literal, $b:literal) -> $z:literal $attr:literal, $doc:literal, $f:path;)*) => {$({
        struct Op;
        impl Binary<f64> for Op {
            const COST: usize = 200;
            #[inline(always)]
            fn eval(a: f64, b: f64) -> f64 { $f(a, b) }
        }
        $c.op($op).work(work::any)
            .doc($doc)
            .input($a)
            .input($b)
            .output($z)
            .attr($attr)
            .shape(shape::broadcast)
            // Series, whose length depends on the values.
            .expensive()
            .cpu(per_dtype!([Float f32, Double f64], T => binary_in::<Op, f64, T>()));
    })*};
}

struct Erf;
struct Erfc;
struct Atan2;
struct NextAfter;
struct Xlogy;
struct Xlog1py;

macro_rules! floats {
    ($($t:ty, $erfc:path;)*) => {$(
        impl Unary<$t> for Erf {
            const COST: usize = 15;
            #[inline(always)]
            fn eval(x: $t) -> $t { x.fast_erf() }
        }
        impl Unary<$t> for Erfc {
            const COST: usize = 20;
            #[inline(always)]
            fn eval(x: $t) -> $t { $erfc(x) }
        }
        impl Binary<$t> for Atan2 {
            const COST: usize = 20;
            #[inline(always)]
            fn eval(y: $t, x: $t) -> $t { y.atan2(x) }
        }
        impl Binary<$t> for NextAfter {
            #[inline(always)]
            fn eval(from: $t, to: $t) -> $t {
                if from.is_nan() || to.is_nan() {
                    from + to
                } else if from < to {
                    from.next_up()
                } else if from > to {
                    from.next_down()
                } else {
                    to
                }
            }
        }
        impl Binary<$t> for Xlogy {
            const COST: usize = 8;
            #[inline(always)]
            fn eval(x: $t, y: $t) -> $t { if x == 0.0 { 0.0 } else { x * y.ln() } }
        }
        impl Binary<$t> for Xlog1py {
            const COST: usize = 10;
            #[inline(always)]
            fn eval(x: $t, y: $t) -> $t { if x == 0.0 { 0.0 } else { x * y.ln_1p() } }
        }
    )*};
}
floats! {
    f32, libm::erfcf;
    f64, libm::erfc;
}

impl Binary<Complex64> for Xlogy {
    const COST: usize = 40;
    fn eval(x: Complex64, y: Complex64) -> Complex64 {
        if x == Complex64::ZERO { x } else { x * y.ln() }
    }
}
impl Binary<Complex64> for Xlog1py {
    const COST: usize = 40;
    fn eval(x: Complex64, y: Complex64) -> Complex64 {
        if x == Complex64::ZERO { x } else { x * super::complex::ln_1p(y) }
    }
}

/// Floats, and complex numbers in double precision.
fn float_complex<F>(init: &KernelInit<'_>) -> Result<KernelBox>
where
    F: Binary<f32> + Binary<f64> + Binary<Complex64>,
{
    match init.dtype("T")? {
        DType::Complex64 => Ok(KernelBox::new(binary_in::<F, Complex64, Complex32>())),
        DType::Complex128 => Ok(KernelBox::new(binary::<F, Complex64>())),
        _ => per_dtype!(FLOAT, T => binary::<F, T>())(init),
    }
}

/// Inputs of one shape, or scalars.
fn betainc<T: Float + Lanes<f64>>(ctx: &mut Ctx<'_>) -> Result<()> {
    let [a, b, x] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
    for (p, q, names) in [(a, b, "a and b"), (b, x, "b and x"), (a, x, "a and x")] {
        ensure!(
            p.rank() == 0 || q.rank() == 0 || p.shape() == q.shape(),
            InvalidArgument,
            "Shapes of {names} are inconsistent: {} vs. {}",
            p.shape(),
            q.shape()
        );
    }
    let shape = [a, b, x].into_iter().find(|t| t.rank() > 0).unwrap_or(a).shape().clone();
    let mut z = ctx.alloc(T::DTYPE, shape)?;
    let inputs = [a.as_slice::<T>()?, b.as_slice::<T>()?, x.as_slice::<T>()?];
    let is_scalar = [a, b, x].map(|t| t.rank() == 0);
    split_mut(z.as_mut_slice::<T>()?, 1, 300, |first, part| {
        for (i, z) in part.iter_mut().enumerate() {
            let at = |k: usize| inputs[k][if is_scalar[k] { 0 } else { first + i }].to_f64();
            *z = T::from_f64(gamma::betainc(at(0), at(1), at(2)));
        }
    });
    ctx.set(0, z)
}

fn betainc_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let mut shape: Option<PartialShape> = None;
    for s in c.inputs.iter().filter(|s| s.rank() != Some(0)) {
        if s.rank().is_none() {
            return shape::unknown(c);
        }
        shape = Some(shape.map_or(Ok(s.clone()), |t| t.merge(s))?);
    }
    Ok(vec![shape.unwrap_or_else(PartialShape::scalar)])
}

/// `value` where `x` is 0, else `slope`, which divides by it.
fn where_zero<'g>(g: &GradientScope<'g>, x: Term<'g>, value: f64, slope: Term<'g>) -> Term<'g> {
    g.select(x.with("Equal", x.number(0.0)), x.number(value), slope)
}

/// 1, but 0 where `x` is 0.
fn is_not_zero(x: Term<'_>) -> Term<'_> {
    x.with("NotEqual", x.number(0.0)).cast(x.dtype())
}

/// The derivative of Igamma for `x`; in logarithms, since gamma functions grow large.
fn gamma_density<'g>(a: Term<'g>, x: Term<'g>) -> Term<'g> {
    (-x + (a - 1.0) * x.log() - a.apply("Lgamma")).exp()
}

pub(crate) fn register(c: &mut Catalog) {
    unary_ops! { c;
        // op, doc, ns an element, function
        "Lgamma", "Element-wise logarithm of the absolute value of the gamma function.", 20, libm::lgamma;
        "Digamma", "Element-wise derivative of Lgamma.", 30, gamma::digamma;
        "Erfinv", "Element-wise inverse of Erf.", 100, error::erfinv;
        "Ndtri", "Element-wise inverse of the standard normal distribution function.", 100, error::ndtri;
        "BesselI0", "Element-wise modified Bessel function I of order 0.", 100, bessel::i0;
        "BesselI0e", "Element-wise BesselI0, times `exp(-|x|)`.", 100, bessel::i0e;
        "BesselI1", "Element-wise modified Bessel function I of order 1.", 100, bessel::i1;
        "BesselI1e", "Element-wise BesselI1, times `exp(-|x|)`.", 100, bessel::i1e;
        "BesselJ0", "Element-wise Bessel function J of order 0.", 50, bessel::j0;
        "BesselJ1", "Element-wise Bessel function J of order 1.", 50, bessel::j1;
        "BesselK0", "Element-wise modified Bessel function K of order 0.", 200, bessel::k0;
        "BesselK0e", "Element-wise BesselK0, times `exp(x)`.", 200, bessel::k0e;
        "BesselK1", "Element-wise modified Bessel function K of order 1.", 200, bessel::k1;
        "BesselK1e", "Element-wise BesselK1, times `exp(x)`.", 200, bessel::k1e;
        "BesselY0", "Element-wise Bessel function Y of order 0.", 50, bessel::y0;
        "BesselY1", "Element-wise Bessel function Y of order 1.", 50, bessel::y1;
        "Dawsn", "Element-wise Dawson's integral.", 200, integrals::dawsn;
        "Expint", "Element-wise exponential integral of positive numbers.", 200, integrals::expint;
        "FresnelCos", "Element-wise Fresnel's cosine integral.", 200, integrals::fresnel_cos;
        "FresnelSin", "Element-wise Fresnel's sine integral.", 200, integrals::fresnel_sin;
        "Spence", "Element-wise Spence's integral.", 100, integrals::spence;
    }
    binary_ops! { c;
        "Igamma"("a: T", "x: T") -> "z: T" "T: {bfloat16, half, float, double}",
            "Element-wise lower incomplete gamma function, normalised.", gamma::igamma;
        "Igammac"("a: T", "x: T") -> "z: T" "T: {bfloat16, half, float, double}",
            "Element-wise upper incomplete gamma function, normalised.", gamma::igammac;
        "IgammaGradA"("a: T", "x: T") -> "z: T" "T: {float, double}",
            "Derivative of Igamma for `a`.", gamma::igamma_grad_a;
        "RandomGammaGrad"("alpha: T", "sample: T") -> "output: T" "T: {float, double}",
            "Derivative of a gamma-distributed sample for the distribution's `alpha`.", gamma::random_gamma_grad;
        "Zeta"("x: T", "q: T") -> "z: T" "T: {float, double}",
            "Element-wise Hurwitz's zeta function.", gamma::zeta;
        "Polygamma"("a: T", "x: T") -> "z: T" "T: {float, double}",
            "Element-wise derivative of Digamma, `a` times over.", gamma::polygamma;
    }
    for (op, formula) in ON_GPU {
        c.set_gpu(op, COMPUTED, elementwise(formula));
    }
    for (op, doc, blocks, text, make) in [
        (
            "Erf",
            "Element-wise error function.",
            blocks::unary::<Erf> as MakeBlockKernel,
            "erf(x)",
            per_dtype!(FLOAT, T => unary::<Erf, T>()) as Make,
        ),
        (
            "Erfc",
            "Element-wise `1 - erf(x)`, precise for large `x`.",
            blocks::unary::<Erfc>,
            "erfc(x)",
            per_dtype!(FLOAT, T => unary::<Erfc, T>()),
        ),
    ] {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .output("y: T")
            .attr(FLOAT)
            .shape(shape::same_as_input)
            .blocks(blocks)
            .gpu(gpu::FLOAT, elementwise(text))
            .cpu(make);
    }
    for (op, doc, blocks, text, make) in [
        (
            "Xlogy",
            "Element-wise `x * log(y)`, which is 0 where `x` is.",
            blocks::binary::<Xlogy> as MakeBlockKernel,
            "x == W(0) ? W(0) : x * log(y)",
            float_complex::<Xlogy> as Make,
        ),
        (
            "Xlog1py",
            "Element-wise `x * log(1 + y)`, which is 0 where `x` is.",
            blocks::binary::<Xlog1py>,
            "x == W(0) ? W(0) : x * log1p(y)",
            float_complex::<Xlog1py>,
        ),
    ] {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: T")
            .attr("T: {half, bfloat16, float, double, complex64, complex128}")
            .broadcasts()
            .blocks(blocks)
            .gpu(gpu::FLOAT, elementwise(text))
            .cpu(make);
    }
    c.op("Atan2")
        .doc("Element-wise angle of the point (x, y), from -pi to pi.")
        .input("y: T")
        .input("x: T")
        .output("z: T")
        .attr(FLOAT)
        .broadcasts()
        .blocks(blocks::binary::<Atan2>)
        .gpu(gpu::FLOAT, elementwise("atan2(x, y)"))
        .cpu(per_dtype!(FLOAT, T => binary::<Atan2, T>()));
    c.op("NextAfter")
        .doc("Element-wise next number after `x1` in the direction of `x2`.")
        .input("x1: T")
        .input("x2: T")
        .output("output: T")
        .attr("T: {double, float} = DT_FLOAT")
        .broadcasts()
        .gpu(gpu::FLOAT, elementwise("nextafter(x, y)"))
        .cpu(per_dtype!([Float f32, Double f64], T => binary::<NextAfter, T>()));
    c.op("Betainc")
        .work(work::any)
        .doc("Element-wise incomplete beta function, normalised.")
        .input("a: T")
        .input("b: T")
        .input("x: T")
        .output("z: T")
        .attr("T: {float, double}")
        .shape(betainc_shape)
        .expensive()
        .cpu(per_dtype!([Float f32, Double f64], T => betainc::<T>));

    unary_gradients! { c;
        "Lgamma": |_, dy, x, _| dy * x.apply("Digamma");
        "Digamma": |_, dy, x, _| dy * x.number(1.0).with("Polygamma", x);
        "Erf": |_, dy, x, _| dy * (-x.square()).exp() * std::f64::consts::FRAC_2_SQRT_PI;
        "Erfc": |_, dy, x, _| dy * (-x.square()).exp() * -std::f64::consts::FRAC_2_SQRT_PI;
        "Erfinv": |_, dy, _, y| dy * y.square().exp() * std::f64::consts::FRAC_2_SQRT_PI.recip();
        "Ndtri": |_, dy, _, y| {
            dy * (y.square() / 2.0).exp() * (2.0 * std::f64::consts::PI).sqrt()
        };
        "BesselI0": |_, dy, x, _| dy * x.apply("BesselI1");
        "BesselI0e": |_, dy, x, y| dy * (x.apply("BesselI1e") - x.apply("Sign") * y);
        "BesselI1": |g, dy, x, y| dy * where_zero(g, x, 1.0, x.apply("BesselI0") - y / x);
        "BesselI1e": |g, dy, x, y| {
            let slope = x.apply("BesselI0e") - y * (x.apply("Sign") + x.reciprocal());
            dy * where_zero(g, x, 0.5, slope)
        };
        "BesselJ0": |_, dy, x, _| dy * -x.apply("BesselJ1");
        "BesselJ1": |g, dy, x, y| dy * where_zero(g, x, 0.5, x.apply("BesselJ0") - y / x);
        "BesselK0": |_, dy, x, _| dy * -x.apply("BesselK1");
        "BesselK0e": |_, dy, x, y| dy * (y - x.apply("BesselK1e"));
        "BesselK1": |_, dy, x, y| dy * (-x.apply("BesselK0") - y / x);
        "BesselK1e": |_, dy, x, y| dy * (y * (1.0 - x.reciprocal()) - x.apply("BesselK0e"));
        "BesselY0": |_, dy, x, _| dy * -x.apply("BesselY1");
        "BesselY1": |_, dy, x, y| dy * (x.apply("BesselY0") - y / x);
        "Dawsn": |_, dy, x, y| dy * (1.0 - x * y * 2.0);
        "Expint": |_, dy, x, _| dy * (x.exp() / x);
        "FresnelCos": |_, dy, x, _| {
            dy * (x.square() * std::f64::consts::FRAC_PI_2).apply("Cos")
        };
        "FresnelSin": |_, dy, x, _| {
            dy * (x.square() * std::f64::consts::FRAC_PI_2).apply("Sin")
        };
        "Spence": |g, dy, x, _| {
            let at_one = x.with("Equal", x.number(1.0));
            dy * g.select(at_one, x.number(-1.0), x.log() / (1.0 - x))
        };
    }
    binary_gradients! { c;
        "Igamma": |g, dz, a, x| (dz * g.call("IgammaGradA", &[a, x]), dz * gamma_density(a, x));
        "Igammac": |g, dz, a, x| {
            (-(dz * g.call("IgammaGradA", &[a, x])), -(dz * gamma_density(a, x)))
        };
        // For the other argument there is no formula.
        "Zeta": |g, dz, x, q| (g.none(), dz * (-x * (x + 1.0).with("Zeta", q)));
        "Polygamma": |g, dz, n, x| (g.none(), dz * (n + 1.0).with("Polygamma", x));
        "Xlogy": |_, dz, x, y| (dz * is_not_zero(x).with("Xlogy", y), dz * x.with("Xdivy", y));
        "Xlog1py": |_, dz, x, y| {
            (dz * is_not_zero(x).with("Xlog1py", y), dz * x.with("Xdivy", y + 1.0))
        };
        "Atan2": |_, dz, y, x| {
            let over = dz / (x.square() + y.square());
            (x * over, -y * over)
        };
    }
    c.gradient("NextAfter", |g, dy| {
        let ones = g.input(0).ones_like();
        let zeros = g.input(1).zeros_like();
        Ok(g.unbroadcast(dy[0] * ones, dy[0] * zeros))
    });
    c.gradient("Betainc", |g, dy| {
        let (a, b, x) = (g.input(0), g.input(1), g.input(2));
        let log_beta = a.apply("Lgamma") + b.apply("Lgamma") - (a + b).apply("Lgamma");
        let log = (b - 1.0).with("Xlog1py", -x) + (a - 1.0).with("Xlogy", x) - log_beta;
        let dx = g.unbroadcast_to(&[(g.none(), a), (dy[0] * log.exp(), x)])[1];
        Ok(vec![g.none(), g.none(), dx])
    });
}

type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
