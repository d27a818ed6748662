"""SyncReplicas with a backup worker: a step needs two of three workers.

Three client processes. The third is slow: it computes its first step while the
others train, so its gradient is stale and is dropped.
"""

import os
import time

import ffc
from ffc import tf

TIER = 3
CLUSTER = {"ps": 1, "worker": 3}
TIMEOUT = 120

STEPS = 200


def is_marked(name):
    return os.path.exists(os.path.join(ffc.TMP, name))


def wait_for(name):
    while not is_marked(name):
        time.sleep(0.01)


def mark(name):
    open(os.path.join(ffc.TMP, name), "w").close()


def stale(sess, name):
    """How many gradients of a variable the server has dropped; None if it does not say."""
    with sess.graph.as_default(), tf.device("/job:ps/task:0"):
        handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[], shared_name=name)
        known = tf.raw_ops.VarIsInitializedOp(resource=handle)
        count = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
    return int(sess.run(count)) if sess.run(known) else None


def train(task):
    is_chief, is_slow = task == 0, task == 2
    graph = tf.Graph()
    with graph.as_default(), tf.device(tf.train.replica_device_setter(
            cluster=tf.train.ClusterSpec(ffc.CLUSTER),
            worker_device="/job:worker/task:%d" % task)):
        global_step = tf.train.get_or_create_global_step()
        goal = tf.placeholder(tf.float32, [])
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.square(w - goal)
        opt = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2,
            total_num_replicas=3)
        train_op = opt.minimize(loss, global_step=global_step)
        hook = opt.make_session_run_hook(is_chief, num_tokens=0)
        with tf.train.MonitoredTrainingSession(
                master=ffc.target("worker", task), is_chief=is_chief, hooks=[hook],
                config=tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % task]),
                stop_grace_period_secs=1, save_checkpoint_secs=None,
                save_summaries_secs=None) as sess:
            mark("ready%d" % task)
            for other in range(3):
                wait_for("ready%d" % other)
            if is_slow:
                # Its local step is still that of the start.
                wait_for("trained")
                sess.run(train_op, {goal: -1e6})
                mark("late")
                return {"runs": 1}
            step, runs = 0, 0
            # The slow worker needs a token too, so the others train until it is done.  One that
            # waits when the other has stopped gives up.
            limited = tf.RunOptions(timeout_in_ms=5000)
            while not is_marked("late"):
                try:
                    _, step = sess.run([train_op, global_step], {goal: 3.0}, options=limited)
                except tf.errors.DeadlineExceededError:
                    continue
                runs += 1
                if step >= STEPS:
                    mark("trained")
            if not is_chief:
                return {"runs": runs, "step": int(step)}
            inner = sess._tf_sess()
            graph._unsafe_unfinalize()
            names = [op.get_attr("shared_name").decode() for op in graph.get_operations()
                     if op.type.endswith("ConditionalAccumulator")]
            return {"runs": runs, "step": int(step), "w": float(sess.run(w)),
                    "stale": [stale(inner, name + "/stale") for name in names]}


def worker(task):
    return train(task)


def main():
    others = [ffc.Client("worker", task) for task in (1, 2)]
    mine = train(0)
    theirs = [other.result() for other in others]
    print(mine, theirs)
    # The slow worker's gradient pulled far away. It was dropped.
    assert mine["step"] >= STEPS and abs(mine["w"] - 3) < 1e-3, mine
    assert len(mine["stale"]) == 1, mine
    if mine["stale"][0] is not None:
        # Ferroflow counts dropped gradients. The fast workers' tokens of earlier steps may have
        # made some of theirs stale too.
        assert mine["stale"][0] >= 1, mine


ffc.run(main, worker=worker)
