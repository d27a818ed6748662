"""`ferroflow.tensorflow`: eagerly, in tf.function and in v1 sessions."""

import unittest

import ranks


def everything():
    """Every function and type, on a rank."""
    import numpy as np
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32,
                  tf.int64, tf.uint8):
        def numbers(tensor):
            return tf.cast(tensor, tf.int64).numpy().tolist()

        def calls(x):
            return (hvd.allreduce(x, op=hvd.Sum), hvd.allgather(x), hvd.broadcast(x, n - 1),
                    hvd.alltoall(tf.tile(x[:1], [n])),
                    hvd.reducescatter(tf.tile(x[:1], [n]), op=hvd.Max),
                    hvd.grouped_allreduce([x, x], op=hvd.Min)[1], hvd.grouped_allgather([x])[0])
        x = tf.cast(tf.range(6) % 3 + r, dtype)
        total = sum(np.arange(6) % 3 + q for q in range(n)).tolist()
        joined = np.concatenate([np.arange(6) % 3 + q for q in range(n)]).tolist()
        for each in (calls, tf.function(calls)):
            reduced, gathered, sent, swapped, part, least, again = each(x)
            assert numbers(reduced) == total and reduced.dtype == dtype, dtype
            assert numbers(gathered) == joined and numbers(again) == joined, dtype
            assert numbers(sent) == (np.arange(6) % 3 + n - 1).tolist()
            assert numbers(swapped) == list(range(n)) and numbers(part) == [n - 1]
            assert numbers(least) == (np.arange(6) % 3).tolist()
    z = hvd.allreduce(tf.constant([1 + 2j * r], tf.complex64), op=hvd.Sum)
    assert z.numpy()[0] == n + 2j * sum(range(n))
    rows, received = hvd.alltoall(tf.range(n * (n + 1) // 2), splits=list(range(1, n + 1)))
    assert received.numpy().tolist() == [r + 1] * n and len(rows) == n * (r + 1)
    assert int(hvd.rank_op()) == r and int(tf.function(hvd.size_op)()) == n
    slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([r]), tf.constant([n, 2]))
    reduced = tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum))
    assert reduced.numpy().tolist() == [[1.0, 1.0]] * n
    reduced = hvd.allreduce(slices, op=hvd.Sum, prescale_factor=3.0, postscale_factor=0.5)
    assert tf.convert_to_tensor(reduced).numpy().tolist() == [[1.5, 1.5]] * n
    half = hvd.allreduce(tf.ones(3), op=hvd.Sum, compression=hvd.Compression.fp16)
    assert half.dtype == tf.float32 and half[0] == n
    variable = tf.Variable([float(r), 2.0])
    hvd.broadcast_variables([variable], 0)
    assert variable[0] == 0
    assert hvd.allgather_object(r) == list(range(n))
    assert hvd.grouped_allgather([]) == hvd.grouped_reducescatter([]) == []
    w = tf.Variable(tf.ones(3))
    with tf.GradientTape(persistent=True) as tape:
        reduced = tf.reduce_sum(hvd.allreduce(w, op=hvd.Sum) * (r + 1))
        gathered = tf.reduce_sum(hvd.allgather(w) * (r + 1))
        sent = tf.reduce_sum(hvd.broadcast(w, 0) * (r + 1))
        several = sum(tf.reduce_sum(t) * (r + 1) for t in hvd.grouped_allgather([w, 2 * w]))
        rows = tf.tile(tf.reshape(w, [1, 3]), [n, 1])
        summed = tf.reduce_sum(hvd.reducescatter(rows, op=hvd.Sum) * (r + 1))
        averaged = sum(tf.reduce_sum(t) * (r + 1)
                       for t in hvd.grouped_reducescatter([rows, rows], op=hvd.Average))
    # Gradients of gathers, broadcasts and reduce-scatters are averages over the ranks.
    total, mean = sum(range(1, n + 1)), sum(range(1, n + 1)) / n
    assert np.allclose(tape.gradient(reduced, w), total)
    assert np.allclose(tape.gradient(gathered, w), mean)
    assert np.allclose(tape.gradient(sent, w), mean if r == 0 else 0)
    assert np.allclose(tape.gradient(several, w), 3 * mean)
    assert np.allclose(tape.gradient(summed, w), n * total)
    assert np.allclose(tape.gradient(averaged, w), 2 * total)
    hvd.join()
    hvd.shutdown()


def _data(n):
    import numpy as np
    random = np.random.RandomState(0)
    return (random.randn(4 * n, 3).astype(np.float32), random.randn(4 * n, 2).astype(np.float32))


