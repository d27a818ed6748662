//! Process sets: subsets of ranks with their own collectives.

use super::handle::Handle;
use super::{Link, Reduction, ops};
use ferroflow_collective::{Collective, SetId, SubmitOptions, TensorDone};
use ferroflow_core::{Result, Tensor, err};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The ranks of each set by number: all ranks for 0, and the sets of `Config::process_sets` from 1
/// on.
pub(crate) struct Members {
    pub(super) id: SetId,
    /// `None` means all ranks.
    pub(super) ranks: Vec<usize>,
}

/// A subset of ranks, from [`super::Config::process_sets`] or [`super::World::add_process_set`].
/// Only its members may call its collectives. In graphs, the attribute `process_set` of the
/// communicating ops holds its number.
///
/// ```
/// use ferroflow_core::Tensor;
/// use ferroflow_train::hvd::{self, Config, Reduction};
/// let config = Config { process_sets: vec![vec![0]], ..Config::default() };
/// let hvd = hvd::init_with(config)?;
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
    /// Its number: the attribute `process_set` of the communicating ops.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its ranks, in order.
    pub fn ranks(&self) -> Vec<usize> {
        match self.link.sets.read().get(self.number) {
            Some(set) if self.number > 0 => set.ranks.clone(),
            _ => (0..self.link.place.read().size).collect(),
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.ranks().len()
    }

    /// The index of this process in the set, if it is a member.
    pub fn rank(&self) -> Option<usize> {
        let me = self.link.place.read().rank;
        self.ranks().iter().position(|&r| r == me)
    }

    /// Whether a rank is a member.
    pub fn includes(&self, rank: usize) -> bool {
        self.ranks().contains(&rank)
    }

    /// Reduces a value under a unique name and waits for the result.
    pub fn all_reduce_value(&self, name: &str, value: Tensor, by: Reduction) -> Result<Tensor> {
        self.all_reduce_async(name, value, by).wait()
    }

    /// [`ProcessSet::all_reduce_value`] without waiting.
    pub fn all_reduce_async(&self, name: &str, value: Tensor, by: Reduction) -> Handle {
        let (what, op) = by.collective();
        self.start(name, value, what, SubmitOptions::op(op), |sum, _| Ok(sum))
    }

    /// Reduces several values together, each under a unique name; if one fails, all do.
    pub fn grouped_all_reduce_values(
        &self,
        values: Vec<(String, Tensor)>,
        by: Reduction,
    ) -> Result<Vec<Tensor>> {
        let (what, op) = by.collective();
        let ask = SubmitOptions { set: self.link.set(self.number)?, ..SubmitOptions::op(op) };
        let (mut all, mut handles) = (Vec::new(), Vec::new());
        for (name, value) in values {
            let (sender, result) = channel();
            let done: TensorDone = Box::new(move |r| drop(sender.send(r.map(|(sum, _)| sum))));
            all.push((name, value, what.clone(), done));
            handles.push(Handle::new(result));
        }
        self.link.submit_all(all, &ask);
        handles.into_iter().map(Handle::wait).collect()
    }

    /// Concatenates all members' values along the first dimension, under a unique name.
    pub fn all_gather_value(&self, name: &str, value: Tensor) -> Result<Tensor> {
        self.all_gather_async(name, value).wait()
    }

    /// [`ProcessSet::all_gather_value`] without waiting.
    pub fn all_gather_async(&self, name: &str, value: Tensor) -> Handle {
        let shape = value.shape().clone();
        let ask = SubmitOptions { fault: ops::row_size(&shape).err(), ..SubmitOptions::default() };
        self.start(name, value, Collective::AllGather, ask, move |all, counts| {
            ops::rows(all, &shape, &counts).map(|(all, _)| all)
        })
    }

    /// Broadcasts the value of rank `root`, under a unique name.
    pub fn broadcast_value(&self, name: &str, value: Tensor, root: usize) -> Result<Tensor> {
        self.broadcast_async(name, value, root).wait()
    }

    /// [`ProcessSet::broadcast_value`] without waiting.
    pub fn broadcast_async(&self, name: &str, value: Tensor, root: usize) -> Handle {
        let what = Collective::Broadcast { root };
        self.start(name, value, what, SubmitOptions::default(), |value, _| Ok(value))
    }

    /// Reduce-scatter: reduces a value and gives each rank a nearly equal share of its rows.
    pub fn reduce_scatter_value(&self, name: &str, value: Tensor, by: Reduction) -> Result<Tensor> {
        let (what, op) = by.collective();
        let shape = value.shape().clone();
        let adasum = || err!(Unimplemented, "adasum of parts");
        let fault = ops::row_size(&shape).err();
        let fault = fault.or_else(|| (what == Collective::Adasum).then(adasum));
        let ask = SubmitOptions { fault, ..SubmitOptions::op(op) };
        let rows = move |part: Tensor, _| Ok(ops::rows(part, &shape, &[])?.0);
        self.start(name, value, Collective::ReduceScatter, ask, rows).wait()
    }

    /// All-to-all: sends `splits[r]` rows of the value, in order, to each rank `r`. Returns the
    /// received rows and their counts.
    pub fn all_to_all_value(
        &self,
        name: &str,
        value: Tensor,
        splits: &[i32],
    ) -> Result<(Tensor, Vec<i32>)> {
        let shape = value.shape().clone();
        let mut ask = SubmitOptions::default();
        let what = ops::exchange(&shape, splits, &mut ask);
        let rows = move |all, counts: Vec<usize>| ops::rows(all, &shape, &counts);
        self.start(name, value, what, ask, rows).wait()
    }

    /// Broadcasts the bytes of rank `root`, for example a serialized object. Other ranks' bytes are
    /// ignored.
    pub fn broadcast_bytes(&self, name: &str, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        let length = Tensor::scalar(bytes.len() as i64);
        let length = self.broadcast_value(&format!("{name}/length"), length, root)?;
        let length = usize::try_from(length.scalar_value::<i64>()?).unwrap_or(0);
        let mut value = Tensor::alloc(ferroflow_core::DType::UInt8, [length])?;
        if self.link.place.read().rank == root {
            value.bytes_mut()?.copy_from_slice(bytes);
        }
        Ok(self.broadcast_value(name, value, root)?.bytes()?.to_vec())
    }

    /// Gathers the bytes of each rank on all ranks.
    pub fn all_gather_bytes(&self, name: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let value = Tensor::vector(bytes);
        let all = self.start(
            name,
            value,
            Collective::AllGather,
            SubmitOptions::default(),
            |all, counts| {
                let mut rest = all.bytes()?;
                let mut take = |count| {
                    let (part, more) = rest.split_at(count);
                    rest = more;
                    part.to_vec()
                };
                Ok(counts.into_iter().map(&mut take).collect())
            },
        );
        all.wait()
    }

    /// Blocks until all members have called it.
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.all_reduce_value(&format!("barrier {name}"), Tensor::scalar(0u8), Reduction::Sum)?;
        Ok(())
    }

    fn start<T: Send + 'static>(
        &self,
        name: &str,
        value: Tensor,
        what: Collective,
        ask: SubmitOptions,
        finish: impl FnOnce(Tensor, Vec<usize>) -> Result<T> + Send + 'static,
    ) -> Handle<T> {
        let (sender, result) = channel();
        let done = move |r: Result<(Tensor, Vec<usize>)>| {
            drop(sender.send(r.and_then(|(value, counts)| finish(value, counts))));
        };
        match self.link.set(self.number) {
            Ok(set) => self.link.submit(name, value, what, SubmitOptions { set, ..ask }, done),
            Err(e) => done(Err(e)),
        }
        Handle::new(result)
    }
}

impl Members {
    /// All ranks, whatever their number.
    pub(super) const WORLD: Members = Members { id: SetId::WORLD, ranks: Vec::new() };
}

impl Link {
    /// The engine's name of the set with this number.
    pub(crate) fn set(&self, number: usize) -> Result<SetId> {
        let sets = self.sets.read();
        let found = sets.get(number).map(|set| set.id);
        found.ok_or_else(|| {
            let named = sets.len() - 1;
            err!(InvalidArgument, "no process set {number}: Config::process_sets names {named}")
        })
    }
}
