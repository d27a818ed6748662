"""Random calls, most of them wrong: with shapes, types and values that do not fit.

`outcome(tf, call)` says what a library makes of one call: the class of its exception, or the types and
static shapes of the results. `record_wrong_calls.py` keeps TensorFlow's answers, `test_session_mistakes.py`
compares ours with them.
"""

import random

SEED = 20151109
COUNT = 3000
DTYPES = ["float32", "float32", "float32", "int32", "int64", "float64", "bool", "string", "complex64"]


def _dim(r):
    return r.choice(["1", "2", "2", "3", "3", "4", "None", "0"])


def _shape(r, rank=None):
    if rank is None:
        rank = r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, None])
    if rank is None:
        return "None"
    return "[%s]" % ", ".join(_dim(r) for _ in range(rank))


def _tensor(r, rank=None, dtype=None):
    """A placeholder of a random type and shape."""
    return "tf.placeholder(tf.%s, %s)" % (dtype or r.choice(DTYPES), _shape(r, rank))


def _float(r, rank=None):
    """Mostly floats, of mostly the given rank."""
    if rank is not None and r.random() < 0.15:
        rank = r.choice([0, 1, 2, 3, 4, 5])
    return _tensor(r, rank, "float32" if r.random() < 0.85 else None)


def _int(r, low=-4, high=5):
    return str(r.randint(low, high))


def _ints(r, low=-3, high=4, most=4):
    return "[%s]" % ", ".join(_int(r, low, high) for _ in range(r.randint(0, most)))


def _value(r):
    return r.choice(["1", "1.5", "True", "'a'", "[1, 2]", "[1.0, 2.0, 3.0]", "[[1, 2], [3, 4]]", "None", "[]", "3j",
                     "[[1], [2, 3]]", "object()", "{}", "np.ones([2, 3])", "np.float32(2)", "np.arange(3)", "b'x'", "2**40"])


def _operand(r):
    return _tensor(r) if r.random() < 0.7 else _value(r)


def _strides(r):
    return r.choice(["[1, 1, 1, 1]", "[1, 2, 2, 1]", "[1, 0, 0, 1]", "[2, 1, 1, 1]", "[1, 1]", "[]", "1", "2"])


def _padding(r):
    return r.choice(["'SAME'", "'VALID'", "'SAME'", "'VALID'", "'FULL'", "'valid'", "None"])


def _axis(r):
    return r.choice(["None", "0", "1", "2", "-1", "-2", "5", "-5", "[0, 1]", "[0, 0]", "'a'", "1.0"])


_UNARY = ["abs", "negative", "sign", "square", "sqrt", "exp", "log", "sin", "tanh", "sigmoid", "floor", "round",
          "is_nan", "logical_not", "invert", "reciprocal", "real", "conj", "nn.relu", "nn.elu", "nn.softplus",
          "nn.softmax", "nn.log_softmax", "nn.l2_loss", "identity", "stop_gradient", "zeros_like", "ones_like",
          "shape", "size", "rank", "matrix_transpose", "linalg.det", "matrix_inverse", "cholesky", "trace", "diag",
          "diag_part", "matrix_diag", "matrix_diag_part", "where", "unique", "invert_permutation", "string_to_number",
          "as_string", "lgamma", "erf", "to_float", "to_int32", "fft", "rfft", "self_adjoint_eigvals", "qr", "svd"]
_BINARY = ["add", "subtract", "multiply", "divide", "truediv", "floordiv", "mod", "pow", "maximum", "minimum",
           "equal", "not_equal", "less", "greater_equal", "logical_and", "logical_or", "squared_difference", "atan2",
           "complex", "bitwise.bitwise_and", "nn.bias_add", "tensordot_1", "broadcast_to"]
_REDUCTIONS = ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all",
               "reduce_logsumexp", "argmax", "argmin", "cumsum", "nn.softmax", "nn.moments"]


