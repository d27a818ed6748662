//! Functions at run time: bodies compiled into plans, called within the caller's step.

use crate::executor;
use crate::optimize::GraphOptimizer;
use crate::plan::{KernelCache, Plan, PlanContext};
use ferroflow_core::{
    CallDone, DeviceInfo, InstantiatedFunction, Resources, Result, Spawn, StepCtx, Tensor, ensure,
    err,
};
use ferroflow_graph::passes::Pruned;
use ferroflow_graph::{
    Attrs, Catalog, FuncRef, FunctionGraph, FunctionInstantiator, FunctionLibrary,
};
use parking_lot::{Mutex, RwLock};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Calls nested deeper than this are taken for a recursion without an end.
const MAX_DEPTH: u32 = 256;
/// Every so many nested calls one goes to another thread, so that no stack holds more of them: a
/// caller's thread may have a small one.
const CALLS_PER_STACK: u32 = 32;
/// Functions that need each other to be compiled, nested deeper than this, are a recursion.
const MAX_COMPILING: u32 = 64;

thread_local! {
    /// How many functions are being compiled on this thread, each for the one before.
    static COMPILING: Cell<u32> = const { Cell::new(0) };
}

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
    /// Functions of `library` that run on `device`.
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

    /// Follows the growth of a session's graph.
    pub fn set_library(&self, library: FunctionLibrary) {
        *self.library.write() = library;
    }

    /// Forgets what was instantiated, and the state it kept.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.instances.lock());
        drop(dropped);
    }

    fn instance(&self, func: &FuncRef) -> Option<Arc<dyn InstantiatedFunction>> {
        let instances = self.instances.lock();
        let list = instances.get(&func.name)?;
        list.iter().find(|(attrs, _)| *attrs == func.attrs).map(|(_, found)| found.clone())
    }

    /// Compiles a function, maybe for one that is being compiled on this thread.
    fn compile_nested(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        let depth = COMPILING.get();
        ensure!(
            depth < MAX_COMPILING,
            InvalidArgument,
            "function {}: functions are nested deeper than {MAX_COMPILING}",
            func.name
        );
        COMPILING.set(depth + 1);
        let made = self.compile(func);
        COMPILING.set(depth);
        made.map_err(|e| match depth {
            0 => e.context(format!("function {}", func.name)),
            _ => e,
        })
    }

    fn compile(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        let body = FunctionGraph::instantiate(func, &self.library.read(), &self.catalog)?;
        let mut step = Pruned::from_function(body);
        let me = self.me.upgrade().ok_or_else(|| err!(Cancelled, "the session has ended"))?;
        let functions: Arc<dyn FunctionInstantiator> = me;
        GraphOptimizer {
            catalog: &self.catalog,
            device: &self.device,
            functions: &functions,
            threads: self.threads.clone(),
        }
        .optimize(&mut step);
        let device = self.device.clone();
        let context = PlanContext {
            device_of: &|_| Ok(device.clone()),
            functions: &functions,
            kernels: &KernelCache::default(),
        };
        let plan = Plan::compile(&step.graph, &step.args, &step.rets, &context)?;
        Ok(Arc::new(Compiled { name: func.name.clone(), plan: Arc::new(plan) }))
    }
}

impl FunctionInstantiator for FunctionRuntime {
    fn instantiate(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        if let Some(found) = self.instance(func) {
            return Ok(found);
        }
        let made = self.compile_nested(func)?;
        let mut instances = self.instances.lock();
        let list = instances.entry(func.name.clone()).or_default();
        if let Some((_, found)) = list.iter().find(|(attrs, _)| *attrs == func.attrs) {
            return Ok(found.clone());
        }
        list.push((func.attrs.clone(), made.clone()));
        Ok(made)
    }

    fn instantiate_apart(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.compile_nested(func)
    }
}

struct Compiled {
    name: String,
    plan: Arc<Plan>,
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
            threads: step.threads.clone(),
            collectives: step.collectives.clone(),
            stats: step.stats.clone(),
            depth: step.depth + 1,
        }))
    }
}

impl InstantiatedFunction for Compiled {
    fn call(&self, args: Vec<Tensor>, step: &Arc<StepCtx>, done: CallDone) {
        match self.nested(step) {
            Ok(step) if step.depth % CALLS_PER_STACK == 0 => {
                let (plan, threads) = (self.plan.clone(), step.threads.clone());
                threads.spawn(Box::new(move || executor::run(&plan, args, step, done)));
            }
            Ok(step) => executor::run(&self.plan, args, step, done),
            Err(e) => done(Err(e)),
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
        threads,
        collectives: Arc::new(ferroflow_core::SingleDeviceCollectives),
        stats: None,
        depth: 0,
    })
}
