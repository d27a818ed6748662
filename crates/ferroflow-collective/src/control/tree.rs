//! Which ranks have a control connection with each other. Few ranks form a star around rank 0. Many
//! form a tree, so that rank 0 needs neither a descriptor nor a thread for each of them.

use std::ops::Range;

/// Most ranks of a star. A message needs one hop in it.
const STAR: usize = 32;

/// Ranks below each rank of a tree. A thousand ranks are then four hops from rank 0.
const FAN_OUT: usize = 8;

/// The control connections of a group. Equal on all ranks, because only the size decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlTree {
    size: usize,
    fan_out: usize,
}

impl ControlTree {
    pub(crate) fn of(size: usize) -> ControlTree {
        let fan_out = if size <= STAR { size.max(1) } else { FAN_OUT };
        ControlTree { size, fan_out }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The rank that passes messages between `rank` and rank 0. `None` for rank 0.
    pub(crate) fn parent(&self, rank: usize) -> Option<usize> {
        rank.checked_sub(1).map(|before| before / self.fan_out)
    }

    /// The ranks whose parent is `rank`.
    pub(crate) fn children(&self, rank: usize) -> Range<usize> {
        let first = rank.saturating_mul(self.fan_out).saturating_add(1);
        first.min(self.size)..first.saturating_add(self.fan_out).min(self.size)
    }

    /// The ranks that reach rank 0 only through `rank`.
    pub(crate) fn below(&self, rank: usize) -> Vec<usize> {
        let mut found: Vec<usize> = self.children(rank).collect();
        let mut next = 0;
        while let Some(&one) = found.get(next) {
            found.extend(self.children(one));
            next += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_the_first_is_a_child_of_its_parent() {
        for size in [1, 2, 32, 33, 64, 1000] {
            let tree = ControlTree::of(size);
            assert_eq!(tree.parent(0), None);
            for rank in 1..size {
                let parent = tree.parent(rank).unwrap();
                assert!(parent < rank && tree.children(parent).contains(&rank), "{rank} of {size}");
            }
            assert_eq!(tree.below(0), (1..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn few_ranks_all_connect_to_rank_0_and_many_do_not() {
        assert_eq!(ControlTree::of(32).children(0), 1..32);
        let tree = ControlTree::of(1000);
        assert!((0..1000).all(|rank| tree.children(rank).len() <= FAN_OUT));
        assert_eq!(tree.below(111), (889..897).collect::<Vec<_>>());
    }
}
