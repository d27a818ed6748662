//! The index of a checkpoint.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_ops_data::fuzzing::checkpoint_table(data));
