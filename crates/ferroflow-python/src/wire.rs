//! Messages between Python and the graph, all as bytes. Constants have the form that TensorFlow's
//! Python writes, so that equal programs make equal graphs.

use crate::graph::GraphCore;
use bytes::Bytes;
use ferroflow_core::{DType, PartialShape, Result, Shape, Tensor, ensure, err};
use ferroflow_graph::wire::{graph, tensor};
use ferroflow_graph::{AttrValue, Attrs, FuncRef, FunctionDef, NodeDef, NodeId, OpDef};
use ferroflow_proto::tensorflow as pb;
use half::{bf16, f16};
use pb::attr_value::Value;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Functions to add to a graph.
#[derive(Default)]
pub struct Library {
    pub functions: Vec<Arc<FunctionDef>>,
    pub gradients: BTreeMap<String, String>,
}

/// A decoded graph. For constants whose message has fewer values than elements, also the number of
/// values.
pub struct Imported {
    pub nodes: Vec<(NodeDef, Option<usize>)>,
    pub library: Library,
}

fn malformed(e: prost::DecodeError) -> ferroflow_core::Error {
    err!(InvalidArgument, "malformed message: {e}")
}

pub fn decode_graph(bytes: &[u8]) -> Result<Imported> {
    let mut p = pb::GraphDef::decode(Bytes::copy_from_slice(bytes)).map_err(malformed)?;
    let nodes = std::mem::take(&mut p.node);
    let rest = graph::graph_from_proto(p)?;
    let node = |n: pb::NodeDef| {
        let form = n.attr.get("value").and_then(form_of);
        Ok((graph::node_from_proto(n)?, form))
    };
    Ok(Imported {
        nodes: nodes.into_iter().map(node).collect::<Result<_>>()?,
        library: Library { functions: rest.functions, gradients: rest.gradients },
    })
}

/// The number of values in a tensor message, if it has fewer than elements.
fn form_of(value: &pb::AttrValue) -> Option<usize> {
    let Some(Value::Tensor(t)) = &value.value else { return None };
    if !t.tensor_content.is_empty() {
        return None;
    }
    let elements: i64 = t.tensor_shape.as_ref()?.dim.iter().map(|d| d.size).product();
    let listed = t.float_val.len()
        + t.double_val.len()
        + t.int_val.len()
        + t.string_val.len()
        + t.scomplex_val.len() / 2
        + t.int64_val.len()
        + t.bool_val.len()
        + t.dcomplex_val.len() / 2
        + t.half_val.len()
        + t.uint32_val.len()
        + t.uint64_val.len();
    (elements > 1 && (listed as i64) < elements).then_some(listed)
}

pub fn decode_function(bytes: &[u8], gradient: Option<String>) -> Result<Library> {
    let def = pb::FunctionDef::decode(Bytes::copy_from_slice(bytes)).map_err(malformed)?;
    let def = graph::function_from_proto(def)?;
    let gradients = gradient.map(|g| (def.name().to_string(), g)).into_iter().collect();
    Ok(Library { functions: vec![Arc::new(def)], gradients })
}

pub fn encode_function(def: &FunctionDef) -> Result<Vec<u8>> {
    let mut p = graph::function_to_proto(def)?;
    for (node, ours) in p.node_def.iter_mut().zip(&def.nodes) {
        replace_tensors(node, &ours.attrs, None)?;
    }
    Ok(p.encode_to_vec())
}

/// A graph from node `first` on.
pub fn encode_graph(core: &GraphCore, first: usize, add_shapes: bool) -> Result<Vec<u8>> {
    let mut node = Vec::with_capacity(core.ir.len().saturating_sub(first));
    for id in core.ir.ids().skip(first) {
        node.push(node_message(core, id, true, add_shapes)?);
    }
    let mut library = pb::FunctionDefLibrary::default();
    for def in core.ir.library.functions() {
        library.function.push(graph::function_to_proto(def)?);
    }
    for (function, gradient) in core.ir.library.gradients() {
        library.gradient.push(pb::GradientDef {
            function_name: function.clone(),
            gradient_func: gradient.clone(),
        });
    }
    let is_empty = library.function.is_empty() && library.gradient.is_empty();
    let p = pb::GraphDef {
        node,
        library: (!is_empty).then_some(library),
        versions: Some(pb::VersionDef {
            producer: core.ir.versions.producer,
            min_consumer: core.ir.versions.min_consumer,
            bad_consumers: Vec::new(),
        }),
        ..Default::default()
    };
    Ok(p.encode_to_vec())
}

