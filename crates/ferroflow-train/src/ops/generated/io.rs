//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;
use ferroflow_core::Tensor;

/// The attributes of [`assert_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AssertOptions {
    /// `summarize`: int, `3` by default.
    pub summarize: i64,
}

impl Default for AssertOptions {
    fn default() -> Self {
        AssertOptions { summarize: 3 }
    }
}

/// `Assert`: Fails with the data given unless the condition holds.
#[inline]
#[track_caller]
pub fn assert(condition: &Output, data: &[Output]) -> Operation {
    assert_with(condition, data, AssertOptions::default())
}

/// [`assert()`] with other attributes.
#[inline]
#[track_caller]
pub fn assert_with(condition: &Output, data: &[Output], options: AssertOptions) -> Operation {
    condition
        .graph()
        .op("Assert")
        .input(condition)
        .list(data)
        .attr("summarize", options.summarize)
        .operation()
}

/// The attributes of [`audio_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AudioSummaryOptions {
    /// `max_outputs`: int, `3` by default.
    pub max_outputs: i64,
}

impl Default for AudioSummaryOptions {
    fn default() -> Self {
        AudioSummaryOptions { max_outputs: 3 }
    }
}

/// `AudioSummary`: A summary of sound, at a fixed sample rate.
#[inline]
#[track_caller]
pub fn audio_summary(tag: &Output, tensor: &Output, sample_rate: f32) -> Output {
    audio_summary_with(tag, tensor, sample_rate, AudioSummaryOptions::default())
}

/// [`audio_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn audio_summary_with(
    tag: &Output,
    tensor: &Output,
    sample_rate: f32,
    options: AudioSummaryOptions,
) -> Output {
    tag.graph()
        .op("AudioSummary")
        .input(tag)
        .input(tensor)
        .attr("sample_rate", sample_rate)
        .attr("max_outputs", options.max_outputs)
        .output()
}

/// The attributes of [`audio_summary_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AudioSummaryV2Options {
    /// `max_outputs`: int, `3` by default.
    pub max_outputs: i64,
}

impl Default for AudioSummaryV2Options {
    fn default() -> Self {
        AudioSummaryV2Options { max_outputs: 3 }
    }
}

/// `AudioSummaryV2`: A summary of sound.
#[inline]
#[track_caller]
pub fn audio_summary_v2(tag: &Output, tensor: &Output, sample_rate: &Output) -> Output {
    audio_summary_v2_with(tag, tensor, sample_rate, AudioSummaryV2Options::default())
}

/// [`audio_summary_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn audio_summary_v2_with(
    tag: &Output,
    tensor: &Output,
    sample_rate: &Output,
    options: AudioSummaryV2Options,
) -> Output {
    tag.graph()
        .op("AudioSummaryV2")
        .input(tag)
        .input(tensor)
        .input(sample_rate)
        .attr("max_outputs", options.max_outputs)
        .output()
}

/// `CloseSummaryWriter`: Closes the file of a summary writer.
#[inline]
#[track_caller]
pub fn close_summary_writer(writer: &Output) -> Operation {
    writer.graph().op("CloseSummaryWriter").input(writer).operation()
}

/// `CreateSummaryFileWriter`: Gives a summary writer a file, unless it has one.
#[inline]
#[track_caller]
pub fn create_summary_file_writer(
    writer: &Output,
    logdir: &Output,
    max_queue: &Output,
    flush_millis: &Output,
    filename_suffix: &Output,
) -> Operation {
    writer
        .graph()
        .op("CreateSummaryFileWriter")
        .input(writer)
        .input(logdir)
        .input(max_queue)
        .input(flush_millis)
        .input(filename_suffix)
        .operation()
}

/// The attributes of [`decode_wav_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeWavOptions {
    /// `desired_channels`: int, `-1` by default.
    pub desired_channels: i64,
    /// `desired_samples`: int, `-1` by default.
    pub desired_samples: i64,
}

impl Default for DecodeWavOptions {
    fn default() -> Self {
        DecodeWavOptions { desired_channels: -1, desired_samples: -1 }
    }
}

/// `DecodeWav`: The sound in a WAV file of 16-bit samples.
///
/// Returns (`audio`, `sample_rate`).
#[inline]
#[track_caller]
pub fn decode_wav(contents: &Output) -> (Output, Output) {
    decode_wav_with(contents, DecodeWavOptions::default())
}

/// [`decode_wav()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_wav_with(contents: &Output, options: DecodeWavOptions) -> (Output, Output) {
    let [audio, sample_rate] = contents
        .graph()
        .op("DecodeWav")
        .input(contents)
        .attr("desired_channels", options.desired_channels)
        .attr("desired_samples", options.desired_samples)
        .split();
    (audio, sample_rate)
}

/// `EncodeWav`: Sound as a WAV file of 16-bit samples.
#[inline]
#[track_caller]
pub fn encode_wav(audio: &Output, sample_rate: &Output) -> Output {
    audio.graph().op("EncodeWav").input(audio).input(sample_rate).output()
}

/// The attributes of [`fixed_length_record_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FixedLengthRecordReaderOptions<'a> {
    /// `header_bytes`: int, `0` by default.
    pub header_bytes: i64,
    /// `footer_bytes`: int, `0` by default.
    pub footer_bytes: i64,
    /// `hop_bytes`: int, `0` by default.
    pub hop_bytes: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for FixedLengthRecordReaderOptions<'_> {
    fn default() -> Self {
        FixedLengthRecordReaderOptions {
            header_bytes: 0,
            footer_bytes: 0,
            hop_bytes: 0,
            container: "",
            shared_name: "",
        }
    }
}

