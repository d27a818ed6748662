"""`ferroflow.torch`: every function, and trainings that equal one process with the whole batch."""

import unittest

import ranks


def everything():
    """Every function and type, on a rank."""
    import torch

    import ferroflow.torch as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    numbers = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16,
               torch.int32, torch.int64, torch.uint8]
    for dtype in numbers:
        every = [(torch.arange(12) % 3 + q).to(dtype).reshape(3, 4) for q in range(n)]
        x, total = every[r], sum(every[1:], every[0])
        assert torch.equal(hvd.allreduce(x, op=hvd.Sum), total), dtype
        assert torch.equal(hvd.allreduce(x, op=hvd.Min), torch.stack(every).amin(0)), dtype
        y = x.clone()
        assert hvd.allreduce_(y, op=hvd.Sum) is y and torch.equal(y, total)
        y = x.clone().t()
        hvd.allreduce_(y, op=hvd.Sum)
        assert torch.equal(y, total.t())
        handle = hvd.allreduce_async(x, op=hvd.Sum)
        assert torch.equal(hvd.synchronize(handle), total) and hvd.poll(handle)
        y = x.clone()
        hvd.synchronize(hvd.allreduce_async_(y, op=hvd.Sum))
        assert torch.equal(y, total)
        assert torch.equal(hvd.allgather(x), torch.cat(every))
        assert torch.equal(hvd.broadcast(x, n - 1), every[n - 1])
        y = x.clone()
        hvd.broadcast_(y, 0)
        assert torch.equal(y, every[0])
        assert torch.equal(hvd.alltoall(x[:1].repeat(n, 1)), torch.cat([e[:1] for e in every]))
        rows = [e[:1].repeat(2 * n, 1) for e in every]
        assert torch.equal(hvd.reducescatter(rows[r], op=hvd.Sum), sum(rows[1:], rows[0])[:2])
        both = hvd.grouped_allreduce([x, x * 2], op=hvd.Sum)
        assert torch.equal(both[1], sum([e * 2 for e in every[1:]], every[0] * 2))
        ys = [x.clone(), x.clone()]
        hvd.grouped_allreduce_(ys, op=hvd.Sum)
        assert torch.equal(ys[1], total)
        assert torch.equal(hvd.grouped_allgather([x, x])[1], torch.cat(every))
        part = hvd.grouped_reducescatter([rows[r]], op=hvd.Max)[0]
        assert torch.equal(part, torch.stack(rows).amax(0)[:2])
    z = hvd.allreduce(torch.tensor([1 + 2j * r]), op=hvd.Sum)
    assert z[0] == n + 2j * sum(range(n))
    out, received = hvd.alltoall(torch.arange(n * (n + 1) // 2), splits=list(range(1, n + 1)))
    assert received.tolist() == [r + 1] * n and len(out) == n * (r + 1)
    half = hvd.allreduce(torch.ones(3), op=hvd.Sum, compression=hvd.Compression.fp16)
    assert half.dtype == torch.float32 and half[0] == n
    sparse = torch.sparse_coo_tensor([[r]], [1.0], (4,), check_invariants=True)
    total = hvd.synchronize(hvd.sparse_allreduce_async(sparse, "sparse", hvd.Sum)).to_dense()
    assert total.tolist() == [1.0] * n + [0.0] * (4 - n)
    assert hvd.allgather_object(r) == list(range(n))
    assert hvd.broadcast_object({"rank": r}, 0) == {"rank": 0}
    # Gradients.
    x = torch.ones(3, requires_grad=True)
    (hvd.allreduce(x, op=hvd.Sum) * (r + 1)).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), float(sum(range(1, n + 1)))))
    x = torch.ones(r + 1, 2, requires_grad=True)
    hvd.allgather(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(r + 1, 2))
    x = torch.ones(n, 2, requires_grad=True)
    (hvd.alltoall(x) * (r + 1)).sum().backward()
    assert x.grad[:, 0].tolist() == [float(q + 1) for q in range(n)]
    x = torch.ones(n, 2, requires_grad=True)
    (hvd.reducescatter(x, op=hvd.Sum) * (r + 1)).sum().backward()
    # Averages over the ranks, as Horovod's: a sum has the gradient of the mean times the ranks.
    assert x.grad[:, 0].tolist() == [float(n * (q + 1)) for q in range(n)]
    x = torch.ones(n, 2, requires_grad=True)
    sum(p.sum() for p in hvd.grouped_reducescatter([x, x], op=hvd.Average)).backward()
    assert torch.equal(x.grad, torch.full((n, 2), 2.0))
    x, y = torch.ones(r + 1, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    a, b = hvd.grouped_allgather([x, y])
    ((a.sum() + 3 * b.sum()) * (r + 1)).backward()
    mean = sum(range(1, n + 1)) / n
    assert torch.allclose(x.grad, torch.full((r + 1, 2), mean))
    assert torch.allclose(y.grad, torch.full((2,), 3 * mean))
    x = torch.ones(2, requires_grad=True)
    hvd.broadcast(x, 0).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), float(r == 0)))
    try:
        hvd.allreduce([1.0])
    except (TypeError, AttributeError):
        pass
    for _ in range(r):
        hvd.allreduce(torch.ones(2), name="uneven")
    hvd.join()
    hvd.shutdown()