/// One node. A graph sorts the control inputs, as TensorFlow does; a node alone keeps their order.
pub fn encode_node(core: &GraphCore, id: NodeId, sorted: bool) -> Result<Vec<u8>> {
    Ok(node_message(core, id, sorted, false)?.encode_to_vec())
}

fn node_message(
    core: &GraphCore,
    id: NodeId,
    sorted: bool,
    add_shapes: bool,
) -> Result<pb::NodeDef> {
    let mut p = graph::node_to_proto(&node_def(core, id, sorted))?;
    let node = core.ir.node(id);
    replace_tensors(&mut p, &node.attrs, core.forms.get(&id).copied())?;
    if add_shapes && !node.output_types.is_empty() {
        let shapes = (0..node.output_types.len())
            .map(|i| tensor::shape_to_proto(core.shape(ferroflow_graph::Endpoint::new(id, i))));
        let list = pb::attr_value::ListValue { shape: shapes.collect(), ..Default::default() };
        let value = pb::AttrValue { value: Some(Value::List(Box::new(list))) };
        p.attr.insert("_output_shapes".into(), value);
    }
    Ok(p)
}

/// A node in GraphDef form.
pub fn node_def(core: &GraphCore, id: NodeId, sorted: bool) -> NodeDef {
    let n = core.ir.node(id);
    let data = n.inputs.iter().map(|e| {
        let name = &core.ir.node(e.node).name;
        if e.slot == 0 { name.clone() } else { format!("{name}:{}", e.slot) }
    });
    let mut control: Vec<String> =
        n.controls.iter().map(|c| format!("^{}", core.ir.node(*c).name)).collect();
    if sorted {
        control.sort();
    }
    NodeDef {
        name: n.name.clone(),
        op: n.op.name.clone(),
        inputs: data.chain(control).collect(),
        device: n.device.clone(),
        attrs: (*n.attrs).clone(),
        full_type: None,
        original_names: n.original_names.clone(),
    }
}

fn replace_tensors(p: &mut pb::NodeDef, attrs: &Attrs, form: Option<usize>) -> Result<()> {
    for (name, value) in attrs.iter() {
        if let AttrValue::Tensor(t) = value {
            let value = Value::Tensor(Box::new(tensor_message(t, form)?));
            p.attr.insert(name.clone(), pb::AttrValue { value: Some(value) });
        }
    }
    Ok(())
}

pub fn encode_op(op: &OpDef) -> Result<Vec<u8>> {
    Ok(graph::op_to_proto(op)?.encode_to_vec())
}

/// The serialized `AttrValue`.
pub fn encode_attr(value: &AttrValue, form: Option<usize>) -> Result<Vec<u8>> {
    let node = NodeDef { attrs: Attrs::new().with("x", value.clone()), ..NodeDef::default() };
    let mut p = graph::node_to_proto(&node)?;
    replace_tensors(&mut p, &node.attrs, form)?;
    Ok(p.attr.remove("x").unwrap_or_default().encode_to_vec())
}

pub fn decode_attr(bytes: Bytes) -> Result<AttrValue> {
    let value = pb::AttrValue::decode(bytes).map_err(malformed)?;
    let attrs = graph::attrs_from_proto(BTreeMap::from([("x".to_string(), value)]))?;
    attrs.get("x").cloned().ok_or_else(|| err!(InvalidArgument, "the attribute has no value"))
}

pub fn decode_function_ref(bytes: Bytes) -> Result<FuncRef> {
    let p = pb::NameAttrList::decode(bytes).map_err(malformed)?;
    Ok(FuncRef { name: p.name, attrs: graph::attrs_from_proto(p.attr)? })
}

pub fn encode_function_ref(f: &FuncRef) -> Result<Vec<u8>> {
    let node = NodeDef { attrs: f.attrs.clone(), ..NodeDef::default() };
    let attr = graph::node_to_proto(&node)?.attr;
    Ok(pb::NameAttrList { name: f.name.clone(), attr }.encode_to_vec())
}