/// `FixedLengthRecordReader`: A reader of files.
#[inline]
#[track_caller]
pub fn fixed_length_record_reader(g: &Graph, record_bytes: i64) -> Output {
    fixed_length_record_reader_with(g, record_bytes, FixedLengthRecordReaderOptions::default())
}

/// [`fixed_length_record_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn fixed_length_record_reader_with(
    g: &Graph,
    record_bytes: i64,
    options: FixedLengthRecordReaderOptions<'_>,
) -> Output {
    g.op("FixedLengthRecordReader")
        .attr("record_bytes", record_bytes)
        .attr("header_bytes", options.header_bytes)
        .attr("footer_bytes", options.footer_bytes)
        .attr("hop_bytes", options.hop_bytes)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`fixed_length_record_reader_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FixedLengthRecordReaderV2Options<'a> {
    /// `header_bytes`: int, `0` by default.
    pub header_bytes: i64,
    /// `footer_bytes`: int, `0` by default.
    pub footer_bytes: i64,
    /// `hop_bytes`: int, `0` by default.
    pub hop_bytes: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `encoding`: string, empty by default.
    pub encoding: &'a str,
}

impl Default for FixedLengthRecordReaderV2Options<'_> {
    fn default() -> Self {
        FixedLengthRecordReaderV2Options {
            header_bytes: 0,
            footer_bytes: 0,
            hop_bytes: 0,
            container: "",
            shared_name: "",
            encoding: "",
        }
    }
}

/// `FixedLengthRecordReaderV2`: A reader of files.
#[inline]
#[track_caller]
pub fn fixed_length_record_reader_v2(g: &Graph, record_bytes: i64) -> Output {
    fixed_length_record_reader_v2_with(g, record_bytes, FixedLengthRecordReaderV2Options::default())
}

/// [`fixed_length_record_reader_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn fixed_length_record_reader_v2_with(
    g: &Graph,
    record_bytes: i64,
    options: FixedLengthRecordReaderV2Options<'_>,
) -> Output {
    g.op("FixedLengthRecordReaderV2")
        .attr("record_bytes", record_bytes)
        .attr("header_bytes", options.header_bytes)
        .attr("footer_bytes", options.footer_bytes)
        .attr("hop_bytes", options.hop_bytes)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("encoding", options.encoding)
        .output()
}

/// `FlushSummaryWriter`: Writes out what is pending.
#[inline]
#[track_caller]
pub fn flush_summary_writer(writer: &Output) -> Operation {
    writer.graph().op("FlushSummaryWriter").input(writer).operation()
}

/// The attributes of [`generate_vocab_remapping_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct GenerateVocabRemappingOptions {
    /// `old_vocab_size`: int, `-1` by default.
    pub old_vocab_size: i64,
}

impl Default for GenerateVocabRemappingOptions {
    fn default() -> Self {
        GenerateVocabRemappingOptions { old_vocab_size: -1 }
    }
}

/// `GenerateVocabRemapping`: Where the words of a new vocabulary are in an old one; -1 for new
/// words.
///
/// Returns (`remapping`, `num_present`).
#[inline]
#[track_caller]
pub fn generate_vocab_remapping(
    new_vocab_file: &Output,
    old_vocab_file: &Output,
    new_vocab_offset: i64,
    num_new_vocab: i64,
) -> (Output, Output) {
    generate_vocab_remapping_with(
        new_vocab_file,
        old_vocab_file,
        new_vocab_offset,
        num_new_vocab,
        GenerateVocabRemappingOptions::default(),
    )
}

/// [`generate_vocab_remapping()`] with other attributes.
#[inline]
#[track_caller]
pub fn generate_vocab_remapping_with(
    new_vocab_file: &Output,
    old_vocab_file: &Output,
    new_vocab_offset: i64,
    num_new_vocab: i64,
    options: GenerateVocabRemappingOptions,
) -> (Output, Output) {
    let [remapping, num_present] = new_vocab_file
        .graph()
        .op("GenerateVocabRemapping")
        .input(new_vocab_file)
        .input(old_vocab_file)
        .attr("new_vocab_offset", new_vocab_offset)
        .attr("num_new_vocab", num_new_vocab)
        .attr("old_vocab_size", options.old_vocab_size)
        .split();
    (remapping, num_present)
}

/// `HistogramSummary`: A summary of how values are distributed.
#[inline]
#[track_caller]
pub fn histogram_summary(tag: &Output, values: &Output) -> Output {
    tag.graph().op("HistogramSummary").input(tag).input(values).output()
}

/// The attributes of [`identity_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IdentityReaderOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for IdentityReaderOptions<'_> {
    fn default() -> Self {
        IdentityReaderOptions { container: "", shared_name: "" }
    }
}

/// `IdentityReader`: A reader of files.
#[inline]
#[track_caller]
pub fn identity_reader(g: &Graph) -> Output {
    identity_reader_with(g, IdentityReaderOptions::default())
}

