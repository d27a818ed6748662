//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// The attributes of [`decode_csv_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeCSVOptions<'a> {
    /// `field_delim`: string, `","` by default.
    pub field_delim: &'a str,
    /// `use_quote_delim`: bool, `true` by default.
    pub use_quote_delim: bool,
    /// `na_value`: string, empty by default.
    pub na_value: &'a str,
    /// `select_cols`: list of ints, empty by default.
    pub select_cols: &'a [i64],
}

impl Default for DecodeCSVOptions<'_> {
    fn default() -> Self {
        DecodeCSVOptions { field_delim: ",", use_quote_delim: true, na_value: "", select_cols: &[] }
    }
}

/// `DecodeCSV`: The fields of comma-separated records, a tensor for each.
#[inline]
#[track_caller]
pub fn decode_csv(records: &Output, record_defaults: &[Output]) -> Vec<Output> {
    decode_csv_with(records, record_defaults, DecodeCSVOptions::default())
}

/// [`decode_csv()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_csv_with(
    records: &Output,
    record_defaults: &[Output],
    options: DecodeCSVOptions<'_>,
) -> Vec<Output> {
    records
        .graph()
        .op("DecodeCSV")
        .input(records)
        .list(record_defaults)
        .attr("field_delim", options.field_delim)
        .attr("use_quote_delim", options.use_quote_delim)
        .attr("na_value", options.na_value)
        .attr("select_cols", list(options.select_cols))
        .list_outputs()
}

/// `DecodeJSONExample`: Example records of their JSON form.
#[inline]
#[track_caller]
pub fn decode_json_example(json_examples: &Output) -> Output {
    json_examples.graph().op("DecodeJSONExample").input(json_examples).output()
}

/// The attributes of [`decode_proto_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeProtoV2Options<'a> {
    /// `descriptor_source`: string, `"local://"` by default.
    pub descriptor_source: &'a str,
    /// `message_format`: string, `"binary"` by default.
    pub message_format: &'a str,
    /// `sanitize`: bool, `false` by default.
    pub sanitize: bool,
}

impl Default for DecodeProtoV2Options<'_> {
    fn default() -> Self {
        DecodeProtoV2Options {
            descriptor_source: "local://",
            message_format: "binary",
            sanitize: false,
        }
    }
}

/// `DecodeProtoV2`: Fields of serialized protocol buffers as tensors.
///
/// Returns (`sizes`, `values`).
#[inline]
#[track_caller]
pub fn decode_proto_v2(
    bytes: &Output,
    message_type: &str,
    field_names: &[&str],
    output_types: &[DType],
) -> (Output, Vec<Output>) {
    decode_proto_v2_with(
        bytes,
        message_type,
        field_names,
        output_types,
        DecodeProtoV2Options::default(),
    )
}

/// [`decode_proto_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_proto_v2_with(
    bytes: &Output,
    message_type: &str,
    field_names: &[&str],
    output_types: &[DType],
    options: DecodeProtoV2Options<'_>,
) -> (Output, Vec<Output>) {
    let mut arguments = bytes
        .graph()
        .op("DecodeProtoV2")
        .input(bytes)
        .attr("message_type", message_type)
        .attr("field_names", list(field_names))
        .attr("output_types", list(output_types))
        .attr("descriptor_source", options.descriptor_source)
        .attr("message_format", options.message_format)
        .attr("sanitize", options.sanitize)
        .outputs_by_argument();
    let sizes = arguments.next_output();
    let values = arguments.next_list();
    (sizes, values)
}

/// The attributes of [`encode_proto_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EncodeProtoOptions<'a> {
    /// `descriptor_source`: string, `"local://"` by default.
    pub descriptor_source: &'a str,
}

impl Default for EncodeProtoOptions<'_> {
    fn default() -> Self {
        EncodeProtoOptions { descriptor_source: "local://" }
    }
}

/// `EncodeProto`: Serialized protocol buffers of tensors as fields.
#[inline]
#[track_caller]
pub fn encode_proto(
    sizes: &Output,
    values: &[Output],
    field_names: &[&str],
    message_type: &str,
) -> Output {
    encode_proto_with(sizes, values, field_names, message_type, EncodeProtoOptions::default())
}

