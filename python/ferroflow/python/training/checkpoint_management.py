"""Checkpoint files of a folder: which there are, which is the newest, which to delete."""

import collections
import os
import re
import time

from ferroflow.core import _text as text_format
from ferroflow.core import messages
from ferroflow.core.protobuf import saver_pb2
from ferroflow.python.framework import errors, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging as logging


def _GetCheckpointFilename(save_dir, latest_filename):
    return os.path.join(save_dir, latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir, model_checkpoint_path, all_model_checkpoint_paths=None, all_model_checkpoint_timestamps=None, last_preserved_timestamp=None
):
    """A CheckpointState; paths inside the folder become relative to it."""
    paths = list(all_model_checkpoint_paths or [])
    if not paths or paths[-1] != model_checkpoint_path:
        logging.info("%s is not in all_model_checkpoint_paths. Manually adding it.", model_checkpoint_path)
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or [])
    if times and len(times) != len(paths):
        raise ValueError("Checkpoint timestamps, if provided, must match checkpoint paths (got paths %s and timestamps %s)" % (paths, times))
    if not os.path.isabs(save_dir):
        # Both are relative to the working folder; make them relative to `save_dir`.
        paths = [p if os.path.isabs(p) else os.path.relpath(p, save_dir) for p in paths]
        if not os.path.isabs(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
    state = messages.CheckpointState(model_checkpoint_path=model_checkpoint_path)
    state.all_model_checkpoint_paths.extend(paths)
    state.all_model_checkpoint_timestamps.extend(times)
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def update_checkpoint_state(
    save_dir,
    model_checkpoint_path,
    all_model_checkpoint_paths=None,
    latest_filename=None,
    all_model_checkpoint_timestamps=None,
    last_preserved_timestamp=None,
):
    """Writes the file `checkpoint` of a folder."""
    update_checkpoint_state_internal(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        False,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def update_checkpoint_state_internal(
    save_dir,
    model_checkpoint_path,
    all_model_checkpoint_paths=None,
    latest_filename=None,
    save_relative_paths=False,
    all_model_checkpoint_timestamps=None,
    last_preserved_timestamp=None,
):
    filename = _GetCheckpointFilename(save_dir, latest_filename)
    if save_relative_paths:
        model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
        paths = [os.path.relpath(p, save_dir) for p in all_model_checkpoint_paths or []]
        state = messages.CheckpointState(model_checkpoint_path=model_checkpoint_path)
        if not paths or paths[-1] != model_checkpoint_path:
            paths.append(model_checkpoint_path)
        state.all_model_checkpoint_paths.extend(paths)
        state.all_model_checkpoint_timestamps.extend(all_model_checkpoint_timestamps or [])
        if last_preserved_timestamp is not None:
            state.last_preserved_timestamp = last_preserved_timestamp
    else:
        state = generate_checkpoint_state_proto(
            save_dir, model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps, last_preserved_timestamp
        )
    if filename == state.model_checkpoint_path:
        raise RuntimeError("Save path '%s' conflicts with path used for checkpoint state.  Please use a different save path." % model_checkpoint_path)
    file_io.atomic_write_string_to_file(filename, text_format.MessageToString(state))


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """The CheckpointState of a folder, with paths that can be opened; None if there is none."""
    if isinstance(checkpoint_dir, os.PathLike):
        checkpoint_dir = os.fspath(checkpoint_dir)
    filename = _GetCheckpointFilename(checkpoint_dir, latest_filename)
    state = None
    try:
        if not file_io.file_exists(filename):
            return None
        content = file_io.read_file_to_string(filename)
        state = messages.CheckpointState()
        text_format.Merge(content, state)
        if not state.model_checkpoint_path:
            raise ValueError("Invalid checkpoint state loaded from " + checkpoint_dir)
        if not os.path.isabs(state.model_checkpoint_path):
            state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
        for i, path in enumerate(list(state.all_model_checkpoint_paths)):
            if not os.path.isabs(path):
                state.all_model_checkpoint_paths[i] = os.path.join(checkpoint_dir, path)
    except errors.OpError as e:
        logging.warning("%s: %s", type(e).__name__, e)
        logging.warning("%s: Checkpoint ignored", filename)
        return None
    except text_format.ParseError as e:
        logging.warning("%s: %s", type(e).__name__, e)
        logging.warning("%s: Checkpoint ignored", filename)
        return None
    return state


def _prefix_to_checkpoint_path(prefix, format_version):
    return prefix + ".index" if format_version == saver_pb2.SaverDef.V2 else prefix


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The path of the newest checkpoint of a folder, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state and state.model_checkpoint_path:
        for version in (saver_pb2.SaverDef.V2, saver_pb2.SaverDef.V1):
            if file_io.get_matching_files(_prefix_to_checkpoint_path(state.model_checkpoint_path, version)):
                return state.model_checkpoint_path
        logging.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def checkpoint_exists_internal(checkpoint_prefix):
    path = _prefix_to_checkpoint_path(checkpoint_prefix, saver_pb2.SaverDef.V2)
    if file_io.get_matching_files(path):
        return True
    return bool(file_io.get_matching_files(checkpoint_prefix))


def checkpoint_exists(checkpoint_prefix):
    """Whether there is a checkpoint of either version with this prefix."""
    return checkpoint_exists_internal(checkpoint_prefix)


def get_checkpoint_mtimes(checkpoint_prefixes):
    """When checkpoints were written, in seconds."""
    times = []
    for prefix in checkpoint_prefixes:
        for version in (saver_pb2.SaverDef.V2, saver_pb2.SaverDef.V1):
            found = file_io.get_matching_files(_prefix_to_checkpoint_path(prefix, version))
            if found:
                times.append(file_io.stat(found[0]).mtime_nsec / 1e9)
                break
    return times


def remove_checkpoint(checkpoint_prefix, checkpoint_format_version=saver_pb2.SaverDef.V2, meta_graph_suffix="meta"):
    """Deletes the files of a checkpoint."""
    _delete_file_if_exists(meta_graph_filename(checkpoint_prefix, meta_graph_suffix))
    if checkpoint_format_version == saver_pb2.SaverDef.V2:
        _delete_file_if_exists(checkpoint_prefix + ".index")
        _delete_file_if_exists(checkpoint_prefix + ".data-?????-of-?????")
    else:
        _delete_file_if_exists(checkpoint_prefix)


def _delete_file_if_exists(filespec):
    for path in file_io.get_matching_files(filespec):
        try:
            file_io.delete_file(path)
        except errors.NotFoundError:
            # Another process deleted it.
            logging.warning("Hit NotFoundError when deleting '%s', possibly because another process/thread is also deleting/moving the same file", path)


def meta_graph_filename(checkpoint_filename, meta_graph_suffix="meta"):
    """The meta file of a checkpoint; that of all shards of version 1 is the same."""
    basename = checkpoint_filename
    if re.match(r"(.*)-\?\?\?\?\?-of-\d{5}$", checkpoint_filename):
        basename = re.sub(r"-\?\?\?\?\?-of-\d{5}$", "", checkpoint_filename)
    return ".".join([basename, meta_graph_suffix])


class CheckpointManager:
    """Keeps the last few checkpoints that a `Checkpoint` or a `Saver` writes in a folder."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt"):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError("Expected a positive integer or `None` for `max_to_keep`, got %d." % max_to_keep)
        self._checkpoint, self._directory = checkpoint, directory
        self._max_to_keep, self._every = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(directory, checkpoint_name)
        file_io.recursive_create_dir(directory)
        self._kept = collections.OrderedDict()
        state = get_checkpoint_state(directory)
        self._last_preserved = state.last_preserved_timestamp if state else time.time()
        self.latest_checkpoint = state.model_checkpoint_path if state else None
        if state:
            times = list(state.all_model_checkpoint_timestamps) or [time.time()] * len(state.all_model_checkpoint_paths)
            self._kept.update(zip(state.all_model_checkpoint_paths, times))

    @property
    def checkpoints(self):
        return list(self._kept)

    checkpoint = property(lambda self: self._checkpoint)
    directory = property(lambda self: self._directory)
    checkpoint_interval = None

    def restore_or_initialize(self):
        """Restores the latest checkpoint in the default session, and returns its name or None."""
        self._checkpoint.restore(self.latest_checkpoint).initialize_or_restore()
        return self.latest_checkpoint

    def save(self, checkpoint_number=None, session=None):
        """Writes a checkpoint with this number, or the next one, and removes the oldest."""
        session = session or ops.get_default_session()
        if hasattr(self._checkpoint, "write"):
            if checkpoint_number is None:
                checkpoint_number = self._checkpoint._next_number(session)
            path = self._checkpoint.write("%s-%d" % (self._prefix, checkpoint_number), session)
        else:
            path = self._checkpoint.save(session, self._prefix, global_step=checkpoint_number)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self.latest_checkpoint = path
        while self._max_to_keep and len(self._kept) > self._max_to_keep:
            old, written = self._kept.popitem(last=False)
            if self._every and written - self._every * 3600 >= self._last_preserved:
                self._last_preserved = written
                continue
            remove_checkpoint(old)
        update_checkpoint_state(self._directory, path, list(self._kept), None, list(self._kept.values()), self._last_preserved)
        return path
