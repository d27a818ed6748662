"""Runs a program for TensorFlow 1.x with an installed TensorFlow 2.x.

    python launch.py PROGRAM [ARGUMENT]...

`import tensorflow` gives the program `tensorflow.compat.v1` with graphs, the names of `tf.contrib`
that the programs of the gallery use, and a small MNIST that is made up. Seeds are fixed, so that two
runs compute the same. Plots go nowhere.
"""

import os
import random
import runpy
import sys
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402

SEED = 1


def _module(name, **names):
    made = types.ModuleType(name)
    made.__path__ = []
    made.__dict__.update(names)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, made)
    return made


# Data.

class DataSet:
    """A part of the data, as the MNIST tutorial's class of this name."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.num_examples, self._at = len(images), 0

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        at = np.arange(self._at, self._at + batch_size) % self.num_examples
        self._at = (self._at + batch_size) % self.num_examples
        return self.images[at], self.labels[at]


def digits(count, seed):
    """Images of ten classes: a pattern for each, moved and with noise."""
    patterns = np.random.RandomState(0).rand(10, 7, 7) > 0.6
    source = np.random.RandomState(seed)
    labels = source.randint(0, 10, count)
    images = np.zeros((count, 28, 28), np.float32)
    for image, label, (down, right) in zip(images, labels, source.randint(0, 8, (count, 2))):
        image[down:down + 21, right:right + 21] = np.kron(patterns[label], np.ones((3, 3)))
    images = np.clip(images * 0.8 + source.rand(count, 28, 28) * 0.2, 0, 1)
    return images.reshape(count, 784).astype(np.float32), labels.astype(np.uint8)


def read_data_sets(train_dir=None, fake_data=False, one_hot=False, dtype=None, reshape=True,
                   validation_size=500, seed=None, **_):
    def part(count, seed):
        images, labels = digits(count, seed)
        if not reshape:
            images = images.reshape(-1, 28, 28, 1)
        return DataSet(images, np.eye(10)[labels] if one_hot else labels)
    return types.SimpleNamespace(train=part(5500, 1), validation=part(validation_size, 2),
                                 test=part(1000, 3))


# Names of TensorFlow 1.x.

class VocabularyProcessor:
    """Texts as rows of word numbers."""

    def __init__(self, max_document_length, **_):
        self.length, self.vocabulary_ = max_document_length, {"<UNK>": 0}

    def fit_transform(self, documents):
        rows = []
        for document in documents:
            words = document.split()[:self.length]
            row = [self.vocabulary_.setdefault(w, len(self.vocabulary_)) for w in words]
            rows.append(row + [0] * (self.length - len(row)))
        return iter(np.array(rows, np.int64))

    def save(self, path):
        with open(path, "w") as file:
            file.write("\n".join(self.vocabulary_))


def _contrib(tf):
    def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
        state, outputs, before = initial_state, [], None
        with tf.variable_scope(scope or "rnn_decoder"):
            for i, x in enumerate(decoder_inputs):
                if loop_function is not None and before is not None:
                    with tf.variable_scope("loop_function", reuse=True):
                        x = loop_function(before, i)
                if i > 0:
                    tf.get_variable_scope().reuse_variables()
                before, state = cell(x, state)
                outputs.append(before)
        return outputs, state

    def sequence_loss_by_example(logits, targets, weights, **_):
        losses = [w * tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=x)
                  for x, t, w in zip(logits, targets, weights)]
        return tf.add_n(losses) / (tf.add_n(weights) + 1e-12)

    def sequence_loss(logits, targets, weights, **_):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        return tf.reduce_sum(losses * weights) / (tf.reduce_sum(weights) + 1e-12)

    def fully_connected(inputs, num_outputs, activation_fn=tf.nn.relu, **_):
        return tf.layers.dense(inputs, num_outputs, activation_fn,
                               kernel_initializer=tf.glorot_uniform_initializer())

    contrib = _module("tensorflow.contrib")
    contrib.rnn = _module("tensorflow.contrib.rnn", **{
        name: getattr(tf.nn.rnn_cell, name) for name in (
            "BasicLSTMCell", "BasicRNNCell", "DropoutWrapper", "GRUCell", "LSTMCell",
            "LSTMStateTuple", "MultiRNNCell", "RNNCell")},
        static_rnn=tf.nn.static_rnn,
        static_bidirectional_rnn=tf.nn.static_bidirectional_rnn, NASCell=tf.nn.rnn_cell.LSTMCell)
    contrib.layers = _module(
        "tensorflow.contrib.layers", flatten=tf.layers.flatten, fully_connected=fully_connected,
        xavier_initializer=lambda *a, **k: tf.glorot_uniform_initializer(),
        variance_scaling_initializer=lambda *a, **k: tf.variance_scaling_initializer(),
        batch_norm=lambda x, **k: tf.layers.batch_normalization(x))
    contrib.legacy_seq2seq = _module(
        "tensorflow.contrib.legacy_seq2seq", rnn_decoder=rnn_decoder,
        sequence_loss_by_example=sequence_loss_by_example)
    contrib.seq2seq = _module("tensorflow.contrib.seq2seq", sequence_loss=sequence_loss)
    contrib.learn = _module("tensorflow.contrib.learn")
    contrib.learn.preprocessing = _module("tensorflow.contrib.learn.preprocessing",
                                          VocabularyProcessor=VocabularyProcessor)
    return contrib


def _tensorflow_1():
    import tensorflow
    # Loaded before the name `tensorflow` changes.
    tensorflow.keras.layers, tensorflow.estimator.Estimator
    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.set_random_seed(SEED)
    if "examples" not in tf.__dict__:
        tf.contrib = _contrib(tf)
        mnist = "tensorflow.examples.tutorials.mnist"
        for name in ("tensorflow.examples", "tensorflow.examples.tutorials", mnist):
            _module(name)
        _module(f"{mnist}.input_data", read_data_sets=read_data_sets)
        tf.examples = sys.modules["tensorflow.examples"]
    # Graphs that programs make themselves have the seed, too.
    make = tf.Graph.__init__

    def seeded(graph, *args, **kwargs):
        make(graph, *args, **kwargs)
        graph.seed = SEED
    tf.Graph.__init__ = seeded
    sys.modules["tensorflow"] = tf


class _Nothing(types.ModuleType):
    """A module whose functions do nothing: plots."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing

    __path__ = []


class _Drawn:
    def __getattr__(self, name):
        return _nothing

    def __iter__(self):
        return iter((_Drawn(), _Drawn()))

    def __getitem__(self, _):
        return _Drawn()


def _nothing(*args, **kwargs):
    return _Drawn()


def main():
    program = sys.argv[1]
    for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.gridspec"):
        sys.modules[name] = _Nothing(name)
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]
    random.seed(SEED)
    np.random.seed(SEED)
    _tensorflow_1()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
