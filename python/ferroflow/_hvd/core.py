"""The job of this process: its ranks, its process sets, and submission of tensors."""

import atexit
import itertools
import os
import sys
import threading

from ferroflow._ferroflow import reduce as _reduce

from . import settings
from .errors import NotInitializedError

# Reduce operations, with Horovod's numbers.
Average, Sum, Adasum, Min, Max, Product = range(6)

OP_NAMES = ("Average", "Sum", "Adasum", "Min", "Max", "Product")

# Collectives, with the numbers of the Rust module.
ALLREDUCE, REDUCESCATTER, ALLGATHER, BROADCAST, ALLTOALL, BARRIER = range(6)

# Types, with TensorFlow's numbers.
DTYPE_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8,
    "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19,
    "uint32": 22, "uint64": 23,
}


# What the driver of an elastic job answers a process after another one has finished its work.
_JOB_IS_DONE = "the job is done"


_NO_COMM = ("init(comm=...) takes a list of all ranks only: start the job with the ranks that it "
            "needs, or use process sets")


class ProcessSet:
    """A set of ranks with collectives of its own. `add_process_set` makes it known to the job."""

    # There is no MPI.
    mpi_comm = None

    def __init__(self, ranks_or_comm):
        try:
            self.ranks = sorted({int(r) for r in ranks_or_comm})
        except TypeError:
            raise ValueError(
                f"a process set needs a list of ranks, not {type(ranks_or_comm).__name__}"
            ) from None
        self.process_set_id = None

    def _check(self):
        if self.process_set_id is None:
            raise ValueError(
                "the process set is not registered; call add_process_set() on all ranks first"
            )

    def included(self):
        """Whether this process is a member."""
        return rank() in self.ranks

    def size(self):
        """The number of members, or None while the set is not registered."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self):
        """The index of this process among the members. None while the set is not registered."""
        return None if self.process_set_id is None else self.ranks.index(rank())

    def __eq__(self, other):
        if not isinstance(other, ProcessSet):
            return NotImplemented
        return (self.process_set_id, self.ranks) == (other.process_set_id, other.ranks)

    def __hash__(self):
        return hash((self.process_set_id, tuple(self.ranks)))

    def __repr__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _GlobalProcessSet(ProcessSet):
    def __init__(self):
        super().__init__([])
        self.process_set_id = 0

    def included(self):
        return True

    def size(self):
        return size()

    def rank(self):
        return rank()


global_process_set = _GlobalProcessSet()


class _Job:
    """What Python knows of the job. `place` is None while the process is in no job, `last_rank` is
    the rank that it had or has."""

    place = None
    last_rank = None
    sets = {}
    counters = {}
    lock = threading.Lock()


def init(comm=None, process_sets=None):
    """Connects to the other ranks of the job. Does nothing if the process is connected.

    The launcher's environment says which ranks there are: `ferroflow run`, mpirun, srun and
    torchrun are understood. Without a launcher there is one rank. `process_sets` are made for the whole job.
    """
    if is_initialized():
        return
    if comm is not None and not isinstance(comm, (list, tuple)):
        raise NotImplementedError(_NO_COMM)
    sets = [] if process_sets in (None, "dynamic") else list(process_sets)
    sets = [s if isinstance(s, ProcessSet) else ProcessSet(s) for s in sets]
    try:
        _reduce.init([s.ranks for s in sets], elastic=is_elastic(), **settings.engine_options())
    except NotInitializedError as e:
        if not (is_elastic() and str(e) == _JOB_IS_DONE):
            raise
        # The launcher started this process in place of a lost one, and the others finished first.
        print("ferroflow: the job is done; this process ends without work", file=sys.stderr)
        raise SystemExit(0) from None
    _connected()
    if comm and sorted(comm) != global_process_set.ranks:
        shutdown()
        raise NotImplementedError(_NO_COMM)
    for number, process_set in enumerate(sets, 1):
        process_set.process_set_id = number
        _Job.sets[number] = process_set
    settings.tell_ignored(_Job.place[0])
    _install_hooks()


def _connected():
    """After this process has connected, for the first time or again."""
    _Job.place = _reduce.place()
    _Job.last_rank = _Job.place[0]
    for number, process_set in _Job.sets.items():
        if number != 0:
            process_set.process_set_id = None
    global_process_set.ranks = list(range(_Job.place[1]))
    _Job.sets = {0: global_process_set}
    _Job.counters = {}


def shutdown():
    """Leaves the job. Other ranks that still wait for this one get an error."""
    _Job.place = None
    _reduce.shutdown()


def is_initialized():
    """Whether the process is connected to the other ranks."""
    return _Job.place is not None


def reconnect():
    """Elastic jobs: connects to the ranks of the next epoch."""
    _reduce.reconnect()
    _connected()


def restart():
    """Connects again: an elastic job to the ranks of the next epoch, another to the same ranks."""
    if is_elastic():
        reconnect()
    else:
        shutdown()
        init()


_hooked = False


def _install_hooks():
    """An uncaught exception fails the other ranks at once, with its text."""
    global _hooked
    if _hooked:
        return
    _hooked = True
    before = sys.excepthook

    def hook(kind, value, trace):
        if is_initialized() and not issubclass(kind, KeyboardInterrupt):
            _reduce.abort(f"rank {_Job.place[0]} raised {kind.__name__}: {value}"[:2000])
        before(kind, value, trace)

    sys.excepthook = hook
    atexit.register(shutdown)


def _place():
    place = _Job.place
    if place is None:
        raise NotInitializedError("ferroflow has not been initialized; call init() first")
    return place


def rank():
    """The rank of this process."""
    return _place()[0]


def size():
    """The number of ranks."""
    return _place()[1]


def is_alone():
    """Whether there is one rank, and will be no other. Graphs that are made now need no
    collectives."""
    return size() == 1 and not is_elastic()


def is_elastic():
    """Whether ranks may join and leave."""
    return bool(os.environ.get("FERROFLOW_ELASTIC"))


def local_rank():
    """The index of this process among the ranks of its host."""
    return _place()[2]


def local_size():
    """The number of ranks on this host."""
    return _place()[3]


def cross_rank():
    """The index of this host."""
    return _place()[4]


def cross_size():
    """The number of hosts."""
    return _place()[5]


def is_homogeneous():
    """Whether all hosts have the same number of ranks."""
    return _place()[6]


def mpi_threads_supported():
    """Whether collectives may be called from several threads. They may; MPI is not involved."""
    _place()
    return True


def mpi_enabled():
    return False


def mpi_built():
    return False


def gloo_enabled():
    return False


def gloo_built():
    return False


def nccl_built():
    return 0


def ddl_built():
    return False


def ccl_built():
    return False


def cuda_built():
    return False


def rocm_built():
    return False


def start_timeline(file_path, mark_cycles=False):
    """Writes a trace of all tensors on this rank to a file."""
    _place()
    path = str(file_path)
    _reduce.set_timeline(path.replace("{rank}", str(rank())))


def stop_timeline():
    """Ends the trace and completes its file."""
    _place()
    _reduce.set_timeline()


def add_process_set(process_set):
    """Makes a process set. All ranks call this with the same ranks, in the same order of calls."""
    _place()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise ValueError(f"{process_set} is already registered")
    if any(s.ranks == process_set.ranks for s in _Job.sets.values()):
        raise ValueError(f"there is already a process set of ranks {process_set.ranks}")
    number = _reduce.add_process_set(process_set.ranks)
    process_set.process_set_id = number
    _Job.sets[number] = process_set
    return process_set


def remove_process_set(process_set):
    """Removes a process set, on all ranks. Returns whether it was registered."""
    _place()
    number = process_set.process_set_id
    if number is None or number == 0 or number not in _Job.sets:
        return False
    # All ranks agree, so that no rank still uses the set.
    barrier(name=f"remove process set {number}")
    del _Job.sets[number]
    process_set.process_set_id = None
    return True


def get_process_set_ids_and_ranks():
    """The ranks of all process sets, by number."""
    _place()
    return {number: list(s.ranks) for number, s in _Job.sets.items()}


def process_set_included(process_set_id=0):
    """Whether this process is in the set of this number."""
    _place()
    if process_set_id not in _Job.sets:
        raise ValueError(f"there is no process set {process_set_id}")
    return _Job.sets[process_set_id].included()


def set_number(process_set):
    """The number of a process set. An error if it is not registered."""
    number = process_set.process_set_id
    if number not in _Job.sets:
        process_set._check()
        _place()
        raise ValueError(f"there is no process set {number}")
    return number


def gradient_options(op, gradient_predivide_factor, **others):
    """The options of a reduction of gradients, as keyword arguments."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor needs op == Average")
    return dict(others, op=op, gradient_predivide_factor=gradient_predivide_factor)


