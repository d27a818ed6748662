//! Hybrid jobs: tables on parameter servers, all other variables reduced between the ranks.
//!
//! A step needs a few rows of a large table, but all of the dense variables. So the tables live on
//! parameter servers, which send and receive rows, and every rank has its own dense variables,
//! whose gradients are all-reduced. One optimizer call trains both ([`HybridOptimizer`]).
//!
//! `ferroflow run --ps P -np N` starts such a job. With `--min-np` it is elastic: a killed rank or
//! parameter server is survived ([`HybridSession`]), and the tables move when parameter servers are
//! added or removed. Without a launcher, one process trains alone.
//!
//! ```
//! use ferroflow_train::{Adagrad, hybrid, init, layers, losses};
//! let job = hybrid::init()?;
//! let g = job.graph();
//! let (ids, y, loss, train) = job.scope(&g, || {
//!     let ids = g.placeholder::<i64>("ids", [None]);
//!     let y = g.placeholder::<f32>("y", [None, Some(1)]);
//!     let table = job.table(&g, "table", init::uniform([1000, 8], -0.05, 0.05));
//!     let rows = job.lookup(&table, &ids);
//!     let loss = losses::mean_squared_error(&y, &layers::Dense::new("out", 1).apply(&rows));
//!     let train = job.optimizer(Adagrad::new(0.1)).minimize(&loss, &g.global_step());
//!     (ids, y, loss, train)
//! });
//! let mut session = job.training(&g, &train).open()?; // .dir("out") saves checkpoints
//! # use ferroflow_train::IntoTensor;
//! let (sevens, ones) = ([7i64, 7].into_tensor()?, [[1f32], [1.0]].into_tensor()?);
//! let feeds = [(ids.name(), sevens), (y.name(), ones)];
//! while session.global_step() < 5 {
//!     session.train_fed(feeds.as_slice(), loss.scalar::<f32>())?;
//! }
//! session.close()?;
//! # Ok::<(), ferroflow_core::Error>(())
//! ```

mod optimizer;
mod relocate;
mod session;
mod shards;
#[cfg(test)]
mod tests;

pub use optimizer::{HybridOptimizer, HybridUpdate, PsMode};
pub use session::{HybridSession, HybridTraining};

use crate::background_server::BackgroundServer;
use crate::catalog::default_catalog;
use crate::device::{DeviceFn, NodeSpec, holds_state};
use crate::graph::Graph;
use crate::hvd::elastic::{Elastic, seat_from_env};
use crate::hvd::{self, World};
use crate::init::IntoInitializer;
use crate::layers::{PartitionStrategy, embedding_lookup};
use crate::optimizer::Optimizer;
use crate::output::Output;
use crate::session::Session;
use crate::variable::{PartitionedVariable, Variable};
use ferroflow_cluster::{ClusterSpec, ConnectOptions, ServerOptions, TfConfig};
use ferroflow_core::{DeviceName, PartialShape, Result, err};
use ferroflow_graph::Catalog;
use parking_lot::Mutex;
use shards::{PS, Relocated, ShardMap};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// How many shards a table has, unless [`Hybrid::shards`] says otherwise. Shards are what moves
/// between parameter servers, so there should be several for each.
const SHARDS: u32 = 8;

/// How long opening a session waits for the parameter servers, and how long for servers that shards
/// move away from.
const OPEN: Duration = Duration::from_secs(20);
const OPEN_TO_MOVE: Duration = Duration::from_secs(5);

/// Connects to the ranks and parameter servers that the environment describes: `TF_CONFIG` names
/// the parameter servers, and the variables of [`hvd::init`] or [`hvd::elastic_init`] the ranks.
/// Without them, this process trains alone.
pub fn init() -> Result<Hybrid> {
    let config = hvd::Config::from_env();
    let task = TfConfig::from_env()?;
    let is_elastic = std::env::var("FERROFLOW_ELASTIC").is_ok_and(|driver| !driver.is_empty());
    let ranks = match is_elastic {
        true => Ranks::elastic(Elastic::meet(seat_from_env()?, config, &default_catalog())?),
        false => Ranks::fixed(World::meet(config, &default_catalog())?),
    };
    Hybrid::new(ranks, task.as_ref())
}

/// The ranks of a hybrid job.
pub struct Ranks {
    world: World,
    elastic: Option<Elastic>,
}

