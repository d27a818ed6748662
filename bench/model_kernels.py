"""Times kernels of convolutional and recurrent networks beside TensorFlow on one core, at the sizes that programs use.

    python bench/model_kernels.py --ours target/release/ferroflow
    python bench/model_kernels.py --ours PATH --only 'product.*'

Measures as every_kernel.py does: the difference between steps with one copy of an op and with several.
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "oracle"), HERE]

import every_kernel
from common import import_tf, tf_server_cmd

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
tf = import_tf()

import numpy as np

v1, raw = tf.compat.v1, tf.raw_ops
RANDOM = np.random.RandomState(1)


def shared(name, make):
    """A node that all copies read."""
    try:
        return v1.get_default_graph().get_tensor_by_name(name + ":0")
    except KeyError:
        with tf.control_dependencies(None):
            return make(name)


def constants(**shapes):
    """Random constants. `make` of a case calls the result in the graph."""
    values = {name: RANDOM.randn(*shape).astype("f4") * 0.1 for name, shape in shapes.items()}
    return lambda: {name: shared("in_" + name, lambda n, v=v: tf.constant(v, name=n)) for name, v in values.items()}


def max_pool_grad(batch, side, channels, window, padding):
    image = constants(orig_input=(batch, side, side, channels))
    places = -(-side // 2) if padding == "SAME" else (side - window) // 2 + 1
    grad = constants(grad=(batch, places, places, channels))

    def make():
        x = image()["orig_input"]
        y = shared("pooled", lambda name: tf.nn.max_pool2d(x, window, 2, padding, name=name))
        return raw.MaxPoolGrad(orig_input=x, orig_output=y, ksize=[1, window, window, 1], strides=[1, 2, 2, 1],
                               padding=padding, **grad())
    return make


def lrn(shape, radius, beta, grad):
    names = ("input_grads", "input_image", "output_image") if grad else ("input",)
    inputs, op = constants(**dict.fromkeys(names, shape)), raw.LRNGrad if grad else raw.LRN
    return lambda: op(depth_radius=radius, bias=1.0, alpha=1e-4, beta=beta, **inputs())


def lstm(batch, units, grad):
    state = (batch, units)
    inputs = {"x": state, "cs_prev": state, "h_prev": state, "w": (2 * units, 4 * units), "wci": (units,),
              "wcf": (units,), "wco": (units,), "b": (4 * units,)}
    if not grad:
        inputs = constants(**inputs)
        return lambda: raw.LSTMBlockCell(forget_bias=1.0, cell_clip=3.0, use_peephole=False, **inputs()).h
    inputs.update(dict.fromkeys(("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"), state))
    inputs = constants(**inputs)
    return lambda: raw.LSTMBlockCellGrad(use_peephole=False, **inputs()).dicfo


def product(m, k, n, transposed=False):
    inputs = constants(a=(m, k), b=(n, k) if transposed else (k, n))
    return lambda: raw.MatMul(transpose_b=transposed, **inputs())


CASES = {
    "max pool gradient 3x3, 32x55x55x64": max_pool_grad(32, 55, 64, 3, "VALID"),
    "max pool gradient 3x3, 128x24x24x64": max_pool_grad(128, 24, 64, 3, "SAME"),
    "max pool gradient 3x3, 16x112x112x64": max_pool_grad(16, 112, 64, 3, "SAME"),
    "max pool gradient 2x2, 64x28x28x32": max_pool_grad(64, 28, 32, 2, "SAME"),
    "lrn 128x12x12x64, power 0.75": lrn((128, 12, 12, 64), 4, 0.75, False),
    "lrn gradient 128x12x12x64, power 0.75": lrn((128, 12, 12, 64), 4, 0.75, True),
    "lrn 32x27x27x96, power 0.5": lrn((32, 27, 27, 96), 2, 0.5, False),
    "lrn gradient 32x27x27x96, power 0.5": lrn((32, 27, 27, 96), 2, 0.5, True),
    "lstm 20x200": lstm(20, 200, False),
    "lstm gradient 20x200": lstm(20, 200, True),
    "lstm 32x650": lstm(32, 650, False),
    "lstm gradient 32x650": lstm(32, 650, True),
    "product 8x4096x1001": product(8, 4096, 1001),
    "product 8x4096x1001, second factor transposed": product(8, 4096, 1001, True),
    "product 2x4096x1001": product(2, 4096, 1001),
    "product 4x1024x4096": product(4, 1024, 4096),
    "product 13x400x800": product(13, 400, 800),
    "product 4096x8x1001": product(4096, 8, 1001),
}


def graph_of(make):
    """The graph, and the targets of a step with one copy and of a step with all."""
    with tf.Graph().as_default() as graph:
        names = []
        for _ in range(every_kernel.COPIES):
            before = [graph.get_operation_by_name(name) for name in names[-1:]]
            with tf.control_dependencies(before):
                names.append(make().op.name)
    return graph.as_graph_def(), names[:1], names


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ours", required=True, metavar="PATH", help="the ferroflow program, a release build")
    p.add_argument("--only", default="", metavar="REGEX", help="cases whose name this finds")
    p.add_argument("--rounds", type=int, default=3, help="rounds of each point; the fastest counts")
    p.add_argument("--seconds", type=float, default=0.1, help="time of a round")
    args = p.parse_args()
    ours = args.ours + " server --cluster {cluster_json} --job {job} --task {task} --threads 1"
    servers = every_kernel.Servers(args, {"oneDNN off": tf_server_cmd(0), "oneDNN on": tf_server_cmd(1), "ours": ours})
    print("case,ferroflow_us,tensorflow_us,tensorflow_mode,ratio")
    try:
        for name, make in CASES.items():
            if not re.search(args.only, name):
                continue
            graph, one, all_copies = graph_of(make)
            us = {kind: every_kernel.seconds_of(tf, servers.target(kind), graph, one, all_copies, args) * 1e6
                  for kind in servers.commands}
            mode = min(("oneDNN off", "oneDNN on"), key=us.get)
            print('"%s",%.1f,%.1f,%s,%.2f' % (name, us["ours"], us[mode], mode, us["ours"] / max(us[mode], 0.01)), flush=True)
    finally:
        servers.close()


if __name__ == "__main__":
    main()
