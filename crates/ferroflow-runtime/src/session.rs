//! A session on one task: a graph that grows, and steps that run parts of it.

mod callable;
mod compiled;
mod distributed;
mod partial;
mod placement;
mod running;

use crate::compile::{CompiledPart, PartContext, compile_part};
use crate::executor;
use crate::functions::FunctionRuntime;
use crate::plan::KernelCache;
use crate::rendezvous::LocalRendezvous;
use crate::task::Task;
pub use callable::CallableSpec;
use compiled::{Compiled, How, Signature};
pub use distributed::{Distribute, DistributedPartialRun, DistributedStep, SessionScope};
use ferroflow_core::inline::may_compile_inline;
use ferroflow_core::{
    CancelToken, Collectives, DeviceInfo, Error, HashMap, InlineScope, MemoryOwner, Reservation,
    Resources, Result, StepCtx, StepStats, Tensor, ThreadKind, bail, count_heap, ensure, err,
    limits,
};
use ferroflow_graph::passes::{self, Devices, MeasuredCosts, Pruned, Rewrites};
use ferroflow_graph::{GraphDef, GraphIr, Node, RunMetadata, Versions};
use parking_lot::{Condvar, Mutex, RwLock};
pub use placement::Placement;
use running::Running;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How a session behaves.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Keeps variables and queues private, instead of sharing them with the task's other sessions.
    pub isolate_state: bool,
    /// Replaces a device that does not exist by one that does.
    pub allow_soft_placement: bool,
    /// Logs where each node is placed.
    pub log_device_placement: bool,
    /// Runs the graph as it was built, without any folding or merging.
    pub disable_optimizer: bool,
    /// The passes that make graphs cheaper, unless the optimizer is disabled.
    pub rewrites: Rewrites,
    /// How nodes get a device if they ask for none.
    pub placement: Placement,
    /// Which runs of each step report the cost of its nodes.
    pub costs: CostRuns,
}

/// The runs of a step that report costs: one in `every`, counted from run `after` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostRuns {
    /// 0 means none.
    pub every: i64,
    pub after: i64,
}

impl CostRuns {
    /// Whether the runs include run `number` of a step, counted from 1.
    pub fn include(self, number: i64) -> bool {
        self.every > 0 && number.wrapping_sub(self.after) % self.every == 0
    }
}

/// One step to run.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// Tensor names and the values that replace them.
    pub feeds: Vec<(String, Tensor)>,
    /// Tensor names whose values are wanted, in this order.
    pub fetches: Vec<String>,
    /// Nodes to run for their effect.
    pub targets: Vec<String>,
    pub options: RunOptions,
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Records when each node ran.
    pub trace: bool,
    /// Returns the graph as it ran.
    pub output_partition_graphs: bool,
    /// Returns the cost of nodes.
    pub costs: bool,
    /// The time after which the step fails with `DeadlineExceeded`; for
    /// [`TaskSession::run_blocking`].
    pub timeout: Option<Duration>,
    /// The step id that the master chose, if other masters run parts of the same step.
    pub step_id: Option<i64>,
}

/// The output of a step.
#[derive(Default)]
pub struct RunOutput {
    /// The fetched tensors, in the order asked for.
    pub tensors: Vec<Tensor>,
    pub stats: Option<Arc<StepStats>>,
    pub partition_graphs: Vec<GraphDef>,
    /// The records of other tasks.
    pub metadata: RunMetadata,
    /// How long nodes of other tasks took, if the run measured it.
    pub measured: MeasuredCosts,
    /// The graph that ran and the times of its nodes, if the request asked for costs.
    pub costs: Option<(GraphDef, Arc<StepStats>)>,
}

/// Called once, with the outcome of a step.
pub type SessionDone = Box<dyn FnOnce(Result<RunOutput>) + Send>;

/// The compiled form of a step, once it is there.
type Slot = Arc<OnceLock<Result<Arc<Compiled>>>>;

/// A step that a client asked for.
struct Call {
    signature: Signature,
    /// What was found for the signature.
    slot: Option<Slot>,
    values: Vec<Tensor>,
    options: RunOptions,
}

