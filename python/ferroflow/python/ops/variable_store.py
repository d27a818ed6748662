"""Variables by name: what `get_variable` makes or finds again."""

import functools
import inspect
import traceback
import weakref

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import versions
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import operators
from ferroflow.python.ops import variables


class _PartitionInfo:
    """Which part of a partitioned variable an initializer is called for."""

    def __init__(self, full_shape, var_offset):
        self.full_shape, self.var_offset = full_shape, var_offset

    def single_offset(self, shape):
        return self.var_offset[self.single_slice_dim(shape)] if (
            self.single_slice_dim(shape) is not None) else 0

    def single_slice_dim(self, shape):
        for dim, (part, whole) in enumerate(zip(shape, self.full_shape)):
            if part != whole:
                return dim
        return None


class VariableStore:
    """The variables of one graph, by their full names."""

    def __init__(self):
        self._vars = {}
        self._partitioned_vars = {}
        self.scope_counts = {}

    def get_variable(self, name, custom_getter=None, **kwargs):
        kwargs["dtype"] = getattr(kwargs["dtype"], "base_dtype", kwargs["dtype"])
        if custom_getter is None:
            return self._get(name, **kwargs)
        if not callable(custom_getter):
            raise ValueError("Passed a custom_getter which is not callable: %s" % custom_getter)
        if kwargs.get("trainable") is None:
            # A getter sees what the variable will be.
            kwargs["trainable"] = kwargs.get("synchronization") != variables.VariableSynchronization.ON_READ
        if not _takes(custom_getter, "constraint"):
            kwargs.pop("constraint", None)
        return custom_getter(getter=self._get, name=name, **kwargs)

    def _get(self, name, shape=None, dtype=dtypes.float32, initializer=None, regularizer=None,
             reuse=None, trainable=None, collections=None, caching_device=None, partitioner=None,
             validate_shape=True, use_resource=None, constraint=None, synchronization=None,
             aggregation=None):
        made = dict(shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
                    reuse=reuse, trainable=trainable, collections=collections,
                    caching_device=caching_device, validate_shape=validate_shape,
                    use_resource=use_resource, constraint=constraint)
        scalar = isinstance(shape, (list, tuple)) and not shape
        if partitioner is not None and not scalar:
            if not callable(partitioner):
                raise ValueError("Partitioner must be callable, but received: %s" % partitioner)
            with ops.name_scope(None):
                return self._partitioned(name, partitioner, **made)
        if reuse is True and name in self._partitioned_vars:
            return self._partitioned(name, None, **made)
        if "%s/part_0" % name in self._vars:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was found: "
                "%s/part_0. Perhaps a variable of the same name was already created with "
                "partitioning?" % name)
        return self._single(name, **made)

    def _single(self, name, shape, dtype, initializer, regularizer, reuse, trainable, collections,
                caching_device, validate_shape, use_resource, constraint, partition_info=None):
        from_value = initializer is not None and not callable(initializer)
        if shape is not None and from_value:
            raise ValueError("If initializer is a constant, do not specify shape.")
        dtype = dtypes.as_dtype(dtype)
        if shape is not None:
            shape = tensor_shape.as_shape(shape)
        if name in self._vars:
            return self._found(name, shape, dtype, reuse)
        if reuse is True:
            raise ValueError("Variable %s does not exist, or was not created with "
                             "tf.get_variable(). Did you mean to set reuse=tf.AUTO_REUSE in "
                             "VarScope?" % name)
        if initializer is None:
            if shape is None:
                raise ValueError("Variable %s did not get an initializer, so its `shape` argument "
                                 "must be specified." % name)
            initializer = _default_initializer(name, dtype)
        value, value_dtype = _initial_value(initializer, from_value, shape, dtype, partition_info)
        if use_resource is None:
            use_resource = versions.resource_variables_enabled()
        var = variables.Variable(
            initial_value=value, name=name, trainable=trainable, collections=collections,
            caching_device=caching_device, dtype=value_dtype, validate_shape=validate_shape,
            constraint=constraint, use_resource=use_resource, shape=shape)
        self._vars[name] = var
        if regularizer:
            def penalty():
                with ops.colocate_with(var.op):
                    with ops.name_scope(name + "/Regularizer/"):
                        return regularizer(var)
            if regularizer(var) is not None:
                ops.add_to_collection(ops.GraphKeys.REGULARIZATION_LOSSES, LazyTensor(penalty))
        return var

    def _found(self, name, shape, dtype, reuse):
        var = self._vars[name]
        if reuse is False:
            message = ("Variable %s already exists, disallowed. Did you mean to set reuse=True or "
                       "reuse=tf.AUTO_REUSE in VarScope?" % name)
            frames = list(var.op.traceback or [])[::-1] if hasattr(var.op, "traceback") else []
            frames = [f for f in frames if "ferroflow/python" not in f[0]][:5]
            if frames:
                message += " Originally defined at:\n\n%s" % "".join(
                    traceback.format_list(frames))
            raise ValueError(message)
        if shape is not None and not shape.is_compatible_with(var.get_shape()):
            raise ValueError("Trying to share variable %s, but specified shape %s and found shape "
                             "%s." % (name, shape, var.get_shape()))
        if not dtype.is_compatible_with(var.dtype):
            raise ValueError("Trying to share variable %s, but specified dtype %s and found dtype "
                             "%s." % (name, dtype.name, var.dtype.name))
        return var

    def _partitioned(self, name, partitioner, shape, dtype, initializer, reuse, **kwargs):
        if name in self._vars:
            raise ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable was "
                "found: %s.  Perhaps a variable of the same name was already created without "
                "partitioning?" % name)
        shape = tensor_shape.as_shape(shape)
        dtype = dtypes.as_dtype(dtype)
        if isinstance(initializer, ops.Tensor):
            shape = shape.merge_with(initializer.get_shape())
        partitions = None
        if not reuse or partitioner:
            partitions = _partitions(partitioner, shape, dtype)
        if name in self._partitioned_vars:
            return self._found_partitioned(name, shape, dtype, reuse, partitions)
        if reuse is True:
            raise ValueError("PartitionedVariable %s does not exist, or was not created with "
                             "tf.get_variable(). Did you mean to set reuse=False or "
                             "reuse=tf.AUTO_REUSE in VarScope?" % name)
        # Without a name of its own a variable has that of its scope.
        name = name.rstrip("/")
        parts = []
        for i, (offset, part_shape) in enumerate(_slices(shape.as_list(), partitions)):
            full_name = "%s/part_%d" % (name, i)
            with ops.name_scope(full_name + "/PartitionedInitializer"):
                made, made_shape = initializer, part_shape
                if initializer is None:
                    made = _default_initializer(name, dtype)
                elif not callable(initializer):
                    made = array_ops.slice(
                        ops.convert_to_tensor(initializer, dtype=dtype), offset, part_shape)
                    made_shape = None
            with ops.name_scope(None):
                var = self._single(
                    full_name, shape=made_shape, dtype=dtype, initializer=made, reuse=reuse,
                    partition_info=_PartitionInfo(shape.as_list(), offset), **kwargs)
            var._set_save_slice_info(variables.Variable.SaveSliceInfo(
                name, shape.as_list(), offset, part_shape))
            parts.append(var)
        whole = variables.PartitionedVariable(name=name, shape=shape, dtype=dtype,
                                              variable_list=parts, partitions=partitions)
        self._partitioned_vars[name] = whole
        return whole

    def _found_partitioned(self, name, shape, dtype, reuse, partitions):
        if reuse is False:
            raise ValueError("Partitioned variable with name %s already exists. Did you mean to "
                             "set reuse=True or reuse=tf.AUTO_REUSE in VarScope?" % name)
        found = self._partitioned_vars[name]
        if not shape.is_compatible_with(found.get_shape()):
            raise ValueError("Trying to reuse partitioned variable %s, but specified shape %s and "
                             "found shape %s." % (name, shape, found.get_shape()))
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError("Trying to reuse partitioned variable %s, but specified dtype %s and "
                             "found dtype %s." % (name, dtype.name, found.dtype.name))
        if partitions is not None and found._get_partitions() != partitions:
            raise ValueError("Trying to reuse partitioned variable %s, but specified partitions "
                             "%s and found partitions %s." % (
                                 name, partitions, found._get_partitions()))
        return found


