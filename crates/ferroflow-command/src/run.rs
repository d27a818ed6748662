//! `ferroflow run`: starts the processes of a job on one or several hosts.

mod address;
mod cluster;
mod discovery;
mod elastic;
mod elastic_ps;
mod environment;
mod hook;
pub mod horovod;
mod hosts;
mod http_ports;
pub mod ports;
mod secrets;
mod shortage;
pub mod single;
pub mod summing;

pub use elastic::bounds as elastic_bounds;
pub use hook::Client;
pub use hosts::Host;

use crate::dashboard::{JobBoard, Sources};
use crate::launch::{Guard, OutputLog, Process, RemoteShell, launch, tell};
use ferroflow::Result;
use ferroflow::cluster::Trust;
use ferroflow::collective::TransportChoice;
use ferroflow_identity::rank_role;
use hosts::{hosts, in_address, invalid, places, slots};
use http_ports::HttpPorts;
use secrets::JobSecrets;

/// Start all processes of a job: parameter servers and workers, or ranks as mpirun and horovodrun
/// do
///
/// With neither -np, --workers nor -H: one program. If it uses TensorFlow, its sessions without a
/// target run on a Ferroflow server in the current folder, each with variables of its own. Ops that
/// Ferroflow does not run are listed before the first step. Where TensorFlow is not installed, the
/// package ferroflow takes its place.
///
/// With --workers: a cluster of parameter servers and workers. This command runs the parameter
/// servers, and the workers run the program. Each process gets its place in the cluster in
/// TF_CONFIG, as TensorFlow programs expect. Programs that define the flags --job_name,
/// --task_index, --ps_hosts and --worker_hosts get those too. With --serve all, tf.train.Server
/// uses the server that this command runs for the task. When the workers have exited, the launcher
/// stops the parameter servers.
///
/// With -np, or -H alone: ranks of an all-reduce job. Each process gets its place in
/// FERROFLOW_RANK, FERROFLOW_SIZE, FERROFLOW_LOCAL_RANK, FERROFLOW_LOCAL_SIZE, FERROFLOW_ADDRESS
/// and FERROFLOW_TOKEN. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set too, for
/// programs that read those.
///
/// With -np and --min-np, --max-np or --host-discovery-script: an elastic job. It continues when
/// processes are lost and admits new ones. The launcher restarts its reduce servers (--servers)
/// when they die; until then the ranks continue without them.
///
/// With -np and --ps: a hybrid job, whose ranks reduce dense variables between them and keep tables
/// on parameter servers. Each rank gets the variables of both kinds of jobs. If the job is elastic
/// too, the parameter servers run on this host, and the launcher restarts them when they die. A
/// line `ps COUNT` of the host discovery script changes their number while the job runs.
///
/// Flags of mpirun and horovodrun are understood, or named as ignored. The `--` before the program
/// may be left out.
///
/// The launcher forwards each output line with the name of its process in front. Processes get no
/// standard input. The first process that fails ends the job; the launcher reports it and exits
/// with its code.
///
/// Processes on this host inherit the environment of this command. Processes on other hosts run in
/// a directory of the same name, with the remote shell's environment, the variables named above,
/// and those of -x. Other users can see -x values in the process list of both hosts; they cannot
/// see FERROFLOW_TOKEN and FERROFLOW_CREDENTIALS.
///
/// If the job leaves this host, the launcher makes a CA for it and gives each process a certificate
/// in FERROFLOW_CREDENTIALS: all connections of the job use mutual TLS.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ferroflow run -- python train.py\n  ferroflow run --ps 1 --workers 2 -- python train.py\n  \
    ferroflow run --ps 1 --workers 3 -H hosta:2,hostb:2 -- python train.py\n  \
    ferroflow run -np 4 -- python train.py\n  \
    ferroflow run -H hosta:2,me@hostb:2 -x PYTHONPATH -- ./train\n  \
    ferroflow run -np 4 --servers 4 --servers-only -- ./train\n  \
    ferroflow run -np 4 --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh -- ./train\n  \
    ferroflow run -np 4 --min-np 2 --servers 2 -- ./train\n  \
    ferroflow run --ps 2 -np 4 -- ./recommender"
)]
pub struct Args {
    /// Ranks to start; -np N is accepted too [default: one per slot of -H]
    #[arg(short = 'n', long = "np", value_name = "N")]
    np: Option<usize>,
    /// Parameter servers of a cluster, or of a hybrid job with -np [default: 1]
    #[arg(long, value_name = "P")]
    ps: Option<usize>,
    /// Workers of a cluster, which run the program; with -np, the same number
    #[arg(long, value_name = "W")]
    workers: Option<usize>,
    /// Name the first worker `chief`, as TensorFlow's Estimator expects
    #[arg(long, requires = "workers")]
    chief: bool,
    /// Also run the program as an evaluator, outside the cluster
    #[arg(long, requires = "workers")]
    evaluator: bool,
    /// Which tasks this command runs servers for
    #[arg(long, value_enum, default_value_t = Serve::Ps, requires = "workers")]
    serve: Serve,
    /// Library that builds the graphs of a program that imports TensorFlow
    #[arg(long, value_enum, default_value_t = Client::Auto, conflicts_with = "np")]
    client: Client,
    /// Hosts with their slots, for example hosta:2,user@hostb:2,[fd00::7]:2; reached with --rsh
    #[arg(short = 'H', long, value_name = "HOST:SLOTS,…")]
    hosts: Option<String>,
    /// Command that runs a line on another host, for example `ssh -p 2222 {host}`; it must forward
    /// standard input. Without {host}, the host name is appended [default: $FERROFLOW_RSH, or ssh
    /// -tt -o BatchMode=yes]
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// Environment variable for all processes on all hosts; without VALUE, this shell's value.
    /// Repeatable
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    pass_on: Vec<String>,
    /// Port of rank 0, or the first port of the tasks on each host [default: any free ports]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Extra reduce servers on this host that share the summing, so that each link carries less
    #[arg(long, value_name = "K")]
    servers: Option<usize>,
    /// Reduce servers sum everything, as parameter servers do, instead of an equal share per link
    #[arg(long, requires = "servers")]
    servers_only: bool,
    /// Hosts of the reduce servers, for example hostc:1,hostd:1 [default: this host]
    #[arg(long, value_name = "HOST:SLOTS,…", requires = "servers")]
    server_hosts: Option<String>,
    /// Links between ranks: auto, tcp, shared or ucx [default: $FERROFLOW_TRANSPORT, or auto]
    #[arg(long, value_name = "LINKS", conflicts_with = "workers")]
    transport: Option<String>,
    /// Smallest number of processes to start or continue with; makes the job elastic
    #[arg(long, value_name = "N")]
    min_np: Option<usize>,
    /// Largest number of processes to admit when slots are free; makes the job elastic
    #[arg(long, value_name = "N")]
    max_np: Option<usize>,
    /// Program that prints the current hosts, one HOST:SLOTS per line; run every second; makes the
    /// job elastic
    #[arg(long, value_name = "PROG", requires = "np", conflicts_with = "hosts")]
    host_discovery_script: Option<String>,
    /// Failures of processes on one host after which an elastic job stops using that host
    /// [default: 3]
    #[arg(long, value_name = "N")]
    max_failures: Option<usize>,
    /// Seconds that an elastic job waits for more processes when it has fewer than --min-np
    #[arg(long, value_name = "S", default_value_t = 60)]
    elastic_timeout: u64,
    /// Let processes on several hosts work together without certificates: every host of the network
    /// can then run code in the job. TensorFlow's own servers need this
    #[arg(long)]
    insecure: bool,
    /// Show the job as a page in the browser, at this address [default address: a free port of
    /// loopback]. Shows the processes on this host
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1:0")]
    dashboard: Option<String>,
    /// HTTP address of the first process, HOST:PORT or PORT; the others use the ports after it:
    /// health and /metrics of every process
    #[arg(long, value_name = "ADDR", conflicts_with = "dashboard")]
    http: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROG")]
    program: Vec<String>,
}

