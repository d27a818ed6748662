"""Tensor lists, maps, arrays, stacks, optionals, and tables."""

import numpy as np

from case import EVERY, STRING, array

from . import recipe


# Tensor lists.

def from_tensor(c, n=None, s=None, dtype=None):
    """A list with the rows of a random tensor, and its element shape."""
    dtype = dtype or c.types["element_dtype"]
    n = c.int(1, 4) if n is None else n
    s = c.shape(0, 2, empty=False) if s is None else s
    return c.node("TensorListFromTensor", tensor=c.feed(c.values(dtype, [n] + s), dtype), element_shape=c.const(s, "int32"))[0], n, s


def stack_of(c, lst, s, dtype):
    c.fetch(*c.node("TensorListStack", input_handle=lst, element_shape=c.const(s, "int32"), element_dtype=dtype))


def loose(c, s):
    return c.pick([s, [-1] * len(s), -1])


@recipe("EmptyTensorList")
def empty_list(c):
    s, t = c.shape(0, 2, empty=False), c.types["element_dtype"]
    lst = c.node(c.op, element_shape=loose(c, s), max_num_elements=-1, element_dtype=t)[0]
    for _ in range(c.int(1, 3)):
        lst = c.node("TensorListPushBack", input_handle=lst, tensor=c.feed(c.values(t, s), t))[0]
    stack_of(c, lst, s, t)


@recipe("TensorListConcat")
def list_concat(c):
    lst, n, s = from_tensor(c, s=[c.int(1, 3)] + c.shape(0, 1, empty=False))
    c.call(input_handle=lst, element_dtype=c.types["element_dtype"], element_shape=s)


@recipe("TensorListConcatV2")
def list_concat_v2(c):
    lst, n, s = from_tensor(c, s=[c.int(1, 3)] + c.shape(0, 1, empty=False))
    c.call(input_handle=lst, element_shape=loose(c, s), leading_dims=np.array([], dtype=np.int64), element_dtype=c.types["element_dtype"])


@recipe("TensorListConcatLists")
def list_concat_lists(c):
    t = c.types["element_dtype"]
    a, _, s = from_tensor(c)
    b, _, _ = from_tensor(c, s=s)
    stack_of(c, c.node(c.op, input_a=a, input_b=b, element_dtype=t)[0], s, t)


@recipe("TensorListElementShape")
def list_element_shape(c):
    lst, _, _ = from_tensor(c, dtype="float32")
    c.call(input_handle=lst)


@recipe("TensorListFromTensor")
def list_from_tensor(c):
    t = c.types["element_dtype"]
    s = c.shape(0, 2, empty=False)
    lst = c.node(c.op, tensor=c.feed(c.values(t, [c.int(1, 4)] + s), t), element_shape=loose(c, s))[0]
    stack_of(c, lst, s, t)


@recipe("TensorListGather")
def list_gather(c):
    lst, n, s = from_tensor(c)
    c.call(input_handle=lst, indices=c.ints(0, n - 1, c.int(0, 4)), element_shape=loose(c, s), element_dtype=c.types["element_dtype"])


@recipe("TensorListGetItem")
def list_get(c):
    lst, n, s = from_tensor(c)
    c.call(input_handle=lst, index=c.int(0, n - 1), element_shape=loose(c, s), element_dtype=c.types["element_dtype"])


@recipe("TensorListLength")
def list_length(c):
    lst, _, _ = from_tensor(c, dtype="float32")
    c.call(input_handle=lst)


@recipe("TensorListPopBack")
def list_pop(c):
    lst, n, s = from_tensor(c)
    rest, item = c.node(c.op, input_handle=lst, element_shape=loose(c, s), element_dtype=c.types["element_dtype"])
    c.fetch(item, *c.node("TensorListLength", input_handle=rest))


@recipe("TensorListPushBack")
def list_push(c):
    t = c.types["element_dtype"]
    lst, n, s = from_tensor(c)
    stack_of(c, c.node(c.op, input_handle=lst, tensor=c.feed(c.values(t, s), t))[0], s, t)


