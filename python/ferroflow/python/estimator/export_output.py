"""The outputs of an exported model and their signatures."""

from ferroflow.python.framework import dtypes, ops
from ferroflow.python.saved_model import signature_constants, signature_def_utils


class ExportOutput:
    def as_signature_def(self, receiver_tensors):
        raise NotImplementedError


class PredictOutput(ExportOutput):
    """Any tensors by name."""

    def __init__(self, outputs):
        self.outputs = outputs if isinstance(outputs, dict) else {"output": outputs}

    def as_signature_def(self, receiver_tensors):
        return signature_def_utils.predict_signature_def(receiver_tensors, self.outputs)


class RegressionOutput(ExportOutput):
    def __init__(self, value):
        if not isinstance(value, ops.Tensor) or not value.dtype.is_floating:
            raise ValueError("Regression output value must be a float32 Tensor; got {}".format(value))
        self.value = value

    def as_signature_def(self, receiver_tensors):
        examples = _only_examples(receiver_tensors, "Regression")
        return signature_def_utils.regression_signature_def(examples, self.value)


class ClassificationOutput(ExportOutput):
    def __init__(self, scores=None, classes=None):
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        if classes is not None and classes.dtype != dtypes.string:
            raise ValueError("Classification classes must be a string Tensor; got {}".format(classes))
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors):
        examples = _only_examples(receiver_tensors, "Classification")
        return signature_def_utils.classification_signature_def(examples, self.classes, self.scores)


def _only_examples(receiver_tensors, what):
    if len(receiver_tensors) != 1:
        raise ValueError("{} input must be a single string Tensor; got {}".format(what, receiver_tensors))
    (examples,) = receiver_tensors.values()
    if examples.dtype != dtypes.string:
        raise ValueError("{} input must be a single string Tensor; got {}".format(what, receiver_tensors))
    return examples


def with_default(export_outputs, predictions):
    """The outputs with one that servers use when none is named."""
    if export_outputs is None:
        export_outputs = {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError("export_outputs must be dict, given: {}".format(export_outputs))
    for v in export_outputs.values():
        if not isinstance(v, ExportOutput):
            raise TypeError("Values in export_outputs must be ExportOutput objects. Given: {}".format(export_outputs))
    default = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if default not in export_outputs:
        if len(export_outputs) > 1:
            raise ValueError("Multiple export_outputs were provided, but none of them is specified as the default. Do this by naming one of them with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY.")
        export_outputs = dict(export_outputs, **{default: next(iter(export_outputs.values()))})
    return export_outputs


def signatures_for(receiver_tensors, export_outputs):
    """The signatures that fit the inputs."""
    if not isinstance(receiver_tensors, dict):
        receiver_tensors = {"input": receiver_tensors}
    found, errors = {}, {}
    for key, output in export_outputs.items():
        try:
            found[key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = output.as_signature_def(receiver_tensors)
        except ValueError as e:
            errors[key] = str(e)
    # Prediction works for all inputs.
    for key, output in export_outputs.items():
        if isinstance(output, (ClassificationOutput, RegressionOutput)) and key not in found:
            outputs = {}
            if isinstance(output, RegressionOutput):
                outputs["outputs"] = output.value
            else:
                if output.classes is not None:
                    outputs["classes"] = output.classes
                if output.scores is not None:
                    outputs["scores"] = output.scores
            found[key] = signature_def_utils.predict_signature_def(receiver_tensors, outputs)
    return found, errors
