"""`tf.keras` in graphs: layers, models, and what they are made of."""
