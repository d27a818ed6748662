"""Elastic training, for any framework."""

from ferroflow._hvd.elastic import ObjectState, State, run_fn  # noqa: F401
