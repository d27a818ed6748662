"""The devices of this process."""

from ferroflow.core._messages import message_class


def list_local_devices(session_config=None):
    from ferroflow.python.client import session
    from ferroflow.python.framework import ops

    kind = message_class("tensorflow.DeviceAttributes")
    with session.Session(graph=ops.Graph(), config=session_config) as sess:
        found = sess.list_devices()
    return [
        kind(name=d.name, device_type=d.device_type, memory_limit=d.memory_limit_bytes, incarnation=d.incarnation)
        for d in found
    ]
