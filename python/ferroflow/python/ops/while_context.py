"""The context of a `while_loop`, and the loops that its gradient adds."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_context as base
from ferroflow.python.ops import control_flow_util as util
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util import nest


def _fits(shape, invariant):
    """Whether every tensor of `shape` has the shape `invariant`."""
    if invariant.ndims is None:
        return True
    if shape.ndims != invariant.ndims:
        return False
    return all(b is None or a == b for a, b in zip(shape.as_list(), invariant.as_list()))


def add_next_and_back_edge(merge_tensor, value, enforce_shape_invariant=True):
    """Feeds `value` back to the Merge of a loop variable."""
    if not isinstance(merge_tensor, ops.Tensor):
        value = base.next_iteration(base._as_slices(value))
        for m, v in zip(nest.flatten(merge_tensor, expand_composites=True),
                        nest.flatten(value, expand_composites=True)):
            m.op._update_input(1, v)
        return value
    value = base.next_iteration(ops.convert_to_tensor(value))
    if enforce_shape_invariant and not _fits(value.get_shape(), merge_tensor.get_shape()):
        source = merge_tensor.op.inputs[0].op.inputs[0]
        raise ValueError(
            "Input tensor '%s' enters the loop with shape %s, but has shape %s after one "
            "iteration. To allow the shape to vary across iterations, use the "
            "`shape_invariants` argument of tf.while_loop to specify a less-specific shape." % (
                source.name, source.get_shape(), value.get_shape()))
    merge_tensor.op._update_input(1, value)
    return value


class WhileContext(base.ControlFlowContext):
    """The inside of a loop."""

    def __init__(self, maximum_iterations=None, parallel_iterations=10, back_prop=True,
                 swap_memory=False, name="while_context", grad_state=None, context_def=None,
                 import_scope=None):
        super().__init__()
        self._graph = ops.get_default_graph()
        self._grad_state = grad_state
        if context_def is not None:
            self._load(context_def, import_scope)
            return
        if not isinstance(parallel_iterations, int) or parallel_iterations <= 0:
            raise ValueError("'parallel_iterations' must be a positive integer: %s" %
                             parallel_iterations)
        self._name = self._graph.unique_name(name)
        self._maximum_iterations = maximum_iterations
        self._parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self._swap_memory = swap_memory
        self._pivot_for_pred = self._pivot_for_body = self._pivot = None
        self._loop_exits, self._loop_enters = [], []

    maximum_iterations = property(lambda self: self._maximum_iterations)
    parallel_iterations = property(lambda self: self._parallel_iterations)
    back_prop = property(lambda self: self._back_prop)
    swap_memory = property(lambda self: self._swap_memory)
    pivot = property(lambda self: self._pivot)
    loop_enters = property(lambda self: self._loop_enters)
    loop_exits = property(lambda self: self._loop_exits)
    grad_state = property(lambda self: self._grad_state)

    def GetWhileContext(self):
        return self

    def IsWhileContext(self):
        return True

    def GetControlPivot(self):
        return self._pivot_for_pred if self._pivot_for_body is None else self._pivot_for_body

    # ---------------------------------------------------------- values, ops

    def AddValue(self, value):
        """The tensor for `value` inside the loop."""
        if value.name in self._values or value.op._get_control_flow_context() is self:
            found = self._external_values.get(value.name)
            return value if found is None else found
        self._values.add(value.name)
        real = self._from_forward_loop(value)
        if real is not None:
            self._external_values[value.name] = real
            return real
        result = value
        if self._outer_context is not None:
            result = self._outer_context.AddValue(value)
        with ops.control_dependencies(None):
            inside = self._enter(result, is_constant=True)
            inside.graph.prevent_feeding(inside)
            if self._outer_context is not None:
                self._outer_context.AddInnerOp(inside.op)
        self._fix_control_inputs([inside])
        self._values.add(inside.name)
        self._external_values[value.name] = inside
        return inside

    def _from_forward_loop(self, value):
        """In the loop of a gradient: the value that the forward loop kept."""
        current = ops.get_default_graph()._get_control_flow_context()
        loop = None if current is None else current.GetWhileContext()
        if loop is None or loop.grad_state is None:
            return None
        forward = util.while_context_of(value.op)
        if util.is_loop_exit(value.op):
            forward = forward.outer_context
            if forward is not None:
                forward = forward.GetWhileContext()
        if forward is loop.grad_state.forward_context:
            return loop.grad_state.GetRealValue(value)
        return None

    def _enter(self, value, is_constant=False, use_input_shape=True, name=None):
        return base.enter(value, self._name, is_constant=is_constant,
                          parallel_iterations=self._parallel_iterations,
                          use_input_shape=use_input_shape, name=name)

    def AddOp(self, op):
        if op.type in ("Shape", "Size", "Rank"):
            # In a gradient: compute the shape in the forward loop; keeping it costs less memory.
            current = ops.get_default_graph()._get_control_flow_context()
            loop = None if current is None else current.GetWhileContext()
            if loop is not None and loop.grad_state is not None:
                source = op.inputs[0].op
                if util.while_context_of(source) is loop.grad_state.forward_context:
                    context = source._get_control_flow_context()
                    op._set_control_flow_context(context)
                    context._AddOpInternal(op)
                    return
        self._AddOpInternal(op)

    def _AddOpInternal(self, op):
        if op.type in ("PartitionedCall", "StatefulPartitionedCall"):
            op._add_control_input(self.GetControlPivot().op)
        inputs = list(op.inputs)
        if not inputs:
            kept, dropped = self._remove_external_control_edges(op)
            if not kept:
                op._add_control_input(self.GetControlPivot().op)
        else:
            for index, x in enumerate(inputs):
                real = self.AddValue(x)
                if real is not x:
                    op._update_input(index, real)
            _, dropped = self._remove_external_control_edges(op)
            self._pin_to_iteration(op)
        self._values.update(x.name for x in op.outputs)
        if dropped:
            # Ops that must run before enter the loop through their outputs.
            with ops.control_dependencies(None):
                self.Enter()
                dropped = [array_ops.identity(x.outputs[0]).op for x in dropped if x.outputs]
                self.Exit()
            op._add_control_inputs(dropped)
        if self._outer_context is not None or not util.is_loop_exit(op):
            op.graph.prevent_fetching(op)
            for x in op.outputs:
                op.graph.prevent_feeding(x)
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def _pin_to_iteration(self, op):
        """An op that only sees loop constants still has to run once in each iteration."""
        if op.control_inputs:
            return
        if op.graph._is_function(op.type) or op.type == "SymbolicGradient" or all(
                util.is_loop_constant_enter(x.op) for x in op.inputs):
            op._add_control_input(self.GetControlPivot().op)

    def _fix_control_inputs(self, enters):
        graph = ops.get_default_graph()
        for x in enters:
            control_inputs = graph._control_dependencies_for_inputs([x.op.inputs[0].op])
            kept = [c for c in control_inputs if self._reaches(util.output_context(c))]
            x.op._set_control_flow_context(self)
            x.op._add_control_inputs(kept)
            graph._record_op_seen_by_control_dependencies(x.op)

    def _reaches(self, context):
        """Whether `context` is around this loop, within the same iteration of outer loops."""
        outer = self._outer_context
        outer_loop = None if outer is None else outer.GetWhileContext()
        while outer is not context:
            if outer is None or outer is outer_loop:
                return False
            outer = outer.outer_context
        return True

    # ------------------------------------------------------------- building

    def BuildLoop(self, pred, body, loop_vars, shape_invariants, return_same_structure):
        from ferroflow.python.ops import tensor_array_ops
        originals = nest.flatten(loop_vars, expand_composites=True)
        loop_vars = nest.map_structure(_as_loop_var, loop_vars)
        flat = [tensor_array_ops.flow_of(v)
                for v in nest.flatten(loop_vars, expand_composites=True)]
        if shape_invariants is None:
            shapes = [v.get_shape() for v in flat]
        else:
            nest.assert_same_structure(loop_vars, shape_invariants, check_types=False)
            shapes = []
            for var, shape in zip(nest.flatten(loop_vars), nest.flatten(shape_invariants)):
                shapes.extend(_part_shapes(var, shape))
        self.Enter()
        try:
            original_result, exits = self._build(pred, body, originals, flat, loop_vars, shapes)
        finally:
            self.Exit()
        packed = nest.pack_sequence_as(original_result, [
            tensor_array_ops.with_flow(o, e) for o, e in zip(
                nest.flatten(original_result, expand_composites=True), exits)],
            expand_composites=True)
        if return_same_structure:
            return packed
        return packed[0] if len(exits) == 1 else packed

    def _build(self, pred, body, originals, flat, structure, shapes):
        from ferroflow.python.ops import tensor_array_ops
        self._values = {x.name for x in flat}
        real = [self._outer_context.AddValue(x) for x in flat] if (
            self._outer_context is not None) else flat
        enters = self._enter_variables(real, shapes)
        merges = [base.merge([x, x])[0] for x in enters]
        self._pivot_for_pred = merges[0]

        def packed(tensors):
            return nest.pack_sequence_as(structure, [
                tensor_array_ops.with_flow(o, t) for o, t in zip(originals, tensors)],
                expand_composites=True)

        condition = ops.convert_to_tensor(pred(*packed(merges)))
        self._pivot = gen_ops.LoopCond(condition, name="LoopCond")
        switches = [base.switch_ref_or_tensor(x, self._pivot) for x in merges]
        inside = [_identity(x[1]) for x in switches]
        self._pivot_for_body = inside[0]
        packed_inside = packed(inside)
        result = body(*packed_inside)
        if not nest.is_nested(result):
            result = [result]
        result = nest.map_structure(base.as_tensor_if_variable, result)
        nest.assert_same_structure(list(packed_inside), list(result), expand_composites=True)
        original_result = result
        result = [ops.convert_to_tensor(tensor_array_ops.flow_of(x))
                  for x in nest.flatten(result, expand_composites=True)]
        for m, v in zip(merges, result):
            add_next_and_back_edge(m, v)
        exits = [base.exit_loop(x[0]) for x in switches]
        self._loop_exits = exits
        self.ExitResult(exits)
        return original_result, exits

    def _enter_variables(self, real, shapes):
        enters = []
        with ops.control_dependencies(None):
            for x, shape in zip(real, shapes):
                entered = self._enter(x, use_input_shape=False)
                if not _fits(x.get_shape(), shape):
                    raise ValueError(
                        "The shape invariant specified for %s is not compatible with the initial "
                        "shape of the loop variable. It enters the loop with shape %s, but the "
                        "specified shape invariant is %s." % (x.name, x.get_shape(), shape))
                entered.set_shape(shape)
                entered.graph.prevent_feeding(entered)
                if self._outer_context is not None:
                    self._outer_context.AddInnerOp(entered.op)
                enters.append(entered)
        outer, pivot = self._outer_context, None
        while outer is not None and pivot is None:
            pivot = outer.GetControlPivot()
            outer = outer._outer_context
        if pivot is not None:
            for x in enters:
                if util.is_loop_constant_enter(x.op.inputs[0].op):
                    x.op._add_control_input(pivot.op)
        self._fix_control_inputs(enters)
        self._values = {x.name for x in enters}
        self._loop_enters = enters
        return enters

    # ---------------------------------------------- loops of the gradient

    def AddForwardLoopCounter(self, outer_grad_state):
        """Counts the iterations of this loop; returns (the count, the next index)."""
        n = constant_op.constant(0, name="f_count")
        if outer_grad_state is not None:
            # Start counting once the outer loop is in the same iteration.
            n.op._add_control_input(outer_grad_state.forward_index.op.inputs[0].op)
        self.Enter()
        self.AddName(n.name)
        entered = self._enter(n, name="f_count")
        self.loop_enters.append(entered)
        merged = base.merge([entered, entered])[0]
        switched = base.switch(merged, self._pivot)
        index = math_ops.add(switched[1], 1)
        following = base.next_iteration(index)
        merged.op._update_input(1, following)
        total = base.exit_loop(switched[0], name="f_count")
        self.loop_exits.append(total)
        self.ExitResult([total])
        self.Exit()
        return total, following

    def AddBackpropLoopCounter(self, count, outer_grad_state):
        """Counts down in the loop of the gradient; returns the next index."""
        one = constant_op.constant(1, name="b_count")
        self.Enter()
        self.AddName(count.name)
        entered = self._enter(count, name="b_count")
        self.loop_enters.append(entered)
        merged = base.merge([entered, entered])[0]
        self._pivot_for_pred = merged
        pred = gen_ops.GreaterEqual(merged, one)
        self._pivot = gen_ops.LoopCond(pred, name="b_count")
        switched = base.switch(merged, self._pivot)
        index = gen_ops.Sub(switched[1], one)
        self._pivot_for_body = index
        following = base.next_iteration(index)
        merged.op._update_input(1, following)
        final = base.exit_loop(switched[0], name="b_count")
        self.loop_exits.append(final)
        if outer_grad_state is not None:
            # The next iteration of the outer loop waits for this loop.
            outer_grad_state.grad_sync._add_control_input(final.op)
        self.ExitResult([final])
        self.Exit()
        return following

    def AddBackpropAccumulator(self, op, grad):
        """Sums the gradients of a loop constant over the iterations."""
        self.Exit()
        shape = grad.get_shape()
        outer = self._outer_context
        if shape.is_fully_defined():
            if outer is not None:
                outer.Enter()
            total = constant_op.constant(0, grad.dtype, shape=shape, name="b_acc")
            if outer is not None:
                outer.Exit()
        else:
            total = self._zeros_outside(op.inputs[0], grad)
        self.Enter()
        self.AddName(total.name)
        entered = self._enter(total, name="b_acc")
        self.loop_enters.append(entered)
        merged = base.merge([entered, entered], name="b_acc")[0]
        switched = base.switch(merged, self._pivot)
        added = math_ops.add(switched[1], grad)
        merged.op._update_input(1, base.next_iteration(added))
        result = base.exit_loop(switched[0], name="b_acc")
        self.loop_exits.append(result)
        self.ExitResult([result])
        return result

    def _zeros_outside(self, value, grad):
        outer = self._outer_context
        if isinstance(outer, WhileContext) and outer.grad_state is not None:
            forward = self.grad_state.forward_context
            forward.outer_context.Enter()
            shape = array_ops.shape_internal(value, optimize=False)
            forward.outer_context.Exit()
            outer_state = self.grad_state.outer_grad_state
            history = outer_state.AddForwardAccumulator(shape)
            outer.Enter()
            real = outer_state.AddBackpropAccumulatedValue(history, shape)
            zeros = array_ops.zeros(real, grad.dtype)
            outer.Exit()
            return zeros
        if outer is not None:
            outer.Enter()
        zeros = array_ops.zeros(array_ops.shape_internal(value, optimize=False), grad.dtype)
        if outer is not None:
            outer.Exit()
        return zeros

    def AddBackpropIndexedSlicesAccumulator(self, op, grad):
        """Collects the sparse gradients of a loop constant over the iterations."""
        values, indices, dense_shape = grad.values, grad.indices, grad.dense_shape
        self.Exit()
        outer = self._outer_context
        if outer is not None:
            outer.Enter()
        if values.get_shape().is_fully_defined():
            shape = [1] + values.get_shape().as_list()[1:]
            if outer is not None:
                outer.Enter()
            values_acc = constant_op.constant(0, values.dtype, shape=shape, name="b_acc")
            if outer is not None:
                outer.Exit()
        else:
            rest = _resource_safe_shape(op.inputs[0])[1:]
            values_acc = array_ops.zeros(array_ops.concat([[1], rest], 0), dtype=values.dtype)
        indices_acc = constant_op.constant([0], indices.dtype)
        shape_acc = None
        if dense_shape is not None:
            if dense_shape.get_shape().is_fully_defined():
                if outer is not None:
                    outer.Enter()
                shape_acc = constant_op.constant(0, dense_shape.dtype,
                                                 shape=dense_shape.get_shape())
                if outer is not None:
                    outer.Exit()
            else:
                shape_acc = array_ops.zeros_like(array_ops.shape_internal(
                    op.inputs[0], optimize=False, out_type=dense_shape.dtype), optimize=False)
        if outer is not None:
            outer.Exit()
        self.Enter()
        starts = [indices_acc, values_acc] + ([] if shape_acc is None else [shape_acc])
        for x in (values_acc, indices_acc) + (() if shape_acc is None else (shape_acc,)):
            self.AddName(x.name)
        entered = [self._enter(x, use_input_shape=False, name="b_acc") for x in starts]
        entered[0].set_shape([None])
        if values_acc.get_shape().ndims is not None:
            entered[1].set_shape([None] + values_acc.get_shape().as_list()[1:])
        self.loop_enters.extend(entered)
        merged = [base.merge([x, x], name="b_acc")[0] for x in entered]
        switched = [base.switch(x, self._pivot) for x in merged]
        grown = [array_ops.concat([xa[1], xv], 0)
                 for xa, xv in zip(switched[:2], [indices, values])]
        if shape_acc is not None:
            grown.append(gen_ops.Maximum(dense_shape, switched[2][1]))
        following = [base.next_iteration(x) for x in grown]
        for m, n in zip(merged, following):
            m.op._update_input(1, n)
        exits = [base.exit_loop(x[0], name="b_acc") for x in switched]
        self.loop_exits.extend(exits)
        self.ExitResult(exits)
        return indexed_slices.IndexedSlices(
            indices=exits[0], values=exits[1],
            dense_shape=exits[2] if shape_acc is not None else None)

    # --------------------------------------------------------------- protos

    def _load(self, context_def, import_scope):
        graph = ops.get_default_graph()

        def named(name):
            return graph.as_graph_element(ops.prepend_name_scope(name, import_scope))

        self._name = ops.prepend_name_scope(context_def.context_name, import_scope)
        self._maximum_iterations = named(context_def.maximum_iterations_name) if (
            context_def.maximum_iterations_name) else None
        self._parallel_iterations = context_def.parallel_iterations
        self._back_prop = context_def.back_prop
        self._swap_memory = context_def.swap_memory
        self._pivot_for_pred = named(context_def.pivot_for_pred_name)
        self._pivot_for_body = named(context_def.pivot_for_body_name)
        self._pivot = named(context_def.pivot_name)
        self._loop_exits = [named(n) for n in context_def.loop_exit_names]
        self._loop_enters = [named(n) for n in context_def.loop_enter_names]
        self._load_values(context_def.values_def, import_scope)
        if import_scope:
            from ferroflow.core.framework import attr_value_pb2
            for name in self._values:
                op = graph.as_graph_element(name).op
                if util.is_loop_enter(op):
                    op._set_attr("frame_name",
                                 attr_value_pb2.AttrValue(s=self._name.encode("utf-8")))

    def to_proto(self, export_scope=None):
        from ferroflow.core.protobuf import control_flow_pb2
        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def strip(tensor):
            return ops.strip_name_scope(tensor.name, export_scope)

        made = control_flow_pb2.WhileContextDef()
        made.context_name = ops.strip_name_scope(self.name, export_scope)
        made.parallel_iterations = self._parallel_iterations
        if self._maximum_iterations is not None:
            made.maximum_iterations_name = strip(self._maximum_iterations)
        made.back_prop = self._back_prop
        made.swap_memory = self._swap_memory
        made.pivot_for_pred_name = strip(self._pivot_for_pred)
        made.pivot_for_body_name = strip(self._pivot_for_body)
        made.pivot_name = strip(self._pivot)
        made.loop_exit_names.extend(strip(x) for x in self._loop_exits)
        made.loop_enter_names.extend(strip(x) for x in self._loop_enters)
        made.values_def.CopyFrom(self._values_def(export_scope))
        for nested in self._nested_contexts:
            nested.to_control_flow_context_def(made.nested_contexts.add(), export_scope)
        return made

    def to_control_flow_context_def(self, context_def, export_scope=None):
        context_def.while_ctxt.CopyFrom(self.to_proto(export_scope=export_scope))

    @staticmethod
    def from_proto(context_def, import_scope=None):
        return base._import(WhileContext, context_def, import_scope)


def _identity(tensor):
    if tensor.dtype._is_ref_dtype:
        return gen_ops.RefIdentity(tensor)
    return array_ops.identity(tensor)


def _as_loop_var(value):
    from ferroflow.python.ops import tensor_array_ops
    if isinstance(value, tensor_array_ops.TensorArray) or nest._composite_parts(value):
        return value
    return ops.convert_to_tensor(value)


def _part_shapes(var, shape):
    """The shape invariants of the tensors that a loop variable consists of."""
    from ferroflow.python.framework import sparse_tensor
    shape = tensor_shape.as_shape(shape)
    if isinstance(var, sparse_tensor.SparseTensor):
        rank = shape.ndims
        return [tensor_shape.TensorShape([None, rank]), tensor_shape.TensorShape([None]),
                tensor_shape.TensorShape([rank])]
    if isinstance(var, indexed_slices.IndexedSlices):
        parts = [shape, tensor_shape.TensorShape(shape.as_list()[:1] if shape.ndims else None)]
        return parts if var.dense_shape is None else parts + [
            tensor_shape.TensorShape([shape.ndims])]
    return [shape]


def _resource_safe_shape(tensor):
    if tensor.dtype == dtypes.resource:
        while tensor.op.inputs:
            tensor = tensor.op.inputs[0]
        return ops.convert_to_tensor(
            tensor_shape.TensorShape(tensor.op.get_attr("shape")))
    return array_ops.shape_internal(tensor, optimize=False)