/// [`identity_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn identity_reader_with(g: &Graph, options: IdentityReaderOptions<'_>) -> Output {
    g.op("IdentityReader")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`identity_reader_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IdentityReaderV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for IdentityReaderV2Options<'_> {
    fn default() -> Self {
        IdentityReaderV2Options { container: "", shared_name: "" }
    }
}

/// `IdentityReaderV2`: A reader of files.
#[inline]
#[track_caller]
pub fn identity_reader_v2(g: &Graph) -> Output {
    identity_reader_v2_with(g, IdentityReaderV2Options::default())
}

/// [`identity_reader_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn identity_reader_v2_with(g: &Graph, options: IdentityReaderV2Options<'_>) -> Output {
    g.op("IdentityReaderV2")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`image_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ImageSummaryOptions<'a> {
    /// `max_images`: int, `3` by default.
    pub max_images: i64,
    /// `bad_color`: tensor, none by default.
    pub bad_color: Option<&'a Tensor>,
}

impl Default for ImageSummaryOptions<'_> {
    fn default() -> Self {
        ImageSummaryOptions { max_images: 3, bad_color: None }
    }
}

/// `ImageSummary`: A summary of images.
#[inline]
#[track_caller]
pub fn image_summary(tag: &Output, tensor: &Output) -> Output {
    image_summary_with(tag, tensor, ImageSummaryOptions::default())
}

/// [`image_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn image_summary_with(
    tag: &Output,
    tensor: &Output,
    options: ImageSummaryOptions<'_>,
) -> Output {
    tag.graph()
        .op("ImageSummary")
        .input(tag)
        .input(tensor)
        .attr("max_images", options.max_images)
        .attr_if_given("bad_color", options.bad_color.cloned())
        .output()
}

/// `ImmutableConst`: A constant that is read from a file.
#[inline]
#[track_caller]
pub fn immutable_const(
    g: &Graph,
    dtype: DType,
    shape: &PartialShape,
    memory_region_name: &str,
) -> Output {
    g.op("ImmutableConst")
        .attr("dtype", dtype)
        .attr("shape", shape.clone())
        .attr("memory_region_name", memory_region_name)
        .output()
}

/// `ImportEvent`: Writes a serialized Event.
#[inline]
#[track_caller]
pub fn import_event(writer: &Output, event: &Output) -> Operation {
    writer.graph().op("ImportEvent").input(writer).input(event).operation()
}

/// The attributes of [`lmdb_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LMDBReaderOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for LMDBReaderOptions<'_> {
    fn default() -> Self {
        LMDBReaderOptions { container: "", shared_name: "" }
    }
}

/// `LMDBReader`: A reader of LMDB databases.
#[inline]
#[track_caller]
pub fn lmdb_reader(g: &Graph) -> Output {
    lmdb_reader_with(g, LMDBReaderOptions::default())
}

/// [`lmdb_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn lmdb_reader_with(g: &Graph, options: LMDBReaderOptions<'_>) -> Output {
    g.op("LMDBReader")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`load_and_remap_matrix_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LoadAndRemapMatrixOptions {
    /// `max_rows_in_memory`: int, `-1` by default.
    pub max_rows_in_memory: i64,
}

impl Default for LoadAndRemapMatrixOptions {
    fn default() -> Self {
        LoadAndRemapMatrixOptions { max_rows_in_memory: -1 }
    }
}

/// `LoadAndRemapMatrix`: A matrix of a checkpoint with its rows and columns in another order.
#[inline]
#[track_caller]
pub fn load_and_remap_matrix(
    ckpt_path: &Output,
    old_tensor_name: &Output,
    row_remapping: &Output,
    col_remapping: &Output,
    initializing_values: &Output,
    num_rows: i64,
    num_cols: i64,
) -> Output {
    load_and_remap_matrix_with(
        ckpt_path,
        old_tensor_name,
        row_remapping,
        col_remapping,
        initializing_values,
        num_rows,
        num_cols,
        LoadAndRemapMatrixOptions::default(),
    )
}

/// [`load_and_remap_matrix()`] with other attributes.
#[inline]
#[track_caller]
pub fn load_and_remap_matrix_with(
    ckpt_path: &Output,
    old_tensor_name: &Output,
    row_remapping: &Output,
    col_remapping: &Output,
    initializing_values: &Output,
    num_rows: i64,
    num_cols: i64,
    options: LoadAndRemapMatrixOptions,
) -> Output {
    ckpt_path
        .graph()
        .op("LoadAndRemapMatrix")
        .input(ckpt_path)
        .input(old_tensor_name)
        .input(row_remapping)
        .input(col_remapping)
        .input(initializing_values)
        .attr("num_rows", num_rows)
        .attr("num_cols", num_cols)
        .attr("max_rows_in_memory", options.max_rows_in_memory)
        .output()
}

/// `MatchingFiles`: The files whose names match one of these patterns, sorted.
#[inline]
#[track_caller]
pub fn matching_files(pattern: &Output) -> Output {
    pattern.graph().op("MatchingFiles").input(pattern).output()
}

/// `MergeSummary`: One summary of several.
#[inline]
#[track_caller]
pub fn merge_summary(g: &Graph, inputs: &[Output]) -> Output {
    g.op("MergeSummary").list(inputs).output()
}

/// The attributes of [`merge_v2_checkpoints_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MergeV2CheckpointsOptions {
    /// `delete_old_dirs`: bool, `true` by default.
    pub delete_old_dirs: bool,
    /// `allow_missing_files`: bool, `false` by default.
    pub allow_missing_files: bool,
}

impl Default for MergeV2CheckpointsOptions {
    fn default() -> Self {
        MergeV2CheckpointsOptions { delete_old_dirs: true, allow_missing_files: false }
    }
}

