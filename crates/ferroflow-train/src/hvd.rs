//! Data-parallel training by all-reduce, with Horovod's API.
//!
//! Every process computes gradients on its own data. [`DistributedOptimizer`] averages each
//! gradient over all processes as soon as it is computed, while the rest of the backward pass runs.
//! All processes apply the same averages. They start from the same values ([`BroadcastVariables`]),
//! and one of them writes checkpoints.
//!
//! A [`World`] is this process's place among the others. Nothing is global: the ops that reduce
//! tensors are those of the world's own catalog, so graphs are made by [`World::graph`].
//!
//! ```
//! use ferroflow_train::{Optimizer, Session, Sgd, hvd};
//!
//! // Reads what `ferroflow run`, mpirun, srun or torchrun sets; without them there is one rank.
//! let hvd = hvd::init()?;
//! let g = hvd.graph();
//! let w = g.variable("w", 0.0);
//! let loss = (&*w - 3.0).square();
//! let train = hvd.optimizer(Sgd::new(hvd.scaled_rate(0.1))).minimize(&loss);
//! let (init, same) = (g.global_initializer(), hvd.broadcast_variables(&g, 0));
//! let session = Session::local(&g)?;
//! session.run(&init)?;
//! session.run(&same)?;
//! for _ in 0..20 {
//!     session.run(&train)?;
//! }
//! assert!(session.run(loss.scalar::<f32>())? < 0.01);
//! # Ok::<(), ferroflow_core::Error>(())
//! ```

mod broadcast;
mod device;
pub mod elastic;
mod gradients;
mod handle;
mod observed;
mod ops;
mod optimizer;
mod process_set;
mod tensor_ops;

pub use broadcast::BroadcastVariables;
pub use device::GpuPath;
pub use handle::Handle;
pub use optimizer::DistributedOptimizer;
pub use process_set::ProcessSet;

use crate::catalog::default_catalog;
use crate::graph::Graph;
use crate::monitored::MonitoredTraining;
use crate::output::{Operation, Output};
use crate::variable::Variable;
use ferroflow_collective::{
    Collective, Engine, EngineOptions, EngineStats, ForeignDone, ForeignTensor, Group,
    GroupOptions, LinkCostModel, Membership, ReduceOp, SubmitOptions, TensorDone,
};
use ferroflow_core::{DType, Error, Result, Tensor, bail, err};
use ferroflow_graph::Catalog;
use ferroflow_metrics::TaskMetrics;
use observed::{InputTime, Observed};
use parking_lot::RwLock;
use process_set::Members;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connects to the other ranks of the job that the environment describes. Without a launcher this
/// process is the only rank.
pub fn init() -> Result<World> {
    init_with(Config::from_env())
}

/// [`init`] with settings of one's own.
pub fn init_with(config: Config) -> Result<World> {
    World::meet(config, &default_catalog())
}

/// Connects to the other ranks of the elastic job that the environment describes, as set by
/// `ferroflow run` with `--min-np` or `--max-np`. If the others finish before this process gets a
/// rank, the process ends here with status 0: it has nothing to do, and nothing has failed.
pub fn elastic_init() -> Result<elastic::Elastic> {
    let seat = elastic::seat_from_env()?;
    let met = elastic::Elastic::meet(seat, Config::from_env(), &default_catalog());
    if met.as_ref().is_err_and(ferroflow_collective::elastic::is_job_done) {
        eprintln!("ferroflow: the job is done; this process ends without work");
        std::process::exit(0);
    }
    met
}

/// Reduction operator; the numbers are Horovod's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// The mean.
    #[default]
    Average = 0,
    /// The sum.
    Sum = 1,
    /// Adasum, in which parallel gradients count once; for `f32` and `f64`.
    Adasum = 2,
    /// The minimum.
    Min = 3,
    /// The maximum.
    Max = 4,
    /// The product.
    Product = 5,
}

impl Reduction {
    fn from_number(number: i64) -> Result<Reduction> {
        use Reduction::*;
        let all = [Average, Sum, Adasum, Min, Max, Product];
        let found = usize::try_from(number).ok().and_then(|n| all.get(n).copied());
        found.ok_or_else(|| err!(InvalidArgument, "there is no reduce_op {number}"))
    }

