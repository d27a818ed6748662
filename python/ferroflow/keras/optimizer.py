"""Keras optimizers that average gradients over all ranks."""

from ferroflow._hvd import core

from .framework import VERSION, backend


class _Wire:
    """A compression that works with every framework."""

    def __init__(self, name):
        self.name = name

    def of(self, framework):
        if framework == "tensorflow":
            from ferroflow.tensorflow.compression import Compression as compressions
        else:
            from ferroflow.torch.compression import Compression as compressions
        return getattr(compressions, self.name)

    def __repr__(self):
        return f"Compression.{self.name}"


class Compression:
    """The compressions that there are."""

    none = _Wire("none")
    fp16 = _Wire("fp16")
    bf16 = _Wire("bf16")


def _reduced(gradients, variables, options, local=frozenset()):
    """The gradients over all ranks, except those of variables whose `id` is in `local`."""
    if core.is_alone():
        return list(gradients)
    if local:
        return _partly(gradients, list(variables), options, local)
    framework = backend()
    options = {k: v for k, v in options.items() if k != "scale_local_gradients"}
    if isinstance(options["compression"], _Wire):
        name = options["compression"].name
        options["compression"] = name if framework == "jax" else \
            options["compression"].of(framework)
    if framework == "tensorflow":
        from ferroflow.tensorflow.gradients import reduce_gradients
        return reduce_gradients(gradients, variables, prefix="keras", **options)
    return _reduced_elsewhere(framework, gradients, options)


def _partly(gradients, variables, options, local):
    results = list(gradients)
    shared = [i for i, v in enumerate(variables) if id(v) not in local]
    reduced = _reduced([results[i] for i in shared], [variables[i] for i in shared], options)
    for i, g in zip(shared, reduced):
        results[i] = g
    if options.get("scale_local_gradients", True):
        ranks = options["process_set"].size()
        for i, v in enumerate(variables):
            if id(v) in local and results[i] is not None:
                results[i] = results[i] * (1.0 / ranks)
    return results


def _reduced_elsewhere(framework, gradients, options):
    present = [g for g in gradients if g is not None]
    op, before, after = options["op"], 1.0, 1.0
    factor = options["gradient_predivide_factor"]
    if op == core.Average and factor != 1.0:
        before, after = 1.0 / factor, factor
    if framework == "torch":
        import torch

        import ferroflow.torch as hvd
        with torch.no_grad():
            reduced = hvd.grouped_allreduce(
                present, name="keras", compression=options["compression"], op=op,
                prescale_factor=before, postscale_factor=after,
                process_set=options["process_set"])
    else:
        import jax.numpy as jnp

        import ferroflow.jax as hvd
        wire = {"fp16": jnp.float16, "bf16": jnp.bfloat16}.get(options["compression"])
        sent = [g.astype(wire) if wire is not None else g for g in present]
        # A rank that joins an elastic job must find the same name, however often the others have
        # traced.
        name = f"keras.{len(sent)}.{sum(g.size for g in sent)}"
        reduced = hvd.grouped_allreduce(sent, name=name, op=op, prescale_factor=before,
                                        postscale_factor=after,
                                        process_set=options["process_set"])
        reduced = [r.astype(g.dtype) for r, g in zip(reduced, present)]
    left = iter(reduced)
    return [None if g is None else next(left) for g in gradients]


