//! Simulates the real schedules on a model of a network: thousands of ranks on one processor.
//!
//! Every rank has an outgoing and an incoming link. Each link carries one message at a time. A
//! message arrives `alpha` after it starts. It takes `beta` per byte on both links and `gamma` per
//! byte to combine.
//!
//! On this network all ranks of a ring do the same at the same time, so only one of them is
//! simulated, and it receives its own messages (`network.rs`). Ranks may also differ slightly: if
//! their number is not a power of two, if hosts have fewer ranks, or if segments do not divide the
//! halves equally. Then all ranks are simulated up to a size, and beyond it they are treated as
//! equal. A tree repeats the same pattern for each segment, so some segments are enough to predict
//! the time of many.

mod network;

use crate::group::SEGMENT;
use crate::link_cost::{Algorithm, LinkCostModel, tree_segment};
use crate::schedule::{self, Schedule, Windows};
use ferroflow_core::{Result, bail, ensure};
use network::SimulatedNetwork;

/// Most simulated steps, which need about 80 bytes each.
const MOST_STEPS: usize = 8_000_000;
/// Most steps for simulating all ranks where some would be nearly enough. They take one or two
/// seconds.
const WHOLE_STEPS: usize = 2_000_000;
/// The most ranks of a simulated group, with its servers.
pub const MOST_RANKS: usize = 65_536;
/// Bytes of a value (`f32`).
const WIDTH: usize = 4;

/// Seconds of an all-reduce of `bytes` of `f32` among `n` ranks, with `local` ranks per host.
/// `ResourceExhausted` if that is too much to simulate.
pub fn all_reduce_seconds(
    algorithm: Algorithm,
    n: usize,
    local: usize,
    bytes: usize,
    model: &LinkCostModel,
) -> Result<f64> {
    check_ranks(n)?;
    ensure!(local >= 1, InvalidArgument, "a host must have at least one rank");
    let count = bytes / WIDTH;
    let piece = SEGMENT / WIDTH;
    let windows = Windows { piece, ahead: model.windows(SEGMENT) };
    let power = 1 << n.ilog2();
    let folded = if n == power { 1 } else { 2 };
    let messages = count / piece + 1;
    let rounds = n.ilog2() as usize + 2;
    match algorithm {
        Algorithm::Shared => {
            bail!(InvalidArgument, "the shared-memory algorithm does not use a network")
        }
        Algorithm::DoubleTree => double_tree(n, count, WHOLE_STEPS, model),
        Algorithm::Doubling => {
            check_steps(algorithm, n, messages.saturating_mul(4 * rounds))?;
            let rank = |me| schedule::doubling_all_reduce(n, me, count, piece);
            whole(n, rank, model).map_or_else(|| mirrored(algorithm, n, folded, rank, model), Ok)
        }
        Algorithm::HalvingDoubling => {
            check_steps(algorithm, n, messages.saturating_mul(8))?;
            let rank = |me| schedule::halving_doubling_all_reduce(n, me, count, windows);
            let even = count.next_multiple_of(power);
            let alike = |me| schedule::halving_doubling_all_reduce(n, me, even, windows);
            whole(n, rank, model).map_or_else(|| mirrored(algorithm, n, folded, alike, model), Ok)
        }
        Algorithm::Ring => {
            check_steps(algorithm, n, messages.saturating_mul(4) + 4 * n)?;
            let count = count.next_multiple_of(n);
            let rank = |me| schedule::ring_all_reduce(n, me, count, windows);
            mirrored(algorithm, n, 1, rank, model)
        }
        Algorithm::Hierarchical => {
            let hosts: Vec<u32> = (0..n).map(|r| (r / local) as u32).collect();
            let equal = n.is_multiple_of(local);
            // On unequal hosts, the first rank of each host does the work of the others too.
            let few = if equal { 1 } else { local.min(n) };
            check_steps(algorithm, n, messages.saturating_mul(4 * few + 4) + 4 * n)?;
            let even = count.next_multiple_of(if equal { n } else { n.div_ceil(local) });
            let alike = |me| schedule::hierarchical_all_reduce(&hosts, me, even, windows);
            let rank = |me| schedule::hierarchical_all_reduce(&hosts, me, count, windows);
            whole(n, rank, model).map_or_else(|| mirrored(algorithm, n, few, alike, model), Ok)
        }
    }
}

