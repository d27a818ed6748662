"""Records the values that TensorFlow computes for the programs in `value_programs.py`.

    python tests/record_values.py

needs TensorFlow 2.15.1.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
PATH = os.path.join(HERE, "fixtures", "values.npz")


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    import value_programs

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    found = {}
    for name in sorted(value_programs.PROGRAMS):
        for i, value in enumerate(value_programs.run(tf, name)):
            if value.dtype == object:
                value = np.vectorize(lambda b: b.hex())(value).astype("U")
                found["%s/%03d/text" % (name, i)] = value
            else:
                found["%s/%03d" % (name, i)] = value
    np.savez_compressed(PATH, **found)
    print("%d values of %d programs" % (len(found), len(value_programs.PROGRAMS)))


if __name__ == "__main__":
    main()
