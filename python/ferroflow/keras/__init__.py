"""Data-parallel training of Keras models with Horovod's API: `import ferroflow.keras as hvd`.

Where Keras is not installed, this is `tf.keras` of the front end, so that the imports of a program
(`from ferroflow.keras.layers import Dense`) differ from TensorFlow's in one word.
"""

import importlib
import importlib.util
import sys

if importlib.util.find_spec("keras") is not None:
    from ferroflow.keras.api import *  # noqa: F401,F403
else:
    sys.modules[__name__] = importlib.import_module("ferroflow.compat.v1.keras")
