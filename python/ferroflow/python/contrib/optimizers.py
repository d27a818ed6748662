"""Optimizers of `tf.contrib.opt`."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import linalg_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.training import moving_averages
from ferroflow.python.training import optimizer
from ferroflow.python.training import optimizers
from ferroflow.python.training import saver
from ferroflow.python.util.api import export


@export("contrib.opt.NadamOptimizer")
class NadamOptimizer(optimizers.AdamOptimizer):
    """Adam with Nesterov's momentum."""

    def _apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        beta1_power, beta2_power = self._get_beta_accumulators()
        return gen_ops.ApplyAdam(
            var._ref(), m._ref(), v._ref(), self._cast(beta1_power, var), self._cast(beta2_power, var), self._param("_lr", var),
            self._param("_beta1", var), self._param("_beta2", var), self._param("_epsilon", var), grad,
            use_locking=self._use_locking, use_nesterov=True).op

    def _resource_apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        beta1_power, beta2_power = self._get_beta_accumulators()
        return gen_ops.ResourceApplyAdam(
            var.handle, m.handle, v.handle, self._cast(beta1_power, grad), self._cast(beta2_power, grad), self._param("_lr", grad),
            self._param("_beta1", grad), self._param("_beta2", grad), self._param("_epsilon", grad), grad,
            use_locking=self._use_locking, use_nesterov=True)


def _rows(var):
    """The functions that update rows of a variable of either kind."""
    if hasattr(var, "handle"):
        def assign(x, i, value):
            with ops.control_dependencies([gen_ops.ResourceScatterUpdate(x.handle, i, value)]):
                return x.value()

        def subtract(x, i, value):
            with ops.control_dependencies([gen_ops.ResourceScatterSub(x.handle, i, value)]):
                return x.value()
        return assign, subtract
    return (lambda x, i, value: state_ops.scatter_update(x, i, value)), (lambda x, i, value: state_ops.scatter_sub(x, i, value))


