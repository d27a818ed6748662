//! Requests and answers of PredictionService. Tensors of requests are read without copies.

use super::examples::example_tensor;
use super::tensors::typed_proto;
use super::{ModelSpec, pb, read, spec_from_proto, spec_to_proto, write};
use crate::inference::{Classes, Method};
use bytes::Bytes;
use ferroflow_cluster::rpc::Chunks;
use ferroflow_core::{Result, Tensor, ensure};
use ferroflow_graph::wire::MessageReader;

/// Calls a signature with tensors.
pub(crate) struct PredictRequest {
    pub spec: ModelSpec,
    pub inputs: Vec<(String, Tensor)>,
    /// The wanted outputs; empty for all.
    pub outputs: Vec<String>,
}

impl PredictRequest {
    /// The fields that lead to its tensors.
    pub const TENSORS: &[u32] = &[2, 2];

    pub fn decode(mut reader: MessageReader) -> Result<PredictRequest> {
        let (mut spec, mut inputs, mut outputs) = (None, Vec::new(), Vec::new());
        while let Some(key) = reader.key()? {
            match key.field {
                1 => reader.merge(key, spec.get_or_insert_default())?,
                2 => inputs.push(reader.named_tensor(key)?),
                3 => outputs.push(reader.string(key)?),
                _ => reader.skip(key)?,
            }
        }
        Ok(PredictRequest { spec: spec_from_proto(spec)?, inputs, outputs })
    }
}

/// The outputs of a signature.
pub(crate) struct PredictResponse {
    pub name: String,
    pub version: i64,
    pub signature: String,
    pub outputs: Vec<(String, Tensor)>,
}

impl PredictResponse {
    pub fn encode(&self) -> Result<Chunks> {
        let output =
            |(name, value): &(String, Tensor)| Ok((name.clone(), write(typed_proto(value)?)));
        let outputs = self.outputs.iter().map(output).collect::<Result<_>>()?;
        let model_spec = Some(spec_to_proto(&self.name, self.version, &self.signature));
        Ok(write(pb::PredictResponse { outputs, model_spec }).into())
    }
}

/// Classifies or regresses examples.
pub(crate) struct ClassifyRequest {
    pub spec: ModelSpec,
    /// Serialized examples.
    pub examples: Tensor,
}

impl ClassifyRequest {
    /// The messages of both calls have the same fields.
    pub fn decode(body: Bytes) -> Result<ClassifyRequest> {
        let request: pb::ClassificationRequest = read(body)?;
        let spec = spec_from_proto(request.model_spec)?;
        Ok(ClassifyRequest { spec, examples: example_tensor(request.input)? })
    }
}

/// Several signatures of one model for the same examples.
pub(crate) struct MultiInferenceRequest {
    pub tasks: Vec<(ModelSpec, Method)>,
    pub examples: Tensor,
}

impl MultiInferenceRequest {
    pub fn decode(body: Bytes) -> Result<MultiInferenceRequest> {
        let request: pb::MultiInferenceRequest = read(body)?;
        ensure!(!request.tasks.is_empty(), InvalidArgument, "Inference request has no tasks.");
        let task = |task: pb::InferenceTask| {
            Ok((spec_from_proto(task.model_spec)?, Method::from_name(&task.method_name)?))
        };
        let tasks = request.tasks.into_iter().map(task).collect::<Result<Vec<_>>>()?;
        Ok(MultiInferenceRequest { tasks, examples: example_tensor(request.input)? })
    }
}

/// The result of one task of a MultiInference.
pub(crate) enum InferenceAnswer {
    Classes(Vec<Classes>),
    Values(Vec<f32>),
}

pub(crate) fn encode_classify(
    (name, version, signature): (&str, i64, &str),
    classes: Vec<Classes>,
) -> Bytes {
    write(pb::ClassificationResponse {
        result: Some(classification(classes)),
        model_spec: Some(spec_to_proto(name, version, signature)),
    })
}

pub(crate) fn encode_regress(
    (name, version, signature): (&str, i64, &str),
    values: Vec<f32>,
) -> Bytes {
    write(pb::RegressionResponse {
        result: Some(regression(values)),
        model_spec: Some(spec_to_proto(name, version, signature)),
    })
}

pub(crate) fn encode_multi_inference(
    (name, version): (&str, i64),
    answers: Vec<(String, InferenceAnswer)>,
) -> Bytes {
    use pb::inference_result::Result as Of;
    let result = |(signature, answer): (String, InferenceAnswer)| pb::InferenceResult {
        model_spec: Some(spec_to_proto(name, version, &signature)),
        result: Some(match answer {
            InferenceAnswer::Classes(classes) => Of::ClassificationResult(classification(classes)),
            InferenceAnswer::Values(values) => Of::RegressionResult(regression(values)),
        }),
    };
    write(pb::MultiInferenceResponse { results: answers.into_iter().map(result).collect() })
}

fn classification(classes: Vec<Classes>) -> pb::ClassificationResult {
    let row = |classes: Classes| pb::Classifications {
        classes: classes.into_iter().map(|(label, score)| pb::Class { label, score }).collect(),
    };
    pb::ClassificationResult { classifications: classes.into_iter().map(row).collect() }
}

fn regression(values: Vec<f32>) -> pb::RegressionResult {
    let regressions = values.into_iter().map(|value| pb::Regression { value }).collect();
    pb::RegressionResult { regressions }
}
