//! The first bytes of a connection, before the peer has proved its identity.
#![no_main]

use ferroflow_identity::fuzzing::{greetings, sample_greetings};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_greetings()),
    |data: &[u8]| greetings(data)
);
