//! Random graphs over real ops. Most are valid, so that steps reach the kernels. Some are hostile:
//! any name, type, number or edge may be wrong.

use super::values;
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;
use ferroflow_core::{DType, Shape, Tensor};
use ferroflow_graph::{
    AllowedValues, ArgDef, ArgTypes, AttrDef, AttrKind, AttrList, AttrValue, Attrs, FuncRef,
    FunctionDef, GraphDef, NodeDef, OpDef, PortType, TypeSource,
};
use std::sync::Arc;

/// A graph and the steps to run.
#[derive(Debug)]
pub struct Grown {
    pub graph: GraphDef,
    pub feeds: Vec<(String, Tensor)>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
    pub connections: Vec<(String, String)>,
}

/// Types for attributes that allow any type.
const TYPES: [DType; 12] = [
    DType::Float,
    DType::Float,
    DType::Int32,
    DType::Int32,
    DType::Int64,
    DType::Bool,
    DType::String,
    DType::Double,
    DType::UInt8,
    DType::Half,
    DType::Complex64,
    DType::Resource,
];

/// Most inputs of a node.
const MAX_INPUTS: usize = 12;

/// Selects a graph and a step.
pub fn grow(u: &mut Unstructured<'_>, ops: &[Arc<OpDef>]) -> Result<Grown> {
    let is_hostile = u.ratio(1, 8)?;
    let mut functions: Vec<Arc<FunctionDef>> = Vec::new();
    for i in 0..*u.choose(&[0, 0, 0, 1, 2])? {
        let made = function(u, ops, &format!("f{i}"), &functions, is_hostile)?;
        functions.push(Arc::new(made));
    }
    let mut body = Body::new(u, ops, &functions, is_hostile, false)?;
    let count = body.u.int_in_range(1..=8)?;
    for _ in 0..count {
        match body.u.int_in_range(0..=15)? {
            0 => body.counting_loop()?,
            1 if !functions.is_empty() => body.call()?,
            _ => body.random_node()?,
        }
    }
    let Body { nodes, outputs, house, .. } = body;
    let mut gradients = std::collections::BTreeMap::new();
    if is_hostile && u.ratio(1, 4)? {
        gradients.insert("f0".to_string(), "f1".to_string());
    }
    let graph = GraphDef { nodes, functions, gradients, ..GraphDef::default() };

    let mut fetches = Vec::new();
    let mut targets = Vec::new();
    // The last tensors depend on most of the others.
    if let Some(last) = graph.nodes.last() {
        targets.push(last.name.clone());
    }
    if let Some(last) = outputs.last() {
        fetches.push(last.text.clone());
    }
    for _ in 0..u.int_in_range(0..=3)? {
        if !outputs.is_empty() {
            fetches.push(u.choose(&outputs)?.text.clone());
        }
        if !graph.nodes.is_empty() && u.ratio(1, 4)? {
            targets.push(u.choose(&graph.nodes)?.name.clone());
        }
    }
    fetches.dedup();
    let mut feeds = Vec::new();
    for _ in 0..*u.choose(&[0, 0, 0, 1, 2])? {
        if outputs.is_empty() {
            break;
        }
        let fed = u.choose(&outputs)?.clone();
        let dtype = if is_hostile { *u.choose(&TYPES)? } else { fed.port.dtype };
        let shape = values::shape_beside(u, &house)?;
        if let Some(t) = values::tensor(u, dtype, shape)? {
            fetches.retain(|f| *f != fed.text);
            feeds.push((fed.text, t));
        }
    }
    let mut connections = Vec::new();
    if outputs.len() > 1 && u.ratio(1, 4)? {
        connections.push((u.choose(&outputs)?.text.clone(), u.choose(&outputs)?.text.clone()));
    }
    if is_hostile && u.ratio(1, 4)? {
        fetches.push(String::arbitrary(u)?);
    }
    Ok(Grown { graph, feeds, fetches, targets, connections })
}

