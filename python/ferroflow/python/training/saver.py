"""Saver: writes the variables of a session to checkpoints and reads them back."""

import os.path
import time

import numpy as np

from ferroflow.core.protobuf import saver_pb2
from ferroflow.python.framework import errors, meta_graph, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.ops import variables
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import checkpoint_management, training_util
from ferroflow.python.training.checkpoint_management import (  # noqa: F401
    checkpoint_exists,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from ferroflow.python.training.saver_builder import BaseSaverBuilder, BulkSaverBuilder  # noqa: F401
from ferroflow.python.util import compat


class Saver:
    """Saves and restores variables."""

    def __init__(
        self,
        var_list=None,
        reshape=False,
        sharded=False,
        max_to_keep=5,
        keep_checkpoint_every_n_hours=10000.0,
        name=None,
        restore_sequentially=False,
        saver_def=None,
        builder=None,
        defer_build=False,
        allow_empty=False,
        write_version=saver_pb2.SaverDef.V2,
        pad_step_number=False,
        save_relative_paths=False,
        filename=None,
    ):
        if defer_build and var_list:
            raise ValueError("If `var_list` is provided then build cannot be deferred. Either set defer_build=False or var_list=None.")
        self._var_list, self._reshape, self._sharded = var_list, reshape, sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name, self._restore_sequentially = name, restore_sequentially
        self.saver_def, self._builder, self._is_built = saver_def, builder, False
        self._allow_empty, self._is_empty = allow_empty, None
        self._write_version, self._pad_step_number = write_version, pad_step_number
        self._filename = filename
        self._last_checkpoints = []
        self._checkpoints_to_be_deleted = []
        self._save_relative_paths = save_relative_paths
        self._object_restore_saver = None
        if not defer_build:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self):
        self._build(self._filename, build_save=True, build_restore=True)

    def _build(self, checkpoint_path, build_save, build_restore):
        if self._is_built:
            return
        self._is_built = True
        if not self.saver_def or self._builder is None:
            if self._builder is None:
                self._builder = BulkSaverBuilder(self._write_version)
            if self.saver_def is None:
                if self._var_list is None:
                    self._var_list = _all_saveable_objects()
                if not self._var_list:
                    if not self._allow_empty:
                        raise ValueError("No variables to save")
                    self._is_empty = True
                    return
                self._is_empty = False
                self.saver_def = self._builder._build_internal(
                    self._var_list,
                    reshape=self._reshape,
                    sharded=self._sharded,
                    max_to_keep=self._max_to_keep,
                    keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
                    name=self._name,
                    restore_sequentially=self._restore_sequentially,
                    filename=checkpoint_path,
                    build_save=build_save,
                    build_restore=build_restore,
                )
            elif self.saver_def and self._name:
                # The Saver of an imported graph: its operations are in the import scope.
                self.saver_def.filename_tensor_name = ops.prepend_name_scope(self.saver_def.filename_tensor_name, self._name)
                self.saver_def.save_tensor_name = ops.prepend_name_scope(self.saver_def.save_tensor_name, self._name)
                self.saver_def.restore_op_name = ops.prepend_name_scope(self.saver_def.restore_op_name, self._name)
        self._check_saver_def()
        self._next_checkpoint_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    def _check_saver_def(self):
        if not isinstance(self.saver_def, saver_pb2.SaverDef):
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {self.saver_def}")
        if not self.saver_def.save_tensor_name:
            raise ValueError(f"saver_def must specify the save_tensor_name: {self.saver_def}")
        if not self.saver_def.restore_op_name:
            raise ValueError(f"saver_def must specify the restore_op_name: {self.saver_def}")

    # Which checkpoints are kept.

    @staticmethod
    def _CheckpointFilename(p):
        return p[0]

    def _RecordLastCheckpoint(self, latest_save_path):
        if not self.saver_def.max_to_keep:
            return
        for pair in self._last_checkpoints[:]:
            if pair[0] == latest_save_path:
                self._last_checkpoints.remove(pair)
        self._last_checkpoints.append((latest_save_path, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))

    def _MaybeDeleteOldCheckpoints(self, meta_graph_suffix="meta"):
        if not self._checkpoints_to_be_deleted:
            return
        path, written = self._checkpoints_to_be_deleted.pop(0)
        # One for every `keep_checkpoint_every_n_hours` is never deleted.
        if written > self._next_checkpoint_time:
            self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
            return
        try:
            checkpoint_management.remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)
        except Exception as e:  # pylint: disable=broad-except
            logging.warning("Ignoring: %s", str(e))

    @property
    def last_checkpoints(self):
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints):
        """Sets the checkpoints that count as written by this Saver, the oldest first."""
        assert isinstance(last_checkpoints, list)
        self._last_checkpoints = [(s, np.inf) for s in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time):
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths):
        """Takes over the checkpoints that an earlier program wrote, as far as they exist."""
        checkpoints_with_mtimes = []
        for path in checkpoint_paths:
            mtimes = checkpoint_management.get_checkpoint_mtimes([path])
            if mtimes:
                checkpoints_with_mtimes.append((path, mtimes[0]))
        self.set_last_checkpoints_with_time(checkpoints_with_mtimes)

    # Saving and restoring.

    def save(
        self,
        sess,
        save_path,
        global_step=None,
        latest_filename=None,
        meta_graph_suffix="meta",
        write_meta_graph=True,
        write_state=True,
        strip_default_attrs=False,
        save_debug_info=False,
    ):
        """Writes a checkpoint and returns its path."""
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        save_path = compat.as_str(os.fspath(save_path))
        latest_filename = latest_filename or "checkpoint"
        if self._write_version != saver_pb2.SaverDef.V2:
            logging.warning("*******************************************************")
            logging.warning("TensorFlow's V1 checkpoint format has been deprecated.")
            logging.warning("Consider switching to the more efficient V2 format:")
            logging.warning("   `tf.train.Saver(write_version=tf.train.SaverDef.V2)`")
            logging.warning("now on by default.")
            logging.warning("*******************************************************")
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        if global_step is not None:
            if not isinstance(global_step, (int, np.integer)):
                global_step = training_util.global_step(sess, global_step)
            checkpoint_file = "%s-%d" % (save_path, global_step)
            if self._pad_step_number:
                # Zero-padded, so that names sort by step.
                checkpoint_file = "%s-%s" % (save_path, "{:08d}".format(global_step))
        else:
            checkpoint_file = save_path
            if os.path.basename(save_path) == latest_filename and not self._sharded:
                raise ValueError("'latest_filename' collides with 'save_path': '%s' and '%s'" % (latest_filename, save_path))
        if not hasattr(sess, "run"):
            raise TypeError("'sess' must be a Session; %s" % sess)
        save_path_parent = os.path.dirname(save_path)
        model_checkpoint_path = None
        if not self._is_empty:
            try:
                model_checkpoint_path = sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: checkpoint_file})
                model_checkpoint_path = compat.as_str(model_checkpoint_path)
                if write_state:
                    self._RecordLastCheckpoint(model_checkpoint_path)
                    checkpoint_management.update_checkpoint_state_internal(
                        save_dir=save_path_parent,
                        model_checkpoint_path=model_checkpoint_path,
                        all_model_checkpoint_paths=self.last_checkpoints,
                        latest_filename=latest_filename,
                        save_relative_paths=self._save_relative_paths,
                    )
                    self._MaybeDeleteOldCheckpoints(meta_graph_suffix=meta_graph_suffix)
            except (errors.FailedPreconditionError, errors.NotFoundError) as exc:
                if not file_io.is_directory(save_path_parent or "."):
                    raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from exc
                raise
        if write_meta_graph:
            meta_graph_filename = checkpoint_management.meta_graph_filename(checkpoint_file, meta_graph_suffix=meta_graph_suffix)
            with sess.graph.as_default():
                self.export_meta_graph(meta_graph_filename, strip_default_attrs=strip_default_attrs, save_debug_info=save_debug_info)
        return None if self._is_empty else model_checkpoint_path

    def restore(self, sess, save_path):
        """Gives the variables the values of a checkpoint."""
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        save_path = compat.as_str(os.fspath(save_path))
        checkpoint_prefix = compat.as_text(save_path)
        if not checkpoint_management.checkpoint_exists_internal(checkpoint_prefix):
            raise ValueError("The passed save_path is not a valid checkpoint: " + checkpoint_prefix)
        logging.info("Restoring parameters from %s", checkpoint_prefix)
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: save_path})
        except errors.NotFoundError as err:
            raise _wrapped(errors.NotFoundError, err, "a Variable name or other graph key that is missing") from err
        except errors.InvalidArgumentError as err:
            raise _wrapped(errors.InvalidArgumentError, err, "a mismatch between the current graph and the graph") from err

    def export_meta_graph(
        self,
        filename=None,
        collection_list=None,
        as_text=False,
        export_scope=None,
        clear_devices=False,
        clear_extraneous_savers=False,
        strip_default_attrs=False,
        save_debug_info=False,
    ):
        del save_debug_info
        return export_meta_graph(
            filename=filename,
            graph_def=ops.get_default_graph().as_graph_def(add_shapes=True),
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    # As a member of the collection "savers".

    def as_saver_def(self):
        return self.saver_def

    def to_proto(self, export_scope=None):
        if export_scope is None:
            return self.saver_def
        if not (self.saver_def.filename_tensor_name.startswith(export_scope) and self.saver_def.save_tensor_name.startswith(export_scope) and self.saver_def.restore_op_name.startswith(export_scope)):
            return None
        saver_def = saver_pb2.SaverDef()
        saver_def.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(saver_def, field, ops.strip_name_scope(getattr(saver_def, field), export_scope))
        return saver_def

    @staticmethod
    def from_proto(saver_def, import_scope=None):
        return Saver(saver_def=saver_def, name=import_scope)


def _all_saveable_objects(scope=None):
    """All variables and other objects of the graph that are saved."""
    return variables.global_variables(scope) + ops.get_collection(ops.GraphKeys.SAVEABLE_OBJECTS, scope)


def _wrapped(kind, err, reason):
    """The error of a failed restore, with its probable cause."""
    text = (
        "Restoring from checkpoint failed. This is most likely due to {} from the checkpoint. Please ensure that you "
        "have not altered the graph expected based on the checkpoint. Original error:\n\n{}"
    ).format(reason, err)
    return kind(err.node_def, err.op, text)


def import_meta_graph(meta_graph_or_file, clear_devices=False, import_scope=None, **kwargs):
    """Adds the graph of a meta file to the default graph; returns a Saver for it, if it has one."""
    return _import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[0]


def _import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices=False, import_scope=None, return_elements=None, **kwargs):
    if not isinstance(meta_graph_or_file, meta_graph.MetaGraphDef):
        meta_graph_def = meta_graph.read_meta_graph_file(meta_graph_or_file)
    else:
        meta_graph_def = meta_graph_or_file
    imported_vars, imported_return_elements = meta_graph.import_scoped_meta_graph_with_return_elements(
        meta_graph_def, clear_devices=clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    return _create_saver_from_imported_meta_graph(meta_graph_def, import_scope, imported_vars), imported_return_elements


def _create_saver_from_imported_meta_graph(meta_graph_def, import_scope, imported_vars):
    if meta_graph_def.HasField("saver_def"):
        # The scope may have a number if its name was in use before.
        scope = import_scope
        var_names = list(imported_vars.keys())
        if var_names:
            sample_key = var_names[0]
            sample_var = imported_vars[sample_key]
            scope = sample_var.name[: -len(sample_key)]
        return Saver(saver_def=meta_graph_def.saver_def, name=scope)
    if _all_saveable_objects(scope=import_scope):
        return Saver()
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None


def export_meta_graph(
    filename=None,
    meta_info_def=None,
    graph_def=None,
    saver_def=None,
    collection_list=None,
    as_text=False,
    graph=None,
    export_scope=None,
    clear_devices=False,
    clear_extraneous_savers=False,
    strip_default_attrs=False,
    save_debug_info=False,
    **kwargs,
):
    """A MetaGraphDef of the graph, also written to a file if there is a name."""
    del save_debug_info
    return meta_graph.export_scoped_meta_graph(
        filename=filename,
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        as_text=as_text,
        graph=graph,
        export_scope=export_scope,
        clear_devices=clear_devices,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )[0]


def _get_saver_or_default():
    """The Saver of the collection "savers", or a new one that is put there."""
    savers = ops.get_collection(ops.GraphKeys.SAVERS)
    if savers:
        if len(savers) > 1:
            raise RuntimeError("Multiple items found in collection SAVERS. Specify one of them, or pass a saver.")
        return savers[0]
    saver = Saver(sharded=True, allow_empty=True)
    if saver is not None:
        ops.add_to_collection(ops.GraphKeys.SAVERS, saver)
    return saver


ops.register_proto_function(ops.GraphKeys.SAVERS, proto_type=saver_pb2.SaverDef, to_proto=Saver.to_proto, from_proto=Saver.from_proto)
