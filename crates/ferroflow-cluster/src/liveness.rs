//! Telling a task that takes its time from one that has hung or is cut off: while somebody waits for
//! it, it is asked for signs of life.

use crate::rpc::{CallOptions, Channel, RpcStatus};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// Whoever waits asks this often whether a task that is silent is still there, and gives it this long
/// to answer; together no more than three seconds.
pub(crate) const INTERVAL: Duration = Duration::from_millis(900);
const TIMEOUT: Duration = Duration::from_millis(2000);

/// What every task answers at once: TensorFlow's, too, and whatever else it is doing.
const GET_STATUS: &str = "/tensorflow.WorkerService/GetStatus";

/// What is known of the life of one task, shared by all who wait for it.
#[derive(Default)]
pub(crate) struct Liveness {
    /// What became of the last question; held while one asks.
    last: tokio::sync::Mutex<Option<Question>>,
}

struct Question {
    asked: Instant,
    ended: Instant,
    answer: Result<(), RpcStatus>,
}

impl Liveness {
    /// Waits for `call` to the task at the other end of `channel`. When the task falls silent, ends
    /// with what became of the last question instead.
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

    /// Asks for a sign of life, unless there was one just now. Whoever waits `since` then shares what
    /// became of a question that another has asked meanwhile.
    pub async fn ask(&self, channel: &Channel, since: Instant) -> Result<(), RpcStatus> {
        self.shared(since, async {
            channel.call(GET_STATUS, Bytes::new(), CallOptions::timeout(TIMEOUT)).await?;
            Ok(())
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
            // Silence, too: or those who wait would find out one after the other.
            if is_recent || last.asked >= since {
                return last.answer.clone();
            }
        }
        let asked = Instant::now();
        let answer = question.await;
        *last = Some(Question { asked, ended: Instant::now(), answer: answer.clone() });
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
    async fn all_who_wait_hear_of_a_silence_together() {
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
        // Whoever comes later asks anew, and is believed.
        assert!(liveness.shared(Instant::now(), async { Ok(()) }).await.is_ok());
        assert!(liveness.shared(Instant::now(), question()).await.is_ok(), "it has just answered");
        assert_eq!(asked.get(), 1);
    }
}
