"""Training programs: queues, checkpoints, monitored sessions, datasets, estimators, files and flags."""

import os
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import ferroflow.compat.v1 as tf


class Case(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)


class Queues(Case):
    def test_a_queue_runner_fills_a_queue_and_closes_it_at_the_end(self):
        with tf.Session() as sess:
            queue = tf.FIFOQueue(4, tf.int32, [[]])
            n = tf.get_variable("n", initializer=0, use_resource=False)
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(tf.count_up_to(n, 10))]))
            get = queue.dequeue()
            sess.run(tf.global_variables_initializer())
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            got = []
            with self.assertRaises(tf.errors.OutOfRangeError):
                while not coord.should_stop():
                    got.append(int(sess.run(get)))
            coord.request_stop()
            coord.join(threads)
        self.assertEqual(got, list(range(10)))

    def test_a_coordinator_raises_the_error_of_a_thread(self):
        coord = tf.train.Coordinator()

        def fail():
            raise ValueError("from a thread")

        thread = tf.train.LooperThread.loop(coord, None, fail)
        with self.assertRaisesRegex(ValueError, "from a thread"):
            coord.join([thread])

    def test_files_are_read_in_batches(self):
        with open(self.path("f.csv"), "w") as f:
            f.write("1,2\n3,4\n5,6\n")
        with tf.Session() as sess:
            queue = tf.train.string_input_producer([self.path("f.csv")], num_epochs=1, shuffle=False)
            _, line = tf.TextLineReader().read(queue)
            batch = tf.train.batch(tf.decode_csv(line, [[0], [0]]), 2, allow_smaller_final_batch=True)
            sess.run(tf.local_variables_initializer())
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            self.assertEqual([v.tolist() for v in sess.run(batch)], [[1, 3], [2, 4]])
            self.assertEqual([v.tolist() for v in sess.run(batch)], [[5], [6]])
            with self.assertRaises(tf.errors.OutOfRangeError):
                sess.run(batch)
            coord.request_stop()
            coord.join(threads)


class Checkpoints(Case):
    def variables(self):
        v = tf.get_variable("v", [2, 3], use_resource=False)
        w = tf.get_variable("w", [3], use_resource=True)
        with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3)):
            p = tf.get_variable("pv", [10, 3])
        return [v, w, p.as_tensor()]

    def test_variables_come_back_and_can_be_read_without_a_graph(self):
        for sharded in (False, True):
            with self.subTest(sharded=sharded), tf.Graph().as_default(), tf.Session() as sess:
                fetches = self.variables()
                saver = tf.train.Saver(sharded=sharded)
                sess.run(tf.global_variables_initializer())
                want = sess.run(fetches)
                path = saver.save(sess, self.path("model%d" % sharded), global_step=3)
                self.assertEqual(tf.train.latest_checkpoint(self.folder), path)
                reader = tf.train.load_checkpoint(path)
                for name, value in zip(("v", "w", "p/pv"), want):
                    np.testing.assert_array_equal(reader.get_tensor(name), value)
                sess.run(tf.global_variables_initializer())
                saver.restore(sess, path)
                for got, value in zip(sess.run(fetches), want):
                    np.testing.assert_array_equal(got, value)

    def test_all_types_are_read_from_the_files(self):
        values = {
            "a": np.float32([1.5]), "b": np.array([[1, 2]]), "c": np.array([b"x", b"", b"long" * 50], object),
            "d": np.array([True, False]), "e": np.float16([2]), "f": np.array([1 + 2j], np.complex64),
            "g": np.zeros([0, 3], np.float32), "h": np.float32(2.5),
        }
        with tf.Session() as sess:
            for name, value in values.items():
                tf.get_variable(name, initializer=tf.constant(value))
            sess.run(tf.global_variables_initializer())
            path = tf.train.Saver().save(sess, self.path("model"))
        reader = tf.train.load_checkpoint(path)
        for name, value in values.items():
            got = np.asarray(reader.get_tensor(name))
            self.assertEqual(got.shape, value.shape, name)
            np.testing.assert_array_equal(got, value)

    def test_only_the_last_checkpoints_are_kept(self):
        with tf.Session() as sess:
            v = tf.get_variable("v", [1])
            saver = tf.train.Saver(max_to_keep=2)
            sess.run(v.initializer)
            for step in range(4):
                saver.save(sess, self.path("m"), global_step=step)
        state = tf.train.get_checkpoint_state(self.folder)
        self.assertEqual([os.path.basename(p) for p in state.all_model_checkpoint_paths], ["m-2", "m-3"])
        self.assertFalse([f for f in os.listdir(self.folder) if f.startswith("m-0")])

    def test_a_meta_graph_is_imported_with_its_collections(self):
        with tf.Session() as sess:
            v = tf.get_variable("v", initializer=4.0)
            tf.add_to_collection("mine", tf.multiply(v, 2.0, name="double"))
            sess.run(v.initializer)
            path = tf.train.Saver().save(sess, self.path("m"))
        with tf.Graph().as_default(), tf.Session() as sess:
            saver = tf.train.import_meta_graph(path + ".meta", import_scope="in")
            saver.restore(sess, path)
            self.assertEqual([v.name for v in tf.global_variables()], ["in/v:0"])
            self.assertEqual(sess.run(tf.get_collection("mine")[0]), 8.0)

    def test_a_missing_checkpoint_is_named(self):
        with tf.Session() as sess:
            tf.get_variable("v", [1])
            with self.assertRaisesRegex(ValueError, "nowhere"):
                tf.train.Saver().restore(sess, self.path("nowhere"))


