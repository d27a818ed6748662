//! TFRecord files and files of lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_ops_data::fuzzing::records(data));
