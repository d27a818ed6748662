"""Signatures: named inputs and outputs of a graph."""

from ferroflow.core.protobuf import meta_graph_pb2
from ferroflow.python.framework import dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.saved_model import signature_constants


def build_tensor_info(tensor):
    """A TensorInfo of a tensor or SparseTensor."""
    info = meta_graph_pb2.TensorInfo(dtype=dtypes.as_dtype(tensor.dtype).as_datatype_enum, tensor_shape=tensor.get_shape().as_proto())
    if isinstance(tensor, sparse_tensor.SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def build_tensor_info_from_op(op):
    return meta_graph_pb2.TensorInfo(dtype=0, tensor_shape=tensor_shape.unknown_shape().as_proto(), name=op.name)


def get_tensor_from_tensor_info(tensor_info, graph=None, import_scope=None):
    """The tensor of a TensorInfo in a graph."""
    graph = graph or ops.get_default_graph()

    def get(name):
        return graph.get_tensor_by_name(ops.prepend_name_scope(name, import_scope))

    if tensor_info.WhichOneof("encoding") == "coo_sparse":
        coo = tensor_info.coo_sparse
        return sparse_tensor.SparseTensor(get(coo.indices_tensor_name), get(coo.values_tensor_name), get(coo.dense_shape_tensor_name))
    return get(tensor_info.name)


def build_signature_def(inputs=None, outputs=None, method_name=None, defaults=None):
    del defaults
    signature = meta_graph_pb2.SignatureDef()
    for key in inputs or {}:
        signature.inputs[key].CopyFrom(inputs[key])
    for key in outputs or {}:
        signature.outputs[key].CopyFrom(outputs[key])
    if method_name is not None:
        signature.method_name = method_name
    return signature


def predict_signature_def(inputs, outputs):
    """A signature for prediction from tensors by name."""
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return build_signature_def(
        {key: build_tensor_info(t) for key, t in inputs.items()},
        {key: build_tensor_info(t) for key, t in outputs.items()},
        signature_constants.PREDICT_METHOD_NAME,
    )


def regression_signature_def(examples, predictions):
    """A signature for regression of serialized examples."""
    if examples is None or predictions is None:
        raise ValueError("Regression `examples` and `predictions` cannot be None.")
    if not isinstance(examples, ops.Tensor) or examples.dtype != dtypes.string:
        raise ValueError("Regression `examples` must be a string Tensor.")
    if predictions.dtype != dtypes.float32:
        raise ValueError("Regression output tensors must be of type float.")
    return build_signature_def(
        {signature_constants.REGRESS_INPUTS: build_tensor_info(examples)},
        {signature_constants.REGRESS_OUTPUTS: build_tensor_info(predictions)},
        signature_constants.REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples, classes, scores):
    """A signature for classification of serialized examples."""
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if not isinstance(examples, ops.Tensor) or examples.dtype != dtypes.string:
        raise ValueError("Classification `examples` must be a string Tensor.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    outputs = {}
    if classes is not None:
        if classes.dtype != dtypes.string:
            raise ValueError("Classification classes must be of type string Tensor.")
        outputs[signature_constants.CLASSIFY_OUTPUT_CLASSES] = build_tensor_info(classes)
    if scores is not None:
        if scores.dtype != dtypes.float32:
            raise ValueError("Classification scores must be a float tensor.")
        outputs[signature_constants.CLASSIFY_OUTPUT_SCORES] = build_tensor_info(scores)
    return build_signature_def(
        {signature_constants.CLASSIFY_INPUTS: build_tensor_info(examples)}, outputs, signature_constants.CLASSIFY_METHOD_NAME
    )


def is_valid_signature(signature_def):
    """Whether a server can serve a signature."""
    if signature_def is None or not signature_def.inputs or not signature_def.outputs:
        return False
    return signature_def.method_name in (
        signature_constants.CLASSIFY_METHOD_NAME,
        signature_constants.REGRESS_METHOD_NAME,
        signature_constants.PREDICT_METHOD_NAME,
    )
