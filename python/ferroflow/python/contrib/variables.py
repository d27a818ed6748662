"""Variables of `tf.contrib.framework` and `tf.contrib.slim`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables as variables_lib
from ferroflow.python.layers.arg_scope import add_arg_scope
from ferroflow.python.util.api import export

_KEYS = ops.GraphKeys


@export("contrib.framework.variable", "contrib.slim.variable")
@add_arg_scope
def variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=True, collections=None,
             caching_device=None, device=None, partitioner=None, custom_getter=None, use_resource=None, **kwargs):
    """`tf.get_variable` with a device."""
    collections = list(collections if collections is not None else [_KEYS.GLOBAL_VARIABLES])
    collections = list(dict.fromkeys(collections))
    getter = custom_getter or variable_scope.get_variable
    with ops.device(device or ""):
        return getter(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, trainable=trainable,
                      collections=collections, caching_device=caching_device, partitioner=partitioner, use_resource=use_resource)


@export("contrib.framework.model_variable", "contrib.slim.model_variable")
@add_arg_scope
def model_variable(name, shape=None, dtype=dtypes.float32, initializer=None, regularizer=None, trainable=True, collections=None,
                   caching_device=None, device=None, partitioner=None, custom_getter=None, use_resource=None, **kwargs):
    """A variable that is a part of the model, and in the collection of those."""
    collections = list(collections or []) + [_KEYS.GLOBAL_VARIABLES, _KEYS.MODEL_VARIABLES]
    return variable(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, trainable=trainable,
                    collections=collections, caching_device=caching_device, device=device, partitioner=partitioner,
                    custom_getter=custom_getter, use_resource=use_resource)


@export("contrib.framework.local_variable", "contrib.slim.local_variable")
def local_variable(initial_value, validate_shape=True, name=None, use_resource=None):
    return variables_lib.Variable(initial_value, trainable=False, collections=[_KEYS.LOCAL_VARIABLES],
                                  validate_shape=validate_shape, name=name)


@export("contrib.framework.add_model_variable", "contrib.slim.add_model_variable")
def add_model_variable(var):
    if var not in ops.get_collection(_KEYS.MODEL_VARIABLES):
        ops.add_to_collection(_KEYS.MODEL_VARIABLES, var)


@export("contrib.framework.get_variables", "contrib.slim.get_variables")
def get_variables(scope=None, suffix=None, collection=_KEYS.GLOBAL_VARIABLES):
    """The variables of a scope whose names have an end."""
    if isinstance(scope, variable_scope.VariableScope):
        scope = scope.name
    if suffix is not None:
        suffix = suffix if ":" in suffix else suffix + ":"
        scope = (scope or "") + ".*" + suffix
    return ops.get_collection(collection, scope)


@export("contrib.framework.get_model_variables", "contrib.slim.get_model_variables")
def get_model_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _KEYS.MODEL_VARIABLES)


@export("contrib.framework.get_local_variables", "contrib.slim.get_local_variables")
def get_local_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _KEYS.LOCAL_VARIABLES)


@export("contrib.framework.get_trainable_variables", "contrib.slim.get_trainable_variables")
def get_trainable_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _KEYS.TRAINABLE_VARIABLES)


@export("contrib.framework.get_variables_by_name", "contrib.slim.get_variables_by_name")
def get_variables_by_name(given_name, scope=None):
    return get_variables(scope, "/%s:|^%s:" % (given_name, given_name))


@export("contrib.framework.get_variables_by_suffix", "contrib.slim.get_variables_by_suffix")
def get_variables_by_suffix(suffix, scope=None):
    return get_variables(scope, suffix)


@export("contrib.framework.get_variables_to_restore", "contrib.slim.get_variables_to_restore")
def get_variables_to_restore(include=None, exclude=None):
    """All variables in the scopes of `include`, without those in the scopes of `exclude`."""
    for value, what in ((include, "include"), (exclude, "exclude")):
        if value is not None and not isinstance(value, (list, tuple)):
            raise TypeError("%s must be a list or a tuple." % what)
    found = get_variables() if include is None else [v for scope in include for v in get_variables(scope)]
    left_out = {id(v) for scope in exclude or [] for v in get_variables(scope)}
    return [v for v in found if id(v) not in left_out]


@export("contrib.framework.get_unique_variable", "contrib.slim.get_unique_variable")
def get_unique_variable(var_op_name):
    found = [v for v in get_variables(scope=var_op_name) if v.op.name == var_op_name]
    if not found:
        raise ValueError("Variable %s does not uniquely identify a variable" % var_op_name)
    return found[0]


@export("contrib.framework.assign_from_values_fn", "contrib.slim.assign_from_values_fn")
def assign_from_values_fn(var_names_to_values):
    """A function that sets variables of a session."""
    def assign(session):
        for name, value in var_names_to_values.items():
            get_unique_variable(name).load(value, session)
    return assign


@export("contrib.framework.assign_from_checkpoint_fn", "contrib.slim.assign_from_checkpoint_fn")
def assign_from_checkpoint_fn(model_path, var_list, ignore_missing_vars=False, reshape_variables=False):
    """A function that restores variables of a session from a checkpoint."""
    from ferroflow.python.platform import tf_logging as logging
    from ferroflow.python.training import py_checkpoint_reader
    from ferroflow.python.training import saver
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        named = var_list if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
        reader = py_checkpoint_reader.NewCheckpointReader(model_path)
        missing = [n for n in named if not reader.has_tensor(n)]
        for name in missing:
            logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        var_list = {n: v for n, v in named.items() if n not in missing}
        if not var_list:
            logging.warning("No Variables to restore")
            return lambda session: None
    restorer = saver.Saver(var_list, reshape=reshape_variables)
    return lambda session: restorer.restore(session, model_path)
