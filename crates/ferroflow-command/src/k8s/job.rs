//! The job that `ferroflow k8s render` writes: its pods by role, and their common parts.

use super::secret::Secret;
use super::{Format, RenderArgs, wrong};
use crate::run::{JobShape, JobTasks};
use ferroflow::Result;
use serde_json::{Value, json};

/// The name of the job, in the values of variables. The controller fills it in, so the same pods
/// work under every name.
pub const JOB_NAME: &str = "$(FERROFLOW_JOB_NAME)";
/// The mount path of the Secret.
pub const CREDENTIALS: &str = "/ferroflow/credentials";
/// The port of health probes.
pub const HEALTH_PORT: u16 = 8080;

const RANK_PORT: u16 = 29_400;
const TASK_PORT: u16 = 2222;

/// The contents of the manifests.
pub struct KubernetesJob {
    pub name: String,
    pub image: String,
    pub secret: Option<Secret>,
    pub checkpoints: Option<String>,
    pub max_restarts: u32,
    pub cpu: Option<String>,
    pub memory: Option<String>,
    pub gpus: Option<u32>,
    pub is_insecure: bool,
    /// The port of health and metrics of every task and rank.
    pub http: Option<u16>,
    pub roles: Vec<PodRole>,
    /// Variables that the user has set.
    pub env: Vec<(String, String)>,
}

/// The pods of one role, which are one Job.
pub struct PodRole {
    /// The name of the Job, and of the container.
    pub name: &'static str,
    pub count: usize,
    /// The most pods: an elastic job may get more than `count`.
    pub most: usize,
    /// The variable that holds the number of a pod.
    pub place: &'static str,
    pub command: Vec<String>,
    pub port: u16,
    /// Variables that identify the task.
    pub env: Vec<Value>,
    /// Whether the success of these pods is the success of the job.
    pub decides: bool,
    /// Whether a failed pod restarts alone. Otherwise the whole job restarts.
    pub restarts_alone: bool,
    /// Whether it answers health probes.
    pub has_health: bool,
    /// Whether it runs the user's program.
    pub runs_program: bool,
    /// Whether it is a task or a rank, which has metrics.
    pub has_metrics: bool,
}

impl KubernetesJob {
    pub fn new(args: &RenderArgs) -> Result<KubernetesJob> {
        check_name(&args.name)?;
        check_quantity("--cpu", args.cpu.as_deref())?;
        check_quantity("--memory", args.memory.as_deref())?;
        let shape = args.job.shape()?;
        let roles = match shape.tasks {
            JobTasks::Ranks(n) => vec![ranks(&shape, n)],
            JobTasks::Elastic { np, min, max } if args.format == Format::Jobset => {
                elastic(&shape, np, min, max)
            }
            JobTasks::Elastic { .. } => {
                return Err(wrong("an elastic job is written as a JobSet: leave out --as"));
            }
            JobTasks::Cluster { .. } => tasks(&shape)?,
        };
        let secret = match (&args.secret, shape.insecure) {
            (Some(name), _) => Some(Secret::existing(name)),
            (None, true) => None,
            (None, false) => Some(Secret::new(&args.name, &roles)?),
        };
        Ok(KubernetesJob {
            name: args.name.clone(),
            image: args.image.clone(),
            secret,
            checkpoints: args.checkpoints.clone(),
            max_restarts: args.max_restarts,
            cpu: args.cpu.clone(),
            memory: args.memory.clone(),
            gpus: args.gpus,
            is_insecure: shape.insecure,
            http: shape.http,
            roles,
            env: shape.env,
        })
    }
}

/// Names of jobs are part of host names.
fn check_name(name: &str) -> Result<()> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= 40
        && name.chars().all(is_letter);
    match is_good {
        true => Ok(()),
        false => Err(wrong(format!(
            "--name {name:?} cannot be part of a host name: use up to 40 lower-case letters, digits and dashes"
        ))),
    }
}

/// Kubernetes writes amounts as a number with a suffix, such as 4, 500m, 8Gi or 1e9.
fn check_quantity(flag: &str, text: Option<&str>) -> Result<()> {
    const SUFFIXES: &str = " n u m k M G T P E Ki Mi Gi Ti Pi Ei ";
    let Some(text) = text else { return Ok(()) };
    let is_number = |text: &str| {
        let starts = text.starts_with(|c: char| c.is_ascii_digit());
        starts && text.parse::<f64>().is_ok_and(|n| n > 0.0 && n.is_finite())
    };
    let (number, suffix) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let is_known = SUFFIXES.contains(&format!(" {suffix} "));
    match is_number(text) || is_number(number) && is_known {
        true => Ok(()),
        false => Err(wrong(format!(
            "{flag} {text:?} is no amount of Kubernetes: write a number, such as 4, 500m or 8Gi"
        ))),
    }
}

