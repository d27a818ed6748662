//! Products of 8-bit matrices, fused with a bias, Relu and requantization.

use super::affine::{product_range, scalar, set_range};
use super::fused::{end, one_of};
use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::{Mat, ProductThreads, product};

/// What becomes of the sums.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Output {
    Sums,
    Requantized,
    Dequantized,
}

struct Fused {
    transpose_a: bool,
    transpose_b: bool,
    /// Whether level 0 of `a` stands for the smallest number of its range, not for zero.
    is_min_first: bool,
    bias: DType,
    relu: bool,
    output: Output,
}

/// The bounds of both ranges.
#[derive(Clone, Copy, Debug)]
struct Ranges {
    a: (f32, f32),
    b: (f32, f32),
}

impl Fused {
    /// The bias of each column, in units of the result; `level` is that of the sums. It makes up
    /// for the smallest number, which level 0 of `a` stands for. A quantised bias already does.
    fn bias(&self, bias: &Tensor, columns: &[i32], a: (f32, f32), level: f32) -> Result<Vec<f32>> {
        ensure!(
            bias.rank() == 1 && bias.elements() == columns.len(),
            InvalidArgument,
            "bias must be a vector of {} elements, got shape {}",
            columns.len(),
            bias.shape()
        );
        if self.bias == DType::QInt32 {
            return Ok(bias.as_slice::<i32>()?.iter().map(|&x| x as f32 * level).collect());
        }
        let bias = bias.as_slice::<f32>()?;
        if !self.is_min_first {
            return Ok(bias.to_vec());
        }
        let start = 255.0 * a.0 / (a.1 - a.0);
        let pairs = bias.iter().zip(columns);
        Ok(pairs.map(|(x, &sum)| x + sum as f32 * start * level).collect())
    }
}

impl Kernel for Fused {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let ranges = Ranges {
            a: (scalar(ctx, 3, "min_a")?, scalar(ctx, 4, "max_a")?),
            b: (scalar(ctx, 5, "min_b")?, scalar(ctx, 6, "max_b")?),
        };
        let &[a0, a1] = a.shape().dims() else {
            bail!(InvalidArgument, "In[0] is not a matrix");
        };
        let &[b0, b1] = b.shape().dims() else {
            bail!(InvalidArgument, "In[1] is not a matrix");
        };
        let x: Vec<i32> = a.as_slice::<u8>()?.iter().map(|&x| i32::from(x)).collect();
        let y: Vec<i32> = b.as_slice::<i8>()?.iter().map(|&x| i32::from(x)).collect();
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
        let (rows, cols, depth) = (left.rows, right.cols, left.cols);
        let mut columns = vec![0i32; cols];
        for (i, &x) in y.iter().enumerate() {
            let column = if self.transpose_b { i / b1 } else { i % b1 };
            columns[column] += x;
        }
        let mut sums = vec![0i32; rows * cols];
        if !sums.is_empty() && depth > 0 {
            product(left, right, &mut sums, ProductThreads::All);
        }
        let span = match self.is_min_first {
            true => ranges.a.1 - ranges.a.0,
            false => end(ranges.a.0, ranges.a.1),
        };
        let level = span / 255.0 * (end(ranges.b.0, ranges.b.1) / 127.0);
        let bias = self.bias(ctx.input(2)?, &columns, ranges.a, level)?;
        let range = product_range::<u8, i8>(ranges.a, ranges.b);
        // Levels of the output in one unit.
        let (per_unit, range) = match self.output {
            Output::Sums => (1.0 / level, range),
            Output::Requantized => {
                let min = scalar(ctx, 7, "min_freezed_output")?;
                let to = (min, scalar(ctx, 8, "max_freezed_output")?);
                (1.0 / (end(to.0, to.1) / 255.0), to)
            }
            Output::Dequantized => (1.0, range),
        };
        let finished = |i: usize, sum: i32| {
            let x = sum as f32 * level + bias[i % cols];
            (if self.relu { x.max(0.0) } else { x }) * per_unit
        };
        let shape = [rows, cols];
        let values = sums.iter().enumerate().map(|(i, &sum)| finished(i, sum));
        let out = match self.output {
            Output::Sums => {
                let mut out = ctx.alloc(DType::QInt32, shape)?;
                let pairs = out.as_mut_slice::<i32>()?.iter_mut().zip(values);
                pairs.for_each(|(y, x)| *y = x.round_ties_even() as i32);
                out
            }
            Output::Requantized => {
                let mut out = ctx.alloc(DType::QUInt8, shape)?;
                let pairs = out.as_mut_slice::<u8>()?.iter_mut().zip(values);
                pairs.for_each(|(y, x)| *y = x.round_ties_even() as u8);
                out
            }
            Output::Dequantized => {
                let mut out = ctx.alloc(DType::Float, shape)?;
                let pairs = out.as_mut_slice::<f32>()?.iter_mut().zip(values);
                pairs.for_each(|(y, x)| *y = x);
                return ctx.set(0, out);
            }
        };
        ctx.set(0, out)?;
        set_range(ctx, range)
    }
}

