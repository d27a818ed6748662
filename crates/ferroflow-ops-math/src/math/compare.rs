//! Comparisons.

use super::broadcast::Broadcast;
use super::elementwise::{compare, plan};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise};
use ferroflow_op_kit::vector::Binary;

/// Rows of `Name, |a, b| test` over ordered elements.
macro_rules! tests {
    ($($name:ident: $bound:path, |$a:ident, $b:ident| $test:expr;)*) => {$(
        struct $name;
        impl<T: $bound> Binary<T, bool> for $name {
            #[inline(always)]
            fn eval($a: T, $b: T) -> bool { $test }
        }
    )*};
}
tests! {
    Less: PartialOrd, |a, b| a < b;
    LessEqual: PartialOrd, |a, b| a <= b;
    Greater: PartialOrd, |a, b| a > b;
    GreaterEqual: PartialOrd, |a, b| a >= b;
    Equal: PartialEq, |a, b| a == b;
    NotEqual: PartialEq, |a, b| a != b;
}

/// Equal or NotEqual.
struct Equality {
    /// The result for elements that differ.
    differs: bool,
    /// Whether shapes that do not broadcast are an error. Otherwise they count as different.
    is_strict: bool,
    /// For comparable shapes.
    kernel: Option<KernelBox>,
}

impl Kernel for Equality {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (a, b) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
        if !self.is_strict && Broadcast::new([a, b]).is_none() {
            return ctx.set(0, Tensor::scalar(self.differs));
        }
        match &self.kernel {
            Some(KernelBox::Sync(kernel)) => kernel.compute(ctx),
            _ => compare_strings(ctx, self.differs),
        }
    }
}

fn compare_strings(ctx: &mut Ctx<'_>, differs: bool) -> Result<()> {
    let plan = plan(ctx)?;
    let mut out = ctx.alloc(DType::Bool, plan.shape().clone())?;
    let (a, b) = (ctx.input(0)?.strings()?, ctx.input(1)?.strings()?);
    let to = out.as_mut_slice::<bool>()?;
    plan.runs(0..to.len(), |at, [i, j], len| {
        for (n, to) in to[at..at + len].iter_mut().enumerate() {
            let x = &a[if plan.repeats_in_run(0) { i } else { i + n }];
            let y = &b[if plan.repeats_in_run(1) { j } else { j + n }];
            *to = (x != y) == differs;
        }
    });
    ctx.set(0, out)
}

/// The kernel of Equal or NotEqual, `F` over all elements that are plain bytes.
macro_rules! equality {
    ($init:ident, $F:ty, $differs:literal) => {{
        let kernel = match $init.dtype("T")? {
            DType::String => None,
            _ => Some(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8,
                Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
                Bool bool, Complex64 Complex32, Complex128 Complex64, QInt8 i8, QUInt8 u8,
                QInt16 i16, QUInt16 u16, QInt32 i32], T => compare::<$F, T, bool>())($init)?),
        };
        let is_strict = $init.bool("incompatible_shape_error")?;
        Ok(KernelBox::new(Equality { differs: $differs, is_strict, kernel }))
    }};
}

fn equal(init: &KernelInit<'_>) -> Result<KernelBox> {
    equality!(init, Equal, false)
}

fn not_equal(init: &KernelInit<'_>) -> Result<KernelBox> {
    equality!(init, NotEqual, true)
}

/// Equal or NotEqual on a GPU. Unlike shapes give one value, as on the CPU.
fn device_equality(init: &KernelInit<'_>, text: &'static str) -> Result<KernelBox> {
    let kernel = Elementwise::new(init, text.to_string())?;
    let is_strict = init.bool("incompatible_shape_error")?;
    let differs = text == "x != y";
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (a, b) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
        if !is_strict && Broadcast::new([a, b]).is_none() {
            return ctx.set(0, Tensor::scalar(differs).to_device(ctx.gpu()?)?);
        }
        kernel.compute(ctx)
    }))
}

/// As a broadcast; unlike shapes make a scalar where they are allowed.
fn equality_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    if c.attrs.bool("incompatible_shape_error")? {
        return shape::broadcast(c);
    }
    let (a, b) = (c.input(0), c.input(1));
    Ok(vec![match (a.known(), b.known()) {
        (Some(_), Some(_)) => {
            shape::broadcast_shapes(&a, &b).unwrap_or_else(|_| PartialShape::scalar())
        }
        _ => PartialShape::unknown(),
    }])
}

/// `|x - y| < tolerance`, for inputs of one shape.
fn approximate_equal(init: &KernelInit<'_>) -> Result<KernelBox> {
    fn is_near<T: Float>(ctx: &mut Ctx<'_>, tolerance: f32) -> Result<()> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            a.shape() == b.shape(),
            InvalidArgument,
            "x and y must be of the same shape. x shape: {}. y shape: {}",
            a.shape(),
            b.shape()
        );
        let tolerance = T::from_f64(tolerance as f64);
        let mut out = ctx.alloc(DType::Bool, a.shape().clone())?;
        let (x, y) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
        for ((to, x), y) in out.as_mut_slice::<bool>()?.iter_mut().zip(x).zip(y) {
            *to = x.sub(*y).abs() < tolerance;
        }
        ctx.set(0, out)
    }
    let tolerance = init.float("tolerance")?;
    per_dtype!([Float f32, Double f64],
        T => move |ctx: &mut Ctx<'_>| is_near::<T>(ctx, tolerance))(init)
}

