"""Fits y = 2x + 10 by between-graph replication: every worker runs this program."""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
task = config["task"]["index"]
worker = "/job:worker/task:%d" % task

# Variables go to the parameter servers, everything else to this worker.
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
    x = tf.placeholder(tf.float32, [None])
    y = tf.placeholder(tf.float32, [None])
    w = tf.get_variable("w", initializer=0.0)
    b = tf.get_variable("b", initializer=0.0)
    loss = tf.reduce_mean(tf.square(w * x + b - y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)

# `ferroflow run --serve all` starts a server for this worker and passes its address.
with tf.train.MonitoredTrainingSession(
    master=os.environ["FERROFLOW_TARGET"],
    is_chief=task == 0,
    hooks=[tf.train.StopAtStepHook(last_step=2000)],
    config=tf.ConfigProto(device_filters=["/job:ps", worker]),
) as session:
    while not session.should_stop():
        xs = np.random.randn(10)
        ys = 2 * xs + 10 + 0.3 * np.random.randn(10)
        _, n, w_now, b_now = session.run([train, step, w, b], {x: xs, y: ys})

print("worker %d stopped at step %d: w %.2f  b %.2f" % (task, n, w_now, b_now))
