"""`ferroflow serve` beside TensorFlow: exported models of different kinds, asked by a TensorFlow Serving client.

TensorFlow exports the models and answers the same inputs in this process.  The answers of the server must be equal:
integers and strings exactly, floats to a few units in the last place of float32.  A table of wrong requests must be
refused with TensorFlow Serving's codes.

    pip install --no-deps tensorflow-serving-api==2.15.1
    python conformance/serving.py --serve 'target/release/ferroflow serve'
"""

import argparse
import base64
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="", NO_PROXY="*", no_proxy="*")

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2,
                                     model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc, regression_pb2)

v1 = tf.compat.v1
RNG = np.random.RandomState(7)


# ------------------------------------------------------------------ models


def function_model(folder, function, signature, module=None):
    module = module or tf.Module()
    module.call = tf.function(function, input_signature=signature)
    tf.saved_model.save(module, folder, signatures=module.call.get_concrete_function())


def half_plus_two(folder):
    """Reference variables and a session, as TensorFlow 1 exports."""
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        a = v1.Variable(0.5, use_resource=False, name="a")
        b = v1.Variable(2.0, use_resource=False, name="b")
        y = v1.add(a * x, b, name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    return {"x": np.float32([1, 2, 5])}


def dense(folder):
    module = tf.Module()
    module.w = [tf.Variable(RNG.randn(*shape).astype("f4") * 0.1) for shape in ((64, 128), (128, 10))]
    call = lambda x: {"probabilities": tf.nn.softmax(tf.nn.relu(x @ module.w[0]) @ module.w[1])}
    function_model(folder, call, [tf.TensorSpec([None, 64], tf.float32, name="x")], module)
    return {"x": RNG.randn(5, 64).astype("f4")}


def convolution(folder):
    module = tf.Module()
    module.k = tf.Variable(RNG.randn(3, 3, 1, 8).astype("f4") * 0.3)
    module.w = tf.Variable(RNG.randn(14 * 14 * 8, 10).astype("f4") * 0.05)

    def call(image):
        h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(image, module.k, 1, "SAME")), 2, 2, "SAME")
        logits = tf.reshape(h, [-1, 14 * 14 * 8]) @ module.w
        return {"digit": tf.argmax(logits, 1), "logits": logits}

    function_model(folder, call, [tf.TensorSpec([None, 28, 28, 1], tf.float32, name="image")], module)
    return {"image": RNG.rand(3, 28, 28, 1).astype("f4")}


def recurrent(folder):
    model = tf.keras.Sequential([tf.keras.layers.Input([None, 8]), tf.keras.layers.LSTM(16),
                                 tf.keras.layers.Dense(2)])
    call = lambda sequence: {"out": model(sequence)}
    module = tf.Module()
    module.model = model
    function_model(folder, call, [tf.TensorSpec([None, None, 8], tf.float32, name="sequence")], module)
    return {"sequence": RNG.randn(2, 6, 8).astype("f4")}


def words(folder):
    """A lookup table from an asset file, strings in and out, an embedding."""
    vocabulary = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(vocabulary, "w") as f:
        f.write("\n".join(["the", "cat", "sat", "on", "mat"]))
    module = tf.Module()
    initializer = tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                                tf.lookup.TextFileIndex.LINE_NUMBER)
    module.table = tf.lookup.StaticVocabularyTable(initializer, 2)
    module.embedding = tf.Variable(RNG.randn(7, 4).astype("f4"))

    def call(text):
        tokens = tf.strings.split(tf.strings.lower(text)).to_tensor("")
        ids = module.table.lookup(tokens)
        return {"ids": ids, "mean": tf.reduce_mean(tf.gather(module.embedding, ids), 1),
                "shout": tf.strings.upper(text)}

    function_model(folder, call, [tf.TensorSpec([None], tf.string, name="text")], module)
    return {"text": np.array([b"The cat sat", b"on mat", b"unknown words here"])}


def images(folder):
    """PNG files as bytes, decoded in a loop."""

    def call(image_bytes):
        decode = lambda png: tf.reduce_mean(tf.cast(tf.io.decode_png(png, 3), tf.float32), [0, 1])
        return {"colour": tf.map_fn(decode, image_bytes, fn_output_signature=tf.TensorSpec([3], tf.float32)),
                "copy_bytes": tf.identity(image_bytes)}

    function_model(folder, call, [tf.TensorSpec([None], tf.string, name="image_bytes")])
    png = lambda: tf.io.encode_png(RNG.randint(0, 255, (6, 5, 3)).astype("u1")).numpy()
    return {"image_bytes": np.array([png(), png()], dtype=object)}


