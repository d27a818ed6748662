//! `ferroflow proxy`: lets clients without TLS reach a server with TLS.

use crate::credentials::CredentialArgs;
use crate::logging::{LogFormat, log_to_stderr};
use crate::say::show;
use ferroflow::cluster::{TlsProxy, Trust, exit_within, network_threads};
use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use std::net::SocketAddr;
use std::time::Duration;

/// Let TensorFlow clients, which have no TLS, reach a server with TLS
///
/// Listens on this host without TLS and carries every connection to the server. Only processes of
/// your own user are let in. Prints `ready grpc://HOST:PORT` on standard output; SIGTERM or Ctrl-C
/// ends it within 10 s. A session of a TensorFlow client is then
/// tf.compat.v1.Session("grpc://HOST:PORT").
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    ferroflow proxy --to grpcs://hosta:2222 --credentials certs/client --listen 127.0.0.1:2222")]
pub struct Args {
    /// The server
    #[arg(long, value_name = "grpcs://HOST:PORT")]
    to: String,
    /// Address to listen on; port 0 is any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Let all users of this host use the proxy, and with it your credentials
    #[arg(long)]
    any_local_user: bool,
    /// Let other hosts use the proxy, and with it your credentials; for a --listen that is not
    /// loopback
    #[arg(long)]
    insecure: bool,
}

/// How long the proxy may take to close its connections after a signal.
const STOP: Duration = Duration::from_secs(10);

pub fn run(args: Args) -> Result<()> {
    let signal = exit_within(STOP)?;
    log_to_stderr(LogFormat::from_env()?, &TaskMetrics::new("proxy", 0));
    let credentials = args.credentials.load()?.ok_or_else(|| {
        let text = "no credentials: give --credentials DIR, made by `ferroflow certs`";
        Error::new(Code::InvalidArgument, text)
    })?;
    let Args { to, listen, any_local_user, insecure, .. } = args;
    let trust = Trust { any_local_user, is_insecure: insecure, ..Trust::default() };
    network_threads()?.block_on(async {
        let proxy = TlsProxy::bind(listen, &to, credentials, trust).await?;
        show!("ready grpc://{}", proxy.address());
        proxy.serve(signal.received()).await;
        Ok(())
    })
}