@recipe("TensorListPushBackBatch")
def list_push_batch(c):
    t = c.types["element_dtype"]
    n = c.int(1, 3)
    s = c.shape(0, 1, empty=False)
    lists = c.node("Pack", values=[from_tensor(c, n=2, s=s)[0] for _ in range(n)], axis=0)[0]
    out = c.node(c.op, input_handles=lists, tensor=c.feed(c.values(t, [n] + s), t))[0]
    for one in c.node("Unpack", value=out, num=n, axis=0):
        stack_of(c, one, s, t)


@recipe("TensorListReserve")
def list_reserve(c):
    t = c.types["element_dtype"]
    s, n = c.shape(0, 2, empty=False), c.int(1, 4)
    lst = c.node(c.op, element_shape=loose(c, s), num_elements=n, element_dtype=t)[0]
    lst = c.node("TensorListSetItem", input_handle=lst, index=c.const(c.int(0, n - 1), "int32"), item=c.feed(c.values(t, s), t))[0]
    stack_of(c, lst, s, t)


@recipe("TensorListResize")
def list_resize(c):
    lst, n, s = from_tensor(c, dtype="float32")
    out = c.node(c.op, input_handle=lst, size=c.int(0, 6))[0]
    c.fetch(*c.node("TensorListLength", input_handle=out))
    stack_of(c, out, s, "float32")


@recipe("TensorListScatter", "TensorListScatterV2")
def list_scatter(c):
    t = c.types["element_dtype"]
    s, n = c.shape(0, 2, empty=False), c.int(1, 4)
    given = {"num_elements": c.pick([-1, n + 1])} if c.op.endswith("V2") else {}
    lst = c.node(c.op, tensor=c.feed(c.values(t, [n] + s), t), indices=c.rng.permutation(n), element_shape=loose(c, s), **given)[0]
    stack_of(c, lst, s, t)


@recipe("TensorListScatterIntoExistingList")
def list_scatter_into(c):
    t = c.types["element_dtype"]
    lst, n, s = from_tensor(c)
    k = c.int(0, n)
    out = c.node(c.op, input_handle=lst, tensor=c.feed(c.values(t, [k] + s), t), indices=c.rng.permutation(n)[:k])[0]
    stack_of(c, out, s, t)


@recipe("TensorListSetItem")
def list_set(c):
    t = c.types["element_dtype"]
    lst, n, s = from_tensor(c)
    grow = c.chance(0.5)
    out = c.node(c.op, input_handle=lst, index=c.int(0, n - 1 + grow), item=c.feed(c.values(t, s), t), resize_if_index_out_of_bounds=grow)[0]
    stack_of(c, out, s, t)


@recipe("TensorListSplit")
def list_split(c):
    t = c.types["element_dtype"]
    rest = c.shape(0, 1, empty=False)
    k, n = c.int(1, 2), c.int(1, 3)
    lst = c.node(c.op, tensor=c.feed(c.values(t, [k * n] + rest), t), element_shape=loose(c, [k] + rest), lengths=[k] * n)[0]
    stack_of(c, lst, [k] + rest, t)


@recipe("TensorListStack")
def list_stack(c):
    lst, n, s = from_tensor(c)
    c.call(input_handle=lst, element_shape=loose(c, s), element_dtype=c.types["element_dtype"], num_elements=c.pick([-1, n]))


# Tensor maps.

def filled_map(c, key_type, value_type):
    keys = list(dict.fromkeys(np.asarray(c.values(key_type, [3], "whole")).tolist()))
    keys = array(keys, key_type)
    m = c.node("EmptyTensorMap")[0]
    for k in keys:
        m = c.node("TensorMapInsert", input_handle=m, key=c.feed(array(k, key_type), key_type), value=c.feed(c.values(value_type, [2]), value_type))[0]
    return m, keys


@recipe("EmptyTensorMap", "TensorMapSize")
def map_size(c):
    m = c.node("EmptyTensorMap")[0] if c.op == "EmptyTensorMap" else filled_map(c, "int32", "float32")[0]
    c.fetch(*c.node("TensorMapSize", input_handle=m))


