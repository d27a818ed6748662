"""Runs the sessions and servers of an installed TensorFlow on Ferroflow.

Sessions without a target go to a Ferroflow server in this process, each with variables of its own.
`tf.train.Server` is a Ferroflow server. Nothing changes until the program imports TensorFlow.
"""

import importlib.abc
import importlib.util
import os
import sys


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
        from ferroflow import _ferroflow

        _server.append(_ferroflow.ServerCore("localhost=localhost:0", "localhost", 0))
    return _server[0].target


def _redirect_sessions(module):
    original = module.BaseSession.__init__

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

    module.BaseSession.__init__ = __init__


def _redirect_servers(module):
    from ferroflow import _ferroflow
    from ferroflow.python.training import server_lib as ours

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        self._server_def = module._make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._core = None
        if start:
            self.start()

    def start(self):
        if self._core is None:
            spec = ours.ClusterSpec({job.name: dict(job.tasks) for job in self._server_def.cluster.job})
            address = spec.task_address(self._server_def.job_name, self._server_def.task_index)
            self._core = _ferroflow.ServerCore(
                spec._text(), self._server_def.job_name, self._server_def.task_index, bind=ours._bind(address)
            )

    module.Server.__init__ = __init__
    module.Server.start = start
    module.Server.__del__ = lambda self: None
    module.Server.join = lambda self: self._core.join()
    module.Server.target = property(lambda self: self._core.target)
    module.Server.server_def = property(lambda self: self._server_def)
