"""Graphs that become functions. Tensors of the graph around them are captured as arguments."""

import contextlib

import numpy as np

from ferroflow import _ferroflow
from ferroflow.core._messages import message_class
from ferroflow.python.framework import importer, ops

_PLAIN = (int, float, bool, complex, str, bytes, np.ndarray, np.generic, type(None))


def _root_name(name):
    """A name that a node outside of all scopes may have."""
    return name.lstrip("_") or "arg"


class FuncGraph(ops.Graph):
    """The body of a function, built inside another graph."""

    def __init__(self, name, outer_graph=None):
        super().__init__()
        self.name = name
        self.outer_graph = outer_graph if outer_graph is not None else ops.get_default_graph()
        self._building_function = True
        self.inputs = []
        self.captures = []
        self._captured = {}
        # What the function takes and returns, once it has been ended.
        self.arguments = []
        self.results = []
        self.seed = self.outer_graph.seed
        # Stateful conditions inside a body run with the body.
        self._functional_control_flow = True

    def add_input(self, dtype, shape, name):
        """A placeholder that becomes an argument."""
        op = super().apply_op("Placeholder", _root_name(name), [], {"dtype": dtype, "shape": shape})
        self.inputs.append(op.outputs[0])
        return op.outputs[0]

    def capture(self, tensor, name=None):
        """The argument for a tensor of an outer graph."""
        if tensor.graph is self:
            return tensor
        found = self._captured.get(id(tensor))
        if found is not None:
            return found[1]
        if tensor.graph is not self.outer_graph:
            outer = self.outer_graph
            if not isinstance(outer, FuncGraph):
                raise ValueError(f"Tensor {tensor.name} is neither of this function nor of the graph around it")
            tensor_outside = outer.capture(tensor)
        else:
            tensor_outside = tensor
        found = self._captured.get(id(tensor_outside))
        if found is not None:
            return found[1]
        with self.control_dependencies(None):
            scope, self._name_stack = self._name_stack, ""
            op = super().apply_op(
                "Placeholder", _root_name(name or tensor.op.name.rsplit("/", 1)[-1]), [], {"dtype": tensor.dtype.base_dtype, "shape": tensor.get_shape()}
            )
            self._name_stack = scope
        inner = op.outputs[0]
        if hasattr(tensor, "_handle_data"):
            inner._handle_data = tensor._handle_data
        self._captured[id(tensor)] = (tensor, inner)
        self._captured[id(tensor_outside)] = (tensor_outside, inner)
        self.captures.append((tensor_outside, inner))
        return inner

    def _adopt(self, value):
        if type(value) is ops.Tensor:
            return value if value.graph is self else self.capture(value)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, (list, tuple)):
            return [self._adopt(item) for item in value]
        if hasattr(value, "_as_graph_element") or hasattr(value, "handle"):
            with self.as_default():
                return self._adopt(ops.convert_to_tensor(value))
        return value

    def apply_op(self, op_type, name, inputs, attrs=None):
        return super().apply_op(op_type, name, [self._adopt(x) for x in inputs], attrs)

    def create_op(self, op_type, inputs, *args, **kwargs):
        return super().create_op(op_type, [self._adopt(x) for x in inputs], *args, **kwargs)

    _create_op_internal = create_op

    def control_dependencies(self, control_inputs):
        """Operations of outer graphs have run before the function does."""
        if control_inputs is not None:
            kept = []
            for item in control_inputs:
                graph = getattr(item, "graph", None)
                if graph is None or graph is self:
                    kept.append(item)
            control_inputs = kept
        return super().control_dependencies(control_inputs)

    def colocate_with(self, op, ignore_existing=False):
        graph = getattr(op, "graph", None)
        if graph is not None and graph is not self:
            return contextlib.nullcontext()
        return super().colocate_with(op, ignore_existing)

    def _add_function_def(self, function_def, gradient=None):
        """A function that the body uses belongs to the outermost graph."""
        super()._add_function_def(function_def, gradient)
        self.outer_graph._add_function_def(function_def, gradient)

    def finish(self, outputs, attrs=None):
        """Ends the body: returns its outputs after all that must run. Gives the function's definition."""
        must_run = [op for op in self.get_operations() if op._is_stateful and op.type != "Placeholder"]
        with self.as_default():
            identities = [super(FuncGraph, self).apply_op("Identity", None, [t]) for t in outputs]
            if must_run:
                with self.control_dependencies(must_run):
                    last = super().apply_op("NoOp", None, [])
                for op in identities:
                    op._add_control_inputs([last])
        results = [op.outputs[0] for op in identities]
        self.arguments = self._all_arguments()
        self.results = list(outputs)
        names = ["identity" if i == 0 else f"identity_{i}" for i in range(len(results))]
        controls = [] if identities else must_run
        return self._to_function(self.name, self.arguments, results, names, controls, attrs)

    def _all_arguments(self):
        """The arguments. Those of a body that was ended before keep their places."""
        known = {id(t) for t in self.arguments}
        found = self.inputs + [inner for _, inner in self.captures]
        return self.arguments + [t for t in found if id(t) not in known]


    def is_constant(self, tensor):
        """Whether a tensor is the same in all iterations of the loop whose body this is."""
        return any(a is tensor and r is tensor for a, r in zip(self.arguments, self.results))


