"""Small programs whose GraphDefs must equal TensorFlow's.

A program is a function of `tf` that builds into the default graph.  `record.py` keeps what
TensorFlow 2.15.1 builds in `fixtures/`; `test_graphs.py` compares.
"""

import importlib
import os
import pkgutil

PROGRAMS = {}


def program(function):
    """Registers a program under its function's name."""
    assert function.__name__ not in PROGRAMS, function.__name__
    PROGRAMS[function.__name__] = function
    return function


def load():
    """All programs, by name."""
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        importlib.import_module(__name__ + "." + module.name)
    return PROGRAMS


def canonical(graph_def):
    """The nodes and functions of a GraphDef as plain values, to be compared."""
    nodes = [_node(n) for n in graph_def.node]
    functions = {}
    for f in graph_def.library.function:
        functions[f.signature.name] = {
            "inputs": [a.name for a in f.signature.input_arg],
            "outputs": [a.name for a in f.signature.output_arg],
            "nodes": [_node(n) for n in f.node_def],
            "ret": dict(f.ret),
        }
    return {"nodes": nodes, "functions": functions}


def _node(node):
    attrs = {k: node.attr[k].SerializeToString().hex() for k in sorted(node.attr)}
    for volatile in ("_gradient_op_type",):
        attrs.pop(volatile, None)
    return {"name": node.name, "op": node.op, "input": list(node.input), "device": node.device,
            "attr": attrs}


def build(tf, name):
    """The canonical GraphDef that a program builds with `tf`, and its collections."""
    with tf.Graph().as_default() as graph:
        PROGRAMS[name](tf)
        found = canonical(graph.as_graph_def())
        found["collections"] = {
            str(k): [_member(v) for v in graph.get_collection_ref(k)]
            for k in sorted(graph.get_all_collection_keys(), key=str)
            if not str(k).startswith("(")}
        return found


def _member(value):
    return getattr(value, "name", None) or type(value).__name__


def differences(got, want):
    """What differs between two canonical graphs, one line each."""
    lines = []
    by_name = {n["name"]: n for n in got["nodes"]}
    wanted = {n["name"]: n for n in want["nodes"]}
    for name in wanted:
        if name not in by_name:
            lines.append("missing node %s (%s)" % (name, wanted[name]["op"]))
    for name in by_name:
        if name not in wanted:
            lines.append("extra node %s (%s)" % (name, by_name[name]["op"]))
    for name, node in wanted.items():
        ours = by_name.get(name)
        if ours is None:
            continue
        for field in ("op", "input", "device"):
            if ours[field] != node[field]:
                lines.append("%s: %s is %r, not %r" % (name, field, ours[field], node[field]))
        for key in sorted(set(node["attr"]) | set(ours["attr"])):
            if ours["attr"].get(key) != node["attr"].get(key):
                lines.append("%s: attr %s is %s, not %s" % (
                    name, key, ours["attr"].get(key), node["attr"].get(key)))
    if not lines and [n["name"] for n in got["nodes"]] != [n["name"] for n in want["nodes"]]:
        order = [(a["name"], b["name"]) for a, b in zip(got["nodes"], want["nodes"])
                 if a["name"] != b["name"]]
        lines.append("order: %s stands where %s should" % order[0])
    if got.get("collections") != want.get("collections"):
        lines.append("collections: %s, not %s" % (got.get("collections"),
                                                  want.get("collections")))
    return lines
