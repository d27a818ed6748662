//! Transforms along one dimension, planned once per length and kept by the kernel.

use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;
use parking_lot::Mutex;
use realfft::RealFftPlanner;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftPlanner};

/// `f32` or `f64`.
pub(super) trait Part: Float + rustfft::FftNum {}
impl Part for f32 {}
impl Part for f64 {}

/// Plans of one kernel.
pub(super) struct Plans<P: Part> {
    complex: Mutex<FftPlanner<P>>,
    real: Mutex<RealFftPlanner<P>>,
}

/// Columns transformed together, so that whole cache lines are read.
const COLUMNS: usize = 16;

impl<P: Part> Plans<P>
where
    Complex<P>: Num,
{
    pub fn new() -> Plans<P> {
        Plans { complex: Mutex::new(FftPlanner::new()), real: Mutex::new(RealFftPlanner::new()) }
    }

    /// Transforms `x`, seen as `[outer, n, inner]`, along `n`, in place; not scaled.
    pub fn along(&self, x: &mut [Complex<P>], n: usize, inner: usize, direction: FftDirection) {
        if x.is_empty() || n == 1 {
            return;
        }
        let plan = self.complex.lock().plan_fft(n, direction);
        let cost = 4 * n * n.ilog2() as usize;
        if inner == 1 {
            for_rows(x, n, cost, |_, rows| {
                let mut scratch = vec![Complex::<P>::ZERO; plan.get_inplace_scratch_len()];
                plan.process_with_scratch(rows, &mut scratch);
            });
            return;
        }
        for_rows(x, n * inner, cost * inner, |_, part| {
            let mut scratch = vec![Complex::<P>::ZERO; plan.get_inplace_scratch_len()];
            let mut columns = vec![Complex::<P>::ZERO; n * COLUMNS];
            for x in part.chunks_exact_mut(n * inner) {
                for from in (0..inner).step_by(COLUMNS) {
                    let width = COLUMNS.min(inner - from);
                    let columns = &mut columns[..n * width];
                    for (i, row) in x.chunks_exact(inner).enumerate() {
                        for (j, z) in row[from..from + width].iter().enumerate() {
                            columns[j * n + i] = *z;
                        }
                    }
                    plan.process_with_scratch(columns, &mut scratch);
                    for (i, row) in x.chunks_exact_mut(inner).enumerate() {
                        for (j, z) in row[from..from + width].iter_mut().enumerate() {
                            *z = columns[j * n + i];
                        }
                    }
                }
            }
        });
    }

    /// Transforms real rows of `n`, read by `row(i, to)`, to rows of `n / 2 + 1`.
    pub fn forward_rows(
        &self,
        n: usize,
        y: &mut [Complex<P>],
        row: impl Fn(usize, &mut [P]) + Sync,
    ) {
        let plan = self.real.lock().plan_fft_forward(n);
        let half = n / 2 + 1;
        for_rows(y, half, 2 * n * (n.ilog2() as usize + 1), |rows, y| {
            let mut scratch = plan.make_scratch_vec();
            let mut x = plan.make_input_vec();
            for (i, y) in rows.zip(y.chunks_exact_mut(half)) {
                row(i, &mut x);
                let done = plan.process_with_scratch(&mut x, y, &mut scratch);
                done.expect("buffers are as long as the plan says");
            }
        });
    }

    /// The inverse of [`Plans::forward_rows`], not scaled. Imaginary parts that are zero for every
    /// real signal are ignored.
    pub fn inverse_rows(
        &self,
        n: usize,
        y: &mut [P],
        row: impl Fn(usize, &mut [Complex<P>]) + Sync,
    ) {
        let plan = self.real.lock().plan_fft_inverse(n);
        for_rows(y, n, 2 * n * (n.ilog2() as usize + 1), |rows, y| {
            let mut scratch = plan.make_scratch_vec();
            let mut x = plan.make_input_vec();
            for (i, y) in rows.zip(y.chunks_exact_mut(n)) {
                row(i, &mut x);
                x[0].im = <P as Num>::ZERO;
                if n.is_multiple_of(2) {
                    x[n / 2].im = <P as Num>::ZERO;
                }
                let done = plan.process_with_scratch(&mut x, y, &mut scratch);
                done.expect("buffers are as long as the plan says");
            }
        });
    }
}
