//! Functions of complex numbers, and the ops that make them and take them apart.

use super::elementwise::{compare, map, unary};
use crate::prelude::*;
use ferroflow_op_kit::vector::{Binary, Unary};

/// `1 / z`; NaN for 0, as in TensorFlow.
pub(crate) fn inverse(z: Complex64) -> Complex64 {
    Complex64::ONE / z
}

/// `1 / sqrt(z)`; infinite at 0.
pub(crate) fn inverse_sqrt(z: Complex64) -> Complex64 {
    match z == Complex64::ZERO {
        true => Complex64::new(f64::INFINITY, f64::NAN),
        false => inverse(z.sqrt()),
    }
}

/// `exp(z) - 1`, without cancellation for small `z`.
pub(crate) fn exp_m1(z: Complex64) -> Complex64 {
    // exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y / 2)^2.
    let half = (z.im / 2.0).sin();
    Complex64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
}

/// `log(1 + z)`, without cancellation for small `z`.
pub(crate) fn ln_1p(z: Complex64) -> Complex64 {
    if z == -Complex64::ONE {
        // The pole is infinite without an angle.
        return Complex64::new(f64::NEG_INFINITY, f64::NAN);
    }
    // |1 + z|^2 - 1 = 2 x + x^2 + y^2.
    let excess = 2.0 * z.re + z.re * z.re + z.im * z.im;
    Complex64::new(0.5 * excess.ln_1p(), z.im.atan2(1.0 + z.re))
}

pub(crate) fn tanh(z: Complex64) -> Complex64 {
    if z.re.abs() > 20.0 {
        // |tanh - 1| < 4 exp(-40); the imaginary part is exact to rounding.
        let decay = 4.0 * (-2.0 * z.re.abs()).exp();
        return Complex64::new(1f64.copysign(z.re), decay * (2.0 * z.im).sin() / 2.0);
    }
    let (s, c) = ((2.0 * z.re).sinh(), (2.0 * z.re).cosh() + (2.0 * z.im).cos());
    Complex64::new(s / c, (2.0 * z.im).sin() / c)
}

/// `f(iz) / i`: a circular function from the hyperbolic one.
fn turned(f: fn(Complex64) -> Complex64, z: Complex64) -> Complex64 {
    let w = f(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

pub(crate) fn tan(z: Complex64) -> Complex64 {
    turned(tanh, z)
}

pub(crate) fn asin(z: Complex64) -> Complex64 {
    turned(asinh, z)
}

pub(crate) fn atan(z: Complex64) -> Complex64 {
    turned(atanh, z)
}

pub(crate) fn acos(z: Complex64) -> Complex64 {
    let w = asin(z);
    Complex64::new(std::f64::consts::FRAC_PI_2 - w.re, -w.im)
}

/// Uses sqrt(1 + iz) and sqrt(1 - iz), which keep both parts precise (Kahan).
pub(crate) fn asinh(z: Complex64) -> Complex64 {
    let plus = Complex64::new(1.0 - z.im, z.re).sqrt();
    let minus = Complex64::new(1.0 + z.im, -z.re).sqrt();
    Complex64::new(
        (minus.re * plus.im - plus.re * minus.im).asinh(),
        z.im.atan2(plus.re * minus.re - plus.im * minus.im),
    )
}

pub(crate) fn acosh(z: Complex64) -> Complex64 {
    let (minus, plus) = ((z - 1.0).sqrt(), (z + 1.0).sqrt());
    Complex64::new((minus.conj() * plus).re.asinh(), 2.0 * minus.im.atan2(plus.re))
}

pub(crate) fn atanh(z: Complex64) -> Complex64 {
    let far = |s: f64| (1.0 + s * z.re).powi(2) + z.im * z.im;
    let re = 0.25 * (4.0 * z.re / far(-1.0)).ln_1p();
    let im = 0.5 * (2.0 * z.im).atan2((1.0 - z.re) * (1.0 + z.re) - z.im * z.im);
    Complex64::new(re, im)
}

struct RealPart;
struct ImagPart;
struct Angle;
struct ComplexAbs;
struct Conj;
struct MakeComplex;

macro_rules! parts {
    ($($complex:ty: $part:ty),*) => {$(
        impl Unary<$complex, $part> for RealPart {
            #[inline(always)]
            fn eval(z: $complex) -> $part { z.re }
        }
        impl Unary<$complex, $part> for ImagPart {
            #[inline(always)]
            fn eval(z: $complex) -> $part { z.im }
        }
        impl Unary<$complex, $part> for Angle {
            const COST: usize = 20;
            #[inline(always)]
            fn eval(z: $complex) -> $part { z.im.atan2(z.re) }
        }
        impl Unary<$complex, $part> for ComplexAbs {
            const COST: usize = 5;
            #[inline(always)]
            fn eval(z: $complex) -> $part { z.re.hypot(z.im) }
        }
        impl Unary<$complex> for Conj {
            #[inline(always)]
            fn eval(z: $complex) -> $complex { <$complex>::new(z.re, -z.im) }
        }
        impl Binary<$part, $complex> for MakeComplex {
            #[inline(always)]
            fn eval(re: $part, im: $part) -> $complex { <$complex>::new(re, im) }
        }
    )*};
}
parts!(Complex32: f32, Complex64: f64);

/// Variants are returned unchanged.
fn conjugate(init: &KernelInit<'_>) -> Result<KernelBox> {
    match init.dtype("T")? {
        DType::Variant => Ok(KernelBox::new(|ctx: &mut Ctx<'_>| {
            let value = ctx.take(0)?;
            ctx.set(0, value)
        })),
        _ => per_dtype!(COMPLEX, T => unary::<Conj, T>())(init),
    }
}

/// The kernel of a function to the parts of a complex number.
fn part_of<F>(init: &KernelInit<'_>) -> Result<KernelBox>
where
    F: Unary<Complex32, f32> + Unary<Complex64, f64>,
{
    match (init.dtype("T")?, init.dtype("Tout")?) {
        (DType::Complex64, DType::Float) => Ok(KernelBox::new(map::<F, Complex32, f32>())),
        (DType::Complex128, DType::Double) => Ok(KernelBox::new(map::<F, Complex64, f64>())),
        (t, other) => Err(unsupported(init, "Tout", other).context(format!("T = {t}"))),
    }
}

fn complex(init: &KernelInit<'_>) -> Result<KernelBox> {
    match (init.dtype("T")?, init.dtype("Tout")?) {
        (DType::Float, DType::Complex64) => {
            Ok(KernelBox::new(compare::<MakeComplex, f32, Complex32>()))
        }
        (DType::Double, DType::Complex128) => {
            Ok(KernelBox::new(compare::<MakeComplex, f64, Complex64>()))
        }
        (t, other) => Err(unsupported(init, "Tout", other).context(format!("T = {t}"))),
    }
}

fn from_parts<'g>(g: &GradientScope<'g>, real: Term<'g>, imaginary: Term<'g>) -> Term<'g> {
    let dtype = if real.dtype() == DType::Double { DType::Complex128 } else { DType::Complex64 };
    g.call_with("Complex", &[real, imaginary], Attrs::new().with("Tout", dtype))
}

