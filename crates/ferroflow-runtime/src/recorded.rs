//! Steps on a GPU that are recorded once and then replayed. A replay enqueues all work at once, and
//! runs no node on the host.
//!
//! A plan can be recorded if the GPU's work depends on nothing but the shapes of its arguments, its
//! constants and its variables. Then every step with arguments of the same shapes enqueues the same
//! work, and a replay gives the same bits. All other plans run node by node. So does a step whose
//! variables are not where they were when it was recorded.

mod eligible;
mod recording_run;

pub(crate) use eligible::recordings_of;

use crate::executor::RunDone;
use crate::plan::Plan;
use ferroflow_core::{
    AsyncKernel, Buffer, DType, Error, Gpu, HashSet, InlineScope, MemoryPlan, RecordedStep, Replay,
    Resources, Result, Shape, StepCtx, StepDownload, StoredVariable, Tensor, ThreadKind, err,
};
use parking_lot::Mutex;
use recording_run::RecordingRun;
use std::sync::{Arc, Weak};

/// The number of steps with equal shapes before the first recording: many plans run only once.
const RUNS_BEFORE: u32 = 2;
/// The number of failed attempts after which a plan is not recorded any more.
const MAX_REFUSALS: u32 = 2;
/// The most sets of shapes that a plan is recorded for.
const MAX_SHAPES: usize = 4;

/// The recordings of a plan.
pub(crate) struct Recordings {
    gpu: Arc<dyn Gpu>,
    /// Nodes that copy results to the host.
    to_host: HashSet<u32>,
    /// These nodes, and all nodes that they depend on.
    for_results: HashSet<u32>,
    /// Nodes that change variables.
    writers: HashSet<u32>,
    /// Kernels that wait, unless they pass their input on.
    waiting: Vec<Arc<dyn AsyncKernel>>,
    known: Mutex<Vec<Known>>,
}

/// Steps whose arguments have these types and shapes.
struct Known {
    shapes: Vec<(DType, Shape)>,
    runs: u32,
    refusals: u32,
    /// The memory that the last rehearsal planned.
    memory: Option<Arc<MemoryPlan>>,
    recorded: Option<Arc<RecordedRun>>,
}

/// A recorded step.
struct RecordedRun {
    step: Arc<dyn RecordedStep>,
    /// Where each argument goes; `None` if no node takes it.
    feeds: Vec<Option<u64>>,
    results: Vec<RecordedResult>,
    /// The variables in the order of their addresses, with the places of their values.
    variables: Vec<Arc<StoredVariable>>,
    places: Vec<Place>,
    /// The resources that hold the variables, and their count of removals at the recording.
    resources: (Weak<Resources>, u64),
}

/// A result of a recorded step.
enum RecordedResult {
    OnHost(Tensor),
    OnDevice { address: u64, dtype: DType, shape: Shape },
}

/// The value of a variable in the memory of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    address: u64,
    dtype: DType,
    shape: Shape,
}

impl Place {
    /// The place of a value; `None` if it is in host memory.
    fn of(value: &Tensor) -> Option<Place> {
        let address = value.device_address().ok()?;
        Some(Place { address, dtype: value.dtype(), shape: value.shape().clone() })
    }

    fn holds(&self, value: &Tensor) -> bool {
        value.device_address().is_ok_and(|address| address == self.address)
            && value.dtype() == self.dtype
            && *value.shape() == self.shape
    }
}

/// How to run a step.
enum Choice {
    NodeByNode,
    /// Node by node on one thread, in the order in which it will be recorded.
    Rehearse,
    Record(Option<Arc<MemoryPlan>>),
    Replay(Arc<RecordedRun>),
}

impl Recordings {
    /// Runs a step by a recording, or records it. Gives `args` and `done` back if the step is to
    /// be run node by node.
    pub fn run(
        &self,
        plan: &Arc<Plan>,
        args: Vec<Tensor>,
        step: &Arc<StepCtx>,
        scope: &InlineScope,
        done: RunDone,
    ) -> Option<(Vec<Tensor>, RunDone)> {
        if step.stats.is_some() || step.cancel.is_cancelled() {
            return Some((args, done));
        }
        let how = match self.choose(&args) {
            Choice::NodeByNode => return Some((args, done)),
            Choice::Replay(recorded) => {
                return self.replay(&recorded, plan, args, step, scope, done);
            }
            how => how,
        };
        if !scope.has_budget() {
            self.run_in_order(plan, how, args, step, scope, done);
            return None;
        }
        let (plan, step) = (plan.clone(), step.clone());
        let threads = step.threads.clone();
        threads.spawn(Box::new(move || {
            let scope = InlineScope::new(ThreadKind::Compute);
            if let Some(recordings) = &plan.recordings {
                recordings.run_in_order(&plan, how, args, &step, &scope, done);
            }
        }));
        None
    }

