//! Images of every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_ops_nn::fuzzing::images(data));
