"""Device names."""



class DeviceSpec:
    """A possibly partial device: job, replica, task, type and index."""

    __slots__ = ("_job", "_replica", "_task", "_type", "_index")

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self._job = None if job is None else str(job)
        self._replica = None if replica is None else int(replica)
        self._task = None if task is None else int(task)
        self._type = _type(device_type)
        self._index = None if device_index is None else int(device_index)

    job = property(lambda self: self._job, lambda self, v: setattr(self, "_job", None if v is None else str(v)))
    replica = property(lambda self: self._replica, lambda self, v: setattr(self, "_replica", None if v is None else int(v)))
    task = property(lambda self: self._task, lambda self, v: setattr(self, "_task", None if v is None else int(v)))
    device_type = property(lambda self: self._type, lambda self, v: setattr(self, "_type", _type(v)))
    device_index = property(lambda self: self._index, lambda self, v: setattr(self, "_index", v))

    @classmethod
    def from_string(cls, spec):
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec):
        self._job = self._replica = self._task = self._type = self._index = None
        splits = [part.split(":") for part in (spec or "").split("/")]
        for part in splits:
            count = len(part)
            if part == [""]:
                continue
            if count == 2 and part[0] == "job":
                self._job = part[1]
            elif count == 2 and part[0] == "replica":
                self._replica = int(part[1])
            elif count == 2 and part[0] == "task":
                self._task = int(part[1])
            elif (count == 1 or count == 2) and part[0].upper() in _TYPES:
                if self._type is not None:
                    raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
                self._type = part[0].upper()
                if count == 2 and part[1] != "*":
                    self._index = int(part[1])
            elif count == 3 and part[0] == "device":
                if self._type is not None:
                    raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
                self._type = _type(part[1])
                if part[2] != "*":
                    self._index = int(part[2])
            elif part[0] != "":
                raise ValueError(f"Unknown attribute '{part[0]}' is encountered while parsing the device spec: '{spec}'.")
        return self

    def to_string(self):
        text = ""
        if self._job is not None:
            text += "/job:" + self._job
        if self._replica is not None:
            text += f"/replica:{self._replica}"
        if self._task is not None:
            text += f"/task:{self._task}"
        if self._type is not None:
            text += f"/device:{self._type}:{'*' if self._index is None else self._index}"
        return text

    def make_merged_spec(self, dev):
        """This spec with the fields of `dev` instead of its own, where `dev` has them."""
        merged = DeviceSpec()
        merged._job = self._job if dev._job is None else dev._job
        merged._replica = self._replica if dev._replica is None else dev._replica
        merged._task = self._task if dev._task is None else dev._task
        merged._type, merged._index = self._type, self._index
        if dev._type is not None:
            merged._type = dev._type
            merged._index = dev._index
        elif dev._index is not None:
            merged._index = dev._index
        return merged

    def merge_from(self, dev):
        merged = self.make_merged_spec(dev)
        for field in self.__slots__:
            setattr(self, field, getattr(merged, field))

    def replace(self, **kwargs):
        fields = dict(job=self._job, replica=self._replica, task=self._task, device_type=self._type, device_index=self._index)
        return type(self)(**{**fields, **kwargs})

    def _key(self):
        return tuple(getattr(self, field) for field in self.__slots__)

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return self.to_string()


_TYPES = ("CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU")


def _type(device_type):
    if device_type is None:
        return None
    text = str(device_type)
    return text.upper() if text.lower() in ("cpu", "gpu") else text


def as_spec(device):
    if isinstance(device, DeviceSpec):
        return device
    if device is None:
        return DeviceSpec()
    if not isinstance(device, str):
        to_string = getattr(device, "to_string", None)
        if to_string is None:
            raise TypeError(f"device must be a string, a function or a DeviceSpec, not {device!r}")
        device = to_string()
    return DeviceSpec.from_string(device)


def is_device_spec(obj):
    return isinstance(obj, DeviceSpec)


def canonical_name(device):
    return "" if device is None else as_spec(device).to_string()


def check_valid(spec):
    DeviceSpec.from_string(spec)


def merge_device(spec):
    """A device function that fills in what an operation's device leaves open."""
    spec = as_spec(spec)

    def function(node_def):
        return spec.make_merged_spec(as_spec(node_def.device or "")).to_string()

    return function


