//! Frames between elastic workers and their driver.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_collective::fuzzing::elastic_frames(data));
