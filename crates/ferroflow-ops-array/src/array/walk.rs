//! Copies elements between tensors along strides.
//!
//! Transpose, slices, tiles, pads and blocks of space are all one nested loop that copies element
//! by element. [`Walk`] is that loop. It is planned without generics; only the innermost copy is
//! compiled per element width.

use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::parallel::split_mut;
use smallvec::SmallVec;

/// Runs `$body` with `$W` as the type in which elements of `$dtype` are copied.
macro_rules! by_width {
    ($dtype:expr, $W:ident => $body:expr) => {{
        let dtype: DType = $dtype;
        match dtype.size() {
            Some(1) => {
                type $W = u8;
                $body
            }
            Some(2) => {
                type $W = u16;
                $body
            }
            Some(4) => {
                type $W = u32;
                $body
            }
            Some(8) => {
                type $W = u64;
                $body
            }
            Some(16) => {
                type $W = [u64; 2];
                $body
            }
            _ if dtype == DType::String => {
                type $W = bytes::Bytes;
                $body
            }
            _ if dtype == DType::Resource => {
                type $W = ResourceHandle;
                $body
            }
            _ => {
                type $W = ferroflow_core::Variant;
                $body
            }
        }
    }};
}
pub(crate) use by_width;

/// About the nanoseconds to copy an element.
pub(crate) const MOVE_COST: usize = 1;

/// One loop: its count, and the step of each side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Loop {
    len: usize,
    from: isize,
    to: isize,
}

/// A nest of loops, outermost first, with the start of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    loops: SmallVec<[Loop; 6]>,
    from: isize,
    to: isize,
}

impl Walk {
    /// Sets the first elements of both sides.
    pub(crate) fn new(from: usize, to: usize) -> Walk {
        Walk { loops: SmallVec::new(), from: from as isize, to: to as isize }
    }

    /// Adds a loop inside the existing ones.
    pub(crate) fn then(&mut self, len: usize, from: isize, to: isize) -> &mut Walk {
        self.loops.push(Loop { len, from, to });
        self
    }

    /// Loops over `dims`, row-major on both sides except for the strides of `from`.
    pub(crate) fn gather(dims: &[usize], strides: &[isize], from: usize) -> Walk {
        let mut walk = Walk::new(from, 0);
        for ((&len, &stride), &to) in dims.iter().zip(strides).zip(&Shape::from(dims).strides()) {
            walk.then(len, stride, to as isize);
        }
        walk
    }

    /// Copies a contiguous block of shape `dims` into a tensor with `strides`.
    pub(crate) fn scatter(dims: &[usize], strides: &[isize], to: usize) -> Walk {
        let mut walk = Walk::gather(dims, strides, to);
        for l in &mut walk.loops {
            std::mem::swap(&mut l.from, &mut l.to);
        }
        std::mem::swap(&mut walk.from, &mut walk.to);
        walk
    }

    /// Copies from `src` to `dst`, which have the same dtype.
    pub(crate) fn copy(self, src: &Tensor, dst: &mut Tensor) -> Result<()> {
        ensure!(
            src.dtype() == dst.dtype(),
            InvalidArgument,
            "cannot move {} elements to a {} tensor",
            src.dtype(),
            dst.dtype()
        );
        if dst.gpu().is_some() {
            return self.copy_on_device(src, dst);
        }
        by_width!(src.dtype(), W => self.copy_slice(W::of(src)?, W::of_mut(dst)?))
    }

    /// [`Walk::copy`] in the memory of a GPU.
    fn copy_on_device(self, src: &Tensor, dst: &Tensor) -> Result<()> {
        let Some(walk) = self.simplified() else { return Ok(()) };
        walk.check(src.elements(), dst.elements())?;
        let loops: Vec<_> = walk.loops.iter().map(|l| (l.len, l.from, l.to)).collect();
        gpu::copy::copy(src, walk.from, dst, walk.to, &loops)
    }

    fn copy_slice<W: Movable>(self, src: &[W], dst: &mut [W]) -> Result<()> {
        let Some(walk) = self.simplified() else { return Ok(()) };
        walk.check(src.len(), dst.len())?;
        walk.run_split(src, dst);
        Ok(())
    }

    /// Checks that it stays within tensors of these lengths.
    fn check(&self, src: usize, dst: usize) -> Result<()> {
        let fits = |start: isize, len: usize, step: fn(&Loop) -> isize| {
            let (mut low, mut high) = (start, start);
            for l in &self.loops {
                let reach = step(l) * (l.len as isize - 1);
                *(if reach < 0 { &mut low } else { &mut high }) += reach;
            }
            0 <= low && high < len as isize
        };
        ensure!(
            fits(self.from, src, |l| l.from) && fits(self.to, dst, |l| l.to),
            Internal,
            "a copy runs out of its tensors"
        );
        Ok(())
    }

