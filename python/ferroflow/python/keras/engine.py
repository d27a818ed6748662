"""`tf.keras.Model` and `tf.keras.Sequential`: layers that are trained together."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.keras import backend
from ferroflow.python.keras import callbacks as callback_lib
from ferroflow.python.keras import losses as loss_lib
from ferroflow.python.keras import optimizers
from ferroflow.python.keras import saving
from ferroflow.python.keras.layer import Layer
from ferroflow.python.keras.layers import InputLayer
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


# TensorFlow has a folder of this name. `_module_aliases.py` finds its modules.
__path__ = []


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _by_depth(nodes, first):
    """The layers from inputs to outputs: by the longest path to an output, then in the order of `first`."""
    depths, of_layers, layers = {}, {}, {}
    for node in reversed(nodes):
        layer = node[0]
        layers[id(layer)] = layer
        depth = of_layers[id(layer)] = depths[id(node)] = max(depths.get(id(node), 0), of_layers.get(id(layer), 0))
        for tensor in nest.flatten(node[1]):
            before = id(getattr(tensor, "_keras_history", None))
            depths[before] = max(depth + 1, depths.get(before, 0))
    return [layers[key] for key in sorted(layers, key=lambda key: (-of_layers[key], first[key]))]


@export("keras.Model", "keras.models.Model")
class Model(Layer):
    """Layers from inputs to outputs; or a subclass with a `call`."""

    def __init__(self, inputs=None, outputs=None, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.inputs = self.outputs = None
        self.optimizer = self.stop_training = None
        self._step = None
        self._graph = ops.get_default_graph()
        if inputs is not None:
            self._connect(inputs, outputs)

    def _connect(self, inputs, outputs):
        self._given = inputs, outputs
        self.inputs, self.outputs = _listed(inputs), _listed(outputs)
        self._nodes = []
        # The order in which layers are met, from the outputs on.
        seen, first = set(), {}

        def visit(tensor):
            node = getattr(tensor, "_keras_history", None)
            if node is None:
                raise ValueError("Output tensors to a Model must be the output of a TensorFlow `Layer` (thus holding past layer "
                                 "metadata). Found: %s" % (tensor,))
            if id(node) in seen:
                return
            seen.add(id(node))
            first.setdefault(id(node[0]), len(first))
            if not any(tensor is i for i in self.inputs):
                for before in nest.flatten(node[1]):
                    visit(before)
            self._nodes.append(node)
        for tensor in self.outputs:
            visit(tensor)
        self._layers.extend(_by_depth(self._nodes, first))
        self.built = True

    def _last(self, at):
        """Input and output: the ones given to the model's constructor."""
        known = self.inputs if at == 1 else self.outputs
        if known is None:
            return super()._last(at)
        return known[0] if len(known) == 1 else known

    def get_config(self):
        """The layers and how they are connected."""
        if self.inputs is None or not hasattr(self, "_nodes"):
            raise NotImplementedError("Model.get_config: the layers of a subclass of Model are not known; override get_config")
        return saving.functional_config(self)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return saving.functional_from_config(cls, config, custom_objects)

    def to_json(self, **kwargs):
        """The architecture as JSON, without weights."""
        return saving.to_json(self, **kwargs)

    @property
    def layers(self):
        return list(self._layers)

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError("No such layer: %s. Existing layers are: %s." % (name, [layer.name for layer in self.layers]))

    def call(self, inputs):
        """Calls the layers again, with other tensors."""
        if self.inputs is None:
            raise NotImplementedError("When subclassing the `Model` class, you should implement a `call()` method.")
        values = {id(old): new for old, new in zip(self.inputs, _listed(inputs))}
        for layer, given, args, kwargs, result in self._nodes:
            if isinstance(layer, InputLayer):
                continue
            if all(id(t) in values for t in nest.flatten(result)):
                continue
            found = layer(nest.map_structure(lambda t: values[id(t)], given), *args, **kwargs)
            for old, new in zip(nest.flatten(result), nest.flatten(found)):
                values[id(old)] = new
        outputs = [values[id(t)] for t in self.outputs]
        return outputs if isinstance(self._given[1], (list, tuple)) else outputs[0]

    def summary(self, line_length=None, positions=None, print_fn=None):
        del positions
        show, width = print_fn or print, line_length or 65
        show('Model: "%s"' % self.name)
        show("_" * width)
        show("%-29s%-26s%s" % ("Layer (type)", "Output Shape", "Param #"))
        show("=" * width)
        for layer in self.layers:
            shape = str(layer.output_shape) if layer._inbound else "multiple"
            show("%-29s%-26s%s" % ("%s (%s)" % (layer.name, type(layer).__name__), shape, layer.count_params()))
        show("=" * width)
        count = [sum(v.get_shape().num_elements() for v in vs) for vs in (self.weights, self.trainable_weights)]
        show("Total params: {:,}".format(count[0]))
        show("Trainable params: {:,}".format(count[1]))
        show("Non-trainable params: {:,}".format(count[0] - count[1]))
        show("_" * width)

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, loss_weights=None, **_):
        """Says how to train. The graph of a step is made with the first data."""
        self.optimizer = optimizers.get(optimizer)
        self.loss, self._metrics, self._loss_weights = loss, list(metrics or []), loss_weights
        self._step = None
        if self.outputs is not None:
            self._prepare()

    @property
    def metrics_names(self):
        self._prepare()
        return ["loss"] + self._metric_names

    def _prepare(self, x=None):
        """Makes the placeholders, the loss, the metrics and the training operation."""
        if self._step is not None:
            return
        if self.optimizer is None:
            raise RuntimeError("You must compile your model before training/testing. Use `model.compile(optimizer, loss)`.")
        with self._graph.as_default():
            if self.outputs is None:
                self._first_call(x)
            per_output = self._per_output(self.loss)
            weights = self._per_output(self._loss_weights) if self._loss_weights else [1.0] * len(self.outputs)
            self._targets, self._sample_weights, total, values = [], [], None, []
            self._metric_names = []
            for i, (output, loss, weight) in enumerate(zip(self.outputs, per_output, weights)):
                target = array_ops.placeholder(dtypes.float32, name="target_%d" % i)
                scale = array_ops.placeholder_with_default([1.0], [None], name="sample_weights_%d" % i)
                self._targets.append(target)
                self._sample_weights.append(scale)
                if loss is None:
                    continue
                function = loss_lib.get(loss)
                shaped = array_ops.reshape(target, array_ops.shape(output)) if (
                    loss_lib.function_of(function) is not loss_lib.sparse_categorical_crossentropy) else target
                each = function.call(shaped, output) if hasattr(function, "reduction") else function(shaped, output)
                mask = getattr(output, "_keras_mask", None)
                if mask is not None:
                    counted = math_ops.cast(mask, each.dtype)
                    each = each * counted / math_ops.reduce_mean(counted)
                rank = each.get_shape().ndims
                if rank is not None and rank > 1:
                    each = math_ops.reduce_mean(each, axis=list(range(1, rank)))
                reduce = math_ops.reduce_sum if getattr(function, "reduction", None) == "sum" else math_ops.reduce_mean
                part = weight * reduce(each * scale)
                total = part if total is None else total + part
                if len(self.outputs) > 1:
                    self._metric_names.append("%s_loss" % self._output_name(i))
                    values.append(part)
                for metric in self._metrics_of(i):
                    chosen = loss_lib.accuracy_for(function, output) if metric in ("accuracy", "acc") else loss_lib.get_metric(metric)
                    name = "acc" if metric in ("accuracy", "acc") else chosen.__name__
                    self._metric_names.append(name if len(self.outputs) == 1 else "%s_%s" % (self._output_name(i), name))
                    hits = chosen(shaped, output)
                    values.append(math_ops.reduce_mean(hits) if mask is None else (
                        math_ops.reduce_sum(hits * counted) / math_ops.reduce_sum(counted)))
            for extra in self.losses:
                total = extra if total is None else total + extra
            if total is None:
                raise ValueError("The model cannot be compiled because it has no loss to optimize.")
            with ops.control_dependencies(None):
                train = self.optimizer.train_op(total, self.trainable_weights)
            self._step = total, values, control_flow_ops.group(train, *self.updates)

    def _per_output(self, value):
        if isinstance(value, dict):
            return [value.get(self._output_name(i)) for i in range(len(self.outputs))]
        if isinstance(value, (list, tuple)):
            return list(value)
        return [value] * len(self.outputs)

    def _metrics_of(self, index):
        if isinstance(self._metrics, dict):
            return _listed(self._metrics.get(self._output_name(index), []))
        return self._metrics

    def _output_name(self, index):
        return self.outputs[index]._keras_history[0].name

    def _first_call(self, x):
        """Calls a subclass with placeholders that fit the data."""
        made = [array_ops.placeholder(dtypes.as_dtype(np.asarray(a).dtype if np.asarray(a).dtype != np.float64 else np.float32),
                                      (None,) + np.asarray(a).shape[1:]) for a in _listed(x)]
        outputs = self(made if isinstance(x, (list, tuple)) else made[0])
        self.inputs, self.outputs = made, _listed(outputs)

    def _recurrent(self):
        """All layers with states, also those within others."""
        def within(layer):
            for inner in layer._layers:
                if hasattr(inner, "state_updates"):
                    yield inner
                yield from within(inner)
        return list(within(self))

    def _state_updates(self):
        return [update.op for layer in self._recurrent() for update in layer.state_updates]

    def reset_states(self):
        """Sets the states of stateful layers to zero."""
        for layer in self._recurrent():
            if layer.stateful:
                layer.reset_states()

    def _ordered(self, data, what):
        if isinstance(data, dict):
            names = [t._keras_history[0].name for t in self.inputs] if what == "x" else [
                self._output_name(i) for i in range(len(self.outputs))]
            return [np.asarray(data[n]) for n in names]
        return [np.asarray(a) for a in _listed(data)]

    def _phase(self, training):
        phase = backend._phases.get(self._graph)
        return {phase: training} if isinstance(phase, ops.Tensor) else {}

    def _run(self, xs, ys, weights, training):
        total, values, train = self._step
        feeds = {**dict(zip(self.inputs, xs)), **dict(zip(self._targets, ys)), **self._phase(training)}
        if weights is not None:
            feeds[self._sample_weights[0]] = weights
        found = self._session().run([total, values, self._state_updates()] + ([train] if training else []), feeds)
        return [float(found[0])] + [float(v) for v in found[1]]

    def _session(self):
        with self._graph.as_default():
            return backend.get_session()

    def _batches(self, xs, ys, weights, size, order):
        for first in range(0, len(order), size):
            rows = order[first:first + size]
            yield [x[rows] for x in xs], [y[rows] for y in ys], None if weights is None else weights[rows]

    def _from(self, data, steps):
        """Batches of a dataset or of a generator."""
        from ferroflow.python.data.ops import dataset_ops

        if hasattr(data, "make_one_shot_iterator") or isinstance(data, dataset_ops.Dataset):
            with self._graph.as_default():
                element = dataset_ops.make_one_shot_iterator(data).get_next()
            from ferroflow.python.framework import errors

            count = 0
            while steps is None or count < steps:
                try:
                    yield self._session().run(element)
                except errors.OutOfRangeError:
                    return
                count += 1
        else:
            for count, batch in enumerate(data):
                if steps is not None and count >= steps:
                    return
                yield batch

    def _mean(self, batches, training, handlers=()):
        totals, count = None, 0
        for i, (xs, ys, weights) in enumerate(batches):
            for handler in handlers:
                handler.on_train_batch_begin(i, {"batch": i, "size": len(xs[0])})
            found = self._run(xs, ys, weights, training)
            totals = np.array(found) * len(xs[0]) + (0 if totals is None else totals)
            count += len(xs[0])
            for handler in handlers:
                handler.on_train_batch_end(i, {"batch": i, "size": len(xs[0]), **dict(zip(self.metrics_names, found))})
            if self.stop_training and training:
                break
        if totals is None:
            raise ValueError("the data has no batch")
        return [float(v) for v in totals / count]

    def _as_batches(self, data, steps):
        for batch in self._from(data, steps):
            yield self._ordered(batch[0], "x"), self._ordered(batch[1], "y"), (np.asarray(batch[2]) if len(batch) > 2 else None)

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose=1, callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
            validation_steps=None, **_):
        """Trains with arrays, a dataset or a generator; returns the numbers of each epoch."""
        arrays = y is not None or isinstance(x, (np.ndarray, list, dict))
        history = callback_lib.History()
        if arrays:
            self._prepare(x)
            xs, ys = self._ordered(x, "x"), self._ordered(y, "y")
            weights = None if sample_weight is None else np.asarray(sample_weight, np.float32)
            if class_weight is not None:
                classes = ys[0].argmax(-1) if ys[0].ndim > 1 and ys[0].shape[-1] > 1 else ys[0].ravel()
                weights = np.array([class_weight[int(c)] for c in classes], np.float32) * (1 if weights is None else weights)
            if validation_split and validation_data is None:
                cut = int(len(xs[0]) * (1 - validation_split))
                validation_data = [a[cut:] for a in xs], [a[cut:] for a in ys]
                xs, ys = [a[:cut] for a in xs], [a[:cut] for a in ys]
                weights = None if weights is None else weights[:cut]
        else:
            self._prepare()
        handlers = list(callbacks or []) + [history]
        self.stop_training = False
        for handler in handlers:
            handler.set_model(self)
            handler.set_params({"epochs": epochs, "batch_size": batch_size, "verbose": verbose, "metrics": self.metrics_names})
            handler.on_train_begin()
        for epoch in range(initial_epoch, epochs):
            for handler in handlers:
                handler.on_epoch_begin(epoch, {})
            if arrays:
                order = np.arange(len(xs[0]))
                if shuffle:
                    np.random.shuffle(order)
                batches = self._batches(xs, ys, weights, batch_size or 32, order)
            else:
                batches = self._as_batches(x, steps_per_epoch)
            logs = dict(zip(self.metrics_names, self._mean(batches, True, handlers)))
            if validation_data is not None:
                if isinstance(validation_data, (tuple, list)):
                    found = self.evaluate(validation_data[0], validation_data[1], batch_size=batch_size, verbose=0)
                else:
                    found = self.evaluate(validation_data, steps=validation_steps, verbose=0)
                logs.update(zip(["val_" + n for n in self.metrics_names], _listed(found)))
            if verbose:
                print("Epoch %d/%d" % (epoch + 1, epochs))
                print(" - ".join("%s: %.4f" % item for item in logs.items()), flush=True)
            for handler in handlers:
                handler.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        for handler in handlers:
            handler.on_train_end()
        return history

    fit_generator = fit

    def evaluate(self, x=None, y=None, batch_size=None, verbose=1, sample_weight=None, steps=None, **_):
        """The loss and the metrics over all data."""
        self._prepare(x)
        if y is not None:
            xs, ys = self._ordered(x, "x"), self._ordered(y, "y")
            weights = None if sample_weight is None else np.asarray(sample_weight, np.float32)
            batches = self._batches(xs, ys, weights, batch_size or 32, np.arange(len(xs[0])))
        else:
            batches = self._as_batches(x, steps)
        found = self._mean(batches, False)
        if verbose:
            print(" - ".join("%s: %.4f" % item for item in zip(self.metrics_names, found)), flush=True)
        return found if len(found) > 1 else found[0]

    evaluate_generator = evaluate

    def predict(self, x, batch_size=None, verbose=0, steps=None, **_):
        """The outputs for all data."""
        del verbose
        if self.outputs is None:
            with self._graph.as_default():
                self._first_call(x)
        if isinstance(x, (np.ndarray, list, dict)):
            xs = self._ordered(x, "x")
            batches = (b[0] for b in self._batches(xs, [], None, batch_size or 32, np.arange(len(xs[0]))))
        else:
            batches = (self._ordered(b[0] if isinstance(b, tuple) else b, "x") for b in self._from(x, steps))
        fetches = [self.outputs, self._state_updates()]
        parts = [self._session().run(fetches, {**dict(zip(self.inputs, xs)), **self._phase(False)})[0] for xs in batches]
        joined = [np.concatenate(p) for p in zip(*parts)]
        return joined if len(joined) > 1 else joined[0]

    predict_generator = predict

    def predict_on_batch(self, x):
        return self.predict(x, batch_size=len(_listed(x)[0]) or 1)

    def train_on_batch(self, x, y, sample_weight=None, class_weight=None):
        del class_weight
        self._prepare(x)
        found = self._run(self._ordered(x, "x"), self._ordered(y, "y"), sample_weight, True)
        return found if len(found) > 1 else found[0]

    def test_on_batch(self, x, y, sample_weight=None):
        self._prepare(x)
        found = self._run(self._ordered(x, "x"), self._ordered(y, "y"), sample_weight, False)
        return found if len(found) > 1 else found[0]

    def _saver(self):
        from ferroflow.python.training import saver

        with self._graph.as_default():
            return saver.Saver(self.weights)

    def save_weights(self, filepath, overwrite=True, save_format=None):
        """Writes a checkpoint with the variables of the model."""
        del overwrite
        if save_format == "h5" or str(filepath).endswith((".h5", ".hdf5", ".keras")):
            raise NotImplementedError("weights are saved as checkpoints of TensorFlow; HDF5 is not supported")
        self._saver().save(self._session(), filepath, write_meta_graph=False)

    def load_weights(self, filepath, by_name=False):
        del by_name
        self._saver().restore(self._session(), filepath)


