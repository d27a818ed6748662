//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`as_string_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AsStringOptions<'a> {
    /// `precision`: int, `-1` by default.
    pub precision: i64,
    /// `scientific`: bool, `false` by default.
    pub scientific: bool,
    /// `shortest`: bool, `false` by default.
    pub shortest: bool,
    /// `width`: int, `-1` by default.
    pub width: i64,
    /// `fill`: string, empty by default.
    pub fill: &'a str,
}

impl Default for AsStringOptions<'_> {
    fn default() -> Self {
        AsStringOptions { precision: -1, scientific: false, shortest: false, width: -1, fill: "" }
    }
}

/// `AsString`: Numbers and booleans spelled out.
#[inline]
#[track_caller]
pub fn as_string(input: &Output) -> Output {
    as_string_with(input, AsStringOptions::default())
}

/// [`as_string()`] with other attributes.
#[inline]
#[track_caller]
pub fn as_string_with(input: &Output, options: AsStringOptions<'_>) -> Output {
    input
        .graph()
        .op("AsString")
        .input(input)
        .attr("precision", options.precision)
        .attr("scientific", options.scientific)
        .attr("shortest", options.shortest)
        .attr("width", options.width)
        .attr("fill", options.fill)
        .output()
}

/// `DecodeBase64`: What web-safe base64 strings stand for.
#[inline]
#[track_caller]
pub fn decode_base64(input: &Output) -> Output {
    input.graph().op("DecodeBase64").input(input).output()
}

/// The attributes of [`decode_compressed_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeCompressedOptions<'a> {
    /// `compression_type`: string, empty by default.
    pub compression_type: &'a str,
}

impl Default for DecodeCompressedOptions<'_> {
    fn default() -> Self {
        DecodeCompressedOptions { compression_type: "" }
    }
}

/// `DecodeCompressed`: What compressed strings hold.
#[inline]
#[track_caller]
pub fn decode_compressed(bytes: &Output) -> Output {
    decode_compressed_with(bytes, DecodeCompressedOptions::default())
}

/// [`decode_compressed()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_compressed_with(bytes: &Output, options: DecodeCompressedOptions<'_>) -> Output {
    bytes
        .graph()
        .op("DecodeCompressed")
        .input(bytes)
        .attr("compression_type", options.compression_type)
        .output()
}

/// The attributes of [`decode_padded_raw_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodePaddedRawOptions {
    /// `little_endian`: bool, `true` by default.
    pub little_endian: bool,
}

impl Default for DecodePaddedRawOptions {
    fn default() -> Self {
        DecodePaddedRawOptions { little_endian: true }
    }
}

/// `DecodePaddedRaw`: The bytes of strings as numbers, cut or filled with zeros to one length.
#[inline]
#[track_caller]
pub fn decode_padded_raw(input_bytes: &Output, fixed_length: &Output, out_type: DType) -> Output {
    decode_padded_raw_with(input_bytes, fixed_length, out_type, DecodePaddedRawOptions::default())
}

/// [`decode_padded_raw()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_padded_raw_with(
    input_bytes: &Output,
    fixed_length: &Output,
    out_type: DType,
    options: DecodePaddedRawOptions,
) -> Output {
    input_bytes
        .graph()
        .op("DecodePaddedRaw")
        .input(input_bytes)
        .input(fixed_length)
        .attr("out_type", out_type)
        .attr("little_endian", options.little_endian)
        .output()
}

/// The attributes of [`decode_raw_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeRawOptions {
    /// `little_endian`: bool, `true` by default.
    pub little_endian: bool,
}

impl Default for DecodeRawOptions {
    fn default() -> Self {
        DecodeRawOptions { little_endian: true }
    }
}

/// `DecodeRaw`: The bytes of strings, all of one length, as numbers.
#[inline]
#[track_caller]
pub fn decode_raw(bytes: &Output, out_type: DType) -> Output {
    decode_raw_with(bytes, out_type, DecodeRawOptions::default())
}

/// [`decode_raw()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_raw_with(bytes: &Output, out_type: DType, options: DecodeRawOptions) -> Output {
    bytes
        .graph()
        .op("DecodeRaw")
        .input(bytes)
        .attr("out_type", out_type)
        .attr("little_endian", options.little_endian)
        .output()
}

/// The attributes of [`encode_base64_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EncodeBase64Options {
    /// `pad`: bool, `false` by default.
    pub pad: bool,
}

impl Default for EncodeBase64Options {
    fn default() -> Self {
        EncodeBase64Options { pad: false }
    }
}

