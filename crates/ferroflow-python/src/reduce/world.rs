//! The ranks of this process's job, and collectives on named tensors.

use super::completions::settle;
use super::exception::raised;
use super::handle::{HandleSlot, ReduceHandle, interruptible};
use super::jax::forget_executions;
use crate::exit::detached;
use crate::ops;
use ferroflow_collective::{
    Collective, ForeignDone, ForeignTensor, ReduceOp, SubmitOptions, WireCompression, scale,
};
use ferroflow_command::logging::{log_if_asked, log_is_of};
use ferroflow_core::{Code, DType, Error, Result, bail, err};
use ferroflow_train::hvd::elastic::{Elastic, seat_from_env};
use ferroflow_train::hvd::{self, Config, World};
use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The job of this process. A Python process is in one job at a time, as with Horovod.
static JOB: RwLock<Option<Arc<Job>>> = RwLock::new(None);

struct Job {
    world: World,
    elastic: Mutex<Option<Elastic>>,
}

/// The job's world, for the ops of other modules.
pub(super) fn world() -> Result<World> {
    match &*JOB.read() {
        Some(job) => Ok(job.world.clone()),
        None => bail!(
            FailedPrecondition,
            "ferroflow has not been initialized in this process; call init() first"
        ),
    }
}

/// A step that the program runs in a session of this process. The time between two steps is the
/// rank's input phase.
pub(crate) struct ClientStep(());

/// The number of running steps, and the end of the last one.
static STEPS: Mutex<(usize, Option<Instant>)> = Mutex::new((0, None));

impl ClientStep {
    /// Begins a step, if this process is a rank.
    pub fn begin() -> Option<ClientStep> {
        let metrics = JOB.read().as_ref()?.world.metrics()?;
        let mut steps = STEPS.lock();
        if let (0, Some(ended)) = (steps.0, steps.1.take()) {
            metrics.rank_prepared(ended.elapsed());
        }
        steps.0 += 1;
        Some(ClientStep(()))
    }
}

impl Drop for ClientStep {
    fn drop(&mut self) {
        let mut steps = STEPS.lock();
        steps.0 -= 1;
        steps.1 = Some(Instant::now());
    }
}

fn job(py: Python<'_>) -> PyResult<Arc<Job>> {
    let found = JOB.read().clone();
    found.ok_or_else(|| {
        let text = "ferroflow has not been initialized in this process; call init() first";
        raised(py, &err!(FailedPrecondition, "{text}"))
    })
}

/// Connects to the other ranks of the job that the environment describes. `stalls` has the seconds
/// until a warning and until an error. `fusion` has the bytes of a fused buffer, and the seconds
/// that a tensor waits for other tensors.
#[pyfunction]
#[pyo3(signature = (process_sets, timeline=None, deterministic=false, fusion=None, stalls=None,
    elastic=false))]
fn init(
    py: Python<'_>,
    process_sets: Vec<Vec<usize>>,
    timeline: Option<PathBuf>,
    deterministic: bool,
    fusion: Option<(usize, f64)>,
    stalls: Option<(f64, f64)>,
    elastic: bool,
) -> PyResult<()> {
    log_if_asked().map_err(|e| raised(py, &e))?;
    let mut config = Config { process_sets, ..Config::from_env() };
    config.deterministic |= deterministic;
    config.engine.mean_counts_joined = true;
    config.engine.timeline = timeline.or(config.engine.timeline);
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::from_secs(1 << 40));
    if let Some((bytes, cycle)) = fusion {
        config.engine.fusion = Some((bytes, seconds(cycle)));
    }
    if let Some((warning, deadline)) = stalls {
        config.engine.stall_warning = seconds(warning);
        config.engine.stall_deadline = seconds(deadline);
    }
    let connect = move || -> Result<Job> {
        // The graphs' ops use this world, so that they communicate in this job.
        let world = ops::world().clone();
        let elastic = match elastic {
            true => Some(Elastic::meet_in(world.clone(), seat_from_env()?, config)?),
            false => {
                world.connect(config)?;
                None
            }
        };
        world.metrics().iter().for_each(log_is_of);
        Ok(Job { world, elastic: Mutex::new(elastic) })
    };
    let job = interruptible(py, "ff-init", connect, |job| job.world.shutdown())?;
    forget_executions();
    let old = JOB.write().replace(Arc::new(job));
    detached(py, || drop(old));
    Ok(())
}

