"""Protocol buffer messages as Python objects, without the protobuf package.

`message_class("tensorflow.NodeDef")` makes a class when it is first asked for. Its objects behave
like those of protobuf: attributes, repeated fields, maps, `HasField`, `SerializeToString` and so on.
A message that was parsed keeps its bytes until a field is read, so passing one on costs nothing.
"""

import struct

from ferroflow.core import _descriptors

_INT_RANGES = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "sint32": (-(1 << 31), (1 << 31) - 1),
    "sfixed32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "sint64": (-(1 << 63), (1 << 63) - 1),
    "sfixed64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "fixed32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
    "fixed64": (0, (1 << 64) - 1),
}
_WIRE_TYPES = {"double": 1, "fixed64": 1, "sfixed64": 1, "float": 5, "fixed32": 5, "sfixed32": 5}
_FORMATS = {
    "double": "<d",
    "float": "<f",
    "fixed32": "<I",
    "fixed64": "<Q",
    "sfixed32": "<i",
    "sfixed64": "<q",
}


class Error(Exception):
    pass


class DecodeError(Error):
    """The bytes are not a message of this type."""


class EncodeError(Error):
    """The message cannot be written."""


class EnumTypeWrapper:
    """An enum: `Name(number)`, `Value(name)`, and its values as attributes."""

    def __init__(self, full_name):
        self.full_name = full_name
        self._by_name = {}
        for item in _descriptors.ENUMS[full_name].split(";"):
            name, number = item.split("=")
            self._by_name[name] = int(number)
        self._by_number = {}
        for name, number in self._by_name.items():
            self._by_number.setdefault(number, name)
        self.DESCRIPTOR = self
        self.name = full_name.rsplit(".", 1)[1]

    def Name(self, number):
        if number not in self._by_number:
            raise ValueError(f"Enum {self.name} has no name defined for value {number!r}")
        return self._by_number[number]

    def Value(self, name):
        if name not in self._by_name:
            raise ValueError(f"Enum {self.name} has no value defined for name {name!r}")
        return self._by_name[name]

    def keys(self):
        return list(self._by_name)

    def values(self):
        return list(self._by_name.values())

    def items(self):
        return list(self._by_name.items())

    @property
    def values_by_name(self):
        return {k: EnumValue(k, v) for k, v in self._by_name.items()}

    @property
    def values_by_number(self):
        return {v: EnumValue(k, v) for v, k in self._by_number.items()}

    def __getattr__(self, name):
        by_name = self.__dict__.get("_by_name", {})
        if name in by_name:
            return by_name[name]
        raise AttributeError(f"enum {self.__dict__.get('full_name')} has no value {name!r}")


class EnumValue:
    def __init__(self, name, number):
        self.name = name
        self.number = number


_ENUMS = {}


def enum_type(full_name):
    if full_name not in _ENUMS:
        _ENUMS[full_name] = EnumTypeWrapper(full_name)
    return _ENUMS[full_name]


class FieldDescriptor:
    """A field of a message type."""

    LABEL_OPTIONAL, LABEL_REQUIRED, LABEL_REPEATED = 1, 2, 3
    TYPE_MESSAGE, TYPE_ENUM = 11, 14
    CPPTYPE_MESSAGE = 10
    _TYPES = {
        "double": 1,
        "float": 2,
        "int64": 3,
        "uint64": 4,
        "int32": 5,
        "fixed64": 6,
        "fixed32": 7,
        "bool": 8,
        "string": 9,
        "bytes": 12,
        "uint32": 13,
        "sfixed32": 15,
        "sfixed64": 16,
        "sint32": 17,
        "sint64": 18,
    }
    __slots__ = (
        "name", "number", "kind", "repeated", "presence", "key", "type_name", "oneof", "index",
        "default_value", "wire_type", "containing_type",
    )  # fmt: skip

    def __init__(self, text, index, containing_type):
        label, kind, self.name, number, self.oneof = text.split(",")
        self.number = int(number)
        self.index = index
        self.containing_type = containing_type
        self.repeated = label == "*"
        self.key = label[1:] if label.startswith("{") else None
        self.type_name = None
        if kind[0] in "me" and "." in kind:
            self.type_name = kind[1:]
            kind = {"m": "message", "e": "enum"}[kind[0]]
        self.kind = kind
        self.presence = bool(self.oneof) or label == "?" or kind == "message"
        self.default_value = _default_of(kind)
        self.wire_type = _WIRE_TYPES.get(kind, 2 if kind in ("message", "string", "bytes") else 0)

    @property
    def full_name(self):
        return f"{self.containing_type.full_name}.{self.name}"

    @property
    def label(self):
        return self.LABEL_REPEATED if self.repeated or self.key else self.LABEL_OPTIONAL

    @property
    def type(self):
        if self.kind == "message" or self.key:
            return self.TYPE_MESSAGE
        return self.TYPE_ENUM if self.kind == "enum" else self._TYPES[self.kind]

    @property
    def cpp_type(self):
        return self.CPPTYPE_MESSAGE if self.kind == "message" or self.key else 0

    @property
    def message_type(self):
        return message_class(self.type_name).DESCRIPTOR if self.kind == "message" else None

    @property
    def enum_type(self):
        return enum_type(self.type_name) if self.kind == "enum" else None

    @property
    def containing_oneof(self):
        return self.oneof or None


