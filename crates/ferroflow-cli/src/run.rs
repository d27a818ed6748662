//! `ferroflow run`: the processes of a job on this host or several.

mod address;
mod cluster;
mod discovery;
mod elastic;
mod environment;
mod hosts;
pub mod ports;
mod shortage;
pub mod summing;

pub use hosts::Host;

use crate::launch::{Guard, Process, RemoteShell, launch};
use ferroflow::{Code, Error, Result};
use hosts::{hosts, in_address, invalid, places, slots};

/// Start all processes of a job: parameter servers and workers, or ranks as mpirun and horovodrun do
///
/// With --workers: a cluster of parameter servers, which this command serves by itself, and workers, which
/// run the program. Each finds the cluster and its place in it in TF_CONFIG, as TensorFlow's programs
/// expect. When the workers are done, the parameter servers are ended.
///
/// With -np, or -H alone: ranks. Every process gets its place in the job in its environment: FERROFLOW_RANK,
/// FERROFLOW_SIZE, FERROFLOW_LOCAL_RANK, FERROFLOW_LOCAL_SIZE, FERROFLOW_ADDRESS and FERROFLOW_TOKEN, and
/// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT for programs that know those.
///
/// With -np and --min-np, --max-np or --host-discovery-script: an elastic job, which goes on without the
/// processes that are lost and takes in others.
///
/// What a process prints is passed on with its name in front; it gets no standard input. The first process that
/// fails is reported, ends the job and gives the exit code.
///
/// Processes on this host get all of this command's environment. Those on other hosts run in a directory of the same
/// name, with the environment that the remote shell gives them, the variables named above, and those of -x. The
/// values of -x can be seen in the lists of processes of both hosts, FERROFLOW_TOKEN cannot.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ferroflow run --ps 1 --workers 2 -- python train.py\n  \
    ferroflow run --ps 1 --workers 3 -H hosta:2,hostb:2 -- python train.py\n  \
    ferroflow run -np 4 -- python train.py\n  \
    ferroflow run -H hosta:2,me@hostb:2 -x PYTHONPATH -- ./train\n  \
    ferroflow run -np 4 --servers 4 --servers-only -- ./train\n  \
    ferroflow run -np 4 --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh -- ./train")]
pub struct Args {
    /// Ranks to start; -np N means the same [default: one for each slot of -H]
    #[arg(short = 'n', long = "np", value_name = "N", required_unless_present_any = ["workers", "hosts"])]
    np: Option<usize>,
    /// Parameter servers of a cluster [default: 1]
    #[arg(long, value_name = "P", requires = "workers", conflicts_with = "np")]
    ps: Option<usize>,
    /// Workers of a cluster, which run the program
    #[arg(long, value_name = "W", conflicts_with = "np")]
    workers: Option<usize>,
    /// Call the first worker the chief, as TensorFlow's Estimator wants it
    #[arg(long, requires = "workers")]
    chief: bool,
    /// Run the program once more, as the evaluator, which is no part of the cluster
    #[arg(long, requires = "workers")]
    evaluator: bool,
    /// Which tasks this command serves
    #[arg(long, value_enum, default_value_t = Serve::Ps, requires = "workers")]
    serve: Serve,
    /// Hosts and how many processes each takes, such as hosta:2,user@hostb:2,[fd00::7]:2; reached with --rsh
    #[arg(short = 'H', long, value_name = "HOST:SLOTS,…")]
    hosts: Option<String>,
    /// What has another host's shell run a line: {host} is the host, or else it follows, then the line. Its
    /// standard input must reach the line
    /// [default: $FERROFLOW_RSH, or ssh -tt -o BatchMode=yes]
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// Variable for all processes, on other hosts, too; without a value, as it is here. May be given again
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    pass_on: Vec<String>,
    /// Port of rank 0, or the first port of a cluster's tasks on each host; free ones if not given
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Spare processes on this host that sum for the others, so that each link carries less
    #[arg(long, value_name = "K", conflicts_with = "workers")]
    servers: Option<usize>,
    /// Those sum everything, as parameter servers do, instead of the part that loads all links alike
    #[arg(long, requires = "servers")]
    servers_only: bool,
    /// Hosts of the servers, instead of this one, such as hostc:1,hostd:1
    #[arg(long, value_name = "HOST:SLOTS,…", requires = "servers")]
    server_hosts: Option<String>,
    /// Begin with as few processes as this, and go on with them when others are lost; makes the job elastic
    #[arg(long, value_name = "N", conflicts_with_all = ["workers", "servers"])]
    min_np: Option<usize>,
    /// Take in as many processes as this when there are slots; makes the job elastic
    #[arg(long, value_name = "N", conflicts_with_all = ["workers", "servers"])]
    max_np: Option<usize>,
    /// Program that prints the hosts of now, HOST:SLOTS a line, asked every second; makes the job elastic
    #[arg(long, value_name = "PROG", requires = "np", conflicts_with_all = ["hosts", "servers"])]
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

/// Which tasks of a cluster are `ferroflow server`s that the launcher starts.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Serve {
    /// Parameter servers; the program serves its own task, as tf.train.Server does
    Ps,
    /// All: the program is a client of the server at FERROFLOW_TARGET
    All,
    /// None: the program runs as parameter server, too
    None,
}

