"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

from ferroflow._hvd.elastic import run  # noqa: F401

from .sampler import ElasticSampler  # noqa: F401
from .state import TorchState  # noqa: F401
