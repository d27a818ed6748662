//! `ferroflow serve`: SavedModels over gRPC and REST.

use crate::credentials::TrustArgs;
use crate::gpus::GpuFlags;
use crate::limit_flags::LimitFlags;
use crate::logging::{LogFormat, log_to_stderr};
use crate::say::show;
use ferroflow::cluster::{exit_within, network_threads};
use ferroflow::{Code, Error, Result, set_compute_threads};
use ferroflow_metrics::TaskMetrics;
use ferroflow_serve::{
    BatchingOptions, ModelServer, ModelServerOptions, ModelSource, ModelsOptions, VersionPolicy,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve SavedModels over TensorFlow Serving's gRPC and REST interfaces
///
/// MODEL_DIR has a subfolder for each version, named by its number, or is a SavedModel itself. New
/// versions are loaded when they appear; the old one answers its last requests and ends. Prints
/// `ready grpc://HOST:PORT http://HOST:PORT` on standard output when all models serve; SIGTERM or
/// Ctrl-C ends it cleanly. The HTTP address has a page to try the models, and /metrics.
///
/// Without credentials it listens on loopback, and only your own user is let in. With credentials
/// (see `ferroflow certs`) all connections use TLS and clients need a certificate of the same CA.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ferroflow serve models/half_plus_two\n  \
    ferroflow serve --model-config models.config --batching-parameters batching.config\n  \
    curl -d '{\"instances\": [1.0, 2.0]}' localhost:8501/v1/models/half_plus_two:predict")]
pub struct Args {
    /// Folder of the model
    #[arg(value_name = "MODEL_DIR", required_unless_present = "model_config")]
    model_dir: Option<PathBuf>,
    /// Name of the model in requests [default: the name of its folder]
    #[arg(long, value_name = "NAME", conflicts_with = "model_config")]
    name: Option<String>,
    /// Versions to serve: `latest`, `latest:N`, `all`, or numbers such as 3,5
    #[arg(long, value_name = "WHICH", default_value = "latest", value_parser = parse_versions,
          conflicts_with = "model_config")]
    versions: VersionPolicy,
    /// Name of a version, such as stable=3; may be repeated
    #[arg(long, value_name = "LABEL=N", value_parser = parse_label,
          conflicts_with = "model_config")]
    label: Vec<(String, i64)>,
    /// Models to serve: a file in the text format of TensorFlow Serving's ModelServerConfig
    #[arg(long, value_name = "FILE", conflicts_with = "model_dir")]
    model_config: Option<PathBuf>,
    /// Seconds between checks of --model-config; 0 checks it only at the start
    #[arg(long, value_name = "S", default_value_t = 0.0, requires = "model_config")]
    model_config_poll: f64,
    /// Seconds between checks for new versions; 0 checks only at the start
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    poll: f64,
    /// Seconds after which loading a version counts as failed; other models do not wait
    #[arg(long, value_name = "S", default_value_t = 600.0)]
    load_timeout: f64,
    /// Address to listen on; anything but loopback needs credentials
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Port for gRPC; 0 is any free port
    #[arg(long, value_name = "PORT", default_value_t = 8500)]
    port: u16,
    /// Port for REST, the metrics and the page; 0 is any free port
    #[arg(long, value_name = "PORT", default_value_t = 8501)]
    rest_port: u16,
    /// Serve gRPC only
    #[arg(long, conflicts_with = "rest_port")]
    no_rest: bool,
    /// Join concurrent requests to batches
    #[arg(long)]
    batching: bool,
    /// How to batch: a file in the text format of TensorFlow Serving's BatchingParameters
    #[arg(long, value_name = "FILE")]
    batching_parameters: Option<PathBuf>,
    /// Do not run the requests of assets.extra/tf_serving_warmup_requests before a version serves
    #[arg(long)]
    no_warm_up: bool,
    /// Let labels name versions that do not serve
    #[arg(long)]
    allow_labels_of_unavailable: bool,
    #[command(flatten)]
    gpus: GpuFlags,
    /// Compute threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Seconds that the server may take to stop after SIGTERM or Ctrl-C; then it exits at once
    #[arg(long, value_name = "S", default_value_t = 10)]
    stop_timeout: u64,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    trust: TrustArgs,
}

