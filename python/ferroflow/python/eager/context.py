"""What programs ask about eager execution: it is never on."""

import contextlib

GRAPH_MODE, EAGER_MODE = 0, 1


def executing_eagerly():
    return False


in_eager_mode = executing_eagerly


def in_graph_mode():
    return True


@contextlib.contextmanager
def graph_mode():
    yield


def num_gpus():
    from ferroflow.python.client import device_lib
    return sum(device.device_type == "GPU" for device in device_lib.list_local_devices())
