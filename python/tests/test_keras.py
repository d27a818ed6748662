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


if __name__ == "__main__":
    unittest.main()
