"""The binary form of messages."""

import struct

from ferroflow.core._messages import (
    _FORMATS,
    DecodeError,
    MessageMap,
    RepeatedCompositeContainer,
    RepeatedScalarContainer,
    ScalarMap,
    message_class,
)

_SIZES = {1: 8, 5: 4}
_MASK = (1 << 64) - 1


def varint(value):
    value &= _MASK
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    try:
        byte = data[at]
        if byte < 0x80:
            return byte, at + 1
        result, shift = byte & 0x7F, 7
        at += 1
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & _MASK, at
            shift += 7
            if shift > 63:
                raise DecodeError("Error parsing message: a number is too long")
    except IndexError:
        raise DecodeError("Error parsing message: it is truncated") from None


def _scalar(field, value):
    kind = field.kind
    if kind == "string":
        data = value.encode("utf-8")
        return varint(len(data)) + data
    if kind == "bytes":
        return varint(len(value)) + value
    if kind == "message":
        data = value.SerializeToString()
        return varint(len(data)) + data
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value)
    if kind in ("sint32", "sint64"):
        return varint(value << 1 ^ value >> 63)
    return varint(int(value))


def encode(message, parts):
    for field in message.DESCRIPTOR.in_order:
        value = message._values.get(field.name)
        if value is None:
            continue
        if field.key:
            tag = varint(field.number << 3 | 2)
            keys = value._keys
            for key in sorted(value._items):
                item = varint(1 << 3 | keys.wire_type) + _scalar(keys, key)
                item += varint(2 << 3 | field.wire_type) + _scalar(field, value._items[key])
                parts.append(tag + varint(len(item)) + item)
        elif field.repeated:
            if not value:
                continue
            if field.wire_type != 2:
                data = b"".join(_scalar(field, item) for item in value)
                parts.append(varint(field.number << 3 | 2) + varint(len(data)))
                parts.append(data)
            else:
                tag = varint(field.number << 3 | 2)
                for item in value:
                    parts.append(tag)
                    parts.append(_scalar(field, item))
        else:
            parts.append(varint(field.number << 3 | field.wire_type))
            parts.append(_scalar(field, value))
    if message._unknown:
        parts.append(message._unknown)


def _raw(data, at, wire_type):
    """The bytes or number of a field, and where it ends."""
    if wire_type == 0:
        return read_varint(data, at)
    if wire_type == 2:
        size, at = read_varint(data, at)
        end = at + size
    elif wire_type in _SIZES:
        end = at + _SIZES[wire_type]
    else:
        raise DecodeError(f"Error parsing message: wire type {wire_type} is not known")
    if end > len(data):
        raise DecodeError("Error parsing message: it is truncated")
    return data[at:end], end


def _value(field, raw):
    kind = field.kind
    if kind == "bytes":
        return bytes(raw)
    if kind == "string":
        try:
            return bytes(raw).decode("utf-8")
        except UnicodeDecodeError as e:
            raise DecodeError(f"Error parsing message: {field.full_name} is not UTF-8") from e
    if kind in _FORMATS:
        return struct.unpack(_FORMATS[kind], raw)[0]
    if kind == "bool":
        return bool(raw)
    if kind in ("int32", "int64", "enum"):
        return raw - (1 << 64) if raw >= 1 << 63 else raw
    if kind in ("sint32", "sint64"):
        return raw >> 1 ^ -(raw & 1)
    return raw


def _child(field, raw):
    """A submessage. It is checked now, and read when a field of it is."""
    child = message_class(field.type_name)()
    decode(child, bytes(raw))
    return child


def _packed(field, data):
    if field.kind in _FORMATS:
        code = _FORMATS[field.kind][1]
        size = struct.calcsize("<" + code)
        if len(data) % size:
            raise DecodeError("Error parsing message: it is truncated")
        return list(struct.unpack(f"<{len(data) // size}{code}", data))
    found, at = [], 0
    while at < len(data):
        raw, at = read_varint(data, at)
        found.append(_value(field, raw))
    return found


def decode(message, data):
    """Adds the fields in `data` to a message."""
    by_number = message.DESCRIPTOR.fields_by_number
    values = message._values
    at, end = 0, len(data)
    unknown = []
    while at < end:
        start = at
        key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise DecodeError("Error parsing message: field number 0")
        raw, at = _raw(data, at, wire_type)
        field = by_number.get(number)
        packed = field is not None and field.repeated and wire_type == 2 and field.wire_type != 2
        if field is None or not packed and wire_type != (2 if field.key else field.wire_type):
            unknown.append(data[start:at])
            continue
        name = field.name
        if field.key:
            container = values.get(name)
            if container is None:
                container = (MessageMap if field.kind == "message" else ScalarMap)(field, message)
                values[name] = container
            _entry(container, field, raw)
        elif field.repeated:
            container = values.get(name)
            if container is None:
                composite = field.kind == "message"
                container = (RepeatedCompositeContainer if composite else RepeatedScalarContainer)(
                    field, message
                )
                values[name] = container
            if packed:
                container._items.extend(_packed(field, raw))
            elif field.kind == "message":
                container._items.append(_child(field, raw))
            else:
                container._items.append(_value(field, raw))
        elif field.kind == "message":
            before = values.get(name)
            if before is None:
                values[name] = _child(field, raw)
            else:
                before.MergeFromString(raw)
            if field.oneof:
                message._clear_siblings(field)
        else:
            value = _value(field, raw)
            if value == field.default_value and not field.presence:
                values.pop(name, None)
            else:
                values[name] = value
            if field.oneof:
                message._clear_siblings(field)
    if message._pending:
        for name in list(message._pending):
            if name in values:
                del message._pending[name]
    if unknown:
        message._unknown += b"".join(unknown)


def _entry(container, field, data):
    key, value = container._keys.default_value, field.default_value
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        raw, at = _raw(data, at, tag & 7)
        if tag >> 3 == 1:
            key = _value(container._keys, raw)
        elif tag >> 3 == 2:
            value = _child(field, raw) if field.kind == "message" else _value(field, raw)
    if value is None:
        value = message_class(field.type_name)()
    container._items[key] = value
