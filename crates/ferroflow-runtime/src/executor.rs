//! The executor: one work loop, generic over how values travel ([`Propagator`]).
//!
//! A run is a number of work loops, each on one thread, each with a private stack of ready nodes,
//! and a number of async kernels under way. `outstanding` counts both; when it reaches zero the run
//! is over. On the first error the loops stop taking nodes and the step's token is cancelled, which
//! ends the async kernels.

use crate::flat::FlatState;
use crate::frames::Frames;
use crate::inline_queue::{self, on_network_thread};
use crate::plan::{NodeKind, Plan, PlanNode};
use crate::threads::is_compute_thread;
use ferroflow_core::{
    AsyncCtx, Code, Completion, Ctx, Done, Error, HashMap, KernelBox, NodeStats, Outputs, Result,
    StepCtx, Tensor, Value, ensure, err,
};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

/// Told the results of a run, exactly once.
pub type RunDone = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// How values travel from node to node.
pub(crate) trait Propagator: Sized + Send + Sync + 'static {
    /// A node that is ready to run; the only one of its kind.
    type Ready: Send + 'static;
    /// Whether threads that complete cheap nodes do not get into each other's way.
    const IS_SHARED_CHEAPLY: bool;

    /// Queues what can run from the beginning.
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
    /// The run is over.
    fn finish(self, plan: &Plan, succeeded: bool);
}

/// Starts a run on this thread; `done` is called when it is over, maybe before this returns. The
/// thread is given back as soon as there is more to do than a network thread should: expensive
/// nodes, large tensors or many nodes go to the step's compute threads.
///
/// Called from a node that runs on a compute thread, such as a function call, all of it may stay on
/// that thread.
pub fn run(plan: &Arc<Plan>, args: Vec<Tensor>, step: Arc<StepCtx>, done: RunDone) {
    if ON_COMPUTE_THREAD.get() {
        return begin(plan, args, step, Where::Compute, done);
    }
    on_network_thread(|| begin(plan, args, step, Where::caller(), done));
}

/// Runs on this thread, which may block, and waits for the end.
pub fn run_blocking(
    plan: &Arc<Plan>,
    args: Vec<Tensor>,
    step: Arc<StepCtx>,
) -> Result<Vec<Tensor>> {
    let wait = Arc::new((Mutex::new(None), Condvar::new()));
    let tell = wait.clone();
    let done = Box::new(move |result| {
        *tell.0.lock() = Some(result);
        tell.1.notify_all();
    });
    begin(plan, args, step, Where::Compute, done);
    let mut result = wait.0.lock();
    // Ends for sure: every async kernel finishes its `Done`, at the latest when it is dropped.
    wait.1.wait_while(&mut result, |r| r.is_none());
    result.take().unwrap_or_else(|| Err(err!(Internal, "a run ended without a result")))
}

/// Runs `work` with this thread counting as a compute thread: runs it starts may stay on it.
pub(crate) fn on_blocking_thread<R>(work: impl FnOnce() -> R) -> R {
    let before = ON_COMPUTE_THREAD.replace(true);
    let result = work();
    ON_COMPUTE_THREAD.set(before);
    result
}

/// Nodes a caller's thread runs before the rest is handed to the compute threads.
const CALLER_NODES: u32 = 2000;
/// Bytes that these nodes take in, together: to pass over so many takes no longer than to wake a thread.
const CALLER_BYTES: usize = 512 << 10;

/// A queue of this many cheap nodes is worth another thread: some 100 µs of work, where waking a
/// thread takes tens.
const SHARED_NODES: usize = 512;
/// Nodes run between two looks for a thread that has nothing to do.
const SHARE_EVERY: u32 = 64;

/// The kind of thread a work loop is on.
#[derive(Clone, Copy)]
enum Where {
    /// A thread that has other things to do, such as serving the network.
    Caller { nodes_left: u32, bytes_left: usize },
    /// A compute thread, or one that may block.
    Compute,
}

impl Where {
    /// A thread of somebody who has just called.
    fn caller() -> Where {
        Where::Caller { nodes_left: CALLER_NODES, bytes_left: CALLER_BYTES }
    }
}

