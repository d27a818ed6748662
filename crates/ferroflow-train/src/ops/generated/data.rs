//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::function::Function;
use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// `AnonymousIterator`: An iterator without a name, to be given a dataset by MakeIterator.
#[inline]
#[track_caller]
pub fn anonymous_iterator(
    g: &Graph,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("AnonymousIterator")
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `AnonymousIteratorV2`: An iterator without a name, to be given a dataset by MakeIterator.
///
/// Returns (`handle`, `deleter`).
#[inline]
#[track_caller]
pub fn anonymous_iterator_v2(
    g: &Graph,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> (Output, Output) {
    let [handle, deleter] = g
        .op("AnonymousIteratorV2")
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .split();
    (handle, deleter)
}

/// `AnonymousIteratorV3`: An iterator without a name, to be given a dataset by MakeIterator.
#[inline]
#[track_caller]
pub fn anonymous_iterator_v3(
    g: &Graph,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("AnonymousIteratorV3")
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `AnonymousMemoryCache`: A place for datasets to keep their elements.
///
/// Returns (`handle`, `deleter`).
#[inline]
#[track_caller]
pub fn anonymous_memory_cache(g: &Graph) -> (Output, Output) {
    let [handle, deleter] = g.op("AnonymousMemoryCache").split();
    (handle, deleter)
}

/// `AnonymousMultiDeviceIterator`: A multi-device iterator without a name.
///
/// Returns (`handle`, `deleter`).
#[inline]
#[track_caller]
pub fn anonymous_multi_device_iterator(
    g: &Graph,
    devices: &[&str],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> (Output, Output) {
    let [handle, deleter] = g
        .op("AnonymousMultiDeviceIterator")
        .attr("devices", list(devices))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .split();
    (handle, deleter)
}

/// `AnonymousMultiDeviceIteratorV3`: A multi-device iterator without a name.
#[inline]
#[track_caller]
pub fn anonymous_multi_device_iterator_v3(
    g: &Graph,
    devices: &[&str],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("AnonymousMultiDeviceIteratorV3")
        .attr("devices", list(devices))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `AnonymousRandomSeedGenerator`: Something that gives shuffles new seeds each time.
///
/// Returns (`handle`, `deleter`).
#[inline]
#[track_caller]
pub fn anonymous_random_seed_generator(seed: &Output, seed2: &Output) -> (Output, Output) {
    let [handle, deleter] =
        seed.graph().op("AnonymousRandomSeedGenerator").input(seed).input(seed2).split();
    (handle, deleter)
}

/// `AnonymousSeedGenerator`: Something that gives shuffles their seeds; new ones each time if
/// `reshuffle`.
///
/// Returns (`handle`, `deleter`).
#[inline]
#[track_caller]
pub fn anonymous_seed_generator(
    seed: &Output,
    seed2: &Output,
    reshuffle: &Output,
) -> (Output, Output) {
    let [handle, deleter] =
        seed.graph().op("AnonymousSeedGenerator").input(seed).input(seed2).input(reshuffle).split();
    (handle, deleter)
}

/// `AssertCardinalityDataset`: The same dataset, which fails unless it has `cardinality` elements.
#[inline]
#[track_caller]
pub fn assert_cardinality_dataset(
    input_dataset: &Output,
    cardinality: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("AssertCardinalityDataset")
        .input(input_dataset)
        .input(cardinality)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`auto_shard_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AutoShardDatasetOptions {
    /// `auto_shard_policy`: int, `0` by default.
    pub auto_shard_policy: i64,
    /// `num_replicas`: int, `0` by default.
    pub num_replicas: i64,
}

impl Default for AutoShardDatasetOptions {
    fn default() -> Self {
        AutoShardDatasetOptions { auto_shard_policy: 0, num_replicas: 0 }
    }
}

/// `AutoShardDataset`: A worker's share of a dataset: every `num_workers`-th element.
#[inline]
#[track_caller]
pub fn auto_shard_dataset(
    input_dataset: &Output,
    num_workers: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    auto_shard_dataset_with(
        input_dataset,
        num_workers,
        index,
        output_types,
        output_shapes,
        AutoShardDatasetOptions::default(),
    )
}

/// [`auto_shard_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn auto_shard_dataset_with(
    input_dataset: &Output,
    num_workers: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: AutoShardDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("AutoShardDataset")
        .input(input_dataset)
        .input(num_workers)
        .input(index)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("auto_shard_policy", options.auto_shard_policy)
        .attr("num_replicas", options.num_replicas)
        .output()
}

/// The attributes of [`batch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for BatchDatasetOptions<'_> {
    fn default() -> Self {
        BatchDatasetOptions { metadata: "" }
    }
}

/// `BatchDataset`: A dataset of batches of elements, stacked along a new leading dimension.
#[inline]
#[track_caller]
pub fn batch_dataset(
    input_dataset: &Output,
    batch_size: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    batch_dataset_with(
        input_dataset,
        batch_size,
        output_types,
        output_shapes,
        BatchDatasetOptions::default(),
    )
}

/// [`batch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_dataset_with(
    input_dataset: &Output,
    batch_size: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: BatchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("BatchDataset")
        .input(input_dataset)
        .input(batch_size)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`batch_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchDatasetV2Options<'a> {
    /// `parallel_copy`: bool, `false` by default.
    pub parallel_copy: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for BatchDatasetV2Options<'_> {
    fn default() -> Self {
        BatchDatasetV2Options { parallel_copy: false, metadata: "" }
    }
}

/// `BatchDatasetV2`: A dataset of batches of elements, stacked along a new leading dimension.
#[inline]
#[track_caller]
pub fn batch_dataset_v2(
    input_dataset: &Output,
    batch_size: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    batch_dataset_v2_with(
        input_dataset,
        batch_size,
        drop_remainder,
        output_types,
        output_shapes,
        BatchDatasetV2Options::default(),
    )
}

/// [`batch_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_dataset_v2_with(
    input_dataset: &Output,
    batch_size: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: BatchDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("BatchDatasetV2")
        .input(input_dataset)
        .input(batch_size)
        .input(drop_remainder)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("parallel_copy", options.parallel_copy)
        .attr("metadata", options.metadata)
        .output()
}

/// `BytesProducedStatsDataset`: The same dataset, which records the bytes of its elements.
#[inline]
#[track_caller]
pub fn bytes_produced_stats_dataset(
    input_dataset: &Output,
    tag: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("BytesProducedStatsDataset")
        .input(input_dataset)
        .input(tag)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `CSVDataset`: A dataset of the records of comma-separated files.
#[inline]
#[track_caller]
pub fn csv_dataset(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    header: &Output,
    field_delim: &Output,
    use_quote_delim: &Output,
    na_value: &Output,
    select_cols: &Output,
    record_defaults: &[Output],
    output_shapes: &[PartialShape],
) -> Output {
    filenames
        .graph()
        .op("CSVDataset")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .input(header)
        .input(field_delim)
        .input(use_quote_delim)
        .input(na_value)
        .input(select_cols)
        .list(record_defaults)
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `CSVDatasetV2`: A dataset of the records of comma-separated files.
#[inline]
#[track_caller]
pub fn csv_dataset_v2(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    header: &Output,
    field_delim: &Output,
    use_quote_delim: &Output,
    na_value: &Output,
    select_cols: &Output,
    record_defaults: &[Output],
    exclude_cols: &Output,
    output_shapes: &[PartialShape],
) -> Output {
    filenames
        .graph()
        .op("CSVDatasetV2")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .input(header)
        .input(field_delim)
        .input(use_quote_delim)
        .input(na_value)
        .input(select_cols)
        .list(record_defaults)
        .input(exclude_cols)
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`cache_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CacheDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for CacheDatasetOptions<'_> {
    fn default() -> Self {
        CacheDatasetOptions { metadata: "" }
    }
}

/// `CacheDataset`: A dataset whose elements are kept, in memory or in `filename`.
#[inline]
#[track_caller]
pub fn cache_dataset(
    input_dataset: &Output,
    filename: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    cache_dataset_with(
        input_dataset,
        filename,
        output_types,
        output_shapes,
        CacheDatasetOptions::default(),
    )
}

/// [`cache_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn cache_dataset_with(
    input_dataset: &Output,
    filename: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: CacheDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("CacheDataset")
        .input(input_dataset)
        .input(filename)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`cache_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CacheDatasetV2Options<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for CacheDatasetV2Options<'_> {
    fn default() -> Self {
        CacheDatasetV2Options { metadata: "" }
    }
}

/// `CacheDatasetV2`: A dataset whose elements are kept, in memory or in `filename`.
#[inline]
#[track_caller]
pub fn cache_dataset_v2(
    input_dataset: &Output,
    filename: &Output,
    cache: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    cache_dataset_v2_with(
        input_dataset,
        filename,
        cache,
        output_types,
        output_shapes,
        CacheDatasetV2Options::default(),
    )
}

/// [`cache_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn cache_dataset_v2_with(
    input_dataset: &Output,
    filename: &Output,
    cache: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: CacheDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("CacheDatasetV2")
        .input(input_dataset)
        .input(filename)
        .input(cache)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `ChooseFastestBranchDataset`: What one of several functions makes of a dataset: the first.
#[inline]
#[track_caller]
pub fn choose_fastest_branch_dataset(
    input_dataset: &Output,
    ratio_numerator: &Output,
    ratio_denominator: &Output,
    other_arguments: &[Output],
    num_elements_per_branch: i64,
    branches: &[&Function],
    other_arguments_lengths: &[i64],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ChooseFastestBranchDataset")
        .input(input_dataset)
        .input(ratio_numerator)
        .input(ratio_denominator)
        .list(other_arguments)
        .attr("num_elements_per_branch", num_elements_per_branch)
        .attr("branches", list(branches))
        .attr("other_arguments_lengths", list(other_arguments_lengths))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ChooseFastestDataset`: One of several datasets that have the same elements: the first.
#[inline]
#[track_caller]
pub fn choose_fastest_dataset(
    g: &Graph,
    input_datasets: &[Output],
    num_experiments: i64,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("ChooseFastestDataset")
        .list(input_datasets)
        .attr("num_experiments", num_experiments)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `CompressElement`: An element as one compressed value.
#[inline]
#[track_caller]
pub fn compress_element(g: &Graph, components: &[Output]) -> Output {
    g.op("CompressElement").list(components).output()
}

/// The attributes of [`concatenate_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ConcatenateDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ConcatenateDatasetOptions<'_> {
    fn default() -> Self {
        ConcatenateDatasetOptions { metadata: "" }
    }
}

/// `ConcatenateDataset`: A dataset of the elements of one dataset and then of another.
#[inline]
#[track_caller]
pub fn concatenate_dataset(
    input_dataset: &Output,
    another_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    concatenate_dataset_with(
        input_dataset,
        another_dataset,
        output_types,
        output_shapes,
        ConcatenateDatasetOptions::default(),
    )
}

/// [`concatenate_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn concatenate_dataset_with(
    input_dataset: &Output,
    another_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ConcatenateDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ConcatenateDataset")
        .input(input_dataset)
        .input(another_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`dataset_cardinality_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DatasetCardinalityOptions<'a> {
    /// `cardinality_options`: string, empty by default.
    pub cardinality_options: &'a str,
}

impl Default for DatasetCardinalityOptions<'_> {
    fn default() -> Self {
        DatasetCardinalityOptions { cardinality_options: "" }
    }
}

/// `DatasetCardinality`: How many elements a dataset has; -1: without an end, -2: unknown.
#[inline]
#[track_caller]
pub fn dataset_cardinality(input_dataset: &Output) -> Output {
    dataset_cardinality_with(input_dataset, DatasetCardinalityOptions::default())
}

/// [`dataset_cardinality()`] with other attributes.
#[inline]
#[track_caller]
pub fn dataset_cardinality_with(
    input_dataset: &Output,
    options: DatasetCardinalityOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("DatasetCardinality")
        .input(input_dataset)
        .attr("cardinality_options", options.cardinality_options)
        .output()
}

/// The attributes of [`dataset_to_single_element_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DatasetToSingleElementOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for DatasetToSingleElementOptions<'_> {
    fn default() -> Self {
        DatasetToSingleElementOptions { metadata: "" }
    }
}

/// `DatasetToSingleElement`: The one element of a dataset.
#[inline]
#[track_caller]
pub fn dataset_to_single_element(
    dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    dataset_to_single_element_with(
        dataset,
        output_types,
        output_shapes,
        DatasetToSingleElementOptions::default(),
    )
}

/// [`dataset_to_single_element()`] with other attributes.
#[inline]
#[track_caller]
pub fn dataset_to_single_element_with(
    dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: DatasetToSingleElementOptions<'_>,
) -> Vec<Output> {
    dataset
        .graph()
        .op("DatasetToSingleElement")
        .input(dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .list_outputs()
}

/// `DatasetToTFRecord`: Writes the elements of a dataset, which are strings, to a TFRecord file.
#[inline]
#[track_caller]
pub fn dataset_to_tf_record(
    input_dataset: &Output,
    filename: &Output,
    compression_type: &Output,
) -> Operation {
    input_dataset
        .graph()
        .op("DatasetToTFRecord")
        .input(input_dataset)
        .input(filename)
        .input(compression_type)
        .operation()
}

/// `DeleteIterator`: Deletes an iterator.
#[inline]
#[track_caller]
pub fn delete_iterator(handle: &Output, deleter: &Output) -> Operation {
    handle.graph().op("DeleteIterator").input(handle).input(deleter).operation()
}

/// `DeleteMemoryCache`: Deletes a memory cache.
#[inline]
#[track_caller]
pub fn delete_memory_cache(handle: &Output, deleter: &Output) -> Operation {
    handle.graph().op("DeleteMemoryCache").input(handle).input(deleter).operation()
}

/// `DeleteMultiDeviceIterator`: Deletes a multi-device iterator.
#[inline]
#[track_caller]
pub fn delete_multi_device_iterator(
    multi_device_iterator: &Output,
    iterators: &[Output],
    deleter: &Output,
) -> Operation {
    multi_device_iterator
        .graph()
        .op("DeleteMultiDeviceIterator")
        .input(multi_device_iterator)
        .list(iterators)
        .input(deleter)
        .operation()
}

/// `DeleteRandomSeedGenerator`: Deletes a seed generator.
#[inline]
#[track_caller]
pub fn delete_random_seed_generator(handle: &Output, deleter: &Output) -> Operation {
    handle.graph().op("DeleteRandomSeedGenerator").input(handle).input(deleter).operation()
}

/// `DeleteSeedGenerator`: Deletes a seed generator.
#[inline]
#[track_caller]
pub fn delete_seed_generator(handle: &Output, deleter: &Output) -> Operation {
    handle.graph().op("DeleteSeedGenerator").input(handle).input(deleter).operation()
}

/// `DenseToSparseBatchDataset`: A dataset of batches of elements of different sizes, each a sparse
/// tensor.
#[inline]
#[track_caller]
pub fn dense_to_sparse_batch_dataset(
    input_dataset: &Output,
    batch_size: &Output,
    row_shape: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("DenseToSparseBatchDataset")
        .input(input_dataset)
        .input(batch_size)
        .input(row_shape)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `DeserializeIterator`: Brings an iterator to where another was, past elements that are made
/// again.
#[inline]
#[track_caller]
pub fn deserialize_iterator(resource_handle: &Output, serialized: &Output) -> Operation {
    resource_handle
        .graph()
        .op("DeserializeIterator")
        .input(resource_handle)
        .input(serialized)
        .operation()
}

/// The attributes of [`directed_interleave_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DirectedInterleaveDatasetOptions {
    /// `stop_on_empty_dataset`: bool, `false` by default.
    pub stop_on_empty_dataset: bool,
}

impl Default for DirectedInterleaveDatasetOptions {
    fn default() -> Self {
        DirectedInterleaveDatasetOptions { stop_on_empty_dataset: false }
    }
}

/// `DirectedInterleaveDataset`: A dataset of elements of several datasets, in the order that
/// another one says.
#[inline]
#[track_caller]
pub fn directed_interleave_dataset(
    selector_input_dataset: &Output,
    data_input_datasets: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    directed_interleave_dataset_with(
        selector_input_dataset,
        data_input_datasets,
        output_types,
        output_shapes,
        DirectedInterleaveDatasetOptions::default(),
    )
}

/// [`directed_interleave_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn directed_interleave_dataset_with(
    selector_input_dataset: &Output,
    data_input_datasets: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: DirectedInterleaveDatasetOptions,
) -> Output {
    selector_input_dataset
        .graph()
        .op("DirectedInterleaveDataset")
        .input(selector_input_dataset)
        .list(data_input_datasets)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("stop_on_empty_dataset", options.stop_on_empty_dataset)
        .output()
}

/// `DummyIterationCounter`: A handle to no counter of iterations.
#[inline]
#[track_caller]
pub fn dummy_iteration_counter(g: &Graph) -> Output {
    g.op("DummyIterationCounter").output()
}

/// `DummyMemoryCache`: A handle to no memory cache.
#[inline]
#[track_caller]
pub fn dummy_memory_cache(g: &Graph) -> Output {
    g.op("DummyMemoryCache").output()
}

/// `DummySeedGenerator`: A handle to no seed generator.
#[inline]
#[track_caller]
pub fn dummy_seed_generator(g: &Graph) -> Output {
    g.op("DummySeedGenerator").output()
}

/// The attributes of [`experimental_auto_shard_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalAutoShardDatasetOptions {
    /// `auto_shard_policy`: int, `0` by default.
    pub auto_shard_policy: i64,
}

impl Default for ExperimentalAutoShardDatasetOptions {
    fn default() -> Self {
        ExperimentalAutoShardDatasetOptions { auto_shard_policy: 0 }
    }
}

/// `ExperimentalAutoShardDataset`: A worker's share of a dataset: every `num_workers`-th element.
#[inline]
#[track_caller]
pub fn experimental_auto_shard_dataset(
    input_dataset: &Output,
    num_workers: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_auto_shard_dataset_with(
        input_dataset,
        num_workers,
        index,
        output_types,
        output_shapes,
        ExperimentalAutoShardDatasetOptions::default(),
    )
}

/// [`experimental_auto_shard_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_auto_shard_dataset_with(
    input_dataset: &Output,
    num_workers: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalAutoShardDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalAutoShardDataset")
        .input(input_dataset)
        .input(num_workers)
        .input(index)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("auto_shard_policy", options.auto_shard_policy)
        .output()
}

/// `ExperimentalBytesProducedStatsDataset`: The same dataset, which records the bytes of its
/// elements.
#[inline]
#[track_caller]
pub fn experimental_bytes_produced_stats_dataset(
    input_dataset: &Output,
    tag: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalBytesProducedStatsDataset")
        .input(input_dataset)
        .input(tag)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalCSVDataset`: A dataset of the records of comma-separated files.
#[inline]
#[track_caller]
pub fn experimental_csv_dataset(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    header: &Output,
    field_delim: &Output,
    use_quote_delim: &Output,
    na_value: &Output,
    select_cols: &Output,
    record_defaults: &[Output],
    output_shapes: &[PartialShape],
) -> Output {
    filenames
        .graph()
        .op("ExperimentalCSVDataset")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .input(header)
        .input(field_delim)
        .input(use_quote_delim)
        .input(na_value)
        .input(select_cols)
        .list(record_defaults)
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalChooseFastestDataset`: One of several datasets that have the same elements: the
/// first.
#[inline]
#[track_caller]
pub fn experimental_choose_fastest_dataset(
    g: &Graph,
    input_datasets: &[Output],
    num_experiments: i64,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("ExperimentalChooseFastestDataset")
        .list(input_datasets)
        .attr("num_experiments", num_experiments)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalDatasetCardinality`: How many elements a dataset has; -1: without an end, -2:
/// unknown.
#[inline]
#[track_caller]
pub fn experimental_dataset_cardinality(input_dataset: &Output) -> Output {
    input_dataset.graph().op("ExperimentalDatasetCardinality").input(input_dataset).output()
}

/// `ExperimentalDatasetToTFRecord`: Writes the elements of a dataset, which are strings, to a
/// TFRecord file.
#[inline]
#[track_caller]
pub fn experimental_dataset_to_tf_record(
    input_dataset: &Output,
    filename: &Output,
    compression_type: &Output,
) -> Operation {
    input_dataset
        .graph()
        .op("ExperimentalDatasetToTFRecord")
        .input(input_dataset)
        .input(filename)
        .input(compression_type)
        .operation()
}

/// `ExperimentalDenseToSparseBatchDataset`: A dataset of batches of elements of different sizes,
/// each a sparse tensor.
#[inline]
#[track_caller]
pub fn experimental_dense_to_sparse_batch_dataset(
    input_dataset: &Output,
    batch_size: &Output,
    row_shape: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalDenseToSparseBatchDataset")
        .input(input_dataset)
        .input(batch_size)
        .input(row_shape)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalDirectedInterleaveDataset`: A dataset of elements of several datasets, in the order
/// that another one says.
#[inline]
#[track_caller]
pub fn experimental_directed_interleave_dataset(
    selector_input_dataset: &Output,
    data_input_datasets: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    selector_input_dataset
        .graph()
        .op("ExperimentalDirectedInterleaveDataset")
        .input(selector_input_dataset)
        .list(data_input_datasets)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalGroupByReducerDataset`: A dataset of one element per key, made of all elements with
/// that key.
#[inline]
#[track_caller]
pub fn experimental_group_by_reducer_dataset(
    input_dataset: &Output,
    key_func_other_arguments: &[Output],
    init_func_other_arguments: &[Output],
    reduce_func_other_arguments: &[Output],
    finalize_func_other_arguments: &[Output],
    key_func: &Function,
    init_func: &Function,
    reduce_func: &Function,
    finalize_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalGroupByReducerDataset")
        .input(input_dataset)
        .list(key_func_other_arguments)
        .list(init_func_other_arguments)
        .list(reduce_func_other_arguments)
        .list(finalize_func_other_arguments)
        .attr("key_func", key_func.reference())
        .attr("init_func", init_func.reference())
        .attr("reduce_func", reduce_func.reference())
        .attr("finalize_func", finalize_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalGroupByWindowDataset`: A dataset of what `reduce_func` makes of windows of elements
/// with equal keys.
#[inline]
#[track_caller]
pub fn experimental_group_by_window_dataset(
    input_dataset: &Output,
    key_func_other_arguments: &[Output],
    reduce_func_other_arguments: &[Output],
    window_size_func_other_arguments: &[Output],
    key_func: &Function,
    reduce_func: &Function,
    window_size_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalGroupByWindowDataset")
        .input(input_dataset)
        .list(key_func_other_arguments)
        .list(reduce_func_other_arguments)
        .list(window_size_func_other_arguments)
        .attr("key_func", key_func.reference())
        .attr("reduce_func", reduce_func.reference())
        .attr("window_size_func", window_size_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_ignore_errors_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalIgnoreErrorsDatasetOptions {
    /// `log_warning`: bool, `false` by default.
    pub log_warning: bool,
}

impl Default for ExperimentalIgnoreErrorsDatasetOptions {
    fn default() -> Self {
        ExperimentalIgnoreErrorsDatasetOptions { log_warning: false }
    }
}

/// `ExperimentalIgnoreErrorsDataset`: A dataset of the elements that could be made.
#[inline]
#[track_caller]
pub fn experimental_ignore_errors_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_ignore_errors_dataset_with(
        input_dataset,
        output_types,
        output_shapes,
        ExperimentalIgnoreErrorsDatasetOptions::default(),
    )
}

/// [`experimental_ignore_errors_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_ignore_errors_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalIgnoreErrorsDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalIgnoreErrorsDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("log_warning", options.log_warning)
        .output()
}

/// `ExperimentalIteratorGetDevice`: The name of the device an iterator is on.
#[inline]
#[track_caller]
pub fn experimental_iterator_get_device(resource: &Output) -> Output {
    resource.graph().op("ExperimentalIteratorGetDevice").input(resource).output()
}

/// `ExperimentalLMDBDataset`: A dataset of the keys and values of LMDB databases.
#[inline]
#[track_caller]
pub fn experimental_lmdb_dataset(
    filenames: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    filenames
        .graph()
        .op("ExperimentalLMDBDataset")
        .input(filenames)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalLatencyStatsDataset`: The same dataset, which records how long an element takes.
#[inline]
#[track_caller]
pub fn experimental_latency_stats_dataset(
    input_dataset: &Output,
    tag: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalLatencyStatsDataset")
        .input(input_dataset)
        .input(tag)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_map_and_batch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalMapAndBatchDatasetOptions {
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
}

impl Default for ExperimentalMapAndBatchDatasetOptions {
    fn default() -> Self {
        ExperimentalMapAndBatchDatasetOptions { preserve_cardinality: false }
    }
}

/// `ExperimentalMapAndBatchDataset`: A dataset of batches of what `f` makes of each element, of
/// several at a time.
#[inline]
#[track_caller]
pub fn experimental_map_and_batch_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_map_and_batch_dataset_with(
        input_dataset,
        other_arguments,
        batch_size,
        num_parallel_calls,
        drop_remainder,
        f,
        output_types,
        output_shapes,
        ExperimentalMapAndBatchDatasetOptions::default(),
    )
}

/// [`experimental_map_and_batch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_map_and_batch_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalMapAndBatchDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalMapAndBatchDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(batch_size)
        .input(num_parallel_calls)
        .input(drop_remainder)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("preserve_cardinality", options.preserve_cardinality)
        .output()
}

/// `ExperimentalMatchingFilesDataset`: A dataset of the names of files that match patterns: sorted
/// for each of these.
#[inline]
#[track_caller]
pub fn experimental_matching_files_dataset(patterns: &Output) -> Output {
    patterns.graph().op("ExperimentalMatchingFilesDataset").input(patterns).output()
}

/// `ExperimentalMaxIntraOpParallelismDataset`: The same dataset; what it says of how to run it is
/// left to the runtime.
#[inline]
#[track_caller]
pub fn experimental_max_intra_op_parallelism_dataset(
    input_dataset: &Output,
    max_intra_op_parallelism: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalMaxIntraOpParallelismDataset")
        .input(input_dataset)
        .input(max_intra_op_parallelism)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalNonSerializableDataset`: The same dataset; what it says of how to run it is left to
/// the runtime.
#[inline]
#[track_caller]
pub fn experimental_non_serializable_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalNonSerializableDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalParallelInterleaveDataset`: A dataset of the elements of the datasets that `f`
/// makes, several in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn experimental_parallel_interleave_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    sloppy: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalParallelInterleaveDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(sloppy)
        .input(buffer_output_elements)
        .input(prefetch_input_elements)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_parse_example_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalParseExampleDatasetOptions {
    /// `sloppy`: bool, `false` by default.
    pub sloppy: bool,
}

impl Default for ExperimentalParseExampleDatasetOptions {
    fn default() -> Self {
        ExperimentalParseExampleDatasetOptions { sloppy: false }
    }
}

/// `ExperimentalParseExampleDataset`: A dataset of features of batches of Example records.
#[inline]
#[track_caller]
pub fn experimental_parse_example_dataset(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_parse_example_dataset_with(
        input_dataset,
        num_parallel_calls,
        dense_defaults,
        sparse_keys,
        dense_keys,
        sparse_types,
        dense_shapes,
        output_types,
        output_shapes,
        ExperimentalParseExampleDatasetOptions::default(),
    )
}

/// [`experimental_parse_example_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_parse_example_dataset_with(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalParseExampleDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalParseExampleDataset")
        .input(input_dataset)
        .input(num_parallel_calls)
        .list(dense_defaults)
        .attr("sparse_keys", list(sparse_keys))
        .attr("dense_keys", list(dense_keys))
        .attr("sparse_types", list(sparse_types))
        .attr("dense_shapes", list(dense_shapes))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("sloppy", options.sloppy)
        .output()
}

/// `ExperimentalPrivateThreadPoolDataset`: The same dataset; what it says of how to run it is left
/// to the runtime.
#[inline]
#[track_caller]
pub fn experimental_private_thread_pool_dataset(
    input_dataset: &Output,
    num_threads: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalPrivateThreadPoolDataset")
        .input(input_dataset)
        .input(num_threads)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalRandomDataset`: A dataset of random numbers below 2^32, without an end.
#[inline]
#[track_caller]
pub fn experimental_random_dataset(
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    seed.graph()
        .op("ExperimentalRandomDataset")
        .input(seed)
        .input(seed2)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_rebatch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalRebatchDatasetOptions {
    /// `use_fallback`: bool, `true` by default.
    pub use_fallback: bool,
}

impl Default for ExperimentalRebatchDatasetOptions {
    fn default() -> Self {
        ExperimentalRebatchDatasetOptions { use_fallback: true }
    }
}

/// `ExperimentalRebatchDataset`: A dataset of the elements' rows, each element cut into
/// `num_replicas` parts.
#[inline]
#[track_caller]
pub fn experimental_rebatch_dataset(
    input_dataset: &Output,
    num_replicas: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_rebatch_dataset_with(
        input_dataset,
        num_replicas,
        output_types,
        output_shapes,
        ExperimentalRebatchDatasetOptions::default(),
    )
}

/// [`experimental_rebatch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_rebatch_dataset_with(
    input_dataset: &Output,
    num_replicas: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalRebatchDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalRebatchDataset")
        .input(input_dataset)
        .input(num_replicas)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_fallback", options.use_fallback)
        .output()
}

/// The attributes of [`experimental_scan_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalScanDatasetOptions {
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
}

impl Default for ExperimentalScanDatasetOptions {
    fn default() -> Self {
        ExperimentalScanDatasetOptions { preserve_cardinality: false }
    }
}

/// `ExperimentalScanDataset`: A dataset of what `f` makes of each element and of a state it carries
/// along.
#[inline]
#[track_caller]
pub fn experimental_scan_dataset(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    experimental_scan_dataset_with(
        input_dataset,
        initial_state,
        other_arguments,
        f,
        output_types,
        output_shapes,
        ExperimentalScanDatasetOptions::default(),
    )
}

/// [`experimental_scan_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_scan_dataset_with(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ExperimentalScanDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalScanDataset")
        .input(input_dataset)
        .list(initial_state)
        .list(other_arguments)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("preserve_cardinality", options.preserve_cardinality)
        .output()
}

/// `ExperimentalSetStatsAggregatorDataset`: The same dataset; what its parts measure goes to a
/// stats aggregator.
#[inline]
#[track_caller]
pub fn experimental_set_stats_aggregator_dataset(
    input_dataset: &Output,
    stats_aggregator: &Output,
    tag: &Output,
    counter_prefix: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalSetStatsAggregatorDataset")
        .input(input_dataset)
        .input(stats_aggregator)
        .input(tag)
        .input(counter_prefix)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalSleepDataset`: The same dataset, whose elements come late.
#[inline]
#[track_caller]
pub fn experimental_sleep_dataset(
    input_dataset: &Output,
    sleep_microseconds: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalSleepDataset")
        .input(input_dataset)
        .input(sleep_microseconds)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalSlidingWindowDataset`: A dataset of windows of elements, each a batch.
#[inline]
#[track_caller]
pub fn experimental_sliding_window_dataset(
    input_dataset: &Output,
    window_size: &Output,
    window_shift: &Output,
    window_stride: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalSlidingWindowDataset")
        .input(input_dataset)
        .input(window_size)
        .input(window_shift)
        .input(window_stride)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalSqlDataset`: A dataset of the rows of a query of a SQLite database.
#[inline]
#[track_caller]
pub fn experimental_sql_dataset(
    driver_name: &Output,
    data_source_name: &Output,
    query: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    driver_name
        .graph()
        .op("ExperimentalSqlDataset")
        .input(driver_name)
        .input(data_source_name)
        .input(query)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_stats_aggregator_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalStatsAggregatorHandleOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for ExperimentalStatsAggregatorHandleOptions<'_> {
    fn default() -> Self {
        ExperimentalStatsAggregatorHandleOptions { container: "", shared_name: "" }
    }
}

/// `ExperimentalStatsAggregatorHandle`: A stats aggregator, which collects what datasets measure.
#[inline]
#[track_caller]
pub fn experimental_stats_aggregator_handle(g: &Graph) -> Output {
    experimental_stats_aggregator_handle_with(
        g,
        ExperimentalStatsAggregatorHandleOptions::default(),
    )
}

/// [`experimental_stats_aggregator_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_stats_aggregator_handle_with(
    g: &Graph,
    options: ExperimentalStatsAggregatorHandleOptions<'_>,
) -> Output {
    g.op("ExperimentalStatsAggregatorHandle")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `ExperimentalStatsAggregatorSummary`: A summary of what a stats aggregator has collected.
#[inline]
#[track_caller]
pub fn experimental_stats_aggregator_summary(iterator: &Output) -> Output {
    iterator.graph().op("ExperimentalStatsAggregatorSummary").input(iterator).output()
}

/// `ExperimentalTakeWhileDataset`: A dataset of the elements before the first for which `predicate`
/// is false.
#[inline]
#[track_caller]
pub fn experimental_take_while_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalTakeWhileDataset")
        .input(input_dataset)
        .list(other_arguments)
        .attr("predicate", predicate.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalThreadPoolDataset`: The same dataset; what it says of how to run it is left to the
/// runtime.
#[inline]
#[track_caller]
pub fn experimental_thread_pool_dataset(
    input_dataset: &Output,
    thread_pool: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalThreadPoolDataset")
        .input(input_dataset)
        .input(thread_pool)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`experimental_thread_pool_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExperimentalThreadPoolHandleOptions<'a> {
    /// `max_intra_op_parallelism`: int, `1` by default.
    pub max_intra_op_parallelism: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for ExperimentalThreadPoolHandleOptions<'_> {
    fn default() -> Self {
        ExperimentalThreadPoolHandleOptions {
            max_intra_op_parallelism: 1,
            container: "",
            shared_name: "",
        }
    }
}

/// `ExperimentalThreadPoolHandle`: A handle to threads for datasets, which use those of the runtime
/// here.
#[inline]
#[track_caller]
pub fn experimental_thread_pool_handle(g: &Graph, num_threads: i64, display_name: &str) -> Output {
    experimental_thread_pool_handle_with(
        g,
        num_threads,
        display_name,
        ExperimentalThreadPoolHandleOptions::default(),
    )
}

/// [`experimental_thread_pool_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn experimental_thread_pool_handle_with(
    g: &Graph,
    num_threads: i64,
    display_name: &str,
    options: ExperimentalThreadPoolHandleOptions<'_>,
) -> Output {
    g.op("ExperimentalThreadPoolHandle")
        .attr("num_threads", num_threads)
        .attr("display_name", display_name)
        .attr("max_intra_op_parallelism", options.max_intra_op_parallelism)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `ExperimentalUnbatchDataset`: A dataset of the rows of the elements.
#[inline]
#[track_caller]
pub fn experimental_unbatch_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalUnbatchDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `ExperimentalUniqueDataset`: A dataset of the elements without repetitions.
#[inline]
#[track_caller]
pub fn experimental_unique_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ExperimentalUniqueDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`filter_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FilterDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for FilterDatasetOptions<'_> {
    fn default() -> Self {
        FilterDatasetOptions { metadata: "" }
    }
}

/// `FilterDataset`: A dataset of the elements for which `predicate` is true.
#[inline]
#[track_caller]
pub fn filter_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    filter_dataset_with(
        input_dataset,
        other_arguments,
        predicate,
        output_types,
        output_shapes,
        FilterDatasetOptions::default(),
    )
}

/// [`filter_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn filter_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: FilterDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("FilterDataset")
        .input(input_dataset)
        .list(other_arguments)
        .attr("predicate", predicate.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`finalize_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FinalizeDatasetOptions {
    /// `has_captured_ref`: bool, `false` by default.
    pub has_captured_ref: bool,
}

impl Default for FinalizeDatasetOptions {
    fn default() -> Self {
        FinalizeDatasetOptions { has_captured_ref: false }
    }
}

/// `FinalizeDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn finalize_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    finalize_dataset_with(
        input_dataset,
        output_types,
        output_shapes,
        FinalizeDatasetOptions::default(),
    )
}

/// [`finalize_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn finalize_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: FinalizeDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("FinalizeDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("has_captured_ref", options.has_captured_ref)
        .output()
}

/// The attributes of [`fixed_length_record_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FixedLengthRecordDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for FixedLengthRecordDatasetOptions<'_> {
    fn default() -> Self {
        FixedLengthRecordDatasetOptions { metadata: "" }
    }
}

/// `FixedLengthRecordDataset`: A dataset of the records of files, all of one length.
#[inline]
#[track_caller]
pub fn fixed_length_record_dataset(
    filenames: &Output,
    header_bytes: &Output,
    record_bytes: &Output,
    footer_bytes: &Output,
    buffer_size: &Output,
) -> Output {
    fixed_length_record_dataset_with(
        filenames,
        header_bytes,
        record_bytes,
        footer_bytes,
        buffer_size,
        FixedLengthRecordDatasetOptions::default(),
    )
}

/// [`fixed_length_record_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn fixed_length_record_dataset_with(
    filenames: &Output,
    header_bytes: &Output,
    record_bytes: &Output,
    footer_bytes: &Output,
    buffer_size: &Output,
    options: FixedLengthRecordDatasetOptions<'_>,
) -> Output {
    filenames
        .graph()
        .op("FixedLengthRecordDataset")
        .input(filenames)
        .input(header_bytes)
        .input(record_bytes)
        .input(footer_bytes)
        .input(buffer_size)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`fixed_length_record_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FixedLengthRecordDatasetV2Options<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for FixedLengthRecordDatasetV2Options<'_> {
    fn default() -> Self {
        FixedLengthRecordDatasetV2Options { metadata: "" }
    }
}

/// `FixedLengthRecordDatasetV2`: A dataset of the records of files, all of one length.
#[inline]
#[track_caller]
pub fn fixed_length_record_dataset_v2(
    filenames: &Output,
    header_bytes: &Output,
    record_bytes: &Output,
    footer_bytes: &Output,
    buffer_size: &Output,
    compression_type: &Output,
) -> Output {
    fixed_length_record_dataset_v2_with(
        filenames,
        header_bytes,
        record_bytes,
        footer_bytes,
        buffer_size,
        compression_type,
        FixedLengthRecordDatasetV2Options::default(),
    )
}

/// [`fixed_length_record_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn fixed_length_record_dataset_v2_with(
    filenames: &Output,
    header_bytes: &Output,
    record_bytes: &Output,
    footer_bytes: &Output,
    buffer_size: &Output,
    compression_type: &Output,
    options: FixedLengthRecordDatasetV2Options<'_>,
) -> Output {
    filenames
        .graph()
        .op("FixedLengthRecordDatasetV2")
        .input(filenames)
        .input(header_bytes)
        .input(record_bytes)
        .input(footer_bytes)
        .input(buffer_size)
        .input(compression_type)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`flat_map_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FlatMapDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for FlatMapDatasetOptions<'_> {
    fn default() -> Self {
        FlatMapDatasetOptions { metadata: "" }
    }
}

/// `FlatMapDataset`: A dataset of the elements of the datasets that `f` makes, one after the other.
#[inline]
#[track_caller]
pub fn flat_map_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    flat_map_dataset_with(
        input_dataset,
        other_arguments,
        f,
        output_types,
        output_shapes,
        FlatMapDatasetOptions::default(),
    )
}

/// [`flat_map_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn flat_map_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: FlatMapDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("FlatMapDataset")
        .input(input_dataset)
        .list(other_arguments)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`generator_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct GeneratorDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for GeneratorDatasetOptions<'_> {
    fn default() -> Self {
        GeneratorDatasetOptions { metadata: "" }
    }
}

/// `GeneratorDataset`: A dataset of what `next_func` gives, until it is out of range.
#[inline]
#[track_caller]
pub fn generator_dataset(
    g: &Graph,
    init_func_other_args: &[Output],
    next_func_other_args: &[Output],
    finalize_func_other_args: &[Output],
    init_func: &Function,
    next_func: &Function,
    finalize_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    generator_dataset_with(
        g,
        init_func_other_args,
        next_func_other_args,
        finalize_func_other_args,
        init_func,
        next_func,
        finalize_func,
        output_types,
        output_shapes,
        GeneratorDatasetOptions::default(),
    )
}

/// [`generator_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn generator_dataset_with(
    g: &Graph,
    init_func_other_args: &[Output],
    next_func_other_args: &[Output],
    finalize_func_other_args: &[Output],
    init_func: &Function,
    next_func: &Function,
    finalize_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: GeneratorDatasetOptions<'_>,
) -> Output {
    g.op("GeneratorDataset")
        .list(init_func_other_args)
        .list(next_func_other_args)
        .list(finalize_func_other_args)
        .attr("init_func", init_func.reference())
        .attr("next_func", next_func.reference())
        .attr("finalize_func", finalize_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `GetElementAtIndex`: An element of a dataset, by its place.
#[inline]
#[track_caller]
pub fn get_element_at_index(
    dataset: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    dataset
        .graph()
        .op("GetElementAtIndex")
        .input(dataset)
        .input(index)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// `GroupByReducerDataset`: A dataset of one element per key, made of all elements with that key.
#[inline]
#[track_caller]
pub fn group_by_reducer_dataset(
    input_dataset: &Output,
    key_func_other_arguments: &[Output],
    init_func_other_arguments: &[Output],
    reduce_func_other_arguments: &[Output],
    finalize_func_other_arguments: &[Output],
    key_func: &Function,
    init_func: &Function,
    reduce_func: &Function,
    finalize_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("GroupByReducerDataset")
        .input(input_dataset)
        .list(key_func_other_arguments)
        .list(init_func_other_arguments)
        .list(reduce_func_other_arguments)
        .list(finalize_func_other_arguments)
        .attr("key_func", key_func.reference())
        .attr("init_func", init_func.reference())
        .attr("reduce_func", reduce_func.reference())
        .attr("finalize_func", finalize_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`group_by_window_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct GroupByWindowDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for GroupByWindowDatasetOptions<'_> {
    fn default() -> Self {
        GroupByWindowDatasetOptions { metadata: "" }
    }
}

/// `GroupByWindowDataset`: A dataset of what `reduce_func` makes of windows of elements with equal
/// keys.
#[inline]
#[track_caller]
pub fn group_by_window_dataset(
    input_dataset: &Output,
    key_func_other_arguments: &[Output],
    reduce_func_other_arguments: &[Output],
    window_size_func_other_arguments: &[Output],
    key_func: &Function,
    reduce_func: &Function,
    window_size_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    group_by_window_dataset_with(
        input_dataset,
        key_func_other_arguments,
        reduce_func_other_arguments,
        window_size_func_other_arguments,
        key_func,
        reduce_func,
        window_size_func,
        output_types,
        output_shapes,
        GroupByWindowDatasetOptions::default(),
    )
}

/// [`group_by_window_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn group_by_window_dataset_with(
    input_dataset: &Output,
    key_func_other_arguments: &[Output],
    reduce_func_other_arguments: &[Output],
    window_size_func_other_arguments: &[Output],
    key_func: &Function,
    reduce_func: &Function,
    window_size_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: GroupByWindowDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("GroupByWindowDataset")
        .input(input_dataset)
        .list(key_func_other_arguments)
        .list(reduce_func_other_arguments)
        .list(window_size_func_other_arguments)
        .attr("key_func", key_func.reference())
        .attr("reduce_func", reduce_func.reference())
        .attr("window_size_func", window_size_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`ignore_errors_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IgnoreErrorsDatasetOptions {
    /// `log_warning`: bool, `false` by default.
    pub log_warning: bool,
}

impl Default for IgnoreErrorsDatasetOptions {
    fn default() -> Self {
        IgnoreErrorsDatasetOptions { log_warning: false }
    }
}

/// `IgnoreErrorsDataset`: A dataset of the elements that could be made.
#[inline]
#[track_caller]
pub fn ignore_errors_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    ignore_errors_dataset_with(
        input_dataset,
        output_types,
        output_shapes,
        IgnoreErrorsDatasetOptions::default(),
    )
}

/// [`ignore_errors_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn ignore_errors_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: IgnoreErrorsDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("IgnoreErrorsDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("log_warning", options.log_warning)
        .output()
}

/// `InitializeTableFromDataset`: Fills a table with the keys and values that are the elements of a
/// dataset.
#[inline]
#[track_caller]
pub fn initialize_table_from_dataset(table_handle: &Output, dataset: &Output) -> Operation {
    table_handle
        .graph()
        .op("InitializeTableFromDataset")
        .input(table_handle)
        .input(dataset)
        .operation()
}

/// The attributes of [`interleave_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct InterleaveDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for InterleaveDatasetOptions<'_> {
    fn default() -> Self {
        InterleaveDatasetOptions { metadata: "" }
    }
}

/// `InterleaveDataset`: A dataset of the elements of the datasets that `f` makes, several in turns.
#[inline]
#[track_caller]
pub fn interleave_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    interleave_dataset_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        f,
        output_types,
        output_shapes,
        InterleaveDatasetOptions::default(),
    )
}

/// [`interleave_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn interleave_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: InterleaveDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("InterleaveDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `Iterator`: An iterator, to be given a dataset by MakeIterator.
#[inline]
#[track_caller]
pub fn iterator(
    g: &Graph,
    shared_name: &str,
    container: &str,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("Iterator")
        .attr("shared_name", shared_name)
        .attr("container", container)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`iterator_from_string_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IteratorFromStringHandleOptions<'a> {
    /// `output_types`: list of types, empty by default.
    pub output_types: &'a [DType],
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for IteratorFromStringHandleOptions<'_> {
    fn default() -> Self {
        IteratorFromStringHandleOptions { output_types: &[], output_shapes: &[] }
    }
}

/// `IteratorFromStringHandle`: The iterator that a string names.
#[inline]
#[track_caller]
pub fn iterator_from_string_handle(string_handle: &Output) -> Output {
    iterator_from_string_handle_with(string_handle, IteratorFromStringHandleOptions::default())
}

/// [`iterator_from_string_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn iterator_from_string_handle_with(
    string_handle: &Output,
    options: IteratorFromStringHandleOptions<'_>,
) -> Output {
    string_handle
        .graph()
        .op("IteratorFromStringHandle")
        .input(string_handle)
        .attr("output_types", list(options.output_types))
        .attr("output_shapes", list(options.output_shapes))
        .output()
}

/// The attributes of [`iterator_from_string_handle_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IteratorFromStringHandleV2Options<'a> {
    /// `output_types`: list of types, empty by default.
    pub output_types: &'a [DType],
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for IteratorFromStringHandleV2Options<'_> {
    fn default() -> Self {
        IteratorFromStringHandleV2Options { output_types: &[], output_shapes: &[] }
    }
}

/// `IteratorFromStringHandleV2`: The iterator that a string names.
#[inline]
#[track_caller]
pub fn iterator_from_string_handle_v2(string_handle: &Output) -> Output {
    iterator_from_string_handle_v2_with(string_handle, IteratorFromStringHandleV2Options::default())
}

/// [`iterator_from_string_handle_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn iterator_from_string_handle_v2_with(
    string_handle: &Output,
    options: IteratorFromStringHandleV2Options<'_>,
) -> Output {
    string_handle
        .graph()
        .op("IteratorFromStringHandleV2")
        .input(string_handle)
        .attr("output_types", list(options.output_types))
        .attr("output_shapes", list(options.output_shapes))
        .output()
}

/// `IteratorGetDevice`: The name of the device an iterator is on.
#[inline]
#[track_caller]
pub fn iterator_get_device(resource: &Output) -> Output {
    resource.graph().op("IteratorGetDevice").input(resource).output()
}

/// `IteratorGetNext`: The next element of an iterator; OutOfRange behind the last one.
#[inline]
#[track_caller]
pub fn iterator_get_next(
    iterator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    iterator
        .graph()
        .op("IteratorGetNext")
        .input(iterator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// `IteratorGetNextAsOptional`: The next element of an iterator; an optional without a value behind
/// the last one.
#[inline]
#[track_caller]
pub fn iterator_get_next_as_optional(
    iterator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    iterator
        .graph()
        .op("IteratorGetNextAsOptional")
        .input(iterator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `IteratorGetNextSync`: The next element of an iterator; OutOfRange behind the last one.
#[inline]
#[track_caller]
pub fn iterator_get_next_sync(
    iterator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    iterator
        .graph()
        .op("IteratorGetNextSync")
        .input(iterator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// `IteratorToStringHandle`: A string that names an iterator, to be fed to
/// IteratorFromStringHandle.
#[inline]
#[track_caller]
pub fn iterator_to_string_handle(resource_handle: &Output) -> Output {
    resource_handle.graph().op("IteratorToStringHandle").input(resource_handle).output()
}

/// `IteratorV2`: An iterator, to be given a dataset by MakeIterator.
#[inline]
#[track_caller]
pub fn iterator_v2(
    g: &Graph,
    shared_name: &str,
    container: &str,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("IteratorV2")
        .attr("shared_name", shared_name)
        .attr("container", container)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `LMDBDataset`: A dataset of the keys and values of LMDB databases.
#[inline]
#[track_caller]
pub fn lmdb_dataset(
    filenames: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    filenames
        .graph()
        .op("LMDBDataset")
        .input(filenames)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `LatencyStatsDataset`: The same dataset, which records how long an element takes.
#[inline]
#[track_caller]
pub fn latency_stats_dataset(
    input_dataset: &Output,
    tag: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("LatencyStatsDataset")
        .input(input_dataset)
        .input(tag)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`legacy_parallel_interleave_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LegacyParallelInterleaveDatasetV2Options<'a> {
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for LegacyParallelInterleaveDatasetV2Options<'_> {
    fn default() -> Self {
        LegacyParallelInterleaveDatasetV2Options { deterministic: "default", metadata: "" }
    }
}

/// `LegacyParallelInterleaveDatasetV2`: A dataset of the elements of the datasets that `f` makes,
/// several in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn legacy_parallel_interleave_dataset_v2(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    legacy_parallel_interleave_dataset_v2_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        buffer_output_elements,
        prefetch_input_elements,
        f,
        output_types,
        output_shapes,
        LegacyParallelInterleaveDatasetV2Options::default(),
    )
}

/// [`legacy_parallel_interleave_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn legacy_parallel_interleave_dataset_v2_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: LegacyParallelInterleaveDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("LegacyParallelInterleaveDatasetV2")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(buffer_output_elements)
        .input(prefetch_input_elements)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("deterministic", options.deterministic)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`list_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ListDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ListDatasetOptions<'_> {
    fn default() -> Self {
        ListDatasetOptions { metadata: "" }
    }
}

/// `ListDataset`: A dataset of elements that are listed one by one.
#[inline]
#[track_caller]
pub fn list_dataset(
    g: &Graph,
    tensors: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    list_dataset_with(g, tensors, output_types, output_shapes, ListDatasetOptions::default())
}

/// [`list_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn list_dataset_with(
    g: &Graph,
    tensors: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ListDatasetOptions<'_>,
) -> Output {
    g.op("ListDataset")
        .list(tensors)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`load_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LoadDatasetOptions<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
}

impl Default for LoadDatasetOptions<'_> {
    fn default() -> Self {
        LoadDatasetOptions { compression: "" }
    }
}

/// `LoadDataset`: A dataset that SaveDataset wrote.
#[inline]
#[track_caller]
pub fn load_dataset(
    path: &Output,
    reader_func_other_args: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    reader_func: &Function,
) -> Output {
    load_dataset_with(
        path,
        reader_func_other_args,
        output_types,
        output_shapes,
        reader_func,
        LoadDatasetOptions::default(),
    )
}

/// [`load_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn load_dataset_with(
    path: &Output,
    reader_func_other_args: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    reader_func: &Function,
    options: LoadDatasetOptions<'_>,
) -> Output {
    path.graph()
        .op("LoadDataset")
        .input(path)
        .list(reader_func_other_args)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reader_func", reader_func.reference())
        .attr("compression", options.compression)
        .output()
}

/// `MakeIterator`: Puts a dataset into an iterator, which begins at its front.
#[inline]
#[track_caller]
pub fn make_iterator(dataset: &Output, iterator: &Output) -> Operation {
    dataset.graph().op("MakeIterator").input(dataset).input(iterator).operation()
}

/// The attributes of [`map_and_batch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapAndBatchDatasetOptions<'a> {
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for MapAndBatchDatasetOptions<'_> {
    fn default() -> Self {
        MapAndBatchDatasetOptions { preserve_cardinality: false, metadata: "" }
    }
}

/// `MapAndBatchDataset`: A dataset of batches of what `f` makes of each element, of several at a
/// time.
#[inline]
#[track_caller]
pub fn map_and_batch_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    map_and_batch_dataset_with(
        input_dataset,
        other_arguments,
        batch_size,
        num_parallel_calls,
        drop_remainder,
        f,
        output_types,
        output_shapes,
        MapAndBatchDatasetOptions::default(),
    )
}

/// [`map_and_batch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_and_batch_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: MapAndBatchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("MapAndBatchDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(batch_size)
        .input(num_parallel_calls)
        .input(drop_remainder)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("preserve_cardinality", options.preserve_cardinality)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`map_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapDatasetOptions<'a> {
    /// `use_inter_op_parallelism`: bool, `true` by default.
    pub use_inter_op_parallelism: bool,
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for MapDatasetOptions<'_> {
    fn default() -> Self {
        MapDatasetOptions {
            use_inter_op_parallelism: true,
            preserve_cardinality: false,
            metadata: "",
        }
    }
}

/// `MapDataset`: A dataset of what `f` makes of each element.
#[inline]
#[track_caller]
pub fn map_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    map_dataset_with(
        input_dataset,
        other_arguments,
        f,
        output_types,
        output_shapes,
        MapDatasetOptions::default(),
    )
}

/// [`map_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: MapDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("MapDataset")
        .input(input_dataset)
        .list(other_arguments)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_inter_op_parallelism", options.use_inter_op_parallelism)
        .attr("preserve_cardinality", options.preserve_cardinality)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`map_defun_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapDefunOptions {
    /// `max_intra_op_parallelism`: int, `1` by default.
    pub max_intra_op_parallelism: i64,
}

impl Default for MapDefunOptions {
    fn default() -> Self {
        MapDefunOptions { max_intra_op_parallelism: 1 }
    }
}

/// `MapDefun`: A function of each row of its arguments.
#[inline]
#[track_caller]
pub fn map_defun(
    g: &Graph,
    arguments: &[Output],
    captured_inputs: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    f: &Function,
) -> Vec<Output> {
    map_defun_with(
        g,
        arguments,
        captured_inputs,
        output_types,
        output_shapes,
        f,
        MapDefunOptions::default(),
    )
}

/// [`map_defun()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_defun_with(
    g: &Graph,
    arguments: &[Output],
    captured_inputs: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    f: &Function,
    options: MapDefunOptions,
) -> Vec<Output> {
    g.op("MapDefun")
        .list(arguments)
        .list(captured_inputs)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("f", f.reference())
        .attr("max_intra_op_parallelism", options.max_intra_op_parallelism)
        .list_outputs()
}

/// `MatchingFilesDataset`: A dataset of the names of files that match patterns: sorted for each of
/// these.
#[inline]
#[track_caller]
pub fn matching_files_dataset(patterns: &Output) -> Output {
    patterns.graph().op("MatchingFilesDataset").input(patterns).output()
}

/// `MaxIntraOpParallelismDataset`: The same dataset; what it says of how to run it is left to the
/// runtime.
#[inline]
#[track_caller]
pub fn max_intra_op_parallelism_dataset(
    input_dataset: &Output,
    max_intra_op_parallelism: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("MaxIntraOpParallelismDataset")
        .input(input_dataset)
        .input(max_intra_op_parallelism)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`model_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ModelDatasetOptions {
    /// `algorithm`: int, `0` by default.
    pub algorithm: i64,
    /// `cpu_budget`: int, `0` by default.
    pub cpu_budget: i64,
    /// `ram_budget`: int, `0` by default.
    pub ram_budget: i64,
}

impl Default for ModelDatasetOptions {
    fn default() -> Self {
        ModelDatasetOptions { algorithm: 0, cpu_budget: 0, ram_budget: 0 }
    }
}

/// `ModelDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn model_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    model_dataset_with(input_dataset, output_types, output_shapes, ModelDatasetOptions::default())
}

/// [`model_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn model_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ModelDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("ModelDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("algorithm", options.algorithm)
        .attr("cpu_budget", options.cpu_budget)
        .attr("ram_budget", options.ram_budget)
        .output()
}

/// `MultiDeviceIterator`: An iterator that deals the elements of a dataset to several devices in
/// turn.
#[inline]
#[track_caller]
pub fn multi_device_iterator(
    g: &Graph,
    devices: &[&str],
    shared_name: &str,
    container: &str,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("MultiDeviceIterator")
        .attr("devices", list(devices))
        .attr("shared_name", shared_name)
        .attr("container", container)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`multi_device_iterator_from_string_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MultiDeviceIteratorFromStringHandleOptions<'a> {
    /// `output_types`: list of types, empty by default.
    pub output_types: &'a [DType],
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for MultiDeviceIteratorFromStringHandleOptions<'_> {
    fn default() -> Self {
        MultiDeviceIteratorFromStringHandleOptions { output_types: &[], output_shapes: &[] }
    }
}

/// `MultiDeviceIteratorFromStringHandle`: The multi-device iterator that a string names.
#[inline]
#[track_caller]
pub fn multi_device_iterator_from_string_handle(string_handle: &Output) -> Output {
    multi_device_iterator_from_string_handle_with(
        string_handle,
        MultiDeviceIteratorFromStringHandleOptions::default(),
    )
}

/// [`multi_device_iterator_from_string_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn multi_device_iterator_from_string_handle_with(
    string_handle: &Output,
    options: MultiDeviceIteratorFromStringHandleOptions<'_>,
) -> Output {
    string_handle
        .graph()
        .op("MultiDeviceIteratorFromStringHandle")
        .input(string_handle)
        .attr("output_types", list(options.output_types))
        .attr("output_shapes", list(options.output_shapes))
        .output()
}

/// `MultiDeviceIteratorGetNextFromShard`: The next element of one device; OutOfRange behind the
/// last one.
#[inline]
#[track_caller]
pub fn multi_device_iterator_get_next_from_shard(
    multi_device_iterator: &Output,
    shard_num: &Output,
    incarnation_id: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    multi_device_iterator
        .graph()
        .op("MultiDeviceIteratorGetNextFromShard")
        .input(multi_device_iterator)
        .input(shard_num)
        .input(incarnation_id)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// `MultiDeviceIteratorInit`: Puts a dataset into a multi-device iterator.
#[inline]
#[track_caller]
pub fn multi_device_iterator_init(
    dataset: &Output,
    multi_device_iterator: &Output,
    max_buffer_size: &Output,
) -> Output {
    dataset
        .graph()
        .op("MultiDeviceIteratorInit")
        .input(dataset)
        .input(multi_device_iterator)
        .input(max_buffer_size)
        .output()
}

/// `MultiDeviceIteratorToStringHandle`: A string that names a multi-device iterator.
#[inline]
#[track_caller]
pub fn multi_device_iterator_to_string_handle(multi_device_iterator: &Output) -> Output {
    multi_device_iterator
        .graph()
        .op("MultiDeviceIteratorToStringHandle")
        .input(multi_device_iterator)
        .output()
}

/// `NonSerializableDataset`: The same dataset; what it says of how to run it is left to the
/// runtime.
#[inline]
#[track_caller]
pub fn non_serializable_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("NonSerializableDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`one_shot_iterator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OneShotIteratorOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OneShotIteratorOptions<'_> {
    fn default() -> Self {
        OneShotIteratorOptions { container: "", shared_name: "" }
    }
}

/// `OneShotIterator`: An iterator over the dataset that `dataset_factory` returns.
#[inline]
#[track_caller]
pub fn one_shot_iterator(
    g: &Graph,
    dataset_factory: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    one_shot_iterator_with(
        g,
        dataset_factory,
        output_types,
        output_shapes,
        OneShotIteratorOptions::default(),
    )
}

/// [`one_shot_iterator()`] with other attributes.
#[inline]
#[track_caller]
pub fn one_shot_iterator_with(
    g: &Graph,
    dataset_factory: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: OneShotIteratorOptions<'_>,
) -> Output {
    g.op("OneShotIterator")
        .attr("dataset_factory", dataset_factory.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`optimize_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OptimizeDatasetOptions<'a> {
    /// `optimization_configs`: list of strings, empty by default.
    pub optimization_configs: &'a [&'a str],
}

impl Default for OptimizeDatasetOptions<'_> {
    fn default() -> Self {
        OptimizeDatasetOptions { optimization_configs: &[] }
    }
}

/// `OptimizeDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn optimize_dataset(
    input_dataset: &Output,
    optimizations: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    optimize_dataset_with(
        input_dataset,
        optimizations,
        output_types,
        output_shapes,
        OptimizeDatasetOptions::default(),
    )
}

/// [`optimize_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn optimize_dataset_with(
    input_dataset: &Output,
    optimizations: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: OptimizeDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("OptimizeDataset")
        .input(input_dataset)
        .input(optimizations)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("optimization_configs", list(options.optimization_configs))
        .output()
}

/// The attributes of [`optimize_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OptimizeDatasetV2Options<'a> {
    /// `optimization_configs`: list of strings, empty by default.
    pub optimization_configs: &'a [&'a str],
}

impl Default for OptimizeDatasetV2Options<'_> {
    fn default() -> Self {
        OptimizeDatasetV2Options { optimization_configs: &[] }
    }
}

/// `OptimizeDatasetV2`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn optimize_dataset_v2(
    input_dataset: &Output,
    optimizations_enabled: &Output,
    optimizations_disabled: &Output,
    optimizations_default: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    optimize_dataset_v2_with(
        input_dataset,
        optimizations_enabled,
        optimizations_disabled,
        optimizations_default,
        output_types,
        output_shapes,
        OptimizeDatasetV2Options::default(),
    )
}

/// [`optimize_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn optimize_dataset_v2_with(
    input_dataset: &Output,
    optimizations_enabled: &Output,
    optimizations_disabled: &Output,
    optimizations_default: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: OptimizeDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("OptimizeDatasetV2")
        .input(input_dataset)
        .input(optimizations_enabled)
        .input(optimizations_disabled)
        .input(optimizations_default)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("optimization_configs", list(options.optimization_configs))
        .output()
}

/// The attributes of [`options_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OptionsDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for OptionsDatasetOptions<'_> {
    fn default() -> Self {
        OptionsDatasetOptions { metadata: "" }
    }
}

/// `OptionsDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn options_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    serialized_options: &str,
) -> Output {
    options_dataset_with(
        input_dataset,
        output_types,
        output_shapes,
        serialized_options,
        OptionsDatasetOptions::default(),
    )
}

/// [`options_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn options_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    serialized_options: &str,
    options: OptionsDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("OptionsDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("serialized_options", serialized_options)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`padded_batch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PaddedBatchDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for PaddedBatchDatasetOptions<'_> {
    fn default() -> Self {
        PaddedBatchDatasetOptions { metadata: "" }
    }
}

/// `PaddedBatchDataset`: A dataset of batches of elements, each padded to the same size.
#[inline]
#[track_caller]
pub fn padded_batch_dataset(
    input_dataset: &Output,
    batch_size: &Output,
    padded_shapes: &[Output],
    padding_values: &[Output],
    output_shapes: &[PartialShape],
) -> Output {
    padded_batch_dataset_with(
        input_dataset,
        batch_size,
        padded_shapes,
        padding_values,
        output_shapes,
        PaddedBatchDatasetOptions::default(),
    )
}

/// [`padded_batch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn padded_batch_dataset_with(
    input_dataset: &Output,
    batch_size: &Output,
    padded_shapes: &[Output],
    padding_values: &[Output],
    output_shapes: &[PartialShape],
    options: PaddedBatchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("PaddedBatchDataset")
        .input(input_dataset)
        .input(batch_size)
        .list(padded_shapes)
        .list(padding_values)
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`padded_batch_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PaddedBatchDatasetV2Options<'a> {
    /// `parallel_copy`: bool, `false` by default.
    pub parallel_copy: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for PaddedBatchDatasetV2Options<'_> {
    fn default() -> Self {
        PaddedBatchDatasetV2Options { parallel_copy: false, metadata: "" }
    }
}

/// `PaddedBatchDatasetV2`: A dataset of batches of elements, each padded to the same size.
#[inline]
#[track_caller]
pub fn padded_batch_dataset_v2(
    input_dataset: &Output,
    batch_size: &Output,
    padded_shapes: &[Output],
    padding_values: &[Output],
    drop_remainder: &Output,
    output_shapes: &[PartialShape],
) -> Output {
    padded_batch_dataset_v2_with(
        input_dataset,
        batch_size,
        padded_shapes,
        padding_values,
        drop_remainder,
        output_shapes,
        PaddedBatchDatasetV2Options::default(),
    )
}

/// [`padded_batch_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn padded_batch_dataset_v2_with(
    input_dataset: &Output,
    batch_size: &Output,
    padded_shapes: &[Output],
    padding_values: &[Output],
    drop_remainder: &Output,
    output_shapes: &[PartialShape],
    options: PaddedBatchDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("PaddedBatchDatasetV2")
        .input(input_dataset)
        .input(batch_size)
        .list(padded_shapes)
        .list(padding_values)
        .input(drop_remainder)
        .attr("output_shapes", list(output_shapes))
        .attr("parallel_copy", options.parallel_copy)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_batch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelBatchDatasetOptions<'a> {
    /// `parallel_copy`: bool, `false` by default.
    pub parallel_copy: bool,
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelBatchDatasetOptions<'_> {
    fn default() -> Self {
        ParallelBatchDatasetOptions { parallel_copy: false, deterministic: "default", metadata: "" }
    }
}

/// `ParallelBatchDataset`: A dataset of batches of elements, several of which are made at a time.
#[inline]
#[track_caller]
pub fn parallel_batch_dataset(
    input_dataset: &Output,
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_batch_dataset_with(
        input_dataset,
        batch_size,
        num_parallel_calls,
        drop_remainder,
        output_types,
        output_shapes,
        ParallelBatchDatasetOptions::default(),
    )
}

/// [`parallel_batch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_batch_dataset_with(
    input_dataset: &Output,
    batch_size: &Output,
    num_parallel_calls: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelBatchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelBatchDataset")
        .input(input_dataset)
        .input(batch_size)
        .input(num_parallel_calls)
        .input(drop_remainder)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("parallel_copy", options.parallel_copy)
        .attr("deterministic", options.deterministic)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_filter_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelFilterDatasetOptions<'a> {
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelFilterDatasetOptions<'_> {
    fn default() -> Self {
        ParallelFilterDatasetOptions { deterministic: "default", metadata: "" }
    }
}

/// `ParallelFilterDataset`: A dataset of the elements for which `predicate` is true, asked of
/// several at a time.
#[inline]
#[track_caller]
pub fn parallel_filter_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_filter_dataset_with(
        input_dataset,
        other_arguments,
        num_parallel_calls,
        predicate,
        output_types,
        output_shapes,
        ParallelFilterDatasetOptions::default(),
    )
}

/// [`parallel_filter_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_filter_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelFilterDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelFilterDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(num_parallel_calls)
        .attr("predicate", predicate.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("deterministic", options.deterministic)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_interleave_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelInterleaveDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelInterleaveDatasetOptions<'_> {
    fn default() -> Self {
        ParallelInterleaveDatasetOptions { metadata: "" }
    }
}

/// `ParallelInterleaveDataset`: A dataset of the elements of the datasets that `f` makes, several
/// in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    sloppy: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_interleave_dataset_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        sloppy,
        buffer_output_elements,
        prefetch_input_elements,
        f,
        output_types,
        output_shapes,
        ParallelInterleaveDatasetOptions::default(),
    )
}

/// [`parallel_interleave_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    sloppy: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelInterleaveDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelInterleaveDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(sloppy)
        .input(buffer_output_elements)
        .input(prefetch_input_elements)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_interleave_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelInterleaveDatasetV2Options<'a> {
    /// `sloppy`: bool, `false` by default.
    pub sloppy: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelInterleaveDatasetV2Options<'_> {
    fn default() -> Self {
        ParallelInterleaveDatasetV2Options { sloppy: false, metadata: "" }
    }
}

/// `ParallelInterleaveDatasetV2`: A dataset of the elements of the datasets that `f` makes, several
/// in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v2(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_interleave_dataset_v2_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        num_parallel_calls,
        f,
        output_types,
        output_shapes,
        ParallelInterleaveDatasetV2Options::default(),
    )
}

/// [`parallel_interleave_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v2_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelInterleaveDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelInterleaveDatasetV2")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(num_parallel_calls)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("sloppy", options.sloppy)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_interleave_dataset_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelInterleaveDatasetV3Options<'a> {
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelInterleaveDatasetV3Options<'_> {
    fn default() -> Self {
        ParallelInterleaveDatasetV3Options { deterministic: "default", metadata: "" }
    }
}

/// `ParallelInterleaveDatasetV3`: A dataset of the elements of the datasets that `f` makes, several
/// in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v3(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_interleave_dataset_v3_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        num_parallel_calls,
        f,
        output_types,
        output_shapes,
        ParallelInterleaveDatasetV3Options::default(),
    )
}

/// [`parallel_interleave_dataset_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v3_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelInterleaveDatasetV3Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelInterleaveDatasetV3")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(num_parallel_calls)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("deterministic", options.deterministic)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_interleave_dataset_v4_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelInterleaveDatasetV4Options<'a> {
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelInterleaveDatasetV4Options<'_> {
    fn default() -> Self {
        ParallelInterleaveDatasetV4Options { deterministic: "default", metadata: "" }
    }
}

/// `ParallelInterleaveDatasetV4`: A dataset of the elements of the datasets that `f` makes, several
/// in turns, which are gone through in the background.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v4(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_interleave_dataset_v4_with(
        input_dataset,
        other_arguments,
        cycle_length,
        block_length,
        buffer_output_elements,
        prefetch_input_elements,
        num_parallel_calls,
        f,
        output_types,
        output_shapes,
        ParallelInterleaveDatasetV4Options::default(),
    )
}

/// [`parallel_interleave_dataset_v4()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_interleave_dataset_v4_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    cycle_length: &Output,
    block_length: &Output,
    buffer_output_elements: &Output,
    prefetch_input_elements: &Output,
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelInterleaveDatasetV4Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelInterleaveDatasetV4")
        .input(input_dataset)
        .list(other_arguments)
        .input(cycle_length)
        .input(block_length)
        .input(buffer_output_elements)
        .input(prefetch_input_elements)
        .input(num_parallel_calls)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("deterministic", options.deterministic)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_map_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelMapDatasetOptions<'a> {
    /// `use_inter_op_parallelism`: bool, `true` by default.
    pub use_inter_op_parallelism: bool,
    /// `sloppy`: bool, `false` by default.
    pub sloppy: bool,
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelMapDatasetOptions<'_> {
    fn default() -> Self {
        ParallelMapDatasetOptions {
            use_inter_op_parallelism: true,
            sloppy: false,
            preserve_cardinality: false,
            metadata: "",
        }
    }
}

/// `ParallelMapDataset`: A dataset of what `f` makes of each element, of several at a time.
#[inline]
#[track_caller]
pub fn parallel_map_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_map_dataset_with(
        input_dataset,
        other_arguments,
        num_parallel_calls,
        f,
        output_types,
        output_shapes,
        ParallelMapDatasetOptions::default(),
    )
}

/// [`parallel_map_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_map_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelMapDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelMapDataset")
        .input(input_dataset)
        .list(other_arguments)
        .input(num_parallel_calls)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_inter_op_parallelism", options.use_inter_op_parallelism)
        .attr("sloppy", options.sloppy)
        .attr("preserve_cardinality", options.preserve_cardinality)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parallel_map_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParallelMapDatasetV2Options<'a> {
    /// `use_inter_op_parallelism`: bool, `true` by default.
    pub use_inter_op_parallelism: bool,
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ParallelMapDatasetV2Options<'_> {
    fn default() -> Self {
        ParallelMapDatasetV2Options {
            use_inter_op_parallelism: true,
            deterministic: "default",
            preserve_cardinality: false,
            metadata: "",
        }
    }
}

/// `ParallelMapDatasetV2`: A dataset of what `f` makes of each element, of several at a time.
#[inline]
#[track_caller]
pub fn parallel_map_dataset_v2(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parallel_map_dataset_v2_with(
        input_dataset,
        other_arguments,
        num_parallel_calls,
        f,
        output_types,
        output_shapes,
        ParallelMapDatasetV2Options::default(),
    )
}

/// [`parallel_map_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn parallel_map_dataset_v2_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    num_parallel_calls: &Output,
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParallelMapDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParallelMapDatasetV2")
        .input(input_dataset)
        .list(other_arguments)
        .input(num_parallel_calls)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_inter_op_parallelism", options.use_inter_op_parallelism)
        .attr("deterministic", options.deterministic)
        .attr("preserve_cardinality", options.preserve_cardinality)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`parse_example_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParseExampleDatasetOptions<'a> {
    /// `sloppy`: bool, `false` by default.
    pub sloppy: bool,
    /// `ragged_keys`: list of strings, empty by default.
    pub ragged_keys: &'a [&'a str],
    /// `ragged_value_types`: list of types, empty by default.
    pub ragged_value_types: &'a [DType],
    /// `ragged_split_types`: list of types, empty by default.
    pub ragged_split_types: &'a [DType],
}

impl Default for ParseExampleDatasetOptions<'_> {
    fn default() -> Self {
        ParseExampleDatasetOptions {
            sloppy: false,
            ragged_keys: &[],
            ragged_value_types: &[],
            ragged_split_types: &[],
        }
    }
}

/// `ParseExampleDataset`: A dataset of features of batches of Example records.
#[inline]
#[track_caller]
pub fn parse_example_dataset(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parse_example_dataset_with(
        input_dataset,
        num_parallel_calls,
        dense_defaults,
        sparse_keys,
        dense_keys,
        sparse_types,
        dense_shapes,
        output_types,
        output_shapes,
        ParseExampleDatasetOptions::default(),
    )
}

/// [`parse_example_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn parse_example_dataset_with(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParseExampleDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParseExampleDataset")
        .input(input_dataset)
        .input(num_parallel_calls)
        .list(dense_defaults)
        .attr("sparse_keys", list(sparse_keys))
        .attr("dense_keys", list(dense_keys))
        .attr("sparse_types", list(sparse_types))
        .attr("dense_shapes", list(dense_shapes))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("sloppy", options.sloppy)
        .attr("ragged_keys", list(options.ragged_keys))
        .attr("ragged_value_types", list(options.ragged_value_types))
        .attr("ragged_split_types", list(options.ragged_split_types))
        .output()
}

/// The attributes of [`parse_example_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParseExampleDatasetV2Options<'a> {
    /// `deterministic`: string, `"default"` by default.
    pub deterministic: &'a str,
    /// `ragged_keys`: list of strings, empty by default.
    pub ragged_keys: &'a [&'a str],
    /// `ragged_value_types`: list of types, empty by default.
    pub ragged_value_types: &'a [DType],
    /// `ragged_split_types`: list of types, empty by default.
    pub ragged_split_types: &'a [DType],
}

