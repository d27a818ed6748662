"""Lookup tables: from keys to values, from files, lists or tensors."""

import collections
import uuid

from ferroflow.python.framework import dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.ops import array_ops, control_flow_ops, math_ops
from ferroflow.python.training.saving import saveable_object


def tables_initializer(name="init_all_tables"):
    """An operation that initializes all tables of the graph."""
    initializers = ops.get_collection(ops.GraphKeys.TABLE_INITIALIZERS)
    if initializers:
        return control_flow_ops.group(*initializers, name=name)
    return control_flow_ops.no_op(name=name)


initialize_all_tables = tables_initializer


def _check_table_dtypes(table, key_dtype, value_dtype):
    if key_dtype.base_dtype != table.key_dtype:
        raise TypeError("Invalid key dtype, expected %s but got %s." % (table.key_dtype, key_dtype))
    if value_dtype.base_dtype != table.value_dtype:
        raise TypeError("Invalid value dtype, expected %s but got %s." % (table.value_dtype, value_dtype))


class LookupInterface:
    """What tables have in common."""

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self):
        return self._key_dtype

    @property
    def value_dtype(self):
        return self._value_dtype

    @property
    def name(self):
        return self._name

    @property
    def resource_handle(self):
        return self._resource_handle

    def __getitem__(self, keys):
        return self.lookup(keys)


def _values_of(keys):
    return keys.values if isinstance(keys, sparse_tensor.SparseTensor) else keys


def _like(keys, values):
    if isinstance(keys, sparse_tensor.SparseTensor):
        return sparse_tensor.SparseTensor(keys.indices, values, keys.dense_shape)
    return values


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills once."""

    def __init__(self, default_value, initializer):
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = ops.convert_to_tensor(default_value, dtype=self._value_dtype)
        self._default_value.get_shape().merge_with(tensor_shape.TensorShape([]))
        if isinstance(initializer, DatasetInitializer):
            raise NotImplementedError("tables from datasets are not supported")
        self._initializer = initializer
        self._resource_handle = self._create_resource()
        self._init_op = self._initializer.initialize(self)

    @property
    def default_value(self):
        return self._default_value

    @property
    def initializer(self):
        return self._init_op

    @property
    def init(self):
        return self._init_op

    def size(self, name=None):
        with ops.name_scope(name, "%s_Size" % self.name, [self.resource_handle]):
            return ops.apply_op("LookupTableSizeV2", None, [self.resource_handle]).outputs[0]

    def lookup(self, keys, name=None):
        """The values of keys; the default for a key that is not there."""
        key_tensor = _values_of(keys)
        if not hasattr(key_tensor, "dtype"):
            key_tensor = ops.convert_to_tensor(key_tensor, dtype=self._key_dtype)
        if key_tensor.dtype.base_dtype != self._key_dtype:
            raise TypeError("Dtype of argument `keys` must be %s, received: %s" % (self._key_dtype, key_tensor.dtype))
        with ops.name_scope(name, "%s_Lookup" % self.name, [self.resource_handle, key_tensor, self._default_value]):
            values = ops.apply_op("LookupTableFindV2", None, [self.resource_handle, key_tensor, self._default_value]).outputs[0]
        values.set_shape(key_tensor.get_shape())
        return _like(keys, values)


class StaticHashTable(InitializableLookupTableBase):
    """A hash table that does not change after its initialization."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        del experimental_is_anonymous
        self._shared_name = initializer._shared_name or "hash_table_%s" % (uuid.uuid4(),)
        self._name = name or "hash_table"
        self._table_name = None
        super().__init__(default_value, initializer)

    def _create_resource(self):
        attrs = {"shared_name": self._shared_name, "key_dtype": self._initializer.key_dtype, "value_dtype": self._initializer.value_dtype}
        handle = ops.apply_op("HashTableV2", self._name, [], attrs).outputs[0]
        self._table_name = handle.op.name.split("/")[-1]
        return handle

    @property
    def name(self):
        return self._table_name or self._name

    def export(self, name=None):
        """All keys and values."""
        with ops.name_scope(name, "%s_Export" % self.name, [self.resource_handle]):
            attrs = {"Tkeys": self._key_dtype, "Tvalues": self._value_dtype}
            keys, values = ops.apply_op("LookupTableExportV2", None, [self.resource_handle], attrs).outputs
        values.set_shape(keys.get_shape())
        return keys, values


