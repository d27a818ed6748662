//! Collectives on tensors in the memory of GPUs.
//!
//! Where each rank has a GPU of its own and NCCL is installed, NCCL reduces them. It needs the same
//! calls in the same order on all ranks, and blocks forever if they differ. So the ranks agree on
//! each call first: they gather their next calls through the engine, which answers all ranks in one
//! order. Ranks that share one GPU read each other's memory. Elsewhere tensors travel through host
//! memory.

mod shared;

use super::{Link, Reduction, World};
use ferroflow_collective::{Collective, SubmitOptions};
use ferroflow_core::{
    DType, Gpu, GpuCommunicator, GpuReduction, Result, Tensor, bail, ensure, err,
};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;

/// How tensors of GPUs travel between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuPath {
    /// By NCCL, from GPU to GPU.
    Nccl,
    /// Within the memory of one GPU that all ranks share.
    Shared,
    /// Through host memory.
    Host,
}

/// How often the failure of other ranks is looked for.
const WATCH: Duration = Duration::from_millis(20);

/// How the GPUs of all ranks are connected.
#[derive(Clone)]
pub(super) enum DeviceGroup {
    Nccl(Arc<NcclGroup>),
    Shared,
}

/// The GPUs of all ranks, each its own.
pub(super) struct NcclGroup {
    comm: Arc<dyn GpuCommunicator>,
    /// Calls in the order in which all ranks make them. A thread of their own makes them, since the
    /// first ones wait for the other ranks.
    calls: Sender<Box<dyn FnOnce() + Send>>,
}

impl NcclGroup {
    /// Starts the threads of a group: one makes its calls, one watches for ranks that are gone.
    fn start(comm: Arc<dyn GpuCommunicator>, link: &Arc<Link>) -> Result<Arc<NcclGroup>> {
        let (calls, incoming): (_, Receiver<Box<dyn FnOnce() + Send>>) = channel();
        let group = Arc::new(NcclGroup { comm, calls });
        let failed = |e| err!(ResourceExhausted, "a thread for a GPU's collectives: {e}");
        let make = move || incoming.into_iter().for_each(|call| call());
        Builder::new().name("hvd-gpu".into()).spawn(make).map_err(failed)?;
        let (watched, link) = (Arc::downgrade(&group), Arc::downgrade(link));
        let watch = move || watch(&watched, &link);
        Builder::new().name("hvd-gpu-watch".into()).spawn(watch).map_err(failed)?;
        Ok(group)
    }
}

/// Aborts the group's calls when a rank is gone, because they would wait for it.
fn watch(group: &Weak<NcclGroup>, link: &Weak<Link>) {
    loop {
        let (Some(group), Some(link)) = (group.upgrade(), link.upgrade()) else { return };
        let failure = match &*link.engine.read_recursive() {
            Some(engine) => engine.failure(),
            None => return,
        };
        if let Some(cause) = failure {
            return group.comm.abort(cause);
        }
        drop((group, link));
        std::thread::sleep(WATCH);
    }
}

/// Calls it with a result in the memory of a GPU.
pub(super) type DeviceDone = Box<dyn FnOnce(Result<Tensor>) + Send>;

/// A call of NCCL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DeviceCall {
    Reduce(GpuReduction),
    Broadcast(usize),
}

impl DeviceCall {
    /// The call of a reduction; `None` if NCCL does not have it.
    pub fn reduce(by: Reduction) -> Option<DeviceCall> {
        Some(DeviceCall::Reduce(match by {
            Reduction::Average => GpuReduction::Mean,
            Reduction::Sum => GpuReduction::Sum,
            Reduction::Min => GpuReduction::Min,
            Reduction::Max => GpuReduction::Max,
            Reduction::Product => GpuReduction::Product,
            Reduction::Adasum => return None,
        }))
    }

    /// What must be equal on all ranks.
    fn signature(self, tensor: &Tensor) -> Tensor {
        Tensor::vector(&self.words(tensor))
    }

    fn words(self, tensor: &Tensor) -> Vec<i64> {
        let (kind, what) = match self {
            DeviceCall::Reduce(by) => (0, by as i64),
            DeviceCall::Broadcast(root) => (1, root as i64),
        };
        let dims = tensor.shape().dims().iter().map(|&d| d as i64);
        let head = [kind, what, i64::from(tensor.dtype().number())];
        head.into_iter().chain(dims).collect()
    }

