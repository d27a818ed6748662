//! The first bytes of a connection, before the peer has proved its identity.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferroflow_identity::fuzzing::greetings(data));
