//! `ferroflow driver`: assigns the ranks of an elastic job whose processes another system starts.

use crate::credentials::CredentialArgs;
use crate::logging::{LogFormat, log_to_stderr};
use crate::run::elastic_bounds;
use crate::say::say;
use ferroflow::cluster::{Trust, exit_within};
use ferroflow::collective::elastic::{Driver, DriverOptions};
use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use std::net::TcpListener;
use std::time::Duration;

/// Assign ranks in an elastic job whose processes another system starts
///
/// `ferroflow run --min-np` starts processes and assigns their ranks. Where another system, such as
/// Kubernetes, starts and replaces the processes, this command only assigns the ranks. A process
/// takes part if FERROFLOW_ELASTIC=HOST:PORT names the driver. The driver prints `ready HOST:PORT`
/// when processes can connect. SIGTERM or Ctrl-C ends it within 10 s. It refuses processes that
/// connect after others have finished the work; they end without an error.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ferroflow driver -np 2 --min-np 1 --max-np 4 --bind 127.0.0.1:29400"
)]
pub struct Args {
    /// Number of processes that the job waits for at its start
    #[arg(long, value_name = "N")]
    np: usize,
    /// Smallest number of processes to start or continue with [default: -np]
    #[arg(long, value_name = "N")]
    min_np: Option<usize>,
    /// Largest number of processes to admit; more wait [default: -np]
    #[arg(long, value_name = "N")]
    max_np: Option<usize>,
    /// Seconds that processes wait for others when there are fewer than --min-np
    #[arg(long, value_name = "S", default_value_t = 60)]
    elastic_timeout: u64,
    /// Address to listen on; anything but loopback needs credentials
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:29400")]
    bind: String,
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Let every host that reaches the driver in, without credentials [default:
    /// $FERROFLOW_INSECURE]
    #[arg(long)]
    insecure: bool,
}

/// How long the driver may take to refuse its processes after a signal.
const STOP: Duration = Duration::from_secs(10);

pub fn run(args: Args) -> Result<()> {
    let signal = exit_within(STOP)?;
    log_to_stderr(LogFormat::from_env()?, &TaskMetrics::new("driver", 0));
    let (min, max) = elastic_bounds(args.np, args.min_np, args.max_np)?;
    let options = DriverOptions {
        min,
        max,
        start: args.np,
        timeout: Duration::from_secs(args.elastic_timeout),
        token: ferroflow_identity::take_secret("FERROFLOW_TOKEN").unwrap_or_default(),
    };
    let environment = Trust::from_env()?;
    let trust = Trust {
        credentials: args.credentials.load()?,
        is_insecure: args.insecure || environment.is_insecure,
        ..Trust::default()
    };
    let failed = |what: String| Error::new(Code::Unavailable, what);
    let bind = &args.bind;
    let listener =
        TcpListener::bind(bind).map_err(|e| failed(format!("cannot listen on {bind}: {e}")))?;
    let driver = Driver::start_with(listener, options, trust)?;
    say!("ready {}", driver.address());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|e| failed(format!("cannot wait for signals: {e}")))?
        .block_on(signal.received());
    let seen = driver.report();
    let (epochs, lost, done) = (seen.epochs, seen.lost, seen.done);
    eprintln!("ferroflow driver: {epochs} epochs, {lost} processes lost, {done} finished");
    Ok(())
}
