"""Functions of a graph: `Defun` of version 1 and `tf.function` inside graphs."""

import base64
import hashlib

from ferroflow.core._messages import message_class
from ferroflow.python.framework import dtypes, func_graph, ops


class Defun:
    """`@Defun(tf.float32, …)` makes a Python function a function of the graph.

    A call is a node whose op is the function. Without types the function is made for the types of
    each call.
    """

    def __init__(self, *input_types, **kwargs):
        self._input_types = [dtypes.as_dtype(t) for t in input_types]
        self._func_name = kwargs.pop("func_name", None)
        self._options = kwargs

    def __call__(self, func):
        if not callable(func):
            raise ValueError(f"Function {func} must be a callable.")
        if self._input_types or _arguments_of(func) == 0:
            return DefinedFunction(func, self._input_types, self._func_name, self._options)
        return OverloadedFunction(func, self._func_name, self._options)


def _arguments_of(func):
    import inspect

    return len(inspect.signature(func).parameters)


class DefinedFunction:
    """A function with declared argument types."""

    def __init__(self, func, input_types, func_name, options):
        self._func, self._input_types, self._func_name = func, list(input_types), func_name
        self._options = options
        self._body = None
        self._data = None
        self.grad_func_name = None
        grad = options.get("grad_func")
        if grad is not None:
            self.grad_func_name = grad if isinstance(grad, str) else None
            self._grad_func = grad

    def _make(self):
        if self._data is not None:
            return
        outer = ops.get_default_graph()
        base = self._func_name or self._func.__name__
        body = func_graph.FuncGraph(base, outer)
        names = list(_argument_names(self._func, len(self._input_types)))
        with body.as_default():
            arguments = [body.add_input(t, None, n) for t, n in zip(self._input_types, names)]
            returned = self._func(*arguments)
            self._single = not isinstance(returned, (list, tuple))
            outputs = [returned] if self._single else list(returned)
            outputs = [] if returned is None or isinstance(returned, ops.Operation) else outputs
            outputs = [body.capture(ops.convert_to_tensor(x)) for x in outputs]
        inputs = body.inputs + [inner for _, inner in body.captures]
        names = [f"{_lowered(t.op.name)}_0" for t in outputs]
        if self._func_name is None:
            text = bytes(body._to_function(base, inputs, outputs, names))
            digest = hashlib.sha1(text).digest()
            self._name = base + "_" + base64.b64encode(digest, b"ab")[:11].decode("ascii")
        else:
            self._name = self._func_name
        must_run = [op for op in body.get_operations() if op._is_stateful and op.type != "Placeholder"]
        self._data = bytes(body._to_function(self._name, inputs, outputs, names, must_run))
        self._body = body

    @property
    def name(self):
        self._make()
        return self._name

    @property
    def definition(self):
        self._make()
        return message_class("tensorflow.FunctionDef").FromString(self._data)

    @property
    def captured_inputs(self):
        self._make()
        return [outside for outside, _ in self._body.captures]

    @property
    def declared_input_types(self):
        return list(self._input_types)

    def add_to_graph(self, graph):
        self._make()
        gradient = getattr(self, "_grad_func", None)
        if isinstance(gradient, DefinedFunction):
            gradient.add_to_graph(graph)
            gradient = gradient.name
        if not graph._has_function(self._name):
            # Functions that the body calls come first.
            for inner in self._body._function_names():
                if not graph._has_function(inner):
                    graph._add_function_def(self._body._function_def(inner))
            graph._add_function_def(self._data, gradient)
        graph._python_functions[self._name] = self

    def __call__(self, *args, **kwargs):
        name = kwargs.pop("name", None)
        self._make()
        graph = ops.get_default_graph()
        if len(args) != len(self._input_types):
            raise ValueError(f"Expected number of arguments: {len(self._input_types)}, received: {len(args)}")
        self.add_to_graph(graph)
        inputs = [ops.convert_to_tensor(a, t) for a, t in zip(args, self._input_types)]
        inputs += self.captured_inputs
        if isinstance(graph, func_graph.FuncGraph):
            inputs = [graph.capture(t) for t in inputs]
        op = graph._create_op(self._name, inputs, {}, name)
        outputs = op.outputs
        if not outputs:
            return op
        return outputs[0] if len(outputs) == 1 else outputs


