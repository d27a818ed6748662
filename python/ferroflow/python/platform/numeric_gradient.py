"""Gradients by finite differences, for tests."""

import numpy as np

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gradients_impl
from ferroflow.python.util.api import export


def _theoretical(x, x_shape, x_data, dy, dy_shape, dx):
    """The matrix of derivatives that the graph computes: a row for each element of x."""
    session = ops.get_default_session()
    x_size, dy_size = int(np.prod(x_shape)), int(np.prod(dy_shape))
    dtype = x.dtype.real_dtype.as_numpy_dtype
    rows = np.zeros((x_size, dy_size), dtype=dtype)
    unit = np.zeros(dy_shape, dtype=dy.dtype.as_numpy_dtype)
    for column in range(dy_size):
        unit.ravel()[column] = 1
        found = session.run(dx, feed_dict={x: x_data, dy: unit})
        if hasattr(found, "indices"):
            dense = np.zeros(x_shape, dtype=dtype)
            np.add.at(dense, found.indices, found.values)
            found = dense
        rows[:, column] = np.asarray(found).ravel()
        unit.ravel()[column] = 0
    return rows


def _numeric(x, x_data, y, y_shape, delta, feeds):
    session = ops.get_default_session()
    x_data = np.array(x_data, dtype=x.dtype.as_numpy_dtype)
    rows = np.zeros((x_data.size, int(np.prod(y_shape))), dtype=x.dtype.real_dtype.as_numpy_dtype)
    for row in range(x_data.size):
        values = []
        for sign in (1, -1):
            moved = x_data.copy()
            moved.ravel()[row] += sign * delta
            values.append(np.asarray(session.run(y, feed_dict={**feeds, x: moved})).ravel())
        rows[row] = (values[0] - values[1]) / (2 * delta)
    return rows


@export("test.compute_gradient")
def compute_gradient(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None, extra_feed_dict=None):
    """(the derivatives of y that the graph computes, those by finite differences)"""
    if init_targets is not None:
        ops.get_default_session().run(init_targets)
    if isinstance(x, list):
        inits = x_init_value or [None] * len(x)
        return [_one(a, s, y, y_shape, i, delta, extra_feed_dict) for a, s, i in zip(x, x_shape, inits)]
    return _one(x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict)


def _one(x, x_shape, y, y_shape, init, delta, feeds):
    dy = array_ops.ones(y_shape, dtype=y.dtype)
    dx = gradients_impl.gradients(y, x, grad_ys=dy)[0]
    if dx is None:
        raise ValueError("y does not depend on x")
    data = np.random.random_sample(x_shape) if init is None else np.asarray(init)
    data = data.astype(x.dtype.as_numpy_dtype)
    return (_theoretical(x, x_shape, data, dy, y_shape, dx), _numeric(x, data, y, y_shape, delta, feeds or {}))


@export("test.compute_gradient_error")
def compute_gradient_error(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None,
                           extra_feed_dict=None):
    """The largest difference between the two gradients."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = [found] if isinstance(found, tuple) else found
    return max([float(np.fabs(a - b).max()) if a.size else 0.0 for a, b in pairs] or [0.0])
