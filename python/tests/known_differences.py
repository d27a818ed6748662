"""Programs whose graphs differ from TensorFlow's, with the first difference."""

KNOWN = {
    "grad_arrays":
        "gradients_17/GatherV2_1_grad/Size_2: attr value is 4207080312003a0100, not 4207080312",
    "grad_conv":
        "missing node depthwise/Shape (Const)",
    "grad_losses":
        "ValueError: Tensor's shape (None, None) is not compatible with supplied shape (4,).",
    "grad_reductions":
        "gradients_36/Prod_grad/Shape_1: op is 'Shape', not 'Const'",
    "layers_batch_norm":
        "two/batchnorm/mul_1: input is ['two/moments/Squeeze', 'two/batchnorm/mul'], not ['Pla",
    "loop_grads":
        "missing node gradients_5/while_5/GatherV2/Enter_grad/b_acc_9 (Exit)",
    "loops":
        "missing node while_5/Less/Identity (Identity)",
    "losses":
        "ValueError: Tensor's shape (None, None) is not compatible with supplied shape (4,).",
    "nn_activations":
        "missing node Rank_2 (Const)",
    "nn_conv":
        "missing node depthwise/Shape (Const)",
    "nn_cross_entropy":
        "ValueError: Tensor's shape (None, None) is not compatible with supplied shape (None,)",
    "nn_embedding":
        "embedding_lookup_3/Shape_1: op is 'Shape', not 'Const'",
    "partitioned":
        "gradients/embedding_lookup_2/Reshape_1_grad/Shape: op is 'Shape', not 'Const'",
    "segments":
        "confusion_matrix/assert_non_negative/assert_less_equal/Assert/Const: attr value is 42",
    "slices":
        "ValueError: only stride 1 allowed on non-range indexing.",
}