fn register_one(c: &mut Catalog, name: &str, doc: &str, relu: bool, output: Output) {
    // The op that ends with Relu has no attribute for the dtype of its bias.
    let any_bias = !(relu && output == Output::Sums);
    let mut op = c
        .op(name)
        .doc(doc)
        .input("a: T1")
        .input("b: T2")
        .input(if any_bias { "bias: Tbias" } else { "bias: float" })
        .inputs(&["min_a: float", "max_a: float", "min_b: float", "max_b: float"]);
    if output != Output::Sums {
        op = op.inputs(&["min_freezed_output: float", "max_freezed_output: float"]);
    }
    op = op.output("out: Toutput");
    if output != Output::Dequantized {
        op = op.outputs(&["min_out: float", "max_out: float"]);
    }
    op = op.attr("T1: quantizedtype").attr("T2: quantizedtype");
    if any_bias {
        op = op.attr("Tbias: {float, qint32}");
    }
    let (declared, dtype) = match output {
        Output::Sums => ("Toutput: quantizedtype = DT_QINT32", DType::QInt32),
        Output::Requantized => ("Toutput: quantizedtype = DT_QUINT8", DType::QUInt8),
        Output::Dequantized => ("Toutput: {float}", DType::Float),
    };
    op.attr(declared)
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'")
        .expensive()
        .shape(|c| {
            let side = |i: usize, attr: &str, last: bool| -> Result<Option<usize>> {
                let shape = c.input(i).merge(&PartialShape::of_rank(2))?;
                Ok(shape.dim(usize::from(c.attrs.bool(attr)? != last)))
            };
            let (rows, cols) = (side(0, "transpose_a", false)?, side(1, "transpose_b", true)?);
            let mut shapes = vec![PartialShape::scalar(); c.outputs];
            shapes[0] = PartialShape::new([rows, cols]);
            Ok(shapes)
        })
        .cpu(move |init| {
            one_of(init, "T1", &[DType::QUInt8])?;
            one_of(init, "T2", &[DType::QInt8])?;
            one_of(init, "Toutput", &[dtype])?;
            Ok(KernelBox::new(Fused {
                transpose_a: init.bool("transpose_a")?,
                transpose_b: init.bool("transpose_b")?,
                is_min_first: init.string("input_quant_mode")? == "MIN_FIRST",
                bias: match any_bias {
                    true => one_of(init, "Tbias", &[DType::Float, DType::QInt32])?,
                    false => DType::Float,
                },
                relu,
                output,
            }))
        });
}