/// Leaves the job. With `finished`, reports to the driver of an elastic job that this process is
/// done.
#[pyfunction]
#[pyo3(signature = (finished=true))]
fn shutdown(py: Python<'_>, finished: bool) {
    let job = JOB.write().take();
    detached(py, || {
        let Some(job) = job else { return };
        match job.elastic.lock().take() {
            Some(elastic) if finished => elastic.finish(),
            _ => job.world.shutdown(),
        }
        settle();
    });
}

#[pyfunction]
fn is_initialized() -> bool {
    JOB.read().as_ref().is_some_and(|job| job.world.is_initialized())
}

/// Rank, size, local rank, local size, cross rank, cross size, and whether all hosts have the same
/// number of ranks.
#[pyfunction]
fn place(py: Python<'_>) -> PyResult<(usize, usize, usize, usize, usize, usize, bool)> {
    let job = job(py)?;
    let w = &job.world;
    Ok((
        w.rank(),
        w.size(),
        w.local_rank(),
        w.local_size(),
        w.cross_rank(),
        w.cross_size(),
        w.is_homogeneous(),
    ))
}

/// The error that ended communication, as text.
#[pyfunction]
fn failure(py: Python<'_>) -> PyResult<Option<String>> {
    Ok(job(py)?.world.failure().map(|e| e.message().to_string()))
}

/// Fails the collectives of all ranks.
#[pyfunction]
fn abort(text: &str) {
    if let Ok(world) = world() {
        world.abort(err!(Aborted, "{text}"));
    }
}

/// A tensor of Python: name, address, number of the dtype, shape, and the object that owns the
/// memory.
type PyPayload = (String, usize, i32, Vec<usize>, Py<PyAny>);

/// How tensors are combined, by the numbers of `_hvd/core.py`.
struct Operation {
    what: Collective,
    ask: SubmitOptions,
    prescale: f64,
}

/// Submits tensors, which run together. Returns a handle for each tensor.
#[pyfunction]
#[pyo3(signature = (tensors, kind, op=1, process_set=0, root=0, splits=None, prescale=1.0,
    postscale=1.0, compression=0, fault=None))]
#[expect(clippy::too_many_arguments, reason = "the options of a Python call")]
fn submit(
    py: Python<'_>,
    tensors: Vec<PyPayload>,
    kind: u8,
    op: u8,
    process_set: usize,
    root: usize,
    splits: Option<Vec<usize>>,
    prescale: f64,
    postscale: f64,
    compression: u8,
    fault: Option<String>,
) -> PyResult<Vec<ReduceHandle>> {
    let job = job(py)?;
    let operation = operation(kind, op, root, splits, compression).map(|(what, mut ask)| {
        ask.fault = fault.map(|text| Error::new(Code::InvalidArgument, text));
        Operation { what, ask, prescale }
    });
    let operation = operation.map_err(|e| raised(py, &e))?;
    let mut handles = Vec::with_capacity(tensors.len());
    let mut all: Vec<(String, ForeignTensor, Collective, ForeignDone)> =
        Vec::with_capacity(tensors.len());
    for (name, data, dtype, shape, owner) in tensors {
        let tensor = DType::from_number(dtype).and_then(|dtype| {
            // SAFETY: the Python package passes the address and shape of a contiguous array that
            // `owner` keeps alive. By its documentation, arrays must not be used until their handle
            // is done.
            unsafe { ForeignTensor::new(data as *mut u8, dtype, shape, Box::new(owner)) }
        });
        let tensor = tensor.map_err(|e| raised(py, &e))?.keep_values();
        let slot = Arc::new(HandleSlot::default());
        handles.push(ReduceHandle::new(slot.clone(), name.clone(), postscale));
        all.push((
            name,
            tensor,
            operation.what.clone(),
            Box::new(move |outcome| slot.fill(outcome)),
        ));
    }
    if operation.prescale != 1.0 {
        let scaled = detached(py, || {
            all.iter_mut()
                .try_for_each(|(_, t, ..)| scale(t.dtype(), t.bytes_mut(), operation.prescale))
        });
        scaled.map_err(|e| raised(py, &e))?;
    }
    job.world.submit_foreign(all, process_set, operation.ask);
    match handles.first().and_then(|first| first.slot.refusal()) {
        Some(e) => Err(raised(py, &e)),
        None => Ok(handles),
    }
}

