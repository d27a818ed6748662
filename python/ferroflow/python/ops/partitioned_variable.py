"""Variables in parts, for tables that are too large for one parameter server."""

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops


class PartitionedVariable:
    """A list of variables that together are one."""

    def __init__(self, name, shape, dtype, variable_list, partitions):
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError("variable_list is not a list or tuple: %s" % variable_list)
        if not isinstance(partitions, (list, tuple)):
            raise TypeError("partitions is not a list or tuple: %s" % partitions)
        if not all(p >= 1 for p in partitions):
            raise ValueError("partition values must be positive: %s" % partitions)
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        # The parts by their offsets, so that concatenating them gives the whole.
        self._variable_list = sorted(variable_list,
                                     key=lambda v: v._get_save_slice_info().var_offset)
        self._name = name
        self._shape = shape
        self._dtype = dtype
        self._partitions = partitions
        self._as_tensor_value = None

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: tensor_shape.TensorShape(self._shape))
    _distribute_strategy = None

    def get_shape(self):
        return self.shape

    def __iter__(self):
        return iter(self._variable_list)

    def __len__(self):
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError("Cannot get a length for %d > 1 partition axes" % len(axes))
        return len(self._variable_list)

    def _partition_axes(self):
        if all(p == 1 for p in self._partitions):
            return [0]
        return [i for i, p in enumerate(self._partitions) if p > 1]

    def _concat(self):
        """The whole value, concatenated along the axis of the partitions."""
        axes = self._partition_axes()
        if len(axes) > 1:
            raise NotImplementedError("Cannot concatenate along more than one dimension: %s. "
                                      "Multi-axis partition concat is not supported" % axes)
        axis = axes[0]
        if len(self._variable_list) == 1:
            with ops.name_scope(None):
                return array_ops.identity(self._variable_list[0], name=self._name)
        with ops.name_scope(self._name + "/ConcatPartitions/"):
            whole = array_ops.concat(self._variable_list, axis)
        with ops.name_scope(None):
            return array_ops.identity(whole, name=self._name)

    def as_tensor(self):
        with ops.control_dependencies(None):
            return self._concat()

    @staticmethod
    def _convert(v, dtype=None, name=None, as_ref=False):
        if as_ref:
            raise NotImplementedError("PartitionedVariable doesn't support being used as a "
                                      "reference.")
        if dtype is not None and not dtype.is_compatible_with(v.dtype):
            raise ValueError("Incompatible type conversion requested to type '%s' for variable of "
                             "type '%s'" % (dtype.name, v.dtype.name))
        return v.as_tensor()

    def _get_variable_list(self):
        return self._variable_list

    def _get_partitions(self):
        return self._partitions

    def _apply(self, method, value, **kwargs):
        parts = array_ops.split(
            value, [v.get_shape().as_list()[self._partition_axes()[0]]
                    for v in self._variable_list], axis=self._partition_axes()[0])
        return [getattr(v, method)(p, **kwargs) for v, p in zip(self._variable_list, parts)]

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return self._apply("assign", value, use_locking=use_locking, name=name,
                           read_value=read_value)

    def assign_add(self, value, use_locking=False, name=None, read_value=True):
        return self._apply("assign_add", value, use_locking=use_locking, name=name,
                           read_value=read_value)

    def assign_sub(self, value, use_locking=False, name=None, read_value=True):
        return self._apply("assign_sub", value, use_locking=use_locking, name=name,
                           read_value=read_value)


ops.register_tensor_conversion_function(PartitionedVariable, PartitionedVariable._convert)
