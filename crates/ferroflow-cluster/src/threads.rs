//! The threads that serve the network.

use crate::spin::before_park;
use ferroflow_core::{Result, err};
use tokio::runtime::{Builder, Runtime};

/// A tokio runtime for a [`crate::Server`]. Any other works too; these threads also poll for
/// answers before they park.
pub fn network_threads() -> Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("ff-net")
        .enable_all()
        .on_thread_park(before_park)
        .build()
        .map_err(|e| err!(ResourceExhausted, "cannot start network threads: {e}"))
}
