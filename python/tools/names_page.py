"""Writes docs/src/reference/python-names.md: the names of `ferroflow.compat.v1`.

    python3 python/tools/names_page.py [--check]
"""

import argparse
import ast
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT / "python/ferroflow/compat/v1"
PAGE = ROOT / "docs/src/reference/python-names.md"


def names():
    """All public names: module, then the names in it."""
    found = {}
    for path in sorted(TABLES.glob("_api_*.py")):
        scope = {}
        exec(compile(ast.parse(path.read_text()), str(path), "exec"), scope)  # pylint: disable=exec-used
        for texts in scope["NAMES"].values():
            for text in texts.split():
                module, _, name = text.partition("=")[0].rpartition(".")
                if not name.startswith("_"):
                    found.setdefault(module, set()).add(name)
    return found


def page():
    found = names()
    count = sum(len(items) for items in found.values())
    lines = [
        "# Which names does the Python package have?",
        "",
        "<!-- Written by python/tools/names_page.py. -->",
        "",
        f"`import ferroflow.compat.v1 as tf` has these {count} names. A name that is not here raises an `AttributeError` that",
        "names the nearest one.",
    ]
    for module in sorted(found):
        title = f"tf.{module}" if module else "tf"
        lines += ["", f"## {title}", "", ", ".join(f"`{name}`" for name in sorted(found[module]))]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    if not parser.parse_args().check:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        sys.exit("docs/src/reference/python-names.md is stale: run python3 python/tools/names_page.py")


if __name__ == "__main__":
    main()