    fn collective(self) -> (Collective, ReduceOp) {
        let op = match self {
            Reduction::Adasum => return (Collective::Adasum, ReduceOp::Sum),
            Reduction::Average => ReduceOp::Mean,
            Reduction::Sum => ReduceOp::Sum,
            Reduction::Min => ReduceOp::Min,
            Reduction::Max => ReduceOp::Max,
            Reduction::Product => ReduceOp::Product,
        };
        (Collective::AllReduce, op)
    }
}

/// Compression of `f32` gradients; other types are sent uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// 16-bit floats.
    Fp16,
    /// 16-bit brain floats.
    Bf16,
    /// Sends this fraction of the values, the largest ones, and adds the rest to the next gradient.
    TopK(f32),
    /// Sends signs and two means, and adds the error to the next gradient.
    OneBit,
}

/// Settings of a [`World`]; values that are not given come from the environment.
#[derive(Default)]
pub struct Config {
    /// The place of this process; the default is the launcher's environment, or a job of one rank.
    pub membership: Option<Membership>,
    /// Rank 0's listener, if it is already bound.
    pub listener: Option<TcpListener>,
    /// The options of the group of ranks.
    pub group: GroupOptions,
    /// The options of the engine.
    pub engine: EngineOptions,
    /// Deterministic mode: bit-equal results in every run.
    pub deterministic: bool,
    /// Subsets of ranks with their own collectives, see [`ProcessSet`]; equal on all ranks.
    pub process_sets: Vec<Vec<usize>>,
}

impl Config {
    /// Reads settings other than the membership from the environment: `FERROFLOW_TIMELINE=PATH` (or
    /// `HOROVOD_TIMELINE`), where `{rank}` stands for the rank (without it, only rank 0 writes a
    /// timeline), and `FERROFLOW_DETERMINISTIC=1`. With `FERROFLOW_VERBOSE=1` rank 0 prints the
    /// chosen algorithms and fusion size.
    pub fn from_env() -> Config {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let timeline = var("FERROFLOW_TIMELINE").or_else(|| var("HOROVOD_TIMELINE"));
        let engine =
            EngineOptions { timeline: timeline.map(PathBuf::from), ..EngineOptions::default() };
        let deterministic = var("FERROFLOW_DETERMINISTIC").is_some_and(|v| v != "0");
        Config { engine, deterministic, ..Config::default() }
    }
}

/// Rank and sizes of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    rank: usize,
    size: usize,
    local_rank: usize,
    local_size: usize,
    cross_rank: usize,
    cross_size: usize,
    /// Whether all hosts have the same number of ranks.
    is_even: bool,
}

impl Place {
    /// Before the ranks are connected.
    const ALONE: Place = Place {
        rank: 0,
        size: 1,
        local_rank: 0,
        local_size: 1,
        cross_rank: 0,
        cross_size: 1,
        is_even: true,
    };
}

/// State that a world shares with the kernels of its ops.
pub(crate) struct Link {
    engine: RwLock<Option<Engine>>,
    place: RwLock<Place>,
    /// By number; set 0 has all ranks.
    sets: RwLock<Vec<Members>>,
    /// Elastic: membership changes, so the only set is that of all ranks.
    is_elastic: AtomicBool,
    /// The metrics of this rank, and its HTTP port, if the environment asks for one.
    observed: Observed,
    /// The GPUs of all ranks, if they are connected.
    device: RwLock<Option<device::DeviceGroup>>,
}

impl Link {
    /// Submits a tensor. Never blocks while the engine is locked, so that it can be replaced at any
    /// time.
    pub(crate) fn submit(
        &self,
        name: &str,
        tensor: Tensor,
        what: Collective,
        ask: SubmitOptions,
        done: impl FnOnce(Result<(Tensor, Vec<usize>)>) + Send + 'static,
    ) {
        self.submit_all(vec![(name.into(), tensor, what, Box::new(done))], &ask);
    }

    /// [`Link::submit`] of tensors that are done together.
    pub(crate) fn submit_all(
        &self,
        tensors: Vec<(String, Tensor, Collective, TensorDone)>,
        ask: &SubmitOptions,
    ) {
        // A rejected tensor completes right here, and its callback may submit the next one.
        match &*self.engine.read_recursive() {
            Some(engine) => engine.submit_tensors(tensors, ask),
            None => tensors.into_iter().for_each(|(.., done)| done(Err(shut_down()))),
        }
    }

