//! Messages that are read from chunks and written as segments equal those of prost, for any split
//! into chunks. Hostile bytes are errors.

use bytes::Bytes;
use ferroflow_core::{Code, DType, Error, Shape, Tensor};
use ferroflow_graph::RunMetadata;
use ferroflow_graph::wire::metadata::TaskRecord;
use ferroflow_graph::wire::step::*;
use ferroflow_graph::wire::{MessageReader, tensor};
use ferroflow_proto::tensorflow as pb;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

/// Tensors of every plain dtype and of strings, some large enough for a segment of their own.
fn tensors() -> impl Strategy<Value = Tensor> {
    let dims = prop_oneof![
        4 => vec(0usize..5, 0..4),
        1 => Just(vec![1500usize]),
        1 => Just(vec![3, 2100]),
    ];
    let dtypes: Vec<DType> = DType::all().filter(|d| d.is_plain() || *d == DType::String).collect();
    (proptest::sample::select(dtypes), dims, any::<u64>()).prop_map(|(dtype, dims, seed)| {
        let mut state = seed | 1;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u8
        };
        let shape = Shape::from(dims);
        let n = shape.elements();
        match dtype.size() {
            Some(size) => {
                let mask = if dtype == DType::Bool { 1 } else { 255 };
                let bytes: Vec<u8> = (0..n * size).map(|_| next() & mask).collect();
                Tensor::from_bytes(dtype, shape, bytes.into()).unwrap()
            }
            None => {
                let strings = (0..n).map(|_| {
                    let len = next() as usize % 9;
                    (0..len).map(|_| next()).collect::<Vec<u8>>().into()
                });
                Tensor::from_strings(shape, strings.collect()).unwrap()
            }
        }
    })
}

fn named() -> impl Strategy<Value = Vec<NamedTensor>> {
    vec(("[a-z]{0,12}(:[0-9])?", tensors()), 0..4)
}

/// Cuts `bytes` at the given places, each modulo the length.
fn chunks(bytes: &[u8], cuts: &[usize]) -> Vec<Bytes> {
    let mut at: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|w| Bytes::copy_from_slice(&bytes[w[0]..w[1]])).collect()
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

fn to_pb(named: &[NamedTensor]) -> Vec<pb::NamedTensorProto> {
    let one = |(name, t): &NamedTensor| pb::NamedTensorProto {
        name: name.clone(),
        tensor: Some(tensor::to_proto(t).unwrap()),
    };
    named.iter().map(one).collect()
}

fn protos(tensors: &[Tensor]) -> Vec<pb::TensorProto> {
    tensors.iter().map(|t| tensor::to_proto(t).unwrap()).collect()
}

