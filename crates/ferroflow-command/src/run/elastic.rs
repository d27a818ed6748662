//! `ferroflow run` for elastic jobs: keeps as many processes running as there are slots, replaces
//! lost ones, and follows the host discovery script.

use super::address::{address_of, own_address};
use super::discovery::{Discovery, INTERVAL};
use super::elastic_ps::PsServers;
use super::hosts::{Host, hosts, in_address, invalid, own_name, slots};
use super::secrets::JobSecrets;
use super::shortage::Shortage;
use super::summing::{self, ElasticServers};
use super::{Args, show_to, tell_stragglers, watch};
use crate::dashboard::{JobBoard, Sources};
use crate::launch::{
    GRACE, Guard, JobEvent, OutputLog, Process, RemoteShell, Running, StopReason, ask_to_end,
    code_of, finish, hear_out, make_end, note_ended, reap, report, start, tell, watch_signals,
};
use ferroflow::collective::elastic::{Driver, DriverOptions};
use ferroflow::{Code, Error, Result};
use ferroflow_identity::task_role;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Failures after which a host gets no more processes, unless the user says otherwise.
const MOST_FAILURES: usize = 3;

/// The settings of an elastic job.
pub struct ElasticPlan {
    pub np: usize,
    pub min: usize,
    pub max: usize,
    pub hosts: Vec<Host>,
    /// Script that prints the current hosts, one per line.
    pub script: Option<String>,
    /// Failures after which a host gets no more processes.
    pub failures: usize,
    pub timeout: Duration,
    pub program: String,
    pub args: Vec<String>,
    /// Additional environment of all processes.
    pub env: Vec<(String, String)>,
    /// Whether processes on several hosts work without certificates.
    pub insecure: bool,
    /// Parameter servers of a hybrid job.
    pub ps: Option<usize>,
    /// The address of the dashboard, if there is one.
    pub page: Option<String>,
    /// The host of each reduce server.
    pub servers: Vec<Host>,
    /// Whether reduce servers sum everything.
    pub servers_only: bool,
}

/// The least and the greatest number of ranks of an elastic job that starts with `np`.
pub fn bounds(np: usize, min: Option<usize>, max: Option<usize>) -> Result<(usize, usize)> {
    let min = min.unwrap_or(np);
    let max = max.unwrap_or(np.max(min));
    if min == 0 || np < min || max < np {
        let asked = format!("-np {np}, --min-np {min}, --max-np {max}");
        return Err(invalid(format!("{asked}: 1 <= --min-np <= -np <= --max-np must hold")));
    }
    Ok((min, max))
}

impl ElasticPlan {
    /// The settings from the command line, with `np` initial processes.
    pub fn new(args: &Args, np: usize) -> Result<ElasticPlan> {
        let (min, max) = bounds(np, args.min_np, args.max_np)?;
        let hosts = match (&args.hosts, &args.host_discovery_script) {
            (Some(list), _) => hosts("-H", Some(list), np)?,
            // The script runs for the first time when the job starts.
            (None, Some(_)) => Vec::new(),
            (None, None) => hosts("-H", None, max)?,
        };
        let Some((program, rest)) = args.program.split_first() else {
            return Err(invalid("no program to run".into()));
        };
        Ok(ElasticPlan {
            np,
            min,
            max,
            hosts,
            script: args.host_discovery_script.clone(),
            failures: args.max_failures.unwrap_or(MOST_FAILURES).max(1),
            timeout: Duration::from_secs(args.elastic_timeout),
            program: program.clone(),
            args: rest.to_vec(),
            env: Vec::new(),
            insecure: args.insecure,
            ps: args.hybrid_ps(),
            page: args.dashboard.clone(),
            servers: summing::hosts_of(args)?,
            servers_only: args.servers_only,
        })
    }
}

struct Slot {
    host: usize,
    /// Its identifier at the elastic driver.
    name: String,
    running: Running,
    /// When the launcher asked it to exit because its host lost slots. Its exit then counts neither
    /// as failure nor as success.
    leaving: Option<Instant>,
}

