"""Recurrent networks: `dynamic_rnn`, `static_rnn` and their bidirectional forms."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import rnn_cell
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops.while_loop import while_loop
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


def _transpose_batch_time(x):
    static = x.get_shape()
    if static.ndims is not None and static.ndims < 2:
        return x
    rank = array_ops.rank(x)
    turned = array_ops.transpose(
        x, array_ops.concat(([1, 0], math_ops.range(2, rank)), axis=0))
    dims = static.as_list()
    turned.set_shape(tensor_shape.TensorShape([dims[1], dims[0]] + dims[2:]))
    return turned


def _batch_size(flat_input):
    for one in flat_input:
        dims = one.get_shape()
        if dims.ndims is None:
            continue
        if dims.ndims < 2:
            raise ValueError("Input tensor should have rank >= 2. Received input=%s of rank %d" % (
                one, dims.ndims))
        if dims.as_list()[1] is not None:
            return dims.as_list()[1]
    return array_ops.shape(flat_input[0])[1]


def _state_dtype(explicit, state):
    if explicit is not None:
        return explicit
    return nest.flatten(state)[0].dtype


def _in_loop():
    context = ops.get_default_graph()._get_control_flow_context()
    return context is not None and context.GetWhileContext() is not None


@export("nn.dynamic_rnn")
def dynamic_rnn(cell, inputs, sequence_length=None, initial_state=None, dtype=None,
                parallel_iterations=None, swap_memory=False, time_major=False, scope=None):
    rnn_cell.check_cell(cell)
    with variable_scope.variable_scope(scope or "rnn") as varscope:
        if not _in_loop() and varscope.caching_device is None:
            varscope.set_caching_device(lambda op: op.device)
        flat = nest.flatten(inputs)
        if not time_major:
            flat = [ops.convert_to_tensor(x) for x in flat]
            flat = [_transpose_batch_time(x) for x in flat]
        if sequence_length is not None:
            sequence_length = math_ops.cast(sequence_length, dtypes.int32)
            if sequence_length.get_shape().ndims not in (None, 1):
                raise ValueError("Argument sequence_length must be a vector of length "
                                 "batch_size. Received sequence_length=%s of shape: %s" % (
                                     sequence_length, sequence_length.get_shape()))
            sequence_length = array_ops.identity(sequence_length, name="sequence_length")
        batch = _batch_size(flat)
        if initial_state is not None:
            state = initial_state
        else:
            if not dtype:
                raise ValueError("If no initial_state is provided, argument `dtype` must be "
                                 "specified")
            make = getattr(cell, "get_initial_state", None)
            state = make(inputs=None, batch_size=batch, dtype=dtype) if make is not None else (
                cell.zero_state(batch, dtype))
        if sequence_length is not None:
            with ops.control_dependencies([_has_length(sequence_length, batch)]):
                sequence_length = array_ops.identity(sequence_length, name="CheckSeqLen")
        inputs = nest.pack_sequence_as(inputs, flat)
        outputs, final = _loop(cell, inputs, state, parallel_iterations or 32, swap_memory,
                               sequence_length, dtype)
        if not time_major:
            outputs = nest.map_structure(_transpose_batch_time, outputs)
        return outputs, final


def _has_length(x, length):
    shape = array_ops.shape(x)
    packed = array_ops.stack([length])
    return control_flow_ops.Assert(
        math_ops.reduce_all(math_ops.equal(shape, packed)),
        ["Expected shape for Tensor %s is " % x.name, packed, " but saw shape: ", shape])


def _loop(cell, inputs, state, parallel_iterations, swap_memory, sequence_length, dtype):
    flat = nest.flatten(inputs)
    output_sizes = nest.flatten(cell.output_size)
    shape = array_ops.shape(flat[0])
    steps = shape[0]
    batch = _batch_size(flat)
    shapes = [x.get_shape().with_rank_at_least(3) for x in flat]
    static_steps, static_batch = shapes[0].as_list()[:2]
    for x, s in zip(flat, shapes):
        if not s[2:].is_fully_defined():
            raise ValueError("Input size (depth of inputs) must be accessible via shape "
                             "inference, but saw value None for input=%s." % x)
    kind = _state_dtype(dtype, state)
    zeros = [_zero_output(batch, size, kind) for size in output_sizes]
    zero_output = nest.pack_sequence_as(cell.output_size, zeros)
    if sequence_length is not None:
        shortest = math_ops.reduce_min(sequence_length)
        longest = math_ops.reduce_max(sequence_length)
    else:
        shortest, longest = None, steps
    time = constant_op.constant(0, dtype=dtypes.int32, name="time")
    with ops.name_scope("dynamic_rnn") as base_name:
        pass

    def array(name, element_shape, array_dtype):
        return tensor_array_ops.TensorArray(
            dtype=array_dtype, size=steps, element_shape=element_shape,
            tensor_array_name=base_name + name)

    output_arrays = tuple(
        array("output_%d" % i, tensor_shape.TensorShape([static_batch]).concatenate(
            _as_shape(size)), kind) for i, size in enumerate(output_sizes))
    input_arrays = [array("input_%d" % i, x.get_shape()[1:], x.dtype)
                    for i, x in enumerate(flat)]
    input_arrays = [a.unstack(x) for a, x in zip(input_arrays, flat)]

    def step(time, arrays, state):
        current = [a.read(time) for a in input_arrays]
        for x, s in zip(current, shapes):
            x.set_shape(s[1:])
        current = nest.pack_sequence_as(inputs, current)
        if sequence_length is None:
            output, new_state = cell(current, state)
        else:
            output, new_state = _masked_step(
                time, sequence_length, shortest, longest, zero_output, state,
                lambda: cell(current, state), conditional=False)
        arrays = tuple(a.write(time, o) for a, o in zip(arrays, nest.flatten(output)))
        return time + 1, arrays, new_state

    bound = gen_ops.Minimum(steps, gen_ops.Maximum(1, longest))
    _, arrays, final = while_loop(
        cond=lambda time, *_: time < bound, body=step, loop_vars=(time, output_arrays, state),
        parallel_iterations=parallel_iterations, maximum_iterations=steps,
        swap_memory=swap_memory)
    outputs = [a.stack() for a in arrays]
    for output, size in zip(outputs, output_sizes):
        output.set_shape(rnn_cell.concat_shape([static_steps, static_batch], size, static=True))
    return nest.pack_sequence_as(cell.output_size, outputs), final


def _as_shape(size):
    return tensor_shape.TensorShape([size]) if isinstance(size, int) else (
        tensor_shape.as_shape(size))


def _zero_output(batch, size, dtype):
    return array_ops.zeros(array_ops.stack(rnn_cell.concat_shape(batch, size)), dtype)


def _masked_step(time, lengths, shortest, longest, zero_output, state, call, conditional=True):
    """A step that keeps the states of sequences that have ended, and gives zeros for them."""
    flat_state, flat_zero = nest.flatten(state), nest.flatten(zero_output)
    over = time >= lengths

    def keep(old, new):
        if isinstance(old, tensor_array_ops.TensorArray) or old.get_shape().ndims == 0:
            return new
        with ops.colocate_with(new):
            return array_ops.where(over, old, new)

    def some(outputs, states):
        return [keep(a, b) for a, b in zip(flat_zero, outputs)] + [
            keep(a, b) for a, b in zip(flat_state, states)]

    def run():
        output, new_state = call()
        nest.assert_same_structure(zero_output, output)
        nest.assert_same_structure(state, new_state)
        states, outputs = nest.flatten(new_state), nest.flatten(output)
        if not conditional:
            return some(outputs, states)
        return cond.cond(time < shortest, lambda: outputs + states,
                         lambda: some(outputs, states))

    found = cond.cond(time >= longest, lambda: flat_zero + flat_state, run) if (
        conditional) else run()
    outputs, states = found[:len(flat_zero)], found[len(flat_zero):]
    for a, b in zip(outputs, flat_zero):
        a.set_shape(b.get_shape())
    for a, b in zip(states, flat_state):
        a.set_shape(b.get_shape())
    return (nest.pack_sequence_as(zero_output, outputs), nest.pack_sequence_as(state, states))


@export("nn.bidirectional_dynamic_rnn")
def bidirectional_dynamic_rnn(cell_fw, cell_bw, inputs, sequence_length=None,
                              initial_state_fw=None, initial_state_bw=None, dtype=None,
                              parallel_iterations=None, swap_memory=False, time_major=False,
                              scope=None):
    rnn_cell.check_cell(cell_fw)
    rnn_cell.check_cell(cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reverse(x):
        if sequence_length is not None:
            return array_ops.reverse_sequence(x, sequence_length, seq_axis=time_axis,
                                              batch_axis=batch_axis)
        return gen_ops.ReverseV2(x, axis=[time_axis])

    common = dict(sequence_length=sequence_length, dtype=dtype,
                  parallel_iterations=parallel_iterations, swap_memory=swap_memory,
                  time_major=time_major)
    with variable_scope.variable_scope(scope or "bidirectional_rnn"):
        with variable_scope.variable_scope("fw") as fw:
            output_fw, state_fw = dynamic_rnn(cell_fw, inputs, initial_state=initial_state_fw,
                                              scope=fw, **common)
        with variable_scope.variable_scope("bw") as bw:
            backwards = nest.map_structure(reverse, inputs)
            turned, state_bw = dynamic_rnn(cell_bw, backwards, initial_state=initial_state_bw,
                                           scope=bw, **common)
    return (output_fw, reverse(turned)), (state_fw, state_bw)


@export("nn.static_rnn", "contrib.rnn.static_rnn")
def static_rnn(cell, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    rnn_cell.check_cell(cell)
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Argument `inputs` must be a sequence. Received: %s" % (inputs,))
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")
    outputs = []
    with variable_scope.variable_scope(scope or "rnn") as varscope:
        if not _in_loop() and varscope.caching_device is None:
            varscope.set_caching_device(lambda op: op.device)
        first = nest.flatten(inputs)[0]
        batch = first.get_shape().as_list()[0] if first.get_shape().ndims is not None else None
        if batch is None:
            batch = array_ops.shape(first)[0]
        if initial_state is not None:
            state = initial_state
        else:
            if not dtype:
                raise ValueError("If no initial_state is provided, argument `dtype` must be "
                                 "specified")
            state = cell.zero_state(batch, dtype)
        if sequence_length is not None:
            sequence_length = ops.convert_to_tensor(sequence_length, name="sequence_length")
            static_batch = batch if isinstance(batch, int) else None

            def zeros(size):
                zero = _zero_output(batch, size, _state_dtype(dtype, state))
                zero.set_shape(rnn_cell.concat_shape(static_batch, size, static=True))
                return zero
            zero_output = nest.map_structure(zeros, cell.output_size)
            sequence_length = math_ops.cast(sequence_length, dtypes.int32)
            shortest = math_ops.reduce_min(sequence_length)
            longest = math_ops.reduce_max(sequence_length)
        for time, x in enumerate(inputs):
            if time > 0:
                varscope.reuse_variables()
            if sequence_length is None:
                output, state = cell(x, state)
            else:
                output, state = _masked_step(
                    time, sequence_length, shortest, longest, zero_output,
                    state, lambda x=x, state=state: cell(x, state))
            outputs.append(output)
    return outputs, state


@export("nn.static_bidirectional_rnn", "contrib.rnn.static_bidirectional_rnn")
def static_bidirectional_rnn(cell_fw, cell_bw, inputs, initial_state_fw=None,
                             initial_state_bw=None, dtype=None, sequence_length=None,
                             scope=None):
    with variable_scope.variable_scope(scope or "bidirectional_rnn"):
        with variable_scope.variable_scope("fw") as fw:
            output_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype,
                                             sequence_length, scope=fw)
        with variable_scope.variable_scope("bw") as bw:
            backwards = _reversed(inputs, sequence_length)
            turned, state_bw = static_rnn(cell_bw, backwards, initial_state_bw, dtype,
                                          sequence_length, scope=bw)
    output_bw = _reversed(turned, sequence_length)
    outputs = [array_ops.concat([f, b], 1) for f, b in zip(output_fw, output_bw)]
    return outputs, state_fw, state_bw


def _reversed(sequence, lengths):
    if lengths is None:
        return list(reversed(sequence))
    joined = array_ops.stack(sequence)
    return array_ops.unstack(array_ops.reverse_sequence(joined, lengths, 0, 1))
