//! The element types that collectives reduce, and their buffers as bytes.

use ferroflow_core::{DType, Element, bf16, f16};

mod sealed {
    pub trait Sealed {}
}

/// A number that collectives can reduce. Every bit pattern is a valid value.
pub trait Number: Element + sealed::Sealed {}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Number for $t {}
    )*};
}
numbers!(f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64);

/// The dtypes of all [`Number`]s.
pub const NUMBERS: [DType; 12] = [
    DType::Float,
    DType::Double,
    DType::Half,
    DType::BFloat16,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
];

/// The bytes of `values` for reading.
pub fn bytes_of<T: Number>(values: &[T]) -> &[u8] {
    let len = std::mem::size_of_val(values);
    // SAFETY: a `Number` has no padding (`Element`'s contract), so all `len` bytes are initialized.
    // Bytes need no alignment, and the borrow of `values` lasts as long as the result.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), len) }
}

/// The bytes of `values` for writing.
pub fn bytes_of_mut<T: Number>(values: &mut [T]) -> &mut [u8] {
    let len = std::mem::size_of_val(values);
    // SAFETY: as in `bytes_of`. Any bytes written are valid values, because every bit pattern of a
    // `Number` is one (the trait is sealed to numeric types).
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_written_through_the_view_change_the_values() {
        let mut x = [1.0f32, 2.0];
        bytes_of_mut(&mut x)[4..].copy_from_slice(&7.5f32.to_ne_bytes());
        assert_eq!(x, [1.0, 7.5]);
        assert_eq!(bytes_of(&x).len(), 8);
    }
}
