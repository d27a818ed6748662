"""Elastic training while ranks are killed, for as long as one likes.

    python soak.py torch --minutes 5 --kill-every 4

A model is trained by `ferroflow run` with 3 ranks. Every few seconds one of them is killed, and the
launcher starts another. One weight counts the steps exactly: a lost or repeated update of weights is
an error. All ranks have the same batches, so at the end one process repeats all steps alone, and its
weights must be the same up to rounding. Fails, too, if training stands still for `--hang-after`
seconds. Frameworks: torch, tensorflow, keras, jax, graph (`ferroflow.compat.v1`) and numpy.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

BATCHES, ROWS, INPUTS, HIDDEN = 16, 8, 6, 16
RATE = 0.05
# Weights differ a little, because the mean of three equal numbers is not always the number. Over
# many steps such differences grow: a process that rounds less is then the measure.
TOLERANCE = 5e-3
# The gradient of the weight that counts: its step of RATE * 20 is exactly 1.
COUNTED = -20.0


def _data():
    source = np.random.default_rng(1)
    x = source.standard_normal((BATCHES, ROWS, INPUTS)).astype(np.float32)
    y = np.sin(x.sum(-1, keepdims=True)).astype(np.float32)
    first = (source.standard_normal((INPUTS, HIDDEN)) / 3).astype(np.float32)
    second = (source.standard_normal((HIDDEN, 1)) / 4).astype(np.float32)
    return x, y, first, second


class Watch:
    """Reports a rank and its progress to the soak, and ends the training."""

    def __init__(self, name):
        self.folder = os.environ["SOAK_FOLDER"]
        self.name, self.told = name, 0.0

    def is_over(self):
        return os.path.exists(os.path.join(self.folder, "over"))

    def stepped(self, step, size):
        if time.time() - self.told > 0.2:
            self.told = time.time()
            self._write(str(os.getpid()), {"step": step, "size": size})

    def done(self, steps, weights):
        self._write("result", {"steps": steps, "weights": [np.asarray(w).tolist()
                                                           for w in weights]})

    def _write(self, name, value):
        part = os.path.join(self.folder, f".{name}-{os.getpid()}")
        with open(part, "w") as file:
            json.dump(value, file)
        os.rename(part, os.path.join(self.folder, name))


def _train(hvd, elastic_run, state, step, watch, last):
    """Steps until the time is over on any rank. `step(batch, is_over)` returns the mean of
    `is_over` over all ranks."""
    @elastic_run
    def train(state):
        while True:
            over = step(state.step % BATCHES, float(watch.is_over()))
            state.step += 1
            watch.stepped(state.step, hvd.size())
            state.commit()
            if over > 0:
                return

    train(state)
    if hvd.rank() == 0:
        watch.done(state.step, last())
    hvd.shutdown()


def numpy_(watch):
    import ferroflow.hvd as hvd
    from ferroflow.common import elastic
    hvd.init()
    x, y, first, second = _data()
    state = elastic.ObjectState(hvd.broadcast_object, step=0,
                                weights=[first, second, np.zeros(1, np.float32)])

    def step(i, is_over):
        gradients = _gradients(state.weights, x[i], y[i]) + [np.array([COUNTED], np.float32)]
        *gradients, over = hvd.grouped_allreduce(
            gradients + [np.array([is_over])], name="gradients")
        state.weights = [w - np.float32(RATE) * g for w, g in zip(state.weights, gradients)]
        return over[0]

    _train(hvd, elastic.run_fn, state, step, watch, lambda: state.weights)


def torch(watch):
    import torch

    import ferroflow.torch as hvd
    hvd.init()
    x, y, first, second = _data()
    net = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN, bias=False), torch.nn.Tanh(),
                              torch.nn.Linear(HIDDEN, 1, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.from_numpy(first.T)), net[2].weight.copy_(
            torch.from_numpy(second.T))
    net.count = torch.nn.Parameter(torch.zeros(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=RATE),
                                         net.named_parameters())
    state = hvd.elastic.TorchState(model=net, optimizer=optimizer, step=0)
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def step(i, is_over):
        state.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x[i]), y[i]) + COUNTED * net.count.sum()
        loss.backward()
        state.optimizer.step()
        return float(hvd.allreduce(torch.tensor([is_over]), name="over"))

    _train(hvd, hvd.elastic.run, state, step, watch,
           lambda: [net[0].weight.detach().numpy().T, net[2].weight.detach().numpy().T,
                    net.count.detach().numpy()])


def tensorflow(watch):
    import tensorflow as tf

    import ferroflow.tensorflow as hvd
    hvd.init()
    x, y, first, second = _data()
    weights = [tf.Variable(first), tf.Variable(second), tf.Variable([0.0])]
    state = hvd.elastic.TensorFlowState(weights, step=0)

    @tf.function
    def reduced(inputs, targets, is_over):
        with tf.GradientTape() as tape:
            out = tf.tanh(inputs @ weights[0]) @ weights[1]
            loss = tf.reduce_mean(tf.square(out - targets)) + COUNTED * weights[2][0]
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, weights)
        for w, g in zip(weights, gradients):
            w.assign_sub(RATE * g)
        return hvd.allreduce(is_over, name="over")

    def step(i, is_over):
        return float(reduced(tf.constant(x[i]), tf.constant(y[i]), tf.constant([is_over]))[0])

    _train(hvd, hvd.elastic.run, state, step, watch, lambda: [w.numpy() for w in weights])


def jax(watch):
    import jax
    import jax.numpy as jnp

    import ferroflow.jax as hvd
    hvd.init()
    x, y, first, second = _data()

    def loss(weights, batch):
        inputs, targets, _ = batch
        squares = (jnp.tanh(inputs @ weights[0]) @ weights[1] - targets) ** 2
        return jnp.mean(squares) + COUNTED * weights[2][0]

    reduced = hvd.value_and_grad(loss)

    @jax.jit
    def compiled(weights, batch):
        _, grads = reduced(weights, batch)
        over = hvd.allreduce(batch[2], name="over")
        return jax.tree_util.tree_map(lambda w, g: w - RATE * g, weights, grads), over

    weights = [jnp.asarray(first), jnp.asarray(second), jnp.zeros(1)]
    state = hvd.elastic.JaxState(weights=weights, step=0)

    def step(i, is_over):
        state.weights, over = compiled(state.weights, (x[i], y[i], jnp.float32(is_over)))
        return float(over)

    _train(hvd, hvd.elastic.run, state, step, watch,
           lambda: [np.asarray(w) for w in state.weights])


def graph(watch):
    import ferroflow.compat.v1 as tf
    import ferroflow.hvd as hvd
    hvd.init()
    x, y, first, second = _data()
    inputs, targets = tf.placeholder(tf.float32, [ROWS, INPUTS]), tf.placeholder(
        tf.float32, [ROWS, 1])
    is_over = tf.placeholder(tf.float32, [1])
    weights = [tf.get_variable("first", initializer=tf.constant(first)),
               tf.get_variable("second", initializer=tf.constant(second)),
               tf.get_variable("count", initializer=tf.constant([0.0]))]
    out = tf.matmul(tf.tanh(tf.matmul(inputs, weights[0])), weights[1])
    loss = tf.reduce_mean(tf.square(out - targets)) + COUNTED * weights[2][0]
    train_op = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(RATE)).minimize(loss)
    over = hvd.allreduce(is_over, name="over")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, step=0)

        def step(i, value):
            feeds = {inputs: x[i], targets: y[i], is_over: [value]}
            return session.run([train_op, over], feeds)[1][0]

        _train(hvd, hvd.elastic.run, state, step, watch, lambda: session.run(weights))


def keras(watch):
    import keras

    import ferroflow.keras as hvd
    hvd.init()
    x, y, first, second = _data()

    class Counter(keras.layers.Layer):
        def build(self, _):
            self.count = self.add_weight(shape=(1,), initializer="zeros")

        def call(self, inputs):
            self.add_loss(COUNTED * keras.ops.sum(self.count))
            return inputs

    net = keras.Sequential([keras.layers.Input((INPUTS,)),
                            keras.layers.Dense(HIDDEN, "tanh", use_bias=False),
                            keras.layers.Dense(1, use_bias=False), Counter()])
    net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(RATE)), "mse")
    net.set_weights([first, second, np.zeros(1, np.float32)])
    state = hvd.elastic.KerasState(net, step=0)

    def step(i, is_over):
        # Elastic fit(): one epoch of one batch, with the callback that commits as the loop does.
        net.fit(x[i], y[i], batch_size=ROWS, epochs=1, verbose=0, shuffle=False)
        return float(hvd.allreduce(np.array([is_over]), name="over")[0])

    _train(hvd, hvd.elastic.run, state, step, watch, net.get_weights)


PROGRAMS = {"torch": torch, "tensorflow": tensorflow, "keras": keras, "jax": jax, "graph": graph,
            "numpy": numpy_}


def _gradients(weights, x, y):
    hidden = np.tanh(x @ weights[0])
    error = (2.0 / y.size) * (hidden @ weights[1] - y)
    back = (error @ weights[1].T) * (1 - hidden * hidden)
    return [(x.T @ back).astype(x.dtype), (hidden.T @ error).astype(x.dtype)]


def alone(steps, dtype=np.float32):
    """The weights after as many steps of one process."""
    x, y, *weights = (values.astype(dtype) for values in _data())
    for step in range(steps):
        i = step % BATCHES
        gradients = _gradients(weights, x[i], y[i])
        weights = [w - dtype(RATE) * g for w, g in zip(weights, gradients)]
    return weights


def _difference(some, others):
    return max(float(np.abs(np.array(a, np.float64) - b).max()) for a, b in zip(some, others))


def _wrong_weights(steps, weights):
    """The difference of weights from those of one process, and the error, if there is one."""
    [count] = weights.pop()
    one = alone(steps)
    difference = _difference(weights, one)
    if count != steps:
        return difference, f"{steps} steps updated the weights {count:.0f} times"
    if difference < TOLERANCE:
        return difference, None
    rounding = _difference(one, alone(steps, np.float64))
    if difference < 2 * rounding:
        return difference, None
    return difference, (f"the weights differ by {difference} from those of one process, which "
                        f"differ by {rounding} from those with double precision")


def _ranks(folder):
    """The processes that train, by their last report."""
    found = {}
    for name in os.listdir(folder):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline") as file:
                is_ours = os.path.basename(__file__) in file.read()
            with open(os.path.join(folder, name)) as file:
                report = json.load(file)
        except (OSError, ValueError):
            is_ours = False
        if is_ours:
            found[int(name)] = report
        else:
            os.unlink(os.path.join(folder, name))
    return found


def soak(args):
    folder = tempfile.mkdtemp(prefix="ferroflow-soak-")
    command = [sys.executable, "-m", "ferroflow", "run", "-np", str(args.np), "--min-np", "1",
               "--max-np", str(args.np), "--max-failures", "1000000", "--",
               sys.executable, os.path.abspath(__file__), args.framework, "--rank"]
    began = time.time()
    env = {**os.environ, "SOAK_FOLDER": folder, "OMP_NUM_THREADS": "1",
           "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
    log = open(os.path.join(folder, "log"), "w")
    job = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    choice = random.Random(args.seed)
    kills, longest, step, sizes = 0, 0.0, 0, set()
    # The minutes count from the first step.
    last_progress, next_kill, end = time.time(), None, None
    problem = None
    try:
        while job.poll() is None and problem is None:
            time.sleep(0.1)
            now, ranks = time.time(), _ranks(folder)
            sizes.update(r["size"] for r in ranks.values())
            newest = max((r["step"] for r in ranks.values()), default=0)
            if newest > step:
                longest = max(longest, now - last_progress) if step else 0.0
                if end is None:
                    next_kill, end = now + args.kill_every, now + args.minutes * 60
                step, last_progress = newest, now
            else:
                # At the end, processes that still load their framework have to learn of it.
                is_slow = end is None or now >= end
                if now - last_progress > (args.start_within if is_slow else args.hang_after):
                    problem = f"no step for {now - last_progress:.0f} s, at step {step}"
            # One rank stays: the last one has the only copy of the weights.
            if end is None:
                continue
            if now >= end:
                open(os.path.join(folder, "over"), "w").close()
            elif now >= next_kill and len(ranks) > 1:
                victim = choice.choice(sorted(ranks))
                os.kill(victim, signal.SIGKILL)
                kills, next_kill = kills + 1, now + args.kill_every
    finally:
        if job.poll() is None:
            job.terminate()
            job.wait()
    log.close()
    if problem is None and job.returncode != 0:
        problem = f"the job ended with exit code {job.returncode}"
    difference = None
    if problem is None:
        try:
            with open(os.path.join(folder, "result")) as file:
                result = json.load(file)
            step = result["steps"]
            difference, problem = _wrong_weights(step, result["weights"])
        except OSError as e:
            problem = f"no rank left a result: {e}"
    print(f"{args.framework}: {step} steps, {kills} ranks killed in {time.time() - began:.0f} s, "
          f"longest pause {longest:.1f} s, sizes {sorted(sizes)}, "
          f"difference from one process {difference}", flush=True)
    if problem is None:
        shutil.rmtree(folder)
        return 0
    with open(os.path.join(folder, "log")) as file:
        sys.stderr.write(file.read()[-8000:])
    print(f"{args.framework}: FAILED: {problem}; {folder} has the log", flush=True)
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("framework", choices=sorted(PROGRAMS))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--kill-every", type=float, default=4.0, metavar="S")
    parser.add_argument("--hang-after", type=float, default=90.0, metavar="S")
    parser.add_argument("--start-within", type=float, default=300.0, metavar="S",
                        help="seconds until the first step: frameworks are slow to load")
    parser.add_argument("--np", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        PROGRAMS[args.framework](Watch(args.framework))
        return 0
    return soak(args)


if __name__ == "__main__":
    sys.exit(main())
