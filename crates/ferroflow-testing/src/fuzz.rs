//! Random graphs and steps, valid and invalid, as an untrusted client might send them. The fuzz
//! target and a seeded test both run their cases here.
//!
//! A case is a byte string. It is read as messages from the network, or selects a graph over the
//! ops of a catalog and steps over that graph, or both: a selected graph is encoded as a message
//! and some bytes are changed. No case may panic, hang or use memory without bound. Errors are
//! fine.

mod graphs;
mod values;

use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;
use ferroflow_core::{CancelToken, Tensor, err, set_memory_limit};
use ferroflow_graph::wire::graph::{decode_graph, encode_graph};
use ferroflow_graph::wire::step::RunStepRequest;
use ferroflow_graph::{Catalog, GraphDef, OpDef};
use ferroflow_runtime::{
    CallableSpec, RunOptions, RunOutput, RunRequest, SessionDone, SessionOptions, Task, TaskSession,
};
use graphs::Grown;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Most bytes of all tensors of a case.
const MEMORY: usize = 128 << 20;
/// A step hangs if it does not end within this time after it was cancelled.
const HANG: Duration = Duration::from_secs(20);

/// How many nodes are run by themselves after a step of their graph failed.
const MAX_SINGLE: usize = 12;

/// Runs cases over the ops of one catalog.
pub struct Fuzz {
    task: Arc<Task>,
    ops: Vec<Arc<OpDef>>,
    deadline: Duration,
}

/// The result of a case without a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FuzzOutcome {
    /// Whether the graph was accepted.
    pub has_session: bool,
    pub steps: u32,
    /// Steps that ended without an error.
    pub succeeded: u32,
}

impl Fuzz {
    /// Cases over `catalog`, without ops that print or use the network. A step is cancelled after
    /// `deadline`. Limits the memory of all tensors in this process, and confines files to an empty
    /// folder.
    pub fn new(catalog: &Catalog, deadline: Duration) -> Fuzz {
        set_memory_limit(MEMORY);
        confine_files();
        let catalog = Arc::new(catalog.filtered(|op| !is_excluded(&op.name)));
        let ops = catalog.iter().filter(|op| op.cpu.is_some()).cloned().collect();
        Fuzz { task: Task::local(catalog), ops, deadline }
    }

    /// Runs one case.
    ///
    /// # Panics
    /// If a kernel panicked or a step hung.
    pub fn run(&self, data: &[u8]) -> FuzzOutcome {
        // Too few bytes for a case are no case.
        self.case(&mut Unstructured::new(data)).unwrap_or_default()
    }

    /// The meaning of the bytes, for debugging: graph, feeds and fetches.
    pub fn show(&self, data: &[u8]) -> String {
        let mut u = Unstructured::new(data);
        let grown = match u.int_in_range(0..=7) {
            Ok(0) | Err(_) => return format!("messages: {data:?}"),
            Ok(_) => graphs::grow(&mut u, &self.ops),
        };
        grown.map_or_else(|e| e.to_string(), |grown| format!("{grown:#?}"))
    }

    fn case(&self, u: &mut Unstructured<'_>) -> Result<FuzzOutcome> {
        match u.int_in_range(0..=7)? {
            0 => self.raw(u),
            1 => self.mutated(u),
            _ => {
                let case = graphs::grow(u, &self.ops)?;
                self.play(u, &case)
            }
        }
    }

    /// Reads the bytes as messages: a GraphDef, and a RunStepRequest from the rest.
    fn raw(&self, u: &mut Unstructured<'_>) -> Result<FuzzOutcome> {
        let len = u.int_in_range(0..=u.len())?;
        let graph = Bytes::copy_from_slice(u.bytes(len.min(u.len()))?);
        let step = Bytes::copy_from_slice(u.bytes(u.len())?);
        Ok(self.messages(graph, step))
    }

    /// A valid graph and step, encoded as messages, with some bytes changed.
    fn mutated(&self, u: &mut Unstructured<'_>) -> Result<FuzzOutcome> {
        let case = graphs::grow(u, &self.ops)?;
        let step = RunStepRequest {
            feeds: case.feeds.clone(),
            fetches: case.fetches.clone(),
            targets: case.targets.clone(),
            ..RunStepRequest::default()
        };
        let (Ok(graph), Ok(step)) = (encode_graph(&case.graph), step.encode()) else {
            return Ok(FuzzOutcome::default());
        };
        let mut messages = [graph.to_vec(), step.into_parts().concat()];
        for _ in 0..u.int_in_range(1..=8)? {
            let message = &mut messages[u.int_in_range(0..=1)?];
            if !message.is_empty() {
                let at = u.choose_index(message.len())?;
                message[at] = u8::arbitrary(u)?;
            }
        }
        let [graph, step] = messages;
        Ok(self.messages(graph.into(), step.into()))
    }

    fn messages(&self, graph: Bytes, step: Bytes) -> FuzzOutcome {
        let (graph, step) = (decode_graph(graph), RunStepRequest::decode(step));
        let Ok(graph) = graph else { return FuzzOutcome::default() };
        let Some(session) = self.session(&graph, SessionOptions::default()) else {
            return FuzzOutcome::default();
        };
        let mut outcome = FuzzOutcome { has_session: true, ..FuzzOutcome::default() };
        if let Ok(step) = step {
            let request = RunRequest {
                feeds: step.feeds,
                fetches: step.fetches,
                targets: step.targets,
                options: RunOptions::default(),
            };
            self.step(&mut outcome, |cancel, done| session.run(request, cancel, done));
        }
        self.close(&session);
        outcome
    }

