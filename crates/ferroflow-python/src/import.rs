//! `tf.import_graph_def`: adds the nodes of a message below a name, with some inputs replaced.

use crate::error::{of_graph, wrong_type};
use crate::graph::{GraphCore, publish};
use crate::handles::{PyOperation, PyTensor};
use crate::wire;
use ferroflow_core::{Result, bail, ensure, err};
use ferroflow_graph::{AttrList, AttrValue, Attrs, Endpoint, Node, NodeDef, NodeId};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The replacements of inputs.
#[derive(Default)]
struct Replaced {
    tensors: HashMap<(String, u32), Endpoint>,
    controls: HashMap<String, NodeId>,
}

pub fn import<'py>(
    graph: &Bound<'py, GraphCore>,
    graph_def: &[u8],
    prefix: &str,
    input_map: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyOperation>>> {
    let imported = wire::decode_graph(graph_def).map_err(|e| of_graph(&e))?;
    let mut replaced = Replaced::default();
    for (key, value) in input_map {
        let key: String = key.extract()?;
        if let Some(name) = key.strip_prefix('^') {
            let op = value.downcast::<PyOperation>()?;
            replaced.controls.insert(name.to_string(), op.get().id);
        } else if let Ok(tensor) = value.downcast::<PyTensor>() {
            let (name, slot) = split(&key);
            replaced.tensors.insert((name.to_string(), slot), tensor.get().endpoint);
        } else {
            return Err(wrong_type(format!("input_map['{key}'] must be a Tensor")));
        }
    }
    let ids = {
        let mut core = graph.borrow_mut();
        let before = core.ir.len();
        let added = add(&mut core, imported, prefix, &replaced);
        if added.is_err() {
            core.truncate(before);
        }
        added.map_err(|e| of_graph(&e))?
    };
    ids.into_iter().map(|id| publish(graph, id)).collect()
}

fn split(name: &str) -> (&str, u32) {
    match name.rsplit_once(':') {
        Some((node, slot)) => slot.parse().map_or((name, 0), |slot| (node, slot)),
        None => (name, 0),
    }
}

fn add(
    core: &mut GraphCore,
    imported: wire::Imported,
    prefix: &str,
    replaced: &Replaced,
) -> Result<Vec<NodeId>> {
    core.add_functions(imported.library)?;
    let inside = |name: &str| match prefix.is_empty() {
        true => name.to_string(),
        false => format!("{prefix}/{name}"),
    };
    let known: HashSet<String> = imported.nodes.iter().map(|(n, _)| n.name.clone()).collect();
    let mut ids = Vec::with_capacity(imported.nodes.len());
    for (def, form) in &imported.nodes {
        let name = inside(&def.name);
        ensure!(
            core.ir.find(&name).is_none(),
            InvalidArgument,
            "Node name '{name}' already exists in the Graph"
        );
        let node = node(core, def, name, &inside, &known)?;
        core.names.mark(&node.name);
        let id = core.add_unconnected(node)?;
        if let Some(form) = form {
            core.forms.insert(id, *form);
        }
        ids.push(id);
    }
    for (&id, (def, _)) in ids.iter().zip(&imported.nodes) {
        connect(core, id, def, &inside, replaced)?;
    }
    infer_all(core, &ids)?;
    Ok(ids)
}

