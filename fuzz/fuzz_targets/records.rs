//! TFRecord files and files of lines.
#![no_main]

use ferroflow_ops_data::fuzzing::{records, sample_records};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_records()),
    |data: &[u8]| records(data)
);
