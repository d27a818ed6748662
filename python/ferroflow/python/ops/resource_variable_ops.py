"""Resource variables: a handle, and ops that read and write through it."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variables


def is_resource_variable(var):
    return isinstance(var, ResourceVariable) or hasattr(
        var, "_should_act_as_resource_variable")


def handle_dtype(handle):
    """The dtype of the variable behind a handle."""
    while handle.op.type != "VarHandleOp" and handle.op.inputs:
        handle = handle.op.inputs[0]
    return dtypes.as_dtype(handle.op.get_attr("dtype"))


def variable_shape(handle, out_type=dtypes.int32):
    """The shape of the variable behind a handle, as a constant where it is known."""
    source = handle
    while source.op.type != "VarHandleOp" and source.op.inputs:
        source = source.op.inputs[0]
    if source.op.type == "VarHandleOp":
        static = tensor_shape.TensorShape(source.op.get_attr("shape"))
        if static.is_fully_defined():
            return constant_op.constant(static.as_list(), dtype=out_type)
    return gen_ops.VariableShape(handle, out_type=out_type)


def lazy_read(var, op):
    """The variable after `op`, for a program that uses it further."""
    return _UnreadVariable(var, op)


class ResourceVariable(variables.Variable):
    """A variable behind a handle."""

    _should_act_as_resource_variable = True

    def __init__(self, initial_value=None, trainable=None, collections=None, validate_shape=True,
                 caching_device=None, name=None, dtype=None, variable_def=None,
                 import_scope=None, constraint=None, distribute_strategy=None,
                 synchronization=None, aggregation=None, shape=None):
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("The variable_def and initial_value args to "
                                 "`tf.Variable` are mutually exclusive.")
            self._load(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified except "
                             "when you are not providing a `variable_def`.")
        if constraint is not None and not callable(constraint):
            raise ValueError("Argument `constraint` must be None or a callable.")
        self._trainable = True if trainable is None else trainable
        self._constraint = constraint
        self._caching_device = caching_device
        collections = self._add_to(collections, self._trainable)
        from_function = callable(initial_value)
        with ops.init_scope():
            with ops.name_scope(name, "Variable", [] if from_function else [initial_value]) as s:
                own = s.rstrip("/")
                with ops.get_default_graph()._attr_scope({"_class": variables.class_attr(own)}):
                    with ops.name_scope("Initializer"), ops.device(None):
                        self._initial_value = ops.convert_to_tensor(
                            initial_value() if from_function else initial_value,
                            name="initial_value", dtype=dtype)
                    if shape is None:
                        shape = self._initial_value.get_shape() if validate_shape else (
                            tensor_shape.unknown_shape())
                    self._shape = tensor_shape.as_shape(shape)
                    self._dtype = self._initial_value.dtype.base_dtype
                    self._handle = gen_ops.VarHandleOp(
                        shape=self._shape, dtype=self._dtype, shared_name=own, name=s,
                        debug_name=s,
                        container=getattr(ops.get_default_graph(), "_container", "") or "")
                    if validate_shape and not self._initial_value.get_shape().is_fully_defined():
                        raise ValueError("initial_value must have a shape specified: %s" %
                                         self._initial_value)
                with ops.name_scope("IsInitialized"):
                    self._is_initialized_op = gen_ops.VarIsInitializedOp(self._handle)
                from ferroflow.python.ops import initial_values
                with ops.name_scope("Assign") as n, ops.colocate_with(
                        None, ignore_existing=True), ops.device(self._handle.device):
                    self._initializer_op = gen_ops.AssignVariableOp(
                        self._handle, initial_values.guard(s, self._initial_value), name=n)
                with ops.name_scope("Read"):
                    with ops.device(self._handle.device):
                        value = gen_ops.ReadVariableOp(self._handle, self._dtype)
                        value.set_shape(self._shape)
                    self._graph_element = value
                    self._cached_value = None
                    if caching_device is not None:
                        with ops.colocate_with(None, ignore_existing=True), ops.device(
                                caching_device):
                            self._cached_value = array_ops.identity(value)
            ops.add_to_collections(collections, self)

    def _load(self, variable_def, import_scope):
        graph = ops.get_default_graph()

        def named(name):
            return graph.as_graph_element(ops.prepend_name_scope(name, import_scope))

        self._handle = named(variable_def.variable_name)
        self._shape = tensor_shape.TensorShape(self._handle.op.get_attr("shape"))
        self._dtype = dtypes.as_dtype(self._handle.op.get_attr("dtype"))
        self._trainable = variable_def.trainable
        self._initializer_op = named(variable_def.initializer_name)
        self._initial_value = named(variable_def.initial_value_name) if (
            variable_def.initial_value_name) else None
        snapshot = named(variable_def.snapshot_name) if variable_def.snapshot_name else None
        self._cached_value = None
        self._graph_element = snapshot
        if snapshot is not None and snapshot.op.type != "ReadVariableOp":
            self._cached_value = snapshot
        elif snapshot is None:
            self._graph_element = gen_ops.ReadVariableOp(self._handle, self._dtype)
        self._is_initialized_op = named(
            self._handle.op.name + "/IsInitialized/VarIsInitializedOp:0") if (
                _exists(graph, variable_def, import_scope)) else gen_ops.VarIsInitializedOp(
                    self._handle)
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = variables.Variable.SaveSliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
        self._caching_device = None
        self._constraint = None

    handle = property(lambda self: self._handle)
    name = property(lambda self: self._handle.name)
    dtype = property(lambda self: self._dtype)
    op = property(lambda self: self._handle.op)
    graph = property(lambda self: self._handle.graph)
    device = property(lambda self: self._handle.device)
    shape = property(lambda self: self._shape)
    create = property(lambda self: self._initializer_op)
    _unique_id = property(lambda self: self._handle.op.name)

    def _as_graph_element(self):
        return self._graph_element

    def is_initialized(self, name=None):
        return gen_ops.VarIsInitializedOp(self._handle, name)

    def set_shape(self, shape):
        self._shape = self._shape.merge_with(shape)

    def _read(self):
        value = gen_ops.ReadVariableOp(self._handle, self._dtype)
        value.set_shape(self._shape)
        return value

    def value(self):
        if self._cached_value is not None:
            return self._cached_value
        with ops.colocate_with(None, ignore_existing=True):
            return self._read()

    def read_value(self):
        with ops.name_scope("Read"):
            value = self._read()
        return array_ops.identity(value)

    def sparse_read(self, indices, name=None):
        with ops.name_scope("Gather" if name is None else name) as scope:
            value = gen_ops.ResourceGather(self._handle, indices, dtype=self._dtype, name=scope)
            value.set_shape(value.op.inputs[1].get_shape().concatenate(self._shape[1:]))
            return value

    def gather_nd(self, indices, name=None):
        with ops.name_scope("GatherNd" if name is None else name) as scope:
            value = gen_ops.ResourceGatherNd(self._handle, indices, dtype=self._dtype,
                                             name=scope)
        return array_ops.identity(value)

    def _ref(self):
        raise NotImplementedError("ResourceVariable does not implement _ref()")

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(self.dtype):
            raise ValueError(
                "Incompatible type conversion requested to type '%s' for `tf.Variable that is "
                "type '%s'. (Variable: %s)" % (
                    dtypes.as_dtype(dtype).name, self.dtype.name, self))
        return self.read_value().op.inputs[0] if as_ref else self.value()

    def _lazy_read(self, op):
        return _UnreadVariable(self, op)

    def _assigned(self, op, read_value):
        return self._lazy_read(op) if read_value else op

    def assign(self, value, use_locking=None, name=None, read_value=True):
        value = ops.convert_to_tensor(value, dtype=self.dtype)
        if not self._shape.is_compatible_with(value.get_shape()):
            tensor_name = " " + str(self.name)
            raise ValueError("Cannot assign value to variable '%s': Shape mismatch.The variable "
                             "shape %s, and the assigned value shape %s are incompatible." % (
                                 tensor_name, self._shape, value.get_shape()))
        return self._assigned(gen_ops.AssignVariableOp(
            self._handle, value, validate_shape=self._shape.is_fully_defined(), name=name),
            read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        return self._assigned(gen_ops.AssignAddVariableOp(self._handle, self._fitting(delta), name=name), read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        return self._assigned(gen_ops.AssignSubVariableOp(self._handle, self._fitting(delta), name=name), read_value)

    def _fitting(self, delta):
        """A tensor that can be added: it is not broadcast."""
        delta = ops.convert_to_tensor(delta, dtype=self.dtype)
        if not self._shape.is_compatible_with(delta.get_shape()):
            raise ValueError("Shapes must be equal, but are %s and %s for variable '%s'" % (
                self._shape, delta.get_shape(), self.name))
        return delta

    def count_up_to(self, limit):
        return gen_ops.ResourceCountUpTo(self._handle, limit=limit, T=self.dtype)

    def _scattered(self, op, slices, name):
        return self._lazy_read(getattr(gen_ops, op)(
            self._handle, slices.indices, ops.convert_to_tensor(slices.values, self.dtype),
            name=name))

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ResourceScatterSub", sparse_delta, name)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ResourceScatterAdd", sparse_delta, name)

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._scattered("ResourceScatterUpdate", sparse_delta, name)

    def scatter_nd_add(self, indices, updates, name=None):
        return state_ops.scatter_nd_add(self, indices, updates, name=name)

    def scatter_nd_sub(self, indices, updates, name=None):
        return state_ops.scatter_nd_sub(self, indices, updates, name=name)

    def scatter_nd_update(self, indices, updates, name=None):
        return state_ops.scatter_nd_update(self, indices, updates, name=name)

    def to_proto(self, export_scope=None):
        from ferroflow.core.framework import variable_pb2
        if export_scope is not None and not self.handle.name.startswith(export_scope):
            return None

        def strip(name):
            return ops.strip_name_scope(name, export_scope)

        made = variable_pb2.VariableDef()
        made.variable_name = strip(self.handle.name)
        if self._initial_value is not None:
            made.initial_value_name = strip(self._initial_value.name)
        made.initializer_name = strip(self.initializer.name)
        snapshot = self._cached_value if self._cached_value is not None else self._graph_element
        made.snapshot_name = strip(snapshot.name)
        made.is_resource = True
        made.trainable = bool(self.trainable)
        if self._save_slice_info:
            made.save_slice_info_def.CopyFrom(self._save_slice_info.to_proto(export_scope))
        return made


def _exists(graph, variable_def, import_scope):
    name = ops.prepend_name_scope(variable_def.variable_name, import_scope).split(":")[0]
    try:
        graph.get_operation_by_name(name + "/IsInitialized/VarIsInitializedOp")
    except KeyError:
        return False
    return True


class _UnreadVariable(ResourceVariable):
    """A variable after an assignment: reading it waits for the assignment."""

    def __init__(self, var, op):
        self.__dict__.update(var.__dict__)
        self._parent_op = op
        self._cached_value = None
        self._graph_element = self._read()

    def _read(self):
        with ops.control_dependencies([self._parent_op]):
            value = gen_ops.ReadVariableOp(self._handle, self._dtype)
            value.set_shape(self._shape)
            return value

    def value(self):
        return self._read()

    def read_value(self):
        return self._read()

    @property
    def name(self):
        return self._parent_op.name

    @property
    def op(self):
        return self._parent_op

    def assign(self, *args, **kwargs):
        with ops.control_dependencies([self._parent_op]):
            return super().assign(*args, **kwargs)

    def assign_add(self, *args, **kwargs):
        with ops.control_dependencies([self._parent_op]):
            return super().assign_add(*args, **kwargs)

    def assign_sub(self, *args, **kwargs):
        with ops.control_dependencies([self._parent_op]):
            return super().assign_sub(*args, **kwargs)


ops.register_tensor_conversion_function(
    ResourceVariable,
    lambda v, dtype=None, name=None, as_ref=False: v._dense_var_to_tensor(dtype, name, as_ref))
