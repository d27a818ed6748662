"""The backend `ferroflow` of torch.distributed."""

import signal
import unittest

import ranks


def _start():
    import datetime

    import torch.distributed as dist

    import ferroflow.torch.distributed  # noqa: F401 (registers the backend)
    dist.init_process_group("ferroflow", timeout=datetime.timedelta(seconds=120))
    return dist, dist.get_rank(), dist.get_world_size()


def everything():
    """Every collective and type, on a rank."""
    import torch
    dist, r, n = _start()
    assert dist.get_backend() == "ferroflow"
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                  torch.int16, torch.int32, torch.int64, torch.uint8):
        every = [(torch.arange(6) % 3 + q).to(dtype) for q in range(n)]
        x, total, joined = every[r], sum(every[1:], every[0]), torch.cat(every)
        y = x.clone()
        dist.all_reduce(y)
        assert torch.equal(y, total), dtype
        y = x.clone()
        dist.all_reduce(y, op=dist.ReduceOp.MAX, async_op=True).wait()
        assert torch.equal(y, torch.stack(every).amax(0))
        y = x.clone()
        dist.broadcast(y, n - 1)
        assert torch.equal(y, every[n - 1])
        y = x.clone()
        dist.reduce(y, 0)
        assert torch.equal(y, total if r == 0 else x)
        out = [torch.empty_like(x) for _ in range(n)]
        dist.all_gather(out, x)
        assert torch.equal(torch.cat(out), joined)
        out = torch.empty(6 * n, dtype=dtype)
        dist.all_gather_into_tensor(out, x)
        assert torch.equal(out, joined)
        out = torch.empty(6, dtype=dtype)
        dist.reduce_scatter_tensor(out, x.repeat(n))
        assert torch.equal(out, total)
        out = torch.empty(6, dtype=dtype)
        dist.reduce_scatter(out, [x] * n)
        assert torch.equal(out, total)
        out = torch.empty(6 * n, dtype=dtype)
        dist.all_to_all_single(out, x.repeat(n))
        assert torch.equal(out, joined)
        out = [torch.empty(6, dtype=dtype) for _ in range(n)]
        dist.all_to_all(out, [x] * n)
        assert torch.equal(torch.cat(out), joined)
        out = [torch.empty(6, dtype=dtype) for _ in range(n)] if r == 0 else None
        dist.gather(x, out, 0)
        assert r or torch.equal(torch.cat(out), joined)
        out = torch.empty(6, dtype=dtype)
        dist.scatter(out, every if r == 0 else None, 0)
        assert torch.equal(out, every[r])
        if dtype.is_floating_point:
            y = x.clone()
            dist.all_reduce(y, op=dist.ReduceOp.AVG)
            assert torch.allclose(y.float(), total.float() / n, atol=1e-2)
    flag = torch.tensor([r == 0, True])
    dist.all_reduce(flag, op=dist.ReduceOp.PRODUCT)
    assert flag.tolist() == [n == 1, True]
    bits = torch.tensor([1 << r])
    dist.all_reduce(bits, op=dist.ReduceOp.BOR)
    assert bits.item() == (1 << n) - 1
    turned = torch.arange(6.0).reshape(2, 3).t()
    dist.all_reduce(turned)
    assert torch.equal(turned, torch.arange(6.0).reshape(2, 3).t() * n)
    uneven = [torch.empty(q + 1) for q in range(n)]
    dist.all_gather(uneven, torch.full((r + 1,), float(r)))
    assert all(u[0] == q for q, u in enumerate(uneven))
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": r})
    assert objects == [{"rank": q} for q in range(n)]
    listed = [r, "x"]
    dist.broadcast_object_list(listed, 0)
    assert listed == [0, "x"]
    if n > 1:
        messages(dist, r, n)
        subgroups(dist, r, n)
    polled(dist, r, n)
    dist.monitored_barrier()
    dist.barrier()
    dist.destroy_process_group()


def polled(dist, r, n):
    """Works that a program polls until they are complete, without waiting."""
    import time

    import torch

    def complete(work):
        end = time.monotonic() + 60
        while not work.is_completed():
            assert time.monotonic() < end, "never complete"
        assert work.is_success() and work.exception() is None
        return work
    transposed = torch.ones(3, 2).t()
    complete(dist.all_reduce(transposed, async_op=True))
    assert (transposed == n).all()
    parts = [torch.zeros(2) for _ in range(n)]
    complete(dist.all_gather(parts, torch.full((2,), float(r)), async_op=True))
    assert [p[0].item() for p in parts] == list(range(n))
    [value] = complete(dist.all_reduce(torch.ones(1), async_op=True)).result()
    assert value == n
    doubled = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(
        lambda future: future.value()[0] * 2)
    assert doubled.wait() == 2 * n


