//! Groups of simulated GPUs within one process, as NCCL makes them among processes. A reduction
//! blocks the streams of its ranks until all have reached it.

use crate::stream::{StreamQueue, Work};
use ferroflow_core::{
    DType, Error, GpuCommunicator, GpuReduction, HashMap, Result, bail, bf16, ensure, err, f16,
};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

/// How long a rank waits for the others.
const LIMIT: Duration = Duration::from_secs(60);

/// The groups of this process, by number.
static GROUPS: LazyLock<Mutex<HashMap<u64, Weak<Meeting>>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A new name for a group.
pub(crate) fn new_group() -> Vec<u8> {
    NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes().to_vec()
}

/// Where the ranks of a group meet.
pub(crate) struct Meeting {
    size: usize,
    state: Mutex<MeetingState>,
    changed: Condvar,
}

#[derive(Default)]
struct MeetingState {
    joined: usize,
    /// Rounds that are complete.
    round: u64,
    /// The values of the ranks in this round.
    brought: Vec<Option<Vec<u8>>>,
    result: Arc<Vec<Vec<u8>>>,
    /// How many ranks still have to take the result.
    to_take: usize,
    failed: Option<Error>,
}

impl Meeting {
    /// Brings the values of a rank, and returns those of all ranks once they are there.
    pub fn exchange(&self, rank: usize, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut state = self.state.lock();
        self.wait(&mut state, |s| s.to_take == 0)?;
        state.brought[rank] = Some(mine);
        let round = state.round;
        if state.brought.iter().all(Option::is_some) {
            let all = std::mem::replace(&mut state.brought, vec![None; self.size]);
            state.result = Arc::new(all.into_iter().flatten().collect());
            state.round += 1;
            state.to_take = self.size;
            self.changed.notify_all();
        }
        self.wait(&mut state, |s| s.round > round)?;
        state.to_take -= 1;
        self.changed.notify_all();
        Ok(state.result.clone())
    }

    fn wait(
        &self,
        state: &mut parking_lot::MutexGuard<'_, MeetingState>,
        is_ready: impl Fn(&MeetingState) -> bool,
    ) -> Result<()> {
        let done = |s: &mut MeetingState| is_ready(s) || s.failed.is_some();
        let waited = self.changed.wait_while_for(state, |s| !done(s), LIMIT);
        if let Some(e) = &state.failed {
            return Err(e.clone());
        }
        ensure!(!waited.timed_out(), DeadlineExceeded, "not all ranks of a group came");
        Ok(())
    }

    fn fail(&self, cause: Error) {
        self.state.lock().failed.get_or_insert(cause);
        self.changed.notify_all();
    }

    fn failure(&self) -> Option<Error> {
        self.state.lock().failed.clone()
    }
}

/// Joins a group of `size` ranks.
pub(crate) fn join(
    queue: StreamQueue,
    group: &[u8],
    rank: usize,
    size: usize,
) -> Result<Arc<dyn GpuCommunicator>> {
    let Ok(number) = group.try_into() else { bail!(InvalidArgument, "not the name of a group") };
    ensure!(rank < size, InvalidArgument, "rank {rank} of {size}");
    let meeting = {
        let mut groups = GROUPS.lock();
        let entry = groups.entry(u64::from_le_bytes(number)).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let brought = vec![None; size];
            let state = Mutex::new(MeetingState { brought, ..MeetingState::default() });
            let made = Arc::new(Meeting { size, state, changed: Condvar::new() });
            *entry = Arc::downgrade(&made);
            made
        })
    };
    let mut state = meeting.state.lock();
    state.joined += 1;
    meeting.changed.notify_all();
    meeting.wait(&mut state, |s| s.joined >= size)?;
    drop(state);
    Ok(Arc::new(SimulatedGroup { meeting, queue, rank }))
}

struct SimulatedGroup {
    meeting: Arc<Meeting>,
    queue: StreamQueue,
    rank: usize,
}

/// What a rank computes from the values of all.
#[derive(Clone, Copy)]
pub(crate) enum GroupResult {
    Reduce(DType, GpuReduction),
    Broadcast(usize),
}

/// A collective in a stream.
pub(crate) struct GroupCall {
    meeting: Arc<Meeting>,
    rank: usize,
    from: u64,
    to: u64,
    bytes: usize,
    result: GroupResult,
}

