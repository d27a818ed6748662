"""Backward functions for ops whose bodies are functions: calls, If, Case and While.

The gradient of a body is a separate function, built in a graph beside it. It reads tensors of the
forward body, which become additional results of the forward op: outputs of a call or a conditional,
lists with an element for each iteration of a loop.
"""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import func_graph
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops


def body_of(op, attr):
    """The graph of the function that an attribute of `op` names."""
    return _body_named(op.graph, getattr(op.get_attr(attr), "name", op.get_attr(attr)))


def bodies_of(op, attr):
    """The same for an attribute with a list of functions."""
    return [_body_named(op.graph, getattr(f, "name", f)) for f in op.get_attr(attr)]


def _body_named(graph, name):
    known = func_graph.bodies(graph)
    if name not in known:
        known[name] = func_graph.from_definition(graph, name)
    return known[name]


class BackwardGraph(func_graph.FuncGraph):
    """The gradient of a body. `taken` has a pair for each tensor that comes from outside."""

    def __init__(self, body, keeps_each_iteration=False):
        super().__init__("gradient_of_%s_%d" % (body.name, ops.uid()), body)
        self._keeps = keeps_each_iteration
        # The scope of the outermost call of `gradients`, which names gradients of TensorArrays.
        graph = ops.get_default_graph()
        self.gradient_source = getattr(graph, "gradient_source", graph._name_stack)
        # Pairs of a tensor of the body, or of a graph around it, and the argument for it.
        self.taken = []
        # Pairs of a tensor of a loop's body and the argument for the list of its values.
        self.stacked = []
        # What the lists are when an iteration has taken its values from them.
        self.rest = []

    def capture(self, tensor, name=None):
        if tensor.graph is self:
            return tensor
        found = self._captured.get(id(tensor))
        if found is None:
            found = self._captured[id(tensor)] = (tensor, self._bring(tensor))
        return found[1]

    def _bring(self, tensor):
        if tensor.op.type == "Const":
            return self._at_root("Const", {"dtype": tensor.dtype, "value": tensor.op.get_attr("value")})
        of_body = tensor.graph is self.outer_graph
        if self._keeps and of_body and not self.outer_graph.is_constant(tensor):
            handle = self._at_root("Placeholder", {"dtype": dtypes.variant, "shape": []})
            self.stacked.append((tensor, handle))
            with self.control_dependencies(None):
                rest, value = gen_ops.TensorListPopBack(
                    handle, element_shape_of(tensor), element_dtype=tensor.dtype.base_dtype)
            self.rest.append(rest)
            value.set_shape(tensor.get_shape())
            return value
        inner = self._at_root("Placeholder", {"dtype": tensor.dtype.base_dtype, "shape": tensor.get_shape()})
        if hasattr(tensor, "_handle_data"):
            inner._handle_data = tensor._handle_data
        self.taken.append((tensor, inner))
        return inner

    def _at_root(self, op_type, attrs):
        with self.control_dependencies(None):
            return self.create_op(op_type, [], attrs=attrs, name=op_type).outputs[0]

    def take_from(self, graph, source):
        """Ends the references to the body: arguments come from `graph`, by `source(tensor)`."""
        self.outer_graph, self._captured, self.captures = graph, {}, []
        for tensor, inner in self.taken:
            outside = here(graph, source(tensor))
            if id(outside) in self._captured:
                outside = array_ops.identity(outside)
            self._captured[id(outside)] = (outside, inner)
            self.captures.append((outside, inner))

    def backprop(self, ys, xs, grad_ys):
        """The gradients of tensors of the body, dense, or None."""
        from ferroflow.python.ops import gradients_impl

        pairs = [(y, g) for y, g in zip(ys, grad_ys) if y is not None]
        if not pairs or not xs:
            return [None] * len(xs)
        found = gradients_impl.gradients([y for y, _ in pairs], xs, [g for _, g in pairs])
        return [None if g is None else ops.convert_to_tensor(g) for g in found]


def here(graph, tensor):
    """The tensor as `graph` sees it: captured if `graph` is a function inside the tensor's."""
    return graph.capture(tensor) if isinstance(graph, func_graph.FuncGraph) else tensor


