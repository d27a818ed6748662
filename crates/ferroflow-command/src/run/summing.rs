//! Reduce servers: extra processes that share the summing, so that each link carries less.

use super::address::address_of;
use super::hosts::{Host, hosts, invalid};
use super::secrets::JobSecrets;
use crate::launch::Process;
use ferroflow::Result;
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
    let own = crate::own_program()
        .map_err(|e| invalid(format!("cannot find the path of this program: {e}")))?;
    let process = |(i, host): (usize, &Host)| {
        let env = [
            ("FERROFLOW_RANK", (n + i).to_string()),
            ("FERROFLOW_SIZE", (n + hosts.len()).to_string()),
            ("FERROFLOW_SERVERS", hosts.len().to_string()),
            ("FERROFLOW_SERVERS_ONLY", u8::from(args.servers_only).to_string()),
            ("FERROFLOW_ADDRESS", address.to_string()),
            ("FERROFLOW_TOKEN", secrets.token().reveal().to_string()),
        ];
        let here = host.login().is_none();
        let mut env = env.map(|(name, value)| (name.to_string(), value)).to_vec();
        env.extend(secrets.env(&[rank_role(n + i)], host, &address_of(host, job)?)?);
        Ok(Process {
            label: format!("server {i}"),
            name: format!("server {i}"),
            program: if here { own.display().to_string() } else { "ferroflow".into() },
            args: vec!["reduce-server".into()],
            env,
            host: host.login(),
            serves: true,
        })
    };
    hosts.iter().enumerate().map(process).collect()
}

/// Serves until the ranks are done.
pub fn serve() -> Result<()> {
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
