"""Names of ops, layers, losses, metrics and optimizers.

`python tools/api_names.py` writes this file from the marks `@export` in the sources.
"""

NAMES = {
    "ferroflow.python.contrib.legacy_seq2seq": (
        "contrib.legacy_seq2seq.basic_rnn_seq2seq=basic_rnn_seq2seq "
        "contrib.legacy_seq2seq.embedding_rnn_decoder=embedding_rnn_decoder "
        "contrib.legacy_seq2seq.rnn_decoder=rnn_decoder "
        "contrib.legacy_seq2seq.sequence_loss=sequence_loss "
        "contrib.legacy_seq2seq.sequence_loss_by_example=sequence_loss_by_example"
    ),
    "ferroflow.python.contrib.old_arguments": (
        "contrib.losses.absolute_difference=absolute_difference "
        "contrib.losses.add_loss=add_loss "
        "contrib.losses.compute_weighted_loss=compute_weighted_loss "
        "contrib.losses.get_losses=get_losses "
        "contrib.losses.get_regularization_losses=get_regularization_losses "
        "contrib.losses.get_total_loss=get_total_loss contrib.losses.hinge_loss=hinge_loss "
        "contrib.losses.log_loss=log_loss "
        "contrib.losses.mean_squared_error=mean_squared_error "
        "contrib.losses.sigmoid_cross_entropy=sigmoid_cross_entropy "
        "contrib.losses.softmax_cross_entropy=softmax_cross_entropy "
        "contrib.losses.sparse_softmax_cross_entropy=sparse_softmax_cross_entropy "
        "contrib.metrics.accuracy=accuracy "
        "contrib.metrics.aggregate_metric_map=aggregate_metric_map "
        "contrib.metrics.aggregate_metrics=aggregate_metrics "
        "contrib.metrics.streaming_accuracy=streaming_accuracy "
        "contrib.metrics.streaming_auc=streaming_auc "
        "contrib.metrics.streaming_mean=streaming_mean "
        "contrib.metrics.streaming_mean_absolute_error=streaming_mean_absolute_error "
        "contrib.metrics.streaming_mean_iou=streaming_mean_iou "
        "contrib.metrics.streaming_mean_squared_error=streaming_mean_squared_error "
        "contrib.metrics.streaming_mean_tensor=streaming_mean_tensor "
        "contrib.metrics.streaming_precision=streaming_precision "
        "contrib.metrics.streaming_recall=streaming_recall "
        "contrib.metrics.streaming_root_mean_squared_error=streaming_root_mean_squared_error "
        "contrib.slim.losses.absolute_difference=absolute_difference "
        "contrib.slim.losses.add_loss=add_loss "
        "contrib.slim.losses.compute_weighted_loss=compute_weighted_loss "
        "contrib.slim.losses.get_losses=get_losses "
        "contrib.slim.losses.get_regularization_losses=get_regularization_losses "
        "contrib.slim.losses.get_total_loss=get_total_loss "
        "contrib.slim.losses.hinge_loss=hinge_loss contrib.slim.losses.log_loss=log_loss "
        "contrib.slim.losses.mean_squared_error=mean_squared_error "
        "contrib.slim.losses.sigmoid_cross_entropy=sigmoid_cross_entropy "
        "contrib.slim.losses.softmax_cross_entropy=softmax_cross_entropy "
        "contrib.slim.losses.sparse_softmax_cross_entropy=sparse_softmax_cross_entropy "
        "contrib.slim.metrics.aggregate_metric_map=aggregate_metric_map "
        "contrib.slim.metrics.aggregate_metrics=aggregate_metrics "
        "contrib.slim.metrics.streaming_accuracy=streaming_accuracy"
    ),
    "ferroflow.python.contrib.optimizers": (
        "contrib.opt.AdaMaxOptimizer=AdaMaxOptimizer "
        "contrib.opt.AdamWOptimizer=AdamWOptimizer "
        "contrib.opt.DropStaleGradientOptimizer=DropStaleGradientOptimizer "
        "contrib.opt.LARSOptimizer=LARSOptimizer "
        "contrib.opt.LazyAdamOptimizer=LazyAdamOptimizer "
        "contrib.opt.MomentumWOptimizer=MomentumWOptimizer "
        "contrib.opt.MovingAverageOptimizer=MovingAverageOptimizer "
        "contrib.opt.NadamOptimizer=NadamOptimizer "
        "contrib.opt.extend_with_decoupled_weight_decay=extend_with_decoupled_weight_decay"
    ),
    "ferroflow.python.contrib.predictor": (
        "contrib.predictor.from_estimator=from_estimator "
        "contrib.predictor.from_saved_model=from_saved_model"
    ),
    "ferroflow.python.contrib.training": (
        "contrib.layers.optimize_loss=optimize_loss "
        "contrib.slim.learning.add_gradients_summaries=add_gradients_summaries "
        "contrib.slim.learning.clip_gradient_norms=clip_gradient_norms "
        "contrib.slim.learning.create_train_op=slim_create_train_op "
        "contrib.slim.learning.multiply_gradients=multiply_gradients "
        "contrib.slim.learning.train=slim_train contrib.slim.learning.train_step=train_step "
        "contrib.training.add_gradients_summaries=add_gradients_summaries "
        "contrib.training.clip_gradient_norms=clip_gradient_norms "
        "contrib.training.create_train_op=create_train_op "
        "contrib.training.multiply_gradients=multiply_gradients "
        "contrib.training.train=train"
    ),
    "ferroflow.python.contrib.variables": (
        "contrib.framework.add_model_variable=add_model_variable "
        "contrib.framework.assign_from_checkpoint_fn=assign_from_checkpoint_fn "
        "contrib.framework.assign_from_values_fn=assign_from_values_fn "
        "contrib.framework.get_local_variables=get_local_variables "
        "contrib.framework.get_model_variables=get_model_variables "
        "contrib.framework.get_trainable_variables=get_trainable_variables "
        "contrib.framework.get_unique_variable=get_unique_variable "
        "contrib.framework.get_variables=get_variables "
        "contrib.framework.get_variables_by_name=get_variables_by_name "
        "contrib.framework.get_variables_by_suffix=get_variables_by_suffix "
        "contrib.framework.get_variables_to_restore=get_variables_to_restore "
        "contrib.framework.local_variable=local_variable "
        "contrib.framework.model_variable=model_variable "
        "contrib.framework.variable=variable "
        "contrib.slim.add_model_variable=add_model_variable "
        "contrib.slim.assign_from_checkpoint_fn=assign_from_checkpoint_fn "
        "contrib.slim.assign_from_values_fn=assign_from_values_fn "
        "contrib.slim.get_local_variables=get_local_variables "
        "contrib.slim.get_model_variables=get_model_variables "
        "contrib.slim.get_trainable_variables=get_trainable_variables "
        "contrib.slim.get_unique_variable=get_unique_variable "
        "contrib.slim.get_variables=get_variables "
        "contrib.slim.get_variables_by_name=get_variables_by_name "
        "contrib.slim.get_variables_by_suffix=get_variables_by_suffix "
        "contrib.slim.get_variables_to_restore=get_variables_to_restore "
        "contrib.slim.local_variable=local_variable "
        "contrib.slim.model_variable=model_variable contrib.slim.variable=variable"
    ),
    "ferroflow.python.distribute.cluster_resolver": (
        "contrib.cluster_resolver.ClusterResolver=ClusterResolver "
        "contrib.cluster_resolver.SimpleClusterResolver=SimpleClusterResolver "
        "contrib.cluster_resolver.SlurmClusterResolver=SlurmClusterResolver "
        "contrib.cluster_resolver.TFConfigClusterResolver=TFConfigClusterResolver "
        "contrib.cluster_resolver.UnionClusterResolver=UnionResolver "
        "distribute.cluster_resolver.ClusterResolver=ClusterResolver "
        "distribute.cluster_resolver.SimpleClusterResolver=SimpleClusterResolver "
        "distribute.cluster_resolver.SlurmClusterResolver=SlurmClusterResolver "
        "distribute.cluster_resolver.TFConfigClusterResolver=TFConfigClusterResolver "
        "distribute.cluster_resolver.UnionResolver=UnionResolver"
    ),
    "ferroflow.python.estimator.early_stopping": (
        "contrib.estimator.InMemoryEvaluatorHook=InMemoryEvaluatorHook "
        "contrib.estimator.make_early_stopping_hook=make_early_stopping_hook "
        "contrib.estimator.make_stop_at_checkpoint_step_hook=make_stop_at_checkpoint_step_hook "
        "contrib.estimator.read_eval_metrics=read_eval_metrics "
        "contrib.estimator.stop_if_higher_hook=stop_if_higher_hook "
        "contrib.estimator.stop_if_lower_hook=stop_if_lower_hook "
        "contrib.estimator.stop_if_no_decrease_hook=stop_if_no_decrease_hook "
        "contrib.estimator.stop_if_no_increase_hook=stop_if_no_increase_hook "
        "estimator.experimental.InMemoryEvaluatorHook=InMemoryEvaluatorHook "
        "estimator.experimental.make_early_stopping_hook=make_early_stopping_hook "
        "estimator.experimental.make_stop_at_checkpoint_step_hook=make_stop_at_checkpoint_step_hook "
        "estimator.experimental.read_eval_metrics=read_eval_metrics "
        "estimator.experimental.stop_if_higher_hook=stop_if_higher_hook "
        "estimator.experimental.stop_if_lower_hook=stop_if_lower_hook "
        "estimator.experimental.stop_if_no_decrease_hook=stop_if_no_decrease_hook "
        "estimator.experimental.stop_if_no_increase_hook=stop_if_no_increase_hook"
    ),
    "ferroflow.python.estimator.with_heads": (
        "contrib.estimator.BaselineEstimator=BaselineEstimator "
        "contrib.estimator.DNNEstimator=DNNEstimator "
        "contrib.estimator.DNNLinearCombinedEstimator=DNNLinearCombinedEstimator "
        "contrib.estimator.LinearEstimator=LinearEstimator "
        "contrib.estimator.add_metrics=add_metrics "
        "contrib.estimator.binary_classification_head=binary_classification_head "
        "contrib.estimator.clip_gradients_by_norm=clip_gradients_by_norm "
        "contrib.estimator.logistic_regression_head=logistic_regression_head "
        "contrib.estimator.multi_class_head=multi_class_head "
        "contrib.estimator.multi_head=multi_head "
        "contrib.estimator.multi_label_head=multi_label_head "
        "contrib.estimator.poisson_regression_head=poisson_regression_head "
        "contrib.estimator.regression_head=regression_head "
        "estimator.BaselineEstimator=BaselineEstimator "
        "estimator.BinaryClassHead=BinaryClassHead estimator.DNNEstimator=DNNEstimator "
        "estimator.DNNLinearCombinedEstimator=DNNLinearCombinedEstimator "
        "estimator.Head=Head estimator.LinearEstimator=LinearEstimator "
        "estimator.LogisticRegressionHead=LogisticRegressionHead "
        "estimator.MultiClassHead=MultiClassHead estimator.MultiHead=MultiHead "
        "estimator.MultiLabelHead=MultiLabelHead "
        "estimator.PoissonRegressionHead=PoissonRegressionHead "
        "estimator.RegressionHead=RegressionHead estimator.add_metrics=add_metrics "
        "estimator.classifier_parse_example_spec=classifier_parse_example_spec "
        "estimator.regressor_parse_example_spec=regressor_parse_example_spec"
    ),
    "ferroflow.python.framework.graph_util": (
        "graph_util.convert_variables_to_constants=convert_variables_to_constants "
        "graph_util.extract_sub_graph=extract_sub_graph "
        "graph_util.must_run_on_cpu=must_run_on_cpu "
        "graph_util.remove_training_nodes=remove_training_nodes "
        "graph_util.tensor_shape_from_node_def_name=tensor_shape_from_node_def_name"
    ),
    "ferroflow.python.layers.arg_scope": (
        "contrib.framework.add_arg_scope=add_arg_scope "
        "contrib.framework.arg_scope=arg_scope "
        "contrib.framework.arg_scoped_arguments=arg_scoped_arguments "
        "contrib.framework.current_arg_scope=current_arg_scope "
        "contrib.framework.has_arg_scope=has_arg_scope "
        "contrib.slim.add_arg_scope=add_arg_scope contrib.slim.arg_scope=arg_scope "
        "contrib.slim.arg_scoped_arguments=arg_scoped_arguments "
        "contrib.slim.current_arg_scope=current_arg_scope "
        "contrib.slim.has_arg_scope=has_arg_scope"
    ),
    "ferroflow.python.layers.base": (
        "layers.Layer=Layer"
    ),
    "ferroflow.python.layers.contrib_layers": (
        "contrib.layers.conv2d=conv2d contrib.layers.convolution2d=conv2d "
        "contrib.layers.flatten=flatten contrib.layers.fully_connected=fully_connected "
        "contrib.layers.l1_regularizer=l1_regularizer "
        "contrib.layers.l2_regularizer=l2_regularizer contrib.layers.max_pool2d=max_pool2d "
        "contrib.layers.one_hot_encoding=one_hot_encoding "
        "contrib.layers.variance_scaling_initializer=variance_scaling_initializer "
        "contrib.layers.xavier_initializer=xavier_initializer "
        "contrib.layers.xavier_initializer_conv2d=xavier_initializer "
        "contrib.slim.conv2d=conv2d contrib.slim.flatten=flatten "
        "contrib.slim.fully_connected=fully_connected "
        "contrib.slim.l1_regularizer=l1_regularizer "
        "contrib.slim.l2_regularizer=l2_regularizer contrib.slim.max_pool2d=max_pool2d "
        "contrib.slim.one_hot_encoding=one_hot_encoding "
        "contrib.slim.xavier_initializer=xavier_initializer "
        "contrib.slim.xavier_initializer_conv2d=xavier_initializer"
    ),
    "ferroflow.python.layers.contrib_more_layers": (
        "contrib.layers.apply_regularization=apply_regularization "
        "contrib.layers.avg_pool2d=avg_pool2d contrib.layers.batch_norm=batch_norm "
        "contrib.layers.conv2d_transpose=conv2d_transpose "
        "contrib.layers.convolution2d_transpose=conv2d_transpose "
        "contrib.layers.dropout=dropout contrib.layers.embed_sequence=embed_sequence "
        "contrib.layers.l1_l2_regularizer=l1_l2_regularizer "
        "contrib.layers.layer_norm=layer_norm contrib.layers.repeat=repeat "
        "contrib.layers.softmax=softmax contrib.layers.stack=stack "
        "contrib.layers.sum_regularizer=sum_regularizer contrib.layers.unit_norm=unit_norm "
        "contrib.seq2seq.sequence_loss=sequence_loss contrib.slim.avg_pool2d=avg_pool2d "
        "contrib.slim.batch_norm=batch_norm contrib.slim.conv2d_transpose=conv2d_transpose "
        "contrib.slim.dropout=dropout contrib.slim.layer_norm=layer_norm "
        "contrib.slim.repeat=repeat contrib.slim.softmax=softmax contrib.slim.stack=stack "
        "contrib.slim.unit_norm=unit_norm"
    ),
    "ferroflow.python.layers.convolutional": (
        "layers.Conv1D=Conv1D layers.Conv2D=Conv2D layers.Conv3D=Conv3D "
        "layers.conv1d=conv1d layers.conv2d=conv2d layers.conv3d=conv3d"
    ),
    "ferroflow.python.layers.core": (
        "layers.Dense=Dense layers.Dropout=Dropout layers.Flatten=Flatten "
        "layers.dense=dense layers.dropout=dropout layers.flatten=flatten"
    ),
    "ferroflow.python.layers.normalization": (
        "layers.BatchNormalization=BatchNormalization "
        "layers.batch_normalization=batch_normalization"
    ),
    "ferroflow.python.layers.pooling": (
        "layers.AveragePooling1D=AveragePooling1D layers.AveragePooling2D=AveragePooling2D "
        "layers.AveragePooling3D=AveragePooling3D layers.MaxPooling1D=MaxPooling1D "
        "layers.MaxPooling2D=MaxPooling2D layers.MaxPooling3D=MaxPooling3D "
        "layers.average_pooling1d=average_pooling1d "
        "layers.average_pooling2d=average_pooling2d "
        "layers.average_pooling3d=average_pooling3d layers.max_pooling1d=max_pooling1d "
        "layers.max_pooling2d=max_pooling2d layers.max_pooling3d=max_pooling3d"
    ),
    "ferroflow.python.layers.transposed": (
        "layers.Conv2DTranspose=Conv2DTranspose layers.Conv3DTranspose=Conv3DTranspose "
        "layers.SeparableConv1D=SeparableConv1D layers.SeparableConv2D=SeparableConv2D "
        "layers.conv2d_transpose=conv2d_transpose layers.conv3d_transpose=conv3d_transpose "
        "layers.separable_conv1d=separable_conv1d layers.separable_conv2d=separable_conv2d"
    ),
    "ferroflow.python.ops.array_ops": (
        "broadcast_dynamic_shape broadcast_static_shape concat ensure_shape expand_dims "
        "fill guarantee_const identity linalg.matrix_transpose=matrix_transpose "
        "linalg.transpose=matrix_transpose manip.reshape=reshape matrix_transpose meshgrid "
        "newaxis ones ones_like parallel_stack placeholder placeholder_with_default rank "
        "repeat reshape reverse_sequence shape shape_n size "
        "sparse.placeholder=sparse_placeholder sparse_placeholder split squeeze stack "
        "stop_gradient transpose unstack zeros zeros_like"
    ),
    "ferroflow.python.ops.batch_space_ops": (
        "batch_to_space depth_to_space extract_image_patches "
        "image.extract_image_patches=extract_image_patches "
        "image.extract_patches=extract_patches nn.depth_to_space=depth_to_space "
        "nn.space_to_batch=space_to_batch nn.space_to_depth=space_to_depth "
        "required_space_to_batch_paddings space_to_batch space_to_depth"
    ),
    "ferroflow.python.ops.check_ops": (
        "assert_equal assert_greater assert_greater_equal assert_integer assert_less "
        "assert_less_equal assert_negative assert_non_negative assert_non_positive "
        "assert_none_equal assert_positive assert_rank assert_rank_at_least assert_rank_in "
        "assert_scalar assert_type debugging.assert_equal=assert_equal "
        "debugging.assert_greater=assert_greater "
        "debugging.assert_greater_equal=assert_greater_equal "
        "debugging.assert_integer=assert_integer debugging.assert_less=assert_less "
        "debugging.assert_less_equal=assert_less_equal "
        "debugging.assert_negative=assert_negative "
        "debugging.assert_non_negative=assert_non_negative "
        "debugging.assert_non_positive=assert_non_positive "
        "debugging.assert_none_equal=assert_none_equal "
        "debugging.assert_positive=assert_positive debugging.assert_rank=assert_rank "
        "debugging.assert_rank_at_least=assert_rank_at_least "
        "debugging.assert_rank_in=assert_rank_in debugging.assert_scalar=assert_scalar "
        "debugging.assert_type=assert_type debugging.is_numeric_tensor=is_numeric_tensor "
        "is_numeric_tensor"
    ),
    "ferroflow.python.ops.clip_ops": (
        "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm "
        "linalg.global_norm=global_norm"
    ),
    "ferroflow.python.ops.cond": (
        "case cond switch_case"
    ),
    "ferroflow.python.ops.contrib_rnn_cells": (
        "contrib.rnn.AttentionCellWrapper=AttentionCellWrapper "
        "contrib.rnn.CoupledInputForgetGateLSTMCell=CoupledInputForgetGateLSTMCell "
        "contrib.rnn.EmbeddingWrapper=EmbeddingWrapper "
        "contrib.rnn.GRUBlockCell=GRUBlockCell contrib.rnn.GRUBlockCellV2=GRUBlockCell "
        "contrib.rnn.InputProjectionWrapper=InputProjectionWrapper "
        "contrib.rnn.LSTMBlockCell=LSTMBlockCell "
        "contrib.rnn.LSTMBlockFusedCell=LSTMBlockFusedCell "
        "contrib.rnn.LayerNormBasicLSTMCell=LayerNormBasicLSTMCell "
        "contrib.rnn.OutputProjectionWrapper=OutputProjectionWrapper "
        "contrib.rnn.TimeReversedFusedRNN=TimeReversedFusedRNN "
        "contrib.rnn.UGRNNCell=UGRNNCell "
        "contrib.rnn.stack_bidirectional_dynamic_rnn=stack_bidirectional_dynamic_rnn "
        "contrib.rnn.stack_bidirectional_rnn=stack_bidirectional_rnn"
    ),
    "ferroflow.python.ops.control_flow_ops": (
        "Assert debugging.Assert=Assert group no_op tuple=tuple_of"
    ),
    "ferroflow.python.ops.convolution_ops": (
        "nn.atrous_conv2d=atrous_conv2d nn.conv1d=conv1d nn.conv2d=conv2d "
        "nn.conv2d_backprop_filter=conv2d_backprop_filter "
        "nn.conv2d_backprop_input=conv2d_backprop_input "
        "nn.conv2d_transpose=conv2d_transpose nn.conv3d=conv3d "
        "nn.conv3d_transpose=conv3d_transpose nn.convolution=convolution "
        "nn.depthwise_conv2d=depthwise_conv2d "
        "nn.depthwise_conv2d_native=depthwise_conv2d_native "
        "nn.separable_conv2d=separable_conv2d"
    ),
    "ferroflow.python.ops.counting_ops": (
        "argsort bincount confusion_matrix einsum histogram_fixed_width "
        "linalg.einsum=einsum manip.roll=roll math.bincount=bincount "
        "math.confusion_matrix=confusion_matrix roll sort tensor_scatter_nd_update "
        "tensor_scatter_update=tensor_scatter_nd_update"
    ),
    "ferroflow.python.ops.crf": (
        "contrib.crf.crf_binary_score=crf_binary_score contrib.crf.crf_decode=crf_decode "
        "contrib.crf.crf_log_likelihood=crf_log_likelihood "
        "contrib.crf.crf_log_norm=crf_log_norm "
        "contrib.crf.crf_multitag_sequence_score=crf_multitag_sequence_score "
        "contrib.crf.crf_sequence_score=crf_sequence_score "
        "contrib.crf.crf_unary_score=crf_unary_score "
        "contrib.crf.viterbi_decode=viterbi_decode"
    ),
    "ferroflow.python.ops.critical_section": (
        "CriticalSection"
    ),
    "ferroflow.python.ops.cross_entropy_ops": (
        "nn.log_poisson_loss=log_poisson_loss "
        "nn.sigmoid_cross_entropy_with_logits=sigmoid_cross_entropy_with_logits "
        "nn.softmax_cross_entropy_with_logits=softmax_cross_entropy_with_logits "
        "nn.softmax_cross_entropy_with_logits_v2=softmax_cross_entropy_with_logits_v2 "
        "nn.sparse_softmax_cross_entropy_with_logits=sparse_softmax_cross_entropy_with_logits "
        "nn.weighted_cross_entropy_with_logits=weighted_cross_entropy_with_logits"
    ),
    "ferroflow.python.ops.ctc_ops": (
        "nn.ctc_beam_search_decoder=ctc_beam_search_decoder "
        "nn.ctc_greedy_decoder=ctc_greedy_decoder nn.ctc_loss=ctc_loss"
    ),
    "ferroflow.python.ops.custom_gradient": (
        "custom_gradient grad_pass_through"
    ),
    "ferroflow.python.ops.diag_ops": (
        "diag_part=tensor_diag_part linalg.diag=matrix_diag "
        "linalg.diag_part=matrix_diag_part linalg.set_diag=matrix_set_diag "
        "linalg.tensor_diag_part=tensor_diag_part matrix_diag matrix_diag_part "
        "matrix_set_diag"
    ),
    "ferroflow.python.ops.distributions.discrete": (
        "contrib.distributions.Bernoulli=Bernoulli "
        "contrib.distributions.Categorical=Categorical "
        "contrib.distributions.Multinomial=Multinomial distributions.Bernoulli=Bernoulli "
        "distributions.Categorical=Categorical distributions.Multinomial=Multinomial"
    ),
    "ferroflow.python.ops.distributions.distribution": (
        "contrib.distributions.Distribution=Distribution "
        "contrib.distributions.FULLY_REPARAMETERIZED=FULLY_REPARAMETERIZED "
        "contrib.distributions.NOT_REPARAMETERIZED=NOT_REPARAMETERIZED "
        "contrib.distributions.ReparameterizationType=ReparameterizationType "
        "distributions.Distribution=Distribution "
        "distributions.FULLY_REPARAMETERIZED=FULLY_REPARAMETERIZED "
        "distributions.NOT_REPARAMETERIZED=NOT_REPARAMETERIZED "
        "distributions.ReparameterizationType=ReparameterizationType"
    ),
    "ferroflow.python.ops.distributions.kullback_leibler": (
        "contrib.distributions.RegisterKL=RegisterKL "
        "contrib.distributions.kl_divergence=kl_divergence "
        "distributions.RegisterKL=RegisterKL distributions.kl_divergence=kl_divergence"
    ),
    "ferroflow.python.ops.distributions.normal": (
        "contrib.distributions.Laplace=Laplace "
        "contrib.distributions.MultivariateNormalDiag=MultivariateNormalDiag "
        "contrib.distributions.Normal=Normal contrib.distributions.StudentT=StudentT "
        "contrib.distributions.Uniform=Uniform distributions.Laplace=Laplace "
        "distributions.Normal=Normal distributions.StudentT=StudentT "
        "distributions.Uniform=Uniform"
    ),
    "ferroflow.python.ops.distributions.positive": (
        "contrib.distributions.Beta=Beta contrib.distributions.Dirichlet=Dirichlet "
        "contrib.distributions.Exponential=Exponential contrib.distributions.Gamma=Gamma "
        "distributions.Beta=Beta distributions.Dirichlet=Dirichlet "
        "distributions.Exponential=Exponential distributions.Gamma=Gamma"
    ),
    "ferroflow.python.ops.embedding_ops": (
        "nn.embedding_lookup=embedding_lookup "
        "nn.embedding_lookup_sparse=embedding_lookup_sparse "
        "nn.safe_embedding_lookup_sparse=safe_embedding_lookup_sparse"
    ),
    "ferroflow.python.ops.gather_ops": (
        "batch_gather boolean_mask gather gather_nd manip.gather_nd=gather_nd searchsorted "
        "setdiff1d sparse.mask=sparse_mask sparse_mask unique unique_with_counts where "
        "where_v2"
    ),
    "ferroflow.python.ops.gradients_impl": (
        "AggregationMethod UnconnectedGradients gradients hessians"
    ),
    "ferroflow.python.ops.image_color_ops": (
        "image.adjust_gamma=adjust_gamma image.adjust_hue=adjust_hue "
        "image.adjust_jpeg_quality=adjust_jpeg_quality "
        "image.adjust_saturation=adjust_saturation image.decode_image=decode_image "
        "image.draw_bounding_boxes=draw_bounding_boxes image.encode_png=encode_png "
        "image.image_gradients=image_gradients image.is_jpeg=is_jpeg "
        "image.random_hue=random_hue image.random_jpeg_quality=random_jpeg_quality "
        "image.random_saturation=random_saturation image.rgb_to_yiq=rgb_to_yiq "
        "image.rgb_to_yuv=rgb_to_yuv "
        "image.sample_distorted_bounding_box=sample_distorted_bounding_box "
        "image.sobel_edges=sobel_edges image.yiq_to_rgb=yiq_to_rgb "
        "image.yuv_to_rgb=yuv_to_rgb io.decode_image=decode_image io.encode_png=encode_png "
        "io.is_jpeg=is_jpeg"
    ),
    "ferroflow.python.ops.image_ops": (
        "image.ResizeMethod=ResizeMethod image.adjust_brightness=adjust_brightness "
        "image.adjust_contrast=adjust_contrast "
        "image.convert_image_dtype=convert_image_dtype "
        "image.crop_and_resize=crop_and_resize "
        "image.crop_to_bounding_box=crop_to_bounding_box "
        "image.flip_left_right=flip_left_right image.flip_up_down=flip_up_down "
        "image.grayscale_to_rgb=grayscale_to_rgb "
        "image.non_max_suppression=non_max_suppression "
        "image.per_image_standardization=per_image_standardization "
        "image.random_brightness=random_brightness image.random_contrast=random_contrast "
        "image.random_flip_left_right=random_flip_left_right "
        "image.random_flip_up_down=random_flip_up_down image.resize=resize_images "
        "image.resize_bicubic=resize_bicubic image.resize_bilinear=resize_bilinear "
        "image.resize_images=resize_images "
        "image.resize_nearest_neighbor=resize_nearest_neighbor "
        "image.rgb_to_grayscale=rgb_to_grayscale image.total_variation=total_variation"
    ),
    "ferroflow.python.ops.image_shape_ops": (
        "image.central_crop=central_crop "
        "image.combined_non_max_suppression=combined_non_max_suppression "
        "image.extract_glimpse=extract_glimpse "
        "image.non_max_suppression_overlaps=non_max_suppression_overlaps "
        "image.non_max_suppression_padded=non_max_suppression_padded "
        "image.non_max_suppression_with_scores=non_max_suppression_with_scores "
        "image.pad_to_bounding_box=pad_to_bounding_box image.psnr=psnr "
        "image.resize_image_with_crop_or_pad=resize_image_with_crop_or_pad "
        "image.resize_image_with_pad=resize_image_with_pad "
        "image.resize_with_crop_or_pad=resize_image_with_crop_or_pad image.rot90=rot90 "
        "image.ssim=ssim image.ssim_multiscale=ssim_multiscale "
        "image.transpose=transpose_image image.transpose_image=transpose_image"
    ),
    "ferroflow.python.ops.init_ops": (
        "constant_initializer=Constant glorot_normal_initializer=GlorotNormal "
        "glorot_uniform_initializer=GlorotUniform initializers.constant=Constant "
        "initializers.glorot_normal=GlorotNormal initializers.glorot_uniform=GlorotUniform "
        "initializers.he_normal=he_normal initializers.he_uniform=he_uniform "
        "initializers.identity=Identity initializers.lecun_normal=lecun_normal "
        "initializers.lecun_uniform=lecun_uniform initializers.ones=Ones "
        "initializers.orthogonal=Orthogonal initializers.random_normal=RandomNormal "
        "initializers.random_uniform=RandomUniform "
        "initializers.truncated_normal=TruncatedNormal "
        "initializers.uniform_unit_scaling=UniformUnitScaling "
        "initializers.variance_scaling=VarianceScaling initializers.zeros=Zeros "
        "ones_initializer=Ones orthogonal_initializer=Orthogonal "
        "random_normal_initializer=RandomNormal random_uniform_initializer=RandomUniform "
        "truncated_normal_initializer=TruncatedNormal "
        "uniform_unit_scaling_initializer=UniformUnitScaling "
        "variance_scaling_initializer=VarianceScaling zeros_initializer=Zeros"
    ),
    "ferroflow.python.ops.linalg_more_ops": (
        "linalg.adjoint=adjoint linalg.expm=matrix_exponential "
        "linalg.lu_matrix_inverse=lu_matrix_inverse linalg.lu_reconstruct=lu_reconstruct "
        "linalg.lu_solve=lu_solve linalg.matrix_rank=matrix_rank linalg.normalize=normalize "
        "linalg.pinv=pinv linalg.tridiagonal_matmul=tridiagonal_matmul "
        "linalg.tridiagonal_solve=tridiagonal_solve"
    ),
    "ferroflow.python.ops.linalg_ops": (
        "cholesky_solve eye linalg.cholesky_solve=cholesky_solve "
        "linalg.eigh=self_adjoint_eig linalg.eigvalsh=self_adjoint_eigvals linalg.eye=eye "
        "linalg.logdet=logdet linalg.lstsq=matrix_solve_ls linalg.norm=norm "
        "linalg.slogdet=slogdet linalg.svd=svd "
        "linalg.triangular_solve=matrix_triangular_solve matrix_solve_ls "
        "matrix_triangular_solve norm self_adjoint_eig self_adjoint_eigvals svd"
    ),
    "ferroflow.python.ops.logging_ops": (
        "Print print=print_v2 strings.format=string_format"
    ),
    "ferroflow.python.ops.losses": (
        "losses.Reduction=Reduction losses.absolute_difference=absolute_difference "
        "losses.add_loss=add_loss losses.compute_weighted_loss=compute_weighted_loss "
        "losses.cosine_distance=cosine_distance losses.get_losses=get_losses "
        "losses.get_regularization_loss=get_regularization_loss "
        "losses.get_regularization_losses=get_regularization_losses "
        "losses.get_total_loss=get_total_loss losses.hinge_loss=hinge_loss "
        "losses.huber_loss=huber_loss losses.log_loss=log_loss "
        "losses.mean_pairwise_squared_error=mean_pairwise_squared_error "
        "losses.mean_squared_error=mean_squared_error "
        "losses.sigmoid_cross_entropy=sigmoid_cross_entropy "
        "losses.softmax_cross_entropy=softmax_cross_entropy "
        "losses.sparse_softmax_cross_entropy=sparse_softmax_cross_entropy"
    ),
    "ferroflow.python.ops.map_fn": (
        "foldl foldr map_fn scan"
    ),
    "ferroflow.python.ops.masking_ops": (
        "edit_distance one_hot pad sequence_mask"
    ),
    "ferroflow.python.ops.math_ops": (
        "abs accumulate_n acos add add_n angle cast ceil complex conj div div_no_nan divide "
        "dtypes.cast=cast dtypes.complex=complex dtypes.saturate_cast=saturate_cast equal "
        "exp floor floordiv floormod imag lin_space=linspace linspace log_sigmoid "
        "logical_xor math.abs=abs math.accumulate_n=accumulate_n math.acos=acos "
        "math.add=add math.add_n=add_n math.angle=angle math.ceil=ceil math.conj=conj "
        "math.divide=divide math.divide_no_nan=div_no_nan math.equal=equal "
        "math.erfcinv=erfcinv math.erfinv=erfinv math.exp=exp math.floor=floor "
        "math.floordiv=floordiv math.floormod=floormod math.imag=imag "
        "math.log_sigmoid=log_sigmoid math.logical_xor=logical_xor math.mod=floormod "
        "math.multiply=multiply math.multiply_no_nan=multiply_no_nan math.ndtri=ndtri "
        "math.negative=negative math.not_equal=not_equal math.polyval=polyval math.pow=pow "
        "math.real=real math.reciprocal_no_nan=reciprocal_no_nan math.round=round "
        "math.rsqrt=rsqrt math.scalar_mul=scalar_mul math.sigmoid=sigmoid math.sign=sign "
        "math.softplus=softplus math.sqrt=sqrt math.square=square math.subtract=subtract "
        "math.tanh=tanh math.truediv=truediv "
        "math.unsorted_segment_mean=unsorted_segment_mean "
        "math.unsorted_segment_sqrt_n=unsorted_segment_sqrt_n math.xdivy=xdivy "
        "math.xlog1py=xlog1py mod=floormod multiply neg=negative negative "
        "nn.sigmoid=sigmoid nn.softplus=softplus nn.tanh=tanh not_equal pow range real "
        "round rsqrt saturate_cast scalar_mul sigmoid sign "
        "sparse.segment_mean=sparse_segment_mean "
        "sparse.segment_sqrt_n=sparse_segment_sqrt_n sparse.segment_sum=sparse_segment_sum "
        "sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum sqrt square subtract "
        "tanh to_bfloat16 to_complex128 to_complex64 to_double to_float to_int32 to_int64 "
        "truediv unsorted_segment_mean unsorted_segment_sqrt_n"
    ),
    "ferroflow.python.ops.matmul_ops": (
        "linalg.matmul=matmul linalg.matvec=matvec linalg.tensordot=tensordot "
        "linalg.trace=trace matmul tensordot trace"
    ),
    "ferroflow.python.ops.metrics": (
        "metrics.accuracy=accuracy metrics.auc=auc metrics.false_negatives=false_negatives "
        "metrics.false_positives=false_positives metrics.mean=mean "
        "metrics.mean_absolute_error=mean_absolute_error "
        "metrics.mean_relative_error=mean_relative_error "
        "metrics.mean_squared_error=mean_squared_error metrics.mean_tensor=mean_tensor "
        "metrics.percentage_below=percentage_below metrics.precision=precision "
        "metrics.precision_at_thresholds=precision_at_thresholds metrics.recall=recall "
        "metrics.recall_at_thresholds=recall_at_thresholds "
        "metrics.root_mean_squared_error=root_mean_squared_error "
        "metrics.true_negatives=true_negatives metrics.true_positives=true_positives"
    ),
    "ferroflow.python.ops.nn_more_ops": (
        "dequantize fingerprint io.serialize_tensor=serialize_tensor "
        "math.bessel_i0=bessel_i0 math.bessel_i0e=bessel_i0e math.bessel_i1=bessel_i1 "
        "math.bessel_i1e=bessel_i1e math.special.bessel_i0=bessel_i0 "
        "math.special.bessel_i0e=bessel_i0e math.special.bessel_i1=bessel_i1 "
        "math.special.bessel_i1e=bessel_i1e "
        "nn.atrous_conv2d_transpose=atrous_conv2d_transpose nn.avg_pool_v2=avg_pool_v2 "
        "nn.compute_average_loss=compute_average_loss nn.conv1d_transpose=conv1d_transpose "
        "nn.conv_transpose=conv_transpose "
        "nn.depthwise_conv2d_backprop_filter=depthwise_conv2d_backprop_filter "
        "nn.depthwise_conv2d_backprop_input=depthwise_conv2d_backprop_input "
        "nn.depthwise_conv2d_native_backprop_filter=depthwise_conv2d_backprop_filter "
        "nn.depthwise_conv2d_native_backprop_input=depthwise_conv2d_backprop_input "
        "nn.dilation2d=dilation2d nn.erosion2d=erosion2d "
        "nn.fractional_avg_pool=fractional_avg_pool "
        "nn.fractional_max_pool=fractional_max_pool nn.max_pool_v2=max_pool_v2 "
        "nn.scale_regularization_loss=scale_regularization_loss serialize_tensor"
    ),
    "ferroflow.python.ops.nn_ops": (
        "linalg.l2_normalize=l2_normalize math.in_top_k=in_top_k "
        "math.l2_normalize=l2_normalize math.log_softmax=log_softmax math.softmax=softmax "
        "math.top_k=top_k math.zero_fraction=zero_fraction nn.bias_add=bias_add "
        "nn.crelu=crelu nn.dropout=dropout nn.in_top_k=in_top_k "
        "nn.l2_normalize=l2_normalize nn.leaky_relu=leaky_relu nn.log_softmax=log_softmax "
        "nn.relu6=relu6 nn.relu_layer=relu_layer nn.silu=swish nn.softmax=softmax "
        "nn.swish=swish nn.top_k=top_k nn.xw_plus_b=xw_plus_b "
        "nn.zero_fraction=zero_fraction"
    ),
    "ferroflow.python.ops.normalization_ops": (
        "nn.batch_norm_with_global_normalization=batch_norm_with_global_normalization "
        "nn.batch_normalization=batch_normalization nn.fused_batch_norm=fused_batch_norm "
        "nn.moments=moments nn.normalize_moments=normalize_moments "
        "nn.sufficient_statistics=sufficient_statistics "
        "nn.weighted_moments=weighted_moments"
    ),
    "ferroflow.python.ops.numeric_checks": (
        "add_check_numerics_ops assert_near assert_proper_iterable assert_same_float_dtype "
        "debugging.assert_all_finite=verify_tensor_all_finite "
        "debugging.assert_near=assert_near "
        "debugging.assert_proper_iterable=assert_proper_iterable "
        "debugging.assert_same_float_dtype=assert_same_float_dtype "
        "debugging.is_non_decreasing=is_non_decreasing "
        "debugging.is_strictly_increasing=is_strictly_increasing histogram_fixed_width_bins "
        "is_non_decreasing is_strictly_increasing lbeta "
        "math.is_non_decreasing=is_non_decreasing "
        "math.is_strictly_increasing=is_strictly_increasing math.lbeta=lbeta "
        "verify_tensor_all_finite"
    ),
    "ferroflow.python.ops.op_exports": (
        "acosh=acosh approx_top_k=approx_top_k arg_max=arg_max arg_min=arg_min "
        "as_string=as_string asin=asin asinh=asinh atan2=atan2 atan=atan atanh=atanh "
        "audio.decode_wav=audio__decode_wav audio.encode_wav=audio__encode_wav "
        "batch_to_space_nd=batch_to_space_nd betainc=betainc bitcast=bitcast "
        "bitwise.bitwise_and=bitwise__bitwise_and bitwise.bitwise_or=bitwise__bitwise_or "
        "bitwise.bitwise_xor=bitwise__bitwise_xor bitwise.invert=bitwise__invert "
        "bitwise.left_shift=bitwise__left_shift bitwise.right_shift=bitwise__right_shift "
        "broadcast_to=broadcast_to check_numerics=check_numerics cholesky=cholesky "
        "conv2d_backprop_filter_v2=conv2d_backprop_filter_v2 "
        "conv2d_backprop_input_v2=conv2d_backprop_input_v2 conv=conv cos=cos cosh=cosh "
        "cross=cross debugging.check_numerics=debugging__check_numerics "
        "debugging.is_finite=debugging__is_finite debugging.is_inf=debugging__is_inf "
        "debugging.is_nan=debugging__is_nan decode_base64=decode_base64 "
        "decode_compressed=decode_compressed diag=diag digamma=digamma "
        "dtypes.as_string=dtypes__as_string dynamic_partition=dynamic_partition "
        "dynamic_stitch=dynamic_stitch encode_base64=encode_base64 erf=erf erfc=erfc "
        "expm1=expm1 extract_volume_patches=extract_volume_patches "
        "fake_quant_with_min_max_args=fake_quant_with_min_max_args "
        "fake_quant_with_min_max_args_gradient=fake_quant_with_min_max_args_gradient "
        "fake_quant_with_min_max_vars=fake_quant_with_min_max_vars "
        "fake_quant_with_min_max_vars_gradient=fake_quant_with_min_max_vars_gradient "
        "fake_quant_with_min_max_vars_per_channel=fake_quant_with_min_max_vars_per_channel "
        "fake_quant_with_min_max_vars_per_channel_gradient=fake_quant_with_min_max_vars_per_channel_gradient "
        "fft2d=fft2d fft3d=fft3d fft=fft fftnd=fftnd floor_div=floor_div greater=greater "
        "greater_equal=greater_equal identity_n=identity_n ifft2d=ifft2d ifft3d=ifft3d "
        "ifft=ifft ifftnd=ifftnd igamma=igamma igammac=igammac "
        "image.decode_and_crop_jpeg=image__decode_and_crop_jpeg "
        "image.decode_bmp=image__decode_bmp image.decode_gif=image__decode_gif "
        "image.decode_jpeg=image__decode_jpeg image.decode_png=image__decode_png "
        "image.encode_jpeg=image__encode_jpeg "
        "image.extract_jpeg_shape=image__extract_jpeg_shape "
        "image.hsv_to_rgb=image__hsv_to_rgb image.resize_area=image__resize_area "
        "image.rgb_to_hsv=image__rgb_to_hsv invert_permutation=invert_permutation "
        "io.decode_and_crop_jpeg=io__decode_and_crop_jpeg "
        "io.decode_base64=io__decode_base64 io.decode_bmp=io__decode_bmp "
        "io.decode_compressed=io__decode_compressed io.decode_gif=io__decode_gif "
        "io.decode_jpeg=io__decode_jpeg io.decode_png=io__decode_png "
        "io.decode_proto=io__decode_proto io.encode_base64=io__encode_base64 "
        "io.encode_jpeg=io__encode_jpeg io.encode_proto=io__encode_proto "
        "io.extract_jpeg_shape=io__extract_jpeg_shape io.matching_files=io__matching_files "
        "io.parse_tensor=io__parse_tensor io.write_file=io__write_file irfftnd=irfftnd "
        "is_finite=is_finite is_inf=is_inf is_nan=is_nan less=less less_equal=less_equal "
        "lgamma=lgamma linalg.band_part=linalg__band_part linalg.cholesky=linalg__cholesky "
        "linalg.cross=linalg__cross linalg.det=linalg__det linalg.inv=linalg__inv "
        "linalg.logm=linalg__logm linalg.lu=linalg__lu linalg.qr=linalg__qr "
        "linalg.solve=linalg__solve linalg.sqrtm=linalg__sqrtm "
        "linalg.tensor_diag=linalg__tensor_diag log1p=log1p log=log logical_and=logical_and "
        "logical_not=logical_not logical_or=logical_or "
        "manip.batch_to_space_nd=manip__batch_to_space_nd manip.reverse=manip__reverse "
        "manip.scatter_nd=manip__scatter_nd "
        "manip.space_to_batch_nd=manip__space_to_batch_nd manip.tile=manip__tile "
        "matching_files=matching_files math.acosh=math__acosh math.asin=math__asin "
        "math.asinh=math__asinh math.atan2=math__atan2 math.atan=math__atan "
        "math.atanh=math__atanh math.betainc=math__betainc math.cos=math__cos "
        "math.cosh=math__cosh math.digamma=math__digamma math.erf=math__erf "
        "math.erfc=math__erfc math.expm1=math__expm1 math.greater=math__greater "
        "math.greater_equal=math__greater_equal math.igamma=math__igamma "
        "math.igammac=math__igammac math.invert_permutation=math__invert_permutation "
        "math.is_finite=math__is_finite math.is_inf=math__is_inf math.is_nan=math__is_nan "
        "math.less=math__less math.less_equal=math__less_equal math.lgamma=math__lgamma "
        "math.log1p=math__log1p math.log=math__log math.logical_and=math__logical_and "
        "math.logical_not=math__logical_not math.logical_or=math__logical_or "
        "math.maximum=math__maximum math.minimum=math__minimum "
        "math.nextafter=math__nextafter math.polygamma=math__polygamma "
        "math.reciprocal=math__reciprocal math.rint=math__rint "
        "math.segment_max=math__segment_max math.segment_mean=math__segment_mean "
        "math.segment_min=math__segment_min math.segment_prod=math__segment_prod "
        "math.segment_sum=math__segment_sum math.sin=math__sin math.sinh=math__sinh "
        "math.softsign=math__softsign math.squared_difference=math__squared_difference "
        "math.tan=math__tan math.unsorted_segment_max=math__unsorted_segment_max "
        "math.unsorted_segment_min=math__unsorted_segment_min "
        "math.unsorted_segment_prod=math__unsorted_segment_prod "
        "math.unsorted_segment_sum=math__unsorted_segment_sum math.xlogy=math__xlogy "
        "math.zeta=math__zeta matrix_band_part=matrix_band_part "
        "matrix_determinant=matrix_determinant matrix_inverse=matrix_inverse "
        "matrix_solve=matrix_solve matrix_square_root=matrix_square_root maximum=maximum "
        "minimum=minimum nn.conv3d_backprop_filter=nn__conv3d_backprop_filter "
        "nn.conv3d_backprop_filter_v2=nn__conv3d_backprop_filter_v2 nn.elu=nn__elu "
        "nn.l2_loss=nn__l2_loss "
        "nn.local_response_normalization=nn__local_response_normalization nn.lrn=nn__lrn "
        "nn.quantized_avg_pool=nn__quantized_avg_pool "
        "nn.quantized_conv2d=nn__quantized_conv2d "
        "nn.quantized_max_pool=nn__quantized_max_pool "
        "nn.quantized_relu_x=nn__quantized_relu_x nn.relu=nn__relu nn.selu=nn__selu "
        "nn.softsign=nn__softsign parse_tensor=parse_tensor polygamma=polygamma qr=qr "
        "quantization.fake_quant_with_min_max_args=quantization__fake_quant_with_min_max_args "
        "quantization.fake_quant_with_min_max_args_gradient=quantization__fake_quant_with_min_max_args_gradient "
        "quantization.fake_quant_with_min_max_vars=quantization__fake_quant_with_min_max_vars "
        "quantization.fake_quant_with_min_max_vars_gradient=quantization__fake_quant_with_min_max_vars_gradient "
        "quantization.fake_quant_with_min_max_vars_per_channel=quantization__fake_quant_with_min_max_vars_per_channel "
        "quantization.fake_quant_with_min_max_vars_per_channel_gradient=quantization__fake_quant_with_min_max_vars_per_channel_gradient "
        "quantization.quantized_concat=quantization__quantized_concat "
        "quantized_concat=quantized_concat ragged_fill_empty_rows=ragged_fill_empty_rows "
        "ragged_fill_empty_rows_grad=ragged_fill_empty_rows_grad "
        "random_index_shuffle=random_index_shuffle realdiv=realdiv reciprocal=reciprocal "
        "reverse=reverse reverse_v2=reverse_v2 rfftnd=rfftnd rint=rint "
        "scatter_nd=scatter_nd segment_max=segment_max segment_mean=segment_mean "
        "segment_min=segment_min segment_prod=segment_prod segment_sum=segment_sum "
        "signal.fft2d=signal__fft2d signal.fft3d=signal__fft3d signal.fft=signal__fft "
        "signal.ifft2d=signal__ifft2d signal.ifft3d=signal__ifft3d signal.ifft=signal__ifft "
        "sin=sin sinh=sinh space_to_batch_nd=space_to_batch_nd sparse_matmul=sparse_matmul "
        "spectral.fft2d=spectral__fft2d spectral.fft3d=spectral__fft3d "
        "spectral.fft=spectral__fft spectral.ifft2d=spectral__ifft2d "
        "spectral.ifft3d=spectral__ifft3d spectral.ifft=spectral__ifft "
        "squared_difference=squared_difference string_strip=string_strip "
        "string_to_hash_bucket_fast=string_to_hash_bucket_fast "
        "string_to_hash_bucket_strong=string_to_hash_bucket_strong "
        "strings.as_string=strings__as_string strings.lower=strings__lower "
        "strings.strip=strings__strip "
        "strings.to_hash_bucket_fast=strings__to_hash_bucket_fast "
        "strings.to_hash_bucket_strong=strings__to_hash_bucket_strong "
        "strings.unicode_script=strings__unicode_script "
        "strings.unicode_transcode=strings__unicode_transcode strings.upper=strings__upper "
        "tan=tan tensor_scatter_add=tensor_scatter_add "
        "tensor_scatter_nd_add=tensor_scatter_nd_add "
        "tensor_scatter_nd_max=tensor_scatter_nd_max "
        "tensor_scatter_nd_min=tensor_scatter_nd_min "
        "tensor_scatter_nd_sub=tensor_scatter_nd_sub tensor_scatter_sub=tensor_scatter_sub "
        "tile=tile timestamp=timestamp train.sdca_fprint=train__sdca_fprint "
        "train.sdca_optimizer=train__sdca_optimizer "
        "train.sdca_shrink_l1=train__sdca_shrink_l1 truncatediv=truncatediv "
        "truncatemod=truncatemod unravel_index=unravel_index "
        "unsorted_segment_max=unsorted_segment_max "
        "unsorted_segment_min=unsorted_segment_min "
        "unsorted_segment_prod=unsorted_segment_prod "
        "unsorted_segment_sum=unsorted_segment_sum write_file=write_file zeta=zeta"
    ),
    "ferroflow.python.ops.partitioned_variables": (
        "fixed_size_partitioner min_max_variable_partitioner variable_axis_size_partitioner"
    ),
    "ferroflow.python.ops.pooling_ops": (
        "nn.avg_pool1d=avg_pool1d nn.avg_pool2d=avg_pool nn.avg_pool3d=avg_pool3d "
        "nn.avg_pool=avg_pool nn.max_pool1d=max_pool1d nn.max_pool2d=max_pool2d "
        "nn.max_pool3d=max_pool3d nn.max_pool=max_pool "
        "nn.max_pool_with_argmax=max_pool_with_argmax nn.pool=pool"
    ),
    "ferroflow.python.ops.random_ops": (
        "image.random_crop=random_crop multinomial random.categorical=categorical "
        "random.gamma=random_gamma random.multinomial=multinomial "
        "random.normal=random_normal random.poisson=random_poisson "
        "random.shuffle=random_shuffle random.stateless_multinomial=stateless_multinomial "
        "random.stateless_normal=stateless_random_normal "
        "random.stateless_truncated_normal=stateless_truncated_normal "
        "random.stateless_uniform=stateless_random_uniform "
        "random.truncated_normal=truncated_normal random.uniform=random_uniform random_crop "
        "random_gamma random_normal random_poisson random_shuffle random_uniform "
        "truncated_normal"
    ),
    "ferroflow.python.ops.ranking_metrics": (
        "metrics.average_precision_at_k=average_precision_at_k "
        "metrics.false_negatives_at_thresholds=false_negatives_at_thresholds "
        "metrics.false_positives_at_thresholds=false_positives_at_thresholds "
        "metrics.mean_cosine_distance=mean_cosine_distance metrics.mean_iou=mean_iou "
        "metrics.mean_per_class_accuracy=mean_per_class_accuracy "
        "metrics.precision_at_k=precision_at_k "
        "metrics.precision_at_top_k=precision_at_top_k metrics.recall_at_k=recall_at_k "
        "metrics.recall_at_top_k=recall_at_top_k "
        "metrics.sensitivity_at_specificity=sensitivity_at_specificity "
        "metrics.sparse_average_precision_at_k=average_precision_at_k "
        "metrics.sparse_precision_at_k=precision_at_k "
        "metrics.specificity_at_sensitivity=specificity_at_sensitivity "
        "metrics.true_negatives_at_thresholds=true_negatives_at_thresholds "
        "metrics.true_positives_at_thresholds=true_positives_at_thresholds"
    ),
    "ferroflow.python.ops.raw_ops": (
        "raw_ops=*"
    ),
    "ferroflow.python.ops.raw_rnn": (
        "nn.raw_rnn=raw_rnn"
    ),
    "ferroflow.python.ops.reduction_ops": (
        "argmax argmin count_nonzero cumprod cumsum math.argmax=argmax math.argmin=argmin "
        "math.count_nonzero=count_nonzero math.cumprod=cumprod math.cumsum=cumsum "
        "math.cumulative_logsumexp=cumulative_logsumexp math.reduce_all=reduce_all "
        "math.reduce_any=reduce_any math.reduce_euclidean_norm=reduce_euclidean_norm "
        "math.reduce_logsumexp=reduce_logsumexp math.reduce_max=reduce_max "
        "math.reduce_mean=reduce_mean math.reduce_min=reduce_min "
        "math.reduce_prod=reduce_prod math.reduce_std=reduce_std math.reduce_sum=reduce_sum "
        "math.reduce_variance=reduce_variance reduce_all reduce_any reduce_logsumexp "
        "reduce_max reduce_mean reduce_min reduce_prod reduce_sum"
    ),
    "ferroflow.python.ops.rnn": (
        "contrib.rnn.static_bidirectional_rnn=static_bidirectional_rnn "
        "contrib.rnn.static_rnn=static_rnn "
        "nn.bidirectional_dynamic_rnn=bidirectional_dynamic_rnn nn.dynamic_rnn=dynamic_rnn "
        "nn.static_bidirectional_rnn=static_bidirectional_rnn nn.static_rnn=static_rnn"
    ),
    "ferroflow.python.ops.rnn_cell": (
        "contrib.rnn.BasicLSTMCell=BasicLSTMCell contrib.rnn.BasicRNNCell=BasicRNNCell "
        "contrib.rnn.DeviceWrapper=DeviceWrapper contrib.rnn.DropoutWrapper=DropoutWrapper "
        "contrib.rnn.GRUCell=GRUCell contrib.rnn.LSTMCell=LSTMCell "
        "contrib.rnn.LSTMStateTuple=LSTMStateTuple contrib.rnn.MultiRNNCell=MultiRNNCell "
        "contrib.rnn.RNNCell=RNNCell contrib.rnn.ResidualWrapper=ResidualWrapper "
        "nn.rnn_cell.BasicLSTMCell=BasicLSTMCell nn.rnn_cell.BasicRNNCell=BasicRNNCell "
        "nn.rnn_cell.DeviceWrapper=DeviceWrapper nn.rnn_cell.DropoutWrapper=DropoutWrapper "
        "nn.rnn_cell.GRUCell=GRUCell nn.rnn_cell.LSTMCell=LSTMCell "
        "nn.rnn_cell.LSTMStateTuple=LSTMStateTuple nn.rnn_cell.MultiRNNCell=MultiRNNCell "
        "nn.rnn_cell.RNNCell=RNNCell nn.rnn_cell.ResidualWrapper=ResidualWrapper"
    ),
    "ferroflow.python.ops.sampled_losses": (
        "nn.all_candidate_sampler=all_candidate_sampler "
        "nn.compute_accidental_hits=compute_accidental_hits "
        "nn.fixed_unigram_candidate_sampler=fixed_unigram_candidate_sampler "
        "nn.learned_unigram_candidate_sampler=learned_unigram_candidate_sampler "
        "nn.log_uniform_candidate_sampler=log_uniform_candidate_sampler "
        "nn.nce_loss=nce_loss nn.sampled_softmax_loss=sampled_softmax_loss "
        "nn.uniform_candidate_sampler=uniform_candidate_sampler "
        "random.all_candidate_sampler=all_candidate_sampler "
        "random.fixed_unigram_candidate_sampler=fixed_unigram_candidate_sampler "
        "random.learned_unigram_candidate_sampler=learned_unigram_candidate_sampler "
        "random.log_uniform_candidate_sampler=log_uniform_candidate_sampler "
        "random.uniform_candidate_sampler=uniform_candidate_sampler"
    ),
    "ferroflow.python.ops.sequence_parsing": (
        "deserialize_many_sparse io.deserialize_many_sparse=deserialize_many_sparse "
        "io.parse_sequence_example=parse_sequence_example "
        "io.parse_single_sequence_example=parse_single_sequence_example "
        "io.serialize_many_sparse=serialize_many_sparse "
        "io.serialize_sparse=serialize_sparse parse_single_sequence_example "
        "serialize_many_sparse serialize_sparse"
    ),
    "ferroflow.python.ops.session_handles": (
        "delete_session_tensor get_session_handle get_session_tensor"
    ),
    "ferroflow.python.ops.sets_ops": (
        "sets.difference=set_difference sets.intersection=set_intersection "
        "sets.set_difference=set_difference sets.set_intersection=set_intersection "
        "sets.set_size=set_size sets.set_union=set_union sets.size=set_size "
        "sets.union=set_union"
    ),
    "ferroflow.python.ops.signal_ops": (
        "signal.dct=dct signal.fftshift=fftshift signal.frame=frame "
        "signal.hamming_window=hamming_window signal.hann_window=hann_window "
        "signal.idct=idct signal.ifftshift=ifftshift signal.inverse_stft=inverse_stft "
        "signal.inverse_stft_window_fn=inverse_stft_window_fn signal.irfft2d=irfft2d "
        "signal.irfft3d=irfft3d signal.irfft=irfft "
        "signal.linear_to_mel_weight_matrix=linear_to_mel_weight_matrix "
        "signal.mfccs_from_log_mel_spectrograms=mfccs_from_log_mel_spectrograms "
        "signal.overlap_and_add=overlap_and_add signal.rfft2d=rfft2d signal.rfft3d=rfft3d "
        "signal.rfft=rfft signal.stft=stft spectral.dct=dct spectral.idct=idct "
        "spectral.irfft2d=irfft2d spectral.irfft3d=irfft3d spectral.irfft=irfft "
        "spectral.rfft2d=rfft2d spectral.rfft3d=rfft3d spectral.rfft=rfft"
    ),
    "ferroflow.python.ops.slicing": (
        "slice strided_slice"
    ),
    "ferroflow.python.ops.sparse_more_ops": (
        "sparse.cross=sparse_cross sparse.cross_hashed=sparse_cross_hashed "
        "sparse.expand_dims=sparse_expand_dims sparse.eye=sparse_eye "
        "sparse.from_dense=from_dense sparse.merge=sparse_merge "
        "sparse.reset_shape=sparse_reset_shape sparse.to_indicator=sparse_to_indicator "
        "sparse_merge sparse_reset_shape sparse_to_indicator"
    ),
    "ferroflow.python.ops.sparse_ops": (
        "sparse.add=sparse_add sparse.concat=sparse_concat "
        "sparse.fill_empty_rows=sparse_fill_empty_rows "
        "sparse.matmul=sparse_tensor_dense_matmul sparse.maximum=sparse_maximum "
        "sparse.minimum=sparse_minimum sparse.reduce_max=sparse_reduce_max "
        "sparse.reduce_max_sparse=sparse_reduce_max_sparse "
        "sparse.reduce_sum=sparse_reduce_sum "
        "sparse.reduce_sum_sparse=sparse_reduce_sum_sparse sparse.reorder=sparse_reorder "
        "sparse.reshape=sparse_reshape sparse.retain=sparse_retain "
        "sparse.slice=sparse_slice sparse.softmax=sparse_softmax "
        "sparse.sparse_dense_matmul=sparse_tensor_dense_matmul sparse.split=sparse_split "
        "sparse.to_dense=sparse_tensor_to_dense sparse.transpose=sparse_transpose "
        "sparse_add sparse_concat sparse_fill_empty_rows sparse_maximum sparse_minimum "
        "sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum "
        "sparse_reduce_sum_sparse sparse_reorder sparse_reshape sparse_retain sparse_slice "
        "sparse_softmax sparse_split sparse_tensor_dense_matmul sparse_tensor_to_dense "
        "sparse_to_dense sparse_transpose"
    ),
    "ferroflow.python.ops.special_math_ops": (
        "math.special.bessel_j0=bessel_j0 math.special.bessel_j1=bessel_j1 "
        "math.special.bessel_k0=bessel_k0 math.special.bessel_k0e=bessel_k0e "
        "math.special.bessel_k1=bessel_k1 math.special.bessel_k1e=bessel_k1e "
        "math.special.bessel_y0=bessel_y0 math.special.bessel_y1=bessel_y1 "
        "math.special.dawsn=dawsn math.special.expint=expint "
        "math.special.fresnel_cos=fresnel_cos math.special.fresnel_sin=fresnel_sin "
        "math.special.spence=spence random.stateless_binomial=stateless_random_binomial "
        "random.stateless_categorical=stateless_categorical "
        "random.stateless_gamma=stateless_random_gamma "
        "random.stateless_parameterized_truncated_normal=stateless_parameterized_truncated_normal "
        "random.stateless_poisson=stateless_random_poisson"
    ),
    "ferroflow.python.ops.state_ops": (
        "assign assign_add assign_sub batch_scatter_update count_up_to "
        "is_variable_initialized scatter_add scatter_div scatter_max scatter_min "
        "scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub "
        "scatter_update"
    ),
    "ferroflow.python.ops.string_ops": (
        "decode_csv decode_raw io.decode_csv=decode_csv io.decode_raw=decode_raw "
        "io.read_file=read_file read_file reduce_join regex_replace string_join "
        "string_split string_to_hash_bucket string_to_number strings.join=string_join "
        "strings.length=string_length strings.reduce_join=reduce_join "
        "strings.regex_full_match=regex_full_match strings.regex_replace=regex_replace "
        "strings.split=string_split_v2 strings.substr=substr "
        "strings.to_hash_bucket=string_to_hash_bucket strings.to_number=string_to_number "
        "substr"
    ),
    "ferroflow.python.ops.template": (
        "make_template"
    ),
    "ferroflow.python.ops.tensor_array_ops": (
        "TensorArray"
    ),
    "ferroflow.python.ops.variable_lists": (
        "all_variables assert_variables_initialized global_variables "
        "global_variables_initializer initialize_all_variables initialize_local_variables "
        "initialize_variables initializers.global_variables=global_variables_initializer "
        "initializers.local_variables=local_variables_initializer "
        "initializers.variables=variables_initializer local_variables "
        "local_variables_initializer model_variables moving_average_variables "
        "report_uninitialized_variables trainable_variables variables_initializer"
    ),
    "ferroflow.python.ops.variable_scope": (
        "AUTO_REUSE VariableScope get_local_variable get_variable get_variable_scope "
        "no_regularizer variable_creator_scope variable_op_scope variable_scope"
    ),
    "ferroflow.python.ops.variables": (
        "Variable VariableAggregation VariableSynchronization"
    ),
    "ferroflow.python.ops.while_loop": (
        "while_loop"
    ),
    "ferroflow.python.platform.numeric_gradient": (
        "test.compute_gradient=compute_gradient "
        "test.compute_gradient_error=compute_gradient_error"
    ),
    "ferroflow.python.seq2seq.attention": (
        "contrib.seq2seq.AttentionMechanism=AttentionMechanism "
        "contrib.seq2seq.BahdanauAttention=BahdanauAttention "
        "contrib.seq2seq.BahdanauMonotonicAttention=BahdanauMonotonicAttention "
        "contrib.seq2seq.LuongAttention=LuongAttention "
        "contrib.seq2seq.LuongMonotonicAttention=LuongMonotonicAttention "
        "contrib.seq2seq.hardmax=hardmax "
        "contrib.seq2seq.monotonic_attention=monotonic_attention "
        "contrib.seq2seq.safe_cumprod=safe_cumprod"
    ),
    "ferroflow.python.seq2seq.attention_wrapper": (
        "contrib.seq2seq.AttentionWrapper=AttentionWrapper "
        "contrib.seq2seq.AttentionWrapperState=AttentionWrapperState"
    ),
    "ferroflow.python.seq2seq.beam_search": (
        "contrib.seq2seq.BeamSearchDecoder=BeamSearchDecoder "
        "contrib.seq2seq.BeamSearchDecoderOutput=BeamSearchDecoderOutput "
        "contrib.seq2seq.BeamSearchDecoderState=BeamSearchDecoderState "
        "contrib.seq2seq.FinalBeamSearchDecoderOutput=FinalBeamSearchDecoderOutput "
        "contrib.seq2seq.gather_tree=gather_tree "
        "contrib.seq2seq.gather_tree_from_array=gather_tree_from_array "
        "contrib.seq2seq.tile_batch=tile_batch"
    ),
    "ferroflow.python.seq2seq.decoder": (
        "contrib.seq2seq.BasicDecoder=BasicDecoder "
        "contrib.seq2seq.BasicDecoderOutput=BasicDecoderOutput "
        "contrib.seq2seq.Decoder=Decoder contrib.seq2seq.dynamic_decode=dynamic_decode"
    ),
    "ferroflow.python.seq2seq.helper": (
        "contrib.seq2seq.CustomHelper=CustomHelper "
        "contrib.seq2seq.GreedyEmbeddingHelper=GreedyEmbeddingHelper "
        "contrib.seq2seq.Helper=Helper contrib.seq2seq.InferenceHelper=InferenceHelper "
        "contrib.seq2seq.SampleEmbeddingHelper=SampleEmbeddingHelper "
        "contrib.seq2seq.ScheduledEmbeddingTrainingHelper=ScheduledEmbeddingTrainingHelper "
        "contrib.seq2seq.ScheduledOutputTrainingHelper=ScheduledOutputTrainingHelper "
        "contrib.seq2seq.TrainingHelper=TrainingHelper"
    ),
    "ferroflow.python.training.learning_rate_decay": (
        "train.cosine_decay=cosine_decay train.cosine_decay_restarts=cosine_decay_restarts "
        "train.exponential_decay=exponential_decay "
        "train.inverse_time_decay=inverse_time_decay "
        "train.linear_cosine_decay=linear_cosine_decay "
        "train.natural_exp_decay=natural_exp_decay "
        "train.noisy_linear_cosine_decay=noisy_linear_cosine_decay "
        "train.piecewise_constant=piecewise_constant "
        "train.piecewise_constant_decay=piecewise_constant "
        "train.polynomial_decay=polynomial_decay"
    ),
    "ferroflow.python.training.moving_averages": (
        "train.ExponentialMovingAverage=ExponentialMovingAverage"
    ),
    "ferroflow.python.training.optimizer": (
        "train.Optimizer=Optimizer"
    ),
    "ferroflow.python.training.optimizers": (
        "train.AdadeltaOptimizer=AdadeltaOptimizer "
        "train.AdagradDAOptimizer=AdagradDAOptimizer "
        "train.AdagradOptimizer=AdagradOptimizer train.AdamOptimizer=AdamOptimizer "
        "train.FtrlOptimizer=FtrlOptimizer "
        "train.GradientDescentOptimizer=GradientDescentOptimizer "
        "train.MomentumOptimizer=MomentumOptimizer "
        "train.ProximalAdagradOptimizer=ProximalAdagradOptimizer "
        "train.ProximalGradientDescentOptimizer=ProximalGradientDescentOptimizer "
        "train.RMSPropOptimizer=RMSPropOptimizer"
    ),
}