class OverloadedFunction:
    """A function that is made for the types of each call."""

    def __init__(self, func, func_name, options):
        self._func, self._func_name, self._options = func, func_name, options
        self._made = {}

    def __call__(self, *args, **kwargs):
        tensors = [ops.convert_to_tensor(a) for a in args]
        types = tuple(t.dtype.base_dtype for t in tensors)
        if types not in self._made:
            self._made[types] = DefinedFunction(self._func, types, self._func_name, self._options)
        return self._made[types](*tensors, **kwargs)


def _argument_names(func, count):
    import inspect

    names = [p.name for p in inspect.signature(func).parameters.values()]
    return (names + [f"arg{i}" for i in range(count)])[:count]


def _lowered(name):
    return "".join(c.lower() if c.isalnum() else "_" for c in name)


class Function:
    """`tf.function` inside a graph: a call is a `PartitionedCall`."""

    def __init__(self, python_function, input_signature=None):
        self.python_function, self._signature = python_function, input_signature
        self.__name__ = getattr(python_function, "__name__", "function")
        self._made = {}

    def __call__(self, *args, **kwargs):
        from ferroflow.python.util import nest

        flat = nest.flatten([list(args), kwargs])
        positions = [i for i, x in enumerate(flat) if isinstance(x, ops.Tensor) or hasattr(x, "_as_graph_element")]
        tensors = [ops.convert_to_tensor(flat[i]) if not _is_variable(flat[i]) else flat[i] for i in positions]
        graph = ops.get_default_graph()
        inputs = [t for t in tensors if isinstance(t, ops.Tensor)]
        body = func_graph.FuncGraph(f"__inference_{_plain(self.__name__)}_{ops.uid()}", graph)
        with body.as_default():
            inner = list(flat)
            for i, t in zip(positions, tensors):
                if isinstance(t, ops.Tensor):
                    inner[i] = body.add_input(t.dtype.base_dtype, t.shape, t.op.name.rsplit("/", 1)[-1])
            call_args, call_kwargs = nest.pack_sequence_as([list(args), kwargs], inner)
            returned = self.python_function(*call_args, **call_kwargs)
            outputs = [] if returned is None else nest.flatten(returned)
            kept = [ops.convert_to_tensor(x) for x in outputs if x is not None and not isinstance(x, ops.Operation)]
            _in_order(body)
        data = bytes(body.finish(kept))
        graph._add_function_def(data)
        func_graph.bodies(graph)[body.name] = body
        stateful = any(op._is_stateful and op.type != "Placeholder" for op in body.get_operations())
        inputs = inputs + [outside for outside, _ in body.captures]
        op = ops.apply_op(
            "StatefulPartitionedCall" if stateful else "PartitionedCall",
            None,
            [inputs],
            {"Tout": [t.dtype.base_dtype for t in kept], "f": body.name},
        )
        results = iter(op.outputs)
        for made, inside in zip(op.outputs, kept):
            made.set_shape(inside.shape)
        if returned is None:
            return op
        values = [None if x is None or isinstance(x, ops.Operation) else next(results) for x in outputs]
        return nest.pack_sequence_as(returned, values)

    def get_concrete_function(self, *args, **kwargs):
        raise NotImplementedError("concrete functions belong to TensorFlow 2; call the function in a graph")


def _plain(name):
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def _is_variable(value):
    return hasattr(value, "handle") and not isinstance(value, ops.Tensor)


def _in_order(body):
    """Operations with an effect run in the order in which the function makes them."""
    before = None
    for op in body.get_operations():
        if op._is_stateful and op.type != "Placeholder":
            if before is not None:
                op._add_control_input(before)
            before = op


def function(func=None, input_signature=None, autograph=True, **options):
    """`tf.function`."""
    del autograph, options
    if func is None:
        return lambda f: Function(f, input_signature)
    return Function(func, input_signature)
