"""What programs see of TensorFlow besides graphs and values: names of slots, flags, handles, errors."""

import importlib.util
import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf


class Slots(unittest.TestCase):
    def _names(self, make):
        age = tf.feature_column.numeric_column("age")
        job = tf.feature_column.embedding_column(tf.feature_column.categorical_column_with_identity("job", 4), 3)
        with tempfile.TemporaryDirectory() as folder:
            estimator = make([age, job], folder)
            features = {"age": np.arange(8.0), "job": np.arange(8) % 4}
            estimator.train(tf.estimator.inputs.numpy_input_fn(features, np.arange(8) % 2, 4, 1, shuffle=False))
            return estimator.get_variable_names()

    def test_slots_of_canned_estimators_have_the_names_of_tensorflow(self):
        names = self._names(lambda columns, folder: tf.estimator.DNNClassifier([2], columns, folder, optimizer="Adam"))
        self.assertIn("dnn/hiddenlayer_0/kernel/t_0/Adam", names)
        self.assertIn("dnn/head/beta1_power", names)
        names = self._names(lambda columns, folder: tf.estimator.DNNRegressor([2], columns, folder, batch_norm=True))
        self.assertIn("dnn/hiddenlayer_0/batchnorm_0/gamma/t_0/Adagrad", names)
        self.assertIn("dnn/hiddenlayer_0/batchnorm_0/moving_mean", names)
        names = self._names(lambda columns, folder: tf.estimator.LinearRegressor(columns[:1], folder))
        self.assertIn("linear/linear_model/age/weights/part_0/Ftrl", names)


class Sessions(unittest.TestCase):
    def test_a_fetched_handle_is_an_object_that_can_be_fed(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            handle = sess.run(tf.get_session_handle(tf.constant([1.0, 2.0])))
            holder, tensor = tf.get_session_tensor(handle.handle, tf.float32)
            x = tf.placeholder(tf.float32, [2])
            np.testing.assert_array_equal(sess.run(tensor + 1, {holder: handle}), [2, 3])
            np.testing.assert_array_equal(sess.run(x * 2, {x: handle}), [2, 4])
            np.testing.assert_array_equal(handle.eval(), [1, 2])

    def test_a_number_is_no_string(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            text = tf.placeholder(tf.string)
            with self.assertRaises(TypeError):
                sess.run(text, {text: 5})
            self.assertEqual(sess.sess_str, b"")

    def test_variables_have_no_truth_and_are_packed_into_lists(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            for resource in (False, True):
                v = tf.get_variable("v%d" % resource, [2], initializer=tf.ones_initializer(), use_resource=resource)
                with self.assertRaises(TypeError):
                    bool(v)
                with self.assertRaises(TypeError):
                    list(v)
                product = tf.matmul([v], [[1.0], [2.0]])
                sess.run(v.initializer)
                np.testing.assert_array_equal(sess.run(product), [[3.0]])


class Names(unittest.TestCase):
    def test_an_unknown_op_of_a_graph_is_not_found(self):
        graph_def = tf.GraphDef()
        node = graph_def.node.add()
        node.name, node.op = "b", "NoSuchOp"
        with tf.Graph().as_default(), self.assertRaisesRegex(tf.errors.NotFoundError, "NoSuchOp"):
            tf.import_graph_def(graph_def)

    def test_messages_are_read_by_the_module_of_protobuf(self):
        if importlib.util.find_spec("google") is not None and "ferroflow" not in repr(importlib.util.find_spec("google").loader):
            self.skipTest("protobuf is installed: it does not know the package's messages")
        from google.protobuf import text_format
        config = text_format.Parse("inter_op_parallelism_threads: 2", tf.ConfigProto())
        self.assertEqual(config.inter_op_parallelism_threads, 2)
        self.assertEqual(text_format.MessageToString(config), "inter_op_parallelism_threads: 2\n")

    def test_assigned_flags_are_not_parsed(self):
        values = tf.flags.FlagValues()
        tf.flags.DEFINE_enum("mode", "x", ["x", "y"], "a mode", flag_values=values)
        values(["program"])
        values.mode = "z"
        self.assertEqual(values.mode, "z")

    def test_bounds_hold_for_assigned_flags(self):
        values = tf.flags.FlagValues()
        tf.flags.DEFINE_integer("tasks", 3, "tasks", lower_bound=1, flag_values=values)
        values(["program"])
        with self.assertRaises(tf.flags.IllegalFlagValueError):
            values.tasks = 0

    def test_parts_of_variables_are_named_after_their_scope(self):
        with tf.Graph().as_default():
            parts = tf.create_partitioned_variables([4, 3], [1, 3], tf.zeros_initializer(), name="n")
            self.assertEqual([v.name for v in parts], ["n/part_0:0", "n/part_1:0", "n/part_2:0"])

    def test_devices_of_the_process(self):
        self.assertEqual([d.device_type for d in tf.config.list_physical_devices("CPU")], ["CPU"])
        with self.assertRaises(ValueError):
            tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("CPU")[0], True)

    def test_libraries_of_ops_for_tensorflow_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "py_func"):
            tf.load_op_library("./op.so")

    def test_limits_are_those_of_images(self):
        self.assertEqual(tf.float32.limits, (0, 1))
        self.assertEqual(tf.int8.limits, (0, 127))
        self.assertIs(tf.string.as_numpy_dtype, object)

    def test_a_directory_that_exists_is_no_error(self):
        with tempfile.TemporaryDirectory() as folder:
            tf.gfile.MkDir(folder)
            path = os.path.join(folder, "file")
            open(path, "w").close()
            with self.assertRaises(tf.errors.AlreadyExistsError):
                tf.gfile.MkDir(path)


class Refused(unittest.TestCase):
    def test_wrong_arguments_of_layers_cells_and_queues(self):
        with tf.Graph().as_default():
            x = tf.zeros([2, 4, 4, 3])
            for error, call in (
                    (ValueError, lambda: tf.layers.Dense(-1)),
                    (ValueError, lambda: tf.layers.dropout(x, 5)),
                    (ValueError, lambda: tf.layers.batch_normalization(x, axis=7)),
                    (TypeError, lambda: tf.nn.rnn_cell.DropoutWrapper(3)),
                    (ValueError, lambda: tf.train.shuffle_batch([1], 2, 3, 5)),
                    (ValueError, lambda: tf.sparse_retain(tf.SparseTensor([[0], [1]], [1, 2], [3]), [True]))):
                with self.assertRaises(error):
                    call()


class EarlyNameTest(unittest.TestCase):
    def test_functions_have_their_names_of_before_1_0(self):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        pairs = [(tf.mul(a, a), tf.multiply(a, a)), (tf.sub(a, 1.0), a - 1.0), (tf.pack([a, a]), tf.stack([a, a])),
                 (tf.unpack(a)[1], a[1]), (tf.select(a > 2.0, a, -a), tf.where(a > 2.0, a, -a)),
                 (tf.batch_matmul(a, a), tf.matmul(a, a)), (tf.concat_v2([a, a], 1), tf.concat([a, a], 1)),
                 (tf.inv(a), 1.0 / a), (tf.complex_abs(tf.complex([3.0], [4.0])), [5.0]),
                 (tf.listdiff([1, 2], [2])[0], [1]), (tf.batch_matrix_inverse(a), tf.matrix_inverse(a))]
        with tf.Session() as sess:
            for early, later in pairs:
                np.testing.assert_allclose(sess.run(early), sess.run(tf.convert_to_tensor(later)), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
