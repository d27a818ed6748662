//! A whole cluster on a simulated network, in simulated time. A seed decides when hosts crash and
//! restart, and when links are slow, cut and repaired. Every call must end with the right answer or
//! with an error that names the problem.
#![allow(clippy::unwrap_used)]

mod simulated {
    pub mod chaos;
    pub mod client;
    pub mod network;
}

use simulated::chaos::Chaos;
use simulated::client::{self, Seen};
use simulated::network::{CHIEF, PS0, PS1, WORKER1, simulation};
use std::time::Duration;

/// Runs a cluster with the failures of `seed`.
fn survive(seed: u64) -> Seen {
    let mut sim = simulation(seed);
    let seen = client::start(&mut sim);
    let mut chaos = Chaos::new(seed);
    while !sim.step().unwrap() {
        chaos.go_on(&mut sim);
        if chaos.is_over() {
            seen.all_is_well();
        }
    }
    seen.summary(seed)
}

/// `SEEDS=1000` tries that many.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10)
}

#[test]
fn every_step_ends_despite_network_and_host_failures() {
    let all: Vec<Seen> = (1..=seeds()).map(survive).collect();
    let total = |of: fn(&Seen) -> usize| all.iter().map(of).sum::<usize>();
    // Some calls must fail and some must succeed, or the test shows nothing.
    assert!(total(Seen::answers) > 100, "{} steps were answered", total(Seen::answers));
    assert!(total(Seen::errors) > 10, "{} calls failed", total(Seen::errors));
}

#[test]
fn two_tasks_without_a_connection_are_both_named() {
    let mut sim = simulation(1);
    let seen = client::start(&mut sim);
    let mut is_cut = false;
    while !sim.step().unwrap() {
        if !is_cut && seen.answers() > 20 {
            is_cut = true;
            sim.hold(PS0, WORKER1);
        }
        if is_cut && seen.errors() > 0 {
            sim.release(PS0, WORKER1);
            seen.all_is_well();
        }
    }
    let (error, took) = seen.first_error();
    for task in ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"] {
        assert!(error.message().contains(task), "{error}");
    }
    assert_eq!(error.code(), ferroflow_core::Code::Unavailable);
    // Simulated time does not depend on the load of the machine.
    assert!(took < Duration::from_millis(3500), "after {took:?}: {error}");
}

#[test]
fn the_simulated_cluster_has_four_hosts() {
    let mut sim = simulation(1);
    let seen = client::start(&mut sim);
    seen.all_is_well();
    while !sim.step().unwrap() {}
    assert_eq!((seen.answers() > 0, seen.errors()), (true, 0));
    let addresses: std::collections::HashSet<_> =
        [CHIEF, PS0, PS1, WORKER1].into_iter().map(|host| sim.lookup(host)).collect();
    assert_eq!(addresses.len(), 4);
}
