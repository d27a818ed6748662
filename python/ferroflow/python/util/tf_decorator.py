"""Decorators that name what they decorate."""

import functools


def make_decorator(target, decorator_func, decorator_name=None, decorator_doc="", decorator_argspec=None):
    """`decorator_func` with the name and documentation of `target`."""
    return functools.update_wrapper(decorator_func, target)


def unwrap(maybe_decorated):
    """The decorators of a function, which are not kept, and the function itself."""
    while hasattr(maybe_decorated, "__wrapped__"):
        maybe_decorated = maybe_decorated.__wrapped__
    return [], maybe_decorated
