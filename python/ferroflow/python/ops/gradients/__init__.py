"""Gradient functions of ops, one file for each family.  `load()` registers them all."""

import importlib

_FAMILIES = ("elementwise", "broadcasting", "reductions", "segments", "products", "array_grads",
             "gather_grads", "nn_grads", "conv_grads", "variable_grads", "control_flow_grads",
             "data_flow_grads", "linalg_grads", "sparse_grads", "image_grads",
             "fft_grads", "functional_grads", "list_grads", "rnn_block_grads", "no_grads",
             "special_grads", "quantized_grads")


def load():
    """Registers the gradients of all ops."""
    for family in _FAMILIES:
        importlib.import_module(__name__ + "." + family)
