"""Jobs that `ferroflow run` and torchrun start, elastic ones among them."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import ranks

COMMAND = shutil.which("ferroflow", path=os.path.dirname(sys.executable))
FLAGS = ["-I"] if sys.flags.isolated else []


def adds_up():
    """Reduces once."""
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    total = hvd.allreduce(np.ones(2), op=hvd.Sum)[0]
    print(f"rank {hvd.rank()} of {hvd.size()}: {total}", flush=True)
    hvd.shutdown()


def survives():
    """Counts to 30 in an elastic job, in which some ranks are killed at certain steps."""
    import signal

    import numpy as np

    import ferroflow.hvd as hvd
    from ferroflow._hvd import arrays, elastic
    hvd.init()
    state = elastic.ObjectState(lambda obj, root, name: arrays.broadcast_object(obj, root, name),
                                step=0, weights=np.zeros(1000))

    @elastic.run
    def train(state):
        while state.step < 30:
            if state.step in (5, 12, 20) and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                marker = os.path.join(os.environ["MARKERS"], str(state.step))
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            state.weights = state.weights + hvd.allreduce(np.ones(1000), name="gradient")
            state.step += 1
            state.commit()
        return state.weights

    weights = train(state)
    assert (weights == 30).all(), weights
    print(f"done with {hvd.size()} ranks", flush=True)
    hvd.shutdown()


def torch_survives():
    """The same with a torch model, its optimizer and a sampler."""
    import signal

    import torch

    import ferroflow.torch as hvd
    hvd.init()
    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.zero_(), net.bias.zero_()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=1.0),
                                         net.named_parameters())
    sampler = hvd.elastic.ElasticSampler(list(range(40)), shuffle=False)
    state = hvd.elastic.TorchState(model=net, optimizer=optimizer, sampler=sampler, step=0)

    @hvd.elastic.run
    def train(state):
        while state.step < 12:
            if state.step == 5 and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                try:
                    os.close(os.open(os.path.join(os.environ["MARKERS"], "torch"),
                                     os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            state.optimizer.zero_grad()
            (-state.model(torch.ones(4, 2)).mean()).backward()
            state.optimizer.step()
            state.step += 1
            state.commit()

    train(state)
    assert torch.allclose(net.bias, torch.tensor([12.0])), net.bias
    assert torch.allclose(net.weight, torch.full((1, 2), 12.0)), net.weight
    print("done", flush=True)
    hvd.shutdown()


def _run(*arguments, env=None, limit=180):
    whole = {**os.environ, **(env or {}), "OMP_NUM_THREADS": "1"}
    return subprocess.run(arguments, env=whole, timeout=limit, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def _program(function):
    return [sys.executable, *FLAGS, os.path.abspath(ranks.__file__), os.path.abspath(__file__),
            function]


@unittest.skipIf(COMMAND is None, "the command `ferroflow` is not installed beside this Python")
class Launch(unittest.TestCase):
    def test_ferroflow_run_starts_python_programs(self):
        ran = _run(COMMAND, "run", "-np", "3", "--", *_program("adds_up"))
        self.assertEqual(ran.returncode, 0, ran.stdout)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3: 3.0", ran.stdout)

    def _elastic(self, function):
        with tempfile.TemporaryDirectory() as folder:
            ran = _run(COMMAND, "run", "-np", "3", "--min-np", "1", "--max-np", "3",
                       "--max-failures", "100", "--", *_program(function),
                       env={"MARKERS": folder})
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertTrue(os.listdir(folder), "no rank was killed")
        self.assertIn("done", ran.stdout)

    def test_an_elastic_job_survives_killed_ranks(self):
        self._elastic("survives")

    @ranks.requires("torch")
    def test_an_elastic_torch_job_survives_killed_ranks(self):
        self._elastic("torch_survives")


@unittest.skipIf(importlib.util.find_spec("torch") is None,
                 "torch not installed; `cargo xtask python --all` runs this")
class Torchrun(unittest.TestCase):
    def test_torchrun_starts_programs_without_an_address(self):
        for program in ("adds_up", "adds_up_by_backend"):
            torchrun = [sys.executable, *FLAGS, "-m", "torch.distributed.run", "--standalone",
                        "--nproc-per-node", "2", os.path.abspath(ranks.__file__),
                        os.path.abspath(__file__), program]
            ran = _run(*torchrun)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertIn("rank 1 of 2: 2.0", ran.stdout)


def adds_up_by_backend():
    """Reduces once by torch's backend, which torch finds by its entry point if it is installed."""
    import torch
    import torch.distributed as dist

    if not sys.flags.isolated:
        import ferroflow.torch.distributed  # noqa: F401
    dist.init_process_group("ferroflow")
    x = torch.ones(2)
    dist.all_reduce(x)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {x[0].item()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
