"""Shared code of the benchmarks: lines of output, servers, and CPU time.

A benchmark measures one implementation once and prints JSON lines,

  {"name", "metric", "value", "unit", "better", "impl", "params", "extra", "ts", "load1"}

`params` identify the measured point, `extra` is additional information.  compare.py runs the benchmarks in turn for
each implementation, and report.py makes tables from the lines.

Only `import_tf` imports TensorFlow, so that parents of client processes stay small.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = "127.0.0.1"
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def tf_server_cmd(onednn):
    """The command of one TensorFlow server, in one of TensorFlow's two CPU modes."""
    words = [sys.executable, os.path.join(HERE, "tf_server.py"), "--onednn", str(onednn)]
    fields = " --cluster {cluster_json} --job {job} --task {task}"
    return " ".join(shlex.quote(w) for w in words) + fields


# ------------------------------------------------------------------ options and output


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--impl", default="tensorflow", help="label of what is measured")
    p.add_argument("--server-cmd", default=tf_server_cmd(0), metavar="CMD",
                   help="command of one server, split into words as a shell would;\n"
                        "{cluster_json} {job} {task} {addr} {port} are filled in\n"
                        "(default: a TensorFlow server)")
    p.add_argument("--target", metavar="HOST:PORT", help="a server that runs already, instead")
    p.add_argument("--server-pid", type=int, help="its process, for CPU time and memory")
    p.add_argument("--quick", action="store_true", help="less of everything, rough figures")
    return p


_impl = None


def parse(p):
    global _impl
    args = p.parse_args()
    _impl = args.impl
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")
    for name in list(os.environ):
        if name.lower() in PROXIES:
            del os.environ[name]
    return args


def emit(name, metric, value, unit, better, params=None, **extra):
    """Prints one figure.  `better` is "lower" or "higher"."""
    print(json.dumps({
        "name": name, "metric": metric, "value": rounded(value), "unit": unit, "better": better,
        "impl": _impl, "params": params or {},
        "extra": {k: rounded(v) for k, v in extra.items()},
        "ts": time.strftime("%Y-%m-%dT%H:%M:%S"), "load1": round(os.getloadavg()[0], 2)}),
        flush=True)


def rounded(x):
    return float("%.5g" % x) if isinstance(x, float) else x


def median(xs):
    return statistics.median(xs)


def percentile(xs, q):
    xs = sorted(xs)
    return xs[min(len(xs) - 1, int(q * len(xs)))]


# ------------------------------------------------------------------------- processes


def cpu_seconds(pid):
    """User and system CPU time of a process, all its threads together."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


def peak_mb(pid):
    """The peak memory of a process, or None if there is no process."""
    if not pid:
        return None
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def thread_count(pid):
    return len(os.listdir("/proc/%d/task" % pid))


def free_ports(n):
    """Different ports that are free now: all are held until all are known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind((HOST, 0))
        return [s.getsockname()[1] for s in sockets]


def free_port():
    return free_ports(1)[0]


def stop(proc):
    """Ends a process that we started."""
    if proc.poll() is None:
        proc.send_signal(signal.SIGTERM)
        try:
            proc.wait(5)
        except subprocess.TimeoutExpired:
            proc.kill()
    proc.wait()


class Started:
    """A context manager: `begin` runs when a `with` block begins, and `close` when it ends for any reason."""

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()


class Server(Started):
    """One server, task 0 of the job "worker": started here, or already running."""

    device = "/job:worker/task:0"

    def __init__(self, args):
        self.proc = self.log = None
        if args.target:
            self.addr = args.target.replace("grpc://", "")
            self.pid = args.server_pid
            return
        self.addr = "%s:%d" % (HOST, free_port())
        self.log = tempfile.TemporaryFile("w+")
        self.began = time.perf_counter()
        self.proc = subprocess.Popen(server_argv(args.server_cmd, self.addr),
                                     stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.pid = self.proc.pid

    @property
    def target(self):
        return "grpc://" + self.addr

    def wait_ready(self, timeout=60):
        """Waits until the server answers a client's first bytes. Returns the seconds since its process started."""
        if not self.proc:
            return None
        while not http2_answers(self.addr):
            if self.proc.poll() is not None:
                self.log.seek(0)
                raise SystemExit("the server ended at start (%s): %s"
                                 % (self.proc.returncode, self.log.read().strip()[-500:]))
            if time.perf_counter() - self.began > timeout:
                self.close()
                raise SystemExit("the server is not ready after %g s" % timeout)
            time.sleep(0.0005)
        return time.perf_counter() - self.began

    def cpu(self):
        return cpu_seconds(self.pid) if self.pid else float("nan")

    def close(self):
        if self.proc:
            stop(self.proc)
            self.log.close()
            self.proc = None

    def begin(self):
        self.wait_ready()


class Cluster(Started):
    """Tasks of several jobs, started here. `jobs` has the number of tasks of each job."""

    def __init__(self, args, jobs):
        self.servers = []
        ports = iter(free_ports(sum(jobs.values())))
        self.spec = {job: ["%s:%d" % (HOST, next(ports)) for _ in range(n)] for job, n in jobs.items()}
        self.command = args.server_cmd

    def begin(self):
        for job, addrs in self.spec.items():
            for task in range(len(addrs)):
                self.servers.append(Task(self, job, task))
        for server in self.servers:
            server.wait_ready()

    def close(self):
        for server in self.servers:
            server.close()

    def target(self, job="worker", task=0):
        return "grpc://" + self.spec[job][task]

    def cpu(self):
        return sum(server.cpu() for server in self.servers)


class Task(Server):
    """One task of a cluster."""

    def __init__(self, cluster, job, task):
        self.addr = cluster.spec[job][task]
        self.log = tempfile.TemporaryFile("w+")
        self.began = time.perf_counter()
        argv = server_argv(cluster.command, self.addr, cluster.spec, job, task)
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)
        self.pid = self.proc.pid


