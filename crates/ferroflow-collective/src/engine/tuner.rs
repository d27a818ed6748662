//! Tunes how much to fuse and how long to wait for it, by trying values while the job runs.

use std::time::Duration;

/// Fusion bytes and cycle times (in microseconds) to try, in order.
const CHOICES: [(usize, u64); 9] = [
    (16 << 20, 0),
    (16 << 20, 200),
    (16 << 20, 1000),
    (4 << 20, 0),
    (4 << 20, 200),
    (64 << 20, 0),
    (64 << 20, 1000),
    (1 << 20, 0),
    (64 << 20, 5000),
];

/// Least bytes and collectives for measuring a choice.
const BYTES: u64 = 64 << 20;
const RUNS: u32 = 20;

/// Measures each choice on part of the work, then keeps the one that moved bytes fastest.
pub(crate) struct Tuner {
    at: usize,
    bytes: u64,
    runs: u32,
    seconds: f64,
    /// Bytes per second of the choices measured so far.
    rates: Vec<f64>,
    settled: bool,
}

impl Tuner {
    pub(crate) fn new() -> Tuner {
        Tuner { at: 0, bytes: 0, runs: 0, seconds: 0.0, rates: Vec::new(), settled: false }
    }

    /// Fusion bytes and cycle time to use at present.
    pub(crate) fn choice(&self) -> (usize, Duration) {
        let (fusion, micros) = CHOICES[self.at];
        (fusion, Duration::from_micros(micros))
    }

    /// Whether the tuner has finished.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Records a collective of `bytes` that ended `seconds` after the previous one ended, or after
    /// it could start. Returns true if the choice changed or became final.
    pub(crate) fn ran(&mut self, bytes: u64, seconds: f64) -> bool {
        if self.settled {
            return false;
        }
        self.bytes += bytes;
        self.runs += 1;
        self.seconds += seconds;
        if self.bytes < BYTES || self.runs < RUNS {
            return false;
        }
        self.rates.push(self.bytes as f64 / self.seconds.max(1e-9));
        (self.bytes, self.runs, self.seconds) = (0, 0, 0.0);
        if self.rates.len() < CHOICES.len() {
            self.at += 1;
            return true;
        }
        let best = self.rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        self.at = best.map_or(0, |(i, _)| i);
        self.settled = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tuner_keeps_the_fastest_choice() {
        let mut tuner = Tuner::new();
        let mut changes = 0;
        for _ in 0..CHOICES.len() * RUNS as usize {
            let seconds = if tuner.at == 4 { 0.5 } else { 1.0 };
            changes += usize::from(tuner.ran(BYTES, seconds));
        }
        assert!(tuner.is_settled());
        assert_eq!(
            changes,
            CHOICES.len(),
            "each choice but the first is a change, and so is the final one"
        );
        assert_eq!(tuner.choice(), (4 << 20, Duration::from_micros(200)));
        assert!(!tuner.ran(BYTES, 9.0));
    }
}
