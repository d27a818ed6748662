"""The jobs of `ferroflow train`, in Rust from end to end, beside the same models in a TensorFlow script.

  linear  1 ps + 2 workers, between-graph, synchronous or asynchronous, SGD, batch 10: global steps/s.
          TensorFlow: TensorFlow servers, and a Python client for each worker.
  mlp     in one process, 64-64-10, Adam, batch 64: steps/s. TensorFlow: a session in process.

With --binary FILE it measures our command, otherwise TensorFlow.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

from common import emit, import_tf, parse, parser, stop, train_together

LINEAR_BATCH = 10
# The same as in `ferroflow train mlp`.
MLP_BATCH, PIXELS, HIDDEN, CLASSES, RATE = 64, 64, 64, 10, .002
# Warm-up steps, in which connections are made and graphs compiled.
WARM_UP = 1.0

p = parser(__doc__)
p.add_argument("--binary", metavar="FILE", help="the ferroflow command, which is measured then")
p.add_argument("--seconds", type=float, default=6.0, help="for each point")
args = parse(p)
if args.quick:
    args.seconds = 2.0
# compare.py passes the shipped files, which are a folder for TensorFlow.
ours = args.binary if args.binary and os.path.isfile(args.binary) else None


def tree_cpu(root):
    """CPU seconds of a process and of its children, as far as they still run."""
    tick, total = os.sysconf("SC_CLK_TCK"), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        if int(pid) == root or int(fields[1]) == root:
            total += int(fields[11]) + int(fields[12])
    return total / tick


def run_ours(words):
    """Runs a job of our command. Returns steps/s after the warm-up, CPU seconds per step, and the last loss."""
    out = tempfile.mkdtemp()
    argv = [ours, "train", *words, "--steps", str(10 ** 9), "--save-steps", str(10 ** 9), "--json",
            "--out", out]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = last = None
        for line in job.stdout:
            point = json.loads(line)
            if point.get("worker") != 0:
                continue
            last = point, time.perf_counter(), tree_cpu(job.pid)
            if point["seconds"] >= WARM_UP and not first:
                first = last
            if first and last[1] - first[1] >= args.seconds:
                break
        else:
            raise SystemExit("the job ended: " + job.stderr.read().strip()[-500:])
    finally:
        job.terminate()
        stop(job)
        shutil.rmtree(out, ignore_errors=True)
    steps = max(last[0]["global_step"] - first[0]["global_step"], 1)
    seconds = last[0]["seconds"] - first[0]["seconds"]
    return steps / seconds, (last[2] - first[2]) / steps, last[0]["loss"]


def mlp_in_tensorflow():
    """The same as run_ours, for a session in this process."""
    tf = import_tf()
    import numpy as np
    v1 = tf.compat.v1
    rng = np.random.RandomState(1)
    data = [(rng.uniform(0, 1, [MLP_BATCH, PIXELS]).astype(np.float32),
             rng.randint(0, CLASSES, [MLP_BATCH]).astype(np.int64)) for _ in range(8)]
    with tf.Graph().as_default():
        x, y = [v1.placeholder(d.dtype, (None,) + d.shape[1:]) for d in data[0]]

        def dense(x, n_in, n_out, name):
            w = v1.get_variable(name + "/w", [n_in, n_out], use_resource=True)
            b = v1.get_variable(name + "/b", [n_out], initializer=v1.zeros_initializer(),
                                use_resource=True)
            return tf.matmul(x, w) + b

        logits = dense(tf.nn.relu(dense(x, PIXELS, HIDDEN, "hidden")), HIDDEN, CLASSES, "logits")
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(RATE).minimize(loss, global_step=step)
        with v1.Session() as sess:
            sess.run(v1.global_variables_initializer())
            count, began, cpu, last_loss = 0, time.perf_counter(), time.process_time(), None
            is_warm = False
            while time.perf_counter() - began < (args.seconds if is_warm else WARM_UP):
                fed = data[count % len(data)]
                _, _, last_loss, _ = sess.run([train, step, loss, accuracy], {x: fed[0], y: fed[1]})
                count += 1
                if not is_warm and time.perf_counter() - began >= WARM_UP:
                    is_warm, count = True, 0
                    began, cpu = time.perf_counter(), time.process_time()
            seconds = time.perf_counter() - began
            return count / seconds, (time.process_time() - cpu) / count, float(last_loss)


def report(point, steps_per_s, cpu, loss):
    emit("train_job", "steps", steps_per_s, "steps/s", "higher", point, loss=loss)
    emit("train_job", "cpu", cpu * 1e6, "us", "lower", point)


for mode in ("sync", "async"):
    point = {"model": "linear", "mode": mode}
    if ours:
        report(point, *run_ours(["linear", "--" + mode, "--batch", str(LINEAR_BATCH)]))
    else:
        trained = train_together(args, "linear", mode, LINEAR_BATCH, args.seconds)
        cpu = (trained["server_cpu_us"] + trained["client_cpu_us"]) / 1e6
        report(point, trained["steps_per_s"], cpu, trained["loss"])
mlp = run_ours(["mlp", "--local", "--batch", str(MLP_BATCH)]) if ours else mlp_in_tensorflow()
report({"model": "mlp", "mode": "local"}, *mlp)
