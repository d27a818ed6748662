"""`tf.gradients`: adds the ops that compute derivatives."""

import collections
import contextlib
import enum

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import gradient_registry
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export

IndexedSlices = indexed_slices.IndexedSlices
_TRAINABLE = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.complex64,
              dtypes.complex128, dtypes.resource, dtypes.variant)

_TRAINABLE_NUMBERS = [int(t.as_datatype_enum) for t in _TRAINABLE]


@export("AggregationMethod")
class AggregationMethod:
    """How the gradients of a tensor that is used several times are summed."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@export("UnconnectedGradients")
class UnconnectedGradients(enum.Enum):
    """The gradient of an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


def is_trainable(tensor):
    """Whether a tensor can have a gradient."""
    return tensor.dtype.base_dtype in _TRAINABLE


def _as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


@export("gradients")
def gradients(ys, xs, grad_ys=None, name="gradients", colocate_gradients_with_ops=False,
              gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):
    """The sum of the derivatives of `ys` with respect to each of `xs`."""
    work = _Backprop(name, colocate_gradients_with_ops, gate_gradients, aggregation_method)
    return work.run(_as_list(ys), _as_list(xs), grad_ys, stop_gradients, unconnected_gradients)


class _Backprop:
    """One call of `gradients`."""

    def __init__(self, name, colocate, gate, aggregation, graph=None):
        self.name = name
        self.colocate = colocate
        self.gate = gate
        self.aggregation = aggregation
        self.graph = graph or ops.get_default_graph()
        self.grads = {}
        self.loop_state = None
        self.uid = None

    def run(self, ys, xs, grad_ys, stop_gradients, unconnected):
        ys = [ops.convert_to_tensor(y) if hasattr(y, "_dense_var_to_tensor")
              or hasattr(y, "handle") and not isinstance(y, ops.Tensor) else y for y in ys]
        xs = [_differentiable(x) for x in xs]
        stops = [] if stop_gradients is None else _as_list(stop_gradients)
        grad_ys = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
        if len(grad_ys) != len(ys):
            raise ValueError("Length mismatch. Passed %d grad_ys for %d ys" % (
                len(grad_ys), len(ys)))
        unconnected = UnconnectedGradients(unconnected)
        with ops.name_scope(self.name, "gradients", ys + xs + stops + grad_ys):
            self.uid = self.graph.unique_name("uid")
            ys = indexed_slices.convert_n_to_tensor_or_indexed_slices(ys, name="y")
            xs = indexed_slices.internal_convert_n_to_tensor_or_indexed_slices(
                xs, name="x", as_ref=True)
            grad_ys = indexed_slices.convert_n_to_tensor_or_indexed_slices(grad_ys, name="grad_y")
            grad_ys = self._initial(grad_ys, ys)
            self._walk(ys, xs, grad_ys, stops)
        if self.loop_state is not None:
            self.loop_state.PostProcessing()
        return [self._result(x, unconnected) for x in xs]

    # ------------------------------------------------------------ the start

    def _initial(self, grad_ys, ys):
        """The gradients of the ys: the given ones, or ones."""
        made = []
        for i, (grad, y) in enumerate(zip(grad_ys, ys)):
            with self._colocated(y.op):
                if grad is None:
                    if y.dtype.is_complex:
                        raise TypeError("Gradients of complex tensors (%s) must set grad_ys "
                                        "(y.dtype = %s)" % (y, y.dtype.name))
                    made.append(array_ops.ones(array_ops.shape(y), dtype=y.dtype,
                                               name="grad_ys_%d" % i))
                    continue
                _check_grad_y(grad, y, i)
                if isinstance(grad, IndexedSlices):
                    made.append(IndexedSlices(
                        array_ops.identity(grad.values, name="grad_ys_%d_values" % i),
                        array_ops.identity(grad.indices, name="grad_ys_%d_indices" % i)
                        if isinstance(grad.indices, ops.Tensor) else grad.indices,
                        array_ops.identity(grad.dense_shape, name="grad_ys_%d_shape" % i)
                        if isinstance(grad.dense_shape, ops.Tensor) else grad.dense_shape))
                else:
                    made.append(array_ops.identity(grad, name="grad_ys_%d" % i))
        return made

    def _pending(self, to_ops, from_ops):
        """The ops between xs and ys, with how many of their consumers are still to be done."""
        graph = to_ops[0].graph if to_ops else self.graph
        reached = graph._dependents([op for op in from_ops if op.graph is graph],
                                    _TRAINABLE_NUMBERS)
        reachable = {op for op in to_ops if reached[op._id]}
        between, order = set(), []
        queue = collections.deque(to_ops)
        while queue:
            op = queue.popleft()
            if reached[op._id]:
                reached[op._id] = False
                between.add(op)
                order.append(op)
                for x in op.inputs:
                    queue.append(x.op)
        if any(control_flow_util.is_loop_exit(op) for op in order):
            from ferroflow.python.ops import control_flow_state
            self.loop_state = control_flow_state.make(order, between, self.colocate)
        pending = collections.defaultdict(int)
        for op in order:
            for x in op.inputs:
                if x.op in between:
                    pending[x.op] += 1
        return reachable, pending

    def _walk(self, ys, xs, grad_ys, stops):
        to_ops = [y.op for y in ys]
        from_ops = [x.op for x in xs]
        reachable, pending = self._pending(to_ops, from_ops)
        for y, grad in zip(ys, grad_ys):
            self._add(y, grad)
        queue, started = collections.deque(), set()
        for op in to_ops:
            if pending[op] == 0 and op not in started and op in reachable:
                started.add(op)
                queue.append(op)
        if self.loop_state is not None:
            for y in self.loop_state.ProcessUnusedLoopExits(pending, started):
                if is_trainable(y):
                    self._add(y, self.loop_state.ZerosLikeForExit(y))
                    queue.append(y.op)
        stop_ops = {t.op for t in stops}
        for op in from_ops:
            if not any(pending[x.op] > 0 for x in op.inputs):
                stop_ops.add(op)
        while queue:
            op = queue.popleft()
            self._visit(op, stop_ops)
            self._ready(op, queue, pending)

    # -------------------------------------------------------------- one op

    def _visit(self, op, stop_ops):
        state = self.loop_state
        with self._colocated(op):
            if state is not None:
                state.EnterGradWhileContext(op, before=True)
            out_grads = self._aggregated(op)
            if state is not None:
                state.ExitGradWhileContext(op, before=True)
            given = any(isinstance(g, (ops.Tensor, IndexedSlices)) or g for g in out_grads)
            function, called = None, None
            if given and op not in stop_ops:
                function, called = self._function_of(op)
            if state is not None:
                state.EnterGradWhileContext(op, before=False)
            if (function is not None or called is not None) and given:
                in_grads = self._call(op, function, called, out_grads)
            else:
                in_grads = [None] * len(op.inputs)
            self._hand_on(op, in_grads)
            if state is not None:
                state.ExitGradWhileContext(op, before=False)

    def _function_of(self, op):
        """The gradient function of an op; or the graph function that it calls."""
        try:
            return gradient_registry.get_gradient_function(op), None
        except LookupError:
            called = getattr(op, "_defun", None)
            name = op.type
            if called is None and op.type in ("PartitionedCall", "StatefulPartitionedCall"):
                name = getattr(op.get_attr("f"), "name", op.get_attr("f"))
            if called is None and hasattr(self.graph, "_get_function"):
                called = self.graph._get_function(name)
            if called is None:
                raise LookupError(
                    "No gradient defined for operation'%s' (op type: %s). In general every "
                    "operation must have an associated `@tf.RegisterGradient` for correct "
                    "autodiff, which this op is lacking. If you want to pretend this operation "
                    "is a constant in your program, you may insert `tf.stop_gradient`." % (
                        op.name, op.type)) from None
            return getattr(called, "python_grad_func", None), called

    def _call(self, op, function, called, out_grads):
        keeps_none = getattr(function, "takes_none", False)
        for i, grad in enumerate(out_grads):
            if not keeps_none and not isinstance(
                    grad, (ops.Tensor, IndexedSlices)) and not grad and (
                    (function is None and called is not None) or is_trainable(op.outputs[i])):
                out_grads[i] = self._zeros(op, i)
        with ops.name_scope(op.name + "_grad"):
            with self.graph._original_op(op):
                if function is not None:
                    in_grads = _as_list(function(op, *out_grads))
                else:
                    in_grads = _symbolic(op, out_grads)
                in_grads = list(in_grads)
                if len(in_grads) != len(op.inputs):
                    raise ValueError("Num gradients %d generated for op %s do not match num "
                                     "inputs %d" % (len(in_grads), op.name, len(op.inputs)))
                if self.gate and len([x for x in in_grads if x is not None]) > 1:
                    from ferroflow.python.ops import control_flow_ops
                    with ops.device(None), ops.colocate_with(None, ignore_existing=True):
                        in_grads = control_flow_ops.tuple(in_grads)
        return in_grads

    def _zeros(self, op, index):
        """The gradient of an output that the ys do not depend on."""
        if self.loop_state is not None:
            result = self.loop_state.ZerosLikeV1WhileLoop(op, index)
            if result is not None:
                result._is_zeros_tensor = True
            return result
        value = op.outputs[index]
        if value.dtype == dtypes.resource:
            return array_ops.zeros(gen_ops.VariableShape(value),
                                   dtype=getattr(value, "_handle_dtype", dtypes.float32))
        if value.dtype == dtypes.variant:
            return gen_ops.ZerosLike(value)
        if control_flow_util.is_switch(op):
            from ferroflow.python.ops import control_flow_state
            return control_flow_state.zeros_for_switch(op, index)
        result = array_ops.zeros_like(value, optimize=False)
        result._is_zeros_tensor = True
        return result

    def _hand_on(self, op, in_grads):
        for i, (x, grad) in enumerate(zip(op.inputs, in_grads)):
            if grad is None:
                continue
            if isinstance(grad, ops.Tensor) and x.dtype != dtypes.resource:
                try:
                    grad.set_shape(x.get_shape())
                except ValueError:
                    raise ValueError(
                        "Incompatible shapes between op input and calculated input gradient. "
                        "Forward operation: %s. Input index: %d. Original input shape: %s. "
                        "Calculated input gradient shape: %s" % (
                            op.name, i, x.get_shape(), grad.get_shape())) from None
            self._add(x, grad)

    def _ready(self, op, queue, pending):
        state = self.loop_state
        for x in op.inputs:
            pending[x.op] -= 1
            ready = pending[x.op] == 0
            if state is not None and not ready:
                ready = pending[x.op] > 0 and control_flow_util.is_loop_switch(x.op)
            if not ready:
                continue
            if control_flow_util.is_loop_exit(x.op):
                self._exit_ready(x, queue)
            else:
                queue.append(x.op)

    def _exit_ready(self, exit_tensor, queue):
        """An exit of a loop is processed together with the loop's other exits."""
        grad_state = self.loop_state.GetGradState(exit_tensor.op, before=False)
        grad_state.deferred_exits.append(exit_tensor)
        grad_state.pending_exits_count -= 1
        if grad_state.pending_exits_count:
            return
        used = False
        for y in grad_state.deferred_exits:
            if self._has_grads(y.op):
                used = True
                queue.append(y.op)
            else:
                grad_state.unused_exits.append(y)
        for y in grad_state.unused_exits:
            if used and is_trainable(y):
                self._add(y, self.loop_state.ZerosLikeForExit(y))
            queue.append(y.op)

    # ------------------------------------------------------- book-keeping

    def _slots(self, op):
        return self.grads.get(op) or [[] for _ in range(len(op.outputs))]

    def _add(self, tensor, grad):
        slots = self.grads.get(tensor.op)
        if slots is None:
            slots = self.grads[tensor.op] = [[] for _ in range(len(tensor.op.outputs))]
        index = tensor.value_index
        if isinstance(slots[index], list):
            slots[index].append(grad)
        else:
            assert control_flow_util.is_loop_switch(tensor.op)
            slots[index] = grad

    def _has_grads(self, op):
        for one in self._slots(op):
            if isinstance(one, (ops.Tensor, IndexedSlices)):
                return True
            if isinstance(one, list) and any(g is not None for g in one):
                return True
        return False

    def _result(self, x, unconnected):
        slots = self.grads.get(x.op)
        if slots is None:
            return array_ops.zeros_like(x) if unconnected is UnconnectedGradients.ZERO else None
        found = slots[x.value_index]
        if isinstance(found, list):
            if not found:
                return array_ops.zeros_like(x) if (
                    unconnected is UnconnectedGradients.ZERO) else None
            raise AssertionError("gradients list should have been aggregated by now.")
        return found

    @contextlib.contextmanager
    def _colocated(self, op):
        if not self.colocate:
            yield
            return
        with ops.colocate_with(op):
            yield

    def _aggregated(self, op):
        """For each output of `op`, the sum of the gradients that arrived for it."""
        out = self._slots(op)
        for i, received in enumerate(out):
            if self.loop_state is not None and isinstance(received, (ops.Tensor, IndexedSlices)):
                assert control_flow_util.is_loop_switch(op)
                continue
            received = [x for x in received if x is not None] if isinstance(
                received, list) else received
            if not received:
                out[i] = None
            elif all(isinstance(x, ops.Tensor) for x in received):
                out[i] = received[0] if len(received) < 2 else self._sum(op, received)
            else:
                out[i] = _aggregate_slices(received)
        if op in self.grads:
            self.grads[op] = out
        return list(out)

    def _sum(self, op, tensors):
        method = AggregationMethod.DEFAULT if self.aggregation is None else self.aggregation
        if method in (AggregationMethod.EXPERIMENTAL_TREE,
                      AggregationMethod.EXPERIMENTAL_ACCUMULATE_N):
            with ops.name_scope(op.name + "_gradient_sum"):
                total = tensors[0]
                for one in tensors[1:]:
                    total = math_ops.add_n([total, one])
                return total
        if method != AggregationMethod.ADD_N:
            raise ValueError("Invalid `aggregation_method` specified %s." % method)
        by_device = {}
        for t in tensors:
            by_device.setdefault(t.device, []).append(t)
        sums = []
        for device in sorted(by_device, key=lambda d: d or ""):
            group = by_device[device]
            with ops.colocate_with(group[0].op, ignore_existing=True):
                sums.append(math_ops.add_n(group))
        return math_ops.add_n(sums)


