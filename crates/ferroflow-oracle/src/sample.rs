//! Picks a smaller set of cases out of a large one, for the tests to keep.

use crate::record::Case;
use std::collections::BTreeMap;

/// Keeps `per_pair` short cases of each (op, dtype).
pub struct Sample {
    per_pair: usize,
    longest: usize,
    taken: BTreeMap<(String, String), usize>,
    pub bytes: Vec<u8>,
    pub cases: usize,
}

impl Sample {
    pub fn new(per_pair: usize, longest: usize) -> Sample {
        Sample { per_pair, longest, taken: BTreeMap::new(), bytes: Vec::new(), cases: 0 }
    }

    pub fn offer(&mut self, case: &Case) {
        let taken = self.taken.entry((case.op.clone(), case.dtype.clone())).or_default();
        if *taken < self.per_pair && case.raw.len() <= self.longest {
            *taken += 1;
            self.cases += 1;
            self.bytes.extend_from_slice(&case.raw);
        }
    }
}
