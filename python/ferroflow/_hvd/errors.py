"""The exceptions of collectives. Their messages name the rank that caused them."""


class HorovodInternalError(RuntimeError):
    """A rank was lost or communication failed. Elastic training restores its state and goes on."""


class HostsUpdatedInterrupt(RuntimeError):
    """New ranks wait to join, or ranks are about to leave. Elastic training reconnects."""

    def __init__(self, skip_sync=False):
        super().__init__("the ranks of this job change")
        self.skip_sync = skip_sync


class MismatchError(RuntimeError, ValueError):
    """The calls of the ranks do not match, or one is impossible."""


class NotInitializedError(ValueError, RuntimeError):
    """init() was not called, or shutdown() was."""


_LOST = frozenset((1, 4, 10, 14))  # cancelled, deadline exceeded, aborted, unavailable


def of_code(code, message):
    """The exception for an error of the runtime. `code` is TensorFlow's number for it."""
    if code in _LOST:
        return HorovodInternalError(message)
    if code == 9:
        return NotInitializedError(message)
    if code == 12:
        return NotImplementedError(message)
    return MismatchError(message)
