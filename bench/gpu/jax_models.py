"""The four models of `ferroflow-oracle gpu-train` in JAX: one jitted training step with donated state."""
import argparse
import functools
import json
import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np

R = np.random.RandomState(0)


def dense(i, o):
    return {"w": jnp.asarray(R.randn(i, o) * (2 / i) ** 0.5, jnp.float32), "b": jnp.zeros(o)}


def kernel(k, i, o):
    return jnp.asarray(R.randn(k, k, i, o) * (2 / (k * k * i)) ** 0.5, jnp.float32)


def conv(x, w, stride=1, pad="SAME"):
    return jax.lax.conv_general_dilated(x, w.astype(x.dtype), (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x, k=2, s=2, pad="VALID"):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, k, k, 1), (1, s, s, 1), pad)


def apply(p, x):
    return x @ p["w"].astype(x.dtype) + p["b"].astype(x.dtype)


def xent(y, t):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(y.astype(jnp.float32)), t[:, None], 1))


def norm(p, x):  # batch norm in training; running averages are updated apart
    x32 = x.astype(jnp.float32)
    m, v = x32.mean((0, 1, 2)), x32.var((0, 1, 2))
    return (((x32 - m) * jax.lax.rsqrt(v + 1e-5)) * p["g"] + p["b"]).astype(x.dtype)


def bn(c):
    return {"g": jnp.ones(c), "b": jnp.zeros(c)}


def mlp():
    p = [dense(784, 512), dense(512, 512), dense(512, 10)]

    def loss(p, x, t):
        h = jax.nn.relu(apply(p[0], x))
        h = jax.nn.relu(apply(p[1], h))
        return xent(apply(p[2], h), t)
    return p, loss, R.randn(128, 784).astype("f"), R.randint(10, size=128), "sgd"


def cnn():
    p = [kernel(5, 1, 32), jnp.zeros(32), kernel(5, 32, 64), jnp.zeros(64), dense(3136, 1024), dense(1024, 10)]

    def loss(p, x, t):
        h = pool(jax.nn.relu(conv(x, p[0]) + p[1]))
        h = pool(jax.nn.relu(conv(h, p[2]) + p[3]))
        h = jax.nn.relu(apply(p[4], h.reshape(h.shape[0], -1)))
        return xent(apply(p[5], h), t)
    return p, loss, R.randn(64, 28, 28, 1).astype("f"), R.randint(10, size=64), "momentum"


def resnet50():
    p = {"stem": kernel(7, 3, 64), "norm": bn(64), "head": dense(2048, 1000), "body": []}
    plan, i = [], 64
    for mid, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n):
            s = stride if k == 0 else 1
            b = {"a": kernel(1, i, mid), "na": bn(mid), "b": kernel(3, mid, mid), "nb": bn(mid), "c": kernel(1, mid, mid * 4), "nc": bn(mid * 4)}
            if s != 1 or i != mid * 4:
                b["s"], b["ns"] = kernel(1, i, mid * 4), bn(mid * 4)
            p["body"].append(b)
            plan.append(s)
            i = mid * 4

    def loss(p, x, t):
        h = x.astype(jnp.bfloat16)
        h = pool(jax.nn.relu(norm(p["norm"], conv(h, p["stem"], 2))), 3, 2, "SAME")
        for b, s in zip(p["body"], plan):
            y = jax.nn.relu(norm(b["na"], conv(h, b["a"])))
            y = jax.nn.relu(norm(b["nb"], conv(y, b["b"], s)))
            y = norm(b["nc"], conv(y, b["c"]))
            h = jax.nn.relu(y + (norm(b["ns"], conv(h, b["s"], s)) if "s" in b else h))
        return xent(apply(p["head"], h.mean((1, 2))), t)
    return p, loss, R.randn(256, 224, 224, 3).astype("f"), R.randint(1000, size=256), "momentum"


def block(d=1024, heads=16, ff=4096):
    p = {"n1": {"g": jnp.ones(d), "b": jnp.zeros(d)}, "n2": {"g": jnp.ones(d), "b": jnp.zeros(d)},
         "qkv": dense(d, 3 * d), "out": dense(d, d), "up": dense(d, ff), "down": dense(ff, d)}

    def ln(p, x):
        x32 = x.astype(jnp.float32)
        m = x32.mean(-1, keepdims=True)
        v = ((x32 - m) ** 2).mean(-1, keepdims=True)
        return ((x32 - m) * jax.lax.rsqrt(v + 1e-5) * p["g"] + p["b"]).astype(jnp.bfloat16)

    def loss(p, x, t):
        b, s, _ = x.shape
        q, k, v = (z.reshape(b, s, heads, -1) for z in jnp.split(apply(p["qkv"], ln(p["n1"], x)), 3, -1))
        try:
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
        except Exception:
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        h = x + apply(p["out"], y.reshape(b, s, d)).astype(jnp.float32)
        h = h + apply(p["down"], jax.nn.gelu(apply(p["up"], ln(p["n2"], h)))).astype(jnp.float32)
        return jnp.mean((h - t) ** 2)
    x = R.randn(32, 512, d).astype("f")
    return p, loss, x, R.randn(32, 512, d).astype("f"), "adam"


def measure(name, seconds):
    p, loss, x, t, kind = {"mlp": mlp, "cnn": cnn, "resnet50": resnet50, "block": block}[name]()
    tree = jax.tree_util.tree_map
    zeros = tree(jnp.zeros_like, p)
    state = {"sgd": (p,), "momentum": (p, zeros), "adam": (p, zeros, tree(jnp.zeros_like, p), jnp.zeros(()))}[kind]

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, x, t):
        p = state[0]
        value, g = jax.value_and_grad(loss)(p, x, t)
        if kind == "sgd":
            return (tree(lambda a, d: a - 0.1 * d, p, g),), value
        if kind == "momentum":
            m = tree(lambda a, d: 0.9 * a + d, state[1], g)
            return (tree(lambda a, d: a - 0.01 * d, p, m), m), value
        n = state[3] + 1
        m = tree(lambda a, d: 0.9 * a + 0.1 * d, state[1], g)
        v = tree(lambda a, d: 0.999 * a + 0.001 * d * d, state[2], g)
        c = 1e-4 * jnp.sqrt(1 - 0.999 ** n) / (1 - 0.9 ** n)
        return (tree(lambda a, i, j: a - c * i / (jnp.sqrt(j) + 1e-8), p, m, v), m, v, n), value

    x, t = jnp.asarray(x), jnp.asarray(t)
    t0 = time.time()
    state, value = step(state, x, t)
    first = float(value)
    first_s = time.time() - t0
    for _ in range(20):
        state, value = step(state, x, t)
    value.block_until_ready()
    out = {}
    for every in (1, 50):
        n, t0 = 0, time.time()
        while time.time() - t0 < seconds:
            for _ in range(50):
                state, value = step(state, x, t)
                if every == 1:
                    last = float(value)
            last = float(value)
            n += 50
        out[every] = n / (time.time() - t0)
    print(json.dumps({"impl": "jax jit", "model": name, "steps_s_fetch_each": round(out[1], 2), "steps_s_fetch_50th": round(out[50], 2),
                      "first_step_s": round(first_s, 2), "first_loss": first, "last_loss": last}), flush=True)


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--models", default="mlp,cnn,resnet50,block")
    a.add_argument("--seconds", type=float, default=4)
    a = a.parse_args()
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    for name in a.models.split(","):
        try:
            measure(name, a.seconds)
        except Exception as e:
            print(json.dumps({"impl": "jax jit", "model": name, "error": str(e)[:300]}), flush=True)
