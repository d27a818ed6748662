//! The engine of reductions: folds any set of dimensions in steps of `[outer, r, inner]`.
//!
//! Sums are blocked, so rounding errors grow with the logarithm of the length. Every split depends
//! on sizes only, never on the number of threads, so results are the same in every run.

use super::axes::{reduced_dims, reduced_shape};
use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::multiversion;
use ferroflow_op_kit::parallel::for_rows;

/// How a reduction combines elements in an accumulator, which may be wider than the element.
pub(crate) trait Fold<T>: 'static {
    type Acc: Copy + Send + Sync + 'static;
    const START: Self::Acc;
    fn lift(x: T) -> Self::Acc;
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Computes the result from the accumulator and the number of elements in it.
    fn finish(acc: Self::Acc, count: usize) -> T;
}

/// One pass of a fold. The first pass reads elements, later ones read accumulators.
pub(crate) trait Pass<S> {
    type Acc: Copy + Send + Sync;
    const START: Self::Acc;
    fn lift(x: S) -> Self::Acc;
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

struct OverElements<T, F>(std::marker::PhantomData<(T, F)>);
struct OverAccs<T, F>(std::marker::PhantomData<(T, F)>);

impl<T, F: Fold<T>> Pass<T> for OverElements<T, F> {
    type Acc = F::Acc;
    const START: F::Acc = F::START;
    #[inline]
    fn lift(x: T) -> F::Acc {
        F::lift(x)
    }
    #[inline]
    fn join(a: F::Acc, b: F::Acc) -> F::Acc {
        F::join(a, b)
    }
}

impl<T, F: Fold<T>> Pass<F::Acc> for OverAccs<T, F> {
    type Acc = F::Acc;
    const START: F::Acc = F::START;
    #[inline]
    fn lift(x: F::Acc) -> F::Acc {
        x
    }
    #[inline]
    fn join(a: F::Acc, b: F::Acc) -> F::Acc {
        F::join(a, b)
    }
}

/// Elements folded at once; longer runs are folded in halves.
const RUN: usize = 2048;
/// Independent accumulators, enough to keep the vector units busy.
const LANES: usize = 32;
/// Runs folded together, to spread the cost of a call.
const TOGETHER: usize = 8;
/// Columns folded at a time, so that their accumulators stay in the first-level cache.
const COLUMNS: usize = 512;
/// Rows narrower than half of this are folded several at a time.
const NARROW: usize = 128;
/// Elements to a block when a long reduction is split over threads.
const BLOCK: usize = 1 << 16;
/// Runs read at the same time when data comes from memory instead of a cache. The memory then
/// serves several requests, in places far enough apart.
const STREAMS: usize = 4;
/// Accumulators of each such run, and elements folded at once.
const STREAM_LANES: usize = 16;
const STREAM_RUN: usize = RUN / LANES * STREAM_LANES;
/// Tensors of at least this many bytes are assumed to come from memory.
const FAR: usize = 16 << 20;

/// The kernel of a reduction op.
pub(crate) struct Reduction<T, F> {
    keep_dims: bool,
    marker: std::marker::PhantomData<fn(T, F)>,
}

impl<T: Element, F: Fold<T>> Reduction<T, F> {
    pub(crate) fn new(init: &KernelInit<'_>) -> Result<Self> {
        Ok(Reduction { keep_dims: init.bool("keep_dims")?, marker: std::marker::PhantomData })
    }
}

impl<T: Element, F: Fold<T>> Kernel for Reduction<T, F> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let axes = ctx.input(1)?.to_indices()?;
        let x = ctx.input(0)?;
        let reduced = reduced_dims(x.rank(), &axes)?;
        let shape = reduced_shape(x.shape(), &reduced, self.keep_dims);
        let mut y = ctx.alloc(x.dtype(), shape)?;
        reduce::<T, F>(x.as_slice()?, x.shape(), &reduced, y.as_mut_slice()?);
        ctx.set(0, y)
    }
}

