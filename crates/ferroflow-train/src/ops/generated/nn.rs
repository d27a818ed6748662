//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`avg_pool_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AvgPoolOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for AvgPoolOptions<'_> {
    fn default() -> Self {
        AvgPoolOptions { data_format: "NHWC" }
    }
}

/// `AvgPool`: The mean of the elements under a sliding window.
#[inline]
#[track_caller]
pub fn avg_pool(value: &Output, ksize: &[i64], strides: &[i64], padding: &str) -> Output {
    avg_pool_with(value, ksize, strides, padding, AvgPoolOptions::default())
}

/// [`avg_pool()`] with other attributes.
#[inline]
#[track_caller]
pub fn avg_pool_with(
    value: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: AvgPoolOptions<'_>,
) -> Output {
    value
        .graph()
        .op("AvgPool")
        .input(value)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`avg_pool3d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AvgPool3DOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
}

impl Default for AvgPool3DOptions<'_> {
    fn default() -> Self {
        AvgPool3DOptions { data_format: "NDHWC" }
    }
}

/// `AvgPool3D`: The mean of the elements under a sliding window.
#[inline]
#[track_caller]
pub fn avg_pool3d(input: &Output, ksize: &[i64], strides: &[i64], padding: &str) -> Output {
    avg_pool3d_with(input, ksize, strides, padding, AvgPool3DOptions::default())
}

/// [`avg_pool3d()`] with other attributes.
#[inline]
#[track_caller]
pub fn avg_pool3d_with(
    input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: AvgPool3DOptions<'_>,
) -> Output {
    input
        .graph()
        .op("AvgPool3D")
        .input(input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`avg_pool3d_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AvgPool3DGradOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
}

impl Default for AvgPool3DGradOptions<'_> {
    fn default() -> Self {
        AvgPool3DGradOptions { data_format: "NDHWC" }
    }
}

/// `AvgPool3DGrad`: Gradient of AvgPool3D.
#[inline]
#[track_caller]
pub fn avg_pool3d_grad(
    orig_input_shape: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    avg_pool3d_grad_with(
        orig_input_shape,
        grad,
        ksize,
        strides,
        padding,
        AvgPool3DGradOptions::default(),
    )
}

/// [`avg_pool3d_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn avg_pool3d_grad_with(
    orig_input_shape: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: AvgPool3DGradOptions<'_>,
) -> Output {
    orig_input_shape
        .graph()
        .op("AvgPool3DGrad")
        .input(orig_input_shape)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`avg_pool_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AvgPoolGradOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for AvgPoolGradOptions<'_> {
    fn default() -> Self {
        AvgPoolGradOptions { data_format: "NHWC" }
    }
}

/// `AvgPoolGrad`: Gradient of AvgPool.
#[inline]
#[track_caller]
pub fn avg_pool_grad(
    orig_input_shape: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    avg_pool_grad_with(
        orig_input_shape,
        grad,
        ksize,
        strides,
        padding,
        AvgPoolGradOptions::default(),
    )
}

/// [`avg_pool_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn avg_pool_grad_with(
    orig_input_shape: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: AvgPoolGradOptions<'_>,
) -> Output {
    orig_input_shape
        .graph()
        .op("AvgPoolGrad")
        .input(orig_input_shape)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// `BatchNormWithGlobalNormalization`: Images normalised by given means and variances of their
/// channels.
#[inline]
#[track_caller]
pub fn batch_norm_with_global_normalization(
    t: &Output,
    m: &Output,
    v: &Output,
    beta: &Output,
    gamma: &Output,
    variance_epsilon: f32,
    scale_after_normalization: bool,
) -> Output {
    t.graph()
        .op("BatchNormWithGlobalNormalization")
        .input(t)
        .input(m)
        .input(v)
        .input(beta)
        .input(gamma)
        .attr("variance_epsilon", variance_epsilon)
        .attr("scale_after_normalization", scale_after_normalization)
        .output()
}

/// The outputs of [`batch_norm_with_global_normalization_grad`].
#[derive(Clone, Debug)]
pub struct BatchNormWithGlobalNormalizationGradOutputs {
    /// Output `dx`.
    pub dx: Output,
    /// Output `dm`.
    pub dm: Output,
    /// Output `dv`.
    pub dv: Output,
    /// Output `db`.
    pub db: Output,
    /// Output `dg`.
    pub dg: Output,
}

/// `BatchNormWithGlobalNormalizationGrad`: Gradient of BatchNormWithGlobalNormalization.
#[inline]
#[track_caller]
pub fn batch_norm_with_global_normalization_grad(
    t: &Output,
    m: &Output,
    v: &Output,
    gamma: &Output,
    backprop: &Output,
    variance_epsilon: f32,
    scale_after_normalization: bool,
) -> BatchNormWithGlobalNormalizationGradOutputs {
    let [dx, dm, dv, db, dg] = t
        .graph()
        .op("BatchNormWithGlobalNormalizationGrad")
        .input(t)
        .input(m)
        .input(v)
        .input(gamma)
        .input(backprop)
        .attr("variance_epsilon", variance_epsilon)
        .attr("scale_after_normalization", scale_after_normalization)
        .split();
    BatchNormWithGlobalNormalizationGradOutputs { dx, dm, dv, db, dg }
}

/// The attributes of [`bias_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BiasAddOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for BiasAddOptions<'_> {
    fn default() -> Self {
        BiasAddOptions { data_format: "NHWC" }
    }
}

/// `BiasAdd`: Adds a vector along the channels of a value.
#[inline]
#[track_caller]
pub fn bias_add(value: &Output, bias: &Output) -> Output {
    bias_add_with(value, bias, BiasAddOptions::default())
}

/// [`bias_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn bias_add_with(value: &Output, bias: &Output, options: BiasAddOptions<'_>) -> Output {
    value
        .graph()
        .op("BiasAdd")
        .input(value)
        .input(bias)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`bias_add_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BiasAddGradOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for BiasAddGradOptions<'_> {
    fn default() -> Self {
        BiasAddGradOptions { data_format: "NHWC" }
    }
}

/// `BiasAddGrad`: Gradient of BiasAdd for the bias: the sum over everything but the channels.
#[inline]
#[track_caller]
pub fn bias_add_grad(out_backprop: &Output) -> Output {
    bias_add_grad_with(out_backprop, BiasAddGradOptions::default())
}

/// [`bias_add_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn bias_add_grad_with(out_backprop: &Output, options: BiasAddGradOptions<'_>) -> Output {
    out_backprop
        .graph()
        .op("BiasAddGrad")
        .input(out_backprop)
        .attr("data_format", options.data_format)
        .output()
}

/// `BiasAddV1`: Adds a vector along the last dimension of a value.
#[inline]
#[track_caller]
pub fn bias_add_v1(value: &Output, bias: &Output) -> Output {
    value.graph().op("BiasAddV1").input(value).input(bias).output()
}

/// The outputs of [`block_lstm`].
#[derive(Clone, Debug)]
pub struct BlockLSTMOutputs {
    /// Output `i`.
    pub i: Output,
    /// Output `cs`.
    pub cs: Output,
    /// Output `f`.
    pub f: Output,
    /// Output `o`.
    pub o: Output,
    /// Output `ci`.
    pub ci: Output,
    /// Output `co`.
    pub co: Output,
    /// Output `h`.
    pub h: Output,
}

/// The attributes of [`block_lstm_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BlockLSTMOptions {
    /// `forget_bias`: float, `1.0` by default.
    pub forget_bias: f32,
    /// `cell_clip`: float, `3.0` by default.
    pub cell_clip: f32,
    /// `use_peephole`: bool, `false` by default.
    pub use_peephole: bool,
}

impl Default for BlockLSTMOptions {
    fn default() -> Self {
        BlockLSTMOptions { forget_bias: 1.0, cell_clip: 3.0, use_peephole: false }
    }
}

/// `BlockLSTM`: A long short-term memory over a sequence.
#[inline]
#[track_caller]
pub fn block_lstm(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
) -> BlockLSTMOutputs {
    block_lstm_with(
        seq_len_max,
        x,
        cs_prev,
        h_prev,
        w,
        wci,
        wcf,
        wco,
        b,
        BlockLSTMOptions::default(),
    )
}

/// [`block_lstm()`] with other attributes.
#[inline]
#[track_caller]
pub fn block_lstm_with(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    options: BlockLSTMOptions,
) -> BlockLSTMOutputs {
    let [i, cs, f, o, ci, co, h] = seq_len_max
        .graph()
        .op("BlockLSTM")
        .input(seq_len_max)
        .input(x)
        .input(cs_prev)
        .input(h_prev)
        .input(w)
        .input(wci)
        .input(wcf)
        .input(wco)
        .input(b)
        .attr("forget_bias", options.forget_bias)
        .attr("cell_clip", options.cell_clip)
        .attr("use_peephole", options.use_peephole)
        .split();
    BlockLSTMOutputs { i, cs, f, o, ci, co, h }
}

/// The outputs of [`block_lstm_grad`].
#[derive(Clone, Debug)]
pub struct BlockLSTMGradOutputs {
    /// Output `x_grad`.
    pub x_grad: Output,
    /// Output `cs_prev_grad`.
    pub cs_prev_grad: Output,
    /// Output `h_prev_grad`.
    pub h_prev_grad: Output,
    /// Output `w_grad`.
    pub w_grad: Output,
    /// Output `wci_grad`.
    pub wci_grad: Output,
    /// Output `wcf_grad`.
    pub wcf_grad: Output,
    /// Output `wco_grad`.
    pub wco_grad: Output,
    /// Output `b_grad`.
    pub b_grad: Output,
}