class HashTable(StaticHashTable):
    pass


class TableInitializerBase:
    _shared_name = ""

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    key_dtype = property(lambda self: self._key_dtype)
    value_dtype = property(lambda self: self._value_dtype)


class DatasetInitializer(TableInitializerBase):
    """Refused by the tables: they cannot be filled from a dataset."""

    def __init__(self, dataset):
        del dataset
        raise NotImplementedError("tf.lookup tables from datasets are not supported; use KeyValueTensorInitializer")


class KeyValueTensorInitializer(TableInitializerBase):
    """Keys and values from two tensors."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        with ops.init_scope():
            self._keys = ops.convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = ops.convert_to_tensor(values, dtype=value_dtype, name="values")
        self._name = name if name is not None else "key_value_init"
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table):
        _check_table_dtypes(table, self._keys.dtype, self._values.dtype)
        with ops.name_scope(self._name, values=(table.resource_handle, self._keys, self._values)):
            init_op = ops.apply_op("LookupTableImportV2", None, [table.resource_handle, self._keys, self._values])
        ops.add_to_collection(ops.GraphKeys.TABLE_INITIALIZERS, init_op)
        return init_op


class TextFileIndex:
    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(TableInitializerBase):
    """Keys and values from the lines of a file."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None, value_index_offset=0):
        if not isinstance(filename, ops.Tensor) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        self._filename_arg = filename
        key_dtype, value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        for index, dtype, what in ((key_index, key_dtype, "key"), (value_index, value_dtype, "value")):
            if index < -2:
                raise ValueError("`%s_index` should be >= -2, received: %s." % (what, index))
            if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
                raise ValueError("`%s_dtype` must be int64 if `%s_index` is %s, received: %s" % (what, what, index, dtype))
            if index == TextFileIndex.WHOLE_LINE and (not dtype.is_integer and what == "key") and dtype != dtypes.string:
                raise ValueError("`key_dtype` should be either integer or string for `key_index` %s, received: %s" % (index, dtype))
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError("`vocab_size` should be > 0, received: %s" % vocab_size)
        self._key_index, self._value_index, self._vocab_size = key_index, value_index, vocab_size
        self._delimiter, self._name, self._offset = delimiter, name, value_index_offset
        super().__init__(key_dtype, value_dtype)

    @property
    def _shared_name(self):
        size = "%d" % self._vocab_size if self._vocab_size else "-1"
        parts = ["hash_table", getattr(self._filename_arg, "name", self._filename_arg), size, str(self._key_index), str(self._value_index)]
        if self._offset:
            parts.append(str(self._offset))
        return "_".join(str(p) for p in parts)

    def initialize(self, table):
        _check_table_dtypes(table, self.key_dtype, self.value_dtype)
        with ops.name_scope(self._name, "text_file_init", (table.resource_handle,)):
            filename = ops.convert_to_tensor(self._filename_arg, dtypes.string, name="asset_filepath")
            attrs = {
                "key_index": self._key_index,
                "value_index": self._value_index,
                "vocab_size": -1 if self._vocab_size is None else self._vocab_size,
                "delimiter": self._delimiter,
                "offset": self._offset,
            }
            init_op = ops.apply_op("InitializeTableFromTextFileV2", None, [table.resource_handle, filename], attrs)
        ops.add_to_collection(ops.GraphKeys.TABLE_INITIALIZERS, init_op)
        ops.add_to_collection(ops.GraphKeys.ASSET_FILEPATHS, filename)
        return init_op


class TextFileStringTableInitializer(TextFileInitializer):
    def __init__(self, filename, key_column_index=TextFileIndex.LINE_NUMBER, value_column_index=TextFileIndex.WHOLE_LINE, vocab_size=None, delimiter="\t", name="text_file_string_table_init"):
        super().__init__(filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name)


