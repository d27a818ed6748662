"""The programs of the gallery: where each is, how it is called, and what is changed in it.

Nothing of the programs is part of this repository. A *change* is a regular expression and its
replacement in one file; most of them shorten the training.
"""

import collections

# `name` of the row, `repository` (the folder of the checkout, or its GitHub name), `program` in it,
# `arguments`, `changes` (file, pattern, text), and `folder` in which it runs.
Program = collections.namedtuple("Program", "name repository program arguments changes folder",
                                 defaults=((), (), "."))


def _examples():
    repository = "aymericdamien/TensorFlow-Examples"
    # Program, and its number of steps or epochs.
    table = [
        ("1_Introduction/basic_operations", ()),
        ("2_BasicModels/linear_regression", ()),
        ("2_BasicModels/logistic_regression", ()),
        ("2_BasicModels/nearest_neighbor", ()),
        ("3_NeuralNetworks/autoencoder", (("num_steps", 1000),)),
        ("3_NeuralNetworks/bidirectional_rnn", (("training_steps", 400),)),
        ("3_NeuralNetworks/convolutional_network_raw", ()),
        ("3_NeuralNetworks/dynamic_rnn", (("training_steps", 600),)),
        ("3_NeuralNetworks/gan", (("num_steps", 2000),)),
        ("3_NeuralNetworks/multilayer_perceptron", ()),
        ("3_NeuralNetworks/neural_network_raw", (("num_steps", 1000),)),
        ("3_NeuralNetworks/recurrent_network", (("training_steps", 400),)),
        ("4_Utils/save_restore_model", ()),
        ("4_Utils/tensorboard_basic", (("training_epochs", 10),)),
        ("4_Utils/tensorboard_advanced", (("training_epochs", 6),)),
        ("5_DataManagement/tensorflow_dataset_api", (("num_steps", 200),)),
    ]
    for name, numbers in table:
        path = f"tensorflow_v1/examples/{name}.py"
        changes = [(path, rf"(?m)^{key} = \d+", f"{key} = {value}") for key, value in numbers]
        yield Program(f"examples: {name.split('/')[1]}", repository, path, (), tuple(changes))


def _tutorials():
    repository = "nlintz/TensorFlow-Tutorials"
    for name, epochs in (("01_linear_regression", 100), ("02_logistic_regression", 20),
                         ("03_net", 10), ("04_modern_net", 5), ("05_convolutional_net", 1),
                         ("07_lstm", 4), ("09_tensorboard", 5), ("11_gan", 40)):
        path = f"{name}.py"
        changes = ((path, r"for i in range\(\d+\):", f"for i in range({epochs}):"),)
        yield Program(f"tutorials: {name[3:]}", repository, path, (), changes)


PROGRAMS = [
    *_examples(), *_tutorials(),
    *(Program(f"char-rnn: {model}", "sherjilozair/char-rnn-tensorflow", "train.py",
              ("--num_epochs", "1", "--model", model, "--rnn_size", "64", "--seq_length", "25"),
              (("utils.py", r"self\.num_batches = int\(", "self.num_batches = min(60, "),
               # A file that the program would load again in the second run.
               ("utils.py", r"os\.path\.exists\(tensor_file\)", "False")))
      for model in ("lstm", "gru", "rnn")),
    Program("text CNN", "dennybritz/cnn-text-classification-tf", "train.py",
            ("--num_epochs", "1", "--num_filters", "32"),
            (("train.py", r"batches = data_helpers", "batches = list(data_helpers"),
             ("train.py", r"FLAGS\.num_epochs\)\n", "FLAGS.num_epochs))[:100]\n"))),
    Program("variational autoencoder", "hwalsuklee/tensorflow-mnist-VAE", "run_main.py",
            ("--dim_z", "10", "--num_epochs", "2", "--PRR", "", "--PMLR", ""),
            (("mnist_data.py", r"(?s)def prepare_MNIST_data.*",
              "def prepare_MNIST_data(use_norm_shift=False, use_norm_scale=True, "
              "use_data_augmentation=False):\n"
              "    from tensorflow.examples.tutorials.mnist import input_data\n"
              "    d = input_data.read_data_sets('', one_hot=True)\n"
              "    total = numpy.concatenate((d.train.images, d.train.labels), axis=1)\n"
              "    return (total, 5500, d.validation.images, d.validation.labels, d.test.images, "
              "d.test.labels)\n"),
             ("run_main.py", r"import plot_utils", "plot_utils = None"))),
]