/// A session. Steps may run at the same time, from any thread.
pub struct TaskSession {
    task: Arc<Task>,
    options: SessionOptions,
    graph: RwLock<GraphIr>,
    /// Incremented by each extension.
    version: AtomicI64,
    has_nodes_to_fold: AtomicBool,
    own: Vec<Arc<DeviceInfo>>,
    /// Where nodes may be placed.
    devices: Devices,
    /// Runs the steps that need other tasks.
    distribute: Option<Arc<dyn Distribute>>,
    resources: Arc<Resources>,
    memory: Arc<MemoryOwner>,
    collectives: Arc<dyn Collectives>,
    functions: Arc<FunctionRuntime>,
    kernels: Arc<KernelCache>,
    compiled: Mutex<HashMap<Signature, Slot>>,
    running: Arc<Running>,
    callables: callable::Callables,
    partial_runs: partial::PartialRuns,
    placed: Arc<placement::Placed>,
    /// Counts the memory of the graph: one reservation for each extension.
    graph_memory: Mutex<Vec<Reservation>>,
}

impl TaskSession {
    /// Opens a session on `task` alone with an initial graph, which may be empty.
    pub fn new(task: Arc<Task>, graph: &GraphDef, options: SessionOptions) -> Result<TaskSession> {
        if options.placement.measures_devices() && task.devices.len() > 1 {
            task.measure_devices();
        }
        let scope = SessionScope::of(&task, options.isolate_state);
        TaskSession::within(task, scope, graph, options)
    }

    /// Opens a session on `task` that may run steps on other tasks too.
    pub fn within(
        task: Arc<Task>,
        scope: SessionScope,
        graph: &GraphDef,
        options: SessionOptions,
    ) -> Result<TaskSession> {
        check_versions(&graph.versions)?;
        let SessionScope { own, others, distribute, resources, memory, kernels, collectives } =
            scope;
        ensure!(!own.is_empty(), Internal, "a session needs a device");
        let functions =
            FunctionRuntime::new(task.catalog.clone(), own[0].clone(), task.threads.clone());
        let session = TaskSession {
            graph: RwLock::new(GraphIr::with_versions(graph.versions.clone())),
            version: AtomicI64::new(0),
            has_nodes_to_fold: AtomicBool::new(false),
            devices: Devices::new(&own, &others),
            own,
            distribute,
            resources,
            memory,
            collectives,
            functions,
            kernels,
            compiled: Mutex::default(),
            running: Arc::default(),
            callables: callable::Callables::default(),
            partial_runs: partial::PartialRuns::default(),
            placed: Arc::default(),
            graph_memory: Mutex::default(),
            task,
            options,
        };
        session.add_to_graph(&mut session.graph.write(), graph)?;
        Ok(session)
    }

    /// Adds nodes and functions, and returns the graph's new version. `expected` is the version
    /// that the caller means to extend, if it keeps count.
    pub fn extend(&self, def: &GraphDef, expected: Option<i64>) -> Result<i64> {
        self.ensure_open()?;
        let mut graph = self.graph.write();
        let current = self.version.load(Ordering::Acquire);
        if let Some(expected) = expected {
            ensure!(
                current == expected,
                Aborted,
                "Current version is {current} but caller expected {expected}."
            );
        }
        self.add_to_graph(&mut graph, def)?;
        // The graph is locked: of two callers that extend the same version, one is refused.
        self.version.store(current + 1, Ordering::Release);
        Ok(current + 1)
    }

    /// Adds all of `def`, or nothing. Its memory counts for the session.
    fn add_to_graph(&self, graph: &mut GraphIr, def: &GraphDef) -> Result<()> {
        let before = graph.len();
        match self.memory.run(|| count_heap(|| self.add_nodes(graph, def))) {
            Ok(((), memory)) => {
                self.graph_memory.lock().push(memory);
                Ok(())
            }
            Err(e) => {
                graph.truncate(before);
                Err(e)
            }
        }
    }

