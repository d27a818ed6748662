"""Linear algebra and Fourier transforms.

Factors that are not unique are not compared. The graph computes their product, which is compared.
"""

import numpy as np

from case import COMPLEX

from . import recipe


def batch(c):
    return c.shape(0, 2)


def matrix(c, attr, b, m, n):
    c.style = c.pick(["small", "small", "whole"])
    return c.of(attr, b + [m, n])


def well(c, b, n):
    """Well-conditioned matrices."""
    a = c.of("T", b + [n, n], "small")
    return (a + 6 * np.eye(n)).astype(a.dtype)


def positive(c, b, n):
    a = c.of("T", b + [n, n], "small")
    return (np.matmul(a, np.conj(np.swapaxes(a, -1, -2))) + 2 * np.eye(n)).astype(a.dtype)


def norm(c, times=20.0):
    c.mode, c.tolerance = "norm", times


@recipe("MatMul")
def matmul(c):
    m, k, n = (c.dim() for _ in range(3))
    ta, tb = c.chance(0.5), c.chance(0.5)
    norm(c, 2)
    a, b = matrix(c, "T", [], *((k, m) if ta else (m, k))), matrix(c, "T", [], *((n, k) if tb else (k, n)))
    c.call(a=a, b=b, transpose_a=ta, transpose_b=tb)


@recipe("SparseMatMul")
def sparse_matmul(c):
    m, k, n = (c.int(1, 9) for _ in range(3))
    ta, tb = c.chance(0.5), c.chance(0.5)
    norm(c, 2)
    a, b = matrix(c, "Ta", [], *((k, m) if ta else (m, k))), matrix(c, "Tb", [], *((n, k) if tb else (k, n)))
    c.call(a=a, b=b, transpose_a=ta, transpose_b=tb)


