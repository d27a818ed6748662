"""Graphs, operations, tensors, and the scopes that new operations are made in.

The nodes live in Rust (`ferroflow._ferroflow`). `Operation` and `Tensor` are handles of Rust's;
`tensor_methods.py` and `operation_methods.py` add the methods that are written in Python.
"""

import contextlib
import re
import threading

import numpy as np

from ferroflow import _ferroflow
from ferroflow.core._messages import message_class
from ferroflow.python.framework import device as pydev
from ferroflow.python.framework import dtypes, tensor_shape

Operation = _ferroflow.Operation
Tensor = _ferroflow.Tensor
SymbolicTensor = Tensor

_VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class GraphKeys:
    """Names of the collections that the library uses."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    _SUMMARY_COLLECTION = "_SUMMARY_V2"
    _VARIABLE_COLLECTIONS = [
        GLOBAL_VARIABLES,
        LOCAL_VARIABLES,
        METRIC_VARIABLES,
        MODEL_VARIABLES,
        TRAINABLE_VARIABLES,
        MOVING_AVERAGE_VARIABLES,
        CONCATENATED_VARIABLES,
        TRAINABLE_RESOURCE_VARIABLES,
    ]
    _STREAMING_MODEL_PORTS = "streaming_model_ports"

    VARIABLES = GLOBAL_VARIABLES


# Collections that scopes keep in the graph. Programs do not see them.
_VARSTORE_KEY = ("__variable_store",)


class _ControlDependencies:
    """The control inputs that one `control_dependencies` block gives to new operations."""

    def __init__(self, graph, control_inputs):
        self._graph = graph
        if control_inputs is None:
            self._control_inputs_val, self._new_stack = [], True
        else:
            self._control_inputs_val, self._new_stack = control_inputs, False
        self._seen_nodes = set()
        self._old_stack = None
        self._old_control_flow_context = None

    def __enter__(self):
        if self._new_stack:
            # Also leaves the control flow context.
            self._old_stack = self._graph._control_dependencies_stack
            self._graph._control_dependencies_stack = []
            self._old_control_flow_context = self._graph._control_flow_context
            self._graph._control_flow_context = None
        self._graph._control_dependencies_stack.append(self)
        self._graph._surroundings_changed()

    def __exit__(self, *_):
        stack = self._graph._control_dependencies_stack
        assert stack[-1] is self
        stack.pop()
        if self._new_stack:
            self._graph._control_dependencies_stack = self._old_stack
            self._graph._control_flow_context = self._old_control_flow_context
        self._graph._surroundings_changed()

    @property
    def control_inputs(self):
        return self._control_inputs_val

    def add_op(self, op):
        self._seen_nodes.add(op)

    def op_in_group(self, op):
        return op in self._seen_nodes


class _DeviceEntry:
    """One `device` block: a function from operations to devices, or a string."""

    __slots__ = ("function", "text", "spec", "is_null_merge")

    def __init__(self, device_name_or_function):
        self.text, self.spec, self.function = None, None, None
        if callable(device_name_or_function) and not isinstance(device_name_or_function, pydev.DeviceSpec):
            self.function = device_name_or_function
            self.is_null_merge = False
        else:
            self.spec = pydev.as_spec(device_name_or_function)
            self.text = self.spec.to_string()
            self.is_null_merge = not self.text

    @property
    def display_name(self):
        return self.text if self.function is None else repr(self.function)


class Graph(_ferroflow.GraphCore):
    """A graph of operations."""

    def __init__(self):
        self._default_lock = threading.RLock()
        self._collections = {}
        self._device_entries = []
        self._colocation_stack = []
        self._devices_outside_colocation = []
        self._control_dependencies_stack = []
        self._control_flow_context_value = None
        self._attr_scope_map = {}
        self._op_to_kernel_label_map = {}
        self._gradient_override_map = {}
        self._container = ""
        self._seed = None
        self._unfeedable_tensors = set()
        self._unfetchable_ops = set()
        # Whether a fetch may be refused or converted.
        self._checks_fetches = False
        self._handle_feeders = {}
        self._handle_readers = {}
        self._handle_movers = {}
        self._handle_deleters = {}
        self._building_function = False
        self._registered_ops = None
        self._gradient_functions = {}
        self._python_functions = {}
        self._variable_creator_scopes = []
        self._is_loss_scaled_by_optimizer = False
        self._default_original_op = None

    # The surroundings of new operations.

    def _surroundings_changed(self):
        """Passes the device of new operations to Rust, or that Rust must call Python for it."""
        text = ""
        functions = False
        for entry in reversed(self._device_entries):
            if entry.function is not None:
                functions = True
                break
        if not functions:
            text = self._static_device()
        watched = bool(
            functions
            or self._colocation_stack
            or self._control_dependencies_stack
            or self._control_flow_context_value is not None
            or self._attr_scope_map
            or self._op_to_kernel_label_map
            or self._gradient_override_map
            or self._container
            or self._default_original_op is not None
        )
        self._surroundings("" if watched else text, watched)

    def _static_device(self):
        spec = pydev.DeviceSpec()
        for entry in reversed(self._device_entries):
            if entry is _NO_DEVICE:
                break
            spec = entry.spec.make_merged_spec(spec) if not entry.is_null_merge else spec
        return spec.to_string()

    @property
    def _control_flow_context(self):
        return self._control_flow_context_value

    @_control_flow_context.setter
    def _control_flow_context(self, context):
        self._control_flow_context_value = context
        self._surroundings_changed()

    def _get_control_flow_context(self):
        return self._control_flow_context_value

    def _set_control_flow_context(self, context):
        self._control_flow_context = context

    def _control_dependencies_for_inputs(self, input_ops):
        found = []
        input_ops = set(input_ops)
        for controller in self._control_dependencies_stack:
            if any(controller.op_in_group(op) for op in input_ops):
                continue
            found.extend(c for c in controller.control_inputs if c not in input_ops)
        return found

    def _record_op_seen_by_control_dependencies(self, op):
        for controller in self._control_dependencies_stack:
            controller.add_op(op)

    def _finish_op(self, op, ref_inputs=()):
        """Gives a new operation what its surroundings say. Rust calls it while there are any."""
        context = self._control_flow_context_value
        op._control_flow_context_value = context
        if self._default_original_op is not None:
            op._original_op = self._default_original_op
        if context is not None:
            # What the context adds for the inputs is named after the operation.
            with self.name_scope(op.name + "/" if op._inputs else self._name_stack + "/"):
                context.AddOp(op)
        for key, value in self._attr_scope_map.items():
            if not op._has_attr(key):
                if callable(value):
                    value = value(op.node_def)
                if value is not None:
                    op._set_attr_value(key, value)
        if self._op_to_kernel_label_map and op.type in self._op_to_kernel_label_map:
            op._set_attr_value("_kernel", self._op_to_kernel_label_map[op.type])
        if self._gradient_override_map and op.type in self._gradient_override_map:
            op._set_attr_value("_gradient_op_type", self._gradient_override_map[op.type])
        self._record_op_seen_by_control_dependencies(op)
        colocate = list(self._colocation_stack[::-1])
        for ref_op in ref_inputs:
            if ref_op not in colocate:
                colocate.insert(0, ref_op)
        if not ref_inputs:
            self._apply_device_functions(op)
        if colocate:
            groups, device = [], None
            for other in colocate:
                groups.extend(other.colocation_groups())
                if other.device and device is None:
                    device = other.device
            op._set_attr_value("_class", sorted(set(groups)))
            if device is not None:
                op._set_device_from_string(device)
        if self._container and op._is_stateful and op._has_attr("container"):
            if not op._attr("container"):
                op._set_attr_value("container", self._container)

    def _apply_device_functions(self, op):
        """Applies the `device` blocks, innermost first."""
        for entry in reversed(self._device_entries):
            if entry is _NO_DEVICE:
                break
            if entry.function is not None:
                op._set_device(entry.function(op))
            elif not entry.is_null_merge:
                merged = entry.spec.make_merged_spec(pydev.as_spec(op.device))
                op._set_device_from_string(merged.to_string())

    # Scopes.

    @contextlib.contextmanager
    def name_scope(self, name):
        if name:
            if isinstance(name, bytes):
                name = name.decode("utf-8")
            if not isinstance(name, str):
                raise TypeError(f"name for name_scope must be a string, got {name!r}")
            if self._name_stack:
                if not _VALID_SCOPE_NAME.match(name):
                    raise ValueError(f"'{name}' is not a valid scope name. A scope name has to match the following pattern: {_VALID_SCOPE_NAME.pattern}")
            elif not _VALID_OP_NAME.match(name):
                raise ValueError(f"'{name}' is not a valid root scope name. A root scope name has to match the following pattern: {_VALID_OP_NAME.pattern}")
        old = self._name_stack
        if not name:
            new = ""
        elif name[-1] == "/":
            new = name[:-1]
        else:
            new = self.unique_name(name)
        self._name_stack = new
        try:
            yield new + "/" if new else ""
        finally:
            self._name_stack = old

    def get_name_scope(self):
        return self._name_stack

    @contextlib.contextmanager
    def device(self, device_name_or_function):
        entry = _NO_DEVICE if device_name_or_function is None else _DeviceEntry(device_name_or_function)
        old = self._device_entries
        self._device_entries = old + [entry]
        self._surroundings_changed()
        try:
            yield
        finally:
            self._device_entries = old
            self._surroundings_changed()

    @contextlib.contextmanager
    def colocate_with(self, op, ignore_existing=False):
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        op = _op_to_colocate_with(op, self)
        old_devices, old_stack = self._device_entries, self._colocation_stack
        if not old_stack:
            self._devices_outside_colocation = old_devices
        # Colocation is stronger than device functions.
        self._device_entries = []
        stack = [] if ignore_existing else list(old_stack)
        if op is not None:
            stack.append(op)
        self._colocation_stack = stack
        self._surroundings_changed()
        try:
            yield
        finally:
            self._device_entries, self._colocation_stack = old_devices, old_stack
            if not old_stack:
                self._devices_outside_colocation = []
            self._surroundings_changed()

    def control_dependencies(self, control_inputs):
        if control_inputs is None:
            return _ControlDependencies(self, None)
        found = []
        for item in control_inputs:
            if (hasattr(item, "_handle") or hasattr(item, "dense_shape")) and hasattr(item, "op"):
                item = item.op
            elif isinstance(item, (list, tuple)):
                raise TypeError(f"Control input must be an operation or a tensor, not {item!r}")
            item = self.as_graph_element(item)
            if isinstance(item, Tensor):
                item = item.op
            elif not isinstance(item, Operation):
                raise TypeError(f"Control input must be Operation or Tensor: {item!r}")
            if item not in found:
                found.append(item)
                # An operation that a session has run must not change.
                if not item._has_attr("_has_manual_control_dependencies"):
                    item._set_attr_value("_has_manual_control_dependencies", True)
        return _ControlDependencies(self, found)

    @contextlib.contextmanager
    def _attr_scope(self, attr_map):
        old = self._attr_scope_map
        self._attr_scope_map = {k: v for k, v in {**old, **attr_map}.items() if v is not None}
        self._surroundings_changed()
        try:
            yield
        finally:
            self._attr_scope_map = old
            self._surroundings_changed()

    @contextlib.contextmanager
    def _kernel_label_map(self, op_to_kernel_label_map):
        old = self._op_to_kernel_label_map
        self._op_to_kernel_label_map = {**old, **op_to_kernel_label_map}
        self._surroundings_changed()
        try:
            yield
        finally:
            self._op_to_kernel_label_map = old
            self._surroundings_changed()

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map):
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        old = self._gradient_override_map
        self._gradient_override_map = {**old, **op_type_map}
        self._surroundings_changed()
        try:
            yield
        finally:
            self._gradient_override_map = old
            self._surroundings_changed()

    @contextlib.contextmanager
    def _original_op(self, op):
        old = self._default_original_op
        self._default_original_op = op
        self._surroundings_changed()
        try:
            yield
        finally:
            self._default_original_op = old
            self._surroundings_changed()

    @contextlib.contextmanager
    def container(self, container_name):
        old = self._container
        self._container = container_name
        self._surroundings_changed()
        try:
            yield container_name
        finally:
            self._container = old
            self._surroundings_changed()

    # Operations.

    def create_op(
        self,
        op_type,
        inputs,
        dtypes=None,  # pylint: disable=redefined-outer-name
        input_types=None,
        name=None,
        attrs=None,
        op_def=None,
        compute_shapes=True,
        compute_device=True,
    ):
        """Makes an operation. `dtypes`, `input_types` and `op_def` follow from the op."""
        for i, item in enumerate(inputs):
            if not isinstance(item, Tensor):
                raise TypeError(f"Input #{i} is not a tensor: {item!r}")
        if name is not None and not name.endswith("/"):
            _check_op_name(name)
        return self._create_op(op_type, inputs, attrs, name)

    _create_op_internal = create_op

    @property
    def version(self):
        return self._size

    @property
    def _last_id(self):
        return self._size

    @property
    def seed(self):
        return self._seed

    @seed.setter
    def seed(self, seed):
        self._seed = seed

    @property
    def building_function(self):
        return self._building_function

    @property
    def graph_def_versions(self):
        producer, min_consumer = self._versions
        return message_class("tensorflow.VersionDef")(producer=producer, min_consumer=min_consumer)

    def finalize(self):
        self._finalized = True

    def _unsafe_unfinalize(self):
        self._finalized = False

    def _check_not_finalized(self):
        if self.finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def as_default(self):
        return _default_graph_stack.get_controller(self)

    def as_graph_def(self, from_version=None, add_shapes=False):
        return self._as_graph_def(from_version, add_shapes)[0]

    def _as_graph_def(self, from_version=None, add_shapes=False):
        data = self._graph_def(from_version or 0, add_shapes)
        return message_class("tensorflow.GraphDef")._trusted(data), self._size

    def get_operation_by_name(self, name):
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name):
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name)}.")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def _get_operation_by_name(self, name):
        return self._operation(name)

    def _get_operation_by_name_unsafe(self, name):
        return self._operation(name)

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        types = "Tensor or Operation" if allow_tensor and allow_operation else "Tensor" if allow_tensor else "Operation"
        if not isinstance(obj, (Tensor, Operation, str, bytes)):
            convert = getattr(obj, "_as_graph_element", None)
            converted = convert() if convert is not None else None
            if converted is not None:
                obj = converted
        if isinstance(obj, bytes):
            obj = obj.decode("utf-8")
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation, types)
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                kind = "Tensor" if isinstance(obj, Tensor) else "Operation"
                raise ValueError(f"{kind} {obj} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {types}.")

    def _element_by_name(self, name, allow_tensor, allow_operation, types):
        if ":" in name and allow_tensor:
            try:
                op_name, index = name.split(":")
                index = int(index)
            except ValueError:
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names must be of "
                    'the form "<op_name>:<output_index>".'
                ) from None
            try:
                op = self._operation(op_name)
            except KeyError:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, does "
                    "not exist in the graph."
                ) from None
            if not 0 <= index < op._num_outputs:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, exists "
                    f"but only has {op._num_outputs} outputs."
                )
            return op._output(index)
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a {types}.")
        if allow_operation:
            try:
                return self._operation(name)
            except KeyError:
                raise KeyError(f"The name {name!r} refers to an Operation not in the graph.") from None
        try:
            self._operation(name)
        except KeyError:
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a {types}. Tensor names must be of "
                'the form "<op_name>:<output_index>".'
            ) from None
        raise ValueError(
            f"The name {name!r} refers to an Operation, not a {types}. Tensor names must be of the form "
            '"<op_name>:<output_index>".'
        )

    def _get_op_def(self, op_type):
        data = _ferroflow.op_def(op_type)
        return message_class("tensorflow.OpDef").FromString(data)

    # Feeding and fetching.

    def prevent_feeding(self, tensor):
        self._unfeedable_tensors.add(tensor)

    def is_feedable(self, tensor):
        return tensor not in self._unfeedable_tensors

    def prevent_fetching(self, op):
        self._unfetchable_ops.add(op)
        self._checks_fetches = True

    def is_fetchable(self, tensor_or_op):
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable_ops

    # Collections.

    def add_to_collection(self, name, value):
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names, value):
        names = (names,) if isinstance(names, (str, bytes)) else list(dict.fromkeys(names))
        for name in names:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name):
        return self._collections.setdefault(name, [])

    def get_collection(self, name, scope=None):
        found = self._collections.get(name)
        if found is None:
            return []
        if scope is None:
            return list(found)
        pattern = re.compile(scope)
        return [item for item in found if hasattr(item, "name") and pattern.match(item.name)]

    def get_all_collection_keys(self):
        return [key for key in self._collections if isinstance(key, str)]

    @property
    def collections(self):
        return self.get_all_collection_keys()

    def clear_collection(self, name):
        self._check_not_finalized()
        self._collections.pop(name, None)

    # Functions.

    def _add_function(self, function):
        """Adds a defined function: an object with `definition`, or a `FunctionDef`."""
        definition = getattr(function, "definition", function)
        self._add_function_def(definition.SerializeToString(), getattr(function, "grad_func_name", None))

    def _is_function(self, name):
        return self._has_function(name)

    def _get_function(self, name):
        return self._python_functions.get(name)

    @property
    def _functions(self):
        return self._python_functions

    def _repr_html_(self):
        return None

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__name__} object at 0x{id(self):x}>"

    def switch_to_thread_local(self):
        """Scopes of a graph belong to the thread that builds it; there is nothing to switch."""

    def _variable_creator_scope(self, creator, priority=100):
        return _variable_creator_scope(self, creator, priority)

    def __deepcopy__(self, memo):
        raise TypeError("a Graph cannot be copied; import its GraphDef into another one")


_NO_DEVICE = _DeviceEntry("")


@contextlib.contextmanager
def _variable_creator_scope(graph, creator, priority):
    old = graph._variable_creator_scopes
    graph._variable_creator_scopes = sorted(old + [(priority, creator)], key=lambda item: item[0])
    try:
        yield
    finally:
        graph._variable_creator_scopes = old


def _check_op_name(name):
    last = name.rsplit("/", 1)[-1] if "/" in name else name
    del last
    if not _VALID_OP_NAME.match(name):
        raise ValueError(f"'{name}' is not a valid node name. Accepted names conform to Regex /{_VALID_OP_NAME.pattern}/")


def _op_to_colocate_with(value, graph):
    if value is None:
        return None
    if isinstance(value, Operation):
        return value
    if isinstance(value, Tensor):
        return value.op
    # A variable: its handle or reference decides.
    handle = getattr(value, "handle", None)
    if handle is not None and hasattr(handle, "op"):
        return handle.op
    if hasattr(value, "_ref"):
        return value._ref().op
    return convert_to_tensor(value, as_ref=True).op


# The default graph.


class _DefaultStack(threading.local):
    """A stack for each thread."""

    def __init__(self):
        super().__init__()
        self.stack = []

    def get_default(self):
        return self.stack[-1] if self.stack else None

    def reset(self):
        self.stack = []

    def is_cleared(self):
        return not self.stack

    @contextlib.contextmanager
    def get_controller(self, default):
        self.stack.append(default)
        try:
            yield default
        finally:
            if self.stack and self.stack[-1] is default:
                self.stack.pop()
            elif default in self.stack:
                raise AssertionError(f"Nesting violated for default stack of {type(default)} objects")


class _DefaultGraphStack(_DefaultStack):
    def get_default(self):
        if self.stack:
            return self.stack[-1]
        return _global_default_graph()

    @contextlib.contextmanager
    def get_controller(self, default):
        with super().get_controller(default) as graph:
            yield graph


class _Global:
    graph = None
    lock = threading.Lock()


def _global_default_graph():
    if _Global.graph is None:
        with _Global.lock:
            if _Global.graph is None:
                _Global.graph = Graph()
    return _Global.graph


_default_graph_stack = _DefaultGraphStack()
_default_session_stack = _DefaultStack()


def get_default_graph():
    stack = _default_graph_stack.stack
    return stack[-1] if stack else _global_default_graph()


def has_default_graph():
    return bool(_default_graph_stack.stack)


def reset_default_graph():
    if _default_graph_stack.stack:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the nesting "
            "and create a new graph."
        )
    _Global.graph = Graph()


def default_session(session):
    return _default_session_stack.get_controller(session)


def get_default_session():
    return _default_session_stack.get_default()


def get_name_scope():
    return get_default_graph().get_name_scope()


def device(device_name_or_function):
    return get_default_graph().device(device_name_or_function)


def container(container_name):
    return get_default_graph().container(container_name)


def colocate_with(op, ignore_existing=False):
    return get_default_graph().colocate_with(op, ignore_existing)


@contextlib.contextmanager
def _colocate_with_for_gradient(op, gradient_uid, ignore_existing=False):
    del gradient_uid
    with colocate_with(op, ignore_existing):
        yield


def control_dependencies(control_inputs):
    return get_default_graph().control_dependencies(control_inputs)


@contextlib.contextmanager
def init_scope():
    """Leaves control dependencies and control flow, for operations that must run on their own."""
    graph = get_default_graph()
    outer = graph
    while getattr(outer, "building_function", False) and getattr(outer, "outer_graph", None) is not None:
        outer = outer.outer_graph
    scope = graph.get_name_scope()
    if scope and not scope.endswith("/"):
        scope += "/"
    # If the graph was entered, TensorFlow calls the device functions outside of `colocate_with`.
    # The colocation determines the device, but the functions count their calls.
    devices = outer._device_entries
    if not devices and outer in _default_graph_stack.stack:
        devices = outer._devices_outside_colocation
    with outer.as_default(), outer.control_dependencies(None), outer.name_scope(scope if outer is graph or scope else ""):
        if devices is outer._device_entries:
            yield
            return
        before = outer._device_entries
        outer._device_entries = devices
        outer._surroundings_changed()
        try:
            yield
        finally:
            outer._device_entries = before
            outer._surroundings_changed()


def executing_eagerly():
    return False


def executing_eagerly_outside_functions():
    return False


def inside_function():
    return get_default_graph().building_function


def add_to_collection(name, value):
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    get_default_graph().add_to_collections(names, value)


def get_collection(key, scope=None):
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key):
    return get_default_graph().get_collection_ref(key)


def get_all_collection_keys():
    return get_default_graph().get_all_collection_keys()


class name_scope:  # pylint: disable=invalid-name
    """A name scope: `with tf.name_scope("dense", values=[x]) as scope`."""

    def __init__(self, name, default_name=None, values=None, skip_on_eager=True):
        if not isinstance(name, (str, bytes, type(None))):
            raise TypeError(f"`name` type ({type(name)}) is not a string type.")
        self._name = default_name if name is None else name
        self._default_name, self._values = default_name, values
        self._scope = None
        self._graph_scope = None
        self._had_name = name is not None or default_name is not None or values is None

    @property
    def name(self):
        return self._name

    def __enter__(self):
        if not self._had_name:
            raise ValueError(f"At least one of name (None) and default_name ({self._default_name}) should be provided.")
        graph = get_default_graph()
        if self._values:
            graph = _get_graph_from_inputs(self._values)
        self._graph_scope = graph.as_default() if graph is not get_default_graph() else None
        if self._graph_scope is not None:
            self._graph_scope.__enter__()
        self._scope = graph.name_scope(self._name)
        return self._scope.__enter__()

    def __exit__(self, *error):
        self._scope.__exit__(*error)
        if self._graph_scope is not None:
            self._graph_scope.__exit__(*error)
        return False


class name_scope_v2(name_scope):  # pylint: disable=invalid-name
    def __init__(self, name):
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        super().__init__(name)


internal_name_scope_v1 = name_scope


def op_scope(values, name, default_name=None):
    return name_scope(name, default_name, values)


def strip_name_scope(name, export_scope):
    if export_scope:
        scope = export_scope if export_scope.endswith("/") else export_scope + "/"
        # Control inputs and colocation groups keep their mark.
        return re.sub(rf"([\^]|loc:@|^){re.escape(scope)}(.*)", r"\1\2", name, count=1)
    return name


def prepend_name_scope(name, import_scope):
    if import_scope:
        scope = import_scope if import_scope.endswith("/") else import_scope + "/"
        return re.sub(r"([\^]|loc:@|^)(.*)", r"\1" + scope.replace("\\", "\\\\") + r"\2", name, count=1)
    return name


def _get_graph_from_inputs(op_input_list, graph=None):
    """The graph of the inputs, which must be the same for all."""
    if getattr(get_default_graph(), "building_function", False) and graph is None:
        return get_default_graph()
    found, first = graph, None
    for item in op_input_list or ():
        item_graph = None
        if isinstance(item, (Tensor, Operation)):
            item_graph = item.graph
        elif hasattr(item, "_as_graph_element"):
            element = item._as_graph_element()
            item_graph = getattr(element, "graph", None)
        elif hasattr(item, "graph") and isinstance(getattr(item, "graph"), Graph):
            item_graph = item.graph
        if item_graph is None:
            continue
        if found is None:
            found, first = item_graph, item
        elif found is not item_graph:
            if first is not None:
                raise ValueError(f"{item} must be from the same graph as {first}.")
            raise ValueError(f"{item} is not from the passed-in graph.")
    return found or get_default_graph()


# Conversion to tensors.

_conversion_registry = []
_conversion_cache = {}
_default_conversions = {}


def register_tensor_conversion_function(base_type, conversion_func, priority=100):
    """Registers `conversion_func(value, dtype, name, as_ref)` for values of a type."""
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _conversion_registry.append((priority, len(_conversion_registry), base_type, conversion_func))
    _conversion_registry.sort(key=lambda entry: entry[:2])
    _conversion_cache.clear()


def _conversions_of(kind):
    found = _conversion_cache.get(kind)
    if found is None:
        found = [entry[3] for entry in _conversion_registry if issubclass(kind, entry[2])]
        _conversion_cache[kind] = found
    return found


def convert_to_tensor(
    value, dtype=None, name=None, as_ref=False, preferred_dtype=None, dtype_hint=None, ctx=None, accepted_result_types=(Tensor,)
):
    """A tensor of a value: a tensor, a variable, a number, an array, a list of these."""
    preferred_dtype = preferred_dtype if preferred_dtype is not None else dtype_hint
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if type(value) is Tensor:
        if dtype is not None and not dtype.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {value.dtype.name}: {value!r}"
            )
        return value
    if preferred_dtype is not None:
        preferred_dtype = dtypes.as_dtype(preferred_dtype)
    error = None
    for convert in _conversions_of(type(value)):
        result = None
        if dtype is None and preferred_dtype is not None:
            try:
                result = convert(value, dtype=preferred_dtype, name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                result = None
            if result is not None and result is not NotImplemented:
                if result.dtype.base_dtype != preferred_dtype.base_dtype:
                    raise TypeError(
                        f"convert_to_tensor did not convert to the preferred dtype: {result.dtype.base_dtype} vs "
                        f"{preferred_dtype.base_dtype}"
                    )
        if result is None:
            result = convert(value, dtype=dtype, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, accepted_result_types):
            raise RuntimeError(f"Conversion function {convert!r} for type {type(value)} returned non-Tensor: {result!r}")
        if dtype and not dtype.is_compatible_with(result.dtype):
            raise RuntimeError(
                f"Conversion function {convert!r} for type {type(value)} returned incompatible dtype: requested = "
                f"{dtype.base_dtype.name}, actual = {result.dtype.name}"
            )
        return result
    del error
    raise TypeError(f"Cannot convert {value!r} with type {type(value)} to Tensor: no conversion function registered.")


internal_convert_to_tensor = convert_to_tensor


def convert_to_tensor_v2(value, dtype=None, dtype_hint=None, name=None):
    return convert_to_tensor(value, dtype=dtype, name=name, preferred_dtype=dtype_hint)


def convert_n_to_tensor(values, dtype=None, name=None, as_ref=False, preferred_dtype=None):
    if not isinstance(values, (list, tuple)):
        raise TypeError("values must be a sequence.")
    return [
        convert_to_tensor(v, dtype=dtype, name=None if name is None else f"{name}_{i}", as_ref=as_ref, preferred_dtype=preferred_dtype)
        for i, v in enumerate(values)
    ]


internal_convert_n_to_tensor = convert_n_to_tensor


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    from ferroflow.python.framework import indexed_slices

    return indexed_slices.convert_to_tensor_or_indexed_slices(value, dtype, name)


def _convert_for_rust(value, dtype, name, as_ref, preferred_dtype, graph):
    """Called by `Graph.apply_op` for an argument that is no tensor."""
    if graph is not get_default_graph():
        with graph.as_default():
            return _convert_argument(value, dtype, name, as_ref, preferred_dtype)
    return _convert_argument(value, dtype, name, as_ref, preferred_dtype)


def _convert_argument(value, dtype, name, as_ref, preferred_dtype):
    """What a value is by itself comes before the default of the attribute that it decides."""
    if dtype is None and preferred_dtype is not None:
        preferred = dtypes.as_dtype(preferred_dtype)
        try:
            plain = convert_to_tensor(value, None, name, as_ref)
        except TypeError:
            plain = None
        if plain is not None:
            kind = plain.dtype.base_dtype
            if kind == preferred or kind.is_integer and (preferred.is_integer or preferred.is_floating):
                return plain
            if kind.is_floating and preferred.is_floating:
                return plain
    return convert_to_tensor(value, dtype, name, as_ref, preferred_dtype)


def _object_array(values, shape):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def is_dense_tensor_like(t):
    return isinstance(t, Tensor) or hasattr(t, "_should_act_as_resource_variable")


def register_dense_tensor_like_type(tensor_type):
    del tensor_type


# Operations from values.


def apply_op(op_type, name, inputs, attrs=None):
    """Makes an operation in the graph of its inputs; `inputs` has an entry for each argument."""
    stack = _default_graph_stack.stack
    graph = stack[-1] if stack else _global_default_graph()
    for item in inputs:
        if type(item) is Tensor:
            if item.graph is not graph:
                graph = _get_graph_from_inputs(_flat(inputs))
            break
    return graph.apply_op(op_type, name, inputs, attrs)


def _flat(inputs):
    for item in inputs:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


# Gradients of ops, by op type. `gradient_registry.get` loads the modules that register them.


class _Registry:
    def __init__(self, name):
        self._name, self._items = name, {}

    def register(self, candidate, name=None):
        if not name:
            name = candidate.__name__
        if name in self._items:
            raise KeyError(f"Registering two {self._name} with name '{name}'!")
        self._items[name] = candidate

    def list(self):
        return list(self._items)

    def lookup(self, name):
        if name not in self._items:
            _load_gradients()
        if name not in self._items:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._items[name]


gradient_registry = _Registry("gradient")
_gradient_registry = gradient_registry
_gradients_loaded = False


def _load_gradients():
    """Imports the modules with gradients of the ops: `python/ops/*_grad.py`."""
    global _gradients_loaded
    if _gradients_loaded:
        return
    _gradients_loaded = True
    import importlib
    import pkgutil

    from ferroflow.python import ops as folder

    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.endswith("_grad"):
            importlib.import_module(f"ferroflow.python.ops.{module.name}")


class RegisterGradient:
    """`@tf.RegisterGradient("OpType")` declares `grad(op, *grads)`."""

    def __init__(self, op_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f):
        gradient_registry.register(f, self._op_type)
        return f


def no_gradient(op_type):
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    gradient_registry.register(None, op_type)


NotDifferentiable = no_gradient
NoGradient = no_gradient


def get_gradient_function(op):
    if not op._inputs:
        return None
    override = op._attr("_gradient_op_type") if op._has_attr("_gradient_op_type") else None
    op_type = override.decode("utf-8") if override is not None else op.type
    return gradient_registry.lookup(op_type)


class RegisterStatistics:
    """Accepted for programs that register statistics of their ops; nothing reads them."""

    def __init__(self, op_type, statistic_type):
        self._key = (op_type, statistic_type)

    def __call__(self, f):
        _statistics[self._key] = f
        return f


_statistics = {}


class OpStats:
    def __init__(self, statistic_type, value=None):
        self.statistic_type, self.value = statistic_type, value

    def __iadd__(self, other):
        if other.statistic_type != self.statistic_type:
            raise ValueError("Can't add an OpStat of a different type")
        if self.value is None:
            self.value = other.value
        elif other.value is not None:
            self.value += other.value
        return self


def get_stats_for_node_def(graph, node, statistic_type):
    make = _statistics.get((node.op, statistic_type))
    return make(graph, node) if make else OpStats(statistic_type)


# Collections as protos.

_proto_functions = {}


def register_proto_function(collection_name, proto_type=None, to_proto=None, from_proto=None):
    if to_proto and not callable(to_proto):
        raise TypeError("to_proto must be callable.")
    if from_proto and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    _proto_functions[collection_name] = (proto_type, to_proto, from_proto)


def get_collection_proto_type(collection_name):
    return _proto_functions.get(collection_name, (None, None, None))[0]


def get_to_proto_function(collection_name):
    return _proto_functions.get(collection_name, (None, None, None))[1]


def get_from_proto_function(collection_name):
    return _proto_functions.get(collection_name, (None, None, None))[2]


_uid = [0]
_uid_lock = threading.Lock()


def uid():
    with _uid_lock:
        _uid[0] += 1
        return _uid[0]


def _run_using_default_session(operation, feed_dict, graph, session=None):
    session = _session_for(session, graph, "execute operation using `run()`")
    session.run(operation, feed_dict)


def _eval_using_default_session(tensors, feed_dict, graph, session=None):
    session = _session_for(session, graph, "evaluate tensor using `eval()`")
    return session.run(tensors, feed_dict)


def _session_for(session, graph, what):
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or "
                "pass an explicit session to `eval(session=sess)` or `run(session=sess)`"
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {what}: the tensor's graph is different from the session's graph. "
                "Pass an explicit session."
            )
    elif session.graph is not graph:
        raise ValueError(f"Cannot use the given session to {what}: the tensor's graph is different from the session's graph.")
    return session


def dismantle_graph(graph):
    graph._collections.clear()


def _call_py_func(token, arrays, numbers):
    """Called by the nodes of `tf.py_func`."""
    from ferroflow.python.ops import script_ops

    return script_ops.call(token, arrays, [dtypes.as_dtype(number) for number in numbers])


def _package_folder():
    import os

    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


_ferroflow.install(
    convert=_convert_for_rust,
    as_dtype=dtypes.as_dtype,
    as_shape=tensor_shape.as_shape,
    object_array=_object_array,
    py_func=_call_py_func,
    package=_package_folder(),
    dtypes=dict(dtypes._BY_NUMBER),
    arrays=dtypes.array_types(),
)

from ferroflow.python.framework import operation_methods, tensor_methods  # noqa: E402,F401  pylint: disable=wrong-import-position
from ferroflow.python.framework import constant_op  # noqa: E402,F401  pylint: disable=wrong-import-position
