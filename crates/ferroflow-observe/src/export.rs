//! Metrics for an OpenTelemetry collector, in builds with the feature `otlp`.

use ferroflow_metrics::TaskMetrics;
use std::sync::Arc;

/// Sends the metrics of a task to a collector from time to time, until it is dropped.
#[derive(Debug, Default)]
pub struct MetricsExport {
    #[cfg(feature = "otlp")]
    _exporter: Option<crate::otlp::OtlpExporter>,
}

impl MetricsExport {
    /// Sends metrics to the collector that the variables of OpenTelemetry name, if any. A failure
    /// is only logged: a job runs on without its metrics.
    #[cfg(feature = "otlp")]
    pub fn from_env(metrics: &Arc<TaskMetrics>) -> MetricsExport {
        use crate::otlp::{OtlpExporter, OtlpOptions};
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let started = OtlpOptions::parse(variable)
            .and_then(|options| options.map(|o| OtlpExporter::start(o, metrics)).transpose());
        let failed = |e: &ferroflow_core::Error| {
            tracing::warn!("metrics are not sent to OpenTelemetry: {}", e.message());
        };
        MetricsExport { _exporter: started.inspect_err(failed).ok().flatten() }
    }

    /// Logs that this build cannot send metrics, if variables of OpenTelemetry name a collector.
    #[cfg(not(feature = "otlp"))]
    pub fn from_env(_: &Arc<TaskMetrics>) -> MetricsExport {
        for name in ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
            if std::env::var(name).is_ok_and(|value| !value.is_empty()) {
                tracing::info!("{name} is ignored: build with `--features otlp` to send metrics");
            }
        }
        MetricsExport::default()
    }
}