impl Args {
    fn is_elastic(&self) -> bool {
        self.min_np.or(self.max_np).is_some() || self.host_discovery_script.is_some()
    }
}

/// What clap has against a command line, with a word about `--` if it took the program for something else.
pub fn explained(mut e: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let word = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if !word.starts_with('-') => word.clone(),
        _ => return e,
    };
    if e.kind() == ErrorKind::UnknownArgument {
        let tip = format!("put the program and its arguments after '--': -- {word} …");
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    e
}

pub fn run(args: Args) -> Result<()> {
    if args.np == Some(0) {
        return Err(invalid("-np must be at least 1".into()));
    }
    let shell = args.rsh.clone().or_else(|| std::env::var("FERROFLOW_RSH").ok());
    let shell = shell.as_deref().map_or_else(RemoteShell::default, RemoteShell::new);
    let np = match (args.np, args.workers, &args.hosts) {
        (None, None, Some(list)) => Some(slots(&hosts::parse(list)?)),
        (np, ..) => np,
    };
    let passed_on = environment::passed_on(&args.pass_on)?;
    let with_passed_on = |mut job: Vec<Process>| {
        // In front of what the launcher itself sets, which counts.
        job.iter_mut().for_each(|p| drop(p.env.splice(0..0, passed_on.iter().cloned())));
        job
    };
    let code = match np {
        Some(np) if args.is_elastic() => {
            let plan = elastic::Plan::new(&args, np)?;
            elastic::run(elastic::Plan { env: passed_on, ..plan }, &shell)
        }
        Some(np) => launch(with_passed_on(ranks(&args, np)?), &shell, Guard::start()),
        None => launch(with_passed_on(cluster::processes(&args, &shell)?), &shell, Guard::start()),
    };
    match code? {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}

/// The processes of an all-reduce job, in order of ranks, host by host; then those that sum for them.
fn ranks(args: &Args, n: usize) -> Result<Vec<Process>> {
    let hosts = hosts("-H", args.hosts.as_deref(), n)?;
    let places = places(&hosts, n);
    let servers = summing::hosts_of(args)?;
    let used = places.last().map_or(0, |p| p.0 + 1);
    let job: Vec<&Host> = hosts[..used].iter().chain(&servers).collect();
    let rank0 = address::address_of(&hosts[0], &job)?;
    let port = match args.port {
        Some(port) => port,
        None if hosts[0].is_here() => ports::free_ports(1)?[0],
        // What is free on another host is not known here.
        None => 20_000 + (std::process::id() % 10_000) as u16,
    };
    let address = format!("{}:{port}", in_address(&rank0));
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
            ("FERROFLOW_SERVERS_ONLY", u8::from(args.servers_only).to_string()),
            ("FERROFLOW_LOCAL_RANK", local.to_string()),
            ("FERROFLOW_LOCAL_SIZE", local_size.to_string()),
            ("FERROFLOW_ADDRESS", address.clone()),
            ("FERROFLOW_TOKEN", token.clone()),
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", n.to_string()),
            ("LOCAL_RANK", local.to_string()),
            ("LOCAL_WORLD_SIZE", local_size.to_string()),
            ("MASTER_ADDR", rank0.clone()),
            ("MASTER_PORT", port.to_string()),
        ];
        Process {
            label: rank.to_string(),
            name: format!("rank {rank}"),
            program: program.clone(),
            args: rest.to_vec(),
            env: env.map(|(name, value)| (name.to_string(), value)).to_vec(),
            host: hosts[host].login(),
            serves: false,
        }
    };
    let mut all: Vec<Process> = places.iter().enumerate().map(process).collect();
    all.extend(summing::processes(&servers, args, n, &address, &token)?);
    Ok(all)
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
pub mod tests {
    use super::*;