# Unnamed tensors get these many different names. Reused names are negotiated faster.
_NAMES = 4096


def name_of(kind, name, process_set=global_process_set):
    """The name under which a tensor is submitted. The ranks of a process set must submit unnamed
    tensors in the same order."""
    if name is not None:
        return f"{kind}.{name}"
    number = process_set.process_set_id
    if number:
        kind = f"{kind}.set{number}"
    counter = _Job.counters.get(kind)
    if counter is None:
        with _Job.lock:
            counter = _Job.counters.setdefault(kind, itertools.count())
    return f"{kind}.noname.{next(counter) % _NAMES}"


def reduce_op(op, average=None):
    """The reduce operation of arguments `op` and the older `average`."""
    if op is None:
        return Sum if average is False else Average
    if average is not None:
        raise ValueError("give op or average, not both")
    if not (isinstance(op, int) and 0 <= op <= Product):
        raise ValueError(f"{op!r} is not a reduce operation: use Average, Sum, Adasum, Min, Max or "
                         "Product")
    return op


def submit(tensors, kind, **options):
    """Submits tensors (name, address, dtype number, shape, owner). Returns their handles."""
    _place()
    return _reduce.submit(tensors, kind, **options)


def join():
    """Reports that this rank has no more data. Returns the last rank that joined."""
    _place()
    return _reduce.join()


def barrier(process_set=global_process_set, name=None):
    """Waits until all ranks of the set have called it."""
    number = set_number(process_set)
    [handle] = submit([(name_of("barrier", name, process_set), 0, 4, (0,), None)], BARRIER,
                      process_set=number)
    handle.wait()


def failure():
    """The error that ended communication, or None."""
    return _reduce.failure() if is_initialized() else None


def has_newcomers():
    """Elastic jobs: whether new processes wait to join."""
    return _reduce.has_newcomers()


def even_splits(rows, ranks):
    """The splits of an all-to-all without any. An error if the rows cannot be split evenly."""
    if rows % ranks:
        raise ValueError(f"{rows} rows cannot be split evenly over {ranks} ranks; give splits")
    return [rows // ranks] * ranks
