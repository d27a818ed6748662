"""One task of a cluster served by TensorFlow, until it is stopped."""

import argparse
import json
import os

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--cluster", required=True, help="cluster as JSON")
p.add_argument("--job", required=True)
p.add_argument("--task", type=int, required=True)
p.add_argument("--onednn", choices=["0", "1"], default="0", help="TensorFlow's CPU mode")
args = p.parse_args()

# TensorFlow reads these when it is imported.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = args.onednn
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402

server = tf.distribute.Server(json.loads(args.cluster), job_name=args.job, task_index=args.task)
server.join()