/// `MergeV2Checkpoints`: Makes one checkpoint of those that several tasks wrote.
#[inline]
#[track_caller]
pub fn merge_v2_checkpoints(
    checkpoint_prefixes: &Output,
    destination_prefix: &Output,
) -> Operation {
    merge_v2_checkpoints_with(
        checkpoint_prefixes,
        destination_prefix,
        MergeV2CheckpointsOptions::default(),
    )
}

/// [`merge_v2_checkpoints()`] with other attributes.
#[inline]
#[track_caller]
pub fn merge_v2_checkpoints_with(
    checkpoint_prefixes: &Output,
    destination_prefix: &Output,
    options: MergeV2CheckpointsOptions,
) -> Operation {
    checkpoint_prefixes
        .graph()
        .op("MergeV2Checkpoints")
        .input(checkpoint_prefixes)
        .input(destination_prefix)
        .attr("delete_old_dirs", options.delete_old_dirs)
        .attr("allow_missing_files", options.allow_missing_files)
        .operation()
}

/// The attributes of [`print_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PrintOptions<'a> {
    /// `message`: string, empty by default.
    pub message: &'a str,
    /// `first_n`: int, `-1` by default.
    pub first_n: i64,
    /// `summarize`: int, `3` by default.
    pub summarize: i64,
}

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        PrintOptions { message: "", first_n: -1, summarize: 3 }
    }
}

/// `Print`: Its input; says a message and the data given.
#[inline]
#[track_caller]
pub fn print(input: &Output, data: &[Output]) -> Output {
    print_with(input, data, PrintOptions::default())
}

/// [`print()`] with other attributes.
#[inline]
#[track_caller]
pub fn print_with(input: &Output, data: &[Output], options: PrintOptions<'_>) -> Output {
    input
        .graph()
        .op("Print")
        .input(input)
        .list(data)
        .attr("message", options.message)
        .attr("first_n", options.first_n)
        .attr("summarize", options.summarize)
        .output()
}

/// The attributes of [`print_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PrintV2Options<'a> {
    /// `output_stream`: string, `"stderr"` by default.
    pub output_stream: &'a str,
    /// `end`: string, `"\n"` by default.
    pub end: &'a str,
}

impl Default for PrintV2Options<'_> {
    fn default() -> Self {
        PrintV2Options { output_stream: "stderr", end: "\n" }
    }
}

/// `PrintV2`: Says a string.
#[inline]
#[track_caller]
pub fn print_v2(input: &Output) -> Operation {
    print_v2_with(input, PrintV2Options::default())
}

/// [`print_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn print_v2_with(input: &Output, options: PrintV2Options<'_>) -> Operation {
    input
        .graph()
        .op("PrintV2")
        .input(input)
        .attr("output_stream", options.output_stream)
        .attr("end", options.end)
        .operation()
}

/// `ReadFile`: What is in a file.
#[inline]
#[track_caller]
pub fn read_file(filename: &Output) -> Output {
    filename.graph().op("ReadFile").input(filename).output()
}

/// `ReaderNumRecordsProduced`: How many records a reader has given.
#[inline]
#[track_caller]
pub fn reader_num_records_produced(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderNumRecordsProduced").input(reader_handle).output()
}

/// `ReaderNumRecordsProducedV2`: How many records a reader has given.
#[inline]
#[track_caller]
pub fn reader_num_records_produced_v2(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderNumRecordsProducedV2").input(reader_handle).output()
}

/// `ReaderNumWorkUnitsCompleted`: How many files a reader is done with.
#[inline]
#[track_caller]
pub fn reader_num_work_units_completed(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderNumWorkUnitsCompleted").input(reader_handle).output()
}

/// `ReaderNumWorkUnitsCompletedV2`: How many files a reader is done with.
#[inline]
#[track_caller]
pub fn reader_num_work_units_completed_v2(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderNumWorkUnitsCompletedV2").input(reader_handle).output()
}

/// `ReaderRead`: The next record of a reader, from files that a queue names.
///
/// Returns (`key`, `value`).
#[inline]
#[track_caller]
pub fn reader_read(reader_handle: &Output, queue_handle: &Output) -> (Output, Output) {
    let [key, value] =
        reader_handle.graph().op("ReaderRead").input(reader_handle).input(queue_handle).split();
    (key, value)
}

/// `ReaderReadUpTo`: Several records of a reader, from files that a queue names.
///
/// Returns (`keys`, `values`).
#[inline]
#[track_caller]
pub fn reader_read_up_to(
    reader_handle: &Output,
    queue_handle: &Output,
    num_records: &Output,
) -> (Output, Output) {
    let [keys, values] = reader_handle
        .graph()
        .op("ReaderReadUpTo")
        .input(reader_handle)
        .input(queue_handle)
        .input(num_records)
        .split();
    (keys, values)
}

/// `ReaderReadUpToV2`: Several records of a reader, from files that a queue names.
///
/// Returns (`keys`, `values`).
#[inline]
#[track_caller]
pub fn reader_read_up_to_v2(
    reader_handle: &Output,
    queue_handle: &Output,
    num_records: &Output,
) -> (Output, Output) {
    let [keys, values] = reader_handle
        .graph()
        .op("ReaderReadUpToV2")
        .input(reader_handle)
        .input(queue_handle)
        .input(num_records)
        .split();
    (keys, values)
}

