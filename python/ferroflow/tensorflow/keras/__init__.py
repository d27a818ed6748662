"""`import ferroflow.tensorflow.keras as hvd`, for models of `tf.keras`: the same as
`ferroflow.keras`."""

import sys

from ferroflow.keras import *  # noqa: F401, F403
from ferroflow.keras import callbacks, elastic

# Horovod's users import these by name, too.
sys.modules[f"{__name__}.callbacks"] = callbacks
sys.modules[f"{__name__}.elastic"] = elastic
