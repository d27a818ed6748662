//! Event files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_train::fuzzing::events(data));