/// [`encode_proto()`] with other attributes.
#[inline]
#[track_caller]
pub fn encode_proto_with(
    sizes: &Output,
    values: &[Output],
    field_names: &[&str],
    message_type: &str,
    options: EncodeProtoOptions<'_>,
) -> Output {
    sizes
        .graph()
        .op("EncodeProto")
        .input(sizes)
        .list(values)
        .attr("field_names", list(field_names))
        .attr("message_type", message_type)
        .attr("descriptor_source", options.descriptor_source)
        .output()
}

/// The outputs of [`parse_example`].
#[derive(Clone, Debug)]
pub struct ParseExampleOutputs {
    /// Output `sparse_indices`.
    pub sparse_indices: Vec<Output>,
    /// Output `sparse_values`.
    pub sparse_values: Vec<Output>,
    /// Output `sparse_shapes`.
    pub sparse_shapes: Vec<Output>,
    /// Output `dense_values`.
    pub dense_values: Vec<Output>,
}

/// `ParseExample`: Features of a batch of Example records.
#[inline]
#[track_caller]
pub fn parse_example(
    serialized: &Output,
    names: &Output,
    sparse_keys: &[Output],
    dense_keys: &[Output],
    dense_defaults: &[Output],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
) -> ParseExampleOutputs {
    let mut arguments = serialized
        .graph()
        .op("ParseExample")
        .input(serialized)
        .input(names)
        .list(sparse_keys)
        .list(dense_keys)
        .list(dense_defaults)
        .attr("sparse_types", list(sparse_types))
        .attr("dense_shapes", list(dense_shapes))
        .outputs_by_argument();
    let sparse_indices = arguments.next_list();
    let sparse_values = arguments.next_list();
    let sparse_shapes = arguments.next_list();
    let dense_values = arguments.next_list();
    ParseExampleOutputs { sparse_indices, sparse_values, sparse_shapes, dense_values }
}

/// The outputs of [`parse_example_v2`].
#[derive(Clone, Debug)]
pub struct ParseExampleV2Outputs {
    /// Output `sparse_indices`.
    pub sparse_indices: Vec<Output>,
    /// Output `sparse_values`.
    pub sparse_values: Vec<Output>,
    /// Output `sparse_shapes`.
    pub sparse_shapes: Vec<Output>,
    /// Output `dense_values`.
    pub dense_values: Vec<Output>,
    /// Output `ragged_values`.
    pub ragged_values: Vec<Output>,
    /// Output `ragged_row_splits`.
    pub ragged_row_splits: Vec<Output>,
}

/// `ParseExampleV2`: Features of one Example record or a batch of them.
#[inline]
#[track_caller]
pub fn parse_example_v2(
    serialized: &Output,
    names: &Output,
    sparse_keys: &Output,
    dense_keys: &Output,
    ragged_keys: &Output,
    dense_defaults: &[Output],
    num_sparse: i64,
    sparse_types: &[DType],
    ragged_value_types: &[DType],
    ragged_split_types: &[DType],
    dense_shapes: &[PartialShape],
) -> ParseExampleV2Outputs {
    let mut arguments = serialized
        .graph()
        .op("ParseExampleV2")
        .input(serialized)
        .input(names)
        .input(sparse_keys)
        .input(dense_keys)
        .input(ragged_keys)
        .list(dense_defaults)
        .attr("num_sparse", num_sparse)
        .attr("sparse_types", list(sparse_types))
        .attr("ragged_value_types", list(ragged_value_types))
        .attr("ragged_split_types", list(ragged_split_types))
        .attr("dense_shapes", list(dense_shapes))
        .outputs_by_argument();
    let sparse_indices = arguments.next_list();
    let sparse_values = arguments.next_list();
    let sparse_shapes = arguments.next_list();
    let dense_values = arguments.next_list();
    let ragged_values = arguments.next_list();
    let ragged_row_splits = arguments.next_list();
    ParseExampleV2Outputs {
        sparse_indices,
        sparse_values,
        sparse_shapes,
        dense_values,
        ragged_values,
        ragged_row_splits,
    }
}