/// A tensor as another writer may encode it: listed values instead of packed ones.
fn spelled_out(t: &Tensor) -> pb::TensorProto {
    let mut p = tensor::to_proto(t).unwrap();
    match t.dtype() {
        DType::Float => p.float_val = t.as_slice::<f32>().unwrap().to_vec(),
        DType::Int32 => p.int_val = t.as_slice::<i32>().unwrap().to_vec(),
        DType::Int64 => p.int64_val = t.as_slice::<i64>().unwrap().to_vec(),
        DType::Bool => p.bool_val = t.as_slice::<bool>().unwrap().to_vec(),
        DType::String => p.string_val = t.strings().unwrap().to_vec(),
        _ => return p,
    }
    p.tensor_content.clear();
    p
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn run_step_requests_agree(
        feeds in named(),
        fetches in vec("[a-z]{0,9}:0", 0..3),
        targets in vec("[a-z]{0,9}", 0..3),
        (trace_level, timeout_ms, key) in (0i32..4, any::<i64>(), any::<i64>()),
        (store, request_id) in any::<(bool, i64)>(),
        cuts in cuts(),
    ) {
        let m = RunStepRequest {
            session_handle: "s".into(),
            feeds,
            fetches,
            targets,
            options: RunStepOptions {
                trace_level, timeout_ms, collective_graph_key: key, ..Default::default()
            },
            partial_run_handle: "7".into(),
            store_errors_in_response_body: store,
            request_id,
            block_feeds: Vec::new(),
            takes_blocks: false,
        };
        let p = pb::RunStepRequest {
            session_handle: "s".into(),
            feed: to_pb(&m.feeds),
            fetch: m.fetches.clone(),
            target: m.targets.clone(),
            options: Some(m.options.to_proto()),
            partial_run_handle: "7".into(),
            store_errors_in_response_body: store,
            request_id,
            ferroflow_feed: Vec::new(),
            ferroflow_takes_blocks: false,
        };
        let encoded = m.encode().unwrap();
        prop_assert_eq!(encoded.len(), encoded.to_bytes().len());
        prop_assert_eq!(&pb::RunStepRequest::decode(encoded.to_bytes()).unwrap(), &p);
        let back = RunStepRequest::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!(&back.feeds, &m.feeds);
        prop_assert_eq!((&back.fetches, &back.targets), (&m.fetches, &m.targets));
        prop_assert_eq!(&back.options, &m.options);
        prop_assert_eq!((back.request_id, back.store_errors_in_response_body), (request_id, store));
        prop_assert_eq!(back.partial_run_handle, "7");

        // Another encoding of the tensors makes no difference.
        let mut p = p;
        for (to, (_, t)) in p.feed.iter_mut().zip(&m.feeds) {
            to.tensor = Some(spelled_out(t));
        }
        let back = RunStepRequest::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!(&back.feeds, &m.feeds);
    }

    #[test]
    fn responses_agree(
        tensors in named(),
        metadata in proptest::option::of(Just(RunMetadata::from_bytes(&b"\x0a\x00"[..]))),
        failed in any::<bool>(),
        cuts in cuts(),
    ) {
        let status = failed.then(|| Error::new(Code::OutOfRange, "end"));
        let (status_code, message) = if failed { (11, "end") } else { (0, "") };
        let m = RunStepResponse {
            tensors: tensors.clone(),
            metadata,
            status: status.clone(),
            ..RunStepResponse::default()
        };
        let bytes = m.encode().unwrap().to_bytes();
        let p = pb::RunStepResponse::decode(bytes).unwrap();
        prop_assert_eq!(&p.tensor, &to_pb(&tensors));
        prop_assert_eq!(p.metadata.is_some(), m.metadata.is_some());
        prop_assert_eq!((p.status_code, p.status_error_message.as_str()), (status_code, message));
        let back = RunStepResponse::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!((&back.tensors, &back.status), (&m.tensors, &m.status));

        let m = RunGraphResponse {
            recvs: tensors.clone(),
            record: TaskRecord { partition_graphs: vec![Bytes::new()], ..Default::default() },
            status,
        };
        let p = pb::RunGraphResponse::decode(m.encode().unwrap().to_bytes()).unwrap();
        prop_assert_eq!(&p.recv, &to_pb(&tensors));
        prop_assert_eq!((p.status_code, p.partition_graph.len()), (status_code, 1));
        let back = RunGraphResponse::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!((&back.recvs, &back.status), (&m.recvs, &m.status));
    }

    #[test]
    fn run_graph_requests_agree(
        sends in named(),
        (step_id, timeline) in any::<(i64, bool)>(),
        cuts in cuts(),
    ) {
        let m = RunGraphRequest {
            graph_handle: "g".into(),
            step_id,
            sends: sends.clone(),
            recv_keys: vec!["a;b".into()],
            exec: ExecOptions { timeline, ..Default::default() },
            is_partial: true,
            is_last_partial_run: timeline,
            session_handle: "s".into(),
            store_errors_in_response_body: true,
            create_worker_session_called: true,
            request_id: step_id,
        };
        let p = pb::RunGraphRequest {
            graph_handle: "g".into(),
            step_id,
            send: to_pb(&sends),
            recv_key: vec!["a;b".into()],
            exec_opts: Some(pb::ExecutorOpts { record_timeline: timeline, ..Default::default() }),
            is_partial: true,
            is_last_partial_run: timeline,
            session_handle: "s".into(),
            store_errors_in_response_body: true,
            create_worker_session_called: true,
            request_id: step_id,
        };
        prop_assert_eq!(&pb::RunGraphRequest::decode(m.encode().unwrap().to_bytes()).unwrap(), &p);
        let back = RunGraphRequest::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!((&back.sends, back.exec, back.step_id), (&m.sends, m.exec, step_id));
        prop_assert_eq!((back.is_last_partial_run, back.recv_keys), (timeline, m.recv_keys));
    }

    #[test]
    fn callables_and_received_tensors_agree(
        feeds in vec(tensors(), 0..3),
        handle in any::<i64>(),
        cuts in cuts(),
    ) {
        let m = RunCallableRequest { feeds: feeds.clone(), handle, ..Default::default() };
        let p = pb::RunCallableRequest { feed: protos(&feeds), handle, ..Default::default() };
        prop_assert_eq!(
            &pb::RunCallableRequest::decode(m.encode().unwrap().to_bytes()).unwrap(), &p);
        let back = RunCallableRequest::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!((back.feeds, back.handle), (m.feeds, handle));

        let m = RunCallableResponse { fetches: feeds.clone(), metadata: Some(RunMetadata::default()) };
        let p = pb::RunCallableResponse {
            fetch: protos(&feeds), metadata: Some(Default::default()),
        };
        prop_assert_eq!(
            &pb::RunCallableResponse::decode(m.encode().unwrap().to_bytes()).unwrap(), &p);
        let back = RunCallableResponse::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!(back.fetches, m.fetches);

        let m = RecvTensorResponse {
            tensor: feeds.first().cloned(),
            is_dead: feeds.is_empty(),
            send_start_micros: handle,
            ..Default::default()
        };
        let p = pb::RecvTensorResponse {
            tensor: protos(&feeds).into_iter().next(),
            is_dead: feeds.is_empty(),
            send_start_micros: handle,
            ..Default::default()
        };
        prop_assert_eq!(
            &pb::RecvTensorResponse::decode(m.encode().unwrap().to_bytes()).unwrap(), &p);
        let back = RecvTensorResponse::decode(chunks(&p.encode_to_vec(), &cuts)).unwrap();
        prop_assert_eq!((back.tensor, back.is_dead), (m.tensor, m.is_dead));
    }

    /// A truncated, changed or random message is an error or a message, never a panic.
    #[test]
    fn hostile_bytes_do_no_harm(
        feeds in named(),
        (cut, place, byte) in any::<(usize, usize, u8)>(),
        noise in vec(any::<u8>(), 0..64),
        cuts in cuts(),
    ) {
        let m = RunStepRequest { feeds, ..Default::default() };
        let whole = m.encode().unwrap().to_bytes();
        let mut bent = whole.to_vec();
        let len = bent.len();
        bent[place % len] = byte;
        for bytes in [&whole[..cut % len], &bent, &noise] {
            let parts = || chunks(bytes, &cuts);
            let _ = RunStepRequest::decode(parts());
            let _ = RunStepResponse::decode(parts());
            let _ = RunGraphRequest::decode(parts());
            let _ = RunGraphResponse::decode(parts());
            let _ = RunCallableRequest::decode(parts());
            let _ = RunCallableResponse::decode(parts());
            let _ = RecvTensorResponse::decode(parts());
        }
    }
}

