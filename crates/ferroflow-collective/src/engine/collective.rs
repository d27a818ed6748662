//! The collectives that an engine can run, and their checks.

use super::SubmitOptions;
use crate::compress::WireCompression;
use crate::group::{SetId, check_set};
use crate::reduce::{ReduceOp, check_dtype};
use crate::signature::OperationKind;
use ferroflow_core::{DType, Result, ensure};

/// The operation on a tensor. [`SubmitOptions`] has its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Reduces over all ranks.
    AllReduce,
    /// Combines as [`crate::Group::adasum`] does.
    Adasum,
    /// Reduces, and leaves one part on each rank.
    ReduceScatter,
    /// Concatenates the values of all ranks.
    AllGather,
    /// Copies the values of one rank to all.
    Broadcast {
        /// The rank in the group that has the values. It must be in the set.
        root: usize,
    },
    /// Sends different values to each rank.
    AllToAll {
        /// How many values go to each rank of the set.
        splits: Vec<usize>,
    },
    /// Waits for all ranks.
    Barrier,
    /// Makes a process set, as [`super::Engine::add_set`] does.
    ProcessSet {
        /// The ranks of the set, in order.
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

    /// Whether the operation is possible with `len` values among the ranks `members`.
    pub(super) fn check(
        &self,
        dtype: DType,
        len: usize,
        options: &SubmitOptions,
        members: &[u32],
    ) -> Result<()> {
        match self {
            Collective::AllReduce | Collective::ReduceScatter => check_dtype(dtype)?,
            Collective::Adasum => ensure!(
                matches!(dtype, DType::Float | DType::Double),
                Unimplemented,
                "adasum supports float and double, not {dtype}"
            ),
            Collective::Broadcast { root } => ensure!(
                members.iter().any(|&m| m as usize == *root),
                InvalidArgument,
                "root {root} of a broadcast is not among its ranks {members:?}"
            ),
            Collective::AllToAll { splits } => {
                let (given, n) = (splits.len(), members.len());
                ensure!(
                    given == n,
                    InvalidArgument,
                    "{given} splits {splits:?} were given for {n} ranks"
                );
                let sum = splits.iter().fold(0usize, |sum, &s| sum.saturating_add(s));
                ensure!(
                    sum == len,
                    InvalidArgument,
                    "the splits {splits:?} do not add up to {len} values"
                );
            }
            Collective::ProcessSet { ranks } => {
                ensure!(
                    options.set == SetId::WORLD,
                    InvalidArgument,
                    "a process set cannot be made within another one"
                );
                check_set(ranks, members.len())?;
            }
            Collective::AllGather | Collective::Barrier => {}
        }
        ensure!(
            dtype.size().is_some(),
            Unimplemented,
            "collectives do not move values of type {dtype}"
        );
        let lossy = options.compression != WireCompression::None;
        ensure!(
            !lossy || (dtype == DType::Float && *self == Collective::AllReduce),
            Unimplemented,
            "compression supports all-reduce of float, not {} of {dtype}",
            self.kind().name(),
        );
        ensure!(
            !lossy || matches!(options.op, ReduceOp::Sum | ReduceOp::Mean),
            Unimplemented,
            "compression supports sum and mean, not {}",
            options.op
        );
        ensure!(
            !matches!(options.compression, WireCompression::TopK(_)) || u32::try_from(len).is_ok(),
            Unimplemented,
            "top-k counts values in 32 bits, too few for {len} values"
        );
        let Some(shape) = &options.shape else { return Ok(()) };
        let rank = shape.len();
        ensure!(
            rank <= MOST_DIMENSIONS,
            InvalidArgument,
            "the tensor has {rank} dimensions, at most {MOST_DIMENSIONS} are allowed"
        );
        let count = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
        ensure!(
            count == len,
            InvalidArgument,
            "the tensor has {len} values, but its shape has {count}"
        );
        Ok(())
    }
}

/// TensorFlow's limit on the rank of a tensor.
pub(super) const MOST_DIMENSIONS: usize = 254;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_k_refuses_more_values_than_32_bits_can_count() {
        let options =
            SubmitOptions { compression: WireCompression::TopK(1), ..SubmitOptions::default() };
        let check = |len| Collective::AllReduce.check(DType::Float, len, &options, &[0]);
        check(u32::MAX as usize).unwrap();
        assert!(check(u32::MAX as usize + 1).unwrap_err().message().contains("32 bits"));
    }
}
