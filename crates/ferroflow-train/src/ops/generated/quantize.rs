//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`dequantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DequantizeOptions<'a> {
    /// `mode`: string, `"MIN_COMBINED"` by default.
    pub mode: &'a str,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
    /// `axis`: int, `-1` by default.
    pub axis: i64,
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for DequantizeOptions<'_> {
    fn default() -> Self {
        DequantizeOptions {
            mode: "MIN_COMBINED",
            narrow_range: false,
            axis: -1,
            dtype: DType::Float,
        }
    }
}

/// `Dequantize`: Quantised integers as the floats that they stand for.
#[inline]
#[track_caller]
pub fn dequantize(input: &Output, min_range: &Output, max_range: &Output) -> Output {
    dequantize_with(input, min_range, max_range, DequantizeOptions::default())
}

/// [`dequantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn dequantize_with(
    input: &Output,
    min_range: &Output,
    max_range: &Output,
    options: DequantizeOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Dequantize")
        .input(input)
        .input(min_range)
        .input(max_range)
        .attr("mode", options.mode)
        .attr("narrow_range", options.narrow_range)
        .attr("axis", options.axis)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`fake_quant_with_min_max_args_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxArgsOptions {
    /// `min`: float, `-6.0` by default.
    pub min: f32,
    /// `max`: float, `6.0` by default.
    pub max: f32,
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxArgsOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxArgsOptions { min: -6.0, max: 6.0, num_bits: 8, narrow_range: false }
    }
}

/// `FakeQuantWithMinMaxArgs`: Floats rounded to what so many bits can hold of a range.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_args(inputs: &Output) -> Output {
    fake_quant_with_min_max_args_with(inputs, FakeQuantWithMinMaxArgsOptions::default())
}

/// [`fake_quant_with_min_max_args()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_args_with(
    inputs: &Output,
    options: FakeQuantWithMinMaxArgsOptions,
) -> Output {
    inputs
        .graph()
        .op("FakeQuantWithMinMaxArgs")
        .input(inputs)
        .attr("min", options.min)
        .attr("max", options.max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .output()
}

/// The attributes of [`fake_quant_with_min_max_args_gradient_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxArgsGradientOptions {
    /// `min`: float, `-6.0` by default.
    pub min: f32,
    /// `max`: float, `6.0` by default.
    pub max: f32,
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxArgsGradientOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxArgsGradientOptions {
            min: -6.0,
            max: 6.0,
            num_bits: 8,
            narrow_range: false,
        }
    }
}

/// `FakeQuantWithMinMaxArgsGradient`: Gradient of rounding to what so many bits can hold: none
/// outside the range.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_args_gradient(gradients: &Output, inputs: &Output) -> Output {
    fake_quant_with_min_max_args_gradient_with(
        gradients,
        inputs,
        FakeQuantWithMinMaxArgsGradientOptions::default(),
    )
}

/// [`fake_quant_with_min_max_args_gradient()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_args_gradient_with(
    gradients: &Output,
    inputs: &Output,
    options: FakeQuantWithMinMaxArgsGradientOptions,
) -> Output {
    gradients
        .graph()
        .op("FakeQuantWithMinMaxArgsGradient")
        .input(gradients)
        .input(inputs)
        .attr("min", options.min)
        .attr("max", options.max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .output()
}

/// The attributes of [`fake_quant_with_min_max_vars_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxVarsOptions {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxVarsOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxVarsOptions { num_bits: 8, narrow_range: false }
    }
}

/// `FakeQuantWithMinMaxVars`: Floats rounded to what so many bits can hold of a range.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars(inputs: &Output, min: &Output, max: &Output) -> Output {
    fake_quant_with_min_max_vars_with(inputs, min, max, FakeQuantWithMinMaxVarsOptions::default())
}

/// [`fake_quant_with_min_max_vars()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_with(
    inputs: &Output,
    min: &Output,
    max: &Output,
    options: FakeQuantWithMinMaxVarsOptions,
) -> Output {
    inputs
        .graph()
        .op("FakeQuantWithMinMaxVars")
        .input(inputs)
        .input(min)
        .input(max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .output()
}

/// The attributes of [`fake_quant_with_min_max_vars_gradient_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxVarsGradientOptions {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxVarsGradientOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxVarsGradientOptions { num_bits: 8, narrow_range: false }
    }
}

/// `FakeQuantWithMinMaxVarsGradient`: Gradient of rounding to what so many bits can hold: none
/// outside the range.
///
/// Returns (`backprops_wrt_input`, `backprop_wrt_min`, `backprop_wrt_max`).
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_gradient(
    gradients: &Output,
    inputs: &Output,
    min: &Output,
    max: &Output,
) -> (Output, Output, Output) {
    fake_quant_with_min_max_vars_gradient_with(
        gradients,
        inputs,
        min,
        max,
        FakeQuantWithMinMaxVarsGradientOptions::default(),
    )
}

/// [`fake_quant_with_min_max_vars_gradient()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_gradient_with(
    gradients: &Output,
    inputs: &Output,
    min: &Output,
    max: &Output,
    options: FakeQuantWithMinMaxVarsGradientOptions,
) -> (Output, Output, Output) {
    let [backprops_wrt_input, backprop_wrt_min, backprop_wrt_max] = gradients
        .graph()
        .op("FakeQuantWithMinMaxVarsGradient")
        .input(gradients)
        .input(inputs)
        .input(min)
        .input(max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .split();
    (backprops_wrt_input, backprop_wrt_min, backprop_wrt_max)
}

/// The attributes of [`fake_quant_with_min_max_vars_per_channel_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxVarsPerChannelOptions {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxVarsPerChannelOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxVarsPerChannelOptions { num_bits: 8, narrow_range: false }
    }
}

/// `FakeQuantWithMinMaxVarsPerChannel`: Floats rounded to what so many bits can hold of a range.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_per_channel(
    inputs: &Output,
    min: &Output,
    max: &Output,
) -> Output {
    fake_quant_with_min_max_vars_per_channel_with(
        inputs,
        min,
        max,
        FakeQuantWithMinMaxVarsPerChannelOptions::default(),
    )
}

/// [`fake_quant_with_min_max_vars_per_channel()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_per_channel_with(
    inputs: &Output,
    min: &Output,
    max: &Output,
    options: FakeQuantWithMinMaxVarsPerChannelOptions,
) -> Output {
    inputs
        .graph()
        .op("FakeQuantWithMinMaxVarsPerChannel")
        .input(inputs)
        .input(min)
        .input(max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .output()
}

/// The attributes of [`fake_quant_with_min_max_vars_per_channel_gradient_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FakeQuantWithMinMaxVarsPerChannelGradientOptions {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
}

impl Default for FakeQuantWithMinMaxVarsPerChannelGradientOptions {
    fn default() -> Self {
        FakeQuantWithMinMaxVarsPerChannelGradientOptions { num_bits: 8, narrow_range: false }
    }
}

/// `FakeQuantWithMinMaxVarsPerChannelGradient`: Gradient of rounding to what so many bits can hold:
/// none outside the range.
///
/// Returns (`backprops_wrt_input`, `backprop_wrt_min`, `backprop_wrt_max`).
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: &Output,
    inputs: &Output,
    min: &Output,
    max: &Output,
) -> (Output, Output, Output) {
    fake_quant_with_min_max_vars_per_channel_gradient_with(
        gradients,
        inputs,
        min,
        max,
        FakeQuantWithMinMaxVarsPerChannelGradientOptions::default(),
    )
}

/// [`fake_quant_with_min_max_vars_per_channel_gradient()`] with other attributes.
#[inline]
#[track_caller]
pub fn fake_quant_with_min_max_vars_per_channel_gradient_with(
    gradients: &Output,
    inputs: &Output,
    min: &Output,
    max: &Output,
    options: FakeQuantWithMinMaxVarsPerChannelGradientOptions,
) -> (Output, Output, Output) {
    let [backprops_wrt_input, backprop_wrt_min, backprop_wrt_max] = gradients
        .graph()
        .op("FakeQuantWithMinMaxVarsPerChannelGradient")
        .input(gradients)
        .input(inputs)
        .input(min)
        .input(max)
        .attr("num_bits", options.num_bits)
        .attr("narrow_range", options.narrow_range)
        .split();
    (backprops_wrt_input, backprop_wrt_min, backprop_wrt_max)
}

/// The attributes of [`quantize_and_dequantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeAndDequantizeOptions {
    /// `signed_input`: bool, `true` by default.
    pub signed_input: bool,
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `range_given`: bool, `false` by default.
    pub range_given: bool,
    /// `input_min`: float, `0.0` by default.
    pub input_min: f32,
    /// `input_max`: float, `0.0` by default.
    pub input_max: f32,
}

