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
    import numpy as np

    import ferroflow.hvd as hvd
    from ferroflow.common import elastic
    hvd.init()
    state = elastic.ObjectState(hvd.broadcast_object, step=0, weights=np.zeros(1000))

    @elastic.run_fn
    def train(state):
        while state.step < 30:
            if state.step in (5, 12, 20) and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                _dies_once(str(state.step))
            state.weights = state.weights + hvd.allreduce(np.ones(1000), name="gradient")
            state.step += 1
            state.commit()
        return state.weights

    weights = train(state)
    assert (weights == 30).all(), weights
    print(f"done with {hvd.size()} ranks", flush=True)
    hvd.shutdown()


def ends_before_a_newcomer():
    """Rank 1 is killed after the last step. The others finish when the process that takes its place
    has started, which finds the job done."""
    import time

    import numpy as np

    import ferroflow.hvd as hvd
    folder = os.environ["MARKERS"]

    def wait_for(name):
        end = time.monotonic() + 60
        while not os.path.exists(os.path.join(folder, name)):
            assert time.monotonic() < end, f"nothing {name}"
            time.sleep(0.05)

    if os.path.exists(os.path.join(folder, "last")):
        open(os.path.join(folder, "started"), "w").close()
        wait_for("finished")
    try:
        hvd.init()
    except SystemExit as e:
        open(os.path.join(folder, "refused"), "w").close()
        print(f"refused with status {e.code}", flush=True)
        raise
    hvd.allreduce(np.ones(1))
    if hvd.rank() == 1:
        _dies_once("last")
    wait_for("started")
    hvd.shutdown()
    open(os.path.join(folder, "finished"), "w").close()
    # The launcher waits for this process.
    wait_for("refused")


def torch_survives():
    """The same with a torch model, its optimizer and a sampler."""
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
                _dies_once("torch")
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


def _dies_once(name):
    """Ends the process, the first time that any rank calls this with the name."""
    import signal
    try:
        os.close(os.open(os.path.join(os.environ["MARKERS"], name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def session_survives():
    """The same with a session of `ferroflow.compat.v1`."""
    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
    optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0))
    train_op = optimizer.minimize(-tf.reduce_sum(w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, step=0)

        @hvd.elastic.run
        def train(state):
            while state.step < 12:
                if state.step == 5 and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                    _dies_once("session")
                session.run(train_op)
                state.step += 1
                state.commit()

        train(state)
        assert (session.run(w) == 12).all(), session.run(w)
    print("done", flush=True)
    hvd.shutdown()


def tensorflow_survives():
    """The same with TensorFlow's variables."""
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    w = tf.Variable(tf.zeros(3))
    state = hvd.elastic.TensorFlowState([w], step=0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = -tf.reduce_sum(w)
        [gradient] = hvd.DistributedGradientTape(tape).gradient(loss, [w])
        w.assign_sub(gradient)

    @hvd.elastic.run
    def train(state):
        while state.step < 12:
            if state.step == 5 and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                _dies_once("tensorflow")
            step()
            state.step += 1
            state.commit()

    train(state)
    assert (w.numpy() == 12).all(), w
    print("done", flush=True)
    hvd.shutdown()


def jax_survives():
    """The same with a compiled step of JAX."""
    import jax.numpy as jnp

    import ferroflow.jax as hvd
    hvd.init()
    step = hvd.data_parallel_step(lambda w, batch: -(w * batch).sum(),
                                  lambda grad, state, w: (-grad, state))
    state = hvd.elastic.JaxState(w=jnp.zeros(3), step=0)

    @hvd.elastic.run
    def train(state):
        while state.step < 12:
            if state.step == 5 and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                _dies_once("jax")
            state.w, _, _ = step(state.w, (), jnp.ones(3))
            state.step += 1
            state.commit()

    train(state)
    assert (state.w == 12).all(), state.w
    print("done", flush=True)
    hvd.shutdown()


def keras_survives():
    """The same with fit() of a Keras model, and the callbacks."""
    import keras
    import numpy as np

    import ferroflow.keras as hvd
    hvd.init()
    net = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(
        1, kernel_initializer="zeros", use_bias=False)])
    net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)),
                lambda target, out: -keras.ops.mean(out) if hasattr(keras, "ops") else -out)
    state = hvd.elastic.KerasState(net, batch=0, epoch=0)

    class Dies(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if state.epoch == 1 and hvd.rank() == hvd.size() - 1 and hvd.size() > 1:
                _dies_once("keras")

    @hvd.elastic.run
    def train(state):
        net.fit(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), batch_size=4,
                epochs=4 - state.epoch, verbose=0, callbacks=[
                    Dies(), hvd.elastic.UpdateBatchStateCallback(state),
                    hvd.elastic.UpdateEpochStateCallback(state),
                    hvd.elastic.CommitStateCallback(state, batches_per_commit=100)])

    train(state)
    assert state.epoch == 4, state.epoch
    # One step for each epoch, and no step twice.
    assert np.allclose(net.get_weights()[0], 4.0), net.get_weights()
    print("done", flush=True)
    hvd.shutdown()


CALLS_FUNCTIONS = """
import numpy
import ferroflow.hvd as hvd

def sums_of_ranks(factor, offset=0):
    hvd.init()
    total = hvd.allreduce(numpy.ones(1), op=hvd.Sum)[0]
    return hvd.rank(), float(total) * factor + offset

def fails_on_rank_1():
    hvd.init()
    if hvd.rank() == 1:
        raise KeyError("no such column")
    hvd.barrier()

if __name__ == "__main__":
    print(hvd.run(sums_of_ranks, (10,), {"offset": 1}, np=3))
    try:
        hvd.run(fails_on_rank_1, np=2)
    except RuntimeError as e:
        print("error:", e)
"""


