"""Sessions."""

import threading
import warnings

from ferroflow import _ferroflow, _redirect
from ferroflow.core._messages import message_class
from ferroflow.python.client import fetches as fetching
from ferroflow.python.framework import errors_impl, ops

_Tensor, _Operation = _ferroflow.Tensor, _ferroflow.Operation
_StatusError = _ferroflow.StatusError
_NOTHING = ()


class SessionInterface:
    """What sessions and what wraps them have in common."""

    @property
    def graph(self):
        raise NotImplementedError("graph")

    @property
    def sess_str(self):
        raise NotImplementedError("sess_str")

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        raise NotImplementedError("run")

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError("partial_run_setup")

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError("partial_run")


def _core_options(config):
    """The options of a `ConfigProto` that sessions know."""
    if config is None:
        return {}
    graph = config.graph_options
    counts = config.device_count
    return {
        "cpus": max(1, counts["CPU"] if "CPU" in counts else 1),
        "soft_placement": config.allow_soft_placement,
        "log_placement": config.log_device_placement,
        "isolate_state": config.isolate_session_state,
        "device_filters": list(config.device_filters),
        "optimize": not graph.rewrite_options.disable_meta_optimizer,
        "timeout_ms": max(0, config.operation_timeout_in_ms),
        "config": config.SerializeToString(),
    }