/// `BlockLSTMGrad`: Gradient of a long short-term memory over a sequence.
#[inline]
#[track_caller]
pub fn block_lstm_grad(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    i: &Output,
    cs: &Output,
    f: &Output,
    o: &Output,
    ci: &Output,
    co: &Output,
    h: &Output,
    cs_grad: &Output,
    h_grad: &Output,
    use_peephole: bool,
) -> BlockLSTMGradOutputs {
    let [x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad] =
        seq_len_max
            .graph()
            .op("BlockLSTMGrad")
            .input(seq_len_max)
            .input(x)
            .input(cs_prev)
            .input(h_prev)
            .input(w)
            .input(wci)
            .input(wcf)
            .input(wco)
            .input(b)
            .input(i)
            .input(cs)
            .input(f)
            .input(o)
            .input(ci)
            .input(co)
            .input(h)
            .input(cs_grad)
            .input(h_grad)
            .attr("use_peephole", use_peephole)
            .split();
    BlockLSTMGradOutputs {
        x_grad,
        cs_prev_grad,
        h_prev_grad,
        w_grad,
        wci_grad,
        wcf_grad,
        wco_grad,
        b_grad,
    }
}

/// The outputs of [`block_lstm_grad_v2`].
#[derive(Clone, Debug)]
pub struct BlockLSTMGradV2Outputs {
    /// Output `x_grad`.
    pub x_grad: Output,
    /// Output `cs_prev_grad`.
    pub cs_prev_grad: Output,
    /// Output `h_prev_grad`.
    pub h_prev_grad: Output,
    /// Output `w_grad`.
    pub w_grad: Output,
    /// Output `wci_grad`.
    pub wci_grad: Output,
    /// Output `wcf_grad`.
    pub wcf_grad: Output,
    /// Output `wco_grad`.
    pub wco_grad: Output,
    /// Output `b_grad`.
    pub b_grad: Output,
}

/// `BlockLSTMGradV2`: Gradient of a long short-term memory over a sequence.
#[inline]
#[track_caller]
pub fn block_lstm_grad_v2(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    i: &Output,
    cs: &Output,
    f: &Output,
    o: &Output,
    ci: &Output,
    co: &Output,
    h: &Output,
    cs_grad: &Output,
    h_grad: &Output,
    use_peephole: bool,
) -> BlockLSTMGradV2Outputs {
    let [x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad] =
        seq_len_max
            .graph()
            .op("BlockLSTMGradV2")
            .input(seq_len_max)
            .input(x)
            .input(cs_prev)
            .input(h_prev)
            .input(w)
            .input(wci)
            .input(wcf)
            .input(wco)
            .input(b)
            .input(i)
            .input(cs)
            .input(f)
            .input(o)
            .input(ci)
            .input(co)
            .input(h)
            .input(cs_grad)
            .input(h_grad)
            .attr("use_peephole", use_peephole)
            .split();
    BlockLSTMGradV2Outputs {
        x_grad,
        cs_prev_grad,
        h_prev_grad,
        w_grad,
        wci_grad,
        wcf_grad,
        wco_grad,
        b_grad,
    }
}

/// The outputs of [`block_lstm_v2`].
#[derive(Clone, Debug)]
pub struct BlockLSTMV2Outputs {
    /// Output `i`.
    pub i: Output,
    /// Output `cs`.
    pub cs: Output,
    /// Output `f`.
    pub f: Output,
    /// Output `o`.
    pub o: Output,
    /// Output `ci`.
    pub ci: Output,
    /// Output `co`.
    pub co: Output,
    /// Output `h`.
    pub h: Output,
}

/// The attributes of [`block_lstm_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BlockLSTMV2Options {
    /// `cell_clip`: float, `0.0` by default.
    pub cell_clip: f32,
    /// `use_peephole`: bool, `false` by default.
    pub use_peephole: bool,
}

impl Default for BlockLSTMV2Options {
    fn default() -> Self {
        BlockLSTMV2Options { cell_clip: 0.0, use_peephole: false }
    }
}

/// `BlockLSTMV2`: A long short-term memory over a sequence.
#[inline]
#[track_caller]
pub fn block_lstm_v2(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
) -> BlockLSTMV2Outputs {
    block_lstm_v2_with(
        seq_len_max,
        x,
        cs_prev,
        h_prev,
        w,
        wci,
        wcf,
        wco,
        b,
        BlockLSTMV2Options::default(),
    )
}

/// [`block_lstm_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn block_lstm_v2_with(
    seq_len_max: &Output,
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    options: BlockLSTMV2Options,
) -> BlockLSTMV2Outputs {
    let [i, cs, f, o, ci, co, h] = seq_len_max
        .graph()
        .op("BlockLSTMV2")
        .input(seq_len_max)
        .input(x)
        .input(cs_prev)
        .input(h_prev)
        .input(w)
        .input(wci)
        .input(wcf)
        .input(wco)
        .input(b)
        .attr("cell_clip", options.cell_clip)
        .attr("use_peephole", options.use_peephole)
        .split();
    BlockLSTMV2Outputs { i, cs, f, o, ci, co, h }
}

/// The outputs of [`ctc_beam_search_decoder`].
#[derive(Clone, Debug)]
pub struct CTCBeamSearchDecoderOutputs {
    /// Output `decoded_indices`.
    pub decoded_indices: Vec<Output>,
    /// Output `decoded_values`.
    pub decoded_values: Vec<Output>,
    /// Output `decoded_shape`.
    pub decoded_shape: Vec<Output>,
    /// Output `log_probability`.
    pub log_probability: Output,
}

/// The attributes of [`ctc_beam_search_decoder_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CTCBeamSearchDecoderOptions {
    /// `merge_repeated`: bool, `true` by default.
    pub merge_repeated: bool,
}

impl Default for CTCBeamSearchDecoderOptions {
    fn default() -> Self {
        CTCBeamSearchDecoderOptions { merge_repeated: true }
    }
}

/// `CTCBeamSearchDecoder`: The likeliest label sequences, found by a beam search.
#[inline]
#[track_caller]
pub fn ctc_beam_search_decoder(
    inputs: &Output,
    sequence_length: &Output,
    beam_width: i64,
    top_paths: i64,
) -> CTCBeamSearchDecoderOutputs {
    ctc_beam_search_decoder_with(
        inputs,
        sequence_length,
        beam_width,
        top_paths,
        CTCBeamSearchDecoderOptions::default(),
    )
}

/// [`ctc_beam_search_decoder()`] with other attributes.
#[inline]
#[track_caller]
pub fn ctc_beam_search_decoder_with(
    inputs: &Output,
    sequence_length: &Output,
    beam_width: i64,
    top_paths: i64,
    options: CTCBeamSearchDecoderOptions,
) -> CTCBeamSearchDecoderOutputs {
    let mut arguments = inputs
        .graph()
        .op("CTCBeamSearchDecoder")
        .input(inputs)
        .input(sequence_length)
        .attr("beam_width", beam_width)
        .attr("top_paths", top_paths)
        .attr("merge_repeated", options.merge_repeated)
        .outputs_by_argument();
    let decoded_indices = arguments.next_list();
    let decoded_values = arguments.next_list();
    let decoded_shape = arguments.next_list();
    let log_probability = arguments.next_output();
    CTCBeamSearchDecoderOutputs { decoded_indices, decoded_values, decoded_shape, log_probability }
}

/// The outputs of [`ctc_greedy_decoder`].
#[derive(Clone, Debug)]
pub struct CTCGreedyDecoderOutputs {
    /// Output `decoded_indices`.
    pub decoded_indices: Output,
    /// Output `decoded_values`.
    pub decoded_values: Output,
    /// Output `decoded_shape`.
    pub decoded_shape: Output,
    /// Output `log_probability`.
    pub log_probability: Output,
}

/// The attributes of [`ctc_greedy_decoder_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CTCGreedyDecoderOptions {
    /// `merge_repeated`: bool, `false` by default.
    pub merge_repeated: bool,
    /// `blank_index`: int, `-1` by default.
    pub blank_index: i64,
}

impl Default for CTCGreedyDecoderOptions {
    fn default() -> Self {
        CTCGreedyDecoderOptions { merge_repeated: false, blank_index: -1 }
    }
}

/// `CTCGreedyDecoder`: The likeliest class at each time, without blanks and repetitions.
#[inline]
#[track_caller]
pub fn ctc_greedy_decoder(inputs: &Output, sequence_length: &Output) -> CTCGreedyDecoderOutputs {
    ctc_greedy_decoder_with(inputs, sequence_length, CTCGreedyDecoderOptions::default())
}

/// [`ctc_greedy_decoder()`] with other attributes.
#[inline]
#[track_caller]
pub fn ctc_greedy_decoder_with(
    inputs: &Output,
    sequence_length: &Output,
    options: CTCGreedyDecoderOptions,
) -> CTCGreedyDecoderOutputs {
    let [decoded_indices, decoded_values, decoded_shape, log_probability] = inputs
        .graph()
        .op("CTCGreedyDecoder")
        .input(inputs)
        .input(sequence_length)
        .attr("merge_repeated", options.merge_repeated)
        .attr("blank_index", options.blank_index)
        .split();
    CTCGreedyDecoderOutputs { decoded_indices, decoded_values, decoded_shape, log_probability }
}

/// The attributes of [`ctc_loss_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CTCLossOptions {
    /// `preprocess_collapse_repeated`: bool, `false` by default.
    pub preprocess_collapse_repeated: bool,
    /// `ctc_merge_repeated`: bool, `true` by default.
    pub ctc_merge_repeated: bool,
    /// `ignore_longer_outputs_than_inputs`: bool, `false` by default.
    pub ignore_longer_outputs_than_inputs: bool,
}

impl Default for CTCLossOptions {
    fn default() -> Self {
        CTCLossOptions {
            preprocess_collapse_repeated: false,
            ctc_merge_repeated: true,
            ignore_longer_outputs_than_inputs: false,
        }
    }
}

/// `CTCLoss`: The CTC loss of sequences of class activations, and its gradient.
///
/// Returns (`loss`, `gradient`).
#[inline]
#[track_caller]
pub fn ctc_loss(
    inputs: &Output,
    labels_indices: &Output,
    labels_values: &Output,
    sequence_length: &Output,
) -> (Output, Output) {
    ctc_loss_with(inputs, labels_indices, labels_values, sequence_length, CTCLossOptions::default())
}