def _binary(r):
    name = r.choice(_BINARY)
    if name == "tensordot_1":
        return "tf.tensordot(%s, %s, %s)" % (_float(r), _float(r), r.choice(["0", "1", "2", "[[0], [1]]", "[[1], [0]]", "-1"]))
    if name == "broadcast_to":
        return "tf.broadcast_to(%s, %s)" % (_float(r), _ints(r, 0, 3))
    kind = r.choice(DTYPES)
    if r.random() < 0.6:
        return "tf.%s(%s, %s)" % (name, _tensor(r, None, kind), _tensor(r, None, kind))
    return "tf.%s(%s, %s)" % (name, _operand(r), _operand(r))


_CALLS = [
    _binary, _binary, _binary,
    lambda r: "tf.%s(%s)" % (r.choice(_UNARY), _operand(r)),
    lambda r: "tf.%s(%s)" % (r.choice(_UNARY), _operand(r)),
    lambda r: "tf.%s(%s, %s)" % (r.choice(_REDUCTIONS), _operand(r), _axis(r)),
    lambda r: "tf.%s(%s, %s)" % (r.choice(_REDUCTIONS), _float(r), _axis(r)),
    lambda r: "%s %s %s" % (_tensor(r), r.choice(["+", "-", "*", "/", "//", "%", "**", "@", "<", ">=", "&", "|", "=="]), _operand(r)),
    lambda r: "tf.matmul(%s, %s%s)" % (_float(r, 2), _float(r, 2), r.choice(["", "", ", transpose_a=True", ", transpose_b=True", ", adjoint_a=True"])),
    lambda r: "tf.matmul(%s, %s)" % (_float(r, 3), _float(r, r.choice([2, 3]))),
    lambda r: "tf.reshape(%s, %s)" % (_tensor(r), r.choice([_ints(r, -1, 4), _value(r), _tensor(r, 1, "int32")])),
    lambda r: "tf.transpose(%s, %s)" % (_float(r), r.choice(["None", "[1, 0]", "[0, 1, 2]", "[0, 0]", _ints(r, 0, 3), _value(r)])),
    lambda r: "tf.split(%s, %s, %s)" % (_float(r, r.choice([1, 2, 3])), r.choice(["2", "3", "0", "-1", "[1, 1]", "[2, -1]", "[1, 2, 3]", "1.5"]), _axis(r)),
    lambda r: "tf.concat([%s, %s], %s)" % (_float(r, 2), _float(r, 2), _axis(r)),
    lambda r: "tf.concat(%s, %s)" % (_operand(r), _operand(r)),
    lambda r: "tf.stack([%s, %s], axis=%s)" % (_float(r, r.choice([1, 2])), _float(r, r.choice([1, 2])), _axis(r)),
    lambda r: "tf.unstack(%s, %s, %s)" % (_float(r), r.choice(["None", "None", "2", "3"]), _axis(r)),
    lambda r: "tf.slice(%s, %s, %s)" % (_float(r), _ints(r, -1, 3), _ints(r, -2, 4)),
    lambda r: "(%s)[%s]" % (_float(r), r.choice(["0", "1", "-1", "7", "0, 1", "0, 0, 0", "1:3", "::2", "::-1", "::0", "..., 0", "..., ...", "None", "tf.newaxis, 0", "'a'", "1.5", "5:", ":, 9", "True"])),
    lambda r: "tf.gather(%s, %s, axis=%s)" % (_operand(r), _operand(r), _axis(r)),
    lambda r: "tf.gather(%s, %s)" % (_float(r, 2), _tensor(r, 1, "int32")),
    lambda r: "tf.gather_nd(%s, %s)" % (_float(r), _tensor(r, None, r.choice(["int32", "int64", "float32"]))),
    lambda r: "tf.one_hot(%s, %s, axis=%s)" % (_operand(r), r.choice(["3", "0", "-1", "None", "[2, 3]", "1.5", "tf.constant(4)"]), r.choice(["-1", "0", "1", "4", "-3"])),
    lambda r: "tf.expand_dims(%s, %s)" % (_operand(r), _axis(r)),
    lambda r: "tf.squeeze(%s, %s)" % (_operand(r), _axis(r)),
    lambda r: "tf.tile(%s, %s)" % (_float(r), _ints(r, -1, 3)),
    lambda r: "tf.pad(%s, %s%s)" % (_float(r, 2), r.choice(["[[1, 1], [0, 2]]", "[[1, 1]]", "[1, 1]", "[[-1, 0], [0, 0]]", "[[5, 5], [5, 5]]"]), r.choice(["", ", 'REFLECT'", ", 'SYMMETRIC'", ", 'WRAP'"])),
    lambda r: "tf.nn.conv2d(%s, %s, %s, %s)" % (_float(r, 4), _float(r, 4), _strides(r), _padding(r)),
    lambda r: "tf.nn.depthwise_conv2d(%s, %s, %s, %s)" % (_float(r, 4), _float(r, 4), _strides(r), _padding(r)),
    lambda r: "tf.nn.max_pool(%s, %s, %s, %s)" % (_float(r, 4), r.choice(["[1, 2, 2, 1]", "[1, 9, 9, 1]", "[2, 2]", "[1, 0, 0, 1]", "2"]), _strides(r), _padding(r)),
    lambda r: "tf.nn.avg_pool(%s, %s, %s, %s)" % (_float(r, 4), r.choice(["[1, 2, 2, 1]", "[1, 9, 9, 1]", "[2, 2]"]), _strides(r), _padding(r)),
    lambda r: "tf.nn.softmax_cross_entropy_with_logits_v2(labels=%s, logits=%s)" % (_float(r, 2), _float(r, 2)),
    lambda r: "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=%s, logits=%s)" % (_tensor(r, r.choice([1, 2]), r.choice(["int32", "int64", "float32"])), _float(r, 2)),
    lambda r: "tf.nn.sigmoid_cross_entropy_with_logits(labels=%s, logits=%s)" % (_float(r, 2), _float(r, 2)),
    lambda r: "tf.nn.embedding_lookup(%s, %s)" % (_float(r, 2), _tensor(r, 1, r.choice(["int32", "int64", "float32"]))),
    lambda r: "tf.nn.dropout(%s, %s)" % (_float(r), r.choice(["0.5", "0.0", "1.0", "1.5", "-1", "'a'", "None"])),
    lambda r: "tf.nn.top_k(%s, %s)" % (_float(r), r.choice(["1", "2", "5", "-1", "1.5", "None"])),
    lambda r: "tf.nn.in_top_k(%s, %s, 1)" % (_float(r, 2), _tensor(r, 1, r.choice(["int32", "int64"]))),
    lambda r: "tf.nn.xw_plus_b(%s, %s, %s)" % (_float(r, 2), _float(r, 2), _float(r, 1)),
    lambda r: "tf.nn.batch_normalization(%s, %s, %s, None, None, 1e-3)" % (_float(r, 2), _float(r, 1), _float(r, 1)),
    lambda r: "tf.layers.dense(%s, %s)" % (_float(r, 2), r.choice(["3", "0", "-1", "None", "'a'"])),
    lambda r: "tf.layers.conv2d(%s, 2, %s, padding=%s)" % (_float(r, 4), r.choice(["3", "(2, 2)", "[1]", "'a'"]), r.choice(["'same'", "'valid'", "'x'"])),
    lambda r: "tf.layers.flatten(%s)" % _float(r),
    lambda r: "tf.layers.batch_normalization(%s)" % _float(r),
    lambda r: "tf.losses.mean_squared_error(%s, %s)" % (_float(r), _float(r)),
    lambda r: "tf.losses.softmax_cross_entropy(%s, %s)" % (_float(r, 2), _float(r, 2)),
    lambda r: "tf.losses.sparse_softmax_cross_entropy(%s, %s)" % (_tensor(r, 1, "int32"), _float(r, 2)),
    lambda r: "tf.constant(%s, %s, %s)" % (_value(r), r.choice(["None"] + ["tf." + d for d in DTYPES]), r.choice(["None", "None", _shape(r).replace("None", "2")])),
    lambda r: "tf.convert_to_tensor(%s, %s)" % (_operand(r), r.choice(["None"] + ["tf." + d for d in DTYPES])),
    lambda r: "tf.cast(%s, %s)" % (_operand(r), r.choice(["tf." + d for d in DTYPES] + ["'nope'", "None"])),
    lambda r: "tf.bitcast(%s, %s)" % (_tensor(r), r.choice(["tf." + d for d in DTYPES])),
    lambda r: "tf.zeros(%s, %s)" % (r.choice([_ints(r, -1, 3), "3", "None", "'a'", _shape(r)]), r.choice(["tf.float32", "tf.string", "tf.bool", "'x'"])),
    lambda r: "tf.fill(%s, %s)" % (r.choice([_ints(r, -1, 3), _value(r)]), _value(r)),
    lambda r: "tf.range(%s, %s, %s)" % (_value(r), _value(r), r.choice(["1", "0", "-1", "0.5", "'a'"])),
    lambda r: "tf.linspace(%s, %s, %s)" % (r.choice(["0.0", "1", "'a'"]), r.choice(["1.0", "2"]), r.choice(["3", "0", "-1", "1.5"])),
    lambda r: "tf.random_uniform(%s, %s, %s, %s)" % (r.choice([_ints(r, -1, 3), "3", "None"]), r.choice(["0", "0.0"]), r.choice(["1", "None", "5"]), r.choice(["tf.float32", "tf.int32", "tf.bool", "tf.string"])),
    lambda r: "tf.random_normal(%s, dtype=%s)" % (r.choice([_ints(r, -1, 3), "3", "None"]), r.choice(["tf.float32", "tf.int32", "tf.float64"])),
    lambda r: "tf.where(%s, %s, %s)" % (_tensor(r, None, r.choice(["bool", "bool", "float32"])), _float(r), _float(r)),
    lambda r: "tf.cond(%s, lambda: %s, lambda: %s)" % (r.choice(["tf.constant(True)", "True", "1", _tensor(r, None, "bool")]), _operand(r), _operand(r)),
    lambda r: "tf.while_loop(lambda i, x: %s, lambda i, x: (%s, %s), [0, %s])" % (
        r.choice(["i < 3", "i", "tf.constant([True, False])", "1"]), r.choice(["i + 1", "i + 1.0", "tf.to_float(i)", "[i]"]),
        r.choice(["x", "tf.concat([x, x], 0)", "tf.to_int32(x)", "x + 1"]), _float(r)),
    lambda r: "tf.map_fn(lambda x: %s, %s)" % (r.choice(["x", "x + 1", "tf.to_int32(x)", "(x, x)", "None"]), _float(r)),
    lambda r: "tf.Variable(%s, dtype=%s).assign(%s)" % (_value(r), r.choice(["None", "tf.float32", "tf.int32"]), _operand(r)),
    lambda r: "tf.get_variable('v', %s, %s, %s)" % (_shape(r), r.choice(["tf.float32", "tf.int32", "tf.string", "tf.bool", "None"]), r.choice(["None", "tf.zeros_initializer()", "tf.constant([1.0, 2.0])", "1.0", "tf.random_normal_initializer()"])),
    lambda r: "tf.scatter_update(tf.get_variable('v', [4, 2]), %s, %s)" % (_tensor(r, r.choice([0, 1]), "int32"), _float(r, 2)),
    lambda r: "tf.assign_add(tf.get_variable('v', [2, 3], use_resource=%s), %s)" % (r.choice(["True", "False"]), _float(r, 2)),
    lambda r: "tf.gradients(%s, %s)" % (_operand(r), _operand(r)),
    lambda r: "tf.clip_by_value(%s, %s, %s)" % (_float(r), _operand(r), _operand(r)),
    lambda r: "tf.clip_by_norm(%s, %s)" % (_float(r), _value(r)),
    lambda r: "tf.segment_sum(%s, %s)" % (_float(r, 2), _tensor(r, 1, r.choice(["int32", "float32"]))),
    lambda r: "tf.unsorted_segment_sum(%s, %s, %s)" % (_float(r, 2), _tensor(r, 1, "int32"), r.choice(["3", "-1", "1.5", "[3]"])),
    lambda r: "tf.sparse_tensor_dense_matmul(tf.SparseTensor(%s, %s, [2, 3]), %s)" % (r.choice(["[[0, 0]]", "[[0]]", "[0]"]), r.choice(["[1.0]", "[1]", "[1.0, 2.0]"]), _float(r, 2)),
    lambda r: "tf.sparse_to_dense(%s, %s, %s)" % (r.choice(["[0]", "[[0, 1]]", "[[0], [1]]"]), r.choice(["[3]", "[2, 2]", "3"]), r.choice(["1", "[1, 2]", "1.0"])),
    lambda r: "tf.batch_to_space_nd(%s, %s, %s)" % (_float(r, 4), r.choice(["[2, 2]", "[0, 1]", "[2]"]), r.choice(["[[0, 0], [0, 0]]", "[[0, 0]]", "[[1, 1], [0, 0]]"])),
    lambda r: "tf.space_to_depth(%s, %s)" % (_float(r, 4), r.choice(["2", "1", "3", "0"])),
    lambda r: "tf.reverse(%s, %s)" % (_float(r), r.choice(["[0]", "[1]", "[0, 0]", "[-1]", "[9]", "0", "[]"])),
    lambda r: "tf.reverse_sequence(%s, %s, seq_axis=%s)" % (_float(r), _tensor(r, 1, "int32"), r.choice(["0", "1", "2"])),
    lambda r: "tf.sequence_mask(%s, %s)" % (_tensor(r, None, r.choice(["int32", "int64", "float32"])), r.choice(["None", "3", "-1", "[3]"])),
    lambda r: "tf.dynamic_partition(%s, %s, %s)" % (_float(r), _tensor(r, None, "int32"), r.choice(["2", "0", "1"])),
    lambda r: "tf.dynamic_stitch([%s], [%s])" % (_tensor(r, 1, "int32"), _float(r, 2)),
    lambda r: "tf.einsum(%s, %s, %s)" % (r.choice(["'ij,jk->ik'", "'ij,jk'", "'i,j->ij'", "'ii->i'", "'ij->'", "'ij,jk->iz'"]), _float(r, 2), _float(r, 2)),
    lambda r: "tf.image.resize_bilinear(%s, %s)" % (_float(r, 4), r.choice(["[3, 3]", "[0, 3]", "[3]", "3", "[-1, 2]"])),
    lambda r: "tf.nn.rnn_cell.%s(%s)(%s, tf.zeros([2, %s]))" % (r.choice(["BasicRNNCell", "GRUCell"]), r.choice(["3", "4"]), _float(r, 2), r.choice(["3", "4"])),
    lambda r: "tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(3), %s, dtype=%s)" % (_float(r, 3), r.choice(["tf.float32", "None", "tf.int32"])),
    lambda r: "tf.data.Dataset.from_tensor_slices(%s).batch(%s).make_one_shot_iterator().get_next()" % (r.choice(["[1, 2, 3]", "([1, 2], [3.0, 4.0])", "([1, 2], [3.0])", "5", "[[1], [2, 3]]", "{'a': [1]}"]), r.choice(["2", "'a'", "1.5"])),
    lambda r: "tf.FIFOQueue(%s, %s, %s).enqueue(%s)" % (r.choice(["3", "-1", "'a'"]), r.choice(["tf.float32", "[tf.float32, tf.int32]"]), r.choice(["None", "[[]]", "[[2]]", "[[], []]"]), r.choice(["1.0", "[1.0, 2]", "'a'", "[1.0]"])),
    lambda r: "tf.train.GradientDescentOptimizer(%s).minimize(%s)" % (r.choice(["0.1", "'a'", "None"]), _operand(r)),
    lambda r: "tf.train.ClusterSpec(%s).as_dict()" % r.choice(["{'a': ['b:1']}", "{'a': 'b:1'}", "{'a': {0: 'b:1'}}", "{'a': [1]}", "[1]", "{1: ['b:1']}", "None", "{'a': {'x': 'b:1'}}", "{'a': {0: 1}}"]),
    lambda r: "tf.device(%s).__enter__()" % r.choice(["'/job:a'", "'/cpu:0'", "3", "'nope:0'", "'/job:a/task:x'", "None", "'/device:CPU:0'"]),
    lambda r: "tf.constant(1, name=%s)" % r.choice(["'a b'", "'_a'", "'a/'", "'/a'", "''", "3", "'a.b'", "'é'", "'a:0'"]),
    lambda r: "tf.get_default_graph().%s(%s)" % (r.choice(["get_tensor_by_name", "get_operation_by_name", "as_graph_element"]), r.choice(["'a'", "'a:0'", "'a:b'", "3", "None", "''", "'a:0:0'", "[1]"])),
    lambda r: "(%s).set_shape(%s)" % (_tensor(r), _shape(r)),
    lambda r: "tf.TensorShape(%s).%s(%s)" % (_shape(r), r.choice(["merge_with", "concatenate", "assert_is_compatible_with", "with_rank", "with_rank_at_least", "__getitem__"]), r.choice([_shape(r), "1", "2", "slice(0, 1)"])),
    lambda r: "tf.%s(%s)" % (r.choice(["global_variables_initializer", "no_op", "group", "tuple", "add_n", "parallel_stack", "assert_equal", "assert_rank"]), _operand(r)),
    lambda r: "tf.%s(%s, %s)" % (r.choice(["assert_equal", "assert_less", "assert_rank", "assert_type", "add_n", "accumulate_n", "norm", "unique_with_counts", "bincount", "confusion_matrix", "setdiff1d", "cross", "meshgrid", "strided_slice", "scalar_mul", "truncatediv", "polyval", "repeat", "roll"]), _operand(r), _operand(r)),
]


