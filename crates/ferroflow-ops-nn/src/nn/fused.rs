//! `_FusedConv2D`, `_FusedConv3D`, `_FusedDepthwiseConv2dNative` and `_FusedMatMul`: a product and
//! what follows it. TensorFlow's optimizer puts them into graphs that are then saved.

use super::conv_ops::{ConvElement, PlainConvolution, conv_shape};
use super::depthwise::PlainDepthwise;
use super::window::Layout;
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_math::linalg::gemm::{Mat, Product, ProductThreads, product};
use ferroflow_ops_math::math::fast::Fast;

/// The names in attribute `fused_ops`.
pub(crate) fn fused_ops(attrs: &Attrs) -> Result<Vec<String>> {
    let names = attrs.byte_strings("fused_ops")?;
    Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// A function of each element, the last of what is fused.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Activation {
    Relu,
    Relu6,
    Elu,
    LeakyRelu(f32),
    Tanh,
    Sigmoid,
    GeluApproximate,
    GeluExact,
    HardSwish,
    Mish,
    Swish,
}

impl Activation {
    fn of(name: &str, attrs: &Attrs) -> Result<Option<Activation>> {
        Ok(Some(match name {
            "Relu" => Activation::Relu,
            "Relu6" => Activation::Relu6,
            "Elu" => Activation::Elu,
            "LeakyRelu" => Activation::LeakyRelu(attrs.float("leakyrelu_alpha")?),
            "Tanh" => Activation::Tanh,
            "Sigmoid" => Activation::Sigmoid,
            "GeluApproximate" => Activation::GeluApproximate,
            "GeluExact" => Activation::GeluExact,
            "_FusedHardSwish" => Activation::HardSwish,
            "Mish" => Activation::Mish,
            "_MklSwish" => Activation::Swish,
            _ => return Ok(None),
        }))
    }

    fn apply<T: Number>(self, row: &mut [T]) {
        let number = T::number;
        let (zero, one, half) = (T::ZERO, T::ONE, number(0.5));
        let six = number(6.0);
        let change = |row: &mut [T], f: &dyn Fn(T) -> T| row.iter_mut().for_each(|x| *x = f(*x));
        match self {
            Activation::Relu => change(row, &|x| x.max(zero)),
            Activation::Relu6 => change(row, &|x| x.max(zero).min(six)),
            Activation::Elu => {
                change(row, &|x| if x.lt(zero) { x.fast_exp_m1() } else { x });
            }
            Activation::LeakyRelu(alpha) => {
                let alpha = number(alpha.into());
                change(row, &|x| if zero.lt(x) { x } else { x.mul(alpha) });
            }
            Activation::Tanh => change(row, &|x| x.fast_tanh()),
            Activation::Sigmoid => change(row, &|x| x.fast_sigmoid()),
            Activation::GeluApproximate => {
                let slope = number((2.0 / std::f64::consts::PI).sqrt());
                let cubic = number(0.044715);
                change(row, &|x| {
                    let inner = slope.mul(x.add(cubic.mul(x).mul(x).mul(x)));
                    half.mul(x).mul(one.add(inner.fast_tanh()))
                });
            }
            Activation::GeluExact => {
                let inverse = number(std::f64::consts::FRAC_1_SQRT_2);
                change(row, &|x| half.mul(x).mul(one.add(x.mul(inverse).fast_erf())));
            }
            Activation::HardSwish => {
                let three = number(3.0);
                change(row, &|x| x.mul(x.add(three).max(zero).min(six)).div(six));
            }
            Activation::Mish => change(row, &|x| {
                // The logarithm of 1 + exp(x), without overflow.
                let soft = x.max(zero).add(x.abs().neg().fast_exp().fast_ln_1p());
                x.mul(soft.fast_tanh())
            }),
            Activation::Swish => change(row, &|x| x.mul(x.fast_sigmoid())),
        }
    }
}

/// The numbers that products are computed in.
trait Number: Product + Float + Fast {
    fn root(self) -> Self;
    fn number(x: f64) -> Self;
    fn lt(self, other: Self) -> bool;
}

impl Number for f32 {
    fn root(self) -> f32 {
        self.sqrt()
    }
    fn number(x: f64) -> f32 {
        x as f32
    }
    fn lt(self, other: f32) -> bool {
        self < other
    }
}

impl Number for f64 {
    fn root(self) -> f64 {
        self.sqrt()
    }
    fn number(x: f64) -> f64 {
        x
    }
    fn lt(self, other: f64) -> bool {
        self < other
    }
}

