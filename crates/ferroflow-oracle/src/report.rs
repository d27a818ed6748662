//! Counts cases and results: coverage, and differences with examples.

use crate::compare::{Difference, DifferenceKind, differences};
use crate::explained::{Explained, SeenDifference};
use crate::record::{RecordedAnswer, RecordedCase};
use ferroflow_core::{Error, Tensor};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Examples to keep for each (op, kind) of difference.
const EXAMPLES: usize = 6;

/// Invocations that each (op, dtype) should have.
pub const WANTED: usize = 20;

#[derive(Default)]
struct Pair {
    cases: usize,
    /// Cases for which TensorFlow computes a result.
    computed: usize,
    refused: usize,
    crashed: usize,
}

#[derive(Default)]
struct Found {
    cases: usize,
    examples: Vec<String>,
    dtypes: BTreeSet<String>,
}

/// The results of a run.
pub struct Report {
    explained: Explained,
    pairs: BTreeMap<(String, String), Pair>,
    unexplained: BTreeMap<(String, DifferenceKind), Found>,
    /// Lines of the table, with the cases that each explains.
    accepted: BTreeMap<usize, usize>,
    /// Cases with only explained differences.
    explained_cases: usize,
    /// All differences, for programs.
    all: Vec<serde_json::Value>,
}

impl Report {
    /// An empty report.
    pub fn new(explained: Explained) -> Report {
        Report {
            explained,
            pairs: BTreeMap::new(),
            unexplained: BTreeMap::new(),
            accepted: BTreeMap::new(),
            explained_cases: 0,
            all: Vec::new(),
        }
    }

    /// Counts one case. Returns a difference without an explanation.
    pub fn add(
        &mut self,
        case: &RecordedCase,
        ours: &Result<Vec<Tensor>, Error>,
    ) -> Option<Difference> {
        let pair = self.pairs.entry((case.op.clone(), case.dtype.clone())).or_default();
        pair.cases += 1;
        match case.theirs {
            RecordedAnswer::Values(_) => pair.computed += 1,
            RecordedAnswer::Error(..) => pair.refused += 1,
            RecordedAnswer::Crashed => pair.crashed += 1,
        }
        let differences = differences(case, ours);
        if differences.is_empty() {
            return None;
        }
        let call = describe(case);
        let mut lines = BTreeSet::new();
        let mut found = None;
        for difference in differences {
            let seen = SeenDifference {
                op: &case.op,
                dtype: &case.dtype,
                kind: difference.kind,
                spoiled: case.spoiled,
                text: &format!("{}\n{call}", difference.text),
            };
            let line = self.explained.find(&seen);
            self.all.push(json!({"op": case.op, "dtype": case.dtype, "index": case.index,
                "kind": seen.kind.to_string(), "spoiled": case.spoiled, "text": seen.text,
                "explained": line.map(|line| &self.explained.0[line].reason)}));
            match line {
                Some(line) => _ = lines.insert(line),
                None => found = found.or(Some(difference)),
            }
        }
        let Some(found) = found else {
            self.explained_cases += 1;
            for line in lines {
                *self.accepted.entry(line).or_default() += 1;
            }
            return None;
        };
        let entry = self.unexplained.entry((case.op.clone(), found.kind)).or_default();
        entry.cases += 1;
        entry.dtypes.insert(case.dtype.clone());
        if entry.examples.len() < EXAMPLES {
            entry.examples.push(format!("#{} {call}: {}", case.index, found.text));
        }
        Some(found)
    }

    /// Whether all differences are explained.
    pub fn is_clean(&self) -> bool {
        self.unexplained.is_empty()
    }

