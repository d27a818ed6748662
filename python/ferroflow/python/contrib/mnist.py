"""`tensorflow.examples.tutorials.mnist.input_data`: the handwritten digits of MNIST in numpy."""

import collections
import gzip
import os
import urllib.request

import numpy as np

from ferroflow.python.framework import dtypes

SOURCE_URL = DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])

_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def maybe_download(filename, work_directory, source_url):
    """The path of a file, which is downloaded if it is not there."""
    os.makedirs(work_directory, exist_ok=True)
    path = os.path.join(work_directory, filename)
    plain = path[:-3] if path.endswith(".gz") else path
    if os.path.exists(path) or not os.path.exists(plain):
        if not os.path.exists(path):
            part = path + ".part"
            try:
                urllib.request.urlretrieve(source_url, part)
            except OSError as e:
                raise OSError(f"{path} is not there and {source_url} cannot be downloaded ({e}); put the file there") from None
            os.replace(part, path)
        return path
    return plain


def _read(file, magic, dims):
    """An IDX file: a magic number, sizes, and bytes."""
    name = file if isinstance(file, str) else file.name
    if isinstance(file, str):
        with (gzip.open(file) if file.endswith(".gz") else open(file, "rb")) as f:
            data = f.read()
    else:
        data = file.read()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    header = np.frombuffer(data[: 4 * (dims + 1)], ">u4")
    if len(header) != dims + 1 or header[0] != magic:
        raise ValueError(f"{name} is no MNIST file: its magic number is not {magic}")
    shape = [int(n) for n in header[1:]]
    return np.frombuffer(data, np.uint8, offset=4 * (dims + 1)).reshape(shape)


def extract_images(f):
    """Images as bytes of [number, rows, columns, 1]."""
    return _read(f, 2051, 3)[..., None]


def dense_to_one_hot(labels_dense, num_classes):
    return np.eye(num_classes)[labels_dense]


def extract_labels(f, one_hot=False, num_classes=10):
    labels = _read(f, 2049, 1)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


class DataSet:
    """Images and labels that are given out in batches, in a new order in each epoch."""

    def __init__(self, images, labels, fake_data=False, one_hot=False, dtype=dtypes.float32, reshape=True, seed=None):
        self._random = np.random.RandomState(seed) if seed is not None else np.random
        self.one_hot, self._fake = one_hot, fake_data
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError("Invalid image dtype %r, expected uint8 or float32" % dtype)
        if fake_data:
            self._num_examples = 10000
        else:
            assert images.shape[0] == labels.shape[0], "images.shape: %s labels.shape: %s" % (images.shape, labels.shape)
            self._num_examples = images.shape[0]
            if reshape:
                images = images.reshape(images.shape[0], -1)
            if dtype == dtypes.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images, self._labels = images, labels
        self._epochs_completed = self._index_in_epoch = 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: self._num_examples)
    epochs_completed = property(lambda self: self._epochs_completed)

    def _mix(self):
        order = self._random.permutation(self._num_examples)
        self._images, self._labels = self._images[order], self._labels[order]

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next images and labels. A batch may reach into the next epoch."""
        if fake_data or self._fake:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._mix()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch = start + batch_size
            return self._images[start:start + batch_size], self._labels[start:start + batch_size]
        self._epochs_completed += 1
        images, labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._mix()
        self._index_in_epoch = batch_size - (self._num_examples - start)
        end = self._index_in_epoch
        return np.concatenate((images, self._images[:end])), np.concatenate((labels, self._labels[:end]))


def read_data_sets(train_dir, fake_data=False, one_hot=False, dtype=dtypes.float32, reshape=True, validation_size=5000, seed=None,
                   source_url=DEFAULT_SOURCE_URL):
    """MNIST for training, validation and test. Files that are not in `train_dir` are downloaded."""
    options = dict(dtype=dtype, reshape=reshape, seed=seed)
    if fake_data:
        fake = [DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed) for _ in range(3)]
        return Datasets(*fake)
    source_url = source_url or DEFAULT_SOURCE_URL
    paths = [maybe_download(name, train_dir, source_url + name) for name in _FILES]
    images, labels = extract_images(paths[0]), extract_labels(paths[1], one_hot=one_hot)
    test_images, test_labels = extract_images(paths[2]), extract_labels(paths[3], one_hot=one_hot)
    if not 0 <= validation_size <= len(images):
        raise ValueError("Validation size should be between 0 and {}. Received: {}.".format(len(images), validation_size))
    cut = validation_size
    return Datasets(DataSet(images[cut:], labels[cut:], **options), DataSet(images[:cut], labels[:cut], **options),
                    DataSet(test_images, test_labels, **options))


def load_mnist(train_dir="MNIST-data"):
    return read_data_sets(train_dir)
