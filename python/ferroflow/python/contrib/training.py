"""Training loops of `tf.contrib.training`, `tf.contrib.slim.learning` and `tf.contrib.layers.optimize_loss`."""

import time

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import lookup_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import numeric_checks
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables as variables_lib
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.summary import summary
from ferroflow.python.training import monitored_session
from ferroflow.python.training import optimizers
from ferroflow.python.training import supervisor
from ferroflow.python.training import training_util
from ferroflow.python.util.api import export

_USE_GLOBAL_STEP = 0


@export("contrib.training.add_gradients_summaries", "contrib.slim.learning.add_gradients_summaries")
def add_gradients_summaries(grads_and_vars):
    found = []
    for grad, var in grads_and_vars:
        if grad is None:
            logging.info("Var %s has no gradient", var.op.name)
            continue
        values = grad.values if isinstance(grad, indexed_slices.IndexedSlices) else grad
        found.append(summary.histogram(var.op.name + "_gradient", values))
        found.append(summary.scalar(var.op.name + "_gradient_norm", clip_ops.global_norm([values])))
    return found


def _clipped(grad, norm):
    if isinstance(grad, indexed_slices.IndexedSlices):
        return indexed_slices.IndexedSlices(clip_ops.clip_by_norm(grad.values, norm), grad.indices, grad.dense_shape)
    return clip_ops.clip_by_norm(grad, norm)


@export("contrib.training.clip_gradient_norms", "contrib.slim.learning.clip_gradient_norms")
def clip_gradient_norms(gradients_to_variables, max_norm):
    """Gradients whose norm is at most `max_norm`, each by itself."""
    return [(grad if grad is None else _clipped(grad, max_norm), var) for grad, var in gradients_to_variables]


@export("contrib.training.multiply_gradients", "contrib.slim.learning.multiply_gradients")
def multiply_gradients(grads_and_vars, gradient_multipliers):
    """Gradients times the factors of their variables, which are given by variable or name."""
    if not isinstance(gradient_multipliers, dict) or not gradient_multipliers:
        raise ValueError("gradient_multipliers must be a dict and not empty")
    found = []
    for grad, var in grads_and_vars:
        key = next((k for k in gradient_multipliers if k is var or k == var.op.name), None)
        if key is not None:
            if grad is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = math_ops.cast(ops.convert_to_tensor(gradient_multipliers[key]), grad.dtype)
            if isinstance(grad, indexed_slices.IndexedSlices):
                grad = indexed_slices.IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
            else:
                grad = grad * factor
        found.append((grad, var))
    return found


@export("contrib.training.create_train_op")
def create_train_op(total_loss, optimizer, global_step=_USE_GLOBAL_STEP, update_ops=None, variables_to_train=None,
                    transform_grads_fn=None, summarize_gradients=False, gate_gradients=1, aggregation_method=None,
                    colocate_gradients_with_ops=False, check_numerics=True):
    """A tensor that trains when it is computed, and gives the loss."""
    if global_step is _USE_GLOBAL_STEP:
        global_step = training_util.get_or_create_global_step()
    updates = set(ops.get_collection(ops.GraphKeys.UPDATE_OPS)) if update_ops is None else set(update_ops)
    if updates:
        with ops.control_dependencies(sorted(updates, key=lambda u: u.name)):
            barrier = control_flow_ops.no_op(name="update_barrier")
        with ops.control_dependencies([barrier]):
            total_loss = array_ops.identity(total_loss)
    variables = variables_to_train or variables_lib.trainable_variables()
    grads = optimizer.compute_gradients(total_loss, variables, gate_gradients=gate_gradients, aggregation_method=aggregation_method,
                                        colocate_gradients_with_ops=colocate_gradients_with_ops)
    if transform_grads_fn:
        grads = transform_grads_fn(grads)
    if summarize_gradients:
        with ops.name_scope("summarize_grads"):
            add_gradients_summaries(grads)
    applied = optimizer.apply_gradients(grads, global_step=global_step)
    with ops.name_scope("train_op"):
        if check_numerics:
            total_loss = numeric_checks.verify_tensor_all_finite(total_loss, "LossTensor is inf or nan")
        with ops.control_dependencies([applied]):
            train_op = array_ops.identity(total_loss)
    collection = ops.get_collection_ref(ops.GraphKeys.TRAIN_OP)
    if train_op not in collection:
        collection.append(train_op)
    return train_op


