"""Broadcast of the variables of a graph."""

import ferroflow.compat.v1 as tf
from ferroflow._hvd import v1
from ferroflow._hvd.core import global_process_set

from . import graph_ops


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Ops that assign the values of rank `root_rank` to variables."""
    return [v.assign(graph_ops.broadcast(v, root_rank, f"{name or 'broadcast'}.{v.op.name}",
                                         process_set)) for v in variables]


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """An op that assigns the values of rank `root_rank` to variables on all ranks."""
    assigned = broadcast_(variables, root_rank, process_set=process_set)
    return tf.group(*assigned, name="broadcast_variables")


def broadcast_global_variables(root_rank):
    """An op that assigns the values of rank `root_rank` to all global variables of the graph."""
    return broadcast_variables(tf.global_variables(), root_rank)


BroadcastGlobalVariablesHook = v1.hook_class(tf, broadcast_global_variables)