/// `ReaderReadV2`: The next record of a reader, from files that a queue names.
///
/// Returns (`key`, `value`).
#[inline]
#[track_caller]
pub fn reader_read_v2(reader_handle: &Output, queue_handle: &Output) -> (Output, Output) {
    let [key, value] =
        reader_handle.graph().op("ReaderReadV2").input(reader_handle).input(queue_handle).split();
    (key, value)
}

/// `ReaderReset`: Puts a reader in the state it began in.
#[inline]
#[track_caller]
pub fn reader_reset(reader_handle: &Output) -> Operation {
    reader_handle.graph().op("ReaderReset").input(reader_handle).operation()
}

/// `ReaderResetV2`: Puts a reader in the state it began in.
#[inline]
#[track_caller]
pub fn reader_reset_v2(reader_handle: &Output) -> Operation {
    reader_handle.graph().op("ReaderResetV2").input(reader_handle).operation()
}

/// `ReaderRestoreState`: Puts a reader in a state it was in before.
#[inline]
#[track_caller]
pub fn reader_restore_state(reader_handle: &Output, state: &Output) -> Operation {
    reader_handle.graph().op("ReaderRestoreState").input(reader_handle).input(state).operation()
}

/// `ReaderRestoreStateV2`: Puts a reader in a state it was in before.
#[inline]
#[track_caller]
pub fn reader_restore_state_v2(reader_handle: &Output, state: &Output) -> Operation {
    reader_handle.graph().op("ReaderRestoreStateV2").input(reader_handle).input(state).operation()
}

/// `ReaderSerializeState`: The state of a reader, as a string.
#[inline]
#[track_caller]
pub fn reader_serialize_state(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderSerializeState").input(reader_handle).output()
}

/// `ReaderSerializeStateV2`: The state of a reader, as a string.
#[inline]
#[track_caller]
pub fn reader_serialize_state_v2(reader_handle: &Output) -> Output {
    reader_handle.graph().op("ReaderSerializeStateV2").input(reader_handle).output()
}

/// The attributes of [`record_input_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RecordInputOptions<'a> {
    /// `file_random_seed`: int, `301` by default.
    pub file_random_seed: i64,
    /// `file_shuffle_shift_ratio`: float, `0.0` by default.
    pub file_shuffle_shift_ratio: f32,
    /// `file_buffer_size`: int, `10000` by default.
    pub file_buffer_size: i64,
    /// `file_parallelism`: int, `16` by default.
    pub file_parallelism: i64,
    /// `batch_size`: int, `32` by default.
    pub batch_size: i64,
    /// `compression_type`: string, empty by default.
    pub compression_type: &'a str,
}

impl Default for RecordInputOptions<'_> {
    fn default() -> Self {
        RecordInputOptions {
            file_random_seed: 301,
            file_shuffle_shift_ratio: 0.0,
            file_buffer_size: 10000,
            file_parallelism: 16,
            batch_size: 32,
            compression_type: "",
        }
    }
}

/// `RecordInput`: Records of TFRecord files in random order, without end.
#[inline]
#[track_caller]
pub fn record_input(g: &Graph, file_pattern: &str) -> Output {
    record_input_with(g, file_pattern, RecordInputOptions::default())
}

/// [`record_input()`] with other attributes.
#[inline]
#[track_caller]
pub fn record_input_with(g: &Graph, file_pattern: &str, options: RecordInputOptions<'_>) -> Output {
    g.op("RecordInput")
        .attr("file_pattern", file_pattern)
        .attr("file_random_seed", options.file_random_seed)
        .attr("file_shuffle_shift_ratio", options.file_shuffle_shift_ratio)
        .attr("file_buffer_size", options.file_buffer_size)
        .attr("file_parallelism", options.file_parallelism)
        .attr("batch_size", options.batch_size)
        .attr("compression_type", options.compression_type)
        .output()
}

/// The attributes of [`restore_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// `preferred_shard`: int, `-1` by default.
    pub preferred_shard: i64,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        RestoreOptions { preferred_shard: -1 }
    }
}

/// `Restore`: A tensor from files of the first checkpoint format.
#[inline]
#[track_caller]
pub fn restore(file_pattern: &Output, tensor_name: &Output, dt: DType) -> Output {
    restore_with(file_pattern, tensor_name, dt, RestoreOptions::default())
}

/// [`restore()`] with other attributes.
#[inline]
#[track_caller]
pub fn restore_with(
    file_pattern: &Output,
    tensor_name: &Output,
    dt: DType,
    options: RestoreOptions,
) -> Output {
    file_pattern
        .graph()
        .op("Restore")
        .input(file_pattern)
        .input(tensor_name)
        .attr("dt", dt)
        .attr("preferred_shard", options.preferred_shard)
        .output()
}

/// The attributes of [`restore_slice_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RestoreSliceOptions {
    /// `preferred_shard`: int, `-1` by default.
    pub preferred_shard: i64,
}

impl Default for RestoreSliceOptions {
    fn default() -> Self {
        RestoreSliceOptions { preferred_shard: -1 }
    }
}

/// `RestoreSlice`: A slice of a tensor from files of the first checkpoint format.
#[inline]
#[track_caller]
pub fn restore_slice(
    file_pattern: &Output,
    tensor_name: &Output,
    shape_and_slice: &Output,
    dt: DType,
) -> Output {
    restore_slice_with(
        file_pattern,
        tensor_name,
        shape_and_slice,
        dt,
        RestoreSliceOptions::default(),
    )
}

