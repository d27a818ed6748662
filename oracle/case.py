"""A case: a small graph around one op, the values fed to it, and the outputs to fetch.

A recipe (see recipes/) gets a `Case`, takes random values of the selected dtypes from it, and calls the op. All random
choices follow from one seed, so that a case can be made again from its name.
"""

import zlib

import numpy as np
from tensorflow.core.framework import graph_pb2, tensor_pb2
from tensorflow.python.framework import dtypes, op_def_registry

STRING = "string"
FLOATS = ["bfloat16", "half", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
REAL = FLOATS + INTS
NUMBERS = REAL + COMPLEX
EVERY = NUMBERS + ["bool", STRING]

# The name of each dtype, and its number in the protocol.
NUMBER_OF = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8,
    "int64": 9, "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16,
    "uint16": 17, "complex128": 18, "half": 19, "resource": 20, "variant": 21, "uint32": 22, "uint64": 23,
}
NAME_OF = {number: name for name, number in NUMBER_OF.items()}
NUMPY = {name: dtypes.as_dtype(number).as_numpy_dtype for name, number in NUMBER_OF.items()
         if name not in ("resource", "variant")}
QUANTIZED = ("qint8", "quint8", "qint32", "qint16", "quint16")
RAW = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32, "qint16": np.int16, "quint16": np.uint16}
OF_NUMPY = {np.dtype(t): name for name, t in NUMPY.items() if name not in QUANTIZED and name != STRING}

# Stands for the folder of a case's files. The runner replaces it by an empty folder.
FOLDER = "$ORACLE"
WORDS = ["", "a", "b", "ab", "abc", "Hello", "hello world", "  padded ", "1", "-2.5", "x,y;z", "naïve", "日本語", "Ünï", "😀 ok",
         "tab\tnew\nline", "a.b.c", "AAA", "zz" * 20, "ß", "0x1F", "nan", "1e5", " 7"]


def signature(op):
    return op_def_registry.get(op)


def dtype_of(array):
    if array.dtype.kind in "OSU":
        return STRING
    return OF_NUMPY[array.dtype]


def array(values, dtype):
    """`values` as an array of `dtype`, wrapping integers that do not fit."""
    if dtype == STRING:
        a = np.asarray(values, dtype=object)
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in a.reshape(-1)]
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return out.reshape(a.shape)
    with np.errstate(all="ignore"):
        a = np.asarray(values)
        if a.dtype.kind == "c" and dtype not in COMPLEX:
            a = a.real
        return np.ascontiguousarray(a.astype(NUMPY[dtype])).reshape(a.shape)


def tensor_proto(a, dtype=None):
    dtype = dtype or dtype_of(a)
    t = tensor_pb2.TensorProto(dtype=NUMBER_OF[dtype])
    for d in a.shape:
        t.tensor_shape.dim.add().size = d
    if dtype == STRING:
        t.string_val.extend(a.reshape(-1).tolist())
    else:
        t.tensor_content = np.ascontiguousarray(a).tobytes()
    return t


class Ref:
    """An output of a node of the case's graph."""

    def __init__(self, node, index, dtype):
        self.node, self.index, self.dtype = node, index, dtype

    @property
    def name(self):
        return f"{self.node}:{self.index}" if self.index else self.node


class Shape:
    """The value of an attribute of type shape; None is unknown."""

    def __init__(self, dims):
        self.dims = dims


class Func:
    """The value of an attribute of type func."""

    def __init__(self, name):
        self.name = name


class NotApplicable(Exception):
    """The recipe has no call for this choice of dtypes."""


