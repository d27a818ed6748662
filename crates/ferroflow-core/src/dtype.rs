//! TensorFlow's data types.

use crate::{Result, bail};
use std::fmt;

/// The type of a tensor's elements; numbered as in TensorFlow's `DataType`.
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
    Float = 1,
    Double = 2,
    Int32 = 3,
    UInt8 = 4,
    Int16 = 5,
    Int8 = 6,
    String = 7,
    Complex64 = 8,
    Int64 = 9,
    Bool = 10,
    QInt8 = 11,
    QUInt8 = 12,
    QInt32 = 13,
    BFloat16 = 14,
    QInt16 = 15,
    QUInt16 = 16,
    UInt16 = 17,
    Complex128 = 18,
    Half = 19,
    Resource = 20,
    Variant = 21,
    UInt32 = 22,
    UInt64 = 23,
    Float8E5M2 = 24,
    Float8E4M3FN = 25,
    Int4 = 29,
    UInt4 = 30,
}

use DType::*;

/// One row per dtype: number on the wire, TensorFlow's name, bytes per element (0: not plain bytes).
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
    // TensorFlow keeps the 4-bit types one to a byte.
    (Int4, "int4", 1),
    (UInt4, "uint4", 1),
];

impl DType {
    /// Every dtype there is.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    /// The dtype with this number in TensorFlow's `DataType`. Reference types (`X + 100`) are not
    /// dtypes of tensors and are refused here.
    pub fn from_number(number: i32) -> Result<DType> {
        match TABLE.iter().find(|row| row.0 as i32 == number) {
            Some(row) => Ok(row.0),
            None => bail!(InvalidArgument, "unknown data type number {number}"),
        }
    }

    pub fn number(self) -> i32 {
        self as i32
    }

    /// The dtype with TensorFlow's name, such as `float` or `int64`; `float32`, `float64` and
    /// `float16` are understood too.
    pub fn from_name(name: &str) -> Option<DType> {
        match name {
            "float32" => Some(Float),
            "float64" => Some(Double),
            "float16" => Some(Half),
            _ => TABLE.iter().find(|row| row.1 == name).map(|row| row.0),
        }
    }

    /// TensorFlow's name, as its error messages spell it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes per element; `None` for strings, resources and variants.
    pub fn size(self) -> Option<usize> {
        Some(self.row().2).filter(|&n| n > 0)
    }

    /// Whether elements are plain bytes, as opposed to strings, resources and variants.
    pub fn is_plain(self) -> bool {
        self.row().2 > 0
    }

    pub fn is_floating(self) -> bool {
        matches!(self, Float | Double | Half | BFloat16 | Float8E5M2 | Float8E4M3FN)
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Complex64 | Complex128)
    }

    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Int4 | UInt4
        )
    }

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