/// [`restore_slice()`] with other attributes.
#[inline]
#[track_caller]
pub fn restore_slice_with(
    file_pattern: &Output,
    tensor_name: &Output,
    shape_and_slice: &Output,
    dt: DType,
    options: RestoreSliceOptions,
) -> Output {
    file_pattern
        .graph()
        .op("RestoreSlice")
        .input(file_pattern)
        .input(tensor_name)
        .input(shape_and_slice)
        .attr("dt", dt)
        .attr("preferred_shard", options.preferred_shard)
        .output()
}

/// `RestoreV2`: Tensors, or slices of them, from a checkpoint.
#[inline]
#[track_caller]
pub fn restore_v2(
    prefix: &Output,
    tensor_names: &Output,
    shape_and_slices: &Output,
    dtypes: &[DType],
) -> Vec<Output> {
    prefix
        .graph()
        .op("RestoreV2")
        .input(prefix)
        .input(tensor_names)
        .input(shape_and_slices)
        .attr("dtypes", list(dtypes))
        .list_outputs()
}

/// `Save`: Saves tensors to a file of the first checkpoint format.
#[inline]
#[track_caller]
pub fn save(filename: &Output, tensor_names: &Output, data: &[Output]) -> Operation {
    filename.graph().op("Save").input(filename).input(tensor_names).list(data).operation()
}

/// `SaveSlices`: Saves slices of tensors to a file of the first checkpoint format.
#[inline]
#[track_caller]
pub fn save_slices(
    filename: &Output,
    tensor_names: &Output,
    shapes_and_slices: &Output,
    data: &[Output],
) -> Operation {
    filename
        .graph()
        .op("SaveSlices")
        .input(filename)
        .input(tensor_names)
        .input(shapes_and_slices)
        .list(data)
        .operation()
}

/// `SaveV2`: Saves tensors, or slices of them, to a checkpoint.
#[inline]
#[track_caller]
pub fn save_v2(
    prefix: &Output,
    tensor_names: &Output,
    shape_and_slices: &Output,
    tensors: &[Output],
) -> Operation {
    prefix
        .graph()
        .op("SaveV2")
        .input(prefix)
        .input(tensor_names)
        .input(shape_and_slices)
        .list(tensors)
        .operation()
}

/// `ScalarSummary`: A summary of numbers, each with its tag.
#[inline]
#[track_caller]
pub fn scalar_summary(tags: &Output, values: &Output) -> Output {
    tags.graph().op("ScalarSummary").input(tags).input(values).output()
}

/// `ShardedFilename`: The name of one of several files.
#[inline]
#[track_caller]
pub fn sharded_filename(basename: &Output, shard: &Output, num_shards: &Output) -> Output {
    basename.graph().op("ShardedFilename").input(basename).input(shard).input(num_shards).output()
}

/// `ShardedFilespec`: A pattern that the names of several files match.
#[inline]
#[track_caller]
pub fn sharded_filespec(basename: &Output, num_shards: &Output) -> Output {
    basename.graph().op("ShardedFilespec").input(basename).input(num_shards).output()
}

/// The outputs of [`skipgram`].
#[derive(Clone, Debug)]
pub struct SkipgramOutputs {
    /// Output `vocab_word`.
    pub vocab_word: Output,
    /// Output `vocab_freq`.
    pub vocab_freq: Output,
    /// Output `words_per_epoch`.
    pub words_per_epoch: Output,
    /// Output `current_epoch`.
    pub current_epoch: Output,
    /// Output `total_words_processed`.
    pub total_words_processed: Output,
    /// Output `examples`.
    pub examples: Output,
    /// Output `labels`.
    pub labels: Output,
}

/// The attributes of [`skipgram_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SkipgramOptions {
    /// `window_size`: int, `5` by default.
    pub window_size: i64,
    /// `min_count`: int, `5` by default.
    pub min_count: i64,
    /// `subsample`: float, `0.001` by default.
    pub subsample: f32,
}

impl Default for SkipgramOptions {
    fn default() -> Self {
        SkipgramOptions { window_size: 5, min_count: 5, subsample: 0.001 }
    }
}

/// `Skipgram`: Pairs of near words of a text file, and the file's vocabulary.
#[inline]
#[track_caller]
pub fn skipgram(g: &Graph, filename: &str, batch_size: i64) -> SkipgramOutputs {
    skipgram_with(g, filename, batch_size, SkipgramOptions::default())
}

/// [`skipgram()`] with other attributes.
#[inline]
#[track_caller]
pub fn skipgram_with(
    g: &Graph,
    filename: &str,
    batch_size: i64,
    options: SkipgramOptions,
) -> SkipgramOutputs {
    let [
        vocab_word,
        vocab_freq,
        words_per_epoch,
        current_epoch,
        total_words_processed,
        examples,
        labels,
    ] = g
        .op("Skipgram")
        .attr("filename", filename)
        .attr("batch_size", batch_size)
        .attr("window_size", options.window_size)
        .attr("min_count", options.min_count)
        .attr("subsample", options.subsample)
        .split();
    SkipgramOutputs {
        vocab_word,
        vocab_freq,
        words_per_epoch,
        current_epoch,
        total_words_processed,
        examples,
        labels,
    }
}

/// The attributes of [`summary_writer_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SummaryWriterOptions<'a> {
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `container`: string, empty by default.
    pub container: &'a str,
}

impl Default for SummaryWriterOptions<'_> {
    fn default() -> Self {
        SummaryWriterOptions { shared_name: "", container: "" }
    }
}

