//! Functions at run time: bodies compiled into plans, and called within the caller's step.

use crate::compile::{PartContext, compile_at_depth};
use crate::executor;
use crate::plan::{KernelCache, Plan};
use ferroflow_core::{
    CallDone, DeviceInfo, InlineScope, InstantiatedFunction, Resources, Result, Spawn, StepCtx,
    Tensor, ThreadKind, ensure, err,
};
use ferroflow_graph::passes::{Pruned, Rewrites};
use ferroflow_graph::{
    Attrs, Catalog, FuncRef, FunctionGraph, FunctionInstantiator, FunctionLibrary,
    SYMBOLIC_GRADIENT,
};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Calls nested deeper than this count as endless recursion.
const MAX_DEPTH: u32 = 256;
/// One nested call out of this many goes to another thread, because the caller's stack may be
/// small.
const CALLS_PER_STACK: u32 = 32;
/// Functions whose compilation needs other functions, nested deeper than this, count as endless
/// recursion.
const MAX_COMPILING: u32 = 64;

/// The functions of a session.
pub struct FunctionRuntime {
    catalog: Arc<Catalog>,
    library: RwLock<FunctionLibrary>,
    device: Arc<DeviceInfo>,
    threads: Arc<dyn Spawn>,
    /// By name, then attributes. An entry keeps the state of its body's kernels for the session.
    instances: Mutex<HashMap<String, Vec<(Attrs, Arc<dyn InstantiatedFunction>)>>>,
    me: Weak<FunctionRuntime>,
}

impl FunctionRuntime {
    /// The functions of `library`, which run on `device`.
    pub fn new(
        catalog: Arc<Catalog>,
        device: Arc<DeviceInfo>,
        threads: Arc<dyn Spawn>,
    ) -> Arc<FunctionRuntime> {
        Arc::new_cyclic(|me| FunctionRuntime {
            catalog,
            threads,
            library: RwLock::default(),
            device,
            instances: Mutex::default(),
            me: me.clone(),
        })
    }

    /// Replaces the library, after the graph of the session has grown.
    pub fn set_library(&self, library: FunctionLibrary) {
        *self.library.write() = library;
    }

    /// Drops all instances, and their state.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.instances.lock());
        drop(dropped);
    }

    fn instance(&self, func: &FuncRef) -> Option<Arc<dyn InstantiatedFunction>> {
        let instances = self.instances.lock();
        let list = instances.get(&func.name)?;
        list.iter().find(|(attrs, _)| *attrs == func.attrs).map(|(_, found)| found.clone())
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn device(&self) -> &Arc<DeviceInfo> {
        &self.device
    }

    pub(crate) fn threads(&self) -> &Arc<dyn Spawn> {
        &self.threads
    }

    /// The same functions, for kernels that fold constants while `depth` functions are being
    /// compiled, each for the one before.
    pub(crate) fn nested(self: &Arc<Self>, depth: u32) -> Arc<dyn FunctionInstantiator> {
        Arc::new(NestedFunctions { runtime: self.clone(), depth })
    }

    fn instantiate_at(&self, func: &FuncRef, depth: u32) -> Result<Arc<dyn InstantiatedFunction>> {
        if let Some(found) = self.instance(func) {
            return Ok(found);
        }
        let made = self.compile_at(func, depth)?;
        let mut instances = self.instances.lock();
        let list = instances.entry(func.name.clone()).or_default();
        if let Some((_, found)) = list.iter().find(|(attrs, _)| *attrs == func.attrs) {
            return Ok(found.clone());
        }
        list.push((func.attrs.clone(), made.clone()));
        Ok(made)
    }

    fn compile_at(&self, func: &FuncRef, depth: u32) -> Result<Arc<dyn InstantiatedFunction>> {
        ensure!(
            depth < MAX_COMPILING,
            InvalidArgument,
            "function {}: functions are nested deeper than {MAX_COMPILING}",
            func.name
        );
        self.compile(func, depth).map_err(|e| match depth {
            0 => e.context(format!("function {}", func.name)),
            _ => e,
        })
    }

    fn compile(&self, func: &FuncRef, depth: u32) -> Result<Arc<dyn InstantiatedFunction>> {
        let body = FunctionGraph::instantiate(func, &self.library.read(), &self.catalog)?;
        let me = self.me.upgrade().ok_or_else(|| err!(Cancelled, "the session has ended"))?;
        let is_gradient = func.name == SYMBOLIC_GRADIENT;
        let own = is_gradient.then(|| OwnFunctions::new(self, body.graph.library.clone()));
        let context = PartContext {
            functions: own.as_ref().map_or(&me, |own| &own.0),
            device_of: &|_| Ok(self.device.clone()),
            kernels: &KernelCache::default(),
            rewrites: Rewrites::ALL,
        };
        let compiled = compile_at_depth(Pruned::from_function(body), &context, depth)?;
        let plan = Arc::new(compiled.plan);
        Ok(Arc::new(Compiled { name: func.name.clone(), plan, _own: own }))
    }
}

