//! Lowering: replaces calls of functions by the functions' bodies, and functional conditionals and
//! loops by the primitives of control flow. The nodes inside can then be placed on any device.

mod inline;

use crate::attr::{Attrs, FuncRef};
use crate::catalog::Catalog;
use crate::function::FunctionGraph;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::{CallKind, PortType};
use ferroflow_core::{DType, DeviceName, Result, err};
use inline::Inlined;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls nested deeper are not lowered, and no more calls are lowered once this many nodes were
/// added: it may be a recursion.
const MAX_DEPTH: u32 = 32;
const MAX_ADDED: usize = 1 << 16;

/// Lowers the nodes of `graph` from `first` on that TensorFlow would lower. A lowered node keeps
/// its name and its outputs, so that it can still be fetched. On an error the graph is half
/// lowered.
pub fn lower(graph: &mut GraphIr, first: usize, catalog: &Catalog) -> Result<()> {
    let calls = |graph: &GraphIr, id: NodeId| graph.node(id).op.calls.is_some();
    if !graph.ids().skip(first).any(|id| calls(graph, id)) {
        return Ok(());
    }
    let mut lowering = Lowering {
        depth: vec![0; graph.len()],
        graph,
        catalog,
        values: HashMap::new(),
        controls: HashMap::new(),
    };
    let (mut at, most) = (first, lowering.graph.len() + MAX_ADDED);
    // Bodies are added at the end, so their nodes are visited too.
    while at < lowering.graph.len() {
        let id = NodeId(at as u32);
        let goes_on = lowering.depth[at] < MAX_DEPTH && lowering.graph.len() < most;
        if goes_on && calls(lowering.graph, id) {
            lowering.lower(id)?;
        }
        at += 1;
    }
    lowering.rewire(first);
    graph.check_acyclic()
}

struct Lowering<'a> {
    graph: &'a mut GraphIr,
    catalog: &'a Catalog,
    /// The nesting depth of each node.
    depth: Vec<u32>,
    /// The replacements of the outputs of lowered nodes and of their control outputs.
    values: HashMap<Endpoint, Endpoint>,
    controls: HashMap<NodeId, NodeId>,
}

/// A call that is being lowered.
struct LoweredCall {
    id: NodeId,
    name: String,
    device: DeviceName,
    inputs: Vec<Endpoint>,
    controls: Vec<NodeId>,
    attrs: Arc<Attrs>,
    outputs: Vec<PortType>,
}