/// The tasks for which the launcher starts a `ferroflow server`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Serve {
    /// Parameter servers; each worker's program runs its own server, as tf.train.Server does
    Ps,
    /// All: the program is a client of the server at FERROFLOW_TARGET
    All,
    /// None: the program also runs as parameter server
    None,
}

/// A job without hosts, for a launcher that places processes by itself.
pub struct JobShape {
    pub tasks: JobTasks,
    /// Whether this command runs servers as parameter servers, instead of the program.
    pub serves_ps: bool,
    /// Variables of -x.
    pub env: Vec<(String, String)>,
    pub port: Option<u16>,
    pub insecure: bool,
    pub program: Vec<String>,
    /// Seconds that an elastic job waits for processes.
    pub elastic_timeout: u64,
    /// The port of health and metrics. It is the same for all processes, because each has an
    /// address of its own.
    pub http: Option<u16>,
}

/// The processes of a job.
#[derive(Clone, Copy)]
pub enum JobTasks {
    Ranks(usize),
    /// Ranks that join and leave: their initial, smallest and largest number.
    Elastic {
        np: usize,
        min: usize,
        max: usize,
    },
    Cluster {
        ps: usize,
        workers: usize,
        chief: bool,
        evaluator: bool,
    },
}

impl Args {
    /// The job that these flags describe. Flags that only `ferroflow run` can obey are errors.
    pub fn shape(&self) -> Result<JobShape> {
        let absent = [
            ("-H", self.hosts.is_some()),
            ("--rsh", self.rsh.is_some()),
            ("--servers", self.servers.is_some()),
            ("--host-discovery-script", self.host_discovery_script.is_some()),
            ("--serve all", self.serve == Serve::All),
            ("--client", self.client != Client::Auto),
            ("--dashboard", self.dashboard.is_some()),
            ("--max-failures", self.max_failures.is_some()),
        ];
        if let Some((flag, _)) = absent.iter().find(|(_, given)| *given) {
            return Err(invalid(format!("{flag} has no meaning here: leave it out")));
        }
        let tasks = match (self.np, self.workers) {
            _ if self.hybrid_ps().is_some() => {
                return Err(invalid("--ps with -np has no meaning here: leave one out".into()));
            }
            (Some(np), _) if np > 0 && self.is_elastic() => {
                let (min, max) = elastic::bounds(np, self.min_np, self.max_np)?;
                JobTasks::Elastic { np, min, max }
            }
            (Some(np), _) if np > 0 => JobTasks::Ranks(np),
            (None, Some(_)) if self.is_elastic() => {
                return Err(invalid("--min-np and --max-np are for ranks: give -np N".into()));
            }
            (None, Some(workers)) if workers > 0 => JobTasks::Cluster {
                ps: self.ps.unwrap_or(1),
                workers,
                chief: self.chief,
                evaluator: self.evaluator,
            },
            _ => return Err(invalid("give -np N or --workers W, at least 1".into())),
        };
        let mut env = environment::passed_on(&self.pass_on)?;
        env.extend(self.chosen_transport()?);
        let http = self.http.as_deref().map(HttpPorts::parse).transpose()?;
        Ok(JobShape {
            tasks,
            serves_ps: self.serve == Serve::Ps,
            env,
            http: http.map(|ports| ports.first()),
            port: self.port,
            insecure: self.insecure,
            program: self.program.clone(),
            elastic_timeout: self.elastic_timeout,
        })
    }