/// Makes a function with arguments, a body, and results from it.
fn function(
    u: &mut Unstructured<'_>,
    ops: &[Arc<OpDef>],
    name: &str,
    functions: &[Arc<FunctionDef>],
    is_hostile: bool,
) -> Result<FunctionDef> {
    let mut signature = OpDef::named(name);
    let mut body = Body::new(u, ops, functions, is_hostile, true)?;
    for i in 0..body.u.int_in_range(0..=3)? {
        let dtype = *body.u.choose(&TYPES)?;
        let name = format!("a{i}");
        signature.inputs.push(ArgDef {
            name: name.clone(),
            is_ref: false,
            types: ArgTypes::One(TypeSource::Fixed(dtype)),
        });
        body.outputs.push(Output { text: name, port: PortType { dtype, is_ref: false } });
    }
    let count = body.u.int_in_range(0..=4)?;
    for _ in 0..count {
        // A function may call itself.
        if body.u.ratio(1, 8)? {
            body.call_named(name, &signature)?;
        } else {
            body.random_node()?;
        }
    }
    let Body { nodes, outputs, .. } = body;
    let mut ret = std::collections::BTreeMap::new();
    for i in 0..u.int_in_range(0..=2)? {
        let plain: Vec<&Output> = outputs.iter().filter(|o| !o.port.is_ref).collect();
        if plain.is_empty() {
            break;
        }
        let from = u.choose(&plain)?;
        let out = format!("r{i}");
        signature.outputs.push(ArgDef {
            name: out.clone(),
            is_ref: false,
            types: ArgTypes::One(TypeSource::Fixed(from.port.dtype)),
        });
        ret.insert(out, from.text.clone());
    }
    signature.is_stateful = u.ratio(1, 2)?;
    Ok(FunctionDef {
        signature,
        nodes,
        ret,
        control_ret: Default::default(),
        attrs: Attrs::new(),
        arg_attrs: Default::default(),
        resource_arg_ids: Default::default(),
        control_outputs: Vec::new(),
    })
}

/// A tensor that nodes can use, in the notation of their inputs.
#[derive(Clone, Debug)]
struct Output {
    text: String,
    port: PortType,
}

/// A graph, or the body of a function, under construction.
struct Body<'u, 'd, 'o> {
    u: &'u mut Unstructured<'d>,
    ops: &'o [Arc<OpDef>],
    functions: &'o [Arc<FunctionDef>],
    is_hostile: bool,
    is_function: bool,
    nodes: Vec<NodeDef>,
    outputs: Vec<Output>,
    /// The shape of most tensors, so that they fit together.
    house: Shape,
}

impl<'u, 'd, 'o> Body<'u, 'd, 'o> {
    fn new(
        u: &'u mut Unstructured<'d>,
        ops: &'o [Arc<OpDef>],
        functions: &'o [Arc<FunctionDef>],
        is_hostile: bool,
        is_function: bool,
    ) -> Result<Self> {
        let house = values::shape(u)?;
        Ok(Body {
            u,
            ops,
            functions,
            is_hostile,
            is_function,
            nodes: vec![],
            outputs: vec![],
            house,
        })
    }

    /// Whether to do something invalid here.
    fn errs(&mut self) -> Result<bool> {
        Ok(self.is_hostile && self.u.ratio(1, 16)?)
    }

    fn random_node(&mut self) -> Result<()> {
        let op = self.u.choose(self.ops)?.clone();
        let attrs = self.attrs(&op)?;
        self.node(&op, attrs)
    }

    /// Adds a node of `op`, with selected or new inputs.
    fn node(&mut self, op: &Arc<OpDef>, attrs: Attrs) -> Result<()> {
        let mut inputs = Vec::new();
        let complete = op.complete_attrs(attrs.clone());
        let types = complete.as_ref().ok().and_then(|a| op.input_types(a).ok());
        for port in types.unwrap_or_default().into_iter().take(MAX_INPUTS) {
            inputs.push(self.input(port)?);
        }
        if self.errs()? && !inputs.is_empty() {
            let at = self.u.choose_index(inputs.len())?;
            match self.u.int_in_range(0..=3)? {
                0 => inputs[at] = format!("n{}", self.u.int_in_range(0..=20)?),
                1 => {
                    let node = self.u.int_in_range(0..=20)?;
                    inputs[at] = format!("n{node}:{}", values::int(self.u)?);
                }
                2 => inputs[at] = String::arbitrary(self.u)?,
                _ => drop(inputs.remove(at)),
            }
        }
        if !self.nodes.is_empty() && self.u.ratio(1, 10)? {
            inputs.push(format!("^{}", self.u.choose(&self.nodes)?.name));
        }
        self.push(op, inputs, attrs)
    }

