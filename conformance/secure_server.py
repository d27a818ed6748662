"""One task of a cluster with TLS, and the proxy through which a TensorFlow client reaches it.

  python conformance/run.py --servers cmd --server-cmd "python conformance/secure_server.py --ferroflow BIN \
      --credentials DIR --cluster '{cluster_json}' --job {job} --task {task}"

The server listens on another loopback address than the one in the cluster, and requires a certificate of the job's CA.  At the
address in the cluster, where clients connect, `ferroflow proxy` carries them.  `--insecure-peers CIDR` is passed on, for
clusters with TensorFlow tasks.
"""

import argparse
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys

SERVER = "127.0.0.2"


def credentials(args, spec):
    """The folder with credentials for every task of `spec` and a client; all tasks share it."""
    text = json.dumps(spec, sort_keys=True)
    folder = os.path.join(args.credentials, hashlib.sha256(text.encode()).hexdigest()[:16])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "certs", "client", "tls.crt")):
            subprocess.run([args.ferroflow, "certs", "--out", os.path.join(folder, "certs"), "--cluster", text, "client", "job"],
                           check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "certs")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ferroflow", required=True)
    p.add_argument("--credentials", required=True, metavar="DIR")
    p.add_argument("--cluster", required=True)
    p.add_argument("--job", required=True)
    p.add_argument("--task", required=True, type=int)
    p.add_argument("--client", default="client", help="whose credentials the proxy has; `job` for a client that is a task itself")
    p.add_argument("--plain-jobs", default="", help="jobs of TensorFlow tasks, which have no TLS, separated by commas")
    p.add_argument("--insecure-peers", action="append", default=[])
    args = p.parse_args()
    asked = json.loads(args.cluster)
    plain = args.plain_jobs.split(",")
    spec = {job: [a if job in plain else "%s:%s" % (SERVER, a.rsplit(":", 1)[1]) for a in tasks] for job, tasks in asked.items()}
    folder = credentials(args, spec)
    address = spec[args.job][args.task]
    peers = [word for peer in args.insecure_peers for word in ("--insecure-peers", peer)]
    server = subprocess.Popen([args.ferroflow, "server", "--cluster", json.dumps(spec), "--job", args.job, "--task",
                               str(args.task), "--credentials", os.path.join(folder, "%s-%d" % (args.job, args.task)), *peers],
                              stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    # The proxy accepts clients only when the server does, so that a client that connects finds it.
    if not server.stdout.readline().startswith(b"ready grpcs://"):
        sys.exit("the server did not start: %s" % server.wait())
    proxy = subprocess.Popen([args.ferroflow, "proxy", "--to", "grpcs://" + address, "--listen", asked[args.job][args.task],
                              "--credentials", os.path.join(folder, args.client)], stdout=subprocess.DEVNULL)
    code = server.wait()
    proxy.terminate()
    proxy.wait()
    sys.exit(code)


if __name__ == "__main__":
    main()
