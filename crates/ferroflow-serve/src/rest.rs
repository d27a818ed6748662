//! TensorFlow Serving's REST interface, the metrics, and the page to try a model.

mod json;
mod page;
mod route;

use crate::grpc::{are_short, counted, found};
use crate::http::{HttpAnswer, HttpRequest, HttpService, error_json, status_of};
use crate::inference;
use crate::metrics;
use crate::models::{Models, VersionStatus};
use crate::wire::{self, ModelSpec};
use bytes::Bytes;
use ferroflow_cluster::rpc::off_network;
use ferroflow_core::inline::may_decode_inline;
use ferroflow_core::{Error, Result, err};
use http::{Method, StatusCode};
use json::PredictBody;
use route::{Route, Verb};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers HTTP requests.
pub(crate) struct RestService {
    pub models: Arc<Models>,
}

impl HttpService for RestService {
    async fn answer(&self, request: HttpRequest) -> HttpAnswer {
        if request.method == Method::GET
            && let Some(answer) = self.page(&request.path)
        {
            return answer;
        }
        match self.call(request).await {
            Ok(body) => HttpAnswer::json(StatusCode::OK, body),
            Err(e) => HttpAnswer::json(status_of(e.code()), error_json(e.message())),
        }
    }
}

impl RestService {
    /// Pages in addition to TensorFlow Serving's interface, and the metrics.
    fn page(&self, path: &str) -> Option<HttpAnswer> {
        Some(match path {
            "/metrics" | "/monitoring/prometheus/metrics" => HttpAnswer {
                status: StatusCode::OK,
                content_type: metrics::CONTENT_TYPE,
                body: self.models.metrics.text().into(),
                is_page: false,
            },
            "/healthz" => match self.models.is_healthy() {
                true => HttpAnswer::json(StatusCode::OK, r#"{"status":"SERVING"}"#),
                false => {
                    HttpAnswer::json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"NOT_SERVING"}"#)
                }
            },
            "/ui/models" => {
                let names = json!({ "models": self.models.names() });
                HttpAnswer::json(StatusCode::OK, names.to_string())
            }
            _ => return page::file(path),
        })
    }

    async fn call(&self, request: HttpRequest) -> Result<Bytes> {
        let malformed =
            || err!(InvalidArgument, "Malformed request: {} {}", request.method, request.path);
        let Route { spec, verb } = route::parse(&request.path).ok_or_else(malformed)?;
        match (&request.method, verb) {
            (&Method::GET, Verb::Status) => {
                Ok(status_json(&self.models.status(&spec)?).to_string().into())
            }
            (&Method::GET, Verb::Metadata) => {
                let model = found(&self.models, &spec, "GetModelMetadata")?;
                let json = wire::metadata_json(&model.name, model.number, &model.definitions);
                Ok(json.to_string().into())
            }
            (&Method::POST, Verb::Predict) => self.predict(spec, request.body).await,
            (&Method::POST, Verb::Classify) => self.classify(spec, request.body).await,
            (&Method::POST, Verb::Regress) => self.regress(spec, request.body).await,
            _ => Err(malformed()),
        }
    }

    async fn predict(&self, spec: ModelSpec, body: Bytes) -> Result<Bytes> {
        let model = found(&self.models, &spec, "Predict")?;
        let running = model.metrics.begin("Predict");
        let work = async {
            let of = model.clone();
            let (name, inputs, format) = reading(body, move |body| {
                let PredictBody { signature: name, data } = PredictBody::parse(body)?;
                let (inputs, format) = data.tensors(inference::predict_signature(&of, &name)?.0)?;
                Ok((name, inputs, format))
            })
            .await?;
            let (signature, _) = inference::predict_signature(&model, &name)?;
            let outputs = inference::predict(&model, signature, inputs, &[]).await?;
            let is_quick = are_short(&outputs);
            off_network(is_quick, move || json::write_outputs(&outputs, format)).await
        };
        counted(running, work.await)
    }

    async fn classify(&self, spec: ModelSpec, body: Bytes) -> Result<Bytes> {
        let model = found(&self.models, &spec, "Classify")?;
        let running = model.metrics.begin("Classify");
        let work = async {
            let (signature, examples) = reading(body, json::examples).await?;
            let rows = inference::classify(&model, &signature, examples).await?;
            Ok(json::write_classes(&rows))
        };
        counted(running, work.await)
    }

    async fn regress(&self, spec: ModelSpec, body: Bytes) -> Result<Bytes> {
        let model = found(&self.models, &spec, "Regress")?;
        let running = model.metrics.begin("Regress");
        let work = async {
            let (signature, examples) = reading(body, json::examples).await?;
            let values = inference::regress(&model, &signature, examples).await?;
            Ok(json::write_regressions(&values))
        };
        counted(running, work.await)
    }
}

/// Parses the body of a request. Large ones are parsed on a thread that serves no other
/// connections.
async fn reading<T: Send + 'static>(
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
) -> Result<T> {
    off_network(may_decode_inline(body.len()), move || read(&body)).await
}

/// A path and a body, for the fuzz target.
pub(crate) fn fuzz(data: &[u8]) {
    use ferroflow_core::{DType, PartialShape};
    use ferroflow_train::{Signature, TensorInfo};
    if let Ok(path) = std::str::from_utf8(data) {
        let _ = route::parse(path);
    }
    let info = |dtype| TensorInfo { name: "x:0".into(), dtype, shape: PartialShape::unknown() };
    let inputs = [("f", DType::Float), ("i", DType::Int8), ("s", DType::String)];
    let inputs = inputs.into_iter().map(|(name, dtype)| (name.to_string(), info(dtype))).collect();
    let signature = Signature { inputs, ..Signature::default() };
    if let Ok(PredictBody { data, .. }) = PredictBody::parse(data)
        && let Ok((tensors, format)) = data.tensors(&signature)
    {
        let _ = json::write_outputs(&tensors, format);
    }
    let _ = json::examples(data);
}

fn status_json(versions: &[VersionStatus]) -> Value {
    let one = |status: &VersionStatus| {
        let code = status.error.as_ref().map_or(ferroflow_core::Code::Ok, Error::code);
        let message = status.error.as_ref().map_or("", |e| e.message());
        json!({
            "version": status.version.to_string(),
            "state": status.state.name(),
            "status": { "error_code": code.name(), "error_message": message },
        })
    };
    json!({ "model_version_status": versions.iter().map(one).collect::<Vec<_>>() })
}
