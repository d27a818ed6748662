//! Answers of a launcher that speaks PMI-1.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_collective::fuzzing::pmi_answers(data));
