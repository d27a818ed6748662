"""Names, tags and collections of summary operations."""

import contextlib
import re

from ferroflow.python.framework import ops
from ferroflow.python.platform import tf_logging

_INVALID_TAG_CHARACTERS = re.compile(r"[^-/\w\.]")


def collect(val, collections, default_collections):
    """Adds a summary to collections."""
    for key in default_collections if collections is None else collections:
        ops.add_to_collection(key, val)


def clean_tag(name):
    """A tag without characters that names of operations may not have."""
    if name is None:
        return None
    new_name = _INVALID_TAG_CHARACTERS.sub("_", name).lstrip("/")
    if new_name != name:
        tf_logging.info("Summary name %s is illegal; using %s instead." % (name, new_name))
    return new_name


@contextlib.contextmanager
def summary_scope(name, family=None, default_name=None, values=None):
    """The tag and the name of a summary. A family is the first part of both."""
    name, family = clean_tag(name), clean_tag(family)
    base = name if family is None else "{}/{}".format(family, name)
    with ops.name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        if family is not None:
            # Once more at the front: TensorBoard groups by the first part.
            tag = "{}/{}".format(family, tag)
        yield tag, scope