/// The outputs of [`parse_sequence_example`].
#[derive(Clone, Debug)]
pub struct ParseSequenceExampleOutputs {
    /// Output `context_sparse_indices`.
    pub context_sparse_indices: Vec<Output>,
    /// Output `context_sparse_values`.
    pub context_sparse_values: Vec<Output>,
    /// Output `context_sparse_shapes`.
    pub context_sparse_shapes: Vec<Output>,
    /// Output `context_dense_values`.
    pub context_dense_values: Vec<Output>,
    /// Output `feature_list_sparse_indices`.
    pub feature_list_sparse_indices: Vec<Output>,
    /// Output `feature_list_sparse_values`.
    pub feature_list_sparse_values: Vec<Output>,
    /// Output `feature_list_sparse_shapes`.
    pub feature_list_sparse_shapes: Vec<Output>,
    /// Output `feature_list_dense_values`.
    pub feature_list_dense_values: Vec<Output>,
    /// Output `feature_list_dense_lengths`.
    pub feature_list_dense_lengths: Vec<Output>,
}

/// The attributes of [`parse_sequence_example_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParseSequenceExampleOptions<'a> {
    /// `Ncontext_sparse`: int, `0` by default.
    pub ncontext_sparse: i64,
    /// `Ncontext_dense`: int, `0` by default.
    pub ncontext_dense: i64,
    /// `Nfeature_list_sparse`: int, `0` by default.
    pub nfeature_list_sparse: i64,
    /// `Nfeature_list_dense`: int, `0` by default.
    pub nfeature_list_dense: i64,
    /// `context_sparse_types`: list of types, empty by default.
    pub context_sparse_types: &'a [DType],
    /// `feature_list_dense_types`: list of types, empty by default.
    pub feature_list_dense_types: &'a [DType],
    /// `context_dense_shapes`: list of shapes, empty by default.
    pub context_dense_shapes: &'a [PartialShape],
    /// `feature_list_sparse_types`: list of types, empty by default.
    pub feature_list_sparse_types: &'a [DType],
    /// `feature_list_dense_shapes`: list of shapes, empty by default.
    pub feature_list_dense_shapes: &'a [PartialShape],
}

impl Default for ParseSequenceExampleOptions<'_> {
    fn default() -> Self {
        ParseSequenceExampleOptions {
            ncontext_sparse: 0,
            ncontext_dense: 0,
            nfeature_list_sparse: 0,
            nfeature_list_dense: 0,
            context_sparse_types: &[],
            feature_list_dense_types: &[],
            context_dense_shapes: &[],
            feature_list_sparse_types: &[],
            feature_list_dense_shapes: &[],
        }
    }
}

/// `ParseSequenceExample`: Features of a batch of SequenceExample records.
#[inline]
#[track_caller]
pub fn parse_sequence_example(
    serialized: &Output,
    debug_name: &Output,
    context_dense_defaults: &[Output],
    feature_list_dense_missing_assumed_empty: &[&str],
    context_sparse_keys: &[&str],
    context_dense_keys: &[&str],
    feature_list_sparse_keys: &[&str],
    feature_list_dense_keys: &[&str],
) -> ParseSequenceExampleOutputs {
    parse_sequence_example_with(
        serialized,
        debug_name,
        context_dense_defaults,
        feature_list_dense_missing_assumed_empty,
        context_sparse_keys,
        context_dense_keys,
        feature_list_sparse_keys,
        feature_list_dense_keys,
        ParseSequenceExampleOptions::default(),
    )
}

