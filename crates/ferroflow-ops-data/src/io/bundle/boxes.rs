//! Copying boxes between tensors.

use crate::prelude::*;
use bytes::Bytes;

/// Copies the box of `len` elements per dimension that begins at `from_at` in `from` to where it
/// begins at `to_at` in `to`. Both tensors have one dtype; the box lies within either.
pub(super) fn copy_box(
    from: &Tensor,
    from_at: &[usize],
    to: &mut Tensor,
    to_at: &[usize],
    len: &[usize],
) -> Result<()> {
    match (from.dtype().size(), from.dtype()) {
        (Some(1), _) => copy::<u8>(from, from_at, to, to_at, len),
        (Some(2), _) => copy::<u16>(from, from_at, to, to_at, len),
        (Some(4), _) => copy::<u32>(from, from_at, to, to_at, len),
        (Some(8), _) => copy::<u64>(from, from_at, to, to_at, len),
        (Some(16), _) => copy::<[u64; 2]>(from, from_at, to, to_at, len),
        (_, DType::String) => copy::<Bytes>(from, from_at, to, to_at, len),
        (_, dtype) => bail!(Unimplemented, "tensors of {dtype} cannot be sliced"),
    }
}

fn copy<W: Movable>(
    from: &Tensor,
    from_at: &[usize],
    to: &mut Tensor,
    to_at: &[usize],
    len: &[usize],
) -> Result<()> {
    if len.contains(&0) {
        return Ok(());
    }
    let (from_strides, to_strides) = (from.shape().strides(), to.shape().strides());
    let (outer, row) = match len.split_last() {
        Some((&row, outer)) => (outer, row),
        None => (len, 1),
    };
    let offset = |at: &[usize], strides: &[usize]| -> usize {
        at.iter().zip(strides).map(|(a, s)| a * s).sum()
    };
    let (from_base, to_base) = (offset(from_at, &from_strides), offset(to_at, &to_strides));
    let source = W::of(from)?;
    let target = W::of_mut(to)?;
    let mut place = vec![0; outer.len()];
    loop {
        let f = from_base + offset(&place, &from_strides);
        let t = to_base + offset(&place, &to_strides);
        target[t..t + row].clone_from_slice(&source[f..f + row]);
        // The next row: the last dimension but one runs fastest.
        let mut d = outer.len();
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            place[d] += 1;
            if place[d] < outer[d] {
                break;
            }
            place[d] = 0;
        }
    }
}

/// The box of `shape` that begins at `at`.
pub(super) fn cut_box(t: &Tensor, at: &[usize], shape: &Shape) -> Result<Tensor> {
    let mut out = Tensor::alloc(t.dtype(), shape.clone())?;
    copy_box(t, at, &mut out, &vec![0; at.len()], shape)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut() {
        let t = Tensor::from_slice([2, 3, 2], &(0..12).collect::<Vec<i32>>()).unwrap();
        let cut = cut_box(&t, &[0, 1, 0], &Shape::from([2, 2, 1])).unwrap();
        assert_eq!(cut, Tensor::from_slice([2, 2, 1], &[2i32, 4, 8, 10]).unwrap());
        let s = Tensor::scalar(5i32);
        assert_eq!(cut_box(&s, &[], &Shape::scalar()).unwrap(), s);
        let none = cut_box(&t, &[0, 0, 0], &Shape::from([0, 3, 2])).unwrap();
        assert_eq!(none.elements(), 0);
    }
}
