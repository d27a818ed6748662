//! Rust values that the builder accepts as tensors and shapes.

use crate::graph::Graph;
use crate::output::Output;
use bytes::Bytes;
use ferroflow_core::{DType, Element, PartialShape, Result, Shape, Tensor, bail};

/// A plain Rust value that becomes a tensor: numbers, texts, and arrays of them.
///
/// `f32` is the only floating-point type here, so that a literal such as `2.0` is a `float` as in
/// TensorFlow. [`Tensor::from_slice`] makes tensors of other types.
///
/// ```
/// use ferroflow_train::IntoTensor;
/// assert_eq!([[1.0, 2.0], [3.0, 4.0]].into_tensor().unwrap().shape().to_string(), "[2,2]");
/// ```
pub trait IntoTensor {
    /// The tensor.
    fn into_tensor(self) -> Result<Tensor>;
}

impl IntoTensor for Tensor {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(self)
    }
}

impl IntoTensor for &Tensor {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(self.clone())
    }
}

impl IntoTensor for &str {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(Tensor::string(Bytes::copy_from_slice(self.as_bytes())))
    }
}

impl IntoTensor for String {
    fn into_tensor(self) -> Result<Tensor> {
        Ok(Tensor::string(self))
    }
}

impl<const N: usize> IntoTensor for [&str; N] {
    fn into_tensor(self) -> Result<Tensor> {
        strings(&self)
    }
}

impl<const N: usize, const M: usize> IntoTensor for [[&str; N]; M] {
    fn into_tensor(self) -> Result<Tensor> {
        strings(self.as_flattened())?.into_shape([M, N])
    }
}

impl IntoTensor for Vec<String> {
    fn into_tensor(self) -> Result<Tensor> {
        let n = self.len();
        Tensor::from_strings([n], self.into_iter().map(Bytes::from).collect())
    }
}

pub(crate) fn strings(texts: &[impl AsRef<str>]) -> Result<Tensor> {
    let texts = texts.iter().map(|s| Bytes::copy_from_slice(s.as_ref().as_bytes()));
    let texts: Vec<Bytes> = texts.collect();
    Tensor::from_strings([texts.len()], texts)
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl IntoTensor for $t {
            fn into_tensor(self) -> Result<Tensor> {
                Ok(Tensor::scalar(self))
            }
        }
        impl IntoTensor for Vec<$t> {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([self.len()], &self)
            }
        }
        impl IntoTensor for &Vec<$t> {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([self.len()], self)
            }
        }
        impl IntoTensor for &[$t] {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([self.len()], self)
            }
        }
        impl<const N: usize> IntoTensor for &[$t; N] {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([N], self)
            }
        }
        impl<const N: usize> IntoTensor for [$t; N] {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([N], &self)
            }
        }
        impl<const N: usize, const M: usize> IntoTensor for [[$t; N]; M] {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([M, N], self.as_flattened())
            }
        }
        impl<const N: usize, const M: usize, const L: usize> IntoTensor for [[[$t; N]; M]; L] {
            fn into_tensor(self) -> Result<Tensor> {
                Tensor::from_slice([L, M, N], self.as_flattened().as_flattened())
            }
        }
    )*};
}
numbers!(f32, i32, i64, bool, u8);

/// An input of an op: an [`Output`], a [`crate::Variable`], or a value that becomes a constant. A
/// number takes the type of the other operand.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_core::DType;
/// let x = g.placeholder_of(DType::Double, "x", [None]);
/// // A number takes the type of the other operand.
/// assert_eq!(x.maximum(0.0).dtype(), DType::Double);
/// ```
pub trait IntoOutput {
    /// The output in `graph`. A number gets the type `like`.
    fn into_output(self, graph: &Graph, like: Option<DType>) -> Output;
}

impl IntoOutput for Output {
    fn into_output(self, _: &Graph, _: Option<DType>) -> Output {
        self
    }
}

impl IntoOutput for &Output {
    fn into_output(self, _: &Graph, _: Option<DType>) -> Output {
        self.clone()
    }
}

impl<T: IntoTensor> IntoOutput for T {
    #[track_caller]
    fn into_output(self, graph: &Graph, like: Option<DType>) -> Output {
        let value = self.into_tensor().and_then(|t| match like {
            Some(like) => number_as(t, like),
            None => Ok(t),
        });
        graph.constant_from(value, None)
    }
}

