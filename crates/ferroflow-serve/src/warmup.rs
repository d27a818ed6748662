//! Warm-up: a version answers recorded requests before clients can use it, so that its steps are
//! compiled and its memory is allocated.

use crate::inference;
use crate::model::ModelVersion;
use crate::models::on_own_thread;
use crate::wire::{WarmupRequest, warmup_request};
use bytes::Bytes;
use ferroflow_core::{Code, Result, ensure, err};
use ferroflow_op_kit::tfrecord::masked_crc;
use ferroflow_train::read_model_file;
use std::path::Path;

/// The file of the requests, in the folder of a version.
const FILE: &str = "assets.extra/tf_serving_warmup_requests";
/// The most requests of a file to run.
const MOST_REQUESTS: usize = 1000;

/// Runs the requests of a version's warm-up file, if it has one. Returns their number.
pub(crate) async fn warm_up(model: &ModelVersion, folder: &Path) -> Result<usize> {
    let file = folder.join(FILE);
    let path = file.clone();
    let bytes = match on_own_thread(move || read_model_file(&path)).await? {
        Ok(bytes) => Bytes::from(bytes),
        Err(e) if e.code() == Code::NotFound => return Ok(0),
        Err(e) => return Err(err!(DataLoss, "{}", e.message())),
    };
    let records = records(bytes).map_err(|e| e.context(file.display()))?;
    if records.len() > MOST_REQUESTS {
        let (there, name) = (records.len(), file.display());
        tracing::warn!("{name} has {there} requests; only the first {MOST_REQUESTS} are run");
    }
    let mut count = 0;
    for record in records.into_iter().take(MOST_REQUESTS) {
        run(model, record)
            .await
            .map_err(|e| e.context(format!("warm-up request {count} of {}", file.display())))?;
        count += 1;
    }
    Ok(count)
}

async fn run(model: &ModelVersion, record: Bytes) -> Result<()> {
    match warmup_request(record)? {
        WarmupRequest::Predict(request) => {
            let (signature, _) = inference::predict_signature(model, &request.spec.signature)?;
            inference::predict(model, signature, request.inputs, &request.outputs).await?;
        }
        WarmupRequest::Classify(request) => {
            inference::classify(model, &request.spec.signature, request.examples).await?;
        }
        WarmupRequest::Regress(request) => {
            inference::regress(model, &request.spec.signature, request.examples).await?;
        }
        WarmupRequest::MultiInference(request) => {
            let task = |(spec, method): (crate::wire::ModelSpec, _)| (spec.signature, method);
            let tasks: Vec<_> = request.tasks.into_iter().map(task).collect();
            inference::examined(model, &tasks, request.examples).await?;
        }
    }
    Ok(())
}

/// The records of a TFRecord file.
fn records(mut bytes: Bytes) -> Result<Vec<Bytes>> {
    const LENGTH: usize = 8;
    const CRC: usize = 4;
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let cut = || err!(DataLoss, "record {} is cut off", records.len());
        ensure!(bytes.len() >= LENGTH + CRC, DataLoss, "record {} is cut off", records.len());
        let head = bytes.split_to(LENGTH + CRC);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
        let is_whole = |bytes: &[u8], crc: &[u8]| u64::from(masked_crc(bytes)) == number(crc);
        ensure!(
            is_whole(&head[..LENGTH], &head[LENGTH..]),
            DataLoss,
            "the length of record {} is damaged",
            records.len()
        );
        let length = usize::try_from(number(&head[..LENGTH])).map_err(|_| cut())?;
        ensure!(bytes.len().saturating_sub(CRC) >= length, DataLoss, "{}", cut().message());
        let record = bytes.split_to(length);
        let crc = bytes.split_to(CRC);
        ensure!(is_whole(&record, &crc), DataLoss, "record {} is damaged", records.len());
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_op_kit::tfrecord::write_record;

    #[test]
    fn records_are_read_and_damage_is_found() {
        let mut file = Vec::new();
        write_record(&mut file, b"one").unwrap();
        write_record(&mut file, b"").unwrap();
        assert_eq!(records(file.clone().into()).unwrap(), [&b"one"[..], &b""[..]]);
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert!(records(damaged.into()).is_err(), "byte {at}");
        }
        assert!(records(Bytes::from(file).slice(..17)).is_err());
    }
}