/// `EncodeBase64`: Strings in web-safe base64.
#[inline]
#[track_caller]
pub fn encode_base64(input: &Output) -> Output {
    encode_base64_with(input, EncodeBase64Options::default())
}

/// [`encode_base64()`] with other attributes.
#[inline]
#[track_caller]
pub fn encode_base64_with(input: &Output, options: EncodeBase64Options) -> Output {
    input.graph().op("EncodeBase64").input(input).attr("pad", options.pad).output()
}

/// `Fingerprint`: A fingerprint for each row of data.
#[inline]
#[track_caller]
pub fn fingerprint(data: &Output, method: &Output) -> Output {
    data.graph().op("Fingerprint").input(data).input(method).output()
}

/// The attributes of [`reduce_join_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ReduceJoinOptions<'a> {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
    /// `separator`: string, empty by default.
    pub separator: &'a str,
}

impl Default for ReduceJoinOptions<'_> {
    fn default() -> Self {
        ReduceJoinOptions { keep_dims: false, separator: "" }
    }
}

/// `ReduceJoin`: Strings joined over some dimensions.
#[inline]
#[track_caller]
pub fn reduce_join(inputs: &Output, reduction_indices: &Output) -> Output {
    reduce_join_with(inputs, reduction_indices, ReduceJoinOptions::default())
}

/// [`reduce_join()`] with other attributes.
#[inline]
#[track_caller]
pub fn reduce_join_with(
    inputs: &Output,
    reduction_indices: &Output,
    options: ReduceJoinOptions<'_>,
) -> Output {
    inputs
        .graph()
        .op("ReduceJoin")
        .input(inputs)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .attr("separator", options.separator)
        .output()
}

/// `RegexFullMatch`: Whether a pattern matches the whole of each string.
#[inline]
#[track_caller]
pub fn regex_full_match(input: &Output, pattern: &Output) -> Output {
    input.graph().op("RegexFullMatch").input(input).input(pattern).output()
}

/// The attributes of [`regex_replace_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RegexReplaceOptions {
    /// `replace_global`: bool, `true` by default.
    pub replace_global: bool,
}

impl Default for RegexReplaceOptions {
    fn default() -> Self {
        RegexReplaceOptions { replace_global: true }
    }
}

/// `RegexReplace`: Matches of a pattern replaced.
#[inline]
#[track_caller]
pub fn regex_replace(input: &Output, pattern: &Output, rewrite: &Output) -> Output {
    regex_replace_with(input, pattern, rewrite, RegexReplaceOptions::default())
}

/// [`regex_replace()`] with other attributes.
#[inline]
#[track_caller]
pub fn regex_replace_with(
    input: &Output,
    pattern: &Output,
    rewrite: &Output,
    options: RegexReplaceOptions,
) -> Output {
    input
        .graph()
        .op("RegexReplace")
        .input(input)
        .input(pattern)
        .input(rewrite)
        .attr("replace_global", options.replace_global)
        .output()
}

/// `SdcaFprint`: Two words that identify each string, for the examples of stochastic dual
/// coordinate ascent.
#[inline]
#[track_caller]
pub fn sdca_fprint(input: &Output) -> Output {
    input.graph().op("SdcaFprint").input(input).output()
}

/// `StaticRegexFullMatch`: Whether a pattern matches the whole of each string.
#[inline]
#[track_caller]
pub fn static_regex_full_match(input: &Output, pattern: &str) -> Output {
    input.graph().op("StaticRegexFullMatch").input(input).attr("pattern", pattern).output()
}

/// The attributes of [`static_regex_replace_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StaticRegexReplaceOptions {
    /// `replace_global`: bool, `true` by default.
    pub replace_global: bool,
}

impl Default for StaticRegexReplaceOptions {
    fn default() -> Self {
        StaticRegexReplaceOptions { replace_global: true }
    }
}

/// `StaticRegexReplace`: Matches of a pattern replaced.
#[inline]
#[track_caller]
pub fn static_regex_replace(input: &Output, pattern: &str, rewrite: &str) -> Output {
    static_regex_replace_with(input, pattern, rewrite, StaticRegexReplaceOptions::default())
}

/// [`static_regex_replace()`] with other attributes.
#[inline]
#[track_caller]
pub fn static_regex_replace_with(
    input: &Output,
    pattern: &str,
    rewrite: &str,
    options: StaticRegexReplaceOptions,
) -> Output {
    input
        .graph()
        .op("StaticRegexReplace")
        .input(input)
        .attr("pattern", pattern)
        .attr("rewrite", rewrite)
        .attr("replace_global", options.replace_global)
        .output()
}

