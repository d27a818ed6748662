"""Gives programs their place in a cluster as flags: `--job_name`, `--task_index`, `--ps_hosts` and
`--worker_hosts`, which programs with parameter servers define. Flags on the command line win.

The launcher sets TF_CONFIG and FERROFLOW_TASK_FLAGS. This file is also part of the `ferroflow`
program: it must work where the package ferroflow is not installed.
"""

import argparse
import importlib.abc
import importlib.util
import json
import os
import sys


def _values():
    """The flags of this process, by name."""
    if not os.environ.get("FERROFLOW_TASK_FLAGS"):
        return {}
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    except ValueError:
        return {}
    task, cluster = config.get("task", {}), config.get("cluster", {})
    if "type" not in task:
        return {}
    return {
        "job_name": task["type"],
        "task_index": str(task.get("index", 0)),
        "ps_hosts": ",".join(cluster.get("ps", [])),
        "worker_hosts": ",".join(cluster.get("worker", [])),
    }


def filled(words, defined):
    """A command line, without the program, with the flags of this process that it lacks.

    `defined(name)` says whether the program has a flag of that name.
    """
    given = {w.lstrip("-").split("=")[0] for w in words if w.startswith("-")}
    more = [f"--{name}={value}" for name, value in _values().items() if name not in given and defined(name)]
    return more + list(words)


def install():
    """Fills in the flags of argparse and absl."""
    if not _values():
        return
    parse = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self, args=None, namespace=None):
        if args is None:
            names = {name for action in self._actions for name in action.option_strings}
            args = filled(sys.argv[1:], lambda name: "--" + name in names)
        return parse(self, args, namespace)

    argparse.ArgumentParser.parse_known_args = parse_known_args
    sys.meta_path.insert(0, _AfterAbsl())


class _AfterAbsl(importlib.abc.MetaPathFinder):
    """Changes absl's flags right after they are loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "absl.flags._flagvalues":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            original = module.FlagValues.__call__

            def __call__(self, argv, known_only=False):
                argv = list(argv)
                return original(self, argv[:1] + filled(argv[1:], lambda name: name in self), known_only)

            module.FlagValues.__call__ = __call__

        spec.loader.exec_module = exec_module
        return spec
