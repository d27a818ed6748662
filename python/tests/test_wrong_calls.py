"""Wrong calls of one rank, through each door: every rank gets an error that names the culprit, and
none hangs."""

import importlib.util
import os
import unittest

import ranks

# The doors with Horovod's API, and the framework that each needs.
DOORS = {"numpy": "numpy", "torch": "torch", "tensorflow": "tensorflow",
         "tensorflow in functions": "tensorflow", "tensorflow in sessions": "tensorflow",
         "jax": "jax", "jax in jit": "jax", "graphs": "numpy"}
# What the torch backend can be called with by mistake.
BACKEND_MISTAKES = ("shape", "dtype", "op", "collective", "root", "count")


def _numpy():
    import numpy as np

    import ferroflow.hvd as hvd
    return hvd, lambda shape, dtype="float32": np.ones(shape, dtype), lambda call: call()


def _torch():
    import torch

    import ferroflow.torch as hvd
    return (hvd, lambda shape, dtype="float32": torch.ones(shape, dtype=getattr(torch, dtype)),
            lambda call: call())


def _tensorflow(run=lambda call: call()):
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    return hvd, lambda shape, dtype="float32": tf.ones(shape, dtype), run


def _in_functions():
    import tensorflow as tf
    return _tensorflow(lambda call: tf.function(call, autograph=False)())


def _in_sessions():
    import tensorflow as tf

    def run(call):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            return session.run(call())
    return _tensorflow(run)


def _graphs():
    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd

    def run(call):
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(call())
    return hvd, lambda shape, dtype="float32": tf.ones(shape, getattr(tf, dtype)), run


def _jax(run=lambda call: call()):
    import jax
    import jax.numpy as jnp

    import ferroflow.jax as hvd
    return (hvd, lambda shape, dtype="float32": jnp.ones(shape, dtype),
            lambda call: jax.block_until_ready(run(call)))


def _in_jit():
    import jax
    return _jax(lambda call: jax.jit(call)())


def _door():
    found = {"numpy": _numpy, "torch": _torch, "tensorflow": _tensorflow,
             "tensorflow in functions": _in_functions, "tensorflow in sessions": _in_sessions,
             "jax": _jax, "jax in jit": _in_jit, "graphs": _graphs}
    return found[os.environ["DOOR"]]()


def mistakes():
    """Rank 1 makes a mistake. All ranks get an error that names it, and go on."""
    hvd, ones, run = _door()
    hvd.init()
    wrong, n, jitted = hvd.rank() == 1, hvd.size(), "jit" in os.environ["DOOR"]
    done = []

    def refused(label, call):
        try:
            run(call)
        except Exception as e:
            assert "ranks [1]" in str(e), (label, e)
        else:
            raise AssertionError(f"no error: {label}")
        after = f"after {label}".replace(" ", "_")
        total = run(lambda: hvd.allreduce(ones([1]), op=hvd.Sum, name=after))
        assert total[0] == n, (label, total)
        done.append(label)
    a = dict(name="a")
    refused("shape", lambda: hvd.allreduce(ones([3 if wrong else 4]), **a))
    refused("rank", lambda: hvd.allreduce(ones([4, 1] if wrong else [4]), **a))
    refused("dtype", lambda: hvd.allreduce(ones([4], "int32" if wrong else "float32"), **a))
    refused("op", lambda: hvd.allreduce(ones([4]), op=hvd.Min if wrong else hvd.Sum, **a))
    refused("root", lambda: hvd.broadcast(ones([4]), 1 if wrong else 0, **a))
    refused("no such root", lambda: hvd.broadcast(ones([4]), n if wrong else 0, **a))
    refused("columns", lambda: hvd.allgather(ones([1, 3 if wrong else 2]), **a))
    refused("type of rows", lambda: hvd.allgather(
        ones([1], "int32" if wrong else "float32"), **a))
    refused("op of rows", lambda: hvd.reducescatter(
        ones([n]), op=hvd.Max if wrong else hvd.Sum, **a))
    refused("rows", lambda: hvd.reducescatter(ones([2 * n if wrong else n]), op=hvd.Sum, **a))
    if os.environ["DOOR"] != "graphs":
        refused("group", lambda: hvd.grouped_allreduce(
            [ones([2]), ones([3 if wrong else 2])], op=hvd.Sum, **a))
    if not jitted:
        refused("splits", lambda: hvd.alltoall(
            ones([n, 2]), [7] * n if wrong else [1] * n, **a))
    print(f"refused {len(done)}")
    hvd.shutdown()


def other_name():
    """Rank 1 calls with another name. After the stall's deadline all ranks get an error."""
    hvd, ones, run = _door()
    hvd.init()
    me = hvd.rank()
    try:
        run(lambda: hvd.allreduce(ones([2]), name="other" if me == 1 else "usual"))
    except Exception as e:
        text = str(e)
        assert "other" in text or "usual" in text, text
        assert ("[0, 2]" in text and "other" in text) or ("[1]" in text and "usual" in text), text
        print("named")
    else:
        raise AssertionError("no error")


