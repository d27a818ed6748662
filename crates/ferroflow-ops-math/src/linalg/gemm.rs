//! Matrix products of every number type. Floats use the `gemm` crate, or `linalg::wide` where that
//! is faster, split over our own threads. Halves are widened. Integers use a plain loop with
//! wrapping arithmetic.

use super::tile::Tiled;
use crate::prelude::*;
use ferroflow_core::{ComputePool, Epilogue, Rows};
use ferroflow_op_kit::parallel::for_rows;
use gemm::Parallelism;

/// A matrix in memory, with any strides.
pub struct Mat<'a, T> {
    pub data: &'a [T],
    pub rows: usize,
    pub cols: usize,
    pub row_stride: usize,
    pub col_stride: usize,
    /// Whether the complex conjugate is used.
    pub conj: bool,
}

impl<T> Clone for Mat<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Mat<'_, T> {}

impl<'a, T> Mat<'a, T> {
    /// A row-major matrix.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Mat { data, rows, cols, row_stride: cols, col_stride: 1, conj: false }
    }

    pub fn transposed(self) -> Self {
        let Mat { data, rows, cols, row_stride, col_stride, conj } = self;
        Mat { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride, conj }
    }

    /// The conjugate transpose.
    pub fn adjoint(self) -> Self {
        Mat { conj: !self.conj, ..self.transposed() }
    }

    /// One more than the largest index used.
    fn extent(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }

    /// Its elements in a row-major vector, each mapped by a function.
    fn to_vec<U>(self, map: impl Fn(T) -> U) -> Vec<U>
    where
        T: Copy,
    {
        let mut out = Vec::with_capacity(self.rows * self.cols);
        for i in 0..self.rows {
            let row = i * self.row_stride;
            out.extend((0..self.cols).map(|j| map(self.data[row + j * self.col_stride])));
        }
        out
    }
}

/// Whether a product may use other threads. It may not if it is itself part of a split.
#[derive(Clone, Copy, PartialEq)]
pub enum ProductThreads {
    One,
    All,
}

/// Numbers with a matrix product.
pub trait Product: Tiled {
    /// Converts the rows of a result to the form that an epilogue takes, for dtypes that have
    /// epilogues.
    fn rows(_: &mut [Self]) -> Option<Rows<'_>> {
        None
    }

    /// `out = a b`, or `out += a b`; the rows of `out` are `out_stride` apart.
    fn product(
        a: Mat<'_, Self>,
        b: Mat<'_, Self>,
        out: &mut [Self],
        out_stride: usize,
        add: bool,
        threads: ProductThreads,
    );
}

/// `out = a b`, contiguous.
pub fn product<T: Product>(a: Mat<'_, T>, b: Mat<'_, T>, out: &mut [T], threads: ProductThreads) {
    let stride = b.cols;
    T::product(a, b, out, stride, false, threads);
}

/// An epilogue over finished rows of a result; usually none.
#[derive(Clone, Copy)]
pub struct Finisher<'a>(Option<&'a dyn Epilogue>);

impl<'a> Finisher<'a> {
    pub const NONE: Finisher<'static> = Finisher(None);

    /// `None` if `epilogue` does not apply to a result of this shape.
    pub fn new<T: Product>(epilogue: &'a dyn Epilogue, shape: &Shape) -> Option<Finisher<'a>> {
        let fits = T::rows(&mut []).is_some() && epilogue.fits(T::DTYPE, shape);
        fits.then_some(Finisher(Some(epilogue)))
    }

    pub fn run<T: Product>(&self, rows: &mut [T]) {
        if let (Some(epilogue), Some(rows)) = (self.0, T::rows(rows)) {
            epilogue.apply(rows);
        }
    }

    /// Applies the epilogue to rows of `n` elements that were computed elsewhere.
    pub fn run_all<T: Product>(&self, out: &mut [T], n: usize) {
        if self.0.is_some() {
            for_rows(out, n, n, |_, rows| self.run(rows));
        }
    }
}

/// About how many nanoseconds a product of these sizes takes on one thread.
pub fn product_cost(m: usize, n: usize, k: usize) -> usize {
    m.saturating_mul(n).saturating_mul(k) / 32 + 20
}

macro_rules! gemm_products {
    ($($t:ty $(, $rows:ident)?: $way:expr;)*) => {$(
        impl Product for $t {
            $(fn rows(rows: &mut [Self]) -> Option<Rows<'_>> {
                Some(Rows::$rows(rows))
            })?

            fn product(
                a: Mat<'_, $t>,
                b: Mat<'_, $t>,
                out: &mut [$t],
                out_stride: usize,
                add: bool,
                threads: ProductThreads,
            ) {
                run_gemm(a, b, out, out_stride, add, threads, $way)
            }
        }
    )*};
}
gemm_products! {
    f32, F32: single;
    f64, F64: |_| by_gemm;
    Complex32: |_| by_gemm;
    Complex64: |_| by_gemm;
}