impl Default for QuantizeAndDequantizeOptions {
    fn default() -> Self {
        QuantizeAndDequantizeOptions {
            signed_input: true,
            num_bits: 8,
            range_given: false,
            input_min: 0.0,
            input_max: 0.0,
        }
    }
}

/// `QuantizeAndDequantize`: Floats rounded to what so many bits can hold, with zero kept.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize(input: &Output) -> Output {
    quantize_and_dequantize_with(input, QuantizeAndDequantizeOptions::default())
}

/// [`quantize_and_dequantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_with(
    input: &Output,
    options: QuantizeAndDequantizeOptions,
) -> Output {
    input
        .graph()
        .op("QuantizeAndDequantize")
        .input(input)
        .attr("signed_input", options.signed_input)
        .attr("num_bits", options.num_bits)
        .attr("range_given", options.range_given)
        .attr("input_min", options.input_min)
        .attr("input_max", options.input_max)
        .output()
}

/// The attributes of [`quantize_and_dequantize_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeAndDequantizeV2Options<'a> {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `signed_input`: bool, `true` by default.
    pub signed_input: bool,
    /// `range_given`: bool, `false` by default.
    pub range_given: bool,
    /// `round_mode`: string, `"HALF_TO_EVEN"` by default.
    pub round_mode: &'a str,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
    /// `axis`: int, `-1` by default.
    pub axis: i64,
}

impl Default for QuantizeAndDequantizeV2Options<'_> {
    fn default() -> Self {
        QuantizeAndDequantizeV2Options {
            num_bits: 8,
            signed_input: true,
            range_given: false,
            round_mode: "HALF_TO_EVEN",
            narrow_range: false,
            axis: -1,
        }
    }
}

/// `QuantizeAndDequantizeV2`: Floats rounded to what so many bits can hold, with zero kept.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v2(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
) -> Output {
    quantize_and_dequantize_v2_with(
        input,
        input_min,
        input_max,
        QuantizeAndDequantizeV2Options::default(),
    )
}

/// [`quantize_and_dequantize_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v2_with(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    options: QuantizeAndDequantizeV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("QuantizeAndDequantizeV2")
        .input(input)
        .input(input_min)
        .input(input_max)
        .attr("num_bits", options.num_bits)
        .attr("signed_input", options.signed_input)
        .attr("range_given", options.range_given)
        .attr("round_mode", options.round_mode)
        .attr("narrow_range", options.narrow_range)
        .attr("axis", options.axis)
        .output()
}

/// The attributes of [`quantize_and_dequantize_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeAndDequantizeV3Options {
    /// `signed_input`: bool, `true` by default.
    pub signed_input: bool,
    /// `range_given`: bool, `true` by default.
    pub range_given: bool,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
    /// `axis`: int, `-1` by default.
    pub axis: i64,
}

impl Default for QuantizeAndDequantizeV3Options {
    fn default() -> Self {
        QuantizeAndDequantizeV3Options {
            signed_input: true,
            range_given: true,
            narrow_range: false,
            axis: -1,
        }
    }
}

/// `QuantizeAndDequantizeV3`: Floats rounded to what so many bits can hold, with zero kept.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v3(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    num_bits: &Output,
) -> Output {
    quantize_and_dequantize_v3_with(
        input,
        input_min,
        input_max,
        num_bits,
        QuantizeAndDequantizeV3Options::default(),
    )
}

/// [`quantize_and_dequantize_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v3_with(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    num_bits: &Output,
    options: QuantizeAndDequantizeV3Options,
) -> Output {
    input
        .graph()
        .op("QuantizeAndDequantizeV3")
        .input(input)
        .input(input_min)
        .input(input_max)
        .input(num_bits)
        .attr("signed_input", options.signed_input)
        .attr("range_given", options.range_given)
        .attr("narrow_range", options.narrow_range)
        .attr("axis", options.axis)
        .output()
}

/// The attributes of [`quantize_and_dequantize_v4_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeAndDequantizeV4Options<'a> {
    /// `num_bits`: int, `8` by default.
    pub num_bits: i64,
    /// `signed_input`: bool, `true` by default.
    pub signed_input: bool,
    /// `range_given`: bool, `false` by default.
    pub range_given: bool,
    /// `round_mode`: string, `"HALF_TO_EVEN"` by default.
    pub round_mode: &'a str,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
    /// `axis`: int, `-1` by default.
    pub axis: i64,
}

impl Default for QuantizeAndDequantizeV4Options<'_> {
    fn default() -> Self {
        QuantizeAndDequantizeV4Options {
            num_bits: 8,
            signed_input: true,
            range_given: false,
            round_mode: "HALF_TO_EVEN",
            narrow_range: false,
            axis: -1,
        }
    }
}

/// `QuantizeAndDequantizeV4`: Floats rounded to what so many bits can hold, with zero kept.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v4(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
) -> Output {
    quantize_and_dequantize_v4_with(
        input,
        input_min,
        input_max,
        QuantizeAndDequantizeV4Options::default(),
    )
}

/// [`quantize_and_dequantize_v4()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v4_with(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    options: QuantizeAndDequantizeV4Options<'_>,
) -> Output {
    input
        .graph()
        .op("QuantizeAndDequantizeV4")
        .input(input)
        .input(input_min)
        .input(input_max)
        .attr("num_bits", options.num_bits)
        .attr("signed_input", options.signed_input)
        .attr("range_given", options.range_given)
        .attr("round_mode", options.round_mode)
        .attr("narrow_range", options.narrow_range)
        .attr("axis", options.axis)
        .output()
}

/// The attributes of [`quantize_and_dequantize_v4_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeAndDequantizeV4GradOptions {
    /// `axis`: int, `-1` by default.
    pub axis: i64,
}

impl Default for QuantizeAndDequantizeV4GradOptions {
    fn default() -> Self {
        QuantizeAndDequantizeV4GradOptions { axis: -1 }
    }
}

/// `QuantizeAndDequantizeV4Grad`: Gradient of QuantizeAndDequantizeV4: none outside the range.
///
/// Returns (`input_backprop`, `input_min_backprop`, `input_max_backprop`).
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v4_grad(
    gradients: &Output,
    input: &Output,
    input_min: &Output,
    input_max: &Output,
) -> (Output, Output, Output) {
    quantize_and_dequantize_v4_grad_with(
        gradients,
        input,
        input_min,
        input_max,
        QuantizeAndDequantizeV4GradOptions::default(),
    )
}

/// [`quantize_and_dequantize_v4_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_and_dequantize_v4_grad_with(
    gradients: &Output,
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    options: QuantizeAndDequantizeV4GradOptions,
) -> (Output, Output, Output) {
    let [input_backprop, input_min_backprop, input_max_backprop] = gradients
        .graph()
        .op("QuantizeAndDequantizeV4Grad")
        .input(gradients)
        .input(input)
        .input(input_min)
        .input(input_max)
        .attr("axis", options.axis)
        .split();
    (input_backprop, input_min_backprop, input_max_backprop)
}

/// `QuantizeDownAndShrinkRange`: 32-bit elements as 8-bit ones over the range that they take up.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn quantize_down_and_shrink_range(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    out_type: DType,
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = input
        .graph()
        .op("QuantizeDownAndShrinkRange")
        .input(input)
        .input(input_min)
        .input(input_max)
        .attr("out_type", out_type)
        .split();
    (output, output_min, output_max)
}

/// The attributes of [`quantize_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizeV2Options<'a> {
    /// `mode`: string, `"MIN_COMBINED"` by default.
    pub mode: &'a str,
    /// `round_mode`: string, `"HALF_AWAY_FROM_ZERO"` by default.
    pub round_mode: &'a str,
    /// `narrow_range`: bool, `false` by default.
    pub narrow_range: bool,
    /// `axis`: int, `-1` by default.
    pub axis: i64,
    /// `ensure_minimum_range`: float, `0.01` by default.
    pub ensure_minimum_range: f32,
}

impl Default for QuantizeV2Options<'_> {
    fn default() -> Self {
        QuantizeV2Options {
            mode: "MIN_COMBINED",
            round_mode: "HALF_AWAY_FROM_ZERO",
            narrow_range: false,
            axis: -1,
            ensure_minimum_range: 0.01,
        }
    }
}

/// `QuantizeV2`: Floats as quantised integers, and the range that these stand for.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn quantize_v2(
    input: &Output,
    min_range: &Output,
    max_range: &Output,
    t: DType,
) -> (Output, Output, Output) {
    quantize_v2_with(input, min_range, max_range, t, QuantizeV2Options::default())
}