    /// Removes loops of one iteration and merges loops that continue each other. `None` when there
    /// is nothing to copy.
    fn simplified(mut self) -> Option<Walk> {
        if self.loops.iter().any(|l| l.len == 0) {
            return None;
        }
        let mut loops: SmallVec<[Loop; 6]> = SmallVec::new();
        for l in self.loops.drain(..).filter(|l| l.len > 1) {
            match loops.last_mut() {
                Some(outer)
                    if outer.from == l.from * l.len as isize
                        && outer.to == l.to * l.len as isize =>
                {
                    *outer = Loop { len: outer.len * l.len, ..l };
                }
                _ => loops.push(l),
            }
        }
        Some(Walk { loops, ..self })
    }

    /// Like [`Walk::run`], but divides the outermost loop among threads when each iteration writes
    /// its own range.
    fn run_split<W: Movable>(&self, src: &[W], dst: &mut [W]) {
        let Some((&first, rest)) = self.loops.split_first() else { return self.run(src, dst) };
        let reach: isize = rest.iter().map(|l| l.to * (l.len as isize - 1)).sum();
        if rest.iter().any(|l| l.to < 0) || first.to <= reach {
            return self.run(src, dst);
        }
        let (start, unit) = (self.to as usize, first.to as usize);
        let end = start + unit * (first.len - 1) + reach as usize + 1;
        split_mut(&mut dst[start..end], unit, MOVE_COST, |at, part| {
            let mut walk = self.clone();
            walk.loops[0].len = part.len().div_ceil(unit);
            walk.from += (at / unit) as isize * first.from;
            walk.to = 0;
            walk.run(src, part);
        });
    }

    fn run<W: Movable>(&self, src: &[W], dst: &mut [W]) {
        let Some((&inner, outer)) = self.loops.split_last() else {
            dst[self.to as usize] = src[self.from as usize].clone();
            return;
        };
        // The innermost loop reads elements far apart that another loop reads consecutively. Runs
        // both in tiles that fit the cache.
        if inner.to == 1
            && inner.from.abs() > 1
            && let Some(i) = outer.iter().position(|l| l.from == 1)
        {
            let side = outer[i];
            let mut rest: SmallVec<[Loop; 6]> = SmallVec::from_slice(outer);
            rest.remove(i);
            return odometer(&rest, self.from, self.to, |from, to| {
                transpose(side, inner, src, dst, from, to)
            });
        }
        odometer(outer, self.from, self.to, |from, to| row(inner, src, dst, from, to))
    }
}

/// Calls `body` with both positions for every iteration of `loops`.
fn odometer(loops: &[Loop], mut from: isize, mut to: isize, mut body: impl FnMut(isize, isize)) {
    let mut turn: SmallVec<[usize; 6]> = SmallVec::from_elem(0, loops.len());
    loop {
        body(from, to);
        let mut at = loops.len();
        loop {
            if at == 0 {
                return;
            }
            at -= 1;
            let l = &loops[at];
            turn[at] += 1;
            from += l.from;
            to += l.to;
            if turn[at] < l.len {
                break;
            }
            turn[at] = 0;
            from -= l.from * l.len as isize;
            to -= l.to * l.len as isize;
        }
    }
}

/// The innermost loop.
fn row<W: Movable>(l: Loop, src: &[W], dst: &mut [W], from: isize, to: isize) {
    let (from_at, to_at) = (from as usize, to as usize);
    match (l.from, l.to) {
        (1, 1) => dst[to_at..to_at + l.len].clone_from_slice(&src[from_at..from_at + l.len]),
        (0, 1) => dst[to_at..to_at + l.len].fill(src[from_at].clone()),
        (step, 1) if step > 0 => {
            let src = src[from_at..].iter().step_by(step as usize);
            dst[to_at..to_at + l.len].iter_mut().zip(src).for_each(|(d, s)| *d = s.clone());
        }
        (-1, 1) => {
            let src = src[from_at + 1 - l.len..from_at + 1].iter().rev();
            dst[to_at..to_at + l.len].iter_mut().zip(src).for_each(|(d, s)| *d = s.clone());
        }
        (1, step) if step > 0 => {
            let dst = dst[to_at..].iter_mut().step_by(step as usize);
            dst.zip(&src[from_at..from_at + l.len]).for_each(|(d, s)| *d = s.clone());
        }
        (from_step, to_step) => {
            for i in 0..l.len as isize {
                dst[(to + i * to_step) as usize] = src[(from + i * from_step) as usize].clone();
            }
        }
    }
}

