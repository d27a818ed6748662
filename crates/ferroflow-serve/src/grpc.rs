//! The gRPC services: PredictionService, ModelService, and gRPC's health service.

use crate::inference;
use crate::metrics::RunningRequest;
use crate::model::ModelVersion;
use crate::models::Models;
use crate::wire::{self, ClassifyRequest, ModelSpec, MultiInferenceRequest, PredictRequest};
use bytes::Bytes;
use ferroflow_cluster::rpc::{
    BoxFuture, Chunks, RpcRequest, RpcService, RpcStatus, decode_tensors, off_network,
};
use ferroflow_core::inline::may_decode_inline;
use ferroflow_core::{Code, Error, Result, Tensor, err};
use std::sync::Arc;

/// Answers the calls of all three services.
#[derive(Clone)]
pub(crate) struct GrpcService {
    pub models: Arc<Models>,
}

const PREDICTION: &str = "tensorflow.serving.PredictionService";
const MODEL: &str = "tensorflow.serving.ModelService";
const HEALTH: &str = "grpc.health.v1.Health";

impl RpcService for GrpcService {
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        let me = self.clone();
        Box::pin(async move {
            let path = request.path().to_string();
            let unknown = || RpcStatus::unknown_method(&path);
            let (service, method) =
                path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(unknown)?;
            let body = request.body;
            let answered = match (service, method) {
                (PREDICTION, "Predict") => me.predict(body).await,
                (PREDICTION, "Classify") => me.classify(body.into_bytes()).await.map(Chunks::from),
                (PREDICTION, "Regress") => me.regress(body.into_bytes()).await.map(Chunks::from),
                (PREDICTION, "MultiInference") => {
                    me.multi_inference(body.into_bytes()).await.map(Chunks::from)
                }
                (PREDICTION, "GetModelMetadata") => {
                    me.metadata(body.into_bytes()).await.map(Chunks::from)
                }
                (MODEL, "GetModelStatus") => me.status(body.into_bytes()).await.map(Chunks::from),
                (MODEL, "HandleReloadConfigRequest") => {
                    me.reload(body.into_bytes()).await.map(Chunks::from)
                }
                (HEALTH, "Check") => me.health(body.into_bytes()).await.map(Chunks::from),
                _ => return Err(unknown()),
            };
            answered.map_err(|e| RpcStatus::new(e.code() as i32, e.message()))
        })
    }
}

impl GrpcService {
    async fn predict(&self, body: Chunks) -> Result<Chunks> {
        let request = decode_tensors(body, PredictRequest::TENSORS, PredictRequest::decode).await?;
        let model = self.find(&request.spec, "Predict")?;
        let running = model.metrics.begin("Predict");
        let work = async {
            let (signature, name) = inference::predict_signature(&model, &request.spec.signature)?;
            let outputs =
                inference::predict(&model, signature, request.inputs, &request.outputs).await?;
            let (name, version, signature) = (model.name.clone(), model.number, name);
            let is_quick = are_short(&outputs);
            let answer = wire::PredictResponse { name, version, signature, outputs };
            off_network(is_quick, move || answer.encode()).await
        };
        counted(running, work.await)
    }

    async fn classify(&self, body: Bytes) -> Result<Bytes> {
        let ClassifyRequest { spec, examples } = decoded(body, ClassifyRequest::decode).await?;
        let model = self.find(&spec, "Classify")?;
        let running = model.metrics.begin("Classify");
        let classes = inference::classify(&model, &spec.signature, examples).await;
        let classes = counted(running, classes)?;
        let signature = inference::signature_name(&spec.signature);
        Ok(wire::encode_classify((&model.name, model.number, signature), classes))
    }

    async fn regress(&self, body: Bytes) -> Result<Bytes> {
        let ClassifyRequest { spec, examples } = decoded(body, ClassifyRequest::decode).await?;
        let model = self.find(&spec, "Regress")?;
        let running = model.metrics.begin("Regress");
        let values = inference::regress(&model, &spec.signature, examples).await;
        let values = counted(running, values)?;
        let signature = inference::signature_name(&spec.signature);
        Ok(wire::encode_regress((&model.name, model.number, signature), values))
    }

    async fn multi_inference(&self, body: Bytes) -> Result<Bytes> {
        let MultiInferenceRequest { tasks, examples } =
            decoded(body, MultiInferenceRequest::decode).await?;
        let model = self.find(inference::one_model(&tasks)?, "MultiInference")?;
        let running = model.metrics.begin("MultiInference");
        let tasks: Vec<_> =
            tasks.into_iter().map(|(spec, method)| (spec.signature, method)).collect();
        let answers = inference::examined(&model, &tasks, examples).await;
        let answers = counted(running, answers)?;
        Ok(wire::encode_multi_inference((&model.name, model.number), answers))
    }

    async fn metadata(&self, body: Bytes) -> Result<Bytes> {
        let spec = decoded(body, wire::metadata_request).await?;
        let model = self.find(&spec, "GetModelMetadata")?;
        Ok(wire::metadata_answer(&model.name, model.number, &model.definitions))
    }

    async fn status(&self, body: Bytes) -> Result<Bytes> {
        let spec = decoded(body, wire::status_request).await?;
        Ok(wire::status_answer(&self.models.status(&spec)?))
    }

    async fn reload(&self, body: Bytes) -> Result<Bytes> {
        let models = self.models.clone();
        let sources = decoded(body, wire::models_of_reload).await?;
        // A client that disconnects must not leave half of a configuration.
        let setting = tokio::spawn(async move { models.set(sources).await });
        setting.await.map_err(|e| err!(Internal, "the configuration was not changed: {e}"))??;
        Ok(wire::reload_answer())
    }

    async fn health(&self, body: Bytes) -> Result<Bytes> {
        let service = decoded(body, wire::health_service).await?;
        let is_serving = match service.as_str() {
            "" | PREDICTION | MODEL | HEALTH => Some(self.models.is_healthy()),
            model => self.models.serves(model),
        };
        let is_serving =
            is_serving.ok_or_else(|| err!(NotFound, "no service or model {service:?}"))?;
        Ok(wire::health_answer(is_serving))
    }

    fn find(&self, spec: &ModelSpec, method: &'static str) -> Result<Arc<ModelVersion>> {
        found(&self.models, spec, method)
    }
}

/// Decodes a message. Long ones are decoded on a thread that serves no other connections.
async fn decoded<T: Send + 'static>(
    body: Bytes,
    decode: impl FnOnce(Bytes) -> Result<T> + Send + 'static,
) -> Result<T> {
    off_network(may_decode_inline(body.len()), move || decode(body)).await
}

/// Whether a network thread may write these tensors into an answer itself.
pub(crate) fn are_short(tensors: &[(String, Tensor)]) -> bool {
    may_decode_inline(tensors.iter().map(|(_, t)| t.elements().saturating_mul(ELEMENT)).sum())
}

/// The approximate bytes of an element in an answer.
const ELEMENT: usize = 8;

/// The version for a request. If there is none, counts the request as failed.
pub(crate) fn found(
    models: &Models,
    spec: &ModelSpec,
    method: &'static str,
) -> Result<Arc<ModelVersion>> {
    models.find(spec).inspect_err(|e: &Error| models.metrics.refused(method, e.code()))
}

/// Counts the end of a request.
pub(crate) fn counted<T>(running: RunningRequest<'_>, result: Result<T>) -> Result<T> {
    running.end(result.as_ref().map_or_else(Error::code, |_| Code::Ok));
    result
}