    /// Calls `f` with the engine.
    fn with_engine<R>(&self, f: impl FnOnce(&Engine) -> Result<R>) -> Result<R> {
        self.engine.read_recursive().as_ref().map_or_else(|| Err(shut_down()), f)
    }

    fn close(&self) {
        let group = self.device.write().take();
        drop(group);
        // Dropping an engine waits for other ranks, so drop it outside the lock.
        let engine = self.engine.write().take();
        drop(engine);
        if !self.is_elastic.load(Ordering::Relaxed) {
            self.observed.tell();
        }
    }
}

fn shut_down() -> Error {
    err!(FailedPrecondition, "hvd was shut down, or was never started")
}

/// This process's membership in a job. Clones share it; dropping the last one shuts it down, as
/// [`World::shutdown`] does.
#[derive(Clone)]
pub struct World(Arc<SharedWorld>);

struct SharedWorld {
    link: Arc<Link>,
    catalog: Arc<Catalog>,
}

impl SharedWorld {
    fn new(link: Arc<Link>, base: &Catalog) -> SharedWorld {
        let mut catalog = base.filtered(|_| true);
        ops::register(&mut catalog, &link);
        SharedWorld { link, catalog: Arc::new(catalog) }
    }
}

impl Drop for SharedWorld {
    fn drop(&mut self) {
        self.link.close();
    }
}

impl World {
    /// Connects to the other ranks. Graphs have the ops of `base` and the communicating ops.
    pub fn meet(config: Config, base: &Catalog) -> Result<World> {
        let world = World::unconnected(base);
        world.connect(config)?;
        Ok(world)
    }

    /// A world without other ranks. Its graphs can be made, and their collectives fail until
    /// [`World::connect`].
    pub fn unconnected(base: &Catalog) -> World {
        let link = Arc::new(Link {
            engine: RwLock::new(None),
            place: RwLock::new(Place::ALONE),
            sets: RwLock::new(vec![Members::WORLD]),
            is_elastic: AtomicBool::new(false),
            observed: Observed::default(),
            device: RwLock::new(None),
        });
        World(Arc::new(SharedWorld::new(link, base)))
    }

    /// The metrics of this rank, once the ranks have met.
    pub fn metrics(&self) -> Option<Arc<TaskMetrics>> {
        self.0.link.observed.metrics()
    }

    /// Connects to the other ranks, for the first time or after a shutdown.
    pub fn connect(&self, config: Config) -> Result<()> {
        let link = &self.0.link;
        let (engine, place, sets) = start(config, &link.observed)?;
        link.is_elastic.store(false, Ordering::Relaxed);
        *link.place.write() = place;
        *link.sets.write() = sets;
        *link.engine.write() = Some(engine);
        Ok(())
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.place().rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.place().size
    }

    /// The rank of this process on its host.
    pub fn local_rank(&self) -> usize {
        self.place().local_rank
    }

    /// Number of ranks on its host.
    pub fn local_size(&self) -> usize {
        self.place().local_size
    }

    /// The index of its host.
    pub fn cross_rank(&self) -> usize {
        self.place().cross_rank
    }

    /// Number of hosts.
    pub fn cross_size(&self) -> usize {
        self.place().cross_size
    }

    /// Whether all hosts have the same number of ranks.
    pub fn is_homogeneous(&self) -> bool {
        self.place().is_even
    }

    /// Whether this process is connected to the other ranks.
    pub fn is_initialized(&self) -> bool {
        self.0.link.engine.read().is_some()
    }

    /// Whether this process writes checkpoints and events (rank 0).
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    fn place(&self) -> Place {
        *self.0.link.place.read()
    }

    /// Statistics of the coordinator; on rank 0 only.
    pub fn stats(&self) -> EngineStats {
        self.0.link.engine.read().as_ref().map(Engine::stats).unwrap_or_default()
    }

    /// The error that ended communication, if any.
    pub fn failure(&self) -> Option<Error> {
        self.0.link.engine.read().as_ref().and_then(Engine::failure)
    }