fn begin(plan: &Arc<Plan>, args: Vec<Tensor>, step: Arc<StepCtx>, at: Where, done: RunDone) {
    if let Err(e) = plan.check_args(args.len()) {
        return done(Err(e));
    }
    if plan.frames.is_some() {
        Run::begin(plan, Frames::new(plan), args, step, at, done);
    } else {
        Run::begin(plan, FlatState::new(plan), args, step, at, done);
    }
}

struct Run<P: Propagator> {
    plan: Arc<Plan>,
    step: Arc<StepCtx>,
    /// Taken when the run is over.
    values: Option<P>,
    outstanding: AtomicUsize,
    failed: AtomicBool,
    /// It occupies the thread of whoever waits for it, besides the compute threads.
    has_guest: bool,
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
    /// A run that was dropped before its end, by a panic of ours: nobody waits for it in vain.
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(err!(Internal, "a run ended without a result")));
        }
    }
}

impl<P: Propagator> Run<P> {
    fn begin(
        plan: &Arc<Plan>,
        values: P,
        args: Vec<Tensor>,
        step: Arc<StepCtx>,
        at: Where,
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
            has_guest: matches!(at, Where::Compute) && !is_compute_thread(),
            end: Mutex::new(End {
                error: None,
                rets: vec![Value::Empty; plan.ret_names.len()],
                done: Some(done),
                begun: HashMap::default(),
            }),
        });
        run.work(queue, at);
    }

    fn values(&self) -> &P {
        self.values.as_ref().expect("taken only when nothing is outstanding")
    }

    /// Runs nodes until none is ready on this thread. Holds one count of `outstanding`.
    fn work(self: Arc<Self>, queue: Vec<P::Ready>, at: Where) {
        let before = ON_COMPUTE_THREAD.replace(matches!(at, Where::Compute));
        self.work_through(queue, at);
        ON_COMPUTE_THREAD.set(before);
    }

    fn work_through(self: Arc<Self>, mut queue: Vec<P::Ready>, mut at: Where) {
        let mut outputs = Outputs::new();
        let mut alone = SHARE_EVERY;
        if let Where::Caller { nodes_left, .. } = at
            && queue.len() > nodes_left as usize
        {
            return self.hand_over(queue);
        }
        while let Some(mut ready) = queue.pop() {
            if self.is_stopped() {
                break;
            }
            if P::IS_SHARED_CHEAPLY && queue.len() >= SHARED_NODES {
                alone += 1;
                if alone >= SHARE_EVERY && matches!(at, Where::Compute) {
                    alone = 0;
                    self.share(&mut queue);
                }
            }
            let node = &self.plan.nodes[P::node(&ready) as usize];
            if P::is_dead(&ready) && !node.runs_dead {
                self.finish_dead(node, ready, &mut queue);
                continue;
            }
            if let Where::Caller { nodes_left, bytes_left } = &mut at {
                let bytes = bytes_of(self.values().inputs(&self.plan, &mut ready));
                if *nodes_left == 0 || node.cost.is_worth_a_thread() || bytes > *bytes_left {
                    queue.push(ready);
                    return self.hand_over(queue);
                }
                *nodes_left -= 1;
                *bytes_left -= bytes;
            } else if node.cost.is_worth_a_thread() && !queue.is_empty() {
                self.outstanding.fetch_add(1, Ordering::Relaxed);
                self.clone().hand_over(vec![ready]);
                continue;
            }
            match self.run_node(node, ready, &mut outputs) {
                Ran::Done(ready) => {
                    let given = if P::is_dead(&ready) { None } else { Some(&mut outputs[..]) };
                    self.values().complete(&self.plan, ready, given, &mut queue);
                }
                Ran::Failed(e) => self.fail(node, e),
                Ran::Started => {}
            }
            outputs.clear();
        }
        drop(queue);
        self.count_down();
    }

    fn is_stopped(&self) -> bool {
        if self.step.cancel.is_cancelled() && !self.failed.load(Ordering::Relaxed) {
            let error = self.step.cancel.error();
            self.record(error.unwrap_or_else(|| err!(Cancelled, "the step was cancelled")));
        }
        self.failed.load(Ordering::Acquire)
    }

    /// A node with dead inputs: its outputs are dead. A dead result is an error of the fetch.
    fn finish_dead(&self, node: &PlanNode, mut ready: P::Ready, queue: &mut Vec<P::Ready>) {
        let inputs = self.values().inputs(&self.plan, &mut ready);
        inputs.iter_mut().for_each(|v| *v = Value::Empty);
        if let NodeKind::Ret(i) = node.kind {
            self.end.lock().rets[i as usize] = Value::Dead;
        }
        self.values().complete(&self.plan, ready, None, queue);
    }

    /// Gives half of a long queue to a thread that has nothing to do, if there is one: the half that
    /// this one would come to last.
    fn share(self: &Arc<Self>, queue: &mut Vec<P::Ready>) {
        // One of the compute threads stays idle for the guest, which is not one of them.
        if self.step.threads.idle() > usize::from(self.has_guest) {
            let half = queue.drain(..queue.len() / 2).collect();
            self.outstanding.fetch_add(1, Ordering::Relaxed);
            self.clone().hand_over(half);
        }
    }

    /// Moves the rest of this loop, with its count, to the compute threads.
    fn hand_over(self: Arc<Self>, queue: Vec<P::Ready>) {
        let threads = self.step.threads.clone();
        threads.spawn(Box::new(move || self.work(queue, Where::Compute)));
    }

    /// Runs one node, and drops what it left of its inputs: a value that lingers keeps its storage
    /// from being reused, or a variable from being updated in place.
    fn run_node(
        self: &Arc<Self>,
        node: &PlanNode,
        mut ready: P::Ready,
        outputs: &mut Outputs,
    ) -> Ran<P::Ready> {
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
                    // Its value is read when the step is over, but it must have one now.
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
                    // A Send of a dead value has nothing to look at but must still say so.
                    inputs.iter_mut().for_each(|v| *v = Value::Dead);
                }
                let mut ctx = Ctx::new(inputs, outputs, &self.step, &node.info, frame_iter);
                if let Err(e) = guarded(|| node.cost.measure(|| kernel.compute(&mut ctx))) {
                    return Ran::Failed(e);
                }
                inputs.iter_mut().for_each(|v| *v = Value::Empty);
                if let Some(begun) = begun {
                    self.trace(node, begun, outputs);
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
                let Some(finished) = self.start_async(kernel, ctx, token) else {
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
            self.trace(node, begun.unwrap_or_else(SystemTime::now), outputs);
        }
        Ok(ready)
    }

    /// Starts an async kernel. If it finishes before `start` returns, so does this, with the
    /// result: a function that has nothing to wait for costs no hop to another thread.
    fn start_async(
        self: &Arc<Self>,
        kernel: &Arc<dyn ferroflow_core::AsyncKernel>,
        ctx: AsyncCtx,
        token: u64,
    ) -> Option<Result<Outputs>> {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        let me: Arc<dyn Completion> = self.clone();
        let address = Arc::as_ptr(self) as usize;
        STARTING.with_borrow_mut(|stack| {
            stack.push(Starting { address, token, result: None });
        });
        let done = Done::new(me, token);
        let panicked = guarded(|| {
            kernel.start(ctx, done);
            Ok(())
        });
        let started = STARTING.with_borrow_mut(|stack| stack.pop()).and_then(|s| s.result);
        // Without a result here, `done` lives on elsewhere and will finish the node.
        let result = started?;
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        // A panic dropped `done`, whose complaint says less than the panic.
        Some(result.and_then(|outputs| panicked.clone().map(|()| outputs)).or_else(|e| {
            panicked?;
            Err(e)
        }))
    }

    fn trace(&self, node: &PlanNode, begun: SystemTime, outputs: &Outputs) {
        let Some(stats) = &self.step.stats else { return };
        let described = outputs.iter().enumerate().filter_map(|(slot, value)| match value {
            Value::Tensor(t) => Some((slot, t.dtype(), t.shape().clone(), t.byte_len())),
            _ => None,
        });
        stats.nodes.lock().push(NodeStats {
            node: node.info.name.clone(),
            op: node.info.op.clone(),
            device: node.info.device.text.clone(),
            inputs: node.input_names.to_vec(),
            scheduled: begun,
            start: begun,
            end: SystemTime::now(),
            thread: thread_number(),
            outputs: described.collect(),
        });
    }

    fn fail(&self, node: &PlanNode, error: Error) {
        let mut error = error.at_node(&node.info.name);
        // What a cancelled node says of itself is not why it was cancelled.
        if self.step.cancel.is_cancelled()
            && matches!(error.code(), Code::Cancelled | Code::Aborted)
        {
            error = error.derived();
        }
        self.record(error);
    }

    /// Keeps the first error that is not merely a consequence, and stops everything. When the step
    /// was cancelled from outside, that is the reason, whatever its nodes say on their way out.
    fn record(&self, error: Error) {
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
        self.failed.store(true, Ordering::Release);
        // The rendezvous first: what is cancelled fails in turn, and must find the reason there.
        self.step.rendezvous.abort(error.clone());
        self.step.cancel.cancel(error.derived());
    }

    /// Gives up one count; the last one ends the run.
    fn count_down(self: Arc<Self>) {
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
            done(result);
        }
    }
}

