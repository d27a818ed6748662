//! Reads the rank of this process from the environment variables of launchers: `ferroflow run`,
//! torchrun, Open MPI, PMI and Slurm.

use crate::exchange::LauncherStore;
use crate::rendezvous::{MOST_STREAMS, Membership, TransportChoice, check_streams};
use ferroflow_core::{Result, bail, err};
use ferroflow_identity::{Trust, take_secret};
use std::io::Write;

/// The launchers, with their variables for the rank and for the number of processes.
const LAUNCHERS: [(&str, &str, &str); 7] = [
    ("ferroflow run", "FERROFLOW_RANK", "FERROFLOW_SIZE"),
    // The number of a pod of an Indexed Job; Kubernetes does not say how many there are.
    ("Kubernetes", "JOB_COMPLETION_INDEX", "FERROFLOW_SIZE"),
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("Kubeflow Trainer", "PET_NODE_RANK", "PET_NNODES"),
    ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_NTASKS"),
];

impl Membership {
    /// The membership that the environment of this process describes. `None` if it describes none.
    ///
    /// `FERROFLOW_SERVERS` is the number of servers. The last processes are servers and sum for the
    /// others. With `FERROFLOW_SERVERS_ONLY=1` the other processes sum nothing.
    ///
    /// `FERROFLOW_ADDRESS` is the address of rank 0, or a comma-separated list with the addresses
    /// of all ranks. `MASTER_ADDR` and `MASTER_PORT` are an alternative. Without any of them, a job
    /// on one host uses loopback. On several hosts the ranks exchange addresses and credentials
    /// through PMIx or PMI, if the launcher offers one of them. Otherwise a Slurm job uses its
    /// first node with a port that follows from the job's number.
    ///
    /// `FERROFLOW_TRANSPORT` selects the links: `auto`, `tcp`, `shared` or `ucx`.
    /// `FERROFLOW_STREAMS` is the number of TCP connections between two ranks, from 1 to 16, for
    /// networks that limit the speed of each connection. The value of rank 0 applies to all ranks.
    ///
    /// With `FERROFLOW_VERBOSE=1`, rank 0 prints its automatic choices to standard error: the
    /// algorithms and how much is fused. It always prints a warning when a tensor waits for ranks.
    pub fn from_env() -> Result<Option<Membership>> {
        if let Some(conflict) = conflict(&variable) {
            print_note(&conflict);
        }
        membership(&variable)
    }

    /// Sets only the links from the environment, for a member that gets its rank elsewhere.
    pub(crate) fn set_links_from_env(&mut self) -> Result<()> {
        set_links(self, &variable)
    }
}

fn variable(name: &str) -> Option<String> {
    match name {
        // Other processes must not read the token in the environment of this one.
        "FERROFLOW_TOKEN" => take_secret(name),
        _ => std::env::var(name).ok().filter(|v| !v.is_empty()),
    }
}

fn set_links(member: &mut Membership, env: &dyn Fn(&str) -> Option<String>) -> Result<()> {
    if let Some(links) = env("FERROFLOW_TRANSPORT") {
        member.transport = TransportChoice::from_name(&links)?;
    }
    member.streams = streams(env)?;
    Ok(())
}

/// Whether to print automatic choices.
pub(crate) fn is_verbose() -> bool {
    variable("FERROFLOW_VERBOSE").is_some_and(|v| v != "0")
}

/// Prints to standard error. Ignores errors: the reader may have closed it.
pub(crate) fn print_note(text: &str) {
    let _ = writeln!(std::io::stderr(), "ferroflow: {}", text.trim_end());
}

