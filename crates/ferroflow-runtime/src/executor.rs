//! The executor: one work loop, generic over how values travel ([`Propagator`]).
//!
//! A run consists of work loops, each on one thread with a private stack of ready nodes, and of
//! async kernels under way. `outstanding` counts both. When it reaches zero, the run is over. On
//! the first error the loops stop taking nodes, and the step's token is cancelled, which ends the
//! async kernels.

use crate::flat::FlatState;
use crate::frames::Frames;
use crate::plan::{NodeKind, Plan, PlanNode};
use ferroflow_core::inline::SHARED_NODES;
use ferroflow_core::{
    AsyncCtx, Code, Completion, Ctx, Done, Error, FlushDenormals, HashMap, InlineScope, KernelBox,
    MemoryOwner, NodeStats, Outputs, Result, StepCtx, Tensor, ThreadKind, Value, ensure, err,
    panic_text,
};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

/// Called once, with the results of a run, on the thread that ended it.
pub type RunDone = Box<dyn FnOnce(Result<Vec<Tensor>>, &InlineScope) + Send>;

/// How values travel from node to node.
pub(crate) trait Propagator: Sized + Send + Sync + 'static {
    /// The token of a node that is ready to run. There is one for each node.
    type Ready: Send + 'static;
    /// Whether threads that complete cheap nodes rarely contend.
    const IS_SHARED_CHEAPLY: bool;

    /// Queues the nodes that wait for no input.
    fn start(&self, plan: &Plan, args: Vec<Tensor>, ready: &mut Vec<Self::Ready>);
    fn node(ready: &Self::Ready) -> u32;
    fn is_dead(ready: &Self::Ready) -> bool;
    fn frame_iter(ready: &Self::Ready) -> (u64, u64);
    fn inputs<'a>(&'a self, plan: &Plan, ready: &'a mut Self::Ready) -> &'a mut [Value];
    /// Hands a node's outputs (`None`: it was dead) to its consumers and queues those now ready. An
    /// output that is dead or was not set is dead to its consumers.
    fn complete(
        &self,
        plan: &Plan,
        ready: Self::Ready,
        outputs: Option<&mut [Value]>,
        queue: &mut Vec<Self::Ready>,
    );
    /// Keeps a node while its async kernel is under way.
    fn park(&self, ready: Self::Ready) -> u64;
    fn parked_node(&self, token: u64) -> Option<u32>;
    fn unpark(&self, token: u64) -> Option<Self::Ready>;
    /// Ends the run, and releases its values.
    fn finish(self, plan: &Plan, succeeded: bool);
}

/// Starts a run in `scope`; `done` is called when it is over, maybe before this returns. A network
/// thread runs nodes as long as its scope has a budget for them. The rest goes to the step's
/// compute threads.
pub fn run(
    plan: &Arc<Plan>,
    args: Vec<Tensor>,
    step: Arc<StepCtx>,
    scope: &InlineScope,
    done: RunDone,
) {
    if let Err(e) = plan.check_args(args.len()) {
        return done(Err(e), scope);
    }
    let (args, done) = match &plan.recordings {
        Some(recordings) => match recordings.run(plan, args, &step, scope, done) {
            Some(to_do) => to_do,
            None => return,
        },
        None => (args, done),
    };
    if plan.frames.is_some() {
        Run::begin(plan, Frames::new(plan), args, step, scope, done);
    } else {
        Run::begin(plan, FlatState::new(plan), args, step, scope, done);
    }
}

/// Runs on this thread, which may block, and waits for the end.
pub fn run_blocking(
    plan: &Arc<Plan>,
    args: Vec<Tensor>,
    step: Arc<StepCtx>,
) -> Result<Vec<Tensor>> {
    let wait = Arc::new((Mutex::new(None), Condvar::new()));
    let tell = wait.clone();
    let done = Box::new(move |result, _: &InlineScope| {
        *tell.0.lock() = Some(result);
        tell.1.notify_all();
    });
    run(plan, args, step, &InlineScope::new(ThreadKind::Blocking), done);
    let mut result = wait.0.lock();
    // The wait ends: every async kernel finishes its `Done`, at the latest by dropping it.
    wait.1.wait_while(&mut result, |r| r.is_none());
    result.take().unwrap_or_else(|| Err(err!(Internal, "a run ended without a result")))
}

