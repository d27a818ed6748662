"""A compiled data-parallel training step with JAX. Start: ferroflow run -np 2 -- python
jax_mlp.py"""

import jax
import jax.numpy as jnp

import ferroflow.jax as hvd

hvd.init()
key = jax.random.PRNGKey(hvd.rank())
x = jax.random.normal(key, (256, 8))
y = jnp.tanh(x.sum(1, keepdims=True))
one, two = jax.random.split(key)
params = {"w1": jax.random.normal(one, (8, 32)) * 0.3, "b1": jnp.zeros(32),
          "w2": jax.random.normal(two, (32, 1)) * 0.3, "b2": jnp.zeros(1)}


def loss(p, batch):
    x, y = batch
    return ((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"] - y) ** 2).mean()


def sgd(grads, state, params):
    return jax.tree_util.tree_map(lambda g: -0.1 * g, grads), state


params = hvd.broadcast(params, root_rank=0)
step = hvd.data_parallel_step(loss, sgd)
for _ in range(300):
    params, _, value = step(params, (), (x, y))
if hvd.rank() == 0:
    print(f"loss of {hvd.size()} ranks: {float(value):.4f}")
assert value < 0.1