class _Passes:
    """Sums gradients of several passes, on TensorFlow."""

    def __init__(self, count, average):
        self.count, self.average = count, average
        self.sums, self.done = None, None

    def run(self, optimizer, gradients, variables, apply):
        """Adds gradients. Applies their sums over all ranks in the last pass."""
        import tensorflow as tf
        if self.sums is None:
            with tf.init_scope():
                self.sums = [tf.Variable(tf.zeros(v.shape, v.dtype), trainable=False)
                             for v in variables]
                self.done = tf.Variable(0, dtype=tf.int64, trainable=False)
        for total, g in zip(self.sums, gradients):
            if g is not None:
                total.assign_add(tf.convert_to_tensor(g))
        self.done.assign_add(1)

        def last():
            factor = self.count if self.average else 1
            totals = [None if g is None else s / tf.cast(factor, s.dtype)
                      for s, g in zip(self.sums, gradients)]
            apply(optimizer._hvd_reduced(totals, variables))
            for total in self.sums:
                total.assign(tf.zeros_like(total))
            return tf.constant(True)

        def other():
            # As in Horovod, each pass is an iteration.
            optimizer.iterations.assign_add(1)
            return tf.constant(False)

        return tf.cond(tf.equal(self.done % self.count, 0), last, other)


class _State:
    """What a distributed optimizer knows besides Keras's own state."""

    def __init__(self, passes):
        self.passes = _Passes(*passes) if passes[0] > 1 else None
        self.local = set()
        # Whether the gradients that are applied next are reduced already.
        self.is_reduced = False


class _Distributed:
    """What wrapped optimizers of all versions have. `wrap` sets the two options of the class, so
    that `from_config` makes a distributed optimizer, too."""

    _hvd_options, _hvd_number_of_passes = None, (1, False)

    @property
    def _hvd_state(self):
        state = self.__dict__.get("_hvd_own_state")
        if state is None:
            state = _State(self._hvd_number_of_passes)
            # Not tracked by Keras: it is no part of the optimizer's state.
            object.__setattr__(self, "_hvd_own_state", state)
        return state

    def _hvd_reduced(self, gradients, variables):
        return _reduced(gradients, variables, self._hvd_options, self._hvd_state.local)

    def register_local_var(self, var):
        """The gradient of this variable stays local."""
        self._hvd_state.local.add(id(var))


class _Keras3(_Distributed):
    """Mixed into an optimizer of Keras 3."""

    def apply(self, grads, trainable_variables=None):
        if trainable_variables is None:
            variables = getattr(self, "_trainable_variables", None)
        else:
            variables = list(trainable_variables)
            if not self.built:
                self.build(variables)
        grads = list(grads)
        if self._hvd_state.passes is None:
            return super().apply(self._hvd_reduced(grads, variables), trainable_variables)
        return self._hvd_state.passes.run(
            self, grads, variables,
            lambda reduced: super(_Keras3, self).apply(reduced, trainable_variables))


    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        # That of other optimizers calls apply().
        if isinstance(self, _loss_scale_optimizer()):
            grads = self._hvd_reduced(list(grads), self._trainable_variables)
        return super().stateless_apply(optimizer_variables, grads, trainable_variables)


def _loss_scale_optimizer():
    from keras.optimizers import LossScaleOptimizer
    return LossScaleOptimizer


def _agree_on_infinities():
    """Lets Keras 3 leave out a step on all ranks if the gradients of one are infinite.

    A model with the policy mixed_float16 puts its distributed optimizer into a LossScaleOptimizer,
    which checks the gradients of its rank before the optimizer reduces them.
    """
    cls = _loss_scale_optimizer()
    of_keras = cls.check_finite
    if hasattr(of_keras, "_hvd_agrees"):
        return

    def check_finite(self, grads):
        finite, inner = of_keras(self, grads), self.inner_optimizer
        return _agreed(finite, inner._hvd_options) if isinstance(inner, _Keras3) else finite

    check_finite._hvd_agrees = True
    cls.check_finite = check_finite


def _agreed(flag, options):
    """Whether a flag is true on all ranks."""
    process_set = options["process_set"]
    if core.is_alone() or not process_set.included():
        return flag
    framework, call = backend(), dict(
        name="keras.finite", op=core.Min, process_set=process_set)
    if framework == "tensorflow":
        import tensorflow as tf

        import ferroflow.tensorflow as hvd
        return hvd.allreduce(tf.cast(flag, tf.float32), **call) > 0
    if framework == "torch":
        import ferroflow.torch as hvd
        return hvd.allreduce(flag.float(), **call) > 0
    import ferroflow.jax as hvd
    return hvd.allreduce(flag.astype("float32"), **call) > 0


