"""Conditionals and loops of dataflow graphs: what happens to ops that are made inside them."""

from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import control_flow_util as util
from ferroflow.python.ops import gen_ops


def _tensor_or_slices(value):
    if isinstance(value, (ops.Tensor, indexed_slices.IndexedSlices)):
        return value
    from ferroflow.python.framework import sparse_tensor
    if isinstance(value, sparse_tensor.SparseTensor):
        return value
    return ops.convert_to_tensor(value, as_ref=True)


def _map(function, value):
    """Applies a function of tensors to a tensor or to the parts of a composite one."""
    if isinstance(value, ops.Tensor):
        return function(value)
    from ferroflow.python.util import nest
    return nest.map_structure(function, value, expand_composites=True)


def next_iteration(value, name=None):
    def one(tensor):
        op = gen_ops.RefNextIteration if tensor.dtype._is_ref_dtype else gen_ops.NextIteration
        result = op(tensor, name=name)
        result.set_shape(tensor.get_shape())
        return result
    return _map(one, _tensor_or_slices(value))


def enter(value, frame_name, is_constant=False, parallel_iterations=10, use_ref=True,
          use_input_shape=True, name=None):
    def one(tensor):
        op = gen_ops.RefEnter if tensor.dtype._is_ref_dtype and use_ref else gen_ops.Enter
        result = op(tensor, frame_name, is_constant, parallel_iterations, name=name)
        if use_input_shape:
            result.set_shape(tensor.get_shape())
        return result
    return _map(one, _tensor_or_slices(value))


def exit_loop(value, name=None):
    def one(tensor):
        op = gen_ops.RefExit if tensor.dtype._is_ref_dtype else gen_ops.Exit
        result = op(tensor, name)
        result.set_shape(tensor.get_shape())
        return result
    return _map(one, _tensor_or_slices(value))


def switch(data, pred, dtype=None, name=None):
    """(the value if `pred` is false, the value if it is true)"""
    with ops.name_scope(name, "Switch", [data, pred]) as scope:
        if not isinstance(data, (ops.Tensor, indexed_slices.IndexedSlices)):
            data = ops.convert_to_tensor(data, dtype=dtype, name="data", as_ref=True)
        pred = ops.convert_to_tensor(pred, name="pred")
        if isinstance(data, ops.Tensor):
            return gen_ops.Switch(data, pred, name=scope)
        from ferroflow.python.util import nest
        both = [gen_ops.Switch(t, pred) for t in nest.flatten(data, expand_composites=True)]
        return tuple(nest.pack_sequence_as(data, [b[i] for b in both], expand_composites=True)
                     for i in (0, 1))


def switch_ref_or_tensor(data, pred, name="Switch"):
    """Like `switch`, on the device of the data; a reference stays one."""
    if not isinstance(data, (ops.Tensor, indexed_slices.IndexedSlices)):
        data = ops.convert_to_tensor(data, name="data")
    colocation = data if isinstance(data, ops.Tensor) else data.values
    with ops.colocate_with(colocation, ignore_existing=True):
        if isinstance(data, ops.Tensor) and data.dtype._is_ref_dtype:
            return gen_ops.RefSwitch(data, pred, name=name)
        return switch(data, pred, name=name)


def merge(inputs, name=None):
    """(whichever input is alive, its index)"""
    if any(x is None for x in inputs):
        raise ValueError("At least one of the merge inputs is None: %s" % inputs)
    with ops.name_scope(name, "Merge", inputs) as scope:
        inputs = [_tensor_or_slices(x) for x in inputs]
        if all(isinstance(x, ops.Tensor) for x in inputs):
            if all(x.dtype._is_ref_dtype for x in inputs):
                return gen_ops.RefMerge(inputs, scope)
            return gen_ops.Merge(inputs, scope)
        from ferroflow.python.util import nest
        if any(isinstance(x, ops.Tensor) for x in inputs):
            inputs = [_as_slices(x) for x in inputs]
        flat = [nest.flatten(x, expand_composites=True) for x in inputs]
        merged = [gen_ops.Merge(list(parts)) for parts in zip(*flat)]
        return nest.pack_sequence_as(inputs[0], [m[0] for m in merged],
                                     expand_composites=True), merged[0][1]


def _as_slices(value):
    if not isinstance(value, ops.Tensor):
        return value
    from ferroflow.python.ops import array_ops
    shape = array_ops.shape_internal(value, optimize=False)
    from ferroflow.python.ops import math_ops
    return indexed_slices.IndexedSlices(value, math_ops.range(0, shape[0]), shape)


