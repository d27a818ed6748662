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


def _morvan():
    repository = "MorvanZhou/Tensorflow-Tutorial"
    # Program, and its number of steps.
    table = [
        ("301_simple_regression", None), ("302_simple_classification", None),
        ("303_save_reload", None), ("304_optimizer", None), ("305_tensorboard", None),
        ("306_dataset", None), ("401_CNN", 150), ("402_RNN_classification", 150),
        ("403_RNN_regression", None), ("404_AutoEncoder", 1000), ("406_GAN", 1500),
        ("406_conditional_GAN", 1500), ("501_dropout", None), ("502_batch_normalization", None),
        ("503_visualize_gradient_descent", None),
    ]
    for name, steps in table:
        path = f"tutorial-contents/{name}.py"
        # What it prints at the end is compared.
        changes = [(path, r"(?m)^for step in range\(\d+\)", f"for step in range({steps})")]
        if name == "502_batch_normalization":
            changes = [(path, r"(?m)^EPOCH = \d+", "EPOCH = 3")]
        yield Program(f"Morvan: {name[4:]}", repository, path, (),
                      tuple(changes) if steps or name[:3] == "502" else (), "tutorial-contents")


def _zero_to_all():
    repository = "hunkim/DeepLearningZeroToAll"
    # Program, and what shortens it.
    steps = (r"(?m)^( *)for step in range\(10001\)", r"\1for step in range(2001)")
    epochs = (r"(?m)^(training|num)_epochs = \d+", r"\1_epochs = 3")
    table = [
        ("02-2-linear_regression_feed", None), ("03-3-minimizing_cost_tf_optimizer", None),
        ("04-3-file_input_linear_regression", None), ("04-4-tf_reader_linear_regression", None),
        ("05-1-logistic_regression", steps), ("05-2-logistic_regression_diabetes", steps),
        ("06-2-softmax_zoo_classifier", None), ("07-3-linear_regression_min_max", None),
        ("09-2-xor-nn", steps), ("09-4-xor_tensorboard", steps),
        ("09-6-multi-linear_back_prop", None), ("10-1-mnist_softmax", epochs),
        ("10-3-mnist_nn_xavier", epochs), ("10-5-mnist_nn_dropout", epochs),
        ("11-2-mnist_deep_cnn", epochs), ("11-4-mnist_cnn_layers", epochs),
        ("12-1-hello-rnn", None), ("12-2-char-seq-rnn", None),
        ("12-3-char-seq-softmax-only", None),
        ("12-4-rnn_long_char", (r"range\(500\)", "range(60)")),
        ("12-5-rnn_stock_prediction", None), ("13-3-mnist_save_restore", epochs),
    ]
    for name, change in table:
        path = f"lab-{name}.py"
        changes = ((path, *change),) if change else ()
        yield Program(f"zero to all: {name}", repository, path, (), changes)


def _cnn_benchmarks():
    folder = "scripts/tf_cnn_benchmarks"
    flags = ("--device=cpu", "--local_parameter_device=cpu", "--data_format=NHWC", "--num_batches=20",
             "--num_warmup_batches=2", "--display_every=5", "--tf_random_seed=1")
    for name, own in (
            ("trivial", ("--model=trivial", "--batch_size=8")),
            ("lenet", ("--model=lenet", "--batch_size=16")),
            ("resnet20", ("--model=resnet20", "--data_name=cifar10", "--batch_size=8")),
            ("resnet20, momentum", ("--model=resnet20", "--data_name=cifar10", "--batch_size=8",
                                    "--optimizer=momentum", "--variable_update=independent"))):
        yield Program(f"tf_cnn_benchmarks: {name}", "tensorflow/benchmarks",
                      f"{folder}/tf_cnn_benchmarks.py", (*flags, *own), (), folder)


PROGRAMS = [
    *_examples(), *_tutorials(), *_morvan(), *_zero_to_all(), *_cnn_benchmarks(),
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
