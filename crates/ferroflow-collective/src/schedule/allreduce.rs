//! All-reduce: every rank starts with its own values and ends with the reduction of all values.

use super::ring::{all_gather_rounds, reduce_scatter_rounds};
use super::tree::Tree;
use super::windows::{Round, Windows, in_windows};
use super::{Schedule, even_bounds, segments};
use std::ops::Range;

/// Reduce-scatter and all-gather around a ring: 2(n-1) steps with 2(n-1)/n of the bytes.
pub(crate) fn ring_all_reduce(n: usize, me: usize, count: usize, windows: Windows) -> Schedule {
    let mut s = Schedule::default();
    let members: Vec<u32> = (0..n as u32).collect();
    in_windows(&mut s, windows, 0..count, n, |range| ring_rounds(&members, me, range));
    s.built()
}

fn ring_rounds(members: &[u32], me: usize, range: Range<usize>) -> Vec<Round> {
    let bounds = parts_of(range, members.len());
    let mut rounds = reduce_scatter_rounds(members, me, &bounds);
    rounds.push(Round::Finish(bounds[me]..bounds[me + 1]));
    rounds.extend(all_gather_rounds(members, me, &bounds));
    rounds
}

/// The boundaries of nearly equal parts of `range`.
fn parts_of(range: Range<usize>, parts: usize) -> Vec<usize> {
    even_bounds(range.len(), parts).into_iter().map(|b| b + range.start).collect()
}

/// The largest power of two of ranks, on which the doubling algorithms run. Each rank beyond it
/// first sends its values to a rank within, and receives the result at the end.
struct Fold {
    power: usize,
    rest: usize,
}

impl Fold {
    fn of(n: usize) -> Fold {
        let power = if n == 0 { 1 } else { 1 << n.ilog2() };
        Fold { power, rest: n - power }
    }

    /// The index among the `power` ranks that remain. In the first `rest` pairs of ranks, the even
    /// rank folds into the odd one.
    fn place(&self, rank: usize) -> Option<usize> {
        match rank {
            r if r >= 2 * self.rest => Some(r - self.rest),
            r if r % 2 == 1 => Some(r / 2),
            _ => None,
        }
    }

    fn rank(&self, place: usize) -> u32 {
        (if place < self.rest { 2 * place + 1 } else { place + self.rest }) as u32
    }

    fn around(
        &self,
        s: &mut Schedule,
        me: usize,
        count: usize,
        segment: usize,
        within: impl FnOnce(&mut Schedule, usize),
    ) {
        let folded = me < 2 * self.rest;
        match self.place(me) {
            None => {
                segments(0..count, segment).for_each(|r| s.send(me as u32 + 1, r));
                segments(0..count, segment).for_each(|r| s.store(me as u32 + 1, r));
            }
            Some(place) => {
                if folded {
                    segments(0..count, segment).for_each(|r| s.reduce(me as u32 - 1, r));
                }
                within(s, place);
                if folded {
                    segments(0..count, segment).for_each(|r| s.send(me as u32 - 1, r));
                }
            }
        }
    }
}

/// Exchanges all values with a partner at distance 1, 2, 4, …: log2(n) steps with all bytes.
pub(crate) fn doubling_all_reduce(n: usize, me: usize, count: usize, segment: usize) -> Schedule {
    let mut s = Schedule::default();
    let fold = Fold::of(n);
    fold.around(&mut s, me, count, segment, |s, place| {
        let mut distance = 1;
        while distance < fold.power {
            let partner = fold.rank(place ^ distance);
            for r in segments(0..count, segment) {
                s.send(partner, r.clone());
                s.reduce(partner, r);
            }
            distance *= 2;
        }
        s.finish(0..count);
    });
    s.built()
}

/// Exchanges halves with ever nearer partners, then gathers on the same way back: 2 log2(n) steps.
/// Sends as few bytes as the ring if n is a power of two.
pub(crate) fn halving_doubling_all_reduce(
    n: usize,
    me: usize,
    count: usize,
    windows: Windows,
) -> Schedule {
    let mut s = Schedule::default();
    let fold = Fold::of(n);
    fold.around(&mut s, me, count, windows.piece, |s, place| {
        in_windows(s, windows, 0..count, fold.power, |range| halving_rounds(&fold, place, range));
    });
    s.built()
}

