"""`tf.config`: the devices of the process, and settings of eager execution.

Sessions take their settings from a `ConfigProto`. The settings here are kept, as TensorFlow keeps
them for eager execution, and change no session.
"""

import collections

PhysicalDevice = collections.namedtuple("PhysicalDevice", "name device_type")
LogicalDevice = collections.namedtuple("LogicalDevice", "name device_type")
LogicalDeviceConfiguration = VirtualDeviceConfiguration = collections.namedtuple(
    "LogicalDeviceConfiguration", "memory_limit experimental_priority experimental_device_ordinal", defaults=(None, None, None)
)

_SETTINGS = {"inter": 0, "intra": 0, "soft": True, "jit": "", "optimizer": {}, "tf32": True, "policy": "silent", "synchronous": True}
_VISIBLE, _GROWTH, _LOGICAL = {}, {}, {}


def list_physical_devices(device_type=None):
    """The CPU, and the GPUs whose driver was found."""
    from ferroflow import _ferroflow

    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    found += [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(len(_ferroflow.gpu_descriptions()))]
    return [d for d in found if device_type is None or d.device_type == device_type]


def list_logical_devices(device_type=None):
    return [
        LogicalDevice(d.name.replace("/physical_device", "/device"), d.device_type) for d in get_visible_devices(device_type)
    ]


def get_visible_devices(device_type=None):
    return [d for d in list_physical_devices(device_type) if d in _VISIBLE.get(d.device_type, [d])]


def set_visible_devices(devices, device_type=None):
    devices = devices if isinstance(devices, (list, tuple)) else [devices] if devices else []
    for device in devices:
        _known(device)
    for kind in ("CPU", "GPU") if device_type is None else (device_type,):
        _VISIBLE[kind] = [d for d in devices if d.device_type == kind]


def _known(device):
    if device not in list_physical_devices():
        raise ValueError("Unrecognized device: %s" % (device,))
    return device


def get_memory_growth(device):
    return _GROWTH.get(_known(device))


def set_memory_growth(device, enable):
    if _known(device).device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU devices")
    _GROWTH[device] = bool(enable)


def get_logical_device_configuration(device):
    return _LOGICAL.get(_known(device))


def set_logical_device_configuration(device, logical_devices):
    _LOGICAL[_known(device)] = list(logical_devices)


get_virtual_device_configuration = get_logical_device_configuration
set_virtual_device_configuration = set_logical_device_configuration


def get_device_details(device):
    return {"device_name": _known(device).name} if device.device_type == "GPU" else {}


def _setting(key):
    def get():
        return _SETTINGS[key]

    def put(value):
        _SETTINGS[key] = value

    return get, put


get_inter_op_parallelism_threads, set_inter_op_parallelism_threads = _setting("inter")
get_intra_op_parallelism_threads, set_intra_op_parallelism_threads = _setting("intra")
get_soft_device_placement, set_soft_device_placement = _setting("soft")
get_device_policy, set_device_policy = _setting("policy")
get_synchronous_execution, set_synchronous_execution = _setting("synchronous")
tensor_float_32_execution_enabled, enable_tensor_float_32_execution = _setting("tf32")
get_jit, set_jit = _setting("jit")


def get_experimental_options():
    return dict(_SETTINGS["optimizer"])


def set_experimental_options(options):
    _SETTINGS["optimizer"].update(options)
