"""MetaGraphDefs: graphs with their collections and Saver, to and from files."""

import importlib
import os
import re

from ferroflow.core import _text as text_format
from ferroflow.core.framework import graph_pb2, op_def_pb2
from ferroflow.core.protobuf import meta_graph_pb2
from ferroflow.python.framework import importer, ops, versions
from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.util import compat

MetaGraphDef = meta_graph_pb2.MetaGraphDef

# Modules that say how the members of collections are written.
_PROTO_MODULES = (
    "ferroflow.python.ops.collection_protos",
    "ferroflow.python.training.queue_runner_impl",
    "ferroflow.python.training.saver",
)
_UNBOUND_INPUT_PREFIX = "$unbound_inputs_"


def _load_proto_functions():
    for module in _PROTO_MODULES:
        importlib.import_module(module)


def _scope(export_scope):
    return export_scope if export_scope.endswith("/") else export_scope + "/"


def _should_include_node(name, export_scope, exclude_nodes):
    if exclude_nodes and name in exclude_nodes:
        return False
    return not export_scope or name.startswith(_scope(export_scope))


def add_collection_def(meta_graph_def, key, graph=None, export_scope=None, exclude_nodes=None, override_contents=False):
    """Writes one collection. A member that cannot be written is reported in the log."""
    if graph and not isinstance(graph, ops.Graph):
        raise TypeError("graph must be of type Graph. Received type: %s" % type(graph))
    if not isinstance(key, str) and not isinstance(key, bytes):
        logging.warning("Only collections with string type keys will be serialized. This key has %s", type(key))
        return
    graph = graph or ops.get_default_graph()
    members = override_contents if override_contents else graph.get_collection(key)
    if not members:
        return
    try:
        collection = meta_graph_def.collection_def[key]
        to_proto = ops.get_to_proto_function(key)
        if to_proto:
            for member in members:
                proto = to_proto(member, export_scope=export_scope)
                if proto:
                    collection.bytes_list.value.append(proto.SerializeToString())
            return
        kind = _kind(members[0])
        if kind == "node_list":
            for member in members:
                if not export_scope or member.name.startswith(export_scope):
                    getattr(collection, kind).value.append(ops.strip_name_scope(member.name, export_scope))
        elif kind == "bytes_list":
            collection.bytes_list.value.extend([compat.as_bytes(x) for x in members])
        else:
            getattr(collection, kind).value.extend(list(members))
    except Exception as e:  # pylint: disable=broad-except
        logging.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of the items don't match field "
            "type in CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
            key, str(e),
        )
        if key in meta_graph_def.collection_def:
            del meta_graph_def.collection_def[key]


def _kind(item):
    if isinstance(item, (bytes, str)):
        return "bytes_list"
    if isinstance(item, int):
        return "int64_list"
    if isinstance(item, float):
        return "float_list"
    return "node_list"


def stripped_op_list_for_graph(graph_def):
    """The definitions of the ops that a graph uses, without their texts."""
    own = {f.signature.name for f in graph_def.library.function}
    used = {node.op for node in graph_def.node}
    for function in graph_def.library.function:
        used.update(node.op for node in function.node_def)
    found = op_def_pb2.OpList()
    graph = ops.Graph()
    for name in sorted(used - own):
        try:
            definition = graph._get_op_def(name)
        except Exception:  # pylint: disable=broad-except
            raise ValueError("Op {} is used by the graph, but is not registered".format(name)) from None
        op = found.op.add()
        op.CopyFrom(definition)
        _strip_descriptions(op)
    return found


def _strip_descriptions(op):
    op.ClearField("summary")
    op.ClearField("description")
    for arg in list(op.input_arg) + list(op.output_arg):
        arg.ClearField("description")
    for attr in op.attr:
        attr.ClearField("description")


