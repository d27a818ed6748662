//! How processes form a group. Each process knows its rank, the number of processes, and the
//! address of rank 0.
//!
//! All ranks connect to rank 0 and introduce themselves. Rank 0 answers with a table of all ranks.
//! Ranks of one host then share memory, others connect to each other when they first exchange
//! something. In small groups the connections to rank 0 stay open for control messages. In large
//! ones they are replaced by a tree.

mod connect;
mod greeter;
mod pairs;
mod tree;
mod ucx;

pub(crate) use connect::{Deadline, bind};
pub(crate) use greeter::{Greeted, Greeter};
pub(crate) use pairs::{LazyLinks, MOST_STREAMS, check_streams};

use crate::control::{Control, ControlTree};
use crate::environment::print_note;
use crate::exchange::{LauncherStore, Meeting, meet};
use crate::failure::GroupFailure;
use crate::mesh::{Mesh, Tcp};
use crate::processors;
use crate::wire::{FieldReader, FieldWriter, write_frame};
use connect::{answer, bind_when_named, connect, connect_any, frame};
use ferroflow_core::{Error, Result, bail, ensure, err};
use ferroflow_identity::{JobToken, SecureStream, Trust, rank_role};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tree::{TreeLinks, connect_tree};
use ucx::{UcxAddress, UcxPlan};

/// The links between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// Shared memory if all ranks are on one host that allows it. Otherwise UCX if all ranks have a
    /// device for it and need no encryption, and TCP if not.
    #[default]
    Auto,
    /// TCP.
    Tcp,
    /// Shared memory. An error if it is not possible.
    Shared,
    /// UCX, which uses InfiniBand and RoCE. TCP if a rank has no UCX.
    Ucx,
}

impl TransportChoice {
    /// The choice called `auto`, `tcp`, `shared` or `ucx`.
    pub fn from_name(name: &str) -> Result<TransportChoice> {
        match name {
            "auto" => Ok(TransportChoice::Auto),
            "tcp" => Ok(TransportChoice::Tcp),
            "shared" => Ok(TransportChoice::Shared),
            "ucx" => Ok(TransportChoice::Ucx),
            other => {
                bail!(InvalidArgument, "unknown transport {other:?}: use auto, tcp, shared or ucx")
            }
        }
    }
}

/// The role of this process in a group that is about to form.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The rank of this process.
    pub rank: usize,
    /// The number of processes, including servers.
    pub size: usize,
    /// The number of servers. The last processes are servers and only sum for the others.
    pub servers: usize,
    /// Whether servers sum everything, as parameter servers do. Otherwise the split loads all links
    /// equally. Must be equal on all ranks.
    pub servers_only: bool,
    /// `HOST:PORT` of rank 0, or of every rank in order. If only that of rank 0 is given, the
    /// others listen on a free port of the address from which they reach rank 0.
    pub addresses: Vec<String>,
    /// Where the ranks exchange the addresses of rank 0, instead of `addresses`. They also exchange
    /// a token and credentials if they have none.
    pub store: Option<LauncherStore>,
    /// The secret of the job, equal on all its ranks. Ranks prove to each other that they know it.
    pub token: String,
    /// The credentials of this rank, and the peers that it lets in. Ranks on several hosts need
    /// credentials.
    pub trust: Trust,
    /// The role in the certificates of all ranks, such as `member`, if ranks have no fixed numbers.
    pub common_role: Option<&'static str>,
    /// The links between ranks.
    pub transport: TransportChoice,
    /// TCP connections between two ranks, from 1 to 16. Long messages use all of them at a time. By
    /// default there is one within a host and there are two between hosts. The value of rank 0
    /// applies to all ranks.
    pub streams: Option<usize>,
    /// How long to wait for the other ranks.
    pub timeout: Duration,
    /// How long rank 0 and another rank may receive nothing from each other before they consider
    /// each other dead. Idle ranks send pings.
    pub liveness_timeout: Duration,
    /// The name of this rank's host, instead of that of the machine. Ranks with different names are
    /// on different hosts.
    pub host: Option<String>,
    /// Another thread sets this to end the wait for the other ranks.
    pub abandon: Option<Arc<AtomicBool>>,
    /// The proxy for the connections of a test.
    #[cfg(test)]
    pub(crate) proxy: Option<crate::fault_proxy::FaultProxy>,
}

