"""Diagonals."""

from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export


@export("diag_part", "linalg.tensor_diag_part")
def tensor_diag_part(input, name=None):
    return gen_ops.DiagPart(input=input, name=name)


@export("matrix_diag", "linalg.diag")
def matrix_diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0,
                align="RIGHT_LEFT"):
    if hasattr(diagonal, "dtype") and diagonal.dtype == "bool":
        padding_value = bool(padding_value)
    return gen_ops.MatrixDiagV3(diagonal=diagonal, k=k, num_rows=num_rows, num_cols=num_cols,
                                padding_value=padding_value, align=align, name=name)


@export("matrix_diag_part", "linalg.diag_part")
def matrix_diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    if hasattr(input, "dtype") and input.dtype == "bool":
        padding_value = bool(padding_value)
    return gen_ops.MatrixDiagPartV3(input=input, k=k, padding_value=padding_value, align=align,
                                    name=name)


@export("matrix_set_diag", "linalg.set_diag")
def matrix_set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    return gen_ops.MatrixSetDiagV3(input=input, diagonal=diagonal, k=k, align=align, name=name)
