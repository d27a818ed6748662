"""Times each op once beside TensorFlow, at two sizes, on one core.

    python bench/every_kernel.py --ours target/release/ferroflow --out bench/results/every_kernel.csv
    python bench/every_kernel.py --ours PATH --only 'Conv.*' --rounds 5

The calls are those of the oracle (oracle/recipes), with larger shapes. Inputs are constants. A step has some copies of the
op, one after the other; the difference to a step with one copy is the time of the op. Optimizers are off on all servers.
TensorFlow counts in the better of its two CPU modes. The ops whose copies cannot be in one step, such as those that take an
element from a queue, are listed with the reason.
"""

import argparse
import csv
import os
import re
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# The oracle first: both folders have a module `kernels`.
sys.path[:0] = [os.path.join(HERE, "..", "oracle"), HERE]

# Elements of the inputs whose size the oracle leaves to chance.
SIZES = {"small": 1 << 10, "large": 1 << 18}
# Copies of an op in the longer step.
COPIES = 9
# A call that takes longer than this is not repeated, and a step longer than this is given up.
SLOW_S, LIMIT_MS = 0.5, 20000
# Below this, the cost of a node in a step is most of the time.
LEAST_US = 3.0
# The preferred dtypes of an op.
DTYPES = ["float32", "int32", "string", "complex64"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ours", required=True, metavar="PATH", help="the ferroflow program, a release build")
    p.add_argument("--out", metavar="FILE", help="also write the figures as CSV")
    p.add_argument("--only", metavar="REGEX", help="ops whose whole name matches this")
    p.add_argument("--rounds", type=int, default=3, help="rounds of each point; the fastest counts")
    p.add_argument("--seconds", type=float, default=0.03, help="time of a round")
    p.add_argument("--limit", type=float, default=1.3, help="ratios above this are listed")
    return p.parse_args()


# ------------------------------------------------------------------------------ calls


def sized_case(base, elements):
    """A Case whose shapes have so many elements, instead of random ones."""

    class SizedCase(base):
        def __init__(self, *args):
            super().__init__(*args)
            self.style = "small"
            self.scale = {1 << 10: 2, 1 << 18: 8}.get(elements, 1)

        def shape(self, low=0, high=4, empty=True):
            rank = max(low, min(high, 2))
            if rank == 0:
                return []
            side = max(1, round(elements ** (1 / rank)))
            return [side] * rank

        def dim(self):
            return max(1, round(elements ** 0.5))

        def broadcast(self, n, low=0, high=4):
            return [self.shape(low, high) for _ in range(n)]

        def chance(self, p):
            # The usual call: no edge case that a recipe makes now and then.
            self.rng.rand()
            return p >= 0.5

    return SizedCase


def constants(case):
    """The case's graph with its feeds as constants."""
    from case import tensor_proto
    from tensorflow.core.framework import graph_pb2
    graph = graph_pb2.GraphDef()
    graph.versions.CopyFrom(case.graph.versions)
    graph.library.CopyFrom(case.graph.library)
    for node in case.graph.node:
        if node.name not in case.feeds:
            graph.node.add().CopyFrom(node)
            continue
        value, dtype = case.feeds[node.name]
        made = graph.node.add(name=node.name, op="Const")
        proto = tensor_proto(value, dtype)
        made.attr["dtype"].type = proto.dtype
        made.attr["value"].tensor.CopyFrom(proto)
    return graph


def with_copies(case):
    """The graph, and the targets of a step with one copy of the op and of a step with all copies."""
    graph = constants(case)
    found = [node for node in graph.node if node.op == case.op]
    if len(found) != 1:
        raise Skipped("the call has %d such nodes" % len(found))
    ends = [found[0].name]
    for i in range(1, COPIES):
        copy = graph.node.add()
        copy.CopyFrom(found[0])
        copy.name = "%s_copy_%d" % (found[0].name, i)
        copy.input.append("^" + ends[-1])
        ends.append(copy.name)
    # All copies are targets: Ferroflow does not compute a pure node that only control edges leave.
    return graph, ends[:1], ends


class Skipped(Exception):
    """Why an op has no figure."""


def call_of(op, size, seed=1):
    """A call of the op, of its preferred dtype."""
    import case
    import kernels
    import recipes
    table = recipes.RECIPES
    pairs = kernels.pairs(op, recipes.HOLD.get(op))
    if not pairs:
        raise Skipped("no kernel")
    dtype = next((d for d in DTYPES if d in pairs), next(iter(pairs)))
    types = {name: ts[0] for name, ts in pairs[dtype][0].items()}
    made = sized_case(case.Case, SIZES[size])(op, types, seed, 0)
    try:
        table[op](made)
    except case.NotApplicable as e:
        raise Skipped(str(e) or "no call for this dtype")
    if any(value.dtype == object and any(b"$ORACLE" in v for v in value.reshape(-1))
           for value, _ in made.feeds.values()):
        raise Skipped("it uses files")
    fed = sum(getattr(value, "size", 1) for value, _ in made.feeds.values())
    return made, dtype, fed


# ------------------------------------------------------------------------------ times


def seconds_of(tf, target, graph, one, all_copies, args):
    """The seconds of one call on a server."""
    v1 = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                            isolate_session_state=True, operation_timeout_in_ms=LIMIT_MS)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as built:
        tf.import_graph_def(graph, name="")
        operations = lambda names: [built.get_operation_by_name(name) for name in names]
        with v1.Session(target, config=config) as sess:
            steps = [sess.make_callable(operations(names)) for names in (one, all_copies)]
            best = []
            for step in steps:
                step()
                began = time.perf_counter()
                step()
                each = time.perf_counter() - began
                times, count = [each], max(1, min(200, int(args.seconds / max(each, 1e-6))))
                for _ in range(args.rounds if each < SLOW_S else 1):
                    began = time.perf_counter()
                    for _ in range(count):
                        step()
                    times.append((time.perf_counter() - began) / count)
                best.append(min(times))
    return max(0.0, (best[1] - best[0]) / (COPIES - 1))