/// [`parse_sequence_example()`] with other attributes.
#[inline]
#[track_caller]
pub fn parse_sequence_example_with(
    serialized: &Output,
    debug_name: &Output,
    context_dense_defaults: &[Output],
    feature_list_dense_missing_assumed_empty: &[&str],
    context_sparse_keys: &[&str],
    context_dense_keys: &[&str],
    feature_list_sparse_keys: &[&str],
    feature_list_dense_keys: &[&str],
    options: ParseSequenceExampleOptions<'_>,
) -> ParseSequenceExampleOutputs {
    let mut arguments = serialized
        .graph()
        .op("ParseSequenceExample")
        .input(serialized)
        .input(debug_name)
        .list(context_dense_defaults)
        .attr(
            "feature_list_dense_missing_assumed_empty",
            list(feature_list_dense_missing_assumed_empty),
        )
        .attr("context_sparse_keys", list(context_sparse_keys))
        .attr("context_dense_keys", list(context_dense_keys))
        .attr("feature_list_sparse_keys", list(feature_list_sparse_keys))
        .attr("feature_list_dense_keys", list(feature_list_dense_keys))
        .attr("Ncontext_sparse", options.ncontext_sparse)
        .attr("Ncontext_dense", options.ncontext_dense)
        .attr("Nfeature_list_sparse", options.nfeature_list_sparse)
        .attr("Nfeature_list_dense", options.nfeature_list_dense)
        .attr("context_sparse_types", list(options.context_sparse_types))
        .attr("feature_list_dense_types", list(options.feature_list_dense_types))
        .attr("context_dense_shapes", list(options.context_dense_shapes))
        .attr("feature_list_sparse_types", list(options.feature_list_sparse_types))
        .attr("feature_list_dense_shapes", list(options.feature_list_dense_shapes))
        .outputs_by_argument();
    let context_sparse_indices = arguments.next_list();
    let context_sparse_values = arguments.next_list();
    let context_sparse_shapes = arguments.next_list();
    let context_dense_values = arguments.next_list();
    let feature_list_sparse_indices = arguments.next_list();
    let feature_list_sparse_values = arguments.next_list();
    let feature_list_sparse_shapes = arguments.next_list();
    let feature_list_dense_values = arguments.next_list();
    let feature_list_dense_lengths = arguments.next_list();
    ParseSequenceExampleOutputs {
        context_sparse_indices,
        context_sparse_values,
        context_sparse_shapes,
        context_dense_values,
        feature_list_sparse_indices,
        feature_list_sparse_values,
        feature_list_sparse_shapes,
        feature_list_dense_values,
        feature_list_dense_lengths,
    }
}

/// The outputs of [`parse_sequence_example_v2`].
#[derive(Clone, Debug)]
pub struct ParseSequenceExampleV2Outputs {
    /// Output `context_sparse_indices`.
    pub context_sparse_indices: Vec<Output>,
    /// Output `context_sparse_values`.
    pub context_sparse_values: Vec<Output>,
    /// Output `context_sparse_shapes`.
    pub context_sparse_shapes: Vec<Output>,
    /// Output `context_dense_values`.
    pub context_dense_values: Vec<Output>,
    /// Output `context_ragged_values`.
    pub context_ragged_values: Vec<Output>,
    /// Output `context_ragged_row_splits`.
    pub context_ragged_row_splits: Vec<Output>,
    /// Output `feature_list_sparse_indices`.
    pub feature_list_sparse_indices: Vec<Output>,
    /// Output `feature_list_sparse_values`.
    pub feature_list_sparse_values: Vec<Output>,
    /// Output `feature_list_sparse_shapes`.
    pub feature_list_sparse_shapes: Vec<Output>,
    /// Output `feature_list_dense_values`.
    pub feature_list_dense_values: Vec<Output>,
    /// Output `feature_list_dense_lengths`.
    pub feature_list_dense_lengths: Vec<Output>,
    /// Output `feature_list_ragged_values`.
    pub feature_list_ragged_values: Vec<Output>,
    /// Output `feature_list_ragged_outer_splits`.
    pub feature_list_ragged_outer_splits: Vec<Output>,
    /// Output `feature_list_ragged_inner_splits`.
    pub feature_list_ragged_inner_splits: Vec<Output>,
}

/// The attributes of [`parse_sequence_example_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParseSequenceExampleV2Options<'a> {
    /// `Ncontext_sparse`: int, `0` by default.
    pub ncontext_sparse: i64,
    /// `context_sparse_types`: list of types, empty by default.
    pub context_sparse_types: &'a [DType],
    /// `context_ragged_value_types`: list of types, empty by default.
    pub context_ragged_value_types: &'a [DType],
    /// `context_ragged_split_types`: list of types, empty by default.
    pub context_ragged_split_types: &'a [DType],
    /// `context_dense_shapes`: list of shapes, empty by default.
    pub context_dense_shapes: &'a [PartialShape],
    /// `Nfeature_list_sparse`: int, `0` by default.
    pub nfeature_list_sparse: i64,
    /// `Nfeature_list_dense`: int, `0` by default.
    pub nfeature_list_dense: i64,
    /// `feature_list_dense_types`: list of types, empty by default.
    pub feature_list_dense_types: &'a [DType],
    /// `feature_list_sparse_types`: list of types, empty by default.
    pub feature_list_sparse_types: &'a [DType],
    /// `feature_list_ragged_value_types`: list of types, empty by default.
    pub feature_list_ragged_value_types: &'a [DType],
    /// `feature_list_ragged_split_types`: list of types, empty by default.
    pub feature_list_ragged_split_types: &'a [DType],
    /// `feature_list_dense_shapes`: list of shapes, empty by default.
    pub feature_list_dense_shapes: &'a [PartialShape],
}