/// Two loops in one: `side` reads consecutive elements, `inner` writes them.
fn transpose<W: Movable>(
    side: Loop,
    inner: Loop,
    src: &[W],
    dst: &mut [W],
    from: isize,
    to: isize,
) {
    const TILE: usize = 16;
    for i0 in (0..side.len).step_by(TILE) {
        for j0 in (0..inner.len).step_by(TILE) {
            let width = TILE.min(inner.len - j0);
            for i in i0..(i0 + TILE).min(side.len) {
                let read = from + i as isize + j0 as isize * inner.from;
                let write = (to + i as isize * side.to) as usize + j0;
                for (j, d) in dst[write..write + width].iter_mut().enumerate() {
                    *d = src[(read + j as isize * inner.from) as usize].clone();
                }
            }
        }
    }
}

/// Sets every element of `t` to the one element of `value`.
pub(crate) fn fill(t: &mut Tensor, value: &Tensor) -> Result<()> {
    fn go<W: Movable>(t: &mut Tensor, value: &Tensor) -> Result<()> {
        let [value] = W::of(value)? else {
            bail!(InvalidArgument, "value must represent a scalar, got shape {}", value.shape());
        };
        W::of_mut(t)?.fill(value.clone());
        Ok(())
    }
    if t.gpu().is_some() {
        return gpu::copy::fill(t, value);
    }
    by_width!(t.dtype(), W => go::<W>(t, value))
}

/// Strides of a row-major tensor, signed.
pub(crate) fn strides(dims: &[usize]) -> SmallVec<[isize; 6]> {
    Shape::from(dims).strides().iter().map(|&s| s as isize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(walk: Walk, src: &[i32], len: usize) -> Vec<i32> {
        let mut dst = Tensor::zeros(DType::Int32, Shape::vector(len)).unwrap();
        walk.copy(&Tensor::vector(src), &mut dst).unwrap();
        dst.as_slice::<i32>().unwrap().to_vec()
    }

    #[test]
    fn negative_and_zero_strides_are_followed() {
        let src = [0, 1, 2, 3, 4, 5];
        assert_eq!(run(Walk::gather(&[2, 3], &[3, -1], 2), &src, 6), [2, 1, 0, 5, 4, 3]);
        assert_eq!(run(Walk::gather(&[2, 3], &[0, 2], 0), &src, 6), [0, 2, 4, 0, 2, 4]);
        assert_eq!(run(Walk::gather(&[3, 2], &[2, 0], 0), &src, 6), [0, 0, 2, 2, 4, 4]);
        assert_eq!(run(Walk::scatter(&[2, 2], &[3, -2], 2), &src, 6), [1, 0, 0, 3, 0, 2]);
    }

    #[test]
    fn large_transposes_go_by_tiles() {
        let (rows, cols) = (37, 50);
        let src: Vec<i32> = (0..rows * cols).collect();
        let dims = [cols as usize, rows as usize];
        let got = run(Walk::gather(&dims, &[1, cols as isize], 0), &src, src.len());
        for (i, v) in got.iter().enumerate() {
            let i = i as i32;
            assert_eq!(*v, (i % rows) * cols + i / rows);
        }
    }

    #[test]
    fn a_split_walk_moves_the_same_elements() {
        let (outer, inner) = (300, 700);
        let src: Vec<i32> = (0..outer * inner).collect();
        // Columns in reverse order, into every second element of the output.
        let mut walk = Walk::new(inner as usize - 1, 1);
        walk.then(inner as usize, -1, 2 * outer as isize).then(outer as usize, inner as isize, 2);
        let got = run(walk, &src, 2 * src.len());
        for (i, v) in got.iter().enumerate() {
            let (row, column) = ((i as i32 / 2) % outer, (i as i32 / 2) / outer);
            let want = if i % 2 == 0 { 0 } else { row * inner + inner - 1 - column };
            assert_eq!(*v, want, "{i}");
        }
    }

    #[test]
    fn a_walk_out_of_its_tensors_is_refused() {
        let mut dst = Tensor::zeros(DType::Int32, Shape::vector(3)).unwrap();
        let src = Tensor::vector(&[1i32, 2]);
        assert!(Walk::gather(&[3], &[1], 0).copy(&src, &mut dst).is_err());
        assert!(Walk::gather(&[2], &[-1], 0).copy(&src, &mut dst).is_err());
        Walk::gather(&[0], &[9], 7).copy(&src, &mut dst).unwrap();
    }
}