/// A warning if another launcher contradicts `RANK` and `WORLD_SIZE`, which may be left over from
/// elsewhere.
fn conflict(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let said = |(launcher, rank, size)| Some((launcher, env(rank)?, env(size)?));
    if env("FERROFLOW_RANK").is_some() || env("TORCHELASTIC_RUN_ID").is_some() {
        return None;
    }
    let (_, rank, size) = said(("torchrun", "RANK", "WORLD_SIZE"))?;
    let after = LAUNCHERS.iter().skip_while(|launcher| launcher.0 != "torchrun").skip(1);
    let (launcher, others_rank, others_size) = after.copied().find_map(said)?;
    let agrees = (&rank, &size) == (&others_rank, &others_size);
    (!agrees).then(|| {
        format!(
            "RANK and WORLD_SIZE say rank {rank} of {size}, but {launcher} says {others_rank} of {others_size}; \
             unset them if they are left over"
        )
    })
}

fn membership(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Membership>> {
    let number = |name: &str| -> Result<Option<usize>> {
        let Some(text) = env(name) else { return Ok(None) };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| err!(InvalidArgument, "{name}={text:?} is not a number"))
    };
    if env("FERROFLOW_ELASTIC").is_some() {
        bail!(
            FailedPrecondition,
            "this job is elastic, so its processes have no fixed ranks: use hvd::elastic (ElasticMember::from_env), or start \
             it with -np alone, without --min-np, --max-np and --host-discovery-script"
        );
    }
    for (launcher, rank, size) in LAUNCHERS {
        let (Some(rank), Some(size)) = (number(rank)?, number(size)?) else { continue };
        // The script of a batch job has Slurm's variables too, with one task.
        if launcher == "srun" && env("SLURM_STEP_ID").is_none() {
            continue;
        }
        let mut member = Membership::new(rank, size, String::new());
        member.servers_only = servers_only(env)?;
        match meeting_place(env, launcher, size)? {
            MeetingPlace::Addresses(addresses) => member.addresses = addresses,
            MeetingPlace::Store(store) => member.store = Some(store),
        }
        member.token = env("FERROFLOW_TOKEN").unwrap_or_default();
        member.servers = number("FERROFLOW_SERVERS")?.unwrap_or(0);
        member.trust = Trust::from_env()?;
        set_links(&mut member, env)?;
        return Ok(Some(member));
    }
    Ok(None)
}

