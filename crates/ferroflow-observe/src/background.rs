//! The HTTP port of a program that has no network threads of its own, such as a rank.

use crate::export::MetricsExport;
use crate::pages::TaskPages;
use crate::server::{HttpOptions, HttpServer, HttpService};
use ferroflow_core::{Result, err};
use ferroflow_identity::Trust;
use ferroflow_metrics::TaskMetrics;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// An HTTP server on a thread of its own, until this is dropped.
#[derive(Debug)]
pub struct BackgroundHttp {
    url: String,
    /// The file from which the launcher reads this address.
    note: Option<PathBuf>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundHttp {
    /// Starts to listen.
    pub fn start(options: HttpOptions, service: Arc<dyn HttpService>) -> Result<BackgroundHttp> {
        let failed = |e: std::io::Error| err!(ResourceExhausted, "cannot serve HTTP: {e}");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let server = runtime.block_on(HttpServer::bind(options))?;
        let (url, address) = (server.url(), server.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = server.serve(service) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("ff-http".into()).spawn(serve);
        let thread = Some(thread.map_err(failed)?);
        Ok(BackgroundHttp { url, note: note_address(address), stop: Some(stop), thread })
    }

    /// `http://HOST:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for BackgroundHttp {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(note) = &self.note {
            let _ = std::fs::remove_file(note);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes the address to a new file in the folder `FERROFLOW_HTTP_DIR`. The launcher that set the
/// variable finds all processes of the job there.
pub fn note_address(address: SocketAddr) -> Option<PathBuf> {
    let folder = std::env::var_os("FERROFLOW_HTTP_DIR").filter(|folder| !folder.is_empty())?;
    let name = format!("{}-{}", std::process::id(), address.port());
    let (file, new) = (PathBuf::from(&folder).join(&name), PathBuf::from(&folder).join(name + "~"));
    // Renamed, so that no reader sees half of it.
    let written =
        std::fs::write(&new, address.to_string()).and_then(|()| std::fs::rename(&new, &file));
    let failed = |e: &std::io::Error| tracing::warn!("cannot write {}: {e}", file.display());
    written.inspect_err(failed).ok().map(|()| file.clone())
}

/// The HTTP port and the export of a task's metrics, until it is dropped.
#[derive(Debug, Default)]
pub struct Observation {
    _http: Option<BackgroundHttp>,
    _export: MetricsExport,
}

/// Serves the pages of a task at the address in `FERROFLOW_HTTP`, if a launcher has set it. Sends
/// its metrics to an OpenTelemetry collector, if variables name one. A failure is only logged: a
/// job runs on without its metrics.
pub fn observe_from_env(metrics: &Arc<TaskMetrics>, trust: &Trust) -> Observation {
    let (_http, _export) = (serve_from_env(metrics, trust), MetricsExport::from_env(metrics));
    Observation { _http, _export }
}

fn serve_from_env(metrics: &Arc<TaskMetrics>, trust: &Trust) -> Option<BackgroundHttp> {
    let address = std::env::var("FERROFLOW_HTTP").ok().filter(|address| !address.is_empty())?;
    let is_open = std::env::var("FERROFLOW_HTTP_OPEN").is_ok_and(|v| v == "1");
    let pages = TaskPages { metrics: metrics.clone(), is_open };
    let started = HttpOptions::parse(&address, trust.clone(), is_open)
        .and_then(|options| BackgroundHttp::start(options, Arc::new(pages)));
    started.inspect_err(|e| tracing::warn!("no metrics: {}", e.message())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::HttpClient;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn serving(is_open: bool) -> (BackgroundHttp, String, Arc<TaskMetrics>) {
        let metrics = TaskMetrics::new("worker", 0);
        let pages = TaskPages { metrics: metrics.clone(), is_open };
        let options = HttpOptions::parse("0", Trust::default(), is_open).unwrap();
        let server = BackgroundHttp::start(options, Arc::new(pages)).unwrap();
        let address = server.url().strip_prefix("http://").unwrap().to_string();
        (server, address, metrics)
    }

    /// Sends bytes and returns the answer. The server closes the connection.
    fn talk(address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(address: &str, path: &str, headers: &str) -> String {
        talk(address, &format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"))
    }

    #[test]
    fn probes_metrics_and_state_are_answered() {
        let (_server, address, metrics) = serving(false);
        let host = format!("host: {address}\r\n");
        for probe in ["/healthz", "/livez", "/readyz"] {
            let answer = get(&address, probe, &host);
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
        }
        let text = get(&address, "/metrics", &host);
        assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
        assert!(text.contains("ferroflow_accepted_connections_total{kind=\"http\"} 4\n"), "{text}");
        let open = get(&address, "/metrics", &(host + "accept: application/openmetrics-text\r\n"));
        assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"));
        metrics.report_scalar("loss", 3, 0.5);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut client = HttpClient::new(address, Trust::default());
        let state = runtime.block_on(client.json("/api/task")).unwrap();
        assert_eq!((&state["job"], &state["scalars"][0][2]), (&"worker".into(), &0.5.into()));
        let missing = runtime.block_on(client.json("/api/none"));
        assert!(missing.unwrap_err().message().contains("404"));
    }

    #[test]
    fn pages_are_kept_from_other_sites_and_names() {
        let (_server, address, _) = serving(false);
        let host = format!("host: {address}\r\n");
        let answer = get(&address, "/api/task", &host);
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
        assert!(!answer.contains("access-control-allow-origin"));
        let other = get(&address, "/api/task", "host: evil.example\r\n");
        assert!(other.starts_with("HTTP/1.1 421 "), "{other}");
        let cross = get(&address, "/metrics", &(host + "origin: http://evil.example\r\n"));
        assert!(cross.starts_with("HTTP/1.1 403 "), "{cross}");
        let long = format!("host: {address}\r\nx: {}\r\n", "y".repeat(1 << 17));
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(format!("GET / HTTP/1.1\r\n{long}\r\n").as_bytes());
        let mut answer = Vec::new();
        // The server may close the connection before it has read everything.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }

    #[test]
    fn an_open_port_has_health_and_metrics_only() {
        let (_server, address, _) = serving(true);
        let name = "host: task-0.job.default.svc\r\n";
        assert!(get(&address, "/metrics", name).starts_with("HTTP/1.1 200 "));
        assert!(get(&address, "/readyz", name).starts_with("HTTP/1.1 200 "));
        assert!(get(&address, "/api/task", name).starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn a_wide_address_needs_credentials_or_the_flag() {
        let wide = |is_open| HttpOptions::parse("0.0.0.0:0", Trust::default(), is_open).unwrap();
        let pages = || {
            let metrics = TaskMetrics::new("worker", 0);
            Arc::new(TaskPages { metrics, is_open: true })
        };
        let e = BackgroundHttp::start(wide(false), pages()).unwrap_err();
        assert!(e.message().contains("ferroflow certs"), "{e}");
        assert!(BackgroundHttp::start(wide(true), pages()).is_ok());
        assert!(HttpOptions::parse("nonsense", Trust::default(), true).is_err());
    }
}