def loops(folder):
    """Conditionals and loops that depend on values."""

    def call(n):
        count = lambda n: tf.while_loop(lambda n, i: n > 1, lambda n, i: (
            tf.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), i + 1), [n, tf.constant(0, tf.int64)])[1]
        return {"steps": tf.map_fn(count, n)}

    function_model(folder, call, [tf.TensorSpec([None], tf.int64, name="n")])
    return {"n": np.int64([1, 6, 7, 27])}


def many_types(folder):
    def call(a, b, c, d, e):
        return {"int": a * 2 - 1, "double": b / 3, "not": tf.logical_not(c), "text": tf.strings.join([d, "!"]),
                "byte": e // tf.constant(2, tf.uint8), "half": tf.cast(b, tf.float16)}

    kinds = [("a", tf.int32), ("b", tf.float64), ("c", tf.bool), ("d", tf.string), ("e", tf.uint8)]
    function_model(folder, call, [tf.TensorSpec([None], t, name=n) for n, t in kinds])
    return {"a": np.int32([1, -2]), "b": np.float64([0.1, 1e9]), "c": np.array([True, False]),
            "d": np.array([b"x", "größe".encode()]), "e": np.uint8([7, 255])}


def attention(folder):
    module = tf.Module()
    module.w = [tf.Variable(RNG.randn(16, 16).astype("f4") * 0.2) for _ in range(4)]
    module.scale, module.shift = tf.Variable(tf.ones([16])), tf.Variable(tf.zeros([16]))

    def call(tokens):
        q, k, v = (tf.reshape(tf.einsum("btd,de->bte", tokens, w), [tf.shape(tokens)[0], -1, 4, 4])
                   for w in module.w[:3])
        scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / 2.0)
        mixed = tf.reshape(tf.einsum("bhqk,bkhd->bqhd", scores, v), tf.shape(tokens)) @ module.w[3] + tokens
        mean, variance = tf.nn.moments(mixed, [-1], keepdims=True)
        return {"out": (mixed - mean) * tf.math.rsqrt(variance + 1e-6) * module.scale + module.shift}

    function_model(folder, call, [tf.TensorSpec([None, None, 16], tf.float32, name="tokens")], module)
    return {"tokens": RNG.randn(2, 5, 16).astype("f4")}


def examples(folder):
    """Classify, regress and predict signatures of one model of examples."""
    with v1.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], name="examples")
        features = v1.parse_example(serialized, {
            "x": v1.FixedLenFeature([3], tf.float32), "bias": v1.FixedLenFeature([1], tf.float32, [0.5])})
        w = v1.get_variable("w", initializer=RNG.randn(3, 2).astype("f4"))
        scores = tf.nn.softmax(features["x"] @ w + features["bias"])
        classes = tf.tile(tf.constant([["no", "yes"]]), [tf.shape(serialized)[0], 1])
        value = tf.reduce_sum(features["x"] * features["bias"], 1)
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        make = v1.saved_model.build_signature_def
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], {
            "serving_default": make({"inputs": info(serialized)}, {"classes": info(classes), "scores": info(scores)},
                                    "tensorflow/serving/classify"),
            "regress": make({"inputs": info(serialized)}, {"outputs": info(value)}, "tensorflow/serving/regress"),
            "predict": make({"examples": info(serialized)}, {"scores": info(scores), "value": info(value)},
                            "tensorflow/serving/predict")})
        builder.save()
    return None


MODELS = [half_plus_two, dense, convolution, recurrent, words, images, loops, many_types, attention, examples]


# ------------------------------------------------------------------ the server


class Server:
    def __init__(self, command, config):
        words = shlex.split(command) + ["--model-config", config, "--port", "0", "--rest-port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        assert line and line[0] == "ready", f"the server did not start: {line}"
        self.channel = grpc.insecure_channel(line[1].split("//")[1])
        self.rest = line[2]
        self.predict = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.model = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def close(self):
        self.process.terminate()
        self.process.wait(20)

    def http(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.rest + path, data), timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read())


# ------------------------------------------------------------------ checks


def equal(name, expected, found):
    expected, found = np.asarray(expected), np.asarray(found)
    assert expected.shape == found.shape, f"{name}: shape {found.shape} instead of {expected.shape}"
    if expected.dtype.kind == "f":
        # A float16 or float32 answer may differ by the order of sums.
        tolerance = {2: 2e-3, 4: 2e-5, 8: 1e-12}[expected.dtype.itemsize]
        np.testing.assert_allclose(found.astype("f8"), expected.astype("f8"), tolerance, tolerance, err_msg=name)
    else:
        assert (expected == found).all(), f"{name}: {found} instead of {expected}"


def as_json(value):
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    return [as_json(v) for v in value] if isinstance(value, (list, np.ndarray)) else value


