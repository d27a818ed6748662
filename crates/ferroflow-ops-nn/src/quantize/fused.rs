//! Convolutions of 8-bit images by 8-bit filters, fused with a bias, a sum, Relu and
//! requantization. Zero is level 0 in images and filters: their ranges are symmetric.

use super::affine::{one_level, scalar, set_range};
use crate::nn::fused_ops;
use crate::nn::quantized_conv::{self, AnyConvolution};
use crate::prelude::*;

/// What follows a convolution or a product, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fusion {
    pub bias: bool,
    pub sum: bool,
    pub relu: bool,
    pub requantize: bool,
}

impl Fusion {
    const NONE: Fusion = Fusion { bias: false, sum: false, relu: false, requantize: false };

    /// From attribute `fused_ops`.
    fn of(names: &[String]) -> Result<Fusion> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = Fusion { bias: true, sum: true, relu: true, requantize: true };
        Ok(match names[..] {
            [] => Fusion::NONE,
            ["BiasAdd"] => Fusion { bias: true, ..Fusion::NONE },
            ["Relu"] => Fusion { relu: true, ..Fusion::NONE },
            ["Requantize"] => Fusion { requantize: true, ..Fusion::NONE },
            ["BiasAdd", "Relu"] => Fusion { bias: true, relu: true, ..Fusion::NONE },
            ["BiasAdd", "Requantize"] => Fusion { bias: true, requantize: true, ..Fusion::NONE },
            ["Relu", "Requantize"] => Fusion { relu: true, requantize: true, ..Fusion::NONE },
            ["BiasAdd", "Relu", "Requantize"] => Fusion { sum: false, ..all },
            ["BiasAdd", "Sum", "Relu"] => Fusion { requantize: false, ..all },
            ["BiasAdd", "Sum", "Relu", "Requantize"] => all,
            _ => bail!(InvalidArgument, "Unsupported QuantizedConv fusion: [{}]", names.join(",")),
        })
    }
}

/// The inputs that a node has beside image and filter, by their index.
#[derive(Debug)]
struct Places {
    bias: usize,
    summand: usize,
    /// Where the range of the image begins; that of the filter follows.
    ranges: usize,
    summand_range: usize,
    output_range: usize,
}

impl Places {
    /// For the ops whose name says what is fused.
    fn by_name(fusion: Fusion) -> Places {
        let ranges = 2 + usize::from(fusion.bias);
        let output_range = ranges + 4;
        let summand = output_range + if fusion.requantize { 2 } else { 0 };
        Places { bias: 2, summand, ranges, summand_range: summand + 1, output_range }
    }

    /// For the ops with attribute `fused_ops`, which have `inputs` inputs.
    fn by_attr(fusion: Fusion, inputs: usize) -> Result<Places> {
        let summand = 2 + usize::from(fusion.bias);
        let ranges = summand + usize::from(fusion.sum);
        let quantized_sum = fusion.sum && fusion.requantize;
        let output_range = ranges + 4 + if quantized_sum { 2 } else { 0 };
        let want = output_range + if fusion.requantize { 2 } else { 0 };
        ensure!(inputs == want, InvalidArgument, "expected {want} inputs, got {inputs}");
        Ok(Places { bias: 2, summand, ranges, summand_range: ranges + 4, output_range })
    }
}

/// The end of a range that is symmetric around zero.
pub(super) fn end(min: f32, max: f32) -> f32 {
    min.abs().max(max.abs())
}

struct Convolution {
    conv: AnyConvolution,
    fusion: Fusion,
    places: Places,
    dtypes: Dtypes,
}

#[derive(Clone, Copy, Debug)]
struct Dtypes {
    input: DType,
    bias: DType,
    summand: DType,
    output: DType,
}

/// An 8-bit tensor as integers.
fn levels(t: &Tensor) -> Result<Vec<i32>> {
    Ok(match t.dtype() {
        DType::QUInt8 => t.as_slice::<u8>()?.iter().map(|&x| i32::from(x)).collect(),
        DType::QInt8 => t.as_slice::<i8>()?.iter().map(|&x| i32::from(x)).collect(),
        other => bail!(InvalidArgument, "expected a tensor of quint8 or qint8, got {other}"),
    })
}