fn halving_rounds(fold: &Fold, place: usize, range: Range<usize>) -> Vec<Round> {
    let bounds = parts_of(range, fold.power);
    let exchange = |partner, out: &Range<usize>, into: &Range<usize>, combines| Round::Exchange {
        to: partner,
        out: bounds[out.start]..bounds[out.end],
        from: partner,
        into: bounds[into.start]..bounds[into.end],
        combines,
    };
    let (mut low, mut high) = (0, fold.power);
    let (mut rounds, mut way) = (Vec::new(), Vec::new());
    while high - low > 1 {
        let half = (high - low) / 2;
        let middle = low + half;
        let partner = fold.rank(place ^ half);
        let (keep, give) =
            if place < middle { (low..middle, middle..high) } else { (middle..high, low..middle) };
        rounds.push(exchange(partner, &give, &keep, true));
        (low, high) = (keep.start, keep.end);
        way.push((partner, keep, give));
    }
    rounds.push(Round::Finish(bounds[low]..bounds[high]));
    let back = way.iter().rev().map(|(partner, keep, give)| exchange(*partner, keep, give, false));
    rounds.extend(back);
    rounds
}

/// Two binary trees with half of the values each. The values are reduced to the roots and broadcast
/// down again, in pipelined segments. A rank that is an inner node in one tree is a leaf in the
/// other.
pub(crate) fn double_tree_all_reduce(
    n: usize,
    me: usize,
    count: usize,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    let trees = [Tree::of(n, me, 0), Tree::of(n, me, 1)];
    let halves = even_bounds(count, 2);
    let parts: Vec<Vec<Range<usize>>> =
        (0..2).map(|t| segments(halves[t]..halves[t + 1], segment).collect()).collect();
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    // A segment comes down this many segments after it went up, so that both directions are busy.
    // Two ranks that are neighbours in both trees see their messages in the same order, because all
    // ranks count alike.
    let lag = if n < 2 { 0 } else { 2 * (n.ilog2() as usize + 1) };
    for turn in 0..most + lag {
        for (tree, parts) in trees.iter().zip(&parts) {
            let Some(range) = parts.get(turn) else { continue };
            tree.children.iter().for_each(|&c| s.reduce(c, range.clone()));
            match tree.parent {
                Some(parent) => s.send(parent, range.clone()),
                None => s.finish(range.clone()),
            }
        }
        for (tree, parts) in trees.iter().zip(&parts) {
            let Some(range) = turn.checked_sub(lag).and_then(|i| parts.get(i)) else { continue };
            if let Some(parent) = tree.parent {
                s.store(parent, range.clone());
            }
            tree.children.iter().for_each(|&c| s.send(c, range.clone()));
        }
    }
    s.built()
}

/// Reduces within each host, then between hosts, then gathers within each host. `hosts[r]` is the
/// host of rank `r`. If all hosts have the same number of ranks, every rank exchanges its share
/// between hosts. Otherwise the first rank of each host does that for all values.
pub(crate) fn hierarchical_all_reduce(
    hosts: &[u32],
    me: usize,
    count: usize,
    windows: Windows,
) -> Schedule {
    let mut s = Schedule::default();
    // The ranks of each host, in order.
    let mut ranks: Vec<u32> = (0..hosts.len() as u32).collect();
    ranks.sort_by_key(|&r| hosts[r as usize]);
    let groups: Vec<&[u32]> =
        ranks.chunk_by(|&a, &b| hosts[a as usize] == hosts[b as usize]).collect();
    let mine = groups.iter().find(|g| g.contains(&(me as u32))).expect("every rank has a host");
    let place = mine.iter().position(|&r| r as usize == me).expect("and is on it");
    if groups.iter().all(|g| g.len() == mine.len()) {
        let across: Vec<u32> = groups.iter().map(|g| g[place]).collect();
        let host = across.iter().position(|&r| r as usize == me).expect("me is at my own place");
        in_windows(&mut s, windows, 0..count, hosts.len(), |range| {
            let bounds = parts_of(range, mine.len());
            let mut rounds = reduce_scatter_rounds(mine, place, &bounds);
            rounds.extend(ring_rounds(&across, host, bounds[place]..bounds[place + 1]));
            rounds.extend(all_gather_rounds(mine, place, &bounds));
            rounds
        });
        return s.built();
    }
    let segment = windows.piece;
    let leaders: Vec<u32> = groups.iter().map(|g| g[0]).collect();
    if place == 0 {
        for &member in &mine[1..] {
            segments(0..count, segment).for_each(|r| s.reduce(member, r));
        }
        let host = leaders.iter().position(|&r| r as usize == me).expect("a leader leads a host");
        in_windows(&mut s, windows, 0..count, leaders.len(), |range| {
            ring_rounds(&leaders, host, range)
        });
        for &member in &mine[1..] {
            segments(0..count, segment).for_each(|r| s.send(member, r));
        }
    } else {
        segments(0..count, segment).for_each(|r| s.send(mine[0], r));
        segments(0..count, segment).for_each(|r| s.store(mine[0], r));
    }
    s.built()
}