def _net():
    import torch
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def _data(n):
    import torch
    generator = torch.Generator().manual_seed(3)
    return (torch.randn(5, 4 * n, 8, generator=generator),
            torch.randn(5, 4 * n, 4, generator=generator))


def trains():
    """Data-parallel training equals that of one process with the batches of all ranks."""
    import torch
    from torch.nn.functional import mse_loss

    import ferroflow.torch as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    inputs, targets = _data(n)
    mine = slice(4 * r, 4 * r + 4)
    for options, tolerance in (
            ({}, 1e-4), ({"compression": hvd.Compression.fp16}, 2e-2), ({"num_groups": 2}, 1e-4),
            ({"gradient_predivide_factor": 2.0}, 1e-4),
            ({"backward_passes_per_step": 2}, 1e-4)):
        reference, net = _net(), _net()
        if r:
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(1)
        plain = torch.optim.Adam(reference.parameters(), lr=0.01)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.Adam(net.parameters(), lr=0.01), net.named_parameters(), **options)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        passes = options.get("backward_passes_per_step", 1)
        for x, y in zip(inputs, targets):
            plain.zero_grad()
            mse_loss(reference(x), y).backward()
            plain.step()
            optimizer.zero_grad()
            # Gradients of several passes are summed, so the loss is divided for their average.
            for a, b in zip(x[mine].chunk(passes), y[mine].chunk(passes)):
                (mse_loss(net(a), b) / passes).backward()
            optimizer.step()
        for p, q in zip(reference.parameters(), net.parameters()):
            assert (p - q).abs().max() < tolerance, (options, (p - q).abs().max())
    # A group with a frozen parameter, which keeps its value.
    net[0].bias.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.1), net.named_parameters(),
        groups=[list(net[0].parameters()), list(net[2].parameters())])
    before = net[0].bias.clone()
    optimizer.zero_grad()
    net(inputs[0][mine]).sum().backward()
    optimizer.step()
    assert torch.equal(net[0].bias, before)
    net[0].bias.requires_grad_(True)
    for wrong in ({"groups": -1}, {"groups": [["weight"]]}, {"backward_passes_per_step": 0},
                  {"groups": [[net[0].weight], [net[0].weight]]}):
        try:
            hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), **wrong)
        except ValueError:
            continue
        raise AssertionError(f"no error: {wrong}")
    for wrong in ("weights", 3, [("w", 1.0)]):
        try:
            hvd.broadcast_parameters(wrong, root_rank=0)
        except ValueError:
            continue
        raise AssertionError(f"no error: {wrong}")
    # Clipping between synchronize() and step().
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1),
                                         net.named_parameters())
    optimizer.zero_grad()
    net(inputs[0][mine]).sum().backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    with optimizer.skip_synchronize():
        optimizer.step()
    # Adasum, and gradients that only some ranks have.
    net = _net()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1),
                                         net.named_parameters(), op=hvd.Adasum)
    optimizer.zero_grad()
    net(inputs[0][mine]).sum().backward()
    optimizer.step()
    state = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    assert torch.equal(hvd.broadcast(state, 0), state), "ranks differ after Adasum"
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1),
                                         net.named_parameters())
    optimizer.zero_grad()
    if r == 0:
        net[0](inputs[0][mine]).sum().backward()
    optimizer.step()
    hvd.shutdown()