pub(crate) fn register(c: &mut Catalog) {
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let rows: [(&str, &str, &'static str, Make); 4] = [
        (
            "Less",
            "Element-wise `x < y`.",
            "x < y",
            per_dtype!(REAL, T => compare::<Less, T, bool>()),
        ),
        (
            "LessEqual",
            "Element-wise `x <= y`.",
            "x <= y",
            per_dtype!(REAL, T => compare::<LessEqual, T, bool>()),
        ),
        (
            "Greater",
            "Element-wise `x > y`.",
            "x > y",
            per_dtype!(REAL, T => compare::<Greater, T, bool>()),
        ),
        (
            "GreaterEqual",
            "Element-wise `x >= y`.",
            "x >= y",
            per_dtype!(REAL, T => compare::<GreaterEqual, T, bool>()),
        ),
    ];
    for (op, doc, text, make) in rows {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: bool")
            .attr("T: realnumbertype")
            .broadcasts()
            .gpu_elementwise(gpu::REAL, text)
            .cpu(make);
    }
    let rows: [(&str, &str, &'static str, Make); 2] = [
        ("Equal", "Element-wise `x == y`.", "x == y", equal),
        ("NotEqual", "Element-wise `x != y`.", "x != y", not_equal),
    ];
    for (op, doc, text, make) in rows {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: bool")
            .attr("T: type")
            .attr("incompatible_shape_error: bool = true")
            .commutative()
            .shape(equality_shape)
            .gpu(gpu::REAL_OR_BOOL, move |init| device_equality(init, text))
            .cpu(make);
    }
    c.op("ApproximateEqual")
        .doc("Element-wise `|x - y| < tolerance`.")
        .input("x: T")
        .input("y: T")
        .output("z: bool")
        .attr("T: numbertype")
        .attr("tolerance: float = 9.999999747378752e-06")
        .commutative()
        .shape(shape::merged_inputs)
        .cpu(approximate_equal);
    c.no_gradient(&[
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "Equal",
        "NotEqual",
        "ApproximateEqual",
    ]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn all<T: Element>(a: [T; 3], b: [T; 3], want: [[bool; 3]; 6]) {
        let ops = ["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"];
        for (op, want) in ops.iter().zip(want) {
            let (a, b) = (Tensor::vector(&a), Tensor::vector(&b));
            check(op).input(a).input(b).gives(Tensor::vector(&want));
        }
    }

    #[test]
    fn numbers_are_ordered() {
        let (t, f) = (true, false);
        let want = [[f, t, f], [t, t, f], [f, f, t], [t, f, t], [t, f, f], [f, t, t]];
        all([1i32, 2, 3], [1, 3, 2], want);
        all([1u8, 2, 3], [1, 3, 2], want);
        all([1.0f32, 2.0, 3.0], [1.0, 3.0, 2.0], want);
        all([1.0f32, 2.0, 3.0].map(f16::from_f32), [1.0, 3.0, 2.0].map(f16::from_f32), want);
        all(
            [f64::NAN, 1.0, f64::NAN],
            [f64::NAN, 1.0, 1.0],
            [[f, f, f], [f, t, f], [f, f, f], [f, t, f], [f, t, f], [t, f, t]],
        );
    }

    #[test]
    fn bools_strings_and_complex_numbers_are_equal_or_not() {
        let (a, b) = (Tensor::vector(&[true, false]), Tensor::scalar(true));
        check("Equal").input(a.clone()).input(b.clone()).gives(Tensor::vector(&[true, false]));
        check("NotEqual").input(a).input(b).gives(Tensor::vector(&[false, true]));
        let z = [Complex32::new(1.0, 1.0), Complex32::new(2.0, 0.0)];
        check("Equal")
            .input(Tensor::vector(&z))
            .input(Tensor::vector(&z.map(|z| z.conj())))
            .gives(Tensor::vector(&[false, true]));
        let s = |t: [&'static str; 2]| {
            Tensor::from_strings([2], t.iter().map(|&t| t.into()).collect()).unwrap()
        };
        check("Equal")
            .input(s(["a", "b"]))
            .input(s(["a", "c"]))
            .gives(Tensor::vector(&[true, false]));
        check("NotEqual")
            .input(s(["a", "b"]))
            .input(Tensor::string("b"))
            .gives(Tensor::vector(&[true, false]));
    }

    #[test]
    fn unlike_shapes_are_an_error_or_unequal() {
        let (a, b) = (Tensor::vector(&[1.0f32, 2.0]), Tensor::vector(&[1.0f32, 2.0, 3.0]));
        for (op, differs) in [("Equal", false), ("NotEqual", true)] {
            let on = || check(op).input(a.clone()).input(b.clone());
            on().fails(Code::InvalidArgument, "Incompatible shapes: [2] vs. [3]");
            on().attr("incompatible_shape_error", false).gives(Tensor::scalar(differs));
        }
    }

    #[test]
    fn near_is_approximately_equal() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let (a, b) = ([1.0, nan, inf, 1.0, 2.0], [1.0, nan, inf, 1.1, 2.05]);
        check("ApproximateEqual")
            .attr("tolerance", 0.09f32)
            .input(Tensor::vector(&a))
            .input(Tensor::vector(&b))
            .gives(Tensor::vector(&[true, false, false, false, true]));
        check("ApproximateEqual").input(Tensor::vector(&a)).input(Tensor::scalar(1.0f32)).fails(
            Code::InvalidArgument,
            "x and y must be of the same shape. x shape: [5]. y shape: []",
        );
    }
}
