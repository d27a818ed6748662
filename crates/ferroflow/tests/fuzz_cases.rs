//! A short run of what the fuzz target (`fuzz/`) runs for long: random graphs and steps, the same
//! ones each time. `FERROFLOW_FUZZ_CASES=first..last` runs others, or one that failed again.

use ferroflow::graph::default_catalog;
use ferroflow_testing::fuzz::{Fuzz, FuzzOutcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

/// Panics of all threads, caught ones included.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn random_graphs_neither_panic_nor_hang() {
    let cases = match std::env::var("FERROFLOW_FUZZ_CASES") {
        Ok(text) => {
            let (first, last) = text.split_once("..").expect("FERROFLOW_FUZZ_CASES=first..last");
            first.parse().expect("a number")..last.parse().expect("a number")
        }
        Err(_) => 0..1500u64,
    };
    std::panic::set_hook(Box::new(|info| {
        PANICS.lock().expect("no test panics while it holds the lock").push(info.to_string());
    }));
    let fuzz = Fuzz::new(&default_catalog(), Duration::from_millis(10));
    let mut total = FuzzOutcome::default();
    let (mut sessions, mut failures) = (0, Vec::new());
    for seed in cases.clone() {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut data = vec![0; random.usize(16..1500)];
        random.fill(&mut data);
        if cases.end - cases.start == 1 {
            println!("{}", fuzz.show(&data));
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| fuzz.run(&data))).unwrap_or_default();
        sessions += u32::from(outcome.has_session);
        total.steps += outcome.steps;
        total.succeeded += outcome.succeeded;
        let panics =
            std::mem::take(&mut *PANICS.lock().expect("no test panics while it holds the lock"));
        failures.extend(panics.into_iter().map(|text| format!("case {seed}: {text}")));
    }
    let _ = std::panic::take_hook();
    println!("{sessions} sessions, {total:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Checks that enough cases are accepted: otherwise this would test nothing.
    if cases.end - cases.start >= 1000 {
        assert!(sessions > 100 && total.succeeded > 100, "{sessions} sessions, {total:?}");
    }
}
