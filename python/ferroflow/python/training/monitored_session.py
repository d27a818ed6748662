"""Monitored sessions: hooks around each step, and recovery when a server is lost."""

import inspect
import sys

from ferroflow.core.protobuf import config_pb2
from ferroflow.python.framework import errors, ops
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import (
    basic_session_run_hooks,
    coordinator,
    queue_runner_impl,
    session_run_hook,
)
from ferroflow.python.training import session_manager as sm
from ferroflow.python.training.scaffold import Scaffold

# Errors of lost servers. A new session may work.
_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)
_LOST_SERVER = (
    "This may be due to a preemption of a connected worker or parameter server. A new session will be created. This "
    "error may also occur due to a gRPC failure caused by high memory or network bandwidth usage in the parameter "
    "servers. If this error occurs repeatedly, try increasing the number of parameter servers assigned to the job. "
    "Error: %s"
)
USE_DEFAULT = object()


class SessionCreator:
    """Makes sessions."""

    def create_session(self):
        raise NotImplementedError("create_session is not implemented for {}.".format(self))


class _ScaffoldSessionCreator(SessionCreator):
    def __init__(self, scaffold=None, master="", config=None):
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master, self._config = master, config

    def _get_session_manager(self):
        if not self._session_manager:
            self._session_manager = sm.SessionManager(
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=ops.get_default_graph(),
            )
        return self._session_manager


class ChiefSessionCreator(_ScaffoldSessionCreator):
    """Makes sessions whose variables are restored or initialized."""

    def __init__(self, scaffold=None, master="", config=None, checkpoint_dir=None, checkpoint_filename_with_path=None):
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self):
        self._scaffold.finalize()
        return self._get_session_manager().prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(_ScaffoldSessionCreator):
    """Waits until the chief has made its session ready."""

    def __init__(self, scaffold=None, master="", config=None, max_wait_secs=30 * 60):
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self):
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)


class StepContext:
    """What a step function of `run_step_fn` works with."""

    def __init__(self, session, run_with_hooks_fn):
        self._session, self._run_with_hooks_fn = session, run_with_hooks_fn

    @property
    def session(self):
        return self._session

    def run_with_hooks(self, *args, **kwargs):
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self):
        """Ends `run_step_fn` and the loop around it."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """What both kinds of monitored sessions are: a context manager with `run` and `should_stop`."""

    StepContext = StepContext

    def __init__(self, session_creator, hooks, should_recover, stop_grace_period_secs=120):
        self._graph_was_finalized = ops.get_default_graph().finalized
        self._hooks = hooks or []
        for h in self._hooks:
            h.begin()
        self._coordinated_creator = self._CoordinatedSessionCreator(
            session_creator=session_creator or ChiefSessionCreator(), hooks=self._hooks, stop_grace_period_secs=stop_grace_period_secs
        )
        self._sess = _RecoverableSession(self._coordinated_creator) if should_recover else self._coordinated_creator.create_session()

    @property
    def graph(self):
        """The graph that was launched, or None after the end."""
        sess = self._tf_sess()
        return None if sess is None else sess.graph

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn):
        """Runs a step that consists of several runs; `step_fn(step_context)` makes them."""
        arguments = inspect.getfullargspec(step_fn).args
        if arguments[:1] == ["self"]:
            arguments = arguments[1:]
        if arguments != ["step_context"]:
            if "step_context" not in arguments:
                raise ValueError("`step_fn` should have exactly one argument named `step_context`, or `self, step_context`; it has %s" % arguments)
            raise ValueError("`step_fn` takes `step_context` and nothing else; it has %s" % arguments)
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def should_stop(self):
        return self._sess is None or self._sess.should_stop()

    def close(self):
        self._close_internal()

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception_value, traceback):
        if exception_type in (errors.OutOfRangeError, StopIteration):
            # The input is at its end: a regular end.
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _close_internal(self, exception_type=None):
        try:
            if not exception_type:
                for h in self._hooks:
                    h.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    ops.get_default_graph()._unsafe_unfinalize()

    def _is_closed(self):
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self):
        return self._coordinated_creator.tf_sess

    class _CoordinatedSessionCreator(SessionCreator):
        """Makes a session, starts its queue runners, and notifies the hooks."""

        def __init__(self, session_creator, hooks, stop_grace_period_secs):
            self._session_creator, self._hooks = session_creator, hooks
            self._stop_grace_period_secs = stop_grace_period_secs
            self.coord, self.tf_sess = None, None

        def create_session(self):
            self.tf_sess = self._session_creator.create_session()
            # The end of the input is seen by the main thread, so here it counts as an error.
            self.coord = coordinator.Coordinator(clean_stop_exception_types=[])
            if ops.get_collection(ops.GraphKeys.QUEUE_RUNNERS):
                queue_runner_impl.start_queue_runners(sess=self.tf_sess, coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
            return _CoordinatedSession(_HookedSession(self.tf_sess, self._hooks), self.coord, self._stop_grace_period_secs)


class MonitoredSession(_MonitoredSession):
    """A session with hooks that is made again when a server is lost."""

    def __init__(self, session_creator=None, hooks=None, stop_grace_period_secs=120):
        super().__init__(session_creator, hooks, should_recover=True, stop_grace_period_secs=stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks that ends when a server is lost."""

    def __init__(self, hooks=None, scaffold=None, master="", config=None, checkpoint_dir=None, stop_grace_period_secs=120, checkpoint_filename_with_path=None):
        creator = ChiefSessionCreator(
            scaffold=scaffold,
            master=master,
            config=config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
        )
        super().__init__(creator, hooks, should_recover=False, stop_grace_period_secs=stop_grace_period_secs)

    def raw_session(self):
        return self._tf_sess()