/// The value of `FERROFLOW_STREAMS`.
fn streams(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<usize>> {
    const NAME: &str = "FERROFLOW_STREAMS";
    let Some(text) = env(NAME) else { return Ok(None) };
    let asked = text.trim().parse().ok().map(check_streams);
    match asked {
        Some(Ok(streams)) => Ok(Some(streams)),
        _ => bail!(
            InvalidArgument,
            "{NAME}={text:?} is not a number of connections between two ranks: give 1 to \
             {MOST_STREAMS}, or unset it for one within a host and two between hosts"
        ),
    }
}

/// How the ranks of a job find each other.
enum MeetingPlace {
    /// At the address of rank 0, or those of all ranks.
    Addresses(Vec<String>),
    /// Through the launcher.
    Store(LauncherStore),
}

fn meeting_place(
    env: &dyn Fn(&str) -> Option<String>,
    launcher: &str,
    size: usize,
) -> Result<MeetingPlace> {
    let at = |address: String| Ok(MeetingPlace::Addresses(vec![address]));
    if let Some(given) = env("FERROFLOW_ADDRESS") {
        let all = given.split(',').map(|a| a.trim().to_string()).collect();
        return Ok(MeetingPlace::Addresses(all));
    }
    let job = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID"]
        .into_iter()
        .find_map(|name| env(name).map(|v| v + &env("SLURM_STEP_ID").unwrap_or_default()));
    // torchrun's own store listens at MASTER_PORT.
    let is_taken = env("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v == "True");
    let port = match (env("MASTER_PORT"), &job) {
        (Some(port), _) if is_taken => {
            port_of(&(env("TORCHELASTIC_RUN_ID").unwrap_or_default() + &port)).to_string()
        }
        (Some(port), _) => port,
        (None, Some(job)) => port_of(job).to_string(),
        (None, None) => "29400".into(),
    };
    if let (Some(host), Some(port)) = (env("PET_MASTER_ADDR"), env("PET_MASTER_PORT"))
        && launcher == "Kubeflow Trainer"
    {
        return at(format!("{host}:{port}"));
    }
    if let Some(host) = env("HOSTNAME").filter(|_| launcher == "Kubernetes")
        && env("MASTER_ADDR").is_none()
    {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        if let Some(rank0) = first_pod(&host, &hosts) {
            return at(format!("{rank0}:{port}"));
        }
    }
    if let Some(host) = env("MASTER_ADDR") {
        return at(format!("{host}:{port}"));
    }
    // The variables of Open MPI, of MPICH and its descendants, and of torchrun.
    let local = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"];
    let local = local.into_iter().find_map(env);
    let one_node = ["SLURM_STEP_NUM_NODES", "SLURM_NNODES"].into_iter().find_map(env);
    let is_one_node = launcher == "srun" && one_node.is_some_and(|nodes| nodes == "1");
    if size == 1 || is_one_node || local.is_some_and(|l| l.parse() == Ok(size)) {
        return at(format!("127.0.0.1:{port}"));
    }
    if let Some(store) = LauncherStore::find(env) {
        return Ok(MeetingPlace::Store(store));
    }
    let nodes = env("SLURM_STEP_NODELIST").or_else(|| env("SLURM_JOB_NODELIST"));
    if let Some(first) = nodes.as_deref().and_then(first_node) {
        return at(format!("{first}:{port}"));
    }
    bail!(
        FailedPrecondition,
        "{launcher} started {size} ranks, but the address of rank 0 is unknown, and there is no PMIx \
         or PMI to exchange it: set FERROFLOW_ADDRESS=HOST:PORT or MASTER_ADDR"
    )
}

fn servers_only(env: &dyn Fn(&str) -> Option<String>) -> Result<bool> {
    match env("FERROFLOW_SERVERS_ONLY").as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            bail!(InvalidArgument, "FERROFLOW_SERVERS_ONLY={other:?} must be 0 or 1")
        }
    }
}

/// The host name of the first pod of an Indexed Job, from that of another: `train-0.train` from
/// `train-3.train`. `hosts` is the file in which Kubernetes writes the whole name of a pod.
fn first_pod(host: &str, hosts: &str) -> Option<String> {
    let names = |line: &str| line.split_whitespace().skip(1).map(String::from).collect::<Vec<_>>();
    let lines = hosts.lines().filter(|line| !line.trim_start().starts_with('#')).map(names);
    let mut own = lines.filter(|names| names.iter().any(|name| name == host)).flatten();
    let whole = own.find(|name| name.starts_with(&format!("{host}.")));
    let whole = whole.unwrap_or_else(|| host.to_string());
    let (label, domain) = whole.split_at(whole.find('.').unwrap_or(whole.len()));
    let (name, index) = label.rsplit_once('-')?;
    index.parse::<u32>().ok().map(|_| format!("{name}-0{domain}"))
}

/// A port that all ranks of a job compute alike, outside the range of ephemeral ports.
fn port_of(job: &str) -> u16 {
    let hash = job.bytes().fold(5381u32, |h, b| h.wrapping_mul(33) ^ u32::from(b));
    20_000 + (hash % 10_000) as u16
}