/// [`quantize_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantize_v2_with(
    input: &Output,
    min_range: &Output,
    max_range: &Output,
    t: DType,
    options: QuantizeV2Options<'_>,
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = input
        .graph()
        .op("QuantizeV2")
        .input(input)
        .input(min_range)
        .input(max_range)
        .attr("T", t)
        .attr("mode", options.mode)
        .attr("round_mode", options.round_mode)
        .attr("narrow_range", options.narrow_range)
        .attr("axis", options.axis)
        .attr("ensure_minimum_range", options.ensure_minimum_range)
        .split();
    (output, output_min, output_max)
}

/// The attributes of [`quantized_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedAddOptions {
    /// `Toutput`: type, `QInt32` by default.
    pub toutput: DType,
}

impl Default for QuantizedAddOptions {
    fn default() -> Self {
        QuantizedAddOptions { toutput: DType::QInt32 }
    }
}

/// `QuantizedAdd`: Sums of quantised elements.
///
/// Returns (`z`, `min_z`, `max_z`).
#[inline]
#[track_caller]
pub fn quantized_add(
    x: &Output,
    y: &Output,
    min_x: &Output,
    max_x: &Output,
    min_y: &Output,
    max_y: &Output,
) -> (Output, Output, Output) {
    quantized_add_with(x, y, min_x, max_x, min_y, max_y, QuantizedAddOptions::default())
}

/// [`quantized_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_add_with(
    x: &Output,
    y: &Output,
    min_x: &Output,
    max_x: &Output,
    min_y: &Output,
    max_y: &Output,
    options: QuantizedAddOptions,
) -> (Output, Output, Output) {
    let [z, min_z, max_z] = x
        .graph()
        .op("QuantizedAdd")
        .input(x)
        .input(y)
        .input(min_x)
        .input(max_x)
        .input(min_y)
        .input(max_y)
        .attr("Toutput", options.toutput)
        .split();
    (z, min_z, max_z)
}

/// `QuantizedBatchNormWithGlobalNormalization`: Quantised images normalized by given means and
/// variances.
///
/// Returns (`result`, `result_min`, `result_max`).
#[inline]
#[track_caller]
pub fn quantized_batch_norm_with_global_normalization(
    t: &Output,
    t_min: &Output,
    t_max: &Output,
    m: &Output,
    m_min: &Output,
    m_max: &Output,
    v: &Output,
    v_min: &Output,
    v_max: &Output,
    beta: &Output,
    beta_min: &Output,
    beta_max: &Output,
    gamma: &Output,
    gamma_min: &Output,
    gamma_max: &Output,
    out_type: DType,
    variance_epsilon: f32,
    scale_after_normalization: bool,
) -> (Output, Output, Output) {
    let [result, result_min, result_max] = t
        .graph()
        .op("QuantizedBatchNormWithGlobalNormalization")
        .input(t)
        .input(t_min)
        .input(t_max)
        .input(m)
        .input(m_min)
        .input(m_max)
        .input(v)
        .input(v_min)
        .input(v_max)
        .input(beta)
        .input(beta_min)
        .input(beta_max)
        .input(gamma)
        .input(gamma_min)
        .input(gamma_max)
        .attr("out_type", out_type)
        .attr("variance_epsilon", variance_epsilon)
        .attr("scale_after_normalization", scale_after_normalization)
        .split();
    (result, result_min, result_max)
}

/// `QuantizedBiasAdd`: Sums of quantised rows and a quantised bias.
///
/// Returns (`output`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_bias_add(
    input: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_bias: &Output,
    max_bias: &Output,
    out_type: DType,
) -> (Output, Output, Output) {
    let [output, min_out, max_out] = input
        .graph()
        .op("QuantizedBiasAdd")
        .input(input)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_bias)
        .input(max_bias)
        .attr("out_type", out_type)
        .split();
    (output, min_out, max_out)
}

/// `QuantizedConcat`: Quantised tensors joined along a dimension, over one range.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn quantized_concat(
    concat_dim: &Output,
    values: &[Output],
    input_mins: &[Output],
    input_maxes: &[Output],
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = concat_dim
        .graph()
        .op("QuantizedConcat")
        .input(concat_dim)
        .list(values)
        .list(input_mins)
        .list(input_maxes)
        .split();
    (output, output_min, output_max)
}

/// `QuantizedConcatV2`: Quantised tensors joined along a dimension, over one range.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn quantized_concat_v2(
    values: &[Output],
    axis: &Output,
    input_mins: &[Output],
    input_maxes: &[Output],
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = axis
        .graph()
        .op("QuantizedConcatV2")
        .list(values)
        .input(axis)
        .list(input_mins)
        .list(input_maxes)
        .split();
    (output, output_min, output_max)
}

/// The attributes of [`quantized_conv2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for QuantizedConv2DOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DOptions { out_type: DType::QInt32, dilations: &[1, 1, 1, 1] }
    }
}

/// `QuantizedConv2D`: The convolution of images of quantised elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedConv2DOptions::default(),
    )
}

/// [`quantized_conv2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2D")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_and_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DAndReluOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DAndReluOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DAndReluOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DAndRelu`: The convolution of images of quantised elements, and Relu.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_relu(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_and_relu_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedConv2DAndReluOptions::default(),
    )
}

/// [`quantized_conv2d_and_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_relu_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DAndReluOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DAndRelu")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_and_relu_and_requantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DAndReluAndRequantizeOptions<'a> {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DAndReluAndRequantizeOptions {
            out_type: DType::QUInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DAndReluAndRequantize`: The convolution of images of quantised elements and Relu,
/// as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_relu_and_requantize(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_and_relu_and_requantize_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        strides,
        padding,
        QuantizedConv2DAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_relu_and_requantize_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DAndReluAndRequantize")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_and_requantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DAndRequantizeOptions<'a> {
    /// `out_type`: type, `QInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DAndRequantizeOptions {
            out_type: DType::QInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DAndRequantize`: The convolution of images of quantised elements, as 8-bit
/// elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_requantize(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_and_requantize_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        strides,
        padding,
        QuantizedConv2DAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_and_requantize_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DAndRequantize")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_per_channel_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DPerChannelOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for QuantizedConv2DPerChannelOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DPerChannelOptions { out_type: DType::QInt32, dilations: &[1, 1, 1, 1] }
    }
}

/// `QuantizedConv2DPerChannel`: The convolution of images of quantised elements; each filter has
/// its own range.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_per_channel(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_per_channel_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedConv2DPerChannelOptions::default(),
    )
}

/// [`quantized_conv2d_per_channel()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_per_channel_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DPerChannelOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DPerChannel")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBias`: The convolution of images of quantised elements, and a bias.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedConv2DWithBiasOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBias")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_and_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasAndReluOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasAndReluOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasAndReluOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasAndRelu`: The convolution of images of quantised elements, a bias and
/// Relu.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_relu(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_and_relu_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedConv2DWithBiasAndReluOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_and_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_relu_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasAndReluOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasAndRelu")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_and_relu_and_requantize_with`] that have
/// defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasAndReluAndRequantizeOptions<'a> {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasAndReluAndRequantizeOptions {
            out_type: DType::QUInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasAndReluAndRequantize`: The convolution of images of quantised elements,
/// a bias and Relu, as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_relu_and_requantize(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_and_relu_and_requantize_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        strides,
        padding,
        QuantizedConv2DWithBiasAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_relu_and_requantize_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasAndReluAndRequantize")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_and_requantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasAndRequantizeOptions<'a> {
    /// `out_type`: type, `QInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasAndRequantizeOptions {
            out_type: DType::QInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasAndRequantize`: The convolution of images of quantised elements and a
/// bias, as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_requantize(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_and_requantize_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        strides,
        padding,
        QuantizedConv2DWithBiasAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_and_requantize_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasAndRequantize")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_signed_sum_and_relu_and_requantize_with`] that
/// have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOptions<'a> {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOptions {
            out_type: DType::QUInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasSignedSumAndReluAndRequantize`: The convolution of images of quantised
/// elements, a bias, a sum with signed elements and Relu, as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_signed_sum_and_relu_and_requantize(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    summand: &Output,
    min_summand: &Output,
    max_summand: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_signed_sum_and_relu_and_requantize_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        summand,
        min_summand,
        max_summand,
        strides,
        padding,
        QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_signed_sum_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_signed_sum_and_relu_and_requantize_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    summand: &Output,
    min_summand: &Output,
    max_summand: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .input(summand)
        .input(min_summand)
        .input(max_summand)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_sum_and_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasSumAndReluOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasSumAndReluOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasSumAndReluOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasSumAndRelu`: The convolution of images of quantised elements, a bias, a
/// sum and Relu.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_sum_and_relu(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    summand: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_sum_and_relu_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        summand,
        strides,
        padding,
        QuantizedConv2DWithBiasSumAndReluOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_sum_and_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_sum_and_relu_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    summand: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasSumAndReluOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasSumAndRelu")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(summand)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_conv2d_with_bias_sum_and_relu_and_requantize_with`] that have
