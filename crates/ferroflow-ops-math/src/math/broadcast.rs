//! Broadcasting: index arithmetic that aligns several shapes.
//!
//! Adjacent dimensions in which every operand behaves alike are merged. Most cases become one long
//! run, or rows against one row or one column.

use crate::prelude::*;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// `N` shapes broadcast against each other.
pub(crate) struct Broadcast<const N: usize> {
    shape: Shape,
    /// Collapsed dimensions, outermost first; at least one.
    dims: SmallVec<[usize; 4]>,
    /// Strides of each operand in those dimensions; 0 where it is repeated.
    strides: SmallVec<[[usize; N]; 4]>,
}

impl<const N: usize> Broadcast<N> {
    /// `None` when the shapes do not fit together.
    pub(crate) fn new(shapes: [&Shape; N]) -> Option<Broadcast<N>> {
        if shapes.iter().all(|s| *s == shapes[0]) {
            let shape = shapes[0].clone();
            let dims = smallvec![shape.elements()];
            return Some(Broadcast { shape, dims, strides: smallvec![[1; N]] });
        }
        let shape = joint_shape(&shapes)?;
        let mut dims: SmallVec<[usize; 4]> = SmallVec::new();
        let mut repeated: SmallVec<[[bool; N]; 4]> = SmallVec::new();
        for (i, &d) in shape.iter().enumerate() {
            if d == 1 {
                continue;
            }
            let flags =
                shapes.map(|s| (i + s.rank()).checked_sub(shape.rank()).is_none_or(|j| s[j] == 1));
            match (dims.last_mut(), repeated.last()) {
                (Some(last), Some(before)) if *before == flags => *last = last.saturating_mul(d),
                _ => {
                    dims.push(d);
                    repeated.push(flags);
                }
            }
        }
        if dims.is_empty() {
            dims.push(1);
            repeated.push([false; N]);
        }
        let mut strides: SmallVec<[[usize; N]; 4]> = smallvec![[0; N]; dims.len()];
        let mut next = [1usize; N];
        for i in (0..dims.len()).rev() {
            for k in 0..N {
                if !repeated[i][k] {
                    strides[i][k] = next[k];
                    next[k] = next[k].saturating_mul(dims[i]);
                }
            }
        }
        Some(Broadcast { shape, dims, strides })
    }

