"""`ferroflow.hvd` in graphs of `ferroflow.compat.v1`, on 1 to 3 ranks, compared with numpy."""

import os
import tempfile
import unittest

import ranks

DTYPES = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def everything():
    """Every function and type, on a rank."""
    import numpy as np

    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    fetches, wanted = {}, {}

    def expect(name, tensor, value):
        fetches[name], wanted[name] = tensor, np.asarray(value)

    for dtype in DTYPES:
        every = [(np.arange(12) % 3 + q).astype(dtype).reshape(3, 4) for q in range(n)]
        total = sum(every[1:], every[0])
        rows = [np.repeat(e[:1], 2 * n + 1, 0) for e in every]
        x = tf.constant(every[r], name=f"x_{dtype}")
        expect(f"sum {dtype}", hvd.allreduce(x, op=hvd.Sum), total)
        expect(f"min {dtype}", hvd.allreduce(x, op=hvd.Min), np.minimum.reduce(every))
        expect(f"max {dtype}", hvd.allreduce(x, op=hvd.Max), np.maximum.reduce(every))
        expect(f"product {dtype}", hvd.allreduce(x, op=hvd.Product), np.multiply.reduce(every))
        mean = (total / n if "float" in dtype else np.trunc(total / n)).astype(dtype)
        expect(f"mean {dtype}", hvd.allreduce(x), mean)
        expect(f"gather {dtype}", hvd.allgather(x), np.concatenate(every))
        expect(f"uneven {dtype}", hvd.allgather(x[:r + 1], name=f"uneven_{dtype}"),
               np.concatenate([e[:q + 1] for q, e in enumerate(every)]))
        expect(f"broadcast {dtype}", hvd.broadcast(x, n - 1), every[n - 1])
        expect(f"exchange {dtype}", hvd.alltoall(tf.constant(np.repeat(every[r][:1], n, 0))),
               np.concatenate([e[:1] for e in every]))
        begin = 0 if r == 0 else 2 * r + 1
        scattered = sum(rows[1:], rows[0])[begin:begin + 2 + (r == 0)]
        expect(f"scatter {dtype}", hvd.reducescatter(tf.constant(rows[r]), op=hvd.Sum), scattered)
        grouped = hvd.grouped_allreduce([x, x[:1]], op=hvd.Sum)
        expect(f"grouped {dtype}", grouped[1], total[:1])
    ones = tf.ones([3])
    expect("scaled", hvd.allreduce(ones, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0),
           [1.5 * n] * 3)
    expect("half", hvd.allreduce(ones * 2, op=hvd.Sum, compression=hvd.Compression.fp16,
                                 name="half"), [2.0 * n] * 3)
    expect("scalar", hvd.allgather(tf.constant(r)), list(range(n)))
    out, received = hvd.alltoall(tf.range(n * (n + 1) // 2), splits=list(range(1, n + 1)))
    expect("received", received, [r + 1] * n)
    expect("rank", hvd.rank_op(), r)
    expect("size", hvd.size_op(), n)
    expect("local", hvd.local_rank_op() + hvd.local_size_op(), r + n)
    expect("included", hvd.process_set_included_op(), 1)
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([r]), tf.constant([n, 2]))
    expect("slices", tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum)), np.ones((n, 2)))
    scaled = hvd.allreduce(slices, op=hvd.Sum, prescale_factor=3.0, postscale_factor=0.5)
    expect("scaled slices", tf.convert_to_tensor(scaled), np.full((n, 2), 1.5))
    variable = tf.get_variable("v", initializer=[float(r), 2.0])
    w = tf.ones([3])
    total = sum(range(1, n + 1))
    for name, made, gradient in (
            ("allreduce", hvd.allreduce(w, op=hvd.Sum, name="g1"), total),
            ("average", hvd.allreduce(w, name="g2"), total / n),
            ("allgather", hvd.allgather(w, name="g3"), total / n),
            ("broadcast", hvd.broadcast(w, 0, name="g4"), total / n if r == 0 else 0),
            ("alltoall", hvd.alltoall(tf.tile(w[:1], [n]), name="g5"), [total, 0, 0]),
            ("reducescatter", hvd.reducescatter(tf.tile(w[:1], [n]), op=hvd.Sum, name="g6"),
             [n * total, 0, 0])):
        [found] = tf.gradients(tf.reduce_sum(made) * (r + 1), [w])
        expect(f"gradient of {name}", found, np.broadcast_to(gradient, [3]))
    broadcast = hvd.broadcast_variables([variable], 0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got = session.run(fetches)
        session.run(broadcast)
        assert session.run(variable).tolist() == [0.0, 2.0]
    for name, value in got.items():
        assert np.allclose(value, wanted[name]), (name, value, wanted[name])
        kind = name.split()[-1]
        assert kind not in DTYPES or value.dtype == kind, (name, value.dtype)
    assert hvd.allreduce(np.ones(2), op=hvd.Sum)[0] == n
    hvd.join()
    hvd.shutdown()


def _data(n):
    import numpy as np
    random = np.random.RandomState(0)
    return (random.randn(4 * n, 3).astype(np.float32), random.randn(4 * n, 2).astype(np.float32))


def trains():
    """A program as Horovod's documents have it: a checkpoint of rank 0, variables from rank 0, and
    the weights of one process with the whole batch."""
    import numpy as np

    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    inputs, targets = _data(n)

    def model(x, y, initial):
        w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(initial))
        b = tf.get_variable("b", [2], initializer=tf.constant_initializer(initial))
        return w, b, tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))

    def weights(session, *variables):
        return np.concatenate([v.ravel() for v in session.run(list(variables))])

    with tf.Graph().as_default():
        w, b, loss = model(tf.constant(inputs), tf.constant(targets), 0.5)
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(10):
                session.run(train_op)
            whole = weights(session, w, b)

    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    mine = slice(4 * r, 4 * r + 4)
    for passes, options in ((1, {}), (1, {"gradient_predivide_factor": 2.0}),
                            (1, {"compression": hvd.Compression.none, "sparse_as_dense": True}),
                            (2, {"average_aggregated_gradients": True})):
        with tf.Graph().as_default():
            x, y = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [4, 2])
            # The ranks begin with different values. Rank 0's count.
            w, b, loss = model(x, y, 0.5 + r)
            optimizer = tf.train.AdagradOptimizer(0.1)
            optimizer = hvd.DistributedOptimizer(optimizer, backward_passes_per_step=passes,
                                                 **options)
            step = tf.train.get_or_create_global_step()
            train_op = optimizer.minimize(loss, global_step=step)
            hooks = [hvd.BroadcastGlobalVariablesHook(0),
                     tf.train.StopAtStepHook(last_step=10)]
            folder = os.path.join(os.environ["CHECKPOINTS"], f"{passes}-{len(options)}")
            checkpoint_dir = folder if hvd.rank() == 0 else None
            with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, config=config,
                                                   hooks=hooks) as session:
                while not session.should_stop():
                    session.run(train_op, {x: inputs[mine], y: targets[mine]})
                    if not session.should_stop():
                        got = weights(session, w, b)
                if session.should_stop():
                    got = weights(session._coordinated_creator.tf_sess, w, b)
            assert r != 0 or tf.train.latest_checkpoint(folder), os.listdir(folder)
        assert np.allclose(got, whole, atol=1e-5), (passes, options, got, whole)
    hvd.shutdown()


