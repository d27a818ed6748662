"""Iterators in checkpoints, iterators over several devices, datasets in
files, batches made of several calls, and sparse matrices."""

import os
import tempfile
import threading

import ffc
from ffc import np, tf

TIER = 2
CLUSTER = {"worker": 1}


def take(sess, element, n):
    return [np.asarray(sess.run(element)).tolist() for _ in range(n)]


def saved_iterator():
    for reshuffle in (False, True):
        saved_shuffle(reshuffle)


def saved_shuffle(reshuffle):
    with tf.Graph().as_default(), ffc.session() as sess:
        data = tf.data.Dataset.range(10).map(lambda x: x * 2)
        data = data.shuffle(4, seed=3, reshuffle_each_iteration=reshuffle)
        data = data.repeat(2).batch(2)
        iterator = tf.data.make_initializable_iterator(data)
        element = iterator.get_next()
        saver = tf.train.Saver(
            [tf.data.experimental.make_saveable_from_iterator(iterator)])
        path = os.path.join(tempfile.mkdtemp(), "model")
        sess.run(iterator.initializer)
        take(sess, element, 3)
        saver.save(sess, path)
        rest = take(sess, element, 7)
        with ffc.raises(tf.errors.OutOfRangeError, "End of sequence"):
            sess.run(element)
        sess.run(iterator.initializer)
        saver.restore(sess, path)
        ffc.equal(take(sess, element, 7), rest)


def several_devices():
    from tensorflow.python.data.ops import multi_device_iterator_ops
    with tf.Graph().as_default(), ffc.session() as sess:
        device = ffc.device_of("worker")
        iterator = multi_device_iterator_ops.MultiDeviceIterator(
            tf.data.Dataset.range(8), [device, device], source_device=device)
        pair = iterator.get_next()
        sess.run(iterator.initializer)
        ffc.equal(take(sess, pair, 4), [[0, 1], [2, 3], [4, 5], [6, 7]])
        with ffc.raises(tf.errors.OutOfRangeError, "End of sequence"):
            sess.run(pair)
        sess.run(iterator.initializer)
        ffc.equal(take(sess, pair, 1), [[0, 1]])


def numbers(n):
    return tf.data.Dataset.range(n).map(
        lambda x: (x, tf.strings.as_string(x * x)))


def elements(to, data):
    with tf.Session(to) as sess:
        element = tf.data.make_one_shot_iterator(data).get_next()
        found = []
        while True:
            try:
                found.append(tuple(sess.run(element)))
            except tf.errors.OutOfRangeError:
                return found


def files():
    want = [(x, str(x * x).encode()) for x in range(7)]
    for compression in (None, "GZIP"):
        for writer, reader in ((ffc.TARGET, ""), ("", ffc.TARGET),
                               (ffc.TARGET, ffc.TARGET)):
            path = os.path.join(tempfile.mkdtemp(), "saved")
            with tf.Graph().as_default(), tf.Session(writer) as sess:
                data = numbers(7)
                name = compression or ""
                from tensorflow.python.framework import function

                @function.Defun(tf.int64, tf.string)
                def shard(x, text):
                    del text
                    return x % 2

                sess.run(tf.raw_ops.SaveDataset(
                    input_dataset=data._variant_tensor, path=path,
                    shard_func_other_args=[], shard_func=shard,
                    use_shard_func=True, compression=name))
            with tf.Graph().as_default():
                spec = (tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string))
                loaded = tf.data.Dataset.load(path, spec, compression)
                ffc.equal(sorted(elements(reader, loaded)), want)
    for writer, reader in ((ffc.TARGET, ffc.TARGET),):
        path = os.path.join(tempfile.mkdtemp(), "kept")
        for to in (writer, reader):
            with tf.Graph().as_default():
                data = numbers(7).apply(
                    tf.data.experimental.snapshot(path, compression="SNAPPY"))
                ffc.equal(sorted(elements(to, data)), want)


