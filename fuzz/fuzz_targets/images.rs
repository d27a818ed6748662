//! Image files of every format.
#![no_main]

use ferroflow_fuzz::{recorded_files, write_seeds};
use ferroflow_ops_nn::fuzzing::images;

const RECORDED: [&str; 2] = [
    include_str!("../../crates/ferroflow-ops-nn/tests/data/recorded/jpeg.txt"),
    include_str!("../../crates/ferroflow-ops-nn/tests/data/recorded/unusual_images.txt"),
];

libfuzzer_sys::fuzz_target!(
    init: write_seeds(RECORDED.into_iter().flat_map(recorded_files).collect()),
    |data: &[u8]| images(data)
);