/// Nodes run between two checks for an idle thread.
const SHARE_EVERY: u32 = 64;

struct Run<P: Propagator> {
    plan: Arc<Plan>,
    step: Arc<StepCtx>,
    /// Taken when the run is over.
    values: Option<P>,
    outstanding: AtomicUsize,
    failed: AtomicBool,
    /// The caller blocks, and runs nodes beside the compute threads.
    has_guest: bool,
    /// Async kernels that are being started, and the results that are already there.
    starting: Mutex<SmallVec<[(u64, Option<Result<Outputs>>); 1]>>,
    /// Async kernels that finish while the run is being stopped.
    stopped: Mutex<Option<Vec<(u64, Result<Outputs>)>>>,
    end: Mutex<End>,
}

struct End {
    error: Option<Error>,
    rets: Vec<Value>,
    done: Option<RunDone>,
    /// When async kernels under way were started; only in traced steps.
    begun: HashMap<u64, SystemTime>,
}

impl Drop for End {
    /// Reports the end of a run that a panic dropped, so that its caller does not wait forever.
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(err!(Internal, "a run ended without a result")), &InlineScope::unknown());
        }
    }
}

impl<P: Propagator> Run<P> {
    fn begin(
        plan: &Arc<Plan>,
        values: P,
        args: Vec<Tensor>,
        step: Arc<StepCtx>,
        scope: &InlineScope,
        done: RunDone,
    ) {
        let mut queue = Vec::with_capacity(16);
        values.start(plan, args, &mut queue);
        let run = Arc::new(Run {
            plan: plan.clone(),
            step,
            values: Some(values),
            outstanding: AtomicUsize::new(1),
            failed: AtomicBool::new(false),
            has_guest: scope.thread() == ThreadKind::Blocking,
            starting: Mutex::default(),
            stopped: Mutex::default(),
            end: Mutex::new(End {
                error: None,
                rets: vec![Value::Empty; plan.ret_names.len()],
                done: Some(done),
                begun: HashMap::default(),
            }),
        });
        run.work(queue, scope);
    }

    fn values(&self) -> &P {
        self.values.as_ref().expect("taken only when nothing is outstanding")
    }

    /// Runs nodes until none is ready on this thread. Holds one count of `outstanding`.
    fn work(self: Arc<Self>, queue: Vec<P::Ready>, scope: &InlineScope) {
        if scope.run_nodes(|| self.step.memory.run(|| self.run_ready(queue, scope))) {
            self.count_down(scope);
        }
    }

    /// The same. Returns whether this thread still holds its count of `outstanding`.
    fn run_ready(self: &Arc<Self>, mut queue: Vec<P::Ready>, scope: &InlineScope) -> bool {
        let _denormals = FlushDenormals::begin();
        let mut outputs = Outputs::new();
        let mut alone = SHARE_EVERY;
        let has_budget = scope.has_budget();
        if has_budget && !scope.admits_nodes(queue.len()) {
            self.clone().hand_over(queue);
            return false;
        }
        while let Some(mut ready) = queue.pop() {
            if self.is_stopped(scope) {
                break;
            }
            if P::IS_SHARED_CHEAPLY && queue.len() >= SHARED_NODES {
                alone += 1;
                if alone >= SHARE_EVERY && !has_budget {
                    alone = 0;
                    self.share(&mut queue);
                }
            }
            let node = &self.plan.nodes[P::node(&ready) as usize];
            if P::is_dead(&ready) && !node.runs_dead {
                self.finish_dead(node, ready, &mut queue);
                continue;
            }
            if node.does_io && (scope.thread() != ThreadKind::Blocking || !queue.is_empty()) {
                self.outstanding.fetch_add(1, Ordering::Relaxed);
                self.clone().run_io(ready);
                continue;
            }
            if has_budget {
                let inputs = self.values().inputs(&self.plan, &mut ready);
                let work = node.work.map_or(0, |work| work(inputs));
                let bytes = bytes_of(inputs).saturating_add(work as usize);
                if !scope.admit(node.cost.nanos(bytes)) {
                    queue.push(ready);
                    self.clone().hand_over(queue);
                    return false;
                }
            } else if node.cost.is_worth_a_thread() && !queue.is_empty() {
                self.outstanding.fetch_add(1, Ordering::Relaxed);
                self.clone().hand_over(vec![ready]);
                continue;
            }
            match self.run_node(node, ready, &mut outputs, scope) {
                Ran::Done(ready) => {
                    let given = if P::is_dead(&ready) { None } else { Some(&mut outputs[..]) };
                    self.values().complete(&self.plan, ready, given, &mut queue);
                }
                Ran::Failed(e) => self.fail(node, e, scope),
                Ran::Started => {}
            }
            outputs.clear();
        }
        drop(queue);
        true
    }