    /// The report as text. `registered` are the ops that have kernels.
    pub fn text(&self, registered: &BTreeSet<String>) -> String {
        let mut out = String::new();
        let ops = self.ops();
        let cases: usize = self.pairs.values().map(|p| p.cases).sum();
        let sum = |of: fn(&Pair) -> usize| self.pairs.values().map(of).sum::<usize>();
        let full = self.pairs.values().filter(|p| p.cases >= WANTED).count();
        let differing: usize = self.unexplained.values().map(|f| f.cases).sum();
        let _ = writeln!(out, "ops asked about            {:6} of {}", ops.len(), registered.len());
        let _ = writeln!(out, "  computed at least once   {:6}", self.computed_ops().len());
        let _ = writeln!(out, "(op, dtype) pairs          {:6}", self.pairs.len());
        let _ = writeln!(out, "  with >= {WANTED} invocations  {full:6}");
        let _ = writeln!(out, "invocations                {cases:6}");
        let _ = writeln!(out, "  computed by TensorFlow   {:6}", sum(|p| p.computed));
        let _ = writeln!(out, "  refused by TensorFlow    {:6}", sum(|p| p.refused));
        let _ = writeln!(out, "  TensorFlow crashed       {:6}", sum(|p| p.crashed));
        let _ = writeln!(out, "differences explained      {:6}", self.explained_cases);
        let _ = writeln!(out, "differences not explained  {differing:6}");
        let missing: Vec<&str> = registered.difference(&ops).map(String::as_str).collect();
        if !missing.is_empty() {
            let _ = writeln!(out, "\nnot asked about ({}): {}", missing.len(), missing.join(" "));
        }
        let computed = self.computed_ops();
        let never: Vec<&str> = ops.difference(&computed).map(String::as_str).collect();
        if !never.is_empty() {
            let _ = writeln!(out, "\nnever computed ({}): {}", never.len(), never.join(" "));
        }
        let few: Vec<String> = (self.pairs.iter())
            .filter(|(_, p)| p.cases < WANTED)
            .map(|((op, dtype), p)| format!("{op} {dtype} {}", p.cases))
            .collect();
        if !few.is_empty() {
            let _ = writeln!(out, "\nfewer invocations ({}): {}", few.len(), few.join(", "));
        }
        for ((op, kind), found) in &self.unexplained {
            let dtypes: Vec<&str> = found.dtypes.iter().map(String::as_str).collect();
            let _ = writeln!(out, "\n{op}: {kind}, {} cases ({})", found.cases, dtypes.join(" "));
            for example in &found.examples {
                let _ = writeln!(out, "  {}", example.replace('\n', "\n    "));
            }
        }
        if !self.accepted.is_empty() {
            let _ = writeln!(out, "\nexplained:");
        }
        for (line, cases) in &self.accepted {
            let _ = writeln!(out, "  {cases:5}  {}", self.explained.0[*line]);
        }
        let all = self.explained.0.iter().enumerate();
        let idle: Vec<_> = all.filter(|(i, _)| !self.accepted.contains_key(i)).collect();
        if !idle.is_empty() {
            let _ = writeln!(out, "\nexplanations that nothing needed:");
        }
        for (_, line) in idle {
            let _ = writeln!(out, "         {line}");
        }
        out
    }

    /// The report for programs.
    pub fn json(&self) -> serde_json::Value {
        let pairs: Vec<_> = (self.pairs.iter())
            .map(|((op, dtype), p)| {
                json!({"op": op, "dtype": dtype, "cases": p.cases, "computed": p.computed,
                       "refused": p.refused, "crashed": p.crashed})
            })
            .collect();
        let differences: Vec<_> = (self.unexplained.iter())
            .map(|((op, kind), f)| {
                json!({"op": op, "kind": kind.to_string(), "cases": f.cases,
                       "dtypes": f.dtypes, "examples": f.examples})
            })
            .collect();
        let explained: Vec<_> = (self.accepted.iter())
            .map(|(line, n)| json!({"reason": self.explained.0[*line].reason, "cases": n}))
            .collect();
        json!({"pairs": pairs, "unexplained": differences, "explained": explained,
               "differences": self.all})
    }

    fn ops(&self) -> BTreeSet<String> {
        self.pairs.keys().map(|(op, _)| op.clone()).collect()
    }

    fn computed_ops(&self) -> BTreeSet<String> {
        let pairs = self.pairs.iter().filter(|(_, p)| p.computed > 0);
        pairs.map(|((op, _), _)| op.clone()).collect()
    }
}

/// The call in one line: dtypes, attributes, and the values fed.
pub fn describe(case: &RecordedCase) -> String {
    let mut text = if case.spoiled { "(spoiled) ".to_string() } else { String::new() };
    if let Some(node) = case.graph.nodes.iter().find(|n| n.op == case.op) {
        let attrs = node.attrs.iter().map(|(name, value)| format!("{name}={value:?}"));
        let _ = write!(text, "{}[{}]", node.op, attrs.collect::<Vec<_>>().join(" "));
    }
    for (name, value) in &case.feeds {
        let shown: String = format!("{value:?}").chars().take(160).collect();
        let _ = write!(text, " {name}={shown}");
    }
    text.chars().take(900).collect()
}