/// Dimensions as a tensor, such as [`Output::reshape`] takes: `None` is the one that follows from
/// the number of elements.
impl<const N: usize> IntoOutput for [Option<usize>; N] {
    #[track_caller]
    fn into_output(self, graph: &Graph, like: Option<DType>) -> Output {
        let dims = self.map(|dim| dim.map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX)));
        dims.into_output(graph, like)
    }
}

/// Converts a tensor of a literal's type to the type `like`; leaves other tensors unchanged.
pub(crate) fn number_as(t: Tensor, like: DType) -> Result<Tensor> {
    if t.dtype() == like {
        return Ok(t);
    }
    let numbers: Vec<f64> = match t.dtype() {
        DType::Float => t.as_slice::<f32>()?.iter().map(|&x| x as f64).collect(),
        DType::Int32 => t.as_slice::<i32>()?.iter().map(|&x| x as f64).collect(),
        _ => return Ok(t),
    };
    fn cast<T: Element>(t: &Tensor, xs: &[f64], to: impl Fn(f64) -> T) -> Result<Tensor> {
        let values: Vec<T> = xs.iter().map(|&x| to(x)).collect();
        Tensor::from_slice(t.shape().clone(), &values)
    }
    macro_rules! whole {
        ($t:ty) => {{
            if let Some(x) = numbers.iter().find(|x| x.fract() != 0.0) {
                bail!(InvalidArgument, "{x} is a fraction, but a {like} is expected");
            }
            // `f64` cannot represent the largest 64-bit integers, so compare with MAX + 1.
            let fits = |x: &f64| *x >= <$t>::MIN as f64 && *x < <$t>::MAX as f64 + 1.0;
            if let Some(x) = numbers.iter().find(|x| !fits(x)) {
                bail!(InvalidArgument, "{x} is out of the range of {like}");
            }
            cast(&t, &numbers, |x| x as $t)
        }};
    }
    match like {
        DType::Float => cast(&t, &numbers, |x| x as f32),
        DType::Double => cast(&t, &numbers, |x| x),
        DType::Half => cast(&t, &numbers, ferroflow_core::f16::from_f64),
        DType::BFloat16 => cast(&t, &numbers, ferroflow_core::bf16::from_f64),
        DType::Int32 => whole!(i32),
        DType::Int64 => whole!(i64),
        DType::Int16 => whole!(i16),
        DType::Int8 => whole!(i8),
        DType::UInt8 => whole!(u8),
        DType::UInt16 => whole!(u16),
        DType::UInt32 => whole!(u32),
        DType::UInt64 => whole!(u64),
        _ => Ok(t),
    }
}

/// The dimensions of a shape. `[32, 784]` is fully known, `None` is an unknown dimension, `()` is a
/// scalar; a [`Shape`] or [`PartialShape`] will do too.
///
/// ```
/// use ferroflow_train::Graph;
/// let g = Graph::new();
/// let batch = g.placeholder::<f32>("batch", [None, Some(784)]);
/// let fixed = g.placeholder::<f32>("fixed", [32, 784]);
/// let scalar = g.placeholder::<f32>("scalar", ());
/// assert_eq!(batch.shape().to_string(), "[?,784]");
/// ```
pub trait IntoShape {
    /// The shape.
    fn into_shape(self) -> PartialShape;
}

impl IntoShape for () {
    fn into_shape(self) -> PartialShape {
        PartialShape::scalar()
    }
}

impl IntoShape for PartialShape {
    fn into_shape(self) -> PartialShape {
        self
    }
}

impl IntoShape for &PartialShape {
    fn into_shape(self) -> PartialShape {
        self.clone()
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> PartialShape {
        self.into()
    }
}

impl IntoShape for &[Option<usize>] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self.iter().copied())
    }
}

impl IntoShape for Vec<Option<usize>> {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self)
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self.iter().map(|&dim| Some(dim)))
    }
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self.map(Some))
    }
}

impl<const N: usize> IntoShape for [Option<usize>; N] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_errors() {
        let to = |x: f32, like| number_as(Tensor::scalar(x), like);
        assert_eq!(to(255.0, DType::UInt8).unwrap().scalar_value::<u8>().unwrap(), 255);
        assert_eq!(to(-128.0, DType::Int8).unwrap().scalar_value::<i8>().unwrap(), -128);
        for (x, like) in [
            (256.0, DType::UInt8),
            (-1.0, DType::UInt64),
            (1e20, DType::Int64),
            (f32::INFINITY, DType::Int32),
            (f32::NAN, DType::Int32),
            (0.5, DType::Int16),
        ] {
            let e = to(x, like).unwrap_err();
            assert_eq!(e.code(), ferroflow_core::Code::InvalidArgument, "{x} {e}");
        }
    }
}
