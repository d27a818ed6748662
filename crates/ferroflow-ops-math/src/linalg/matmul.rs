//! MatMul, SparseMatMul, and the batched products.

mod device;

use super::gemm::{Finisher, Mat, Product, ProductThreads, product, product_cost};
use crate::math::cast::cast_to;
use crate::prelude::*;
use ferroflow_core::Epilogue;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::parallel::for_rows;

struct MatMul<T> {
    transpose_a: bool,
    transpose_b: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Product> MatMul<T> {
    fn new(init: &KernelInit<'_>) -> Result<Self> {
        let (transpose_a, transpose_b) = (init.bool("transpose_a")?, init.bool("transpose_b")?);
        Ok(MatMul { transpose_a, transpose_b, marker: std::marker::PhantomData })
    }
}

impl<T: Product> Kernel for MatMul<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        self.multiply(ctx, None).map(drop)
    }

    fn compute_with_epilogue(&self, ctx: &mut Ctx<'_>, epilogue: &dyn Epilogue) -> Result<bool> {
        self.multiply(ctx, Some(epilogue))
    }
}

impl<T: Product> MatMul<T> {
    fn multiply(&self, ctx: &mut Ctx<'_>, epilogue: Option<&dyn Epilogue>) -> Result<bool> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(a.rank() == 2, InvalidArgument, "In[0] ndims must be >= 2");
        ensure!(b.rank() == 2, InvalidArgument, "In[1] ndims must be >= 2");
        let (x, y) = (matrix::<T>(a, self.transpose_a)?, matrix::<T>(b, self.transpose_b)?);
        ensure!(
            x.cols == y.rows,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            a.shape(),
            b.shape()
        );
        let mut out = ctx.alloc(T::DTYPE, [x.rows, y.cols])?;
        let finisher = epilogue.and_then(|epilogue| Finisher::new::<T>(epilogue, out.shape()));
        let n = y.cols;
        product(x, y, out.as_mut_slice()?, ProductThreads::All);
        if let Some(finisher) = finisher {
            finisher.run_all(out.as_mut_slice::<T>()?, n);
        }
        ctx.set(0, out)?;
        Ok(finisher.is_some())
    }
}

/// A matrix that may be used transposed.
fn matrix<T: Product>(t: &Tensor, transpose: bool) -> Result<Mat<'_, T>> {
    let m = Mat::new(t.as_slice::<T>()?, t.shape()[0], t.shape()[1]);
    Ok(if transpose { m.transposed() } else { m })
}

/// A product whose operands may be bfloat16; the result is float.
struct SparseMatMul {
    transpose_a: bool,
    transpose_b: bool,
}

impl Kernel for SparseMatMul {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(a.rank() == 2, InvalidArgument, "a is not a matrix");
        ensure!(b.rank() == 2, InvalidArgument, "b is not a matrix");
        let (wide_a, wide_b) = (widened(a)?, widened(b)?);
        let x = matrix::<f32>(&wide_a, self.transpose_a)?;
        let y = matrix::<f32>(&wide_b, self.transpose_b)?;
        ensure!(
            x.cols == y.rows,
            InvalidArgument,
            "Matrix size incompatible: a: {}, b: {}",
            a.shape(),
            b.shape()
        );
        let mut out = ctx.alloc(DType::Float, [x.rows, y.cols])?;
        product(x, y, out.as_mut_slice()?, ProductThreads::All);
        ctx.set(0, out)
    }
}

/// Converts a bfloat16 tensor to float; returns a float tensor unchanged.
fn widened(t: &Tensor) -> Result<Tensor> {
    if t.dtype() == DType::Float {
        return Ok(t.clone());
    }
    let wide: Vec<f32> = t.as_slice::<bf16>()?.iter().map(|x| x.to_f32()).collect();
    Tensor::from_slice(t.shape().clone(), &wide)
}

