"""A client in C, through TensorFlow's C API: `../c_client.c`."""

import os
import shutil
import subprocess

import ffc
import tensorflow

TIER = 1
CLUSTER = {"ps": 1, "worker": 1}
# The linker reads a gigabyte.
TIMEOUT = 180

SOURCE = os.path.join(os.path.dirname(os.path.abspath(ffc.__file__)), "c_client.c")


def main():
    folder = os.path.dirname(tensorflow.__file__)
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("skipped: there is no C compiler")
        return
    program = os.path.join(ffc.TMP, "c_client")
    subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Werror", "-O1", "-o", program, SOURCE,
         "-I", os.path.join(folder, "include"), "-L", folder, "-l:libtensorflow_cc.so.2",
         "-l:libtensorflow_framework.so.2", "-lm", "-Wl,-rpath," + folder],
        check=True)
    ran = subprocess.run([program, ffc.TARGET], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    print(ran.stdout)
    lines = ran.stdout.strip().splitlines() or ["no output"]
    assert ran.returncode == 0, lines[-1]
    assert sum(line.startswith("ok: ") for line in lines) == 6, lines


ffc.run(main)