/// [`ctc_loss()`] with other attributes.
#[inline]
#[track_caller]
pub fn ctc_loss_with(
    inputs: &Output,
    labels_indices: &Output,
    labels_values: &Output,
    sequence_length: &Output,
    options: CTCLossOptions,
) -> (Output, Output) {
    let [loss, gradient] = inputs
        .graph()
        .op("CTCLoss")
        .input(inputs)
        .input(labels_indices)
        .input(labels_values)
        .input(sequence_length)
        .attr("preprocess_collapse_repeated", options.preprocess_collapse_repeated)
        .attr("ctc_merge_repeated", options.ctc_merge_repeated)
        .attr("ignore_longer_outputs_than_inputs", options.ignore_longer_outputs_than_inputs)
        .split();
    (loss, gradient)
}

/// The attributes of [`conv_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ConvOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"CHANNELS_LAST"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, empty by default.
    pub dilations: &'a [i64],
    /// `batch_dims`: int, `1` by default.
    pub batch_dims: i64,
    /// `groups`: int, `1` by default.
    pub groups: i64,
}

impl Default for ConvOptions<'_> {
    fn default() -> Self {
        ConvOptions {
            explicit_paddings: &[],
            data_format: "CHANNELS_LAST",
            dilations: &[],
            batch_dims: 1,
            groups: 1,
        }
    }
}

/// `Conv`: Convolution of images or volumes with filters.
#[inline]
#[track_caller]
pub fn conv(input: &Output, filter: &Output, strides: &[i64], padding: &str) -> Output {
    conv_with(input, filter, strides, padding, ConvOptions::default())
}

/// [`conv()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv_with(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    padding: &str,
    options: ConvOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv")
        .input(input)
        .input(filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .attr("batch_dims", options.batch_dims)
        .attr("groups", options.groups)
        .output()
}

/// The attributes of [`conv2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv2DOptions<'a> {
    /// `use_cudnn_on_gpu`: bool, `true` by default.
    pub use_cudnn_on_gpu: bool,
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv2DOptions<'_> {
    fn default() -> Self {
        Conv2DOptions {
            use_cudnn_on_gpu: true,
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `Conv2D`: Convolution of images with filters.
#[inline]
#[track_caller]
pub fn conv2d(input: &Output, filter: &Output, strides: &[i64], padding: &str) -> Output {
    conv2d_with(input, filter, strides, padding, Conv2DOptions::default())
}

/// [`conv2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv2d_with(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv2DOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv2D")
        .input(input)
        .input(filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("use_cudnn_on_gpu", options.use_cudnn_on_gpu)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv2d_backprop_filter_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv2DBackpropFilterOptions<'a> {
    /// `use_cudnn_on_gpu`: bool, `true` by default.
    pub use_cudnn_on_gpu: bool,
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv2DBackpropFilterOptions<'_> {
    fn default() -> Self {
        Conv2DBackpropFilterOptions {
            use_cudnn_on_gpu: true,
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `Conv2DBackpropFilter`: Gradient of Conv2D for its filter.
#[inline]
#[track_caller]
pub fn conv2d_backprop_filter(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv2d_backprop_filter_with(
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        Conv2DBackpropFilterOptions::default(),
    )
}

/// [`conv2d_backprop_filter()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv2d_backprop_filter_with(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv2DBackpropFilterOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv2DBackpropFilter")
        .input(input)
        .input(filter_sizes)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("use_cudnn_on_gpu", options.use_cudnn_on_gpu)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv2d_backprop_input_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv2DBackpropInputOptions<'a> {
    /// `use_cudnn_on_gpu`: bool, `true` by default.
    pub use_cudnn_on_gpu: bool,
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv2DBackpropInputOptions<'_> {
    fn default() -> Self {
        Conv2DBackpropInputOptions {
            use_cudnn_on_gpu: true,
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `Conv2DBackpropInput`: Gradient of Conv2D for its input.
#[inline]
#[track_caller]
pub fn conv2d_backprop_input(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv2d_backprop_input_with(
        input_sizes,
        filter,
        out_backprop,
        strides,
        padding,
        Conv2DBackpropInputOptions::default(),
    )
}

/// [`conv2d_backprop_input()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv2d_backprop_input_with(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv2DBackpropInputOptions<'_>,
) -> Output {
    input_sizes
        .graph()
        .op("Conv2DBackpropInput")
        .input(input_sizes)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("use_cudnn_on_gpu", options.use_cudnn_on_gpu)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv3d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv3DOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv3DOptions<'_> {
    fn default() -> Self {
        Conv3DOptions { data_format: "NDHWC", dilations: &[1, 1, 1, 1, 1] }
    }
}

/// `Conv3D`: Convolution of volumes with filters.
#[inline]
#[track_caller]
pub fn conv3d(input: &Output, filter: &Output, strides: &[i64], padding: &str) -> Output {
    conv3d_with(input, filter, strides, padding, Conv3DOptions::default())
}

/// [`conv3d()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv3d_with(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv3DOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv3D")
        .input(input)
        .input(filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv3d_backprop_filter_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv3DBackpropFilterOptions<'a> {
    /// `dilations`: list of ints, `[1, 1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv3DBackpropFilterOptions<'_> {
    fn default() -> Self {
        Conv3DBackpropFilterOptions { dilations: &[1, 1, 1, 1, 1] }
    }
}

/// `Conv3DBackpropFilter`: Gradient of Conv3D for its filter.
#[inline]
#[track_caller]
pub fn conv3d_backprop_filter(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv3d_backprop_filter_with(
        input,
        filter,
        out_backprop,
        strides,
        padding,
        Conv3DBackpropFilterOptions::default(),
    )
}

/// [`conv3d_backprop_filter()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv3d_backprop_filter_with(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv3DBackpropFilterOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv3DBackpropFilter")
        .input(input)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv3d_backprop_filter_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv3DBackpropFilterV2Options<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv3DBackpropFilterV2Options<'_> {
    fn default() -> Self {
        Conv3DBackpropFilterV2Options { data_format: "NDHWC", dilations: &[1, 1, 1, 1, 1] }
    }
}

/// `Conv3DBackpropFilterV2`: Gradient of Conv3D for its filter.
#[inline]
#[track_caller]
pub fn conv3d_backprop_filter_v2(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv3d_backprop_filter_v2_with(
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        Conv3DBackpropFilterV2Options::default(),
    )
}

/// [`conv3d_backprop_filter_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv3d_backprop_filter_v2_with(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv3DBackpropFilterV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("Conv3DBackpropFilterV2")
        .input(input)
        .input(filter_sizes)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv3d_backprop_input_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv3DBackpropInputOptions<'a> {
    /// `dilations`: list of ints, `[1, 1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv3DBackpropInputOptions<'_> {
    fn default() -> Self {
        Conv3DBackpropInputOptions { dilations: &[1, 1, 1, 1, 1] }
    }
}

/// `Conv3DBackpropInput`: Gradient of Conv3D for its input.
#[inline]
#[track_caller]
pub fn conv3d_backprop_input(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv3d_backprop_input_with(
        input,
        filter,
        out_backprop,
        strides,
        padding,
        Conv3DBackpropInputOptions::default(),
    )
}

/// [`conv3d_backprop_input()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv3d_backprop_input_with(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv3DBackpropInputOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Conv3DBackpropInput")
        .input(input)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`conv3d_backprop_input_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct Conv3DBackpropInputV2Options<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for Conv3DBackpropInputV2Options<'_> {
    fn default() -> Self {
        Conv3DBackpropInputV2Options { data_format: "NDHWC", dilations: &[1, 1, 1, 1, 1] }
    }
}

/// `Conv3DBackpropInputV2`: Gradient of Conv3D for its input.
#[inline]
#[track_caller]
pub fn conv3d_backprop_input_v2(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    conv3d_backprop_input_v2_with(
        input_sizes,
        filter,
        out_backprop,
        strides,
        padding,
        Conv3DBackpropInputV2Options::default(),
    )
}

/// [`conv3d_backprop_input_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn conv3d_backprop_input_v2_with(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: Conv3DBackpropInputV2Options<'_>,
) -> Output {
    input_sizes
        .graph()
        .op("Conv3DBackpropInputV2")
        .input(input_sizes)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`data_format_dim_map_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DataFormatDimMapOptions<'a> {
    /// `src_format`: string, `"NHWC"` by default.
    pub src_format: &'a str,
    /// `dst_format`: string, `"NCHW"` by default.
    pub dst_format: &'a str,
}

impl Default for DataFormatDimMapOptions<'_> {
    fn default() -> Self {
        DataFormatDimMapOptions { src_format: "NHWC", dst_format: "NCHW" }
    }
}

/// `DataFormatDimMap`: Where dimensions of one layout of images are in another.
#[inline]
#[track_caller]
pub fn data_format_dim_map(x: &Output) -> Output {
    data_format_dim_map_with(x, DataFormatDimMapOptions::default())
}

/// [`data_format_dim_map()`] with other attributes.
#[inline]
#[track_caller]
pub fn data_format_dim_map_with(x: &Output, options: DataFormatDimMapOptions<'_>) -> Output {
    x.graph()
        .op("DataFormatDimMap")
        .input(x)
        .attr("src_format", options.src_format)
        .attr("dst_format", options.dst_format)
        .output()
}

/// The attributes of [`data_format_vec_permute_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DataFormatVecPermuteOptions<'a> {
    /// `src_format`: string, `"NHWC"` by default.
    pub src_format: &'a str,
    /// `dst_format`: string, `"NCHW"` by default.
    pub dst_format: &'a str,
}

impl Default for DataFormatVecPermuteOptions<'_> {
    fn default() -> Self {
        DataFormatVecPermuteOptions { src_format: "NHWC", dst_format: "NCHW" }
    }
}

/// `DataFormatVecPermute`: A value for each dimension of one layout of images, in the order of
/// another.
#[inline]
#[track_caller]
pub fn data_format_vec_permute(x: &Output) -> Output {
    data_format_vec_permute_with(x, DataFormatVecPermuteOptions::default())
}

/// [`data_format_vec_permute()`] with other attributes.
#[inline]
#[track_caller]
pub fn data_format_vec_permute_with(
    x: &Output,
    options: DataFormatVecPermuteOptions<'_>,
) -> Output {
    x.graph()
        .op("DataFormatVecPermute")
        .input(x)
        .attr("src_format", options.src_format)
        .attr("dst_format", options.dst_format)
        .output()
}

/// The attributes of [`depthwise_conv2d_native_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DepthwiseConv2dNativeOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for DepthwiseConv2dNativeOptions<'_> {
    fn default() -> Self {
        DepthwiseConv2dNativeOptions {
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `DepthwiseConv2dNative`: Convolution of every channel with filters of its own.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    depthwise_conv2d_native_with(
        input,
        filter,
        strides,
        padding,
        DepthwiseConv2dNativeOptions::default(),
    )
}

/// [`depthwise_conv2d_native()`] with other attributes.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native_with(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    padding: &str,
    options: DepthwiseConv2dNativeOptions<'_>,
) -> Output {
    input
        .graph()
        .op("DepthwiseConv2dNative")
        .input(input)
        .input(filter)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`depthwise_conv2d_native_backprop_filter_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DepthwiseConv2dNativeBackpropFilterOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for DepthwiseConv2dNativeBackpropFilterOptions<'_> {
    fn default() -> Self {
        DepthwiseConv2dNativeBackpropFilterOptions {
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `DepthwiseConv2dNativeBackpropFilter`: Gradient of DepthwiseConv2dNative for its filter.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native_backprop_filter(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    depthwise_conv2d_native_backprop_filter_with(
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        DepthwiseConv2dNativeBackpropFilterOptions::default(),
    )
}

/// [`depthwise_conv2d_native_backprop_filter()`] with other attributes.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native_backprop_filter_with(
    input: &Output,
    filter_sizes: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: DepthwiseConv2dNativeBackpropFilterOptions<'_>,
) -> Output {
    input
        .graph()
        .op("DepthwiseConv2dNativeBackpropFilter")
        .input(input)
        .input(filter_sizes)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// The attributes of [`depthwise_conv2d_native_backprop_input_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DepthwiseConv2dNativeBackpropInputOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `dilations`: list of ints, `[1, 1, 1, 1]` by default.
    pub dilations: &'a [i64],
}

impl Default for DepthwiseConv2dNativeBackpropInputOptions<'_> {
    fn default() -> Self {
        DepthwiseConv2dNativeBackpropInputOptions {
            explicit_paddings: &[],
            data_format: "NHWC",
            dilations: &[1, 1, 1, 1],
        }
    }
}

/// `DepthwiseConv2dNativeBackpropInput`: Gradient of DepthwiseConv2dNative for its input.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native_backprop_input(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
) -> Output {
    depthwise_conv2d_native_backprop_input_with(
        input_sizes,
        filter,
        out_backprop,
        strides,
        padding,
        DepthwiseConv2dNativeBackpropInputOptions::default(),
    )
}

/// [`depthwise_conv2d_native_backprop_input()`] with other attributes.
#[inline]
#[track_caller]
pub fn depthwise_conv2d_native_backprop_input_with(
    input_sizes: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    padding: &str,
    options: DepthwiseConv2dNativeBackpropInputOptions<'_>,
) -> Output {
    input_sizes
        .graph()
        .op("DepthwiseConv2dNativeBackpropInput")
        .input(input_sizes)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .attr("dilations", list(options.dilations))
        .output()
}

/// `Dilation2D`: The largest sum of image and filter under a sliding window.
#[inline]
#[track_caller]
pub fn dilation2d(
    input: &Output,
    filter: &Output,
    strides: &[i64],
    rates: &[i64],
    padding: &str,
) -> Output {
    input
        .graph()
        .op("Dilation2D")
        .input(input)
        .input(filter)
        .attr("strides", list(strides))
        .attr("rates", list(rates))
        .attr("padding", padding)
        .output()
}

/// `Dilation2DBackpropFilter`: Gradient of Dilation2D for its filter.
#[inline]
#[track_caller]
pub fn dilation2d_backprop_filter(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    rates: &[i64],
    padding: &str,
) -> Output {
    input
        .graph()
        .op("Dilation2DBackpropFilter")
        .input(input)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("rates", list(rates))
        .attr("padding", padding)
        .output()
}

/// `Dilation2DBackpropInput`: Gradient of Dilation2D for its input.
#[inline]
#[track_caller]
pub fn dilation2d_backprop_input(
    input: &Output,
    filter: &Output,
    out_backprop: &Output,
    strides: &[i64],
    rates: &[i64],
    padding: &str,
) -> Output {
    input
        .graph()
        .op("Dilation2DBackpropInput")
        .input(input)
        .input(filter)
        .input(out_backprop)
        .attr("strides", list(strides))
        .attr("rates", list(rates))
        .attr("padding", padding)
        .output()
}

/// `Elu`: Element-wise `features`, and `exp(features) - 1` below 0.
#[inline]
#[track_caller]
pub fn elu(features: &Output) -> Output {
    features.graph().op("Elu").input(features).output()
}

/// `EluGrad`: Gradient of Elu, from its result.
#[inline]
#[track_caller]
pub fn elu_grad(gradients: &Output, outputs: &Output) -> Output {
    gradients.graph().op("EluGrad").input(gradients).input(outputs).output()
}

/// The attributes of [`fractional_avg_pool_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FractionalAvgPoolOptions {
    /// `pseudo_random`: bool, `false` by default.
    pub pseudo_random: bool,
    /// `overlapping`: bool, `false` by default.
    pub overlapping: bool,
    /// `deterministic`: bool, `false` by default.
    pub deterministic: bool,
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for FractionalAvgPoolOptions {
    fn default() -> Self {
        FractionalAvgPoolOptions {
            pseudo_random: false,
            overlapping: false,
            deterministic: false,
            seed: 0,
            seed2: 0,
        }
    }
}

/// `FractionalAvgPool`: The means of windows of random sizes.
///
/// Returns (`output`, `row_pooling_sequence`, `col_pooling_sequence`).
#[inline]
#[track_caller]
pub fn fractional_avg_pool(value: &Output, pooling_ratio: &[f32]) -> (Output, Output, Output) {
    fractional_avg_pool_with(value, pooling_ratio, FractionalAvgPoolOptions::default())
}

/// [`fractional_avg_pool()`] with other attributes.
#[inline]
#[track_caller]
pub fn fractional_avg_pool_with(
    value: &Output,
    pooling_ratio: &[f32],
    options: FractionalAvgPoolOptions,
) -> (Output, Output, Output) {
    let [output, row_pooling_sequence, col_pooling_sequence] = value
        .graph()
        .op("FractionalAvgPool")
        .input(value)
        .attr("pooling_ratio", list(pooling_ratio))
        .attr("pseudo_random", options.pseudo_random)
        .attr("overlapping", options.overlapping)
        .attr("deterministic", options.deterministic)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (output, row_pooling_sequence, col_pooling_sequence)
}

/// The attributes of [`fractional_avg_pool_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FractionalAvgPoolGradOptions {
    /// `overlapping`: bool, `false` by default.
    pub overlapping: bool,
}