impl Default for ParseExampleDatasetV2Options<'_> {
    fn default() -> Self {
        ParseExampleDatasetV2Options {
            deterministic: "default",
            ragged_keys: &[],
            ragged_value_types: &[],
            ragged_split_types: &[],
        }
    }
}

/// `ParseExampleDatasetV2`: A dataset of features of batches of Example records.
#[inline]
#[track_caller]
pub fn parse_example_dataset_v2(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    parse_example_dataset_v2_with(
        input_dataset,
        num_parallel_calls,
        dense_defaults,
        sparse_keys,
        dense_keys,
        sparse_types,
        dense_shapes,
        output_types,
        output_shapes,
        ParseExampleDatasetV2Options::default(),
    )
}

/// [`parse_example_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn parse_example_dataset_v2_with(
    input_dataset: &Output,
    num_parallel_calls: &Output,
    dense_defaults: &[Output],
    sparse_keys: &[&str],
    dense_keys: &[&str],
    sparse_types: &[DType],
    dense_shapes: &[PartialShape],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ParseExampleDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ParseExampleDatasetV2")
        .input(input_dataset)
        .input(num_parallel_calls)
        .list(dense_defaults)
        .attr("sparse_keys", list(sparse_keys))
        .attr("dense_keys", list(dense_keys))
        .attr("sparse_types", list(sparse_types))
        .attr("dense_shapes", list(dense_shapes))
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("deterministic", options.deterministic)
        .attr("ragged_keys", list(options.ragged_keys))
        .attr("ragged_value_types", list(options.ragged_value_types))
        .attr("ragged_split_types", list(options.ragged_split_types))
        .output()
}

