"""The operation that a loaded SavedModel runs first."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import control_flow_ops, lookup_ops, variables


def main_op():
    init = variables.global_variables_initializer()
    local = variables.local_variables_initializer()
    return control_flow_ops.group(init, local, lookup_ops.tables_initializer())


def main_op_with_restore(restore_op_name):
    with ops.control_dependencies([main_op()]):
        return control_flow_ops.group(ops.get_default_graph().get_operation_by_name(restore_op_name))