def bodies(graph):
    """The bodies of the functions of a graph and of the graphs around it, by name."""
    while isinstance(graph, FuncGraph):
        graph = graph.outer_graph
    return graph.__dict__.setdefault("_function_bodies", {})


def from_definition(graph, name):
    """The body of a function of a graph, built again from its definition."""
    if not graph._has_function(name):
        raise ValueError(f"The graph has no function '{name}'.")
    definition = message_class("tensorflow.FunctionDef").FromString(graph._function_def(name))
    root = graph
    while isinstance(root, FuncGraph):
        root = root.outer_graph
    body = FuncGraph(name, graph)
    arguments = [arg.name for arg in definition.signature.input_arg]
    nodes = message_class("tensorflow.GraphDef")()
    nodes.library.CopyFrom(root.as_graph_def().library)
    for arg in definition.signature.input_arg:
        node = nodes.node.add(name=arg.name, op="Placeholder")
        node.attr["dtype"].type = arg.type
        node.attr["shape"].shape.unknown_rank = True
    first = {node.name: _first_outputs(graph, node) for node in definition.node_def}

    def flat(text):
        if text.startswith("^") or text in arguments:
            return text
        node, output, index = text.split(":")
        return f"{node}:{first[node][output] + int(index)}"

    for node in definition.node_def:
        copied = nodes.node.add()
        copied.CopyFrom(node)
        del copied.input[:]
        copied.input.extend(flat(text) for text in node.input)
    with body.as_default():
        importer.import_graph_def(nodes, name="")
        returned = [flat(definition.ret[arg.name]) for arg in definition.signature.output_arg]
        body.inputs = [body.get_tensor_by_name(f"{arg}:0") for arg in arguments]
        body.arguments = list(body.inputs)
        body.results = [body.get_tensor_by_name(r if ":" in r else f"{r}:0") for r in returned]
    return body


def _first_outputs(graph, node):
    """The number of the first tensor of each output of a node."""
    if graph._has_function(node.op):
        definition = message_class("tensorflow.FunctionDef").FromString(graph._function_def(node.op))
        outputs = definition.signature.output_arg
    else:
        outputs = message_class("tensorflow.OpDef").FromString(_ferroflow.op_def(node.op)).output_arg
    first, number = {}, 0
    for arg in outputs:
        first[arg.name] = number
        if arg.number_attr:
            number += node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            number += len(node.attr[arg.type_list_attr].list.type)
        else:
            number += 1
    return first


def copy_subgraph(tensor, name):
    """The definition of a function without arguments that computes a tensor as its graph does.

    Placeholders and variables cannot be copied: the function has its own world.
    """
    source = tensor.graph
    order, seen = [], set()

    def visit(op):
        stack = [(op, False)]
        while stack:
            current, done = stack.pop()
            if done:
                order.append(current)
                continue
            if current.name in seen:
                continue
            seen.add(current.name)
            if current.type in ("Placeholder", "PlaceholderV2"):
                raise ValueError(f"Cannot capture a placeholder (name:{current.name}, type:{current.type}) by value.")
            if current.type in ("VariableV2", "Variable", "VarHandleOp", "HashTableV2"):
                raise ValueError(f"Cannot capture a stateful node (name:{current.name}, type:{current.type}) by value.")
            stack.append((current, True))
            for t in reversed(list(current.inputs)):
                stack.append((t.op, False))
            for c in current.control_inputs:
                stack.append((c, False))

    visit(tensor.op)
    order.sort(key=lambda op: op._id)
    copied = message_class("tensorflow.GraphDef")()
    for op in order:
        node = copied.node.add()
        node.CopyFrom(op.node_def)
        if "_class" in node.attr:
            del node.attr["_class"]
    body = FuncGraph(name, source)
    with body.as_default():
        (result,) = importer.import_graph_def(copied, name="", return_elements=[tensor.name])
    return body._to_function(name, [], [result], [tensor.op.name.lower().replace("/", "_")], [], {"_disable_call_shape_inference": True})
