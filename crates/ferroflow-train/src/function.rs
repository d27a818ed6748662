//! Functions: named parts of a graph that several nodes call.

use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::Output;
use ferroflow_core::{DType, PartialShape, Result, bail, ensure, err};
use ferroflow_graph::{
    ArgDef, ArgTypes, Attrs, FuncRef, FunctionDef, NodeDef, OpDef, OpRole, TypeSource,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of a graph.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_core::{DType, PartialShape};
/// let square = g.function("square", &[(DType::Float, PartialShape::unknown())], |_, x| {
///     vec![x[0].square()]
/// });
/// assert_eq!(square.call(&[g.constant(3.0)]).len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Function {
    graph: Graph,
    name: String,
    results: Vec<(DType, PartialShape)>,
}

impl Graph {
    /// A function of tensors of these types and shapes. This call runs the closure once, on a graph
    /// of its own: the closure can use only its arguments.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// # use ferroflow_core::{DType, PartialShape};
    /// let double = g.function("double", &[(DType::Float, PartialShape::unknown())], |_, x| {
    ///     vec![&x[0] * 2.0]
    /// });
    /// let y = double.call(&[g.constant(21.0)]);
    /// assert_eq!(y.len(), 1);
    /// ```
    #[track_caller]
    pub fn function(
        &self,
        name: &str,
        arguments: &[(DType, PartialShape)],
        build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>,
    ) -> Function {
        let name = self.state().names.unique(name);
        let body = Graph::with_catalog(self.catalog().clone());
        body.state().ir.library = self.state().ir.library.clone();
        body.state().seed = self.state().seed;
        let mut results = Vec::new();
        let build = |graph: &Graph, inputs: &[Output]| {
            let outputs = build(graph, inputs);
            results = vec![(DType::Float, PartialShape::unknown()); outputs.len()];
            outputs
        };
        let made = self.or_fail(make(&body, &name, arguments, build));
        if let Some((def, types)) = made {
            let added = {
                let mut state = self.state();
                let catalog = state.catalog.clone();
                let mut library = body.state().ir.library.clone();
                let result = library.add([Arc::new(def)], BTreeMap::new(), &catalog);
                if result.is_ok() {
                    state.ir.library = library;
                }
                result
            };
            self.or_fail(added);
            results = types;
        }
        Function { graph: self.clone(), name, results }
    }
}

fn make(
    body: &Graph,
    name: &str,
    arguments: &[(DType, PartialShape)],
    build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>,
) -> Result<(FunctionDef, Vec<(DType, PartialShape)>)> {
    let mut inputs = Vec::with_capacity(arguments.len());
    for (i, (dtype, shape)) in arguments.iter().enumerate() {
        let argument = body
            .op("_Arg")
            .name(&format!("arg_{i}"))
            .attr("T", *dtype)
            .attr("index", i as i64)
            .output();
        argument.set_shape(shape);
        inputs.push(argument);
    }
    let outputs = build(body, &inputs);
    body.check().map_err(|e| e.context(format!("function '{name}'")))?;
    let state = body.state();
    let arg = |name: String, dtype| ArgDef {
        name,
        is_ref: false,
        types: ArgTypes::One(TypeSource::Fixed(dtype)),
    };
    let mut signature = OpDef::named(name);
    for (i, (dtype, _)) in arguments.iter().enumerate() {
        signature.inputs.push(arg(format!("arg_{i}"), *dtype));
    }
    let mut ret = BTreeMap::new();
    let mut results = Vec::with_capacity(outputs.len());
    for (i, output) in outputs.iter().enumerate() {
        ensure!(
            output.graph.is(body),
            InvalidArgument,
            "result {i} of '{name}' belongs to another graph"
        );
        let e = output.endpoint.ok_or_else(|| err!(Internal, "a broken result"))?;
        let dtype = state.ir.type_of(e).dtype;
        signature.outputs.push(arg(format!("result_{i}"), dtype));
        ret.insert(format!("result_{i}"), tensor_name(&state.ir, e)?);
        results.push((dtype, state.shape(e)));
    }
    let mut nodes = Vec::new();
    let mut control_ret = BTreeMap::new();
    for (id, node) in state.ir.iter() {
        if node.op.role == OpRole::Argument {
            continue;
        }
        signature.is_stateful |= node.op.is_stateful;
        if node.op.is_stateful {
            control_ret.insert(node.name.clone(), node.name.clone());
        }
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &e in &node.inputs {
            inputs.push(tensor_name(&state.ir, e)?);
        }
        inputs.extend(node.controls.iter().map(|c| format!("^{}", state.ir.node(*c).name)));
        let node = state.ir.node(id);
        nodes.push(NodeDef {
            name: node.name.clone(),
            op: node.op.name.clone(),
            inputs,
            device: node.device.clone(),
            attrs: (*node.attrs).clone(),
            ..NodeDef::default()
        });
    }
    let control_outputs = control_ret.keys().cloned().collect();
    let def = FunctionDef {
        signature,
        nodes,
        ret,
        control_ret,
        attrs: Attrs::new(),
        arg_attrs: BTreeMap::new(),
        resource_arg_ids: BTreeMap::new(),
        control_outputs,
    };
    Ok((def, results))
}

