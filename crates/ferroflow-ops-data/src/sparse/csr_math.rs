//! Arithmetic of sparse matrices by compressed rows: products, transposes, Cholesky factors.

use super::csr::{CsrMatrix, CsrPart, Entry, TYPES, per_entry};
use crate::prelude::*;
use ferroflow_core::{Complex32, Complex64};
use std::collections::{BTreeMap, BTreeSet};

/// How a factor is used: as it is, transposed, or transposed and conjugated.
#[derive(Clone, Copy)]
struct Turn {
    transpose: bool,
    adjoint: bool,
}

impl Turn {
    fn new(init: &KernelInit<'_>, which: char) -> Result<Turn> {
        let (transpose, adjoint) =
            (init.bool(&format!("transpose_{which}"))?, init.bool(&format!("adjoint_{which}"))?);
        ensure!(
            !(transpose && adjoint),
            InvalidArgument,
            "Only one of adjoint_{which} and transpose_{which} may be true."
        );
        Ok(Turn { transpose, adjoint })
    }

    fn turns(self) -> bool {
        self.transpose || self.adjoint
    }

    /// A matrix of the batch, transposed or conjugated as requested, and its rows and columns.
    fn part<T: Entry>(self, matrix: &CsrMatrix, batch: usize) -> Result<CsrPart> {
        match self.turns() {
            true => matrix.parts[batch].transposed::<T>(matrix.size().1, self.adjoint),
            false => Ok(matrix.parts[batch].clone()),
        }
    }

    fn size(self, (rows, columns): (usize, usize)) -> (usize, usize) {
        if self.turns() { (columns, rows) } else { (rows, columns) }
    }
}

fn check_inner(
    a: (usize, usize),
    b: (usize, usize),
    left: &[usize],
    right: &[usize],
) -> Result<()> {
    ensure!(
        a.1 == b.0,
        InvalidArgument,
        "Inner product dimensions of A and B do not agree.  Shapes are: {} vs. {}",
        Shape::from(left),
        Shape::from(right)
    );
    Ok(())
}

/// A sparse matrix times a dense one.
struct MatMul {
    a: Turn,
    b: Turn,
    transpose: bool,
    conjugate: bool,
}

impl MatMul {
    fn compute<T: Entry>(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (matrix, dense) = (CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?, ctx.input(1)?);
        let rank = matrix.dims.len();
        ensure!(
            dense.rank() == rank && (rank == 2 || dense.shape()[0] == matrix.dims[0]),
            InvalidArgument,
            "the factors do not have the same rank and batch: {} vs. {}",
            Shape::from(matrix.dims.clone()),
            dense.shape()
        );
        let stored = (dense.shape()[rank - 2], dense.shape()[rank - 1]);
        let (a_size, b_size) = (self.a.size(matrix.size()), self.b.size(stored));
        check_inner(a_size, b_size, &matrix.dims, dense.shape())?;
        let (m, n) = (a_size.0, b_size.1);
        let mut dims = matrix.dims.clone();
        (dims[rank - 2], dims[rank - 1]) = if self.transpose { (n, m) } else { (m, n) };
        let mut out = Tensor::zeros(T::DTYPE, dims)?;
        let b = dense.as_slice::<T>()?;
        for batch in 0..matrix.parts.len() {
            let a = self.a.part::<T>(matrix, batch)?;
            let values = a.values.as_slice::<T>()?;
            let b = &b[batch * stored.0 * stored.1..][..stored.0 * stored.1];
            let to = &mut out.as_mut_slice::<T>()?[batch * m * n..][..m * n];
            for row in 0..m {
                for (k, x) in a.row(values, row) {
                    for j in 0..n {
                        let y = match self.b.turns() {
                            false => b[k * stored.1 + j],
                            true if self.b.adjoint => b[j * stored.1 + k].conj(),
                            true => b[j * stored.1 + k],
                        };
                        let at = if self.transpose { j * m + row } else { row * n + j };
                        to[at] = to[at].add(x.mul(y));
                    }
                }
            }
            if self.conjugate {
                to.iter_mut().for_each(|x| *x = x.conj());
            }
        }
        ctx.set(0, out)
    }
}

/// A product of two sparse matrices. Entries that cancel out stay, with the value zero.
struct SparseMatMul {
    a: Turn,
    b: Turn,
}

