"""Variables of both kinds: assignments, scatters, optimizers."""

import numpy as np

from case import EVERY, signature

from . import recipe
from .array import nd_updates, sliced_shape, strided


def ref_variable(c, value, dtype, initialised=True):
    """The reference of an initialized ref variable."""
    var = c.node("VariableV2", shape=list(value.shape), dtype=dtype)[0]
    if not initialised:
        return var
    return c.node("Assign", ref=var, value=c.feed(value, dtype))[0]


def variable(c, value, dtype, initialised=True):
    """An initialized resource variable. `c.after` makes later nodes wait for it."""
    shape = list(value.shape)
    handle = c.node("VarHandleOp", dtype=dtype, shape=shape, shared_name=f"v{len(c.after)}_{len(c.names)}")[0]
    if initialised:
        c.after.append(c.node("AssignVariableOp", resource=handle, value=c.feed(value, dtype))[0])
    return handle


def read(c, handle, dtype, after):
    return c.then(after, "ReadVariableOp", resource=handle, dtype=dtype)


def uninitialised(c):
    return c.chance(0.05)


@recipe("Assign", "AssignAdd", "AssignSub")
def assign(c):
    s = c.shape(0, 3)
    c.style = c.pick(["small", "whole"])
    ref = ref_variable(c, c.of("T", s), c.types["T"], initialised=not uninitialised(c))
    given = {} if c.op != "Assign" else {"validate_shape": c.chance(0.7)}
    c.call(ref=ref, value=c.of("T", s), **given)


