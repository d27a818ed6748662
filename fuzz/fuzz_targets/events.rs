//! Event files.
#![no_main]

use ferroflow_train::fuzzing::{events, sample_events};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_events()),
    |data: &[u8]| events(data)
);
