//! Sets of small numbers. A graph has many equal ones, so each is stored once.

use std::collections::HashMap;

/// The empty set.
pub(super) const NOTHING: u32 = 0;
/// A set that was not worked out: it may be any.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// All sets together hold at most this many nodes; what would exceed it is unknown.
const MAX_ELEMENTS: usize = 1 << 22;

/// Sorted sets, by number: equal sets have one number.
pub(super) struct Sets {
    list: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, u32>,
    unions: HashMap<(u32, u32), u32>,
    elements: usize,
}

impl Default for Sets {
    fn default() -> Sets {
        Sets {
            list: vec![Vec::new()],
            numbers: HashMap::from([(Vec::new(), NOTHING)]),
            unions: HashMap::new(),
            elements: 0,
        }
    }
}

impl Sets {
    pub fn number(&mut self, set: Vec<u32>) -> u32 {
        if let Some(number) = self.numbers.get(&set) {
            return *number;
        }
        if self.elements + set.len() > MAX_ELEMENTS {
            return UNKNOWN;
        }
        self.elements += set.len();
        let number = self.list.len() as u32;
        self.list.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    pub fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == NOTHING {
            return a;
        }
        if a == NOTHING {
            return b;
        }
        if a == UNKNOWN || b == UNKNOWN {
            return UNKNOWN;
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let mut both = [&self.list[a as usize][..], &self.list[b as usize][..]].concat();
        both.sort_unstable();
        both.dedup();
        let number = self.number(both);
        self.unions.insert(key, number);
        number
    }

    /// Whether all elements of `a` are in `b`. The empty set is a part of any set, known or not.
    pub fn is_subset(&self, a: u32, b: u32) -> bool {
        if a == NOTHING {
            return true;
        }
        if a == UNKNOWN || b == UNKNOWN {
            return false;
        }
        let all = &self.list[b as usize];
        a == b || self.list[a as usize].iter().all(|x| all.binary_search(x).is_ok())
    }
}