struct ElasticJob<'a> {
    plan: ElasticPlan,
    shell: &'a RemoteShell,
    address: String,
    secrets: JobSecrets,
    /// Failures by host.
    failed: Vec<usize>,
    slots: Vec<Slot>,
    /// Processes that have exited but whose output is still arriving.
    ended: Vec<Running>,
    started: usize,
    done: usize,
    short: Shortage,
    driver: Driver,
    /// The parameter servers of a hybrid job.
    ps: Option<PsServers>,
    servers: ElasticServers,
    events: Sender<JobEvent>,
    guard: Arc<Guard>,
    /// Watches the processes on this host.
    watched: Option<JobBoard>,
}

/// Runs the job until its processes are done. Returns 0, or the exit code of the first failed
/// process when too few are left.
pub fn run(mut plan: ElasticPlan, shell: &RemoteShell) -> Result<u8> {
    let (events, inbox) = channel();
    watch_signals(events.clone())?;
    let script = plan.script.clone();
    let discovery = script.map(|script| Discovery::start(script, events.clone(), INTERVAL));
    let discovery = discovery.transpose()?;
    if let Some(stop) = await_slots(&mut plan, &inbox)? {
        tell(&stop);
        return Ok(stop.code());
    }
    let first = slots(&plan.hosts).min(plan.np);
    if first < plan.np {
        let np = plan.np;
        tell(format!("starting {first} of {np} processes, there are no more slots (--min-np)"));
    }
    let (listener, address) = meeting_place(&plan)?;
    // A script may find other hosts later.
    let mut hosts = plan.hosts.iter().chain(&plan.servers);
    let leaves = plan.script.is_some() || hosts.any(|h| h.login().is_some());
    let secrets = JobSecrets::new(leaves, plan.insecure)?;
    let options = DriverOptions {
        min: plan.min,
        max: plan.max,
        start: first,
        timeout: plan.timeout,
        token: secrets.token().reveal().to_string(),
    };
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    let trust = secrets.trust("driver", host.trim_matches(['[', ']']))?;
    let driver = Driver::start_with(listener, options, trust)?;
    let sources = Sources { trust: secrets.trust("launcher", "localhost")?, ..Sources::default() };
    let watched = watch(plan.page.as_deref(), plan.max, sources)?;
    let servers = ElasticServers::new(&plan.servers, &address, plan.failures);
    let failed = vec![0; plan.hosts.len()];
    let guard = Arc::new(Guard::start());
    let ps = plan.ps.map(|count| PsServers::new(host, count, plan.failures));
    let mut job = ElasticJob {
        plan,
        shell,
        address,
        secrets,
        failed,
        slots: Vec::new(),
        ended: Vec::new(),
        started: 0,
        done: 0,
        short: Shortage::default(),
        driver,
        ps,
        servers,
        events,
        guard,
        watched,
    };
    let result = job.serve(&inbox);
    drop(discovery);
    let mut running: Vec<Running> = job.slots.drain(..).map(|s| s.running).collect();
    running.append(&mut job.ended);
    running.extend(job.ps.take().into_iter().flat_map(PsServers::into_running));
    running.extend(job.servers.take_running());
    let code = finish(&mut running, &inbox, result.as_ref().copied().unwrap_or(1));
    let seen = job.driver.report();
    if seen.epochs > 1 || seen.lost > 0 {
        let (epochs, lost) = (seen.epochs, seen.lost);
        tell(format!("the ranks met {epochs} times, {lost} processes were lost"));
    }
    job.watched.iter().for_each(tell_stragglers);
    result.map(|_| code)
}

