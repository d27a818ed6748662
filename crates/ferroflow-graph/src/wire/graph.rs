//! Graphs, functions and signatures from and to `GraphDef`.
//!
//! Fields that we neither use nor pass on are dropped: debug info, deprecation notes, the full
//! types and handle data of function arguments. Prost limits the nesting of messages.

use super::{malformed, tensor};
use crate::attr::{AttrList, AttrValue, Attrs, FuncRef};
use crate::def::{FunctionDef, GraphDef, NodeDef, Versions};
use crate::op_def::{AllowedValues, ArgDef, ArgTypes, AttrDef, AttrKind, OpDef, TypeSource};
use bytes::Bytes;
use ferroflow_core::{DType, Result, Tensor, Within, bail, ensure, err};
use ferroflow_proto::tensorflow as pb;
use pb::attr_value::{ListValue, Value};
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The nesting depth of function attributes. No peer reads deeper ones.
const MAX_DEPTH: usize = 32;

/// Parses a serialized `GraphDef`.
pub fn decode_graph(bytes: Bytes) -> Result<GraphDef> {
    graph_from_proto(pb::GraphDef::decode(bytes).map_err(malformed)?)
}

/// Serializes to a `GraphDef`.
pub fn encode_graph(graph: &GraphDef) -> Result<Bytes> {
    Ok(graph_to_proto(graph)?.encode_to_vec().into())
}

/// Converts from a `GraphDef`.
pub fn graph_from_proto(p: pb::GraphDef) -> Result<GraphDef> {
    let library = p.library.unwrap_or_default();
    let functions = library.function.into_iter().map(|f| function_from_proto(f).map(Arc::new));
    let gradients = library.gradient.into_iter().map(|g| (g.function_name, g.gradient_func));
    let versions = match p.versions {
        Some(v) => Versions { producer: v.producer, min_consumer: v.min_consumer },
        // Graphs from before there were two version numbers.
        None if p.version != 0 => Versions { producer: p.version, min_consumer: 0 },
        None => Versions::default(),
    };
    Ok(GraphDef {
        nodes: p.node.into_iter().map(node_from_proto).collect::<Result<_>>()?,
        functions: functions.collect::<Result<_>>()?,
        gradients: gradients.collect(),
        versions,
    })
}

/// Converts to a `GraphDef`.
pub fn graph_to_proto(graph: &GraphDef) -> Result<pb::GraphDef> {
    let functions = graph.functions.iter().map(|f| function_to_proto(f));
    let gradient = |(function, gradient): (&String, &String)| pb::GradientDef {
        function_name: function.clone(),
        gradient_func: gradient.clone(),
    };
    Ok(pb::GraphDef {
        node: graph.nodes.iter().map(node_to_proto).collect::<Result<_>>()?,
        library: Some(pb::FunctionDefLibrary {
            function: functions.collect::<Result<_>>()?,
            gradient: graph.gradients.iter().map(gradient).collect(),
            ..Default::default()
        }),
        versions: Some(pb::VersionDef {
            producer: graph.versions.producer,
            min_consumer: graph.versions.min_consumer,
            bad_consumers: Vec::new(),
        }),
        ..Default::default()
    })
}

/// Converts from a `NodeDef`.
pub fn node_from_proto(p: pb::NodeDef) -> Result<NodeDef> {
    let attrs = attrs_from_proto(p.attr).map_err(|e| e.at_node(&p.name))?;
    Ok(NodeDef {
        name: p.name,
        op: p.op,
        inputs: p.input,
        device: p.device,
        attrs,
        full_type: p.experimental_type,
        original_names: p.experimental_debug_info.unwrap_or_default().original_node_names,
    })
}

/// Converts to a `NodeDef`.
pub fn node_to_proto(n: &NodeDef) -> Result<pb::NodeDef> {
    let debug_info = pb::node_def::ExperimentalDebugInfo {
        original_node_names: n.original_names.clone(),
        original_func_names: Vec::new(),
    };
    Ok(pb::NodeDef {
        name: n.name.clone(),
        op: n.op.clone(),
        input: n.inputs.clone(),
        device: n.device.clone(),
        attr: attrs_to_proto(&n.attrs, 0).within(|| format!("node '{}'", n.name))?,
        experimental_debug_info: Some(debug_info).filter(|d| !d.original_node_names.is_empty()),
        experimental_type: n.full_type.clone(),
    })
}

