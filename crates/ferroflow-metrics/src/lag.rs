//! Which ranks the others wait for. Rank 0 sees when each rank submits a tensor.

use parking_lot::Mutex;
use std::time::{Duration, SystemTime};

/// How late a rank is.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankLag {
    /// The rank.
    pub rank: u32,
    /// Tensors that this rank submitted last.
    pub times_last: u64,
    /// How long the first rank waited for this one, in sum.
    pub lag: Duration,
    /// When it was last for the first time after another rank had been.
    pub since: Option<SystemTime>,
}

/// Being last by less than this is no lag: some rank always is.
const LEAST: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(crate) struct LagTable(Mutex<LagState>);

#[derive(Debug, Default)]
struct LagState {
    ranks: Vec<RankLag>,
    last: Option<u32>,
}

impl LagTable {
    /// `rank` submitted a tensor last, `lag` after the first rank.
    pub fn was_last(&self, rank: u32, lag: Duration) {
        if lag < LEAST {
            return;
        }
        let mut state = self.0.lock();
        let at = rank as usize;
        if state.ranks.len() <= at {
            state.ranks.resize_with(at + 1, RankLag::default);
        }
        let is_new = state.last != Some(rank);
        state.last = Some(rank);
        let entry = &mut state.ranks[at];
        entry.rank = rank;
        entry.times_last += 1;
        entry.lag += lag;
        if is_new {
            entry.since = Some(SystemTime::now());
        }
    }

    /// The ranks that were late, the latest first.
    pub fn latest(&self, most: usize) -> Vec<RankLag> {
        let mut all: Vec<RankLag> =
            self.0.lock().ranks.iter().filter(|lag| lag.times_last > 0).copied().collect();
        all.sort_by_key(|lag| std::cmp::Reverse(lag.lag));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_that_is_late_most_is_first() {
        let table = LagTable::default();
        table.was_last(1, Duration::from_millis(1));
        (0..3).for_each(|_| table.was_last(3, Duration::from_millis(20)));
        table.was_last(0, Duration::from_nanos(5));
        let latest = table.latest(8);
        assert_eq!(latest.iter().map(|lag| lag.rank).collect::<Vec<_>>(), [3, 1]);
        assert_eq!((latest[0].times_last, latest[0].lag), (3, Duration::from_millis(60)));
        assert_eq!(table.latest(1).len(), 1);
    }
}