pub fn run(args: Args) -> Result<()> {
    log_to_stderr(LogFormat::from_env()?, &TaskMetrics::new("serve", 0));
    if let Some(threads) = args.threads {
        set_compute_threads(threads);
    }
    args.limits.apply()?;
    let signal = exit_within(Duration::from_secs(args.stop_timeout))?;
    let options = options(&args)?;
    let (config, every) = (args.model_config.clone(), seconds(args.model_config_poll)?);
    let scheme = if options.trust.credentials.is_some() { "s" } else { "" };
    let network = network_threads()?;
    let served = network.block_on(async {
        let server = ModelServer::bind(options).await?;
        let rest = server.rest_address().map(|at| format!(" http{scheme}://{at}"));
        show!("ready grpc{scheme}://{}{}", server.grpc_address(), rest.unwrap_or_default());
        let models = server.models().clone();
        let follow = async move {
            match config.filter(|_| !every.is_zero()) {
                Some(file) => models.follow(&file, every).await,
                None => std::future::pending().await,
            }
        };
        let stop = async {
            tokio::select! {
                () = signal.received() => {}
                () = follow => {}
            }
        };
        server.serve(stop).await;
        Ok(())
    });
    // Not dropped: dropping waits for threads, which may be blocked on a file.
    network.shutdown_background();
    served
}

fn options(args: &Args) -> Result<ModelServerOptions> {
    let models = match (&args.model_config, &args.model_dir) {
        (Some(file), _) => ModelSource::read_config(file)?,
        (None, Some(folder)) => vec![model(args, folder)?],
        (None, None) => return Err(invalid("which model? give MODEL_DIR or --model-config")),
    };
    let batching = match &args.batching_parameters {
        Some(file) => Some(BatchingOptions::read_config(file)?),
        None => args.batching.then(BatchingOptions::default),
    };
    Ok(ModelServerOptions {
        grpc: SocketAddr::new(args.bind, args.port),
        rest: (!args.no_rest).then(|| SocketAddr::new(args.bind, args.rest_port)),
        models,
        loading: ModelsOptions {
            batching,
            gpus: args.gpus.found()?,
            poll: seconds(args.poll)?,
            allow_labels_of_unavailable: args.allow_labels_of_unavailable,
            warm_up: !args.no_warm_up,
            load_timeout: seconds(args.load_timeout)?,
        },
        trust: args.trust.trust()?,
    })
}

fn model(args: &Args, folder: &Path) -> Result<ModelSource> {
    let path =
        std::path::absolute(folder).map_err(|e| invalid(format!("{}: {e}", folder.display())))?;
    let own = || path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or_else(own);
    let name = name.ok_or_else(|| invalid("MODEL_DIR has no name; give --name"))?;
    let labels: BTreeMap<String, i64> = args.label.iter().cloned().collect();
    let versions = args.versions.clone();
    Ok(ModelSource { labels, versions, ..ModelSource::new(name, path) })
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, text)
}

fn seconds(value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| invalid(format!("{value} is not a number of seconds")))
}

fn parse_versions(text: &str) -> Result<VersionPolicy, String> {
    let wrong = || format!("'{text}' is not latest, latest:N, all, or numbers such as 3,5");
    match text {
        "latest" => Ok(VersionPolicy::Latest(1)),
        "all" => Ok(VersionPolicy::All),
        _ => match text.strip_prefix("latest:") {
            Some(count) => match count.parse() {
                Ok(count) if count > 0 => Ok(VersionPolicy::Latest(count)),
                _ => Err(wrong()),
            },
            None => {
                let numbers = text.split(',').map(|number| number.trim().parse());
                numbers.collect::<Result<_, _>>().map(VersionPolicy::Specific).map_err(|_| wrong())
            }
        },
    }
}

fn parse_label(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("'{text}' is not LABEL=VERSION");
    let (label, version) = text.split_once('=').ok_or_else(wrong)?;
    Ok((label.to_string(), version.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_labels_are_parsed() {
        assert_eq!(parse_versions("latest"), Ok(VersionPolicy::Latest(1)));
        assert_eq!(parse_versions("latest:3"), Ok(VersionPolicy::Latest(3)));
        assert_eq!(parse_versions("all"), Ok(VersionPolicy::All));
        assert_eq!(parse_versions("3,5"), Ok(VersionPolicy::Specific([3, 5].into())));
        assert!(parse_versions("latest:0").is_err() && parse_versions("newest").is_err());
        assert_eq!(parse_label("stable=3"), Ok(("stable".into(), 3)));
        assert!(parse_label("stable").is_err());
    }
}