def element_shape_of(tensor):
    shape = tensor.get_shape()
    if shape.ndims is None:
        return -1
    return ops.convert_to_tensor([-1 if d is None else d for d in shape.as_list()], dtypes.int32)


def variable_dtype(tensor):
    """The dtype of a resource's variable; None for other resources."""
    while True:
        if tensor.op.type == "VarHandleOp":
            return dtypes.as_dtype(tensor.op.get_attr("dtype"))
        if tensor.op.type in ("Identity", "Enter", "Switch"):
            tensor = tensor.op.inputs[0]
            continue
        outer = getattr(tensor.graph, "captures", ())
        found = [outside for outside, inner in outer if inner is tensor]
        if not found:
            return None
        tensor = found[0]


def is_differentiable(tensor):
    kind = tensor.dtype.base_dtype
    if kind == dtypes.resource:
        return variable_dtype(tensor) is not None
    return kind.is_floating or kind.is_complex or kind == dtypes.variant


def zeros_for(tensor):
    """Zeros for the gradient of a tensor; of a variable's, if it is a handle."""
    kind = tensor.dtype.base_dtype
    if kind == dtypes.resource:
        return array_ops.zeros(gen_ops.VariableShape(tensor), dtype=variable_dtype(tensor))
    if kind == dtypes.variant:
        return gen_ops.ZerosLike(tensor)
    return array_ops.zeros_like(tensor)


def set_function(op, body, extra=()):
    """Ends a body again, with more results, under a new name; adds it to the op's graph."""
    body.name = "%s_%d" % (body.name.split("_with_")[0] + "_with_values", ops.uid())
    op.graph._add_function_def(body.finish(list(body.results) + list(extra)))
    func_graph.bodies(op.graph)[body.name] = body
    return body.name


class _Branches:
    """The gradient of a call or a conditional: for each body a backward function."""

    def __init__(self, op, bodies, first, grads):
        self.op, self.bodies, self.first = op, bodies, first
        self.inputs = list(op.inputs)[first:]
        self.live = [(i, g) for i, g in enumerate(grads)
                     if g is not None and i < len(bodies[0].results)]
        self.backs, self.found = [], []

    def build(self):
        """Builds the backward graphs; returns which inputs have a gradient."""
        wanted = [k for k, x in enumerate(self.inputs) if is_differentiable(x)]
        for body in self.bodies:
            back = BackwardGraph(body)
            with back.as_default():
                dys = [back.add_input(g.dtype.base_dtype, g.get_shape(), "dy") for _, g in self.live]
                ys = [body.results[i] for i, _ in self.live]
                dxs = back.backprop(ys, [body.arguments[k] for k in wanted], dys)
            self.backs.append(back)
            self.found.append(dict(zip(wanted, dxs)))
        kept = [k for k in wanted if any(one[k] is not None for one in self.found)]
        for body, back, one in zip(self.bodies, self.backs, self.found):
            with back.as_default():
                for k in kept:
                    if one[k] is None:
                        one[k] = zeros_for(back.capture(body.arguments[k]))
        return kept

    def keep_values(self):
        """Makes the tensors that the backward functions read outputs of the forward op.

        Returns for each branch the number of the output for each tensor.
        """
        op, needed = self.op, []
        for body, back in zip(self.bodies, self.backs):
            needed.append([t for t, _ in back.taken if t.graph is body
                           and not any(t is a for a in body.arguments)])
        numbers = [{} for _ in self.bodies]
        total = [t for some in needed for t in some]
        if not total:
            return numbers
        number = len(op.outputs)
        for mine, some in zip(numbers, needed):
            for t in some:
                mine[id(t)] = number
                number += 1
        names = []
        for body, some in zip(self.bodies, needed):
            extra, own = [], {id(t) for t in some}
            with body.as_default():
                for t in total:
                    extra.append(t if id(t) in own else gen_ops.FakeParam(
                        dtype=t.dtype.base_dtype, shape=t.get_shape()))
            body.results = list(body.results) + extra
            names.append(set_function(op, body))
        op._widen([], self._attrs(names, total))
        for t, output in zip(total, op.outputs[-len(total):]):
            output.set_shape(t.get_shape())
        return numbers

    def _attrs(self, names, total):
        op = self.op
        attrs = {"Tout": [t.dtype.base_dtype for t in op.outputs] +
                         [t.dtype.base_dtype for t in total]}
        if op.type in ("If", "StatelessIf"):
            attrs["then_branch"], attrs["else_branch"] = names
        elif op.type in ("Case", "StatelessCase"):
            attrs["branches"] = names
        else:
            attrs["f"] = names[0]
        if "output_shapes" in op._attr_names() and op.get_attr("output_shapes"):
            attrs["output_shapes"] = [t.get_shape() for t in list(op.outputs) + total]
        return attrs

    def run(self, make):
        """The gradients of all arguments. `make(bodies, outputs)` adds the backward op."""
        kept = self.build()
        if not kept:
            return [None] * len(self.inputs)
        numbers = self.keep_values()
        graph = ops.get_default_graph()
        for body, back, mine in zip(self.bodies, self.backs, numbers):
            arguments = {id(a): x for a, x in zip(body.arguments, self.inputs)}

            def source(tensor, arguments=arguments, mine=mine):
                if id(tensor) in arguments:
                    return arguments[id(tensor)]
                return self.op.outputs[mine[id(tensor)]] if id(tensor) in mine else tensor

            back.taken = [(g, dy) for (_, g), dy in zip(self.live, back.inputs)] + back.taken
            back.inputs = []
            back.take_from(graph, source)
        results = make(self.backs, [[one[k] for k in kept] for one in self.found])
        by_input = dict(zip(kept, results))
        return [by_input.get(k) for k in range(len(self.inputs))]


