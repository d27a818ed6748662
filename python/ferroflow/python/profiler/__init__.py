"""`tf.profiler`: counts of float operations, parameters, time and memory by name or by type."""
