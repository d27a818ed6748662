"""`tf.keras.optimizers`: the optimizers of `tf.train` with the arguments of Keras."""

from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import gradients_impl
from ferroflow.python.ops import math_ops
from ferroflow.python.training import optimizer as base
from ferroflow.python.training import optimizers as train
from ferroflow.python.training import training_util
from ferroflow.python.keras import backend
from ferroflow.python.util.api import export


@export("keras.optimizers.Optimizer")
class Optimizer:
    """Wraps an optimizer of `tf.train`. `lr` is a variable, which callbacks can change."""

    def __init__(self, lr, decay=0.0, clipnorm=None, clipvalue=None, **kwargs):
        lr = kwargs.pop("learning_rate", lr)
        if kwargs:
            raise TypeError("Unexpected keyword argument passed to optimizer: " + next(iter(kwargs)))
        self._first_rate, self.decay, self.clipnorm, self.clipvalue = lr, decay, clipnorm, clipvalue
        self.lr = self.iterations = None

    def _make(self, rate):
        raise NotImplementedError

    def train_op(self, loss, variables):
        """The operation of a training step."""
        self.lr = backend.variable(self._first_rate, name="lr")
        self.iterations = backend.variable(0, dtype="int64", name="iterations")
        rate = self.lr.read_value()
        if self.decay:
            rate = rate / (1.0 + self.decay * math_ops.cast(self.iterations.read_value(), rate.dtype))
        pairs = [(g, v) for g, v in zip(gradients_impl.gradients(loss, variables), variables) if g is not None]
        if self.clipnorm:
            pairs = [(clip_ops.clip_by_norm(g, self.clipnorm), v) for g, v in pairs]
        if self.clipvalue:
            pairs = [(clip_ops.clip_by_value(g, -self.clipvalue, self.clipvalue), v) for g, v in pairs]
        return self._make(rate).apply_gradients(pairs, global_step=self.iterations)


@export("keras.optimizers.SGD")
class SGD(Optimizer):
    def __init__(self, lr=0.01, momentum=0.0, decay=0.0, nesterov=False, **kwargs):
        super().__init__(lr, decay, **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def _make(self, rate):
        if self.momentum:
            return _Momentum(rate, self.momentum, self.nesterov)
        return train.GradientDescentOptimizer(rate)


class _Momentum(train.MomentumOptimizer):
    """Keras multiplies the rate before it adds to the velocity; with a constant rate the steps are the same."""

    def __init__(self, rate, momentum, nesterov):
        super().__init__(rate, momentum, use_nesterov=nesterov)


@export("keras.optimizers.RMSprop")
class RMSprop(Optimizer):
    def __init__(self, lr=0.001, rho=0.9, epsilon=None, decay=0.0, **kwargs):
        super().__init__(lr, decay, **kwargs)
        self.rho, self.epsilon = rho, epsilon or backend.epsilon()

    def _make(self, rate):
        return train.RMSPropOptimizer(rate, decay=self.rho, epsilon=self.epsilon)


@export("keras.optimizers.Adagrad")
class Adagrad(Optimizer):
    def __init__(self, lr=0.01, epsilon=None, decay=0.0, **kwargs):
        super().__init__(lr, decay, **kwargs)
        del epsilon

    def _make(self, rate):
        return train.AdagradOptimizer(rate, initial_accumulator_value=backend.epsilon())


@export("keras.optimizers.Adadelta")
class Adadelta(Optimizer):
    def __init__(self, lr=1.0, rho=0.95, epsilon=None, decay=0.0, **kwargs):
        super().__init__(lr, decay, **kwargs)
        self.rho, self.epsilon = rho, epsilon or backend.epsilon()

    def _make(self, rate):
        return train.AdadeltaOptimizer(rate, rho=self.rho, epsilon=self.epsilon)


@export("keras.optimizers.Adam")
class Adam(Optimizer):
    def __init__(self, lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=None, decay=0.0, amsgrad=False, **kwargs):
        super().__init__(lr, decay, **kwargs)
        if amsgrad:
            raise NotImplementedError("Adam: amsgrad is not supported")
        self._given = dict(beta1=beta_1, beta2=beta_2, epsilon=epsilon or backend.epsilon())

    def _make(self, rate):
        return train.AdamOptimizer(rate, **self._given)


class TFOptimizer(Optimizer):
    """Wraps an optimizer of `tf.train`."""

    def __init__(self, optimizer):
        super().__init__(0.0)
        self.optimizer = optimizer

    def train_op(self, loss, variables):
        step = training_util.get_or_create_global_step()
        return self.optimizer.minimize(loss, var_list=variables, global_step=step)


_ALL = {c.__name__.lower(): c for c in (SGD, RMSprop, Adagrad, Adadelta, Adam)}


@export("keras.optimizers.get")
def get(identifier):
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, base.Optimizer):
        return TFOptimizer(identifier)
    if isinstance(identifier, str) and identifier.lower() in _ALL:
        return _ALL[identifier.lower()]()
    raise ValueError("Could not interpret optimizer identifier: %s" % (identifier,))
