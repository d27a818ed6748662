//! Discovers the devices of the tasks of a session: asks each task until it answers.

use super::peer::Peer;
use crate::rpc::CallOptions;
use ferroflow_core::{Code, DeviceInfo, DeviceName, Error, Result, err};
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long one attempt may take; a task that hangs is asked again.
const ATTEMPT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When the log first names the tasks that have not answered, and how often it does from then on.
const FIRST_REPORT: Duration = Duration::from_secs(2);
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The request to tasks.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    /// Accepts a task that has another name for itself. Otherwise such a task is a wrong one.
    pub by_any_name: bool,
    /// Whether the tasks measure their devices first.
    pub measures_devices: bool,
}

/// The devices of each of `peers`. Waits for the tasks up to `limit`.
pub(super) async fn discover(
    peers: &[Arc<Peer>],
    limit: Duration,
    how: Asked,
) -> Result<Vec<Vec<Arc<DeviceInfo>>>> {
    tracing::debug!("Scanning workers for devices: {} total workers", peers.len());
    let waits: Vec<Wait> = peers.iter().map(|_| Wait::default()).collect();
    let all = peers.iter().zip(&waits).map(|(peer, wait)| wait.answer(peer, how));
    let started = Instant::now();
    let all = try_join_all(all);
    tokio::pin!(all);
    let deadline = started + limit;
    let mut report = started + FIRST_REPORT;
    loop {
        tokio::select! {
            found = &mut all => return found,
            () = tokio::time::sleep_until(report.min(deadline)) => {}
        }
        report += REPORT_INTERVAL;
        let silent: Vec<(&Arc<Peer>, String)> =
            peers.iter().zip(&waits).filter_map(|(p, w)| Some((p, w.cause()?))).collect();
        let waited = started.elapsed();
        if Instant::now() >= deadline {
            return Err(gave_up(&silent, waited));
        }
        for (peer, cause) in silent {
            let (task, address) = (&peer.task, peer.address());
            tracing::warn!(
                "CreateSession still waiting for response from worker: {task} at {address} for \
                 {} s: {cause}",
                waited.as_secs()
            );
        }
    }
}

fn gave_up(silent: &[(&Arc<Peer>, String)], waited: Duration) -> Error {
    let tasks = silent.iter().map(|(p, cause)| format!("{} at {}: {cause}", p.task, p.address()));
    err!(
        DeadlineExceeded,
        "CreateSession gave up after {:.1} s waiting for {}",
        waited.as_secs_f64(),
        tasks.collect::<Vec<_>>().join("; ")
    )
}

/// The wait for one task.
#[derive(Default)]
struct Wait {
    /// Why there is no answer yet; `None` once there is one.
    state: parking_lot::Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Asked,
    Failed(String),
    Answered,
}

impl Wait {
    fn cause(&self) -> Option<String> {
        match &*self.state.lock() {
            State::Asked => Some("no answer".into()),
            State::Failed(why) => Some(why.clone()),
            State::Answered => None,
        }
    }

    /// Asks again until there is an answer. Fails only if the answer is an error.
    async fn answer(&self, peer: &Peer, how: Asked) -> Result<Vec<Arc<DeviceInfo>>> {
        let Asked { by_any_name, measures_devices } = how;
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match peer.status(measures_devices, CallOptions::timeout(ATTEMPT)).await {
                Ok(said) => {
                    let stranger = said.iter().find(|d| {
                        let name = DeviceName::parse(d.name());
                        !by_any_name && !name.is_ok_and(|n| n.is_compatible(&peer.name))
                    });
                    match stranger {
                        None => {
                            *self.state.lock() = State::Answered;
                            return peer.devices(&said);
                        }
                        Some(device) => format!("that is another task, with {}", device.name()),
                    }
                }
                Err(e) if !is_absence(&e) => return Err(e),
                // Without the description of the call, which is the same each time.
                Err(e) => e.message().lines().next().unwrap_or_default().to_string(),
            };
            *self.state.lock() = State::Failed(why);
            peer.give_up();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn is_absence(e: &Error) -> bool {
    matches!(e.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled)
}
