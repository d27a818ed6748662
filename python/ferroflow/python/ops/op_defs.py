"""The op definitions for op functions, read from `op_defs.txt` at the first use."""

import json
import os

from ferroflow.python.framework import dtypes


class Attr:
    """An attribute that a caller gives: its name, its name in Python, and its default."""

    __slots__ = ("name", "python_name", "has_default", "default")

    def __init__(self, text):
        head, _, rest = text.partition(":")
        self.name, _, renamed = head.partition("|")
        self.python_name = renamed or self.name
        kind, equals, default = rest.partition("=")
        self.has_default = bool(equals)
        self.default = _value(kind, default) if equals else None


def _value(kind, text):
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "list(type)":
        inner = text[1:-1]
        return [dtypes.as_dtype(t) for t in inner.split(",")] if inner else []
    return None if text == "tensor" else json.loads(text)


class OpDef:
    """One op: its inputs, outputs and the attributes that a caller gives, in Python's order."""

    __slots__ = ("name", "inputs", "outputs", "asked")

    def __init__(self, line):
        fields = line.split("\t")
        self.name = fields[0]
        self.inputs = fields[1].split()
        # (name, attribute with the length, whether that is a list of types)
        self.outputs = []
        for text in fields[2].split():
            name, _, length = text.partition(":")
            self.outputs.append((name, length.lstrip("@") or None, length.startswith("@")))
        attrs = [Attr(t) for t in fields[3:] if t]
        self.asked = [a for a in attrs if not a.has_default] + [a for a in attrs if a.has_default]


class _Table:
    """The text of the table, and the definitions made from it so far."""

    def __init__(self):
        self.text = None
        self.made = {}

    def load(self):
        if self.text is None:
            path = os.path.join(os.path.dirname(__file__), "op_defs.txt")
            with open(path, encoding="ascii") as f:
                self.text = f.read()
        return self.text

    def get(self, name):
        made = self.made.get(name)
        if made is None:
            text = self.load()
            start = text.find("\n" + name + "\t")
            if start < 0:
                return None
            end = text.index("\n", start + 1)
            made = self.made[name] = OpDef(text[start + 1:end])
        return made


_table = _Table()


def get(name):
    """The definition of op `name`, or None."""
    return _table.get(name)


def names():
    """The names of all ops in the table."""
    return [line.split("\t", 1)[0] for line in _table.load().strip("\n").split("\n")]
