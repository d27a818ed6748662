"""Broadcast of variables and objects."""

import tensorflow as tf

from ferroflow._hvd import arrays, v1
from ferroflow._hvd.core import global_process_set

from . import mpi_ops

_v1 = tf.compat.v1


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Assigns the values of rank `root_rank` to variables on all ranks."""
    variables = list(variables)
    names = [f"{i}.{getattr(v, 'name', i)}" for i, v in enumerate(variables)]
    values = [getattr(v, "value", v) for v in variables]
    values = [v() if callable(v) else v for v in values]
    sent = mpi_ops.broadcast_all([tf.convert_to_tensor(v) for v in values], root_rank, names,
                                 process_set)
    assigned = []
    for variable, value in zip(variables, sent):
        assigned.append(variable.assign(value) if hasattr(variable, "assign")
                        else _v1.assign(variable, value))
    if tf.executing_eagerly() or tf.inside_function():
        return None
    return tf.group(*[getattr(a, "op", a) for a in assigned], name="broadcast_variables")


def broadcast_global_variables(root_rank):
    """An op that assigns the values of rank `root_rank` to all global variables of the graph."""
    if tf.executing_eagerly():
        raise RuntimeError("broadcast_global_variables() does not work in eager mode; "
                           "use broadcast_variables(variables, root_rank)")
    return broadcast_variables(_v1.global_variables(), root_rank)


BroadcastGlobalVariablesHook = v1.hook_class(_v1, broadcast_global_variables)


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """Returns the object of rank `root_rank`, which is pickled, on all ranks."""
    return arrays.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function that calls `broadcast_object` with these arguments."""
    def fn(obj):
        return broadcast_object(obj, root_rank, session, name, process_set)
    return fn


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """Returns a list of the objects of all ranks, which are pickled."""
    return arrays.allgather_object(obj, name, process_set)
