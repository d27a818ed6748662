//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// `AnonymousHashTable`: A table that is filled once.
#[inline]
#[track_caller]
pub fn anonymous_hash_table(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    g.op("AnonymousHashTable")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .output()
}

/// The attributes of [`anonymous_mutable_dense_hash_table_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AnonymousMutableDenseHashTableOptions {
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
    /// `initial_num_buckets`: int, `131072` by default.
    pub initial_num_buckets: i64,
    /// `max_load_factor`: float, `0.8` by default.
    pub max_load_factor: f32,
}

impl Default for AnonymousMutableDenseHashTableOptions {
    fn default() -> Self {
        AnonymousMutableDenseHashTableOptions {
            value_shape: PartialShape::scalar(),
            initial_num_buckets: 131072,
            max_load_factor: 0.8,
        }
    }
}

/// `AnonymousMutableDenseHashTable`: A table whose keys and values may be tensors.
#[inline]
#[track_caller]
pub fn anonymous_mutable_dense_hash_table(
    empty_key: &Output,
    deleted_key: &Output,
    value_dtype: DType,
) -> Output {
    anonymous_mutable_dense_hash_table_with(
        empty_key,
        deleted_key,
        value_dtype,
        AnonymousMutableDenseHashTableOptions::default(),
    )
}

/// [`anonymous_mutable_dense_hash_table()`] with other attributes.
#[inline]
#[track_caller]
pub fn anonymous_mutable_dense_hash_table_with(
    empty_key: &Output,
    deleted_key: &Output,
    value_dtype: DType,
    options: AnonymousMutableDenseHashTableOptions,
) -> Output {
    empty_key
        .graph()
        .op("AnonymousMutableDenseHashTable")
        .input(empty_key)
        .input(deleted_key)
        .attr("value_dtype", value_dtype)
        .attr("value_shape", options.value_shape)
        .attr("initial_num_buckets", options.initial_num_buckets)
        .attr("max_load_factor", options.max_load_factor)
        .output()
}

/// `AnonymousMutableHashTable`: A table that may change.
#[inline]
#[track_caller]
pub fn anonymous_mutable_hash_table(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    g.op("AnonymousMutableHashTable")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .output()
}

/// The attributes of [`anonymous_mutable_hash_table_of_tensors_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AnonymousMutableHashTableOfTensorsOptions {
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
}

impl Default for AnonymousMutableHashTableOfTensorsOptions {
    fn default() -> Self {
        AnonymousMutableHashTableOfTensorsOptions { value_shape: PartialShape::scalar() }
    }
}

/// `AnonymousMutableHashTableOfTensors`: A table whose values are vectors.
#[inline]
#[track_caller]
pub fn anonymous_mutable_hash_table_of_tensors(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
) -> Output {
    anonymous_mutable_hash_table_of_tensors_with(
        g,
        key_dtype,
        value_dtype,
        AnonymousMutableHashTableOfTensorsOptions::default(),
    )
}

/// [`anonymous_mutable_hash_table_of_tensors()`] with other attributes.
#[inline]
#[track_caller]
pub fn anonymous_mutable_hash_table_of_tensors_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: AnonymousMutableHashTableOfTensorsOptions,
) -> Output {
    g.op("AnonymousMutableHashTableOfTensors")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("value_shape", options.value_shape)
        .output()
}

/// The attributes of [`hash_table_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct HashTableOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
}

impl Default for HashTableOptions<'_> {
    fn default() -> Self {
        HashTableOptions { container: "", shared_name: "", use_node_name_sharing: false }
    }
}

/// `HashTable`: A table that is filled once.
#[inline]
#[track_caller]
pub fn hash_table(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    hash_table_with(g, key_dtype, value_dtype, HashTableOptions::default())
}

/// [`hash_table()`] with other attributes.
#[inline]
#[track_caller]
pub fn hash_table_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: HashTableOptions<'_>,
) -> Output {
    g.op("HashTable")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .output()
}

/// The attributes of [`hash_table_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct HashTableV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
}

impl Default for HashTableV2Options<'_> {
    fn default() -> Self {
        HashTableV2Options { container: "", shared_name: "", use_node_name_sharing: false }
    }
}

/// `HashTableV2`: A table that is filled once.
#[inline]
#[track_caller]
pub fn hash_table_v2(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    hash_table_v2_with(g, key_dtype, value_dtype, HashTableV2Options::default())
}

/// [`hash_table_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn hash_table_v2_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: HashTableV2Options<'_>,
) -> Output {
    g.op("HashTableV2")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .output()
}

