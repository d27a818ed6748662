//! The frames of a link: a head of fixed size, then dimensions and name, then a payload. The
//! payload of a tensor is sent from and read into the tensor's own memory.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use ferroflow_core::{
    Code, DType, Error, IncomingTensor, Received, Result, Shape, Tensor, bail, ensure, err,
};
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::RecvTensorResponse;

/// Bytes of a frame's head.
pub(super) const HEAD: usize = 24;
/// Names are rendezvous keys, handles and error texts.
const MAX_NAME: usize = 1 << 20;
/// TensorFlow's limit.
const MAX_RANK: usize = 254;
/// Payloads up to this size are copied behind the head.
const SMALL: usize = 2 << 10;
/// The limit of payloads that are not tensors.
const MAX_PAYLOAD: u64 = 1 << 16;
/// The limit of a serialized tensor, as with gRPC.
const MAX_PROTO: u64 = i32::MAX as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A tensor of plain bytes.
    Plain = 1,
    /// A tensor of strings, handles or variants, serialized.
    Proto = 2,
    /// A dead value.
    Dead = 3,
    /// A tensor whose bytes are in a block of shared memory.
    Block = 4,
    /// Run a registered graph.
    Run = 5,
    /// The result of the run.
    Ran = 6,
    /// Cancels the run.
    Cancel = 7,
    /// Reports that a step is over.
    CleanUp = 8,
    /// A tensor in the memory of a GPU that both tasks use.
    Lent = 9,
    /// Returns a lent tensor.
    Returned = 10,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub kind: FrameKind,
    pub dtype: u8,
    pub rank: u8,
    /// Bytes of the name.
    pub name: u32,
    pub payload: u64,
    /// The number of the step or of the call.
    pub id: i64,
}

impl FrameHead {
    fn new(kind: FrameKind, id: i64) -> FrameHead {
        FrameHead { kind, dtype: 0, rank: 0, name: 0, payload: 0, id }
    }

    fn put(&self, to: &mut BytesMut) {
        to.put_slice(&[self.kind as u8, self.dtype, self.rank, 0]);
        to.put_u32_le(self.name);
        to.put_u64_le(self.payload);
        to.put_i64_le(self.id);
    }

    pub fn read(bytes: &[u8; HEAD]) -> Result<FrameHead> {
        let mut bytes = &bytes[..];
        let kind = match bytes.get_u8() {
            1 => FrameKind::Plain,
            2 => FrameKind::Proto,
            3 => FrameKind::Dead,
            4 => FrameKind::Block,
            5 => FrameKind::Run,
            6 => FrameKind::Ran,
            7 => FrameKind::Cancel,
            8 => FrameKind::CleanUp,
            9 => FrameKind::Lent,
            10 => FrameKind::Returned,
            other => bail!(InvalidArgument, "unknown frame kind {other}"),
        };
        let (dtype, rank, _) = (bytes.get_u8(), bytes.get_u8(), bytes.get_u8());
        let (name, payload, id) = (bytes.get_u32_le(), bytes.get_u64_le(), bytes.get_i64_le());
        let most = match kind {
            FrameKind::Plain | FrameKind::Block | FrameKind::Lent => u64::MAX,
            FrameKind::Proto => MAX_PROTO,
            _ => MAX_PAYLOAD,
        };
        ensure!(
            name as usize <= MAX_NAME && usize::from(rank) <= MAX_RANK && payload <= most,
            InvalidArgument,
            "frame {kind:?} exceeds a limit: name of {name} bytes, rank {rank}, payload of {payload} bytes"
        );
        Ok(FrameHead { kind, dtype, rank, name, payload, id })
    }

    /// The length of dimensions and name.
    pub fn rest(&self) -> usize {
        8 * usize::from(self.rank) + self.name as usize
    }