/// Products of the last two dimensions; the others are batches.
struct BatchMatMul<T> {
    adjoint_x: bool,
    adjoint_y: bool,
    broadcast: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Product> BatchMatMul<T> {
    fn new(init: &KernelInit<'_>, broadcast: bool) -> Result<Self> {
        let (adjoint_x, adjoint_y) = (init.bool("adj_x")?, init.bool("adj_y")?);
        Ok(BatchMatMul { adjoint_x, adjoint_y, broadcast, marker: std::marker::PhantomData })
    }

    fn run(&self, ctx: &Ctx<'_>, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let batches = match self.broadcast {
            true => broadcast_batches(x.shape(), y.shape())?,
            false => equal_batches(x.shape(), y.shape())?,
        };
        let sizes = |shape: &Shape, adjoint: bool| {
            let (rows, cols) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
            if adjoint { (cols, rows) } else { (rows, cols) }
        };
        let (data_x, data_y) = (x.as_slice::<T>()?, y.as_slice::<T>()?);
        let (m, k) = sizes(x.shape(), self.adjoint_x);
        let (k2, n) = sizes(y.shape(), self.adjoint_y);
        ensure!(
            k == k2,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            x.shape(),
            y.shape()
        );
        let mut dims = batches.shape.clone();
        dims.extend([m, n]);
        let mut out = ctx.alloc(T::DTYPE, dims)?;
        let data = out.as_mut_slice::<T>()?;
        if data.is_empty() {
            return Ok(out);
        }
        let one = |i: usize, out: &mut [T], threads: ProductThreads| {
            let a = operand(data_x, batches.x.at(i), (m, k), self.adjoint_x);
            let b = operand(data_y, batches.y.at(i), (k, n), self.adjoint_y);
            product(a, b, out, threads);
        };
        let count = data.len() / (m * n);
        if count >= ferroflow_core::ComputePool::threads() {
            for_rows(data, m * n, product_cost(m, n, k), |range, data| {
                for (i, out) in range.zip(data.chunks_exact_mut(m * n)) {
                    one(i, out, ProductThreads::One);
                }
            });
        } else {
            for (i, out) in data.chunks_exact_mut(m * n).enumerate() {
                one(i, out, ProductThreads::All);
            }
        }
        Ok(out)
    }
}

impl<T: Product> Kernel for BatchMatMul<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let out = self.run(ctx, ctx.input(0)?, ctx.input(1)?)?;
        ctx.set(0, out)
    }
}

/// Matrix `i` of a batch, which may be stored as the adjoint of the factor.
fn operand<T>(data: &[T], i: usize, (rows, cols): (usize, usize), adjoint: bool) -> Mat<'_, T> {
    let data = &data[i * rows * cols..(i + 1) * rows * cols];
    if adjoint { Mat::new(data, cols, rows).adjoint() } else { Mat::new(data, rows, cols) }
}

/// How the batches of the result map to those of the operands.
pub(super) struct Batches {
    pub shape: Vec<usize>,
    pub x: BatchIndex,
    pub y: BatchIndex,
}

/// Maps a matrix of the result to a matrix of an operand.
pub(super) struct BatchIndex {
    /// For every batch dimension of the result, its size and the step in the operand.
    dims: Vec<(usize, usize)>,
}

impl BatchIndex {
    fn new(own: &[usize], shape: &[usize]) -> BatchIndex {
        let mut stride = 1;
        let mut dims = Vec::with_capacity(shape.len());
        for (i, &dim) in shape.iter().rev().enumerate() {
            let own = own.iter().rev().nth(i).copied().unwrap_or(1);
            dims.push((dim, if own == 1 { 0 } else { stride }));
            stride *= own;
        }
        BatchIndex { dims }
    }

    pub(super) fn at(&self, mut i: usize) -> usize {
        let mut at = 0;
        for &(dim, step) in &self.dims {
            at += i % dim * step;
            i /= dim;
        }
        at
    }
}

fn equal_batches(x: &Shape, y: &Shape) -> Result<Batches> {
    ensure!(
        x.rank() == y.rank(),
        InvalidArgument,
        "In[0] and In[1] has different ndims: {x} vs. {y}"
    );
    let batch_dims = x.rank().checked_sub(2);
    let Some(batch_dims) = batch_dims else {
        bail!(InvalidArgument, "In[0] and In[1] ndims must be >= 2: {}", x.rank());
    };
    for i in 0..batch_dims {
        ensure!(
            x[i] == y[i],
            InvalidArgument,
            "In[0].dim({i}) and In[1].dim({i}) must be the same: {x} vs {y}"
        );
    }
    let shape = x[..batch_dims].to_vec();
    Ok(Batches { x: BatchIndex::new(&shape, &shape), y: BatchIndex::new(&shape, &shape), shape })
}