/// The host name of a pod.
pub fn host(role: &str, index: usize) -> String {
    format!("{JOB_NAME}-{role}-0-{index}.{JOB_NAME}")
}

fn ranks(shape: &JobShape, n: usize) -> PodRole {
    let port = shape.port.unwrap_or(RANK_PORT);
    let address = format!("{}:{port}", host("rank", 0));
    PodRole {
        name: "rank",
        count: n,
        most: n,
        place: "FERROFLOW_RANK",
        command: shape.program.clone(),
        port,
        env: vec![
            json!({"name": "FERROFLOW_SIZE", "value": n.to_string()}),
            json!({"name": "FERROFLOW_ADDRESS", "value": address}),
        ],
        decides: true,
        restarts_alone: false,
        has_health: false,
        runs_program: true,
        has_metrics: true,
    }
}

/// Elastic ranks, and the driver that assigns their numbers. A lost rank restarts alone.
fn elastic(shape: &JobShape, np: usize, min: usize, max: usize) -> Vec<PodRole> {
    let port = shape.port.unwrap_or(RANK_PORT);
    let mut command = ["ferroflow", "driver"].map(String::from).to_vec();
    let timeout = usize::try_from(shape.elastic_timeout).unwrap_or(usize::MAX);
    let numbers =
        [("--np", np), ("--min-np", min), ("--max-np", max), ("--elastic-timeout", timeout)];
    for (flag, number) in numbers {
        command.extend([flag.into(), number.to_string()]);
    }
    command.extend(["--bind".into(), format!("0.0.0.0:{port}")]);
    let driver = PodRole {
        name: "driver",
        count: 1,
        most: 1,
        place: "FERROFLOW_TASK",
        command,
        port,
        env: Vec::new(),
        decides: false,
        restarts_alone: true,
        has_health: false,
        runs_program: false,
        has_metrics: false,
    };
    let address = format!("{}:{port}", host("driver", 0));
    let pod = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let env = vec![
        json!({"name": "FERROFLOW_ELASTIC", "value": address}),
        json!({"name": "FERROFLOW_NAME", "valueFrom": pod}),
    ];
    let place = "FERROFLOW_TASK";
    let rank = PodRole { most: max, place, env, restarts_alone: true, ..ranks(shape, np) };
    vec![driver, rank]
}

fn tasks(shape: &JobShape) -> Result<Vec<PodRole>> {
    let JobTasks::Cluster { ps, workers, chief, evaluator } = shape.tasks else {
        return Ok(Vec::new());
    };
    let port = shape.port.unwrap_or(TASK_PORT);
    let counts = [
        ("ps", ps),
        ("chief", usize::from(chief)),
        ("worker", workers - usize::from(chief)),
        ("evaluator", usize::from(evaluator)),
    ];
    let present = counts.into_iter().filter(|(_, count)| *count > 0);
    let mut cluster = serde_json::Map::new();
    for (name, count) in present.clone().filter(|(name, _)| *name != "evaluator") {
        let addresses: Vec<String> =
            (0..count).map(|i| format!("{}:{port}", host(name, i))).collect();
        cluster.insert(name.into(), json!(addresses));
    }
    let server = ["ferroflow", "server"].map(String::from);
    let role = |(name, count): (&'static str, usize)| {
        let is_server = name == "ps" && shape.serves_ps;
        let task = json!({"type": name, "index": "INDEX"});
        let config = json!({"cluster": cluster, "task": task}).to_string();
        // Written as a number, as programs expect it.
        let config = config.replace("\"INDEX\"", "$(FERROFLOW_TASK)");
        PodRole {
            name,
            count,
            most: count,
            place: "FERROFLOW_TASK",
            command: if is_server { server.to_vec() } else { shape.program.clone() },
            port,
            env: vec![
                json!({"name": "TF_CONFIG", "value": config}),
                json!({"name": "FERROFLOW_BIND", "value": "0.0.0.0"}),
            ],
            decides: matches!(name, "worker" | "chief"),
            restarts_alone: true,
            has_health: is_server,
            runs_program: !is_server,
            has_metrics: true,
        }
    };
    Ok(present.map(role).collect())
}
