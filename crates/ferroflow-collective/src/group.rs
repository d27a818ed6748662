//! A group of ranks and its collectives.

mod adasum;
mod gather;
pub(crate) use gather::zeroed;
mod probe;
mod push_pull;

use crate::control::Control;
use crate::executor::{ScheduleJob, Scratch, execute};
use crate::failure::GroupFailure;
use crate::link_cost::{Algorithm, LinkCostModel, tree_segment};
use crate::mesh::Mesh;
use crate::number::{Number, bytes_of_mut};
use crate::reduce::{ReduceOp, check_dtype};
use crate::rendezvous::{ConnectedRanks, Membership, connect_ranks};
use crate::schedule::{self, Schedule, Windows, even_bounds};
use crate::signature::{OperationKind, Signature};
use ferroflow_core::{DType, Error, Result, ensure};
use std::collections::{HashMap, HashSet};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the segments into which long messages are cut. A segment stays in a cache between being
/// combined and being sent on. A segment and its header fill four packets of the loopback device,
/// which hold slightly less than 64 KB each. A slightly larger segment would need a fifth packet.
pub(crate) const SEGMENT: usize = 255 << 10;

/// Most ranks that reduce directly in shared memory. There every rank reads from every other. More
/// ranks exchange messages through shared memory, each with a few others.
const MOST_DIRECT: usize = 64;

/// Options of a [`Group`].
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// How long a collective may take before it fails.
    pub timeout: Duration,
    /// The all-reduce algorithm. If `None`, the cost model selects it.
    pub algorithm: Option<Algorithm>,
    /// The cost model. If `None`, a probe at start-up measures it.
    pub model: Option<LinkCostModel>,
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions { timeout: Duration::from_secs(120), algorithm: None, model: None }
    }
}

/// How a rooted reduce moves values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReduceAlgorithm {
    /// Along a binomial tree: log2(n) messages one after the other.
    Tree = 0,
    /// Every rank sends to the root: n - 1 messages on one link.
    Serial = 1,
}

/// The number of a process set: [`SetId::WORLD`] or the result of [`Group::add_set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetId(pub(crate) u16);

impl SetId {
    /// All ranks.
    pub const WORLD: SetId = SetId(0);
}

struct Set {
    members: Vec<u32>,
    /// The index of this rank in the set, if it is a member.
    me: Option<usize>,
    /// The hosts of the members.
    hosts: Vec<u32>,
    /// The number of different hosts.
    host_count: usize,
    sequence: u32,
}

/// A set of connected ranks, as seen by one of them. Every rank calls the same collectives in the
/// same order. After an error, all further calls return the first cause of the failure.
pub struct Group {
    rank: usize,
    sets: Vec<Set>,
    /// Declared before the mesh, so that it is dropped first: a rank that leaves after a failure
    /// announces the failure before its links close.
    control: Option<Arc<Control>>,
    mesh: Box<dyn Mesh>,
    #[cfg(target_os = "linux")]
    shared: Option<Arc<crate::mesh::shared::SharedSegment>>,
    failure: Option<Arc<GroupFailure>>,
    broken: Option<Error>,
    options: GroupOptions,
    model: LinkCostModel,
    scratch: Scratch,
    schedules: HashMap<Plan, Arc<Schedule>>,
    /// The hosts of all processes, including servers.
    hosts: Vec<u32>,
    servers: usize,
    servers_only: bool,
    everyone: Vec<u32>,
    push_pulls: u32,
    /// The buffer in which a server sums.
    served: Vec<u8>,
}

/// All that a schedule depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Plan {
    kind: OperationKind,
    set: u16,
    variant: u16,
    segment: usize,
    bounds: Vec<usize>,
}

impl Group {
    /// Connects to the other ranks and probes the links.
    pub fn join(member: &Membership, options: GroupOptions) -> Result<Group> {
        Group::connect(member, options, None)
    }

