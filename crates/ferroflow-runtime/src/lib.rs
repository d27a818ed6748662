//! Running graphs: plans, the executor, functions, threads, the rendezvous of one process, and the
//! session that ties them together.

mod effort;
mod executor;
mod flat;
mod frame_id;
mod frames;
mod functions;
mod optimize;
mod plan;
mod rendezvous;
mod session;
mod slots;
mod task;
mod threads;
mod turn;

pub use executor::{RunDone, run, run_blocking};
pub use functions::FunctionRuntime;
pub use optimize::Optimizer;
pub use plan::{KernelCache, Plan, PlanContext};
pub use rendezvous::LocalRendezvous;
pub use session::{
    CallableSpec, CostRuns, Placement, RunOptions, RunOutput, RunRequest, Scope, Session,
    SessionDone, SessionOptions, Spread, SpreadParts, SpreadStep,
};
pub use task::Task;
pub use threads::Threads;
pub use turn::on_network_thread;