    fn push(&mut self, op: &Arc<OpDef>, inputs: Vec<String>, attrs: Attrs) -> Result<()> {
        let mut name = format!("n{}", self.nodes.len());
        if self.errs()? {
            name = if self.u.ratio(1, 2)? { "n0".into() } else { String::arbitrary(self.u)? };
        }
        if let Ok(complete) = op.complete_attrs(attrs.clone()) {
            let mut slot = 0;
            for arg in &op.outputs {
                let one = OpDef { outputs: vec![arg.clone()], ..(**op).clone() };
                let types = one.output_types(&complete).unwrap_or_default();
                for (i, &port) in types.iter().enumerate().take(MAX_INPUTS) {
                    let text = match self.is_function {
                        true => format!("{name}:{}:{i}", arg.name),
                        false => format!("{name}:{}", slot + i),
                    };
                    self.outputs.push(Output { text, port });
                }
                slot += types.len();
            }
        }
        let op = if self.errs()? { String::arbitrary(self.u)? } else { op.name.clone() };
        let device = match self.u.int_in_range(0..=31)? {
            0 => "/device:CPU:0".to_string(),
            1 if self.is_hostile => String::arbitrary(self.u)?,
            _ => String::new(),
        };
        self.nodes.push(NodeDef { name, op, inputs, device, attrs, ..NodeDef::default() });
        Ok(())
    }

    /// A tensor of this type, an existing or a new one.
    fn input(&mut self, port: PortType) -> Result<String> {
        let fits = |o: &&Output| o.port.dtype == port.dtype && (o.port.is_ref || !port.is_ref);
        let there: Vec<String> = self.outputs.iter().filter(fits).map(|o| o.text.clone()).collect();
        if !there.is_empty() && self.u.ratio(2, 3)? {
            // Prefer the latest tensors: long chains reach more states.
            let last = there.len() - 1;
            let at = if self.u.ratio(1, 2)? { last } else { self.u.choose_index(there.len())? };
            return Ok(there[at].clone());
        }
        if !port.is_ref && self.constant(port.dtype)? {
            return Ok(self.outputs.last().map_or(String::new(), |o| o.text.clone()));
        }
        self.source(port)?;
        let made = self.outputs.iter().rev().find(fits).map(|o| o.text.clone());
        Ok(made.unwrap_or_else(|| "n0".to_string()))
    }

    fn constant(&mut self, dtype: DType) -> Result<bool> {
        let shape = values::shape_beside(self.u, &self.house)?;
        let Some(value) = values::tensor(self.u, dtype, shape)? else { return Ok(false) };
        let Some(op) = self.find("Const") else { return Ok(false) };
        self.push(&op, vec![], Attrs::new().with("dtype", dtype).with("value", value))?;
        Ok(true)
    }

    /// Adds a node without inputs with an output of this type: a variable, a queue, a table.
    fn source(&mut self, port: PortType) -> Result<()> {
        let makes = |op: &&Arc<OpDef>| {
            op.inputs.is_empty()
                && op.outputs.iter().any(|o| {
                    o.is_ref == port.is_ref
                        && match &o.types {
                            ArgTypes::One(TypeSource::Fixed(d)) => *d == port.dtype,
                            ArgTypes::One(TypeSource::Attr(_)) => port.is_ref,
                            _ => false,
                        }
                })
        };
        let sources: Vec<Arc<OpDef>> = self.ops.iter().filter(makes).cloned().collect();
        if sources.is_empty() {
            return Ok(());
        }
        let op = self.u.choose(&sources)?.clone();
        let mut attrs = self.attrs(&op)?;
        for output in &op.outputs {
            if let ArgTypes::One(TypeSource::Attr(name)) = &output.types {
                attrs.set(name.clone(), port.dtype);
            }
        }
        self.push(&op, vec![], attrs)
    }

    fn find(&self, name: &str) -> Option<Arc<OpDef>> {
        self.ops.iter().find(|op| op.name == name).cloned()
    }