def trains():
    """The tape, the v1 optimizer and its hook equal one process with the whole batch."""
    import numpy as np
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    inputs, targets = _data(n)
    mine = slice(4 * r, 4 * r + 4)

    def train(part, **options):
        w, b = tf.Variable(tf.zeros((3, 2))), tf.Variable(tf.zeros(2))

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w + b - y) ** 2)
            if part is mine:
                tape = hvd.DistributedGradientTape(tape, **options)
            for g, v in zip(tape.gradient(loss, [w, b]), [w, b]):
                v.assign_sub(0.1 * g)
        for _ in range(10):
            step(inputs[part], targets[part])
        return np.concatenate([w.numpy().ravel(), b.numpy()])

    whole = train(slice(None))
    for options in ({}, {"num_groups": 1}, {"gradient_predivide_factor": 2.0}):
        assert np.allclose(train(mine, **options), whole, atol=1e-5), options
    v1 = tf.compat.v1
    for passes in (1, 2):
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [None, 3])
            y = v1.placeholder(tf.float32, [None, 2])
            w = v1.get_variable("w", [3, 2], initializer=tf.zeros_initializer())
            b = v1.get_variable("b", [2], initializer=tf.constant_initializer(float(r)))
            loss = tf.reduce_mean((x @ w + b - y) ** 2)
            optimizer = hvd.DistributedOptimizer(
                v1.train.GradientDescentOptimizer(0.1), backward_passes_per_step=passes,
                average_aggregated_gradients=True)
            train_op = optimizer.minimize(loss, v1.train.get_or_create_global_step())
            hooks = [hvd.BroadcastGlobalVariablesHook(0)]
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                for _ in range(10 * passes):
                    session.run(train_op, {x: inputs[mine], y: targets[mine]})
                got = np.concatenate([v.ravel() for v in session.run([w, b])])
        assert np.allclose(got, whole, atol=1e-5), (passes, got, whole)
    hvd.shutdown()


def normalizes():
    """SyncBatchNormalization gives what a layer with the whole batch gives, gradients too."""
    import numpy as np
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    random = np.random.RandomState(0)
    # The ranks have batches of different sizes.
    sizes = [2 + q for q in range(n)]
    begin, end = sum(sizes[:r]), sum(sizes[:r + 1])
    for shape in ((3,), (4, 5, 3)):
        inputs = random.randn(sum(sizes), *shape).astype(np.float32)
        scale = tf.constant(random.randn(sum(sizes), *shape).astype(np.float32))

        def run(layer, x, factor):
            x = tf.constant(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                out = layer(x, training=True)
                loss = tf.reduce_sum(out * factor)
            return [t.numpy() for t in (out, *tape.gradient(loss, [x, layer.gamma, layer.beta]),
                                        layer.moving_mean, layer.moving_variance)]
        mine = run(hvd.SyncBatchNormalization(momentum=0.9), inputs[begin:end], scale[begin:end])
        whole = tf.keras.layers.BatchNormalization(momentum=0.9)
        # Outside of the batch dimension alone, Keras would use another estimate of the variance.
        whole.fused = False
        out, dx, dgamma, dbeta, mean, variance = run(whole, inputs, scale)
        total = [hvd.allreduce(tf.constant(g), op=hvd.Sum).numpy() for g in mine[2:4]]
        for got, want in zip(mine[:2] + total + mine[4:],
                             (out[begin:end], dx[begin:end], dgamma, dbeta, mean, variance)):
            assert np.allclose(got, want, atol=1e-4), (shape, got, want)
        layer = hvd.SyncBatchNormalization()
        layer.build((None, *shape))
        assert np.allclose(layer(inputs, training=False), inputs / np.sqrt(1.001), atol=1e-5)
    hvd.shutdown()


def keeps_layers_local():
    """The gradients of local layers are not reduced, but divided by the number of ranks."""
    import numpy as np
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    for scale in (True, False):
        shared, own = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)
        x = tf.fill([1, 2], float(r + 1))
        for layer in (shared, own):
            layer.build((None, 2))
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(shared(x) + own(x))
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=[own],
                                                  scale_local_gradients=scale)
        got = tape.gradient(loss, [shared.kernel, own.kernel])
        assert np.allclose(got[0], (n + 1) / 2) and np.allclose(
            got[1], (r + 1) / (n if scale else 1)), (r, scale, got)
        [(local, a)], [(over_all, b)] = tape.get_local_and_global_gradients(
            loss, [shared.kernel, own.kernel])
        assert local is own.kernel and over_all is shared.kernel
        assert np.allclose(a, got[1]) and np.allclose(b, got[0])
        optimizer = hvd.PartialDistributedOptimizer(tf.keras.optimizers.SGD(1.0),
                                                    local_layers=own, scale_local_gradients=scale)
        for layer in (shared, own):
            layer.kernel.assign(tf.zeros([2, 1]))
        variables = shared.trainable_variables + own.trainable_variables
        gradients = [tf.fill(v.shape, float(r + 1)) for v in variables]
        optimizer.apply_gradients(zip(gradients, variables))
        assert np.allclose(shared.kernel, -(n + 1) / 2), shared.kernel
        assert np.allclose(own.kernel, -(r + 1) / (n if scale else 1)), own.kernel
    variables = [tf.Variable([float(r)]), tf.Variable(r)]
    hvd.broadcast_(variables, n - 1)
    assert variables[0][0] == n - 1 and variables[1] == n - 1
    hvd.shutdown()


