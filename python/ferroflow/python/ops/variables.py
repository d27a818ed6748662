"""Variables: what both kinds share, reference variables, and the ops over lists of variables."""

import enum

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import versions
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import operators
from ferroflow.python.ops import state_ops
from ferroflow.python.util.api import export

GraphKeys = ops.GraphKeys


@export("VariableSynchronization")
class VariableSynchronization(enum.Enum):
    """How a distributed variable is synchronised."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


@export("VariableAggregation")
class VariableAggregation(enum.Enum):
    """How updates of a distributed variable are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


class _VariableMeta(type):
    """`tf.Variable(...)` makes a variable of the kind that the scope sets."""

    def __call__(cls, *args, **kwargs):
        if cls is not Variable:
            return super().__call__(*args, **kwargs)

        def make(**inner):
            return default_variable_creator(None, **inner)

        for name, value in zip(_ARGUMENTS, args):
            kwargs[name] = value
        for creator in _creators():
            make = _nested(creator, make)
        return make(**kwargs)


def _creators():
    return [c for _, c in getattr(ops.get_default_graph(), "_variable_creator_stack_items", [])]


def _nested(creator, inner):
    return lambda **kwargs: creator(inner, **kwargs)


_ARGUMENTS = ("initial_value", "trainable", "collections", "validate_shape", "caching_device",
              "name", "variable_def", "dtype", "expected_shape", "import_scope", "constraint",
              "use_resource", "synchronization", "aggregation", "shape")


def default_variable_creator(next_creator=None, **kwargs):
    """Makes a variable; a resource variable if requested, or if that is the default."""
    from ferroflow.python.ops import resource_variable_ops
    from ferroflow.python.ops import variable_scope
    use_resource = kwargs.pop("use_resource", None)
    for ignored in ("aggregation", "experimental_enable_variable_lifting"):
        kwargs.pop(ignored, None)
    if kwargs.get("synchronization") is None:
        kwargs.pop("synchronization", None)
    if use_resource is None:
        use_resource = variable_scope.get_variable_scope().use_resource
    if use_resource is None:
        use_resource = versions.resource_variables_enabled()
    if use_resource:
        kwargs.pop("expected_shape", None)
        return resource_variable_ops.ResourceVariable(**kwargs)
    kwargs.pop("distribute_strategy", None)
    return RefVariable(**kwargs)


@export("Variable")
class Variable(metaclass=_VariableMeta):
    """A tensor that steps can change."""

    __array_priority__ = 100

    class SaveSliceInfo:
        """Which part of a partitioned variable this one is."""

        def __init__(self, full_name=None, full_shape=None, var_offset=None, var_shape=None,
                     save_slice_info_def=None, import_scope=None):
            if save_slice_info_def is not None:
                full_name = ops.prepend_name_scope(save_slice_info_def.full_name, import_scope)
                full_shape = list(save_slice_info_def.full_shape)
                var_offset = list(save_slice_info_def.var_offset)
                var_shape = list(save_slice_info_def.var_shape)
            self.full_name = full_name
            self.full_shape = full_shape
            self.var_offset = var_offset
            self.var_shape = var_shape

        @property
        def spec(self):
            """The text that a checkpoint knows this part by."""
            full = " ".join("%d" % d for d in self.full_shape) + " "
            parts = ":".join("%d,%d" % (o, s) for o, s in zip(self.var_offset, self.var_shape))
            return full + parts

        def to_proto(self, export_scope=None):
            from ferroflow.core.framework import variable_pb2
            if export_scope is not None and not self.full_name.startswith(export_scope):
                return None
            made = variable_pb2.SaveSliceInfoDef()
            made.full_name = ops.strip_name_scope(self.full_name, export_scope)
            made.full_shape.extend(self.full_shape)
            made.var_offset.extend(self.var_offset)
            made.var_shape.extend(self.var_shape)
            return made

    _save_slice_info = None
    _constraint = None
    _trainable = True

    constraint = property(lambda self: self._constraint)
    trainable = property(lambda self: self._trainable)
    initial_value = property(lambda self: self._initial_value)
    initializer = property(lambda self: self._initializer_op)
    synchronization = VariableSynchronization.AUTO
    aggregation = VariableAggregation.NONE

    def _set_save_slice_info(self, save_slice_info):
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self):
        return self._save_slice_info

    @property
    def _shared_name(self):
        return self.name[:self.name.index(":")]

    def get_shape(self):
        return self.shape

    def eval(self, session=None):
        return self._graph_element_value().eval(session=session)

    def _graph_element_value(self):
        return self._as_graph_element()

    def load(self, value, session=None):
        session = session or ops.get_default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or default session "
                             "should be established")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    def initialized_value(self):
        """The value of the variable once it is initialised, else its initial value."""
        from ferroflow.python.ops import cond
        with ops.init_scope():
            return cond.cond(state_ops.is_variable_initialized(self), self.read_value,
                             lambda: self.initial_value)

    # A tensor says why it has no truth and no elements before a step runs.
    def __iter__(self):
        return iter(self.value())

    def __bool__(self):
        return bool(self.value())

    def __repr__(self):
        return "<tf.Variable '%s' shape=%s dtype=%s>" % (
            self.name, self.get_shape(), self.dtype.name)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    def ref(self):
        from ferroflow.python.util import object_reference
        return object_reference.Reference(self)

    experimental_ref = ref

    def __getitem__(self, index):
        from ferroflow.python.ops import slicing
        return slicing.getitem(self.value(), index, self)

    @property
    def _in_graph_mode(self):
        return True

    def _add_to(self, collections, trainable):
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if not isinstance(collections, (list, tuple, set)):
            raise ValueError("collections argument to Variable constructor must be a list, tuple, "
                             "or set. Got %s of type %s" % (collections, type(collections)))
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections = list(collections) + [GraphKeys.TRAINABLE_VARIABLES]
        return collections

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        if variable_def.is_resource:
            from ferroflow.python.ops import resource_variable_ops
            return resource_variable_ops.ResourceVariable(
                variable_def=variable_def, import_scope=import_scope)
        return RefVariable(variable_def=variable_def, import_scope=import_scope)


