"""Jobs that TensorFlow and Ferroflow do together: checkpoints in turns, and workers of one cluster."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest

NEEDS = "TensorFlow is not installed beside Ferroflow: cargo xtask python --all runs this test"
DEADLINE = 120

TRAIN = r"""
import importlib, sys
import numpy as np
tf = importlib.import_module(sys.argv[1])
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
folder, steps, kind = sys.argv[2], int(sys.argv[3]), sys.argv[4]
x = tf.placeholder(tf.float32, [None, 3], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
with tf.variable_scope("net", initializer=tf.constant_initializer(0.1), use_resource=kind == "resource"):
    hidden = tf.layers.dense(x, 4, activation=tf.nn.tanh, name="hidden")
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1, name="out"))
global_step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=global_step)
rng = np.random.RandomState(0)
data = rng.rand(64, 3).astype(np.float32)
feed = {x: data, y: data.sum(1, keepdims=True)}
if kind == "monitored":
    hooks = [tf.train.StopAtStepHook(num_steps=steps)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks, save_summaries_steps=None,
                                           save_summaries_secs=None, log_step_count_steps=None) as sess:
        while not sess.should_stop():
            value, at, _ = sess.run([loss, global_step, train], feed)
            print("step", int(at), "loss %.6f" % value)
else:
    saver = tf.train.Saver()
    with tf.Session() as sess:
        latest = tf.train.latest_checkpoint(folder)
        if latest:
            saver.restore(sess, latest)
        else:
            sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            at = sess.run(global_step)
            value, _ = sess.run([loss, train], feed)
            print("step", int(at), "loss %.6f" % value)
        saver.save(sess, folder + "/model.ckpt", global_step=global_step)
"""

WORK = r"""
import importlib, os, sys, time
import numpy as np
tf = importlib.import_module(sys.argv[1])
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
job, task, sync = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "sync"
cluster = tf.train.ClusterSpec({"ps": [sys.argv[5]], "worker": sys.argv[6:8]})
server = tf.train.Server(cluster, job_name=job, task_index=task)
if job == "ps":
    print("ready", flush=True)
    server.join()
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % task, cluster=cluster)):
    global_step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=0.0)
    b = tf.get_variable("b", initializer=0.0)
    arrived = tf.get_variable("arrived", initializer=0, trainable=False)
    arrive = tf.assign_add(arrived, 1, use_locking=True)
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    loss = tf.reduce_mean(tf.square(w * x + b - y))
    optimizer = tf.train.GradientDescentOptimizer(0.2)
    hooks = []
    if sync:
        hooks.append(tf.train.StopAtStepHook(last_step=150))
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
        hooks.append(optimizer.make_session_run_hook(task == 0))
    train = optimizer.minimize(loss, global_step=global_step)
rng = np.random.RandomState(task)
mine, last = 0, 0.0
# A worker may end before the other does: sessions do without the other worker.
config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % task])
with tf.train.MonitoredTrainingSession(server.target, is_chief=task == 0, hooks=hooks, config=config,
                                       stop_grace_period_secs=5) as sess:
    # One library starts much sooner than the other, and could do all steps alone.
    sess.run_step_fn(lambda step_context: step_context.session.run(arrive))
    while sess.run_step_fn(lambda step_context: step_context.session.run(arrived)) < 2:
        time.sleep(0.05)
    while not sess.should_stop() and (sync or mine < 75):
        data = rng.rand(32).astype(np.float32)
        _, last, values = sess.run([train, loss, [w, b]], {x: data, y: 2 * data + 1})
        mine += 1
print("done", mine, "loss %.4f" % last, "w %.2f b %.2f" % tuple(values), flush=True)
os._exit(0)
"""

TF, FF = "tensorflow.compat.v1", "ferroflow.compat.v1"


def _environment():
    path = [os.path.dirname(os.path.dirname(os.path.abspath(importlib.util.find_spec("ferroflow").origin)))]
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(path)}


@unittest.skipUnless(importlib.util.find_spec("tensorflow"), NEEDS)
class BesideTensorFlowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, module, folder, steps, kind):
        command = [sys.executable, "-c", TRAIN, module, os.path.join(self.folder, folder), str(steps), kind]
        found = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=_environment())
        self.assertEqual(found.returncode, 0, found.stderr[-2000:])
        return [line for line in found.stdout.splitlines() if line.startswith("step")]

    def check_turns(self, kind):
        whole = self.train(TF, "whole", 9, kind)
        self.assertEqual(len(whole), 9)
        for first, second in ((TF, FF), (FF, TF)):
            folder = "from_" + first[:2]
            turns = self.train(first, folder, 3, kind) + self.train(second, folder, 3, kind)
            turns += self.train(first, folder, 3, kind)
            numbers = [[float(v) for v in re.findall(r"[\d.]+", " ".join(lines))] for lines in (turns, whole)]
            for got, want in zip(*numbers):
                self.assertAlmostEqual(got, want, delta=2e-5)

    def test_checkpoints_with_reference_variables_continue_on_both_sides(self):
        self.check_turns("reference")

    def test_checkpoints_with_resource_variables_continue_on_both_sides(self):
        self.check_turns("resource")

    def test_checkpoints_of_monitored_sessions_continue_on_both_sides(self):
        self.check_turns("monitored")

    def run_job(self, modules, mode):
        """A parameter server and two workers, each with its own library."""
        ports = []
        for _ in range(3):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                ports.append("127.0.0.1:%d" % s.getsockname()[1])
        started = []

        def start(module, job, task):
            command = [sys.executable, "-c", WORK, module, job, str(task), mode, *ports]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment())
            started.append(process)
            return process

        try:
            start(modules[0], "ps", 0)
            workers = [start(module, "worker", i) for i, module in enumerate(modules[1:])]
            said = [w.communicate(timeout=DEADLINE) for w in workers]
        finally:
            for process in started:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stderr.close()
        for worker, (out, errors) in zip(workers, said):
            self.assertEqual(worker.returncode, 0, errors[-2000:])
            self.assertIn("done", out, errors[-2000:])
        return [re.search(r"done (\d+) loss ([\d.]+) w ([\d.]+) b ([\d.]+)", out) for out, _ in said]

    def check_job(self, modules, mode):
        found = self.run_job(modules, mode)
        self.assertTrue(all(int(m.group(1)) > 0 for m in found))
        self.assertGreaterEqual(sum(int(m.group(1)) for m in found), 150)
        for m in found:
            self.assertAlmostEqual(float(m.group(3)), 2.0, delta=0.4)
            self.assertAlmostEqual(float(m.group(4)), 1.0, delta=0.3)

    def test_an_asynchronous_job_with_a_worker_of_each_kind(self):
        self.check_job([FF, TF, FF], "async")

    def test_a_synchronous_job_with_a_worker_of_each_kind(self):
        self.check_job([FF, FF, TF], "sync")

    def test_a_parameter_server_of_tensorflow(self):
        self.check_job([TF, FF, TF], "sync")


if __name__ == "__main__":
    unittest.main()
