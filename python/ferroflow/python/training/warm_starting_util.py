"""Starts a model with variables of another checkpoint."""

import collections
import re

from ferroflow.python.framework import ops
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import checkpoint_utils


class VocabInfo(collections.namedtuple("VocabInfo", ["new_vocab", "new_vocab_size", "num_oov_buckets", "old_vocab", "old_vocab_size", "backup_initializer", "axis"])):
    """Two vocabularies of one variable. Accepted so that programs can name it; refused when used."""


class WarmStartSettings(
    collections.namedtuple("WarmStartSettings", ["ckpt_to_initialize_from", "vars_to_warm_start", "var_name_to_vocab_info", "var_name_to_prev_var_name"])
):
    def __new__(cls, ckpt_to_initialize_from, vars_to_warm_start=".*", var_name_to_vocab_info=None, var_name_to_prev_var_name=None):
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(cls, ckpt_to_initialize_from, vars_to_warm_start, var_name_to_vocab_info or {}, var_name_to_prev_var_name or {})


def _selected(patterns):
    if patterns is None:
        return []
    if isinstance(patterns, str):
        return [v for v in ops.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES) if re.match(patterns, v.op.name)]
    if all(isinstance(p, str) for p in patterns):
        found = ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)
        return [v for v in found if any(re.match(p, v.op.name) for p in patterns)]
    return list(patterns)


def warm_start(ckpt_to_initialize_from, vars_to_warm_start=".*", var_name_to_vocab_info=None, var_name_to_prev_var_name=None):
    """Makes the initializers of variables read a checkpoint."""
    if var_name_to_vocab_info:
        raise NotImplementedError("warm_start with var_name_to_vocab_info is not supported")
    logging.info("Warm-starting from: {}".format(ckpt_to_initialize_from))
    names = var_name_to_prev_var_name or {}
    known = checkpoint_utils.load_checkpoint(ckpt_to_initialize_from).get_variable_to_shape_map()
    by_name = {}
    for v in _selected(vars_to_warm_start):
        info = getattr(v, "_save_slice_info", None)
        by_name.setdefault(info.full_name if info else v.op.name, []).append(v)
    mapping, count = {}, 0
    for name, parts in by_name.items():
        old = names.get(name, name)
        if old not in known:
            logging.warning("Variable %s is not in the checkpoint %s", old, ckpt_to_initialize_from)
            continue
        mapping[old] = parts if len(parts) > 1 or getattr(parts[0], "_save_slice_info", None) else parts[0]
        count += 1
    checkpoint_utils.init_from_checkpoint(ckpt_to_initialize_from, mapping)
    logging.info("Warm-started %d variables.", count)
