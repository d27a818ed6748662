//! Steps that take long: somebody looks whether the tasks that they wait for are still there.

use super::direct::DirectRun;
use crate::liveness;
use ferroflow_core::HashMap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Whoever is seen in two looks is asked for, so within the time after which any call is.
const LOOKS: Duration = liveness::INTERVAL.checked_div(2).expect("not by zero");
/// Looks without a step under way, after which nobody looks any more.
const IDLE_LOOKS: u32 = 20;

pub(super) struct SlowSteps {
    state: Mutex<HashMap<i64, Seen>>,
    is_watched: AtomicBool,
    io: Handle,
}

struct Seen {
    run: Weak<DirectRun>,
    looks: u32,
}

impl SlowSteps {
    pub fn new(io: Handle) -> Arc<SlowSteps> {
        Arc::new(SlowSteps { state: Mutex::default(), is_watched: AtomicBool::new(false), io })
    }

    /// A step is under way.
    pub fn note(self: &Arc<Self>, run: &Arc<DirectRun>) {
        let seen = Seen { run: Arc::downgrade(run), looks: 0 };
        self.state.lock().insert(run.step_id, seen);
        if !self.is_watched.load(Ordering::Relaxed) && !self.is_watched.swap(true, Ordering::AcqRel)
        {
            self.io.spawn(look_after(Arc::downgrade(self)));
        }
    }

    pub fn forget(&self, step_id: i64) {
        self.state.lock().remove(&step_id);
    }

    /// Whether there are any; those that were there at the last look are watched.
    fn look(&self) -> bool {
        let mut steps = self.state.lock();
        let mut slow = Vec::new();
        for seen in steps.values_mut() {
            seen.looks += 1;
            if seen.looks == 2 {
                slow.extend(seen.run.upgrade());
            }
        }
        let any = !steps.is_empty();
        drop(steps);
        // One moment for all of them, so that they share one question.
        let since = Instant::now();
        slow.iter().for_each(|run| run.watch(since));
        any
    }
}

async fn look_after(steps: Weak<SlowSteps>) {
    let mut idle = 0;
    loop {
        tokio::time::sleep(LOOKS).await;
        let Some(steps) = steps.upgrade() else { return };
        idle = if steps.look() { 0 } else { idle + 1 };
        if idle < IDLE_LOOKS {
            continue;
        }
        steps.is_watched.store(false, Ordering::Release);
        // Whoever came between the last look and this has found somebody at it.
        if steps.state.lock().is_empty() || steps.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        idle = 0;
    }
}