impl Default for FractionalAvgPoolGradOptions {
    fn default() -> Self {
        FractionalAvgPoolGradOptions { overlapping: false }
    }
}

/// `FractionalAvgPoolGrad`: Gradient of FractionalAvgPool.
#[inline]
#[track_caller]
pub fn fractional_avg_pool_grad(
    orig_input_tensor_shape: &Output,
    out_backprop: &Output,
    row_pooling_sequence: &Output,
    col_pooling_sequence: &Output,
) -> Output {
    fractional_avg_pool_grad_with(
        orig_input_tensor_shape,
        out_backprop,
        row_pooling_sequence,
        col_pooling_sequence,
        FractionalAvgPoolGradOptions::default(),
    )
}

/// [`fractional_avg_pool_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn fractional_avg_pool_grad_with(
    orig_input_tensor_shape: &Output,
    out_backprop: &Output,
    row_pooling_sequence: &Output,
    col_pooling_sequence: &Output,
    options: FractionalAvgPoolGradOptions,
) -> Output {
    orig_input_tensor_shape
        .graph()
        .op("FractionalAvgPoolGrad")
        .input(orig_input_tensor_shape)
        .input(out_backprop)
        .input(row_pooling_sequence)
        .input(col_pooling_sequence)
        .attr("overlapping", options.overlapping)
        .output()
}

/// The attributes of [`fractional_max_pool_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FractionalMaxPoolOptions {
    /// `pseudo_random`: bool, `false` by default.
    pub pseudo_random: bool,
    /// `overlapping`: bool, `false` by default.
    pub overlapping: bool,
    /// `deterministic`: bool, `false` by default.
    pub deterministic: bool,
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for FractionalMaxPoolOptions {
    fn default() -> Self {
        FractionalMaxPoolOptions {
            pseudo_random: false,
            overlapping: false,
            deterministic: false,
            seed: 0,
            seed2: 0,
        }
    }
}

/// `FractionalMaxPool`: The largest elements of windows of random sizes.
///
/// Returns (`output`, `row_pooling_sequence`, `col_pooling_sequence`).
#[inline]
#[track_caller]
pub fn fractional_max_pool(value: &Output, pooling_ratio: &[f32]) -> (Output, Output, Output) {
    fractional_max_pool_with(value, pooling_ratio, FractionalMaxPoolOptions::default())
}

/// [`fractional_max_pool()`] with other attributes.
#[inline]
#[track_caller]
pub fn fractional_max_pool_with(
    value: &Output,
    pooling_ratio: &[f32],
    options: FractionalMaxPoolOptions,
) -> (Output, Output, Output) {
    let [output, row_pooling_sequence, col_pooling_sequence] = value
        .graph()
        .op("FractionalMaxPool")
        .input(value)
        .attr("pooling_ratio", list(pooling_ratio))
        .attr("pseudo_random", options.pseudo_random)
        .attr("overlapping", options.overlapping)
        .attr("deterministic", options.deterministic)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (output, row_pooling_sequence, col_pooling_sequence)
}

/// The attributes of [`fractional_max_pool_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FractionalMaxPoolGradOptions {
    /// `overlapping`: bool, `false` by default.
    pub overlapping: bool,
}

impl Default for FractionalMaxPoolGradOptions {
    fn default() -> Self {
        FractionalMaxPoolGradOptions { overlapping: false }
    }
}

