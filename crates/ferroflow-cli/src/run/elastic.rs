//! `ferroflow run` for jobs whose processes come and go: keeps as many running as there are slots, starts
//! others for those that are lost, follows a script that says which hosts there are.

use super::hosts::{Host, hosts, invalid, parse};
use super::{Args, token};
use crate::launch::{
    Event, GRACE, Process, RemoteShell, Running, ask_to_end, code_of, end, hear_out, make_end,
    reap, report, start, watch_signals,
};
use ferroflow::collective::elastic::{Driver, DriverOptions};
use ferroflow::{Code, Error, Result};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What an elastic job needs to know.
pub struct Plan {
    pub np: usize,
    pub min: usize,
    pub max: usize,
    pub hosts: Vec<Host>,
    /// Prints the hosts of now, a line each.
    pub script: Option<String>,
    /// How often processes of a host may fail before it gets no more.
    pub failures: usize,
    pub patience: Duration,
    pub program: String,
    pub args: Vec<String>,
}

impl Plan {
    /// What the command line asks for, with `np` processes to start with.
    pub fn new(args: &Args, np: usize) -> Result<Plan> {
        let min = args.min_np.unwrap_or(np);
        let max = args.max_np.unwrap_or(np.max(min));
        if min == 0 || np < min || max < np {
            let asked = format!("-np {np}, --min-np {min}, --max-np {max}");
            return Err(invalid(format!("{asked}: 1 <= --min-np <= -np <= --max-np must hold")));
        }
        let hosts = match (&args.hosts, &args.host_discovery_script) {
            (Some(list), _) => hosts("-H", Some(list), np)?,
            (None, Some(script)) => ask(script)?,
            (None, None) => hosts("-H", None, max)?,
        };
        let Some((program, rest)) = args.program.split_first() else {
            return Err(invalid("no program to run".into()));
        };
        Ok(Plan {
            np,
            min,
            max,
            hosts,
            script: args.host_discovery_script.clone(),
            failures: args.max_failures.max(1),
            patience: Duration::from_secs(args.elastic_timeout),
            program: program.clone(),
            args: rest.to_vec(),
        })
    }
}

/// How often the script is asked.
const DISCOVERY: Duration = Duration::from_secs(1);
/// How long it may take.
const SCRIPT: Duration = Duration::from_secs(10);

struct Slot {
    host: usize,
    running: Running,
    /// Since when it is to go, its host having fewer slots now. How it ends is no failure, and no success.
    leaving: Option<Instant>,
}

/// Fewer slots than the job waits for.
struct Shortage {
    since: Instant,
    slots: usize,
}

struct Job<'a> {
    plan: Plan,
    shell: &'a RemoteShell,
    address: String,
    token: String,
    /// How often processes of each host of the plan have failed.
    failed: Vec<usize>,
    slots: Vec<Slot>,
    started: usize,
    done: usize,
    short: Option<Shortage>,
    driver: Driver,
    events: Sender<Event>,
}

/// Runs the job until its processes are done. The exit code: 0, or that of the process that failed first
/// when too few are left.
pub fn run(plan: Plan, shell: &RemoteShell) -> Result<u8> {
    let all_here = plan.script.is_none() && plan.hosts.iter().all(Host::is_here);
    let problem = |e: std::io::Error| Error::new(Code::Unavailable, format!("cannot listen: {e}"));
    let listener =
        TcpListener::bind(if all_here { "127.0.0.1:0" } else { "0.0.0.0:0" }).map_err(problem)?;
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let port = listener.local_addr().map_err(problem)?.port();
    let address = match all_here {
        true => format!("127.0.0.1:{port}"),
        false => format!("{}:{port}", own.trim()),
    };
    let token = token()?;
    let options = DriverOptions {
        min: plan.min,
        max: plan.max,
        start: plan.np,
        patience: plan.patience,
        token: token.clone(),
    };
    let driver = Driver::start(listener, options)?;
    let (events, inbox) = channel();
    watch_signals(events.clone())?;
    if let Some(script) = &plan.script {
        follow(script.clone(), events.clone())?;
    }
    let failed = vec![0; plan.hosts.len()];
    let mut job = Job {
        plan,
        shell,
        address,
        token,
        failed,
        slots: Vec::new(),
        started: 0,
        done: 0,
        short: None,
        driver,
        events,
    };
    let result = job.serve(&inbox);
    let mut running: Vec<Running> = job.slots.drain(..).map(|s| s.running).collect();
    end(&mut running, &inbox);
    hear_out(&running);
    let seen = job.driver.report();
    if seen.epochs > 1 || seen.lost > 0 {
        let (epochs, lost) = (seen.epochs, seen.lost);
        eprintln!("ferroflow run: the ranks met {epochs} times, {lost} processes were lost");
    }
    result
}