class ControlFlowContext:
    """Where new ops belong.  `Enter` and `Exit` change it for the default graph."""

    def __init__(self):
        self._nested_contexts = []
        self._outer_context = ops.get_default_graph()._get_control_flow_context()
        if self._outer_context is not None:
            self._outer_context._nested_contexts.append(self)
        self._context_stack = []
        # Names of tensors that are known inside, and what an outer tensor is called inside.
        self._values = set()
        self._external_values = {}

    name = property(lambda self: self._name)
    outer_context = property(lambda self: self._outer_context)
    grad_state = None
    back_prop = False

    def AddName(self, name):
        self._values.add(name)

    def Enter(self):
        graph = ops.get_default_graph()
        self._context_stack.append(graph._get_control_flow_context())
        graph._set_control_flow_context(self)

    def Exit(self):
        ops.get_default_graph()._set_control_flow_context(self._context_stack.pop())

    def EnterGradientColocation(self, op, gradient_uid):
        if self._outer_context is not None:
            self._outer_context.EnterGradientColocation(op, gradient_uid)

    def ExitGradientColocation(self, op, gradient_uid):
        if self._outer_context is not None:
            self._outer_context.ExitGradientColocation(op, gradient_uid)

    def ExitResult(self, result):
        """Makes results known to the context around this one."""
        if self._outer_context is not None:
            from ferroflow.python.util import nest
            for x in nest.flatten(result, expand_composites=True):
                self._outer_context.AddName(x.name)

    def GetWhileContext(self):
        return None if self._outer_context is None else self._outer_context.GetWhileContext()

    def _remove_external_control_edges(self, op):
        """Drops control inputs from outside of the loop; returns (kept, dropped)."""
        loop = self.GetWhileContext()
        inputs = list(op.control_inputs)
        if loop is None:
            return inputs, []
        kept, dropped = [], []
        for x in inputs:
            context = util.output_context(x)
            inside = context is not None and context.GetWhileContext() is loop
            (kept if inside else dropped).append(x)
        if dropped:
            op._remove_all_control_inputs()
            op._add_control_inputs(kept)
        return kept, dropped

    def AddInnerOp(self, op):
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def GetControlPivot(self):
        return None

    def IsWhileContext(self):
        return False

    def IsCondContext(self):
        return False

    def IsXLAContext(self):
        return False

    def _known_to_all(self, names):
        context = self
        while context is not None:
            context._values.update(names)
            context = context._outer_context

    def _values_def(self, export_scope=None):
        from ferroflow.core.protobuf import control_flow_pb2
        made = control_flow_pb2.ValuesDef()
        made.values.extend(ops.strip_name_scope(v, export_scope) for v in sorted(self._values))
        for k, v in self._external_values.items():
            made.external_values[ops.strip_name_scope(k, export_scope)] = ops.strip_name_scope(
                v.name, export_scope)
        return made

    def _load_values(self, values_def, import_scope=None):
        graph = ops.get_default_graph()
        self._values = {ops.prepend_name_scope(v, import_scope) for v in values_def.values}
        self._external_values = {}
        for k, v in values_def.external_values.items():
            self._external_values[ops.prepend_name_scope(k, import_scope)] = (
                graph.as_graph_element(ops.prepend_name_scope(v, import_scope)))
        inside = self._values - set(self._external_values)
        for name in {v.split(":")[0] for v in inside}:
            graph.as_graph_element(name)._set_control_flow_context(self)