def _differentiable(x):
    """What the gradient of a variable is taken of: its handle or its reference."""
    if isinstance(x, ops.Tensor):
        return x
    handle = getattr(x, "handle", None)
    return handle if isinstance(handle, ops.Tensor) else x


def _check_grad_y(grad, y, i):
    if isinstance(grad, IndexedSlices):
        kind = grad.values.dtype
    else:
        kind = ops.convert_to_tensor(grad).dtype if not hasattr(grad, "dtype") else grad.dtype
    kind = dtypes.as_dtype(kind)
    if y.dtype.is_floating or y.dtype.is_integer:
        if not (kind.is_floating or kind.is_integer):
            raise TypeError("Gradient type %s generated for real or integer-valued tensor %s with "
                            "type %s must be real or integer" % (kind.name, y, y.dtype.name))
    elif y.dtype.is_complex and not kind.is_complex:
        raise TypeError("Gradient type %s generated for complex-valued tensor %s with type %s "
                        "must be real" % (kind.name, y, y.dtype.name))


def _aggregate_slices(received):
    """The sum of gradients that include IndexedSlices."""
    if len(received) == 1:
        return received[0]
    if any(isinstance(x, ops.Tensor) for x in received):
        return math_ops.add_n([ops.convert_to_tensor(x) for x in received])
    parts = [_flat(x) for x in _same_index_type(received)]
    values = array_ops.concat([x.values for x in parts], axis=0)
    indices = array_ops.concat([x.indices for x in parts], axis=0)
    return IndexedSlices(values, indices, parts[0].dense_shape)