pub(super) fn operation(
    kind: u8,
    op: u8,
    root: usize,
    splits: Option<Vec<usize>>,
    compression: u8,
) -> Result<(Collective, SubmitOptions)> {
    let is_adasum = op == hvd::Reduction::Adasum as u8;
    let reduce = match op {
        0 => ReduceOp::Mean,
        1 | 2 => ReduceOp::Sum,
        3 => ReduceOp::Min,
        4 => ReduceOp::Max,
        5 => ReduceOp::Product,
        other => bail!(InvalidArgument, "there is no reduce operation {other}"),
    };
    let what = match kind {
        0 if is_adasum => Collective::Adasum,
        0 => Collective::AllReduce,
        1 if is_adasum => bail!(Unimplemented, "reducescatter does not support Adasum"),
        1 => Collective::ReduceScatter,
        2 => Collective::AllGather,
        3 => Collective::Broadcast { root },
        4 => Collective::AllToAll { splits: splits.unwrap_or_default() },
        5 => Collective::Barrier,
        other => bail!(InvalidArgument, "there is no collective {other}"),
    };
    let compression = match compression {
        0 => WireCompression::None,
        1 => WireCompression::Fp16,
        2 => WireCompression::Bf16,
        other => bail!(InvalidArgument, "there is no compression {other}"),
    };
    Ok((what, SubmitOptions { compression, ..SubmitOptions::op(reduce) }))
}

/// Reports that this rank has no more data. Returns the last rank that joined.
#[pyfunction]
fn join(py: Python<'_>) -> PyResult<usize> {
    let job = job(py)?;
    interruptible(py, "ff-join", move || job.world.join(), drop)
}

/// Makes a process set and returns its number.
#[pyfunction]
fn add_process_set(py: Python<'_>, ranks: Vec<usize>) -> PyResult<usize> {
    let job = job(py)?;
    let add = move || Ok(job.world.add_process_set(&ranks)?.number());
    interruptible(py, "ff-process-set", add, drop)
}

/// Starts a trace of all tensors on this rank, or ends it.
#[pyfunction]
#[pyo3(signature = (path=None))]
fn set_timeline(py: Python<'_>, path: Option<PathBuf>) -> PyResult<()> {
    let job = job(py)?;
    let set = detached(py, || match path {
        Some(path) => job.world.start_timeline(path),
        None => job.world.stop_timeline(),
    });
    set.map_err(|e| raised(py, &e))
}

/// Elastic jobs: whether new processes wait to join.
#[pyfunction]
fn has_newcomers(py: Python<'_>) -> PyResult<bool> {
    Ok(job(py)?.elastic.lock().as_ref().is_some_and(Elastic::has_newcomers))
}

/// Elastic jobs: leaves the current ranks and connects to those of the next epoch.
#[pyfunction]
fn reconnect(py: Python<'_>) -> PyResult<()> {
    let job = job(py)?;
    let connect = move || match job.elastic.lock().as_mut() {
        Some(elastic) => {
            // Fails the tensors in flight. Programs that still run must not count for the next
            // ranks.
            job.world.shutdown();
            settle();
            elastic.reconnect()
        }
        None => bail!(
            FailedPrecondition,
            "this job is not elastic: start it with `ferroflow run` and --min-np or --max-np"
        ),
    };
    let done = interruptible(py, "ff-reconnect", connect, drop);
    forget_executions();
    done
}

/// Counters of the coordinator, on rank 0: cached requests, new requests, collectives, tensors.
#[pyfunction]
fn stats(py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
    let stats = job(py)?.world.stats();
    Ok((stats.cache_hits, stats.cache_misses, stats.runs, stats.pieces))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(init, module)?)?;
    module.add_function(wrap_pyfunction!(shutdown, module)?)?;
    module.add_function(wrap_pyfunction!(is_initialized, module)?)?;
    module.add_function(wrap_pyfunction!(place, module)?)?;
    module.add_function(wrap_pyfunction!(failure, module)?)?;
    module.add_function(wrap_pyfunction!(abort, module)?)?;
    module.add_function(wrap_pyfunction!(submit, module)?)?;
    module.add_function(wrap_pyfunction!(join, module)?)?;
    module.add_function(wrap_pyfunction!(add_process_set, module)?)?;
    module.add_function(wrap_pyfunction!(set_timeline, module)?)?;
    module.add_function(wrap_pyfunction!(has_newcomers, module)?)?;
    module.add_function(wrap_pyfunction!(reconnect, module)?)?;
    module.add_function(wrap_pyfunction!(stats, module)?)?;
    Ok(())
}
