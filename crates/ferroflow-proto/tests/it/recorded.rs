//! Tests with messages recorded from TensorFlow. `data/README.md` says how they were made.

use ferroflow_proto::tensorflow::attr_value::Value;
use ferroflow_proto::tensorflow::{
    DataType, MetaGraphDef, OpDef, OpList, VariableDef, collection_def, tensor_info,
};
use prost::Message;

const OP_DEFS: &[u8] = include_bytes!("../data/tf-2.15.1-opdefs.pb");
const META_GRAPH: &[u8] = include_bytes!("../data/tf-2.15.1-meta-graph.pb");

fn op<'a>(list: &'a OpList, name: &str) -> &'a OpDef {
    list.op.iter().find(|op| op.name == name).expect("a registered op")
}

#[test]
fn an_op_list_is_encoded_to_the_recorded_bytes() {
    let list = OpList::decode(OP_DEFS).unwrap();
    assert_eq!(list.op.len(), 1862);
    let bytes = list.encode_to_vec();
    assert_eq!(bytes, OP_DEFS);
    assert_eq!(OpList::decode(&bytes[..]).unwrap(), list);
}

#[test]
fn op_signatures_are_decoded_as_registered() {
    let list = OpList::decode(OP_DEFS).unwrap();

    let matmul = op(&list, "MatMul");
    let args: Vec<_> = matmul.input_arg.iter().map(|a| (&a.name[..], &a.type_attr[..])).collect();
    assert_eq!(args, [("a", "T"), ("b", "T")]);
    let transpose = matmul.attr.iter().find(|a| a.name == "transpose_a").unwrap();
    let default = transpose.default_value.as_ref().unwrap();
    assert_eq!(default.value, Some(Value::B(false)));

    let assign = op(&list, "Assign");
    assert!(assign.input_arg[0].is_ref && assign.allows_uninitialized_input);
    assert!(op(&list, "VariableV2").is_stateful);
}

#[test]
fn full_types_of_op_arguments_are_kept() {
    let list = OpList::decode(OP_DEFS).unwrap();
    let full_type = op(&list, "RangeDataset").output_arg[0].experimental_full_type.as_deref();
    // FullTypeDef { type_id: TFT_DATASET = 10102, args: [...] }
    assert!(full_type.unwrap().starts_with(&[0x08, 0xf6, 0x4e, 0x12]));
}

#[test]
fn a_meta_graph_is_decoded_and_encoded_again() {
    let meta = MetaGraphDef::decode(META_GRAPH).unwrap();
    assert_eq!(MetaGraphDef::decode(&meta.encode_to_vec()[..]).unwrap(), meta);

    let graph = meta.graph_def.unwrap();
    assert_eq!(graph.versions.unwrap().producer, 1645);
    let library = graph.library.unwrap();
    let signature = library.function[0].signature.as_ref().unwrap();
    assert!(signature.name.starts_with("__inference_twice"));
    assert_eq!(library.function[0].ret.len(), 1);

    let node = |name: &str| graph.node.iter().find(|n| n.name == name).unwrap();
    let Some(Value::Tensor(s)) = &node("s").attr["value"].value else {
        panic!("attribute `value` of `s` is not a tensor");
    };
    assert_eq!(s.dtype(), DataType::DtString);
    assert_eq!(s.string_val, [&b"\xff\0"[..], b"ok"]);
    assert_eq!(node("while/Enter").attr["is_constant"].value, Some(Value::B(false)));

    let Some(collection_def::Kind::BytesList(variables)) = &meta.collection_def["variables"].kind
    else {
        panic!("collection `variables` is not a list of bytes");
    };
    let variable = VariableDef::decode(variables.value[0].clone()).unwrap();
    assert_eq!((&variable.variable_name[..], variable.trainable), ("w:0", true));

    let outputs = &meta.signature_def["serving_default"].outputs;
    let name = tensor_info::Encoding::Name("y:0".into());
    assert_eq!(outputs["y"].encoding, Some(name));
}
