//! The threads that serve the network.

use crate::spin::before_park;
use crate::watchdog;
use ferroflow_core::{Result, err};
use tokio::runtime::{Builder, Runtime};

/// Does `work` here if it `is_quick`, else on a thread that may block: a network thread serves all
/// clients.
pub async fn off_network<T: Send + 'static>(
    is_quick: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if is_quick {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(err!(Internal, "the handler panicked: {e}")))
}

/// A tokio runtime for a [`crate::Server`]. Any other works too; these threads also poll for
/// answers before they park.
pub fn network_threads() -> Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("ff-net")
        .enable_all()
        .on_thread_start(watchdog::started)
        .on_thread_stop(watchdog::ended)
        .on_thread_park(|| {
            before_park();
            watchdog::parks();
        })
        .on_thread_unpark(watchdog::wakes)
        .build()
        .map_err(|e| err!(ResourceExhausted, "cannot start network threads: {e}"))
}
