"""Reads checkpoints without a graph."""

import glob
import os

import numpy as np

from ferroflow.core.protobuf import tensor_bundle_pb2
from ferroflow.core.util import saved_tensor_slice_pb2
from ferroflow.python.framework import dtypes, errors
from ferroflow.python.training import sorted_table
from ferroflow.python.util import compat


class CheckpointReader:
    """The tensors of a checkpoint, by name."""

    def __init__(self, prefix):
        self._prefix = compat.as_str(os.fspath(prefix))
        self._shapes, self._types = {}, {}
        try:
            if os.path.exists(self._prefix + ".index"):
                self._tensors = _Bundle(self._prefix, self._shapes, self._types)
            else:
                files = sorted(glob.glob(self._prefix)) or sorted(glob.glob(self._prefix + "-?????-of-?????"))
                if not files:
                    raise errors.NotFoundError(None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {self._prefix}")
                self._tensors = _SliceFiles(files, self._shapes, self._types)
        except sorted_table.DataLoss as e:
            raise errors.DataLossError(None, None, f"Unable to open table file {self._prefix}: {e}") from None

    def get_variable_to_shape_map(self):
        return {name: list(shape) for name, shape in self._shapes.items()}

    def get_variable_to_dtype_map(self):
        return dict(self._types)

    def has_tensor(self, tensor_str):
        return tensor_str in self._shapes

    def get_tensor(self, tensor_str):
        name = tensor_str.decode("utf-8") if isinstance(tensor_str, bytes) else tensor_str
        if name not in self._shapes:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
        value = self._tensors.get(name)
        return value if value.shape else value[()]

    def debug_string(self):
        lines = [
            f"{name} ({_type_name(self._types[name])}) [{','.join(map(str, shape))}]"
            for name, shape in sorted(self._shapes.items())
        ]
        return ("\n".join(lines) + "\n").encode("utf-8")


def _type_name(dtype):
    return {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}.get(dtype.name, "DT_" + dtype.name.upper())


def _extents(slice_proto):
    found = []
    for extent in slice_proto.extent:
        found.append((extent.start, extent.length if extent.HasField("length") else -1))
    return found


def _place(extents, shape):
    return tuple(slice(None) if n < 0 else slice(s, s + n) for (s, n), _ in zip(extents, shape))


class _Bundle:
    """A checkpoint of version 2: an index and data files."""

    def __init__(self, prefix, shapes, types):
        self._prefix = prefix
        table = sorted_table.read(prefix + ".index")
        header = tensor_bundle_pb2.BundleHeaderProto.FromString(table.pop(b"", b""))
        self._shards = header.num_shards
        self._entries = {}
        for key, value in table.items():
            entry = tensor_bundle_pb2.BundleEntryProto.FromString(value)
            self._entries[key] = entry
            if not key.startswith(b"\x00"):
                name = key.decode("utf-8")
                shapes[name] = [d.size for d in entry.shape.dim]
                types[name] = dtypes.as_dtype(entry.dtype)

    def get(self, name):
        return self._read(self._entries[name.encode("utf-8")], name)

    def _read(self, entry, name):
        shape = [d.size for d in entry.shape.dim]
        dtype = dtypes.as_dtype(entry.dtype)
        if entry.slices:
            value = np.empty(shape, dtype.as_numpy_dtype)
            for part in entry.slices:
                extents = _extents(part)
                key = sorted_table.slice_key(name, extents)
                if key not in self._entries:
                    raise errors.DataLossError(None, None, f"checkpoint {self._prefix}: a slice of {name} is missing")
                value[_place(extents, shape)] = self._read(self._entries[key], name)
            return value
        path = f"{self._prefix}.data-{entry.shard_id:05d}-of-{self._shards:05d}"
        try:
            with open(path, "rb") as f:
                f.seek(entry.offset)
                data = f.read(entry.size)
        except FileNotFoundError:
            raise errors.NotFoundError(None, None, f"{path}; No such file or directory") from None
        if len(data) != entry.size:
            raise errors.DataLossError(None, None, f"{path} is too short for {name}")
        if dtype == dtypes.string:
            return _texts(data, shape)
        return np.frombuffer(data, dtype.as_numpy_dtype).reshape(shape).copy()


def _texts(data, shape):
    """String elements: all lengths, a checksum, all bytes."""
    count = int(np.prod(shape, dtype=np.int64))
    sizes, at = [], 0
    for _ in range(count):
        size, at = sorted_table._varint(data, at)
        sizes.append(size)
    at += 4
    value = np.empty(count, object)
    for i, size in enumerate(sizes):
        value[i] = data[at : at + size]
        at += size
    return value.reshape(shape)


class _SliceFiles:
    """A checkpoint of version 1: tables that hold the data too."""

    def __init__(self, files, shapes, types):
        self._slices, self._shapes, self._types = {}, shapes, types
        self._tables = {}
        for path in files:
            table = sorted_table.read(path)
            self._tables[path] = table
            meta = saved_tensor_slice_pb2.SavedTensorSlices.FromString(table.get(b"", b"")).meta
            for tensor in meta.tensor:
                shapes[tensor.name] = [d.size for d in tensor.shape.dim]
                types[tensor.name] = dtypes.as_dtype(tensor.type)
                for part in tensor.slice:
                    self._slices.setdefault(tensor.name, []).append((path, _extents(part)))

    def get(self, name):
        shape, dtype = self._shapes[name], self._types[name]
        value = np.empty(shape, object if dtype == dtypes.string else dtype.as_numpy_dtype)
        for path, extents in self._slices[name]:
            data = self._tables[path].get(sorted_table.slice_key(name, extents))
            if data is None:
                raise errors.DataLossError(None, None, f"{path}: a slice of {name} is missing")
            proto = saved_tensor_slice_pb2.SavedTensorSlices.FromString(data).data.data
            place = _place(extents, shape)
            value[place] = _elements(proto, dtype).reshape(np.shape(value[place]))
        return value


_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "string": "string_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "float16": "half_val",
}


def _elements(proto, dtype):
    name = dtype.base_dtype.name
    values = list(getattr(proto, _FIELDS.get(name, "int_val")))
    if name == "string":
        found = np.empty(len(values), object)
        found[:] = values
        return found
    if name.startswith("complex"):
        return np.array([complex(a, b) for a, b in zip(values[::2], values[1::2])], dtype.as_numpy_dtype)
    if name == "float16":
        return np.array(values, np.uint16).view(np.float16)
    return np.array(values, dtype.as_numpy_dtype)


def NewCheckpointReader(filepattern):  # pylint: disable=invalid-name
    return CheckpointReader(filepattern)