def _forwarded(name):
    operator = operators.OPERATORS[name]

    def method(self, *operands):
        return operator(self.value(), *operands)
    return method


for _name in operators.OPERATORS:
    if _name != "__getitem__":
        setattr(Variable, _name, _forwarded(_name))
VariableV1 = Variable


def class_attr(name):
    """The attribute that puts an op where the variable `name` is."""
    from ferroflow.core.framework import attr_value_pb2
    value = attr_value_pb2.AttrValue()
    value.list.s.append(("loc:@%s" % name).encode("utf-8"))
    return value


class RefVariable(Variable):
    """A variable whose ops hand out references to its buffer."""

    def __init__(self, initial_value=None, trainable=None, collections=None, validate_shape=True,
                 caching_device=None, name=None, variable_def=None, dtype=None,
                 expected_shape=None, import_scope=None, constraint=None, synchronization=None,
                 aggregation=None, shape=None):
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._load(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._trainable = True if trainable is None else trainable
        self._constraint = constraint
        self._graph_key = ops.get_default_graph()._graph_key if hasattr(
            ops.get_default_graph(), "_graph_key") else None
        self._update_uid = None
        collections = self._add_to(collections, self._trainable)
        from_function = callable(initial_value)
        with ops.init_scope():
            with ops.name_scope(name, "Variable", [] if from_function else [initial_value]) as s:
                if from_function:
                    own = s.rstrip("/")
                    with ops.get_default_graph()._attr_scope({"_class": class_attr(own)}):
                        with ops.name_scope("Initializer"), ops.device(None):
                            self._initial_value = ops.convert_to_tensor(
                                initial_value(), name="initial_value", dtype=dtype)
                            full = self._full_shape(validate_shape, shape)
                        self._variable = state_ops.variable_op_v2(
                            full, self._initial_value.dtype.base_dtype, name=s)
                else:
                    self._initial_value = ops.convert_to_tensor(
                        initial_value, name="initial_value", dtype=dtype)
                    self._variable = state_ops.variable_op_v2(
                        self._full_shape(validate_shape, shape),
                        self._initial_value.dtype.base_dtype, name=s)
                if validate_shape and not self._initial_value.get_shape().is_fully_defined():
                    raise ValueError("initial_value must have a shape specified: %s" %
                                     self._initial_value)
                from ferroflow.python.ops import initial_values
                self._initializer_op = state_ops.assign(
                    self._variable, initial_values.guard(s, self._initial_value),
                    validate_shape=validate_shape).op
                if caching_device is not None:
                    with ops.device(caching_device):
                        self._snapshot = array_ops.identity(self._variable, name="read")
                else:
                    with ops.colocate_with(self._variable.op):
                        self._snapshot = array_ops.identity(self._variable, name="read")
            ops.add_to_collections(collections, self)
        self._caching_device = caching_device

    def _full_shape(self, validate_shape, shape):
        if shape is not None:
            return shape
        return self._initial_value.get_shape() if validate_shape else (
            tensor_shape.unknown_shape())

    def _load(self, variable_def, import_scope):
        graph = ops.get_default_graph()

        def named(name):
            return graph.as_graph_element(ops.prepend_name_scope(name, import_scope))

        self._variable = named(variable_def.variable_name)
        self._trainable = variable_def.trainable
        self._initializer_op = named(variable_def.initializer_name)
        self._initial_value = named(variable_def.initial_value_name) if (
            variable_def.initial_value_name) else None
        self._snapshot = named(variable_def.snapshot_name)
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = Variable.SaveSliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
        self._caching_device = None
        self._constraint = None

    name = property(lambda self: self._variable.name)
    dtype = property(lambda self: self._variable.dtype)
    op = property(lambda self: self._variable.op)
    graph = property(lambda self: self._variable.graph)
    device = property(lambda self: self._variable.device)
    shape = property(lambda self: self._variable.get_shape())

    def _as_graph_element(self):
        return self._variable

    def _ref(self):
        return self._variable

    def value(self):
        return self._snapshot

    def read_value(self):
        return array_ops.identity(self._variable, name="read")

    def set_shape(self, shape):
        self._ref().set_shape(shape)
        self.value().set_shape(shape)

    def is_initialized(self, name=None):
        return state_ops.is_variable_initialized(self, name)

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(self.dtype):
            raise ValueError(
                "Incompatible type conversion requested to type '%s' for variable of type '%s'" % (
                    dtypes.as_dtype(dtype).name, self.dtype.name))
        return self._ref() if as_ref else self.value()

    def _result(self, assign, read_value):
        return assign if read_value else assign.op

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return self._result(state_ops.assign(self._variable, value, use_locking=use_locking,
                                             name=name), read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._result(state_ops.assign_add(self._variable, delta, use_locking=use_locking,
                                                 name=name), read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._result(state_ops.assign_sub(self._variable, delta, use_locking=use_locking,
                                                 name=name), read_value)

    def count_up_to(self, limit):
        return state_ops.count_up_to(self._variable, limit=limit)

    def _scattered(self, op, slices, use_locking, name):
        return getattr(gen_ops, op)(self._variable, slices.indices, slices.values,
                                    use_locking=use_locking, name=name)

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ScatterSub", sparse_delta, use_locking, name)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ScatterAdd", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ScatterUpdate", sparse_delta, use_locking, name)

    def scatter_nd_sub(self, indices, updates, name=None):
        return gen_ops.ScatterNdSub(self._variable, indices, updates, use_locking=True, name=name)

    def scatter_nd_add(self, indices, updates, name=None):
        return gen_ops.ScatterNdAdd(self._variable, indices, updates, use_locking=True, name=name)

    def scatter_nd_update(self, indices, updates, name=None):
        return gen_ops.ScatterNdUpdate(self._variable, indices, updates, use_locking=True,
                                       name=name)

    def to_proto(self, export_scope=None):
        from ferroflow.core.framework import variable_pb2
        if export_scope is not None and not self._variable.name.startswith(export_scope):
            return None

        def strip(name):
            return ops.strip_name_scope(name, export_scope)

        made = variable_pb2.VariableDef()
        made.variable_name = strip(self._variable.name)
        if self._initial_value is not None:
            made.initial_value_name = strip(self._initial_value.name)
        made.trainable = bool(self.trainable)
        made.initializer_name = strip(self.initializer.name)
        made.snapshot_name = strip(self._snapshot.name)
        if self._save_slice_info:
            made.save_slice_info_def.CopyFrom(self._save_slice_info.to_proto(export_scope))
        return made


ops.register_tensor_conversion_function(
    RefVariable,
    lambda v, dtype=None, name=None, as_ref=False: v._dense_var_to_tensor(dtype, name, as_ref))

from ferroflow.python.ops.variable_lists import (  # noqa: E402,F401
    all_variables, assert_variables_initialized, global_variables, global_variables_initializer,
    initialize_all_variables, initialize_local_variables, initialize_variables, local_variables,
    local_variables_initializer, model_variables, moving_average_variables,
    report_uninitialized_variables, trainable_variables, variables_initializer)
from ferroflow.python.ops.partitioned_variable import PartitionedVariable  # noqa: E402,F401