/// The attributes of [`string_format_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringFormatOptions<'a> {
    /// `template`: string, `"%s"` by default.
    pub template: &'a str,
    /// `placeholder`: string, `"%s"` by default.
    pub placeholder: &'a str,
    /// `summarize`: int, `3` by default.
    pub summarize: i64,
}

impl Default for StringFormatOptions<'_> {
    fn default() -> Self {
        StringFormatOptions { template: "%s", placeholder: "%s", summarize: 3 }
    }
}

/// `StringFormat`: A template with its placeholders replaced by tensors.
#[inline]
#[track_caller]
pub fn string_format(g: &Graph, inputs: &[Output]) -> Output {
    string_format_with(g, inputs, StringFormatOptions::default())
}

/// [`string_format()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_format_with(
    g: &Graph,
    inputs: &[Output],
    options: StringFormatOptions<'_>,
) -> Output {
    g.op("StringFormat")
        .list(inputs)
        .attr("template", options.template)
        .attr("placeholder", options.placeholder)
        .attr("summarize", options.summarize)
        .output()
}

/// The attributes of [`string_join_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringJoinOptions<'a> {
    /// `separator`: string, empty by default.
    pub separator: &'a str,
}

impl Default for StringJoinOptions<'_> {
    fn default() -> Self {
        StringJoinOptions { separator: "" }
    }
}

/// `StringJoin`: Strings of all inputs joined, place by place.
#[inline]
#[track_caller]
pub fn string_join(g: &Graph, inputs: &[Output]) -> Output {
    string_join_with(g, inputs, StringJoinOptions::default())
}

/// [`string_join()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_join_with(g: &Graph, inputs: &[Output], options: StringJoinOptions<'_>) -> Output {
    g.op("StringJoin").list(inputs).attr("separator", options.separator).output()
}

/// The attributes of [`string_length_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringLengthOptions<'a> {
    /// `unit`: string, `"BYTE"` by default.
    pub unit: &'a str,
}

impl Default for StringLengthOptions<'_> {
    fn default() -> Self {
        StringLengthOptions { unit: "BYTE" }
    }
}

/// `StringLength`: How long each string is, in bytes or characters.
#[inline]
#[track_caller]
pub fn string_length(input: &Output) -> Output {
    string_length_with(input, StringLengthOptions::default())
}

/// [`string_length()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_length_with(input: &Output, options: StringLengthOptions<'_>) -> Output {
    input.graph().op("StringLength").input(input).attr("unit", options.unit).output()
}

/// The attributes of [`string_lower_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringLowerOptions<'a> {
    /// `encoding`: string, empty by default.
    pub encoding: &'a str,
}

impl Default for StringLowerOptions<'_> {
    fn default() -> Self {
        StringLowerOptions { encoding: "" }
    }
}

/// `StringLower`: Upper-case letters made lower-case.
#[inline]
#[track_caller]
pub fn string_lower(input: &Output) -> Output {
    string_lower_with(input, StringLowerOptions::default())
}

/// [`string_lower()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_lower_with(input: &Output, options: StringLowerOptions<'_>) -> Output {
    input.graph().op("StringLower").input(input).attr("encoding", options.encoding).output()
}

/// `StringNGrams`: Sequences of neighbouring words, joined.
///
/// Returns (`ngrams`, `ngrams_splits`).
#[inline]
#[track_caller]
pub fn string_n_grams(
    data: &Output,
    data_splits: &Output,
    separator: &str,
    ngram_widths: &[i64],
    left_pad: &str,
    right_pad: &str,
    pad_width: i64,
    preserve_short_sequences: bool,
) -> (Output, Output) {
    let [ngrams, ngrams_splits] = data
        .graph()
        .op("StringNGrams")
        .input(data)
        .input(data_splits)
        .attr("separator", separator)
        .attr("ngram_widths", list(ngram_widths))
        .attr("left_pad", left_pad)
        .attr("right_pad", right_pad)
        .attr("pad_width", pad_width)
        .attr("preserve_short_sequences", preserve_short_sequences)
        .split();
    (ngrams, ngrams_splits)
}

/// The attributes of [`string_split_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringSplitOptions {
    /// `skip_empty`: bool, `true` by default.
    pub skip_empty: bool,
}

impl Default for StringSplitOptions {
    fn default() -> Self {
        StringSplitOptions { skip_empty: true }
    }
}

