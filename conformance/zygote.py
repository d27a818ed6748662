"""A process that has TensorFlow imported and forks one child per program.

Importing TensorFlow takes seconds.  `python zygote.py SOCKET` imports it once
and listens on a Unix socket; `start` asks it for a child that runs a Python
file as `__main__`, with arguments, an environment and an output of its own.
The zygote only imports: it opens no session and starts no TensorFlow thread,
so a child begins in the same state as a new interpreter.
"""

import array
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))


# ------------------------------------------------------------------ client


class Zygote:
    """Starts the zygote process, and ends it with `close`."""

    def __init__(self, folder, env):
        self.path = os.path.join(folder, "zygote.sock")
        self.proc = subprocess.Popen(
            [sys.executable, "-u", os.path.abspath(__file__), self.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        # Its only line says that it listens.
        self.proc.stdout.readline()

    def close(self):
        self.proc.stdin.close()  # the zygote exits when its input ends
        self.proc.wait()


class Forked:
    """A child of the zygote; the part of subprocess.Popen that we use."""

    def __init__(self, path, argv, env, cwd, output, group):
        self.returncode = None
        self.lock = threading.Lock()
        self.conn = socket.socket(socket.AF_UNIX)
        self.conn.connect(path)
        request = json.dumps({"argv": argv, "env": env, "cwd": cwd,
                              "group": group}).encode()
        fds = array.array("i", [output.fileno()])
        self.conn.sendmsg([len(request).to_bytes(4, "big")], [(
            socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        self.conn.sendall(request)
        self.pid = self._number()
        if self.pid is None:
            raise OSError("the zygote has ended")

    def _number(self):
        """The next number that the zygote sends; None when it is gone."""
        text = b""
        while not text.endswith(b"\n"):
            part = self.conn.recv(1)
            if not part:
                return None
            text += part
        return int(text)

    def wait(self, timeout=None):
        with self.lock:
            if self.returncode is None:
                self.conn.settimeout(timeout)
                try:
                    code = self._number()
                except (TimeoutError, BlockingIOError):
                    raise subprocess.TimeoutExpired("zygote child", timeout)
                self.returncode = -signal.SIGKILL if code is None else code
                self.conn.close()
            return self.returncode

    def poll(self):
        # Another thread that waits holds the lock, and the child runs.
        if not self.lock.acquire(blocking=False):
            return None
        self.lock.release()
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def start(path, argv, env, cwd, output, group=0):
    """A child of the zygote at `path` that runs the Python file argv[0] and
    writes to the file `output`.  It joins the process group `group`; 0 makes
    one of its own."""
    return Forked(path, argv, env, cwd, output, group)


# ------------------------------------------------------------------ server


def receive(conn):
    size, fds, _, _ = socket.recv_fds(conn, 4, 1)
    size = int.from_bytes(size, "big")
    text = b""
    while len(text) < size:
        text += conn.recv(size - len(text))
    return json.loads(text), fds[0]


def child(request, output):
    """Becomes the program; does not return."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        program = os.path.abspath(request["argv"][0])
        sys.argv = request["argv"]
        sys.path[0] = os.path.dirname(program)
        sys.path[1:1] = [p for p in
                         request["env"].get("PYTHONPATH", "").split(os.pathsep)
                         if p and p not in sys.path]
        runpy.run_path(program, run_name="__main__")
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    chooser = selectors.DefaultSelector()
    chooser.register(server, selectors.EVENT_READ)
    chooser.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in chooser.select():
            if key.fileobj == 0:
                return
            if key.fileobj is server:
                conn, _ = server.accept()
                request, output = receive(conn)
                pid = os.fork()
                if pid == 0:
                    child(request, output)
                os.close(output)
                # Before the caller learns the number and may kill the group.
                try:
                    os.setpgid(pid, request["group"])
                except OSError:
                    pass  # the child, or the group, has ended already
                conn.sendall(b"%d\n" % pid)
                chooser.register(os.pidfd_open(pid), selectors.EVENT_READ,
                                 (pid, conn))
                continue
            chooser.unregister(key.fileobj)
            os.close(key.fileobj)
            pid, conn = key.data
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            try:
                conn.sendall(b"%d\n" % code)
            except OSError:
                pass  # the caller has ended
            conn.close()


def main():
    import numpy  # noqa: F401
    import tensorflow
    from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: F401
    # Loads the parts that TensorFlow imports on first use.
    tensorflow.compat.v1.train.Saver, tensorflow.compat.v1.layers
    serve(sys.argv[1])


if __name__ == "__main__":
    main()
