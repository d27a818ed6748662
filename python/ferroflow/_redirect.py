"""Runs the sessions and servers of an installed TensorFlow on Ferroflow.

Sessions without a target go to a Ferroflow server, each with variables of its own.
`tf.train.Server` is a Ferroflow server. Nothing changes until the program imports TensorFlow.

This file is also part of the `ferroflow` program, which puts it into the processes that it starts:
it must work where the package ferroflow is not installed.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
import time


def install():
    sys.meta_path.insert(0, _AfterImport())


class _AfterImport(importlib.abc.MetaPathFinder):
    """Changes two modules of TensorFlow right after they are loaded."""

    changes = {
        "tensorflow.python.client.session": lambda module: _redirect_sessions(module),
        "tensorflow.python.training.server_lib": lambda module: _redirect_servers(module),
    }

    def find_spec(self, name, path=None, target=None):
        change = self.changes.get(name)
        if change is None:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


_server = []


def _local_target():
    """The target of the server for sessions that name none."""
    given = os.environ.get("FERROFLOW_TARGET")
    if given:
        return given
    if not _server:
        _server.append(_start({"localhost": ["localhost:0"]}, "localhost", 0))
    return _server[0].target


def _redirect_sessions(module):
    original = module.BaseSession.__init__
    extend = module.BaseSession._extend_graph

    def __init__(self, target="", graph=None, config=None):
        if not target:
            from tensorflow.core.protobuf import config_pb2

            target = _local_target()
            copy = config_pb2.ConfigProto()
            if config is not None:
                copy.CopyFrom(config)
            # A session in the process has variables of its own.
            copy.isolate_session_state = True
            config = copy
        original(self, target, graph, config)

    def _extend_graph(self):
        report_unsupported(self._graph)
        return extend(self)

    module.BaseSession.__init__ = __init__
    module.BaseSession._extend_graph = _extend_graph


_supported = []
_reported = set()


def _supported_ops():
    """The names of the ops that Ferroflow runs; None if they are not known."""
    if not _supported:
        path = os.environ.get("FERROFLOW_OPS")
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                _supported.append(set(f.read().split()))
        else:
            try:
                from ferroflow import _ferroflow
            except ImportError:
                _supported.append(None)
            else:
                _supported.append({n for n in _ferroflow.op_names() if _ferroflow.has_kernel(n)})
    return _supported[0]


def report_unsupported(graph):
    """Says, once for each, which ops of a graph Ferroflow does not run."""
    seen = getattr(graph, "_ferroflow_checked", 0)
    operations = graph.get_operations()
    if len(operations) == seen:
        return
    graph._ferroflow_checked = len(operations)
    supported = _supported_ops()
    if supported is None:
        return
    missing = {}
    for op in operations[seen:]:
        if op.type not in supported and op.type not in _reported:
            missing.setdefault(op.type, op.name)
    if missing:
        # Functions of the graph are ops of its nodes, too.
        functions = {f.signature.name for f in graph.as_graph_def().library.function}
        missing = {kind: name for kind, name in missing.items() if kind not in functions}
    if not missing:
        return
    _reported.update(missing)
    lines = "".join(f"\n  {kind}, for example node '{name}'" for kind, name in sorted(missing.items()))
    print(f"ferroflow: the graph has ops that Ferroflow does not run; a step that needs one fails:{lines}", file=sys.stderr, flush=True)


# Targets of the servers in this process.
own_targets = set()


def is_ours(target):
    """Whether the server at a target is known to be Ferroflow's."""
    return target in own_targets or bool(os.environ.get("FERROFLOW_TARGET"))


def running_target(job, task):
    """The target of the server that the launcher runs for this task; None if there is none."""
    target = os.environ.get("FERROFLOW_TARGET")
    if not target:
        return None
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        here = config.get("task", {})
        address = config["cluster"][here["type"]][int(here.get("index", 0))]
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    # A program alone has a server too, which is no task of the cluster in a TF_CONFIG of its own.
    is_task = target == f"grpc://{address}" and (here["type"], int(here.get("index", 0))) == (job, int(task))
    return target if is_task else None


class Running:
    """A server that the launcher runs for this task."""

    def __init__(self, target):
        self.target = target

    def join(self):
        while True:
            time.sleep(3600)


class _Process:
    """A server in a process of its own, which the `ferroflow` program runs."""

    def __init__(self, program, cluster, job, task, bind):
        import subprocess

        if cluster[job][task].endswith(":0"):
            said = subprocess.run([program, "ports", "1"], check=True, capture_output=True, text=True).stdout
            cluster = {**cluster, job: list(cluster[job])}
            cluster[job][task] = cluster[job][task][:-1] + said.split()[-1]
        words = [program, "server", "--cluster", json.dumps(cluster), "--job", job, "--task", str(task)]
        words += ["--bind", bind] if bind else []
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline().split()
        if ready[:1] != ["ready"]:
            raise RuntimeError(f"the server of /job:{job}/task:{task} did not start; see its message above")
        self.target = ready[1]

    def join(self):
        self._process.wait()

    def __del__(self):
        if getattr(self, "_process", None) is not None:
            self._process.terminate()


def _bind(address):
    asked = os.environ.get("FERROFLOW_BIND")
    if asked:
        return asked
    host = address.rsplit(":", 1)[0].strip("[]")
    return None if host == "localhost" or host.startswith("127.") or host == "::1" else "0.0.0.0"


def _start(cluster, job, task):
    """Starts a server, or finds the one that the launcher runs for this task."""
    target = running_target(job, task)
    if target:
        return Running(target)
    bind = _bind(cluster[job][task])
    program = os.environ.get("FERROFLOW_PROGRAM")
    if program:
        return _Process(program, cluster, job, task, bind)
    from ferroflow import _ferroflow

    text = ";".join(f"{name}={','.join(tasks)}" for name, tasks in cluster.items())
    return _ferroflow.ServerCore(text, job, task, bind=bind)


def _redirect_servers(module):
    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        self._server_def = module._make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._core = None
        if start:
            self.start()

    def start(self):
        if self._core is None:
            jobs = {job.name: [job.tasks[i] for i in range(len(job.tasks))] for job in self._server_def.cluster.job}
            self._core = _start(jobs, self._server_def.job_name, self._server_def.task_index)

    module.Server.__init__ = __init__
    module.Server.start = start
    module.Server.__del__ = lambda self: None
    module.Server.join = lambda self: self._core.join()
    module.Server.target = property(lambda self: self._core.target)
    module.Server.server_def = property(lambda self: self._server_def)
