//! The process's side of an elastic job: it asks for ranks and connects to the other ranks of each
//! epoch.

use super::{DRIVER_ROLE, DriverMessage, WorkerMessage, watch};
use crate::group::{Group, GroupOptions};
use crate::rendezvous::{MEMBER_ROLE, Membership};
use crate::wire::{read_frame, write_frame};
use ferroflow_core::{Code, Error, Result, err};
use ferroflow_identity::{ExpectedPeer, JobToken, SecureStream, Trust};
use parking_lot::{Condvar, Mutex};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the driver may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the ranks of an epoch may take to connect, unless the driver reports a lost rank.
const GROUP_TIMEOUT: Duration = Duration::from_secs(30);

struct Assignment {
    epoch: u64,
    rank: usize,
    /// Servers included.
    size: usize,
    servers: usize,
    servers_only: bool,
    address: String,
    ps: String,
}

#[derive(Default)]
struct MemberState {
    assignment: Option<Assignment>,
    /// The epoch that this process is in or about to join.
    epoch: u64,
    /// Set when a rank of that epoch is lost, so that this process stops waiting for it.
    lost: Arc<AtomicBool>,
    end: Option<Error>,
}

struct Shared {
    state: Mutex<MemberState>,
    changed: Condvar,
    newcomers: AtomicBool,
}

/// The connection of this process to the driver of an elastic job.
pub struct ElasticMember {
    stream: SecureStream,
    token: String,
    trust: Trust,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
    /// The epoch of the last group, and its parameter servers.
    epoch: u64,
    ps: Vec<String>,
}

impl ElasticMember {
    /// Connects to the driver at `address` and introduces this process.
    pub fn connect(address: &str, token: &str, name: &str) -> Result<ElasticMember> {
        ElasticMember::connect_with(address, token, name, Trust::default())
    }

    /// The same with credentials.
    pub fn connect_with(
        address: &str,
        token: &str,
        name: &str,
        trust: Trust,
    ) -> Result<ElasticMember> {
        ElasticMember::introduce(address, token, name, trust, false)
    }

    /// Connects as a reduce server, which sums for the ranks and has no values of its own.
    pub fn connect_server(
        address: &str,
        token: &str,
        name: &str,
        trust: Trust,
    ) -> Result<ElasticMember> {
        ElasticMember::introduce(address, token, name, trust, true)
    }