impl SparseMatMul {
    fn compute<T: Entry>(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let a = CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?;
        let b = CsrMatrix::typed(ctx.input(1)?, T::DTYPE)?;
        let rank = a.dims.len();
        ensure!(
            b.dims.len() == rank && a.parts.len() == b.parts.len(),
            InvalidArgument,
            "the factors do not have the same rank and batch: {} vs. {}",
            Shape::from(a.dims.clone()),
            Shape::from(b.dims.clone())
        );
        let (a_size, b_size) = (self.a.size(a.size()), self.b.size(b.size()));
        check_inner(a_size, b_size, &a.dims, &b.dims)?;
        let mut dims = a.dims.clone();
        (dims[rank - 2], dims[rank - 1]) = (a_size.0, b_size.1);
        let mut parts = Vec::with_capacity(a.parts.len());
        for batch in 0..a.parts.len() {
            let (x, y) = (self.a.part::<T>(a, batch)?, self.b.part::<T>(b, batch)?);
            let (xs, ys) = (x.values.as_slice::<T>()?, y.values.as_slice::<T>()?);
            let product = |row: usize| {
                let mut sums: BTreeMap<usize, T> = BTreeMap::new();
                for (k, x) in x.row(xs, row) {
                    for (column, y) in y.row(ys, k) {
                        let sum = sums.entry(column).or_insert(T::ZERO);
                        *sum = sum.add(x.mul(y));
                    }
                }
                sums.into_iter().collect()
            };
            parts.push(CsrPart::from_rows((0..a_size.0).map(product).collect()));
        }
        ctx.set(0, CsrMatrix { dims, dtype: T::DTYPE, parts }.into_tensor())
    }
}

fn transpose<T: Entry>(ctx: &mut Ctx<'_>, conjugate: bool) -> Result<()> {
    let matrix = CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?;
    let columns = matrix.size().1;
    let turned = |part: &CsrPart| part.transposed::<T>(columns, conjugate);
    let parts = matrix.parts.iter().map(turned).collect::<Result<Vec<_>>>()?;
    let mut dims = matrix.dims.clone();
    let rank = dims.len();
    dims.swap(rank - 2, rank - 1);
    ctx.set(0, CsrMatrix { dims, dtype: T::DTYPE, parts }.into_tensor())
}

/// An order of the rows in which a factorization fills in few entries. Each next row has the fewest
/// neighbours among the remaining rows. Of equal rows the first is taken.
fn ordering(ctx: &mut Ctx<'_>) -> Result<()> {
    let matrix = CsrMatrix::of(ctx.input(0)?)?;
    let (rows, columns) = matrix.size();
    ensure!(
        rows == columns,
        InvalidArgument,
        "sparse matrix must be square; got: {rows} != {columns}"
    );
    let mut all = Vec::with_capacity(rows * matrix.parts.len());
    for part in &matrix.parts {
        let mut near = vec![BTreeSet::new(); rows];
        for row in 0..rows {
            let range = part.row_ptrs[row] as usize..part.row_ptrs[row + 1] as usize;
            for column in part.columns[range].iter().map(|c| *c as usize).filter(|c| *c != row) {
                near[row].insert(column);
                near[column].insert(row);
            }
        }
        let mut left: BTreeSet<(usize, usize)> =
            near.iter().enumerate().map(|(row, near)| (near.len(), row)).collect();
        while let Some((_, row)) = left.pop_first() {
            all.push(row as i32);
            let neighbours = std::mem::take(&mut near[row]);
            // Eliminating a row connects all its neighbours with each other.
            for &n in &neighbours {
                left.remove(&(near[n].len(), n));
                near[n].remove(&row);
                near[n].extend(neighbours.iter().filter(|m| **m != n));
                left.insert((near[n].len(), n));
            }
        }
    }
    let shape = match matrix.dims.len() {
        3 => Shape::from([matrix.parts.len(), rows]),
        _ => Shape::from([rows]),
    };
    ctx.set(0, Tensor::from_slice(shape, &all)?)
}

