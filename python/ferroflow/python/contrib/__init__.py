"""Pieces of `tf.contrib` that stand for themselves."""
