"""Saves a model for serving with one call."""

from ferroflow.python.framework import ops
from ferroflow.python.saved_model import builder_impl, signature_constants, signature_def_utils, tag_constants


def simple_save(session, export_dir, inputs, outputs, legacy_init_op=None):
    """Writes a SavedModel with one signature for prediction."""
    signatures = {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature_def_utils.predict_signature_def(inputs, outputs)}
    builder = builder_impl.SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        tags=[tag_constants.SERVING],
        signature_def_map=signatures,
        assets_list=ops.get_collection(ops.GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
