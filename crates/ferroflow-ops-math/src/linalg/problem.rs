//! Batches of matrices, the input of factorisations and solvers. Elements are widened to `f64` or
//! complex `f64`, so each algorithm is compiled only twice.

use crate::prelude::*;
use ferroflow_core::Reservation;
pub(super) use ferroflow_dense::Field;
use ferroflow_op_kit::parallel::for_rows;

/// Numbers that matrices are factored in.
pub(super) trait Linear: Num {
    type Wide: Field;
    fn widen(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
}

macro_rules! linear {
    ($($t:ty, $wide:ty, $x:ident, $widen:expr, $narrow:expr;)*) => {$(
        impl Linear for $t {
            type Wide = $wide;
            fn widen(self) -> $wide { let $x = self; $widen }
            fn narrow($x: $wide) -> $t { $narrow }
        }
    )*};
}
linear! {
    f16, f64, x, x.to_f64(), f16::from_f64(x);
    bf16, f64, x, x.to_f64(), bf16::from_f64(x);
    f32, f64, x, x as f64, x as f32;
    f64, f64, x, x, x;
    Complex32, Complex64, x, Complex64::new(x.re as f64, x.im as f64),
        Complex32::new(x.re as f32, x.im as f32);
    Complex64, Complex64, x, x, x;
}

/// The first inputs of a node as matrices with the same batch dimensions.
pub(super) struct Problem<'a, T> {
    inputs: Vec<&'a [T]>,
    /// Rows and columns of each input's matrices.
    pub sizes: Vec<(usize, usize)>,
    batch: Vec<usize>,
    /// The memory that one solution takes meanwhile, in copies of its inputs.
    copies: usize,
}

/// For factorisations in place and their results.
const COPIES: usize = 4;
/// For singular values and eigenvectors.
pub(super) const COPIES_FOR_VECTORS: usize = 12;

/// The matrices of a batch, one of each input, row-major.
pub(super) type Matrices<W> = Vec<Vec<W>>;

impl<'a, T: Linear> Problem<'a, T> {
    pub fn new(ctx: &'a Ctx<'_>, inputs: usize) -> Result<Problem<'a, T>> {
        let tensors = ctx.inputs(0..inputs)?;
        let mut sizes = Vec::with_capacity(inputs);
        for (i, t) in tensors.iter().enumerate() {
            let rank = t.rank();
            ensure!(rank >= 2, InvalidArgument, "Input tensor {i} must have rank >= 2, got {rank}");
            sizes.push((t.shape()[rank - 2], t.shape()[rank - 1]));
        }
        let batch = tensors[0].shape()[..tensors[0].rank() - 2].to_vec();
        for t in &tensors[1..] {
            ensure!(
                t.rank() == batch.len() + 2,
                InvalidArgument,
                "All input tensors must have the same rank."
            );
            ensure!(
                t.shape()[..batch.len()] == batch,
                InvalidArgument,
                "All input tensors must have the same outer dimensions."
            );
        }
        let inputs = tensors.iter().map(|t| t.as_slice::<T>()).collect::<Result<Vec<_>>>()?;
        Ok(Problem { inputs, sizes, batch, copies: COPIES })
    }

    /// The same problem, whose solution takes so many copies of its inputs.
    pub fn taking(self, copies: usize) -> Problem<'a, T> {
        Problem { copies, ..self }
    }

    /// A problem of square matrices.
    pub fn square(ctx: &'a Ctx<'_>) -> Result<Problem<'a, T>> {
        let problem = Problem::new(ctx, 1)?;
        let (m, n) = problem.sizes[0];
        ensure!(m == n, InvalidArgument, "Input matrix must be square.");
        Ok(problem)
    }

    fn shape(&self, dims: &[usize]) -> Shape {
        self.batch.iter().chain(dims).copied().collect()
    }

    /// Solves every batch. Output `i` has the dimensions of the batch followed by `outputs[i]`;
    /// `solve` returns its elements for one batch.
    pub fn solve<U: Linear>(
        &self,
        outputs: &[Vec<usize>],
        solve: impl Fn(Matrices<T::Wide>) -> Result<Vec<Vec<U::Wide>>> + Sync,
    ) -> Result<Vec<Tensor>> {
        let mut tensors = outputs
            .iter()
            .map(|dims| Tensor::alloc(U::DTYPE, self.shape(dims)))
            .collect::<Result<Vec<_>>>()?;
        if tensors.iter().all(|t| t.elements() == 0) {
            return Ok(tensors);
        }
        let results = self.each(solve)?;
        for (o, t) in tensors.iter_mut().enumerate() {
            let row: usize = outputs[o].iter().product();
            if row == 0 {
                continue;
            }
            let rows = t.as_mut_slice::<U>()?.chunks_exact_mut(row);
            for (to, result) in rows.zip(&results) {
                to.iter_mut().zip(&result[o]).for_each(|(to, x)| *to = U::narrow(*x));
            }
        }
        Ok(tensors)
    }

    /// The results of `solve` for all batches, in order, or the first error.
    pub fn each<R: Send>(
        &self,
        solve: impl Fn(Matrices<T::Wide>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let count = self.batch.iter().product();
        let mut results: Vec<Option<Result<R>>> = (0..count).map(|_| None).collect();
        let largest = self.sizes.iter().map(|&(m, n)| m * n * m.min(n)).max().unwrap_or(0);
        let input: usize = self.sizes.iter().map(|&(m, n)| m * n * size_of::<T::Wide>()).sum();
        for_rows(&mut results, 1, largest + 200, |range, results| {
            for (i, result) in range.zip(results) {
                // Counted before it is taken, so that too large a matrix fails alone.
                let counted = Reservation::new(input.saturating_mul(self.copies));
                *result = Some(counted.and_then(|_counted| solve(self.matrices(i))));
            }
        });
        results.into_iter().flatten().collect()
    }

    fn matrices(&self, i: usize) -> Matrices<T::Wide> {
        let pairs = self.inputs.iter().zip(&self.sizes);
        pairs
            .map(|(data, &(m, n))| {
                data[i * m * n..(i + 1) * m * n].iter().map(|x| x.widen()).collect()
            })
            .collect()
    }
}

