//! JSON values as elements of tensors.

use super::bytes_of;
use ferroflow_core::{DType, Element, Result, Shape, Tensor, bail, bf16, err, f16};
use serde_json::Value;

/// Marks a string that means `NaN` or an infinity.
pub(super) const SPECIAL: char = '\u{1}';

/// The tensor of scalars in row-major order.
pub(super) fn tensor_of_leaves(
    leaves: &[&Value],
    shape: Vec<usize>,
    dtype: DType,
) -> Result<Tensor> {
    let shape: Shape = shape.into_iter().collect();
    match dtype {
        DType::Float => of(leaves, shape, dtype, |v| float(v).map(|v| v as f32)),
        DType::Double => of(leaves, shape, dtype, float),
        DType::Half => of(leaves, shape, dtype, |v| float(v).map(f16::from_f64)),
        DType::BFloat16 => of(leaves, shape, dtype, |v| float(v).map(bf16::from_f64)),
        DType::Bool => of(leaves, shape, dtype, Value::as_bool),
        DType::Int8 => of(leaves, shape, dtype, int::<i8>),
        DType::Int16 => of(leaves, shape, dtype, int::<i16>),
        DType::Int32 => of(leaves, shape, dtype, int::<i32>),
        DType::Int64 => of(leaves, shape, dtype, Value::as_i64),
        DType::UInt8 => of(leaves, shape, dtype, int::<u8>),
        DType::UInt16 => of(leaves, shape, dtype, int::<u16>),
        DType::UInt32 => of(leaves, shape, dtype, int::<u32>),
        DType::UInt64 => of(leaves, shape, dtype, Value::as_u64),
        DType::String => {
            let strings = leaves.iter().map(|leaf| bytes_of(leaf)).collect::<Result<Vec<_>>>()?;
            Tensor::from_strings(shape, strings)
        }
        _ => bail!(Unimplemented, "inputs of type {dtype} cannot be sent as JSON; use gRPC"),
    }
}

fn of<T: Element>(
    leaves: &[&Value],
    shape: Shape,
    dtype: DType,
    convert: impl Fn(&Value) -> Option<T>,
) -> Result<Tensor> {
    let one = |leaf: &&Value| {
        convert(leaf).ok_or_else(|| err!(InvalidArgument, "{leaf} is not a {dtype}"))
    };
    let values = leaves.iter().map(one).collect::<Result<Vec<T>>>()?;
    Tensor::from_slice(shape, &values)
}

/// Any number.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.strip_prefix(SPECIAL)? {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            _ => Some(f64::NEG_INFINITY),
        },
        other => other.as_f64(),
    }
}

/// An integer in the range of `T`.
fn int<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    value.as_i64().and_then(|v| T::try_from(v).ok())
}