/// Waits until the minimum number of slots is available or the job is stopped. Fails if the script
/// fails on its first run.
fn await_slots(plan: &mut ElasticPlan, inbox: &Receiver<JobEvent>) -> Result<Option<StopReason>> {
    let mut is_known = plan.script.is_none();
    let mut short = Shortage::default();
    while !is_known || slots(&plan.hosts) < plan.min {
        if is_known {
            short.check(slots(&plan.hosts), plan.min, plan.timeout, true)?;
        }
        match inbox.recv_timeout(Duration::from_millis(50)) {
            Ok(JobEvent::Stop(stop)) => return Ok(Some(stop)),
            Ok(JobEvent::Hosts(Ok(hosts))) => (plan.hosts, is_known) = (hosts, true),
            Ok(JobEvent::Hosts(Err(e))) if is_known => tell(e.message()),
            Ok(JobEvent::Hosts(Err(e))) => return Err(e),
            Ok(JobEvent::Ps(count)) => plan.ps = plan.ps.map(|_| count),
            Ok(JobEvent::Closed) | Err(_) => {}
        }
    }
    Ok(None)
}

/// The address at which the processes reach the driver.
fn meeting_place(plan: &ElasticPlan) -> Result<(TcpListener, String)> {
    let hosts: Vec<Host> = plan.hosts.iter().chain(&plan.servers).cloned().collect();
    let all_here = plan.script.is_none() && hosts.iter().all(Host::is_here);
    let own = own_address(&hosts).filter(|_| !all_here);
    let any = match own {
        _ if all_here => "127.0.0.1:0",
        Some(address) if address.is_ipv6() => "[::]:0",
        _ => "0.0.0.0:0",
    };
    let problem = |e: std::io::Error| Error::new(Code::Unavailable, format!("cannot listen: {e}"));
    let listener = TcpListener::bind(any).map_err(problem)?;
    let port = listener.local_addr().map_err(problem)?.port();
    let name = match own {
        _ if all_here => "127.0.0.1".into(),
        Some(address) => in_address(&address.to_string()),
        // Hosts that join later may resolve this host's name.
        None => own_name(),
    };
    Ok((listener, format!("{name}:{port}")))
}

