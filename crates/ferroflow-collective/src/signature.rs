//! The signature of a collective, which ranks compare before they exchange values.

use crate::link_cost::Algorithm;
use crate::reduce::ReduceOp;
use ferroflow_core::DType;
use std::fmt;

/// The operations of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OperationKind {
    /// Reduces over all ranks.
    AllReduce = 1,
    /// Reduces, and leaves one part on each rank.
    ReduceScatter = 2,
    /// Copies the parts of all ranks to all.
    AllGather = 3,
    /// Copies the values of one rank to all.
    Broadcast = 4,
    /// Sends different values to each rank.
    AllToAll = 5,
    /// Waits for all ranks.
    Barrier = 6,
    /// Combines as [`crate::Group::adasum`] does.
    Adasum = 7,
    /// All-reduce with servers.
    PushPull = 8,
    /// Makes a process set. Moves no values.
    ProcessSet = 9,
    /// Reduces to one rank.
    Reduce = 10,
}

impl OperationKind {
    pub(crate) const ALL: [OperationKind; 10] = [
        OperationKind::AllReduce,
        OperationKind::ReduceScatter,
        OperationKind::AllGather,
        OperationKind::Broadcast,
        OperationKind::AllToAll,
        OperationKind::Barrier,
        OperationKind::Adasum,
        OperationKind::PushPull,
        OperationKind::ProcessSet,
        OperationKind::Reduce,
    ];

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::AllReduce => "all-reduce",
            OperationKind::ReduceScatter => "reduce-scatter",
            OperationKind::AllGather => "all-gather",
            OperationKind::Broadcast => "broadcast",
            OperationKind::AllToAll => "all-to-all",
            OperationKind::Barrier => "barrier",
            OperationKind::Adasum => "adasum",
            OperationKind::PushPull => "push-pull",
            OperationKind::ProcessSet => "process set",
            OperationKind::Reduce => "reduce",
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<OperationKind> {
        OperationKind::ALL.into_iter().find(|&k| k as u8 == number)
    }
}

/// All that must be equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub kind: OperationKind,
    pub op: ReduceOp,
    pub dtype: DType,
    /// The schedule. For an all-reduce, the number of the algorithm and, from bit 8 on, the number
    /// of windows in flight. For a broadcast, the root. For a reduce, the root and, in bit 15, the
    /// algorithm.
    pub variant: u16,
    /// The process set. 0 for all ranks.
    pub set: u16,
    pub count: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.kind {
            OperationKind::Barrier | OperationKind::ProcessSet => return Ok(()),
            OperationKind::AllReduce | OperationKind::ReduceScatter | OperationKind::PushPull => {
                write!(f, " ({})", self.op)?
            }
            OperationKind::Broadcast => write!(f, " from rank {}", self.variant)?,
            OperationKind::Reduce => {
                write!(f, " ({}) to rank {}", self.op, self.variant & 0x7fff)?;
            }
            OperationKind::AllGather | OperationKind::AllToAll | OperationKind::Adasum => {}
        }
        write!(f, " of {} {} values", self.count, self.dtype)?;
        if self.set != 0 { write!(f, " in process set {}", self.set) } else { Ok(()) }
    }
}

impl Signature {
    /// The text for an error about two signatures that differ. Contains the algorithm or the
    /// windows if these differ.
    pub(crate) fn beside(self, other: Signature) -> String {
        if self.kind != OperationKind::AllReduce || self.variant == other.variant {
            return self.to_string();
        }
        let ([number, ahead], [theirs, _]) =
            (self.variant.to_le_bytes(), other.variant.to_le_bytes());
        match Algorithm::ALL.get(usize::from(number)) {
            Some(algorithm) if number != theirs => format!("{self} by {algorithm}"),
            _ => format!("{self} with {ahead} windows on their way, by its model of the links"),
        }
    }
}

/// Bytes of an encoded [`MessageHeader`].
pub(crate) const HEADER: usize = 28;

/// The header of every message.
pub(crate) struct MessageHeader {
    pub sequence: u32,
    pub signature: Signature,
    pub bytes: u64,
}

/// The first byte of a header. Identifies headers and their version.
const MARK: u8 = 0xF1;

impl MessageHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let s = &self.signature;
        let mut out = [0; HEADER];
        out[0] = MARK;
        out[1] = s.kind as u8;
        out[2] = s.op as u8;
        out[3] = s.dtype.number() as u8;
        out[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        out[8..16].copy_from_slice(&s.count.to_le_bytes());
        out[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        out[24..26].copy_from_slice(&s.variant.to_le_bytes());
        out[26..28].copy_from_slice(&s.set.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<MessageHeader> {
        fn part<const N: usize>(bytes: &[u8; HEADER], at: usize) -> [u8; N] {
            let mut out = [0; N];
            out.copy_from_slice(&bytes[at..at + N]);
            out
        }
        if bytes[0] != MARK {
            return None;
        }
        Some(MessageHeader {
            sequence: u32::from_le_bytes(part(bytes, 4)),
            signature: Signature {
                kind: OperationKind::from_number(bytes[1])?,
                op: ReduceOp::from_number(bytes[2])?,
                dtype: DType::from_number(i32::from(bytes[3])).ok()?,
                variant: u16::from_le_bytes(part(bytes, 24)),
                set: u16::from_le_bytes(part(bytes, 26)),
                count: u64::from_le_bytes(part(bytes, 8)),
            },
            bytes: u64::from_le_bytes(part(bytes, 16)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_decoded_as_encoded_and_noise_is_refused() {
        let signature = Signature {
            kind: OperationKind::AllReduce,
            op: ReduceOp::Max,
            dtype: DType::Half,
            variant: 3,
            set: 0,
            count: 1 << 40,
        };
        let bytes = MessageHeader { sequence: 7, signature, bytes: 99 }.encode();
        let back = MessageHeader::decode(&bytes).unwrap();
        assert_eq!((back.sequence, back.signature, back.bytes), (7, signature, 99));
        assert!(MessageHeader::decode(&[0x55; HEADER]).is_none());
        assert_eq!(signature.to_string(), "all-reduce (max) of 1099511627776 half values");
        let ring = Signature { variant: 0, ..signature };
        assert_eq!(ring.beside(signature), format!("{signature} by ring"));
        assert_eq!(signature.beside(ring), format!("{signature} by double-tree"));
        assert_eq!(ring.beside(ring), ring.to_string());
        let in_windows = |ahead: u16| Signature { variant: 2 | ahead << 8, ..signature };
        assert_eq!(in_windows(7).beside(ring), format!("{signature} by halving-doubling"));
        let text = in_windows(7).beside(in_windows(2));
        assert!(text.starts_with(&format!("{signature} with 7 windows")), "{text}");
    }
}