/// Seconds of an all-reduce of `bytes` among `n` ranks with `servers` servers, with the split that
/// loads all links equally. `ResourceExhausted` if that is too much to simulate.
pub fn push_pull_seconds(
    n: usize,
    servers: usize,
    bytes: usize,
    model: &LinkCostModel,
) -> Result<f64> {
    check_ranks(n.saturating_add(servers))?;
    ensure!(n >= 1, InvalidArgument, "a simulation needs at least one rank");
    let (count, all) = (bytes / WIDTH, n + servers);
    let piece = SEGMENT / WIDTH;
    // Every process that sums receives at least one message from each rank and sends one to it.
    let summing = if servers >= n { servers } else { all };
    let steps = n.saturating_mul(4).saturating_mul(count / piece + summing);
    ensure!(steps <= MOST_STEPS, ResourceExhausted, "{n} ranks are too many for push-pull");
    let bounds = schedule::push_pull_bounds(n, servers, count, false);
    let rank = |me| schedule::push_pull(n, servers, me, &bounds, piece);
    let ranks: Vec<usize> = (0..all).collect();
    Ok(SimulatedNetwork::new(&ranks, rank).seconds(WIDTH, model))
}

fn check_ranks(n: usize) -> Result<()> {
    ensure!(
        (1..=MOST_RANKS).contains(&n),
        InvalidArgument,
        "cannot simulate {n} ranks: use 1 to {MOST_RANKS}"
    );
    Ok(())
}

fn check_steps(algorithm: Algorithm, n: usize, steps: usize) -> Result<()> {
    ensure!(steps <= MOST_STEPS, ResourceExhausted, "{n} ranks are too many for {algorithm}");
    Ok(())
}

/// Seconds of a schedule with all `n` ranks simulated. `None` if that takes too many steps.
fn whole(n: usize, rank: impl Fn(usize) -> Schedule, model: &LinkCostModel) -> Option<f64> {
    // No rank has more steps than ranks 0 and 1, into which others fold.
    let steps = rank(n.min(2) - 1).steps().len().max(rank(0).steps().len());
    if steps.saturating_mul(n) > WHOLE_STEPS {
        return None;
    }
    Some(SimulatedNetwork::new(&(0..n).collect::<Vec<_>>(), rank).seconds(WIDTH, model))
}

/// Seconds of a schedule whose ranks all behave like the first `few`.
fn mirrored(
    algorithm: Algorithm,
    n: usize,
    few: usize,
    rank: impl Fn(usize) -> Schedule,
    model: &LinkCostModel,
) -> Result<f64> {
    let network = SimulatedNetwork::new(&(0..few).collect::<Vec<_>>(), rank);
    check_steps(algorithm, n, network.steps())?;
    Ok(network.seconds(WIDTH, model))
}

