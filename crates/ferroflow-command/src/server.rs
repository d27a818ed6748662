//! `ferroflow server`: one task of a cluster.

use crate::credentials::TrustArgs;
use crate::dashboard::{Board, BoardPages, Sources};
use crate::gpus::GpuFlags;
use crate::http_flags::HttpFlags;
use crate::limit_flags::LimitFlags;
use crate::logging::{LogFormat, log_to_stderr};
use crate::place::Policy;
use crate::say::show;
use ferroflow::cluster::{
    ClusterSpec, DataPath, Server, ServerOptions, TfConfig, exit_within, network_threads,
    workers_done_with,
};
use ferroflow::graph::default_catalog;
use ferroflow::{Code, Error, Result, set_compute_threads};
use ferroflow_metrics::TaskMetrics;
use ferroflow_observe::{HttpOptions, HttpServer, MetricsExport, TaskPages, note_address};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Serve one task of a cluster
///
/// A TensorFlow client opens sessions on it with tf.compat.v1.Session("grpc://HOST:PORT"). Prints
/// `ready grpc://HOST:PORT` on standard output when it serves; SIGTERM or Ctrl-C ends it cleanly.
///
/// Without credentials it listens on loopback, and only your own user is let in. With credentials
/// (see `ferroflow certs`) all connections use TLS, peers need a certificate of the same CA, and it
/// prints `ready grpcs://HOST:PORT`.
///
/// Without --cluster, --job and --task, the TF_CONFIG environment variable says which task this is.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ferroflow server --cluster worker=127.0.0.1:2222 --job worker --task 0"
)]
pub struct Args {
    /// All tasks: JSON {"ps":["h:p"],"worker":["h:p"]}, or ps=h:p;worker=h:p,h:p, or @FILE
    #[arg(long, value_name = "SPEC")]
    cluster: Option<String>,
    /// Job of this task
    #[arg(long)]
    job: Option<String>,
    /// Index of this task within its job
    #[arg(long, value_name = "N")]
    task: Option<u32>,
    /// Address to listen on; anything but loopback needs credentials [default: $FERROFLOW_BIND,
    /// else the task's own address]
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// CPU devices to offer
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: u32,
    #[command(flatten)]
    gpus: GpuFlags,
    /// Core to run on, of those that this process may use
    #[arg(long, hide = true)]
    core: Option<usize>,
    /// Seconds that opening a session waits for the other tasks before it fails
    #[arg(long, value_name = "S", default_value_t = ServerOptions::SESSION_TIMEOUT.as_secs())]
    session_timeout: u64,
    /// Exit when all tasks of the jobs worker and chief have connected and left (for parameter
    /// servers)
    #[arg(long)]
    exit_with_workers: bool,
    /// Transport between Ferroflow tasks: auto (shared memory on one host, else UCX where there are
    /// RDMA devices and no credentials, else TCP), tcp, ucx, or grpc (as between TensorFlow tasks)
    #[arg(long, value_name = "PATH", default_value = "auto")]
    data_path: DataPath,
    /// Where nodes without a device go, in sessions that ask for nothing else: first (the first
    /// device that fits, as in TensorFlow), or cost (where a simulated step ends first; devices are
    /// measured)
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = Policy::First)]
    placement: Policy,
    /// Address on which health probes are answered without TLS: HTTP /healthz and /readyz, and gRPC
    /// health [default: $FERROFLOW_HEALTH, else none]
    #[arg(long, value_name = "IP:PORT")]
    health: Option<std::net::SocketAddr>,
    /// Compute threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Seconds that the server may take to stop after SIGTERM or Ctrl-C; then it exits at once
    #[arg(long, value_name = "S", default_value_t = 10)]
    stop_timeout: u64,
    /// Format of the log on standard error [default: $FERROFLOW_LOG_FORMAT, or text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Also show this task as a page in the browser, at --http
    #[arg(long, requires = "http", conflicts_with = "http_open")]
    dashboard: bool,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    trust: TrustArgs,
}

