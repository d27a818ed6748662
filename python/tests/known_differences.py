"""Programs whose graphs differ from TensorFlow's, with the first difference."""

KNOWN = {
    "grad_reductions":
        "gradients_36/Prod_grad/Shape_1: op is 'Shape', not 'Const'",
    "nn_activations":
        "missing node Identity (Identity)",
    "nn_conv":
        "missing node depthwise_1/SpaceToBatchND/paddings (Const)",
    "nn_embedding":
        "embedding_lookup_3/Shape_1: op is 'Shape', not 'Const'",
    "partitioned":
        "gradients/embedding_lookup_2/Reshape_1_grad/Shape: op is 'Shape', not 'Const'",
    "summaries":
        "s/i: attr bad_color is 420e08041204120208042204ff0000ff, not 421008041204120208043a06",
}
