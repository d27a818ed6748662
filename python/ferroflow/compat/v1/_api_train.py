"""Names of training, input, summaries, files, flags and logs."""

_LOGGING = "DEBUG ERROR FATAL INFO WARN TaskLevelStatusMessage debug error fatal flush get_verbosity info log log_every_n log_first_n log_if set_verbosity vlog warn warning"
_FLAGS = (
    "FLAGS DEFINE DEFINE_alias DEFINE_bool DEFINE_boolean DEFINE_enum DEFINE_enum_class DEFINE_flag DEFINE_float DEFINE_integer "
    "DEFINE_list DEFINE_multi_enum DEFINE_multi_float DEFINE_multi_integer DEFINE_multi_string DEFINE_spaceseplist DEFINE_string "
    "ArgumentParser BooleanParser CantOpenFlagFileError DuplicateFlagError EnumParser Error Flag FlagHolder FlagValues FloatParser "
    "IllegalFlagValueError IntegerParser UnparsedFlagAccessError UnrecognizedFlagError ValidationError adopt_module_key_flags "
    "declare_key_flag doc_to_help flag_dict_to_args get_help_width mark_flag_as_required mark_flags_as_mutual_exclusive "
    "mark_flags_as_required multi_flags_validator register_multi_flags_validator register_validator text_wrap validator"
)


def _under(prefix, names):
    return " ".join(f"{prefix}.{name}={name}" for name in names.split())


NAMES = {
    "ferroflow.python.platform.tf_logging": _under("logging", _LOGGING) + " get_logger",
    "ferroflow.python.platform.flags": _under("flags", _FLAGS) + " " + _under("app.flags", _FLAGS),
    "ferroflow.python.platform.app": "app.run=run",
    "ferroflow.python.platform.resource_loader": _under(
        "resource_loader",
        "get_data_files_path get_path_to_datafile get_root_dir_with_all_resources load_resource readahead_file_path",
    ),
    "ferroflow.python.platform.sysconfig": _under("sysconfig", "get_lib get_include get_compile_flags get_link_flags get_build_info"),
    "ferroflow.python.lib.io.file_io": (
        "gfile.GFile=GFile gfile.FastGFile=FastGFile gfile.Open=Open gfile.Copy=copy gfile.DeleteRecursively=delete_recursively "
        "gfile.Exists=file_exists gfile.Glob=get_matching_files gfile.IsDirectory=is_directory gfile.ListDirectory=list_directory "
        "gfile.MakeDirs=recursive_create_dir gfile.MkDir=create_dir gfile.Remove=delete_file gfile.Rename=rename gfile.Stat=stat "
        "gfile.Walk=walk io.gfile.GFile=GFile io.gfile.copy=copy io.gfile.exists=file_exists io.gfile.glob=get_matching_files "
        "io.gfile.isdir=is_directory io.gfile.listdir=list_directory io.gfile.makedirs=recursive_create_dir "
        "io.gfile.mkdir=create_dir io.gfile.remove=delete_file io.gfile.rename=rename io.gfile.rmtree=delete_recursively "
        "io.gfile.stat=stat io.gfile.walk=walk_v2 io.gfile.join=join"
    ),
    "ferroflow.python.lib.io.tf_record": (
        _under("python_io", "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator")
        + " "
        + _under("io", "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator")
    ),
    "ferroflow.python.ops.data_flow_ops": (
        "QueueBase FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue ConditionalAccumulator ConditionalAccumulatorBase "
        "SparseConditionalAccumulator queue.QueueBase=QueueBase queue.FIFOQueue=FIFOQueue "
        "queue.PaddingFIFOQueue=PaddingFIFOQueue queue.PriorityQueue=PriorityQueue "
        "queue.RandomShuffleQueue=RandomShuffleQueue io.QueueBase=QueueBase io.FIFOQueue=FIFOQueue "
        "io.PaddingFIFOQueue=PaddingFIFOQueue io.PriorityQueue=PriorityQueue io.RandomShuffleQueue=RandomShuffleQueue "
        "contrib.staging.StagingArea=StagingArea"
    ),
    "ferroflow.python.training.coordinator": _under("train", "Coordinator LooperThread"),
    "ferroflow.python.training.queue_runner_impl": _under("train", "QueueRunner add_queue_runner start_queue_runners")
    + " "
    + _under("train.queue_runner", "QueueRunner add_queue_runner start_queue_runners"),
    "ferroflow.python.training.saver": _under("train", "Saver import_meta_graph export_meta_graph"),
    "ferroflow.python.training.checkpoint_management": _under(
        "train",
        "checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes get_checkpoint_state latest_checkpoint "
        "remove_checkpoint update_checkpoint_state CheckpointManager",
    ),
    "ferroflow.python.training.checkpoint_utils": _under(
        "train", "checkpoints_iterator init_from_checkpoint list_variables load_checkpoint load_variable"
    ),
    "ferroflow.python.training.py_checkpoint_reader": "train.NewCheckpointReader=NewCheckpointReader",
    "ferroflow.python.training.training_util": _under(
        "train", "assert_global_step create_global_step get_global_step get_or_create_global_step global_step"
    ),
    "ferroflow.python.framework.graph_io": "train.write_graph=write_graph io.write_graph=write_graph",
    "ferroflow.python.training.session_manager": "train.SessionManager=SessionManager",
    "ferroflow.python.training.supervisor": "train.Supervisor=Supervisor",
    "ferroflow.python.training.scaffold": "train.Scaffold=Scaffold",
    "ferroflow.python.training.monitored_session": _under(
        "train",
        "ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator SingularMonitoredSession WorkerSessionCreator",
    ),
    "ferroflow.python.training.session_run_hook": _under("train", "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"),
    "ferroflow.python.training.basic_session_run_hooks": _under(
        "train",
        "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook "
        "NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook SummarySaverHook",
    ),
    "ferroflow.python.training.basic_loops": "train.basic_train_loop=basic_train_loop",
    "ferroflow.python.training.device_setter": (
        "train.replica_device_setter=replica_device_setter contrib.training.GreedyLoadBalancingStrategy=GreedyLoadBalancingStrategy "
        "contrib.training.RandomStrategy=RandomStrategy contrib.training.byte_size_load_fn=byte_size_load_fn"
    ),
    "ferroflow.python.training.sync_replicas_optimizer": "train.SyncReplicasOptimizer=SyncReplicasOptimizer",
    "ferroflow.python.summary.summary": (
        _under("summary", "scalar image histogram audio text tensor_summary merge merge_all all_v2_summary_ops initialize FileWriter FileWriterCache")
        + " scalar_summary histogram_summary image_summary audio_summary merge_summary merge_all_summaries"
    ),
    "ferroflow.python.summary.writer.writer": "train.SummaryWriter=SummaryWriter",
    "ferroflow.python.summary.summary_iterator": "train.summary_iterator=summary_iterator",
}
