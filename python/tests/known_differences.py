"""Programs whose graphs differ from TensorFlow's, with the first difference."""

KNOWN = {
    "functional":
        "AttributeError: module 'ferroflow.compat.v1' has no attribute 'map_fn'; the nearest n",
    "grad_arrays":
        "gradients_17/GatherV2_1_grad/Size_2: attr value is 4207080312003a0100, not 4207080312",
    "grad_conv":
        "missing node depthwise/Shape (Const)",
    "grad_losses":
        "ValueError: Tensor's shape (None, None) is not compatible with supplied shape (4,).",
    "grad_reductions":
        "gradients_36/Prod_grad/Shape_1: op is 'Shape', not 'Const'",
    "joins":
        "AttributeError: module 'ferroflow.compat.v1' has no attribute 'tensor_scatter_nd_upda",
    "linalg":
        "matrix_solve_ls/strided_slice/stack: attr value is 421408031204120208013a0affffffffff",
    "loop_grads":
        "missing node gradients_5/while_5/GatherV2/Enter_grad/b_acc_9 (Exit)",
    "loops":
        "missing node while_5/Less/Identity (Identity)",
    "matmuls":
        "AttributeError: module 'ferroflow.compat.v1' has no attribute 'einsum'; the nearest n",
    "nn_activations":
        "missing node Rank_2 (Const)",
    "nn_conv":
        "missing node depthwise/Shape (Const)",
    "nn_cross_entropy":
        "ValueError: Tensor's shape (None, None) is not compatible with supplied shape (None,)",
    "nn_embedding":
        "ImportError: cannot import name 'sparse_ops' from 'ferroflow.python.ops' (/work/wt/py",
    "partitioned":
        "gradients/embedding_lookup_2/Reshape_1_grad/Shape: op is 'Shape', not 'Const'",
    "segments":
        "AttributeError: module 'ferroflow.compat.v1' has no attribute 'bincount': Ferroflow d",
    "shapes":
        "AttributeError: module 'ferroflow.compat.v1' has no attribute 'roll': Ferroflow does ",
    "slices":
        "ValueError: only stride 1 allowed on non-range indexing.",
}
