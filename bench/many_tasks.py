"""What a cluster of many tasks on one machine costs: start-up, memory, and the connections of a master.

  python bench/many_tasks.py --ferroflow target/release/ferroflow [--tasks 1000]

Starts a server for each task.  Two TensorFlow clients open a session on task 0 and run a step over two tasks: one as it
is, and one with device filters that name those two.  Prints a line of JSON.  Needs TensorFlow.
"""

import argparse
import json
import os
import socket
import subprocess
import time


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def private_megabytes(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("--tasks", type=int, default=1000)
    args = p.parse_args()
    ports = free_ports(args.tasks)
    cluster = "worker=" + ",".join(f"127.0.0.1:{port}" for port in ports)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    begun = time.time()
    servers = [subprocess.Popen([args.ferroflow, "server", "--cluster", cluster, "--job", "worker", "--task", str(i)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for i in range(args.tasks)]
    try:
        for server in servers:
            while b"ready" not in (line := server.stdout.readline()):
                assert line, "a server has ended"
        ready = time.time() - begun
        idle = [descriptors(s.pid) for s in servers]
        import tensorflow as tf
        tf1 = tf.compat.v1
        figures = {}
        filters = ["/job:worker/task:0", "/job:worker/task:1"]
        for name, config in [("two tasks", tf1.ConfigProto(device_filters=filters)), ("all tasks", tf1.ConfigProto())]:
            with tf.Graph().as_default():
                with tf1.device("/job:worker/task:0"):
                    a = tf.constant(2.0) * tf1.random_uniform([])
                with tf1.device("/job:worker/task:1"):
                    b = a * 0 + 7.0
                start = time.time()
                with tf1.Session(f"grpc://127.0.0.1:{ports[0]}", config=config) as session:
                    assert session.run(b) == 7.0
                    first = time.time() - start
                    start = time.time()
                    for _ in range(100):
                        session.run(b)
                    figures[name] = {"first_step_s": round(first, 3), "step_ms": round((time.time() - start) * 10, 2),
                                     "master_descriptors": descriptors(servers[0].pid),
                                     "task_1_descriptors": descriptors(servers[1].pid),
                                     "task_2_descriptors": descriptors(servers[2].pid)}
        memory = sorted(private_megabytes(s.pid) for s in servers)
        print(json.dumps({"tasks": args.tasks, "start_up_s": round(ready, 1), "idle_descriptors": max(idle),
                          "private_mb": round(memory[len(memory) // 2], 1), **figures}))
    finally:
        for server in servers:
            server.kill()
        for server in servers:
            server.wait()


if __name__ == "__main__":
    main()
