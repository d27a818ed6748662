"""`tf.summary`: operations that make summaries, and the writer for them."""

from ferroflow.core.framework.summary_pb2 import Summary, SummaryDescription, SummaryMetadata  # noqa: F401
from ferroflow.core.util.event_pb2 import Event, SessionLog, TaggedRunMetadata  # noqa: F401
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.summary import summary_op_util
from ferroflow.python.summary.writer.writer import FileWriter  # noqa: F401
from ferroflow.python.summary.writer.writer_cache import FileWriterCache  # noqa: F401

_SUMMARIES = [ops.GraphKeys.SUMMARIES]


def scalar(name, tensor, collections=None, family=None):
    """A summary of one number."""
    with summary_op_util.summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = ops.apply_op("ScalarSummary", scope, [tag, tensor]).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def image(name, tensor, max_outputs=3, collections=None, family=None):
    """A summary of images: `[batch, height, width, channels]`."""
    with summary_op_util.summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = ops.apply_op("ImageSummary", scope, [tag, tensor], {"max_images": max_outputs}).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def histogram(name, values, collections=None, family=None):
    """A summary of the distribution of values."""
    with summary_op_util.summary_scope(name, family, values=[values], default_name="HistogramSummary") as (tag, scope):
        val = ops.apply_op("HistogramSummary", scope, [tag, values]).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def audio(name, tensor, sample_rate, max_outputs=3, collections=None, family=None):
    """A summary of sounds: `[batch, frames]` or `[batch, frames, channels]`."""
    with summary_op_util.summary_scope(name, family=family, values=[tensor]) as (tag, scope):
        sample_rate = ops.convert_to_tensor(sample_rate, dtype=dtypes.float32, name="sample_rate")
        val = ops.apply_op("AudioSummaryV2", scope, [tag, tensor, sample_rate], {"max_outputs": max_outputs}).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def tensor_summary(name, tensor, summary_description=None, collections=None, summary_metadata=None, family=None, display_name=None):
    """A summary of any tensor, for a plugin of TensorBoard."""
    if summary_metadata is None:
        summary_metadata = SummaryMetadata()
    if summary_description is not None:
        summary_metadata.summary_description = summary_description
    if display_name is not None:
        summary_metadata.display_name = display_name
    with summary_op_util.summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = ops.apply_op("TensorSummaryV2", scope, [tag, tensor, summary_metadata.SerializeToString()]).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def text(name, tensor, collections=None):
    """A summary of texts."""
    tensor = ops.convert_to_tensor(tensor)
    if tensor.dtype != dtypes.string:
        raise ValueError("Expected tensor %s to have dtype string, got %s" % (tensor.name, tensor.dtype))
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name=name, tensor=tensor, summary_metadata=metadata, collections=collections)


text_summary = text


def merge(inputs, collections=None, name=None):
    """One summary with the values of several."""
    name = summary_op_util.clean_tag(name)
    with ops.name_scope(name, "Merge", inputs):
        val = ops.apply_op("MergeSummary", name, [inputs]).outputs[0]
        summary_op_util.collect(val, collections, [])
    return val


def merge_all(key=ops.GraphKeys.SUMMARIES, scope=None, name=None):
    """One summary with all summaries of a collection; None if there are none."""
    summary_ops = ops.get_collection(key, scope=scope)
    return merge(summary_ops, name=name) if summary_ops else None


def all_v2_summary_ops():
    """Operations that write summaries by themselves. There are none in graphs of version 1."""
    return ops.get_collection(ops.GraphKeys._SUMMARY_COLLECTION)


def initialize(graph=None, session=None):
    """For summaries of version 2 only."""
    del graph, session


# Names of the first releases of TensorFlow.


def scalar_summary(tags, values, collections=None, name=None):
    with ops.name_scope(name, "ScalarSummary", [tags, values]) as scope:
        val = ops.apply_op("ScalarSummary", scope, [tags, values]).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def histogram_summary(tag, values, collections=None, name=None):
    with ops.name_scope(name, "HistogramSummary", [tag, values]) as scope:
        val = ops.apply_op("HistogramSummary", scope, [tag, values]).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def image_summary(tag, tensor, max_images=3, collections=None, name=None):
    with ops.name_scope(name, "ImageSummary", [tag, tensor]) as scope:
        val = ops.apply_op("ImageSummary", scope, [tag, tensor], {"max_images": max_images}).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def audio_summary(tag, tensor, sample_rate, max_outputs=3, collections=None, name=None):
    with ops.name_scope(name, "AudioSummary", [tag, tensor]) as scope:
        rate = ops.convert_to_tensor(sample_rate, dtype=dtypes.float32, name="sample_rate")
        val = ops.apply_op("AudioSummaryV2", scope, [tag, tensor, rate], {"max_outputs": max_outputs}).outputs[0]
        summary_op_util.collect(val, collections, _SUMMARIES)
    return val


def merge_summary(inputs, collections=None, name=None):
    with ops.name_scope(name, "MergeSummary", inputs):
        val = ops.apply_op("MergeSummary", name, [inputs]).outputs[0]
        summary_op_util.collect(val, collections, [])
    return val


def merge_all_summaries(key=ops.GraphKeys.SUMMARIES):
    summary_ops = ops.get_collection(key)
    return merge_summary(summary_ops) if summary_ops else None
