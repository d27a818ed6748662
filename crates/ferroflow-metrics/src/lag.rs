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
    /// When the period began in which it kept the others waiting longest.
    pub since: Option<SystemTime>,
}

/// Being last by less than this is no lag: some rank always is.
const LEAST: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(crate) struct LagTable(Mutex<LagState>);

#[derive(Debug, Default)]
struct LagState {
    ranks: Vec<RankState>,
    /// The lag that all ranks have caused so far.
    total: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct RankState {
    lag: RankLag,
    /// The lag in the current period, and in the period that `lag.since` tells.
    period: Duration,
    longest: Duration,
    began: Option<SystemTime>,
    /// The total when this rank was last for the last time.
    total: Duration,
}

impl LagTable {
    /// `rank` submitted a tensor last, `lag` after the first rank.
    pub fn was_last(&self, rank: u32, lag: Duration) {
        if lag < LEAST {
            return;
        }
        let mut state = self.0.lock();
        let state = &mut *state;
        let at = rank as usize;
        if state.ranks.len() <= at {
            state.ranks.resize_with(at + 1, RankState::default);
        }
        let entry = &mut state.ranks[at];
        entry.lag.rank = rank;
        entry.lag.times_last += 1;
        entry.lag.lag += lag;
        // A period ends when other ranks have caused more lag than this one did in all of it:
        // some other rank is last now and then, even while this one is slow.
        if entry.began.is_none() || state.total.saturating_sub(entry.total) > entry.period {
            (entry.began, entry.period) = (Some(SystemTime::now()), Duration::ZERO);
        }
        entry.period += lag;
        if entry.period > entry.longest {
            (entry.longest, entry.lag.since) = (entry.period, entry.began);
        }
        state.total += lag;
        entry.total = state.total;
    }

    /// Forgets everything: the ranks have other numbers from now on.
    pub fn clear(&self) {
        *self.0.lock() = LagState::default();
    }

    /// The ranks that were late, the latest first.
    pub fn latest(&self, most: usize) -> Vec<RankLag> {
        let state = self.0.lock();
        let mut all: Vec<RankLag> =
            state.ranks.iter().map(|r| r.lag).filter(|lag| lag.times_last > 0).collect();
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
    #[test]
    fn a_straggler_is_late_since_its_first_lag_though_others_are_last_now_and_then() {
        let (table, ms) = (LagTable::default(), Duration::from_millis);
        let since = |rank| table.latest(8).iter().find(|lag| lag.rank == rank).unwrap().since;
        // Noise before the rank becomes slow does not belong to its period.
        table.was_last(2, ms(1));
        table.was_last(1, ms(3));
        let began = SystemTime::now();
        for _ in 0..10 {
            table.was_last(2, ms(30));
            table.was_last(1, ms(1));
            table.was_last(0, ms(2));
        }
        let first = since(2);
        assert!(first.unwrap() >= began);
        std::thread::sleep(ms(2));
        table.was_last(2, ms(30));
        assert_eq!(since(2), first, "the same period");
        // It recovers, and is last again much later by chance.
        (0..200).for_each(|_| table.was_last(0, ms(2)));
        table.was_last(2, ms(1));
        assert_eq!(since(2), first, "the period in which it cost most");
    }
}
