"""Process sets."""

from ferroflow._hvd.core import (  # noqa: F401
    ProcessSet, add_process_set, get_process_set_ids_and_ranks, global_process_set,
    process_set_included, remove_process_set)
