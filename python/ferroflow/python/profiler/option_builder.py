"""ProfileOptionBuilder: what a profile counts and shows."""

import copy

from ferroflow.python.util.api import export

_NAMES = {
    "start_name_regexes": [".*"], "trim_name_regexes": [], "show_name_regexes": [".*"], "hide_name_regexes": [],
    "account_displayed_op_only": True, "step": -1, "output": "stdout", "max_depth": 10000, "account_type_regexes": [".*"],
}
_LEAST = {"min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0, "min_occurrence": 0}


def _options(**changes):
    return copy.deepcopy({**_NAMES, **_LEAST, **changes})


@export("profiler.ProfileOptionBuilder")
class ProfileOptionBuilder:
    """Builds the options of `tf.profiler.profile`."""

    def __init__(self, options=None):
        self._options = copy.deepcopy(options) if options is not None else _options(
            max_depth=100, account_displayed_op_only=False, order_by="name", select=["micros"])

    @staticmethod
    def trainable_variables_parameter():
        """Options that count the parameters of trainable variables."""
        return _options(order_by="name", select=["params"], account_type_regexes=["_trainable_variables"])

    @staticmethod
    def float_operation():
        """Options that count float operations."""
        return _options(order_by="float_ops", select=["float_ops"], min_float_ops=1)

    @staticmethod
    def time_and_memory(min_micros=1, min_bytes=1, min_accelerator_micros=0, min_cpu_micros=0, min_peak_bytes=0,
                        min_residual_bytes=0, min_output_bytes=0):
        """Options that count the time and memory of a step."""
        return _options(order_by="micros", select=["micros", "bytes"], min_micros=min_micros, min_bytes=min_bytes,
                        min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros,
                        min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes, min_output_bytes=min_output_bytes)

    def build(self):
        return copy.deepcopy(self._options)

    def _with(self, **changes):
        self._options.update(copy.deepcopy(changes))
        return self

    def with_max_depth(self, max_depth):
        return self._with(max_depth=max_depth)

    def with_min_memory(self, min_bytes=0, min_peak_bytes=0, min_residual_bytes=0, min_output_bytes=0):
        return self._with(min_bytes=min_bytes, min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes,
                          min_output_bytes=min_output_bytes)

    def with_min_execution_time(self, min_micros=0, min_accelerator_micros=0, min_cpu_micros=0):
        return self._with(min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros)

    def with_min_parameters(self, min_params):
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence):
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops):
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes):
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(self, start_name_regexes=None, show_name_regexes=None, hide_name_regexes=None, trim_name_regexes=None):
        given = dict(start_name_regexes=start_name_regexes, show_name_regexes=show_name_regexes,
                     hide_name_regexes=hide_name_regexes, trim_name_regexes=trim_name_regexes)
        return self._with(**{k: v for k, v in given.items() if v is not None})

    def account_displayed_op_only(self, is_true):
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self):
        return self._with(output="none")

    def with_stdout_output(self):
        return self._with(output="stdout")

    def with_file_output(self, outfile):
        return self._with(output="file:outfile=%s" % outfile)

    def with_timeline_output(self, timeline_file):
        return self._with(output="timeline:outfile=%s" % timeline_file)

    def with_pprof_output(self, pprof_file):
        return self._with(output="pprof:outfile=%s" % pprof_file)

    def order_by(self, attribute):
        return self._with(order_by=attribute)

    def select(self, attributes):
        return self._with(select=attributes)

    def with_step(self, step):
        return self._with(step=step)
