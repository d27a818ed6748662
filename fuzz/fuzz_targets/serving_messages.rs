//! Messages of gRPC requests to a model server.
#![no_main]

use ferroflow_serve::fuzzing::{sample_serving_messages, serving_messages};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_serving_messages()),
    |data: &[u8]| serving_messages(data)
);
