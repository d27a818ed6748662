//! Sparse matrices by compressed rows (CSR): the value, and conversions from and to tensors.

use crate::prelude::*;
use ferroflow_core::{Complex32, Complex64, Reservation, Variant, VariantObject};

/// Numbers in sparse matrices.
pub(super) trait Entry: Num {
    fn conj(self) -> Self;
    /// Its real part, if that is positive and finite.
    fn positive_real(self) -> Option<f64>;
    fn from_real(x: f64) -> Self;
}

macro_rules! entries {
    ($($real:ty, $complex:ty;)*) => {$(
        impl Entry for $real {
            fn conj(self) -> Self {
                self
            }
            fn positive_real(self) -> Option<f64> {
                Some(f64::from(self)).filter(|x| *x > 0.0 && x.is_finite())
            }
            fn from_real(x: f64) -> Self {
                x as $real
            }
        }
        impl Entry for $complex {
            fn conj(self) -> Self {
                <$complex>::conj(&self)
            }
            fn positive_real(self) -> Option<f64> {
                self.re.positive_real()
            }
            fn from_real(x: f64) -> Self {
                <$complex>::new(x as $real, 0.0)
            }
        }
    )*};
}
entries! { f32, Complex32; f64, Complex64; }

/// A sparse matrix, or a batch of them with the same shape.
#[derive(Clone)]
pub(super) struct CsrMatrix {
    /// Two dimensions, or three: batch, rows, columns.
    pub dims: Vec<usize>,
    pub dtype: DType,
    pub parts: Vec<CsrPart>,
}

/// One matrix: entries of row `r` are those from `row_ptrs[r]` to `row_ptrs[r + 1]`.
#[derive(Clone)]
pub(super) struct CsrPart {
    pub row_ptrs: Vec<i32>,
    pub columns: Vec<i32>,
    /// A vector.
    pub values: Tensor,
}

impl VariantObject for CsrMatrix {
    fn type_name(&self) -> &str {
        "tensorflow::CSRSparseMatrix"
    }
}

impl CsrPart {
    /// The entries of a row: columns and values.
    pub fn row<'a, T: Entry>(
        &'a self,
        values: &'a [T],
        row: usize,
    ) -> impl Iterator<Item = (usize, T)> + 'a {
        let range = self.row_ptrs[row] as usize..self.row_ptrs[row + 1] as usize;
        let columns = self.columns[range.clone()].iter().map(|c| *c as usize);
        columns.zip(values[range].iter().copied())
    }

    /// Makes a matrix from rows of entries, each in order of columns.
    pub fn from_rows<T: Entry>(rows: Vec<Vec<(usize, T)>>) -> CsrPart {
        let (mut row_ptrs, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            for (column, value) in row {
                columns.push(column as i32);
                values.push(value);
            }
            row_ptrs.push(columns.len() as i32);
        }
        CsrPart { row_ptrs, columns, values: Tensor::vector(&values) }
    }

    /// Rows become columns.
    pub fn transposed<T: Entry>(&self, columns: usize, conjugate: bool) -> Result<CsrPart> {
        let values = self.values.as_slice::<T>()?;
        let _counted = reserve_rows(columns)?;
        let mut rows = vec![Vec::new(); columns];
        for row in 0..self.row_ptrs.len() - 1 {
            for (column, value) in self.row(values, row) {
                rows[column].push((row, if conjugate { value.conj() } else { value }));
            }
        }
        Ok(CsrPart::from_rows(rows))
    }
}

impl CsrMatrix {
    /// Rows and columns of one matrix.
    pub fn size(&self) -> (usize, usize) {
        let n = self.dims.len();
        (self.dims[n - 2], self.dims[n - 1])
    }

    /// The matrix in a tensor.
    pub fn of(t: &Tensor) -> Result<&CsrMatrix> {
        let found = match (t.rank(), t.variants()) {
            (0, Ok([one])) => one.get::<CsrMatrix>(),
            _ => None,
        };
        found.ok_or_else(|| {
            err!(InvalidArgument, "the input is not a scalar variant with a CSRSparseMatrix")
        })
    }