impl ElasticJob<'_> {
    fn serve(&mut self, inbox: &Receiver<JobEvent>) -> Result<u8> {
        let mut first_failure: Option<u8> = None;
        loop {
            self.tend_ps()?;
            self.tend_servers()?;
            self.fill()?;
            if self.slots.is_empty() && (self.is_done() || first_failure.is_some()) {
                return Ok(if self.done > 0 { 0 } else { first_failure.unwrap_or(0) });
            }
            self.mind_shortage()?;
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(JobEvent::Stop(stop)) => {
                    tell(&stop);
                    return Ok(stop.code());
                }
                Ok(JobEvent::Hosts(Ok(hosts))) => self.change(hosts),
                Ok(JobEvent::Hosts(Err(e))) => tell(e.message()),
                Ok(JobEvent::Ps(count)) => {
                    if let Some(ps) = &mut self.ps {
                        ps.resize(count);
                    }
                }
                Ok(JobEvent::Closed) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(1),
            }
            self.ended.retain(Running::is_open);
            for Slot { host, name, running, leaving } in self.take_ended() {
                self.ended.push(running);
                let Some(running) = self.ended.last().filter(|_| leaving.is_none()) else {
                    continue;
                };
                let Some(status) = running.status else { continue };
                if status.success() {
                    self.done += 1;
                    continue;
                }
                // A process that joined after the work was done has not failed.
                if self.driver.report().late.contains(&name) {
                    continue;
                }
                if first_failure.is_none() {
                    hear_out(std::slice::from_ref(running));
                    report(running);
                }
                first_failure.get_or_insert(code_of(status));
                self.failed[host] += 1;
                if self.failed[host] == self.plan.failures {
                    let name = &self.plan.hosts[host].name;
                    tell(format!("{name} gets no more processes, too many have failed"));
                }
            }
        }
    }

    /// Starts, restarts and ends parameter servers, and sends the ranks their list.
    fn tend_ps(&mut self) -> Result<()> {
        let Some(ps) = &mut self.ps else { return Ok(()) };
        let settled = self.driver.report().settled;
        let launch = |process: Process, index: usize| {
            start(process, index, self.shell, &self.events, &self.guard)
        };
        if ps.tend(&self.secrets, settled.as_deref(), launch)? {
            self.driver.set_ps(ps.addresses());
        }
        Ok(())
    }

    /// Starts and restarts reduce servers.
    fn tend_servers(&mut self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let launch = |process: Process, index: usize| {
            start(process, index, self.shell, &self.events, &self.guard)
        };
        if let Some(count) = self.servers.tend(&self.secrets, launch)? {
            self.driver.expect_servers(count, self.plan.servers_only);
        }
        Ok(())
    }

    /// Whether a process has finished its work, even if it has not exited yet.
    fn is_done(&self) -> bool {
        self.done > 0 || self.driver.report().done > 0
    }

    /// Starts processes while slots are free and no process has finished.
    fn fill(&mut self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        for host in 0..self.plan.hosts.len() {
            let usable = self.failed[host] < self.plan.failures;
            let slots = if usable { self.plan.hosts[host].slots } else { 0 };
            let busy = self.slots.iter().filter(|s| s.host == host).count();
            for _ in busy..slots {
                if self.slots.len() >= self.plan.max {
                    return Ok(());
                }
                let number = self.started;
                self.started += 1;
                let process = self.process(number, host)?;
                let name = process.name.clone();
                let running = start(process, number, self.shell, &self.events, &self.guard)?;
                self.slots.push(Slot { host, name, running, leaving: None });
            }
        }
        Ok(())
    }

    fn process(&self, number: usize, host: usize) -> Result<Process> {
        let host = &self.plan.hosts[host];
        let name = format!("process {number}");
        let mut env = self.plan.env.clone();
        env.extend([
            ("FERROFLOW_ELASTIC".into(), self.address.clone()),
            ("FERROFLOW_TOKEN".into(), self.secrets.token().reveal().to_string()),
            ("FERROFLOW_NAME".into(), name.clone()),
        ]);
        let mut roles = Vec::new();
        if let Some(ps) = &self.ps {
            // A replacement of this process has another number, so its address is not known here.
            env.push(("TF_CONFIG".into(), ps.config(number).to_string()));
            let job: Vec<&Host> = self.plan.hosts.iter().collect();
            if !job.iter().all(|host| host.is_here()) {
                env.push(("FERROFLOW_BIND".into(), address_of(host, &job)?));
            }
            roles.push(task_role("worker", number as u32));
        }
        env.extend(self.secrets.env(&roles, host, &host.name)?);
        let mut process = Process {
            label: number.to_string(),
            name,
            program: self.plan.program.clone(),
            args: self.plan.args.clone(),
            env,
            host: host.login(),
            serves: false,
            log: self.log_of(&format!("process {number}")),
        };
        if let (Some(watched), None) = (&self.watched, &process.host) {
            show_to(watched, &mut process);
        }
        Ok(process)
    }

    /// Keeps the output of a process under its name. The number of its rank may change.
    fn log_of(&self, name: &str) -> OutputLog {
        let board = self.watched.as_ref().map(|watched| &watched.board);
        board.map_or_else(OutputLog::default, |board| OutputLog::on(board, name))
    }

    /// Reports that there are too few slots to continue. Fails if no process is left whose own
    /// timeout would end the job.
    fn mind_shortage(&mut self) -> Result<()> {
        let of_host = |(h, host): (usize, &Host)| match self.failed[h] < self.plan.failures {
            true => host.slots,
            // Processes that run there continue.
            false => self.slots.iter().filter(|s| s.host == h).count(),
        };
        let slots = self.plan.hosts.iter().enumerate().map(of_host).fold(0, usize::saturating_add);
        // Finished processes need no slots.
        let needed = if self.is_done() { 0 } else { self.plan.min };
        self.short.check(slots, needed, self.plan.timeout, self.slots.is_empty())
    }

    /// Removes processes that have exited, and kills those beyond their grace period.
    fn take_ended(&mut self) -> Vec<Slot> {
        for slot in &mut self.slots {
            let running = std::slice::from_mut(&mut slot.running);
            let _ = if slot.leaving.is_some() { note_ended(running) } else { reap(running) };
            if slot.leaving.is_some_and(|since| since.elapsed() >= GRACE) {
                make_end(&slot.running);
            }
        }
        let (ended, left) =
            self.slots.drain(..).partition(|slot: &Slot| slot.running.status.is_some());
        self.slots = left;
        ended
    }

    /// Applies a new number of slots: ends processes beyond it, newest first.
    fn change(&mut self, hosts: Vec<Host>) {
        for host in hosts {
            match self.plan.hosts.iter().position(|h| h.login() == host.login()) {
                Some(known) => self.plan.hosts[known].slots = host.slots,
                None => {
                    self.plan.hosts.push(host);
                    self.failed.push(0);
                }
            }
        }
        for (h, host) in self.plan.hosts.iter().enumerate() {
            let staying = self.slots.iter_mut().filter(|s| s.host == h && s.leaving.is_none());
            for surplus in staying.skip(host.slots) {
                surplus.leaving = Some(Instant::now());
                ask_to_end(&surplus.running);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(script: &str, slots: usize) -> ElasticPlan {
        ElasticPlan {
            np: 1,
            min: 1,
            max: slots,
            hosts: vec![Host::new("localhost", slots)],
            script: None,
            failures: 2,
            timeout: Duration::from_secs(20),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            insecure: false,
            ps: None,
            page: None,
            servers: Vec::new(),
            servers_only: false,
        }
    }

    #[test]
    fn a_job_whose_processes_keep_failing_ends_with_their_exit_code() {
        assert_eq!(run(plan("exit 9", 2), &RemoteShell::default()).unwrap(), 9);
    }

    #[test]
    fn lost_processes_are_replaced_and_the_job_succeeds_with_the_others() {
        // The first process dies, the second one does the work.
        let script = "test $FERROFLOW_NAME = 'process 0' && kill -9 $$; exit 0";
        let mut plan = plan(&script.replace("$FERROFLOW_NAME", "\"$FERROFLOW_NAME\""), 1);
        plan.failures = 3;
        assert_eq!(run(plan, &RemoteShell::default()).unwrap(), 0);
    }

    #[test]
    fn limits_must_hold_each_other() {
        let with = |np, min, max| {
            ElasticPlan::new(
                &Args { min_np: min, max_np: max, ..crate::run::tests::args(np, None) },
                np,
            )
        };
        let plan = with(2, Some(1), Some(4)).unwrap();
        assert_eq!((plan.np, plan.min, plan.max, plan.hosts[0].slots), (2, 1, 4, 4));
        assert_eq!(with(2, Some(1), None).unwrap().max, 2);
        assert!(with(2, Some(3), None).is_err() && with(2, None, Some(1)).is_err());
        assert!(with(2, Some(0), None).is_err());
        let args = Args { servers: Some(2), min_np: Some(1), ..crate::run::tests::args(2, None) };
        assert_eq!(ElasticPlan::new(&args, 2).unwrap().servers.len(), 2);
        let too_few = Args { min_np: Some(1), ..crate::run::tests::args(2, Some("a:1")) };
        assert!(ElasticPlan::new(&too_few, 2).is_err(), "nothing says that there will be more");
    }

    #[test]
    fn a_job_without_slots_ends_after_a_while() {
        let plan = ElasticPlan { hosts: Vec::new(), timeout: Duration::ZERO, ..plan("exit 0", 1) };
        let e = run(plan, &RemoteShell::default()).unwrap_err();
        assert!(e.message().starts_with("0 of 1 slots"), "{e}");
    }
}