    /// The number of parameter servers of a hybrid job; `None` if the job is not hybrid.
    fn hybrid_ps(&self) -> Option<usize> {
        let is_hybrid = self.np.is_some() && self.ps.or(self.workers).is_some();
        is_hybrid.then(|| self.ps.unwrap_or(1))
    }

    /// Fails if the flags describe no job.
    fn check(&self) -> Result<()> {
        if self.np == Some(0) {
            return Err(invalid("-np must be at least 1".into()));
        }
        match (self.np, self.workers) {
            (Some(np), Some(workers)) if np != workers => {
                let text = format!("-np {np} and --workers {workers}: each rank is a worker");
                return Err(invalid(format!("{text}, so give the same number or one of the two")));
            }
            (None, None) if self.ps.is_some() => {
                return Err(invalid("--ps needs --workers W, or -np N for a hybrid job".into()));
            }
            (None, Some(_)) if self.servers.is_some() || self.is_elastic() => {
                let text = "--servers, --min-np and --max-np are for ranks: give -np N";
                return Err(invalid(text.into()));
            }
            _ => {}
        }
        if self.hybrid_ps() == Some(0) {
            return Err(invalid("a hybrid job needs at least one parameter server (--ps)".into()));
        }
        if self.hybrid_ps().is_some() && self.is_elastic() && (self.chief || self.evaluator) {
            let text = "--chief and --evaluator name fixed tasks, which an elastic job has not";
            return Err(invalid(text.into()));
        }
        Ok(())
    }