/// `FractionalMaxPoolGrad`: Gradient of FractionalMaxPool.
#[inline]
#[track_caller]
pub fn fractional_max_pool_grad(
    orig_input: &Output,
    orig_output: &Output,
    out_backprop: &Output,
    row_pooling_sequence: &Output,
    col_pooling_sequence: &Output,
) -> Output {
    fractional_max_pool_grad_with(
        orig_input,
        orig_output,
        out_backprop,
        row_pooling_sequence,
        col_pooling_sequence,
        FractionalMaxPoolGradOptions::default(),
    )
}

/// [`fractional_max_pool_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn fractional_max_pool_grad_with(
    orig_input: &Output,
    orig_output: &Output,
    out_backprop: &Output,
    row_pooling_sequence: &Output,
    col_pooling_sequence: &Output,
    options: FractionalMaxPoolGradOptions,
) -> Output {
    orig_input
        .graph()
        .op("FractionalMaxPoolGrad")
        .input(orig_input)
        .input(orig_output)
        .input(out_backprop)
        .input(row_pooling_sequence)
        .input(col_pooling_sequence)
        .attr("overlapping", options.overlapping)
        .output()
}

/// The outputs of [`fused_batch_norm`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormOutputs {
    /// Output `y`.
    pub y: Output,
    /// Output `batch_mean`.
    pub batch_mean: Output,
    /// Output `batch_variance`.
    pub batch_variance: Output,
    /// Output `reserve_space_1`.
    pub reserve_space_1: Output,
    /// Output `reserve_space_2`.
    pub reserve_space_2: Output,
}

/// The attributes of [`fused_batch_norm_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormOptions<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `exponential_avg_factor`: float, `1.0` by default.
    pub exponential_avg_factor: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormOptions<'_> {
    fn default() -> Self {
        FusedBatchNormOptions {
            epsilon: 0.0001,
            exponential_avg_factor: 1.0,
            data_format: "NHWC",
            is_training: true,
        }
    }
}

/// `FusedBatchNorm`: Normalises channels by their mean and variance, then scales and shifts them.
#[inline]
#[track_caller]
pub fn fused_batch_norm(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
) -> FusedBatchNormOutputs {
    fused_batch_norm_with(x, scale, offset, mean, variance, FusedBatchNormOptions::default())
}

/// [`fused_batch_norm()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_with(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
    options: FusedBatchNormOptions<'_>,
) -> FusedBatchNormOutputs {
    let [y, batch_mean, batch_variance, reserve_space_1, reserve_space_2] = x
        .graph()
        .op("FusedBatchNorm")
        .input(x)
        .input(scale)
        .input(offset)
        .input(mean)
        .input(variance)
        .attr("epsilon", options.epsilon)
        .attr("exponential_avg_factor", options.exponential_avg_factor)
        .attr("data_format", options.data_format)
        .attr("is_training", options.is_training)
        .split();
    FusedBatchNormOutputs { y, batch_mean, batch_variance, reserve_space_1, reserve_space_2 }
}

/// The outputs of [`fused_batch_norm_grad`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradOutputs {
    /// Output `x_backprop`.
    pub x_backprop: Output,
    /// Output `scale_backprop`.
    pub scale_backprop: Output,
    /// Output `offset_backprop`.
    pub offset_backprop: Output,
    /// Output `reserve_space_3`.
    pub reserve_space_3: Output,
    /// Output `reserve_space_4`.
    pub reserve_space_4: Output,
}

/// The attributes of [`fused_batch_norm_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradOptions<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormGradOptions<'_> {
    fn default() -> Self {
        FusedBatchNormGradOptions { epsilon: 0.0001, data_format: "NHWC", is_training: true }
    }
}

/// `FusedBatchNormGrad`: Gradient of batch normalisation.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
) -> FusedBatchNormGradOutputs {
    fused_batch_norm_grad_with(
        y_backprop,
        x,
        scale,
        reserve_space_1,
        reserve_space_2,
        FusedBatchNormGradOptions::default(),
    )
}

/// [`fused_batch_norm_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad_with(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
    options: FusedBatchNormGradOptions<'_>,
) -> FusedBatchNormGradOutputs {
    let [x_backprop, scale_backprop, offset_backprop, reserve_space_3, reserve_space_4] =
        y_backprop
            .graph()
            .op("FusedBatchNormGrad")
            .input(y_backprop)
            .input(x)
            .input(scale)
            .input(reserve_space_1)
            .input(reserve_space_2)
            .attr("epsilon", options.epsilon)
            .attr("data_format", options.data_format)
            .attr("is_training", options.is_training)
            .split();
    FusedBatchNormGradOutputs {
        x_backprop,
        scale_backprop,
        offset_backprop,
        reserve_space_3,
        reserve_space_4,
    }
}

/// The outputs of [`fused_batch_norm_grad_v2`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradV2Outputs {
    /// Output `x_backprop`.
    pub x_backprop: Output,
    /// Output `scale_backprop`.
    pub scale_backprop: Output,
    /// Output `offset_backprop`.
    pub offset_backprop: Output,
    /// Output `reserve_space_3`.
    pub reserve_space_3: Output,
    /// Output `reserve_space_4`.
    pub reserve_space_4: Output,
}

/// The attributes of [`fused_batch_norm_grad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradV2Options<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormGradV2Options<'_> {
    fn default() -> Self {
        FusedBatchNormGradV2Options { epsilon: 0.0001, data_format: "NHWC", is_training: true }
    }
}

/// `FusedBatchNormGradV2`: Gradient of batch normalisation.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad_v2(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
) -> FusedBatchNormGradV2Outputs {
    fused_batch_norm_grad_v2_with(
        y_backprop,
        x,
        scale,
        reserve_space_1,
        reserve_space_2,
        FusedBatchNormGradV2Options::default(),
    )
}

/// [`fused_batch_norm_grad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad_v2_with(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
    options: FusedBatchNormGradV2Options<'_>,
) -> FusedBatchNormGradV2Outputs {
    let [x_backprop, scale_backprop, offset_backprop, reserve_space_3, reserve_space_4] =
        y_backprop
            .graph()
            .op("FusedBatchNormGradV2")
            .input(y_backprop)
            .input(x)
            .input(scale)
            .input(reserve_space_1)
            .input(reserve_space_2)
            .attr("epsilon", options.epsilon)
            .attr("data_format", options.data_format)
            .attr("is_training", options.is_training)
            .split();
    FusedBatchNormGradV2Outputs {
        x_backprop,
        scale_backprop,
        offset_backprop,
        reserve_space_3,
        reserve_space_4,
    }
}

/// The outputs of [`fused_batch_norm_grad_v3`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradV3Outputs {
    /// Output `x_backprop`.
    pub x_backprop: Output,
    /// Output `scale_backprop`.
    pub scale_backprop: Output,
    /// Output `offset_backprop`.
    pub offset_backprop: Output,
    /// Output `reserve_space_4`.
    pub reserve_space_4: Output,
    /// Output `reserve_space_5`.
    pub reserve_space_5: Output,
}

/// The attributes of [`fused_batch_norm_grad_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormGradV3Options<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormGradV3Options<'_> {
    fn default() -> Self {
        FusedBatchNormGradV3Options { epsilon: 0.0001, data_format: "NHWC", is_training: true }
    }
}

/// `FusedBatchNormGradV3`: Gradient of batch normalisation.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad_v3(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
    reserve_space_3: &Output,
) -> FusedBatchNormGradV3Outputs {
    fused_batch_norm_grad_v3_with(
        y_backprop,
        x,
        scale,
        reserve_space_1,
        reserve_space_2,
        reserve_space_3,
        FusedBatchNormGradV3Options::default(),
    )
}

/// [`fused_batch_norm_grad_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_grad_v3_with(
    y_backprop: &Output,
    x: &Output,
    scale: &Output,
    reserve_space_1: &Output,
    reserve_space_2: &Output,
    reserve_space_3: &Output,
    options: FusedBatchNormGradV3Options<'_>,
) -> FusedBatchNormGradV3Outputs {
    let [x_backprop, scale_backprop, offset_backprop, reserve_space_4, reserve_space_5] =
        y_backprop
            .graph()
            .op("FusedBatchNormGradV3")
            .input(y_backprop)
            .input(x)
            .input(scale)
            .input(reserve_space_1)
            .input(reserve_space_2)
            .input(reserve_space_3)
            .attr("epsilon", options.epsilon)
            .attr("data_format", options.data_format)
            .attr("is_training", options.is_training)
            .split();
    FusedBatchNormGradV3Outputs {
        x_backprop,
        scale_backprop,
        offset_backprop,
        reserve_space_4,
        reserve_space_5,
    }
}

/// The outputs of [`fused_batch_norm_v2`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormV2Outputs {
    /// Output `y`.
    pub y: Output,
    /// Output `batch_mean`.
    pub batch_mean: Output,
    /// Output `batch_variance`.
    pub batch_variance: Output,
    /// Output `reserve_space_1`.
    pub reserve_space_1: Output,
    /// Output `reserve_space_2`.
    pub reserve_space_2: Output,
}

/// The attributes of [`fused_batch_norm_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormV2Options<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `exponential_avg_factor`: float, `1.0` by default.
    pub exponential_avg_factor: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormV2Options<'_> {
    fn default() -> Self {
        FusedBatchNormV2Options {
            epsilon: 0.0001,
            exponential_avg_factor: 1.0,
            data_format: "NHWC",
            is_training: true,
        }
    }
}

/// `FusedBatchNormV2`: Normalises channels by their mean and variance, then scales and shifts them.
#[inline]
#[track_caller]
pub fn fused_batch_norm_v2(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
) -> FusedBatchNormV2Outputs {
    fused_batch_norm_v2_with(x, scale, offset, mean, variance, FusedBatchNormV2Options::default())
}