impl Default for ParseSequenceExampleV2Options<'_> {
    fn default() -> Self {
        ParseSequenceExampleV2Options {
            ncontext_sparse: 0,
            context_sparse_types: &[],
            context_ragged_value_types: &[],
            context_ragged_split_types: &[],
            context_dense_shapes: &[],
            nfeature_list_sparse: 0,
            nfeature_list_dense: 0,
            feature_list_dense_types: &[],
            feature_list_sparse_types: &[],
            feature_list_ragged_value_types: &[],
            feature_list_ragged_split_types: &[],
            feature_list_dense_shapes: &[],
        }
    }
}

/// `ParseSequenceExampleV2`: Features of one SequenceExample record or a batch of them.
#[inline]
#[track_caller]
pub fn parse_sequence_example_v2(
    serialized: &Output,
    debug_name: &Output,
    context_sparse_keys: &Output,
    context_dense_keys: &Output,
    context_ragged_keys: &Output,
    feature_list_sparse_keys: &Output,
    feature_list_dense_keys: &Output,
    feature_list_ragged_keys: &Output,
    feature_list_dense_missing_assumed_empty: &Output,
    context_dense_defaults: &[Output],
) -> ParseSequenceExampleV2Outputs {
    parse_sequence_example_v2_with(
        serialized,
        debug_name,
        context_sparse_keys,
        context_dense_keys,
        context_ragged_keys,
        feature_list_sparse_keys,
        feature_list_dense_keys,
        feature_list_ragged_keys,
        feature_list_dense_missing_assumed_empty,
        context_dense_defaults,
        ParseSequenceExampleV2Options::default(),
    )
}

/// [`parse_sequence_example_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn parse_sequence_example_v2_with(
    serialized: &Output,
    debug_name: &Output,
    context_sparse_keys: &Output,
    context_dense_keys: &Output,
    context_ragged_keys: &Output,
    feature_list_sparse_keys: &Output,
    feature_list_dense_keys: &Output,
    feature_list_ragged_keys: &Output,
    feature_list_dense_missing_assumed_empty: &Output,
    context_dense_defaults: &[Output],
    options: ParseSequenceExampleV2Options<'_>,
) -> ParseSequenceExampleV2Outputs {
    let mut arguments = serialized
        .graph()
        .op("ParseSequenceExampleV2")
        .input(serialized)
        .input(debug_name)
        .input(context_sparse_keys)
        .input(context_dense_keys)
        .input(context_ragged_keys)
        .input(feature_list_sparse_keys)
        .input(feature_list_dense_keys)
        .input(feature_list_ragged_keys)
        .input(feature_list_dense_missing_assumed_empty)
        .list(context_dense_defaults)
        .attr("Ncontext_sparse", options.ncontext_sparse)
        .attr("context_sparse_types", list(options.context_sparse_types))
        .attr("context_ragged_value_types", list(options.context_ragged_value_types))
        .attr("context_ragged_split_types", list(options.context_ragged_split_types))
        .attr("context_dense_shapes", list(options.context_dense_shapes))
        .attr("Nfeature_list_sparse", options.nfeature_list_sparse)
        .attr("Nfeature_list_dense", options.nfeature_list_dense)
        .attr("feature_list_dense_types", list(options.feature_list_dense_types))
        .attr("feature_list_sparse_types", list(options.feature_list_sparse_types))
        .attr("feature_list_ragged_value_types", list(options.feature_list_ragged_value_types))
        .attr("feature_list_ragged_split_types", list(options.feature_list_ragged_split_types))
        .attr("feature_list_dense_shapes", list(options.feature_list_dense_shapes))
        .outputs_by_argument();
    let context_sparse_indices = arguments.next_list();
    let context_sparse_values = arguments.next_list();
    let context_sparse_shapes = arguments.next_list();
    let context_dense_values = arguments.next_list();
    let context_ragged_values = arguments.next_list();
    let context_ragged_row_splits = arguments.next_list();
    let feature_list_sparse_indices = arguments.next_list();
    let feature_list_sparse_values = arguments.next_list();
    let feature_list_sparse_shapes = arguments.next_list();
    let feature_list_dense_values = arguments.next_list();
    let feature_list_dense_lengths = arguments.next_list();
    let feature_list_ragged_values = arguments.next_list();
    let feature_list_ragged_outer_splits = arguments.next_list();
    let feature_list_ragged_inner_splits = arguments.next_list();
    ParseSequenceExampleV2Outputs {
        context_sparse_indices,
        context_sparse_values,
        context_sparse_shapes,
        context_dense_values,
        context_ragged_values,
        context_ragged_row_splits,
        feature_list_sparse_indices,
        feature_list_sparse_values,
        feature_list_sparse_shapes,
        feature_list_dense_values,
        feature_list_dense_lengths,
        feature_list_ragged_values,
        feature_list_ragged_outer_splits,
        feature_list_ragged_inner_splits,
    }
}