    /// Fails the collectives of all ranks with `cause`, which should name this rank. For a process
    /// that cannot go on.
    pub fn abort(&self, cause: Error) {
        if let Some(engine) = &*self.0.link.engine.read() {
            engine.abort(cause);
        }
    }

    /// Submits tensors in the memory of other libraries, which run together, to the process set of
    /// this number. Each `done` is called exactly once, on another thread or before this returns,
    /// and must not block.
    pub fn submit_foreign(
        &self,
        tensors: Vec<(String, ForeignTensor, Collective, ForeignDone)>,
        process_set: usize,
        ask: SubmitOptions,
    ) {
        let link = &self.0.link;
        let submitted = link.set(process_set).map(|set| SubmitOptions { set, ..ask });
        // A rejected tensor completes right here, and its callback may submit the next one.
        match (submitted, &*link.engine.read_recursive()) {
            (Ok(ask), Some(engine)) => engine.submit_foreign(tensors, &ask),
            (ask, _) => {
                let cause = ask.err().unwrap_or_else(shut_down);
                tensors.into_iter().for_each(|(.., done)| done(Err(cause.clone())));
            }
        }
    }

    /// Disconnects from the other ranks. Waits a short time for running collectives.
    pub fn shutdown(&self) {
        self.0.link.close();
    }

    /// An empty graph with the communicating ops.
    pub fn graph(&self) -> Graph {
        Graph::with_catalog(self.0.catalog.clone())
    }

    /// The ops of [`World::graph`].
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.0.catalog
    }

    /// Scales a learning rate for the combined batch of all ranks.
    pub fn scaled_rate(&self, rate: f32) -> f32 {
        rate * self.size() as f32
    }

    /// A learning rate that warms up from `rate` to [`World::scaled_rate`] within `steps`, because
    /// the scaled rate is too large for the first steps.
    #[track_caller]
    pub fn warmed_up_rate(&self, rate: f32, global_step: &Variable, steps: f32) -> Output {
        let g = global_step.graph();
        g.name_scope("WarmUp", |_| {
            // Read in every step, because the number of ranks of an elastic job changes.
            let more = g.op("HorovodSize").output().cast(DType::Float) - 1.0;
            let done = match steps > 0.0 {
                true => (global_step.cast(DType::Float) / steps).minimum(1.0),
                false => g.constant(1.0f32),
            };
            (done * more + 1.0) * rate
        })
    }

    /// Makes `optimizer` average gradients over all ranks.
    pub fn optimizer<O: crate::Optimizer>(&self, optimizer: O) -> DistributedOptimizer<O> {
        DistributedOptimizer::new(optimizer)
    }

    /// An op that sets all global variables to the values of rank `root`. All must be initialized.
    #[track_caller]
    pub fn broadcast_variables(&self, graph: &Graph, root: usize) -> Operation {
        broadcast::broadcast_variables(graph, &graph.global_variables(), root)
    }

    /// A monitored training by `train`, which increments the global step. All ranks start from rank
    /// 0's values; only rank 0 restores and writes checkpoints and events.
    #[track_caller]
    pub fn training(&self, graph: &Graph, train: &Operation) -> MonitoredTraining {
        graph.global_step();
        MonitoredTraining::new(graph, train)
            // The session is local: opening another one cannot repair a lost rank.
            .wait(Duration::ZERO)
            .leaves_files(self.is_first())
            .hook(BroadcastVariables::new(self, graph, 0))
            .hook(InputTime::of(self))
    }

    /// The process set of this number: all ranks for 0, the sets of [`Config::process_sets`] from 1
    /// on, then those of [`World::add_process_set`].
    pub fn process_set(&self, number: usize) -> Result<ProcessSet> {
        self.0.link.set(number)?;
        Ok(ProcessSet { link: self.0.link.clone(), number })
    }

    /// Adds a process set. All ranks, members or not, must add the same sets in the same order.
    pub fn add_process_set(&self, ranks: &[usize]) -> Result<ProcessSet> {
        let link = &self.0.link;
        if link.is_elastic.load(Ordering::Relaxed) {
            bail!(Unimplemented, "process sets in an elastic job, in which ranks come and go");
        }
        let id = link.with_engine(|engine| engine.add_set(ranks))?.wait()?;
        let mut sets = link.sets.write();
        sets.push(Members { id, ranks: ranks.to_vec() });
        Ok(ProcessSet { link: link.clone(), number: sets.len() - 1 })
    }

    /// The set of all ranks, with all collectives on values.
    pub fn all(&self) -> ProcessSet {
        ProcessSet { link: self.0.link.clone(), number: 0 }
    }

    /// Starts a timeline of each tensor on this rank, until [`World::stop_timeline`] or the end.
    pub fn start_timeline(&self, path: impl Into<PathBuf>) -> Result<()> {
        self.set_timeline(Some(path.into()))
    }

    /// Ends the timeline and completes its file.
    pub fn stop_timeline(&self) -> Result<()> {
        self.set_timeline(None)
    }

    fn set_timeline(&self, path: Option<PathBuf>) -> Result<()> {
        let set = self.0.link.with_engine(|engine| engine.set_timeline(path.as_deref()))?;
        // The channel carries no value: dropping the sender signals completion, or the end of the
        // engine.
        let _ = set.recv();
        Ok(())
    }

    /// Reduces a value under a unique name and waits for the result.
    pub fn all_reduce_value(&self, name: &str, value: Tensor, by: Reduction) -> Result<Tensor> {
        self.all().all_reduce_value(name, value, by)
    }

    /// Concatenates all ranks' values along the first dimension, under a unique name.
    pub fn all_gather_value(&self, name: &str, value: Tensor) -> Result<Tensor> {
        self.all().all_gather_value(name, value)
    }

    /// Broadcasts the value of rank `root`, under a unique name.
    pub fn broadcast_value(&self, name: &str, value: Tensor, root: usize) -> Result<Tensor> {
        self.all().broadcast_value(name, value, root)
    }

    /// Blocks until all ranks have called it.
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.all().barrier(name)
    }

    /// Reports that this rank has no more data. It contributes nothing to further reductions, waits
    /// for the other ranks to join, and returns the last rank that joined.
    pub fn join(&self) -> Result<usize> {
        self.0.link.with_engine(Engine::join)?.wait()
    }
}

