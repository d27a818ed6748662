"""Graphs, names, scopes and sessions."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.python.framework import ops


class GraphTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_names_are_unique_without_regard_to_case(self):
        names = [tf.constant(0, name=n).op.name for n in ("a", "a", "A", "a_1")]
        self.assertEqual(names, ["a", "a_1", "A_2", "a_1_1"])

    def test_scopes_are_entered_again_by_their_full_name(self):
        with tf.name_scope("s") as scope:
            tf.constant(0, name="x")
        with tf.name_scope("s"):
            self.assertEqual(tf.constant(0, name="x").op.name, "s_1/x")
        with tf.name_scope(scope):
            self.assertEqual(tf.constant(0, name="x").op.name, "s/x_1")

    def test_a_number_becomes_a_constant_in_the_scope_of_its_consumer(self):
        x = tf.constant(1.0)
        op = ops.apply_op("AddV2", "sum", [x, 2])
        self.assertEqual([i.name for i in op.inputs], ["Const:0", "sum/y:0"])

    def test_types_that_differ_are_refused(self):
        with self.assertRaisesRegex(TypeError, "does not match type float32 of argument 'a'"):
            ops.apply_op("MatMul", None, [tf.constant([[1.0]]), tf.constant([[1]])])

    def test_devices_merge_from_the_inside(self):
        with tf.device("/job:ps/task:1"), tf.device("/cpu:0"):
            self.assertEqual(tf.constant(0).device, "/job:ps/task:1/device:CPU:0")
            with tf.device(None):
                self.assertEqual(tf.constant(0).device, "")
        with tf.device(lambda op: op.device + "/task:3"), tf.device("/job:worker"):
            self.assertEqual(tf.constant(0).device, "/job:worker/task:3")

    def test_control_dependencies(self):
        a = tf.constant(0)
        with tf.control_dependencies([a]):
            b = tf.constant(1)
            c = ops.apply_op("Identity", None, [b]).outputs[0]
            with tf.control_dependencies(None):
                d = tf.constant(2)
        self.assertEqual(b.op.control_inputs, [a.op])
        self.assertEqual(c.op.control_inputs, [])
        self.assertEqual(d.op.control_inputs, [])

    def test_colocation(self):
        with tf.device("/cpu:1"):
            a = tf.constant(0)
        with ops.colocate_with(a):
            b = tf.constant(1)
        self.assertEqual(b.op.colocation_groups(), [b"loc:@Const"])
        self.assertEqual(b.device, a.device)

    def test_a_graph_def_is_imported_below_a_name(self):
        x = tf.constant([1.0, 2.0], name="x")
        ops.apply_op("Neg", "y", [x])
        definition = tf.get_default_graph().as_graph_def()
        with tf.Graph().as_default() as graph:
            z = tf.constant([5.0, 6.0])
            (y,) = tf.import_graph_def(definition, {"x:0": z}, ["y:0"], name="in")
            self.assertEqual(y.name, "in/y:0")
            self.assertEqual(y.shape.as_list(), [2])
            with tf.Session(graph=graph) as session:
                np.testing.assert_array_equal(session.run(y), [-5, -6])

    def test_a_finalized_graph_does_not_change(self):
        tf.get_default_graph().finalize()
        with self.assertRaisesRegex(RuntimeError, "finalized"):
            tf.constant(0)


class SessionTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        self.x = ops.apply_op("Placeholder", "x", [], {"dtype": tf.float32, "shape": [None]}).outputs[0]
        self.y = ops.apply_op("Square", "y", [self.x]).outputs[0]

    def test_fetches_keep_their_structure(self):
        with tf.Session() as session:
            a = tf.constant(1.0)
            found = session.run({"a": [a, (self.y,)], "op": a.op, "name": "x:0"}, {self.x: [2.0]})
        self.assertEqual(found["a"][0], 1.0)
        np.testing.assert_array_equal(found["a"][1][0], [4.0])
        self.assertIsNone(found["op"])
        np.testing.assert_array_equal(found["name"], [2.0])

    def test_an_error_names_the_operation_and_the_users_line(self):
        with tf.Session() as session:
            with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                session.run(self.y)
        self.assertEqual(caught.exception.op, self.x.op)
        self.assertIn("test_graph.py", str(caught.exception))

    def test_wrong_feeds_are_refused(self):
        with tf.Session() as session:
            with self.assertRaisesRegex(ValueError, "Cannot feed value of shape"):
                session.run(self.y, {self.x: [[1.0]]})
            with self.assertRaisesRegex(TypeError, "cannot be a tf.Tensor"):
                session.run(self.y, {self.x: self.y})
            with self.assertRaisesRegex(TypeError, "Cannot interpret feed_dict key"):
                session.run(self.y, {"nowhere:0": 1})

    def test_a_closed_session_is_refused(self):
        session = tf.Session()
        session.close()
        with self.assertRaisesRegex(RuntimeError, "closed Session"):
            session.run(self.y, {self.x: [1.0]})

    def test_a_callable_takes_feeds_by_position(self):
        with tf.Session() as session:
            square = session.make_callable(self.y, [self.x])
            np.testing.assert_array_equal(square([3.0]), [9.0])

    def test_a_result_belongs_to_the_caller(self):
        with tf.Session() as session:
            first = session.run(self.y, {self.x: [3.0]})
            first += 1
            np.testing.assert_array_equal(session.run(self.y, {self.x: [3.0]}), [9.0])


if __name__ == "__main__":
    unittest.main()
