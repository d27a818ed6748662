"""Settings of a job from `HOROVOD_*` environment variables."""

import os
import sys

# Variables that this module or the launcher reads, and what they set.
UNDERSTOOD = {
    "HOROVOD_FUSION_THRESHOLD": "bytes of a fused buffer",
    "HOROVOD_CYCLE_TIME": "milliseconds that a tensor waits for others to fuse with",
    "HOROVOD_TIMELINE": "the file of the timeline",
    "HOROVOD_TIMELINE_MARK_CYCLES": "accepted; the timeline marks every collective",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "seconds until a warning that a tensor waits for ranks",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "seconds until such a tensor fails",
    "HOROVOD_STALL_CHECK_DISABLE": "neither warn nor fail",
    "HOROVOD_ELASTIC": "accepted; the launcher decides",
    "HOROVOD_DYNAMIC_PROCESS_SETS": "accepted; process sets are always dynamic",
    "HOROVOD_LOG_LEVEL": "accepted; FERROFLOW_VERBOSE=1 prints choices",
}

# Variables that describe the process's place, set by Horovod's own launcher.
_PLACE = ("HOROVOD_RANK", "HOROVOD_SIZE")

_FOREVER = 1e9


def _number(name):
    text = os.environ.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not a number") from None


def engine_options():
    """The options of the engine that the environment sets, as arguments of `reduce.init`."""
    options = {}
    threshold, cycle = _number("HOROVOD_FUSION_THRESHOLD"), _number("HOROVOD_CYCLE_TIME")
    if threshold is not None or cycle is not None:
        # Horovod's defaults for the one that is not given.
        size = int(threshold) if threshold is not None else 128 << 20
        options["fusion"] = (size, cycle / 1000 if cycle is not None else 0.001)
    warning = _number("HOROVOD_STALL_CHECK_TIME_SECONDS")
    deadline = _number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS")
    if os.environ.get("HOROVOD_STALL_CHECK_DISABLE", "") not in ("", "0"):
        options["stalls"] = (_FOREVER, _FOREVER)
    elif warning is not None or deadline is not None:
        options["stalls"] = (
            warning if warning is not None else 10.0,
            deadline if deadline else _FOREVER if deadline == 0 else 120.0,
        )
    return options


_told = False


def tell_ignored(rank):
    """Names the `HOROVOD_*` variables that have no meaning here, once, on rank 0."""
    global _told
    if _told or rank != 0:
        return
    _told = True
    known = set(UNDERSTOOD).union(_PLACE)
    ignored = sorted(n for n in os.environ if n.startswith("HOROVOD_") and n not in known)
    if ignored:
        print(f"ferroflow: ignored: {', '.join(ignored)}", file=sys.stderr)