_FED = ["1", "1.5", "True", "'a'", "[1, 2]", "[[1.0, 2.0]]", "None", "[]", "3j", "[[1], [2, 3]]", "object()", "{}",
        "np.ones([2, 3])", "np.float64(2)", "np.arange(3)", "b'x'", "2**40", "2**70", "-1", "tf.constant(1.0)", "['a', 1]",
        "np.array(['a'])", "np.ones([2, 3]).T", "np.ones([4])[::2]", "float('nan')", "(1, 2)", "range(3)"]
_FETCHED = ["None", "3", "'nope'", "'nope:0'", "'x'", "'x:0'", "'x:9'", "''", "[]", "()", "{}", "[x, None]", "{'a': x}", "(x, [y])",
            "tf.no_op()", "object()", "tf.Variable(1.0)", "other", "'a b'", "[[[]]]", "y.op", "sess", "tf.SparseTensor([[0]], [1.0], [2])",
            "b'x:0'", "y.name", "[y, y]", "np.ones(2)", "lambda: 1", "tf.IndexedSlices(y, tf.constant([0]))"]
_FEED_KEYS = ["x", "y", "'x:0'", "'x'", "'nope:0'", "3", "None", "other", "y.op", "v", "c", "(x, y)", "object()", "sparse"]
_STEPS = ["tf.floordiv(tf.constant(1), tf.placeholder_with_default(0, []))", "tf.gather(tf.placeholder_with_default([1.0], [None]), [7])",
          "tf.reshape(tf.placeholder_with_default([1.0, 2.0], None), [3])", "tf.matmul(dynamic([2, 3]), dynamic([2, 3]))",
          "dynamic([2]) + dynamic([3])", "tf.concat([dynamic([2]), dynamic([1, 2])], 0)", "tf.check_numerics(tf.log(dynamic([2]) * -1.0), 'm')",
          "tf.Variable(1.0)", "tf.string_to_number(['x'])", "tf.decode_raw(['abc'], tf.int32)", "tf.read_file('/no/such/file')",
          "tf.Assert(False, ['no'])", "tf.assert_equal(dynamic([2]), dynamic([2]) * 2.0)", "tf.sparse_to_dense(dynamic_int([5]), [3], [1.0])",
          "tf.slice(dynamic([3]), [2], dynamic_int([5]))", "tf.linalg.inv(dynamic([2, 2]) * 0.0)", "tf.cholesky(dynamic([2, 2]) * -1.0)",
          "tf.transpose(dynamic([2, 2]), dynamic_int([0, 0]))", "tf.tile(dynamic([2]), dynamic_int([-1]))", "tf.nn.top_k(dynamic([2]), dynamic_int(9))",
          "tf.segment_sum(dynamic([3]), dynamic_int([2, 1, 0]))", "tf.one_hot(dynamic_int([9]), 3)", "tf.one_hot(1, dynamic_int(-3))",
          "tf.train.Saver([tf.Variable(1.0)]).restore(sess, '/no/such')", "tf.FIFOQueue(1, tf.int32).close()",
          "[tf.FIFOQueue(1, tf.int32, shared_name='q').close(), 3]", "tf.py_func(lambda: 1 / 0, [], tf.float64)",
          "tf.py_func(lambda: 'a', [], tf.float64)", "tf.py_func(lambda: {}['k'], [], tf.float64)", "tf.io.decode_json_example('x')",
          "tf.parse_example(['junk'], {'a': tf.FixedLenFeature([], tf.int64)})", "tf.decode_csv(['a,b'], [[1], [1]])",
          "tf.scatter_nd(dynamic_int([[9]]), [1.0], [3])", "tf.boolean_mask(dynamic([3]), [True, False])",
          "tf.random_uniform([2], 5, dynamic_int(5), tf.int32)", "tf.strided_slice(dynamic([3]), [0], [2], [dynamic_int(0)])",
          "tf.image.decode_png('x')", "tf.sqrt(dynamic([2]))", "tf.cond(dynamic([]) > 0.0, lambda: 1, lambda: 2)",
          "tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])", "tf.split(dynamic([3]), 2)[0]", "tf.unstack(dynamic([3]), 2)[0]"]