    fn add_nodes(&self, graph: &mut GraphIr, def: &GraphDef) -> Result<()> {
        let before = graph.len();
        for node in &def.nodes {
            ensure!(
                graph.find(&node.name).is_none(),
                InvalidArgument,
                "GraphDef argument to Extend includes node '{}', which was created by a previous \
                 call to Create or Extend in this session.",
                node.name
            );
            check_name(&node.name)?;
        }
        graph.extend(def, &self.task.catalog)?;
        self.prepare(graph, before)?;
        if self.options.log_device_placement && self.places_all() {
            placement::log_placement(graph.iter().skip(before).map(|(_, node)| node));
        }
        self.functions.set_library(graph.library.clone());
        if passes::has_nodes_to_fold(graph, before) {
            self.has_nodes_to_fold.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Whether nodes are placed when they are added, not when a step needs them.
    fn places_all(&self) -> bool {
        matches!(self.options.placement, Placement::First)
    }

    /// Assigns a device to every new node, if nodes are placed when they are added.
    fn prepare(&self, graph: &mut GraphIr, first: usize) -> Result<()> {
        // A function runs on one device, but its nodes may ask for others.
        if self.distribute.is_some() {
            passes::lower(graph, first, &self.task.catalog)?;
        }
        if self.places_all() {
            passes::place(graph, first, &self.devices, self.options.allow_soft_placement)?;
        }
        Ok(())
    }

    /// The devices of the session's own task.
    pub fn devices(&self) -> &[Arc<DeviceInfo>] {
        &self.own
    }

    /// The variables and queues of the session.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Starts a step and returns. `done` receives the outcome. `cancel` ends the step early; it
    /// belongs to this step alone, which cancels it on failure. The calling thread runs no more of
    /// the step than a network thread may.
    pub fn run(&self, request: RunRequest, cancel: CancelToken, done: SessionDone) {
        InlineScope::network(|scope| self.run_in(scope, request, cancel, done));
    }

    /// [`TaskSession::run`] in a scope of the calling thread.
    pub fn run_in(
        &self,
        scope: &InlineScope,
        request: RunRequest,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        self.start(scope, self.recognized(request), cancel, done);
    }

    /// [`TaskSession::run`] if it returns soon: the step was compiled before, or that is quick. If
    /// not, it is returned, to be called by a thread that may take longer.
    pub fn run_if_quick(
        self: &Arc<Self>,
        request: RunRequest,
        cancel: CancelToken,
        done: SessionDone,
    ) -> Option<impl FnOnce() + Send + 'static> {
        let call = self.recognized(request);
        let is_known = call.slot.as_ref().is_some_and(|slot| slot.get().is_some());
        let is_quick = is_known || self.is_quick_to_compile();
        let is_quick = is_quick && !call.options.output_partition_graphs;
        let session = self.clone();
        let run = move || InlineScope::network(|scope| session.start(scope, call, cancel, done));
        if is_quick {
            run();
            return None;
        }
        Some(run)
    }

    /// Looks up the compiled form of a step.
    fn recognized(&self, request: RunRequest) -> Call {
        let RunRequest { feeds, fetches, targets, options } = request;
        let (names, values): (Vec<String>, Vec<Tensor>) = feeds.into_iter().unzip();
        let signature = Signature { feeds: names, fetches, targets };
        let slot = self.compiled.lock().get(&signature).cloned();
        Call { signature, slot, values, options }
    }

    fn start(&self, scope: &InlineScope, call: Call, cancel: CancelToken, done: SessionDone) {
        let Call { signature, slot, values, options } = call;
        match self.ensure_open().and_then(|_| self.compiled(signature, slot)) {
            Ok(compiled) => self.run_compiled(scope, &compiled, values, &options, cancel, done),
            Err(e) => done(Err(e)),
        }
    }

    /// Whether a step, a partial run or a callable compiles quickly. False also while the graph is
    /// being extended, and if it has nodes to fold: a kernel can take any time.
    pub fn is_quick_to_compile(&self) -> bool {
        !self.has_nodes_to_fold.load(Ordering::Acquire)
            && self.graph.try_read().is_some_and(|graph| may_compile_inline(graph.len()))
    }

    /// Runs a step and waits for it.
    pub fn run_blocking(&self, request: RunRequest) -> Result<RunOutput> {
        let timeout = request.options.timeout;
        let cancel = CancelToken::new();
        let wait = Arc::new((Mutex::new(None), Condvar::new()));
        let tell = wait.clone();
        let done = Box::new(move |result| {
            *tell.0.lock() = Some(result);
            tell.1.notify_all();
        });
        self.run_in(&InlineScope::new(ThreadKind::Blocking), request, cancel.clone(), done);
        let mut result = wait.0.lock();
        if let Some(timeout) = timeout {
            let waited = wait.1.wait_while_for(&mut result, |r| r.is_none(), timeout);
            if waited.timed_out() {
                // Releases the lock while cancelling: steps that end store their results here.
                parking_lot::MutexGuard::unlocked(&mut result, || {
                    cancel.cancel(err!(DeadlineExceeded, "the step took longer than {timeout:?}"));
                });
            }
        }
        wait.1.wait_while(&mut result, |r| r.is_none());
        result.take().unwrap_or_else(|| Err(err!(Internal, "a step ended without a result")))
    }

    fn run_compiled(
        &self,
        scope: &InlineScope,
        compiled: &Arc<Compiled>,
        values: Vec<Tensor>,
        options: &RunOptions,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        if let Err(e) = compiled.check_feeds(&values) {
            return done(Err(e));
        }
        let guard = match self.running.begin(&cancel) {
            Ok(guard) => guard,
            Err(e) => return done(Err(e)),
        };
        let mut done = done;
        let mut measuring = None;
        let costs = self.options.costs;
        if costs.every > 0 && costs.include(compiled.trials.count()) {
            measuring = Some(RunOptions { costs: true, ..options.clone() });
        } else if !options.output_partition_graphs && compiled.trials.is_measured() {
            let (placed, of, asked) = (self.placed.clone(), compiled.clone(), options.clone());
            done = Box::new(move |result: Result<RunOutput>| {
                done(result.map(|mut output| {
                    placed.learn(&mut output, &asked, &of.trials);
                    output
                }));
            });
            measuring = Some(RunOptions { trace: true, ..options.clone() });
        }
        let options = measuring.as_ref().unwrap_or(options);
        let (plan, graph) = match &compiled.how {
            How::Here { plan, graph } => (plan, graph),
            How::Distributed(step) => {
                let told = move |result| {
                    done(guard.reason(result));
                    drop(guard);
                };
                return step.clone().run(values, options, cancel, scope, Box::new(told));
            }
        };
        let stats = (options.trace || options.costs).then(Arc::<StepStats>::default);
        let step = self.step(options.step_id, cancel, stats.clone());
        let costs = stats.clone().filter(|_| options.costs).map(|stats| (graph.to_def(), stats));
        let stats = stats.filter(|_| options.trace);
        let partition_graphs =
            if options.output_partition_graphs { vec![graph.to_def()] } else { vec![] };
        executor::run(
            plan,
            values,
            step,
            scope,
            Box::new(move |result, _: &InlineScope| {
                let output = |tensors| RunOutput {
                    tensors,
                    stats,
                    partition_graphs,
                    costs,
                    ..RunOutput::default()
                };
                done(guard.reason(result).map(output));
                // Dropped last: when a session has ended, all its steps have reported their
                // outcome.
                drop(guard);
            }),
        );
    }

    fn step(
        &self,
        step_id: Option<i64>,
        cancel: CancelToken,
        stats: Option<Arc<StepStats>>,
    ) -> Arc<StepCtx> {
        Arc::new(StepCtx {
            // Several masters may share workers, so the id is random. The range is TensorFlow's.
            step_id: step_id.unwrap_or_else(|| fastrand::i64(0..1 << 57)),
            rendezvous: Arc::new(LocalRendezvous::new()),
            resources: self.resources.clone(),
            step_resources: Arc::new(Resources::new()),
            cancel,
            memory: self.memory.clone(),
            threads: self.task.threads.clone(),
            collectives: self.collectives.clone(),
            stats,
            depth: 0,
        })
    }

    /// The compiled form of a signature, compiled at its first use. After a failure, the next run
    /// compiles again: the graph may have grown.
    /// The compiled form of a step; `slot` was found for it.
    fn compiled(&self, signature: Signature, slot: Option<Slot>) -> Result<Arc<Compiled>> {
        if let Some(ready) = slot.as_ref().and_then(|slot| slot.get()) {
            match ready {
                Ok(compiled)
                    if compiled.trials.take_outdated()
                        && self.moves(&signature, &compiled.trials)? =>
                {
                    self.forget(&signature, compiled);
                }
                _ => return ready.clone(),
            }
        }
        let slot = {
            let mut compiled = self.compiled.lock();
            if !compiled.contains_key(&signature) {
                limits().graphs.admit(compiled.len() + 1, "the session")?;
            }
            compiled.entry(signature.clone()).or_default().clone()
        };
        let result = slot.get_or_init(|| self.compile(&signature).map(Arc::new)).clone();
        if result.is_err() {
            let mut compiled = self.compiled.lock();
            if compiled.get(&signature).is_some_and(|other| Arc::ptr_eq(other, &slot)) {
                compiled.remove(&signature);
            }
        }
        result
    }

    /// Drops the compiled form of a signature, unless it is a newer one.
    fn forget(&self, signature: &Signature, compiled: &Arc<Compiled>) {
        let mut all = self.compiled.lock();
        let known = all.get(signature).and_then(|slot| slot.get());
        if matches!(known, Some(Ok(known)) if Arc::ptr_eq(known, compiled)) {
            all.remove(signature);
        }
    }

    fn compile(&self, signature: &Signature) -> Result<Compiled> {
        let graph = self.graph.read();
        let work = || count_heap(|| Compiled::new(&graph, signature, self));
        let (mut compiled, memory) = self.memory.run(work)?;
        compiled.memory = memory;
        Ok(compiled)
    }

    /// Compiles a step that runs on this task alone.
    fn compile_part(&self, part: Pruned) -> Result<CompiledPart> {
        let context = PartContext {
            functions: &self.functions,
            device_of: &|node| self.device_of(node),
            kernels: &self.kernels,
            rewrites: match self.options.disable_optimizer {
                true => Rewrites::NONE,
                false => self.options.rewrites,
            },
        };
        compile_part(part, &context)
    }

    /// Whether some nodes of a placed graph run on other tasks.
    fn is_distributed(&self, graph: &GraphIr) -> bool {
        let is_own = |device: &str| device.is_empty() || self.own.iter().any(|d| d.text == device);
        self.distribute.is_some() && !graph.iter().all(|(_, node)| is_own(&node.device))
    }

    /// The device that a node is placed on.
    fn device_of(&self, node: &Node) -> Result<Arc<DeviceInfo>> {
        let found = self.own.iter().find(|d| d.text == node.device || node.device.is_empty());
        found.cloned().ok_or_else(|| err!(Internal, "no device {}", node.device))
    }

    /// Ends the session: cancels running steps and refuses later calls. Calls `done` when the last
    /// step has ended.
    pub fn close(&self, done: Box<dyn FnOnce() + Send>) {
        self.end(TaskSession::closed_by_client(), done);
    }

    /// Like [`TaskSession::close`]; the running steps fail with `why`.
    pub fn end(&self, why: Error, done: Box<dyn FnOnce() + Send>) {
        let (resources, memory) = (self.resources.clone(), self.memory.clone());
        let ended = Box::new(move || {
            resources.clear_container(memory.container());
            done();
        });
        self.running.close(why, ended);
        self.partial_runs.clear();
        self.callables.clear();
        self.forget_compiled();
    }

    /// The error of running steps when the client closes their session.
    pub fn closed_by_client() -> Error {
        err!(Cancelled, "Step was cancelled by an explicit call to `Session::Close()`.")
    }

    /// Drops compiled steps and functions. Their kernels refer to the functions, which refer to the
    /// kernels.
    fn forget_compiled(&self) {
        self.compiled.lock().clear();
        self.kernels.clear();
        self.functions.clear();
    }

    fn ensure_open(&self) -> Result<()> {
        if self.running.is_closed() {
            bail!(FailedPrecondition, "Session is closed.");
        }
        Ok(())
    }
}

/// Closes the session. Its functions refer to each other and would otherwise stay in memory.
impl Drop for TaskSession {
    fn drop(&mut self) {
        self.close(Box::new(|| {}));
    }
}

/// Checks the versions of a graph. It may require a newer reader than TensorFlow 2.15, whose
/// formats we read.
fn check_versions(versions: &Versions) -> Result<()> {
    let (producer, min_consumer) = (versions.producer, versions.min_consumer);
    let current = Versions::default().producer;
    ensure!(
        min_consumer <= current,
        InvalidArgument,
        "GraphDef min consumer version {min_consumer} above current version {current}"
    );
    ensure!(
        producer >= 0,
        InvalidArgument,
        "GraphDef producer version {producer} below min producer 0"
    );
    Ok(())
}

/// Checks a node name that a client gave.
fn check_name(name: &str) -> Result<()> {
    let ok = |c: char| c.is_ascii_alphanumeric() || "_>./\\-".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    ensure!(
        starts && name.chars().all(ok),
        InvalidArgument,
        "Illegal op name '{name}'\n\t [[{{{{node {name}}}}}]]"
    );
    Ok(())
}
