"""`tf.profiler`: counts of operations and parameters. The numbers are TensorFlow 2.15.1's."""

import contextlib
import io
import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

BUILDER = tf.profiler.ProfileOptionBuilder


def network():
    """The loss of a small network, and its gradients."""
    x = tf.placeholder(tf.float32, [4, 8, 8, 3], name="x")
    w = tf.get_variable("w", [3, 3, 3, 5])
    y = tf.nn.relu(tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME", name="conv"))
    with tf.variable_scope("fc"):
        w2, b = tf.get_variable("w", [80, 10]), tf.get_variable("b", [10])
        z = tf.nn.bias_add(tf.matmul(tf.reshape(y, [4, 80]), w2), b)
    pooled = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    loss = tf.reduce_mean(pooled) + tf.reduce_sum(tf.nn.softmax(z)) * 2.0
    tf.gradients(loss, [w, w2])
    return x, loss


def counts(proto, name):
    """(name, own, total) of each shown node, the node itself first."""
    found = [(proto.name, getattr(proto, name), getattr(proto, "total_" + name))]
    for child in proto.children:
        found += counts(child, name)
    return found


class ProfilerTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        self.graph = tf.get_default_graph()

    def quiet(self, options):
        return BUILDER(options).with_empty_output().build()

    def test_float_operations(self):
        network()
        options = self.quiet(BUILDER.float_operation())
        found = tf.profiler.profile(self.graph, options=options)
        self.assertEqual(found.total_float_ops, 74362)
        self.assertEqual(tf.profiler.profile(self.graph, cmd="op", options=options).total_float_ops, 74362)
        shown = counts(found, "float_ops")
        self.assertEqual(shown[:3], [("_TFProfRoot", 0, 74362), ("conv", 17280, 17280),
                                     ("gradients/conv_grad/Conv2DBackpropFilter", 17280, 17280)])
        self.assertIn(("fc/w/Initializer/random_uniform", 800, 1601), shown)
        self.assertIn(("Softmax", 200, 200), shown)
        self.assertIn(("gradients/fc/BiasAdd_grad/BiasAddGrad", 30, 30), shown)
        self.assertEqual(len(shown), 30)

    def test_trainable_parameters(self):
        network()
        tf.get_variable("untrained", [7], trainable=False)
        found = tf.profiler.profile(self.graph, options=self.quiet(BUILDER.trainable_variables_parameter()))
        self.assertEqual(counts(found, "parameters"), [
            ("_TFProfRoot", 0, 945), ("fc", 0, 810), ("fc/b", 10, 10), ("fc/w", 800, 800), ("w", 135, 135)])

    def test_reports(self):
        network()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            tf.profiler.profile(self.graph, options=BUILDER.trainable_variables_parameter())
        for line in ("_TFProfRoot (--/945 params)", "  fc (--/810 params)", "    fc/w (80x10, 800/800 params)",
                     "  w (3x3x3x5, 135/135 params)", "-account_type_regexes       _trainable_variables"):
            self.assertIn(line + "\n", out.getvalue())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report")
            tf.profiler.profile(self.graph, cmd="op",
                                options=BUILDER(BUILDER.float_operation()).with_file_output(path).build())
            with open(path, encoding="utf-8") as f:
                self.assertIn("MatMul                   19.20k float_ops (100.00%, 25.82%)", f.read())

    def test_what_is_shown(self):
        with tf.variable_scope("fc"):
            w, b = tf.get_variable("w", [3, 10]), tf.get_variable("b", [10])
            tf.nn.bias_add(tf.matmul(tf.placeholder(tf.float32, [4, 3]), w), b)

        def total(builder):
            return tf.profiler.profile(self.graph, options=builder.with_empty_output().build()).total_float_ops

        def flops():
            return BUILDER(BUILDER.float_operation())

        self.assertEqual(total(flops()), 362)
        self.assertEqual(total(flops().with_max_depth(1)), 0)
        self.assertEqual(total(flops().with_max_depth(1).account_displayed_op_only(False)), 362)
        self.assertEqual(total(flops().with_node_names(show_name_regexes=[".*MatMul"])), 240)
        self.assertEqual(total(flops().with_node_names(hide_name_regexes=[".*Initializer.*"])), 280)
        self.assertEqual(total(flops().with_node_names(trim_name_regexes=["fc"])), 0)
        self.assertEqual(total(flops().with_min_float_operations(41)), 240)

    def test_unknown_shapes_are_counted_and_named(self):
        tf.matmul(tf.placeholder(tf.float32, [None, 3]), tf.ones([3, 2]))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            found = tf.profiler.profile(self.graph, options=self.quiet(BUILDER.float_operation()))
        self.assertEqual(found.total_float_ops, 0)
        self.assertIn("1 ops no flops stats due to incomplete shapes.", out.getvalue())

    def test_steps(self):
        x, loss = network()
        profiler = tf.profiler.Profiler(self.graph)
        metadata = tf.RunMetadata()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(loss, {x: np.ones([4, 8, 8, 3])}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
        profiler.add_step(3, metadata)
        found = profiler.profile_name_scope(self.quiet(BUILDER.time_and_memory(min_micros=0)))
        self.assertGreater(found.total_requested_bytes, 0)
        self.assertGreater(profiler.profile_operations(self.quiet(BUILDER.time_and_memory(min_micros=0))).total_exec_micros, 0)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "unknown step: 4"):
            profiler.profile_name_scope(BUILDER(BUILDER.float_operation()).with_step(4).build())

    def test_mistakes(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "unknown cmd: nothing"):
            tf.profiler.profile(self.graph, cmd="nothing")
        with self.assertRaisesRegex(NotImplementedError, "cmd='code'"):
            tf.profiler.profile(self.graph, cmd="code")
        with self.assertRaisesRegex(NotImplementedError, "timeline"):
            tf.profiler.profile(self.graph, options=BUILDER().select(["params"]).with_timeline_output("t").build())
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "nonsense"):
            tf.profiler.profile(self.graph, options=BUILDER().select(["nonsense"]).build())


if __name__ == "__main__":
    unittest.main()
