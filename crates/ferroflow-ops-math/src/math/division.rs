//! Division, remainders and powers: ops that may fail for integers.

use super::blocks;
use super::elementwise::{BinaryKernel, binary, plan};
use super::lanes::{Lane, Lanes};
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::vector::Binary;

struct Div;
impl<T: Num> Binary<T> for Div {
    #[inline(always)]
    fn eval(a: T, b: T) -> T {
        a.div(b)
    }
}

struct DivNoNan;
impl<T: Num> Binary<T> for DivNoNan {
    #[inline(always)]
    fn eval(a: T, b: T) -> T {
        if b == T::ZERO { T::ZERO } else { a.div(b) }
    }
}

struct Xdivy;
impl<T: Num> Binary<T> for Xdivy {
    #[inline(always)]
    fn eval(a: T, b: T) -> T {
        if a == T::ZERO { T::ZERO } else { a.div(b) }
    }
}

/// Quotient rounded towards zero.
struct TruncateDiv;
/// Quotient rounded down.
struct FloorDiv;
/// Remainder with the sign of the dividend.
struct TruncateMod;
/// Remainder with the sign of the divisor.
struct FloorMod;
struct Pow;

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Binary<$t> for TruncateDiv {
            const COST: usize = 3;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a.div(b) }
        }
        impl Binary<$t> for FloorDiv {
            const COST: usize = 3;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t {
                let q = a.div(b);
                let is_inexact = q.mul(b) != a;
                #[allow(unused_comparisons)]
                if is_inexact && (a < 0) != (b < 0) { q.sub(1) } else { q }
            }
        }
        impl Binary<$t> for TruncateMod {
            const COST: usize = 3;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a.sub(a.div(b).mul(b)) }
        }
        impl Binary<$t> for FloorMod {
            const COST: usize = 3;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t {
                let r = a.sub(a.div(b).mul(b));
                #[allow(unused_comparisons)]
                if r != 0 && (r < 0) != (b < 0) { r.add(b) } else { r }
            }
        }
        impl Binary<$t> for Pow {
            const COST: usize = 10;
            #[inline(always)]
            fn eval(base: $t, exponent: $t) -> $t {
                let (mut power, mut square, mut rest) = (1 as $t, base, exponent as u64);
                while rest > 0 {
                    if rest & 1 == 1 {
                        power = power.mul(square);
                    }
                    square = square.mul(square);
                    rest >>= 1;
                }
                power
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Binary<$t> for TruncateDiv {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { (a / b).trunc() }
        }
        impl Binary<$t> for FloorDiv {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { (a / b).floor() }
        }
        impl Binary<$t> for TruncateMod {
            const COST: usize = 10;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a % b }
        }
        impl Binary<$t> for FloorMod {
            const COST: usize = 10;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t {
                let r = a % b;
                if r == 0.0 || (r < 0.0) == (b < 0.0) { r } else { r + b }
            }
        }
        impl Binary<$t> for Pow {
            const COST: usize = 15;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a.powf(b) }
        }
    )*};
}
floats!(f32 f64);

macro_rules! complexes {
    ($($t:ty)*) => {$(
        impl Binary<$t> for Pow {
            const COST: usize = 60;
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t {
                if b == <$t>::ZERO { <$t>::ONE } else { (a.ln() * b).exp() }
            }
        }
    )*};
}
complexes!(Complex32 Complex64);

/// An op on integers that checks its second argument first.
struct Guarded<T: Lane> {
    kernel: BinaryKernel<T::Wide, T>,
    refuses: fn(&T) -> bool,
    error: fn() -> Error,
}

impl<T: Lane> Kernel for Guarded<T>
where
    T: Lanes<T::Wide>,
{
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let plan = plan(ctx)?;
        let is_empty = plan.shape().elements() == 0;
        if !is_empty && ctx.input(1)?.as_slice::<T>()?.iter().any(self.refuses) {
            return Err((self.error)());
        }
        self.kernel.compute_as(ctx, &plan)
    }
}

fn by_zero() -> Error {
    err!(InvalidArgument, "Integer division by zero")
}

/// TensorFlow's doc text of the ops that round towards zero.
fn unexpected() -> Error {
    err!(
        Internal,
        "Unexpected error in binary operator (only integer div and mod should have errors)"
    )
}

fn negative_power() -> Error {
    err!(InvalidArgument, "Integers to negative integer powers are not allowed")
}

