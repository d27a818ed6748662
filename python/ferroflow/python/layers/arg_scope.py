"""`arg_scope`: default arguments for functions within a block."""

import contextlib
import functools

from ferroflow.python.util.api import export

# The defaults of the enclosing blocks: by function, then by argument.
_stack = [{}]
_taking = {}


def _key(function):
    return getattr(function, "_key_op", (function.__module__, function.__name__))


@export("contrib.framework.add_arg_scope", "contrib.slim.add_arg_scope")
def add_arg_scope(func):
    """Makes a function take defaults from `arg_scope`."""
    key = _key(func)

    @functools.wraps(func)
    def with_defaults(*args, **kwargs):
        defaults = _stack[-1].get(key)
        return func(*args, **({**defaults, **kwargs} if defaults else kwargs))

    with_defaults._key_op = key
    names = func.__code__.co_varnames[:func.__code__.co_argcount]
    _taking[key] = tuple(names[-len(func.__defaults__ or ()):]) if func.__defaults__ else ()
    return with_defaults


@export("contrib.framework.has_arg_scope", "contrib.slim.has_arg_scope")
def has_arg_scope(func):
    return _key(func) in _taking


@export("contrib.framework.arg_scoped_arguments", "contrib.slim.arg_scoped_arguments")
def arg_scoped_arguments(func):
    """The names of the arguments that `arg_scope` may set."""
    return _taking[_key(func)]


@export("contrib.framework.current_arg_scope", "contrib.slim.current_arg_scope")
def current_arg_scope():
    return _stack[-1]


@export("contrib.framework.arg_scope", "contrib.slim.arg_scope")
@contextlib.contextmanager
def arg_scope(list_ops_or_scope, **kwargs):
    """Within the block, calls of the functions get these arguments unless they give them."""
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a dictionary, kwargs must be empty.")
        scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
        scope = {key: dict(values) for key, values in _stack[-1].items()}
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise ValueError("%s is not decorated with @add_arg_scope" % (_key(function),))
            scope.setdefault(_key(function), {}).update(kwargs)
    _stack.append(scope)
    try:
        yield scope
    finally:
        _stack.pop()
