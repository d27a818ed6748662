//! The messages between ranks and the coordinator, and their encoding.

use super::collective::MOST_DIMENSIONS;
use crate::compress::WireCompression;
use crate::reduce::ReduceOp;
use crate::signature::OperationKind;
use crate::wire::{FieldReader, FieldWriter};
use ferroflow_core::{Code, DType, Error, Result, ensure, err};
use std::fmt;

/// Numbers below this stand for a request until the job ends. Numbers from here on stand for a
/// request until it has run. This bounds the memory of a job that keeps using new names.
pub(crate) const KEPT: u32 = 1 << 16;

/// Most messages or decisions in one frame. Names and error texts have limits, so frames have one
/// too.
pub(crate) const IN_A_FRAME: usize = 256;

/// Bytes of an error text that are sent.
const LONGEST_FAULT: usize = 4 << 10;

/// The operation that one rank requests for a named tensor. All fields but `priority` must be equal
/// on all ranks. For gathers and all-to-all, the first dimension may differ too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorRequest {
    pub name: String,
    pub kind: OperationKind,
    pub op: ReduceOp,
    pub dtype: DType,
    /// The shape. For a process set, its ranks.
    pub shape: Vec<u64>,
    pub set: u16,
    pub root: u32,
    pub compression: WireCompression,
    /// The key of the tensor's group. Tensors of a group run together.
    pub group: u64,
    /// The number of tensors in the group.
    pub group_len: u32,
    /// Tensors with a higher priority run first.
    pub priority: i32,
    /// Why this rank cannot take part, if it cannot. The other ranks get this error instead of
    /// waiting.
    pub fault: Option<Error>,
}

impl TensorRequest {
    /// Whether both requests are the same operation.
    pub(crate) fn agrees_with(&self, other: &TensorRequest) -> bool {
        let uneven = matches!(self.kind, OperationKind::AllGather | OperationKind::AllToAll);
        let shape = |r: &TensorRequest| -> Vec<u64> {
            r.shape.iter().skip(usize::from(uneven)).copied().collect()
        };
        self.name == other.name
            && self.kind == other.kind
            && (self.op == other.op || !self.reduces())
            && self.dtype == other.dtype
            && self.shape.len() == other.shape.len()
            && shape(self) == shape(other)
            && self.set == other.set
            && self.root == other.root
            && self.compression == other.compression
            && (self.group, self.group_len) == (other.group, other.group_len)
    }

    /// Whether `op` matters.
    fn reduces(&self) -> bool {
        matches!(self.kind, OperationKind::AllReduce | OperationKind::ReduceScatter)
    }

    pub(crate) fn count(&self) -> u64 {
        match self.kind {
            OperationKind::ProcessSet => 0,
            _ => self.shape.iter().fold(1u64, |n, &d| n.saturating_mul(d)),
        }
    }

    /// The key of the tensor's group, or `None` if it is not in a group.
    pub(crate) fn group_key(&self) -> Option<(u16, u64)> {
        (self.group_len > 1).then_some((self.set, self.group))
    }

    fn encode(&self, w: &mut FieldWriter) {
        w.text(&self.name).u8(self.kind as u8).u8(self.op as u8).u8(self.dtype.number() as u8);
        w.u32(self.shape.len() as u32);
        self.shape.iter().for_each(|&d| {
            w.u64(d);
        });
        w.u32(u32::from(self.set)).u32(self.root);
        let (kind, k) = self.compression.encode();
        w.u8(kind).u64(k).u64(self.group).u32(self.group_len).u32(self.priority as u32);
        match &self.fault {
            Some(fault) => {
                let text = fault.message();
                let mut end = text.len().min(LONGEST_FAULT);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                w.u8(1).u32(fault.code() as u32).text(&text[..end])
            }
            None => w.u8(0),
        };
    }

    fn decode(r: &mut FieldReader<'_>) -> Result<TensorRequest> {
        let unknown = || err!(DataLoss, "the request comes from another version of Ferroflow");
        let name = r.text()?;
        let kind = OperationKind::from_number(r.u8()?).ok_or_else(unknown)?;
        let op = ReduceOp::from_number(r.u8()?).ok_or_else(unknown)?;
        let dtype = DType::from_number(i32::from(r.u8()?))?;
        let rank = r.u32()?;
        let most = if kind == OperationKind::ProcessSet { 1 << 16 } else { MOST_DIMENSIONS };
        ensure!(
            rank as usize <= most,
            DataLoss,
            "the tensor has {rank} dimensions, at most {most} are allowed"
        );
        let shape = (0..rank).map(|_| r.u64()).collect::<Result<Vec<_>>>()?;
        let (set, root) = (r.u32()? as u16, r.u32()?);
        let compression = WireCompression::decode(r.u8()?, r.u64()?).ok_or_else(unknown)?;
        let (group, group_len, priority) = (r.u64()?, r.u32()?, r.u32()? as i32);
        let fault = match r.u8()? {
            0 => None,
            _ => Some(Error::new(Code::from_number(r.u32()? as i32), r.text()?)),
        };
        Ok(TensorRequest {
            name,
            kind,
            op,
            dtype,
            shape,
            set,
            root,
            compression,
            group,
            group_len,
            priority,
            fault,
        })
    }
}