class CondContext(ControlFlowContext):
    """One branch of a conditional."""

    def __init__(self, pred=None, pivot=None, branch=None, name="cond_text", context_def=None,
                 import_scope=None):
        graph = ops.get_default_graph()
        if context_def is None:
            self._name = graph.unique_name(name)
            super().__init__()
            self._pred, self._pivot, self._branch = pred, pivot, branch
            self._values.add(pred.name)
            self._external_values[pred.name] = pred
            self._values.add(pivot.name)
            pivot.op._set_control_flow_context(self)
            return
        super().__init__()
        self._name = ops.prepend_name_scope(context_def.context_name, import_scope)
        self._pred = graph.as_graph_element(
            ops.prepend_name_scope(context_def.pred_name, import_scope))
        self._pivot = graph.as_graph_element(
            ops.prepend_name_scope(context_def.pivot_name, import_scope))
        self._branch = context_def.branch
        self._load_values(context_def.values_def, import_scope)

    pred = property(lambda self: self._pred)
    pivot = property(lambda self: self._pivot)
    branch = property(lambda self: self._branch)

    @property
    def grad_state(self):
        loop = self.GetWhileContext()
        return None if loop is None else loop.grad_state

    @property
    def back_prop(self):
        loop = self.GetWhileContext()
        return False if loop is None else loop.back_prop

    def GetControlPivot(self):
        return self._pivot

    def IsCondContext(self):
        return True

    def AddValue(self, value):
        """The tensor for `value` inside this branch."""
        if value.name in self._values:
            found = self._external_values.get(value.name)
            return value if found is None else found
        self._values.add(value.name)
        result = value
        if self._outer_context is not None:
            result = self._outer_context.AddValue(value)
            self._values.add(result.name)
            self._external_values[result.name] = result
        with ops.control_dependencies(None):
            result = switch_ref_or_tensor(result, self._pred)[self._branch]
            if self._outer_context is not None:
                self._outer_context.AddInnerOp(result.op)
        result.op.graph.prevent_fetching(result.op)
        result.op._set_control_flow_context(self)
        self._known_to_all([result.name])
        self._external_values[value.name] = result
        return result

    def AddOp(self, op):
        self._AddOpInternal(op)

    def _AddOpInternal(self, op):
        inputs = list(op.inputs)
        if not inputs:
            self._remove_external_control_edges(op)
            if not any(_op_in_context(x, self) for x in op.control_inputs):
                op._add_control_input(self._pivot.op)
        else:
            for index, x in enumerate(inputs):
                if op.type == "Merge" and x.op.type == "NextIteration":
                    continue  # the back edge of a loop that is being imported
                real = self.AddValue(x)
                if real is not x:
                    op._update_input(index, real)
            self._remove_external_control_edges(op)
            if op.graph._is_function(op.type) or op.type == "SymbolicGradient":
                op._add_control_input(self._pivot.op)
        self._known_to_all([x.name for x in op.outputs])
        if self._outer_context is not None or not util.is_loop_exit(op):
            op.graph.prevent_fetching(op)
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def _output(self, value):
        real = value
        if value.name not in self._values:
            self._values.add(value.name)
            if self._outer_context is not None:
                real = self._outer_context.AddValue(value)
                self._values.add(real.name)
                self._external_values[real.name] = real
            real = switch_ref_or_tensor(real, self._pred)[self._branch]
            self._external_values[value.name] = real
        else:
            real = self._external_values.get(value.name, real)
        return real

    def _build_output(self, value):
        from ferroflow.python.ops import control_flow_ops
        from ferroflow.python.ops import tensor_array_ops
        if isinstance(value, ops.Operation):
            # An operation counts as the pivot, once it has run.
            return control_flow_ops.with_dependencies([value], self._pivot)
        return self._output(ops.convert_to_tensor(tensor_array_ops.flow_of(value)))

    def BuildCondBranch(self, function):
        """Calls `function` inside this context; returns (its result, the tensors of it)."""
        from ferroflow.python.util import nest
        original = function()
        if original is None:
            return None, None
        original = nest.map_structure(as_tensor_if_variable, original)
        result = nest.map_structure(self._build_output, original, expand_composites=True)
        return original, result if isinstance(result, (list, tuple)) else [result]

    def to_proto(self, export_scope=None):
        from ferroflow.core.protobuf import control_flow_pb2
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        made = control_flow_pb2.CondContextDef()
        made.context_name = ops.strip_name_scope(self.name, export_scope)
        made.pred_name = ops.strip_name_scope(self._pred.name, export_scope)
        made.pivot_name = ops.strip_name_scope(self._pivot.name, export_scope)
        made.branch = self._branch
        made.values_def.CopyFrom(self._values_def(export_scope))
        for nested in self._nested_contexts:
            nested.to_control_flow_context_def(made.nested_contexts.add(), export_scope)
        return made

    def to_control_flow_context_def(self, context_def, export_scope=None):
        context_def.cond_ctxt.CopyFrom(self.to_proto(export_scope=export_scope))

    @staticmethod
    def from_proto(context_def, import_scope=None):
        return _import(CondContext, context_def, import_scope)


def as_tensor_if_variable(value):
    """A variable is read; anything else stays."""
    if hasattr(value, "_as_graph_element") and not isinstance(value, (ops.Tensor, ops.Operation)):
        return ops.convert_to_tensor(value)
    return value


def _op_in_context(op, context):
    return util.is_containing(context, util.output_context(op))


def _import(kind, context_def, import_scope):
    context = kind(context_def=context_def, import_scope=import_scope)
    context.Enter()
    for nested in context_def.nested_contexts:
        from_control_flow_context_def(nested, import_scope)
    context.Exit()
    return context


def from_control_flow_context_def(context_def, import_scope=None):
    from ferroflow.python.ops import while_context
    if context_def.HasField("cond_ctxt"):
        return CondContext.from_proto(context_def.cond_ctxt, import_scope)
    if context_def.HasField("while_ctxt"):
        return while_context.WhileContext.from_proto(context_def.while_ctxt, import_scope)
    raise NotImplementedError("Unknown ControlFlowContextDef field")
