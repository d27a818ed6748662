"""Writes a graph whose variables are constants with a checkpoint's values.

    python -m ferroflow.python.tools.freeze_graph --input_graph=graph.pb --input_checkpoint=model.ckpt \\
        --output_graph=frozen.pb --output_node_names=softmax
"""

import argparse

from ferroflow.core import _text as text_format
from ferroflow.core.framework import graph_pb2, variable_pb2
from ferroflow.core.protobuf import meta_graph_pb2, saver_pb2
from ferroflow.python.client import session
from ferroflow.python.framework import graph_util, importer, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.ops import variables as variables_lib
from ferroflow.python.saved_model import loader_impl, tag_constants
from ferroflow.python.training import checkpoint_management, py_checkpoint_reader, saver as saver_lib


def _read(message, path, binary):
    if not file_io.file_exists(path):
        raise IOError(f"Input file '{path}' does not exist!")
    if binary:
        with file_io.FileIO(path, "rb") as f:
            message.ParseFromString(f.read())
    else:
        with file_io.FileIO(path, "r") as f:
            text_format.Merge(f.read(), message)
    return message


def freeze_graph_with_def_protos(input_graph_def, input_saver_def, input_checkpoint, output_node_names, restore_op_name,
                                 filename_tensor_name, output_graph, clear_devices, initializer_nodes,
                                 variable_names_whitelist="", variable_names_blacklist="", input_meta_graph_def=None,
                                 input_saved_model_dir=None, saved_model_tags=None, checkpoint_version=saver_pb2.SaverDef.V2):
    """The frozen graph, which is written to `output_graph` if that is not empty."""
    if not input_saved_model_dir and not checkpoint_management.checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' does not exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    if clear_devices:
        for node in (input_meta_graph_def.graph_def if input_meta_graph_def else input_graph_def).node:
            node.device = ""
    graph = ops.Graph()
    with graph.as_default():
        if input_graph_def:
            importer.import_graph_def(input_graph_def, name="")
        with session.Session() as sess:
            if input_saver_def:
                saver_lib.Saver(saver_def=input_saver_def, write_version=checkpoint_version).restore(sess, input_checkpoint)
            elif input_meta_graph_def:
                restorer = saver_lib.import_meta_graph(input_meta_graph_def, clear_devices=True)
                restorer.restore(sess, input_checkpoint)
                if initializer_nodes:
                    sess.run(initializer_nodes.replace(" ", "").split(","))
            elif input_saved_model_dir:
                loader_impl.load(sess, saved_model_tags or [tag_constants.SERVING], input_saved_model_dir)
            else:
                _restore_variables(sess, graph, input_checkpoint)
                if initializer_nodes:
                    sess.run(initializer_nodes.replace(" ", "").split(","))
            source = input_graph_def or (input_meta_graph_def.graph_def if input_meta_graph_def else graph.as_graph_def())
            frozen = graph_util.convert_variables_to_constants(
                sess, source, output_node_names.replace(" ", "").split(","),
                variable_names_whitelist=_names(variable_names_whitelist),
                variable_names_blacklist=_names(variable_names_blacklist))
    if output_graph:
        with file_io.FileIO(output_graph, "wb") as f:
            f.write(frozen.SerializeToString())
    return frozen


def _names(text):
    return text.replace(" ", "").split(",") if text else None


def _restore_variables(sess, graph, checkpoint):
    """Restores the graph's variables by their names, which needs no Saver of the graph."""
    reader = py_checkpoint_reader.NewCheckpointReader(checkpoint)
    variables = {}
    for key in reader.get_variable_to_shape_map():
        try:
            op = graph.get_operation_by_name(key)
        except KeyError:
            # Saved by an optimizer or a step counter, for example.
            continue
        if op.type not in ("VariableV2", "Variable", "VarHandleOp"):
            continue
        made = variable_pb2.VariableDef()
        made.variable_name = op.name + ":0"
        made.initializer_name = op.name + "/Assign"
        made.is_resource = op.type == "VarHandleOp"
        made.snapshot_name = op.name + ("/Read/ReadVariableOp:0" if made.is_resource else "/read:0")
        variables[key] = variables_lib.Variable.from_proto(made)
    saver_lib.Saver(var_list=variables).restore(sess, checkpoint)


def freeze_graph(input_graph, input_saver, input_binary, input_checkpoint, output_node_names, restore_op_name,
                 filename_tensor_name, output_graph, clear_devices, initializer_nodes, variable_names_whitelist="",
                 variable_names_blacklist="", input_meta_graph=None, input_saved_model_dir=None,
                 saved_model_tags=tag_constants.SERVING, checkpoint_version=saver_pb2.SaverDef.V2):
    """As `freeze_graph_with_def_protos`, of files."""
    graph_def = _read(graph_pb2.GraphDef(), input_graph, input_binary) if input_graph and not input_saved_model_dir else None
    meta_graph = _read(meta_graph_pb2.MetaGraphDef(), input_meta_graph, input_binary) if input_meta_graph else None
    saver_def = _read(saver_pb2.SaverDef(), input_saver, input_binary) if input_saver else None
    return freeze_graph_with_def_protos(
        graph_def, saver_def, input_checkpoint, output_node_names, restore_op_name, filename_tensor_name, output_graph,
        clear_devices, initializer_nodes, variable_names_whitelist, variable_names_blacklist, meta_graph,
        input_saved_model_dir, saved_model_tags.replace(" ", "").split(",") if saved_model_tags else None, checkpoint_version)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("input_graph", "input_saver", "input_checkpoint", "output_graph", "output_node_names", "initializer_nodes",
                 "variable_names_whitelist", "variable_names_blacklist", "input_meta_graph", "input_saved_model_dir"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--restore_op_name", default="save/restore_all")
    parser.add_argument("--filename_tensor_name", default="save/Const:0")
    parser.add_argument("--saved_model_tags", default=tag_constants.SERVING)
    for name, default in (("input_binary", False), ("clear_devices", True)):
        parser.add_argument("--" + name, nargs="?", const=True, default=default, type=lambda text: text.lower() == "true")
    args = parser.parse_args()
    freeze_graph(args.input_graph, args.input_saver, args.input_binary, args.input_checkpoint, args.output_node_names,
                 args.restore_op_name, args.filename_tensor_name, args.output_graph, args.clear_devices, args.initializer_nodes,
                 args.variable_names_whitelist, args.variable_names_blacklist, args.input_meta_graph, args.input_saved_model_dir,
                 args.saved_model_tags)


if __name__ == "__main__":
    main()