class TextFileIdTableInitializer(TextFileInitializer):
    def __init__(self, filename, key_column_index=TextFileIndex.WHOLE_LINE, value_column_index=TextFileIndex.LINE_NUMBER, vocab_size=None, delimiter="\t", name="text_file_id_table_init", key_dtype=dtypes.string):
        super().__init__(filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name)


HasherSpec = collections.namedtuple("HasherSpec", ["hasher", "key"])
FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash with a key of two numbers."""

    def __new__(cls, key):
        if len(key) != 2:
            raise ValueError("`key` must have size 2, received %s" % (key,))
        return super().__new__(cls, "stronghash", key)


class IdTableWithHashBuckets(LookupInterface):
    """A table for texts, with buckets for unknown texts."""

    def __init__(self, table, num_oov_buckets, hasher_spec=FastHashSpec, name=None, key_dtype=None):
        self._name = name.rstrip("/") if name else "string_to_index"
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError("`hasher_spec` must be of type HasherSpec, received %s" % type(hasher_spec))
        if table is not None:
            key_dtype = key_dtype or table.key_dtype
        key_dtype = dtypes.as_dtype(key_dtype or dtypes.string)
        supported = (dtypes.int64, dtypes.string)
        if key_dtype not in supported:
            raise TypeError("Invalid `key_dtype`, expected one of %s, received %s." % (supported, key_dtype))
        if table is None and num_oov_buckets <= 0:
            raise ValueError("`oov_buckets` must be > 0 if no `table` is supplied.")
        self._table, self._num_oov_buckets, self._hasher_spec = table, num_oov_buckets, hasher_spec
        super().__init__(key_dtype, dtypes.int64)

    @property
    def initializer(self):
        return self._table.initializer if self._table is not None else control_flow_ops.no_op()

    init = initializer

    @property
    def resource_handle(self):
        return self._table.resource_handle if self._table is not None else None

    def size(self, name=None):
        with ops.name_scope(name, "%s_Size" % self.name):
            size = self._table.size() if self._table is not None else ops.convert_to_tensor(0, dtype=dtypes.int64)
            return size + self._num_oov_buckets

    def _buckets(self, values):
        if self._hasher_spec.hasher == "fasthash":
            return ops.apply_op("StringToHashBucketFast", "hash_bucket", [values], {"num_buckets": self._num_oov_buckets}).outputs[0]
        attrs = {"num_buckets": self._num_oov_buckets, "key": list(self._hasher_spec.key)}
        return ops.apply_op("StringToHashBucketStrong", "hash_bucket", [values], attrs).outputs[0]

    def lookup(self, keys, name=None):
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError("Dtype of argument `keys` must be %s, received: %s" % (self._key_dtype, keys.dtype))
        values = _values_of(keys)
        if self._table is not None and self._table.key_dtype.base_dtype == dtypes.int64:
            values = math_ops.cast(values, dtypes.int64)
        if self._num_oov_buckets == 0:
            ids = self._table.lookup(values, name=name)
        else:
            with ops.name_scope(name, "%s_Lookup" % self.name):
                text = values
                if self._key_dtype != dtypes.string:
                    text = ops.apply_op("AsString", None, [values]).outputs[0]
                buckets = self._buckets(text)
                if self._table is not None:
                    ids = self._table.lookup(values)
                    buckets = math_ops.add(buckets, self._table.size())
                    found = math_ops.not_equal(ids, self._table.default_value)
                    ids = array_ops.where_v2(found, ids, buckets)
                else:
                    ids = buckets
        return _like(keys, ids)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """From texts to ids: those of the initializer, then buckets."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        if initializer is not None and initializer.value_dtype != dtypes.int64:
            raise TypeError("Invalid `value_dtype`, expected %s but got %s." % (dtypes.int64, initializer.value_dtype))
        table = HashTable(initializer, default_value=-1) if initializer is not None else None
        super().__init__(table, num_oov_buckets, FastHashSpec, name or "StaticVocabularyTable", lookup_key_dtype)


