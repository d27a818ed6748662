"""Modules that TensorFlow has and whose contents this package defines elsewhere.

Programs import TensorFlow's inner modules (`from ferroflow.python.ops.rnn_cell_impl import _linear`,
`from ferroflow.contrib.layers.python.layers import batch_norm`). They find the module here that has
these names.
"""

import importlib
import importlib.machinery
import sys

_V1 = "ferroflow.compat.v1"

# Folder of `ferroflow.python`: module of TensorFlow=our module, which is one of `ferroflow.python`
# unless it begins with `tf`.
_PYTHON = {
    "estimator.canned": "head=estimator.head dnn=estimator.canned linear=estimator.canned baseline=estimator.canned "
                        "dnn_linear_combined=estimator.canned",
    "estimator.export": "export=estimator.export export_output=estimator.export_output",
    "estimator.inputs": "inputs=estimator.inputs numpy_io=estimator.inputs pandas_io=estimator.inputs",
    "feature_column": "feature_column_v2=feature_column.feature_column feature_column_lib=tf.feature_column",
    "framework": "graph_util_impl=framework.graph_util tensor_conversion_registry=framework.ops "
                 "test_util=platform.test",
    "keras": "models=tf.keras.models metrics=tf.keras.metrics",
    "keras.engine": "base_layer=tf.keras.layers input_layer=tf.keras.layers training=tf.keras.models "
                    "sequential=tf.keras.models",
    "layers": "layers=tf.layers",
    "ops": "nn=tf.nn nn_impl=tf.nn candidate_sampling_ops=tf.nn rnn_cell_impl=ops.rnn_cell functional_ops=tf "
           "standard_ops=tf metrics_impl=ops.metrics init_ops_v2=ops.init_ops bitwise_ops=tf.bitwise "
           "summary_ops=tf.summary summary_op_util=summary.summary_op_util confusion_matrix=tf.math histogram_ops=tf "
           "ref_variable=ops.variables variable_v1=ops.variables image_ops_impl=ops.image_ops "
           "gradients_util=ops.gradients_impl sets=tf.sets spectral_ops=tf.signal",
    "ops.linalg": "linalg=tf.linalg linalg_impl=tf.linalg",
    "ops.losses": "losses=ops.losses losses_impl=ops.losses util=ops.losses",
    "platform": "googletest=platform.test",
    "saved_model": "builder=saved_model.builder_impl loader=saved_model.loader_impl utils=tf.saved_model.utils "
                   "utils_impl=tf.saved_model.utils signature_def_utils_impl=saved_model.signature_def_utils "
                   "main_op_impl=saved_model.main_op saved_model=tf.saved_model",
    "training": "adam=training.optimizers gradient_descent=training.optimizers momentum=training.optimizers "
                "rmsprop=training.optimizers adagrad=training.optimizers adagrad_da=training.optimizers "
                "adadelta=training.optimizers ftrl=training.optimizers proximal_adagrad=training.optimizers "
                "proximal_gradient_descent=training.optimizers training_ops=ops.gen_ops training=tf.train "
                "queue_runner=training.queue_runner_impl summary_io=tf.train",
}
_OTHER = {
    "ferroflow.tensorboard": _V1 + ".contrib.tensorboard",
    "ferroflow.tensorboard.plugins": _V1 + ".contrib.tensorboard.plugins",
    "ferroflow.tensorboard.plugins.projector": _V1 + ".contrib.tensorboard.plugins.projector",
}


def _python():
    found = {}
    for folder, entries in _PYTHON.items():
        for entry in entries.split():
            name, _, home = entry.partition("=")
            first, _, rest = home.partition(".")
            target = f"{_V1}.{rest}".rstrip(".") if first == "tf" else f"ferroflow.python.{home}"
            found[f"ferroflow.python.{folder}.{name}"] = target
    return found


_places = {}


def place(name):
    """The module that stands for `name`, or None."""
    if not _places:
        _places.update(_OTHER, **_python())
    home = _places.get(name)
    if home is not None:
        return home
    if name.startswith("ferroflow.python.ops.gen_"):
        return "ferroflow.python.ops.gen_ops"
    return _contrib(name)


def _contrib(name):
    """`tf.contrib.layers.python.layers.initializers` is `tf.contrib.layers`, and so on."""
    for root in ("ferroflow.contrib.", _V1 + ".contrib."):
        if not name.startswith(root):
            continue
        library, _, rest = name[len(root):].partition(".")
        if library == "slim" and rest.startswith("python.slim.nets"):
            return f"{_V1}.contrib.slim.nets{rest[len('python.slim.nets'):]}"
        if library == "learn" or "nets" in rest.split("."):
            return None
        if rest.split(".")[0] == "python" or rest == f"{library}_ops":
            return f"{_V1}.contrib.{library}"
    return None


class Finder:
    """Finds these modules. It comes after the finder of files, so a module of the package wins."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("ferroflow.") or place(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name, home = module.__name__, place(module.__name__)
        try:
            sys.modules[name] = importlib.import_module(home)
        except ModuleNotFoundError:
            parent, _, attribute = home.rpartition(".")
            found = getattr(importlib.import_module(parent), attribute, None)
            if found is None:
                raise
            sys.modules[name] = found
