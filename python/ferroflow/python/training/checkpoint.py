"""`tf.train.Checkpoint`: saves variables under the names by which objects hold them.

The files are those of TensorFlow: the keys of the variables, and a description of the objects.
"""

import os

from ferroflow.core._messages import message_class
from ferroflow.python.framework import constant_op, dtypes, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.ops import state_ops, variables
from ferroflow.python.training import checkpoint_management, py_checkpoint_reader
from ferroflow.python.training import optimizer as optimizer_module
from ferroflow.python.training import saver as saver_module
from ferroflow.python.training.saving import saveable_object

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


def _escaped(name):
    """A name as a part of a key."""
    return name.replace(".", "..").replace("/", ".S")


def _is_tracked(value):
    """Whether a value is, or may hold, variables."""
    from ferroflow.python.layers import base

    kinds = (variables.Variable, optimizer_module.Optimizer, base.Layer, Checkpoint, list, tuple, dict)
    return isinstance(value, kinds)


def _children(value):
    """The (name, object) pairs that an object holds."""
    if isinstance(value, Checkpoint):
        return list(value._held.items())
    if isinstance(value, variables.Variable):
        return []
    if isinstance(value, optimizer_module.Optimizer):
        graph = ops.get_default_graph()
        own = [(name, v) for (name, owner), v in value._non_slot_dict.items() if owner is None or owner is graph]
        return sorted(own, key=lambda pair: pair[0])
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value) if _is_tracked(v)]
    if isinstance(value, dict):
        return [(str(k), value[k]) for k in sorted(value, key=str) if _is_tracked(value[k])]
    named = ((name, v) for name, v in vars(value).items() if not name.startswith("_"))
    return [(name, v) for name, v in named if _is_tracked(v) and v is not value]


class _Objects:
    """All objects below a root: their numbers, paths, children and slot variables."""

    def __init__(self, root):
        self.nodes, self.paths, self.numbers, self.children = [root], [()], {id(root): 0}, []
        at = 0
        while at < len(self.nodes):
            held = []
            for name, child in _children(self.nodes[at]):
                if id(child) not in self.numbers:
                    self._add(child, self.paths[at] + (_escaped(name),))
                held.append((name, self.numbers[id(child)]))
            self.children.append(held)
            at += 1
        self.slots = [self._slots_of(node) for node in list(self.nodes)]
        self.children += [[] for _ in range(len(self.nodes) - len(self.children))]
        self.slots += [[] for _ in range(len(self.nodes) - len(self.slots))]

    def _add(self, node, path):
        self.numbers[id(node)] = len(self.nodes)
        self.nodes.append(node)
        self.paths.append(path)

    def _slots_of(self, node):
        """The (number of the variable, name of the slot, number of the slot variable) of an optimizer."""
        if not isinstance(node, optimizer_module.Optimizer):
            return []
        found = []
        tracked = [v for v in self.nodes if isinstance(v, variables.Variable)]
        for name in node.get_slot_names():
            for variable in tracked:
                slot = node.get_slot(variable, name)
                if slot is None:
                    continue
                if id(slot) not in self.numbers:
                    place = self.paths[self.numbers[id(variable)]]
                    self._add(slot, place + (".OPTIMIZER_SLOT",) + self.paths[self.numbers[id(node)]] + (_escaped(name),))
                found.append((self.numbers[id(variable)], name, self.numbers[id(slot)]))
        return found

    def key(self, number):
        return "/".join(self.paths[number] + (".ATTRIBUTES", _VALUE))

    def variables(self):
        """The (number, variable) pairs."""
        return [(i, v) for i, v in enumerate(self.nodes) if isinstance(v, variables.Variable)]

    def message(self):
        graph = message_class("tensorflow.TrackableObjectGraph")()
        for i, node in enumerate(self.nodes):
            made = graph.nodes.add()
            for name, child in self.children[i]:
                made.children.add(node_id=child, local_name=name)
            for variable, name, slot in self.slots[i]:
                made.slot_variables.add(original_variable_node_id=variable, slot_name=name, slot_variable_node_id=slot)
            if isinstance(node, variables.Variable):
                made.attributes.add(name=_VALUE, full_name=node.op.name, checkpoint_key=self.key(i))
        return graph