    /// The variable of --transport.
    fn chosen_transport(&self) -> Result<Option<(String, String)>> {
        let Some(links) = &self.transport else { return Ok(None) };
        TransportChoice::from_name(links)?;
        Ok(Some(("FERROFLOW_TRANSPORT".into(), links.clone())))
    }

    fn is_elastic(&self) -> bool {
        self.min_np.or(self.max_np).is_some() || self.host_discovery_script.is_some()
    }
}

pub fn run(args: Args) -> Result<()> {
    args.check()?;
    let shell = args.rsh.clone().or_else(|| std::env::var("FERROFLOW_RSH").ok());
    let shell = shell.as_deref().map_or_else(RemoteShell::default, RemoteShell::new);
    let np = match (args.np, args.workers, &args.hosts) {
        (None, None, Some(list)) => Some(slots(&hosts::parse(list)?)),
        (np, ..) => np,
    };
    let mut passed_on = environment::passed_on(&args.pass_on)?;
    passed_on.extend(args.chosen_transport()?);
    let ports = args.http.as_deref().map(HttpPorts::parse).transpose()?;
    if np.is_none() && args.workers.is_none() {
        let page = args.dashboard.as_deref();
        let watched = page.map(|page| JobBoard::start(Some(page), None)).transpose()?;
        passed_on.extend(watched.iter().flat_map(JobBoard::env));
        passed_on.extend(ports.map(|ports| ports.of(0)));
        return exit_with(single::run(&args.program, args.client, &passed_on)?);
    }
    let with_passed_on = |mut job: Vec<Process>| {
        // Added first, so that the launcher's own variables override these.
        for (i, process) in job.iter_mut().enumerate() {
            let http = ports.as_ref().map(|ports| ports.of(i));
            process.env.splice(0..0, passed_on.iter().cloned().chain(http));
        }
        job
    };
    let code = match np {
        Some(_) if args.is_elastic() && ports.is_some() => {
            let text = "--http gives each process its own port, which an elastic job cannot: use \
                        --dashboard";
            return Err(invalid(text.into()));
        }
        Some(np) if args.is_elastic() => {
            let plan = elastic::ElasticPlan::new(&args, np)?;
            elastic::run(elastic::ElasticPlan { env: passed_on, ..plan }, &shell)
        }
        Some(np) if args.hybrid_ps().is_none() => {
            let hook = hook::Hook::write()?;
            let (mut job, trust) = ranks(&args, np)?;
            // The folder of the hook is on this host only.
            for process in job.iter_mut().filter(|p| p.host.is_none()) {
                process.env.extend(hook.env(None)?);
            }
            let sources = Sources { trust, ..Sources::default() };
            let watched = watch(args.dashboard.as_deref(), np, sources)?;
            launch_watched(with_passed_on(job), &shell, watched.as_ref())
        }
        _ => {
            let hook = hook::Hook::write()?;
            let job = cluster::job(&args, &shell, &hook)?;
            let processes = with_passed_on(job.processes);
            let sources = Sources { addresses: job.http, trust: job.trust, ..Sources::default() };
            let watched = watch(args.dashboard.as_deref(), processes.len(), sources)?;
            launch_watched(processes, &shell, watched.as_ref())
        }
    };
    exit_with(code?)
}