    fn introduce(
        address: &str,
        token: &str,
        name: &str,
        trust: Trust,
        is_server: bool,
    ) -> Result<ElasticMember> {
        let problem = |e: std::io::Error| {
            err!(Unavailable, "cannot reach the elastic driver at {address}: {e}")
        };
        let to = address.to_socket_addrs().map_err(problem)?.next();
        let to = to.ok_or_else(|| invalid_address(address))?;
        let stream = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT).map_err(problem)?;
        let _ = stream.set_nodelay(true);
        // Only the driver ends the wait for a rank, so the connection must detect that its host is
        // down.
        watch(&stream).map_err(problem)?;
        let expected = ExpectedPeer { address, role: Some(DRIVER_ROLE) };
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let secret = JobToken::new(token);
        let mut stream = SecureStream::connect(stream, &trust, &secret, expected, deadline)
            .map_err(|e| e.context(format!("the elastic driver at {address}")))?;
        let hello = WorkerMessage::Hello { name: name.into(), is_server };
        write_frame(&mut stream, &hello.encode()).map_err(problem)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(MemberState::default()),
            changed: Condvar::new(),
            newcomers: AtomicBool::new(false),
        });
        let (from, to) = (stream.clone(), shared.clone());
        let reader = std::thread::Builder::new()
            .name("ff-elastic".into())
            .stack_size(256 << 10)
            .spawn(move || listen(from, &to))
            .map_err(problem)?;
        let (token, reader, ps) = (token.into(), Some(reader), Vec::new());
        Ok(ElasticMember { stream, token, trust, shared, reader, epoch: 0, ps })
    }

    /// Connects as the environment describes (`FERROFLOW_ELASTIC` is the driver's address). `None`
    /// if it describes no elastic job.
    pub fn from_env() -> Result<Option<ElasticMember>> {
        ElasticMember::from_env_as(false)
    }

    /// The same as a reduce server.
    pub fn server_from_env() -> Result<Option<ElasticMember>> {
        ElasticMember::from_env_as(true)
    }

    fn from_env_as(is_server: bool) -> Result<Option<ElasticMember>> {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let Some(address) = var("FERROFLOW_ELASTIC") else { return Ok(None) };
        let token = ferroflow_identity::take_secret("FERROFLOW_TOKEN").unwrap_or_default();
        let name =
            var("FERROFLOW_NAME").unwrap_or_else(|| format!("process {}", std::process::id()));
        let trust = Trust::from_env()?;
        ElasticMember::introduce(&address, &token, &name, trust, is_server).map(Some)
    }

    /// Waits for a rank in the next epoch and connects to its other ranks. Tries again if one of
    /// them is lost meanwhile. The wait ends when the driver assigns a rank, refuses, or is gone.
    pub fn next_group(&mut self, options: &GroupOptions) -> Result<Group> {
        loop {
            let own = self
                .stream
                .tcp()
                .local_addr()
                .map_err(|e| crate::io_error("cannot get the address of this process", &e))?;
            let listener = TcpListener::bind((own.ip(), 0))
                .map_err(|e| crate::io_error("cannot listen for the other ranks", &e))?;
            let address = listener
                .local_addr()
                .map_err(|e| crate::io_error("cannot get the address of the listener", &e))?;
            // Newcomers until now will be part of the next epoch.
            self.shared.newcomers.store(false, Ordering::SeqCst);
            let ready = WorkerMessage::Ready { address: address.to_string() };
            write_frame(&mut self.stream, &ready.encode()).map_err(|e| self.end_or(&e))?;
            let (assignment, lost) = self.wait()?;
            self.epoch = assignment.epoch;
            let addresses = assignment.ps.split(',').filter(|address| !address.is_empty());
            self.ps = addresses.map(str::to_string).collect();
            let mut member = Membership::new(assignment.rank, assignment.size, assignment.address);
            (member.servers, member.servers_only) = (assignment.servers, assignment.servers_only);
            member.token = format!("{}/{}", self.token, assignment.epoch);
            member.timeout = GROUP_TIMEOUT;
            member.trust = self.trust.clone();
            member.common_role = Some(MEMBER_ROLE);
            member.set_links_from_env()?;
            member.abandon = Some(lost);
            let group = match assignment.rank {
                0 => Group::host(&member, options.clone(), listener),
                _ => Group::join(&member, options.clone()),
            };
            let epoch = assignment.epoch;
            let message = match &group {
                Ok(_) => WorkerMessage::GroupFormed { epoch },
                Err(e) if may_succeed_later(e) => {
                    WorkerMessage::GroupFailed { epoch, why: e.message().into() }
                }
                Err(_) => return group,
            };
            // Ignore the error: if the driver is gone, the ranks end this epoch soon.
            let _ = write_frame(&mut self.stream, &message.encode());
            match group {
                Err(e) => tracing::info!("epoch {epoch}: {e}"),
                group => return group,
            }
        }
    }

    fn wait(&self) -> Result<(Assignment, Arc<AtomicBool>)> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            if let Some(assignment) = state.assignment.take() {
                return Ok((assignment, state.lost.clone()));
            }
            self.shared.changed.wait(&mut state);
        }
    }

    fn end_or(&self, e: &std::io::Error) -> Error {
        let end = self.shared.state.lock().end.clone();
        end.unwrap_or_else(|| err!(Unavailable, "lost the connection to the elastic driver: {e}"))
    }

    /// Whether newcomers wait or the driver is gone: the ranks should end this epoch at the next
    /// opportunity.
    pub fn has_newcomers(&self) -> bool {
        self.shared.newcomers.load(Ordering::SeqCst)
    }

    /// The addresses of the parameter servers of the present epoch, by task; none in a job without
    /// parameter servers.
    pub fn ps(&self) -> &[String] {
        &self.ps
    }

    /// Tells the driver, as rank 0, that the state of the job is on the parameter servers of the
    /// present epoch. Others are no longer needed.
    pub fn settled(&mut self) {
        let message = WorkerMessage::Settled { epoch: self.epoch };
        // Ignore the error: without a driver, nothing ends the other servers.
        let _ = write_frame(&mut self.stream, &message.encode());
    }

    /// Tells the driver that this process has finished its work.
    pub fn done(mut self) {
        let _ = write_frame(&mut self.stream, &WorkerMessage::Done.encode());
    }
}

impl Drop for ElasticMember {
    fn drop(&mut self) {
        let _ = self.stream.tcp().shutdown(Shutdown::Write);
        let _ = self.stream.tcp().shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Whether the next epoch may succeed.
fn may_succeed_later(e: &Error) -> bool {
    matches!(
        e.code(),
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::PermissionDenied
    )
}

fn listen(mut stream: SecureStream, shared: &Shared) {
    let end = loop {
        let message = match read_frame(&mut stream) {
            Ok(Some(frame)) => DriverMessage::decode(&frame),
            Ok(None) => break err!(Unavailable, "the elastic driver is gone"),
            Err(e) => break err!(Unavailable, "the elastic driver is gone: {e}"),
        };
        match message {
            Ok(DriverMessage::Assign { epoch, rank, size, servers, servers_only, address, ps }) => {
                let (rank, size, servers) = (rank as usize, size as usize, servers as usize);
                let mut state = shared.state.lock();
                state.epoch = epoch;
                state.lost = Arc::new(AtomicBool::new(false));
                state.assignment =
                    Some(Assignment { epoch, rank, size, servers, servers_only, address, ps });
                drop(state);
                shared.changed.notify_all();
            }
            Ok(DriverMessage::NewcomersWaiting) => shared.newcomers.store(true, Ordering::SeqCst),
            Ok(DriverMessage::RankLost { epoch }) => {
                let state = shared.state.lock();
                if state.epoch == epoch {
                    state.lost.store(true, Ordering::SeqCst);
                }
            }
            Ok(DriverMessage::Refused(why)) => break why,
            Err(e) => break e.context("the elastic driver"),
        }
    };
    shared.state.lock().end.get_or_insert(end);
    // The ranks end this epoch: a new driver could form another group of the same job beside it.
    shared.newcomers.store(true, Ordering::SeqCst);
    shared.changed.notify_all();
}

fn invalid_address(address: &str) -> Error {
    err!(InvalidArgument, "invalid elastic driver address '{address}': expected HOST:PORT")
}
