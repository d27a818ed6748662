"""The global step."""

from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import control_flow_ops, init_ops, resource_variable_ops, state_ops, variable_scope, variables
from ferroflow.python.platform import tf_logging as logging

GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"


def global_step(sess, global_step_tensor):
    """The number of steps so far."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph=None):
    """The global step of a graph: the variable of its collection, or the one called global_step."""
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(ops.GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        step = found[0]
    elif not found:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except (KeyError, ValueError):
            return None
    else:
        logging.error("Multiple tensors in global_step collection.")
        return None
    assert_global_step(step)
    return step


def create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default() as g, g.name_scope(None):
        return variable_scope.get_variable(
            ops.GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=init_ops.zeros_initializer(),
            trainable=False,
            aggregation=variables.VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[ops.GraphKeys.GLOBAL_VARIABLES, ops.GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor):
    """Checks that a tensor can count steps."""
    is_variable = isinstance(global_step_tensor, (variables.Variable, ops.Tensor)) or resource_variable_ops.is_resource_variable(global_step_tensor)
    if not is_variable:
        raise TypeError('Existing "global_step" must be a Variable or Tensor: %s.' % global_step_tensor)
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError('Existing "global_step" does not have integer type: %s' % global_step_tensor.dtype)
    if global_step_tensor.get_shape().ndims != 0 and global_step_tensor.get_shape().is_fully_defined():
        raise TypeError('Existing "global_step" is not scalar: %s' % global_step_tensor.get_shape())


def _get_global_step_read(graph=None):
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(GLOBAL_STEP_READ_KEY)
    if len(found) > 1:
        raise RuntimeError("There are multiple items in collection {}. There should be only one.".format(GLOBAL_STEP_READ_KEY))
    return found[0] if found else None


def _get_or_create_global_step_read(graph=None):
    """A read of the global step, made once for a graph. Hooks fetch it."""
    graph = graph or ops.get_default_graph()
    read = _get_global_step_read(graph)
    if read is not None:
        return read
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            # Also right in a step that initializes variables.
            if isinstance(step, variables.Variable) or resource_variable_ops.is_resource_variable(step):
                value = control_flow_ops.cond(
                    state_ops.is_variable_initialized(step), step.read_value, lambda: step.initial_value
                )
            else:
                value = step
            read = value + 0
            ops.add_to_collection(GLOBAL_STEP_READ_KEY, read)
    return _get_global_step_read(graph)


def _increment_global_step(increment, graph=None):
    """Adds to the global step after its read."""
    graph = graph or ops.get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by tf.train.get_or_create_global_step before calling increment.")
    read = _get_or_create_global_step_read(graph)
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            with ops.control_dependencies([read]):
                return state_ops.assign_add(step, increment)


