"""The operations of a Saver: they write variables to a checkpoint and read them back."""

import os

from ferroflow.core.protobuf import saver_pb2
from ferroflow.python.framework import constant_op, ops
from ferroflow.python.framework import device as pydev
from ferroflow.python.ops import array_ops, control_flow_ops
from ferroflow.python.training.saving import saveable_object, saveable_object_util


class BaseSaverBuilder:
    """Adds save and restore operations to a graph."""

    SaveSpec = saveable_object.SaveSpec
    SaveableObject = saveable_object.SaveableObject
    VariableSaveable = saveable_object_util.ReferenceVariableSaveable
    ResourceVariableSaveable = saveable_object_util.ResourceVariableSaveable
    OpListToDict = staticmethod(saveable_object_util.op_list_to_dict)

    def __init__(self, write_version=saver_pb2.SaverDef.V2):
        self._write_version = write_version

    def save_op(self, filename_tensor, saveables):
        """The operation that writes the saveable objects to one file."""
        names, tensors, slices = [], [], []
        for saveable in saveables:
            for spec in saveable.specs:
                names.append(spec.name)
                tensors.append(spec.tensor)
                slices.append(spec.slice_spec)
        if self._write_version == saver_pb2.SaverDef.V1:
            return ops.apply_op("SaveSlices", "save", [filename_tensor, names, slices, tensors])
        if self._write_version == saver_pb2.SaverDef.V2:
            return ops.apply_op("SaveV2", None, [filename_tensor, names, slices, tensors])
        raise RuntimeError("Unexpected write_version: " + str(self._write_version))

    def bulk_restore(self, filename_tensor, saveables, preferred_shard, restore_sequentially):
        """The tensors of each saveable object, read by an operation of its own."""
        del restore_sequentially
        found = []
        for saveable in saveables:
            device = saveable.device and saveable_object_util.set_cpu0(saveable.device)
            with ops.device(device):
                found.extend(self.restore_op(filename_tensor, saveable, preferred_shard))
        return found

    def restore_op(self, filename_tensor, saveable, preferred_shard):
        del preferred_shard
        found = []
        for spec in saveable.specs:
            op = ops.apply_op("RestoreV2", None, [filename_tensor, [spec.name], [spec.slice_spec]], {"dtypes": [spec.dtype]})
            found.append(op.outputs[0])
        return found

    def sharded_filename(self, filename_tensor, shard, num_shards):
        return ops.apply_op("ShardedFilename", None, [filename_tensor, shard, num_shards]).outputs[0]

    def _AddSaveOps(self, filename_tensor, saveables):
        save = self.save_op(filename_tensor, saveables)
        with ops.control_dependencies([save]):
            with ops.colocate_with(filename_tensor):
                return array_ops.identity(filename_tensor, name="control_dependency")

    def _AddShardedSaveOps(self, filename_tensor, per_device):
        """A file for each device, which are merged at the end. Version 1 files stay apart."""
        if self._write_version == saver_pb2.SaverDef.V2:
            return self._AddShardedSaveOpsForV2(filename_tensor, per_device)
        num_shards = constant_op.constant(len(per_device), name="num_shards")
        saves = []
        for shard, (device, saveables) in enumerate(per_device):
            with ops.device(device):
                saves.append(self._AddSaveOps(self.sharded_filename(filename_tensor, shard, num_shards), saveables))
        with ops.control_dependencies([x.op for x in saves]):
            return ops.apply_op("ShardedFilespec", None, [filename_tensor, num_shards]).outputs[0]

    def _AddShardedSaveOpsForV2(self, checkpoint_prefix, per_device):
        with ops.device("CPU"):
            suffix = array_ops.where(
                ops.apply_op("StaticRegexFullMatch", None, [checkpoint_prefix], {"pattern": "^s3://.*"}).outputs[0],
                constant_op.constant(".part"),
                constant_op.constant(os.path.normpath("_temp/part")),
            )
            temporary = ops.apply_op("StringJoin", None, [[checkpoint_prefix, suffix]]).outputs[0]
        num_shards = constant_op.constant(len(per_device), name="num_shards")
        saves, prefixes, last_device = [], [], None
        for shard, (device, saveables) in enumerate(per_device):
            last_device = device
            with ops.device(saveable_object_util.set_cpu0(device)):
                prefixes.append(self.sharded_filename(temporary, shard, num_shards))
                saves.append(self._AddSaveOps(prefixes[-1], saveables))
        with ops.control_dependencies([x.op for x in saves]):
            with ops.device(saveable_object_util.set_cpu0(last_device)):
                merge = ops.apply_op("MergeV2Checkpoints", None, [prefixes, checkpoint_prefix], {"delete_old_dirs": True})
                with ops.control_dependencies([merge]):
                    return array_ops.identity(checkpoint_prefix)

    def _AddRestoreOps(self, filename_tensor, saveables, restore_sequentially, reshape, preferred_shard=-1, name="restore_all"):
        restored = self.bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        assigns, at = [], 0
        for saveable in saveables:
            shapes = None
            if reshape:
                shapes = []
                for spec in saveable.specs:
                    v = spec.tensor
                    shape = v.get_shape()
                    shapes.append(shape if shape.is_fully_defined() else array_ops.shape(v))
            tensors = restored[at : at + len(saveable.specs)]
            at += len(saveable.specs)
            with ops.control_dependencies(assigns[-1:] if restore_sequentially else []):
                assigns.append(saveable.restore(tensors, shapes))
        return control_flow_ops.group(*assigns, name=name)

    def _AddShardedRestoreOps(self, filename_tensor, per_device, restore_sequentially, reshape):
        restores = []
        for shard, (device, saveables) in enumerate(per_device):
            with ops.device(device):
                restores.append(
                    self._AddRestoreOps(filename_tensor, saveables, restore_sequentially, reshape, preferred_shard=shard, name="restore_shard")
                )
        return control_flow_ops.group(*restores, name="restore_all")

    def _GroupByDevices(self, saveables):
        """The saveable objects of each device."""
        per_device = {}
        for saveable in saveables:
            devices = {pydev.DeviceSpec.from_string(spec.device).to_string() for spec in saveable.specs}
            if len(devices) > 1:
                raise ValueError("All tensors of a saveable object must be on the same device: %s" % saveable.name)
            per_device.setdefault(devices.pop(), []).append(saveable)
        return sorted(per_device.items(), key=lambda item: item[0])

    def build(self, names_to_saveables, reshape=False, sharded=False, max_to_keep=5, keep_checkpoint_every_n_hours=10000.0, name=None, restore_sequentially=False, filename="model"):
        return self._build_internal(
            names_to_saveables, reshape, sharded, max_to_keep, keep_checkpoint_every_n_hours, name, restore_sequentially, filename
        )

    def _build_internal(
        self, names_to_saveables, reshape=False, sharded=False, max_to_keep=5, keep_checkpoint_every_n_hours=10000.0, name=None, restore_sequentially=False, filename="model", build_save=True, build_restore=True
    ):
        """Adds the operations and returns the SaverDef that names them."""
        if not build_save or not build_restore:
            raise ValueError("save and restore operations need to be built together when eager execution is not enabled.")
        saveables = saveable_object_util.validate_and_slice_inputs(names_to_saveables)
        if max_to_keep is None:
            max_to_keep = 0
        with ops.name_scope(name, "save", [saveable.op for saveable in saveables]) as name:
            # Programs feed the name "save/Const:0".
            filename_tensor = array_ops.placeholder_with_default(filename or "model", shape=(), name="filename")
            filename_tensor = array_ops.placeholder_with_default(filename_tensor, shape=(), name="Const")
            if sharded:
                per_device = self._GroupByDevices(saveables)
                save_tensor = self._AddShardedSaveOps(filename_tensor, per_device)
                restore_op = self._AddShardedRestoreOps(filename_tensor, per_device, restore_sequentially, reshape)
            else:
                save_tensor = self._AddSaveOps(filename_tensor, saveables)
                restore_op = self._AddRestoreOps(filename_tensor, saveables, restore_sequentially, reshape)
        return saver_pb2.SaverDef(
            filename_tensor_name=filename_tensor.name,
            save_tensor_name=save_tensor.name,
            restore_op_name=restore_op.name,
            max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )


class BulkSaverBuilder(BaseSaverBuilder):
    """Reads all tensors with one operation."""

    def bulk_restore(self, filename_tensor, saveables, preferred_shard, restore_sequentially):
        del preferred_shard, restore_sequentially
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, slices, types = zip(*[(s.name, s.slice_spec, s.dtype) for s in specs])
        with ops.device("cpu:0"):
            return ops.apply_op("RestoreV2", None, [filename_tensor, list(names), list(slices)], {"dtypes": list(types)}).outputs
