//! The index of a checkpoint.
#![no_main]

use ferroflow_ops_data::fuzzing::{checkpoint_table, sample_tables};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_tables()),
    |data: &[u8]| checkpoint_table(data)
);