/// [`fused_batch_norm_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_v2_with(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
    options: FusedBatchNormV2Options<'_>,
) -> FusedBatchNormV2Outputs {
    let [y, batch_mean, batch_variance, reserve_space_1, reserve_space_2] = x
        .graph()
        .op("FusedBatchNormV2")
        .input(x)
        .input(scale)
        .input(offset)
        .input(mean)
        .input(variance)
        .attr("epsilon", options.epsilon)
        .attr("exponential_avg_factor", options.exponential_avg_factor)
        .attr("data_format", options.data_format)
        .attr("is_training", options.is_training)
        .split();
    FusedBatchNormV2Outputs { y, batch_mean, batch_variance, reserve_space_1, reserve_space_2 }
}

/// The outputs of [`fused_batch_norm_v3`].
#[derive(Clone, Debug)]
pub struct FusedBatchNormV3Outputs {
    /// Output `y`.
    pub y: Output,
    /// Output `batch_mean`.
    pub batch_mean: Output,
    /// Output `batch_variance`.
    pub batch_variance: Output,
    /// Output `reserve_space_1`.
    pub reserve_space_1: Output,
    /// Output `reserve_space_2`.
    pub reserve_space_2: Output,
    /// Output `reserve_space_3`.
    pub reserve_space_3: Output,
}

/// The attributes of [`fused_batch_norm_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedBatchNormV3Options<'a> {
    /// `epsilon`: float, `0.0001` by default.
    pub epsilon: f32,
    /// `exponential_avg_factor`: float, `1.0` by default.
    pub exponential_avg_factor: f32,
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
    /// `is_training`: bool, `true` by default.
    pub is_training: bool,
}

impl Default for FusedBatchNormV3Options<'_> {
    fn default() -> Self {
        FusedBatchNormV3Options {
            epsilon: 0.0001,
            exponential_avg_factor: 1.0,
            data_format: "NHWC",
            is_training: true,
        }
    }
}

/// `FusedBatchNormV3`: Normalises channels by their mean and variance, then scales and shifts them.
#[inline]
#[track_caller]
pub fn fused_batch_norm_v3(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
) -> FusedBatchNormV3Outputs {
    fused_batch_norm_v3_with(x, scale, offset, mean, variance, FusedBatchNormV3Options::default())
}

/// [`fused_batch_norm_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_batch_norm_v3_with(
    x: &Output,
    scale: &Output,
    offset: &Output,
    mean: &Output,
    variance: &Output,
    options: FusedBatchNormV3Options<'_>,
) -> FusedBatchNormV3Outputs {
    let [y, batch_mean, batch_variance, reserve_space_1, reserve_space_2, reserve_space_3] = x
        .graph()
        .op("FusedBatchNormV3")
        .input(x)
        .input(scale)
        .input(offset)
        .input(mean)
        .input(variance)
        .attr("epsilon", options.epsilon)
        .attr("exponential_avg_factor", options.exponential_avg_factor)
        .attr("data_format", options.data_format)
        .attr("is_training", options.is_training)
        .split();
    FusedBatchNormV3Outputs {
        y,
        batch_mean,
        batch_variance,
        reserve_space_1,
        reserve_space_2,
        reserve_space_3,
    }
}

/// `FusedPadConv2D`: A convolution of images surrounded with their mirror images.
#[inline]
#[track_caller]
pub fn fused_pad_conv2d(
    input: &Output,
    paddings: &Output,
    filter: &Output,
    mode: &str,
    strides: &[i64],
    padding: &str,
) -> Output {
    input
        .graph()
        .op("FusedPadConv2D")
        .input(input)
        .input(paddings)
        .input(filter)
        .attr("mode", mode)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .output()
}

/// The attributes of [`fused_resize_and_pad_conv2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FusedResizeAndPadConv2DOptions {
    /// `resize_align_corners`: bool, `false` by default.
    pub resize_align_corners: bool,
}

impl Default for FusedResizeAndPadConv2DOptions {
    fn default() -> Self {
        FusedResizeAndPadConv2DOptions { resize_align_corners: false }
    }
}

/// `FusedResizeAndPadConv2D`: A convolution of images that are resized and surrounded with their
/// mirror images.
#[inline]
#[track_caller]
pub fn fused_resize_and_pad_conv2d(
    input: &Output,
    size: &Output,
    paddings: &Output,
    filter: &Output,
    mode: &str,
    strides: &[i64],
    padding: &str,
) -> Output {
    fused_resize_and_pad_conv2d_with(
        input,
        size,
        paddings,
        filter,
        mode,
        strides,
        padding,
        FusedResizeAndPadConv2DOptions::default(),
    )
}

/// [`fused_resize_and_pad_conv2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn fused_resize_and_pad_conv2d_with(
    input: &Output,
    size: &Output,
    paddings: &Output,
    filter: &Output,
    mode: &str,
    strides: &[i64],
    padding: &str,
    options: FusedResizeAndPadConv2DOptions,
) -> Output {
    input
        .graph()
        .op("FusedResizeAndPadConv2D")
        .input(input)
        .input(size)
        .input(paddings)
        .input(filter)
        .attr("mode", mode)
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("resize_align_corners", options.resize_align_corners)
        .output()
}

/// The outputs of [`gru_block_cell`].
#[derive(Clone, Debug)]
pub struct GRUBlockCellOutputs {
    /// Output `r`.
    pub r: Output,
    /// Output `u`.
    pub u: Output,
    /// Output `c`.
    pub c: Output,
    /// Output `h`.
    pub h: Output,
}

/// `GRUBlockCell`: One step of a gated recurrent unit.
#[inline]
#[track_caller]
pub fn gru_block_cell(
    x: &Output,
    h_prev: &Output,
    w_ru: &Output,
    w_c: &Output,
    b_ru: &Output,
    b_c: &Output,
) -> GRUBlockCellOutputs {
    let [r, u, c, h] = x
        .graph()
        .op("GRUBlockCell")
        .input(x)
        .input(h_prev)
        .input(w_ru)
        .input(w_c)
        .input(b_ru)
        .input(b_c)
        .split();
    GRUBlockCellOutputs { r, u, c, h }
}

/// The outputs of [`gru_block_cell_grad`].
#[derive(Clone, Debug)]
pub struct GRUBlockCellGradOutputs {
    /// Output `d_x`.
    pub d_x: Output,
    /// Output `d_h_prev`.
    pub d_h_prev: Output,
    /// Output `d_c_bar`.
    pub d_c_bar: Output,
    /// Output `d_r_bar_u_bar`.
    pub d_r_bar_u_bar: Output,
}

/// `GRUBlockCellGrad`: Gradient of GRUBlockCell.
#[inline]
#[track_caller]
pub fn gru_block_cell_grad(
    x: &Output,
    h_prev: &Output,
    w_ru: &Output,
    w_c: &Output,
    b_ru: &Output,
    b_c: &Output,
    r: &Output,
    u: &Output,
    c: &Output,
    d_h: &Output,
) -> GRUBlockCellGradOutputs {
    let [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar] = x
        .graph()
        .op("GRUBlockCellGrad")
        .input(x)
        .input(h_prev)
        .input(w_ru)
        .input(w_c)
        .input(b_ru)
        .input(b_c)
        .input(r)
        .input(u)
        .input(c)
        .input(d_h)
        .split();
    GRUBlockCellGradOutputs { d_x, d_h_prev, d_c_bar, d_r_bar_u_bar }
}

/// The attributes of [`isotonic_regression_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IsotonicRegressionOptions {
    /// `output_dtype`: type, `Float` by default.
    pub output_dtype: DType,
}

impl Default for IsotonicRegressionOptions {
    fn default() -> Self {
        IsotonicRegressionOptions { output_dtype: DType::Float }
    }
}

/// `IsotonicRegression`: The sequences nearest to those given that never rise, and their runs.
///
/// Returns (`output`, `segments`).
#[inline]
#[track_caller]
pub fn isotonic_regression(input: &Output) -> (Output, Output) {
    isotonic_regression_with(input, IsotonicRegressionOptions::default())
}

/// [`isotonic_regression()`] with other attributes.
#[inline]
#[track_caller]
pub fn isotonic_regression_with(
    input: &Output,
    options: IsotonicRegressionOptions,
) -> (Output, Output) {
    let [output, segments] = input
        .graph()
        .op("IsotonicRegression")
        .input(input)
        .attr("output_dtype", options.output_dtype)
        .split();
    (output, segments)
}

/// `L2Loss`: Half the sum of squares.
#[inline]
#[track_caller]
pub fn l2_loss(t: &Output) -> Output {
    t.graph().op("L2Loss").input(t).output()
}

/// The attributes of [`lrn_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LRNOptions {
    /// `depth_radius`: int, `5` by default.
    pub depth_radius: i64,
    /// `bias`: float, `1.0` by default.
    pub bias: f32,
    /// `alpha`: float, `1.0` by default.
    pub alpha: f32,
    /// `beta`: float, `0.5` by default.
    pub beta: f32,
}

impl Default for LRNOptions {
    fn default() -> Self {
        LRNOptions { depth_radius: 5, bias: 1.0, alpha: 1.0, beta: 0.5 }
    }
}

/// `LRN`: Divides every element by a power of the squares of near channels.
#[inline]
#[track_caller]
pub fn lrn(input: &Output) -> Output {
    lrn_with(input, LRNOptions::default())
}

/// [`lrn()`] with other attributes.
#[inline]
#[track_caller]
pub fn lrn_with(input: &Output, options: LRNOptions) -> Output {
    input
        .graph()
        .op("LRN")
        .input(input)
        .attr("depth_radius", options.depth_radius)
        .attr("bias", options.bias)
        .attr("alpha", options.alpha)
        .attr("beta", options.beta)
        .output()
}

/// The attributes of [`lrn_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LRNGradOptions {
    /// `depth_radius`: int, `5` by default.
    pub depth_radius: i64,
    /// `bias`: float, `1.0` by default.
    pub bias: f32,
    /// `alpha`: float, `1.0` by default.
    pub alpha: f32,
    /// `beta`: float, `0.5` by default.
    pub beta: f32,
}

impl Default for LRNGradOptions {
    fn default() -> Self {
        LRNGradOptions { depth_radius: 5, bias: 1.0, alpha: 1.0, beta: 0.5 }
    }
}

