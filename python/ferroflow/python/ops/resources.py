"""Resources that have to be made before a graph can use them, in collections of the graph."""

import collections

from ferroflow.python.framework import dtypes, ops
from ferroflow.python.framework import constant_op
from ferroflow.python.ops import array_ops, control_flow_ops, gen_ops

_Resource = collections.namedtuple("_Resource", ["handle", "create", "is_initialized"])


def register_resource(handle, create_op, is_initialized_op, is_shared=True):
    key = ops.GraphKeys.RESOURCES if is_shared else ops.GraphKeys.LOCAL_RESOURCES
    ops.add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources():
    return ops.get_collection(ops.GraphKeys.RESOURCES)


def local_resources():
    return ops.get_collection(ops.GraphKeys.LOCAL_RESOURCES)


def report_uninitialized_resources(resource_list=None, name="report_uninitialized_resources"):
    """The names of the resources that do not exist yet."""
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with ops.name_scope(name), ops.device("/cpu:0"):
        if not resource_list:
            return constant_op.constant([], dtype=dtypes.string)
        missing = gen_ops.logical_not(array_ops.stack([r.is_initialized for r in resource_list]))
        return array_ops.boolean_mask(constant_op.constant([r.handle.name for r in resource_list]), missing)


def initialize_resources(resource_list, name="init"):
    if resource_list:
        return control_flow_ops.group(*[r.create for r in resource_list], name=name)
    return control_flow_ops.no_op(name=name)