class BaseSession(SessionInterface):
    """A session of a graph: in this process, or on the server `target`."""

    def __init__(self, target="", graph=None, config=None):
        self._closed = False
        self._opened = False
        self._core = None
        self._current_version = 0
        if graph is None:
            self._graph = ops.get_default_graph()
        else:
            if not isinstance(graph, ops.Graph):
                raise TypeError(f"Argument `graph` must be a tf.Graph, but got \"{type(graph).__name__}\"")
            self._graph = graph
        if target is None:
            target = ""
        if not isinstance(target, (str, bytes)):
            raise TypeError(f"Argument `target` must be a string, but got \"{type(target).__name__}\"")
        self._target = target.decode("utf-8") if isinstance(target, bytes) else target
        if self._target == "local":
            self._target = ""
        if "://" in self._target and self._target.split("://", 1)[0] not in ("grpc", "grpcs"):
            raise errors_impl.NotFoundError(None, None, "No session factory registered for the given session options: "
                                            f'{{target: "{self._target}"}}: a target is "" or grpc://HOST:PORT')
        if config is not None:
            # The session's server address may be that of a cluster resolver.
            if not hasattr(config, "SerializeToString") or type(config).__name__ != "ConfigProto":
                raise TypeError(f"Argument `config` must be a tf.ConfigProto, but got \"{type(config).__name__}\"")
            kind = message_class("tensorflow.ConfigProto")
            if not isinstance(config, kind):
                config = kind.FromString(config.SerializeToString())
        self._config = config
        self._callables = 0
        try:
            self._core = _ferroflow.SessionCore(
                self._graph, self._target, on_ferroflow=_redirect.is_ours(self._target), **_core_options(config)
            )
        except _StatusError as e:
            raise errors_impl.from_status(e) from None
        self._run = self._core.run
        # The time limit of steps that name none.
        self._timeout_ms = 0 if config is None else max(0, config.operation_timeout_in_ms)

    @property
    def graph(self):
        return self._graph

    @property
    def graph_def(self):
        return self._graph.as_graph_def()

    @property
    def sess_str(self):
        return self._target.encode("utf-8")

    def list_devices(self):
        try:
            found = self._core.list_devices()
        except _StatusError as e:
            raise errors_impl.from_status(e) from None
        return [DeviceAttributes(*item) for item in found]

    def close(self):
        if self._core is not None and not self._closed:
            self._closed = True
            try:
                self._core.close()
            except _StatusError as e:
                raise errors_impl.from_status(e) from None

    def __del__(self):
        try:
            self.close()
        except Exception:  # pylint: disable=broad-except
            # The interpreter may be shutting down, or the server may have stopped.
            pass

    def as_default(self):
        return ops.default_session(self)

    # Steps.

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if not feed_dict and options is None and run_metadata is None and not self._closed and not self._timeout_ms:
            # The most frequent steps take the shortest way.
            kind = type(fetches)
            try:
                if kind is _Tensor:
                    if fetches.graph is self._graph and not self._graph._checks_fetches:
                        return self._run((fetches,), _NOTHING, _NOTHING)[0][0]
                elif kind is _Operation:
                    if fetches.graph is self._graph and not self._graph._checks_fetches:
                        self._run(_NOTHING, (fetches,), _NOTHING)
                        return None
            except _StatusError as e:
                raise errors_impl.from_status(e, self._graph) from None
        return self._run_any(fetches, feed_dict, options, run_metadata)

    def _run_any(self, fetches, feed_dict, options, run_metadata):
        self._check_open()
        feeds = fetching.feeds(self._graph, feed_dict)
        handler = fetching.FetchHandler(self._graph, fetches, dict(feeds), self)
        step_options = self._step_options(options)
        if not handler.tensors and not handler.operations:
            # All that is fetched is fed.
            values, metadata = [], None
        else:
            try:
                values, metadata = self._core.run(handler.tensors, handler.operations, feeds, step_options)
            except _StatusError as e:
                raise errors_impl.from_status(e, self._graph) from None
        if run_metadata is not None:
            run_metadata.Clear()
            if metadata:
                run_metadata.MergeFromString(metadata)
        return handler.results(values)

    def partial_run_setup(self, fetches, feeds=None):
        self._check_open()
        feeds = [fetching.feed_tensor(self._graph, f) for f in feeds or ()]
        handler = fetching.FetchHandler(self._graph, fetches, {}, self)
        for tensor in feeds:
            if not self._graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
        try:
            return self._core.partial_run_setup(handler.tensors, handler.operations, feeds)
        except _StatusError as e:
            raise errors_impl.from_status(e, self._graph) from None

    def partial_run(self, handle, fetches, feed_dict=None):
        self._check_open()
        feeds = fetching.feeds(self._graph, feed_dict)
        handler = fetching.FetchHandler(self._graph, fetches, dict(feeds), self)
        try:
            values = self._core.partial_run(handle, handler.tensors, feeds)
        except _StatusError as e:
            raise errors_impl.from_status(e, self._graph) from None
        return handler.results(values)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the values of `feed_list` that runs `fetches`."""
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("Argument `feed_list` must be a list or tuple.")
        self._check_open()
        feed_list = [fetching.feed_tensor(self._graph, f) for f in feed_list or ()]
        handler = fetching.FetchHandler(self._graph, fetches, {}, self)
        tensors, operations = tuple(handler.tensors), tuple(handler.operations)
        fed_tensors = tuple(feed_list)
        core_run, graph = self._core.run, self._graph
        single = len(tensors) == 1 and fetches is tensors[0]

        def call(*args, **kwargs):
            step_options, run_metadata = (self._timeout_ms, False, False), None
            if accept_options:
                step_options = self._step_options(kwargs.pop("options", None))
                run_metadata = kwargs.pop("run_metadata", None)
            if kwargs:
                raise TypeError(f"unexpected arguments {sorted(kwargs)}")
            if len(args) != len(fed_tensors) and not isinstance(fetches, (list, tuple, dict)):
                raise TypeError(f"Expected {len(fed_tensors)} arguments, got {len(args)}.")
            fed = tuple((t, fetching.feed_value(t, value)) for t, value in zip(fed_tensors, args))
            if self._closed:
                self._check_open()
            try:
                values, metadata = core_run(tensors, operations, fed, step_options)
            except _StatusError as e:
                raise errors_impl.from_status(e, graph) from None
            if run_metadata is not None:
                run_metadata.Clear()
                if metadata:
                    run_metadata.MergeFromString(metadata)
            return values[0] if single else handler.results(values)

        return call

    def _make_callable_from_options(self, callable_options):
        graph = self._graph
        feeds = [graph.as_graph_element(name) for name in callable_options.feed]
        fetches = [graph.as_graph_element(name, allow_operation=False) for name in callable_options.fetch]
        targets = [graph.as_graph_element(name, allow_tensor=False) for name in callable_options.target]
        function = self.make_callable([fetches, targets], feeds, accept_options=True)
        return lambda *args, **kwargs: function(*args, **kwargs)[0]

    def _step_options(self, options):
        timeout, trace, graphs = _step_options(options)
        return timeout or self._timeout_ms, trace, graphs

    def _check_open(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph._size == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")


def _step_options(options):
    if options is None:
        return 0, False, False
    if type(options).__name__ != "RunOptions":
        raise TypeError(f"options must be a RunOptions, not {type(options).__name__}")
    return max(0, options.timeout_in_ms), options.trace_level > 0, options.output_partition_graphs


class Session(BaseSession):
    """`tf.Session`."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config=config)
        self._contexts = []

    def __enter__(self):
        graph_scope = self.graph.as_default()
        session_scope = self.as_default()
        graph_scope.__enter__()
        session_scope.__enter__()
        self._contexts.append((graph_scope, session_scope))
        return self

    def __exit__(self, exec_type, exec_value, exec_tb):
        if exec_type is errors_impl.OpError:
            warnings.warn("Session closing due to error")
        graph_scope, session_scope = self._contexts.pop()
        try:
            session_scope.__exit__(exec_type, exec_value, exec_tb)
            graph_scope.__exit__(exec_type, exec_value, exec_tb)
        finally:
            self.close()
        return False

    @staticmethod
    def reset(target, containers=None, config=None):
        """Clears the variables and queues of a server's containers and closes its sessions."""
        del config
        target = target.decode("utf-8") if isinstance(target, bytes) else target or ""
        containers = [containers] if isinstance(containers, str) else list(containers or ())
        if not target:
            # Sessions in the process share no containers.
            return
        try:
            _ferroflow.reset(target, containers)
        except _StatusError as e:
            raise errors_impl.from_status(e) from None


