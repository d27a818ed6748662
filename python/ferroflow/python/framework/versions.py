"""Versions, and the switches between versions of TensorFlow's behavior."""

VERSION = __version__ = "1.15.0"
GIT_VERSION = __git_version__ = "ferroflow"
COMPILER_VERSION = __compiler_version__ = "rustc"
# How a library of ops in C++ would have to be compiled; there are none.
CXX11_ABI_FLAG, MONOLITHIC_BUILD = 1, 0
GRAPH_DEF_VERSION = 1645
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


class _Switches:
    resource_variables = False
    control_flow_v2 = False


def disable_v2_behavior():
    """This is version 1: there is nothing to switch off but resource variables."""
    _Switches.resource_variables = False
    _Switches.control_flow_v2 = False


def enable_v2_behavior():
    raise NotImplementedError("Ferroflow's front end is TensorFlow 1: it has no eager execution")


enable_eager_execution = enable_v2_behavior


def disable_eager_execution():
    pass


def enable_resource_variables():
    _Switches.resource_variables = True


def disable_resource_variables():
    _Switches.resource_variables = False


def resource_variables_enabled():
    return _Switches.resource_variables


def enable_control_flow_v2():
    _Switches.control_flow_v2 = True


def disable_control_flow_v2():
    _Switches.control_flow_v2 = False


def control_flow_v2_enabled():
    return _Switches.control_flow_v2


def disable_tensor_equality():
    pass


def enable_tensor_equality():
    raise NotImplementedError("tensors are compared by identity, as in TensorFlow 1; use tf.equal")


def disable_v2_tensorshape():
    pass


def enable_v2_tensorshape():
    raise NotImplementedError("shapes hold Dimension objects, as in TensorFlow 1")
