//! Runs a process on one core.

use ferroflow::{Code, Error, Result};

/// Confines this process and the threads that it starts to one core: core `index` of those that it
/// may use, modulo their number.
pub fn run_on_core(index: usize) -> Result<()> {
    let problem = |e: rustix::io::Errno| {
        Error::new(Code::Unavailable, format!("cannot choose a core to run on: {e}"))
    };
    let allowed = rustix::thread::sched_getaffinity(None).map_err(problem)?;
    let all = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    let all: Vec<usize> = all.collect();
    let Some(&core) = all.get(index % all.len().max(1)) else { return Ok(()) };
    let mut one = rustix::thread::CpuSet::new();
    one.set(core);
    rustix::thread::sched_setaffinity(None, &one).map_err(problem)
}