/// `InitializeTable`: Fills a table, which can be done once.
#[inline]
#[track_caller]
pub fn initialize_table(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("InitializeTable")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// The attributes of [`initialize_table_from_text_file_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct InitializeTableFromTextFileOptions<'a> {
    /// `vocab_size`: int, `-1` by default.
    pub vocab_size: i64,
    /// `delimiter`: string, `"\t"` by default.
    pub delimiter: &'a str,
    /// `offset`: int, `0` by default.
    pub offset: i64,
}

impl Default for InitializeTableFromTextFileOptions<'_> {
    fn default() -> Self {
        InitializeTableFromTextFileOptions { vocab_size: -1, delimiter: "\t", offset: 0 }
    }
}

/// `InitializeTableFromTextFile`: Fills a table from a text file.
#[inline]
#[track_caller]
pub fn initialize_table_from_text_file(
    table_handle: &Output,
    filename: &Output,
    key_index: i64,
    value_index: i64,
) -> Operation {
    initialize_table_from_text_file_with(
        table_handle,
        filename,
        key_index,
        value_index,
        InitializeTableFromTextFileOptions::default(),
    )
}

/// [`initialize_table_from_text_file()`] with other attributes.
#[inline]
#[track_caller]
pub fn initialize_table_from_text_file_with(
    table_handle: &Output,
    filename: &Output,
    key_index: i64,
    value_index: i64,
    options: InitializeTableFromTextFileOptions<'_>,
) -> Operation {
    table_handle
        .graph()
        .op("InitializeTableFromTextFile")
        .input(table_handle)
        .input(filename)
        .attr("key_index", key_index)
        .attr("value_index", value_index)
        .attr("vocab_size", options.vocab_size)
        .attr("delimiter", options.delimiter)
        .attr("offset", options.offset)
        .operation()
}

/// The attributes of [`initialize_table_from_text_file_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct InitializeTableFromTextFileV2Options<'a> {
    /// `vocab_size`: int, `-1` by default.
    pub vocab_size: i64,
    /// `delimiter`: string, `"\t"` by default.
    pub delimiter: &'a str,
    /// `offset`: int, `0` by default.
    pub offset: i64,
}

impl Default for InitializeTableFromTextFileV2Options<'_> {
    fn default() -> Self {
        InitializeTableFromTextFileV2Options { vocab_size: -1, delimiter: "\t", offset: 0 }
    }
}

/// `InitializeTableFromTextFileV2`: Fills a table from a text file.
#[inline]
#[track_caller]
pub fn initialize_table_from_text_file_v2(
    table_handle: &Output,
    filename: &Output,
    key_index: i64,
    value_index: i64,
) -> Operation {
    initialize_table_from_text_file_v2_with(
        table_handle,
        filename,
        key_index,
        value_index,
        InitializeTableFromTextFileV2Options::default(),
    )
}

/// [`initialize_table_from_text_file_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn initialize_table_from_text_file_v2_with(
    table_handle: &Output,
    filename: &Output,
    key_index: i64,
    value_index: i64,
    options: InitializeTableFromTextFileV2Options<'_>,
) -> Operation {
    table_handle
        .graph()
        .op("InitializeTableFromTextFileV2")
        .input(table_handle)
        .input(filename)
        .attr("key_index", key_index)
        .attr("value_index", value_index)
        .attr("vocab_size", options.vocab_size)
        .attr("delimiter", options.delimiter)
        .attr("offset", options.offset)
        .operation()
}