/// The attributes of [`prefetch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PrefetchDatasetOptions<'a> {
    /// `slack_period`: int, `0` by default.
    pub slack_period: i64,
    /// `legacy_autotune`: bool, `true` by default.
    pub legacy_autotune: bool,
    /// `buffer_size_min`: int, `0` by default.
    pub buffer_size_min: i64,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for PrefetchDatasetOptions<'_> {
    fn default() -> Self {
        PrefetchDatasetOptions {
            slack_period: 0,
            legacy_autotune: true,
            buffer_size_min: 0,
            metadata: "",
        }
    }
}

/// `PrefetchDataset`: A dataset whose elements are made ahead of need.
#[inline]
#[track_caller]
pub fn prefetch_dataset(
    input_dataset: &Output,
    buffer_size: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    prefetch_dataset_with(
        input_dataset,
        buffer_size,
        output_types,
        output_shapes,
        PrefetchDatasetOptions::default(),
    )
}

/// [`prefetch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn prefetch_dataset_with(
    input_dataset: &Output,
    buffer_size: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: PrefetchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("PrefetchDataset")
        .input(input_dataset)
        .input(buffer_size)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("slack_period", options.slack_period)
        .attr("legacy_autotune", options.legacy_autotune)
        .attr("buffer_size_min", options.buffer_size_min)
        .attr("metadata", options.metadata)
        .output()
}

