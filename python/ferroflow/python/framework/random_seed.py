"""Seeds of the graph and of its random operations."""

import weakref

from ferroflow.python.framework import ops

DEFAULT_GRAPH_SEED = 87654321
_MAXINT32 = 2**31 - 1
# How many operations of a graph took their seed from its seed.
_next_seeds = weakref.WeakKeyDictionary()


def get_seed(op_seed):
    """The two seeds of a random operation; (None, None) if neither is set."""
    graph_seed = ops.get_default_graph().seed
    if graph_seed is not None:
        if op_seed is None:
            op_seed = _next_seeds.get(ops.get_default_graph(), 0)
            _next_seeds[ops.get_default_graph()] = op_seed + 1
        seeds = graph_seed % _MAXINT32, op_seed % _MAXINT32
    elif op_seed is not None:
        seeds = DEFAULT_GRAPH_SEED, op_seed % _MAXINT32
    else:
        seeds = None, None
    # Two zeros would mean a random seed.
    return (0, _MAXINT32) if seeds == (0, 0) else seeds


def set_random_seed(seed):
    ops.get_default_graph().seed = seed