class InteractiveSession(BaseSession):
    """A session that is the default one until it is closed."""

    _count_lock = threading.Lock()
    _active = 0

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        with InteractiveSession._count_lock:
            if InteractiveSession._active > 0:
                warnings.warn(
                    "An interactive session is already active. This can cause out-of-memory errors in some cases. You "
                    "must explicitly call `InteractiveSession.close()` to release resources held by the other session(s)."
                )
            InteractiveSession._active += 1
        self._explicit_graph = graph
        self._default_graph = None
        if graph is not None:
            self._default_graph = graph.as_default()
            self._default_graph.__enter__()
        self._default_session = self.as_default()
        self._default_session.__enter__()

    def close(self):
        if self._closed:
            return
        super().close()
        with InteractiveSession._count_lock:
            InteractiveSession._active = max(0, InteractiveSession._active - 1)
        scopes = [getattr(self, "_default_session", None), getattr(self, "_default_graph", None)]
        self._default_session = self._default_graph = None
        for scope in scopes:
            if scope is not None:
                try:
                    scope.__exit__(None, None, None)
                except (AssertionError, RuntimeError):
                    pass


class DeviceAttributes:
    """A device of a session."""

    def __init__(self, name, device_type, memory_limit_bytes, incarnation):
        self.name, self.device_type = name, device_type
        self.memory_limit_bytes, self.incarnation = memory_limit_bytes, incarnation

    def __repr__(self):
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


_DeviceAttributes = DeviceAttributes


def register_session_run_conversion_functions(tensor_type, fetch_function, feed_function=None, feed_function_for_partial_run=None):
    fetching.register(tensor_type, fetch_function, feed_function, feed_function_for_partial_run)


