//! Some of the ranks, which do collectives among themselves.

use super::{Link, Reduction, ops};
use ferroflow_collective::{Ask, Collective, SetId};
use ferroflow_core::{Result, Tensor, ensure, err};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The ranks of a set, by its number: all of them for 0, and those of `Config::process_sets` from 1 on.
pub(crate) struct Members {
    pub(super) id: SetId,
    /// None for all.
    pub(super) ranks: Vec<usize>,
}

/// Some of the ranks, as [`super::Config::process_sets`] named them: what is called on a set is called by its ranks
/// and by no others. In graphs, the ops that communicate have an attribute `process_set` for its number.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// use ferroflow_core::Tensor;
/// use ferroflow_train::hvd::{Config, Reduction, World};
/// let config = Config { process_sets: vec![vec![0]], ..Config::default() };
/// let hvd = World::meet(config, &catalog)?;
/// let first = hvd.process_set(1)?;
/// if first.includes(hvd.rank()) {
///     let sum = first.all_reduce_value("x", Tensor::scalar(2.0f32), Reduction::Sum)?;
///     assert_eq!(sum.as_slice::<f32>()?, [2.0]);
/// }
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ProcessSet {
    pub(super) link: Arc<Link>,
    pub(super) number: usize,
}

impl ProcessSet {
    /// What graphs call it: the attribute `process_set` of the ops that communicate.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its ranks, in their order.
    pub fn ranks(&self) -> Vec<usize> {
        match self.link.sets.get(self.number) {
            Some(set) if self.number > 0 => set.ranks.clone(),
            _ => (0..self.link.place.read().size).collect(),
        }
    }

    /// Whether a rank is one of its ranks.
    pub fn includes(&self, rank: usize) -> bool {
        self.ranks().contains(&rank)
    }

    /// Reduces a value under a name of its own, and waits for it.
    pub fn all_reduce_value(&self, name: &str, value: Tensor, by: Reduction) -> Result<Tensor> {
        let (what, op) = by.collective();
        Ok(self.value(name, value, what, Ask::op(op))?.0)
    }

    /// All ranks' values one below the other, under a name of its own.
    pub fn all_gather_value(&self, name: &str, value: Tensor) -> Result<Tensor> {
        let shape = value.shape().clone();
        let (all, counts) = self.value(name, value, Collective::AllGather, Ask::default())?;
        ops::rows(all, &shape, &counts).map(|(all, _)| all)
    }

    /// The value of rank `root` on all, under a name of its own.
    pub fn broadcast_value(&self, name: &str, value: Tensor, root: usize) -> Result<Tensor> {
        let what = self.link.set(self.number)?.broadcast(root)?;
        Ok(self.value(name, value, what, Ask::default())?.0)
    }

    /// Returns when all its ranks have called it.
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.all_reduce_value(&format!("barrier {name}"), Tensor::scalar(0u8), Reduction::Sum)?;
        Ok(())
    }

    fn value(
        &self,
        name: &str,
        value: Tensor,
        what: Collective,
        ask: Ask,
    ) -> Result<(Tensor, Vec<usize>)> {
        let ask = Ask { set: self.link.set(self.number)?.id, ..ask };
        let (sender, receiver) = channel();
        self.link.submit(name, value, what, ask, move |result| drop(sender.send(result)));
        receiver.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")))
    }
}

impl Members {
    /// All ranks, however many there are.
    pub(super) const WORLD: Members = Members { id: SetId::WORLD, ranks: Vec::new() };

    /// A broadcast from `root`, which must be one of the ranks.
    pub(super) fn broadcast(&self, root: usize) -> Result<Collective> {
        let ranks = &self.ranks;
        ensure!(
            self.id == SetId::WORLD || ranks.contains(&root),
            InvalidArgument,
            "rank {root} is not in the process set of ranks {ranks:?}"
        );
        Ok(Collective::Broadcast { root })
    }
}

impl Link {
    pub(crate) fn set(&self, number: usize) -> Result<&Members> {
        let named = self.sets.len() - 1;
        self.sets.get(number).ok_or_else(|| {
            err!(InvalidArgument, "no process set {number}: Config::process_sets names {named}")
        })
    }
}