/// How it went to run a node.
enum Ran<R> {
    Done(R),
    Failed(Error),
    /// Its async kernel will complete it.
    Started,
}

impl<P: Propagator> Completion for Run<P> {
    fn complete(self: Arc<Self>, token: u64, result: Result<Outputs>) {
        // Finished while still being started on this very thread: hand the result to the loop.
        let address = Arc::as_ptr(&self) as usize;
        let mut result = Some(result);
        STARTING.with_borrow_mut(|stack| {
            if let Some(top) = stack.last_mut()
                && (top.address, top.token) == (address, token)
            {
                top.result = result.take();
            }
        });
        let Some(result) = result else { return };
        let threads = self.step.threads.clone();
        let rest = move |in_turn: bool| {
            let at = if in_turn { Where::caller() } else { Where::Compute };
            self.resume(token, result, at);
        };
        if ON_COMPUTE_THREAD.get() {
            return threads.spawn(Box::new(move || rest(false)));
        }
        inline_queue::go_on(&threads, Box::new(rest));
    }
}

impl<P: Propagator> Run<P> {
    /// Goes on after an async kernel; takes over its count of `outstanding`.
    fn resume(self: Arc<Self>, token: u64, result: Result<Outputs>, at: Where) {
        let (mut queue, mut outputs) = (Vec::new(), Outputs::new());
        let node = self.values().parked_node(token);
        match self.finish_async(token, result, &mut outputs) {
            Ok(ready) => {
                let given = if P::is_dead(&ready) { None } else { Some(&mut outputs[..]) };
                self.values().complete(&self.plan, ready, given, &mut queue);
            }
            Err(e) => match node {
                Some(node) => self.fail(&self.plan.nodes[node as usize], e),
                None => self.record(e),
            },
        }
        drop(outputs);
        self.work(queue, at);
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

/// The error of a fetch that turned out dead, in the master's words.
pub(crate) fn dead_fetch(step_id: i64, name: &str) -> Error {
    err!(
        Internal,
        "Failed to fetch outputs for step {step_id}. (Original error message: The tensor returned \
         for {name} was not valid.)"
    )
}

/// An async kernel that is being started on this thread.
struct Starting {
    address: usize,
    token: u64,
    result: Option<Result<Outputs>>,
}

thread_local! {
    /// Whether the innermost work loop on this thread may take its time.
    static ON_COMPUTE_THREAD: Cell<bool> = const { Cell::new(false) };
    static STARTING: RefCell<Vec<Starting>> = const { RefCell::new(Vec::new()) };
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
fn snapshot_refs(node: &PlanNode, inputs: &mut [Value]) -> Result<()> {
    for (value, is_ref) in inputs.iter_mut().zip(&node.ref_inputs) {
        if let (Value::Ref(variable), false) = (&*value, is_ref) {
            *value = Value::Tensor(variable.read()?);
        }
    }
    Ok(())
}

/// Runs a kernel; a panic becomes an error of its step.
pub(crate) fn guarded(run: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(err!(Internal, "kernel panicked: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}

/// A small number for this thread, as traces show it.
fn thread_number() -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
    }
    NUMBER.with(|n| *n)
}