@recipe("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(c):
    m, k, n = (c.dim() for _ in range(3))
    ta, tb = c.chance(0.5), c.chance(0.5)
    ba, bb = c.broadcast(2, 0, 3)
    if c.op == "BatchMatMul":
        bb = ba
    norm(c, 2)
    x, y = ("Ta", "Tb") if c.op.endswith("V3") else ("T", "T")
    c.call(x=matrix(c, x, ba, *((k, m) if ta else (m, k))), y=matrix(c, y, bb, *((n, k) if tb else (k, n))), adj_x=ta, adj_y=tb)


@recipe("Einsum")
def einsum(c):
    sizes = {k: c.int(1, 4) for k in "abcde"}
    eq = c.pick(["ab,bc->ac", "ab->ba", "ab->", "aab->b", "abc,bd->acd", "abc,acd->abd", "...ab,...bc->...ac", "a,b->ab", "ab,ab->", "abc->c", "aa->a", "a->aa", "ab,b->a", "abcd,bcde->ae"])
    ins = eq.split("->")[0].split(",")
    lead = c.shape(0, 2, empty=False) if "..." in eq else []
    norm(c, 2)
    c.style = "small"
    c.call(inputs=[c.of("T", lead + [sizes[k] for k in i.replace("...", "")]) for i in ins], equation=eq)


@recipe("Cross")
def cross(c):
    s = c.shape(0, 2) + [3]
    c.style = c.pick(["small", "whole"])
    c.call(a=c.of("T", s), b=c.of("T", s))


@recipe("Cholesky", "BatchCholesky")
def cholesky(c):
    norm(c)
    c.call(input=positive(c, batch(c), c.int(0, 5)))


@recipe("CholeskyGrad", "BatchCholeskyGrad")
def cholesky_grad(c):
    b, n = batch(c), c.int(1, 5)
    norm(c)
    c.call(l=np.linalg.cholesky(positive(c, b, n)), grad=c.of("T", b + [n, n], "small"))


@recipe(*"MatrixDeterminant BatchMatrixDeterminant MatrixInverse BatchMatrixInverse LogMatrixDeterminant MatrixExponential".split())
def square(c):
    norm(c, 50)
    c.call(input=well(c, batch(c), c.int(0, 5)) if c.op != "MatrixExponential" else c.of("T", batch(c) + [3, 3], "unit"))


@recipe("MatrixLogarithm", "MatrixSquareRoot")
def function(c):
    norm(c, 200)
    c.call(input=positive(c, batch(c), c.int(1, 4)))


@recipe("MatrixSolve", "BatchMatrixSolve")
def solve(c):
    b, n, k = batch(c), c.int(0, 5), c.int(0, 4)
    norm(c)
    c.call(matrix=well(c, b, n), rhs=c.of("T", b + [n, k], "small"))


@recipe("MatrixSolveLs", "BatchMatrixSolveLs")
def solve_ls(c):
    b, k = batch(c), c.int(1, 3)
    n = c.int(1, 4)
    m = n + c.int(0, 3)
    a = c.of("T", b + [m, n], "small")
    a = a + 3 * np.eye(m, n).astype(a.dtype)
    norm(c, 100)
    c.call(matrix=a.astype(a.dtype), rhs=c.of("T", b + [m, k], "small"), l2_regularizer=c.pick([0.0, 0.1]))


@recipe("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular(c):
    b, n, k = batch(c), c.int(1, 5), c.int(0, 4)
    norm(c)
    c.call(matrix=well(c, b, n), rhs=c.of("T", b + [n, k], "small"))


@recipe("BandedTriangularSolve")
def banded(c):
    b, n, k = batch(c), c.int(1, 5), c.int(1, 3)
    bands = c.int(1, n)
    a = c.of("T", b + [bands, n], "small")
    lower = c.chance(0.5)
    # The main diagonal, which is first in a lower band and last in an upper band.
    a[..., 0 if lower else bands - 1, :] = 7
    norm(c)
    c.call(matrix=a, rhs=c.of("T", b + [n, k], "small"), lower=lower)


@recipe("TridiagonalMatMul")
def tridiagonal_matmul(c):
    b, n, k = batch(c), c.int(1, 5), c.int(1, 4)
    norm(c, 2)
    c.style = "small"
    d = lambda: c.of("T", b + [1, n])
    c.call(superdiag=d(), maindiag=d(), subdiag=d(), rhs=c.of("T", b + [n, k]))


@recipe("TridiagonalSolve")
def tridiagonal_solve(c):
    b, n, k = batch(c), c.int(1, 5), c.int(1, 4)
    d = c.of("T", b + [3, n], "small")
    d[..., 1, :] += 7
    norm(c)
    c.call(diagonals=d, rhs=c.of("T", b + [n, k], "small"), perturb_singular=False, partial_pivoting=c.chance(0.5))


@recipe("Lu")
def lu(c):
    norm(c)
    c.call(input=well(c, batch(c), c.int(1, 5)))


def product(c, a, b, **given):
    return c.node("BatchMatMulV2", x=a, y=b, **given)[0]


def absolute(c, x):
    if x.dtype in COMPLEX:
        return c.node("ComplexAbs", x=x, Tout="float32" if x.dtype == "complex64" else "float64")[0]
    return c.node("Abs", x=x)[0]


@recipe("Qr")
def qr(c):
    norm(c)
    q, r = c.node(c.op, input=c.of("T", batch(c) + [c.int(1, 5), c.int(1, 5)], "small"))
    c.fetch(product(c, q, r), absolute(c, r), c.node("Shape", input=q)[0])


@recipe("Svd", "BatchSvd")
def svd(c):
    norm(c, 50)
    uv, full = c.chance(0.7), c.chance(0.5)
    s, u, v = c.node(c.op, input=c.of("T", batch(c) + [c.int(1, 5), c.int(1, 5)], "small"), compute_uv=uv, full_matrices=full)
    c.fetch(s, c.node("Shape", input=u)[0], c.node("Shape", input=v)[0])
    if uv and not full:
        c.fetch(product(c, c.node("Mul", x=u, y=c.node("ExpandDims", input=s, dim=c.const(-2, "int32"))[0])[0], v, adj_x=False, adj_y=True))


@recipe("SelfAdjointEigV2", "BatchSelfAdjointEigV2")
def self_adjoint(c):
    norm(c, 50)
    vectors = c.chance(0.7)
    e, v = c.node(c.op, input=positive(c, batch(c), c.int(1, 5)), compute_v=vectors)
    c.fetch(e, c.node("Shape", input=v)[0])
    if vectors:
        c.fetch(product(c, c.node("Mul", x=v, y=c.node("ExpandDims", input=e, dim=c.const(-2, "int32"))[0])[0], v, adj_x=False, adj_y=True))


@recipe("SelfAdjointEig", "BatchSelfAdjointEig")
def self_adjoint_v1(c):
    norm(c, 50)
    (out,) = c.node(c.op, input=positive(c, batch(c), c.int(1, 5)))
    c.fetch(absolute(c, out))


@recipe("Eig")
def eig(c):
    c.types["Tout"] = "complex128" if c.types["T"] in ("float64", "complex128") else "complex64"
    norm(c, 100)
    n = c.int(1, 4)
    a = c.of("T", batch(c) + [n, n], "small") * 0.1
    a = (a + np.diag(np.arange(1, n + 1) * 3)).astype(a.dtype)
    e, v = c.node(c.op, input=a, compute_v=True)
    scaled = c.node("Mul", x=v, y=c.node("ExpandDims", input=e, dim=c.const(-2, "int32"))[0])[0]
    inverse = c.node("MatrixInverse", input=v)[0]
    c.fetch(product(c, scaled, inverse), c.node("Sum", input=e, reduction_indices=c.const([-1], "int32"))[0])


@recipe("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")
def fft(c):
    n = {"2": 2, "3": 3}.get(c.op[-2], 1)
    norm(c, 4)
    c.call(input=c.of("Tcomplex", c.shape(0, 2) + c.ints(1, 6, n), "small"))


@recipe("RFFT", "RFFT2D", "RFFT3D")
def rfft(c):
    n = {"2": 2, "3": 3}.get(c.op[-2], 1)
    c.types["Tcomplex"] = "complex64" if c.types["Treal"] == "float32" else "complex128"
    norm(c, 4)
    s = c.ints(1, 6, n)
    c.call(input=c.of("Treal", c.shape(0, 1) + s, "small"), fft_length=[max(1, d + c.int(-1, 1)) for d in s])


@recipe("IRFFT", "IRFFT2D", "IRFFT3D")
def irfft(c):
    n = {"2": 2, "3": 3}.get(c.op[-2], 1)
    c.types["Treal"] = "float32" if c.types["Tcomplex"] == "complex64" else "float64"
    norm(c, 4)
    s = c.ints(1, 6, n)
    length = [c.int(1, d) for d in s[:-1]] + [c.int(1, 2 * s[-1] - 1)]
    x = c.of("Tcomplex", c.shape(0, 1) + s, "small")
    c.call(input=x, fft_length=length)