class Sessions(Case):
    def model(self):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("weight", [3], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.square(w))
        tf.summary.scalar("loss", loss)
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step), loss

    def train(self, last_step, **kwargs):
        with tf.Graph().as_default():
            train, loss = self.model()
            steps = 0
            with self.assertLogs("tensorflow", "INFO") as logs, tf.train.MonitoredTrainingSession(
                checkpoint_dir=self.path("run"),
                hooks=[tf.train.StopAtStepHook(last_step=last_step), tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=2)],
                save_checkpoint_steps=2,
                save_summaries_steps=2,
                log_step_count_steps=2,
                **kwargs,
            ) as sess:
                while not sess.should_stop():
                    sess.run(train)
                    steps += 1
        return steps, logs.output

    def test_training_stops_and_goes_on_from_its_checkpoint(self):
        steps, logs = self.train(5)
        self.assertEqual(steps, 5)
        text = "\n".join(logs)
        for line in ("Create CheckpointSaverHook.", "Graph was finalized.", "Running local_init_op.", "Saving checkpoints for 0 into ",
                     "Saving checkpoints for 5 into ", "global_step/sec: ", "loss = 3.0"):
            self.assertIn("INFO:tensorflow:" + line, text)
        steps, logs = self.train(8)
        self.assertEqual(steps, 3)
        self.assertIn("Restoring parameters from " + self.path("run", "model.ckpt-5"), "\n".join(logs))
        tags = set()
        for name in os.listdir(self.path("run")):
            if "tfevents" in name:
                for event in tf.train.summary_iterator(self.path("run", name)):
                    tags |= {v.tag for v in event.summary.value}
        self.assertEqual(tags, {"loss", "global_step/sec"})

    def test_a_loss_that_is_no_number_ends_the_session(self):
        tf.train.get_or_create_global_step()
        loss = tf.placeholder(tf.float32, [])
        with self.assertRaises(tf.train.NanLossDuringTrainingError):
            with tf.train.MonitoredTrainingSession(hooks=[tf.train.NanTensorHook(loss)]) as sess:
                sess.run(loss, {loss: float("nan")})

    def test_a_worker_asks_often_at_first_whether_the_chief_is_ready(self):
        waits = []
        with tf.Graph().as_default():
            ready = tf.py_func(lambda: np.array([b"v"] if len(waits) < 4 else [], object), [], tf.string)
            manager = tf.train.SessionManager(ready_op=ready, recovery_wait_secs=3)
            with mock.patch("time.sleep", waits.append):
                manager.wait_for_session("").close()
        self.assertEqual(waits, [0.5, 1.0, 2.0, 3])

    def test_the_end_of_the_input_is_a_clean_stop(self):
        tf.train.get_or_create_global_step()
        item = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
        got = []
        with tf.train.MonitoredTrainingSession() as sess:
            while not sess.should_stop():
                got.append(int(sess.run(item)))
        self.assertEqual(got, [0, 1, 2])

    def test_a_supervisor_writes_its_log_lines_and_files(self):
        train, _ = self.model()
        with self.assertLogs("tensorflow", "INFO") as logs:
            sv = tf.train.Supervisor(logdir=self.path("sv"), save_model_secs=600)
            with sv.managed_session() as sess:
                for _ in range(3):
                    sess.run(train)
                sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
        text = "\n".join(logs.output)
        for line in ("Running local_init_op.", "Done running local_init_op.", "Starting standard services.", "Starting queue runners."):
            self.assertIn("INFO:tensorflow:" + line, text)
        files = os.listdir(self.path("sv"))
        self.assertIn("checkpoint", files)
        self.assertIn("graph.pbtxt", files)

    def test_synchronous_training_ends_without_the_grace_period(self):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), 1)
        train = opt.minimize(tf.reduce_sum(tf.square(w)), global_step=step)
        hooks = [opt.make_session_run_hook(True), tf.train.StopAtStepHook(num_steps=3)]
        failures = []
        before, threading.excepthook = threading.excepthook, failures.append
        self.addCleanup(setattr, threading, "excepthook", before)
        with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
            while not sess.should_stop():
                sess.run(train)
            began = time.monotonic()
        self.assertLess(time.monotonic() - began, 30)
        for thread in [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]:
            thread.join(10)
        self.assertEqual(failures, [])

    def test_synchronous_training_takes_all_gradients(self):
        step = tf.Variable(0, name="global_step", trainable=False)
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), 1)
        train = opt.minimize(tf.reduce_sum(tf.square(w)), global_step=step)
        final = tf.train.FinalOpsHook([step, w])
        with tf.train.MonitoredTrainingSession(
            hooks=[opt.make_session_run_hook(True), tf.train.StopAtStepHook(num_steps=3), final], stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        self.assertGreaterEqual(final.final_ops_values[0], 3)


class Datasets(Case):
    def elements(self, make):
        with tf.Graph().as_default(), tf.Session() as sess:
            item = tf.data.make_one_shot_iterator(make(tf.data.Dataset)).get_next()
            found = []
            while True:
                try:
                    found.append(sess.run(item))
                except tf.errors.OutOfRangeError:
                    return found

    def test_transformations(self):
        def values(make):
            return [np.asarray(v).tolist() for v in self.elements(make)]

        self.assertEqual(values(lambda d: d.range(4).map(lambda k: k * k)), [0, 1, 4, 9])
        self.assertEqual(values(lambda d: d.range(9).filter(lambda k: tf.equal(k % 3, 0))), [0, 3, 6])
        self.assertEqual(values(lambda d: d.range(1, 4).flat_map(lambda k: d.from_tensors(k).repeat(k))), [1, 2, 2, 3, 3, 3])
        self.assertEqual(values(lambda d: d.range(6).window(2).flat_map(lambda w: w.batch(2))), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(values(lambda d: d.range(4).batch(2).unbatch().shard(2, 1)), [1, 3])
        self.assertEqual(self.elements(lambda d: d.range(5, 7).enumerate()), [(0, 5), (1, 6)])

    def test_functions_capture_tensors_and_variables(self):
        with tf.Session() as sess:
            scale = tf.placeholder(tf.int64, [])
            v = tf.get_variable("v", initializer=np.int64(100), use_resource=True)
            it = tf.data.make_initializable_iterator(tf.data.Dataset.range(3).map(lambda k: k * scale + v.read_value()))
            item = it.get_next()
            sess.run(v.initializer)
            sess.run(it.initializer, {scale: 5})
            self.assertEqual([sess.run(item) for _ in range(3)], [100, 105, 110])

    def test_a_one_shot_iterator_refuses_placeholders(self):
        x = tf.placeholder(tf.float32, [2])
        with self.assertRaisesRegex(ValueError, "placeholder"):
            tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(x))

    def test_examples_of_a_record_file_are_parsed(self):
        feature = {"i": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))}
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        with tf.python_io.TFRecordWriter(self.path("r")) as writer:
            writer.write(example.SerializeToString())
        self.assertEqual(list(tf.python_io.tf_record_iterator(self.path("r"))), [example.SerializeToString()])
        spec = {"i": tf.FixedLenFeature([2], tf.int64)}
        (found,) = self.elements(lambda d: tf.data.TFRecordDataset(self.path("r")).map(lambda t: tf.parse_single_example(t, spec)))
        self.assertEqual(found["i"].tolist(), [1, 2])


