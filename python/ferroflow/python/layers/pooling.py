"""Pooling over one, two and three dimensions as layers."""

from ferroflow.python.layers import base
from ferroflow.python.layers.convolutional import layout_of, padding_of, sizes_of
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import pooling_ops
from ferroflow.python.util.api import export


class _Pooling(base.Layer):
    _RANK = 2

    def __init__(self, pool_size, strides, padding="valid", data_format="channels_last",
                 name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        n = self._RANK
        self.pool_size = sizes_of(pool_size, n, "pool_size")
        self.strides = sizes_of(pool_size if strides is None else strides, n, "strides")
        self.padding, self.data_format = padding_of(padding), data_format
        kind = "max" if "Max" in type(self).__name__ else "average"
        self._base_name = self._given_name or "%s_pooling%dd" % (kind, n)
        self._ndim = n + 2

    def call(self, inputs):
        n = max(self._RANK, 2)
        layout = layout_of(self.data_format, n)
        first = layout.startswith("NC")
        # A sequence is an image of width one.
        flat = n - self._RANK
        if flat:
            inputs = array_ops.expand_dims(inputs, n + 1 if first else n)

        def whole(sizes):
            sizes = list(sizes) + [1] * flat
            return [1, 1] + sizes if first else [1] + sizes + [1]

        outputs = self._POOL(inputs, whole(self.pool_size), whole(self.strides), self.padding,
                             data_format=layout)
        return array_ops.squeeze(outputs, n + 1 if first else n) if flat else outputs


@export("layers.MaxPooling1D")
class MaxPooling1D(_Pooling):
    _RANK, _POOL = 1, staticmethod(pooling_ops.max_pool)


@export("layers.AveragePooling1D")
class AveragePooling1D(_Pooling):
    _RANK, _POOL = 1, staticmethod(pooling_ops.avg_pool)


@export("layers.MaxPooling2D")
class MaxPooling2D(_Pooling):
    _RANK, _POOL = 2, staticmethod(pooling_ops.max_pool)


@export("layers.AveragePooling2D")
class AveragePooling2D(_Pooling):
    _RANK, _POOL = 2, staticmethod(pooling_ops.avg_pool)


@export("layers.MaxPooling3D")
class MaxPooling3D(_Pooling):
    _RANK, _POOL = 3, staticmethod(pooling_ops.max_pool3d)


@export("layers.AveragePooling3D")
class AveragePooling3D(_Pooling):
    _RANK, _POOL = 3, staticmethod(pooling_ops.avg_pool3d)


def _function(cls):
    @base.called("%s_pooling%dd" % ("max" if "Max" in cls.__name__ else "average", cls._RANK))
    def function(inputs, pool_size, strides, padding="valid", data_format="channels_last",
                 name=None):
        return cls(pool_size, strides, padding=padding, data_format=data_format,
                   name=name).apply(inputs)
    return function


max_pooling1d = export("layers.max_pooling1d")(_function(MaxPooling1D))
average_pooling1d = export("layers.average_pooling1d")(_function(AveragePooling1D))
max_pooling2d = export("layers.max_pooling2d")(_function(MaxPooling2D))
average_pooling2d = export("layers.average_pooling2d")(_function(AveragePooling2D))
max_pooling3d = export("layers.max_pooling3d")(_function(MaxPooling3D))
average_pooling3d = export("layers.average_pooling3d")(_function(AveragePooling3D))
