//! QuantizedAdd, QuantizedMul, QuantizedBiasAdd.

use super::affine::{
    Levels, Line, Quantized, from_float, like_input_and_range, product_range, scalar, set_range,
    to_float, unclamped,
};
use crate::prelude::*;

/// The range of sums: symmetric, with room for `more` times as much.
fn sum_range(a: (f32, f32), b: (f32, f32), more: u32) -> (f32, f32) {
    let largest = a.1.max(-a.0).max(b.1).max(-b.0);
    let max = largest * more as f32;
    (-max, max)
}

/// The range in inputs `at` and `at + 1`, which must not be empty.
fn range(ctx: &Ctx<'_>, at: usize, name: &str) -> Result<(f32, f32)> {
    let min = scalar(ctx, at, &format!("min_{name}"))?;
    let max = scalar(ctx, at + 1, &format!("max_{name}"))?;
    ensure!(max > min, InvalidArgument, "max_{name} must be larger than min_{name}.");
    Ok((min, max))
}

/// The shape of the output and the pairing of elements: which input is larger, and how many
/// elements of the smaller one repeat over it.
fn pairing(x: &Shape, y: &Shape) -> Result<(Shape, usize)> {
    let larger = x.elements() >= y.elements() || x.elements() == 0;
    let (long, short) = if x.rank() >= y.rank() && larger { (x, y) } else { (y, x) };
    // Leading ones of the shorter shape are ignored.
    let kept: Vec<usize> = short.iter().copied().skip_while(|&d| d == 1).collect();
    let fits = kept.len() <= long.rank() && long[long.rank() - kept.len()..] == kept[..];
    if fits && short.rank() <= long.rank() {
        return Ok((long.clone(), short.elements()));
    }
    match shape::broadcast_shapes(&x.into(), &y.into()) {
        Ok(_) => bail!(Unimplemented, "Broadcast between {x} and {y} is not supported yet."),
        Err(e) => Err(e),
    }
}

/// Combines every element of the larger input with one of the smaller.
fn combine(ctx: &Ctx<'_>, f: impl Fn(u8, u8) -> i32) -> Result<Tensor> {
    let (x, y) = (ctx.input(0)?, ctx.input(1)?);
    let (shape, repeated) = pairing(x.shape(), y.shape())?;
    let mut out = Tensor::alloc(DType::QInt32, shape.clone())?;
    let (a, b) = (x.as_slice::<u8>()?, y.as_slice::<u8>()?);
    let x_is_long = a.len() == out.elements();
    for (i, out) in out.as_mut_slice::<i32>()?.iter_mut().enumerate() {
        *out = match x_is_long {
            true => f(a[i], b[i % repeated]),
            false => f(a[i % repeated], b[i]),
        };
    }
    Ok(out)
}

fn add(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, y) = (range(ctx, 2, "x")?, range(ctx, 4, "y")?);
    let total = sum_range(x, y, 1 << 14);
    // Elements as levels of the total range: the level of the first, and the step between levels.
    let levels = |(min, max): (f32, f32)| {
        let level = |x: u8| unclamped::<i32>(to_float(x, min, max), total.0, total.1);
        let (first, second) = (level(0), level(1));
        move |x: u8| i32::clamped(first + i64::from(x) * i64::from((second - first) as i32))
    };
    // A single element is converted directly, without steps.
    let exact = |(min, max): (f32, f32)| {
        move |x: u8| from_float::<i32>(to_float(x, min, max), total.0, total.1)
    };
    let (a, b) = (ctx.input(0)?.elements(), ctx.input(1)?.elements());
    let (step_x, step_y, exact_x, exact_y) = (levels(x), levels(y), exact(x), exact(y));
    let out = combine(ctx, |x, y| {
        let x = if a == 1 { exact_x(x) } else { step_x(x) };
        let y = if b == 1 && a != 1 { exact_y(y) } else { step_y(y) };
        x.wrapping_add(y)
    })?;
    ctx.set(0, out)?;
    set_range(ctx, total)
}

fn mul(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, y) = (range(ctx, 2, "x")?, range(ctx, 4, "y")?);
    let zero_x = unclamped::<u8>(0.0, x.0, x.1) as i32;
    let zero_y = unclamped::<u8>(0.0, y.0, y.1) as i32;
    let out = combine(ctx, |x, y| {
        i32::from(x).wrapping_sub(zero_x).wrapping_mul(i32::from(y).wrapping_sub(zero_y))
    })?;
    ctx.set(0, out)?;
    set_range(ctx, product_range::<u8, u8>(x, y))
}