def branch_gradients(op, bodies, first, grads, make):
    """The gradients of the inputs of a call or conditional, without its first inputs."""
    return _Branches(op, bodies, first, grads).run(make)


class _Loop:
    """The gradient of a loop: a loop that runs the iterations backwards."""

    def __init__(self, op, grads):
        self.op = op
        self.body, self.cond = body_of(op, "body"), body_of(op, "cond")
        self.inputs = list(op.inputs)
        self.active = self._active(grads)
        self.grads = [grads[k] for k in self.active]

    def _active(self, grads):
        """The loop variables whose gradient may not be zero."""
        results, arguments = self.body.results, self.body.arguments
        place = {id(a): k for k, a in enumerate(arguments)}
        active = {k for k, g in enumerate(grads) if g is not None and is_differentiable(self.inputs[k])}
        queue, seen = [results[k] for k in active], set()
        while queue:
            tensor = queue.pop()
            k = place.get(id(tensor))
            if k is not None and k not in active and is_differentiable(self.inputs[k]):
                active.add(k)
                queue.append(results[k])
            if tensor.op.name not in seen:
                seen.add(tensor.op.name)
                queue.extend(tensor.op.inputs)
        return sorted(active)

    def run(self, make):
        """The gradients of all inputs. `make(cond, body, start, shapes)` adds the backward loop."""
        if not self.active:
            return [None] * len(self.inputs)
        start = [self._zeros(k) if g is None else ops.convert_to_tensor(g)
                 for k, g in zip(self.active, self.grads)]
        back, returned = self._backward_body(start)
        lists, counter = self._keep_values([t for t, _ in back.stacked])
        graph = ops.get_default_graph()
        outputs = self.op.outputs
        sources = {id(a): x for a, x in zip(self.body.arguments, self.inputs)}
        values = [outputs[counter]] + start + [outputs[i] for i in lists]
        invariant = [sources.get(id(t), t) for t, _ in back.taken]
        values = [here(graph, v) for v in values + invariant]
        back.inputs = back.inputs + [handle for _, handle in back.stacked] + [
            inner for _, inner in back.taken]
        back.captures, back.outer_graph = [], graph
        returned = returned + back.rest + [inner for _, inner in back.taken]
        shapes = [t.get_shape() for t in back.inputs]
        cond = func_graph.FuncGraph("condition_of_" + back.name, graph)
        with cond.as_default():
            args = [cond.add_input(t.dtype.base_dtype, t.get_shape(), "arg") for t in values]
            more = gen_ops.Greater(args[0], ops.convert_to_tensor(0, dtypes.int32))
        results = make((cond, [more]), (back, returned), values, shapes)
        by_input = dict(zip(self.active, results[1:]))
        return [by_input.get(k) for k in range(len(self.op.inputs))]

    def _zeros(self, k):
        """The gradient of a result that nothing depends on. A handle is the same before a loop."""
        handle = self.inputs[k].dtype.base_dtype == dtypes.resource
        return zeros_for(self.inputs[k] if handle else self.op.outputs[k])

    def _backward_body(self, start):
        """One iteration backwards: takes a counter and the gradients after it."""
        body, active = self.body, self.active
        back = BackwardGraph(body, keeps_each_iteration=True)
        with back.as_default():
            counter = back.add_input(dtypes.int32, tensor_shape.TensorShape([]), "counter")
            dys = [back.add_input(g.dtype.base_dtype, g.get_shape(), "dy") for g in start]
            # The gradient of a value that the body hands on is added to that of its uses.
            same = [body.results[k] is body.arguments[k] for k in active]
            ys = [None if s else body.results[k] for k, s in zip(active, same)]
            dxs = back.backprop(ys, [body.arguments[k] for k in active], dys)
            returned = [math_ops.subtract(counter, ops.convert_to_tensor(1, dtypes.int32))]
            for dx, dy, handed_on in zip(dxs, dys, same):
                if dx is None:
                    dx = dy if handed_on else gen_ops.ZerosLike(dy)
                elif handed_on:
                    dx = math_ops.add_n([dy, dx])
                returned.append(dx)
        return back, returned

    def _keep_values(self, needed):
        """Makes the forward loop count its iterations and collect the values of tensors.

        Returns the numbers of the outputs with the lists, and that of the counter.
        """
        body, op = self.body, self.op
        kept = body.__dict__.setdefault("_kept_values", {})
        new = [t for t in needed if id(t) not in kept]
        counts = "_iteration_counter" not in body.__dict__
        if new or counts:
            first = len(self.inputs)
            starts = self._collect(new, counts, kept, first)
            shapes = [t.get_shape() for t in op.outputs] + [t.get_shape() for t in starts]
            kinds = [t.dtype.base_dtype for t in op.inputs] + [t.dtype.base_dtype for t in starts]
            op._widen(starts, {"T": kinds, "output_shapes": shapes,
                               "body": set_function(op, body), "cond": set_function(op, self.cond)})
        return [kept[id(t)][0] for t in needed], body._iteration_counter

    def _collect(self, new, counts, kept, number):
        """Adds the arguments and results of the forward functions; returns their first values."""
        body, op, starts = self.body, self.op, []

        def extend(dtype, result):
            with self.cond.as_default():
                self.cond.arguments.append(self.cond.add_input(dtype, [], "unused"))
            with body.as_default():
                argument = body.add_input(dtype, [], "collected")
                body.arguments.append(argument)
                body.results = list(body.results) + [result(argument)]

        with op.graph.as_default(), ops.control_dependencies(None), ops.device(op.device or None):
            if counts:
                extend(dtypes.int32, lambda c: math_ops.add(c, ops.convert_to_tensor(1, dtypes.int32)))
                starts.append(ops.convert_to_tensor(0, dtypes.int32))
                body._iteration_counter = number
                number += 1
            for t in new:
                extend(dtypes.variant, lambda handle, t=t: gen_ops.TensorListPushBack(handle, t))
                starts.append(gen_ops.EmptyTensorList(
                    element_shape_of(t), ops.convert_to_tensor(-1, dtypes.int32),
                    element_dtype=t.dtype.base_dtype))
                kept[id(t)] = (number, t)
                number += 1
        return starts


def loop_gradients(op, grads, make):
    """The gradients of the inputs of a functional loop."""
    return _Loop(op, grads).run(make)