    /// The matrix in a tensor, whose elements must be `dtype`.
    pub fn typed(t: &Tensor, dtype: DType) -> Result<&CsrMatrix> {
        let matrix = CsrMatrix::of(t)?;
        ensure!(
            matrix.dtype == dtype,
            InvalidArgument,
            "Asked for a CSRSparseMatrix of type {dtype} but saw dtype: {}",
            matrix.dtype
        );
        Ok(matrix)
    }

    pub fn into_tensor(self) -> Tensor {
        Tensor::variant(Variant::new(self))
    }

    /// From places in order of batch, row and column.
    fn from_places<T: Entry>(dims: Vec<usize>, places: &[i64], values: &[T]) -> Result<CsrMatrix> {
        let rank = dims.len();
        let batches = if rank == 3 { dims[0] } else { 1 };
        let rows = dims[rank - 2];
        ensure!(
            rows < i32::MAX as usize && dims[rank - 1] < i32::MAX as usize,
            InvalidArgument,
            "a sparse matrix has too many rows or columns: {}",
            Shape::from(dims)
        );
        // An empty row takes memory too.
        let _counted = reserve_rows(rows.saturating_mul(batches))?;
        let mut all = vec![vec![Vec::new(); rows]; batches];
        for (place, value) in places.chunks_exact(rank).zip(values) {
            let is_inside = place.iter().zip(&dims).all(|(x, n)| (0..*n as i64).contains(x));
            ensure!(
                is_inside,
                InvalidArgument,
                "index {place:?} is not inside a matrix of shape {}",
                Shape::from(dims)
            );
            let batch = if rank == 3 { place[0] as usize } else { 0 };
            all[batch][place[rank - 2] as usize].push((place[rank - 1] as usize, *value));
        }
        let parts = all.into_iter().map(CsrPart::from_rows).collect();
        Ok(CsrMatrix { dims, dtype: T::DTYPE, parts })
    }
}

/// Counts the memory of `n` rows that are lists.
pub(super) fn reserve_rows(n: usize) -> Result<Reservation> {
    Reservation::new(n.saturating_mul(2 * size_of::<Vec<u8>>()))
}

fn check_rank(rank: usize, what: &str) -> Result<()> {
    ensure!(
        rank == 2 || rank == 3,
        InvalidArgument,
        "{what} must have rank 2 or 3; but indices has rank: {rank}"
    );
    Ok(())
}

fn from_sparse<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (indices, values, shape) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        indices.rank() == 2 && values.rank() == 1 && shape.rank() == 1,
        InvalidArgument,
        "a sparse tensor needs a matrix of indices, a vector of values and a vector as shape"
    );
    check_rank(shape.elements(), "SparseTensor")?;
    ensure!(
        indices.shape()[1] == shape.elements() && indices.shape()[0] == values.elements(),
        InvalidArgument,
        "indices of shape {} do not match {} values and a shape of rank {}",
        indices.shape(),
        values.elements(),
        shape.elements()
    );
    let dims = shape.to_shape()?.to_vec();
    let made = CsrMatrix::from_places::<T>(dims, &indices.to_indices()?, values.as_slice()?)?;
    ctx.set(0, made.into_tensor())
}

