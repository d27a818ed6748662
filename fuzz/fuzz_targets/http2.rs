//! An HTTP/2 connection of a gRPC client.
#![no_main]

use ferroflow_cluster::fuzzing::{http2, sample_connections};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_connections()),
    |data: &[u8]| http2(data)
);
