"""`tf.while_loop`."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import control_flow_context
from ferroflow.python.ops import control_flow_v2
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import while_context
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("while_loop")
def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10,
               back_prop=True, swap_memory=False, name=None, maximum_iterations=None,
               return_same_structure=False):
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    loop_vars = nest.map_structure(control_flow_context.as_tensor_if_variable, loop_vars)
    if control_flow_v2.enabled(ops.get_default_graph()):
        return control_flow_v2.while_loop(
            cond, body, loop_vars, shape_invariants=shape_invariants,
            parallel_iterations=parallel_iterations, maximum_iterations=maximum_iterations,
            name=name, return_same_structure=return_same_structure, back_prop=back_prop)
    with ops.name_scope(name, "while", loop_vars):
        if not loop_vars:
            raise ValueError("'loop_vars' must be provided.")
        if maximum_iterations is not None:
            maximum_iterations = ops.convert_to_tensor(maximum_iterations,
                                                       name="maximum_iterations")
            if maximum_iterations.get_shape().ndims != 0:
                raise ValueError("'maximum_iterations' must be a scalar. Received shape: %s" %
                                 maximum_iterations.get_shape())
            cond, body, loop_vars = _counted(
                cond, body, loop_vars, maximum_iterations,
                single=len(loop_vars) == 1 and not return_same_structure)
            if shape_invariants is not None:
                shape_invariants = (tensor_shape.TensorShape([]), shape_invariants)
        context = while_context.WhileContext(
            maximum_iterations=maximum_iterations, parallel_iterations=parallel_iterations,
            back_prop=back_prop, swap_memory=swap_memory)
        if context.outer_context is None:
            ops.add_to_collection(ops.GraphKeys.WHILE_CONTEXT, context)
        result = context.BuildLoop(cond, body, loop_vars, shape_invariants,
                                   return_same_structure)
        return result if maximum_iterations is None else result[1]


def _counted(cond, body, loop_vars, limit, single):
    """The same loop with a counter that stops it."""
    counter = constant_op.constant(0, dtype=limit.dtype, name="iteration_counter")
    if single:
        return (lambda i, v: gen_ops.LogicalAnd(i < limit, cond(v)),
                lambda i, v: (i + 1, body(v)), (counter, loop_vars[0]))
    return (lambda i, vs: gen_ops.LogicalAnd(i < limit, cond(*vs)),
            lambda i, vs: (i + 1, body(*vs)), (counter, loop_vars))