/// The largest level of a symmetric range.
fn most(dtype: DType) -> f32 {
    if dtype == DType::QUInt8 { 255.0 } else { 127.0 }
}

impl Convolution {
    /// The ranges of the filter's output channels, or one for all.
    fn filter_ranges(&self, ctx: &Ctx<'_>, channels: usize) -> Result<Vec<(f32, f32)>> {
        let (min, max) = (ctx.input(self.places.ranges + 2)?, ctx.input(self.places.ranges + 3)?);
        ensure!(
            min.elements() > 0 && min.shape() == max.shape(),
            InvalidArgument,
            "`min_ and max_filter` must have same shape and contain at least one element."
        );
        ensure!(
            min.elements() == 1 || min.elements() == channels,
            InvalidArgument,
            "min_filter must have an element or one for each of {channels} channels, got {}",
            min.elements()
        );
        let pairs = min.as_slice::<f32>()?.iter().zip(max.as_slice::<f32>()?);
        Ok(pairs.map(|(min, max)| (*min, *max)).collect())
    }

    /// The bias of each channel, in units of the result; `levels` are those of the sums.
    fn bias(&self, ctx: &Ctx<'_>, channels: usize, levels: &[f32]) -> Result<Vec<f32>> {
        let bias = ctx.input(self.places.bias)?;
        ensure!(
            bias.rank() == 1 && bias.elements() == channels,
            InvalidArgument,
            "bias must be a vector of {channels} elements, got shape {}",
            bias.shape()
        );
        if self.dtypes.bias != DType::QInt32 {
            return Ok(bias.as_slice::<f32>()?.to_vec());
        }
        let pairs = bias.as_slice::<i32>()?.iter().zip(levels.iter().cycle());
        Ok(pairs.map(|(&x, level)| x as f32 * level).collect())
    }

    /// The summand in units of the result.
    fn summand(&self, ctx: &Ctx<'_>, out: &Shape) -> Result<Vec<f32>> {
        let t = ctx.input(self.places.summand)?;
        ensure!(
            t.shape() == out,
            InvalidArgument,
            "summand must have the shape of the output, {out}, got {}",
            t.shape()
        );
        if !self.fusion.requantize {
            return Ok(t.as_slice::<f32>()?.to_vec());
        }
        let at = self.places.summand_range;
        let range = end(scalar(ctx, at, "min_summand")?, scalar(ctx, at + 1, "max_summand")?);
        let level = range / most(self.dtypes.summand);
        Ok(levels(t)?.into_iter().map(|x| x as f32 * level).collect())
    }

    fn output_range(&self, ctx: &Ctx<'_>) -> Result<(f32, f32)> {
        let at = self.places.output_range;
        let min = scalar(ctx, at, "min_freezed_output")?;
        Ok((min, scalar(ctx, at + 1, "max_freezed_output")?))
    }
}

