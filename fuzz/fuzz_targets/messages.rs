//! Messages of the master and worker services.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_cluster::fuzzing::messages(data));