/// `PrivateThreadPoolDataset`: The same dataset; what it says of how to run it is left to the
/// runtime.
#[inline]
#[track_caller]
pub fn private_thread_pool_dataset(
    input_dataset: &Output,
    num_threads: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("PrivateThreadPoolDataset")
        .input(input_dataset)
        .input(num_threads)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`random_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for RandomDatasetOptions<'_> {
    fn default() -> Self {
        RandomDatasetOptions { metadata: "" }
    }
}

/// `RandomDataset`: A dataset of random numbers below 2^32, without an end.
#[inline]
#[track_caller]
pub fn random_dataset(
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    random_dataset_with(seed, seed2, output_types, output_shapes, RandomDatasetOptions::default())
}

/// [`random_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_dataset_with(
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: RandomDatasetOptions<'_>,
) -> Output {
    seed.graph()
        .op("RandomDataset")
        .input(seed)
        .input(seed2)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`random_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomDatasetV2Options<'a> {
    /// `rerandomize_each_iteration`: bool, `false` by default.
    pub rerandomize_each_iteration: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for RandomDatasetV2Options<'_> {
    fn default() -> Self {
        RandomDatasetV2Options { rerandomize_each_iteration: false, metadata: "" }
    }
}

/// `RandomDatasetV2`: A dataset of random numbers below 2^32, without an end.
#[inline]
#[track_caller]
pub fn random_dataset_v2(
    seed: &Output,
    seed2: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    random_dataset_v2_with(
        seed,
        seed2,
        seed_generator,
        output_types,
        output_shapes,
        RandomDatasetV2Options::default(),
    )
}

/// [`random_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_dataset_v2_with(
    seed: &Output,
    seed2: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: RandomDatasetV2Options<'_>,
) -> Output {
    seed.graph()
        .op("RandomDatasetV2")
        .input(seed)
        .input(seed2)
        .input(seed_generator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("rerandomize_each_iteration", options.rerandomize_each_iteration)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`range_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RangeDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
    /// `replicate_on_split`: bool, `false` by default.
    pub replicate_on_split: bool,
}

impl Default for RangeDatasetOptions<'_> {
    fn default() -> Self {
        RangeDatasetOptions { metadata: "", replicate_on_split: false }
    }
}

/// `RangeDataset`: A dataset of numbers from `start` to before `stop`.
#[inline]
#[track_caller]
pub fn range_dataset(
    start: &Output,
    stop: &Output,
    step: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    range_dataset_with(
        start,
        stop,
        step,
        output_types,
        output_shapes,
        RangeDatasetOptions::default(),
    )
}

/// [`range_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn range_dataset_with(
    start: &Output,
    stop: &Output,
    step: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: RangeDatasetOptions<'_>,
) -> Output {
    start
        .graph()
        .op("RangeDataset")
        .input(start)
        .input(stop)
        .input(step)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .attr("replicate_on_split", options.replicate_on_split)
        .output()
}

/// The attributes of [`rebatch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RebatchDatasetOptions {
    /// `use_fallback`: bool, `true` by default.
    pub use_fallback: bool,
}

impl Default for RebatchDatasetOptions {
    fn default() -> Self {
        RebatchDatasetOptions { use_fallback: true }
    }
}

/// `RebatchDataset`: A dataset of the elements' rows, each element cut into `num_replicas` parts.
#[inline]
#[track_caller]
pub fn rebatch_dataset(
    input_dataset: &Output,
    num_replicas: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    rebatch_dataset_with(
        input_dataset,
        num_replicas,
        output_types,
        output_shapes,
        RebatchDatasetOptions::default(),
    )
}

/// [`rebatch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn rebatch_dataset_with(
    input_dataset: &Output,
    num_replicas: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: RebatchDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("RebatchDataset")
        .input(input_dataset)
        .input(num_replicas)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_fallback", options.use_fallback)
        .output()
}

/// `RebatchDatasetV2`: A dataset of the elements' rows, in batches of `batch_sizes` over and over.
#[inline]
#[track_caller]
pub fn rebatch_dataset_v2(
    input_dataset: &Output,
    batch_sizes: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("RebatchDatasetV2")
        .input(input_dataset)
        .input(batch_sizes)
        .input(drop_remainder)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`reduce_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ReduceDatasetOptions<'a> {
    /// `use_inter_op_parallelism`: bool, `true` by default.
    pub use_inter_op_parallelism: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ReduceDatasetOptions<'_> {
    fn default() -> Self {
        ReduceDatasetOptions { use_inter_op_parallelism: true, metadata: "" }
    }
}

/// `ReduceDataset`: What `f` makes of a state and all elements, one after the other.
#[inline]
#[track_caller]
pub fn reduce_dataset(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    reduce_dataset_with(
        input_dataset,
        initial_state,
        other_arguments,
        f,
        output_types,
        output_shapes,
        ReduceDatasetOptions::default(),
    )
}

/// [`reduce_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn reduce_dataset_with(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ReduceDatasetOptions<'_>,
) -> Vec<Output> {
    input_dataset
        .graph()
        .op("ReduceDataset")
        .input(input_dataset)
        .list(initial_state)
        .list(other_arguments)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("use_inter_op_parallelism", options.use_inter_op_parallelism)
        .attr("metadata", options.metadata)
        .list_outputs()
}

/// The attributes of [`repeat_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RepeatDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for RepeatDatasetOptions<'_> {
    fn default() -> Self {
        RepeatDatasetOptions { metadata: "" }
    }
}

/// `RepeatDataset`: A dataset of all elements, `count` times.
#[inline]
#[track_caller]
pub fn repeat_dataset(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    repeat_dataset_with(
        input_dataset,
        count,
        output_types,
        output_shapes,
        RepeatDatasetOptions::default(),
    )
}

/// [`repeat_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn repeat_dataset_with(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: RepeatDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("RepeatDataset")
        .input(input_dataset)
        .input(count)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `RewriteDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn rewrite_dataset(
    input_dataset: &Output,
    rewrite_name: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("RewriteDataset")
        .input(input_dataset)
        .input(rewrite_name)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `SamplingDataset`: A dataset of elements that are kept with probability `rate`.
#[inline]
#[track_caller]
pub fn sampling_dataset(
    input_dataset: &Output,
    rate: &Output,
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("SamplingDataset")
        .input(input_dataset)
        .input(rate)
        .input(seed)
        .input(seed2)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`save_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SaveDatasetOptions<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
    /// `use_shard_func`: bool, `true` by default.
    pub use_shard_func: bool,
}

impl Default for SaveDatasetOptions<'_> {
    fn default() -> Self {
        SaveDatasetOptions { compression: "", use_shard_func: true }
    }
}

