//! A graph recorded from TensorFlow can be read, imported and written again.

use bytes::Bytes;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::passes::prune;
use ferroflow_graph::wire::graph;
use ferroflow_graph::{
    AttrValue, Catalog, ControlFlow, FunctionGraph, GraphDef, GraphIr, OpDef, OpRole,
    tensorflow_ops,
};
use ferroflow_proto::tensorflow as pb;
use proptest::prelude::*;
use prost::Message;

const META_GRAPH: &[u8] =
    include_bytes!("../../../ferroflow-proto/tests/data/tf-2.15.1-meta-graph.pb");

fn recorded() -> pb::GraphDef {
    pb::MetaGraphDef::decode(META_GRAPH).unwrap().graph_def.unwrap()
}

/// TensorFlow's signatures, with the control-flow properties that they lack.
fn catalog() -> Catalog {
    let mut c = Catalog::new();
    let known = |mut op: OpDef| {
        op.control_flow = match op.name.as_str() {
            "Merge" => Some(ControlFlow::Merge),
            "NextIteration" => Some(ControlFlow::NextIteration),
            _ => None,
        };
        if op.name == "Placeholder" {
            op.role = OpRole::Placeholder;
        }
        op
    };
    c.add_signatures(tensorflow_ops::tensorflow_signatures().into_iter().map(known));
    c
}

#[test]
fn a_recorded_graph_survives() {
    let (theirs, def) = (recorded(), graph::graph_from_proto(recorded()).unwrap());
    let again = graph::decode_graph(graph::encode_graph(&def).unwrap()).unwrap();
    assert_eq!(again.nodes, def.nodes);
    assert_eq!((&again.versions, &again.gradients), (&def.versions, &def.gradients));
    assert_eq!(def.versions.producer, 1645);

    // The message is unchanged, except for the encoding of tensors and for dropped fields.
    let ours = graph::graph_to_proto(&def).unwrap();
    let strip = |mut n: pb::NodeDef| {
        n.attr.retain(|_, v| !matches!(v.value, Some(pb::attr_value::Value::Tensor(_))));
        n
    };
    let strip_all =
        |g: pb::GraphDef| -> Vec<pb::NodeDef> { g.node.into_iter().map(strip).collect() };
    assert_eq!(strip_all(ours.clone()), strip_all(theirs.clone()));
    let function = |g: pb::GraphDef| {
        let mut f = g.library.unwrap().function.remove(0);
        f.node_def = f.node_def.into_iter().map(strip).collect();
        for arg in &mut f.signature.as_mut().unwrap().input_arg {
            arg.handle_data.clear();
        }
        f
    };
    assert_eq!(function(ours), function(theirs));
}

#[test]
fn a_recorded_graph_can_be_imported() {
    let def = graph::graph_from_proto(recorded()).unwrap();
    let text = def.nodes.iter().find(|n| n.name == "s").unwrap();
    let Some(AttrValue::Tensor(t)) = text.attrs.get("value") else { panic!("{text:?}") };
    assert_eq!(t.dtype(), DType::String);

    let catalog = catalog();
    let whole = GraphIr::from_def(&def, &catalog).unwrap();
    let step = prune(&whole, &["x:0"], &["y:0"], &[], &catalog).unwrap();
    assert!(step.graph.len() < whole.len());
    let name = def.functions[0].name().to_string();
    let func = ferroflow_graph::FuncRef { name, attrs: Default::default() };
    let body = FunctionGraph::instantiate(&func, &whole.library, &catalog).unwrap();
    assert_eq!(body.rets.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A truncated or changed message is an error or a graph, never a panic.
    #[test]
    fn hostile_graphs_do_no_harm(cut in any::<usize>(), place in any::<usize>(), byte in any::<u8>()) {
        let whole = recorded().encode_to_vec();
        let _ = graph::decode_graph(Bytes::copy_from_slice(&whole[..cut % whole.len()]));
        let mut bent = whole;
        let len = bent.len();
        bent[place % len] = byte;
        if let Ok(def) = graph::decode_graph(bent.into()) {
            let _ = graph::encode_graph(&def);
        }
    }
}

#[test]
fn an_unknown_op_is_refused() {
    let mut node = ferroflow_graph::NodeDef { name: "n".into(), ..Default::default() };
    node.op = "NoSuchOp".into();
    node.attrs.set("value", Tensor::scalar(1i64));
    let def = GraphDef { nodes: vec![node], ..Default::default() };
    assert_eq!(GraphIr::from_def(&def, &catalog()).err().unwrap().code(), Code::NotFound);
}
