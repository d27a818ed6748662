//! Records of warm-up files.

use super::inference::{ClassifyRequest, MultiInferenceRequest, PredictRequest};
use super::{pb, read};
use bytes::Bytes;
use ferroflow_core::{Result, bail};
use pb::prediction_log::LogType;

/// A request that a version answers before clients can use it.
pub(crate) enum WarmupRequest {
    Predict(PredictRequest),
    Classify(ClassifyRequest),
    Regress(ClassifyRequest),
    MultiInference(MultiInferenceRequest),
}

/// Reads a serialized `PredictionLog`.
pub(crate) fn warmup_request(record: Bytes) -> Result<WarmupRequest> {
    let log: pb::PredictionLog = read(record)?;
    Ok(match log.log_type {
        Some(LogType::PredictLog(log)) => {
            WarmupRequest::Predict(PredictRequest::decode(log.request.into())?)
        }
        Some(LogType::ClassifyLog(log)) => {
            WarmupRequest::Classify(ClassifyRequest::decode(log.request)?)
        }
        Some(LogType::RegressLog(log)) => {
            WarmupRequest::Regress(ClassifyRequest::decode(log.request)?)
        }
        Some(LogType::MultiInferenceLog(log)) => {
            WarmupRequest::MultiInference(MultiInferenceRequest::decode(log.request)?)
        }
        Some(LogType::SessionRunLog(_)) => bail!(Unimplemented, "session_run_log is not supported"),
        Some(LogType::PredictStreamedLog(_)) => {
            bail!(Unimplemented, "predict_streamed_log is not supported")
        }
        None => bail!(InvalidArgument, "the record holds no request"),
    })
}
