"""Python runs this before a program that `ferroflow run` or `ferroflow exec` starts."""

import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _load(name):
    spec = importlib.util.spec_from_file_location("ferroflow_hook_" + name, os.path.join(_here, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _installed(name):
    return importlib.util.find_spec(name) is not None


class _Missing:
    """Explains why TensorFlow cannot be imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "tensorflow":
            advice = ("install it with pip, or use --client tensorflow" if _tensorflow else
                      "install it, or TensorFlow, with pip")
            raise ModuleNotFoundError("the package ferroflow is not installed for %s: %s" % (
                sys.executable, advice), name=name)
        return None


def _next_sitecustomize():
    """The module of the same name that this one hides."""
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = this


def _install():
    global _tensorflow
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _here]
    _next_sitecustomize()
    _load("task_flags").install()
    client = os.environ.get("FERROFLOW_CLIENT")
    _tensorflow = _installed("tensorflow")
    if client is None:
        # The program keeps its sessions. Without TensorFlow it is the package that they belong to.
        if not _tensorflow and not _installed("horovod") and _installed("ferroflow"):
            from ferroflow import _exec
            _exec.install_aliases()
        return
    if client == "auto":
        client = "tensorflow" if _tensorflow else "ferroflow"
    if client == "tensorflow":
        _load("redirect").install()
    elif _installed("ferroflow"):
        from ferroflow import _exec
        _exec.install_aliases()
    else:
        sys.meta_path.insert(0, _Missing)


_install()
