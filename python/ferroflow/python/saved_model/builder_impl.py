"""Writes SavedModels."""

import os

from ferroflow.core import _text as text_format
from ferroflow.core.protobuf import meta_graph_pb2, saved_model_pb2, saver_pb2
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging
from ferroflow.python.saved_model import constants, signature_def_utils
from ferroflow.python.training import saver as tf_saver
from ferroflow.python.util import compat


class SavedModelBuilder:
    """Collects graphs with their signatures; the first one comes with the variables."""

    def __init__(self, export_dir):
        self._saved_model = saved_model_pb2.SavedModel()
        self._saved_model.saved_model_schema_version = constants.SAVED_MODEL_SCHEMA_VERSION
        self._export_dir = compat.as_str(os.fspath(export_dir))
        if file_io.file_exists(self._export_dir):
            if file_io.list_directory(self._export_dir):
                raise AssertionError(f"Export directory {self._export_dir} already exists, and isn't empty. Please choose a different export directory, or delete all the contents of the specified directory.")
        else:
            file_io.recursive_create_dir(self._export_dir)
        self._has_saved_variables = False
        self._saved_asset_files = set()

    def _save_assets(self, meta_graph_def, assets_list):
        """Copies the files of a collection of filename tensors, and lists them in the graph."""
        from ferroflow.python.framework import tensor_util

        copied = []
        for asset in assets_list or []:
            value = tensor_util.constant_value(asset)
            if value is None or asset.dtype != dtypes.string:
                raise TypeError(f"Asset filepath tensor {asset} must be a string constant")
            path = value.item() if hasattr(value, "item") else value
            path = path.decode("utf-8") if isinstance(path, bytes) else path
            name = os.path.basename(path)
            asset_proto = meta_graph_def.asset_file_def.add()
            asset_proto.filename = name
            asset_proto.tensor_info.name = asset.name
            if (path, name) not in copied:
                copied.append((path, name))
        if not copied:
            tf_logging.info("No assets to write.")
            return
        folder = os.path.join(self._export_dir, constants.ASSETS_DIRECTORY)
        file_io.recursive_create_dir(folder)
        for path, name in copied:
            if name not in self._saved_asset_files:
                file_io.copy(path, os.path.join(folder, name), overwrite=True)
                self._saved_asset_files.add(name)
        tf_logging.info("Assets written to: %s", folder)

    def _add_meta(self, saver, tags, signature_def_map, assets_list, clear_devices, init_op, train_op, strip_default_attrs):
        if self._signatures_are_wrong(signature_def_map):
            raise ValueError("All inputs and outputs of a signature must have a name and a type")
        graph = ops.get_default_graph()
        meta_info = meta_graph_pb2.MetaGraphDef.MetaInfoDef()
        meta_info.tags.extend(tags)
        keys = graph.get_all_collection_keys()
        for op in (init_op, train_op):
            if op is not None and not isinstance(op, (ops.Operation, ops.Tensor)):
                raise TypeError(f"init_op and train_op must be operations, not {op}")
        if init_op is not None and constants.MAIN_OP_KEY not in keys:
            ops.add_to_collection(constants.MAIN_OP_KEY, init_op)
        meta_graph_def = tf_saver.export_meta_graph(
            meta_info_def=meta_info,
            graph_def=graph.as_graph_def(add_shapes=True),
            saver_def=saver.saver_def if saver is not None else None,
            clear_devices=clear_devices,
            strip_default_attrs=strip_default_attrs,
        )
        if train_op is not None:
            info = signature_def_utils.build_tensor_info(train_op) if isinstance(train_op, ops.Tensor) else signature_def_utils.build_tensor_info_from_op(train_op)
            meta_graph_def.signature_def[constants.TRAIN_OP_SIGNATURE_KEY].CopyFrom(
                signature_def_utils.build_signature_def(outputs={constants.TRAIN_OP_SIGNATURE_KEY: info})
            )
        self._save_assets(meta_graph_def, assets_list)
        for key, signature in (signature_def_map or {}).items():
            meta_graph_def.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.add().CopyFrom(meta_graph_def)

    @staticmethod
    def _signatures_are_wrong(signature_def_map):
        for signature in (signature_def_map or {}).values():
            for info in list(signature.inputs.values()) + list(signature.outputs.values()):
                if not info.WhichOneof("encoding"):
                    return True
        return False

    def _saver(self, saver):
        return saver or tf_saver.Saver(
            tf_saver._all_saveable_objects(), sharded=True, write_version=saver_pb2.SaverDef.V2, allow_empty=True
        )

    def add_meta_graph(self, tags, signature_def_map=None, assets_list=None, clear_devices=False, init_op=None, train_op=None, saver=None, strip_default_attrs=False, assets_collection=None, legacy_init_op=None, main_op=None):
        """Adds another graph that uses the same variables."""
        if not self._has_saved_variables:
            raise AssertionError("Graph state including variables and assets has not been saved yet. Please invoke `add_meta_graph_and_variables()` first.")
        self._add_meta(self._saver(saver), tags, signature_def_map, assets_list or assets_collection, clear_devices, init_op or main_op or legacy_init_op, train_op, strip_default_attrs)

    def add_meta_graph_and_variables(self, sess, tags, signature_def_map=None, assets_list=None, clear_devices=False, init_op=None, train_op=None, strip_default_attrs=False, saver=None, assets_collection=None, legacy_init_op=None, main_op=None):
        """Adds the first graph, and writes the variables of a session."""
        if self._has_saved_variables:
            raise AssertionError("Graph state including variables and assets has already been saved. Please invoke `add_meta_graph()` instead.")
        folder = os.path.join(self._export_dir, constants.VARIABLES_DIRECTORY)
        file_io.recursive_create_dir(folder)
        with sess.graph.as_default():
            saver = self._saver(saver)
            saver.save(sess, os.path.join(folder, constants.VARIABLES_FILENAME), write_meta_graph=False, write_state=False)
            self._add_meta(saver, tags, signature_def_map, assets_list or assets_collection, clear_devices, init_op or main_op or legacy_init_op, train_op, strip_default_attrs)
        self._has_saved_variables = True

    def save(self, as_text=False):
        """Writes the model; returns the path of its file."""
        file_io.recursive_create_dir(self._export_dir)
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        path = os.path.join(self._export_dir, name)
        data = text_format.MessageToString(self._saved_model) if as_text else self._saved_model.SerializeToString()
        file_io.write_string_to_file(path, data)
        tf_logging.info("SavedModel written to: %s", path)
        return path.encode("utf-8")
