//! Sends metrics to an OpenTelemetry collector by OTLP over HTTP, as JSON. The collector needs no
//! extra configuration: its `otlp` receiver accepts JSON at the same port as protobuf.

mod payload;

use crate::body::AnswerBody;
use bytes::Bytes;
use ferroflow_cluster::connect_http;
use ferroflow_core::{Result, bail, err};
use ferroflow_identity::Trust;
use ferroflow_metrics::{MetricsFormat, TaskMetrics};
use http::{Request, Uri, header};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use payload::{Attributes, ExportTimes, payload};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// The timeout of a request. A job waits for it once, at its end.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The default interval of OpenTelemetry's libraries.
const INTERVAL: Duration = Duration::from_secs(60);
/// The path of the metrics at a collector.
const PATH: &str = "/v1/metrics";

/// The collector's address, and the interval.
#[derive(Clone, Debug)]
pub(crate) struct OtlpOptions {
    /// `HOST:PORT`.
    address: String,
    path: String,
    headers: Attributes,
    interval: Duration,
    /// Attributes of the process.
    resource: Attributes,
}

impl OtlpOptions {
    /// Parses OpenTelemetry's variables; `variable` reads each. `None` if they name no collector.
    pub fn parse(variable: impl Fn(&str) -> Option<String>) -> Result<Option<OtlpOptions>> {
        let whole = variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
        let base = || variable("OTEL_EXPORTER_OTLP_ENDPOINT");
        let joined = || base().map(|base| base.trim_end_matches('/').to_string() + PATH);
        let Some(url) = whole.or_else(joined) else { return Ok(None) };
        let uri: Uri = url.parse().map_err(|e| err!(InvalidArgument, "{url:?}: {e}"))?;
        let Some(host) = uri.host().filter(|_| uri.scheme_str() == Some("http")) else {
            bail!(
                InvalidArgument,
                "{url:?} is not an http:// address: run a collector on this host, which sends on \
                 with TLS"
            );
        };
        let address = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let path = uri.path_and_query().map_or(PATH, |path| path.as_str()).to_string();
        let interval = match variable("OTEL_METRIC_EXPORT_INTERVAL") {
            Some(text) => Duration::from_millis(text.parse().map_err(|_| {
                err!(InvalidArgument, "OTEL_METRIC_EXPORT_INTERVAL={text:?} is not a number of ms")
            })?),
            None => INTERVAL,
        };
        let headers = variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS"));
        let headers = pairs(&headers.unwrap_or_default());
        let mut resource = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        if let Some(name) = variable("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".into(), name));
        }
        let interval = interval.max(Duration::from_millis(1));
        Ok(Some(OtlpOptions { address, path, headers, interval, resource }))
    }
}

/// `key=value,key=value`.
fn pairs(text: &str) -> Attributes {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.trim().into(), value.trim().into())).collect()
}

