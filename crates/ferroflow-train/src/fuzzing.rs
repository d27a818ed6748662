//! Parsers of files, for the fuzz targets. An input may be an error. It must not panic or take
//! memory that it does not hold itself.

use crate::events::parse_events;
use crate::wire::{EventBody, encode_event, meta_graphs};
use ferroflow_op_kit::tfrecord::write_record;
use std::path::Path;

/// An event file.
pub fn events(data: &[u8]) {
    let _ = parse_events(Path::new("fuzz"), data);
}

/// The file `saved_model.pb`.
pub fn saved_model(data: &[u8]) {
    let _ = meta_graphs(data);
}

/// Valid inputs of [`events`].
pub fn sample_events() -> Vec<Vec<u8>> {
    let bodies = [EventBody::Version, EventBody::Scalar("loss", 0.5), EventBody::Text("a", "b")];
    let mut file = Vec::new();
    for event in bodies.into_iter().filter_map(|body| encode_event(1.0, 7, body).ok()) {
        write_record(&mut file, &event).expect("memory takes any record");
    }
    vec![file]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn event_files_do_not_panic() {
        fuzz_bytes(events, &sample_events());
    }

    #[test]
    fn saved_models_do_not_panic() {
        fuzz_bytes(saved_model, &[]);
    }
}