/// `SaveDataset`: Writes a dataset to files, from which LoadDataset reads it.
#[inline]
#[track_caller]
pub fn save_dataset(
    input_dataset: &Output,
    path: &Output,
    shard_func_other_args: &[Output],
    shard_func: &Function,
) -> Operation {
    save_dataset_with(
        input_dataset,
        path,
        shard_func_other_args,
        shard_func,
        SaveDatasetOptions::default(),
    )
}

/// [`save_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn save_dataset_with(
    input_dataset: &Output,
    path: &Output,
    shard_func_other_args: &[Output],
    shard_func: &Function,
    options: SaveDatasetOptions<'_>,
) -> Operation {
    input_dataset
        .graph()
        .op("SaveDataset")
        .input(input_dataset)
        .input(path)
        .list(shard_func_other_args)
        .attr("shard_func", shard_func.reference())
        .attr("compression", options.compression)
        .attr("use_shard_func", options.use_shard_func)
        .operation()
}

/// The attributes of [`save_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SaveDatasetV2Options<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
    /// `use_shard_func`: bool, `true` by default.
    pub use_shard_func: bool,
}

impl Default for SaveDatasetV2Options<'_> {
    fn default() -> Self {
        SaveDatasetV2Options { compression: "", use_shard_func: true }
    }
}

