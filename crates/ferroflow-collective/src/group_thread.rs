//! A thread that owns a group and runs its collectives one after the other.
//!
//! It suits callers that submit in the same order on all ranks, such as torch's process groups. No
//! coordinator is needed, so a call costs little more than the collective itself.

use crate::control::{Control, ControlMessage};
use crate::failure::GroupFailure;
use crate::group::Group;
use ferroflow_core::{Error, Result, err, panic_text};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a collective may run on after a rank has left. What the rank sent before may still be
/// on its way.
const GRACE: Duration = Duration::from_secs(1);

type Work = Box<dyn FnOnce(&mut Group) -> Result<()> + Send>;
type Done = Box<dyn FnOnce(Result<()>) + Send>;

struct QueuedCall {
    what: String,
    work: Work,
    done: Done,
}

#[derive(Default)]
struct QueueState {
    calls: VecDeque<QueuedCall>,
    /// The call that runs now, and since when.
    running: Option<(String, Instant)>,
    /// Ranks that have left, and when.
    left: Vec<(usize, Instant)>,
    closing: bool,
    /// The thread has ended.
    ended: bool,
}

struct Queue {
    state: Mutex<QueueState>,
    /// A call was submitted, or the thread has ended.
    changed: Condvar,
}

/// Runs the collectives of a group in the order of submission. Dropping it completes what was
/// submitted, with an error if other ranks do not take part.
pub struct GroupThread {
    queue: Arc<Queue>,
    abort: GroupAbort,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Ends a group from any thread.
#[derive(Clone)]
pub struct GroupAbort {
    control: Weak<Control>,
    failure: Option<Arc<GroupFailure>>,
}

impl GroupAbort {
    /// Fails the group on all ranks with `cause`, which should name this rank. Does nothing if it
    /// has already failed.
    pub fn abort(&self, cause: Error) {
        if let Some(control) = self.control.upgrade() {
            control.fail(cause);
        }
    }

    /// The first cause of the group's failure.
    pub fn cause(&self) -> Option<Error> {
        self.failure.as_ref().and_then(|f| f.check().err())
    }

    /// Calls `listener` when the group fails, or now if it has failed.
    pub fn on_failure(&self, listener: impl Fn() + Send + Sync + 'static) {
        if let Some(failure) = &self.failure {
            failure.add_listener(listener);
        }
    }
}

impl Group {
    /// A way to end this group from any thread.
    pub fn aborter(&self) -> GroupAbort {
        let control = self.control().map(Arc::downgrade).unwrap_or_default();
        GroupAbort { control, failure: self.failure().cloned() }
    }
}

impl GroupThread {
    /// Takes over a group.
    pub fn start(group: Group) -> Result<GroupThread> {
        let abort = group.aborter();
        let state = Mutex::new(QueueState::default());
        let queue = Arc::new(Queue { state, changed: Condvar::new() });
        if let Some(control) = group.control() {
            let (queue, abort) = (queue.clone(), abort.clone());
            control.set_inbox(Box::new(move |rank, message| {
                if let ControlMessage::Leave = message {
                    let mut state = queue.state.lock();
                    state.left.push((rank, Instant::now()));
                    let is_first = state.left.len() == 1;
                    drop(state);
                    if is_first {
                        let (queue, abort) = (queue.clone(), abort.clone());
                        // Without the thread, the timeout of the collectives ends the wait.
                        let _ = crate::engine::spawn("ff-group-left", move || {
                            watch_calls(&queue, &abort);
                        });
                    }
                }
            }));
        }
        let runs = queue.clone();
        let thread = crate::engine::spawn("ff-group", move || run_calls(group, &runs))?;
        Ok(GroupThread { queue, abort, thread: Some(thread) })
    }

    /// Runs `work` on the group's thread after all earlier calls, then `done` with its result.
    /// `done` must not block. `what` names the call in errors. All ranks must submit the same calls
    /// in the same order.
    pub fn submit(
        &self,
        what: impl Into<String>,
        work: impl FnOnce(&mut Group) -> Result<()> + Send + 'static,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let call = QueuedCall { what: what.into(), work: Box::new(work), done: Box::new(done) };
        self.queue.state.lock().calls.push_back(call);
        self.queue.changed.notify_all();
    }

    /// A way to end the group from any thread.
    pub fn aborter(&self) -> &GroupAbort {
        &self.abort
    }

