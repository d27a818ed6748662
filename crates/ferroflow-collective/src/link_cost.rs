//! What a collective costs, by algorithm: alpha (seconds a message), beta (seconds a byte moved) and
//! gamma (seconds a byte combined), as a probe at start-up found them.

use ferroflow_core::{Result, err};
use std::fmt;

/// How an all-reduce is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Algorithm {
    Ring = 0,
    Doubling = 1,
    HalvingDoubling = 2,
    DoubleTree = 3,
    Hierarchical = 4,
    /// Without messages, in memory that all ranks share.
    Shared = 5,
}

impl Algorithm {
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Ring,
        Algorithm::Doubling,
        Algorithm::HalvingDoubling,
        Algorithm::DoubleTree,
        Algorithm::Hierarchical,
        Algorithm::Shared,
    ];

    pub fn name(self) -> &'static str {
        ["ring", "doubling", "halving-doubling", "double-tree", "hierarchical", "shared"]
            [self as usize]
    }

    pub fn from_name(name: &str) -> Result<Algorithm> {
        Algorithm::ALL.into_iter().find(|a| a.name() == name).ok_or_else(|| {
            let known = Algorithm::ALL.map(Algorithm::name).join(", ");
            err!(InvalidArgument, "no all-reduce algorithm {name:?}; there are {known}")
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What halving and doubling takes beyond its formula, of the time for its bytes, as measured with four ranks: of
/// 32 MB on links of 1 Gb/s (1.28 for the ring's 1.05), and of 64 MB on one host (81 ms of processors for 65).
/// Why is not known.
const UNEVEN: f64 = 0.2;

/// The cost of messages on a group's links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCostModel {
    /// Seconds a message takes, however short.
    pub alpha: f64,
    /// Seconds for each byte sent.
    pub beta: f64,
    /// Seconds for each byte combined.
    pub gamma: f64,
}

impl Default for LinkCostModel {
    /// About a local network of 10 Gb/s.
    fn default() -> LinkCostModel {
        LinkCostModel { alpha: 20e-6, beta: 0.8e-9, gamma: 0.1e-9 }
    }
}

impl LinkCostModel {
    /// Predicted seconds of an all-reduce of `bytes` among `n` ranks; `hosts` of them for the
    /// hierarchical one. Nothing for the algorithms that do without messages.
    pub fn seconds(&self, algorithm: Algorithm, n: usize, hosts: usize, bytes: usize) -> f64 {
        if n < 2 {
            return 0.0;
        }
        let LinkCostModel { alpha, beta, gamma } = *self;
        let (ranks, k) = (n as f64, bytes as f64);
        let share = (ranks - 1.0) / ranks;
        let rounds = f64::from(n.ilog2());
        // Ranks beyond a power of two give their values away first and get the result last.
        let fold = if n.is_power_of_two() { 0.0 } else { 2.0 * alpha + k * (2.0 * beta + gamma) };
        let ring =
            |n: f64, k: f64| 2.0 * (n - 1.0) * alpha + (n - 1.0) / n * k * (2.0 * beta + gamma);
        match algorithm {
            Algorithm::Ring => ring(ranks, k),
            Algorithm::Doubling => rounds * (alpha + k * (beta + gamma)) + fold,
            Algorithm::HalvingDoubling => {
                2.0 * rounds * alpha + share * k * (2.0 * beta + gamma) + fold
            }
            Algorithm::DoubleTree => {
                let segment = (tree_segment(bytes) as f64).min(k / 2.0);
                let each = alpha + segment * (2.0 * beta + gamma);
                let segments = if segment > 0.0 { (k / 2.0 / segment).ceil() } else { 1.0 };
                // Up and down the height of the tree, then one segment after another.
                2.0 * (rounds + 1.0) * each + (segments - 1.0) * 2.0 * each
            }
            Algorithm::Hierarchical => {
                let local = ranks / hosts.max(1) as f64;
                ring(local, k) + ring(hosts.max(1) as f64, k / local)
            }
            Algorithm::Shared => 0.0,
        }
    }

    /// The cheapest of the algorithms that exchange messages. The hierarchical one is considered
    /// when ranks are on several hosts, several on some.
    pub fn choose(&self, n: usize, hosts: usize, bytes: usize) -> Algorithm {
        let layered = hosts > 1 && hosts < n;
        let candidates = [
            Algorithm::Doubling,
            Algorithm::Ring,
            Algorithm::HalvingDoubling,
            Algorithm::DoubleTree,
            Algorithm::Hierarchical,
        ];
        let cost = |a| {
            let uneven = if a == Algorithm::HalvingDoubling { UNEVEN } else { 0.0 };
            self.seconds(a, n, hosts, bytes) + uneven * 2.0 * bytes as f64 * self.beta
        };
        candidates
            .into_iter()
            .filter(|&a| layered || a != Algorithm::Hierarchical)
            .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
            .unwrap_or(Algorithm::Ring)
    }

    /// How many windows of an all-reduce to have on their way, with messages of `bytes`: while those
    /// of the others are sent, the one that the next round of the first waits for arrives.
    pub(crate) fn windows(&self, bytes: usize) -> usize {
        const MOST: f64 = 64.0;
        let others = self.alpha / (bytes as f64 * self.beta);
        1 + others.ceil().clamp(1.0, MOST) as usize
    }

    /// The model and its choices for `n` ranks, for people.
    pub fn describe(&self, n: usize, hosts: usize) -> String {
        let mut out = format!(
            "alpha {:.1} us a message, beta {:.3} ns a byte ({:.2} GB/s), gamma {:.3} ns a byte\n",
            self.alpha * 1e6,
            self.beta * 1e9,
            1e-9 / self.beta,
            self.gamma * 1e9
        );
        let (mut from, mut last) = (0usize, None);
        for power in 2..=30 {
            let bytes = 1usize << power;
            let choice = self.choose(n, hosts, bytes);
            if last != Some(choice) {
                if let Some(previous) = last {
                    out.push_str(&format!("{from:>11} B and more: {previous}\n"));
                }
                from = if last.is_some() { bytes } else { 0 };
                last = Some(choice);
            }
        }
        if let Some(previous) = last {
            out.push_str(&format!("{from:>11} B and more: {previous}\n"));
        }
        out
    }
}

/// Bytes of the segments that follow one another through a tree.
pub(crate) fn tree_segment(bytes: usize) -> usize {
    (bytes / 16).clamp(4 << 10, 128 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_double_and_many_go_around_or_halve() {
        let model = LinkCostModel::default();
        assert_eq!(model.choose(8, 1, 4), Algorithm::Doubling);
        assert_eq!(model.choose(8, 1, 128 << 10), Algorithm::HalvingDoubling);
        assert_eq!(model.choose(8, 1, 64 << 20), Algorithm::Ring);
        assert_eq!(model.choose(7, 1, 64 << 20), Algorithm::Ring);
    }

    #[test]
    fn the_ring_moves_what_the_formula_says() {
        let model = LinkCostModel { alpha: 0.0, beta: 1e-6, gamma: 0.0 };
        let seconds = model.seconds(Algorithm::Ring, 4, 1, 1_000_000);
        assert!((seconds - 1.5).abs() < 1e-9, "2 (n - 1) K / n = 1.5 K");
    }

    #[test]
    fn a_long_way_has_more_windows_on_it() {
        let windows = |alpha, beta| LinkCostModel { alpha, beta, gamma: 0.0 }.windows(250_000);
        assert_eq!(windows(20e-6, 0.8e-9), 2);
        assert_eq!(windows(0.0, 0.8e-9), 2);
        // 20 ms there at 10 Gb/s: 25 MB are on the way.
        assert_eq!(windows(20e-3, 0.8e-9), 65);
        assert_eq!(windows(1e-3, 0.8e-9), 6);
        assert_eq!(windows(1.0, 0.0), 65);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        assert_eq!(Algorithm::from_name("double-tree").unwrap(), Algorithm::DoubleTree);
        assert!(Algorithm::from_name("star").unwrap_err().message().contains("halving-doubling"));
    }
}
