"""Writes the SavedModels that tests/saved_model.rs reads, with TensorFlow 2.15.1.

    python make.py              # writes session/ and function/ beside this file

Both look words up in a table that is initialised from an asset, and multiply a number by a variable; one is saved by a session,
the other from a `tf.function`.
"""
import os
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
tf1 = tf.compat.v1
# Removed at the end: a loader must find the file among the model's assets.
SCRATCH = tempfile.mkdtemp()


def folder(name):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


def words():
    path = os.path.join(SCRATCH, "words.txt")
    with open(path, "w") as f:
        f.write("zero\none\ntwo\n")
    return path


def by_session():
    with tf.Graph().as_default(), tf1.Session() as session:
        file = tf.constant(words())
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, file)
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        word = tf1.placeholder(tf.string, [None], "word")
        x = tf1.placeholder(tf.float32, [None, 2], "x")
        w = tf1.get_variable("w", initializer=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        old = tf1.get_variable("old", initializer=0.5, use_resource=False)
        y = tf.matmul(x, w) + old
        number = table.lookup(word)
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        builder = tf1.saved_model.Builder(folder("session"))
        info = tf1.saved_model.build_tensor_info
        signature = tf1.saved_model.build_signature_def({"x": info(x), "word": info(word)}, {"y": info(y), "number": info(number)}, tf1.saved_model.signature_constants.PREDICT_METHOD_NAME)
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, main_op=tf1.tables_initializer(),
                                             assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS), strip_default_attrs=True)
        builder.save()


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        self.b = tf.Variable(0.5)
        self.file = tf.saved_model.Asset(words())
        self.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            self.file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x"), tf.TensorSpec([None], tf.string, name="word")])
    def serve(self, x, word):
        return {"y": tf.matmul(x, self.w) + self.b, "number": self.table.lookup(word)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="by")])
    def grow(self, by):
        return {"b": self.b.assign_add(by)}


def by_function():
    model = Model()
    path = folder("function")
    tf.saved_model.save(model, path, signatures={"serving_default": model.serve, "grow": model.grow})
    os.remove(os.path.join(path, "fingerprint.pb"))


by_function()
by_session()
shutil.rmtree(SCRATCH)
