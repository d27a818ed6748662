"""How variables and control flow contexts in collections are written to meta graphs, and read."""

from ferroflow.core.framework import variable_pb2
from ferroflow.core.protobuf import control_flow_pb2
from ferroflow.python.framework import ops
from ferroflow.python.ops import control_flow_context, variables, while_context


def _to_proto(member, export_scope=None):
    return member.to_proto(export_scope=export_scope)


for _key in [*ops.GraphKeys._VARIABLE_COLLECTIONS, ops.GraphKeys.GLOBAL_STEP]:
    ops.register_proto_function(_key, variable_pb2.VariableDef, _to_proto, variables.Variable.from_proto)
ops.register_proto_function(ops.GraphKeys.COND_CONTEXT, control_flow_pb2.CondContextDef, _to_proto,
                            control_flow_context.CondContext.from_proto)
ops.register_proto_function(ops.GraphKeys.WHILE_CONTEXT, control_flow_pb2.WhileContextDef, _to_proto,
                            while_context.WhileContext.from_proto)
