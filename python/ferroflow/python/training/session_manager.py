"""SessionManager: opens sessions whose variables are initialized or restored."""

import time

import numpy as np

from ferroflow.python.client import session
from ferroflow.python.framework import errors, ops
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import checkpoint_management


class SessionManager:
    """Prepares the session of the chief, and waits for the chief in the other workers."""

    def __init__(
        self,
        local_init_op=None,
        ready_op=None,
        ready_for_local_init_op=None,
        graph=None,
        recovery_wait_secs=30,
        local_init_run_options=None,
        local_init_feed_dict=None,
    ):
        if graph is None:
            graph = ops.get_default_graph()
        self._local_init_op, self._ready_op = local_init_op, ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph, self._recovery_wait_secs = graph, recovery_wait_secs
        self._target = None
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError("If you pass a ready_for_local_init_op you must also pass a local_init_op , ready_for_local_init_op [%s]" % ready_for_local_init_op)

    def _restore_checkpoint(self, master, saver=None, checkpoint_dir=None, checkpoint_filename_with_path=None, wait_for_checkpoint=False, max_wait_secs=7200, config=None):
        """A new session, and whether a checkpoint was restored in it."""
        self._target = master
        sess = session.Session(self._target, graph=self._graph, config=config)
        try:
            if checkpoint_dir and checkpoint_filename_with_path:
                raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
            if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
                return sess, False
            if checkpoint_filename_with_path:
                saver.restore(sess, checkpoint_filename_with_path)
                return sess, True
            wait_time = 0
            ckpt = checkpoint_management.get_checkpoint_state(checkpoint_dir)
            while not ckpt or not ckpt.model_checkpoint_path:
                if not wait_for_checkpoint or wait_time >= max_wait_secs:
                    return sess, False
                logging.info("Waiting for checkpoint to be available.")
                time.sleep(self._recovery_wait_secs)
                wait_time += self._recovery_wait_secs
                ckpt = checkpoint_management.get_checkpoint_state(checkpoint_dir)
            saver.restore(sess, ckpt.model_checkpoint_path)
            saver.recover_last_checkpoints(ckpt.all_model_checkpoint_paths)
            return sess, True
        except BaseException:
            self._safe_close(sess)
            raise

    def prepare_session(
        self,
        master,
        init_op=None,
        saver=None,
        checkpoint_dir=None,
        checkpoint_filename_with_path=None,
        wait_for_checkpoint=False,
        max_wait_secs=7200,
        config=None,
        init_feed_dict=None,
        init_fn=None,
    ):
        """A session that is ready: restored from a checkpoint, or initialized."""
        sess, loaded = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not loaded:
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
                if init_op is not None:
                    sess.run(init_op, feed_dict=init_feed_dict)
                if init_fn:
                    init_fn(sess)
            made, msg = self._try_run_local_init_op(sess)
            if not made:
                raise RuntimeError(
                    "Init operations did not make model ready for local_init.  Init op: %s, init fn: %s, local_init_op: %s, error: %s"
                    % (_maybe_name(init_op), init_fn, self._local_init_op, msg)
                )
            ready, msg = self._model_ready(sess)
            if not ready:
                raise RuntimeError(
                    "Init operations did not make model ready.  Init op: %s, init fn: %s, local_init_op: %s, error: %s"
                    % (_maybe_name(init_op), init_fn, self._local_init_op, msg)
                )
            return sess
        except BaseException:
            self._safe_close(sess)
            raise

    def recover_session(self, master, saver=None, checkpoint_dir=None, checkpoint_filename_with_path=None, wait_for_checkpoint=False, max_wait_secs=7200, config=None):
        """A session, and whether it was restored and is ready."""
        sess, loaded = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        made, msg = self._try_run_local_init_op(sess)
        if not loaded:
            return sess, False
        restored_from = checkpoint_dir or checkpoint_filename_with_path
        if not made:
            logging.info("Restoring model from %s did not make model ready for local init: %s", restored_from, msg)
            return sess, False
        ready, msg = self._model_ready(sess)
        if not ready:
            logging.info("Restoring model from %s did not make model ready: %s", restored_from, msg)
            return sess, False
        logging.info("Restored model from %s", restored_from)
        return sess, loaded

    def wait_for_session(self, master, config=None, max_wait_secs=float("Inf")):
        """Opens sessions until the chief has made one ready."""
        self._target = master
        if max_wait_secs is None:
            max_wait_secs = float("Inf")
        deadline = time.time() + max_wait_secs
        # Most chiefs are ready soon. A worker that sleeps for long would miss a short job.
        wait = min(0.5, self._recovery_wait_secs)
        while True:
            sess = session.Session(self._target, graph=self._graph, config=config)
            not_ready_msg = None
            try:
                made, not_ready_local_msg = self._try_run_local_init_op(sess)
                if made:
                    # The model is ready only if the chief has initialized its variables.
                    ready, not_ready_msg = self._model_ready(sess)
                    if ready:
                        return sess
            except BaseException:
                self._safe_close(sess)
                raise
            self._safe_close(sess)
            if deadline - time.time() < self._recovery_wait_secs:
                raise errors.DeadlineExceededError(None, None, "Session was not ready after waiting %d secs." % (max_wait_secs,))
            logging.info("Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s", not_ready_local_msg, not_ready_msg)
            time.sleep(wait)
            wait = min(2 * wait, self._recovery_wait_secs)

    @staticmethod
    def _safe_close(sess):
        try:
            sess.close()
        except Exception:  # pylint: disable=broad-except
            pass

    def _model_ready(self, sess):
        return _ready(self._ready_op, sess, "Model not ready")

    def _model_ready_for_local_init(self, sess):
        return _ready(self._ready_for_local_init_op, sess, "Model not ready for local init")

    def _try_run_local_init_op(self, sess):
        if self._local_init_op is None:
            return True, None
        ready, msg = self._model_ready_for_local_init(sess)
        if not ready:
            return False, msg
        logging.info("Running local_init_op.")
        sess.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
        logging.info("Done running local_init_op.")
        return True, None


def _ready(op, sess, msg):
    """Whether a report of missing variables is empty, and its text."""
    if op is None:
        return True, None
    try:
        value = sess.run(op)
        # The operation may be a plain check that returns nothing.
        if value is None or np.asarray(value).dtype == np.int32 or np.asarray(value).size == 0:
            return True, None
        names = ", ".join(i.decode("utf-8") for i in value)
        return False, "Variables not initialized: " + names
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            logging.warning("%s : error [%s]", msg, str(e))
            raise
        return False, str(e)


def _maybe_name(obj):
    if obj is None:
        return "None"
    return getattr(obj, "name", "<no name for %s>" % type(obj))