class Estimators(Case):
    def test_an_estimator_trains_evaluates_predicts_and_exports(self):
        x = np.random.RandomState(0).rand(64, 3).astype(np.float32)
        y = (x.sum(1) > 1.5).astype(np.int64)

        def input_fn(repeat):
            data = tf.data.Dataset.from_tensor_slices((x, y))
            return (data.repeat() if repeat else data).batch(16)

        def model_fn(features, labels, mode):
            w = tf.get_variable("w", [3, 2])
            logits = tf.matmul(features, w) + tf.get_variable("b", [2], initializer=tf.zeros_initializer())
            guess = tf.argmax(logits, 1)
            if mode == tf.estimator.ModeKeys.PREDICT:
                return tf.estimator.EstimatorSpec(mode, {"class": guess})
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
            if mode == tf.estimator.ModeKeys.EVAL:
                return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, guess)})
            train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

        config = tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=50)
        est = tf.estimator.Estimator(model_fn, self.path("m"), config)
        result, _ = tf.estimator.train_and_evaluate(
            est,
            tf.estimator.TrainSpec(lambda: input_fn(True), max_steps=120),
            tf.estimator.EvalSpec(lambda: input_fn(False), throttle_secs=0),
        )
        self.assertEqual(result["global_step"], 120)
        self.assertGreater(result["accuracy"], 0.9)
        self.assertEqual(len(list(est.predict(lambda: tf.data.Dataset.from_tensor_slices(x).batch(16)))), 64)

        def serving():
            holder = tf.placeholder(tf.float32, [None, 3])
            return tf.estimator.export.TensorServingInputReceiver(holder, {"x": holder})

        folder = est.export_saved_model(self.path("export"), serving).decode()
        with tf.Graph().as_default(), tf.Session() as sess:
            signature = tf.saved_model.load(sess, ["serve"], folder).signature_def["serving_default"]
            got = sess.run(signature.outputs["class"].name, {signature.inputs["x"].name: np.ones([2, 3])})
        self.assertEqual(got.tolist(), [1, 1])

    def test_canned_estimators_learn_from_feature_columns(self):
        random = np.random.RandomState(0)
        x = random.rand(200).astype(np.float32)
        c = random.choice([b"a", b"b", b"c"], 200).astype(object)
        y = ((x > 0.5) | (c == b"a")).astype(np.int64)

        def inputs(epochs):
            return tf.estimator.inputs.numpy_input_fn({"x": x, "c": c}, y, batch_size=20, num_epochs=epochs, shuffle=False)

        columns = tf.feature_column
        number = columns.numeric_column("x")
        buckets = columns.bucketized_column(number, [0.25, 0.5, 0.75])
        words = columns.categorical_column_with_vocabulary_list("c", ["a", "b", "c"])
        crossed = columns.crossed_column([buckets, "c"], 50)
        config = tf.estimator.RunConfig(tf_random_seed=1)
        for est in (
            tf.estimator.LinearClassifier([number, buckets, words, crossed], self.path("linear"), config=config),
            tf.estimator.DNNClassifier([8], [number, columns.indicator_column(words)], self.path("dnn"), config=config, n_classes=3),
            tf.estimator.DNNLinearCombinedClassifier(
                self.path("wide"), [words, crossed], dnn_feature_columns=[number, columns.embedding_column(words, 2)],
                linear_optimizer=tf.train.FtrlOptimizer(0.2), dnn_optimizer=tf.train.AdagradOptimizer(0.05), dnn_hidden_units=[4],
                config=config,
            ),
        ):
            with self.subTest(type(est).__name__):
                est.train(inputs(None), steps=100)
                self.assertGreater(est.evaluate(inputs(1))["accuracy"], 0.9)


    def test_both_parts_of_a_wide_and_deep_model_take_small_steps_by_default(self):
        number = tf.feature_column.numeric_column("x")
        found = tf.estimator.DNNLinearCombinedRegressor(
            self.path("wide"), [number], dnn_feature_columns=[number], dnn_hidden_units=[2], config=tf.estimator.RunConfig(tf_random_seed=1))
        found.train(lambda: ({"x": tf.constant([[1.0]])}, tf.constant([[10.0]])), steps=1)
        weight = found.get_variable_value("linear/linear_model/x/weights")
        # The first step of Ftrl with the rate 0.005 is at most that rate's.
        self.assertLess(abs(float(weight[0, 0])), 0.01)


