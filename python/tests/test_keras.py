"""`ferroflow.keras` with Keras 2, and with Keras 3 on each of its frameworks."""

import importlib.util
import os
import tempfile
import unittest

import ranks


def trains():
    """fit() equals that of one process with the whole batches. Callbacks, saving and loading."""
    import keras
    import numpy as np

    import ferroflow.keras as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()

    def model(seed):
        keras.utils.set_random_seed(seed)
        return keras.Sequential([keras.layers.Input((6,)),
                                 keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(2)])

    random = np.random.RandomState(0)
    x, y = (random.randn(8 * n, w).astype(np.float32) for w in (6, 2))
    mine = [np.concatenate([a.reshape(2, n, 4, -1)[i, r] for i in range(2)]) for a in (x, y)]
    reference = model(0)
    reference.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    reference.fit(x, y, batch_size=4 * n, epochs=3, shuffle=False, verbose=0)
    net = model(r)
    net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), "mse")
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                 hvd.callbacks.MetricAverageCallback()]
    history = net.fit(*mine, batch_size=4, epochs=3, shuffle=False, verbose=0, callbacks=callbacks)
    for a, b in zip(reference.get_weights(), net.get_weights()):
        assert np.allclose(a, b, atol=1e-4), np.abs(a - b).max()
    losses = hvd.allgather(np.array([history.history["loss"]]))
    assert np.allclose(losses, losses[0]), losses
    net.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
    rates = net.fit(*mine, batch_size=4, epochs=4, verbose=0, callbacks=[
        hvd.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=2),
        hvd.callbacks.LearningRateScheduleCallback(0.1, 0.5, start_epoch=2)]).history["lr"]
    assert np.allclose(rates[1:], [0.1, 0.1, 0.05]) and rates[0] < 0.1 + 1e-6, rates
    if hvd.backend() == "tensorflow":
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), backward_passes_per_step=2)
        net.compile(optimizer, "mse")
        net.fit(*mine, batch_size=4, epochs=2, verbose=0)
    net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    net.fit(*mine, epochs=1, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        net.save(path)
        loaded = hvd.load_model(path)
    loaded.fit(*mine, epochs=1, verbose=0)
    weights = np.concatenate([w.ravel() for w in loaded.get_weights()])
    assert np.allclose(hvd.broadcast(weights, 0), weights, atol=1e-6)
    hvd.shutdown()


def computes():
    """Keras 2: gradients are reduced once, whether the optimizer computes them or only applies
    them."""
    import keras
    import tensorflow as tf

    import ferroflow.keras as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    total = n * (n + 1) / 2
    for make in (keras.optimizers.SGD, keras.optimizers.legacy.SGD):
        w = tf.Variable([0.0])
        optimizer = hvd.DistributedOptimizer(make(1.0), op=hvd.Sum)
        copy = optimizer.from_config(optimizer.get_config())

        def loss():
            return tf.reduce_sum(w) * (r + 1)

        def own():
            with tf.GradientTape() as tape:
                value = loss()
            return [(tape.gradient(value, w), w)]

        def steps(apply, size):
            before = float(w[0])
            apply()
            assert before - float(w[0]) == size, (make, before, w, size)
        [(gradient, _)] = optimizer._compute_gradients(loss, [w])
        assert gradient == total, gradient
        steps(lambda: optimizer.apply_gradients([(gradient, w)]), total)
        steps(lambda: optimizer.minimize(loss, [w]), total)
        steps(lambda: optimizer.apply_gradients(own()), total)
        steps(lambda: optimizer.apply_gradients(
            own(), experimental_aggregate_gradients=False), r + 1)
        steps(lambda: copy.apply_gradients(own()), total)
    # One rank has an infinite gradient: all ranks leave out the step.
    w = tf.Variable([1.0])
    optimizer = keras.mixed_precision.LossScaleOptimizer(
        hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)))
    for factor in (float("inf") if r == n - 1 else 1.0, 1.0):
        before = float(w[0])
        optimizer.minimize(lambda: tf.reduce_sum(w) * factor, [w])
    assert before == 1.0 and w[0] == 0.0, (before, w)
    # Each pass is an iteration. The last pass applies the sum.
    w = tf.Variable([0.0])
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), backward_passes_per_step=2)
    for i in range(4):
        optimizer.minimize(lambda: tf.reduce_sum(w) * (r + 1), [w])
        assert int(optimizer.iterations) == i + 1
        assert w[0] == -(n + 1) * ((i + 1) // 2), w
    hvd.shutdown()


def scales():
    """Keras 3: an infinite gradient on one rank leaves out the step on all."""
    import keras
    import numpy as np

    import ferroflow.keras as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    scaled = keras.optimizers.LossScaleOptimizer
    for make in (lambda o: scaled(hvd.DistributedOptimizer(o)),
                 lambda o: hvd.DistributedOptimizer(scaled(o))):
        net = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(
            1, kernel_initializer="ones", use_bias=False)])
        net.compile(make(keras.optimizers.SGD(0.25)), "mse")
        bad = np.full((1, 1), np.inf if r == n - 1 else 1.0, np.float32)
        net.fit(bad, np.zeros((1, 1), np.float32), verbose=0)
        assert net.get_weights()[0] == 1.0, net.get_weights()
        # The gradient of rank r is 2 (r + 1).
        net.fit(np.ones((1, 1), np.float32), np.full((1, 1), -float(r), np.float32), verbose=0)
        assert net.get_weights()[0] == 1.0 - 0.25 * (n + 1), net.get_weights()
    hvd.shutdown()


@ranks.requires("keras")
class Keras(unittest.TestCase):
    def test_fit_equals_one_process_with_the_whole_batches(self):
        ran = False
        for framework in ("tensorflow", "torch", "jax"):
            if importlib.util.find_spec(framework) is None:
                continue
            from importlib.metadata import version
            if framework != "tensorflow" and version("keras").startswith("2"):
                continue
            ran = True
            with self.subTest(framework):
                for n in (2, 4):
                    ranks.run(self, n, __file__, "trains", {"KERAS_BACKEND": framework})
        if not ran:
            self.skipTest("no framework of Keras is installed; `cargo xtask python --all` runs "
                          "this")


    def test_gradients_are_reduced_once(self):
        from importlib.metadata import version
        if importlib.util.find_spec("tensorflow") is None or not version("keras").startswith("2"):
            self.skipTest("needs Keras 2")
        ranks.run(self, 2, __file__, "computes")


    def test_an_infinite_gradient_leaves_out_the_step_on_all_ranks(self):
        from importlib.metadata import version
        if version("keras").startswith("2"):
            self.skipTest("needs Keras 3")
        for framework in ("tensorflow", "torch", "jax"):
            if importlib.util.find_spec(framework) is not None:
                with self.subTest(framework):
                    ranks.run(self, 2, __file__, "scales", {"KERAS_BACKEND": framework})


if __name__ == "__main__":
    unittest.main()
