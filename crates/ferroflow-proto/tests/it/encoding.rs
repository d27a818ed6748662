//! Tests of the encoding of messages.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use ferroflow_proto::google::protobuf::Any;
use ferroflow_proto::tensorflow::attr_value::{ListValue, Value};
use ferroflow_proto::tensorflow::distributed_runtime::{
    GrpcPayloadContainer, WorkerPossiblyRestarted,
};
use ferroflow_proto::tensorflow::error::Code;
use ferroflow_proto::tensorflow::tensor_shape_proto::Dim;
use ferroflow_proto::tensorflow::tensor_slice_proto::{Extent, extent::HasLength};
use ferroflow_proto::tensorflow::{
    AttrValue, BundleEntryProto, BundleHeaderProto, DataType, DeviceAttributes, Event,
    ExtendSessionResponse, Feature, FloatList, HistogramProto, NamedTensorProto, NodeDef,
    RecvBufRespExtra, RunGraphRequest, RunGraphResponse, RunStepResponse, Summary, TensorProto,
    TensorShapeProto, TensorSliceProto, VersionDef, event, feature, summary,
};
use prost::{Message, Name};

/// Bytes written in hexadecimal. Spaces are ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Asserts that the message encodes to these bytes, and that they decode to the message.
fn check<M: Message + Default + PartialEq + Debug>(message: M, bytes: &str) {
    let bytes = hex(bytes);
    assert_eq!(message.encode_to_vec(), bytes, "encoding {message:?}");
    assert_eq!(M::decode(&bytes[..]).expect("a whole message"), message);
}

