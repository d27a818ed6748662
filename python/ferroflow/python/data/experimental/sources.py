"""`tf.data.experimental`: datasets of numbers, CSV files, and examples."""

import csv

import numpy as np

from ferroflow.python.data.ops import readers
from ferroflow.python.data.ops.dataset_ops import AUTOTUNE, DatasetV1, _dataset_op, _seeds
from ferroflow.python.data.util import structure
from ferroflow.python.framework import constant_op, dtypes, ops
from ferroflow.python.ops import array_ops


def Counter(start=0, step=1, dtype=dtypes.int64):  # noqa: N802 (the public name)
    """Counts without an end."""
    start = ops.convert_to_tensor(start, dtype=dtype, name="start")
    step = ops.convert_to_tensor(step, dtype=dtype, name="step")
    return DatasetV1.from_tensors(0).repeat(None).scan(start, lambda state, _: (state + step, state))


class RandomDataset(DatasetV1):
    """Random 64-bit numbers."""

    def __init__(self, seed=None):
        element = structure.TensorLeaf(dtypes.int64, [])
        super().__init__(_dataset_op("RandomDataset", list(_seeds(seed)), element), element)


def _default(value):
    """The default of a column: a value, or an empty tensor of a type for a column that must be there."""
    if isinstance(value, dtypes.DType):
        return constant_op.constant([], dtype=value)
    tensor = ops.convert_to_tensor(value)
    return array_ops.reshape(tensor, [1]) if tensor.get_shape().ndims == 0 else tensor


class CsvDataset(DatasetV1):
    """The rows of CSV files as tuples."""

    def __init__(self, filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",",
                 use_quote_delim=True, na_value="", select_cols=None, exclude_cols=None):
        defaults = [_default(d) for d in record_defaults]
        element = tuple(structure.TensorLeaf(d.dtype, []) for d in defaults)
        text = dtypes.string
        inputs = [
            ops.convert_to_tensor(filenames, dtype=text, name="filenames"),
            ops.convert_to_tensor(compression_type or "", dtype=text, name="compression_type"),
            ops.convert_to_tensor(4 * 1024 * 1024 if buffer_size is None else buffer_size, dtype=dtypes.int64, name="buffer_size"),
            ops.convert_to_tensor(header, dtype=dtypes.bool, name="header"),
            ops.convert_to_tensor(field_delim, dtype=text, name="field_delim"),
            ops.convert_to_tensor(use_quote_delim, dtype=dtypes.bool, name="use_quote_delim"),
            ops.convert_to_tensor(na_value, dtype=text, name="na_value"),
            ops.convert_to_tensor([] if select_cols is None else select_cols, dtype=dtypes.int64, name="select_cols"),
            defaults,
            ops.convert_to_tensor([] if exclude_cols is None else exclude_cols, dtype=dtypes.int64, name="exclude_cols"),
        ]
        super().__init__(_dataset_op("CSVDatasetV2", inputs, element, None, None, None), element)


def _rows(path, delimiter, quoted):
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    with open(path, newline="", encoding="utf-8") as f:
        yield from csv.reader(f, delimiter=delimiter, quoting=quoting)


def _type_of(values, na_value):
    """The first type that all values of a column have."""
    def all_are(parse):
        try:
            return all(parse(v) for v in values)
        except ValueError:
            return False
    values = [v for v in values if v not in ("", na_value)]
    if not values:
        return dtypes.string
    if all_are(lambda v: -2**31 <= int(v) < 2**31):
        return dtypes.int32
    if all_are(lambda v: -2**63 <= int(v) < 2**63):
        return dtypes.int64
    if all_are(lambda v: np.isfinite(np.float32(v)) or not np.isfinite(float(v))):
        return dtypes.float32
    if all_are(lambda v: [float(v)]):
        return dtypes.float64
    return dtypes.string


