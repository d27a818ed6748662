//! When the work of a traced step ran: events in the stream, each with a time.

use crate::gpu::Context;
use crate::status;
use cudarc::driver::sys::{self, CUevent, CUresult};
use ferroflow_core::{GpuTrace, Result, err};
use parking_lot::Mutex;
use std::time::{Duration, SystemTime};

/// The bindings have only its successor, which older drivers lack.
type ElapsedTimeFn = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// An event with a time.
struct TimedEvent(CUevent);

// SAFETY: events may be used from all threads.
unsafe impl Send for TimedEvent {}

impl TimedEvent {
    /// Enqueues the event.
    fn record(context: Context) -> Result<TimedEvent> {
        context.make_current()?;
        let mut event = std::ptr::null_mut();
        // SAFETY: the context is current. The driver sets `event`.
        status::driver(unsafe { sys::cuEventCreate(&mut event, 0) }, "an event")?;
        let event = TimedEvent(event);
        // SAFETY: event and stream are valid.
        status::driver(unsafe { sys::cuEventRecord(event.0, context.stream()) }, "an event")?;
        Ok(event)
    }

    fn wait(&self) -> Result<()> {
        // SAFETY: the event is valid.
        status::driver(unsafe { sys::cuEventSynchronize(self.0) }, "work on the GPU")
    }

    /// The time from `base` to this event. Both have happened.
    fn after(&self, base: &TimedEvent) -> Result<Duration> {
        let mut millis = 0.0f32;
        // SAFETY: the library is present, and the symbol has this type.
        let elapsed = unsafe { sys::culib().get::<ElapsedTimeFn>(b"cuEventElapsedTime") };
        let elapsed = elapsed.map_err(|e| err!(Unimplemented, "the time of an event: {e}"))?;
        // SAFETY: both events are valid and have times.
        let status = unsafe { elapsed(&mut millis, base.0, self.0) };
        status::driver(status, "the time of an event")?;
        Ok(Duration::from_secs_f64(f64::from(millis.max(0.0)) / 1e3))
    }
}

impl Drop for TimedEvent {
    fn drop(&mut self) {
        // SAFETY: the event is valid, and this is its last use.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// The marks of one step.
pub(crate) struct CudaTrace {
    context: Context,
    /// The first event, and when the host saw it happen.
    base: Mutex<(TimedEvent, SystemTime)>,
    marks: Mutex<Vec<TimedEvent>>,
}

impl CudaTrace {
    /// Begins a trace. Waits for the work before it, so that the clocks of host and GPU agree.
    pub fn begin(context: Context) -> Result<CudaTrace> {
        let base = TimedEvent::record(context)?;
        base.wait()?;
        let base = Mutex::new((base, SystemTime::now()));
        Ok(CudaTrace { context, base, marks: Mutex::default() })
    }
}

impl GpuTrace for CudaTrace {
    fn mark(&self) -> Result<usize> {
        let mut marks = self.marks.lock();
        marks.push(TimedEvent::record(self.context)?);
        Ok(marks.len() - 1)
    }

    fn times(&self) -> Result<Vec<SystemTime>> {
        self.context.make_current()?;
        let (base, marks) = (self.base.lock(), self.marks.lock());
        if let Some(last) = marks.last() {
            last.wait()?;
        }
        marks.iter().map(|mark| Ok(base.1 + mark.after(&base.0)?)).collect()
    }
}