@recipe("TensorMapInsert", "TensorMapErase", "TensorMapHasKey", "TensorMapLookup", hold={"key_dtype": ["int32", "int64", "string", "float32"]})
def map_key(c):
    kt = c.types["key_dtype"]
    vt = c.types.get("value_dtype", "float32")
    m, keys = filled_map(c, kt, vt)
    key = c.feed(array(keys[c.int(0, len(keys) - 1)], kt), kt)
    if c.op in ("TensorMapHasKey", "TensorMapLookup"):
        return c.call(input_handle=m, key=key, **({"value_dtype": vt} if c.op.endswith("Lookup") else {}))
    if c.op == "TensorMapErase":
        m = c.node(c.op, input_handle=m, key=key, value_dtype=vt)[0]
    else:
        m = c.node(c.op, input_handle=m, key=key, value=c.feed(c.values(vt, [2]), vt))[0]
    c.fetch(*c.node("TensorMapSize", input_handle=m), *c.node("TensorMapHasKey", input_handle=m, key=key))


@recipe("TensorMapStackKeys", hold={"key_dtype": ["int32", "int64", "float32"]})
def map_keys(c):
    # The order is that of a hash table, so use one key.
    kt = c.types["key_dtype"]
    m = c.node("EmptyTensorMap")[0]
    m = c.node("TensorMapInsert", input_handle=m, key=c.feed(c.values(kt, [], "whole"), kt), value=c.feed(c.values("float32", []), "float32"))[0]
    c.call(input_handle=m, key_dtype=kt)


# Optionals.

@recipe("OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone")
def optional(c):
    kinds = [c.pick(EVERY) for _ in range(c.int(1, 3))]
    values = [c.values(t, c.shape(0, 2)) for t in kinds]
    if c.op == "OptionalNone" or (c.op == "OptionalHasValue" and c.chance(0.5)) or (c.op == "OptionalGetValue" and c.chance(0.2)):
        o = c.node("OptionalNone")[0]
    else:
        o = c.node("OptionalFromValue", components=[c.feed(v, t) for v, t in zip(values, kinds)])[0]
    if c.op in ("OptionalFromValue", "OptionalGetValue"):
        c.fetch(*c.node("OptionalGetValue", optional=o, output_types=kinds, output_shapes=[list(v.shape) for v in values]))
    else:
        c.fetch(*c.node("OptionalHasValue", optional=o))


# Stacks.

@recipe("Stack", "StackPush", "StackPop", "StackClose", "StackV2", "StackPushV2", "StackPopV2", "StackCloseV2")
def stack(c):
    v2 = c.op.endswith("V2")
    t = c.types.get("elem_type") or c.types.get("T") or "float32"
    suffix = "V2" if v2 else ""
    handle = c.node("Stack" + suffix, elem_type=t, stack_name="s", **({"max_size": c.const(-1, "int32")} if v2 else {}))[0]
    last = None
    for _ in range(c.int(1, 3)):
        last = c.node("StackPush" + suffix, _after=[last] if last else [], handle=handle, elem=c.feed(c.values(t, c.shape(0, 2)), t), swap_memory=False)[0]
    popped = c.node("StackPop" + suffix, _after=[last], handle=handle, elem_type=t)[0]
    c.fetch(last, popped)
    if "Close" in c.op:
        c.targets.append(c.node("StackClose" + suffix, _after=[popped], handle=handle)[0].node)


# Tensor arrays.

class Array:
    """A tensor array of some version, and the last flow."""

    def __init__(self, c, version, dtype, size, **attrs):
        self.c, self.v, self.dtype = c, version, dtype
        suffix = {1: "", 2: "V2", 3: "V3"}[version]
        self.suffix = suffix
        out = c.node("TensorArray" + suffix, size=c.feed(size, "int32"), dtype=dtype, dynamic_size=attrs.pop("dynamic_size", False),
                     clear_after_read=False, **attrs)
        self.handle = out[0]
        self.flow = out[1] if version == 3 else c.const(0.0, "float32")

    def op(self, name, **given):
        return self.c.node(f"TensorArray{name}{self.suffix}", handle=self.handle, flow_in=self.flow, **given)

    def write(self, index, value):
        self.flow = self.op("Write", index=self.c.feed(index, "int32"), value=self.c.feed(value, self.dtype))[0]


def version_of(op):
    return {"2": 2, "3": 3}.get(op[-1], 1) if op[-2] == "V" else 1


