"""All messages by their short name: `from ferroflow.core.messages import GraphDef`."""

from ferroflow.core import _descriptors, _messages


def __getattr__(name):
    full = "tensorflow." + name
    if full in _descriptors.MESSAGES:
        return _messages.message_class(full)
    if full in _descriptors.ENUMS:
        return _messages.enum_type(full)
    raise AttributeError(f"there is no message {name!r}")
