"""`tf.nn.raw_rnn`: a recurrent loop whose inputs and end a function decides."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import rnn_cell
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import while_loop
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


def _arrays(like, structure, size):
    """An array of outputs for each tensor of a structure."""
    flat = nest.flatten(structure)
    kinds = [x.dtype for x in nest.flatten(like)]
    return [tensor_array_ops.TensorArray(dtype=kind, dynamic_size=True, element_shape=shape, size=size,
                                         name="rnn_output_%d" % i)
            for i, (kind, shape) in enumerate(zip(kinds, flat))]


def _kept(finished, old, new):
    """The old values of examples that are finished."""
    def choose(a, b):
        if isinstance(a, tensor_array_ops.TensorArray) or a.get_shape().ndims == 0:
            return b
        with ops.colocate_with(b):
            chosen = array_ops.where(finished, a, b)
            chosen.set_shape(b.get_shape())
            return chosen
    return nest.map_structure(choose, old, new)


@export("nn.raw_rnn")
def raw_rnn(cell, loop_fn, parallel_iterations=None, swap_memory=False, scope=None):
    """(arrays of outputs, the last state, the last loop state) of a loop that `loop_fn` drives.

    `loop_fn(time, cell_output, cell_state, loop_state)` returns whether examples are finished, the next
    input, the next state, the output to emit and the next loop state.
    """
    if not callable(loop_fn):
        raise TypeError("Argument `loop_fn` must be a callable. Received: %s." % loop_fn)
    with variable_scope.variable_scope(scope or "rnn") as varscope:
        if varscope.caching_device is None:
            varscope.set_caching_device(lambda op: op.device)
        time = constant_op.constant(0, dtype=dtypes.int32)
        finished, inputs, state, emitted, loop_state = loop_fn(time, None, None, None)
        flat_inputs = nest.flatten(inputs)
        loop_state = constant_op.constant(0, dtype=dtypes.int32) if loop_state is None else loop_state
        first = flat_inputs[0].get_shape().as_list()[0]
        batch = first if first is not None else array_ops.shape(flat_inputs[0])[0]
        if emitted is None:
            emitted, like = cell.output_size, nest.map_structure(lambda _: flat_inputs[0], cell.output_size)
            sizes = nest.map_structure(lambda s: s, emitted)
        else:
            like = nest.map_structure(ops.convert_to_tensor, emitted)
            sizes = nest.map_structure(lambda t: t.get_shape(), like)

        shapes = nest.map_structure(lambda size: tensor_shape.TensorShape([first]).concatenate(size), sizes)
        arrays = nest.pack_sequence_as(structure=like, flat_sequence=_arrays(like, shapes, 0))
        zeros = nest.map_structure(
            lambda size, tensor: array_ops.zeros(rnn_cell.concat_shape(batch, size), dtype=tensor.dtype), sizes, like)

        def body(time, finished, inputs, arrays, state, loop_state):
            output, next_state = cell(inputs, state)
            nest.assert_same_structure(state, next_state)
            after = time + 1
            next_finished, next_input, next_state, emit, next_loop = loop_fn(after, output, next_state, loop_state)
            emit = output if emit is None else emit
            emit = _kept(finished, zeros, emit)
            next_state = _kept(finished, state, next_state)
            written = nest.map_structure(lambda array, value: array.write(time, value), arrays, emit)
            next_loop = loop_state if next_loop is None else next_loop
            return (after, math_ops.logical_or(finished, next_finished), next_input, written, next_state, next_loop)

        found = while_loop.while_loop(
            lambda _, finished, *rest: math_ops.logical_not(math_ops.reduce_all(finished)), body,
            loop_vars=[time, finished, inputs, arrays, state, loop_state],
            parallel_iterations=parallel_iterations or 32, swap_memory=swap_memory)
        return found[3], found[4], found[5]
