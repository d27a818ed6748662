"""Every function and type of each door with Horovod's API, on 1 to 4 ranks, compared with numpy."""

import importlib.util
import os
import unittest

import ranks

WHOLE = "int8 int16 int32 int64 uint8".split()
UNSIGNED = "uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64".split()
COMPLEX = "complex64 complex128".split()
TYPES = {
    "numpy": WHOLE + UNSIGNED + FLOATS + COMPLEX + ["bool"],
    "torch": WHOLE + FLOATS + COMPLEX + ["bfloat16", "bool"],
    "tensorflow": WHOLE + UNSIGNED + FLOATS + COMPLEX + ["bfloat16", "bool"],
    "jax": WHOLE + UNSIGNED + FLOATS + COMPLEX + ["bfloat16", "bool"],
}
# Each door, and the framework that it needs.
DOORS = {"numpy": "numpy", "torch": "torch", "tensorflow": "tensorflow",
         "tensorflow in functions": "tensorflow", "jax": "jax", "jax in jit": "jax"}


def _door():
    """The module, what makes a tensor of an array, what makes an array of a tensor, and what runs
    a function that makes many calls."""
    door = os.environ["DOOR"]
    import numpy as np

    def run(calls):
        return calls()

    if door == "numpy":
        import ferroflow.hvd as hvd
        return hvd, lambda a, dtype: a.astype(dtype), np.asarray, run
    if door == "torch":
        import torch

        import ferroflow.torch as hvd

        def array(tensor):
            return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        return hvd, lambda a, dtype: torch.tensor(a).to(getattr(torch, dtype)), array, run
    if door.startswith("tensorflow"):
        import tensorflow as tf

        import ferroflow.tensorflow as hvd
        if "functions" in door:
            def run(calls):
                return tf.function(calls, autograph=False)()
        return hvd, lambda a, dtype: tf.constant(a.astype(
            tf.dtypes.as_dtype(dtype).as_numpy_dtype)), np.asarray, run
    import jax
    import jax.numpy as jnp

    import ferroflow.jax as hvd
    jax.config.update("jax_enable_x64", True)
    if "jit" in door:
        def run(calls):
            return jax.jit(calls)()
    return hvd, lambda a, dtype: jnp.asarray(a).astype(dtype), np.asarray, run


def everything():
    """Every function, type and operation, on a rank."""
    import numpy as np
    hvd, tensor, array, run = _door()
    hvd.init()
    r, n, door = hvd.rank(), hvd.size(), os.environ["DOOR"]
    pending, count = [], 0

    def check(label, function, want):
        """Remembers a call and its expected result: an array, or a list of arrays."""
        pending.append((label, function, want))

    def same(label, got, want, dtype):
        exact = np.asarray(array(got)).astype(np.complex128)
        want = np.asarray(want).astype(np.complex128)
        assert exact.shape == want.shape, (label, dtype, exact.shape, want.shape)
        close = 1e-2 if dtype in ("float16", "bfloat16") else 1e-6
        assert np.allclose(exact, want, rtol=close, atol=0), (label, dtype, exact, want)
        kept = str(getattr(got, "dtype", "")).replace("torch.", "")
        assert dtype in kept, (label, dtype, got.dtype)

    def compare(dtype):
        """Makes the calls, all in one program if there is one."""
        nonlocal count
        for (label, _, want), got in zip(pending, run(lambda: [f() for _, f, _ in pending])):
            for g, w in zip(got, want) if isinstance(want, list) else [(got, want)]:
                same(label, g, w, dtype)
                count += 1
        pending.clear()

    for dtype in TYPES[door.split()[0]]:
        if dtype == "bool":
            every = [np.arange(6).reshape(3, 2) % 2 == q % 2 for q in range(n)]
        else:
            # The largest product is 2 * 3 * 4 * 5, which all types represent.
            every = [(np.arange(6).reshape(3, 2) % 3 + q).astype("float64") for q in range(n)]
        x = tensor(every[r], dtype)
        rows = [np.concatenate([e[:1]] * n) for e in every]
        shares = [np.concatenate([e] * n) for e in every]
        for root in range(n):
            check("broadcast", lambda root=root: hvd.broadcast(x, root), every[root])
        check("allgather", lambda: hvd.allgather(x), np.concatenate(every))
        if "jit" not in door:
            own = tensor(rows[r], dtype)
            check("alltoall", lambda: hvd.alltoall(own), np.concatenate([e[:1] for e in every]))
            # Rank q gets q rows of each.
            splits = list(range(n))
            sent = tensor(np.repeat(every[r][:1], sum(splits), 0), dtype)
            check("alltoall by splits", lambda: hvd.alltoall(sent, splits=splits)[0],
                  np.repeat(np.concatenate([e[:1] for e in every]), r, 0))
        if not door.startswith("jax"):
            # Ranks have different numbers of rows.
            some = tensor(every[r][:r], dtype)
            check("allgather of uneven rows", lambda: hvd.allgather(some),
                  np.concatenate([e[:q] for q, e in enumerate(every)]))
        check("grouped_allgather", lambda: hvd.grouped_allgather([x, x]),
              [np.concatenate(every)] * 2)
        operations = {} if dtype == "bool" else {"Sum": sum(every), "Average": sum(every) / n}
        if dtype in WHOLE + UNSIGNED:
            operations["Average"] = np.trunc(operations["Average"])
        if operations and dtype not in COMPLEX:
            operations.update(Min=np.minimum.reduce(every), Max=np.maximum.reduce(every),
                              Product=np.multiply.reduce(every))
        share = tensor(shares[r], dtype)
        for name, want in operations.items():
            op = getattr(hvd, name)
            check(f"allreduce {name}", lambda op=op: hvd.allreduce(x, op=op), want)
            check(f"grouped_allreduce {name}",
                  lambda op=op: hvd.grouped_allreduce([x, x[:1]], op=op), [want, want[:1]])
            check(f"reducescatter {name}", lambda op=op: hvd.reducescatter(share, op=op), want)
            check(f"grouped_reducescatter {name}",
                  lambda op=op: hvd.grouped_reducescatter([share], op=op), [want])
        if dtype in ("float32", "float64"):
            # Orthogonal vectors are added.
            mine = tensor(np.eye(4)[r], dtype)
            check("adasum", lambda: hvd.allreduce(mine, op=hvd.Adasum),
                  np.array([1.0] * n + [0.0] * (4 - n)))
        if dtype in FLOATS + ["bfloat16"]:
            check("scaled", lambda: hvd.allreduce(
                x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), 2 * sum(every))
        compare(dtype)
    print(f"compared {count}")
    hvd.shutdown()


class Functions(unittest.TestCase):
    def test_every_function_and_type_gives_what_numpy_gives(self):
        for door, framework in DOORS.items():
            with self.subTest(door):
                if importlib.util.find_spec(framework) is None:
                    self.skipTest(f"{framework} not installed; `cargo xtask python --all` runs "
                                  "this")
                for n in (1, 2, 3, 4):
                    for out in ranks.run(self, n, __file__, "everything", {"DOOR": door}):
                        self.assertIn("compared", out)


if __name__ == "__main__":
    unittest.main()
