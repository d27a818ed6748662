//! The end of the interpreter. When it ends, Python stops every other thread that requests the GIL,
//! at whatever point it is. Rust code cannot be stopped like that: the process would abort. So
//! threads that return to Python after the end has begun wait here until the process is gone.

use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// How long the end waits for threads that are in Python or about to enter it.
const DEADLINE: Duration = Duration::from_secs(1);

static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads between Rust and Python.
static CROSSING: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the interpreter, which may continue.
static LAST: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Runs `work` without the GIL.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let value = py.detach(|| {
        let value = work();
        cross();
        value
    });
    CROSSING.fetch_sub(1, Ordering::SeqCst);
    value
}

/// Runs `work` with the GIL, on a thread that is not Python's. The end waits for it.
pub fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    cross();
    let value = Python::attach(work);
    CROSSING.fetch_sub(1, Ordering::SeqCst);
    value
}

fn cross() {
    CROSSING.fetch_add(1, Ordering::SeqCst);
    if !ENDING.load(Ordering::SeqCst) || *LAST.lock() == Some(std::thread::current().id()) {
        return;
    }
    CROSSING.fetch_sub(1, Ordering::SeqCst);
    loop {
        std::thread::park();
    }
}

/// Called once, before the interpreter ends.
#[pyfunction]
fn ending(py: Python<'_>) {
    *LAST.lock() = Some(std::thread::current().id());
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let began = Instant::now();
        while CROSSING.load(Ordering::SeqCst) > 0 && began.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let ending = wrap_pyfunction!(ending, module)?;
    py.import("atexit")?.call_method1("register", (ending,))?;
    Ok(())
}
