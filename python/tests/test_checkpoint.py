"""`tf.train.Checkpoint` in graphs."""

import os
import tempfile
import unittest

import ferroflow.compat.v1 as tf


class _Program:
    """A variable that Adam trains, a list of variables, and a checkpoint of them."""

    def __init__(self, start):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.v = tf.get_variable("v", initializer=[start, 2 * start])
            self.others = [tf.Variable(start, use_resource=True), tf.Variable(int(start))]
            self.optimizer = tf.train.AdamOptimizer(0.1)
            self.train = self.optimizer.minimize(tf.reduce_sum(tf.square(self.v)), var_list=[self.v])
            self.checkpoint = tf.train.Checkpoint(v=self.v, others=self.others, optimizer=self.optimizer)
            self.init = tf.global_variables_initializer()

    def values(self, sess):
        found = sess.run([self.v] + self.others + self.optimizer.variables())
        return [value.tolist() for value in found]


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = os.path.join(folder.name, "model")

    def _saved(self):
        """A checkpoint after one step of training, and its values."""
        program = _Program(1.0)
        with tf.Session(graph=program.graph) as sess:
            sess.run(program.init)
            sess.run(program.train)
            return program.checkpoint.save(self.prefix, session=sess), program.values(sess)

    def test_values_and_slots_come_back(self):
        path, values = self._saved()
        self.assertEqual(path, self.prefix + "-1")
        self.assertEqual(tf.train.latest_checkpoint(os.path.dirname(self.prefix)), path)
        program = _Program(7.0)
        with tf.Session(graph=program.graph) as sess, program.graph.as_default():
            status = program.checkpoint.restore(path).assert_consumed()
            status.initialize_or_restore(sess)
            self.assertEqual(program.values(sess), values)
            self.assertEqual(program.checkpoint.save(self.prefix, session=sess), self.prefix + "-2")

    def test_keys_are_the_paths_of_the_objects(self):
        path, _ = self._saved()
        names = [name for name, _ in tf.train.list_variables(path)]
        value = "/.ATTRIBUTES/VARIABLE_VALUE"
        self.assertEqual(names, ["_CHECKPOINTABLE_OBJECT_GRAPH", "optimizer/beta1_power" + value, "optimizer/beta2_power" + value,
                                 "others/0" + value, "others/1" + value, "save_counter" + value, "v" + value,
                                 "v/.OPTIMIZER_SLOT/optimizer/m" + value, "v/.OPTIMIZER_SLOT/optimizer/v" + value])

    def test_missing_objects_are_named(self):
        path, values = self._saved()
        with tf.Graph().as_default(), tf.Session() as sess:
            v, more = tf.Variable([0.0, 0.0]), tf.Variable(5.0)
            status = tf.train.Checkpoint(v=v, more=more).restore(path)
            status.assert_nontrivial_match().expect_partial()
            with self.assertRaises(AssertionError):
                status.assert_existing_objects_matched()
            status.initialize_or_restore(sess)
            self.assertEqual([v.eval().tolist(), more.eval()], [values[0], 5.0])
            partial = tf.train.Checkpoint(v=v).restore(path).assert_existing_objects_matched()
            with self.assertRaises(AssertionError):
                partial.assert_consumed()

    def test_a_checkpoint_of_a_saver(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.get_variable("v", initializer=3.0).initializer.run()
            path = tf.train.Saver().save(sess, self.prefix)
        with tf.Graph().as_default(), tf.Session() as sess:
            v = tf.get_variable("v", initializer=0.0)
            tf.train.Checkpoint(v=v).restore(path).assert_existing_objects_matched().run_restore_ops(sess)
            self.assertEqual(v.eval(), 3.0)

    def test_without_a_checkpoint_variables_are_initialized(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            v = tf.Variable(4.0)
            status = tf.train.Checkpoint(v=v).restore(None)
            with self.assertRaises(AssertionError):
                status.assert_consumed()
            status.initialize_or_restore(sess)
            self.assertEqual(v.eval(), 4.0)

    def test_mistakes(self):
        with tf.Graph().as_default():
            with self.assertRaises(ValueError):
                tf.train.Checkpoint(a=3)
            with self.assertRaises(tf.errors.NotFoundError):
                tf.train.Checkpoint(v=tf.Variable(1.0)).restore(self.prefix)

    def test_a_manager_keeps_the_newest(self):
        program = _Program(1.0)
        folder = os.path.dirname(self.prefix)
        with tf.Session(graph=program.graph) as sess, program.graph.as_default():
            sess.run(program.init)
            manager = tf.train.CheckpointManager(program.checkpoint, folder, max_to_keep=2)
            paths = [manager.save() for _ in range(3)]
            self.assertEqual(paths, [os.path.join(folder, "ckpt-%d" % i) for i in (1, 2, 3)])
            self.assertEqual(manager.checkpoints, paths[1:])
            self.assertFalse(tf.train.checkpoint_exists(paths[0]))
            self.assertEqual(manager.restore_or_initialize(), paths[-1])


if __name__ == "__main__":
    unittest.main()