    /// The shape of the result.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Length of the innermost runs.
    pub(crate) fn run_len(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Whether operand `k` has one element for each whole run, instead of one per element.
    pub(crate) fn repeats_in_run(&self, k: usize) -> bool {
        self.strides[self.dims.len() - 1][k] == 0
    }

    /// Whether operand `k` has the layout of the result.
    pub(crate) fn is_whole(&self, k: usize) -> bool {
        self.strides.iter().all(|s| s[k] != 0)
    }

    /// Calls `run(at, offsets, len)` for the runs that make up `range` of the result's elements, in
    /// order. The elements `at..at + len` of the result come from each operand's elements from
    /// `offset` on, or from that one element if it repeats.
    pub(crate) fn runs(&self, range: Range<usize>, mut run: impl FnMut(usize, [usize; N], usize)) {
        if range.is_empty() {
            return;
        }
        let inner = self.dims.len() - 1;
        // Where `range` starts, as an index in each dimension.
        let mut index: SmallVec<[usize; 4]> = smallvec![0; self.dims.len()];
        let mut rest = range.start;
        for (i, &d) in self.dims.iter().enumerate().rev() {
            index[i] = rest % d;
            rest /= d;
        }
        let mut offsets = [0; N];
        for (i, &n) in index.iter().enumerate() {
            self.advance(&mut offsets, i, n);
        }
        let mut at = range.start;
        loop {
            let len = (self.dims[inner] - index[inner]).min(range.end - at);
            run(at, offsets, len);
            at += len;
            if at >= range.end {
                return;
            }
            // The run ended with its row: return to the start of the row and go to the next one.
            self.go_back(&mut offsets, inner, index[inner]);
            index[inner] = 0;
            for i in (0..inner).rev() {
                index[i] += 1;
                if index[i] < self.dims[i] {
                    self.advance(&mut offsets, i, 1);
                    break;
                }
                index[i] = 0;
                self.go_back(&mut offsets, i, self.dims[i] - 1);
            }
        }
    }

    /// Moves all operands `n` steps on in dimension `i`.
    fn advance(&self, offsets: &mut [usize; N], i: usize, n: usize) {
        for (offset, stride) in offsets.iter_mut().zip(self.strides[i]) {
            *offset += n * stride;
        }
    }

    fn go_back(&self, offsets: &mut [usize; N], i: usize, n: usize) {
        for (offset, stride) in offsets.iter_mut().zip(self.strides[i]) {
            *offset -= n * stride;
        }
    }
}

/// The error for two shapes that do not broadcast.
pub(crate) fn incompatible(a: &Shape, b: &Shape) -> Error {
    err!(InvalidArgument, "Incompatible shapes: {a} vs. {b}")
}

fn joint_shape<const N: usize>(shapes: &[&Shape; N]) -> Option<Shape> {
    let rank = shapes.iter().map(|s| s.rank()).max().unwrap_or(0);
    let mut dims: SmallVec<[usize; 4]> = smallvec![1; rank];
    for s in shapes {
        let skip = rank - s.rank();
        for (to, &d) in dims[skip..].iter_mut().zip(s.iter()) {
            match (*to, d) {
                (1, _) => *to = d,
                (_, 1) => {}
                (x, y) if x == y => {}
                _ => return None,
            }
        }
    }
    Some(dims.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of both operands for every element, by runs split at odd places.
    fn offsets(a: &[usize], b: &[usize]) -> (Vec<usize>, Vec<[usize; 2]>) {
        let (a, b) = (Shape::from(a), Shape::from(b));
        let plan = Broadcast::new([&a, &b]).unwrap();
        let n = plan.shape().elements();
        let mut got = Vec::new();
        for part in (0..n).step_by(5) {
            plan.runs(part..(part + 5).min(n), |at, offsets, len| {
                assert_eq!(at, got.len());
                for i in 0..len {
                    let step = |k: usize| if plan.repeats_in_run(k) { 0 } else { i };
                    got.push([offsets[0] + step(0), offsets[1] + step(1)]);
                }
            });
        }
        (plan.shape().to_vec(), got)
    }

    /// The same, the slow way.
    fn slow(shape: &[usize], operand: &[usize], flat: usize) -> usize {
        let (mut rest, mut offset, mut stride) = (flat, 0, 1);
        for (i, &d) in shape.iter().enumerate().rev() {
            let index = rest % d;
            rest /= d;
            if let Some(j) = (i + operand.len()).checked_sub(shape.len()) {
                if operand[j] != 1 {
                    offset += index * stride;
                }
                stride *= operand[j];
            }
        }
        offset
    }

    #[test]
    fn every_element_finds_its_operands() {
        let cases: [(&[usize], &[usize]); 11] = [
            (&[2, 3], &[2, 3]),
            (&[2, 3], &[]),
            (&[], &[]),
            (&[4, 3], &[3]),
            (&[4, 1], &[1, 3]),
            (&[2, 1, 4], &[3, 1]),
            (&[2, 3, 1, 5], &[4, 5]),
            (&[2, 3, 4], &[1, 3, 1]),
            (&[1, 1], &[6]),
            (&[0, 3], &[3]),
            (&[2, 1, 3, 1, 2], &[1, 4, 3, 5, 1]),
        ];
        for (a, b) in cases {
            let (shape, got) = offsets(a, b);
            assert_eq!(got.len(), shape.iter().product::<usize>(), "{a:?} {b:?}");
            for (i, o) in got.iter().enumerate() {
                assert_eq!(*o, [slow(&shape, a, i), slow(&shape, b, i)], "{a:?} {b:?} {i}");
            }
        }
    }

    #[test]
    fn like_dimensions_collapse() {
        let (a, b) = (Shape::from([2, 3, 4, 5]), Shape::from([4, 5]));
        let plan = Broadcast::new([&a, &b]).unwrap();
        assert_eq!(plan.dims.as_slice(), [6, 20]);
        assert!(plan.is_whole(0) && !plan.is_whole(1));
    }

    #[test]
    fn unlike_shapes_are_refused() {
        assert!(Broadcast::new([&Shape::from([2]), &Shape::from([3])]).is_none());
        assert!(Broadcast::new([&Shape::from([0]), &Shape::from([2])]).is_none());
        assert!(Broadcast::new([&Shape::from([0]), &Shape::from([1])]).is_some());
    }
}