    fn choose(&self, args: &[Tensor]) -> Choice {
        let may_wait = self.waiting.iter().any(|kernel| !kernel.passes_input_on());
        if may_wait || !args.iter().all(|arg| arg.bytes().is_ok()) {
            return Choice::NodeByNode;
        }
        let is_of = |known: &Known| {
            let shapes = known.shapes.iter().zip(args);
            shapes
                .into_iter()
                .all(|((dtype, shape), arg)| *dtype == arg.dtype() && shape == arg.shape())
        };
        // A recorded step needs no other memory than the earlier recordings.
        let runs_before = if self.gpu.recorded_memory() > 0 { 0 } else { RUNS_BEFORE };
        let mut all = self.known.lock();
        if all.len() < MAX_SHAPES && !all.iter().any(is_of) {
            let shapes = args.iter().map(|arg| (arg.dtype(), arg.shape().clone())).collect();
            all.push(Known { shapes, runs: 0, refusals: 0, memory: None, recorded: None });
        }
        let Some(known) = all.iter_mut().find(|known| is_of(known)) else {
            return Choice::NodeByNode;
        };
        if let Some(recorded) = &known.recorded {
            return Choice::Replay(recorded.clone());
        }
        known.runs += 1;
        if known.refusals >= MAX_REFUSALS {
            return Choice::NodeByNode;
        }
        if known.runs <= runs_before || known.memory.is_none() && known.runs == 1 {
            return Choice::Rehearse;
        }
        // Steps that begin during the recording run node by node.
        known.runs = 0;
        Choice::Record(known.memory.clone())
    }

    fn replay(
        &self,
        recorded: &Arc<RecordedRun>,
        plan: &Arc<Plan>,
        args: Vec<Tensor>,
        step: &Arc<StepCtx>,
        scope: &InlineScope,
        done: RunDone,
    ) -> Option<(Vec<Tensor>, RunDone)> {
        let results = Results::new(recorded.results.len(), done);
        let mut fetches = Vec::new();
        for (i, result) in recorded.results.iter().enumerate() {
            match result {
                RecordedResult::OnHost(value) => results.put(i, Ok(value.clone()), scope),
                RecordedResult::OnDevice { address, dtype, shape } => {
                    let bytes = shape.elements() * dtype.size().unwrap_or(1);
                    let done = results.taker(i, *dtype, shape.clone());
                    fetches.push(StepDownload { from: *address, bytes, done });
                }
            }
        }
        match recorded.replay(&args, &step.resources, &mut fetches) {
            Ok(Outcome::Done) => results.end(scope),
            Ok(Outcome::Busy) => return results.cancel().map(|done| (args, done)),
            Ok(Outcome::Outdated) => {
                self.forget(recorded);
                let done = results.cancel()?;
                // Recorded again at once: node by node it would need memory of its own.
                return self.run(plan, args, step, scope, done);
            }
            Err(e) => {
                self.forget(recorded);
                if let Some(done) = results.cancel() {
                    done(Err(e), scope);
                }
            }
        }
        None
    }

    /// Drops a recording that cannot be used any more.
    fn forget(&self, recorded: &Arc<RecordedRun>) {
        let mut all = self.known.lock();
        let is_it = |known: &&mut Known| {
            known.recorded.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, recorded))
        };
        let dropped = all.iter_mut().find(is_it).map(|known| {
            known.runs = 0;
            known.recorded.take()
        });
        drop(all);
        drop(dropped);
    }

    /// Runs a step on this thread, and rehearses or records it.
    fn run_in_order(
        &self,
        plan: &Arc<Plan>,
        how: Choice,
        args: Vec<Tensor>,
        step: &Arc<StepCtx>,
        scope: &InlineScope,
        done: RunDone,
    ) {
        let shapes: Vec<(DType, Shape)> =
            args.iter().map(|arg| (arg.dtype(), arg.shape().clone())).collect();
        let results = Results::new(plan.ret_names.len(), done);
        let mut run = RecordingRun::new(plan, self, step, args, &results);
        let ran = match how {
            Choice::Record(memory) => {
                let recorded = step.memory.run(|| self.gpu.record(&mut run, memory.as_ref()));
                recorded.map(|recorded| {
                    let made = recorded.and_then(|step| run.recorded(step));
                    self.with_known(&shapes, |known| {
                        known.refusals += u32::from(made.is_none());
                        known.recorded = made.map(Arc::new);
                    });
                })
            }
            _ => {
                let memory = step.memory.run(|| self.gpu.rehearse(&mut run));
                memory.map(|memory| {
                    let memory = memory.map(Arc::new);
                    self.with_known(&shapes, |known| known.memory = memory);
                })
            }
        };
        match ran {
            Ok(()) => results.end(scope),
            Err(e) => {
                if let Some(done) = results.cancel() {
                    step.rendezvous.abort(e.clone());
                    done(Err(e), scope);
                }
            }
        }
    }

    fn with_known(&self, shapes: &[(DType, Shape)], change: impl FnOnce(&mut Known)) {
        let mut all = self.known.lock();
        if let Some(known) = all.iter_mut().find(|known| known.shapes == shapes) {
            change(known);
        }
    }
}

