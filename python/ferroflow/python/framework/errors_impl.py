"""The exceptions of failed steps, with TensorFlow's codes."""

import re

from ferroflow import _ferroflow

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = range(7)
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE = range(7, 12)
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(12, 17)


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor of a graph was used as a Python value: it has none before a step runs."""


class OpError(Exception):
    """A failed step: `op`, `node_def`, `message` and `error_code`."""

    def __init__(self, node_def, op, message, error_code, *args):
        super().__init__(node_def, op, message, error_code, *args)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    def __reduce__(self):
        return type(self), (None, None, self._message)

    @property
    def message(self):
        return self._message

    @property
    def op(self):
        return self._op

    @property
    def error_code(self):
        return self._error_code

    @property
    def node_def(self):
        return self._node_def

    @property
    def experimental_payloads(self):
        return {}

    def __str__(self):
        if self._op is None:
            return self.message
        lines = [self.message, "", f"Original stack trace for {self._op.name!r}:"]
        for file, line, function, text in self._op.traceback:
            lines.append(f'  File "{file}", line {line}, in {function}')
            if text:
                lines.append(f"    {text}")
        return "\n".join(lines)


OperatorError = OpError


def _error_class(name, code, doc):
    def __init__(self, node_def, op, message, *args):
        OpError.__init__(self, node_def, op, message, code, *args)

    return type(name, (OpError,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


CancelledError = _error_class("CancelledError", CANCELLED, "The step was cancelled.")
InvalidArgumentError = _error_class("InvalidArgumentError", INVALID_ARGUMENT, "An operation got a value that it cannot take.")
DeadlineExceededError = _error_class("DeadlineExceededError", DEADLINE_EXCEEDED, "The step did not end in time.")
NotFoundError = _error_class("NotFoundError", NOT_FOUND, "Something that was asked for does not exist.")
AlreadyExistsError = _error_class("AlreadyExistsError", ALREADY_EXISTS, "What should be made exists already.")
PermissionDeniedError = _error_class("PermissionDeniedError", PERMISSION_DENIED, "The caller may not do this.")
ResourceExhaustedError = _error_class("ResourceExhaustedError", RESOURCE_EXHAUSTED, "Memory or a quota is used up.")
FailedPreconditionError = _error_class("FailedPreconditionError", FAILED_PRECONDITION, "The state does not allow it, for example an uninitialized variable.")
AbortedError = _error_class("AbortedError", ABORTED, "The step was given up, often because a task restarted.")
OutOfRangeError = _error_class("OutOfRangeError", OUT_OF_RANGE, "The input has ended.")
UnimplementedError = _error_class("UnimplementedError", UNIMPLEMENTED, "The operation is not supported.")
InternalError = _error_class("InternalError", INTERNAL, "An invariant of the system is broken.")
UnavailableError = _error_class("UnavailableError", UNAVAILABLE, "A task cannot be reached.")
DataLossError = _error_class("DataLossError", DATA_LOSS, "Data is damaged or lost.")
UnauthenticatedError = _error_class("UnauthenticatedError", UNAUTHENTICATED, "The caller did not prove who it is.")


class UnknownError(OpError):
    """A failure without a known cause."""

    def __init__(self, node_def, op, message, *args):
        code = args[0] if args and isinstance(args[0], int) else UNKNOWN
        super().__init__(node_def, op, message, code)


_CLASSES = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
    UNAUTHENTICATED: UnauthenticatedError,
}


def exception_type_from_error_code(error_code):
    return _CLASSES[error_code]


def error_code_from_exception_type(cls):
    for code, found in _CLASSES.items():
        if found is cls:
            return code
    return None


_NODE = re.compile(r"\[\[\{\{node ([^\}]*)\}\}.*?\]\]")


def from_status(error, graph=None):
    """The exception for an error of the runtime, with the operation that failed."""
    code, message = error.args
    op = node_def = None
    found = _NODE.search(message)
    if found and graph is not None:
        try:
            op = graph.get_operation_by_name(found.group(1))
            node_def = op.node_def
        except (KeyError, ValueError):
            op = None
    return _CLASSES.get(code, UnknownError)(node_def, op, message)


StatusError = _ferroflow.StatusError