    /// Adds `while i < limit { i += step }` in the primitives of control flow. In a hostile graph,
    /// one of its edges is wrong. Later nodes may use tensors inside the loop.
    fn counting_loop(&mut self) -> Result<()> {
        if self.is_function {
            return Ok(());
        }
        let first = self.nodes.len();
        let parallel = values::int(self.u)?.saturating_abs().max(1);
        let [start, limit, step] = [
            self.u.int_in_range(-2..=2)?,
            self.u.int_in_range(-2..=8)?,
            self.u.int_in_range(-1..=2)?,
        ];
        let scalar =
            |x: i32| Attrs::new().with("dtype", DType::Int32).with("value", Tensor::scalar(x));
        let int32 = || Attrs::new().with("T", DType::Int32);
        let frame = format!("frame{}", self.u.int_in_range(0..=1)?);
        let enter = |is_constant: bool| {
            int32()
                .with("frame_name", &frame[..])
                .with("is_constant", is_constant)
                .with("parallel_iterations", parallel)
        };
        let n = |i: usize| format!("n{}", first + i);
        let mut parts = vec![
            ("Const", vec![], scalar(start)),
            ("Const", vec![], scalar(limit)),
            ("Const", vec![], scalar(step)),
            ("Enter", vec![n(0)], enter(false)),
            ("Enter", vec![n(1)], enter(true)),
            ("Enter", vec![n(2)], enter(true)),
            ("Merge", vec![n(3), n(11)], int32().with("N", 2i64)),
            ("Less", vec![n(6), n(4)], int32()),
            ("LoopCond", vec![n(7)], Attrs::new()),
            ("Switch", vec![n(6), n(8)], int32()),
            ("AddV2", vec![format!("{}:1", n(9)), n(5)], int32()),
            ("NextIteration", vec![n(10)], int32()),
            ("Exit", vec![n(9)], int32()),
        ];
        if self.is_hostile {
            let at = self.u.int_in_range(3..=12)?;
            let to = self.u.int_in_range(0..=12)?;
            parts[at].1[0] = n(to);
        }
        for (op, inputs, attrs) in parts {
            if let Some(op) = self.find(op) {
                self.push(&op, inputs, attrs)?;
            }
        }
        Ok(())
    }

    /// Adds a node that calls a function.
    fn call(&mut self) -> Result<()> {
        let f = self.u.choose(self.functions)?.clone();
        self.call_named(f.name(), &f.signature)
    }

    fn call_named(&mut self, name: &str, signature: &OpDef) -> Result<()> {
        let fixed = |args: &[ArgDef]| {
            let types = args.iter().map(|a| match &a.types {
                ArgTypes::One(TypeSource::Fixed(d)) => *d,
                _ => DType::Float,
            });
            types.collect::<Vec<DType>>()
        };
        let (ins, outs) = (fixed(&signature.inputs), fixed(&signature.outputs));
        let func = FuncRef { name: name.to_string(), attrs: Attrs::new() };
        let kind =
            *self.u.choose(&["PartitionedCall", "StatefulPartitionedCall", "If", "While"])?;
        let Some(op) = self.find(kind) else { return Ok(()) };
        let attrs = match kind {
            "While" => Attrs::new().with("T", ins).with("cond", func.clone()).with("body", func),
            "If" => Attrs::new()
                .with("Tcond", DType::Bool)
                .with("Tin", ins)
                .with("Tout", outs)
                .with("then_branch", func.clone())
                .with("else_branch", func),
            _ => Attrs::new().with("Tin", ins).with("Tout", outs).with("f", func),
        };
        self.node(&op, attrs)
    }

    fn attrs(&mut self, op: &OpDef) -> Result<Attrs> {
        let mut attrs = Attrs::new();
        for def in &op.attrs {
            if def.default.is_some() && self.u.ratio(1, 2)? {
                continue;
            }
            if def.kind == AttrKind::Tensor {
                continue; // The type may come from another attribute.
            }
            let is_count = op.inputs.iter().chain(&op.outputs).any(
                |a| matches!(&a.types, ArgTypes::Repeated { count, .. } if *count == def.name),
            );
            let value = match def.is_list {
                true => self.list(def)?,
                false if is_count => {
                    AttrValue::Int(self.u.int_in_range(1..=4)?.max(def.minimum.unwrap_or(0)))
                }
                false => self.value(def)?,
            };
            attrs.set(def.name.clone(), value);
        }
        for def in &op.attrs {
            if def.kind == AttrKind::Tensor && !def.is_list && def.default.is_none() {
                let dtype = attrs.dtype("dtype").unwrap_or(DType::Float);
                let shape = values::shape_beside(self.u, &self.house)?;
                if let Some(t) = values::tensor(self.u, dtype, shape)? {
                    attrs.set(def.name.clone(), t);
                }
            }
        }
        if self.errs()? {
            let wrong = AttrDef {
                name: String::new(),
                kind: *self.u.choose(&[AttrKind::Int, AttrKind::Str, AttrKind::Shape])?,
                is_list: false,
                default: None,
                minimum: None,
                allowed: None,
            };
            let value = self.value(&wrong)?;
            let names: Vec<String> = op.attrs.iter().map(|a| a.name.clone()).collect();
            let name =
                if names.is_empty() { "x".to_string() } else { self.u.choose(&names)?.clone() };
            attrs.set(name, value);
        }
        Ok(attrs)
    }

