"""TensorFlow's messages under the names that programs import: `ferroflow.core.framework.graph_pb2`."""

import importlib.machinery
import sys
import types

_MODULES = {
    "framework": (
        "allocation_description api_def attr_value cost_graph device_attributes function full_type graph graph_debug_info "
        "graph_transfer_info kernel_def log_memory node_def op_def optimized_function_graph reader_base "
        "remote_fused_graph_execute_info resource_handle step_stats summary tensor tensor_description tensor_shape "
        "tensor_slice types variable versions"
    ),
    "protobuf": (
        "cluster config control_flow coordination_config core_platform_payloads data_service debug device_filters "
        "device_properties error_codes eager_service graph_debug_info master meta_graph named_tensor queue_runner "
        "remote_tensor_handle rewriter_config saved_model saved_object_graph saver service_config snapshot status struct "
        "tensor_bundle tensorflow_server trackable_object_graph transport_options verifier_config worker"
    ),
    "util": "event memmapped_file_system saved_tensor_slice test_log",
    "example": "example example_parser_configuration feature",
    "lib": "",
    "lib.core": "error_codes",
}


class _MessageModule(types.ModuleType):
    """A module in which all messages and enums, and the values of enums, are found."""

    def __getattr__(self, name):
        from ferroflow.core import _descriptors, _messages

        full = "tensorflow." + name
        if full in _descriptors.MESSAGES:
            value = _messages.message_class(full)
        elif full in _descriptors.ENUMS:
            value = _messages.enum_type(full)
        else:
            value = _enum_value(name)
            if value is None:
                raise AttributeError(f"module {self.__name__!r} has no message {name!r}")
        setattr(self, name, value)
        return value


def _enum_value(name):
    from ferroflow.core import _descriptors, _messages

    for full, values in _descriptors.ENUMS.items():
        if full.count(".") == 1 or full.startswith("tensorflow.error."):
            if f";{name}=" in ";" + values:
                return _messages.enum_type(full).Value(name)
    return None


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith(__name__ + "."):
            return None
        package, _, last = name[len(__name__) + 1 :].rpartition(".")
        if f"{package}.{last}".strip(".") in _MODULES:
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)
        if last.endswith("_pb2") and last[:-4] in _MODULES.get(package, "").split():
            return importlib.machinery.ModuleSpec(name, _Finder)
        return None

    @staticmethod
    def create_module(spec):
        return _MessageModule(spec.name) if spec.name.endswith("_pb2") else types.ModuleType(spec.name)

    @staticmethod
    def exec_module(module):
        pass


sys.meta_path.append(_Finder)
