//! The probe at start-up. It measures the cost of a message, of a byte sent and of a byte combined.

use super::Group;
use crate::link_cost::{Algorithm, LinkCostModel};
use crate::reduce::{ReduceOp, combine};
use ferroflow_core::{DType, Result};
use std::time::Instant;

/// Rounds with long messages, and with short ones.
const ROUNDS: usize = 9;
const SHORT_ROUNDS: usize = 40;
const BYTES: usize = 1 << 20;
/// Groups with more ranks are measured with fewer and shorter messages: a ring of a thousand ranks
/// takes two thousand steps.
const WIDE: usize = 64;
const WIDE_ROUNDS: usize = 3;
const WIDE_BYTES: usize = 64 << 10;

impl Group {
    /// Measures on all ranks at the same time. All ranks use what rank 0 measured.
    pub(super) fn probe(&mut self) -> Result<LinkCostModel> {
        let n = self.size();
        if n == 1 {
            return Ok(LinkCostModel::default());
        }
        let forced = self.options.algorithm;
        self.force(Some(Algorithm::Doubling));
        let mut one = [0f32; 1];
        // Take the quartile instead of the minimum: ranks that share processors are sometimes
        // scheduled in a lucky order.
        let is_wide = n > WIDE;
        let times = if is_wide { WIDE_ROUNDS } else { SHORT_ROUNDS };
        let short = self.sorted(times, |g| g.all_reduce(&mut one, ReduceOp::Max))?[times / 4];
        let rounds = f64::from(n.ilog2()) + if n.is_power_of_two() { 0.0 } else { 2.0 };
        let (times, bytes) = if is_wide { (WIDE_ROUNDS, WIDE_BYTES) } else { (ROUNDS, BYTES) };
        self.force(Some(if is_wide { Algorithm::Doubling } else { Algorithm::Ring }));
        let mut many = vec![0f32; bytes / 4];
        // The minimum is the speed of the links without other load on the machine.
        let long = self.sorted(times, |g| g.all_reduce(&mut many, ReduceOp::Max))?[0];
        self.force(forced);

        let (mut a, b) = (vec![0u8; 128 << 10], vec![0u8; 128 << 10]);
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| combine(ReduceOp::Sum, DType::Float, &mut a, &b));
        let gamma = start.elapsed().as_secs_f64() / (ROUNDS * a.len()) as f64;
        let alpha = (short / rounds).max(1e-8);
        let ranks = n as f64;
        let moved = (ranks - 1.0) / ranks * bytes as f64;
        let beta = match is_wide {
            false => ((long - 2.0 * (ranks - 1.0) * alpha) / moved - gamma) / 2.0,
            // Every round of doubling sends and combines all bytes.
            true => (long / rounds - alpha) / bytes as f64 - gamma,
        };
        // On a noisy machine the difference may be zero or negative. No link is faster than memory.
        let mut found = [alpha, beta.max(0.02e-9), gamma];
        self.broadcast(&mut found, 0)?;
        Ok(LinkCostModel { alpha: found[0], beta: found[1], gamma: found[2] })
    }

    /// Runs `each` in so many rounds. Returns their seconds in ascending order.
    fn sorted(
        &mut self,
        rounds: usize,
        mut each: impl FnMut(&mut Group) -> Result<()>,
    ) -> Result<Vec<f64>> {
        each(self)?;
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let start = Instant::now();
            each(self)?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}
