"""What TensorFlow's v1 API and that of `ferroflow.compat.v1` share: the wrapped optimizer, the
broadcast hook and variables of a session. `v1` is the module with the API."""

from . import arrays, core


def optimizer_class(v1, reduce_gradients):
    """The class that wraps optimizers of `v1.train`."""

    class DistributedV1Optimizer(v1.train.Optimizer):
        """Reduces the gradients that an optimizer computes."""

        def __init__(self, optimizer, name, use_locking, options, backward_passes_per_step,
                     average_aggregated_gradients):
            super().__init__(use_locking, name or f"Distributed{type(optimizer).__name__}")
            self._optimizer, self._options = optimizer, options
            self._passes = backward_passes_per_step
            self._average = average_aggregated_gradients
            self._aggregation = None
            self._local = set()

        def register_local_var(self, var):
            """The gradient of this variable stays local."""
            self._local.add(id(var))

        def compute_gradients(self, *args, **kwargs):
            pairs = self._optimizer.compute_gradients(*args, **kwargs)
            if core.is_alone() and self._passes == 1:
                return pairs
            gradients, variables = zip(*pairs)
            if self._passes > 1:
                return list(zip(self._aggregated(gradients, variables), variables))
            return list(zip(self._reduce(gradients, variables), variables))

        def _reduce(self, gradients, variables):
            return reduce_gradients(gradients, variables, prefix="optimizer", local=self._local,
                                    **self._options)

        def _aggregated(self, gradients, variables):
            """Sums gradients of several passes. They are reduced in the last pass."""
            zeros = v1.zeros_initializer()
            with v1.variable_scope("ferroflow_aggregation", reuse=v1.AUTO_REUSE):
                count = v1.get_variable("passes", [], v1.int32, trainable=False,
                                        initializer=zeros)
                sums = [None if g is None else v1.get_variable(
                    f"sum_{i}", v.shape, v.dtype.base_dtype, trainable=False, initializer=zeros)
                    for i, (g, v) in enumerate(zip(gradients, variables))]
            added = [None if s is None else s.assign_add(v1.convert_to_tensor(g))
                     for s, g in zip(sums, gradients)]
            present = [a for a in added if a is not None]
            with v1.control_dependencies(present):
                passed = count.assign_add(1)
            self._aggregation = (sums, count)
            summed = [s for s in sums if s is not None]

            def last():
                factor = self._passes if self._average else 1
                totals = [v1.identity(s) / v1.cast(factor, s.dtype.base_dtype) for s in summed]
                of = [v for v, s in zip(variables, sums) if s is not None]
                return [v1.identity(r) for r in self._reduce(totals, of)]

            def other():
                return [v1.zeros_like(s) for s in summed]

            with v1.control_dependencies([passed]):
                is_last = v1.equal(v1.floormod(v1.identity(count), self._passes), 0)
                made = v1.cond(is_last, last, other)
            results = iter(made if isinstance(made, (list, tuple)) else [made])
            return [None if s is None else next(results) for s in sums]

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            if self._aggregation is None:
                return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
            sums, count = self._aggregation
            pairs = list(grads_and_vars)

            def apply():
                done = self._optimizer.apply_gradients(pairs, global_step, name)
                with v1.control_dependencies([done]):
                    cleared = [s.assign(v1.zeros_like(s)) for s in sums if s is not None]
                with v1.control_dependencies(cleared):
                    return v1.constant(True)

            with v1.control_dependencies([g for g, _ in pairs if g is not None]):
                is_last = v1.equal(v1.floormod(v1.identity(count), self._passes), 0)
            return v1.cond(is_last, apply, lambda: v1.constant(False)).op

        def get_slot(self, *args, **kwargs):
            return self._optimizer.get_slot(*args, **kwargs)

        def get_slot_names(self, *args, **kwargs):
            return self._optimizer.get_slot_names(*args, **kwargs)

        def variables(self, *args, **kwargs):
            return self._optimizer.variables(*args, **kwargs)

    return DistributedV1Optimizer


def hook_class(v1, broadcast_global_variables):
    """The class `BroadcastGlobalVariablesHook`."""

    class BroadcastGlobalVariablesHook(v1.train.SessionRunHook):
        """Broadcasts all global variables from one rank when a session is created."""

        def __init__(self, root_rank, device=""):
            super().__init__()
            self.root_rank, self.device = root_rank, device
            self.bcast_op = None

        def begin(self):
            if self.bcast_op is None or self.bcast_op.graph is not v1.get_default_graph():
                with v1.device(self.device):
                    self.bcast_op = broadcast_global_variables(self.root_rank)

        def after_create_session(self, session, coord):
            session.run(self.bcast_op)

    return BroadcastGlobalVariablesHook


class SessionVariables:
    """The values of variables in a session."""

    def __init__(self, variables, session):
        self.variables, self.session = list(variables), session

    def values(self):
        return self.session.run(self.variables)

    def assign(self, values):
        for variable, value in zip(self.variables, values):
            variable.load(value, self.session)

    def broadcast(self, root_rank):
        handles = [arrays.broadcast_async(value, root_rank, f"state.{variable.name}")
                   for variable, value in zip(self.variables, self.values())]
        self.assign([handle.wait() for handle in handles])
