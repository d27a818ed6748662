"""Parameter traffic: one variable of N bytes between ps and worker in each step.

  read   a variable on the ps, of which the worker uses the last element
  add    a variable on the worker, added to one on the ps (assign_add)

Small sizes are shown as the time of a step, large ones as MB/s (1 MB = 2^20 bytes).  The same run measures a plain TCP
stream over loopback, `stream`, as the limit of the system.
"""

import multiprocessing
import socket
import time

from common import HOST, Cluster, emit, import_tf, median, parse, parser

KB, MB = 1 << 10, 1 << 20

p = parser(__doc__)
p.add_argument("--sizes", default="1024,65536,1048576,16777216,104857600", help="bytes")
p.add_argument("--ops", default="read,add")
p.add_argument("--seconds", type=float, default=3.0, help="for each point")
p.add_argument("--path", default="default", help="label of how values travel")
args = parse(p)
if args.quick:
    args.seconds = 0.7


def drain(listener, size):
    """Receives `size` bytes repeatedly, and acknowledges each time."""
    conn, _ = listener.accept()
    buffer = memoryview(bytearray(size))
    while True:
        got = 0
        while got < size:
            n = conn.recv_into(buffer[got:])
            if not n:
                return
            got += n
        conn.sendall(b"x")


def stream(size, seconds):
    """MB/s of a raw TCP stream over loopback between two processes."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        taker = multiprocessing.get_context("fork").Process(target=drain, args=(listener, size))
        taker.start()
        try:
            with socket.create_connection(listener.getsockname()) as s:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                payload, times, began = bytes(size), [], time.perf_counter()
                while len(times) < 5 or time.perf_counter() - began < seconds:
                    t = time.perf_counter()
                    s.sendall(payload)
                    s.recv(1)
                    times.append(time.perf_counter() - t)
        finally:
            taker.terminate()
            taker.join()
    return size / median(times) / MB


# Before TensorFlow is imported: its threads do not survive a fork.
sizes = [int(size) for size in args.sizes.split(",")]
for size in sizes:
    if size >= MB:
        emit("cluster_traffic", "stream", stream(size, args.seconds / 2), "MB/s", "higher",
             {"bytes": size, "path": args.path})

tf = import_tf()
v1 = tf.compat.v1
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def variable(name, n, where):
    with tf.device(where):
        return v1.get_variable(name, [n], tf.float32, v1.zeros_initializer(), use_resource=False)


def build(op, n):
    if op == "read":
        v = variable("read_%d" % n, n, PS)
        with tf.device(WORKER):
            return v[n - 1]
    to, by = variable("to_%d" % n, n, PS), variable("by_%d" % n, n, WORKER)
    with tf.device(WORKER):
        by = tf.identity(by)
    with tf.device(PS):
        return v1.assign_add(to, by).op


def measure(cluster, op, size):
    with tf.Graph().as_default():
        fetch = build(op, size // 4)
        init = v1.global_variables_initializer()
        with v1.Session(cluster.target()) as sess:
            sess.run(init)
            call = sess.make_callable(fetch)
            for _ in range(10):
                call()
            times, cpu, began = [], cluster.cpu(), time.perf_counter()
            while len(times) < 10 or (time.perf_counter() - began < args.seconds
                                      and len(times) < 5000):
                t = time.perf_counter()
                call()
                times.append(time.perf_counter() - t)
            cpu = (cluster.cpu() - cpu) / len(times)
    seconds, point = median(times), {"op": op, "bytes": size, "path": args.path}
    emit("cluster_traffic", "latency", seconds * 1e6, "us", "lower", point, best=min(times) * 1e6)
    emit("cluster_traffic", "throughput", size / seconds / MB, "MB/s", "higher", point,
         best=size / min(times) / MB, steps=len(times))
    emit("cluster_traffic", "server_cpu", cpu * 1e6, "us", "lower", point)


with Cluster(args, {"ps": 1, "worker": 1}) as cluster:
    for op in args.ops.split(","):
        for size in sizes:
            measure(cluster, op, size)