/// `StringSplit`: Pieces of strings between any of the delimiting bytes.
///
/// Returns (`indices`, `values`, `shape`).
#[inline]
#[track_caller]
pub fn string_split(input: &Output, delimiter: &Output) -> (Output, Output, Output) {
    string_split_with(input, delimiter, StringSplitOptions::default())
}

/// [`string_split()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_split_with(
    input: &Output,
    delimiter: &Output,
    options: StringSplitOptions,
) -> (Output, Output, Output) {
    let [indices, values, shape] = input
        .graph()
        .op("StringSplit")
        .input(input)
        .input(delimiter)
        .attr("skip_empty", options.skip_empty)
        .split();
    (indices, values, shape)
}

/// The attributes of [`string_split_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringSplitV2Options {
    /// `maxsplit`: int, `-1` by default.
    pub maxsplit: i64,
}

impl Default for StringSplitV2Options {
    fn default() -> Self {
        StringSplitV2Options { maxsplit: -1 }
    }
}

/// `StringSplitV2`: Pieces of strings between separators, as Python splits.
///
/// Returns (`indices`, `values`, `shape`).
#[inline]
#[track_caller]
pub fn string_split_v2(input: &Output, sep: &Output) -> (Output, Output, Output) {
    string_split_v2_with(input, sep, StringSplitV2Options::default())
}

/// [`string_split_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_split_v2_with(
    input: &Output,
    sep: &Output,
    options: StringSplitV2Options,
) -> (Output, Output, Output) {
    let [indices, values, shape] = input
        .graph()
        .op("StringSplitV2")
        .input(input)
        .input(sep)
        .attr("maxsplit", options.maxsplit)
        .split();
    (indices, values, shape)
}

/// `StringStrip`: Strings without the white space around them.
#[inline]
#[track_caller]
pub fn string_strip(input: &Output) -> Output {
    input.graph().op("StringStrip").input(input).output()
}

/// `StringToHashBucket`: Each string's bucket, by TensorFlow's first hash.
#[inline]
#[track_caller]
pub fn string_to_hash_bucket(string_tensor: &Output, num_buckets: i64) -> Output {
    string_tensor
        .graph()
        .op("StringToHashBucket")
        .input(string_tensor)
        .attr("num_buckets", num_buckets)
        .output()
}

/// `StringToHashBucketFast`: Each string's bucket, by FarmHash.
#[inline]
#[track_caller]
pub fn string_to_hash_bucket_fast(input: &Output, num_buckets: i64) -> Output {
    input
        .graph()
        .op("StringToHashBucketFast")
        .input(input)
        .attr("num_buckets", num_buckets)
        .output()
}

/// `StringToHashBucketStrong`: Each string's bucket, by a hash with a key.
#[inline]
#[track_caller]
pub fn string_to_hash_bucket_strong(input: &Output, num_buckets: i64, key: &[i64]) -> Output {
    input
        .graph()
        .op("StringToHashBucketStrong")
        .input(input)
        .attr("num_buckets", num_buckets)
        .attr("key", list(key))
        .output()
}

/// The attributes of [`string_to_number_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringToNumberOptions {
    /// `out_type`: type, `Float` by default.
    pub out_type: DType,
}

impl Default for StringToNumberOptions {
    fn default() -> Self {
        StringToNumberOptions { out_type: DType::Float }
    }
}

/// `StringToNumber`: The numbers that strings spell.
#[inline]
#[track_caller]
pub fn string_to_number(string_tensor: &Output) -> Output {
    string_to_number_with(string_tensor, StringToNumberOptions::default())
}

/// [`string_to_number()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_to_number_with(string_tensor: &Output, options: StringToNumberOptions) -> Output {
    string_tensor
        .graph()
        .op("StringToNumber")
        .input(string_tensor)
        .attr("out_type", options.out_type)
        .output()
}

/// The attributes of [`string_upper_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StringUpperOptions<'a> {
    /// `encoding`: string, empty by default.
    pub encoding: &'a str,
}

impl Default for StringUpperOptions<'_> {
    fn default() -> Self {
        StringUpperOptions { encoding: "" }
    }
}

/// `StringUpper`: Lower-case letters made upper-case.
#[inline]
#[track_caller]
pub fn string_upper(input: &Output) -> Output {
    string_upper_with(input, StringUpperOptions::default())
}

/// [`string_upper()`] with other attributes.
#[inline]
#[track_caller]
pub fn string_upper_with(input: &Output, options: StringUpperOptions<'_>) -> Output {
    input.graph().op("StringUpper").input(input).attr("encoding", options.encoding).output()
}

