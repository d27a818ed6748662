"""The interface of hooks: they see each step of a monitored session and may add to it."""

import collections


class SessionRunHook:
    """Is called at the beginning, around each step, and at the end of a monitored session."""

    def begin(self):
        """Called once, before the session is made. The graph may still be changed."""

    def after_create_session(self, session, coord):
        """Called when a session is made, also after a recovery. The graph is final."""

    def before_run(self, run_context):
        """Called before each step; may return `SessionRunArgs` to fetch or feed more."""
        return None

    def after_run(self, run_context, run_values):
        """Called after each step that did not fail."""

    def end(self, session):
        """Called at the end, unless the session ends with an error."""


class SessionRunArgs(collections.namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])):
    """What a hook adds to a step."""

    def __new__(cls, fetches, feed_dict=None, options=None):
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunContext:
    """A step: its original arguments, its session, and whether a stop was requested."""

    def __init__(self, original_args, session):
        self._original_args, self._session, self._stop_requested = original_args, session, False

    @property
    def original_args(self):
        return self._original_args

    @property
    def session(self):
        return self._session

    @property
    def stop_requested(self):
        return self._stop_requested

    def request_stop(self):
        self._stop_requested = True


class SessionRunValues(collections.namedtuple("SessionRunValues", ["results", "options", "run_metadata"])):
    """The values of a hook's fetches, the options of the step, and its metadata."""