    fn is_stopped(self: &Arc<Self>, scope: &InlineScope) -> bool {
        if self.step.cancel.is_cancelled() && !self.failed.load(Ordering::Relaxed) {
            let error = self.step.cancel.error();
            let error = error.unwrap_or_else(|| err!(Cancelled, "the step was cancelled"));
            self.record(error, scope);
        }
        self.failed.load(Ordering::Acquire)
    }

    /// Completes a node with dead inputs: its outputs are dead. A dead result is an error of the
    /// fetch.
    fn finish_dead(&self, node: &PlanNode, mut ready: P::Ready, queue: &mut Vec<P::Ready>) {
        let inputs = self.values().inputs(&self.plan, &mut ready);
        inputs.iter_mut().for_each(|v| *v = Value::Empty);
        if let NodeKind::Ret(i) = node.kind {
            self.end.lock().rets[i as usize] = Value::Dead;
        }
        self.values().complete(&self.plan, ready, None, queue);
    }

    /// Gives half of a long queue to an idle thread, if there is one. It gives away the nodes that
    /// this thread would run last.
    fn share(self: &Arc<Self>, queue: &mut Vec<P::Ready>) {
        // A caller that blocks runs nodes too, so one compute thread stays idle for its core.
        if self.step.threads.idle() > usize::from(self.has_guest) {
            let half = queue.drain(..queue.len() / 2).collect();
            self.outstanding.fetch_add(1, Ordering::Relaxed);
            self.clone().hand_over(half);
        }
    }

    /// Moves the rest of this loop, with its count, to the compute threads. They share themselves
    /// between sessions.
    fn hand_over(self: Arc<Self>, queue: Vec<P::Ready>) {
        let (threads, session) = (self.step.threads.clone(), self.step.memory.clone());
        let work = Box::new(move || self.work(queue, &InlineScope::new(ThreadKind::Compute)));
        session.run(|| threads.spawn(work));
    }

    /// Runs a node that may block, on a thread that may. Takes over a count of `outstanding`. The
    /// nodes that become ready go back to the compute threads.
    fn run_io(self: Arc<Self>, ready: P::Ready) {
        let threads = self.step.threads.clone();
        threads.spawn_blocking(Box::new(move || {
            let scope = InlineScope::new(ThreadKind::Blocking);
            let _denormals = FlushDenormals::begin();
            let (mut queue, mut outputs) = (Vec::new(), Outputs::new());
            if !self.is_stopped(&scope) {
                let node = &self.plan.nodes[P::node(&ready) as usize];
                let ran = self.step.memory.run(|| self.run_node(node, ready, &mut outputs, &scope));
                match ran {
                    Ran::Done(ready) => {
                        let given = if P::is_dead(&ready) { None } else { Some(&mut outputs[..]) };
                        self.values().complete(&self.plan, ready, given, &mut queue);
                    }
                    Ran::Failed(e) => self.fail(node, e, &scope),
                    Ran::Started => {}
                }
            }
            drop(outputs);
            match queue.is_empty() {
                true => self.count_down(&scope),
                false => self.hand_over(queue),
            }
        }));
    }