impl Kernel for Convolution {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (image, filter) = (ctx.input(0)?, ctx.input(1)?);
        let at = self.places.ranges;
        let of_image = (scalar(ctx, at, "min_input")?, scalar(ctx, at + 1, "max_input")?);
        let sums =
            self.conv.run(image.shape(), filter.shape(), &levels(image)?, &levels(filter)?)?;
        let channels = sums.shape()[3];
        let of_filter = self.filter_ranges(ctx, channels)?;
        // What one level of the sums stands for, for each channel.
        let image_level = end(of_image.0, of_image.1) / most(self.dtypes.input);
        let sum_levels: Vec<f32> =
            of_filter.iter().map(|f| image_level * (end(f.0, f.1) / 127.0)).collect();
        let bias = match self.fusion.bias {
            true => self.bias(ctx, channels, &sum_levels)?,
            false => vec![0.0; channels],
        };
        let summand = match self.fusion.sum {
            true => self.summand(ctx, sums.shape())?,
            false => Vec::new(),
        };
        // Levels of the output in one unit.
        let per_unit: Vec<f32> = match self.fusion.requantize {
            true => {
                let to = self.output_range(ctx)?;
                vec![1.0 / (end(to.0, to.1) / most(self.dtypes.output))]
            }
            false => sum_levels.iter().map(|level| 1.0 / level).collect(),
        };
        let relu = self.fusion.relu;
        let finished = |i: usize, sum: i32| {
            let channel = i % channels;
            let mut x = sum as f32 * sum_levels[channel % sum_levels.len()] + bias[channel];
            if let Some(summand) = summand.get(i) {
                x += summand;
            }
            if relu {
                x = x.max(0.0);
            }
            (x * per_unit[channel % per_unit.len()]).round_ties_even()
        };
        let shape = sums.shape().clone();
        let values = sums.as_slice::<i32>()?.iter().enumerate();
        let mut out = ctx.alloc(self.dtypes.output, shape)?;
        match self.dtypes.output {
            DType::QUInt8 => {
                // The result takes the place of the summand, and has its largest level.
                let has_signed = self.fusion.sum && self.dtypes.summand == DType::QInt8;
                let most = if has_signed { 127.0 } else { 255.0 };
                let pairs = out.as_mut_slice::<u8>()?.iter_mut().zip(values);
                pairs.for_each(|(y, (i, &x))| *y = finished(i, x).min(most) as u8);
            }
            DType::QInt8 => {
                let pairs = out.as_mut_slice::<i8>()?.iter_mut().zip(values);
                pairs.for_each(|(y, (i, &x))| *y = finished(i, x) as i8);
            }
            _ => {
                let is_plain = self.fusion == Fusion::NONE;
                let pairs = out.as_mut_slice::<i32>()?.iter_mut().zip(values);
                pairs
                    .for_each(|(y, (i, &x))| *y = if is_plain { x } else { finished(i, x) as i32 });
            }
        }
        ctx.set(0, out)?;
        if self.fusion.requantize {
            let range = self.output_range(ctx)?;
            return set_range(ctx, range);
        }
        let level = match self.dtypes.input {
            DType::QUInt8 => one_level::<u8>(of_image.0, of_image.1),
            _ => one_level::<i8>(of_image.0, of_image.1),
        };
        let levels = of_filter.iter().map(|f| level * one_level::<i8>(f.0, f.1));
        let shape = ctx.input(at + 2)?.shape().clone();
        let ends = |end: i32| {
            let ends: Vec<f32> = levels.clone().map(|level| level * end as f32).collect();
            Tensor::from_slice(shape.clone(), &ends)
        };
        let (low, high) = (ends(i32::MIN)?, ends(i32::MAX)?);
        ctx.set(1, low)?;
        ctx.set(2, high)
    }
}

/// Shapes of the outputs; the range of the filter is in inputs `at` and `at + 1`.
fn shapes(c: &ShapeCtx<'_>, is_depthwise: bool, at: Option<usize>) -> Result<Vec<PartialShape>> {
    let range = match at {
        Some(at) => c.input(at).merge(&c.input(at + 1))?,
        None => PartialShape::scalar(),
    };
    Ok(vec![quantized_conv::output_shape(c, is_depthwise)?, range.clone(), range])
}

/// An op whose name says what is fused.
struct Named {
    op: &'static str,
    doc: &'static str,
    fused: &'static [&'static str],
    is_depthwise: bool,
    has_padding_list: bool,
    /// Whether images may have signed elements.
    takes_signed: bool,
    /// The dtype of a summand that is quantised.
    summand: DType,
}

const BASE: Named = Named {
    op: "",
    doc: "",
    fused: &[],
    is_depthwise: false,
    has_padding_list: true,
    takes_signed: false,
    summand: DType::QUInt8,
};

