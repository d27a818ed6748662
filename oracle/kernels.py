"""The dtypes that TensorFlow's CPU kernels of an op support, by attribute."""

from tensorflow.python.framework import kernels

from case import EVERY, NAME_OF, QUANTIZED, signature

# The attribute that determines the dtype in counts of (op, dtype) pairs.
PRIMARY = ["T", "dtype", "Tparams", "Tvalues", "SrcT", "Tidx", "element_dtype", "elem_type", "key_dtype", "Tin", "Tkey", "Tkeys",
           "dt", "out_type", "Tcomplex", "Treal", "Tsplits", "Ta", "Tinput", "Tout", "tensor_type", "output_type"]


def cpu_kernels(op):
    """One dictionary for each kernel: type attribute -> dtypes."""
    found = []
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type != "CPU" or kernel.label:
            continue
        found.append({c.name: [NAME_OF.get(t) for t in c.allowed_values.list.type] for c in kernel.constraint})
    return found


def choices(op):
    """For each kernel of the op: attribute -> supported dtypes, in the order of the signature."""
    out = []
    for kernel in cpu_kernels(op) or [{}]:
        attrs = {}
        for attr in signature(op).attr:
            if attr.type != "type":
                continue
            declared = [NAME_OF.get(t) for t in attr.allowed_values.list.type]
            here = kernel.get(attr.name, declared or EVERY)
            # Quantized dtypes are called only where a kernel or a signature names them.
            attrs[attr.name] = [t for t in [*EVERY, *QUANTIZED] if t in here and t in (declared or here)]
        if all(attrs.values()):
            out.append(attrs)
    return out


def primary(op):
    names = [a.name for a in signature(op).attr if a.type == "type"]
    for name in PRIMARY:
        if name in names:
            return name
    return names[0] if names else None


def pairs(op, hold=None):
    """The (op, dtype) pairs: primary dtype -> the choices of kernels that support it. `hold` restricts attributes."""
    options = choices(op)
    if hold:
        options = [{a: [t for t in ts if t in hold.get(a, ts)] for a, ts in o.items()} for o in options]
        options = [o for o in options if all(o.values())]
    name = primary(op)
    if name is None:
        return {"-": options}
    out = {}
    for option in options:
        for t in option[name]:
            out.setdefault(t, []).append({**option, name: [t]})
    return out
