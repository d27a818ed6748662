//! Configuration files in protobuf's text format, and the same messages in requests.

use super::text_format::{Field, FromText, TextReader, parse};
use super::{pb, read};
use crate::config::{BatchingOptions, ModelSource, VersionPolicy};
use bytes::Bytes;
use ferroflow_core::{Result, bail, ensure, err};
use pb::file_system_storage_path_source_config::ServableVersionPolicy;
use pb::file_system_storage_path_source_config::servable_version_policy::{
    All, Latest, PolicyChoice, Specific,
};
use pb::model_server_config::Config;
use std::time::Duration;

/// Parses a `ModelServerConfig`.
pub(crate) fn models_from_text(text: &str) -> Result<Vec<ModelSource>> {
    let config = parse::<pb::ModelServerConfig>(text);
    models(config.map_err(|e| e.context("not a ModelServerConfig in text format"))?)
}

/// The models of a `ReloadConfigRequest`.
pub(crate) fn models_of_reload(body: Bytes) -> Result<Vec<ModelSource>> {
    let request: pb::ReloadConfigRequest = read(body)?;
    models(request.config.unwrap_or_default())
}

/// Parses `BatchingParameters`.
pub(crate) fn batching_from_text(text: &str) -> Result<BatchingOptions> {
    let p = parse::<pb::BatchingParameters>(text)
        .map_err(|e| e.context("not BatchingParameters in text format"))?;
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

/// Reads a message from text: each field by the expression for its value. A repeated field appends
/// to its list.
macro_rules! from_text {
    ($message:ty { $($name:literal $kind:expr => |$this:ident, $value:ident| $take:expr;)* }) => {
        impl FromText for $message {
            fn take(&mut self, name: &str, _value: &mut TextReader<'_>) -> Result<Field> {
                match name {
                    $($name => {
                        let ($this, $value) = (self, _value);
                        $take;
                        Ok($kind)
                    })*
                    _ => Ok(Field::Unknown),
                }
            }
        }
    };
}

from_text!(pb::ModelServerConfig {
    "model_config_list" Field::OneOf("config") =>
        |m, v| m.config = Some(Config::ModelConfigList(v.message()?));
    "custom_model_config" Field::OneOf("config") =>
        |m, v| m.config = Some(Config::CustomModelConfig(v.bytes()?.into()));
});

from_text!(pb::ModelConfigList {
    "config" Field::Repeated => |m, v| m.config.push(v.message()?);
});

from_text!(pb::ModelConfig {
    "name" Field::Once => |m, v| m.name = v.string()?;
    "base_path" Field::Once => |m, v| m.base_path = v.string()?;
    "model_type" Field::Once => |m, v| m.model_type = model_type(&v.word()?)?.into();
    "model_platform" Field::Once => |m, v| m.model_platform = v.string()?;
    "logging_config" Field::Once => |m, v| m.logging_config = Some(v.message()?);
    "model_version_policy" Field::Once => |m, v| m.model_version_policy = Some(v.message()?);
    "version_labels" Field::Repeated => |m, v| {
        let label: Label = v.message()?;
        m.version_labels.insert(label.key, label.value);
    };
});

/// An entry of a map.
#[derive(Default)]
struct Label {
    key: String,
    value: i64,
}

from_text!(Label {
    "key" Field::Once => |m, v| m.key = v.string()?;
    "value" Field::Once => |m, v| m.value = v.integer()?;
});

fn model_type(word: &str) -> Result<pb::ModelType> {
    let by_number = || pb::ModelType::try_from(word.parse::<i32>().ok()?).ok();
    pb::ModelType::from_str_name(word)
        .or_else(by_number)
        .ok_or_else(|| err!(InvalidArgument, "{word:?} is no ModelType"))
}

from_text!(ServableVersionPolicy {
    "latest" Field::OneOf("policy_choice") =>
        |m, v| m.policy_choice = Some(PolicyChoice::Latest(v.message()?));
    "all" Field::OneOf("policy_choice") =>
        |m, v| m.policy_choice = Some(PolicyChoice::All(v.message()?));
    "specific" Field::OneOf("policy_choice") =>
        |m, v| m.policy_choice = Some(PolicyChoice::Specific(v.message()?));
});

from_text!(Latest {
    "num_versions" Field::Once => |m, v| m.num_versions = v.integer()?;
});

from_text!(All {});

from_text!(Specific {
    "versions" Field::Repeated => |m, v| m.versions.push(v.integer()?);
});

from_text!(pb::LoggingConfig {
    "log_collector_config" Field::Once => |m, v| m.log_collector_config = Some(v.message()?);
    "sampling_config" Field::Once => |m, v| m.sampling_config = Some(v.message()?);
});

from_text!(pb::LogCollectorConfig {
    "type" Field::Once => |m, v| m.r#type = v.string()?;
    "filename_prefix" Field::Once => |m, v| m.filename_prefix = v.string()?;
});

from_text!(pb::SamplingConfig {
    "sampling_rate" Field::Once => |m, v| m.sampling_rate = v.real()?;
});

from_text!(pb::BoolValue {
    "value" Field::Once => |m, v| m.value = v.boolean()?;
});

from_text!(pb::Int64Value {
    "value" Field::Once => |m, v| m.value = v.integer()?;
});

from_text!(pb::StringValue {
    "value" Field::Once => |m, v| m.value = v.string()?;
});

from_text!(pb::BatchingParameters {
    "max_batch_size" Field::Once => |m, v| m.max_batch_size = Some(v.message()?);
    "batch_timeout_micros" Field::Once => |m, v| m.batch_timeout_micros = Some(v.message()?);
    "max_enqueued_batches" Field::Once => |m, v| m.max_enqueued_batches = Some(v.message()?);
    "num_batch_threads" Field::Once => |m, v| m.num_batch_threads = Some(v.message()?);
    "thread_pool_name" Field::Once => |m, v| m.thread_pool_name = Some(v.message()?);
    "allowed_batch_sizes" Field::Repeated => |m, v| m.allowed_batch_sizes.push(v.integer()?);
    "pad_variable_length_inputs" Field::Once => |m, v| m.pad_variable_length_inputs = v.boolean()?;
    "enable_large_batch_splitting" Field::Once =>
        |m, v| m.enable_large_batch_splitting = Some(v.message()?);
    "max_execution_batch_size" Field::Once =>
        |m, v| m.max_execution_batch_size = Some(v.message()?);
});