def MonitoredTrainingSession(
    master="",
    is_chief=True,
    checkpoint_dir=None,
    scaffold=None,
    hooks=None,
    chief_only_hooks=None,
    save_checkpoint_secs=USE_DEFAULT,
    save_summaries_steps=USE_DEFAULT,
    save_summaries_secs=USE_DEFAULT,
    config=None,
    stop_grace_period_secs=120,
    log_step_count_steps=100,
    max_wait_secs=7200,
    save_checkpoint_steps=USE_DEFAULT,
    summary_dir=None,
    save_graph_def=True,
):
    """A MonitoredSession for training: checkpoints and summaries by the chief, hooks for all."""
    if save_summaries_steps is USE_DEFAULT and save_summaries_secs is USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    elif save_summaries_secs is USE_DEFAULT:
        save_summaries_secs = None
    elif save_summaries_steps is USE_DEFAULT:
        save_summaries_steps = None
    if save_checkpoint_steps is USE_DEFAULT and save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_steps, save_checkpoint_secs = None, 600
    elif save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_secs = None
    elif save_checkpoint_steps is USE_DEFAULT:
        save_checkpoint_steps = None
    scaffold = scaffold or Scaffold()
    if not is_chief:
        creator = WorkerSessionCreator(scaffold=scaffold, master=master, config=config, max_wait_secs=max_wait_secs)
        return MonitoredSession(session_creator=creator, hooks=hooks or [], stop_grace_period_secs=stop_grace_period_secs)
    all_hooks = list(chief_only_hooks or [])
    creator = ChiefSessionCreator(scaffold=scaffold, checkpoint_dir=checkpoint_dir, master=master, config=config)
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(basic_session_run_hooks.StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
        if (save_summaries_steps and save_summaries_steps > 0) or (save_summaries_secs and save_summaries_secs > 0):
            all_hooks.append(
                basic_session_run_hooks.SummarySaverHook(
                    scaffold=scaffold, save_steps=save_summaries_steps, save_secs=save_summaries_secs, output_dir=summary_dir
                )
            )
    if checkpoint_dir:
        if (save_checkpoint_secs and save_checkpoint_secs > 0) or (save_checkpoint_steps and save_checkpoint_steps > 0):
            all_hooks.append(
                basic_session_run_hooks.CheckpointSaverHook(
                    checkpoint_dir,
                    save_steps=save_checkpoint_steps,
                    save_secs=save_checkpoint_secs,
                    scaffold=scaffold,
                    save_graph_def=save_graph_def,
                )
            )
    all_hooks.extend(hooks or [])
    return MonitoredSession(session_creator=creator, hooks=all_hooks, stop_grace_period_secs=stop_grace_period_secs)


class _WrappedSession:
    """A session inside another one."""

    def __init__(self, sess):
        self._sess = sess
        self._wrapped_is_stoppable = isinstance(sess, _WrappedSession)

    @property
    def graph(self):
        return self._sess.graph

    @property
    def sess_str(self):
        return self._sess.sess_str

    def should_stop(self):
        if self._check_stop():
            return True
        if self._sess:
            return self._wrapped_is_stoppable and self._sess.should_stop()
        return True

    def _check_stop(self):
        return False

    def close(self):
        if self._sess:
            try:
                self._sess.close()
            except _PREEMPTION_ERRORS as e:
                logging.error(
                    "An error occurred when attempting to close the session. This may be due to a preemption in a "
                    "connected worker or parameter server. Error: %s", e,
                )
            finally:
                self._sess = None

    def run(self, *args, **kwargs):
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        run_with_hooks = run_with_hooks or self.run
        return step_fn(_MonitoredSession.StepContext(raw_session, run_with_hooks))


class _RecoverableSession(_WrappedSession):
    """Makes a new session when a server was lost."""

    def __init__(self, sess_creator):
        self._sess_creator = sess_creator
        super().__init__(self._create_session())

    def _create_session(self):
        while True:
            try:
                return self._sess_creator.create_session()
            except _PREEMPTION_ERRORS as e:
                logging.info("An error was raised while a session was being created. " + _LOST_SERVER, e)

    def _check_stop(self):
        try:
            if self._sess:
                return self._sess._check_stop()
            return False
        except _PREEMPTION_ERRORS as e:
            logging.info("An error was raised while considering whether the session is complete. " + _LOST_SERVER, e)
            self.close()
            self._sess = self._create_session()
            # The new session decides for itself whether to stop.
            return False
        except Exception:  # pylint: disable=broad-except
            return True

    def _retry(self, call):
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                return call(self._sess)
            except _PREEMPTION_ERRORS as e:
                logging.info("An error was raised. " + _LOST_SERVER, e)
                self.close()
                self._sess = None

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        return self._retry(lambda sess: sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata))

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        def call(sess):
            run = sess.run if run_with_hooks is None else run_with_hooks
            return sess.run_step_fn(step_fn, self._sess_creator.tf_sess or raw_session, run)

        return self._retry(call)