def embeds():
    """The sparse gradients of an embedding."""
    import numpy as np

    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    for sparse_as_dense in (False, True):
        with tf.Graph().as_default():
            table = tf.get_variable("table", [n + 1, 2], initializer=tf.zeros_initializer())
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([r, n])))
            optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0),
                                                 op=hvd.Sum, sparse_as_dense=sparse_as_dense)
            train_op = optimizer.minimize(loss)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(train_op)
                got = session.run(table)
        assert np.allclose(got[:n], -1.0) and np.allclose(got[n], -n), got
    hvd.shutdown()


def mistakes():
    """Rank 1 makes a mistake. All ranks get an error that names it."""
    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    wrong, n = hvd.rank() == 1, hvd.size()
    cases = [
        hvd.allreduce(tf.ones([3 if wrong else 2]), name="shape"),
        hvd.allreduce(tf.ones([2], tf.float64 if wrong else tf.float32), name="dtype"),
        hvd.allreduce(tf.ones([2]), op=hvd.Min if wrong else hvd.Sum, name="op"),
        hvd.broadcast(tf.ones([2]), 1 if wrong else 0, name="root"),
    ]
    fine = hvd.allreduce(tf.ones([2]), op=hvd.Sum, name="fine")
    with tf.Session() as session:
        for case in cases:
            try:
                session.run(case)
            except tf.errors.InvalidArgumentError as e:
                assert "ranks [1]" in str(e), e
            else:
                raise AssertionError(f"no error: {case.name}")
            assert session.run(fine)[0] == n
    try:
        hvd.DistributedOptimizer("adam")
    except ValueError as e:
        assert "tf.train" in str(e), e
    hvd.shutdown()
    with tf.Session() as session:
        try:
            session.run(fine)
        except tf.errors.FailedPreconditionError as e:
            assert "shut down" in str(e), e
        else:
            raise AssertionError("a collective after shutdown()")


class HvdGraph(unittest.TestCase):
    def test_every_function_and_type_gives_what_numpy_gives(self):
        for n in (1, 2, 3):
            ranks.run(self, n, __file__, "everything")

    def test_training_equals_one_process_with_the_whole_batch(self):
        for n in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                ranks.run(self, n, __file__, "trains", {"CHECKPOINTS": folder})

    def test_sparse_gradients_are_reduced(self):
        ranks.run(self, 2, __file__, "embeds")

    def test_a_mistake_of_one_rank_is_an_error_of_all_that_names_it(self):
        ranks.run(self, 3, __file__, "mistakes")


if __name__ == "__main__":
    unittest.main()