/// Simulates all ranks of a double tree. Simulates all segments if that takes at most `whole`
/// steps, else extrapolates.
fn double_tree(n: usize, count: usize, whole: usize, model: &LinkCostModel) -> Result<f64> {
    let segment = tree_segment(count.saturating_mul(WIDTH)) / WIDTH;
    // In each tree, all ranks but the root send each segment up and receive it from above.
    let each = 8 * n;
    let ranks: Vec<usize> = (0..n).collect();
    let run = |count: usize| -> Result<f64> {
        let steps = count.div_ceil(2 * segment).saturating_mul(each);
        check_steps(Algorithm::DoubleTree, n, steps)?;
        let rank = |me| schedule::double_tree_all_reduce(n, me, count, segment);
        Ok(SimulatedNetwork::new(&ranks, rank).seconds(WIDTH, model))
    };
    // A segment comes down this many segments after it went up. All links are fully busy after a
    // few times that number.
    let lag = 2 * (n.ilog2() as usize + 1);
    let most = (whole / each).max(4 * lag);
    if count.div_ceil(2 * segment) <= most {
        return run(count);
    }
    let (half, all) = (run(2 * segment * (most / 2))?, run(2 * segment * most)?);
    let more = count as f64 / (2 * segment) as f64 - most as f64;
    Ok(all + (all - half) / (most - most / 2) as f64 * more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Code;

    const MODEL: LinkCostModel = LinkCostModel { alpha: 10e-6, beta: 1e-9, gamma: 0.1e-9 };

    fn run(algorithm: Algorithm, n: usize, bytes: usize) -> f64 {
        all_reduce_seconds(algorithm, n, 1, bytes, &MODEL).unwrap()
    }

    fn assert_near(found: f64, want: f64, off: f64, what: &str) {
        assert!((found / want - 1.0).abs() < off, "{what}: {found} for {want}");
    }

    #[test]
    fn simulated_schedules_take_the_time_of_the_formulas() {
        for (algorithm, n, bytes) in [
            (Algorithm::Ring, 8, 8 << 20),
            (Algorithm::Ring, 2, 4),
            (Algorithm::Doubling, 16, 64),
            (Algorithm::HalvingDoubling, 16, 16 << 20),
        ] {
            let formula = MODEL.seconds(algorithm, n, 1, bytes);
            assert_near(run(algorithm, n, bytes), formula, 0.1, &format!("{algorithm} of {n}"));
        }
    }

    #[test]
    fn simulating_one_rank_of_a_ring_equals_simulating_all() {
        let windows = Windows { piece: SEGMENT / WIDTH, ahead: MODEL.windows(SEGMENT) };
        for (n, bytes) in [(2, 1_000_000), (5, 3_000_001), (8, 9_000_000), (12, 500_000), (13, 4)] {
            let rank = |me| schedule::ring_all_reduce(n, me, bytes / WIDTH, windows);
            let all: Vec<usize> = (0..n).collect();
            let whole = SimulatedNetwork::new(&all, rank).seconds(WIDTH, &MODEL);
            let one = all_reduce_seconds(Algorithm::Ring, n, 1, bytes, &MODEL).unwrap();
            assert_near(one, whole, 0.01, &format!("{bytes} among {n}"));
        }
    }

    #[test]
    fn extrapolating_a_tree_from_some_segments_is_close_to_all() {
        for n in [2, 5, 12] {
            let count = 10_000_000;
            let all = double_tree(n, count, usize::MAX, &MODEL).unwrap();
            let some = double_tree(n, count, 8 * n * 80, &MODEL).unwrap();
            assert!(some != all);
            assert_near(some, all, 0.1, &format!("{n} ranks"));
        }
    }

    #[test]
    fn simulating_only_folding_ranks_is_close_to_simulating_all() {
        for (n, off) in [(5, 0.4), (12, 0.3), (15, 0.05), (31, 0.05)] {
            for count in [1, 700_000] {
                let rank = |me| schedule::doubling_all_reduce(n, me, count, SEGMENT / WIDTH);
                let all: Vec<usize> = (0..n).collect();
                let whole = SimulatedNetwork::new(&all, rank).seconds(WIDTH, &MODEL);
                let few = SimulatedNetwork::new(&[0, 1], rank).seconds(WIDTH, &MODEL);
                assert!(few > 0.95 * whole, "{n}: {few} for {whole}");
                assert_near(few, whole, off, &format!("{count} values among {n}"));
            }
        }
    }

    #[test]
    fn servers_reduce_the_time_of_push_pull() {
        let bytes = 8 << 20;
        let without = push_pull_seconds(4, 0, bytes, &MODEL).unwrap();
        let with = push_pull_seconds(4, 4, bytes, &MODEL).unwrap();
        // Each link carries 1.5 times the bytes without servers, and the bytes once with them.
        assert!(without > 1.5 * bytes as f64 * MODEL.beta, "{without}");
        assert!(with < without, "{with} for {without}");
        assert_eq!(push_pull_seconds(1, 3, bytes, &MODEL).unwrap(), 0.0);
    }

    #[test]
    fn thousands_of_ranks_can_be_simulated() {
        for n in [2000, 4000] {
            let bytes = 553_360_000;
            let ring = run(Algorithm::Ring, n, bytes);
            assert_near(ring, MODEL.seconds(Algorithm::Ring, n, 1, bytes), 0.1, "ring");
            let layered = all_reduce_seconds(Algorithm::Hierarchical, n, 8, bytes, &MODEL).unwrap();
            assert!(layered < ring, "{layered} for {ring}");
            assert!(run(Algorithm::HalvingDoubling, n, 1 << 20) < run(Algorithm::Ring, n, 1 << 20));
        }
        assert!(run(Algorithm::Ring, MOST_RANKS, 4) > 1.0, "2 N messages, one after the other");
        let tree = run(Algorithm::DoubleTree, 2000, 1 << 20);
        assert!(tree < run(Algorithm::Ring, 2000, 1 << 20), "{tree}");
        assert!(run(Algorithm::Doubling, 2000, 553_360_000) > 11.0 * 0.553);
    }

    #[test]
    fn impossible_simulations_are_errors() {
        assert_eq!(run(Algorithm::Ring, 1, 1 << 20), 0.0);
        let code = |algorithm, n, local, bytes| {
            all_reduce_seconds(algorithm, n, local, bytes, &MODEL).unwrap_err().code()
        };
        assert_eq!(code(Algorithm::Shared, 2, 1, 4), Code::InvalidArgument);
        assert_eq!(code(Algorithm::Ring, 0, 1, 4), Code::InvalidArgument);
        assert_eq!(code(Algorithm::Ring, 2, 0, 4), Code::InvalidArgument);
        assert_eq!(code(Algorithm::Ring, usize::MAX, 1, 4), Code::InvalidArgument);
        for algorithm in &Algorithm::ALL[..3] {
            assert_eq!(code(*algorithm, 3, 1, usize::MAX), Code::ResourceExhausted);
        }
        assert!(double_tree(3, usize::MAX / 8, 10_000, &MODEL).unwrap() > 1e9);
        let e = push_pull_seconds(30_000, 30_000, 4, &MODEL).unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
    }
}
