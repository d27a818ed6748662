"""`tf.variable_scope` and `tf.get_variable`."""

import enum
import functools
import threading
import weakref

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import variable_store
from ferroflow.python.ops import variables
from ferroflow.python.util.api import export

class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = export("AUTO_REUSE")(_ReuseMode.AUTO_REUSE)


@export("no_regularizer")
def no_regularizer(_):
    return None


@export("VariableScope")
class VariableScope:
    """Defaults for `get_variable`: a prefix of names, reuse, initializer and so on."""

    def __init__(self, reuse, name="", initializer=None, regularizer=None, caching_device=None,
                 partitioner=None, custom_getter=None, name_scope="", dtype=dtypes.float32,
                 use_resource=None, constraint=None):
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._reuse = reuse
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    name = property(lambda self: self._name)
    original_name_scope = property(lambda self: self._name_scope)
    reuse = property(lambda self: self._reuse)
    initializer = property(lambda self: self._initializer)
    dtype = property(lambda self: self._dtype)
    use_resource = property(lambda self: self._use_resource)
    regularizer = property(lambda self: self._regularizer)
    caching_device = property(lambda self: self._caching_device)
    partitioner = property(lambda self: self._partitioner)
    custom_getter = property(lambda self: self._custom_getter)
    constraint = property(lambda self: self._constraint)

    def reuse_variables(self):
        self._reuse = True

    def set_initializer(self, initializer):
        self._initializer = initializer

    def set_dtype(self, dtype):
        self._dtype = dtype

    def set_use_resource(self, use_resource):
        self._use_resource = use_resource

    def set_regularizer(self, regularizer):
        self._regularizer = regularizer

    def set_caching_device(self, caching_device):
        self._caching_device = caching_device

    def set_partitioner(self, partitioner):
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter):
        self._custom_getter = custom_getter

    def get_collection(self, name):
        return ops.get_collection(name, self._name + "/" if self._name else "")

    def trainable_variables(self):
        return self.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self):
        return self.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self):
        return self.get_collection(ops.GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store, name, shape=None, dtype=None, initializer=None,
                     regularizer=None, reuse=None, trainable=None, collections=None,
                     caching_device=None, partitioner=None, validate_shape=True,
                     use_resource=None, custom_getter=None, constraint=None, synchronization=None,
                     aggregation=None):
        full_name = self._name + "/" + name if self._name else name
        if regularizer is None:
            regularizer = self._regularizer
        if caching_device is None:
            caching_device = self._caching_device
        if partitioner is None:
            partitioner = self._partitioner
        if custom_getter is None:
            custom_getter = self._custom_getter
        if reuse is None:
            reuse = self._reuse
        if constraint is None:
            constraint = self._constraint
        # The names of scopes have no part in the names of variables.
        with ops.name_scope(None):
            if dtype is not None and initializer is not None and not callable(initializer):
                found = ops.convert_to_tensor(initializer).dtype.base_dtype
                if found != dtypes.as_dtype(dtype):
                    raise ValueError("Initializer type '%s' and explicit dtype '%s' don't match." %
                                     (found, dtype))
            if initializer is None:
                initializer = self._initializer
            if use_resource is None:
                use_resource = self._use_resource
            if dtype is None:
                dtype = self._dtype
            return var_store.get_variable(
                full_name, shape=shape, dtype=dtype, initializer=initializer,
                regularizer=regularizer, reuse=reuse, trainable=trainable,
                collections=collections, caching_device=caching_device, partitioner=partitioner,
                validate_shape=validate_shape, use_resource=use_resource,
                custom_getter=custom_getter, constraint=constraint,
                synchronization=synchronization, aggregation=aggregation)


class _Current(threading.local):
    """The variable scopes of each graph, for one thread."""

    def __init__(self):
        super().__init__()
        self.by_graph = weakref.WeakKeyDictionary()


_current = _Current()


def _scope_of(graph):
    scope = _current.by_graph.get(graph)
    if scope is None:
        scope = _current.by_graph[graph] = VariableScope(False)
    return scope


def _get_default_variable_store():
    return variable_store.store_of(ops.get_default_graph())