    pub fn args(np: usize, hosts: Option<&str>) -> Args {
        Args {
            np: Some(np),
            ps: None,
            workers: None,
            chief: false,
            evaluator: false,
            serve: Serve::Ps,
            hosts: hosts.map(Into::into),
            rsh: None,
            pass_on: Vec::new(),
            port: Some(99),
            servers: None,
            servers_only: false,
            server_hosts: None,
            min_np: None,
            max_np: None,
            host_discovery_script: None,
            max_failures: 3,
            elastic_timeout: 60,
            program: vec!["p".into(), "a".into()],
        }
    }

    fn job(np: usize, hosts: Option<&str>) -> Vec<Process> {
        ranks(&args(np, hosts), np).unwrap()
    }

    fn env<'a>(process: &'a Process, name: &str) -> &'a str {
        process.env.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    #[test]
    fn ranks_fill_hosts_in_order() {
        let all = job(3, Some("a:2,b:2"));
        let hosts: Vec<_> = all.iter().map(|p| p.host.as_deref().unwrap()).collect();
        assert_eq!(hosts, ["a", "a", "b"]);
        assert_eq!(env(&all[2], "FERROFLOW_LOCAL_RANK"), "0");
        assert_eq!(env(&all[2], "FERROFLOW_LOCAL_SIZE"), "1");
        assert_eq!(env(&all[1], "FERROFLOW_ADDRESS"), "a:99");
        assert_eq!(all[0].args, ["a"]);
    }

    #[test]
    fn a_host_that_is_listed_twice_counts_its_ranks_together() {
        let all = job(2, Some("localhost:1,localhost:1"));
        let locals = |name| all.iter().map(|p| env(p, name)).collect::<Vec<_>>();
        assert_eq!(locals("FERROFLOW_LOCAL_RANK"), ["0", "1"]);
        assert_eq!(locals("LOCAL_WORLD_SIZE"), ["2", "2"]);
    }

    #[test]
    fn an_address_has_no_user_and_needs_brackets_only_before_a_port() {
        let all = job(2, Some("me@[fd00::7]:1,192.0.2.7:1"));
        assert_eq!(all[0].host.as_deref(), Some("me@fd00::7"));
        assert_eq!(env(&all[1], "FERROFLOW_ADDRESS"), "[fd00::7]:99");
        assert_eq!(env(&all[1], "MASTER_ADDR"), "fd00::7");
    }

    #[test]
    fn without_hosts_all_run_here() {
        let all = job(2, None);
        assert!(all.iter().all(|p| p.host.is_none()));
        assert_eq!(env(&all[1], "MASTER_ADDR"), "127.0.0.1");
        assert_eq!(env(&all[0], "FERROFLOW_TOKEN"), env(&all[1], "FERROFLOW_TOKEN"));
    }

    #[test]
    fn servers_come_after_the_ranks() {
        let with = |servers_only| Args { servers: Some(2), servers_only, ..args(2, None) };
        let all = ranks(&with(true), 2).unwrap();
        assert!(all.iter().all(|p| env(p, "FERROFLOW_SERVERS_ONLY") == "1"));
        let all = ranks(&with(false), 2).unwrap();
        assert!(all.iter().all(|p| env(p, "FERROFLOW_SERVERS_ONLY") == "0"));
        assert_eq!(env(&all[3], "FERROFLOW_RANK"), "3");
        assert!(all.iter().all(|p| env(p, "FERROFLOW_SIZE") == "4"));
        assert_eq!((env(&all[1], "WORLD_SIZE"), all[2].args[0].as_str()), ("2", "reduce-server"));
        assert_eq!(all.iter().filter(|p| p.serves).count(), 2);
        let hosts = Some("c:1".to_string());
        let args = Args { servers: Some(2), server_hosts: hosts, ..args(2, None) };
        assert!(ranks(&args, 2).is_err());
    }
}
