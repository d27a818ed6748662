//! Frames of a link between tasks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_cluster::fuzzing::link_frames(data));
