//! What can be asked of an engine, and whether it can be done.

use super::SubmitOptions;
use crate::compress::WireCompression;
use crate::group::{SetId, check_set};
use crate::reduce::{ReduceOp, check_dtype};
use crate::signature::OperationKind;
use ferroflow_core::{DType, Result, ensure};

/// What is to be done with a tensor; [`SubmitOptions`] has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collective {
    AllReduce,
    /// [`crate::Group::adasum`] instead of the op.
    Adasum,
    ReduceScatter,
    AllGather,
    /// From this rank of the group, which is in the set.
    Broadcast {
        root: usize,
    },
    /// How many values go to each rank of the set.
    AllToAll {
        splits: Vec<usize>,
    },
    Barrier,
    /// As [`super::Engine::add_set`] asks for.
    ProcessSet {
        ranks: Vec<usize>,
    },
}

impl Collective {
    pub(super) fn kind(&self) -> OperationKind {
        match self {
            Collective::AllReduce => OperationKind::AllReduce,
            Collective::Adasum => OperationKind::Adasum,
            Collective::ReduceScatter => OperationKind::ReduceScatter,
            Collective::AllGather => OperationKind::AllGather,
            Collective::Broadcast { .. } => OperationKind::Broadcast,
            Collective::AllToAll { .. } => OperationKind::AllToAll,
            Collective::Barrier => OperationKind::Barrier,
            Collective::ProcessSet { .. } => OperationKind::ProcessSet,
        }
    }

    /// Whether it can be done with `len` values, among the ranks `members`.
    pub(super) fn check(
        &self,
        dtype: DType,
        len: usize,
        ask: &SubmitOptions,
        members: &[u32],
    ) -> Result<()> {
        match self {
            Collective::AllReduce | Collective::ReduceScatter => check_dtype(dtype)?,
            Collective::Adasum => ensure!(
                matches!(dtype, DType::Float | DType::Double),
                Unimplemented,
                "adasum is for float and double, not {dtype}"
            ),
            Collective::Broadcast { root } => ensure!(
                members.iter().any(|&m| m as usize == *root),
                InvalidArgument,
                "root {root} of a broadcast is not among its ranks {members:?}"
            ),
            Collective::AllToAll { splits } => {
                let (given, n) = (splits.len(), members.len());
                ensure!(given == n, InvalidArgument, "{given} splits {splits:?} for {n} ranks");
                let sum = splits.iter().fold(0usize, |sum, &s| sum.saturating_add(s));
                ensure!(
                    sum == len,
                    InvalidArgument,
                    "the splits {splits:?} do not add up to {len} values"
                );
            }
            Collective::ProcessSet { ranks } => {
                ensure!(ask.set == SetId::WORLD, InvalidArgument, "a process set within another");
                check_set(ranks, members.len())?;
            }
            Collective::AllGather | Collective::Barrier => {}
        }
        ensure!(
            dtype.size().is_some(),
            Unimplemented,
            "collectives do not move values of type {dtype}"
        );
        let lossy = ask.compression != WireCompression::None;
        ensure!(
            !lossy || (dtype == DType::Float && *self == Collective::AllReduce),
            Unimplemented,
            "compression is for all-reduce of float, not {} of {dtype}",
            self.kind().name(),
        );
        ensure!(
            !lossy || matches!(ask.op, ReduceOp::Sum | ReduceOp::Mean),
            Unimplemented,
            "compression is for sum and mean, not {}",
            ask.op
        );
        ensure!(
            !matches!(ask.compression, WireCompression::TopK(_)) || u32::try_from(len).is_ok(),
            Unimplemented,
            "top-k counts values in 32 bits, which {len} do not fit"
        );
        let Some(shape) = &ask.shape else { return Ok(()) };
        let rank = shape.len();
        ensure!(rank <= MOST_DIMENSIONS, InvalidArgument, "a tensor of {rank} dimensions");
        let count = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
        ensure!(count == len, InvalidArgument, "{len} values, of which its shape says {count}");
        Ok(())
    }
}

/// As many as TensorFlow allows.
pub(super) const MOST_DIMENSIONS: usize = 254;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_values_than_top_k_can_count_are_refused() {
        let ask =
            SubmitOptions { compression: WireCompression::TopK(1), ..SubmitOptions::default() };
        let check = |len| Collective::AllReduce.check(DType::Float, len, &ask, &[0]);
        check(u32::MAX as usize).unwrap();
        assert!(check(u32::MAX as usize + 1).unwrap_err().message().contains("32 bits"));
    }
}
