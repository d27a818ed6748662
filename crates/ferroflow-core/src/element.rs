//! The Rust types of tensor elements that are plain bytes.

use crate::DType;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// A Rust type whose values are the elements of tensors of [`Element::DTYPE`].
///
/// # Safety
/// The type must have no padding, accept any bit pattern that tensors of its dtypes hold, need no
/// more than 16-byte alignment, and be exactly as large as `DTYPE.size()`.
pub unsafe trait Element:
    Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + 'static
{
    /// The dtype that this type stands for.
    const DTYPE: DType;

    /// Whether a tensor of `dtype` can be viewed as a slice of `Self`. That holds for its own dtype
    /// and for quantized or narrow dtypes with the same storage.
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident $(| $also:ident)*;)*) => {$(
        // SAFETY: these are primitive (or repr(C) pair / repr(transparent)) numeric types without
        // padding, of the size that the dtype table states. Bytes for `bool` tensors are changed to
        // 0 or 1 on entry.
        unsafe impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            fn stores(dtype: DType) -> bool {
                matches!(dtype, DType::$dtype $(| DType::$also)*)
            }
        }
    )*};
}

elements! {
    f32 => Float;
    f64 => Double;
    i32 => Int32 | QInt32;
    u8 => UInt8 | QUInt8 | Float8E5M2 | Float8E4M3FN | UInt4;
    i16 => Int16 | QInt16;
    i8 => Int8 | QInt8 | Int4;
    i64 => Int64;
    bool => Bool;
    bf16 => BFloat16;
    u16 => UInt16 | QUInt16;
    f16 => Half;
    u32 => UInt32;
    u64 => UInt64;
    Complex32 => Complex64;
    Complex64 => Complex128;
}

/// Real numbers, including the half types. Ops with `T: realnumbertype` compute on them.
pub trait RealElement: Element + PartialOrd {
    /// The nearest value of this type. Integers saturate.
    fn from_f64(x: f64) -> Self;
    /// The value as `f64`.
    fn to_f64(self) -> f64;
}

/// Floating-point types, half types included.
pub trait FloatElement: RealElement {
    /// Whether the value is not a number.
    fn is_nan(self) -> bool;
}

macro_rules! reals {
    ($($t:ty)*) => {$(
        impl RealElement for $t {
            fn from_f64(x: f64) -> Self { x as $t }
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}
reals!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! half_reals {
    ($($t:ty)*) => {$(
        impl RealElement for $t {
            fn from_f64(x: f64) -> Self { <$t>::from_f64(x) }
            fn to_f64(self) -> f64 { <$t>::to_f64(self) }
        }
        impl FloatElement for $t {
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
        }
    )*};
}
half_reals!(f16 bf16);

impl FloatElement for f32 {
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}
impl FloatElement for f64 {
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}
