//! `ferroflow run`: the processes of a job on this host or several.

use crate::elastic;
use crate::launch::{Process, launch};
use ferroflow::collective::{Engine, EngineOptions, Group, Membership, Options};
use ferroflow::{Code, Error, Result};
use std::net::TcpListener;

/// Start a program on many ranks, as mpirun and horovodrun do
///
/// Every process gets its place in the job in its environment: FERROFLOW_RANK, FERROFLOW_SIZE,
/// FERROFLOW_LOCAL_RANK, FERROFLOW_LOCAL_SIZE, FERROFLOW_ADDRESS and FERROFLOW_TOKEN, and RANK, WORLD_SIZE,
/// LOCAL_RANK, MASTER_ADDR and MASTER_PORT for programs that know those. What it prints is passed on
/// with its rank in front. The first process that fails ends the job and gives the exit code.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ferroflow run -np 4 -- python train.py\n  \
    ferroflow run -np 4 -H hosta:2,hostb:2 -- ./train\n  \
    ferroflow run -np 4 --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh -- ./train")]
pub struct Args {
    /// Processes to start; -np N means the same
    #[arg(long = "np", value_name = "N")]
    np: usize,
    /// Hosts and how many processes each takes, such as hosta:2,hostb:2; reached with ssh
    #[arg(short = 'H', long, value_name = "HOST:SLOTS,…")]
    hosts: Option<String>,
    /// Port of rank 0; a free one if not given
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Spare processes on this host that sum for the others, so that each link carries less
    #[arg(long, value_name = "K", default_value_t = 0)]
    servers: usize,
    /// Hosts of those instead, such as hostc:1,hostd:1
    #[arg(long, value_name = "HOST:SLOTS,…", requires = "servers")]
    server_hosts: Option<String>,
    /// Go on with as few processes as this when some are lost, and start others; makes the job elastic
    #[arg(long, value_name = "N")]
    min_np: Option<usize>,
    /// Take in as many processes as this when there are slots; makes the job elastic
    #[arg(long, value_name = "N")]
    max_np: Option<usize>,
    /// Program that prints the hosts of now, HOST:SLOTS a line, asked every second; makes the job elastic
    #[arg(long, value_name = "PROG", conflicts_with = "hosts")]
    host_discovery_script: Option<String>,
    /// How often processes of a host may fail before an elastic job starts no more there
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_failures: usize,
    /// Seconds that too few processes of an elastic job wait for others
    #[arg(long, value_name = "S", default_value_t = 60)]
    elastic_timeout: u64,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROG")]
    program: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    let is_elastic = args.min_np.or(args.max_np).is_some() || args.host_discovery_script.is_some();
    let code = if is_elastic { elastic::run(plan(args)?) } else { launch(ranks(&args)?) };
    match code? {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}

/// A host and the processes that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub name: String,
    pub slots: usize,
}

fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

/// Hosts and their slots, as `hosta:2,hostb`.
pub fn hosts(list: &str) -> Result<Vec<Host>> {
    let parse = |part: &str| {
        let (name, slots) = part.trim().rsplit_once(':').unwrap_or((part.trim(), "1"));
        let slots = slots.parse().ok().filter(|&s| s > 0);
        match slots {
            Some(slots) if !name.is_empty() && !name.starts_with('-') => {
                Ok(Host { name: name.into(), slots })
            }
            _ => Err(invalid(format!("{part:?} is no host; write hosts as hosta:2,hostb:2"))),
        }
    };
    list.split(',').map(parse).collect()
}

pub fn is_here(name: &str) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    matches!(name, "localhost" | "127.0.0.1" | "::1") || name == own.trim()
}

/// What an elastic job is to do.
fn plan(args: Args) -> Result<elastic::Plan> {
    let (np, min) = (args.np, args.min_np.unwrap_or(args.np));
    let max = args.max_np.unwrap_or(np.max(min));
    if min == 0 || np < min || max < np {
        let text = format!("{np} processes, at least {min} and at most {max}, make no sense");
        return Err(invalid(text));
    }
    let hosts = match (&args.hosts, &args.host_discovery_script) {
        (Some(list), _) => hosts(list)?,
        (None, Some(script)) => elastic::ask(script)?,
        (None, None) => vec![Host { name: "localhost".into(), slots: max }],
    };
    let Some((program, rest)) = args.program.split_first() else {
        return Err(invalid("no program to run".into()));
    };
    Ok(elastic::Plan {
        np,
        min,
        max,
        hosts,
        script: args.host_discovery_script.clone(),
        failures: args.max_failures.max(1),
        patience: std::time::Duration::from_secs(args.elastic_timeout),
        program: program.clone(),
        args: rest.to_vec(),
    })
}