fn start(config: Config, observed: &Observed) -> Result<(Engine, Place, Vec<Members>)> {
    let Config { membership, listener, group, engine, deterministic, process_sets } = config;
    let (group, mut engine) = prepared(group, engine, deterministic);
    let member = match membership {
        Some(member) => member,
        None => Membership::from_env()?.unwrap_or_else(|| Membership::new(0, 1, "127.0.0.1:0")),
    };
    let mut group = match listener {
        Some(listener) => Group::host(&member, group, listener)?,
        None => Group::join(&member, group)?,
    };
    if group.servers() > 0 && !process_sets.is_empty() {
        bail!(Unimplemented, "process sets in a job with servers: leave out one of the two");
    }
    let mut sets = vec![Members::WORLD];
    for ranks in process_sets {
        sets.push(Members { id: group.add_set(&ranks)?, ranks });
    }
    engine.metrics.get_or_insert_with(|| observed.of_rank(group.rank(), &member.trust));
    let (engine, place) = start_engine(group, engine)?;
    Ok((engine, place, sets))
}

fn prepared(
    mut group: GroupOptions,
    mut engine: EngineOptions,
    deterministic: bool,
) -> (GroupOptions, EngineOptions) {
    if deterministic {
        engine.deterministic = true;
        // A probe's result differs between runs, and with it the order of sums.
        group.model.get_or_insert_with(LinkCostModel::default);
    }
    (group, engine)
}

fn start_engine(group: Group, mut engine: EngineOptions) -> Result<(Engine, Place)> {
    let ((local_rank, local_size), (cross_rank, cross_size)) = (group.local(), group.cross());
    let (rank, size) = (group.rank(), group.size());
    if let Some(path) = engine.timeline.take() {
        let text = path.to_string_lossy();
        let named = text.contains("{rank}");
        if named || rank == 0 {
            engine.timeline = Some(text.replace("{rank}", &rank.to_string()).into());
        }
    }
    let is_even = group.is_homogeneous();
    let place = Place { rank, size, local_rank, local_size, cross_rank, cross_size, is_even };
    Ok((Engine::start(group, engine)?, place))
}

#[cfg(test)]
pub(crate) mod tests;
