"""Meta graphs: what is in their collections, and programs that go on with an imported graph."""

import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.core.framework import variable_pb2
from ferroflow.core.protobuf import control_flow_pb2


def _build():
    x = tf.placeholder_with_default(3.0, [], "x")
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    chosen = tf.cond(x > 2.0, lambda: w * 2, lambda: v * 3, name="c")
    _, product = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, chosen])
    tf.get_variable("local", [1], collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    tf.train.get_or_create_global_step()
    tf.reduce_sum(product * v, name="loss")


class MetaGraphTest(unittest.TestCase):
    def test_collections_hold_definitions_of_variables_and_contexts(self):
        with tf.Graph().as_default():
            _build()
            written = tf.train.export_meta_graph().collection_def
        names = {key: [variable_pb2.VariableDef.FromString(b) for b in written[key].bytes_list.value]
                 for key in ("variables", "trainable_variables", "local_variables", "global_step")}
        self.assertEqual([d.variable_name for d in names["variables"]], ["w:0", "v:0", "global_step:0"])
        self.assertEqual([d.is_resource for d in names["trainable_variables"]], [True, False])
        self.assertEqual([d.variable_name for d in names["local_variables"]], ["local:0"])
        self.assertEqual(names["global_step"][0].initializer_name, "global_step/Assign")
        branches = [control_flow_pb2.CondContextDef.FromString(b) for b in written["cond_context"].bytes_list.value]
        self.assertEqual([b.branch for b in branches], [1, 0])
        loop, = (control_flow_pb2.WhileContextDef.FromString(b) for b in written["while_context"].bytes_list.value)
        self.assertEqual(loop.loop_exit_names, ["while/Exit:0", "while/Exit_1:0"])

    def test_an_imported_graph_is_differentiated_and_trained(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m")
            with tf.Graph().as_default(), tf.Session() as sess:
                _build()
                sess.run(tf.global_variables_initializer())
                tf.train.Saver().save(sess, path)
            with tf.Graph().as_default(), tf.Session() as sess:
                saver = tf.train.import_meta_graph(path + ".meta")
                w, v = tf.trainable_variables()
                self.assertIs(w, tf.global_variables()[0])
                loss = tf.get_default_graph().get_tensor_by_name("loss:0")
                gradients = tf.gradients(loss, [w, v])
                step = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
                sess.run(tf.global_variables_initializer())
                saver.restore(sess, path)
                # The loss is the sum of 2 w^4 v.
                np.testing.assert_allclose(sess.run(gradients), [[8.0, 8.0], [2.0, 2.0]])
                sess.run(step)
                self.assertEqual(sess.run(tf.train.get_global_step()), 1)
                np.testing.assert_allclose(sess.run(w), [0.9, 0.9], rtol=1e-5)


class PathTest(unittest.TestCase):
    def test_paths_can_be_bytes(self):
        # `Estimator.export_saved_model` returns bytes.
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [1], "x")
            v = tf.get_variable("v", initializer=[2.0])
            y = x * v
            sess.run(v.initializer)
            exported, saved = os.path.join(folder, "export").encode(), os.path.join(folder, "m").encode()
            tf.saved_model.simple_save(sess, exported, {"x": x}, {"y": y})
            self.assertTrue(tf.saved_model.contains_saved_model(exported))
            self.assertEqual(tf.contrib.predictor.from_saved_model(exported)({"x": [3.0]})["y"], [6.0])
            with tf.Graph().as_default(), tf.Session() as other:
                tf.saved_model.loader.load(other, ["serve"], exported)
                self.assertEqual(other.run("v:0"), [2.0])
            saver = tf.train.Saver([v])
            saver.save(sess, saved)
            saver.restore(sess, saved)
            self.assertEqual(tf.train.list_variables(saved), [("v", [1])])


if __name__ == "__main__":
    unittest.main()
