"""`ferroflow exec program.py …`: runs an unchanged TensorFlow program on Ferroflow.

By default `import tensorflow` and `import horovod.tensorflow` find this package. With
`--client tensorflow` the program keeps its TensorFlow, whose sessions without a target, and whose
servers, are Ferroflow's.
"""

import argparse
import importlib
import importlib.machinery
import os
import runpy
import sys

_ALIASES = {
    "horovod.tensorflow": "ferroflow.hvd",
    "horovod.torch": "ferroflow.torch",
    "horovod.common": "ferroflow.common",
    "horovod.runner": "ferroflow.runner",
    "horovod": "ferroflow.hvd",
    "tensorflow.compat.v1": "ferroflow.compat.v1",
    "tensorflow.python": "ferroflow.python",
    "tensorflow.core": "ferroflow.core",
    "tensorflow_core": "ferroflow.compat.v1",
    "tensorflow": "ferroflow.compat.v1",
}


def main(words):
    parser = argparse.ArgumentParser(
        prog="ferroflow exec",
        description="Run an unchanged TensorFlow 1.x program on Ferroflow.",
        usage="ferroflow exec [--client ferroflow|tensorflow] (PROGRAM | -m MODULE) [ARGUMENT …]",
    )
    parser.add_argument("--client", choices=["ferroflow", "tensorflow"], default="ferroflow", help="who builds graphs")
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args(words)
    if args.client == "ferroflow":
        install_aliases()
    else:
        from ferroflow import _redirect

        _redirect.install()
    sys.argv = [args.program] + args.arguments
    if args.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args.program, run_name="__main__", alter_sys=True)
    else:
        if not os.path.isfile(args.program):
            parser.error(f"there is no program {args.program!r}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(args.program)))
        runpy.run_path(args.program, run_name="__main__")


def install_aliases():
    """From now on `import tensorflow` and `import horovod.tensorflow` find this package."""
    sys.meta_path.insert(0, _Alias())


class _Alias:
    """Finds modules of TensorFlow and Horovod in this package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] not in ("tensorflow", "tensorflow_core", "horovod"):
            return None
        return importlib.machinery.ModuleSpec(name, _Alias, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        sys.modules[name] = importlib.import_module(_ours(name))


def _ours(name):
    """The module of this package for a module of TensorFlow or Horovod."""
    for theirs, ours in _ALIASES.items():
        if name == theirs or name.startswith(theirs + "."):
            return ours + name[len(theirs) :]
    return name
