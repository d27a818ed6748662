"""Runs functions of a test module on several ranks, each a process of its own."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import unittest

LIMIT = 240


def requires(*modules):
    """Skips a test case if a framework is missing."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)} not installed; "
                                    "`cargo xtask python --all` runs this")


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(n, file, function, env=None, each=None):
    """Starts `function` of a file on `n` ranks. Returns the processes. `each(rank)` has more of the
    environment of a rank."""
    ours, master = _free_ports(2)
    processes = []
    for rank in range(n):
        own = {
            "FERROFLOW_RANK": rank, "FERROFLOW_SIZE": n,
            "FERROFLOW_ADDRESS": f"127.0.0.1:{ours}", "RANK": rank, "WORLD_SIZE": n,
            "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": master,
            "OMP_NUM_THREADS": 1, "TF_CPP_MIN_LOG_LEVEL": 3, "KERAS_BACKEND": "",
            "PYTHONUNBUFFERED": 1,
        }
        own.update(env or {})
        own.update(each(rank) if each else {})
        whole = {**os.environ, **{k: str(v) for k, v in own.items() if str(v)}}
        flags = ["-I"] if sys.flags.isolated else []
        processes.append(subprocess.Popen(
            [sys.executable, *flags, os.path.abspath(__file__), os.path.abspath(file), function],
            env=whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    return processes


def finish(processes, limit=LIMIT):
    """Waits for processes. Returns their exit codes and outputs. A process that hangs is killed."""
    end = time.monotonic() + limit
    results = []
    for process in processes:
        try:
            out, _ = process.communicate(timeout=max(end - time.monotonic(), 0.1))
            results.append((process.returncode, out))
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            results.append(("hangs", out))
    return results


def run(test, n, file, function, env=None, limit=LIMIT):
    """Runs `function` of a file on `n` ranks, which must all succeed. Returns their outputs."""
    results = finish(start(n, file, function, env), limit)
    for rank, (code, out) in enumerate(results):
        test.assertEqual(code, 0, f"rank {rank} of {n} in {function}:\n{out}")
    return [out for _, out in results]


def _main():
    file, function = sys.argv[1:3]
    spec = importlib.util.spec_from_file_location("ranks_program", file)
    sys.path.insert(0, os.path.dirname(file))
    module = importlib.util.module_from_spec(spec)
    # TensorFlow's AutoGraph and pickle look for it here.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    getattr(module, function)()


if __name__ == "__main__":
    _main()