@export("get_variable_scope")
def get_variable_scope():
    return _scope_of(ops.get_default_graph())


@export("get_variable")
def get_variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None,
                 collections=None, caching_device=None, partitioner=None, validate_shape=True,
                 use_resource=None, custom_getter=None, constraint=None,
                 synchronization=variables.VariableSynchronization.AUTO,
                 aggregation=variables.VariableAggregation.NONE):
    """Finds or makes the variable of this name in the current variable scope."""
    return get_variable_scope().get_variable(
        _get_default_variable_store(), name, shape=shape, dtype=dtype, initializer=initializer,
        regularizer=regularizer, trainable=trainable, collections=collections,
        caching_device=caching_device, partitioner=partitioner, validate_shape=validate_shape,
        use_resource=use_resource, custom_getter=custom_getter, constraint=constraint,
        synchronization=synchronization, aggregation=aggregation)


@export("get_local_variable")
def get_local_variable(name, shape=None, dtype=None, initializer=None, regularizer=None,
                       trainable=False, collections=None, caching_device=None, partitioner=None,
                       validate_shape=True, use_resource=None, custom_getter=None,
                       constraint=None,
                       synchronization=variables.VariableSynchronization.AUTO,
                       aggregation=variables.VariableAggregation.NONE):
    if collections:
        collections = list(collections) + [ops.GraphKeys.LOCAL_VARIABLES]
    else:
        collections = [ops.GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=False, collections=collections, caching_device=caching_device,
        partitioner=partitioner, validate_shape=validate_shape, use_resource=use_resource,
        synchronization=synchronization, aggregation=aggregation, custom_getter=custom_getter,
        constraint=constraint)


def _count(counts, name):
    counts[name] = counts.get(name, 0) + 1


def _unique_scope(prefix):
    """A scope name that is not in use yet: `prefix`, `prefix_1` and so on."""
    store = _get_default_variable_store()
    current = get_variable_scope()
    full = current.name + "/" + prefix if current.name else prefix
    if not store.scope_counts.get(full):
        return prefix
    number = 1
    while store.scope_counts.get("%s_%d" % (full, number)):
        number += 1
    return prefix + "_%d" % number


class _PureScope:
    """Changes the current variable scope, without a name scope."""

    def __init__(self, name_or_scope, overrides, old_name_scope):
        self._target = name_or_scope
        self._overrides = overrides
        self._old_name_scope = old_name_scope
        self._entered = []

    def __enter__(self):
        graph = ops.get_default_graph()
        store = _get_default_variable_store()
        old = _scope_of(graph)
        given = self._overrides
        if isinstance(self._target, VariableScope):
            source, name = self._target, self._target.name
            reuse = source.reuse if given["reuse"] is None else given["reuse"]
            original = self._old_name_scope or source.original_name_scope
        else:
            source = old
            name = old.name + "/" + self._target if old.name else self._target
            reuse = given["reuse"] or old.reuse
            original = self._old_name_scope or name
        new = VariableScope(
            reuse, name=name, initializer=source.initializer, regularizer=source.regularizer,
            caching_device=source.caching_device, partitioner=source.partitioner,
            dtype=source.dtype, custom_getter=source.custom_getter, name_scope=original,
            use_resource=source.use_resource, constraint=source.constraint)
        for key in ("initializer", "regularizer", "caching_device", "partitioner", "dtype",
                    "use_resource", "constraint"):
            if given[key] is not None:
                setattr(new, "_" + key, given[key])
        if given["custom_getter"] is not None:
            new._custom_getter = _chain(given["custom_getter"], source.custom_getter)
        self._graph, self._store = graph, store
        self._entered.append((old, dict(store.scope_counts)))
        _current.by_graph[graph] = new
        if isinstance(self._target, VariableScope):
            _close(store.scope_counts, name)
        else:
            _count(store.scope_counts, name)
        return new

    def __exit__(self, *error):
        old, counts = self._entered.pop()
        if isinstance(self._target, VariableScope):
            self._store.scope_counts = counts
        else:
            name = _current.by_graph[self._graph].name
            _close(self._store.scope_counts, name)
        _current.by_graph[self._graph] = old