pub(crate) fn register(c: &mut Catalog) {
    register_one(
        c,
        "QuantizedMatMulWithBias",
        "The product of two matrices of quantised elements, and a bias.",
        false,
        Output::Sums,
    );
    register_one(
        c,
        "QuantizedMatMulWithBiasAndDequantize",
        "The product of two matrices of quantised elements and a bias, as floats.",
        false,
        Output::Dequantized,
    );
    register_one(
        c,
        "QuantizedMatMulWithBiasAndRelu",
        "The product of two matrices of quantised elements, a bias and Relu.",
        true,
        Output::Sums,
    );
    register_one(
        c,
        "QuantizedMatMulWithBiasAndReluAndRequantize",
        "The product of two matrices of quantised elements, a bias and Relu, as 8-bit elements.",
        true,
        Output::Requantized,
    );
    register_one(
        c,
        "QuantizedMatMulWithBiasAndRequantize",
        "The product of two matrices of quantised elements and a bias, as 8-bit elements.",
        false,
        Output::Requantized,
    );
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn call(op: &str, mode: &str, bias: Tensor, ends: &[f32]) -> Check<'static> {
        let a = Tensor::from_slice([2, 3], &[200u8, 3, 17, 90, 5, 255]).unwrap();
        let b = Tensor::from_slice([3, 2], &[-128i8, 5, 77, -9, 1, 100]).unwrap();
        let call = check(op)
            .attr("input_quant_mode", mode)
            .input(a.with_dtype(DType::QUInt8).unwrap())
            .input(b.with_dtype(DType::QInt8).unwrap())
            .input(bias);
        ends.iter().fold(call, |call, &x| call.input(Tensor::scalar(x)))
    }

    fn bias() -> Tensor {
        Tensor::vector(&[0.5f32, -2.0])
    }

    #[test]
    fn fused_products_come_out_as_tensorflow_has_them() {
        let ends = [0.0, 3.0, -2.0, 1.5];
        let got = call("QuantizedMatMulWithBias", "SCALED", bias(), &ends).run().unwrap();
        assert_eq!(got[0].as_slice::<i32>().unwrap(), [-22653, -8122, -8181, 15110]);
        assert!((got[2].scalar_value::<f32>().unwrap() - 348_133.06).abs() < 0.1);
        let got = call("QuantizedMatMulWithBiasAndRelu", "SCALED", bias(), &ends).run().unwrap();
        assert_eq!(got[0].as_slice::<i32>().unwrap(), [0, 0, 0, 15110]);
        let ends = [0.0, 3.0, -2.0, 1.5, -4.0, 5.0];
        for op in ["AndRequantize", "AndReluAndRequantize"] {
            let op = format!("QuantizedMatMulWithBias{op}");
            let got = call(&op, "SCALED", bias(), &ends).run().unwrap();
            assert_eq!(got[0].as_slice::<u8>().unwrap(), [0, 0, 0, 143], "{op}");
            assert_eq!(got[1].scalar_value::<f32>().unwrap(), -4.0);
        }
        let op = call("QuantizedMatMulWithBiasAndDequantize", "SCALED", bias(), &ends);
        let want = [-4.196_989_5f32, -1.504_770_8, -1.515_748, 2.799_444_2];
        let got = op.attr("Toutput", DType::Float).run().unwrap().remove(0);
        let want = Tensor::from_slice([2, 2], &want).unwrap();
        ferroflow_testing::assert_close(&got, &want, 1e-6, 1e-6);
        let bias = Tensor::vector(&[1000i32, -2000]).with_dtype(DType::QInt32).unwrap();
        let got = call("QuantizedMatMulWithBias", "MIN_FIRST", bias, &[-1.0, 3.0, -2.0, 1.5]);
        let got = got.run().unwrap();
        assert_eq!(got[0].as_slice::<i32>().unwrap(), [-24352, 673, -9880, 23905]);
    }

    #[test]
    fn a_float_bias_makes_up_for_the_smallest_number() {
        let ends = [-1.0, 3.0, -2.0, 1.5, -4.0, 5.0];
        let op = call("QuantizedMatMulWithBiasAndDequantize", "MIN_FIRST", bias(), &ends);
        let got = op.attr("Toutput", DType::Float).run().unwrap().remove(0);
        // The product of the numbers that the elements stand for.
        let a = [200f32, 3.0, 17.0, 90.0, 5.0, 255.0].map(|x| x * 4.0 / 255.0 - 1.0);
        let b = [-128f32, 5.0, 77.0, -9.0, 1.0, 100.0].map(|x| x * 2.0 / 127.0);
        let mut want = [0.5f32, -2.0, 0.5, -2.0];
        for (i, want) in want.iter_mut().enumerate() {
            *want += (0..3).map(|k| a[i / 2 * 3 + k] * b[k * 2 + i % 2]).sum::<f32>();
        }
        let want = Tensor::from_slice([2, 2], &want).unwrap();
        ferroflow_testing::assert_close(&got, &want, 1e-5, 1e-5);
    }
}