/// `SummaryWriter`: A summary writer.
#[inline]
#[track_caller]
pub fn summary_writer(g: &Graph) -> Output {
    summary_writer_with(g, SummaryWriterOptions::default())
}

/// [`summary_writer()`] with other attributes.
#[inline]
#[track_caller]
pub fn summary_writer_with(g: &Graph, options: SummaryWriterOptions<'_>) -> Output {
    g.op("SummaryWriter")
        .attr("shared_name", options.shared_name)
        .attr("container", options.container)
        .output()
}

/// The attributes of [`tf_record_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TFRecordReaderOptions<'a> {
    /// `compression_type`: string, empty by default.
    pub compression_type: &'a str,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for TFRecordReaderOptions<'_> {
    fn default() -> Self {
        TFRecordReaderOptions { compression_type: "", container: "", shared_name: "" }
    }
}

/// `TFRecordReader`: A reader of files.
#[inline]
#[track_caller]
pub fn tf_record_reader(g: &Graph) -> Output {
    tf_record_reader_with(g, TFRecordReaderOptions::default())
}

/// [`tf_record_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn tf_record_reader_with(g: &Graph, options: TFRecordReaderOptions<'_>) -> Output {
    g.op("TFRecordReader")
        .attr("compression_type", options.compression_type)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`tf_record_reader_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TFRecordReaderV2Options<'a> {
    /// `compression_type`: string, empty by default.
    pub compression_type: &'a str,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for TFRecordReaderV2Options<'_> {
    fn default() -> Self {
        TFRecordReaderV2Options { compression_type: "", container: "", shared_name: "" }
    }
}

/// `TFRecordReaderV2`: A reader of files.
#[inline]
#[track_caller]
pub fn tf_record_reader_v2(g: &Graph) -> Output {
    tf_record_reader_v2_with(g, TFRecordReaderV2Options::default())
}

/// [`tf_record_reader_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn tf_record_reader_v2_with(g: &Graph, options: TFRecordReaderV2Options<'_>) -> Output {
    g.op("TFRecordReaderV2")
        .attr("compression_type", options.compression_type)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`tensor_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorSummaryOptions<'a> {
    /// `description`: string, empty by default.
    pub description: &'a str,
    /// `labels`: list of strings, empty by default.
    pub labels: &'a [&'a str],
    /// `display_name`: string, empty by default.
    pub display_name: &'a str,
}

impl Default for TensorSummaryOptions<'_> {
    fn default() -> Self {
        TensorSummaryOptions { description: "", labels: &[], display_name: "" }
    }
}

/// `TensorSummary`: A summary of a tensor, under the node's name.
#[inline]
#[track_caller]
pub fn tensor_summary(tensor: &Output) -> Output {
    tensor_summary_with(tensor, TensorSummaryOptions::default())
}

/// [`tensor_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_summary_with(tensor: &Output, options: TensorSummaryOptions<'_>) -> Output {
    tensor
        .graph()
        .op("TensorSummary")
        .input(tensor)
        .attr("description", options.description)
        .attr("labels", list(options.labels))
        .attr("display_name", options.display_name)
        .output()
}

/// `TensorSummaryV2`: A summary of a tensor, with a tag and metadata.
#[inline]
#[track_caller]
pub fn tensor_summary_v2(
    tag: &Output,
    tensor: &Output,
    serialized_summary_metadata: &Output,
) -> Output {
    tag.graph()
        .op("TensorSummaryV2")
        .input(tag)
        .input(tensor)
        .input(serialized_summary_metadata)
        .output()
}

/// The attributes of [`text_line_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TextLineReaderOptions<'a> {
    /// `skip_header_lines`: int, `0` by default.
    pub skip_header_lines: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for TextLineReaderOptions<'_> {
    fn default() -> Self {
        TextLineReaderOptions { skip_header_lines: 0, container: "", shared_name: "" }
    }
}

/// `TextLineReader`: A reader of files.
#[inline]
#[track_caller]
pub fn text_line_reader(g: &Graph) -> Output {
    text_line_reader_with(g, TextLineReaderOptions::default())
}

/// [`text_line_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn text_line_reader_with(g: &Graph, options: TextLineReaderOptions<'_>) -> Output {
    g.op("TextLineReader")
        .attr("skip_header_lines", options.skip_header_lines)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`text_line_reader_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TextLineReaderV2Options<'a> {
    /// `skip_header_lines`: int, `0` by default.
    pub skip_header_lines: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for TextLineReaderV2Options<'_> {
    fn default() -> Self {
        TextLineReaderV2Options { skip_header_lines: 0, container: "", shared_name: "" }
    }
}

/// `TextLineReaderV2`: A reader of files.
#[inline]
#[track_caller]
pub fn text_line_reader_v2(g: &Graph) -> Output {
    text_line_reader_v2_with(g, TextLineReaderV2Options::default())
}

/// [`text_line_reader_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn text_line_reader_v2_with(g: &Graph, options: TextLineReaderV2Options<'_>) -> Output {
    g.op("TextLineReaderV2")
        .attr("skip_header_lines", options.skip_header_lines)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `Timestamp`: Seconds since 1970.
#[inline]
#[track_caller]
pub fn timestamp(g: &Graph) -> Output {
    g.op("Timestamp").output()
}

/// The attributes of [`whole_file_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WholeFileReaderOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for WholeFileReaderOptions<'_> {
    fn default() -> Self {
        WholeFileReaderOptions { container: "", shared_name: "" }
    }
}