def messages(dist, r, n):
    """Long messages around a ring, tags in any order, and any sender."""
    import torch
    sent, got = torch.full((1_000_000,), float(r)), torch.empty(1_000_000)
    ops = [dist.P2POp(dist.isend, sent, (r + 1) % n), dist.P2POp(dist.irecv, got, (r - 1) % n)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got[0] == (r - 1) % n
    if r == 0:
        dist.send(torch.full((3,), 5.0), 1, tag=5)
        dist.send(torch.full((3,), 6.0), 1, tag=6)
    if r == 1:
        six, five = torch.zeros(3), torch.zeros(3)
        dist.recv(six, 0, tag=6)
        assert dist.recv(five, tag=5) == 0
        assert (six[0], five[0]) == (6.0, 5.0)


def subgroups(dist, r, n):
    """Groups of some ranks, whose collectives run beside those of the others."""
    import torch
    low, high = dist.new_group([0, 1]), dist.new_group([n - 1])
    x = torch.ones(2)
    if r < 2:
        dist.all_reduce(x, group=low)
        assert x[0] == 2
    if r == n - 1:
        dist.all_reduce(x, group=high)


def contract():
    """What programs use of torch.distributed besides the plain collectives."""
    import tempfile

    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional
    dist, r, n = _start()
    mine, total = torch.full((4,), float(r + 1)), float(sum(range(1, n + 1)))

    # Coalesced and in groups of calls.
    if hasattr(dist, "all_reduce_coalesced"):
        both = [mine.clone(), mine.clone() * 2]
        dist.all_reduce_coalesced(both)
        assert both[0][0] == total and both[1][0] == 2 * total
    a, b, c = mine.clone(), torch.zeros(4 * n), torch.zeros(4 * n)
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(a)
        dist.all_reduce(mine.clone())
    manager.wait()
    with dist._coalescing_manager():
        dist.all_gather_into_tensor(b, mine)
        dist.all_gather_into_tensor(c, mine * 2)
    assert a[0] == total and b[-1] == n and c[-1] == 2 * n
    parts = [torch.zeros(4) for _ in range(2)]
    with dist._coalescing_manager():
        for part in parts:
            dist.reduce_scatter_tensor(part, mine.repeat(n))
    assert parts[1][0] == total
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.full((2 * n,), float(r + 1)), op=dist.ReduceOp.AVG)
    assert torch.allclose(out, torch.full((2,), total / n))
    rows = torch.arange(float(n)).repeat_interleave(r + 1)
    got = torch.zeros(sum(range(1, n + 1)))
    dist.all_to_all_single(got, rows, list(range(1, n + 1)), [r + 1] * n)
    assert (got == r).all()
    stacked = torch.zeros(n, 4)
    dist.all_gather_into_tensor(stacked, mine)
    assert stacked[:, 0].tolist() == [float(q + 1) for q in range(n)]
    work = dist.barrier(async_op=True)
    work.wait()
    assert dist.reduce(mine.clone(), n - 1, async_op=True).wait()

    # Objects.
    gathered = [None] * n if r == 0 else None
    dist.gather_object({"rank": r}, gathered, 0)
    assert r or gathered == [{"rank": q} for q in range(n)]
    part = [None]
    dist.scatter_object_list(part, [f"to {q}" for q in range(n)] if r == 0 else None, 0)
    assert part == [f"to {r}"]
    if hasattr(dist, "send_object_list") and n > 1:
        if r == 0:
            dist.send_object_list([("a", 1), None], 1)
        elif r == 1:
            objects = [None, 0]
            assert dist.recv_object_list(objects, 0) == 0 and objects == [("a", 1), None]

    # Functional collectives.
    group = dist.group.WORLD
    assert functional.all_reduce(mine, "sum", group)[0] == total
    assert functional.all_gather_tensor(mine, 0, group)[-1] == n
    assert functional.reduce_scatter_tensor(mine.repeat(n), "sum", 0, group)[0] == total
    assert functional.all_reduce_coalesced([mine], "max", group)[0][0] == n
    assert functional.broadcast(mine, n - 1, group)[0] == n
    assert functional.all_to_all_single(
        torch.full((n,), float(r)), None, None, group).tolist() == [float(q) for q in range(n)]

    # Sparse tensors with a different number of values on each rank.
    at = [list(range(r + 1))]
    sparse = torch.sparse_coo_tensor(at, torch.ones(r + 1), (n,), check_invariants=True)
    dist.all_reduce(sparse)
    assert sparse.to_dense().tolist() == [float(n - q) for q in range(n)]

    # Groups of groups.
    if hasattr(dist, "split_group"):
        own = dist.split_group(split_ranks=[[q] for q in range(n)])
        x = mine.clone()
        dist.all_reduce(x, group=own)
        assert x[0] == r + 1 and dist.get_world_size(own) == 1
    half, subgroups_ = dist.new_subgroups(group_size=1)
    x = mine.clone()
    dist.all_reduce(x, group=half)
    assert x[0] == r + 1 and len(subgroups_) == n
    pairs, _ = dist.new_subgroups_by_enumeration([[q] for q in range(n)])
    assert dist.get_world_size(pairs) == 1
    alone = dist.new_group([r], use_local_synchronization=True)
    assert dist.get_rank(alone) == 0 and dist.get_backend(alone) == "ferroflow"
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (n, 1), mesh_dim_names=("data", "model"))
    x = mine.clone()
    dist.all_reduce(x, group=mesh["data"].get_group())
    assert x[0] == total and mesh.get_local_rank("data") == r

    # Sharded tensors, checkpoints.
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    whole = torch.arange(4.0 * n).reshape(2 * n, 2)
    sharded = distribute_tensor(whole, mesh["data"], [Shard(0)])
    assert torch.equal(sharded.full_tensor(), whole)
    assert (sharded * 2).redistribute(mesh["data"], [Replicate()]).to_local()[1, 1] == 6
    from torch.distributed import checkpoint
    folder = [tempfile.mkdtemp() if r == 0 else None]
    dist.broadcast_object_list(folder, 0)
    checkpoint.save({"w": sharded, "step": 3}, checkpoint_id=folder[0])
    loaded = {"w": distribute_tensor(torch.zeros_like(whole), mesh["data"], [Shard(0)]), "step": 0}
    checkpoint.load(loaded, checkpoint_id=folder[0])
    assert torch.equal(loaded["w"].full_tensor(), whole) and loaded["step"] == 3

    # A second time.
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("cpu:ferroflow")
    x = mine.clone()
    dist.all_reduce(x)
    assert x[0] == total
    dist.destroy_process_group()


