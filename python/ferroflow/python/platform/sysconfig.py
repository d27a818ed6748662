"""`tf.sysconfig`: where the package lies."""

import os


def _root():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def get_lib():
    return _root()


def get_include():
    raise NotImplementedError("Ferroflow has no C++ headers: ops are written in Rust")


def get_compile_flags():
    return get_include()


def get_link_flags():
    return get_include()


def get_build_info():
    return {"is_cuda_build": False, "is_rocm_build": False}