class Servers:
    """A server of each kind, started again if one crashes. They share one core, and only one works at a time."""

    def __init__(self, args, commands):
        self.args, self.commands, self.running = args, commands, {}

    def target(self, kind):
        from common import Server
        server = self.running.get(kind)
        if server is None or server.proc.poll() is not None:
            if server is not None:
                server.close()
            options = argparse.Namespace(target=None, server_pid=None, server_cmd=self.commands[kind])
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, [max(cores)])
            server = self.running[kind] = Server(options)
            os.sched_setaffinity(0, cores)
            server.wait_ready()
        return server.target

    def close(self):
        for server in self.running.values():
            server.close()


def measure(tf, servers, op, size, args):
    """A row of the table."""
    row = {"op": op, "size": size, "dtype": "", "elements": "", "tensorflow_us": "", "ours_us": "", "ratio": "", "note": ""}
    try:
        case, row["dtype"], row["elements"] = call_of(op, size)
        graph, one, all_copies = with_copies(case)
    except Skipped as e:
        return row | {"note": str(e)}
    except Exception as e:  # noqa: BLE001: a recipe that is not made for large shapes
        return row | {"note": "the recipe failed: %s" % type(e).__name__}
    times = {}
    for kind in servers.commands:
        try:
            times[kind] = seconds_of(tf, servers.target(kind), graph, one, all_copies, args) * 1e6
        except (tf.errors.OpError, ValueError) as e:
            first = str(e).split("\n")[0][:120]
            if kind == "ours" or kind == "tensorflow":
                return row | {"note": "%s: %s" % (kind, first)}
    theirs = min(t for kind, t in times.items() if kind != "ours")
    row["tensorflow_us"], row["ours_us"] = "%.2f" % theirs, "%.2f" % times["ours"]
    if max(theirs, times["ours"]) < LEAST_US:
        return row | {"note": "too short"}
    return row | {"ratio": "%.2f" % (times["ours"] / max(theirs, 0.01))}


def main():
    args = arguments()
    from common import import_tf, tf_server_cmd
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    tf = import_tf()
    import recipes
    ops = sorted(recipes.load())
    if args.only:
        ops = [op for op in ops if re.fullmatch(args.only, op)]
    ours = "%s server --cluster {cluster_json} --job {job} --task {task} --threads 1" % args.ours
    servers = Servers(args, {"tensorflow": tf_server_cmd(0), "onednn": tf_server_cmd(1), "ours": ours})
    rows = []
    try:
        for i, op in enumerate(ops):
            for size in SIZES:
                rows.append(measure(tf, servers, op, size, args))
            if i % 25 == 0:
                print("  %d of %d ops: %s" % (i + 1, len(ops), op), file=sys.stderr, flush=True)
    finally:
        servers.close()
    if args.out:
        with open(args.out, "w", newline="") as f:
            writer = csv.DictWriter(f, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    report(rows, args.limit)


def report(rows, limit):
    timed = [row for row in rows if row["ratio"]]
    slow = sorted((row for row in timed if float(row["ratio"]) > limit), key=lambda row: -float(row["ratio"]))
    print("%d calls of %d ops have a ratio; the median is %.2f" % (
        len(timed), len({row["op"] for row in timed}),
        statistics.median([float(row["ratio"]) for row in timed]) if timed else float("nan")))
    print("%d take more than %.1f of TensorFlow's time:" % (len(slow), limit))
    for row in slow:
        print("  %(ratio)6s  %(op)s %(dtype)s %(size)s: %(ours_us)s us, TensorFlow %(tensorflow_us)s us" % row)
    without = {}
    for row in rows:
        if not row["ratio"]:
            without.setdefault(row["note"], set()).add(row["op"])
    print("without a ratio:")
    for note, ops in sorted(without.items(), key=lambda item: -len(item[1])):
        print("  %4d ops: %s: %s" % (len(ops), note, ", ".join(sorted(ops)[:5])))


if __name__ == "__main__":
    main()
