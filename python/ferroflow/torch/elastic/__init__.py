"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

from ferroflow._hvd.elastic import ObjectState, State, run, run_fn  # noqa: F401

from .sampler import ElasticSampler  # noqa: F401
from .state import TorchState  # noqa: F401
