//! Random tensors, shapes and attribute values.

use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;
use ferroflow_core::{DType, PartialShape, Shape, Tensor};

/// Texts that some op understands.
const TEXTS: [&str; 26] = [
    "",
    "a",
    "ab",
    "12",
    "-1.5",
    "NHWC",
    "NCHW",
    "VALID",
    "SAME",
    "EXPLICIT",
    "SUM",
    "ij,jk->ik",
    "...a,...b->...",
    "a->",
    "half_to_even",
    "RIGHT_LEFT",
    "w",
    "UTF-8",
    "UTF-16-BE",
    "strict",
    "(a+)",
    "%d %s",
    "/job:localhost/task:0/device:CPU:0",
    "floor",
    "reflect",
    "min_max",
];

/// Numbers at the edges of types and ranges.
const EDGES: [i64; 16] = [
    -1,
    0,
    127,
    255,
    256,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    1 << 32,
    1 << 40,
    1 << 60,
    (1 << 62) + 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];

/// A number that is usually small, and sometimes at an edge.
pub fn int(u: &mut Unstructured<'_>) -> Result<i64> {
    match u.int_in_range(0..=15)? {
        0 => Ok(*u.choose(&EDGES)?),
        1 => u.int_in_range(-8..=64),
        2 => Ok(-1),
        _ => u.int_in_range(0..=3),
    }
}

pub fn float(u: &mut Unstructured<'_>) -> Result<f64> {
    const SPECIAL: [f64; 10] =
        [0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    match u.int_in_range(0..=7)? {
        0 => f64::arbitrary(u),
        1..=3 => Ok(*u.choose(&SPECIAL)?),
        _ => Ok(u.int_in_range(-40..=40)? as f64 / 8.0),
    }
}

pub fn text(u: &mut Unstructured<'_>) -> Result<Bytes> {
    if u.ratio(15, 16)? {
        return Ok(Bytes::from_static(u.choose(&TEXTS)?.as_bytes()));
    }
    let len = u.int_in_range(0..=12)?;
    Ok(Bytes::copy_from_slice(u.bytes(len.min(u.len()))?))
}

pub fn shape(u: &mut Unstructured<'_>) -> Result<Shape> {
    let rank = *u.choose(&[0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5])?;
    (0..rank).map(|_| Ok(*u.choose(&[1, 2, 3, 2, 3, 4, 0, 1, 7])?)).collect()
}

/// A shape for an attribute. Dimensions may be unknown or huge.
pub fn partial_shape(u: &mut Unstructured<'_>) -> Result<PartialShape> {
    if u.ratio(1, 8)? {
        return Ok(PartialShape::unknown());
    }
    let known = shape(u)?;
    let dims = known.iter().map(|&d| {
        Ok(match u.int_in_range(0..=15)? {
            0 => None,
            1 => usize::try_from(*u.choose(&EDGES)?).ok(),
            _ => Some(d),
        })
    });
    Ok(PartialShape::new(dims.collect::<Result<Vec<_>>>()?))
}

/// A shape that fits `house`: the same, a scalar, a vector with one element per dimension, or a
/// matrix with two per dimension. Sometimes any other shape.
pub fn shape_beside(u: &mut Unstructured<'_>, usual: &Shape) -> Result<Shape> {
    Ok(match u.int_in_range(0..=9)? {
        0..=4 => usual.clone(),
        5 => Shape::scalar(),
        6 => Shape::vector(usual.rank()),
        7 => Shape::from([usual.rank(), 2]),
        8 => Shape::vector(*u.choose(&[1, 2, 3])?),
        _ => shape(u)?,
    })
}

/// A small tensor. `None` for types whose values only ops can make.
pub fn tensor(u: &mut Unstructured<'_>, dtype: DType, shape: Shape) -> Result<Option<Tensor>> {
    let n = shape.elements();
    if dtype == DType::String {
        let texts = (0..n).map(|_| text(u)).collect::<Result<Vec<_>>>()?;
        return Ok(Tensor::from_strings(shape, texts).ok());
    }
    let Ok(mut t) = Tensor::zeros(dtype, shape) else { return Ok(None) };
    let Some(size) = dtype.size() else { return Ok(None) };
    let mut bytes = vec![0u8; n * size];
    for element in bytes.chunks_exact_mut(size) {
        match dtype {
            DType::Float => element.copy_from_slice(&(float(u)? as f32).to_le_bytes()),
            DType::Double => element.copy_from_slice(&float(u)?.to_le_bytes()),
            DType::Complex64 => {
                element[..4].copy_from_slice(&(float(u)? as f32).to_le_bytes());
                element[4..].copy_from_slice(&(float(u)? as f32).to_le_bytes());
            }
            DType::Complex128 => {
                element[..8].copy_from_slice(&float(u)?.to_le_bytes());
                element[8..].copy_from_slice(&float(u)?.to_le_bytes());
            }
            DType::BFloat16 => {
                element.copy_from_slice(&(float(u)? as f32).to_le_bytes()[2..]);
            }
            DType::Bool => element[0] = u8::from(bool::arbitrary(u)?),
            DType::Half => u.fill_buffer(element)?,
            _ => element.copy_from_slice(&int(u)?.to_le_bytes()[..size]),
        }
    }
    if let Ok(to) = t.bytes_mut() {
        to.copy_from_slice(&bytes);
    }
    Ok(Some(t))
}
