"""`tf.profiler.profile` and `Profiler`: what a graph and its steps cost, by name scope or by type of operation."""

import re

from ferroflow.python.framework import errors_impl
from ferroflow.python.framework import ops
from ferroflow.python.platform import gfile
from ferroflow.python.profiler import flops
from ferroflow.python.profiler import option_builder
from ferroflow.python.util.api import export

_COUNTS = ("exec_micros", "requested_bytes", "parameters", "float_ops")
_LEAST = {"exec_micros": "min_micros", "requested_bytes": "min_bytes", "parameters": "min_params", "float_ops": "min_float_ops"}
# What `select` and `order_by` call a count.
_SELECTED = {"micros": "exec_micros", "bytes": "requested_bytes", "params": "parameters", "float_ops": "float_ops"}
_TITLES = {"micros": "total execution time", "bytes": "requested bytes", "params": "# parameters", "float_ops": "# float_ops"}
_UNITS = {"micros": "us", "bytes": "B", "params": "params", "float_ops": "flops"}
_DOCS = {
    "scope": "The nodes in the model graph are organized by their names, which is hierarchical like filesystem.",
    "op": "The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type are aggregated "
          "together.",
    "params": "param: Number of parameters (in the Variable).",
    "float_ops": "flops: Number of float operations. Note: Please read the implementation for the math behind it.",
    "micros": "total execution time: Sum of accelerator execution time and cpu execution time.",
    "bytes": "requested bytes: The memory requested by the operation, accumulatively.",
}
_ROOT = "_TFProfRoot"


@export("profiler.GraphNodeProto")
class GraphNodeProto:
    """A node of a profile: its own counts, and totals over the nodes below it that are shown."""

    def __init__(self, name):
        self.name, self.children, self.shapes = name, [], []
        for count in _COUNTS:
            setattr(self, count, 0)
            setattr(self, "total_" + count, 0)

    def __repr__(self):
        counts = ["total_%s: %d" % (c, getattr(self, "total_" + c)) for c in _COUNTS if getattr(self, "total_" + c)]
        return "GraphNodeProto(%s)" % ", ".join(["name: %r" % self.name] + counts)


@export("profiler.MultiGraphNodeProto")
class MultiGraphNodeProto(GraphNodeProto):
    """A node of a profile by type: all operations of the type."""


class _Node:
    """A name of the graph; its operation, if there is one."""

    def __init__(self, name):
        self.name, self.types, self.dims, self.below = name, {"_TFScopeParent"}, None, {}
        self.counts = dict.fromkeys(_COUNTS, 0)


def _steps_of(run_meta):
    """Microseconds and bytes by the name of the operation."""
    found = {}
    for device in run_meta.step_stats.dev_stats if run_meta is not None else ():
        for stats in device.node_stats:
            micros, size = found.get(stats.node_name, (0, 0))
            used = sum(memory.total_bytes for memory in stats.memory) or sum(
                output.tensor_description.allocation_description.requested_bytes for output in stats.output)
            found[stats.node_name] = micros + max(stats.op_end_rel_micros - stats.op_start_rel_micros, 0), size + max(used, 0)
    return found


def _measured(graph, run_meta):
    """A node for each operation."""
    trainable = {getattr(v, "op", v).name for v in graph.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES)}
    steps, nodes, unknown = _steps_of(run_meta), [], 0
    for op in graph.get_operations():
        node = _Node(op.name)
        node.types = {op.type} | ({op.device} if op.device else set()) | ({"_trainable_variables"} if op.name in trainable else set())
        number = flops.flops(op)
        unknown += number is None
        node.counts["float_ops"] = number or 0
        node.counts["exec_micros"], node.counts["requested_bytes"] = steps.get(op.name, (0, 0))
        try:
            shape = op.get_attr("shape")
            dims = None if shape.unknown_rank else [d.size for d in shape.dim]
        except (ValueError, AttributeError):
            dims = None
        if dims and all(d > 0 for d in dims):
            node.dims = dims
            node.counts["parameters"] = 1
            for d in dims:
                node.counts["parameters"] *= d
        nodes.append(node)
    if unknown:
        print("%d ops no flops stats due to incomplete shapes." % unknown)
    return nodes


def _matches(texts, regexes):
    return any(regex == ".*" or re.fullmatch(regex, text) for text in texts for regex in regexes)


def _is_shown(node, options):
    if any(node.counts[c] < options.get(least, 0) for c, least in _LEAST.items()):
        return False
    return _matches([node.name], options["show_name_regexes"]) and not _matches([node.name], options["hide_name_regexes"])


def _sorted(found, options):
    """By the total of a count, the largest first; or by name."""
    count = _SELECTED.get(options["order_by"])
    key = (lambda p: p.name) if count is None else lambda p: (-getattr(p, "total_" + count), p.name)
    return sorted(found, key=key)


def _scopes(nodes):
    """The tree of names below the root."""
    root = _Node(_ROOT)
    by_name = {node.name: node for node in nodes}
    for name in sorted(by_name):
        at, parts = root, name.split("/")
        for i in range(len(parts)):
            prefix = "/".join(parts[:i + 1])
            if prefix not in at.below:
                at.below[prefix] = by_name.get(prefix) or _Node(prefix)
            at = at.below[prefix]
    return root