_SESSIONS = ["tf.Session('nope://x')", "tf.Session(3)", "tf.Session(config=3)", "tf.Session(graph=3)", "tf.Session('', None, 'x')",
             "tf.InteractiveSession(config='a')", "sess.close() or sess.run(x)", "sess.close() or sess.close()",
             "sess.close() or sess.make_callable(y)", "sess.make_callable(None)", "sess.make_callable(y)(1)", "sess.make_callable(y, [x])()",
             "sess.make_callable(y, [x])([1.0, 2.0])", "sess.make_callable(y, [x])('a')", "sess.make_callable(y, ['nope:0'])",
             "sess.partial_run('h', y)", "sess.partial_run(sess.partial_run_setup([y], [x]), c)", "sess.partial_run_setup([y], ['nope:0'])",
             "sess.run(y, {x: [1.0, 2.0]}, options=3)", "sess.run(y, {x: [1.0, 2.0]}, run_metadata=3)", "sess.run(y, 3)", "sess.run(y, [x])",
             "sess.run()", "y.eval()", "y.eval(3)", "y.eval({x: [1.0, 2.0]}, sess).shape", "y.op.run()", "c.eval(session=sess)", "sess.graph.finalize() or tf.constant(1)",
             "sess.list_devices()[0].device_type", "sess.graph.as_graph_element(other)", "sess.run(c, {c: 5.0})", "sess.run(c, {c: [5.0, 6.0]})",
             "sess.run(tf.global_variables_initializer())", "tf.get_default_session().run(c)", "sess.reset('')", "tf.Session.reset('grpc://')",
             "sess.run(v.initializer) or sess.run(v)", "v.load(3.0, sess)", "v.load([3.0], sess)", "v.eval()", "v.initialized_value().eval(session=sess)",
             "sess.run(y, {x: [1.0, 2.0], 'x:0': [1.0, 2.0]})", "sess.run(y, feed_dict={x: [1.0, 2.0], y: [1.0]})"]