@recipe(*[f"TensorArray{n}{v}" for v in ("", "V2", "V3") for n in ("", "Close", "Concat", "Gather", "Read", "Scatter", "Size", "Split", "Write")],
        "TensorArrayPack", "TensorArrayUnpack")
def tensor_array(c):
    t = c.types.get("dtype") or c.types.get("T") or "float32"
    n = c.int(1, 4)
    s = c.shape(0, 2, empty=False)
    name = c.op.removeprefix("TensorArray").removesuffix("V2").removesuffix("V3")
    if name in ("Concat", "Split"):
        s = [c.int(1, 3)] + s
    a = Array(c, version_of(c.op), t, n)
    if name == "Scatter":
        a.flow = a.op("Scatter", indices=c.feed(c.rng.permutation(n), "int32"), value=c.feed(c.values(t, [n] + s), t))[0]
    elif name == "Unpack":
        a.flow = a.op("Unpack", value=c.feed(c.values(t, [n] + s), t))[0]
    elif name == "Split":
        lengths = c.ints(1, 3, n)
        a.flow = a.op("Split", value=c.feed(c.values(t, [sum(lengths)] + s[1:]), t), lengths=c.feed(lengths, "int64"))[0]
    else:
        for i in range(n):
            a.write(i, c.values(t, s))
    if name == "Gather":
        c.fetch(*a.op("Gather", indices=c.feed(c.ints(0, n - 1, c.int(1, 4)), "int32"), dtype=t))
    elif name == "Concat" or name == "Split":
        c.fetch(*a.op("Concat", dtype=t))
    elif name == "Pack":
        c.fetch(*a.op("Pack", dtype=t))
    elif name == "Size":
        c.fetch(*a.op("Size"))
    elif name == "Close":
        done = c.node(f"TensorArrayClose{a.suffix}", _after=[a.flow], handle=a.handle)[0]
        c.targets.append(done.node)
    else:
        c.fetch(*a.op("Read", index=c.feed(c.int(0, n - 1), "int32"), dtype=t))


@recipe("TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape")
def tensor_array_grad(c):
    t = "float32"
    version = version_of(c.op) if c.op != "TensorArrayGradWithShape" else 3
    a = Array(c, version, t, 2)
    s = c.shape(0, 2, empty=False)
    for i in range(2):
        a.write(i, c.values(t, s))
    given = {"shape_to_prepend": c.feed([2], "int32")} if c.op.endswith("Shape") else {}
    out = c.node(c.op, handle=a.handle, flow_in=a.flow, source="gradients", **given)
    g = Array.__new__(Array)
    g.c, g.v, g.dtype, g.suffix, g.handle = c, a.v, t, a.suffix, out[0]
    g.flow = out[1] if version == 3 else a.flow
    shape = ([2] if given else []) + s
    g.write(0, c.values(t, shape))
    c.fetch(*g.op("Read", index=c.feed(0, "int32"), dtype=t))


# Tables.



def keys_of(c, t, n):
    if t == STRING:
        return array([f"k{i}" for i in c.rng.permutation(9)[:n]], STRING)
    return array(c.rng.permutation(20)[:n], t)


