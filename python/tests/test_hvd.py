"""Collectives on numpy arrays, on 1 to 4 ranks, compared with numpy."""

import os
import signal
import sys
import tempfile
import unittest

import ranks

DTYPES = ("float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64").split()


def everything():
    """Every function and type, on a rank."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    assert (hvd.local_rank(), hvd.local_size()) == (r, n)
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    for dtype in DTYPES:
        every = [(np.arange(12) % 3 + q).astype(dtype).reshape(3, 4) for q in range(n)]
        x, before = every[r], every[r].copy()

        def same(got, want):
            assert got.dtype == x.dtype and np.array_equal(got, want), (dtype, got, want)
        same(hvd.allreduce(x, op=hvd.Sum), sum(every[1:], every[0]))
        same(hvd.allreduce(x, op=hvd.Min), np.minimum.reduce(every))
        same(hvd.allreduce(x, op=hvd.Max), np.maximum.reduce(every))
        same(hvd.allreduce(x, op=hvd.Product), np.multiply.reduce(every))
        mean = sum(every[1:], every[0]) / n
        same(hvd.allreduce(x), (mean if "float" in dtype else np.trunc(mean)).astype(dtype))
        same(hvd.allreduce(x.T, op=hvd.Sum), sum(every[1:], every[0]).T)
        same(hvd.allreduce(x.astype(x.dtype.newbyteorder(">")), op=hvd.Sum),
             sum(every[1:], every[0]))
        y = x.copy()
        assert hvd.allreduce_(y, op=hvd.Sum) is y
        same(y, sum(every[1:], every[0]))
        same(hvd.allgather(x), np.concatenate(every))
        same(hvd.allgather(x[:min(r, 3)]), np.concatenate([e[:min(q, 3)] for q, e in
                                                           enumerate(every)]))
        same(hvd.broadcast(x, n - 1), every[n - 1])
        same(hvd.alltoall(np.repeat(x[:1], n, 0)), np.concatenate([e[:1] for e in every]))
        rows = [np.repeat(e[:1], 2 * n + 1, 0) for e in every]
        part = hvd.reducescatter(rows[r], op=hvd.Sum)
        assert len(part) == 2 + (r == 0), len(part)
        same(part, sum(rows[1:], rows[0])[:len(part)])
        handle = hvd.allreduce_async(x, op=hvd.Sum)
        same(hvd.synchronize(handle), sum(every[1:], every[0]))
        assert hvd.poll(handle)
        first, second = hvd.grouped_allreduce([x, x[:1]], op=hvd.Sum)
        same(second, first[:1])
        same(hvd.grouped_allgather([x, x])[1], np.concatenate(every))
        same(hvd.grouped_reducescatter([rows[r]], op=hvd.Max)[0],
             np.maximum.reduce(rows)[:len(part)])
        same(x, before)
    out, received = hvd.alltoall(np.arange(n * (n + 1) // 2) + 100 * r,
                                 splits=list(range(1, n + 1)))
    assert list(received) == [r + 1] * n and len(out) == n * (r + 1)
    assert hvd.allreduce(np.array([1 + 2j * r]), op=hvd.Sum)[0] == n + 2j * sum(range(n))
    assert hvd.allreduce(np.float32(2.0), op=hvd.Sum).shape == ()
    scaled = hvd.allreduce(np.ones(3, np.float32), op=hvd.Sum, prescale_factor=0.5,
                           postscale_factor=3)
    assert scaled[0] == 1.5 * n
    assert np.array_equal(hvd.allgather(np.array([r % 2 == 0])), np.arange(n) % 2 == 0)
    adasum = hvd.allreduce(np.eye(4, dtype=np.float32)[r], op=hvd.Adasum)
    assert np.allclose(adasum, [1.0] * n + [0.0] * (4 - n)), adasum
    assert hvd.allgather_object({"rank": r}) == [{"rank": q} for q in range(n)]
    assert hvd.broadcast_object([r, "x"], n - 1) == [n - 1, "x"]
    hvd.barrier()
    # Many tensors in flight, in different orders.
    order = list(range(50))
    order = order[r * 7:] + order[:r * 7]
    handles = {i: hvd.allreduce_async(np.full(i, r), name=f"t{i}", op=hvd.Sum) for i in order}
    for i, handle in handles.items():
        assert np.array_equal(hvd.synchronize(handle), np.full(i, sum(range(n))))
    # Ranks with less data join, and then contribute zeros to averages over all ranks.
    for i in range(r + 1):
        assert hvd.allreduce(np.ones(2), name=f"uneven{i}")[0] == (n - i) / n
    last = hvd.join()
    assert n == 1 or 0 <= last < n
    hvd.shutdown()
    assert not hvd.is_initialized()
    try:
        hvd.rank()
    except ValueError as e:
        assert "init" in str(e)
    else:
        raise AssertionError("rank() after shutdown()")


def sums_of_random_numbers():
    """Prints a digest of many sums, which are submitted in another order in each run."""
    import hashlib
    import random
    import time

    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    sizes = [1, 7, 1000, 30_000, 5, 200_000, 64, 3000] * 4
    mine = np.random.RandomState(hvd.rank())
    arrays = [mine.randn(s).astype(np.float32) for s in sizes]
    order = list(range(len(sizes)))
    random.shuffle(order)
    handles = {}
    for i in order:
        handles[i] = hvd.allreduce_async(arrays[i], name=str(i), op=hvd.Sum)
        time.sleep(random.random() * 0.002)
    digest = hashlib.sha256()
    for i in range(len(sizes)):
        digest.update(hvd.synchronize(handles[i]).tobytes())
    print(digest.hexdigest())
    hvd.shutdown()


def process_sets():
    """Process sets, with removal."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init(process_sets=[hvd.ProcessSet([0])])
    r, n = hvd.rank(), hvd.size()
    unknown = hvd.ProcessSet([0, 1])
    assert unknown.size() is None and unknown.rank() is None
    some = hvd.add_process_set(range(1, n))
    assert some.size() == n - 1 and some.included() == (r > 0)
    assert hvd.get_process_set_ids_and_ranks()[some.process_set_id] == list(range(1, n))
    if r > 0:
        assert some.rank() == r - 1
        # Calls in a set do not count for those of all ranks.
        assert hvd.allreduce(np.ones(2), op=hvd.Sum, process_set=some)[0] == n - 1
        assert list(hvd.allgather(np.array([r]), process_set=some)) == list(range(1, n))
    else:
        try:
            hvd.allreduce(np.ones(2), process_set=some)
        except ValueError as e:
            assert "rank 0 is not in process set" in str(e), e
        else:
            raise AssertionError("a rank outside the set")
    assert hvd.allreduce(np.ones(2), op=hvd.Sum)[0] == n
    try:
        hvd.add_process_set(range(1, n))
    except ValueError:
        pass
    else:
        raise AssertionError("the same set twice")
    assert hvd.remove_process_set(some) and not hvd.remove_process_set(some)
    try:
        hvd.allreduce(np.ones(2), process_set=some)
    except ValueError as e:
        assert "not registered" in str(e), e
    else:
        raise AssertionError("a removed set")
    hvd.shutdown()


