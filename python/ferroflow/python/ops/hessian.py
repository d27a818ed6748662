"""`tf.hessians`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gradients_impl


def hessians(ys, xs, name, colocate, gate, aggregation):
    """One Hessian for each x, computed row by row in a loop."""
    from ferroflow.python.ops import control_flow_ops
    from ferroflow.python.ops import tensor_array_ops
    kwargs = {"colocate_gradients_with_ops": colocate, "gate_gradients": gate,
              "aggregation_method": aggregation}
    firsts = gradients_impl.gradients(ys, xs, **kwargs)
    found = []
    for first, x in zip(firsts, xs):
        flat = array_ops.reshape(first, [-1])
        count = array_ops.size(x)
        start = [array_ops.constant(0, dtypes.int32),
                 tensor_array_ops.TensorArray(x.dtype, count)]

        def row(j, rows, flat=flat, x=x):
            return j + 1, rows.write(j, gradients_impl.gradients(flat[j], x)[0])

        _, rows = control_flow_ops.while_loop(lambda j, _, count=count: j < count, row, start)
        shape = array_ops.shape(x)
        rows = rows.stack()
        found.append(array_ops.reshape(rows, array_ops.concat((shape, shape), 0)))
    return found
