"""Checkpoints of 1 GB: throughput of SaveV2 and RestoreV2, and time of MergeV2Checkpoints.

write  SaveV2 of variables on the server, under a new name each time
read   RestoreV2 of them; all tensors are made, none is sent to the client
merge  two halves into one checkpoint: files are renamed and an index is written

The files are in --dir.  They stay in the page cache while there is room, so the disk itself is not measured.
"""

import os
import shutil
import tempfile
import time

from common import Server, emit, import_tf, median, parse, parser

MB = 1 << 20
TENSORS = 16

p = parser(__doc__)
p.add_argument("--bytes", type=int, default=1024 * MB, help="size of the checkpoint")
p.add_argument("--times", type=int, default=5, help="how often each is done")
p.add_argument("--dir", help="where the files go (default: a temporary folder)")
args = parse(p)
if args.quick:
    args.times = 2

tf = import_tf()
v1 = tf.compat.v1
raw = tf.raw_ops


def timed(call, times, before=lambda: None):
    found = []
    for _ in range(times):
        before()
        t = time.perf_counter()
        call()
        found.append(time.perf_counter() - t)
    return found


def measure(server, folder):
    n = args.bytes // 4 // TENSORS
    names = ["part%d" % i for i in range(TENSORS)]
    with tf.Graph().as_default(), tf.device(server.device):
        kept = [v1.get_variable(name, [n], tf.float32, v1.ones_initializer(), use_resource=False) for name in names]
        prefix = v1.placeholder(tf.string, [])
        prefixes, target = v1.placeholder(tf.string, [2]), v1.placeholder(tf.string, [])

        def saved(part):
            return raw.SaveV2(prefix=prefix, tensor_names=names[part], shape_and_slices=[""] * len(names[part]), tensors=kept[part])
        whole, halves = saved(slice(None)), [saved(slice(0, TENSORS // 2)), saved(slice(TENSORS // 2, None))]
        restored = raw.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * TENSORS, dtypes=[tf.float32] * TENSORS)
        # Makes every tensor and reads one element of it.
        check = v1.add_n([x[-1] for x in restored])
        merge = raw.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=target, delete_old_dirs=False)
        with v1.Session(server.target) as sess:
            sess.run([v.initializer for v in kept])

            def path(name):
                return os.path.join(folder, name)

            def clear():
                for name in os.listdir(folder):
                    os.remove(path(name))
            sess.run(whole, {prefix: path("first")})
            writes = timed(lambda: sess.run(whole, {prefix: path("model")}), args.times, clear)
            assert sess.run(check, {prefix: path("model")}) == TENSORS, "wrong result"
            reads = timed(lambda: sess.run(check, {prefix: path("model")}), args.times)

            def shards():
                clear()
                for i, half in enumerate(halves):
                    sess.run(half, {prefix: path("half%d" % i)})
            merges = timed(lambda: sess.run(merge, {prefixes: [path("half0"), path("half1")], target: path("merged")}), args.times, shards)
    point = {"bytes": args.bytes}
    for metric, times in (("write", writes), ("read", reads)):
        emit("checkpoint", metric, args.bytes / median(times) / MB, "MB/s", "higher", point, best=args.bytes / min(times) / MB, times=len(times))
    emit("checkpoint", "merge", median(merges) * 1e3, "ms", "lower", point)


with Server(args) as server:
    folder = tempfile.mkdtemp(dir=args.dir)
    try:
        measure(server, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