    /// [`Group::join`] for rank 0 with a listener that is already bound.
    pub fn host(
        member: &Membership,
        options: GroupOptions,
        listener: TcpListener,
    ) -> Result<Group> {
        Group::connect(member, options, Some(listener))
    }

    fn connect(
        member: &Membership,
        options: GroupOptions,
        listener: Option<TcpListener>,
    ) -> Result<Group> {
        let connected: ConnectedRanks = connect_ranks(member, listener)?;
        let mut group =
            Group::new(member.rank, connected.hosts, connected.mesh, options, member.servers);
        #[cfg(target_os = "linux")]
        {
            group.shared = connected.shared;
        }
        group.servers_only = member.servers_only;
        group.control = Some(Arc::new(connected.control));
        group.failure = Some(connected.failure);
        let is_free = group.options.model.is_none() && group.options.algorithm.is_none();
        if is_free && group.servers == 0 {
            group.model = group.probe()?;
        }
        if group.rank == 0 && group.size() > 1 && crate::environment::is_verbose() {
            let (n, (_, hosts)) = (group.size(), group.cross());
            let links = group.transport();
            let model = group.model.describe(n, hosts);
            crate::environment::print_note(&format!(
                "{n} ranks, {hosts} host(s), {links}; messages: {model}"
            ));
        }
        Ok(group)
    }

    /// A group over any mesh. All ranks count as being on one host.
    pub fn over(rank: usize, size: usize, mesh: Box<dyn Mesh>, options: GroupOptions) -> Group {
        Group::new(rank, vec![0; size], mesh, options, 0)
    }

    fn new(
        rank: usize,
        hosts: Vec<u32>,
        mesh: Box<dyn Mesh>,
        options: GroupOptions,
        servers: usize,
    ) -> Group {
        let workers = hosts.len() - servers;
        let mut group = Group {
            rank,
            sets: Vec::new(),
            mesh,
            #[cfg(target_os = "linux")]
            shared: None,
            control: None,
            failure: None,
            broken: None,
            model: options.model.unwrap_or_default(),
            options,
            scratch: Scratch::default(),
            schedules: HashMap::new(),
            everyone: (0..hosts.len() as u32).collect(),
            hosts,
            servers,
            servers_only: false,
            push_pulls: 0,
            served: Vec::new(),
        };
        let members = (0..workers as u32).collect();
        let hosts = group.hosts[..workers].to_vec();
        group.push_set(members, hosts);
        group
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks, without servers.
    pub fn size(&self) -> usize {
        self.sets[0].members.len()
    }

    /// The number of this rank's host, and the number of hosts.
    pub fn cross(&self) -> (usize, usize) {
        (self.hosts[self.rank] as usize, self.sets[0].host_count)
    }

    /// The index of this rank among the ranks of its host, and their number.
    pub fn local(&self) -> (usize, usize) {
        let same = |r: &usize| self.hosts[*r] == self.hosts[self.rank];
        let ranks = self.size();
        ((0..self.rank.min(ranks)).filter(same).count(), (0..ranks).filter(same).count())
    }

    /// Whether all hosts have the same number of ranks.
    pub fn is_homogeneous(&self) -> bool {
        let hosts = &self.sets[0].hosts;
        let mut counts: HashMap<u32, usize> = HashMap::new();
        hosts.iter().for_each(|&host| *counts.entry(host).or_default() += 1);
        counts.values().all(|&count| count == counts[&hosts[0]])
    }

    /// The name of the links: `tcp` or `shared memory`.
    pub fn transport(&self) -> &'static str {
        self.mesh.name()
    }

    /// The number of ranks to which this rank has open connections. `None` with shared memory.
    pub fn open_links(&self) -> Option<usize> {
        self.mesh.open_links()
    }

    /// The cost model in use.
    pub fn model(&self) -> &LinkCostModel {
        &self.model
    }

    /// Sets the all-reduce algorithm, or lets the cost model select it again. All ranks must do the
    /// same.
    pub fn force(&mut self, algorithm: Option<Algorithm>) {
        self.options.algorithm = algorithm;
    }

