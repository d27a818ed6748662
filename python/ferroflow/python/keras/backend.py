"""`tf.keras.backend`: the session of models, the learning phase, and functions on tensors."""

import weakref

import numpy as np

from ferroflow.python.client import session as session_lib
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variables
from ferroflow.python.util.api import export

_phases = weakref.WeakKeyDictionary()
_state = {"session": None, "floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


@export("keras.backend.floatx")
def floatx():
    return _state["floatx"]


@export("keras.backend.set_floatx")
def set_floatx(value):
    _state["floatx"] = str(value)


@export("keras.backend.epsilon")
def epsilon():
    return _state["epsilon"]


@export("keras.backend.set_epsilon")
def set_epsilon(value):
    _state["epsilon"] = value


@export("keras.backend.image_data_format")
def image_data_format():
    return _state["image_data_format"]


@export("keras.backend.set_image_data_format")
def set_image_data_format(data_format):
    _state["image_data_format"] = str(data_format)


@export("keras.backend.learning_phase")
def learning_phase():
    """Whether the graph trains: a tensor that is false unless it is fed."""
    graph = ops.get_default_graph()
    if graph not in _phases:
        with graph.as_default(), ops.init_scope(), ops.name_scope(None):
            _phases[graph] = array_ops.placeholder_with_default(False, (), name="keras_learning_phase")
    return _phases[graph]


@export("keras.backend.set_learning_phase")
def set_learning_phase(value):
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _phases[ops.get_default_graph()] = bool(value)


@export("keras.backend.clear_session")
def clear_session():
    if _state["session"] is not None:
        _state["session"].close()
        _state["session"] = None
    ops.reset_default_graph()


@export("keras.backend.set_session")
def set_session(session):
    _state["session"] = session


@export("keras.backend.get_session")
def get_session():
    """The default session, or one that all models of the graph share. Its variables are initialized."""
    found = ops.get_default_session() or _state["session"]
    graph = ops.get_default_graph()
    if found is None or found.graph is not graph:
        found = _state["session"] = session_lib.Session(graph=graph)
    initialize(found)
    return found


def initialize(session):
    """Initializes the variables of the session's graph that have no value."""
    known = getattr(session, "_keras_known", None)
    if known is None:
        known = session._keras_known = set()
    with session.graph.as_default():
        fresh = [v for v in variables.global_variables() if v not in known]
        if not fresh:
            return
        flags = session.run([state_ops.is_variable_initialized(v) for v in fresh])
        missing = [v for v, done in zip(fresh, flags) if not done]
        if missing:
            session.run(variables.variables_initializer(missing))
        known.update(fresh)


@export("keras.backend.get_value")
def get_value(x):
    return get_session().run(x)


@export("keras.backend.batch_get_value")
def batch_get_value(tensors):
    return get_session().run(list(tensors)) if tensors else []


@export("keras.backend.set_value")
def set_value(x, value):
    x.load(np.asarray(value, x.dtype.base_dtype.as_numpy_dtype), get_session())


@export("keras.backend.batch_set_value")
def batch_set_value(tuples):
    for x, value in tuples:
        set_value(x, value)


@export("keras.backend.int_shape")
def int_shape(x):
    shape = x.get_shape()
    return None if shape.ndims is None else tuple(shape.as_list())


@export("keras.backend.ndim")
def ndim(x):
    return x.get_shape().ndims


@export("keras.backend.dtype")
def dtype(x):
    return x.dtype.base_dtype.name


@export("keras.backend.placeholder")
def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None):  # pylint: disable=redefined-outer-name
    del sparse
    if shape is None and ndim:
        shape = [None] * ndim
    return array_ops.placeholder(dtypes.as_dtype(dtype or floatx()), shape, name=name)


@export("keras.backend.variable")
def variable(value, dtype=None, name=None, constraint=None):  # pylint: disable=redefined-outer-name
    from ferroflow.python.ops import resource_variable_ops

    return resource_variable_ops.ResourceVariable(value, dtype=dtypes.as_dtype(dtype or floatx()), name=name, constraint=constraint)


def _reduction(function):
    def reduce(x, axis=None, keepdims=False):
        return function(x, axis=axis, keepdims=keepdims)
    return reduce


