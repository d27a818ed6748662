//! Counters and histograms for each model, in the text format of Prometheus.

use ferroflow_core::Code;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The name for models that do not exist: clients must not be able to add labels.
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    model: String,
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MethodLabels {
    model: String,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ModelLabel {
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VersionLabels {
    model: String,
    version: i64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LoadLabels {
    model: String,
    outcome: &'static str,
}

/// A family of histograms.
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of a server.
pub(crate) struct ServeMetrics {
    registry: Registry,
    requests: Family<CallLabels, Counter>,
    seconds: Histograms<MethodLabels>,
    running: Family<ModelLabel, Gauge>,
    batch_rows: Histograms<ModelLabel>,
    queue_seconds: Histograms<ModelLabel>,
    available: Family<VersionLabels, Gauge>,
    loads: Family<LoadLabels, Counter>,
    load_seconds: Histograms<ModelLabel>,
}

fn latencies() -> Histogram {
    // 50 µs to 26 s.
    Histogram::new(exponential_buckets(50e-6, 2.0, 20))
}

fn batch_sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 14))
}

impl ServeMetrics {
    pub fn new() -> Arc<ServeMetrics> {
        let mut registry = Registry::with_prefix("ferroflow_serve");
        let requests = Family::default();
        registry.register(
            "requests",
            "Requests by model, method and status code",
            requests.clone(),
        );
        let seconds: Histograms<MethodLabels> = Family::new_with_constructor(latencies);
        registry.register("request_seconds", "Time to answer a request", seconds.clone());
        let running = Family::default();
        registry.register("running_requests", "Requests that run or wait", running.clone());
        let batch_rows: Histograms<ModelLabel> = Family::new_with_constructor(batch_sizes);
        registry.register("batch_rows", "Rows of a batch, without padding", batch_rows.clone());
        let queue_seconds: Histograms<ModelLabel> = Family::new_with_constructor(latencies);
        registry.register("queue_seconds", "Time in a batch before it runs", queue_seconds.clone());
        let available = Family::default();
        registry.register("version_available", "1 if the version serves", available.clone());
        let loads = Family::default();
        registry.register("loads", "Versions that were loaded, by outcome", loads.clone());
        let load_seconds: Histograms<ModelLabel> = Family::new_with_constructor(latencies);
        registry.register("load_seconds", "Time to load and warm up", load_seconds.clone());
        Arc::new(ServeMetrics {
            registry,
            requests,
            seconds,
            running,
            batch_rows,
            queue_seconds,
            available,
            loads,
            load_seconds,
        })
    }

    /// All metrics as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    /// The metrics of one model.
    pub fn of_model(self: &Arc<Self>, model: &str) -> ModelMetrics {
        ModelMetrics { all: self.clone(), model: model.to_string() }
    }

    /// Counts a request for a model that does not exist.
    pub fn refused(&self, method: &'static str, code: Code) {
        let labels = CallLabels { model: UNKNOWN.into(), method, code: code.name() };
        self.requests.get_or_create(&labels).inc();
    }
}

/// The metrics of one model.
#[derive(Clone)]
pub(crate) struct ModelMetrics {
    all: Arc<ServeMetrics>,
    model: String,
}

impl ModelMetrics {
    fn label(&self) -> ModelLabel {
        ModelLabel { model: self.model.clone() }
    }

    /// Counts the start of a request.
    pub fn begin(&self, method: &'static str) -> RunningRequest<'_> {
        let gauge = self.all.running.get_or_create(&self.label()).clone();
        gauge.inc();
        RunningRequest { of: self, method, gauge, since: Instant::now(), code: Code::Cancelled }
    }

    /// Counts a batch that starts to run.
    pub fn batched(&self, rows: usize, waits: impl Iterator<Item = Duration>) {
        self.all.batch_rows.get_or_create(&self.label()).observe(rows as f64);
        let queue = self.all.queue_seconds.get_or_create(&self.label());
        waits.for_each(|wait| queue.observe(wait.as_secs_f64()));
    }

    /// Counts a version that was loaded, or could not be.
    pub fn loaded(&self, is_loaded: bool, took: Duration) {
        let outcome = if is_loaded { "ok" } else { "failed" };
        let labels = LoadLabels { model: self.model.clone(), outcome };
        self.all.loads.get_or_create(&labels).inc();
        self.all.load_seconds.get_or_create(&self.label()).observe(took.as_secs_f64());
    }

    /// Records whether a version serves.
    pub fn serves(&self, version: i64, is_available: bool) {
        let labels = VersionLabels { model: self.model.clone(), version };
        if is_available {
            self.all.available.get_or_create(&labels).set(1);
        } else {
            self.all.available.remove(&labels);
        }
    }
}

/// A request that is being answered. It counts as cancelled unless [`RunningRequest::end`] is
/// called.
pub(crate) struct RunningRequest<'m> {
    of: &'m ModelMetrics,
    method: &'static str,
    gauge: Gauge,
    since: Instant,
    code: Code,
}

impl RunningRequest<'_> {
    pub fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.gauge.dec();
        let (model, method, code) = (self.of.model.clone(), self.method, self.code.name());
        let labels = MethodLabels { model: model.clone(), method };
        let took = self.since.elapsed().as_secs_f64();
        self.of.all.seconds.get_or_create(&labels).observe(took);
        let labels = CallLabels { model, method, code };
        self.of.all.requests.get_or_create(&labels).inc();
    }
}