/// Sends metrics on a thread of its own until it is dropped, and once more then.
#[derive(Debug)]
pub(crate) struct OtlpExporter {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OtlpExporter {
    pub fn start(options: OtlpOptions, metrics: &Arc<TaskMetrics>) -> Result<OtlpExporter> {
        let failed = |e: io::Error| err!(ResourceExhausted, "cannot start a thread: {e}");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        let metrics = metrics.clone();
        let work = move || {
            runtime.block_on(async {
                let mut exports = Exports::new(options, metrics);
                loop {
                    let pause = tokio::time::sleep(exports.options.interval);
                    let is_last = tokio::select! {
                        () = pause => false,
                        _ = &mut stopped => true,
                    };
                    exports.next().await;
                    if is_last {
                        return;
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("ff-otlp".into()).spawn(work);
        Ok(OtlpExporter { stop: Some(stop), thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for OtlpExporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The exports of one task.
struct Exports {
    options: OtlpOptions,
    metrics: Arc<TaskMetrics>,
    resource: Attributes,
    started: u64,
    /// Whether the last export failed, so that the log reports a failure once.
    is_failing: bool,
}

impl Exports {
    fn new(options: OtlpOptions, metrics: Arc<TaskMetrics>) -> Exports {
        let (job, task) = metrics.place();
        let own = [
            ("service.name", "ferroflow".to_string()),
            ("service.version", env!("CARGO_PKG_VERSION").into()),
            ("service.instance.id", format!("{job}/{task}")),
            ("ferroflow.job", job),
            ("ferroflow.task", task.to_string()),
            ("process.pid", std::process::id().to_string()),
        ];
        let mut resource = options.resource.clone();
        for (key, value) in own {
            if !resource.iter().any(|(known, _)| known == key) {
                resource.push((key.into(), value));
            }
        }
        Exports { options, metrics, resource, started: now(), is_failing: false }
    }

    async fn next(&mut self) {
        let text = self.metrics.encode(MetricsFormat::OpenMetrics);
        let times = ExportTimes { started: self.started, now: now() };
        let body = payload(&text, &self.resource, times).to_string();
        let sent = tokio::time::timeout(TIMEOUT, send(&self.options, body)).await;
        let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let address = &self.options.address;
        match &sent {
            Err(e) if !self.is_failing => {
                tracing::warn!("the OpenTelemetry collector at {address} got no metrics: {e}");
            }
            Ok(()) if self.is_failing => {
                tracing::info!("the OpenTelemetry collector at {address} gets metrics again");
            }
            _ => {}
        }
        self.is_failing = sent.is_err();
    }
}

async fn send(options: &OtlpOptions, body: String) -> io::Result<()> {
    let io = connect_http(&options.address, &Trust::default()).await?;
    let (mut sender, connection) = handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let mut request = Request::post(&options.path)
        .header(header::HOST, options.address.as_str())
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in &options.headers {
        request = request.header(name, value);
    }
    let body = AnswerBody::Whole(Some(Bytes::from(body)));
    let request = request.body(body).map_err(io::Error::other)?;
    let answer = sender.send_request(request).await.map_err(io::Error::other);
    connection.abort();
    match answer?.status() {
        status if status.is_success() => Ok(()),
        status => Err(io::Error::other(status.to_string())),
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    fn options(variables: &[(&str, &str)]) -> Result<Option<OtlpOptions>> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        OtlpOptions::parse(|name| find(name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn variables_of_opentelemetry_name_the_collector() {
        assert!(options(&[]).unwrap().is_none());
        let found = options(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b, c=d"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!((found.address.as_str(), found.path.as_str()), ("collector:4318", PATH));
        assert_eq!(found.headers[1], ("c".into(), "d".into()));
        assert_eq!(found.interval, Duration::from_millis(500));
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://[::1]:9/in?x=1");
        let found = options(&[own]).unwrap().unwrap();
        assert_eq!((found.address.as_str(), found.path.as_str()), ("[::1]:9", "/in?x=1"));
        for wrong in ["https://collector", "collector:4318", "http://"] {
            assert!(options(&[("OTEL_EXPORTER_OTLP_ENDPOINT", wrong)]).is_err(), "{wrong}");
        }
    }

    /// Reads one export of a connection, and answers it.
    fn collect(collector: &TcpListener) -> (String, serde_json::Value) {
        let (stream, _) = collector.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some(found) = line.to_lowercase().strip_prefix("content-length:") {
                length = found.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    }

    /// The value of a counter in an export.
    fn counted(export: &serde_json::Value, name: &str) -> f64 {
        let metrics = export["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array();
        let metric = metrics.unwrap().iter().find(|metric| metric["name"] == name).unwrap();
        metric["sum"]["dataPoints"][0]["asDouble"].as_f64().unwrap()
    }

    #[test]
    fn a_collector_gets_the_metrics_of_a_task_and_the_last_at_its_end() {
        let collector = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", collector.local_addr().unwrap());
        let found = options(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
        ]);
        let metrics = TaskMetrics::new("worker", 3);
        let exporter = OtlpExporter::start(found.unwrap().unwrap(), &metrics).unwrap();
        let (head, export) = collect(&collector);
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("application/json") && head.contains("x-key: secret"), "{head}");
        let attributes = export["resourceMetrics"][0]["resource"]["attributes"].to_string();
        for part in ["\"worker/3\"", "deployment.environment", "\"ferroflow\""] {
            assert!(attributes.contains(part), "{attributes}");
        }
        let sent = counted(&export, "ferroflow_recoveries");
        metrics.recovered();
        let dropping = std::thread::spawn(move || drop(exporter));
        // Exports that were under way come before the last one.
        while counted(&collect(&collector).1, "ferroflow_recoveries") <= sent {}
        // The thread ends after the last export was answered.
        while !dropping.is_finished() {
            collector.set_nonblocking(true).unwrap();
            if let Ok((stream, _)) = collector.accept() {
                drop(stream);
            }
        }
    }
}
