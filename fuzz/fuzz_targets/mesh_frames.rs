//! Frames between the ranks of a group.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_collective::fuzzing::mesh_frames(data));
