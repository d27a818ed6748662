//! Paths and bodies of REST requests to a model server.
#![no_main]

use ferroflow_serve::fuzzing::{rest_requests, sample_rest_requests};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_rest_requests()),
    |data: &[u8]| rest_requests(data)
);