    /// The algorithm for an all-reduce of `bytes` among all ranks.
    pub fn algorithm_for(&self, bytes: usize) -> Algorithm {
        self.choose(SetId::WORLD, bytes)
    }

    pub(crate) fn failure(&self) -> Option<&Arc<GroupFailure>> {
        self.failure.as_ref()
    }

    pub(crate) fn control(&self) -> Option<&Arc<Control>> {
        self.control.as_ref()
    }

    /// Fails the group on all ranks.
    pub(crate) fn fail(&mut self, cause: Error) -> Error {
        let first = match &self.failure {
            Some(failure) => failure.check().err().unwrap_or(cause),
            None => cause,
        };
        if let Some(control) = &self.control {
            control.fail(first.clone());
        }
        self.broken.get_or_insert(first).clone()
    }

    /// Makes a process set of `ranks`, in that order. All ranks of the group must make the same
    /// sets in the same order, whether or not they are members.
    pub fn add_set(&mut self, ranks: &[usize]) -> Result<SetId> {
        check_set(ranks, self.size())?;
        ensure!(self.sets.len() < 65_535, ResourceExhausted, "too many process sets");
        let hosts = ranks.iter().map(|&r| self.sets[0].hosts[r]).collect();
        Ok(self.push_set(ranks.iter().map(|&r| r as u32).collect(), hosts))
    }

    fn push_set(&mut self, members: Vec<u32>, hosts: Vec<u32>) -> SetId {
        let me = members.iter().position(|&m| m as usize == self.rank);
        let mut distinct = hosts.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let host_count = distinct.len();
        self.sets.push(Set { members, me, hosts, host_count, sequence: 0 });
        SetId((self.sets.len() - 1) as u16)
    }

    /// The ranks of all sets.
    pub(crate) fn sets(&self) -> Vec<Vec<u32>> {
        self.sets.iter().map(|s| s.members.clone()).collect()
    }

    /// The ranks of a set.
    pub fn members(&self, set: SetId) -> Result<&[u32]> {
        Ok(&self.set(set)?.members)
    }

    fn set(&self, set: SetId) -> Result<&Set> {
        let found = self.sets.get(usize::from(set.0));
        found.ok_or_else(|| {
            ferroflow_core::err!(
                InvalidArgument,
                "there is no process set {} on rank {}",
                set.0,
                self.rank
            )
        })
    }

    /// The index of this rank in a set, and the size of the set. An error if it is not a member.
    fn place(&self, set: SetId) -> Result<(usize, usize)> {
        let found = self.set(set)?;
        match found.me {
            Some(me) => Ok((me, found.members.len())),
            None => Err(ferroflow_core::err!(
                FailedPrecondition,
                "rank {} is not in process set {}",
                self.rank,
                set.0
            )),
        }
    }