    /// Runs one node and drops its remaining inputs. An input that stayed alive would prevent the
    /// reuse of its storage, and the update of a variable in place.
    fn run_node(
        self: &Arc<Self>,
        node: &PlanNode,
        mut ready: P::Ready,
        outputs: &mut Outputs,
        scope: &InlineScope,
    ) -> Ran<P::Ready> {
        if let Err(e) = MemoryOwner::check_current() {
            return Ran::Failed(e);
        }
        let frame_iter = P::frame_iter(&ready);
        let is_dead = P::is_dead(&ready);
        let inputs = self.values().inputs(&self.plan, &mut ready);
        let passed_on = match inputs.first() {
            Some(Value::Ref(variable)) if node.passes_ref => Some(variable.clone()),
            _ => None,
        };
        if node.derefs
            && let Err(e) = snapshot_refs(node, inputs)
        {
            return Ran::Failed(e);
        }
        let begun = self.step.stats.is_some().then(SystemTime::now);
        match &node.kernel {
            None => {
                if let (NodeKind::Ret(i), Some(value)) = (node.kind, inputs.first_mut()) {
                    // The value is read when the step is over, but the variable must have one now.
                    if let Value::Ref(variable) = value
                        && !variable.is_initialized()
                        && let Err(e) = variable.read()
                    {
                        return Ran::Failed(e);
                    }
                    self.end.lock().rets[i as usize] = std::mem::take(value);
                }
            }
            Some(KernelBox::Sync(kernel)) => {
                if is_dead {
                    // A Send forwards a dead value as dead.
                    inputs.iter_mut().for_each(|v| *v = Value::Dead);
                }
                let mark = self.begin_on_gpu(node);
                let mut ctx = Ctx::new(inputs, outputs, &self.step, &node.info, frame_iter, scope);
                if let Err(e) = guarded(|| node.cost.measure(|| kernel.compute(&mut ctx))) {
                    return Ran::Failed(e);
                }
                self.end_on_gpu(node, mark);
                inputs.iter_mut().for_each(|v| *v = Value::Empty);
                if let Some(begun) = begun
                    && let Err(e) = self.trace(node, begun, outputs)
                {
                    return Ran::Failed(e);
                }
                if let (Some(variable), Some(output)) = (passed_on, outputs.first_mut()) {
                    *output = Value::Ref(variable);
                }
            }
            Some(KernelBox::Async(kernel)) => {
                let ctx = AsyncCtx {
                    inputs: inputs.iter_mut().map(std::mem::take).collect(),
                    step: self.step.clone(),
                    node: node.info.clone(),
                    frame_iter,
                };
                let token = self.values().park(ready);
                if let Some(begun) = begun {
                    self.end.lock().begun.insert(token, begun);
                }
                let mark = self.begin_on_gpu(node);
                let finished = self.start_async(kernel, ctx, token, scope);
                self.end_on_gpu(node, mark);
                let Some(finished) = finished else {
                    return Ran::Started;
                };
                ready = match self.finish_async(token, finished, outputs) {
                    Ok(ready) => ready,
                    Err(e) => return Ran::Failed(e),
                };
            }
        }
        Ran::Done(ready)
    }

    /// The node of an async kernel that has finished, ready to be completed with `outputs`.
    fn finish_async(
        &self,
        token: u64,
        finished: Result<Outputs>,
        outputs: &mut Outputs,
    ) -> Result<P::Ready> {
        let ready = self.values().unpark(token);
        let ready = ready.ok_or_else(|| err!(Internal, "a node finished twice"))?;
        let node = &self.plan.nodes[P::node(&ready) as usize];
        *outputs = finished?;
        ensure!(
            outputs.len() == node.info.outputs,
            Internal,
            "{} put out {} values, expected {}",
            node.info.op,
            outputs.len(),
            node.info.outputs
        );
        if self.step.stats.is_some() {
            let begun = self.end.lock().begun.remove(&token);
            self.trace(node, begun.unwrap_or_else(SystemTime::now), outputs)?;
        }
        Ok(ready)
    }

    /// Starts an async kernel. Returns its result if it finishes before `start` returns, so that a
    /// function that does not wait costs no switch of threads.
    fn start_async(
        self: &Arc<Self>,
        kernel: &Arc<dyn ferroflow_core::AsyncKernel>,
        ctx: AsyncCtx,
        token: u64,
        scope: &InlineScope,
    ) -> Option<Result<Outputs>> {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        self.starting.lock().push((token, None));
        let done = Done::new(self.clone(), token);
        let panicked = guarded(|| {
            kernel.start(ctx, done, scope);
            Ok(())
        });
        let started = {
            let mut starting = self.starting.lock();
            let at = starting.iter().position(|(known, _)| *known == token);
            at.and_then(|at| starting.swap_remove(at).1)
        };
        // Without a result, the kernel has kept `done` and will finish the node later.
        let result = started?;
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        // When a panic drops `done`, its error says less than the panic's.
        Some(result.and_then(|outputs| panicked.clone().map(|()| outputs)).or_else(|e| {
            panicked?;
            Err(e)
        }))
    }

