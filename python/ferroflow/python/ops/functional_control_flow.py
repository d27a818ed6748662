"""Conditionals and loops whose branches and bodies are functions: If, Case and While."""

from ferroflow.python.framework import func_graph
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_context
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.util import nest


def _flat(structure):
    """The leaves of a result as tensors; an operation counts as nothing."""
    tensors = []
    for leaf in nest.flatten(structure, expand_composites=True):
        if isinstance(leaf, ops.Operation) or leaf is None:
            continue
        tensors.append(ops.convert_to_tensor(tensor_array_ops.flow_of(leaf)))
    return tensors


def _packed(structure, tensors, op):
    """The outputs of an op in the structure that a branch returned."""
    tensors = list(tensors)
    leaves = []
    for leaf in nest.flatten(structure, expand_composites=True):
        if isinstance(leaf, ops.Operation) or leaf is None:
            leaves.append(op)
        else:
            leaves.append(tensor_array_ops.with_flow(leaf, tensors.pop(0)))
    return nest.pack_sequence_as(structure, leaves, expand_composites=True)


def _branch(function, name):
    """A function's body built in a graph of its own: (the graph, its result, the tensors of it)."""
    outer = ops.get_default_graph()
    body = func_graph.FuncGraph("%s_%d" % (name.rstrip("/").replace("/", "_"), ops.uid()), outer)
    with body.as_default():
        result = nest.map_structure(control_flow_context.as_tensor_if_variable, function())
        if result is None:
            raise ValueError("a branch must have a return value.")
        return body, result, [body._adopt(t) for t in _flat(result)]


def _same_captures(bodies):
    """Gives all bodies the same arguments, in the same order; returns the outer tensors."""
    union = []
    for body in bodies:
        for tensor, _ in body.captures:
            if not any(tensor is known for known in union):
                union.append(tensor)
    for body in bodies:
        body.captures = [(t, body.capture(t)) for t in union]
    return union


def _add(body, outputs):
    graph = ops.get_default_graph()
    graph._add_function_def(body.finish(outputs))
    func_graph.bodies(graph)[body.name] = body
    return body.name


def _has_state(bodies):
    return any(op._is_stateful for body in bodies for op in body.get_operations()
               if op.type != "Placeholder")


def cond(pred, true_fn, false_fn, strict, name):
    """The op If, or StatelessIf where no branch has state."""
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool", pred)
    with ops.name_scope(name, "cond", [pred]) as scope:
        pred = ops.convert_to_tensor(pred)
        results = [_branch(f, scope + what) for f, what in ((true_fn, "true"),
                                                            (false_fn, "false"))]
        (true_body, original, true_out), (false_body, other, false_out) = results
        nest.assert_same_structure(original, other, check_types=False, expand_composites=True)
        _check_types(true_out, false_out)
        outputs, op = add_if(pred, [true_body, false_body], [true_out, false_out], scope)
        result = _packed(original, outputs, op)
        if not strict and isinstance(result, (list, tuple)) and len(result) == 1:
            return result[0]
        return result


def add_if(pred, bodies, outputs, name):
    """The op If of two bodies and the tensors that they return: (its outputs, the op)"""
    inputs = _same_captures(bodies)
    op_type = gen_ops.If if _has_state(bodies) else gen_ops.StatelessIf
    names = [_add(body, out) for body, out in zip(bodies, outputs)]
    found = op_type(pred, inputs, [t.dtype for t in outputs[0]], names[0], names[1],
                    output_shapes=_common_shapes(outputs), name=name)
    return _results(found, outputs[0])


def add_case(branch_index, bodies, outputs, name):
    """The op Case of bodies and the tensors that they return: (its outputs, the op)"""
    inputs = _same_captures(bodies)
    op_type = gen_ops.Case if _has_state(bodies) else gen_ops.StatelessCase
    names = [_add(body, out) for body, out in zip(bodies, outputs)]
    found = op_type(branch_index, inputs, [t.dtype for t in outputs[0]], names,
                    output_shapes=_common_shapes(outputs), name=name)
    return _results(found, outputs[0])


def add_call(body, outputs):
    """The op PartitionedCall of a body and the tensors that it returns: its outputs."""
    kinds = [t.dtype.base_dtype for t in outputs]
    op_type = "StatefulPartitionedCall" if _has_state([body]) else "PartitionedCall"
    inputs = [outside for outside, _ in body.captures]
    op = ops.apply_op(op_type, None, [inputs], {"Tout": kinds, "f": _add(body, outputs)})
    for made, inside in zip(op.outputs, outputs):
        made.set_shape(inside.get_shape())
    return op.outputs


def add_while(cond, body, start, shapes, parallel_iterations, name):
    """The op While of two bodies, each with the tensors that it returns: its outputs."""
    op_type = gen_ops.While if _has_state([cond[0], body[0]]) else gen_ops.StatelessWhile
    names = [_add(*cond), _add(*body)]
    return op_type(start, names[0], names[1], output_shapes=shapes,
                   parallel_iterations=parallel_iterations, name=name)


def _results(found, wanted):
    """(the outputs of a functional op as tensors with shapes, the op)"""
    if isinstance(found, ops.Operation):
        return [], found
    op = found[0].op
    return [array_ops.identity(t) for t in found[:len(wanted)]], op


