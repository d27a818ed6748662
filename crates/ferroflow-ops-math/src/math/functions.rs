//! Exponentials, logarithms, trigonometry and rounding: one row per op.

use super::blocks;
use super::complex;
use super::elementwise::{map, unary, unary_in};
use super::fast::Fast;
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::vector::Unary;

/// Declares ops `y = f(x)` over floats and complex numbers.
macro_rules! float_complex_ops {
    ($c:ident; $($op:literal, $doc:literal, $cost:literal, |$x:ident| $real:expr, |$z:ident| $complex:expr, $text:literal;)*) => {$({
        struct Op;
        float_complex_ops!(@impl Op, f32, $cost, $x, $real);
        float_complex_ops!(@impl Op, f64, $cost, $x, $real);
        float_complex_ops!(@impl Op, Complex64, 30, $z, $complex);
        declare($c, $op, $doc, FLOAT_COMPLEX, float_complex::<Op>, blocks::unary::<Op>, $text);
    })*};
    (@impl $op:ident, $t:ty, $cost:literal, $x:ident, $formula:expr) => {
        impl Unary<$t> for $op {
            const COST: usize = $cost;
            #[inline(always)]
            fn eval($x: $t) -> $t { $formula }
        }
    };
}

/// Declares ops `y = f(x)` over floats.
macro_rules! float_ops {
    ($c:ident; $($op:literal, $doc:literal, $cost:literal, |$x:ident| $real:expr, $text:literal;)*) => {$({
        struct Op;
        float_complex_ops!(@impl Op, f32, $cost, $x, $real);
        float_complex_ops!(@impl Op, f64, $cost, $x, $real);
        declare($c, $op, $doc, FLOAT, float::<Op>, blocks::unary::<Op>, $text);
    })*};
}

/// Declares ops from floats to `bool`.
macro_rules! float_tests {
    ($c:ident; $($op:literal, $doc:literal, $test:ident, $text:literal;)*) => {$({
        struct Op;
        float_tests!(@impl Op, $test, f16 bf16 f32 f64);
        $c.op($op)
            .doc($doc)
            .input("x: T")
            .output("y: bool")
            .attr(FLOAT)
            .shape(shape::same_as_input)
            .gpu_elementwise(gpu::FLOAT, $text)
            .cpu(per_dtype!(FLOAT, T => map::<Op, T, bool>()));
    })*};
    (@impl $op:ident, $test:ident, $($t:ty)*) => {$(
        impl Unary<$t, bool> for $op {
            #[inline(always)]
            fn eval(x: $t) -> bool { x.$test() }
        }
    )*};
}

const FLOAT: &str = "T: {bfloat16, half, float, double}";
const FLOAT_COMPLEX: &str = "T: {bfloat16, half, float, double, complex64, complex128}";
/// Includes integers, for which there are signatures but no kernels.
const SIGNED: &str =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;

fn declare(
    c: &mut Catalog,
    op: &str,
    doc: &str,
    attr: &str,
    make: Make,
    blocks: MakeBlockKernel,
    text: &'static str,
) {
    let attr = if matches!(op, "Reciprocal" | "Inv") { SIGNED } else { attr };
    c.op(op)
        .doc(doc)
        .input("x: T")
        .output("y: T")
        .attr(attr)
        .shape(shape::same_as_input)
        .blocks(blocks)
        .gpu_elementwise(gpu::FLOAT, text)
        .cpu(make);
}

fn float<F: Unary<f32> + Unary<f64>>(init: &KernelInit<'_>) -> Result<KernelBox> {
    per_dtype!(FLOAT, T => unary::<F, T>())(init)
}

/// Complex numbers are computed in double precision.
fn float_complex<F>(init: &KernelInit<'_>) -> Result<KernelBox>
where
    F: Unary<f32> + Unary<f64> + Unary<Complex64>,
{
    match init.dtype("T")? {
        DType::Complex64 => Ok(KernelBox::new(unary_in::<F, Complex64, Complex32>())),
        DType::Complex128 => Ok(KernelBox::new(unary::<F, Complex64>())),
        _ => float::<F>(init),
    }
}

struct Round;
impl Unary<f32> for Round {
    #[inline(always)]
    fn eval(x: f32) -> f32 {
        x.round_ties_even()
    }
}
impl Unary<f64> for Round {
    #[inline(always)]
    fn eval(x: f64) -> f64 {
        x.round_ties_even()
    }
}

/// Integers are whole already.
fn round(init: &KernelInit<'_>) -> Result<KernelBox> {
    if init.dtype("T")?.is_integer() {
        return Ok(KernelBox::new(|ctx: &mut Ctx<'_>| {
            let x = ctx.take(0)?;
            ctx.set(0, x)
        }));
    }
    float::<Round>(init)
}

