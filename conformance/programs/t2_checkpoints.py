"""Checkpoint files both ways: replaced ones, many shards, and a large one.

The large one has FF_CHECKPOINT_MB megabytes, 16 unless the environment says more.
"""

import os

import ffc
from ffc import np, tf

TIER = 2
CLUSTER = {"worker": 1}
TIMEOUT = 300

MB = 1 << 20
LARGE = int(os.environ.get("FF_CHECKPOINT_MB", "16")) * MB


def values(seed, count=4, size=1000):
    rng = np.random.RandomState(seed)
    made = {"v%d" % i: rng.standard_normal(size).astype(np.float32) for i in range(count)}
    made["words"] = np.array([b"%d" % seed, b"", b"long" * 70], object)
    made["half"] = rng.standard_normal(7).astype(np.float16)
    made["flag"] = np.array([True, False, True])
    return made


def save(sess, prefix, made):
    """One SaveV2, in the session's graph."""
    names = sorted(made)
    op = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[tf.constant(made[n]) for n in names])
    sess.run(op)


def restore(sess, prefix, made):
    names = sorted(made)
    dtypes = [tf.as_dtype(made[n].dtype) if made[n].dtype != object else tf.string for n in names]
    got = sess.run(tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=dtypes))
    for name, value in zip(names, got):
        ffc.equal(value, made[name], name)


def read_by_tensorflow(prefix, made):
    reader = tf.train.load_checkpoint(prefix)
    ffc.equal(sorted(reader.get_variable_to_shape_map()), sorted(made))
    for name, value in made.items():
        ffc.equal(reader.get_tensor(name), value, name)
    with tf.Graph().as_default(), tf.Session("") as sess:
        restore(sess, prefix, made)


def replaced():
    """A checkpoint is written again and again under one name, by either side; both read it each time."""
    prefix = os.path.join(ffc.TMP, "again")
    for seed, server in enumerate([True, True, True, False, True, False, False, True]):
        made = values(seed)
        with tf.Graph().as_default(), (ffc.session() if server else tf.Session("")) as sess:
            save(sess, prefix, made)
        read_by_tensorflow(prefix, made)
        with tf.Graph().as_default(), ffc.session() as sess:
            restore(sess, prefix, made)
        if server:
            # What the new one replaced is gone.
            shards = [f for f in os.listdir(ffc.TMP) if f.startswith("again.data-")]
            assert len({f.rsplit("-of-")[1] for f in shards}) == 1, shards


def merged():
    """Shards by both sides, merged by either, over what was there before."""
    prefix = os.path.join(ffc.TMP, "merged")
    for seed, server in enumerate([True, False, True, True]):
        parts, made = [], {}
        for k in range(3):
            part = os.path.join(ffc.TMP, "part%d_%d" % (seed, k))
            some = {"%s_%d" % (n, k): v for n, v in values(10 * seed + k).items()}
            with tf.Graph().as_default(), (ffc.session() if k % 2 else tf.Session("")) as sess:
                save(sess, part, some)
            parts.append(part)
            made.update(some)
        with tf.Graph().as_default(), (ffc.session() if server else tf.Session("")) as sess:
            sess.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=False))
        read_by_tensorflow(prefix, made)
        with tf.Graph().as_default(), ffc.session() as sess:
            restore(sess, prefix, made)


def large():
    n = LARGE // 4 // 4
    for server in (True, False):
        prefix = os.path.join(ffc.TMP, "large%d" % server)
        with tf.Graph().as_default(), (ffc.session() if server else tf.Session("")) as sess:
            parts = [tf.Variable(tf.range(k * n, (k + 1) * n, dtype=tf.int32), name="p%d" % k) for k in range(4)]
            sess.run(tf.global_variables_initializer())
            tf.train.Saver(parts).save(sess, prefix, write_meta_graph=False)
        with tf.Graph().as_default(), (tf.Session("") if server else ffc.session()) as sess:
            for k in range(4):
                got = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["p%d" % k], shape_and_slices=[""], dtypes=[tf.int32])[0]
                wrong = tf.reduce_sum(tf.cast(tf.not_equal(got, tf.range(k * n, (k + 1) * n, dtype=tf.int32)), tf.int32))
                assert sess.run([tf.size(got), wrong]) == [n, 0], k
        for name in os.listdir(ffc.TMP):
            if name.startswith("large"):
                os.remove(os.path.join(ffc.TMP, name))


def main():
    replaced()
    merged()
    large()


ffc.run(main)
