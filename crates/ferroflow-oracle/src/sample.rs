//! Selects a small set of cases from a large one, for the tests.

use crate::record::{RecordedAnswer, RecordedCase};
use ferroflow_core::Code;
use std::collections::BTreeMap;

/// One call out of this many is invalid on purpose; see `oracle/ask.py`.
const KINDS: u64 = 6;

/// Keeps a few short cases of each (op, dtype), with different kinds of calls.
pub struct Sample {
    per_pair: usize,
    longest: usize,
    taken: BTreeMap<(String, String), (u64, usize)>,
    pub bytes: Vec<u8>,
    pub cases: usize,
}

impl Sample {
    /// Keeps `per_pair` cases of each pair, with records of at most `longest` bytes.
    pub fn new(per_pair: usize, longest: usize) -> Sample {
        Sample { per_pair, longest, taken: BTreeMap::new(), bytes: Vec::new(), cases: 0 }
    }

    /// Keeps the case, if it is needed.
    pub fn offer(&mut self, case: &RecordedCase) {
        let is_quick = match case.theirs {
            RecordedAnswer::Values(_) => true,
            RecordedAnswer::Error(code, _) => code != Code::DeadlineExceeded,
            RecordedAnswer::Crashed => false,
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