/// The outcome of replaying a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The recording cannot run at present.
    Busy,
    /// The recording cannot be used any more.
    Outdated,
}

impl RecordedRun {
    fn replay(
        &self,
        args: &[Tensor],
        resources: &Arc<Resources>,
        fetches: &mut Vec<StepDownload>,
    ) -> Result<Outcome> {
        let (of, removals) = &self.resources;
        if !std::ptr::eq(of.as_ptr(), Arc::as_ptr(resources)) || *removals != resources.removals() {
            return Ok(Outcome::Outdated);
        }
        let mut feeds = Vec::with_capacity(args.len());
        for (arg, to) in args.iter().zip(&self.feeds) {
            if let Some(to) = to {
                feeds.push((arg.bytes()?, *to));
            }
        }
        // The locks are held until the work is enqueued: otherwise a snapshot of another step could
        // change under it.
        StoredVariable::with_all(&self.variables, |values| {
            let mut is_shared = false;
            for (value, place) in values.iter_mut().zip(&self.places) {
                match value {
                    Some(value) if place.holds(value) => is_shared |= !value.is_unique(),
                    _ => return Ok(Outcome::Outdated),
                }
            }
            if is_shared {
                return Ok(Outcome::Busy);
            }
            Ok(match self.step.replay(&feeds, fetches)? {
                Replay::Done => Outcome::Done,
                Replay::Busy => Outcome::Busy,
                Replay::Gone => Outcome::Outdated,
            })
        })
    }
}

/// The results of a step, which arrive one by one on other threads.
struct Results {
    state: Mutex<Arrived>,
}

struct Arrived {
    values: Vec<Option<Tensor>>,
    error: Option<Error>,
    /// The number of missing results, plus one for the end of the step.
    missing: usize,
    done: Option<RunDone>,
}

impl Results {
    fn new(count: usize, done: RunDone) -> Arc<Results> {
        let values = (0..count).map(|_| None).collect();
        let state = Arrived { values, error: None, missing: count + 1, done: Some(done) };
        Arc::new(Results { state: Mutex::new(state) })
    }

    /// Takes the bytes of result `i`.
    fn taker(
        self: &Arc<Self>,
        i: usize,
        dtype: DType,
        shape: Shape,
    ) -> ferroflow_core::DownloadDone {
        let results = self.clone();
        Box::new(move |copied: Result<Buffer>| {
            let value = copied.and_then(|buffer| Tensor::from_buffer(dtype, shape, buffer));
            results.put(i, value, &InlineScope::unknown());
        })
    }

    fn put(&self, i: usize, value: Result<Tensor>, scope: &InlineScope) {
        let mut state = self.state.lock();
        match value {
            Ok(value) => state.values[i] = Some(value),
            Err(e) => drop(state.error.get_or_insert(e)),
        }
        drop(state);
        self.end(scope);
    }

    /// Counts one missing result less. The last one ends the step.
    fn end(&self, scope: &InlineScope) {
        let mut state = self.state.lock();
        state.missing -= 1;
        if state.missing > 0 {
            return;
        }
        let (done, error) = (state.done.take(), state.error.take());
        let values = std::mem::take(&mut state.values);
        drop(state);
        let Some(done) = done else { return };
        let missing = || err!(Internal, "a recorded step has no result");
        let values = values.into_iter().map(|v| v.ok_or_else(missing)).collect();
        done(error.map_or(values, Err), scope);
    }

    /// Cancels the step. Results that still arrive are dropped.
    fn cancel(&self) -> Option<RunDone> {
        self.state.lock().done.take()
    }
}