def index_table_from_file(
    vocabulary_file=None, num_oov_buckets=0, vocab_size=None, default_value=-1, hasher_spec=FastHashSpec, key_dtype=dtypes.string, name=None, key_column_index=TextFileIndex.WHOLE_LINE, value_column_index=TextFileIndex.LINE_NUMBER, delimiter="\t"
):
    """A table from the lines of a file to their numbers."""
    if not vocabulary_file:
        raise ValueError("`vocabulary_file` must be specified.")
    if num_oov_buckets < 0:
        raise ValueError("num_oov_buckets must be greater or equal than 0, got %d." % num_oov_buckets)
    if vocab_size is not None and vocab_size < 1:
        raise ValueError("`vocab_size` must be greater than 0, got %d" % vocab_size)
    key_dtype = dtypes.as_dtype(key_dtype)
    with ops.name_scope(name, "string_to_index"):
        table_key_dtype = dtypes.int64 if key_dtype.is_integer else key_dtype
        init = TextFileIdTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init", table_key_dtype
        )
        table = StaticHashTable(init, default_value)
        if num_oov_buckets:
            table = IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, None, key_dtype)
    return table


def index_table_from_tensor(vocabulary_list, num_oov_buckets=0, default_value=-1, hasher_spec=FastHashSpec, dtype=dtypes.string, name=None):
    """A table from the elements of a tensor to their positions."""
    if vocabulary_list is None:
        raise ValueError("`vocabulary_list` must be specified.")
    if num_oov_buckets < 0:
        raise ValueError("`num_oov_buckets` must be greater or equal than 0, got %d." % num_oov_buckets)
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer and dtype != dtypes.string:
        raise TypeError("Only integer and string keys are supported.")
    with ops.name_scope(name, "string_to_index"):
        keys = ops.convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != dtype.is_integer:
            raise ValueError("Invalid `dtype`: Expected %s, got %s." % ("integer" if dtype.is_integer else "non-integer", keys.dtype))
        if not dtype.is_integer and keys.dtype.base_dtype != dtype:
            raise ValueError("Invalid `dtype`: Expected %s, got %s." % (dtype, keys.dtype))
        num_elements = array_ops.size(keys)
        values = math_ops.cast(math_ops.range(num_elements), dtypes.int64)
        with ops.name_scope("table_init"):
            table_keys = math_ops.cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
        init = KeyValueTensorInitializer(table_keys, values, table_keys.dtype.base_dtype, dtypes.int64, name="table_init")
        table = StaticHashTable(init, default_value)
        if num_oov_buckets:
            table = IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, None, dtype)
    return table