impl Ranks {
    /// Ranks that stay the same. A lost rank ends the job.
    pub fn fixed(world: World) -> Ranks {
        Ranks { world, elastic: None }
    }

    /// Ranks that may be lost and join.
    pub fn elastic(job: Elastic) -> Ranks {
        Ranks { world: job.world().clone(), elastic: Some(job) }
    }
}

/// This process in a hybrid job. Clones share it.
#[derive(Clone)]
pub struct Hybrid(Arc<Shared>);

struct Shared {
    world: World,
    elastic: Mutex<Option<Elastic>>,
    /// Without parameter servers, all variables are in this process.
    cluster: Option<Member>,
    /// The parameter servers that have the tables, by task.
    ps: Mutex<Vec<String>>,
    shards: u32,
}

/// This process as a task of the cluster.
struct Member {
    server: BackgroundServer,
    task: u32,
    address: String,
}

impl Hybrid {
    /// A job of these ranks and of the parameter servers in `task`. The server of this process
    /// listens where `task` says. If it does not say so, it listens on a free port of
    /// `FERROFLOW_BIND`, or of loopback.
    pub fn new(ranks: Ranks, task: Option<&TfConfig>) -> Result<Hybrid> {
        let Ranks { world, elastic } = ranks;
        let mut ps = elastic.as_ref().map(Elastic::ps).unwrap_or_default();
        if let Some(task) = task.filter(|_| ps.is_empty()) {
            let known = task.cluster.tasks().filter(|(job, _, _)| *job == PS);
            ps = known.map(|(_, _, address)| address.to_string()).collect();
        }
        let cluster = match task.filter(|_| !ps.is_empty()) {
            Some(task) => Some(Member::start(task, world.catalog())?),
            None => None,
        };
        let (elastic, ps) = (Mutex::new(elastic), Mutex::new(ps));
        Ok(Hybrid(Arc::new(Shared { world, elastic, cluster, ps, shards: SHARDS })))
    }

    /// The number of shards of each table, 8 by default. All processes of a job must have the same.
    /// It limits the number of parameter servers that can be of use.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Hybrid {
        // There are no clones yet: this is called right after the job was made.
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.shards = shards.max(1);
        }
        self
    }

    /// The ranks.
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.0.world.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.0.world.size()
    }

    /// The addresses of the parameter servers, by task; none if this process has the tables.
    pub fn ps(&self) -> Vec<String> {
        self.0.ps.lock().clone()
    }

    /// An empty graph with the communicating ops.
    pub fn graph(&self) -> Graph {
        self.0.world.graph()
    }

    /// Runs `build` with everything on this process, except tables.
    #[track_caller]
    pub fn scope<R>(&self, g: &Graph, build: impl FnOnce() -> R) -> R {
        g.device(&self.device(), build)
    }

    fn device(&self) -> String {
        let task = self.0.cluster.as_ref().map_or(0, |member| member.task);
        format!("/job:worker/task:{task}")
    }

    /// Runs `build` with its variables on the parameter servers. For variables of which a step uses
    /// only some rows.
    #[track_caller]
    pub fn sparse<R>(&self, g: &Graph, build: impl FnOnce() -> R) -> R {
        let shards = self.0.shards;
        let place: DeviceFn = Arc::new(move |node: &NodeSpec| {
            let mut device = DeviceName::parse(&node.device)?;
            if device.job.is_none() && holds_state(&node.op) {
                device.job = Some(PS.into());
                device.task = Some(shards::shard_of(&node.name, shards));
            }
            Ok(device)
        });
        g.device(place, build)
    }

    /// A trained table whose rows are distributed over the parameter servers. Checkpoints save it
    /// as one tensor.
    #[track_caller]
    pub fn table(
        &self,
        g: &Graph,
        name: &str,
        initial: impl IntoInitializer,
    ) -> PartitionedVariable {
        let initial = g.or_fail(initial.into_initializer()).unwrap_or_default();
        let rows = initial.shape.first().copied().unwrap_or(1).max(1);
        let parts = rows.min(self.0.shards as usize);
        self.sparse(g, || g.partitioned_variable(name, initial, parts))
    }

    /// The rows `ids` of a table. A row that is looked up several times travels once, and so does
    /// its gradient.
    #[track_caller]
    pub fn lookup(&self, table: &PartitionedVariable, ids: &Output) -> Output {
        let g = ids.graph();
        g.name_scope("lookup", |_| {
            let [unique, positions] = g.op("Unique").input(&ids.reshape([None])).split();
            let rows = embedding_lookup(table, &unique, PartitionStrategy::Div);
            let found = rows.gather(positions.reshape(ids.shape_op()));
            if let (Some(ids), Some(rows)) = (ids.shape().dims(), rows.shape().dims()) {
                let dims = ids.iter().chain(rows.get(1..).unwrap_or_default()).copied();
                found.set_shape(PartialShape::new(dims));
            }
            found
        })
    }

    /// Makes `optimizer` train tables on the parameter servers and all other variables by
    /// all-reduce.
    pub fn optimizer<O: Optimizer>(&self, optimizer: O) -> HybridOptimizer<O> {
        HybridOptimizer::new(self.world().optimizer(optimizer))
    }

    /// Training by `update`, with checkpoints and recovery.
    #[track_caller]
    pub fn training(&self, graph: &Graph, update: &HybridUpdate) -> HybridTraining {
        HybridTraining::new(self.clone(), graph, update)
    }

    /// A session of a graph of this job. It does not know when parameter servers change;
    /// [`Hybrid::training`] does.
    pub fn session(&self, graph: &Graph) -> Result<Session> {
        self.session_of(graph, &self.ps())
    }

    /// A session with these parameter servers.
    fn session_of(&self, graph: &Graph, ps: &[String]) -> Result<Session> {
        let Some(member) = &self.0.cluster else {
            return Session::with_runner(graph, Arc::new(Relocated::alone(graph)?));
        };
        let runner = member.open(ps, &self.device(), OPEN)?;
        let map = ShardMap::new(self.0.shards, ps.len());
        Session::with_runner(graph, Arc::new(Relocated::onto(runner, map)))
    }

    /// The variables of a graph that are on parameter servers, and the others.
    fn split(&self, variables: Vec<Variable>) -> (Vec<Variable>, Vec<Variable>) {
        variables.into_iter().partition(is_on_ps)
    }
}

