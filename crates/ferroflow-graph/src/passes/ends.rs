//! Turns feeds and fetches into transfers through the rendezvous of the step.

use super::Pruned;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::graph::{GraphIr, NodeId};
use ferroflow_core::{DeviceInfo, Result, err};
use std::sync::Arc;

/// Turns the arguments of `step` into receives and its results into sends, under the client's
/// names. They are on `device`.
pub fn transfer_ends(
    step: Pruned,
    feeds: &[String],
    fetches: &[String],
    device: &DeviceInfo,
    catalog: &Catalog,
) -> Result<GraphIr> {
    let Pruned { mut graph, args, rets } = step;
    for (name, &id) in feeds.iter().zip(&args) {
        transfer(&mut graph, id, name, device, catalog, true)?;
    }
    for (name, &id) in fetches.iter().zip(&rets) {
        transfer(&mut graph, id, name, device, catalog, false)?;
    }
    Ok(graph)
}

fn transfer(
    graph: &mut GraphIr,
    id: NodeId,
    tensor: &str,
    device: &DeviceInfo,
    catalog: &Catalog,
    is_feed: bool,
) -> Result<()> {
    let (op, type_attr) = if is_feed { ("_Recv", "tensor_type") } else { ("_Send", "T") };
    let op = catalog
        .get(op)
        .ok_or_else(|| err!(Internal, "the catalog lacks {op}, which feeds and fetches need"))?;
    let node = graph.node_mut(id);
    let ports = if is_feed { &node.output_types } else { &node.input_types };
    let attrs = Attrs::new()
        .with(type_attr, ports[0].dtype)
        .with("tensor_name", tensor)
        .with("send_device", device.text.as_str())
        .with("send_device_incarnation", device.incarnation as i64)
        .with("recv_device", device.text.as_str())
        .with("client_terminated", true);
    let attrs = op.complete_attrs(attrs)?;
    node.input_types = op.input_types(&attrs)?;
    node.output_types = op.output_types(&attrs)?;
    node.attrs = Arc::new(attrs);
    node.op = op.clone();
    node.device = device.text.clone();
    let (node, slot) = crate::graph::split_tensor_name(tensor);
    let name = format!("{}_{node}_{slot}", if is_feed { "_recv" } else { "_send" });
    graph.rename(id, name);
    Ok(())
}