    /// Parses dimensions and name.
    pub fn parse_rest(&self, rest: &[u8]) -> Result<FrameRest> {
        let (mut dims, name) = rest
            .split_at_checked(8 * usize::from(self.rank))
            .ok_or_else(|| err!(InvalidArgument, "a frame is too short"))?;
        let mut shape = Vec::with_capacity(usize::from(self.rank));
        for _ in 0..self.rank {
            let dim = dims.get_u64_le();
            let dim = i64::try_from(dim)
                .map_err(|_| err!(InvalidArgument, "a frame has a dimension of {dim} elements"))?;
            shape.push(dim);
        }
        let name = std::str::from_utf8(name)
            .map_err(|_| err!(InvalidArgument, "the name of a frame is not UTF-8"))?;
        Ok(FrameRest { shape: Shape::from_dims(&shape)?, name: name.to_string() })
    }

    /// The tensor of a frame, whose elements follow. Its size must be that of the payload. It takes
    /// memory as the elements arrive.
    pub fn tensor(&self, shape: Shape) -> Result<IncomingTensor> {
        IncomingTensor::new(self.plain_dtype(&shape)?, shape)
    }

    /// The dtype of a plain tensor. An error unless the payload fills `shape`.
    pub fn plain_dtype(&self, shape: &Shape) -> Result<DType> {
        let dtype = DType::from_number(self.dtype.into())?;
        let bytes = dtype.size().and_then(|size| {
            shape.checked_elements().ok().and_then(|n| (n as u64).checked_mul(size as u64))
        });
        ensure!(
            bytes == Some(self.payload),
            InvalidArgument,
            "{} bytes do not fill a {dtype} tensor of shape {shape}",
            self.payload
        );
        Ok(dtype)
    }
}

/// Dimensions and name of a frame.
pub(super) struct FrameRest {
    pub shape: Shape,
    pub name: String,
}

/// An outgoing frame in one or two pieces.
#[derive(Debug)]
pub(super) struct LinkFrame {
    pub head: Bytes,
    pub payload: Bytes,
}

impl LinkFrame {
    /// A value of a step.
    pub fn value(step: i64, key: &str, value: &Received) -> Result<LinkFrame> {
        let Received::Live(tensor) = value else {
            return Ok(LinkFrame::new(
                FrameHead::new(FrameKind::Dead, step),
                &[],
                key,
                Bytes::new(),
            ));
        };
        if tensor.dtype().is_plain() {
            let head = FrameHead {
                dtype: tensor.dtype() as u8,
                payload: tensor.byte_len() as u64,
                ..FrameHead::new(FrameKind::Plain, step)
            };
            let dims = tensor.shape().dims();
            if tensor.byte_len() <= SMALL {
                let bytes = if tensor.byte_len() == 0 { &[] } else { tensor.bytes()? };
                return Ok(LinkFrame::in_one_piece(head, dims, key, bytes));
            }
            return Ok(LinkFrame::new(head, dims, key, tensor.to_wire_bytes()?));
        }
        // Encoded like an answer to RecvTensor.
        let answer =
            RecvTensorResponse { tensor: Some(tensor.clone()), ..RecvTensorResponse::default() };
        let payload = answer.encode()?.to_bytes();
        let head =
            FrameHead { payload: payload.len() as u64, ..FrameHead::new(FrameKind::Proto, step) };
        Ok(LinkFrame::new(head, &[], key, payload))
    }

    /// A tensor of a step whose bytes are in `block` of shared memory, from `offset` on.
    pub fn block(step: i64, key: &str, tensor: &Tensor, offset: u64, block: u32) -> LinkFrame {
        let head = FrameHead {
            dtype: tensor.dtype() as u8,
            payload: tensor.byte_len() as u64,
            ..FrameHead::new(FrameKind::Block, step)
        };
        let mut place = BytesMut::with_capacity(BLOCK_PLACE);
        place.put_u64_le(offset);
        place.put_u32_le(block);
        LinkFrame::new(head, tensor.shape().dims(), key, place.freeze())
    }

