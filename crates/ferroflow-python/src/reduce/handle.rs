//! Handles of submitted tensors.

use super::exception::raised;
use crate::exit::detached;
use ferroflow_collective::{ForeignTensor, scale};
use ferroflow_core::{Code, Error, Result, err};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SendError, sync_channel};
use std::time::{Duration, Instant};

/// The interval in which a wait checks for signals, such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(200);

type Outcome = Result<(ForeignTensor, Vec<usize>)>;

/// The result of a tensor, once it has arrived.
#[derive(Default)]
pub(super) struct HandleSlot {
    outcome: Mutex<Option<Outcome>>,
    filled: Condvar,
}

impl HandleSlot {
    /// Called on the engine's thread.
    pub(super) fn fill(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.filled.notify_all();
    }

    /// Waits until the result has arrived, or until `until`. Returns whether it has arrived.
    pub(super) fn wait_until(&self, until: Option<Instant>) -> bool {
        let mut outcome = self.outcome.lock();
        while outcome.is_none() {
            match until {
                Some(until) => {
                    if self.filled.wait_until(&mut outcome, until).timed_out() {
                        return outcome.is_some();
                    }
                }
                None => self.filled.wait(&mut outcome),
            }
        }
        true
    }

    /// The error of a refused tensor: another one of its name is in flight.
    pub(super) fn refusal(&self) -> Option<Error> {
        match &*self.outcome.lock() {
            Some(Err(e)) if e.code() == Code::AlreadyExists => Some(e.clone()),
            _ => None,
        }
    }

    pub(super) fn take(&self) -> Option<Outcome> {
        self.outcome.lock().take()
    }
}

/// Calls `wait_until` without the GIL, and handles signals in between. Returns false after
/// `timeout` seconds.
pub(super) fn wait_for(
    py: Python<'_>,
    timeout: Option<f64>,
    wait_until: impl Fn(Instant) -> bool + Sync,
) -> PyResult<bool> {
    let timeout = timeout.filter(|&t| (0.0..1e9).contains(&t));
    let end = timeout.map(|t| Instant::now() + Duration::from_secs_f64(t));
    loop {
        let look = Instant::now() + LOOK;
        let until = end.map_or(look, |end| end.min(look));
        if detached(py, || wait_until(until)) {
            return Ok(true);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(false);
        }
        py.check_signals()?;
    }
}

/// Runs `work`, which waits for other ranks, on a thread of its own, and handles signals meanwhile.
/// If a handler raises, as for Ctrl-C, that is the error; the work goes on alone, and `undo` gets
/// its result.
pub(super) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    thread: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    undo: impl FnOnce(T) + Send + 'static,
) -> PyResult<T> {
    // Without room, so that a result is either taken or returned to the thread.
    let (tell, mut told) = sync_channel(0);
    let run = move || {
        if let Err(SendError(Ok(made))) = tell.send(work()) {
            undo(made);
        }
    };
    let started = std::thread::Builder::new().name(thread.into()).spawn(run);
    started.map_err(|e| {
        raised(py, &err!(ResourceExhausted, "cannot start the thread {thread}: {e}"))
    })?;
    loop {
        let told = &mut told;
        match detached(py, move || told.recv_timeout(LOOK)) {
            Ok(made) => return made.map_err(|e| raised(py, &e)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(raised(py, &err!(Internal, "the thread {thread} panicked")));
            }
        }
    }
}

/// The pending result of a collective on one tensor.
#[pyclass(frozen, module = "ferroflow._ferroflow.reduce")]
pub(super) struct ReduceHandle {
    pub(super) slot: Arc<HandleSlot>,
    pub(super) name: String,
    /// The factor by which the result is multiplied.
    pub(super) postscale: f64,
    state: Mutex<HandleState>,
}

#[derive(Default)]
struct HandleState {
    ended: Option<Option<Error>>,
    counts: Vec<usize>,
    values: Option<Vec<u8>>,
}

impl ReduceHandle {
    pub(super) fn new(slot: Arc<HandleSlot>, name: String, postscale: f64) -> ReduceHandle {
        ReduceHandle { slot, name, postscale, state: Mutex::default() }
    }

    /// Takes the outcome. Returns the tensor, whose owner must be dropped with the GIL held.
    fn settle(&self) -> Option<ForeignTensor> {
        let outcome = self.slot.take()?;
        let mut state = self.state.lock();
        let (ended, tensor) = match outcome {
            Ok((mut tensor, counts)) => {
                state.counts = counts;
                state.values = tensor.take_replaced();
                let dtype = tensor.dtype();
                let scaled = match (&mut state.values, self.postscale) {
                    (_, 1.0) => Ok(()),
                    (Some(values), by) => scale(dtype, values, by),
                    (None, by) => scale(dtype, tensor.bytes_mut(), by),
                };
                (scaled.err(), Some(tensor))
            }
            Err(e) => (Some(e), None),
        };
        state.ended = Some(ended);
        tensor
    }
}

#[pymethods]
impl ReduceHandle {
    /// The name under which the tensor was submitted.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether `wait` returns at once.
    fn poll(&self) -> bool {
        self.state.lock().ended.is_some() || self.slot.outcome.lock().is_some()
    }

    /// Waits for the result. Raises the error of the collective.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        if self.state.lock().ended.is_none() {
            let slot = &self.slot;
            let is_there = slot.outcome.lock().is_some()
                || wait_for(py, timeout, |until| {
                    slot.wait_until(Some(until)) || self.state.lock().ended.is_some()
                })?;
            if !is_there {
                let e = err!(DeadlineExceeded, "tensor {:?} was not complete in time", self.name);
                return Err(raised(py, &e));
            }
            drop(detached(py, || self.settle()));
        }
        match &self.state.lock().ended {
            Some(Some(e)) => Err(raised(py, e)),
            _ => Ok(()),
        }
    }

    /// How many values came from each rank, for gathers and all-to-all.
    #[getter]
    fn counts(&self) -> Vec<usize> {
        self.state.lock().counts.clone()
    }

    /// The result, if it is not in the memory of the submitted tensor. It can be taken once.
    fn take(&self) -> Option<ReducedValues> {
        self.state.lock().values.take().map(|bytes| ReducedValues { bytes: bytes.into() })
    }
}

/// Bytes that a collective returned. `numpy.asarray` makes an array of them without a copy.
#[pyclass(frozen, module = "ferroflow._ferroflow.reduce")]
pub(super) struct ReducedValues {
    bytes: Box<[u8]>,
}

#[pymethods]
impl ReducedValues {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.bytes.len(),))?;
        interface.set_item("typestr", "|u1")?;
        // Python is the only owner of the bytes, so arrays may write to them.
        interface.set_item("data", (self.bytes.as_ptr() as usize, false))?;
        Ok(interface)
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }
}