def index_to_string_table_from_file(vocabulary_file, vocab_size=None, default_value="UNK", name=None, key_column_index=TextFileIndex.LINE_NUMBER, value_column_index=TextFileIndex.WHOLE_LINE, delimiter="\t"):
    """A table from numbers to the lines of a file."""
    if not vocabulary_file:
        raise ValueError("`vocabulary_file` must be specified.")
    with ops.name_scope(name, "index_to_string"):
        init = TextFileStringTableInitializer(vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init")
        return StaticHashTable(init, default_value)


def index_to_string_table_from_tensor(vocabulary_list, default_value="UNK", name=None):
    """A table from positions to the elements of a tensor."""
    if vocabulary_list is None:
        raise ValueError("`vocabulary_list` argument must be specified.")
    with ops.name_scope(name, "index_to_string"):
        values = ops.convert_to_tensor(vocabulary_list, dtypes.string)
        keys = math_ops.cast(math_ops.range(array_ops.size(values)), dtypes.int64)
        init = KeyValueTensorInitializer(keys, values, dtypes.int64, dtypes.string, name="table_init")
        return StaticHashTable(init, default_value)


class _TableSaveable(saveable_object.SaveableObject):
    """Keys and values of a table in a checkpoint."""

    def __init__(self, table, name):
        self._table = table
        keys, values = table.export()
        specs = [saveable_object.SaveSpec(keys, "", name + "-keys"), saveable_object.SaveSpec(values, "", name + "-values")]
        super().__init__(table, specs, name)

    def restore(self, restored_tensors, restored_shapes):
        del restored_shapes
        with ops.name_scope("%s_table_restore" % self.name), ops.colocate_with(self._table.resource_handle):
            return ops.apply_op("LookupTableImportV2", None, [self._table.resource_handle] + list(restored_tensors))


class MutableHashTable(LookupInterface):
    """A table that steps change."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True, experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype)
        self._default_value = ops.convert_to_tensor(default_value, dtype=value_dtype)
        self._value_shape = self._default_value.get_shape()
        self._name = name
        shared_name = None if not checkpoint else "table_%d" % ops.uid()
        use_node_name = shared_name is None
        attrs = {"shared_name": shared_name or "", "use_node_name_sharing": use_node_name, "key_dtype": self._key_dtype, "value_dtype": self._value_dtype}
        kind = "MutableHashTableV2"
        if self._value_shape.ndims:
            kind, attrs["value_shape"] = "MutableHashTableOfTensorsV2", self._value_shape
        self._resource_handle = ops.apply_op(kind, name, [], attrs).outputs[0]
        self._table_name = self._resource_handle.op.name.split("/")[-1]
        if checkpoint:
            ops.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))

    @property
    def name(self):
        return self._table_name

    def size(self, name=None):
        with ops.name_scope(name, "%s_Size" % self.name, [self.resource_handle]):
            with ops.colocate_with(self.resource_handle):
                return ops.apply_op("LookupTableSizeV2", None, [self.resource_handle]).outputs[0]

    def remove(self, keys, name=None):
        keys = ops.convert_to_tensor(keys, dtype=self._key_dtype)
        with ops.name_scope(name, "%s_lookup_table_remove" % self.name, [self.resource_handle, keys, self._default_value]):
            return ops.apply_op("LookupTableRemoveV2", None, [self.resource_handle, keys])

    def lookup(self, keys, dynamic_default_values=None, name=None):
        with ops.name_scope(name, "%s_lookup_table_find" % self.name, [self.resource_handle, keys, self._default_value]):
            keys = ops.convert_to_tensor(keys, dtype=self._key_dtype, name="keys")
            with ops.colocate_with(self.resource_handle):
                default = self._default_value if dynamic_default_values is None else dynamic_default_values
                return ops.apply_op("LookupTableFindV2", None, [self.resource_handle, keys, default]).outputs[0]

    def insert(self, keys, values, name=None):
        with ops.name_scope(name, "%s_lookup_table_insert" % self.name, [self.resource_handle, keys, values]):
            keys = ops.convert_to_tensor(keys, self._key_dtype, name="keys")
            values = ops.convert_to_tensor(values, self._value_dtype, name="values")
            with ops.colocate_with(self.resource_handle):
                return ops.apply_op("LookupTableInsertV2", None, [self.resource_handle, keys, values])

    def export(self, name=None):
        with ops.name_scope(name, "%s_lookup_table_export_values" % self.name, [self.resource_handle]):
            with ops.colocate_with(self.resource_handle):
                attrs = {"Tkeys": self._key_dtype, "Tvalues": self._value_dtype}
                return tuple(ops.apply_op("LookupTableExportV2", None, [self.resource_handle], attrs).outputs)


class DenseHashTable(MutableHashTable):
    """A table that steps change, in which two keys mean an empty and a deleted place."""

    def __init__(self, key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets=None,
                 name="MutableDenseHashTable", checkpoint=True, experimental_is_anonymous=False):
        LookupInterface.__init__(self, key_dtype, value_dtype)
        self._default_value = ops.convert_to_tensor(default_value, dtype=value_dtype, name="default_value")
        self._value_shape = self._default_value.get_shape()
        self._name = name
        shared_name = "table_%d" % ops.uid() if checkpoint else ""
        empty = ops.convert_to_tensor(empty_key, dtype=key_dtype, name="empty_key")
        deleted = ops.convert_to_tensor(deleted_key, dtype=key_dtype, name="deleted_key")
        attrs = {"shared_name": shared_name, "use_node_name_sharing": not checkpoint, "value_dtype": self._value_dtype,
                 "value_shape": self._value_shape}
        if initial_num_buckets is not None:
            attrs["initial_num_buckets"] = initial_num_buckets
        self._resource_handle = ops.apply_op("MutableDenseHashTableV2", name, [empty, deleted], attrs).outputs[0]
        self._table_name = self._resource_handle.op.name.split("/")[-1]
        if checkpoint:
            ops.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))
