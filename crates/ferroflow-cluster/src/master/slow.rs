//! Watches slow steps: probes the tasks of a step that takes long.

use super::step_run::StepRun;
use crate::liveness;
use ferroflow_core::HashMap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// A step that exists in two checks is watched. So it is probed as soon as a call would be.
const CHECK_INTERVAL: Duration = liveness::INTERVAL.checked_div(2).expect("not by zero");
/// Checking stops after this many checks without a running step.
const IDLE_CHECKS: u32 = 20;

pub(super) struct SlowSteps {
    state: Mutex<HashMap<usize, Seen>>,
    is_watched: AtomicBool,
    io: Handle,
}

struct Seen {
    run: Weak<StepRun>,
    checks: u32,
}

impl SlowSteps {
    pub fn new(io: Handle) -> Arc<SlowSteps> {
        Arc::new(SlowSteps { state: Mutex::default(), is_watched: AtomicBool::new(false), io })
    }

    /// Adds a running step.
    pub fn insert(self: &Arc<Self>, run: &Arc<StepRun>) {
        let seen = Seen { run: Arc::downgrade(run), checks: 0 };
        self.state.lock().insert(key_of(run), seen);
        if !self.is_watched.load(Ordering::Relaxed) && !self.is_watched.swap(true, Ordering::AcqRel)
        {
            self.io.spawn(keep_checking(Arc::downgrade(self)));
        }
    }

    pub fn remove(&self, run: &StepRun) {
        self.state.lock().remove(&key_of(run));
    }

    /// Watches the steps that already existed at the last check. Returns whether there are any
    /// steps.
    fn check(&self) -> bool {
        let mut steps = self.state.lock();
        let mut slow = Vec::new();
        for seen in steps.values_mut() {
            seen.checks += 1;
            if seen.checks == 2 {
                slow.extend(seen.run.upgrade());
            }
        }
        let any = !steps.is_empty();
        drop(steps);
        // One time for all of them, so that they share one probe.
        let since = Instant::now();
        slow.iter().for_each(|run| run.watch(since));
        any
    }
}

/// Runs are keyed by address, since the calls of a partial run share one step id.
fn key_of(run: &StepRun) -> usize {
    std::ptr::from_ref(run) as usize
}

async fn keep_checking(steps: Weak<SlowSteps>) {
    let mut idle = 0;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(steps) = steps.upgrade() else { return };
        idle = if steps.check() { 0 } else { idle + 1 };
        if idle < IDLE_CHECKS {
            continue;
        }
        steps.is_watched.store(false, Ordering::Release);
        // A step that was added after the last check has not started another checker.
        if steps.state.lock().is_empty() || steps.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        idle = 0;
    }
}