def mistakes():
    """Rank 1 makes a mistake. All ranks get an error that names it, and go on."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    wrong, n = hvd.rank() == 1, hvd.size()

    def refused(call, *texts):
        try:
            call()
        except (ValueError, NotImplementedError) as e:
            assert any(t in str(e) for t in texts), e
        else:
            raise AssertionError(f"no error: {texts}")
        assert hvd.allreduce(np.ones(1), op=hvd.Sum)[0] == n
    named = "ranks [1]"
    refused(lambda: hvd.allreduce(np.ones(3 if wrong else 4), name="shape"), named)
    refused(lambda: hvd.allreduce(np.ones(4, "int32" if wrong else "float32"), name="dtype"), named)
    refused(lambda: hvd.allreduce(np.ones(4), name="op", op=hvd.Min if wrong else hvd.Sum), named)
    refused(lambda: hvd.broadcast(np.ones(4), 1 if wrong else 0, name="root"), named)
    refused(lambda: hvd.broadcast(np.ones(4), n if wrong else 0, name="no such root"), named)
    refused(lambda: hvd.alltoall(np.ones((n, 2)), [7] * n if wrong else [1] * n, name="splits"),
            named)
    refused(lambda: hvd.allgather(np.ones((1, 3 if wrong else 2)), name="columns"), named)
    refused(lambda: hvd.reducescatter(np.float32(1) if wrong else np.ones(n, "float32"),
                                      name="scalar"), named)
    refused(lambda: hvd.grouped_allreduce([np.ones(2), np.ones(3 if wrong else 2)], name="group"),
            named)
    refused(lambda: hvd.allreduce(np.ones(2, "complex64"), name="complex",
                                  op=hvd.Max if wrong else hvd.Sum), named)
    hvd.shutdown()


def one_never_calls():
    """Rank 1 never submits the tensor. The others name it after the stall's deadline."""
    import numpy as np

    import ferroflow.hvd as hvd
    from ferroflow._hvd import core
    hvd.init()
    if hvd.rank() != 1:
        try:
            hvd.allreduce(np.ones(2), name="lonely")
        except hvd.HorovodInternalError as e:
            assert "lonely" in str(e) and "1" in str(e).split("for ranks")[1][:6], e
        else:
            raise AssertionError("no error")
    # Rank 1 has waited here, so its own wait may have failed in the meantime.
    while True:
        try:
            core.barrier(name="end")
            break
        except hvd.HorovodInternalError:
            pass
    hvd.shutdown()


