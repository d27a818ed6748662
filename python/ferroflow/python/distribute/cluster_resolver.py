"""`tf.distribute.cluster_resolver`: finds the tasks of a cluster."""

import json
import os

from ferroflow.python.training.server_lib import ClusterSpec
from ferroflow.python.util.api import export


@export("distribute.cluster_resolver.ClusterResolver", "contrib.cluster_resolver.ClusterResolver")
class ClusterResolver:
    """What a resolver can say."""

    task_type = task_id = None
    environment, rpc_layer = "", None

    def cluster_spec(self):
        raise NotImplementedError()

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        raise NotImplementedError()

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        return {}

    def _address(self, task_type, task_id, rpc_layer):
        """The target of a task of the cluster."""
        address = self.cluster_spec().task_address(task_type, task_id)
        layer = rpc_layer or self.rpc_layer
        return "%s://%s" % (layer, address) if layer else address


@export("distribute.cluster_resolver.SimpleClusterResolver", "contrib.cluster_resolver.SimpleClusterResolver")
class SimpleClusterResolver(ClusterResolver):
    """A cluster that is given."""

    def __init__(self, cluster_spec, master="", task_type=None, task_id=None, environment="", num_accelerators=None, rpc_layer=None):
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("`cluster_spec` must be a `tf.train.ClusterSpec`.")
        if not isinstance(master, str):
            raise TypeError("`master` must be a string.")
        self._spec, self._master = cluster_spec, master
        self.task_type, self.task_id = task_type, task_id
        self.environment, self.rpc_layer, self._accelerators = environment, rpc_layer, num_accelerators

    def cluster_spec(self):
        return self._spec

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        if task_type is not None and task_id is not None:
            return self._address(task_type, task_id, rpc_layer)
        if self._master:
            layer = rpc_layer or self.rpc_layer
            return "%s://%s" % (layer, self._master) if layer and "://" not in self._master else self._master
        return self._master

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        return self._accelerators or {}


@export("distribute.cluster_resolver.TFConfigClusterResolver", "contrib.cluster_resolver.TFConfigClusterResolver")
class TFConfigClusterResolver(ClusterResolver):
    """The cluster in the environment variable TF_CONFIG."""

    def __init__(self, task_type=None, task_id=None, rpc_layer=None, environment=None):
        self._type, self._id, self._layer, self._environment = task_type, task_id, rpc_layer, environment

    @staticmethod
    def _config():
        return json.loads(os.environ.get("TF_CONFIG") or "{}")

    @property
    def task_type(self):
        return self._type if self._type is not None else self._config().get("task", {}).get("type")

    @property
    def task_id(self):
        found = self._id if self._id is not None else self._config().get("task", {}).get("index")
        return None if found is None else int(found)

    @property
    def environment(self):
        return self._environment or self._config().get("environment", "")

    @property
    def rpc_layer(self):
        return self._layer or self._config().get("rpc_layer", "grpc")

    def cluster_spec(self):
        return ClusterSpec(self._config().get("cluster", {}))

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        spec = self.cluster_spec()
        if not spec.jobs or (len(spec.jobs) == 1 and spec.num_tasks(spec.jobs[0]) == 1):
            return ""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        return self._address(task_type, task_id or 0, rpc_layer)


@export("distribute.cluster_resolver.UnionResolver", "contrib.cluster_resolver.UnionClusterResolver")
class UnionResolver(ClusterResolver):
    """Several clusters as one."""

    def __init__(self, *args, **kwargs):
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        if not all(isinstance(a, ClusterResolver) for a in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._all = args
        self.rpc_layer, self.task_type, self.task_id = kwargs.get("rpc_layer"), kwargs.get("task_type"), kwargs.get("task_id")

    def cluster_spec(self):
        jobs = {}
        for resolver in self._all:
            spec = resolver.cluster_spec()
            for job in spec.jobs:
                have = jobs.setdefault(job, [])
                have += [t for t in spec.job_tasks(job) if t not in have]
        return ClusterSpec(jobs)

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        if task_type is not None and task_id is not None:
            return self._address(task_type, task_id, rpc_layer)
        return self._all[0].master(rpc_layer=rpc_layer)


@export("distribute.cluster_resolver.SlurmClusterResolver", "contrib.cluster_resolver.SlurmClusterResolver")
class SlurmClusterResolver(ClusterResolver):
    """The tasks of a Slurm job step, spread over jobs such as `{"ps": 1, "worker": 3}`."""

    rpc_layer = "grpc"

    def __init__(self, jobs=None, port_base=8888, gpus_per_node=None, gpus_per_task=None, tasks_per_node=None, auto_set_gpu=True,
                 rpc_layer="grpc"):
        self.rpc_layer = rpc_layer
        self._rank = int(os.environ["SLURM_PROCID"])
        hosts = _slurm_hosts(os.environ["SLURM_STEP_NODELIST"])
        per_host = _slurm_counts(os.environ["SLURM_STEP_TASKS_PER_NODE"]) if tasks_per_node is None else [int(tasks_per_node)] * len(hosts)
        addresses = ["%s:%d" % (host, port_base + i) for host, n in zip(hosts, per_host) for i in range(n)]
        self._jobs = jobs or {"worker": len(addresses)}
        if sum(self._jobs.values()) != len(addresses):
            raise RuntimeError("Cannot create more tasks than launched: jobs %s for %d tasks" % (self._jobs, len(addresses)))
        self._spec, at = {}, 0
        for job, count in self._jobs.items():
            self._spec[job] = addresses[at:at + count]
            if at <= self._rank < at + count:
                self.task_type, self.task_id = job, self._rank - at
            at += count

    def cluster_spec(self):
        return ClusterSpec(self._spec)

    def get_task_info(self):
        return self.task_type, self.task_id

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return self._address(task_type or self.task_type, self.task_id if task_id is None else task_id, rpc_layer)


def _slurm_hosts(text):
    """`n[1-3,7],m` as a list of names."""
    parts, depth, word = [], 0, ""
    for c in text + ",":
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(word)
            word = ""
        else:
            word += c
    found = []
    for part in parts:
        name, _, ranges = part.partition("[")
        for one in ranges.rstrip("]").split(",") if ranges else [None]:
            if one is None:
                found.append(name)
                continue
            first, _, last = one.partition("-")
            found += ["%s%s" % (name, str(i).zfill(len(first))) for i in range(int(first), int(last or first) + 1)]
    return found


def _slurm_counts(text):
    """`2(x3),1` as [2, 2, 2, 1]."""
    found = []
    for part in text.split(","):
        count, _, times = part.partition("(x")
        found += [int(count)] * int(times.rstrip(")") or 1)
    return found