/// `LRNGrad`: Gradient of LRN.
#[inline]
#[track_caller]
pub fn lrn_grad(input_grads: &Output, input_image: &Output, output_image: &Output) -> Output {
    lrn_grad_with(input_grads, input_image, output_image, LRNGradOptions::default())
}

/// [`lrn_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn lrn_grad_with(
    input_grads: &Output,
    input_image: &Output,
    output_image: &Output,
    options: LRNGradOptions,
) -> Output {
    input_grads
        .graph()
        .op("LRNGrad")
        .input(input_grads)
        .input(input_image)
        .input(output_image)
        .attr("depth_radius", options.depth_radius)
        .attr("bias", options.bias)
        .attr("alpha", options.alpha)
        .attr("beta", options.beta)
        .output()
}

/// The outputs of [`lstm_block_cell`].
#[derive(Clone, Debug)]
pub struct LSTMBlockCellOutputs {
    /// Output `i`.
    pub i: Output,
    /// Output `cs`.
    pub cs: Output,
    /// Output `f`.
    pub f: Output,
    /// Output `o`.
    pub o: Output,
    /// Output `ci`.
    pub ci: Output,
    /// Output `co`.
    pub co: Output,
    /// Output `h`.
    pub h: Output,
}

/// The attributes of [`lstm_block_cell_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LSTMBlockCellOptions {
    /// `forget_bias`: float, `1.0` by default.
    pub forget_bias: f32,
    /// `cell_clip`: float, `3.0` by default.
    pub cell_clip: f32,
    /// `use_peephole`: bool, `false` by default.
    pub use_peephole: bool,
}

impl Default for LSTMBlockCellOptions {
    fn default() -> Self {
        LSTMBlockCellOptions { forget_bias: 1.0, cell_clip: 3.0, use_peephole: false }
    }
}

/// `LSTMBlockCell`: One step of a long short-term memory.
#[inline]
#[track_caller]
pub fn lstm_block_cell(
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
) -> LSTMBlockCellOutputs {
    lstm_block_cell_with(x, cs_prev, h_prev, w, wci, wcf, wco, b, LSTMBlockCellOptions::default())
}

/// [`lstm_block_cell()`] with other attributes.
#[inline]
#[track_caller]
pub fn lstm_block_cell_with(
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    options: LSTMBlockCellOptions,
) -> LSTMBlockCellOutputs {
    let [i, cs, f, o, ci, co, h] = x
        .graph()
        .op("LSTMBlockCell")
        .input(x)
        .input(cs_prev)
        .input(h_prev)
        .input(w)
        .input(wci)
        .input(wcf)
        .input(wco)
        .input(b)
        .attr("forget_bias", options.forget_bias)
        .attr("cell_clip", options.cell_clip)
        .attr("use_peephole", options.use_peephole)
        .split();
    LSTMBlockCellOutputs { i, cs, f, o, ci, co, h }
}

/// The outputs of [`lstm_block_cell_grad`].
#[derive(Clone, Debug)]
pub struct LSTMBlockCellGradOutputs {
    /// Output `cs_prev_grad`.
    pub cs_prev_grad: Output,
    /// Output `dicfo`.
    pub dicfo: Output,
    /// Output `wci_grad`.
    pub wci_grad: Output,
    /// Output `wcf_grad`.
    pub wcf_grad: Output,
    /// Output `wco_grad`.
    pub wco_grad: Output,
}

/// `LSTMBlockCellGrad`: Gradient of LSTMBlockCell.
#[inline]
#[track_caller]
pub fn lstm_block_cell_grad(
    x: &Output,
    cs_prev: &Output,
    h_prev: &Output,
    w: &Output,
    wci: &Output,
    wcf: &Output,
    wco: &Output,
    b: &Output,
    i: &Output,
    cs: &Output,
    f: &Output,
    o: &Output,
    ci: &Output,
    co: &Output,
    cs_grad: &Output,
    h_grad: &Output,
    use_peephole: bool,
) -> LSTMBlockCellGradOutputs {
    let [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad] = x
        .graph()
        .op("LSTMBlockCellGrad")
        .input(x)
        .input(cs_prev)
        .input(h_prev)
        .input(w)
        .input(wci)
        .input(wcf)
        .input(wco)
        .input(b)
        .input(i)
        .input(cs)
        .input(f)
        .input(o)
        .input(ci)
        .input(co)
        .input(cs_grad)
        .input(h_grad)
        .attr("use_peephole", use_peephole)
        .split();
    LSTMBlockCellGradOutputs { cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad }
}

/// The attributes of [`leaky_relu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LeakyReluOptions {
    /// `alpha`: float, `0.2` by default.
    pub alpha: f32,
}

impl Default for LeakyReluOptions {
    fn default() -> Self {
        LeakyReluOptions { alpha: 0.2 }
    }
}

/// `LeakyRelu`: Element-wise `features`, and `alpha * features` below 0.
#[inline]
#[track_caller]
pub fn leaky_relu(features: &Output) -> Output {
    leaky_relu_with(features, LeakyReluOptions::default())
}

/// [`leaky_relu()`] with other attributes.
#[inline]
#[track_caller]
pub fn leaky_relu_with(features: &Output, options: LeakyReluOptions) -> Output {
    features.graph().op("LeakyRelu").input(features).attr("alpha", options.alpha).output()
}

/// The attributes of [`leaky_relu_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LeakyReluGradOptions {
    /// `alpha`: float, `0.2` by default.
    pub alpha: f32,
}

impl Default for LeakyReluGradOptions {
    fn default() -> Self {
        LeakyReluGradOptions { alpha: 0.2 }
    }
}

/// `LeakyReluGrad`: Gradient of LeakyRelu.
#[inline]
#[track_caller]
pub fn leaky_relu_grad(gradients: &Output, features: &Output) -> Output {
    leaky_relu_grad_with(gradients, features, LeakyReluGradOptions::default())
}

/// [`leaky_relu_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn leaky_relu_grad_with(
    gradients: &Output,
    features: &Output,
    options: LeakyReluGradOptions,
) -> Output {
    gradients
        .graph()
        .op("LeakyReluGrad")
        .input(gradients)
        .input(features)
        .attr("alpha", options.alpha)
        .output()
}

/// `LogSoftmax`: Logarithm of the softmax along the last dimension.
#[inline]
#[track_caller]
pub fn log_softmax(logits: &Output) -> Output {
    logits.graph().op("LogSoftmax").input(logits).output()
}

/// The attributes of [`max_pool_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolOptions<'_> {
    fn default() -> Self {
        MaxPoolOptions { explicit_paddings: &[], data_format: "NHWC" }
    }
}

/// `MaxPool`: The largest element under a sliding window.
#[inline]
#[track_caller]
pub fn max_pool(input: &Output, ksize: &[i64], strides: &[i64], padding: &str) -> Output {
    max_pool_with(input, ksize, strides, padding, MaxPoolOptions::default())
}

/// [`max_pool()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_with(
    input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolOptions<'_>,
) -> Output {
    input
        .graph()
        .op("MaxPool")
        .input(input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool3d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPool3DOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPool3DOptions<'_> {
    fn default() -> Self {
        MaxPool3DOptions { data_format: "NDHWC" }
    }
}

/// `MaxPool3D`: The largest element under a window sliding over a volume.
#[inline]
#[track_caller]
pub fn max_pool3d(input: &Output, ksize: &[i64], strides: &[i64], padding: &str) -> Output {
    max_pool3d_with(input, ksize, strides, padding, MaxPool3DOptions::default())
}

/// [`max_pool3d()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool3d_with(
    input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPool3DOptions<'_>,
) -> Output {
    input
        .graph()
        .op("MaxPool3D")
        .input(input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool3d_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPool3DGradOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPool3DGradOptions<'_> {
    fn default() -> Self {
        MaxPool3DGradOptions { data_format: "NDHWC" }
    }
}

/// `MaxPool3DGrad`: Gradient of MaxPool3D.
#[inline]
#[track_caller]
pub fn max_pool3d_grad(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool3d_grad_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPool3DGradOptions::default(),
    )
}

/// [`max_pool3d_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool3d_grad_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPool3DGradOptions<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPool3DGrad")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool3d_grad_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPool3DGradGradOptions<'a> {
    /// `data_format`: string, `"NDHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPool3DGradGradOptions<'_> {
    fn default() -> Self {
        MaxPool3DGradGradOptions { data_format: "NDHWC" }
    }
}

/// `MaxPool3DGradGrad`: Gradient of MaxPool3DGrad.
#[inline]
#[track_caller]
pub fn max_pool3d_grad_grad(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool3d_grad_grad_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPool3DGradGradOptions::default(),
    )
}

/// [`max_pool3d_grad_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool3d_grad_grad_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPool3DGradGradOptions<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPool3DGradGrad")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradOptions<'a> {
    /// `explicit_paddings`: list of ints, empty by default.
    pub explicit_paddings: &'a [i64],
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolGradOptions<'_> {
    fn default() -> Self {
        MaxPoolGradOptions { explicit_paddings: &[], data_format: "NHWC" }
    }
}

/// `MaxPoolGrad`: Gradient of MaxPool.
#[inline]
#[track_caller]
pub fn max_pool_grad(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool_grad_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPoolGradOptions::default(),
    )
}

/// [`max_pool_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolGradOptions<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPoolGrad")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("explicit_paddings", list(options.explicit_paddings))
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_grad_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradGradOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolGradGradOptions<'_> {
    fn default() -> Self {
        MaxPoolGradGradOptions { data_format: "NHWC" }
    }
}

/// `MaxPoolGradGrad`: Gradient of MaxPoolGrad.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool_grad_grad_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPoolGradGradOptions::default(),
    )
}

/// [`max_pool_grad_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolGradGradOptions<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPoolGradGrad")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_grad_grad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradGradV2Options<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolGradGradV2Options<'_> {
    fn default() -> Self {
        MaxPoolGradGradV2Options { data_format: "NHWC" }
    }
}

/// `MaxPoolGradGradV2`: Gradient of MaxPoolGradV2.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad_v2(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &Output,
    strides: &Output,
    padding: &str,
) -> Output {
    max_pool_grad_grad_v2_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPoolGradGradV2Options::default(),
    )
}

