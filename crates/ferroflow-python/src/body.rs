//! A graph as the body of a function.

use crate::graph::GraphCore;
use crate::wire::node_def;
use ferroflow_core::{Result, ensure};
use ferroflow_graph::{
    ArgDef, ArgTypes, Attrs, Endpoint, FunctionDef, NodeDef, NodeId, OpDef, PortType, TypeSource,
};
use std::collections::{BTreeMap, HashMap, HashSet};

pub struct Body<'a> {
    pub name: &'a str,
    /// The placeholders that become arguments.
    pub inputs: Vec<Endpoint>,
    pub outputs: Vec<Endpoint>,
    /// A name for each output; may be shorter than `outputs`.
    pub output_names: Vec<String>,
    /// Nodes that must run.
    pub controls: Vec<NodeId>,
    pub attrs: Attrs,
}

pub fn function(core: &GraphCore, body: Body<'_>) -> Result<FunctionDef> {
    let mut names = HashSet::new();
    let mut unique = |wanted: &str| {
        let base = normalized(wanted);
        let mut name = base.clone();
        let mut i = 0;
        while !names.insert(name.clone()) {
            name = format!("{base}_{i}");
            i += 1;
        }
        name
    };
    let mut arguments = HashMap::new();
    let mut signature = OpDef::named(body.name);
    for &e in &body.inputs {
        let name = unique(&core.ir.node(e.node).name);
        signature.inputs.push(argument(&name, core.ir.type_of(e)));
        arguments.insert(e, name);
    }
    let inputs: HashSet<NodeId> = body.inputs.iter().map(|e| e.node).collect();
    let mut nodes = Vec::new();
    for (id, node) in core.ir.iter().filter(|(id, _)| !inputs.contains(id)) {
        signature.is_stateful |= node.op.is_stateful;
        let mut inputs = Vec::with_capacity(node.inputs.len() + node.controls.len());
        for &e in &node.inputs {
            inputs.push(source(core, &arguments, e)?);
        }
        inputs.extend(node.controls.iter().map(|c| format!("^{}", core.ir.node(*c).name)));
        nodes.push(NodeDef { inputs, ..node_def(core, id, false) });
    }
    let mut ret = BTreeMap::new();
    for (i, &e) in body.outputs.iter().enumerate() {
        let wanted = body.output_names.get(i).cloned();
        let name = unique(&wanted.unwrap_or_else(|| core.ir.node(e.node).name.clone()));
        signature.outputs.push(argument(&name, core.ir.type_of(e)));
        ret.insert(name, source(core, &arguments, e)?);
    }
    let mut control_ret = BTreeMap::new();
    let mut control_outputs = Vec::new();
    for &id in &body.controls {
        let name = core.ir.node(id).name.clone();
        control_ret.insert(name.clone(), name.clone());
        control_outputs.push(name);
    }
    Ok(FunctionDef {
        signature,
        nodes,
        ret,
        control_ret,
        attrs: body.attrs,
        arg_attrs: BTreeMap::new(),
        resource_arg_ids: BTreeMap::new(),
        control_outputs,
    })
}

fn argument(name: &str, port: PortType) -> ArgDef {
    let types = ArgTypes::One(TypeSource::Fixed(port.dtype));
    ArgDef { name: name.to_string(), is_ref: port.is_ref, types }
}

/// A tensor as a function's node names it: an argument, or `node:output:index`.
fn source(core: &GraphCore, arguments: &HashMap<Endpoint, String>, e: Endpoint) -> Result<String> {
    if let Some(name) = arguments.get(&e) {
        return Ok(name.clone());
    }
    let node = core.ir.node(e.node);
    for arg in &node.op.outputs {
        let range = node.op.output_range(&node.attrs, &arg.name)?;
        if range.contains(&(e.slot as usize)) {
            return Ok(format!("{}:{}:{}", node.name, arg.name, e.slot as usize - range.start));
        }
    }
    ensure!(false, Internal, "node '{}' has no output {}", node.name, e.slot);
    Ok(String::new())
}

/// A name that an argument may have.
fn normalized(name: &str) -> String {
    let lower = name.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    });
    let text: String = lower.collect();
    let text = text.trim_start_matches(|c: char| !c.is_ascii_lowercase()).to_string();
    if text.is_empty() { "unknown".to_string() } else { text }
}
