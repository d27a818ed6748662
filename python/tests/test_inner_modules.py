"""Modules that programs import from inside TensorFlow, and its tools."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

# Module, and a name in it.
MODULES = """
framework.graph_util_impl remove_training_nodes
ops.nn relu
ops.nn_impl batch_normalization
ops.rnn_cell_impl LSTMStateTuple
ops.gen_nn_ops max_pool_grad
ops.gen_math_ops mat_mul
ops.standard_ops matmul
ops.functional_ops map_fn
ops.metrics_impl mean
ops.losses.losses_impl mean_squared_error
ops.losses.losses add_loss
layers.layers dense
layers.utils smart_cond
training.adam AdamOptimizer
training.training Saver
training.queue_runner QueueRunner
saved_model.loader load
saved_model.builder SavedModelBuilder
estimator.inputs.numpy_io numpy_input_fn
keras.models Sequential
keras.engine.base_layer Layer
eager.context executing_eagerly
util.deprecation deprecated
util.tf_inspect getargspec
pywrap_tensorflow NewCheckpointReader
tf2 enabled
"""
CONTRIB = """
layers.python.layers batch_norm
layers.python.layers.initializers xavier_initializer
framework.python.ops arg_scope
framework.python.ops.variables model_variable
rnn.python.ops.rnn_cell GRUBlockCell
seq2seq.python.ops.attention_wrapper BahdanauAttention
training.python.training.hparam HParams
lookup.lookup_ops HashTable
"""


def _pairs(text):
    return [line.split() for line in text.strip().splitlines()]


class InnerModuleTest(unittest.TestCase):
    def test_modules_have_the_names_that_programs_import(self):
        for root, text in (("ferroflow.python.", MODULES), ("ferroflow.contrib.", CONTRIB),
                           ("ferroflow.compat.v1.contrib.", CONTRIB)):
            for module, name in _pairs(text):
                with self.subTest(root + module):
                    self.assertTrue(hasattr(importlib.import_module(root + module), name))
        self.assertIs(importlib.import_module("ferroflow.python.ops.rnn_cell_impl"),
                      importlib.import_module("ferroflow.python.ops.rnn_cell"))

    def test_unknown_modules_are_not_found(self):
        for name in ("ferroflow.python.ops.nothing", "ferroflow.contrib.nothing.python.ops",
                     "ferroflow.contrib.slim.python.slim.nets.mobilenet", "ferroflow.python.training.adam.nothing"):
            with self.subTest(name), self.assertRaises(ModuleNotFoundError):
                importlib.import_module(name)

    def test_keras_is_that_of_graphs_where_keras_is_not_installed(self):
        if importlib.util.find_spec("keras") is not None:
            self.skipTest("Keras is installed")
        import ferroflow.keras
        from ferroflow.keras.layers import Dense
        self.assertIs(ferroflow.keras, tf.keras)
        self.assertIs(Dense, tf.keras.layers.Dense)

    def test_linear_makes_the_variables_of_old_cells(self):
        from ferroflow.python.ops.rnn_cell_impl import _linear
        with tf.Graph().as_default(), tf.Session() as sess:
            with tf.variable_scope("cell", initializer=tf.ones_initializer()):
                y = _linear([tf.ones([2, 3]), tf.ones([2, 1])], 2, True)
            self.assertEqual([v.name for v in tf.trainable_variables()], ["cell/kernel:0", "cell/bias:0"])
            sess.run(tf.global_variables_initializer())
            np.testing.assert_array_equal(sess.run(y), np.full([2, 2], 4.0))
            with self.assertRaisesRegex(ValueError, "2D arguments"):
                _linear(tf.ones([2]), 2, False)

    def test_mnist_tutorial_trains(self):
        from ferroflow.examples.tutorials.mnist import mnist
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.set_random_seed(1)
            images = np.random.RandomState(0).rand(20, mnist.IMAGE_PIXELS).astype(np.float32)
            labels = np.arange(20, dtype=np.int32) % 10
            logits = mnist.inference(tf.constant(images), 16, 8)
            loss = mnist.loss(logits, labels)
            step, right = mnist.training(loss, 0.1), mnist.evaluation(logits, labels)
            sess.run(tf.global_variables_initializer())
            before = sess.run(loss)
            for _ in range(20):
                sess.run(step)
            self.assertLess(sess.run(loss), before)
            self.assertLessEqual(sess.run(right), 20)


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None, 2], "x")
            w = tf.get_variable("w", initializer=[[2.0], [3.0]])
            b = tf.get_variable("b", initializer=[1.0], use_resource=True)
            y = tf.identity(tf.matmul(x, w) + b, name="y")
            tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(y))
            sess.run(tf.global_variables_initializer())
            tf.train.Saver().save(sess, self._path("m"))
            tf.train.write_graph(graph, self.folder, "g.pb", as_text=False)
            tf.train.write_graph(graph, self.folder, "g.pbtxt")

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _check_frozen(self, path):
        graph_def = tf.GraphDef()
        with open(path, "rb") as f:
            graph_def.ParseFromString(f.read())
        self.assertFalse([n.name for n in graph_def.node if "Variable" in n.op or "VarHandle" in n.op])
        with tf.Graph().as_default(), tf.Session() as sess:
            y, = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
            self.assertEqual(sess.run(y, {"x:0": [[1, 1]]}), [[6.0]])

    def test_freeze_graph(self):
        from ferroflow.python.tools import freeze_graph
        out = self._path("out.pb")
        for graph, binary, meta in (("g.pb", True, ""), ("g.pbtxt", False, ""), ("", True, "m.meta")):
            with self.subTest(graph or meta):
                freeze_graph.freeze_graph(
                    graph and self._path(graph), "", binary, self._path("m"), "y", "save/restore_all", "save/Const:0", out, True,
                    "", input_meta_graph=meta and self._path(meta))
                self._check_frozen(out)
        with self.assertRaisesRegex(ValueError, "doesn't exist|does not exist"):
            freeze_graph.freeze_graph(self._path("g.pb"), "", True, self._path("none"), "y", "", "", out, True, "")
        command = [sys.executable, "-m", "ferroflow.python.tools.freeze_graph", "--input_graph", self._path("g.pb"), "--input_binary",
                   "--input_checkpoint=" + self._path("m"), "--output_graph=" + self._path("cli.pb"), "--output_node_names=y"]
        subprocess.run(command, check=True)
        self._check_frozen(self._path("cli.pb"))

    def test_inspect_checkpoint(self):
        from ferroflow.python.tools.inspect_checkpoint import print_tensors_in_checkpoint_file
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print_tensors_in_checkpoint_file(self._path("m"), tensor_name="w", all_tensors=False)
            print_tensors_in_checkpoint_file(self._path("m"), tensor_name="", all_tensors=True, count_exclude_pattern="Adam|beta")
        self.assertIn("tensor: w (float32) [2, 1]\n[[2.]\n [3.]]\n# Total number of params: 11\n", text.getvalue())
        self.assertIn("tensor: b (float32) [1]\n[1.]\n", text.getvalue())
        self.assertTrue(text.getvalue().endswith("# Total number of params: 3\n"))

    def test_optimize_for_inference(self):
        from ferroflow.python.tools import freeze_graph, optimize_for_inference_lib
        frozen = freeze_graph.freeze_graph(
            self._path("g.pb"), "", True, self._path("m"), "y", "", "", self._path("out.pb"), True, "")
        small = optimize_for_inference_lib.optimize_for_inference(frozen, ["x"], ["y"], tf.float32.as_datatype_enum)
        self.assertLess(len(small.node), len(frozen.node))
        with open(self._path("small.pb"), "wb") as f:
            f.write(small.SerializeToString())
        self._check_frozen(self._path("small.pb"))


if __name__ == "__main__":
    unittest.main()
