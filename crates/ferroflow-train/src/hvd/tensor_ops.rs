//! Collectives of the tensors of a graph. Each is an op that runs in every step.

use super::{ProcessSet, Reduction, World};
use crate::node::NodeBuilder;
use crate::output::Output;

/// Collectives of tensors among the ranks of the set. All ranks must run them in the same steps;
/// tensors are matched by the name of the op.
impl ProcessSet {
    #[track_caller]
    fn op(&self, op: &str, tensor: &Output) -> NodeBuilder {
        tensor.graph().op(op).input(tensor).attr("process_set", self.number as i64)
    }

    /// The reduction of the tensors of all ranks.
    ///
    /// ```
    /// use ferroflow_train::{Session, hvd};
    /// let hvd = hvd::init()?;
    /// let g = hvd.graph();
    /// let sum = hvd.all_reduce(&g.constant([1.0f32, 2.0]), hvd::Reduction::Sum);
    /// let sum = Session::local(&g)?.run(&sum)?;
    /// let ranks = hvd.size() as f32;
    /// assert_eq!(sum.as_slice::<f32>()?, [ranks, 2.0 * ranks]);
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    #[track_caller]
    pub fn all_reduce(&self, tensor: &Output, by: Reduction) -> Output {
        self.op("HorovodAllreduce", tensor).attr("reduce_op", by as i64).output()
    }

    /// The tensors of all ranks, concatenated along the first dimension.
    #[track_caller]
    pub fn all_gather(&self, tensor: &Output) -> Output {
        self.op("HorovodAllgather", tensor).output()
    }

    /// The tensor of rank `root`.
    #[track_caller]
    pub fn broadcast(&self, tensor: &Output, root: usize) -> Output {
        self.op("HorovodBroadcast", tensor).attr("root_rank", root as i64).output()
    }

    /// This rank's rows of the reduction of the tensors of all ranks.
    #[track_caller]
    pub fn reduce_scatter(&self, tensor: &Output, by: Reduction) -> Output {
        self.op("HorovodReducescatter", tensor).attr("reduce_op", by as i64).output()
    }

    /// Sends `splits[r]` rows to each rank `r`. Returns the received rows, and how many came from
    /// each rank.
    #[track_caller]
    pub fn all_to_all(&self, tensor: &Output, splits: &Output) -> [Output; 2] {
        let graph = tensor.graph();
        let op = graph.op("HorovodAlltoall").input(tensor).input(splits);
        op.attr("process_set", self.number as i64).split()
    }
}

/// Collectives of tensors among all ranks; see [`ProcessSet`].
impl World {
    /// See [`ProcessSet::all_reduce`].
    #[track_caller]
    pub fn all_reduce(&self, tensor: &Output, by: Reduction) -> Output {
        self.all().all_reduce(tensor, by)
    }

    /// See [`ProcessSet::all_gather`].
    #[track_caller]
    pub fn all_gather(&self, tensor: &Output) -> Output {
        self.all().all_gather(tensor)
    }

    /// See [`ProcessSet::broadcast`].
    #[track_caller]
    pub fn broadcast(&self, tensor: &Output, root: usize) -> Output {
        self.all().broadcast(tensor, root)
    }

    /// See [`ProcessSet::reduce_scatter`].
    #[track_caller]
    pub fn reduce_scatter(&self, tensor: &Output, by: Reduction) -> Output {
        self.all().reduce_scatter(tensor, by)
    }

    /// See [`ProcessSet::all_to_all`].
    #[track_caller]
    pub fn all_to_all(&self, tensor: &Output, splits: &Output) -> [Output; 2] {
        self.all().all_to_all(tensor, splits)
    }
}
