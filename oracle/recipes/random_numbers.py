"""Random numbers: with fixed seeds, Ferroflow gives TensorFlow's numbers bit for bit, except for the last digit of logarithms."""

import numpy as np

from case import array

from . import recipe
from .state import read, variable


SHAPES = {"shape_dtype": ["int32", "int64"]}


def seeds(c):
    return dict(seed=c.int(1, 1000), seed2=c.int(1, 1000))


def shape_value(c):
    return np.array(c.shape(0, 3), dtype=np.int64)


@recipe("RandomStandardNormal", "RandomUniform", "TruncatedNormal")
def by_shape(c):
    c.call(shape=shape_value(c), dtype=c.types["dtype"], **seeds(c))


@recipe("RandomUniformInt")
def uniform_int(c):
    low = c.int(-9, 9)
    c.call(shape=shape_value(c), minval=low, maxval=low + c.int(1, 99), **seeds(c))


@recipe("RandomGamma")
def gamma(c):
    c.call(shape=shape_value(c), alpha=c.of("T", c.shape(0, 2), "positive"), **seeds(c))


@recipe("RandomPoisson", "RandomPoissonV2")
def poisson(c):
    attr = "R" if c.op.endswith("V2") else "dtype"
    rate = c.of(attr, c.shape(0, 2), "positive")
    if c.chance(0.3):
        rate = (rate * 10).astype(rate.dtype)
    c.call(shape=shape_value(c), rate=rate, **seeds(c))


@recipe("RandomShuffle")
def shuffle(c):
    c.call(value=c.of("T", c.shape()), **seeds(c))


@recipe("RandomCrop")
def crop(c):
    s = c.shape(3, 3, empty=False)
    c.call(image=c.of("T", s), size=[c.int(1, s[0]), c.int(1, s[1])], **seeds(c))


@recipe("Multinomial")
def multinomial(c):
    c.style = "small"
    c.call(logits=c.of("T", [c.int(1, 3), c.int(1, 5)]), num_samples=c.int(0, 9), **seeds(c))


@recipe("StatelessMultinomial")
def stateless_multinomial(c):
    c.style = "small"
    c.call(logits=c.of("T", [c.int(1, 3), c.int(1, 5)]), num_samples=c.int(0, 9), seed=c.ints(0, 1000, 2))


def truncated(c, attr, n, *names):
    mean = c.of(attr, [n], "small")
    one = lambda v: np.array(v).astype(mean.dtype)
    low = c.pick([-1.0, -0.5, 0.2, -np.inf if c.chance(0.3) else -3.0])
    return dict(zip(names, [mean, c.of(attr, [n], "positive"), (mean + one(low)).astype(mean.dtype), (mean + one(2.0)).astype(mean.dtype)]))


@recipe("ParameterizedTruncatedNormal")
def parameterized(c):
    b = c.int(1, 3)
    c.call(shape=[b, c.int(1, 5)], **truncated(c, "dtype", b if c.chance(0.5) else 1, "means", "stdevs", "minvals", "maxvals"), **seeds(c))


@recipe("StatelessParameterizedTruncatedNormal")
def stateless_parameterized(c):
    b = c.int(1, 3)
    c.call(shape=[c.int(1, 4), b], seed=c.ints(0, 1000, 2), **truncated(c, "dtype", b, "means", "stddevs", "minvals", "maxvals"))


@recipe("RandomIndexShuffle")
def index_shuffle(c):
    # TensorFlow hangs if an index is above the maximum.
    c.may_mutate = False
    n = c.int(1, 20)
    c.call(index=c.rng.randint(0, n + 1, size=c.shape(0, 1)), seed=np.array(c.ints(0, 1000, 3)), max_index=n, rounds=c.pick([4, 4, 8]))


@recipe(*"StatelessRandomNormal StatelessRandomUniform StatelessTruncatedNormal StatelessRandomUniformFullInt".split())
def stateless(c):
    c.call(shape=shape_value(c), seed=c.ints(0, 1000, 2), dtype=c.types["dtype"])


@recipe("StatelessRandomUniformInt")
def stateless_int(c):
    low = c.int(-9, 9)
    c.call(shape=shape_value(c), seed=c.ints(0, 1000, 2), minval=low, maxval=low + c.int(1, 99))


@recipe("StatelessRandomGammaV2")
def stateless_gamma(c):
    a = c.of("dtype", c.shape(0, 1), "positive")
    c.call(shape=c.shape(0, 2) + list(a.shape), seed=c.ints(0, 1000, 2), alpha=a)


@recipe("StatelessRandomPoisson")
def stateless_poisson(c):
    a = c.of("Rtype", c.shape(0, 1), "positive")
    c.call(shape=c.shape(0, 2) + list(a.shape), seed=c.ints(0, 1000, 2), lam=a, dtype=c.types["dtype"])


@recipe("StatelessRandomBinomial")
def stateless_binomial(c):
    a = c.of("T", c.shape(0, 1), "positive")
    if c.chance(0.5):
        a = (a * 10).astype(a.dtype)
    c.call(shape=c.shape(0, 2) + list(a.shape), seed=c.ints(0, 1000, 2), counts=a, probs=c.rng.uniform(0, 1, size=a.shape), dtype=c.types["dtype"])


def key_counter(c, alg=None):
    alg = alg or c.pick([1, 1, 1, 2, 3])
    return dict(key=[c.int(0, 1 << 30)], counter=[c.int(0, 99), c.int(0, 99)] if alg != 2 else [c.int(0, 99)], alg=alg)


@recipe(*"StatelessRandomNormalV2 StatelessRandomUniformV2 StatelessTruncatedNormalV2 StatelessRandomUniformFullIntV2".split())
def stateless_v2(c):
    c.call(shape=shape_value(c), dtype=c.types["dtype"], **key_counter(c))