def table(c, op, kt, vt, shape=()):
    given = {}
    if "Dense" in op:
        given["empty_key"] = array("empty" if kt == STRING else 1000, kt)
        if op != "MutableDenseHashTable":
            given["deleted_key"] = array("deleted" if kt == STRING else 1001, kt)
        given["value_shape"] = list(shape)
        given["initial_num_buckets"] = 32
        given = {k: c.feed(v, kt) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    elif "OfTensors" in op:
        given["value_shape"] = list(shape)
    return c.node(op, key_dtype=kt, value_dtype=vt, **given)[0]


CREATE = """AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors HashTable HashTableV2
MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors MutableHashTableOfTensorsV2 MutableHashTableV2""".split()


def supported(c):
    from kernels import choices
    options = choices(c.op)
    kinds = [(o["key_dtype"][0], o["value_dtype"][0]) for o in options if "key_dtype" in o]
    return [k for k in kinds if k[0] == c.types["key_dtype"]] or kinds


def is_old(op):
    return op in ("HashTable", "MutableDenseHashTable", "MutableHashTable", "MutableHashTableOfTensors")


def fill(c, op, handle, kt, vt, shape=(), n=None):
    """Inserts keys and values. Returns them and the inserting node."""
    n = c.int(1, 4) if n is None else n
    keys, values = keys_of(c, kt, n), c.values(vt, [n, *shape], "whole")
    v2 = "" if is_old(op) else "V2"
    once = op in ("HashTable", "HashTableV2", "AnonymousHashTable")
    insert = ("InitializeTable" if once else "LookupTableInsert") + v2
    done = c.node(insert, table_handle=handle, keys=c.feed(keys, kt), values=c.feed(values, vt))[0]
    return keys, values, done


@recipe(*CREATE)
def table_create(c):
    kt, vt = c.pick(supported(c))
    shape = (2,) if "OfTensors" in c.op or ("Dense" in c.op and c.chance(0.3)) else ()
    handle = table(c, c.op, kt, vt, shape)
    keys, _, done = fill(c, c.op, handle, kt, vt, shape)
    v2 = "" if is_old(c.op) else "V2"
    found = c.node("LookupTableFind" + v2, _after=[done], table_handle=handle, keys=c.feed(np.concatenate([keys, keys_of(c, kt, 2)]), kt),
                   default_value=c.feed(c.values(vt, list(shape), "whole"), vt))[0]
    c.fetch(found, *c.node("LookupTableSize" + v2, _after=[done], table_handle=handle))


OLD = ["InitializeTable", "LookupTableExport", "LookupTableFind", "LookupTableImport", "LookupTableInsert", "LookupTableSize"]


@recipe(*OLD, *[f"{o}V2" for o in OLD], "LookupTableRemoveV2")
def table_op(c):
    v2 = c.op.endswith("V2")
    kt, vt = c.pick([("string", "int64"), ("int64", "float32"), ("int64", "int64"), ("int64", "string")])
    init = c.op.startswith("Initialize")
    op = ("HashTable" if init or (c.chance(0.3) and c.op.startswith(("LookupTableFind", "LookupTableSize"))) else "MutableHashTable") + ("V2" if v2 else "")
    handle = table(c, op, kt, vt)
    s = "V2" if v2 else ""
    name = c.op.removesuffix("V2")
    if name in ("LookupTableImport", "InitializeTable", "LookupTableInsert"):
        n = c.int(0, 4)
        keys, values = keys_of(c, kt, n), c.values(vt, [n], "whole")
        done = c.node(c.op, table_handle=handle, keys=c.feed(keys, kt), values=c.feed(values, vt))[0]
    else:
        keys, values, done = fill(c, op, handle, kt, vt, n=1 if name == "LookupTableExport" else None)
    if name == "LookupTableRemove":
        done = c.node(c.op, _after=[done], table_handle=handle, keys=c.feed(keys[:1], kt))[0]
    if name == "LookupTableExport":
        c.fetch(*c.node(c.op, _after=[done], table_handle=handle, Tkeys=kt, Tvalues=vt))
    elif name == "LookupTableSize":
        c.fetch(*c.node(c.op, _after=[done], table_handle=handle))
    else:
        c.fetch(*c.node("LookupTableFind" + s, _after=[done], table_handle=handle, keys=c.feed(np.concatenate([keys, keys_of(c, kt, 1)]), kt),
                        default_value=c.feed(c.values(vt, [], "whole"), vt)))


@recipe("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def table_from_file(c):
    v2 = "V2" if c.op.endswith("V2") else ""
    handle = c.node("HashTable" + v2, key_dtype="string", value_dtype="int64")[0]
    path = c.file("vocabulary.txt", b"".join(f"w{i}\t{i * 3}\n".encode() for i in range(5)))
    kind = c.pick([(-2, -1), (0, 1), (0, -1)])
    done = c.node(c.op, table_handle=handle, filename=path, key_index=kind[0], value_index=kind[1], vocab_size=c.pick([-1, 3, 5]))[0]
    keys = array(["w0", "w1", "w4", "none", "w1\t3"], STRING)
    c.fetch(*c.node("LookupTableFind" + v2, _after=[done], table_handle=handle, keys=keys, default_value=c.feed(-1, "int64")))
