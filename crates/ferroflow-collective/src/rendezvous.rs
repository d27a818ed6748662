//! How N processes become a group: each knows its rank, how many there are, and where rank 0 listens.
//!
//! All connect to rank 0 and say who they are; rank 0 answers with a table of all. Ranks of one host
//! then share memory, others connect to each other. The connections to rank 0 stay, for control.

mod connect;
mod pairs;

pub(crate) use pairs::{MOST_STREAMS, check_streams};

use crate::control::Control;
use crate::failure::GroupFailure;
use crate::mesh::{Mesh, Tcp};
use crate::processors;
use crate::wire::{FieldReader, FieldWriter, write_frame};
use connect::{Deadline, accept, answer, bind, connect, frame};
use ferroflow_core::{Error, Result, bail, ensure, err};
use pairs::connect_all;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Which links ranks use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// Shared memory when all ranks are on one host and it can be had, TCP otherwise.
    #[default]
    Auto,
    Tcp,
    /// Shared memory or nothing.
    Shared,
}

impl TransportChoice {
    /// The links that are called `auto`, `tcp` or `shared`.
    pub fn from_name(name: &str) -> Result<TransportChoice> {
        match name {
            "auto" => Ok(TransportChoice::Auto),
            "tcp" => Ok(TransportChoice::Tcp),
            "shared" => Ok(TransportChoice::Shared),
            other => bail!(InvalidArgument, "no links {other:?}; there are auto, tcp and shared"),
        }
    }
}

/// Who this process is in a group to be formed.
#[derive(Clone, Debug)]
pub struct Membership {
    pub rank: usize,
    /// How many processes there are, servers included.
    pub size: usize,
    /// How many of them, the last ones, only sum for the others.
    pub servers: usize,
    /// They sum everything, as parameter servers do, instead of the part that loads all links alike. The
    /// same on all.
    pub servers_only: bool,
    /// `HOST:PORT` of rank 0, or of every rank in order. With rank 0's only, the others listen on a
    /// free port of the address from which they reach rank 0.
    pub addresses: Vec<String>,
    /// The same on all ranks of a job, and known to them only.
    pub token: String,
    pub transport: TransportChoice,
    /// Connections between each two ranks over TCP, which long messages use all at a time; from 1 to 16. None
    /// leaves it to where they are: one within a host, two between hosts. Rank 0's is everybody's.
    pub streams: Option<usize>,
    /// How long to wait for the others to come.
    pub timeout: Duration,
    /// How long rank 0 and another may hear nothing of each other before the one counts as dead for the other.
    /// They ask when there is nothing else to say.
    pub liveness_timeout: Duration,
    /// What counts as this rank's host, if not the machine: ranks with other labels are far away.
    pub host: Option<String>,
    /// Set by another thread when there is no use in waiting for the others any more.
    pub abandon: Option<Arc<AtomicBool>>,
    /// What carries the connections of a test.
    #[cfg(test)]
    pub(crate) proxy: Option<crate::fault_proxy::FaultProxy>,
}

