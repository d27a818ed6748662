//! Running graphs: plans, the executor, functions, threads, the rendezvous of one process, and the
//! session that ties them together.

mod blocking_threads;
mod compile;
mod executor;
mod flat;
mod frame_id;
mod frames;
mod functions;
mod gpu_debug;
mod node_cost;
mod optimize;
mod plan;
mod recorded;
mod rendezvous;
mod session;
mod slots;
mod speed;
mod task;
mod threads;

pub use compile::{CompiledPart, PartContext, compile_part};
pub use executor::{RunDone, run, run_blocking};
pub use functions::FunctionRuntime;
pub use plan::{KernelCache, Plan};
pub use rendezvous::LocalRendezvous;
pub use session::{
    CallableSpec, CostRuns, Distribute, DistributedPartialRun, DistributedStep, Placement,
    RunOptions, RunOutput, RunRequest, SessionDone, SessionOptions, SessionScope, TaskSession,
};
pub use task::Task;
pub use threads::Threads;