class Case:
    def __init__(self, op, types, seed, index):
        self.op, self.types, self.index = op, dict(types), index
        self.rng = np.random.RandomState(zlib.crc32(f"{seed}/{op}/{sorted(types.items())}/{index}".encode()))
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = 1482
        self.feeds = {}
        self.fetches, self.targets = [], []
        self.stateful = False
        self.mode = "value"
        self.tolerance = 1.0
        self.may_mutate = True
        self.after = []
        # Multiplies sizes for which a recipe has small bounds of its own.
        self.scale = 1
        self.names = set()
        self.style = self.rng.choice(["small", "small", "small", "whole", "wide", "special"])

    # Choices.

    def chance(self, p):
        return bool(self.rng.rand() < p)

    def pick(self, options):
        return options[self.rng.randint(len(options))]

    def int(self, low, high):
        """An integer from low to high, both included."""
        return int(self.rng.randint(low, high + 1))

    def ints(self, low, high, n):
        return [self.int(low, high) for _ in range(n)]

    def dtype(self, attr):
        return self.types[attr]

    # Shapes.

    def dim(self):
        r = self.rng.rand()
        if r < 0.05:
            return 0
        if r < 0.10:
            return self.int(9, 35)
        return self.int(1, 5)

    def shape(self, low=0, high=4, empty=True):
        rank = self.int(low, high)
        dims = [self.dim() for _ in range(rank)]
        if not empty:
            dims = [max(d, 1) for d in dims]
        while np.prod(dims, dtype=np.int64) > 4000:
            dims[int(np.argmax(dims))] = 2
        return dims

    def broadcast(self, n, low=0, high=4):
        """n shapes that broadcast together."""
        whole = self.shape(low, high)
        out = []
        for _ in range(n):
            s = [1 if self.chance(0.2) else d for d in whole]
            if self.chance(0.25) and s:
                s = s[self.int(0, len(s)):]
            out.append(s)
        return out

    # Values.

    def values(self, dtype, shape, style=None):
        style = style or self.style
        rng, n = self.rng, int(np.prod(shape, dtype=np.int64))
        if dtype == STRING:
            return array([self.pick(WORDS) for _ in range(n)], STRING).reshape(shape)
        if dtype == "bool":
            return (rng.rand(n) < 0.5).reshape(shape)
        if dtype in COMPLEX:
            # Complex values are finite: the result for infinite parts depends on the C library.
            style = {"special": "whole", "wide": "small"}.get(style, style)
            part = "float64" if dtype == "complex128" else "float32"
            a = self.values(part, [n], style).astype(np.complex128)
            a = a + 1j * self.values(part, [n], style)
            return array(a, dtype).reshape(shape)
        if dtype in FLOATS:
            a = self._floats(n, style)
            if style == "special" and n:
                # Not the largest numbers: results near them are subnormal, and TensorFlow flushes
                # those to zero.
                limit = {"half": 6e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e200}[dtype]
                odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, limit, -limit, 1e-6, 1.0, -1.0]
                for i in rng.randint(0, n, size=max(1, n // 3)):
                    a[i] = self.pick(odd)
            return array(a, dtype).reshape(shape)
        info = np.iinfo(RAW.get(dtype) or NUMPY[dtype])
        if style in ("small", "whole", "nonzero", "unit"):
            a = rng.randint(0 if info.min == 0 else -5, 10, size=n).astype(np.int64)
        elif style in ("positive", "nonnegative"):
            a = rng.randint(1 if style == "positive" else 0, 10, size=n).astype(np.int64)
        else:
            a = [int(rng.randint(0, 1 << 30)) << 34 | int(rng.randint(0, 1 << 30)) << 4 | int(rng.randint(0, 16)) for _ in range(n)]
            a = np.array([info.min + v % (info.max - info.min + 1) for v in a], dtype=object)
            if style == "special":
                for i in (rng.randint(0, n, size=max(1, n // 3)) if n else []):
                    a[i] = self.pick([info.min, info.max, 0, 1, info.max - 1])
        if style == "nonzero":
            a = np.where(a == 0, 1, a)
        if dtype in QUANTIZED:
            return np.array(a, dtype=RAW[dtype]).view(NUMPY[dtype]).reshape(shape)
        return np.array(a).astype(NUMPY[dtype]).reshape(shape)

    def _floats(self, n, style):
        rng = self.rng
        if style == "whole":
            return rng.randint(-5, 6, size=n).astype(np.float64)
        if style == "wide":
            return rng.randn(n) * 10.0 ** rng.uniform(-3, 3, size=n)
        if style == "positive":
            return rng.uniform(0.1, 4.0, size=n)
        if style == "nonnegative":
            return np.maximum(rng.uniform(-0.5, 4.0, size=n), 0)
        if style == "unit":
            return rng.uniform(0.0, 1.0, size=n)
        a = rng.uniform(-3, 3, size=n)
        if style == "nonzero":
            a = np.where(np.abs(a) < 0.1, 0.5, a)
        return a

    def of(self, attr, shape, style=None):
        """Values of the dtype chosen for a type attribute."""
        return self.values(self.types[attr], shape, style)

    # Graph.

    def feed(self, value, dtype=None):
        """A placeholder that is fed `value`."""
        if dtype is None:
            dtype = dtype_of(np.asarray(value))
        if not (isinstance(value, np.ndarray) and dtype in QUANTIZED):
            value = array(value, dtype)
        name = f"in{len(self.feeds)}"
        node = self.graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = NUMBER_OF[dtype]
        node.attr["shape"].shape.unknown_rank = True
        self.feeds[name] = (value, dtype)
        return Ref(name, 0, dtype)

    def const(self, value, dtype=None):
        if dtype not in QUANTIZED:
            value = array(value, dtype or dtype_of(np.asarray(value)))
            dtype = dtype_of(value)
        node = self.graph.node.add(name=self._fresh("const"), op="Const")
        node.attr["dtype"].type = NUMBER_OF[dtype]
        node.attr["value"].tensor.CopyFrom(tensor_proto(value, dtype))
        return Ref(node.name, 0, dtype)

    def _fresh(self, stem):
        name, k = stem, 0
        while name in self.names:
            k += 1
            name = f"{stem}_{k}"
        self.names.add(name)
        return name

    def node(self, op, _after=(), _name=None, **given):
        """Adds a node and returns the list of its outputs. Arrays become placeholders."""
        sig = signature(op)
        if sig is None:
            raise NotApplicable(f"TensorFlow has no {op}")
        self.stateful |= sig.is_stateful
        if sig.HasField("deprecation"):
            # A removed op still works in graphs of older versions.
            self.graph.versions.producer = min(self.graph.versions.producer, sig.deprecation.version - 1)
        types, attrs, inputs = {}, {}, []
        for arg in sig.input_arg:
            if arg.name not in given:
                raise KeyError(f"{op} needs {arg.name}")
            value = given.pop(arg.name)
            many = bool(arg.number_attr or arg.type_list_attr)
            items = list(value) if many else [value]
            refs = []
            for item in items:
                if not isinstance(item, Ref):
                    want = None
                    if arg.type:
                        want = NAME_OF[arg.type]
                    elif arg.type_attr:
                        want = types.get(arg.type_attr) or given.get(arg.type_attr)
                        if want is None and op == self.op:
                            want = self.types.get(arg.type_attr)
                    a = item if isinstance(item, np.ndarray) else np.asarray(item)
                    item = self.feed(a, want)
                refs.append(item)
            inputs += [r.name for r in refs]
            if arg.number_attr:
                attrs[arg.number_attr] = len(refs)
            if arg.type_list_attr:
                types[arg.type_list_attr] = [r.dtype for r in refs]
            elif arg.type_attr and refs:
                types[arg.type_attr] = refs[0].dtype
        node = self.graph.node.add(name=self._fresh(_name or ("op" if op == self.op else op.lower())), op=op)
        node.input.extend(inputs)
        node.input.extend("^" + (d.node if isinstance(d, Ref) else d) for d in _after)
        for attr in sig.attr:
            name = attr.name
            if name in given:
                value = given.pop(name)
            elif name in types:
                value = types[name]
            elif name in attrs:
                value = attrs[name]
            elif op == self.op and name in self.types:
                value = self.types[name]
            elif op == self.op and attr.type == "bool" and attr.HasField("default_value"):
                value = self.chance(0.5)
            elif attr.HasField("default_value"):
                if attr.type in ("type", "list(type)", "int", "list(string)"):
                    attrs[name] = self._default(attr)
                continue
            else:
                raise KeyError(f"{op} needs attr {name}")
            set_attr(node.attr[name], attr.type, value)
            attrs[name] = value
            if attr.type in ("type", "list(type)"):
                types[name] = value
        if given:
            raise KeyError(f"{op} has no {sorted(given)}")
        return self._outputs(node.name, sig, attrs, types)

    @staticmethod
    def _default(attr):
        v = attr.default_value
        if attr.type == "type":
            return NAME_OF.get(v.type)
        if attr.type == "list(type)":
            return [NAME_OF[t] for t in v.list.type]
        if attr.type == "int":
            return v.i
        return list(v.list.s)

    def _outputs(self, name, sig, attrs, types):
        out = []
        for arg in sig.output_arg:
            if arg.type_list_attr:
                found = types.get(arg.type_list_attr, attrs.get(arg.type_list_attr, []))
            else:
                n = attrs[arg.number_attr] if arg.number_attr else 1
                t = NAME_OF[arg.type] if arg.type else (types.get(arg.type_attr) or attrs.get(arg.type_attr))
                found = [t] * n
            out += [Ref(name, len(out) + i, t) for i, t in enumerate(found)]
        if not sig.output_arg:
            out = [Ref(name, 0, None)]
        return out

    def call(self, **given):
        """Calls the op under test after everything in `self.after`, and fetches all outputs that can be fetched."""
        out = self.node(self.op, _after=self.after, **given)
        if not signature(self.op).output_arg:
            self.targets.append(out[0].node)
            return out
        self.fetch(*[r for r in out if r.dtype not in ("resource", "variant")])
        if not self.fetches:
            self.targets.append(out[0].node)
        return out

    def fetch(self, *refs):
        self.fetches += [f"{r.node}:{r.index}" for r in refs]

    def then(self, ref, op="Identity", **given):
        """Adds a node that runs after `ref`, and fetches it."""
        out = self.node(op, _after=[ref], **given)
        self.fetch(*out)
        return out

    def file(self, name, contents):
        """The name of a file with these contents, written when the case runs."""
        return self.path(name, after=self.node("WriteFile", filename=self.path_const(name), contents=self.const(contents, STRING))[0])

    def path_const(self, name):
        return self.feed(array(f"{FOLDER}/{name}", STRING), STRING)

    def path(self, name, after):
        return self.node("Identity", _after=[after], input=self.path_const(name))[0]

    # Invalid values.

    def mutate(self):
        """Makes one fed value invalid: another rank, another size, or indices slightly out of range."""
        if not self.feeds:
            return False
        name = self.pick(sorted(self.feeds))
        value, dtype = self.feeds[name]
        kind = self.pick(["rank up", "rank down", "shorter", "longer", "empty", "number"])
        if kind == "rank up":
            value = value[None]
        elif kind == "rank down":
            if value.ndim == 0 or value.shape[0] == 0:
                return False
            value = value[0]
            if dtype == STRING and not isinstance(value, np.ndarray):
                value = array(value, STRING)
        elif kind == "number":
            if dtype not in INTS or value.size == 0:
                return False
            value = value.copy()
            flat = value.reshape(-1)
            with np.errstate(all="ignore"):
                flat[self.int(0, flat.size - 1)] = np.array(self.pick([-7, -2, -1, 0, 1, 2, 3, 6, 11])).astype(value.dtype)
        else:
            if value.ndim == 0:
                return False
            axis = self.int(0, value.ndim - 1)
            if kind == "longer":
                value = np.concatenate([value, value], axis)
            else:
                value = np.take(value, range(0 if kind == "empty" else max(0, value.shape[axis] - 1)), axis)
        value = np.asarray(value)
        self.feeds[name] = (value if value.dtype.kind != "O" else array(value, STRING), dtype)
        return True


def set_attr(into, kind, value):
    if kind == "int":
        into.i = int(value)
    elif kind == "float":
        into.f = float(value)
    elif kind == "bool":
        into.b = bool(value)
    elif kind == "string":
        into.s = value if isinstance(value, bytes) else str(value).encode()
    elif kind == "type":
        into.type = NUMBER_OF[value]
    elif kind == "shape":
        set_shape(into.shape, value)
    elif kind == "tensor":
        into.tensor.CopyFrom(value)
    elif kind == "func":
        into.func.name = value.name
    elif kind == "list(int)":
        into.list.i.extend(int(v) for v in value)
        into.list.SetInParent()
    elif kind == "list(float)":
        into.list.f.extend(float(v) for v in value)
        into.list.SetInParent()
    elif kind == "list(bool)":
        into.list.b.extend(bool(v) for v in value)
        into.list.SetInParent()
    elif kind == "list(string)":
        into.list.s.extend(v if isinstance(v, bytes) else str(v).encode() for v in value)
        into.list.SetInParent()
    elif kind == "list(type)":
        into.list.type.extend(NUMBER_OF[v] for v in value)
        into.list.SetInParent()
    elif kind == "list(shape)":
        for v in value:
            set_shape(into.list.shape.add(), v)
        into.list.SetInParent()
    elif kind == "list(func)":
        for v in value:
            into.list.func.add().name = v.name
        into.list.SetInParent()
    else:
        raise KeyError(kind)


def set_shape(into, value):
    dims = value.dims if isinstance(value, Shape) else value
    if dims is None:
        into.unknown_rank = True
        return
    into.SetInParent()
    for d in dims:
        into.dim.add().size = -1 if d is None else int(d)