/// Converts from a `FunctionDef`.
pub fn function_from_proto(p: pb::FunctionDef) -> Result<FunctionDef> {
    let mut signature = p.signature.unwrap_or_default();
    let control_outputs = std::mem::take(&mut signature.control_output);
    let name = signature.name.clone();
    let at = || format!("function '{name}'");
    let arg_attrs = p.arg_attr.into_iter().map(|(i, a)| Ok((i, attrs_from_proto(a.attr)?)));
    Ok(FunctionDef {
        signature: op_from_proto(signature).within(at)?,
        nodes: p.node_def.into_iter().map(node_from_proto).collect::<Result<_>>().within(at)?,
        ret: p.ret,
        control_ret: p.control_ret,
        attrs: attrs_from_proto(p.attr).within(at)?,
        arg_attrs: arg_attrs.collect::<Result<_>>().within(at)?,
        resource_arg_ids: p.resource_arg_unique_id,
        control_outputs,
    })
}

/// Converts to a `FunctionDef`.
pub fn function_to_proto(f: &FunctionDef) -> Result<pb::FunctionDef> {
    let mut signature = op_to_proto(&f.signature)?;
    signature.control_output = f.control_outputs.clone();
    let args = f
        .arg_attrs
        .iter()
        .map(|(i, attrs)| Ok((*i, pb::function_def::ArgAttrs { attr: attrs_to_proto(attrs, 0)? })));
    Ok(pb::FunctionDef {
        signature: Some(signature),
        node_def: f.nodes.iter().map(node_to_proto).collect::<Result<_>>()?,
        ret: f.ret.clone(),
        attr: attrs_to_proto(&f.attrs, 0)?,
        control_ret: f.control_ret.clone(),
        arg_attr: args.collect::<Result<_>>()?,
        resource_arg_unique_id: f.resource_arg_ids.clone(),
    })
}

/// Converts attributes.
pub fn attrs_from_proto(attrs: BTreeMap<String, pb::AttrValue>) -> Result<Attrs> {
    let mut all = Vec::with_capacity(attrs.len());
    for (name, value) in attrs {
        // An attribute without a value counts as missing.
        if let Some(value) = value.value {
            let value = value_from_proto(value).within(|| format!("attr '{name}'"))?;
            all.push((name, value));
        }
    }
    Ok(all.into_iter().collect())
}

fn attrs_to_proto(attrs: &Attrs, depth: usize) -> Result<BTreeMap<String, pb::AttrValue>> {
    let one = |(name, value): (&String, &AttrValue)| {
        let value = value_to_proto(value, depth).within(|| format!("attr '{name}'"))?;
        Ok((name.clone(), pb::AttrValue { value: Some(value) }))
    };
    attrs.iter().map(one).collect()
}

fn value_from_proto(value: Value) -> Result<AttrValue> {
    Ok(match value {
        Value::S(s) => AttrValue::Str(detached(s)),
        Value::I(i) => AttrValue::Int(i),
        Value::F(f) => AttrValue::Float(f),
        Value::B(b) => AttrValue::Bool(b),
        Value::Type(t) => AttrValue::Type(DType::from_number(t)?),
        Value::Shape(s) => AttrValue::Shape(tensor::shape_from_proto(&s)?),
        Value::Tensor(t) => AttrValue::Tensor(attr_tensor(*t)?),
        Value::Func(f) => AttrValue::Func(func_from_proto(f)?),
        Value::Placeholder(name) => AttrValue::Placeholder(name),
        Value::List(list) => AttrValue::List(list_from_proto(*list)?),
    })
}

/// The first kind of item that occurs is the kind of the list.
fn list_from_proto(p: ListValue) -> Result<AttrList> {
    Ok(if !p.s.is_empty() {
        AttrList::Strs(p.s.into_iter().map(detached).collect())
    } else if !p.i.is_empty() {
        AttrList::Ints(p.i)
    } else if !p.f.is_empty() {
        AttrList::Floats(p.f)
    } else if !p.b.is_empty() {
        AttrList::Bools(p.b)
    } else if !p.r#type.is_empty() {
        AttrList::Types(p.r#type.into_iter().map(DType::from_number).collect::<Result<_>>()?)
    } else if !p.shape.is_empty() {
        AttrList::Shapes(p.shape.iter().map(tensor::shape_from_proto).collect::<Result<_>>()?)
    } else if !p.tensor.is_empty() {
        AttrList::Tensors(p.tensor.into_iter().map(attr_tensor).collect::<Result<_>>()?)
    } else if !p.func.is_empty() {
        AttrList::Funcs(p.func.into_iter().map(func_from_proto).collect::<Result<_>>()?)
    } else {
        AttrList::Empty
    })
}

