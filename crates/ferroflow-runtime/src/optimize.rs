//! The passes that a graph goes through before it is compiled.

use ferroflow_core::{DeviceInfo, Result};
use ferroflow_graph::{Functions, Graph, NodeId};
use std::sync::Arc;

/// Simplifies `graph`, keeping what its arguments and results are; `args` and `rets` follow.
pub(crate) fn optimize(
    _graph: &mut Graph,
    _args: &mut [NodeId],
    _rets: &mut [NodeId],
    _device: &Arc<DeviceInfo>,
    _functions: &Arc<dyn Functions>,
) -> Result<()> {
    Ok(())
}
