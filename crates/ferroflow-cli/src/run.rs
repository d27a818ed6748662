//! `ferroflow run`: the processes of a job on this host or several.

use crate::launch::{Process, launch};
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
    ferroflow run -np 4 -H hosta:2,hostb:2 -- ./train")]
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
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROG")]
    program: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    match launch(ranks(&args)?)? {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}

/// A host and the processes that it takes.
#[derive(Debug, PartialEq)]
struct Host {
    name: String,
    slots: usize,
}

fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

fn hosts(list: &str) -> Result<Vec<Host>> {
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

fn is_here(name: &str) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    matches!(name, "localhost" | "127.0.0.1" | "::1") || name == own.trim()
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
    let used = places.last().map_or(0, |p| p.0 + 1);
    let all_here = hosts[..used].iter().all(|h| is_here(&h.name));
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
            ("FERROFLOW_SIZE", n.to_string()),
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
    Ok(places.iter().enumerate().map(process).collect())
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
    fn too_many_processes_and_odd_hosts_are_refused() {
        assert!(ranks(&args(5, Some("a:2,b:2"))).is_err());
        for odd in ["a:x", ":2", "a:0", "-oProxyCommand=x:1"] {
            assert!(hosts(odd).is_err(), "{odd}");
        }
    }
}
