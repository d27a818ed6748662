"""Attacks on a server and on ranks, from outside: each is reported as broken or held.

    pip install grpcio
    python conformance/attacks.py target/release/ferroflow            # all
    python conformance/attacks.py target/release/ferroflow --only fifo

Each attack starts its own processes of the given command on loopback.  Some attackers are another user of the host, so
the script needs root.  Exit status: 0 if every attack was held.  Flags that limit a server are given if the command knows
them, so that a build without them can be attacked in the same way.
"""

import argparse
import multiprocessing
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

os.environ.update(NO_PROXY="*", no_proxy="*", GRPC_ENABLE_FORK_SUPPORT="0")

import grpc
# Imported now: another user may not be able to read the packages, and gRPC imports some when it
# first connects.
import copy, grpc._channel, grpc._grpcio_metadata, logging  # noqa: E401,F401

OTHER_USER = 65534
TASK = "/job:worker/replica:0/task:0"
MARK = 0x5ec7e75ec7e75ec7
SECRET = b"the secret of the victim, which no other client may see"


class Broken(Exception):
    """The attack had an effect."""


# ------------------------------------------------------------------ processes


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Served:
    """A process that says when it is ready."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        if not ready or not self.process.stdout.readline().startswith(b"ready "):
            raise RuntimeError("the server did not start")

    def memory(self, field="VmRSS"):
        with open("/proc/%d/status" % self.pid) as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith(field + ":"))

    def ended(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Server(Served):
    """A server on loopback, of task 0 of a job."""

    def __init__(self, program, *flags, job="worker", ports=None):
        ports = ports or {job: free_port()}
        self.port, cluster = ports[job], ";".join("%s=127.0.0.1:%d" % task for task in ports.items())
        super().__init__([program, "server", "--cluster", cluster, "--job", job, "--task", "0", *flags])


class ModelServer(Served):
    """`ferroflow serve` on loopback."""

    def __init__(self, program, model, *flags):
        self.grpc, self.rest = free_port(), free_port()
        super().__init__([program, "serve", model, "--port", str(self.grpc), "--rest-port", str(self.rest), *flags])


def known(program, *flags):
    """The flags, if the command knows them."""
    usage = subprocess.run([program, "server", "--help"], capture_output=True, text=True).stdout
    return flags if flags[0] in usage else ()


def as_user(uid, function, *args, seconds=60):
    """Calls a function in a process of a user.  Returns its value, or the error that it raised."""
    here, there = multiprocessing.Pipe(False)

    def work():
        try:
            if uid:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            there.send((True, function(*args)))
        except BaseException as e:  # The answer of the server is an exception here.
            details = e.details() if isinstance(e, grpc.RpcError) else e
            there.send((False, "%s: %s" % (type(e).__name__, details)))
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else (False, "no answer after %d s" % seconds)
    except EOFError:
        return (False, "the process ended")
    finally:
        process.kill()
        process.join()


# ------------------------------------------------------------------ clients


def field(number, value):
    """A field of a message: a number, a text, or bytes."""
    if isinstance(value, int):
        return number_bytes(number << 3) + number_bytes(value)
    value = value.encode() if isinstance(value, str) else value
    return number_bytes(number << 3 | 2) + number_bytes(len(value)) + value


def number_bytes(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number_of(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message: numbers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = number_of(data, at)
        if tag & 7 == 0:
            value, at = number_of(data, at)
        else:
            size, at = number_of(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def first(data, number):
    return next((value for n, value in fields(data) if n == number), b"")


class Client:
    """Calls of the services, without TensorFlow."""

    def __init__(self, port, seconds=10):
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self.channel, self.seconds = grpc.insecure_channel("127.0.0.1:%d" % port, options=options), seconds

    def call(self, method, request=b""):
        return self.channel.unary_unary("/tensorflow." + method)(request, timeout=self.seconds)

    def open(self, graph):
        return first(self.call("MasterService/CreateSession", field(1, graph.proto)), 1)

    def run(self, session, fetch="", target=""):
        """Runs a step.  Returns the message of the tensor that it fetches."""
        words = [field(3, fetch)] if fetch else [field(4, target)]
        answer = self.call("MasterService/RunStep", field(1, session) + b"".join(words))
        return first(first(answer, 1), 2)

    def close(self, session):
        self.call("MasterService/CloseSession", field(1, session))

    def seven(self):
        """Opens a session and runs a step."""
        return first(self.run(self.open(Graph().const("x", INT64, struct.pack("<q", 7))), fetch="x:0"), 4)


class Int(int):
    """An attribute that is a number, not a type."""


class Encoded(bytes):
    """An attribute that is encoded already."""


# Numbers of TensorFlow's types.
FLOAT, DOUBLE, INT32, STRING, INT64, BOOL, RESOURCE, VARIANT = 1, 2, 3, 7, 9, 10, 20, 21


class Graph:
    """A GraphDef, built node by node."""

    def __init__(self):
        self.proto = field(4, field(1, 987))

    def op(self, name, op, *inputs, device="", **attrs):
        node = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) + field(4, device)
        for key, value in attrs.items():
            if isinstance(value, Encoded):
                node += field(5, field(1, key) + field(2, value))
                continue
            # A bool, a number, a type, a text, or a tensor.
            kind = (5 if isinstance(value, bool) else 3 if isinstance(value, Int) else 6 if isinstance(value, int)
                    else 2 if isinstance(value, str) else 8)
            value = field(kind, int(value) if isinstance(value, int) else value)
            node += field(5, field(1, key) + field(2, value))
        self.proto += field(1, node)
        return self

    def const(self, name, dtype, content, *dims):
        shape = field(2, b"".join(field(2, field(1, dim)) for dim in dims))
        value = field(8, content) if dtype == STRING else field(4, content)
        return self.op(name, "Const", dtype=dtype, value=field(1, dtype) + shape + value)


def read_file(port, path):
    client, graph = Client(port), Graph().const("name", STRING, path).op("read", "ReadFile", "name")
    return client.run(client.open(graph), fetch="read:0")


def write_file(port, path):
    graph = Graph().const("name", STRING, path).const("text", STRING, "owned").op("write", "WriteFile", "name", "text")
    client = Client(port)
    client.run(client.open(graph), target="write")


class Link:
    """A connection on which tasks send each other values, as a hostile peer speaks it."""

    def __init__(self, port, memory=("", 0, 0), is_local=False):
        offer = dict(fields(first(Client(port).call("WorkerService/GetStatus"), 7001)))
        text = lambda t: struct.pack("<H", len(t)) + t.encode()
        hello = struct.pack("<IB", offer[1], 0) + offer[2] + text("/job:worker/replica:0/task:9") + text(memory[0])
        hello += struct.pack("<QQ", memory[1], memory[2])
        if offer[1] > 4:
            hello += struct.pack("<QH", 0, 0)  # no UCX
        hello += struct.pack("<IQ", 1, 4711)
        if is_local:
            # Names of the abstract namespace begin with a zero.
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(10)
            self.socket.connect(offer[3] if offer[3].startswith(b"\0") else b"\0" + offer[3])
        else:
            self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(b"FERROFLW" + struct.pack("<I", len(hello)) + hello)
        head = self.exactly(12)
        answer = self.exactly(struct.unpack("<I", head[8:])[0])
        if answer[0] != 1:
            raise PermissionError(answer[2:].decode(errors="replace"))
        self.takes_blocks = bool(answer[1])

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def frame(self, kind, payload, dims, rest=b""):
        """The head of a float tensor for step 1."""
        name = b"/job:worker/replica:0/task:9/device:CPU:0;0000000000001267;" + TASK.encode() + b"/device:CPU:0;x;0:0"
        head = struct.pack("<BBBBIQq", kind, 1, len(dims), 0, len(name), payload, 1)
        self.socket.sendall(head + struct.pack("<%dQ" % len(dims), *dims) + name + rest)


# ------------------------------------------------------------------ attacks


def other_user_reads_a_file(program, folder):
    """Another user of the host reads a file of the server's user through a graph."""
    path = os.path.join(folder, "secret")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
        file.write(SECRET)
    with Server(program) as server:
        worked, value = as_user(OTHER_USER, read_file, server.port, path)
        if worked and SECRET in value:
            raise Broken("it read the file")
        return value


def other_user_writes_a_file(program, folder):
    """Another user of the host writes a file as the server's user."""
    path = os.path.join(folder, "written")
    with Server(program) as server:
        worked, value = as_user(OTHER_USER, write_file, server.port, path)
        if os.path.exists(path):
            raise Broken("it wrote the file")
        return value


