//! Telling a task that takes its time from one that has hung or is cut off: while somebody waits for
//! it, it is asked for signs of life.

use crate::rpc::{CallOptions, Channel, Status};
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
pub(crate) struct Pulse {
    /// When it last said anything, if somebody asked; held while one asks.
    heard: tokio::sync::Mutex<Option<Instant>>,
}

impl Pulse {
    /// Waits for `call` to the task at the other end of `channel`. When the task falls silent, ends
    /// with what became of the last question instead.
    pub async fn watch<T>(
        &self,
        channel: &Channel,
        call: impl Future<Output = T>,
    ) -> Result<T, Status> {
        let silence = async {
            loop {
                tokio::time::sleep(INTERVAL).await;
                if let Err(status) = self.ask(channel).await {
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

    /// Asks for a sign of life, unless there was one just now.
    pub async fn ask(&self, channel: &Channel) -> Result<(), Status> {
        let mut heard = self.heard.lock().await;
        if heard.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Ok(());
        }
        channel.call(GET_STATUS, Bytes::new(), CallOptions::timeout(TIMEOUT)).await?;
        *heard = Some(Instant::now());
        Ok(())
    }
}
