"""`tf.signal`: Fourier transforms of real values, cosine transforms, windows and frames."""

import math

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


def _inner(value, rank, fft_length):
    """The lengths of the transform, and the value padded to them."""
    shape = value.get_shape()
    if fft_length is None:
        known = shape.as_list()[-rank:] if shape.ndims is not None else [None] * rank
        if None not in known:
            return value, ops.convert_to_tensor(known, dtype=dtypes.int32)
        return value, array_ops.shape(value)[-rank:]
    return value, ops.convert_to_tensor(fft_length, dtype=dtypes.int32)


def _padded(value, rank, lengths):
    """Zeros at the end of the inner dimensions that are shorter than the transform."""
    known = lengths._constant_shape()
    shape = value.get_shape().as_list() if value.get_shape().ndims is not None else None
    if known is not None and shape is not None and None not in known and None not in shape[-rank:] and all(
            n <= s for n, s in zip(known, shape[-rank:])):
        return value
    inner = array_ops.shape(value)[-rank:]
    short = math_ops.maximum(lengths - inner, 0)
    outer = array_ops.rank(value) - rank
    after = array_ops.concat([array_ops.zeros(array_ops.reshape(outer, [1]), dtypes.int32), short], 0)
    return array_ops.pad(value, array_ops.stack([array_ops.zeros_like(after), after], axis=1))


def _forward(op, rank):
    def function(input_tensor, fft_length=None, name=None):
        with ops.name_scope(name, op.lower(), [input_tensor, fft_length]) as scope:
            value = ops.convert_to_tensor(input_tensor, preferred_dtype=dtypes.float32)
            kind = dtypes.complex128 if value.dtype == dtypes.float64 else dtypes.complex64
            value, lengths = _inner(value, rank, fft_length)
            if fft_length is not None:
                value = _padded(value, rank, lengths)
            return getattr(gen_ops, op)(value, lengths, Tcomplex=kind, name=scope)
    function.__name__ = op.lower()
    return function


