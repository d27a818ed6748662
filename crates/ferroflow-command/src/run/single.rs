//! One program beside a server in the same folder: `ferroflow run -- python train.py` and
//! `ferroflow exec train.py`.

use super::hook::{Client, Hook};
use crate::launch::{GRACE, JobEvent, StopReason, code_of, tell, watch_signals};
use ferroflow::cluster::{BackgroundServer, ClusterSpec, ServerOptions};
use ferroflow::{Code, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The variable that holds the address of the program's server.
const TARGET: &str = "FERROFLOW_TARGET";

/// Runs a program with the standard streams of this process. Its sessions use a server in this
/// process, which runs in the program's folder. Returns the exit code.
pub fn run(program: &[String], client: Client, env: &[(String, String)]) -> Result<u8> {
    let Some((name, arguments)) = program.split_first() else {
        return Err(super::hosts::invalid("no program to run".into()));
    };
    let hook = Hook::write()?;
    let server = serve()?;
    let own = crate::own_program()
        .map_err(|e| Error::new(Code::NotFound, format!("cannot find this program: {e}")))?;
    let (events, inbox) = channel();
    watch_signals(events)?;
    let child = Command::new(name)
        .args(arguments)
        .envs(env.iter().cloned())
        .envs(hook.env(Some(client))?)
        .env(TARGET, server.target())
        .env("FERROFLOW_PROGRAM", own)
        .spawn();
    let mut child = child.map_err(|e| {
        let is_absent = e.kind() == std::io::ErrorKind::NotFound;
        let code = if is_absent { Code::NotFound } else { Code::Unavailable };
        Error::new(code, crate::launch::cannot_start(name.as_ref(), &e))
    })?;
    wait(&mut child, &inbox)
}

/// A server with the device names of sessions without a server.
fn serve() -> Result<BackgroundServer> {
    let cluster = ClusterSpec::parse("localhost=localhost:0")?;
    BackgroundServer::start(ServerOptions::new(cluster, "localhost", 0))
}

/// Waits for the program. A signal to this process ends the program. Ctrl-C has already reached a
/// program in the same terminal, which gets time to save its work.
fn wait(child: &mut Child, inbox: &Receiver<JobEvent>) -> Result<u8> {
    let problem = |e: std::io::Error| Error::new(Code::Internal, format!("cannot wait: {e}"));
    let mut until: Option<(Instant, Signal)> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(problem)? {
            return Ok(code_of(status));
        }
        if let Ok(JobEvent::Stop(stop)) = inbox.recv_timeout(Duration::from_millis(20)) {
            let now = Instant::now();
            until = Some(match (&stop, until) {
                (_, Some(_)) => (now, Signal::KILL),
                (StopReason::Signal(Signal::INT), None) => (now + GRACE, Signal::TERM),
                _ => (now, Signal::TERM),
            });
            if !matches!(stop, StopReason::Signal(Signal::INT)) {
                tell(&stop);
            }
        }
        if let Some((when, signal)) = until
            && Instant::now() >= when
        {
            if let Some(pid) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process(pid, signal);
            }
            until = Some((Instant::now() + GRACE, Signal::KILL));
        }
    }
}
