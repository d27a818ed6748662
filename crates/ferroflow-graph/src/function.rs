//! Functions: the library of a graph, and function bodies as graphs.

use crate::attr::{AttrList, AttrValue, Attrs, FuncRef};
use crate::catalog::Catalog;
use crate::def::{FunctionDef, NodeDef};
use crate::graph::{GraphIr, NodeId};
use crate::import::{Importer, Naming};
use crate::op_def::{CallKind, OpCost, OpDef, OpRole, PortType};
use ferroflow_core::{AsyncCtx, Done, InlineScope, KernelBox, Result, ensure, err};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The functions of a graph, by name.
#[derive(Clone, Default)]
pub struct FunctionLibrary {
    /// Shared, because gradients copy the library for each call.
    functions: Arc<HashMap<String, Arc<FunctionDef>>>,
    gradients: BTreeMap<String, String>,
}

impl FunctionLibrary {
    /// The function `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<&Arc<FunctionDef>> {
        self.functions.get(name)
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// All functions, sorted by name.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<FunctionDef>> {
        self.functions.values()
    }

    /// Function name to the name of its gradient function.
    pub fn gradients(&self) -> &BTreeMap<String, String> {
        &self.gradients
    }

    /// Adds functions. None may have the name of an op in `catalog`. A function that exists already
    /// is kept: a client repeats its whole library with every extension of the graph.
    pub fn add(
        &mut self,
        functions: impl IntoIterator<Item = Arc<FunctionDef>>,
        gradients: BTreeMap<String, String>,
        catalog: &Catalog,
    ) -> Result<()> {
        for f in functions {
            match self.functions.get(f.name()) {
                Some(known) => ensure!(
                    known.is_like(&f),
                    InvalidArgument,
                    "Cannot add function '{}' because a different function with the same name \
                     already exists.",
                    f.name()
                ),
                None => {
                    ensure!(
                        catalog.get(f.name()).is_none(),
                        InvalidArgument,
                        "Cannot add function '{}' because an op with the same name already exists.",
                        f.name()
                    );
                    Arc::make_mut(&mut self.functions).insert(f.name().to_string(), f);
                }
            }
        }
        self.gradients.extend(gradients);
        Ok(())
    }

    /// The part of the library that `nodes` can reach.
    pub(crate) fn reachable<'n>(
        &self,
        nodes: impl Iterator<Item = (&'n str, &'n Attrs)>,
    ) -> FunctionLibrary {
        let (mut functions, mut gradients) = (HashMap::new(), BTreeMap::new());
        let mut stack: Vec<String> = Vec::new();
        nodes.for_each(|(op, attrs)| mentioned(op, attrs, &mut stack));
        while let Some(name) = stack.pop() {
            let Some(function) = self.get(&name) else { continue };
            if functions.insert(name.clone(), function.clone()).is_some() {
                continue;
            }
            for node in &function.nodes {
                mentioned(&node.op, &node.attrs, &mut stack);
            }
            if let Some(gradient) = self.gradients.get(&name) {
                gradients.insert(name, gradient.clone());
                stack.push(gradient.clone());
            }
        }
        FunctionLibrary { functions: Arc::new(functions), gradients }
    }

    /// The function as an op: the op of a node can be the name of a function.
    pub fn op(&self, name: &str) -> Option<Arc<OpDef>> {
        let function = self.get(name)?;
        let mut def = function.signature.clone();
        let func = FuncRef { name: name.to_string(), attrs: Attrs::new() };
        def.cost = OpCost::Expensive;
        def.calls = Some(CallKind::Own);
        def.may_wait = true;
        def.takes_resources_from_anywhere = true;
        def.cpu = Some(Arc::new(move |init| {
            let function = init.function_ref(FuncRef { attrs: init.attrs.clone(), ..func.clone() });
            Ok(KernelBox::new_async(move |mut ctx: AsyncCtx, done: Done, scope: &InlineScope| {
                let inputs = ctx.inputs.len();
                match function.get().and_then(|f| Ok((f, ctx.take_inputs(0..inputs)?))) {
                    Ok((callable, args)) => callable.call(
                        args,
                        &ctx.step,
                        scope,
                        Box::new(move |result, scope: &InlineScope| {
                            done.finish_tensors_in(scope, result);
                        }),
                    ),
                    Err(e) => done.fail(e),
                }
            }))
        }));
        Some(Arc::new(def))
    }
}