fn from_dense<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (dense, indices) = (ctx.input(0)?, ctx.input(1)?);
    check_rank(dense.rank(), "the dense input")?;
    ensure!(
        indices.rank() == 2 && indices.shape()[1] == dense.rank(),
        InvalidArgument,
        "indices must be a matrix with {} columns, got shape {}",
        dense.rank(),
        indices.shape()
    );
    let (places, strides) = (indices.to_indices()?, dense.shape().strides());
    let elements = dense.as_slice::<T>()?;
    let mut values = Vec::with_capacity(indices.shape()[0]);
    for place in places.chunks_exact(dense.rank()) {
        let is_inside =
            place.iter().zip(dense.shape().iter()).all(|(x, n)| (0..*n as i64).contains(x));
        ensure!(is_inside, InvalidArgument, "index {place:?} is not inside {}", dense.shape());
        let at: usize = place.iter().zip(&strides).map(|(x, s)| *x as usize * s).sum();
        values.push(elements[at]);
    }
    let made = CsrMatrix::from_places::<T>(dense.shape().to_vec(), &places, &values)?;
    ctx.set(0, made.into_tensor())
}

fn to_dense<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let matrix = CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?.clone();
    let mut out = Tensor::zeros(T::DTYPE, matrix.dims.clone())?;
    let to = out.as_mut_slice::<T>()?;
    let (rows, columns) = matrix.size();
    for (b, part) in matrix.parts.iter().enumerate() {
        let values = part.values.as_slice::<T>()?;
        for row in 0..rows {
            for (column, value) in part.row(values, row) {
                to[(b * rows + row) * columns + column] = value;
            }
        }
    }
    ctx.set(0, out)
}

fn to_sparse<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let matrix = CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?.clone();
    let (mut places, mut all) = (Vec::new(), Vec::new());
    for (b, part) in matrix.parts.iter().enumerate() {
        let values = part.values.as_slice::<T>()?;
        for row in 0..matrix.size().0 {
            for (column, value) in part.row(values, row) {
                if matrix.dims.len() == 3 {
                    places.push(b as i64);
                }
                places.extend([row as i64, column as i64]);
                all.push(value);
            }
        }
    }
    let dims: Vec<i64> = matrix.dims.iter().map(|d| *d as i64).collect();
    ctx.set(0, Tensor::from_slice([all.len(), dims.len()], &places)?)?;
    ctx.set(1, Tensor::vector(&all))?;
    ctx.set(2, Tensor::vector(&dims))
}

fn components<T: Entry>(ctx: &mut Ctx<'_>) -> Result<()> {
    let matrix = CsrMatrix::typed(ctx.input(0)?, T::DTYPE)?;
    let index = ctx.input(1)?.scalar_index()?;
    let part = usize::try_from(index).ok().and_then(|i| matrix.parts.get(i));
    let Some(part) = part.cloned() else {
        bail!(InvalidArgument, "index ({index}) not in [0, {})", matrix.parts.len());
    };
    ctx.set(0, Tensor::vector(&part.row_ptrs))?;
    ctx.set(1, Tensor::vector(&part.columns))?;
    ctx.set(2, part.values)
}

fn count(ctx: &mut Ctx<'_>) -> Result<()> {
    let matrix = CsrMatrix::of(ctx.input(0)?)?;
    let counts: Vec<i32> = matrix.parts.iter().map(|part| part.columns.len() as i32).collect();
    let shape = if matrix.dims.len() == 3 { Shape::from([counts.len()]) } else { Shape::scalar() };
    ctx.set(0, Tensor::from_slice(shape, &counts)?)
}

pub(super) const TYPES: &str = "type: {float, double, complex64, complex128}";
const T: &str = "T: {float, double, complex64, complex128}";