impl Lowering<'_> {
    fn lower(&mut self, id: NodeId) -> Result<()> {
        let node = self.graph.node(id);
        let Some(calls) = node.op.calls else { return Ok(()) };
        let call = LoweredCall {
            id,
            name: node.name.clone(),
            device: DeviceName::parse(&node.device)?,
            inputs: node.inputs.clone(),
            controls: node.controls.clone(),
            attrs: node.attrs.clone(),
            outputs: node.output_types.clone(),
        };
        let is_marked = call.attrs.bool("_lower_using_switch_merge").unwrap_or(false);
        match calls {
            CallKind::Function => self.call(call, None),
            CallKind::Own => {
                let own = FuncRef { name: node.op.name.clone(), attrs: (*node.attrs).clone() };
                self.call(call, Some(own))
            }
            CallKind::If if is_marked => self.branch(call, false),
            CallKind::Case if is_marked => self.branch(call, true),
            CallKind::While if is_marked => self.repeat(call),
            _ => Ok(()),
        }
    }

    fn body(&self, func: &FuncRef) -> Result<FunctionGraph> {
        FunctionGraph::instantiate(func, &self.graph.library, self.catalog)
    }

    fn call(&mut self, call: LoweredCall, own: Option<FuncRef>) -> Result<()> {
        let func = own.map_or_else(|| call.attrs.func("f"), Ok)?;
        let def = self.graph.library.get(&func.name);
        if def.is_none_or(|def| def.attrs.bool("_noinline").unwrap_or(false)) {
            return Ok(());
        }
        let body = self.body(&func)?;
        // The body waits for the control inputs of the call.
        let (mut args, mut pivot) = (call.inputs.clone(), None);
        if !call.controls.is_empty() {
            let controls = call.controls.clone();
            pivot = Some(self.add(&call, "go", "NoOp", Attrs::new(), vec![], controls)?);
            for arg in &mut args {
                *arg = self.identity(&call, "arg", *arg, pivot.into_iter().collect())?;
            }
        }
        let inlined = self.inline(&call, "", &body, &args, pivot)?;
        let done = self.when_done(&call, "done", &inlined)?;
        let mut rets = inlined.rets;
        if !inlined.targets.is_empty() {
            for ret in &mut rets {
                *ret = self.identity(&call, "ret", *ret, vec![done])?;
            }
        }
        self.replace(call, rets, done)
    }

    /// Lowers `If`, or `Case` with `is_case`: switches the inputs to the chosen branch and merges
    /// the results of all branches.
    fn branch(&mut self, call: LoweredCall, is_case: bool) -> Result<()> {
        let (Some(&chooser), inputs) = (call.inputs.first(), call.inputs.get(1..)) else {
            return Ok(());
        };
        let chooser_type = self.graph.type_of(chooser).dtype;
        if !is_case && chooser_type != DType::Bool {
            return Ok(());
        }
        let branches = match is_case {
            true => call.attrs.funcs("branches")?,
            // In the order of the outputs of Switch.
            false => vec![call.attrs.func("else_branch")?, call.attrs.func("then_branch")?],
        };
        let inputs = inputs.unwrap_or_default().to_vec();
        let chooser = match call.controls.is_empty() {
            true => chooser,
            false => self.identity(&call, "pred", chooser, call.controls.clone())?,
        };
        let n = branches.len();
        let pivots = self.switch(&call, chooser, chooser, is_case, n)?;
        let switched: Vec<NodeId> = inputs
            .iter()
            .map(|input| self.switch(&call, *input, chooser, is_case, n))
            .collect::<Result<_>>()?;
        let mut merged: Vec<Vec<Endpoint>> = vec![Vec::new(); call.outputs.len()];
        let (mut ends, mut has_effects) = (Vec::new(), false);
        for (slot, func) in branches.iter().enumerate() {
            let body = self.body(func)?;
            let pivot = self.identity(&call, "branch", Endpoint::new(pivots, slot), vec![])?;
            let args: Vec<Endpoint> = switched.iter().map(|s| Endpoint::new(*s, slot)).collect();
            let part = format!("branch_{slot}");
            let inlined = self.inline(&call, &part, &body, &args, Some(pivot.node))?;
            has_effects |= !inlined.targets.is_empty();
            for (all, ret) in merged.iter_mut().zip(&inlined.rets) {
                all.push(*ret);
            }
            let after = inlined.all();
            ends.push(self.identity(&call, "ended", pivot, after)?);
        }
        let executed = self.merge(&call, "executed", ends)?;
        let mut rets = Vec::new();
        for values in merged {
            let ret = self.merge(&call, "merge", values)?;
            rets.push(match has_effects {
                true => self.identity(&call, "ret", ret, vec![executed.node])?,
                false => ret,
            });
        }
        self.replace(call, rets, executed.node)
    }

    fn switch(
        &mut self,
        call: &LoweredCall,
        value: Endpoint,
        by: Endpoint,
        is_case: bool,
        branches: usize,
    ) -> Result<NodeId> {
        let mut attrs = Attrs::new().with("T", self.graph.type_of(value).dtype);
        if is_case {
            attrs.set("num_outs", branches as i64);
        }
        let op = if is_case { "_SwitchN" } else { "Switch" };
        let id = self.add(call, "switch", op, attrs, vec![value, by], vec![])?;
        // It only routes the value, so it belongs to the value's device.
        self.graph.node_mut(id).device = self.graph.node(value.node).device.clone();
        Ok(id)
    }

    /// Lowers `While`: a loop with a variable for each input except resources, which do not change.
    fn repeat(&mut self, call: LoweredCall) -> Result<()> {
        let is_variable = |port: &PortType| port.dtype != DType::Resource;
        let Some(pivot_at) = call.outputs.iter().position(is_variable) else { return Ok(()) };
        let (cond, body) =
            (self.body(&call.attrs.func("cond")?)?, self.body(&call.attrs.func("body")?)?);
        let tests_bool = matches!(cond.result_types[..], [port] if port.dtype == DType::Bool);
        if !tests_bool || call.inputs.len() != body.rets.len() {
            return Ok(());
        }
        let parallel = call.attrs.int("parallel_iterations").unwrap_or(10);
        let frame = self.graph.unique_name(&format!("{}/loop", call.name));
        let typed = |port: &PortType| Attrs::new().with("T", port.dtype);
        let of = |id: NodeId| Endpoint { node: id, slot: 0 };
        let (mut entered, mut merges) = (Vec::new(), Vec::new());
        for (input, port) in call.inputs.iter().zip(&call.outputs) {
            let attrs = typed(port)
                .with("frame_name", frame.as_str())
                .with("parallel_iterations", parallel)
                .with("is_constant", !is_variable(port));
            let controls = call.controls.clone();
            let enter = self.add(&call, "enter", "Enter", attrs, vec![*input], controls)?;
            entered.push(of(enter));
            merges.push(match is_variable(port) {
                true => Some(self.merge(&call, "variable", vec![of(enter), of(enter)])?),
                false => None,
            });
        }
        let Some(pivot) = merges[pivot_at].map(|e| e.node) else { return Ok(()) };
        let mut tested = Vec::new();
        for (merge, enter) in merges.iter().zip(&entered) {
            tested.push(match merge {
                Some(merge) => *merge,
                None => self.identity(&call, "same", *enter, vec![pivot])?,
            });
        }
        let test = self.inline(&call, "cond", &cond, &tested, Some(pivot))?;
        let goes_on = test.rets.first().copied();
        let goes_on = goes_on.ok_or_else(|| err!(InvalidArgument, "cond has no result"))?;
        let decide =
            self.add(&call, "cond", "LoopCond", Attrs::new(), vec![goes_on], test.targets)?;
        let (mut args, mut switches) = (entered, Vec::new());
        for (i, port) in call.outputs.iter().enumerate() {
            let Some(merge) = merges[i] else {
                switches.push(None);
                continue;
            };
            let inputs = vec![merge, of(decide)];
            let switch = self.add(&call, "switch", "Switch", typed(port), inputs, vec![])?;
            let into = Endpoint { node: switch, slot: 1 };
            args[i] = self.identity(&call, "value", into, vec![])?;
            switches.push(Some(switch));
        }
        let pivot = args[pivot_at].node;
        // Each iteration still waits for a value that does not change: its task may have no other
        // node of the loop.
        for (arg, merge) in args.iter_mut().zip(&merges) {
            if merge.is_none() {
                *arg = self.identity(&call, "same", *arg, vec![pivot])?;
            }
        }
        let done = self.inline(&call, "body", &body, &args, Some(pivot))?;
        let (mut rets, mut exits) = (Vec::new(), Vec::new());
        for (i, port) in call.outputs.iter().enumerate() {
            let (Some(merge), Some(switch)) = (merges[i], switches[i]) else {
                rets.push(call.inputs[i]);
                continue;
            };
            // The effects of an iteration come before the next iteration.
            let controls = done.targets.clone();
            let inputs = vec![done.rets[i]];
            let next = self.add(&call, "next", "NextIteration", typed(port), inputs, controls)?;
            self.graph.node_mut(merge.node).inputs[1] = of(next);
            let exit = self.add(&call, "exit", "Exit", typed(port), vec![of(switch)], vec![])?;
            rets.push(of(exit));
            exits.push(exit);
        }
        let executed = self.add(&call, "executed", "NoOp", Attrs::new(), vec![], exits)?;
        self.replace(call, rets, executed)
    }

    /// Adds a node that runs after all nodes of a body.
    fn when_done(&mut self, call: &LoweredCall, what: &str, inlined: &Inlined) -> Result<NodeId> {
        let mut after = inlined.all();
        after.extend(&call.controls);
        self.add(call, what, "NoOp", Attrs::new(), vec![], after)
    }

    fn merge(&mut self, call: &LoweredCall, what: &str, values: Vec<Endpoint>) -> Result<Endpoint> {
        let dtype = self.graph.type_of(values[0]).dtype;
        let attrs = Attrs::new().with("T", dtype).with("N", values.len() as i64);
        let id = self.add(call, what, "Merge", attrs, values, vec![])?;
        Ok(Endpoint { node: id, slot: 0 })
    }

    fn identity(
        &mut self,
        call: &LoweredCall,
        what: &str,
        value: Endpoint,
        controls: Vec<NodeId>,
    ) -> Result<Endpoint> {
        let attrs = Attrs::new().with("T", self.graph.type_of(value).dtype);
        let id = self.add(call, what, "Identity", attrs, vec![value], controls)?;
        Ok(Endpoint { node: id, slot: 0 })
    }

    /// Adds a node for `call`, on its device.
    fn add(
        &mut self,
        call: &LoweredCall,
        what: &str,
        op: &str,
        attrs: Attrs,
        inputs: Vec<Endpoint>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        let op = self
            .catalog
            .get(op)
            .ok_or_else(|| err!(Internal, "the catalog lacks {op}, which lowering needs"))?;
        let name = self.graph.unique_name(&format!("{}/{what}", call.name));
        let id = self.graph.add(name, op.clone(), attrs, inputs, controls)?;
        self.graph.node_mut(id).device = call.device.to_string();
        self.depth.push(self.depth[call.id.index()]);
        Ok(id)
    }

    /// Turns the call into a node that returns `rets`, so that it can be fetched. Records the
    /// replacements for its consumers.
    fn replace(&mut self, call: LoweredCall, rets: Vec<Endpoint>, executed: NodeId) -> Result<()> {
        for (slot, ret) in rets.iter().enumerate() {
            self.values.insert(Endpoint::new(call.id, slot), *ret);
        }
        self.controls.insert(call.id, executed);
        let types: Vec<DType> = call.outputs.iter().map(|port| port.dtype).collect();
        let (op, attrs) = match types.is_empty() {
            true => ("NoOp", Attrs::new()),
            false => ("IdentityN", Attrs::new().with("T", types)),
        };
        let op = self.catalog.get(op).cloned();
        let op = op.ok_or_else(|| err!(Internal, "the catalog lacks ops that lowering needs"))?;
        let node = self.graph.node_mut(call.id);
        node.input_types = op.input_types(&attrs)?;
        node.output_types = op.output_types(&attrs)?;
        node.attrs = Arc::new(op.complete_attrs(attrs)?);
        node.op = op;
        node.inputs = rets;
        node.controls = vec![executed];
        Ok(())
    }

    /// Connects the consumers of lowered nodes with the replacements.
    fn rewire(&mut self, first: usize) {
        for id in self.graph.ids().skip(first) {
            let node = self.graph.node_mut(id);
            for input in &mut node.inputs {
                while let Some(value) = self.values.get(input) {
                    *input = *value;
                }
            }
            for control in &mut node.controls {
                while let Some(executed) = self.controls.get(control) {
                    *control = *executed;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{AttrList, AttrValue};
    use crate::def::{FunctionDef, GraphDef, NodeDef};
    use crate::op_def::{OpDef, OpRole};
    use crate::signature::parse_arg;

    fn catalog() -> Catalog {
        let mut c = Catalog::new();
        c.op("_Arg").output("output: T").attr("T: type").attr("index: int").role(OpRole::Argument);
        c.op("_Retval").input("input: T").attr("T: type").attr("index: int").role(OpRole::Return);
        c.op("Identity").input("input: T").output("output: T").attr("T: type");
        c.op("IdentityN").input("input: T").output("output: T").attr("T: list(type)");
        c.op("NoOp").role(OpRole::NoOp);
        c.op("Const").output("y: float").role(OpRole::Constant);
        c.op("Neg").input("x: float").output("y: float");
        c.op("Print").input("x: float").stateful();
        c.op("Call")
            .input("args: Tin")
            .output("output: Tout")
            .attr("Tin: list(type)")
            .attr("Tout: list(type)")
            .attr("f: func")
            .calls(CallKind::Function);
        c
    }

    fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let float = || AttrValue::List(AttrList::Types(vec![DType::Float]));
        let attrs = match op {
            "Call" => {
                let f = FuncRef { name: "f".into(), attrs: Attrs::new() };
                Attrs::new().with("Tin", float()).with("Tout", float()).with("f", f)
            }
            _ => Attrs::new(),
        };
        NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs,
            ..NodeDef::default()
        }
    }

    /// `y = f(x)` with this body, whose result is `ret`, called by `call`, which waits for `go`.
    fn lowered(body: Vec<NodeDef>, ret: &str) -> GraphIr {
        let mut signature = OpDef::named("f");
        signature.inputs = vec![parse_arg("x: float").unwrap()];
        signature.outputs = vec![parse_arg("y: float").unwrap()];
        let f = FunctionDef {
            signature,
            nodes: body,
            ret: [("y".to_string(), ret.to_string())].into(),
            control_ret: Default::default(),
            attrs: Attrs::new(),
            arg_attrs: Default::default(),
            resource_arg_ids: Default::default(),
            control_outputs: Vec::new(),
        };
        let def = GraphDef {
            nodes: vec![
                node("c", "Const", &[]),
                node("go", "NoOp", &[]),
                node("call", "Call", &["c", "^go"]),
                node("out", "Neg", &["call", "^call"]),
            ],
            functions: vec![Arc::new(f)],
            ..GraphDef::default()
        };
        let mut graph = GraphIr::from_def(&def, &catalog()).unwrap();
        lower(&mut graph, 0, &catalog()).unwrap();
        graph
    }

    fn lines(graph: &GraphIr) -> Vec<String> {
        let def = graph.to_def();
        let text = |n: &NodeDef| format!("{} = {}({})", n.name, n.op, n.inputs.join(", "));
        def.nodes.iter().map(text).collect()
    }

    #[test]
    fn a_body_replaces_its_call() {
        let body = vec![node("n", "Neg", &["x"]), node("p", "Print", &["x"])];
        assert_eq!(
            lines(&lowered(body, "n:y:0")),
            [
                "c = Const()",
                "go = NoOp()",
                "call = IdentityN(call/ret, ^call/done)",
                "out = Neg(call/ret, ^call/done)",
                "call/go = NoOp(^go)",
                "call/arg = Identity(c, ^call/go)",
                "call/n = Neg(call/arg)",
                "call/p = Print(call/arg)",
                "call/done = NoOp(^call/n, ^call/p, ^go)",
                "call/ret = Identity(call/n, ^call/done)",
            ]
        );
    }

    #[test]
    fn lowering_of_a_recursion_stops() {
        let body = vec![node("a", "Call", &["x"]), node("b", "Call", &["a:output:0"])];
        let graph = lowered(body, "b:output:0");
        assert!(graph.iter().any(|(_, n)| n.op.calls.is_some()));
        assert!(graph.len() < 2 * MAX_ADDED);
    }
}
