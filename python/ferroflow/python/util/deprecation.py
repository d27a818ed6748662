"""Decorators of functions that programs should no longer call. A call is logged once."""

import functools

from ferroflow.python.platform import tf_logging as logging


def _warned_once(function, text, applies):
    warned = []

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not warned and applies(args, kwargs):
            warned.append(True)
            logging.warning("From %s: %s", function.__qualname__, text)
        return function(*args, **kwargs)

    return wrapper


def _until(date):
    return "in a future version" if date is None else f"after {date}"


def deprecated(date, instructions, warn_once=True):
    text = f"it is deprecated and will be removed {_until(date)}.\nInstructions for updating:\n{instructions}"
    return lambda function: _warned_once(function, text, lambda args, kwargs: True)


def deprecated_args(date, instructions, *names, **options):
    text = f"an argument is deprecated and will be removed {_until(date)}.\nInstructions for updating:\n{instructions}"
    plain = [name[0] if isinstance(name, tuple) else name for name in names]
    return lambda function: _warned_once(function, text, lambda args, kwargs: any(name in kwargs for name in plain))


def deprecated_arg_values(date, instructions, warn_once=True, **values):
    text = f"a value of an argument is deprecated and will be removed {_until(date)}.\nInstructions for updating:\n{instructions}"
    return lambda function: _warned_once(
        function, text, lambda args, kwargs: any(name in kwargs and kwargs[name] == value for name, value in values.items()))


def deprecated_alias(deprecated_name, name, func_or_class, warn_once=True):
    """`func_or_class` under its old name."""
    return func_or_class


def deprecated_argument_lookup(new_name, new_value, old_name, old_value):
    """The value of an argument that has an old name, too."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old_value


def rewrite_argument_docstring(old_doc, old_argument, new_argument):
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(f"{old_argument}:", f"{new_argument}:")
