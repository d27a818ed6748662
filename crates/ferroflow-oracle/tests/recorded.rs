//! A sample of calls with TensorFlow's recorded answers: `tests/data/recorded.bin.gz`, written by
//! `cargo xtask oracle --record` with TensorFlow 2.15.1.

use ferroflow::graph::default_catalog;
use ferroflow_oracle::answer::FerroflowTask;
use ferroflow_oracle::explained::Explained;
use ferroflow_oracle::record::Records;
use ferroflow_oracle::report::Report;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn recorded_calls_give_the_answers_of_tensorflow() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded.bin.gz");
    let ours = FerroflowTask::default();
    let mut report = Report::new(Explained::load().unwrap());
    let mut ops = BTreeSet::new();
    for case in Records::open(&path).unwrap() {
        let case = case.unwrap();
        report.add(&case, &ours.answer(&case));
        ops.insert(case.op);
    }
    let registered = default_catalog();
    let gone: Vec<_> = ops.iter().filter(|op| registered.get(op).is_none()).collect();
    assert!(gone.is_empty(), "recorded but no longer there: {gone:?}");
    assert!(ops.len() >= 1100, "only {} ops are recorded", ops.len());
    assert!(report.is_clean(), "{}", report.text(&ops));
}