    /// A tensor of a step in the memory of a GPU. The GPU's driver knows the memory as `memory`.
    pub fn lent(step: i64, key: &str, tensor: &Tensor, loan: i64, memory: &[u8]) -> LinkFrame {
        let head = FrameHead {
            dtype: tensor.dtype() as u8,
            payload: tensor.byte_len() as u64,
            ..FrameHead::new(FrameKind::Lent, step)
        };
        let mut place = BytesMut::with_capacity(LOAN + memory.len());
        place.put_i64_le(loan);
        place.put_u32_le(memory.len() as u32);
        place.put_slice(memory);
        LinkFrame::new(head, tensor.shape().dims(), key, place.freeze())
    }

    /// Returns a loan. `is_taken` says whether the receiver has a copy.
    pub fn returned(loan: i64, is_taken: bool) -> LinkFrame {
        let payload = Bytes::copy_from_slice(&[is_taken.into()]);
        let head = FrameHead { payload: 1, ..FrameHead::new(FrameKind::Returned, loan) };
        LinkFrame::new(head, &[], "", payload)
    }

    /// Requests a run of `part`.
    pub fn run(call: i64, part: &LinkPart<'_>) -> LinkFrame {
        let LinkPart { step_id, session, graph } = part;
        let name = (session.len() + graph.len()) as u32;
        let head = FrameHead { payload: PART, name, ..FrameHead::new(FrameKind::Run, call) };
        let mut bytes = BytesMut::with_capacity(HEAD + name as usize + PART as usize);
        head.put(&mut bytes);
        bytes.put_slice(session.as_bytes());
        bytes.put_slice(graph.as_bytes());
        bytes.put_i64_le(*step_id);
        bytes.put_u32_le(session.len() as u32);
        LinkFrame { head: bytes.freeze(), payload: Bytes::new() }
    }

    /// The result of a call.
    pub fn ran(call: i64, result: &Result<()>) -> LinkFrame {
        let (code, is_derived, message) = match result {
            Ok(()) => (0, false, ""),
            Err(e) => (e.code() as i32, e.is_derived(), e.message()),
        };
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&code.to_le_bytes());
        payload[4..].copy_from_slice(&i32::from(is_derived).to_le_bytes());
        let head =
            FrameHead { payload: payload.len() as u64, ..FrameHead::new(FrameKind::Ran, call) };
        LinkFrame::in_one_piece(head, &[], cut(message, MAX_NAME), &payload)
    }

    pub fn cancel(call: i64) -> LinkFrame {
        LinkFrame::new(FrameHead::new(FrameKind::Cancel, call), &[], "", Bytes::new())
    }

    pub fn clean_up(step: i64) -> LinkFrame {
        LinkFrame::new(FrameHead::new(FrameKind::CleanUp, step), &[], "", Bytes::new())
    }

    fn new(head: FrameHead, dims: &[usize], name: &str, payload: Bytes) -> LinkFrame {
        match payload.len() <= SMALL {
            true => LinkFrame::in_one_piece(head, dims, name, &payload),
            false => LinkFrame { payload, ..LinkFrame::in_one_piece(head, dims, name, &[]) },
        }
    }

    /// A frame with a copy of its payload.
    fn in_one_piece(mut head: FrameHead, dims: &[usize], name: &str, payload: &[u8]) -> LinkFrame {
        head.rank = dims.len() as u8;
        head.name = name.len() as u32;
        let mut bytes = BytesMut::with_capacity(HEAD + head.rest() + payload.len());
        head.put(&mut bytes);
        dims.iter().for_each(|dim| bytes.put_u64_le(*dim as u64));
        bytes.put_slice(name.as_bytes());
        bytes.put_slice(payload);
        LinkFrame { head: bytes.freeze(), payload: Bytes::new() }
    }
}

/// The start of a text, of at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The length of a place in shared memory.
pub(super) const BLOCK_PLACE: usize = 12;

/// Parses the offset and the block of a place.
pub(super) fn block_place(mut bytes: &[u8]) -> Result<(u64, u32)> {
    ensure!(bytes.len() == BLOCK_PLACE, InvalidArgument, "a shared-memory frame lacks its place");
    Ok((bytes.get_u64_le(), bytes.get_u32_le()))
}