/// defaults.
#[derive(Clone, Debug)]
pub struct QuantizedConv2DWithBiasSumAndReluAndRequantizeOptions<'a> {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedConv2DWithBiasSumAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedConv2DWithBiasSumAndReluAndRequantizeOptions {
            out_type: DType::QUInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedConv2DWithBiasSumAndReluAndRequantize`: The convolution of images of quantised
/// elements, a bias, a sum and Relu, as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_sum_and_relu_and_requantize(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    summand: &Output,
    min_summand: &Output,
    max_summand: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_conv2d_with_bias_sum_and_relu_and_requantize_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        summand,
        min_summand,
        max_summand,
        strides,
        padding,
        QuantizedConv2DWithBiasSumAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_conv2d_with_bias_sum_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_conv2d_with_bias_sum_and_relu_and_requantize_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    summand: &Output,
    min_summand: &Output,
    max_summand: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedConv2DWithBiasSumAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedConv2DWithBiasSumAndReluAndRequantize")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .input(summand)
        .input(min_summand)
        .input(max_summand)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_depthwise_conv2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedDepthwiseConv2DOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for QuantizedDepthwiseConv2DOptions<'_> {
    fn default() -> Self {
        QuantizedDepthwiseConv2DOptions { out_type: DType::QInt32, dilations: &[1, 1, 1, 1] }
    }
}

/// `QuantizedDepthwiseConv2D`: Convolution of every channel of quantised images with filters of its
/// own.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_depthwise_conv2d_with(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedDepthwiseConv2DOptions::default(),
    )
}

/// [`quantized_depthwise_conv2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with(
    input: &Output,
    filter: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedDepthwiseConv2DOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedDepthwiseConv2D")
        .input(input)
        .input(filter)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_depthwise_conv2d_with_bias_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedDepthwiseConv2DWithBiasOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for QuantizedDepthwiseConv2DWithBiasOptions<'_> {
    fn default() -> Self {
        QuantizedDepthwiseConv2DWithBiasOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `QuantizedDepthwiseConv2DWithBias`: Convolution of every channel of quantised images with
/// filters of its own, and a bias.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_depthwise_conv2d_with_bias_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedDepthwiseConv2DWithBiasOptions::default(),
    )
}

/// [`quantized_depthwise_conv2d_with_bias()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedDepthwiseConv2DWithBiasOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedDepthwiseConv2DWithBias")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_depthwise_conv2d_with_bias_and_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedDepthwiseConv2DWithBiasAndReluOptions<'a> {
    /// `out_type`: type, `QInt32` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedDepthwiseConv2DWithBiasAndReluOptions<'_> {
    fn default() -> Self {
        QuantizedDepthwiseConv2DWithBiasAndReluOptions {
            out_type: DType::QInt32,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedDepthwiseConv2DWithBiasAndRelu`: Convolution of every channel of quantised images with
/// filters of its own, a bias and Relu.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias_and_relu(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_depthwise_conv2d_with_bias_and_relu_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides,
        padding,
        QuantizedDepthwiseConv2DWithBiasAndReluOptions::default(),
    )
}

/// [`quantized_depthwise_conv2d_with_bias_and_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias_and_relu_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedDepthwiseConv2DWithBiasAndReluOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedDepthwiseConv2DWithBiasAndRelu")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_depthwise_conv2d_with_bias_and_relu_and_requantize_with`] that
/// have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOptions<'a> {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
    /// `padding_list`: list of ints, empty by default.
    pub padding_list: &'a [i64],
}

impl Default for QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOptions {
            out_type: DType::QUInt8,
            dilations: &[1, 1, 1, 1],
            padding_list: &[],
        }
    }
}

/// `QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize`: Convolution of every channel of
/// quantised images with filters of its own, a bias and Relu, as 8-bit elements.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias_and_relu_and_requantize(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    quantized_depthwise_conv2d_with_bias_and_relu_and_requantize_with(
        input,
        filter,
        bias,
        min_input,
        max_input,
        min_filter,
        max_filter,
        min_freezed_output,
        max_freezed_output,
        strides,
        padding,
        QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_depthwise_conv2d_with_bias_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_depthwise_conv2d_with_bias_and_relu_and_requantize_with(
    input: &Output,
    filter: &Output,
    bias: &Output,
    min_input: &Output,
    max_input: &Output,
    min_filter: &Output,
    max_filter: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    strides: &[i64],
    padding: &str,
    options: QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize")
        .input(input)
        .input(filter)
        .input(bias)
        .input(min_input)
        .input(max_input)
        .input(min_filter)
        .input(max_filter)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("out_type", options.out_type)
        .attr("dilations", list(options.dilations))
        .attr("padding_list", list(options.padding_list))
        .split();
    (output, min_output, max_output)
}

/// The attributes of [`quantized_instance_norm_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedInstanceNormOptions {
    /// `output_range_given`: bool, `false` by default.
    pub output_range_given: bool,
    /// `given_y_min`: float, `0.0` by default.
    pub given_y_min: f32,
    /// `given_y_max`: float, `0.0` by default.
    pub given_y_max: f32,
    /// `variance_epsilon`: float, `1e-5` by default.
    pub variance_epsilon: f32,
    /// `min_separation`: float, `0.001` by default.
    pub min_separation: f32,
}

impl Default for QuantizedInstanceNormOptions {
    fn default() -> Self {
        QuantizedInstanceNormOptions {
            output_range_given: false,
            given_y_min: 0.0,
            given_y_max: 0.0,
            variance_epsilon: 1e-5,
            min_separation: 0.001,
        }
    }
}

/// `QuantizedInstanceNorm`: Channels of quantised images with mean 0 and variance 1.
///
/// Returns (`y`, `y_min`, `y_max`).
#[inline]
#[track_caller]
pub fn quantized_instance_norm(
    x: &Output,
    x_min: &Output,
    x_max: &Output,
) -> (Output, Output, Output) {
    quantized_instance_norm_with(x, x_min, x_max, QuantizedInstanceNormOptions::default())
}

/// [`quantized_instance_norm()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_instance_norm_with(
    x: &Output,
    x_min: &Output,
    x_max: &Output,
    options: QuantizedInstanceNormOptions,
) -> (Output, Output, Output) {
    let [y, y_min, y_max] = x
        .graph()
        .op("QuantizedInstanceNorm")
        .input(x)
        .input(x_min)
        .input(x_max)
        .attr("output_range_given", options.output_range_given)
        .attr("given_y_min", options.given_y_min)
        .attr("given_y_max", options.given_y_max)
        .attr("variance_epsilon", options.variance_epsilon)
        .attr("min_separation", options.min_separation)
        .split();
    (y, y_min, y_max)
}

/// The attributes of [`quantized_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulOptions {
    /// `Toutput`: type, `QInt32` by default.
    pub toutput: DType,
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `Tactivation`: type, `QUInt8` by default.
    pub tactivation: DType,
}

impl Default for QuantizedMatMulOptions {
    fn default() -> Self {
        QuantizedMatMulOptions {
            toutput: DType::QInt32,
            transpose_a: false,
            transpose_b: false,
            tactivation: DType::QUInt8,
        }
    }
}

/// `QuantizedMatMul`: The product of two matrices of quantised elements.
///
/// Returns (`out`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_mat_mul(
    a: &Output,
    b: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
) -> (Output, Output, Output) {
    quantized_mat_mul_with(a, b, min_a, max_a, min_b, max_b, QuantizedMatMulOptions::default())
}

/// [`quantized_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with(
    a: &Output,
    b: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    options: QuantizedMatMulOptions,
) -> (Output, Output, Output) {
    let [out, min_out, max_out] = a
        .graph()
        .op("QuantizedMatMul")
        .input(a)
        .input(b)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .attr("Toutput", options.toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("Tactivation", options.tactivation)
        .split();
    (out, min_out, max_out)
}

/// The attributes of [`quantized_mat_mul_with_bias_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulWithBiasOptions<'a> {
    /// `Toutput`: type, `QInt32` by default.
    pub toutput: DType,
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `input_quant_mode`: string, `"MIN_FIRST"` by default.
    pub input_quant_mode: &'a str,
}

impl Default for QuantizedMatMulWithBiasOptions<'_> {
    fn default() -> Self {
        QuantizedMatMulWithBiasOptions {
            toutput: DType::QInt32,
            transpose_a: false,
            transpose_b: false,
            input_quant_mode: "MIN_FIRST",
        }
    }
}

/// `QuantizedMatMulWithBias`: The product of two matrices of quantised elements, and a bias.
///
/// Returns (`out`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
) -> (Output, Output, Output) {
    quantized_mat_mul_with_bias_with(
        a,
        b,
        bias,
        min_a,
        max_a,
        min_b,
        max_b,
        QuantizedMatMulWithBiasOptions::default(),
    )
}

