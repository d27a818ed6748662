//! The pages of one task: health, metrics and its state.

use crate::server::{HttpAnswer, HttpRequest, HttpService};
use ferroflow_metrics::{MetricsFormat, TaskMetrics};
use std::sync::Arc;

/// Answers for one task.
#[derive(Clone, Debug)]
pub struct TaskPages {
    /// Its metrics.
    pub metrics: Arc<TaskMetrics>,
    /// Answers health and metrics only.
    pub is_open: bool,
}

impl HttpService for TaskPages {
    fn get(&self, request: &HttpRequest<'_>) -> HttpAnswer {
        match request.path {
            "/healthz" | "/livez" => HttpAnswer::text("ok\n"),
            "/readyz" => match self.metrics.is_serving() {
                true => HttpAnswer::text("ok\n"),
                false => HttpAnswer::unavailable("the task is shutting down\n"),
            },
            "/metrics" => {
                let format = MetricsFormat::accepted(request.accept);
                HttpAnswer::body(format.content_type(), self.metrics.encode(format))
            }
            _ if self.is_open => HttpAnswer::not_found(),
            "/api/task" => HttpAnswer::json(&self.metrics.snapshot()),
            "/api/graph" => match self.metrics.graph() {
                Some(graph) => HttpAnswer::json(&graph),
                None => HttpAnswer::json(&serde_json::Value::Null),
            },
            "/api/logs" => HttpAnswer::json(&self.metrics.logs().into()),
            _ => HttpAnswer::not_found(),
        }
    }

    fn connected(&self) {
        self.metrics.connected_http();
    }

    fn refused(&self) {
        self.metrics.refused_connection();
    }
}
