"""A client process of cluster_train.py: the replica of one worker.

It prints `ready` when it is warm and keeps stepping until a line arrives on standard input.  It then measures for the
given time, prints the results as JSON, and keeps stepping until it is stopped, so that synchronous replicas do not
block.
"""

import argparse
import json
import sys
import threading
import time

from common import import_tf

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--cluster", required=True, help="as JSON")
p.add_argument("--task", type=int, required=True)
p.add_argument("--model", choices=["linear", "mlp"], required=True)
p.add_argument("--mode", choices=["async", "sync"], required=True)
p.add_argument("--batch", type=int, required=True)
p.add_argument("--seconds", type=float, required=True)
args = p.parse_args()

tf = import_tf()
import numpy as np  # noqa: E402

v1 = tf.compat.v1
spec = json.loads(args.cluster)
workers = len(spec["worker"])
worker = "/job:worker/task:%d" % args.task
is_chief = args.task == 0
rng = np.random.RandomState(7 + args.task)


def variable(name, shape, stddev):
    start = v1.truncated_normal_initializer(stddev=stddev, seed=1) if stddev else v1.zeros_initializer()
    return v1.get_variable(name, shape, tf.float32, start, use_resource=False)


def linear(x, y):
    return tf.reduce_mean(tf.square(x * variable("w", [], 0) + variable("b", [], 0) - y))


def dense(x, n_in, n_out, name):
    with v1.variable_scope(name):
        return tf.matmul(x, variable("w", [n_in, n_out], 0.05)) + variable("b", [n_out], 0)


def mlp(x, y):
    h = tf.nn.relu(dense(x, 784, 512, "l1"))
    h = tf.nn.relu(dense(h, 512, 512, "l2"))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=dense(h, 512, 10, "l3"), labels=y)
    return tf.reduce_mean(losses)


def batch():
    if args.model == "linear":
        x = rng.uniform(-1, 1, [args.batch]).astype(np.float32)
        return x, (3 * x + 2 + rng.normal(0, .05, x.shape)).astype(np.float32)
    return (rng.uniform(0, 1, [args.batch, 784]).astype(np.float32),
            rng.randint(0, 10, [args.batch]).astype(np.int32))


data = [batch() for _ in range(8)]
config = v1.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", worker])
setter = v1.train.replica_device_setter(worker_device=worker, cluster=spec)
with tf.Graph().as_default() as graph, v1.device(setter):
    step = v1.get_variable(
        "global_step", [], tf.int64, v1.zeros_initializer(), trainable=False, use_resource=False,
        collections=[v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.GLOBAL_STEP])
    x, y = [v1.placeholder(d.dtype, d.shape) for d in data[0]]
    loss = {"linear": linear, "mlp": mlp}[args.model](x, y)
    optimizer = v1.train.GradientDescentOptimizer(0.01)
    if args.mode == "sync":
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
    train = optimizer.minimize(loss, global_step=step)
    init, local_init = v1.global_variables_initializer(), v1.local_variables_initializer()
    missing = v1.report_uninitialized_variables(v1.global_variables())
    if args.mode == "sync":
        runner, tokens = optimizer.get_chief_queue_runner(), optimizer.get_init_tokens_op()
        step_init = optimizer.chief_init_op if is_chief else optimizer.local_step_init_op
        not_ready = optimizer.ready_for_local_init_op

sess = v1.Session("grpc://" + spec["worker"][args.task], graph=graph, config=config)
if is_chief:
    sess.run(init)
while len(sess.run(missing)):
    time.sleep(0.05)
sess.run(local_init)
if args.mode == "sync":
    while len(sess.run(not_ready)):
        time.sleep(0.05)
    sess.run(step_init)
    if is_chief:
        runner.create_threads(sess, v1.train.Coordinator(), daemon=True, start=True)
        sess.run(tokens)
feeds = [{x: d[0], y: d[1]} for d in data]
count = 0


def one():
    global count
    count += 1
    return sess.run([train, step, loss], feed_dict=feeds[count % len(feeds)])


first_loss = one()[2]
for _ in range(20):
    one()
go = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), go.set()), daemon=True).start()
print("ready", flush=True)
while not go.is_set():
    one()
begin, cpu = time.time(), time.process_time()
step_begin = int(one()[1])
while time.time() - begin < args.seconds:
    _, step_end, last_loss = one()
print(json.dumps({
    "begin": begin, "end": time.time(), "step_begin": step_begin, "step_end": int(step_end),
    "first_loss": float(first_loss), "loss": float(last_loss),
    "cpu": time.process_time() - cpu}), flush=True)
while True:
    one()
