"""Collective ops between the devices of a cluster: one client, one graph, three workers."""

import ffc
from ffc import np, tf

TIER = 3
CLUSTER = {"worker": 3}
TIMEOUT = 240

raw = tf.raw_ops
N = 3
LEADER = "/job:worker/replica:0/task:0"


def config():
    c = tf.ConfigProto()
    c.experimental.collective_group_leader = LEADER
    return c


def session(task=0):
    return tf.Session(ffc.target("worker", task), config=config())


def on(task):
    return tf.device("/job:worker/task:%d/device:CPU:0" % task)


def fails(code, call):
    try:
        call()
    except code:
        return
    raise AssertionError("%s was expected" % code.__name__)


def reduces():
    """Sums, means, extremes and products, of sizes that fill chunks and that do not."""
    merges = {"Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum}
    key = 0
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for size in (1, 2, 5, 100, 20000):
            with tf.Graph().as_default():
                outs, wants = [], []
                for merge, final in [("Add", "Id"), ("Add", "Div"), ("Mul", "Id"),
                                     ("Min", "Id"), ("Max", "Id")]:
                    key += 1
                    xs = [((np.arange(size) * (t + 1)) % 7 - 2).astype(dtype) for t in range(N)]
                    want = merges[merge](merges[merge](xs[0], xs[1]), xs[2])
                    if final == "Div":
                        want = (want / N if dtype in (np.float32, np.float64)
                                else np.trunc(want / N)).astype(dtype)
                    for t in range(N):
                        with on(t):
                            outs.append(raw.CollectiveReduce(
                                input=xs[t], group_size=N, group_key=1, instance_key=key,
                                merge_op=merge, final_op=final, subdiv_offsets=[0]))
                            wants.append(want)
                with session(key % N) as sess:
                    for _ in range(2):
                        for got, want in zip(sess.run(outs), wants):
                            np.testing.assert_allclose(got, want, 1e-6, 1e-6)


def reduces_large():
    with tf.Graph().as_default(), session() as sess:
        xs = [ffc.normal([3000000], t) for t in range(N)]
        outs = []
        for t in range(N):
            with on(t):
                feed = tf.placeholder_with_default(xs[t], [3000000])
                outs.append(raw.CollectiveReduce(
                    input=feed, group_size=N, group_key=1, instance_key=5000,
                    merge_op="Add", final_op="Id", subdiv_offsets=[0]))
        sums = [tf.reduce_sum(o * tf.range(3000000, dtype=tf.float32) * 1e-6) for o in outs]
        got = sess.run(sums + [outs[1][:10]])
        np.testing.assert_allclose(got[-1], sum(x[:10] for x in xs), 1e-5, 1e-5)
        assert got[0] == got[1] == got[2], got[:3]


def gathers_and_broadcasts():
    with tf.Graph().as_default(), session(1) as sess:
        gathered, sent = [], []
        for t in range(N):
            with on(t):
                x = np.full([2, 3], t, np.float32)
                gathered.append(raw.CollectiveGather(
                    input=x, group_size=N, group_key=1, instance_key=6000, shape=[2 * N, 3]))
                if t == 1:
                    sent.append(raw.CollectiveBcastSend(
                        input=np.arange(6).reshape(2, 3).astype(np.int64), group_size=N,
                        group_key=1, instance_key=6001, shape=[2, 3]))
                else:
                    sent.append(raw.CollectiveBcastRecv(
                        T=tf.int64, group_size=N, group_key=1, instance_key=6001, shape=[2, 3]))
        got, got_sent = sess.run([gathered, sent])
        for g in got:
            np.testing.assert_array_equal(g, np.repeat(np.arange(N), 2)[:, None] * np.ones([1, 3]))
        for s in got_sent:
            np.testing.assert_array_equal(s, np.arange(6).reshape(2, 3))


def second_versions():
    """The keys are tensors."""
    with tf.Graph().as_default(), session(2) as sess:
        key = tf.placeholder(tf.int32, [])
        outs = []
        for t in range(N):
            with on(t):
                common = dict(group_size=N, group_key=2)
                r = raw.CollectiveReduceV2(
                    input=tf.constant([1.0 + t, 2.0]), instance_key=key, ordering_token=[],
                    merge_op="Add", final_op="Id", **common)
                g = raw.CollectiveGatherV2(
                    input=tf.constant([[t]]), instance_key=key + 1, ordering_token=[], **common)
                if t == 2:
                    b = raw.CollectiveBcastSendV2(
                        input=tf.constant([True, False]), instance_key=key + 2, **common)
                else:
                    b = raw.CollectiveBcastRecvV2(
                        T=tf.bool, instance_key=key + 2, shape=[2], **common)
                outs.append((r, g, b))
        for k in (100, 200):
            for r, g, b in sess.run(outs, {key: k}):
                np.testing.assert_array_equal(r, [6.0, 6.0])
                np.testing.assert_array_equal(g, [[0], [1], [2]])
                np.testing.assert_array_equal(b, [True, False])


def assigned_groups():
    """Which group a task is in is computed; the keys go on to the collective."""
    with tf.Graph().as_default(), session(1) as sess:
        rows = tf.placeholder(tf.int32, [None, None])
        keys, sums = [], []
        for t in range(N):
            with on(t):
                size, key = raw.CollectiveAssignGroupV2(
                    group_assignment=rows, device_index=t, base_key=50)
                keys.append((size, key))
                sums.append(raw.CollectiveReduceV2(
                    input=tf.constant([1.0 + t]), group_size=size, group_key=key, instance_key=1,
                    ordering_token=[], merge_op="Add", final_op="Id"))
        ffc.equal(sess.run(keys, {rows: [[2], [0], [1]]}), [(1, 51), (1, 52), (1, 50)])
        ffc.equal(sess.run(sums, {rows: [[1, 2, 0]]}), [[6.0]] * N)
        for wrong in ([[0, 1]], [[0, 1, 7]], [[0], [1], [1]]):
            fails(tf.errors.InvalidArgumentError, lambda: sess.run(keys[2], {rows: wrong}))


def communicators():
    """Each task has one, of a group of its own, and uses it more than once. Without a key for the
    graph TensorFlow's servers crash."""
    options = tf.RunOptions(experimental={"collective_graph_key": 7})
    with tf.Graph().as_default(), session(2) as sess:
        outs = []
        for t in range(N):
            with on(t):
                made = raw.CollectiveInitializeCommunicator(group_key=60 + t, rank=0, group_size=1)
                out = tf.constant([[1.0 + t, 2.0]])
                for _ in range(2):
                    out = 2 * raw.CollectiveReduceV3(
                        input=out, communicator=made, group_assignment=[], reduction="Add")
                    out = raw.CollectiveAllToAllV3(
                        input=out, communicator=made, group_assignment=[])
                outs.append(out)
        for t, got in enumerate(sess.run(outs, options=options)):
            np.testing.assert_array_equal(got, [[4.0 + 4 * t, 8.0]])
        fails(tf.errors.AlreadyExistsError, lambda: sess.run(outs, options=options))
        with on(1):
            wrong = raw.CollectiveInitializeCommunicator(group_key=70, rank=1, group_size=1)
            groups = raw.CollectiveReduceV3(
                input=[1.0], reduction="Add", group_assignment=[[0]],
                communicator=raw.CollectiveInitializeCommunicator(
                    group_key=71, rank=0, group_size=1))
        fails(tf.errors.InvalidArgumentError, lambda: sess.run(wrong.op, options=options))
        fails(tf.errors.UnimplementedError, lambda: sess.run(groups, options=options))


def some_of_the_tasks():
    """Groups of two tasks, two at a time; and a group of one."""
    with tf.Graph().as_default(), session() as sess:
        outs = []
        for i, (a, b) in enumerate([(0, 1), (1, 2), (2, 0)]):
            for t in (a, b):
                with on(t):
                    outs.append(raw.CollectiveReduce(
                        input=np.float32([t, 1]), group_size=2, group_key=10 + i, instance_key=1,
                        merge_op="Add", final_op="Id", subdiv_offsets=[]))
        with on(1):
            outs.append(raw.CollectiveReduce(
                input=np.float32([5]), group_size=1, group_key=20, instance_key=1,
                merge_op="Add", final_op="Div", subdiv_offsets=[0]))
        got = sess.run(outs)
        for pair, want in zip((got[0:2], got[2:4], got[4:6]), (1, 3, 2)):
            for x in pair:
                np.testing.assert_array_equal(x, [want, 2])
        np.testing.assert_array_equal(got[6], [5])


def trains():
    """Data-parallel training: every worker has the variables, gradients are averaged."""
    x = ffc.normal([30, 4], 1)
    y = x @ np.float32([[1], [-2], [3], [0.5]]) + 1
    with tf.Graph().as_default(), session() as sess:
        losses, updates, weights = [], [], []
        for t in range(N):
            with on(t), tf.variable_scope("w%d" % t):
                w = tf.get_variable("w", initializer=np.zeros([4, 1], np.float32))
                b = tf.get_variable("b", initializer=np.zeros([1], np.float32))
                loss = tf.reduce_mean(tf.square(x[t::N] @ w + b - y[t::N]))
                grads = tf.gradients(loss, [w, b])
                reduced = [raw.CollectiveReduce(
                    input=g, group_size=N, group_key=30, instance_key=i, merge_op="Add",
                    final_op="Div", subdiv_offsets=[0]) for i, g in enumerate(grads)]
                updates += [tf.assign_sub(v, 0.1 * g) for v, g in zip([w, b], reduced)]
                losses.append(loss)
                weights.append(w)
        sess.run(tf.global_variables_initializer())
        first = np.mean(sess.run(losses))
        for _ in range(60):
            sess.run(updates)
        assert np.mean(sess.run(losses)) < 1e-3 * first
        got = sess.run(weights)
        np.testing.assert_array_equal(got[0], got[1])
        np.testing.assert_array_equal(got[0], got[2])


def mistakes():
    """No member hangs if another one stays away or disagrees on the size."""
    with tf.Graph().as_default(), session() as sess:
        with on(0):
            alone = raw.CollectiveReduce(
                input=np.float32([0]), group_size=2, group_key=41, instance_key=1,
                merge_op="Add", final_op="Id", subdiv_offsets=[0])
        fails(tf.errors.DeadlineExceededError,
              lambda: sess.run(alone, options=tf.RunOptions(timeout_in_ms=1500)))
    # After this, TensorFlow's servers run no collectives any more.
    with tf.Graph().as_default(), session() as sess:
        outs = []
        for t, size in ((0, 3), (1, 2), (2, 3)):
            with on(t):
                outs.append(raw.CollectiveReduce(
                    input=np.float32([t]), group_size=size, group_key=40, instance_key=1,
                    merge_op="Add", final_op="Id", subdiv_offsets=[0]))
        fails(tf.errors.OpError, lambda: sess.run(outs))
    # There is none for CPUs.
    with tf.Graph().as_default(), session() as sess:
        with on(0):
            scattered = raw.CollectiveReduceScatterV2(
                input=[1.0, 2.0], group_size=1, group_key=42, instance_key=1, ordering_token=[],
                merge_op="Add", final_op="Id")
        fails(tf.errors.OpError, lambda: sess.run(
            scattered, options=tf.RunOptions(experimental={"collective_graph_key": 8})))


def main():
    reduces()
    reduces_large()
    gathers_and_broadcasts()
    second_versions()
    assigned_groups()
    communicators()
    some_of_the_tasks()
    trains()
    mistakes()


ffc.run(main)