def client_leaves_the_allowed_folder(program, folder):
    """A client reads a file outside of --file-root: by its name, and through a link."""
    inside, secret = os.path.join(folder, "inside"), os.path.join(folder, "secret")
    os.mkdir(inside)
    with open(secret, "wb") as file:
        file.write(SECRET)
    os.symlink(secret, os.path.join(inside, "link"))
    with Server(program, *known(program, "--file-root", inside)) as server:
        for path in (secret, os.path.join(inside, "..", "secret"), os.path.join(inside, "link")):
            worked, value = as_user(0, read_file, server.port, path)
            if worked and SECRET in value:
                raise Broken("it read " + path)
        return value


def _stuck_readers(server, folder):
    """Steps that read a FIFO without a writer."""
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    readers = [threading.Thread(target=as_user, args=(0, read_file, server.port, fifo), kwargs={"seconds": 8}, daemon=True)
               for _ in range(6)]
    for reader in readers:
        reader.start()
    time.sleep(5)


def fifo_freezes_the_server(program, folder):
    """Steps that read a FIFO keep another client from its answer."""
    with Server(program) as server:
        _stuck_readers(server, folder)
        worked, value = as_user(0, lambda: Client(server.port, 15).seven())
        if not worked:
            raise Broken("another client: " + value.split("\n")[0])
        return "another client got its answer"


def fifo_keeps_the_server_from_ending(program, folder):
    """A server with a step that reads a FIFO does not end after SIGTERM."""
    with Server(program) as server:
        _stuck_readers(server, folder)
        server.process.send_signal(signal.SIGTERM)
        began = time.time()
        if server.ended(45) is None:
            raise Broken("it still runs 45 s after SIGTERM")
        return "it ended after %.1f s" % (time.time() - began)


def _bus_error(port, path):
    mark, length = 0x1234567890abcdef, (2 << 20) + (1 << 20)
    with open(path, "wb") as file:
        file.truncate(length)
        file.seek(4096)
        file.write(struct.pack("<Q", mark))
    link = Link(port, (path, length, mark), is_local=True)
    if not link.takes_blocks:
        return "it does not map the file"
    os.truncate(path, 0)
    link.frame(4, 4096, [1024], struct.pack("<QI", 2 << 20, 0))
    time.sleep(2)
    return "it mapped the file"


def other_user_truncates_shared_memory(program, folder):
    """Another user offers a file as shared memory, and truncates it: the server dies of SIGBUS."""
    place = os.path.join(folder, "shared")
    os.mkdir(place)
    os.chown(place, OTHER_USER, OTHER_USER)
    os.chmod(folder, 0o755)
    with Server(program) as server:
        value = as_user(OTHER_USER, _bus_error, server.port, os.path.join(place, "memory"))[1]
        code = server.ended(3)
        if code is not None:
            raise Broken("the server ended with %s" % code)
        # The same from a process of the server's own user, which may connect.
        value = as_user(0, _bus_error, server.port, os.path.join(place, "memory0"))[1]
        code = server.ended(3)
        if code is not None:
            raise Broken("the server ended with %s" % code)
        return value


def _fill(port):
    """A victim: a step with large values full of a secret, which are freed."""
    graph = Graph().const("value", INT64, struct.pack("<Q", MARK)).const("shape", INT32, struct.pack("<i", 1 << 18), 1)
    graph.op("fill", "Fill", "shape", "value", T=INT64, index_type=INT32)
    client = Client(port)
    session = client.open(graph)
    for _ in range(8):
        client.run(session, target="fill")
    client.close(session)


def _empty(port, dtype, elements):
    graph = Graph().const("shape", INT32, struct.pack("<i", elements), 1).op("empty", "Empty", "shape", dtype=dtype, init=False)
    client = Client(port)
    session = client.open(graph)
    return [first(client.run(session, fetch="empty:0"), 4) for _ in range(8)]


def memory_of_another_session(program, folder):
    """A client reads memory that another client's step has freed."""
    with Server(program) as server:
        for _ in range(4):
            as_user(0, _fill, server.port)
            worked, values = as_user(0, _empty, server.port, INT64, 1 << 18)
            if worked and any(struct.pack("<Q", MARK) in value for value in values):
                raise Broken("the values of another session are in it")
        return "nothing of the other session" if worked else values


def bools_that_are_neither_true_nor_false(program, folder):
    """A bool tensor of a client has bytes that are neither 0 nor 1."""
    with Server(program) as server:
        for _ in range(4):
            as_user(0, _fill, server.port)
            worked, values = as_user(0, _empty, server.port, BOOL, 1 << 21)
            if worked and any(set(value) - {0, 1} for value in values):
                raise Broken("bytes such as %s" % sorted(set(b"".join(values)) - {0, 1})[:3])
        return "only 0 and 1" if worked else values