impl FunctionInstantiator for FunctionRuntime {
    fn instantiate(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.instantiate_at(func, 0)
    }

    fn instantiate_apart(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.compile_at(func, 0)
    }

    fn is_elementwise(&self, func: &FuncRef) -> bool {
        let body = FunctionGraph::instantiate(func, &self.library.read(), &self.catalog);
        body.is_ok_and(|body| body.is_elementwise())
    }
}

/// The functions of a session, for kernels that fold constants of a function's body.
struct NestedFunctions {
    runtime: Arc<FunctionRuntime>,
    /// How many functions are being compiled, each for the one before.
    depth: u32,
}

impl FunctionInstantiator for NestedFunctions {
    fn instantiate(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.runtime.instantiate_at(func, self.depth)
    }

    fn instantiate_apart(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.runtime.compile_at(func, self.depth)
    }

    fn is_elementwise(&self, func: &FuncRef) -> bool {
        self.runtime.is_elementwise(func)
    }
}

struct Compiled {
    name: String,
    plan: Arc<Plan>,
    _own: Option<OwnFunctions>,
}

/// Functions of a function alone: a gradient makes some for itself.
struct OwnFunctions(Arc<FunctionRuntime>);

impl OwnFunctions {
    fn new(of: &FunctionRuntime, library: FunctionLibrary) -> OwnFunctions {
        let (catalog, threads) = (of.catalog.clone(), of.threads.clone());
        let functions = FunctionRuntime::new(catalog, of.device.clone(), threads);
        functions.set_library(library);
        OwnFunctions(functions)
    }
}

impl Drop for OwnFunctions {
    fn drop(&mut self) {
        // The kernels of the instances keep the functions, and so each other.
        self.0.clear();
    }
}

impl Compiled {
    fn nested(&self, step: &Arc<StepCtx>) -> Result<Arc<StepCtx>> {
        ensure!(
            step.depth < MAX_DEPTH,
            InvalidArgument,
            "function {}: calls are nested deeper than {MAX_DEPTH}",
            self.name
        );
        Ok(Arc::new(StepCtx {
            step_id: step.step_id,
            rendezvous: step.rendezvous.clone(),
            resources: step.resources.clone(),
            step_resources: step.step_resources.clone(),
            cancel: step.cancel.clone(),
            memory: step.memory.clone(),
            threads: step.threads.clone(),
            collectives: step.collectives.clone(),
            stats: step.stats.clone(),
            depth: step.depth + 1,
        }))
    }
}

impl InstantiatedFunction for Compiled {
    fn call(&self, args: Vec<Tensor>, step: &Arc<StepCtx>, scope: &InlineScope, done: CallDone) {
        match self.nested(step) {
            Ok(step) if step.depth % CALLS_PER_STACK == 0 => {
                let (plan, threads) = (self.plan.clone(), step.threads.clone());
                threads.spawn(Box::new(move || {
                    let scope = InlineScope::new(ThreadKind::Compute);
                    executor::run(&plan, args, step, &scope, done);
                }));
            }
            Ok(step) => executor::run(&self.plan, args, step, scope, done),
            Err(e) => done(Err(e), scope),
        }
    }

    fn call_blocking(&self, args: Vec<Tensor>, step: &Arc<StepCtx>) -> Result<Vec<Tensor>> {
        executor::run_blocking(&self.plan, args, self.nested(step)?)
    }
}

/// A step outside any session's run: for folding constants.
pub(crate) fn detached_step(threads: Arc<dyn Spawn>) -> Arc<StepCtx> {
    Arc::new(StepCtx {
        step_id: 0,
        rendezvous: Arc::new(crate::LocalRendezvous::new()),
        resources: Arc::new(Resources::new()),
        step_resources: Arc::new(Resources::new()),
        cancel: ferroflow_core::CancelToken::new(),
        memory: ferroflow_core::MemoryOwner::unlimited(),
        threads,
        collectives: Arc::new(ferroflow_core::SingleDeviceCollectives),
        stats: None,
        depth: 0,
    })
}