fn node(
    core: &mut GraphCore,
    def: &NodeDef,
    name: String,
    inside: &dyn Fn(&str) -> String,
    known: &HashSet<String>,
) -> Result<Node> {
    let op = core.op_def(&def.op).ok_or_else(|| {
        err!(InvalidArgument, "No op named {} in defined operations: node '{name}'", def.op)
    })?;
    let mut attrs: Attrs = def.attrs.clone();
    if let Some(AttrValue::List(AttrList::Strs(groups))) = def.attrs.get("_class") {
        let renamed = groups.iter().map(|group| match group.strip_prefix(b"loc:@") {
            Some(node) => {
                let node = String::from_utf8_lossy(node);
                match known.contains(node.as_ref()) {
                    true => format!("loc:@{}", inside(&node)).into(),
                    false => group.clone(),
                }
            }
            None => group.clone(),
        });
        attrs.set("_class", AttrValue::List(AttrList::Strs(renamed.collect())));
    }
    attrs.remove("_output_shapes");
    let attrs = op.complete_attrs(attrs).map_err(|e| e.at_node(&name))?;
    Ok(Node {
        input_types: op.input_types(&attrs)?,
        output_types: op.output_types(&attrs)?,
        attrs: Arc::new(attrs),
        device: def.device.clone(),
        original_names: Vec::new(),
        inputs: Vec::new(),
        controls: Vec::new(),
        name,
        op,
    })
}

fn connect(
    core: &mut GraphCore,
    id: NodeId,
    def: &NodeDef,
    inside: &dyn Fn(&str) -> String,
    replaced: &Replaced,
) -> Result<()> {
    let (mut inputs, mut controls) = (Vec::new(), Vec::new());
    for text in &def.inputs {
        if let Some(name) = text.strip_prefix('^') {
            controls.push(match replaced.controls.get(name) {
                Some(&id) => id,
                None => core.named(&inside(name)).map_err(|_| unknown(def, text))?,
            });
            continue;
        }
        let (name, slot) = split(text);
        inputs.push(match replaced.tensors.get(&(name.to_string(), slot)) {
            Some(&e) => e,
            None => {
                let node = core.named(&inside(name)).map_err(|_| unknown(def, text))?;
                Endpoint { node, slot }
            }
        });
    }
    let node = core.ir.node(id);
    ensure!(
        inputs.len() == node.input_types.len(),
        InvalidArgument,
        "NodeDef expected {} inputs, got {}: node '{}' (op {})",
        node.input_types.len(),
        inputs.len(),
        node.name,
        node.op.name
    );
    for (i, e) in inputs.iter().enumerate() {
        let from = core.ir.node(e.node);
        let Some(have) = from.output_types.get(e.slot as usize) else {
            bail!(
                InvalidArgument,
                "Node '{}': Connecting to invalid output {} of source node {} which has {} outputs.",
                node.name,
                e.slot,
                from.name,
                from.output_types.len()
            );
        };
        ensure!(
            have.dtype == node.input_types[i].dtype,
            InvalidArgument,
            "Input {i} of node {} was passed {} from {}:{} incompatible with expected {}.",
            node.name,
            have.dtype,
            from.name,
            e.slot,
            node.input_types[i].dtype
        );
    }
    let node = core.ir.node_mut(id);
    node.inputs = inputs;
    node.controls = controls;
    Ok(())
}

fn unknown(def: &NodeDef, text: &str) -> ferroflow_core::Error {
    err!(InvalidArgument, "Node '{}': Unknown input node '{text}'", def.name)
}

/// Infers the shapes of new nodes, producers first. In a loop, a node may come before its producer;
/// then the shape of that input is unknown.
fn infer_all(core: &mut GraphCore, ids: &[NodeId]) -> Result<()> {
    let first = ids.first().map_or(0, |id| id.index());
    let mut done = vec![false; ids.len()];
    let mut stack: Vec<(NodeId, usize)> = Vec::new();
    let mut entered = vec![false; ids.len()];
    for &root in ids {
        stack.push((root, 0));
        while let Some((id, next)) = stack.pop() {
            let at = id.index() - first;
            if done[at] {
                continue;
            }
            entered[at] = true;
            let inputs = &core.ir.node(id).inputs;
            match inputs.get(next).copied() {
                Some(e) => {
                    stack.push((id, next + 1));
                    if e.node.index() >= first && !entered[e.node.index() - first] {
                        stack.push((e.node, 0));
                    }
                }
                None => {
                    let name = core.ir.node(id).name.clone();
                    core.infer_again(id).map_err(|e| e.context(format!("node '{name}'")))?;
                    done[at] = true;
                }
            }
        }
    }
    Ok(())
}