mean = export("keras.backend.mean")(_reduction(math_ops.reduce_mean))
sum = export("keras.backend.sum")(_reduction(math_ops.reduce_sum))  # pylint: disable=redefined-builtin
prod = export("keras.backend.prod")(_reduction(math_ops.reduce_prod))
max = export("keras.backend.max")(_reduction(math_ops.reduce_max))  # pylint: disable=redefined-builtin
min = export("keras.backend.min")(_reduction(math_ops.reduce_min))  # pylint: disable=redefined-builtin
any = export("keras.backend.any")(_reduction(math_ops.reduce_any))  # pylint: disable=redefined-builtin
all = export("keras.backend.all")(_reduction(math_ops.reduce_all))  # pylint: disable=redefined-builtin


def _same(function):
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call


square = export("keras.backend.square")(_same(math_ops.square))
abs = export("keras.backend.abs")(_same(math_ops.abs))  # pylint: disable=redefined-builtin
exp = export("keras.backend.exp")(_same(math_ops.exp))
log = export("keras.backend.log")(_same(math_ops.log))
pow = export("keras.backend.pow")(_same(math_ops.pow))  # pylint: disable=redefined-builtin
sign = export("keras.backend.sign")(_same(math_ops.sign))
round = export("keras.backend.round")(_same(math_ops.round))  # pylint: disable=redefined-builtin
maximum = export("keras.backend.maximum")(_same(math_ops.maximum))
minimum = export("keras.backend.minimum")(_same(math_ops.minimum))
equal = export("keras.backend.equal")(_same(math_ops.equal))
not_equal = export("keras.backend.not_equal")(_same(math_ops.not_equal))
greater = export("keras.backend.greater")(_same(math_ops.greater))
greater_equal = export("keras.backend.greater_equal")(_same(math_ops.greater_equal))
less = export("keras.backend.less")(_same(math_ops.less))
less_equal = export("keras.backend.less_equal")(_same(math_ops.less_equal))
sin = export("keras.backend.sin")(_same(math_ops.sin))
cos = export("keras.backend.cos")(_same(math_ops.cos))
tanh = export("keras.backend.tanh")(_same(math_ops.tanh))
sigmoid = export("keras.backend.sigmoid")(_same(math_ops.sigmoid))
relu = export("keras.backend.relu")(_same(gen_ops.Relu))
reshape = export("keras.backend.reshape")(_same(array_ops.reshape))
expand_dims = export("keras.backend.expand_dims")(lambda x, axis=-1: array_ops.expand_dims(x, axis))
squeeze = export("keras.backend.squeeze")(lambda x, axis: array_ops.squeeze(x, [axis]))
stack = export("keras.backend.stack")(lambda x, axis=0: array_ops.stack(x, axis=axis))
concatenate = export("keras.backend.concatenate")(lambda tensors, axis=-1: array_ops.concat(tensors, axis))
transpose = export("keras.backend.transpose")(_same(array_ops.transpose))
permute_dimensions = export("keras.backend.permute_dimensions")(lambda x, pattern: array_ops.transpose(x, perm=pattern))
gather = export("keras.backend.gather")(lambda reference, indices: array_ops.gather(reference, indices))
shape = export("keras.backend.shape")(_same(array_ops.shape))
zeros_like = export("keras.backend.zeros_like")(_same(array_ops.zeros_like))
ones_like = export("keras.backend.ones_like")(_same(array_ops.ones_like))
one_hot = export("keras.backend.one_hot")(lambda indices, num_classes: array_ops.one_hot(indices, num_classes))
argmax = export("keras.backend.argmax")(lambda x, axis=-1: math_ops.argmax(x, axis))
argmin = export("keras.backend.argmin")(lambda x, axis=-1: math_ops.argmin(x, axis))


@export("keras.backend.sqrt")
def sqrt(x):
    return math_ops.sqrt(math_ops.maximum(x, math_ops.cast(0.0, x.dtype)))


@export("keras.backend.cast")
def cast(x, dtype):  # pylint: disable=redefined-outer-name
    return math_ops.cast(x, dtype)


@export("keras.backend.dot")
def dot(x, y):
    if ndim(x) in (None, 2) and ndim(y) in (None, 2):
        return math_ops.matmul(x, y)
    return math_ops.tensordot(x, y, [[ndim(x) - 1], [ndim(y) - 2]])


@export("keras.backend.clip")
def clip(x, min_value, max_value):
    from ferroflow.python.ops import clip_ops

    return clip_ops.clip_by_value(x, min_value, max_value)


