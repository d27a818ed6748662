"""`tf.custom_gradient` and `tf.grad_pass_through`."""

import functools

from ferroflow.python.framework import ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("custom_gradient")
def custom_gradient(f=None):
    """A decorator for a function that returns (its results, a function of their gradients)."""
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        return _call(f, args, kwargs)
    return decorated


def _call(f, args, kwargs):
    if kwargs:
        raise ValueError("The custom_gradient decorator currently supports keywords arguments "
                         "only when eager execution is enabled.")
    args = nest.map_structure(ops.convert_to_tensor, args)
    result, grad_fn = f(*args)
    flat_args = nest.flatten(args)
    flat_result = [ops.convert_to_tensor(x) for x in nest.flatten(result)]

    def gradient(op, *grads):
        found = nest.flatten(grad_fn(*grads[:len(flat_result)]))
        if len(found) != len(flat_args):
            raise ValueError("custom_gradient function expected to return %d gradients, but "
                             "returned %d instead." % (len(flat_args), len(found)))
        return [None] * len(flat_result) + found

    # An IdentityN of the results and the inputs carries the gradient function.
    name = "CustomGradient-%s" % ops.uid()
    ops.RegisterGradient(name)(gradient)
    with ops.get_default_graph().gradient_override_map({"IdentityN": name}):
        outputs = gen_ops.IdentityN(flat_result + flat_args)
    return nest.pack_sequence_as(result, outputs[:len(flat_result)])


@export("grad_pass_through")
def grad_pass_through(f):
    """A decorator that makes the gradient of `f` the identity."""
    @custom_gradient
    def identity_gradient(*args, **kwargs):
        return f(*args, **kwargs), lambda *grads: grads[0] if len(grads) == 1 else grads
    return identity_gradient
