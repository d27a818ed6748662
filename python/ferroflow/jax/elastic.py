"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

import jax

from ferroflow._hvd.elastic import ObjectState, State, run, run_fn  # noqa: F401


class JaxState(ObjectState):
    """Trees of arrays and plain values that survive lost ranks. They are attributes:
    `JaxState(params=params, opt_state=opt_state, step=0)`."""

    def _wait(self):
        jax.block_until_ready([getattr(self, name) for name in self._saved_state])

    def save(self):
        # Steps may be in flight. A lost rank must be noticed here, not after the values are saved.
        self._wait()
        super().save()

    def restore(self):
        # Steps in flight must end before the ranks reconnect: a step that communicates later would
        # be out of step with the other ranks.
        try:
            self._wait()
        except Exception:
            # The reason for this call.
            pass
        super().restore()