/// A tensor as functions name it: `argument`, or `node:output:index`.
fn tensor_name(graph: &ferroflow_graph::GraphIr, e: ferroflow_graph::Endpoint) -> Result<String> {
    let node = graph.node(e.node);
    if node.op.role == OpRole::Argument {
        return Ok(node.name.clone());
    }
    let slot = e.slot as usize;
    for arg in &node.op.outputs {
        let range = node.op.output_range(&node.attrs, &arg.name)?;
        if range.contains(&slot) {
            return Ok(format!("{}:{}:{}", node.name, arg.name, slot - range.start));
        }
    }
    bail!(Internal, "'{}' has no output {slot}", node.name)
}

impl Function {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function as the value of an attribute.
    pub fn reference(&self) -> FuncRef {
        FuncRef { name: self.name.clone(), attrs: Attrs::new() }
    }

    /// The types of its results.
    pub fn result_types(&self) -> Vec<DType> {
        self.results.iter().map(|r| r.0).collect()
    }

    /// The shapes of its results, as far as they are known.
    pub fn result_shapes(&self) -> Vec<PartialShape> {
        self.results.iter().map(|r| r.1.clone()).collect()
    }

    /// Calls it.
    #[track_caller]
    pub fn call(&self, arguments: &[Output]) -> Vec<Output> {
        let types = ferroflow_graph::AttrList::Types(self.result_types());
        let stateful = {
            let state = self.graph.state();
            state.ir.library.get(&self.name).is_some_and(|f| f.signature.is_stateful)
        };
        let op = if stateful { "StatefulPartitionedCall" } else { "PartitionedCall" };
        let call: NodeBuilder = self.graph.op(op).name(&self.name).list(arguments);
        let outputs = call.attr("Tout", types).attr("f", self.reference());
        let outputs = outputs.count_of_outputs(self.results.len());
        for (output, (_, shape)) in outputs.iter().zip(&self.results) {
            output.set_shape(shape);
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session};

    #[test]
    fn functions_call_functions() {
        let g = graph();
        let any = (DType::Float, PartialShape::unknown());
        let double = g.function("double", std::slice::from_ref(&any), |_, x| vec![&x[0] * 2.0]);
        let both = g.function("both", &[any.clone(), any], |_, x| {
            let halves = x[0].split(2, 0);
            vec![&halves[1] + &x[1], halves[0].clone()]
        });
        let y = double.call(&[g.constant([1.0, 2.0])]);
        let z = both.call(&[y[0].clone(), g.constant([10.0])]);
        let s = session(&g).unwrap();
        let (a, b) = s.run((&z[0], &z[1])).unwrap();
        assert_eq!(
            (a.scalar_value::<f32>().unwrap(), b.scalar_value::<f32>().unwrap()),
            (14.0, 2.0)
        );
    }

    #[test]
    fn a_function_can_use_only_its_arguments() {
        let g = graph();
        let outside = g.constant(1.0);
        g.function("f", &[], |_, _| vec![outside.clone()]);
        assert!(g.check().unwrap_err().message().contains("another graph"));
    }
}
