#!/usr/bin/env python3
"""Trains the four models in JAX from the weights and the data of `ferroflow-oracle gpu-losses`, and
compares the losses. Prints a line of JSON for each folder, and fails if one differs by too much.

    ferroflow-oracle gpu-losses block FOLDER
    python3 bench/gpu/compare_losses.py FOLDER...
"""

import functools
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np

F32, BF16 = jnp.float32, jnp.bfloat16
# The largest relative difference of a loss. Sums of 16-bit products differ in their last bits, and
# a step of resnet50 with this learning rate makes that difference larger.
TOLERANCE = {"mlp": 2e-3, "cnn": 2e-3, "resnet50": 2e-2, "block": 2e-3}


def conv(x, w, stride, pad):
    return jax.lax.conv_general_dilated(
        x, w.astype(x.dtype), (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x, size, stride, pad):
    pads = [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


def cross_entropy(logits):
    n, classes = logits.shape
    labels = jnp.arange(n) * 7 % classes
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def dense(p, name, x):
    return x @ p[name + "/kernel"] + p[name + "/bias"]


def mlp(p, x):
    x = jax.nn.relu(dense(p, "a", x))
    return cross_entropy(dense(p, "c", jax.nn.relu(dense(p, "b", x))))


def cnn(p, x):
    for name in "ab":
        x = pool(jax.nn.relu(conv(x, p[name + "/kernel"], 1, 2) + p[name + "/bias"]), 2, 2, 0)
    x = jax.nn.relu(dense(p, "c", x.reshape(x.shape[0], -1)))
    return cross_entropy(dense(p, "d", x))


def conv_norm(p, name, x, stride):
    w = p[name + "/w"]
    y = conv(x, w, stride, (w.shape[0] - 1) // 2).astype(F32)
    mean = y.mean((0, 1, 2))
    variance = ((y - mean) ** 2).mean((0, 1, 2))
    y = (y - mean) * jax.lax.rsqrt(variance + 1e-4) * p[name + "/scale"] + p[name + "/offset"]
    return y.astype(BF16)


def resnet50(p, x):
    y = jax.nn.relu(conv_norm(p, "stem", x.astype(BF16), 2))
    y = pool(y, 3, 2, 1)
    for stage, (count, stride) in enumerate([(3, 1), (4, 2), (6, 2), (3, 2)]):
        for k in range(count):
            at, step = f"stage{stage}/{k}/", stride if k == 0 else 1
            short = conv_norm(p, at + "short", y, step) if k == 0 else y
            inner = jax.nn.relu(conv_norm(p, at + "a", y, 1))
            inner = jax.nn.relu(conv_norm(p, at + "b", inner, step))
            y = jax.nn.relu(conv_norm(p, at + "c", inner, 1) + short)
    y = y.astype(F32).mean((1, 2)).astype(BF16)
    return cross_entropy((y @ p["head/w"].astype(BF16)).astype(F32) + p["head/b"])


def half_dense(p, name, x):
    return x @ p[name + "/w"].astype(BF16) + p[name + "/b"].astype(BF16)


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(variance + 1e-12) * p[name + "/gamma"] + p[name + "/beta"]
    return y.astype(BF16)


def block(p, x, target):
    rows, width = x.shape
    length, heads = 512, 16
    split = jnp.split(half_dense(p, "qkv", layer_norm(p, "n1", x)), 3, 1)
    q, k, v = (t.reshape(-1, length, heads, 64).transpose(0, 2, 1, 3) for t in split)
    mask = jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0, -1e9).astype(BF16)
    scores = (q @ k.transpose(0, 1, 3, 2)) * BF16(0.125) + mask
    mixed = jax.nn.softmax(scores.astype(F32)).astype(BF16) @ v
    x = x + half_dense(p, "out", mixed.transpose(0, 2, 1, 3).reshape(rows, width)).astype(F32)
    up = half_dense(p, "up", layer_norm(p, "n2", x))
    gelu = jax.nn.gelu(up, approximate=True)
    y = x + half_dense(p, "down", gelu).astype(F32)
    return jnp.mean((y - target.reshape(rows, width)) ** 2)


def update(model, p, state, gradient, n):
    """The step of the model's optimizer, by TensorFlow's definition."""
    tree = jax.tree_util.tree_map
    if model == "mlp":
        return tree(lambda a, g: a - 0.1 * g, p, gradient), state
    if model in ("cnn", "resnet50"):
        rate = 0.01 if model == "cnn" else 0.1
        m = tree(lambda m, g: 0.9 * m + g, state[0], gradient)
        return tree(lambda a, m: a - rate * m, p, m), (m, state[1])
    m = tree(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradient)
    v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, state[1], gradient)
    rate = 1e-4 * jnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
    return tree(lambda a, m, v: a - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), (m, v)


MODELS = {"mlp": mlp, "cnn": cnn, "resnet50": resnet50, "block": block}


def compare(folder):
    with open(os.path.join(folder, "losses.json")) as f:
        ours = json.load(f)
    def read(one):
        values = np.fromfile(os.path.join(folder, one["file"]), "<f4")
        return jnp.asarray(values.reshape(one["shape"]))
    # Values have the names of the nodes that read the variables, such as
    # `a/kernel/Read/ReadVariableOp:0`.
    p = {one["name"].split("/Read/")[0]: read(one) for one in ours["variables"]}
    inputs = [read(one) for one in ours["inputs"]]
    model = ours["model"]

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(p, state, n, inputs):
        loss, gradient = jax.value_and_grad(MODELS[model])(p, *inputs)
        return (*update(model, p, state, gradient, n), loss)

    zeros = lambda: jax.tree_util.tree_map(jnp.zeros_like, p)
    state, theirs = (zeros(), zeros()), []
    for n in range(len(ours["losses"])):
        p, state, loss = step(p, state, jnp.float32(n + 1), inputs)
        theirs.append(float(loss))
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours["losses"], theirs))
    line = {"kind": "losses", "model": model, "batch": ours["batch"], "losses": ours["losses"], "jax": theirs,
            "largest_difference": worst, "ok": worst <= TOLERANCE[model]}
    print(json.dumps(line), flush=True)
    return line["ok"]


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    sys.exit(not all([compare(folder) for folder in sys.argv[1:]]))