/// The outputs of [`parse_single_example`].
#[derive(Clone, Debug)]
pub struct ParseSingleExampleOutputs {
    /// Output `sparse_indices`.
    pub sparse_indices: Vec<Output>,
    /// Output `sparse_values`.
    pub sparse_values: Vec<Output>,
    /// Output `sparse_shapes`.
    pub sparse_shapes: Vec<Output>,
    /// Output `dense_values`.
    pub dense_values: Vec<Output>,
}

/// `ParseSingleExample`: Features of an Example record.
#[inline]
#[track_caller]
pub fn parse_single_example(
    serialized: &Output,
    dense_defaults: &[Output],
    num_sparse: i64,
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
) -> ParseSingleExampleOutputs {
    let mut arguments = serialized
        .graph()
        .op("ParseSingleExample")
        .input(serialized)
        .list(dense_defaults)
        .attr("num_sparse", num_sparse)
        .attr("sparse_keys", list(sparse_keys))
        .attr("dense_keys", list(dense_keys))
        .attr("sparse_types", list(sparse_types))
        .attr("dense_shapes", list(dense_shapes))
        .outputs_by_argument();
    let sparse_indices = arguments.next_list();
    let sparse_values = arguments.next_list();
    let sparse_shapes = arguments.next_list();
    let dense_values = arguments.next_list();
    ParseSingleExampleOutputs { sparse_indices, sparse_values, sparse_shapes, dense_values }
}

/// The outputs of [`parse_single_sequence_example`].
#[derive(Clone, Debug)]
pub struct ParseSingleSequenceExampleOutputs {
    /// Output `context_sparse_indices`.
    pub context_sparse_indices: Vec<Output>,
    /// Output `context_sparse_values`.
    pub context_sparse_values: Vec<Output>,
    /// Output `context_sparse_shapes`.
    pub context_sparse_shapes: Vec<Output>,
    /// Output `context_dense_values`.
    pub context_dense_values: Vec<Output>,
    /// Output `feature_list_sparse_indices`.
    pub feature_list_sparse_indices: Vec<Output>,
    /// Output `feature_list_sparse_values`.
    pub feature_list_sparse_values: Vec<Output>,
    /// Output `feature_list_sparse_shapes`.
    pub feature_list_sparse_shapes: Vec<Output>,
    /// Output `feature_list_dense_values`.
    pub feature_list_dense_values: Vec<Output>,
}

