//! How threads find their elements: a number becomes coordinates, and these become a position in
//! each operand.

use crate::prelude::*;
use ferroflow_core::LaunchArg;

/// The most dimensions, after contiguous ones are joined.
pub const MAX_RANK: usize = 8;

/// The struct and its function in kernels that take a [`Walk`] over `N` operands.
pub const TEXT: &str = r"
template <int N> struct Walk {
    i64 rank;
    i64 dims[8];
    i64 strides[N][8];
    // The positions of element `i` in all operands.
    __device__ void find(i64 i, i64 *at) const {
        for (int k = 0; k < N; k++) at[k] = 0;
        for (int d = (int)rank - 1; d > 0; d--) {
            i64 q = i < 2147483648ll ? (i64)((u32)i / (u32)dims[d]) : i / dims[d];
            i64 c = i - q * dims[d];
            i = q;
            for (int k = 0; k < N; k++) at[k] += c * strides[k][d];
        }
        for (int k = 0; k < N; k++) at[k] += i * strides[k][0];
    }
};
";

/// Dimensions and, for each operand, the distance in elements from one coordinate to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    dims: Vec<usize>,
    strides: Vec<Vec<i64>>,
}

impl Walk {
    /// A walk over `dims`. Dimensions that lie together in all operands become one.
    pub fn new(dims: &[usize], strides: &[Vec<i64>]) -> Result<Walk> {
        let mut walk = Walk { dims: Vec::new(), strides: vec![Vec::new(); strides.len()] };
        for (d, &dim) in dims.iter().enumerate().filter(|(_, dim)| **dim != 1) {
            let lies_together = |k: usize| {
                let last = walk.strides[k].last();
                last.is_some_and(|&last| last == strides[k][d] * dim as i64)
            };
            if (0..strides.len()).all(lies_together)
                && let Some(last) = walk.dims.last_mut()
            {
                *last *= dim;
                for (to, from) in walk.strides.iter_mut().zip(strides) {
                    to.pop();
                    to.push(from[d]);
                }
                continue;
            }
            walk.dims.push(dim);
            for (to, from) in walk.strides.iter_mut().zip(strides) {
                to.push(from[d]);
            }
        }
        if walk.dims.is_empty() {
            walk.dims.push(1);
            walk.strides.iter_mut().for_each(|s| s.push(0));
        }
        ensure!(
            walk.dims.len() <= MAX_RANK,
            Unimplemented,
            "GPU kernels take tensors of at most {MAX_RANK} dimensions that do not lie together"
        );
        Ok(walk)
    }

    /// The operands of shapes that broadcast to `out`.
    pub fn broadcast(out: &Shape, operands: &[&Shape]) -> Result<Walk> {
        let strides: Vec<Vec<i64>> = operands.iter().map(|s| broadcast_strides(s, out)).collect();
        Walk::new(out.dims(), &strides)
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The strides of operand `k`.
    pub fn strides(&self, k: usize) -> &[i64] {
        &self.strides[k]
    }

    /// The struct as kernels take it.
    pub fn arg(&self) -> LaunchArg {
        let padded = |values: Vec<i64>, fill: i64| {
            let rest = MAX_RANK - values.len();
            values.into_iter().chain(std::iter::repeat_n(fill, rest))
        };
        let mut words = vec![self.dims.len() as i64];
        words.extend(padded(self.dims.iter().map(|&d| d as i64).collect(), 1));
        self.strides.iter().for_each(|s| words.extend(padded(s.clone(), 0)));
        LaunchArg::Words(words.into())
    }
}

/// The strides of a row-major tensor.
pub fn row_major(dims: &[usize]) -> Vec<i64> {
    let mut strides = vec![1i64; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d] as i64;
    }
    strides
}

/// The strides of a tensor of shape `from` seen with shape `to`: 0 where it is repeated.
pub(super) fn broadcast_strides(from: &Shape, to: &Shape) -> Vec<i64> {
    let own = row_major(from.dims());
    let missing = to.rank().saturating_sub(from.rank());
    let stride = |d: usize| match d.checked_sub(missing) {
        Some(i) if from[i] == to[d] => own[i],
        _ => 0,
    };
    (0..to.rank()).map(stride).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_lie_together_become_one() {
        let out = Shape::from([2, 3, 4]);
        let same = Walk::broadcast(&out, &[&out, &out]).unwrap();
        assert_eq!(same.dims(), [24]);
        let row = Walk::broadcast(&out, &[&out, &Shape::from([4])]).unwrap();
        assert_eq!((row.dims(), row.strides(1)), (&[6, 4][..], &[0, 1][..]));
        let column = Walk::broadcast(&out, &[&Shape::from([2, 1, 1]), &out]).unwrap();
        assert_eq!((column.dims(), column.strides(0)), (&[2, 12][..], &[1, 0][..]));
        assert_eq!(Walk::broadcast(&Shape::scalar(), &[]).unwrap().dims(), [1]);
    }
}
