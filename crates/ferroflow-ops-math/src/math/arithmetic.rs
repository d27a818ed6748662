//! Addition, multiplication and similar ops, over all numbers.

use super::blocks;
use super::elementwise::{binary, binary_in, unary};
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::vector::{Binary, Unary};

/// Formulas of one argument over a trait's methods: `Name: Trait, |x| formula;`.
macro_rules! unary_formulas {
    ($($name:ident: $bound:ident, |$x:ident| $formula:expr;)*) => {$(
        struct $name;
        impl<T: $bound> Unary<T> for $name {
            #[inline(always)]
            fn eval($x: T) -> T { $formula }
        }
    )*};
}

/// Formulas of two arguments over a trait's methods.
macro_rules! binary_formulas {
    ($($name:ident: $bound:ident, |$a:ident, $b:ident| $formula:expr;)*) => {$(
        pub struct $name;
        impl<T: $bound> Binary<T> for $name {
            #[inline(always)]
            fn eval($a: T, $b: T) -> T { $formula }
        }
    )*};
}

unary_formulas! {
    Abs: Real, |x| x.abs();
    Neg: Num, |x| x.neg();
    Square: Num, |x| x.mul(x);
}

binary_formulas! {
    Add: Num, |a, b| a.add(b);
    Sub: Num, |a, b| a.sub(b);
    Mul: Num, |a, b| a.mul(b);
    Maximum: Real, |a, b| a.max(b);
    Minimum: Real, |a, b| a.min(b);
    // 0 even if the other factor is infinite or NaN.
    MulNoNan: Num, |a, b| if b == T::ZERO { T::ZERO } else { a.mul(b) };
}

/// -1, 0 or 1, or a complex number of length 1; NaN stays.
struct Sign;

macro_rules! sign {
    ($($t:ty)*) => {$(
        impl Unary<$t> for Sign {
            #[inline(always)]
            fn eval(x: $t) -> $t {
                if x > 0 as $t { 1 as $t } else if x < 0 as $t { -1 as $t } else { x }
            }
        }
    )*};
}
sign!(i8 i16 i32 i64);

macro_rules! float_sign {
    ($($t:ty: $complex:ty),*) => {$(
        impl Unary<$t> for Sign {
            #[inline(always)]
            fn eval(x: $t) -> $t {
                let sign = if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
                if x.is_nan() { x } else { sign }
            }
        }
        impl Unary<$complex> for Sign {
            #[inline(always)]
            fn eval(z: $complex) -> $complex {
                if z == <$complex>::ZERO { z } else { z / z.norm() }
            }
        }
        // |a - b|^2, which is real.
        impl Binary<$complex> for SquaredDifference {
            #[inline(always)]
            fn eval(a: $complex, b: $complex) -> $complex {
                <$complex>::new((a - b).norm_sqr(), 0.0)
            }
        }
    )*};
}
float_sign!(f32: Complex32, f64: Complex64);

struct SquaredDifference;
macro_rules! squared_difference {
    ($($t:ty)*) => {$(
        impl Binary<$t> for SquaredDifference {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t {
                let d = a.sub(b);
                d.mul(d)
            }
        }
    )*};
}
squared_difference!(f32 f64 i32 i64);

/// Addition of strings joins them.
fn join_strings(ctx: &mut Ctx<'_>) -> Result<()> {
    let plan = super::elementwise::plan(ctx)?;
    let mut out = ctx.alloc(DType::String, plan.shape().clone())?;
    let (a, b) = (ctx.input(0)?.strings()?, ctx.input(1)?.strings()?);
    let to = out.strings_mut()?;
    plan.runs(0..to.len(), |at, [i, j], len| {
        for (n, to) in to[at..at + len].iter_mut().enumerate() {
            let x = &a[if plan.repeats_in_run(0) { i } else { i + n }];
            let y = &b[if plan.repeats_in_run(1) { j } else { j + n }];
            *to = [x.as_ref(), y.as_ref()].concat().into();
        }
    });
    ctx.set(0, out)
}

fn add(init: &KernelInit<'_>) -> Result<KernelBox> {
    if init.dtype("T")? == DType::String {
        return Ok(KernelBox::new(join_strings));
    }
    per_dtype!(NUMBER, T => binary::<Add, T>())(init)
}

