"""Objects that a Saver can write and read."""


class SaveSpec:
    """One tensor of an object: its name in a checkpoint, and its slice."""

    def __init__(self, tensor, slice_spec, name, dtype=None, device=None):
        self._tensor, self.slice_spec, self.name = tensor, slice_spec, name
        if callable(self._tensor):
            if dtype is None or device is None:
                raise AssertionError("When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must be provided.")
            self.dtype, self.device = dtype, device
        else:
            self.dtype = tensor.dtype
            self.device = device if device is not None else tensor.device

    @property
    def tensor(self):
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """An object with one or more tensors; `restore` gives it the values from a checkpoint."""

    def __init__(self, op, specs, name):
        self.op, self.specs, self.name = op, specs, name

    @property
    def optional_restore(self):
        return False

    @property
    def device(self):
        return self.specs[0].device

    def restore(self, restored_tensors, restored_shapes):
        raise ValueError("Calling an abstract method.")