/// The kernel of a division: floats and complex numbers as they are, integers guarded against zero.
macro_rules! dividing {
    ($init:ident, $F:ty, $error:expr, [$($plain:tt)+], [$($guarded:tt)+]) => {
        if $init.dtype("T")?.is_integer() {
            per_dtype!([$($guarded)+], T => Guarded::<T> {
                kernel: binary::<$F, T>(),
                refuses: |b| *b == 0,
                error: $error,
            })($init)
        } else {
            per_dtype!([$($plain)+], T => binary::<$F, T>())($init)
        }
    };
}

fn div(init: &KernelInit<'_>) -> Result<KernelBox> {
    dividing!(init, Div, by_zero,
        [Half f16, BFloat16 bf16, Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
        [Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64])
}

fn truncate_div(init: &KernelInit<'_>) -> Result<KernelBox> {
    match init.dtype("T")? {
        DType::Half => return Ok(KernelBox::new(binary::<TruncateDivOf<f16>, f16>())),
        DType::BFloat16 => return Ok(KernelBox::new(binary::<TruncateDivOf<bf16>, bf16>())),
        _ => {}
    }
    dividing!(init, TruncateDiv, unexpected,
        [Float f32, Double f64],
        [Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64])
}

/// Quotients of halves. They are rounded to a half before they are rounded to a whole number.
struct FloorDivOf<H>(std::marker::PhantomData<H>);
struct TruncateDivOf<H>(std::marker::PhantomData<H>);
macro_rules! quotients_of_halves {
    ($($h:ty)*) => {$(
        impl Binary<f32> for FloorDivOf<$h> {
            #[inline(always)]
            fn eval(a: f32, b: f32) -> f32 { <$h>::from_f32(a / b).to_f32().floor() }
        }
        impl Binary<f32> for TruncateDivOf<$h> {
            #[inline(always)]
            fn eval(a: f32, b: f32) -> f32 { <$h>::from_f32(a / b).to_f32().trunc() }
        }
    )*};
}
quotients_of_halves!(f16 bf16);

fn floor_div(init: &KernelInit<'_>) -> Result<KernelBox> {
    match init.dtype("T")? {
        DType::Half => return Ok(KernelBox::new(binary::<FloorDivOf<f16>, f16>())),
        DType::BFloat16 => return Ok(KernelBox::new(binary::<FloorDivOf<bf16>, bf16>())),
        _ => {}
    }
    dividing!(init, FloorDiv, by_zero,
        [Float f32, Double f64],
        [Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64])
}

fn floor_mod(init: &KernelInit<'_>) -> Result<KernelBox> {
    dividing!(init, FloorMod, by_zero,
        [Half f16, BFloat16 bf16, Float f32, Double f64],
        [Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64])
}

fn modulo(init: &KernelInit<'_>) -> Result<KernelBox> {
    dividing!(init, TruncateMod, by_zero, [Half f16, BFloat16 bf16, Float f32, Double f64],
        [Int32 i32, Int64 i64])
}

fn truncate_mod(init: &KernelInit<'_>) -> Result<KernelBox> {
    dividing!(init, TruncateMod, unexpected, [Half f16, BFloat16 bf16, Float f32, Double f64],
        [Int32 i32, Int64 i64])
}

fn pow(init: &KernelInit<'_>) -> Result<KernelBox> {
    if init.dtype("T")?.is_integer() {
        per_dtype!([Int8 i8, Int16 i16, Int32 i32, Int64 i64], T => Guarded::<T> {
            kernel: binary::<Pow, T>(),
            refuses: |exponent| *exponent < 0,
            error: negative_power,
        })(init)
    } else {
        per_dtype!(FLOAT_COMPLEX, T => binary::<Pow, T>())(init)
    }
}

fn quotient<'g>(dz: Term<'g>, x: Term<'g>, y: Term<'g>) -> (Term<'g>, Term<'g>) {
    let (x, y) = (x.conj(), y.conj());
    (dz / y, dz * (-x / y / y))
}

