"""`tf.keras.initializers`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.ops import init_ops
from ferroflow.python.util.api import export

Zeros = export("keras.initializers.Zeros", "keras.initializers.zeros")(init_ops.Zeros)
Ones = export("keras.initializers.Ones", "keras.initializers.ones")(init_ops.Ones)
Constant = export("keras.initializers.Constant", "keras.initializers.constant")(init_ops.Constant)
VarianceScaling = export("keras.initializers.VarianceScaling")(init_ops.VarianceScaling)
Orthogonal = export("keras.initializers.Orthogonal", "keras.initializers.orthogonal")(init_ops.Orthogonal)
Identity = export("keras.initializers.Identity", "keras.initializers.identity")(init_ops.Identity)
Initializer = export("keras.initializers.Initializer")(init_ops.Initializer)


@export("keras.initializers.RandomNormal", "keras.initializers.random_normal", "keras.initializers.normal")
class RandomNormal(init_ops.RandomNormal):
    def __init__(self, mean=0.0, stddev=0.05, seed=None, **kwargs):
        super().__init__(mean=mean, stddev=stddev, seed=seed, **kwargs)


@export("keras.initializers.RandomUniform", "keras.initializers.random_uniform", "keras.initializers.uniform")
class RandomUniform(init_ops.RandomUniform):
    def __init__(self, minval=-0.05, maxval=0.05, seed=None, **kwargs):
        super().__init__(minval=minval, maxval=maxval, seed=seed, **kwargs)


@export("keras.initializers.TruncatedNormal", "keras.initializers.truncated_normal")
class TruncatedNormal(init_ops.TruncatedNormal):
    def __init__(self, mean=0.0, stddev=0.05, seed=None, **kwargs):
        super().__init__(mean=mean, stddev=stddev, seed=seed, **kwargs)


def _scaled(name, scale, mode, distribution):
    def make(seed=None, dtype=dtypes.float32):
        made = init_ops.VarianceScaling(scale=scale, mode=mode, distribution=distribution, seed=seed, dtype=dtype)
        made._keras_name = name
        return made
    return make


glorot_uniform = export("keras.initializers.glorot_uniform", "keras.initializers.GlorotUniform")(_scaled("GlorotUniform", 1.0, "fan_avg", "uniform"))
glorot_normal = export("keras.initializers.glorot_normal", "keras.initializers.GlorotNormal")(_scaled("GlorotNormal", 1.0, "fan_avg", "truncated_normal"))
he_normal = export("keras.initializers.he_normal")(_scaled("HeNormal", 2.0, "fan_in", "truncated_normal"))
he_uniform = export("keras.initializers.he_uniform")(_scaled("HeUniform", 2.0, "fan_in", "uniform"))
lecun_normal = export("keras.initializers.lecun_normal")(_scaled("LecunNormal", 1.0, "fan_in", "truncated_normal"))
lecun_uniform = export("keras.initializers.lecun_uniform")(_scaled("LecunUniform", 1.0, "fan_in", "uniform"))

_ALL = {
    "zeros": Zeros, "zero": Zeros, "ones": Ones, "one": Ones, "constant": Constant, "random_normal": RandomNormal,
    "normal": RandomNormal, "random_uniform": RandomUniform, "uniform": RandomUniform, "truncated_normal": TruncatedNormal,
    "orthogonal": Orthogonal, "identity": Identity, "variance_scaling": VarianceScaling, "glorot_uniform": glorot_uniform,
    "glorot_normal": glorot_normal, "he_normal": he_normal, "he_uniform": he_uniform, "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
}


@export("keras.initializers.get", "keras.initializers.deserialize")
def get(identifier):
    """An initializer by its name."""
    if isinstance(identifier, str):
        found = _ALL.get(identifier) or _ALL.get("".join("_" + c.lower() if c.isupper() else c for c in identifier).lstrip("_"))
        if found is None:
            raise ValueError("Unknown initializer: '%s'. Please ensure you are using a `keras.utils.custom_object_scope` and "
                             "that this object is included in the scope." % identifier)
        return found()
    if isinstance(identifier, dict):
        name = identifier["class_name"]
        made = _ALL.get("".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")) or _ALL.get(name)
        if made is None:
            raise ValueError("Unknown initializer: '%s'." % name)
        return made(**identifier["config"])
    if isinstance(identifier, type):
        return identifier()
    if identifier is None or callable(identifier):
        return identifier
    raise ValueError("Could not interpret initializer identifier: %s" % (identifier,))