/// The first node of a Slurm node list such as `gpu[03-05,9],login1`.
fn first_node(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let name = &list[..end];
    if !list[end..].starts_with('[') {
        return Some(name.to_string()).filter(|n| !n.is_empty());
    }
    let inside = &list[end + 1..];
    let number = &inside[..inside.find([',', '-', ']'])?];
    Some(format!("{name}{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(vars: &[(&str, &str)]) -> Result<Option<Membership>> {
        membership(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
    }

    fn found(vars: &[(&str, &str)]) -> Result<Option<(usize, usize, Vec<String>)>> {
        Ok(member(vars)?.map(|m| (m.rank, m.size, m.addresses)))
    }

    #[test]
    fn the_rank_is_read_from_the_variables_of_each_launcher() {
        assert_eq!(found(&[]).unwrap(), None);
        let ours =
            [("FERROFLOW_RANK", "1"), ("FERROFLOW_SIZE", "2"), ("FERROFLOW_ADDRESS", "a:1, b:2")];
        assert_eq!(found(&ours).unwrap(), Some((1, 2, vec!["a:1".into(), "b:2".into()])));
        let torch =
            [("RANK", "3"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "h"), ("MASTER_PORT", "99")];
        assert_eq!(found(&torch).unwrap(), Some((3, 4, vec!["h:99".into()])));
        let store = [("TORCHELASTIC_USE_AGENT_STORE", "True"), ("TORCHELASTIC_RUN_ID", "x")];
        let (_, _, addresses) = found(&[&torch[..], &store].concat()).unwrap().unwrap();
        assert!(addresses[0].starts_with("h:2"), "the store's port is taken: {addresses:?}");
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_NAMESPACE", "job-17"),
        ];
        let (_, _, addresses) = found(&mpi).unwrap().unwrap();
        assert!(addresses[0].starts_with("127.0.0.1:2"));
        let mpich = |here: &'static str| {
            [
                ("PMI_RANK", "0"),
                ("PMI_SIZE", "2"),
                ("MPI_LOCALNRANKS", here),
                ("MPI_LOCALRANKID", "0"),
            ]
        };
        assert_eq!(found(&mpich("2")).unwrap(), Some((0, 2, vec!["127.0.0.1:29400".into()])));
        assert!(found(&mpich("1")).is_err(), "rank 1 is on another host, and there is no PMI");
        let store = |vars: &[(&str, &str)]| {
            let all = [&mpich("1")[..], vars].concat();
            member(&all).unwrap().and_then(|m| m.store)
        };
        assert_eq!(store(&[("PMI_FD", "7")]), Some(LauncherStore::Pmi));
        let pmix = [("PMIX_NAMESPACE", "job-17"), ("PMIX_RANK", "0")];
        assert_eq!(store(&pmix), Some(LauncherStore::Pmix));
        assert_eq!(store(&[("PMI_FD", "7"), ("MASTER_ADDR", "h")]), None, "given beats exchanged");
        let slurm = [
            ("SLURM_PROCID", "5"),
            ("SLURM_NTASKS", "8"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_JOB_ID", "4242"),
            ("SLURM_STEP_NODELIST", "gpu[03-05,9]"),
        ];
        let (rank, _, addresses) = found(&slurm).unwrap().unwrap();
        assert!(rank == 5 && addresses[0].starts_with("gpu03:"), "{addresses:?}");
        let pod = [("JOB_COMPLETION_INDEX", "2"), ("FERROFLOW_SIZE", "4"), ("HOSTNAME", "t-2")];
        assert_eq!(found(&pod).unwrap(), Some((2, 4, vec!["t-0:29400".into()])));
        let named = [&pod[..2], &[("FERROFLOW_ADDRESS", "j-rank-0-0.j:7")]].concat();
        assert_eq!(found(&named).unwrap(), Some((2, 4, vec!["j-rank-0-0.j:7".into()])));
        let kubeflow = [
            ("PET_NODE_RANK", "1"),
            ("PET_NNODES", "2"),
            ("PET_MASTER_ADDR", "j-node-0-0.j"),
            ("PET_MASTER_PORT", "29500"),
        ];
        let at = vec!["j-node-0-0.j:29500".to_string()];
        assert_eq!(found(&kubeflow).unwrap(), Some((1, 2, at)));
        let one_node = [&slurm[..], &[("SLURM_STEP_NUM_NODES", "1")]].concat();
        let (_, _, addresses) = found(&one_node).unwrap().unwrap();
        assert!(addresses[0].starts_with("127.0.0.1:"), "{addresses:?}");
    }

    #[test]
    fn servers_only_is_read_from_the_environment() {
        let with = |only: &[(&str, &str)]| {
            let job = [("FERROFLOW_RANK", "2"), ("FERROFLOW_SIZE", "3"), ("MASTER_ADDR", "h")];
            member(&[&job[..], &[("FERROFLOW_SERVERS", "1")], only].concat())
        };
        let shared = with(&[]).unwrap().unwrap();
        assert_eq!((shared.servers, shared.servers_only), (1, false));
        assert!(with(&[("FERROFLOW_SERVERS_ONLY", "1")]).unwrap().unwrap().servers_only);
        assert!(!with(&[("FERROFLOW_SERVERS_ONLY", "0")]).unwrap().unwrap().servers_only);
        let e = with(&[("FERROFLOW_SERVERS_ONLY", "yes")]).unwrap_err();
        assert!(e.message().contains("FERROFLOW_SERVERS_ONLY=\"yes\""), "{e}");
    }

    #[test]
    fn errors_name_the_variable_that_is_missing_or_wrong() {
        let e = found(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).unwrap_err();
        assert!(e.message().contains("FERROFLOW_ADDRESS"));
        assert!(
            found(&[("RANK", "x"), ("WORLD_SIZE", "2")]).unwrap_err().message().contains("RANK")
        );
        // An elastic process has no rank, even if an outer launcher sets one.
        let outer = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_STEP_ID", "0")];
        for others in [&[][..], &outer] {
            let e = found(&[&[("FERROFLOW_ELASTIC", "h:1")], others].concat()).unwrap_err();
            assert!(e.message().contains("hvd::elastic"), "{e}");
        }
    }

    #[test]
    fn leftover_torchrun_variables_cause_a_warning() {
        let warning = |vars: &[(&str, &str)]| {
            conflict(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
        };
        let mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        let with =
            |rank, more: &[_]| warning(&[&[("RANK", rank), ("WORLD_SIZE", "2")], more].concat());
        let text = with("0", &mpi).unwrap();
        assert!(text.contains("rank 0 of 2") && text.contains("mpirun says 1 of 2"), "{text}");
        assert_eq!((with("1", &mpi), with("0", &[]), warning(&mpi)), (None, None, None));
        let inner = [mpi[0], mpi[1], ("TORCHELASTIC_RUN_ID", "x")];
        assert_eq!(with("0", &inner), None, "torchrun within mpirun");
    }

    #[test]
    fn the_number_of_connections_must_be_1_to_16() {
        let asked = |text: &str| {
            let vars = [("RANK", "0"), ("WORLD_SIZE", "1"), ("FERROFLOW_STREAMS", text)];
            let env =
                |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
            Ok(membership(&env)?.unwrap().streams)
        };
        assert_eq!(asked("1").unwrap(), Some(1));
        assert_eq!(asked(" 16").unwrap(), Some(16));
        for wrong in ["0", "17", "-1", "two", "1.5", "99999999999999999999"] {
            let e: ferroflow_core::Error = asked(wrong).unwrap_err();
            let says = |part: &str| e.message().contains(part);
            assert!(says("FERROFLOW_STREAMS") && says(wrong) && says("1 to 16"), "{e}");
        }
    }

    #[test]
    fn the_first_pod_of_a_job_is_found_from_another() {
        let hosts = "127.0.0.1 localhost\n10.2.0.7\ttrain-3.train.ns.svc.cluster.local\ttrain-3\n";
        let first = |host| first_pod(host, hosts);
        assert_eq!(first("train-3").as_deref(), Some("train-0.train.ns.svc.cluster.local"));
        assert_eq!(first("other-1").as_deref(), Some("other-0"));
        assert_eq!(first("alone"), None);
    }

    #[test]
    fn the_first_node_of_a_slurm_list_is_found() {
        for (list, first) in [("n1,n2", "n1"), ("n[1-3]", "n1"), ("c[07,9]", "c07"), ("x", "x")] {
            assert_eq!(first_node(list).as_deref(), Some(first));
        }
        assert_eq!(first_node(""), None);
        assert_eq!(first_node("n["), None);
    }
}
