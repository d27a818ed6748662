//! Products on a GPU.

use super::{broadcast_batches, equal_batches};
use crate::prelude::*;
use ferroflow_core::{Gemm, Gpu};
use ferroflow_op_kit::gpu::GpuTypes;

/// Operands and result of one type.
pub(super) const MIXED: GpuTypes =
    &[("Ta", &[DType::Float]), ("Tb", &[DType::Float]), ("Tout", &[DType::Float])];

/// The kernel of MatMul.
pub(super) fn matmul(init: &KernelInit<'_>) -> Result<KernelBox> {
    product(init, false)
}

/// The kernel of MatMul and a bias, which is input 2.
pub(super) fn matmul_and_bias(init: &KernelInit<'_>) -> Result<KernelBox> {
    product(init, true)
}

fn product(init: &KernelInit<'_>, has_bias: bool) -> Result<KernelBox> {
    let (transpose_a, transpose_b) = (init.bool("transpose_a")?, init.bool("transpose_b")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(a.rank() == 2, InvalidArgument, "In[0] ndims must be >= 2");
        ensure!(b.rank() == 2, InvalidArgument, "In[1] ndims must be >= 2");
        let (m, k) = sizes(a.shape(), transpose_a);
        let (k2, n) = sizes(b.shape(), transpose_b);
        ensure!(
            k == k2,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            a.shape(),
            b.shape()
        );
        let bias = if has_bias { Some(ctx.input(2)?) } else { None };
        if let Some(bias) = bias {
            ensure!(
                bias.shape().dims() == [n],
                InvalidArgument,
                "a bias of shape {}",
                bias.shape()
            );
        }
        let out = ctx.alloc_on_device(a.dtype(), [m, n])?;
        let product = Gemm {
            dtype: a.dtype(),
            m,
            n,
            k,
            a: a.device_address()?,
            b: b.device_address()?,
            c: out.device_address()?,
            transpose_a,
            transpose_b,
            batch: 1,
            strides: [m * k, k * n, m * n],
            bias: bias.map(Tensor::device_address).transpose()?,
            accumulate: false,
        };
        run(ctx.gpu()?.as_ref(), &product, &out)?;
        ctx.set(0, out)
    }))
}

/// The kernel of the batched products.
pub(super) fn batch_matmul(init: &KernelInit<'_>, broadcast: bool) -> Result<KernelBox> {
    let (transpose_a, transpose_b) = (init.bool("adj_x")?, init.bool("adj_y")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let batches = match broadcast {
            true => broadcast_batches(x.shape(), y.shape())?,
            false => equal_batches(x.shape(), y.shape())?,
        };
        let (m, k) = sizes(x.shape(), transpose_a);
        let (k2, n) = sizes(y.shape(), transpose_b);
        ensure!(
            k == k2,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            x.shape(),
            y.shape()
        );
        let count: usize = batches.shape.iter().product();
        let mut dims = batches.shape.clone();
        dims.extend([m, n]);
        let out = ctx.alloc_on_device(x.dtype(), dims)?;
        let size = x.dtype().size().unwrap_or(1);
        let at = |t: &Tensor, i: usize, each: usize| -> Result<u64> {
            Ok(t.device_address()? + (i * each * size) as u64)
        };
        let product = |from: usize, batch: usize, strides: [usize; 3]| -> Result<Gemm> {
            Ok(Gemm {
                dtype: x.dtype(),
                m,
                n,
                k,
                a: at(x, batches.x.at(from), m * k)?,
                b: at(y, batches.y.at(from), k * n)?,
                c: at(&out, from, m * n)?,
                transpose_a,
                transpose_b,
                batch,
                strides,
                bias: None,
                accumulate: false,
            })
        };
        let gpu = ctx.gpu()?.as_ref();
        // The operands step evenly from matrix to matrix unless batches broadcast.
        let step = |at: &dyn Fn(usize) -> usize| {
            let step = if count > 1 { at(1) } else { 0 };
            (0..count).all(|i| at(i) == i * step).then_some(step)
        };
        let steps = (step(&|i| batches.x.at(i)), step(&|i| batches.y.at(i)));
        if let (Some(a), Some(b)) = steps {
            run(gpu, &product(0, count, [a * m * k, b * k * n, m * n])?, &out)?;
        } else {
            for i in 0..count {
                run(gpu, &product(i, 1, [0, 0, 0])?, &out)?;
            }
        }
        ctx.set(0, out)
    }))
}

/// Rows and columns of the last two dimensions.
fn sizes(shape: &Shape, transpose: bool) -> (usize, usize) {
    let (rows, cols) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
    if transpose { (cols, rows) } else { (rows, cols) }
}

fn run(gpu: &dyn Gpu, product: &Gemm, out: &Tensor) -> Result<()> {
    if out.elements() == 0 {
        return Ok(());
    }
    if product.k == 0 {
        return gpu.clear(out.device_address()?, out.byte_len());
    }
    gpu.gemm(product)
}