/// A product of matrices in memory, or a part of it: `m` by `k` times `k` by `n`. Strides are those
/// of rows and columns. The creator guarantees that the factors are readable and the result is
/// writable.
#[derive(Clone, Copy)]
pub(super) struct Job<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    pub a_strides: [usize; 2],
    pub b: *const T,
    pub b_strides: [usize; 2],
    pub conj: [bool; 2],
    pub out: *mut T,
    pub out_stride: usize,
    pub add: bool,
}

/// A function that computes a product on one thread.
type Way<T> = unsafe fn(&Job<T>);

/// The function for products in single precision. It is chosen for the whole product, not for the
/// part of a thread, so results do not depend on the number of threads.
fn single(job: &Job<f32>) -> Way<f32> {
    #[cfg(target_arch = "x86_64")]
    if super::skinny::suits(job) {
        return super::skinny::multiply;
    }
    #[cfg(target_arch = "x86_64")]
    if super::wide::suits(job) {
        return by_panels;
    }
    let _ = job;
    by_gemm
}

/// # Safety
/// `wide` must suit the product of which this is a part.
#[cfg(target_arch = "x86_64")]
unsafe fn by_panels(job: &Job<f32>) {
    let Ok(mut memory) = Tensor::alloc(DType::Float, [super::wide::scratch(job)]) else {
        // SAFETY: the job is as it should be.
        return unsafe { by_gemm(job) };
    };
    let memory = memory.as_mut_slice().expect("a new tensor of floats");
    // SAFETY: as promised by the caller.
    unsafe { super::wide::multiply(job, memory) }
}

/// # Safety
/// The job must be as it should be.
unsafe fn by_gemm<T: Num>(job: &Job<T>) {
    // SAFETY: the job is as it should be: all that the strides reach may be read or written.
    unsafe {
        gemm::gemm(
            job.m,
            job.n,
            job.k,
            job.out,
            1,
            job.out_stride as isize,
            job.add,
            job.a,
            job.a_strides[1] as isize,
            job.a_strides[0] as isize,
            job.b,
            job.b_strides[1] as isize,
            job.b_strides[0] as isize,
            T::ONE,
            T::ONE,
            false,
            job.conj[0],
            job.conj[1],
            Parallelism::None,
        )
    }
}

struct Shared<T>(Job<T>);
// SAFETY: `run_gemm` hands the job to threads that write disjoint parts of the result. All of them
// end before the borrows of the operands do.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> &Job<T> {
        &self.0
    }
}

/// The least rows or columns of the result for a thread; a multiple of the vector width.
const TILE: usize = 32;

fn run_gemm<T: Num>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    out: &mut [T],
    out_stride: usize,
    add: bool,
    threads: ProductThreads,
    way: fn(&Job<T>) -> Way<T>,
) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert_eq!(k, b.rows, "inner dimensions agree");
    if m == 0 || n == 0 {
        return;
    }
    assert!(a.extent() <= a.data.len() && b.extent() <= b.data.len(), "inputs hold the matrices");
    assert!(
        (m - 1) * out_stride + n <= out.len() && n <= out_stride,
        "the output holds the result"
    );
    if k == 0 {
        if !add {
            out.chunks_mut(out_stride).take(m).for_each(|row| row[..n].fill(T::ZERO));
        }
        return;
    }
    let whole = Job {
        m,
        n,
        k,
        a: a.data.as_ptr(),
        a_strides: [a.row_stride, a.col_stride],
        b: b.data.as_ptr(),
        b_strides: [b.row_stride, b.col_stride],
        conj: [a.conj, b.conj],
        out: out.as_mut_ptr(),
        out_stride,
        add,
    };
    let (whole, way) = (Shared(whole), way(&whole));
    let by_rows = m >= n;
    let part = |range: std::ops::Range<usize>| {
        let mut job = *whole.get();
        // SAFETY: the assertions above say that every element the strides reach is inside the
        // slices; `range` lies within the rows (or columns) of the result, and ranges given to
        // different threads are disjoint, so no element is written by two. The way is that of this
        // product.
        unsafe {
            if by_rows {
                job.a = job.a.add(range.start * a.row_stride);
                job.out = job.out.add(range.start * out_stride);
                job.m = range.len();
            } else {
                job.b = job.b.add(range.start * b.col_stride);
                job.out = job.out.add(range.start);
                job.n = range.len();
            }
            way(&job)
        }
    };
    let long = if by_rows { m } else { n };
    let tiles = long.div_ceil(TILE);
    if threads == ProductThreads::One || tiles == 1 {
        return part(0..long);
    }
    ComputePool::parallel_for(tiles, product_cost(m, n, k) / tiles, |tiles| {
        part(tiles.start * TILE..(tiles.end * TILE).min(long));
    });
}

