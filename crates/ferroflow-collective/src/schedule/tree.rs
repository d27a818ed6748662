//! Trees over ranks, and broadcast along them.

use super::{Schedule, segments};

/// The neighbours of one rank in a binary tree over all ranks.
pub(crate) struct Tree {
    pub parent: Option<u32>,
    pub children: Vec<u32>,
}

impl Tree {
    /// The tree in which the ranks, shifted by `shift` around the circle, are in order. Every
    /// second rank is a leaf, so with shifts 0 and 1 no rank is an inner node in both trees. If n
    /// is odd, one rank is a leaf in both.
    pub(crate) fn of(n: usize, me: usize, shift: usize) -> Tree {
        let label = |rank: usize| (rank + shift) % n + 1;
        let rank = |label: usize| ((label - 1 + n - shift % n) % n) as u32;
        let target = label(me);
        let (mut low, mut high, mut parent) = (1, n, None);
        loop {
            let root = middle(low, high);
            if root == target {
                let mut children = Vec::new();
                if low < root {
                    children.push(rank(middle(low, root - 1)));
                }
                if root < high {
                    children.push(rank(middle(root + 1, high)));
                }
                return Tree { parent, children };
            }
            parent = Some(rank(root));
            if target < root { high = root - 1 } else { low = root + 1 }
        }
    }
}

/// The number in `low..=high` with the most trailing zeros, which is the root of that range.
fn middle(low: usize, high: usize) -> usize {
    let mut step = 1;
    while (high / (2 * step)) * 2 * step >= low.max(1) {
        step *= 2;
    }
    (high / step) * step
}

/// Broadcasts from `root` along a binomial tree in log2(n) steps, for one or two messages.
pub(crate) fn broadcast_tree(
    n: usize,
    me: usize,
    root: usize,
    count: usize,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    let place = (me + n - root) % n;
    let rank = |place: usize| ((place + root) % n) as u32;
    let reach = n.next_power_of_two();
    let first = if place == 0 { reach } else { 1 << place.trailing_zeros() };
    for range in segments(0..count, segment) {
        if place != 0 {
            s.store(rank(place - first), range.clone());
        }
        let mut distance = first / 2;
        while distance > 0 {
            if place + distance < n {
                s.send(rank(place + distance), range.clone());
            }
            distance /= 2;
        }
    }
    s.built()
}

/// Broadcasts from `root` from rank to rank, in pipelined segments, for many bytes.
pub(crate) fn broadcast_chain(
    n: usize,
    me: usize,
    root: usize,
    count: usize,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    let place = (me + n - root) % n;
    for range in segments(0..count, segment) {
        if place > 0 {
            s.store(((me + n - 1) % n) as u32, range.clone());
        }
        if place + 1 < n {
            s.send(((me + 1) % n) as u32, range.clone());
        }
    }
    s.built()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_the_root_is_a_child_of_its_parent() {
        for n in 1..40usize {
            for shift in 0..2 {
                let trees: Vec<Tree> = (0..n).map(|r| Tree::of(n, r, shift)).collect();
                assert_eq!(trees.iter().filter(|t| t.parent.is_none()).count(), 1);
                for (rank, tree) in trees.iter().enumerate() {
                    for &child in &tree.children {
                        assert_eq!(trees[child as usize].parent, Some(rank as u32));
                    }
                }
            }
        }
    }

    #[test]
    fn no_rank_is_an_inner_node_in_both_trees() {
        for n in 2..40 {
            for rank in 0..n {
                let works = |shift| !Tree::of(n, rank, shift).children.is_empty();
                assert!(!(works(0) && works(1)), "rank {rank} of {n}");
            }
        }
    }
}
