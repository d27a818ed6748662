//! An HTTP/2 connection of a gRPC client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_cluster::fuzzing::http2(data));
