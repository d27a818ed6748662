//! Places the tasks of a parameter-server job on hosts and builds the environment of each process.

use super::address::address_of;
use super::hook::Hook;
use super::hosts::{Host, hosts, in_address, invalid, places};
use super::ports;
use super::secrets::JobSecrets;
use super::summing;
use super::{Args, RankJob, Serve};
use crate::launch::{OutputLog, Process, RemoteShell};
use ferroflow::cluster::Trust;
use ferroflow::{Code, Error, Result};
use ferroflow_identity::{rank_role, task_role};
use serde_json::{Value, json};

/// One task of the job.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    job: &'static str,
    index: usize,
    /// Index of its host.
    host: usize,
    /// `host:port`; `None` for an evaluator, which is outside the cluster.
    address: Option<String>,
    /// The address at which the launcher reads the metrics of a task on another host.
    http: Option<String>,
}

impl Task {
    /// Whether it trains.
    fn is_worker(&self) -> bool {
        matches!(self.job, "chief" | "worker")
    }

    /// Its name in messages.
    fn name(&self) -> String {
        match self.job {
            "chief" | "evaluator" => self.job.to_string(),
            job => format!("{job} {}", self.index),
        }
    }
}

/// A job of parameter servers and workers.
pub struct ClusterJob {
    /// Its processes, servers first.
    pub processes: Vec<Process>,
    /// HTTP addresses of tasks on other hosts, which require these credentials.
    pub http: Vec<String>,
    pub trust: Trust,
}

/// The processes of a job, and the addresses of their metrics.
pub fn job(args: &Args, shell: &RemoteShell, hook: &Hook) -> Result<ClusterJob> {
    let mut tasks = tasks_of(args)?;
    let servers = summing::hosts_of(args)?;
    let mut hosts = hosts("-H", args.hosts.as_deref(), tasks.len())?;
    for (task, (host, _)) in tasks.iter_mut().zip(places(&hosts, usize::MAX)) {
        task.host = host;
    }
    hosts.truncate(tasks.last().map_or(0, |last| last.host + 1));
    let job: Vec<&Host> = tasks.iter().map(|t| &hosts[t.host]).chain(&servers).collect();
    let spans = !job.iter().all(|h| h.is_here());
    // Tasks on other hosts show their metrics to peers with a certificate of the job.
    let shows = |host: &Host| host.login().is_some() && !args.insecure && args.http.is_none();
    let rank_tasks: Vec<usize> = match args.hybrid_ps() {
        Some(_) => (0..tasks.len()).filter(|&i| tasks[i].is_worker()).collect(),
        None => Vec::new(),
    };
    let (mut addresses, mut meeting) = (Vec::with_capacity(hosts.len()), String::new());
    for (h, host) in hosts.iter().enumerate() {
        let of_host = |t: &&mut Task| t.host == h && t.job != "evaluator";
        let count = tasks.iter_mut().filter(of_host).count();
        let has_rank0 = rank_tasks.first().is_some_and(|&first| tasks[first].host == h);
        let shown = if shows(host) { count } else { 0 };
        let number = count + usize::from(has_rank0) + shown;
        let mut ports = free_ports(args.port, host, number, shell)?;
        let http = ports.split_off(ports.len() - shown);
        let address = address_of(host, &job)?;
        if has_rank0 && let Some(port) = ports.pop() {
            meeting = format!("{}:{port}", in_address(&address));
        }
        for (task, port) in tasks.iter_mut().filter(of_host).zip(ports) {
            task.address = Some(format!("{}:{port}", in_address(&address)));
        }
        for (task, port) in tasks.iter_mut().filter(of_host).zip(http) {
            task.http = Some(format!("{}:{port}", in_address(&address)));
        }
        addresses.push(address);
    }
    let secrets = JobSecrets::new(spans, args.insecure)?;
    let mut all = describe(args, &tasks, &hosts, spans.then_some(&addresses), &secrets)?;
    if !rank_tasks.is_empty() {
        let of_ranks = rank_tasks.iter().map(|&i| tasks[i].host).collect();
        let ranks = RankJob { hosts: of_ranks, address: &meeting };
        let is_rank = |p: &&mut Process| rank_tasks.iter().any(|&i| tasks[i].name() == p.name);
        for (rank, process) in all.iter_mut().filter(is_rank).enumerate() {
            process.env.extend(ranks.env(args, rank, servers.len(), &secrets));
        }
        let n = rank_tasks.len();
        all.extend(summing::processes(&servers, args, n, &meeting, &secrets, &job)?);
    }
    // The folder of the hook is on this host only.
    let here = all.iter_mut().filter(|p| p.host.is_none() && env_has(p, "TF_CONFIG"));
    for process in here {
        let client = env_has(process, "FERROFLOW_TARGET").then_some(args.client);
        process.env.extend(hook.env(client)?);
        process.env.push(("FERROFLOW_TASK_FLAGS".into(), "1".into()));
    }
    let http = tasks.iter().filter_map(|task| task.http.clone()).collect();
    let trust = secrets.trust("launcher", "localhost")?;
    Ok(ClusterJob { processes: all, http, trust })
}