pub(super) fn broadcast_batches(x: &Shape, y: &Shape) -> Result<Batches> {
    ensure!(x.rank() >= 2, InvalidArgument, "In[0] ndims must be >= 2: {}", x.rank());
    ensure!(y.rank() >= 2, InvalidArgument, "In[1] ndims must be >= 2: {}", y.rank());
    let (a, b) = (&x[..x.rank() - 2], &y[..y.rank() - 2]);
    let rank = a.len().max(b.len());
    let at = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let mut shape = Vec::with_capacity(rank);
    for i in 0..rank {
        shape.push(match (at(a, i), at(b, i)) {
            (1, d) | (d, 1) => d,
            (p, q) if p == q => p,
            _ => bail!(
                InvalidArgument,
                "In[0] and In[1] must have compatible batch dimensions: {x} vs. {y}"
            ),
        });
    }
    Ok(Batches { x: BatchIndex::new(a, &shape), y: BatchIndex::new(b, &shape), shape })
}

/// A product of operands and a result of different types, by way of `W`.
struct MixedBatchMatMul<W> {
    inner: BatchMatMul<W>,
}

impl<W: Product> Kernel for MixedBatchMatMul<W> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let wide = |i: usize| cast_to(ctx.input(i)?, W::DTYPE);
        let (x, y) = (wide(0)?, wide(1)?);
        let out = self.inner.run(ctx, &x, &y)?;
        ctx.set(0, out)
    }
}

/// The kernel of BatchMatMulV3. Operands have the same dtype, or are small integers, which int32
/// and bfloat16 hold without loss.
fn batch_matmul_v3(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = (init.dtype("Ta")?, init.dtype("Tb")?, init.dtype("Tout")?);
    let small = |t| matches!(t, DType::Int8 | DType::UInt8);
    let tiny = |t| small(t) || t == DType::BFloat16;
    match types {
        (a, b, DType::Int32) if small(a) && small(b) => {
            Ok(KernelBox::new(MixedBatchMatMul { inner: BatchMatMul::<i32>::new(init, true)? }))
        }
        (a, b, DType::BFloat16) if a != b && [a, b].map(tiny) == [true; 2] => {
            Ok(KernelBox::new(MixedBatchMatMul { inner: BatchMatMul::<bf16>::new(init, true)? }))
        }
        (a, b, out) if a == b && b == out => per_dtype!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32, Int64 i64,
             Complex64 Complex32, Complex128 Complex64],
            "Ta", init, T => BatchMatMul::<T>::new(init, true)?
        )(init),
        (_, _, out) => Err(unsupported(init, "Tout", out)),
    }
}

fn sparse_matmul(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(SparseMatMul {
        transpose_a: init.bool("transpose_a")?,
        transpose_b: init.bool("transpose_b")?,
    }))
}

/// Shape of a product of two matrices.
fn product_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (a, b) = (c.input(0), c.input(1));
    let (a, b) = (of_rank_2(&a)?, of_rank_2(&b)?);
    let (flip_a, flip_b) = (c.attrs.bool("transpose_a")?, c.attrs.bool("transpose_b")?);
    let (m, k) = if flip_a { (a.1, a.0) } else { a };
    let (k2, n) = if flip_b { (b.1, b.0) } else { b };
    if let (Some(k), Some(k2)) = (k, k2)
        && k != k2
    {
        bail!(InvalidArgument, "Dimensions must be equal, but are {k} and {k2}");
    }
    Ok(vec![PartialShape::new([m, n])])
}

fn of_rank_2(shape: &PartialShape) -> Result<(Option<usize>, Option<usize>)> {
    if let Some(rank) = shape.rank() {
        ensure!(rank == 2, InvalidArgument, "Shape must be rank 2 but is rank {rank}");
    }
    Ok((shape.dim(0), shape.dim(1)))
}

