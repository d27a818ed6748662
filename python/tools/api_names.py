"""Writes the table of public names that `@export` marks declare.

    python tools/api_names.py [--check]

reads the sources under `ferroflow/python/` without importing them, and writes
`ferroflow/compat/v1/_api_ops.py`.
"""

import ast
import os
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.join(HERE, "ferroflow", "python")
TABLE = os.path.join(HERE, "ferroflow", "compat", "v1", "_api_ops.py")


def _export_call(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "export"


def marks(tree):
    """(attribute, public names) of each marked symbol of a module."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                if _export_call(decorator):
                    yield node.name, [a.value for a in decorator.args]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and (
                _export_call(node.value.func)):
            yield node.targets[0].id, [a.value for a in node.value.func.args]


def table():
    """Module -> `public=attribute` texts."""
    found = {}
    owner = {}
    for folder, _, files in sorted(os.walk(ROOT)):
        for file in sorted(files):
            if not file.endswith(".py"):
                continue
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as f:
                tree = ast.parse(f.read())
            module = "ferroflow.python." + os.path.relpath(path, ROOT)[:-3].replace(os.sep, ".")
            for attribute, names in marks(tree):
                for name in names:
                    if name in owner:
                        raise SystemExit("%s is exported by %s and %s" % (
                            name, owner[name], module))
                    owner[name] = module
                    text = name if name == attribute else "%s=%s" % (name, attribute)
                    found.setdefault(module, []).append(text)
    exports = os.path.join(ROOT, "ops", "op_exports.txt")
    with open(exports, encoding="ascii") as f:
        for line in f:
            name = line.split(" ", 1)[0]
            if name not in owner:
                found.setdefault("ferroflow.python.ops.op_exports", []).append(
                    "%s=%s" % (name, name.replace(".", "__")))
    found["ferroflow.python.ops.raw_ops"] = ["raw_ops=*"]
    return found


def text():
    lines = ['"""Names of ops, layers, losses, metrics and optimizers.', "",
             "`python tools/api_names.py` writes this file from the marks `@export` in the "
             "sources.", '"""', "", "NAMES = {"]
    for module, names in sorted(table().items()):
        lines.append('    "%s": (' % module)
        row = ""
        for name in sorted(names):
            if len(row) + len(name) > 82:
                lines.append('        "%s"' % row)
                row = ""
            row += name + " "
        lines.append('        "%s"' % row.rstrip())
        lines.append("    ),")
    return "\n".join(lines + ["}", ""])


def main():
    wanted = text()
    if "--check" in sys.argv:
        with open(TABLE, encoding="utf-8") as f:
            if f.read() != wanted:
                raise SystemExit("_api_ops.py is stale: run python tools/api_names.py")
        return
    with open(TABLE, "w", encoding="utf-8") as f:
        f.write(wanted)


if __name__ == "__main__":
    main()
