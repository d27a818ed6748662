"""The state of a torch training that survives lost ranks."""

import copy

import torch

from ferroflow._hvd.elastic import ObjectState

from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


class TorchState(ObjectState):
    """Models, optimizers, samplers and plain values. Arguments become attributes."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        kwargs.update(model=model, optimizer=optimizer)
        self._handlers = {}
        plain = {}
        for name, value in kwargs.items():
            handler = _handler_of(value)
            if handler is not None:
                self._handlers[name] = handler
            else:
                plain[name] = value
        super().__init__(**plain)
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)

    def __setattr__(self, name, value):
        if name in self.__dict__.get("_handlers", {}):
            self._handlers[name].set_value(value)
        object.__setattr__(self, name, value)

    def save(self):
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def reset(self):
        for handler in self._handlers.values():
            handler.reset()
        super().reset()


class StateHandler:
    """Saves, restores and synchronizes one value of a state. See `set_handler_registry`."""

    def __init__(self, value):
        self.value = value

    def save(self):
        raise NotImplementedError

    def restore(self):
        raise NotImplementedError

    def sync(self):
        raise NotImplementedError

    def set_value(self, value):
        self.value = value
        self.save()

    def reset(self):
        """After the ranks have changed."""


class _SavedStateHandler(StateHandler):
    """A handler that saves its value from the start."""

    def __init__(self, value):
        super().__init__(value)
        self.save()


class ModelStateHandler(_SavedStateHandler):
    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(self._saved)

    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(_SavedStateHandler):
    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(copy.deepcopy(self._saved))
        self._forget()

    def sync(self):
        self._forget()
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()

    def _forget(self):
        """Drops gradients whose reduction was interrupted."""
        handles = getattr(self.value, "_handles", None)
        if handles is not None:
            handles.clear()
            self.value._ready.clear()
            self.value._synchronized = False
            for p in self.value._passes:
                self.value._passes[p] = self.value.backward_passes_per_step


class SamplerStateHandler(_SavedStateHandler):
    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(self._saved)

    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), 0))
        self.save()

    def reset(self):
        self.value.reset()


# Which handler a value gets, by its type. The first type that fits counts.
_registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry():
    """A list of types and their handlers."""
    return list(_registry)


def set_handler_registry(registry):
    """Sets the types and their handlers, for the states that are made from now on."""
    global _registry
    _registry = list(registry)


def _handler_of(value):
    handler = next((h for kind, h in _registry if isinstance(value, kind)), None)
    return handler(value) if handler is not None else None
