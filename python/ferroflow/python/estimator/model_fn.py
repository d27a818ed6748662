"""What a model function returns."""

import collections

from ferroflow.python.estimator import export_output as export_lib
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.saved_model import tag_constants
from ferroflow.python.training import scaffold as scaffold_lib
from ferroflow.python.training import session_run_hook


class ModeKeys:
    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


LOSS_METRIC_KEY = "loss"
AVERAGE_LOSS_METRIC_KEY = "average_loss"
EXPORT_TAG_MAP = {ModeKeys.PREDICT: [tag_constants.SERVING], ModeKeys.TRAIN: [tag_constants.TRAINING], ModeKeys.EVAL: [tag_constants.EVAL]}

_FIELDS = [
    "mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs", "training_chief_hooks", "training_hooks",
    "scaffold", "evaluation_hooks", "prediction_hooks",
]


class EstimatorSpec(collections.namedtuple("EstimatorSpec", _FIELDS)):
    """The operations of a model for one mode."""

    def __new__(
        cls, mode, predictions=None, loss=None, train_op=None, eval_metric_ops=None, export_outputs=None, training_chief_hooks=None, training_hooks=None, scaffold=None, evaluation_hooks=None, prediction_hooks=None
    ):
        if mode == ModeKeys.TRAIN and train_op is None:
            raise ValueError("Missing train_op.")
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            if loss is None:
                raise ValueError("Missing loss.")
            loss = _scalar_loss(loss)
        elif loss is not None:
            loss = _scalar_loss(loss)
        if predictions is None:
            if mode == ModeKeys.PREDICT:
                raise ValueError("Missing predictions.")
            predictions = {}
        elif isinstance(predictions, dict):
            predictions = {k: _check_tensor(v, "predictions[{}]".format(k)) for k, v in predictions.items()}
        else:
            predictions = _check_tensor(predictions, "predictions")
        metrics = dict(eval_metric_ops or {})
        for key, value in metrics.items():
            if not hasattr(value, "update_state") and (not isinstance(value, tuple) or len(value) != 2):
                raise TypeError("Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {} for key: {}".format(value, key))
        if mode == ModeKeys.PREDICT:
            export_outputs = export_lib.with_default(export_outputs, predictions)
        hooks = []
        for given in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks):
            given = tuple(given or [])
            for hook in given:
                if not isinstance(hook, session_run_hook.SessionRunHook):
                    raise TypeError("All hooks must be SessionRunHook instances, given: {}".format(hook))
            hooks.append(given)
        scaffold = scaffold or scaffold_lib.Scaffold()
        if not isinstance(scaffold, scaffold_lib.Scaffold):
            raise TypeError("scaffold must be tf.train.Scaffold. Given: {}".format(scaffold))
        return super().__new__(
            cls, mode, predictions, loss, train_op, metrics, export_outputs, hooks[0], hooks[1], scaffold, hooks[2], hooks[3]
        )


def _scalar_loss(loss):
    loss = _check_tensor(loss, "loss")
    shape = loss.get_shape()
    if shape.num_elements() not in (None, 1):
        raise ValueError("Loss must be scalar, given: {}".format(loss))
    return loss if shape.is_compatible_with([]) else array_ops.reshape(loss, [])


def _check_tensor(value, name):
    if not isinstance(value, (ops.Tensor,)) and not hasattr(value, "get_shape"):
        raise TypeError("{} must be Tensor, given: {}".format(name, value))
    return value