/// The conjugate transpose of an `m` by `n` matrix.
pub(super) fn adjoint<W: Field>(a: &[W], m: usize, n: usize) -> Vec<W> {
    let mut out = Vec::with_capacity(m * n);
    for j in 0..n {
        out.extend((0..m).map(|i| a[i * n + j].conjugate()));
    }
    out
}

/// The product of an `m` by `k` and a `k` by `n` matrix.
pub(super) fn times<W: Field>(a: &[W], b: &[W], m: usize, k: usize, n: usize) -> Vec<W> {
    let mut out = vec![W::ZERO; m * n];
    for i in 0..m {
        let out = &mut out[i * n..(i + 1) * n];
        for l in 0..k {
            let x = a[i * k + l];
            let row = &b[l * n..(l + 1) * n];
            out.iter_mut().zip(row).for_each(|(out, y)| *out = out.plus(x.times(*y)));
        }
    }
    out
}

/// The identity matrix.
pub(super) fn identity<W: Field>(n: usize) -> Vec<W> {
    let mut out = vec![W::ZERO; n * n];
    out.iter_mut().step_by(n + 1).for_each(|x| *x = W::ONE);
    out
}

/// Shape of an op over square matrices that keeps their shape.
pub(super) fn square_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, n) = square_parts(c)?;
    Ok(vec![match batch {
        Some(batch) => PartialShape::new(batch.into_iter().chain([n, n])),
        None => PartialShape::unknown(),
    }])
}

/// Batch dimensions and size of the square matrices in input 0.
pub(super) fn square_parts(
    c: &ShapeCtx<'_>,
) -> Result<(Option<Vec<Option<usize>>>, Option<usize>)> {
    let (batch, m, n) = matrix_parts(c, 0)?;
    if let (Some(m), Some(n)) = (m, n) {
        ensure!(m == n, InvalidArgument, "Dimensions must be equal, but are {m} and {n}");
    }
    Ok((batch, m.or(n)))
}

/// Batch dimensions, rows and columns of the matrices in input `i`.
pub(super) fn matrix_parts(
    c: &ShapeCtx<'_>,
    i: usize,
) -> Result<(Option<Vec<Option<usize>>>, Option<usize>, Option<usize>)> {
    let input = c.input(i);
    let Some(dims) = input.dims() else {
        return Ok((None, None, None));
    };
    let Some(batch) = dims.len().checked_sub(2) else {
        bail!(InvalidArgument, "Shape must be at least rank 2 but is rank {}", dims.len());
    };
    Ok((Some(dims[..batch].to_vec()), dims[batch], dims[batch + 1]))
}

/// `batch` followed by `dims`.
pub(super) fn batched(batch: &Option<Vec<Option<usize>>>, dims: &[Option<usize>]) -> PartialShape {
    match batch {
        Some(batch) => PartialShape::new(batch.iter().chain(dims).copied()),
        None => PartialShape::unknown(),
    }
}
