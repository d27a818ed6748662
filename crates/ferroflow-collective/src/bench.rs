//! Measures the all-reduce of a group, and the lower bound that links and memory set.

pub mod floor;
pub mod layers;

use crate::engine::{Engine, SubmitOptions};
use crate::group::Group;
use crate::link_cost::Algorithm;
use crate::reduce::ReduceOp;
use ferroflow_core::{Result, ensure};
use std::time::Instant;

/// Bytes from 4 B to 256 MB, as in other all-reduce benchmarks.
pub const SIZES: [usize; 9] =
    [4, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20];

/// Least and most repeats per round: enough for a median, and no more than useful.
const LEAST: usize = 3;
const MOST: usize = 10_000;

/// The measurement of one size.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Bytes of the buffer.
    pub bytes: usize,
    /// The algorithm that ran.
    pub algorithm: Algorithm,
    /// The number of repeats in all rounds.
    pub repeats: usize,
    /// The median of the medians of all rounds, in microseconds.
    pub median: f64,
    /// The shortest time, in microseconds.
    pub least: f64,
    /// The 90th percentile, in microseconds.
    pub p90: f64,
    /// The 99th percentile, in microseconds.
    pub p99: f64,
}

impl Timing {
    /// The speed of the caller's buffer in GB/s.
    pub fn algbw(&self) -> f64 {
        self.bytes as f64 / self.median / 1e3
    }

    /// The traffic of the busiest link in GB/s: 2(n-1)/n of the bytes.
    pub fn busbw(&self, n: usize) -> f64 {
        self.algbw() * 2.0 * (n as f64 - 1.0) / n as f64
    }
}

/// Measures all-reduce (sum of `f32`) of `bytes` for about `seconds`, in `rounds`. Every rank calls
/// it.
pub fn all_reduce(group: &mut Group, bytes: usize, seconds: f64, rounds: usize) -> Result<Timing> {
    let (rank, n, algorithm) = (group.rank(), group.size(), group.algorithm_for(bytes));
    let mut call = |values: &mut Vec<f32>, op| group.all_reduce(values, op);
    measured(&mut call, rank, n, bytes, seconds, rounds, algorithm)
}

/// The same by an engine: the tensor has a name, and the ranks agree that all of them have
/// submitted it. This is what a call from Python or from a graph does.
pub fn named_all_reduce(
    engine: &Engine,
    bytes: usize,
    seconds: f64,
    rounds: usize,
    algorithm: Algorithm,
) -> Result<Timing> {
    let mut call = |values: &mut Vec<f32>, op| {
        let options = SubmitOptions { op, ..SubmitOptions::default() };
        *values = engine.all_reduce("bench", std::mem::take(values), options)?.wait()?;
        Ok(())
    };
    measured(&mut call, engine.rank(), engine.size(), bytes, seconds, rounds, algorithm)
}

/// An all-reduce that is measured.
type Call<'a> = dyn FnMut(&mut Vec<f32>, ReduceOp) -> Result<()> + 'a;

fn measured(
    call: &mut Call,
    rank: usize,
    n: usize,
    bytes: usize,
    seconds: f64,
    rounds: usize,
    algorithm: Algorithm,
) -> Result<Timing> {
    let rounds = rounds.max(1);
    let mut values = Vec::new();
    let room = values.try_reserve_exact(bytes / 4);
    ensure!(room.is_ok(), ResourceExhausted, "there is no memory for {bytes} bytes");
    values.resize(bytes / 4, 0f32);
    let repeats = repeats(call, &mut values, seconds / rounds as f64)?;
    let mut check = vec![rank as f32 + 1.0; 1000];
    call(&mut check, ReduceOp::Sum)?;
    let want = (n * (n + 1) / 2) as f32;
    ensure!(
        check.iter().all(|&x| x == want),
        Internal,
        "the sum is wrong: {}, expected {want}",
        check[0]
    );
    let (mut medians, mut all) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        // All ranks begin a round together.
        call(&mut vec![0.0], ReduceOp::Sum)?;
        let mut round = Vec::with_capacity(repeats);
        for _ in 0..repeats {
            let start = Instant::now();
            call(&mut values, ReduceOp::Sum)?;
            round.push(start.elapsed().as_secs_f64() * 1e6);
        }
        medians.push(percentile(&mut round, 0.5));
        all.extend(round);
    }
    Ok(Timing {
        bytes,
        algorithm,
        repeats: all.len(),
        median: percentile(&mut medians, 0.5),
        least: percentile(&mut all, 0.0),
        p90: percentile(&mut all, 0.9),
        p99: percentile(&mut all, 0.99),
    })
}

/// How many calls of all-reduce of `values` fit into `seconds`, estimated from a few calls that
/// also warm it up. Equal on all ranks, so that none leaves its loop early.
fn repeats(call: &mut Call, values: &mut Vec<f32>, seconds: f64) -> Result<usize> {
    // The first call uses memory that was never touched.
    call(values, ReduceOp::Sum)?;
    let mut once = vec![f32::INFINITY];
    for _ in 0..2 {
        let start = Instant::now();
        call(values, ReduceOp::Sum)?;
        once[0] = once[0].min(start.elapsed().as_secs_f32());
    }
    call(&mut once, ReduceOp::Max)?;
    Ok(((seconds / f64::from(once[0])) as usize).clamp(LEAST, MOST))
}

fn percentile(xs: &mut [f64], p: f64) -> f64 {
    xs.sort_by(f64::total_cmp);
    let last = xs.len().saturating_sub(1);
    xs.get(((xs.len() as f64 * p) as usize).min(last)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_can_be_timed() {
        let mesh = crate::in_process(1, crate::MeshFaults::default()).remove(0);
        let mut group = Group::over(0, 1, mesh, crate::GroupOptions::default());
        let timing = all_reduce(&mut group, 4096, 0.01, 2).unwrap();
        assert_eq!(timing.bytes, 4096);
        assert!(timing.least <= timing.median && timing.median <= timing.p99);
    }
}