/// The lower Cholesky factor of a matrix whose rows and columns are permuted.
fn cholesky<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (matrix, order) = (CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?, ctx.input(1)?);
    let (rows, columns) = matrix.size();
    ensure!(
        rows == columns,
        InvalidArgument,
        "sparse matrix must be square; got: {rows} != {columns}"
    );
    let batches = matrix.parts.len();
    ensure!(
        order.rank() + 1 == matrix.dims.len() && order.elements() == rows * batches,
        InvalidArgument,
        "permutation must have one element for each row of each matrix, got shape {}",
        order.shape()
    );
    let order = order.to_indices()?;
    let mut parts = Vec::with_capacity(batches);
    for (b, part) in matrix.parts.iter().enumerate() {
        let values = part.values.as_slice::<T>()?;
        let order = &order[b * rows..][..rows];
        let mut place = vec![None; rows];
        for (to, from) in order.iter().enumerate() {
            match usize::try_from(*from).ok().and_then(|from| place.get_mut(from)) {
                Some(free @ None) => *free = Some(to),
                _ => bail!(InvalidArgument, "permutation is not one of 0 to {}", rows as i64 - 1),
            }
        }
        let mut lower: Vec<BTreeMap<usize, T>> = vec![BTreeMap::new(); rows];
        for (from, to) in place.iter().enumerate() {
            for (column, value) in part.row(values, from) {
                if let (Some(row), Some(Some(column))) = (to, place.get(column))
                    && column <= row
                {
                    lower[*row].insert(*column, value);
                }
            }
        }
        for row in 0..rows {
            let (done, rest) = lower.split_at_mut(row);
            let current = &mut rest[0];
            // Solves for the row's entries from left to right. An entry may fill in others.
            let mut next = current.keys().next().copied();
            while let Some(column) = next.filter(|c| *c < row) {
                let mut x = current[&column];
                for (k, y) in done[column].range(..column) {
                    if let Some(z) = current.get(k) {
                        x = x.sub(z.mul(y.conj()));
                    }
                }
                current.insert(column, x.div(done[column][&column]));
                for (below, row_below) in done.iter().enumerate().skip(column + 1) {
                    if row_below.contains_key(&column) {
                        current.entry(below).or_insert(T::ZERO);
                    }
                }
                next = current.range(column + 1..).next().map(|(c, _)| *c);
            }
            let squares =
                current.range(..row).fold(T::ZERO, |sum, (_, x)| sum.add(x.mul(x.conj())));
            let pivot = current.get(&row).copied().unwrap_or(T::ZERO).sub(squares);
            let Some(pivot) = pivot.positive_real() else {
                bail!(
                    InvalidArgument,
                    "Sparse Cholesky factorization failed for batch index {b}. Input may not be \
                     positive definite."
                );
            };
            current.insert(row, T::from_real(pivot.sqrt()));
        }
        parts.push(CsrPart::from_rows(
            lower.into_iter().map(|row| row.into_iter().collect()).collect(),
        ));
    }
    let made = CsrMatrix { dims: matrix.dims.clone(), dtype: T::DTYPE, parts };
    ctx.set(0, made.into_tensor())
}

/// A kernel whose struct has a `compute` for each type.
macro_rules! typed_kernel {
    ($dtype:expr, $kernel:expr, $ctx:ident => $method:ident) => {{
        let (dtype, kernel) = ($dtype, $kernel);
        Ok(KernelBox::new(move |$ctx: &mut Ctx<'_>| match dtype {
            DType::Float => kernel.$method::<f32>($ctx),
            DType::Double => kernel.$method::<f64>($ctx),
            DType::Complex64 => kernel.$method::<Complex32>($ctx),
            DType::Complex128 => kernel.$method::<Complex64>($ctx),
            other => bail!(Unimplemented, "no sparse matrices of {other}"),
        }))
    }};
}

struct Transpose(bool);