/// Folds the dimensions of `x` that `reduced` marks into `y`.
pub(crate) fn reduce<T: Element, F: Fold<T>>(
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    y: &mut [T],
) {
    let loops = Loops {
        start: F::START,
        elements: fold_rows::<T, OverElements<T, F>>,
        // Enough for the dtypes of most large tensors; more would only add code.
        far: match T::DTYPE {
            DType::Float => fold_streams::<T, OverElements<T, F>>,
            _ => fold_rows::<T, OverElements<T, F>>,
        },
        accs: fold_rows::<F::Acc, OverAccs<T, F>>,
        finish: |acc, count, y| {
            for (y, acc) in y.iter_mut().zip(acc) {
                *y = F::finish(*acc, count);
            }
        },
        alone: |x, count, y| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = F::finish(F::join(F::START, F::lift(*x)), count);
            }
        },
    };
    loops.run(x, dims, reduced, y);
}

/// The loops of one fold. The code that drives them is compiled per element type, not per fold.
struct Loops<T, A> {
    start: A,
    elements: FoldRows<T, A>,
    /// The loops for runs that exceed the caches.
    far: FoldRows<T, A>,
    accs: FoldRows<A, A>,
    finish: fn(&[A], usize, &mut [T]),
    /// The results when nothing is folded.
    alone: fn(&[T], usize, &mut [T]),
}

/// The signature of [`fold_rows`]: rows, their width, the first column, the output.
type FoldRows<S, A> = fn(&[S], usize, usize, &mut [A]);

impl<T: Element, A: Copy + Send + Sync> Loops<T, A> {
    fn run(&self, x: &[T], dims: &[usize], reduced: &[bool], y: &mut [T]) {
        let mut groups = grouped(dims, reduced);
        let count = groups.iter().filter(|g| g.1).map(|g| g.0).product();
        if y.is_empty() {
            return;
        }
        let Some(step) = take_last_step(&mut groups) else {
            return (self.alone)(x, count, y);
        };
        let is_far = step.inner == 1 && step.r >= NARROW && size_of_val(x) >= FAR;
        let fold = if is_far { self.far } else { self.elements };
        let mut acc = fold_step(x, step, self.start, fold, self.accs);
        while let Some(step) = take_last_step(&mut groups) {
            acc = fold_step(&acc, step, self.start, self.accs, self.accs);
        }
        (self.finish)(&acc, count, y);
    }
}

/// Merges neighbouring dimensions that are both reduced or both kept; leaves out dimensions of size
/// one.
fn grouped(dims: &[usize], reduced: &[bool]) -> Vec<(usize, bool)> {
    let mut groups: Vec<(usize, bool)> = Vec::new();
    for (&d, &gone) in dims.iter().zip(reduced) {
        match groups.last_mut() {
            _ if d == 1 => {}
            Some(last) if last.1 == gone => last.0 *= d,
            _ => groups.push((d, gone)),
        }
    }
    groups
}

#[derive(Clone, Copy)]
struct Step {
    outer: usize,
    r: usize,
    inner: usize,
}

/// Removes the last reduced group and returns its sizes.
fn take_last_step(groups: &mut Vec<(usize, bool)>) -> Option<Step> {
    let at = groups.iter().rposition(|g| g.1)?;
    let outer = groups[..at].iter().map(|g| g.0).product();
    let inner = groups[at + 1..].iter().map(|g| g.0).product();
    let (r, _) = groups.remove(at);
    Some(Step { outer, r, inner })
}