    /// Replaces `values` by the reduction of all ranks' values.
    pub fn all_reduce<T: Number>(&mut self, values: &mut [T], op: ReduceOp) -> Result<()> {
        self.all_reduce_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values), op)
    }

    /// [`Group::all_reduce`] among the ranks of a set, on the bytes of any number type.
    pub fn all_reduce_in(
        &mut self,
        set: SetId,
        dtype: DType,
        bytes: &mut [u8],
        op: ReduceOp,
    ) -> Result<()> {
        let count = count_of(dtype, bytes)?;
        check_dtype(dtype)?;
        let (me, n) = self.place(set)?;
        if n == 1 {
            return self.alive();
        }
        if self.servers > 0 && set == SetId::WORLD {
            return self.push_pull(dtype, bytes, op);
        }
        let algorithm = self.choose(set, bytes.len());
        let ahead = self.model.windows(SEGMENT);
        let in_windows = matches!(
            algorithm,
            Algorithm::Ring | Algorithm::HalvingDoubling | Algorithm::Hierarchical
        );
        // The number of windows is part of the signature: ranks with different numbers would
        // exchange different parts.
        let variant = algorithm as u16 | if in_windows { (ahead as u16) << 8 } else { 0 };
        let signature = self.signature(OperationKind::AllReduce, op, dtype, variant, set, count);
        #[cfg(target_os = "linux")]
        if algorithm == Algorithm::Shared
            && let Some(shared) = self.shared.clone()
        {
            self.alive()?;
            let deadline = Instant::now() + self.options.timeout;
            let sequence = self.next_sequence(set);
            return shared
                .all_reduce(signature, sequence, op, dtype, bytes, deadline)
                .map_err(|e| self.fail(e));
        }
        let width = dtype.size().unwrap_or(1);
        let segment = match algorithm {
            Algorithm::DoubleTree => tree_segment(bytes.len()) / width,
            _ => SEGMENT / width,
        };
        let windows = Windows { piece: segment, ahead };
        let hosts = &self.sets[usize::from(set.0)].hosts;
        let plan = Plan {
            kind: OperationKind::AllReduce,
            set: set.0,
            variant: algorithm as u16,
            segment,
            bounds: vec![count, windows.ahead],
        };
        let schedule = cached(&mut self.schedules, plan, || match algorithm {
            Algorithm::Ring | Algorithm::Shared => schedule::ring_all_reduce(n, me, count, windows),
            Algorithm::Doubling => schedule::doubling_all_reduce(n, me, count, segment),
            Algorithm::HalvingDoubling => {
                schedule::halving_doubling_all_reduce(n, me, count, windows)
            }
            Algorithm::DoubleTree => schedule::double_tree_all_reduce(n, me, count, segment),
            Algorithm::Hierarchical => schedule::hierarchical_all_reduce(hosts, me, count, windows),
        });
        self.run(set, signature, &schedule, None, bytes)
    }

    fn choose(&self, set: SetId, bytes: usize) -> Algorithm {
        let Some(found) = self.sets.get(usize::from(set.0)) else { return Algorithm::Ring };
        // The shared-memory algorithm needs all ranks. A smaller set exchanges messages through
        // shared memory.
        #[cfg(target_os = "linux")]
        let shared = self.shared.is_some() && set == SetId::WORLD && self.servers == 0;
        let few = found.members.len() <= MOST_DIRECT;
        #[cfg(not(target_os = "linux"))]
        let shared = false;
        match self.options.algorithm {
            Some(Algorithm::Shared) if !shared => {}
            Some(forced) => return forced,
            None if shared && few => return Algorithm::Shared,
            None => {}
        }
        self.model.choose(found.members.len(), found.host_count, bytes)
    }

    /// Reduces `values` so that this rank's part is complete. The rest is undefined. The parts have
    /// `counts` values, in order of ranks, or are nearly equal. Returns the range of this rank's
    /// part.
    pub fn reduce_scatter<T: Number>(
        &mut self,
        values: &mut [T],
        counts: Option<&[usize]>,
        op: ReduceOp,
    ) -> Result<std::ops::Range<usize>> {
        self.reduce_scatter_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values), counts, op)
    }

    /// [`Group::reduce_scatter`] among the ranks of a set, on the bytes of any number type.
    pub fn reduce_scatter_in(
        &mut self,
        set: SetId,
        dtype: DType,
        bytes: &mut [u8],
        counts: Option<&[usize]>,
        op: ReduceOp,
    ) -> Result<std::ops::Range<usize>> {
        let count = count_of(dtype, bytes)?;
        check_dtype(dtype)?;
        let (me, n) = self.place(set)?;
        let bounds = bounds_of(counts, n, count)?;
        let part = bounds[me]..bounds[me + 1];
        if n == 1 {
            return self.alive().map(|()| part);
        }
        let segment = SEGMENT / dtype.size().unwrap_or(1);
        let signature = self.signature(OperationKind::ReduceScatter, op, dtype, 0, set, count);
        let plan = Plan {
            kind: OperationKind::ReduceScatter,
            set: set.0,
            variant: 0,
            segment,
            bounds: bounds.clone(),
        };
        let schedule = cached(&mut self.schedules, plan, || {
            let mut s = Schedule::default();
            let members: Vec<u32> = (0..n as u32).collect();
            schedule::reduce_scatter_ring(&mut s, &members, me, &bounds, segment);
            s.finish(bounds[me]..bounds[me + 1]);
            s.built()
        });
        self.run(set, signature, &schedule, None, bytes)?;
        Ok(part)
    }

    /// Reduces to rank `root`: its `values` become the reduction of all ranks' values. The values
    /// of other ranks are undefined afterwards.
    pub fn reduce<T: Number>(&mut self, values: &mut [T], root: usize, op: ReduceOp) -> Result<()> {
        let algorithm = ReduceAlgorithm::Tree;
        self.reduce_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values), root, op, algorithm)
    }

    /// [`Group::reduce`] among the ranks of a set, on the bytes of any number type. `root` is a
    /// rank of the group and a member of the set.
    pub fn reduce_in(
        &mut self,
        set: SetId,
        dtype: DType,
        bytes: &mut [u8],
        root: usize,
        op: ReduceOp,
        algorithm: ReduceAlgorithm,
    ) -> Result<()> {
        let count = count_of(dtype, bytes)?;
        check_dtype(dtype)?;
        let (me, n) = self.place(set)?;
        let to = self.set(set)?.members.iter().position(|&m| m as usize == root);
        let Some(to) = to else {
            ferroflow_core::bail!(InvalidArgument, "root {root} of a reduce is not in its set");
        };
        if n == 1 {
            return self.alive();
        }
        let variant = root as u16 ^ ((algorithm as u16) << 15);
        let segment = SEGMENT / dtype.size().unwrap_or(1);
        let signature = self.signature(OperationKind::Reduce, op, dtype, variant, set, count);
        let plan =
            Plan { kind: OperationKind::Reduce, set: set.0, variant, segment, bounds: vec![count] };
        let schedule = cached(&mut self.schedules, plan, || match algorithm {
            ReduceAlgorithm::Serial => schedule::reduce_serial(n, me, to, count, segment),
            ReduceAlgorithm::Tree => schedule::reduce_tree(n, me, to, count, segment),
        });
        self.run(set, signature, &schedule, None, bytes)
    }

    /// Replaces `values` by the values of rank `root`.
    pub fn broadcast<T: Number>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        self.broadcast_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values), root)
    }

    /// [`Group::broadcast`] among the ranks of a set, on the bytes of any plain type. `root` is a
    /// rank of the group and a member of the set.
    pub fn broadcast_in(
        &mut self,
        set: SetId,
        dtype: DType,
        bytes: &mut [u8],
        root: usize,
    ) -> Result<()> {
        const LITTLE: usize = 64 << 10;
        let count = count_of(dtype, bytes)?;
        let (me, n) = self.place(set)?;
        let from = self.set(set)?.members.iter().position(|&m| m as usize == root);
        let Some(from) = from else {
            ferroflow_core::bail!(InvalidArgument, "root {root} of a broadcast is not in its set");
        };
        if n == 1 {
            return self.alive();
        }
        let width = dtype.size().unwrap_or(1);
        let signature =
            self.signature(OperationKind::Broadcast, ReduceOp::Sum, dtype, root as u16, set, count);
        let little = bytes.len() <= LITTLE || n == 2;
        let segment = if little { SEGMENT } else { tree_segment(bytes.len()) } / width;
        let plan = Plan {
            kind: OperationKind::Broadcast,
            set: set.0,
            variant: root as u16,
            segment,
            bounds: vec![count],
        };
        let schedule = cached(&mut self.schedules, plan, || match little {
            true => schedule::broadcast_tree(n, me, from, count, segment),
            false => schedule::broadcast_chain(n, me, from, count, segment),
        });
        self.run(set, signature, &schedule, None, bytes)
    }

    /// Blocks until all ranks have called it.
    pub fn barrier(&mut self) -> Result<()> {
        self.barrier_in(SetId::WORLD)
    }

    /// [`Group::barrier`] among the ranks of a set.
    pub fn barrier_in(&mut self, set: SetId) -> Result<()> {
        let (me, n) = self.place(set)?;
        self.alive()?;
        let signature =
            self.signature(OperationKind::Barrier, ReduceOp::Sum, DType::UInt8, 0, set, 0);
        for round in schedule::barrier(n, me) {
            self.run(set, signature, &round, None, &mut [])?;
        }
        Ok(())
    }

    fn signature(
        &self,
        kind: OperationKind,
        op: ReduceOp,
        dtype: DType,
        variant: u16,
        set: SetId,
        count: usize,
    ) -> Signature {
        Signature { kind, op, dtype, variant, set: set.0, count: count as u64 }
    }

    fn next_sequence(&mut self, set: SetId) -> u32 {
        let sequence = &mut self.sets[usize::from(set.0)].sequence;
        *sequence = sequence.wrapping_add(1);
        *sequence
    }

    pub(crate) fn alive(&self) -> Result<()> {
        if let Some(cause) = &self.broken {
            return Err(cause.clone());
        }
        self.failure.as_ref().map_or(Ok(()), |failure| failure.check())
    }

    fn run(
        &mut self,
        set: SetId,
        signature: Signature,
        schedule: &Schedule,
        source: Option<&[u8]>,
        buffer: &mut [u8],
    ) -> Result<()> {
        self.alive()?;
        let sequence = self.next_sequence(set);
        let Set { members, me, .. } = &self.sets[usize::from(set.0)];
        let job = ScheduleJob {
            signature,
            sequence,
            schedule,
            members,
            me: me.unwrap_or(0),
            dtype: signature.dtype,
            op: signature.op,
            ranks: members.len() as u32,
            source,
            buffer,
            deadline: Instant::now() + self.options.timeout,
        };
        execute(&mut *self.mesh, &mut self.scratch, job).map_err(|e| self.fail(e))
    }
}

