"""`ferroflow.jax`: collectives inside and outside jit, gradients, and a training step."""

import unittest

import ranks


def everything():
    """Every function and type, on a rank."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import ferroflow.jax as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    compiled = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum))
    for dtype in ("float32", "bfloat16", "float16", "int8", "int16", "int32", "uint8", "uint16",
                  "uint32"):
        x = (jnp.arange(6) % 3 + r).astype(dtype)
        total = sum(np.arange(6) % 3 + q for q in range(n))
        for reduced in (compiled(x), hvd.allreduce(x, op=hvd.Sum)):
            assert reduced.dtype == x.dtype
            assert np.array_equal(np.asarray(reduced).astype(np.int64), total), dtype
    gathered = jax.jit(hvd.allgather)(jnp.full((2, 3), float(r)))
    assert np.array_equal(gathered[:, 0], np.repeat(np.arange(n), 2))
    assert np.allclose(jax.jit(lambda x: hvd.reducescatter(x, op=hvd.Sum))(jnp.ones((2 * n, 3))), n)
    sent = jax.jit(lambda x: hvd.broadcast(x, n - 1))({"a": jnp.ones(3) * r, "b": jnp.ones(2) * r})
    assert np.allclose(sent["a"], n - 1) and np.allclose(sent["b"], n - 1)
    z = hvd.allreduce(jnp.array([1 + 2j * r]), op=hvd.Sum)
    assert z[0] == n + 2j * sum(range(n))
    rows, received = hvd.alltoall(jnp.arange(n * (n + 1) // 2), splits=list(range(1, n + 1)))
    assert list(received) == [r + 1] * n and len(rows) == n * (r + 1)
    # Gradients of the sum of all ranks' losses.
    total = sum(range(1, n + 1))
    grad = jax.grad(lambda w: (hvd.allreduce(w, op=hvd.Sum) * (r + 1)).sum())(jnp.ones(2))
    assert np.allclose(grad, total)
    grad = jax.grad(lambda w: (hvd.allgather(w) * (r + 1)).sum())(jnp.ones(2))
    assert np.allclose(grad, total)
    grad = jax.grad(lambda w: (hvd.reducescatter(w, op=hvd.Sum) * (r + 1)).sum())(jnp.ones(n))
    assert np.allclose(grad, np.arange(1, n + 1))
    grad = jax.grad(lambda w: (hvd.broadcast(w, 0) * (r + 1)).sum())(jnp.ones(2))
    assert np.allclose(grad, total if r == 0 else 0)
    # Independent collectives of one program run in any order.
    several = jax.jit(lambda a, b, c: (hvd.allreduce(a, op=hvd.Sum), hvd.allreduce(b @ b),
                                       hvd.allgather(c)))
    for _ in range(20):
        first = several(jnp.ones(3), jnp.ones((64, 64)), jnp.ones(1) * r)[0]
    assert first[0] == n
    hvd.shutdown()


def trains():
    """A training step equals that of one process with the whole batch."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import ferroflow.jax as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()

    def loss(p, batch):
        return ((jnp.tanh(batch[0] @ p["w"]) + p["b"] - batch[1]) ** 2).mean()

    inputs = np.random.RandomState(0).randn(4 * n, 3).astype(np.float32)
    targets = np.random.RandomState(1).randn(4 * n, 2).astype(np.float32)
    mine = slice(4 * r, 4 * r + 4)
    params = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
    step = hvd.data_parallel_step(
        loss, lambda grads, state, p: (jax.tree_util.tree_map(lambda g: -0.1 * g, grads), state))
    own = hvd.broadcast(jax.tree_util.tree_map(lambda p: p + r, params))
    for _ in range(10):
        own, _, value = step(own, (), (inputs[mine], targets[mine]))
        whole, grads = jax.value_and_grad(loss)(params, (inputs, targets))
        params = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)
        assert np.allclose(value, whole, atol=1e-5)
    for a, b in zip(jax.tree_util.tree_leaves(own), jax.tree_util.tree_leaves(params)):
        assert np.allclose(a, b, atol=1e-5)
    hvd.shutdown()


def mistakes():
    """Rank 1 has another shape: all ranks get an error that names it."""
    import jax
    import jax.numpy as jnp

    import ferroflow.jax as hvd
    hvd.init()
    try:
        jax.jit(lambda x: hvd.allreduce(x, name="bad"))(
            jnp.ones(3 if hvd.rank() == 1 else 2)).block_until_ready()
    except Exception as e:
        assert "ranks [1]" in str(e), e
    else:
        raise AssertionError("no error")


def calls_back():
    """A program calls Python after a collective. Python uses other collectives, of arrays and of
    another program."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback

    import ferroflow.hvd as arrays
    import ferroflow.jax as hvd
    hvd.init()
    n = hvd.size()
    inner = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name="inner"))
    inner(jnp.ones(2)).block_until_ready()

    def back(x):
        total = arrays.allreduce(np.asarray(x), op=hvd.Sum, name="array")
        return np.asarray(inner(total))

    @jax.jit
    def outer(x):
        x = hvd.allreduce(x, op=hvd.Sum, name="first")
        x = io_callback(back, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return hvd.allreduce(x, op=hvd.Average, name="last")
    for _ in range(3):
        assert np.allclose(outer(jnp.ones(2)), n ** 3)
    hvd.shutdown()


@ranks.requires("jax")
class Jax(unittest.TestCase):
    def test_every_function_and_type_gives_what_numpy_gives(self):
        for n in (1, 2, 3, 4):
            ranks.run(self, n, __file__, "everything")

    def test_training_equals_one_process_with_the_whole_batch(self):
        for n in (2, 4):
            ranks.run(self, n, __file__, "trains")

    def test_callbacks_of_a_program_may_communicate(self):
        ranks.run(self, 2, __file__, "calls_back", limit=120)

    def test_a_mistake_of_one_rank_is_an_error_of_all_that_names_it(self):
        ranks.run(self, 3, __file__, "mistakes", limit=90)


if __name__ == "__main__":
    unittest.main()