    fn enqueue(self, comm: &dyn GpuCommunicator, from: &Tensor, to: &Tensor) -> Result<()> {
        let (source, target, n) = (from.device_address()?, to.device_address()?, from.elements());
        match self {
            DeviceCall::Reduce(by) => comm.all_reduce(source, target, n, from.dtype(), by),
            DeviceCall::Broadcast(root) => comm.broadcast(source, target, n, from.dtype(), root),
        }
    }
}

impl Link {
    /// The group of GPUs, if ranks reduce tensors of this type on them.
    pub(super) fn device_group(&self, tensor: &Tensor) -> Option<DeviceGroup> {
        let is_known = !matches!(
            tensor.dtype(),
            DType::Int16 | DType::UInt16 | DType::Complex64 | DType::Complex128
        );
        self.device.read().clone().filter(|_| is_known && tensor.elements() > 0)
    }

    /// Makes a call with all ranks, once they agree on it. `done` gets the result when the GPU has
    /// it.
    pub(super) fn call_on_device(
        self: &Arc<Self>,
        group: &DeviceGroup,
        name: &str,
        call: DeviceCall,
        tensor: Tensor,
        ask: SubmitOptions,
        done: DeviceDone,
    ) {
        let group = match group {
            DeviceGroup::Nccl(group) => group.clone(),
            DeviceGroup::Shared => {
                return shared::call(self, name, call, tensor, ask, done);
            }
        };
        let (mine, text) = (call.signature(&tensor), name.to_string());
        self.submit(&format!("{name} on GPUs"), mine, Collective::AllGather, ask, move |all| {
            if let Err(e) = all.and_then(|(all, counts)| ensure_equal(&text, &all, &counts)) {
                return done(Err(e));
            }
            let comm = group.comm.clone();
            let make = Box::new(move || complete(&comm, call, &tensor, done));
            // The receiver lives as long as the group.
            let _ = group.calls.send(make);
        });
    }
}

/// Enqueues a call, and hands over its result when the GPU has it.
fn complete(comm: &Arc<dyn GpuCommunicator>, call: DeviceCall, tensor: &Tensor, done: DeviceDone) {
    let start = || -> Result<(Arc<dyn Gpu>, Tensor)> {
        let Some(gpu) = tensor.gpu() else { bail!(Internal, "a tensor in host memory") };
        let result = Tensor::on_device(gpu, tensor.dtype(), tensor.shape().clone())?;
        call.enqueue(comm.as_ref(), tensor, &result)?;
        Ok((gpu.clone(), result))
    };
    match start() {
        Err(e) => done(Err(e)),
        Ok((gpu, result)) => {
            let (comm, address) = (
                comm.clone(),
                match result.device_address() {
                    Ok(address) => address,
                    Err(e) => return done(Err(e)),
                },
            );
            let finish = move |ended: Result<_>| {
                let failure = comm.failure().or_else(|| ended.err());
                done(failure.map_or(Ok(result), Err));
            };
            // Nothing is copied: this calls back when all work so far is complete.
            gpu.download(address, 0, Box::new(finish));
        }
    }
}

/// An error that names a rank whose call differs from the first one's. Equal on all ranks.
fn ensure_equal(name: &str, all: &Tensor, counts: &[usize]) -> Result<()> {
    ensure_same(name, &parts(all, counts)?)
}

/// The values that each rank gave to a gather.
fn parts<'t>(all: &'t Tensor, counts: &[usize]) -> Result<Vec<&'t [i64]>> {
    let mut rest = all.as_slice::<i64>()?;
    let part = |count: &usize| {
        let (part, after) = rest.split_at_checked(*count)?;
        rest = after;
        Some(part)
    };
    let parts: Option<Vec<&[i64]>> = counts.iter().map(part).collect();
    parts.ok_or_else(|| err!(Internal, "a gather of too few values"))
}

