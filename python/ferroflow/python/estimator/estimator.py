"""Estimator: trains, evaluates, predicts and exports a model function."""

import copy
import os
import tempfile

import numpy as np

from ferroflow.core.framework import summary_pb2
from ferroflow.python.estimator import export_output, util
from ferroflow.python.estimator import model_fn as model_fn_lib
from ferroflow.python.estimator import run_config as run_config_lib
from ferroflow.python.estimator.model_fn import ModeKeys
from ferroflow.python.framework import ops, random_seed
from ferroflow.python.lib.io import file_io
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.saved_model import builder_impl
from ferroflow.python.summary import summary
from ferroflow.python.summary.writer.writer_cache import FileWriterCache
from ferroflow.python.training import (
    basic_session_run_hooks,
    checkpoint_management,
    checkpoint_utils,
    device_setter,
    evaluation,
    monitored_session,
    saver,
    training_util,
)
from ferroflow.python.training import scaffold as scaffold_lib


class Estimator:
    """A model function with a folder for its checkpoints."""

    def __init__(self, model_fn, model_dir=None, config=None, params=None, warm_start_from=None):
        self._config = _with_model_dir(config, model_dir)
        self._model_dir = self._config.model_dir
        logging.info("Using config: %s", str(vars(self._config)))
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        arguments = util.fn_args(model_fn)
        if "features" not in arguments and not util.takes_any_keyword(model_fn):
            raise ValueError("model_fn (%s) must include features argument." % model_fn)
        if params is not None and "params" not in arguments and not util.takes_any_keyword(model_fn):
            raise ValueError("model_fn (%s) does not include params argument, but params (%s) is passed to Estimator." % (model_fn, params))
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start = warm_start_from
        self._device_fn = self._config.device_fn or _get_replica_device_setter(self._config)
        self._session_config = self._config.session_config

    @property
    def model_dir(self):
        return self._model_dir

    @property
    def config(self):
        return copy.deepcopy(self._config)

    @property
    def params(self):
        return copy.deepcopy(self._params)

    @property
    def model_fn(self):
        def public_model_fn(features, labels, mode, config):
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    # What a checkpoint holds.

    def get_variable_value(self, name):
        self._check_checkpoint_available()
        return checkpoint_utils.load_variable(self.model_dir, name)

    def get_variable_names(self):
        self._check_checkpoint_available()
        return [name for name, _ in checkpoint_utils.list_variables(self.model_dir)]

    def latest_checkpoint(self):
        return checkpoint_management.latest_checkpoint(self.model_dir)

    def _check_checkpoint_available(self):
        if not self.latest_checkpoint():
            raise ValueError("Could not find trained model in model_dir: {}.".format(self._model_dir))

    def eval_dir(self, name=None):
        return os.path.join(self._model_dir, "eval" if not name else "eval_" + name)

    # Training.

    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        """Trains until the input ends, or for `steps`, or up to the global step `max_steps`."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if steps is not None and steps <= 0:
            raise ValueError("Must specify steps > 0, given: {}".format(steps))
        if max_steps is not None and max_steps <= 0:
            raise ValueError("Must specify max_steps > 0, given: {}".format(max_steps))
        if max_steps is not None:
            start_step = _load_global_step(self._model_dir)
            if max_steps <= start_step:
                logging.info("Skipping training since max_steps has already saved.")
                return self
        hooks = list(hooks or [])
        if steps is not None or max_steps is not None:
            hooks.append(basic_session_run_hooks.StopAtStepHook(steps, max_steps))
        loss = self._train_model(input_fn, hooks, list(saving_listeners or []))
        logging.info("Loss for final step: %s.", loss)
        return self

    def _train_model(self, input_fn, hooks, saving_listeners):
        worker_hooks = []
        with ops.Graph().as_default() as g, g.device(self._device_fn):
            random_seed.set_random_seed(self._config.tf_random_seed)
            self._create_and_assert_global_step(g)
            # Made before the model, so that the model may depend on it.
            training_util._get_or_create_global_step_read(g)
            features, labels, input_hooks = self._get_features_and_labels(input_fn, ModeKeys.TRAIN)
            worker_hooks.extend(input_hooks)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self._config)
            return self._train_with_spec(spec, worker_hooks, hooks, training_util.get_global_step(g), saving_listeners)

    def _train_with_spec(self, spec, worker_hooks, hooks, global_step_tensor, saving_listeners):
        if self._warm_start:
            from ferroflow.python.training import warm_starting_util

            warm_starting_util.warm_start(*_warm_start_arguments(self._warm_start))
        if not any(x.op.name == "loss" for x in ops.get_collection(ops.GraphKeys.SUMMARIES)):
            summary.scalar("loss", spec.loss)
        ops.add_to_collection(ops.GraphKeys.LOSSES, spec.loss)
        worker_hooks.extend(hooks)
        worker_hooks.append(basic_session_run_hooks.NanTensorHook(spec.loss))
        if self._config.log_step_count_steps is not None:
            worker_hooks.append(
                basic_session_run_hooks.LoggingTensorHook(
                    {"loss": spec.loss, "step": global_step_tensor}, every_n_iter=self._config.log_step_count_steps
                )
            )
        worker_hooks.extend(spec.training_hooks)
        if not (spec.scaffold.saver or ops.get_collection(ops.GraphKeys.SAVERS)):
            ops.add_to_collection(
                ops.GraphKeys.SAVERS,
                saver.Saver(
                    sharded=True,
                    max_to_keep=self._config.keep_checkpoint_max,
                    keep_checkpoint_every_n_hours=self._config.keep_checkpoint_every_n_hours,
                    defer_build=True,
                    save_relative_paths=True,
                ),
            )
        chief_hooks = []
        all_hooks = worker_hooks + list(spec.training_chief_hooks)
        saver_hooks = [h for h in all_hooks if isinstance(h, basic_session_run_hooks.CheckpointSaverHook)]
        if (self._config.save_checkpoints_secs or self._config.save_checkpoints_steps) and not saver_hooks:
            chief_hooks = [
                basic_session_run_hooks.CheckpointSaverHook(
                    self._model_dir,
                    save_secs=self._config.save_checkpoints_secs,
                    save_steps=self._config.save_checkpoints_steps,
                    scaffold=spec.scaffold,
                    save_graph_def=self._config.checkpoint_save_graph_def,
                )
            ]
            saver_hooks = chief_hooks
        if saving_listeners:
            if not saver_hooks:
                raise ValueError("There should be a CheckpointSaverHook to use saving_listeners. Please set one of the RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs.")
            saver_hooks[0]._listeners.extend(saving_listeners)
        with monitored_session.MonitoredTrainingSession(
            master=self._config.master,
            is_chief=self._config.is_chief,
            checkpoint_dir=self._model_dir,
            scaffold=spec.scaffold,
            hooks=worker_hooks,
            chief_only_hooks=chief_hooks + list(spec.training_chief_hooks),
            save_checkpoint_secs=0,
            save_summaries_steps=self._config.save_summary_steps,
            config=self._session_config,
            max_wait_secs=self._config.session_creation_timeout_secs,
            log_step_count_steps=self._config.log_step_count_steps,
            save_graph_def=self._config.checkpoint_save_graph_def,
        ) as mon_sess:
            loss, any_step_done = None, False
            while not mon_sess.should_stop():
                _, loss = mon_sess.run([spec.train_op, spec.loss])
                any_step_done = True
        if not any_step_done:
            logging.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
        return loss

    # Evaluation.

    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        """The metrics of a checkpoint, by name."""
        if steps is not None and steps <= 0:
            raise ValueError("Must specify steps > 0, given: {}".format(steps))
        hooks = list(hooks or [])
        if steps is not None:
            hooks.append(evaluation._StopAfterNEvalsHook(num_evals=steps))
        if not checkpoint_path:
            checkpoint_path = self.latest_checkpoint()
            if not checkpoint_path:
                logging.info("Could not find trained model in model_dir: {}, running initialization to evaluate.".format(self._model_dir))
        with ops.Graph().as_default() as g, g.device(self._device_fn):
            random_seed.set_random_seed(self._config.tf_random_seed)
            global_step = self._create_and_assert_global_step(g)
            features, labels, input_hooks = self._get_features_and_labels(input_fn, ModeKeys.EVAL)
            spec = self._call_model_fn(features, labels, ModeKeys.EVAL, self._config)
            metrics = _with_loss(spec)
            update_op = control_flow_ops.group(*[update for _, update in metrics.values()])
            eval_dict = {key: value for key, (value, _) in metrics.items()}
            eval_dict[ops.GraphKeys.GLOBAL_STEP] = global_step
            results = evaluation._evaluate_once(
                checkpoint_path=checkpoint_path,
                master=self._config.evaluation_master,
                scaffold=spec.scaffold,
                eval_ops=update_op,
                final_ops=eval_dict,
                hooks=input_hooks + hooks + list(spec.evaluation_hooks),
                config=self._session_config,
            )
            step = int(results[ops.GraphKeys.GLOBAL_STEP])
            _write_dict_to_summary(self.eval_dir(name), results, step)
            if checkpoint_path:
                _write_checkpoint_path_to_summary(self.eval_dir(name), checkpoint_path, step)
        return results

    # Prediction.

    def predict(self, input_fn, predict_keys=None, hooks=None, checkpoint_path=None, yield_single_examples=True):
        """Yields the predictions for the examples of an input."""
        hooks = list(hooks or [])
        if not checkpoint_path:
            checkpoint_path = self.latest_checkpoint()
        if not checkpoint_path:
            logging.info("Could not find trained model in model_dir: {}, running initialization to predict.".format(self._model_dir))
        with ops.Graph().as_default() as g, g.device(self._device_fn):
            random_seed.set_random_seed(self._config.tf_random_seed)
            self._create_and_assert_global_step(g)
            features, _, input_hooks = self._get_features_and_labels(input_fn, ModeKeys.PREDICT)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self._config)
            predictions = _selected(spec.predictions, predict_keys)
            with monitored_session.MonitoredSession(
                session_creator=monitored_session.ChiefSessionCreator(
                    checkpoint_filename_with_path=checkpoint_path,
                    master=self._config.master,
                    scaffold=spec.scaffold,
                    config=self._session_config,
                ),
                hooks=input_hooks + hooks + list(spec.prediction_hooks),
            ) as mon_sess:
                while not mon_sess.should_stop():
                    values = mon_sess.run(predictions)
                    if not yield_single_examples:
                        yield values
                    elif not isinstance(predictions, dict):
                        yield from values
                    else:
                        for i in range(_batch_length(values)):
                            yield {key: value[i] for key, value in values.items()}

    # Export.

    def export_saved_model(self, export_dir_base, serving_input_receiver_fn, assets_extra=None, as_text=False, checkpoint_path=None, experimental_mode=ModeKeys.PREDICT, strip_default_attrs=True):
        """Writes a SavedModel of the newest checkpoint in a new folder; returns the folder."""
        if serving_input_receiver_fn is None:
            raise ValueError("An input_receiver_fn must be defined.")
        checkpoint_path = checkpoint_path or self.latest_checkpoint()
        if not checkpoint_path:
            raise ValueError("Couldn't find trained model at {}.".format(self._model_dir))
        export_dir = util.get_timestamped_dir(os.fspath(export_dir_base))
        temp_dir = os.path.join(os.path.dirname(export_dir), "temp-" + os.path.basename(export_dir))
        builder = builder_impl.SavedModelBuilder(temp_dir)
        with ops.Graph().as_default() as g:
            self._create_and_assert_global_step(g)
            random_seed.set_random_seed(self._config.tf_random_seed)
            receiver = serving_input_receiver_fn()
            spec = self._call_model_fn(receiver.features, getattr(receiver, "labels", None), experimental_mode, self._config)
            signatures, errors = export_output.signatures_for(receiver.receiver_tensors, spec.export_outputs)
            for key, reason in errors.items():
                logging.info("Export signature %r is for prediction: %s", key, reason)
            from ferroflow.python.client import session as tf_session

            with tf_session.Session(config=self._session_config) as session:
                graph_saver = spec.scaffold.saver or saver.Saver(sharded=True)
                graph_saver.restore(session, checkpoint_path)
                local_init_op = spec.scaffold.local_init_op or scaffold_lib.Scaffold.default_local_init_op()
                builder.add_meta_graph_and_variables(
                    session,
                    tags=model_fn_lib.EXPORT_TAG_MAP[experimental_mode],
                    signature_def_map=signatures,
                    assets_list=ops.get_collection(ops.GraphKeys.ASSET_FILEPATHS),
                    main_op=local_init_op,
                    saver=graph_saver,
                    strip_default_attrs=strip_default_attrs,
                )
        builder.save(as_text)
        for name, source in (assets_extra or {}).items():
            target = os.path.join(temp_dir, "assets.extra", name)
            file_io.recursive_create_dir(os.path.dirname(target))
            file_io.copy(source, target)
        file_io.rename(temp_dir, export_dir)
        return export_dir.encode("utf-8")

    export_savedmodel = export_saved_model

    # Pieces.

    def _create_and_assert_global_step(self, graph):
        step = self._create_global_step(graph)
        assert step is training_util.get_global_step(graph)
        return step

    def _create_global_step(self, graph):
        return training_util.create_global_step(graph)

    def _get_features_and_labels(self, input_fn, mode):
        arguments = util.fn_args(input_fn)
        kwargs = {}
        if "mode" in arguments:
            kwargs["mode"] = mode
        if "params" in arguments:
            kwargs["params"] = self.params
        if "config" in arguments:
            kwargs["config"] = self.config
        with ops.device("/cpu:0"):
            result = input_fn(**kwargs)
        features, labels, hooks = util.parse_input_fn_result(result)
        graph = ops.get_default_graph()
        ends = hooks or graph.get_collection(ops.GraphKeys.QUEUE_RUNNERS) or any(op.type == "OneShotIterator" for op in graph.get_operations())
        if mode == ModeKeys.PREDICT and not ends:
            logging.warning("Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict yields forever. This is probably a mistake.")
        return features, labels, hooks

    def _call_model_fn(self, features, labels, mode, config):
        arguments = util.fn_args(self._model_fn)
        kwargs = {}
        if "labels" in arguments:
            kwargs["labels"] = labels
        elif labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        if "mode" in arguments:
            kwargs["mode"] = mode
        if "params" in arguments:
            kwargs["params"] = self.params
        if "config" in arguments:
            kwargs["config"] = config
        logging.info("Calling model_fn.")
        result = self._model_fn(features=features, **kwargs)
        logging.info("Done calling model_fn.")
        if not isinstance(result, model_fn_lib.EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return result


def _with_model_dir(config, model_dir):
    """The configuration with a folder for the model."""
    if config is None:
        config = run_config_lib.RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, run_config_lib.RunConfig):
        raise ValueError("config must be an instance of `RunConfig`, but provided %s." % config)
    if model_dir is not None and config.model_dir is not None and os.fspath(model_dir) != config.model_dir:
        raise ValueError("`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: '{}', in `RunConfig`: '{}' ".format(model_dir, config.model_dir))
    model_dir = model_dir or config.model_dir
    if model_dir is None:
        model_dir = tempfile.mkdtemp()
        logging.warning("Using temporary folder as model directory: %s", model_dir)
    return config.replace(model_dir=os.fspath(model_dir)) if config.model_dir is None else config


def _get_replica_device_setter(config):
    if config.num_ps_replicas <= 0:
        return None
    worker_device = "/job:%s/task:%d" % (config.task_type, config.task_id) if config.task_type else "/job:worker"
    return device_setter.replica_device_setter(
        ps_tasks=config.num_ps_replicas, worker_device=worker_device, merge_devices=True, cluster=config.cluster_spec
    )


def _load_global_step(model_dir):
    try:
        return int(checkpoint_utils.load_variable(model_dir, ops.GraphKeys.GLOBAL_STEP))
    except Exception:  # pylint: disable=broad-except
        return 0


def _warm_start_arguments(settings):
    if isinstance(settings, (str, bytes, os.PathLike)):
        return (os.fspath(settings), ".*")
    return (settings.ckpt_to_initialize_from, settings.vars_to_warm_start, settings.var_name_to_vocab_info, settings.var_name_to_prev_var_name)


def _with_loss(spec):
    """The metrics of a spec with the mean of its loss."""
    from ferroflow.python.ops import metrics

    found = dict(sorted(spec.eval_metric_ops.items()))
    if model_fn_lib.LOSS_METRIC_KEY in found:
        raise ValueError("Metric with name 'loss' is not allowed, because Estimator already defines a default metric with the same name.")
    found[model_fn_lib.LOSS_METRIC_KEY] = metrics.mean(spec.loss)
    return found




def _selected(predictions, predict_keys):
    if not predict_keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    found = {key: value for key, value in predictions.items() if key in predict_keys}
    if not found:
        raise ValueError("Expected to run at least one output from {}, provided {}.".format(sorted(predictions), predict_keys))
    return found


def _batch_length(values):
    sizes = {np.shape(value)[0] for value in values.values()}
    if len(sizes) != 1:
        raise ValueError("Batch length of predictions should be same; it is {}".format({k: np.shape(v) for k, v in values.items()}))
    return sizes.pop()


def _shown(values):
    return ", ".join("%s = %s" % (k, v) for k, v in sorted(values.items()))


def _write_dict_to_summary(output_dir, dictionary, current_global_step):
    logging.info("Saving dict for global step %d: %s", current_global_step, _shown(dictionary))
    writer = FileWriterCache.get(output_dir)
    proto = summary_pb2.Summary()
    for key, value in dictionary.items():
        if value is None or key == "global_step":
            continue
        if isinstance(value, (np.floating, float, np.integer, int)):
            proto.value.add(tag=key, simple_value=float(value))
        elif isinstance(value, bytes):
            proto.MergeFrom(summary_pb2.Summary.FromString(value))
        elif isinstance(value, np.ndarray) and value.ndim == 0:
            proto.value.add(tag=key, simple_value=float(value))
        else:
            logging.warning("Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or np.ndarray or a serialized string of Summary.", key)
    writer.add_summary(proto, current_global_step)
    writer.flush()


def _write_checkpoint_path_to_summary(output_dir, checkpoint_path, current_global_step):
    from ferroflow.python.framework import tensor_util

    tag = "checkpoint_path"
    logging.info("Saving '%s' summary for global step %d: %s", tag, current_global_step, checkpoint_path)
    proto = summary_pb2.Summary()
    value = proto.value.add(tag=tag)
    value.tensor.CopyFrom(tensor_util.make_tensor_proto(checkpoint_path))
    value.metadata.plugin_data.plugin_name = "text"
    writer = FileWriterCache.get(output_dir)
    writer.add_summary(proto, current_global_step)
    writer.flush()
