"""Data-parallel training with tf.function. Start: ferroflow run -np 2 -- python
tensorflow_mlp.py"""

import tensorflow as tf

import ferroflow.tensorflow as hvd

hvd.init()
tf.random.set_seed(hvd.rank())
x = tf.random.normal((256, 8))
y = tf.tanh(tf.reduce_sum(x, 1, keepdims=True))
w1, b1 = tf.Variable(tf.random.normal((8, 32)) * 0.3), tf.Variable(tf.zeros(32))
w2, b2 = tf.Variable(tf.random.normal((32, 1)) * 0.3), tf.Variable(tf.zeros(1))
variables = [w1, b1, w2, b2]
hvd.broadcast_variables(variables, root_rank=0)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    for gradient, variable in zip(tape.gradient(loss, variables), variables):
        variable.assign_sub(0.1 * gradient)
    return loss


for _ in range(300):
    loss = step()
loss = hvd.allreduce(loss, name="loss")
if hvd.rank() == 0:
    print(f"loss of {hvd.size()} ranks: {float(loss):.4f}")
assert loss < 0.1