#[test]
fn lengths_beyond_the_message_are_refused() {
    let cases: &[&[u8]] = &[
        // A feed of 2^63 bytes; one that ends before its length; a tensor that leaves its feed.
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x12\x05\x0a\x01",
        b"\x12\x04\x12\x7f\x08\x01\x0a\x00",
        // An overlong varint; a key of field 0; a group that never ends; an unknown wire type.
        b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x00\x00",
        b"\x93\x07",
        b"\x0e",
        // A name that is not UTF-8; a session handle that is an integer; a feed without a tensor.
        b"\x0a\x01\xff",
        b"\x08\x01",
        b"\x12\x03\x0a\x01x",
    ];
    for bytes in cases {
        let e = RunStepRequest::decode(Bytes::from_static(bytes)).err().unwrap();
        assert_eq!(e.code(), Code::InvalidArgument, "{bytes:?}");
    }
    // Float, shape [2^40], nothing else.
    let huge = b"\x0a\x0d\x08\x01\x12\x09\x12\x07\x08\x80\x80\x80\x80\x80\x20";
    let e = RecvTensorResponse::decode(Bytes::from_static(huge)).err().unwrap();
    assert_eq!(e.code(), Code::ResourceExhausted);
}

#[test]
fn type_and_shape_may_follow_the_content() {
    let t = Tensor::vector(&[7i32; 2000]);
    let p = tensor::to_proto(&t).unwrap();
    let content =
        pb::TensorProto { tensor_content: p.tensor_content.clone(), ..Default::default() };
    let rest = pb::TensorProto { tensor_content: Bytes::new(), ..p.clone() };
    let dtype = pb::TensorProto { dtype: p.dtype, ..Default::default() };
    let as_float = pb::TensorProto { dtype: DType::Float.number(), ..p };
    for [first, second] in [[content, rest], [as_float, dtype]] {
        let inner = [first.encode_to_vec(), second.encode_to_vec()].concat();
        let mut message = vec![0x0a];
        prost::encoding::encode_varint(inner.len() as u64, &mut message);
        message.extend(inner);
        let back = RecvTensorResponse::decode(Bytes::from(message)).unwrap();
        assert_eq!(back.tensor.unwrap(), t);
    }
}