def _backward(op, rank):
    def function(input_tensor, fft_length=None, name=None):
        with ops.name_scope(name, op.lower(), [input_tensor, fft_length]) as scope:
            value = ops.convert_to_tensor(input_tensor, preferred_dtype=dtypes.complex64)
            kind = dtypes.float64 if value.dtype == dtypes.complex128 else dtypes.float32
            if fft_length is None:
                inner = array_ops.shape(value)[-rank:]
                last = math_ops.maximum(0, 2 * (inner[-1:] - 1))
                lengths = array_ops.concat([inner[:-1], last], 0)
            else:
                lengths = ops.convert_to_tensor(fft_length, dtype=dtypes.int32)
                inner = array_ops.concat([lengths[:-1], lengths[-1:] // 2 + 1], 0)
                value = _padded(value, rank, inner)
            return getattr(gen_ops, op)(value, lengths, Treal=kind, name=scope)
    function.__name__ = op.lower()
    return function


rfft = export("signal.rfft", "spectral.rfft")(_forward("RFFT", 1))
rfft2d = export("signal.rfft2d", "spectral.rfft2d")(_forward("RFFT2D", 2))
rfft3d = export("signal.rfft3d", "spectral.rfft3d")(_forward("RFFT3D", 3))
irfft = export("signal.irfft", "spectral.irfft")(_backward("IRFFT", 1))
irfft2d = export("signal.irfft2d", "spectral.irfft2d")(_backward("IRFFT2D", 2))
irfft3d = export("signal.irfft3d", "spectral.irfft3d")(_backward("IRFFT3D", 3))


def _axes(value, axes):
    if axes is None:
        return list(range(value.get_shape().ndims))
    return [axes] if isinstance(axes, int) else list(axes)


@export("signal.fftshift")
def fftshift(x, axes=None, name=None):
    """Moves the zero frequency to the middle."""
    with ops.name_scope(name, "fftshift"):
        x = ops.convert_to_tensor(x)
        axes = _axes(x, axes)
        return gen_ops.Roll(x, [array_ops.shape(x)[a] // 2 for a in axes], axes)


@export("signal.ifftshift")
def ifftshift(x, axes=None, name=None):
    """Moves the zero frequency back to the front."""
    with ops.name_scope(name, "ifftshift"):
        x = ops.convert_to_tensor(x)
        axes = _axes(x, axes)
        return gen_ops.Roll(x, [-(array_ops.shape(x)[a] // 2) for a in axes], axes)


def _raised_cosine(name, default_name, window_length, periodic, dtype, a, b):
    if not dtype.is_floating:
        raise ValueError("A floating point window is required.")
    with ops.name_scope(name, default_name, [window_length, periodic]):
        length = ops.convert_to_tensor(window_length, dtype=dtypes.int32)
        even = 1 - math_ops.floormod(length, 2)
        whole = math_ops.cast(length + math_ops.cast(periodic, dtypes.int32) * even - 1, dtype)
        place = math_ops.cast(math_ops.range(length), dtype)
        angle = (2 * math.pi) * place / whole
        window = a - b * math_ops.cos(angle)
        return array_ops.where(gen_ops.IsNan(window), array_ops.ones_like(window), window)


@export("signal.hann_window")
def hann_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    return _raised_cosine(name, "hann_window", window_length, periodic, dtypes.as_dtype(dtype), 0.5, 0.5)


@export("signal.hamming_window")
def hamming_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtypes.as_dtype(dtype), 0.54, 0.46)


@export("signal.frame")
def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    """Overlapping parts of a signal, in a new axis."""
    with ops.name_scope(name, "frame", [signal, frame_length, frame_step]):
        signal = ops.convert_to_tensor(signal, name="signal")
        rank = signal.get_shape().ndims
        axis = axis % rank
        length = array_ops.shape(signal)[axis]
        if pad_end:
            count = -(-length // frame_step)
            missing = math_ops.maximum(0, frame_length + frame_step * (count - 1) - length)
            paddings = array_ops.stack([[0, missing] if i == axis else [0, 0] for i in range(rank)])
            signal = array_ops.pad(signal, paddings, constant_values=pad_value)
        else:
            count = math_ops.maximum(0, 1 + (length - frame_length) // frame_step)
        starts = array_ops.reshape(math_ops.range(count) * frame_step, [-1, 1])
        places = starts + array_ops.reshape(math_ops.range(frame_length), [1, -1])
        return array_ops.gather(signal, places, axis=axis)


@export("signal.overlap_and_add")
def overlap_and_add(signal, frame_step, name=None):
    """Adds overlapping frames to one signal."""
    with ops.name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = ops.convert_to_tensor(signal, name="signal")
        shape = array_ops.shape(signal)
        outer, frames, length = shape[:-2], shape[-2], shape[-1]
        total = (frames - 1) * frame_step + length
        places = array_ops.reshape(math_ops.range(frames) * frame_step, [-1, 1]) + array_ops.reshape(
            math_ops.range(length), [1, -1])
        rank = signal.get_shape().ndims
        order = [rank - 2, rank - 1] + list(range(rank - 2))
        summed = gen_ops.UnsortedSegmentSum(array_ops.transpose(signal, order), places, total)
        back = list(range(1, rank - 1)) + [0]
        result = array_ops.transpose(summed, back)
        return array_ops.reshape(result, array_ops.concat([outer, [total]], 0))


def _power_of_two(length):
    number = int(length) if not hasattr(length, "graph") else None
    if number is not None:
        return 2 ** int(math.ceil(math.log(number, 2)))
    bits = math_ops.ceil(math_ops.log(math_ops.cast(length, dtypes.float32)) / math.log(2.0))
    return 2 ** math_ops.cast(bits, dtypes.int32)


@export("signal.stft")
def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    """The Fourier transforms of overlapping, windowed parts of a signal."""
    with ops.name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = ops.convert_to_tensor(signals, name="signals")
        fft_length = _power_of_two(frame_length) if fft_length is None else fft_length
        parts = frame(signals, frame_length, frame_step, pad_end=pad_end)
        if window_fn is not None:
            parts *= window_fn(frame_length, dtype=parts.dtype)
        return rfft(parts, [fft_length])


@export("signal.inverse_stft_window_fn")
def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    """The window with which `inverse_stft` undoes a `stft` with `forward_window_fn`."""
    def window(frame_length, dtype):
        with ops.name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            forward = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-frame_length // frame_step)
            power = array_ops.pad(math_ops.square(forward), [[0, overlaps * frame_step - frame_length]])
            power = array_ops.reshape(power, [overlaps, frame_step])
            power = array_ops.tile(math_ops.reduce_sum(power, 0, keepdims=True), [overlaps, 1])
            return forward / array_ops.reshape(power, [overlaps * frame_step])[:frame_length]
    return window


@export("signal.inverse_stft")
def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    """The signal of a `stft`."""
    with ops.name_scope(name, "inverse_stft", [stfts]):
        stfts = ops.convert_to_tensor(stfts, name="stfts")
        fft_length = _power_of_two(frame_length) if fft_length is None else fft_length
        real = irfft(stfts, [fft_length])[..., :frame_length]
        if window_fn is not None:
            real *= window_fn(frame_length, dtype=real.dtype)
        return overlap_and_add(real, frame_step)


@export("signal.dct", "spectral.dct")
def dct(input, type=2, n=None, axis=-1, norm=None, name=None):  # pylint: disable=redefined-builtin
    """The discrete cosine transform of the last axis."""
    if axis != -1:
        raise NotImplementedError("axis must be -1. Got: %s" % axis)
    if type not in (1, 2, 3):
        raise ValueError("Types I, II and III (I)DCT are supported.")
    with ops.name_scope(name, "dct", [input, n, axis]):
        x = ops.convert_to_tensor(input)
        if n is not None:
            size = x.get_shape().as_list()[-1]
            x = x[..., :n] if n <= size else array_ops.pad(
                x, [[0, 0]] * (x.get_shape().ndims - 1) + [[0, n - size]])
        size = x.get_shape().as_list()[-1]
        if size is None:
            raise ValueError("dct needs a known last dimension")
        return math_ops.tensordot(x, ops.convert_to_tensor(_cosines(type, size, norm), dtype=x.dtype), axes=[[-1], [0]])


def _cosines(kind, size, norm):
    """The matrix of a cosine transform: rows are inputs."""
    n, k = np.arange(size)[:, None], np.arange(size)[None, :]
    if kind == 1:
        if norm is not None:
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        matrix = 2 * np.cos(np.pi * n * k / (size - 1))
        matrix[0], matrix[-1] = 1.0, (-1.0) ** np.arange(size)
        return matrix
    if kind == 2:
        matrix = 2 * np.cos(np.pi * (2 * n + 1) * k / (2 * size))
        if norm == "ortho":
            matrix *= np.where(k == 0, np.sqrt(1 / (4 * size)), np.sqrt(1 / (2 * size)))
        return matrix
    matrix = 2 * np.cos(np.pi * n * (2 * k + 1) / (2 * size))
    matrix[0] = 1.0
    if norm == "ortho":
        matrix = np.where(n == 0, np.sqrt(1 / size), matrix * np.sqrt(1 / (2 * size)))
    return matrix


@export("signal.idct", "spectral.idct")
def idct(input, type=2, n=None, axis=-1, norm=None, name=None):  # pylint: disable=redefined-builtin
    """The inverse of `dct`, up to a factor where there is no normalization."""
    return dct(input, type={1: 1, 2: 3, 3: 2}.get(type, type), n=n, axis=axis, norm=norm, name=name)


def _mel(hertz):
    return 1127.0 * np.log(1.0 + hertz / 700.0)


@export("signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0,
                                upper_edge_hertz=3800.0, dtype=dtypes.float32, name=None):
    """The weights of triangles on the mel scale, for each bin of a spectrogram."""
    dtype = dtypes.as_dtype(dtype)
    with ops.name_scope(name, "linear_to_mel_weight_matrix"):
        bins = _mel(np.linspace(0.0, sample_rate / 2.0, num_spectrogram_bins)[1:])[:, None]
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        low, middle, high = edges[:-2], edges[1:-1], edges[2:]
        weights = np.maximum(0.0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)))
        return ops.convert_to_tensor(np.pad(weights, [[1, 0], [0, 0]]), dtype=dtype, name=name)


@export("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    """Mel frequency cepstral coefficients."""
    with ops.name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectrograms = ops.convert_to_tensor(log_mel_spectrograms)
        bins = spectrograms.get_shape().as_list()[-1]
        if not bins:
            raise ValueError("num_mel_bins must be positive. Got: %s" % log_mel_spectrograms)
        return dct(spectrograms, type=2) * (1.0 / math.sqrt(bins * 2.0))
