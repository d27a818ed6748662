"""Functions that take their arguments by name only."""

import functools


def keyword_args_only(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if args:
            raise ValueError(f"The function {function.__name__} only accepts keyword arguments. "
                             f"Do not pass positional arguments. Received the following positional arguments: {args}")
        return function(**kwargs)

    return wrapper
