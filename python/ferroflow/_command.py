"""The `ferroflow` command of the wheel."""

import os
import signal
import sys


def main():
    if sys.argv[1:2] == ["exec"]:
        from ferroflow import _exec

        return _exec.main(sys.argv[2:])
    from ferroflow import _ferroflow

    # Ctrl-C ends the command as it ends a program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_ferroflow.main(["ferroflow"] + sys.argv[1:], _program()))


def _program():
    """The script that starts this command again."""
    called = os.path.abspath(sys.argv[0])
    if os.path.basename(called) != "__main__.py" and os.access(called, os.X_OK):
        return called
    return os.path.join(os.path.dirname(sys.executable), "ferroflow")