def steps(seed=SEED, count=600):
    """Mistakes with sessions, as Python expressions."""
    r = random.Random(seed + 1)
    found = list(_SESSIONS) + ["sess.run(%s)" % step for step in _STEPS]
    while len(found) < count:
        kind = r.randrange(3)
        if kind == 0:
            found.append("sess.run(tf.identity(z), {z: %s}) if %s else None" % (r.choice(_FED), "z.append_(tf.placeholder(tf.%s, %s))" % (r.choice(DTYPES), _shape(r))))
        elif kind == 1:
            found.append("sess.run(%s, {x: [1.0, 2.0]})" % r.choice(_FETCHED))
        else:
            found.append("sess.run(y, {%s: %s})" % (r.choice(_FEED_KEYS), r.choice(_FED)))
    return found


def step_outcome(tf, step):
    """As `outcome`, with a session and a few tensors."""
    import numpy as np

    tf.reset_default_graph()
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    names = {"tf": tf, "np": np, "other": other, "x": tf.placeholder(tf.float32, [2], name="x")}
    names["y"] = names["x"] * 2.0
    names["c"], names["v"] = tf.constant(3.0), tf.Variable(1.0)
    names["sparse"] = tf.sparse_placeholder(tf.float32)
    names["dynamic"] = lambda shape: tf.placeholder_with_default(np.ones(shape, np.float32), None)
    names["dynamic_int"] = lambda value: tf.placeholder_with_default(np.array(value, np.int32), None)
    if " if z.append_(" in step:
        step, made = step.split(" if z.append_(")
        names["z"] = eval(made[: made.rindex(") else")], names)  # noqa: S307
    names["sess"] = sess = tf.Session()
    try:
        result = eval(step, names)  # noqa: S307
    except Exception as e:  # noqa: BLE001
        return "error", type(e).__name__, str(e)
    finally:
        sess.close()
    return "value", _described_value(tf, result), ""


def _described_value(tf, value):
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)):
        return "%s %s" % (value.dtype, value.shape)
    return _described(tf, value)


def calls(seed=SEED, count=COUNT):
    """The calls, as Python expressions."""
    r = random.Random(seed)
    found = []
    while len(found) < count:
        call = r.choice(_CALLS)(r)
        found.append(call)
    return found


def outcome(tf, call):
    """The class of the exception, or the types and shapes of the results."""
    import numpy as np

    tf.reset_default_graph()
    try:
        result = eval(call, {"tf": tf, "np": np})  # noqa: S307
    except Exception as e:  # noqa: BLE001
        return "error", type(e).__name__, str(e)
    return "value", _described(tf, result), ""


def _described(tf, value):
    if isinstance(value, (list, tuple)):
        return [_described(tf, v) for v in value]
    if isinstance(value, dict):
        return {str(k): _described(tf, v) for k, v in sorted(value.items(), key=str)}
    shape = getattr(value, "get_shape", None)
    if shape is not None and hasattr(value, "dtype"):
        return "%s %s" % (value.dtype.base_dtype.name, shape())
    if isinstance(value, tf.TensorShape):
        return str(value)
    return type(value).__name__ if value is not None else "None"
