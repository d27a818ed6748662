"""Control flow, functions, constants."""

import numpy as np

from case import NUMBER_OF, Func, Shape, tensor_proto

from . import recipe
from .state import ref_variable


def function(c, name, inputs, outputs, nodes, returns):
    """Adds a function to the case. Nodes are (name, op, inputs, attrs)."""
    from case import set_attr, signature
    f = c.graph.library.function.add()
    f.signature.name = name
    for arg, t in inputs:
        f.signature.input_arg.add(name=arg, type=NUMBER_OF[t])
    for arg, t in outputs:
        f.signature.output_arg.add(name=arg, type=NUMBER_OF[t])
    for node, op, ins, attrs in nodes:
        n = f.node_def.add(name=node, op=op)
        n.input.extend(ins)
        kinds = {a.name: a.type for a in signature(op).attr}
        for key, value in attrs.items():
            set_attr(n.attr[key], kinds[key], value)
    for k, v in returns.items():
        f.ret[k] = v
    return Func(name)


def unary_function(c, name, op, t):
    return function(c, name, [("x", t)], [("y", t)], [("n", op, ["x"], {"T": t})], {"y": "n:y:0"})


def number(c):
    return c.pick(["float32", "float64", "int32", "int64"])


@recipe("Const")
def const(c):
    value = c.of("dtype", c.shape())
    c.call(value=tensor_proto(value, c.types["dtype"]), dtype=c.types["dtype"])


@recipe("NoOp", "ControlTrigger")
def nothing(c):
    c.call()


@recipe("Placeholder", "PlaceholderV2")
def placeholder(c):
    s = c.shape(0, 3)
    x = c.node(c.op, dtype=c.types["dtype"], shape=[None if c.chance(0.3) else d for d in s])[0]
    c.feeds[x.node] = (c.of("dtype", s), c.types["dtype"])
    c.fetch(c.node("Identity", input=x)[0])
    c.may_mutate = False


@recipe("PlaceholderWithDefault")
def with_default(c):
    s = c.shape(0, 3)
    c.call(input=c.of("dtype", s), shape=Shape(s) if c.chance(0.5) else Shape(None))


@recipe("Switch", "RefSwitch")
def switch(c):
    pred = c.values("bool", [])
    data = ref_variable(c, c.of("T", c.shape(0, 2)), c.types["T"]) if c.op.startswith("Ref") else c.of("T", c.shape(0, 2))
    out = c.node(c.op, data=data, pred=pred)
    c.fetch(out[int(bool(pred))])


@recipe("Merge", "RefMerge")
def merge(c):
    pred = c.feed(c.values("bool", []), "bool")
    t = c.types["T"]
    if c.op.startswith("Ref"):
        halves = c.node("RefSwitch", data=ref_variable(c, c.of("T", c.shape(0, 2)), t), pred=pred)
    else:
        halves = c.node("Switch", data=c.feed(c.of("T", c.shape(0, 2)), t), pred=pred)
    c.call(inputs=halves)


@recipe("_SwitchN")
def switch_n(c):
    n = c.int(1, 3)
    i = c.int(0, n - 1)
    out = c.node(c.op, data=c.of("T", c.shape(0, 2)), output_index=i, num_outs=n)
    c.fetch(out[i])
    c.may_mutate = False


@recipe("RefSelect")
def ref_select(c):
    n = c.int(1, 3)
    s = c.shape(0, 2)
    c.call(index=c.int(0, n - 1), inputs=[ref_variable(c, c.of("T", s), c.types["T"]) for _ in range(n)])


@recipe("Enter", "Exit", "NextIteration", "LoopCond")
def loop(c):
    """A counter up to a limit, and a loop variable of the op's dtype that does not change."""
    t = c.types.get("T", "float32")
    enter = lambda x, constant=False: c.node("Enter", data=x, frame_name="f", is_constant=constant, parallel_iterations=c.pick([1, 10]))[0]
    i, x = enter(c.const(0, "int32")), enter(c.feed(c.values(t, c.shape(0, 2)), t))
    limit = enter(c.feed(c.int(0, 4), "int32"), True)

    def merged(first, name):
        m = c.graph.node.add(name=c._fresh(name), op="Merge")
        m.attr["T"].type = NUMBER_OF[first.dtype]
        m.attr["N"].i = 2
        m.input.extend([first.name, name + "_next"])
        from case import Ref
        return Ref(m.name, 0, first.dtype)
    mi, mx = merged(i, "loop_i"), merged(x, "loop_x")
    cond = c.node("LoopCond", input=c.node("Less", x=mi, y=limit)[0])[0]
    (i_out, i_body), (x_out, x_body) = c.node("Switch", data=mi, pred=cond), c.node("Switch", data=mx, pred=cond)
    one = c.node("Const", _after=[c.node("Identity", input=i_body)[0]], value=tensor_proto(np.array(1, np.int32)), dtype="int32")[0]
    c.node("NextIteration", _name="loop_i_next", data=c.node("AddV2", x=i_body, y=one)[0])
    c.node("NextIteration", _name="loop_x_next", data=x_body)
    c.fetch(c.node("Exit", data=i_out)[0], c.node("Exit", data=x_out)[0])


@recipe("RefEnter", "RefExit", "RefNextIteration")
def ref_loop(c):
    t = c.types["T"]
    entered = c.node("RefEnter", data=ref_variable(c, c.of("T", c.shape(0, 2)), t), frame_name="f", is_constant=c.op == "RefEnter")[0]
    c.fetch(c.node("RefExit", data=entered)[0])


