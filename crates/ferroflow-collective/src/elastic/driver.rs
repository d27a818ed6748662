//! The driver of an elastic job: tracks its processes and assigns ranks.

use super::{DriverMessage, JOB_IS_DONE, WorkerMessage, watch};
use crate::rendezvous::{Deadline, Greeted, Greeter, MEMBER_ROLE};
use crate::wire::{read_frame, write_frame};
use ferroflow_core::{Error, Result, err};
use ferroflow_identity::{SecureStream, Trust};
use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The driver refuses all processes after this many failed epochs in a row without a lost rank.
const TRIES: u32 = 3;

/// How long the first epoch waits for reduce servers once its ranks are ready. They may join later.
const SERVER_WAIT: Duration = Duration::from_secs(10);

/// Options of a [`Driver`].
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// The least number of ranks.
    pub min: usize,
    /// The greatest number of ranks. More processes wait until a rank is free.
    pub max: usize,
    /// The number of ranks that the first epoch waits for, up to `timeout`.
    pub start: usize,
    /// How long fewer than `min` processes wait for others before the driver refuses them.
    pub timeout: Duration,
    /// The secret of the job.
    pub token: String,
}

/// Counters of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverReport {
    /// Epochs so far.
    pub epochs: u64,
    /// Processes that ended without finishing their work.
    pub lost: u64,
    /// Processes that have connected.
    pub joined: u64,
    /// Processes that have finished their work.
    pub done: u64,
    /// Ranks of the present epoch.
    pub size: usize,
    /// Reduce servers of the present epoch.
    pub servers: usize,
    /// Names of processes that were refused because the job was done before they had a rank.
    pub late: Vec<String>,
    /// The last list of parameter servers that the state of the job has moved to.
    pub settled: Option<Vec<String>>,
}

/// A process's connection, closed when dropped, so that a process never waits for a driver that is
/// gone.
pub(super) struct ClosingStream(pub(super) SecureStream);

impl Drop for ClosingStream {
    fn drop(&mut self) {
        let _ = self.0.tcp().shutdown(Shutdown::Both);
    }
}

enum DriverEvent {
    Connected(u64, ClosingStream, String, bool),
    Message(u64, WorkerMessage),
    Disconnected(u64),
    Ps(Vec<String>),
    Servers(usize, bool),
    Stop,
}

/// Assigns ranks to the processes of an elastic job. Dropping it refuses them.
pub struct Driver {
    address: SocketAddr,
    events: Sender<DriverEvent>,
    report: Arc<parking_lot::Mutex<DriverReport>>,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Driver {
    /// Starts a driver that accepts processes of this host on `listener`.
    pub fn start(listener: TcpListener, options: DriverOptions) -> Result<Driver> {
        Driver::start_with(listener, options, Trust::default())
    }

    /// The same with credentials.
    pub fn start_with(
        listener: TcpListener,
        options: DriverOptions,
        trust: Trust,
    ) -> Result<Driver> {
        let problem = |e: std::io::Error| crate::io_error("cannot start the driver", &e);
        let address = listener.local_addr().map_err(problem)?;
        trust.check_bind(address)?;
        let (events, inbox) = channel();
        let report = Arc::<parking_lot::Mutex<DriverReport>>::default();
        let stopping = Arc::new(AtomicBool::new(false));
        let token = options.token.clone();
        let state = EpochState {
            options,
            workers: BTreeMap::new(),
            epoch: 0,
            short_since: None,
            lost_since: None,
            has_lost: false,
            first_failure: None,
            failures: 0,
            ps: Vec::new(),
            told_ps: Vec::new(),
            expected_servers: 0,
            servers_only: false,
            servers_missing_since: None,
            report: report.clone(),
        };
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(work).map_err(problem)
        };
        let serve = spawn("ff-driver", Box::new(move || state.work(&inbox)))?;
        let (to, stop) = (events.clone(), stopping.clone());
        let accept = spawn(
            "ff-driver-accept",
            Box::new(move || accept_workers(&listener, &trust, &token, &to, &stop)),
        )?;
        Ok(Driver { address, events, report, stopping, threads: vec![serve, accept] })
    }