class _Keras2(_Distributed):
    """Mixed into an optimizer of Keras 2, new or legacy.

    Gradients are reduced where the program computes them with the optimizer, as in Horovod, and
    else when it applies them. So a LossScaleOptimizer around this one finds the same infinities on
    all ranks. Gradients of several passes are reduced when they are applied.
    """

    def _hvd_pairs(self, pairs):
        """Pairs of reduced gradients and variables."""
        pairs = list(pairs)
        variables = [v for _, v in pairs]
        return list(zip(self._hvd_reduced([g for g, _ in pairs], variables), variables))

    def _hvd_computed(self, pairs):
        """Pairs whose gradients have just been computed."""
        if self._hvd_state.passes is not None:
            return pairs
        self._hvd_state.is_reduced = True
        return self._hvd_pairs(pairs)

    def compute_gradients(self, loss, var_list, tape=None):
        if not hasattr(super(), "compute_gradients"):
            return self._compute_gradients(loss, var_list, tape=tape)
        return self._hvd_computed(super().compute_gradients(loss, var_list, tape))

    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        if not hasattr(super(), "_compute_gradients"):
            return self.compute_gradients(loss, var_list, tape)
        return self._hvd_computed(super()._compute_gradients(loss, var_list, grad_loss, tape))

    def get_gradients(self, loss, params):
        pairs = zip(super().get_gradients(loss, params), params)
        return [g for g, _ in self._hvd_computed(pairs)]

    def _hvd_aggregated(self, pairs):
        state = self._hvd_state
        if state.passes is None and not state.is_reduced:
            pairs = self._hvd_pairs(pairs)
        state.is_reduced = False
        return pairs

    def aggregate_gradients(self, grads_and_vars):
        return super().aggregate_gradients(self._hvd_aggregated(grads_and_vars))

    def _aggregate_gradients(self, grads_and_vars):
        return super()._aggregate_gradients(self._hvd_aggregated(grads_and_vars))

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs, state = list(grads_and_vars), self._hvd_state
        variables = [v for _, v in pairs]
        if hasattr(self, "build") and not getattr(self, "_built", True):
            self.build(variables)
        if state.passes is None:
            try:
                # It calls aggregate_gradients, unless the program says that it has done so.
                return super().apply_gradients(pairs, *args, **kwargs)
            finally:
                state.is_reduced = False
        kwargs["experimental_aggregate_gradients"] = False
        return state.passes.run(
            self, [g for g, _ in pairs], variables,
            lambda reduced: super(_Keras2, self).apply_gradients(
                list(zip(reduced, variables)), *args, **kwargs))


def wrap(optimizer, options, backward_passes_per_step=1, average_aggregated_gradients=False):
    """Makes an optimizer reduce gradients. It stays the same object, with all its state."""
    base = _Keras3 if VERSION >= 3 else _Keras2
    if isinstance(optimizer, base):
        raise ValueError("the optimizer is already distributed")
    if isinstance(optimizer, str):
        import keras
        optimizer = keras.optimizers.get(optimizer)
    if not hasattr(optimizer, "apply_gradients"):
        raise ValueError(f"{type(optimizer).__name__} is not a Keras optimizer")
    if backward_passes_per_step > 1 and backend() != "tensorflow":
        raise NotImplementedError(
            "backward_passes_per_step works on TensorFlow; on torch and JAX use the argument "
            "gradient_accumulation_steps of the Keras optimizer")
    if VERSION >= 3:
        _agree_on_infinities()
    optimizer.__class__ = type(optimizer.__class__.__name__, (base, optimizer.__class__), {
        "__module__": optimizer.__class__.__module__,
        "_hvd_options": options,
        "_hvd_number_of_passes": (backward_passes_per_step, average_aggregated_gradients),
    })
    return optimizer
