"""Modules whose names are loaded at their first use.

A table maps a module of the package to the public names that it defines:

    "ferroflow.python.ops.math_ops": "add subtract math.add=add nn.sigmoid=sigmoid"

A name is `path=attribute`, or just `attribute` if both are the same. `nn.sigmoid` becomes
`tf.nn.sigmoid`. The module `tf.nn` is created at its first use.
"""

import importlib
import sys
import types


class LazyModule(types.ModuleType):
    """A module that knows where its names are defined."""

    def _fill(self, names):
        self.__dict__["_names"] = names
        self.__dict__["__path__"] = self.__dict__.get("__path__", [])
        return self

    def __getattr__(self, name):
        return _load(self, name)

    def __dir__(self):
        return sorted(set(self.__dict__) | set(self._names))


def _load(module, name):
    names = module.__dict__["_names"]
    place = names.get(name)
    if place is None:
        raise AttributeError(_missing(module.__name__, name, names))
    if isinstance(place, dict):
        value = submodule(module.__name__, name, place)
    else:
        home, attribute = place
        value = importlib.import_module(home)
        if attribute:
            value = getattr(value, attribute)
    module.__dict__[name] = value
    return value


def submodule(parent, name, names):
    full = f"{parent}.{name}"
    found = sys.modules.get(full)
    if found is None:
        found = LazyModule(full)._fill(names)
        sys.modules[full] = found
    return found


def _missing(module, name, names):
    import difflib

    if name.startswith("__"):
        return f"module {module!r} has no attribute {name!r}"
    text = f"module {module!r} has no attribute {name!r}"
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    if near:
        return f"{text}; the nearest name is {near[0]!r}"
    return f"{text}: Ferroflow does not have it (docs/src/reference/python-names.md lists what it has)"


def tree(tables):
    """The names of all tables as nested dicts."""
    root = {}
    for table in tables:
        for home, texts in table.items():
            for text in texts.split():
                path, _, attribute = text.partition("=")
                parts = path.split(".")
                at = root
                for part in parts[:-1]:
                    at = at.setdefault(part, {})
                    if not isinstance(at, dict):
                        raise ImportError(f"{path}: {part} is both a module and a name")
                attribute = attribute or parts[-1]
                at[parts[-1]] = (home, None if attribute == "*" else attribute)
    return root


class Finder:
    """Finds the modules of a tree for `import ferroflow.compat.v1.nn`."""

    def __init__(self, root, names):
        self.root, self.names = root, names

    def find_spec(self, full, path=None, target=None):
        import importlib.machinery

        if not full.startswith(self.root + "."):
            return None
        at = self.names
        for part in full[len(self.root) + 1 :].split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if isinstance(at, tuple) and at[1] is None:
            return importlib.machinery.ModuleSpec(full, _Whole(at[0]))
        if not isinstance(at, dict):
            return None
        return importlib.machinery.ModuleSpec(full, _Loader(at), is_package=True)


class _Whole:
    """Loads a module of the package under another name."""

    def __init__(self, home):
        self.home = home

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(self.home)


class _Loader:
    def __init__(self, names):
        self.names = names

    def create_module(self, spec):
        return LazyModule(spec.name)._fill(self.names)

    def exec_module(self, module):
        pass


class MlTypes:
    """Finds `ml_dtypes` where it is not installed: pickled arrays of bfloat16 name it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "ml_dtypes":
            return None
        from ferroflow.python.framework import ml_types

        return ml_types.Finder.find_spec(name)


class Protobuf:
    """Finds what programs use of `google.protobuf` where it is not installed: the text of messages."""

    HOMES = {"google.protobuf.text_format": "ferroflow.core._text", "google.protobuf.message": "ferroflow.core._messages"}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        import importlib.machinery

        if name in ("google", "google.protobuf"):
            return importlib.machinery.ModuleSpec(name, _Loader({}), is_package=True)
        home = cls.HOMES.get(name)
        return None if home is None else importlib.machinery.ModuleSpec(name, _Whole(home))
