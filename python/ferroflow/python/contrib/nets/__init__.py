"""`tf.contrib.slim.nets`: image networks with TensorFlow's names of variables and end points."""
