"""Reading checkpoints, and initializing variables from them."""

import os
import time

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops, resource_variable_ops, state_ops, variable_scope, variables
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import checkpoint_management, py_checkpoint_reader
from ferroflow.python.util import compat


def load_checkpoint(ckpt_dir_or_file):
    """A reader of a checkpoint, or of the newest one of a folder."""
    filename = _get_checkpoint_filename(ckpt_dir_or_file)
    if filename is None:
        raise ValueError("Couldn't find 'checkpoint' file or checkpoints in given directory %s" % ckpt_dir_or_file)
    return py_checkpoint_reader.NewCheckpointReader(filename)


def load_variable(ckpt_dir_or_file, name):
    """The value of one variable of a checkpoint."""
    if name.endswith(":0"):
        name = name[:-2]
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file):
    """Names and shapes of the variables of a checkpoint, sorted by name."""
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return sorted(shapes.items())


def _get_checkpoint_filename(ckpt_dir_or_file):
    path = compat.as_str(os.fspath(ckpt_dir_or_file))
    if os.path.isdir(path):
        return checkpoint_management.latest_checkpoint(path)
    return path


def wait_for_new_checkpoint(checkpoint_dir, last_checkpoint=None, seconds_to_sleep=1, timeout=None):
    """Waits for a checkpoint other than `last_checkpoint`; returns it, or None after the timeout."""
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop_time = time.time() + timeout if timeout is not None else None
    while True:
        path = checkpoint_management.latest_checkpoint(checkpoint_dir)
        if path is None or path == last_checkpoint:
            if stop_time is not None and time.time() + seconds_to_sleep > stop_time:
                return None
            time.sleep(seconds_to_sleep)
        else:
            logging.info("Found new checkpoint at %s", path)
            return path


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    """Yields new checkpoints of a folder as they appear."""
    path = None
    while True:
        new_path = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if new_path is None:
            if not timeout_fn:
                logging.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        start = time.time()
        path = new_path
        yield path
        time_to_next_eval = start + min_interval_secs - time.time()
        if time_to_next_eval > 0:
            time.sleep(time_to_next_eval)


def init_from_checkpoint(ckpt_dir_or_file, assignment_map):
    """Makes the initializers of variables read a checkpoint.

    The map goes from names or scopes of the checkpoint (`"scope/"`) to variables, lists of slices,
    names of variables, or scopes of the graph.
    """
    ckpt_file = _get_checkpoint_filename(ckpt_dir_or_file)
    reader = load_checkpoint(ckpt_dir_or_file)
    shapes = reader.get_variable_to_shape_map()
    if not isinstance(assignment_map, dict):
        assignment_map = dict(assignment_map)
    for tensor_name_in_ckpt, target in sorted(assignment_map.items(), key=lambda item: str(item[0])):
        var = None
        if _is_variable(target) or isinstance(target, list) and all(_is_variable(v) for v in target):
            var = target
        elif not isinstance(target, str):
            var = list(target)
        else:
            store_vars = variable_scope._get_default_variable_store()._vars
            var = store_vars.get(target)
            if var is None:
                var = _collect_partitioned_variable(target, store_vars)
        if var is not None:
            _check_and_init(ckpt_file, tensor_name_in_ckpt, shapes, var, ckpt_dir_or_file)
            continue
        scopes = target
        if "/" in tensor_name_in_ckpt and not tensor_name_in_ckpt.endswith("/") and tensor_name_in_ckpt != "/":
            raise ValueError("Assignment map with scope only name {} should map to scope only {}. Should be 'scope/': 'other_scope/'.".format(scopes, tensor_name_in_ckpt))
        scope = "" if scopes == "/" else scopes.rstrip("/")
        prefix = "" if tensor_name_in_ckpt == "/" else tensor_name_in_ckpt
        by_name = {}
        for name in store_vars:
            if scope and not name.startswith(scope + "/"):
                continue
            base = name.split("/part_")[0]
            by_name[base] = None
        for base in sorted(by_name):
            full = prefix + (base[len(scope) + 1 :] if scope else base)
            if prefix and not prefix.endswith("/") and scope:
                full = prefix + base[len(scope) :]
            var = store_vars.get(base) or _collect_partitioned_variable(base, store_vars)
            if full not in shapes:
                raise ValueError("Tensor %s (%s in %s) is not found in %s checkpoint" % (base, full, scopes, ckpt_dir_or_file))
            _check_and_init(ckpt_file, full, shapes, var, ckpt_dir_or_file)


def _check_and_init(ckpt_file, name, shapes, var, ckpt_dir_or_file):
    if name not in shapes:
        raise ValueError("Tensor %s is not found in %s checkpoint %s" % (name, ckpt_dir_or_file, shapes))
    if _is_variable(var):
        if not var.get_shape().is_compatible_with(shapes[name]):
            raise ValueError("Shape of variable %s (%s) doesn't match with shape of tensor %s (%s) from checkpoint reader." % (var.name, str(var.get_shape()), name, str(shapes[name])))
        var_name = var.name
        _set_checkpoint_initializer(var, ckpt_file, name, "")
    else:
        parts = list(var)
        var_name = ",".join(v.name for v in parts)
        for part in parts:
            _set_checkpoint_initializer(part, ckpt_file, name, part._save_slice_info.spec)
    logging.debug("Initialize variable %s from checkpoint %s with %s", var_name, ckpt_dir_or_file, name)


def _is_variable(x):
    return isinstance(x, variables.Variable) or resource_variable_ops.is_resource_variable(x)


def _collect_partitioned_variable(name, all_vars):
    """The slices `name/part_0`, `name/part_1` and so on, or None."""
    if name + "/part_0" not in all_vars:
        return None
    found = []
    while name + "/part_%d" % len(found) in all_vars:
        found.append(all_vars[name + "/part_%d" % len(found)])
    return found


def _set_checkpoint_initializer(variable, ckpt_file, tensor_name, slice_spec, name="checkpoint_initializer"):
    """Replaces the initializer of a variable by one that reads the checkpoint."""
    base_type = variable.dtype.base_dtype
    with ops.colocate_with(variable.op), ops.device("/cpu:0"):
        op = ops.apply_op("RestoreV2", name, [ckpt_file, [tensor_name], [slice_spec]], {"dtypes": [base_type]})
        restored = op.outputs[0]
        restored.set_shape(variable.shape)
        if resource_variable_ops.is_resource_variable(variable):
            variable._initializer_op = variable.assign(array_ops.identity(restored), read_value=False)
        else:
            variable._initializer_op = state_ops.assign(variable._ref(), restored).op
        variable._initial_value = restored