def _close(counts, name):
    """Forgets the scopes inside of `name`, so that their names can be used again."""
    for key in list(counts):
        if not name or key.startswith(name + "/"):
            counts[key] = 0


def _chain(outer, inner):
    if inner is None:
        return outer

    def both(getter, *args, **kwargs):
        return outer(functools.partial(inner, getter), *args, **kwargs)
    return both


@export("variable_scope")
class variable_scope:
    """`with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):`"""

    def __init__(self, name_or_scope, default_name=None, values=None, initializer=None,
                 regularizer=None, caching_device=None, partitioner=None, custom_getter=None,
                 reuse=None, dtype=None, use_resource=None, constraint=None,
                 auxiliary_name_scope=True):
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._values = [] if values is None else values
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse is not None and reuse is not True and reuse is not False and (
                reuse is not AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError("The auxiliary_name_scope must be `True` or `False`, while get %s" %
                            auxiliary_name_scope)
        self._reuse = reuse if reuse is not False else None
        self._overrides = dict(
            initializer=initializer, regularizer=regularizer, caching_device=caching_device,
            partitioner=partitioner, custom_getter=custom_getter, reuse=self._reuse, dtype=dtype,
            use_resource=use_resource, constraint=constraint)
        self._auxiliary = auxiliary_name_scope
        self._open = []

    def __enter__(self):
        graph = ops._get_graph_from_inputs([v for v in self._values if v is not None])
        graph_scope = graph.as_default() if graph is not ops.get_default_graph() else None
        if graph_scope is not None:
            graph_scope.__enter__()
        try:
            entered = self._enter()
        except BaseException:
            if graph_scope is not None:
                graph_scope.__exit__(None, None, None)
            raise
        self._open.append(entered[1:] + ([graph_scope] if graph_scope is not None else []))
        return entered[0]

    def _enter(self):
        target, overrides = self._name_or_scope, self._overrides
        name_scope, old_scope = None, None
        if target is not None:
            if not isinstance(target, (VariableScope, str)):
                raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
            label = target if isinstance(target, str) else target.name.split("/")[-1]
            if self._auxiliary and label:
                name_scope = ops.name_scope(label)
                old_scope = name_scope.__enter__()
            if not isinstance(target, str):
                old_scope = target.original_name_scope
            pure = _PureScope(target, overrides, old_scope)
        else:
            if self._reuse:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            if self._auxiliary:
                name_scope = ops.name_scope(self._default_name)
                old_scope = name_scope.__enter__()
            unique = _unique_scope(self._default_name)
            pure = _PureScope(unique, overrides, old_scope)
        scope = pure.__enter__()
        return [scope, pure] + ([name_scope] if name_scope is not None else [])

    def __exit__(self, *error):
        for context in self._open.pop():
            context.__exit__(*error)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with variable_scope(self._name_or_scope, self._default_name, self._values,
                                auxiliary_name_scope=self._auxiliary, **self._overrides):
                return function(*args, **kwargs)
        return inside


@export("variable_op_scope")
def variable_op_scope(values, name_or_scope, default_name=None, initializer=None,
                      regularizer=None, caching_device=None, partitioner=None, custom_getter=None,
                      reuse=None, dtype=None, use_resource=None, constraint=None):
    return variable_scope(
        name_or_scope, default_name=default_name, values=values, initializer=initializer,
        regularizer=regularizer, caching_device=caching_device, partitioner=partitioner,
        custom_getter=custom_getter, reuse=reuse, dtype=dtype, use_resource=use_resource,
        constraint=constraint)


@export("variable_creator_scope")
class variable_creator_scope:
    """Routes the creation of variables through a function."""

    def __init__(self, variable_creator):
        self._creator = variable_creator

    def __enter__(self):
        graph = ops.get_default_graph()
        if not hasattr(graph, "_variable_creator_stack_items"):
            graph._variable_creator_stack_items = []
        self._items = graph._variable_creator_stack_items
        self._items.append((0, self._creator))

    def __exit__(self, *error):
        self._items.pop()
        return False