fn env_has(process: &Process, name: &str) -> bool {
    process.env.iter().any(|(n, _)| n == name)
}

/// All tasks, not yet placed: parameter servers, then workers, then the evaluator.
fn tasks_of(args: &Args) -> Result<Vec<Task>> {
    let (ps, workers) = (args.ps.unwrap_or(1), args.workers.or(args.np).unwrap_or(0));
    if workers == 0 {
        return Err(invalid("a job needs at least one worker".into()));
    }
    let task = |job, index| Task { job, index, host: 0, address: None, http: None };
    let mut tasks: Vec<Task> = (0..ps).map(|i| task("ps", i)).collect();
    tasks.extend(args.chief.then(|| task("chief", 0)));
    tasks.extend((0..workers - usize::from(args.chief)).map(|i| task("worker", i)));
    tasks.extend(args.evaluator.then(|| task("evaluator", 0)));
    Ok(tasks)
}

/// Ports of a host: consecutive ones from `first`, or any free ones.
fn free_ports(
    first: Option<u16>,
    host: &Host,
    count: usize,
    shell: &RemoteShell,
) -> Result<Vec<u16>> {
    if let Some(first) = first {
        let last = usize::from(first) + count;
        if last > usize::from(u16::MAX) + 1 {
            return Err(invalid(format!("there are no {count} ports from {first} on")));
        }
        return Ok((usize::from(first)..last).map(|port| port as u16).collect());
    }
    if host.login().is_none() || count == 0 {
        return ports::free_ports(count);
    }
    let login = host.login().unwrap_or_else(|| host.name.clone());
    let said = shell.ask(&login, &[&own_program()?, "ports", &count.to_string()]);
    let said = said.map_err(|e| {
        e.context("cannot ask for free ports there (--port P uses P, P + 1, … without asking)")
    })?;
    ports::parse(&said, count).ok_or_else(|| {
        let text = format!("{}: expected {count} ports, got {said:?}", host.name);
        Error::new(Code::Unavailable, text)
    })
}

fn own_program() -> Result<String> {
    let path = crate::own_program()
        .map_err(|e| Error::new(Code::NotFound, format!("cannot find this program: {e}")))?;
    Ok(path.display().to_string())
}