    /// In traced steps, makes the GPU record the time at which it begins the node's work.
    fn begin_on_gpu(&self, node: &PlanNode) -> Option<usize> {
        let (stats, gpu) = (self.step.stats.as_ref()?, node.info.device.gpu.as_ref()?);
        stats.gpus.mark(gpu)
    }

    /// Makes the GPU record the time at which it completes the node's work, which is enqueued by
    /// now.
    fn end_on_gpu(&self, node: &PlanNode, mark: Option<usize>) {
        if let (Some(stats), Some(gpu), Some(mark)) =
            (&self.step.stats, &node.info.device.gpu, mark)
        {
            stats.gpus.note(&node.info, gpu, mark);
        }
    }

    fn trace(&self, node: &PlanNode, begun: SystemTime, outputs: &Outputs) -> Result<()> {
        let Some(stats) = &self.step.stats else { return Ok(()) };
        let described = outputs.iter().enumerate().filter_map(|(slot, value)| match value {
            Value::Tensor(t) => Some((slot, t.dtype(), t.shape().clone(), t.byte_len())),
            _ => None,
        });
        let noted = NodeStats {
            node: node.info.name.clone(),
            op: node.info.op.clone(),
            device: node.info.device.text.clone(),
            inputs: node.input_names.to_vec(),
            scheduled: begun,
            start: begun,
            end: SystemTime::now(),
            thread: thread_number(),
            outputs: described.collect(),
            memory: node.info.device.gpu.as_ref().map(|gpu| gpu.memory()),
        };
        self.step.memory.run(|| stats.note(noted))
    }

    fn fail(self: &Arc<Self>, node: &PlanNode, error: Error, scope: &InlineScope) {
        let mut error = error.at_node(&node.info.name);
        // The error of a cancelled node is not the reason for the cancellation.
        if self.step.cancel.is_cancelled()
            && matches!(error.code(), Code::Cancelled | Code::Aborted)
        {
            error = error.derived();
        }
        self.record(error, scope);
    }

    /// Keeps the first error that is not a consequence of another, and stops the run. In a step
    /// that was cancelled from outside, it keeps the reason of the cancellation, whatever errors
    /// the nodes return.
    fn record(self: &Arc<Self>, error: Error, scope: &InlineScope) {
        let error = match self.step.cancel.error() {
            Some(reason) if !reason.is_derived() => reason,
            _ => error,
        };
        let error = {
            let mut end = self.end.lock();
            match &end.error {
                Some(known) if !known.is_derived() || error.is_derived() => known.clone(),
                _ => end.error.insert(error).clone(),
            }
        };
        self.stopped.lock().get_or_insert_default();
        self.failed.store(true, Ordering::Release);
        // Aborts the rendezvous first: receivers that are cancelled fail in turn, and take the
        // reason from there.
        self.step.rendezvous.abort(error.clone());
        self.step.cancel.cancel(error.derived());
        // Async kernels that were stopped complete in this scope.
        let stopped = self.stopped.lock().take();
        for (token, result) in stopped.unwrap_or_default() {
            let run = self.clone();
            scope.defer(&self.step.threads, move |scope| run.resume(token, result, scope));
        }
    }

    /// Gives up one count; the last one ends the run.
    fn count_down(self: Arc<Self>, scope: &InlineScope) {
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let (done, error, rets) = {
            let mut end = self.end.lock();
            (end.done.take(), end.error.take(), std::mem::take(&mut end.rets))
        };
        let result: Result<Vec<Tensor>> = match error {
            Some(e) => Err(e),
            None => rets.into_iter().enumerate().map(|(i, v)| self.returned(i, v)).collect(),
        };
        let plan = self.plan.clone();
        if let Ok(run) = Arc::try_unwrap(self)
            && let Some(values) = run.values
        {
            values.finish(&plan, result.is_ok());
        }
        if let Some(done) = done {
            results_on_host(result, scope, done);
        }
    }
}