/// The length of a loan without the name of its memory.
pub(super) const LOAN: usize = 12;
/// The limit of the name of a GPU's memory.
const MAX_MEMORY: usize = 256;

/// Parses the number of a loan and the length of the name of its memory.
pub(super) fn loan(mut bytes: &[u8]) -> Result<(i64, usize)> {
    ensure!(bytes.len() == LOAN, InvalidArgument, "a frame with a loan is too short");
    let (loan, len) = (bytes.get_i64_le(), bytes.get_u32_le() as usize);
    ensure!(
        len <= MAX_MEMORY,
        InvalidArgument,
        "a frame names the memory of a GPU with {len} bytes"
    );
    Ok((loan, len))
}

/// Parses whether the receiver has a copy of what it returns.
pub(super) fn parse_returned(payload: &[u8]) -> Result<bool> {
    match payload {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => bail!(InvalidArgument, "a returned loan has a payload of {} bytes", payload.len()),
    }
}

/// A part of a step that runs without feeds and fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkPart<'h> {
    pub step_id: i64,
    pub session: &'h str,
    pub graph: &'h str,
}

/// The length of a part without its handles.
const PART: u64 = 12;

impl LinkPart<'_> {
    pub(super) fn parse<'h>(name: &'h str, mut payload: &[u8]) -> Result<LinkPart<'h>> {
        ensure!(
            payload.len() as u64 == PART,
            InvalidArgument,
            "a run frame has a payload of {} bytes",
            payload.len()
        );
        let (step_id, at) = (payload.get_i64_le(), payload.get_u32_le() as usize);
        let (session, graph) = name
            .split_at_checked(at)
            .ok_or_else(|| err!(InvalidArgument, "a run frame lacks its handles"))?;
        Ok(LinkPart { step_id, session, graph })
    }
}

/// Parses the result of a call.
pub(super) fn parse_ran(name: &str, mut payload: &[u8]) -> Result<Result<()>> {
    ensure!(
        payload.len() == 8,
        InvalidArgument,
        "a result frame has a payload of {} bytes",
        payload.len()
    );
    let (code, is_derived) = (payload.get_i32_le(), payload.get_i32_le() != 0);
    if code == 0 {
        return Ok(Ok(()));
    }
    let error = Error::new(Code::from_number(code), name);
    Ok(Err(if is_derived { error.derived() } else { error }))
}

