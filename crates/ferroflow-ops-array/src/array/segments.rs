//! Copies tensors whose axes are cut into segments; segments are moved and may be reversed.

use super::walk::{self, Walk};
use crate::prelude::*;

/// A segment of one axis: `len` elements from `from` (backwards if `reversed`) are copied to `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub len: usize,
    pub from: usize,
    pub reversed: bool,
    pub to: usize,
}

impl Segment {
    /// A whole axis that is not moved.
    pub(crate) fn whole(len: usize) -> Segment {
        Segment { len, from: 0, reversed: false, to: 0 }
    }
}

/// Copies every combination of one segment per axis.
pub(crate) fn copy(axes: &[Vec<Segment>], src: &Tensor, dst: &mut Tensor) -> Result<()> {
    // Without empty segments, there are no more combinations than elements.
    let axes: Vec<Vec<Segment>> =
        axes.iter().map(|a| a.iter().copied().filter(|s| s.len > 0).collect()).collect();
    if axes.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let strides: Vec<(isize, isize)> =
        walk::strides(src.shape()).into_iter().zip(walk::strides(dst.shape())).collect();
    let mut pick = vec![0; axes.len()];
    loop {
        let (mut from, mut to) = (0, 0);
        let chosen = || pick.iter().zip(&axes).map(|(&i, axis)| axis[i]).zip(&strides);
        for (s, (from_stride, to_stride)) in chosen() {
            from += s.from * *from_stride as usize;
            to += s.to * *to_stride as usize;
        }
        let mut walk = Walk::new(from, to);
        for (s, (from_stride, to_stride)) in chosen() {
            let step = if s.reversed { -*from_stride } else { *from_stride };
            walk.then(s.len, step, *to_stride);
        }
        walk.copy(src, dst)?;
        let Some(next) = (0..axes.len()).rev().find(|&i| pick[i] + 1 < axes[i].len()) else {
            return Ok(());
        };
        pick[next] += 1;
        pick[next + 1..].fill(0);
    }
}
