"""RunConfig: where and how an Estimator runs. The cluster comes from the variable TF_CONFIG."""

import copy
import json
import os

from ferroflow.core.protobuf import config_pb2, rewriter_config_pb2
from ferroflow.python.training import server_lib

_USE_DEFAULT = object()


class TaskType:
    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


def _session_config(task_type, task_id):
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    config.graph_options.rewrite_options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    if task_type in (TaskType.CHIEF, TaskType.MASTER):
        config.device_filters.extend(["/job:ps", "/job:%s" % task_type])
    elif task_type == TaskType.WORKER:
        config.device_filters.extend(["/job:ps", "/job:%s/task:%d" % (task_type, task_id)])
    return config


class RunConfig:
    """The configuration of an Estimator."""

    def __init__(
        self,
        model_dir=None,
        tf_random_seed=None,
        save_summary_steps=100,
        save_checkpoints_steps=_USE_DEFAULT,
        save_checkpoints_secs=_USE_DEFAULT,
        session_config=None,
        keep_checkpoint_max=5,
        keep_checkpoint_every_n_hours=10000,
        log_step_count_steps=100,
        train_distribute=None,
        device_fn=None,
        protocol=None,
        eval_distribute=None,
        experimental_distribute=None,
        experimental_max_worker_delay_secs=None,
        session_creation_timeout_secs=7200,
        checkpoint_save_graph_def=True,
    ):
        several = [s for s in (train_distribute, eval_distribute) if getattr(s, "num_replicas_in_sync", 1) != 1]
        if several or experimental_distribute is not None:
            raise NotImplementedError("RunConfig: distribution strategies are not supported; use a ps/worker cluster in TF_CONFIG")
        if save_checkpoints_steps is _USE_DEFAULT and save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        elif save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _USE_DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        tf_config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if tf_config:
            model_dir = _model_dir(tf_config, model_dir)
        self._model_dir = None if model_dir is None else os.fspath(model_dir)
        self._tf_random_seed = tf_random_seed
        self._save_summary_steps = save_summary_steps
        self._save_checkpoints_steps, self._save_checkpoints_secs = save_checkpoints_steps, save_checkpoints_secs
        self._session_config = session_config
        if keep_checkpoint_max is not None and keep_checkpoint_max < 0:
            raise ValueError("keep_checkpoint_max should be >= 0")
        self._keep_checkpoint_max = keep_checkpoint_max
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._log_step_count_steps = log_step_count_steps
        self._train_distribute, self._eval_distribute = None, None
        self._device_fn, self._protocol = device_fn, protocol
        self._experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self._session_creation_timeout_secs = session_creation_timeout_secs
        self._checkpoint_save_graph_def = checkpoint_save_graph_def
        self._service = tf_config.get("service")
        self._init_cluster(tf_config)
        if self._session_config is None:
            self._session_config = _session_config(self._task_type if self._cluster_spec.jobs else None, self._task_id)

    def _init_cluster(self, tf_config):
        self._cluster_spec = server_lib.ClusterSpec(tf_config.get("cluster", {}))
        task = tf_config.get("task", {})
        jobs = self._cluster_spec.as_dict()
        if not jobs:
            self._task_type = task.get("type", TaskType.WORKER)
            self._task_id = int(task.get("index", 0))
            if self._task_type != TaskType.WORKER or self._task_id != 0:
                raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER and task index 0.')
            self._master, self._evaluation_master = "", ""
            self._num_ps_replicas, self._num_worker_replicas = 0, 1
            self._is_chief, self._global_id_in_cluster = True, 0
            return
        if TaskType.CHIEF not in jobs and TaskType.MASTER not in jobs:
            raise ValueError('If "cluster" is set in TF_CONFIG, it must have one "chief" node.')
        self._task_type = task.get("type")
        if not self._task_type or task.get("index") is None:
            raise ValueError('If "cluster" is set in TF_CONFIG, task type and index must be set.')
        self._task_id = int(task["index"])
        if self._task_id < 0:
            raise ValueError("Task index must be non-negative number.")
        self._evaluation_master = ""
        if self._task_type == TaskType.EVALUATOR:
            self._master, self._is_chief, self._global_id_in_cluster = "", False, None
            self._num_ps_replicas, self._num_worker_replicas = 0, 0
            return
        if self._task_type not in jobs:
            raise ValueError("%s is not a valid task_type in the cluster_spec:\n%s" % (self._task_type, jobs))
        if self._task_id >= len(jobs[self._task_type]):
            raise ValueError("%d is not a valid task_id for task_type %s in the cluster_spec" % (self._task_id, self._task_type))
        address = jobs[self._task_type][self._task_id]
        self._master = "grpc://" + address if "://" not in address else address
        if not jobs.get(TaskType.PS) and len([j for j in jobs if jobs[j]]) == 1 and len(jobs[self._task_type]) == 1:
            # A cluster of one task is a local run.
            self._master = ""
        self._num_ps_replicas = len(jobs.get(TaskType.PS, []))
        self._num_worker_replicas = sum(len(jobs.get(j, [])) for j in (TaskType.WORKER, TaskType.CHIEF, TaskType.MASTER))
        self._is_chief = self._task_type in (TaskType.CHIEF, TaskType.MASTER)
        order = []
        for job in (TaskType.CHIEF, TaskType.MASTER, TaskType.WORKER, TaskType.PS):
            order += [(job, i) for i in range(len(jobs.get(job, [])))]
        self._global_id_in_cluster = order.index((self._task_type, self._task_id)) if (self._task_type, self._task_id) in order else None

    def replace(self, **kwargs):
        """A copy with other values."""
        allowed = {
            "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
            "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps", "train_distribute",
            "device_fn", "protocol", "eval_distribute", "experimental_distribute", "experimental_max_worker_delay_secs",
            "session_creation_timeout_secs", "checkpoint_save_graph_def",
        }
        new = copy.copy(self)
        for key, value in kwargs.items():
            if key not in allowed:
                raise ValueError("Replacing {} is not supported. Allowed properties are {}.".format(key, sorted(allowed)))
            setattr(new, "_" + key, value)
        if "save_checkpoints_steps" in kwargs and "save_checkpoints_secs" not in kwargs:
            new._save_checkpoints_secs = None
        if "save_checkpoints_secs" in kwargs and "save_checkpoints_steps" not in kwargs:
            new._save_checkpoints_steps = None
        return new

    @property
    def tf_config(self):
        return json.loads(os.environ.get("TF_CONFIG") or "{}")


def _model_dir(tf_config, model_dir):
    from_config = tf_config.get("model_dir")
    if from_config and model_dir and from_config != os.fspath(model_dir):
        raise ValueError("`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in TF_CONFIG.")
    return model_dir or from_config


def _reader(name):
    return property(lambda self: getattr(self, "_" + name))


for _name in (
    "model_dir tf_random_seed save_summary_steps save_checkpoints_steps save_checkpoints_secs session_config keep_checkpoint_max "
    "keep_checkpoint_every_n_hours log_step_count_steps train_distribute eval_distribute device_fn protocol "
    "experimental_max_worker_delay_secs session_creation_timeout_secs checkpoint_save_graph_def service cluster_spec task_type "
    "task_id master evaluation_master num_ps_replicas num_worker_replicas is_chief global_id_in_cluster"
).split():
    setattr(RunConfig, _name, _reader(_name))
