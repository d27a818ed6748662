//! Picks a smaller set of cases out of a large one, for the tests to keep.

use crate::record::{Case, Theirs};
use ferroflow_core::Code;
use std::collections::BTreeMap;

/// Of this many calls in a row, one is spoiled; see `oracle/ask.py`.
const KINDS: u64 = 6;

/// Keeps a few short cases of each (op, dtype): of each pair another kind of call.
pub struct Sample {
    per_pair: usize,
    longest: usize,
    taken: BTreeMap<(String, String), (u64, usize)>,
    pub bytes: Vec<u8>,
    pub cases: usize,
}

impl Sample {
    pub fn new(per_pair: usize, longest: usize) -> Sample {
        Sample { per_pair, longest, taken: BTreeMap::new(), bytes: Vec::new(), cases: 0 }
    }

    pub fn offer(&mut self, case: &Case) {
        let is_quick = match case.theirs {
            Theirs::Values(_) => true,
            Theirs::Error(code, _) => code != Code::DeadlineExceeded,
            Theirs::Crashed => false,
        };
        if !is_quick || case.raw.len() > self.longest {
            return;
        }
        let kind = self.taken.len() as u64;
        let key = (case.op.clone(), case.dtype.clone());
        let (kind, taken) = self.taken.entry(key).or_insert((kind, 0));
        if *taken < self.per_pair && case.index % KINDS == *kind % KINDS {
            *taken += 1;
            self.cases += 1;
            self.bytes.extend_from_slice(&case.raw);
        }
    }
}
