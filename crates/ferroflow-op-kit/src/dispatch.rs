//! From a node's dtype to an instantiation of its kernel.
//!
//! `per_dtype!(REAL, T => kernel::<T>)` is a function from a node to its kernel, for use with
//! `OpBuilder::cpu`. It reads attribute `T` and instantiates the kernel for that type. The
//! attribute may be another one, and the expression may use the node: `per_dtype!(FLOAT, "dtype",
//! init, T => Thing::<T>::new(init)?)`.
//!
//! `per_width!(W => concat::<W>)` does the same for kernels that move elements without reading
//! them: one instantiation per width, plus strings, resources and variants.

use ferroflow_core::{DType, Error, err};
use ferroflow_graph::KernelInit;

/// Attribute `T` of ops that take all numbers and truths.
pub const NUMBERS_AND_BOOL: &str = "T: {float, double, int32, uint8, int16, int8, complex64, \
    int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, \
    uint64, bool}";

/// The error for a dtype that an op is not implemented for.
pub fn unsupported(init: &KernelInit<'_>, attr: &str, dtype: DType) -> Error {
    err!(
        Unimplemented,
        "no CPU kernel for op '{}' with {attr} = {dtype} (node '{}')",
        init.node.op,
        init.node.name
    )
}

#[macro_export]
#[doc(hidden)]
macro_rules! per_dtype {
    // Named sets of dtypes.
    (FLOAT, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Half f16, BFloat16 bf16, Float f32, Double f64], $($rest)+)
    };
    (REAL, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8,
            Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64], $($rest)+)
    };
    (NUMBER, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8,
            Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Complex64 Complex32, Complex128 Complex64], $($rest)+)
    };
    (INTEGER, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16,
            UInt32 u32, UInt64 u64], $($rest)+)
    };
    (INDEX, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Int32 i32, Int64 i64], $($rest)+)
    };
    (FLOAT_COMPLEX, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Half f16, BFloat16 bf16, Float f32, Double f64,
            Complex64 Complex32, Complex128 Complex64], $($rest)+)
    };
    (COMPLEX, $($rest:tt)+) => {
        $crate::per_dtype!(@attr [Complex64 Complex32, Complex128 Complex64], $($rest)+)
    };
    // `[Float f32, Double f64]`: a set given in place.
    ([$($set:tt)+], $($rest:tt)+) => { $crate::per_dtype!(@attr [$($set)+], $($rest)+) };

    // Selects the attribute, and whether the expression takes the node.
    (@attr [$($set:tt)+], $attr:literal, $init:ident, $T:ident => $make:expr) => {
        $crate::per_dtype!(@go [$($set)+], $attr, $init, $T => $make)
    };
    (@attr [$($set:tt)+], $attr:literal, $T:ident => $make:expr) => {
        $crate::per_dtype!(@go [$($set)+], $attr, _init, $T => $make)
    };
    (@attr [$($set:tt)+], $init:ident, $T:ident => $make:expr) => {
        $crate::per_dtype!(@go [$($set)+], "T", $init, $T => $make)
    };
    (@attr [$($set:tt)+], $T:ident => $make:expr) => {
        $crate::per_dtype!(@go [$($set)+], "T", _init, $T => $make)
    };

    (@go [$($D:ident $t:ty),+], $attr:literal, $init:ident, $T:ident => $make:expr) => {
        |$init: &ferroflow_graph::KernelInit<'_>|
            -> ferroflow_core::Result<ferroflow_core::KernelBox> {
            match $init.dtype($attr)? {
                $(ferroflow_core::DType::$D => {
                    #[allow(dead_code)]
                    type $T = $t;
                    Ok(ferroflow_core::KernelBox::new($make))
                })+
                #[allow(unreachable_patterns)]
                other => Err($crate::dispatch::unsupported($init, $attr, other)),
            }
        }
    };
}

#[macro_export]
#[doc(hidden)]
macro_rules! per_width {
    ($attr:literal, $init:ident, $W:ident => $make:expr) => {
        |$init: &ferroflow_graph::KernelInit<'_>|
            -> ferroflow_core::Result<ferroflow_core::KernelBox> {
            let dtype = $init.dtype($attr)?;
            $crate::per_width!(@arms $init, dtype, $attr, $W => $make)
        }
    };
    ($attr:literal, $W:ident => $make:expr) => { $crate::per_width!($attr, _init, $W => $make) };
    ($init:ident, $W:ident => $make:expr) => { $crate::per_width!("T", $init, $W => $make) };
    ($W:ident => $make:expr) => { $crate::per_width!("T", _init, $W => $make) };

    (@arms $init:ident, $dtype:ident, $attr:literal, $W:ident => $make:expr) => {
        match ($dtype.size(), $dtype) {
            (Some(1), _) => { type $W = u8; Ok(ferroflow_core::KernelBox::new($make)) }
            (Some(2), _) => { type $W = u16; Ok(ferroflow_core::KernelBox::new($make)) }
            (Some(4), _) => { type $W = u32; Ok(ferroflow_core::KernelBox::new($make)) }
            (Some(8), _) => { type $W = u64; Ok(ferroflow_core::KernelBox::new($make)) }
            (Some(16), _) => { type $W = [u64; 2]; Ok(ferroflow_core::KernelBox::new($make)) }
            (_, ferroflow_core::DType::String) => {
                type $W = bytes::Bytes;
                Ok(ferroflow_core::KernelBox::new($make))
            }
            (_, ferroflow_core::DType::Resource) => {
                type $W = ferroflow_core::ResourceHandle;
                Ok(ferroflow_core::KernelBox::new($make))
            }
            (_, ferroflow_core::DType::Variant) => {
                type $W = ferroflow_core::Variant;
                Ok(ferroflow_core::KernelBox::new($make))
            }
            _ => Err($crate::dispatch::unsupported($init, $attr, $dtype)),
        }
    };
}