/// `WholeFileReader`: A reader of files.
#[inline]
#[track_caller]
pub fn whole_file_reader(g: &Graph) -> Output {
    whole_file_reader_with(g, WholeFileReaderOptions::default())
}

/// [`whole_file_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn whole_file_reader_with(g: &Graph, options: WholeFileReaderOptions<'_>) -> Output {
    g.op("WholeFileReader")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`whole_file_reader_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WholeFileReaderV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for WholeFileReaderV2Options<'_> {
    fn default() -> Self {
        WholeFileReaderV2Options { container: "", shared_name: "" }
    }
}

/// `WholeFileReaderV2`: A reader of files.
#[inline]
#[track_caller]
pub fn whole_file_reader_v2(g: &Graph) -> Output {
    whole_file_reader_v2_with(g, WholeFileReaderV2Options::default())
}

/// [`whole_file_reader_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn whole_file_reader_v2_with(g: &Graph, options: WholeFileReaderV2Options<'_>) -> Output {
    g.op("WholeFileReaderV2")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`write_audio_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WriteAudioSummaryOptions {
    /// `max_outputs`: int, `3` by default.
    pub max_outputs: i64,
}

impl Default for WriteAudioSummaryOptions {
    fn default() -> Self {
        WriteAudioSummaryOptions { max_outputs: 3 }
    }
}

/// `WriteAudioSummary`: Writes sound.
#[inline]
#[track_caller]
pub fn write_audio_summary(
    writer: &Output,
    step: &Output,
    tag: &Output,
    tensor: &Output,
    sample_rate: &Output,
) -> Operation {
    write_audio_summary_with(
        writer,
        step,
        tag,
        tensor,
        sample_rate,
        WriteAudioSummaryOptions::default(),
    )
}

/// [`write_audio_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn write_audio_summary_with(
    writer: &Output,
    step: &Output,
    tag: &Output,
    tensor: &Output,
    sample_rate: &Output,
    options: WriteAudioSummaryOptions,
) -> Operation {
    writer
        .graph()
        .op("WriteAudioSummary")
        .input(writer)
        .input(step)
        .input(tag)
        .input(tensor)
        .input(sample_rate)
        .attr("max_outputs", options.max_outputs)
        .operation()
}

/// `WriteFile`: Writes a file, and the directories it is in.
#[inline]
#[track_caller]
pub fn write_file(filename: &Output, contents: &Output) -> Operation {
    filename.graph().op("WriteFile").input(filename).input(contents).operation()
}

/// `WriteGraphSummary`: Writes a graph, given as a serialized GraphDef.
#[inline]
#[track_caller]
pub fn write_graph_summary(writer: &Output, step: &Output, tensor: &Output) -> Operation {
    writer.graph().op("WriteGraphSummary").input(writer).input(step).input(tensor).operation()
}

/// `WriteHistogramSummary`: Writes how values are distributed.
#[inline]
#[track_caller]
pub fn write_histogram_summary(
    writer: &Output,
    step: &Output,
    tag: &Output,
    values: &Output,
) -> Operation {
    writer
        .graph()
        .op("WriteHistogramSummary")
        .input(writer)
        .input(step)
        .input(tag)
        .input(values)
        .operation()
}

/// The attributes of [`write_image_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WriteImageSummaryOptions {
    /// `max_images`: int, `3` by default.
    pub max_images: i64,
}

impl Default for WriteImageSummaryOptions {
    fn default() -> Self {
        WriteImageSummaryOptions { max_images: 3 }
    }
}

/// `WriteImageSummary`: Writes images.
#[inline]
#[track_caller]
pub fn write_image_summary(
    writer: &Output,
    step: &Output,
    tag: &Output,
    tensor: &Output,
    bad_color: &Output,
) -> Operation {
    write_image_summary_with(
        writer,
        step,
        tag,
        tensor,
        bad_color,
        WriteImageSummaryOptions::default(),
    )
}

/// [`write_image_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn write_image_summary_with(
    writer: &Output,
    step: &Output,
    tag: &Output,
    tensor: &Output,
    bad_color: &Output,
    options: WriteImageSummaryOptions,
) -> Operation {
    writer
        .graph()
        .op("WriteImageSummary")
        .input(writer)
        .input(step)
        .input(tag)
        .input(tensor)
        .input(bad_color)
        .attr("max_images", options.max_images)
        .operation()
}

/// `WriteRawProtoSummary`: Writes a serialized Summary.
#[inline]
#[track_caller]
pub fn write_raw_proto_summary(writer: &Output, step: &Output, tensor: &Output) -> Operation {
    writer.graph().op("WriteRawProtoSummary").input(writer).input(step).input(tensor).operation()
}

/// `WriteScalarSummary`: Writes a number.
#[inline]
#[track_caller]
pub fn write_scalar_summary(
    writer: &Output,
    step: &Output,
    tag: &Output,
    value: &Output,
) -> Operation {
    writer
        .graph()
        .op("WriteScalarSummary")
        .input(writer)
        .input(step)
        .input(tag)
        .input(value)
        .operation()
}

/// `WriteSummary`: Writes a tensor, with a tag and metadata.
#[inline]
#[track_caller]
pub fn write_summary(
    writer: &Output,
    step: &Output,
    tensor: &Output,
    tag: &Output,
    summary_metadata: &Output,
) -> Operation {
    writer
        .graph()
        .op("WriteSummary")
        .input(writer)
        .input(step)
        .input(tensor)
        .input(tag)
        .input(summary_metadata)
        .operation()
}