fn bias_add<T: Quantized>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, bias) = (ctx.input(0)?, ctx.input(1)?);
    let from = (scalar(ctx, 2, "min_input")?, scalar(ctx, 3, "max_input")?);
    let by = (scalar(ctx, 4, "min_bias")?, scalar(ctx, 5, "max_bias")?);
    ensure!(x.rank() >= 2, InvalidArgument, "Input tensor must be at least 2D: {}", x.shape());
    ensure!(bias.rank() == 1, InvalidArgument, "Biases must be 1D: {}", bias.shape());
    ensure!(
        Some(&bias.elements()) == x.shape().last(),
        InvalidArgument,
        "Must provide as many biases as the last dimension of the input tensor: {} vs. {}",
        bias.shape(),
        x.shape()
    );
    let total = sum_range(from, by, 1 << 17);
    let levels = Levels::new::<i32>(total.0, total.1);
    let zero: i32 = from_float(0.0, total.0, total.1);
    let line = Line::new::<T>(by.0, by.1);
    let biases: Vec<i32> = bias
        .as_slice::<T>()?
        .iter()
        .map(|&x| levels.of::<i32>(line.at(x)).wrapping_add(zero))
        .collect();
    let line = Line::new::<T>(from.0, from.1);
    let mut out = ctx.alloc(DType::QInt32, x.shape().clone())?;
    let pairs = out.as_mut_slice::<i32>()?.iter_mut().zip(x.as_slice::<T>()?);
    for ((out, &x), bias) in pairs.zip(biases.iter().cycle()) {
        *out = levels.of::<i32>(line.at(x)).wrapping_add(*bias);
    }
    ctx.set(0, out)?;
    set_range(ctx, total)
}

/// The larger of two shapes, when it is clear which that is.
fn paired_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shape = match (c.input(0).known(), c.input(1).known()) {
        (Some(x), Some(y)) => pairing(&x, &y).map(|(s, _)| s.into()).unwrap_or_default(),
        _ => PartialShape::unknown(),
    };
    Ok(vec![shape, PartialShape::scalar(), PartialShape::scalar()])
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, kernel, doc) in [
        ("QuantizedAdd", add as fn(&mut Ctx<'_>) -> Result<()>, "Sums of quantised elements."),
        ("QuantizedMul", mul, "Products of quantised elements."),
    ] {
        c.op(op)
            .doc(doc)
            .input("x: T1")
            .input("y: T2")
            .input("min_x: float")
            .input("max_x: float")
            .input("min_y: float")
            .input("max_y: float")
            .output("z: Toutput")
            .output("min_z: float")
            .output("max_z: float")
            .attr("T1: quantizedtype")
            .attr("T2: quantizedtype")
            .attr("Toutput: quantizedtype = DT_QINT32")
            .shape(paired_shape)
            .cpu(move |init| {
                for (attr, want) in
                    [("T1", DType::QUInt8), ("T2", DType::QUInt8), ("Toutput", DType::QInt32)]
                {
                    let is = init.dtype(attr)?;
                    if is != want {
                        return Err(unsupported(init, attr, is));
                    }
                }
                Ok(KernelBox::new(kernel))
            });
    }
    c.op("QuantizedBiasAdd")
        .doc("Sums of quantised rows and a quantised bias.")
        .input("input: T1")
        .input("bias: T2")
        .input("min_input: float")
        .input("max_input: float")
        .input("min_bias: float")
        .input("max_bias: float")
        .output("output: out_type")
        .output("min_out: float")
        .output("max_out: float")
        .attr("T1: quantizedtype")
        .attr("T2: quantizedtype")
        .attr("out_type: quantizedtype")
        .shape(like_input_and_range)
        .cpu(|init| {
            let (a, b, to) = (init.dtype("T1")?, init.dtype("T2")?, init.dtype("out_type")?);
            match (a, b, to) {
                (DType::QUInt8, DType::QUInt8, DType::QInt32) => Ok(KernelBox::new(bias_add::<u8>)),
                (DType::QInt8, DType::QInt8, DType::QInt32) => Ok(KernelBox::new(bias_add::<i8>)),
                _ => Err(unsupported(init, "T1", a)),
            }
        });
}
