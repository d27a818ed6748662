"""Writes ferroflow/core/_descriptors.py from the .proto files of ferroflow-proto and of this folder.

    python3 python/tools/make_descriptors.py [--check]
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOS = ROOT / "crates/ferroflow-proto/proto"
OWN_PROTOS = ROOT / "python/tools"
TARGET = ROOT / "python/ferroflow/core/_descriptors.py"
SCALARS = set(
    "double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 "
    "bool string bytes".split()
)


class Parser:
    """Reads the part of the language that our files use."""

    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.tokens = re.findall(r'"[^"]*"|[\w.]+|[^\s]', text)
        self.at = 0
        self.package = ""
        self.messages = {}
        self.enums = {}

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def skip_until(self, end):
        while self.next() != end:
            pass

    def skip_block(self):
        depth = 0
        while True:
            token = self.next()
            depth += (token == "{") - (token == "}")
            if token == "}" and depth == 0:
                return

    def parse(self):
        while self.at < len(self.tokens):
            token = self.next()
            if token == "package":
                self.package = self.next()
                self.skip_until(";")
            elif token in ("syntax", "import", "option"):
                self.skip_until(";")
            elif token == "message":
                self.message(self.package)
            elif token == "enum":
                self.enum(self.package)
            elif token == "service":
                self.skip_block()
        return self

    def enum(self, scope):
        name = f"{scope}.{self.next()}"
        assert self.next() == "{"
        values = []
        while (token := self.next()) != "}":
            if token in ("option", "reserved"):
                self.skip_until(";")
                continue
            assert self.next() == "="
            sign = self.next()
            number = int(self.next()) * -1 if sign == "-" else int(sign)
            values.append((token, number))
            self.skip_until(";")
        self.enums[name] = values

    def message(self, scope):
        name = f"{scope}.{self.next()}"
        assert self.next() == "{"
        fields = self.messages.setdefault(name, [])
        self.body(name, fields, "")

    def body(self, name, fields, oneof):
        while (token := self.next()) != "}":
            if token == "message":
                self.message(name)
            elif token == "enum":
                self.enum(name)
            elif token in ("option", "reserved"):
                self.skip_until(";")
            elif token == "oneof":
                group = self.next()
                assert self.next() == "{"
                self.body(name, fields, group)
            elif token == "map":
                assert self.next() == "<"
                key = self.next()
                assert self.next() == ","
                value = self.next()
                assert self.next() == ">"
                fields.append(["{" + key, value, self.next(), self.number(), ""])
            else:
                label = ""
                if token in ("repeated", "optional"):
                    label = {"repeated": "*", "optional": "?"}[token]
                    token = self.next()
                fields.append([label, token, self.next(), self.number(), oneof])

    def number(self):
        assert self.next() == "="
        number = int(self.next())
        self.skip_until(";")
        return number


def resolve(kind, scope, messages, enums):
    """The full name of a type, as seen from a message."""
    if kind in SCALARS:
        return kind
    parts = scope.split(".")
    for n in range(len(parts), -1, -1):
        full = ".".join(parts[:n] + [kind])
        if full in messages:
            return "m" + full
        if full in enums:
            return "e" + full
    raise SystemExit(f"{scope}: unknown type {kind}")


def generate():
    messages, enums, homes = {}, {}, {}
    for path in sorted(PROTOS.glob("*.proto")) + sorted(OWN_PROTOS.glob("*.proto")):
        parser = Parser(path.read_text()).parse()
        messages.update(parser.messages)
        enums.update(parser.enums)
    lines = [
        '"""The messages and enums of TensorFlow, written by python/tools/make_descriptors.py.',
        "",
        "A field is `label type name number oneof`: `*` is repeated, `?` has presence, `{key` a map.",
        '"""',
        "",
        "MESSAGES = {",
    ]
    for name in sorted(messages):
        fields = []
        for label, kind, field, number, oneof in messages[name]:
            kind = resolve(kind, name, messages, enums)
            fields.append(f"{label},{kind},{field},{number},{oneof}")
        lines.append(f"    {name!r}: (")
        lines += [f"        {field + ';'!r}" for field in fields] or ["        ''"]
        lines.append("    ),")
    lines += ["}", "", "ENUMS = {"]
    for name in sorted(enums):
        values = ";".join(f"{value}={number}" for value, number in enums[name])
        chunks = [values[i : i + 80] for i in range(0, len(values), 80)]
        lines.append(f"    {name!r}: (")
        lines += [f"        {chunk!r}" for chunk in chunks]
        lines.append("    ),")
    lines.append("}")
    return "\n".join(lines).replace("'", '"') + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    args = parser.parse_args()
    text = generate()
    if not args.check:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit(f"{TARGET.relative_to(ROOT)} is stale: run python3 python/tools/make_descriptors.py")


if __name__ == "__main__":
    main()
