"""Queues, barriers, accumulators, stages, mutexes."""

import numpy as np

from case import EVERY, STRING, array

from . import recipe

QUEUES = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"]
OPS = ["QueueClose", "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueEnqueue", "QueueEnqueueMany", "QueueIsClosed", "QueueSize"]


class Queue:
    def __init__(self, c, op, v2):
        self.c, self.s = c, "V2" if v2 else ""
        self.kinds = [c.pick(EVERY) for _ in range(c.int(1, 2))]
        self.shapes = [c.shape(0, 2, empty=False) for _ in self.kinds]
        given = {"capacity": 10}
        self.priority = op == "PriorityQueue"
        if op == "RandomShuffleQueue":
            given |= dict(seed=c.int(1, 99), seed2=c.int(1, 99), min_after_dequeue=0)
        self.handle = c.node(op + self.s, component_types=self.kinds, shapes=self.shapes, **given)[0]
        self.last, self.n = [], 0
        self.types = (["int64"] if self.priority else []) + self.kinds

    def op(self, name, **given):
        out = self.c.node(name + self.s, _after=self.last, handle=self.handle, **given)
        self.last = [out[0]]
        return out

    def enqueue(self, many=0):
        c = self.c
        lead = [many] if many else []
        values = [c.feed(c.values(t, lead + s), t) for t, s in zip(self.kinds, self.shapes)]
        if self.priority:
            values = [c.feed(c.rng.permutation(20)[:many] if many else c.int(0, 20), "int64")] + values
        self.op("QueueEnqueueMany" if many else "QueueEnqueue", components=values)
        self.n += many or 1


@recipe(*QUEUES, *[q + "V2" for q in QUEUES], *OPS, *[o + "V2" for o in OPS])
def queue(c):
    v2 = c.op.endswith("V2")
    name = c.op.removesuffix("V2")
    q = Queue(c, name if name in QUEUES else c.pick(QUEUES), v2)
    # Enqueue all elements at once: a step may run several enqueues in any order.
    q.enqueue(c.int(2, 4))
    if c.chance(0.5) or name == "QueueEnqueue":
        q.enqueue()
    closed = name in ("QueueClose", "QueueIsClosed", "QueueDequeueUpTo") and c.chance(0.7)
    if closed:
        q.op("QueueClose", cancel_pending_enqueues=c.chance(0.3))
    if name == "QueueSize":
        return c.fetch(*q.op("QueueSize"))
    if name == "QueueIsClosed":
        return c.fetch(*q.op("QueueIsClosed"))
    if name == "QueueDequeueUpTo":
        n = c.int(1, q.n + (2 if closed else 0))
        return c.fetch(*q.op("QueueDequeueUpTo", n=c.feed(n, "int32"), component_types=q.types))
    if name == "QueueDequeueMany" or (name in QUEUES and c.chance(0.5)):
        return c.fetch(*q.op("QueueDequeueMany", n=c.feed(c.int(0, q.n + (1 if closed else 0)), "int32"), component_types=q.types))
    c.fetch(*q.op("QueueDequeue", component_types=q.types))


@recipe("FakeQueue")
def fake_queue(c):
    q = Queue(c, "FIFOQueue", True)
    fake = c.node("FakeQueue", resource=q.handle)[0]
    c.fetch(*c.node("QueueSize", handle=fake))


@recipe("Barrier", "BarrierClose", "BarrierIncompleteSize", "BarrierInsertMany", "BarrierReadySize", "BarrierTakeMany")
def barrier(c):
    c.may_mutate = False
    kinds = [c.pick(EVERY) for _ in range(2)]
    shapes = [c.shape(0, 1, empty=False) for _ in kinds]
    handle = c.node("Barrier", component_types=kinds, shapes=shapes)[0]
    n = c.int(1, 3)
    keys = array([f"k{i}" for i in range(n)], STRING)
    last = []
    for i, (t, s) in enumerate(zip(kinds, shapes)):
        k = n if i == 0 or c.op == "BarrierTakeMany" else c.int(0, n)
        last = [c.node("BarrierInsertMany", _after=last, handle=handle, keys=c.feed(keys[:k], STRING), values=c.feed(c.values(t, [k] + s), t), component_index=i)[0]]
    if c.op == "BarrierClose":
        last = [c.node(c.op, _after=last, handle=handle)[0]]
    if c.op == "BarrierTakeMany":
        take = c.int(1, n)
        return c.fetch(*c.node(c.op, _after=last, handle=handle, num_elements=c.feed(take, "int32"), component_types=kinds))
    c.fetch(*c.node("BarrierReadySize", _after=last, handle=handle), *c.node("BarrierIncompleteSize", _after=last, handle=handle))


