"""Which Keras there is, and which framework it runs on."""

import keras
import numpy as np

VERSION = int(keras.__version__.split(".")[0])


def backend():
    """`tensorflow`, `torch` or `jax`."""
    return "tensorflow" if VERSION < 3 else keras.backend.backend()


def to_numpy(value):
    """The values of a variable or tensor."""
    if VERSION >= 3:
        return np.asarray(keras.ops.convert_to_numpy(value))
    return np.asarray(value)


def optimizer_variables(optimizer):
    """The variables of an optimizer, of any version."""
    variables = getattr(optimizer, "variables", [])
    return list(variables() if callable(variables) else variables)
