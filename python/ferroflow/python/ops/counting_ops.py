"""Counts, histograms, confusion matrices, sorting."""

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import check_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor


@export("bincount", "math.bincount")
def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32):
    with ops.name_scope("bincount"):
        arr = convert(arr, name="arr")
        if weights is not None:
            weights = convert(weights, name="weights")
        if not arr.dtype.is_integer:
            arr = math_ops.cast(arr, dtypes.int32)
        filled = array_ops.size(arr) > 0
        size = math_ops.cast(filled, arr.dtype) * (math_ops.reduce_max(arr) + 1)
        if minlength is not None:
            size = gen_ops.Maximum(convert(minlength, name="minlength", dtype=arr.dtype), size)
        if maxlength is not None:
            size = gen_ops.Minimum(convert(maxlength, name="maxlength", dtype=arr.dtype), size)
        if weights is not None:
            weights = array_ops.reshape(weights, [-1])
        arr = array_ops.reshape(arr, [-1])
        if weights is None:
            weights = constant_op.constant([], dtype=dtype)
        return gen_ops.DenseBincount(input=arr, size=size, weights=weights, binary_output=False)


@export("histogram_fixed_width")
def histogram_fixed_width(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    with ops.name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return gen_ops.HistogramFixedWidth(values, value_range, nbins, dtype=dtype, name=scope)


def remove_squeezable_dimensions(labels, predictions, expected_rank_diff=0, name=None):
    """Squeezes the last dimension of the one that has a dimension too many."""
    with ops.name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert(predictions), convert(labels)
        p_shape, l_shape = predictions.get_shape(), labels.get_shape()

        def is_one(shape):
            return shape.as_list()[-1] in (1, None)

        if l_shape.ndims is not None and p_shape.ndims is not None:
            diff = p_shape.ndims - l_shape.ndims
            if diff == expected_rank_diff + 1 and is_one(p_shape):
                predictions = array_ops.squeeze(predictions, [-1])
            elif diff == expected_rank_diff - 1 and is_one(l_shape):
                labels = array_ops.squeeze(labels, [-1])
            return labels, predictions
        diff = array_ops.rank(predictions) - array_ops.rank(labels)
        if p_shape.ndims is None or is_one(p_shape):
            wide = predictions
            predictions = cond.cond(math_ops.equal(expected_rank_diff + 1, diff),
                                    lambda: array_ops.squeeze(wide, [-1]), lambda: wide)
        if l_shape.ndims is None or is_one(l_shape):
            wide_labels = labels
            labels = cond.cond(math_ops.equal(expected_rank_diff - 1, diff),
                               lambda: array_ops.squeeze(wide_labels, [-1]), lambda: wide_labels)
        return labels, predictions


@export("confusion_matrix", "math.confusion_matrix")
def confusion_matrix(labels, predictions, num_classes=None, dtype=dtypes.int32, name=None,
                     weights=None):
    after = control_flow_ops.with_dependencies
    with ops.name_scope(name, "confusion_matrix", (predictions, labels, num_classes, weights)):
        labels, predictions = remove_squeezable_dimensions(
            convert(labels, name="labels"), convert(predictions, name="predictions"))
        predictions = math_ops.cast(predictions, dtypes.int64)
        labels = math_ops.cast(labels, dtypes.int64)
        labels = after([check_ops.assert_non_negative(
            labels, message="`labels` contains negative values")], labels)
        predictions = after([check_ops.assert_non_negative(
            predictions, message="`predictions` contains negative values")], predictions)
        if num_classes is None:
            num_classes = gen_ops.Maximum(math_ops.reduce_max(predictions),
                                          math_ops.reduce_max(labels)) + 1
        else:
            limit = math_ops.cast(num_classes, dtypes.int64)
            labels = after([check_ops.assert_less(
                labels, limit, message="`labels` out of bound")], labels)
            predictions = after([check_ops.assert_less(
                predictions, limit, message="`predictions` out of bound")], predictions)
        if weights is not None:
            weights = convert(weights, name="weights")
            predictions.get_shape().assert_is_compatible_with(weights.get_shape())
            weights = math_ops.cast(weights, dtype)
        shape = array_ops.stack([num_classes, num_classes])
        indices = array_ops.stack([labels, predictions], axis=1)
        values = array_ops.ones_like(predictions, dtype) if weights is None else weights
        return gen_ops.ScatterNd(indices=indices, updates=values,
                                 shape=math_ops.cast(shape, dtypes.int64))


@export("sort")
def sort(values, axis=-1, direction="ASCENDING", name=None):
    with ops.name_scope(name, "sort"):
        return _sorted(values, axis, direction, False)


@export("argsort")
def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    with ops.name_scope(name, "argsort"):
        return _sorted(values, axis, direction, True)


def _sorted(values, axis, direction, want_indices):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError("Argument `direction` should be one of ASCENDING, DESCENDING. Received: "
                         "direction=%s" % direction)
    axis = convert(axis, name="axis")
    static = tensor_util.constant_value(axis)
    if axis.get_shape().ndims not in (None, 0) or static is None:
        raise ValueError("Argument `axis` must be a constant scalar. Received: axis=%s." % axis)
    values = convert(values, name="values")
    if direction == "DESCENDING":
        return _descending(values, int(static), want_indices)
    # Ascending is descending of the mirrored values.
    dtype = values.dtype
    if dtype.is_unsigned:
        mirror = lambda x: dtype.max - x  # noqa: E731
    elif dtype.is_integer:
        mirror = lambda x: -x - 1  # noqa: E731
    else:
        mirror = lambda x: -x  # noqa: E731
    found = _descending(mirror(values), int(static), want_indices)
    return found if want_indices else mirror(found)


def _descending(values, axis, want_indices):
    k = array_ops.shape(values)[axis]
    rank = array_ops.rank(values)
    static_rank = values.get_shape().ndims
    turned = None
    top = values
    if axis != -1 and axis + 1 != static_rank:
        if axis < 0:
            axis += static_rank or rank
        if static_rank is not None:
            turned = constant_op.constant(np.r_[
                np.arange(axis), [static_rank - 1], np.arange(axis + 1, static_rank - 1), [axis]],
                name="transposition")
        else:
            turned = gen_ops.TensorScatterUpdate(
                math_ops.range(rank), [[axis], [rank - 1]], [rank - 1, axis])
        top = array_ops.transpose(values, turned)
    found, indices = gen_ops.TopKV2(top, k=k)
    result = indices if want_indices else found
    return result if turned is None else array_ops.transpose(result, turned)


@export("tensor_scatter_nd_update", "tensor_scatter_update")
def tensor_scatter_nd_update(tensor, indices, updates, name=None):
    return gen_ops.TensorScatterUpdate(tensor=tensor, indices=indices, updates=updates, name=name)


@export("roll", "manip.roll")
def roll(input, shift, axis, name=None):
    return gen_ops.Roll(input, shift, axis, name)


def _check_labels(terms, inputs):
    """Refuses a label of dimensions that differ in size."""
    sizes = {}
    for term, x in zip(terms, inputs):
        shape = x.get_shape() if hasattr(x, "get_shape") else None
        if shape is None or shape.ndims is None or "." in term or len(term) != shape.ndims:
            continue
        for label, size in zip(term, shape.as_list()):
            known = sizes.setdefault(label, size)
            if None not in (known, size) and known != size:
                raise ValueError("Dimensions must be equal, but are %d and %d for the label %s of einsum" % (known, size, label))
            if known is None:
                sizes[label] = size


@export("einsum", "linalg.einsum")
def einsum(equation, *inputs, **kwargs):
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError("Invalid keyword arguments for this function: %s" % ", ".join(kwargs))
    equation = equation.replace(" ", "")
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = inputs[0]
    if "->" not in equation:
        letters = "".join(c for c in equation if c.isalpha())
        equation += "->" + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms, output = equation.split("->")
    for label in output.replace("...", ""):
        if label not in terms:
            raise ValueError("Output subscripts contain the label %s not present in the input subscripts." % label)
    with ops.name_scope(name, "einsum", [equation, inputs]):
        inputs = list(inputs)
        _check_labels(terms.split(","), inputs)
        if len(inputs) <= 2:
            return gen_ops.Einsum(inputs, equation)
        terms = terms.split(",")
        # Contract from the left; what later terms or the output need is kept.
        while len(inputs) > 2:
            rest = "".join(terms[2:]) + output
            kept = "".join(dict.fromkeys(c for c in terms[0] + terms[1] if c in rest))
            joined = gen_ops.Einsum(inputs[:2], "%s,%s->%s" % (terms[0], terms[1], kept))
            inputs, terms = [joined] + inputs[2:], [kept] + terms[2:]
        return gen_ops.Einsum(inputs, "%s,%s->%s" % (terms[0], terms[1], output))
