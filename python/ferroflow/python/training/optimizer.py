"""The base of optimizers: gradients, slots, and the step that applies them."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import gradients_impl
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variables
from ferroflow.python.training import slot_creator
from ferroflow.python.util.api import export

IndexedSlices = indexed_slices.IndexedSlices


def _deduplicate_indexed_slices(values, indices):
    """(the sums of values with the same index, the indices)"""
    unique, positions = gen_ops.Unique(indices)
    summed = gen_ops.UnsortedSegmentSum(values, positions, array_ops.shape(unique)[0])
    return summed, unique


def _var_key(var):
    return (var.op.graph, var.op.name)


class _Target:
    """A variable as an optimizer updates it."""

    def __init__(self, var):
        self.var = var

    def target(self):
        return self.var._ref()

    def update(self, optimizer, grad):
        if isinstance(grad, ops.Tensor):
            done = optimizer._apply_dense(grad, self.var)
        else:
            if not isinstance(grad, IndexedSlices):
                raise AssertionError("Gradient %s is neither a tensor nor IndexedSlices." % grad)
            if self.var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            return optimizer._apply_sparse_duplicate_indices(grad, self.var)
        return self._constrained(done)

    def _constrained(self, done):
        if self.var.constraint is None:
            return done
        with ops.control_dependencies([done]):
            return self.var.assign(self.var.constraint(self.var))


class _ResourceTarget(_Target):
    def target(self):
        return self.var.handle

    def update(self, optimizer, grad):
        if isinstance(grad, IndexedSlices):
            if self.var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            return optimizer._resource_apply_sparse_duplicate_indices(
                grad.values, self.var, grad.indices)
        return self._constrained(optimizer._resource_apply_dense(grad, self.var))


class _TensorTarget(_Target):
    def target(self):
        return self.var

    def update(self, optimizer, grad):
        raise NotImplementedError("Trying to update a Tensor ", self.var)


def _target_of(var):
    if resource_variable_ops.is_resource_variable(var):
        return _ResourceTarget(var)
    if isinstance(var, variables.Variable):
        return _Target(var)
    if isinstance(var, ops.Tensor):
        return _TensorTarget(var)
    raise NotImplementedError("Trying to optimize unsupported type ", var)


@export("train.Optimizer")
class Optimizer:
    """Computes gradients and applies them to variables."""

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking, name):
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots = {}
        self._non_slot_dict = {}
        self._deferred_slot_restorations = {}

    def get_name(self):
        return self._name

    def minimize(self, loss, global_step=None, var_list=None, gate_gradients=GATE_OP,
                 aggregation_method=None, colocate_gradients_with_ops=False, name=None,
                 grad_loss=None):
        pairs = self.compute_gradients(
            loss, var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops, grad_loss=grad_loss)
        if all(g is None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                "support gradients, between variables %s and loss %s." % (
                    [str(v) for _, v in pairs], loss))
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(self, loss, var_list=None, gate_gradients=GATE_OP,
                          aggregation_method=None, colocate_gradients_with_ops=False,
                          grad_loss=None):
        if callable(loss):
            loss = loss()
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError("gate_gradients must be one of: Optimizer.GATE_NONE, "
                             "Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not %s" % gate_gradients)
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        if var_list is None:
            var_list = variables.trainable_variables() + ops.get_collection(
                ops.GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
        else:
            from ferroflow.python.util import nest
            flat = []
            for one in nest.flatten(var_list):
                flat.extend(one if isinstance(one, variables.PartitionedVariable) else [one])
            var_list = flat
        var_list = list(var_list) + ops.get_collection(ops.GraphKeys._STREAMING_MODEL_PORTS)
        targets = [_target_of(v) for v in var_list]
        if not var_list:
            raise ValueError("No variables to optimize.")
        grads = gradients_impl.gradients(
            loss, [t.target() for t in targets], grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = control_flow_ops.tuple_of(grads)
        pairs = list(zip(grads, var_list))
        self._assert_valid_dtypes([v for g, v in pairs
                                   if g is not None and v.dtype != dtypes.resource])
        return pairs

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = tuple(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        converted = []
        for grad, var in pairs:
            if grad is not None:
                try:
                    grad = indexed_slices.convert_to_tensor_or_indexed_slices(grad)
                except TypeError:
                    raise TypeError("Gradient must be convertible to a Tensor or IndexedSlices, or "
                                    "None: %s" % grad) from None
                if not isinstance(grad, (ops.Tensor, IndexedSlices)):
                    raise TypeError("Gradient must be a Tensor, IndexedSlices, or None: %s" % grad)
            converted.append((grad, var, _target_of(var)))
        var_list = [v for g, v, _ in converted if g is not None]
        if not var_list:
            raise ValueError("No gradients provided for any variable: %s." % (
                [str(v) for _, v, _ in converted],))
        with ops.init_scope():
            self._create_slots(var_list)
        updates = []
        with ops.name_scope(name, self._name) as scope:
            self._prepare()
            for grad, var, target in converted:
                if grad is None:
                    continue
                with ops.name_scope("update_" + var.op.name), ops.colocate_with(var.op):
                    updates.append(target.update(self, grad))
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                with ops.control_dependencies([self._finish(updates, "update")]):
                    with ops.colocate_with(global_step.op):
                        if resource_variable_ops.is_resource_variable(global_step):
                            done = gen_ops.AssignAddVariableOp(
                                global_step.handle,
                                ops.convert_to_tensor(1, dtype=global_step.dtype), name=scope)
                        else:
                            done = state_ops.assign_add(global_step, 1, name=scope)
            if isinstance(done, ops.Tensor):
                done = done.op
            train_ops = ops.get_collection_ref(ops.GraphKeys.TRAIN_OP)
            if done not in train_ops:
                train_ops.append(done)
            return done

    # --------------------------------------------------------------- slots

    def get_slot(self, var, name):
        named = self._slots.get(name)
        return None if not named else named.get(_var_key(var))

    def get_slot_names(self):
        return sorted(self._slots)

    def variables(self):
        graph = ops.get_default_graph()
        found = [v for v in self._non_slot_variables() if v.op.graph is graph]
        for slots in self._slots.values():
            found.extend(v for v in slots.values() if v.op.graph is graph)
        return sorted(found, key=lambda v: v.name)

    def _non_slot_variables(self):
        return self._non_slot_dict.values()

    def _create_non_slot_variable(self, initial_value, name, colocate_with):
        key = (name, colocate_with.graph)
        found = self._non_slot_dict.get(key)
        if found is None:
            with ops.colocate_with(colocate_with.op):
                found = variables.Variable(
                    initial_value, name=name, trainable=False,
                    use_resource=resource_variable_ops.is_resource_variable(colocate_with))
            self._non_slot_dict[key] = found
        return found

    def _get_non_slot_variable(self, name, graph=None):
        return self._non_slot_dict.get((name, graph))

    def _slot_dict(self, slot_name):
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var, val, slot_name, op_name):
        named = self._slot_dict(slot_name)
        if _var_key(var) not in named:
            named[_var_key(var)] = slot_creator.create_slot(var, val, op_name)
        return named[_var_key(var)]

    def _get_or_make_slot_with_initializer(self, var, initializer, shape, dtype, slot_name,
                                           op_name):
        named = self._slot_dict(slot_name)
        if _var_key(var) not in named:
            named[_var_key(var)] = slot_creator.create_slot_with_initializer(
                var, initializer, shape, dtype, op_name)
        return named[_var_key(var)]

    def _zeros_slot(self, var, slot_name, op_name):
        named = self._slot_dict(slot_name)
        if _var_key(var) not in named:
            named[_var_key(var)] = slot_creator.create_zeros_slot(var, op_name)
        return named[_var_key(var)]

    # -------------------------------------------- what an optimizer defines

    def _valid_dtypes(self):
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors):
        valid = self._valid_dtypes()
        for t in tensors:
            dtype = t.dtype.base_dtype
            if dtype not in valid:
                raise ValueError("Invalid type %r for %s, expected: %s." % (
                    dtype, t.name, list(valid)))

    def _create_slots(self, var_list):
        pass

    def _prepare(self):
        pass

    def _apply_dense(self, grad, var):
        raise NotImplementedError()

    def _resource_apply_dense(self, grad, handle):
        raise NotImplementedError()

    def _apply_sparse(self, grad, var):
        raise NotImplementedError()

    def _resource_apply_sparse(self, grad, handle, indices):
        raise NotImplementedError()

    def _apply_sparse_duplicate_indices(self, grad, var):
        values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(
            indices=indices, values=values, dense_shape=grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        values, unique = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops, name_scope):
        return control_flow_ops.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param):
        return param() if callable(param) else param

    def _cast(self, tensor, like):
        return math_ops.cast(tensor, like.dtype.base_dtype)