const NAMED: [Named; 15] = [
    Named {
        op: "QuantizedConv2DAndRelu",
        doc: "The convolution of images of quantised elements, and Relu.",
        fused: &["Relu"],
        ..BASE
    },
    Named {
        op: "QuantizedConv2DAndReluAndRequantize",
        doc: "The convolution of images of quantised elements and Relu, as 8-bit elements.",
        fused: &["Relu", "Requantize"],
        ..BASE
    },
    Named {
        op: "QuantizedConv2DAndRequantize",
        doc: "The convolution of images of quantised elements, as 8-bit elements.",
        fused: &["Requantize"],
        ..BASE
    },
    Named {
        op: "QuantizedConv2DPerChannel",
        doc: "The convolution of images of quantised elements; each filter has its own range.",
        has_padding_list: false,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBias",
        doc: "The convolution of images of quantised elements, and a bias.",
        fused: &["BiasAdd"],
        takes_signed: true,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasAndRelu",
        doc: "The convolution of images of quantised elements, a bias and Relu.",
        fused: &["BiasAdd", "Relu"],
        takes_signed: true,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasAndReluAndRequantize",
        doc: "The convolution of images of quantised elements, a bias and Relu, as 8-bit elements.",
        fused: &["BiasAdd", "Relu", "Requantize"],
        takes_signed: true,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasAndRequantize",
        doc: "The convolution of images of quantised elements and a bias, as 8-bit elements.",
        fused: &["BiasAdd", "Requantize"],
        takes_signed: true,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
        doc: "The convolution of images of quantised elements, a bias, a sum with signed elements \
              and Relu, as 8-bit elements.",
        fused: &["BiasAdd", "Sum", "Relu", "Requantize"],
        summand: DType::QInt8,
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasSumAndRelu",
        doc: "The convolution of images of quantised elements, a bias, a sum and Relu.",
        fused: &["BiasAdd", "Sum", "Relu"],
        ..BASE
    },
    Named {
        op: "QuantizedConv2DWithBiasSumAndReluAndRequantize",
        doc: "The convolution of images of quantised elements, a bias, a sum and Relu, as 8-bit \
              elements.",
        fused: &["BiasAdd", "Sum", "Relu", "Requantize"],
        ..BASE
    },
    Named {
        op: "QuantizedDepthwiseConv2D",
        doc: "Convolution of every channel of quantised images with filters of its own.",
        is_depthwise: true,
        has_padding_list: false,
        ..BASE
    },
    Named {
        op: "QuantizedDepthwiseConv2DWithBias",
        doc: "Convolution of every channel of quantised images with filters of its own, and a \
              bias.",
        fused: &["BiasAdd"],
        is_depthwise: true,
        has_padding_list: false,
        ..BASE
    },
    Named {
        op: "QuantizedDepthwiseConv2DWithBiasAndRelu",
        doc: "Convolution of every channel of quantised images with filters of its own, a bias \
              and Relu.",
        fused: &["BiasAdd", "Relu"],
        is_depthwise: true,
        ..BASE
    },
    Named {
        op: "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
        doc: "Convolution of every channel of quantised images with filters of its own, a bias \
              and Relu, as 8-bit elements.",
        fused: &["BiasAdd", "Relu", "Requantize"],
        is_depthwise: true,
        ..BASE
    },
];

/// The value of a type attribute, which must be one of some dtypes.
pub(super) fn one_of(init: &KernelInit<'_>, attr: &str, among: &[DType]) -> Result<DType> {
    let dtype = init.dtype(attr)?;
    if among.contains(&dtype) { Ok(dtype) } else { Err(unsupported(init, attr, dtype)) }
}