class Programs(Case):
    def test_flags_are_read_from_the_command_line(self):
        flags = tf.flags.FlagValues()
        tf.flags.DEFINE_string("job_name", "", "worker or ps", flag_values=flags)
        tf.flags.DEFINE_integer("task_index", 0, "number", flag_values=flags)
        tf.flags.DEFINE_boolean("sync", False, "wait", flag_values=flags)
        rest = flags(["prog", "--job_name=ps", "--task_index", "2", "--sync", "left"])
        self.assertEqual((flags.job_name, flags.task_index, flags.sync, rest), ("ps", 2, True, ["prog", "left"]))
        with self.assertRaisesRegex(tf.flags.UnrecognizedFlagError, "job_nam"):
            flags(["prog", "--job_nam=ps"])
        with self.assertRaises(tf.flags.IllegalFlagValueError):
            flags(["prog", "--task_index=x"])

    def test_files_raise_the_errors_of_tensorflow(self):
        with tf.gfile.GFile(self.path("f"), "w") as f:
            f.write("text")
        with tf.gfile.GFile(self.path("f")) as f:
            self.assertEqual(f.read(), "text")
        with self.assertRaises(tf.errors.NotFoundError):
            tf.gfile.GFile(self.path("none")).read()

    def test_hyperparameters_are_parsed(self):
        params = tf.contrib.training.HParams(rate=0.1, sizes=[3, 4], sync=False)
        params.parse("rate=0.5,sizes=[1,2],sync=true,sizes[1]=7")
        self.assertEqual(params.values(), {"rate": 0.5, "sizes": [1, 7], "sync": True})
        with self.assertRaises(ValueError):
            params.parse("unknown=1")


if __name__ == "__main__":
    unittest.main()