/// The attributes of [`substr_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SubstrOptions<'a> {
    /// `unit`: string, `"BYTE"` by default.
    pub unit: &'a str,
}

impl Default for SubstrOptions<'_> {
    fn default() -> Self {
        SubstrOptions { unit: "BYTE" }
    }
}

/// `Substr`: Parts of strings, from `pos` and `len` long.
#[inline]
#[track_caller]
pub fn substr(input: &Output, pos: &Output, len: &Output) -> Output {
    substr_with(input, pos, len, SubstrOptions::default())
}

/// [`substr()`] with other attributes.
#[inline]
#[track_caller]
pub fn substr_with(
    input: &Output,
    pos: &Output,
    len: &Output,
    options: SubstrOptions<'_>,
) -> Output {
    input
        .graph()
        .op("Substr")
        .input(input)
        .input(pos)
        .input(len)
        .attr("unit", options.unit)
        .output()
}

/// The attributes of [`unicode_decode_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnicodeDecodeOptions<'a> {
    /// `errors`: string, `"replace"` by default.
    pub errors: &'a str,
    /// `replacement_char`: int, `65533` by default.
    pub replacement_char: i64,
    /// `replace_control_characters`: bool, `false` by default.
    pub replace_control_characters: bool,
    /// `Tsplits`: type, `Int64` by default.
    pub tsplits: DType,
}

impl Default for UnicodeDecodeOptions<'_> {
    fn default() -> Self {
        UnicodeDecodeOptions {
            errors: "replace",
            replacement_char: 65533,
            replace_control_characters: false,
            tsplits: DType::Int64,
        }
    }
}

/// `UnicodeDecode`: The code points of text.
///
/// Returns (`row_splits`, `char_values`).
#[inline]
#[track_caller]
pub fn unicode_decode(input: &Output, input_encoding: &str) -> (Output, Output) {
    unicode_decode_with(input, input_encoding, UnicodeDecodeOptions::default())
}

/// [`unicode_decode()`] with other attributes.
#[inline]
#[track_caller]
pub fn unicode_decode_with(
    input: &Output,
    input_encoding: &str,
    options: UnicodeDecodeOptions<'_>,
) -> (Output, Output) {
    let [row_splits, char_values] = input
        .graph()
        .op("UnicodeDecode")
        .input(input)
        .attr("input_encoding", input_encoding)
        .attr("errors", options.errors)
        .attr("replacement_char", options.replacement_char)
        .attr("replace_control_characters", options.replace_control_characters)
        .attr("Tsplits", options.tsplits)
        .split();
    (row_splits, char_values)
}

/// The attributes of [`unicode_decode_with_offsets_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnicodeDecodeWithOffsetsOptions<'a> {
    /// `errors`: string, `"replace"` by default.
    pub errors: &'a str,
    /// `replacement_char`: int, `65533` by default.
    pub replacement_char: i64,
    /// `replace_control_characters`: bool, `false` by default.
    pub replace_control_characters: bool,
    /// `Tsplits`: type, `Int64` by default.
    pub tsplits: DType,
}

impl Default for UnicodeDecodeWithOffsetsOptions<'_> {
    fn default() -> Self {
        UnicodeDecodeWithOffsetsOptions {
            errors: "replace",
            replacement_char: 65533,
            replace_control_characters: false,
            tsplits: DType::Int64,
        }
    }
}

/// `UnicodeDecodeWithOffsets`: The code points of text, and where each begins.
///
/// Returns (`row_splits`, `char_values`, `char_to_byte_starts`).
#[inline]
#[track_caller]
pub fn unicode_decode_with_offsets(
    input: &Output,
    input_encoding: &str,
) -> (Output, Output, Output) {
    unicode_decode_with_offsets_with(
        input,
        input_encoding,
        UnicodeDecodeWithOffsetsOptions::default(),
    )
}

/// [`unicode_decode_with_offsets()`] with other attributes.
#[inline]
#[track_caller]
pub fn unicode_decode_with_offsets_with(
    input: &Output,
    input_encoding: &str,
    options: UnicodeDecodeWithOffsetsOptions<'_>,
) -> (Output, Output, Output) {
    let [row_splits, char_values, char_to_byte_starts] = input
        .graph()
        .op("UnicodeDecodeWithOffsets")
        .input(input)
        .attr("input_encoding", input_encoding)
        .attr("errors", options.errors)
        .attr("replacement_char", options.replacement_char)
        .attr("replace_control_characters", options.replace_control_characters)
        .attr("Tsplits", options.tsplits)
        .split();
    (row_splits, char_values, char_to_byte_starts)
}