/// Parses a serialized value.
pub(super) fn parse_proto(payload: Bytes) -> Result<Received> {
    let response = RecvTensorResponse::decode(MessageReader::new(vec![payload]))?;
    let tensor =
        response.tensor.ok_or_else(|| err!(InvalidArgument, "a value frame lacks its tensor"))?;
    Ok(Received::Live(tensor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frame: &LinkFrame) -> (FrameHead, FrameRest, Vec<u8>) {
        let all = [&frame.head[..], &frame.payload[..]].concat();
        let head = FrameHead::read(all[..HEAD].try_into().unwrap()).unwrap();
        let (rest, payload) = all[HEAD..].split_at(head.rest());
        (head, head.parse_rest(rest).unwrap(), payload.to_vec())
    }

    #[test]
    fn values_round_trip() {
        for len in [0usize, 3, 5000] {
            let tensor = Tensor::from_slice([len, 1], &vec![7i32; len]).unwrap();
            let frame = LinkFrame::value(9, "key", &Received::Live(tensor.clone())).unwrap();
            let (head, rest, payload) = read(&frame);
            assert_eq!((head.kind, head.id, &*rest.name), (FrameKind::Plain, 9, "key"));
            let mut back = head.tensor(rest.shape).unwrap();
            if let Some(piece) = back.next_piece().unwrap() {
                piece.copy_from_slice(&payload);
            }
            assert_eq!(back.finish().unwrap(), tensor);
        }
        let strings = Tensor::from_strings([2], vec!["a".into(), "bc".into()]).unwrap();
        let (head, _, payload) =
            read(&LinkFrame::value(9, "k", &Received::Live(strings.clone())).unwrap());
        assert_eq!(head.kind, FrameKind::Proto);
        let Received::Live(back) = parse_proto(payload.into()).unwrap() else { panic!("dead") };
        assert_eq!(back, strings);
        assert_eq!(
            read(&LinkFrame::value(9, "k", &Received::Dead).unwrap()).0.kind,
            FrameKind::Dead
        );
    }

    #[test]
    fn calls_and_results_round_trip() {
        let part = LinkPart { step_id: -4, session: "s1", graph: "graph" };
        let (head, rest, payload) = read(&LinkFrame::run(3, &part));
        assert_eq!((head.kind, head.id), (FrameKind::Run, 3));
        assert_eq!(LinkPart::parse(&rest.name, &payload).unwrap(), part);
        for result in [Ok(()), Err(err!(Aborted, "x")), Err(err!(Aborted, "y").derived())] {
            let (_, rest, payload) = read(&LinkFrame::ran(3, &result));
            let back = parse_ran(&rest.name, &payload).unwrap();
            assert_eq!(back, result);
            let derived = |r: &Result<()>| r.as_ref().err().is_some_and(Error::is_derived);
            assert_eq!(derived(&back), derived(&result));
        }
    }

    #[test]
    fn loans_round_trip() {
        let tensor = Tensor::from_slice([2, 3], &[1f32; 6]).unwrap();
        let (head, rest, payload) = read(&LinkFrame::lent(9, "key", &tensor, -7, b"memory"));
        assert_eq!((head.kind, head.id, &*rest.name), (FrameKind::Lent, 9, "key"));
        assert_eq!(head.plain_dtype(&rest.shape).unwrap(), DType::Float);
        let (number, memory) = payload.split_at(LOAN);
        assert_eq!(loan(number).unwrap(), (-7, memory.len()));
        assert_eq!(memory, b"memory");
        for is_taken in [false, true] {
            let (head, _, payload) = read(&LinkFrame::returned(-7, is_taken));
            assert_eq!((head.kind, head.id), (FrameKind::Returned, -7));
            assert_eq!(parse_returned(&payload).unwrap(), is_taken);
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut("aé", 3), cut("aé", 2), cut("", 0)), ("aé", "a", ""));
    }

    #[test]
    fn invalid_frames_are_refused() {
        let good =
            FrameHead { kind: FrameKind::Plain, dtype: 1, rank: 1, name: 1, payload: 4, id: 0 };
        let bytes = |head: FrameHead| {
            let mut bytes = BytesMut::new();
            head.put(&mut bytes);
            let bytes: [u8; HEAD] = bytes[..].try_into().unwrap();
            bytes
        };
        assert_eq!(FrameHead::read(&bytes(good)).unwrap(), good);
        let mut unknown = bytes(good);
        unknown[0] = 99;
        assert!(FrameHead::read(&unknown).is_err());
        assert!(FrameHead::read(&bytes(FrameHead { name: u32::MAX, ..good })).is_err());
        assert!(FrameHead::read(&bytes(FrameHead { rank: 255, ..good })).is_err());
        assert!(
            FrameHead::read(&bytes(FrameHead { kind: FrameKind::Run, payload: u64::MAX, ..good }))
                .is_err()
        );
        // Payloads that do not fit the shape, and shapes beyond any memory.
        assert!(good.tensor(Shape::from([2])).is_err());
        assert!(FrameHead { payload: u64::MAX, ..good }.tensor(Shape::from([1 << 62])).is_err());
        assert!(FrameHead { dtype: 7, ..good }.tensor(Shape::from([1])).is_err());
        assert!(good.parse_rest(&[0xff; 9]).is_err());
        assert!(LinkPart::parse("ab", &[0; 3]).is_err());
        let mut far = [0u8; 12];
        far[8] = 200;
        assert!(LinkPart::parse("ab", &far).is_err());
        assert!(block_place(&[0; 3]).is_err());
        assert!(loan(&[0; 3]).is_err());
        assert!(loan(&[0xff; LOAN]).is_err());
        assert!(parse_returned(&[2]).is_err());
    }
}
