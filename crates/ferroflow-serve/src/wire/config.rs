//! Configuration files in protobuf's text format, and the same messages in requests.

use super::{pb, read};
use crate::config::{BatchingOptions, ModelSource, VersionPolicy};
use bytes::Bytes;
use ferroflow_core::{Result, bail, ensure, err};
use pb::file_system_storage_path_source_config::servable_version_policy::PolicyChoice;
use pb::model_server_config::Config;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use std::time::Duration;

/// The descriptors of `serving_config.proto`.
const DESCRIPTORS: &[u8] = include_bytes!("generated/config.descriptors");

/// Parses a `ModelServerConfig`.
pub(crate) fn models_from_text(text: &str) -> Result<Vec<ModelSource>> {
    models(parse::<pb::ModelServerConfig>("tensorflow.serving.ModelServerConfig", text)?)
}

/// The models of a `ReloadConfigRequest`.
pub(crate) fn models_of_reload(body: Bytes) -> Result<Vec<ModelSource>> {
    let request: pb::ReloadConfigRequest = read(body)?;
    models(request.config.unwrap_or_default())
}

/// Parses `BatchingParameters`.
pub(crate) fn batching_from_text(text: &str) -> Result<BatchingOptions> {
    let p: pb::BatchingParameters = parse("tensorflow.serving.BatchingParameters", text)?;
    let number = |value: Option<pb::Int64Value>, default: usize, name: &str| match value {
        None => Ok(default),
        Some(v) => usize::try_from(v.value)
            .map_err(|_| err!(InvalidArgument, "{name} is {}, which is negative", v.value)),
    };
    let sizes = p.allowed_batch_sizes.iter().map(|&size| {
        usize::try_from(size)
            .map_err(|_| err!(InvalidArgument, "allowed_batch_sizes has {size}, which is negative"))
    });
    ensure!(
        p.max_execution_batch_size.is_none(),
        Unimplemented,
        "max_execution_batch_size is not supported; set max_batch_size to it, and \
         enable_large_batch_splitting"
    );
    let default = BatchingOptions::default();
    Ok(BatchingOptions {
        allowed_batch_sizes: sizes.collect::<Result<_>>()?,
        max_batch_size: number(p.max_batch_size, default.max_batch_size, "max_batch_size")?,
        timeout: Duration::from_micros(
            number(p.batch_timeout_micros, 0, "batch_timeout_micros")? as u64
        ),
        max_enqueued_batches: number(
            p.max_enqueued_batches,
            default.max_enqueued_batches,
            "max_enqueued_batches",
        )?,
        threads: number(p.num_batch_threads, default.threads, "num_batch_threads")?,
        pad_variable_length_inputs: p.pad_variable_length_inputs,
        split_large_batches: p.enable_large_batch_splitting.is_some_and(|v| v.value),
    })
}

fn parse<M: Message + Default>(name: &str, text: &str) -> Result<M> {
    let pool = DescriptorPool::decode(DESCRIPTORS);
    let pool = pool.map_err(|e| err!(Internal, "the descriptors of the configuration: {e}"))?;
    let message = pool.get_message_by_name(name);
    let message = message.ok_or_else(|| err!(Internal, "{name} has no descriptor"))?;
    let parsed = DynamicMessage::parse_text_format(message, text)
        .map_err(|e| err!(InvalidArgument, "not a {name} in text format: {e}"))?;
    M::decode(parsed.encode_to_vec().as_slice()).map_err(|e| err!(Internal, "{name}: {e}"))
}

fn models(config: pb::ModelServerConfig) -> Result<Vec<ModelSource>> {
    match config.config {
        None => Ok(Vec::new()),
        Some(Config::ModelConfigList(list)) => list.config.into_iter().map(model).collect(),
        Some(Config::CustomModelConfig(_)) => {
            bail!(Unimplemented, "custom_model_config is not supported; use model_config_list")
        }
    }
}

fn model(config: pb::ModelConfig) -> Result<ModelSource> {
    let name = &config.name;
    ensure!(
        matches!(config.model_platform.as_str(), "" | "tensorflow")
            && config.model_type() != pb::ModelType::Other,
        Unimplemented,
        "model {name:?} is of platform {:?}; only \"tensorflow\" is served",
        config.model_platform
    );
    if config.logging_config.is_some() {
        tracing::warn!("model {name:?}: logging_config is ignored");
    }
    let choice = config.model_version_policy.and_then(|policy| policy.policy_choice);
    let versions = match choice {
        None => VersionPolicy::default(),
        Some(PolicyChoice::Latest(latest)) => {
            VersionPolicy::Latest(latest.num_versions.max(1) as usize)
        }
        Some(PolicyChoice::All(_)) => VersionPolicy::All,
        Some(PolicyChoice::Specific(specific)) => {
            ensure!(
                !specific.versions.is_empty(),
                InvalidArgument,
                "the specific versions of model {name:?} are not given"
            );
            VersionPolicy::Specific(specific.versions.into_iter().collect())
        }
    };
    let path = config.base_path.into();
    Ok(ModelSource { name: config.name, path, versions, labels: config.version_labels })
}