/// The process of each task. `addresses` are those of the hosts, if the job spans several.
fn describe(
    args: &Args,
    tasks: &[Task],
    hosts: &[Host],
    addresses: Option<&Vec<String>>,
    secrets: &JobSecrets,
) -> Result<Vec<Process>> {
    let Some((program, rest)) = args.program.split_first() else {
        return Err(invalid("no program to run".into()));
    };
    let spec = cluster_json(tasks);
    let own = own_program()?;
    let host_of = |t: &Task| hosts[t.host].login();
    // The tasks of a job with named hosts must reach each other.
    let bind = |t: &Task| {
        let address = &addresses?[t.host];
        let is_number = address.parse::<std::net::IpAddr>().is_ok();
        Some(if is_number { address.clone() } else { "0.0.0.0".into() })
    };
    let secret_env = |t: &Task| {
        let host = &hosts[t.host];
        let address = addresses.map_or("127.0.0.1", |all| all[t.host].as_str());
        let mut roles = vec![task_role(t.job, t.index as u32)];
        if args.hybrid_ps().is_some() && t.is_worker() {
            // A chief is rank 0, and the workers follow it.
            let before = usize::from(args.chief && t.job == "worker");
            roles.push(rank_role(t.index + before));
        }
        secrets.env(&roles, host, address)
    };
    let http_env = |t: &Task| t.http.clone().map(|at| ("FERROFLOW_HTTP".to_string(), at));
    let server = |t: &Task, name: String| -> Result<Process> {
        let (job, index) = (t.job.to_string(), t.index.to_string());
        let mut words = vec!["server".into(), "--cluster".into(), spec.to_string()];
        words.extend(["--job".into(), job, "--task".into(), index]);
        words.extend(bind(t).into_iter().flat_map(|to| ["--bind".into(), to]));
        if args.serve == Serve::All && secrets.has_certificates() {
            // The program beside the server is its client. It may be TensorFlow, which has no TLS.
            words.push("--plain-on-this-host".into());
        }
        let mut env = secret_env(t)?;
        env.extend(http_env(t));
        Ok(Process {
            label: name.clone(),
            name,
            program: own.clone(),
            args: words,
            env,
            host: host_of(t),
            serves: true,
            log: OutputLog::default(),
        })
    };
    let given = |t: &Task, serves: bool| -> Result<Process> {
        let config = json!({"cluster": spec, "task": {"type": t.job, "index": t.index}});
        let mut env = vec![("TF_CONFIG".to_string(), config.to_string())];
        env.extend(bind(t).map(|to| ("FERROFLOW_BIND".into(), to)));
        if let (Serve::All, Some(address)) = (args.serve, &t.address) {
            env.push(("FERROFLOW_TARGET".into(), format!("grpc://{address}")));
        }
        env.extend(secret_env(t)?);
        // With --serve all, the server of the task serves the metrics.
        env.extend(http_env(t).filter(|_| args.serve != Serve::All));
        Ok(Process {
            label: t.name(),
            name: t.name(),
            program: program.clone(),
            args: rest.to_vec(),
            env,
            host: host_of(t),
            serves,
            log: OutputLog::default(),
        })
    };
    let (mut serving, mut working) = (Vec::new(), Vec::new());
    for task in tasks {
        match (task.job, args.serve) {
            ("ps", Serve::None) => serving.push(given(task, true)?),
            ("ps", _) => serving.push(server(task, task.name())?),
            ("evaluator", _) => working.push(given(task, false)?),
            (_, Serve::All) => {
                serving.push(server(task, format!("{} server", task.name()))?);
                working.push(given(task, false)?);
            }
            _ => working.push(given(task, false)?),
        }
    }
    serving.extend(working);
    Ok(serving)
}

