"""`tf.train.Server` and `tf.train.ClusterSpec`."""

import os

from ferroflow import _ferroflow
from ferroflow import _redirect
from ferroflow.core._messages import message_class
from ferroflow.python.framework import errors_impl
from ferroflow.python.util import compat


class ClusterSpec:
    """The jobs of a cluster and the addresses of their tasks."""

    def __init__(self, cluster):
        self._jobs = {}
        if isinstance(cluster, dict):
            for job, tasks in cluster.items():
                if isinstance(tasks, (list, tuple)):
                    self._jobs[compat.as_str(job)] = {i: _address(t) for i, t in enumerate(tasks)}
                elif isinstance(tasks, dict):
                    self._jobs[compat.as_str(job)] = {_index(i): _address(t) for i, t in tasks.items()}
                else:
                    raise TypeError(
                        f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
                    )
        elif isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif type(cluster).__name__ == "ClusterDef":
            for job in cluster.job:
                self._jobs[job.name] = dict(job.tasks.items())
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
                "`ClusterDef` protocol buffer"
            )

    @property
    def jobs(self):
        return list(self._jobs)

    def num_tasks(self, job_name):
        return len(self._job(job_name))

    def task_indices(self, job_name):
        return sorted(self._job(job_name))

    def task_address(self, job_name, task_index):
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name):
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)] if tasks else []

    def _job(self, job_name):
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]

    def as_dict(self):
        found = {}
        for job, tasks in self._jobs.items():
            dense = set(tasks) == set(range(len(tasks)))
            found[job] = [tasks[i] for i in range(len(tasks))] if dense else dict(tasks)
        return found

    def as_cluster_def(self):
        message = message_class("tensorflow.ClusterDef")()
        for job in sorted(self._jobs):
            entry = message.job.add(name=job)
            for i, address in sorted(self._jobs[job].items()):
                entry.tasks[i] = address
        return message

    def __bool__(self):
        return bool(self._jobs)

    def __eq__(self, other):
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        return f"ClusterSpec({{{', '.join(f'{k!r}: {v!r}' for k, v in sorted(self.as_dict().items()))}}})"

    def _text(self):
        """The spec as the server reads it."""
        parts = []
        for job, tasks in self._jobs.items():
            if set(tasks) != set(range(len(tasks))):
                raise ValueError(f"the tasks of job {job!r} must be numbered from 0 without gaps, not {sorted(tasks)}")
            parts.append(job + "=" + ",".join(tasks[i] for i in range(len(tasks))))
        return ";".join(parts)


def _index(value):
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"Task keys must be integers, not {value!r}") from None


def _address(value):
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"Task address {value!r} must be bytes or unicode")
    return compat.as_str(value)


class ClusterDeviceFilters:
    """Which devices a task may see."""

    def __init__(self):
        self._filters = {}

    def set_device_filters(self, job_name, task_index, device_filters):
        self._filters.setdefault(job_name, {})[task_index] = list(device_filters)


def _server_def(server_or_cluster_def, job_name, task_index, protocol, config):
    kind = message_class("tensorflow.ServerDef")
    if type(server_or_cluster_def).__name__ == "ServerDef":
        definition = kind.FromString(server_or_cluster_def.SerializeToString())
        if job_name is not None:
            definition.job_name = job_name
        if task_index is not None:
            definition.task_index = task_index
        if protocol is not None:
            definition.protocol = protocol
    else:
        cluster = ClusterSpec(server_or_cluster_def)
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        definition = kind(job_name=job_name, task_index=task_index, protocol=protocol or "grpc")
        definition.cluster.CopyFrom(cluster.as_cluster_def())
    if config is not None:
        definition.default_session_config.MergeFrom(config)
    return definition


class Server:
    """A server in this process."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._core = None
        if start:
            self.start()

    def start(self):
        if self._core is not None:
            return
        definition = self._server_def
        running = _redirect.running_target(definition.job_name, definition.task_index)
        if running:
            self._core = _redirect.Running(running)
            return
        cluster = ClusterSpec(definition.cluster)
        if definition.job_name not in cluster.jobs:
            raise errors_impl.InternalError(None, None, f'Job "{definition.job_name}" was not defined in cluster')
        counts = definition.default_session_config.device_count
        try:
            self._core = _ferroflow.ServerCore(
                cluster._text(),
                definition.job_name,
                definition.task_index,
                bind=_bind(cluster.task_address(definition.job_name, definition.task_index)),
                cpus=max(1, counts["CPU"] if "CPU" in counts else 1),
                config=definition.default_session_config.SerializeToString(),
            )
        except _ferroflow.StatusError as e:
            raise errors_impl.from_status(e) from None
        _redirect.own_targets.add(self._core.target)

    def join(self):
        self._started().join()

    @property
    def server_def(self):
        return self._server_def

    @property
    def target(self):
        return self._started().target

    def _started(self):
        if self._core is None:
            raise RuntimeError("the server is not started: call start()")
        return self._core

    @staticmethod
    def create_local_server(config=None, start=True):
        return Server({"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def _bind(address):
    """Where to listen. TensorFlow's servers listen on all interfaces if their host is not local."""
    asked = os.environ.get("FERROFLOW_BIND")
    if asked:
        return asked
    host = address.rsplit(":", 1)[0].strip("[]")
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    return "0.0.0.0"