@recipe("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def assign_variable(c):
    s = c.shape(0, 3)
    c.style = c.pick(["small", "whole"])
    handle = variable(c, c.of("dtype", s), c.types["dtype"], initialised=not uninitialised(c))
    op = c.call(resource=handle, value=c.of("dtype", s), **({"validate_shape": False} if c.op == "AssignVariableOp" else {}))[0]
    read(c, handle, c.types["dtype"], op)


@recipe("CountUpTo", "ResourceCountUpTo")
def count_up_to(c):
    value = np.array(c.int(0, 5))
    limit = c.int(0, 6)
    if c.op == "CountUpTo":
        c.call(ref=ref_variable(c, value, c.types["T"]), limit=limit)
    else:
        c.call(resource=variable(c, value, c.types["T"]), limit=limit, T=c.types["T"])


@recipe("DestroyResourceOp")
def destroy(c):
    handle = variable(c, c.values("float32", [2]), "float32", initialised=c.chance(0.7))
    op = c.call(resource=handle)[0]
    c.then(op, "VarIsInitializedOp", resource=handle)


@recipe("DestroyTemporaryVariable")
def destroy_temporary(c):
    s = c.shape(0, 2)
    t = c.types["T"]
    ref = c.node("TemporaryVariable", shape=s, dtype=t, var_name="x")[0]
    value = c.node("Assign", ref=ref, value=c.of("T", s), T=t)[0]
    c.call(ref=value, var_name="x")


@recipe("TemporaryVariable")
def temporary(c):
    s = c.shape(0, 2)
    ref = c.node(c.op, shape=s, dtype=c.types["dtype"], var_name="x")[0]
    value = c.node("Assign", ref=ref, value=c.of("dtype", s))[0]
    c.fetch(c.node("DestroyTemporaryVariable", ref=value, var_name="x")[0])


@recipe("DisableCopyOnRead")
def disable_copy(c):
    handle = variable(c, c.values("float32", [2]), "float32")
    op = c.call(resource=handle)[0]
    read(c, handle, "float32", op)


@recipe("GetSessionHandle")
def session_handle(c):
    handle = c.node(c.op, value=c.of("T", c.shape(0, 2)))[0]
    c.fetch(c.node("GetSessionTensor", handle=handle, dtype=c.types["T"])[0])


@recipe("GetSessionHandleV2")
def session_handle_v2(c):
    c.call(value=c.of("T", c.shape(0, 2)))


@recipe("GetSessionTensor")
def session_tensor(c):
    handle = c.node("GetSessionHandle", value=c.of("dtype", c.shape(0, 2)))[0]
    c.call(handle=handle, dtype=c.types["dtype"])


@recipe("DeleteSessionTensor")
def delete_session_tensor(c):
    handle = c.node("GetSessionHandle", value=c.values("float32", [2]))[0]
    c.call(handle=handle)


@recipe("IsResourceHandleRefCounting")
def ref_counting(c):
    c.call(handle=variable(c, c.values("float32", [2]), "float32"))


@recipe("IsVariableInitialized")
def is_initialized(c):
    s = c.shape(0, 2)
    c.call(ref=ref_variable(c, c.of("dtype", s), c.types["dtype"], initialised=c.chance(0.5)))


@recipe("VarIsInitializedOp")
def var_is_initialized(c):
    c.call(resource=variable(c, c.values("float32", [2]), "float32", initialised=c.chance(0.5)))


@recipe("ReadVariableOp")
def read_variable(c):
    c.call(resource=variable(c, c.of("dtype", c.shape()), c.types["dtype"], initialised=not uninitialised(c)), dtype=c.types["dtype"])


@recipe("VarHandleOp")
def var_handle(c):
    s, t = c.shape(0, 3), c.types["dtype"]
    handle = c.node(c.op, dtype=t, shape=s, shared_name="v")[0]
    op = c.node("AssignVariableOp", resource=handle, value=c.feed(c.of("dtype", s), t))[0]
    read(c, handle, t, op)


@recipe("_VarHandlesOp", "_ReadVariablesOp")
def var_handles(c):
    n = c.int(1, 3)
    kinds = [c.pick(EVERY) for _ in range(n)]
    shapes = [c.shape(0, 2) for _ in range(n)]
    handles = c.node("_VarHandlesOp", _name="handles", containers=[""] * n, shared_names=[f"v{i}" for i in range(n)], N=n, dtypes=kinds, shapes=shapes)
    done = [c.node("AssignVariableOp", resource=h, value=c.feed(c.values(t, s), t))[0] for h, t, s in zip(handles, kinds, shapes)]
    c.fetch(*c.node("_ReadVariablesOp", _name="read", _after=done, resources=handles, dtypes=kinds))


@recipe("Variable", "VariableV2")
def old_variable(c):
    s = c.shape(0, 3)
    ref = c.node(c.op, shape=s, dtype=c.types["dtype"])[0]
    c.fetch(c.node("Assign", ref=ref, value=c.of("dtype", s))[0])


@recipe("VariableShape")
def variable_shape(c):
    c.call(input=variable(c, c.values("float32", c.shape()), "float32", initialised=not uninitialised(c)))


@recipe("DebugGradientRefIdentity", "RefIdentity")
def ref_identity(c):
    c.call(input=ref_variable(c, c.of("T", c.shape(0, 3)), c.types["T"]))


@recipe("ResourceGather")
def resource_gather(c):
    s = c.shape(1, 3, empty=False)
    c.call(resource=variable(c, c.of("dtype", s), c.types["dtype"]), indices=c.rng.randint(0, s[0], size=c.shape(0, 2)), dtype=c.types["dtype"])


@recipe("ResourceGatherNd")
def resource_gather_nd(c):
    s = c.shape(1, 3, empty=False)
    depth = c.int(1, len(s))
    outer = c.shape(0, 2)
    idx = np.stack([c.rng.randint(0, d, size=outer) for d in s[:depth]], -1)
    c.call(resource=variable(c, c.of("dtype", s), c.types["dtype"]), indices=idx, dtype=c.types["dtype"])


def scatter_values(c, attr, s):
    n = c.int(0, 5)
    idx = c.rng.permutation(s[0])[:n] if c.op.endswith("Update") else c.rng.randint(0, s[0], size=n)
    style = "positive" if c.op.endswith("Div") else "small"
    updates = c.of(attr, [] if c.chance(0.15) else [len(idx)] + s[1:], style)
    return idx, updates


@recipe(*[f"Resource{x}" for x in "ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterSub ScatterUpdate".split()])
def resource_scatter(c):
    s = c.shape(1, 3, empty=False)
    handle = variable(c, c.of("dtype", s, "small"), c.types["dtype"])
    idx, updates = scatter_values(c, "dtype", s)
    op = c.call(resource=handle, indices=idx, updates=updates)[0]
    read(c, handle, c.types["dtype"], op)


@recipe(*"ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterSub ScatterUpdate".split())
def ref_scatter(c):
    s = c.shape(1, 3, empty=False)
    ref = ref_variable(c, c.of("T", s, "small"), c.types["T"])
    idx, updates = scatter_values(c, "T", s)
    c.call(ref=ref, indices=idx, updates=updates)


@recipe(*[f"{r}ScatterNd{x}" for r in ("", "Resource") for x in "Add Max Min Sub Update".split()])
def scatter_nd(c):
    s = c.shape(1, 3, empty=False)
    c.style = "small"
    t = c.types["T"]
    idx, u = nd_updates(c, s, c.op.endswith("Update"))
    if c.op.startswith("Resource"):
        handle = variable(c, c.of("T", s), t)
        op = c.call(ref=handle, indices=idx, updates=c.of("T", u))[0]
        read(c, handle, t, op)
    else:
        c.call(ref=ref_variable(c, c.of("T", s), t), indices=idx, updates=c.of("T", u))


@recipe("StridedSliceAssign", "ResourceStridedSliceAssign")
def strided_assign(c):
    s = c.shape(1, 4)
    b, e, t, masks = strided(c, s)
    value = c.of("T", sliced_shape(s, b, e, t, masks))
    if c.op.startswith("Resource"):
        handle = variable(c, c.of("T", s), c.types["T"])
        op = c.call(ref=handle, begin=b, end=e, strides=t, value=value, **masks)[0]
        read(c, handle, c.types["T"], op)
    else:
        c.call(ref=ref_variable(c, c.of("T", s), c.types["T"]), begin=b, end=e, strides=t, value=value, **masks)


SLOTS = ["var", "m", "v", "vhat", "accum", "accum_update", "gradient_accumulator", "gradient_squared_accumulator", "mg", "ms", "mom", "linear"]
OPTIMIZERS = """AdaMax Adadelta Adagrad AdagradDA AdagradV2 Adam AdamWithAmsgrad AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent
KerasMomentum Momentum PowerSign ProximalAdagrad ProximalGradientDescent RMSProp""".split()
NAMES = [f"{r}{s}Apply{o}" for r in ("", "Resource") for s in ("", "Sparse") for o in OPTIMIZERS]


def optimizer(c):
    t = c.types["T"]
    sparse = "SparseApply" in c.op
    resource = c.op.startswith("Resource")
    s = c.shape(1 if sparse else 0, 2, empty=False)
    n = c.int(0, s[0]) if sparse else 0
    given, slots = {}, []
    c.mode, c.tolerance = "value", 10.0
    for arg in signature(c.op).input_arg:
        name = arg.name
        if name in SLOTS:
            style = "small" if name in ("var", "m", "mom", "linear", "gradient_accumulator", "mg") else "positive"
            value = c.of("T", s, style)
            if name == "mg":
                value = (value * np.array(0.1, value.dtype)).astype(value.dtype)
            if name == "ms":
                value = (value + np.array(1, value.dtype)).astype(value.dtype)
            slots.append((variable if resource else ref_variable)(c, value, t))
            given[name] = slots[-1]
        elif name in ("grad", "delta"):
            given[name] = c.of("T", [n] + s[1:] if sparse else s, "small")
        elif name == "indices":
            given[name] = c.rng.permutation(s[0])[:n]
        elif name == "global_step":
            given[name] = np.array(c.int(1, 9))
        elif name == "lr_power":
            given[name] = c.pick([-0.5, -0.5, -0.7, 0.0])
        elif name in ("l1", "l2", "l2_shrinkage"):
            given[name] = c.pick([0.0, 0.01, 0.3])
        elif name == "epsilon":
            given[name] = c.pick([1e-3, 0.1])
        elif name in ("beta1_power", "beta2_power", "beta1", "beta2", "rho", "momentum", "beta"):
            given[name] = c.pick([0.9, 0.5, 0.99])
        else:
            given[name] = c.pick([0.1, 0.5, 1.0])
    out = c.call(**given)[0]
    if resource:
        for handle in slots:
            read(c, handle, t, out)
    else:
        for ref in slots[1:]:
            c.then(out, "Identity", input=ref)


recipe(*[n for n in NAMES if signature(n) is not None])(optimizer)


@recipe("SdcaOptimizer", "SdcaOptimizerV2")
def sdca(c):
    # Examples have features of their own: TensorFlow visits them in a random order.
    c.mode, c.tolerance, c.style = "norm", 16.0, "small"
    n = c.int(1, 4)
    loss = c.pick(["logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"])
    classes = loss in ("logistic_loss", "hinge_loss", "smooth_hinge_loss")
    labels = c.rng.randint(0, 2, size=n) if classes else c.rng.uniform(0.1, 3, size=n)
    groups = c.int(1, 2)
    wide = lambda k: c.rng.uniform(-1, 1, size=k).astype(np.float32)
    example, feature, values, known, weights = [], [], [], [], []
    for _ in range(groups):
        each = c.int(1, 3)
        ids = c.rng.permutation(20)[:each * n].astype(np.int64)
        example.append(np.repeat(np.arange(n), each).astype(np.int64))
        feature.append(ids)
        values.append(wide(each * n))
        known.append(np.sort(ids))
        weights.append(wide(each * n))
    dense = [wide(n * 2).reshape(1, 2 * n)] if n == 1 else []
    state = np.zeros([n, 4], np.float32)
    adaptive = {"adaptative" if c.op == "SdcaOptimizer" else "adaptive": False}
    c.call(sparse_example_indices=example, sparse_feature_indices=feature, sparse_feature_values=values[:c.int(0, groups)],
           dense_features=dense, example_weights=c.rng.uniform(0.5, 2, size=n).astype(np.float32),
           example_labels=labels.astype(np.float32), sparse_indices=known, sparse_weights=weights,
           dense_weights=[wide(d.shape[1]) for d in dense], example_state_data=state, loss_type=loss,
           l1=c.pick([0.0, 0.05]), l2=c.pick([0.5, 1.0]), num_loss_partitions=c.int(1, 2), num_inner_iterations=1, **adaptive)


@recipe("SdcaShrinkL1")
def shrink_l1(c):
    refs = [ref_variable(c, c.values("float32", c.shape(0, 2)), "float32") for _ in range(c.int(1, 3))]
    op = c.call(weights=refs, l1=c.pick([0.0, 0.5]), l2=1.0)[0]
    for ref in refs:
        c.then(op, "Identity", input=ref, T="float32")
