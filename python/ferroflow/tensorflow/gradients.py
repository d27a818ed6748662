"""Reduction of lists of gradients."""

import tensorflow as tf

from ferroflow._hvd import core
from ferroflow._hvd.core import global_process_set

from . import mpi_ops
from .compression import Compression


def reduce_gradients(gradients, variables, compression=Compression.none, op=core.Average,
                     gradient_predivide_factor=1.0, sparse_as_dense=False, num_groups=0,
                     groups=None, process_set=global_process_set, prefix="gradient",
                     local=frozenset(), scale_local_gradients=True):
    """The gradients over all ranks. `None` stays None.

    Every gradient is submitted when it is computed, and all are waited for together. The gradients
    of variables whose `id` is in `local` are not reduced, but divided by the number of ranks.
    """
    if core.is_alone() or not process_set.included():
        return list(gradients)
    if local:
        return _partly(gradients, variables, local, scale_local_gradients, dict(
            compression=compression, op=op, gradient_predivide_factor=gradient_predivide_factor,
            sparse_as_dense=sparse_as_dense, num_groups=num_groups, groups=groups,
            process_set=process_set, prefix=prefix))
    before, after = 1.0, 1.0
    if op == core.Average and gradient_predivide_factor != 1.0:
        before, after = 1.0 / gradient_predivide_factor, gradient_predivide_factor
    names = _names(variables, len(gradients), prefix)
    dense, slices, results = [], [], list(gradients)
    for i, g in enumerate(gradients):
        if g is None:
            continue
        if isinstance(g, tf.IndexedSlices):
            if sparse_as_dense or op not in (core.Average, core.Sum):
                g = tf.convert_to_tensor(g)
            else:
                slices.append(i)
                continue
        dense.append((i, g, *compression.compress(g)))
    # Everything is submitted first, so that one wait is enough.
    handles, dtypes, order = [], [], []
    for members, are_together in _groups(dense, variables, num_groups, groups):
        if are_together:
            name = f"{prefix}.group.{names[members[0][0]]}"
            handles.append(mpi_ops._submit([d[2] for d in members], core.ALLREDUCE, name, op,
                                           process_set=process_set, prescale=before,
                                           postscale=after))
            order.extend(members)
            continue
        # The last layers' gradients are computed first.
        for d in reversed(members):
            handles.append(mpi_ops._submit([d[2]], core.ALLREDUCE, names[d[0]], op,
                                           process_set=process_set, prescale=before,
                                           postscale=after))
            order.append(d)
    dtypes.extend(d[2].dtype for d in order)
    for i in slices:
        g = gradients[i]
        for t, part in ((g.values, "values"), (g.indices, "indices")):
            handles.append(mpi_ops._submit([t], core.ALLGATHER, f"{names[i]}.{part}",
                                           process_set=process_set))
            dtypes.append(t.dtype)
    if not handles:
        return results
    reduced, _ = mpi_ops._wait(handles, dtypes, is_alone=False)
    for (i, original, small, ctx), value in zip(order, reduced):
        if not tf.executing_eagerly():
            value.set_shape(small.shape)
        results[i] = compression.decompress(value, ctx)
    gathered = iter(reduced[len(order):])
    for i in slices:
        g, values, indices = gradients[i], next(gathered), next(gathered)
        if not tf.executing_eagerly():
            values.set_shape([None] + list(g.values.shape[1:]))
            indices.set_shape([None])
        if op == core.Average:
            ranks = mpi_ops.size_op(core.set_number(process_set))
            values = values / tf.cast(ranks, values.dtype)
        results[i] = tf.IndexedSlices(values, indices, dense_shape=g.dense_shape)
    return results


def _partly(gradients, variables, local, scale, options):
    """Reduces the gradients of variables that are not local."""
    results, variables = list(gradients), list(variables)
    shared = [i for i, v in enumerate(variables) if id(v) not in local]
    reduced = reduce_gradients([results[i] for i in shared], [variables[i] for i in shared],
                               **options)
    for i, g in zip(shared, reduced):
        results[i] = g
    if scale:
        ranks = options["process_set"].size()
        for i, v in enumerate(variables):
            if id(v) in local and results[i] is not None:
                results[i] = _divided(results[i], ranks)
    return results