def from_json(value, dtype):
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    if isinstance(value, list):
        return [from_json(v, dtype) for v in value]
    return value.encode() if isinstance(value, str) and dtype.kind in "SO" else value


def check_model(server, name, folder, inputs):
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    expected = {key: value.numpy() for key, value in signature(**{
        key: tf.constant(value) for key, value in inputs.items()}).items()}
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    answer = server.predict.Predict(request, 60)
    assert answer.model_spec.version.value == 1 and answer.model_spec.signature_name == "serving_default"
    assert set(answer.outputs) == set(expected), f"{name}: outputs {set(answer.outputs)}"
    for key, value in expected.items():
        equal(f"{name}.{key}", value, tf.make_ndarray(answer.outputs[key]))
    one = sorted(expected)[0]
    request.output_filter.append(one)
    assert set(server.predict.Predict(request, 60).outputs) == {one}
    # The same by REST, in both formats.
    path = f"/v1/models/{name}:predict"
    lists = {key: as_json(value.tolist()) for key, value in inputs.items()}
    status, column = server.http(path, {"inputs": lists})
    assert status == 200, column
    column = column["outputs"] if len(expected) > 1 else {one: column["outputs"]}
    count = len(next(iter(lists.values())))
    rows = [{key: value[i] for key, value in lists.items()} for i in range(count)]
    status, row = server.http(path, {"instances": rows})
    assert status == 200, row
    row = row["predictions"]
    for key, value in expected.items():
        decode = lambda v: np.array(from_json(v, value.dtype), dtype=value.dtype if value.dtype.kind != "O" else object)
        equal(f"{name}.{key} (column)", value, decode(column[key]))
        picked = [r[key] for r in row] if len(expected) > 1 else row
        equal(f"{name}.{key} (row)", value, decode(picked))


def example(**features):
    make = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))
    return tf.train.Example(features=tf.train.Features(feature={k: make(v) for k, v in features.items()}))


def check_examples(server, folder):
    given = [example(x=[1, 2, 3]), example(x=[-1, 0.5, 2], bias=[2.0])]
    texts = tf.constant([e.SerializeToString() for e in given])
    signatures = tf.saved_model.load(folder).signatures
    expected = {k: v.numpy() for k, v in signatures["predict"](examples=texts).items()}
    classify = classification_pb2.ClassificationRequest()
    classify.model_spec.name = "examples"
    classify.input.example_list.examples.extend(given)
    rows = server.predict.Classify(classify, 60).result.classifications
    assert [[c.label for c in row.classes] for row in rows] == [["no", "yes"]] * 2
    equal("classify", expected["scores"], np.float32([[c.score for c in row.classes] for row in rows]))
    regress = regression_pb2.RegressionRequest()
    regress.model_spec.name, regress.model_spec.signature_name = "examples", "regress"
    regress.input.example_list_with_context.examples.extend(given)
    regress.input.example_list_with_context.context.CopyFrom(example(bias=[1.0]))
    values = [r.value for r in server.predict.Regress(regress, 60).result.regressions]
    with_context = tf.constant([example(x=[1, 2, 3], bias=[1.0]).SerializeToString(), texts[1].numpy()])
    equal("regress", signatures["predict"](examples=with_context)["value"].numpy(), np.float32(values))
    multi = inference_pb2.MultiInferenceRequest()
    for signature, method in (("serving_default", "classify"), ("regress", "regress")):
        task = multi.tasks.add()
        task.model_spec.name, task.model_spec.signature_name = "examples", signature
        task.method_name = "tensorflow/serving/" + method
    multi.input.example_list.examples.extend(given)
    results = server.predict.MultiInference(multi, 60).results
    assert len(results[0].classification_result.classifications) == 2
    equal("multi", expected["value"], np.float32([r.value for r in results[1].regression_result.regressions]))
    status, answer = server.http("/v1/models/examples:classify", {
        "examples": [{"x": [1.0, 2.0, 3.0]}, {"x": [-1.0, 0.5, 2.0], "bias": 2.0}]})
    assert status == 200, answer
    equal("classify (REST)", expected["scores"], np.float32([[c[1] for c in row] for row in answer["results"]]))