fn register_named(c: &mut Catalog, named: &'static Named) {
    let has = |what: &str| named.fused.contains(&what);
    let fusion = Fusion {
        bias: has("BiasAdd"),
        sum: has("Sum"),
        relu: has("Relu"),
        requantize: has("Requantize"),
    };
    let Fusion { bias, sum, relu, requantize } = fusion;
    let mut op = c.op(named.op).doc(named.doc).input("input: Tinput").input("filter: Tfilter");
    if bias {
        op = op.input(if requantize { "bias: Tbias" } else { "bias: float" });
    }
    op = op.inputs(&[
        "min_input: float",
        "max_input: float",
        "min_filter: float",
        "max_filter: float",
    ]);
    if requantize {
        op = op.inputs(&["min_freezed_output: float", "max_freezed_output: float"]);
    }
    if sum && requantize {
        op = op.inputs(&["summand: Tsummand", "min_summand: float", "max_summand: float"]);
    } else if sum {
        op = op.input("summand: float");
    }
    op = op
        .output("output: out_type")
        .output("min_output: float")
        .output("max_output: float")
        .attr("Tinput: quantizedtype")
        .attr("Tfilter: quantizedtype");
    if bias && requantize {
        op = op.attr("Tbias: {float, qint32}");
    }
    if sum && requantize {
        op = op.attr("Tsummand: quantizedtype");
    }
    let output = match (requantize, relu) {
        (false, _) => DType::QInt32,
        (true, true) => DType::QUInt8,
        (true, false) => DType::QInt8,
    };
    op = op
        .attr(match output {
            DType::QInt32 => "out_type: quantizedtype = DT_QINT32",
            DType::QUInt8 => "out_type: quantizedtype = DT_QUINT8",
            _ => "out_type: quantizedtype = DT_QINT8",
        })
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID'}")
        .attr("dilations: list(int) = [1, 1, 1, 1]");
    if named.has_padding_list {
        op = op.attr("padding_list: list(int) = []");
    }
    let is_depthwise = named.is_depthwise;
    let of_filter = Places::by_name(fusion).ranges + 2;
    let range = (!requantize).then_some(of_filter);
    op.expensive().shape(move |c| shapes(c, is_depthwise, range)).cpu(move |init| {
        let images: &[DType] = match named.takes_signed {
            true => &[DType::QUInt8, DType::QInt8],
            false => &[DType::QUInt8],
        };
        one_of(init, "Tfilter", &[DType::QInt8])?;
        let bias = match bias && requantize {
            true => one_of(init, "Tbias", &[DType::Float, DType::QInt32])?,
            false => DType::Float,
        };
        let summand = match sum && requantize {
            true => one_of(init, "Tsummand", &[named.summand])?,
            false => DType::Float,
        };
        Ok(KernelBox::new(Convolution {
            conv: AnyConvolution::new(init.attrs, is_depthwise)?,
            fusion,
            places: Places::by_name(fusion),
            dtypes: Dtypes {
                input: one_of(init, "Tinput", images)?,
                bias,
                summand,
                output: one_of(init, "out_type", &[output])?,
            },
        }))
    });
}

fn register_listed(c: &mut Catalog, name: &str, doc: &str, is_depthwise: bool) {
    c.op(name)
        .doc(doc)
        .input("device_inputs: Tdevice_inputs")
        .input("host_inputs: Thost_inputs")
        .output("device_outputs: Tdevice_outputs")
        .output("host_outputs: Thost_outputs")
        .attr("Tinput: quantizedtype = DT_QUINT8")
        .attr("Tfilter: quantizedtype = DT_QINT8")
        .attr("Tbias: {float, qint32} = DT_QINT32")
        .attr("Tsummand: {float, quint8, qint8, qint32}")
        .attr("out_type: quantizedtype = DT_QINT32")
        .attr("Tdevice_inputs: list(type) >= 0 = []")
        .attr("Thost_inputs: list(type) >= 0")
        .attr("Tdevice_outputs: list(type) >= 0 = []")
        .attr("Thost_outputs: list(type) >= 0")
        .attr("data_format: string = 'NHWC'")
        .attr("strides: list(int)")
        .attr("is_filter_const: bool = true")
        .attr("is_bias_const: bool = true")
        .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
        .attr("explicit_paddings: list(int) = []")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .attr("fused_ops: list(string) = []")
        .attr("alpha: float = 0.0")
        .expensive()
        .shape(move |c| {
            let fusion = Fusion::of(&fused_ops(c.attrs)?)?;
            let filter = 4 + usize::from(fusion.bias) + usize::from(fusion.sum);
            shapes(c, is_depthwise, (!fusion.requantize).then_some(filter))
        })
        .cpu(move |init| {
            let fusion = Fusion::of(&fused_ops(init.attrs)?)?;
            let outputs: &[DType] = match fusion.requantize {
                true => &[DType::QUInt8, DType::QInt8],
                false => &[DType::QInt32],
            };
            one_of(init, "Tfilter", &[DType::QInt8])?;
            let output = one_of(init, "out_type", outputs)?;
            let summand = init.dtype("Tsummand")?;
            let expected: &[DType] = match (fusion.sum, fusion.requantize) {
                (false, _) => &[output],
                (true, false) => &[DType::Float],
                (true, true) => &[DType::QUInt8, DType::QInt8],
            };
            ensure!(
                expected.contains(&summand),
                InvalidArgument,
                "QuantizedConv: incorrect summand data type. When Sum is not fused, Tsummand \
                 attribute must have same value as out_type."
            );
            let inputs = init.dtypes("Tdevice_inputs")?.len() + init.dtypes("Thost_inputs")?.len();
            Ok(KernelBox::new(Convolution {
                conv: AnyConvolution::new(init.attrs, is_depthwise)?,
                fusion,
                places: Places::by_attr(fusion, inputs)?,
                dtypes: Dtypes {
                    input: one_of(init, "Tinput", &[DType::QUInt8, DType::QInt8])?,
                    bias: one_of(init, "Tbias", &[DType::Float, DType::QInt32])?,
                    summand,
                    output,
                },
            }))
        });
}