/// Whether `ranks`, out of `size`, can be a process set.
pub(crate) fn check_set(ranks: &[usize], size: usize) -> Result<()> {
    ensure!(!ranks.is_empty(), InvalidArgument, "a process set needs at least one rank");
    let mut seen = HashSet::new();
    for &r in ranks {
        ensure!(r < size, InvalidArgument, "there is no rank {r} among {size} ranks");
        ensure!(seen.insert(r), InvalidArgument, "rank {r} appears twice in a process set");
    }
    Ok(())
}

fn cached(
    schedules: &mut HashMap<Plan, Arc<Schedule>>,
    plan: Plan,
    make: impl FnOnce() -> Schedule,
) -> Arc<Schedule> {
    const MOST: usize = 256;
    if let Some(found) = schedules.get(&plan) {
        return found.clone();
    }
    if schedules.len() >= MOST {
        schedules.clear();
    }
    let made = Arc::new(make());
    schedules.insert(plan, made.clone());
    made
}

fn count_of(dtype: DType, bytes: &[u8]) -> Result<usize> {
    let Some(width) = dtype.size() else {
        ferroflow_core::bail!(Unimplemented, "collectives do not move values of type {dtype}");
    };
    ensure!(
        bytes.len().is_multiple_of(width),
        InvalidArgument,
        "{} bytes are not a whole number of {dtype} values",
        bytes.len()
    );
    Ok(bytes.len() / width)
}

fn bounds_of(counts: Option<&[usize]>, n: usize, count: usize) -> Result<Vec<usize>> {
    let Some(counts) = counts else { return Ok(even_bounds(count, n)) };
    ensure!(counts.len() == n, InvalidArgument, "{} counts were given for {n} ranks", counts.len());
    let mut bounds = vec![0usize];
    for &c in counts {
        let last = bounds[bounds.len() - 1];
        bounds.push(last.saturating_add(c));
    }
    ensure!(
        bounds[n] == count,
        InvalidArgument,
        "the counts {counts:?} do not add up to {count} values"
    );
    Ok(bounds)
}

#[cfg(test)]
mod tests;
