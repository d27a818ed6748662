//! Arithmetic on whole tensors whose dtype is known only when it runs.

use crate::parallel::split_mut;
use crate::prelude::*;

/// Calls a function that is generic over a number type for the type of a tensor.
macro_rules! for_number {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match $dtype {
            DType::Half => $f::<f16>($($arg),*),
            DType::BFloat16 => $f::<bf16>($($arg),*),
            DType::Float => $f::<f32>($($arg),*),
            DType::Double => $f::<f64>($($arg),*),
            DType::Int8 => $f::<i8>($($arg),*),
            DType::Int16 => $f::<i16>($($arg),*),
            DType::Int32 => $f::<i32>($($arg),*),
            DType::Int64 => $f::<i64>($($arg),*),
            DType::UInt8 => $f::<u8>($($arg),*),
            DType::UInt16 => $f::<u16>($($arg),*),
            DType::UInt32 => $f::<u32>($($arg),*),
            DType::UInt64 => $f::<u64>($($arg),*),
            DType::Complex64 => $f::<Complex32>($($arg),*),
            DType::Complex128 => $f::<Complex64>($($arg),*),
            other => Err(err!(Unimplemented, "no arithmetic on {other} tensors")),
        }
    };
}

/// Adds a tensor of the same dtype and shape.
pub fn add_assign(to: &mut Tensor, from: &Tensor) -> Result<()> {
    ensure!(
        to.dtype() == from.dtype() && to.shape() == from.shape(),
        InvalidArgument,
        "cannot add {} {} to {} {}",
        from.dtype(),
        from.shape(),
        to.dtype(),
        to.shape()
    );
    fn add<T: Num>(to: &mut Tensor, from: &Tensor) -> Result<()> {
        let from = from.as_slice::<T>()?;
        split_mut(to.as_mut_slice::<T>()?, 1, 1, |at, part| {
            for (x, y) in part.iter_mut().zip(&from[at..]) {
                *x = x.add(*y);
            }
        });
        Ok(())
    }
    for_number!(to.dtype(), add(to, from))
}

/// Divides the `i`th row of `to` by `counts[i]`; all of it when there is but one count.
pub fn divide_rows(to: &mut Tensor, counts: &[i64]) -> Result<()> {
    fn divide<T: Num>(to: &mut Tensor, counts: &[i64]) -> Result<()> {
        let all = to.as_mut_slice::<T>()?;
        if all.is_empty() || counts.is_empty() {
            return Ok(());
        }
        let row = all.len().div_ceil(counts.len());
        for (part, &count) in all.chunks_mut(row).zip(counts) {
            let count = T::from_i64(count);
            part.iter_mut().for_each(|x| *x = x.div(count));
        }
        Ok(())
    }
    for_number!(to.dtype(), divide(to, counts))
}
