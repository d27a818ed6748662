//! One cell of the matrix: a role, a phase and a fault, and the expected outcome.

use super::cluster::{Cluster, SESSION_TIMEOUT};
use super::graphs;
use crate::common::FOREVER;
use ferroflow::checkpoint::latest_checkpoint;
use ferroflow::cluster::ConnectOptions;
use ferroflow::graph::{GraphDef, GraphDefSession};
use ferroflow::prelude::*;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The role of a task in the client's session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Keeps variables.
    Ps,
    /// The session's master, which the client calls.
    Master,
    /// Computes a part of each step.
    Worker,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Ps, Role::Master, Role::Worker];

    pub fn task(self) -> (&'static str, &'static str) {
        match self {
            Role::Ps => ("ps", "0"),
            Role::Master => ("worker", "0"),
            Role::Worker => ("worker", "1"),
        }
    }

    pub fn device(self) -> &'static str {
        match self {
            Role::Ps => "/job:ps/task:0",
            Role::Master => "/job:worker/task:0",
            Role::Worker => "/job:worker/task:1",
        }
    }

    /// The other roles; the first can be the master of a session.
    fn others(self) -> [Role; 2] {
        match self {
            Role::Ps => [Role::Master, Role::Worker],
            Role::Master => [Role::Worker, Role::Ps],
            Role::Worker => [Role::Master, Role::Ps],
        }
    }
}

/// The state of the session when the fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    Creation,
    Registration,
    Step,
    Transfer,
    Checkpoint,
}

impl Phase {
    pub const ALL: [Phase; 5] =
        [Phase::Creation, Phase::Registration, Phase::Step, Phase::Transfer, Phase::Checkpoint];
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// SIGKILL.
    Killed,
    /// SIGSTOP.
    Stopped,
    /// The cable to its host is pulled.
    CutOff,
    /// The ps and the worker cannot reach each other; the master reaches both.
    FromEachOther,
}

impl Fault {
    /// The faults of a single task.
    pub const OF_ONE: [Fault; 3] = [Fault::Killed, Fault::Stopped, Fault::CutOff];
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub role: Role,
    pub phase: Phase,
    pub fault: Fault,
}

impl Cell {
    /// The ps and the worker do not reach each other.
    pub const APART: Cell =
        Cell { role: Role::Ps, phase: Phase::Transfer, fault: Fault::FromEachOther };
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} at {:?}", self.role, self.fault, self.phase)
    }
}

/// A cell that takes longer counts as hung.
const LIMIT: Duration = Duration::from_secs(45);

/// The result of the call that the fault hits.
type CallResult = ferroflow::Result<()>;

impl Cell {
    /// The code that the client's call fails with.
    pub fn expected(&self) -> Code {
        match self.phase {
            // Tasks may be late, so the client waits for them, up to its timeout.
            Phase::Creation => Code::DeadlineExceeded,
            _ => Code::Unavailable,
        }
    }