impl Job<'_> {
    fn serve(&mut self, inbox: &Receiver<Event>) -> Result<u8> {
        let mut first_failure: Option<u8> = None;
        loop {
            self.fill()?;
            if self.slots.is_empty() && (self.done > 0 || first_failure.is_some()) {
                return Ok(if self.done > 0 { 0 } else { first_failure.unwrap_or(1) });
            }
            self.mind_shortage()?;
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(Event::Stop(signal)) => return Ok(128 + signal.as_raw() as u8),
                Ok(Event::Hosts(hosts)) => self.change(hosts),
                Ok(Event::Closed) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(1),
            }
            for Slot { host, running, leaving } in self.ended() {
                let Some(status) = running.status.filter(|_| leaving.is_none()) else { continue };
                if status.success() {
                    self.done += 1;
                    continue;
                }
                if first_failure.is_none() {
                    hear_out(std::slice::from_ref(&running));
                    report(&running);
                }
                first_failure.get_or_insert(code_of(status));
                self.failed[host] += 1;
                if self.failed[host] == self.plan.failures {
                    let name = &self.plan.hosts[host].name;
                    eprintln!("ferroflow run: {name} gets no more processes, too many have failed");
                }
            }
        }
    }

    /// Starts processes while there are slots, and nobody has finished.
    fn fill(&mut self) -> Result<()> {
        if self.done > 0 {
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
                let running = start(self.process(number, host), number, self.shell, &self.events)?;
                self.slots.push(Slot { host, running, leaving: None });
            }
        }
        Ok(())
    }

    fn process(&self, number: usize, host: usize) -> Process {
        let host = &self.plan.hosts[host];
        let name = format!("process {number}");
        Process {
            label: number.to_string(),
            name: name.clone(),
            program: self.plan.program.clone(),
            args: self.plan.args.clone(),
            env: vec![
                ("FERROFLOW_ELASTIC".into(), self.address.clone()),
                ("FERROFLOW_TOKEN".into(), self.token.clone()),
                ("FERROFLOW_NAME".into(), name),
            ],
            host: Some(host).filter(|h| !h.is_here()).map(|h| h.name.clone()),
            serves: false,
        }
    }

    /// Says so when there are too few slots for the job to go on; an error when nothing runs that would, by
    /// its own patience, end.
    fn mind_shortage(&mut self) -> Result<()> {
        let needed = match self.driver.report().epochs {
            0 => self.plan.np,
            _ => self.plan.min,
        };
        let of_host = |(h, host): (usize, &Host)| match self.failed[h] < self.plan.failures {
            true => host.slots,
            // What runs there goes on.
            false => self.slots.iter().filter(|s| s.host == h).count(),
        };
        let slots = self.plan.hosts.iter().enumerate().map(of_host).fold(0, usize::saturating_add);
        if slots >= needed || self.done > 0 {
            self.short = None;
            return Ok(());
        }
        let told = self.short.as_ref();
        let since = told.map_or_else(Instant::now, |s| s.since);
        let patience = self.plan.patience;
        if told.is_none_or(|s| s.slots != slots) {
            eprintln!(
                "ferroflow run: {slots} of {needed} slots; waiting up to {} s (--elastic-timeout)",
                patience.as_secs()
            );
        }
        self.short = Some(Shortage { since, slots });
        if self.slots.is_empty() && since.elapsed() >= patience {
            let text = format!("{slots} of {needed} slots, and no more within {patience:?}");
            return Err(Error::new(Code::DeadlineExceeded, text));
        }
        Ok(())
    }

    /// Takes out the processes that have ended, and ends those that should have.
    fn ended(&mut self) -> Vec<Slot> {
        for slot in &mut self.slots {
            reap(std::slice::from_mut(&mut slot.running));
            if slot.leaving.is_some_and(|since| since.elapsed() >= GRACE) {
                make_end(&slot.running);
            }
        }
        let (ended, left) =
            self.slots.drain(..).partition(|slot: &Slot| slot.running.status.is_some());
        self.slots = left;
        ended
    }

    /// Other slots from now on: what runs beyond them is ended, what was started last first.
    fn change(&mut self, hosts: Vec<Host>) {
        for host in hosts {
            match self.plan.hosts.iter().position(|h| h.name == host.name) {
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

/// Asks the script again and again; what it says differently is an event. Hosts that it no longer names
/// have no slots.
fn follow(script: String, events: Sender<Event>) -> Result<()> {
    let work = move || {
        let mut known: Vec<Host> = Vec::new();
        loop {
            match ask(&script) {
                Ok(mut found) => {
                    let gone: Vec<Host> = known
                        .iter()
                        .filter(|k| found.iter().all(|f| f.name != k.name))
                        .map(|k| Host { name: k.name.clone(), slots: 0 })
                        .collect();
                    found.extend(gone);
                    if found != known && events.send(Event::Hosts(found.clone())).is_err() {
                        return;
                    }
                    known = found;
                }
                Err(e) => eprintln!("ferroflow run: {}", e.message()),
            }
            std::thread::sleep(DISCOVERY);
        }
    };
    let thread = std::thread::Builder::new().name("ff-discovery".into()).spawn(work);
    let problem = |e| Error::new(Code::Internal, format!("cannot start a thread: {e}"));
    thread.map(|_| ()).map_err(problem)
}

/// The hosts that the script prints: `HOST` or `HOST:SLOTS`, a line each.
pub fn ask(script: &str) -> Result<Vec<Host>> {
    let problem = |text: String| Error::new(Code::Unavailable, format!("{script}: {text}"));
    let mut child = Command::new(script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| problem(e.to_string()))?;
    let until = Instant::now() + SCRIPT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(problem(format!("did not end within {SCRIPT:?}")));
            }
        }
    };
    if !status.success() {
        return Err(problem(format!("failed ({status})")));
    }
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        std::io::Read::read_to_string(&mut out, &mut text).map_err(|e| problem(e.to_string()))?;
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if lines.is_empty() { Ok(Vec::new()) } else { parse(&lines.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(script: &str, slots: usize) -> Plan {
        Plan {
            np: 1,
            min: 1,
            max: slots,
            hosts: vec![Host { name: "localhost".into(), slots }],
            script: None,
            failures: 2,
            patience: Duration::from_secs(20),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
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
            Plan::new(&Args { min_np: min, max_np: max, ..crate::run::tests::args(np, None) }, np)
        };
        let plan = with(2, Some(1), Some(4)).unwrap();
        assert_eq!((plan.np, plan.min, plan.max, plan.hosts[0].slots), (2, 1, 4, 4));
        assert_eq!(with(2, Some(1), None).unwrap().max, 2);
        assert!(with(2, Some(3), None).is_err() && with(2, None, Some(1)).is_err());
        assert!(with(2, Some(0), None).is_err());
        let too_few = Args { min_np: Some(1), ..crate::run::tests::args(2, Some("a:1")) };
        assert!(Plan::new(&too_few, 2).is_err(), "nothing says that there will be more");
    }

    #[test]
    fn a_job_without_slots_ends_after_a_while() {
        let plan = Plan { hosts: Vec::new(), patience: Duration::ZERO, ..plan("exit 0", 1) };
        let e = run(plan, &RemoteShell::default()).unwrap_err();
        assert!(e.message().starts_with("0 of 1 slots"), "{e}");
    }

    #[test]
    fn a_script_names_the_hosts() {
        let path = std::env::temp_dir().join(format!("ferroflow-hosts-{}", std::process::id()));
        // Written by another process: what this one holds open for a moment, a child of another test may hold,
        // too, and nobody can run it.
        let write =
            r#"printf '#!/bin/sh\necho hosta:2\necho\necho hostb\n' > "$1" && chmod +x "$1""#;
        let written = Command::new("sh").args(["-c", write, "sh"]).arg(&path).status();
        assert!(written.unwrap().success());
        let found = ask(&path.display().to_string()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let host = |name: &str, slots| Host { name: name.into(), slots };
        assert_eq!(found, [host("hosta", 2), host("hostb", 1)]);
        assert!(ask("/no/such/script").is_err());
    }
}
