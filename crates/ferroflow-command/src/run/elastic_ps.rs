//! The parameter servers of an elastic hybrid job, on this host: restarted when they die, added and
//! removed while the job runs.

use super::hosts::{Host, in_address};
use super::ports::free_ports;
use super::secrets::JobSecrets;
use crate::launch::{OutputLog, Process, Running, ask_to_end, note_ended, tell};
use ferroflow::{Code, Error, Result};
use ferroflow_identity::task_role;
use serde_json::{Value, json};
use std::net::IpAddr;

/// The servers, by task.
pub struct PsServers {
    /// The address by which the ranks reach this host.
    host: String,
    servers: Vec<PsServer>,
    /// Servers that were asked to exit.
    leaving: Vec<Running>,
    /// The number of servers that the ranks should use. Others stay until their tables have moved.
    wanted: usize,
    /// Whether the ranks have received the list.
    is_announced: bool,
    /// The number of failures after which a server fails the job.
    failures: usize,
}

struct PsServer {
    address: String,
    running: Option<Running>,
    failed: usize,
}

impl PsServers {
    /// The state before the first [`PsServers::tend`], which starts the servers.
    pub fn new(host: &str, count: usize, failures: usize) -> PsServers {
        let host = host.trim_matches(['[', ']']).to_string();
        let (servers, leaving) = (Vec::new(), Vec::new());
        PsServers { host, servers, leaving, wanted: count, is_announced: false, failures }
    }

    /// Sets the number of servers that the ranks should use.
    pub fn resize(&mut self, wanted: usize) {
        if wanted != self.wanted {
            tell(format!("{wanted} parameter servers from now on, {} before", self.wanted));
            (self.wanted, self.is_announced) = (wanted, false);
        }
    }

    /// The addresses of the servers that the ranks should use.
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().take(self.wanted).map(|server| server.address.clone()).collect()
    }

    /// `TF_CONFIG` of process `number`.
    pub fn config(&self, number: usize) -> Value {
        json!({"cluster": {"ps": self.addresses()}, "task": {"type": "worker", "index": number}})
    }

    /// Starts missing servers, restarts those that died, and ends those without tables. `settled`
    /// is the list of servers that the tables have moved to. Returns whether the ranks must receive
    /// the list again.
    pub fn tend(
        &mut self,
        secrets: &JobSecrets,
        settled: Option<&[String]>,
        launch: impl Fn(Process, usize) -> Result<Running>,
    ) -> Result<bool> {
        for server in self.servers.iter_mut().filter_map(|server| {
            let running = server.running.as_mut()?;
            note_ended(std::slice::from_mut(running));
            running.status.is_some().then_some(server)
        }) {
            server.running = None;
            server.failed += 1;
        }
        while self.servers.len() < self.wanted {
            let port = free_ports(1)?[0];
            let address = format!("{}:{port}", in_address(&self.host));
            self.servers.push(PsServer { address, running: None, failed: 0 });
        }
        for task in 0..self.wanted {
            let server = &self.servers[task];
            if server.running.is_some() {
                continue;
            }
            if server.failed >= self.failures {
                let text = format!("ps {task} has failed {} times (--max-failures)", server.failed);
                return Err(Error::new(Code::Unavailable, text));
            }
            if server.failed > 0 {
                tell(format!("ps {task} has died; restarting it"));
            }
            let process = self.process(secrets, task, &server.address)?;
            self.servers[task].running = Some(launch(process, task)?);
        }
        let is_settled = settled.is_some_and(|list| list == self.addresses());
        if is_settled && self.servers.len() > self.wanted {
            for (i, server) in self.servers.drain(self.wanted..).enumerate() {
                tell(format!("ps {} has no tables any more; ending it", self.wanted + i));
                server.running.iter().for_each(ask_to_end);
                self.leaving.extend(server.running);
            }
        }
        note_ended(&mut self.leaving);
        self.leaving.retain(|running| running.status.is_none() || running.is_open());
        Ok(!std::mem::replace(&mut self.is_announced, true))
    }

    fn process(&self, secrets: &JobSecrets, task: usize, address: &str) -> Result<Process> {
        let own = crate::own_program()
            .map_err(|e| Error::new(Code::NotFound, format!("cannot find this program: {e}")))?;
        let spec = json!({"ps": {task.to_string(): address}});
        let mut args = vec!["server".into(), "--cluster".into(), spec.to_string()];
        args.extend(["--job", "ps", "--task"].map(String::from));
        args.push(task.to_string());
        let bind = match self.host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => None,
            Ok(address) => Some(address.to_string()),
            Err(_) => Some("0.0.0.0".into()),
        };
        args.extend(bind.into_iter().flat_map(|to| ["--bind".into(), to]));
        let roles = [task_role("ps", task as u32)];
        let name = format!("ps {task}");
        Ok(Process {
            label: name.clone(),
            name,
            program: own.display().to_string(),
            args,
            env: secrets.env(&roles, &Host::new("localhost", 1), &self.host)?,
            host: None,
            serves: true,
            log: OutputLog::default(),
        })
    }

    /// The processes that are still running.
    pub fn into_running(self) -> Vec<Running> {
        let mut running = self.leaving;
        running.extend(self.servers.into_iter().filter_map(|server| server.running));
        running
    }
}