/// `InitializeTableV2`: Fills a table, which can be done once.
#[inline]
#[track_caller]
pub fn initialize_table_v2(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("InitializeTableV2")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// `LookupTableExport`: All keys and their values.
///
/// Returns (`keys`, `values`).
#[inline]
#[track_caller]
pub fn lookup_table_export(
    table_handle: &Output,
    tkeys: DType,
    tvalues: DType,
) -> (Output, Output) {
    let [keys, values] = table_handle
        .graph()
        .op("LookupTableExport")
        .input(table_handle)
        .attr("Tkeys", tkeys)
        .attr("Tvalues", tvalues)
        .split();
    (keys, values)
}

/// `LookupTableExportV2`: All keys and their values.
///
/// Returns (`keys`, `values`).
#[inline]
#[track_caller]
pub fn lookup_table_export_v2(
    table_handle: &Output,
    tkeys: DType,
    tvalues: DType,
) -> (Output, Output) {
    let [keys, values] = table_handle
        .graph()
        .op("LookupTableExportV2")
        .input(table_handle)
        .attr("Tkeys", tkeys)
        .attr("Tvalues", tvalues)
        .split();
    (keys, values)
}

/// `LookupTableFind`: The values of keys, a default for those not there.
#[inline]
#[track_caller]
pub fn lookup_table_find(table_handle: &Output, keys: &Output, default_value: &Output) -> Output {
    table_handle
        .graph()
        .op("LookupTableFind")
        .input(table_handle)
        .input(keys)
        .input(default_value)
        .output()
}

/// `LookupTableFindV2`: The values of keys, a default for those not there.
#[inline]
#[track_caller]
pub fn lookup_table_find_v2(
    table_handle: &Output,
    keys: &Output,
    default_value: &Output,
) -> Output {
    table_handle
        .graph()
        .op("LookupTableFindV2")
        .input(table_handle)
        .input(keys)
        .input(default_value)
        .output()
}

/// `LookupTableImport`: Replaces all entries.
#[inline]
#[track_caller]
pub fn lookup_table_import(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("LookupTableImport")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// `LookupTableImportV2`: Replaces all entries.
#[inline]
#[track_caller]
pub fn lookup_table_import_v2(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("LookupTableImportV2")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// `LookupTableInsert`: Adds or replaces entries.
#[inline]
#[track_caller]
pub fn lookup_table_insert(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("LookupTableInsert")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// `LookupTableInsertV2`: Adds or replaces entries.
#[inline]
#[track_caller]
pub fn lookup_table_insert_v2(table_handle: &Output, keys: &Output, values: &Output) -> Operation {
    table_handle
        .graph()
        .op("LookupTableInsertV2")
        .input(table_handle)
        .input(keys)
        .input(values)
        .operation()
}

/// `LookupTableRemoveV2`: Removes entries.
#[inline]
#[track_caller]
pub fn lookup_table_remove_v2(table_handle: &Output, keys: &Output) -> Operation {
    table_handle.graph().op("LookupTableRemoveV2").input(table_handle).input(keys).operation()
}

/// `LookupTableSize`: How many entries a table has.
#[inline]
#[track_caller]
pub fn lookup_table_size(table_handle: &Output) -> Output {
    table_handle.graph().op("LookupTableSize").input(table_handle).output()
}

/// `LookupTableSizeV2`: How many entries a table has.
#[inline]
#[track_caller]
pub fn lookup_table_size_v2(table_handle: &Output) -> Output {
    table_handle.graph().op("LookupTableSizeV2").input(table_handle).output()
}

/// The attributes of [`mutable_dense_hash_table_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableDenseHashTableOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
    /// `initial_num_buckets`: int, `131072` by default.
    pub initial_num_buckets: i64,
    /// `max_load_factor`: float, `0.8` by default.
    pub max_load_factor: f32,
}

impl Default for MutableDenseHashTableOptions<'_> {
    fn default() -> Self {
        MutableDenseHashTableOptions {
            container: "",
            shared_name: "",
            use_node_name_sharing: false,
            value_shape: PartialShape::scalar(),
            initial_num_buckets: 131072,
            max_load_factor: 0.8,
        }
    }
}

/// `MutableDenseHashTable`: A table whose keys and values may be tensors.
#[inline]
#[track_caller]
pub fn mutable_dense_hash_table(empty_key: &Output, value_dtype: DType) -> Output {
    mutable_dense_hash_table_with(empty_key, value_dtype, MutableDenseHashTableOptions::default())
}

/// [`mutable_dense_hash_table()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_dense_hash_table_with(
    empty_key: &Output,
    value_dtype: DType,
    options: MutableDenseHashTableOptions<'_>,
) -> Output {
    empty_key
        .graph()
        .op("MutableDenseHashTable")
        .input(empty_key)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .attr("value_shape", options.value_shape)
        .attr("initial_num_buckets", options.initial_num_buckets)
        .attr("max_load_factor", options.max_load_factor)
        .output()
}

/// The attributes of [`mutable_dense_hash_table_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableDenseHashTableV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
    /// `initial_num_buckets`: int, `131072` by default.
    pub initial_num_buckets: i64,
    /// `max_load_factor`: float, `0.8` by default.
    pub max_load_factor: f32,
}

impl Default for MutableDenseHashTableV2Options<'_> {
    fn default() -> Self {
        MutableDenseHashTableV2Options {
            container: "",
            shared_name: "",
            use_node_name_sharing: false,
            value_shape: PartialShape::scalar(),
            initial_num_buckets: 131072,
            max_load_factor: 0.8,
        }
    }
}

