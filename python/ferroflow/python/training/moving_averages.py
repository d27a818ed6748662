"""Moving averages of variables."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables
from ferroflow.python.training import slot_creator
from ferroflow.python.util.api import export


def assign_moving_average(variable, value, decay, zero_debias=True, name=None):
    """variable -= (1 - decay) * (variable - value)"""
    with ops.name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        decay = ops.convert_to_tensor(1.0 - decay, name="decay")
        if decay.dtype != variable.dtype.base_dtype:
            decay = math_ops.cast(decay, variable.dtype.base_dtype)
        if zero_debias:
            return _zero_debias(variable, value, decay)
        return state_ops.assign_sub(variable, (variable - value) * decay, name=scope)


def _zero_debias(unbiased, value, decay):
    """Removes the bias towards zero of an average that started with zeros."""
    with variable_scope.variable_scope(unbiased.op.name, values=[unbiased, value, decay]):
        with ops.init_scope():
            biased = variable_scope.get_variable(
                "biased", initializer=init_ops.zeros_initializer(), trainable=False,
                shape=unbiased.get_shape(), dtype=unbiased.dtype.base_dtype)
            step = variable_scope.get_variable(
                "local_step", shape=[], dtype=unbiased.dtype.base_dtype,
                initializer=init_ops.zeros_initializer(), trainable=False)
    update = state_ops.assign_sub(biased, (biased - value) * decay,
                                  name=ops.get_default_graph().get_name_scope() + "/")
    count = step.assign_add(1)
    with ops.control_dependencies([update, count]):
        factor = 1 - math_ops.pow(1.0 - decay, step.read_value())
        return state_ops.assign(unbiased, biased.read_value() / factor)


@export("train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Keeps an average of each variable that decays exponentially."""

    def __init__(self, decay, num_updates=None, zero_debias=False,
                 name="ExponentialMovingAverage"):
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages = {}

    name = property(lambda self: self._name)

    def _make(self, var):
        with ops.init_scope():
            if isinstance(var, variables.Variable):
                with ops.device(var.device):
                    start = cond.cond(state_ops.is_variable_initialized(var), var.read_value,
                                      lambda: var.initial_value)
                average = slot_creator.create_slot(var, start, self.name)
                ops.add_to_collection(ops.GraphKeys.MOVING_AVERAGE_VARIABLES, var)
                return average, False
            colocate = var.op.type in ("Variable", "VariableV2", "VarHandleOp")
            return slot_creator.create_zeros_slot(
                var, self.name, colocate_with_primary=colocate), self._zero_debias

    def apply(self, var_list=None):
        if var_list is None:
            var_list = variables.trainable_variables()
        for var in var_list:
            if var.dtype.base_dtype not in (dtypes.bfloat16, dtypes.float16, dtypes.float32,
                                            dtypes.float64):
                raise TypeError("The variables must be half, float, or double: %s" % var.name)
            if var not in self._averages:
                self._averages[var] = self._make(var)
        with ops.name_scope(self.name) as scope:
            decay = ops.convert_to_tensor(self._decay, dtype=dtypes.float32, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = gen_ops.Minimum(decay, (1.0 + count) / (10.0 + count))
            updates = []
            for var in var_list:
                average, debias = self._averages[var]
                updates.append(assign_moving_average(average, var, decay, debias))
            return control_flow_ops.group(*updates, name=scope)

    def average(self, var):
        found = self._averages.get(var)
        return None if found is None else found[0]

    def average_name(self, var):
        if var in self._averages:
            return self._averages[var][0].name[:-len(":0")]
        return ops.get_default_graph().unique_name(
            var.name[:-len(":0")] + "/" + self.name, mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables=None):
        if moving_avg_variables is None:
            moving_avg_variables = (variables.trainable_variables()
                                    + variables.moving_average_variables())
        averaged = list(dict.fromkeys(moving_avg_variables))
        names = {self.average_name(v): v for v in averaged}
        own = {v.name for v in averaged}
        for v in dict.fromkeys(variables.global_variables()):
            if v.name not in own and v.op.name not in names:
                names[v.op.name] = v
        return names