class _Description(saveable_object.SaveableObject):
    """The description of the objects, as a tensor of the checkpoint."""

    def __init__(self, text):
        tensor = constant_op.constant(text, dtype=dtypes.string)
        spec = saveable_object.SaveSpec(tensor, "", OBJECT_GRAPH_KEY, dtypes.string, tensor.device)
        super().__init__(tensor, [spec], OBJECT_GRAPH_KEY)

    def restore(self, restored_tensors, restored_shapes):
        return ops.apply_op("NoOp", None, [])


class Checkpoint:
    """Groups objects with variables, and saves and restores all of them."""

    def __init__(self, **kwargs):
        for name, value in sorted(kwargs.items()):
            if not _is_tracked(value):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), got {value}. "
                    "If you believe this object should be trackable (i.e. it is part of the TensorFlow Python API and manages "
                    "state), please open an issue.")
            setattr(self, name, value)
        self._counter, self._count_up, self._savers = None, None, {}

    @property
    def _held(self):
        held = {name: value for name, value in vars(self).items() if not name.startswith("_") and _is_tracked(value)}
        if self._counter is not None:
            held["save_counter"] = self._counter
        return held

    @property
    def save_counter(self):
        """A variable that counts calls of `save`."""
        self._make_counter()
        return self._counter

    def _make_counter(self):
        if self._counter is None:
            self._counter = variables.VariableV1(0, trainable=False, dtype=dtypes.int64, name="save_counter")

    def write(self, file_prefix, session=None):
        """Writes a checkpoint under this very name, and returns the name."""
        session = _session(session)
        objects = _Objects(self)
        text = objects.message().SerializeToString()
        # A new description needs new operations.
        saver = self._savers.get((id(session.graph), text))
        if saver is None:
            with session.graph.as_default():
                named = {objects.key(i): v for i, v in objects.variables()}
                named[OBJECT_GRAPH_KEY] = _Description(text)
                saver = saver_module.Saver(named, max_to_keep=None, sharded=True)
            self._savers[id(session.graph), text] = saver
        file_prefix = os.fspath(file_prefix)
        folder = os.path.dirname(file_prefix)
        if folder:
            file_io.recursive_create_dir(folder)
        return saver.save(session, file_prefix, write_meta_graph=False, write_state=False)

    def save(self, file_prefix, session=None):
        """Writes a checkpoint with the next number, and notes it as the latest of its folder."""
        session = _session(session)
        path = self.write("%s-%d" % (os.fspath(file_prefix), self._next_number(session)), session)
        checkpoint_management.update_checkpoint_state_internal(
            os.path.dirname(path), path, [path], save_relative_paths=True)
        return path

    def _next_number(self, session):
        """Counts up in a session."""
        with session.graph.as_default():
            if self._counter is None:
                self._make_counter()
                session.run(self._counter.initializer)
            if self._count_up is None:
                self._count_up = state_ops.assign_add(self._counter, 1)
        return session.run(self._count_up)

    def restore(self, save_path):
        """Prepares to restore. The object that it returns does so in a session."""
        if save_path is None:
            return _LoadStatus(self, None)
        reader = py_checkpoint_reader.NewCheckpointReader(os.fspath(save_path))
        # As in TensorFlow, a restored object has a counter.
        self._make_counter()
        return _LoadStatus(self, os.fspath(save_path), reader)



def _session(session):
    session = session or ops.get_default_session()
    if session is None:
        raise RuntimeError("When executing eagerly is off, pass a session or use a `with tf.Session():` block.")
    return getattr(session, "_sess", session) if not hasattr(session, "graph") else session


