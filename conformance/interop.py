#!/usr/bin/env python
"""Opens with real TensorFlow what a Rust program wrote without it.

    cargo run --release -p ferroflow --example tf_interop -- DIR
    python conformance/interop.py DIR

`cargo xtask conformance` runs both.
"""

import glob
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf2  # noqa: E402

tf = tf2.compat.v1
NEAR = dict(rtol=1e-4, atol=1e-4)


def checkpoint(folder):
    reader = tf2.train.load_checkpoint(folder)
    np.testing.assert_allclose(reader.get_tensor("w"), 2.0, rtol=1e-2)
    np.testing.assert_allclose(reader.get_tensor("b"), 10.0, rtol=1e-2)


def meta_graph(folder):
    """The graph and its variables, as another program goes on with them."""
    latest = tf.train.latest_checkpoint(folder)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(latest + ".meta")
        saver.restore(session, latest)
        names = [v.op.name for v in tf.trainable_variables()]
        assert names == ["w", "b"], names
        x, y = np.float32([-1, 0, 1]), np.float32([8, 10, 12])
        feeds = {"x:0": x, "y:0": y}
        before = session.run("mean_squared_error/Mean:0", feeds)
        assert before < 1e-2, before
        # The training operation is there, too.
        train = tf.get_collection("train_op")[0]
        session.run(train, feeds)
        saver.save(session, os.path.join(folder, "again", "model"))


def graph_def(folder):
    graph = tf.GraphDef()
    with open(os.path.join(folder, "graph.pb"), "rb") as f:
        graph.ParseFromString(f.read())
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph, name="")
        assert g.get_tensor_by_name("x:0").shape.as_list() == [None]


def saved_model(folder):
    path = os.path.join(folder, "saved_model")
    x = np.float32([-1, 0, 2])
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        got = session.run(signature.outputs["y"].name,
                          {signature.inputs["x"].name: x})
        np.testing.assert_allclose(got, 2 * x + 10, rtol=1e-2)
    loaded = tf2.saved_model.load(path)
    again = loaded.signatures["serving_default"](x=tf2.constant(x))["y"]
    np.testing.assert_allclose(again.numpy(), got, **NEAR)


def estimator(folder):
    """Tables, hashes and crosses give in TensorFlow what they gave."""
    (path,) = glob.glob(os.path.join(folder, "export", "*"))
    with open(os.path.join(path, "expected.txt")) as f:
        lines = [line.split(" ", 1) for line in f]
    records = [bytes.fromhex(record) for record, _ in lines]
    expected = np.array([eval(values) for _, values in lines], np.float32)
    loaded = tf2.saved_model.load(path)
    predict = loaded.signatures["predict"]
    got = predict(examples=tf2.constant(records))["probabilities"]
    np.testing.assert_allclose(got.numpy(), expected, **NEAR)
    default = loaded.signatures["serving_default"](tf2.constant(records))
    np.testing.assert_allclose(default["scores"].numpy(), expected, **NEAR)
    assert default["classes"].numpy()[0].tolist() == [b"0", b"1", b"2"]


def events(folder):
    """With TensorBoard's own reader, where it is installed."""
    (path,) = glob.glob(os.path.join(folder, "events*"))
    steps, graphs = [], 0
    for event in tf.train.summary_iterator(path):
        graphs += event.HasField("graph_def")
        steps += [event.step for v in event.summary.value if v.tag == "loss"]
    assert graphs == 1 and steps == list(range(1, 201)), (graphs, len(steps))
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError:
        return
    board = event_accumulator.EventAccumulator(path)
    board.Reload()
    losses = [s.value for s in board.Scalars("loss")]
    assert losses[-1] < 1e-2 < losses[0], losses


def main():
    (folder,) = sys.argv[1:]
    failed = 0
    for check in (checkpoint, meta_graph, graph_def, saved_model, estimator,
                  events):
        try:
            check(folder)
            print("passed  interop %s" % check.__name__, flush=True)
        except Exception as e:  # noqa: BLE001
            failed += 1
            print("FAILED  interop %s: %s" % (check.__name__, e), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