def one_raises():
    """Rank 1 raises. The others get its error at once."""
    import numpy as np

    import ferroflow.hvd as hvd
    try:
        # A slow rank may learn of the error while it still connects.
        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("no such column")
        hvd.allreduce(np.ones(2))
    except hvd.HorovodInternalError as e:
        assert "rank 1 raised KeyError" in str(e) and "no such column" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


def reduces_forever():
    """Reduces until a rank is lost."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    print("ready", flush=True)
    try:
        while True:
            hvd.allreduce(np.ones(1000))
    except hvd.HorovodInternalError as e:
        assert "rank 1" in str(e), e
        print("named")


def traced():
    """A timeline has the names of the tensors."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    path = os.path.join(os.environ["TRACES"], "{rank}.json")
    hvd.start_timeline(path)
    hvd.allreduce(np.ones(2), name="traced_tensor")
    hvd.stop_timeline()
    with open(path.replace("{rank}", str(hvd.rank()))) as trace:
        assert "traced_tensor" in trace.read()
    hvd.shutdown()


def interrupted(wait):
    """Calls `wait`, which waits for other ranks, and interrupts it as Ctrl-C does."""
    import threading
    import time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        assert time.monotonic() - began < 20, time.monotonic() - began
        print("interrupted", flush=True)
    else:
        raise AssertionError("nothing was interrupted")


def starts_alone():
    """A rank that waits for ranks which never start can be interrupted."""
    import ferroflow.hvd as hvd
    interrupted(hvd.init)


def joins_alone():
    """A rank that waits in `join` for a rank which still works can be interrupted."""
    import ferroflow.hvd as hvd
    hvd.init()
    if hvd.rank() == 0:
        interrupted(hvd.join)
        print("done", flush=True)
        os._exit(0)
    signal.pause()