def server_argv(template, addr, cluster=None, job="worker", task=0):
    spec = json.dumps(cluster or {"worker": [addr]})
    values = {"{cluster_json}": spec, "{job}": job, "{task}": str(task), "{addr}": addr,
              "{port}": addr.rsplit(":", 1)[1]}
    argv = []
    for word in shlex.split(template):
        for key, value in values.items():
            word = word.replace(key, value)
        argv.append(word)
    return argv


def http2_answers(addr):
    """Whether a server answers the HTTP/2 preface with its SETTINGS frame."""
    host, port = addr.rsplit(":", 1)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
    try:
        with socket.create_connection((host, int(port)), 1) as s:
            s.sendall(preface)
            head = s.recv(9, socket.MSG_WAITALL)
            return len(head) == 9 and head[3] == 4
    except OSError:
        return False


# ---------------------------------------------------------------------------- client processes


def answer(client):
    """The next line of a client process."""
    line = client.stdout.readline()
    if not line:
        code = client.wait()
        said = client.stderr.read().splitlines() if client.stderr else []
        last = [x for x in said if x.strip()][-1:]
        raise SystemExit(" ".join(["a client process ended with code %s" % code] + last))
    return line


def run_together(clients, servers):
    """Starts all clients when all are ready. Returns their reports, and the servers' CPU time meanwhile."""
    try:
        for client in clients:
            assert answer(client).strip() == "ready"
        cpu = servers.cpu()
        for client in clients:
            client.stdin.write("go\n")
            client.stdin.flush()
        results = [json.loads(answer(client)) for client in clients]
        return results, servers.cpu() - cpu
    finally:
        for client in clients:
            client.kill()
            stop(client)


def null_clients(name, doc, clients, servers, start, more=None):
    """The benchmark `name`: many clients at the same time, each with a session of its own that runs null steps.

    `servers(args)` is what they use. `start(servers, i)` returns the options of client process `i` of null_client.py,
    `more(servers)` further figures.
    """
    p = parser(doc)
    p.add_argument("--clients", default=clients)
    p.add_argument("--seconds", type=float, default=4.0)
    p.add_argument("--procs", type=int, default=4,
                   help="client processes; the clients are spread on them")
    args = parse(p)
    seconds = 1.5 if args.quick else args.seconds
    for n in map(int, args.clients.split(",")):
        with servers(args) as running:
            procs = min(n, args.procs)
            shares = [n // procs + (i < n % procs) for i in range(procs)]
            children = [subprocess.Popen(
                [sys.executable, os.path.join(HERE, "null_client.py"), *start(running, i),
                 "--sessions", str(share), "--name", "c%d_%d" % (n, i), "--seconds", str(seconds)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                for i, share in enumerate(shares)]
            results, cpu = run_together(children, running)
            steps = sum(r["steps"] for r in results)
            point = {"clients": n}
            emit(name, "steps", steps / seconds, "steps/s", "higher", point,
                 p50_us=median([r["p50"] for r in results]) * 1e6,
                 p99_us=max(r["p99"] for r in results) * 1e6,
                 client_cpu_us=sum(r["cpu"] for r in results) / steps * 1e6,
                 **(more(running) if more else {}))
            emit(name, "server_cpu", cpu / steps * 1e6, "us", "lower", point)
            emit(name, "errors", sum(r["errors"] for r in results), "errors", "lower", point,
                 first=[e for r in results for e in r["first_error"]][:1])


def train_together(args, model, mode, batch, seconds):
    """Runs two replicas of train_client.py, one for each worker of a cluster of --server-cmd. Returns the report of the
    first to end, with the global steps/s of both and the CPU time of servers and clients per step."""
    with Cluster(args, {"ps": 1, "worker": 2}) as cluster:
        clients = [subprocess.Popen(
            [sys.executable, os.path.join(HERE, "train_client.py"),
             "--cluster", json.dumps(cluster.spec), "--task", str(task), "--model", model,
             "--mode", mode, "--batch", str(batch), "--seconds", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for task in range(2)]
        results, cpu = run_together(clients, cluster)
    # All of them step from the first start to the first end.
    first = min(results, key=lambda r: r["end"])
    begin = min(results, key=lambda r: r["begin"])
    steps = max(first["step_end"] - begin["step_begin"], 1)
    return dict(first, steps_per_s=steps / (first["end"] - begin["begin"]),
                server_cpu_us=cpu / steps * 1e6,
                client_cpu_us=sum(r["cpu"] for r in results) / steps * 1e6)


def timed_blocks(call, blocks, steps):
    """Times `call` in blocks of steps: the median of each block, and every time, in us."""
    clock = time.perf_counter
    medians, every = [], []
    for _ in range(blocks):
        block = []
        for _ in range(steps):
            t = clock()
            call()
            block.append((clock() - t) * 1e6)
        medians.append(median(block))
        every += block
    return medians, every


# -------------------------------------------------------------------------- TensorFlow


def import_tf():
    import tensorflow as tf
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.disable_v2_behavior()
    return tf