def mistakes():
    """Rank 1 has another shape: all ranks get an error that names it. XLA is refused."""
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    for call in (hvd.allreduce, tf.function(hvd.allreduce)):
        try:
            call(tf.ones(3 if hvd.rank() == 1 else 2), name="bad")
        except tf.errors.FailedPreconditionError as e:
            assert "ranks [1]" in str(e), e
        else:
            raise AssertionError("no error")
    # A rank outside of a process set, and a process set that does not exist.
    some = hvd.add_process_set([0, 2])
    try:
        assert hvd.allreduce(tf.ones(2), op=hvd.Sum, process_set=some)[0] == 2
        assert hvd.rank() != 1
    except tf.errors.InvalidArgumentError as e:
        assert hvd.rank() == 1 and "rank 1 is not in process set 1" in str(e), e
    hvd.remove_process_set(some)
    some.process_set_id = 7
    try:
        hvd.allreduce(tf.ones(2), process_set=some)
    except ValueError as e:
        assert "no process set 7" in str(e), e
    else:
        raise AssertionError("no error")
    try:
        tf.function(hvd.allreduce, jit_compile=True)(tf.ones(2))
    except Exception as e:
        assert "jit_compile" in str(e), e
    else:
        raise AssertionError("no error")
    hvd.shutdown()


def waits_in_order():
    """More collectives in one step of a session than the session has threads."""
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    v1 = tf.compat.v1
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, [2])
        made = [hvd.allgather(tf.ones([i + 1]) * r) for i in range(12)]
        of_feed = hvd.allreduce(fed, op=hvd.Sum)
        after = hvd.allreduce(tf.ones(2), op=hvd.Sum)
        config = v1.ConfigProto(inter_op_parallelism_threads=2)
        with v1.Session(config=config) as session:
            # The ranks ask for the results in different orders.
            asked = made if r % 2 else made[::-1]
            got = session.run(asked)
            for values in got:
                assert values.sum() == sum(range(n)) * (len(values) // n), values
            # Gradients of one collective may be computed several times at once.
            x = tf.ones(3)
            total = hvd.allreduce(x, op=hvd.Sum)
            gathered, sent = hvd.allgather(x), hvd.broadcast(x, 0)
            gradients = [tf.gradients(y * i, x)[0] for i in (1.0, 2.0)
                         for y in (total, gathered, sent)]
            mine = float(r == 0)
            assert [g[0] for g in session.run(gradients)] == [n, 1, mine, 2 * n, 2, 2 * mine]
            # What does not need the feed runs without it.
            assert session.run(after)[0] == n
            assert session.run(of_feed, {fed: [1.0, 2.0]})[1] == 2 * n
    hvd.shutdown()


@ranks.requires("tensorflow")
class TensorFlow(unittest.TestCase):
    def test_every_function_and_type_gives_what_numpy_gives(self):
        for n in (1, 2, 3, 4):
            ranks.run(self, n, __file__, "everything")

    def test_training_equals_one_process_with_the_whole_batch(self):
        for n in (2, 4):
            ranks.run(self, n, __file__, "trains")

    def test_batches_are_normalized_over_all_ranks(self):
        for n in (1, 2):
            ranks.run(self, n, __file__, "normalizes")

    def test_sessions_with_few_threads_run_many_collectives(self):
        for n in (2, 3):
            ranks.run(self, n, __file__, "waits_in_order")

    def test_local_layers_keep_their_gradients(self):
        ranks.run(self, 2, __file__, "keeps_layers_local")

    def test_a_mistake_of_one_rank_is_an_error_of_all_that_names_it(self):
        ranks.run(self, 3, __file__, "mistakes", limit=120)


if __name__ == "__main__":
    unittest.main()
