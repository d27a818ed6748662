//! The list of ops that Ferroflow does not run. A session prints it before the first step that
//! could fail because of them.

use crate::ops;
use ferroflow_graph::{GraphDef, NodeDef};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Ops that were printed already. A process prints each op once.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints the ops of a graph, and of its functions, that have no kernel. Ops that the catalog does
/// not have are functions of the graph.
pub fn report(py: Python<'_>, graph: &GraphDef) -> PyResult<()> {
    let bodies = graph.functions.iter().flat_map(|f| &f.nodes);
    let missing = without_kernel(graph.nodes.iter().chain(bodies));
    let mut text = String::new();
    for (op, node) in missing {
        if REPORTED.lock().insert(op.to_string()) {
            text += &format!("\n  {op}, for example node '{node}'");
        }
    }
    if text.is_empty() {
        return Ok(());
    }
    let text = format!(
        "ferroflow: the graph has ops that Ferroflow does not run; a step that needs one fails:{text}\n"
    );
    let stderr = py.import("sys")?.getattr("stderr")?;
    // A program without a terminal may have no standard error.
    if !stderr.is_none() {
        stderr.call_method1("write", (text,))?;
        stderr.call_method0("flush")?;
    }
    Ok(())
}

/// Ops without a kernel, and the first node of each.
fn without_kernel<'a>(nodes: impl Iterator<Item = &'a NodeDef>) -> BTreeMap<&'a str, &'a str> {
    let mut missing = BTreeMap::new();
    for node in nodes {
        if ops::find(&node.op).is_some_and(|op| op.cpu.is_none()) {
            missing.entry(node.op.as_str()).or_insert(node.name.as_str());
        }
    }
    missing
}
