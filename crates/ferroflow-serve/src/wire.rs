//! TensorFlow Serving's messages. Only this module of the crate uses protobuf types.

mod config;
mod examples;
mod inference;
mod metadata;
mod tensors;
mod text_format;
mod warmup;

pub(crate) use config::{batching_from_text, models_from_text, models_of_reload};
pub(crate) use examples::{ExampleFeature, encode_example, examples_with_context};
pub(crate) use inference::{
    ClassifyRequest, InferenceAnswer, MultiInferenceRequest, PredictRequest, PredictResponse,
    encode_classify, encode_multi_inference, encode_regress,
};
pub(crate) use metadata::{
    health_answer, health_service, metadata_answer, metadata_json, metadata_request, reload_answer,
    signatures_of, status_answer, status_request,
};
pub(crate) use warmup::{WarmupRequest, warmup_request};

/// The messages of `proto/`.
#[allow(clippy::all, rustdoc::all, missing_docs, dead_code)]
mod pb {
    include!("wire/generated/tensorflow.serving.rs");
}

use bytes::Bytes;
use ferroflow_core::{Result, err};
use ferroflow_proto::tensorflow::SignatureDef;
use prost::Message;
use std::collections::BTreeMap;

/// The model that a request is for, and the signature to call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelSpec {
    pub name: String,
    pub version: Option<VersionChoice>,
    /// Empty for the default.
    pub signature: String,
}

/// How a request picks a version. The default is the latest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum VersionChoice {
    Number(i64),
    Label(String),
}

/// The signatures of a model as they are in its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignatureDefs(BTreeMap<String, SignatureDef>);

fn spec_from_proto(spec: Option<pb::ModelSpec>) -> Result<ModelSpec> {
    use pb::model_spec::VersionChoice as Choice;
    let spec = spec.ok_or_else(|| err!(InvalidArgument, "Missing ModelSpec"))?;
    let version = spec.version_choice.map(|choice| match choice {
        Choice::Version(version) => VersionChoice::Number(version.value),
        Choice::VersionLabel(label) => VersionChoice::Label(label),
    });
    Ok(ModelSpec { name: spec.name, version, signature: spec.signature_name })
}

/// The model of an answer, which always has the number of the version.
fn spec_to_proto(name: &str, version: i64, signature: &str) -> pb::ModelSpec {
    pb::ModelSpec {
        name: name.into(),
        signature_name: signature.into(),
        version_choice: Some(pb::model_spec::VersionChoice::Version(pb::Int64Value {
            value: version,
        })),
    }
}

fn read<M: Message + Default>(body: Bytes) -> Result<M> {
    M::decode(body).map_err(|e| err!(InvalidArgument, "malformed message: {e}"))
}

fn write(message: impl Message) -> Bytes {
    message.encode_to_vec().into()
}