def _profile_scopes(root, options):
    def visit(node, depth):
        """(protos to show in place of the node, totals of all nodes below, whether one of them counts)"""
        accounted = _matches(node.types, options["account_type_regexes"])
        protos, totals, counts_below = [], dict(node.counts) if accounted else dict.fromkeys(_COUNTS, 0), False
        is_trimmed = _matches([node.name], options["trim_name_regexes"])
        for child in node.below.values():
            shown, sums, counts = visit(child, depth + 1)
            totals = {c: totals[c] + sums[c] for c in _COUNTS}
            counts_below |= counts
            if not is_trimmed:
                protos += shown
        if depth > options["max_depth"] or not (accounted or counts_below) or not _is_shown(node, options):
            return (protos if depth <= options["max_depth"] else []), totals, accounted or counts_below
        return [finish(node, accounted, protos, totals)], totals, True

    def finish(node, accounted, children, totals):
        proto = GraphNodeProto(node.name)
        proto._is_accounted = accounted
        proto._dims = node.dims
        proto.children = _sorted(children, options)
        for c in _COUNTS:
            own = node.counts[c] if accounted else 0
            setattr(proto, c, own)
            shown = own + sum(getattr(p, "total_" + c) for p in children)
            setattr(proto, "total_" + c, shown if options["account_displayed_op_only"] else totals[c])
        return proto

    protos, totals = [], dict.fromkeys(_COUNTS, 0)
    for child in root.below.values():
        if options["start_name_regexes"] != [".*"]:
            starts = _begins(child, options["start_name_regexes"])
        else:
            starts = [child]
        for start in starts:
            shown, sums, _ = visit(start, 1)
            protos += shown
            totals = {c: totals[c] + sums[c] for c in _COUNTS}
    return finish(root, False, protos, totals)


def _begins(node, regexes):
    """The topmost nodes whose names match."""
    if _matches([node.name], regexes):
        return [node]
    return [found for child in node.below.values() for found in _begins(child, regexes)]


def _profile_types(nodes, options):
    kinds = {}
    for node in nodes:
        for kind in node.types:
            if _matches([kind], options["account_type_regexes"]) or _matches(node.types, options["account_type_regexes"]):
                if kind.startswith("/"):
                    continue
                proto = kinds.setdefault(kind, MultiGraphNodeProto(kind))
                for c in _COUNTS:
                    setattr(proto, c, getattr(proto, c) + node.counts[c])
    kinds.pop("_trainable_variables", None)
    shown = []
    for proto in kinds.values():
        node = _Node(proto.name)
        node.counts = {c: getattr(proto, c) for c in _COUNTS}
        selected = [_SELECTED[s] for s in options["select"] if s in _SELECTED]
        if _is_shown(node, options) and any(node.counts[c] for c in selected):
            shown.append(proto)
    count = _SELECTED.get(options["order_by"])
    shown.sort(key=lambda p: (0 if count is None else -getattr(p, count), p.name))
    root = MultiGraphNodeProto(_ROOT)
    for c in _COUNTS:
        setattr(root, "total_" + c, sum(getattr(p, c) for p in shown))
    # Each kind has the totals of itself and of those after it.
    rest = {c: 0 for c in _COUNTS}
    for proto in reversed(shown):
        for c in _COUNTS:
            rest[c] += getattr(proto, c)
            setattr(proto, "total_" + c, rest[c])
    root.children = shown
    return root


def _short(number):
    """A count in at most four digits: 17.28k."""
    for size, letter in ((1e9, "b"), (1e6, "m"), (1e3, "k")):
        if number >= size:
            return "%.2f%s" % (number / size, letter)
    return "%d" % number


def _scope_lines(proto, options, depth=0):
    parts = []
    for choice in options["select"]:
        count = _SELECTED.get(choice)
        if count is None:
            continue
        own = _short(getattr(proto, count)) if proto._is_accounted else "--"
        text = "%s/%s %s" % (own, _short(getattr(proto, "total_" + count)), _UNITS[choice])
        if choice == "params" and proto._dims:
            text = "x".join(str(d) for d in proto._dims) + ", " + text
        parts.append(text)
    lines = ["%s%s (%s)" % ("  " * depth, proto.name, ", ".join(parts))]
    for child in proto.children:
        lines += _scope_lines(child, options, depth + 1)
    return lines


def _type_lines(root, options):
    lines = []
    for proto in root.children:
        parts = []
        for choice in options["select"]:
            count = _SELECTED.get(choice)
            if count is None:
                continue
            total = getattr(root, "total_" + count) or 1
            share = [100.0 * getattr(proto, name) / total for name in ("total_" + count, count)]
            unit = "float_ops" if choice == "float_ops" else _UNITS[choice]
            parts.append("%30s" % ("%s %s (%.2f%%, %.2f%%)" % (_short(getattr(proto, count)), unit, *share)))
        lines.append("%-25s%s" % (proto.name, "".join(parts)))
    return lines