@export("contrib.slim.learning.create_train_op")
def slim_create_train_op(total_loss, optimizer, global_step=_USE_GLOBAL_STEP, update_ops=None, variables_to_train=None,
                         clip_gradient_norm=0, summarize_gradients=False, gate_gradients=1, aggregation_method=None,
                         colocate_gradients_with_ops=False, gradient_multipliers=None, check_numerics=True):
    def transform(grads):
        if gradient_multipliers:
            grads = multiply_gradients(grads, gradient_multipliers)
        return clip_gradient_norms(grads, clip_gradient_norm) if clip_gradient_norm > 0 else grads
    return create_train_op(total_loss, optimizer, global_step, update_ops, variables_to_train, transform, summarize_gradients,
                           gate_gradients, aggregation_method, colocate_gradients_with_ops, check_numerics)


@export("contrib.training.train")
def train(train_op, logdir, master="", is_chief=True, scaffold=None, hooks=None, chief_only_hooks=None, save_checkpoint_secs=600,
          save_summaries_steps=100, config=None, max_wait_secs=7200, run_metadata=None):
    """Trains until a hook ends it. Gives the last loss."""
    if logdir is None and is_chief:
        if save_summaries_steps:
            raise ValueError("logdir cannot be None when save_summaries_steps is not None")
        if save_checkpoint_secs:
            raise ValueError("logdir cannot be None when save_checkpoint_secs is not None")
    loss = None
    with monitored_session.MonitoredTrainingSession(
            master=master, is_chief=is_chief, checkpoint_dir=logdir, scaffold=scaffold, hooks=hooks,
            chief_only_hooks=chief_only_hooks, save_checkpoint_secs=save_checkpoint_secs,
            save_summaries_steps=save_summaries_steps, config=config, max_wait_secs=max_wait_secs) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


@export("contrib.slim.learning.train_step")
def train_step(sess, train_op, global_step, train_step_kwargs):
    """One step: (loss, whether to stop)."""
    start = time.time()
    loss, step = sess.run([train_op, global_step])
    passed = time.time() - start
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, passed)
    stop = "should_stop" in train_step_kwargs and sess.run(train_step_kwargs["should_stop"])
    return loss, stop


@export("contrib.slim.learning.train")
def slim_train(train_op, logdir, train_step_fn=train_step, train_step_kwargs=_USE_GLOBAL_STEP, log_every_n_steps=1, graph=None,
               master="", is_chief=True, global_step=None, number_of_steps=None, init_op=_USE_GLOBAL_STEP, init_feed_dict=None,
               local_init_op=_USE_GLOBAL_STEP, init_fn=None, ready_op=_USE_GLOBAL_STEP, summary_op=_USE_GLOBAL_STEP,
               save_summaries_secs=600, summary_writer=_USE_GLOBAL_STEP, startup_delay_steps=0, saver=None,
               save_interval_secs=600, sync_optimizer=None, session_config=None, session_wrapper=None, trace_every_n_steps=None,
               ignore_live_threads=False):
    """Trains with a supervisor until `number_of_steps`. Gives the last loss."""
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    syncs = [sync_optimizer] if sync_optimizer is not None and not isinstance(sync_optimizer, (list, tuple)) else list(sync_optimizer or [])
    graph = graph or ops.get_default_graph()
    default = _USE_GLOBAL_STEP
    with graph.as_default():
        global_step = training_util.get_or_create_global_step() if global_step is None else global_step
        saver_or_default = {} if saver is None else {"saver": saver}
        with ops.name_scope("init_ops"):
            init_op = variables_lib.global_variables_initializer() if init_op is default else init_op
            if local_init_op is default:
                local_init_op = control_flow_ops.group(variables_lib.local_variables_initializer(), lookup_ops.tables_initializer())
            extra = [o.chief_init_op if is_chief else o.local_step_init_op for o in syncs]
            local_init_op = control_flow_ops.group(local_init_op, *extra) if extra else local_init_op
        summary_op = summary.merge_all() if summary_op is default else summary_op
        if train_step_kwargs is default:
            with ops.name_scope("train_step"):
                train_step_kwargs = {}
                if number_of_steps:
                    train_step_kwargs["should_stop"] = math_ops.greater_equal(global_step, number_of_steps)
                if log_every_n_steps > 0:
                    train_step_kwargs["should_log"] = math_ops.equal(math_ops.mod(global_step, log_every_n_steps), 0)
        tokens = [o.get_init_tokens_op() for o in syncs] if is_chief else []
        options = {} if ready_op is default else {"ready_op": ready_op}
        if syncs:
            options["ready_for_local_init_op"] = syncs[0].ready_for_local_init_op
        if summary_writer is not default:
            options["summary_writer"] = summary_writer
        manager = supervisor.Supervisor(
            graph=graph, is_chief=is_chief, logdir=logdir, init_op=init_op, init_feed_dict=init_feed_dict,
            local_init_op=local_init_op, summary_op=summary_op, global_step=global_step, save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs, init_fn=init_fn, **saver_or_default, **options)
        loss = None
        with manager.managed_session(master, start_standard_services=False, config=session_config) as sess:
            sess = session_wrapper(sess) if session_wrapper is not None else sess
            logging.info("Starting Session.")
            if is_chief and logdir:
                manager.start_standard_services(sess)
            threads = manager.start_queue_runners(sess)
            for o, token in zip(syncs, tokens):
                manager.start_queue_runners(sess, [o.get_chief_queue_runner()])
                sess.run(token)
            while not manager.should_stop():
                loss, stop = train_step_fn(sess, train_op, global_step, train_step_kwargs)
                if stop:
                    logging.info("Stopping Training.")
                    manager.request_stop()
            if logdir and manager.is_chief:
                logging.info("Finished training! Saving model to disk.")
                manager.saver.save(sess, manager.save_path, global_step=manager.global_step)
            manager.stop(threads, close_summary_writer=True, ignore_live_threads=ignore_live_threads)
        return loss


