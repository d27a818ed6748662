#!/usr/bin/env python3
"""Compiles the texts of GPU kernels with NVRTC, which needs no GPU, and prints those that fail or
spill registers. NVRTC is in the package nvidia-cuda-nvrtc-cu12.

    ferroflow-oracle gpu-train block --host-only --seconds 0 --texts FOLDER
    python3 bench/gpu/nvrtc.py FOLDER [--arch sm_90] [--library libnvrtc.so.12]
"""

import argparse
import ctypes
import glob
import os
import re
import sys
import sysconfig


def library(path):
    """NVRTC, and before it the library with its built-in functions."""
    site = sysconfig.get_paths()["purelib"]
    found = path or next(iter(glob.glob(site + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")), None)
    if not found:
        sys.exit("libnvrtc was not found: install nvidia-cuda-nvrtc-cu12, or name it by --library")
    for builtins in glob.glob(os.path.dirname(found) + "/libnvrtc-builtins.so.*"):
        ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(found)


def compiled(nvrtc, text, arch):
    """Whether a text compiles, and the log."""
    program = ctypes.c_void_p()
    source = ctypes.c_char_p(text.encode())
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    options = [b"--gpu-architecture=" + arch.encode(), b"--std=c++17", b"--ptxas-options=-v"]
    given = (ctypes.c_char_p * len(options))(*options)
    status = nvrtc.nvrtcCompileProgram(program, len(options), given)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status == 0, log.value.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--library")
    options = parser.parse_args()
    nvrtc = library(options.library)
    failed, most = 0, 0
    names = sorted(os.listdir(options.folder))
    for name in names:
        with open(os.path.join(options.folder, name)) as f:
            ok, log = compiled(nvrtc, f.read(), options.arch)
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", log)]
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
        most = max([most, *registers])
        if not ok or any(spills):
            failed += 1
            print(f"{name}: {'spills' if ok else 'does not compile'}\n{log}")
    print(f"{len(names)} texts for {options.arch}, {failed} failed, at most {most} registers")
    sys.exit(failed > 0)


main()