def _divided(gradient, by):
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_divided(gradient.values, by), gradient.indices,
                                gradient.dense_shape)
    return gradient / tf.cast(by, gradient.dtype)


def variables_of(layers):
    """The `id`s of the trainable variables of layers, for `local`."""
    layers = [] if layers is None else layers if isinstance(layers, (list, tuple)) else [layers]
    return {id(v) for layer in layers for v in layer.trainable_weights}


def _names(variables, count, prefix):
    """The name of each gradient: its place and its variable's name."""
    variables = list(variables) if variables is not None else [None] * count
    return [f"{prefix}.{i}.{getattr(v, 'name', '')}" for i, v in enumerate(variables)]


def _groups(dense, variables, num_groups, groups):
    """Lists of gradients, and whether they run together."""
    if not dense:
        return []
    if isinstance(groups, int) and groups > 0:
        num_groups, groups = groups, None
    if num_groups and num_groups > 0:
        size, rest = divmod(len(dense), num_groups)
        at, made = 0, []
        for i in range(num_groups):
            end = at + size + (i < rest)
            if end > at:
                made.append((dense[at:end], True))
            at = end
        return made
    if groups:
        of = {id(v): k for k, members in enumerate(groups) for v in members}
        made, rest = {}, []
        variables = list(variables)
        for d in dense:
            k = of.get(id(variables[d[0]]))
            (made.setdefault(k, []) if k is not None else rest).append(d)
        return [(m, True) for m in made.values()] + ([(rest, False)] if rest else [])
    return [(dense, False)]


class _DistributedGradientTape(tf.GradientTape):
    """Mixed into the class of the tape that is wrapped."""

    def __init__(self, tape, options):
        # The wrapped tape records; this one only changes what gradient() returns.
        self.__dict__.update(tape.__dict__)
        self._hvd_options = options
        self._hvd_local = set()

    def register_local_source(self, source):
        """The gradient of this variable stays local."""
        self._hvd_local.add(id(source))

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False,
                 **options):
        gradients = super().gradient(target, sources, output_gradients, **options)
        single = not isinstance(sources, (list, tuple, dict))
        flat = [gradients] if single else list(tf.nest.flatten(gradients, expand_composites=False))
        of = [sources] if single else list(tf.nest.flatten(sources))
        flat = reduce_gradients(flat, of, prefix="tape", local=self._hvd_local,
                                **self._hvd_options)
        return flat[0] if single else tf.nest.pack_sequence_as(gradients, flat)

    def get_local_and_global_gradients(self, target, sources, output_gradients=None,
                                       use_generic_names=False):
        """Pairs of sources and their gradients: those that stay local, and those over all ranks."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        return ([pair for pair in pairs if id(pair[0]) in self._hvd_local],
                [pair for pair in pairs if id(pair[0]) not in self._hvd_local])


def DistributedGradientTape(gradtape, device_dense="", device_sparse="",
                            compression=Compression.none, sparse_as_dense=False, op=core.Average,
                            gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True):
    """A tape whose `gradient()` returns the gradients over all ranks."""
    options = core.gradient_options(
        op, gradient_predivide_factor, compression=compression, sparse_as_dense=sparse_as_dense,
        num_groups=num_groups, groups=groups, process_set=process_set,
        scale_local_gradients=scale_local_gradients)
    cls = type(gradtape.__class__.__name__, (_DistributedGradientTape, gradtape.__class__), {})
    made = cls.__new__(cls)
    _DistributedGradientTape.__init__(made, gradtape, options)
    return made


def PartialDistributedGradientTape(gradtape, device_dense="", device_sparse="",
                                   compression=Compression.none, sparse_as_dense=False,
                                   op=core.Average, gradient_predivide_factor=1.0, num_groups=0,
                                   groups=None, process_set=global_process_set, local_layers=None,
                                   scale_local_gradients=True):
    """A tape that leaves the gradients of some layers to this rank alone."""
    tape = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
        gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    tape._hvd_local.update(variables_of(local_layers))
    return tape
