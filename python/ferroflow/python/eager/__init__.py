"""TensorFlow's modules about eager execution, which this package does not have."""
