"""Names of TensorFlow before 1.0 whose functions have another name since."""

NAMES = {
    "ferroflow.python.ops.math_ops": "mul=multiply sub=subtract complex_abs=abs",
    "ferroflow.python.ops.array_ops": "pack=stack unpack=unstack concat_v2=concat",
    "ferroflow.python.ops.gather_ops": "select=where listdiff=setdiff1d",
    "ferroflow.python.ops.matmul_ops": "batch_matmul=matmul",
    "ferroflow.python.ops.op_exports": (
        "inv=reciprocal batch_matrix_inverse=matrix_inverse batch_matrix_determinant=matrix_determinant "
        "batch_matrix_solve=matrix_solve batch_cholesky=cholesky"
    ),
}
