"""What a Saver saves: variables, slices of variables, and other saveable objects, by name."""

from ferroflow.python.framework import device as pydev
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops, resource_variable_ops, state_ops, variables
from ferroflow.python.training.saving import saveable_object

_VARIABLE_OPS = {"Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "ReadVariableOp"}


def set_cpu0(device_string):
    """The first CPU of the task of a device."""
    spec = pydev.DeviceSpec.from_string(device_string)
    return spec.replace(device_type="CPU", device_index=0).to_string()


def _is_resource_variable(var):
    return resource_variable_ops.is_resource_variable(var)


class ReferenceVariableSaveable(saveable_object.SaveableObject):
    """A variable whose value is a reference."""

    def __init__(self, var, slice_spec, name):
        super().__init__(var, [saveable_object.SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors, restored_shapes):
        restored = restored_tensors[0]
        if restored_shapes is not None:
            restored = array_ops.reshape(restored, restored_shapes[0])
        known = restored_shapes is None and self.op.get_shape().is_fully_defined()
        return state_ops.assign(self.op, restored, validate_shape=known)


class ResourceVariableSaveable(saveable_object.SaveableObject):
    """A variable that is a resource."""

    def __init__(self, var, slice_spec, name):
        self._var_device = var.device
        self._var_shape = var.shape
        if isinstance(var, ops.Tensor):
            self.handle_op = var.op.inputs[0]
            tensor = var
        else:
            self.handle_op = var.handle

            def tensor(v=var):
                with ops.device(v.device):
                    with ops.name_scope("Read"):
                        ops.apply_op("DisableCopyOnRead", None, [v.handle])
                        value = ops.apply_op("ReadVariableOp", None, [v.handle], {"dtype": v.dtype}).outputs[0]
                    value = array_ops.identity(value)
                # The value may be on another device; the save operation wants it on a CPU.
                with ops.device("/device:CPU:0"):
                    return array_ops.identity(value)

        spec = saveable_object.SaveSpec(tensor, slice_spec, name, dtype=var.dtype, device=var.device)
        super().__init__(var, [spec], name)

    def restore(self, restored_tensors, restored_shapes):
        restored = restored_tensors[0]
        if restored_shapes is not None:
            restored = array_ops.reshape(restored, restored_shapes[0])
        with ops.device(self._var_device):
            restored = array_ops.identity(restored)
            if not self._var_shape.is_compatible_with(restored.shape):
                raise ValueError(f"Shape mismatch: variable {self.name} has shape {self._var_shape}, the checkpoint {restored.shape}")
            return ops.apply_op("AssignVariableOp", None, [self.handle_op, restored])


def saveable_objects_for_op(op, name):
    """The saveable objects of a variable, of its slices, or of a saveable object."""
    if not isinstance(name, str):
        raise TypeError(f"names_to_saveables must be a dict mapping string names to trackable operations. Name is not a string: {name}")
    if isinstance(op, saveable_object.SaveableObject):
        yield op
    elif isinstance(op, (list, tuple, variables.PartitionedVariable)):
        full_name = None
        for variable in op:
            info = variable._save_slice_info
            if not info:
                raise ValueError(f"Slices must all be slices: {variable}")
            if full_name is None:
                full_name = info.full_name
            elif full_name != info.full_name:
                raise ValueError(f"Slices must all be from the same tensor: {full_name} != {info.full_name}")
            kind = ResourceVariableSaveable if _is_resource_variable(variable) else ReferenceVariableSaveable
            yield kind(variable, info.spec, name)
    elif _is_resource_variable(op):
        if getattr(op, "_in_graph_mode", True) and hasattr(op, "_graph_element") and op._graph_element is not None:
            yield ResourceVariableSaveable(op._graph_element, "", name)
        else:
            yield ResourceVariableSaveable(op, "", name)
    else:
        tensor = ops.convert_to_tensor(op, as_ref=True)
        if not _tensor_comes_from_variable(tensor):
            raise TypeError(f"names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: {tensor}")
        if tensor.op.type in ("Variable", "VariableV2", "AutoReloadVariable"):
            yield ReferenceVariableSaveable(tensor, "", name)
        else:
            yield ResourceVariableSaveable(tensor, "", name)


def _tensor_comes_from_variable(tensor):
    return isinstance(tensor, ops.Tensor) and tensor.op.type in _VARIABLE_OPS


def op_list_to_dict(op_list, convert_variable_to_tensor=True):
    """A dict from names to variables for a list of variables; slices of one variable go together."""
    if not isinstance(op_list, (list, tuple, set)):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {op_list}")
    op_list = sorted(op_list, key=lambda x: x.name) if isinstance(op_list, set) else list(op_list)
    found = {}
    for var in op_list:
        if isinstance(var, (saveable_object.SaveableObject, variables.PartitionedVariable)):
            if var.name in found:
                raise ValueError(f"At least two variables have the same name: {var.name}")
            found[var.name] = var
        elif isinstance(var, variables.Variable) and var._save_slice_info:
            name = var._save_slice_info.full_name
            if name in found:
                if not isinstance(found[name], list):
                    raise ValueError(f"Mixing slices and non-slices with the same name: {name}")
                found[name].append(var)
            else:
                found[name] = [var]
        else:
            tensor = var
            if convert_variable_to_tensor:
                graph_element = getattr(var, "_graph_element", None) if _is_resource_variable(var) else None
                tensor = graph_element if graph_element is not None else ops.convert_to_tensor(var, as_ref=True)
                if not _tensor_comes_from_variable(tensor):
                    raise TypeError(f"Variable to save is not a Variable: {var}")
            op = tensor.op
            name = op.inputs[0].op.name if op.type == "ReadVariableOp" else op.name
            if name in found:
                raise ValueError(f"At least two variables have the same name: {name}")
            found[name] = tensor
    return found


def validate_and_slice_inputs(names_to_saveables):
    """The saveable objects of a dict or list, in the order of their names."""
    if not isinstance(names_to_saveables, dict):
        names_to_saveables = op_list_to_dict(names_to_saveables)
    saveables, seen = [], set()
    for name, op in sorted(names_to_saveables.items(), key=lambda item: item[0]):
        for converted in saveable_objects_for_op(op, name):
            if id(converted.op) in seen:
                raise ValueError(f"The same saveable will be restored with two names: {name}")
            saveables.append(converted)
            seen.add(id(converted.op))
    return saveables