/// What follows a product.
#[derive(Clone, Copy, Debug)]
struct Fusion {
    bias: bool,
    /// Normalization by given statistics, with this added to variances.
    norm: Option<f32>,
    add: bool,
    activation: Option<Activation>,
}

impl Fusion {
    /// Reads `fused_ops`, and checks that there are as many arguments as they take.
    fn of(init: &KernelInit<'_>, what: &str) -> Result<Fusion> {
        let names = fused_ops(init.attrs)?;
        ensure!(
            !names.is_empty(),
            InvalidArgument,
            "Fused {what} must have at least one fused op."
        );
        let mut fusion = Fusion { bias: false, norm: None, add: false, activation: None };
        let mut rest = names.as_slice();
        match rest.first().map(String::as_str) {
            Some("BiasAdd") => fusion.bias = true,
            Some("FusedBatchNorm") => fusion.norm = Some(init.float("epsilon")?),
            _ => {}
        }
        if fusion.bias || fusion.norm.is_some() {
            rest = &rest[1..];
        }
        if fusion.bias && rest.first().is_some_and(|name| name == "Add") {
            fusion.add = true;
            rest = &rest[1..];
        }
        if let ([name], true) = (rest, rest.len() < names.len()) {
            fusion.activation = Activation::of(name, init.attrs)?;
            rest = if fusion.activation.is_some() { &[] } else { rest };
        }
        ensure!(rest.is_empty(), Unimplemented, "Fusion is not implemented: [{}]", names.join(","));
        let args = match fusion.norm {
            Some(_) => 4,
            None => usize::from(fusion.bias) + usize::from(fusion.add),
        };
        ensure!(
            init.int("num_args")? == args as i64,
            InvalidArgument,
            "Fused {what} with [{}] must have {args} extra arguments, got {}",
            names.join(","),
            init.int("num_args")?
        );
        Ok(fusion)
    }

    /// Changes `out`, whose channels are last, by the arguments of the node, which begin with
    /// input 2. `layout` is that of an argument which is added.
    fn finish<T: ConvElement<Wide: Number>>(
        &self,
        ctx: &Ctx<'_>,
        out: &mut Tensor,
        layout: Layout,
    ) -> Result<()> {
        let shape = out.shape().clone();
        let channels = shape[shape.rank() - 1];
        let vector = |i: usize, name: &str| -> Result<Tensor> {
            let t = ctx.input(i)?;
            ensure!(
                t.rank() == 1 && t.elements() == channels,
                InvalidArgument,
                "{name} must be a vector of {channels} elements, got shape {}",
                t.shape()
            );
            T::widened(t)
        };
        // y = a x + b for each channel.
        let (a, b): (Option<Vec<T::Wide>>, Option<Vec<T::Wide>>) = match self.norm {
            Some(epsilon) => {
                let parts = [(2, "scale"), (3, "offset"), (4, "mean"), (5, "variance")];
                let mut tensors = Vec::with_capacity(4);
                for (i, name) in parts {
                    tensors.push(vector(i, name)?);
                }
                let part = |i: usize| tensors[i].as_slice::<T::Wide>();
                let (scale, offset, mean, variance) = (part(0)?, part(1)?, part(2)?, part(3)?);
                let epsilon = T::Wide::number(epsilon.into());
                let a: Vec<T::Wide> =
                    (0..channels).map(|i| scale[i].div(variance[i].add(epsilon).root())).collect();
                let b = (0..channels).map(|i| offset[i].sub(mean[i].mul(a[i]))).collect();
                (Some(a), Some(b))
            }
            None if self.bias => (None, Some(vector(2, "bias")?.as_slice()?.to_vec())),
            None => (None, None),
        };
        let summand = match self.add {
            true => {
                let t = ctx.input(3)?;
                let stored = layout.stored(&shape);
                let is_like = if layout == Layout::ChannelsLast { &shape } else { &stored };
                ensure!(
                    t.shape() == is_like,
                    InvalidArgument,
                    "the summand must have the shape of the output, {is_like}, got {}",
                    t.shape()
                );
                Some(T::widened(&super::conv_ops::reordered(t, layout, true)?)?)
            }
            false => None,
        };
        let summand = match &summand {
            Some(t) => Some(t.as_slice::<T::Wide>()?),
            None => None,
        };
        let cost = 2 * channels + if self.activation.is_some() { 4 * channels } else { 0 };
        for_rows(out.as_mut_slice::<T::Wide>()?, channels, cost, |range, rows| {
            for (i, row) in range.zip(rows.chunks_exact_mut(channels)) {
                if let Some(a) = &a {
                    row.iter_mut().zip(a).for_each(|(x, a)| *x = x.mul(*a));
                }
                if let Some(b) = &b {
                    row.iter_mut().zip(b).for_each(|(x, b)| *x = x.add(*b));
                }
                if let Some(summand) = summand {
                    let pairs = row.iter_mut().zip(&summand[i * channels..]);
                    pairs.for_each(|(x, y)| *x = x.add(*y));
                }
                if let Some(activation) = self.activation {
                    activation.apply(row);
                }
            }
        });
        Ok(())
    }
}

