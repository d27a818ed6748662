"""Records what TensorFlow makes of the calls in `wrong_calls.py`.

    python tests/record_wrong_calls.py

needs TensorFlow 2.15.1. Only the classes of exceptions, types and shapes are kept.
"""

import gzip
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
PATH = os.path.join(HERE, "fixtures", "wrong_calls.json.gz")


def main():
    import tensorflow.compat.v1 as tf
    import wrong_calls

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {
        "calls": [[call, *wrong_calls.outcome(tf, call)[:2]] for call in wrong_calls.calls()],
        "steps": [[step, *wrong_calls.step_outcome(tf, step)[:2]] for step in wrong_calls.steps()],
    }
    with open(PATH, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0) as packed:
        packed.write(json.dumps(found).encode())
    print("%d calls, %d steps" % (len(found["calls"]), len(found["steps"])))


if __name__ == "__main__":
    main()