def hooks():
    """DDP with hooks that change gradients, and an optimizer whose state is divided."""
    import copy

    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel
    dist, r, n = _start()
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    x = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(3))
    mine = x[4 * r:4 * r + 4]
    reference = copy.deepcopy(net)
    plain = torch.optim.Adam(reference.parameters(), lr=0.01)

    def own(state, bucket):
        work = dist.all_reduce(bucket.buffer().div_(n), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])
    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-5), (own, 1e-5),
                            (default_hooks.fp16_compress_hook, 1e-2)):
        model = DistributedDataParallel(copy.deepcopy(reference), gradient_as_bucket_view=True)
        model.register_comm_hook(None, hook)
        reference.zero_grad()
        reference(x).square().mean().backward()
        model(mine).square().mean().backward()
        for p, q in zip(reference.parameters(), model.parameters()):
            assert (p.grad - q.grad).abs().max() < tolerance, hook
    model = DistributedDataParallel(copy.deepcopy(reference))
    divided = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    for _ in range(3):
        for optimizer, one, batch in ((plain, reference, x), (divided, model, mine)):
            optimizer.zero_grad()
            one(batch).square().mean().backward()
            optimizer.step()
    for p, q in zip(reference.parameters(), model.parameters()):
        assert (p - q).abs().max() < 1e-5
    divided.consolidate_state_dict(0)
    assert r or divided.state_dict()["state"]
    # Sparse gradients.
    table = torch.nn.Embedding(4, 2, sparse=True)
    model_of_table = DistributedDataParallel(table)
    model_of_table(torch.tensor([r])).sum().backward()
    assert torch.allclose(table.weight.grad.to_dense()[:n], torch.tensor(1.0 / n))
    # Accumulates without communication, then with it.
    model.zero_grad(), reference.zero_grad()
    with model.no_sync():
        model(mine).square().mean().backward()
    model(mine).square().mean().backward()
    for _ in range(2):
        reference(x).square().mean().backward()
    for p, q in zip(reference.parameters(), model.parameters()):
        assert (p.grad - q.grad).abs().max() < 1e-5
    dist.destroy_process_group()


def trains():
    """DDP and both FSDPs equal one process with the whole batch."""
    import copy

    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.nn.functional import mse_loss
    from torch.nn.parallel import DistributedDataParallel
    dist, r, n = _start()
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(5, 4 * n, 8, generator=generator)
    targets = torch.randn(5, 4 * n, 4, generator=generator)
    mine = slice(4 * r, 4 * r + 4)

    def train(model, part):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in zip(inputs, targets):
            optimizer.zero_grad()
            mse_loss(model(x[part]), y[part]).backward()
            optimizer.step()

    reference = copy.deepcopy(net)
    train(reference, slice(None))

    def same(parameters):
        for p, q in zip(reference.parameters(), parameters):
            assert (p - q).abs().max() < 1e-5, (p - q).abs().max()

    parallel = copy.deepcopy(net)
    train(DistributedDataParallel(parallel), mine)
    same(parallel.parameters())
    sharded = FullyShardedDataParallel(copy.deepcopy(net), device_id=torch.device("cpu"))
    train(sharded, mine)
    with FullyShardedDataParallel.summon_full_params(sharded):
        same(sharded.parameters())
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        print("this torch has no fully_shard")
    else:
        second = copy.deepcopy(net)
        fully_shard(second, mesh=init_device_mesh("cpu", (n,)))
        train(second, mine)
        same(p.full_tensor() for p in second.parameters())
    dist.destroy_process_group()