    /// Runs the cell. Returns a report, or a description of the failure.
    pub fn check(self) -> Result<String, String> {
        let (tell, told) = channel();
        let (tell_pids, pids) = channel();
        let (tell_dir, dir) = channel();
        let stage = Stage::default();
        // A hung cell cannot be interrupted: its thread stays, and its processes are killed.
        let doing = stage.clone();
        let body = move || {
            let mut cluster = Cluster::start(self.role, self.fault);
            let _ = tell_pids.send(cluster.pids());
            let _ = tell_dir.send(cluster.dir.clone());
            let done = self.run(&mut cluster, &doing);
            let done = done.map_err(|why| format!("{why}{}", Cluster::logs(&cluster.dir)));
            // Dropped before the result is sent: the test may end then, and must leave no
            // processes.
            drop(cluster);
            let _ = tell.send(done);
        };
        std::thread::Builder::new().name(format!("{self}")).spawn(body).unwrap();
        told.recv_timeout(LIMIT).unwrap_or_else(|e| {
            let logs = dir.try_recv().map(|dir: PathBuf| Cluster::logs(&dir)).unwrap_or_default();
            for pid in pids.try_recv().unwrap_or_default() {
                let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
            Err(match e {
                RecvTimeoutError::Timeout => {
                    format!("HANGS {}: not done after {LIMIT:?}{logs}", stage.get())
                }
                RecvTimeoutError::Disconnected => format!("panicked{logs}"),
            })
        })
    }

    fn run(self, cluster: &mut Cluster, stage: &Stage) -> Result<String, String> {
        stage.is("before it happens");
        // A session of others, which does not need the victim.
        let [home, away] = self.role.others();
        let alone = graphs::sum_of(&[home, away]);
        let bystander = connect(cluster, home, &alone)?;
        sum(&bystander, "before it happens")?;

        let (tell, told) = channel();
        let kept = self.disturb(cluster, tell, stage)?;
        stage.is("in the call that was disturbed");
        let began = Instant::now();
        let outcome = told.recv_timeout(FOREVER).map_err(|e| format!("no outcome: {e}"))?;
        let took = began.elapsed();
        let e = match outcome {
            Ok(()) => return Err("the call went through".into()),
            Err(e) => e,
        };
        let (code, expected) = (e.code(), self.expected());
        if code != expected {
            return Err(format!("failed with {code:?} instead of {expected:?}: {e}"));
        }
        let suspects: &[Role] = match self.fault {
            Fault::FromEachOther => &[Role::Ps, Role::Worker],
            _ => &[self.role],
        };
        for role in suspects {
            let (job, index) = role.task();
            let names =
                [format!("/job:{job}/replica:0/task:{index}"), cluster.address(*role).into()];
            if !names.iter().any(|name| e.message().contains(name)) {
                return Err(format!("the error does not name {role:?}: {e}"));
            }
        }
        stage.is("in a step of others");
        sum(&bystander, "of others")?;
        if let Some(kept) = kept {
            kept.check()?;
        }
        stage.is("after it is over");
        cluster.heal(self.fault);
        let again = connect(cluster, Role::Master, &graphs::sum_of(&Role::ALL))?;
        sum(&again, "after it is over")?;
        Ok(format!("{expected:?} after {:.1} s", took.as_secs_f64()))
    }

    /// Starts the call, waits until it is under way, and causes the fault.
    fn disturb(
        self,
        cluster: &mut Cluster,
        tell: Sender<CallResult>,
        stage: &Stage,
    ) -> Result<Option<Kept>, String> {
        let target = cluster.target(Role::Master);
        match self.phase {
            Phase::Creation => {
                cluster.freeze();
                // The server times out waiting for a missing task, the client waiting for a missing
                // server.
                let more = if self.role == Role::Master { 0 } else { 10 };
                let timeout = Duration::from_secs(SESSION_TIMEOUT + more);
                let config = ConnectOptions { timeout, ..ConnectOptions::default() };
                let graph = graphs::sum_of(&Role::ALL);
                begin(tell, move || {
                    GraphDefSession::connect_with(&target, &graph, &config).map(drop)
                });
                cluster.wait_for_call()?;
                cluster.strike(self.fault);
            }
            Phase::Registration => {
                let session = connect(cluster, Role::Master, &graphs::sum_of(&Role::ALL))?;
                cluster.freeze();
                begin(tell, move || session.run(&[], &["sum:0"]).map(drop));
                cluster.wait_for_call()?;
                cluster.strike(self.fault);
            }
            Phase::Step => self.strike_while_waiting(cluster, &graphs::waiting(self.role), tell)?,
            Phase::Transfer => {
                let other = self.role.others()[1];
                let graph = graphs::transferring(self.role, other);
                self.strike_while_waiting(cluster, &graph, tell)?;
            }
            Phase::Checkpoint => {
                let kept = Kept::save(cluster.dir.join("checkpoints"), &target)?;
                cluster.freeze();
                stage.is("frozen, before the second checkpoint");
                let again = kept.again();
                begin(tell, again);
                stage.is("until the call arrives");
                cluster.wait_for_call()?;
                cluster.strike(self.fault);
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// Runs `wait`, and causes the fault when `count` shows that it is under way.
    fn strike_while_waiting(
        self,
        cluster: &mut Cluster,
        graph: &GraphDef,
        tell: Sender<CallResult>,
    ) -> Result<(), String> {
        let session = Arc::new(connect(cluster, Role::Master, graph)?);
        let ran = session.run_with(&[], &[], &["count/zero"], None);
        ran.map_err(|e| format!("before it happens: {e}"))?;
        let waits = session.clone();
        begin(tell, move || waits.run(&[], &["wait:0"]).map(drop));
        let rounds = if self.phase == Phase::Transfer { 3.0 } else { 1.0 };
        loop {
            let count =
                session.run(&[], &["count/read:0"]).and_then(|t| t[0].scalar_value::<f32>());
            if count.map_err(|e| format!("while the step runs: {e}"))? >= rounds {
                break;
            }
        }
        cluster.strike(self.fault);
        Ok(())
    }
}

/// The progress of a cell, for messages.
#[derive(Clone, Default)]
struct Stage(Arc<Mutex<&'static str>>);

impl Stage {
    fn is(&self, what: &'static str) {
        *self.0.lock().unwrap() = what;
    }

    fn get(&self) -> &'static str {
        *self.0.lock().unwrap()
    }
}

fn begin(tell: Sender<CallResult>, call: impl FnOnce() -> CallResult + Send + 'static) {
    std::thread::spawn(move || tell.send(call()));
}

fn connect(cluster: &Cluster, role: Role, graph: &GraphDef) -> Result<GraphDefSession, String> {
    // Retries like a client: a restarted task may take a moment to be found.
    let until = Instant::now() + FOREVER;
    loop {
        match GraphDefSession::connect(&cluster.target(role), graph) {
            Ok(session) => return Ok(session),
            Err(e) if Instant::now() > until => return Err(format!("no session on {role:?}: {e}")),
            Err(e)
                if matches!(
                    e.code(),
                    Code::Unavailable | Code::Aborted | Code::DeadlineExceeded
                ) => {}
            Err(e) => return Err(format!("no session on {role:?}: {e}")),
        }
    }
}

/// Runs `sum`, whose counters are all zero.
fn sum(session: &GraphDefSession, when: &str) -> Result<(), String> {
    let got = session.run(&[], &["sum:0"]).and_then(|t| t[0].scalar_value::<f32>());
    match got {
        Ok(0.0) => Ok(()),
        other => Err(format!("the step {when}: {other:?}")),
    }
}

/// A checkpoint from before the fault.
struct Kept {
    dir: PathBuf,
    session: Session,
    saver: Arc<Saver>,
}

/// A variable for each task, `on` it or all in one place.
fn variables(g: &Graph, on: impl Fn(Role) -> &'static str) {
    for (i, role) in Role::ALL.iter().enumerate() {
        g.device(on(*role), || g.variable(&format!("v{i}"), i as f32));
    }
}

impl Kept {
    fn save(dir: PathBuf, target: &str) -> Result<Kept, String> {
        let g = Graph::new();
        variables(&g, Role::device);
        let saver = Saver::new(&g);
        let init = g.global_initializer();
        let session = Session::connect(target, &g).map_err(|e| e.to_string())?;
        session.run(&init).map_err(|e| e.to_string())?;
        saver.save(&session, dir.join("model"), Some(1)).map_err(|e| e.to_string())?;
        Ok(Kept { dir, session, saver: Arc::new(saver) })
    }

    /// Saves once more.
    fn again(&self) -> impl FnOnce() -> CallResult + Send + use<> {
        let (session, saver, path) =
            (self.session.clone(), self.saver.clone(), self.dir.join("model"));
        move || saver.save(&session, path, Some(2)).map(drop)
    }

    /// Checks that it is the latest, and complete.
    fn check(&self) -> Result<(), String> {
        let latest = latest_checkpoint(&self.dir).unwrap_or_default();
        if !latest.ends_with("model-1") {
            return Err(format!("the latest checkpoint is {latest:?}"));
        }
        let g = Graph::new();
        variables(&g, |_| "");
        let saver = Saver::new(&g);
        let all: Vec<Output> = g.global_variables().iter().map(|v| (**v).clone()).collect();
        let session = Session::local(&g).map_err(|e| e.to_string())?;
        saver.restore(&session, &latest).map_err(|e| e.to_string())?;
        for (i, value) in session.run(&all).map_err(|e| e.to_string())?.iter().enumerate() {
            if value.scalar_value::<f32>().map_err(|e| e.to_string())? != i as f32 {
                return Err(format!("v{i} was restored as {value:?}"));
            }
        }
        Ok(())
    }
}