/// A tensor inside a graph. Any error in it, also its size, is an error of the graph.
fn attr_tensor(p: pb::TensorProto) -> Result<Tensor> {
    tensor::from_proto(p)
        .map_err(|e| err!(InvalidArgument, "Cannot parse tensor from proto: {}", e.message()))
}

fn func_from_proto(p: pb::NameAttrList) -> Result<FuncRef> {
    Ok(FuncRef { name: p.name, attrs: attrs_from_proto(p.attr)? })
}

/// Copies a short text, which would otherwise keep the whole message in memory.
fn detached(s: Bytes) -> Bytes {
    if s.len() < tensor::ADOPT_FROM { Bytes::copy_from_slice(&s) } else { s }
}

fn value_to_proto(value: &AttrValue, depth: usize) -> Result<Value> {
    Ok(match value {
        AttrValue::Str(s) => Value::S(s.clone()),
        AttrValue::Int(i) => Value::I(*i),
        AttrValue::Float(f) => Value::F(*f),
        AttrValue::Bool(b) => Value::B(*b),
        AttrValue::Type(t) => Value::Type(t.number()),
        AttrValue::Shape(s) => Value::Shape(tensor::shape_to_proto(s)),
        AttrValue::Tensor(t) => Value::Tensor(Box::new(tensor::to_proto(t)?)),
        AttrValue::Func(f) => Value::Func(func_to_proto(f, depth)?),
        AttrValue::Placeholder(name) => Value::Placeholder(name.clone()),
        AttrValue::List(list) => Value::List(Box::new(list_to_proto(list, depth)?)),
    })
}

fn list_to_proto(list: &AttrList, depth: usize) -> Result<ListValue> {
    let mut p = ListValue::default();
    match list {
        AttrList::Empty => {}
        AttrList::Strs(v) => p.s = v.clone(),
        AttrList::Ints(v) => p.i = v.clone(),
        AttrList::Floats(v) => p.f = v.clone(),
        AttrList::Bools(v) => p.b = v.clone(),
        AttrList::Types(v) => p.r#type = v.iter().map(|t| t.number()).collect(),
        AttrList::Shapes(v) => p.shape = v.iter().map(tensor::shape_to_proto).collect(),
        AttrList::Tensors(v) => {
            p.tensor = v.iter().map(tensor::to_proto).collect::<Result<_>>()?;
        }
        AttrList::Funcs(v) => {
            p.func = v.iter().map(|f| func_to_proto(f, depth)).collect::<Result<_>>()?;
        }
    }
    Ok(p)
}

fn func_to_proto(f: &FuncRef, depth: usize) -> Result<pb::NameAttrList> {
    ensure!(depth < MAX_DEPTH, InvalidArgument, "function attributes are nested too deep");
    Ok(pb::NameAttrList { name: f.name.clone(), attr: attrs_to_proto(&f.attrs, depth + 1)? })
}

/// Parses the signatures in a serialized `OpList`. Ops that cannot be read are left out.
pub(crate) fn decode_ops(list: Bytes) -> Result<Vec<OpDef>> {
    let ops = pb::OpList::decode(list).map_err(malformed)?.op;
    Ok(ops.into_iter().filter_map(|op| op_from_proto(op).ok()).collect())
}

/// Parses the signature in a serialized `OpDef`.
pub(crate) fn decode_op(op: Bytes) -> Result<OpDef> {
    op_from_proto(pb::OpDef::decode(op).map_err(malformed)?)
}