def batches():
    with tf.Graph().as_default(), ffc.session() as sess:
        calls = tf.Variable(0, use_resource=True)

        @tf.nondifferentiable_batch_function(
            num_batch_threads=1, max_batch_size=32, batch_timeout_micros=2000000,
            allowed_batch_sizes=[4, 8], enable_large_batch_splitting=True)
        def doubled(x):
            size = tf.shape(x)[0]
            return x * 2.0, tf.fill([size], size)

        sess.run(calls.initializer)
        x = tf.placeholder(tf.float32, [None, 3])
        y = doubled(x)
        results = [None] * 4

        def work(k):
            results[k] = sess.run(y, {x: np.full([2, 3], k, np.float32)})

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(40)
        for k, (value, size) in enumerate(results):
            ffc.close(value, np.full([2, 3], 2 * k, np.float32))
            assert all(s in (4, 8) for s in size), size
        assert any(8 in size for _, size in results), "nothing was joined"
        # More rows than a batch may have: cut, and put together again.
        value, _ = sess.run(y, {x: np.ones([20, 3], np.float32)})
        ffc.close(value, np.full([20, 3], 2, np.float32))


def sparse_matrices(table):
    r = tf.raw_ops
    dense = ffc.rng(3).randint(-2, 3, size=(5, 4)).astype(np.float32)
    square = (dense.T @ dense + 20 * np.eye(4)).astype(np.float32)

    def csr(x):
        where = tf.where(tf.not_equal(x, 0))
        return r.DenseToCSRSparseMatrix(dense_input=x, indices=where)

    def back(m):
        return r.CSRSparseMatrixToDense(sparse_input=m, type=tf.float32)

    table.op("dense", lambda x: back(csr(x)), [dense])
    table.op("sparse", lambda x: list(r.CSRSparseMatrixToSparseTensor(
        sparse_matrix=csr(x), type=tf.float32)), [dense])
    table.op("components", lambda x: list(r.CSRSparseMatrixComponents(
        csr_sparse_matrix=csr(x), index=0, type=tf.float32)), [dense])
    table.op("count", lambda x: r.SparseMatrixNNZ(sparse_matrix=csr(x)), [dense])
    table.op("transpose", lambda x: back(r.SparseMatrixTranspose(
        input=csr(x), type=tf.float32)), [dense])
    table.op("product", lambda x, y: r.SparseMatrixMatMul(
        a=csr(x), b=y, transpose_a=True), [dense, dense])
    table.op("turned", lambda x, y: r.SparseMatrixMatMul(
        a=csr(x), b=y, transpose_b=True, transpose_output=True), [dense, dense])
    table.op("both", lambda x, y: back(r.SparseMatrixSparseMatMul(
        a=csr(x), b=csr(y), transpose_b=True, type=tf.float32)), [dense, dense])
    table.op("cholesky", lambda x, p: back(r.SparseMatrixSparseCholesky(
        input=csr(x), permutation=p, type=tf.float32)),
        [square, np.array([2, 0, 3, 1], np.int32)])


def clusters(table):
    points = ffc.normal([40, 3], 1)
    table.op("neighbours", lambda p, c: list(tf.raw_ops.NearestNeighbors(
        points=p, centers=c, k=3)), [points, points[::9] + 0.1], rtol=1e-4)
    for seed in (1, 7, 1 << 40):
        table.op("first centers", lambda p, s=seed:
                 tf.raw_ops.KmeansPlusPlusInitialization(
                     points=p, num_to_sample=4, seed=s,
                     num_retries_per_sample=2), [points])
        table.op("chain", lambda d, s=seed: tf.raw_ops.KMC2ChainInitialization(
            distances=d, seed=s), [np.abs(points[:, 0])])


def main():
    table = ffc.Cases()
    for case in (saved_iterator, several_devices, files, batches):
        with table.case(case.__name__):
            case()
    sparse_matrices(table)
    clusters(table)
    table.finish(15)


ffc.run(main)
