"""Connectionist temporal classification."""

from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import deprecated_alias, export


@export("nn.ctc_loss")
def ctc_loss(labels, inputs=None, sequence_length=None, preprocess_collapse_repeated=False,
             ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False, time_major=True,
             logits=None):
    if not isinstance(labels, sparse_tensor.SparseTensor):
        raise TypeError("Expected argument `labels` to be a SparseTensor. Received labels=%s of "
                        "type: %s" % (labels, type(labels).__name__))
    inputs = deprecated_alias("logits", logits, "inputs", inputs)
    if not time_major:
        inputs = array_ops.transpose(inputs, [1, 0, 2])
    loss, _ = gen_ops.CTCLoss(
        inputs, labels.indices, labels.values, sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs)
    return loss


@export("nn.ctc_greedy_decoder")
def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    extra = {} if blank_index is None else {"blank_index": blank_index}
    indices, values, shape, probability = gen_ops.CTCGreedyDecoder(
        inputs, sequence_length, merge_repeated=merge_repeated, **extra)
    return [sparse_tensor.SparseTensor(indices, values, shape)], probability


@export("nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1,
                            merge_repeated=True):
    indices, values, shapes, probability = gen_ops.CTCBeamSearchDecoder(
        inputs, sequence_length, beam_width=beam_width, top_paths=top_paths,
        merge_repeated=merge_repeated)
    return [sparse_tensor.SparseTensor(i, v, s)
            for i, v, s in zip(indices, values, shapes)], probability
