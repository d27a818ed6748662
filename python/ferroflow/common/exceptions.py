"""The exceptions of collectives."""

from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