impl fmt::Display for TensorRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.name())?;
        match self.kind {
            _ if self.reduces() => write!(f, "({}) ", self.op)?,
            OperationKind::Broadcast => write!(f, "from rank {} ", self.root)?,
            OperationKind::ProcessSet => return write!(f, "of ranks {:?}", self.shape),
            _ => {}
        }
        write!(f, "of {}{:?}", self.dtype, self.shape)?;
        if self.compression != WireCompression::None {
            write!(f, " compressed by {}", self.compression)?;
        }
        if self.set != 0 {
            write!(f, " in process set {}", self.set)?;
        }
        if self.group_len > 1 {
            write!(f, " in a group of {}", self.group_len)?;
        }
        Ok(())
    }
}

/// A message from a rank to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RankMessage {
    /// Requests an operation on a tensor.
    Submit(TensorRequest),
    /// Requests again the operation that the coordinator knows by this number.
    Resubmit(u32),
    /// The rank has no more data, and takes part in all collectives without values.
    Join,
    /// The rank leaves the group.
    Leave,
    /// The process sets that the rank has, without the set of all ranks.
    Sets(Vec<Vec<u32>>),
}

impl RankMessage {
    pub(crate) fn encode_all(messages: &[RankMessage]) -> Vec<u8> {
        let mut w = FieldWriter::default();
        for message in messages {
            match message {
                RankMessage::Submit(request) => request.encode(w.u8(1)),
                RankMessage::Resubmit(id) => {
                    w.u8(2).u32(*id);
                }
                RankMessage::Join => {
                    w.u8(3);
                }
                RankMessage::Leave => {
                    w.u8(4);
                }
                RankMessage::Sets(sets) => {
                    w.u8(5).u32(sets.len() as u32);
                    sets.iter().for_each(|set| write_ranks(&mut w, set));
                }
            }
        }
        w.0
    }

    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<RankMessage>> {
        let mut r = FieldReader(bytes);
        let mut messages = Vec::new();
        while !r.is_empty() {
            messages.push(match r.u8()? {
                1 => RankMessage::Submit(TensorRequest::decode(&mut r)?),
                2 => RankMessage::Resubmit(r.u32()?),
                3 => RankMessage::Join,
                4 => RankMessage::Leave,
                5 => {
                    let count = r.u32()?;
                    let sets = (0..count).map(|_| read_ranks(&mut r)).collect::<Result<_>>()?;
                    RankMessage::Sets(sets)
                }
                other => {
                    return Err(err!(
                        DataLoss,
                        "rank message {other} comes from another version of Ferroflow"
                    ));
                }
            });
        }
        Ok(messages)
    }
}

/// A range of a tensor's elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The number of the request.
    pub id: u32,
    pub start: u64,
    pub len: u64,
}

/// A decision of the coordinator. All ranks receive all decisions in the same order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// From now on, `id` is the number of the request.
    Keep { id: u32, request: TensorRequest },
    /// Run these pieces in one collective. The ranks `absent` have joined and contribute no data.
    /// Anything they have submitted since then belongs to a later collective.
    Run { pieces: Vec<Piece>, absent: Vec<u32> },
    /// The tensor of this name has failed. Submissions that the ranks `absent` have made since then
    /// are not affected.
    Fail { set: u16, name: String, absent: Vec<u32>, cause: Error },
    /// All ranks have joined, `last` as the last one.
    AllJoined { last: u32 },
    /// Some ranks have joined, but not all ranks will.
    NotJoined { cause: Error },
    /// All ranks have left.
    AllLeft,
    /// Rank 0 has left, so there are no more decisions. Never sent over the wire.
    Closed,
}