/// `MutableDenseHashTableV2`: A table whose keys and values may be tensors.
#[inline]
#[track_caller]
pub fn mutable_dense_hash_table_v2(
    empty_key: &Output,
    deleted_key: &Output,
    value_dtype: DType,
) -> Output {
    mutable_dense_hash_table_v2_with(
        empty_key,
        deleted_key,
        value_dtype,
        MutableDenseHashTableV2Options::default(),
    )
}

/// [`mutable_dense_hash_table_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_dense_hash_table_v2_with(
    empty_key: &Output,
    deleted_key: &Output,
    value_dtype: DType,
    options: MutableDenseHashTableV2Options<'_>,
) -> Output {
    empty_key
        .graph()
        .op("MutableDenseHashTableV2")
        .input(empty_key)
        .input(deleted_key)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .attr("value_shape", options.value_shape)
        .attr("initial_num_buckets", options.initial_num_buckets)
        .attr("max_load_factor", options.max_load_factor)
        .output()
}

/// The attributes of [`mutable_hash_table_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableHashTableOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
}

impl Default for MutableHashTableOptions<'_> {
    fn default() -> Self {
        MutableHashTableOptions { container: "", shared_name: "", use_node_name_sharing: false }
    }
}

/// `MutableHashTable`: A table that may change.
#[inline]
#[track_caller]
pub fn mutable_hash_table(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    mutable_hash_table_with(g, key_dtype, value_dtype, MutableHashTableOptions::default())
}

/// [`mutable_hash_table()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_hash_table_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: MutableHashTableOptions<'_>,
) -> Output {
    g.op("MutableHashTable")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .output()
}

/// The attributes of [`mutable_hash_table_of_tensors_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableHashTableOfTensorsOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
}

impl Default for MutableHashTableOfTensorsOptions<'_> {
    fn default() -> Self {
        MutableHashTableOfTensorsOptions {
            container: "",
            shared_name: "",
            use_node_name_sharing: false,
            value_shape: PartialShape::scalar(),
        }
    }
}

/// `MutableHashTableOfTensors`: A table whose values are vectors.
#[inline]
#[track_caller]
pub fn mutable_hash_table_of_tensors(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    mutable_hash_table_of_tensors_with(
        g,
        key_dtype,
        value_dtype,
        MutableHashTableOfTensorsOptions::default(),
    )
}

/// [`mutable_hash_table_of_tensors()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_hash_table_of_tensors_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: MutableHashTableOfTensorsOptions<'_>,
) -> Output {
    g.op("MutableHashTableOfTensors")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .attr("value_shape", options.value_shape)
        .output()
}

/// The attributes of [`mutable_hash_table_of_tensors_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableHashTableOfTensorsV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
    /// `value_shape`: shape, a scalar by default.
    pub value_shape: PartialShape,
}

impl Default for MutableHashTableOfTensorsV2Options<'_> {
    fn default() -> Self {
        MutableHashTableOfTensorsV2Options {
            container: "",
            shared_name: "",
            use_node_name_sharing: false,
            value_shape: PartialShape::scalar(),
        }
    }
}

/// `MutableHashTableOfTensorsV2`: A table whose values are vectors.
#[inline]
#[track_caller]
pub fn mutable_hash_table_of_tensors_v2(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    mutable_hash_table_of_tensors_v2_with(
        g,
        key_dtype,
        value_dtype,
        MutableHashTableOfTensorsV2Options::default(),
    )
}

/// [`mutable_hash_table_of_tensors_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_hash_table_of_tensors_v2_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: MutableHashTableOfTensorsV2Options<'_>,
) -> Output {
    g.op("MutableHashTableOfTensorsV2")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .attr("value_shape", options.value_shape)
        .output()
}

/// The attributes of [`mutable_hash_table_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutableHashTableV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `use_node_name_sharing`: bool, `false` by default.
    pub use_node_name_sharing: bool,
}

impl Default for MutableHashTableV2Options<'_> {
    fn default() -> Self {
        MutableHashTableV2Options { container: "", shared_name: "", use_node_name_sharing: false }
    }
}

/// `MutableHashTableV2`: A table that may change.
#[inline]
#[track_caller]
pub fn mutable_hash_table_v2(g: &Graph, key_dtype: DType, value_dtype: DType) -> Output {
    mutable_hash_table_v2_with(g, key_dtype, value_dtype, MutableHashTableV2Options::default())
}

/// [`mutable_hash_table_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutable_hash_table_v2_with(
    g: &Graph,
    key_dtype: DType,
    value_dtype: DType,
    options: MutableHashTableV2Options<'_>,
) -> Output {
    g.op("MutableHashTableV2")
        .attr("key_dtype", key_dtype)
        .attr("value_dtype", value_dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("use_node_name_sharing", options.use_node_name_sharing)
        .output()
}
