//! `ferroflow doctor`: looks for causes of failing jobs, and prints what to do.

mod certificates;
mod host;
mod tasks;

use crate::credentials::CredentialArgs;
use crate::say::say;
use ferroflow::Result;
use ferroflow::cluster::{ClusterSpec, TfConfig, Trust};
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Check this host, and the tasks of a cluster, for what would make a job fail
///
/// Without a cluster it checks this host: its name, descriptors, shared memory, GPUs, the speed of
/// the disk, and credentials if there are any. With --cluster or TF_CONFIG it also checks the
/// tasks: that their names have addresses, that their ports are open and belong to Ferroflow, that
/// their clocks and versions agree with those of this host, and that long packets arrive.
///
/// Prints what it found and what to do, or JSON if the output is not a terminal. Exits with 1 if
/// it found a fault.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ferroflow doctor\n  \
    ferroflow doctor --cluster 'ps=hosta:2222;worker=hostb:2222,hostc:2222' --credentials certs/client\n  \
    ferroflow doctor --dir /shared/checkpoints --gpus 8")]
pub struct Args {
    /// All tasks, as for `ferroflow server` [default: those of TF_CONFIG]
    #[arg(long, value_name = "SPEC")]
    cluster: Option<String>,
    /// Folder whose disk is measured, such as that of the checkpoints
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// GPUs that this host should have
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// Seconds to wait for a task
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    timeout: f64,
    /// Print JSON, one object per line, also on a terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    credentials: CredentialArgs,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Health {
    Good,
    /// A job may run, but slowly or not for long.
    Doubtful,
    /// A job will fail.
    Fault,
    /// The check does not apply here.
    Absent,
}

/// The finding of a check.
#[derive(Clone, Debug)]
struct Finding {
    /// The name of the check, for programs that read the output.
    check: &'static str,
    health: Health,
    what: String,
    advice: Option<String>,
}

impl Finding {
    fn new(check: &'static str, health: Health, what: impl Into<String>) -> Finding {
        Finding { check, health, what: what.into(), advice: None }
    }

    fn good(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Health::Good, what)
    }

    fn fault(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(check, Health::Fault, what).advise(advice)
    }

    fn advise(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }

    fn print(&self, as_json: bool) {
        let health = match self.health {
            Health::Good => "ok",
            Health::Doubtful => "warning",
            Health::Fault => "fault",
            Health::Absent => "none",
        };
        if as_json {
            say!(
                "{}",
                json!({"check": self.check, "health": health, "what": self.what, "advice": self.advice})
            );
            return;
        }
        say!("{health:>7}  {:<13} {}", self.check, self.what);
        if let Some(advice) = &self.advice {
            say!("         {:<13} -> {advice}", "");
        }
    }
}

pub fn run(args: Args) -> Result<()> {
    let as_json = args.json || !std::io::stdout().is_terminal();
    let mut worst = Health::Good;
    let mut print = |findings: Vec<Finding>| {
        for finding in findings {
            finding.print(as_json);
            if finding.health == Health::Fault {
                worst = Health::Fault;
            }
        }
    };
    print(host::name());
    print(vec![host::descriptors(), host::shared_memory(), host::gpus(args.gpus)]);
    print(host::disk(&args.dir));
    let (credentials, found) = certificates::check(&args.credentials);
    print(found);
    let cluster = match &args.cluster {
        Some(text) => Some(ClusterSpec::parse(text)?),
        None => TfConfig::from_env()?.map(|config| config.cluster),
    };
    if let Some(cluster) = cluster.filter(|cluster| cluster.tasks().count() > 0) {
        let trust = Trust { credentials, ..Trust::default() };
        let timeout = Duration::try_from_secs_f64(args.timeout).unwrap_or(Duration::from_secs(5));
        print(tasks::check(&cluster, &trust, timeout)?);
    }
    match worst {
        Health::Fault => std::process::exit(1),
        _ => Ok(()),
    }
}
