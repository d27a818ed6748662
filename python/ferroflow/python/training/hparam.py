"""`tf.contrib.training.HParams`: named hyperparameters."""

import json
import numbers
import re

_ASSIGNMENT = re.compile(r"(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:\[(?P<values>[^\]]*)\]|(?P<value>[^,\[]*))(?:$|,\s*)")


def _cast(kind, value, name):
    """The value as the type of a parameter."""
    if issubclass(kind, bool):
        if isinstance(value, str):
            if value.lower() in ("true", "1"):
                return True
            if value.lower() in ("false", "0"):
                return False
            raise ValueError("Could not parse hparam '%s' of type 'bool' with value '%s'" % (name, value))
        if not isinstance(value, (bool, int)):
            raise ValueError("Could not cast hparam '%s' of type 'bool' from value %r" % (name, value))
        return bool(value)
    if issubclass(kind, numbers.Integral) and isinstance(value, float) and not value.is_integer():
        raise ValueError("Could not cast hparam '%s' of type 'int' from value %r" % (name, value))
    if issubclass(kind, numbers.Number) and isinstance(value, bool):
        raise ValueError("Could not cast hparam '%s' of type '%s' from value %r" % (name, kind.__name__, value))
    if issubclass(kind, str) and isinstance(value, numbers.Number):
        raise ValueError("Could not cast hparam '%s' of type 'str' from value %r" % (name, value))
    try:
        return kind(value)
    except ValueError:
        raise ValueError("Could not parse hparam '%s' of type '%s' with value '%s'" % (name, kind.__name__, value)) from None


class HParams:
    """Parameters as attributes: `HParams(learning_rate=0.1, sizes=[32, 16])`."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        if hparam_def is not None:
            raise NotImplementedError("HParams(hparam_def=...) is not supported; pass the values by name")
        self._hparam_types, self._model_structure = {}, model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        if getattr(self, name, None) is not None:
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError("Multi-valued hyperparameters cannot be empty: %s" % name)
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name, value):
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError("Must not pass a list for single-valued parameter: %s" % name)
            setattr(self, name, [_cast(kind, v, name) for v in value])
        else:
            if is_list:
                raise ValueError("Must pass a list for multi-valued parameter: %s." % name)
            setattr(self, name, _cast(kind, value, name))

    def del_hparam(self, name):
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values):
        """Sets parameters from text: `"learning_rate=0.3,sizes=[10,5],sizes[1]=7"`."""
        at = 0
        while at < len(values):
            m = _ASSIGNMENT.match(values, at)
            if not m:
                raise ValueError("Malformed hyperparameter value: %s" % values[at:])
            at = m.end()
            name = m["name"]
            if name not in self._hparam_types:
                raise ValueError("Unknown hyperparameter type for %s" % name)
            kind, is_list = self._hparam_types[name]
            if m["index"] is not None:
                current = list(getattr(self, name))
                current[int(m["index"])] = _cast(kind, m["value"].strip(), name)
                self.set_hparam(name, current)
            elif m["values"] is not None:
                self.set_hparam(name, [_cast(kind, v.strip(), name) for v in m["values"].split(",") if v.strip()])
            elif is_list:
                raise ValueError("Must pass a list for multi-valued parameter: %s." % name)
            else:
                self.set_hparam(name, m["value"].strip())
        return self

    def override_from_dict(self, values_dict):
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json):
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def set_model_structure(self, model_structure):
        self._model_structure = model_structure

    def get_model_structure(self):
        return self._model_structure

    def values(self):
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key, default=None):
        return getattr(self, key) if key in self._hparam_types else default

    def __contains__(self, key):
        return key in self._hparam_types

    def __str__(self):
        return str(sorted(self.values().items()))

    def __repr__(self):
        return "HParams(%s)" % ", ".join("%s=%r" % item for item in sorted(self.values().items()))