/// Whether a variable is on the parameter servers.
fn is_on_ps(variable: &Variable) -> bool {
    let device = DeviceName::parse(&variable.device());
    device.is_ok_and(|device| device.job.as_deref() == Some(PS))
}

impl Member {
    /// Starts the server of this process. Its own name means nothing: each session says which task
    /// it is, and which parameter servers there are.
    fn start(task: &TfConfig, catalog: &Arc<Catalog>) -> Result<Member> {
        const NAME: &str = "process";
        let mut options = ServerOptions::of(task);
        let address = match task.cluster.address(&task.job, task.task) {
            Ok(address) => address.to_string(),
            Err(_) => free_address(options.bind.as_deref())?,
        };
        options.cluster = ClusterSpec::from_tasks([(NAME, 0, address.as_str())])?;
        (options.job, options.task) = (NAME.into(), 0);
        let server = BackgroundServer::start_with(options, catalog.clone())?;
        Ok(Member { server, task: task.task, address })
    }

    fn open(
        &self,
        ps: &[String],
        device: &str,
        timeout: Duration,
    ) -> Result<crate::GraphDefSession> {
        let task = i32::try_from(self.task)
            .map_err(|_| err!(InvalidArgument, "{} is too large for a task", self.task))?;
        let servers = ps.iter().enumerate().map(|(i, at)| (PS, i as i32, at.as_str()));
        let own = ("worker", task, self.address.as_str());
        let options = ConnectOptions {
            timeout,
            device_filters: vec![format!("/job:{PS}"), device.to_string()],
            cluster: Some(ClusterSpec::from_tasks(servers.chain([own]))?),
            ..ConnectOptions::default()
        };
        crate::GraphDefSession::on_server(self.server.clone(), &options)
    }
}

/// A free port of this host.
fn free_address(bind: Option<&str>) -> Result<String> {
    let host = bind.unwrap_or("127.0.0.1");
    let problem = |e: std::io::Error| err!(Unavailable, "cannot listen on {host}: {e}");
    let listener = TcpListener::bind((host.trim_matches(['[', ']']), 0)).map_err(problem)?;
    Ok(listener.local_addr().map_err(problem)?.to_string())
}
