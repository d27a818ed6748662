//! QuantizedReshape, QuantizedConcat and QuantizedConcatV2.

use super::affine::{Levels, Line, Quantized, scalar, set_range};
use crate::prelude::*;
use ferroflow_ops_array::array::{concat, reshape};

fn quantized_reshape(ctx: &mut Ctx<'_>) -> Result<()> {
    let range = (scalar(ctx, 2, "input_min")?, scalar(ctx, 3, "input_max")?);
    reshape::reshape(ctx)?;
    set_range(ctx, range)
}

fn quantized_concat<T: Quantized>(ctx: &mut Ctx<'_>) -> Result<()> {
    concat_along::<T>(ctx, 0, 1)
}

/// The axis comes behind the values, and may be negative.
fn quantized_concat_v2<T: Quantized>(ctx: &mut Ctx<'_>) -> Result<()> {
    concat_along::<T>(ctx, (ctx.num_inputs() - 1) / 3, 0)
}

/// Joins the values from input `first` on along the axis in input `axis_at`.
fn concat_along<T: Quantized>(ctx: &mut Ctx<'_>, axis_at: usize, first: usize) -> Result<()> {
    let parts = (ctx.num_inputs() - 1) / 3;
    let axis = ctx.input(axis_at)?;
    ensure!(
        axis.rank() == 0,
        InvalidArgument,
        "Concat dim tensor should be a scalar integer, but got shape {}",
        axis.shape()
    );
    let (given, rank) = (axis.scalar_index()?, ctx.input(first)?.rank() as i64);
    let least = if first == 0 { -rank } else { 0 };
    ensure!(
        (least..rank).contains(&given),
        InvalidArgument,
        "ConcatOp : Expected concatenating dimensions in the range [{least}, {rank}), but got {given}"
    );
    let axis = if given < 0 { given + rank } else { given };
    let mut ranges = Vec::with_capacity(parts);
    for i in 0..parts {
        let min = scalar(ctx, 1 + parts + i, "input_mins")?;
        ranges.push((min, scalar(ctx, 1 + 2 * parts + i, "input_maxes")?));
    }
    let min = ranges.iter().map(|r| r.0).fold(f32::MAX, f32::min);
    let max = ranges.iter().map(|r| r.1).fold(f32::MIN, f32::max);
    // Signed elements get a range with zero in the middle.
    let total = match T::LOWEST < 0 {
        true => (-min.abs().max(max.abs()), min.abs().max(max.abs())),
        false => (min, max),
    };
    let mut moved = Vec::with_capacity(parts);
    for (i, &range) in ranges.iter().enumerate() {
        let mut part = ctx.input(first + i)?.clone();
        if range != total {
            let (line, levels) =
                (Line::new::<T>(range.0, range.1), Levels::new::<T>(total.0, total.1));
            part.as_mut_slice::<T>()?.iter_mut().for_each(|x| *x = levels.of(line.at(*x)));
        }
        moved.push(part);
    }
    let out = concat::concat(&moved.iter().collect::<Vec<_>>(), axis)?;
    ctx.set(0, out)?;
    set_range(ctx, total)
}

fn concat_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    shape_along(c, 0, 1)
}

fn shape_along(c: &ShapeCtx<'_>, axis_at: usize, first: usize) -> Result<Vec<PartialShape>> {
    let parts = (c.inputs.len() - 1) / 3;
    let scalar = PartialShape::scalar();
    let unknown = || {
        vec![
            c.input(first).rank().map(PartialShape::of_rank).unwrap_or_default(),
            scalar.clone(),
            scalar.clone(),
        ]
    };
    let axis = c.constant_ints(axis_at).and_then(|v| usize::try_from(*v.first()?).ok());
    let (Some(axis), Some(dims)) = (axis, c.input(first).dims().map(<[_]>::to_vec)) else {
        return Ok(unknown());
    };
    if axis >= dims.len() {
        return Ok(unknown());
    }
    let mut out = dims;
    let sizes = (first..first + parts).map(|i| c.input(i).dim(axis));
    out[axis] = sizes.sum::<Option<usize>>();
    Ok(vec![PartialShape::new(out), scalar.clone(), scalar.clone()])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("QuantizedReshape")
        .doc("Quantised elements in another shape.")
        .input("tensor: T")
        .input("shape: Tshape")
        .input("input_min: float")
        .input("input_max: float")
        .output("output: T")
        .output("output_min: float")
        .output("output_max: float")
        .attr("T: type")
        .attr("Tshape: {int32, int64} = DT_INT32")
        .shape(|c| {
            let mut shapes = reshape::reshape_shape(c)?;
            shapes.truncate(1);
            shapes.extend([PartialShape::scalar(), PartialShape::scalar()]);
            Ok(shapes)
        })
        .cpu(|init| match init.dtype("T")? {
            DType::QUInt8 | DType::QInt32 => Ok(KernelBox::new(quantized_reshape)),
            other => Err(unsupported(init, "T", other)),
        });
    c.op("QuantizedConcat")
        .doc("Quantised tensors joined along a dimension, over one range.")
        .input("concat_dim: int32")
        .input("values: N * T")
        .input("input_mins: N * float")
        .input("input_maxes: N * float")
        .output("output: T")
        .output("output_min: float")
        .output("output_max: float")
        .attr("N: int >= 2")
        .attr("T: type")
        .shape(concat_shape)
        .cpu(per_dtype!([QUInt8 u8, QInt32 i32], T => quantized_concat::<T>));
    c.op("QuantizedConcatV2")
        .doc("Quantised tensors joined along a dimension, over one range.")
        .input("values: N * T")
        .input("axis: Tidx")
        .input("input_mins: N * float")
        .input("input_maxes: N * float")
        .output("output: T")
        .output("output_min: float")
        .output("output_max: float")
        .attr("N: int >= 2")
        .attr("T: type")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| shape_along(c, (c.inputs.len() - 1) / 3, 0))
        .cpu(per_dtype!([QUInt8 u8, QInt8 i8], T => quantized_concat_v2::<T>));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn the_second_version_takes_its_axis_behind_the_values() {
        let row = |values: [u8; 2]| {
            Tensor::from_slice([1, 2], &values).unwrap().with_dtype(DType::QUInt8).unwrap()
        };
        for axis in [0i32, -2] {
            let got = check("QuantizedConcatV2")
                .input(row([1, 2]))
                .input(row([200, 255]))
                .input(Tensor::scalar(axis))
                .input(Tensor::scalar(0f32))
                .input(Tensor::scalar(0f32))
                .input(Tensor::scalar(1f32))
                .input(Tensor::scalar(2f32))
                .attr("N", 2i64)
                .attr("T", DType::QUInt8)
                .run()
                .unwrap();
            // TensorFlow's answer.
            let levels = got[0].clone().with_dtype(DType::UInt8).unwrap();
            assert_eq!(levels, Tensor::from_slice([2, 2], &[1u8, 1, 200, 255]).unwrap());
            assert_eq!(got[2], Tensor::scalar(2f32));
        }
    }
}
