"""`tf.make_template`: a function whose calls share their variables."""

import functools

from ferroflow.python.framework import ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("make_template")
def make_template(name_, func_, create_scope_now_=False, unique_name_=None, custom_getter_=None, **kwargs):
    """`func_` in a variable scope that its first call makes and later calls use again."""
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """A function and the variable scope of its calls."""

    def __init__(self, name, func, create_scope_now=False, unique_name=None, custom_getter=None):
        if name is None:
            raise ValueError("name cannot be None.")
        self._func, self._name, self._unique_name = func, name, unique_name
        self._custom_getter = custom_getter
        self._scope = None
        self._was_called = False
        if create_scope_now:
            self._make_scope()

    def _make_scope(self):
        with variable_scope.variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter) as scope:
            self._scope = scope

    def __call__(self, *args, **kwargs):
        if self._scope is not None:
            with variable_scope.variable_scope(self._scope, reuse=self._was_called):
                return self._call(args, kwargs)
        with variable_scope.variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter) as scope:
            self._scope = scope
            return self._call(args, kwargs)

    def _call(self, args, kwargs):
        before = len(ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES))
        trainable = len(ops.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES))
        result = self._func(*args, **kwargs)
        if self._was_called and len(ops.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES)) != trainable:
            raise ValueError("Trainable variable created when calling a template after the first time, perhaps you "
                             "used tf.Variable when you meant tf.get_variable")
        if self._was_called and len(ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)) != before:
            from ferroflow.python.platform import tf_logging
            tf_logging.info("New variables created when calling a template after the first time, perhaps you used "
                            "tf.Variable when you meant tf.get_variable")
        self._was_called = True
        return result

    name = property(lambda self: self._name)
    func = property(lambda self: self._func)
    variable_scope = property(lambda self: self._scope)

    @property
    def variable_scope_name(self):
        return None if self._scope is None else self._scope.name

    var_scope = variable_scope

    def _collected(self, key):
        if self._scope is None:
            return []
        prefix = self._scope.name + "/"
        return [v for v in ops.get_collection(key) if v.name.startswith(prefix)]

    @property
    def global_variables(self):
        return self._collected(ops.GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self):
        return self._collected(ops.GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self):
        return self._collected(ops.GraphKeys.TRAINABLE_VARIABLES)

    trainable_weights = trainable_variables

    @property
    def variables(self):
        return self.global_variables + self.local_variables

    weights = variables

    @property
    def non_trainable_variables(self):
        trainable = self.trainable_variables
        return [v for v in self.variables if not any(v is t for t in trainable)]