fn shape(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, ..Dim::default() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

#[test]
fn checkpoint_index_entries_match_those_of_tensorflow() {
    let version = Some(VersionDef { producer: 1, ..VersionDef::default() });
    check(BundleHeaderProto { num_shards: 1, version, ..Default::default() }, "0801 1a020801");

    let float = DataType::DtFloat.into();
    check(
        BundleEntryProto {
            dtype: float,
            shape: Some(shape(&[6, 2])),
            size: 48,
            crc32c: 0xdc55_a6d7,
            ..BundleEntryProto::default()
        },
        "0801 1208 12020806 12020802 2830 35d7a655dc",
    );

    let part = |start, length| Extent { start, has_length: Some(HasLength::Length(length)) };
    let all = Extent::default();
    check(
        BundleEntryProto {
            dtype: float,
            shape: Some(shape(&[10, 2])),
            slices: vec![
                TensorSliceProto { extent: vec![part(0, 6), all] },
                TensorSliceProto { extent: vec![part(6, 4), all] },
            ],
            ..BundleEntryProto::default()
        },
        "0801 1208 1202080a 12020802 3a06 0a021006 0a00 3a08 0a0408061004 0a00",
    );
}

/// A dimension of size 0 is encoded as an empty message.
#[test]
fn an_empty_tensor_keeps_its_rank() {
    check(
        BundleEntryProto {
            dtype: DataType::DtFloat.into(),
            shape: Some(shape(&[0])),
            offset: 123,
            crc32c: 0xa282_ead8,
            ..BundleEntryProto::default()
        },
        "0801 1202 1200 207b 35d8ea82a2",
    );
}

/// TensorFlow's receivers need type and shape before the content.
#[test]
fn a_tensor_encodes_type_and_shape_before_its_content() {
    check(
        TensorProto {
            dtype: DataType::DtString.into(),
            tensor_shape: Some(shape(&[2])),
            tensor_content: Bytes::from_static(b"\x05\x00hello"),
            ..TensorProto::default()
        },
        "0807 1204 12020802 2207 050068656c6c6f",
    );
}

#[test]
fn packed_fields_are_decoded_if_unpacked_or_mixed() {
    let floats = TensorProto { float_val: vec![1.0, 2.0], ..TensorProto::default() };
    check(floats.clone(), "2a08 0000803f 00000040");
    for bytes in ["2d0000803f 2d00000040", "2d0000803f 2a0400000040"] {
        assert_eq!(TensorProto::decode(&hex(bytes)[..]).unwrap(), floats);
    }

    let ints = TensorProto::decode(&hex("3801 3a0103")[..]);
    assert_eq!(ints.unwrap().int_val, [1, 3]);

    let types = ListValue::decode(&hex("3001 3009")[..]).unwrap();
    assert_eq!(types.r#type, [DataType::DtFloat as i32, DataType::DtInt64 as i32]);

    let buckets = HistogramProto::decode(&hex("39000000000000f03f")[..]).unwrap();
    assert_eq!(buckets.bucket, [1.0]);

    let list = Some(feature::Kind::FloatList(FloatList { value: vec![1.0] }));
    assert_eq!(Feature::decode(&hex("1205 0d0000803f")[..]).unwrap().kind, list);
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let request = RunGraphRequest { request_id: -1, ..RunGraphRequest::default() };
    check(request, "58 ffffffffffffffffff01");
}

#[test]
fn the_incarnation_has_a_fixed_width() {
    let device = DeviceAttributes { incarnation: 12345, ..DeviceAttributes::default() };
    check(device, "31 3930000000000000");
}

#[test]
fn the_new_graph_version_is_field_four() {
    check(ExtendSessionResponse { new_graph_version: 1 }, "2001");
}

#[test]
fn an_empty_message_is_a_successful_run() {
    let response = RunGraphResponse::decode(&[][..]).unwrap();
    assert_eq!(response.status_code(), Code::Ok);
}

#[test]
fn errors_are_sent_in_the_body() {
    let response = RunStepResponse {
        status_code: Code::OutOfRange.into(),
        status_error_message: "end".into(),
        ..RunStepResponse::default()
    };
    check(response, "180b 2203656e64");
}

#[test]
fn an_unknown_enum_value_is_kept() {
    let tensor = TensorProto::decode(&hex("08e707")[..]).unwrap();
    assert_eq!((tensor.dtype, tensor.dtype()), (999, DataType::DtInvalid));
    assert_eq!(tensor.encode_to_vec(), hex("08e707"));
}

/// An empty list is a value, in contrast to a missing one.
#[test]
fn an_empty_list_is_encoded() {
    check(AttrValue { value: Some(Value::List(Box::default())) }, "0a00");
    check(AttrValue { value: None }, "");
}

#[test]
fn attributes_are_sorted_by_name() {
    let attr = |v| AttrValue { value: Some(v) };
    let node = NodeDef {
        name: "n".into(),
        attr: BTreeMap::from([
            ("b".into(), attr(Value::I(1))),
            ("a".into(), attr(Value::S(Bytes::from_static(b"\xff")))),
        ]),
        ..NodeDef::default()
    };
    check(node, "0a016e 2a08 0a0161 1203 1201ff 2a07 0a0162 1202 1801");
}

/// `FullTypeDef { type_id: TFT_TENSOR }` and an empty one.
#[test]
fn the_full_type_of_a_node_is_kept() {
    for bytes in ["0a016e 3a03 08e807", "0a016e 3a00"] {
        let node = NodeDef::decode(&hex(bytes)[..]).unwrap();
        assert_eq!(node.encode_to_vec(), hex(bytes));
    }
}

#[test]
fn decoded_content_shares_the_input_buffer() {
    let content = Bytes::from(vec![7; 64]);
    let tensor = TensorProto { tensor_content: content.clone(), ..TensorProto::default() };
    let named = NamedTensorProto { name: "x:0".into(), tensor: Some(tensor) };
    let buffer = Bytes::from(named.encode_to_vec());

    let decoded = NamedTensorProto::decode(buffer.clone()).unwrap().tensor.unwrap();
    assert_eq!(decoded.tensor_content, content);
    assert!(buffer.as_ptr_range().contains(&decoded.tensor_content.as_ptr()));
}

#[test]
fn an_event_contains_a_version_or_a_summary() {
    let what = event::What::FileVersion("brain.Event:2".into());
    let first = Event { wall_time: 1.0, what: Some(what), ..Event::default() };
    check(first, "09 000000000000f03f 1a0d 627261696e2e4576656e743a32");

    let value = summary::Value {
        tag: "loss".into(),
        value: Some(summary::value::Value::SimpleValue(0.5)),
        ..summary::Value::default()
    };
    let what = event::What::Summary(Summary { value: vec![value] });
    let scalar = Event { step: 3, what: Some(what), ..Event::default() };
    check(scalar, "1003 2a0d 0a0b 0a046c6f7373 150000003f");
}

#[test]
fn type_urls_identify_payloads() {
    let url = WorkerPossiblyRestarted::type_url();
    assert_eq!(url, "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted");
    let container = GrpcPayloadContainer { payloads: BTreeMap::from([(url, Bytes::new())]) };
    let bytes = container.encode_to_vec();
    assert_eq!(GrpcPayloadContainer::decode(&bytes[..]).unwrap(), container);

    let extra = RecvBufRespExtra { tensor_content: vec![Bytes::from_static(b"ab")] };
    let any = Any { type_url: RecvBufRespExtra::type_url(), value: extra.encode_to_vec().into() };
    assert_eq!(any.type_url, "type.googleapis.com/tensorflow.RecvBufRespExtra");
    check(extra, "0a026162");
}

/// Graphs contain very many of these.
#[test]
fn attribute_values_are_small() {
    assert!(size_of::<AttrValue>() <= 64, "{} bytes", size_of::<AttrValue>());
}