/// The gradient goes to `x` where `x` was taken, otherwise to `y`.
fn one_of<'g>(g: &GradientScope<'g>, dz: Term<'g>, takes_x: Term<'g>) -> (Term<'g>, Term<'g>) {
    let zero = dz.number(0.0);
    (g.select(takes_x, dz, zero), g.select(takes_x, zero, dz))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Abs")
        .doc("Element-wise absolute value.")
        .input("x: T")
        .output("y: T")
        .attr("T: {bfloat16, half, float, double, int8, int16, int32, int64}")
        .shape(shape::same_as_input)
        .blocks(blocks::unary::<Abs>)
        .gpu_elementwise(gpu::REAL, "magnitude(x)")
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8, Int16 i16,
            Int32 i32, Int64 i64], T => unary::<Abs, T>()));
    let signed =
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
    c.op("Neg")
        .doc("Element-wise `-x`.")
        .input("x: T")
        .output("y: T")
        .attr(signed)
        .involution()
        .shape(shape::same_as_input)
        .blocks(blocks::unary::<Neg>)
        .gpu_elementwise(gpu::REAL, "-x")
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8, Int16 i16,
            Int32 i32, Int64 i64, Complex64 Complex32, Complex128 Complex64], T => unary::<Neg, T>()));
    c.op("Sign")
        .doc("Element-wise sign: -1, 0 or 1; for complex numbers `x / |x|`, or 0.")
        .input("x: T")
        .output("y: T")
        .attr(signed)
        .shape(shape::same_as_input)
        .blocks(blocks::unary::<Sign>)
        .gpu_elementwise(gpu::REAL, "x > W(0) ? W(1) : x < W(0) ? W(-1) : x")
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8, Int16 i16,
            Int32 i32, Int64 i64, Complex64 Complex32, Complex128 Complex64], T => unary::<Sign, T>()));
    c.op("Square")
        .doc("Element-wise `x * x`.")
        .input("x: T")
        .output("y: T")
        .attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}")
        .shape(shape::same_as_input)
        .blocks(blocks::unary::<Square>)
        .gpu_elementwise(gpu::REAL, "x * x")
        .cpu(per_dtype!(NUMBER, T => unary::<Square, T>()));
    c.op("Add")
        .doc("Element-wise `x + y`; strings are joined.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}")
        .broadcasts()
        .blocks(blocks::binary::<Add>)
        .gpu_elementwise(gpu::REAL, "x + y")
        .cpu(add);
    c.op("AddV2")
        .doc("Element-wise `x + y`.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}")
        .commutative()
        .aggregate()
        .broadcasts()
        .blocks(blocks::binary::<Add>)
        .gpu_elementwise(gpu::REAL, "x + y")
        .cpu(add);
    c.op("Sub")
        .doc("Element-wise `x - y`.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}")
        .broadcasts()
        .blocks(blocks::binary::<Sub>)
        .gpu_elementwise(gpu::REAL, "x - y")
        .cpu(per_dtype!(NUMBER, T => binary::<Sub, T>()));
    c.op("Mul")
        .doc("Element-wise `x * y`.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}")
        .commutative()
        .broadcasts()
        .blocks(blocks::binary::<Mul>)
        .gpu_elementwise(gpu::REAL, "x * y")
        .cpu(per_dtype!(NUMBER, T => binary::<Mul, T>()));
    c.op("MulNoNan")
        .doc("Element-wise `x * y`, which is 0 where `y` is, whatever `x`.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, complex64, complex128}")
        .broadcasts()
        .blocks(blocks::binary::<MulNoNan>)
        .gpu_elementwise(gpu::FLOAT, "y == W(0) ? W(0) : x * y")
        .cpu(per_dtype!(FLOAT_COMPLEX, T => binary::<MulNoNan, T>()));
    c.op("Maximum")
        .doc("Element-wise larger of `x` and `y`; NaN where either is.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: realnumbertype")
        .broadcasts()
        .blocks(blocks::binary::<Maximum>)
        .gpu_elementwise(gpu::REAL, "larger(x, y)")
        .cpu(per_dtype!(REAL, T => binary::<Maximum, T>()));
    c.op("Minimum")
        .doc("Element-wise smaller of `x` and `y`; NaN where either is.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: realnumbertype")
        .broadcasts()
        .blocks(blocks::binary::<Minimum>)
        .gpu_elementwise(gpu::REAL, "smaller(x, y)")
        .cpu(per_dtype!(REAL, T => binary::<Minimum, T>()));
    c.op("SquaredDifference")
        .doc("Element-wise `conj(x - y) * (x - y)`.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
        .commutative()
        .broadcasts()
        .blocks(blocks::binary::<SquaredDifference>)
        .gpu_elementwise(gpu::REAL, "(x - y) * (x - y)")
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int32 i32, Int64 i64,
            Complex64 Complex32, Complex128 Complex64], T => {
            binary_in::<SquaredDifference, <T as super::lanes::Lane>::Wide, T>()
        }));

    unary_gradients! { c;
        "Abs": |_, dy, x, _| dy * x.apply("Sign");
        "Neg": |_, dy, _, _| -dy;
        "Sign": |_, _, x, _| x.zeros_like();
        "Square": |_, dy, x, _| dy * (x.conj() * 2.0);
    }
    binary_gradients! { c;
        "Add": |_, dz, _, _| (dz, dz);
        "AddV2": |_, dz, _, _| (dz, dz);
        "Sub": |_, dz, _, _| (dz, -dz);
        "Mul": |_, dz, x, y| (dz * y.conj(), dz * x.conj());
        "MulNoNan": |_, dz, x, y| (dz.with("MulNoNan", y), x.with("MulNoNan", dz));
        "Maximum": |g, dz, x, y| one_of(g, dz, x.with("GreaterEqual", y));
        "Minimum": |g, dz, x, y| one_of(g, dz, x.with("LessEqual", y));
        "SquaredDifference": |_, dz, x, y| {
            let dx = dz * 2.0 * (x - y).conj();
            (dx, -dx)
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn integers_wrap() {
        check("Abs").maps([i32::MIN, -5, 5], [i32::MIN, 5, 5]);
        check("Neg").maps([i8::MIN, 3], [i8::MIN, -3]);
        check("Square").maps([1i32 << 20, -3], [0, 9]);
        let x = Tensor::vector(&[200u8, 7]);
        check("AddV2").input(x.clone()).input(x.clone()).gives(Tensor::vector(&[144u8, 14]));
        check("Mul").input(x.clone()).input(x).gives(Tensor::vector(&[64u8, 49]));
    }

    #[test]
    fn sign_keeps_nan_and_normalises_complex_numbers() {
        check("Sign").maps([-3i32, 0, 5], [-1, 0, 1]);
        let nan = f32::NAN;
        check("Sign").maps([nan, f32::NEG_INFINITY, 0.0, 2.0], [nan, -1.0, 0.0, 1.0]);
        let z = |re, im| Complex32::new(re, im);
        check("Sign").maps([z(0.0, 0.0), z(3.0, 4.0)], [z(0.0, 0.0), z(0.6, 0.8)]);
    }

    #[test]
    fn maximum_and_minimum_keep_nan() {
        let nan = f32::NAN;
        let (a, b) = (Tensor::vector(&[nan, 1.0, 1.0]), Tensor::vector(&[1.0, nan, 2.0]));
        check("Maximum").input(a.clone()).input(b.clone()).gives(Tensor::vector(&[nan, nan, 2.0]));
        check("Minimum").input(a).input(b).gives(Tensor::vector(&[nan, nan, 1.0]));
        let (a, b) = (Tensor::vector(&[1i8, 5]), Tensor::scalar(3i8));
        check("Maximum").input(a).input(b).gives(Tensor::vector(&[3i8, 5]));
    }

    #[test]
    fn complex_numbers_add_and_multiply() {
        let z = |re, im| Complex64::new(re, im);
        let (a, b) = (Tensor::scalar(z(1.0, 2.0)), Tensor::scalar(z(3.0, -1.0)));
        check("Add").input(a.clone()).input(b.clone()).gives(Tensor::scalar(z(4.0, 1.0)));
        check("Mul").input(a.clone()).input(b.clone()).gives(Tensor::scalar(z(5.0, 5.0)));
        check("SquaredDifference").input(a).input(b).gives(Tensor::scalar(z(13.0, 0.0)));
    }

    #[test]
    fn strings_are_joined() {
        let s = |t: &[&'static str]| {
            Tensor::from_strings([t.len()], t.iter().map(|&t| t.into()).collect()).unwrap()
        };
        check("Add").input(s(&["a", "b"])).input(Tensor::string("c")).gives(s(&["ac", "bc"]));
    }

    #[test]
    fn mul_no_nan_is_zero_where_y_is() {
        let (x, y) = (Tensor::vector(&[f32::INFINITY, f32::NAN, 2.0]), [0.0f32, 0.0, 3.0]);
        check("MulNoNan")
            .input(x)
            .input(Tensor::vector(&y))
            .gives(Tensor::vector(&[0.0f32, 0.0, 6.0]));
    }

    #[test]
    fn unlike_shapes_are_refused() {
        let zeros = |dims: [usize; 2]| Tensor::zeros(DType::Float, dims).unwrap();
        check("AddV2")
            .input(zeros([2, 3]))
            .input(zeros([2, 4]))
            .fails(Code::InvalidArgument, "Incompatible shapes: [2,3] vs. [2,4]");
        check("AddV2").input(zeros([0, 3])).input(zeros([1, 1])).gives(zeros([0, 3]));
    }

    #[test]
    fn gradients_undo_broadcasting() {
        let matrix = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        let row = Tensor::vector(&[1.5f64, -0.5, 0.75]);
        let column = Tensor::from_slice([2, 1], &[1.25f64, -2.0]).unwrap();
        for op in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"] {
            let like = Tensor::from_slice([2, 3], &[0.75f64, 1.5, -2.0, 0.5, 0.3, 1.0]).unwrap();
            for other in [&row, &column, &like, &Tensor::scalar(0.3f64)] {
                check(op).input(matrix.clone()).input(other.clone()).gradient();
                check(op).input(other.clone()).input(matrix.clone()).gradient();
            }
        }
        for op in ["Abs", "Neg", "Square"] {
            check(op).input(matrix.clone()).gradient();
        }
        let z = |re, im| Complex64::new(re, im);
        let (a, b) = (Tensor::vector(&[z(1.0, 2.0)]), Tensor::vector(&[z(0.5, -1.0), z(2.0, 0.5)]));
        check("Mul").input(a.clone()).input(b.clone()).gradient();
        check("Sub").input(a).input(b).gradient();
    }
}