    /// The ranks that have left the group, as far as this rank knows. Rank 0 knows of all others,
    /// the others know of rank 0.
    pub fn departed(&self) -> Vec<usize> {
        self.queue.state.lock().left.iter().map(|&(rank, _)| rank).collect()
    }
}

impl Drop for GroupThread {
    fn drop(&mut self) {
        self.queue.state.lock().closing = true;
        self.queue.changed.notify_all();
        // The last owner may be a callback on the thread itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn run_calls(mut group: Group, queue: &Queue) {
    loop {
        let mut state = queue.state.lock();
        while state.calls.is_empty() && !state.closing {
            queue.changed.wait(&mut state);
        }
        let Some(QueuedCall { what, work, done }) = state.calls.pop_front() else { break };
        state.running = Some((what.clone(), Instant::now()));
        drop(state);
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut group)));
        let result = result.unwrap_or_else(|payload| {
            let rank = group.rank();
            let text = panic_text(&*payload);
            Err(group.fail(err!(Internal, "{what} panicked on rank {rank}: {text}")))
        });
        queue.state.lock().running = None;
        if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
            tracing::error!("the callback of {what} panicked");
        }
    }
    drop(group);
    queue.state.lock().ended = true;
    queue.changed.notify_all();
}

/// After a rank has left: fails the group if a call keeps waiting.
fn watch_calls(queue: &Queue, abort: &GroupAbort) {
    let mut state = queue.state.lock();
    while !state.ended {
        let now = Instant::now();
        let late =
            state.running.as_ref().zip(state.left.first()).filter(|((_, since), (_, left))| {
                now.saturating_duration_since(*since.max(left)) >= GRACE
            });
        let cause = late.map(|((what, _), (rank, _))| {
            err!(Unavailable, "rank {rank} has left the group, which still runs {what}")
        });
        if let Some(cause) = cause {
            drop(state);
            return abort.abort(cause);
        }
        queue.changed.wait_for(&mut state, GRACE / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupOptions, LinkCostModel, Membership, ReduceOp, TransportChoice};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    fn on_threads(transport: TransportChoice, n: usize, each: impl Fn(usize, GroupThread) + Sync) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let listener = Mutex::new(Some(listener));
        std::thread::scope(|scope| {
            for rank in 0..n {
                let (each, address, listener) = (&each, &address, &listener);
                scope.spawn(move || {
                    let member = Membership { transport, ..Membership::new(rank, n, address) };
                    let model = Some(LinkCostModel::default());
                    let options = GroupOptions { model, ..GroupOptions::default() };
                    let group = match rank {
                        0 => Group::host(&member, options, listener.lock().take().unwrap()),
                        _ => Group::join(&member, options),
                    };
                    each(rank, GroupThread::start(group.unwrap()).unwrap());
                });
            }
        });
    }

    fn reduce(group: &GroupThread, values: Vec<f32>) -> Result<Vec<f32>> {
        let (sender, result) = channel();
        let shared = Arc::new(Mutex::new(values));
        let work = shared.clone();
        group.submit(
            "all-reduce",
            move |group| group.all_reduce(&mut work.lock()[..], ReduceOp::Sum),
            move |r| drop(sender.send(r)),
        );
        result.recv().unwrap()?;
        let values = shared.lock().clone();
        Ok(values)
    }

    #[test]
    fn calls_run_in_order_on_all_ranks() {
        on_threads(TransportChoice::Auto, 3, |rank, group| {
            for i in 0..50 {
                let sum = reduce(&group, vec![(rank + i) as f32; i]).unwrap();
                assert_eq!(sum, vec![(3 + 3 * i) as f32; i]);
            }
        });
    }

    #[test]
    fn a_rank_that_leaves_early_fails_the_calls_of_the_others() {
        for transport in [TransportChoice::Auto, TransportChoice::Tcp] {
            for leaver in [0, 1] {
                on_threads(transport, 3, |rank, group| {
                    if rank == leaver {
                        return;
                    }
                    let e = reduce(&group, vec![1.0]).unwrap_err();
                    let named = e.message().contains(&format!("rank {leaver}"));
                    assert!(named, "{transport:?}, rank {leaver} left: {e}");
                });
            }
        }
    }

    #[test]
    fn an_aborted_group_fails_on_all_ranks_with_the_cause() {
        on_threads(TransportChoice::Auto, 2, |rank, group| {
            if rank == 1 {
                group.aborter().abort(err!(Aborted, "rank 1 raised ValueError: no data"));
            }
            let e = reduce(&group, vec![1.0; 100]).unwrap_err();
            assert_eq!(e.message(), "rank 1 raised ValueError: no data");
            assert!(group.aborter().cause().is_some());
        });
    }
}
