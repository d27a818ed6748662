//! Answers of a launcher that speaks PMI-1.
#![no_main]

use ferroflow_collective::fuzzing::{pmi_answers, sample_pmi_answers};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_pmi_answers()),
    |data: &[u8]| pmi_answers(data)
);
