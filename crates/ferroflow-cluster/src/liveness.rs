//! Tells a slow task from one that hangs or is cut off: a caller probes the task while it waits for
//! a call.

use crate::rpc::{CallOptions, Channel, RpcStatus};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// A silent task is probed this often, and has this long to answer: together less than three
/// seconds.
pub(crate) const INTERVAL: Duration = Duration::from_millis(900);
const TIMEOUT: Duration = Duration::from_millis(2000);

/// Every task answers this at once, also a busy one and TensorFlow's.
const GET_STATUS: &str = "/tensorflow.WorkerService/GetStatus";

/// The probes of one task, shared by all calls to it.
#[derive(Default)]
pub(crate) struct Liveness {
    /// The last probe. Locked during a probe.
    last: tokio::sync::Mutex<Option<Probe>>,
}

struct Probe {
    asked: Instant,
    ended: Instant,
    answer: Result<(), RpcStatus>,
}

impl Liveness {
    /// Waits for `call` to the task at the other end of `channel`. When a probe fails, returns its
    /// error instead.
    pub async fn watch<T>(
        &self,
        channel: &Channel,
        call: impl Future<Output = T>,
    ) -> Result<T, RpcStatus> {
        let silence = async {
            loop {
                let since = Instant::now();
                tokio::time::sleep(INTERVAL).await;
                if let Err(status) = self.ask(channel, since).await {
                    return status;
                }
            }
        };
        tokio::select! {
            biased;
            done = call => Ok(done),
            status = silence => Err(status),
        }
    }

    /// Probes the task, unless it has just answered. A caller that waits `since` then shares the
    /// result of a probe that another caller has made meanwhile.
    pub async fn ask(&self, channel: &Channel, since: Instant) -> Result<(), RpcStatus> {
        self.shared(since, async {
            let answer =
                channel.call(GET_STATUS, Bytes::new(), CallOptions::timeout(TIMEOUT)).await;
            if answer.is_err() {
                channel.give_up_connection();
            }
            answer.map(|_| ())
        })
        .await
    }

    async fn shared(
        &self,
        since: Instant,
        question: impl Future<Output = Result<(), RpcStatus>>,
    ) -> Result<(), RpcStatus> {
        let mut last = self.last.lock().await;
        if let Some(last) = &*last {
            let is_recent = last.answer.is_ok() && last.ended.elapsed() < INTERVAL;
            // A failure is shared too. Otherwise the waiting calls would fail one after the other.
            if is_recent || last.asked >= since {
                return last.answer.clone();
            }
        }
        let asked = Instant::now();
        let answer = question.await;
        *last = Some(Probe { asked, ended: Instant::now(), answer: answer.clone() });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::code;
    use futures_util::future::join_all;
    use std::cell::Cell;

    #[tokio::test]
    async fn all_waiting_calls_share_one_failed_probe() {
        let (liveness, asked) = (Liveness::default(), Cell::new(0));
        let question = || async {
            asked.set(asked.get() + 1);
            tokio::task::yield_now().await;
            Err(RpcStatus::new(code::DEADLINE_EXCEEDED, "silent"))
        };
        let since = Instant::now();
        let heard = join_all((0..5).map(|_| liveness.shared(since, question()))).await;
        assert!(heard.iter().all(Result::is_err));
        assert_eq!(asked.get(), 1);
        // A later call probes again.
        assert!(liveness.shared(Instant::now(), async { Ok(()) }).await.is_ok());
        assert!(liveness.shared(Instant::now(), question()).await.is_ok(), "it has just answered");
        assert_eq!(asked.get(), 1);
    }
}