    fn value(&mut self, def: &AttrDef) -> Result<AttrValue> {
        let u = &mut *self.u;
        Ok(match def.kind {
            AttrKind::Str => match &def.allowed {
                Some(AllowedValues::Strs(all)) if !all.is_empty() => (&u.choose(all)?[..]).into(),
                _ => AttrValue::Str(values::text(u)?),
            },
            AttrKind::Int => AttrValue::Int(values::int(u)?.max(def.minimum.unwrap_or(i64::MIN))),
            AttrKind::Float => AttrValue::Float(values::float(u)? as f32),
            AttrKind::Bool => AttrValue::Bool(bool::arbitrary(u)?),
            AttrKind::Type => AttrValue::Type(self.dtype(def)?),
            AttrKind::Shape => AttrValue::Shape(values::partial_shape(u)?),
            AttrKind::Tensor => AttrValue::Tensor(Tensor::scalar(1.0f32)),
            AttrKind::Func => AttrValue::Func(self.func()?),
        })
    }

    /// Prefer a type that an existing tensor has, so that the node is used.
    fn dtype(&mut self, def: &AttrDef) -> Result<DType> {
        let allowed: Vec<DType> = match &def.allowed {
            Some(AllowedValues::Types(types)) => types.clone(),
            _ => TYPES.to_vec(),
        };
        let used: Vec<DType> = self.outputs.iter().map(|o| o.port.dtype).collect();
        if !used.is_empty() && self.u.ratio(1, 2)? {
            let dtype = *self.u.choose(&used)?;
            if allowed.contains(&dtype) {
                return Ok(dtype);
            }
        }
        if allowed.is_empty() {
            return Ok(DType::Float);
        }
        // The first few are the common ones.
        let few = if self.u.ratio(1, 2)? { allowed.len().min(3) } else { allowed.len() };
        Ok(*self.u.choose(&allowed[..few])?)
    }

    fn func(&mut self) -> Result<FuncRef> {
        let name = match self.functions {
            [] => "f9".to_string(),
            all => self.u.choose(all)?.name().to_string(),
        };
        Ok(FuncRef { name, attrs: Attrs::new() })
    }

    fn list(&mut self, def: &AttrDef) -> Result<AttrValue> {
        let least = usize::try_from(def.minimum.unwrap_or(0)).unwrap_or(0).min(8);
        let n = least.max(self.u.int_in_range(0..=4)?);
        let mut list = match def.kind {
            AttrKind::Str => AttrList::Strs(Vec::<Bytes>::new()),
            AttrKind::Int => AttrList::Ints(Vec::new()),
            AttrKind::Float => AttrList::Floats(Vec::new()),
            AttrKind::Bool => AttrList::Bools(Vec::new()),
            AttrKind::Type => AttrList::Types(Vec::new()),
            AttrKind::Shape => AttrList::Shapes(Vec::new()),
            AttrKind::Tensor => AttrList::Tensors(Vec::new()),
            AttrKind::Func => AttrList::Funcs(Vec::new()),
        };
        for _ in 0..n {
            match (&mut list, self.value(def)?) {
                (AttrList::Strs(all), AttrValue::Str(x)) => all.push(x),
                (AttrList::Ints(all), AttrValue::Int(x)) => all.push(x),
                (AttrList::Floats(all), AttrValue::Float(x)) => all.push(x),
                (AttrList::Bools(all), AttrValue::Bool(x)) => all.push(x),
                (AttrList::Types(all), AttrValue::Type(x)) => all.push(x),
                (AttrList::Shapes(all), AttrValue::Shape(x)) => all.push(x),
                (AttrList::Tensors(all), AttrValue::Tensor(x)) => all.push(x),
                (AttrList::Funcs(all), AttrValue::Func(x)) => all.push(x),
                _ => {}
            }
        }
        Ok(AttrValue::List(list))
    }
}
