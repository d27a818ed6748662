"""Scaffold: the operations and the Saver that a monitored session needs."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops, control_flow_ops, lookup_ops, resources, variables
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.summary import summary
from ferroflow.python.training import saver as training_saver


class Scaffold:
    """The ops of a training session. `finalize` finds or creates the missing ones."""

    def __init__(
        self,
        init_op=None,
        init_feed_dict=None,
        init_fn=None,
        ready_op=None,
        ready_for_local_init_op=None,
        local_init_op=None,
        summary_op=None,
        saver=None,
        copy_from_scaffold=None,
        local_init_feed_dict=None,
    ):
        if copy_from_scaffold is not None:
            if not isinstance(copy_from_scaffold, Scaffold):
                raise TypeError("copy_from_scaffold is not a Scaffold instance.")
            old = copy_from_scaffold
            init_op = old.init_op if init_op is None else init_op
            init_feed_dict = old.init_feed_dict if init_feed_dict is None else init_feed_dict
            # The init function of the other scaffold wants to be called with it.
            if init_fn is None and old.init_fn is not None:
                self._init_fn = old.init_fn
            ready_op = old.ready_op if ready_op is None else ready_op
            ready_for_local_init_op = old.ready_for_local_init_op if ready_for_local_init_op is None else ready_for_local_init_op
            local_init_op = old.local_init_op if local_init_op is None else local_init_op
            local_init_feed_dict = old.local_init_feed_dict if local_init_feed_dict is None else local_init_feed_dict
            summary_op = old.summary_op if summary_op is None else summary_op
            saver = old.saver if saver is None else saver
        self._user_init_fn = init_fn
        if init_fn:
            self._init_fn = lambda sess: init_fn(self, sess)
        elif not hasattr(self, "_init_fn"):
            self._init_fn = None
        self._init_op, self._init_feed_dict = init_op, init_feed_dict
        self._ready_op, self._ready_for_local_init_op = ready_op, ready_for_local_init_op
        self._local_init_op, self._local_init_feed_dict = local_init_op, local_init_feed_dict
        self._summary_op, self._saver = summary_op, saver

    def finalize(self):
        """Creates the missing ops and finalizes the graph."""
        keys = ops.GraphKeys
        if self._init_op is None:

            def default_init_op():
                return control_flow_ops.group(
                    variables.global_variables_initializer(),
                    resources.initialize_resources(resources.shared_resources()),
                    ops.get_collection("saved_model_initializers"),
                )

            self._init_op = Scaffold.get_or_default("init_op", keys.INIT_OP, default_init_op)
        if self._ready_op is None:

            def default_ready_op():
                return array_ops.concat(
                    [variables.report_uninitialized_variables(), resources.report_uninitialized_resources()], 0
                )

            self._ready_op = Scaffold.get_or_default("ready_op", keys.READY_OP, default_ready_op)
        if self._ready_for_local_init_op is None:

            def default_ready_for_local_init_op():
                return array_ops.concat(
                    [
                        variables.report_uninitialized_variables(variables.global_variables()),
                        resources.report_uninitialized_resources(resources.shared_resources()),
                    ],
                    0,
                )

            self._ready_for_local_init_op = Scaffold.get_or_default(
                "ready_for_local_init_op", keys.READY_FOR_LOCAL_INIT_OP, default_ready_for_local_init_op
            )
        if self._local_init_op is None:
            self._local_init_op = Scaffold.get_or_default("local_init_op", keys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
        if self._summary_op is None:
            self._summary_op = Scaffold.get_or_default("summary_op", keys.SUMMARY_OP, summary.merge_all)
        if self._saver is None:
            self._saver = training_saver._get_saver_or_default()
        if isinstance(self._saver, training_saver.Saver):
            self._saver.build()
        ops.get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    init_fn = property(lambda self: self._init_fn)
    init_op = property(lambda self: self._init_op)
    ready_op = property(lambda self: self._ready_op)
    ready_for_local_init_op = property(lambda self: self._ready_for_local_init_op)
    local_init_op = property(lambda self: self._local_init_op)
    local_init_feed_dict = property(lambda self: self._local_init_feed_dict)
    summary_op = property(lambda self: self._summary_op)
    saver = property(lambda self: self._saver)
    init_feed_dict = property(lambda self: self._init_feed_dict)

    @staticmethod
    def get_or_default(arg_name, collection_key, default_constructor):
        """The only member of a collection, or a new one that is put there."""
        elements = ops.get_collection(collection_key)
        if elements:
            if len(elements) > 1:
                raise RuntimeError(
                    'More than one item in the collection "%s". Please indicate which one to use by passing it to the '
                    "tf.Scaffold constructor as:  tf.Scaffold(%s=item to use)" % (collection_key, arg_name)
                )
            return elements[0]
        op = default_constructor()
        if op is not None:
            ops.add_to_collection(collection_key, op)
        return op

    @staticmethod
    def default_local_init_op():
        return control_flow_ops.group(
            variables.local_variables_initializer(),
            lookup_ops.tables_initializer(),
            resources.initialize_resources(resources.local_resources()),
        )
