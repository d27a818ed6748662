"""What programs use of TensorFlow's compiled part: the reader of checkpoints."""

from ferroflow.python.training.py_checkpoint_reader import NewCheckpointReader  # noqa: F401
