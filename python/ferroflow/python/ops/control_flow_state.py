"""What `tf.gradients` keeps about loops: the values of each iteration, and the loops backwards."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_context as base
from ferroflow.python.ops import control_flow_util as util
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import while_context


class GradLoopState:
    """The gradient of one forward loop."""

    def __init__(self, forward, outer_grad_state):
        self.outer_grad_state = outer_grad_state
        self.forward_context = forward
        self._forward_sync = self._grad_sync = None
        # Forward value -> its value in the loop backwards; forward switch -> its merge.
        self.history_map, self.switch_map = {}, {}
        self.unused_exits, self.deferred_exits = [], []
        self.forward_loop_exits = list(forward.loop_exits)
        self.pending_exits_count = len(forward.loop_exits)
        outer_forward = (outer_grad_state.forward_context if outer_grad_state is not None
                         else forward.outer_context)
        with forward._graph.as_default():
            if outer_forward is not None:
                outer_forward.Enter()
            count, self.forward_index = forward.AddForwardLoopCounter(outer_grad_state)
            if outer_forward is not None:
                outer_forward.Exit()
        if outer_grad_state is not None:
            outer_forward.AddName(count.name)
            history = outer_grad_state.AddForwardAccumulator(count)
            outer_grad = outer_grad_state.grad_context
            outer_grad.Enter()
            self.grad_context = self._new_context(forward)
            real = outer_grad_state.AddBackpropAccumulatedValue(history, count)
            self.grad_index = self.grad_context.AddBackpropLoopCounter(real, outer_grad_state)
            outer_grad.Exit()
        else:
            if outer_forward is not None:
                outer_forward.Enter()
            self.grad_context = self._new_context(forward)
            self.grad_index = self.grad_context.AddBackpropLoopCounter(count, outer_grad_state)
            if outer_forward is not None:
                outer_forward.Exit()

    def _new_context(self, forward):
        return while_context.WhileContext(
            maximum_iterations=forward.maximum_iterations,
            parallel_iterations=forward.parallel_iterations, back_prop=forward.back_prop,
            swap_memory=forward.swap_memory, name=forward.name, grad_state=self)

    @property
    def forward_sync(self):
        """Runs at the end of each forward iteration."""
        if self._forward_sync is None:
            with ops.control_dependencies(None):
                self._forward_sync = gen_ops.ControlTrigger(name="f_sync")
            self._forward_sync._set_control_flow_context(self.forward_context)
            self.forward_index.op._add_control_input(self._forward_sync)
        return self._forward_sync

    @property
    def grad_sync(self):
        """Runs at the end of each iteration backwards."""
        if self._grad_sync is None:
            with ops.control_dependencies(None):
                self._grad_sync = gen_ops.ControlTrigger(name="b_sync")
            self._grad_sync._set_control_flow_context(self.grad_context)
            self.grad_index.op._add_control_input(self._grad_sync)
            if self.grad_context.outer_context is not None:
                self.grad_context.outer_context.AddInnerOp(self._grad_sync)
        return self._grad_sync

    def AddForwardAccumulator(self, value, dead_branch=False):
        """A stack that keeps `value` of every forward iteration."""
        forward = self.forward_context
        with self.forward_index.graph.as_default():
            current = ops.get_default_graph()._get_control_flow_context()
            with ops.control_dependencies(None):
                if current is not None:
                    current.Enter()
                with ops.colocate_with(value):
                    size = constant_op.constant(-1, dtypes.int32)
                    stack = gen_ops.StackV2(max_size=size, elem_type=value.dtype.base_dtype,
                                            name="f_acc")
                if current is not None:
                    current.Exit()
                entered = forward.AddValue(stack)
                context = util.output_context(value.op)
                if context is forward:
                    push = self._push(forward, entered, value)
                    self.forward_index.op._add_control_input(push.op)
                else:
                    if not context.IsCondContext():
                        raise TypeError("value_ctxt is not a CondContext: %s" % context)
                    push = self._push(context.outer_context if dead_branch else context,
                                      entered, value)
                    if dead_branch:
                        push.op._set_control_flow_context(context)
                    self.forward_sync._add_control_input(push.op)
                push.op._add_control_input(self.forward_index.op.inputs[0].op)
                return stack

    def _push(self, context, stack, value):
        context.Enter()
        push = gen_ops.StackPushV2(stack, value, swap_memory=self.forward_context.swap_memory)
        context.Exit()
        return push

    def AddBackpropAccumulatedValue(self, history, value, dead_branch=False):
        """The value that the stack `history` kept for this iteration."""
        history_context = history.op._get_control_flow_context()
        branch_context = None
        context = value.op._get_control_flow_context()
        while context is not None and context is not history_context:
            if context.IsCondContext():
                branch_context = context
                break
            context = context.outer_context
        with ops.control_dependencies(None):
            self.grad_context.Enter()
            if branch_context is not None:
                state, pred = self, None
                while pred is None and state is not None:
                    pred = state.history_map.get(branch_context.pred.name)
                    state = state.outer_grad_state
                if pred is None:
                    pred = branch_context.pred
                branch = branch_context.branch
                branch = 1 - branch if dead_branch else branch
                history = base.switch_ref_or_tensor(history, pred)[branch]
            pop = gen_ops.StackPopV2(history, value.dtype.base_dtype)
            pop.set_shape(value.get_shape())
            self.grad_context.Exit()
        if self.grad_context.parallel_iterations > 1:
            self.grad_sync._add_control_input(pop.op)
        return pop

    def GetRealValue(self, value):
        """The forward value `value` as the loop backwards sees it."""
        real = self.history_map.get(value.name)
        if real is not None:
            return real
        current, state, history = value, self, None
        while True:
            entered = util.loop_enter_of(current)
            if entered is not None and entered.get_attr("is_constant"):
                # A loop constant: look at it from the loop around.
                current = entered.inputs[0]
                state = state.outer_grad_state
                if state is None:
                    real = self.grad_context.AddValue(current)
                    break
            elif current.op.type == "Const":
                real = constant_op.constant(tensor_util.constant_value(current),
                                            dtype=current.dtype)
                break
            else:
                self.grad_context.Exit()
                history = state.AddForwardAccumulator(current)
                self.grad_context.Enter()
                break
        if real is None:
            real = state.AddBackpropAccumulatedValue(history, current)
            if state is not self:
                real = self.grad_context.AddValue(real)
        self.history_map[value.name] = real
        return real


class ControlFlowState:
    """The gradients of all forward loops of one call of `gradients`."""

    def __init__(self):
        self._states = {}

    def GetGradState(self, op, before):
        if before and util.is_loop_exit(op):
            forward = op._get_control_flow_context().outer_context
            forward = None if forward is None else forward.GetWhileContext()
        else:
            forward = util.while_context_of(op)
        return None if forward is None else self._states.get(forward)

    def ProcessUnusedLoopExits(self, pending, to_ops):
        """The exits that no y depends on, of loops all of whose exits are ready."""
        exits = []
        for state in self._states.values():
            for y in state.forward_loop_exits:
                if pending[y.op] == 0:
                    state.pending_exits_count -= 1
                    if y.op not in to_ops:
                        state.unused_exits.append(y)
                    if state.pending_exits_count == 0:
                        exits.extend(state.unused_exits)
            for y in state.forward_context.loop_enters:
                if pending[y.op] == 0:
                    pending[y.op] = 1
        return exits

    def EnterGradWhileContext(self, op, before):
        state = self.GetGradState(op, before)
        if state is not None:
            state.grad_context.Enter()

    def ExitGradWhileContext(self, op, before):
        state = self.GetGradState(op, before)
        if state is not None:
            state.grad_context.Exit()

    def AddWhileContext(self, op, order, between):
        forward = util.while_context_of(op)
        if forward in self._states:
            return
        outer = forward.outer_context
        outer = None if outer is None else outer.GetWhileContext()
        state = GradLoopState(forward, None if outer is None else self._states.get(outer))
        self._states[forward] = state
        for y in state.forward_loop_exits:
            if y.op not in between:
                between.add(y.op)
                order.append(y.op)

    def ZerosLikeForExit(self, value):
        shape = value.get_shape()
        forward = value.op._get_control_flow_context()
        outer = forward.outer_context
        outer = None if outer is None else outer.GetWhileContext()
        outer_state = None if outer is None else self._states.get(outer)
        if outer_state is None:
            if shape.is_fully_defined():
                return array_ops.zeros(shape, value.dtype)
            return array_ops.zeros_like(value, optimize=False)
        if shape.is_fully_defined():
            outer_state.grad_context.Enter()
            result = array_ops.zeros(shape, value.dtype)
            outer_state.grad_context.Exit()
            return result
        forward.outer_context.Enter()
        dynamic = array_ops.shape_internal(value, optimize=False)
        forward.outer_context.Exit()
        history = outer_state.AddForwardAccumulator(dynamic)
        outer_state.grad_context.Enter()
        real = outer_state.AddBackpropAccumulatedValue(history, dynamic)
        result = array_ops.zeros(real, value.dtype)
        outer_state.grad_context.Exit()
        return result

    def ZerosLikeV1WhileLoop(self, op, index):
        """Zeros for an output that has no gradient, inside or outside of a loop."""
        if util.is_loop_switch(op):
            return None
        dead_branch = util.is_switch(op)
        state = self._states.get(util.while_context_of(op))
        if state is None:
            return zeros_for_switch(op, index) if util.is_switch(op) else (
                array_ops.zeros_like(op.outputs[index], optimize=False))
        context = op._get_control_flow_context()
        value = op.outputs[index]
        shape = value.get_shape()
        if shape.is_fully_defined():
            result = constant_op.constant(0, shape=shape, dtype=value.dtype)
            if dead_branch:
                pred = state.history_map.get(context.pred.name)
                result = base.switch_ref_or_tensor(result, pred)[1 - context.branch]
            return result
        if dead_branch:
            context.outer_context.Enter()
            value = base.switch_ref_or_tensor(op.inputs[0], context.pred)[1 - context.branch]
            dynamic = array_ops.shape_internal(value, optimize=False)
            context.outer_context.Exit()
            value.op._set_control_flow_context(context)
            dynamic.op._set_control_flow_context(context)
        else:
            context.Enter()
            dynamic = array_ops.shape_internal(value, optimize=False)
            context.Exit()
        state.grad_context.Exit()
        history = state.AddForwardAccumulator(dynamic, dead_branch=dead_branch)
        state.grad_context.Enter()
        real = state.AddBackpropAccumulatedValue(history, dynamic, dead_branch)
        return array_ops.zeros(real, value.dtype)

    def PostProcessing(self):
        """Loop variables without a gradient from inside receive zeros from the back edge."""
        for state in self._states.values():
            for merged in state.switch_map.values():
                if merged.op.inputs[0] is not merged.op.inputs[1]:
                    continue
                source = merged.op.inputs[0]
                if source.get_shape().is_fully_defined():
                    state.grad_context.Enter()
                    zeros = constant_op.constant(0, dtype=source.dtype, shape=source.get_shape())
                    following = base.next_iteration(zeros)
                    state.grad_context.Exit()
                else:
                    outer = state.grad_context.outer_context
                    if outer is not None:
                        outer.Enter()
                    dynamic = array_ops.shape_internal(source.op.inputs[0], optimize=False)
                    zeros = array_ops.zeros(dynamic)
                    if outer is not None:
                        outer.Exit()
                    state.grad_context.Enter()
                    following = base.next_iteration(zeros)
                    state.grad_context.Exit()
                merged.op._update_input(1, following)


def make(order, between, colocate):
    """The state for the loops among the ops `order`."""
    state = ControlFlowState()
    for op in order:
        if util.is_loop_exit(op):
            if colocate:
                with ops.colocate_with(op):
                    state.AddWhileContext(op, order, between)
            else:
                state.AddWhileContext(op, order, between)
    return state


def zeros_for_switch(op, index):
    """Zeros for the output of a conditional's switch that has no gradient."""
    value = op.outputs[index]
    context = op._get_control_flow_context()
    if context is None:
        return array_ops.zeros_like(value, optimize=False)
    switched = base.switch(op.inputs[0], context.pred)[1 - context.branch]
    pivot = array_ops.identity(switched)
    if value.dtype == dtypes.resource:
        from ferroflow.python.ops import resource_variable_ops
        with ops.control_dependencies([pivot]):
            return array_ops.zeros(gen_ops.VariableShape(switched),
                                   dtype=resource_variable_ops.handle_dtype(value))
    shape = array_ops.shape_internal(switched, optimize=False)
    with ops.control_dependencies([pivot]):
        return array_ops.zeros(shape, dtype=value.dtype)