/// [`quantized_mat_mul_with_bias()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_with(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    options: QuantizedMatMulWithBiasOptions<'_>,
) -> (Output, Output, Output) {
    let [out, min_out, max_out] = a
        .graph()
        .op("QuantizedMatMulWithBias")
        .input(a)
        .input(b)
        .input(bias)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .attr("Toutput", options.toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("input_quant_mode", options.input_quant_mode)
        .split();
    (out, min_out, max_out)
}

/// The attributes of [`quantized_mat_mul_with_bias_and_dequantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulWithBiasAndDequantizeOptions<'a> {
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `input_quant_mode`: string, `"MIN_FIRST"` by default.
    pub input_quant_mode: &'a str,
}

impl Default for QuantizedMatMulWithBiasAndDequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedMatMulWithBiasAndDequantizeOptions {
            transpose_a: false,
            transpose_b: false,
            input_quant_mode: "MIN_FIRST",
        }
    }
}

/// `QuantizedMatMulWithBiasAndDequantize`: The product of two matrices of quantised elements and a
/// bias, as floats.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_dequantize(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    toutput: DType,
) -> Output {
    quantized_mat_mul_with_bias_and_dequantize_with(
        a,
        b,
        bias,
        min_a,
        max_a,
        min_b,
        max_b,
        min_freezed_output,
        max_freezed_output,
        toutput,
        QuantizedMatMulWithBiasAndDequantizeOptions::default(),
    )
}

/// [`quantized_mat_mul_with_bias_and_dequantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_dequantize_with(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    toutput: DType,
    options: QuantizedMatMulWithBiasAndDequantizeOptions<'_>,
) -> Output {
    a.graph()
        .op("QuantizedMatMulWithBiasAndDequantize")
        .input(a)
        .input(b)
        .input(bias)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("Toutput", toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("input_quant_mode", options.input_quant_mode)
        .output()
}

/// The attributes of [`quantized_mat_mul_with_bias_and_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulWithBiasAndReluOptions<'a> {
    /// `Toutput`: type, `QInt32` by default.
    pub toutput: DType,
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `input_quant_mode`: string, `"MIN_FIRST"` by default.
    pub input_quant_mode: &'a str,
}

impl Default for QuantizedMatMulWithBiasAndReluOptions<'_> {
    fn default() -> Self {
        QuantizedMatMulWithBiasAndReluOptions {
            toutput: DType::QInt32,
            transpose_a: false,
            transpose_b: false,
            input_quant_mode: "MIN_FIRST",
        }
    }
}

/// `QuantizedMatMulWithBiasAndRelu`: The product of two matrices of quantised elements, a bias and
/// Relu.
///
/// Returns (`out`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_relu(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
) -> (Output, Output, Output) {
    quantized_mat_mul_with_bias_and_relu_with(
        a,
        b,
        bias,
        min_a,
        max_a,
        min_b,
        max_b,
        QuantizedMatMulWithBiasAndReluOptions::default(),
    )
}

/// [`quantized_mat_mul_with_bias_and_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_relu_with(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    options: QuantizedMatMulWithBiasAndReluOptions<'_>,
) -> (Output, Output, Output) {
    let [out, min_out, max_out] = a
        .graph()
        .op("QuantizedMatMulWithBiasAndRelu")
        .input(a)
        .input(b)
        .input(bias)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .attr("Toutput", options.toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("input_quant_mode", options.input_quant_mode)
        .split();
    (out, min_out, max_out)
}

/// The attributes of [`quantized_mat_mul_with_bias_and_relu_and_requantize_with`] that have
/// defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulWithBiasAndReluAndRequantizeOptions<'a> {
    /// `Toutput`: type, `QUInt8` by default.
    pub toutput: DType,
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `input_quant_mode`: string, `"MIN_FIRST"` by default.
    pub input_quant_mode: &'a str,
}

impl Default for QuantizedMatMulWithBiasAndReluAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedMatMulWithBiasAndReluAndRequantizeOptions {
            toutput: DType::QUInt8,
            transpose_a: false,
            transpose_b: false,
            input_quant_mode: "MIN_FIRST",
        }
    }
}

/// `QuantizedMatMulWithBiasAndReluAndRequantize`: The product of two matrices of quantised
/// elements, a bias and Relu, as 8-bit elements.
///
/// Returns (`out`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_relu_and_requantize(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
) -> (Output, Output, Output) {
    quantized_mat_mul_with_bias_and_relu_and_requantize_with(
        a,
        b,
        bias,
        min_a,
        max_a,
        min_b,
        max_b,
        min_freezed_output,
        max_freezed_output,
        QuantizedMatMulWithBiasAndReluAndRequantizeOptions::default(),
    )
}

/// [`quantized_mat_mul_with_bias_and_relu_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_relu_and_requantize_with(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    options: QuantizedMatMulWithBiasAndReluAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [out, min_out, max_out] = a
        .graph()
        .op("QuantizedMatMulWithBiasAndReluAndRequantize")
        .input(a)
        .input(b)
        .input(bias)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("Toutput", options.toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("input_quant_mode", options.input_quant_mode)
        .split();
    (out, min_out, max_out)
}

/// The attributes of [`quantized_mat_mul_with_bias_and_requantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMatMulWithBiasAndRequantizeOptions<'a> {
    /// `Toutput`: type, `QUInt8` by default.
    pub toutput: DType,
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `input_quant_mode`: string, `"MIN_FIRST"` by default.
    pub input_quant_mode: &'a str,
}

impl Default for QuantizedMatMulWithBiasAndRequantizeOptions<'_> {
    fn default() -> Self {
        QuantizedMatMulWithBiasAndRequantizeOptions {
            toutput: DType::QUInt8,
            transpose_a: false,
            transpose_b: false,
            input_quant_mode: "MIN_FIRST",
        }
    }
}

/// `QuantizedMatMulWithBiasAndRequantize`: The product of two matrices of quantised elements and a
/// bias, as 8-bit elements.
///
/// Returns (`out`, `min_out`, `max_out`).
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_requantize(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
) -> (Output, Output, Output) {
    quantized_mat_mul_with_bias_and_requantize_with(
        a,
        b,
        bias,
        min_a,
        max_a,
        min_b,
        max_b,
        min_freezed_output,
        max_freezed_output,
        QuantizedMatMulWithBiasAndRequantizeOptions::default(),
    )
}

/// [`quantized_mat_mul_with_bias_and_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mat_mul_with_bias_and_requantize_with(
    a: &Output,
    b: &Output,
    bias: &Output,
    min_a: &Output,
    max_a: &Output,
    min_b: &Output,
    max_b: &Output,
    min_freezed_output: &Output,
    max_freezed_output: &Output,
    options: QuantizedMatMulWithBiasAndRequantizeOptions<'_>,
) -> (Output, Output, Output) {
    let [out, min_out, max_out] = a
        .graph()
        .op("QuantizedMatMulWithBiasAndRequantize")
        .input(a)
        .input(b)
        .input(bias)
        .input(min_a)
        .input(max_a)
        .input(min_b)
        .input(max_b)
        .input(min_freezed_output)
        .input(max_freezed_output)
        .attr("Toutput", options.toutput)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("input_quant_mode", options.input_quant_mode)
        .split();
    (out, min_out, max_out)
}

/// The attributes of [`quantized_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedMulOptions {
    /// `Toutput`: type, `QInt32` by default.
    pub toutput: DType,
}

impl Default for QuantizedMulOptions {
    fn default() -> Self {
        QuantizedMulOptions { toutput: DType::QInt32 }
    }
}

/// `QuantizedMul`: Products of quantised elements.
///
/// Returns (`z`, `min_z`, `max_z`).
#[inline]
#[track_caller]
pub fn quantized_mul(
    x: &Output,
    y: &Output,
    min_x: &Output,
    max_x: &Output,
    min_y: &Output,
    max_y: &Output,
) -> (Output, Output, Output) {
    quantized_mul_with(x, y, min_x, max_x, min_y, max_y, QuantizedMulOptions::default())
}

/// [`quantized_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_mul_with(
    x: &Output,
    y: &Output,
    min_x: &Output,
    max_x: &Output,
    min_y: &Output,
    max_y: &Output,
    options: QuantizedMulOptions,
) -> (Output, Output, Output) {
    let [z, min_z, max_z] = x
        .graph()
        .op("QuantizedMul")
        .input(x)
        .input(y)
        .input(min_x)
        .input(max_x)
        .input(min_y)
        .input(max_y)
        .attr("Toutput", options.toutput)
        .split();
    (z, min_z, max_z)
}