@export("keras.Sequential", "keras.models.Sequential")
class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers=None, name=None):
        super().__init__(name=name or "sequential")
        self._chain = []
        for layer in layers or []:
            self.add(layer)

    def add(self, layer):
        if not isinstance(layer, Layer):
            raise TypeError("The added layer must be an instance of class Layer. Found: %s" % (layer,))
        if not self._chain and not isinstance(layer, InputLayer) and getattr(layer, "inputs", None) is None and (
                layer._batch_input_shape is not None):
            dtype = "int32" if type(layer).__name__ == "Embedding" else None
            self._chain.append(InputLayer(batch_input_shape=layer._batch_input_shape, dtype=dtype, name=layer._base_name + "_input"))
        self._chain.append(layer)
        self._rebuild()

    def pop(self):
        if not self._chain:
            raise TypeError("There are no layers in the model.")
        self._chain.pop()
        self._rebuild()

    def _rebuild(self):
        self._layers = []
        first = self._chain[0] if self._chain else None
        if isinstance(first, InputLayer):
            if self.outputs is not None and len(self._chain) > 1 and self.outputs[0] is not None and self._tail is self._chain[-2]:
                tensor = self._chain[-1](self.outputs[0])
            else:
                tensor = first.output
                for layer in self._chain[1:]:
                    tensor = layer(tensor)
            self._tail = self._chain[-1]
            self._connect(first.output, tensor)
        self._layers = list(self._chain)

    _tail = None

    def get_config(self):
        """The layers, one after the other."""
        return {"name": self.name, "layers": [saving.serialize(layer) for layer in self._chain]}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        entries = config["layers"] if isinstance(config, dict) else config
        return cls([saving.deserialize(entry, custom_objects) for entry in entries],
                   name=config.get("name") if isinstance(config, dict) else None)

    @property
    def layers(self):
        return [layer for layer in self._chain if not isinstance(layer, InputLayer)]

    def call(self, inputs):
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def predict_classes(self, x, batch_size=None, verbose=0):
        found = self.predict(x, batch_size, verbose)
        return found.argmax(axis=-1) if found.shape[-1] > 1 else (found > 0.5).astype("int32")

    def predict_proba(self, x, batch_size=None, verbose=0):
        return self.predict(x, batch_size, verbose)
