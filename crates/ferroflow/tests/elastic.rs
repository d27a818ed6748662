//! Elastic training under a short storm of kills, with real processes.
#![allow(clippy::unwrap_used)]

#[path = "../examples/elastic_kills.rs"]
#[allow(dead_code)]
mod elastic_kills;

use std::process::Command;

/// What the storm starts as its ranks: this program, told to run this test only.
#[test]
fn a_rank_of_a_storm() {
    if std::env::var("FERROFLOW_ELASTIC").is_ok() {
        elastic_kills::rank().unwrap();
    }
}

#[test]
fn ranks_that_are_killed_cost_no_update_and_hang_nobody() {
    let own = std::env::current_exe().unwrap();
    let outcome = elastic_kills::storm(6, 7, || {
        let mut command = Command::new(&own);
        command.args(["--exact", "a_rank_of_a_storm", "--nocapture"]);
        command
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.kills, 6);
    assert!(outcome.epochs > 3, "{outcome:?}");
}