def check_errors(server):
    code = grpc.StatusCode

    def predict(name="half_plus_two", version=None, label=None, signature="", inputs=None, outputs=()):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = name, signature
        if version is not None:
            request.model_spec.version.value = version
        if label is not None:
            request.model_spec.version_label = label
        for key, value in (inputs if inputs is not None else {"x": np.float32([1])}).items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        request.output_filter.extend(outputs)
        return lambda: server.predict.Predict(request, 60)

    metadata = get_model_metadata_pb2.GetModelMetadataRequest()
    metadata.model_spec.name = "half_plus_two"
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = "nothing"
    empty = classification_pb2.ClassificationRequest()
    empty.model_spec.name = "examples"
    wrong = regression_pb2.RegressionRequest()
    wrong.model_spec.name = "examples"
    wrong.input.example_list.examples.extend([example(x=[1, 2, 3])])
    bad = classification_pb2.ClassificationRequest()
    bad.model_spec.name = "examples"
    bad.input.example_list.examples.extend([example(y=[1])])
    cases = [
        ("unknown model", predict("nothing"), code.NOT_FOUND),
        ("no name", predict(""), code.INVALID_ARGUMENT),
        ("unknown version", predict(version=9), code.NOT_FOUND),
        ("unknown label", predict(label="canary"), code.INVALID_ARGUMENT),
        ("unknown signature", predict(signature="none"), code.FAILED_PRECONDITION),
        ("missing input", predict(inputs={}), code.INVALID_ARGUMENT),
        ("another input", predict(inputs={"z": np.float32([1])}), code.INVALID_ARGUMENT),
        ("one more input", predict(inputs={"x": np.float32([1]), "z": np.float32([1])}), code.INVALID_ARGUMENT),
        ("wrong type", predict(inputs={"x": np.int32([1])}), code.INVALID_ARGUMENT),
        ("wrong shape", predict("dense", inputs={"x": np.zeros((2, 3), "f4")}), code.INVALID_ARGUMENT),
        ("unknown output", predict(outputs=["z"]), code.INVALID_ARGUMENT),
        ("the same output twice", predict(outputs=["y", "y"]), code.INVALID_ARGUMENT),
        ("no ModelSpec", lambda: server.predict.Predict(predict_pb2.PredictRequest(), 60), code.INVALID_ARGUMENT),
        ("no metadata field", lambda: server.predict.GetModelMetadata(metadata, 60), code.INVALID_ARGUMENT),
        ("status of nothing", lambda: server.model.GetModelStatus(status, 60), code.NOT_FOUND),
        ("no examples", lambda: server.predict.Classify(empty, 60), code.INVALID_ARGUMENT),
        ("not a regression", lambda: server.predict.Regress(wrong, 60), code.INVALID_ARGUMENT),
        ("feature missing", lambda: server.predict.Classify(bad, 60), code.INVALID_ARGUMENT),
    ]
    for name, call, expected in cases:
        try:
            call()
            raise AssertionError(f"{name}: accepted")
        except grpc.RpcError as e:
            assert e.code() == expected, f"{name}: {e.code()} instead of {expected}: {e.details()}"
    return len(cases)


def check_metadata(server, folder):
    from tensorflow.core.protobuf import saved_model_pb2
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "dense"
    request.metadata_field.append("signature_def")
    found = get_model_metadata_pb2.SignatureDefMap()
    assert server.predict.GetModelMetadata(request, 60).metadata["signature_def"].Unpack(found)
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(folder, "saved_model.pb"), "rb") as f:
        model.ParseFromString(f.read())
    for name, signature in model.meta_graphs[0].signature_def.items():
        ours = found.signature_def[name]
        assert ours.method_name == signature.method_name and ours.inputs == signature.inputs, name
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = "dense"
    states = server.model.GetModelStatus(status, 60).model_version_status
    assert [(s.version, s.state) for s in states] == [(1, 30)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--serve", default="target/release/ferroflow serve", help="the command of the server")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as root:
        inputs, folders = {}, {}
        for make in MODELS:
            folders[make.__name__] = os.path.join(root, make.__name__, "1")
            inputs[make.__name__] = make(folders[make.__name__])
        config = os.path.join(root, "models.config")
        with open(config, "w") as f:
            entry = 'config {{ name: "{0}" base_path: "{1}" model_platform: "tensorflow" }}'
            entries = (entry.format(name, os.path.dirname(folder)) for name, folder in folders.items())
            f.write("model_config_list {\n" + "\n".join(entries) + "\n}\n")
        server = Server(args.serve, config)
        failed = 0
        try:
            checks = [(name, lambda n=name: check_model(server, n, folders[n], inputs[n]))
                      for name in inputs if inputs[name] is not None]
            checks += [("examples", lambda: check_examples(server, folders["examples"])),
                       ("metadata", lambda: check_metadata(server, folders["dense"])),
                       ("errors", lambda: check_errors(server))]
            for name, check in checks:
                try:
                    check()
                    print(f"ok      {name}", flush=True)
                except Exception as e:  # All of them are wanted.
                    failed += 1
                    print(f"FAILED  {name}: {type(e).__name__}: {e}", flush=True)
        finally:
            server.close()
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