def normalizes():
    """SyncBatchNorm equals batch normalization of the whole batch."""
    import torch

    import ferroflow.torch as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    whole = torch.randn(4 * n, 3, 5, generator=torch.Generator().manual_seed(9))
    weight = torch.randn(4 * n, 3, 5, generator=torch.Generator().manual_seed(8))
    plain, synced = torch.nn.BatchNorm1d(3), hvd.SyncBatchNorm(3)
    # Ranks have batches of different sizes.
    ends = [0] + [4 * (q + 1) - (q + 1 < n) for q in range(n)]
    mine = slice(ends[r], ends[r + 1])
    x, y = whole.clone().requires_grad_(), whole[mine].clone().requires_grad_()
    (plain(x) * weight).sum().backward()
    (synced(y) * weight[mine]).sum().backward()
    assert torch.allclose(x.grad[mine], y.grad, atol=1e-5)
    assert torch.allclose(plain.running_var, synced.running_var, atol=1e-5)
    assert torch.allclose(plain.running_mean, synced.running_mean, atol=1e-5)
    total = hvd.allreduce(synced.weight.grad, op=hvd.Sum)
    assert torch.allclose(plain.weight.grad, total, atol=1e-4)
    synced.eval()
    assert torch.allclose(synced(y), plain.eval()(x)[mine], atol=1e-5)
    hvd.shutdown()


def samples():
    """ElasticSampler divides an epoch, and goes on after the samples that were processed."""
    import ferroflow.torch as hvd
    hvd.init()
    r, n = hvd.rank(), hvd.size()
    sampler = hvd.elastic.ElasticSampler(list(range(20)), seed=3)
    assert len(sampler) == len(list(sampler)) == -(-20 // n)
    everybody = sum(hvd.allgather_object(list(sampler)), [])
    assert set(everybody) == set(range(20))
    for batch in range(2):
        sampler.record_batch(batch, 2)
    assert sampler.processed_num == 4 * n and sampler.state_dict() == {
        "epoch": 0, "processed_num": 4 * n}
    done = set(sampler.processed_indices)
    assert done == set(sum(hvd.allgather_object(sampler.get_indices(0, 4)), []))
    state = hvd.elastic.TorchState(sampler=sampler, batch=2)
    state.commit()
    sampler.record_batch(2, 2)
    state.restore()
    assert sampler.processed_num == 4 * n
    # The state of rank 0 counts for all.
    sampler.processed_num += r
    state.sync()
    left = set(sum(hvd.allgather_object(list(sampler)), []))
    assert left == set(range(20)) - done, (left, done)
    order = list(sampler)
    sampler.set_epoch(1)
    assert sampler.processed_num == 0 and len(sampler) == -(-20 // n) and list(sampler) != order
    hvd.shutdown()


@ranks.requires("torch")
class Torch(unittest.TestCase):
    def test_samplers_go_on_after_the_samples_that_were_processed(self):
        for n in (1, 3):
            ranks.run(self, n, __file__, "samples")

    def test_every_function_and_type_gives_what_torch_gives(self):
        for n in (1, 2, 3, 4):
            ranks.run(self, n, __file__, "everything")

    def test_training_equals_one_process_with_the_whole_batch(self):
        for n in (2, 4):
            ranks.run(self, n, __file__, "trains")

    def test_batches_are_normalized_over_all_ranks(self):
        ranks.run(self, 2, __file__, "normalizes")


if __name__ == "__main__":
    unittest.main()