impl Membership {
    /// A member that finds the others through rank 0's address.
    pub fn new(rank: usize, size: usize, rank0: impl Into<String>) -> Membership {
        Membership {
            rank,
            size,
            servers: 0,
            servers_only: false,
            addresses: vec![rank0.into()],
            token: String::new(),
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

/// What a rendezvous gives each rank.
pub(crate) struct ConnectedRanks {
    pub mesh: Box<dyn Mesh>,
    #[cfg(target_os = "linux")]
    pub shared: Option<Arc<crate::mesh::shared::SharedSegment>>,
    pub control: Control,
    pub failure: Arc<GroupFailure>,
    /// The host of each rank, numbered from 0.
    pub hosts: Vec<u32>,
}

const MAGIC: u32 = 0xFE44_0C04;
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;

/// What a rank says of itself.
#[derive(Default)]
struct Hello {
    rank: usize,
    size: usize,
    servers: usize,
    token: String,
    host: String,
    /// Where it takes connections of other ranks.
    address: String,
    /// Those it may use.
    processors: Vec<u32>,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        w.u32(MAGIC).u32(self.rank as u32).u32(self.size as u32).u32(self.servers as u32);
        w.text(&self.token).text(&self.host).text(&self.address);
        for &processor in &self.processors {
            w.u32(processor);
        }
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<Hello> {
        let mut r = FieldReader(bytes);
        ensure!(r.u32()? == MAGIC, DataLoss, "not a rank of this version of Ferroflow");
        let mut hello = Hello {
            rank: r.u32()? as usize,
            size: r.u32()? as usize,
            servers: r.u32()? as usize,
            token: r.text()?,
            host: r.text()?,
            address: r.text()?,
            processors: Vec::new(),
        };
        while !r.is_empty() {
            hello.processors.push(r.u32()?);
        }
        Ok(hello)
    }
}

/// Meets the others. `listener` is rank 0's, if it is bound already.
pub(crate) fn meet(member: &Membership, listener: Option<TcpListener>) -> Result<ConnectedRanks> {
    let Membership { rank, size, .. } = *member;
    ensure!((1..=65_536).contains(&size), InvalidArgument, "a group of {size} ranks");
    ensure!(rank < size, InvalidArgument, "rank {rank} of {size} ranks");
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
        "{listed} addresses for {size} ranks: give rank 0's or all"
    );
    member.streams.map(check_streams).transpose()?;
    let until = Deadline { time: Instant::now() + member.timeout, abandon: member.abandon.clone() };
    let failure = Arc::new(GroupFailure::new()?);
    let meeting = if rank == 0 {
        host(member, listener, failure, &until)
    } else {
        join(member, failure, &until)
    };
    meeting.map_err(|e| e.context(format!("rank {rank} of {size} meeting the others")))
}

fn host(
    member: &Membership,
    listener: Option<TcpListener>,
    failure: Arc<GroupFailure>,
    until: &Deadline,
) -> Result<ConnectedRanks> {
    let size = member.size;
    let mut links: Vec<Option<TcpStream>> = (0..size).map(|_| None).collect();
    let mut table: Vec<Hello> = Vec::new();
    let listener = match listener {
        _ if size == 1 => None,
        Some(bound) => Some(bound),
        None => Some(bind(&member.addresses[0])?),
    };
    let address = match &listener {
        Some(l) => l.local_addr().map_err(|e| crate::io_error("the listener", &e))?.to_string(),
        None => String::new(),
    };
    let host = host_name(member);
    let servers = member.servers;
    let (token, processors) = (String::new(), processors::usable());
    table.push(Hello { rank: 0, size, servers, token, host, address, processors });
    if let Some(listener) = &listener {
        while table.len() < size {
            let missing: Vec<usize> =
                (1..size).filter(|&r| table.iter().all(|h| h.rank != r)).collect();
            let late =
                || err!(DeadlineExceeded, "ranks {missing:?} did not come to {}", table[0].address);
            let accepted = accept(listener, until).and_then(|a| a.ok_or_else(late));
            let mut stream = match accepted {
                Ok(stream) => stream,
                Err(e) => {
                    links.iter_mut().flatten().for_each(|l| refuse(l, &e));
                    return Err(e);
                }
            };
            match greet(&mut stream, member, &table) {
                Ok(hello) => {
                    links[hello.rank] = Some(stream);
                    table.push(hello);
                }
                // A stranger or a mistake of one process is told to it; the others may yet come.
                Err(e) => refuse(&mut stream, &e),
            }
        }
    }
    table.sort_by_key(|h| h.rank);
    let one_host = table.iter().all(|h| h.host == table[0].host);
    let crowded =
        processors::crowded(table.iter().map(|h| (h.host.as_str(), h.processors.as_slice())));
    #[cfg(target_os = "linux")]
    let segment = match member.transport {
        TransportChoice::Tcp => None,
        _ if size == 1 || !one_host => None,
        _ => crate::mesh::shared::SharedSegment::create(size, crowded, failure.clone()).ok(),
    };
    #[cfg(target_os = "linux")]
    let path = segment.as_ref().map(|s| s.path()).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    let path = String::new();
    let mut welcome = FieldWriter::default();
    // No connections at all stands for nobody having asked.
    let streams = member.streams.unwrap_or(0) as u8;
    welcome.u8(WELCOME).u8(u8::from(crowded)).u8(streams).text(&path);
    table.iter().for_each(|h| {
        welcome.text(&h.host).text(&h.address);
    });
    for link in links.iter_mut().flatten() {
        write_frame(link, &welcome.0).map_err(|e| crate::io_error("the table of ranks", &e))?;
    }
    // Shared memory is used if every rank could map it.
    let mut all_mapped = !path.is_empty();
    for (rank, link) in links.iter_mut().enumerate() {
        let Some(link) = link else { continue };
        all_mapped &= answer(link, until).map_err(|e| e.context(format!("rank {rank}")))? == 1;
    }
    for link in links.iter_mut().flatten() {
        write_frame(link, &[u8::from(all_mapped)])
            .map_err(|e| crate::io_error("the choice of links", &e))?;
    }
    check_transport(member, all_mapped || size == 1)?;
    let hosts = number_hosts(&table);
    #[cfg(target_os = "linux")]
    if let Some(segment) = segment.filter(|_| all_mapped) {
        let control = Control::start(0, links, failure.clone(), member.liveness_timeout)?;
        let shared = Some(segment.clone());
        let mesh = Box::new(crate::mesh::shared::SharedRings::new(segment, 0));
        return Ok(ConnectedRanks { mesh, shared, control, failure, hosts });
    }
    let streams = match &listener {
        Some(listener) => connect_all(member, member.streams, listener, &table, until)?,
        None => vec![Vec::new()],
    };
    let control = Control::start(0, links, failure.clone(), member.liveness_timeout)?;
    let mesh = Box::new(Tcp::new(streams, failure.clone(), crowded)?);
    Ok(ConnectedRanks {
        mesh,
        #[cfg(target_os = "linux")]
        shared: None,
        control,
        failure,
        hosts,
    })
}

fn join(
    member: &Membership,
    failure: Arc<GroupFailure>,
    until: &Deadline,
) -> Result<ConnectedRanks> {
    let Membership { rank, size, .. } = *member;
    let mut link = connect(&member.addresses[0], until)?;
    let own = link.local_addr().map_err(|e| crate::io_error("the connection to rank 0", &e))?;
    let listener = match member.addresses.get(rank) {
        Some(listed) => bind(listed)?,
        None => bind(&SocketAddr::new(own.ip(), 0).to_string())?,
    };
    let address = listener.local_addr().map_err(|e| crate::io_error("the listener", &e))?;
    #[cfg(test)]
    let address = member.proxy.as_ref().map_or(address, |proxy| proxy.in_front_of(address));
    let address = match member.addresses.get(rank) {
        Some(listed) if !listed.ends_with(":0") => listed.clone(),
        _ => address.to_string(),
    };
    let (servers, token) = (member.servers, member.token.clone());
    let (host, processors) = (host_name(member), processors::usable());
    let hello = Hello { rank, size, servers, token, host, address, processors };
    write_frame(&mut link, &hello.encode()).map_err(|e| crate::io_error("rank 0", &e))?;
    let welcome = frame(&mut link, until)
        .map_err(|e| e.context(format!("rank 0 at {}", member.addresses[0])))?;
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
    let path = r.text()?;
    let mut table = Vec::with_capacity(size);
    for rank in 0..size {
        let (host, address) = (r.text()?, r.text()?);
        let (token, processors) = (String::new(), Vec::new());
        table.push(Hello { rank, size, servers, token, host, address, processors });
    }
    // Rank 0 may be bound to all addresses; it is reached where it was reached before.
    table[0].address = link.peer_addr().map_err(|e| crate::io_error("rank 0", &e))?.to_string();
    #[cfg(target_os = "linux")]
    let segment = match path.is_empty() || member.transport == TransportChoice::Tcp {
        true => None,
        false => {
            crate::mesh::shared::SharedSegment::open(&path, rank, size, crowded, failure.clone())
                .ok()
        }
    };
    #[cfg(target_os = "linux")]
    let mapped = segment.is_some();
    #[cfg(not(target_os = "linux"))]
    let mapped = false && path.is_empty();
    write_frame(&mut link, &[u8::from(mapped)]).map_err(|e| crate::io_error("rank 0", &e))?;
    let all_mapped = answer(&mut link, until)? == 1;
    check_transport(member, all_mapped)?;
    let hosts = number_hosts(&table);
    let mut links: Vec<Option<TcpStream>> = (0..size).map(|_| None).collect();
    #[cfg(target_os = "linux")]
    if let Some(segment) = segment.filter(|_| all_mapped) {
        links[0] = Some(link);
        let control = Control::start(rank, links, failure.clone(), member.liveness_timeout)?;
        let shared = Some(segment.clone());
        let mesh = Box::new(crate::mesh::shared::SharedRings::new(segment, rank));
        return Ok(ConnectedRanks { mesh, shared, control, failure, hosts });
    }
    let streams = connect_all(member, streams, &listener, &table, until)?;
    links[0] = Some(link);
    let control = Control::start(rank, links, failure.clone(), member.liveness_timeout)?;
    let mesh = Box::new(Tcp::new(streams, failure.clone(), crowded)?);
    Ok(ConnectedRanks {
        mesh,
        #[cfg(target_os = "linux")]
        shared: None,
        control,
        failure,
        hosts,
    })
}

fn check_transport(member: &Membership, shared: bool) -> Result<()> {
    ensure!(
        shared || member.transport != TransportChoice::Shared,
        FailedPrecondition,
        "shared memory was asked for, but the ranks are not all on one host that allows it"
    );
    Ok(())
}

/// Reads and checks the hello of a rank that connected to rank 0.
fn greet(stream: &mut TcpStream, member: &Membership, table: &[Hello]) -> Result<Hello> {
    // Whoever connects says so at once; a silent one must not keep the others waiting.
    let hello = Hello::decode(&frame(stream, &Deadline::after(Duration::from_secs(5)))?)?;
    ensure!(
        hello.token == member.token,
        PermissionDenied,
        "the job token is not the one of this job"
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
        hello.rank < member.size && table.iter().all(|h| h.rank != hello.rank),
        AlreadyExists,
        "there is a rank {} already, or should be none",
        hello.rank
    );
    Ok(hello)
}

fn refuse(stream: &mut TcpStream, why: &Error) {
    let mut w = FieldWriter::default();
    w.u8(REFUSED).u32(why.code() as u32).text(why.message());
    let _ = write_frame(stream, &w.0);
}

/// What tells hosts apart: the boot of the machine and the process namespace, unless given.
fn host_name(member: &Membership) -> String {
    if let Some(host) = &member.host {
        return host.clone();
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), space.display())
}

fn number_hosts(table: &[Hello]) -> Vec<u32> {
    let first = |host: &str| table.iter().position(|h| h.host == host).unwrap_or(0);
    let mut order: Vec<usize> = table.iter().map(|h| first(&h.host)).collect();
    let firsts = {
        let mut f = order.clone();
        f.sort_unstable();
        f.dedup();
        f
    };
    order.iter_mut().map(|o| firsts.iter().position(|f| f == o).unwrap_or(0) as u32).collect()
}
