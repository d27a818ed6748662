"""`tf.CriticalSection`: functions that exclude each other."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export

_KEY = "critical_section_executions"


@export("CriticalSection")
class CriticalSection:
    """A mutex; `execute` runs a function while it holds the mutex."""

    def __init__(self, name=None, shared_name=None, critical_section_def=None,
                 import_scope=None):
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        with ops.name_scope(name, "CriticalSection", []) as scope:
            with ops.init_scope():
                container = ops.get_default_graph()._container or ""
                shared_name = scope.rstrip("/") if shared_name is None else shared_name
                self._handle = gen_ops.MutexV2(shared_name=shared_name, container=container,
                                               name=scope)
        self._name = self._handle.op.name

    name = property(lambda self: self._name)

    def execute(self, fn, exclusive_resource_access=True, name=None):
        """Calls `fn`; the ops that it adds to the graph run while the mutex is held."""
        if not callable(fn):
            raise ValueError("Argument `fn` must be callable.")
        with ops.name_scope(name, "critical_section_execute", []):
            lock = gen_ops.MutexLock(self._handle)
            # What ran before in this section comes first.
            with ops.control_dependencies([lock]):
                before = set(ops.get_default_graph().get_operations())
                result = fn()
                made = [op for op in ops.get_default_graph().get_operations()
                        if op not in before]
            if any(t is lock for op in made for t in op.inputs):
                raise ValueError("the function of a critical section must not use its lock")
            flat = [x for x in nest.flatten(result) if x is not None]
            values = [x.op if not isinstance(x, (ops.Tensor, ops.Operation)) else x
                      for x in flat]
            with ops.control_dependencies(made or values):
                ensure = gen_ops.ConsumeMutexLock(lock)
            with ops.control_dependencies([ensure]):
                out = [ensure if isinstance(x, ops.Operation) else array_ops.identity(x)
                       for x in flat]
            ops.add_to_collection(_KEY, ensure)
            packed = iter(out)
            return nest.map_structure(lambda x: None if x is None else next(packed), result)