pub(crate) fn register(c: &mut Catalog) {
    float_complex_ops! { c;
        // op, doc, ns an element, formula for reals and for complex numbers, formula on GPUs
        "Sqrt", "Element-wise square root.", 1, |x| x.sqrt(), |z| z.sqrt(), "sqrt(x)";
        "Rsqrt", "Element-wise `1 / sqrt(x)`.", 2, |x| 1.0 / x.sqrt(), |z| complex::inverse_sqrt(z), "W(1) / sqrt(x)";
        "Reciprocal", "Element-wise `1 / x`.", 1, |x| 1.0 / x, |z| complex::inverse(z), "W(1) / x";
        "Inv", "Element-wise `1 / x`.", 1, |x| 1.0 / x, |z| complex::inverse(z), "W(1) / x";
        "Exp", "Element-wise `e` to the power `x`.", 5, |x| x.fast_exp(), |z| z.exp(), "exp(x)";
        "Expm1", "Element-wise `exp(x) - 1`, precise near 0.", 8, |x| x.fast_exp_m1(), |z| complex::exp_m1(z), "expm1(x)";
        "Log", "Element-wise natural logarithm.", 5, |x| x.fast_ln(), |z| z.ln(), "log(x)";
        "Log1p", "Element-wise `log(1 + x)`, precise near 0.", 8, |x| x.fast_ln_1p(), |z| complex::ln_1p(z), "log1p(x)";
        "Sin", "Element-wise sine.", 8, |x| x.sin(), |z| z.sin(), "sin(x)";
        "Cos", "Element-wise cosine.", 8, |x| x.cos(), |z| z.cos(), "cos(x)";
        "Tan", "Element-wise tangent.", 15, |x| x.tan(), |z| complex::tan(z), "tan(x)";
        "Asin", "Element-wise inverse sine.", 10, |x| x.asin(), |z| complex::asin(z), "asin(x)";
        "Acos", "Element-wise inverse cosine.", 10, |x| x.acos(), |z| complex::acos(z), "acos(x)";
        "Atan", "Element-wise inverse tangent.", 10, |x| x.atan(), |z| complex::atan(z), "atan(x)";
        "Sinh", "Element-wise hyperbolic sine.", 10, |x| x.sinh(), |z| z.sinh(), "sinh(x)";
        "Cosh", "Element-wise hyperbolic cosine.", 10, |x| x.cosh(), |z| z.cosh(), "cosh(x)";
        "Tanh", "Element-wise hyperbolic tangent.", 10, |x| x.fast_tanh(), |z| complex::tanh(z), "Tanh<Out>::of(x)";
        "Asinh", "Element-wise inverse hyperbolic sine.", 15, |x| x.asinh(), |z| complex::asinh(z), "asinh(x)";
        "Acosh", "Element-wise inverse hyperbolic cosine.", 15, |x| x.acosh(), |z| complex::acosh(z), "acosh(x)";
        "Atanh", "Element-wise inverse hyperbolic tangent.", 15, |x| x.atanh(), |z| complex::atanh(z), "atanh(x)";
        "Sigmoid", "Element-wise `1 / (1 + exp(-x))`.", 6, |x| x.fast_sigmoid(),
            |z| complex::inverse((-z).exp() + 1.0), "W(1) / (W(1) + exp(-x))";
    }
    float_ops! { c;
        "Ceil", "Element-wise smallest integer that is not less.", 1, |x| x.ceil(), "ceil(x)";
        "Floor", "Element-wise largest integer that is not greater.", 1, |x| x.floor(), "floor(x)";
        "Rint", "Element-wise nearest integer, halves to even.", 1, |x| x.round_ties_even(), "rint(x)";
    }
    float_tests! { c;
        "IsNan", "Element-wise: is it NaN?", is_nan, "x != x";
        "IsInf", "Element-wise: is it infinite?", is_infinite, "x == x && x - x != x - x";
        "IsFinite", "Element-wise: is it neither infinite nor NaN?", is_finite, "x - x == x - x";
    }
    c.op("Round")
        .doc("Element-wise nearest integer, halves to even.")
        .input("x: T")
        .output("y: T")
        .attr(SIGNED)
        .shape(shape::same_as_input)
        .blocks(blocks::unary::<Round>)
        .gpu_elementwise(gpu::FLOAT, "rint(x)")
        .cpu(round);

    unary_gradients! { c;
        "Sqrt": |g, dy, _, y| g.call("SqrtGrad", &[y, dy]);
        "Rsqrt": |g, dy, _, y| g.call("RsqrtGrad", &[y, dy]);
        "Reciprocal": |g, dy, _, y| g.call("ReciprocalGrad", &[y, dy]);
        "Inv": |g, dy, _, y| g.call("ReciprocalGrad", &[y, dy]);
        "Exp": |_, dy, _, y| dy * y.conj();
        "Expm1": |_, dy, x, _| dy * x.conj().exp();
        "Log": |_, dy, x, _| dy * x.conj().reciprocal();
        "Log1p": |_, dy, x, _| dy * (x.conj() + 1.0).reciprocal();
        "Sin": |_, dy, x, _| dy * x.conj().apply("Cos");
        "Cos": |_, dy, x, _| -(dy * x.conj().apply("Sin"));
        "Tan": |_, dy, x, _| dy * x.conj().apply("Cos").reciprocal().square();
        "Asin": |_, dy, x, _| dy * (1.0 - x.conj().square()).sqrt().reciprocal();
        "Acos": |_, dy, x, _| -(dy * (1.0 - x.conj().square()).sqrt().reciprocal());
        "Atan": |_, dy, x, _| dy * (x.conj().square() + 1.0).reciprocal();
        "Sinh": |_, dy, x, _| dy * x.conj().apply("Cosh");
        "Cosh": |_, dy, x, _| dy * x.conj().apply("Sinh");
        "Tanh": |g, dy, _, y| g.call("TanhGrad", &[y.conj(), dy]);
        "Asinh": |_, dy, _, y| dy / y.conj().apply("Cosh");
        "Acosh": |_, dy, _, y| dy / y.conj().apply("Sinh");
        "Atanh": |_, dy, x, _| dy * (1.0 - x.conj().square()).reciprocal();
        "Sigmoid": |g, dy, _, y| g.call("SigmoidGrad", &[y.conj(), dy]);
    }
    c.no_gradient(&["Ceil", "Floor", "Rint", "Round"]);
}