/// Calls `done` with the results in host memory. A fetched reference to a GPU's variable has no
/// node that copies its value: it is read here, after the step.
fn results_on_host(result: Result<Vec<Tensor>>, scope: &InlineScope, done: RunDone) {
    let mut all = match result {
        Ok(all) => all,
        Err(e) => return done(Err(e), scope),
    };
    let Some(at) = all.iter().position(|t| t.gpu().is_some()) else {
        return done(Ok(all), scope);
    };
    let one = all[at].clone();
    one.to_host(Box::new(move |copied| {
        let result = copied.map(|copy| {
            all[at] = copy;
            all
        });
        results_on_host(result, &InlineScope::unknown(), done);
    }));
}

/// The outcome of running a node.
enum Ran<R> {
    Done(R),
    Failed(Error),
    /// Its async kernel will complete it.
    Started,
}

impl<P: Propagator> Completion for Run<P> {
    fn complete(self: Arc<Self>, token: u64, result: Result<Outputs>, scope: &InlineScope) {
        // A kernel that finishes while it is being started leaves its result to the starting loop.
        let mut starting = self.starting.lock();
        if let Some((_, slot)) = starting.iter_mut().find(|(known, _)| *known == token) {
            *slot = Some(result);
            return;
        }
        drop(starting);
        if self.failed.load(Ordering::Acquire)
            && let Some(stopped) = &mut *self.stopped.lock()
        {
            return stopped.push((token, result));
        }
        let threads = self.step.threads.clone();
        scope.defer(&threads, move |scope| self.resume(token, result, scope));
    }
}

impl<P: Propagator> Run<P> {
    /// Continues after an async kernel; takes over its count of `outstanding`.
    fn resume(self: Arc<Self>, token: u64, result: Result<Outputs>, scope: &InlineScope) {
        let (mut queue, mut outputs) = (Vec::new(), Outputs::new());
        let node = self.values().parked_node(token);
        match self.finish_async(token, result, &mut outputs) {
            Ok(ready) => {
                let given = if P::is_dead(&ready) { None } else { Some(&mut outputs[..]) };
                self.values().complete(&self.plan, ready, given, &mut queue);
            }
            Err(e) => match node {
                Some(node) => self.fail(&self.plan.nodes[node as usize], e, scope),
                None => self.record(e, scope),
            },
        }
        drop(outputs);
        self.work(queue, scope);
    }

    /// Result `i` of the run.
    fn returned(&self, i: usize, value: Value) -> Result<Tensor> {
        match value {
            Value::Dead | Value::Empty if self.step.depth > 0 => {
                Err(err!(InvalidArgument, "Retval[{i}] does not have value"))
            }
            Value::Dead | Value::Empty => {
                Err(dead_fetch(self.step.step_id, &self.plan.ret_names[i]))
            }
            other => other.into_tensor(),
        }
    }
}

/// The error of a fetch that is dead, in the words of TensorFlow's master.
pub(crate) fn dead_fetch(step_id: i64, name: &str) -> Error {
    err!(
        Internal,
        "Failed to fetch outputs for step {step_id}. (Original error message: The tensor returned \
         for {name} was not valid.)"
    )
}

fn bytes_of(inputs: &[Value]) -> usize {
    inputs
        .iter()
        .map(|v| match v {
            Value::Tensor(t) => t.elements() * t.dtype().size().unwrap_or(32),
            _ => 0,
        })
        .sum()
}

/// Replaces references by snapshots where the kernel takes no reference.
pub(crate) fn snapshot_refs(node: &PlanNode, inputs: &mut [Value]) -> Result<()> {
    for (value, is_ref) in inputs.iter_mut().zip(&node.ref_inputs) {
        if let (Value::Ref(variable), false) = (&*value, is_ref) {
            *value = Value::Tensor(variable.read()?);
        }
    }
    Ok(())
}

/// Runs a kernel. A panic of the kernel becomes an error of its step.
pub(crate) fn guarded(run: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(err!(Internal, "kernel panicked: {}", panic_text(&*panic))))
}

/// A small number that traces show for this thread.
fn thread_number() -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
    }
    NUMBER.with(|n| *n)
}