/// The real or imaginary part, as a number of the dtype of `like`.
fn part<'g>(z: Term<'g>, op: &str, like: Term<'g>) -> Term<'g> {
    z.apply_with(op, Attrs::new().with("Tout", like.dtype()))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Complex")
        .doc("Complex numbers from their real and imaginary parts.")
        .input("real: T")
        .input("imag: T")
        .output("out: Tout")
        .attr("T: {float, double} = DT_FLOAT")
        .attr("Tout: {complex64, complex128} = DT_COMPLEX64")
        .broadcasts()
        .cpu(complex);
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let rows: [(&str, &str, Make); 3] = [
        ("Real", "The real parts.", part_of::<RealPart>),
        ("Imag", "The imaginary parts.", part_of::<ImagPart>),
        ("Angle", "The arguments, from -pi to pi.", part_of::<Angle>),
    ];
    for (op, doc, make) in rows {
        c.op(op)
            .doc(doc)
            .input("input: T")
            .output("output: Tout")
            .attr("T: {complex64, complex128} = DT_COMPLEX64")
            .attr("Tout: {float, double} = DT_FLOAT")
            .shape(shape::same_as_input)
            .cpu(make);
    }
    c.op("ComplexAbs")
        .doc("The absolute values of complex numbers.")
        .input("x: T")
        .output("y: Tout")
        .attr("T: {complex64, complex128} = DT_COMPLEX64")
        .attr("Tout: {float, double} = DT_FLOAT")
        .shape(shape::same_as_input)
        .cpu(part_of::<ComplexAbs>);
    c.op("Conj")
        .doc("The complex conjugates.")
        .input("input: T")
        .output("output: T")
        .attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
        .shape(shape::same_as_input)
        .cpu(conjugate);
    binary_gradients! { c;
        "Complex": |_, dz, x, _| (part(dz, "Real", x), part(dz, "Imag", x));
    }
    unary_gradients! { c;
        "Real": |g, dy, _, _| from_parts(g, dy, dy.zeros_like());
        "Imag": |g, dy, _, _| from_parts(g, dy.zeros_like(), dy);
        "Conj": |_, dy, _, _| dy.conj();
        "Angle": |g, dy, x, _| {
            let turned = from_parts(g, part(x, "Imag", dy), part(x, "Real", dy));
            -from_parts(g, dy, dy.zeros_like()) * turned.reciprocal()
        };
        "ComplexAbs": |g, dy, x, y| {
            (from_parts(g, dy, dy.zeros_like()) * x).with("DivNoNan", from_parts(g, y, y.zeros_like()))
        };
    }
}

