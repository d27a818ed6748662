"""`tf.contrib.tensorboard.plugins.projector`: which embeddings TensorBoard shows."""

import os

from ferroflow.core import _text
from ferroflow.core import messages
from ferroflow.python.lib.io import file_io
from ferroflow.python.util.api import export

ProjectorConfig = export("contrib.tensorboard.plugins.projector.ProjectorConfig")(messages.ProjectorConfig)
EmbeddingInfo = export("contrib.tensorboard.plugins.projector.EmbeddingInfo")(messages.EmbeddingInfo)
SpriteMetadata = export("contrib.tensorboard.plugins.projector.SpriteMetadata")(messages.SpriteMetadata)


@export("contrib.tensorboard.plugins.projector.visualize_embeddings")
def visualize_embeddings(summary_writer, config):
    """Writes the configuration where TensorBoard looks for it."""
    folder = summary_writer if isinstance(summary_writer, str) else summary_writer.get_logdir()
    if folder is None:
        raise ValueError("Summary writer must have a logdir")
    file_io.write_string_to_file(os.path.join(folder, "projector_config.pbtxt"), _text.MessageToString(config))
