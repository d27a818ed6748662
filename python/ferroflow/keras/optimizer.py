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

    def run(self, gradients, variables, options, local, apply):
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
            apply(_reduced(totals, variables, options, local))
            for total in self.sums:
                total.assign(tf.zeros_like(total))
            return tf.constant(True)

        return tf.cond(tf.equal(self.done % self.count, 0), last, lambda: tf.constant(False))


class _Distributed:
    """What wrapped optimizers of all versions have."""

    def register_local_var(self, var):
        """The gradient of this variable stays local."""
        self._hvd_local.add(id(var))


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
        if self._hvd_passes is None:
            reduced = _reduced(grads, variables, self._hvd_options, self._hvd_local)
            return super().apply(reduced, trainable_variables)
        return self._hvd_passes.run(
            grads, variables, self._hvd_options, self._hvd_local,
            lambda reduced: super(_Keras3, self).apply(reduced, trainable_variables))


class _Keras2(_Distributed):
    """Mixed into an optimizer of Keras 2, new or legacy."""

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        gradients, variables = [g for g, _ in pairs], [v for _, v in pairs]
        if hasattr(self, "build") and not getattr(self, "_built", True):
            self.build(variables)
        if self._hvd_passes is None:
            reduced = _reduced(gradients, variables, self._hvd_options, self._hvd_local)
            return super().apply_gradients(list(zip(reduced, variables)), *args, **kwargs)
        return self._hvd_passes.run(
            gradients, variables, self._hvd_options, self._hvd_local,
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
    passes = None
    if backward_passes_per_step > 1:
        if backend() != "tensorflow":
            raise NotImplementedError(
                "backward_passes_per_step works on TensorFlow; on torch and JAX use the argument "
                "gradient_accumulation_steps of the Keras optimizer")
        passes = _Passes(backward_passes_per_step, average_aggregated_gradients)
    optimizer.__class__ = type(optimizer.__class__.__name__, (base, optimizer.__class__), {
        "__module__": optimizer.__class__.__module__,
    })
    # Not tracked by Keras: these are not parts of the optimizer's state.
    object.__setattr__(optimizer, "_hvd_options", options)
    object.__setattr__(optimizer, "_hvd_passes", passes)
    object.__setattr__(optimizer, "_hvd_local", set())
    return optimizer