/// Shape of a batched product.
fn batch_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (x, y) = (c.input(0), c.input(1));
    let (Some(a), Some(b)) = (x.dims(), y.dims()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let (Some(p), Some(q)) = (a.len().checked_sub(2), b.len().checked_sub(2)) else {
        bail!(InvalidArgument, "Shape must be at least rank 2 but are {x} and {y}");
    };
    let (m, k) = if c.attrs.bool("adj_x")? { (a[p + 1], a[p]) } else { (a[p], a[p + 1]) };
    let (k2, n) = if c.attrs.bool("adj_y")? { (b[q + 1], b[q]) } else { (b[q], b[q + 1]) };
    if let (Some(k), Some(k2)) = (k, k2)
        && k != k2
    {
        bail!(InvalidArgument, "Dimensions must be equal, but are {k} and {k2}");
    }
    let batch = |dims: &[Option<usize>]| PartialShape::new(dims.iter().copied());
    let batch = shape::broadcast_shapes(&batch(&a[..p]), &batch(&b[..q]))?;
    let dims = batch.dims().expect("both ranks are known").iter().copied().chain([m, n]);
    Ok(vec![PartialShape::new(dims)])
}

fn matmul_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, dy) = (g.input(0).conj(), g.input(1).conj(), dy[0]);
    // Gradients have the dtype of the product, which may differ from that of a sparse operand.
    let (of_a, of_b) = (a.dtype(), b.dtype());
    let (a, b) = (a.cast(dy.dtype()), b.cast(dy.dtype()));
    let (da, db) = match (g.attrs().bool("transpose_a")?, g.attrs().bool("transpose_b")?) {
        (false, false) => (g.matmul(dy, b, (false, true)), g.matmul(a, dy, (true, false))),
        (false, true) => (g.matmul(dy, b, (false, false)), g.matmul(dy, a, (true, false))),
        (true, false) => (g.matmul(b, dy, (false, true)), g.matmul(a, dy, (false, false))),
        (true, true) => (g.matmul(b, dy, (true, true)), g.matmul(dy, a, (true, true))),
    };
    Ok(vec![da.cast(of_a), db.cast(of_b)])
}

fn batch_matmul_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (x, y, dy) = (g.input(0), g.input(1), dy[0]);
    let (of_x, of_y) = (x.dtype(), y.dtype());
    let (a, b) = (x.cast(dy.dtype()), y.cast(dy.dtype()));
    let (dx, dy) = match (g.attrs().bool("adj_x")?, g.attrs().bool("adj_y")?) {
        (false, false) => {
            (g.batch_matmul(dy, b, (false, true)), g.batch_matmul(a, dy, (true, false)))
        }
        (false, true) => {
            (g.batch_matmul(dy, b, (false, false)), g.batch_matmul(dy, a, (true, false)))
        }
        (true, false) => {
            (g.batch_matmul(b, dy, (false, true)), g.batch_matmul(a, dy, (false, false)))
        }
        (true, true) => (g.batch_matmul(b, dy, (true, true)), g.batch_matmul(dy, a, (true, true))),
    };
    let (dx, dy) = (dx.cast(of_x), dy.cast(of_y));
    if x.rank() == Some(2) && y.rank() == Some(2) {
        return Ok(vec![dx, dy]);
    }
    let batch_of =
        |t: Term<'g>| Some(t.static_shape().known()?.to_i64s()[..t.rank()? - 2].to_vec());
    if let (Some(a), Some(b)) = (batch_of(x), batch_of(y))
        && a == b
    {
        return Ok(vec![dx, dy]);
    }
    // All but the last two dimensions were broadcast.
    let batch = |t: Term<'g>| {
        let ends = (g.ints(&[0]), g.ints(&[-2]), g.ints(&[1]));
        let attrs = Attrs::new().with("begin_mask", 1i64);
        g.call_with("StridedSlice", &[t.shape(), ends.0, ends.1, ends.2], attrs)
    };
    let axes = g.calls("BroadcastGradientArgs", &[batch(x), batch(y)]);
    Ok(vec![dx.sum(axes[0], false).reshape(x.shape()), dy.sum(axes[1], false).reshape(y.shape())])
}

fn product_flops(s: &NodeSizes<'_>) -> f64 {
    let is_transposed = s.attrs.bool("transpose_a").unwrap_or(false);
    2.0 * s.output(0) * s.input_dim(0, usize::from(is_transposed))
}

