"""Python functions of datasets as functions of the graph."""

import re

from ferroflow.python.data.util import nest, structure
from ferroflow.python.framework import func_graph, ops


class StructuredFunction:
    """A Python function, traced once with placeholders for an element."""

    def __init__(self, func, transformation, element, *more_elements):
        outer = ops.get_default_graph()
        base = re.sub(r"[^A-Za-z0-9_]", "", getattr(func, "__name__", None) or type(func).__name__)
        name = "__inference_Dataset_%s_%s_%d" % (transformation, base, ops.uid())
        body = func_graph.FuncGraph(name, outer)
        with body.as_default():
            args, at = [], 0
            for part in (element,) + more_elements:
                flat = []
                for leaf in nest.flatten(part):
                    flat.append(body.add_input(leaf.flat_type, leaf.flat_shape, "args_%d" % at))
                    at += 1
                args.append(structure.from_tensors(part, flat))
            if more_elements:
                result = func(*args)
            else:
                result = func(*args[0]) if type(args[0]) is tuple else func(args[0])
            if type(result) is list:
                result = tuple(result)
            if result is None:
                raise TypeError(f"The function of {transformation} returned nothing; it has to return an element")
            result = structure.convert(result, name="component")
            result = nest.map_structure(lambda v: body.capture(v) if isinstance(v, ops.Tensor) else v, result)
            self.element = structure.of_value(result)
            outputs = [body.capture(t) for t in structure.to_tensors(self.element, result)]
        definition = body.finish(outputs, {"_tf_data_function": True})
        outer._add_function_def(definition, None)
        self.captured = [tensor for tensor, _ in body.captures]
        self.attr = (name, {"_tf_data_function": True})
        self.name = name
        self.graph = body