/// Folds `[outer, r, inner]` to `[outer, inner]`: the elements with `fold`, the partial results
/// with `again`.
fn fold_step<S: Copy + Sync, A: Copy + Send + Sync>(
    x: &[S],
    Step { outer, r, inner }: Step,
    start: A,
    fold: FoldRows<S, A>,
    again: FoldRows<A, A>,
) -> Vec<A> {
    let mut out = vec![start; outer * inner];
    if out.is_empty() || r == 0 {
        return out;
    }
    // About a nanosecond per four elements from memory.
    let cost = |elements: usize| elements.div_ceil(4);
    if outer < ComputePool::threads().max(8) && r * inner > BLOCK {
        let rows = (BLOCK / inner).max(64);
        if r > rows {
            // Few, long reductions: first blocks of rows, then the remaining rows.
            let blocks = r.div_ceil(rows);
            let mut parts = vec![start; outer * blocks * inner];
            for_rows(&mut parts, inner, cost(rows * inner), |range, parts| {
                let mut i = range.start;
                while i < range.end {
                    let (first, block) = (i / blocks * r, i % blocks);
                    // Without rows, folds whole blocks of one run at once.
                    let whole = (r / rows).saturating_sub(block).min(range.end - i);
                    let together = if inner == 1 { whole.max(1) } else { 1 };
                    let to = (block + together).saturating_mul(rows).min(r);
                    let x = &x[(first + block * rows) * inner..(first + to) * inner];
                    let at = (i - range.start) * inner;
                    fold(x, inner, 0, &mut parts[at..at + together * inner]);
                    i += together;
                }
            });
            return fold_step(&parts, Step { outer, r: blocks, inner }, start, again, again);
        }
        // Few, short and wide: each thread takes some of the columns.
        for (x, out) in x.chunks_exact(r * inner).zip(out.chunks_exact_mut(inner)) {
            for_rows(out, 1, cost(r), |columns, out| fold(x, inner, columns.start, out));
        }
        return out;
    }
    if inner == 1 {
        for_rows(&mut out, 1, cost(r), |range, out| {
            fold(&x[range.start * r..range.end * r], 1, 0, out);
        });
        return out;
    }
    for_rows(&mut out, inner, cost(r * inner), |range, out| {
        for (i, out) in range.zip(out.chunks_exact_mut(inner)) {
            fold(&x[i * r * inner..(i + 1) * r * inner], inner, 0, out);
        }
    });
    out
}

/// Folds the rows of `x`, which are `inner` wide, into `out`: columns `from..from + out.len()`. If
/// `inner` is 1, `out` may also have several elements, each for as many rows as the others.
fn fold_rows<S: Copy, P: Pass<S>>(x: &[S], inner: usize, from: usize, out: &mut [P::Acc]) {
    if inner == 1 {
        fold_runs::<S, P>(x, out);
        return;
    }
    let together = NARROW / inner;
    if together > 1 && out.len() == inner && x.len() >= 2 * NARROW {
        // Narrow rows: several next to each other as one wide row.
        let wide = together * inner;
        let (whole, rest) = x.split_at(x.len() / wide * wide);
        let mut sums = [P::START; NARROW];
        fold_columns::<S, P>(whole, wide, 0, &mut sums[..wide]);
        fold_columns::<S, P>(rest, inner, 0, out);
        for sums in sums[..wide].chunks_exact(inner) {
            for (out, &sum) in out.iter_mut().zip(sums) {
                *out = P::join(*out, sum);
            }
        }
        return;
    }
    for (i, out) in out.chunks_mut(COLUMNS).enumerate() {
        fold_columns::<S, P>(x, inner, from + i * COLUMNS, out);
    }
}

/// Folds contiguous runs of one length, one for each element of `out`.
fn fold_runs<S: Copy, P: Pass<S>>(x: &[S], out: &mut [P::Acc]) {
    let r = x.len() / out.len();
    if !(LANES..=RUN).contains(&r) {
        for (x, out) in x.chunks_exact(r).zip(out) {
            *out = fold_run::<S, P>(x);
        }
        return;
    }
    let mut lanes = [[P::START; LANES]; TOGETHER];
    for (x, out) in x.chunks(TOGETHER * r).zip(out.chunks_mut(TOGETHER)) {
        let lanes = &mut lanes[..out.len()];
        fold_lanes::<S, P>(x, r, lanes);
        join_lanes::<S, P>(lanes);
        for ((x, lanes), out) in x.chunks_exact(r).zip(lanes).zip(out) {
            let rest = &x[r / LANES * LANES..];
            *out = rest.iter().fold(lanes[0], |acc, &x| P::join(acc, P::lift(x)));
        }
    }
}

/// Like [`fold_runs`], from several places at once. The result of a run does not depend on the
/// other runs.
fn fold_streams<S: Copy, P: Pass<S>>(x: &[S], _: usize, _: usize, out: &mut [P::Acc]) {
    let r = x.len() / out.len();
    let each = out.len().div_ceil(STREAMS);
    for i in 0..each {
        // If the number of runs does not divide evenly, the last one is folded more than once.
        let at: [usize; STREAMS] = std::array::from_fn(|s| (s * each + i).min(out.len() - 1));
        let sums = fold_together::<S, P>(at.map(|at| &x[at * r..(at + 1) * r]));
        for (at, sum) in at.into_iter().zip(sums) {
            out[at] = sum;
        }
    }
}

