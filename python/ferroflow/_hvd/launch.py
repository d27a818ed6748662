"""`run` calls a function on several ranks, each a process of its own, and returns the results."""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import traceback
from multiprocessing import spawn

# The options of `run` that have no meaning here.
_IGNORED = ("reset_limit", "cooldown_range", "start_timeout", "disable_cache", "use_gloo",
            "use_mpi", "mpi_args", "network_interface", "network_interfaces", "slots")


def run(func, args=(), kwargs=None, num_proc=None, min_num_proc=None, max_num_proc=None,
        slots=None, reset_limit=None, cooldown_range=None, hosts=None, hostfile=None,
        host_discovery_script=None, start_timeout=None, ssh_port=None, ssh_identity_file=None,
        disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None,
        mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None,
        min_np=None, max_np=None):
    """Calls `func(*args, **kwargs)` on each rank of a new job. Returns a list of the results by
    rank.

    The ranks run on this host, or on `hosts`, which must share the current folder. Functions that
    pickle cannot name, such as lambdas, need the package cloudpickle. `output_filename` is a file
    for the output of all ranks.
    """
    given = locals()
    ignored = [name for name in _IGNORED if given[name] is not None]
    if ignored:
        print(f"ferroflow: run() ignores {', '.join(ignored)}", file=sys.stderr)
    is_elastic = any(x is not None for x in
                     (min_num_proc, min_np, max_num_proc, max_np, host_discovery_script))
    command = [sys.executable, "-m", "ferroflow", "run"]
    options = [
        ("-np", num_proc or np or (None if hosts or hostfile else 1)),
        ("--min-np", min_num_proc or min_np), ("--max-np", max_num_proc or max_np),
        ("-H", hosts), ("--hostfile", hostfile),
        ("--host-discovery-script", host_discovery_script), ("--ssh-port", ssh_port),
        ("--ssh-identity-file", ssh_identity_file),
    ]
    for flag, value in options:
        if value is not None:
            command += [flag, str(value)]
    if verbose:
        command += ["-x", "FERROFLOW_VERBOSE=1"]
    is_here = hosts is None and hostfile is None and host_discovery_script is None
    folder = tempfile.mkdtemp(prefix=".ferroflow-run-", dir=None if is_here else os.getcwd())
    try:
        with open(os.path.join(folder, "call"), "wb") as file:
            file.write(_pickled((func, tuple(args), dict(kwargs or {}))))
        command += ["--", executable or sys.executable, "-m", __name__, folder]
        with open(output_filename or os.devnull, "w") as log:
            output = {"stdout": log, "stderr": log} if output_filename else {}
            code = subprocess.call(command, **output)
        return _results(folder, code, is_elastic)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pickled(call):
    """The call as bytes, and what a new process needs to find the program's functions."""
    try:
        import cloudpickle
        function = cloudpickle.dumps(call)
    except ImportError:
        try:
            function = pickle.dumps(call)
        except (pickle.PicklingError, AttributeError, TypeError) as e:
            raise ValueError(f"run() cannot send the function to its processes: {e}; "
                             "`pip install cloudpickle` for functions without a name") from None
    preparation = spawn.get_preparation_data("ferroflow")
    del preparation["authkey"]
    return pickle.dumps((preparation, function))


def _results(folder, code, is_elastic):
    results, failures = {}, []
    for name in sorted(os.listdir(folder)):
        kind, _, number = name.partition("-")
        if kind not in ("result", "failure"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            value = pickle.load(file)
        if kind == "result":
            results[int(number)] = value
        else:
            is_effect, text = value
            failures.append((is_effect, f"rank {number} raised {text}"))
    if code != 0:
        # Errors of ranks that lost another one say less.
        causes = [t for is_effect, t in failures if not is_effect] or [t for _, t in failures]
        raise RuntimeError("; ".join(causes) or f"the job ended with exit code {code}")
    ranks = sorted(results)
    if not ranks or not is_elastic and ranks != list(range(len(ranks))):
        raise RuntimeError(f"only ranks {ranks} left results; all hosts must share {folder}")
    return [results[r] for r in ranks]


def _main(folder):
    from . import core
    from .errors import HorovodInternalError
    with open(os.path.join(folder, "call"), "rb") as file:
        preparation, function = pickle.load(file)
    sys.path[:] = preparation.get("sys_path", sys.path)
    main = preparation.get("init_main_from_path")
    if main is None or os.path.exists(main):
        spawn.prepare(preparation)

    def leave(kind, value):
        rank = core._Job.last_rank
        if rank is None:
            rank = os.environ.get("FERROFLOW_RANK", "0")
        path = os.path.join(folder, f"{kind}-{rank}")
        part = os.path.join(folder, f".{kind}-{rank}")
        with open(part, "wb") as file:
            pickle.dump(value, file)
        os.rename(part, path)

    try:
        func, args, kwargs = pickle.loads(function)
        leave("result", func(*args, **kwargs))
    except Exception as e:
        text = "".join(traceback.format_exception_only(type(e), e)).strip()
        leave("failure", (isinstance(e, HorovodInternalError), text))
        # The hook for uncaught exceptions notifies the other ranks.
        raise
    core.shutdown()


if __name__ == "__main__":
    _main(sys.argv[1])