def _matching(file_pattern):
    from ferroflow.python.platform import gfile

    patterns = [file_pattern] if isinstance(file_pattern, (str, bytes)) else list(file_pattern)
    found = sorted(f for p in patterns for f in gfile.Glob(p))
    if not found:
        raise ValueError("No files match `file_pattern` %s." % (file_pattern,))
    return found


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None, select_columns=None,
                     field_delim=",", use_quote_delim=True, na_value="", header=True, num_epochs=None, shuffle=True,
                     shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None, num_parallel_reads=None,
                     sloppy=False, num_rows_for_inference=100, compression_type=None, ignore_errors=False):
    """Batches of CSV rows: dicts of columns, or pairs of a dict and a label. Types are inferred from the first rows."""
    names = _matching(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Expected `column_names` or `header` argument.")
        column_names = next(_rows(names[0], field_delim, use_quote_delim))
    column_names = list(column_names)
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    if select_columns is not None:
        places = sorted(c if isinstance(c, int) else column_names.index(c) for c in select_columns)
    else:
        places = list(range(len(column_names)))
    if column_defaults is None:
        first = []
        for path in names:
            for i, row in enumerate(_rows(path, field_delim, use_quote_delim)):
                if (header and i == 0) or (num_rows_for_inference is not None and len(first) >= num_rows_for_inference):
                    continue
                first.append(row)
        kinds = [_type_of([row[p] for row in first], na_value) for p in places]
        column_defaults = [constant_op.constant([b"" if k == dtypes.string else 0], dtype=k) for k in kinds]
    chosen = [column_names[p] for p in places]
    if label_name is not None and label_name not in chosen:
        raise ValueError("`label_name` provided must be one of the columns.")

    def read(filename):
        rows = CsvDataset(filename, record_defaults=column_defaults, select_cols=places if select_columns is not None else None,
                          field_delim=field_delim, use_quote_delim=use_quote_delim, na_value=na_value, header=header,
                          compression_type=compression_type)
        return rows._op("IgnoreErrorsDataset", [], {"log_warning": False}) if ignore_errors else rows

    def named(*columns):
        features = dict(zip(chosen, columns))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    dataset = DatasetV1.from_tensor_slices(names)
    if shuffle:
        dataset = dataset.shuffle(len(names), shuffle_seed)
    parallel = num_parallel_reads or 1
    dataset = dataset.interleave(read, cycle_length=parallel, num_parallel_calls=parallel if parallel > 1 else None,
                                 deterministic=not sloppy if parallel > 1 else None)
    return _batches(dataset, batch_size, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs, named, prefetch_buffer_size,
                    batch_first=True)


def _batches(dataset, batch_size, shuffle, buffer_size, seed, epochs, parse, prefetch, batch_first=False, drop=False, calls=None):
    if epochs != 1 and shuffle:
        dataset = dataset.shuffle(buffer_size, seed).repeat(epochs)
    elif shuffle:
        dataset = dataset.shuffle(buffer_size, seed)
    elif epochs != 1:
        dataset = dataset.repeat(epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop or (batch_first and epochs is None))
    dataset = dataset.map(parse, num_parallel_calls=calls)
    return dataset.prefetch(AUTOTUNE if prefetch is None else prefetch)


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    """Parses batches of serialized examples into dicts."""
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")

    def apply(dataset):
        from ferroflow.python.ops import parsing_ops

        return dataset.map(lambda rows: parsing_ops.parse_example(rows, features), num_parallel_calls=num_parallel_calls)
    return apply


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None,
                                  num_epochs=None, shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None,
                                  prefetch_buffer_size=None, reader_num_threads=None, parser_num_threads=None,
                                  sloppy_ordering=False, drop_final_batch=False):
    """Batches of examples from record files: dicts, or pairs of a dict and a label."""
    from ferroflow.python.ops import parsing_ops

    reader = readers.TFRecordDataset if reader is None else reader
    threads = reader_num_threads or 1
    files = DatasetV1.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    dataset = files.interleave(lambda name: reader(name, *(reader_args or [])), cycle_length=threads,
                               num_parallel_calls=threads if threads > 1 else None)
    if dataset.output_types == (dtypes.string, dtypes.string):
        dataset = dataset.map(lambda _, record: record)

    def parse(records):
        found = parsing_ops.parse_example(records, features)
        if label_key is None:
            return found
        if label_key not in found:
            raise ValueError("The `label_key` provided (%r) must be one of the `features` keys: %s." % (label_key, sorted(found)))
        label = found.pop(label_key)
        return found, label
    return _batches(dataset, batch_size, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs, parse, prefetch_buffer_size,
                    drop=drop_final_batch or num_epochs is None, calls=parser_num_threads or 2)


class TFRecordWriter:
    """Writes a dataset of strings to a record file, as an operation."""

    def __init__(self, filename, compression_type=None):
        self._filename = ops.convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression_type = ops.convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")

    def write(self, dataset):
        if structure.flat_types(dataset._element) != [dtypes.string]:
            raise TypeError("`dataset` must have elements of one `tf.string`")
        return ops.apply_op("DatasetToTFRecord", None, [dataset._variant_tensor, self._filename, self._compression_type])


def get_single_element(dataset):
    """The only element of a dataset."""
    attrs = {"output_types": structure.flat_types(dataset._element), "output_shapes": structure.flat_shapes(dataset._element)}
    outputs = ops.apply_op("DatasetToSingleElement", None, [dataset._variant_tensor], attrs).outputs
    return structure.from_tensors(dataset._element, outputs)


def from_list(elements, name=None):
    """A dataset of the elements of a list."""
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    parts = [DatasetV1.from_tensors(e, name=name) for e in elements]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.concatenate(part)
    return whole


def get_structure(dataset_or_iterator):
    return dataset_or_iterator.element_spec


def to_variant(dataset):
    return dataset._variant_tensor


def from_variant(variant, structure_spec=None, **kwargs):
    return DatasetV1(variant, structure.of_specs(kwargs.pop("structure", structure_spec)))