/// The attributes of [`unicode_encode_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnicodeEncodeOptions<'a> {
    /// `errors`: string, `"replace"` by default.
    pub errors: &'a str,
    /// `replacement_char`: int, `65533` by default.
    pub replacement_char: i64,
}

impl Default for UnicodeEncodeOptions<'_> {
    fn default() -> Self {
        UnicodeEncodeOptions { errors: "replace", replacement_char: 65533 }
    }
}

/// `UnicodeEncode`: Text of these code points.
#[inline]
#[track_caller]
pub fn unicode_encode(
    input_values: &Output,
    input_splits: &Output,
    output_encoding: &str,
) -> Output {
    unicode_encode_with(
        input_values,
        input_splits,
        output_encoding,
        UnicodeEncodeOptions::default(),
    )
}

/// [`unicode_encode()`] with other attributes.
#[inline]
#[track_caller]
pub fn unicode_encode_with(
    input_values: &Output,
    input_splits: &Output,
    output_encoding: &str,
    options: UnicodeEncodeOptions<'_>,
) -> Output {
    input_values
        .graph()
        .op("UnicodeEncode")
        .input(input_values)
        .input(input_splits)
        .attr("output_encoding", output_encoding)
        .attr("errors", options.errors)
        .attr("replacement_char", options.replacement_char)
        .output()
}

/// `UnicodeScript`: The scripts of code points, numbered as in ICU.
#[inline]
#[track_caller]
pub fn unicode_script(input: &Output) -> Output {
    input.graph().op("UnicodeScript").input(input).output()
}

/// The attributes of [`unicode_transcode_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnicodeTranscodeOptions<'a> {
    /// `errors`: string, `"replace"` by default.
    pub errors: &'a str,
    /// `replacement_char`: int, `65533` by default.
    pub replacement_char: i64,
    /// `replace_control_characters`: bool, `false` by default.
    pub replace_control_characters: bool,
}

impl Default for UnicodeTranscodeOptions<'_> {
    fn default() -> Self {
        UnicodeTranscodeOptions {
            errors: "replace",
            replacement_char: 65533,
            replace_control_characters: false,
        }
    }
}

/// `UnicodeTranscode`: Text in another encoding.
#[inline]
#[track_caller]
pub fn unicode_transcode(input: &Output, input_encoding: &str, output_encoding: &str) -> Output {
    unicode_transcode_with(
        input,
        input_encoding,
        output_encoding,
        UnicodeTranscodeOptions::default(),
    )
}

/// [`unicode_transcode()`] with other attributes.
#[inline]
#[track_caller]
pub fn unicode_transcode_with(
    input: &Output,
    input_encoding: &str,
    output_encoding: &str,
    options: UnicodeTranscodeOptions<'_>,
) -> Output {
    input
        .graph()
        .op("UnicodeTranscode")
        .input(input)
        .attr("input_encoding", input_encoding)
        .attr("output_encoding", output_encoding)
        .attr("errors", options.errors)
        .attr("replacement_char", options.replacement_char)
        .attr("replace_control_characters", options.replace_control_characters)
        .output()
}

/// The attributes of [`unsorted_segment_join_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnsortedSegmentJoinOptions<'a> {
    /// `separator`: string, empty by default.
    pub separator: &'a str,
}

impl Default for UnsortedSegmentJoinOptions<'_> {
    fn default() -> Self {
        UnsortedSegmentJoinOptions { separator: "" }
    }
}

/// `UnsortedSegmentJoin`: Strings of each segment joined.
#[inline]
#[track_caller]
pub fn unsorted_segment_join(
    inputs: &Output,
    segment_ids: &Output,
    num_segments: &Output,
) -> Output {
    unsorted_segment_join_with(
        inputs,
        segment_ids,
        num_segments,
        UnsortedSegmentJoinOptions::default(),
    )
}

/// [`unsorted_segment_join()`] with other attributes.
#[inline]
#[track_caller]
pub fn unsorted_segment_join_with(
    inputs: &Output,
    segment_ids: &Output,
    num_segments: &Output,
    options: UnsortedSegmentJoinOptions<'_>,
) -> Output {
    inputs
        .graph()
        .op("UnsortedSegmentJoin")
        .input(inputs)
        .input(segment_ids)
        .input(num_segments)
        .attr("separator", options.separator)
        .output()
}