    /// Opens a session on the graph, in one part or two, and runs steps in all possible ways.
    fn play(&self, u: &mut Unstructured<'_>, case: &Grown) -> Result<FuzzOutcome> {
        let options =
            SessionOptions { disable_optimizer: u.ratio(1, 4)?, ..SessionOptions::default() };
        let mut first = case.graph.clone();
        let mut rest = GraphDef { versions: first.versions.clone(), ..GraphDef::default() };
        if u.ratio(1, 8)? {
            rest.nodes = first.nodes.split_off(u.int_in_range(0..=first.nodes.len())?);
        }
        let Some(session) = self.session(&first, options) else {
            return Ok(FuzzOutcome::default());
        };
        let mut outcome = FuzzOutcome { has_session: true, ..FuzzOutcome::default() };
        let _ = session.extend(&rest, None);
        match u.int_in_range(0..=9)? {
            0 => self.partial_run(&session, case, &mut outcome),
            1 => self.callable(&session, case, &mut outcome),
            _ => {
                let options = RunOptions {
                    trace: u.ratio(1, 8)?,
                    output_partition_graphs: u.ratio(1, 8)?,
                    ..RunOptions::default()
                };
                let request = RunRequest {
                    feeds: case.feeds.clone(),
                    fetches: case.fetches.clone(),
                    targets: case.targets.clone(),
                    options: options.clone(),
                };
                let ended =
                    self.step(&mut outcome, |cancel, done| session.run(request, cancel, done));
                // A node that fails keeps the others from running. Run them by themselves.
                for node in case.graph.nodes.iter().filter(|_| !ended).take(MAX_SINGLE) {
                    let targets = vec![node.name.clone()];
                    let request =
                        RunRequest { targets, options: options.clone(), ..RunRequest::default() };
                    self.step(&mut outcome, |cancel, done| session.run(request, cancel, done));
                }
            }
        }
        self.close(&session);
        Ok(outcome)
    }

    fn partial_run(&self, session: &TaskSession, case: &Grown, outcome: &mut FuzzOutcome) {
        let names = case.feeds.iter().map(|(name, _)| name.clone()).collect();
        let made = session.partial_run_setup(names, case.fetches.clone(), case.targets.clone());
        let Ok(handle) = made else { return };
        let (early, late) = case.fetches.split_at(case.fetches.len() / 2);
        let parts = [(case.feeds.clone(), early.to_vec()), (Vec::new(), late.to_vec())];
        for (feeds, fetches) in parts {
            self.step(outcome, |cancel, done| {
                session.partial_run(&handle, feeds, fetches, cancel, done)
            });
        }
    }

    fn callable(&self, session: &TaskSession, case: &Grown, outcome: &mut FuzzOutcome) {
        let (names, values): (Vec<String>, Vec<Tensor>) = case.feeds.iter().cloned().unzip();
        let spec = CallableSpec {
            feeds: names,
            fetches: case.fetches.clone(),
            targets: case.targets.clone(),
            connections: case.connections.clone(),
            options: RunOptions::default(),
        };
        let Ok(handle) = session.make_callable(&spec) else { return };
        self.step(outcome, |cancel, done| session.run_callable(handle, None, values, cancel, done));
        let _ = session.release_callable(handle);
    }

    fn session(&self, graph: &GraphDef, options: SessionOptions) -> Option<TaskSession> {
        let options = SessionOptions { isolate_state: true, allow_soft_placement: true, ..options };
        TaskSession::new(self.task.clone(), graph, options).ok()
    }

    /// Runs a step until it completes or is cancelled. Returns whether it succeeded.
    fn step(
        &self,
        outcome: &mut FuzzOutcome,
        start: impl FnOnce(CancelToken, SessionDone),
    ) -> bool {
        let cancel = CancelToken::new();
        let (sender, receiver) = channel();
        start(
            cancel.clone(),
            Box::new(move |result| {
                let _ = sender.send(result);
            }),
        );
        let result = receiver.recv_timeout(self.deadline).unwrap_or_else(|_| {
            cancel.cancel(err!(DeadlineExceeded, "the step took too long"));
            ended(&receiver)
        });
        outcome.steps += 1;
        let succeeded = result.is_ok();
        match result {
            Ok(_) => outcome.succeeded += 1,
            Err(e) => assert!(!e.message().contains("panicked"), "{e}"),
        }
        succeeded
    }

    fn close(&self, session: &TaskSession) {
        let (sender, receiver) = channel();
        session.close(Box::new(move || {
            let _ = sender.send(());
        }));
        assert!(receiver.recv_timeout(HANG).is_ok(), "the session does not close");
    }
}

fn ended(
    receiver: &Receiver<ferroflow_core::Result<RunOutput>>,
) -> ferroflow_core::Result<RunOutput> {
    receiver.recv_timeout(HANG).expect("a cancelled step ends")
}

/// Ops that print or use the network. They are excluded.
fn is_excluded(op: &str) -> bool {
    ["Print", "Debug", "Dump", "Collective"].iter().any(|part| op.contains(part))
}

/// Confines the ops that use files to an empty folder.
fn confine_files() {
    let folder = std::env::temp_dir().join(format!("ferroflow-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // An error means that an earlier one did it.
    let _ = ferroflow_core::files::confine_to(&[folder]);
}
