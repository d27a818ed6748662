//! Elements of tensors of any plain dtype, by their places.

use crate::prelude::*;

/// The elements of `t` at these places, as a vector.
pub(super) fn picked(t: &Tensor, places: &[usize]) -> Result<Tensor> {
    let width = width(t)?;
    let mut out = Tensor::zeros(t.dtype(), [places.len()])?;
    let from = t.bytes()?;
    for (to, &at) in out.bytes_mut()?.chunks_exact_mut(width).zip(places) {
        to.copy_from_slice(&from[at * width..][..width]);
    }
    Ok(out)
}

/// Replaces the elements of `to` at these places by those of a vector.
pub(super) fn put(to: &mut Tensor, places: &[usize], values: &Tensor) -> Result<()> {
    let width = width(to)?;
    let bytes = to.bytes_mut()?;
    for (from, &at) in values.bytes()?.chunks_exact(width).zip(places) {
        bytes[at * width..][..width].copy_from_slice(from);
    }
    Ok(())
}

/// The elements of several tensors of one dtype, one after the other, as a vector.
pub(super) fn joined(parts: &[&Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        bail!(Internal, "nothing to join");
    };
    let dtype = first.dtype();
    let len = parts.iter().map(|t| t.elements()).sum::<usize>();
    let mut out = Tensor::zeros(dtype, [len])?;
    let mut rest = out.bytes_mut()?;
    for part in parts {
        ensure!(
            part.dtype() == dtype,
            InvalidArgument,
            "a function gave a {}, expected a {dtype}",
            part.dtype()
        );
        let bytes = part.bytes()?;
        let (to, behind) = rest.split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        rest = behind;
    }
    Ok(out)
}

/// A scalar as a vector of `len` equal elements.
pub(super) fn repeated(scalar: &Tensor, len: usize) -> Result<Tensor> {
    ensure!(
        scalar.elements() == 1,
        InvalidArgument,
        "expected a scalar, got shape {}",
        scalar.shape()
    );
    picked(scalar, &vec![0; len])
}

fn width(t: &Tensor) -> Result<usize> {
    let size = t.dtype().size().filter(|_| t.dtype().is_plain());
    size.ok_or_else(|| err!(Unimplemented, "XLA has no elements of type {}", t.dtype()))
}

/// Calls `each` with the index of every element of a tensor of these dimensions, in order.
pub(super) fn for_each_index(dims: &[usize], mut each: impl FnMut(&[usize])) {
    let Ok(count) = Shape::from(dims).checked_elements() else { return };
    let mut index = vec![0; dims.len()];
    for _ in 0..count {
        each(&index);
        for d in (0..dims.len()).rev() {
            index[d] += 1;
            if index[d] < dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

/// Input `i`, a vector of `len` integers.
pub(super) fn integers(ctx: &AsyncCtx, i: usize, name: &str, len: usize) -> Result<Vec<i64>> {
    let t = ctx.input(i)?;
    ensure!(
        t.rank() == 1 && t.elements() == len,
        InvalidArgument,
        "{name} must be a vector of {len} elements, got shape {}",
        t.shape()
    );
    t.to_indices()
}