pub fn encode_shape(shape: &PartialShape) -> Vec<u8> {
    tensor::shape_to_proto(shape).encode_to_vec()
}

pub fn decode_tensor(bytes: Bytes) -> Result<Tensor> {
    tensor::from_proto(pb::TensorProto::decode(bytes).map_err(malformed)?)
}

pub fn encode_tensor(t: &Tensor, form: Option<usize>) -> Result<Vec<u8>> {
    Ok(tensor_message(t, form)?.encode_to_vec())
}

/// A tensor of `shape` whose first elements are those of `t`; the last is repeated.
pub fn spread(t: &Tensor, shape: Shape) -> Result<Tensor> {
    ensure!(
        t.elements() <= shape.elements(),
        InvalidArgument,
        "Too many elements provided. Needed at most {}, but received {}",
        shape.elements(),
        t.elements()
    );
    let mut p = tensor_message(t, Some(t.elements()))?;
    p.tensor_shape = Some(tensor::shape_to_proto(&PartialShape::from(&shape)));
    tensor::from_proto(p)
}

/// A tensor in the form that TensorFlow's Python writes. Several numbers become packed bytes. One
/// number becomes a list, and so do types that Python cannot pack. `form` is the number of values
/// to list.
fn tensor_message(t: &Tensor, form: Option<usize>) -> Result<pb::TensorProto> {
    use DType::*;
    let dtype = t.dtype();
    let packs =
        !matches!(dtype, Bool | BFloat16 | Complex64 | Complex128 | String | Resource | Variant);
    if matches!(dtype, Resource | Variant) || (packs && t.elements() > 1 && form.is_none()) {
        return tensor::to_proto(t);
    }
    let n = form.unwrap_or(t.elements()).min(t.elements());
    let mut p = pb::TensorProto {
        dtype: dtype.number(),
        tensor_shape: Some(tensor::shape_to_proto(&PartialShape::from(t.shape()))),
        ..Default::default()
    };
    match dtype {
        Float => p.float_val = t.as_slice::<f32>()?[..n].to_vec(),
        Double => p.double_val = t.as_slice::<f64>()?[..n].to_vec(),
        Int32 | QInt32 => p.int_val = t.as_slice::<i32>()?[..n].to_vec(),
        Int16 | QInt16 => p.int_val = widened::<i16>(t, n)?,
        Int8 | QInt8 | Int4 => p.int_val = widened::<i8>(t, n)?,
        UInt16 | QUInt16 => p.int_val = widened::<u16>(t, n)?,
        UInt8 | QUInt8 | UInt4 => p.int_val = widened::<u8>(t, n)?,
        Int64 => p.int64_val = t.as_slice::<i64>()?[..n].to_vec(),
        UInt32 => p.uint32_val = t.as_slice::<u32>()?[..n].to_vec(),
        UInt64 => p.uint64_val = t.as_slice::<u64>()?[..n].to_vec(),
        Bool => p.bool_val = t.as_slice::<bool>()?[..n].to_vec(),
        Half => {
            p.half_val = t.as_slice::<f16>()?[..n].iter().map(|x| i32::from(x.to_bits())).collect();
        }
        BFloat16 => {
            p.half_val =
                t.as_slice::<bf16>()?[..n].iter().map(|x| i32::from(x.to_bits())).collect();
        }
        Complex64 => {
            let parts = t.bytes()?[..n * 8].chunks_exact(4);
            p.scomplex_val = parts.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        }
        Complex128 => {
            let parts = t.bytes()?[..n * 16].chunks_exact(8);
            p.dcomplex_val = parts
                .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
                .collect();
        }
        Float8E5M2 | Float8E4M3FN => p.float8_val = Bytes::copy_from_slice(&t.bytes()?[..n]),
        String => p.string_val = t.strings()?[..n].to_vec(),
        Resource | Variant => unreachable!("written above"),
    }
    Ok(p)
}

fn widened<T: ferroflow_core::Element + Into<i32>>(t: &Tensor, n: usize) -> Result<Vec<i32>> {
    Ok(t.as_slice::<T>()?[..n].iter().map(|&x| x.into()).collect())
}