@recipe("StatelessRandomUniformIntV2")
def stateless_int_v2(c):
    low = c.int(0, 9)
    c.call(shape=shape_value(c), minval=low, maxval=low + c.int(1, 99), **key_counter(c))


@recipe("StatelessRandomGammaV3")
def stateless_gamma_v3(c):
    a = c.of("dtype", c.shape(0, 1), "positive")
    c.call(shape=c.shape(0, 2) + list(a.shape), alpha=a, **key_counter(c, 1))


@recipe("StatelessShuffle")
def stateless_shuffle(c):
    c.call(value=c.of("T", c.shape(1, 3)), **key_counter(c, 1))


@recipe("StatelessRandomGetAlg")
def get_alg(c):
    c.call()


@recipe("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def get_key(c):
    c.call(seed=c.ints(0, 1000, 2))


@recipe("NonDeterministicInts", hold=SHAPES)
def non_deterministic(c):
    c.mode = "shape"
    c.call(shape=shape_value(c), dtype=c.types["dtype"])


def generator(c, alg):
    n = 3 if alg != 2 else 2
    return variable(c, np.array(c.ints(0, 1 << 30, n), dtype=np.int64), "int64")


@recipe(*"StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulStandardNormal".split(), hold=SHAPES)
def stateful(c):
    old = c.op == "StatefulStandardNormal"
    # The old op reads the algorithm from the state.
    handle = variable(c, np.array([1, *c.ints(0, 1 << 30, 3)], dtype=np.int64), "int64") if old else generator(c, 1)
    given = {} if old else {"algorithm": 1}
    op = c.call(resource=handle, shape=shape_value(c), dtype=c.types["dtype"], **given)[0]
    read(c, handle, "int64", op)


@recipe("StatefulUniformInt", hold=SHAPES)
def stateful_int(c):
    handle = generator(c, 1)
    low = c.int(0, 9)
    op = c.call(resource=handle, algorithm=1, shape=shape_value(c), minval=low, maxval=low + c.int(1, 99))[0]
    read(c, handle, "int64", op)


# TensorFlow's kernel reads every shape as 32-bit integers.
@recipe("StatefulRandomBinomial", hold={"S": ["int32"]})
def stateful_binomial(c):
    # Scalar counts fail a check in TensorFlow.
    handle = generator(c, 1)
    c.may_mutate = False
    a = c.of("T", c.shape(1, 1), "positive")
    op = c.call(resource=handle, algorithm=1, shape=c.shape(0, 2) + list(a.shape), counts=a, probs=c.rng.uniform(0, 1, size=a.shape), dtype=c.types["dtype"])[0]
    read(c, handle, "int64", op)


@recipe("RngSkip")
def rng_skip(c):
    handle = generator(c, 1)
    op = c.call(resource=handle, algorithm=1, delta=c.int(0, 99))[0]
    read(c, handle, "int64", op)


@recipe("RngReadAndSkip")
def rng_read(c):
    handle = generator(c, 1)
    op = c.call(resource=handle, alg=1, delta=c.int(0, 99))[0]
    read(c, handle, "int64", op)


@recipe(*"AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler".split())
def candidates(c):
    n, true = c.int(1, 3), c.int(1, 2)
    top = c.int(6, 12)
    given = dict(num_true=true, num_sampled=c.int(1, 5), unique=c.chance(0.5), **seeds(c))
    if c.op == "AllCandidateSampler":
        top = given["num_sampled"]
    else:
        given["range_max"] = top
    if c.op.startswith("Fixed"):
        given["unigrams"] = c.rng.uniform(0.5, 3, size=top).tolist()
        given["distortion"] = c.pick([1.0, 0.75])
    c.call(true_classes=c.rng.randint(0, top, size=[n, true]), **given)


@recipe("ComputeAccidentalHits")
def accidental(c):
    n, true = c.int(1, 4), c.int(1, 2)
    c.call(true_classes=c.rng.randint(0, 6, size=[n, true]), sampled_candidates=c.rng.permutation(8)[:c.int(0, 5)], num_true=true)


@recipe("NearestNeighbors")
def nearest_neighbors(c):
    c.mode, c.tolerance = "norm", 16.0
    width = c.int(1, 5)
    c.call(points=c.values("float32", [c.int(1, 6), width], "small"), centers=c.values("float32", [c.int(1, 7), width], "small"),
           k=array(c.int(1, 8), "int64"))


@recipe("KmeansPlusPlusInitialization")
def kmeans_plus_plus(c):
    n = c.int(2, 20)
    c.call(points=c.values("float32", [n, c.int(1, 4)], "small"), num_to_sample=array(c.int(1, n), "int64"),
           seed=array(c.int(0, 10**6), "int64"), num_retries_per_sample=array(c.pick([-1, 0, 2]), "int64"))


@recipe("KMC2ChainInitialization")
def kmc2_chain(c):
    distances = np.abs(c.values("float32", [c.int(1, 30)], "small"))
    c.call(distances=distances, seed=array(c.int(0, 10**6), "int64"))


@recipe("SobolSample")
def sobol(c):
    c.call(dim=c.feed(c.pick([1, 2, 5, 40, 1111, 10201]), "int32"), num_results=c.feed(c.int(1, 40), "int32"), skip=c.feed(c.pick([0, 1, 7, 1000, 123456]), "int32"))


@recipe("StochasticCastToInt")
def stochastic_cast(c):
    # TensorFlow's draws depend on the width of its vectors. Whole numbers take none.
    c.call(input=c.of("Tin", c.shape(), "whole"), **key_counter(c, 1))
