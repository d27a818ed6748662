"""Kullback-Leibler divergences, by the types of two distributions."""

from ferroflow.python.framework import ops
from ferroflow.python.util.api import export

_known = {}


@export("distributions.RegisterKL", "contrib.distributions.RegisterKL")
class RegisterKL:
    """Declares the divergence of two classes of distributions."""

    def __init__(self, dist_cls_a, dist_cls_b):
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn):
        if not callable(kl_fn):
            raise TypeError("kl_fn must be callable, received: %s" % kl_fn)
        if self._key in _known:
            raise ValueError("KL(%s || %s) has already been registered to: %s" % (
                self._key[0].__name__, self._key[1].__name__, _known[self._key]))
        _known[self._key] = kl_fn
        return kl_fn


def _load():
    from ferroflow.python.ops.distributions import discrete, normal, positive  # noqa: F401


@export("distributions.kl_divergence", "contrib.distributions.kl_divergence")
def kl_divergence(distribution_a, distribution_b, allow_nan_stats=True, name=None):
    """How far one distribution is from another."""
    del allow_nan_stats
    _load()
    for a in type(distribution_a).__mro__:
        for b in type(distribution_b).__mro__:
            if (a, b) in _known:
                with ops.name_scope("KullbackLeibler"):
                    return _known[a, b](distribution_a, distribution_b, name=name)
    raise NotImplementedError("No KL(distribution_a || distribution_b) registered for distribution_a type %s and "
                              "distribution_b type %s" % (type(distribution_a).__name__, type(distribution_b).__name__))