/// `SaveDatasetV2`: A dataset whose elements are written to files while they are iterated over.
#[inline]
#[track_caller]
pub fn save_dataset_v2(
    input_dataset: &Output,
    path: &Output,
    shard_func_other_args: &[Output],
    shard_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    save_dataset_v2_with(
        input_dataset,
        path,
        shard_func_other_args,
        shard_func,
        output_types,
        output_shapes,
        SaveDatasetV2Options::default(),
    )
}

/// [`save_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn save_dataset_v2_with(
    input_dataset: &Output,
    path: &Output,
    shard_func_other_args: &[Output],
    shard_func: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: SaveDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("SaveDatasetV2")
        .input(input_dataset)
        .input(path)
        .list(shard_func_other_args)
        .attr("shard_func", shard_func.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("compression", options.compression)
        .attr("use_shard_func", options.use_shard_func)
        .output()
}

/// The attributes of [`scan_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScanDatasetOptions<'a> {
    /// `preserve_cardinality`: bool, `false` by default.
    pub preserve_cardinality: bool,
    /// `use_default_device`: bool, `true` by default.
    pub use_default_device: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ScanDatasetOptions<'_> {
    fn default() -> Self {
        ScanDatasetOptions { preserve_cardinality: false, use_default_device: true, metadata: "" }
    }
}

/// `ScanDataset`: A dataset of what `f` makes of each element and of a state it carries along.
#[inline]
#[track_caller]
pub fn scan_dataset(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    scan_dataset_with(
        input_dataset,
        initial_state,
        other_arguments,
        f,
        output_types,
        output_shapes,
        ScanDatasetOptions::default(),
    )
}

/// [`scan_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn scan_dataset_with(
    input_dataset: &Output,
    initial_state: &[Output],
    other_arguments: &[Output],
    f: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ScanDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ScanDataset")
        .input(input_dataset)
        .list(initial_state)
        .list(other_arguments)
        .attr("f", f.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("preserve_cardinality", options.preserve_cardinality)
        .attr("use_default_device", options.use_default_device)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`serialize_iterator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SerializeIteratorOptions {
    /// `external_state_policy`: int, `0` by default.
    pub external_state_policy: i64,
}

impl Default for SerializeIteratorOptions {
    fn default() -> Self {
        SerializeIteratorOptions { external_state_policy: 0 }
    }
}

/// `SerializeIterator`: Where an iterator is: how many elements were taken from its dataset.
#[inline]
#[track_caller]
pub fn serialize_iterator(resource_handle: &Output) -> Output {
    serialize_iterator_with(resource_handle, SerializeIteratorOptions::default())
}

/// [`serialize_iterator()`] with other attributes.
#[inline]
#[track_caller]
pub fn serialize_iterator_with(
    resource_handle: &Output,
    options: SerializeIteratorOptions,
) -> Output {
    resource_handle
        .graph()
        .op("SerializeIterator")
        .input(resource_handle)
        .attr("external_state_policy", options.external_state_policy)
        .output()
}

/// `SetStatsAggregatorDataset`: The same dataset; what its parts measure goes to a stats
/// aggregator.
#[inline]
#[track_caller]
pub fn set_stats_aggregator_dataset(
    input_dataset: &Output,
    stats_aggregator: &Output,
    tag: &Output,
    counter_prefix: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("SetStatsAggregatorDataset")
        .input(input_dataset)
        .input(stats_aggregator)
        .input(tag)
        .input(counter_prefix)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`shard_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShardDatasetOptions<'a> {
    /// `require_non_empty`: bool, `false` by default.
    pub require_non_empty: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShardDatasetOptions<'_> {
    fn default() -> Self {
        ShardDatasetOptions { require_non_empty: false, metadata: "" }
    }
}