macro_rules! widened_products {
    ($($t:ty)*) => {$(
        impl Product for $t {
            fn product(
                a: Mat<'_, $t>,
                b: Mat<'_, $t>,
                out: &mut [$t],
                out_stride: usize,
                add: bool,
                threads: ProductThreads,
            ) {
                let (m, n) = (a.rows, b.cols);
                let (wide_a, wide_b) = (a.to_vec(<$t>::to_f32), b.to_vec(<$t>::to_f32));
                let mut wide = vec![0f32; m * n];
                let a = Mat::new(&wide_a, m, a.cols);
                let b = Mat::new(&wide_b, b.rows, n);
                f32::product(a, b, &mut wide, n, false, threads);
                if n == 0 {
                    return;
                }
                for (out, wide) in out.chunks_mut(out_stride).zip(wide.chunks_exact(n)) {
                    for (out, wide) in out.iter_mut().zip(wide) {
                        let before = if add { out.to_f32() } else { 0.0 };
                        *out = <$t>::from_f32(before + wide);
                    }
                }
            }
        }
    )*};
}
widened_products!(f16 bf16);

macro_rules! integer_products {
    ($($t:ty)*) => {$(
        impl Product for $t {
            fn product(
                a: Mat<'_, $t>,
                b: Mat<'_, $t>,
                out: &mut [$t],
                out_stride: usize,
                add: bool,
                _: ProductThreads,
            ) {
                let (n, k) = (b.cols, a.cols);
                let copied = if b.col_stride == 1 { None } else { Some(b.to_vec(|x| x)) };
                let b = copied.as_ref().map_or(b, |data| Mat::new(data, k, n));
                for (i, out) in out.chunks_mut(out_stride.max(1)).take(a.rows).enumerate() {
                    let out = &mut out[..n];
                    if !add {
                        out.fill(0);
                    }
                    for j in 0..k {
                        let x = a.data[i * a.row_stride + j * a.col_stride];
                        let row = &b.data[j * b.row_stride..][..n];
                        for (out, y) in out.iter_mut().zip(row) {
                            *out = out.wrapping_add(x.wrapping_mul(*y));
                        }
                    }
                }
            }
        }
    )*};
}
integer_products!(i16 i32 i64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Large enough for every way there is, with rows and columns left over by all kinds of tiles.
    #[test]
    fn large_products_agree_with_the_definition() {
        let number = |i: usize| ((i * 7919) % 17) as f32 - 8.0;
        let skinny = [
            (1, 600, 75, false),
            (2, 2048, 70, true),
            (6, 131, 97, false),
            (8, 1001, 530, true),
            (9, 64, 65, false),
            (13, 67, 129, false),
        ];
        let large = [(200, 150, 90, true), (47, 65, 1037, false), (230, 33, 700, false)];
        for (m, n, k, add) in skinny.into_iter().chain(large) {
            let a: Vec<f32> = (0..m * k).map(number).collect();
            let b: Vec<f32> = (0..k * n).map(|i| number(i + 3)).collect();
            for (turn_a, turn_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let x = if turn_a { Mat::new(&a, k, m).transposed() } else { Mat::new(&a, m, k) };
                let y = if turn_b { Mat::new(&b, n, k).transposed() } else { Mat::new(&b, k, n) };
                let mut out = vec![5.0; m * (n + 3)];
                f32::product(x, y, &mut out, n + 3, add, ProductThreads::All);
                for (i, out) in out.chunks(n + 3).enumerate() {
                    for (j, &got) in out.iter().enumerate() {
                        let term = |l: usize| {
                            x.data[i * x.row_stride + l * x.col_stride]
                                * y.data[l * y.row_stride + j * y.col_stride]
                        };
                        // Sums of whole numbers this small are exact in any order.
                        let before = if add || j >= n { 5.0 } else { 0.0 };
                        let sum: f32 = if j < n { (0..k).map(term).sum() } else { 0.0 };
                        assert_eq!(got, before + sum, "{m} {n} {k} {turn_a} {turn_b}: {i} {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_agree_with_the_definition() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 7), (33, 2, 40), (2, 70, 3), (200, 150, 90), (4, 4, 0)]
        {
            let a: Vec<f64> = (0..m * k).map(|i| (i * 7 % 13) as f64).collect();
            let b: Vec<f64> = (0..k * n).map(|i| (i * 5 % 11) as f64).collect();
            let at = Mat::new(&a, k, m).transposed();
            let mut out = vec![1.0; m * (n + 1)];
            f64::product(at, Mat::new(&b, k, n), &mut out, n + 1, true, ProductThreads::All);
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|l| a[l * m + i] * b[l * n + j]).sum();
                    assert_eq!(out[i * (n + 1) + j], sum + 1.0);
                }
                assert_eq!(out[i * (n + 1) + n], 1.0);
            }
        }
    }
}