pub(crate) fn register(c: &mut Catalog) {
    let number = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}";
    let float = "T: {half, float, bfloat16, double, complex64, complex128}";
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let rows: [(&str, &str, &str, MakeBlockKernel, &'static str, Make); 10] = [
        (
            "Div",
            number,
            "Element-wise `x / y`; integers are rounded towards zero.",
            blocks::binary::<Div>,
            "x / y",
            div,
        ),
        (
            "RealDiv",
            number,
            "Element-wise `x / y`.",
            blocks::binary::<Div>,
            "x / y",
            per_dtype!(FLOAT_COMPLEX, T => binary::<Div, T>()),
        ),
        (
            "DivNoNan",
            float,
            "Element-wise `x / y`, which is 0 where `y` is.",
            blocks::binary::<DivNoNan>,
            "y == W(0) ? W(0) : x / y",
            per_dtype!(FLOAT_COMPLEX, T => binary::<DivNoNan, T>()),
        ),
        (
            "Xdivy",
            "T: {half, bfloat16, float, double, complex64, complex128}",
            "Element-wise `x / y`, which is 0 where `x` is.",
            blocks::binary::<Xdivy>,
            "x == W(0) ? W(0) : x / y",
            per_dtype!(FLOAT_COMPLEX, T => binary::<Xdivy, T>()),
        ),
        (
            "TruncateDiv",
            number,
            "Element-wise `x / y`, rounded towards zero.",
            blocks::binary::<TruncateDiv>,
            "trunc(x / y)",
            truncate_div,
        ),
        (
            "FloorDiv",
            number,
            "Element-wise `x / y`, rounded down.",
            blocks::binary::<FloorDiv>,
            "floor(x / y)",
            floor_div,
        ),
        (
            "FloorMod",
            "T: realnumbertype",
            "Element-wise remainder of `x / y` rounded down: it has the sign of `y`.",
            blocks::binary::<FloorMod>,
            "floor_mod(x, y)",
            floor_mod,
        ),
        (
            "Mod",
            "T: {int32, int64, half, half, bfloat16, float, double}",
            "Element-wise remainder of `x / y` rounded towards zero: it has the sign of `x`.",
            blocks::binary::<TruncateMod>,
            "fmod(x, y)",
            modulo,
        ),
        (
            "TruncateMod",
            "T: {int32, int64, bfloat16, half, float, double}",
            "Element-wise remainder of `x / y` rounded towards zero: it has the sign of `x`.",
            blocks::binary::<TruncateMod>,
            "fmod(x, y)",
            truncate_mod,
        ),
        (
            "Pow",
            "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
            "Element-wise `x` to the power `y`.",
            blocks::binary::<Pow>,
            "pow(x, y)",
            pow,
        ),
    ];
    for (name, attr, doc, blocks, text, make) in rows {
        c.op(name)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: T")
            .attr(attr)
            .broadcasts()
            .blocks(blocks)
            .gpu_elementwise(gpu::FLOAT, text)
            .cpu(make);
    }

    binary_gradients! { c;
        "Div": |_, dz, x, y| quotient(dz, x, y);
        "RealDiv": |_, dz, x, y| quotient(dz, x, y);
        "DivNoNan": |_, dz, x, y| {
            let (x, y) = (x.conj(), y.conj());
            (dz.with("DivNoNan", y), dz * (-x).with("DivNoNan", y).with("DivNoNan", y))
        };
        "Xdivy": |_, dz, x, y| {
            let is_not_zero = x.with("NotEqual", x.number(0.0)).cast(x.dtype());
            (dz * is_not_zero.with("Xdivy", y), dz * (-x).with("Xdivy", y.square()))
        };
        "FloorMod": |_, dz, x, y| (dz, dz * -x.with("FloorDiv", y));
        "Pow": |g, dz, x, y| {
            let (x, y) = (x.conj(), y.conj());
            let zero = x.number(0.0);
            // No gradient for the exponent where the base is negative.
            let test = if x.dtype().is_complex() { "NotEqual" } else { "Greater" };
            let has_log = x.with(test, zero);
            let log = g.select(has_log, g.select(has_log, x, x.number(1.0)).log(), zero);
            (dz * y * x.with("Pow", y - 1.0), dz * g.output(0).conj() * log)
        };
    }
    c.no_gradient(&["FloorDiv", "TruncateDiv"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn on<T: Element>(op: &str, a: &[T], b: &[T]) -> Check<'static> {
        check(op).input(Tensor::vector(a)).input(Tensor::vector(b))
    }

    const A: [i32; 9] = [7, -7, 7, -7, i32::MIN, i32::MIN, 0, 5, -5];
    const B: [i32; 9] = [2, 2, -2, -2, -1, 1, 3, 7, 7];

    #[test]
    fn integer_quotients_round_as_named() {
        let m = i32::MIN;
        on("Div", &A, &B).gives(Tensor::vector(&[3, -3, -3, 3, m, m, 0, 0, 0]));
        on("TruncateDiv", &A, &B).gives(Tensor::vector(&[3, -3, -3, 3, m, m, 0, 0, 0]));
        on("FloorDiv", &A, &B).gives(Tensor::vector(&[3, -4, -4, 3, m, m, 0, 0, -1]));
        on("FloorDiv", &[200u8, 7], &[3, 7]).gives(Tensor::vector(&[66u8, 1]));
    }

    #[test]
    fn integer_remainders_have_the_sign_they_should() {
        on("Mod", &A, &B).gives(Tensor::vector(&[1, -1, 1, -1, 0, 0, 0, 5, -5]));
        on("TruncateMod", &A, &B).gives(Tensor::vector(&[1, -1, 1, -1, 0, 0, 0, 5, -5]));
        on("FloorMod", &A, &B).gives(Tensor::vector(&[1, 1, -1, -1, 0, 0, 0, 5, 2]));
        on("FloorMod", &[200u8, 7], &[3, 7]).gives(Tensor::vector(&[2u8, 0]));
    }

    #[test]
    fn integers_are_not_divided_by_zero() {
        for op in ["Div", "FloorDiv", "FloorMod", "Mod"] {
            on(op, &[1, 2], &[1, 0]).fails(Code::InvalidArgument, "Integer division by zero");
            on::<i32>(op, &[], &[0]).gives(Tensor::vector::<i32>(&[]));
        }
        on("TruncateDiv", &[1, 2], &[1, 0]).fails(Code::Internal, "only integer div and mod");
    }

    #[test]
    fn float_quotients_and_remainders() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let a = [7.0, -7.0, 7.0, -7.0, 1.5, -1.5, inf, 5.0, -5.0, nan, 5.0, 0.0];
        let b = [2.0, 2.0, -2.0, -2.0, 0.4, 0.4, 2.0, inf, inf, 1.0, 0.0, 0.0];
        on("FloorDiv", &a, &b).gives(Tensor::vector(&[
            3.0, -4.0, -4.0, 3.0, 3.0, -4.0, inf, 0.0, -0.0, nan, inf, nan,
        ]));
        on("TruncateDiv", &a, &b).gives(Tensor::vector(&[
            3.0, -3.0, -3.0, 3.0, 3.0, -3.0, inf, 0.0, -0.0, nan, inf, nan,
        ]));
        on("FloorMod", &a, &b).gives(Tensor::vector(&[
            1.0, 1.0, -1.0, -1.0, 0.29999998, 0.10000002, nan, 5.0, inf, nan, nan, nan,
        ]));
        on("TruncateMod", &a, &b).gives(Tensor::vector(&[
            1.0,
            -1.0,
            1.0,
            -1.0,
            0.29999998,
            -0.29999998,
            nan,
            5.0,
            -5.0,
            nan,
            nan,
            nan,
        ]));
    }

    #[test]
    fn quotients_without_nan() {
        let (a, b) = ([1.0f64, 0.0, 4.0], [0.0, 0.0, 2.0]);
        on("DivNoNan", &a, &b).gives(Tensor::vector(&[0.0, 0.0, 2.0]));
        on("Xdivy", &a, &b).gives(Tensor::vector(&[f64::INFINITY, 0.0, 2.0]));
        on("RealDiv", &a, &b).gives(Tensor::vector(&[f64::INFINITY, f64::NAN, 2.0]));
        let z = |re, im| Complex32::new(re, im);
        on("DivNoNan", &[z(1.0, 2.0), z(3.0, 0.0)], &[z(0.0, 0.0), z(0.0, 1.0)])
            .gives(Tensor::vector(&[z(0.0, 0.0), z(0.0, -3.0)]));
    }

    #[test]
    fn powers() {
        on("Pow", &[2.0f32, 3.0, 4.0, -1.5], &[3.0, 0.5, -1.0, 0.4]).gives(Tensor::vector(&[
            8.0f32,
            1.7320508,
            0.25,
            f32::NAN,
        ]));
        on("Pow", &[2, -3, 0, 2, 5, 3], &[10, 3, 0, 31, 0, 40]).gives(Tensor::vector(&[
            1024,
            -27,
            1,
            i32::MIN,
            1,
            689956897,
        ]));
        on("Pow", &[1, 2], &[-1, 0])
            .fails(Code::InvalidArgument, "Integers to negative integer powers are not allowed");
        let z = |re, im| Complex32::new(re, im);
        on("Pow", &[z(3.0, 0.0), z(1.0, 2.0)], &[z(0.0, 1.0), z(0.0, 0.0)])
            .gives(Tensor::vector(&[z(0.4548324, 0.8905771), z(1.0, 0.0)]));
    }

    #[test]
    fn gradients_are_slopes() {
        let (x, y) = ([0.5f64, 1.5, 2.0], [1.25f64, 0.7, 3.0]);
        for op in ["Div", "RealDiv", "DivNoNan", "Xdivy", "Pow", "FloorMod"] {
            on(op, &x, &y).gradient();
        }
    }
}
