"""SyncReplicasOptimizer: updates variables with the mean of the gradients of several workers."""

from ferroflow.python.framework import indexed_slices, ops
from ferroflow.python.ops import array_ops, control_flow_ops, data_flow_ops, state_ops, variables
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import optimizer, queue_runner_impl, session_manager, session_run_hook


class SyncReplicasOptimizer(optimizer.Optimizer):
    """Wraps an optimizer.

    A worker puts its gradients in accumulators, one for each variable, and waits for a token. The chief
    takes the mean when there are enough gradients, updates the variables, and hands out tokens.
    Gradients that were computed at an older global step are dropped.
    """

    def __init__(
        self,
        opt,
        replicas_to_aggregate,
        total_num_replicas=None,
        variable_averages=None,
        variables_to_average=None,
        use_locking=False,
        name="sync_replicas",
    ):
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        super().__init__(use_locking, name)
        logging.info("SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s", replicas_to_aggregate, total_num_replicas)
        self._opt = opt
        self._replicas_to_aggregate, self._total_num_replicas = replicas_to_aggregate, total_num_replicas
        self._gradients_applied = False
        self._variable_averages, self._variables_to_average = variable_averages, variables_to_average
        # Enough tokens for all replicas, also when fewer gradients are needed for a step.
        self._tokens_per_step = max(total_num_replicas, replicas_to_aggregate)
        self._global_step, self._sync_token_queue = None, None
        self._chief_queue_runner = None
        self._accumulator_list = []

    def compute_gradients(self, *args, **kwargs):
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """The operation a worker runs: it adds the gradients and waits for the next step."""
        grads_and_vars = list(grads_and_vars) if grads_and_vars is not None else []
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        # An operation of this worker; the local step is kept beside it.
        local_anchor = control_flow_ops.no_op()
        with ops.colocate_with(local_anchor):
            self._local_step = variables.VariableV1(
                initial_value=0,
                trainable=False,
                collections=[ops.GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        self.local_step_init_op = state_ops.assign(self._local_step, global_step)
        chief_init_ops = [self.local_step_init_op]
        self.ready_for_local_init_op = variables.report_uninitialized_variables(variables.global_variables())
        with ops.name_scope(None, self._name):
            add_ops, means = [], []
            for grad, var in grads_and_vars:
                with ops.device(var.device):
                    add, mean = self._accumulate(grad, var)
                if add is not None:
                    add_ops.append(add)
                means.append(mean)
            at_step = global_step.device
            with ops.device(at_step), ops.name_scope(""):
                update_op = self._opt.apply_gradients(zip(means, [var for _, var in grads_and_vars]), global_step)
            with ops.device(at_step), ops.name_scope(""):
                queue = data_flow_ops.FIFOQueue(
                    -1, global_step.dtype.base_dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q"
                )
                self._sync_token_queue = queue
            with ops.device(at_step), ops.name_scope(""):
                with ops.control_dependencies(add_ops):
                    token = queue.dequeue()
                train_op = state_ops.assign(self._local_step, token)
                with ops.control_dependencies([update_op]):
                    tokens = array_ops.fill([self._tokens_per_step], global_step)
                    sync_op = queue.enqueue_many((tokens,))
                if self._variable_averages is not None:
                    with ops.control_dependencies([sync_op]), ops.name_scope(""):
                        sync_op = self._variable_averages.apply(self._variables_to_average)
                self._chief_queue_runner = queue_runner_impl.QueueRunner(queue, [sync_op])
            for accumulator, device in self._accumulator_list:
                with ops.device(device):
                    chief_init_ops.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = control_flow_ops.group(*chief_init_ops)
            self._gradients_applied = True
            return train_op

    def _accumulate(self, grad, var):
        """The operation that adds a gradient, and the mean that the chief takes."""
        if grad is None:
            return None, None
        shared_name = var.name + "/grad_accum"
        if isinstance(grad, ops.Tensor):
            accumulator = data_flow_ops.ConditionalAccumulator(grad.dtype, shape=var.get_shape(), shared_name=shared_name)
            add = accumulator.apply_grad(grad, local_step=self._local_step)
            mean = accumulator.take_grad(self._replicas_to_aggregate)
        elif isinstance(grad, indexed_slices.IndexedSlices):
            accumulator = data_flow_ops.SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared_name)
            add = accumulator.apply_indexed_slices_grad(grad, local_step=self._local_step)
            mean = accumulator.take_indexed_slices_grad(self._replicas_to_aggregate)
        else:
            raise ValueError("Unknown grad type!")
        self._accumulator_list.append((accumulator, var.device))
        return add, mean

    def _need_gradients(self, what):
        if not self._gradients_applied:
            raise ValueError("%s() should be called after apply_gradients()." % what)

    def get_chief_queue_runner(self):
        """The QueueRunner that makes the updates. The chief starts it."""
        self._need_gradients("get_chief_queue_runner")
        return self._chief_queue_runner

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def variables(self):
        return self._opt.variables()

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def get_init_tokens_op(self, num_tokens=-1):
        """The operation that puts the first tokens in the queue."""
        self._need_gradients("get_init_tokens_op")
        tokens_needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < tokens_needed:
            raise ValueError("Too few tokens to finish the first step: %d (given) vs %d (needed)" % (num_tokens, tokens_needed))
        if num_tokens <= 0:
            return control_flow_ops.no_op(name="no_init_tokens")
        with ops.device(self._global_step.device), ops.name_scope(""):
            tokens = array_ops.fill([num_tokens], self._global_step)
            return self._sync_token_queue.enqueue_many((tokens,))

    def make_session_run_hook(self, is_chief, num_tokens=-1):
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(session_run_hook.SessionRunHook):
    """Does for a monitored session what a Supervisor's program does by hand."""

    def __init__(self, sync_optimizer, is_chief, num_tokens):
        self._sync_optimizer, self._is_chief, self._num_tokens = sync_optimizer, is_chief, num_tokens

    def begin(self):
        opt = self._sync_optimizer
        if not opt._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._ready_for_local_init_op = opt.ready_for_local_init_op
        if self._is_chief:
            self._local_init_op = opt.chief_init_op
            self._q_runner = opt.get_chief_queue_runner()
            self._init_tokens_op = opt.get_init_tokens_op(self._num_tokens)
        else:
            self._local_init_op = opt.local_step_init_op
            self._q_runner, self._init_tokens_op = None, None

    def after_create_session(self, session, coord):
        ready, msg = session_manager._ready(
            self._ready_for_local_init_op, session, "Model is not ready for SyncReplicasOptimizer local init."
        )
        if not ready:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: %s, error: %s"
                % (self._local_init_op.name, msg)
            )
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            threads = self._q_runner.create_threads(session, coord=coord, daemon=True)
            for thread in threads:
                # It waits for gradients that workers no longer send when training has ended: the
                # chief would end 120 s late.
                thread.ends_with_session = True
                thread.start()


