//! Frames of a link between tasks.
#![no_main]

use ferroflow_cluster::fuzzing::{link_frames, sample_links};

libfuzzer_sys::fuzz_target!(
    init: ferroflow_fuzz::write_seeds(sample_links()),
    |data: &[u8]| link_frames(data)
);
