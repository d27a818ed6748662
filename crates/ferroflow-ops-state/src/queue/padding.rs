//! Batches of tensors of different shapes: smaller ones are padded with zeros.

use crate::prelude::*;
use ferroflow_op_kit::pack::{copy_into, stack, with_rows};

/// Tensors of one rank, each padded at the end of every dimension to the largest, then stacked.
pub(crate) fn stack_padded<'a>(
    dtype: DType,
    parts: impl ExactSizeIterator<Item = &'a Tensor> + Clone,
) -> Result<Tensor> {
    let mut largest: Vec<usize> = Vec::new();
    let mut equal = true;
    for (i, part) in parts.clone().enumerate() {
        if i == 0 {
            largest = part.shape().to_vec();
            continue;
        }
        ensure!(
            part.rank() == largest.len(),
            InvalidArgument,
            "cannot pad shape {} to {}: their ranks differ",
            part.shape(),
            Shape::from(largest)
        );
        equal &= part.shape().dims() == largest;
        for (big, &d) in largest.iter_mut().zip(part.shape().iter()) {
            *big = (*big).max(d);
        }
    }
    if equal {
        return stack(dtype, &largest, parts);
    }
    let mut out = Tensor::zeros(dtype, with_rows(parts.len(), &largest))?;
    let strides = Shape::from(largest.clone()).strides();
    let each: usize = largest.iter().product();
    for (i, part) in parts.enumerate() {
        // Copies runs along the last dimension.
        let run = part.shape().last().copied().unwrap_or(1);
        let flat = part.reshape([part.elements()])?;
        let outer = &part.shape()[..part.rank().saturating_sub(1)];
        for r in 0..part.elements() / run.max(1) {
            let (mut rest, mut at) = (r, i * each);
            for (&d, &stride) in outer.iter().zip(&strides).rev() {
                at += rest % d * stride;
                rest /= d;
            }
            copy_into(&mut out, at, &flat.rows(r * run, run)?)?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_tensors_are_padded_with_zeros() {
        let a = Tensor::from_slice([1, 2], &[1i32, 2]).unwrap();
        let b = Tensor::from_slice([2, 1], &[3i32, 4]).unwrap();
        let got = stack_padded(DType::Int32, [&a, &b].into_iter()).unwrap();
        let want = Tensor::from_slice([2, 2, 2], &[1i32, 2, 0, 0, 3, 0, 4, 0]).unwrap();
        assert_eq!(got, want);
        let empty = Tensor::zeros(DType::Int32, [0, 3]).unwrap();
        let got = stack_padded(DType::Int32, [&a, &empty].into_iter()).unwrap();
        let want = Tensor::from_slice([2, 1, 3], &[1i32, 2, 0, 0, 0, 0]).unwrap();
        assert_eq!(got, want);
        assert!(stack_padded(DType::Int32, [&a, &Tensor::scalar(1i32)].into_iter()).is_err());
    }
}