pub fn run(args: Args) -> Result<()> {
    if let Some(core) = args.core {
        crate::cores::run_on_core(core)?;
    }
    if let Some(threads) = args.threads {
        set_compute_threads(threads);
    }
    args.limits.apply()?;
    let signal = exit_within(Duration::from_secs(args.stop_timeout))?;
    let (exit_with_workers, confines_files) =
        (args.exit_with_workers, args.limits.confines_files());
    let (format, http, has_page) = (args.log_format, args.http.clone(), args.dashboard);
    let gpus = args.gpus.clone();
    let mut options = options(args)?;
    let metrics = options.metrics.clone();
    log_to_stderr(format.map_or_else(LogFormat::from_env, Ok)?, &metrics);
    if !confines_files && is_for_other_hosts(&options)? {
        tracing::warn!(
            "clients on other hosts can read and write every file that this user can; confine \
             them with --file-root DIR"
        );
    }
    let gpus = gpus.found()?;
    options.gpus.clone_from(&gpus);
    let http = http.options(&options.trust)?;
    let _export = MetricsExport::from_env(&metrics);
    let network = network_threads()?;
    let served = network.block_on(async {
        let (cluster, timeout) = (options.cluster.clone(), options.session_timeout);
        let trust = options.trust.clone();
        if exit_with_workers {
            ensure_no_worker(&options.job)?;
        }
        let server = Server::bind(options, default_catalog()).await?;
        let _http = match http {
            Some(http) => Some(observe(http, metrics, has_page).await?),
            None => None,
        };
        show!("ready {}", server.target());
        let (left_sender, left_receiver) = tokio::sync::oneshot::channel();
        let shutdown = async move {
            let left = async {
                match exit_with_workers {
                    true => workers_done_with(&cluster, timeout, &trust).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = signal.received() => {}
                left = left => drop(left_sender.send(left)),
            }
        };
        server.serve(shutdown).await;
        match left_receiver.await {
            Ok(Ok(())) => {
                eprintln!("all workers have left: this server exits");
                Ok(())
            }
            Ok(failed) => failed,
            // A signal ended the server.
            Err(_) => Ok(()),
        }
    });
    for gpu in &gpus {
        tracing::info!("{} ran {} kernels", gpu.name(), gpu.launches());
    }
    // Not dropped: dropping waits for threads, which may be blocked on a file.
    network.shutdown_background();
    served
}

/// Whether the server listens on an address that other hosts may reach.
fn is_for_other_hosts(options: &ServerOptions) -> Result<bool> {
    let own = options.cluster.address(&options.job, options.task)?;
    let address = options.bind.as_deref().unwrap_or(own);
    let host = match address.parse::<IpAddr>() {
        Ok(_) => address,
        Err(_) => address.rsplit_once(':').map_or(address, |(host, _)| host),
    };
    let host = host.trim_matches(['[', ']']);
    Ok(!host.parse::<IpAddr>().map_or(host == "localhost", |ip| ip.is_loopback()))
}

/// Serves the HTTP port until the result is dropped.
async fn observe(
    options: HttpOptions,
    metrics: Arc<TaskMetrics>,
    has_page: bool,
) -> Result<tokio::task::JoinSet<()>> {
    let is_open = options.is_open;
    let trust = options.trust.clone();
    let server = HttpServer::bind(options).await?;
    // A launcher that reads the address from a file does not need the line.
    if note_address(server.address()).is_none() || has_page {
        show!("http {}", server.url());
    }
    let task = TaskPages { metrics, is_open };
    let mut serving = tokio::task::JoinSet::new();
    if has_page {
        let addresses = vec![server.address().to_string()];
        let board = Board::new(Sources { addresses, trust, ..Sources::default() });
        serving.spawn(board.clone().watch());
        let page = BoardPages::new(board).beside(task);
        serving.spawn(server.serve(Arc::new(page)));
    } else {
        serving.spawn(server.serve(Arc::new(task)));
    }
    Ok(serving)
}

/// Refuses --exit-with-workers on a worker, which would wait for itself.
fn ensure_no_worker(job: &str) -> Result<()> {
    match job {
        "worker" | "chief" | "master" => Err(Error::new(
            Code::InvalidArgument,
            format!(
                "--exit-with-workers cannot be used by a task of job {job:?}: it would wait for itself"
            ),
        )),
        _ => Ok(()),
    }
}

/// The task to serve, from the flags or from TF_CONFIG.
fn options(args: Args) -> Result<ServerOptions> {
    let config = if args.cluster.is_none() { TfConfig::from_env()? } else { None };
    if let Some(config) = config.as_ref().filter(|_| args.job.is_none()) {
        config.ensure_serves()?;
    }
    let missing = |what: &str| {
        Error::new(
            Code::InvalidArgument,
            format!(
                "which task is this? give --{what}, or set TF_CONFIG (see ferroflow server --help)"
            ),
        )
    };
    let cluster = match (&args.cluster, &config) {
        (Some(text), _) => ClusterSpec::parse(text)?,
        (None, Some(config)) => config.cluster.clone(),
        (None, None) => return Err(missing("cluster")),
    };
    let job = args.job.or(config.as_ref().map(|c| c.job.clone()));
    let task = args.task.or(config.as_ref().map(|c| c.task));
    let job = job.ok_or_else(|| missing("job"))?;
    let task = task.ok_or_else(|| missing("task"))?;
    let options = ServerOptions::of(&TfConfig::new(cluster, job, task));
    Ok(ServerOptions {
        bind: args.bind.or(options.bind),
        health: args.health.or(options.health),
        cpus: args.cpus,
        session_timeout: Duration::from_secs(args.session_timeout),
        data_path: args.data_path,
        placement: args.placement.placement(),
        trust: args.trust.trust()?,
        ..options
    })
}
