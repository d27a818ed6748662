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


def build_optimizer(optimizer, model):
    """Makes the variables of an optimizer, which otherwise makes them in its first step. Returns
    whether it has them."""
    if optimizer is None:
        return True
    if not hasattr(optimizer, "build"):
        # An older optimizer has its variables after the first batch.
        return bool(optimizer_variables(optimizer))
    if not getattr(optimizer, "built", getattr(optimizer, "_built", False)):
        try:
            optimizer.build(model.trainable_variables)
        except (ValueError, TypeError):
            return False
    return True


def read_state(model):
    """On JAX, fit() keeps values outside of the variables: copies them into the variables."""
    if backend() == "jax" and getattr(model, "_jax_state", None) is not None:
        model.jax_state_sync()
