"""Names of training, input and summaries."""


def _under(prefix, names):
    return " ".join(f"{prefix}.{name}={name}" for name in names.split())


_HOOK_INTERFACE = "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
_HOOKS = (
    "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook "
    "NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook SummarySaverHook"
)
_GLOBAL_STEP = "assert_global_step create_global_step get_global_step get_or_create_global_step"

NAMES = {
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
    "ferroflow.python.training.checkpoint": _under("train", "Checkpoint"),
    "ferroflow.python.training.checkpoint_utils": _under(
        "train", "checkpoints_iterator init_from_checkpoint list_variables load_checkpoint load_variable"
    ),
    "ferroflow.python.training.py_checkpoint_reader": "train.NewCheckpointReader=NewCheckpointReader",
    "ferroflow.python.training.training_util": _under(
        "train", _GLOBAL_STEP + " global_step"
    )
    + " "
    + _under("contrib.framework", _GLOBAL_STEP),
    "ferroflow.python.framework.graph_io": "train.write_graph=write_graph io.write_graph=write_graph",
    "ferroflow.python.training.session_manager": "train.SessionManager=SessionManager",
    "ferroflow.python.training.supervisor": "train.Supervisor=Supervisor",
    "ferroflow.python.training.scaffold": "train.Scaffold=Scaffold",
    "ferroflow.python.training.monitored_session": _under(
        "train",
        "ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator SingularMonitoredSession WorkerSessionCreator",
    ),
    "ferroflow.python.training.session_run_hook": _under("train", _HOOK_INTERFACE) + " " + _under("estimator", _HOOK_INTERFACE),
    "ferroflow.python.training.basic_session_run_hooks": _under("train", _HOOKS) + " " + _under("estimator", _HOOKS),
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
    "ferroflow.python.data.ops.dataset_ops": (
        "data.Dataset=Dataset data.make_one_shot_iterator=make_one_shot_iterator "
        "data.make_initializable_iterator=make_initializable_iterator data.get_output_types=get_legacy_output_types "
        "data.get_output_shapes=get_legacy_output_shapes data.get_output_classes=get_legacy_output_classes "
        "data.AUTOTUNE=AUTOTUNE data.experimental.AUTOTUNE=AUTOTUNE data.INFINITE_CARDINALITY=INFINITE "
        "data.UNKNOWN_CARDINALITY=UNKNOWN"
    ),
    "ferroflow.python.data.ops.options": "data.Options=Options data.ThreadingOptions=ThreadingOptions "
    + _under("data.experimental", "AutotuneOptions DistributeOptions OptimizationOptions ThreadingOptions AutoShardPolicy"),
    "ferroflow.python.data.ops.iterator_ops": "data.Iterator=Iterator",
    "ferroflow.python.data.ops.readers": _under("data", "TextLineDataset TFRecordDataset FixedLengthRecordDataset"),
    "ferroflow.python.data.experimental.transformations": (
        _under(
            "data.experimental",
            "scan unbatch enumerate_dataset take_while map_and_batch shuffle_and_repeat parallel_interleave ignore_errors "
            "dense_to_sparse_batch group_by_window bucket_by_sequence_length prefetch_to_device cardinality INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
        )
        + " "
        + _under(
            "contrib.data",
            "scan unbatch enumerate_dataset map_and_batch shuffle_and_repeat parallel_interleave batch_and_drop_remainder ignore_errors "
            "dense_to_sparse_batch group_by_window bucket_by_sequence_length",
        )
    ),
    "ferroflow.python.data.experimental.sources": _under(
        "data.experimental",
        "Counter CsvDataset RandomDataset TFRecordWriter from_list from_variant get_single_element get_structure "
        "make_batched_features_dataset make_csv_dataset parse_example_dataset to_variant",
    )
    + " "
    + _under("contrib.data", "Counter CsvDataset RandomDataset get_single_element make_batched_features_dataset make_csv_dataset"),
    "ferroflow.python.data.experimental.mixing": _under(
        "data.experimental",
        "Reducer assert_cardinality choose_from_datasets copy_to_device group_by_reducer rejection_resample sample_from_datasets unique",
    )
    + " "
    + _under("contrib.data", "Reducer choose_from_datasets copy_to_device group_by_reducer rejection_resample sample_from_datasets unique"),
    "ferroflow.python.data.experimental.optional": _under("data.experimental", "Optional get_next_as_optional")
    + " experimental.Optional=Optional "
    + _under("contrib.data", "Optional get_next_as_optional"),
    "ferroflow.python.data.experimental.saving": _under(
        "data.experimental", "CheckpointInputPipelineHook make_saveable_from_iterator"
    )
    + " "
    + _under("contrib.data", "CheckpointInputPipelineHook make_saveable_from_iterator"),
    "ferroflow.python.ops.lookup_ops": (
        "tables_initializer initialize_all_tables initializers.tables_initializer=tables_initializer "
        + _under(
            "lookup",
            "KeyValueTensorInitializer StaticHashTable StaticVocabularyTable TextFileIndex TextFileInitializer",
        )
        + " "
        + _under("lookup.experimental", "DenseHashTable MutableHashTable")
        + " contrib.lookup.MutableDenseHashTable=DenseHashTable "
        + _under(
            "contrib.lookup",
            "HashTable IdTableWithHashBuckets KeyValueTensorInitializer LookupInterface MutableHashTable TextFileIdTableInitializer "
            "TextFileIndex TextFileInitializer TextFileStringTableInitializer index_table_from_file index_table_from_tensor "
            "index_to_string_table_from_file index_to_string_table_from_tensor",
        )
    ),
    "ferroflow.python.saved_model.builder_impl": "saved_model.Builder=SavedModelBuilder saved_model.builder.SavedModelBuilder=SavedModelBuilder",
    "ferroflow.python.saved_model.loader_impl": (
        "saved_model.load=load saved_model.loader.load=load saved_model.contains_saved_model=contains_saved_model "
        "saved_model.maybe_saved_model_directory=maybe_saved_model_directory "
        "saved_model.loader.maybe_saved_model_directory=maybe_saved_model_directory"
    ),
    "ferroflow.python.saved_model.simple_save": "saved_model.simple_save=simple_save",
    "ferroflow.python.saved_model.constants": "saved_model.constants=* "
    + _under(
        "saved_model",
        "ASSETS_DIRECTORY ASSETS_KEY DEBUG_DIRECTORY LEGACY_INIT_OP_KEY MAIN_OP_KEY SAVED_MODEL_FILENAME_PB "
        "SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME",
    ),
    "ferroflow.python.saved_model.tag_constants": "saved_model.tag_constants=* "
    + _under("saved_model", "GPU SERVING TPU TRAINING"),
    "ferroflow.python.saved_model.signature_constants": "saved_model.signature_constants=* "
    + _under(
        "saved_model",
        "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES "
        "DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS "
        "REGRESS_METHOD_NAME REGRESS_OUTPUTS",
    ),
    "ferroflow.python.util.nest": _under(
        "nest", "assert_same_structure flatten is_nested map_structure pack_sequence_as"
    )
    + " contrib.framework.nest=*",
    "ferroflow.python.saved_model.main_op": "saved_model.main_op=*",
    "ferroflow.python.saved_model.signature_def_utils": (
        _under(
            "saved_model",
            "build_tensor_info get_tensor_from_tensor_info build_signature_def predict_signature_def regression_signature_def "
            "classification_signature_def is_valid_signature",
        )
        + " saved_model.signature_def_utils=* saved_model.utils.build_tensor_info=build_tensor_info "
        "saved_model.utils.get_tensor_from_tensor_info=get_tensor_from_tensor_info"
    ),
    "ferroflow.python.training.warm_starting_util": (
        "train.warm_start=warm_start train.VocabInfo=VocabInfo estimator.VocabInfo=VocabInfo estimator.WarmStartSettings=WarmStartSettings"
    ),
    "ferroflow.python.estimator.estimator": "estimator.Estimator=Estimator",
    "ferroflow.python.estimator.run_config": "estimator.RunConfig=RunConfig",
    "ferroflow.python.estimator.model_fn": "estimator.EstimatorSpec=EstimatorSpec estimator.ModeKeys=ModeKeys",
    "ferroflow.python.estimator.training": "estimator.TrainSpec=TrainSpec estimator.EvalSpec=EvalSpec estimator.train_and_evaluate=train_and_evaluate",
    "ferroflow.python.estimator.exporter": _under("estimator", "Exporter FinalExporter LatestExporter BestExporter"),
    "ferroflow.python.estimator.export_output": _under(
        "estimator.export", "ExportOutput PredictOutput RegressionOutput ClassificationOutput"
    ),
    "ferroflow.python.estimator.export": _under(
        "estimator.export",
        "ServingInputReceiver TensorServingInputReceiver build_raw_serving_input_receiver_fn build_parsing_serving_input_receiver_fn",
    ),
    "ferroflow.python.estimator.inputs": "estimator.inputs.numpy_input_fn=numpy_input_fn estimator.inputs.pandas_input_fn=pandas_input_fn",
    "ferroflow.python.estimator.canned": _under(
        "estimator",
        "LinearClassifier LinearRegressor DNNClassifier DNNRegressor DNNLinearCombinedClassifier DNNLinearCombinedRegressor "
        "BaselineClassifier BaselineRegressor",
    ),
    "ferroflow.python.feature_column.feature_column": _under(
        "feature_column",
        "numeric_column bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity "
        "categorical_column_with_vocabulary_list categorical_column_with_vocabulary_file weighted_categorical_column crossed_column "
        "indicator_column embedding_column shared_embedding_columns make_parse_example_spec input_layer linear_model",
    ),
    "ferroflow.python.ops.parsing_ops": (
        "FixedLenFeature FixedLenSequenceFeature VarLenFeature SparseFeature parse_example parse_single_example decode_json_example "
        + _under("io", "FixedLenFeature FixedLenSequenceFeature VarLenFeature SparseFeature parse_example parse_single_example decode_json_example")
    ),
    "ferroflow.python.ops.io_ops": (
        "ReaderBase WholeFileReader TextLineReader FixedLengthRecordReader TFRecordReader IdentityReader write_file "
        "io.write_file=write_file"
    ),
    "ferroflow.python.training.input": _under(
        "train",
        "match_filenames_once limit_epochs input_producer string_input_producer range_input_producer slice_input_producer batch "
        "maybe_batch batch_join maybe_batch_join shuffle_batch maybe_shuffle_batch shuffle_batch_join maybe_shuffle_batch_join",
    )
    + " io.match_filenames_once=match_filenames_once",
    "ferroflow.python.contrib.mnist": (
        "examples.tutorials.mnist.input_data=* contrib.learn.datasets.mnist=* contrib.learn.python.learn.datasets.mnist=*"
    ),
    "ferroflow.python.contrib.mnist_tutorial": "examples.tutorials.mnist.mnist=*",
    "ferroflow.python.training.hparam": "contrib.training.HParams=HParams",
}