/// `ShardDataset`: A dataset of every `num_shards`-th element, beginning with number `index`.
#[inline]
#[track_caller]
pub fn shard_dataset(
    input_dataset: &Output,
    num_shards: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shard_dataset_with(
        input_dataset,
        num_shards,
        index,
        output_types,
        output_shapes,
        ShardDatasetOptions::default(),
    )
}

/// [`shard_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn shard_dataset_with(
    input_dataset: &Output,
    num_shards: &Output,
    index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShardDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShardDataset")
        .input(input_dataset)
        .input(num_shards)
        .input(index)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("require_non_empty", options.require_non_empty)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`shuffle_and_repeat_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShuffleAndRepeatDatasetOptions<'a> {
    /// `reshuffle_each_iteration`: bool, `true` by default.
    pub reshuffle_each_iteration: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShuffleAndRepeatDatasetOptions<'_> {
    fn default() -> Self {
        ShuffleAndRepeatDatasetOptions { reshuffle_each_iteration: true, metadata: "" }
    }
}

/// `ShuffleAndRepeatDataset`: A dataset of the elements, several times, each in random order.
#[inline]
#[track_caller]
pub fn shuffle_and_repeat_dataset(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shuffle_and_repeat_dataset_with(
        input_dataset,
        buffer_size,
        seed,
        seed2,
        count,
        output_types,
        output_shapes,
        ShuffleAndRepeatDatasetOptions::default(),
    )
}

/// [`shuffle_and_repeat_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn shuffle_and_repeat_dataset_with(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShuffleAndRepeatDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShuffleAndRepeatDataset")
        .input(input_dataset)
        .input(buffer_size)
        .input(seed)
        .input(seed2)
        .input(count)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reshuffle_each_iteration", options.reshuffle_each_iteration)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`shuffle_and_repeat_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShuffleAndRepeatDatasetV2Options<'a> {
    /// `reshuffle_each_iteration`: bool, `true` by default.
    pub reshuffle_each_iteration: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShuffleAndRepeatDatasetV2Options<'_> {
    fn default() -> Self {
        ShuffleAndRepeatDatasetV2Options { reshuffle_each_iteration: true, metadata: "" }
    }
}

/// `ShuffleAndRepeatDatasetV2`: A dataset of the elements, several times, each in random order.
#[inline]
#[track_caller]
pub fn shuffle_and_repeat_dataset_v2(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    count: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shuffle_and_repeat_dataset_v2_with(
        input_dataset,
        buffer_size,
        seed,
        seed2,
        count,
        seed_generator,
        output_types,
        output_shapes,
        ShuffleAndRepeatDatasetV2Options::default(),
    )
}

/// [`shuffle_and_repeat_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn shuffle_and_repeat_dataset_v2_with(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    count: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShuffleAndRepeatDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShuffleAndRepeatDatasetV2")
        .input(input_dataset)
        .input(buffer_size)
        .input(seed)
        .input(seed2)
        .input(count)
        .input(seed_generator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reshuffle_each_iteration", options.reshuffle_each_iteration)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`shuffle_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShuffleDatasetOptions<'a> {
    /// `reshuffle_each_iteration`: bool, `true` by default.
    pub reshuffle_each_iteration: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShuffleDatasetOptions<'_> {
    fn default() -> Self {
        ShuffleDatasetOptions { reshuffle_each_iteration: true, metadata: "" }
    }
}

/// `ShuffleDataset`: A dataset of the elements in random order, drawn from a buffer.
#[inline]
#[track_caller]
pub fn shuffle_dataset(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shuffle_dataset_with(
        input_dataset,
        buffer_size,
        seed,
        seed2,
        output_types,
        output_shapes,
        ShuffleDatasetOptions::default(),
    )
}

/// [`shuffle_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn shuffle_dataset_with(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShuffleDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShuffleDataset")
        .input(input_dataset)
        .input(buffer_size)
        .input(seed)
        .input(seed2)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reshuffle_each_iteration", options.reshuffle_each_iteration)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`shuffle_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShuffleDatasetV2Options<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShuffleDatasetV2Options<'_> {
    fn default() -> Self {
        ShuffleDatasetV2Options { metadata: "" }
    }
}

/// `ShuffleDatasetV2`: A dataset of the elements in random order, drawn from a buffer.
#[inline]
#[track_caller]
pub fn shuffle_dataset_v2(
    input_dataset: &Output,
    buffer_size: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shuffle_dataset_v2_with(
        input_dataset,
        buffer_size,
        seed_generator,
        output_types,
        output_shapes,
        ShuffleDatasetV2Options::default(),
    )
}

/// [`shuffle_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn shuffle_dataset_v2_with(
    input_dataset: &Output,
    buffer_size: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShuffleDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShuffleDatasetV2")
        .input(input_dataset)
        .input(buffer_size)
        .input(seed_generator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`shuffle_dataset_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShuffleDatasetV3Options<'a> {
    /// `reshuffle_each_iteration`: bool, `true` by default.
    pub reshuffle_each_iteration: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ShuffleDatasetV3Options<'_> {
    fn default() -> Self {
        ShuffleDatasetV3Options { reshuffle_each_iteration: true, metadata: "" }
    }
}

/// `ShuffleDatasetV3`: A dataset of the elements in random order, drawn from a buffer.
#[inline]
#[track_caller]
pub fn shuffle_dataset_v3(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    shuffle_dataset_v3_with(
        input_dataset,
        buffer_size,
        seed,
        seed2,
        seed_generator,
        output_types,
        output_shapes,
        ShuffleDatasetV3Options::default(),
    )
}

/// [`shuffle_dataset_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn shuffle_dataset_v3_with(
    input_dataset: &Output,
    buffer_size: &Output,
    seed: &Output,
    seed2: &Output,
    seed_generator: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ShuffleDatasetV3Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("ShuffleDatasetV3")
        .input(input_dataset)
        .input(buffer_size)
        .input(seed)
        .input(seed2)
        .input(seed_generator)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reshuffle_each_iteration", options.reshuffle_each_iteration)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`skip_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SkipDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for SkipDatasetOptions<'_> {
    fn default() -> Self {
        SkipDatasetOptions { metadata: "" }
    }
}

/// `SkipDataset`: A dataset of what comes behind the first `count` elements.
#[inline]
#[track_caller]
pub fn skip_dataset(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    skip_dataset_with(
        input_dataset,
        count,
        output_types,
        output_shapes,
        SkipDatasetOptions::default(),
    )
}

/// [`skip_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn skip_dataset_with(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: SkipDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("SkipDataset")
        .input(input_dataset)
        .input(count)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `SleepDataset`: The same dataset, whose elements come late.
#[inline]
#[track_caller]
pub fn sleep_dataset(
    input_dataset: &Output,
    sleep_microseconds: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("SleepDataset")
        .input(input_dataset)
        .input(sleep_microseconds)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`sliding_window_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SlidingWindowDatasetOptions {
    /// `drop_remainder`: bool, `true` by default.
    pub drop_remainder: bool,
}

impl Default for SlidingWindowDatasetOptions {
    fn default() -> Self {
        SlidingWindowDatasetOptions { drop_remainder: true }
    }
}

/// `SlidingWindowDataset`: A dataset of windows of elements, each a batch.
#[inline]
#[track_caller]
pub fn sliding_window_dataset(
    input_dataset: &Output,
    window_size: &Output,
    window_shift: &Output,
    window_stride: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    sliding_window_dataset_with(
        input_dataset,
        window_size,
        window_shift,
        window_stride,
        output_types,
        output_shapes,
        SlidingWindowDatasetOptions::default(),
    )
}

/// [`sliding_window_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn sliding_window_dataset_with(
    input_dataset: &Output,
    window_size: &Output,
    window_shift: &Output,
    window_stride: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: SlidingWindowDatasetOptions,
) -> Output {
    input_dataset
        .graph()
        .op("SlidingWindowDataset")
        .input(input_dataset)
        .input(window_size)
        .input(window_shift)
        .input(window_stride)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("drop_remainder", options.drop_remainder)
        .output()
}

/// The attributes of [`snapshot_chunk_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SnapshotChunkDatasetOptions<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
}

impl Default for SnapshotChunkDatasetOptions<'_> {
    fn default() -> Self {
        SnapshotChunkDatasetOptions { compression: "" }
    }
}

/// `SnapshotChunkDataset`: The elements of one file of a snapshot.
#[inline]
#[track_caller]
pub fn snapshot_chunk_dataset(
    chunk_file: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    snapshot_chunk_dataset_with(
        chunk_file,
        output_types,
        output_shapes,
        SnapshotChunkDatasetOptions::default(),
    )
}

/// [`snapshot_chunk_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn snapshot_chunk_dataset_with(
    chunk_file: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: SnapshotChunkDatasetOptions<'_>,
) -> Output {
    chunk_file
        .graph()
        .op("SnapshotChunkDataset")
        .input(chunk_file)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("compression", options.compression)
        .output()
}

/// The attributes of [`snapshot_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SnapshotDatasetOptions<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
    /// `reader_path_prefix`: string, empty by default.
    pub reader_path_prefix: &'a str,
    /// `writer_path_prefix`: string, empty by default.
    pub writer_path_prefix: &'a str,
    /// `shard_size_bytes`: int, `10737418240` by default.
    pub shard_size_bytes: i64,
    /// `pending_snapshot_expiry_seconds`: int, `86400` by default.
    pub pending_snapshot_expiry_seconds: i64,
    /// `num_reader_threads`: int, `1` by default.
    pub num_reader_threads: i64,
    /// `reader_buffer_size`: int, `1` by default.
    pub reader_buffer_size: i64,
    /// `num_writer_threads`: int, `1` by default.
    pub num_writer_threads: i64,
    /// `writer_buffer_size`: int, `1` by default.
    pub writer_buffer_size: i64,
    /// `shuffle_on_read`: bool, `false` by default.
    pub shuffle_on_read: bool,
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `mode`: string, `"auto"` by default.
    pub mode: &'a str,
    /// `snapshot_name`: string, empty by default.
    pub snapshot_name: &'a str,
}

impl Default for SnapshotDatasetOptions<'_> {
    fn default() -> Self {
        SnapshotDatasetOptions {
            compression: "",
            reader_path_prefix: "",
            writer_path_prefix: "",
            shard_size_bytes: 10737418240,
            pending_snapshot_expiry_seconds: 86400,
            num_reader_threads: 1,
            reader_buffer_size: 1,
            num_writer_threads: 1,
            writer_buffer_size: 1,
            shuffle_on_read: false,
            seed: 0,
            seed2: 0,
            mode: "auto",
            snapshot_name: "",
        }
    }
}

/// `SnapshotDataset`: A dataset that is computed once, written to files, and read from them
/// afterwards.
#[inline]
#[track_caller]
pub fn snapshot_dataset(
    input_dataset: &Output,
    path: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    snapshot_dataset_with(
        input_dataset,
        path,
        output_types,
        output_shapes,
        SnapshotDatasetOptions::default(),
    )
}

/// [`snapshot_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn snapshot_dataset_with(
    input_dataset: &Output,
    path: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: SnapshotDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("SnapshotDataset")
        .input(input_dataset)
        .input(path)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("compression", options.compression)
        .attr("reader_path_prefix", options.reader_path_prefix)
        .attr("writer_path_prefix", options.writer_path_prefix)
        .attr("shard_size_bytes", options.shard_size_bytes)
        .attr("pending_snapshot_expiry_seconds", options.pending_snapshot_expiry_seconds)
        .attr("num_reader_threads", options.num_reader_threads)
        .attr("reader_buffer_size", options.reader_buffer_size)
        .attr("num_writer_threads", options.num_writer_threads)
        .attr("writer_buffer_size", options.writer_buffer_size)
        .attr("shuffle_on_read", options.shuffle_on_read)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("mode", options.mode)
        .attr("snapshot_name", options.snapshot_name)
        .output()
}

/// The attributes of [`snapshot_dataset_reader_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SnapshotDatasetReaderOptions<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
}

impl Default for SnapshotDatasetReaderOptions<'_> {
    fn default() -> Self {
        SnapshotDatasetReaderOptions { compression: "" }
    }
}

/// `SnapshotDatasetReader`: The elements of one shard of a snapshot.
#[inline]
#[track_caller]
pub fn snapshot_dataset_reader(
    shard_dir: &Output,
    start_index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    version: i64,
) -> Output {
    snapshot_dataset_reader_with(
        shard_dir,
        start_index,
        output_types,
        output_shapes,
        version,
        SnapshotDatasetReaderOptions::default(),
    )
}

/// [`snapshot_dataset_reader()`] with other attributes.
#[inline]
#[track_caller]
pub fn snapshot_dataset_reader_with(
    shard_dir: &Output,
    start_index: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    version: i64,
    options: SnapshotDatasetReaderOptions<'_>,
) -> Output {
    shard_dir
        .graph()
        .op("SnapshotDatasetReader")
        .input(shard_dir)
        .input(start_index)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("version", version)
        .attr("compression", options.compression)
        .output()
}

/// The attributes of [`snapshot_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SnapshotDatasetV2Options<'a> {
    /// `compression`: string, empty by default.
    pub compression: &'a str,
    /// `reader_prefix`: string, empty by default.
    pub reader_prefix: &'a str,
    /// `writer_prefix`: string, empty by default.
    pub writer_prefix: &'a str,
    /// `hash_valid`: bool, `false` by default.
    pub hash_valid: bool,
    /// `hash`: int, `0` by default.
    pub hash: i64,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for SnapshotDatasetV2Options<'_> {
    fn default() -> Self {
        SnapshotDatasetV2Options {
            compression: "",
            reader_prefix: "",
            writer_prefix: "",
            hash_valid: false,
            hash: 0,
            metadata: "",
        }
    }
}

/// `SnapshotDatasetV2`: A dataset that is computed once, written to files, and read from them
/// afterwards.
#[inline]
#[track_caller]
pub fn snapshot_dataset_v2(
    input_dataset: &Output,
    path: &Output,
    reader_func_other_args: &[Output],
    shard_func_other_args: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    reader_func: &Function,
    shard_func: &Function,
) -> Output {
    snapshot_dataset_v2_with(
        input_dataset,
        path,
        reader_func_other_args,
        shard_func_other_args,
        output_types,
        output_shapes,
        reader_func,
        shard_func,
        SnapshotDatasetV2Options::default(),
    )
}