fn ensure_same(name: &str, parts: &[&[i64]]) -> Result<()> {
    let mut first: Option<&[i64]> = None;
    for (rank, part) in parts.iter().copied().enumerate() {
        let expected = *first.get_or_insert(part);
        ensure!(
            part == expected,
            InvalidArgument,
            "rank {rank} called {name} with another operation, type or shape than rank 0: \
             {part:?} instead of {expected:?} (operation, its argument, type, dimensions)"
        );
    }
    Ok(())
}

impl World {
    /// Lets collectives of this rank use `gpu`. All ranks must call this, each with its GPU, before
    /// their first step. Says how tensors of GPUs travel: by NCCL if all ranks have NCCL and no two
    /// share a GPU.
    pub fn use_gpu(&self, gpu: &Arc<dyn Gpu>) -> Result<GpuPath> {
        let link = &self.0.link;
        let (rank, size) = (self.rank(), self.size());
        *link.device.write() = None;
        let identity = gpu.identity();
        let mine = if identity.is_empty() { 0 } else { hash_of(&identity) | 1 };
        let all = self.gathered("hvd/gpus", mine)?;
        let has_nccl = self.gathered("hvd/gpu libraries", u64::from(gpu.has_collectives()))?;
        let distinct: HashSet<&u64> = all.iter().collect();
        if all.contains(&0) {
            return Ok(GpuPath::Host);
        }
        if size > 1 && distinct.len() == 1 {
            *link.device.write() = Some(DeviceGroup::Shared);
            return Ok(GpuPath::Shared);
        }
        if has_nccl.contains(&0) || distinct.len() < size {
            return Ok(GpuPath::Host);
        }
        // Rank 0's name of the group; empty if it could not make one.
        let name = match rank {
            0 => gpu.new_group().unwrap_or_default(),
            _ => Vec::new(),
        };
        let name = self.gathered_bytes("hvd/gpu group", name)?;
        let joined = match name.is_empty() {
            true => Err(err!(Unavailable, "rank 0 could not make a group of GPUs")),
            false => gpu.communicator(&name, rank, size),
        };
        // All ranks use the group, or none does.
        let all = self.gathered("hvd/gpus joined", u64::from(joined.is_ok()))?;
        match joined {
            Ok(comm) if all.iter().all(|joined| *joined == 1) => {
                *link.device.write() = Some(DeviceGroup::Nccl(NcclGroup::start(comm, link)?));
                Ok(GpuPath::Nccl)
            }
            Ok(comm) => {
                comm.abort(err!(Unavailable, "not all ranks joined the group of GPUs"));
                Ok(GpuPath::Host)
            }
            Err(e) => {
                let why = e.message();
                tracing::warn!("tensors of GPUs travel through host memory: {why}");
                Ok(GpuPath::Host)
            }
        }
    }

    /// One number of each rank.
    fn gathered(&self, name: &str, mine: u64) -> Result<Vec<u64>> {
        let ask = SubmitOptions::default();
        let handle = self.0.link.with_engine(|engine| engine.all_gather(name, vec![mine], ask))?;
        handle.wait()
    }

    /// The bytes of the one rank that has some.
    fn gathered_bytes(&self, name: &str, mine: Vec<u8>) -> Result<Vec<u8>> {
        let ask = SubmitOptions::default();
        let handle = self.0.link.with_engine(|engine| engine.all_gather(name, mine, ask))?;
        handle.wait()
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hvd::tests::on_worlds;
    use crate::testing::floats;
    use crate::{LocalOptions, Session};
    use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};

    fn gpu() -> Arc<dyn Gpu> {
        SimulatedGpu::new(0, SimulatedGpuOptions::default())
    }

    fn session(g: &crate::Graph, gpu: Arc<dyn Gpu>) -> Session {
        let options = LocalOptions { gpus: vec![gpu], ..LocalOptions::default() };
        Session::local_with(g, &options).unwrap()
    }