def strip_graph_default_valued_attrs(meta_graph_def):
    """Removes the attributes that have the op's default."""
    own = {f.signature.name for f in meta_graph_def.graph_def.library.function}
    graph, known = ops.Graph(), {}

    def strip(node):
        if node.op in own:
            return
        if node.op not in known:
            definition = graph._get_op_def(node.op)
            known[node.op] = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")}
        for name in list(node.attr):
            default = known[node.op].get(name)
            if default is not None and node.attr[name] == default:
                del node.attr[name]

    for node in meta_graph_def.graph_def.node:
        strip(node)
    for function in meta_graph_def.graph_def.library.function:
        for node in function.node_def:
            strip(node)
    meta_graph_def.meta_info_def.stripped_default_attrs = True


def create_meta_graph_def(
    meta_info_def=None,
    graph_def=None,
    saver_def=None,
    collection_list=None,
    graph=None,
    export_scope=None,
    exclude_nodes=None,
    clear_extraneous_savers=False,
    strip_default_attrs=False,
):
    """A MetaGraphDef from its parts; missing parts come from the graph."""
    if graph and not isinstance(graph, ops.Graph):
        raise TypeError("graph must be of type Graph. Received type: %s" % type(graph))
    _load_proto_functions()
    graph = graph or ops.get_default_graph()
    meta_graph_def = meta_graph_pb2.MetaGraphDef()
    if meta_info_def:
        meta_graph_def.meta_info_def.MergeFrom(meta_info_def)
    meta_graph_def.meta_info_def.tensorflow_version = versions.__version__
    meta_graph_def.meta_info_def.tensorflow_git_version = versions.GIT_VERSION
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
    meta_graph_def.graph_def.MergeFrom(graph_def)
    if len(meta_graph_def.meta_info_def.stripped_op_list.op) == 0:
        meta_graph_def.meta_info_def.stripped_op_list.MergeFrom(stripped_op_list_for_graph(meta_graph_def.graph_def))
    if strip_default_attrs:
        strip_graph_default_valued_attrs(meta_graph_def)
    if saver_def:
        meta_graph_def.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        if key == ops.GraphKeys.SAVERS and clear_extraneous_savers:
            _add_only_saver(meta_graph_def, graph, saver_def, export_scope)
            continue
        add_collection_def(meta_graph_def, key, graph=graph, export_scope=export_scope, exclude_nodes=exclude_nodes)
    return meta_graph_def


def _add_only_saver(meta_graph_def, graph, saver_def, export_scope):
    kept = [s for s in graph.get_collection(ops.GraphKeys.SAVERS) if saver_def is not None and s.saver_def == saver_def]
    add_collection_def(meta_graph_def, ops.GraphKeys.SAVERS, graph=graph, export_scope=export_scope, override_contents=kept)


def read_meta_graph_file(filename):
    """The MetaGraphDef of a binary or text file."""
    filename = os.fspath(filename)
    if not file_io.file_exists(filename):
        raise IOError(f"File does not exist. Received: {filename}.")
    data = file_io.read_file_to_string(filename, binary_mode=True)
    meta_graph_def = meta_graph_pb2.MetaGraphDef()
    try:
        meta_graph_def.ParseFromString(data)
        if len(meta_graph_def.graph_def.node) or not data:
            return meta_graph_def
    except Exception:  # pylint: disable=broad-except
        pass
    try:
        meta_graph_def = meta_graph_pb2.MetaGraphDef()
        text_format.Merge(data.decode("utf-8"), meta_graph_def)
    except Exception as e:
        raise IOError(f"Cannot parse file {filename}: {e}.") from None
    return meta_graph_def


