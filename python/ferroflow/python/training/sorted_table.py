"""Reads sorted tables of keys and values: the index of a checkpoint, and checkpoints of version 1."""

import struct

_MAGIC = 0xDB4775248B80FB57


class DataLoss(ValueError):
    """The file is not a table, or part of it is missing."""


def _varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _unsnappy(data):
    """The content of a block that is compressed with Snappy."""
    size, at = _varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                count = length - 59
                length = int.from_bytes(data[at : at + count], "little")
                at += count
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            length, offset = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at]
            at += 1
        else:
            count = 2 if kind == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + count], "little")
            at += count
        if offset == 0 or offset > len(out):
            raise DataLoss("corrupt Snappy block")
        for _ in range(length):
            out.append(out[-offset])
    if len(out) != size:
        raise DataLoss("corrupt Snappy block")
    return bytes(out)


def _block(data, offset, size):
    if offset + size + 5 > len(data):
        raise DataLoss("truncated table")
    block = data[offset : offset + size]
    return _unsnappy(block) if data[offset + size] == 1 else block


def _entries(block):
    """Keys and values of a block. A key stores only what differs from the key before it."""
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 - 4 * restarts
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        own, at = _varint(block, at)
        size, at = _varint(block, at)
        key = key[:shared] + bytes(block[at : at + own])
        at += own
        yield key, bytes(block[at : at + size])
        at += size


def read(path):
    """All keys and values of a table, in order."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 48 or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise DataLoss(f"{path} is not a checkpoint: it does not end as a table does")
    footer = data[-48:]
    _, at = _varint(footer, 0)
    _, at = _varint(footer, at)
    offset, at = _varint(footer, at)
    size, at = _varint(footer, at)
    found = {}
    for _, handle in _entries(_block(data, offset, size)):
        start, at = _varint(handle, 0)
        length, at = _varint(handle, at)
        found.update(_entries(_block(data, start, length)))
    return found


# Keys of slices: numbers and texts in a code whose bytes sort as they do.


def _text_key(text):
    escaped = {0: b"\x00\xff", 255: b"\xff\x00"}
    return b"".join(escaped.get(c) or bytes([c]) for c in text) + b"\x00\x01"


def _number_key(value):
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _signed_key(value):
    magnitude = ~value if value < 0 else value
    if magnitude < 64:
        return bytes([(0x80 ^ value) & 0xFF])
    length = -(-(magnitude.bit_length() + 1) // 7)
    # The number of leading ones is the number of bytes; those of a negative number are flipped.
    bits = (value & (1 << 8 * length) - 1) ^ ((1 << length) - 1) << 7 * length
    return bits.to_bytes(length, "big")


def slice_key(name, starts_and_lengths):
    """The key of a slice of a tensor. A length of -1 means the whole dimension."""
    key = _number_key(0) + _text_key(name.encode("utf-8")) + _number_key(len(starts_and_lengths))
    for start, length in starts_and_lengths:
        key += _signed_key(start) + _signed_key(length)
    return key