class _LoadStatus:
    """The values found for each variable of the objects."""

    def __init__(self, root, path, reader=None):
        self._root, self._path, self._reader = root, path, reader
        self._saved = None
        if reader is not None and reader.has_tensor(OBJECT_GRAPH_KEY):
            value = reader.get_tensor(OBJECT_GRAPH_KEY)
            text = value if isinstance(value, bytes) else value.item()
            self._saved = message_class("tensorflow.TrackableObjectGraph").FromString(text)

    def _matches(self):
        """The objects, {number of a variable: key}, and the numbers of saved objects that were found."""
        objects = _Objects(self._root)
        if self._reader is None:
            return objects, {}, set()
        if self._saved is None:
            # A checkpoint of tf.train.Saver: names are those of the variables.
            named = {i: v.op.name for i, v in objects.variables() if self._reader.has_tensor(v.op.name)}
            return objects, named, set()
        pairs, waiting = {0: 0}, [(0, 0)]
        while waiting:
            ours, theirs = waiting.pop(0)
            saved = {child.local_name: child.node_id for child in self._saved.nodes[theirs].children}
            for name, child in objects.children[ours]:
                if name in saved and child not in pairs:
                    pairs[child] = saved[name]
                    waiting.append((child, saved[name]))
        back = {theirs: ours for ours, theirs in pairs.items()}
        for ours, theirs in list(pairs.items()):
            slots = {(v, name): slot for v, name, slot in objects.slots[ours]}
            for slot in self._saved.nodes[theirs].slot_variables:
                found = slots.get((back.get(slot.original_variable_node_id), slot.slot_name))
                if found is not None:
                    pairs[found] = slot.slot_variable_node_id
        keys = {}
        for i, _ in objects.variables():
            if i in pairs:
                for attribute in self._saved.nodes[pairs[i]].attributes:
                    if attribute.name == _VALUE:
                        keys[i] = attribute.checkpoint_key
        return objects, keys, set(pairs.values())

    def _unmatched(self):
        objects, keys, _ = self._matches()
        return [v for i, v in objects.variables() if i not in keys]

    def _need_checkpoint(self):
        if self._reader is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    def assert_consumed(self):
        """Fails unless each saved object and each variable has its counterpart."""
        self._need_checkpoint()
        self.assert_existing_objects_matched()
        _, _, found = self._matches()
        for i, node in enumerate(self._saved.nodes if self._saved is not None else ()):
            if i not in found and node.attributes:
                raise AssertionError(f"Unresolved object in checkpoint: {node.attributes[0].checkpoint_key}")
        return self

    def assert_existing_objects_matched(self):
        """Fails unless each variable has a saved value."""
        self._need_checkpoint()
        missing = [v for v in self._unmatched() if v is not self._root._counter]
        if missing:
            raise AssertionError("Found %d Python objects that were not bound to checkpointed values, likely due to changes in the "
                                 "Python program. Showing %d of them: %s" % (len(missing), min(10, len(missing)), missing[:10]))
        return self

    def assert_nontrivial_match(self):
        """Fails if no variable has a saved value."""
        self._need_checkpoint()
        if not self._matches()[1]:
            raise AssertionError("Nothing except the root object matched a checkpointed value.")
        return self

    def expect_partial(self):
        """Says that saved values may stay unused."""
        return self

    def run_restore_ops(self, session=None):
        """Restores the variables that have saved values."""
        self._need_checkpoint()
        session = _session(session)
        objects, keys, _ = self._matches()
        named = {}
        for i, key in keys.items():
            named[key] = objects.nodes[i]
        if not named:
            return
        with session.graph.as_default():
            saver_module.Saver(named, max_to_keep=None).restore(session, self._path)

    def initialize_or_restore(self, session=None):
        """Restores the variables that have saved values, and initializes the others."""
        session = _session(session)
        others = self._unmatched()
        if others:
            session.run([v.initializer for v in others])
        if self._reader is not None:
            self.run_restore_ops(session)