/// The processes of an all-reduce job, in order of ranks, host by host.
fn ranks(args: &Args) -> Result<Vec<Process>> {
    let n = args.np;
    let hosts = match &args.hosts {
        Some(list) => hosts(list)?,
        None => vec![Host { name: "localhost".into(), slots: n }],
    };
    let slots: usize = hosts.iter().map(|h| h.slots).sum();
    if n == 0 || n > slots {
        return Err(invalid(format!("{n} processes for {slots} slots")));
    }
    let places: Vec<(usize, usize)> = hosts
        .iter()
        .enumerate()
        .flat_map(|(h, host)| (0..host.slots).map(move |local| (h, local)))
        .take(n)
        .collect();
    let servers = server_places(args)?;
    let used = places.last().map_or(0, |p| p.0 + 1);
    let all_here =
        hosts[..used].iter().all(|h| is_here(&h.name)) && servers.iter().all(|host| is_here(host));
    let rank0 = if all_here { "127.0.0.1" } else { hosts[0].name.as_str() };
    let port = match args.port {
        Some(port) => port,
        None if is_here(&hosts[0].name) => free_port()?,
        // What is free on another host is not known here.
        None => 20_000 + (std::process::id() % 10_000) as u16,
    };
    let token = token()?;
    let Some((program, rest)) = args.program.split_first() else {
        return Err(invalid("no program to run".into()));
    };
    let process = |(rank, &(host, local)): (usize, &(usize, usize))| {
        let local_size = places.iter().filter(|p| p.0 == host).count();
        let env = [
            ("FERROFLOW_RANK", rank.to_string()),
            ("FERROFLOW_SIZE", (n + servers.len()).to_string()),
            ("FERROFLOW_SERVERS", servers.len().to_string()),
            ("FERROFLOW_LOCAL_RANK", local.to_string()),
            ("FERROFLOW_LOCAL_SIZE", local_size.to_string()),
            ("FERROFLOW_ADDRESS", format!("{rank0}:{port}")),
            ("FERROFLOW_TOKEN", token.clone()),
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", n.to_string()),
            ("LOCAL_RANK", local.to_string()),
            ("LOCAL_WORLD_SIZE", local_size.to_string()),
            ("MASTER_ADDR", rank0.to_string()),
            ("MASTER_PORT", port.to_string()),
        ];
        Process {
            label: rank.to_string(),
            name: format!("rank {rank}"),
            program: program.clone(),
            args: rest.to_vec(),
            env: env.map(|(name, value)| (name.to_string(), value)).to_vec(),
            host: Some(hosts[host].name.clone()).filter(|h| !is_here(h)),
            serves: false,
        }
    };
    let mut all: Vec<Process> = places.iter().enumerate().map(process).collect();
    let own = std::env::current_exe().map_err(|e| invalid(format!("who am I: {e}")))?;
    for (i, host) in servers.iter().enumerate() {
        let env = [
            ("FERROFLOW_RANK", (n + i).to_string()),
            ("FERROFLOW_SIZE", (n + servers.len()).to_string()),
            ("FERROFLOW_SERVERS", servers.len().to_string()),
            ("FERROFLOW_ADDRESS", format!("{rank0}:{port}")),
            ("FERROFLOW_TOKEN", token.clone()),
        ];
        let here = is_here(host);
        all.push(Process {
            label: format!("server {i}"),
            name: format!("server {i}"),
            program: if here { own.display().to_string() } else { "ferroflow".into() },
            args: vec!["reduce-server".into()],
            env: env.map(|(name, value)| (name.to_string(), value)).to_vec(),
            host: Some(host.clone()).filter(|_| !here),
            serves: true,
        });
    }
    Ok(all)
}

/// The host of each server.
fn server_places(args: &Args) -> Result<Vec<String>> {
    let hosts = match &args.server_hosts {
        Some(list) => hosts(list)?,
        None => vec![Host { name: "localhost".into(), slots: args.servers }],
    };
    let slots: Vec<String> = hosts.iter().flat_map(|h| vec![h.name.clone(); h.slots]).collect();
    if args.servers > slots.len() {
        return Err(invalid(format!("{} servers for {} slots", args.servers, slots.len())));
    }
    Ok(slots.into_iter().take(args.servers).collect())
}