impl Transpose {
    fn compute<T: Entry>(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        transpose::<T>(ctx, self.0)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseMatrixMatMul")
        .doc("A sparse matrix times a dense one.")
        .input("a: variant")
        .input("b: T")
        .output("output: T")
        .attr("T: type")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("adjoint_a: bool = false")
        .attr("adjoint_b: bool = false")
        .attr("transpose_output: bool = false")
        .attr("conjugate_output: bool = false")
        .expensive()
        .shape(shape::unknown)
        .cpu(|init| {
            let kernel = MatMul {
                a: Turn::new(init, 'a')?,
                b: Turn::new(init, 'b')?,
                transpose: init.bool("transpose_output")?,
                conjugate: init.bool("conjugate_output")?,
            };
            typed_kernel!(init.dtype("T")?, kernel, ctx => compute)
        });
    c.op("SparseMatrixSparseMatMul")
        .work(work::any)
        .doc("A product of two sparse matrices.")
        .input("a: variant")
        .input("b: variant")
        .output("c: variant")
        .attr(TYPES)
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("adjoint_a: bool = false")
        .attr("adjoint_b: bool = false")
        .expensive()
        .shape(shape::scalar)
        .cpu(|init| {
            let kernel = SparseMatMul { a: Turn::new(init, 'a')?, b: Turn::new(init, 'b')? };
            typed_kernel!(init.dtype("type")?, kernel, ctx => compute)
        });
    c.op("SparseMatrixTranspose")
        .doc("Exchanges the rows and columns of a sparse matrix.")
        .input("input: variant")
        .output("output: variant")
        .attr("conjugate: bool = false")
        .attr(TYPES)
        .shape(shape::scalar)
        .cpu(|init| {
            let kernel = Transpose(init.bool("conjugate")?);
            typed_kernel!(init.dtype("type")?, kernel, ctx => compute)
        });
    c.op("SparseMatrixOrderingAMD")
        .doc("An order of rows in which a sparse Cholesky factor has few entries.")
        .input("input: variant")
        .output("output: int32")
        .expensive()
        .shape(shape::unknown)
        .cpu_fn(ordering);
    c.op("SparseMatrixSparseCholesky")
        .doc("The Cholesky factor of a sparse matrix with permuted rows and columns.")
        .input("input: variant")
        .input("permutation: int32")
        .output("output: variant")
        .attr(TYPES)
        .expensive()
        .shape(shape::scalar)
        .cpu(per_entry!("type", cholesky));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    fn sparse(rows: usize, columns: usize, dense: &[f32]) -> Tensor {
        let there = dense.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let places: Vec<i64> =
            there.clone().flat_map(|(i, _)| [(i / columns) as i64, (i % columns) as i64]).collect();
        let values: Vec<f32> = there.map(|(_, x)| *x).collect();
        check("SparseTensorToCSRSparseMatrix")
            .input(Tensor::from_slice([values.len(), 2], &places).unwrap())
            .input(Tensor::vector(&values))
            .input(Tensor::vector(&[rows as i64, columns as i64]))
            .run()
            .unwrap()
            .remove(0)
    }

    fn dense(op: Check<'static>) -> Vec<f32> {
        let made = op.attr("type", DType::Float).run().unwrap().remove(0);
        let to = check("CSRSparseMatrixToDense").attr("type", DType::Float).input(made);
        to.run().unwrap()[0].as_slice::<f32>().unwrap().to_vec()
    }

    /// Symmetric and positive definite.
    const A: [f32; 16] = [4., 1., 0., 2., 1., 5., 0., 0., 0., 0., 3., 0., 2., 0., 0., 6.];

    #[test]
    fn products_agree_with_dense_ones() {
        let (a, b) = (sparse(4, 4, &A), [1f32, -1., 1., 1., 0., 2., 0., 0.]);
        let times = || {
            check("SparseMatrixMatMul")
                .input(a.clone())
                .input(Tensor::from_slice([4, 2], &b).unwrap())
        };
        let product = [5f32, -3., 6., 4., 0., 6., 2., -2.];
        times().gives(Tensor::from_slice([4, 2], &product).unwrap());
        times()
            .attr("transpose_output", true)
            .gives(Tensor::from_slice([2, 4], &[5f32, 6., 0., 2., -3., 4., 6., -2.]).unwrap());
        let both = check("SparseMatrixSparseMatMul").input(a.clone()).input(sparse(4, 2, &b));
        assert_eq!(dense(both), product);
        let turned = check("SparseMatrixSparseMatMul")
            .attr("transpose_a", true)
            .input(sparse(4, 2, &b))
            .input(a.clone());
        assert_eq!(dense(turned), [5., 6., 0., 2., -3., 4., 6., -2.]);
        check("SparseMatrixMatMul")
            .input(a)
            .input(Tensor::from_slice([2, 4], &b).unwrap())
            .fails(Code::InvalidArgument, "Inner product dimensions of A and B do not agree.");
    }

    #[test]
    fn factors_of_permuted_matrices_multiply_to_them() {
        for order in [[0i32, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]] {
            let l = dense(
                check("SparseMatrixSparseCholesky")
                    .input(sparse(4, 4, &A))
                    .input(Tensor::vector(&order)),
            );
            for i in 0..4 {
                for j in 0..4 {
                    let got: f32 = (0..4).map(|k| l[i * 4 + k] * l[j * 4 + k]).sum();
                    let want = A[order[i] as usize * 4 + order[j] as usize];
                    assert!((got - want).abs() < 1e-5, "{order:?} {i} {j}: {got} {want}");
                    assert!(j <= i || l[i * 4 + j] == 0.0);
                }
            }
        }
        check("SparseMatrixSparseCholesky")
            .attr("type", DType::Float)
            .input(sparse(2, 2, &[1., 2., 2., 1.]))
            .input(Tensor::vector(&[0i32, 1]))
            .fails(Code::InvalidArgument, "may not be positive definite");
        let order = check("SparseMatrixOrderingAMD").input(sparse(4, 4, &A)).run().unwrap();
        let mut order = order[0].as_slice::<i32>().unwrap().to_vec();
        assert_eq!(order[0], 2, "the row without neighbours comes first");
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
    }
}