fn batch_flops(s: &NodeSizes<'_>) -> f64 {
    let is_adjoint = s.attrs.bool("adj_x").unwrap_or(false);
    2.0 * s.output(0) * s.input_dim(0, usize::from(is_adjoint))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MatMul")
        .doc("The product of two matrices.")
        .input("a: T")
        .input("b: T")
        .output("product: T")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}")
        .newer_attr("grad_a: bool = false")
        .newer_attr("grad_b: bool = false")
        .expensive()
        .flops(product_flops)
        .takes_epilogue()
        .shape(product_shape)
        .gpu(gpu::FLOAT, device::matmul)
        .gpu_with_bias(device::matmul_and_bias)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int32 i32, Int64 i64,
             Complex64 Complex32, Complex128 Complex64],
            init, T => MatMul::<T>::new(init)?
        ));
    c.op("SparseMatMul")
        .work(work::any)
        .doc("The product of two matrices, of which either may be bfloat16.")
        .input("a: Ta")
        .input("b: Tb")
        .output("product: float")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("a_is_sparse: bool = false")
        .attr("b_is_sparse: bool = false")
        .attr("Ta: {float, bfloat16} = DT_FLOAT")
        .attr("Tb: {float, bfloat16} = DT_FLOAT")
        .expensive()
        .flops(product_flops)
        .shape(product_shape)
        .cpu(sparse_matmul);
    macro_rules! batched {
        ($op:literal, $doc:literal, $types:literal, $broadcast:literal) => {
            c.op($op)
                .doc($doc)
                .input("x: T")
                .input("y: T")
                .output("output: T")
                .attr($types)
                .attr("adj_x: bool = false")
                .attr("adj_y: bool = false")
                .newer_attr("grad_x: bool = false")
                .newer_attr("grad_y: bool = false")
                .expensive()
                .flops(batch_flops)
                .shape(batch_shape)
                .gpu(gpu::FLOAT, move |init| device::batch_matmul(init, $broadcast))
                .cpu(per_dtype!(
                    [Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32,
                     Int64 i64, Complex64 Complex32, Complex128 Complex64],
                    init, T => BatchMatMul::<T>::new(init, $broadcast)?
                ));
        };
    }
    batched!(
        "BatchMatMul",
        "Products of matrices, batch by batch.",
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
        false
    );
    batched!(
        "BatchMatMulV2",
        "Products of matrices; batches broadcast.",
        "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        true
    );
    c.op("BatchMatMulV3")
        .doc("Products of matrices; batches broadcast, and types may differ.")
        .input("x: Ta")
        .input("y: Tb")
        .output("output: Tout")
        .attr("Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}")
        .attr("Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}")
        .attr("Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}")
        .attr("adj_x: bool = false")
        .attr("adj_y: bool = false")
        .newer_attr("grad_x: bool = false")
        .newer_attr("grad_y: bool = false")
        .expensive()
        .shape(batch_shape)
        .gpu(device::MIXED, |init| device::batch_matmul(init, true))
        .cpu(batch_matmul_v3);
    for op in ["MatMul", "SparseMatMul"] {
        c.gradient(op, matmul_gradient);
    }
    for op in ["BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"] {
        c.gradient(op, batch_matmul_gradient);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn mat<T: Element>(rows: usize, cols: usize, values: &[T]) -> Tensor {
        Tensor::from_slice([rows, cols], values).unwrap()
    }

    #[test]
    fn matrices_multiply_as_they_are_or_transposed() {
        let a = mat(2, 3, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let b = mat(3, 2, &[7f32, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let want = mat(2, 2, &[58f32, 64.0, 139.0, 154.0]);
        check("MatMul").input(a.clone()).input(b.clone()).gives(want.clone());
        let at = mat(3, 2, &[1f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let bt = mat(2, 3, &[7f32, 9.0, 11.0, 8.0, 10.0, 12.0]);
        let both = check("MatMul").input(at).input(bt);
        both.attr("transpose_a", true).attr("transpose_b", true).gives(want.clone());
        check("SparseMatMul").input(a.clone()).input(b.clone()).gives(want.clone());
        // Clients of newer releases say which products are parts of a gradient.
        check("MatMul").input(a).input(b).attr("grad_a", true).attr("grad_b", false).gives(want);
    }

    #[test]
    fn every_kind_of_number_multiplies() {
        let ints = mat(1, 2, &[i32::MAX, 2]);
        let more = mat(2, 1, &[2, 3]);
        check("MatMul").input(ints).input(more).gives(mat(1, 1, &[4i32]));
        let z = mat(1, 2, &[Complex32::new(0.0, 1.0), Complex32::new(2.0, 0.0)]);
        let want = [(-1.0, 0.0), (0.0, 2.0), (0.0, 2.0), (4.0, 0.0)];
        let want = mat(2, 2, &want.map(|(re, im)| Complex32::new(re, im)));
        let mm = check("MatMul").input(z.clone()).input(z.clone());
        mm.attr("transpose_a", true).gives(want);
        let want = [(1.0, 0.0), (0.0, -2.0), (0.0, 2.0), (4.0, 0.0)];
        let want = mat(2, 2, &want.map(|(re, im)| Complex32::new(re, im)));
        check("BatchMatMulV2").input(z.clone()).input(z).attr("adj_x", true).gives(want);
        let h = mat(1, 2, &[f16::from_f32(1.5), f16::from_f32(2.0)]);
        let mm = check("MatMul").input(h.clone()).input(h).attr("transpose_b", true);
        mm.gives(mat(1, 1, &[f16::from_f32(6.25)]));
    }

    #[test]
    fn sizes_must_agree() {
        let a = || Tensor::zeros(DType::Float, [2, 3]).unwrap();
        let text = "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]";
        check("MatMul").input(a()).input(a()).fails(Code::InvalidArgument, text);
        check("BatchMatMulV2").input(a()).input(a()).fails(Code::InvalidArgument, text);
        let text = "Matrix size incompatible: a: [2,3], b: [2,3]";
        check("SparseMatMul").input(a()).input(a()).fails(Code::InvalidArgument, text);
        let v = || Tensor::zeros(DType::Float, [3]).unwrap();
        let mm = check("MatMul").input(v()).input(a());
        mm.fails(Code::InvalidArgument, "In[0] ndims must be >= 2");
        let text = "In[1] ndims must be >= 2: 1";
        check("BatchMatMulV2").input(a()).input(v()).fails(Code::InvalidArgument, text);
        let cube = |n| Tensor::zeros(DType::Float, [n, 2, 2]).unwrap();
        let text = "In[0] and In[1] must have compatible batch dimensions: [2,2,2] vs. [3,2,2]";
        check("BatchMatMulV2").input(cube(2)).input(cube(3)).fails(Code::InvalidArgument, text);
        let text = "In[0].dim(0) and In[1].dim(0) must be the same: [2,2,2] vs [1,2,2]";
        check("BatchMatMul").input(cube(2)).input(cube(1)).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn empty_products_are_zero() {
        let zeros = |dims: [usize; 2]| Tensor::zeros(DType::Float, dims).unwrap();
        check("MatMul").input(zeros([2, 0])).input(zeros([0, 3])).gives(zeros([2, 3]));
        check("MatMul").input(zeros([0, 2])).input(zeros([2, 3])).gives(zeros([0, 3]));
    }

    #[test]
    fn batches_broadcast() {
        let x = Tensor::from_slice([2, 1, 1, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
        let y = Tensor::from_slice([3, 2, 1], &[1f32, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
        let want = [1f32, 2.0, 3.0, 3.0, 4.0, 7.0];
        let want = Tensor::from_slice([2, 3, 1, 1], &want).unwrap();
        check("BatchMatMulV2").input(x.clone()).input(y.clone()).gives(want.clone());
        let v3 = check("BatchMatMulV3").input(x).input(y).attr("Tout", DType::Float);
        v3.gives(want);
    }

    #[test]
    fn small_integers_are_summed_as_int32() {
        let x = mat(1, 2, &[100u8, 100]);
        let y = mat(2, 1, &[100i8, -99]);
        let v3 = check("BatchMatMulV3").input(x).input(y).attr("Tout", DType::Int32);
        v3.gives(mat(1, 1, &[100i32]));
    }

    #[test]
    fn gradients_are_slopes() {
        let a = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        let b = Tensor::from_slice([3, 2], &[1.5f64, -0.5, 0.75, 1.25, -2.0, 0.1]).unwrap();
        check("MatMul").input(a.clone()).input(b.clone()).gradient();
        let flags = |op: &str| check(op).attr("transpose_a", true).attr("transpose_b", true);
        flags("MatMul").input(b.clone()).input(a.clone()).gradient();
        let stacked = a.reshape([2, 1, 3]).unwrap();
        check("BatchMatMulV2").input(stacked).input(b).gradient();
    }
}