def _flat(slices):
    if isinstance(slices.values, ops.Tensor):
        return slices
    inner = _flat(slices.values)
    return IndexedSlices(inner.values, array_ops.gather(slices.indices, inner.indices),
                         slices.dense_shape)


def _same_index_type(parts):
    kinds = {x.indices.dtype for x in parts}
    if len(kinds) == 1:
        return parts
    return [IndexedSlices(x.values, math_ops.cast(x.indices, dtypes.int64), x.dense_shape)
            for x in parts]


def _symbolic(op, out_grads):
    """The gradient of a function call: the op SymbolicGradient, which the runtime expands."""
    inputs = list(op.inputs) + [g for g in out_grads if g is not None]
    types = [dtypes.float32 if x.dtype == dtypes.resource else x.dtype for x in op.inputs]
    called = op.type
    if called in ("PartitionedCall", "StatefulPartitionedCall"):
        called = op.get_attr("f")
    return gen_ops.SymbolicGradient(input=inputs, Tout=types, f=called)


@export("hessians")
def hessians(ys, xs, name="hessians", colocate_gradients_with_ops=False, gate_gradients=False,
             aggregation_method=None):
    """The second derivatives of the sum of `ys` with respect to each of `xs`."""
    from ferroflow.python.ops import hessian
    return hessian.hessians(ys, _as_list(xs), name, colocate_gradients_with_ops, gate_gradients,
                            aggregation_method)