impl Membership {
    /// A member that finds the others through the address of rank 0.
    pub fn new(rank: usize, size: usize, rank0: impl Into<String>) -> Membership {
        Membership {
            rank,
            size,
            servers: 0,
            servers_only: false,
            addresses: vec![rank0.into()],
            store: None,
            token: String::new(),
            trust: Trust::default(),
            common_role: None,
            transport: TransportChoice::Auto,
            streams: None,
            timeout: Duration::from_secs(60),
            liveness_timeout: Duration::from_secs(20),
            host: None,
            abandon: None,
            #[cfg(test)]
            proxy: None,
        }
    }
}

impl Membership {
    /// The role of a rank in its certificate.
    fn role(&self, rank: usize) -> String {
        self.common_role.map_or_else(|| rank_role(rank), str::to_string)
    }
}

/// The result of a rendezvous on each rank.
pub(crate) struct ConnectedRanks {
    pub mesh: Box<dyn Mesh>,
    #[cfg(target_os = "linux")]
    pub shared: Option<Arc<crate::mesh::shared::SharedSegment>>,
    pub control: Control,
    pub failure: Arc<GroupFailure>,
    /// The host of each rank, numbered from 0.
    pub hosts: Vec<u32>,
}

/// The role of every process of a job in its certificate, where ranks have no fixed numbers.
pub(crate) const MEMBER_ROLE: &str = "member";

const MAGIC: u32 = 0xFE44_0C06;
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;

/// The introduction of a rank.
#[derive(Default)]
pub(crate) struct Hello {
    rank: usize,
    size: usize,
    servers: usize,
    host: String,
    /// Where it accepts connections of other ranks.
    address: String,
    /// How it is reached over UCX.
    ucx: UcxAddress,
    /// The processors that it may use.
    processors: Vec<u32>,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        w.u32(MAGIC).u32(self.rank as u32).u32(self.size as u32).u32(self.servers as u32);
        w.text(&self.host).text(&self.address).text(&self.ucx.to_text());
        for &processor in &self.processors {
            w.u32(processor);
        }
        w.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Hello> {
        let mut r = FieldReader(bytes);
        ensure!(r.u32()? == MAGIC, DataLoss, "the peer is not a rank of this version of Ferroflow");
        let mut hello = Hello {
            rank: r.u32()? as usize,
            size: r.u32()? as usize,
            servers: r.u32()? as usize,
            host: r.text()?,
            address: r.text()?,
            ucx: UcxAddress::from_text(&r.text()?)?,
            processors: Vec::new(),
        };
        while !r.is_empty() {
            hello.processors.push(r.u32()?);
        }
        Ok(hello)
    }
}

/// Connects to the other ranks. `listener` is that of rank 0, if it is already bound.
pub(crate) fn connect_ranks(
    member: &Membership,
    listener: Option<TcpListener>,
) -> Result<ConnectedRanks> {
    let Membership { rank, size, .. } = *member;
    ensure!(
        (1..=65_536).contains(&size),
        InvalidArgument,
        "a group of {size} ranks is not possible: use 1 to 65536"
    );
    ensure!(rank < size, InvalidArgument, "rank {rank} is not below the number of ranks, {size}");
    ensure!(
        member.servers < size,
        InvalidArgument,
        "{} servers among {size} processes leave no rank",
        member.servers
    );
    let listed = member.addresses.len();
    ensure!(
        size == 1 || listed == 1 || listed == size,
        InvalidArgument,
        "{listed} addresses were given for {size} ranks: give that of rank 0 or all"
    );
    member.streams.map(check_streams).transpose()?;
    crate::descriptors::raise(rank, size);
    let until = Deadline { time: Instant::now() + member.timeout, abandon: member.abandon.clone() };
    let connected = connect_through(member, listener, &until);
    connected.map_err(|e| {
        e.context(format!("rank {rank} of {size} could not connect to the other ranks"))
    })
}