/// The op that calls the gradient of any function. It takes the function's arguments and the
/// gradients of its results, and returns the gradients of the arguments.
pub const SYMBOLIC_GRADIENT: &str = "SymbolicGradient";

/// The body of a function as a graph of its own.
pub struct FunctionGraph {
    /// The nodes.
    pub graph: GraphIr,
    /// The `_Arg` nodes, in order.
    pub args: Vec<NodeId>,
    /// The `_Retval` nodes, in order.
    pub rets: Vec<NodeId>,
    /// Nodes that run although no result needs them: stateful nodes and control outputs.
    pub targets: Vec<NodeId>,
    /// The types of the results.
    pub result_types: Vec<PortType>,
}

impl FunctionGraph {
    /// Whether it only combines elements at the same place of its arguments, and scalars.
    pub fn is_elementwise(&self) -> bool {
        self.graph.iter().all(|(_, node)| match node.op.role {
            OpRole::Argument | OpRole::Return | OpRole::Identity | OpRole::NoOp => true,
            OpRole::Constant => node.attrs.tensor("value").is_ok_and(|t| t.rank() == 0),
            OpRole::Plain => node.op.is_elementwise() && !node.op.is_stateful,
            _ => false,
        })
    }

    /// Builds the body of `func` from the library. For [`SYMBOLIC_GRADIENT`], builds the gradient
    /// of the function in its attribute `f`.
    pub fn instantiate(
        func: &FuncRef,
        library: &FunctionLibrary,
        catalog: &Catalog,
    ) -> Result<Self> {
        if func.name == SYMBOLIC_GRADIENT {
            return crate::gradient::symbolic(&func.attrs.func("f")?, library, catalog);
        }
        let def = library
            .get(&func.name)
            .ok_or_else(|| err!(NotFound, "Function {} is not defined.", func.name))?;
        let signature = &def.signature;
        let attrs = signature.complete_attrs(declared_only(signature, &func.attrs))?;
        let mut nodes = Vec::with_capacity(def.nodes.len() + signature.inputs.len() * 2);

        // Arguments become `_Arg` nodes. An argument of several tensors becomes several nodes,
        // called `name:0`, `name:1`, ….
        let mut spread = HashMap::new();
        let mut index = 0i64;
        for arg in &signature.inputs {
            let types =
                OpDef { inputs: vec![arg.clone()], ..signature.clone() }.input_types(&attrs)?;
            let mut names = Vec::new();
            for (k, port) in types.iter().enumerate() {
                let name = if k == 0 { arg.name.clone() } else { format!("{}_arg_{k}", arg.name) };
                nodes.push(NodeDef {
                    name: name.clone(),
                    op: "_Arg".into(),
                    attrs: Attrs::new().with("T", port.dtype).with("index", index),
                    ..NodeDef::default()
                });
                names.push(name);
                index += 1;
            }
            spread.insert(arg.name.clone(), names);
        }
        let arg_count = index as usize;

        for node in &def.nodes {
            let mut node = node.clone();
            node.attrs = substitute(&node.attrs, &attrs)?;
            nodes.push(node);
        }

        let mut rets = Vec::new();
        for out in &signature.outputs {
            let types =
                OpDef { outputs: vec![out.clone()], ..signature.clone() }.output_types(&attrs)?;
            let source = def.ret.get(&out.name).ok_or_else(|| {
                err!(
                    InvalidArgument,
                    "function {} does not define its result '{}'",
                    func.name,
                    out.name
                )
            })?;
            rets.push((source.clone(), types));
        }

        let mut importer = Importer::new(catalog, library, Naming::Function(spread));
        let mut graph = GraphIr::new(library.clone());
        importer.add_nodes(&mut graph, &nodes)?;

        let retval = catalog
            .get("_Retval")
            .ok_or_else(|| err!(Internal, "the catalog lacks _Retval, which functions need"))?;
        let (mut ret_ids, mut result_types) = (Vec::new(), Vec::new());
        for (source, types) in rets {
            for (k, port) in types.iter().enumerate() {
                let from = importer.resolve(&graph, &source, k).map_err(|e| {
                    err!(InvalidArgument, "result {source} is not found: {}", e.message())
                })?;
                let index = ret_ids.len() as i64;
                let name = graph.unique_name(&format!("{}_RetVal", func.name));
                let attrs = Attrs::new().with("T", port.dtype).with("index", index);
                ret_ids.push(graph.add(name, retval.clone(), attrs, vec![from], vec![])?);
                result_types.push(*port);
            }
        }

        let args = graph.ids().take(arg_count).collect();
        let mut targets: Vec<NodeId> = graph
            .iter()
            .filter(|(_, n)| n.op.is_stateful && n.op.role != OpRole::Argument)
            .map(|(id, _)| id)
            .collect();
        for name in def.control_ret.values() {
            let id = graph.find(name).ok_or_else(|| {
                err!(InvalidArgument, "function {}: no node '{name}' to control", func.name)
            })?;
            targets.push(id);
        }
        ensure!(
            graph.len() < u32::MAX as usize,
            ResourceExhausted,
            "function {} is too large",
            func.name
        );
        Ok(FunctionGraph { graph, args, rets: ret_ids, targets, result_types })
    }
}