    /// The mean of values that are not representable exactly, of `n` ranks.
    fn means(n: usize, connects: bool) -> Vec<Vec<f32>> {
        on_worlds(n, |w| {
            let gpu = gpu();
            if connects {
                assert_eq!(w.use_gpu(&gpu).unwrap(), GpuPath::Nccl);
            }
            let g = w.graph();
            let mean = g.device("/gpu:0", || {
                let x = g.placeholder::<f32>("x", [3]);
                w.all_reduce(&x, Reduction::Average)
            });
            let r = w.rank() as f32;
            let fed = Tensor::vector(&[0.1 + r, 1.0 / (r + 3.0), -r]);
            let s = session(&g, gpu.clone());
            let got = floats(&s.run_fed([("x:0".to_string(), fed)].as_slice(), &mean).unwrap());
            assert!(gpu.memory().peak > 0, "nothing was on the GPU");
            got
        })
    }

    #[test]
    fn two_ranks_get_the_same_by_their_gpus_and_through_host_memory() {
        assert_eq!(means(2, true), means(2, false));
    }

    #[test]
    fn ranks_that_share_a_gpu_read_each_others_memory() {
        let shared = gpu();
        let of = |connects: bool| {
            on_worlds(3, |w| {
                if connects {
                    assert_eq!(w.use_gpu(&shared).unwrap(), GpuPath::Shared);
                }
                let g = w.graph();
                let (sum, from) = g.device("/gpu:0", || {
                    let x = g.placeholder::<f32>("x", [2, 2]);
                    (w.all_reduce(&x, Reduction::Sum), w.broadcast(&x, 1))
                });
                let r = w.rank() as f32;
                let fed = Tensor::from_slice([2, 2], &[r, 1.0, 2.0, 0.5 * r]).unwrap();
                let s = session(&g, shared.clone());
                let (sum, from) =
                    s.run_fed([("x:0".to_string(), fed)].as_slice(), (&sum, &from)).unwrap();
                (floats(&sum), floats(&from))
            })
        };
        assert_eq!(of(true), of(false));
    }

    #[test]
    fn one_rank_replays_its_steps() {
        let replays = on_worlds(1, |w| {
            let gpu = SimulatedGpu::new(0, SimulatedGpuOptions::default());
            let driver: Arc<dyn Gpu> = gpu.clone();
            assert_eq!(w.use_gpu(&driver).unwrap(), GpuPath::Nccl);
            let g = w.graph();
            let sum = g.device("/gpu:0", || {
                let x = g.placeholder::<f32>("x", [2]);
                w.all_reduce(&(&x * 2.0), Reduction::Average) + 1.0
            });
            let s = session(&g, driver);
            for i in 0..8 {
                let fed = [("x:0".to_string(), Tensor::vector(&[i as f32, 0.5]))];
                let got = floats(&s.run_fed(fed.as_slice(), &sum).unwrap());
                assert_eq!(got, [2.0 * i as f32 + 1.0, 2.0]);
            }
            gpu.replays()
        });
        assert!(replays[0] >= 4, "{} steps were replayed", replays[0]);
    }

    #[test]
    fn ranks_that_disagree_get_an_error_that_names_one() {
        on_worlds(2, |w| {
            let gpu = gpu();
            w.use_gpu(&gpu).unwrap();
            let g = w.graph();
            let sum = g.device("/gpu:0", || {
                let x = g.constant(vec![1.0f32; 2 + w.rank()].as_slice());
                w.all_reduce(&x, Reduction::Sum)
            });
            let e = session(&g, gpu).run(&sum).unwrap_err();
            assert!(e.message().contains("rank 1 called"), "{e}");
        });
    }

    #[test]
    fn a_rank_that_fails_ends_the_collectives_of_all_others() {
        for n in [2, 4, 8] {
            let errors = on_worlds(n, |w| {
                let gpu = gpu();
                assert_eq!(w.use_gpu(&gpu).unwrap(), GpuPath::Nccl);
                let g = w.graph();
                let sum = g.device("/gpu:0", || {
                    let x = g.constant([w.rank() as f32]);
                    w.all_reduce(&x, Reduction::Sum)
                });
                let s = session(&g, gpu);
                s.run(&sum).unwrap();
                if w.rank() == n - 1 {
                    w.abort(err!(Aborted, "rank {} gave up", n - 1));
                    return None;
                }
                loop {
                    if let Err(e) = s.run(&sum) {
                        return Some(e);
                    }
                }
            });
            for e in errors.into_iter().flatten() {
                assert!(e.message().contains(&format!("rank {} gave up", n - 1)), "{e}");
            }
        }
    }
}