def _huge_frames(port, tell, go):
    """Announces tensors of 20 GiB to 64 MiB, each on its own connection, and sends none of their elements."""
    links = []
    for size in [20 << 30] + [1 << shift for shift in range(34, 25, -1)]:
        links.append(Link(port))
        links[-1].frame(1, size, [size // 4])
    time.sleep(2)
    tell.set()
    go.wait(60)


def _fill_once(port):
    graph = Graph().const("value", INT64, struct.pack("<Q", 7)).const("shape", INT32, struct.pack("<i", 1 << 25), 1)
    graph.op("fill", "Fill", "shape", "value", T=INT64, index_type=INT32)
    client = Client(port, 30)
    client.run(client.open(graph), target="fill")


def frames_reserve_memory(program, folder):
    """Frames of 150 bytes announce all memory of the host, and no other client gets any."""
    with Server(program) as server:
        context, attacker = multiprocessing.get_context("fork"), {}
        tell, go = context.Event(), context.Event()
        thread = threading.Thread(target=lambda: attacker.update(end=as_user(0, _huge_frames, server.port, tell, go)))
        thread.start()
        if not tell.wait(60):
            return "the frames are refused: %s" % attacker
        worked, why = as_user(0, _fill_once, server.port)
        go.set()
        thread.join()
        if not worked:
            raise Broken("a step with 256 MiB failed: " + why)
        return "a step with 256 MiB works"


def _victim(port, tell, go):
    """A client with a session on both tasks, which runs a step before and after the attack."""
    graph = Graph().const("shape", INT32, struct.pack("<i", 4), 1)
    graph.op("x", "RandomUniform", "shape", device="/job:ps/task:0", T=INT32, dtype=1)
    graph.op("y", "Neg", "x", device="/job:worker/task:0", T=1)
    client = Client(port)
    session = client.open(graph)
    client.run(session, fetch="y:0")
    tell.set()
    go.wait(60)
    client.run(session, fetch="y:0")


def _attack_a_session(program, attack):
    """Whether a session works after another user has attacked the tasks on which it runs."""
    ports, flags = {"ps": free_port(), "worker": free_port()}, known(program, "--any-local-user")
    with Server(program, *flags, job="ps", ports=ports), Server(program, *flags, job="worker", ports=ports):
        context, victim = multiprocessing.get_context("fork"), {}
        tell, go = context.Event(), context.Event()
        thread = threading.Thread(target=lambda: victim.update(end=as_user(0, _victim, ports["worker"], tell, go)))
        thread.start()
        if not tell.wait(60):
            raise RuntimeError("the victim has no session: %s" % victim)
        said = [as_user(OTHER_USER, attack, port)[1] for port in ports.values()]
        go.set()
        thread.join()
        worked, why = victim["end"]
        if not worked:
            raise Broken("the session of another user ended: " + why[:300])
        return "the session of the other user works; %s" % said[0]


def reset_by_another_user(program, folder):
    """Another user's Reset ends sessions."""
    return _attack_a_session(program, lambda port: Client(port).call("MasterService/Reset"))


def forged_master(program, folder):
    """Another user says that the master has restarted, which ends its sessions."""
    request = field(1, "forged") + field(5, TASK) + field(6, 4711)
    return _attack_a_session(program, lambda port: Client(port).call("WorkerService/CreateWorkerSession", request))


def _rank(program, port, rank, size=2, **more):
    words = [program, "bench", "allreduce", "--sizes", "4", "--seconds", "0.2", "--json"]
    env = dict(os.environ, FERROFLOW_RANK=str(rank), FERROFLOW_SIZE=str(size), FERROFLOW_ADDRESS="127.0.0.1:%d" % port, **more)
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def token_in_clear(program, folder):
    """A process that listens at rank 0's address learns the job token."""
    token, heard = "5f4dcc3b5aa765d61d8327deb882cf99", b""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        rank = _rank(program, listener.getsockname()[1], 1, FERROFLOW_TOKEN=token)
        try:
            connection, _ = listener.accept()
            connection.settimeout(3)
            while True:
                more = connection.recv(65536)
                if not more:
                    break
                heard += more
        except OSError:
            pass
        finally:
            rank.kill()
            rank.wait()
    if not heard:
        raise RuntimeError("the rank did not connect")
    if token.encode() in heard:
        raise Broken("the token is in the first %d bytes" % len(heard))
    return "%d bytes without the token" % len(heard)


def silent_sockets_at_rank_0(program, folder):
    """Connections to rank 0 that say nothing make the job fail."""
    port = free_port()
    first = _rank(program, port, 0, FERROFLOW_TOKEN="x" * 32)
    silent = []
    until = time.time() + 20
    while len(silent) < 14 and time.time() < until:
        try:
            silent.append(socket.create_connection(("127.0.0.1", port), 1))
        except OSError:
            time.sleep(0.05)
    if len(silent) < 14:
        first.kill()
        raise RuntimeError("rank 0 does not listen")
    second = _rank(program, port, 1, FERROFLOW_TOKEN="x" * 32)
    try:
        said = first.communicate(timeout=90)[0]
        second.communicate(timeout=20)
        if first.returncode or second.returncode:
            raise Broken("the job failed: %s" % said.decode(errors="replace").strip().split("\n")[-1][:100])
        return "the job went on"
    except subprocess.TimeoutExpired:
        raise Broken("the job hangs") from None
    finally:
        for process in (first, second):
            process.kill()
        for connection in silent:
            connection.close()


class Http2:
    """A client of HTTP/2 that begins calls and never ends them.  It keeps to the flow control."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0))
        self.windows, self.initial, self.is_open, self.next = {0: 65535}, 65535, True, 1
        self.changed = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    @staticmethod
    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def listen(self):
        try:
            stream = self.socket.makefile("rb")
            while True:
                head = stream.read(9)
                if len(head) < 9:
                    break
                size, kind, number = int.from_bytes(head[:3], "big"), head[3], int.from_bytes(head[5:], "big")
                payload = stream.read(size)
                with self.changed:
                    if kind == 8:
                        self.windows[number] = self.windows.get(number, self.initial) + int.from_bytes(payload, "big")
                    elif kind == 4 and not head[4] & 1:
                        for at in range(0, size, 6):
                            if payload[at:at + 2] == b"\x00\x04":
                                grown = int.from_bytes(payload[at + 2:at + 6], "big") - self.initial
                                self.initial += grown
                                self.windows.update({n: w + grown for n, w in self.windows.items() if n})
                        self.socket.sendall(self.frame(4, 1, 0))
                    elif kind == 7:
                        self.is_open = False
                    elif kind in (1, 3) and (kind == 3 or head[4] & 1):
                        # The server has ended the call.
                        self.windows[number] = -1 << 60
                    self.changed.notify_all()
        except OSError:
            pass
        with self.changed:
            self.is_open = False
            self.changed.notify_all()

    def begin(self, path, length):
        """Begins a call whose message has `length` bytes."""
        literal = lambda name, value: bytes([0, len(name)]) + name + bytes([len(value)]) + value
        headers = b"".join(literal(*pair) for pair in ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path),
                                                       (b"content-type", b"application/grpc"), (b"te", b"trailers")))
        stream, self.next = self.next, self.next + 2
        self.socket.sendall(self.frame(1, 4, stream, headers))
        self.send(stream, b"\0" + struct.pack(">I", length))
        return stream

    def send(self, stream, data):
        """Sends as much as the server takes within some seconds.  Returns whether that was all."""
        with self.changed:
            self.windows.setdefault(stream, self.initial)
        while data:
            with self.changed:
                room = lambda: min(self.windows[0], self.windows[stream], 16384, len(data))
                if not self.changed.wait_for(lambda: room() > 0 or not self.is_open or self.windows[stream] < 0, 5):
                    return False
                size = room()
                if size <= 0 or not self.is_open:
                    return False
                self.windows[0] -= size
                self.windows[stream] -= size
            self.socket.sendall(self.frame(0, 0, stream, data[:size]))
            data = data[size:]
        return True


def _flood(port, streams, each):
    client, sent, part = Http2(port), 0, b"\x0a" * (1 << 20)
    for _ in range(streams):
        try:
            stream = client.begin(b"/tensorflow.MasterService/CreateSession", 1 << 30)
            for _ in range(each >> 20):
                if not client.send(stream, part):
                    break
                sent += len(part)
        except OSError:
            break
    time.sleep(1)
    return sent


def messages_without_an_end(program, folder):
    """Calls whose messages never end take any amount of memory."""
    with Server(program, *known(program, "--max-connection-memory", "256MiB")) as server:
        before = server.memory()
        worked, sent = as_user(0, _flood, server.port, 24, 64 << 20, seconds=120)
        grown = server.memory("VmHWM") - before
        if grown > 1 << 30:
            raise Broken("it holds %d MiB of them" % (grown >> 20))
        works, value = as_user(0, lambda: Client(server.port, 15).seven())
        if not works:
            raise Broken("another client: " + value.split("\n")[0])
        return "%d MiB held of %s sent" % (grown >> 20, "%d MiB" % (sent >> 20) if worked else sent)


class Loop:
    """A v1 loop of `count` iterations over a value, as nodes of a graph."""

    def __init__(self, graph, count, dtype, first):
        self.graph, self.dtype = graph, dtype
        graph.const("limit", INT32, struct.pack("<i", count)).const("one", INT32, struct.pack("<i", 1))
        graph.const("zero", INT32, struct.pack("<i", 0))
        frame = dict(frame_name="loop", parallel_iterations=Int(4))
        graph.op("i_in", "Enter", "zero", T=INT32, is_constant=False, **frame)
        graph.op("x_in", "Enter", first, T=dtype, is_constant=False, **frame)
        graph.op("limit_in", "Enter", "limit", T=INT32, is_constant=True, **frame)
        graph.op("one_in", "Enter", "one", T=INT32, is_constant=True, **frame)
        graph.op("i", "Merge", "i_in", "i_next", T=INT32, N=Int(2)).op("x", "Merge", "x_in", "x_next", T=dtype, N=Int(2))
        graph.op("go", "LoopCond", "less").op("less", "Less", "i", "limit_in", T=INT32)
        graph.op("i_go", "Switch", "i", "go", T=INT32).op("x_go", "Switch", "x", "go", T=dtype)
        graph.op("i_more", "Add", "i_go:1", "one_in", T=INT32).op("i_next", "NextIteration", "i_more", T=INT32)

    def end(self, value):
        """Makes `value` the value of the next iteration.  `done:0` is a node behind the loop."""
        self.graph.op("x_next", "NextIteration", value, T=self.dtype).op("x_out", "Exit", "x_go", T=self.dtype)
        self.graph.op("done", "Exit", "i_go", T=INT32)
        return self.graph


def _nested_lists(port, count):
    graph = Graph().const("none", INT32, b"", 0).const("max", INT32, struct.pack("<i", -1))
    empty = lambda name: graph.op(name, "EmptyTensorList", "none", "max", element_dtype=VARIANT, shape_type=INT32)
    empty("first")
    loop = Loop(graph, count, VARIANT, "first")
    # A constant inside of the loop, for each iteration anew.
    graph.op("none_in", "Enter", "none", T=INT32, is_constant=True, frame_name="loop", parallel_iterations=Int(4))
    graph.op("max_in", "Enter", "max", T=INT32, is_constant=True, frame_name="loop", parallel_iterations=Int(4))
    graph.op("box", "EmptyTensorList", "none_in", "max_in", element_dtype=VARIANT, shape_type=INT32)
    graph.op("boxed", "TensorListPushBack", "box", "x_go:1", element_dtype=VARIANT)
    client = Client(port, 60)
    client.run(client.open(loop.end("boxed")), target="x_out")


def lists_in_lists_overflow_the_stack(program, folder):
    """A loop that puts a list into a list: dropping them needs more stack than there is."""
    with Server(program) as server:
        worked, value = as_user(0, _nested_lists, server.port, 300000, seconds=90)
        code = server.ended(2)
        if code is not None:
            raise Broken("the server ended with %s" % code)
        works, why = as_user(0, lambda: Client(server.port, 15).seven())
        if not works:
            raise Broken("another client: " + why)
        return "the step ended: %s" % (value if not worked else "well")


def _small_strings(port, count):
    """Fills a list with strings that are each too small to be worth counting."""
    graph = Graph().const("none", INT32, b"", 0).const("max", INT32, struct.pack("<i", -1))
    graph.op("first", "EmptyTensorList", "none", "max", element_dtype=STRING, shape_type=INT32)
    loop = Loop(graph, count, VARIANT, "first")
    graph.const("text", STRING, "x" * 4000)
    graph.op("text_in", "Enter", "text", T=STRING, is_constant=True, frame_name="loop", parallel_iterations=Int(4))
    graph.op("number", "AsString", "i_go:1", T=INT32).op("own", "StringJoin", "text_in", "number", N=Int(2))
    graph.op("longer", "TensorListPushBack", "x_go:1", "own", element_dtype=STRING)
    client = Client(port, 120)
    client.run(client.open(loop.end("longer")), target="x_out")


def small_strings_escape_the_memory_limit(program, folder):
    """A list of a gigabyte in strings of 4000 bytes, on a server that may use 256 MiB."""
    with Server(program, *known(program, "--max-memory", "256MiB")) as server:
        before = server.memory()
        worked, value = as_user(0, _small_strings, server.port, 260000, seconds=120)
        grown = server.memory("VmHWM") - before
        if worked or grown > 512 << 20:
            raise Broken("the step held %d MiB" % (grown >> 20))
        works, why = as_user(0, lambda: Client(server.port, 15).seven())
        if not works:
            raise Broken("another client: " + why)
        return "%d MiB: %s" % (grown >> 20, value)


def _read_often(port, path, count):
    """Steps that read a file, all at once.  Leaves them running."""
    client, graph = Client(port), Graph().const("name", STRING, path).op("read", "ReadFile", "name")
    run = client.channel.unary_unary("/tensorflow.MasterService/RunStep")
    request = field(1, client.open(graph)) + field(3, "read:0")
    calls = [run.future(request, timeout=60) for _ in range(count)]
    time.sleep(3)
    return len(calls)


def fifo_takes_all_threads_for_files(program, folder):
    """700 steps read a FIFO, and another client reads a file."""
    fifo, path = os.path.join(folder, "fifo"), os.path.join(folder, "file")
    os.mkfifo(fifo)
    with open(path, "wb") as file:
        file.write(SECRET)
    with Server(program) as server:
        as_user(0, _read_often, server.port, fifo, 700)
        worked, value = as_user(0, read_file, server.port, path)
        if not worked or SECRET not in value:
            raise Broken("another client cannot read a file: %s" % value)
        return "another client can read a file"


def silent_sockets_at_the_health_port(program, folder):
    """Connections to the health port that say nothing keep a probe from its answer."""
    port = free_port()
    with Server(program, *known(program, "--health", "127.0.0.1:%d" % port)):
        silent = []
        try:
            for _ in range(300):
                silent.append(socket.create_connection(("127.0.0.1", port), 2))
            with socket.create_connection(("127.0.0.1", port), 2) as probe:
                probe.settimeout(2)
                probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = probe.recv(100)
        except OSError as e:
            raise Broken("no answer: %s" % e) from None
        finally:
            for connection in silent:
                connection.close()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise Broken("the answer is %r" % answer)
        return "the probe is answered"


def _shut_out(server, what):
    """The attack is broken if the server has ended, or another client gets no answer."""
    code = server.ended(1)
    if code is not None:
        raise Broken("%s: the server ended with %s" % (what, code))
    works, why = as_user(0, lambda: Client(server.port, 15).seven())
    if not works:
        raise Broken("%s: another client: %s" % (what, why.split("\n")[0]))


def _step(port, graph, fetch="", target="", seconds=60):
    client = Client(port, seconds)
    return client.run(client.open(graph), fetch=fetch, target=target)


def _huge_numbers():
    """Graphs of one hostile node each: sizes and dimensions that no memory is behind."""
    huge = 1 << 40
    yield "indices without elements", (
        Graph().const("x", INT64, b"", 0).const("i", INT32, b"", huge, 0)
        .op("y", "GatherNd", "x", "i", Tparams=INT64, Tindices=INT32))
    yield "rows of a sparse matrix", (
        Graph().const("i", INT64, b"", 0, 2).const("v", FLOAT, b"", 0)
        .const("shape", INT64, struct.pack("<qq", (1 << 31) - 2, 1), 2)
        .op("y", "SparseTensorToCSRSparseMatrix", "i", "v", "shape", T=FLOAT))
    yield "columns of a sparse matrix", (
        Graph().const("i", INT64, b"", 0, 2).const("v", FLOAT, b"", 0)
        .const("shape", INT64, struct.pack("<qq", 1, (1 << 31) - 2), 2)
        .op("m", "SparseTensorToCSRSparseMatrix", "i", "v", "shape", T=FLOAT)
        .op("y", "SparseMatrixTranspose", "m", type=FLOAT, conjugate=False))
    yield "keys without elements", (
        Graph().const("e", INT64, b"", 0).const("d", INT64, b"", 0).const("k", INT64, b"", huge, 0)
        .const("v", INT64, struct.pack("<q", 0))
        .op("t", "MutableDenseHashTableV2", "e", "e", key_dtype=INT64, value_dtype=INT64)
        .op("y", "LookupTableFindV2", "t", "k", "v", Tin=INT64, Tout=INT64))


def huge_numbers_end_the_server(program, folder):
    """One node with a huge size, or a huge dimension beside one of 0: the server is out of memory and ends."""
    with Server(program) as server:
        for what, graph in _huge_numbers():
            as_user(0, _step, server.port, graph, "", "y", seconds=60)
            _shut_out(server, what)
        return "%d graphs failed and nothing else" % len(list(_huge_numbers()))


def _endless_vocabulary(port, path):
    graph = Graph().const("file", STRING, path)
    graph.op("table", "HashTableV2", key_dtype=STRING, value_dtype=INT64)
    graph.op("fill", "InitializeTableFromTextFileV2", "table", "file", key_index=Int(-2 & (1 << 64) - 1),
             value_index=Int(-1 & (1 << 64) - 1))
    _step(port, graph, target="fill")


def endless_line_in_a_table(program, folder):
    """A table that is filled from a file with one line of 3 GB, on a server that may use 256 MiB."""
    path = os.path.join(folder, "lines")
    with open(path, "wb") as file:
        file.truncate(3 << 30)
    with Server(program, *known(program, "--max-memory", "256MiB")) as server:
        before = server.memory()
        value = as_user(0, _endless_vocabulary, server.port, path)[1]
        grown = server.memory("VmHWM") - before
        if grown > 1 << 30:
            raise Broken("the step held %d MiB" % (grown >> 20))
        _shut_out(server, "a file without lines")
        return "%d MiB: %s" % (grown >> 20, value)


def _distinct(port, count):
    """Distinct numbers, and a table that keeps them as keys."""
    graph = Graph().const("zero", INT64, struct.pack("<q", 0)).const("one", INT64, struct.pack("<q", 1))
    graph.const("count", INT64, struct.pack("<q", count)).op("range", "Range", "zero", "count", "one", Tidx=INT64)
    graph.op("unique", "Unique", "range", T=INT64, out_idx=INT64)
    graph.op("table", "MutableHashTableV2", key_dtype=INT64, value_dtype=INT64, shared_name="greedy")
    graph.op("insert", "LookupTableInsertV2", "table", "range", "range", Tin=INT64, Tout=INT64)
    client = Client(port, 120)
    session, answers = client.open(graph), []
    for target in ("unique", "insert"):
        try:
            client.run(session, target=target)
            answers.append("%s ended well" % target)
        except grpc.RpcError as e:
            answers.append(e.details())
    return answers


def temporary_memory_of_one_node(program, folder):
    """Unique and a table of 20 million numbers (160 MB), on a server that may use 512 MiB."""
    with Server(program, *known(program, "--max-memory", "512MiB")) as server:
        before = server.memory()
        value = as_user(0, _distinct, server.port, 20000000, seconds=150)[1]
        grown = server.memory("VmHWM") - before
        if grown > 1 << 30:
            raise Broken("it held %d MiB" % (grown >> 20))
        _shut_out(server, "distinct numbers")
        return "%d MiB: %s" % (grown >> 20, value)


def _keep(port):
    graph = Graph().const("secret", STRING, SECRET).op("keep", "GetSessionHandle", "secret", T=STRING)
    client = Client(port)
    return first(client.run(client.open(graph), fetch="keep:0"), 8)


def _read_kept(port, handles):
    graph = Graph().op("handle", "Placeholder", dtype=STRING).op("read", "GetSessionTensor", "handle", dtype=STRING)
    client = Client(port)
    session = client.open(graph)
    for handle in handles:
        fed = field(1, "handle:0") + field(2, field(1, STRING) + field(2, b"") + field(8, handle))
        try:
            answer = client.call("MasterService/RunStep", field(1, session) + field(2, fed) + field(3, "read:0"))
        except grpc.RpcError:
            continue
        if SECRET in answer:
            return handle
    return None


def tensor_that_another_session_keeps(program, folder):
    """A client reads what another session keeps between its steps, by guessing the handle."""
    with Server(program) as server:
        worked, kept = as_user(0, _keep, server.port)
        if not worked:
            raise RuntimeError(kept)
        guesses = [b"keep;%d;%s/device:CPU:0" % (number, TASK.encode()) for number in range(64)] + [kept]
        found = as_user(0, _read_kept, server.port, guesses)[1]
        if found:
            raise Broken("it read %r" % found)
        return "nothing under %d names" % len(guesses)


def _chain(length):
    """A graph whose nodes all wait for a placeholder."""
    graph = Graph().op("x", "Placeholder", dtype=INT64)
    parts, before = [graph.proto], "x"
    for i in range(length):
        node = Graph().op("n%d" % i, "AddV2", before, "x", T=INT64)
        parts.append(node.proto[len(Graph().proto):])
        before = "n%d" % i
    graph.proto = b"".join(parts)
    return graph


def _partial_runs(port, length, count):
    client = Client(port, 60)
    session = client.open(_chain(length))
    request = field(1, session) + field(2, "x:0") + field(3, "n%d:0" % (length - 1))
    done = 0
    for _ in range(count):
        try:
            client.call("MasterService/PartialRunSetup", request)
            done += 1
        except grpc.RpcError as e:
            return "%d, then: %s" % (done, e.details())
    return "%d" % done


def _piled_up(program, what, work, *args):
    """Does `work` as a client of a server that may use 256 MiB, and sees whether another client still gets in."""
    with Server(program, *known(program, "--max-memory", "256MiB")) as server:
        before = server.memory()
        value = as_user(0, work, server.port, *args, seconds=150)[1]
        grown = server.memory("VmHWM") - before
        if grown > 1 << 30:
            raise Broken("%s %s hold %d MiB" % (value, what, grown >> 20))
        _shut_out(server, what)
        return "%d MiB: %s" % (grown >> 20, value)


def partial_runs_without_end(program, folder):
    """Partial runs that are set up and never fed, on a server that may use 256 MiB."""
    return _piled_up(program, "partial runs", _partial_runs, 20000, 700)


def _signatures(port, length, count):
    client = Client(port, 60)
    session = client.open(_chain(length))
    for i in range(count):
        fed = field(1, "x:0") + field(2, field(1, INT64) + field(2, b"") + field(4, struct.pack("<q", i)))
        try:
            client.call("MasterService/RunStep", field(1, session) + field(2, fed) + field(3, "n%d:0" % (length - 1 - i)))
        except grpc.RpcError as e:
            return "%d, then: %s" % (i, e.details())
    return "%d" % count


def compiled_steps_without_end(program, folder):
    """Steps that fetch other values each time, so that each is compiled, on a server that may use 256 MiB."""
    return _piled_up(program, "compiled steps", _signatures, 20000, 150)


def _writers(port, folder, count):
    graph = Graph().const("queue", INT32, struct.pack("<i", 10)).const("millis", INT32, struct.pack("<i", 1000))
    graph.const("folder", STRING, folder)
    for i in range(count):
        graph.const("suffix%d" % i, STRING, ".%d" % i).op("w%d" % i, "SummaryWriter", shared_name="w%d" % i)
        graph.op("make%d" % i, "CreateSummaryFileWriter", "w%d" % i, "folder", "queue", "millis", "suffix%d" % i)
    client = Client(port, 60)
    session = client.open(graph)
    for i in range(count):
        try:
            client.run(session, target="make%d" % i)
        except grpc.RpcError as e:
            return "%d, then: %s" % (i, e.details())
    return "%d" % count


def open_files_take_all_descriptors(program, folder):
    """A client opens files until a server with 256 descriptors has no more for connections."""
    path = os.path.join(folder, "file")
    with open(path, "wb") as file:
        file.write(SECRET)
    with Server(program) as server:
        subprocess.run(["prlimit", "--pid", str(server.pid), "--nofile=256:256"], check=True)
        value = as_user(0, _writers, server.port, os.path.join(folder, "events"), 400, seconds=90)[1]
        _shut_out(server, "%s open files" % value)
        worked, text = as_user(0, read_file, server.port, path)
        if not worked or SECRET not in text:
            raise Broken("another client cannot read a file: %s" % text)
        return "%s" % value


def _slow_constants(port):
    """A step that multiplies large constants, which could be done when it is compiled."""
    size = 1 << 10
    graph = Graph().const("a", FLOAT, b"\0\0\0\0" * size * size, 1, size, size, 1)
    graph.const("b", FLOAT, b"\0\0\0\0" * 512 * 512, 512, 512, 1, 1)
    strides = field(1, field(3, number_bytes(1) * 4))
    node = field(1, "slow") + field(2, "Conv2D") + field(3, "a") + field(3, "b")
    for key, value in (("T", field(6, FLOAT)), ("strides", strides), ("padding", field(2, "SAME"))):
        node += field(5, field(1, key) + field(2, value))
    graph.proto += field(1, node)
    client = Client(port, 5)
    client.run(client.open(graph), fetch="slow:0")


def constants_take_the_network_threads(program, folder):
    """Steps whose constants take minutes to compute keep another client from its answer."""
    with Server(program) as server:
        attackers = [threading.Thread(target=as_user, args=(0, _slow_constants, server.port), kwargs={"seconds": 30})
                     for _ in range(8)]
        for attacker in attackers:
            attacker.start()
        time.sleep(4)
        try:
            _shut_out(server, "slow constants")
        finally:
            for attacker in attackers:
                attacker.join()
        return "another client got its answer"


class RawHttp2:
    """A connection of a client that opens calls and reads no answers."""

    def __init__(self, port, window=65535):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        settings = struct.pack(">HI", 4, window)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, settings) + self.frame(4, 1, 0, b""))
        self.stream = -1
        # What the server says is thrown away; its windows are large enough for what is sent.
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        try:
            while self.socket.recv(1 << 20):
                pass
        except OSError:
            pass

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def call(self, method, message=None, metadata=b""):
        """Opens a call. Without a message it waits for one."""
        text = lambda t: bytes([len(t)]) + t.encode()
        names = ((":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/tensorflow." + method),
                 ("content-type", "application/grpc"))
        head = b"".join(b"\0" + text(name) + text(value) for name, value in names) + metadata
        self.stream += 2
        # Heads longer than a frame go on in others.
        pieces = [head[at:at + 16000] for at in range(0, len(head), 16000)]
        for i, piece in enumerate(pieces):
            self.socket.sendall(self.frame(9 if i else 1, 4 if i == len(pieces) - 1 else 0, self.stream, piece))
        if message is not None:
            framed = b"\0" + struct.pack(">I", len(message)) + message
            self.socket.sendall(self.frame(0, 1, self.stream, framed))


def _long_metadata(port):
    entry = b"\0\x02ab\x01c"
    connection, sent = RawHttp2(port), 0
    began = time.time()
    while sent < 12000 and time.time() - began < 60:
        connection.call("MasterService/RunStep", metadata=entry * 1500)
        sent += 1
    time.sleep(3)
    return "%d" % sent


def metadata_takes_all_memory(program, folder):
    """Calls with long metadata that never send their message, on a server that may use 256 MiB."""
    with Server(program, *known(program, "--max-memory", "256MiB")) as server:
        done = threading.Event()
        attacker = threading.Thread(target=lambda: (as_user(0, _long_metadata, server.port, seconds=90), done.set()))
        attacker.start()
        while not done.wait(5):
            _shut_out(server, "calls with long metadata")
        grown = server.memory("VmHWM")
        if grown > 512 << 20:
            raise Broken("the calls hold %d MiB" % (grown >> 20))
        return "%d MiB" % (grown >> 20)


def _unread_answers(port):
    client = Client(port, 60)
    session = client.open(Graph().const("text", STRING, "y" * 900000))
    connection = RawHttp2(port, window=0)
    for _ in range(1500):
        connection.call("MasterService/RunStep", field(1, session) + field(3, "text:0"))
    time.sleep(3)


def answers_that_stay_unread(program, folder):
    """Steps whose answers their client does not read, on a server that may use 256 MiB."""
    with Server(program, *known(program, "--max-memory", "256MiB")) as server:
        done = threading.Event()
        attacker = threading.Thread(target=lambda: (as_user(0, _unread_answers, server.port, seconds=90), done.set()))
        attacker.start()
        while not done.wait(2):
            _shut_out(server, "unread answers")
        grown = server.memory("VmHWM")
        if grown > 512 << 20:
            raise Broken("the answers hold %d MiB" % (grown >> 20))
        return "%d MiB" % (grown >> 20)


def _latency(server, work, what):
    """The longest time that another client waits for its answers while several clients do `work`."""
    attackers = [threading.Thread(target=as_user, args=(0, work, server.port), kwargs={"seconds": 60}) for _ in range(4)]
    for attacker in attackers:
        attacker.start()
    client, longest = Client(server.port, 60), 0
    while any(attacker.is_alive() for attacker in attackers):
        began = time.time()
        client.call("WorkerService/GetStatus")
        longest = max(longest, time.time() - began)
        time.sleep(0.01)
    # Processors are shared, so an answer takes a while.
    if longest > 0.5:
        raise Broken("another client waited %.1f s while %s" % (longest, what))
    return "%.2f s" % longest


def _many_numbers(port):
    count = 30_000_000
    client = Client(port, 60)
    graph = Graph().op("x", "Placeholder", dtype=INT64).op("shape", "Shape", "x", T=INT64, out_type=INT32)
    value = field(1, INT64) + field(2, field(2, field(1, count))) + field(10, b"\1" * count)
    session = client.open(graph)
    for _ in range(3):
        client.call("MasterService/RunStep", field(1, session) + field(2, field(1, "x:0") + field(2, value)) + field(3, "shape:0"))


def long_messages_take_the_network_threads(program, folder):
    """Messages that take long to decode keep another client from its answer."""
    with Server(program) as server:
        return _latency(server, _many_numbers, "messages were decoded")


def _large_partial_run(port):
    length = 120000
    client = Client(port, 60)
    session = client.open(_chain(length))
    for _ in range(3):
        client.call("MasterService/PartialRunSetup", field(1, session) + field(2, "x:0") + field(3, "n%d:0" % (length - 1)))


def partial_runs_take_the_network_threads(program, folder):
    """Partial runs of large graphs keep another client from its answer."""
    with Server(program) as server:
        return _latency(server, _large_partial_run, "partial runs were compiled")


def half_greetings_of_links(program, folder):
    """Connections that send half the greeting of a link keep a task from opening one."""
    with Server(program) as server:
        subprocess.run(["prlimit", "--pid", str(server.pid), "--nofile=1024:1024"], check=True)
        half = []
        for _ in range(700):
            half.append(socket.create_connection(("127.0.0.1", server.port), 5))
            half[-1].sendall(b"FERROFLW")
        _shut_out(server, "half greetings")
        try:
            Link(server.port)
        except (OSError, PermissionError) as e:
            raise Broken("no link: %s" % e)
        finally:
            for connection in half:
                connection.close()
        return "a link was opened beside %d" % len(half)


def _model_of_zeros(folder):
    """A SavedModel that answers a number n with n zeros."""
    graph = (Graph().op("n", "Placeholder", dtype=INT32).const("zero", FLOAT, struct.pack("<f", 0))
             .op("y", "Fill", "n", "zero", T=FLOAT, index_type=INT32))
    value = lambda name, dtype, dims: field(1, name + ":0") + field(2, dtype) + field(3, dims)
    one, many = field(2, field(1, 1)), field(2, field(1, 2 ** 64 - 1))
    signature = (field(1, field(1, "n") + field(2, value("n", INT32, one))) +
                 field(2, field(1, "y") + field(2, value("y", FLOAT, many))) + field(3, "tensorflow/serving/predict"))
    meta = field(1, field(4, "serve")) + field(2, graph.proto) + field(5, field(1, "serving_default") + field(2, signature))
    os.makedirs(os.path.join(folder, "zeros", "1"))
    with open(os.path.join(folder, "zeros", "1", "saved_model.pb"), "wb") as file:
        file.write(field(1, 1) + field(2, meta))


def _ask_for_zeros(port, count, seconds=60):
    connection = socket.create_connection(("127.0.0.1", port), seconds)
    body = b'{"inputs": [%d]}' % count
    connection.sendall(b"POST /v1/models/zeros:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                       % (len(body), body))
    return connection


def unread_answers_of_a_model(program, folder):
    """120 clients ask a model for answers of 8 MB and read nothing, on a server that may use 256 MiB."""
    _model_of_zeros(folder)
    with ModelServer(program, os.path.join(folder, "zeros"), "--max-memory", "256MiB") as server:
        before = server.memory()
        clients = [_ask_for_zeros(server.rest, 2_000_000) for _ in range(120)]
        for _ in range(10):
            time.sleep(1)
            with _ask_for_zeros(server.rest, 2) as other:
                # The server may say that it has no memory, but it must answer.
                if not other.recv(100).startswith(b"HTTP/1.1 "):
                    raise Broken("no answer beside clients that read nothing")
        grown = server.memory("VmHWM") - before
        for client in clients:
            client.close()
        if grown > 300 << 20:
            raise Broken("the answers hold %d MiB" % (grown >> 20))
        return "%d MiB" % (grown >> 20)


def _shape(*dims):
    return b"".join(field(2, field(1, dim)) for dim in dims)


def _attribute(name, value):
    return field(5, field(1, name) + field(2, value))


def _types(*types):
    return field(1, b"".join(field(6, dtype) for dtype in types))


def _function(name, nodes, result):
    """A function of one float `x` with one result."""
    arg = lambda n: field(1, n) + field(3, FLOAT)
    of_node = lambda n, op, x, attrs: field(1, n) + field(2, op) + field(3, x) + attrs
    return (field(1, field(1, name) + field(2, arg("x")) + field(3, arg("y"))) +
            b"".join(field(3, of_node(*node)) for node in nodes) + field(4, field(1, "y") + field(2, result)))


def _calls_of_calls(depth, gradient):
    """f0 calls f1 twice, which calls f2 twice, and so on."""
    library = _function("f%d" % depth, [("a", "Neg", "x", _attribute("T", field(6, FLOAT)))], "a:y:0")
    functions = field(1, library)
    for i in range(depth):
        callee = "f%d" % (i + 1)
        functions += field(1, _function("f%d" % i, [("a", callee, "x", b""), ("b", callee, "a:y:0", b"")], "b:y:0"))
    graph = Graph().const("x", FLOAT, struct.pack("<f", 1))
    node = field(1, "out") + field(3, "x")
    if gradient:
        attrs = _attribute("Tin", _types(FLOAT, FLOAT)) + _attribute("Tout", _types(FLOAT))
        node += field(2, "SymbolicGradient") + field(3, "x") + attrs + _attribute("f", field(10, field(1, "f0")))
    else:
        node += field(2, "f0")
    graph.proto += field(1, node) + field(2, functions)
    return graph


def _processor_time(server):
    with open("/proc/%d/stat" % server.pid) as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def functions_run_on_without_their_client(program, folder):
    """A function that calls others a trillion times, and its gradient, after their client has left."""
    with Server(program) as server:
        for gradient in (False, True):
            worked, why = as_user(0, lambda: _step(server.port, _calls_of_calls(20 if gradient else 40, gradient), fetch="out:0", seconds=4))
            if not worked and "Deadline" not in why:
                continue
            time.sleep(5)
            before = _processor_time(server)
            time.sleep(2)
            if _processor_time(server) - before > 0.5:
                raise Broken("%s runs on" % ("the gradient" if gradient else "the function"))
            _shut_out(server, "functions")
        return "the server rests"


def _growing_text(port):
    graph = (Graph().const("x", STRING, "a" * 100000).const("pattern", STRING, "a").const("to", STRING, "b" * 100000)
             .op("out", "RegexReplace", "x", "pattern", "to", replace_global=True))
    return _step(port, graph, fetch="out:0")


def _held_within(program, work, what):
    """Does `work` as a client of a server that may use 512 MiB, and sees how much it used, and whether another client gets in."""
    with Server(program, *known(program, "--max-memory", "512MiB")) as server:
        why = as_user(0, work, server.port)[1]
        _shut_out(server, what)
        grown = server.memory("VmHWM")
        if grown > 900 << 20:
            raise Broken("%s holds %d MiB" % (what, grown >> 20))
        return "%d MiB: %s" % (grown >> 20, str(why).split("\n")[0][:80])


def text_that_grows(program, folder):
    """A string of 10 GB that grows in small pieces, on a server that may use 512 MiB."""
    return _held_within(program, _growing_text, "a growing string")


def _long_kernel(port, placed_by_step):
    """Incomplete beta functions whose series do not end soon, of constants or within the step."""
    graph = Graph().const("shape", INT32, struct.pack("<i", 200000), 1)
    for name, value in (("a", 1e30), ("x", 0.5)):
        graph.const(name + "1", FLOAT, struct.pack("<f", value))
        graph.op(name, "Fill", "shape", name + "1", T=FLOAT, index_type=INT32)
    if placed_by_step:
        # A stateful node, so that nothing can be computed before the step.
        graph.op("n", "RandomUniform", "shape", dtype=FLOAT, T=INT32, seed=Int(1), seed2=Int(2))
        graph.op("b", "AddV2", "a", "n", T=FLOAT)
    graph.op("out", "Betainc", "a", "b" if placed_by_step else "a", "x", T=FLOAT)
    return _step(port, graph, fetch="out:0", seconds=20)


def long_kernels_take_the_threads(program, folder):
    """Kernels that run for minutes keep another client from its answer."""
    for placed_by_step in (False, True):
        with Server(program) as server:
            attackers = [threading.Thread(target=as_user, args=(0, _long_kernel, server.port, placed_by_step)) for _ in range(4)]
            for attacker in attackers:
                attacker.start()
            time.sleep(2)
            for _ in range(3):
                _shut_out(server, "long kernels of %s" % ("a step" if placed_by_step else "constants"))
            for attacker in attackers:
                attacker.join()
    return "another client got its answers"


def _endless_window(port):
    """A window of all numbers: its elements, and then errors, are gathered."""
    graph = Graph()
    for name, value in (("zero", 0), ("all", 1 << 62), ("one", 1), ("size", 1 << 61)):
        graph.const(name, INT64, struct.pack("<q", value))
    graph.const("rest", BOOL, b"\0")
    kinds = {"output_types": field(1, field(6, INT64)), "output_shapes": field(1, field(7, b""))}
    variants = {"output_types": field(1, field(6, VARIANT)), "output_shapes": field(1, field(7, b""))}

    def node(name, op, inputs, attrs):
        graph.proto += field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) +
                             b"".join(_attribute(key, value) for key, value in attrs.items()))

    node("numbers", "RangeDataset", ["zero", "all", "one"], kinds)
    node("windows", "WindowDataset", ["numbers", "size", "one", "one", "rest"], variants)
    node("iterator", "AnonymousIterator", [], variants)
    node("make", "MakeIterator", ["windows", "iterator"], {})
    node("out", "IteratorGetNext", ["iterator", "^make"], variants)
    return _step(port, graph, target="out", seconds=15)


def elements_of_a_window(program, folder):
    """A window without an end, on a server that may use 512 MiB."""
    return _held_within(program, _endless_window, "a window")


def _large_matrix(port):
    graph = (Graph().const("shape", INT32, struct.pack("<ii", 3000, 3000), 2)
             .op("x", "RandomUniform", "shape", dtype=FLOAT, T=INT32, seed=Int(1), seed2=Int(2))
             .op("out", "Svd", "x", T=FLOAT, compute_uv=True, full_matrices=False))
    return _step(port, graph, target="out", seconds=15)


def memory_of_a_factorisation(program, folder):
    """Singular values of a matrix of 36 MB, on a server that may use 512 MiB: other clients get no memory."""
    with Server(program, *known(program, "--max-memory", "512MiB")) as server:
        attacker = threading.Thread(target=as_user, args=(0, _large_matrix, server.port))
        attacker.start()
        while attacker.is_alive():
            _shut_out(server, "a factorisation")
            time.sleep(1)
        return "%d MiB" % (server.memory("VmHWM") >> 20)


ROWS = 1 << 40  # of a tensor without elements


def _without_elements(graph, name, dtype, *dims):
    return graph.op(name, "Const", dtype=dtype, value=field(1, dtype) + field(2, _shape(*dims)))


def _numbers(graph, **numbers):
    for name, (dtype, number) in numbers.items():
        graph.const(name, dtype, struct.pack("<i" if dtype == INT32 else "<q", number))
    return graph


def _lists(dtypes=(), shapes=()):
    return Encoded(field(1, b"".join(field(6, t) for t in dtypes) + b"".join(field(7, _shape(*dims)) for dims in shapes)))


def _rows_of_nothing():
    """Graphs whose kernels do something for each of 2^40 rows without elements."""
    graph = _numbers(Graph(), k=(INT64, 4))
    _without_elements(_without_elements(graph, "x", FLOAT, ROWS, 0), "centers", FLOAT, 4, 0)
    yield graph.op("out", "NearestNeighbors", "x", "centers", "k")
    graph = _without_elements(Graph(), "x", FLOAT, ROWS, 0)
    arg = lambda name: field(1, name) + field(3, FLOAT)
    function = field(1, field(1, "f") + field(2, arg("a")) + field(3, arg("r"))) + field(4, field(1, "r") + field(2, "a"))
    graph.proto += field(2, field(1, function))
    yield graph.op("out", "MapDefun", "x", f=Encoded(field(10, field(1, "f"))), Targuments=_lists([FLOAT]), Tcaptured=_lists(),
                   output_types=_lists([FLOAT]), output_shapes=_lists(shapes=[(0,)]))
    graph = _without_elements(Graph(), "x", INT64, ROWS, 0)
    yield graph.op("out", "SparseCross", "x", N=Int(0), hashed_output=True, num_buckets=Int(5), hash_key=Int(1),
                   sparse_types=_lists(), dense_types=_lists([INT64]), out_type=INT64, internal_type=INT64)
    graph = _numbers(_without_elements(Graph(), "x", FLOAT, ROWS, 0), n=(INT32, 1))
    graph.op("array", "TensorArray", "n", dtype=FLOAT, dynamic_size=True).const("flow", FLOAT, bytes(4))
    yield graph.op("out", "TensorArrayUnpack", "array", "x", "flow", T=FLOAT)
    graph = _numbers(_without_elements(Graph(), "x", FLOAT, ROWS, 0), shape=(INT32, -1))
    graph.op("list", "TensorListFromTensor", "x", "shape", element_dtype=FLOAT, shape_type=INT32)
    yield graph.op("out", "TensorListLength", "list")
    graph = _without_elements(Graph(), "x", FLOAT, ROWS, 0)
    graph.op("queue", "FIFOQueueV2", component_types=_lists([FLOAT]), shapes=_lists(shapes=[(0,)]))
    yield graph.op("out", "QueueEnqueueManyV2", "queue", "x", Tcomponents=_lists([FLOAT]))


def _long_paths():
    """The losses of sequences that need a number for each time and each label."""
    n = 100_000
    graph = _numbers(Graph(), zero=(INT64, 0), one=(INT64, 1), labels=(INT64, n // 2))
    graph.const("shape", INT32, struct.pack("<iii", n, 1, 2), 3).const("lengths", INT32, struct.pack("<i", n), 1)
    graph.op("x", "RandomUniform", "shape", dtype=FLOAT, T=INT32).op("columns", "Range", "zero", "labels", "one", Tidx=INT64)
    graph.op("rows", "ZerosLike", "columns", T=INT64).op("at", "Pack", "rows", "columns", N=Int(2), axis=Int(1), T=INT64)
    graph.op("classes", "Cast", "rows", SrcT=INT64, DstT=INT32)
    return graph.op("out", "CTCLoss", "x", "at", "classes", "lengths", ignore_longer_outputs_than_inputs=True, T=FLOAT)


def _padded_batch():
    """A batch of one row, padded to 2^40."""
    graph = Graph().const("x", FLOAT, bytes(4), 1)
    return graph.op("out", "Batch", "x", num_batch_threads=Int(1), max_batch_size=Int(ROWS), batch_timeout_micros=Int(0),
                    grad_timeout_micros=Int(0), allowed_batch_sizes=Encoded(field(1, field(3, ROWS))), T=_lists([FLOAT]))


def _run_one(port, graph):
    return _step(port, graph, target="out", seconds=10)


def lists_of_a_kernel_end_the_server(program, folder):
    """Kernels make lists for rows that have no elements, and for sizes that nothing bounds."""
    graphs = [*_rows_of_nothing(), _long_paths(), _padded_batch()]
    for number, graph in enumerate(graphs):
        with Server(program, *known(program, "--max-memory", "512MiB")) as server:
            # A build that does not bound the lists must not take the memory of this machine.
            subprocess.run(["prlimit", "--pid", str(server.pid), "--as=%d" % (24 << 30)], check=True)
            why = as_user(0, _run_one, server.port, graph)[1]
            if server.ended(1) is not None:
                raise Broken("graph %d ended the server" % number)
            _shut_out(server, "a list")
            grown = server.memory("VmHWM")
            if grown > 900 << 20:
                raise Broken("graph %d holds %d MiB" % (number, grown >> 20))
    return "%d graphs: %s" % (len(graphs), str(why).split("\n")[0][:80])


def _large_lists():
    """Small graphs that make lists of many values."""
    graph = _numbers(Graph(), n=(INT32, (1 << 26) - 1), shape=(INT32, -1))
    graph.op("list", "TensorListReserve", "shape", "n", element_dtype=FLOAT, shape_type=INT32)
    yield graph.op("out", "TensorListLength", "list")
    yield _numbers(Graph(), n=(INT32, 1 << 24)).op("out", "TensorArrayV3", "n", dtype=FLOAT, dynamic_size=True)
    graph = _without_elements(_without_elements(Graph(), "i", INT64, 0, 2), "v", FLOAT, 0)
    graph.const("shape", INT64, struct.pack("<qq", 300 << 20, 2), 2).const("default", FLOAT, bytes(4))
    yield graph.op("out", "SparseFillEmptyRows", "i", "v", "shape", "default", T=FLOAT)
    graph = _numbers(Graph().const("shape", INT32, struct.pack("<ii", 1, 16384), 2), x=(INT64, 7))
    graph.op("row", "Fill", "shape", "x", T=INT64, index_type=INT32)
    yield graph.op("out", "SparseCross", "row", "row", N=Int(0), hashed_output=False, num_buckets=Int(0), hash_key=Int(1),
                   sparse_types=_lists(), dense_types=_lists([INT64, INT64]), out_type=STRING, internal_type=INT64)
    graph = Graph().const("shape", INT32, struct.pack("<ii", 60 << 20, 1), 2)
    graph.op("x1", "Const", dtype=6, value=field(1, 6) + field(2, b"") + field(4, b"\1"))
    graph.op("x", "Fill", "shape", "x1", T=6, index_type=INT32)
    yield graph.op("out", "DenseToDenseSetOperation", "x", "x", set_operation="union", T=6)
    count, keys = 20000, 20000
    graph = Graph().op("barrier", "Barrier", component_types=_lists([FLOAT] * count), shapes=_lists(shapes=[()] * count))
    names = b"".join(field(8, str(key)) for key in range(keys))
    graph.op("keys", "Const", dtype=STRING, value=field(1, STRING) + field(2, _shape(keys)) + names)
    graph.const("values", FLOAT, bytes(4 * keys), keys)
    yield graph.op("out", "BarrierInsertMany", "barrier", "keys", "values", T=FLOAT, component_index=Int(0))
    # Forty datasets, each of which uses the one before twice: 2^40 iterators.
    numbers = {"output_types": _lists([INT64]), "output_shapes": _lists(shapes=[()])}
    graph = _numbers(Graph(), start=(INT64, 0), stop=(INT64, 10), step=(INT64, 1))
    graph.op("d0", "RangeDataset", "start", "stop", "step", **numbers)
    for i in range(40):
        graph.op("d%d" % (i + 1), "ZipDataset", "d%d" % i, "d%d" % i, N=Int(2), **numbers)
    yield graph.op("iterator", "AnonymousIterator", **numbers).op("out", "MakeIterator", "d40", "iterator")


def lists_of_a_session(program, folder):
    """Lists of values that take little each, on a server that may use 512 MiB."""
    return ", ".join(_held_within(program, lambda port: _run_one(port, graph), "list %d" % number).split(":")[0]
                     for number, graph in enumerate(_large_lists()))


def _product_beside(server, what):
    """Another client multiplies matrices that are large enough to be split over the threads."""
    graph = (Graph().const("shape", INT32, struct.pack("<ii", 300, 300), 2)
             .op("x", "RandomUniform", "shape", dtype=FLOAT, T=INT32).op("out", "MatMul", "x", "x", T=FLOAT))
    worked, why = as_user(0, lambda: _step(server.port, graph, target="out", seconds=15), seconds=20)
    if not worked:
        raise Broken("no product beside %s: %s" % (what, str(why).split("\n")[0]))


def _many_short_kernels(port):
    """Thousands of kernels of milliseconds each."""
    count = 6000
    graph = Graph().const("shape", INT32, struct.pack("<i", 60), 1)
    for name, value in (("a", 1e30), ("x", 0.5)):
        graph.const(name + "1", FLOAT, struct.pack("<f", value)).op(name, "Fill", "shape", name + "1", T=FLOAT, index_type=INT32)
    for i in range(count):
        graph.op("n%d" % i, "RandomUniform", "shape", dtype=FLOAT, T=INT32, seed=Int(1), seed2=Int(i + 1))
        graph.op("b%d" % i, "AddV2", "a", "n%d" % i, T=FLOAT).op("out%d" % i, "Betainc", "a", "b%d" % i, "x", T=FLOAT)
    client = Client(port, 30)
    session = client.open(graph)
    client.call("MasterService/RunStep", field(1, session) + b"".join(field(4, "out%d" % i) for i in range(count)))


def kernels_of_others_come_first(program, folder):
    """Kernels that are split over all threads, and thousands of short ones, keep another client from its product."""
    for work, args in ((_long_kernel, (True,)), (_many_short_kernels, ())):
        with Server(program) as server:
            attackers = [threading.Thread(target=as_user, args=(0, work, server.port, *args)) for _ in range(2)]
            for attacker in attackers:
                attacker.start()
            time.sleep(4)
            _product_beside(server, work.__doc__)
            for attacker in attackers:
                attacker.join()
    return "another client got its products"


def _large_results(port):
    """Steps whose result is as large as a feed says."""
    graph = Graph().op("n", "Placeholder", dtype=INT32).const("one", FLOAT, struct.pack("<f", 1))
    graph.op("x", "Fill", "n", "one", T=FLOAT, index_type=INT32).op("out", "Shape", "x", T=FLOAT, out_type=INT32)
    client = Client(port, 20)
    session = client.open(graph)
    value = field(1, INT32) + field(2, _shape(1)) + field(4, struct.pack("<i", 1 << 27))
    for _ in range(8):
        client.call("MasterService/RunStep", field(1, session) + field(2, field(1, "n:0") + field(2, value)) + field(3, "out:0"))


def large_results_take_the_network_threads(program, folder):
    """Results that are much larger than what they are made of keep another client from its answer."""
    with Server(program) as server:
        attackers = [threading.Thread(target=as_user, args=(0, _large_results, server.port)) for _ in range(6)]
        for attacker in attackers:
            attacker.start()
        longest = 0
        while any(attacker.is_alive() for attacker in attackers):
            began = time.time()
            Client(server.port, 60).call("WorkerService/GetStatus")
            longest = max(longest, time.time() - began)
        if longest > 1.5:
            raise Broken("another client waited %.1f s" % longest)
        return "%.2f s" % longest


ATTACKS = [other_user_reads_a_file, other_user_writes_a_file, client_leaves_the_allowed_folder, fifo_freezes_the_server,
           fifo_keeps_the_server_from_ending, other_user_truncates_shared_memory, memory_of_another_session,
           bools_that_are_neither_true_nor_false, frames_reserve_memory, reset_by_another_user, forged_master, token_in_clear,
           silent_sockets_at_rank_0, messages_without_an_end, lists_in_lists_overflow_the_stack,
           small_strings_escape_the_memory_limit, fifo_takes_all_threads_for_files, silent_sockets_at_the_health_port,
           huge_numbers_end_the_server, endless_line_in_a_table, temporary_memory_of_one_node,
           tensor_that_another_session_keeps, partial_runs_without_end, compiled_steps_without_end,
           open_files_take_all_descriptors, constants_take_the_network_threads, metadata_takes_all_memory,
           answers_that_stay_unread, long_messages_take_the_network_threads, partial_runs_take_the_network_threads,
           half_greetings_of_links, unread_answers_of_a_model, functions_run_on_without_their_client, text_that_grows,
           long_kernels_take_the_threads, elements_of_a_window, memory_of_a_factorisation,
           lists_of_a_kernel_end_the_server, lists_of_a_session, kernels_of_others_come_first,
           large_results_take_the_network_threads]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--only", default="", help="attacks whose names contain this")
    args = p.parse_args()
    if os.getuid():
        sys.exit("attacks.py needs root: it acts as several users")
    program, held, broken = os.path.abspath(args.program), 0, 0
    for attack in ATTACKS:
        if args.only not in attack.__name__:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                said, outcome = attack(program, folder), "held"
                held += 1
            except Broken as e:
                said, outcome = e, "BROKEN"
                broken += 1
            except Exception as e:
                traceback.print_exc()
                said, outcome = e, "ERROR"
                broken += 1
        print("%-42s %-7s %s" % (attack.__name__, outcome, str(said).replace("\n", " ")[:150]), flush=True)
    print("%d held, %d broken" % (held, broken))
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
