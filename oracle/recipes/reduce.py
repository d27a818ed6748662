"""Reductions, scans and segments."""

import numpy as np

from . import recipe


@recipe(*"All Any Max Min Mean Prod Sum EuclideanNorm".split())
def reduction(c):
    s = c.shape()
    x = c.values("bool", s) if c.op in ("All", "Any") else c.of("T", s, c.pick(["small", "whole", "special" if c.op in ("Max", "Min", "Sum") else "small"]))
    if c.op == "Prod" and x.dtype.kind == "c":
        # The result of products that overflow depends on the C library.
        x = x / np.array(4, x.dtype)
    axes = c.rng.permutation(len(s))[:c.int(0, len(s))]
    axes = np.array([int(a) - (len(s) if c.chance(0.3) else 0) for a in axes])
    if len(axes) == 1 and c.chance(0.3):
        axes = axes[0]
    c.mode = "norm"
    c.tolerance = 4.0
    c.call(input=x, reduction_indices=axes)


@recipe("ArgMax", "ArgMin")
def arg(c):
    s = c.shape(1, 4)
    c.style = c.pick(["small", "whole", "wide"])
    c.call(input=c.of("T", s), dimension=c.int(-len(s), len(s) - 1))


@recipe("Cumsum", "Cumprod", "CumulativeLogsumexp")
def scan(c):
    s = c.shape(1, 4)
    c.mode, c.style = "norm", c.pick(["small", "whole", "wide" if c.op == "Cumsum" else "small"])
    c.call(x=c.of("T", s), axis=c.int(-len(s), len(s) - 1))


@recipe(*"SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum".split())
def segment(c):
    n, extra = c.int(0, 8), c.shape(0, 2)
    ids = np.sort(c.rng.randint(0, 5, size=n))
    c.style = c.pick(["small", "whole"])
    c.call(data=c.of("T", [n] + extra), segment_ids=ids)


@recipe(*"UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum".split())
def unsorted_segment(c):
    s, extra = c.shape(0, 2), c.shape(0, 1)
    n = c.int(1, 5)
    c.style = c.pick(["small", "whole"])
    c.call(data=c.of("T", s + extra), segment_ids=c.rng.randint(-1 if c.chance(0.3) else 0, n, size=s), num_segments=n)


def sparse_ids(c, rows):
    n = c.int(0, 7)
    return c.rng.randint(0, rows, size=n), np.sort(c.rng.randint(0, 4, size=n))


@recipe(*"SparseSegmentMean SparseSegmentSum SparseSegmentSqrtN".split())
def sparse_segment(c):
    s = c.shape(1, 3, empty=False)
    i, ids = sparse_ids(c, s[0])
    c.style = c.pick(["small", "whole"])
    c.call(data=c.of("T", s), indices=i, segment_ids=ids)


@recipe(*"SparseSegmentMeanWithNumSegments SparseSegmentSumWithNumSegments SparseSegmentSqrtNWithNumSegments".split())
def sparse_segment_n(c):
    s = c.shape(1, 3, empty=False)
    i, ids = sparse_ids(c, s[0])
    c.style = c.pick(["small", "whole"])
    c.call(data=c.of("T", s), indices=i, segment_ids=ids, num_segments=c.int(4, 6))


@recipe(*"SparseSegmentMeanGrad SparseSegmentSumGrad SparseSegmentSqrtNGrad".split())
def sparse_segment_grad(c):
    rows, n = c.int(1, 5), c.int(1, 7)
    ids = np.sort(c.rng.randint(0, 4, size=n))
    c.style, c.mode, c.tolerance = "small", "norm", 4.0
    c.call(grad=c.of("T", [int(ids.max()) + 1] + c.shape(0, 2)), indices=c.rng.randint(0, rows, size=n), segment_ids=ids, output_dim0=rows)


@recipe(*"SparseSegmentMeanGradV2 SparseSegmentSumGradV2 SparseSegmentSqrtNGradV2".split())
def sparse_segment_grad_v2(c):
    rows, n = c.int(1, 5), c.int(1, 7)
    ids = np.sort(c.rng.randint(0, 4, size=n))
    c.style, c.mode, c.tolerance = "small", "norm", 4.0
    c.call(grad=c.of("T", [int(ids.max()) + 1] + c.shape(0, 2)), indices=c.rng.randint(0, rows, size=n), segment_ids=ids, dense_output_dim0=rows)
