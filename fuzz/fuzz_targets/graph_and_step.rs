//! Runs GraphDefs and steps from arbitrary bytes; see `ferroflow_testing::fuzz`. Every panic is a
//! finding, even one that a server would survive.
#![no_main]

use ferroflow::graph::default_catalog;
use ferroflow_testing::fuzz::Fuzz;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use std::time::Duration;

static FUZZ: LazyLock<Fuzz> =
    LazyLock::new(|| Fuzz::new(&default_catalog(), Duration::from_millis(100)));

fuzz_target!(|data: &[u8]| {
    FUZZ.run(data);
});
