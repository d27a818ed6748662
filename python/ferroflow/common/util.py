"""Questions about the installation, and small functions that programs use."""

import contextlib
import importlib.util
import os
import re


def _no(*_, **__):
    return False


# The collectives are Ferroflow's own, and work on the CPU.
mpi_built = gloo_built = nccl_built = ddl_built = ccl_built = gpu_available = _no


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """Does nothing: there is one extension, for all frameworks."""


def extension_available(ext_base_name, verbose=False):
    """Whether a framework (`torch`, `tensorflow`, `keras`, `jax`) is installed."""
    return importlib.util.find_spec(ext_base_name) is not None


def num_rank_is_power_2(num_rank):
    """Whether a number of ranks is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_version_greater_equal_than(ver, target):
    """Whether a version such as 2.15.1 is not older than another one."""
    def numbers(text):
        return [int(n) for n in re.match(r"[0-9.]*", text)[0].split(".") if n]
    return numbers(ver) >= numbers(target)


def split_list(l, n):
    """A list as `n` lists of nearly equal lengths."""
    size, rest = divmod(len(l), n)
    ends = [size * i + min(i, rest) for i in range(n + 1)]
    return [l[a:b] for a, b in zip(ends, ends[1:])]


@contextlib.contextmanager
def env(**kwargs):
    """Sets environment variables for a while. None removes one."""
    before = {name: os.environ.get(name) for name in kwargs}

    def assign(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    assign(kwargs)
    try:
        yield
    finally:
        assign(before)
