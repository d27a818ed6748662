//! TensorFlow's data types.

use crate::{Result, bail};
use std::fmt;

/// The type of a tensor's elements, with the numbers of TensorFlow's `DataType`.
///
/// ```
/// use ferroflow_core::{DType, Tensor};
/// assert_eq!(Tensor::scalar(1.0f32).dtype(), DType::Float);
/// assert_eq!((DType::Float.name(), DType::Float.size()), ("float", Some(4)));
/// assert_eq!(DType::String.size(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// 32-bit float.
    Float = 1,
    /// 64-bit float.
    Double = 2,
    /// 32-bit signed integer.
    Int32 = 3,
    /// 8-bit unsigned integer.
    UInt8 = 4,
    /// 16-bit signed integer.
    Int16 = 5,
    /// 8-bit signed integer.
    Int8 = 6,
    /// Byte string of any length.
    String = 7,
    /// Complex number of two 32-bit floats.
    Complex64 = 8,
    /// 64-bit signed integer.
    Int64 = 9,
    /// Boolean.
    Bool = 10,
    /// Quantized 8-bit signed integer.
    QInt8 = 11,
    /// Quantized 8-bit unsigned integer.
    QUInt8 = 12,
    /// Quantized 32-bit signed integer.
    QInt32 = 13,
    /// 16-bit float with the exponent range of `Float`.
    BFloat16 = 14,
    /// Quantized 16-bit signed integer.
    QInt16 = 15,
    /// Quantized 16-bit unsigned integer.
    QUInt16 = 16,
    /// 16-bit unsigned integer.
    UInt16 = 17,
    /// Complex number of two 64-bit floats.
    Complex128 = 18,
    /// IEEE 16-bit float.
    Half = 19,
    /// Handle to a resource.
    Resource = 20,
    /// Object of any type, for example a dataset.
    Variant = 21,
    /// 32-bit unsigned integer.
    UInt32 = 22,
    /// 64-bit unsigned integer.
    UInt64 = 23,
    /// 8-bit float with 5 exponent bits.
    Float8E5M2 = 24,
    /// 8-bit float with 4 exponent bits and no infinity.
    Float8E4M3FN = 25,
    /// 4-bit signed integer.
    Int4 = 29,
    /// 4-bit unsigned integer.
    UInt4 = 30,
}

use DType::*;

/// One row per dtype: number on the wire, TensorFlow's name, and bytes per element (0: not plain
/// bytes).
const TABLE: [(DType, &str, usize); 27] = [
    (Float, "float", 4),
    (Double, "double", 8),
    (Int32, "int32", 4),
    (UInt8, "uint8", 1),
    (Int16, "int16", 2),
    (Int8, "int8", 1),
    (String, "string", 0),
    (Complex64, "complex64", 8),
    (Int64, "int64", 8),
    (Bool, "bool", 1),
    (QInt8, "qint8", 1),
    (QUInt8, "quint8", 1),
    (QInt32, "qint32", 4),
    (BFloat16, "bfloat16", 2),
    (QInt16, "qint16", 2),
    (QUInt16, "quint16", 2),
    (UInt16, "uint16", 2),
    (Complex128, "complex128", 16),
    (Half, "half", 2),
    (Resource, "resource", 0),
    (Variant, "variant", 0),
    (UInt32, "uint32", 4),
    (UInt64, "uint64", 8),
    (Float8E5M2, "float8_e5m2", 1),
    (Float8E4M3FN, "float8_e4m3fn", 1),
    // As in TensorFlow, a 4-bit element takes a whole byte.
    (Int4, "int4", 1),
    (UInt4, "uint4", 1),
];

impl DType {
    /// All dtypes.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    /// The dtype with this number in TensorFlow's `DataType`. Reference types (`X + 100`) are
    /// refused, because no tensor has one.
    pub fn from_number(number: i32) -> Result<DType> {
        match TABLE.iter().find(|row| row.0 as i32 == number) {
            Some(row) => Ok(row.0),
            None => bail!(InvalidArgument, "unknown data type number {number}"),
        }
    }

    /// The number in TensorFlow's `DataType`.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The dtype with TensorFlow's name, such as `float` or `int64`. Accepts `float32`, `float64`
    /// and `float16` too.
    pub fn from_name(name: &str) -> Option<DType> {
        match name {
            "float32" => Some(Float),
            "float64" => Some(Double),
            "float16" => Some(Half),
            _ => TABLE.iter().find(|row| row.1 == name).map(|row| row.0),
        }
    }

    /// The name in TensorFlow's error messages.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes per element. `None` for strings, resources and variants.
    pub fn size(self) -> Option<usize> {
        Some(self.row().2).filter(|&n| n > 0)
    }

    /// Whether elements are plain bytes. Strings, resources and variants are not.
    pub fn is_plain(self) -> bool {
        self.row().2 > 0
    }

    /// Whether it is a real floating-point type.
    pub fn is_floating(self) -> bool {
        matches!(self, Float | Double | Half | BFloat16 | Float8E5M2 | Float8E4M3FN)
    }

    /// Whether it is a complex type.
    pub fn is_complex(self) -> bool {
        matches!(self, Complex64 | Complex128)
    }

    /// Whether it is an integer type. Quantized types are not.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Int4 | UInt4
        )
    }

    /// Whether it is a quantized type.
    pub fn is_quantized(self) -> bool {
        matches!(self, QInt8 | QUInt8 | QInt16 | QUInt16 | QInt32)
    }

    fn row(self) -> &'static (DType, &'static str, usize) {
        TABLE.iter().find(|row| row.0 == self).expect("every dtype has a row in TABLE")
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for d in DType::all() {
            assert_eq!(DType::from_number(d.number()).unwrap(), d);
            assert_eq!(DType::from_name(d.name()), Some(d));
        }
        assert!(DType::from_number(101).is_err());
    }
}