pub(crate) fn register(c: &mut Catalog) {
    for named in &NAMED {
        register_named(c, named);
    }
    register_listed(
        c,
        "_FusedQuantizedConv2D",
        "The convolution of images of quantised elements, and the ops that are listed.",
        false,
    );
    register_listed(
        c,
        "_FusedQuantizedDepthwiseConv2D",
        "Convolution of every channel of quantised images with filters of its own, and the ops \
         that are listed.",
        true,
    );
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_graph::AttrList;

    fn quantized<T: Element>(dims: [usize; 4], x: &[T], dtype: DType) -> Tensor {
        Tensor::from_slice(dims, x).unwrap().with_dtype(dtype).unwrap()
    }

    fn image() -> Tensor {
        quantized([1, 2, 2, 2], &[200u8, 3, 17, 90, 5, 255, 60, 1], DType::QUInt8)
    }

    fn filter(is_depthwise: bool) -> Tensor {
        match is_depthwise {
            true => quantized([1, 2, 2, 1], &[2i8, -3, 4, 5], DType::QInt8),
            false => quantized([1, 1, 2, 2], &[-128i8, 5, 77, -9], DType::QInt8),
        }
    }

    /// The levels of the output, and the range, of a call with all inputs that the op takes.
    fn run(op: &str) -> (Vec<i32>, Vec<f32>) {
        let mut call = check(op)
            .attr("strides", vec![1i64, 1, 1, 1])
            .attr("padding", "VALID")
            .input(image())
            .input(filter(op.contains("Depthwise")));
        if op.contains("WithBias") {
            call = call.input(Tensor::vector(&[0.5f32, -2.0]));
        }
        for end in [0f32, 6.0, -1.0, 1.2] {
            call = call.input(Tensor::scalar(end));
        }
        if op.ends_with("AndRequantize") {
            call = call.input(Tensor::scalar(-8f32)).input(Tensor::scalar(7f32));
        }
        if op.contains("Sum") {
            let levels = [10u8, 200, 0, 7, 90, 100, 255, 128];
            let (summand, low) = match op.contains("Signed") {
                true => (levels.map(|x| x as i8).to_vec(), -2f32),
                false => (Vec::new(), 0.0),
            };
            let summand = match summand.is_empty() {
                true => quantized([1, 2, 2, 2], &levels, DType::QUInt8),
                false => quantized([1, 2, 2, 2], &summand, DType::QInt8),
            };
            call = call.input(summand).input(Tensor::scalar(low)).input(Tensor::scalar(3f32));
        }
        let got = call.run().unwrap();
        let out = match got[0].dtype() {
            DType::QUInt8 => got[0].as_slice::<u8>().unwrap().iter().map(|&x| x.into()).collect(),
            DType::QInt8 => got[0].as_slice::<i8>().unwrap().iter().map(|&x| x.into()).collect(),
            _ => got[0].as_slice::<i32>().unwrap().to_vec(),
        };
        let range = [1, 2].map(|i| got[i].scalar_value::<f32>().unwrap());
        (out, range.to_vec())
    }

    #[test]
    fn fused_convolutions_come_out_as_tensorflow_has_them() {
        let all = [-437_653.0f32, 437_653.0];
        let given = [-8.0f32, 7.0];
        let table: [(&str, &[i32], [f32; 2]); 14] = [
            ("QuantizedConv2DAndRelu", &[0, 973, 4754, 0, 18995, 0, 0, 291], all),
            ("QuantizedConv2DAndReluAndRequantize", &[0, 7, 34, 0, 135, 0, 0, 2], given),
            ("QuantizedConv2DAndRequantize", &[-90, 3, 17, -3, 67, -8, -27, 1], given),
            (
                "QuantizedConv2DPerChannel",
                &[-25369, 973, 4754, -725, 18995, -2270, -7603, 291],
                all,
            ),
            (
                "QuantizedConv2DWithBias",
                &[-23120, -8023, 7003, -9721, 21244, -11266, -5354, -8705],
                all,
            ),
            ("QuantizedConv2DWithBiasAndRelu", &[0, 0, 7003, 0, 21244, 0, 0, 0], all),
            ("QuantizedConv2DWithBiasAndReluAndRequantize", &[0, 0, 50, 0, 151, 0, 0, 0], given),
            (
                "QuantizedConv2DWithBiasAndRequantize",
                &[-82, -28, 25, -34, 75, -40, -19, -31],
                given,
            ),
            (
                "QuantizedConv2DWithBiasSumAndReluAndRequantize",
                &[0, 18, 50, 0, 184, 0, 58, 0],
                given,
            ),
            (
                "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
                &[0, 0, 50, 0, 127, 0, 0, 0],
                given,
            ),
            ("QuantizedDepthwiseConv2D", &[468, 441, 250, -760], all),
            ("QuantizedDepthwiseConv2DWithBias", &[2717, -8555, 2499, -9756], all),
            ("QuantizedDepthwiseConv2DWithBiasAndRelu", &[2717, 0, 2499, 0], all),
            ("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", &[19, 0, 18, 0], given),
        ];
        for (op, want, range) in table {
            let got = run(op);
            assert_eq!(got.0, want, "{op}");
            assert!(got.1.iter().zip(range).all(|(a, b)| (a - b).abs() < 0.1), "{op} {:?}", got.1);
        }
    }

    #[test]
    fn each_channel_may_have_a_range() {
        let got = check("QuantizedConv2DPerChannel")
            .attr("strides", vec![1i64, 1, 1, 1])
            .attr("padding", "VALID")
            .input(image())
            .input(filter(false))
            .input(Tensor::scalar(0f32))
            .input(Tensor::scalar(6f32))
            .input(Tensor::vector(&[-1f32, -2.0]))
            .input(Tensor::vector(&[1.2f32, 0.5]))
            .run()
            .unwrap();
        // A level of a channel stands for a part of its own range.
        assert_eq!(got[0].as_slice::<i32>().unwrap()[..2], [-25369, 973]);
        let ends = got[2].as_slice::<f32>().unwrap();
        assert!((ends[0] / ends[1] - 2.2 / 2.5).abs() < 1e-6);
    }

    fn listed(fused: &[&str]) -> ferroflow_testing::Check<'static> {
        let names = fused.iter().map(|name| bytes::Bytes::from(name.to_string())).collect();
        check("_FusedQuantizedConv2D")
            .attr("strides", vec![1i64, 1, 1, 1])
            .attr("padding", "VALID")
            .attr("fused_ops", AttrList::Strs(names))
            .attr("Tdevice_inputs", vec![DType::QUInt8, DType::QInt8, DType::Float])
            .attr("Thost_inputs", vec![DType::Float; 6])
            .attr("Tdevice_outputs", vec![DType::QUInt8])
            .attr("Thost_outputs", vec![DType::Float; 2])
            .attr("Tbias", DType::Float)
            .attr("Tsummand", DType::QUInt8)
            .attr("out_type", DType::QUInt8)
            .input(image())
            .input(filter(false))
            .input(Tensor::vector(&[0.5f32, -2.0]))
    }

    #[test]
    fn what_is_fused_may_be_a_list() {
        let ends = [0f32, 6.0, -1.0, 1.2, -8.0, 7.0];
        let call = listed(&["BiasAdd", "Relu", "Requantize"]);
        let got = ends.iter().fold(call, |call, &x| call.input(Tensor::scalar(x))).run().unwrap();
        assert_eq!(got[0].as_slice::<u8>().unwrap(), [0, 0, 50, 0, 151, 0, 0, 0]);
        let call = listed(&["Relu", "BiasAdd"]);
        let text = "Unsupported QuantizedConv fusion: [Relu,BiasAdd]";
        ends.iter()
            .fold(call, |call, &x| call.input(Tensor::scalar(x)))
            .fails(Code::InvalidArgument, text);
    }
}