#[cfg(test)]
// Expected values are what TensorFlow prints.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn z(re: f64, im: f64) -> Complex64 {
        Complex64::new(re, im)
    }

    #[test]
    fn complex_functions_have_their_values() {
        // At 1+2i, -2-0.5i and 2, computed with TensorFlow.
        let x = [z(1.0, 2.0), z(-2.0, -0.5), z(2.0, 0.0), z(1e-10, 0.0)];
        let rows: [(&str, [Complex64; 4]); 17] = [
            (
                "Sqrt",
                [
                    z(1.27201965, 0.78615138),
                    z(0.175432056, -1.42505312),
                    z(1.41421356, 0.0),
                    z(1e-5, 0.0),
                ],
            ),
            (
                "Rsqrt",
                [
                    z(0.568864481, -0.351577584),
                    z(0.0850970469, 0.6912523),
                    z(0.707106781, 0.0),
                    z(1e5, 0.0),
                ],
            ),
            ("Reciprocal", [z(0.2, -0.4), z(-0.470588235, 0.117647059), z(0.5, 0.0), z(1e10, 0.0)]),
            (
                "Exp",
                [
                    z(-1.13120438, 2.47172667),
                    z(0.118767885, -0.0648831911),
                    z(7.3890561, 0.0),
                    z(1.0, 0.0),
                ],
            ),
            (
                "Expm1",
                [
                    z(-2.13120438, 2.47172667),
                    z(-0.881232115, -0.0648831911),
                    z(6.3890561, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Log",
                [
                    z(0.80471896, 1.10714872),
                    z(0.72345949, -2.89661399),
                    z(0.69314718, 0.0),
                    z(-23.02585093, 0.0),
                ],
            ),
            (
                "Log1p",
                [
                    z(1.03972077, 0.78539816),
                    z(0.111571776, -2.67794504),
                    z(1.09861229, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Sin",
                [
                    z(3.16577851, 1.95960104),
                    z(-1.02534739, 0.21685216),
                    z(0.909297427, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Tan",
                [
                    z(0.0338128261, 1.01479362),
                    z(0.850878121, -1.32128658),
                    z(-2.18503986, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Asin",
                [
                    z(0.427078586, 1.52857092),
                    z(-1.29304207, -1.3618009),
                    z(1.57079633, 1.3169579),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Acos",
                [
                    z(1.14371774, -1.52857092),
                    z(2.8638384, 1.3618009),
                    z(0.0, -1.3169579),
                    z(1.57079633, 0.0),
                ],
            ),
            (
                "Atan",
                [
                    z(1.33897252, 0.402359478),
                    z(-1.12655644, -0.0964156202),
                    z(1.10714872, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Tanh",
                [
                    z(1.16673626, -0.243458201),
                    z(-0.97994085, -0.0302159873),
                    z(0.96402758, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Asinh",
                [
                    z(1.46935174, 1.06344002),
                    z(-1.46571535, -0.22101864),
                    z(1.44363548, 0.0),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Acosh",
                [
                    z(1.52857092, 1.14371774),
                    z(1.3618009, -2.8638384),
                    z(1.3169579, 0.0),
                    z(0.0, 1.57079633),
                ],
            ),
            (
                "Atanh",
                [
                    z(0.173286795, 1.17809725),
                    z(-0.50037, -1.42154686),
                    z(0.549306144, 1.57079633),
                    z(1e-10, 0.0),
                ],
            ),
            (
                "Sigmoid",
                [
                    z(1.02141536, 0.40343871),
                    z(0.10915585, -0.0516647),
                    z(0.88079708, 0.0),
                    z(0.5, 0.0),
                ],
            ),
        ];
        for (op, want) in rows {
            check(op).maps(x, want);
            let single = |v: [Complex64; 4]| v.map(|z| Complex32::new(z.re as f32, z.im as f32));
            check(op).maps(single(x), single(want));
        }
        check("Tanh").maps([z(100.0, 1.0)], [z(1.0, 0.0)]);
    }

    #[test]
    fn complex_numbers_are_made_and_taken_apart() {
        let v = Tensor::vector(&[z(3.0, 4.0), z(0.0, -1.0)]);
        let part = |op: &str, want: [f64; 2]| {
            check(op).attr("Tout", DType::Double).input(v.clone()).gives(Tensor::vector(&want));
        };
        part("Real", [3.0, 0.0]);
        part("Imag", [4.0, -1.0]);
        part("ComplexAbs", [5.0, 1.0]);
        part("Angle", [0.9272952180016122, -1.5707963267948966]);
        check("Conj").input(v).gives(Tensor::vector(&[z(3.0, -4.0), z(0.0, 1.0)]));
        check("Complex")
            .input(Tensor::vector(&[1.0f32, 2.0]))
            .input(Tensor::scalar(3.0f32))
            .gives(Tensor::vector(&[Complex32::new(1.0, 3.0), Complex32::new(2.0, 3.0)]));
    }

    #[test]
    fn parts_must_fit() {
        check("Real")
            .attr("Tout", DType::Double)
            .input(Tensor::scalar(Complex32::new(1.0, 1.0)))
            .fails(Code::Unimplemented, "Tout = double");
    }
}