/// [`max_pool_grad_grad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad_v2_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &Output,
    strides: &Output,
    padding: &str,
    options: MaxPoolGradGradV2Options<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPoolGradGradV2")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .input(ksize)
        .input(strides)
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_grad_grad_with_argmax_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradGradWithArgmaxOptions {
    /// `include_batch_in_index`: bool, `false` by default.
    pub include_batch_in_index: bool,
}

impl Default for MaxPoolGradGradWithArgmaxOptions {
    fn default() -> Self {
        MaxPoolGradGradWithArgmaxOptions { include_batch_in_index: false }
    }
}

/// `MaxPoolGradGradWithArgmax`: Gradient of MaxPoolGradWithArgmax.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad_with_argmax(
    input: &Output,
    grad: &Output,
    argmax: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool_grad_grad_with_argmax_with(
        input,
        grad,
        argmax,
        ksize,
        strides,
        padding,
        MaxPoolGradGradWithArgmaxOptions::default(),
    )
}

/// [`max_pool_grad_grad_with_argmax()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_grad_with_argmax_with(
    input: &Output,
    grad: &Output,
    argmax: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolGradGradWithArgmaxOptions,
) -> Output {
    input
        .graph()
        .op("MaxPoolGradGradWithArgmax")
        .input(input)
        .input(grad)
        .input(argmax)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("include_batch_in_index", options.include_batch_in_index)
        .output()
}

/// The attributes of [`max_pool_grad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradV2Options<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolGradV2Options<'_> {
    fn default() -> Self {
        MaxPoolGradV2Options { data_format: "NHWC" }
    }
}

/// `MaxPoolGradV2`: Gradient of MaxPoolV2.
#[inline]
#[track_caller]
pub fn max_pool_grad_v2(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &Output,
    strides: &Output,
    padding: &str,
) -> Output {
    max_pool_grad_v2_with(
        orig_input,
        orig_output,
        grad,
        ksize,
        strides,
        padding,
        MaxPoolGradV2Options::default(),
    )
}

/// [`max_pool_grad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_v2_with(
    orig_input: &Output,
    orig_output: &Output,
    grad: &Output,
    ksize: &Output,
    strides: &Output,
    padding: &str,
    options: MaxPoolGradV2Options<'_>,
) -> Output {
    orig_input
        .graph()
        .op("MaxPoolGradV2")
        .input(orig_input)
        .input(orig_output)
        .input(grad)
        .input(ksize)
        .input(strides)
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_grad_with_argmax_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolGradWithArgmaxOptions {
    /// `include_batch_in_index`: bool, `false` by default.
    pub include_batch_in_index: bool,
}

impl Default for MaxPoolGradWithArgmaxOptions {
    fn default() -> Self {
        MaxPoolGradWithArgmaxOptions { include_batch_in_index: false }
    }
}

/// `MaxPoolGradWithArgmax`: Gradient of MaxPoolWithArgmax.
#[inline]
#[track_caller]
pub fn max_pool_grad_with_argmax(
    input: &Output,
    grad: &Output,
    argmax: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    max_pool_grad_with_argmax_with(
        input,
        grad,
        argmax,
        ksize,
        strides,
        padding,
        MaxPoolGradWithArgmaxOptions::default(),
    )
}

/// [`max_pool_grad_with_argmax()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_grad_with_argmax_with(
    input: &Output,
    grad: &Output,
    argmax: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolGradWithArgmaxOptions,
) -> Output {
    input
        .graph()
        .op("MaxPoolGradWithArgmax")
        .input(input)
        .input(grad)
        .input(argmax)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("include_batch_in_index", options.include_batch_in_index)
        .output()
}

/// The attributes of [`max_pool_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolV2Options<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for MaxPoolV2Options<'_> {
    fn default() -> Self {
        MaxPoolV2Options { data_format: "NHWC" }
    }
}

/// `MaxPoolV2`: The largest element under a sliding window that inputs describe.
#[inline]
#[track_caller]
pub fn max_pool_v2(input: &Output, ksize: &Output, strides: &Output, padding: &str) -> Output {
    max_pool_v2_with(input, ksize, strides, padding, MaxPoolV2Options::default())
}

/// [`max_pool_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_v2_with(
    input: &Output,
    ksize: &Output,
    strides: &Output,
    padding: &str,
    options: MaxPoolV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("MaxPoolV2")
        .input(input)
        .input(ksize)
        .input(strides)
        .attr("padding", padding)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`max_pool_with_argmax_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxPoolWithArgmaxOptions {
    /// `Targmax`: type, `Int64` by default.
    pub targmax: DType,
    /// `include_batch_in_index`: bool, `false` by default.
    pub include_batch_in_index: bool,
}

impl Default for MaxPoolWithArgmaxOptions {
    fn default() -> Self {
        MaxPoolWithArgmaxOptions { targmax: DType::Int64, include_batch_in_index: false }
    }
}

/// `MaxPoolWithArgmax`: The largest element under a sliding window, and where it is.
///
/// Returns (`output`, `argmax`).
#[inline]
#[track_caller]
pub fn max_pool_with_argmax(
    input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> (Output, Output) {
    max_pool_with_argmax_with(input, ksize, strides, padding, MaxPoolWithArgmaxOptions::default())
}

/// [`max_pool_with_argmax()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_pool_with_argmax_with(
    input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
    options: MaxPoolWithArgmaxOptions,
) -> (Output, Output) {
    let [output, argmax] = input
        .graph()
        .op("MaxPoolWithArgmax")
        .input(input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .attr("Targmax", options.targmax)
        .attr("include_batch_in_index", options.include_batch_in_index)
        .split();
    (output, argmax)
}

/// `QuantizedAvgPool`: The mean of the quantised elements under a window.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_avg_pool(
    input: &Output,
    min_input: &Output,
    max_input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedAvgPool")
        .input(input)
        .input(min_input)
        .input(max_input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .split();
    (output, min_output, max_output)
}

/// `QuantizedMaxPool`: The largest of the quantised elements under a window.
///
/// Returns (`output`, `min_output`, `max_output`).
#[inline]
#[track_caller]
pub fn quantized_max_pool(
    input: &Output,
    min_input: &Output,
    max_input: &Output,
    ksize: &[i64],
    strides: &[i64],
    padding: &str,
) -> (Output, Output, Output) {
    let [output, min_output, max_output] = input
        .graph()
        .op("QuantizedMaxPool")
        .input(input)
        .input(min_input)
        .input(max_input)
        .attr("ksize", list(ksize))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .split();
    (output, min_output, max_output)
}

/// `Relu`: Element-wise `max(features, 0)`.
#[inline]
#[track_caller]
pub fn relu(features: &Output) -> Output {
    features.graph().op("Relu").input(features).output()
}

/// `Relu6`: Element-wise `min(max(features, 0), 6)`.
#[inline]
#[track_caller]
pub fn relu6(features: &Output) -> Output {
    features.graph().op("Relu6").input(features).output()
}

/// `Relu6Grad`: Gradient of Relu6.
#[inline]
#[track_caller]
pub fn relu6_grad(gradients: &Output, features: &Output) -> Output {
    gradients.graph().op("Relu6Grad").input(gradients).input(features).output()
}

/// `ReluGrad`: Gradient of Relu.
#[inline]
#[track_caller]
pub fn relu_grad(gradients: &Output, features: &Output) -> Output {
    gradients.graph().op("ReluGrad").input(gradients).input(features).output()
}

/// `Selu`: Element-wise Elu, scaled so that activations normalise themselves.
#[inline]
#[track_caller]
pub fn selu(features: &Output) -> Output {
    features.graph().op("Selu").input(features).output()
}

/// `SeluGrad`: Gradient of Selu, from its result.
#[inline]
#[track_caller]
pub fn selu_grad(gradients: &Output, outputs: &Output) -> Output {
    gradients.graph().op("SeluGrad").input(gradients).input(outputs).output()
}

/// `Softmax`: Exponentials scaled to sum 1 along the last dimension.
#[inline]
#[track_caller]
pub fn softmax(logits: &Output) -> Output {
    logits.graph().op("Softmax").input(logits).output()
}

/// `SoftmaxCrossEntropyWithLogits`: Cross entropy of the softmax of logits and label distributions,
/// with its gradient.
///
/// Returns (`loss`, `backprop`).
#[inline]
#[track_caller]
pub fn softmax_cross_entropy_with_logits(features: &Output, labels: &Output) -> (Output, Output) {
    let [loss, backprop] =
        features.graph().op("SoftmaxCrossEntropyWithLogits").input(features).input(labels).split();
    (loss, backprop)
}

/// `Softplus`: Element-wise `log(exp(features) + 1)`.
#[inline]
#[track_caller]
pub fn softplus(features: &Output) -> Output {
    features.graph().op("Softplus").input(features).output()
}

/// `SoftplusGrad`: Gradient of Softplus.
#[inline]
#[track_caller]
pub fn softplus_grad(gradients: &Output, features: &Output) -> Output {
    gradients.graph().op("SoftplusGrad").input(gradients).input(features).output()
}

/// `Softsign`: Element-wise `features / (1 + |features|)`.
#[inline]
#[track_caller]
pub fn softsign(features: &Output) -> Output {
    features.graph().op("Softsign").input(features).output()
}

/// `SoftsignGrad`: Gradient of Softsign.
#[inline]
#[track_caller]
pub fn softsign_grad(gradients: &Output, features: &Output) -> Output {
    gradients.graph().op("SoftsignGrad").input(gradients).input(features).output()
}

/// `SparseSoftmaxCrossEntropyWithLogits`: Cross entropy of the softmax of logits and class labels,
/// with its gradient.
///
/// Returns (`loss`, `backprop`).
#[inline]
#[track_caller]
pub fn sparse_softmax_cross_entropy_with_logits(
    features: &Output,
    labels: &Output,
) -> (Output, Output) {
    let [loss, backprop] = features
        .graph()
        .op("SparseSoftmaxCrossEntropyWithLogits")
        .input(features)
        .input(labels)
        .split();
    (loss, backprop)
}
