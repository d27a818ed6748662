"""The text form of messages."""

import re

from ferroflow.core._messages import enum_type, message_class


class ParseError(ValueError):
    """The text is not a message of this type."""


_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _quoted(value):
    data = value.encode("utf-8") if isinstance(value, str) else value
    out = []
    for byte in data:
        if byte in _ESCAPES:
            out.append(_ESCAPES[byte])
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def _number(value):
    if value == int(value) and abs(value) < 1e16 if value == value and abs(value) != float("inf") else False:
        return repr(float(value)) if value else ("-0.0" if str(value)[0] == "-" else "0.0")
    if value != value:
        return "nan"
    return {float("inf"): "inf", float("-inf"): "-inf"}.get(value, repr(value))


def _float(value):
    """The shortest text that reads as the same 32-bit number."""
    import struct

    if value != value or abs(value) == float("inf"):
        return _number(value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            break
    number = float(text)
    return repr(number) if "e" not in repr(number) else re.sub(r"e([+-])0?(\d)$", r"e\g<1>0\2", text)


def _scalar(field, value):
    kind = field.kind
    if kind in ("string", "bytes"):
        return _quoted(value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "enum":
        try:
            return enum_type(field.type_name).Name(value)
        except ValueError:
            return str(value)
    if kind == "float":
        return _float(value)
    if kind == "double":
        return _number(value)
    return str(value)


def _lines(message, indent, out):
    pad = "  " * indent
    for field, value in message.ListFields():
        if field.key:
            for key in sorted(value.keys()):
                out.append(f"{pad}{field.name} {{")
                out.append(f"{pad}  key: {_scalar(value._keys, key)}")
                item = value._items[key]
                if field.kind == "message":
                    out.append(f"{pad}  value {{")
                    _lines(item, indent + 2, out)
                    out.append(f"{pad}  }}")
                else:
                    out.append(f"{pad}  value: {_scalar(field, item)}")
                out.append(f"{pad}}}")
            continue
        for item in value if field.repeated else (value,):
            if field.kind == "message":
                out.append(f"{pad}{field.name} {{")
                _lines(item, indent + 1, out)
                out.append(f"{pad}}}")
            else:
                out.append(f"{pad}{field.name}: {_scalar(field, item)}")


def MessageToString(message, as_utf8=False, as_one_line=False, **_):
    out = []
    _lines(message, 0, out)
    if as_one_line:
        return " ".join(line.strip() for line in out)
    return "".join(line + "\n" for line in out)


def PrintMessage(message, out, **options):
    out.write(MessageToString(message, **options))


_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[\w.+-]+)|(?P<mark>[^\s])"""
)


def _tokens(text):
    found = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup:
            line = text.count("\n", 0, match.start()) + 1
            found.append((match.lastgroup, match.group(), line))
    return found


class _Reader:
    def __init__(self, text):
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at][1] if self.at < len(self.tokens) else None

    def take(self):
        if self.at >= len(self.tokens):
            raise ParseError("unexpected end of text")
        self.at += 1
        return self.tokens[self.at - 1]

    def fail(self, what):
        line = self.tokens[min(self.at, len(self.tokens)) - 1][2] if self.tokens else 1
        raise ParseError(f"{line} : {what}")

    def message(self, message, end):
        while self.peek() != end:
            if self.peek() is None:
                self.fail(f"expected {end!r}")
            self.field(message)
            if self.peek() in (",", ";"):
                self.take()

    def field(self, message):
        name = self.take()[1]
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            self.fail(f'Message type "{message.DESCRIPTOR.full_name}" has no field named "{name}".')
        if self.peek() == ":":
            self.take()
        if self.peek() == "[" and (field.repeated or field.key):
            self.take()
            while self.peek() != "]":
                self.item(message, field)
                if self.peek() == ",":
                    self.take()
            self.take()
        else:
            self.item(message, field)

    def item(self, message, field):
        if field.key:
            entry = {}
            self.expect_open(lambda end: self.entry(message, field, end, entry))
        elif field.kind == "message":
            child = getattr(message, field.name)
            child = child.add() if field.repeated else child
            child.SetInParent()
            self.expect_open(lambda end: self.message(child, end))
        else:
            value = self.scalar(field)
            if field.repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)

    def expect_open(self, body):
        mark = self.take()[1]
        if mark not in "{<":
            self.fail(f'expected "{{", got {mark!r}')
        end = {"{": "}", "<": ">"}[mark]
        body(end)
        self.take()

    def entry(self, message, field, end, entry):
        container = getattr(message, field.name)
        key = container._keys.default_value
        value = None
        while self.peek() != end:
            name = self.take()[1]
            if self.peek() == ":":
                self.take()
            if name == "key":
                key = self.scalar(container._keys)
            elif field.kind == "message":
                value = message_class(field.type_name)()
                self.expect_open(lambda e, v=value: self.message(v, e))
            else:
                value = self.scalar(field)
            if self.peek() in (",", ";"):
                self.take()
        if field.kind == "message":
            container[key].CopyFrom(value or message_class(field.type_name)())
        else:
            container[key] = field.default_value if value is None else value

    def scalar(self, field):
        group, text, _ = self.take()
        kind = field.kind
        if kind in ("string", "bytes"):
            if group != "string":
                self.fail(f"expected a string, got {text!r}")
            data = _unquoted(text)
            while self.at < len(self.tokens) and self.tokens[self.at][0] == "string":
                data += _unquoted(self.take()[1])
            return data.decode("utf-8") if kind == "string" else data
        if text == "-":
            text += self.take()[1]
        try:
            if kind == "bool":
                return {"true": True, "True": True, "t": True, "1": True}.get(text, False)
            if kind == "enum":
                return int(text) if text.lstrip("-").isdigit() else enum_type(field.type_name).Value(text)
            if kind in ("float", "double"):
                return float(text.rstrip("fF") if text[-1:] in "fF" and "inf" not in text.lower() else text)
            return int(text, 0)
        except ValueError as e:
            self.fail(str(e))


def _unquoted(text):
    body = text[1:-1].encode("utf-8")

    def one(match):
        code = match.group(1)
        if code[:1] in b"xX":
            return bytes((int(code[1:], 16),))
        if code[:1] in b"01234567":
            return bytes((int(code, 8) & 255,))
        return {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}.get(
            code, code
        )

    return re.sub(rb"\\([xX][0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", one, body)


def Merge(text, message, **_):
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    reader = _Reader(text)
    reader.message(message, None)
    return message


def Parse(text, message, **options):
    message.Clear()
    return Merge(text, message, **options)