@export("keras.backend.flatten")
def flatten(x):
    return array_ops.reshape(x, [-1])


@export("keras.backend.batch_flatten")
def batch_flatten(x):
    return array_ops.reshape(x, [array_ops.shape(x)[0], -1])


@export("keras.backend.softmax")
def softmax(x, axis=-1):
    from ferroflow.python.ops import nn_ops

    return nn_ops.softmax(x, axis=axis)


@export("keras.backend.gradients")
def gradients(loss, variables):  # pylint: disable=redefined-outer-name
    from ferroflow.python.ops import gradients_impl

    return gradients_impl.gradients(loss, variables)


@export("keras.backend.random_normal")
def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):  # pylint: disable=redefined-outer-name
    from ferroflow.python.ops import random_ops

    return random_ops.random_normal(shape, mean, stddev, dtypes.as_dtype(dtype or floatx()), seed=seed)


@export("keras.backend.function")
def function(inputs, outputs, updates=None, name=None, **session_kwargs):
    """Python function that runs a step with values for `inputs`."""
    del name, session_kwargs

    def call(values):
        values = values if isinstance(values, (list, tuple)) else [values]
        found, _ = get_session().run([outputs, list(updates or [])], dict(zip(inputs, values)))
        return found
    return call


tile = export("keras.backend.tile")(lambda x, n: array_ops.tile(x, [n] if isinstance(n, int) else n))
stop_gradient = export("keras.backend.stop_gradient")(_same(array_ops.stop_gradient))
update = export("keras.backend.update")(lambda x, new_x: x.assign(new_x))
update_add = export("keras.backend.update_add")(lambda x, increment: x.assign_add(increment))
zeros = export("keras.backend.zeros")(lambda shape, dtype=None, name=None: variable(np.zeros(shape), dtype, name))
ones = export("keras.backend.ones")(lambda shape, dtype=None, name=None: variable(np.ones(shape), dtype, name))
is_keras_tensor = export("keras.backend.is_keras_tensor")(lambda x: hasattr(x, "_keras_history"))


@export("keras.backend.eval")
def eval(x):  # pylint: disable=redefined-builtin
    return get_value(x)


@export("keras.backend.constant")
def constant(value, dtype=None, shape=None, name=None):  # pylint: disable=redefined-outer-name
    from ferroflow.python.framework import constant_op

    return constant_op.constant(value, dtype=dtypes.as_dtype(dtype or floatx()), shape=shape, name=name)


@export("keras.backend.l2_normalize")
def l2_normalize(x, axis=None):
    total = math_ops.reduce_sum(math_ops.square(x), axis=axis, keepdims=True)
    return x * math_ops.rsqrt(math_ops.maximum(total, 1e-12))


@export("keras.backend.switch")
def switch(condition, then_expression, else_expression):
    from ferroflow.python.ops import cond

    if condition.get_shape().ndims == 0:
        branches = [e if callable(e) else lambda e=e: array_ops.identity(e) for e in (then_expression, else_expression)]
        return cond.cond(condition, *branches)
    values = [e() if callable(e) else e for e in (then_expression, else_expression)]
    return array_ops.where_v2(condition, *values)


@export("keras.backend.random_uniform")
def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):  # pylint: disable=redefined-outer-name
    from ferroflow.python.ops import random_ops

    return random_ops.random_uniform(shape, minval, maxval, dtypes.as_dtype(dtype or floatx()), seed=seed)


@export("keras.backend.batch_dot")
def batch_dot(x, y, axes=None):
    """Products of the matrices of two batches."""
    axes = (axes, axes) if isinstance(axes, int) else axes or (ndim(x) - 1, ndim(y) - 2 if ndim(y) > 2 else 1)
    flat_x, flat_y = ndim(x) == 2, ndim(y) == 2
    a = array_ops.expand_dims(x, 1) if flat_x else x
    b = array_ops.expand_dims(y, 2) if flat_y else y
    product = math_ops.matmul(a, b, adjoint_a=not flat_x and axes[0] == ndim(x) - 2, adjoint_b=not flat_y and axes[1] == ndim(y) - 1)
    if flat_x:
        product = array_ops.squeeze(product, [1])
    return array_ops.expand_dims(array_ops.squeeze(product, [-1]), -1) if flat_x and flat_y else (
        array_ops.squeeze(product, [-1]) if flat_y else product)
