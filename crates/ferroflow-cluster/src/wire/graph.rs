//! Graphs inside requests.

use ferroflow_core::Result;
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::graph::{graph_from_proto, graph_to_proto};
use ferroflow_proto::tensorflow as pb;

/// A graph inside a request. It is decoded outside the network threads, because a large one takes
/// milliseconds.
pub(crate) struct GraphMessage(pub(super) pb::GraphDef);

impl GraphMessage {
    pub fn of(graph: &GraphDef) -> Result<GraphMessage> {
        Ok(GraphMessage(graph_to_proto(graph)?))
    }

    /// The number of its nodes.
    pub fn nodes(&self) -> usize {
        self.0.node.len()
    }

    pub fn read(self) -> Result<GraphDef> {
        graph_from_proto(self.0)
    }
}
