//! Parsers of bytes from clients of a model server, for the fuzz targets. An input may be an error.
//! It must not cause a panic, nor take much more memory than it holds bytes.

use crate::{rest, wire};
use bytes::Bytes;
use ferroflow_graph::wire::MessageReader;

/// Paths and bodies of REST requests.
pub fn rest_requests(data: &[u8]) {
    rest::fuzz(data);
}

/// Messages of gRPC requests and text files of the configuration; the first byte chooses.
pub fn serving_messages(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(data);
    match kind % 10 {
        0 => {
            // In two pieces, so that values cross their border.
            let middle = body.len() / 2;
            let halves = [body.slice(..middle), body.slice(middle..)];
            drop(wire::PredictRequest::decode(MessageReader::new(halves)));
        }
        1 => drop(wire::ClassifyRequest::decode(body)),
        2 => drop(wire::MultiInferenceRequest::decode(body)),
        3 => drop(wire::metadata_request(body)),
        4 => drop(wire::status_request(body)),
        5 => drop(wire::models_of_reload(body)),
        6 => drop(wire::health_service(body)),
        7 => drop(wire::warmup_request(body)),
        8 => drop(wire::models_from_text(&String::from_utf8_lossy(data))),
        _ => drop(wire::batching_from_text(&String::from_utf8_lossy(data))),
    }
}

/// Valid inputs of [`rest_requests`].
pub fn sample_rest_requests() -> Vec<Vec<u8>> {
    [
        "/v1/models/m/versions/3:predict",
        "/v1/models/m/labels/stable/metadata",
        r#"{"instances": [{"f": [[1, 2.5e3]], "i": -7, "s": {"b64": "eQ=="}}, {"s": "\u00e9"}]}"#,
        r#"{"signature_name": "x", "inputs": {"f": [[NaN, -Infinity], [1, 2]], "s": ["a"]}}"#,
        r#"{"context": {"c": [1]}, "examples": [{"a": 0.5, "b": ["x", {"b64": "AA=="}]}]}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Valid inputs of [`serving_messages`].
pub fn sample_serving_messages() -> Vec<Vec<u8>> {
    let models = "\x08model_config_list { config { name: 'm' base_path: '/m' \
                  model_version_policy { specific { versions: 1 } } } }";
    let batching = "\x09max_batch_size { value: 8 } allowed_batch_sizes: 4";
    // A model's name, and an input with a float tensor.
    let predict = b"\x00\x0a\x03\x0a\x01m\x12\x12\x0a\x01x\x12\x0d\x08\x01\x12\x04\x12\x02\x08\x01\
                    \x2a\x03\x00\x00\x00";
    vec![models.into(), batching.into(), predict.to_vec()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn rest_requests_do_not_panic() {
        fuzz_bytes(rest_requests, &sample_rest_requests());
    }

    #[test]
    fn serving_messages_do_not_panic() {
        fuzz_bytes(serving_messages, &sample_serving_messages());
    }
}
