//! Messages about models: their signatures, the states of their versions, and their health.

use super::{ModelSpec, SignatureDefs, pb, read, spec_from_proto, spec_to_proto, write};
use crate::models::{VersionState, VersionStatus};
use bytes::Bytes;
use ferroflow_core::{DType, Error, Result, ensure, err};
use ferroflow_graph::wire::MessageReader;
use ferroflow_proto::{google, tensorflow as tf};
use prost::{Message, Name};
use serde_json::{Map, Value, json};

/// The only metadata that models have.
const METADATA_FIELD: &str = "signature_def";

/// The signatures of the graph with these tags in a serialized `SavedModel`.
pub(crate) fn signatures_of(saved_model: Bytes, tag: &str) -> Result<SignatureDefs> {
    let model = tf::SavedModel::decode(saved_model)
        .map_err(|e| err!(DataLoss, "not a SavedModel message: {e}"))?;
    let has_tag = |meta: &tf::MetaGraphDef| {
        meta.meta_info_def.as_ref().is_some_and(|info| info.tags.iter().eq([tag]))
    };
    let meta = model.meta_graphs.into_iter().find(has_tag);
    Ok(SignatureDefs(meta.map(|meta| meta.signature_def).unwrap_or_default()))
}

/// The model of a GetModelMetadata request.
pub(crate) fn metadata_request(body: Bytes) -> Result<ModelSpec> {
    let request: pb::GetModelMetadataRequest = read(body)?;
    let spec = spec_from_proto(request.model_spec)?;
    ensure!(
        !request.metadata_field.is_empty(),
        InvalidArgument,
        "GetModelMetadataRequest must specify at least one metadata_field"
    );
    for field in &request.metadata_field {
        ensure!(
            field == METADATA_FIELD,
            InvalidArgument,
            "Metadata field {field} is not supported; there is only {METADATA_FIELD}"
        );
    }
    Ok(spec)
}

pub(crate) fn metadata_answer(name: &str, version: i64, signatures: &SignatureDefs) -> Bytes {
    let map = pb::SignatureDefMap { signature_def: signatures.0.clone() };
    let any = google::protobuf::Any {
        type_url: pb::SignatureDefMap::type_url(),
        value: map.encode_to_vec().into(),
    };
    write(pb::GetModelMetadataResponse {
        model_spec: Some(spec_to_proto(name, version, "")),
        metadata: [(METADATA_FIELD.to_string(), any)].into(),
    })
}

/// The same in protobuf's JSON format, with the field names of the definition.
pub(crate) fn metadata_json(name: &str, version: i64, signatures: &SignatureDefs) -> Value {
    let signature = |def: &tf::SignatureDef| {
        json!({
            "inputs": tensors_json(&def.inputs),
            "outputs": tensors_json(&def.outputs),
            "method_name": def.method_name,
            "defaults": {},
        })
    };
    let all: Map<String, Value> =
        signatures.0.iter().map(|(name, def)| (name.clone(), signature(def))).collect();
    json!({
        "model_spec": { "name": name, "signature_name": "", "version": version.to_string() },
        "metadata": { METADATA_FIELD: {
            "@type": pb::SignatureDefMap::type_url(),
            METADATA_FIELD: all,
        } },
    })
}

fn tensors_json(tensors: &std::collections::BTreeMap<String, tf::TensorInfo>) -> Value {
    let one = |info: &tf::TensorInfo| {
        let shape = info.tensor_shape.clone().unwrap_or_default();
        let dim = |dim: &tf::tensor_shape_proto::Dim| json!({ "size": dim.size.to_string(), "name": dim.name });
        let name = match &info.encoding {
            Some(tf::tensor_info::Encoding::Name(name)) => name.as_str(),
            _ => "",
        };
        json!({
            "dtype": dtype_name(info.dtype),
            "tensor_shape": {
                "dim": shape.dim.iter().map(dim).collect::<Vec<_>>(),
                "unknown_rank": shape.unknown_rank,
            },
            "name": name,
        })
    };
    tensors.iter().map(|(name, info)| (name.clone(), one(info))).collect::<Map<_, _>>().into()
}

/// The name of a dtype in messages, such as `DT_FLOAT`.
fn dtype_name(number: i32) -> String {
    match DType::from_number(number) {
        Ok(dtype) => format!("DT_{}", dtype.name().to_uppercase()),
        Err(_) => "DT_INVALID".to_string(),
    }
}

/// The model of a GetModelStatus request.
pub(crate) fn status_request(body: Bytes) -> Result<ModelSpec> {
    let request: pb::GetModelStatusRequest = read(body)?;
    spec_from_proto(request.model_spec)
}

pub(crate) fn status_answer(versions: &[VersionStatus]) -> Bytes {
    use pb::model_version_status::State;
    let one = |status: &VersionStatus| pb::ModelVersionStatus {
        version: status.version,
        state: match status.state {
            VersionState::Start => State::Start,
            VersionState::Loading => State::Loading,
            VersionState::Available => State::Available,
            VersionState::Unloading => State::Unloading,
            VersionState::End => State::End,
        }
        .into(),
        status: Some(status_proto(status.error.as_ref())),
    };
    let model_version_status = versions.iter().map(one).collect();
    write(pb::GetModelStatusResponse { model_version_status })
}

/// The answer to a HandleReloadConfigRequest that succeeded.
pub(crate) fn reload_answer() -> Bytes {
    write(pb::ReloadConfigResponse { status: Some(status_proto(None)) })
}

fn status_proto(error: Option<&Error>) -> pb::StatusProto {
    pb::StatusProto {
        error_code: error.map_or(0, |e| e.code() as i32),
        error_message: error.map_or_else(String::new, |e| e.message().to_string()),
    }
}

/// The service that a `grpc.health.v1.HealthCheckRequest` asks about.
pub(crate) fn health_service(body: Bytes) -> Result<String> {
    let mut reader = MessageReader::new([body]);
    let mut service = String::new();
    while let Some(key) = reader.key()? {
        match key.field {
            1 => service = reader.string(key)?,
            _ => reader.skip(key)?,
        }
    }
    Ok(service)
}

/// A `grpc.health.v1.HealthCheckResponse`.
pub(crate) fn health_answer(is_serving: bool) -> Bytes {
    const STATUS_FIELD: u8 = 1 << 3;
    Bytes::copy_from_slice(&[STATUS_FIELD, if is_serving { 1 } else { 2 }])
}
