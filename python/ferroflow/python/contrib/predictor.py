"""`tf.contrib.predictor`: calls SavedModels as functions."""

from ferroflow.python.client import session as session_lib
from ferroflow.python.framework import ops
from ferroflow.python.saved_model import loader_impl
from ferroflow.python.saved_model import signature_constants
from ferroflow.python.util.api import export


class Predictor:
    """A graph in a session, which answers feeds by name."""

    def __init__(self, session, feeds, fetches):
        self._session, self._feeds, self._fetches = session, feeds, fetches

    session = property(lambda self: self._session)
    graph = property(lambda self: self._session.graph)
    feed_tensors = property(lambda self: self._feeds)
    fetch_tensors = property(lambda self: self._fetches)

    def __call__(self, input_dict):
        unknown = sorted(set(input_dict) - set(self._feeds))
        if unknown:
            raise ValueError("Got unexpected keys in input_dict: {}\nexpected: {}".format(set(unknown), list(self._feeds)))
        return self._session.run(self._fetches, {self._feeds[k]: v for k, v in input_dict.items()})


@export("contrib.predictor.from_saved_model")
def from_saved_model(export_dir, signature_def_key=None, signature_def=None, input_names=None, output_names=None, tags=None,
                     graph=None, config=None):
    """A predictor of an exported model."""
    graph = graph or ops.Graph()
    with graph.as_default():
        session = session_lib.Session(config=config)
        model = loader_impl.load(session, (tags or "serve").split(","), export_dir)
        if input_names is None:
            if signature_def is None:
                key = signature_def_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
                if key not in model.signature_def:
                    raise ValueError("Got signature_def_key '%s'. Available signatures are %s." % (key, sorted(model.signature_def)))
                signature_def = model.signature_def[key]
            input_names = {k: v.name for k, v in signature_def.inputs.items()}
            output_names = {k: v.name for k, v in signature_def.outputs.items()}
        feeds = {k: graph.get_tensor_by_name(v) for k, v in input_names.items()}
        fetches = {k: graph.get_tensor_by_name(v) for k, v in output_names.items()}
    return Predictor(session, feeds, fetches)


@export("contrib.predictor.from_estimator")
def from_estimator(estimator, serving_input_receiver_fn, output_key=None, graph=None, config=None):
    """A predictor of an estimator's last checkpoint."""
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(prefix="predictor-")
    try:
        path = estimator.export_savedmodel(folder, serving_input_receiver_fn)
        return from_saved_model(path.decode() if isinstance(path, bytes) else path, signature_def_key=output_key, graph=graph, config=config)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
