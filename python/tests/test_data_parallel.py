"""A linear model, trained through each door: N ranks give exactly what one process gives with the
batches of all, deterministic jobs give the same bits again, and ranks may have less data."""

import importlib.util
import os
import unittest

import ranks

RATE = 0.25


def _torch(n_in, n_out, backend=False):
    """A layer whose gradients `ferroflow.torch` averages, or DDP with the backend."""
    import torch

    layer = torch.nn.Linear(n_in, n_out, bias=False)
    with torch.no_grad():
        layer.weight.zero_()
    optimizer, model = torch.optim.SGD(layer.parameters(), lr=RATE), layer
    if backend:
        model = torch.nn.parallel.DistributedDataParallel(layer)
    else:
        import ferroflow.torch as hvd
        optimizer = hvd.DistributedOptimizer(optimizer, layer.named_parameters())

    def step(x, y):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(torch.tensor(x)), torch.tensor(y)).backward()
        optimizer.step()

    def assign(value):
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(value).t())
    return step, lambda: layer.weight.detach().numpy().T.copy(), assign


def _tape(n_in, n_out):
    """`DistributedGradientTape` in a tf.function."""
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    w = tf.Variable(tf.zeros((n_in, n_out)))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        [gradient] = hvd.DistributedGradientTape(tape).gradient(loss, [w])
        w.assign_sub(RATE * gradient)
    return step, w.numpy, w.assign


def _session(n_in, n_out, tf=None, hvd=None):
    """The v1 optimizer in a session, of TensorFlow or of `ferroflow.compat.v1`."""
    if tf is None:
        import tensorflow.compat.v1 as tf

        import ferroflow.tensorflow as hvd
        tf.disable_eager_execution()
    x, y = tf.placeholder(tf.float32, [None, n_in]), tf.placeholder(tf.float32, [None, n_out])
    w = tf.get_variable("w", [n_in, n_out], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    train = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(RATE)).minimize(loss)
    value = tf.placeholder(tf.float32, [n_in, n_out])
    assign = w.assign(value)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return (lambda a, b: session.run(train, {x: a, y: b}), lambda: session.run(w),
            lambda v: session.run(assign, {value: v}))


def _graphs(n_in, n_out):
    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    return _session(n_in, n_out, tf, hvd)


def _keras(n_in, n_out):
    """fit() of a Keras model, on the framework of KERAS_BACKEND."""
    import keras

    import ferroflow.keras as hvd
    net = keras.Sequential([keras.layers.Input((n_in,)), keras.layers.Dense(
        n_out, kernel_initializer="zeros", use_bias=False)])
    net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(RATE)), "mse")
    return (lambda x, y: net.fit(x, y, batch_size=len(x), shuffle=False, verbose=0),
            lambda: net.get_weights()[0], lambda v: net.set_weights([v]))


def _jax(n_in, n_out):
    import jax.numpy as jnp
    import numpy as np

    import ferroflow.jax as hvd
    state = {"w": jnp.zeros((n_in, n_out))}
    train = hvd.data_parallel_step(lambda w, batch: ((batch[0] @ w - batch[1]) ** 2).mean(),
                                   lambda grad, state, w: (-RATE * grad, state))

    def step(x, y):
        state["w"], _, _ = train(state["w"], (), (x, y))
    return (step, lambda: np.asarray(state["w"]),
            lambda v: state.update(w=jnp.asarray(v)))


DOORS = {
    "torch": (("torch",), _torch),
    "ddp": (("torch",), lambda a, b: _torch(a, b, backend=True)),
    "tape": (("tensorflow",), _tape),
    "session": (("tensorflow",), _session),
    "graphs": (("numpy",), _graphs),
    "keras on tensorflow": (("keras", "tensorflow"), _keras),
    "keras on torch": (("keras", "torch"), _keras),
    "keras on jax": (("keras", "jax"), _keras),
    "jax": (("jax",), _jax),
}


def _start():
    """The door's trainer and the job."""
    import numpy as np
    door = os.environ["DOOR"]
    if door == "ddp":
        import torch.distributed as hvd

        import ferroflow.torch.distributed  # noqa: F401 (registers the backend)
        hvd.init_process_group("ferroflow")
        rank, size, end = hvd.get_rank(), hvd.get_world_size(), hvd.destroy_process_group
    else:
        import ferroflow.hvd as hvd
        hvd.init()
        rank, size, end = hvd.rank(), hvd.size(), hvd.shutdown
    return np, DOORS[door][1], hvd, rank, size, end


