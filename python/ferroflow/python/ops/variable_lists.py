"""Lists of variables, and ops that initialise or check them."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.util.api import export

GraphKeys = ops.GraphKeys


@export("global_variables")
def global_variables(scope=None):
    return ops.get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


@export("all_variables")
def all_variables():
    return global_variables()


@export("local_variables")
def local_variables(scope=None):
    return ops.get_collection(GraphKeys.LOCAL_VARIABLES, scope)


@export("model_variables")
def model_variables(scope=None):
    return ops.get_collection(GraphKeys.MODEL_VARIABLES, scope)


@export("trainable_variables")
def trainable_variables(scope=None):
    return ops.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@export("moving_average_variables")
def moving_average_variables(scope=None):
    return ops.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def _all_or_saveable():
    return global_variables() + ops.get_collection(GraphKeys.SAVEABLE_OBJECTS)


@export("variables_initializer", "initializers.variables")
def variables_initializer(var_list, name="init"):
    if var_list:
        return control_flow_ops.group(*[v.initializer for v in var_list], name=name)
    return control_flow_ops.no_op(name=name)


@export("initialize_variables")
def initialize_variables(var_list, name="init"):
    return variables_initializer(var_list, name=name)


@export("global_variables_initializer", "initializers.global_variables")
def global_variables_initializer():
    return variables_initializer(global_variables())


@export("initialize_all_variables")
def initialize_all_variables():
    return global_variables_initializer()


@export("local_variables_initializer", "initializers.local_variables")
def local_variables_initializer():
    return variables_initializer(local_variables())


@export("initialize_local_variables")
def initialize_local_variables():
    return local_variables_initializer()


@export("report_uninitialized_variables")
def report_uninitialized_variables(var_list=None, name="report_uninitialized_variables"):
    if var_list is None:
        var_list = global_variables() + local_variables()
        if not var_list:
            var_list = [op.outputs[0] for op in ops.get_default_graph().get_operations()
                        if op.type in ("Variable", "VariableV2", "AutoReloadVariable")]
    with ops.name_scope(name):
        if var_list:
            initialized = [state_ops.is_variable_initialized(v) for v in var_list]
        with ops.device("/cpu:0"):
            if not var_list:
                return array_ops.constant([], dtype="string")
            missing = gen_ops.LogicalNot(array_ops.stack(initialized))
            names = array_ops.constant([v.op.name for v in var_list])
            return array_ops.boolean_mask(names, missing)


@export("assert_variables_initialized")
def assert_variables_initialized(var_list=None):
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        var_list = [op.outputs[0] for op in ops.get_default_graph().get_operations()
                    if op.type in ("Variable", "VariableV2", "AutoReloadVariable")]
    if not var_list:
        return None
    ranks = []
    for var in var_list:
        with ops.colocate_with(var.op):
            ranks.append(array_ops.rank_internal(var, optimize=False))
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)
