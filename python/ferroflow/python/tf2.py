"""Whether TensorFlow 2's behaviour is on. This is TensorFlow 1."""


def enabled():
    return False
