#!/usr/bin/env python
"""Runs the conformance programs against a cluster of servers.

Each program is an unmodified TensorFlow 1.x style client.  The servers it
talks to are either real TensorFlow servers (`--servers tf`) or an external
binary (`--servers cmd --server-cmd '...'`), so that the same programs prove
both.  See README.md.
"""

import argparse
import ast
import json
import os
import queue
import random
import re
import shlex
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import zygote

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = "127.0.0.1"
HEADER = ("TIER", "CLUSTER", "HOSTED", "TIMEOUT", "FRESH")
# Whether the servers have GPUs, which compute most of the steps.
HAS_GPUS = bool(os.environ.get("FFC_GPUS"))


class Failure(Exception):
    """A program, or the cluster it needs, failed."""


# ---------------------------------------------------------------- programs


class Program:
    """A program file and the constants its header declares."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        with open(path) as f:
            tree = ast.parse(f.read(), path)
        header = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                name = getattr(node.targets[0], "id", None)
                if name in HEADER:
                    header[name] = ast.literal_eval(node.value)
        self.about = (ast.get_docstring(tree) or "").split("\n")[0]
        self.tier = header.get("TIER", 0)
        self.cluster = header.get("CLUSTER", {"worker": 1})
        self.hosted = header.get("HOSTED", [])
        self.timeout = header.get("TIMEOUT")
        self.fresh = header.get("FRESH", False) or bool(self.hosted)

    def tasks(self):
        return sum(self.cluster.values())

    def cluster_text(self):
        parts = []
        for job in sorted(self.cluster):
            where = "*" if job in self.hosted else ""
            parts.append("%d %s%s" % (self.cluster[job], job, where))
        return " + ".join(parts)


def load_programs(folder):
    names = sorted(n for n in os.listdir(folder)
                   if n.endswith(".py") and not n.startswith("_"))
    programs = [Program(os.path.join(folder, n)) for n in names]
    return sorted(programs, key=lambda p: (p.tier, p.name))


def select(programs, only, tiers, max_tasks):
    if tiers:
        programs = [p for p in programs if p.tier in tiers]
    if max_tasks:
        programs = [p for p in programs if p.tasks() <= max_tasks]
    if only:
        chosen = []
        for pattern in only:
            exact = [p for p in programs if p.name == pattern]
            found = exact or [p for p in programs if pattern in p.name]
            if not found:
                raise SystemExit("no program matches %r" % pattern)
            chosen += [p for p in found if p not in chosen]
        programs = chosen
    return programs


# ----------------------------------------------------------------- cluster


_ports_given = set()
_ports_lock = threading.Lock()


def free_ports(count):
    """Free loopback ports below the ephemeral range, so that no outgoing
    connection takes one while a server restarts.  A port is given out once
    until its cluster has stopped, so that those of --jobs do not meet."""
    ports = []
    while len(ports) < count:
        port = random.randint(20000, 32000)
        with _ports_lock:
            if port in _ports_given:
                continue
            with socket.socket() as s:
                try:
                    s.bind((HOST, port))
                except OSError:
                    continue
            _ports_given.add(port)
        ports.append(port)
    return ports


def release_ports(spec):
    with _ports_lock:
        for addresses in spec.values():
            for address in addresses:
                _ports_given.discard(int(address.rsplit(":", 1)[1]))


class Cluster:
    """The server processes of one cluster."""

    def __init__(self, program, options, log_dir):
        self.options = options
        self.log_dir = log_dir
        self.procs = {}  # (job, task) -> Popen
        self.lock = threading.Lock()
        shape, hosted = program.cluster, program.hosted
        ports = iter(free_ports(sum(shape.values())))
        self.spec = {job: ["%s:%d" % (HOST, next(ports))
                           for _ in range(shape[job])]
                     for job in sorted(shape)}
        self.launched = [(job, task) for job in sorted(shape)
                         if job not in hosted for task in range(shape[job])]

    def start(self):
        try:
            for job, task in self.launched:
                self.launch(job, task)
            for job, task in self.launched:
                self.wait_ready(job, task)
        except Failure:
            self.stop()
            raise

    def argv(self, job, task):
        spec = json.dumps(self.spec, sort_keys=True)
        if self.options.servers == "tf" or job in self.options.tf_jobs:
            return [sys.executable, os.path.join(HERE, "tf_server.py"),
                    "--cluster", spec, "--job", job, "--task", str(task)]
        host, port = self.spec[job][task].rsplit(":", 1)
        values = {"{cluster_json}": spec, "{job}": job, "{task}": str(task),
                  "{host}": host, "{port}": port}
        argv = []
        for word in shlex.split(self.options.server_cmd):
            for key, value in values.items():
                word = word.replace(key, value)
            argv.append(word)
        return argv

    def launch(self, job, task):
        log = open(os.path.join(self.log_dir, "%s-%d.log" % (job, task)), "ab")
        with log:
            try:
                proc = subprocess.Popen(
                    self.argv(job, task), stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log, env=server_env(),
                    start_new_session=True)
            except OSError as e:
                raise Failure("cannot start server %s:%d: %s" % (job, task, e))
        self.procs[job, task] = proc

    def wait_ready(self, job, task):
        host, port = self.spec[job][task].rsplit(":", 1)
        deadline = time.time() + self.options.start_timeout
        while True:
            if self.procs[job, task].poll() is not None:
                raise Failure("server %s:%d exited with code %d at start: %s"
                              % (job, task, self.procs[job, task].returncode,
                                 self.last_log_line(job, task)))
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                if time.time() > deadline:
                    raise Failure("server %s:%d does not accept connections"
                                  % (job, task))
                time.sleep(0.05)

    def gpu_kernels(self):
        """The kernels that the servers ran on GPUs, as they say when they
        stop.  A server that was killed says nothing."""
        total = 0
        for job, task in self.launched:
            path = os.path.join(self.log_dir, "%s-%d.log" % (job, task))
            with open(path, errors="replace") as f:
                total += sum(map(int, re.findall(r"ran (\d+) kernels", f.read())))
        return total

    def last_log_line(self, job, task):
        path = os.path.join(self.log_dir, "%s-%d.log" % (job, task))
        with open(path, errors="replace") as f:
            lines = [line.strip() for line in f if line.strip()]
        return lines[-1] if lines else "(no output)"

    def kill(self, job, task):
        """Ends a server the hard way, as a crash would."""
        kill_group(self.procs[job, task])

    def stop(self):
        running = [p for p in self.procs.values() if p.poll() is None]
        for proc in running:
            proc.terminate()
        deadline = time.time() + 3
        for proc in running:
            try:
                proc.wait(max(0.0, deadline - time.time()))
            except subprocess.TimeoutExpired:
                pass
        for proc in self.procs.values():
            kill_group(proc)
        release_ports(self.spec)

    def dead_servers(self):
        return ["%s:%d (exit code %d)" % (job, task, proc.returncode)
                for (job, task), proc in sorted(self.procs.items())
                if proc.poll() is not None]


class Control:
    """A line of JSON in, a line of JSON out: lets a program kill and restart
    the servers of its own cluster."""

    def __init__(self, cluster):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    reply = {"ok": True}
                    try:
                        answer(cluster, json.loads(line))
                    except Exception as e:  # reported to the program
                        reply = {"ok": False, "error": str(e)}
                    self.wfile.write((json.dumps(reply) + "\n").encode())

        self.server = socketserver.ThreadingTCPServer((HOST, 0), Handler)
        self.server.daemon_threads = True
        self.address = "%s:%d" % self.server.server_address
        threading.Thread(target=self.server.serve_forever, args=(0.1,),
                         daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def answer(cluster, request):
    do, job, task = request["do"], request["job"], request["task"]
    with cluster.lock:
        if do == "kill":
            cluster.kill(job, task)
        elif do == "start":
            cluster.launch(job, task)
            cluster.wait_ready(job, task)
        else:
            raise ValueError("unknown request %r" % do)


# ----------------------------------------------------------------- running


def child_env(**more):
    env = dict(os.environ)
    for name in list(env):
        if name.lower() in ("http_proxy", "https_proxy", "grpc_proxy",
                            "all_proxy", "tf_config"):
            del env[name]
    env.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    env["PYTHONUNBUFFERED"] = "1"
    env["CUDA_VISIBLE_DEVICES"] = ""
    env.update(more)
    return env


def server_env():
    """Servers may have GPUs that are simulated; the programs have none."""
    env = child_env()
    if HAS_GPUS:
        del env["CUDA_VISIBLE_DEVICES"]
    return env


def first_error(output, program):
    """The line that best says why a program failed."""
    lines = output.splitlines()
    for line in lines:
        if line.startswith("FF_ERROR: "):
            return line[len("FF_ERROR: "):]
    for line in reversed(lines):
        if re.match(r"[\w.]+(Error|Exception|Exit|Interrupt)\b", line):
            return line
    return lines[-1] if lines else "(no output)"


def hang_place(output, program):
    """Where the main thread was, from the stack dumped before the timeout."""
    frames = re.findall(r'File "[^"]*/%s\.py", line (\d+) in (\w+)'
                        % re.escape(program.name), output)
    return " at line %s in %s" % frames[0] if frames else ""


def run_client(program, cluster, options, log_dir, started):
    """Runs the program's client process; raises Failure when it fails.
    `started` is called with the process."""
    control = Control(cluster)
    timeout = program.timeout or options.timeout
    main_job = "worker" if "worker" in cluster.spec else sorted(cluster.spec)[0]
    env = child_env(
        FF_CLUSTER=json.dumps(cluster.spec, sort_keys=True),
        FF_TARGET="grpc://" + cluster.spec[main_job][0],
        FF_CONTROL=control.address,
        FF_TIMEOUT=str(timeout),
        FF_HOSTED=json.dumps(program.hosted),
        FF_ZYGOTE=options.zygote,
        FF_RESET="1" if options.reuse and not program.fresh else "",
        PYTHONPATH=HERE + os.pathsep + os.environ.get("PYTHONPATH", ""))
    if options.census:
        env["FF_CENSUS"] = os.path.abspath(options.census)
    work_dir = tempfile.mkdtemp(prefix="ff-" + program.name + "-")
    env["FF_TMP"] = work_dir
    log_path = os.path.join(log_dir, "client.log")
    try:
        with open(log_path, "wb") as log:
            proc = zygote.start(options.zygote, [program.path], env, work_dir, log)
            started(proc)
            try:
                code = proc.wait(timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                kill_group(proc)
        with open(log_path, errors="replace") as f:
            output = f.read()
        if code is None:
            raise Failure("timeout after %g s%s"
                          % (timeout, hang_place(output, program)))
        if code != 0:
            raise Failure(first_error(output, program))
        if "FF_PASS" not in output:
            raise Failure("ended early, without reaching its last check")
    finally:
        control.close()
        shutil.rmtree(work_dir, ignore_errors=True)


def kill_group(proc):
    """Ends a process we started and whatever processes it started itself."""
    try:
        os.killpg(proc.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    proc.wait()


class Runner:
    """Runs one program at a time, on clusters of its own."""

    def __init__(self, options, logs):
        self.options = options
        self.logs = logs
        self.kept = {}  # cluster shape -> running Cluster, with --reuse
        self.client = None
        self.kernels = 0  # of the servers of the last program, on GPUs
        self.stopped = False

    def log_dir(self, name):
        path = os.path.join(self.logs, name)
        os.makedirs(path, exist_ok=True)
        for old in os.listdir(path):
            if old.endswith(".log"):
                os.remove(os.path.join(path, old))
        return path

    def run(self, program, turn):
        log_dir = self.log_dir(program.name + (".%d" % turn if turn else ""))
        key = None
        if self.options.reuse and not program.fresh:
            key = json.dumps(program.cluster, sort_keys=True)
        cluster = self.kept.get(key)
        if cluster is None or cluster.dead_servers():
            cluster = Cluster(program, self.options, log_dir)
            cluster.start()
            if key:
                self.kept[key] = cluster
        try:
            run_client(program, cluster, self.options, log_dir, self.watch)
        except Failure as e:
            dead = cluster.dead_servers()
            if key:  # never hand a suspect cluster to the next program
                del self.kept[key]
                cluster.stop()
            if dead:
                raise Failure("%s; dead: %s" % (e, ", ".join(dead)))
            raise
        finally:
            if not key:
                cluster.stop()
                self.kernels = cluster.gpu_kernels()

    def watch(self, client):
        self.client = client
        if self.stopped:
            kill_group(client)

    def stop(self):
        """From another thread: ends the program that runs now."""
        self.stopped = True
        if self.client and self.client.poll() is None:
            kill_group(self.client)

    def close(self):
        for cluster in self.kept.values():
            cluster.stop()


class Report:
    """The results, printed as they come."""

    def __init__(self, programs, options):
        self.width = max((len(p.name) for p in programs), default=0)
        self.options = options
        self.results = []
        self.kernels = 0
        self.lock = threading.Lock()
        print("%-*s  %-6s  %7s  %s" % (self.width, "program", "result",
                                       "seconds", "first error"), flush=True)

    def add(self, program, turn, seconds, error, kernels):
        with self.lock:
            self.kernels += kernels
            self.results.append({
                "program": program.name, "tier": program.tier, "turn": turn,
                "cluster": program.cluster, "hosted": program.hosted,
                "passed": not error, "seconds": round(seconds, 2),
                "gpu_kernels": kernels, "error": error})
            if HAS_GPUS and not error:
                error = "%d kernels on GPUs" % kernels
            print(("%-*s  %-6s  %7.1f  %s"
                   % (self.width, program.name,
                      "pass" if self.results[-1]["passed"] else "FAIL",
                      seconds, error[:300])).rstrip(), flush=True)

    def failed(self):
        return sum(not r["passed"] for r in self.results)

    def save(self):
        if self.options.json:
            with open(self.options.json, "w") as f:
                json.dump({"servers": self.options.servers,
                           "passed": len(self.results) - self.failed(),
                           "failed": self.failed(),
                           "results": self.results}, f, indent=1)


def run_lane(runner, todo, report):
    """Takes programs from `todo` until there are none left."""
    try:
        while not runner.stopped:
            try:
                turn, program = todo.get_nowait()
            except queue.Empty:
                return
            began, error, runner.kernels = time.time(), "", 0
            try:
                runner.run(program, turn)
            except Failure as e:
                error = str(e)
            except Exception as e:  # ours, yet one program's result only
                traceback.print_exc()
                error = "driver: %r" % e
            if not runner.stopped:
                report.add(program, turn, time.time() - began, error,
                           runner.kernels)
    finally:
        runner.close()


def run_all(programs, options, report):
    """Runs the programs, `options.jobs` of them at a time."""
    todo = queue.SimpleQueue()
    for turn in range(options.times):
        for program in programs:
            todo.put((turn, program))
    logs = options.keep_logs or tempfile.mkdtemp(prefix="ff-logs-")
    runners = [Runner(options, logs) for _ in range(options.jobs)]
    lanes = [threading.Thread(target=run_lane, args=(r, todo, report))
             for r in runners]
    try:
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
    finally:
        for runner in runners:
            runner.stop()
        for lane in lanes:
            if lane.ident:
                lane.join()
        if not options.keep_logs:
            shutil.rmtree(logs, ignore_errors=True)


def parse_options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--servers", choices=["tf", "cmd"], default="tf",
                   help="real TensorFlow servers, or an external command")
    p.add_argument("--server-cmd", metavar="CMD",
                   help="command of one server; {cluster_json} {job} {task} "
                        "{host} {port} are filled in")
    p.add_argument("--tf-jobs", metavar="JOBS", default="",
                   help="with --servers cmd: jobs still served by real "
                        "TensorFlow (comma separated)")
    p.add_argument("--programs", metavar="DIR",
                   default=os.path.join(HERE, "programs"))
    p.add_argument("--only", metavar="NAME", action="append",
                   help="a program, or part of its name; may be repeated")
    p.add_argument("--tier", type=int, action="append",
                   help="only this tier; may be repeated")
    p.add_argument("--max-tasks", metavar="N", type=int,
                   help="only programs whose cluster has at most N tasks")
    p.add_argument("--list", action="store_true")
    p.add_argument("--jobs", metavar="N", type=int, default=1,
                   help="programs run at the same time")
    p.add_argument("--times", metavar="K", type=int, default=1,
                   help="run the whole selection K times")
    p.add_argument("--timeout", type=float, default=60,
                   help="seconds for a program that declares none")
    p.add_argument("--start-timeout", type=float, default=60,
                   help="seconds for a server to accept connections")
    p.add_argument("--reuse", action="store_true",
                   help="keep a cluster for the next program of the same shape")
    p.add_argument("--json", metavar="FILE", help="write the results here too")
    p.add_argument("--keep-logs", metavar="DIR",
                   help="keep client and server logs here")
    p.add_argument("--census", metavar="DIR",
                   help="record the ops each program needs (see census.py)")
    options = p.parse_args()
    options.tf_jobs = [j for j in options.tf_jobs.split(",") if j]
    if options.servers == "cmd" and not options.server_cmd:
        p.error("--servers cmd needs --server-cmd")
    if options.jobs < 1 or options.times < 1:
        p.error("--jobs and --times are at least 1")
    if options.census:
        os.makedirs(options.census, exist_ok=True)
    return options


def main():
    options = parse_options()
    programs = select(load_programs(options.programs), options.only,
                      options.tier, options.max_tasks)
    if not programs:
        raise SystemExit("no program matches the options")
    if options.list:
        width = max(len(p.name) for p in programs)
        for p in programs:
            print("%-*s  tier %d  %-22s  %s"
                  % (width, p.name, p.tier, p.cluster_text(), p.about))
        return 0

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(programs, options)
    folder = tempfile.mkdtemp(prefix="ff-zygote-")
    forks = zygote.Zygote(folder, child_env())
    options.zygote = forks.path
    try:
        run_all(programs, options, report)
    finally:
        report.save()
        forks.close()
        shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed"
          % (len(report.results) - report.failed(), report.failed()))
    if HAS_GPUS:
        print("%d kernels on GPUs" % report.kernels)
        if not report.kernels:
            return 1
    return 1 if report.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
