//! The file `saved_model.pb`.
#![no_main]

use ferroflow_fuzz::write_seeds;
use ferroflow_train::fuzzing::saved_model;

const RECORDED: [&[u8]; 2] = [
    include_bytes!("../../crates/ferroflow/tests/data/saved_model/function/saved_model.pb"),
    include_bytes!("../../crates/ferroflow/tests/data/saved_model/session/saved_model.pb"),
];

libfuzzer_sys::fuzz_target!(
    init: write_seeds(RECORDED.map(<[u8]>::to_vec).to_vec()),
    |data: &[u8]| saved_model(data)
);
