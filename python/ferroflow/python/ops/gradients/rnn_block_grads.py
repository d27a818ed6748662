"""Gradients of recurrent cells that are one operation."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


@gradient("LSTMBlockCell")
def _lstm_block_cell(op, *grads):
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    i, cs, f, o, ci, co, _ = op.outputs
    _, cs_grad, _, _, _, _, h_grad = grads
    cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad = g.LSTMBlockCellGrad(
        x=x, cs_prev=cs_prev, h_prev=h_prev, w=w, wci=wci, wcf=wcf, wco=wco, b=b, i=i, cs=cs, f=f, o=o, ci=ci, co=co,
        cs_grad=cs_grad, h_grad=h_grad, use_peephole=op.get_attr("use_peephole"))
    both = math_ops.matmul(dicfo, w, transpose_b=True)
    depth = x.get_shape().as_list()[1]
    depth = array_ops.shape(x)[1] if depth is None else depth
    w_grad = math_ops.matmul(array_ops.concat([x, h_prev], 1), dicfo, transpose_a=True)
    return (both[:, :depth], cs_prev_grad, both[:, depth:], w_grad, wci_grad, wcf_grad, wco_grad,
            math_ops.reduce_sum(dicfo, 0))


@gradient("BlockLSTM")
def _block_lstm(op, *grads):
    names = "seq_len_max x cs_prev h_prev w wci wcf wco b".split()
    inputs = dict(zip(names, op.inputs))
    outputs = dict(zip("i cs f o ci co h".split(), op.outputs))
    found = g.BlockLSTMGrad(cs_grad=grads[1], h_grad=grads[6], use_peephole=op.get_attr("use_peephole"), **inputs, **outputs)
    return (None,) + tuple(found)


@gradient("GRUBlockCell")
def _gru_block_cell(op, *grads):
    x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
    r, u, c, _ = op.outputs
    d_x, d_h_prev, d_c_bar, d_r_bar_u_bar = g.GRUBlockCellGrad(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, grads[3])
    w_ru_grad = math_ops.matmul(array_ops.concat([x, h_prev], 1), d_r_bar_u_bar, transpose_a=True)
    w_c_grad = math_ops.matmul(array_ops.concat([x, h_prev * r], 1), d_c_bar, transpose_a=True)
    return d_x, d_h_prev, w_ru_grad, w_c_grad, math_ops.reduce_sum(d_r_bar_u_bar, 0), math_ops.reduce_sum(d_c_bar, 0)