/// Folds runs of one length, as [`fold_run`] does.
fn fold_together<S: Copy, P: Pass<S>>(runs: [&[S]; STREAMS]) -> [P::Acc; STREAMS] {
    let len = runs[0].len();
    if len > STREAM_RUN {
        let half = (len / 2).next_multiple_of(STREAM_LANES);
        let a = fold_together::<S, P>(runs.map(|x| &x[..half]));
        let b = fold_together::<S, P>(runs.map(|x| &x[half..]));
        return std::array::from_fn(|s| P::join(a[s], b[s]));
    }
    let mut lanes = [[P::START; STREAM_LANES]; STREAMS];
    fold_stream_lanes::<S, P>(runs, &mut lanes);
    let rest = len / STREAM_LANES * STREAM_LANES;
    std::array::from_fn(|s| {
        let mut width = STREAM_LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                lanes[s][i] = P::join(lanes[s][i], lanes[s][i + width]);
            }
        }
        runs[s][rest..].iter().fold(lanes[s][0], |acc, &x| P::join(acc, P::lift(x)))
    })
}

multiversion! {
    /// Like [`fold_lanes`], for several runs of one length.
    fn fold_stream_lanes[S: Copy, P: Pass<S>]<S, P>(
        runs: [&[S]; STREAMS], lanes: &mut [[P::Acc; STREAM_LANES]; STREAMS]
    ) {
        let [a, b, c, d] = runs.map(|x| x.as_chunks::<STREAM_LANES>().0);
        let mut sums = [[P::START; STREAM_LANES]; STREAMS];
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            for i in 0..STREAM_LANES {
                sums[0][i] = P::join(sums[0][i], P::lift(a[i]));
            }
            for i in 0..STREAM_LANES {
                sums[1][i] = P::join(sums[1][i], P::lift(b[i]));
            }
            for i in 0..STREAM_LANES {
                sums[2][i] = P::join(sums[2][i], P::lift(c[i]));
            }
            for i in 0..STREAM_LANES {
                sums[3][i] = P::join(sums[3][i], P::lift(d[i]));
            }
        }
        *lanes = sums;
    }
}

/// Folds a contiguous run.
fn fold_run<S: Copy, P: Pass<S>>(x: &[S]) -> P::Acc {
    if x.len() > RUN {
        let half = (x.len() / 2).next_multiple_of(LANES);
        let (a, b) = x.split_at(half);
        return P::join(fold_run::<S, P>(a), fold_run::<S, P>(b));
    }
    let mut all = P::START;
    if x.len() >= LANES {
        let mut lanes = [[P::START; LANES]];
        fold_lanes::<S, P>(x, x.len(), &mut lanes);
        join_lanes::<S, P>(&mut lanes);
        all = lanes[0][0];
    }
    x[x.len() / LANES * LANES..].iter().fold(all, |acc, &x| P::join(acc, P::lift(x)))
}

multiversion! {
    /// For each run of `r` elements, folds every element `i` of a whole chunk into lane `i`.
    /// Contains nothing else, so that the compiler keeps the lanes in vectors.
    fn fold_lanes[S: Copy, P: Pass<S>]<S, P>(x: &[S], r: usize, lanes: &mut [[P::Acc; LANES]]) {
        for (x, lanes) in x.chunks_exact(r).zip(lanes) {
            let mut sums = [P::START; LANES];
            for x in x.as_chunks::<LANES>().0 {
                for i in 0..LANES {
                    sums[i] = P::join(sums[i], P::lift(x[i]));
                }
            }
            *lanes = sums;
        }
    }
}

multiversion! {
    /// Folds all lanes of each run into the first.
    fn join_lanes[S: Copy, P: Pass<S>]<S, P>(lanes: &mut [[P::Acc; LANES]]) {
        for lanes in lanes {
            for i in 0..16 {
                lanes[i] = P::join(lanes[i], lanes[i + 16]);
            }
            for i in 0..8 {
                lanes[i] = P::join(lanes[i], lanes[i + 8]);
            }
            for i in 0..4 {
                lanes[i] = P::join(lanes[i], lanes[i + 4]);
            }
            lanes[0] = P::join(P::join(lanes[0], lanes[2]), P::join(lanes[1], lanes[3]));
        }
    }
}