/// Reads a signature: an op without shape function and kernel.
pub fn op_from_proto(p: pb::OpDef) -> Result<OpDef> {
    let args = |args: Vec<pb::op_def::ArgDef>| -> Result<Vec<ArgDef>> {
        args.into_iter().map(arg_from_proto).collect()
    };
    let name = p.name;
    let at = || format!("Op<name={name}>");
    let doc = [p.summary, p.description].into_iter().filter(|text| !text.is_empty());
    Ok(OpDef {
        doc: doc.collect::<Vec<_>>().join("\n\n"),
        inputs: args(p.input_arg).within(at)?,
        outputs: args(p.output_arg).within(at)?,
        attrs: p.attr.into_iter().map(attr_def_from_proto).collect::<Result<_>>().within(at)?,
        is_stateful: p.is_stateful,
        is_commutative: p.is_commutative,
        is_aggregate: p.is_aggregate,
        allows_uninitialized_input: p.allows_uninitialized_input,
        ..OpDef::named(name)
    })
}

/// Converts to an `OpDef`.
pub fn op_to_proto(op: &OpDef) -> Result<pb::OpDef> {
    Ok(pb::OpDef {
        name: op.name.clone(),
        input_arg: op.inputs.iter().map(arg_to_proto).collect(),
        output_arg: op.outputs.iter().map(arg_to_proto).collect(),
        attr: op.attrs.iter().map(attr_def_to_proto).collect::<Result<_>>()?,
        is_stateful: op.is_stateful,
        is_commutative: op.is_commutative,
        is_aggregate: op.is_aggregate,
        allows_uninitialized_input: op.allows_uninitialized_input,
        ..Default::default()
    })
}