/// Names that may be functions: a node's op, and the functions in its attributes.
fn mentioned(op: &str, attrs: &Attrs, names: &mut Vec<String>) {
    fn of_func(f: &FuncRef, names: &mut Vec<String>) {
        mentioned(&f.name, &f.attrs, names);
    }
    names.push(op.to_string());
    for (_, value) in attrs.iter() {
        match value {
            AttrValue::Func(f) => of_func(f, names),
            AttrValue::List(AttrList::Funcs(fs)) => fs.iter().for_each(|f| of_func(f, names)),
            _ => {}
        }
    }
}

/// Those of the given attributes that the signature declares. A call also passes annotations.
fn declared_only(signature: &OpDef, given: &Attrs) -> Attrs {
    given
        .iter()
        .filter(|(name, _)| signature.attr(name).is_some())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Replaces the placeholders in a body's attributes by the values of this instantiation.
fn substitute(attrs: &Attrs, with: &Attrs) -> Result<Attrs> {
    attrs
        .iter()
        .map(|(name, value)| Ok((name.clone(), substitute_value(value, with)?)))
        .collect::<Result<Vec<_>>>()
        .map(|all| all.into_iter().collect())
}

fn substitute_value(value: &AttrValue, with: &Attrs) -> Result<AttrValue> {
    Ok(match value {
        AttrValue::Placeholder(name) => with
            .get(name)
            .cloned()
            .ok_or_else(|| err!(InvalidArgument, "no value for function attr '{name}'"))?,
        AttrValue::Func(f) => AttrValue::Func(substitute_func(f, with)?),
        AttrValue::List(AttrList::Funcs(fs)) => AttrValue::List(AttrList::Funcs(
            fs.iter().map(|f| substitute_func(f, with)).collect::<Result<_>>()?,
        )),
        other => other.clone(),
    })
}

/// Attributes of a function, and of the functions in them. Each call may pass its own on twice.
const MOST_NESTED_ATTRS: usize = 10_000;

fn nested_attrs(attrs: &Attrs) -> usize {
    let inner = |value: &AttrValue| match value {
        AttrValue::Func(f) => nested_attrs(&f.attrs),
        AttrValue::List(AttrList::Funcs(fs)) => fs.iter().map(|f| 1 + nested_attrs(&f.attrs)).sum(),
        _ => 0,
    };
    attrs.iter().map(|(_, value)| 1 + inner(value)).sum()
}

fn substitute_func(f: &FuncRef, with: &Attrs) -> Result<FuncRef> {
    let attrs = substitute(&f.attrs, with)?;
    ensure!(
        nested_attrs(&attrs) <= MOST_NESTED_ATTRS,
        ResourceExhausted,
        "function {} has more than {MOST_NESTED_ATTRS} attributes, all nested ones together",
        f.name
    );
    Ok(FuncRef { name: f.name.clone(), attrs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Code;

    #[test]
    fn attributes_that_double_with_each_call_are_refused() {
        let a = || AttrValue::Placeholder("a".into());
        let twice = FuncRef { name: "f".into(), attrs: Attrs::new().with("p", a()).with("q", a()) };
        let mut passed = FuncRef { name: "f".into(), attrs: Attrs::new() };
        let refused = (0..64).find_map(|_| {
            let with = Attrs::new().with("a", AttrValue::Func(passed.clone()));
            match substitute_func(&twice, &with) {
                Ok(f) => passed = f,
                Err(e) => return Some(e.code()),
            }
            None
        });
        assert_eq!(refused, Some(Code::ResourceExhausted));
    }
}
