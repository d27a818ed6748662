"""Options of datasets. They are accepted and kept; the runtime makes its own choices."""

import enum


class _Bag:
    """Takes any option."""

    def __init__(self):
        self.__dict__["_values"] = {}

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        values = self.__dict__["_values"]
        if name in ("threading", "experimental_threading", "autotune", "experimental_optimization", "experimental_distribute", "autoshard"):
            return values.setdefault(name, _Bag())
        return values.get(name)

    def __setattr__(self, name, value):
        self.__dict__["_values"][name] = value


class Options(_Bag):
    def merge(self, options):
        merged = Options()
        merged.__dict__["_values"].update(self.__dict__["_values"])
        merged.__dict__["_values"].update(options.__dict__["_values"])
        return merged


class ThreadingOptions(_Bag):
    pass


class AutotuneOptions(_Bag):
    pass


class DistributeOptions(_Bag):
    pass


class OptimizationOptions(_Bag):
    pass


class AutoShardPolicy(enum.IntEnum):
    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3
