"""`tf.keras` in graphs: layers, models, and their parts."""