def import_scoped_meta_graph(
    meta_graph_or_file,
    clear_devices=False,
    graph=None,
    import_scope=None,
    input_map=None,
    unbound_inputs_col_name="unbound_inputs",
    restore_collections_predicate=(lambda key: True),
):
    """Adds a meta graph to a graph; returns its variables by name."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, graph, import_scope, input_map, unbound_inputs_col_name, restore_collections_predicate
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file,
    clear_devices=False,
    graph=None,
    import_scope=None,
    input_map=None,
    unbound_inputs_col_name="unbound_inputs",
    restore_collections_predicate=(lambda key: True),
    return_elements=None,
):
    _load_proto_functions()
    meta_graph_def = meta_graph_or_file
    if not isinstance(meta_graph_or_file, meta_graph_pb2.MetaGraphDef):
        meta_graph_def = read_meta_graph_file(meta_graph_or_file)
    if unbound_inputs_col_name:
        _check_unbound_inputs(meta_graph_def, unbound_inputs_col_name, input_map)
    graph = graph or ops.get_default_graph()
    with graph.as_default():
        input_graph_def = meta_graph_def.graph_def
        if clear_devices:
            copied = graph_pb2.GraphDef()
            copied.CopyFrom(input_graph_def)
            for node in copied.node:
                node.device = ""
            input_graph_def = copied
        scope_to_prepend_to_names = graph.unique_name(import_scope or "", mark_as_used=False)
        imported_return_elements = importer.import_graph_def(
            input_graph_def,
            name=(import_scope or scope_to_prepend_to_names),
            input_map=input_map,
            producer_op_list=meta_graph_def.meta_info_def.stripped_op_list,
            return_elements=return_elements,
        )
        _restore_collections(meta_graph_def, graph, scope_to_prepend_to_names, restore_collections_predicate, unbound_inputs_col_name)
        found = {}
        for v in graph.get_collection(ops.GraphKeys.GLOBAL_VARIABLES, scope=scope_to_prepend_to_names):
            found[ops.strip_name_scope(v.name, scope_to_prepend_to_names)] = v
    return found, imported_return_elements


def _check_unbound_inputs(meta_graph_def, unbound_inputs_col_name, input_map):
    if unbound_inputs_col_name not in meta_graph_def.collection_def:
        return
    field = meta_graph_def.collection_def[unbound_inputs_col_name]
    if field.bytes_list.value and not input_map:
        names = [compat.as_str_any(x) for x in field.bytes_list.value]
        raise ValueError(f"Graph contains unbound inputs: {','.join(names)}. Must provide these inputs through input_map.")
    for value in field.bytes_list.value:
        if compat.as_str_any(value) not in (input_map or {}):
            raise ValueError(f"Graph contains unbound inputs: {compat.as_str_any(value)}. Must provide these inputs through input_map.")


def _restore_collections(meta_graph_def, graph, scope, predicate, unbound_inputs_col_name):
    # A variable in several collections is one object.
    known = {}
    for key, collection in sorted(meta_graph_def.collection_def.items()):
        if key == unbound_inputs_col_name or not predicate(key):
            continue
        kind = collection.WhichOneof("kind")
        if kind is None:
            logging.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        from_proto = ops.get_from_proto_function(key)
        if from_proto and kind == "bytes_list":
            proto_type = ops.get_collection_proto_type(key)
            shared = key in ops.GraphKeys._VARIABLE_COLLECTIONS or key == ops.GraphKeys.GLOBAL_STEP
            for value in collection.bytes_list.value:
                if shared and value in known:
                    graph.add_to_collection(key, known[value])
                    continue
                proto = proto_type()
                proto.ParseFromString(value)
                member = from_proto(proto, import_scope=scope)
                if shared:
                    known[value] = member
                graph.add_to_collection(key, member)
            continue
        field = getattr(collection, kind)
        if kind == "node_list":
            for value in field.value:
                name = ops.prepend_name_scope(value, scope)
                try:
                    element = graph.as_graph_element(name)
                except (KeyError, ValueError) as e:
                    logging.warning("Collection %s: %s", key, e)
                    continue
                graph.add_to_collection(key, element)
        elif kind == "int64_list":
            for value in field.value:
                graph.add_to_collection(key, int(value))
        else:
            for value in field.value:
                graph.add_to_collection(key, ops.prepend_name_scope(value, scope) if isinstance(value, str) else value)


def export_scoped_meta_graph(
    filename=None,
    graph_def=None,
    graph=None,
    export_scope=None,
    as_text=False,
    unbound_inputs_col_name="unbound_inputs",
    clear_devices=False,
    saver_def=None,
    clear_extraneous_savers=False,
    strip_default_attrs=False,
    save_debug_info=False,
    **kwargs,
):
    """A MetaGraphDef of a graph or of one scope of it, and its variables by name."""
    del save_debug_info
    graph = graph or ops.get_default_graph()
    exclude_nodes = None
    unbound_inputs = []
    if export_scope or clear_extraneous_savers or clear_devices:
        if graph_def is None:
            graph_def = graph.as_graph_def(add_shapes=True)
        if clear_extraneous_savers:
            exclude_nodes = _nodes_of_other_savers(graph, saver_def, export_scope)
        graph_def = _scoped_graph_def(graph_def, export_scope, exclude_nodes, clear_devices, unbound_inputs)
    if unbound_inputs_col_name and unbound_inputs:
        graph.clear_collection(unbound_inputs_col_name)
        for name in sorted(set(unbound_inputs)):
            graph.add_to_collection(unbound_inputs_col_name, name)
    variables = graph.get_collection(ops.GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
    var_list = {ops.strip_name_scope(v.name, export_scope): v for v in variables if _should_include_node(v.name, export_scope, exclude_nodes)}
    meta_graph_def = create_meta_graph_def(
        graph_def=graph_def,
        graph=graph,
        export_scope=export_scope,
        exclude_nodes=exclude_nodes,
        clear_extraneous_savers=clear_extraneous_savers,
        saver_def=saver_def,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )
    if filename:
        filename = os.fspath(filename)
        text = text_format.MessageToString(meta_graph_def) if as_text else meta_graph_def.SerializeToString()
        file_io.atomic_write_string_to_file(filename, text)
    return meta_graph_def, var_list


def _nodes_of_other_savers(graph, saver_def, export_scope):
    """The nodes of all Savers but the one that is exported."""
    scopes = {s.saver_def.filename_tensor_name.rsplit("/", 1)[0] + "/" for s in graph.get_collection(ops.GraphKeys.SAVERS)}
    if saver_def is not None:
        scopes.discard(saver_def.filename_tensor_name.rsplit("/", 1)[0] + "/")
    return {op.name for op in graph.get_operations() if any(op.name.startswith(s) for s in scopes)}


def _scoped_graph_def(graph_def, export_scope, exclude_nodes, clear_devices, unbound_inputs):
    found = graph_pb2.GraphDef()
    found.versions.CopyFrom(graph_def.versions)
    for node in graph_def.node:
        if not _should_include_node(node.name, export_scope, exclude_nodes):
            continue
        copied = found.node.add()
        copied.CopyFrom(node)
        copied.name = ops.strip_name_scope(node.name, export_scope)
        if export_scope:
            for i, value in enumerate(copied.input):
                bare = value.lstrip("^")
                if bare.startswith(_scope(export_scope)):
                    copied.input[i] = ops.strip_name_scope(value, export_scope)
                else:
                    unbound = _UNBOUND_INPUT_PREFIX + re.sub(r"([\^]|^)(.*)", r"\2", value)
                    copied.input[i] = ("^" if value.startswith("^") else "") + unbound
                    unbound_inputs.append(unbound)
        if clear_devices:
            copied.device = ""
        if "_class" in copied.attr and export_scope:
            groups = [compat.as_str(s) for s in copied.attr["_class"].list.s]
            kept = [compat.as_bytes(ops.strip_name_scope(s, export_scope)) for s in groups if s.split("@")[-1].startswith(export_scope)]
            del copied.attr["_class"]
            if kept:
                copied.attr["_class"].list.s.extend(kept)
    if graph_def.library.function:
        found.library.CopyFrom(graph_def.library)
    return found


def copy_scoped_meta_graph(from_scope, to_scope, from_graph=None, to_graph=None):
    """Copies one scope of a graph to another scope; returns the copied variables by name."""
    from_graph = from_graph or ops.get_default_graph()
    to_graph = to_graph or ops.get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError("'from_scope' and 'to_scope' need to be different when performing copy in the same graph.")
    exported, var_list = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    found = import_scoped_meta_graph(exported, graph=to_graph, import_scope=to_scope)
    return {name: found[name] for name in var_list if name in found}