class Hvd(unittest.TestCase):
    def test_a_wait_for_other_ranks_can_be_interrupted(self):
        for rank in (0, 1):
            alone = ranks.start(1, __file__, "starts_alone", {
                "FERROFLOW_RANK": rank, "RANK": rank, "FERROFLOW_SIZE": 2, "WORLD_SIZE": 2})
            self.assertEqual(ranks.finish(alone, 60), [(0, "interrupted\n")])
        joins = ranks.start(2, __file__, "joins_alone")
        self.assertEqual(ranks.finish(joins[:1], 60), [(0, "interrupted\ndone\n")])
        joins[1].kill()
        joins[1].communicate()

    def test_every_function_and_type_gives_what_numpy_gives(self):
        for n in (1, 2, 3, 4):
            ranks.run(self, n, __file__, "everything")

    def test_links_over_tcp_give_the_same(self):
        ranks.run(self, 2, __file__, "everything", {"FERROFLOW_TRANSPORT": "tcp"})

    def test_sums_are_equal_bit_by_bit_in_deterministic_jobs(self):
        outs = []
        for _ in range(3):
            outs += ranks.run(self, 4, __file__, "sums_of_random_numbers",
                              {"FERROFLOW_DETERMINISTIC": 1})
        self.assertEqual(len(set(outs)), 1, outs)

    def test_process_sets_can_be_added_and_removed(self):
        ranks.run(self, 3, __file__, "process_sets")

    def test_a_mistake_of_one_rank_is_an_error_of_all_that_names_it(self):
        ranks.run(self, 3, __file__, "mistakes")

    def test_a_rank_that_never_calls_is_named(self):
        ranks.run(self, 3, __file__, "one_never_calls",
                  {"HOROVOD_STALL_CHECK_TIME_SECONDS": 1,
                   "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": 2})

    def test_a_rank_that_raises_ends_the_others_with_its_error(self):
        results = ranks.finish(ranks.start(3, __file__, "one_raises"), 60)
        self.assertEqual([code for code, _ in results], [0, 1, 0], results)
        self.assertTrue(all("named" in results[r][1] for r in (0, 2)), results)

    def test_a_rank_that_is_killed_is_named(self):
        processes = ranks.start(3, __file__, "reduces_forever")
        for process in processes:
            self.assertEqual(process.stdout.readline().strip(), "ready")
        processes[1].send_signal(signal.SIGKILL)
        results = ranks.finish([processes[0], processes[2]], 60)
        self.assertEqual([code for code, _ in results], [0, 0], results)
        processes[1].communicate()

    def test_unknown_variables_of_horovod_are_named_once(self):
        outs = ranks.run(self, 2, __file__, "starts_and_ends",
                         {"HOROVOD_AUTOTUNE": 1, "HOROVOD_CYCLE_TIME": 1})
        self.assertEqual(outs[0].count("ignored: HOROVOD_AUTOTUNE"), 1)
        self.assertNotIn("HOROVOD", outs[1])

    def test_a_process_can_leave_and_connect_again(self):
        for n in (1, 3):
            ranks.run(self, n, __file__, "starts_again")

    def test_names_of_horovods_other_modules(self):
        import ferroflow
        import ferroflow.common.process_sets as process_sets
        import ferroflow.common.util as util
        import ferroflow.hvd as hvd
        import ferroflow.runner
        self.assertIs(ferroflow.run, ferroflow.runner.run)
        self.assertIs(process_sets.ProcessSet, hvd.ProcessSet)
        self.assertEqual(util.split_list([1, 2, 3, 4, 5], 2), [[1, 2, 3], [4, 5]])
        self.assertEqual([n for n in range(9) if util.num_rank_is_power_2(n)], [1, 2, 4, 8])
        newer = util.is_version_greater_equal_than
        self.assertTrue(newer("2.15.1", "2.6.0") and newer("2.15.0", "2.15.0"))
        self.assertFalse(newer("2.5.9", "2.6.0"))
        self.assertFalse(util.gloo_built(verbose=True) or util.gpu_available("torch"))
        with util.env(TEST_OF_ENV="1"):
            self.assertEqual(os.environ["TEST_OF_ENV"], "1")
        self.assertNotIn("TEST_OF_ENV", os.environ)

    def test_a_timeline_names_the_tensors(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks.run(self, 2, __file__, "traced", {"TRACES": folder})


def starts_again():
    """A process can leave the job and connect again. `elastic.run` in a job that is not elastic
    restores the state and connects again if there is one rank, and raises if there are several."""
    import numpy as np

    import ferroflow.hvd as hvd
    from ferroflow.common.elastic import ObjectState, run_fn
    from ferroflow.common.exceptions import HorovodInternalError
    hvd.init()
    n = hvd.size()
    for ranks_ in (None, list(range(n))):
        hvd.shutdown()
        hvd.init(comm=ranks_)
        assert hvd.allreduce(np.ones(2), op=hvd.Sum)[0] == n
    hvd.shutdown()
    try:
        hvd.init(comm=[0, n])
    except NotImplementedError:
        assert not hvd.is_initialized()
    else:
        raise AssertionError("init() of other ranks")
    hvd.init()
    state = ObjectState(bcast_object=lambda obj: hvd.broadcast_object(obj), get_rank=hvd.rank,
                        step=0)
    resets, calls = [], []
    state.register_reset_callbacks([lambda: resets.append(hvd.size())])

    @run_fn
    def train(state):
        calls.append(state.step)
        if len(calls) == 1:
            state.step = 1
            state.commit()
            state.step = 2
            raise HorovodInternalError("lost")
        if len(calls) == 2:
            state.step = 5
            raise hvd.HostsUpdatedInterrupt(skip_sync=False)
        return state.step
    if n == 1:
        # The failure loses uncommitted steps; the interrupt keeps them.
        assert train(state) == 5 and calls == [0, 1, 5] and resets == [1, 1], (calls, resets)
    else:
        try:
            train(state)
        except HorovodInternalError as e:
            assert str(e) == "lost" and calls == [0] and resets == []
        else:
            raise AssertionError("no error")
    hvd.shutdown()


def starts_and_ends():
    """Starts and ends."""
    import ferroflow.hvd as hvd
    hvd.init()
    hvd.shutdown()
    print("done", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