/// Jobs and the addresses of their tasks, in the form of TF_CONFIG.
fn cluster_json(tasks: &[Task]) -> Value {
    let mut jobs = serde_json::Map::new();
    for task in tasks {
        let Some(address) = &task.address else { continue };
        let list = jobs.entry(task.job).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(json!(address));
        }
    }
    Value::Object(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn job(line: &str) -> Result<Vec<Process>> {
        let words = std::iter::once("run").chain(line.split(' ')).chain(["--", "prog", "arg"]);
        let args = Line::try_parse_from(words).unwrap().args;
        let job = super::job(&args, &RemoteShell::new("false"), &Hook::write().unwrap());
        job.map(|job| job.processes)
    }

    fn config(process: &Process) -> Value {
        let (_, text) = process.env.iter().find(|(name, _)| name == "TF_CONFIG").unwrap();
        serde_json::from_str(text).unwrap()
    }

    fn names(job: &[Process]) -> Vec<&str> {
        job.iter().map(|p| p.name.as_str()).collect()
    }

    #[test]
    fn workers_run_the_program_and_ps_are_served_here() {
        let all = job("--ps 2 --workers 2").unwrap();
        assert_eq!(names(&all), ["ps 0", "ps 1", "worker 0", "worker 1"]);
        assert_eq!(all.iter().map(|p| p.serves).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(all[1].args[0], "server");
        assert_eq!(all[1].args[3..], ["--job", "ps", "--task", "1"]);
        assert_eq!(all[3].program, "prog");
        assert_eq!(all[3].args, ["arg"]);
        let config = config(&all[3]);
        assert_eq!(config["task"], json!({"type": "worker", "index": 1}));
        assert_eq!(config["cluster"].to_string(), all[0].args[2]);
        let address = config["cluster"]["worker"][1].as_str().unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
    }

    #[test]
    fn ranks_of_a_hybrid_job_are_workers_too() {
        let all = job("--ps 2 -n 2 --servers 1").unwrap();
        assert_eq!(names(&all), ["ps 0", "ps 1", "worker 0", "worker 1", "server 0"]);
        let env = |process: &Process, name: &str| {
            let found = process.env.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        for (rank, process) in all[2..4].iter().enumerate() {
            assert_eq!(config(process)["task"], json!({"type": "worker", "index": rank}));
            assert_eq!(env(process, "FERROFLOW_RANK"), rank.to_string());
            assert_eq!(env(process, "FERROFLOW_SIZE"), "3");
            assert_eq!(env(process, "LOCAL_RANK"), rank.to_string());
            assert_eq!(env(process, "FERROFLOW_ADDRESS"), env(&all[4], "FERROFLOW_ADDRESS"));
        }
        assert_eq!(env(&all[0], "FERROFLOW_RANK"), "");
        let meeting = env(&all[2], "FERROFLOW_ADDRESS");
        assert!(!config(&all[2])["cluster"].to_string().contains(&meeting), "a port of its own");
        let chief = job("--ps 1 -n 2 --workers 2 --chief --port 2000").unwrap();
        assert_eq!(names(&chief), ["ps 0", "chief", "worker 0"]);
        assert_eq!(env(&chief[1], "FERROFLOW_RANK"), "0");
        assert_eq!(env(&chief[2], "FERROFLOW_ADDRESS"), "127.0.0.1:2003");
    }

    #[test]
    fn the_first_worker_is_the_chief_if_asked() {
        let all = job("--ps 1 --workers 2 --chief --evaluator").unwrap();
        assert_eq!(names(&all), ["ps 0", "chief", "worker 0", "evaluator"]);
        let config = config(&all[3]);
        assert_eq!(config["task"], json!({"type": "evaluator", "index": 0}));
        let jobs: Vec<_> = config["cluster"].as_object().unwrap().keys().collect();
        assert_eq!(jobs, ["chief", "ps", "worker"], "an evaluator is no part of the cluster");
    }

    #[test]
    fn who_serves_can_be_chosen() {
        let none = job("--ps 1 --workers 1 --serve none").unwrap();
        assert!(none[0].serves && none[0].program == "prog");
        assert_eq!(config(&none[0])["task"]["type"], "ps");
        let all = job("--ps 1 --workers 1 --serve all").unwrap();
        assert_eq!(names(&all), ["ps 0", "worker 0 server", "worker 0"]);
        let target = all[2].env.iter().find(|(name, _)| name == "FERROFLOW_TARGET").unwrap();
        let address = config(&all[2])["cluster"]["worker"][0].as_str().unwrap().to_string();
        assert_eq!(target.1, format!("grpc://{address}"));
    }

    #[test]
    fn tasks_of_several_hosts_listen_where_the_others_reach_them() {
        let all = job("--ps 1 --workers 2 -H 10.9.8.7:2,hostb:1 --port 2000").unwrap();
        assert_eq!(all[0].host.as_deref(), Some("10.9.8.7"));
        assert_eq!(all[0].args[7..], ["--bind", "10.9.8.7"]);
        assert_eq!(all[2].host.as_deref(), Some("hostb"));
        let cluster = &config(&all[2])["cluster"];
        let want = json!({"ps": ["10.9.8.7:2000"], "worker": ["10.9.8.7:2001", "hostb:2000"]});
        assert_eq!(*cluster, want);
        let http = |process: &Process| {
            let found = process.env.iter().find(|(name, _)| name == "FERROFLOW_HTTP");
            found.map(|(_, at)| at.clone())
        };
        let shown: Vec<_> = all.iter().map(http).collect();
        assert_eq!(shown[0].as_deref(), Some("10.9.8.7:2002"));
        assert_eq!(shown[2].as_deref(), Some("hostb:2001"));
        let open = job("--ps 1 --workers 2 -H 10.9.8.7:2,hostb:1 --port 2000 --insecure").unwrap();
        assert!(open.iter().all(|process| http(process).is_none()));
        for (line, says) in [
            (
                "--ps 1 --workers 1 -H localhost:1,no-such-host.invalid:1 --port 1",
                "name this host by an address that the others can reach",
            ),
            (
                "--ps 1 --workers 1 -H hostb:1",
                "2 processes for 1 slot: add slots, such as -H hostb:2",
            ),
            ("--ps 1 --workers 1 -H hostb:2", "--port P"),
            ("--ps 1 --workers 1 --port 65535", "no 2 ports from 65535"),
            ("--workers 0", "at least one worker"),
        ] {
            let e = job(line).unwrap_err();
            assert!(e.to_string().contains(says), "{line}: {e}");
        }
    }
}