/// The attributes of [`quantized_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedReluOptions {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
}

impl Default for QuantizedReluOptions {
    fn default() -> Self {
        QuantizedReluOptions { out_type: DType::QUInt8 }
    }
}

/// `QuantizedRelu`: Quantised elements, those below zero raised to it.
///
/// Returns (`activations`, `min_activations`, `max_activations`).
#[inline]
#[track_caller]
pub fn quantized_relu(
    features: &Output,
    min_features: &Output,
    max_features: &Output,
) -> (Output, Output, Output) {
    quantized_relu_with(features, min_features, max_features, QuantizedReluOptions::default())
}

/// [`quantized_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_relu_with(
    features: &Output,
    min_features: &Output,
    max_features: &Output,
    options: QuantizedReluOptions,
) -> (Output, Output, Output) {
    let [activations, min_activations, max_activations] = features
        .graph()
        .op("QuantizedRelu")
        .input(features)
        .input(min_features)
        .input(max_features)
        .attr("out_type", options.out_type)
        .split();
    (activations, min_activations, max_activations)
}

/// The attributes of [`quantized_relu6_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedRelu6Options {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
}

impl Default for QuantizedRelu6Options {
    fn default() -> Self {
        QuantizedRelu6Options { out_type: DType::QUInt8 }
    }
}

/// `QuantizedRelu6`: Quantised elements, cut off at zero and six.
///
/// Returns (`activations`, `min_activations`, `max_activations`).
#[inline]
#[track_caller]
pub fn quantized_relu6(
    features: &Output,
    min_features: &Output,
    max_features: &Output,
) -> (Output, Output, Output) {
    quantized_relu6_with(features, min_features, max_features, QuantizedRelu6Options::default())
}

/// [`quantized_relu6()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_relu6_with(
    features: &Output,
    min_features: &Output,
    max_features: &Output,
    options: QuantizedRelu6Options,
) -> (Output, Output, Output) {
    let [activations, min_activations, max_activations] = features
        .graph()
        .op("QuantizedRelu6")
        .input(features)
        .input(min_features)
        .input(max_features)
        .attr("out_type", options.out_type)
        .split();
    (activations, min_activations, max_activations)
}

/// The attributes of [`quantized_relu_x_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedReluXOptions {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
}

impl Default for QuantizedReluXOptions {
    fn default() -> Self {
        QuantizedReluXOptions { out_type: DType::QUInt8 }
    }
}

/// `QuantizedReluX`: Quantised elements, cut off at zero and a given value.
///
/// Returns (`activations`, `min_activations`, `max_activations`).
#[inline]
#[track_caller]
pub fn quantized_relu_x(
    features: &Output,
    max_value: &Output,
    min_features: &Output,
    max_features: &Output,
) -> (Output, Output, Output) {
    quantized_relu_x_with(
        features,
        max_value,
        min_features,
        max_features,
        QuantizedReluXOptions::default(),
    )
}

/// [`quantized_relu_x()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_relu_x_with(
    features: &Output,
    max_value: &Output,
    min_features: &Output,
    max_features: &Output,
    options: QuantizedReluXOptions,
) -> (Output, Output, Output) {
    let [activations, min_activations, max_activations] = features
        .graph()
        .op("QuantizedReluX")
        .input(features)
        .input(max_value)
        .input(min_features)
        .input(max_features)
        .attr("out_type", options.out_type)
        .split();
    (activations, min_activations, max_activations)
}

/// `QuantizedReshape`: Quantised elements in another shape.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn quantized_reshape(
    tensor: &Output,
    shape: &Output,
    input_min: &Output,
    input_max: &Output,
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = tensor
        .graph()
        .op("QuantizedReshape")
        .input(tensor)
        .input(shape)
        .input(input_min)
        .input(input_max)
        .split();
    (output, output_min, output_max)
}

/// `RequantizationRange`: The range that 32-bit elements take up.
///
/// Returns (`output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn requantization_range(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
) -> (Output, Output) {
    let [output_min, output_max] = input
        .graph()
        .op("RequantizationRange")
        .input(input)
        .input(input_min)
        .input(input_max)
        .split();
    (output_min, output_max)
}

/// `RequantizationRangePerChannel`: The range that 32-bit elements take up; each channel has its
/// own range.
///
/// Returns (`output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn requantization_range_per_channel(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    clip_value_max: f32,
) -> (Output, Output) {
    let [output_min, output_max] = input
        .graph()
        .op("RequantizationRangePerChannel")
        .input(input)
        .input(input_min)
        .input(input_max)
        .attr("clip_value_max", clip_value_max)
        .split();
    (output_min, output_max)
}

/// `Requantize`: 32-bit elements as 8-bit ones over a given range.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn requantize(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    requested_output_min: &Output,
    requested_output_max: &Output,
    out_type: DType,
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = input
        .graph()
        .op("Requantize")
        .input(input)
        .input(input_min)
        .input(input_max)
        .input(requested_output_min)
        .input(requested_output_max)
        .attr("out_type", out_type)
        .split();
    (output, output_min, output_max)
}

/// The attributes of [`requantize_per_channel_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RequantizePerChannelOptions {
    /// `out_type`: type, `QUInt8` by default.
    pub out_type: DType,
}

impl Default for RequantizePerChannelOptions {
    fn default() -> Self {
        RequantizePerChannelOptions { out_type: DType::QUInt8 }
    }
}

/// `RequantizePerChannel`: 32-bit elements as 8-bit ones; each channel has its own range.
///
/// Returns (`output`, `output_min`, `output_max`).
#[inline]
#[track_caller]
pub fn requantize_per_channel(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    requested_output_min: &Output,
    requested_output_max: &Output,
) -> (Output, Output, Output) {
    requantize_per_channel_with(
        input,
        input_min,
        input_max,
        requested_output_min,
        requested_output_max,
        RequantizePerChannelOptions::default(),
    )
}

/// [`requantize_per_channel()`] with other attributes.
#[inline]
#[track_caller]
pub fn requantize_per_channel_with(
    input: &Output,
    input_min: &Output,
    input_max: &Output,
    requested_output_min: &Output,
    requested_output_max: &Output,
    options: RequantizePerChannelOptions,
) -> (Output, Output, Output) {
    let [output, output_min, output_max] = input
        .graph()
        .op("RequantizePerChannel")
        .input(input)
        .input(input_min)
        .input(input_max)
        .input(requested_output_min)
        .input(requested_output_max)
        .attr("out_type", options.out_type)
        .split();
    (output, output_min, output_max)
}

/// The attributes of [`uniform_dequantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformDequantizeOptions {
    /// `quantization_axis`: int, `-1` by default.
    pub quantization_axis: i64,
}

impl Default for UniformDequantizeOptions {
    fn default() -> Self {
        UniformDequantizeOptions { quantization_axis: -1 }
    }
}

/// `UniformDequantize`: The floats that uniformly quantised integers stand for.
#[inline]
#[track_caller]
pub fn uniform_dequantize(
    input: &Output,
    scales: &Output,
    zero_points: &Output,
    tout: DType,
    quantization_min_val: i64,
    quantization_max_val: i64,
) -> Output {
    uniform_dequantize_with(
        input,
        scales,
        zero_points,
        tout,
        quantization_min_val,
        quantization_max_val,
        UniformDequantizeOptions::default(),
    )
}