def exactly():
    """Small integers, so that no sum is rounded in any order: all bits are those of one process
    with the whole batch."""
    np, trainer, _, r, n, end = _start()
    random = np.random.RandomState(0)
    x = random.randint(-1, 2, (3, 4 * n, 3)).astype(np.float32)
    y = random.randint(-2, 3, (3, 4 * n, 2)).astype(np.float32)
    want = np.zeros((3, 2), np.float32)
    step, weights, _ = trainer(3, 2)
    for a, b in zip(x, y):
        want -= np.float32(RATE) * (2 * a.T @ (a @ want - b) / b.size)
        step(a[4 * r:4 * r + 4], b[4 * r:4 * r + 4])
    assert np.array_equal(weights(), want), (weights(), want)
    end()
    print("equal")


def digest():
    """Prints a digest of the weights after some steps with random numbers."""
    import hashlib
    np, trainer, _, r, n, end = _start()
    random = np.random.RandomState(r)
    step, weights, _ = trainer(301, 77)
    for _ in range(5):
        step(random.randn(4, 301).astype(np.float32) / 20, random.randn(4, 77).astype(np.float32))
    print("digest", hashlib.sha256(np.ascontiguousarray(weights()).tobytes()).hexdigest())
    end()


def uneven():
    """Rank r has r + 1 batches, then joins. As in Horovod, gradients are averages over all ranks, to
    which ranks that have joined contribute zeros. At the end all take the weights of the last
    rank."""
    np, trainer, hvd, r, n, end = _start()
    random = np.random.RandomState(0)
    x = random.randint(-1, 2, (n, n, 4, 3)).astype(np.float32)
    y = random.randint(-2, 3, (n, n, 4, 2)).astype(np.float32)
    step, weights, assign = trainer(3, 2)
    for i in range(r + 1):
        step(x[r, i], y[r, i])
    last = hvd.join()
    assert n == 1 or last == n - 1, last
    assign(hvd.broadcast(weights(), last))
    want = np.zeros((3, 2), np.float32)
    for i in range(n):
        grads = [2 * x[q, i].T @ (x[q, i] @ want - y[q, i]) / 8 for q in range(i, n)]
        want -= np.float32(RATE) * (sum(grads) / n)
    assert np.allclose(weights(), want, atol=1e-6), (weights(), want)
    end()
    print("equal")


class DataParallel(unittest.TestCase):
    def _each(self, run, without=()):
        """Calls `run(environment)` for each door whose frameworks are installed."""
        for door, (frameworks, _) in DOORS.items():
            if door in without:
                continue
            with self.subTest(door):
                missing = [f for f in frameworks if importlib.util.find_spec(f) is None]
                if missing:
                    self.skipTest(f"{', '.join(missing)} not installed; `cargo xtask python --all` "
                                  "runs this")
                env = {"DOOR": door}
                if " on " in door:
                    env["KERAS_BACKEND"] = door.split()[-1]
                    if env["KERAS_BACKEND"] != "tensorflow" and _keras_version() < 3:
                        self.skipTest("Keras 2 works with TensorFlow only")
                run(env)

    def test_ranks_give_exactly_what_one_process_gives_with_the_whole_batch(self):
        def run(env):
            for n in (2, 4):
                outs = ranks.run(self, n, __file__, "exactly", env)
                self.assertTrue(all("equal" in out for out in outs), outs)
        self._each(run)

    def test_deterministic_jobs_give_the_same_bits_again(self):
        def run(env):
            outs = []
            for _ in range(2):
                outs += ranks.run(self, 4, __file__, "digest",
                                  {"FERROFLOW_DETERMINISTIC": 1, **env})
            digests = {line for out in outs for line in out.splitlines() if "digest" in line}
            self.assertEqual(len(digests), 1, outs)
        self._each(run)

    def test_ranks_with_less_data_join(self):
        def run(env):
            for n in (2, 4):
                outs = ranks.run(self, n, __file__, "uneven", env)
                self.assertTrue(all("equal" in out for out in outs), outs)
        # torch.distributed has `Join` for this, see test_torch_distributed.
        self._each(run, without=("ddp",))


def _keras_version():
    from importlib.metadata import version
    return int(version("keras").split(".")[0])


if __name__ == "__main__":
    unittest.main()
