"""Model server: requests a second and latency of Predict over gRPC, beside a Python server of TensorFlow.

Both serve the same SavedModel, an MLP of 64-128-10 units, to clients that send the same serialized request.  The Python
server is a `grpc.server` that calls the loaded signature, as programs without TensorFlow Serving do.  Clients are
processes that keep a number of requests in flight; they neither make nor read tensors, so that the server is the limit.

    pip install --no-deps tensorflow-serving-api==2.15.1
    python bench/serving.py --serve 'target/release/ferroflow serve'
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")
PREDICT = "/tensorflow.serving.PredictionService/Predict"


def export(folder):
    import numpy as np
    import tensorflow as tf
    random = np.random.RandomState(1)
    module = tf.Module()
    module.w = [tf.Variable(random.randn(*shape).astype("f4") * 0.1) for shape in ((64, 128), (128, 10))]
    module.call = tf.function(lambda x: {"y": tf.nn.softmax(tf.nn.relu(x @ module.w[0]) @ module.w[1])},
                              input_signature=[tf.TensorSpec([None, 64], tf.float32, name="x")])
    tf.saved_model.save(module, folder, signatures=module.call.get_concrete_function())


def request(rows):
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2
    message = predict_pb2.PredictRequest()
    message.model_spec.name = "mlp"
    message.inputs["x"].CopyFrom(tf.make_tensor_proto(np.random.RandomState(2).randn(rows, 64).astype("f4")))
    return message.SerializeToString()


def python_server(folder):
    """The peer: TensorFlow behind Python's gRPC."""
    from concurrent import futures

    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, asked, context):
            outputs = signature(**{k: tf.constant(tf.make_ndarray(v)) for k, v in asked.inputs.items()})
            answer = predict_pb2.PredictResponse()
            answer.model_spec.name = asked.model_spec.name
            for name, value in outputs.items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(value.numpy()))
            return answer

    server = grpc.server(futures.ThreadPoolExecutor(8))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"ready grpc://127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


def client(address, message, seconds, flying):
    """Keeps `flying` requests in flight; prints the latencies in µs."""
    import grpc
    channel = grpc.insecure_channel(address)
    call = channel.unary_unary(PREDICT, lambda b: b, lambda b: b)
    call(message, timeout=60)
    end, times, lock = time.perf_counter() + seconds, [], threading.Lock()

    def one():
        mine = []
        while (begin := time.perf_counter()) < end:
            call(message, timeout=60)
            mine.append((time.perf_counter() - begin) * 1e6)
        with lock:
            times.extend(mine)

    threads = [threading.Thread(target=one) for _ in range(flying)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(json.dumps(times))


def measure(command, args, message):
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[1].split("//")[1]
        words = [sys.executable, __file__, "--client", address, "--message", message, "--seconds", str(args.seconds),
                 "--flying", str(args.flying)]
        clients = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(args.clients)]
        times = sorted(t for c in clients for t in json.loads(c.communicate()[0]))
        at = lambda q: times[min(int(len(times) * q), len(times) - 1)]
        return len(times) / args.seconds, at(0.5), at(0.99)
    finally:
        server.terminate()
        server.wait(20)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--serve", default="target/release/ferroflow serve", help="the command of the model server")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--clients", type=int, default=2, help="processes")
    p.add_argument("--flying", type=int, default=4, help="requests in flight of each process")
    p.add_argument("--rows", type=int, default=1)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--client", help=argparse.SUPPRESS)
    p.add_argument("--message", help=argparse.SUPPRESS)
    p.add_argument("--python-server", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.python_server:
        return python_server(args.python_server)
    if args.client:
        with open(args.message, "rb") as f:
            return client(args.client, f.read(), args.seconds, args.flying)
    with tempfile.TemporaryDirectory() as root:
        export(os.path.join(root, "mlp", "1"))
        message = os.path.join(root, "request")
        with open(message, "wb") as f:
            f.write(request(args.rows))
        ours = shlex.split(args.serve) + [os.path.join(root, "mlp"), "--port", "0", "--no-rest"]
        servers = {"ferroflow": ours, "ferroflow, batched": ours + ["--batching"],
                   "TensorFlow in Python": [sys.executable, __file__, "--python-server", os.path.join(root, "mlp", "1")]}
        for _ in range(args.turns):
            for name, command in servers.items():
                rate, median, p99 = measure(command, args, message)
                print(f"{name:22} {rate:8.0f} requests/s   median {median:6.0f} µs   p99 {p99:6.0f} µs", flush=True)


if __name__ == "__main__":
    main()
