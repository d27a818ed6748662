"""Classes of `tf.keras.losses`: a loss with a reduction and with weights of examples."""

from ferroflow.python.framework import ops
from ferroflow.python.keras import losses
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export

_REDUCTIONS = ("auto", "none", "sum", "sum_over_batch_size")


@export("keras.losses.Loss")
class Loss:
    """A loss of targets and predictions; subclasses have `call`, which gives a number for each example."""

    def __init__(self, reduction="auto", name=None):
        if reduction not in _REDUCTIONS:
            raise ValueError('Invalid Reduction Key: %s. Expected keys are "(\'auto\', \'none\', \'sum\', '
                             '\'sum_over_batch_size\')"' % reduction)
        self.reduction, self.name = reduction, name

    def __call__(self, y_true, y_pred, sample_weight=None):
        with ops.name_scope(self.name or type(self).__name__, values=[y_true, y_pred, sample_weight]):
            each = self.call(y_true, y_pred)
            if sample_weight is not None:
                weight = math_ops.cast(sample_weight, each.dtype)
                extra = (each.get_shape().ndims or 0) - (weight.get_shape().ndims or 0)
                if extra < 0 and weight.get_shape().as_list()[-1] == 1:
                    weight = array_ops.squeeze(weight, [-1])
                for _ in range(max(extra, 0) if weight.get_shape().ndims else 0):
                    weight = array_ops.expand_dims(weight, -1)
                each = each * weight
            if self.reduction == "none":
                return each
            total = math_ops.reduce_sum(each)
            if self.reduction == "sum":
                return total
            return math_ops.div_no_nan(total, math_ops.cast(array_ops.size(each), total.dtype))

    def call(self, y_true, y_pred):
        raise NotImplementedError("Must be implemented in subclasses.")

    def get_config(self):
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class _Function(Loss):
    """A loss that a function makes; `_OPTIONS` are further arguments of it."""

    _FUNCTION = None
    _OPTIONS = {}

    def __init__(self, *args, reduction="auto", name=None, **kwargs):
        options = dict(self._OPTIONS)
        names = [*options, "reduction", "name"]
        if len(args) > len(names):
            raise TypeError("%s takes at most %d arguments" % (type(self).__name__, len(names)))
        given = {**dict(zip(names, args)), **kwargs}
        reduction, name = given.pop("reduction", reduction), given.pop("name", name)
        unknown = set(given) - set(options)
        if unknown:
            raise TypeError("%s got an unexpected keyword argument %r" % (type(self).__name__, sorted(unknown)[0]))
        super().__init__(reduction, name or type(self)._FUNCTION.__name__)
        self._options = {**options, **given}

    def call(self, y_true, y_pred):
        return type(self)._FUNCTION(y_true, y_pred, **self._options)

    def get_config(self):
        return {**super().get_config(), "fn": type(self)._FUNCTION.__name__, **self._options}

    @classmethod
    def from_config(cls, config):
        return cls(**{k: v for k, v in config.items() if k != "fn"})


def _made(name, function, doc, **options):
    return type(name, (_Function,), {"_FUNCTION": staticmethod(function), "_OPTIONS": options, "__doc__": doc})


_ERRORS = "The mean over the last axis, as the function of the same name."
MeanSquaredError = export("keras.losses.MeanSquaredError")(_made("MeanSquaredError", losses.mean_squared_error, _ERRORS))
MeanAbsoluteError = export("keras.losses.MeanAbsoluteError")(_made("MeanAbsoluteError", losses.mean_absolute_error, _ERRORS))
MeanAbsolutePercentageError = export("keras.losses.MeanAbsolutePercentageError")(
    _made("MeanAbsolutePercentageError", losses.mean_absolute_percentage_error, _ERRORS))
MeanSquaredLogarithmicError = export("keras.losses.MeanSquaredLogarithmicError")(
    _made("MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error, _ERRORS))
Hinge = export("keras.losses.Hinge")(_made("Hinge", losses.hinge, _ERRORS))
SquaredHinge = export("keras.losses.SquaredHinge")(_made("SquaredHinge", losses.squared_hinge, _ERRORS))
CategoricalHinge = export("keras.losses.CategoricalHinge")(_made("CategoricalHinge", losses.categorical_hinge, _ERRORS))
Poisson = export("keras.losses.Poisson")(_made("Poisson", losses.poisson, _ERRORS))
LogCosh = export("keras.losses.LogCosh")(_made("LogCosh", losses.logcosh, _ERRORS))
KLDivergence = export("keras.losses.KLDivergence")(_made("KLDivergence", losses.kullback_leibler_divergence, _ERRORS))
Huber = export("keras.losses.Huber")(_made("Huber", losses.huber, "Squared up to `delta`, linear beyond it.", delta=1.0))
CosineSimilarity = export("keras.losses.CosineSimilarity")(
    _made("CosineSimilarity", losses.cosine_similarity, "The negative cosine of the angle.", axis=-1))
_LOGITS = "Cross entropy of probabilities, or of logits."
BinaryCrossentropy = export("keras.losses.BinaryCrossentropy")(
    _made("BinaryCrossentropy", losses.binary_crossentropy, _LOGITS, from_logits=False, label_smoothing=0.0, axis=-1))
CategoricalCrossentropy = export("keras.losses.CategoricalCrossentropy")(
    _made("CategoricalCrossentropy", losses.categorical_crossentropy, _LOGITS, from_logits=False, label_smoothing=0.0, axis=-1))
SparseCategoricalCrossentropy = export("keras.losses.SparseCategoricalCrossentropy")(
    _made("SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy, _LOGITS, from_logits=False))


@export("keras.losses.serialize")
def serialize(loss):
    """The name of a function, or the class and configuration of an object."""
    return {"class_name": type(loss).__name__, "config": loss.get_config()} if isinstance(loss, Loss) else loss.__name__
