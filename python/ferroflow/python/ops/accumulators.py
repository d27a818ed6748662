"""Conditional accumulators: they collect gradients until there are enough to take their mean."""

from ferroflow.python.framework import dtypes as _dtypes
from ferroflow.python.framework import indexed_slices as _indexed_slices
from ferroflow.python.framework import ops, tensor_shape
from ferroflow.python.ops import math_ops


class ConditionalAccumulatorBase:
    """What both kinds of accumulators can do."""

    # Dense accumulators are resources, sparse ones references.
    _kind = "Resource"

    def __init__(self, dtype, shape, accumulator_ref):
        self._dtype = dtype
        self._shape = tensor_shape.TensorShape(shape) if shape is not None else tensor_shape.unknown_shape()
        self._accumulator_ref = accumulator_ref
        self._name = self._accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self):
        return self._accumulator_ref

    @property
    def name(self):
        return self._name

    @property
    def dtype(self):
        return self._dtype

    def num_accumulated(self, name=None):
        """How many gradients are in the accumulator."""
        if name is None:
            name = "%s_NumAccumulated" % self._name
        return ops.apply_op(self._kind + "AccumulatorNumAccumulated", name, [self._accumulator_ref]).outputs[0]

    def set_global_step(self, new_global_step, name=None):
        """An operation that sets the step; older gradients are dropped."""
        step = math_ops.cast(ops.convert_to_tensor(new_global_step), _dtypes.int64)
        return ops.apply_op(self._kind + "AccumulatorSetGlobalStep", name, [self._accumulator_ref, step])


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Collects dense gradients."""

    def __init__(self, dtype, shape=None, shared_name=None, name="conditional_accumulator", reduction_type="MEAN"):
        attrs = {"dtype": dtype, "shape": tensor_shape.TensorShape(shape), "shared_name": shared_name or "", "reduction_type": reduction_type}
        ref = ops.apply_op("ResourceConditionalAccumulator", name, [], attrs).outputs[0]
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad, local_step=0, name=None):
        """An operation that adds a gradient, unless `local_step` is older than the accumulator's."""
        grad = ops.convert_to_tensor(grad, self._dtype)
        grad.get_shape().assert_is_compatible_with(self._shape)
        local_step = math_ops.cast(ops.convert_to_tensor(local_step), _dtypes.int64)
        return ops.apply_op("ResourceAccumulatorApplyGradient", name, [self._accumulator_ref, local_step, grad])

    def take_grad(self, num_required, name=None):
        """The mean of the gradients; the step waits until there are `num_required`."""
        op = ops.apply_op("ResourceAccumulatorTakeGradient", name, [self._accumulator_ref, num_required], {"dtype": self._dtype})
        op.outputs[0].set_shape(self._shape)
        return op.outputs[0]


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Collects gradients that are IndexedSlices."""

    _kind = ""

    def __init__(self, dtype, shape=None, shared_name=None, name="sparse_conditional_accumulator", reduction_type="MEAN"):
        attrs = {"dtype": dtype, "shape": tensor_shape.TensorShape(shape), "shared_name": shared_name or "", "reduction_type": reduction_type}
        ref = ops.apply_op("SparseConditionalAccumulator", name, [], attrs).outputs[0]
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(self, grad, local_step=0, name=None):
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(self, grad_indices, grad_values, grad_shape=None, local_step=0, name=None):
        local_step = math_ops.cast(ops.convert_to_tensor(local_step), _dtypes.int64)
        inputs = [
            self._accumulator_ref,
            local_step,
            math_ops.cast(grad_indices, _dtypes.int64),
            grad_values,
            math_ops.cast([] if grad_shape is None else grad_shape, _dtypes.int64),
        ]
        return ops.apply_op("SparseAccumulatorApplyGradient", name, inputs, {"has_known_shape": grad_shape is not None})

    def take_grad(self, num_required, name=None):
        """Indices, values and shape of the mean."""
        return tuple(ops.apply_op("SparseAccumulatorTakeGradient", name, [self._accumulator_ref, num_required], {"dtype": self._dtype}).outputs)

    def take_indexed_slices_grad(self, num_required, name=None):
        indices, values, shape = self.take_grad(num_required, name)
        return _indexed_slices.IndexedSlices(indices=indices, values=values, dense_shape=shape)