/// [`uniform_dequantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_dequantize_with(
    input: &Output,
    scales: &Output,
    zero_points: &Output,
    tout: DType,
    quantization_min_val: i64,
    quantization_max_val: i64,
    options: UniformDequantizeOptions,
) -> Output {
    input
        .graph()
        .op("UniformDequantize")
        .input(input)
        .input(scales)
        .input(zero_points)
        .attr("Tout", tout)
        .attr("quantization_min_val", quantization_min_val)
        .attr("quantization_max_val", quantization_max_val)
        .attr("quantization_axis", options.quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizeOptions {
    /// `quantization_axis`: int, `-1` by default.
    pub quantization_axis: i64,
}

impl Default for UniformQuantizeOptions {
    fn default() -> Self {
        UniformQuantizeOptions { quantization_axis: -1 }
    }
}

/// `UniformQuantize`: Floats as integers that stand for a scale times their distance from a zero
/// point.
#[inline]
#[track_caller]
pub fn uniform_quantize(
    input: &Output,
    scales: &Output,
    zero_points: &Output,
    tout: DType,
    quantization_min_val: i64,
    quantization_max_val: i64,
) -> Output {
    uniform_quantize_with(
        input,
        scales,
        zero_points,
        tout,
        quantization_min_val,
        quantization_max_val,
        UniformQuantizeOptions::default(),
    )
}

/// [`uniform_quantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantize_with(
    input: &Output,
    scales: &Output,
    zero_points: &Output,
    tout: DType,
    quantization_min_val: i64,
    quantization_max_val: i64,
    options: UniformQuantizeOptions,
) -> Output {
    input
        .graph()
        .op("UniformQuantize")
        .input(input)
        .input(scales)
        .input(zero_points)
        .attr("Tout", tout)
        .attr("quantization_min_val", quantization_min_val)
        .attr("quantization_max_val", quantization_max_val)
        .attr("quantization_axis", options.quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedAddOptions {
    /// `lhs_quantization_axis`: int, `-1` by default.
    pub lhs_quantization_axis: i64,
    /// `rhs_quantization_axis`: int, `-1` by default.
    pub rhs_quantization_axis: i64,
    /// `output_quantization_axis`: int, `-1` by default.
    pub output_quantization_axis: i64,
}

impl Default for UniformQuantizedAddOptions {
    fn default() -> Self {
        UniformQuantizedAddOptions {
            lhs_quantization_axis: -1,
            rhs_quantization_axis: -1,
            output_quantization_axis: -1,
        }
    }
}

/// `UniformQuantizedAdd`: The sum of two uniformly quantised tensors.
#[inline]
#[track_caller]
pub fn uniform_quantized_add(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
) -> Output {
    uniform_quantized_add_with(
        lhs,
        rhs,
        lhs_scales,
        lhs_zero_points,
        rhs_scales,
        rhs_zero_points,
        output_scales,
        output_zero_points,
        lhs_quantization_min_val,
        lhs_quantization_max_val,
        rhs_quantization_min_val,
        rhs_quantization_max_val,
        output_quantization_min_val,
        output_quantization_max_val,
        UniformQuantizedAddOptions::default(),
    )
}

/// [`uniform_quantized_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_add_with(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
    options: UniformQuantizedAddOptions,
) -> Output {
    lhs.graph()
        .op("UniformQuantizedAdd")
        .input(lhs)
        .input(rhs)
        .input(lhs_scales)
        .input(lhs_zero_points)
        .input(rhs_scales)
        .input(rhs_zero_points)
        .input(output_scales)
        .input(output_zero_points)
        .attr("lhs_quantization_min_val", lhs_quantization_min_val)
        .attr("lhs_quantization_max_val", lhs_quantization_max_val)
        .attr("rhs_quantization_min_val", rhs_quantization_min_val)
        .attr("rhs_quantization_max_val", rhs_quantization_max_val)
        .attr("output_quantization_min_val", output_quantization_min_val)
        .attr("output_quantization_max_val", output_quantization_max_val)
        .attr("lhs_quantization_axis", options.lhs_quantization_axis)
        .attr("rhs_quantization_axis", options.rhs_quantization_axis)
        .attr("output_quantization_axis", options.output_quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_clip_by_value_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedClipByValueOptions {
    /// `quantization_axis`: int, `-1` by default.
    pub quantization_axis: i64,
}

impl Default for UniformQuantizedClipByValueOptions {
    fn default() -> Self {
        UniformQuantizedClipByValueOptions { quantization_axis: -1 }
    }
}

/// `UniformQuantizedClipByValue`: Uniformly quantised integers between a least and a largest.
#[inline]
#[track_caller]
pub fn uniform_quantized_clip_by_value(
    operand: &Output,
    min: &Output,
    max: &Output,
    scales: &Output,
    zero_points: &Output,
    quantization_min_val: i64,
    quantization_max_val: i64,
) -> Output {
    uniform_quantized_clip_by_value_with(
        operand,
        min,
        max,
        scales,
        zero_points,
        quantization_min_val,
        quantization_max_val,
        UniformQuantizedClipByValueOptions::default(),
    )
}

/// [`uniform_quantized_clip_by_value()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_clip_by_value_with(
    operand: &Output,
    min: &Output,
    max: &Output,
    scales: &Output,
    zero_points: &Output,
    quantization_min_val: i64,
    quantization_max_val: i64,
    options: UniformQuantizedClipByValueOptions,
) -> Output {
    operand
        .graph()
        .op("UniformQuantizedClipByValue")
        .input(operand)
        .input(min)
        .input(max)
        .input(scales)
        .input(zero_points)
        .attr("quantization_min_val", quantization_min_val)
        .attr("quantization_max_val", quantization_max_val)
        .attr("quantization_axis", options.quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_convolution_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedConvolutionOptions<'a> {
    /// `window_strides`: list of ints, empty by default.
    pub window_strides: &'a [i64],
    /// `explicit_padding`: list of ints, empty by default.
    pub explicit_padding: &'a [i64],
    /// `lhs_dilation`: list of ints, empty by default.
    pub lhs_dilation: &'a [i64],
    /// `rhs_dilation`: list of ints, empty by default.
    pub rhs_dilation: &'a [i64],
    /// `batch_group_count`: int, `1` by default.
    pub batch_group_count: i64,
    /// `feature_group_count`: int, `1` by default.
    pub feature_group_count: i64,
    /// `dimension_numbers`: string, empty by default.
    pub dimension_numbers: &'a str,
    /// `lhs_quantization_axis`: int, `-1` by default.
    pub lhs_quantization_axis: i64,
    /// `rhs_quantization_axis`: int, `-1` by default.
    pub rhs_quantization_axis: i64,
    /// `output_quantization_axis`: int, `-1` by default.
    pub output_quantization_axis: i64,
}

impl Default for UniformQuantizedConvolutionOptions<'_> {
    fn default() -> Self {
        UniformQuantizedConvolutionOptions {
            window_strides: &[],
            explicit_padding: &[],
            lhs_dilation: &[],
            rhs_dilation: &[],
            batch_group_count: 1,
            feature_group_count: 1,
            dimension_numbers: "",
            lhs_quantization_axis: -1,
            rhs_quantization_axis: -1,
            output_quantization_axis: -1,
        }
    }
}

/// `UniformQuantizedConvolution`: The convolution of uniformly quantised images, in any layout.
#[inline]
#[track_caller]
pub fn uniform_quantized_convolution(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    padding: &str,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
) -> Output {
    uniform_quantized_convolution_with(
        lhs,
        rhs,
        lhs_scales,
        lhs_zero_points,
        rhs_scales,
        rhs_zero_points,
        output_scales,
        output_zero_points,
        tout,
        padding,
        lhs_quantization_min_val,
        lhs_quantization_max_val,
        rhs_quantization_min_val,
        rhs_quantization_max_val,
        output_quantization_min_val,
        output_quantization_max_val,
        UniformQuantizedConvolutionOptions::default(),
    )
}

/// [`uniform_quantized_convolution()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_convolution_with(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    padding: &str,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
    options: UniformQuantizedConvolutionOptions<'_>,
) -> Output {
    lhs.graph()
        .op("UniformQuantizedConvolution")
        .input(lhs)
        .input(rhs)
        .input(lhs_scales)
        .input(lhs_zero_points)
        .input(rhs_scales)
        .input(rhs_zero_points)
        .input(output_scales)
        .input(output_zero_points)
        .attr("Tout", tout)
        .attr("padding", padding)
        .attr("lhs_quantization_min_val", lhs_quantization_min_val)
        .attr("lhs_quantization_max_val", lhs_quantization_max_val)
        .attr("rhs_quantization_min_val", rhs_quantization_min_val)
        .attr("rhs_quantization_max_val", rhs_quantization_max_val)
        .attr("output_quantization_min_val", output_quantization_min_val)
        .attr("output_quantization_max_val", output_quantization_max_val)
        .attr("window_strides", list(options.window_strides))
        .attr("explicit_padding", list(options.explicit_padding))
        .attr("lhs_dilation", list(options.lhs_dilation))
        .attr("rhs_dilation", list(options.rhs_dilation))
        .attr("batch_group_count", options.batch_group_count)
        .attr("feature_group_count", options.feature_group_count)
        .attr("dimension_numbers", options.dimension_numbers)
        .attr("lhs_quantization_axis", options.lhs_quantization_axis)
        .attr("rhs_quantization_axis", options.rhs_quantization_axis)
        .attr("output_quantization_axis", options.output_quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_convolution_hybrid_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedConvolutionHybridOptions<'a> {
    /// `window_strides`: list of ints, empty by default.
    pub window_strides: &'a [i64],
    /// `explicit_padding`: list of ints, empty by default.
    pub explicit_padding: &'a [i64],
    /// `lhs_dilation`: list of ints, empty by default.
    pub lhs_dilation: &'a [i64],
    /// `rhs_dilation`: list of ints, empty by default.
    pub rhs_dilation: &'a [i64],
    /// `batch_group_count`: int, `1` by default.
    pub batch_group_count: i64,
    /// `feature_group_count`: int, `1` by default.
    pub feature_group_count: i64,
    /// `dimension_numbers`: string, empty by default.
    pub dimension_numbers: &'a str,
    /// `rhs_quantization_axis`: int, `-1` by default.
    pub rhs_quantization_axis: i64,
}

impl Default for UniformQuantizedConvolutionHybridOptions<'_> {
    fn default() -> Self {
        UniformQuantizedConvolutionHybridOptions {
            window_strides: &[],
            explicit_padding: &[],
            lhs_dilation: &[],
            rhs_dilation: &[],
            batch_group_count: 1,
            feature_group_count: 1,
            dimension_numbers: "",
            rhs_quantization_axis: -1,
        }
    }
}

/// `UniformQuantizedConvolutionHybrid`: The convolution of images of floats by a uniformly
/// quantised filter.
#[inline]
#[track_caller]
pub fn uniform_quantized_convolution_hybrid(
    lhs: &Output,
    rhs: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    tout: DType,
    padding: &str,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
) -> Output {
    uniform_quantized_convolution_hybrid_with(
        lhs,
        rhs,
        rhs_scales,
        rhs_zero_points,
        tout,
        padding,
        rhs_quantization_min_val,
        rhs_quantization_max_val,
        UniformQuantizedConvolutionHybridOptions::default(),
    )
}

/// [`uniform_quantized_convolution_hybrid()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_convolution_hybrid_with(
    lhs: &Output,
    rhs: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    tout: DType,
    padding: &str,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    options: UniformQuantizedConvolutionHybridOptions<'_>,
) -> Output {
    lhs.graph()
        .op("UniformQuantizedConvolutionHybrid")
        .input(lhs)
        .input(rhs)
        .input(rhs_scales)
        .input(rhs_zero_points)
        .attr("Tout", tout)
        .attr("padding", padding)
        .attr("rhs_quantization_min_val", rhs_quantization_min_val)
        .attr("rhs_quantization_max_val", rhs_quantization_max_val)
        .attr("window_strides", list(options.window_strides))
        .attr("explicit_padding", list(options.explicit_padding))
        .attr("lhs_dilation", list(options.lhs_dilation))
        .attr("rhs_dilation", list(options.rhs_dilation))
        .attr("batch_group_count", options.batch_group_count)
        .attr("feature_group_count", options.feature_group_count)
        .attr("dimension_numbers", options.dimension_numbers)
        .attr("rhs_quantization_axis", options.rhs_quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_dot_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedDotOptions {
    /// `lhs_quantization_axis`: int, `-1` by default.
    pub lhs_quantization_axis: i64,
    /// `rhs_quantization_axis`: int, `-1` by default.
    pub rhs_quantization_axis: i64,
    /// `output_quantization_axis`: int, `-1` by default.
    pub output_quantization_axis: i64,
}

impl Default for UniformQuantizedDotOptions {
    fn default() -> Self {
        UniformQuantizedDotOptions {
            lhs_quantization_axis: -1,
            rhs_quantization_axis: -1,
            output_quantization_axis: -1,
        }
    }
}

/// `UniformQuantizedDot`: The product of two uniformly quantised matrices.
#[inline]
#[track_caller]
pub fn uniform_quantized_dot(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
) -> Output {
    uniform_quantized_dot_with(
        lhs,
        rhs,
        lhs_scales,
        lhs_zero_points,
        rhs_scales,
        rhs_zero_points,
        output_scales,
        output_zero_points,
        tout,
        lhs_quantization_min_val,
        lhs_quantization_max_val,
        rhs_quantization_min_val,
        rhs_quantization_max_val,
        output_quantization_min_val,
        output_quantization_max_val,
        UniformQuantizedDotOptions::default(),
    )
}

/// [`uniform_quantized_dot()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_dot_with(
    lhs: &Output,
    rhs: &Output,
    lhs_scales: &Output,
    lhs_zero_points: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    lhs_quantization_min_val: i64,
    lhs_quantization_max_val: i64,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
    options: UniformQuantizedDotOptions,
) -> Output {
    lhs.graph()
        .op("UniformQuantizedDot")
        .input(lhs)
        .input(rhs)
        .input(lhs_scales)
        .input(lhs_zero_points)
        .input(rhs_scales)
        .input(rhs_zero_points)
        .input(output_scales)
        .input(output_zero_points)
        .attr("Tout", tout)
        .attr("lhs_quantization_min_val", lhs_quantization_min_val)
        .attr("lhs_quantization_max_val", lhs_quantization_max_val)
        .attr("rhs_quantization_min_val", rhs_quantization_min_val)
        .attr("rhs_quantization_max_val", rhs_quantization_max_val)
        .attr("output_quantization_min_val", output_quantization_min_val)
        .attr("output_quantization_max_val", output_quantization_max_val)
        .attr("lhs_quantization_axis", options.lhs_quantization_axis)
        .attr("rhs_quantization_axis", options.rhs_quantization_axis)
        .attr("output_quantization_axis", options.output_quantization_axis)
        .output()
}

/// The attributes of [`uniform_quantized_dot_hybrid_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformQuantizedDotHybridOptions {
    /// `rhs_quantization_axis`: int, `-1` by default.
    pub rhs_quantization_axis: i64,
}

impl Default for UniformQuantizedDotHybridOptions {
    fn default() -> Self {
        UniformQuantizedDotHybridOptions { rhs_quantization_axis: -1 }
    }
}

/// `UniformQuantizedDotHybrid`: The product of a matrix of floats and a uniformly quantised one.
#[inline]
#[track_caller]
pub fn uniform_quantized_dot_hybrid(
    lhs: &Output,
    rhs: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    tout: DType,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
) -> Output {
    uniform_quantized_dot_hybrid_with(
        lhs,
        rhs,
        rhs_scales,
        rhs_zero_points,
        tout,
        rhs_quantization_min_val,
        rhs_quantization_max_val,
        UniformQuantizedDotHybridOptions::default(),
    )
}

/// [`uniform_quantized_dot_hybrid()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_quantized_dot_hybrid_with(
    lhs: &Output,
    rhs: &Output,
    rhs_scales: &Output,
    rhs_zero_points: &Output,
    tout: DType,
    rhs_quantization_min_val: i64,
    rhs_quantization_max_val: i64,
    options: UniformQuantizedDotHybridOptions,
) -> Output {
    lhs.graph()
        .op("UniformQuantizedDotHybrid")
        .input(lhs)
        .input(rhs)
        .input(rhs_scales)
        .input(rhs_zero_points)
        .attr("Tout", tout)
        .attr("rhs_quantization_min_val", rhs_quantization_min_val)
        .attr("rhs_quantization_max_val", rhs_quantization_max_val)
        .attr("rhs_quantization_axis", options.rhs_quantization_axis)
        .output()
}

