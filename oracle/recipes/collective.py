"""Collectives in a group of one: results, and invalid calls.

Tensors without elements are left out, because TensorFlow's collectives crash the process on them.
"""

from case import Shape

from . import recipe


def keys(c):
    """The keys, which are inputs in version 2 of the op."""
    values = {"group_size": 1, "group_key": c.int(1, 99), "instance_key": c.int(1, 99)}
    return {name: c.feed(v, "int32") for name, v in values.items()} if c.op.endswith("V2") else values


def options(c):
    out = {"communication_hint": c.pick(["auto", "ring"]), "timeout_seconds": c.pick([0.0, 4.0])}
    return out | ({"ordering_token": []} if c.op in ("CollectiveReduceV2", "CollectiveGatherV2", "CollectiveAllToAllV2", "CollectiveReduceScatterV2") else {})


@recipe("CollectiveReduce", "CollectiveReduceV2")
def reduce(c):
    given = {} if c.op.endswith("V2") else {"subdiv_offsets": c.pick([[], [0]])}
    c.call(input=c.of("T", c.shape(0, 3, empty=False)), merge_op=c.pick(["Min", "Max", "Mul", "Add"]), final_op=c.pick(["Id", "Div"]), **keys(c), **options(c), **given)


@recipe("CollectiveGather", "CollectiveGatherV2")
def gather(c):
    s = c.shape(1, 3, empty=False)
    given = {} if c.op.endswith("V2") else {"shape": Shape(s)}
    c.call(input=c.of("T", s), **keys(c), **options(c), **given)


@recipe("CollectiveAllToAllV2")
def all_to_all(c):
    c.call(input=c.of("T", [1] + c.shape(0, 2, empty=False)), **keys(c), **options(c))


@recipe("CollectiveReduceScatterV2")
def reduce_scatter(c):
    # TensorFlow has no CPU kernel, and fails with an error.
    c.call(input=c.of("T", c.shape(1, 3, empty=False)), merge_op=c.pick(["Min", "Max", "Mul", "Add"]), final_op=c.pick(["Id", "Div"]), **keys(c), **options(c))


def membership(c):
    """The key of a group that no other case uses: a session may run several cases, and a group is made once."""
    hint = {"communication_hint": c.pick(["auto", "ring"]), "timeout_seconds": c.pick([0.0, 4.0])}
    return {"group_key": c.const(1000 + c.index, "int32"), "rank": c.const(0, "int32"), "group_size": c.feed(1, "int32"), **hint}


@recipe("CollectiveInitializeCommunicator")
def communicator(c):
    c.call(**membership(c))


@recipe("CollectiveReduceV3", "CollectiveAllToAllV3")
def with_communicator(c):
    made = c.node("CollectiveInitializeCommunicator", **membership(c))[0]
    s = c.shape(0, 2, empty=False)
    given = {"reduction": c.pick(["Min", "Max", "Mul", "Add"])} if "Reduce" in c.op else {}
    c.call(input=c.of("T", s if given else [1] + s), communicator=made, group_assignment=c.feed([], "int32"), timeout_seconds=c.pick([0.0, 4.0]), **given)


@recipe("CollectiveAssignGroupV2")
def assign_group(c):
    groups, size = c.int(1, 4), c.int(1, 4)
    devices = c.rng.permutation(groups * size).reshape(groups, size)
    c.call(group_assignment=c.feed(devices, "int32"), device_index=c.feed(c.int(0, groups * size - 1), "int32"), base_key=c.feed(c.int(-3, 99), "int32"))


@recipe("CollectiveBcastSend", "CollectiveBcastSendV2")
def broadcast_send(c):
    s = c.shape(0, 3, empty=False)
    given = {} if c.op.endswith("V2") else {"shape": Shape(s)}
    c.call(input=c.of("T", s), **keys(c), **options(c), **given)


@recipe("CollectiveBcastRecv", "CollectiveBcastRecvV2")
def broadcast_receive(c):
    # There is no sender in a group of one.
    s = c.shape(0, 2)
    c.call(shape=c.feed(s, c.types["Tshape"]) if c.op.endswith("V2") else Shape(s), **keys(c), **options(c))