#[cfg(test)]
// Expected values are what TensorFlow prints.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    const X: [f64; 6] = [0.5, -0.5, 1.5, 1e-3, 0.0, f64::NAN];

    #[test]
    fn functions_have_their_values() {
        // Computed with TensorFlow.
        let nan = f64::NAN;
        let rows: [(&str, [f64; 6]); 17] = [
            ("Exp", [1.6487212707, 0.60653066, 4.48168907, 1.0010005, 1.0, nan]),
            ("Expm1", [0.64872127, -0.39346934, 3.48168907, 1.00050017e-3, 0.0, nan]),
            ("Log", [-0.69314718, nan, 0.40546511, -6.90775528, f64::NEG_INFINITY, nan]),
            ("Log1p", [0.405465108, -0.693147181, 0.916290732, 9.99500333e-4, 0.0, nan]),
            ("Sin", [0.47942554, -0.47942554, 0.99749499, 0.001, 0.0, nan]),
            ("Cos", [0.87758256, 0.87758256, 0.0707372, 0.9999995, 1.0, nan]),
            ("Tan", [0.54630249, -0.54630249, 14.1014199, 1.00000033e-3, 0.0, nan]),
            ("Asin", [0.523598776, -0.523598776, nan, 1.00000017e-3, 0.0, nan]),
            ("Acos", [1.04719755, 2.0943951, nan, 1.56979633, 1.57079633, nan]),
            ("Atan", [0.463647609, -0.463647609, 0.982793723, 9.99999667e-4, 0.0, nan]),
            ("Sinh", [0.521095305, -0.521095305, 2.12927946, 1.00000017e-3, 0.0, nan]),
            ("Cosh", [1.12762597, 1.12762597, 2.35240962, 1.0000005, 1.0, nan]),
            ("Tanh", [0.462117157, -0.462117157, 0.905148254, 9.99999667e-4, 0.0, nan]),
            ("Asinh", [0.481211825, -0.481211825, 1.19476322, 9.99999833e-4, 0.0, nan]),
            ("Acosh", [nan, nan, 0.96242365, nan, nan, nan]),
            ("Atanh", [0.54930614, -0.54930614, nan, 0.001, 0.0, nan]),
            ("Sigmoid", [0.622459331, 0.377540669, 0.817574476, 0.50025, 0.5, nan]),
        ];
        for (op, want) in rows {
            check(op).maps(X, want);
            check(op).maps(X.map(|x| x as f32), want.map(|y| y as f32));
            let half = |x: [f64; 6]| Tensor::vector(&x.map(f16::from_f64));
            let got = check(op).input(half(X)).run().unwrap();
            for (x, y) in got[0].as_slice::<f16>().unwrap().iter().zip(want) {
                let x = x.to_f64();
                assert!(
                    x == y
                        || x.is_nan() == y.is_nan() && (x - y).abs() <= 2e-3 * y.abs()
                        || y.is_nan(),
                    "{op} {x} {y}"
                );
            }
        }
    }

    #[test]
    fn functions_have_their_limits() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = [inf, -inf, 0.0, -0.0, -1.0];
        check("Sqrt").maps(x, [inf, nan, 0.0, -0.0, nan]);
        check("Rsqrt").maps(x, [0.0, nan, inf, -inf, nan]);
        check("Reciprocal").maps(x, [0.0, -0.0, inf, -inf, -1.0]);
        check("Inv").maps(x, [0.0, -0.0, inf, -inf, -1.0]);
        check("Exp").maps(x, [inf, 0.0, 1.0, 1.0, 0.36787945]);
        check("Log").maps(x, [inf, nan, -inf, -inf, nan]);
        check("Log1p").maps(x, [inf, nan, 0.0, 0.0, -inf]);
        check("Expm1").maps(x, [inf, -1.0, 0.0, 0.0, -0.63212055]);
        check("Tanh").maps(x, [1.0, -1.0, 0.0, 0.0, -0.7615942]);
        check("Sigmoid").maps(x, [1.0, 0.0, 0.5, 0.5, 0.26894143]);
        check("Sin").maps(x, [nan, nan, 0.0, 0.0, -0.84147096]);
        check("Cos").maps(x, [nan, nan, 1.0, 1.0, 0.5403023]);
        check("Atan").maps(x, [1.5707964, -1.5707964, 0.0, 0.0, -0.7853982]);
        check("Asinh").maps(x, [inf, -inf, 0.0, 0.0, -0.8813736]);
        check("Atanh").maps(x, [nan, nan, 0.0, 0.0, -inf]);
        check("Exp").maps([100.0f32, -200.0, 88.7, -87.0], [inf, 0.0, 3.3259769e38, 1.6458115e-38]);
        check("Tanh").maps([9.0f32, -20.0, 100.0], [1.0, -1.0, 1.0]);
    }

    #[test]
    fn rounding_takes_halves_to_even() {
        let x = [0.5f32, 1.5, 2.5, -0.5, -1.5, 2.3, f32::NAN];
        let want = [0.0, 2.0, 2.0, -0.0, -2.0, 2.0, f32::NAN];
        check("Rint").maps(x, want);
        check("Round").maps(x, want);
        check("Round").maps([3i32, -4], [3, -4]);
        check("Floor").maps([1.5f64, -1.5], [1.0, -2.0]);
        check("Ceil").maps([1.5f64, -1.5], [2.0, -1.0]);
    }

    #[test]
    fn values_are_distinguished() {
        let x = Tensor::vector(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0]);
        let is =
            |op: &str, want: [bool; 4]| check(op).input(x.clone()).gives(Tensor::vector(&want));
        is("IsNan", [true, false, false, false]);
        is("IsInf", [false, true, true, false]);
        is("IsFinite", [false, false, false, true]);
        let x = Tensor::vector(&[bf16::NAN, bf16::ONE]);
        check("IsNan").input(x).gives(Tensor::vector(&[true, false]));
    }

    #[test]
    fn no_elements_and_one_are_fine() {
        check("Exp").input(Tensor::scalar(0.0f32)).gives(Tensor::scalar(1.0f32));
        let empty = Tensor::zeros(DType::Float, [0, 3]).unwrap();
        check("Exp").input(empty.clone()).gives(empty);
    }

    #[test]
    fn gradients_are_slopes() {
        let everywhere = [0.3f64, -0.7, 0.9, 0.05];
        for op in ["Exp", "Expm1", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh"] {
            check(op).input(Tensor::vector(&everywhere)).gradient();
        }
        for op in ["Tanh", "Asinh", "Atanh", "Sigmoid"] {
            check(op).input(Tensor::vector(&everywhere)).gradient();
        }
        for op in ["Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p"] {
            check(op).input(Tensor::vector(&[0.3f64, 1.7, 2.5])).gradient();
        }
        check("Acosh").input(Tensor::vector(&[1.3f64, 2.5])).gradient();
        let z = [Complex64::new(0.3, 0.4), Complex64::new(-0.2, 0.6)];
        for op in ["Exp", "Log", "Sin", "Cos", "Tan", "Sqrt", "Sinh", "Cosh", "Tanh", "Atan"] {
            check(op).input(Tensor::vector(&z)).gradient();
        }
    }
}