/// The attributes of [`uniform_requantize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformRequantizeOptions {
    /// `input_quantization_axis`: int, `-1` by default.
    pub input_quantization_axis: i64,
    /// `output_quantization_axis`: int, `-1` by default.
    pub output_quantization_axis: i64,
}

impl Default for UniformRequantizeOptions {
    fn default() -> Self {
        UniformRequantizeOptions { input_quantization_axis: -1, output_quantization_axis: -1 }
    }
}

/// `UniformRequantize`: Uniformly quantised integers with other scales and zero points.
#[inline]
#[track_caller]
pub fn uniform_requantize(
    input: &Output,
    input_scales: &Output,
    input_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    input_quantization_min_val: i64,
    input_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
) -> Output {
    uniform_requantize_with(
        input,
        input_scales,
        input_zero_points,
        output_scales,
        output_zero_points,
        tout,
        input_quantization_min_val,
        input_quantization_max_val,
        output_quantization_min_val,
        output_quantization_max_val,
        UniformRequantizeOptions::default(),
    )
}

/// [`uniform_requantize()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_requantize_with(
    input: &Output,
    input_scales: &Output,
    input_zero_points: &Output,
    output_scales: &Output,
    output_zero_points: &Output,
    tout: DType,
    input_quantization_min_val: i64,
    input_quantization_max_val: i64,
    output_quantization_min_val: i64,
    output_quantization_max_val: i64,
    options: UniformRequantizeOptions,
) -> Output {
    input
        .graph()
        .op("UniformRequantize")
        .input(input)
        .input(input_scales)
        .input(input_zero_points)
        .input(output_scales)
        .input(output_zero_points)
        .attr("Tout", tout)
        .attr("input_quantization_min_val", input_quantization_min_val)
        .attr("input_quantization_max_val", input_quantization_max_val)
        .attr("output_quantization_min_val", output_quantization_min_val)
        .attr("output_quantization_max_val", output_quantization_max_val)
        .attr("input_quantization_axis", options.input_quantization_axis)
        .attr("output_quantization_axis", options.output_quantization_axis)
        .output()
}
