"""`tf.distributions`: probability distributions."""