fn connect_through(
    member: &Membership,
    listener: Option<TcpListener>,
    until: &Deadline,
) -> Result<ConnectedRanks> {
    let failure = Arc::new(GroupFailure::new()?);
    let met = match member.store {
        Some(store) if listener.is_none() && member.size > 1 => Some(meet(member, store, until)?),
        _ => None,
    };
    let (member, meeting) = match &met {
        Some((member, meeting)) => (member, Some(meeting)),
        None => (member, None),
    };
    if member.rank > 0 {
        return join(member, meeting, failure, until);
    }
    let listener = match meeting {
        Some(meeting) => meeting.listener()?,
        None => listener,
    };
    host(member, listener, meeting, failure, until)
}

fn host(
    member: &Membership,
    listener: Option<TcpListener>,
    meeting: Option<&Meeting>,
    failure: Arc<GroupFailure>,
    until: &Deadline,
) -> Result<ConnectedRanks> {
    let size = member.size;
    let mut links: Vec<Option<SecureStream>> = (0..size).map(|_| None).collect();
    let mut table: Vec<Hello> = Vec::with_capacity(size);
    let listener = match listener {
        _ if size == 1 => None,
        Some(bound) => {
            let at = bound.local_addr();
            let at = at.map_err(|e| crate::io_error("cannot get the address of rank 0", &e))?;
            member.trust.check_bind(at)?;
            Some(bound)
        }
        None => Some(bind_when_named(&member.addresses[0], &member.trust, until)?),
    };
    let address = match &listener {
        Some(l) => l
            .local_addr()
            .map_err(|e| crate::io_error("cannot get the address of the listener", &e))?
            .to_string(),
        None => String::new(),
    };
    let host = host_name(member);
    let servers = member.servers;
    let processors = processors::usable();
    let mut plan = UcxPlan::of(member);
    let ucx = plan.address();
    table.push(Hello { rank: 0, size, servers, host, address, ucx, processors });
    if let Some(listener) = &listener {
        let mut greeter = Greeter::new(listener, size, &member.trust, &member.token)?;
        while table.len() < size {
            let late = || {
                let missing: Vec<usize> = (1..size).filter(|&r| links[r].is_none()).collect();
                err!(DeadlineExceeded, "ranks {missing:?} did not connect to {}", table[0].address)
            };
            let accepted = greeter.next(until).and_then(|a| a.ok_or_else(late));
            let Greeted { mut stream, first } = match accepted {
                Ok(greeted) => greeted,
                Err(e) => {
                    links.iter_mut().flatten().for_each(|l| refuse(l, &e));
                    return Err(e);
                }
            };
            match check(&stream, &first, member, &links) {
                Ok(hello) => {
                    links[hello.rank] = Some(stream);
                    table.push(hello);
                }
                // Only this process gets the error, because the right ranks may still connect.
                Err(e) => refuse(&mut stream, &e),
            }
        }
    }
    table.sort_by_key(|h| h.rank);
    if let Some(note) = meeting.and_then(|meeting| meeting.describe(&used_addresses(&links))) {
        print_note(&note);
    }
    let one_host = table.iter().all(|h| h.host == table[0].host);
    let crowded =
        processors::crowded(table.iter().map(|h| (h.host.as_str(), h.processors.as_slice())));
    let uses_ucx = plan.is_used(member, &table, one_host);
    #[cfg(target_os = "linux")]
    let segment = match member.transport {
        TransportChoice::Tcp | TransportChoice::Ucx => None,
        _ if size == 1 || !one_host => None,
        _ => crate::mesh::shared::SharedSegment::create(size, crowded, failure.clone()).ok(),
    };
    #[cfg(target_os = "linux")]
    let memory = segment.as_ref().and_then(|s| s.offer().ok()).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    let memory = String::new();
    let mut welcome = FieldWriter::default();
    // 0 means that the number was not given.
    let streams = member.streams.unwrap_or(0) as u8;
    welcome.u8(WELCOME).u8(u8::from(crowded)).u8(streams).text(&memory);
    // The name of a host is sent once, and not for each of its ranks.
    let hosts = number_hosts(&table);
    let mut names: Vec<&str> = Vec::new();
    for (hello, &host) in table.iter().zip(&hosts) {
        if host as usize == names.len() {
            names.push(&hello.host);
        }
    }
    welcome.u32(names.len() as u32);
    for name in names {
        welcome.text(name);
    }
    welcome.u8(u8::from(uses_ucx));
    for (hello, &host) in table.iter().zip(&hosts) {
        welcome.u32(host).text(&hello.address);
        if uses_ucx {
            welcome.text(&hello.ucx.to_text());
        }
    }
    for link in links.iter_mut().flatten() {
        write_frame(link, &welcome.0)
            .map_err(|e| crate::io_error("cannot send the table of ranks", &e))?;
    }
    // Shared memory is used only if every rank could map it.
    let mut all_mapped = !memory.is_empty();
    for (rank, link) in links.iter_mut().enumerate() {
        let Some(link) = link else { continue };
        all_mapped &= answer(&*link, until).map_err(|e| e.context(format!("rank {rank}")))? == 1;
    }
    for link in links.iter_mut().flatten() {
        write_frame(link, &[u8::from(all_mapped)])
            .map_err(|e| crate::io_error("cannot send the choice of links", &e))?;
    }
    check_transport(member, all_mapped || size == 1)?;
    let children = ControlTree::of(size).children(0);
    for (rank, link) in links.iter_mut().enumerate() {
        if !children.contains(&rank) {
            *link = None;
        }
    }
    let met = Met {
        links,
        listener,
        early: Vec::new(),
        ucx: plan.filter(uses_ucx),
        table,
        streams: member.streams,
        crowded,
        #[cfg(target_os = "linux")]
        segment: segment.filter(|_| all_mapped),
    };
    met.connected(member, failure)
}