def _default_of(kind):
    if kind in ("double", "float"):
        return 0.0
    if kind == "bool":
        return False
    return {"string": "", "bytes": b"", "message": None}.get(kind, 0)


class Descriptor:
    """A message type."""

    def __init__(self, full_name):
        self.full_name = full_name
        self.name = full_name.rsplit(".", 1)[1]
        texts = [t for t in _descriptors.MESSAGES[full_name].split(";") if t]
        self.fields = [FieldDescriptor(text, i, self) for i, text in enumerate(texts)]
        self.fields_by_name = {f.name: f for f in self.fields}
        self.fields_by_number = {f.number: f for f in self.fields}
        self.in_order = sorted(self.fields, key=lambda f: f.number)
        self.oneofs = {}
        for field in self.fields:
            if field.oneof:
                self.oneofs.setdefault(field.oneof, []).append(field.name)

    @property
    def oneofs_by_name(self):
        return self.oneofs

    @property
    def nested_types_by_name(self):
        start = self.full_name + "."
        nested = [n for n in _descriptors.MESSAGES if n.startswith(start)]
        return {n[len(start) :]: message_class(n).DESCRIPTOR for n in nested if "." not in n[len(start) :]}

    @property
    def _concrete_class(self):
        return message_class(self.full_name)


def _checked(field, value):
    """A scalar as the field stores it; TypeError or ValueError if it does not fit."""
    kind = field.kind
    if kind == "string":
        if isinstance(value, bytes):
            value = value.decode("utf-8")
        if not isinstance(value, str):
            raise _wrong(field, value, "str")
        return value
    if kind == "bytes":
        if isinstance(value, str):
            raise _wrong(field, value, "bytes")
        if not isinstance(value, bytes):
            if not isinstance(value, (bytearray, memoryview)):
                raise _wrong(field, value, "bytes")
            value = bytes(value)
        return value
    if kind in ("double", "float"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            raise _wrong(field, value, "float")
        value = float(value)
        return struct.unpack("<f", _pack_float(value))[0] if kind == "float" else value
    if kind == "bool":
        if isinstance(value, (str, bytes)) or not hasattr(value, "__int__") and not hasattr(value, "__index__"):
            raise _wrong(field, value, "bool")
        return bool(value)
    if kind == "enum":
        if isinstance(value, str):
            return enum_type(field.type_name).Value(value)
        if not hasattr(value, "__index__"):
            raise _wrong(field, value, "int")
        return int(value)
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise _wrong(field, value, "int")
    value = value.__index__()
    low, high = _INT_RANGES[kind]
    if not low <= value <= high:
        raise ValueError(f"Value out of range: {value}")
    return value


def _pack_float(value):
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _wrong(field, value, want):
    kind = type(value).__name__
    return TypeError(f"{value!r} has type {kind}, but expected one of: {want} for field {field.full_name}")


class _Container:
    __slots__ = ("_field", "_owner", "_items")

    def __init__(self, field, owner):
        self._field = field
        self._owner = owner

    def __len__(self):
        return len(self._items)

    def __bool__(self):
        return bool(self._items)

    def __repr__(self):
        return repr(self._items)

    def __deepcopy__(self, memo):
        import copy

        return copy.deepcopy(self._items, memo)


class _Repeated(_Container):
    """A repeated field, as a list."""

    __slots__ = ()
    __hash__ = None

    def __init__(self, field, owner):
        super().__init__(field, owner)
        self._items = []

    def remove(self, value):
        self._items.remove(value)

    def pop(self, index=-1):
        return self._items.pop(index)

    def sort(self, key=None, reverse=False):
        self._items.sort(key=key, reverse=reverse)

    def reverse(self):
        self._items.reverse()

    def __getitem__(self, index):
        return self._items[index]

    def __delitem__(self, index):
        del self._items[index]

    def __iter__(self):
        return iter(self._items)

    def __eq__(self, other):
        return self._items == list(other) if hasattr(other, "__iter__") else False


class RepeatedScalarContainer(_Repeated):
    """A repeated field of scalars."""

    __slots__ = ()
    __hash__ = None

    def append(self, value):
        self._items.append(_checked(self._field, value))
        self._owner._touch(self._field)

    def extend(self, values):
        new = [_checked(self._field, v) for v in values or ()]
        self._items.extend(new)
        if new:
            self._owner._touch(self._field)

    MergeFrom = extend

    def insert(self, index, value):
        self._items.insert(index, _checked(self._field, value))
        self._owner._touch(self._field)

    def index(self, *args):
        return self._items.index(*args)

    def count(self, value):
        return self._items.count(value)

    def __setitem__(self, index, value):
        if isinstance(index, slice):
            self._items[index] = [_checked(self._field, v) for v in value]
        else:
            self._items[index] = _checked(self._field, value)
        self._owner._touch(self._field)

    def __contains__(self, value):
        return value in self._items


class RepeatedCompositeContainer(_Repeated):
    """A repeated field of messages."""

    __slots__ = ()
    __hash__ = None

    def add(self, **values):
        item = message_class(self._field.type_name)(**values)
        self._items.append(item)
        self._owner._touch(self._field)
        return item

    def append(self, message):
        self.add().CopyFrom(message)

    def insert(self, index, message):
        item = message_class(self._field.type_name)()
        item.CopyFrom(message)
        self._items.insert(index, item)
        self._owner._touch(self._field)

    def extend(self, messages):
        for message in messages:
            self.append(message)

    MergeFrom = extend


class _Map(_Container):
    __slots__ = ("_keys",)
    __hash__ = None

    def __init__(self, field, owner):
        super().__init__(field, owner)
        self._items = {}
        text = f",{field.key},key,1,"
        self._keys = FieldDescriptor(text, 0, field.containing_type)

    def _key(self, key):
        return _checked(self._keys, key)

    def __iter__(self):
        return iter(self._items)

    def __contains__(self, key):
        return self._key(key) in self._items

    def __delitem__(self, key):
        del self._items[self._key(key)]

    def keys(self):
        return self._items.keys()

    def values(self):
        return self._items.values()

    def items(self):
        return self._items.items()

    def get(self, key, default=None):
        return self._items.get(self._key(key), default)

    def pop(self, key, *default):
        return self._items.pop(key, *default)

    def clear(self):
        self._items.clear()

    def __eq__(self, other):
        return dict(self.items()) == dict(other.items()) if hasattr(other, "items") else False


class ScalarMap(_Map):
    """A map to scalars. Reading a missing key makes it, as in protobuf."""

    __slots__ = ()

    def __getitem__(self, key):
        key = self._key(key)
        if key not in self._items:
            self._items[key] = self._field.default_value
            self._owner._touch(self._field)
        return self._items[key]

    def __setitem__(self, key, value):
        self._items[self._key(key)] = _checked(self._field, value)
        self._owner._touch(self._field)

    def update(self, other=(), **named):
        for key, value in dict(other, **named).items():
            self[key] = value

    MergeFrom = update


class MessageMap(_Map):
    """A map to messages. Reading a missing key makes it; assigning is not allowed."""

    __slots__ = ()

    def __getitem__(self, key):
        key = self._key(key)
        if key not in self._items:
            self._items[key] = message_class(self._field.type_name)()
            self._owner._touch(self._field)
        return self._items[key]

    def get_or_create(self, key):
        return self[key]

    def __setitem__(self, key, value):
        raise ValueError("May not set values directly, call my_map[key].foo = 5")

    def MergeFrom(self, other):
        for key, value in other.items():
            self[key].CopyFrom(value)


class Message:
    """The base of all messages."""

    __slots__ = ("_raw", "_values", "_pending", "_unknown", "_parent", "__weakref__")
    DESCRIPTOR = None
    __hash__ = None

    def __init__(self, **values):
        self._raw = None
        self._values = {}
        self._pending = None
        self._unknown = b""
        self._parent = None
        for name, value in values.items():
            self._init_field(name, value)

    def _init_field(self, name, value):
        field = self.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            raise ValueError(f'Protocol message {self.DESCRIPTOR.name} has no "{name}" field.')
        if value is None:
            return
        if field.key:
            container = getattr(self, name)
            for key, item in value.items():
                if field.kind == "message":
                    container[key].MergeFrom(item)
                else:
                    container[key] = item
        elif field.repeated:
            container = getattr(self, name)
            for item in value:
                if field.kind == "message" and isinstance(item, dict):
                    container.add(**item)
                else:
                    container.append(item)
        elif field.kind == "message":
            child = getattr(self, name)
            if isinstance(value, dict):
                value = type(child)(**value)
            child.MergeFrom(value)
            child._touch(None)
        else:
            setattr(self, name, value)

    # Fields.

    def _get(self, field):
        if self._raw is not None:
            self._load()
        value = self._values.get(field.name)
        if value is not None:
            return value
        if field.kind != "message" and not field.repeated and not field.key:
            return field.default_value
        if self._pending is None:
            self._pending = {}
        value = self._pending.get(field.name)
        if value is None:
            if field.key:
                value = (MessageMap if field.kind == "message" else ScalarMap)(field, self)
            elif field.repeated:
                composite = field.kind == "message"
                value = (RepeatedCompositeContainer if composite else RepeatedScalarContainer)(field, self)
            else:
                value = message_class(field.type_name)()
                value._parent = (self, field)
            self._pending[field.name] = value
        return value

    def _set(self, field, value):
        if field.repeated or field.key or field.kind == "message":
            what = "repeated" if field.repeated or field.key else "composite"
            raise AttributeError(
                f"Assignment not allowed to {what} field \"{field.name}\" in protocol message object."
            )
        if self._raw is not None:
            self._load()
        value = _checked(field, value)
        if value == field.default_value and not field.presence and str(value) != "-0.0":
            self._values.pop(field.name, None)
        else:
            self._values[field.name] = value
            if field.oneof:
                self._clear_siblings(field)
        self._touch(None)

    def _touch(self, field):
        """Marks this message, and those that contain it, as present after a change of a field."""
        if field is not None and self._pending:
            value = self._pending.pop(field.name, None)
            if value is not None:
                self._values[field.name] = value
                if field.oneof:
                    self._clear_siblings(field)
        parent, self._parent = self._parent, None
        if parent is not None:
            parent[0]._touch(parent[1])

    def _clear_siblings(self, field):
        for name in self.DESCRIPTOR.oneofs[field.oneof]:
            if name != field.name:
                self._values.pop(name, None)

    def SetInParent(self):
        self._touch(None)

    def HasField(self, name):
        field = self.DESCRIPTOR.fields_by_name.get(name)
        if self._raw is not None:
            self._load()
        if field is None:
            if name in self.DESCRIPTOR.oneofs:
                return self.WhichOneof(name) is not None
            raise ValueError(f'Protocol message {self.DESCRIPTOR.name} has no field "{name}".')
        if field.repeated or field.key or not field.presence:
            raise ValueError(
                f"Can't test non-optional, non-submessage field \"{self.DESCRIPTOR.name}.{name}\" for "
                "presence in proto3."
            )
        return name in self._values

    def WhichOneof(self, group):
        if self._raw is not None:
            self._load()
        if group not in self.DESCRIPTOR.oneofs:
            raise ValueError(f'Protocol message has no oneof "{group}" field.')
        for name in self.DESCRIPTOR.oneofs[group]:
            if name in self._values:
                return name
        return None

    def ClearField(self, name):
        if self._raw is not None:
            self._load()
        if name in self.DESCRIPTOR.oneofs:
            for sibling in self.DESCRIPTOR.oneofs[name]:
                self._values.pop(sibling, None)
        elif name not in self.DESCRIPTOR.fields_by_name:
            raise ValueError(f'Protocol message {self.DESCRIPTOR.name} has no "{name}" field.')
        self._values.pop(name, None)
        if self._pending:
            self._pending.pop(name, None)
        self._touch(None)

    def Clear(self):
        self._raw, self._pending, self._unknown = None, None, b""
        self._values = {}
        self._touch(None)

    def ListFields(self):
        if self._raw is not None:
            self._load()
        found = []
        for field in self.DESCRIPTOR.in_order:
            value = self._values.get(field.name)
            if value is None or (field.repeated or field.key) and not value:
                continue
            found.append((field, value))
        return found

    # Whole messages.

    def MergeFrom(self, other):
        if type(other) is not type(self):
            raise TypeError(
                f"Parameter to MergeFrom() must be instance of same class: expected "
                f"{self.DESCRIPTOR.full_name} got {type(other).__name__}."
            )
        if other is self:
            return
        if self._raw is None and not self._values and not self._unknown:
            # Nothing to merge with: take the bytes, and read them when they are needed.
            raw = other.SerializeToString()
            if raw:
                self._raw, self._pending = raw, None
                self._touch(None)
            return
        self.MergeFromString(other.SerializeToString())

    def CopyFrom(self, other):
        if other is self:
            return
        if type(other) is not type(self):
            raise TypeError(
                f"Parameter to CopyFrom() must be instance of same class: expected "
                f"{self.DESCRIPTOR.full_name} got {type(other).__name__}."
            )
        raw = other.SerializeToString()
        self._values, self._pending, self._unknown = {}, None, b""
        self._raw = raw or None
        self._touch(None)

    def SerializeToString(self, deterministic=None):
        if self._raw is not None:
            return self._raw
        parts = []
        from ferroflow.core import _wire

        _wire.encode(self, parts)
        return b"".join(parts)

    SerializePartialToString = SerializeToString

    def ByteSize(self):
        return len(self.SerializeToString())

    def ParseFromString(self, data):
        self.Clear()
        return self.MergeFromString(data)

    def MergeFromString(self, data):
        from ferroflow.core import _wire

        data = bytes(data)
        if self._raw is not None:
            self._load()
        _wire.decode(self, data)
        self._touch(None)
        return len(data)

    @classmethod
    def FromString(cls, data):
        message = cls()
        message.MergeFromString(data)
        return message

    @classmethod
    def _trusted(cls, data):
        """A message of bytes that we wrote: they are read when a field is."""
        message = cls()
        message._raw = data or None
        return message

    def _load(self):
        from ferroflow.core import _wire

        raw, self._raw = self._raw, None
        _wire.decode(self, raw)

    def IsInitialized(self, errors=None):
        return True

    def FindInitializationErrors(self):
        return []

    def DiscardUnknownFields(self):
        if self._raw is not None:
            self._load()
        self._unknown = b""

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.ListFields() == other.ListFields()

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __str__(self):
        from ferroflow.core import _text

        return _text.MessageToString(self)

    __repr__ = __str__

    def __deepcopy__(self, memo):
        copy = type(self)()
        copy.CopyFrom(self)
        return copy

    __copy__ = lambda self: self.__deepcopy__({})

    def __reduce__(self):
        return _restore, (self.DESCRIPTOR.full_name, self.SerializeToString())

    def __setattr__(self, name, value):
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            if name in self.DESCRIPTOR.fields_by_name:
                raise
            raise AttributeError(
                f"'{self.DESCRIPTOR.name}' object has no attribute '{name}'"
            ) from None


def _restore(full_name, data):
    return message_class(full_name).FromString(data)


def _property(field):
    if field.repeated or field.key or field.kind == "message":
        # Most of the time the value is there.
        def read(self):
            if self._raw is None:
                value = self._values.get(field.name)
                if value is not None:
                    return value
            return self._get(field)
    else:

        def read(self):
            if self._raw is not None:
                self._load()
            return self._values.get(field.name, field.default_value)

    return property(read, lambda self, value: self._set(field, value), None, field.full_name)


class _Nested:
    """A nested message or enum, made when it is first used."""

    def __init__(self, make, name):
        self.make, self.name = make, name

    def __get__(self, instance, owner):
        return self.make(self.name)


_CLASSES = {}


def message_class(full_name):
    """The class of a message."""
    found = _CLASSES.get(full_name)
    if found is not None:
        return found
    descriptor = Descriptor(full_name)
    members = {"__slots__": (), "DESCRIPTOR": descriptor}
    for field in descriptor.fields:
        members[field.name] = _property(field)
        members[field.name.upper() + "_FIELD_NUMBER"] = field.number
    start = full_name + "."
    for name in _descriptors.MESSAGES:
        if name.startswith(start) and "." not in name[len(start) :]:
            members[name[len(start) :]] = _Nested(message_class, name)
    for name, values in _descriptors.ENUMS.items():
        if name.startswith(start) and "." not in name[len(start) :]:
            members[name[len(start) :]] = _Nested(enum_type, name)
            for item in values.split(";"):
                value, number = item.split("=")
                members[value] = int(number)
    made = type(descriptor.name, (Message,), members)
    made.__module__ = "ferroflow.core"
    return _CLASSES.setdefault(full_name, made)
