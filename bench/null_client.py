"""A client process of concurrency.py and cluster_clients.py: threads that run null steps, each in its own session.

It prints `ready`, waits for a line, steps for the given time, and prints the results as JSON.
"""

import argparse
import json
import os
import sys
import threading
import time

from common import import_tf, percentile

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--target", required=True)
p.add_argument("--device", required=True)
p.add_argument("--variable-device", help="where the variable is, if not on the same device")
p.add_argument("--filter", action="append", default=[], help="tasks that sessions may use")
p.add_argument("--name", required=True, help="prefix of the variables, not used by any other client")
p.add_argument("--sessions", type=int, required=True)
p.add_argument("--seconds", type=float, required=True)
args = p.parse_args()

tf = import_tf()
v1 = tf.compat.v1
clock = time.perf_counter


class Client:
    def __init__(self, i):
        self.times, self.errors = [], []
        with tf.Graph().as_default() as graph, v1.device(args.device):
            with v1.device(args.variable_device or args.device):
                v = v1.get_variable("%s_%d" % (args.name, i), [], tf.float32,
                                    v1.ones_initializer(), use_resource=False)
            fetch = tf.add(v, 1.0)
            config = v1.ConfigProto(device_filters=args.filter)
            self.session = v1.Session(args.target, graph=graph, config=config)
            self.session.run(v.initializer)
            self.call = self.session.make_callable(fetch)
            self.call()

    def work(self, until):
        t = clock()
        while t < until:
            try:
                value = self.call()
                if value != 2.0:
                    self.errors.append("wrong value %r" % value)
            except Exception as e:  # any failure is what we count
                self.errors.append(str(e)[:120])
            now = clock()
            self.times.append(now - t)
            t = now


clients = [Client(i) for i in range(args.sessions)]
print("ready", flush=True)
sys.stdin.readline()
cpu, until = time.process_time(), clock() + args.seconds
threads = [threading.Thread(target=c.work, args=(until,)) for c in clients]
for t in threads:
    t.start()
for t in threads:
    t.join()
times = [t for c in clients for t in c.times]
errors = [e for c in clients for e in c.errors]
print(json.dumps({
    "steps": len(times), "errors": len(errors), "first_error": errors[:1],
    "p50": percentile(times, .5), "p99": percentile(times, .99),
    "cpu": time.process_time() - cpu}), flush=True)
os._exit(0)