/// A product whose result has its channels last.
trait Producer: Send + Sync {
    type Element: ConvElement<Wide: Number>;
    fn layout(&self) -> Layout;
    fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor>;
}

impl<T: ConvElement<Wide: Number>> Producer for PlainConvolution<T> {
    type Element = T;
    fn layout(&self) -> Layout {
        PlainConvolution::layout(self)
    }
    fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        PlainConvolution::run(self, ctx)
    }
}

impl<T: ConvElement<Wide: Number>> Producer for PlainDepthwise<T> {
    type Element = T;
    fn layout(&self) -> Layout {
        PlainDepthwise::layout(self)
    }
    fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        PlainDepthwise::run(self, ctx)
    }
}

struct Matrices<T> {
    transpose_a: bool,
    transpose_b: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: ConvElement<Wide: Number>> Producer for Matrices<T> {
    type Element = T;
    fn layout(&self) -> Layout {
        Layout::ChannelsLast
    }
    fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        let (a, b) = (T::widened(ctx.input(0)?)?, T::widened(ctx.input(1)?)?);
        let (&[a0, a1], &[b0, b1]) = (a.shape().dims(), b.shape().dims()) else {
            bail!(InvalidArgument, "In[0] and In[1] must be matrices");
        };
        let (mut x, mut y) = (Mat::new(a.as_slice()?, a0, a1), Mat::new(b.as_slice()?, b0, b1));
        if self.transpose_a {
            x = x.transposed();
        }
        if self.transpose_b {
            y = y.transposed();
        }
        ensure!(
            x.cols == y.rows,
            InvalidArgument,
            "Matrix size-incompatible: In[0]: {}, In[1]: {}",
            a.shape(),
            b.shape()
        );
        let mut out = Tensor::alloc(<T::Wide as Element>::DTYPE, [x.rows, y.cols])?;
        product::<T::Wide>(x, y, out.as_mut_slice()?, ProductThreads::All);
        Ok(out)
    }
}

struct Fused<P> {
    producer: P,
    fusion: Fusion,
}

impl<P: Producer> Kernel for Fused<P> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut out = self.producer.run(ctx)?;
        let layout = self.producer.layout();
        if out.elements() > 0 {
            self.fusion.finish::<P::Element>(ctx, &mut out, layout)?;
        }
        let out = super::conv_ops::reordered(&out, layout, false)?;
        ctx.set(0, P::Element::narrowed(out)?)
    }
}

fn fused<P: Producer>(init: &KernelInit<'_>, what: &str, producer: P) -> Result<Fused<P>> {
    Ok(Fused { producer, fusion: Fusion::of(init, what)? })
}

const EPSILON: &str = "epsilon: float = 9.999999747378752e-05";
const ALPHA: &str = "leakyrelu_alpha: float = 0.20000000298023224";