def _takes(function, argument):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return argument in parameters or any(
        p.kind is p.VAR_KEYWORD for p in parameters.values())


def _default_initializer(name, dtype):
    if dtype.is_floating:
        return init_ops.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_unsigned or dtype.is_bool or dtype == dtypes.string:
        return init_ops.zeros_initializer()
    raise ValueError("An initializer for variable %s of %s is required" % (
        name, dtype.base_dtype))


def _initial_value(initializer, from_value, shape, dtype, partition_info):
    if from_value:
        return initializer, None
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        kwargs = {"dtype": dtype}
        call = initializer if inspect.isfunction(initializer) else (
            getattr(initializer, "__call__", initializer))
        if partition_info is not None and _names(call, "partition_info"):
            kwargs["partition_info"] = partition_info
        return functools.partial(initializer, shape.as_list(), **kwargs), dtype.base_dtype
    if _needs_arguments(initializer):
        raise ValueError("The shape %s of a new variable is not fully defined: its initializer must be "
                         "a tensor or a function without arguments, not %r" % (shape, initializer))
    return initializer, None


def _needs_arguments(function):
    """Whether a function cannot be called without arguments."""
    if not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)


def _names(function, argument):
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _partitions(partitioner, shape, dtype):
    if not shape.is_fully_defined():
        raise ValueError("Shape of a new partitioned variable must be fully defined, but instead "
                         "was %s." % shape)
    if shape.ndims < 1:
        raise ValueError("A partitioned Variable must have rank at least 1, shape: %s" % shape)
    slicing = partitioner(shape=shape, dtype=dtype)
    if not isinstance(slicing, (list, tuple)):
        raise ValueError("Partitioner must return a sequence, but saw: %s" % slicing)
    if len(slicing) != shape.ndims:
        raise ValueError("Partitioner returned a partition list that does not match the "
                         "Variable's rank: %s vs. %s" % (slicing, shape))
    if any(p < 1 for p in slicing):
        raise ValueError("Partitioner returned zero partitions for some axes: %s" % slicing)
    if sum(p > 1 for p in slicing) > 1:
        raise ValueError("Can only slice a variable along one dimension: shape: %s, partitioning: "
                         "%s" % (shape, slicing))
    return list(slicing)


def _slices(shape, partitions):
    """The offset and shape of each part; the first parts are the larger ones."""
    axis = next((i for i, p in enumerate(partitions) if p > 1), 0)
    count = partitions[axis]
    size, larger = divmod(shape[axis], count)
    offset = [0] * len(shape)
    for i in range(count):
        part = list(shape)
        part[axis] = size + (1 if i < larger else 0)
        yield list(offset), part
        offset[axis] += part[axis]


class LazyTensor:
    """A tensor that is created again at each use, so that it is in the right context."""

    def __init__(self, make):
        self._make = make
        self._tensor = make()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_tensor"], name)

    def _as_graph_element(self):
        return self._tensor


def _lazy_operator(name):
    return lambda self, *operands: getattr(self._make(), name)(*operands)


for _name in operators.OPERATORS:
    setattr(LazyTensor, _name, _lazy_operator(_name))
ops.register_tensor_conversion_function(
    LazyTensor, lambda value, dtype=None, name=None, as_ref=False: value._make())

_stores = weakref.WeakKeyDictionary()


def store_of(graph):
    """The variable store of a graph."""
    found = _stores.get(graph)
    if found is None:
        found = _stores[graph] = VariableStore()
    return found