impl GroupCall {
    /// Waits for the other ranks, and writes the result.
    pub fn run(self) -> Result<()> {
        let mut mine = vec![0u8; self.bytes];
        // SAFETY: the memory belongs to a tensor that was alive when the call was enqueued. It is
        // freed in the order of the stream.
        unsafe {
            std::ptr::copy_nonoverlapping(self.from as *const u8, mine.as_mut_ptr(), self.bytes);
        }
        let all = self.meeting.exchange(self.rank, mine)?;
        let result = match self.result {
            GroupResult::Broadcast(root) => {
                all.get(root).cloned().ok_or_else(|| err!(InvalidArgument, "no rank {root}"))?
            }
            GroupResult::Reduce(dtype, by) => reduced(&all, dtype, by)?,
        };
        ensure!(result.len() == self.bytes, Internal, "the ranks brought different sizes");
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(result.as_ptr(), self.to as *mut u8, self.bytes);
        }
        Ok(())
    }
}

impl SimulatedGroup {
    fn enqueue(&self, from: u64, to: u64, bytes: usize, result: GroupResult) -> Result<()> {
        if let Some(e) = self.meeting.failure() {
            return Err(e);
        }
        let (meeting, rank) = (self.meeting.clone(), self.rank);
        self.queue.push(Work::Group(GroupCall { meeting, rank, from, to, bytes, result }));
        Ok(())
    }
}

impl GpuCommunicator for SimulatedGroup {
    fn all_reduce(
        &self,
        from: u64,
        to: u64,
        count: usize,
        dtype: DType,
        by: GpuReduction,
    ) -> Result<()> {
        let bytes = count * size_of(dtype)?;
        self.enqueue(from, to, bytes, GroupResult::Reduce(dtype, by))
    }

    fn broadcast(&self, from: u64, to: u64, count: usize, dtype: DType, root: usize) -> Result<()> {
        self.enqueue(from, to, count * size_of(dtype)?, GroupResult::Broadcast(root))
    }

    fn failure(&self) -> Option<Error> {
        self.meeting.failure()
    }

    fn abort(&self, cause: Error) {
        self.meeting.fail(cause);
    }
}

fn size_of(dtype: DType) -> Result<usize> {
    dtype.size().ok_or_else(|| err!(Unimplemented, "a collective of {dtype}"))
}

/// The reduction of the values of all ranks, in the order of ranks.
fn reduced(all: &[Vec<u8>], dtype: DType, by: GpuReduction) -> Result<Vec<u8>> {
    /// Reduces numbers of one type in another.
    macro_rules! of {
        ($t:ty, $bytes:literal, $read:expr, $write:expr) => {{
            let bytes = all.first().map_or(0, Vec::len);
            let mut out = Vec::with_capacity(bytes);
            for at in (0..bytes).step_by($bytes) {
                let value = |rank: &Vec<u8>| -> f64 {
                    let part = rank.get(at..at + $bytes).and_then(|p| p.try_into().ok());
                    part.map_or(f64::NAN, |p| ($read)(<$t>::from_le_bytes(p)))
                };
                let fold = |a: f64, b: f64| match by {
                    GpuReduction::Sum | GpuReduction::Mean => ($read)(($write)(a + b)),
                    GpuReduction::Product => ($read)(($write)(a * b)),
                    GpuReduction::Max => a.max(b),
                    GpuReduction::Min => a.min(b),
                };
                let total = all.iter().map(value).reduce(fold).unwrap_or(0.0);
                let mean = by == GpuReduction::Mean;
                let total = if mean { total / all.len() as f64 } else { total };
                out.extend_from_slice(&($write)(total).to_le_bytes());
            }
            Ok(out)
        }};
    }
    match dtype {
        DType::Float => of!(f32, 4, f64::from, |x: f64| x as f32),
        DType::Double => of!(f64, 8, |x: f64| x, |x: f64| x),
        DType::Half => of!(f16, 2, |x: f16| x.to_f64(), f16::from_f64),
        DType::BFloat16 => of!(bf16, 2, |x: bf16| x.to_f64(), bf16::from_f64),
        DType::Int64 => of!(i64, 8, |x: i64| x as f64, |x: f64| x as i64),
        DType::Int32 => of!(i32, 4, f64::from, |x: f64| x as i32),
        other => bail!(Unimplemented, "a simulated reduction of {other}"),
    }
}
