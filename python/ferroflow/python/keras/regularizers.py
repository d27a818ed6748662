"""`tf.keras.regularizers` and `tf.keras.constraints`."""

from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


@export("keras.regularizers.Regularizer")
class Regularizer:
    def __call__(self, x):
        return 0.0


@export("keras.regularizers.L1L2")
class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x^2)"""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x):
        total = 0.0
        if self.l1:
            total += self.l1 * math_ops.reduce_sum(gen_ops.Abs(x))
        if self.l2:
            total += self.l2 * math_ops.reduce_sum(gen_ops.Square(x))
        return total

    def get_config(self):
        return {"l1": self.l1, "l2": self.l2}


@export("keras.regularizers.L1", "keras.regularizers.l1")
class L1(L1L2):
    def __init__(self, l1=0.01, l=None):  # pylint: disable=redefined-outer-name
        super().__init__(l1=l1 if l is None else l)

    def get_config(self):
        return {"l1": self.l1}


@export("keras.regularizers.L2", "keras.regularizers.l2")
class L2(L1L2):
    def __init__(self, l2=0.01, l=None):  # pylint: disable=redefined-outer-name
        super().__init__(l2=l2 if l is None else l)

    def get_config(self):
        return {"l2": self.l2}


l1, l2 = L1, L2


@export("keras.regularizers.l1_l2")
def l1_l2(l1=0.01, l2=0.01):  # pylint: disable=redefined-outer-name
    return L1L2(l1=l1, l2=l2)


def _by_name(kinds, what):
    def get(identifier):
        if isinstance(identifier, str):
            found = kinds.get(identifier)
            if found is None:
                raise ValueError("Unknown %s: '%s'." % (what, identifier))
            return found()
        if isinstance(identifier, dict):
            found = kinds.get(identifier["class_name"])
            if found is None:
                raise ValueError("Unknown %s: '%s'." % (what, identifier["class_name"]))
            return found(**identifier["config"])
        if identifier is None or callable(identifier):
            return identifier
        raise ValueError("Could not interpret %s identifier: %s" % (what, identifier))
    return get


get = export("keras.regularizers.get")(_by_name({"l1": L1, "l2": L2, "L1": L1, "L2": L2, "l1_l2": l1_l2, "L1L2": L1L2}, "regularizer"))


def _norms(w, axis):
    return gen_ops.Sqrt(math_ops.reduce_sum(gen_ops.Square(w), axis=axis, keepdims=True))


@export("keras.constraints.Constraint")
class Constraint:
    def __call__(self, w):
        return w


@export("keras.constraints.NonNeg", "keras.constraints.non_neg")
class NonNeg(Constraint):
    def __call__(self, w):
        return w * math_ops.cast(gen_ops.GreaterEqual(w, math_ops.cast(0.0, w.dtype)), w.dtype)


@export("keras.constraints.MaxNorm", "keras.constraints.max_norm")
class MaxNorm(Constraint):
    def __init__(self, max_value=2, axis=0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w):
        norms = _norms(w, self.axis)
        return w * (clip_ops.clip_by_value(norms, 0.0, self.max_value) / (1e-7 + norms))


@export("keras.constraints.UnitNorm", "keras.constraints.unit_norm")
class UnitNorm(Constraint):
    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        return w / (1e-7 + _norms(w, self.axis))


@export("keras.constraints.MinMaxNorm", "keras.constraints.min_max_norm")
class MinMaxNorm(Constraint):
    def __init__(self, min_value=0.0, max_value=1.0, rate=1.0, axis=0):
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w):
        norms = _norms(w, self.axis)
        wanted = self.rate * clip_ops.clip_by_value(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (1e-7 + norms))


get_constraint = export("keras.constraints.get")(_by_name(
    {"NonNeg": NonNeg, "non_neg": NonNeg, "MaxNorm": MaxNorm, "max_norm": MaxNorm, "UnitNorm": UnitNorm, "unit_norm": UnitNorm,
     "MinMaxNorm": MinMaxNorm, "min_max_norm": MinMaxNorm},
    "constraint"))
