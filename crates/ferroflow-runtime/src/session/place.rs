//! Placement on the devices of one task.

use crate::session::SessionOptions;
use ferroflow_core::{DeviceInfo, DeviceName, Result, bail};
use ferroflow_graph::{Graph, NodeId};
use std::collections::HashMap;
use std::sync::Arc;

/// Gives every node from `first` on the full name of a device that matches what it asks for.
pub(crate) fn place(
    graph: &mut Graph,
    first: usize,
    devices: &[Arc<DeviceInfo>],
    options: &SessionOptions,
) -> Result<()> {
    let mut known: HashMap<String, String> = HashMap::new();
    for id in (first..graph.len()).map(|i| NodeId(i as u32)) {
        let asked = graph.node(id).device.clone();
        let placed = match known.get(&asked) {
            Some(placed) => placed.clone(),
            None => {
                let wanted = DeviceName::parse(&asked)?;
                let Some(device) = choose(&wanted, devices, options.allow_soft_placement) else {
                    let node = graph.node(id);
                    bail!(
                        InvalidArgument,
                        "Cannot assign a device for operation {0}: {{{{node {0}}}}} was explicitly \
                         assigned to {asked} but available devices are [ {1} ]. Make sure the \
                         device specification refers to a valid device.\n\t [[{0}]]",
                        node.name,
                        devices.iter().map(|d| d.text.as_str()).collect::<Vec<_>>().join(", ")
                    );
                };
                known.insert(asked, device.text.clone());
                device.text.clone()
            }
        };
        let node = graph.node_mut(id);
        if options.log_device_placement {
            tracing::info!(target: "placement", "{}: ({}): {placed}", node.name, node.op.name);
        }
        node.device = placed;
    }
    Ok(())
}

fn choose<'a>(
    wanted: &DeviceName,
    devices: &'a [Arc<DeviceInfo>],
    soft: bool,
) -> Option<&'a Arc<DeviceInfo>> {
    let matching = |name: &DeviceName| devices.iter().find(|d| d.name.is_compatible(name));
    matching(wanted).or_else(|| {
        // Soft placement gives up the kind and number of the device, never the task.
        let task = DeviceName { kind: None, id: None, ..wanted.clone() };
        if soft { matching(&task) } else { None }
    })
}
