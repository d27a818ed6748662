"""`tf.custom_gradient` and `tf.grad_pass_through`."""

import functools
import inspect

from ferroflow.python.framework import ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables as variables_lib
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
    before = _variables()
    result, grad_fn = f(*args)
    if any(not resource_variable_ops.is_resource_variable(v) for v in _variables() - before):
        raise TypeError("All variables used by a function wrapped with @custom_gradient must be "
                        "`ResourceVariable`s. Ensure that no `variable_scope` is created with "
                        "`use_resource=False`.")
    flat_args = nest.flatten(args)
    flat_result = [ops.convert_to_tensor(x) for x in nest.flatten(result)]
    used = _variables_between(flat_args, flat_result)
    if used and not _takes_variables(grad_fn):
        raise TypeError("@tf.custom_gradient grad_fn must accept keyword argument 'variables', "
                        "since function uses variables: {}".format(used))

    def gradient(op, *grads):
        grads = grads[:len(flat_result)]
        by_variables = []
        if used:
            by_args, by_variables = grad_fn(*grads, variables=used)
            if len(by_variables) != len(used):
                raise ValueError("Must return gradient for each variable from @custom_gradient "
                                 "grad_fn.")
        else:
            by_args = grad_fn(*grads)
        found = nest.flatten(by_args)
        if len(found) != len(flat_args):
            raise ValueError("custom_gradient function expected to return %d gradients, but "
                             "returned %d instead." % (len(flat_args), len(found)))
        return [None] * len(flat_result) + found + list(by_variables)

    # An IdentityN of the results and the inputs carries the gradient function.
    name = "CustomGradient-%s" % ops.uid()
    ops.RegisterGradient(name)(gradient)
    tensors = flat_result + flat_args + used
    with ops.get_default_graph().gradient_override_map({"IdentityN": name}):
        outputs = gen_ops.IdentityN(tensors)
    for x in tensors:
        # TensorFlow reads the variables once more.
        ops.convert_to_tensor(x)
    return nest.pack_sequence_as(result, outputs[:len(flat_result)])


def _variables():
    scope = variable_scope.get_variable_scope()
    return set(scope.global_variables() + scope.local_variables())


def _takes_variables(grad_fn):
    parameters = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _variables_between(args, results):
    """The trainable variables that the results are computed from, without those behind `args`."""
    # TensorFlow walks back from copies of the results, which stay in the graph.
    seen, todo = set(args), [gen_ops.Identity(x) for x in results]
    handles = set()
    while todo:
        tensor = todo.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor.op.type == "VarHandleOp":
            handles.add(tensor)
        todo.extend(tensor.op.inputs)
    if not handles:
        return []
    return [v for v in variables_lib.global_variables()
            if v.trainable and resource_variable_ops.is_resource_variable(v) and v.handle in handles]


@export("grad_pass_through")
def grad_pass_through(f):
    """A decorator that makes the gradient of `f` the identity."""
    @custom_gradient
    def identity_gradient(*args, **kwargs):
        def gradient(*grads, variables=None):
            passed = grads[0] if len(grads) == 1 else grads
            return passed if variables is None else (passed, [None] * len(variables))
        return f(*args, **kwargs), gradient
    return identity_gradient
