"""`tf.keras.datasets` from local files: nothing is downloaded."""

import gzip
import json
import os
import pickle

import numpy as np

from ferroflow.python.util.api import export

_FOLDER = os.path.join(os.path.expanduser(os.environ.get("KERAS_HOME", os.path.join("~", ".keras"))), "datasets")


def _file(path, origin):
    """A given path, or the file of this name among those that Keras has downloaded."""
    for candidate in (os.path.expanduser(path), os.path.join(_FOLDER, path)):
        if os.path.exists(candidate):
            return candidate
    raise FileNotFoundError(
        "%s is not here, and Ferroflow downloads no data. Get it from %s on a machine with a network, and put it at %s, or give its "
        "path: load_data(path='...')" % (path, origin, os.path.join(_FOLDER, path)))


_HOME = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


@export("keras.datasets.mnist.load_data")
def mnist(path="mnist.npz"):
    """Digits: ((60000 images of 28x28, labels), (10000 images, labels))."""
    with np.load(_file(path, _HOME + "mnist.npz"), allow_pickle=False) as f:
        return (f["x_train"], f["y_train"]), (f["x_test"], f["y_test"])


@export("keras.datasets.fashion_mnist.load_data")
def fashion_mnist(path="fashion-mnist"):
    """Clothes, in the form of `mnist`; `path` is the folder with the four files."""
    folder = _file(path, _HOME)

    def read(name, header):
        with gzip.open(_file(os.path.join(folder, name), _HOME + name)) as f:
            return np.frombuffer(f.read(), np.uint8, offset=header)

    parts = []
    for prefix in ("train", "t10k"):
        labels = read(prefix + "-labels-idx1-ubyte.gz", 8)
        parts.append((read(prefix + "-images-idx3-ubyte.gz", 16).reshape(len(labels), 28, 28), labels))
    return tuple(parts)


class _Arrays(pickle.Unpickler):
    """Reads pickles of arrays, and nothing else that a pickle could run."""

    def find_class(self, module, name):
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError("the file has an object of %s.%s, which no data set has" % (module, name))


def _cifar(folder, name, label):
    with open(os.path.join(folder, name), "rb") as f:
        found = {k.decode() if isinstance(k, bytes) else k: v for k, v in _Arrays(f, encoding="bytes").load().items()}
    return np.asarray(found["data"]).reshape(-1, 3, 32, 32), found[label]


def _images_last(x, y):
    return x.transpose(0, 2, 3, 1), np.reshape(y, (-1, 1))


@export("keras.datasets.cifar10.load_data")
def cifar10(path="cifar-10-batches-py"):
    """Images of 32x32 in 10 classes; `path` is the unpacked folder."""
    folder = _file(path, "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz")
    parts = [_cifar(folder, "data_batch_%d" % (i + 1), "labels") for i in range(5)]
    x, y = np.concatenate([p[0] for p in parts]), np.concatenate([np.asarray(p[1], np.uint8) for p in parts])
    x_test, y_test = _cifar(folder, "test_batch", "labels")
    return _images_last(x, y), _images_last(x_test, np.asarray(y_test).astype(np.uint8))


@export("keras.datasets.cifar100.load_data")
def cifar100(label_mode="fine", path="cifar-100-python"):
    """Images of 32x32 in 100 fine or 20 coarse classes; `path` is the unpacked folder."""
    if label_mode not in ("fine", "coarse"):
        raise ValueError('`label_mode` must be one of `"fine"`, `"coarse"`. Received: label_mode=%s.' % label_mode)
    folder = _file(path, "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz")
    return tuple(_images_last(*_cifar(folder, name, label_mode + "_labels")) for name in ("train", "test"))


@export("keras.datasets.boston_housing.load_data")
def boston_housing(path="boston_housing.npz", test_split=0.2, seed=113):
    """Prices of houses, with 13 features each."""
    if not 0 <= test_split < 1:
        raise AssertionError("test_split must be at least 0 and below 1")
    with np.load(_file(path, _HOME + "boston_housing.npz"), allow_pickle=False) as f:
        x, y = f["x"], f["y"]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y, cut = x[order], y[order], int(len(x) * (1 - test_split))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


@export("keras.datasets.imdb.load_data")
def imdb(path="imdb.npz", num_words=None, skip_top=0, maxlen=None, seed=113, start_char=1, oov_char=2, index_from=3):
    """Reviews of films as lists of word numbers. Such files hold pickled lists: load only files that you trust."""
    rng = np.random.RandomState(seed)
    with np.load(_file(path, _HOME + "imdb.npz"), allow_pickle=True) as f:
        parts = [(f["x_" + part], f["y_" + part]) for part in ("train", "test")]
    shuffled = []
    for x, y in parts:
        order = np.arange(len(x))
        rng.shuffle(order)
        shuffled.append((x[order], y[order]))
    first = [] if start_char is None else [start_char]
    words = [first + [w + (index_from or 0) for w in row] for x, _ in shuffled for row in x]
    labels, cut = np.concatenate([y for _, y in shuffled]), len(shuffled[0][0])
    if maxlen:
        kept = [i for i, row in enumerate(words) if len(row) < maxlen]
        cut = sum(i < cut for i in kept)
        words, labels = [words[i] for i in kept], labels[kept]
        if not words:
            raise ValueError("After filtering for sequences shorter than maxlen=%d, no sequence was kept. Increase maxlen." % maxlen)
    top = num_words or max(max(row) for row in words) + 1
    if oov_char is None:
        words = [[w for w in row if skip_top <= w < top] for row in words]
    else:
        words = [[w if skip_top <= w < top else oov_char for w in row] for row in words]
    rows = np.empty(len(words), object)
    rows[:] = words
    return (rows[:cut], labels[:cut]), (rows[cut:], labels[cut:])


@export("keras.datasets.imdb.get_word_index")
def imdb_word_index(path="imdb_word_index.json"):
    """Numbers of words."""
    with open(_file(path, _HOME + "imdb_word_index.json"), encoding="utf-8") as f:
        return json.load(f)