fn arg_from_proto(p: pb::op_def::ArgDef) -> Result<ArgDef> {
    // Reference types are numbered 100 above the types they refer to.
    let is_ref = p.is_ref || p.r#type > 100;
    let source = || -> Result<TypeSource> {
        Ok(match p.type_attr.is_empty() {
            true => TypeSource::Fixed(DType::from_number(p.r#type % 100)?),
            false => TypeSource::Attr(p.type_attr.clone()),
        })
    };
    let types = if !p.type_list_attr.is_empty() {
        ArgTypes::Listed(p.type_list_attr.clone())
    } else if !p.number_attr.is_empty() {
        ArgTypes::Repeated { count: p.number_attr.clone(), of: source()? }
    } else {
        ArgTypes::One(source()?)
    };
    Ok(ArgDef { name: p.name, is_ref, types })
}

fn arg_to_proto(arg: &ArgDef) -> pb::op_def::ArgDef {
    let mut p =
        pb::op_def::ArgDef { name: arg.name.clone(), is_ref: arg.is_ref, ..Default::default() };
    let source = match &arg.types {
        ArgTypes::Listed(list) => {
            p.type_list_attr = list.clone();
            return p;
        }
        ArgTypes::Repeated { count, of } => {
            p.number_attr = count.clone();
            of
        }
        ArgTypes::One(source) => source,
    };
    match source {
        TypeSource::Fixed(dtype) => p.r#type = dtype.number(),
        TypeSource::Attr(name) => p.type_attr = name.clone(),
    }
    p
}

const KINDS: [(AttrKind, &str); 8] = [
    (AttrKind::Str, "string"),
    (AttrKind::Int, "int"),
    (AttrKind::Float, "float"),
    (AttrKind::Bool, "bool"),
    (AttrKind::Type, "type"),
    (AttrKind::Shape, "shape"),
    (AttrKind::Tensor, "tensor"),
    (AttrKind::Func, "func"),
];

fn attr_def_from_proto(p: pb::op_def::AttrDef) -> Result<AttrDef> {
    let item = p.r#type.strip_prefix("list(").and_then(|t| t.strip_suffix(')'));
    let kind = item.unwrap_or(&p.r#type);
    let Some(&(kind, _)) = KINDS.iter().find(|k| k.1 == kind) else {
        bail!(InvalidArgument, "attr '{}' has unknown type '{}'", p.name, p.r#type);
    };
    let allowed = match p.allowed_values.and_then(|v| v.value) {
        Some(Value::List(list)) => match list_from_proto(*list)? {
            AttrList::Types(types) => Some(AllowedValues::Types(types)),
            AttrList::Strs(strs) => Some(AllowedValues::Strs(
                strs.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect(),
            )),
            _ => None,
        },
        _ => None,
    };
    Ok(AttrDef {
        kind,
        is_list: item.is_some(),
        default: p.default_value.and_then(|v| v.value).map(value_from_proto).transpose()?,
        minimum: p.has_minimum.then_some(p.minimum),
        allowed,
        name: p.name,
    })
}

fn attr_def_to_proto(a: &AttrDef) -> Result<pb::op_def::AttrDef> {
    let kind = KINDS.iter().find(|k| k.0 == a.kind).map_or("", |k| k.1);
    let value = |value| pb::AttrValue { value: Some(value) };
    let allowed = a.allowed.as_ref().map(|allowed| match allowed {
        AllowedValues::Types(types) => AttrList::Types(types.clone()),
        AllowedValues::Strs(strs) => {
            AttrList::Strs(strs.iter().map(|s| Bytes::copy_from_slice(s.as_bytes())).collect())
        }
    });
    let allowed = allowed.map(|list| value_to_proto(&AttrValue::List(list), 0)).transpose()?;
    let default = a.default.as_ref().map(|d| value_to_proto(d, 0)).transpose()?;
    Ok(pb::op_def::AttrDef {
        name: a.name.clone(),
        r#type: if a.is_list { format!("list({kind})") } else { kind.to_string() },
        default_value: default.map(value),
        has_minimum: a.minimum.is_some(),
        minimum: a.minimum.unwrap_or_default(),
        allowed_values: allowed.map(value),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, PartialShape, Tensor};

    fn value(value: Value) -> pb::AttrValue {
        pb::AttrValue { value: Some(value) }
    }

    #[test]
    fn every_kind_of_attribute_survives() {
        let func = FuncRef { name: "f".into(), attrs: Attrs::new().with("T", DType::Half) };
        let attrs = Attrs::new()
            .with("s", "text")
            .with("i", -1i64)
            .with("f", 0.5f32)
            .with("b", false)
            .with("type", DType::UInt4)
            .with("shape", PartialShape::new([None, Some(0)]))
            .with("rank", PartialShape::unknown())
            .with("tensor", Tensor::vector(&[1u8, 2]))
            .with("func", func.clone())
            .with("p", AttrValue::Placeholder("N".into()))
            .with("none", AttrList::Empty)
            .with("strs", AttrList::Strs(vec![Bytes::from_static(b"\xff")]))
            .with("ints", vec![1i64, 2])
            .with("floats", AttrList::Floats(vec![1.0]))
            .with("bools", AttrList::Bools(vec![true, false]))
            .with("types", vec![DType::Float])
            .with("shapes", vec![PartialShape::scalar()])
            .with("tensors", AttrList::Tensors(vec![Tensor::scalar(1i64)]))
            .with("funcs", AttrList::Funcs(vec![func]));
        let node = NodeDef {
            name: "n".into(),
            op: "Op".into(),
            inputs: vec!["a:1".into(), "^b".into()],
            device: "/cpu:0".into(),
            attrs,
            full_type: Some(Bytes::from_static(b"\x08\x01")),
            original_names: vec!["m".into()],
        };
        let graph = GraphDef { nodes: vec![node], ..Default::default() };
        let back = decode_graph(encode_graph(&graph).unwrap()).unwrap();
        assert_eq!(back.nodes, graph.nodes);
        assert_eq!(back.versions, graph.versions);
    }

    #[test]
    fn errors_name_the_node() {
        let attr = BTreeMap::from([("T".into(), value(Value::Type(99)))]);
        let node = pb::NodeDef { name: "n".into(), attr, ..Default::default() };
        let e = node_from_proto(node).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert_eq!(e.message(), "attr 'T': unknown data type number 99\n\t [[{{node n}}]]");
    }

    #[test]
    fn deeply_nested_attributes_are_refused() {
        let mut func = pb::NameAttrList::default();
        for _ in 0..200 {
            let attr = BTreeMap::from([("f".to_string(), value(Value::Func(func)))]);
            func = pb::NameAttrList { name: "f".into(), attr };
        }
        let attr = BTreeMap::from([("f".to_string(), value(Value::Func(func)))]);
        let node = vec![pb::NodeDef { name: "n".into(), attr, ..Default::default() }];
        let bytes = pb::GraphDef { node, ..Default::default() }.encode_to_vec();
        assert_eq!(decode_graph(bytes.into()).unwrap_err().code(), Code::InvalidArgument);
    }
}