@export("contrib.opt.LazyAdamOptimizer")
class LazyAdamOptimizer(optimizers.AdamOptimizer):
    """Adam that updates the averages of those rows only that have a gradient."""

    def _lazy(self, values, var, indices):
        beta1_power, beta2_power = (self._cast(p, values) for p in self._get_beta_accumulators())
        lr, beta1, beta2, epsilon = (self._param(p, values) for p in ("_lr", "_beta1", "_beta2", "_epsilon"))
        rate = lr * math_ops.sqrt(1 - beta2_power) / (1 - beta1_power)
        assign, subtract = _rows(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * array_ops.gather(m, indices) + (1 - beta1) * values
        v_rows = beta2 * array_ops.gather(v, indices) + (1 - beta2) * math_ops.square(values)
        m_done, v_done = assign(m, indices, m_rows), assign(v, indices, v_rows)
        var_done = subtract(var, indices, rate * m_rows / (math_ops.sqrt(v_rows) + epsilon))
        return control_flow_ops.group(var_done, m_done, v_done)

    def _apply_sparse(self, grad, var):
        return self._lazy(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._lazy(grad, var, indices)


@export("contrib.opt.AdaMaxOptimizer")
class AdaMaxOptimizer(optimizers.AdamOptimizer):
    """Adam with the largest gradient in place of the mean of squares."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="AdaMax"):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _get_beta_accumulators(self):
        return self._get_non_slot_variable("beta1_power", graph=ops.get_default_graph())

    def _apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return gen_ops.ApplyAdaMax(
            var._ref(), m._ref(), v._ref(), self._cast(self._get_beta_accumulators(), var), self._param("_lr", var),
            self._param("_beta1", var), self._param("_beta2", var), self._param("_epsilon", var), grad,
            use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return gen_ops.ResourceApplyAdaMax(
            var.handle, m.handle, v.handle, self._cast(self._get_beta_accumulators(), grad), self._param("_lr", grad),
            self._param("_beta1", grad), self._param("_beta2", grad), self._param("_epsilon", grad), grad,
            use_locking=self._use_locking)

    def _by_rows(self, values, var, indices):
        beta1, beta2 = self._param("_beta1", values), self._param("_beta2", values)
        assign, subtract = _rows(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * array_ops.gather(m, indices) + (1 - beta1) * values
        v_rows = math_ops.maximum(beta2 * array_ops.gather(v, indices), math_ops.abs(values))
        m_done, v_done = assign(m, indices, m_rows), assign(v, indices, v_rows)
        rate = self._param("_lr", values) / (1 - self._cast(self._get_beta_accumulators(), values))
        var_done = subtract(var, indices, rate * m_rows / (v_rows + self._param("_epsilon", values)))
        return control_flow_ops.group(var_done, m_done, v_done)

    def _apply_sparse(self, grad, var):
        return self._by_rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._by_rows(grad, var, indices)

    def _finish(self, update_ops, name_scope):
        with ops.control_dependencies(update_ops):
            beta1_power = self._get_beta_accumulators()
            with ops.colocate_with(beta1_power):
                update = beta1_power.assign(beta1_power * self._beta1_tensor, use_locking=self._use_locking)
        return control_flow_ops.group(*update_ops + [update], name=name_scope)


@export("contrib.opt.extend_with_decoupled_weight_decay")
def extend_with_decoupled_weight_decay(base_optimizer):
    """A class of optimizers that also shrink their variables by `weight_decay` in each step."""
    class Decayed(base_optimizer):
        def __init__(self, weight_decay, *args, **kwargs):
            self._weight_decay, self._decayed = weight_decay, None
            super().__init__(*args, **kwargs)

        def minimize(self, loss, global_step=None, var_list=None, gate_gradients=optimizer.Optimizer.GATE_OP,
                     aggregation_method=None, colocate_gradients_with_ops=False, name=None, grad_loss=None, decay_var_list=None):
            self._decayed = None if decay_var_list is None else {id(v) for v in decay_var_list}
            return super().minimize(loss, global_step, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops,
                                    name, grad_loss)

        def apply_gradients(self, grads_and_vars, global_step=None, name=None, decay_var_list=None):
            if decay_var_list is not None:
                self._decayed = {id(v) for v in decay_var_list}
            return super().apply_gradients(grads_and_vars, global_step, name)

        def _shrink(self, var):
            if self._decayed is not None and id(var) not in self._decayed:
                return []
            rate = math_ops.cast(ops.convert_to_tensor(self._call_if_callable(self._weight_decay)), var.dtype.base_dtype)
            return [var.assign_sub(rate * var, use_locking=self._use_locking).op]

        def _apply_dense(self, grad, var):
            with ops.control_dependencies(self._shrink(var)):
                return super()._apply_dense(grad, var)

        def _resource_apply_dense(self, grad, var):
            with ops.control_dependencies(self._shrink(var)):
                return super()._resource_apply_dense(grad, var)

        def _apply_sparse(self, grad, var):
            with ops.control_dependencies(self._shrink(var)):
                return super()._apply_sparse(grad, var)

        def _resource_apply_sparse(self, grad, var, indices):
            with ops.control_dependencies(self._shrink(var)):
                return super()._resource_apply_sparse(grad, var, indices)
    Decayed.__name__ = base_optimizer.__name__ + "WithWeightDecay"
    return Decayed


@export("contrib.opt.AdamWOptimizer")
class AdamWOptimizer(extend_with_decoupled_weight_decay(optimizers.AdamOptimizer)):
    """Adam with weight decay."""

    def __init__(self, weight_decay, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="AdamW"):
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


@export("contrib.opt.MomentumWOptimizer")
class MomentumWOptimizer(extend_with_decoupled_weight_decay(optimizers.MomentumOptimizer)):
    """Momentum with weight decay."""

    def __init__(self, weight_decay, learning_rate, momentum, use_locking=False, name="MomentumW", use_nesterov=False):
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


@export("contrib.opt.LARSOptimizer")
class LARSOptimizer(optimizer.Optimizer):
    """Momentum whose rate follows the norms of each variable and its gradient."""

    def __init__(self, learning_rate, momentum=0.9, weight_decay=0.0001, eeta=0.001, epsilon=0.0, name="LARSOptimizer",
                 skip_list=None, use_nesterov=False):
        if momentum < 0.0:
            raise ValueError("momentum should be positive: %s" % momentum)
        super().__init__(False, name)
        self._learning_rate, self._momentum, self._weight_decay = learning_rate, momentum, weight_decay
        self._eeta, self._epsilon = eeta, epsilon
        self._skip, self._use_nesterov = skip_list, use_nesterov

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _scaled(self, grad, var):
        rate = self._cast(self._rate, grad)
        if self._skip is not None and any(part in var.name for part in self._skip):
            return rate, grad
        w_norm, g_norm = linalg_ops.norm(var, ord=2), linalg_ops.norm(grad, ord=2)
        one = ops.convert_to_tensor(1.0, dtype=grad.dtype)
        trust = array_ops.where(
            math_ops.greater(w_norm, 0), array_ops.where(
                math_ops.greater(g_norm, 0),
                self._eeta * w_norm / (g_norm + self._weight_decay * w_norm + self._epsilon), one), one)
        return rate * trust, grad + self._weight_decay * var

    def _prepare(self):
        self._rate = ops.convert_to_tensor(self._call_if_callable(self._learning_rate), name="learning_rate")
        self._momentum_tensor = ops.convert_to_tensor(self._call_if_callable(self._momentum), name="momentum")

    def _apply_dense(self, grad, var):
        rate, grad = self._scaled(grad, var)
        return gen_ops.ApplyMomentum(var._ref(), self.get_slot(var, "momentum")._ref(), rate, grad,
                                     self._cast(self._momentum_tensor, grad), use_locking=False, use_nesterov=self._use_nesterov).op

    def _resource_apply_dense(self, grad, var):
        rate, grad = self._scaled(grad, var)
        return gen_ops.ResourceApplyMomentum(var.handle, self.get_slot(var, "momentum").handle, rate, grad,
                                             self._cast(self._momentum_tensor, grad), use_locking=False,
                                             use_nesterov=self._use_nesterov)


@export("contrib.opt.MovingAverageOptimizer")
class MovingAverageOptimizer(optimizer.Optimizer):
    """Keeps moving averages of what another optimizer trains, and a saver that saves the averages."""

    def __init__(self, opt, average_decay=0.9999, num_updates=None, sequential_update=True):
        self._optimizer = opt
        self._averages = moving_averages.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped, self._sequential = None, bool(sequential_update)
        super().__init__(opt._use_locking, opt._name)

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        grads_and_vars = list(grads_and_vars)
        train = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)
        variables = [v for _, v in grads_and_vars]
        self._swapped = {}
        with ops.control_dependencies([train] if self._sequential else []):
            average = self._averages.apply(variables)
        for v in variables:
            own = self._averages.average(v)
            self._swapped[own.op.name], self._swapped[v.op.name] = v, own
        return control_flow_ops.group(train, average, name="train_with_avg")

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """A saver that keeps averages under the names of the variables."""
        from ferroflow.python.ops import variables as variables_lib
        if self._swapped is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        found = variables_lib.global_variables() if var_list is None else var_list
        named = found if isinstance(found, dict) else {v.op.name: v for v in found}
        return saver.Saver({n: self._swapped.get(n, v) for n, v in named.items()}, name=name, **kwargs)

    def get_slot(self, var, name):
        return self._optimizer.get_slot(var, name)

    def variables(self):
        return self._optimizer.variables()


@export("contrib.opt.DropStaleGradientOptimizer")
class DropStaleGradientOptimizer(optimizer.Optimizer):
    """Leaves out gradients that were computed too many steps ago."""

    def __init__(self, opt, staleness, use_locking=False, name="DropStaleGradient"):
        super().__init__(use_locking, name)
        self._opt, self._staleness = opt, staleness

    def compute_gradients(self, loss, *args, **kwargs):
        from ferroflow.python.training import training_util
        with ops.device(loss.device):
            step = array_ops.identity(training_util.get_global_step()) + 0
        # The step at which the gradients are begun.
        self._local_step = step
        with ops.control_dependencies([step]):
            loss = array_ops.identity(loss)
        return self._opt.compute_gradients(loss, *args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if global_step is None:
            raise ValueError("Global step is required")
        grads_and_vars = list(grads_and_vars)
        # All gradients are there before the age is looked at.
        with ops.control_dependencies([g for g, _ in grads_and_vars if g is not None]):
            now = global_step.read_value() if hasattr(global_step, "read_value") else array_ops.identity(global_step)
        fresh = math_ops.less_equal(now - self._local_step, self._staleness)

        def apply():
            with ops.control_dependencies([self._opt.apply_gradients(grads_and_vars, global_step, name)]):
                return ops.convert_to_tensor(True)
        return cond.cond(fresh, apply, lambda: ops.convert_to_tensor(False)).op