class _CoordinatedSession(_WrappedSession):
    """Stops when a thread of the coordinator stops, and raises that thread's error."""

    def __init__(self, sess, coord, stop_grace_period_secs=120):
        super().__init__(sess)
        self._coord, self._stop_grace_period_secs = coord, stop_grace_period_secs

    def _check_stop(self):
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self):
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except Exception:  # pylint: disable=broad-except
                # The error of the coordinator matters more.
                pass

    def _prefer_coordinator_error(self, call):
        try:
            return call()
        except _PREEMPTION_ERRORS:
            raise
        except Exception as original:  # pylint: disable=broad-except
            trace = sys.exc_info()[2]
            # A step may fail because a thread failed: only that error explains why.
            try:
                self._coord.raise_requested_exception()
            except _PREEMPTION_ERRORS:
                raise
            except Exception:  # pylint: disable=broad-except
                pass
            raise original.with_traceback(trace)

    def run(self, *args, **kwargs):
        return self._prefer_coordinator_error(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        return self._prefer_coordinator_error(lambda: self._sess.run_step_fn(step_fn, raw_session, run_with_hooks))


class _HookedSession(_WrappedSession):
    """Calls the hooks around each step."""

    def __init__(self, sess, hooks):
        super().__init__(sess)
        self._hooks, self._should_stop = hooks, False

    def _check_stop(self):
        return self._should_stop

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        actual_fetches = {"caller": fetches}
        run_context = session_run_hook.SessionRunContext(
            original_args=session_run_hook.SessionRunArgs(fetches, feed_dict), session=self._sess
        )
        given = options is not None
        options = options or config_pb2.RunOptions()
        changed, feed_dict = self._call_hook_before_run(run_context, actual_fetches, feed_dict, options)
        traced = run_metadata is not None or changed or given
        run_metadata = run_metadata if run_metadata is not None else config_pb2.RunMetadata()
        # A step without options is not slowed down by asking for metadata.
        outputs = self._sess.run(
            fetches=actual_fetches,
            feed_dict=feed_dict,
            options=options if changed or given else None,
            run_metadata=run_metadata if traced else None,
        )
        for hook in self._hooks:
            hook.after_run(
                run_context,
                session_run_hook.SessionRunValues(results=outputs.get(hook), options=options, run_metadata=run_metadata),
            )
        self._should_stop = self._should_stop or run_context.stop_requested
        return outputs["caller"]

    def _call_hook_before_run(self, run_context, fetch_dict, user_feed_dict, options):
        """Calls the hooks; returns whether options changed, and their feeds."""
        hook_feeds, changed = {}, False
        for hook in self._hooks:
            request = hook.before_run(run_context)
            if request is None:
                continue
            if request.fetches is not None:
                fetch_dict[hook] = request.fetches
            if request.feed_dict:
                _raise_if_shared(hook_feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                hook_feeds.update(request.feed_dict)
            if request.options:
                changed = True
                _merge_run_options(options, request.options)
        if not hook_feeds:
            return changed, user_feed_dict
        if not user_feed_dict:
            return changed, hook_feeds
        _raise_if_shared(user_feed_dict, hook_feeds, "Same tensor is fed by a SessionRunHook and user.")
        return changed, {**user_feed_dict, **hook_feeds}


def _raise_if_shared(old, new, message):
    for key in new:
        if any(key is other for other in old):
            raise RuntimeError("%s Conflict(s): %s" % (message, key))


def _merge_run_options(options, incoming):
    """The stronger of two options: more tracing, the longer timeout, all debug watches."""
    options.trace_level = max(options.trace_level, incoming.trace_level)
    options.timeout_in_ms = max(options.timeout_in_ms, incoming.timeout_in_ms)
    options.inter_op_thread_pool = max(options.inter_op_thread_pool, incoming.inter_op_thread_pool)
    options.output_partition_graphs = max(options.output_partition_graphs, incoming.output_partition_graphs)
    options.debug_options.debug_tensor_watch_opts.extend(incoming.debug_options.debug_tensor_watch_opts)
    options.debug_options.reset_disk_byte_usage = options.debug_options.reset_disk_byte_usage or incoming.debug_options.reset_disk_byte_usage
    options.report_tensor_allocations_upon_oom = options.report_tensor_allocations_upon_oom or incoming.report_tensor_allocations_upon_oom