_OPTIMIZERS = {
    "Adagrad": optimizers.AdagradOptimizer, "Adam": optimizers.AdamOptimizer, "Ftrl": optimizers.FtrlOptimizer,
    "Momentum": lambda learning_rate: optimizers.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": optimizers.RMSPropOptimizer, "SGD": optimizers.GradientDescentOptimizer,
}


@export("contrib.layers.optimize_loss")
def optimize_loss(loss, global_step, learning_rate, optimizer, gradient_noise_scale=None, gradient_multipliers=None,
                  clip_gradients=None, learning_rate_decay_fn=None, update_ops=None, variables=None, name=None, summaries=None,
                  colocate_gradients_with_ops=False, increment_global_step=True):
    """A tensor that trains when it is computed, and gives the loss."""
    if gradient_noise_scale is not None:
        raise NotImplementedError("optimize_loss: gradient_noise_scale is not supported")
    loss = ops.convert_to_tensor(loss)
    with variable_scope.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        updates = ops.get_collection(ops.GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        if updates:
            with ops.control_dependencies(updates):
                loss = array_ops.identity(loss)
        rate = learning_rate
        if rate is not None and not callable(rate):
            if isinstance(rate, float) and rate < 0.0:
                raise ValueError("Invalid learning_rate %s." % rate)
            if not isinstance(rate, ops.Tensor):
                from ferroflow.python.ops import init_ops
                rate = variable_scope.get_variable("learning_rate", [], dtype=dtypes.float32, trainable=False,
                                                   initializer=init_ops.constant_initializer(rate))
            if learning_rate_decay_fn is not None:
                rate = learning_rate_decay_fn(rate, global_step)
        if summaries is None:
            summaries = ["learning_rate", "loss"]
        if rate is not None and "learning_rate" in summaries:
            summary.scalar("learning_rate", rate)
        if isinstance(optimizer, str):
            if optimizer not in _OPTIMIZERS:
                raise ValueError("Optimizer name should be one of [%s], you provided %s." % (", ".join(_OPTIMIZERS), optimizer))
            if rate is None:
                raise ValueError("Learning rate is None, but should be specified if optimizer is string (%s)." % optimizer)
            opt = _OPTIMIZERS[optimizer](learning_rate=rate)
        elif hasattr(optimizer, "compute_gradients") and not isinstance(optimizer, type):
            opt = optimizer
        else:
            opt = optimizer(learning_rate=rate) if isinstance(optimizer, type) else (optimizer(rate) if rate is not None else optimizer())
        found = opt.compute_gradients(loss, variables or variables_lib.trainable_variables(),
                                      colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_multipliers is not None:
            found = multiply_gradients(found, gradient_multipliers)
        if callable(clip_gradients):
            found = clip_gradients(found)
        elif clip_gradients is not None:
            grads, targets = zip(*found)
            grads, _ = clip_ops.clip_by_global_norm(grads, clip_gradients)
            found = list(zip(grads, targets))
        if "loss" in summaries:
            summary.scalar("loss", loss)
        applied = opt.apply_gradients(found, global_step=global_step if increment_global_step else None, name="train")
        with ops.control_dependencies([applied]):
            return array_ops.identity(loss)
