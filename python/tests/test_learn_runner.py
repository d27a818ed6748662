"""`tf.contrib.learn.Experiment` and `learn_runner.run`."""

import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.contrib.learn import learn_runner

X = np.random.RandomState(0).randn(64, 2).astype(np.float32)


def model(features, labels, mode, params):
    out = tf.layers.dense(features["x"], 1, name="out")
    loss = tf.losses.mean_squared_error(labels, out)
    train = tf.train.GradientDescentOptimizer(params.rate).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions=out, loss=loss, train_op=train)


def data():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, X.sum(1, keepdims=True))).repeat().batch(16).make_one_shot_iterator().get_next()


class LearnRunner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.hparams = tf.contrib.training.HParams(rate=0.1)

    def experiment(self, run_config, hparams, **more):
        estimator = tf.estimator.Estimator(model, config=run_config, params=hparams)
        return tf.contrib.learn.Experiment(estimator, data, data, **{**dict(train_steps=40, eval_steps=2), **more})

    def run_it(self, schedule=None, **more):
        config = tf.contrib.learn.RunConfig(model_dir=self.folder)
        return learn_runner.run(lambda c, h: self.experiment(c, h, **more), run_config=config, hparams=self.hparams, schedule=schedule)

    def test_alone_an_experiment_trains_and_evaluates(self):
        metrics, exports = self.run_it()
        self.assertEqual((metrics["global_step"], exports), (40, []))
        self.assertLess(metrics["loss"], 0.5)

    def test_evaluations_between(self):
        steps = []

        class Seen(tf.train.SessionRunHook):
            def end(self, session):
                steps.append(session.run(tf.train.get_global_step()))

        self.assertEqual(self.run_it(min_eval_frequency=15, eval_hooks=[Seen()])[0]["global_step"], 40)
        self.assertEqual(steps, [15, 30, 40])

    def test_schedules(self):
        self.run_it("train")
        self.assertEqual(self.run_it("evaluate")["global_step"], 40)
        self.assertEqual(self.run_it("test")[0]["global_step"], 41)

    def test_an_output_dir(self):
        def make(output_dir):
            return self.experiment(tf.estimator.RunConfig(model_dir=output_dir), self.hparams)

        self.assertEqual(learn_runner.run(make, output_dir=self.folder)[0]["global_step"], 40)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "Must set value for `output_dir` or `run_config`"):
            learn_runner.run(lambda c, h: None)
        with self.assertRaisesRegex(ValueError, "Schedule references non-existent task nothing"):
            self.run_it("nothing")
        with self.assertRaisesRegex(TypeError, "did not return an Experiment instance"):
            learn_runner.run(lambda output_dir: None, output_dir=self.folder)
        with self.assertRaisesRegex(NotImplementedError, "export_strategies"):
            self.run_it(export_strategies=[1])


if __name__ == "__main__":
    unittest.main()