/// Larger jobs are watched only at the user's request.
const MOST_WATCHED: usize = 64;

/// Watches a job of `count` processes, for the page and for the report of stragglers at its end.
fn watch(page: Option<&str>, count: usize, sources: Sources) -> Result<Option<JobBoard>> {
    let is_small = count <= MOST_WATCHED;
    (is_small || page.is_some()).then(|| JobBoard::with(page, sources)).transpose()
}

/// Runs the processes, and reports slow ones at the end.
fn launch_watched(
    mut processes: Vec<Process>,
    shell: &RemoteShell,
    watched: Option<&JobBoard>,
) -> Result<u8> {
    if let Some(watched) = watched {
        for process in &mut processes {
            process.log = OutputLog::on(&watched.board, &process.name);
        }
        // The folder of the board is on this host only.
        for process in processes.iter_mut().filter(|process| process.host.is_none()) {
            show_to(watched, process);
        }
    }
    let code = launch(processes, shell, Guard::start());
    watched.iter().for_each(|watched| tell_stragglers(watched));
    code
}

/// Gives a process the HTTP address that the board reads: the user's, or else a free port.
fn show_to(watched: &JobBoard, process: &mut Process) {
    let is_given = |name: &str| {
        let own = process.env.iter().any(|(n, _)| n == name);
        own || std::env::var(name).is_ok_and(|value| !value.is_empty())
    };
    let env: Vec<_> = watched.env().into_iter().filter(|(name, _)| !is_given(name)).collect();
    process.env.splice(0..0, env);
}

/// Reports slow tasks, with the phase and the time since when they are slow.
fn tell_stragglers(watched: &JobBoard) {
    watched.board.report().into_iter().for_each(tell);
}

/// Ends this process with the exit code of the job, unless that is success.
fn exit_with(code: u8) -> Result<()> {
    match code {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}

/// The processes of an all-reduce job in rank order, host by host; then the reduce servers. Also
/// returns the trust of the launcher.
fn ranks(args: &Args, n: usize) -> Result<(Vec<Process>, Trust)> {
    let hosts = hosts("-H", args.hosts.as_deref(), n)?;
    let places = places(&hosts, n);
    let servers = summing::hosts_of(args)?;
    let used = places.last().map_or(0, |p| p.0 + 1);
    let job: Vec<&Host> = hosts[..used].iter().chain(&servers).collect();
    let rank0 = address::address_of(&hosts[0], &job)?;
    let port = match args.port {
        Some(port) => port,
        None if hosts[0].is_here() => ports::free_ports(1)?[0],
        // This host cannot know which ports are free on another one.
        None => 20_000 + (std::process::id() % 10_000) as u16,
    };
    let address = format!("{}:{port}", in_address(&rank0));
    let secrets = JobSecrets::new(job.iter().any(|h| h.login().is_some()), args.insecure)?;
    let Some((program, rest)) = args.program.split_first() else {
        return Err(invalid("no program to run".into()));
    };
    let of_job = RankJob { hosts: places.iter().map(|place| place.0).collect(), address: &address };
    let process = |(rank, &(host, _)): (usize, &(usize, usize))| {
        let mut env = of_job.env(args, rank, servers.len(), &secrets);
        let at = address::address_of(&hosts[host], &job)?;
        env.extend(secrets.env(&[rank_role(rank)], &hosts[host], &at)?);
        Ok(Process {
            label: rank.to_string(),
            name: format!("rank {rank}"),
            program: program.clone(),
            args: rest.to_vec(),
            env,
            host: hosts[host].login(),
            serves: false,
            log: OutputLog::default(),
        })
    };
    let mut all: Vec<Process> = places.iter().enumerate().map(process).collect::<Result<_>>()?;
    all.extend(summing::processes(&servers, args, n, &address, &secrets, &job)?);
    Ok((all, secrets.trust("launcher", "localhost")?))
}

/// The ranks of a job.
struct RankJob<'a> {
    /// The host of each rank.
    hosts: Vec<usize>,
    /// The address of rank 0.
    address: &'a str,
}

