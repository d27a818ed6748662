//! QuantizedMatMul and QuantizedConv2D: products of 8-bit elements summed in 32 bits.

use super::affine::{Quantized, product_range, scalar, set_range, unclamped};
use crate::nn::quantized_conv;
use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::{Mat, ProductThreads, product};

/// Elements minus the level of zero.
fn centred<T: Quantized>(t: &Tensor, (min, max): (f32, f32)) -> Result<Vec<i32>> {
    let zero = unclamped::<T>(0.0, min, max) as i32;
    let less = |&x: &T| -> i32 {
        let x: i64 = x.into();
        (x as i32).wrapping_sub(zero)
    };
    Ok(t.as_slice::<T>()?.iter().map(less).collect())
}

struct MatMul {
    transpose_a: bool,
    transpose_b: bool,
}

impl Kernel for MatMul {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let of_a = (scalar(ctx, 2, "min_a")?, scalar(ctx, 3, "max_a")?);
        let of_b = (scalar(ctx, 4, "min_b")?, scalar(ctx, 5, "max_b")?);
        ensure!(of_a.1 > of_a.0, InvalidArgument, "max_a must be larger than min_a.");
        ensure!(of_b.1 > of_b.0, InvalidArgument, "max_b must be larger than min_b.");
        let &[a0, a1] = a.shape().dims() else {
            bail!(InvalidArgument, "In[0] is not a matrix");
        };
        let &[b0, b1] = b.shape().dims() else {
            bail!(InvalidArgument, "In[1] is not a matrix");
        };
        let (x, y) = (centred::<u8>(a, of_a)?, centred::<u8>(b, of_b)?);
        let (mut left, mut right) = (Mat::new(&x, a0, a1), Mat::new(&y, b0, b1));
        if self.transpose_a {
            left = left.transposed();
        }
        if self.transpose_b {
            right = right.transposed();
        }
        ensure!(
            left.cols == right.rows,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            a.shape(),
            b.shape()
        );
        let mut out = Tensor::zeros(DType::QInt32, [left.rows, right.cols])?;
        if out.elements() > 0 && left.cols > 0 {
            product(left, right, out.as_mut_slice::<i32>()?, ProductThreads::All);
        }
        ctx.set(0, out)?;
        set_range(ctx, product_range::<u8, u8>(of_a, of_b))
    }
}

struct Convolution {
    conv: quantized_conv::Convolution,
    /// Signed filters have their zero at 0, and images are assumed to have it there too.
    is_signed: bool,
}

impl Kernel for Convolution {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, filter) = (ctx.input(0)?, ctx.input(1)?);
        let of_x = (scalar(ctx, 2, "min_input")?, scalar(ctx, 3, "max_input")?);
        let of_filter = (scalar(ctx, 4, "min_filter")?, scalar(ctx, 5, "max_filter")?);
        let (a, b, range) = if self.is_signed {
            let a = x.as_slice::<u8>()?.iter().map(|&x| i32::from(x)).collect();
            let b = filter.as_slice::<i8>()?.iter().map(|&x| i32::from(x)).collect();
            (a, b, product_range::<u8, i8>(of_x, of_filter))
        } else {
            let (a, b) = (centred::<u8>(x, of_x)?, centred::<u8>(filter, of_filter)?);
            (a, b, product_range::<u8, u8>(of_x, of_filter))
        };
        let out = self.conv.run(x.shape(), filter.shape(), &a, &b)?;
        ctx.set(0, out.with_dtype(DType::QInt32)?)?;
        set_range(ctx, range)
    }
}

/// Refuses a dtype other than the one that is supported.
fn only(init: &KernelInit<'_>, attr: &str, want: DType) -> Result<()> {
    match init.dtype(attr)? {
        is if is == want => Ok(()),
        other => Err(unsupported(init, attr, other)),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("QuantizedMatMul")
        .doc("The product of two matrices of quantised elements.")
        .input("a: T1")
        .input("b: T2")
        .input("min_a: float")
        .input("max_a: float")
        .input("min_b: float")
        .input("max_b: float")
        .output("out: Toutput")
        .output("min_out: float")
        .output("max_out: float")
        .attr("T1: quantizedtype")
        .attr("T2: quantizedtype")
        .attr("Toutput: quantizedtype = DT_QINT32")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("Tactivation: quantizedtype = DT_QUINT8")
        .expensive()
        .shape(|c| {
            let side = |i: usize, attr: &str, last: bool| -> Result<Option<usize>> {
                let shape = c.input(i).merge(&PartialShape::of_rank(2))?;
                Ok(shape.dim(usize::from(c.attrs.bool(attr)? != last)))
            };
            let (rows, cols) = (side(0, "transpose_a", false)?, side(1, "transpose_b", true)?);
            let scalar = PartialShape::scalar();
            Ok(vec![PartialShape::new([rows, cols]), scalar.clone(), scalar])
        })
        .cpu(|init| {
            only(init, "T1", DType::QUInt8)?;
            only(init, "T2", DType::QUInt8)?;
            only(init, "Toutput", DType::QInt32)?;
            let (transpose_a, transpose_b) = (init.bool("transpose_a")?, init.bool("transpose_b")?);
            Ok(KernelBox::new(MatMul { transpose_a, transpose_b }))
        });
    c.op("QuantizedConv2D")
        .doc("The convolution of images of quantised elements.")
        .input("input: Tinput")
        .input("filter: Tfilter")
        .input("min_input: float")
        .input("max_input: float")
        .input("min_filter: float")
        .input("max_filter: float")
        .output("output: out_type")
        .output("min_output: float")
        .output("max_output: float")
        .attr("Tinput: quantizedtype")
        .attr("Tfilter: quantizedtype")
        .attr("out_type: quantizedtype = DT_QINT32")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID'}")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .expensive()
        .shape(|c| {
            let scalar = PartialShape::scalar();
            Ok(vec![quantized_conv::output_shape(c, false)?, scalar.clone(), scalar])
        })
        .cpu(|init| {
            only(init, "Tinput", DType::QUInt8)?;
            only(init, "out_type", DType::QInt32)?;
            let conv = quantized_conv::Convolution::new(init.attrs)?;
            let is_signed = match init.dtype("Tfilter")? {
                DType::QInt8 => true,
                DType::QUInt8 => false,
                other => return Err(unsupported(init, "Tfilter", other)),
            };
            Ok(KernelBox::new(Convolution { conv, is_signed }))
        });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn signed_filters_multiply_levels_as_they_are() {
        let image = Tensor::from_slice([1, 1, 2, 1], &[200u8, 3]).unwrap();
        let filter = Tensor::from_slice([1, 1, 1, 2], &[-128i8, 5]).unwrap();
        let got = check("QuantizedConv2D")
            .attr("strides", vec![1i64, 1, 1, 1])
            .attr("padding", "VALID")
            .input(image.with_dtype(DType::QUInt8).unwrap())
            .input(filter.with_dtype(DType::QInt8).unwrap())
            .input(Tensor::scalar(0f32))
            .input(Tensor::scalar(2.55f32))
            .input(Tensor::scalar(-1.27f32))
            .input(Tensor::scalar(1.27f32))
            .run()
            .unwrap();
        let sums = got[0].clone().with_dtype(DType::Int32).unwrap();
        assert_eq!(sums.as_slice::<i32>().unwrap(), [-25600, 1000, -384, 15]);
        // A level is 0.01 in each.
        let most: f32 = got[2].scalar_value().unwrap();
        assert!((most - 214_748.36).abs() < 1.0, "{most}");
    }
}