pub(crate) fn register(c: &mut Catalog) {
    c.op("_FusedConv2D")
        .doc("Convolution of images with filters, and the ops that are listed.")
        .input("input: T")
        .input("filter: T")
        .input("args: TArgs")
        .input("host_args: num_host_args * float")
        .output("output: T")
        .attr("T: {half, float, double, int8, qint8}")
        .attr("TArgs: list(type) >= 1")
        .attr("num_args: int >= 0")
        .attr("num_host_args: int >= 0 = 0")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
        .attr("explicit_paddings: list(int) = []")
        .attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
        .attr("filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .attr("use_cudnn_on_gpu: bool = true")
        .attr("fused_ops: list(string) = []")
        .attr(EPSILON)
        .attr(ALPHA)
        .expensive()
        .shape(|c| conv_shape(c, 2, false))
        .cpu(per_dtype!([Half f16, Float f32, Double f64], init, T => {
            let filters = init.string("filter_format")?;
            ensure!(
                filters == "HWIO",
                Unimplemented,
                "_FusedConv2D with filter_format = {filters}: only HWIO is supported"
            );
            fused(init, "Conv2D", PlainConvolution::<T>::new(init, 2)?)?
        }));
    c.op("_FusedConv3D")
        .doc("Convolution of volumes with filters, and the ops that are listed.")
        .input("input: T")
        .input("filter: T")
        .input("args: num_args * T")
        .output("output: T")
        .attr("T: {bfloat16, float}")
        .attr("num_args: int >= 0")
        .attr("strides: list(int) >= 5")
        .attr("padding: {'SAME', 'VALID'}")
        .attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
        .attr("dilations: list(int) = [1, 1, 1, 1, 1]")
        .attr("padding_list: list(int) = []")
        .attr("fused_ops: list(string) = []")
        .attr(EPSILON)
        .attr(ALPHA)
        .expensive()
        .shape(|c| conv_shape(c, 3, false))
        .cpu(per_dtype!([BFloat16 bf16, Float f32], init, T => {
            fused(init, "Conv3D", PlainConvolution::<T>::new(init, 3)?)?
        }));
    c.op("_FusedDepthwiseConv2dNative")
        .doc("Convolution of every channel with filters of its own, and the ops that are listed.")
        .input("input: T")
        .input("filter: T")
        .input("args: num_args * T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double}")
        .attr("num_args: int >= 0")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID'}")
        .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .attr("fused_ops: list(string) = []")
        .attr(EPSILON)
        .attr(ALPHA)
        .expensive()
        .shape(|c| conv_shape(c, 2, true))
        .cpu(per_dtype!(FLOAT, init, T => {
            fused(init, "DepthwiseConv2D", PlainDepthwise::<T>::new(init)?)?
        }));
    c.op("_FusedMatMul")
        .doc("The product of two matrices, and the ops that are listed.")
        .input("a: T")
        .input("b: T")
        .input("args: num_args * T")
        .output("product: T")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr("T: {bfloat16, half, float}")
        .attr("num_args: int >= 0")
        .attr("fused_ops: list(string) = []")
        .attr(EPSILON)
        .attr(ALPHA)
        .expensive()
        .shape(|c| {
            let side = |i: usize, attr: &str, last: bool| -> Result<Option<usize>> {
                let shape = c.input(i).merge(&PartialShape::of_rank(2))?;
                Ok(shape.dim(usize::from(c.attrs.bool(attr)? != last)))
            };
            let (rows, cols) = (side(0, "transpose_a", false)?, side(1, "transpose_b", true)?);
            Ok(vec![PartialShape::new([rows, cols])])
        })
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32], init, T => {
            let (transpose_a, transpose_b) =
                (init.bool("transpose_a")?, init.bool("transpose_b")?);
            let marker = std::marker::PhantomData::<T>;
            fused(init, "MatMul", Matrices { transpose_a, transpose_b, marker })?
        }));
}

