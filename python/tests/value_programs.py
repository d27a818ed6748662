"""Small programs whose values must equal TensorFlow's. `record_values.py` records them."""

import numpy as np

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Inputs:
    """Random inputs, the same for each run of a program."""

    def __init__(self, tf):
        self._tf, self._state = tf, np.random.RandomState(0)

    def __call__(self, *shape, low=0.0):
        return self._tf.constant((self._state.rand(*shape) + low).astype(np.float32))

    def ints(self, limit, *shape):
        return self._tf.constant(self._state.randint(0, limit, shape))


def run(tf, name):
    """The values of a program, as a flat list of arrays."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        fetches = PROGRAMS[name](tf, Inputs(tf))
        flat = []
        _flatten(fetches, flat)
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            return [np.asarray(sess.run(f)) for f in flat]


def _flatten(value, out):
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    if isinstance(value, (list, tuple)):
        for one in value:
            _flatten(one, out)
    else:
        out.append(value)


@program
def colours(tf, x):
    image = x(5, 6, 3)
    batch = x(2, 5, 6, 3)
    whole = tf.cast(image * 255, tf.uint8)
    return [tf.image.adjust_hue(image, 0.2), tf.image.adjust_saturation(image, 1.5), tf.image.adjust_gamma(image, 2.0, 1.1),
            tf.image.adjust_saturation(whole, 0.5), tf.image.rgb_to_yiq(batch), tf.image.yiq_to_rgb(batch),
            tf.image.rgb_to_yuv(batch), tf.image.yuv_to_rgb(batch)]


@program
def crops_and_turns(tf, x):
    image, batch = x(7, 9, 3), x(2, 7, 9, 3)
    return [tf.image.resize_image_with_crop_or_pad(image, 5, 12), tf.image.resize_image_with_crop_or_pad(image, 10, 4),
            tf.image.central_crop(image, 0.5), tf.image.pad_to_bounding_box(image, 1, 2, 10, 14), tf.image.rot90(image),
            tf.image.rot90(image, 3), tf.image.transpose_image(image), tf.image.resize_image_with_crop_or_pad(batch, 5, 12),
            tf.image.central_crop(batch, 0.7), tf.image.rot90(batch, 2), tf.image.resize_image_with_pad(batch, 12, 12)]


@program
def crops_of_unknown_size(tf, x):
    image = tf.placeholder_with_default(x(7, 9, 3), [None, None, 3])
    k = tf.placeholder_with_default(3, [])
    return [tf.image.resize_image_with_crop_or_pad(image, 5, 12), tf.image.central_crop(image, 0.5), tf.image.rot90(image, k)]


@program
def likeness_of_images(tf, x):
    a, b = x(2, 32, 32, 3), x(2, 32, 32, 3)
    return [tf.image.psnr(a, b, 1.0), tf.image.ssim(a, b, 1.0), tf.image.sobel_edges(a), tf.image.image_gradients(a),
            tf.image.total_variation(a), tf.image.ssim_multiscale(x(1, 180, 180, 1), x(1, 180, 180, 1), 1.0)]


@program
def boxes(tf, x):
    found = tf.constant([[[0.1, 0.1, 0.6, 0.7], [0.3, 0.2, 0.9, 0.8]]])
    scores = tf.constant([0.9, 0.8])
    png = tf.image.encode_png(tf.cast(x(4, 5, 3) * 255, tf.uint8))
    return [tf.image.draw_bounding_boxes(x(1, 20, 20, 3), found), tf.image.non_max_suppression_with_scores(found[0], scores, 2),
            tf.image.non_max_suppression_padded(found[0], scores, 2, pad_to_max_output_size=True),
            tf.image.non_max_suppression_overlaps(tf.eye(2), scores, 2), tf.image.decode_image(png), tf.image.is_jpeg(png),
            tf.image.extract_glimpse(x(1, 8, 8, 1), [3, 3], [[0.0, 0.0]])]


@program
def checks_of_numbers(tf, x):
    value = x(3, 3)
    with tf.control_dependencies([tf.assert_near(value, value + 1e-9)]):
        same = tf.identity(value)
    return [same, tf.verify_tensor_all_finite(value, "bad"), tf.is_non_decreasing([1, 2, 2]), tf.is_strictly_increasing([1, 2, 2]),
            tf.lbeta(value + 1.0), tf.histogram_fixed_width_bins([0.1, 5.5, -3.0, 9.0], [0.0, 5.0], nbins=5)]


@program
def templates_share_variables(tf, x):
    del x
    scaled = tf.make_template("t", lambda v: v * tf.get_variable("w", [], initializer=tf.constant_initializer(3.0)))
    a, b = scaled(tf.constant(2.0)), scaled(tf.constant(5.0))
    return [a, b, tf.constant([v.name for v in tf.global_variables()] + [a.name, b.name])]


@program
def sets_of_rows(tf, x):
    del x
    a, b = tf.constant([[1, 2, 3], [4, 5, 5]]), tf.constant([[3, 4, 2], [5, 6, 7]])
    return [tf.sets.set_intersection(a, b).values, tf.sets.set_difference(a, b).values, tf.sets.set_union(a, b).values,
            tf.sets.set_size(tf.sets.set_union(a, b))]


@program
def metrics_of_rankings(tf, x):
    labels, classes = x.ints(5, 8, 2), x(8, 5)
    label, guess = x.ints(4, 20), x.ints(4, 20)
    yes, score = x.ints(2, 30), x(30)
    unit = x(4, 3)
    m = tf.metrics
    pairs = [m.precision_at_k(labels, classes, 2), m.recall_at_k(labels, classes, 2),
             m.precision_at_k(labels, classes, 3, class_id=1), m.recall_at_k(labels, classes, 3, class_id=2),
             m.average_precision_at_k(labels, classes, 3), m.mean_iou(label, guess, 4),
             m.mean_per_class_accuracy(label, guess, 4), m.mean_iou(label, guess, 4, weights=x(20)),
             m.sensitivity_at_specificity(yes, score, 0.7), m.specificity_at_sensitivity(yes, score, 0.6),
             m.true_positives_at_thresholds(yes, score, [0.3, 0.6]), m.false_negatives_at_thresholds(yes, score, [0.3, 0.6]),
             m.mean_cosine_distance(unit, unit[::-1], 1)]
    return [update for _, update in pairs]


@program
def graphs_with_variables_as_constants(tf, x):
    del x
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    r = tf.get_variable("r", initializer=[3.0, 4.0], use_resource=True)
    tf.add(v, r * 2.0, name="out")
    tf.add(v, 1.0, name="unused")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        frozen = tf.graph_util.convert_variables_to_constants(sess, tf.get_default_graph().as_graph_def(), ["out"])
    lean = tf.graph_util.remove_training_nodes(frozen)
    outs = [tf.import_graph_def(g, return_elements=["out:0"], name=n)[0] for g, n in ((frozen, "a"), (lean, "b"))]
    return outs + [tf.constant(sorted(n.name for n in g.node)) for g in (frozen, lean)]


def _described(tf, d, values, other, what):
    sample = d.sample([7, 2], seed=3)
    found = [d.log_prob(values), d.prob(values)] + [getattr(d, w)() for w in what.split()]
    if other is not None:
        found.append(tf.distributions.kl_divergence(d, other))
    return found + [tf.shape(sample), tf.shape(d.sample()), tf.constant(sample.get_shape().as_list()),
                    tf.constant(str(d.batch_shape) + str(d.event_shape) + sample.dtype.name)]


@program
def distributions_of_numbers(tf, x):
    d, every = tf.distributions, "mean stddev entropy variance"
    low = lambda *s: x(*s, low=0.1)  # noqa: E731
    normal = d.Normal(low(3), low(3))
    return [_described(tf, normal, low(5, 3), d.Normal(low(3), low(3)), every), normal.cdf(low(3)), normal.quantile(low(3) * 0.5),
            _described(tf, d.Normal(0.0, 1.0), 1.5, d.Normal(1.0, 2.0), every),
            _described(tf, d.Laplace(low(3), low(3)), low(5, 3), None, every),
            _described(tf, d.Uniform(low(3), low(3) + 2.0), low(5, 3) * 2, None, every),
            _described(tf, d.StudentT(low(3) + 3.0, low(3), low(3)), low(5, 3), None, "mean"),
            _described(tf, d.Gamma(low(3) + 1.0, low(3)), low(5, 3), d.Gamma(low(3), low(3)), every + " mode"),
            _described(tf, d.Exponential(low(3)), low(5, 3), None, every), d.Exponential(low(3)).cdf(low(3)),
            _described(tf, d.Beta(low(3) + 1.5, low(3) + 1.5), low(5, 3) * 0.8, d.Beta(low(3), low(3)), every + " mode")]


@program
def distributions_of_classes(tf, x):
    d = tf.distributions
    parts = x(5, 3, low=0.1)
    return [_described(tf, d.Bernoulli(logits=x(3) - 0.5), tf.constant([[0, 1, 1], [1, 0, 0]]), d.Bernoulli(probs=x(3) * 0.8),
                       "mean variance entropy mode"), d.Bernoulli(probs=[0.3, 0.6]).log_prob([1.0, 0.0]),
            _described(tf, d.Categorical(logits=x(4, 3)), tf.constant([0, 1, 2, 1]), d.Categorical(logits=x(4, 3)), "entropy mode"),
            _described(tf, d.Dirichlet(x(3, low=0.1)), parts / tf.reduce_sum(parts, -1, keepdims=True), None, "mean variance entropy"),
            _described(tf, d.Multinomial(4.0, logits=x(2, 3)), tf.constant([[1.0, 2.0, 1.0], [0.0, 0.0, 4.0]]), None, "mean")]


@program
def gradients_of_distributions(tf, x):
    a, b = x(3, low=0.1), x(3, low=0.1)
    d = tf.distributions.Normal(a, b)
    return [tf.gradients(d.log_prob(x(3)), [a, b]),
            tf.gradients(tf.distributions.kl_divergence(d, tf.distributions.Normal(0.0, 1.0)), [a, b]),
            tf.gradients(tf.distributions.Categorical(logits=a).entropy(), a)]


def _sequence(tf):
    example = tf.train.SequenceExample()
    example.context.feature["a"].int64_list.value.extend([1, 2])
    example.context.feature["s"].bytes_list.value.append(b"x")
    for i in range(3):
        example.feature_lists.feature_list["f"].feature.add().float_list.value.extend([i, i + 1])
    for i in range(2):
        example.feature_lists.feature_list["v"].feature.add().int64_list.value.extend(list(range(i + 1)))
    return example.SerializeToString()


@program
def sequence_examples(tf, x):
    del x
    context = {"a": tf.FixedLenFeature([2], tf.int64), "s": tf.VarLenFeature(tf.string)}
    lists = {"f": tf.FixedLenSequenceFeature([2], tf.float32), "v": tf.VarLenFeature(tf.int64)}
    one, steps = tf.parse_single_sequence_example(_sequence(tf), context, lists)
    all_, all_steps, lengths = tf.io.parse_sequence_example([_sequence(tf)] * 2, context, lists)
    return [one["a"], one["s"].values, steps["f"], steps["v"].indices, steps["v"].values, all_["a"], all_["s"].values,
            all_steps["f"], all_steps["v"].indices, all_steps["v"].values, lengths["f"]]


@program
def sparse_tensors(tf, x):
    del x
    s = tf.sparse.from_dense(tf.constant([[0, 1, 0], [2, 0, 3]]))
    places = [[0, 0], [1, 0], [1, 1]]
    ids = tf.SparseTensor(places, tf.constant([2, 0, 1], tf.int64), [2, 2])
    merged = tf.sparse_merge(ids, tf.SparseTensor(places, [1.0, 2.0, 3.0], [2, 2]), 4)
    a, b = tf.constant([["a", "b"], ["c", "d"]]), tf.constant([["e"], ["f"]])
    return [s.indices, s.values, s.dense_shape, tf.sparse.to_dense(tf.sparse.eye(3)), tf.sparse.expand_dims(s, 1).indices,
            tf.sparse_reset_shape(s, [4, 5]).dense_shape, tf.sparse_reset_shape(s).dense_shape,
            tf.deserialize_many_sparse(tf.serialize_many_sparse(s), tf.int32).values, tf.serialize_sparse(s)[1], merged.indices,
            merged.values, merged.dense_shape, tf.sparse_to_indicator(ids, 4), tf.sparse.cross([a, b]).values,
            tf.sparse.cross_hashed([a, b], 100).values]


@program
def fourier_transforms(tf, x):
    real = x(2, 8)
    signal = x(2, 100)
    short = tf.signal.stft(signal, 20, 10)
    return [tf.signal.rfft(real), tf.signal.rfft(real, [16]), tf.signal.irfft(tf.signal.rfft(real)), tf.signal.rfft2d(x(4, 6)),
            tf.signal.irfft(tf.signal.rfft(real), [6]), tf.signal.fftshift(real), tf.signal.ifftshift(x(5)), short,
            tf.signal.inverse_stft(short, 20, 10, window_fn=tf.signal.inverse_stft_window_fn(10)),
            tf.signal.frame(signal, 20, 7, pad_end=True), tf.signal.overlap_and_add(x(3, 4, 6), 2), tf.signal.hann_window(10),
            tf.signal.hamming_window(9, periodic=False)]


@program
def cosine_transforms(tf, x):
    v = x(3, 8)
    return [tf.signal.dct(v), tf.signal.dct(v, norm="ortho"), tf.signal.idct(v), tf.signal.idct(v, norm="ortho"),
            tf.signal.dct(v, type=1), tf.signal.dct(v, type=3), tf.signal.linear_to_mel_weight_matrix(),
            tf.signal.mfccs_from_log_mel_spectrograms(x(2, 20))]


@program
def convolutions_and_pools(tf, x):
    return [tf.nn.conv1d_transpose(x(2, 5, 3), x(3, 4, 3), [2, 10, 4], 2),
            tf.nn.dilation2d(x(1, 6, 6, 2), x(3, 3, 2), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
            tf.nn.erosion2d(x(1, 6, 6, 2), x(3, 3, 2), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
            tf.nn.atrous_conv2d_transpose(x(1, 6, 6, 2), x(3, 3, 4, 2), [1, 6, 6, 4], 2, "SAME"),
            tf.nn.max_pool_v2(x(1, 6, 6, 2), 2, 2, "SAME"), tf.nn.avg_pool_v2(x(1, 6, 6, 2), 2, 2, "SAME"),
            tf.nn.conv_transpose(x(1, 4, 4, 2), x(3, 3, 3, 2), [1, 8, 8, 3], 2), tf.nn.compute_average_loss(x(4)),
            tf.math.bessel_i0(x(3)), tf.math.bessel_i1e(x(3)), tf.serialize_tensor(x(2)), tf.fingerprint(tf.constant(["a", "b"]))]


@program
def recurrent_loops_that_a_function_drives(tf, x):
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    steps = tf.TensorArray(tf.float32, 5).unstack(x(5, 3, 2))
    lengths = tf.constant([5, 2, 4])

    def loop_fn(time, output, state, loop_state):
        del loop_state
        finished = time >= lengths
        following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([3, 2]), lambda: steps.read(time))
        return finished, following, cell.zero_state(3, tf.float32) if output is None else state, output, None

    with tf.variable_scope("a", initializer=tf.constant_initializer(0.3)):
        outputs, state, _ = tf.nn.raw_rnn(cell, loop_fn)
    return [outputs.stack(), state]


@program
def python_functions_of_eager_tensors(tf, x):
    return [tf.py_function(lambda a: a.numpy() * 2, [x(3)], tf.float32), tf.py_function(lambda a, b: a + b, [x(3), x(3)], tf.float32),
            tf.strings.format("a {} b {}", (tf.constant([1, 2]), tf.constant(3)))]


def _weighted(tf, y):
    """A sum in which each element counts differently."""
    if y.dtype.is_complex:
        return _weighted(tf, tf.real(y)) + _weighted(tf, 2 * tf.imag(y))
    return tf.reduce_sum(y * tf.reshape(tf.cast(tf.range(1, tf.size(y) + 1), y.dtype), tf.shape(y)))


@program
def gradients_of_spectra(tf, x):
    v, m, tall = x(6, low=0.2), x(2, 4, low=0.2), x(3, 2, low=0.2)
    spectra = [(v, tf.spectral.rfft(v)), (m, tf.spectral.rfft2d(m)), (tall, tf.spectral.rfft2d(tall)),
               (v, tf.spectral.irfft(tf.complex(v, v * v))), (m, tf.spectral.irfft2d(tf.complex(m, m * m)))]
    odd = v[:5]
    spectra += [(odd, tf.spectral.rfft(odd)), (odd, tf.spectral.irfft(tf.complex(odd, odd * odd), [9]))]
    return [tf.gradients(_weighted(tf, y), a)[0] for a, y in spectra]


@program
def gradients_of_singular_values(tf, x):
    square, wide, tall = x(3, 3, low=0.2), x(2, 3, low=0.2), x(3, 2, low=0.2)
    results = [(wide, tf.svd(wide, compute_uv=False)), (square, tf.svd(square)[0])]
    for a in (square, tall):
        _, u, v = tf.svd(a)
        # Signs of singular vectors are free.
        results += [(a, tf.abs(u)), (a, tf.abs(v))]
    return [tf.gradients(_weighted(tf, y), a)[0] for a, y in results]


@program
def gradients_of_special_functions(tf, x):
    v = x(6, low=0.2)
    special = tf.math.special
    names = ("j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")
    functions = [getattr(special, "bessel_" + n) for n in names] + [getattr(tf.math, "bessel_" + n) for n in ("i0", "i0e", "i1", "i1e")]
    functions += [special.dawsn, special.expint, special.fresnel_cos, special.fresnel_sin, special.spence]
    return [tf.gradients(_weighted(tf, f(v)), v)[0] for f in functions]


@program
def gradients_of_patches_and_rounding(tf, x):
    v, image = x(6, low=0.2), x(1, 3, 4, 3)
    m = tf.reshape(v, [2, 3])
    results = [(image, tf.extract_image_patches(image, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "SAME")),
               (v, tf.fake_quant_with_min_max_args(v, 0.0, 1.0)), (v, tf.fake_quant_with_min_max_vars(v, 0.1, 0.9)),
               (v, tf.fake_quant_with_min_max_vars_per_channel(m, [0.0, 0.0, 0.0], [1.0, 1.0, 0.5])),
               (v, tf.tensor_scatter_nd_max(v, [[0], [2]], [v[1], 0.05])),
               (v, (tf.SparseTensor([[0, 1], [1, 2]], v[:2], [2, 3]) * m).values),
               (v, (tf.SparseTensor([[0, 1], [1, 2]], v[:2], [2, 3]) / v[3:]).values),
               # Nothing flows back through these.
               (v, tf.py_func(lambda a: a * 2, [v], tf.float32) + v), (v, tf.random_shuffle(v, seed=1) + v)]
    return [tf.gradients(_weighted(tf, y), a)[0] for a, y in results]
