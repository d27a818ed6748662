"""The global step."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables
from ferroflow.python.util.api import export

GraphKeys = ops.GraphKeys
GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"


@export("train.global_step")
def global_step(sess, global_step_tensor):
    return int(sess.run(global_step_tensor))


@export("train.get_global_step")
def get_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise RuntimeError("Multiple global_step variables found: %s" % found)
    if found:
        step = found[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


@export("train.create_global_step")
def create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), ops.name_scope(None):
        return variable_scope.get_variable(
            GraphKeys.GLOBAL_STEP, shape=[], dtype=dtypes.int64,
            initializer=init_ops.zeros_initializer(), trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP])


@export("train.get_or_create_global_step")
def get_or_create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


@export("train.assert_global_step")
def assert_global_step(global_step_tensor):
    if not isinstance(global_step_tensor, (variables.Variable, ops.Tensor)):
        raise TypeError('Existing "global_step" must be a Variable or Tensor: %s.' %
                        global_step_tensor)
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError('Existing "global_step" does not have integer type: %s' %
                        global_step_tensor.dtype)
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError('Existing "global_step" is not scalar: %s' % shape)


def _get_global_step_read(graph=None):
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(GLOBAL_STEP_READ_KEY)
    return found[0] if found else None


def _get_or_create_global_step_read(graph=None):
    graph = graph or ops.get_default_graph()
    read = _get_global_step_read(graph)
    if read is not None:
        return read
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            if isinstance(step, variables.Variable):
                value = step.initialized_value()
            else:
                value = step
            read = value + 0
            ops.add_to_collection(GLOBAL_STEP_READ_KEY, read)
    return read


def _increment_global_step(increment, graph=None):
    graph = graph or ops.get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by "
                         "tf.train.get_or_create_global_step before calling increment.")
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            with ops.control_dependencies([_get_or_create_global_step_read(graph)]):
                return step.assign_add(increment)