/// The attributes of [`parse_single_sequence_example_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParseSingleSequenceExampleOptions<'a> {
    /// `context_sparse_types`: list of types, empty by default.
    pub context_sparse_types: &'a [DType],
    /// `feature_list_dense_types`: list of types, empty by default.
    pub feature_list_dense_types: &'a [DType],
    /// `context_dense_shapes`: list of shapes, empty by default.
    pub context_dense_shapes: &'a [PartialShape],
    /// `feature_list_sparse_types`: list of types, empty by default.
    pub feature_list_sparse_types: &'a [DType],
    /// `feature_list_dense_shapes`: list of shapes, empty by default.
    pub feature_list_dense_shapes: &'a [PartialShape],
}

impl Default for ParseSingleSequenceExampleOptions<'_> {
    fn default() -> Self {
        ParseSingleSequenceExampleOptions {
            context_sparse_types: &[],
            feature_list_dense_types: &[],
            context_dense_shapes: &[],
            feature_list_sparse_types: &[],
            feature_list_dense_shapes: &[],
        }
    }
}

/// `ParseSingleSequenceExample`: Features of a SequenceExample record.
#[inline]
#[track_caller]
pub fn parse_single_sequence_example(
    serialized: &Output,
    feature_list_dense_missing_assumed_empty: &Output,
    context_sparse_keys: &[Output],
    context_dense_keys: &[Output],
    feature_list_sparse_keys: &[Output],
    feature_list_dense_keys: &[Output],
    context_dense_defaults: &[Output],
    debug_name: &Output,
) -> ParseSingleSequenceExampleOutputs {
    parse_single_sequence_example_with(
        serialized,
        feature_list_dense_missing_assumed_empty,
        context_sparse_keys,
        context_dense_keys,
        feature_list_sparse_keys,
        feature_list_dense_keys,
        context_dense_defaults,
        debug_name,
        ParseSingleSequenceExampleOptions::default(),
    )
}

/// [`parse_single_sequence_example()`] with other attributes.
#[inline]
#[track_caller]
pub fn parse_single_sequence_example_with(
    serialized: &Output,
    feature_list_dense_missing_assumed_empty: &Output,
    context_sparse_keys: &[Output],
    context_dense_keys: &[Output],
    feature_list_sparse_keys: &[Output],
    feature_list_dense_keys: &[Output],
    context_dense_defaults: &[Output],
    debug_name: &Output,
    options: ParseSingleSequenceExampleOptions<'_>,
) -> ParseSingleSequenceExampleOutputs {
    let mut arguments = serialized
        .graph()
        .op("ParseSingleSequenceExample")
        .input(serialized)
        .input(feature_list_dense_missing_assumed_empty)
        .list(context_sparse_keys)
        .list(context_dense_keys)
        .list(feature_list_sparse_keys)
        .list(feature_list_dense_keys)
        .list(context_dense_defaults)
        .input(debug_name)
        .attr("context_sparse_types", list(options.context_sparse_types))
        .attr("feature_list_dense_types", list(options.feature_list_dense_types))
        .attr("context_dense_shapes", list(options.context_dense_shapes))
        .attr("feature_list_sparse_types", list(options.feature_list_sparse_types))
        .attr("feature_list_dense_shapes", list(options.feature_list_dense_shapes))
        .outputs_by_argument();
    let context_sparse_indices = arguments.next_list();
    let context_sparse_values = arguments.next_list();
    let context_sparse_shapes = arguments.next_list();
    let context_dense_values = arguments.next_list();
    let feature_list_sparse_indices = arguments.next_list();
    let feature_list_sparse_values = arguments.next_list();
    let feature_list_sparse_shapes = arguments.next_list();
    let feature_list_dense_values = arguments.next_list();
    ParseSingleSequenceExampleOutputs {
        context_sparse_indices,
        context_sparse_values,
        context_sparse_shapes,
        context_dense_values,
        feature_list_sparse_indices,
        feature_list_sparse_values,
        feature_list_sparse_shapes,
        feature_list_dense_values,
    }
}

/// `ParseTensor`: The tensor in a TensorProto record.
#[inline]
#[track_caller]
pub fn parse_tensor(serialized: &Output, out_type: DType) -> Output {
    serialized.graph().op("ParseTensor").input(serialized).attr("out_type", out_type).output()
}

/// `SerializeTensor`: A tensor as a TensorProto record.
#[inline]
#[track_caller]
pub fn serialize_tensor(tensor: &Output) -> Output {
    tensor.graph().op("SerializeTensor").input(tensor).output()
}
