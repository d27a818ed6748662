"""A basic training loop."""

from ferroflow.python.framework import errors


def basic_train_loop(supervisor, train_step_fn, args=None, kwargs=None, master=""):
    """Calls `train_step_fn(session, ...)` until the supervisor stops; opens a new session after a
    lost server."""
    args = args or []
    kwargs = kwargs or {}
    should_retry = True
    while should_retry:
        try:
            should_retry = False
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *args, **kwargs)
        except errors.AbortedError:
            # A server restarted.
            should_retry = True