#[test]
fn an_aligned_content_in_one_chunk_is_not_copied() {
    let t = Tensor::vector(&[1.0f32; 4096]);
    let m = RecvTensorResponse { tensor: Some(t.clone()), ..Default::default() };
    let parts = m.encode().unwrap().into_parts();
    let back = RecvTensorResponse::decode(MessageReader::from(parts)).unwrap().tensor.unwrap();
    assert_eq!(back.bytes().unwrap().as_ptr(), t.bytes().unwrap().as_ptr());
}

#[test]
fn only_contents_of_plain_tensors_are_quick_to_decode() {
    let parsed = |tensor: pb::TensorProto| {
        let named = pb::NamedTensorProto { name: "x:0".into(), tensor: Some(tensor) };
        let request = pb::RunStepRequest { feed: vec![named], ..Default::default() };
        let message = Bytes::from(request.encode_to_vec());
        let parsed = MessageReader::from(message.clone()).parsed_bytes(RunStepRequest::TENSORS);
        (message.len() - parsed, parsed)
    };
    let bytes = Bytes::from(vec![1; 100_000]);
    let content = |dtype: DType| pb::TensorProto {
        dtype: dtype.number(),
        tensor_content: bytes.clone(),
        ..Default::default()
    };
    let (plain, rest) = parsed(content(DType::Float));
    assert_eq!(plain, 100_000);
    assert!(rest < 100);
    assert_eq!(parsed(content(DType::String)).0, 0, "a list of strings is parsed");
    let values = pb::TensorProto {
        dtype: DType::Int64.number(),
        int64_val: vec![1; 100_000],
        ..Default::default()
    };
    assert_eq!(parsed(values).0, 0);
    // A type that comes later replaces the first one.
    let mut twice = content(DType::Float).encode_to_vec();
    twice.extend([8, DType::String.number() as u8]);
    let mut named = vec![0x12];
    prost::encoding::encode_varint(twice.len() as u64, &mut named);
    named.extend(twice);
    let mut request = vec![0x12];
    prost::encoding::encode_varint(named.len() as u64, &mut request);
    request.extend(named);
    let reader = MessageReader::from(Bytes::from(request.clone()));
    assert_eq!(reader.parsed_bytes(RunStepRequest::TENSORS), request.len());
}