def _run(*arguments, env=None, limit=180):
    whole = {**os.environ, **(env or {}), "OMP_NUM_THREADS": "1"}
    return subprocess.run(arguments, env=whole, timeout=limit, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def _program(function):
    return [sys.executable, *FLAGS, os.path.abspath(ranks.__file__), os.path.abspath(__file__),
            function]


def _frameworks_of_keras():
    from importlib.metadata import version
    if version("keras").startswith("2."):
        return ["tensorflow"]
    return [f for f in ("tensorflow", "torch", "jax") if importlib.util.find_spec(f)]


@unittest.skipIf(COMMAND is None, "the command `ferroflow` is not installed beside this Python")
class Launch(unittest.TestCase):
    def test_ferroflow_run_starts_python_programs(self):
        ran = _run(COMMAND, "run", "-np", "3", "--", *_program("adds_up"))
        self.assertEqual(ran.returncode, 0, ran.stdout)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3: 3.0", ran.stdout)

    def test_functions_are_called_on_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as program:
                program.write(CALLS_FUNCTIONS)
            ran = _run(sys.executable, *FLAGS, path)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn("[(0, 31.0), (1, 31.0), (2, 31.0)]", ran.stdout)
        self.assertIn("error: rank 1 raised KeyError: 'no such column'", ran.stdout)

    def test_ranks_with_certificates_work_together(self):
        with tempfile.TemporaryDirectory() as folder:
            names = ["job", "rank-0", "rank-1"]
            made = _run(COMMAND, "certs", "--out", folder,
                        *(f"{name}=localhost,127.0.0.1" for name in names))
            self.assertEqual(made.returncode, 0, made.stdout)
            self._with_certificates("adds_up", folder)
            if importlib.util.find_spec("torch") is not None:
                self._with_certificates("adds_up_by_backend", folder)
            self._elastic("survives", {"FERROFLOW_CREDENTIALS": os.path.join(folder, "job")})

    def _with_certificates(self, function, folder):
        processes = ranks.start(2, __file__, function)
        # Once more, with a folder for each rank.
        processes += ranks.start(2, __file__, function,
                                 each=lambda r: {"FERROFLOW_CREDENTIALS": f"{folder}/rank-{r}"})
        for code, out in ranks.finish(processes):
            self.assertEqual(code, 0, out)
            self.assertIn("of 2: 2.0", out)

    def _elastic(self, function, env=None):
        with tempfile.TemporaryDirectory() as folder:
            ran = _run(COMMAND, "run", "-np", "3", "--min-np", "1", "--max-np", "3",
                       "--max-failures", "100", "--", *_program(function),
                       env={"MARKERS": folder, **(env or {})})
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertTrue(os.listdir(folder), "no rank was killed")
        self.assertIn("done", ran.stdout)
        return ran.stdout

    def test_an_elastic_job_survives_killed_ranks(self):
        self._elastic("survives")

    def test_a_process_that_starts_after_the_job_is_done_ends_quietly(self):
        out = self._elastic("ends_before_a_newcomer")
        self.assertIn("refused with status 0", out)
        self.assertIn("the job is done; this process ends without work", out)
        self.assertNotIn("Traceback", out)

    def test_an_elastic_job_of_sessions_survives_killed_ranks(self):
        self._elastic("session_survives")

    @ranks.requires("tensorflow")
    def test_an_elastic_tensorflow_job_survives_killed_ranks(self):
        self._elastic("tensorflow_survives")

    @ranks.requires("keras")
    def test_an_elastic_keras_job_survives_killed_ranks(self):
        for framework in _frameworks_of_keras():
            with self.subTest(framework):
                self._elastic("keras_survives", {"KERAS_BACKEND": framework})

    @ranks.requires("jax")
    def test_an_elastic_jax_job_survives_killed_ranks(self):
        self._elastic("jax_survives")

    @ranks.requires("torch")
    def test_an_elastic_torch_job_survives_killed_ranks(self):
        self._elastic("torch_survives")


class OtherLaunchers(unittest.TestCase):
    @unittest.skipIf(shutil.which("mpirun") is None, "mpirun is not installed")
    def test_mpirun_starts_python_programs(self):
        ran = _run("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3",
                   *_program("adds_up"))
        self.assertEqual(ran.returncode, 0, ran.stdout)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3: 3.0", ran.stdout)

    def test_variables_of_srun_are_understood(self):
        none = dict.fromkeys(("FERROFLOW_RANK", "FERROFLOW_SIZE", "FERROFLOW_ADDRESS", "RANK",
                              "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), "")
        job = {"SLURM_NTASKS": 2, "SLURM_STEP_ID": 0, "SLURM_JOB_ID": os.getpid(),
               "SLURM_STEP_NODELIST": "localhost", **none}
        outs = ranks.finish(ranks.start(2, __file__, "adds_up", job,
                                        each=lambda r: {"SLURM_PROCID": r, "SLURM_LOCALID": r}))
        for rank, (code, out) in enumerate(outs):
            self.assertEqual(code, 0, out)
            self.assertIn(f"rank {rank} of 2: 2.0", out)


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