def uneven():
    """Rank r has r + 1 batches. torch's `Join` lets DDP go on with the others."""
    import torch
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel
    dist, r, n = _start()
    layer = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.zero_()
    model = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with Join([model], divide_by_initial_world_size=False):
        for _ in range(r + 1):
            optimizer.zero_grad()
            model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
    # The gradient is 1 in each step, and the last rank takes n steps.
    assert layer.weight.item() == -n, layer.weight
    dist.destroy_process_group()


def mistakes():
    """Rank 1 makes a mistake: all ranks get an error that names it."""
    import torch
    dist, r, n = _start()
    try:
        dist.all_reduce(torch.ones(3 if r == 1 else 4))
    except Exception as e:
        assert "rank 1" in str(e), e
    else:
        raise AssertionError("no error")


def one_leaves():
    """Rank 1 ends without the last collective."""
    import torch
    dist, r, n = _start()
    dist.all_reduce(torch.ones(4))
    if r == 1:
        return
    try:
        dist.all_reduce(torch.ones(4))
    except Exception as e:
        assert "rank 1" in str(e), e
    else:
        raise AssertionError("no error")


def one_raises():
    """Rank 1 raises. The others get its error, in a collective or a receive."""
    import torch
    dist, r, n = _start()
    if r == 1:
        raise KeyError("no such column")
    try:
        if r == 0:
            dist.recv(torch.ones(4), 1)
        else:
            dist.all_reduce(torch.ones(4))
    except Exception as e:
        assert "rank 1" in str(e), e
        print("named")
    else:
        raise AssertionError("no error")


def reduces_forever():
    import torch
    dist, r, n = _start()
    print("ready", flush=True)
    try:
        while True:
            dist.all_reduce(torch.ones(1000))
    except Exception as e:
        assert "rank 1" in str(e), e


def one_misses_the_barrier():
    """monitored_barrier names the missing rank."""
    import datetime
    dist, r, n = _start()
    if r != 1:
        try:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=2), wait_all_ranks=True)
        except RuntimeError as e:
            # The texts are gloo's.
            assert "Ranks 1 failed to pass monitoredBarrier in 2000 ms" in str(e), e
            assert (r != 0) == (f"Rank {r} successfully reached monitoredBarrier" in str(e)), e
        else:
            raise AssertionError("no error")


@ranks.requires("torch")
class TorchDistributed(unittest.TestCase):
    def test_every_collective_and_type_gives_what_torch_gives(self):
        for n in (1, 2, 3, 4):
            ranks.run(self, n, __file__, "everything")

    def test_training_equals_one_process_with_the_whole_batch(self):
        for n in (2, 4):
            ranks.run(self, n, __file__, "trains")

    def test_what_programs_use_besides_collectives(self):
        for n in (1, 2, 3):
            ranks.run(self, n, __file__, "contract")

    def test_hooks_of_ddp_and_divided_optimizers(self):
        ranks.run(self, 2, __file__, "hooks")

    def test_ranks_with_less_data_join(self):
        ranks.run(self, 3, __file__, "uneven")

    def test_a_mistake_of_one_rank_is_an_error_of_all_that_names_it(self):
        ranks.run(self, 3, __file__, "mistakes", limit=90)

    def test_a_rank_that_leaves_is_named(self):
        ranks.run(self, 3, __file__, "one_leaves", limit=90)

    def test_a_rank_that_raises_is_named(self):
        results = ranks.finish(ranks.start(3, __file__, "one_raises"), 90)
        self.assertEqual([code for code, _ in results], [0, 1, 0], results)

    def test_a_rank_that_is_killed_is_named(self):
        processes = ranks.start(3, __file__, "reduces_forever")
        for process in processes:
            while process.stdout.readline().strip() != "ready":
                pass
        processes[1].send_signal(signal.SIGKILL)
        results = ranks.finish([processes[0], processes[2]], 90)
        self.assertEqual([code for code, _ in results], [0, 0], results)
        processes[1].communicate()

    def test_a_monitored_barrier_names_the_missing_rank(self):
        ranks.run(self, 3, __file__, "one_misses_the_barrier", limit=90)


if __name__ == "__main__":
    unittest.main()