ACC = ["AccumulatorApplyGradient", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep", "AccumulatorTakeGradient"]


@recipe(*ACC, *["Resource" + a for a in ACC], "ConditionalAccumulator", "ResourceConditionalAccumulator", hold={"dtype": ["half", "float32", "float64"]})
def accumulator(c):
    # An invalid step could wait forever for gradients.
    c.may_mutate = False
    r = "Resource" if c.op.startswith("Resource") else ""
    t = c.types.get("dtype", "float32")
    s = c.shape(0, 2, empty=False)
    handle = c.node(r + "ConditionalAccumulator", dtype=t, shape=s, reduction_type=c.pick(["MEAN", "SUM"]))[0]
    last, name = [], c.op.removeprefix("Resource")
    if name == "AccumulatorSetGlobalStep":
        last = [c.node(c.op, handle=handle, new_global_step=c.feed(c.int(0, 2), "int64"))[0]]
    n = c.int(1, 3)
    for _ in range(n):
        last = [c.node(r + "AccumulatorApplyGradient", _after=last, handle=handle, local_step=c.feed(c.int(2, 4), "int64"), gradient=c.feed(c.values(t, s, "small"), t))[0]]
    if name in ("AccumulatorTakeGradient", "ConditionalAccumulator", "AccumulatorApplyGradient"):
        return c.fetch(*c.node(r + "AccumulatorTakeGradient", _after=last, handle=handle, num_required=c.feed(c.int(1, n), "int32"), dtype=t))
    c.fetch(*c.node(r + "AccumulatorNumAccumulated", _after=last, handle=handle))


@recipe("SparseConditionalAccumulator", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient", hold={"dtype": ["half", "float32", "float64"]})
def sparse_accumulator(c):
    c.may_mutate = False
    t = c.types["dtype"]
    s = [c.int(2, 4)] + c.shape(0, 1, empty=False)
    handle = c.node("SparseConditionalAccumulator", dtype=t, shape=s, reduction_type=c.pick(["MEAN", "SUM"]))[0]
    last, n = [], c.int(1, 3)
    for _ in range(n):
        k = c.int(1, s[0])
        idx = np.sort(c.rng.permutation(s[0])[:k])
        last = [c.node("SparseAccumulatorApplyGradient", _after=last, handle=handle, local_step=c.feed(0, "int64"), gradient_indices=c.feed(idx, "int64"),
                       gradient_values=c.feed(c.values(t, [k] + s[1:], "small"), t), gradient_shape=c.feed(s, "int64"), has_known_shape=c.chance(0.5))[0]]
    c.fetch(*c.node("SparseAccumulatorTakeGradient", _after=last, handle=handle, num_required=c.feed(c.int(1, n), "int32"), dtype=t))


@recipe("Stage", "StageClear", "StagePeek", "StageSize", "Unstage")
def stage(c):
    c.may_mutate = c.op == "StageSize"
    kinds = [c.pick(EVERY) for _ in range(c.int(1, 2))]
    common = dict(dtypes=kinds, shared_name="s")
    last, n = [], c.int(1, 3)
    for _ in range(n):
        values = [c.feed(c.values(t, c.shape(0, 2)), t) for t in kinds]
        last = [c.node("Stage", _after=last, values=values, shared_name="s")[0]]
    if c.op == "StageClear":
        last = [c.node(c.op, _after=last, **common)[0]]
    if c.op == "StagePeek":
        return c.fetch(*c.node(c.op, _after=last, index=c.feed(c.int(0, n - 1), "int32"), **common))
    if c.op in ("Unstage", "Stage"):
        return c.fetch(*c.node("Unstage", _after=last, **common))
    c.fetch(*c.node("StageSize", _after=last, **common))


MAPS = ["Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey"]


@recipe(*["Map" + m for m in MAPS], *["OrderedMap" + m for m in MAPS])
def map_stage(c):
    c.may_mutate = False
    prefix = "OrderedMap" if c.op.startswith("Ordered") else "Map"
    name = c.op.removeprefix(prefix)
    kinds = [c.pick(EVERY) for _ in range(2)]
    common = dict(dtypes=kinds, shared_name="m")
    last = []
    keys = [1] if name == "UnstageNoKey" and prefix == "Map" else c.rng.permutation(5)[:c.int(1, 3)].tolist()
    every = c.feed([0, 1], "int32")
    for k in keys:
        part = name == "IncompleteSize" and c.chance(0.5)
        values = [c.feed(c.values(t, c.shape(0, 2)), t) for t in (kinds[:1] if part else kinds)]
        last = [c.node(prefix + "Stage", _after=last, key=c.feed(k, "int64"), indices=c.feed([0] if part else [0, 1], "int32"), values=values, **common)[0]]
    if name == "Clear":
        last = [c.node(c.op, _after=last, **common)[0]]
    if name in ("Peek", "Unstage", "Stage"):
        op = prefix + ("Unstage" if name == "Stage" else name)
        return c.fetch(*c.node(op, _after=last, key=c.feed(c.pick(keys), "int64"), indices=every, **common))
    if name == "UnstageNoKey":
        return c.fetch(*c.node(c.op, _after=last, indices=every, **common))
    c.fetch(*c.node(prefix + "Size", _after=last, **common), *c.node(prefix + "IncompleteSize", _after=last, **common))


@recipe("MutexV2", "MutexLock", "ConsumeMutexLock")
def mutex(c):
    m = c.node("MutexV2", shared_name="m")[0]
    lock = c.node("MutexLock", mutex=m)[0]
    c.targets.append(c.node("ConsumeMutexLock", mutex_lock=lock)[0].node)
