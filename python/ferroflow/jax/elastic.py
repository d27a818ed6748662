"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

import jax

from ferroflow._hvd import arrays
from ferroflow._hvd.elastic import ObjectState, State, run, run_fn  # noqa: F401


class JaxState(ObjectState):
    """Trees of arrays and plain values that survive lost ranks. They are attributes:
    `JaxState(params=params, opt_state=opt_state, step=0)`."""

    def __init__(self, **kwargs):
        super().__init__(lambda obj, root, name: arrays.broadcast_object(obj, root, name),
                         **kwargs)

    def save(self):
        # Steps may be in flight. A lost rank must be noticed here, not after the values are saved.
        jax.block_until_ready([getattr(self, name) for name in self._saved_state])
        super().save()