/// Sum for the ranks of the job that the environment describes
#[derive(clap::Args)]
pub struct ReduceServer {}

pub fn reduce_server() -> Result<()> {
    let member = Membership::from_env()?;
    let member =
        member.ok_or_else(|| invalid("nothing in the environment says for whom".into()))?;
    let group = Group::join(&member, Options::default())?;
    if !group.is_server() {
        return Err(invalid(format!("rank {} of the job is no server", group.rank())));
    }
    Engine::start(group, EngineOptions::default())?.serve()
}

/// A port that nobody listens on now; rank 0 is about to.
pub fn free_port() -> Result<u16> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    bound.map(|a| a.port()).map_err(|e| Error::new(Code::Unavailable, format!("no free port: {e}")))
}

/// What only the processes of this job know.
pub fn token() -> Result<String> {
    let mut bytes = [0u8; 16];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut f| std::io::Read::read_exact(&mut f, &mut bytes));
    read.map_err(|e| Error::new(Code::Unavailable, format!("no random numbers: {e}")))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(np: usize, hosts: Option<&str>) -> Args {
        Args {
            np,
            hosts: hosts.map(Into::into),
            port: Some(99),
            servers: 0,
            server_hosts: None,
            min_np: None,
            max_np: None,
            host_discovery_script: None,
            max_failures: 3,
            elastic_timeout: 60,
            program: vec!["p".into(), "a".into()],
        }
    }

    fn env<'a>(process: &'a Process, name: &str) -> &'a str {
        process.env.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    #[test]
    fn ranks_fill_hosts_in_order() {
        let all = ranks(&args(3, Some("a:2,b:2"))).unwrap();
        let hosts: Vec<_> = all.iter().map(|p| p.host.as_deref().unwrap()).collect();
        assert_eq!(hosts, ["a", "a", "b"]);
        assert_eq!(env(&all[2], "FERROFLOW_LOCAL_RANK"), "0");
        assert_eq!(env(&all[2], "FERROFLOW_LOCAL_SIZE"), "1");
        assert_eq!(env(&all[1], "FERROFLOW_ADDRESS"), "a:99");
        assert_eq!(all[0].args, ["a"]);
    }

    #[test]
    fn without_hosts_all_run_here() {
        let all = ranks(&args(2, None)).unwrap();
        assert!(all.iter().all(|p| p.host.is_none()));
        assert_eq!(env(&all[1], "MASTER_ADDR"), "127.0.0.1");
        assert_eq!(env(&all[0], "FERROFLOW_TOKEN"), env(&all[1], "FERROFLOW_TOKEN"));
    }

    #[test]
    fn servers_come_after_the_ranks() {
        let all = ranks(&Args { servers: 2, ..args(2, None) }).unwrap();
        assert_eq!(env(&all[3], "FERROFLOW_RANK"), "3");
        assert!(all.iter().all(|p| env(p, "FERROFLOW_SIZE") == "4"));
        assert_eq!((env(&all[1], "WORLD_SIZE"), all[2].args[0].as_str()), ("2", "reduce-server"));
        assert_eq!(all.iter().filter(|p| p.serves).count(), 2);
        let hosts = Some("c:1".to_string());
        assert!(ranks(&Args { servers: 2, server_hosts: hosts, ..args(2, None) }).is_err());
    }

    #[test]
    fn elastic_limits_must_hold_each_other() {
        let with = |np, min, max| plan(Args { min_np: min, max_np: max, ..args(np, None) });
        let plan = with(2, Some(1), Some(4)).unwrap();
        assert_eq!((plan.np, plan.min, plan.max, plan.hosts[0].slots), (2, 1, 4, 4));
        assert_eq!(with(2, Some(1), None).unwrap().max, 2);
        assert!(with(2, Some(3), None).is_err() && with(2, None, Some(1)).is_err());
        assert!(with(2, Some(0), None).is_err());
    }

    #[test]
    fn too_many_processes_and_odd_hosts_are_refused() {
        assert!(ranks(&args(5, Some("a:2,b:2"))).is_err());
        for odd in ["a:x", ":2", "a:0", "-oProxyCommand=x:1"] {
            assert!(hosts(odd).is_err(), "{odd}");
        }
    }
}
