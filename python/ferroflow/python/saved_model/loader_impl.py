"""Reads SavedModels."""

import os

from ferroflow.core import _text as text_format
from ferroflow.core.protobuf import saved_model_pb2
from ferroflow.python.framework import ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging
from ferroflow.python.saved_model import constants
from ferroflow.python.training import saver as tf_saver
from ferroflow.python.util import compat


def _folder(export_dir):
    """A path as text: `export_saved_model` returns bytes."""
    return compat.as_str(os.fspath(export_dir))


def parse_saved_model(export_dir):
    """The SavedModel message of a folder."""
    export_dir = _folder(export_dir)
    binary = os.path.join(export_dir, constants.SAVED_MODEL_FILENAME_PB)
    text = os.path.join(export_dir, constants.SAVED_MODEL_FILENAME_PBTXT)
    model = saved_model_pb2.SavedModel()
    if file_io.file_exists(binary):
        try:
            model.ParseFromString(file_io.read_file_to_string(binary, binary_mode=True))
        except Exception as e:
            raise IOError(f"Cannot parse file {binary}: {e}.") from None
        return model
    if file_io.file_exists(text):
        text_format.Parse(file_io.read_file_to_string(text), model)
        return model
    raise IOError(f"SavedModel file does not exist at: {export_dir}{os.path.sep}{{{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}}}")


def maybe_saved_model_directory(export_dir):
    names = (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT)
    return any(file_io.file_exists(os.path.join(_folder(export_dir), name)) for name in names)


contains_saved_model = maybe_saved_model_directory


def get_asset_tensors(export_dir, meta_graph_def, import_scope=None):
    """The paths of the assets, to feed for their tensors."""
    folder = os.path.join(export_dir, constants.ASSETS_DIRECTORY)
    found = {}
    for asset in meta_graph_def.asset_file_def:
        found[ops.prepend_name_scope(asset.tensor_info.name, import_scope)] = os.path.join(folder, asset.filename)
    return found


def _init_op(meta_graph_def, import_scope):
    if constants.INIT_OP_SIGNATURE_KEY in meta_graph_def.signature_def:
        name = meta_graph_def.signature_def[constants.INIT_OP_SIGNATURE_KEY].outputs[constants.INIT_OP_SIGNATURE_KEY].name
        return ops.get_default_graph().as_graph_element(ops.prepend_name_scope(name, import_scope))
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        found = ops.get_collection(key)
        if found:
            return found[0]
    return None


class SavedModelLoader:
    """Loads the graph of a SavedModel that has certain tags."""

    def __init__(self, export_dir):
        self._export_dir = _folder(export_dir)
        self._saved_model = parse_saved_model(self._export_dir)

    @property
    def export_dir(self):
        return self._export_dir

    @property
    def saved_model(self):
        return self._saved_model

    @property
    def variables_path(self):
        return os.path.join(self._export_dir, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)

    def get_meta_graph_def_from_tags(self, tags):
        tags = {tags} if isinstance(tags, str) else set(tags)
        available = []
        for meta_graph_def in self._saved_model.meta_graphs:
            if set(meta_graph_def.meta_info_def.tags) == tags:
                return meta_graph_def
            available.append(set(meta_graph_def.meta_info_def.tags))
        raise RuntimeError(f"MetaGraphDef associated with tags {str(sorted(tags)).strip('[]')} could not be found in SavedModel, with available tags '{available}'.")

    def load_graph(self, graph, tags, import_scope=None, **saver_kwargs):
        meta_graph_def = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            return tf_saver._import_meta_graph_with_return_elements(meta_graph_def, import_scope=import_scope, **saver_kwargs)

    def restore_variables(self, sess, saver, import_scope=None):
        with sess.graph.as_default():
            if saver is None and not tf_saver._all_saveable_objects(scope=import_scope):
                tf_logging.info("The specified SavedModel has no variables; no checkpoints were restored.")
            elif isinstance(saver, tf_saver.Saver):
                saver.restore(sess, self.variables_path)
            else:
                raise ValueError("No tf.train.Saver object was passed to restore_variables.")

    def run_init_ops(self, sess, tags, import_scope=None):
        meta_graph_def = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            assets = get_asset_tensors(self._export_dir, meta_graph_def, import_scope=import_scope)
            op = _init_op(meta_graph_def, import_scope)
            if op is not None:
                sess.run(fetches=[op], feed_dict=assets)

    def load(self, sess, tags, import_scope=None, **saver_kwargs):
        with sess.graph.as_default():
            saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
            self.restore_variables(sess, saver, import_scope)
            self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


def load(sess, tags, export_dir, import_scope=None, **saver_kwargs):
    """Loads the graph and variables of a SavedModel into a session."""
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)
