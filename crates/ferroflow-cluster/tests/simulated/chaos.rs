//! Failures of hosts and links, drawn from a seed.

use super::network::{CHIEF, PS0, PS1, WORKER1};
use std::time::Duration;
use turmoil::Sim;

/// How long failures are injected.
const CHAOS_TIME: Duration = Duration::from_secs(25);
const CALM_LATENCY: Duration = Duration::from_millis(10);

pub struct Chaos {
    random: fastrand::Rng,
    next: Duration,
    /// Failures to end, and when.
    undo: Vec<(Duration, Trouble)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Crashed(&'static str),
    /// The link is cut. As with TCP, sent data arrives once it is repaired.
    Cut(&'static str, &'static str),
    Slow(&'static str, &'static str),
}

impl Chaos {
    pub fn new(seed: u64) -> Chaos {
        let next = Duration::from_millis(500);
        Chaos { random: fastrand::Rng::with_seed(seed), next, undo: Vec::new() }
    }

    pub fn is_over(&self) -> bool {
        self.next > CHAOS_TIME && self.undo.is_empty()
    }

    /// Starts and ends the failures that are due.
    pub fn go_on(&mut self, sim: &mut Sim<'_>) {
        let now = sim.elapsed();
        self.undo.retain(|(at, trouble)| {
            if *at <= now {
                trouble.end(sim);
            }
            *at > now
        });
        if self.next > now || self.next > CHAOS_TIME {
            return;
        }
        self.next = now + Duration::from_millis(self.random.u64(100..1500));
        let trouble = self.draw();
        // One failure at a place at a time: the end of one would end the other too.
        if self.undo.iter().all(|(_, other)| *other != trouble) {
            trouble.begin(sim, &mut self.random);
            let lasts = Duration::from_millis(self.random.u64(20..6000));
            self.undo.push((now + lasts, trouble));
        }
    }

    fn draw(&mut self) -> Trouble {
        let hosts = [CHIEF, PS0, PS1, WORKER1];
        let one = self.random.usize(0..4);
        let other = (one + self.random.usize(1..4)) % 4;
        let (a, b) = (hosts[one.min(other)], hosts[one.max(other)]);
        match self.random.u8(0..4) {
            // The client's host does not crash.
            0 => Trouble::Crashed(hosts[self.random.usize(1..4)]),
            1 | 2 => Trouble::Cut(a, b),
            _ => Trouble::Slow(a, b),
        }
    }
}

impl Trouble {
    fn begin(self, sim: &mut Sim<'_>, random: &mut fastrand::Rng) {
        match self {
            Trouble::Crashed(host) => sim.crash(host),
            Trouble::Cut(a, b) => sim.hold(a, b),
            Trouble::Slow(a, b) => {
                let latency = Duration::from_millis(random.u64(20..700));
                sim.set_link_max_message_latency(a, b, latency);
            }
        }
    }

    fn end(self, sim: &mut Sim<'_>) {
        match self {
            Trouble::Crashed(host) => sim.bounce(host),
            Trouble::Cut(a, b) => sim.release(a, b),
            Trouble::Slow(a, b) => sim.set_link_max_message_latency(a, b, CALM_LATENCY),
        }
    }
}
