//! A cluster of three real processes, one of which fails.

use super::cell::{Fault, Role};
use super::sockets;
use crate::common::netns::{Bypass, Cable};
use crate::common::{FOREVER, Lines, PROGRAM, Running, folder, free_addresses, own_loopback};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How long opening a session waits for tasks that do not answer.
pub const SESSION_TIMEOUT: u64 = 3;

/// A ps and two workers, one of them the master. Some tasks may be on hosts of their own.
pub struct Cluster {
    pub dir: PathBuf,
    spec: String,
    addresses: Vec<String>,
    tasks: Vec<Running>,
    /// The role that fails.
    victim: Role,
    /// The cables to other hosts.
    cables: Vec<(Role, Cable)>,
    /// The route between two of these hosts.
    bypass: Option<Bypass>,
}

impl Cluster {
    pub fn start(victim: Role, fault: Fault) -> Cluster {
        let apart: &[Role] = match fault {
            Fault::CutOff => &[victim],
            Fault::FromEachOther => &[Role::Ps, Role::Worker],
            Fault::Killed | Fault::Stopped => &[],
        };
        let cables: Vec<(Role, Cable)> =
            apart.iter().map(|role| (*role, Cable::from_here())).collect();
        let bypass = match &cables[..] {
            [(_, one), (_, other)] => Some(Bypass::between(one, other)),
            _ => None,
        };
        let here = cables.first().map_or_else(own_loopback, |(_, cable)| cable.near().to_string());
        let mut addresses = free_addresses(&here, Role::ALL.len());
        for (role, cable) in &cables {
            // No other process listens on that host.
            addresses[*role as usize] = format!("{}:2222", cable.far());
        }
        let at = |role: Role| addresses[role as usize].as_str();
        let (ps, master, worker) = (at(Role::Ps), at(Role::Master), at(Role::Worker));
        let spec = format!("ps={ps};worker={master},{worker}");
        let dir = folder("faults");
        let tasks = Vec::new();
        let mut cluster = Cluster { dir, spec, addresses, tasks, victim, cables, bypass };
        let starting: Vec<_> = Role::ALL.iter().map(|role| cluster.spawn(*role)).collect();
        for (task, lines) in starting {
            lines.wait_for("ready grpc://");
            cluster.tasks.push(task);
        }
        cluster
    }

    fn spawn(&self, role: Role) -> (Running, Lines) {
        let mut command = match self.cable(role) {
            None => Command::new(PROGRAM),
            Some(cable) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", cable.far(), PROGRAM]);
                command
            }
        };
        let (job, index) = role.task();
        let address = &self.addresses[role as usize];
        let host = address.rsplit_once(':').unwrap().0;
        command.args(["server", "--cluster", &self.spec, "--job", job, "--task", index]);
        command.args(["--session-timeout", &SESSION_TIMEOUT.to_string(), "--threads", "2"]);
        command.args(["--bind", host]);
        if !self.cables.is_empty() {
            command.arg("--insecure");
        }
        let log = self.dir.join(format!("{role:?}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut task = Running(command.spawn().unwrap());
        let lines = Lines::of(task.0.stdout.take().unwrap());
        (task, lines)
    }

    /// The cable to the host of a task, if it is another host.
    fn cable(&self, role: Role) -> Option<&Cable> {
        self.cables.iter().find(|(of, _)| *of == role).map(|(_, cable)| cable)
    }

    pub fn address(&self, role: Role) -> &str {
        &self.addresses[role as usize]
    }

    pub fn target(&self, role: Role) -> String {
        format!("grpc://{}", self.address(role))
    }

    pub fn pids(&self) -> Vec<u32> {
        self.tasks.iter().map(|task| task.0.id()).collect()
    }

    fn task(&self) -> &Running {
        &self.tasks[self.victim as usize]
    }

    /// Freezes the victim.
    pub fn freeze(&self) {
        self.task().stop();
    }

    /// Waits until a request has arrived at the victim, which has not read it.
    pub fn wait_for_call(&self) -> Result<(), String> {
        let port = self.address(self.victim).rsplit_once(':').unwrap().1.parse().unwrap();
        sockets::wait_for_unread(self.task().0.id(), port, FOREVER)
    }

    /// Causes the fault; the victim may be frozen.
    pub fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Killed => {
                let task = &mut self.tasks[self.victim as usize];
                task.0.kill().unwrap();
                task.0.wait().unwrap();
            }
            Fault::Stopped => self.freeze(),
            Fault::CutOff => {
                self.cable(self.victim).unwrap().pull();
                self.task().signal("CONT");
            }
            Fault::FromEachOther => self.bypass.as_ref().unwrap().close(),
        }
    }

    /// Repairs the fault: restarts, continues or reconnects the task.
    pub fn heal(&mut self, fault: Fault) {
        match fault {
            Fault::Killed => {
                let (task, lines) = self.spawn(self.victim);
                lines.wait_for("ready grpc://");
                self.tasks[self.victim as usize] = task;
            }
            Fault::Stopped => self.task().signal("CONT"),
            Fault::CutOff => self.cable(self.victim).unwrap().plug_in(),
            Fault::FromEachOther => self.bypass.as_ref().unwrap().open(),
        }
    }

    /// The last log lines of the tasks.
    pub fn logs(dir: &std::path::Path) -> String {
        let of = |role: &Role| {
            let text = std::fs::read_to_string(dir.join(format!("{role:?}.log")));
            let text = text.unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(8)..].join("\n      ");
            format!("\n    {role:?}:\n      {last}")
        };
        Role::ALL.iter().map(of).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.tasks.clear();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
