"""Further names of functions and classes that other tables list."""

NAMES = {
    "ferroflow.python.contrib.tpu": (
        "estimator.tpu.TPUEstimator=TPUEstimator "
        "estimator.tpu.TPUEstimatorSpec=TPUEstimatorSpec "
        "estimator.tpu.TPUConfig=TPUConfig "
        "estimator.tpu.RunConfig=RunConfig "
        "estimator.tpu.InputPipelineConfig=InputPipelineConfig "
        "tpu.CrossShardOptimizer=CrossShardOptimizer"
    ),
    "ferroflow.python.data.experimental.transformations": (
        "contrib.data.prefetch_to_device=prefetch_to_device"
    ),
    "ferroflow.python.data.ops.dataset_ops": (
        "contrib.data.Dataset=Dataset"
    ),
    "ferroflow.python.data.ops.iterator_ops": (
        "contrib.data.Iterator=Iterator"
    ),
    "ferroflow.python.data.ops.readers": (
        "contrib.data.TFRecordDataset=TFRecordDataset "
        "contrib.data.TextLineDataset=TextLineDataset "
        "contrib.data.FixedLengthRecordDataset=FixedLengthRecordDataset"
    ),
    "ferroflow.python.estimator.model_fn": (
        "contrib.learn.ModeKeys=ModeKeys"
    ),
    "ferroflow.python.estimator.run_config": (
        "contrib.learn.RunConfig=RunConfig"
    ),
    "ferroflow.python.feature_column.feature_column": (
        "contrib.layers.bucketized_column=bucketized_column "
        "contrib.layers.crossed_column=crossed_column "
        "contrib.layers.one_hot_column=indicator_column "
        "contrib.layers.input_from_feature_columns=input_layer"
    ),
    "ferroflow.python.framework.tensor_util": (
        "contrib.framework.is_tensor=is_tensor"
    ),
    "ferroflow.python.layers.contrib_layers": (
        "contrib.slim.variance_scaling_initializer=variance_scaling_initializer"
    ),
    "ferroflow.python.ops.counting_ops": (
        "contrib.framework.sort=sort "
        "contrib.framework.argsort=argsort"
    ),
    "ferroflow.python.ops.embedding_ops": (
        "contrib.layers.safe_embedding_lookup_sparse=safe_embedding_lookup_sparse"
    ),
    "ferroflow.python.ops.nn_ops": (
        "contrib.layers.bias_add=bias_add"
    ),
    "ferroflow.python.ops.op_exports": (
        "contrib.framework.broadcast_to=broadcast_to"
    ),
    "ferroflow.python.ops.random_ops": (
        "contrib.stateless.stateless_random_uniform=stateless_random_uniform "
        "contrib.stateless.stateless_random_normal=stateless_random_normal "
        "contrib.stateless.stateless_truncated_normal=stateless_truncated_normal "
        "contrib.stateless.stateless_multinomial=stateless_multinomial"
    ),
    "ferroflow.python.ops.signal_ops": (
        "contrib.signal.stft=stft "
        "contrib.signal.inverse_stft=inverse_stft "
        "contrib.signal.frame=frame "
        "contrib.signal.hann_window=hann_window "
        "contrib.signal.hamming_window=hamming_window "
        "contrib.signal.overlap_and_add=overlap_and_add "
        "contrib.signal.linear_to_mel_weight_matrix=linear_to_mel_weight_matrix "
        "contrib.signal.mfccs_from_log_mel_spectrograms=mfccs_from_log_mel_spectrograms"
    ),
    "ferroflow.python.training.basic_session_run_hooks": (
        "contrib.hooks.ProfilerHook=ProfilerHook"
    ),
    "ferroflow.python.training.checkpoint_utils": (
        "contrib.framework.list_variables=list_variables "
        "contrib.framework.load_variable=load_variable "
        "contrib.framework.load_checkpoint=load_checkpoint "
        "contrib.framework.init_from_checkpoint=init_from_checkpoint "
        "contrib.training.checkpoints_iterator=checkpoints_iterator"
    ),
}
