"""Puts variables on parameter servers and everything else on a worker."""

import operator

import numpy as np

from ferroflow.python.framework import device as pydev
from ferroflow.python.framework import tensor_shape
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import server_lib

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
    "DecisionTreeResource",
)


class _RoundRobinStrategy:
    """Goes from one ps task to the next."""

    def __init__(self, num_tasks):
        self._num_tasks, self._next_task = num_tasks, 0

    def __call__(self, unused_op):
        task = self._next_task
        self._next_task = (self._next_task + 1) % self._num_tasks
        return task


class GreedyLoadBalancingStrategy:
    """Takes the ps task with the least load so far; `load_fn` is the load of an operation."""

    def __init__(self, num_tasks, load_fn):
        self._num_tasks, self._load_fn = num_tasks, load_fn
        self._ps_loads = np.zeros(num_tasks)

    def __call__(self, op):
        task = int(np.argmin(self._ps_loads))
        self._ps_loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """Takes a random ps task, the same for an operation of the same name."""

    def __init__(self, num_ps_tasks, seed=0):
        self._num_tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op):
        import hashlib

        digest = hashlib.md5(("%s_%s" % (op.name, self._seed)).encode("utf-8")).hexdigest()
        return int(digest, 16) % self._num_tasks


def byte_size_load_fn(op):
    """The size of a variable in bytes, as a load."""
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output = op.outputs[0]
    shape = tensor_shape.TensorShape(op.get_attr("shape")) if op.type == "VarHandleOp" else output.get_shape()
    dtype = op.get_attr("dtype") if op.type == "VarHandleOp" else output.dtype
    elem_size = 8 if dtype.base_dtype.name == "string" else dtype.base_dtype.size
    shape.assert_is_fully_defined()
    count = 1
    for size in shape.as_list():
        count = operator.mul(count, size)
    return count * elem_size


class _ReplicaDeviceChooser:
    def __init__(self, ps_tasks, ps_device, worker_device, merge_devices, ps_ops, ps_strategy):
        self._ps_tasks, self._ps_device, self._worker_device = ps_tasks, ps_device, worker_device
        self._merge_devices, self._ps_ops, self._ps_strategy = merge_devices, frozenset(ps_ops), ps_strategy
        self._known = {}

    def device_function(self, op):
        device = op.device
        if not self._merge_devices and device:
            return device
        kind = op.type if hasattr(op, "type") else op.op
        if not (self._ps_tasks and self._ps_device and kind in self._ps_ops):
            # The answer for a worker depends on the device alone.
            found = self._known.get(device)
            if found is None:
                worker = pydev.DeviceSpec.from_string(self._worker_device or "")
                found = worker.make_merged_spec(pydev.DeviceSpec.from_string(device or "")).to_string()
                self._known[device] = found
            return found
        current = pydev.DeviceSpec.from_string(device or "")
        ps = pydev.DeviceSpec.from_string(self._ps_device)
        if ps.job and (not current.job or current.job == ps.job):
            ps = ps.replace(task=self._ps_strategy(op))
        return ps.make_merged_spec(current).to_string()


def replica_device_setter(
    ps_tasks=0, ps_device="/job:ps", worker_device="/job:worker", merge_devices=True, cluster=None, ps_ops=None, ps_strategy=None
):
    """A device function for `tf.device`: variables to the ps tasks in turn, the rest to the worker."""
    if cluster is not None:
        if isinstance(cluster, server_lib.ClusterSpec):
            cluster_spec = cluster.as_dict()
        else:
            cluster_spec = server_lib.ClusterSpec(cluster).as_dict()
        ps_job_name = pydev.DeviceSpec.from_string(ps_device).job
        if ps_job_name not in cluster_spec or cluster_spec[ps_job_name] is None:
            return None
        ps_tasks = len(cluster_spec[ps_job_name])
    if ps_tasks == 0:
        return None
    if ps_ops is None:
        ps_ops = list(STANDARD_PS_OPS)
    if not merge_devices:
        logging.warning("DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter")
    if ps_strategy is None:
        ps_strategy = _RoundRobinStrategy(ps_tasks)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    return _ReplicaDeviceChooser(ps_tasks, ps_device, worker_device, merge_devices, ps_ops, ps_strategy).device_function
