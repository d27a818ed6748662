//! Stacks and joins tensors of any dtype.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Storage, Variant};

/// `shape` with `len` in front.
pub fn with_rows(len: usize, shape: &[usize]) -> Shape {
    std::iter::once(len).chain(shape.iter().copied()).collect()
}

/// Copies the elements of `from` into `to`, beginning at element `at`. Both have the same dtype.
pub fn copy_into(to: &mut Tensor, at: usize, from: &Tensor) -> Result<()> {
    fn part<T>(all: &mut [T], at: usize, len: usize) -> Result<&mut [T]> {
        let end = at.checked_add(len);
        end.and_then(|end| all.get_mut(at..end))
            .ok_or_else(|| err!(Internal, "{len} elements at {at} do not fit"))
    }
    ensure!(
        to.dtype() == from.dtype(),
        InvalidArgument,
        "expected a {} tensor, got {}",
        to.dtype(),
        from.dtype()
    );
    match from.storage() {
        Storage::Plain(_) | Storage::Device(_) => {
            let size = from.dtype().size().unwrap_or(1);
            let bytes = from.bytes()?;
            part(to.bytes_mut()?, at * size, bytes.len())?.copy_from_slice(bytes);
        }
        Storage::Strings(_) => {
            let all = Bytes::of(from)?;
            part(to.strings_mut()?, at, all.len())?.clone_from_slice(all);
        }
        Storage::Handles(_) => {
            let all = ResourceHandle::of(from)?;
            part(to.handles_mut()?, at, all.len())?.clone_from_slice(all);
        }
        Storage::Variants(_) => {
            let all = Variant::of(from)?;
            part(to.variants_mut()?, at, all.len())?.clone_from_slice(all);
        }
    }
    Ok(())
}

/// Tensors of one shape, stacked along a new leading dimension.
pub fn stack<'a>(
    dtype: DType,
    shape: &[usize],
    parts: impl ExactSizeIterator<Item = &'a Tensor>,
) -> Result<Tensor> {
    let mut out = Tensor::alloc(dtype, with_rows(parts.len(), shape))?;
    let each: usize = shape.iter().product();
    for (i, part) in parts.enumerate() {
        ensure!(
            part.shape().dims() == shape,
            InvalidArgument,
            "cannot stack shape {} with {}",
            part.shape(),
            Shape::from(shape)
        );
        copy_into(&mut out, i * each, part)?;
    }
    Ok(out)
}

/// Tensors of one row shape, joined along their leading dimension.
pub fn concat<'a>(
    dtype: DType,
    row: &[usize],
    parts: impl Iterator<Item = &'a Tensor> + Clone,
) -> Result<Tensor> {
    let mut rows = 0usize;
    for part in parts.clone() {
        let Some((&n, rest)) = part.shape().split_first() else {
            bail!(InvalidArgument, "cannot concatenate a scalar");
        };
        ensure!(
            rest == row,
            InvalidArgument,
            "cannot concatenate rows of shape {} with {}",
            Shape::from(rest),
            Shape::from(row)
        );
        rows = rows.saturating_add(n);
    }
    let mut out = Tensor::alloc(dtype, with_rows(rows, row))?;
    let mut at = 0;
    for part in parts {
        copy_into(&mut out, at, part)?;
        at += part.elements();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_dtype_is_stacked() {
        let a = [Tensor::vector(&[1i16, 2]), Tensor::vector(&[3i16, 4])];
        let got = stack(DType::Int16, &[2], a.iter()).unwrap();
        assert_eq!(got, Tensor::from_slice([2, 2], &[1i16, 2, 3, 4]).unwrap());
        let s = [Tensor::string("a"), Tensor::string("bc")];
        let got = stack(DType::String, &[], s.iter()).unwrap();
        assert_eq!(got.strings().unwrap(), ["a", "bc"]);
        assert!(stack(DType::Int16, &[3], a.iter()).is_err());
        assert_eq!(stack(DType::Float, &[2], [].iter()).unwrap().shape().dims(), [0, 2]);
    }

    #[test]
    fn rows_are_joined() {
        let a = [Tensor::vector(&[1i64, 2]), Tensor::vector(&[3i64])];
        assert_eq!(concat(DType::Int64, &[], a.iter()).unwrap(), Tensor::vector(&[1i64, 2, 3]));
        assert!(concat(DType::Int64, &[2], a.iter()).is_err());
    }
}
