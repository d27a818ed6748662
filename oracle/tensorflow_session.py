"""Runs a case in TensorFlow, as a client in graph mode would."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from case import FOLDER, RAW, STRING, array, tensor_proto

tf1 = tf.compat.v1
tf1.disable_eager_execution()
INVALID_ARGUMENT = 3


class Runner:
    def __init__(self):
        self.config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
        self.config.graph_options.optimizer_options.opt_level = -1
        self.config.graph_options.rewrite_options.disable_meta_optimizer = True
        self.config.experimental.disable_output_partition_graphs = True
        self.options = tf1.RunOptions(timeout_in_ms=5000)
        # Collectives of version 2 need a session with a group key.
        self.collective = tf1.RunOptions(timeout_in_ms=5000, experimental={"collective_graph_key": 1})
        self.key, self.session = None, None
        self.folder = os.path.join(tempfile.mkdtemp(), "oracle")

    def run(self, case):
        """Returns the answers as a serialized GraphDef of constants, and the error. One of them is empty."""
        try:
            session = self.session_of(case)
        except ValueError as e:
            return b"", (INVALID_ARGUMENT, str(e))
        except tf.errors.OpError as e:
            return b"", (e.error_code, e.message)
        feeds = {f"{name}:0": self.placed(value) if t == STRING else value for name, (value, t) in case.feeds.items()}
        options = self.collective if case.op.startswith("Collective") else self.options
        try:
            targets = [session.graph.get_operation_by_name(t) for t in case.targets]
            found = session.run([case.fetches, targets], feeds, options=options)[0]
        except tf.errors.OpError as e:
            return b"", (e.error_code, core_of(e.message))
        except (ValueError, TypeError) as e:
            return b"", (INVALID_ARGUMENT, f"client: {e}")
        answers = graph_pb2.GraphDef()
        for name, value in zip(case.fetches, found):
            # NumPy's string type drops trailing zeros.
            value = np.asarray(value, dtype=object if isinstance(value, bytes) else None)
            dtype = session.graph.get_tensor_by_name(name).dtype.base_dtype
            if dtype == tf.string:
                value = replaced(array(value, STRING), self.folder.encode(), FOLDER.encode())
                proto = tensor_proto(value, STRING)
            else:
                proto = tensor_proto(np.asarray(value), None) if not dtype.is_quantized else quantized(value, dtype)
            node = answers.node.add(name=name.replace(":", "_") + f"_{len(answers.node)}", op="Const")
            node.attr["dtype"].type = proto.dtype
            node.attr["value"].tensor.CopyFrom(proto)
        return answers.SerializeToString(deterministic=True), None

    def placed(self, value):
        """The names of files in an empty folder."""
        if not any(v.startswith(FOLDER.encode()) for v in value.reshape(-1)):
            return value
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        return replaced(value, FOLDER.encode(), self.folder.encode())

    def session_of(self, case):
        key = None if case.stateful else case.graph.SerializeToString(deterministic=True)
        if key is not None and key == self.key:
            return self.session
        if self.session:
            self.session.close()
            self.session, self.key = None, None
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(case.graph, name="")
        self.session, self.key = tf1.Session(graph=graph, config=self.config), key
        return self.session


def replaced(value, old, new):
    out = value.copy()
    flat = out.reshape(-1)
    flat[:] = [v.replace(old, new) for v in flat]
    return flat.reshape(value.shape)


def core_of(message):
    """The kernel's message, without what the client adds to it."""
    lines = message.split("\n")
    for i, line in enumerate(lines):
        if line.startswith("No OpKernel was registered"):
            # Attributes follow in any order.
            return line.split(" used by ")[0]
        if line.startswith("\t [[{{node"):
            return lines[i - 1]
    return message


def quantized(value, dtype):
    proto = tensor_proto(np.ascontiguousarray(value).view(RAW[dtype.name]).reshape(value.shape), None)
    proto.dtype = dtype.as_datatype_enum
    return proto