impl Decision {
    pub(crate) fn encode_all(decisions: &[Decision]) -> Vec<u8> {
        let mut w = FieldWriter::default();
        for decision in decisions {
            match decision {
                Decision::Keep { id, request } => request.encode(w.u8(1).u32(*id)),
                Decision::Run { pieces, absent } => {
                    write_ranks(w.u8(2), absent);
                    w.u32(pieces.len() as u32);
                    pieces.iter().for_each(|p| {
                        w.u32(p.id).u64(p.start).u64(p.len);
                    });
                }
                Decision::Fail { set, name, absent, cause } => {
                    write_ranks(w.u8(3).u32(u32::from(*set)).text(name), absent);
                    w.u32(cause.code() as u32).text(cause.message());
                }
                Decision::AllJoined { last } => {
                    w.u8(4).u32(*last);
                }
                Decision::NotJoined { cause } => {
                    w.u8(6).u32(cause.code() as u32).text(cause.message());
                }
                Decision::AllLeft => {
                    w.u8(5);
                }
                Decision::Closed => {}
            }
        }
        w.0
    }

    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<Decision>> {
        let mut r = FieldReader(bytes);
        let mut decisions = Vec::new();
        while !r.is_empty() {
            decisions.push(match r.u8()? {
                1 => Decision::Keep { id: r.u32()?, request: TensorRequest::decode(&mut r)? },
                2 => {
                    let (absent, count) = (read_ranks(&mut r)?, r.u32()?);
                    let mut pieces = Vec::new();
                    for _ in 0..count {
                        pieces.push(Piece { id: r.u32()?, start: r.u64()?, len: r.u64()? });
                    }
                    Decision::Run { pieces, absent }
                }
                3 => {
                    let (set, name) = (r.u32()? as u16, r.text()?);
                    let (absent, code) = (read_ranks(&mut r)?, Code::from_number(r.u32()? as i32));
                    Decision::Fail { set, name, absent, cause: Error::new(code, r.text()?) }
                }
                4 => Decision::AllJoined { last: r.u32()? },
                5 => Decision::AllLeft,
                6 => {
                    let code = Code::from_number(r.u32()? as i32);
                    Decision::NotJoined { cause: Error::new(code, r.text()?) }
                }
                other => {
                    return Err(err!(
                        DataLoss,
                        "decision {other} comes from another version of Ferroflow"
                    ));
                }
            });
        }
        Ok(decisions)
    }
}

fn write_ranks(w: &mut FieldWriter, ranks: &[u32]) {
    w.u32(ranks.len() as u32);
    ranks.iter().for_each(|&r| {
        w.u32(r);
    });
}

fn read_ranks(r: &mut FieldReader<'_>) -> Result<Vec<u32>> {
    let count = r.u32()?;
    let mut ranks = Vec::new();
    for _ in 0..count {
        ranks.push(r.u32()?);
    }
    Ok(ranks)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sum(name: &str, count: u64) -> TensorRequest {
        TensorRequest {
            name: name.into(),
            kind: OperationKind::AllReduce,
            op: ReduceOp::Sum,
            dtype: DType::Float,
            shape: vec![count],
            set: 0,
            root: 0,
            compression: WireCompression::None,
            group: 0,
            group_len: 0,
            priority: 0,
            fault: None,
        }
    }

    #[test]
    fn messages_and_decisions_are_decoded_as_encoded_and_noise_is_an_error() {
        let mut request = sum("w", 9);
        request.compression = WireCompression::TopK(5);
        request.priority = -3;
        request.fault = Some(err!(OutOfRange, "no"));
        let sets = RankMessage::Sets(vec![vec![2, 0], vec![], vec![1]]);
        let messages = [
            RankMessage::Submit(request.clone()),
            RankMessage::Resubmit(7),
            RankMessage::Join,
            RankMessage::Leave,
            sets,
        ];
        assert_eq!(RankMessage::decode_all(&RankMessage::encode_all(&messages)).unwrap(), messages);
        let decisions = [
            Decision::Keep { id: 3, request },
            Decision::Run { pieces: vec![Piece { id: 3, start: 4, len: 5 }], absent: vec![1] },
            Decision::Fail {
                set: 1,
                name: "w".into(),
                absent: vec![7, 8],
                cause: err!(Aborted, "why"),
            },
            Decision::AllJoined { last: 2 },
            Decision::NotJoined { cause: err!(Unavailable, "who") },
            Decision::AllLeft,
        ];
        assert_eq!(Decision::decode_all(&Decision::encode_all(&decisions)).unwrap(), decisions);
        let long = "ä".repeat(LONGEST_FAULT);
        let request = TensorRequest { fault: Some(err!(Aborted, "{long}")), ..sum("w", 9) };
        let bytes = RankMessage::encode_all(&[RankMessage::Submit(request)]);
        assert!(bytes.len() < 2 * LONGEST_FAULT && RankMessage::decode_all(&bytes).is_ok());
        assert!(RankMessage::decode_all(&[9]).is_err() && Decision::decode_all(&[2, 1]).is_err());
    }
}
