"""What TLS costs: null steps, transfers of 16 MB between hosts, and the handshake.

  cargo build --release -p ferroflow-cli -p ferroflow --bin ferroflow --example bench_tls
  sudo python bench/tls_cost.py --ferroflow target/release/ferroflow --client target/release/examples/bench_tls

Hosts are two network namespaces.  A plain cluster and one with TLS stand side by side and take turns, so that load on the
machine affects both.  Goals: a null step at most 1.15x, a transfer at least 0.6x of the speed, a handshake below 5 ms.
Needs root and iproute2.  It removes the namespaces at the end.
"""

import argparse
import contextlib
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

GOALS = {"null_step": 1.15, "transfer": 1 / 0.6, "handshake_ms": 5.0}


def sh(*words, check=True):
    subprocess.run(words, check=check, stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL)


@contextlib.contextmanager
def hosts():
    """Two namespaces that are called by their addresses, and a cable between them."""
    net = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    names = [f"{net}.1", f"{net}.2"]
    try:
        for name in names:
            sh("ip", "netns", "add", name)
            sh("ip", "-n", name, "link", "set", "lo", "up")
        sh("ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for name in names:
            sh("ip", "-n", name, "addr", "add", name + "/24", "dev", "eth0")
            sh("ip", "-n", name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in names:
            sh("ip", "netns", "del", name, check=False)


class Cluster:
    """A ps on one host and a worker on the other."""

    def __init__(self, args, names, port, certs):
        self.certs, self.worker = certs, f"{names[1]}:{port}"
        spec = f"ps={names[0]}:{port};worker={self.worker}"
        if certs:
            sh(args.ferroflow, "certs", "--out", certs, "--cluster", spec, "client")
        self.target = ("grpcs://" if certs else "grpc://") + self.worker
        self.processes = []
        for job, name in zip(("ps", "worker"), names):
            trust = ["--credentials", os.path.join(certs, job + "-0")] if certs else ["--insecure"]
            words = ["ip", "netns", "exec", name, args.ferroflow, "server", "--cluster", spec, "--job", job, "--task", "0"]
            self.processes.append(subprocess.Popen(words + trust, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        for process in self.processes:
            if not process.stdout.readline().startswith(b"ready"):
                sys.exit("a server did not start")

    def measure(self, args, where, what, steps):
        env = dict(os.environ)
        env.pop("FERROFLOW_CREDENTIALS", None)
        if self.certs:
            env["FERROFLOW_CREDENTIALS"] = os.path.join(self.certs, "client")
        words = ["ip", "netns", "exec", where, args.client, what, self.target, str(steps)]
        return float(subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def handshakes(args, where, cluster, count):
    """Times of mutual handshakes in milliseconds, without that of the TCP connection.  Runs in a process on that host."""
    words = ["ip", "netns", "exec", where, sys.executable, os.path.abspath(__file__), "--handshakes", str(count),
             "--ferroflow", args.ferroflow, "--client", args.client, "--at", cluster.worker, "--certs", cluster.certs]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def shake(args):
    host, port = args.at.rsplit(":", 1)
    own = os.path.join(args.certs, "client")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(os.path.join(own, "ca.crt"))
    context.load_cert_chain(os.path.join(own, "tls.crt"), os.path.join(own, "tls.key"))
    times = []
    for _ in range(args.handshakes):
        with socket.create_connection((host, int(port))) as tcp:
            started = time.perf_counter()
            with context.wrap_socket(tcp):
                times.append((time.perf_counter() - started) * 1e3)
    print(json.dumps(times))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ferroflow", required=True)
    p.add_argument("--client", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--handshakes", type=int, help=argparse.SUPPRESS)
    p.add_argument("--at", help=argparse.SUPPRESS)
    p.add_argument("--certs", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.handshakes:
        return shake(args)
    args.ferroflow, args.client = os.path.abspath(args.ferroflow), os.path.abspath(args.client)
    with tempfile.TemporaryDirectory() as folder, hosts() as names:
        clusters = [Cluster(args, names, 2222, None), Cluster(args, names, 2223, os.path.join(folder, "certs"))]
        try:
            result = {}
            for what, steps in (("step", 3000), ("transfer", 40)):
                # The client of the null step stands on the host of its server.
                turns = [[c.measure(args, names[1], what, steps) for c in clusters] for _ in range(args.rounds)]
                plain, tls = (statistics.median(times) for times in zip(*turns))
                result["null_step" if what == "step" else what] = {"plain_us": plain, "tls_us": tls, "ratio": tls / plain}
            times = handshakes(args, names[0], clusters[1], 200)
            result["handshake_ms"] = {"median": statistics.median(times), "p99": sorted(times)[-max(1, len(times) // 100)]}
        finally:
            for cluster in clusters:
                cluster.stop()
    ok = result["null_step"]["ratio"] <= GOALS["null_step"] and result["transfer"]["ratio"] <= GOALS["transfer"]
    ok = ok and result["handshake_ms"]["median"] < GOALS["handshake_ms"]
    print(f"null step   plain {result['null_step']['plain_us']:8.1f} us   TLS {result['null_step']['tls_us']:8.1f} us"
          f"   {result['null_step']['ratio']:.2f}x (goal: at most 1.15x)")
    print(f"16 MB       plain {16e3 / result['transfer']['plain_us']:8.2f} GB/s TLS {16e3 / result['transfer']['tls_us']:8.2f} GB/s"
          f" {1 / result['transfer']['ratio']:.2f}x (goal: at least 0.6x)")
    print(f"handshake   median {result['handshake_ms']['median']:.2f} ms, p99 {result['handshake_ms']['p99']:.2f} ms (goal: below 5 ms)")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, indent=1)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
