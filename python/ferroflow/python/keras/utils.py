"""`tf.keras.utils`."""

import numpy as np

from ferroflow.python.util.api import export


@export("keras.utils.to_categorical")
def to_categorical(y, num_classes=None, dtype="float32"):
    """Rows with a one at the class."""
    y = np.array(y, dtype="int")
    shape = y.shape[:-1] if y.ndim > 1 and y.shape[-1] == 1 else y.shape
    flat = y.ravel()
    count = num_classes or int(np.max(flat)) + 1
    rows = np.zeros((flat.shape[0], count), dtype=dtype)
    rows[np.arange(flat.shape[0]), flat] = 1
    return rows.reshape(shape + (count,))


@export("keras.utils.normalize")
def normalize(x, axis=-1, order=2):
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)
