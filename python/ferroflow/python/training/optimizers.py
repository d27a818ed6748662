"""The optimizers of `tf.train`."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.training import optimizer
from ferroflow.python.util.api import export


class _HyperParameters(optimizer.Optimizer):
    """An optimizer whose parameters become constants in its scope, once for each call."""

    _PARAMETERS = ()  # (attribute, name of the constant)

    def _prepare(self):
        for attribute, name in self._PARAMETERS:
            value = self._call_if_callable(getattr(self, attribute))
            setattr(self, attribute + "_tensor",
                    None if value is None else ops.convert_to_tensor(value, name=name))

    def _param(self, attribute, like):
        return self._cast(getattr(self, attribute + "_tensor"), like)


@export("train.GradientDescentOptimizer")
class GradientDescentOptimizer(_HyperParameters):
    _PARAMETERS = (("_learning_rate", "learning_rate"),)

    def __init__(self, learning_rate, use_locking=False, name="GradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _apply_dense(self, grad, var):
        return gen_ops.ApplyGradientDescent(
            var._ref(), self._param("_learning_rate", var), grad,
            use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad, handle):
        return gen_ops.ResourceApplyGradientDescent(
            handle.handle, self._param("_learning_rate", grad), grad,
            use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        return gen_ops.ResourceScatterAdd(handle.handle, indices,
                                          -grad * self._param("_learning_rate", grad))

    def _apply_sparse_duplicate_indices(self, grad, var):
        delta = indexed_slices.IndexedSlices(
            grad.values * self._param("_learning_rate", var), grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)


@export("train.MomentumOptimizer")
class MomentumOptimizer(_HyperParameters):
    _PARAMETERS = (("_learning_rate", "learning_rate"), ("_momentum", "momentum"))

    def __init__(self, learning_rate, momentum, use_locking=False, name="Momentum",
                 use_nesterov=False):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _apply_dense(self, grad, var):
        return gen_ops.ApplyMomentum(
            var._ref(), self.get_slot(var, "momentum")._ref(), self._param("_learning_rate", var),
            grad, self._param("_momentum", var), use_locking=self._use_locking,
            use_nesterov=self._use_nesterov).op

    def _resource_apply_dense(self, grad, var):
        return gen_ops.ResourceApplyMomentum(
            var.handle, self.get_slot(var, "momentum").handle,
            self._param("_learning_rate", grad), grad, self._param("_momentum", grad),
            use_locking=self._use_locking, use_nesterov=self._use_nesterov)

    def _apply_sparse(self, grad, var):
        return gen_ops.SparseApplyMomentum(
            var._ref(), self.get_slot(var, "momentum")._ref(), self._param("_learning_rate", var),
            grad.values, grad.indices, self._param("_momentum", var),
            use_locking=self._use_locking, use_nesterov=self._use_nesterov).op

    def _resource_apply_sparse(self, grad, var, indices):
        return gen_ops.ResourceSparseApplyMomentum(
            var.handle, self.get_slot(var, "momentum").handle,
            self._param("_learning_rate", grad), grad, indices, self._param("_momentum", grad),
            use_locking=self._use_locking, use_nesterov=self._use_nesterov)


@export("train.AdamOptimizer")
class AdamOptimizer(_HyperParameters):
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8,
                 use_locking=False, name="Adam"):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    _PARAMETERS = (("_lr", "learning_rate"), ("_beta1", "beta1"), ("_beta2", "beta2"),
                   ("_epsilon", "epsilon"))

    def _get_beta_accumulators(self):
        graph = ops.get_default_graph()
        return (self._get_non_slot_variable("beta1_power", graph=graph),
                self._get_non_slot_variable("beta2_power", graph=graph))

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        self._create_non_slot_variable(self._call_if_callable(self._beta2), "beta2_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        beta1_power, beta2_power = self._get_beta_accumulators()
        return gen_ops.ApplyAdam(
            var._ref(), m._ref(), v._ref(), self._cast(beta1_power, var),
            self._cast(beta2_power, var), self._param("_lr", var), self._param("_beta1", var),
            self._param("_beta2", var), self._param("_epsilon", var), grad,
            use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad, var):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        beta1_power, beta2_power = self._get_beta_accumulators()
        return gen_ops.ResourceApplyAdam(
            var.handle, m.handle, v.handle, self._cast(beta1_power, grad),
            self._cast(beta2_power, grad), self._param("_lr", grad), self._param("_beta1", grad),
            self._param("_beta2", grad), self._param("_epsilon", grad), grad,
            use_locking=self._use_locking)

    def _sparse(self, grad, var, indices, scatter_add):
        beta1_power, beta2_power = self._get_beta_accumulators()
        beta1_power, beta2_power = self._cast(beta1_power, var), self._cast(beta2_power, var)
        lr = self._param("_lr", var)
        beta1, beta2 = self._param("_beta1", var), self._param("_beta2", var)
        epsilon = self._param("_epsilon", var)
        rate = lr * math_ops.sqrt(1 - beta2_power) / (1 - beta1_power)
        m = self.get_slot(var, "m")
        scaled = grad * (1 - beta1)
        m_t = state_ops.assign(m, m * beta1, use_locking=self._use_locking)
        with ops.control_dependencies([m_t]):
            m_t = scatter_add(m, indices, scaled)
        v = self.get_slot(var, "v")
        squared = (grad * grad) * (1 - beta2)
        v_t = state_ops.assign(v, v * beta2, use_locking=self._use_locking)
        with ops.control_dependencies([v_t]):
            v_t = scatter_add(v, indices, squared)
        root = math_ops.sqrt(v_t)
        done = state_ops.assign_sub(var, rate * m_t / (root + epsilon),
                                    use_locking=self._use_locking)
        return control_flow_ops.group(*[done, m_t, v_t])

    def _apply_sparse(self, grad, var):
        return self._sparse(grad.values, var, grad.indices,
                            lambda x, i, v: state_ops.scatter_add(
                                x, i, v, use_locking=self._use_locking))

    def _resource_apply_sparse(self, grad, var, indices):
        def scatter_add(x, i, v):
            with ops.control_dependencies([gen_ops.ResourceScatterAdd(x.handle, i, v)]):
                return x.value()
        return self._sparse(grad, var, indices, scatter_add)

    def _finish(self, update_ops, name_scope):
        with ops.control_dependencies(update_ops):
            beta1_power, beta2_power = self._get_beta_accumulators()
            with ops.colocate_with(beta1_power.op):
                update1 = beta1_power.assign(beta1_power * self._beta1_tensor,
                                             use_locking=self._use_locking)
                update2 = beta2_power.assign(beta2_power * self._beta2_tensor,
                                             use_locking=self._use_locking)
        return control_flow_ops.group(*update_ops + [update1, update2], name=name_scope)


@export("train.AdagradOptimizer")
class AdagradOptimizer(_HyperParameters):
    _PARAMETERS = (("_learning_rate", "learning_rate"),)

    def __init__(self, learning_rate, initial_accumulator_value=0.1, use_locking=False,
                 name="Adagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" %
                             initial_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list):
        _accumulators(self, var_list, self._initial_accumulator_value, "accumulator")

    def _apply_dense(self, grad, var):
        return gen_ops.ApplyAdagrad(
            var._ref(), self.get_slot(var, "accumulator")._ref(),
            self._param("_learning_rate", var), grad, use_locking=self._use_locking)

    def _resource_apply_dense(self, grad, var):
        return gen_ops.ResourceApplyAdagrad(
            var.handle, self.get_slot(var, "accumulator").handle,
            self._param("_learning_rate", grad), grad, use_locking=self._use_locking)

    def _apply_sparse(self, grad, var):
        return gen_ops.SparseApplyAdagrad(
            var._ref(), self.get_slot(var, "accumulator")._ref(),
            self._param("_learning_rate", var), grad.values, grad.indices,
            use_locking=self._use_locking)

    def _resource_apply_sparse(self, grad, var, indices):
        return gen_ops.ResourceSparseApplyAdagrad(
            var.handle, self.get_slot(var, "accumulator").handle,
            self._param("_learning_rate", grad), grad, indices, use_locking=self._use_locking)


def _accumulators(self, var_list, value, slot_name):
    """Slots that start with a constant."""
    for v in var_list:
        dtype = v.dtype.base_dtype
        if v.get_shape().is_fully_defined():
            init = init_ops.constant_initializer(value, dtype=dtype)
        else:
            def init(shape=None, dtype=None, partition_info=None, v=v):
                return gen_ops.Fill(array_ops.shape(v), math_ops.cast(value, v.dtype.base_dtype))
        self._get_or_make_slot_with_initializer(v, init, v.get_shape(), dtype, slot_name,
                                                self._name)


@export("train.AdagradDAOptimizer")
class AdagradDAOptimizer(optimizer.Optimizer):
    def __init__(self, learning_rate, global_step, initial_gradient_squared_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0,
                 use_locking=False, name="AdagradDA"):
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError("initial_gradient_squared_accumulator_value must be positive: %s" %
                             initial_gradient_squared_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._global_step = global_step
        self._global_step_on_worker = None

    def _create_slots(self, var_list):
        for v in var_list:
            with ops.colocate_with(v.op):
                zeros = constant_op.constant(0.0, shape=v.get_shape(), dtype=v.dtype.base_dtype)
                value = constant_op.constant(self._initial, shape=v.get_shape(),
                                             dtype=v.dtype.base_dtype)
            self._get_or_make_slot(v, zeros, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, value, "gradient_squared_accumulator", self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(self._learning_rate,
                                                           name="learning_rate")
        with ops.colocate_with(self._learning_rate_tensor):
            self._global_step_on_worker = array_ops.identity(self._global_step) + 1

    def _call(self, op, var, parts, grads):
        first, second = (self.get_slot(var, s) for s in (
            "gradient_accumulator", "gradient_squared_accumulator"))
        with ops.device(grads[0].device):
            step = array_ops.identity(self._global_step_on_worker)
        return getattr(gen_ops, op)(
            parts(var), parts(first), parts(second), *grads,
            self._cast(self._learning_rate_tensor, var), math_ops.cast(self._l1, var.dtype.base_dtype),
            math_ops.cast(self._l2, var.dtype.base_dtype), step, use_locking=self._use_locking)

    def _apply_dense(self, grad, var):
        return self._call("ApplyAdagradDA", var, lambda v: v._ref(), (grad,))

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApplyAdagradDA", var, lambda v: v.handle, (grad,))

    def _apply_sparse(self, grad, var):
        return self._call("SparseApplyAdagradDA", var, lambda v: v._ref(),
                          (grad.values, grad.indices))

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApplyAdagradDA", var, lambda v: v.handle,
                          (grad, indices))


@export("train.AdadeltaOptimizer")
class AdadeltaOptimizer(_HyperParameters):
    _PARAMETERS = (("_lr", "lr"), ("_rho", "rho"), ("_epsilon", "epsilon"))

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-8, use_locking=False,
                 name="Adadelta"):
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _call(self, op, var, like, parts, *grads):
        slots = [parts(self.get_slot(var, s)) for s in ("accum", "accum_update")]
        return getattr(gen_ops, op)(
            parts(var), *slots, self._param("_lr", like), self._param("_rho", like),
            self._param("_epsilon", like), *grads, use_locking=self._use_locking)

    def _apply_dense(self, grad, var):
        return self._call("ApplyAdadelta", var, var, lambda v: v._ref(), grad)

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApplyAdadelta", var, grad, lambda v: v.handle, grad)

    def _apply_sparse(self, grad, var):
        return self._call("SparseApplyAdadelta", var, var, lambda v: v._ref(), grad.values,
                          grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApplyAdadelta", var, grad, lambda v: v.handle, grad,
                          indices)


@export("train.RMSPropOptimizer")
class RMSPropOptimizer(_HyperParameters):
    _PARAMETERS = (("_learning_rate", "learning_rate"), ("_decay", "decay"),
                   ("_momentum", "momentum"), ("_epsilon", "epsilon"))

    def __init__(self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False,
                 centered=False, name="RMSProp"):
        super().__init__(use_locking, name)
        self._learning_rate, self._decay = learning_rate, decay
        self._momentum, self._epsilon, self._centered = momentum, epsilon, centered

    def _create_slots(self, var_list):
        for v in var_list:
            if v.get_shape().is_fully_defined():
                init = init_ops.ones_initializer(dtype=v.dtype.base_dtype)
            else:
                init = array_ops.ones_like(v)
            self._get_or_make_slot_with_initializer(v, init, v.get_shape(), v.dtype.base_dtype,
                                                    "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _call(self, kind, var, like, parts, *grads):
        names = ("mg", "rms", "momentum") if self._centered else ("rms", "momentum")
        op = kind % ("CenteredRMSProp" if self._centered else "RMSProp")
        return getattr(gen_ops, op)(
            parts(var), *[parts(self.get_slot(var, n)) for n in names],
            self._param("_learning_rate", like), self._param("_decay", like),
            self._param("_momentum", like), self._param("_epsilon", like), *grads,
            use_locking=self._use_locking)

    def _apply_dense(self, grad, var):
        return self._call("Apply%s", var, var, lambda v: v._ref(), grad).op

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApply%s", var, grad, lambda v: v.handle, grad)

    def _apply_sparse(self, grad, var):
        return self._call("SparseApply%s", var, var, lambda v: v._ref(), grad.values,
                          grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApply%s", var, grad, lambda v: v.handle, grad, indices)


@export("train.FtrlOptimizer")
class FtrlOptimizer(optimizer.Optimizer):
    def __init__(self, learning_rate, learning_rate_power=-0.5, initial_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0,
                 use_locking=False, name="Ftrl", accum_name=None, linear_name=None,
                 l2_shrinkage_regularization_strength=0.0, beta=None):
        super().__init__(use_locking, name)
        for value, what in ((initial_accumulator_value, "initial_accumulator_value"),
                            (l1_regularization_strength, "l1_regularization_strength"),
                            (l2_regularization_strength, "l2_regularization_strength"),
                            (l2_shrinkage_regularization_strength,
                             "l2_shrinkage_regularization_strength")):
            if value < 0.0:
                raise ValueError("%s %f needs to be positive or zero" % (what, value))
        if learning_rate_power > 0.0:
            raise ValueError("learning_rate_power %f needs to be negative or zero" %
                             learning_rate_power)
        self._learning_rate = learning_rate
        self._power = learning_rate_power
        self._initial = initial_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._beta = 0.0 if beta is None else beta
        self._shrinkage = l2_shrinkage_regularization_strength
        self._accum_name, self._linear_name = accum_name, linear_name

    def _create_slots(self, var_list):
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, self._initial_accumulator, v.get_shape(), v.dtype, "accum",
                self._accum_name or self._name)
            self._zeros_slot(v, "linear", self._linear_name or self._name)

    def _initial_accumulator(self, shape, dtype=None, partition_info=None):
        return array_ops.ones(shape=shape, dtype=dtype) * self._initial

    def _prepare(self):
        def tensor(value, name):
            return ops.convert_to_tensor(value, name=name)
        self._lr_t = tensor(self._learning_rate, "learning_rate")
        self._l1_t = tensor(self._l1, "l1_regularization_strength")
        # beta enters the op as part of the l2 strength.
        adjusted = self._l2 + self._beta / (2.0 * gen_ops.Maximum(self._learning_rate, 1e-36))
        self._l2_t = tensor(adjusted, "adjusted_l2_regularization_strength")
        tensor(self._beta, "beta")
        self._shrinkage_t = tensor(self._shrinkage, "l2_shrinkage_regularization_strength")
        self._power_t = tensor(self._power, "learning_rate_power")

    def _call(self, op, var, like, parts, *grads):
        slots = [parts(self.get_slot(var, s)) for s in ("accum", "linear")]
        rates = [self._cast(t, like) for t in (self._lr_t, self._l1_t, self._l2_t)]
        if self._shrinkage > 0.0:
            op += "V2"
            rates.append(self._cast(self._shrinkage_t, like))
        return getattr(gen_ops, op)(parts(var), *slots, *grads, *rates,
                                    self._cast(self._power_t, like),
                                    use_locking=self._use_locking)

    def _apply_dense(self, grad, var):
        return self._call("ApplyFtrl", var, var, lambda v: v._ref(), grad)

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApplyFtrl", var, var, lambda v: v.handle, grad)

    def _apply_sparse(self, grad, var):
        return self._call("SparseApplyFtrl", var, var, lambda v: v._ref(), grad.values,
                          grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApplyFtrl", var, grad, lambda v: v.handle, grad, indices)


class _Proximal(_HyperParameters):
    _PARAMETERS = (("_learning_rate", "learning_rate"),
                   ("_l1", "l1_regularization_strength"), ("_l2", "l2_regularization_strength"))

    def _call(self, op, var, like, parts, slots, *grads):
        return getattr(gen_ops, op)(
            parts(var), *[parts(self.get_slot(var, s)) for s in slots],
            self._param("_learning_rate", like), self._param("_l1", like),
            self._param("_l2", like), *grads, use_locking=self._use_locking)


@export("train.ProximalGradientDescentOptimizer")
class ProximalGradientDescentOptimizer(_Proximal):
    def __init__(self, learning_rate, l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False,
                 name="ProximalGradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _apply_dense(self, grad, var):
        return self._call("ApplyProximalGradientDescent", var, grad, lambda v: v._ref(), (),
                          grad).op

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApplyProximalGradientDescent", var, grad, lambda v: v.handle,
                          (), grad)

    def _apply_sparse(self, grad, var):
        return self._call("SparseApplyProximalGradientDescent", var, var, lambda v: v._ref(), (),
                          grad.values, grad.indices).op

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApplyProximalGradientDescent", var, grad,
                          lambda v: v.handle, (), grad, indices)


@export("train.ProximalAdagradOptimizer")
class ProximalAdagradOptimizer(_Proximal):
    def __init__(self, learning_rate, initial_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0,
                 use_locking=False, name="ProximalAdagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" %
                             initial_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _create_slots(self, var_list):
        for v in var_list:
            with ops.colocate_with(v.op):
                value = constant_op.constant(self._initial, shape=v.get_shape(),
                                             dtype=v.dtype.base_dtype)
            self._get_or_make_slot(v, value, "accumulator", self._name)

    def _apply_dense(self, grad, var):
        return self._call("ApplyProximalAdagrad", var, var, lambda v: v._ref(),
                          ("accumulator",), grad)

    def _resource_apply_dense(self, grad, var):
        return self._call("ResourceApplyProximalAdagrad", var, grad, lambda v: v.handle,
                          ("accumulator",), grad)

    def _apply_sparse(self, grad, var):
        return self._call("SparseApplyProximalAdagrad", var, var, lambda v: v._ref(),
                          ("accumulator",), grad.values, grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparseApplyProximalAdagrad", var, grad, lambda v: v.handle,
                          ("accumulator",), grad, indices)