multiversion! {
    /// Folds every row of `x`, `inner` wide, into `out`: columns `from..from + out.len()`.
    fn fold_each_row[S: Copy, P: Pass<S>]<S, P>(
        x: &[S], inner: usize, from: usize, out: &mut [P::Acc]
    ) {
        for row in x.chunks_exact(inner) {
            let row = &row[from..from + out.len()];
            for (out, &x) in out.iter_mut().zip(row) {
                *out = P::join(*out, P::lift(x));
            }
        }
    }
}

/// Folds a few columns; many rows are folded in halves.
fn fold_columns<S: Copy, P: Pass<S>>(x: &[S], inner: usize, from: usize, out: &mut [P::Acc]) {
    let rows = x.len() / inner;
    if rows > 128 {
        let (a, b) = x.split_at(rows / 2 * inner);
        fold_columns::<S, P>(a, inner, from, out);
        let mut second = [P::START; COLUMNS];
        let second = &mut second[..out.len()];
        fold_columns::<S, P>(b, inner, from, second);
        for (out, b) in out.iter_mut().zip(second) {
            *out = P::join(*out, *b);
        }
        return;
    }
    out.fill(P::START);
    fold_each_row::<S, P>(x, inner, from, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count;
    impl Fold<i64> for Count {
        type Acc = i64;
        const START: i64 = 0;
        fn lift(x: i64) -> i64 {
            x
        }
        fn join(a: i64, b: i64) -> i64 {
            a + b
        }
        fn finish(acc: i64, _: usize) -> i64 {
            acc
        }
    }

    /// Folds element by element.
    fn plainly(x: &[i64], dims: &[usize], reduced: &[bool]) -> Vec<i64> {
        let left = reduced_shape(&Shape::from(dims), reduced, true);
        let (strides, to) = (Shape::from(dims).strides(), left.strides());
        let mut y = vec![0; left.elements()];
        for (i, x) in x.iter().enumerate() {
            let at = (0..dims.len())
                .map(|d| if reduced[d] { 0 } else { i / strides[d] % dims[d] * to[d] })
                .sum::<usize>();
            y[at] += x;
        }
        y
    }

    struct Sum;
    impl Fold<f32> for Sum {
        type Acc = f32;
        const START: f32 = 0.0;
        fn lift(x: f32) -> f32 {
            x
        }
        fn join(a: f32, b: f32) -> f32 {
            a + b
        }
        fn finish(acc: f32, _: usize) -> f32 {
            acc
        }
    }

    /// Numbers whose sums are exact; more than the caches hold.
    #[test]
    fn large_tensors_fold() {
        let n = FAR / 4 + 12_345;
        let x: Vec<f32> = (0..n).map(|i| (i % 3) as f32).collect();
        let sum = |x: &[f32]| x.iter().map(|&x| x as usize).sum::<usize>() as f32;
        for row in [n, n / 3, 259, 7] {
            let rows = n / row;
            let mut y = vec![-1.0; rows];
            reduce::<f32, Sum>(&x[..rows * row], &[rows, row], &[false, true], &mut y);
            assert!(x.chunks_exact(row).zip(&y).all(|(x, &y)| sum(x) == y), "{row}");
        }
    }

    #[test]
    fn any_set_of_dimensions_folds() {
        let shapes: [&[usize]; 8] = [
            &[2, 3, 4, 5],
            &[1, 3, 1, 2],
            &[70_001],
            &[3, 70_001],
            &[300, 700],
            &[2, 90_000],
            &[5001, 3],
            &[0],
        ];
        for dims in shapes {
            let n: usize = dims.iter().product();
            let x: Vec<i64> = (0..n as i64).map(|i| i * 7 % 101).collect();
            for mask in 0..1 << dims.len() {
                let reduced: Vec<bool> = (0..dims.len()).map(|d| mask >> d & 1 == 1).collect();
                let want = plainly(&x, dims, &reduced);
                let mut y = vec![-1; want.len()];
                reduce::<i64, Count>(&x, dims, &reduced, &mut y);
                assert_eq!(y, want, "{dims:?} {reduced:?}");
            }
        }
    }
}
