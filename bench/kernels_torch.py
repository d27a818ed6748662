"""The points of kernels.py in PyTorch, in process: the speed of a library without a session.

Run it with a Python that has torch (the CPU build is enough).  Convolutions are measured with channels last and first,
and the better one counts.
"""

import argparse
import os
import time

from common import emit, median, parse
from kernels import CONV, ELEMENTS, GEMM, GROUPS, XENT


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--impl", default="torch")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--groups", default=",".join(GROUPS))
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--quick", action="store_true")
    args = parse(p)
    if args.quick:
        args.seconds, args.rounds = 0.1, 3
    return args


args = options()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
import torch  # noqa: E402  (it looks at the cores it may use when it is imported)
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(args.threads)


def rand(*shape):
    return torch.rand(*shape) - 0.5


def times(call):
    call()
    call()
    began = time.perf_counter()
    call()
    calls = max(1, int(args.seconds / (time.perf_counter() - began)))
    walls, cpus = [], []
    for _ in range(args.rounds):
        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(calls):
            call()
        walls.append((time.perf_counter() - began) / calls)
        cpus.append((time.process_time() - cpu) / calls)
    return walls, cpus


def rate(metric, case, found, work, unit):
    walls, cpus = found
    emit("kernels", metric, work / min(walls), unit, "higher",
         {"case": case, "threads": args.threads}, median=work / median(walls),
         us=min(walls) * 1e6, by_cpu=work / min(cpus))


def gemm():
    for name, m, k, n, stored in GEMM:
        a = rand(k, m).t() if stored[0] == "t" else rand(m, k)
        b = rand(n, k).t() if stored[1] == "t" else rand(k, n)
        rate("gemm", name, times(lambda: torch.mm(a, b)), 2.0 * m * k * n / 1e9, "GFLOP/s")


def conv():
    for name, n, h, cin, k, cout in CONV:
        found = {}
        for layout in (torch.contiguous_format, torch.channels_last):
            x = rand(n, cin, h, h).contiguous(memory_format=layout)
            w = rand(cout, cin, k, k).contiguous(memory_format=layout)
            g = rand(n, cout, h, h).contiguous(memory_format=layout)

            def backward(which):
                pad = [k // 2, k // 2]
                return torch.ops.aten.convolution_backward(
                    g, x, w, None, [1, 1], pad, [1, 1], False, [0, 0], 1, which)
            for metric, call in (("conv_fwd", lambda: F.conv2d(x, w, padding=k // 2)),
                                 ("conv_dx", lambda: backward([True, False, False])),
                                 ("conv_dw", lambda: backward([False, True, False]))):
                took = times(call)
                if metric not in found or min(took[0]) < min(found[metric][0]):
                    found[metric] = took
        for metric, took in found.items():
            rate(metric, name, took, 2.0 * n * h * h * cin * cout * k * k / 1e9, "GFLOP/s")


def elementwise():
    for name, n in ELEMENTS:
        a, b, positive = rand(n), rand(n), torch.rand(n) + 0.1
        m, v, rows = rand(n), torch.rand(n) + 0.1, rand(n // 256, 256)
        state = torch.tensor(1.0)

        def adam():
            torch._fused_adam_([a], [b], [m], [v], [], [state], lr=1e-6, beta1=0.9, beta2=0.999,
                               weight_decay=0.0, eps=1e-7, amsgrad=False, maximize=False)
        for metric, call, moved in (
                ("add", lambda: torch.add(a, b), 3), ("mul", lambda: torch.mul(a, b), 3),
                ("relu", lambda: torch.relu(a), 2), ("exp", lambda: torch.exp(a), 2),
                ("log", lambda: torch.log(positive), 2), ("tanh", lambda: torch.tanh(a), 2),
                ("sigmoid", lambda: torch.sigmoid(a), 2), ("erf", lambda: torch.erf(a), 2),
                ("reduce_sum", lambda: torch.sum(a), 1),
                ("reduce_rows", lambda: torch.sum(rows, 1), 1),
                ("reduce_columns", lambda: torch.sum(rows, 0), 1),
                ("sgd_apply", lambda: a.add_(b, alpha=-1e-6), 3), ("adam_apply", adam, 7)):
            rate(metric, name, times(call), 4.0 * n * moved / 1e9, "GB/s")


def loss():
    for name, rows, classes in XENT:
        y = torch.randint(0, classes, (rows,))
        x = rand(rows, classes).requires_grad_()

        def call():
            x.grad = None
            F.cross_entropy(x, y).backward()
        with torch.enable_grad():
            rate("softmax_xent", name, times(call), 8.0 * rows * classes / 1e9, "GB/s")


with torch.no_grad():
    for group in args.groups.split(","):
        if group in globals():
            globals()[group]()
