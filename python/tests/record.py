"""Records what TensorFlow builds for the programs in `graph_programs`.

    python tests/record.py [PROGRAM...]

needs TensorFlow 2.15.1.  Without names it records all programs.
"""

import gzip
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
PATH = os.path.join(HERE, "fixtures", "graphs.json.gz")


def main():
    import graph_programs
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    programs = graph_programs.load()
    recorded = {}
    if len(sys.argv) > 1 and os.path.exists(PATH):
        with gzip.open(PATH, "rt") as f:
            recorded = json.load(f)
    for name in sys.argv[1:] or sorted(programs):
        try:
            recorded[name] = graph_programs.build(tf, name)
        except Exception as e:
            raise SystemExit("program %s: %s: %s" % (name, type(e).__name__, e)) from e
    recorded = {k: v for k, v in recorded.items() if k in programs}
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    text = json.dumps(recorded, sort_keys=True, separators=(",", ":"))
    with open(PATH, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as f:
        f.write(text.encode())
    print("%d programs" % len(recorded))


if __name__ == "__main__":
    main()