/// [`snapshot_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn snapshot_dataset_v2_with(
    input_dataset: &Output,
    path: &Output,
    reader_func_other_args: &[Output],
    shard_func_other_args: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    reader_func: &Function,
    shard_func: &Function,
    options: SnapshotDatasetV2Options<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("SnapshotDatasetV2")
        .input(input_dataset)
        .input(path)
        .list(reader_func_other_args)
        .list(shard_func_other_args)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("reader_func", reader_func.reference())
        .attr("shard_func", shard_func.reference())
        .attr("compression", options.compression)
        .attr("reader_prefix", options.reader_prefix)
        .attr("writer_prefix", options.writer_prefix)
        .attr("hash_valid", options.hash_valid)
        .attr("hash", options.hash)
        .attr("metadata", options.metadata)
        .output()
}

/// `SnapshotNestedDatasetReader`: A dataset of datasets.
#[inline]
#[track_caller]
pub fn snapshot_nested_dataset_reader(
    g: &Graph,
    inputs: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("SnapshotNestedDatasetReader")
        .list(inputs)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `SparseTensorSliceDataset`: A dataset of the rows of a sparse tensor.
#[inline]
#[track_caller]
pub fn sparse_tensor_slice_dataset(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
) -> Output {
    indices
        .graph()
        .op("SparseTensorSliceDataset")
        .input(indices)
        .input(values)
        .input(dense_shape)
        .output()
}

/// `SqlDataset`: A dataset of the rows of a query of a SQLite database.
#[inline]
#[track_caller]
pub fn sql_dataset(
    driver_name: &Output,
    data_source_name: &Output,
    query: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    driver_name
        .graph()
        .op("SqlDataset")
        .input(driver_name)
        .input(data_source_name)
        .input(query)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`stats_aggregator_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatsAggregatorHandleOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StatsAggregatorHandleOptions<'_> {
    fn default() -> Self {
        StatsAggregatorHandleOptions { container: "", shared_name: "" }
    }
}

/// `StatsAggregatorHandle`: A stats aggregator, which collects what datasets measure.
#[inline]
#[track_caller]
pub fn stats_aggregator_handle(g: &Graph) -> Output {
    stats_aggregator_handle_with(g, StatsAggregatorHandleOptions::default())
}

/// [`stats_aggregator_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn stats_aggregator_handle_with(
    g: &Graph,
    options: StatsAggregatorHandleOptions<'_>,
) -> Output {
    g.op("StatsAggregatorHandle")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`stats_aggregator_handle_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatsAggregatorHandleV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StatsAggregatorHandleV2Options<'_> {
    fn default() -> Self {
        StatsAggregatorHandleV2Options { container: "", shared_name: "" }
    }
}

/// `StatsAggregatorHandleV2`: A stats aggregator, which collects what datasets measure.
#[inline]
#[track_caller]
pub fn stats_aggregator_handle_v2(g: &Graph) -> Output {
    stats_aggregator_handle_v2_with(g, StatsAggregatorHandleV2Options::default())
}

/// [`stats_aggregator_handle_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stats_aggregator_handle_v2_with(
    g: &Graph,
    options: StatsAggregatorHandleV2Options<'_>,
) -> Output {
    g.op("StatsAggregatorHandleV2")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `StatsAggregatorSetSummaryWriter`: Has a stats aggregator write events with a summary writer.
#[inline]
#[track_caller]
pub fn stats_aggregator_set_summary_writer(
    stats_aggregator: &Output,
    summary: &Output,
) -> Operation {
    stats_aggregator
        .graph()
        .op("StatsAggregatorSetSummaryWriter")
        .input(stats_aggregator)
        .input(summary)
        .operation()
}

/// `StatsAggregatorSummary`: A summary of what a stats aggregator has collected.
#[inline]
#[track_caller]
pub fn stats_aggregator_summary(iterator: &Output) -> Output {
    iterator.graph().op("StatsAggregatorSummary").input(iterator).output()
}

/// The attributes of [`tf_record_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TFRecordDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TFRecordDatasetOptions<'_> {
    fn default() -> Self {
        TFRecordDatasetOptions { metadata: "" }
    }
}

/// `TFRecordDataset`: A dataset of the records of TFRecord files.
#[inline]
#[track_caller]
pub fn tf_record_dataset(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
) -> Output {
    tf_record_dataset_with(
        filenames,
        compression_type,
        buffer_size,
        TFRecordDatasetOptions::default(),
    )
}

/// [`tf_record_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn tf_record_dataset_with(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    options: TFRecordDatasetOptions<'_>,
) -> Output {
    filenames
        .graph()
        .op("TFRecordDataset")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`tf_record_dataset_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TFRecordDatasetV2Options<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TFRecordDatasetV2Options<'_> {
    fn default() -> Self {
        TFRecordDatasetV2Options { metadata: "" }
    }
}

/// `TFRecordDatasetV2`: A dataset of the records of TFRecord files.
#[inline]
#[track_caller]
pub fn tf_record_dataset_v2(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    byte_offsets: &Output,
) -> Output {
    tf_record_dataset_v2_with(
        filenames,
        compression_type,
        buffer_size,
        byte_offsets,
        TFRecordDatasetV2Options::default(),
    )
}

/// [`tf_record_dataset_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn tf_record_dataset_v2_with(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    byte_offsets: &Output,
    options: TFRecordDatasetV2Options<'_>,
) -> Output {
    filenames
        .graph()
        .op("TFRecordDatasetV2")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .input(byte_offsets)
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`take_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TakeDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TakeDatasetOptions<'_> {
    fn default() -> Self {
        TakeDatasetOptions { metadata: "" }
    }
}

/// `TakeDataset`: A dataset of the first `count` elements.
#[inline]
#[track_caller]
pub fn take_dataset(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    take_dataset_with(
        input_dataset,
        count,
        output_types,
        output_shapes,
        TakeDatasetOptions::default(),
    )
}

/// [`take_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn take_dataset_with(
    input_dataset: &Output,
    count: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: TakeDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("TakeDataset")
        .input(input_dataset)
        .input(count)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`take_while_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TakeWhileDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TakeWhileDatasetOptions<'_> {
    fn default() -> Self {
        TakeWhileDatasetOptions { metadata: "" }
    }
}

/// `TakeWhileDataset`: A dataset of the elements before the first for which `predicate` is false.
#[inline]
#[track_caller]
pub fn take_while_dataset(
    input_dataset: &Output,
    other_arguments: &[Output],
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    take_while_dataset_with(
        input_dataset,
        other_arguments,
        predicate,
        output_types,
        output_shapes,
        TakeWhileDatasetOptions::default(),
    )
}

/// [`take_while_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn take_while_dataset_with(
    input_dataset: &Output,
    other_arguments: &[Output],
    predicate: &Function,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: TakeWhileDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("TakeWhileDataset")
        .input(input_dataset)
        .list(other_arguments)
        .attr("predicate", predicate.reference())
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`tensor_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TensorDatasetOptions<'_> {
    fn default() -> Self {
        TensorDatasetOptions { metadata: "" }
    }
}

/// `TensorDataset`: A dataset of one element: the tensors as they are.
#[inline]
#[track_caller]
pub fn tensor_dataset(g: &Graph, components: &[Output], output_shapes: &[PartialShape]) -> Output {
    tensor_dataset_with(g, components, output_shapes, TensorDatasetOptions::default())
}

/// [`tensor_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_dataset_with(
    g: &Graph,
    components: &[Output],
    output_shapes: &[PartialShape],
    options: TensorDatasetOptions<'_>,
) -> Output {
    g.op("TensorDataset")
        .list(components)
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// The attributes of [`tensor_slice_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorSliceDatasetOptions<'a> {
    /// `is_files`: bool, `false` by default.
    pub is_files: bool,
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
    /// `replicate_on_split`: bool, `false` by default.
    pub replicate_on_split: bool,
}

impl Default for TensorSliceDatasetOptions<'_> {
    fn default() -> Self {
        TensorSliceDatasetOptions { is_files: false, metadata: "", replicate_on_split: false }
    }
}

/// `TensorSliceDataset`: A dataset of the rows of tensors.
#[inline]
#[track_caller]
pub fn tensor_slice_dataset(
    g: &Graph,
    components: &[Output],
    output_shapes: &[PartialShape],
) -> Output {
    tensor_slice_dataset_with(g, components, output_shapes, TensorSliceDatasetOptions::default())
}

/// [`tensor_slice_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_slice_dataset_with(
    g: &Graph,
    components: &[Output],
    output_shapes: &[PartialShape],
    options: TensorSliceDatasetOptions<'_>,
) -> Output {
    g.op("TensorSliceDataset")
        .list(components)
        .attr("output_shapes", list(output_shapes))
        .attr("is_files", options.is_files)
        .attr("metadata", options.metadata)
        .attr("replicate_on_split", options.replicate_on_split)
        .output()
}

/// The attributes of [`text_line_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TextLineDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for TextLineDatasetOptions<'_> {
    fn default() -> Self {
        TextLineDatasetOptions { metadata: "" }
    }
}

/// `TextLineDataset`: A dataset of the lines of text files.
#[inline]
#[track_caller]
pub fn text_line_dataset(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
) -> Output {
    text_line_dataset_with(
        filenames,
        compression_type,
        buffer_size,
        TextLineDatasetOptions::default(),
    )
}

/// [`text_line_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn text_line_dataset_with(
    filenames: &Output,
    compression_type: &Output,
    buffer_size: &Output,
    options: TextLineDatasetOptions<'_>,
) -> Output {
    filenames
        .graph()
        .op("TextLineDataset")
        .input(filenames)
        .input(compression_type)
        .input(buffer_size)
        .attr("metadata", options.metadata)
        .output()
}

/// `ThreadPoolDataset`: The same dataset; what it says of how to run it is left to the runtime.
#[inline]
#[track_caller]
pub fn thread_pool_dataset(
    input_dataset: &Output,
    thread_pool: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    input_dataset
        .graph()
        .op("ThreadPoolDataset")
        .input(input_dataset)
        .input(thread_pool)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// The attributes of [`thread_pool_handle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ThreadPoolHandleOptions<'a> {
    /// `max_intra_op_parallelism`: int, `1` by default.
    pub max_intra_op_parallelism: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for ThreadPoolHandleOptions<'_> {
    fn default() -> Self {
        ThreadPoolHandleOptions { max_intra_op_parallelism: 1, container: "", shared_name: "" }
    }
}

/// `ThreadPoolHandle`: A handle to threads for datasets, which use those of the runtime here.
#[inline]
#[track_caller]
pub fn thread_pool_handle(g: &Graph, num_threads: i64, display_name: &str) -> Output {
    thread_pool_handle_with(g, num_threads, display_name, ThreadPoolHandleOptions::default())
}

/// [`thread_pool_handle()`] with other attributes.
#[inline]
#[track_caller]
pub fn thread_pool_handle_with(
    g: &Graph,
    num_threads: i64,
    display_name: &str,
    options: ThreadPoolHandleOptions<'_>,
) -> Output {
    g.op("ThreadPoolHandle")
        .attr("num_threads", num_threads)
        .attr("display_name", display_name)
        .attr("max_intra_op_parallelism", options.max_intra_op_parallelism)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`unbatch_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnbatchDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for UnbatchDatasetOptions<'_> {
    fn default() -> Self {
        UnbatchDatasetOptions { metadata: "" }
    }
}

/// `UnbatchDataset`: A dataset of the rows of the elements.
#[inline]
#[track_caller]
pub fn unbatch_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    unbatch_dataset_with(
        input_dataset,
        output_types,
        output_shapes,
        UnbatchDatasetOptions::default(),
    )
}

/// [`unbatch_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn unbatch_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: UnbatchDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("UnbatchDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `UncompressElement`: The element that CompressElement was given.
#[inline]
#[track_caller]
pub fn uncompress_element(
    compressed: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    compressed
        .graph()
        .op("UncompressElement")
        .input(compressed)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// The attributes of [`unique_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniqueDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for UniqueDatasetOptions<'_> {
    fn default() -> Self {
        UniqueDatasetOptions { metadata: "" }
    }
}

/// `UniqueDataset`: A dataset of the elements without repetitions.
#[inline]
#[track_caller]
pub fn unique_dataset(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    unique_dataset_with(input_dataset, output_types, output_shapes, UniqueDatasetOptions::default())
}

/// [`unique_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn unique_dataset_with(
    input_dataset: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: UniqueDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("UniqueDataset")
        .input(input_dataset)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `UnwrapDatasetVariant`: The dataset that WrapDatasetVariant was given.
#[inline]
#[track_caller]
pub fn unwrap_dataset_variant(input_handle: &Output) -> Output {
    input_handle.graph().op("UnwrapDatasetVariant").input(input_handle).output()
}

/// The attributes of [`window_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WindowDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for WindowDatasetOptions<'_> {
    fn default() -> Self {
        WindowDatasetOptions { metadata: "" }
    }
}

/// `WindowDataset`: A dataset of windows of elements: for each component a dataset.
#[inline]
#[track_caller]
pub fn window_dataset(
    input_dataset: &Output,
    size: &Output,
    shift: &Output,
    stride: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    window_dataset_with(
        input_dataset,
        size,
        shift,
        stride,
        drop_remainder,
        output_types,
        output_shapes,
        WindowDatasetOptions::default(),
    )
}

/// [`window_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn window_dataset_with(
    input_dataset: &Output,
    size: &Output,
    shift: &Output,
    stride: &Output,
    drop_remainder: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: WindowDatasetOptions<'_>,
) -> Output {
    input_dataset
        .graph()
        .op("WindowDataset")
        .input(input_dataset)
        .input(size)
        .input(shift)
        .input(stride)
        .input(drop_remainder)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}

/// `WindowOp`: A dataset of the elements that are its inputs, one after the other.
#[inline]
#[track_caller]
pub fn window_op(
    g: &Graph,
    inputs: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    g.op("WindowOp")
        .list(inputs)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .output()
}

/// `WrapDatasetVariant`: A dataset as an opaque value.
#[inline]
#[track_caller]
pub fn wrap_dataset_variant(input_handle: &Output) -> Output {
    input_handle.graph().op("WrapDatasetVariant").input(input_handle).output()
}

/// The attributes of [`zip_dataset_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ZipDatasetOptions<'a> {
    /// `metadata`: string, empty by default.
    pub metadata: &'a str,
}

impl Default for ZipDatasetOptions<'_> {
    fn default() -> Self {
        ZipDatasetOptions { metadata: "" }
    }
}

/// `ZipDataset`: A dataset of elements of several datasets, side by side.
#[inline]
#[track_caller]
pub fn zip_dataset(
    g: &Graph,
    input_datasets: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Output {
    zip_dataset_with(g, input_datasets, output_types, output_shapes, ZipDatasetOptions::default())
}

/// [`zip_dataset()`] with other attributes.
#[inline]
#[track_caller]
pub fn zip_dataset_with(
    g: &Graph,
    input_datasets: &[Output],
    output_types: &[DType],
    output_shapes: &[PartialShape],
    options: ZipDatasetOptions<'_>,
) -> Output {
    g.op("ZipDataset")
        .list(input_datasets)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .attr("metadata", options.metadata)
        .output()
}
