"""`tf.contrib.legacy_seq2seq`: decoders over lists of steps, and their losses."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cross_entropy_ops
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import rnn
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("contrib.legacy_seq2seq.rnn_decoder")
def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
    """Runs a cell over a list of inputs. A function may make each input of the output before it."""
    with variable_scope.variable_scope(scope or "rnn_decoder"):
        state, outputs, before = initial_state, [], None
        for i, given in enumerate(decoder_inputs):
            if loop_function is not None and before is not None:
                with variable_scope.variable_scope("loop_function", reuse=True):
                    given = loop_function(before, i)
            if i > 0:
                variable_scope.get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
            before = output if loop_function is not None else None
    return outputs, state


@export("contrib.legacy_seq2seq.basic_rnn_seq2seq")
def basic_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, dtype=None, scope=None):
    """An encoder whose last state begins a decoder."""
    import copy
    with variable_scope.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = rnn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype or encoder_inputs[0].dtype)
        return rnn_decoder(decoder_inputs, state, cell)


@export("contrib.legacy_seq2seq.embedding_rnn_decoder")
def embedding_rnn_decoder(decoder_inputs, initial_state, cell, num_symbols, embedding_size, output_projection=None,
                          feed_previous=False, update_embedding_for_previous=True, scope=None):
    """A decoder over lists of ids."""
    with variable_scope.variable_scope(scope or "embedding_rnn_decoder"):
        table = variable_scope.get_variable("embedding", [num_symbols, embedding_size])

        def following(before, _):
            if output_projection is not None:
                before = math_ops.matmul(before, output_projection[0]) + output_projection[1]
            embedded = embedding_ops.embedding_lookup(table, math_ops.argmax(before, 1))
            return embedded if update_embedding_for_previous else array_ops.stop_gradient(embedded)
        embedded = [embedding_ops.embedding_lookup(table, i) for i in decoder_inputs]
        return rnn_decoder(embedded, initial_state, cell, loop_function=following if feed_previous else None)


@export("contrib.legacy_seq2seq.sequence_loss_by_example")
def sequence_loss_by_example(logits, targets, weights, average_across_timesteps=True, softmax_loss_function=None, name=None):
    """The weighted cross entropy of each example, from lists with an entry for each step."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError("Lengths of logits, weights, and targets must be the same %d, %d, %d." % (
            len(logits), len(weights), len(targets)))
    with ops.name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        each = []
        for logit, target, weight in zip(logits, targets, weights):
            if softmax_loss_function is None:
                loss = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=array_ops.reshape(target, [-1]), logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            each.append(loss * weight)
        total = math_ops.add_n(each)
        return total / (math_ops.add_n(weights) + 1e-12) if average_across_timesteps else total


@export("contrib.legacy_seq2seq.sequence_loss")
def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True, softmax_loss_function=None,
                  name=None):
    """The weighted cross entropy of all examples."""
    with ops.name_scope(name, "sequence_loss", logits + targets + weights):
        cost = math_ops.reduce_sum(sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps=average_across_timesteps,
            softmax_loss_function=softmax_loss_function))
        if not average_across_batch:
            return cost
        return cost / math_ops.cast(array_ops.shape(targets[0])[0], cost.dtype)