/// The addresses of this host at which other hosts have connected.
fn used_addresses(links: &[Option<SecureStream>]) -> Vec<IpAddr> {
    let local = |link: &SecureStream| {
        let (own, peer) = (link.tcp().local_addr().ok()?, link.tcp().peer_addr().ok()?);
        (own.ip() != peer.ip()).then(|| own.ip().to_canonical())
    };
    let mut used: Vec<IpAddr> = links.iter().flatten().filter_map(local).collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn join(
    member: &Membership,
    meeting: Option<&Meeting>,
    failure: Arc<GroupFailure>,
    until: &Deadline,
) -> Result<ConnectedRanks> {
    let Membership { rank, size, .. } = *member;
    let token = JobToken::new(member.token.as_str());
    let (rank0, trust) = (member.role(0), &member.trust);
    let mut link = match meeting {
        Some(meeting) => connect_any(&meeting.addresses, &rank0, trust, &token, until)?,
        None => connect(&member.addresses[0], &rank0, trust, &token, until)?,
    };
    let own = link
        .tcp()
        .local_addr()
        .map_err(|e| crate::io_error("cannot get the address of this rank", &e))?;
    let listener = match member.addresses.get(rank) {
        Some(listed) => bind(listed, &member.trust)?,
        None => bind(&SocketAddr::new(own.ip(), 0).to_string(), &member.trust)?,
    };
    let address = listener
        .local_addr()
        .map_err(|e| crate::io_error("cannot get the address of the listener", &e))?;
    #[cfg(test)]
    let address = member.proxy.as_ref().map_or(address, |proxy| proxy.in_front_of(address));
    let address = match member.addresses.get(rank) {
        Some(listed) if !listed.ends_with(":0") => listed.clone(),
        _ => address.to_string(),
    };
    let servers = member.servers;
    let (host, processors) = (host_name(member), processors::usable());
    let mut plan = UcxPlan::of(member);
    let ucx = plan.address();
    let hello = Hello { rank, size, servers, host, address, ucx, processors };
    write_frame(&mut link, &hello.encode())
        .map_err(|e| crate::io_error("cannot send to rank 0", &e))?;
    let welcome =
        frame(&link, until).map_err(|e| e.context(format!("rank 0 at {}", member.addresses[0])))?;
    let mut r = FieldReader(&welcome);
    if r.u8()? != WELCOME {
        let code = ferroflow_core::Code::from_number(r.u32()? as i32);
        return Err(Error::new(code, r.text()?));
    }
    let crowded = r.u8()? == 1;
    let streams = match r.u8()? {
        0 => None,
        asked => Some(check_streams(usize::from(asked))?),
    };
    let memory = r.text()?;
    let names = r.u32()? as usize;
    ensure!(names <= size, DataLoss, "rank 0 named {names} hosts of {size} ranks");
    let names = (0..names).map(|_| r.text()).collect::<Result<Vec<String>>>()?;
    let uses_ucx = r.u8()? == 1;
    let mut table = Vec::with_capacity(size);
    for rank in 0..size {
        let (host, address) = (r.u32()? as usize, r.text()?);
        let ucx = if uses_ucx { UcxAddress::from_text(&r.text()?)? } else { UcxAddress::Unwanted };
        let host = names.get(host).cloned();
        let host = host.ok_or_else(|| err!(DataLoss, "rank 0 sent no host of rank {rank}"))?;
        table.push(Hello { rank, size, servers, host, address, ucx, processors: Vec::new() });
    }
    // Rank 0 may listen on all addresses. Use the one through which it was reached.
    table[0].address = link
        .tcp()
        .peer_addr()
        .map_err(|e| crate::io_error("cannot get the address of rank 0", &e))?
        .to_string();
    #[cfg(target_os = "linux")]
    let segment = match memory.is_empty() || member.transport == TransportChoice::Tcp {
        true => None,
        false => {
            crate::mesh::shared::SharedSegment::open(&memory, rank, size, crowded, failure.clone())
                .ok()
        }
    };
    #[cfg(target_os = "linux")]
    let mapped = segment.is_some();
    #[cfg(not(target_os = "linux"))]
    let mapped = false && memory.is_empty();
    write_frame(&mut link, &[u8::from(mapped)])
        .map_err(|e| crate::io_error("cannot send to rank 0", &e))?;
    let all_mapped = answer(&link, until)? == 1;
    check_transport(member, all_mapped)?;
    let TreeLinks { links, early } = connect_tree(member, &table, &listener, link, until)?;
    let met = Met {
        links,
        listener: Some(listener),
        early,
        ucx: plan.filter(uses_ucx),
        table,
        streams,
        crowded,
        #[cfg(target_os = "linux")]
        segment: segment.filter(|_| all_mapped),
    };
    met.connected(member, failure)
}

/// What a rank knows when all ranks have met at rank 0.
struct Met {
    /// The control connections, by rank.
    links: Vec<Option<SecureStream>>,
    /// Where other ranks connect; a group of one rank has none.
    listener: Option<TcpListener>,
    /// Connections for data that have already arrived.
    early: Vec<Greeted>,
    /// The UCX links, if UCX carries the values.
    ucx: UcxPlan,
    /// All ranks, by number.
    table: Vec<Hello>,
    streams: Option<usize>,
    crowded: bool,
    /// Shared memory, if every rank has mapped it.
    #[cfg(target_os = "linux")]
    segment: Option<Arc<crate::mesh::shared::SharedSegment>>,
}

impl Met {
    /// Makes the mesh. All ranks make the same one, because rank 0 has decided.
    fn connected(self, member: &Membership, failure: Arc<GroupFailure>) -> Result<ConnectedRanks> {
        let hosts = number_hosts(&self.table);
        let (liveness, tree) = (member.liveness_timeout, ControlTree::of(member.size));
        #[cfg(target_os = "linux")]
        if let Some(segment) = self.segment {
            let control = Control::start(member.rank, tree, self.links, failure.clone(), liveness)?;
            let shared = Some(segment.clone());
            let mesh = Box::new(crate::mesh::shared::SharedRings::new(segment, member.rank));
            return Ok(ConnectedRanks { mesh, shared, control, failure, hosts });
        }
        if let Some(mesh) = self.ucx.mesh(member.rank, &self.table, &failure, self.crowded)? {
            let control = Control::start(member.rank, tree, self.links, failure.clone(), liveness)?;
            return Ok(ConnectedRanks {
                mesh,
                #[cfg(target_os = "linux")]
                shared: None,
                control,
                failure,
                hosts,
            });
        }
        let lazy = match self.listener {
            Some(listener) => {
                let (streams, early) = (self.streams, self.early);
                Some(LazyLinks::start(member, streams, listener, early, self.table, &failure)?)
            }
            None => None,
        };
        let control = Control::start(member.rank, tree, self.links, failure.clone(), liveness)?;
        let mesh = Box::new(Tcp::lazy(member.size, lazy, failure.clone(), self.crowded));
        Ok(ConnectedRanks {
            mesh,
            #[cfg(target_os = "linux")]
            shared: None,
            control,
            failure,
            hosts,
        })
    }
}

fn check_transport(member: &Membership, shared: bool) -> Result<()> {
    ensure!(
        shared || member.transport != TransportChoice::Shared,
        FailedPrecondition,
        "shared memory was requested, but the ranks are not all on one host that allows it"
    );
    Ok(())
}

/// Checks the introduction of a rank that connected to rank 0.
fn check(
    stream: &SecureStream,
    first: &[u8],
    member: &Membership,
    links: &[Option<SecureStream>],
) -> Result<Hello> {
    let hello = Hello::decode(first)?;
    ensure!(
        stream.may_be(&member.role(hello.rank)),
        PermissionDenied,
        "{} is not for rank {}",
        stream.identity(),
        hello.rank
    );
    ensure!(
        hello.size == member.size,
        InvalidArgument,
        "rank {} expects {} ranks, rank 0 expects {}",
        hello.rank,
        hello.size,
        member.size
    );
    ensure!(
        hello.servers == member.servers,
        InvalidArgument,
        "rank {} expects {} servers, rank 0 expects {}",
        hello.rank,
        hello.servers,
        member.servers
    );
    ensure!(
        hello.rank > 0 && links.get(hello.rank).is_some_and(Option::is_none),
        AlreadyExists,
        "rank {} is already connected or outside of the group",
        hello.rank
    );
    Ok(hello)
}

fn refuse(stream: &mut SecureStream, why: &Error) {
    let mut w = FieldWriter::default();
    w.u8(REFUSED).u32(why.code() as u32).text(why.message());
    let _ = write_frame(stream, &w.0);
}

/// The identity of the host: the boot of the machine and its namespaces of processes and networks,
/// unless a name is given.
fn host_name(member: &Membership) -> String {
    if let Some(host) = &member.host {
        return host.clone();
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space =
        |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    format!("{} {} {}", boot.trim(), space("pid").display(), space("net").display())
}

/// The host of each rank, numbered in the order of their first ranks.
fn number_hosts(table: &[Hello]) -> Vec<u32> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut all = Vec::with_capacity(table.len());
    for hello in table {
        let next = numbers.len() as u32;
        all.push(*numbers.entry(&hello.host).or_insert(next));
    }
    all
}