impl RankJob<'_> {
    /// The variables that give a process its rank, in a job with this many reduce servers.
    fn env(
        &self,
        args: &Args,
        rank: usize,
        servers: usize,
        secrets: &JobSecrets,
    ) -> Vec<(String, String)> {
        let n = self.hosts.len();
        let here = |ranks: &[usize]| ranks.iter().filter(|&&host| host == self.hosts[rank]).count();
        let (local, local_size) = (here(&self.hosts[..rank]), here(&self.hosts));
        let (host, port) = self.address.rsplit_once(':').unwrap_or((self.address, ""));
        let env = [
            ("FERROFLOW_RANK", rank.to_string()),
            ("FERROFLOW_SIZE", (n + servers).to_string()),
            ("FERROFLOW_SERVERS", servers.to_string()),
            ("FERROFLOW_SERVERS_ONLY", u8::from(args.servers_only).to_string()),
            ("FERROFLOW_LOCAL_RANK", local.to_string()),
            ("FERROFLOW_LOCAL_SIZE", local_size.to_string()),
            ("FERROFLOW_ADDRESS", self.address.to_string()),
            ("FERROFLOW_TOKEN", secrets.token().reveal().to_string()),
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", n.to_string()),
            ("LOCAL_RANK", local.to_string()),
            ("LOCAL_WORLD_SIZE", local_size.to_string()),
            ("MASTER_ADDR", host.trim_matches(['[', ']']).to_string()),
            ("MASTER_PORT", port.to_string()),
        ];
        env.map(|(name, value)| (name.to_string(), value)).to_vec()
    }
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
            client: Client::Auto,
            hosts: hosts.map(Into::into),
            rsh: None,
            pass_on: Vec::new(),
            port: Some(99),
            servers: None,
            servers_only: false,
            server_hosts: None,
            transport: None,
            min_np: None,
            max_np: None,
            host_discovery_script: None,
            max_failures: None,
            elastic_timeout: 60,
            insecure: false,
            dashboard: None,
            http: None,
            program: vec!["p".into(), "a".into()],
        }
    }

    fn job(np: usize, hosts: Option<&str>) -> Vec<Process> {
        ranks(&args(np, hosts), np).unwrap().0
    }

    fn env<'a>(process: &'a Process, name: &str) -> &'a str {
        process.env.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    #[test]
    fn a_program_needs_no_other_word() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let parse = |words: &[&str]| <Line as clap::Parser>::try_parse_from(words);
        let alone = parse(&["run", "--", "p"]).map(|line| line.args).unwrap();
        assert!(alone.np.is_none() && alone.workers.is_none() && alone.hosts.is_none());
        for some in [["--np", "2"], ["--workers", "2"], ["-H", "a:2"]] {
            assert!(parse(&["run", some[0], some[1], "--", "p"]).is_ok(), "{some:?}");
        }
    }

    #[test]
    fn flags_that_describe_no_job_are_refused() {
        let with = |np, ps, workers| Args { np, ps, workers, ..args(1, None) };
        for (wrong, says) in [
            (with(Some(0), None, None), "at least 1"),
            (with(None, Some(1), None), "--ps needs --workers"),
            (with(Some(2), Some(1), Some(3)), "each rank is a worker"),
            (with(Some(2), Some(0), None), "at least one parameter server"),
            (Args { servers: Some(1), ..with(None, Some(1), Some(2)) }, "give -np N"),
            (Args { min_np: Some(1), ..with(None, Some(1), Some(2)) }, "give -np N"),
        ] {
            let e = wrong.check().unwrap_err();
            assert!(e.message().contains(says), "{e}");
        }
        for right in [with(Some(2), Some(1), None), with(Some(2), Some(1), Some(2))] {
            right.check().unwrap();
            assert_eq!(right.hybrid_ps(), Some(1));
        }
        assert_eq!(with(None, Some(1), Some(2)).hybrid_ps(), None);
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
        let all = ranks(&with(true), 2).unwrap().0;
        assert!(all.iter().all(|p| env(p, "FERROFLOW_SERVERS_ONLY") == "1"));
        let all = ranks(&with(false), 2).unwrap().0;
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