def _report(command, proto, options):
    selected = [s for s in options["select"] if s in _SELECTED]
    lines = ["", "=========================Options============================="]
    order = ("max_depth min_bytes min_peak_bytes min_residual_bytes min_output_bytes min_micros min_accelerator_micros "
             "min_cpu_micros min_params min_float_ops min_occurrence step order_by account_type_regexes start_name_regexes "
             "trim_name_regexes show_name_regexes hide_name_regexes account_displayed_op_only select output").split()
    for name in order:
        value = options.get(name, 0)
        if name == "output":
            value = "%s:" % value if ":" not in value else value
        text = ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)
        lines.append("%-27s %s" % ("-" + name, text))
    lines += ["", "==================Model Analysis Report======================", "", "Doc:", "%s: %s" % (command, _DOCS[command])]
    lines += [_DOCS[s] for s in selected]
    lines += ["", "Profile:", "node name | " + " | ".join(_TITLES[s] for s in selected)]
    lines += _scope_lines(proto, options) if command == "scope" else _type_lines(proto, options)
    return "\n".join(lines + ["", "======================End of Report==========================", ""])


def _deliver(command, proto, options):
    kind, _, rest = options["output"].partition(":")
    if kind == "none":
        return
    if kind in ("timeline", "pprof"):
        raise NotImplementedError("tf.profiler: the output %r is not supported; use stdout, file or none. "
                                  "tf.profiler's timeline is `client.timeline.Timeline`." % kind)
    text = _report(command, proto, options)
    if kind == "file":
        with gfile.GFile(dict(p.split("=", 1) for p in rest.split(","))["outfile"], "w") as f:
            f.write(text)
    else:
        print(text, flush=True)


def _run(graph, run_meta, command, options):
    given = option_builder.ProfileOptionBuilder().build() if options is None or isinstance(options, int) else dict(options)
    options = {**option_builder._NAMES, **option_builder._LEAST, "order_by": "name", "select": ["micros"], **given}
    for name in options["select"] + [options["order_by"]]:
        if name not in _SELECTED and name not in ("name", "occurrence", "device", "op_types", "accelerator_micros", "cpu_micros",
                                                  "peak_bytes", "residual_bytes", "output_bytes", "input_shapes", "depth"):
            raise errors_impl.InvalidArgumentError(None, None, "unknown option: %s" % name)
        if name not in _SELECTED and name != "name":
            raise NotImplementedError("tf.profiler: %r is not supported; micros, bytes, params, float_ops and name are" % name)
    if command in ("graph", "code"):
        raise NotImplementedError("tf.profiler: cmd=%r is not supported; use 'scope' or 'op'" % command)
    if command not in ("scope", "op"):
        raise errors_impl.InvalidArgumentError(None, None, "unknown cmd: %s" % command)
    nodes = _measured(graph, run_meta)
    proto = _profile_scopes(_scopes(nodes), options) if command == "scope" else _profile_types(nodes, options)
    _deliver(command, proto, options)
    return proto


@export("profiler.profile")
def profile(graph=None, run_meta=None, op_log=None, cmd="scope", options=None):
    """Counts what a graph costs, shows it as `options` say, and returns the counts."""
    if op_log is not None:
        raise NotImplementedError("tf.profiler.profile: op_log is not supported")
    return _run(graph or ops.get_default_graph(), run_meta, cmd, options)


@export("profiler.Profiler")
class Profiler:
    """Profiles of a graph and of the steps that are added."""

    def __init__(self, graph=None, op_log=None):
        if op_log is not None:
            raise NotImplementedError("tf.profiler.Profiler: op_log is not supported")
        self._graph, self._steps = graph or ops.get_default_graph(), {}

    def add_step(self, step, run_meta):
        """Adds the RunMetadata of a step that was run with FULL_TRACE."""
        self._steps[step] = run_meta

    def _profile(self, command, options):
        step = (options or {}).get("step", -1)
        if step >= 0 and step not in self._steps:
            raise errors_impl.InvalidArgumentError(None, None, "unknown step: %d" % step)
        chosen = step if step >= 0 else max(self._steps, default=None)
        return _run(self._graph, self._steps.get(chosen), command, options)

    def profile_name_scope(self, options):
        return self._profile("scope", options)

    def profile_operations(self, options):
        return self._profile("op", options)

    def profile_python(self, options):
        return self._profile("code", options)

    def profile_graph(self, options):
        return self._profile("graph", options)


@export("contrib.tfprof.model_analyzer.print_model_analysis")
def print_model_analysis(graph, run_meta=None, op_log=None, tfprof_cmd="scope", tfprof_options=None):
    """`tf.profiler.profile` under its first name."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


TRAINABLE_VARS_PARAMS_STAT_OPTIONS = export("contrib.tfprof.model_analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS")(
    option_builder.ProfileOptionBuilder.trainable_variables_parameter())
FLOAT_OPS_OPTIONS = export("contrib.tfprof.model_analyzer.FLOAT_OPS_OPTIONS")(option_builder.ProfileOptionBuilder.float_operation())
