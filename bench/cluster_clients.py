"""Many clients at the same time over a cluster of one ps and two workers.

Each client has its own session on one of the workers.  Its steps read a variable on the ps.
"""

from common import Cluster, null_clients


def start(cluster, i):
    device = "/job:worker/task:%d" % (i % 2)
    return ["--target", cluster.target("worker", i % 2), "--variable-device", "/job:ps/task:0",
            "--device", device, "--filter", "/job:ps", "--filter", device]


null_clients("cluster_clients", __doc__, "64", lambda args: Cluster(args, {"ps": 1, "worker": 2}), start)