def _check_types(true_out, false_out):
    if len(true_out) != len(false_out):
        raise ValueError("true_fn and false_fn must return the same number of results")
    for a, b in zip(true_out, false_out):
        if a.dtype.base_dtype != b.dtype.base_dtype:
            raise TypeError("true_fn and false_fn arguments to tf.cond must have the same number, "
                            "type, and overall structure of return values.")


def _common_shapes(branches):
    shapes = []
    for tensors in zip(*branches):
        dims = [t.get_shape() for t in tensors]
        if any(d.ndims is None or d.ndims != dims[0].ndims for d in dims):
            shapes.append(tensor_shape.unknown_shape())
            continue
        columns = zip(*(d.as_list() for d in dims))
        shapes.append(tensor_shape.TensorShape(
            [c[0] if all(x == c[0] for x in c) else None for c in columns]))
    return shapes


def indexed_case(branch_index, functions, name):
    """The op Case, or StatelessCase where no branch has state."""
    with ops.name_scope(name, "switch_case", [branch_index]) as scope:
        branch_index = ops.convert_to_tensor(branch_index, name="branch_index")
        branches = [_branch(f, "%sbranch%d" % (scope, i)) for i, f in enumerate(functions)]
        for _, other, tensors in branches[1:]:
            nest.assert_same_structure(branches[0][1], other, check_types=False,
                                       expand_composites=True)
            _check_types(branches[0][2], tensors)
        bodies = [b for b, _, _ in branches]
        outputs, op = add_case(branch_index, bodies, [t for _, _, t in branches], scope)
        return _packed(branches[0][1], outputs, op)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10,
               maximum_iterations=None, name=None, return_same_structure=True, back_prop=True):
    """The op While, or StatelessWhile where neither function has state."""
    original = loop_vars
    loop_vars = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    with ops.name_scope(name, "while", nest.flatten(loop_vars)) as scope:
        if maximum_iterations is not None:
            limit = ops.convert_to_tensor(maximum_iterations, name="maximum_iterations")
            cond, body, loop_vars = _limited(cond, body, loop_vars, limit)
            if shape_invariants is not None:
                shape_invariants = [tensor_shape.TensorShape([])] + list(shape_invariants)
        converted = nest.map_structure(_as_variable, loop_vars)
        start = [ops.convert_to_tensor(tensor_array_ops.flow_of(v))
                 for v in nest.flatten(converted, expand_composites=True)]
        shapes = [t.get_shape() for t in start]
        if shape_invariants is not None:
            shapes = [tensor_shape.as_shape(s) for s in nest.flatten(shape_invariants)]
        graphs = [_loop_function(f, converted, start, shapes, scope + what)
                  for f, what in ((cond, "cond"), (body, "body"))]
        (cond_graph, cond_result), (body_graph, body_result) = graphs
        with cond_graph.as_default():
            cond_out = [cond_graph._adopt(ops.convert_to_tensor(cond_result))]
        with body_graph.as_default():
            flat_result = list(body_result) if isinstance(body_result, (list, tuple)) else [
                body_result]
            body_out = [body_graph._adopt(t) for t in _flat(flat_result)]
        if len(body_out) != len(start):
            raise ValueError("Number of inputs and outputs of body must match loop_vars: %d, %d" %
                             (len(start), len(body_out)))
        captured = _same_captures([cond_graph, body_graph])
        body_out += [inner for _, inner in body_graph.captures]
        found = add_while((cond_graph, cond_out), (body_graph, body_out), start + captured,
                          shapes + [t.get_shape() for t in captured], parallel_iterations, scope)
        outputs = [array_ops.identity(t) for t in found[:len(start)]]
        leaves = [tensor_array_ops.with_flow(o, t) for o, t in zip(
            nest.flatten(converted, expand_composites=True), outputs)]
        result = nest.pack_sequence_as(converted, leaves, expand_composites=True)
        if maximum_iterations is not None:
            result = result[1:]
        if not return_same_structure and len(result) == 1:
            return result[0]
        return type(original)(result) if isinstance(original, tuple) and not hasattr(
            original, "_fields") else result


def _as_variable(value):
    if isinstance(value, tensor_array_ops.TensorArray) or nest._composite_parts(value):
        return value
    return ops.convert_to_tensor(value)


def _limited(cond, body, loop_vars, limit):
    """The same loop with a counter that stops it."""
    def counted_body(i, *args):
        result = body(*args)
        result = list(result) if isinstance(result, (list, tuple)) else [result]
        return [i + 1] + result

    counter = ops.convert_to_tensor(0, dtype=limit.dtype, name="loop_counter")
    return (lambda i, *args: gen_ops.LogicalAnd(i < limit, cond(*args)), counted_body,
            [counter] + loop_vars)


def _loop_function(function, structure, start, shapes, name):
    outer = ops.get_default_graph()
    body = func_graph.FuncGraph("%s_%d" % (name.rstrip("/").replace("/", "_"), ops.uid()), outer)
    with body.as_default():
        arguments = [body.add_input(t.dtype, s, "arg_%d" % i)
                     for i, (t, s) in enumerate(zip(start, shapes))]
        leaves = [tensor_array_ops.with_flow(o, t) for o, t in zip(
            nest.flatten(structure, expand_composites=True), arguments)]
        packed = nest.pack_sequence_as(structure, leaves, expand_composites=True)
        result = nest.map_structure(control_flow_context.as_tensor_if_variable,
                                    function(*packed))
        return body, result
