"""The goals against which compare.py checks the figures, one row each.

A goal names a measured point and a rule for it:

  Ratio(op, limit)      ours / TensorFlow, TensorFlow in the better of its two CPU modes
  Value(op, limit)      ours alone
  OverFloor(op, limit)  ours - the echo server's
  Share(op, limit, of)  ours / another figure of ours, of the metric `of`
"""

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True)
class Ratio:
    op: str
    limit: float


@dataclass(frozen=True)
class Value:
    op: str
    limit: float


@dataclass(frozen=True)
class OverFloor:
    op: str
    limit: float


@dataclass(frozen=True)
class Share:
    op: str
    limit: float
    of: str
    params: dict


@dataclass(frozen=True)
class Goal:
    text: str
    name: str
    metric: str
    params: dict
    rule: object


def _goals():
    for via in ("run", "callable"):
        text = "gRPC null step, %s" % {"run": "sess.run", "callable": "make_callable"}[via]
        point = ("null_step", "latency", {"via": via})
        yield Goal(text + ": <= 0.65x", *point, Ratio("<=", 0.65))
        yield Goal(text + ": within 30 us of the floor", *point, OverFloor("<=", 30))
    for clients in (1, 16, 64):
        text, params = "%d client%s: " % (clients, "s"[:clients > 1]), {"clients": clients}
        yield Goal(text + "server CPU a null step <= 0.3x", "concurrency", "server_cpu", params,
                   Ratio("<=", 0.3))
        yield Goal(text + "total steps/s >= 1.5x", "concurrency", "steps", params,
                   Ratio(">=", 1.5))
        yield Goal(text + "no error", "concurrency", "errors", params, Value("<=", 0))
    for op in ("feed", "fetch", "both"):
        text = {"both": "feed and fetch"}.get(op, op)
        yield Goal("%s of 100 MB: throughput >= 2x" % text, "feed_fetch", "throughput",
                   {"op": op, "bytes": 100 * MB}, Ratio(">=", 2))
    for metric, text in (("write", "written"), ("read", "read")):
        point = ("checkpoint", metric, {"bytes": 1024 * MB})
        yield Goal("checkpoint of 1 GB %s: >= 1 GB/s" % text, *point, Value(">=", 1000))
        yield Goal("checkpoint of 1 GB %s: >= 1x" % text, *point, Ratio(">=", 1))
    for shape in ("chain", "wide"):
        yield Goal("first run of 20k nodes (%s): <= 0.5x" % shape, "large_graph", "first_run",
                   {"shape": shape, "nodes": 20000}, Ratio("<=", 0.5))
    yield Goal("start to ready: <= 50 ms", "startup", "ready", {}, Value("<=", 50))
    yield Goal("idle RSS: <= 30 MB", "startup", "idle_rss", {}, Value("<=", 30))
    yield Goal("release binary: <= 30 MB", "startup", "size", {}, Value("<=", 30))
    yield Goal("null step from Rust, in process: <= 10 us", "rust", "null_step",
               {"via": "local"}, Value("<=", 10))
    yield Goal("null step from Rust, gRPC: <= 120 us", "rust", "null_step",
               {"via": "grpc"}, Value("<=", 120))
    yield Goal("null nodes on one core, chain: >= 5 M/s", "rust", "null_nodes",
               {"shape": "chain"}, Value(">=", 5e6))
    yield Goal("null nodes on one core, while loop: >= 2 M/s", "rust", "null_nodes",
               {"shape": "while"}, Value(">=", 2e6))
    yield from _cluster_goals()
    for threads in (1, 2):
        yield from _kernel_goals(threads)


def _cluster_goals():
    for via in ("run", "callable"):
        yield Goal("null step over ps + 2 workers, %s: <= 0.35x" % via, "cluster_step", "latency",
                   {"mode": "data", "via": via}, Ratio("<=", 0.35))
    yield Goal("16 ps x 1 worker, a scalar each: <= 1800 us", "cluster_step", "latency",
               {"mode": "fan_in", "via": "run"}, Value("<=", 1800))
    for size, text in ((1 << 10, "1 KB"), (64 << 10, "64 KB")):
        yield Goal("variable of %s, ps to worker: <= 0.4x" % text, "cluster_traffic", "latency",
                   {"op": "read", "bytes": size, "path": "default"}, Ratio("<=", 0.4))
    for op in ("read", "add"):
        for size in (16 * MB, 100 * MB):
            for path, limit, how in (("tcp", 0.8, "over TCP"), ("default", 1.5, "shared memory")):
                text = "%s of %d MB, %s: >= %gx of the raw stream" % (op, size // MB, how, limit)
                yield Goal(text, "cluster_traffic", "throughput",
                           {"op": op, "bytes": size, "path": path},
                           Share(">=", limit, "stream", {"bytes": size, "path": path}))
    for model, limit in (("linear", 2.5), ("mlp", 1.5)):
        for mode in ("sync", "async"):
            yield Goal("%s, 1 ps + 2 workers, %s: >= %gx" % (model, mode, limit), "cluster_train",
                       "steps", {"model": model, "mode": mode}, Ratio(">=", limit))
    for mode in ("sync", "async"):
        yield Goal("linear from Rust, 1 ps + 2 workers, %s: >= 8x" % mode, "train_job", "steps",
                   {"model": "linear", "mode": mode}, Ratio(">=", 8))
    yield Goal("mlp from Rust, in one process: >= 1.2x", "train_job", "steps",
               {"model": "mlp", "mode": "local"}, Ratio(">=", 1.2))
    yield Goal("64 clients over a cluster: server CPU a step <= 0.3x", "cluster_clients",
               "server_cpu", {"clients": 64}, Ratio("<=", 0.3))
    yield Goal("64 clients over a cluster: no error", "cluster_clients", "errors", {"clients": 64},
               Value("<=", 0))
    yield Goal("one 8-byte edge from ps to worker, from Rust: <= 60 us", "rust", "edge", {},
               Value("<=", 60))


def _kernel_goals(threads):
    def goal(metric, case, limit):
        text = "%s %s, %d thread%s: >= %gx" % (metric, case, threads, "s"[:threads > 1], limit)
        return Goal(text, "kernels", metric, {"case": case, "threads": threads},
                    Ratio(">=", limit))

    for case in ("sq256", "sq512", "sq1024", "sq2048", "mlp_fwd", "mlp_dw", "mlp_dx", "skinny",
                 "cnn_fc"):
        yield goal("gemm", case, 0.9)
    for case in ("mnist_c1", "mnist_c2", "resnet_3x3"):
        for metric in ("conv_fwd", "conv_dx", "conv_dw"):
            yield goal(metric, case, 0.9)
    for case in ("256KB", "64MB"):
        for metric in ("add", "mul", "relu", "exp", "log", "tanh", "sigmoid", "erf", "reduce_sum",
                       "reduce_rows", "reduce_columns", "sgd_apply", "adam_apply"):
            yield goal(metric, case, 1)
    for case in ("128x10", "128x1000", "256x32000"):
        yield goal("softmax_xent", case, 1)
    yield goal("train", "mlp", 1.2)
    yield goal("train", "cnn", 1)
    yield Goal("memory of cnn training, %d thread%s: <= 1x" % (threads, "s"[:threads > 1]), "kernels",
               "train_memory", {"case": "cnn", "threads": threads}, Ratio("<=", 1))


GOALS = list(_goals())
