//! Messages of gRPC requests to a model server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_serve::fuzzing::serving_messages(data));
