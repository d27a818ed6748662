"""Data-parallel training with Keras. Start: ferroflow run -np 2 -- python keras_mlp.py"""

import keras
import numpy as np

import ferroflow.keras as hvd

hvd.init()
keras.utils.set_random_seed(hvd.rank())
x = np.random.normal(size=(256, 8)).astype("float32")
y = np.tanh(x.sum(1, keepdims=True))
model = keras.Sequential([
    keras.layers.Input((8,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
history = model.fit(x, y, batch_size=64, epochs=30, verbose=0, callbacks=[
    hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
loss = history.history["loss"][-1]
if hvd.rank() == 0:
    print(f"loss of {hvd.size()} ranks: {loss:.4f}")
assert loss < 0.1