    /// The address for processes.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the addresses of the parameter servers of a hybrid job. The ranks leave their epoch at
    /// the next opportunity and learn the list with their next rank.
    pub fn set_ps(&self, addresses: Vec<String>) {
        // Ignore the error: the driver has ended.
        let _ = self.events.send(DriverEvent::Ps(addresses));
    }

    /// Sets how many reduce servers the first epoch waits for, for a few seconds. `only` says that
    /// they sum everything, as parameter servers do.
    pub fn expect_servers(&self, count: usize, only: bool) {
        // Ignore the error: the driver has ended.
        let _ = self.events.send(DriverEvent::Servers(count, only));
    }

    /// The counters so far.
    pub fn report(&self) -> DriverReport {
        self.report.lock().clone()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = self.events.send(DriverEvent::Stop);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// How often the accept thread looks whether the driver stops.
const LOOK: Duration = Duration::from_secs(1);

/// Accepts connections until the driver stops. A thread for each process reads its messages.
fn accept_workers(
    listener: &TcpListener,
    trust: &Trust,
    token: &str,
    events: &Sender<DriverEvent>,
    stopping: &AtomicBool,
) {
    let mut greeter = match Greeter::new(listener, usize::MAX, trust, token) {
        Ok(greeter) => greeter,
        Err(e) => return tracing::warn!("the driver cannot accept connections: {e}"),
    };
    let (mut next, mut is_shut) = (0, false);
    while !stopping.load(Ordering::SeqCst) {
        let greeted = match greeter.next(&Deadline::after(LOOK)) {
            Ok(Some(greeted)) => greeted,
            Ok(None) => continue,
            // The process may be out of file descriptors for a while. Warn once.
            Err(e) => {
                if !std::mem::replace(&mut is_shut, true) {
                    tracing::warn!("the driver cannot accept connections: {e}");
                }
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        is_shut = false;
        next += 1;
        let (id, events) = (next, events.clone());
        let work = move || {
            if let Some(stream) = admit(greeted, id, &events) {
                listen(stream, id, &events);
            }
        };
        let thread = std::thread::Builder::new().name(format!("ff-driver-{id}"));
        // Without a thread, the connection is closed, so the process gets an error.
        let _ = thread.stack_size(256 << 10).spawn(work);
    }
}

/// Admits a process that has introduced itself.
fn admit(greeted: Greeted, id: u64, events: &Sender<DriverEvent>) -> Option<SecureStream> {
    let Greeted { stream, first } = greeted;
    watch(stream.tcp()).ok()?;
    // A process that reads nothing for this long counts as dead.
    stream.tcp().set_write_timeout(Some(Duration::from_secs(5))).ok()?;
    let is_member = stream.may_be(MEMBER_ROLE);
    match WorkerMessage::decode(&first) {
        Ok(WorkerMessage::Hello { name, is_server }) if is_member => {
            let closing = ClosingStream(stream.clone());
            events.send(DriverEvent::Connected(id, closing, name, is_server)).ok()?;
            Some(stream)
        }
        _ => {
            let why = err!(PermissionDenied, "the process is not one of this job");
            let peer = stream.tcp().peer_addr().ok();
            tracing::warn!(target: "audit", ?peer, "refused a process: it is not one of this job");
            let _ = write_frame(&mut &stream, &DriverMessage::Refused(why).encode());
            None
        }
    }
}

fn listen(mut stream: SecureStream, id: u64, events: &Sender<DriverEvent>) {
    while let Ok(Some(frame)) = read_frame(&mut stream) {
        let Ok(message) = WorkerMessage::decode(&frame) else { break };
        if events.send(DriverEvent::Message(id, message)).is_err() {
            return;
        }
    }
    let _ = stream.tcp().shutdown(Shutdown::Both);
    let _ = events.send(DriverEvent::Disconnected(id));
}

struct Worker {
    stream: ClosingStream,
    name: String,
    /// Whether it is a reduce server.
    is_server: bool,
    /// The epoch it is in, and its rank there.
    assigned: Option<(u64, u32)>,
    /// Where it would listen as rank 0, if it is ready for a rank.
    ready: Option<String>,
    /// It was refused because the job is done.
    late: bool,
    /// The last epoch in which it connected to the other ranks.
    connected_in: Option<u64>,
    /// Epochs with it that failed to connect.
    failed_epochs: u32,
}

impl Worker {
    /// Whether an epoch with it would probably fail: it can reach the driver, but perhaps not the
    /// ranks.
    fn is_suspect(&self) -> bool {
        self.connected_in.is_none() && self.failed_epochs > 0
    }
}

struct EpochState {
    options: DriverOptions,
    workers: BTreeMap<u64, Worker>,
    epoch: u64,
    /// Since when there are too few processes.
    short_since: Option<Instant>,
    /// Since when the present epoch lacks a rank.
    lost_since: Option<Instant>,
    /// Whether a process of the present epoch is gone.
    has_lost: bool,
    /// The first process of the present epoch that could not connect to the others, and why.
    first_failure: Option<String>,
    /// Failed epochs in a row.
    failures: u32,
    /// The parameter servers, and those that the ranks of the present epoch know.
    ps: Vec<String>,
    told_ps: Vec<String>,
    expected_servers: usize,
    servers_only: bool,
    /// Since when the first epoch waits only for servers.
    servers_missing_since: Option<Instant>,
    report: Arc<parking_lot::Mutex<DriverReport>>,
}

impl EpochState {
    fn work(mut self, inbox: &Receiver<DriverEvent>) {
        loop {
            let event = inbox.recv_timeout(self.idle_time());
            match event {
                Ok(DriverEvent::Stop) | Err(RecvTimeoutError::Disconnected) => return self.close(),
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.settle();
        }
    }

    fn take(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::Connected(id, stream, name, is_server) => {
                self.report.lock().joined += 1;
                let (assigned, ready, connected_in) = (None, None, None);
                let worker = Worker {
                    stream,
                    name,
                    is_server,
                    assigned,
                    ready,
                    late: false,
                    connected_in,
                    failed_epochs: 0,
                };
                self.workers.insert(id, worker);
            }
            DriverEvent::Message(id, WorkerMessage::Ready { address }) => {
                let Some(worker) = self.workers.get_mut(&id).filter(|w| !w.late) else { return };
                worker.ready = Some(address);
                // Ranks of its old epoch need not wait for it any more.
                if let Some((epoch, _)) = worker.assigned {
                    self.announce_loss(epoch);
                }
            }
            DriverEvent::Message(id, WorkerMessage::GroupFormed { epoch }) => {
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.connected_in = Some(epoch);
                }
            }
            DriverEvent::Message(id, WorkerMessage::GroupFailed { epoch, why }) => {
                let Some(worker) = self.workers.get(&id) else { return };
                // After one process has come back, the others fail for that reason. It is not a new
                // one.
                if epoch == self.epoch && self.lost_since.is_none() {
                    self.first_failure.get_or_insert_with(|| format!("{}: {why}", worker.name));
                }
            }
            DriverEvent::Message(id, WorkerMessage::Done) => {
                if self.workers.remove(&id).is_some() {
                    self.report.lock().done += 1;
                }
            }
            DriverEvent::Disconnected(id) => {
                let Some(worker) = self.workers.remove(&id).filter(|w| !w.late) else { return };
                self.report.lock().lost += 1;
                tracing::info!("{} has disconnected", worker.name);
                if let Some((epoch, _)) = worker.assigned {
                    self.has_lost |= epoch == self.epoch;
                    self.announce_loss(epoch);
                }
            }
            DriverEvent::Message(_, WorkerMessage::Settled { epoch }) => {
                if epoch == self.epoch {
                    self.report.lock().settled = Some(self.told_ps.clone());
                }
            }
            DriverEvent::Ps(addresses) => self.ps = addresses,
            DriverEvent::Servers(count, only) => {
                (self.expected_servers, self.servers_only) = (count, only);
            }
            DriverEvent::Message(_, WorkerMessage::Hello { .. }) | DriverEvent::Stop => {}
        }
    }

    fn announce_loss(&mut self, epoch: u64) {
        if epoch == self.epoch {
            self.lost_since.get_or_insert_with(Instant::now);
        }
        let inside = |w: &Worker| w.ready.is_none() && w.assigned.is_some_and(|(e, _)| e == epoch);
        let survivors = self.workers.values_mut().filter(|w| inside(w));
        survivors.for_each(|w| send(w, &DriverMessage::RankLost { epoch }));
    }

    /// Refuses newcomers after a process has finished: they would start over.
    fn refuse_late(&mut self) {
        if self.report.lock().done == 0 {
            return;
        }
        let began =
            |w: &Worker| w.connected_in.is_some() || (w.assigned.is_some() && w.ready.is_none());
        // Servers stay for the ranks that have not finished.
        if self.workers.values().all(|w| w.is_server) {
            for server in self.workers.values_mut().filter(|w| w.ready.is_some()) {
                server.ready = None;
                send(server, &DriverMessage::Refused(err!(FailedPrecondition, "{JOB_IS_DONE}")));
            }
        }
        for worker in self.workers.values_mut().filter(|w| !w.is_server && !began(w) && !w.late) {
            (worker.late, worker.ready) = (true, None);
            // Record it first, so that the launcher knows before the process can end.
            self.report.lock().late.push(worker.name.clone());
            send(worker, &DriverMessage::Refused(err!(FailedPrecondition, "{JOB_IS_DONE}")));
        }
    }

    /// Assigns ranks if all processes that should get one are ready.
    fn settle(&mut self) {
        self.refuse_late();
        let (epoch, timeout) = (self.epoch, self.options.timeout);
        let inside = |w: &Worker| w.assigned.is_some_and(|(e, _)| e == epoch);
        let is_over = |since: Option<Instant>| since.is_some_and(|t| t.elapsed() >= timeout);
        if is_over(self.lost_since) {
            // Disconnect ranks that do not come back although their epoch has lost a rank: the
            // others wait for them.
            let stuck = self.workers.values_mut().filter(|w| inside(w) && w.ready.is_none());
            stuck.for_each(|w| {
                let why =
                    err!(Aborted, "this process did not leave epoch {epoch} within {timeout:?}");
                send(w, &DriverMessage::Refused(why));
                let _ = w.stream.0.tcp().shutdown(Shutdown::Both);
            });
            self.lost_since = None;
        }
        let busy = self.workers.values().filter(|w| inside(w) && w.ready.is_none()).count();
        if busy > 0 {
            let is_new = |w: &Worker| w.ready.is_some() && !inside(w) && !w.is_suspect();
            let newcomers =
                |servers| self.workers.values().any(|w| w.is_server == servers && is_new(w));
            let ranks = self.workers.values().filter(|w| inside(w) && !w.is_server).count();
            let has_newcomers = (newcomers(false) && ranks < self.options.max) || newcomers(true);
            if has_newcomers || self.ps != self.told_ps {
                let here = self.workers.values_mut().filter(|w| inside(w) && w.ready.is_none());
                here.for_each(|w| send(w, &DriverMessage::NewcomersWaiting));
            }
            return;
        }
        if let Err(why) = self.check_last_epoch() {
            return self.refuse(&why);
        }
        let mut ready: Vec<(u64, &Worker)> = self
            .workers
            .iter()
            .filter(|(_, w)| w.ready.is_some() && !w.is_server)
            .map(|(&id, w)| (id, w))
            .collect();
        let least = self.options.min.max(1);
        let hoped = if epoch == 0 { self.options.start.max(least) } else { least };
        if ready.len() < hoped {
            let short = !ready.is_empty();
            self.short_since = short.then(|| self.short_since.unwrap_or_else(Instant::now));
            if !is_over(self.short_since) {
                return;
            }
            // The first epoch starts without the missing processes. They may join later.
            if ready.len() < least {
                let there = ready.len();
                return self.refuse_too_few(there, least);
            }
        }
        let servers: Vec<u64> = self
            .workers
            .iter()
            .filter(|(_, w)| w.ready.is_some() && w.is_server && !w.is_suspect())
            .map(|(&id, _)| id)
            .collect();
        if epoch == 0 && servers.len() < self.expected_servers {
            let since = *self.servers_missing_since.get_or_insert_with(Instant::now);
            if since.elapsed() < SERVER_WAIT {
                return;
            }
        }
        self.servers_missing_since = None;
        // Processes with failed epochs get another try only if there are too few others.
        ready.sort_by_key(|&(id, w)| (if w.is_suspect() { w.failed_epochs } else { 0 }, id));
        let free = ready.iter().filter(|(_, w)| !w.is_suspect()).count();
        let held = ready.split_off(free.max(least)).len();
        // Survivors first, those of the latest epoch in the order of their ranks, so that rank 0
        // has the state that the others have committed.
        ready.sort_by_key(|&(id, w)| match w.assigned.filter(|_| w.connected_in.is_some()) {
            Some((epoch, rank)) => (u64::MAX - epoch, u64::from(rank)),
            None => (u64::MAX, id),
        });
        let spare = held + ready.split_off(ready.len().min(self.options.max)).len();
        let Some(address) = ready.first().and_then(|(_, w)| w.ready.clone()) else { return };
        let mut ready: Vec<u64> = ready.into_iter().map(|(id, _)| id).collect();
        let (ranks, server_count) = (ready.len(), servers.len() as u32);
        ready.extend(servers);
        (self.lost_since, self.short_since, self.has_lost) = (None, None, false);
        self.epoch += 1;
        let size = ready.len() as u32;
        self.told_ps = self.ps.clone();
        let ps = self.ps.join(",");
        {
            // Update the report before a rank can act on its assignment.
            let mut report = self.report.lock();
            (report.epochs, report.size) = (self.epoch, ranks);
            report.servers = server_count as usize;
        }
        for (rank, id) in ready.iter().enumerate() {
            let Some(worker) = self.workers.get_mut(id) else { continue };
            let (epoch, rank) = (self.epoch, rank as u32);
            worker.assigned = Some((epoch, rank));
            worker.ready = None;
            let (address, ps) = (address.clone(), ps.clone());
            let assign = DriverMessage::Assign {
                epoch,
                rank,
                size,
                servers: server_count,
                servers_only: self.servers_only,
                address,
                ps,
            };
            send(worker, &assign);
        }
        tracing::info!(
            "epoch {}: {ranks} ranks, {server_count} servers, {spare} waiting",
            self.epoch
        );
    }

    /// Evaluates an epoch whose processes have all come back or gone. An error if the driver should
    /// give up.
    fn check_last_epoch(&mut self) -> Result<()> {
        let epoch = self.epoch;
        let inside = |w: &Worker| w.assigned.is_some_and(|(e, _)| e == epoch);
        let Some(why) = self.first_failure.take().filter(|_| !self.has_lost) else {
            if self.workers.values().filter(|w| inside(w)).all(|w| w.connected_in == Some(epoch)) {
                self.failures = 0;
            }
            return Ok(());
        };
        self.failures += 1;
        tracing::warn!("the ranks of epoch {epoch} could not connect: {why}");
        for worker in self.workers.values_mut().filter(|w| inside(w) && w.connected_in.is_none()) {
            worker.failed_epochs += 1;
        }
        if self.failures < TRIES {
            return Ok(());
        }
        self.failures = 0;
        Err(err!(
            Unavailable,
            "the ranks could not connect {TRIES} times in a row, the last time {why}"
        ))
    }

    fn refuse_too_few(&mut self, there: usize, least: usize) {
        let why = err!(
            DeadlineExceeded,
            "{there} processes are ready, at least {least} are needed, and no more connected within {:?}",
            self.options.timeout
        );
        self.refuse(&why);
    }

    fn refuse(&mut self, why: &Error) {
        for worker in self.workers.values_mut() {
            send(worker, &DriverMessage::Refused(why.clone()));
            worker.ready = None;
        }
        self.short_since = None;
    }

    fn close(mut self) {
        for worker in self.workers.values_mut() {
            let why = err!(Unavailable, "the elastic driver has ended");
            send(worker, &DriverMessage::Refused(why));
        }
    }

    fn idle_time(&self) -> Duration {
        let since = [self.short_since, self.lost_since].into_iter().flatten().min();
        // A timeout that is too large for the clock never expires.
        let until = since.and_then(|since| since.checked_add(self.options.timeout));
        let servers = self.servers_missing_since.and_then(|t| t.checked_add(SERVER_WAIT));
        let until = [until, servers].into_iter().flatten().min();
        until.map_or(Duration::from_secs(60), |t| t.saturating_duration_since(Instant::now()))
    }
}

/// Sends a message. If that fails, the connection is closed and its reader reports the loss.
fn send(worker: &mut Worker, message: &DriverMessage) {
    if write_frame(&mut worker.stream.0, &message.encode()).is_err() {
        let _ = worker.stream.0.tcp().shutdown(Shutdown::Both);
    }
}
