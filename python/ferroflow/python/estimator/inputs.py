"""`tf.estimator.inputs`: input functions from arrays."""

import numpy as np

from ferroflow.python.data.ops import dataset_ops


# TensorFlow has a folder of this name. `_module_aliases.py` finds its modules.
__path__ = []


def numpy_input_fn(x, y=None, batch_size=128, num_epochs=1, shuffle=None, queue_capacity=1000, num_threads=1):
    """An input function for arrays: `x` is an array or a dict of arrays."""
    del num_threads
    if not isinstance(shuffle, bool):
        raise ValueError("shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for training); got {}".format(shuffle))

    def input_fn():
        if isinstance(x, dict):
            if not x:
                raise ValueError("x cannot be an empty dict")
            features = {k: np.asarray(v) for k, v in x.items()}
        elif isinstance(x, np.ndarray):
            features = x
        else:
            raise TypeError("x must be a dict or array; got {}".format(type(x).__name__))
        labels = y
        if isinstance(y, dict):
            labels = {k: np.asarray(v) for k, v in y.items()}
        sizes = {len(v) for v in (list(features.values()) if isinstance(features, dict) else [features])}
        if labels is not None:
            sizes |= {len(v) for v in (list(labels.values()) if isinstance(labels, dict) else [labels])}
        if len(sizes) != 1:
            raise ValueError("Length of tensors in x and y is mismatched: {}".format(sorted(sizes)))
        dataset = dataset_ops.Dataset.from_tensor_slices(features if labels is None else (features, labels))
        if shuffle:
            dataset = dataset.shuffle(max(queue_capacity, batch_size))
        dataset = dataset.repeat(num_epochs).batch(batch_size)
        return dataset_ops.make_one_shot_iterator(dataset).get_next()

    return input_fn


def pandas_input_fn(x, y=None, batch_size=128, num_epochs=1, shuffle=None, queue_capacity=1000, num_threads=1, target_column="target"):
    """An input function for a DataFrame: a feature for each column."""
    features = {str(name): x[name].values for name in x.columns}
    labels = None
    if y is not None:
        labels = {str(name): y[name].values for name in y.columns} if hasattr(y, "columns") else y.values
    del target_column
    return numpy_input_fn(features, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
