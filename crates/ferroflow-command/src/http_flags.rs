//! Flags of the HTTP port.

use ferroflow::Result;
use ferroflow::cluster::Trust;
use ferroflow_observe::HttpOptions;

#[derive(clap::Args, Clone, Debug, Default)]
pub struct HttpFlags {
    /// Serve health (/healthz, /livez, /readyz), /metrics for Prometheus and the state of the task
    /// over HTTP at HOST:PORT, or at a PORT of loopback; anything but loopback needs credentials
    /// [default: $FERROFLOW_HTTP]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Let every host that reaches --http read health and metrics without credentials, for probes
    /// and Prometheus; nothing else is served then
    #[arg(long)]
    pub http_open: bool,
}

impl HttpFlags {
    /// The address to listen on, if any, and the peers to admit.
    pub fn options(&self, trust: &Trust) -> Result<Option<HttpOptions>> {
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(address) = self.http.clone().or_else(|| var("FERROFLOW_HTTP")) else {
            return Ok(None);
        };
        let is_open = self.http_open || var("FERROFLOW_HTTP_OPEN").is_some_and(|v| v == "1");
        HttpOptions::parse(&address, trust.clone(), is_open).map(Some)
    }
}
