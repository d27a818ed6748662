//! Reduce servers: extra processes that share the summing, so that each link carries less.

use super::address::address_of;
use super::hosts::{Host, hosts, invalid};
use super::secrets::JobSecrets;
use crate::launch::{OutputLog, Process, Running, note_ended, tell};
use ferroflow::Result;
use ferroflow::collective::elastic::{ElasticMember, is_job_done};
use ferroflow::collective::{Engine, EngineOptions, Group, GroupOptions, Membership};
use ferroflow_identity::rank_role;

/// Run a reduce server of the job that the environment describes
#[derive(clap::Args)]
pub struct Args {}

/// The host of each server.
pub fn hosts_of(args: &super::Args) -> Result<Vec<Host>> {
    let count = args.servers.unwrap_or(0);
    if count == 0 {
        return Ok(Vec::new());
    }
    let each = |host: &Host| vec![Host { slots: 1, ..host.clone() }; host.slots];
    let hosts = hosts("--server-hosts", args.server_hosts.as_deref(), count)?;
    Ok(hosts.iter().flat_map(each).take(count).collect())
}

/// The reduce servers of `n` ranks. They take the rank numbers from `n` on and join at `address`.
pub fn processes(
    hosts: &[Host],
    args: &super::Args,
    n: usize,
    address: &str,
    secrets: &JobSecrets,
    job: &[&Host],
) -> Result<Vec<Process>> {
    let process = |(i, host): (usize, &Host)| {
        let env = [
            ("FERROFLOW_RANK", (n + i).to_string()),
            ("FERROFLOW_SIZE", (n + hosts.len()).to_string()),
            ("FERROFLOW_SERVERS", hosts.len().to_string()),
            ("FERROFLOW_SERVERS_ONLY", u8::from(args.servers_only).to_string()),
            ("FERROFLOW_ADDRESS", address.to_string()),
            ("FERROFLOW_TOKEN", secrets.token().reveal().to_string()),
        ];
        let mut env = env.map(|(name, value)| (name.to_string(), value)).to_vec();
        env.extend(secrets.env(&[rank_role(n + i)], host, &address_of(host, job)?)?);
        server(i, host, env)
    };
    hosts.iter().enumerate().map(process).collect()
}

/// The process of reduce server `i`.
fn server(i: usize, host: &Host, env: Vec<(String, String)>) -> Result<Process> {
    let own = crate::own_program()
        .map_err(|e| invalid(format!("cannot find the path of this program: {e}")))?;
    let here = host.login().is_none();
    Ok(Process {
        label: format!("server {i}"),
        name: format!("server {i}"),
        program: if here { own.display().to_string() } else { "ferroflow".into() },
        args: vec!["reduce-server".into()],
        env,
        host: host.login(),
        serves: true,
        log: OutputLog::default(),
    })
}

/// The reduce servers of an elastic job, restarted when they die. The job goes on without a server
/// that dies too often.
pub struct ElasticServers {
    servers: Vec<ElasticServer>,
    /// The address of the elastic driver.
    driver: String,
    /// The number of failures after which a server is not restarted.
    failures: usize,
    started: usize,
    /// The number of servers that the driver knows.
    told: Option<usize>,
}

struct ElasticServer {
    host: Host,
    running: Option<Running>,
    failed: usize,
}

impl ElasticServers {
    /// The state before the first [`ElasticServers::tend`], which starts the servers.
    pub fn new(hosts: &[Host], driver: &str, failures: usize) -> ElasticServers {
        let server = |host: &Host| ElasticServer { host: host.clone(), running: None, failed: 0 };
        let servers = hosts.iter().map(server).collect();
        ElasticServers { servers, driver: driver.into(), failures, started: 0, told: None }
    }

    /// Starts missing servers and restarts those that died. Returns their number if it has changed.
    pub fn tend(
        &mut self,
        secrets: &JobSecrets,
        launch: impl Fn(Process, usize) -> Result<Running>,
    ) -> Result<Option<usize>> {
        for (i, server) in self.servers.iter_mut().enumerate() {
            if let Some(running) = &mut server.running {
                note_ended(std::slice::from_mut(running));
                if running.status.is_none() {
                    continue;
                }
                server.running = None;
                server.failed += 1;
                match server.failed < self.failures {
                    true => tell(format!("server {i} has died; restarting it")),
                    false => tell(format!("server {i} is not restarted, it has died too often")),
                }
            }
            if server.failed >= self.failures {
                continue;
            }
            // Each process has a new name, as ranks do.
            let name = format!("server {}", self.started);
            self.started += 1;
            let mut env = vec![
                ("FERROFLOW_ELASTIC".to_string(), self.driver.clone()),
                ("FERROFLOW_TOKEN".to_string(), secrets.token().reveal().to_string()),
                ("FERROFLOW_NAME".to_string(), name),
            ];
            env.extend(secrets.env(&[], &server.host, &server.host.name)?);
            server.running = Some(launch(self::server(i, &server.host, env)?, i)?);
        }
        let count = self.servers.iter().filter(|server| server.failed < self.failures).count();
        Ok((self.told.replace(count) != Some(count)).then_some(count))
    }

    /// The processes that are still running.
    pub fn take_running(&mut self) -> Vec<Running> {
        self.servers.drain(..).filter_map(|server| server.running).collect()
    }
}

/// Runs a reduce server until the ranks are done.
pub fn serve() -> Result<()> {
    if let Some(member) = ElasticMember::server_from_env()? {
        return serve_elastic(member);
    }
    let member = Membership::from_env()?;
    let member =
        member.ok_or_else(|| {
            invalid("FERROFLOW_RANK and FERROFLOW_ADDRESS are not set: `ferroflow run --servers K` starts this command".into())
        })?;
    let group = Group::join(&member, GroupOptions::default())?;
    if !group.is_server() {
        return Err(invalid(format!("rank {} of the job is not a reduce server", group.rank())));
    }
    Engine::start(group, EngineOptions::default())?.serve()
}

/// Runs a reduce server for one group of ranks after the other.
fn serve_elastic(mut member: ElasticMember) -> Result<()> {
    loop {
        let group = match member.next_group(&GroupOptions::default()) {
            Ok(group) => group,
            Err(e) if is_job_done(&e) => return Ok(()),
            Err(e) => return Err(e),
        };
        if let Err(e) = Engine::start(group, EngineOptions::default())?.serve() {
            tracing::info!("the group has failed, this server joins the next one: {e}");
        }
    }
}