@recipe("If", "StatelessIf", "_If")
def if_(c):
    t = number(c)
    then, other = unary_function(c, "then", "Neg", t), unary_function(c, "other", "Square", t)
    kind = c.pick(["bool", "int32", "float32", "string"])
    cond = c.values(kind, c.pick([[], [], [2], [0]]), "whole")
    c.call(cond=c.feed(cond, kind), input=[c.values(t, c.shape(0, 2), "small")], Tout=[t], then_branch=then, else_branch=other)


@recipe("Case", "StatelessCase")
def case_(c):
    t = number(c)
    branches = [unary_function(c, f"b{i}", op, t) for i, op in enumerate(["Neg", "Square", "Abs"])]
    c.call(branch_index=c.int(-1, 4), input=[c.values(t, c.shape(0, 2), "small")], Tout=[t], branches=branches)


@recipe("While", "StatelessWhile", "_While")
def while_(c):
    t = number(c)
    cond = function(c, "cond", [("x", t), ("n", "int32")], [("more", "bool")],
                    [("zero", "Const", [], {"value": tensor_proto(np.array(0, np.int32)), "dtype": "int32"}), ("g", "Greater", ["n", "zero:output:0"], {"T": "int32"})], {"more": "g:z:0"})
    body = function(c, "body", [("x", t), ("n", "int32")], [("x2", t), ("n2", "int32")],
                    [("one", "Const", [], {"value": tensor_proto(np.array(1, np.int32)), "dtype": "int32"}), ("s", "Sub", ["n", "one:output:0"], {"T": "int32"}),
                     ("y", "AddV2", ["x", "x"], {"T": t})], {"x2": "y:z:0", "n2": "s:z:0"})
    c.call(input=[c.values(t, c.shape(0, 2), "small"), c.feed(c.int(0, 4), "int32")], cond=cond, body=body)


@recipe("For")
def for_(c):
    t = number(c)
    body = function(c, "body", [("i", "int32"), ("x", t)], [("y", t)], [("n", "AddV2", ["x", "x"], {"T": t})], {"y": "n:z:0"})
    c.call(start=c.int(-2, 2), limit=c.int(-2, 5), delta=c.pick([1, 2, -1]), input=[c.values(t, c.shape(0, 2), "small")], body=body)


@recipe("PartitionedCall", "StatefulPartitionedCall")
def call(c):
    t = number(c)
    c.call(args=[c.values(t, c.shape(0, 2), "small")], Tout=[t], f=unary_function(c, "f", c.pick(["Neg", "Square"]), t))


@recipe("RemoteCall")
def remote_call(c):
    t = number(c)
    device = c.const("/job:localhost/replica:0/task:0/device:CPU:0", "string")
    c.call(target=device, args=[c.values(t, c.shape(0, 2), "small")], Tout=[t], f=unary_function(c, "f", c.pick(["Neg", "Square"]), t))


@recipe("_Arg", "_Retval")
def arg(c):
    t = c.types["T"]
    f = function(c, "f", [("x", t)], [("y", t)], [("n", "Identity", ["x"], {"T": t})], {"y": "n:output:0"})
    c.fetch(*c.node("PartitionedCall", args=[c.feed(c.of("T", c.shape(0, 2)), t)], Tout=[t], f=f))


@recipe("ToBool")
def to_bool(c):
    c.call(input=c.of("T", c.pick([[], [], [2], [0]]), "whole"))


@recipe("DeviceIndex")
def device_index(c):
    c.call(device_names=c.pick([["CPU"], ["GPU", "CPU"], ["TPU"], []]))


@recipe("FakeParam")
def fake_param(c):
    c.mode = "shape"
    c.call(shape=c.pick([c.shape(0, 2), [None, 2]]))


@recipe("HostConst")
def host_const(c):
    c.call(value=tensor_proto(c.of("dtype", c.shape()), c.types["dtype"]), dtype=c.types["dtype"])


@recipe("IsTensorFloat32Enabled")
def tensor_float(c):
    # It does nothing on a CPU.
    c.mode = "shape"
    c.call()


@recipe("Abort")
def abort(c):
    # In the branch that is not taken: in the other one, TensorFlow crashes.
    data = c.feed(c.values("float32", c.shape(0, 2)), "float32")
    taken, dead = c.node("Switch", data=data, pred=c.feed(False, "bool"))
    c.targets.append(c.node("Abort", _after=c.node("Identity", input=dead))[0].node)
    c.fetch(*c.node("Identity", input=taken))
    c.may_mutate = False


@recipe("_Send", "_Recv", "_HostSend", "_HostRecv")
def send_and_receive(c):
    t = c.types.get("T") or c.types["tensor_type"]
    kind = "_Host" if c.op.startswith("_Host") else "_"
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    way = {"send_device": cpu, "recv_device": cpu, "send_device_incarnation": c.int(1, 9), "client_terminated": False}
    value = c.feed(c.values(t, c.shape(0, 3)), t)
    sent = c.node(f"{kind}Send", _name="send", tensor=value, T=t, tensor_name="edge", **way)[0]
    c.targets.append(sent.node)
    c.fetch(*c.node(f"{kind}Recv", _name="receive", tensor_type=t, tensor_name="edge", **way))
