//! Reports the version, the clock and the limits of a task to `ferroflow doctor`.

use crate::error::from_status;
use crate::listen::descriptors;
use crate::net::{NetworkConnector, SecureNetwork, SystemNetwork};
use crate::rpc::client::ChannelOptions;
use crate::rpc::{CallOptions, Channel, Chunks, code};
use crate::spec::ClusterSpec;
use bytes::Bytes;
use ferroflow_core::{Result, err};
use ferroflow_identity::Trust;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The method that answers.
pub const EXAMINE: &str = "/ferroflow.Task/Examine";

/// Longest request that is answered with as many bytes.
const MOST_PADDING: usize = 64 << 10;

/// The answer of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskReport {
    /// The version of its program. `None` for a server of TensorFlow, and for an old version of
    /// Ferroflow, which does not report it.
    pub version: Option<String>,
    /// Seconds by which its clock is ahead of the caller's, with an error of half the round trip.
    pub clock_ahead: f64,
    /// The time of the round trip.
    pub round_trip: Duration,
    /// The number of descriptors that it may have.
    pub descriptors: Option<u64>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The answer of this task to a request of this length.
pub(crate) fn answer(request: usize) -> Chunks {
    let padding = "x".repeat(request.min(MOST_PADDING));
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "unix_seconds": now(),
        "descriptors": descriptors(),
        "padding": padding,
    });
    Chunks::from(Bytes::from(report.to_string()))
}

/// Asks the task at `address` of a cluster. `padding` bytes travel in both directions, so that a
/// path that loses long packets is noticed.
pub async fn examine(
    cluster: &ClusterSpec,
    address: &str,
    trust: &Trust,
    padding: usize,
    timeout: Duration,
) -> Result<TaskReport> {
    let network = SecureNetwork::over(Arc::new(SystemNetwork), trust, cluster.roles());
    let options = ChannelOptions { connect_timeout: timeout, ..ChannelOptions::default() };
    let channel = Channel::connect_with(address, options, NetworkConnector(network));
    let channel = channel.map_err(|status| from_status(&status))?;
    let request = Bytes::from(vec![b'x'; padding]);
    let (asked, started) = (now(), Instant::now());
    let answered = channel.call(EXAMINE, request, CallOptions::timeout(timeout)).await;
    let round_trip = started.elapsed();
    let answer = match answered {
        Ok(answer) => answer.into_bytes(),
        Err(status) if status.code == code::UNIMPLEMENTED => {
            let clock_ahead = 0.0;
            return Ok(TaskReport { version: None, clock_ahead, round_trip, descriptors: None });
        }
        Err(status) => return Err(from_status(&status)),
    };
    let report: Value = serde_json::from_slice(&answer)
        .map_err(|e| err!(DataLoss, "the task gave an unreadable answer: {e}"))?;
    // Its clock was read half a round trip after the question was asked.
    let expected = asked + round_trip.as_secs_f64() / 2.0;
    let ahead = report["unix_seconds"].as_f64().map(|there| there - expected);
    Ok(TaskReport {
        version: report["version"].as_str().map(String::from),
        clock_ahead: ahead.unwrap_or(0.0),
        round_trip,
        descriptors: report["descriptors"].as_u64(),
    })
}