/// One kernel for each type that sparse matrices have.
macro_rules! per_entry {
    ($attr:literal, $f:ident) => {
        |init: &KernelInit<'_>| {
            Ok(match init.dtype($attr)? {
                DType::Float => KernelBox::new($f::<f32>),
                DType::Double => KernelBox::new($f::<f64>),
                DType::Complex64 => KernelBox::new($f::<Complex32>),
                DType::Complex128 => KernelBox::new($f::<Complex64>),
                other => bail!(Unimplemented, "no sparse matrices of {other}"),
            })
        }
    };
}
pub(super) use per_entry;

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseTensorToCSRSparseMatrix")
        .doc("A sparse matrix by compressed rows, from a sparse tensor.")
        .input("indices: int64")
        .input("values: T")
        .input("dense_shape: int64")
        .output("sparse_matrix: variant")
        .attr(T)
        .shape(shape::scalar)
        .cpu(per_entry!("T", from_sparse));
    c.op("DenseToCSRSparseMatrix")
        .doc("A sparse matrix by compressed rows of the elements of a dense one at `indices`.")
        .input("dense_input: T")
        .input("indices: int64")
        .output("sparse_output: variant")
        .attr(T)
        .shape(shape::scalar)
        .cpu(per_entry!("T", from_dense));
    c.op("CSRSparseMatrixToDense")
        .doc("The dense form of a sparse matrix.")
        .input("sparse_input: variant")
        .output("dense_output: type")
        .attr(TYPES)
        .shape(shape::unknown)
        .cpu(per_entry!("type", to_dense));
    c.op("CSRSparseMatrixToSparseTensor")
        .doc("The sparse tensor of a sparse matrix by compressed rows.")
        .input("sparse_matrix: variant")
        .output("indices: int64")
        .output("values: type")
        .output("dense_shape: int64")
        .attr(TYPES)
        .shape(shape::unknown)
        .cpu(per_entry!("type", to_sparse));
    c.op("CSRSparseMatrixComponents")
        .doc("Row pointers, columns and values of a sparse matrix of a batch.")
        .input("csr_sparse_matrix: variant")
        .input("index: int32")
        .output("row_ptrs: int32")
        .output("col_inds: int32")
        .output("values: type")
        .attr(TYPES)
        .shape(|_| Ok(vec![PartialShape::new([None]); 3]))
        .cpu(per_entry!("type", components));
    c.op("SparseMatrixNNZ")
        .doc("How many entries a sparse matrix has.")
        .input("sparse_matrix: variant")
        .output("nnz: int32")
        .shape(shape::unknown)
        .cpu_fn(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    fn made() -> Tensor {
        check("SparseTensorToCSRSparseMatrix")
            .input(Tensor::from_slice([3, 2], &[0i64, 1, 2, 0, 2, 1]).unwrap())
            .input(Tensor::vector(&[5f32, 7., 8.]))
            .input(Tensor::vector(&[3i64, 2]))
            .run()
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_sparse_tensor_comes_back() {
        let back = check("CSRSparseMatrixToSparseTensor").attr("type", DType::Float).input(made());
        let back = back.run().unwrap();
        assert_eq!(back[0], Tensor::from_slice([3, 2], &[0i64, 1, 2, 0, 2, 1]).unwrap());
        assert_eq!(back[1], Tensor::vector(&[5f32, 7., 8.]));
        assert_eq!(back[2], Tensor::vector(&[3i64, 2]));
        let dense = Tensor::from_slice([3, 2], &[0f32, 5., 0., 0., 7., 8.]).unwrap();
        check("CSRSparseMatrixToDense").attr("type", DType::Float).input(made()).gives(dense);
        check("SparseMatrixNNZ").input(made()).gives(Tensor::scalar(3i32));
    }

    #[test]
    fn components_are_checked() {
        let part = |i: i32| {
            check("CSRSparseMatrixComponents")
                .attr("type", DType::Float)
                .input(made())
                .input(Tensor::scalar(i))
        };
        assert_eq!(part(0).run().unwrap()[0], Tensor::vector(&[0i32, 1, 1, 3]));
        part(1).fails(Code::InvalidArgument, "index (1) not in [0, 1)");
        check("CSRSparseMatrixToDense")
            .attr("type", DType::Double)
            .input(made())
            .fails(Code::InvalidArgument, "but saw dtype: float");
        check("SparseTensorToCSRSparseMatrix")
            .input(Tensor::from_slice([1, 2], &[0i64, 9]).unwrap())
            .input(Tensor::vector(&[5f32]))
            .input(Tensor::vector(&[3i64, 2]))
            .fails(Code::InvalidArgument, "is not inside");
    }
}