def never_calls():
    """Rank 1 does not call. The others name it after the stall's deadline."""
    import time
    hvd, ones, run = _door()
    hvd.init()
    if hvd.rank() == 1:
        # Without the other ranks, which fail first.
        time.sleep(6)
        os._exit(0)
    try:
        run(lambda: hvd.allreduce(ones([2]), name="lonely"))
    except Exception as e:
        assert "lonely" in str(e) and "[1]" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


def raises():
    """Rank 1 raises. The others get its error at once."""
    hvd, ones, run = _door()
    try:
        # A slow rank may learn of the error while it still connects.
        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("no such column")
        run(lambda: hvd.allreduce(ones([2]), name="a"))
    except KeyError:
        raise
    except Exception as e:
        assert "rank 1 raised KeyError" in str(e) and "no such column" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


def backend_mistake():
    """Rank 1 calls the torch backend with something else than the others."""
    import datetime

    import torch
    import torch.distributed as dist

    import ferroflow.torch.distributed  # noqa: F401 (registers the backend)
    dist.init_process_group("ferroflow", timeout=datetime.timedelta(seconds=60))
    r, case = dist.get_rank(), os.environ["MISTAKE"]
    wrong, dtypes = r == 1, (torch.float64, torch.float32)
    calls = {
        "shape": lambda: dist.all_reduce(torch.ones(3 if wrong else 4)),
        "dtype": lambda: dist.all_reduce(torch.ones(4, dtype=dtypes[r != 1])),
        "op": lambda: dist.all_reduce(
            torch.ones(4), op=dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM),
        "collective": lambda: dist.broadcast(torch.ones(4), 0) if wrong
        else dist.all_reduce(torch.ones(4)),
        "root": lambda: dist.broadcast(torch.ones(4), 1 if wrong else 0),
        "count": lambda: dist.all_gather([torch.ones(5 if wrong else 4) for _ in range(3)],
                                         torch.ones(5 if wrong else 4)),
    }
    try:
        calls[case]()
    except Exception as e:
        assert "rank 1" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


def backend_never_calls():
    """Rank 1 never calls. After the group's timeout the others name it."""
    import datetime
    import time

    import torch
    import torch.distributed as dist

    import ferroflow.torch.distributed  # noqa: F401 (registers the backend)
    dist.init_process_group("ferroflow", timeout=datetime.timedelta(seconds=60))
    group = dist.new_group(timeout=datetime.timedelta(seconds=3))
    if dist.get_rank() == 1:
        time.sleep(8)
        os._exit(0)
    try:
        dist.all_reduce(torch.ones(2), group=group)
    except Exception as e:
        assert "rank 1" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


STALLS = {"HOROVOD_STALL_CHECK_TIME_SECONDS": 1, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": 2}


class WrongCalls(unittest.TestCase):
    def _each(self, function, word, of, env=None, codes=(0, 0, 0)):
        """Runs a function on three ranks, for each door. The ranks `of` must print the word."""
        for door, framework in DOORS.items():
            with self.subTest(door):
                if importlib.util.find_spec(framework) is None:
                    self.skipTest(f"{framework} not installed; `cargo xtask python --all` runs "
                                  "this")
                processes = ranks.start(3, __file__, function, {"DOOR": door, **(env or {})})
                results = ranks.finish(processes, 120)
                outs = "\n".join(out for _, out in results)
                self.assertEqual([code for code, _ in results], list(codes), outs)
                self.assertTrue(all(word in results[r][1] for r in of), outs)

    def test_a_mistake_is_an_error_of_all_ranks_that_names_it(self):
        self._each("mistakes", "refused", (0, 1, 2))

    def test_a_rank_with_another_name_is_named_after_the_deadline(self):
        self._each("other_name", "named", (0, 1, 2), STALLS)

    def test_a_rank_that_never_calls_is_named_after_the_deadline(self):
        self._each("never_calls", "named", (0, 2), STALLS)

    def test_a_rank_that_raises_is_named_at_once(self):
        self._each("raises", "named", (0, 2), codes=(0, 1, 0))


@ranks.requires("torch")
class WrongCallsOfTheBackend(unittest.TestCase):
    def test_a_mistake_is_an_error_of_all_ranks_that_names_it(self):
        for mistake in BACKEND_MISTAKES:
            with self.subTest(mistake):
                outs = ranks.run(self, 3, __file__, "backend_mistake", {"MISTAKE": mistake}, 90)
                self.assertTrue(all("named" in out for out in outs), outs)

    def test_a_rank_that_never_calls_is_named_after_the_timeout(self):
        outs = ranks.run(self, 3, __file__, "backend_never_calls", limit=90)
        self.assertTrue(all("named" in outs[r] for r in (0, 2)), outs)


if __name__ == "__main__":
    unittest.main()