#[cfg(test)]
// Expected values are what TensorFlow prints.
#[allow(clippy::excessive_precision)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use ferroflow_graph::AttrList;
    use ferroflow_testing::assert_close;

    fn quarters(dims: &[usize], from: i32) -> Tensor {
        let n = dims.iter().product::<usize>() as i32;
        let values: Vec<f32> = (0..n).map(|i| (i + from) as f32 / 4.0).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    fn bias() -> Tensor {
        Tensor::vector(&[0.5f32, -2.0])
    }

    fn with(op: Check<'static>, fused: &[&str], args: &[Tensor]) -> Check<'static> {
        let names = fused.iter().map(|name| bytes::Bytes::from(name.to_string())).collect();
        let op = op.attr("fused_ops", AttrList::Strs(names)).attr("num_args", args.len() as i64);
        args.iter().cloned().fold(op, Check::input)
    }

    fn gives(op: Check<'static>, want: &[f32]) {
        let got = op.run().unwrap().remove(0);
        let want = Tensor::from_slice(got.shape().clone(), want).unwrap();
        assert_close(&got, &want, 1e-5, 1e-5);
    }

    #[test]
    fn fused_products_come_out_as_tensorflow_has_them() {
        let run = |fused: &[&str], args: &[Tensor], want: [f32; 6]| {
            let op = check("_FusedMatMul").input(quarters(&[3, 6], -9));
            gives(with(op.input(quarters(&[6, 2], -7)), fused, args), &want);
        };
        let one = |last: &str, want: [f32; 6]| run(&["BiasAdd", last], &[bias()], want);
        run(&["BiasAdd"], &[bias()], [7.5625, 2.625, 3.0625, 0.375, -1.4375, -1.875]);
        one("Relu", [7.5625, 2.625, 3.0625, 0.375, 0.0, 0.0]);
        one("LeakyRelu", [7.5625, 2.625, 3.0625, 0.375, -0.2875, -0.375]);
        one(
            "GeluApproximate",
            [7.5625, 2.614096, 3.0595274, 0.24230777, -0.10845561, -0.057000965],
        );
        one("GeluExact", [7.5625, 2.6136274, 3.059139, 0.24231367, -0.1082265, -0.05699314]);
        one("Sigmoid", [0.9994807, 0.93245333, 0.9553191, 0.59266657, 0.19193278, 0.13296422]);
        one("Tanh", [0.99999946, 0.98955977, 0.99563456, 0.3583574, -0.89319336, -0.95404524]);
        let ones = Tensor::from_slice([3, 2], &[1f32; 6]).unwrap();
        let want = [8.5625, 3.625, 4.0625, 1.375, -0.4375, -0.875];
        run(&["BiasAdd", "Add"], &[bias(), ones], want);
    }

    #[test]
    fn fused_convolutions_come_out_as_tensorflow_has_them() {
        let conv = |fused: &[&str], args: &[Tensor]| {
            let op = check("_FusedConv2D")
                .attr("strides", vec![1i64; 4])
                .attr("padding", "VALID")
                .attr("TArgs", vec![DType::Float; args.len()])
                .input(quarters(&[1, 3, 3, 2], -9))
                .input(quarters(&[2, 2, 2, 2], -7));
            with(op, fused, args)
        };
        let relu = [7.75, 3.0, 7.75, 4.0, 7.75, 6.0, 7.75, 7.0];
        gives(conv(&["BiasAdd", "Relu"], &[bias()]), &relu);
        let swish = [
            7.7466631, 2.8577223, 7.7466631, 3.9280553, 7.7466631, 5.9851642, 7.7466631, 6.9936228,
        ];
        gives(conv(&["BiasAdd", "_MklSwish"], &[bias()]), &swish);
        let mish = [
            7.7499971, 2.9865351, 7.7499971, 3.9974129, 7.7499971, 5.9999266, 7.7499971, 6.9999886,
        ];
        gives(conv(&["BiasAdd", "Mish"], &[bias()]), &mish);
        let ones = Tensor::from_slice([1, 2, 2, 2], &[1f32; 8]).unwrap();
        let sum = relu.map(|x| x + 1.0);
        gives(conv(&["BiasAdd", "Add", "Relu"], &[bias(), ones]), &sum);
        let norm = [
            Tensor::vector(&[2f32, 3.0]),
            bias(),
            Tensor::vector(&[1f32, -1.0]),
            Tensor::vector(&[4f32, 0.25]),
        ];
        gives(conv(&["FusedBatchNorm", "Relu6"], &norm), &[6.0; 8]);
        let text = "Fusion is not implemented: [Relu]";
        conv(&["Relu"], &[bias()]).fails(Code::Unimplemented, text);
        let text = "must have 4 extra arguments, got 1";
        conv(&["FusedBatchNorm"], &[bias()]).fails(Code::InvalidArgument, text);
        let text = "must have at least one fused op";
        conv(&[], &[bias()]).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn volumes_and_separate_channels_are_fused_too() {
        let op = check("_FusedDepthwiseConv2dNative")
            .attr("strides", vec![1i64; 4])
            .attr("padding", "VALID")
            .input(quarters(&[1, 3, 3, 2], -9))
            .input(quarters(&[2, 2, 2, 2], -7));
        let shifts = Tensor::vector(&[0f32, 1.0, 2.0, 3.0]);
        let want =
            [4.75, 4.5, 4.5, 4.5, 4.25, 4.5, 5.0, 5.5, 3.25, 4.5, 6.0, 6.0, 2.75, 4.5, 6.0, 6.0];
        gives(with(op, &["BiasAdd", "Relu6"], &[shifts]), &want);
        let volume: Vec<f32> = (0..16).map(|i| i as f32 - 8.0).collect();
        let op = check("_FusedConv3D")
            .attr("strides", vec![1i64; 5])
            .attr("padding", "VALID")
            .input(Tensor::from_slice([1, 2, 2, 2, 2], &volume).unwrap())
            .input(quarters(&[1, 2, 2, 2, 2], -7));
        gives(with(op, &["BiasAdd", "LeakyRelu"], &[bias()]), &[21.5, 10.0, 21.5, 26.0]);
    }
}
