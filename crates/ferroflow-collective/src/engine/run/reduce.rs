//! All-reduce as the engine runs it: in place, fused with other tensors, or compressed.

use super::super::request::{Piece, TensorRequest};
use super::Runner;
use crate::compress::{self, WireCompression};
use crate::group::SetId;
use crate::number::bytes_of_mut;
use crate::reduce::{self, ReduceOp};
use ferroflow_core::{DType, Error, Result, err};
use std::ops::Range;

impl Runner {
    /// All-reduces pieces that can be fused: a single piece in place, several in one buffer.
    pub(super) fn reduce(
        &mut self,
        pieces: &[Piece],
        first: &TensorRequest,
        joined: u32,
        active: u32,
    ) -> Result<()> {
        let (set, width) = (SetId(first.set), first.dtype.size().unwrap_or(1));
        let (dtype, op) = travels(first, joined);
        // If some ranks have no data, the division of a mean is by the ranks that have.
        let divide = op != first.op;
        let narrow = matches!(first.compression, WireCompression::Fp16 | WireCompression::Bf16);
        let range = |p: &Piece| -> Range<usize> {
            let at = |elements: u64| (elements as usize).saturating_mul(width);
            at(p.start)..at(p.start.saturating_add(p.len))
        };
        if let ([piece], false) = (pieces, narrow)
            && let Some(pending) = self.pending.get_mut(&(first.set, first.name.clone()))
        {
            let bytes = slice(pending.payload.bytes()?, range(piece))?;
            self.group.all_reduce_in(set, first.dtype, bytes, op)?;
            if divide {
                reduce::finish(ReduceOp::Mean, first.dtype, bytes, active);
            }
            return Ok(());
        }
        let mut fused = std::mem::take(&mut self.fused);
        fused.clear();
        for piece in pieces {
            let (at, key) = (range(piece), self.key(piece)?);
            match self.pending.get_mut(&key) {
                Some(pending) if narrow => {
                    let values = floats(slice(pending.payload.bytes()?, at)?);
                    compress::narrow(first.compression, &values, &mut fused);
                }
                Some(pending) => fused.extend_from_slice(slice(pending.payload.bytes()?, at)?),
                None => {
                    let start = fused.len();
                    fused.resize(start + piece.len as usize * dtype.size().unwrap_or(1), 0);
                    reduce::fill_identity(op, dtype, &mut fused[start..]);
                }
            }
        }
        self.group.all_reduce_in(set, dtype, &mut fused, op)?;
        if divide {
            reduce::finish(ReduceOp::Mean, dtype, &mut fused, active);
        }
        let mut from = 0;
        for piece in pieces {
            let (at, key) = (range(piece), self.key(piece)?);
            let len = piece.len as usize * dtype.size().unwrap_or(1);
            if let Some(pending) = self.pending.get_mut(&key) {
                let into = slice(pending.payload.bytes()?, at)?;
                if narrow {
                    let mut values = vec![0f32; piece.len as usize];
                    compress::widen(first.compression, &fused[from..from + len], &mut values);
                    into.copy_from_slice(bytes_of_mut(&mut values));
                } else {
                    into.copy_from_slice(&fused[from..from + len]);
                }
            }
            from += len;
        }
        self.fused = fused;
        Ok(())
    }

    /// Gathers the compressed values of all ranks and adds them up here.
    pub(super) fn reduce_lossy(&mut self, request: &TensorRequest, active: u32) -> Result<()> {
        let key = (request.set, request.name.clone());
        let mine = match self.pending.get_mut(&key) {
            Some(pending) => {
                let mut values = floats(pending.payload.bytes()?);
                match request.compression {
                    WireCompression::TopK(k) => {
                        let k = usize::try_from(k).unwrap_or(usize::MAX);
                        compress::top_k(&mut self.residuals, &key, &mut values, k)
                    }
                    _ => compress::one_bit(&mut self.residuals, &key, &mut values),
                }
            }
            None => Vec::new(),
        };
        let set = SetId(request.set);
        let (all, counts) = self.group.all_gather_uneven_in(set, DType::UInt8, &mine)?;
        let Some(pending) = self.pending.get_mut(&key) else { return Ok(()) };
        let mut sum = vec![0f32; request.count() as usize];
        let mut rest = &all[..];
        for count in counts {
            let (bytes, more) = rest.split_at(count);
            rest = more;
            match request.compression {
                _ if bytes.is_empty() => {}
                WireCompression::TopK(_) => compress::add_top_k(bytes, &mut sum)?,
                _ => compress::add_one_bit(bytes, &mut sum)?,
            }
        }
        if request.op == ReduceOp::Mean {
            sum.iter_mut().for_each(|x| *x /= active.max(1) as f32);
        }
        pending.payload.replace(bytes_of_mut(&mut sum))
    }
}

/// The dtype and the operation of an all-reduce on the wire. Compression changes the dtype. A mean
/// becomes a sum if some ranks have no data.
pub(super) fn travels(first: &TensorRequest, joined: u32) -> (DType, ReduceOp) {
    let dtype = match first.compression {
        WireCompression::Fp16 => DType::Half,
        WireCompression::Bf16 => DType::BFloat16,
        _ => first.dtype,
    };
    let partial = joined > 0 && first.op == ReduceOp::Mean;
    (dtype, if partial { ReduceOp::Sum } else { first.op })
}

/// The bytes of a piece. An error if rank 0 named a piece outside of the tensor.
fn slice(bytes: &mut [u8], range: Range<usize>) -> Result<&mut [u8]> {
    let missing =
        || -> Error { err!(DataLoss, "rank 0 runs a piece that lies outside of its tensor") };
    bytes.get_mut(range).ok_or_else(missing)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect()
}
